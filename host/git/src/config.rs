//! Settings of a repository: which keys a command may change, and how a change is made in the real file.
//!
//! The real file is never replaced by what a command wrote. Both are parsed, the keys that differ are decided on, and those that pass
//! are set in the real one; so what git reads there is what was decided, however the command spelled it.

use bstr::{BStr, BString, ByteSlice};
use gix_config::File;
use gix_config::file::Metadata;
use gix_config::file::init::Options;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Bytes of a file of settings, at most.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
/// Characters of a value, at most.
const MOST_VALUE: usize = 4096;

/// A key of git's settings: section and name in lower case, as git compares them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    section: String,
    subsection: Option<BString>,
    name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.subsection {
            Some(subsection) => write!(to, "{}.{subsection}.{}", self.section, self.name),
            None => write!(to, "{}.{}", self.section, self.name),
        }
    }
}

/// All values of each key, in the order of the file.
pub(crate) type Values = BTreeMap<Key, Vec<BString>>;

/// A key whose values a command changed; none are left where it removed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub key: Key,
    before: Vec<BString>,
    pub after: Vec<BString>,
}

/// What a value has to look like to be taken over.
#[derive(Clone, Copy)]
enum Kind {
    /// Text that git shows or compares.
    Text,
    /// A word or a number: letters, digits, `.`, `_` and `-`.
    Word,
    /// Where a remote is.
    Url,
    /// The same, which is asked about where it replaces another one.
    Remote,
    /// A refspec or the name of a reference.
    Ref,
    /// How a submodule is updated.
    Update,
    /// A working tree, in a directory that commands write.
    Worktree,
    /// The one value that a repository of this kind has.
    Is(&'static str),
}

/// The keys that a command may change: section, whether it has a subsection, name, and what its values are. See git-config(1).
#[rustfmt::skip]
const KEYS: [(&str, bool, &str, Kind); 99] = [
    ("branch", true, "remote", Kind::Url), ("branch", true, "pushremote", Kind::Url), ("branch", true, "merge", Kind::Ref),
    ("branch", true, "rebase", Kind::Word), ("branch", true, "description", Kind::Text), ("branch", true, "vscode-merge-base", Kind::Text),
    ("branch", false, "autosetupmerge", Kind::Word), ("branch", false, "autosetuprebase", Kind::Word), ("branch", false, "sort", Kind::Word),
    ("remote", true, "url", Kind::Remote), ("remote", true, "pushurl", Kind::Remote), ("remote", true, "fetch", Kind::Ref),
    ("remote", true, "push", Kind::Ref), ("remote", true, "tagopt", Kind::Is("--tags|--no-tags")), ("remote", true, "prune", Kind::Word),
    ("remote", true, "prunetags", Kind::Word), ("remote", true, "mirror", Kind::Word), ("remote", true, "skipdefaultupdate", Kind::Word),
    ("remote", true, "skipfetchall", Kind::Word), ("remote", true, "promisor", Kind::Word), ("remote", true, "partialclonefilter", Kind::Text),
    ("remote", true, "followremotehead", Kind::Word), ("remote", true, "gh-resolved", Kind::Word), ("remote", true, "lfsurl", Kind::Remote),
    ("remote", false, "pushdefault", Kind::Word),
    ("submodule", true, "url", Kind::Remote), ("submodule", true, "active", Kind::Word), ("submodule", true, "branch", Kind::Ref),
    ("submodule", true, "ignore", Kind::Word), ("submodule", true, "update", Kind::Update), ("submodule", true, "shallow", Kind::Word),
    ("submodule", true, "fetchrecursesubmodules", Kind::Word), ("submodule", false, "recurse", Kind::Word),
    ("submodule", false, "active", Kind::Text), ("submodule", false, "fetchjobs", Kind::Word), ("submodule", false, "propagatebranches", Kind::Word),
    ("user", false, "name", Kind::Text), ("user", false, "email", Kind::Text), ("user", false, "useconfigonly", Kind::Word),
    ("author", false, "name", Kind::Text), ("author", false, "email", Kind::Text),
    ("committer", false, "name", Kind::Text), ("committer", false, "email", Kind::Text),
    ("core", false, "repositoryformatversion", Kind::Is("0|1")), ("core", false, "bare", Kind::Is("false")),
    ("core", false, "filemode", Kind::Word), ("core", false, "logallrefupdates", Kind::Word), ("core", false, "ignorecase", Kind::Word),
    ("core", false, "precomposeunicode", Kind::Word), ("core", false, "symlinks", Kind::Word), ("core", false, "autocrlf", Kind::Word),
    ("core", false, "eol", Kind::Word), ("core", false, "safecrlf", Kind::Word), ("core", false, "quotepath", Kind::Word),
    ("core", false, "abbrev", Kind::Word), ("core", false, "whitespace", Kind::Text), ("core", false, "commentchar", Kind::Text),
    ("core", false, "sparsecheckout", Kind::Word), ("core", false, "sparsecheckoutcone", Kind::Word), ("core", false, "worktree", Kind::Worktree),
    ("core", false, "longpaths", Kind::Word), ("core", false, "untrackedcache", Kind::Word),
    ("extensions", false, "worktreeconfig", Kind::Word), ("extensions", false, "objectformat", Kind::Is("sha1")),
    ("extensions", false, "refstorage", Kind::Is("files")), ("extensions", false, "partialclone", Kind::Word),
    ("init", false, "defaultbranch", Kind::Ref), ("index", false, "sparse", Kind::Word), ("index", false, "version", Kind::Word),
    ("pull", false, "rebase", Kind::Word), ("pull", false, "ff", Kind::Word),
    ("push", false, "default", Kind::Word), ("push", false, "autosetupremote", Kind::Word), ("push", false, "followtags", Kind::Word),
    ("fetch", false, "prune", Kind::Word), ("fetch", false, "prunetags", Kind::Word), ("fetch", false, "parallel", Kind::Word),
    ("rebase", false, "autostash", Kind::Word), ("rebase", false, "autosquash", Kind::Word), ("rebase", false, "updaterefs", Kind::Word),
    ("merge", false, "conflictstyle", Kind::Word), ("merge", false, "ff", Kind::Word), ("merge", false, "renames", Kind::Word),
    ("diff", false, "algorithm", Kind::Word), ("diff", false, "renames", Kind::Word), ("diff", false, "context", Kind::Word),
    ("rerere", false, "enabled", Kind::Word), ("rerere", false, "autoupdate", Kind::Word), ("commit", false, "verbose", Kind::Word),
    ("log", false, "date", Kind::Text), ("status", false, "showuntrackedfiles", Kind::Word), ("tag", false, "sort", Kind::Word),
    ("color", false, "ui", Kind::Word), ("column", false, "ui", Kind::Text), ("gc", false, "auto", Kind::Word),
    ("lfs", false, "repositoryformatversion", Kind::Is("0")), ("lfs", false, "url", Kind::Remote), ("lfs", true, "access", Kind::Word),
    ("lfs", true, "locksverify", Kind::Word),
];

/// What of a change is decided by.
pub(crate) struct Rules<'r> {
    /// The git directory whose settings they are.
    pub directory: &'r Path,
    /// Directories that commands write.
    pub write: &'r [PathBuf],
    /// A repository that this command made: its remotes are new.
    pub is_new: bool,
    /// It may say that it has no working tree.
    pub is_bare: bool,
}

impl Rules<'_> {
    /// Whether git obeys a change of this kind by nothing that a command chose.
    pub(crate) fn admits(&self, Change { key, before, after }: &Change) -> bool {
        let is_named = |(section, has_subsection, name, _): &&(&str, bool, &str, Kind)| {
            *section == key.section && *name == key.name && *has_subsection == key.subsection.is_some()
        };
        let Some((.., kind)) = KEYS.iter().find(is_named) else { return false };
        let is_plain = |value: &BString| value.len() <= MOST_VALUE && !value.iter().any(u8::is_ascii_control);
        let subsection_is_plain = key.subsection.as_ref().is_none_or(is_plain);
        subsection_is_plain
            && after.iter().all(is_plain)
            && after.iter().all(|value| self.fits(*kind, key, value.as_bstr(), before))
    }

    fn fits(&self, kind: Kind, key: &Key, value: &BStr, before: &[BString]) -> bool {
        match kind {
            Kind::Text => true,
            Kind::Word => {
                value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte)) && !is_option(value)
            }
            Kind::Url => is_place(value),
            Kind::Remote => {
                is_place(value) && (self.is_new || before.is_empty() || before.iter().any(|old| old == value))
            }
            Kind::Ref => !is_option(value),
            Kind::Update => [&b"checkout"[..], b"rebase", b"merge", b"none"].contains(&value.as_bytes()),
            Kind::Worktree => (self.is_new || self.is_of_a_submodule()) && self.is_in_a_workspace(value),
            Kind::Is(values) => {
                let is_bare = self.is_bare && key.name == "bare" && value == "true";
                is_bare || values.split('|').any(|only| only.as_bytes() == value.as_bytes())
            }
        }
    }

    fn is_of_a_submodule(&self) -> bool {
        self.directory.ancestors().any(|above| above.ends_with(".git/modules"))
    }

    /// Whether a working tree lies where commands write; it may be relative to the git directory.
    fn is_in_a_workspace(&self, value: &BStr) -> bool {
        let Ok(text) = value.to_str() else { return false };
        let mut whole = PathBuf::new();
        for component in self.directory.join(text).components() {
            match component {
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(component),
            }
        }
        self.write.iter().any(|root| whole.starts_with(root))
    }
}

fn is_option(value: &BStr) -> bool {
    value.starts_with(b"-")
}

/// Whether git goes to a remote of this name by no program but its own and ssh: `ext::…` and every other `helper::…` starts one.
fn is_place(value: &BStr) -> bool {
    if is_option(value) || value.contains_str("::") {
        return false;
    }
    match value.split_once_str("://") {
        None => true,
        Some((scheme, rest)) => {
            [&b"https"[..], b"http", b"ssh", b"git", b"file", b"git+ssh", b"ssh+git"].contains(&scheme)
                && !rest.starts_with(b"-")
        }
    }
}

/// Parses a file of settings; what it includes is not read.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<File> {
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    File::from_bytes_no_includes(bytes, Metadata::api(), Options::default()).map_err(odd)
}

/// The values of all keys.
pub(crate) fn values(file: &File) -> Values {
    let mut values = Values::new();
    for section in file.sections() {
        let header = section.header();
        let (name, subsection) = (header.name().to_str_lossy().to_lowercase(), header.subsection_name());
        let mut seen = Vec::new();
        for value_name in section.value_names() {
            let value_name = value_name.to_lowercase();
            if seen.contains(&value_name) {
                continue;
            }
            let key =
                Key { section: name.clone(), subsection: subsection.map(ToOwned::to_owned), name: value_name.clone() };
            let mut found = section.values(&value_name);
            // A name alone means `true`.
            if let Some(None) = section.value_implicit(&value_name) {
                found = vec!["true".into()];
            }
            values.entry(key).or_default().extend(found);
            seen.push(value_name);
        }
    }
    values
}

/// The names of remotes, and where they are.
pub(crate) fn remotes(values: &Values) -> impl Iterator<Item = (&BStr, &BStr)> {
    let named = values.iter().filter(|(key, _)| key.section == "remote" && key.name == "url");
    let named = named.filter_map(|(key, urls)| Some((key.subsection.as_ref()?.as_bstr(), urls)));
    named.flat_map(|(name, urls)| urls.iter().map(move |url| (name, url.as_bstr())))
}

/// What differs.
pub(crate) fn changes(before: &Values, after: &Values) -> Vec<Change> {
    let none = Vec::new();
    let keys: std::collections::BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let change = |key: &Key| {
        let (before, after) = (before.get(key).unwrap_or(&none), after.get(key).unwrap_or(&none));
        (before != after).then(|| Change { key: key.clone(), before: before.clone(), after: after.clone() })
    };
    keys.into_iter().filter_map(change).collect()
}

/// Makes a change in the real file, whose values are `now`; `false` where they were changed meanwhile to something else.
pub(crate) fn make(file: &mut File, change: &Change, now: &Values) -> io::Result<bool> {
    let found = now.get(&change.key).cloned().unwrap_or_default();
    if found == change.after {
        return Ok(true);
    }
    if found != change.before {
        return Ok(false);
    }
    let Key { section, subsection, name } = &change.key;
    let subsection = subsection.as_ref().map(|name| name.as_bstr());
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    // One value that replaces one keeps its place and the comments around it.
    if let ([_], [value]) = (&found[..], &change.after[..]) {
        file.set_raw_value_by(section, subsection, name, value.as_bstr()).map_err(odd)?;
        return Ok(true);
    }
    if let Ok(mut there) = file.raw_values_mut_by(section, subsection, name) {
        there.delete_all();
    }
    if change.after.is_empty() {
        remove_if_empty(file, section, subsection);
        return Ok(true);
    }
    let mut there = file.section_mut_or_create_new(section, subsection).map_err(odd)?;
    for value in &change.after {
        there.push(name, Some(value.as_bstr())).map_err(odd)?;
    }
    Ok(true)
}

/// Removes sections of a name that have no values, as git does when the last key goes.
fn remove_if_empty(file: &mut File, section: &str, subsection: Option<&BStr>) {
    let is_it = |found: &gix_config::file::SectionRef<'_>| {
        let header = found.header();
        header.name().to_str_lossy().eq_ignore_ascii_case(section)
            && header.subsection_name() == subsection
            && found.body().num_values() == 0
    };
    let empty: Vec<_> = file.sections_and_ids().filter(|(found, _)| is_it(found)).map(|(_, id)| id).collect();
    for id in empty {
        file.remove_section_by_id(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(before: &str, after: &str) -> Vec<(String, bool)> {
        let read = |text: &str| values(&parse(text.as_bytes()).expect("settings"));
        let write = [PathBuf::from("/w/r")];
        let rules = Rules { directory: Path::new("/w/r/.git"), write: &write, is_new: false, is_bare: false };
        let changes = changes(&read(before), &read(after));
        changes.iter().map(|change| (change.key.to_string(), rules.admits(change))).collect()
    }

    #[test]
    fn what_runs_programs_is_not_admitted_however_it_is_spelled() {
        for text in [
            "[core]\n\tfsmonitor = id",
            "[CORE]\n\tFsMonitor = id",
            "[core] fsmonitor = id",
            "[core]\n\tfs\\\nmonitor = id",
            "[core]\n\thooksPath = x\n",
            "[core]\r\n\tpager = x\r\n",
            "\u{feff}[core]\n\tsshCommand = x\n",
            "[alias]\n\tst = !id",
            "[filter \"x\"]\n\tclean = id",
            "[include]\n\tpath = ../evil",
            "[includeIf \"gitdir:**\"]\n\tpath = ../evil",
            "[url \"ext::sh\"]\n\tinsteadOf = https://",
            "[credential]\n\thelper = !id",
            "[submodule \"x\"]\n\tupdate = !id",
            "[remote \"o\"]\n\turl = ext::sh -c id",
            "[remote \"o\"]\n\turl = -oProxyCommand=id",
            "[remote \"o\"]\n\turl = ssh://-oProxyCommand=id/x",
            "[remote \"o\"]\n\tuploadpack = id",
            "[remote \"o\"]\n\tvcs = x",
            "[branch \"m\"]\n\tremote = ext::id",
            "[branch \"m\"]\n\tmergeoptions = -s evil",
            "[gpg]\n\tprogram = id",
            "[core]\n\tworktree = /w/r/x",
            "[core]\n\tbare = true",
        ] {
            // Where it cannot be parsed nothing of it is taken over either.
            let Ok(after) = parse(text.as_bytes()) else { continue };
            assert!(!values(&after).is_empty(), "{text:?}");
            assert!(admitted("", text).iter().all(|(_, is_admitted)| !is_admitted), "{text:?}");
        }
    }

    #[test]
    fn ordinary_keys_are_admitted() {
        for text in [
            "[user]\n\tname = Ann # x\n\temail = a@example.org",
            "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main",
            "[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*",
            "[remote \"o\"]\n\turl = git@example.org:x.git",
            "[remote \"o\"]\n\turl = ../bare.git",
            "[submodule \"s\"]\n\turl = https://example.org/s\n\tactive = true\n\tupdate = rebase",
            "[core]\n\tbare = false\n\tfilemode\n",
        ] {
            assert!(
                admitted("", text).iter().all(|(_, is_admitted)| *is_admitted),
                "{text:?} {:?}",
                admitted("", text)
            );
        }
    }

    #[test]
    fn another_url_of_a_remote_is_asked_about_and_a_new_remote_is_not() {
        let before = "[remote \"o\"]\n\turl = https://a.example";
        assert_eq!(admitted(before, "[remote \"o\"]\n\turl = https://b.example"), [("remote.o.url".into(), false)]);
        let both = format!("{before}\n[remote \"p\"]\n\turl = https://b.example");
        assert_eq!(admitted(before, &both), [("remote.p.url".into(), true)]);
        assert_eq!(admitted(before, ""), [("remote.o.url".into(), true)]);
    }

    #[test]
    fn changes_are_made_in_the_real_file_and_nothing_else_in_it() {
        let real = "# mine\n[core]\n\tpager = less ; mine\n[branch \"a\"]\n\tremote = o\n[user]\n\tname = Ann\n";
        let read = |text: &str| values(&parse(text.as_bytes()).expect("settings"));
        let after = "[core]\n\tpager = less\n[user]\n\tname = B #\"\n[branch \"x y\\\"z\"]\n\tremote = o\n\tmerge = refs/heads/x\n";
        let mut file = parse(real.as_bytes()).expect("settings");
        let now = values(&file);
        for change in changes(&read(real), &read(after)) {
            assert!(make(&mut file, &change, &now).expect("it is made"), "{change:?}");
        }
        let written = file.to_bstring().to_string();
        assert_eq!(read(&written), read(after));
        assert!(written.starts_with("# mine\n[core]\n\tpager = less ; mine\n"), "{written}");
        assert!(!written.contains("\"a\""), "{written}");
    }

    #[test]
    fn what_a_person_changed_meanwhile_stays() {
        let read = |text: &str| values(&parse(text.as_bytes()).expect("settings"));
        let changes = changes(&read("[user]\n\tname = A"), &read("[user]\n\tname = B"));
        let mut file = parse(b"[user]\n\tname = C").expect("settings");
        let now = values(&file);
        assert!(!make(&mut file, &changes[0], &now).expect("it is looked at"));
        assert_eq!(file.to_bstring(), "[user]\n\tname = C\n");
    }

    /// Files of the person's, as git reads them.
    const REAL: [&str; 6] = [
        "",
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = Ann\n",
        "# mine\n[core]\n\tpager = less ; mine\n[remote \"o\"]\n\turl = https://a.example\n[branch \"a\"] remote = o # x\n",
        "\u{feff}[core]\r\n\tpager = less\r\n\tfsmonitor\r\n[user]\r\n\tname = \"A # B\"\r\n",
        "[alias]\n\tst = \"!f() { \\\n id; }; f\"\n[Remote \"o\"]\n\tURL = a\n\turl = b\n[remote \"o\"]\n\tfetch = x\n[user]name=x",
        "[remote.o]\n\turl = a\n[branch \"x \\\"y\\\\\"]\n\tmerge = refs/heads/x\n[core]\n\thooksPath = own ; [user]\n\teol = lf",
    ];
    #[rustfmt::skip]
    const SECTIONS: [&str; 24] = [
        "[core]", "[CORE]", "[ core ]", "[core ]", "[user]", "[User]", "[remote \"o\"]", "[REMOTE \"o\"]", "[remote \"O\"]", "[remote.o]",
        "[remote  \"o\\\"]\"]", "[branch \"a\"]", "[branch \"x \\\"y\\\\\"]", "[branch \"\"]", "[branch \"a]b\"]", "[branch \"a\\tb\"]", "[alias]",
        "[include]", "[includeIf \"gitdir:**\"]", "[filter \"x\"]", "[submodule \"s\"]", "[url \"ext::sh\"]", "[lfs]", "[core \"x\"]",
    ];
    #[rustfmt::skip]
    const NAMES: [&str; 22] = [
        "fsmonitor", "fsMonitor", "pager", "hooksPath", "eol", "EOL", "abbrev", "name", "NAME", "email", "url", "URL", "pushurl", "fetch", "remote",
        "merge", "uploadpack", "path", "clean", "update", "worktree", "bare",
    ];
    #[rustfmt::skip]
    const VALUES: [&str; 26] = [
        "id", "true", "\"a b\"", "a \"b\" c", "a \\\"b", "a\\\\b", "a \\\n b", "a\\\r\n b", "a\\tb", "a # b", "\"a # b\"", "a;b", "\"a", "a\\", "!id",
        "ext::id", "https://x.example", "-x", "git@x.example:y", "\"ext\"::id", "a\\\n[core]", "\"x\\n[core]\\n\\tpager=y\"", "\u{1}", "é", "", "0",
    ];
    const BETWEEN: [&str; 12] =
        ["\n", "\n\t", "\r\n\t", " ", "\n#", "\n; x\n", "\\\n", "\r", "\u{feff}", "\0", "\u{b}", "]"];

    /// A file of settings of any kind, a few of them without a fault.
    fn text(runner: &mut proptest::test_runner::TestRunner) -> String {
        use proptest::prelude::{Strategy, prop};
        use proptest::strategy::ValueTree;
        use proptest::{prop_oneof, sample::select};
        let entry = (select(&NAMES[..]), select(&["=", " = ", " =", " ", "\t=\t"][..]), select(&VALUES[..]))
            .prop_map(|(name, equals, value)| format!("{name}{equals}{value}"));
        let end = prop_oneof![12 => prop::sample::select(&["\n", "\n\t", "\r\n\t"][..]), 1 => select(&BETWEEN[..])];
        let lines = prop::collection::vec(
            prop_oneof![12 => entry, 1 => select(&NAMES[..]).prop_map(str::to_owned), 1 => "[ -~]{0,8}"],
            0..4,
        );
        let section =
            (select(&SECTIONS[..]), lines, prop::collection::vec(end, 5)).prop_map(|(header, lines, ends)| {
                let lines = lines.into_iter().zip(&ends[1..]).map(|(line, end)| line + end);
                format!("{header}{}{}", ends[0], lines.collect::<String>())
            });
        let begin = prop_oneof![8 => select(&[""][..]), 1 => select(&["\u{feff}", "\n", "# x\n", "eol = lf\n"][..])];
        let whole =
            (begin, prop::collection::vec(section, 1..5)).prop_map(|(begin, all)| begin.to_owned() + &all.concat());
        whole.new_tree(runner).expect("text can be made").current()
    }

    /// What is in the real file after a command has left `after`; none where it is as it was.
    fn applied(real: &str, after: &str, rules: &Rules<'_>) -> Option<Vec<u8>> {
        let mut file = parse(real.as_bytes()).expect("settings of the person's");
        let now = values(&file);
        let changes = changes(&now, &values(&parse(after.as_bytes()).ok()?));
        let admitted: Vec<_> = changes.into_iter().filter(|change| rules.admits(change)).collect();
        for change in &admitted {
            assert!(make(&mut file, change, &now).ok()?, "{change:?}");
        }
        (!admitted.is_empty()).then(|| file.to_bstring().into())
    }

    /// What git reads in files, which are in a directory by their numbers.
    #[expect(clippy::disallowed_methods, reason = "git itself is asked")]
    fn read_by_git(directory: &Path, count: usize) -> Vec<Values> {
        let mut all = vec![Values::new(); count];
        let list = directory.join("all");
        let lines =
            (0..count).map(|number| format!("[include]\n\tpath = {}\n", directory.join(number.to_string()).display()));
        std::fs::write(&list, lines.collect::<String>()).expect("a file");
        let mut git = std::process::Command::new("git");
        git.args(["config", "--list", "-z", "--show-origin", "--includes", "-f"]).arg(&list).env("LC_ALL", "C");
        let output = git.output().expect("git");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git does not read what was written: {said}");
        let mut parts = output.stdout.split(|byte| *byte == 0);
        while let (Some(origin), Some(setting)) = (parts.next(), parts.next()) {
            let origin = origin.to_str().ok().and_then(|origin| origin.rsplit_once('/')?.1.parse::<usize>().ok());
            // The list of files itself.
            let Some(number) = origin else { continue };
            let (key, value) = setting.split_once_str("\n").unwrap_or((setting, b"true"));
            let (section, rest) = key.split_once_str(".").expect("a key has a section");
            let (subsection, name) =
                rest.rsplit_once_str(".").map_or((None, rest), |(subsection, name)| (Some(subsection), name));
            let text = |bytes: &[u8]| bytes.to_str_lossy().into_owned();
            let key = Key { section: text(section), subsection: subsection.map(Into::into), name: text(name) };
            all[number].entry(key).or_default().push(value.into());
        }
        all
    }

    /// Hands over what git reads before and after changes of random files, and what was written.
    fn each_random_change(check: impl Fn(&Values, &Values, &[u8], &Rules<'_>)) {
        const AT_ONCE: usize = 500;
        let count = if std::env::var_os("TOOLCRIB_LONG").is_some() { 100_000 } else { 1_000 };
        let directory = tempfile::tempdir().expect("a directory");
        let write = [PathBuf::from("/w/r")];
        let (path, mut runner) = (directory.path(), proptest::test_runner::TestRunner::default());
        let files = |texts: &[Vec<u8>]| {
            for (number, text) in texts.iter().enumerate() {
                std::fs::write(path.join(number.to_string()), text).expect("a file");
            }
            read_by_git(path, texts.len())
        };
        let real = files(&REAL.map(|text| text.as_bytes().to_vec()));
        let mut found = 0;
        for _ in 0..count / AT_ONCE {
            let mut written = Vec::new();
            for number in 0..AT_ONCE {
                let is_new = number % 3 == 0;
                let rules = Rules { directory: Path::new("/w/r/.git"), write: &write, is_new, is_bare: is_new };
                let (base, after) = (number % REAL.len(), text(&mut runner));
                if let Some(text) = applied(REAL[base], &after, &rules) {
                    written.push((base, rules, text));
                }
            }
            found += written.len();
            let texts: Vec<Vec<u8>> = written.iter().map(|(.., text)| text.clone()).collect();
            for ((base, rules, text), now) in written.iter().zip(files(&texts)) {
                check(&real[*base], &now, text, rules);
            }
        }
        assert!(found > count / 10, "{found} of {count} files had something that is admitted");
    }

    #[test]
    fn git_reads_no_change_but_those_that_are_admitted() {
        each_random_change(|before, now, text, rules| {
            for change in changes(before, now) {
                assert!(rules.admits(&change), "{change:?}\n{:?}", text.as_bstr());
            }
        });
    }

    #[test]
    fn git_reads_the_values_that_were_decided_on() {
        each_random_change(|_, now, text, _| {
            let ours = values(&parse(text).expect("what was written"));
            assert_eq!(changes(&ours, now), [], "{:?}", text.as_bstr());
        });
    }
}
