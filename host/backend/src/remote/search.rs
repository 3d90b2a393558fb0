//! Searching elsewhere: names by `rg` there or by `find`, a first choice of files by `rg` or `grep`, then each of these as any file is read.
//!
//! Which lines have the pattern is decided here, by what decides it on this machine. What there is to choose from was admitted by name, and
//! what is read is read as `files.rs` reads. Between a name and its file somebody there could plant a link: see there.

mod simple;

use super::{Remote, Way, files, unknown};
use crate::files::{failure, is_link};
use crate::search::rules::{self, Level, Rules, Texts};
use crate::search::{Find, First, Found, FoundFile, Looked, Looker, MOST_BINARY, Pattern, Search, Watch, Which};
use base::envelope::{Failure, Kind};
use file_access::{ReadPath, ReadTree, Resolved};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What the list of names may take, in bytes.
const LIST_BYTES: usize = 32 << 20;
/// The largest file that is searched, in bytes.
const FILE_BYTES: usize = 8 << 20;
/// The largest ignore file, in bytes.
const RULES_BYTES: usize = 256 << 10;
/// Ignore files that are read there.
const MOST_RULES: usize = 2000;

/// What all begin with. Argument: the directory.
macro_rules! enter {
    ($rest:literal) => {
        concat!(
            r#"CDPATH=
LC_ALL=C
export LC_ALL
cd -P -- "$1" 2>/dev/null || {
    [ -f "$1" ] && exit 63
    [ -e "$1" ] && exit 65
    exit 62
}
[ "$(pwd -P && echo x)" = "$1
x" ] || exit 61
shift
"#,
            $rest
        )
    };
}

/// Prints `rg` or `find`, then the files below a directory, each ended by NUL; `find` also tells where repositories are. Then an empty field, and
/// the files that have several names. Further arguments: the most bytes, `-prune` or nothing, and those of `rg`.
const LIST: &str = enter!(
    r#"most=$1 inside=$2
shift 2
command -v find >/dev/null 2>&1 || exit 70
if command -v rg >/dev/null 2>&1; then
    printf 'rg\0'
    rg --no-config --no-messages --no-follow --files --null "$@" 2>/dev/null | head -c "$most"
else
    printf 'find\0'
    # Without `-prune` also what a repository is made of.
    find . -name .git $inside -print0 -o -type f -print0 2>/dev/null | head -c "$most"
fi
printf '\0'
find . -type f -links +1 -print0 2>/dev/null || [ "$?" = 1 ] || exit 70"#
);

/// Prints those of the files that come in which have the pattern, each ended by NUL or, by a simple `grep`, by a line break. Further arguments: the
/// pattern of `rg`, that of `grep`, and the options of `rg`.
const CHOOSE: &str = enter!(
    r#"pattern=$1 simple=$2
shift 2
if command -v rg >/dev/null 2>&1; then
    xargs -0 rg --no-config --no-messages --files-with-matches --null --text "$@" -e "$pattern" -- 2>/dev/null
elif printf 'x\n' | grep -lZ x >/dev/null 2>&1; then
    xargs -0 grep -lZ -E -e "$simple" -- 2>/dev/null
else
    xargs -0 grep -l -E -e "$simple" -- 2>/dev/null
fi
s=$?
# Nothing was found; some could not be read.
case "$s" in 0 | 1 | 2 | 123) exit 0 ;; esac
exit 70"#
);

/// The files that count.
struct Listed {
    /// Below the directory, each admitted by its name.
    files: Vec<PathBuf>,
    looked: Looked,
    by: Lister,
}

#[derive(Clone, Copy, PartialEq)]
enum Lister {
    /// It knows all rules.
    Rg,
    /// It knows none; those of the directory itself are read.
    Find,
}

pub(super) async fn search<W: Way>(
    remote: &Remote<W>,
    tree: &ReadTree,
    search: &Search,
    watch: &Watch,
) -> Result<Found, Failure> {
    let matcher = search.pattern.matcher()?;
    let simple = simple::expression(&search.pattern)?;
    let mut first = First::new(search.skip, search.max);
    let mut looker = Looker::new(&matcher, search, first.wanted(), watch);
    let Some(listed) = list(remote, tree, &search.which).await? else {
        return only(remote, tree, search, looker, first).await;
    };
    let mut looked = Looked { files: listed.files.len() as u64, ..listed.looked };
    let (mut binary, mut large) = (Vec::new(), 0_u64);
    for below in choose(remote, tree, &search.pattern, simple, &listed.files).await? {
        let Some(path) = admitted(tree, &below) else { continue };
        let file = match files::read(remote, &path, 0, FILE_BYTES).await {
            Ok(file) => file,
            Err(failure) if failure.kind == Kind::Denied => {
                looked.refused += 1;
                continue;
            }
            Err(failure) if failure.kind == Kind::ExecutionFailed => {
                looked.unreadable += 1;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        large += u64::from(file.size > FILE_BYTES as u64);
        let content = looker.look_at(&file.bytes).map_err(|error| failure(&path.shown(), &error))?;
        looked.binary += u64::from(content.is_binary);
        if content.has_find && content.is_binary {
            binary.push(below.to_string_lossy().into_owned());
        } else if content.has_find {
            let file = FoundFile { path: below.to_string_lossy().into_owned(), lines: content.lines };
            // They come in order: what follows does not count any more.
            if first.add(below, file, content.finds).is_some() {
                break;
            }
        }
    }
    let mut notices = listed.by.notices(remote.way.name(), &search.which);
    if listed.by == Lister::Find {
        notices.push(format!("{} has no `rg`: files in UTF-16 are not found there", remote.way.name()));
    }
    if large > 0 {
        notices.push(format!("of {large} files there the first 8 MiB were searched"));
    }
    let (files, more) = first.into_files(search.skip, search.max);
    binary.truncate(MOST_BINARY);
    Ok(Found { files, more, binary, looked, notices })
}

/// Searches the single file that was named.
async fn only<W: Way>(
    remote: &Remote<W>,
    tree: &ReadTree,
    search: &Search,
    mut looker: Looker<'_>,
    mut first: First,
) -> Result<Found, Failure> {
    let file = files::read(remote, tree.root(), 0, FILE_BYTES).await?;
    let content = looker.look_at(&file.bytes).map_err(|error| failure(&tree.root().shown(), &error))?;
    let looked = Looked { files: 1, binary: u64::from(content.is_binary), ..Looked::default() };
    let is_shown = content.has_find && !content.is_binary;
    let binary = if content.has_find && content.is_binary { vec![String::new()] } else { Vec::new() };
    if is_shown {
        first.add(PathBuf::new(), FoundFile { path: String::new(), lines: content.lines }, content.finds);
    }
    let large = file.size > FILE_BYTES as u64;
    let notices = large.then(|| "the first 8 MiB of the file were searched".to_owned()).into_iter().collect();
    let (files, more) = first.into_files(search.skip, search.max);
    Ok(Found { files, more, binary, looked, notices })
}

pub(super) async fn find<W: Way>(remote: &Remote<W>, tree: &ReadTree, find: &Find) -> Result<Found, Failure> {
    let pattern = find.path.as_ref().map(Pattern::matcher).transpose()?;
    let Some(listed) = list(remote, tree, &find.which).await? else {
        let looked = Looked { files: 1, ..Looked::default() };
        return Ok(Found { files: vec![FoundFile::default()], looked, ..Found::default() });
    };
    let mut notices = listed.by.notices(remote.way.name(), &find.which);
    notices.extend(find.directories.then(|| format!("on {} files alone are found, no directories", remote.way.name())));
    let mut looked = Looked { files: listed.files.len() as u64, ..listed.looked };
    let mut first = First::new(find.skip, find.max);
    for below in listed.files {
        let has_pattern = |pattern: &RegexMatcher| pattern.is_match(below.as_os_str().as_bytes()).unwrap_or(false);
        if pattern.as_ref().is_some_and(|pattern| !has_pattern(pattern)) {
            continue;
        }
        let path = below.to_string_lossy().into_owned();
        looked.not_utf8 += u64::from(below.to_str().is_none());
        if first.add(below, FoundFile { path, lines: Vec::new() }, 1).is_some() {
            break;
        }
    }
    let (files, more) = first.into_files(find.skip, find.max);
    Ok(Found { files, more, looked, notices, ..Found::default() })
}

impl Lister {
    /// What it does otherwise than a search on this machine.
    fn notices(self, name: &str, which: &Which) -> Vec<String> {
        let differs = self == Self::Find && !which.ignored;
        let text = "has no `rg`: ignore files above the directory, and the user's own, do not count there";
        differs.then(|| format!("{name} {text}")).into_iter().collect()
    }
}

/// Judges a file by its name.
fn admitted(tree: &ReadTree, below: &Path) -> Option<ReadPath> {
    // What a place says is a path below the directory, or nothing.
    let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
    let path = tree.as_path().join(below);
    let (given, facts) = (path.clone(), tree.facts().clone());
    is_below.then(|| tree.beside(&Resolved { given, path, absent: None, facts, there: None })).flatten()
}

/// The files that count below the directory, in order; none where the path is that of a file.
async fn list<W: Way>(remote: &Remote<W>, tree: &ReadTree, which: &Which) -> Result<Option<Listed>, Failure> {
    let rules = Rules::new(which, tree.as_path(), None)?;
    let shown = tree.root().shown();
    let inside = if which.hidden { "" } else { "-prune" };
    let mut arguments = vec![OsString::from(tree.as_path()), LIST_BYTES.to_string().into(), inside.into()];
    arguments.extend(which.hidden.then(|| "--hidden".into()));
    arguments.extend(which.ignored.then(|| "--no-ignore".into()));
    arguments.extend(which.globs.iter().flat_map(|glob| ["-g".into(), OsString::from(glob)]));
    let (status, printed) = remote.script(LIST, &arguments).await?;
    match status {
        0 => {}
        61 => return Err(is_link(&shown)),
        62 => return Err(failure(&shown, &io::ErrorKind::NotFound.into())),
        63 => return Ok(None),
        65 => return Err(failure(&shown, &io::ErrorKind::PermissionDenied.into())),
        70 => {
            let message = format!("{} has no `find` that tells what is to be known", remote.way.name());
            return Err(Failure::new(Kind::Unavailable, message).hint("install findutils or busybox there"));
        }
        _ => return Err(unknown(remote.way.name())),
    }
    let path = |field: &[u8]| {
        let field = field.strip_prefix(b"./").unwrap_or(field);
        PathBuf::from(OsString::from_vec(field.to_vec()))
    };
    let mut fields = printed.split(|byte| *byte == 0);
    let by = if fields.next() == Some(b"rg") { Lister::Rg } else { Lister::Find };
    let listed: Vec<PathBuf> = fields.by_ref().take_while(|field| !field.is_empty()).map(path).collect();
    if printed.len() >= LIST_BYTES {
        let message =
            format!("`{shown}` has too many files for a search there (limit: {} MiB of names)", LIST_BYTES >> 20);
        return Err(Failure::limit(message).hint("search a smaller directory"));
    }
    let linked: HashSet<PathBuf> = fields.filter(|field| !field.is_empty()).map(path).collect();
    let mut files = match by {
        // Types are known here in any case, of the same version.
        Lister::Rg => {
            let types = Which { types: which.types.clone(), hidden: true, ignored: true, globs: Vec::new() };
            let types = Rules::new(&types, tree.as_path(), None)?;
            let is_skipped = |below: &PathBuf| {
                let name = below.file_name().unwrap_or_default().as_bytes();
                types.skips(None, &tree.as_path().join(below), name, false)
            };
            listed.into_iter().filter(|below| !is_skipped(below)).collect()
        }
        Lister::Find => sifted(remote, tree, &rules, listed).await?,
    };
    let all = files.len();
    files.retain(|below| admitted(tree, below).is_some());
    let mut looked = Looked { refused: (all - files.len()) as u64, ..Looked::default() };
    let has_linked = files.iter().any(|below| linked.contains(below));
    // Of a file with several names one may be closed: then none of these is looked into.
    if has_linked && tree.root().check_links(2).is_ok() && !files::closed_has_names(remote, tree.root()).await? {
        files.sort_unstable();
        return Ok(Some(Listed { files, looked, by }));
    }
    let all = files.len();
    files.retain(|below| !linked.contains(below));
    looked.refused += (all - files.len()) as u64;
    files.sort_unstable();
    Ok(Some(Listed { files, looked, by }))
}

/// Leaves out what the rules of the walk and the ignore files below the directory leave out.
async fn sifted<W: Way>(
    remote: &Remote<W>,
    tree: &ReadTree,
    rules: &Rules,
    mut listed: Vec<PathBuf>,
) -> Result<Vec<PathBuf>, Failure> {
    listed.sort_unstable();
    let all: HashSet<PathBuf> = listed.iter().cloned().collect();
    // None for a directory that is left out.
    let mut directories: HashMap<PathBuf, Option<Option<Arc<Level>>>> = HashMap::new();
    let (mut files, mut read) = (Vec::new(), 0);
    for below in listed {
        let mut above: Vec<&Path> = below.ancestors().skip(1).collect();
        above.reverse();
        let mut state = Some(None);
        for directory in above {
            if let Some(known) = directories.get(directory) {
                state = known.clone();
                continue;
            }
            let path = tree.as_path().join(directory);
            let name = directory.file_name().unwrap_or_default().as_bytes();
            let is_out = |level: &Option<Arc<Level>>| {
                !directory.as_os_str().is_empty() && rules.skips(level.as_deref(), &path, name, true)
            };
            state = match state.filter(|level| !is_out(level)) {
                Some(level) if rules.reads_ignore_files() => {
                    let has = |name: &str| all.contains(&directory.join(name));
                    let mut texts = Texts { has_git: has(rules::GIT), ..Texts::default() };
                    for (name, text) in [
                        (rules::RGIGNORE, &mut texts.rgignore),
                        (rules::IGNORE, &mut texts.ignore),
                        (rules::GITIGNORE, &mut texts.git),
                    ] {
                        let admitted = has(name).then(|| admitted(tree, &directory.join(name))).flatten();
                        if let Some(path) = admitted.filter(|_| read < MOST_RULES) {
                            read += 1;
                            *text = files::read(remote, &path, 0, RULES_BYTES).await.ok().map(|file| file.bytes);
                        }
                    }
                    Some(Level::below(level, &path, &texts))
                }
                other => other,
            };
            directories.insert(directory.to_owned(), state.clone());
        }
        let name = below.file_name().unwrap_or_default();
        let path = tree.as_path().join(&below);
        // A repository itself is only told of.
        if name != rules::GIT
            && state.is_some_and(|level| !rules.skips(level.as_deref(), &path, name.as_bytes(), false))
        {
            files.push(below);
        }
    }
    Ok(files)
}

/// Those of the files that may have the pattern, in order.
async fn choose<W: Way>(
    remote: &Remote<W>,
    tree: &ReadTree,
    pattern: &Pattern,
    simple: OsString,
    files: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![OsString::from(tree.as_path()), OsString::from(&pattern.text), simple];
    arguments.extend(pattern.literal.then(|| "--fixed-strings".into()));
    arguments.extend(pattern.ignore_case.then(|| "--ignore-case".into()));
    let named = files.iter().flat_map(|below| [b"./", below.as_os_str().as_bytes(), b"\0"].concat());
    let (status, printed) = remote.feed(CHOOSE, arguments, &named.collect::<Vec<u8>>()).await?;
    if status != 0 {
        let message = format!("{} could not search its files (status {status})", remote.way.name());
        return Err(Failure::new(Kind::Unavailable, message).hint("it needs `xargs` and `rg` or `grep`"));
    }
    let end = if printed.contains(&0) { 0 } else { b'\n' };
    let chosen: HashSet<&[u8]> =
        printed.split(|byte| *byte == end).filter_map(|name| name.strip_prefix(b"./")).collect();
    // Only what was asked for is taken from what the place says.
    Ok(files.iter().filter(|below| chosen.contains(below.as_os_str().as_bytes())).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::super::Script;
    use super::*;
    use crate::local::Local;
    use crate::{Backend, Input, Process, ProcessSpec};
    use async_trait::async_trait;
    use base::dirs::Dirs;
    use config::{Allowlist, Config, PluginRights};
    use file_access::{FilesGrant, Protected, Who};
    use std::fs::{create_dir_all, hard_link, write};
    use std::os::unix::fs::symlink;

    /// This machine by its shell, as if it were another place, with the programs of a directory.
    struct Shells {
        local: Local,
        variables: Vec<(String, String)>,
    }

    impl Shells {
        fn spec(&self, script: Script) -> ProcessSpec {
            let argv = ["/bin/sh", "-c", script.text, "sh"].map(OsString::from).into_iter().chain(script.arguments);
            ProcessSpec { variables: self.variables.clone(), ..ProcessSpec::own(argv.collect()) }
        }
    }

    #[async_trait]
    impl Way for Shells {
        fn name(&self) -> &str {
            "there"
        }

        async fn start(&self, script: Script) -> Result<Box<dyn Process>, Failure> {
            self.local.start(self.spec(script)).await
        }

        async fn open(&self, script: Script) -> Result<(Box<dyn Process>, Input), Failure> {
            self.local.open(self.spec(script)).await
        }

        fn refusal(&self, said: &str, status: Option<i32>) -> Option<Failure> {
            Some(Failure::failed(format!("{said} {status:?}")))
        }

        async fn lost(&self) -> Failure {
            std::future::pending().await
        }

        async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
            Ok(argv)
        }

        async fn inspect(&self) -> Result<String, Failure> {
            Ok(String::new())
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test grants what it tries")]
    fn grant(home: &Path) -> FilesGrant {
        let dirs = Dirs { home: home.to_owned(), ..Dirs::below(&home.join("toolcrib")) };
        let rights = PluginRights {
            shell: false,
            pane: false,
            read: vec![Allowlist::Any],
            write: Vec::new(),
            http: None,
            browser: None,
            mail: Vec::new(),
            programs: Vec::new(),
            variables: Vec::new(),
            jobs: Vec::new(),
            schedules: false,
            declared: Vec::new(),
            kinds: Vec::new(),
            records: false,
            introspect: false,
            config: std::collections::BTreeMap::new(),
        };
        let (here, elsewhere) = (Protected::new(&dirs, &[]), Protected::elsewhere());
        let who = Who { name: "any", label: "any".into(), sha256: "" };
        FilesGrant::new(who, &rights, &Config::default(), Arc::new(here), Arc::new(elsewhere))
    }

    /// A tree with rules, a key and its second name.
    fn made(root: &Path) {
        for (path, content) in [
            ("home/.ssh/id", "needle SECRET\n"),
            ("home/.netrc", "needle SECRET\n"),
            ("work/.git/HEAD", "needle\n"),
            ("work/.gitignore", "*.log\n/out/\n"),
            ("work/a.log", "needle\n"),
            ("work/out/b", "needle\n"),
            ("work/.hidden/c", "needle 1\n"),
            ("work/src/a.rs", "one\nneedle 12\nthree\n"),
            ("work/src/.ignore", "d\n!e.log\n"),
            ("work/src/d", "needle\n"),
            ("work/src/e.log", "needle 5\n"),
            ("work/src/deep/b.py", "a Needle\n\u{e9} needles, needle\n"),
            ("work/with space/f (1)", "needle [x]\n"),
            ("work/binary", "needle\n\0"),
            ("work/-n", "needle\n"),
        ] {
            let path = root.join(path);
            create_dir_all(path.parent().expect("a directory")).and_then(|()| write(path, content)).expect("a file");
        }
        hard_link(root.join("home/.ssh/id"), root.join("work/second")).expect("a second name");
        symlink("../home/.ssh/id", root.join("work/link")).expect("a link");
    }

    /// The programs that scripts need, without `rg`: those of the system, or all of them this one.
    fn programs(directory: &Path, one: Option<&Path>) -> String {
        create_dir_all(directory).expect("a directory");
        for name in ["sh", "find", "grep", "xargs", "head", "tail", "cat", "wc", "stat", "readlink", "id", "env"] {
            let mut places = ["/usr/bin", "/bin"].iter().map(|place| Path::new(place).join(name));
            let found = one.map(Path::to_owned).or_else(|| places.find(|path| path.exists()));
            symlink(found.expect("a program of the system"), directory.join(name)).expect("a link");
        }
        directory.display().to_string()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_place_finds_what_this_machine_finds() {
        let root = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let root = root.path().canonicalize().expect("a path");
        made(&root);
        let (home, work) = (root.join("home"), root.join("work"));
        let local = || Local::new(work.clone(), home.clone(), home.join("own"), std::env::vars_os().collect());
        let (here, grant) = (local(), grant(&home));
        let all = std::env::var("PATH").expect("a path");
        let busybox = Some(Path::new("/usr/bin/busybox")).filter(|path| path.exists());
        let simple = busybox.map(|one| programs(&root.join("simple"), Some(one)));
        for programs in [all, programs(&root.join("programs"), None)].into_iter().chain(simple) {
            let variables = [("PATH", programs.clone()), ("HOME", home.display().to_string())];
            let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
            let there = Remote::new(Shells { local: local(), variables });
            for (below, pattern, flags) in [
                (".", "needle", ""),
                (".", r"needle \d+$", ""),
                (".", r"\bneedle\b", "hidden"),
                (".", "NEEDLE", "case"),
                (".", "[x]", "literal"),
                (".", "needle", "ignored"),
                (".", "needle", "glob"),
                (".", "needle", "type"),
                ("src", "^needle|three$", ""),
                ("src/a.rs", "needle", ""),
                ("..", "SECRET", "hidden"),
                (".", "nothing", ""),
            ] {
                let which = Which {
                    globs: (flags == "glob").then(|| "src/**".to_owned()).into_iter().collect(),
                    types: (flags == "type").then(|| "py".to_owned()).into_iter().collect(),
                    hidden: flags == "hidden",
                    ignored: flags == "ignored",
                };
                let (literal, ignore_case) = (flags == "literal", flags == "case");
                let query = Search {
                    which: which.clone(),
                    pattern: Pattern { text: pattern.into(), literal, ignore_case },
                    before: 1,
                    after: 1,
                    skip: 0,
                    max: 100,
                    line_bytes: 400,
                };
                let (path, directories) = (None, false);
                let names = Find { which, path, directories, skip: 0, max: 100 };
                let mut found = Vec::new();
                for place in [&here as &dyn Backend, &there] {
                    let resolved = place.resolve(below, &grant.roots()).await.map_err(|failure| failure.message);
                    let tree = grant.admit_tree(&resolved.expect("a path")).map_err(|failure| failure.message);
                    let tree = tree.expect("it may be read");
                    let lines = place.search(&tree, &query, Arc::default()).await.map_err(|failure| failure.message);
                    let names = place.find(&tree, &names, Arc::default()).await.map_err(|failure| failure.message);
                    let (lines, names) = (lines.expect("lines"), names.expect("names"));
                    found.push((lines.files, lines.more, lines.binary, names.files));
                }
                // Names are told here of a second name too; there it may be that of a key, as nobody compares it.
                found[0].3.retain(|file| !file.path.ends_with("second"));
                assert_eq!(found[0], found[1], "{below} {pattern} {flags} by {programs}");
                assert!(!format!("{:?}", found[1]).contains("SECRET"), "{below} {pattern}");
            }
        }
    }
}
