//! From what a client's files have to say to the changes that are missing.

use super::super::setup::usage;
use super::edit::{Back, Step, find};
use super::file::{self, Found};
use super::rows::{Change, Purpose, Row, Wish};
use super::{Client, Place, Places};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// The name of the entry.
pub(super) const ENTRY: &str = "toolcrib";

/// Which of a client's files are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    Project,
}

impl Scope {
    pub(super) const ALL: [Self; 2] = [Self::User, Self::Project];
}

/// What is missing in one file.
pub(super) struct Missing {
    pub(super) found: Found,
    pub(super) changes: Vec<Change>,
    pub(super) steps: Vec<Step>,
    /// What takes the steps back, the last first.
    pub(super) back: Vec<Back>,
}

/// The changes that are missing in a client's files.
pub(super) fn missing(row: &Row, places: &Places, wish: &Wish) -> Result<Vec<Missing>, Failure> {
    let mut all = Vec::new();
    for (place, changes) in (row.changes)(wish) {
        let file = chosen(places, place);
        all.push(of_file(Found::open(&file)?, changes, wish)?);
    }
    Ok(all.into_iter().filter(|missing| !missing.steps.is_empty()).collect())
}

/// A file whose name can have two endings: the one that is there.
pub(super) fn chosen(places: &Places, place: Place) -> PathBuf {
    let file = places.path(place);
    let other = file.with_extension("jsonc");
    if file.extension().is_some_and(|extension| extension == "json")
        && !file.exists()
        && is_opencode(&file)
        && other.exists()
    {
        return other;
    }
    file
}

fn is_opencode(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "opencode")
}

fn of_file(found: Found, changes: Vec<Change>, wish: &Wish) -> Result<Missing, Failure> {
    let blocked = |why: String| usage(format!("`{}`: {why}", found.file.display())).hint("change that by hand first");
    let mut value = found.value.clone();
    let (mut kept, mut steps, mut back) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes.into_iter().filter(|change| wish.has(change.purpose)) {
        if is_settled(&value, &change, wish).map_err(&blocked)? {
            continue;
        }
        if change.step.is_done(&value).map_err(&blocked)? {
            continue;
        }
        back.insert(0, change.step.make(&mut value));
        steps.push(change.step.clone());
        kept.push(change);
    }
    Ok(Missing { found, changes: kept, steps, back })
}

/// Whether a change has nothing to do for another reason than that the file says it: the entry is there with options of its own, or what would be
/// switched off is not there.
fn is_settled(value: &Value, change: &Change, wish: &Wish) -> Result<bool, String> {
    let keys = change.step.keys();
    match change.purpose {
        Purpose::Entry => match find(value, keys) {
            None | Some(Value::Null) => Ok(false),
            Some(entry) if is_ours(entry) => Ok(!wish.is_directory_named),
            Some(_) => Err(format!("its server `{ENTRY}` is another program")),
        },
        Purpose::OwnIfThere(_) => Ok(find(value, &keys[..keys.len().saturating_sub(1)]).is_none()),
        Purpose::Own(_) | Purpose::Allow => Ok(false),
    }
}

/// Whether an entry starts this program, or connects to a server that runs already.
fn is_ours(entry: &Value) -> bool {
    let command = entry.get("command").or_else(|| entry.get("cmd"));
    let command = command.and_then(|command| command.get(0).or(Some(command))).and_then(Value::as_str);
    let has_address = ["url", "httpUrl", "uri"].iter().any(|key| entry.get(key).is_some());
    has_address || command.is_some_and(|command| Path::new(command).file_name().is_some_and(|name| name == ENTRY))
}

/// A client that has an entry of this program, for `toolcrib doctor`.
pub(in super::super) struct Remaining {
    pub(in super::super) client: Client,
    /// The client's own tools that still go past Toolcrib, and that a setting switches off.
    pub(in super::super) own: Vec<&'static str>,
    /// What stays on.
    pub(in super::super) stays: Option<&'static str>,
    /// What mends it.
    pub(in super::super) line: String,
}

/// The clients that have an entry, each with its own tools that go past Toolcrib. Files that cannot be read are left out.
pub(in super::super) fn remaining(places: &Places, is_cursor_in_config: bool) -> Vec<Remaining> {
    let of_row = |row: Row| {
        let wishes = row.scopes.iter().map(|scope| Wish { is_cursor_in_config, ..Wish::looking(*scope) });
        let wishes: Vec<Wish> = wishes.collect();
        let with_entry = wishes.iter().filter(|wish| has_entry(&row, wish, places)).map(|wish| wish.scope);
        let with_entry: Vec<Scope> = with_entry.collect();
        let scope = with_entry.iter().find(|scope| **scope == row.scope).or(with_entry.first())?;
        // A setting of either scope switches a tool off.
        let open = wishes.iter().map(|wish| open_tools(&row, wish, places));
        let own = open.reduce(|one, other| one.intersection(&other).copied().collect()).unwrap_or_default();
        let option = match (*scope == row.scope, scope) {
            (true, _) => "",
            (false, Scope::User) => " --user",
            (false, Scope::Project) => " --project",
        };
        let line = format!("toolcrib setup {}{option}", row.word());
        Some(Remaining { client: row.client, own: own.into_iter().collect(), stays: row.stays, line })
    };
    Row::all().filter_map(of_row).collect()
}

fn has_entry(row: &Row, wish: &Wish, places: &Places) -> bool {
    (row.changes)(wish).iter().any(|(place, changes)| {
        let entry = changes.iter().find(|change| change.purpose == Purpose::Entry);
        entry.is_some_and(|entry| find(&read(places, *place), entry.step.keys()).is_some_and(is_ours))
    })
}

/// The client's own tools that the files of a scope leave on.
fn open_tools(row: &Row, wish: &Wish, places: &Places) -> BTreeSet<&'static str> {
    let mut open = BTreeSet::new();
    for (place, changes) in (row.changes)(wish) {
        let value = read(places, place);
        open.extend(changes.iter().filter_map(|change| {
            let tool = change.purpose.own()?;
            let is_off =
                is_settled(&value, change, wish).unwrap_or(false) || change.step.is_done(&value).unwrap_or(false);
            (!is_off).then_some(tool)
        }));
    }
    open
}

/// What a file says; nothing if it is missing or cannot be read.
fn read(places: &Places, place: Place) -> Value {
    let file = chosen(places, place);
    let text = file::text(&file).ok().flatten().unwrap_or_default();
    file::parsed(&file, &text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_name_is_of_one_client_and_each_entry_is_found_again() {
        let mut names = BTreeSet::new();
        for row in Row::all() {
            assert!(row.words.iter().all(|word| names.insert(*word)), "{:?}", row.words);
            assert!(row.scopes.contains(&row.scope) && Row::named(row.word()).is_some());
            for scope in row.scopes {
                let plan = (row.changes)(&Wish::looking(*scope));
                let entries: Vec<&Change> = plan.iter().flat_map(|(_, changes)| changes).collect();
                let entry = entries.iter().filter(|change| change.purpose == Purpose::Entry);
                let [Step::Set(_, entry)] = &entry.map(|change| change.step.clone()).collect::<Vec<_>>()[..] else {
                    panic!("{} has one entry", row.word());
                };
                assert!(is_ours(entry), "{entry}");
            }
        }
    }

    #[test]
    fn an_entry_of_another_program_is_not_ours() {
        assert!(is_ours(&json!({ "url": "http://127.0.0.1:8722/mcp" })));
        assert!(is_ours(&json!({ "command": ["/usr/bin/toolcrib", "serve"] })));
        assert!(!is_ours(&json!({ "command": "npx", "args": ["toolcrib"] })) && !is_ours(&json!(1)));
    }
}
