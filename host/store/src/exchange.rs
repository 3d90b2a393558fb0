//! A store as JSON lines: the format in which documents go from one store to another, whole or not at all. The SQL is in
//! `sqlite/transfer.rs`.
//!
//! The first line says how many documents follow, so a file that was cut off is noticed. Each further line is one document.

use super::{FILE, Item, Name, Namespace, Sqlite, check_body, check_name, create, existing, no_place};
use base::dirs::Dirs;
use base::disk::{OwnDir, told};
use base::envelope::{Failure, Kind};
use base::text::names::is_name;
use base::text::sanitize;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// The version of the format.
const FORMAT: u64 = 1;
/// The members of a document's line.
const MEMBERS: [&str; 9] = ["agent", "plugin", "collection", "key", "body", "revision", "made_ms", "changed_ms", EMBED];
/// The one that only a document has that is found by the meaning of a text: the JSON pointer to that.
const EMBED: &str = "embed";
/// The most bytes of a line beside the body.
const BESIDE_BODY: usize = 16 << 10;
/// Characters of a first line that are shown where it is not the one of an export.
const SHOWN: usize = 60;
/// The largest number in a line: all JSON programs keep it exactly, and a revision can still grow.
const LARGEST: u64 = (1 << 53) - 1;

/// What one plugin of one agent has in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holding {
    /// The agent.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// Documents.
    pub items: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Documents that were not there before.
    pub made: u64,
    /// Documents that were there with another body.
    pub replaced: u64,
    /// Documents that were there with the same body.
    pub skipped: u64,
}

/// A document, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) of: Namespace,
    pub(super) collection: String,
    pub(super) item: Item,
    pub(super) embed: Option<String>,
}

/// Returns what each plugin of each agent has in the store, by agent and plugin; nothing where there is no store.
///
/// # Errors
///
/// `unavailable` where the store cannot be read.
pub fn list(dirs: &Dirs) -> Result<Vec<Holding>, Failure> {
    existing(dirs)?.map_or_else(|| Ok(Vec::new()), |engine| engine.list())
}

/// Writes the documents of all agents, or of one, to a file that is not there yet, for this user alone. Returns how many they are; none
/// where there is no store.
///
/// # Errors
///
/// `usage` where the file cannot be made, or the agent has no documents; `unavailable` where the store cannot be read, or the disk is full.
pub fn export(dirs: &Dirs, to: &Path, agent: Option<&str>) -> Result<Option<u64>, Failure> {
    let Some(engine) = existing(dirs)? else { return Ok(None) };
    let items = engine.export(agent, |items, documents| {
        if let (0, Some(agent)) = (items, agent) {
            return Err(wrong(format!("the store has no documents of agent `{agent}`"))
                .hint("`toolcrib store list` shows whose documents there are"));
        }
        let file = create(to)?;
        let outcome = write(file, to, items, documents);
        if outcome.is_err() {
            // Half a file is worth nothing, and would be in the way of the next one.
            let _ = std::fs::remove_file(to);
        }
        outcome.map(|()| items)
    })?;
    Ok(Some(items))
}

fn write(
    file: File,
    to: &Path,
    items: u64,
    documents: &mut dyn Iterator<Item = Result<Stored, Failure>>,
) -> Result<(), Failure> {
    let refused =
        |error: io::Error| Failure::new(Kind::Unavailable, format!("`{}` cannot be written: {error}", to.display()));
    let mut file = BufWriter::new(file);
    writeln!(file, "{}", json!({ "toolcrib_store": FORMAT, "items": items })).map_err(refused)?;
    for document in documents {
        writeln!(file, "{}", line(&document?)).map_err(refused)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all()).map_err(refused)
}

fn line(Stored { of, collection, item, embed }: &Stored) -> String {
    let [agent, plugin, collection, key] = [&of.agent, &of.plugin, collection, &item.key].map(|text| json!(text));
    let (body, Item { revision, made_ms, changed_ms, .. }) = (in_one_line(&item.body), item);
    let embed = embed.as_ref().map_or_else(String::new, |pointer| format!(r#","{EMBED}":{}"#, json!(pointer)));
    format!(
        r#"{{"agent":{agent},"plugin":{plugin},"collection":{collection},"key":{key},"body":{body},"revision":{revision},"made_ms":{made_ms},"changed_ms":{changed_ms}{embed}}}"#
    )
}

/// A body without line breaks. In JSON they stand only between values: in a string they are written `\n`.
pub(super) fn in_one_line(body: &str) -> String {
    body.replace(['\n', '\r'], " ")
}

/// Puts the documents of an export into the store, which is made where there is none: all of them, or nothing is changed. A document that
/// is there with the same body is skipped. With another body it is an error, or it is replaced.
///
/// # Errors
///
/// `usage` where the file is not an export or not a whole one, or a document is there with another body; `limit` where the store would
/// break one of its limits; `unavailable` and `busy` as for any change.
pub fn import(dirs: &Dirs, limits: &config::Store, from: &Path, replace: bool) -> Result<Imported, Failure> {
    let file = File::open(from).map_err(|error| unreadable(from, &error))?;
    // Looked at first: a file of something else makes no store.
    let documents = Documents::of(BufReader::new(file), from, limits)?;
    let directory = OwnDir::open(&dirs.state).map_err(|error| no_place(&told(&error)))?;
    Sqlite::open(&directory.path().join(FILE), limits.sync)?.import(documents, limits, replace)
}

/// The documents of an export, read line by line.
struct Documents<'l, R> {
    reader: R,
    from: &'l Path,
    limits: &'l config::Store,
    /// The line that was read last.
    number: u64,
    /// Documents that the first line promises, and those that were read.
    items: u64,
    read: u64,
}

impl<'l, R: BufRead> Documents<'l, R> {
    fn of(reader: R, from: &'l Path, limits: &'l config::Store) -> Result<Self, Failure> {
        let mut documents = Self { reader, from, limits, number: 0, items: 0, read: 0 };
        let first = documents.line()?.unwrap_or_default();
        documents.items = items(&first)?;
        Ok(documents)
    }

    /// The next line, with its line break; of a line that is too long, one byte more than is allowed.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let (mut line, most) = (Vec::new(), self.most() as u64 + 1);
        self.reader.by_ref().take(most).read_until(b'\n', &mut line).map_err(|error| unreadable(self.from, &error))?;
        self.number += 1;
        Ok(Some(line).filter(|line| !line.is_empty()))
    }

    /// The most bytes of a line.
    fn most(&self) -> usize {
        ((self.limits.item_kib as usize) << 10) + BESIDE_BODY
    }

    fn document(&mut self) -> Result<Option<Stored>, Failure> {
        let Some(line) = self.line()? else {
            return if self.read == self.items { Ok(None) } else { Err(self.cut_off()) };
        };
        if self.read == self.items {
            let message = format!("the file has more documents than its first line says ({})", self.items);
            return Err(self.at(wrong(message)));
        }
        let (is_whole, is_too_long) = (line.ends_with(b"\n"), line.len() > self.most());
        if !is_whole && is_too_long {
            let message = format!("more than {} KiB for a document are too many", self.limits.item_kib);
            return Err(self.at(Failure::limit(message).hint("`item_kib` under [store] raises that")));
        }
        if !is_whole && serde_json::from_slice::<IgnoredAny>(&line).is_err() {
            return Err(self.cut_off());
        }
        self.read += 1;
        let text = std::str::from_utf8(&line).map_err(|_| self.at(wrong("it is not UTF-8")))?;
        document(text, self.limits).map(Some).map_err(|failure| self.at(failure))
    }

    fn cut_off(&self) -> Failure {
        wrong(format!("the file is cut off: it has {} of {} documents", self.read, self.items))
            .hint("nothing was imported")
    }

    /// A failure of the line that was read last.
    fn at(&self, failure: Failure) -> Failure {
        let kind = if failure.kind == Kind::Limit { Kind::Limit } else { Kind::Usage };
        let message = format!("line {}: {}", self.number, failure.message);
        Failure::new(kind, message).hint(failure.hint.unwrap_or_else(|| "nothing was imported".to_owned()))
    }
}

impl<R: BufRead> Iterator for Documents<'_, R> {
    type Item = Result<Stored, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.document().transpose()
    }
}

/// Reads the first line: how many documents follow.
fn items(first: &[u8]) -> Result<u64, Failure> {
    let read = serde_json::from_slice::<Value>(first).unwrap_or_default();
    match (read["toolcrib_store"].as_u64(), read["items"].as_u64()) {
        (Some(FORMAT), Some(items)) => Ok(items),
        (Some(FORMAT), None) => Err(wrong("line 1: `items` is missing, or is not a whole number")),
        (Some(later), _) if later > FORMAT => {
            Err(wrong(format!("a later Toolcrib made this export (version {later}, this one knows {FORMAT})")))
        }
        _ if first.is_empty() => Err(wrong("this is not an export of a store (it is empty)")),
        _ => {
            let text = String::from_utf8_lossy(first);
            let shown: String = text.trim_end().chars().take(SHOWN).collect();
            let more = if text.trim_end().chars().count() > SHOWN { "…" } else { "" };
            let shown = sanitize::visible_line(&shown);
            Err(wrong(format!("this is not an export of a store (its first line is `{shown}{more}`)")))
        }
    }
}

/// Reads the line of a document. Its body is kept as it is written: numbers that no type of ours holds stay what they are.
fn document(line: &str, limits: &config::Store) -> Result<Stored, Failure> {
    let members = members(line)?;
    if let Some(odd) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(wrong(format!("`{odd}` is not a member of a document")));
    }
    let member = |name: &str| members.get(name).copied().ok_or_else(|| wrong(format!("`{name}` is missing")));
    let text = |name: &str| -> Result<String, Failure> {
        serde_json::from_str(member(name)?).map_err(|_| wrong(format!("`{name}` is not a string")))
    };
    let number = |name: &str, least: u64| -> Result<u64, Failure> {
        let number = serde_json::from_str(member(name)?).ok().filter(|number| (least..=LARGEST).contains(number));
        number.ok_or_else(|| wrong(format!("`{name}` is not a whole number from {least} to {LARGEST}")))
    };
    let of = Namespace { agent: text("agent")?, plugin: text("plugin")? };
    if !is_name(&of.plugin) {
        let message = "`plugin` is not a valid plugin name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`";
        return Err(wrong(message));
    }
    let name = Name { collection: text("collection")?, key: text("key")? };
    check_name(&name)?;
    let body = member("body")?.to_owned();
    check_body(&name, &body, limits)?;
    let [revision, made_ms, changed_ms] = [number("revision", 1)?, number("made_ms", 0)?, number("changed_ms", 0)?];
    let item = Item { key: name.key, body, revision, made_ms, changed_ms, rank: 0.0 };
    let embed = members.contains_key(EMBED).then(|| text(EMBED)).transpose()?;
    embed.as_deref().map(super::query::path).transpose()?;
    Ok(Stored { of, collection: name.collection, item, embed })
}

/// The members of an object, each as it is written.
fn members(line: &str) -> Result<BTreeMap<String, &str>, Failure> {
    serde_json::from_str::<IgnoredAny>(line).map_err(|error| {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        wrong(format!("it is not JSON: {what} (column {})", error.column()))
    })?;
    let Some(mut rest) = line.trim().strip_prefix('{') else { return Err(wrong("it is not a JSON object")) };
    let mut members = BTreeMap::new();
    // All of it is JSON, so a name, a colon and a value follow one another until the brace.
    while let Some((name, after)) = value(rest.trim_start().trim_start_matches(',')) {
        let Some((value, after)) = value(after.trim_start().trim_start_matches(':')) else { break };
        let name: String = serde_json::from_str(name).map_err(|_| wrong("the name of a member is not valid"))?;
        rest = after;
        if members.insert(name.clone(), value).is_some() {
            return Err(wrong(format!("`{name}` is there twice")));
        }
    }
    Ok(members)
}

/// The JSON value that a text begins with, and what comes after it.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, after) = text.split_at(values.byte_offset());
    Some((value.trim(), after))
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Usage, message)
}

fn unreadable(from: &Path, error: &io::Error) -> Failure {
    wrong(format!("`{}` cannot be read: {error}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Query};

    /// Two homes, of which the first has a store.
    struct Homes {
        root: tempfile::TempDir,
        limits: config::Store,
    }

    const FIRST: &str = "{\"toolcrib_store\":1,\"items\":1}\n";

    fn namespace(agent: &str) -> Namespace {
        Namespace { agent: agent.into(), plugin: "p".into() }
    }

    fn document(key: &str, body: &str, revision: u64) -> String {
        format!(
            r#"{{"agent":"a","plugin":"p","collection":"c","key":"{key}","body":{body},"revision":{revision},"made_ms":5,"changed_ms":6}}"#
        )
    }

    impl Homes {
        fn new() -> Self {
            let homes =
                Self { root: tempfile::tempdir().expect("a directory"), limits: config::Config::default().store };
            std::fs::create_dir_all(homes.root.path().join("one")).expect("a directory");
            std::fs::create_dir_all(homes.root.path().join("two")).expect("a directory");
            homes
        }

        fn dirs(&self, home: &str) -> Dirs {
            Dirs::below(&self.root.path().join(home))
        }

        fn engine(&self, home: &str) -> Sqlite {
            let directory = OwnDir::open(&self.dirs(home).state).expect("a directory");
            Sqlite::open(&directory.path().join(FILE), self.limits.sync).expect("a store")
        }

        fn put(&self, home: &str, agent: &str, key: &str, body: &str) {
            let change = Change::Put(Name { collection: "c".into(), key: key.into() }, body.into());
            self.engine(home).commit(&namespace(agent), &[change], &self.limits).expect("it is put");
        }

        fn get(&self, home: &str, key: &str) -> Option<Item> {
            let name = Name { collection: "c".into(), key: key.into() };
            self.engine(home).get(&namespace("a"), &name).expect("a look")
        }

        fn file(&self, name: &str) -> std::path::PathBuf {
            self.root.path().join(name)
        }

        /// Imports a text into the second home.
        fn import(&self, text: impl AsRef<[u8]>, replace: bool) -> Result<Imported, Failure> {
            std::fs::write(self.file("text"), text).expect("written");
            import(&self.dirs("two"), &self.limits, &self.file("text"), replace)
        }

        fn refused(&self, text: impl AsRef<[u8]>) -> String {
            self.import(text, false).expect_err("it is refused").message
        }

        fn check(&self, items: u64) {
            let checked = self.engine("two").check().expect("a look");
            assert_eq!((checked.faults, checked.items), (Vec::new(), items));
        }
    }

    #[test]
    fn documents_arrive_as_they_were_and_are_found_by_their_words() {
        let homes = Homes::new();
        assert_eq!(export(&homes.dirs("one"), &homes.file("none"), None), Ok(None));
        // Spelled as JSON programs of ours would not write it, and with a line break.
        let odd = "{\"n\": 123456789012345678901234567890.10,\r\n \"text\": \"River\\nüb\\u00e9r\", \"n\": 1e3}";
        homes.put("one", "a", "k1", "\"first\"");
        homes.put("one", "a", "k1", odd);
        homes.put("one", "a", "k2", "null");
        homes.put("one", "b \"quoted\"", "k", "[1, \"two\", {\"body\": {}}]");
        assert_eq!(export(&homes.dirs("one"), &homes.file("all"), None), Ok(Some(3)));
        assert_eq!(export(&homes.dirs("one"), &homes.file("a"), Some("a")), Ok(Some(2)));
        let nobody = export(&homes.dirs("one"), &homes.file("c"), Some("c")).expect_err("there is none");
        assert!(nobody.message.contains("no documents of agent `c`") && !homes.file("c").exists(), "{nobody:?}");
        let text = std::fs::read_to_string(homes.file("all")).expect("a text");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.lines().skip(1).all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");

        let all = import(&homes.dirs("two"), &homes.limits, &homes.file("all"), false);
        assert_eq!(all, Ok(Imported { made: 3, ..Imported::default() }));
        let (there, here) = (homes.get("one", "k1").expect("an item"), homes.get("two", "k1").expect("an item"));
        assert_eq!(here, Item { body: in_one_line(odd), ..there });
        assert_eq!((here.revision, homes.get("two", "k2").expect("an item").body.as_str()), (2, "null"));
        let mut query = Query::new("c".into());
        query.words("river").expect("a word");
        assert_eq!(homes.engine("two").find(&namespace("a"), &query).expect("a page").total, 1);
        homes.check(3);
        for replace in [false, true] {
            let again = import(&homes.dirs("two"), &homes.limits, &homes.file("all"), replace);
            assert_eq!(again, Ok(Imported { skipped: 3, ..Imported::default() }));
            // What was exported was not changed by it.
            let back = import(&homes.dirs("one"), &homes.limits, &homes.file("a"), replace);
            assert_eq!(back, Ok(Imported { skipped: 2, ..Imported::default() }));
        }
        let holdings = list(&homes.dirs("two")).expect("a list");
        assert_eq!(
            holdings.iter().map(|of| (of.agent.as_str(), of.items)).collect::<Vec<_>>(),
            [("a", 2), ("b \"quoted\"", 1)]
        );
    }

    #[test]
    fn another_body_is_replaced_only_on_request_and_its_revision_is_never_used_again() {
        let homes = Homes::new();
        for body in ["\"one\"", "\"two\"", "\"three\""] {
            homes.put("two", "a", "k1", body);
        }
        homes.put("two", "a", "k2", "1");
        let text = format!(
            "{{\"toolcrib_store\":1,\"items\":3}}\n{}\n{}\n{}",
            document("k0", "0", 1),
            document("k1", "\"new\"", 2),
            document("k2", "2", 9)
        );
        let refused = homes.import(&text, false).expect_err("it is refused");
        assert_eq!(
            refused.message,
            "2 documents are there already with another body; the first is `k1` in collection `c` of agent `a` and plugin `p`"
        );
        assert_eq!(homes.get("two", "k0"), None);
        homes.check(2);
        assert_eq!(homes.import(&text, true), Ok(Imported { made: 1, replaced: 2, skipped: 0 }));
        let revisions = ["k0", "k1", "k2"].map(|key| homes.get("two", key).map(|item| (item.revision, item.made_ms)));
        assert_eq!(revisions, [Some((1, 5)), Some((4, 5)), Some((9, 5))]);
        let mut query = Query::new("c".into());
        query.words("three").expect("a word");
        assert_eq!(homes.engine("two").find(&namespace("a"), &query).expect("a page").total, 0);
        homes.check(3);
    }

    #[test]
    fn a_file_of_something_else_makes_no_store() {
        let homes = Homes::new();
        for (text, said) in [
            ("", "this is not an export of a store (it is empty)".to_owned()),
            ("[1]\n", "this is not an export of a store (its first line is `[1]`)".to_owned()),
            (&"x".repeat(90), format!("this is not an export of a store (its first line is `{}…`)", "x".repeat(60))),
            (
                "{\"toolcrib_store\":2,\"items\":0}\n",
                "a later Toolcrib made this export (version 2, this one knows 1)".into(),
            ),
            ("{\"toolcrib_store\":1}\n", "line 1: `items` is missing, or is not a whole number".into()),
        ] {
            assert_eq!(homes.refused(text), said);
        }
        assert!(list(&homes.dirs("two")).expect("a list").is_empty());
        assert!(!homes.dirs("two").state.join(FILE).exists());
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_is_imported() {
        let homes = Homes::new();
        let good = document("k", "1", 1);
        let bad = [
            (good.replace("\"key\":\"k\",", ""), "`key` is missing"),
            (good.replace("\"k\"", "7"), "`key` is not a string"),
            (good.replace("\"k\"", "\"\\ud800\""), "`key` is not a string"),
            (good.replace("\"k\"", "\"\""), "collections and keys have 1 to 256 bytes, no control characters"),
            (good.replace("\"p\"", "\"../p\""), "`plugin` is not a valid plugin name"),
            (good.replace("\"revision\":1", "\"revision\":0"), "`revision` is not a whole number from 1 to"),
            (good.replace("\"made_ms\":5", "\"made_ms\":-5"), "`made_ms` is not a whole number from 0 to"),
            (good.replace("\"made_ms\":5", "\"made_ms\":5,\"made_ms\":5"), "`made_ms` is there twice"),
            (good.replace("\"made_ms\"", "\"mode_ms\""), "`mode_ms` is not a member of a document"),
            (good.replace("\"body\":1", "\"body\":"), "it is not JSON: expected value (column "),
            (good.replace("\"body\":1", &format!("\"body\":{}1{}", "[".repeat(200), "]".repeat(200))), "the body of"),
            (format!("[{good}]"), "it is not a JSON object"),
            (String::new(), "it is not JSON: EOF while parsing a value"),
        ];
        for (line, said) in bad {
            let refused =
                homes.refused(format!("{{\"toolcrib_store\":1,\"items\":2}}\n{}\n{line}\n", document("j", "1", 1)));
            assert!(refused.starts_with(&format!("line 3: {said}")), "{line}: {refused}");
        }
        let not_text = [FIRST.as_bytes(), b"{\"agent\":\"\xff\"}\n"].concat();
        assert_eq!(homes.refused(not_text), "line 2: it is not UTF-8");
        let more = format!("{FIRST}{good}\n{good}\n");
        assert_eq!(homes.refused(more), "line 3: the file has more documents than its first line says (1)");
        homes.check(0);
        assert_eq!(
            homes.import(format!("{FIRST} {} \r\n", good.replace(':', " : ")), false).map(|done| done.made),
            Ok(1)
        );
    }

    #[test]
    fn wherever_a_file_is_cut_off_nothing_is_imported() {
        let homes = Homes::new();
        let whole = format!(
            "{{\"toolcrib_store\":1,\"items\":2}}\n{}\n{}\n",
            document("k", "{\"a\":[1]}", 1),
            document("l", "{\"ä\":{}}", 1)
        );
        let first = whole.find('\n').expect("a line");
        // Only the last line break can be missing.
        for end in first..whole.len() - 1 {
            let refused = homes.refused(&whole.as_bytes()[..end]);
            assert!(refused.starts_with("the file is cut off: it has "), "{end}: {refused}");
        }
        homes.check(0);
        assert_eq!(homes.import(whole.trim_end(), false).map(|done| done.made), Ok(2));
    }

    #[test]
    fn limits_hold_as_for_any_change() {
        let mut homes = Homes::new();
        let two =
            format!("{{\"toolcrib_store\":1,\"items\":2}}\n{}\n{}\n", document("k", "1", 1), document("l", "2", 1));
        homes.limits.items = 1;
        assert_eq!(homes.refused(&two), "2 items are too many for one plugin of an agent (limit: 1)");
        homes.limits.item_kib = 1;
        let long = |bytes: usize| format!("{FIRST}{}\n", document("k", &format!("\"{}\"", "x".repeat(bytes)), 1));
        assert_eq!(homes.refused(long(1023)), "line 2: `k` has 1025 bytes (limit: 1 KiB)");
        assert_eq!(homes.refused(long(30_000)), "line 2: more than 1 KiB for a document are too many");
        homes.check(0);
        assert_eq!(homes.import(long(1022), false).map(|done| done.made), Ok(1));
    }
}
