//! The canary of a run: a value that lies where secrets lie in every home of the tests, and must not be found anywhere else (K-05).
//!
//! `tests/run` makes it, and searches what is left when all tests have ended; tests that are started by hand make one themselves.
//! The home of a test searches its files at its end. What programs print is searched where it is read.

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Where `tests/run` says the value, or [`NONE`].
const GIVEN: &str = "TOOLCRIB_CANARY";
/// Benchmarks measure the program without one.
const NONE: &str = "none";
/// The file that `tests/run` reads in the end: a panic in a thread of a runtime may be lost.
const FINDS: &str = "TOOLCRIB_CANARY_FINDS";
/// The variable of a host's environment that holds it.
const VARIABLE: &str = "TOOLCRIB_TEST_API_KEY";
/// Where it is put in a sandbox: the file of the secret `CANARY`, and a file that is closed to tools by its name.
const PLACES: [&str; 2] = ["canary", "home/.netrc"];

/// Around what is random: the scanner holds back the end of an output that may begin a secret, which must not differ from run to run.
const EDGES: [&str; 2] = ["Qj", "jQ"];
/// 40 characters.
const RANDOM_BYTES: usize = 30;
const MIN_CHARS: usize = 32;

/// Of each file, what is beyond this is not searched, ...
const FILE_BYTES: u64 = 8 << 20;
/// ... nor what is beyond these in one sandbox: what lies deepest comes last.
const ALL_BYTES: u64 = 64 << 20;
const ALL_FILES: usize = 10_000;
/// Compiled code is copied there before anything runs, and is as large as everything else together.
const CODE: [&str; 2] = ["state/code", "state/toolcrib/code"];

static VALUE: LazyLock<Option<String>> = LazyLock::new(|| match std::env::var(GIVEN) {
    Ok(given) if given == NONE => None,
    Ok(given) => {
        assert!(given.len() >= MIN_CHARS, "`{GIVEN}` has at least {MIN_CHARS} characters, or is `{NONE}`");
        Some(given)
    }
    Err(_) => Some(made()),
});

static SEARCH: LazyLock<Option<Search>> = LazyLock::new(|| VALUE.as_deref().map(Search::new));

fn made() -> String {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    format!("{}{}{}", EDGES[0], BASE64_URL_SAFE_NO_PAD.encode(bytes), EDGES[1])
}

/// The canary; none where it was switched off.
#[must_use]
pub fn value() -> Option<&'static str> {
    VALUE.as_deref()
}

/// The forms of a value that are searched for, and how each is called.
struct Search {
    automaton: AhoCorasick,
    names: Vec<&'static str>,
}

impl Search {
    fn new(value: &str) -> Self {
        let (names, forms): (Vec<_>, Vec<_>) = forms(value).into_iter().unzip();
        Self { automaton: AhoCorasick::new(forms).expect("a few short patterns"), names }
    }

    fn find(&self, bytes: &[u8]) -> Option<&'static str> {
        self.automaton.find(bytes).map(|found| self.names[found.pattern().as_usize()])
    }
}

/// These are written here once more, and not taken from the program, which could have forgotten one.
fn forms(value: &str) -> Vec<(&'static str, Vec<u8>)> {
    let percent = |is_kept: fn(char) -> bool| {
        value
            .chars()
            .fold(String::new(), |text, c| if is_kept(c) { text + &c.to_string() } else { text + &hex(c, "%") })
    };
    let all: String = value.chars().map(|c| hex(c, "")).collect();
    let mut forms = vec![
        ("as it is", value.to_owned()),
        ("reversed", value.chars().rev().collect()),
        ("in lower case", value.to_lowercase()),
        ("as hex", all.to_lowercase()),
        ("as hex", all),
        ("percent-encoded", percent(|_| false).to_lowercase()),
        ("percent-encoded", percent(|_| false)),
        ("percent-encoded", percent(|c| c.is_ascii_alphanumeric())),
    ];
    for in_front in 0..3 {
        forms.push(("in base64", base64(value, in_front, &BASE64_STANDARD_NO_PAD)));
        forms.push(("in base64", base64(value, in_front, &BASE64_URL_SAFE_NO_PAD)));
    }
    let mut forms: Vec<_> = forms.into_iter().map(|(name, form)| (name, form.into_bytes())).collect();
    forms.push(("as UTF-16", value.encode_utf16().flat_map(u16::to_le_bytes).collect()));
    forms
}

fn hex(c: char, before: &str) -> String {
    let mut text = String::new();
    for byte in c.to_string().bytes() {
        write!(text, "{before}{byte:02X}").expect("a string takes all that is written");
    }
    text
}

/// What stands for the value behind so many other bytes, without the characters that its neighbours have a part in.
fn base64(value: &str, in_front: usize, engine: &impl Engine) -> String {
    let bytes = [&[0; 2][..in_front], value.as_bytes()].concat();
    let (first, end) = ((in_front * 8).div_ceil(6), bytes.len() * 8 / 6);
    engine.encode(&bytes)[first..end].to_owned()
}

/// Returns in which form the canary is in there, if it is.
#[must_use]
pub fn find(bytes: impl AsRef<[u8]>) -> Option<&'static str> {
    SEARCH.as_ref()?.find(bytes.as_ref())
}

/// Fails the test where the canary is in there.
pub fn check(what: &str, bytes: impl AsRef<[u8]>) {
    if let Some(form) = find(bytes) {
        fail(&format!("the canary is in {what}, {form}"));
    }
}

/// The same for all that a program printed.
pub fn check_output(output: &Output) {
    check("what a program wrote to stdout", &output.stdout);
    check("what a program wrote to stderr", &output.stderr);
}

fn fail(found: &str) {
    let test = std::thread::current().name().unwrap_or("a thread without a name").to_owned();
    // The tests of this file fail on purpose.
    if cfg!(not(test))
        && let Some(list) = std::env::var_os(FINDS)
        && let Ok(mut list) = File::options().append(true).open(list)
    {
        let _ = writeln!(list, "{test}: {found}");
    }
    // Whoever fails already says why; a second panic would end all tests.
    if std::thread::panicking() {
        eprintln!("{found}");
    } else {
        panic!("{found}");
    }
}

/// Searches all files below a directory, or one file, but for the places of the canary and within the bounds above.
/// Returns a line for each find.
#[must_use]
pub fn search(root: &Path) -> Vec<String> {
    let (mut finds, mut files, mut left) = (Vec::new(), 0, ALL_BYTES);
    let mut waiting = VecDeque::from([root.to_owned()]);
    while let Some(path) = waiting.pop_front() {
        if PLACES.iter().any(|place| path == root.join(place)) || CODE.iter().any(|code| path == root.join(code)) {
            continue;
        }
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        if let Some(form) = path.file_name().and_then(|name| find(name.as_encoded_bytes())) {
            finds.push(format!("the canary is in the name of a file, {form}"));
        }
        let Ok(found) = path.symlink_metadata() else { continue };
        if found.is_dir() {
            waiting.extend(entries(&path));
        } else if found.is_file() && files < ALL_FILES && left > 0 {
            let bytes = beginning(&path, left.min(FILE_BYTES)).unwrap_or_default();
            files += 1;
            left = left.saturating_sub(bytes.len() as u64);
            finds.extend(find(bytes).map(|form| format!("the canary is in the file `{shown}`, {form}")));
        }
    }
    finds
}

/// What cannot be listed has gone, or belongs to another user.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn beginning(file: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The directories of one test, with the canary in its places. Whatever else holds it at the end fails the test.
pub(crate) struct Sandbox {
    directory: TempDir,
    has_canary: bool,
}

impl Sandbox {
    /// A directory below this one, with a home and these others in it.
    pub(crate) fn below(parent: &Path, others: &[&str]) -> Self {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        for name in ["home"].iter().chain(others) {
            std::fs::create_dir_all(directory.path().join(name)).expect("a directory");
        }
        let sandbox = Self { directory, has_canary: value().is_some() };
        if let Some(value) = value() {
            sandbox.keep(PLACES[0], value);
            sandbox.keep(PLACES[1], &format!("machine canary.invalid login canary password {value}\n"));
        }
        sandbox
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn keep(&self, place: &str, text: &str) {
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(self.path().join(place));
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file of the canary");
    }

    /// The file of the secret `CANARY`; none where there is no canary.
    pub(crate) fn secret(&self) -> Option<PathBuf> {
        self.has_canary.then(|| self.path().join(PLACES[0]))
    }

    /// What a host's environment says of it.
    pub(crate) fn variable(&self) -> Option<(&'static str, &'static str)> {
        Some((VARIABLE, value().filter(|_| self.has_canary)?))
    }

    /// Takes the canary out of its places; nothing is searched at the end.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.has_canary) {
            for place in PLACES {
                std::fs::remove_file(self.path().join(place)).expect("a file of the canary");
            }
        }
    }

    /// Searches now. Returns a line for each find; the end brings no further ones.
    pub(crate) fn search(&mut self) -> Vec<String> {
        if std::mem::take(&mut self.has_canary) { search(self.path()) } else { Vec::new() }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let finds = self.search();
        if !finds.is_empty() {
            fail(&finds.join("; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn sandbox() -> (Sandbox, &'static str) {
        (
            Sandbox::below(&std::env::temp_dir(), &["work"]),
            value().expect("a canary: without one these tests say nothing"),
        )
    }

    /// K-05: what would be missed here would be missed everywhere.
    #[test]
    fn the_canary_is_found_in_each_form() {
        let (_sandbox, value) = sandbox();
        assert!(value.len() >= MIN_CHARS);
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let strict = value.replace('-', "%2D").replace('_', "%5F");
        let reversed = value.chars().rev().collect();
        let (lower, wide) =
            (percent.to_lowercase(), value.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
        for form in [value.to_owned(), hex.to_uppercase(), hex, percent, lower, strict, reversed, value.to_lowercase()]
        {
            assert!(find(format!("before {form} behind")).is_some(), "{form}");
        }
        assert_eq!(find(wide), Some("as UTF-16"));
        for before in ["", "a", "ab", "abc", "user:"] {
            let text = format!("{before}{value} and more");
            for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text)] {
                assert_eq!(find(&encoded), Some("in base64"), "{encoded}");
            }
        }
        assert_eq!(find(&value[1..]), None, "a piece is not the whole");
    }

    /// K-05: also in the name of a file, deep below, and in a file of the rig's that was copied.
    #[test]
    fn what_holds_the_canary_is_named() {
        let (mut sandbox, value) = sandbox();
        assert_eq!(search(sandbox.path()), Vec::<String>::new(), "its places do not count");
        let deep = sandbox.path().join("work/a/b");
        std::fs::create_dir_all(&deep).expect("a directory");
        std::fs::write(deep.join("log"), format!("{}{}", "x".repeat(1 << 20), BASE64_STANDARD.encode(value)))
            .expect("a file");
        std::fs::write(deep.join(value), "").expect("a file");
        std::fs::copy(sandbox.path().join("home/.netrc"), sandbox.path().join("work/.netrc")).expect("a copy");
        let mut finds = sandbox.search();
        finds.sort();
        assert_eq!(
            finds,
            [
                "the canary is in the file `work/.netrc`, as it is",
                "the canary is in the file `work/a/b/log`, in base64",
                "the canary is in the name of a file, as it is"
            ]
        );
    }

    /// K-05: a test in whose sandbox it is found fails at its end, and so does one that reads it.
    #[test]
    fn a_test_fails_where_the_canary_is_found() {
        let (sandbox, value) = sandbox();
        std::fs::write(sandbox.path().join("work/out"), value).expect("a file");
        let failed = quietly(|| drop(sandbox));
        assert_eq!(failed, "the canary is in the file `work/out`, as it is");
        assert_eq!(quietly(|| check("an answer", value)), "the canary is in an answer, as it is");
        check("an answer", "nothing");
    }

    fn quietly(act: impl FnOnce()) -> String {
        let failed = catch_unwind(AssertUnwindSafe(act)).expect_err("it fails");
        failed.downcast_ref::<String>().expect("words").clone()
    }
}
