//! `toolcrib audit`: checks the record of calls, shows it, and begins to seal it.

use super::screen::{Page, Table};
use super::setup::{dirs, load, sources, usage};
use super::{Global, notice, print, print_json};
use ::audit::verify::{Fault, Known, Whole, files, verify};
use ::audit::{Beside, Head};
use base::dirs::Dirs;
use base::text::sanitize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use toolcrib::audit::Audit;
use toolcrib::config::Settings;
use toolcrib::envelope::{Failure, Kind};

/// How often `tail --follow` looks for new lines.
const LOOK: Duration = Duration::from_millis(250);

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Check that no line of the audit trail was changed, taken out or put in; exits with 1 where one was
    Verify {
        /// Files to check, the oldest first; default: the trail of this machine
        files: Vec<PathBuf>,
        /// File with the first key, as `audit init` printed it; `-` reads it from stdin. It checks the seals
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// A line that was noted before, as `audit show --head` prints it: it must still be there
        #[arg(long, value_name = "N:SHA256", value_parser = head)]
        since: Option<Head>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the audit trail
    Show {
        /// Only what was refused
        #[arg(long)]
        refused: bool,
        /// Only what is younger than this, such as 24h
        #[arg(long, value_name = "TIME", value_parser = duration)]
        since: Option<Duration>,
        /// Only number and digest of the last line: an auditor who notes them can tell later that nothing before was cut off
        #[arg(long, conflicts_with_all = ["refused", "since"])]
        head: bool,
        /// Print JSON: the lines as they are
        #[arg(long)]
        json: bool,
    },
    /// Show the last lines of the audit trail
    Tail {
        /// So many
        #[arg(long, short = 'n', default_value_t = 10)]
        lines: usize,
        /// Go on with those that are added, until this is interrupted
        #[arg(long, short)]
        follow: bool,
        /// Print JSON: the lines as they are
        #[arg(long)]
        json: bool,
    },
    /// End the file of the audit trail, however long it is, and begin the next; for root where root has frozen it with `chattr +a`
    Rotate {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the key that seals the audit trail from here on, and print it once: keep it where this machine cannot read it
    Init {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let dirs = dirs()?;
    let settings = load(&sources(global, &dirs)?)?;
    let trail = settings.trail_file(&dirs);
    match arguments {
        Arguments::Verify { files, key, since, json } => check(&trail, files, key.as_deref(), since, json),
        Arguments::Show { head: true, json, .. } => show_head(&trail, json),
        Arguments::Show { refused, since, json, .. } => show(&trail, refused, since, json),
        Arguments::Tail { lines, follow, json } => tail(&trail, lines, follow, json).await,
        Arguments::Rotate { json } => {
            let ended = Audit::rotate(&settings, &dirs).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => cannot(&trail, &error).hint("run this as root"),
                _ => cannot(&trail, &error),
            })?;
            let ended = trail.with_file_name(ended);
            if json {
                return print_json(&json!({ "trail": trail, "ended": ended }));
            }
            let shown = |path: &Path| sanitize::line(&path.display().to_string()).into_owned();
            print(&format!("{} is {} now, and the chain goes on in a new file\n", shown(&trail), shown(&ended)))
        }
        Arguments::Init { json } => {
            let key = Audit::begin_seals(&settings, &dirs).map_err(|error| cannot(&trail, &error))?;
            let key = hex::encode(key);
            if json {
                return print_json(&json!({ "trail": trail, "key": key }));
            }
            print(&format!(
                "{key}\nThis is the only copy of the first key. Keep it elsewhere: with it, `toolcrib audit verify --key FILE` checks every seal of {}.\n",
                sanitize::line(&trail.display().to_string())
            ))
        }
    }
}

fn check(
    trail: &Path,
    given: Vec<PathBuf>,
    key: Option<&Path>,
    since: Option<Head>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    // Copies of an auditor need not have the key beside them.
    let last = given.last().map_or(trail, PathBuf::as_path);
    let beside = match Beside::of(last).map_err(|error| cannot(last, &error))? {
        Beside::Nothing if !given.is_empty() => Beside::Unknown,
        beside => beside,
    };
    let (compared, key) = (matches!(beside, Beside::Key(_)), key.map(read_key).transpose()?);
    let checked = key.is_some();
    let known = Known { key, since, beside };
    let found = if given.is_empty() { files(trail).map_err(|error| cannot(trail, &error))? } else { given };
    if found.is_empty() {
        return Err(cannot(trail, &"nothing was recorded yet"));
    }
    match verify(&found, known) {
        Ok(whole) if as_json => print_json(&json!({
            "whole": true,
            "files": whole.files,
            "first": whole.first,
            "last": whole.head.n,
            "sha256": hex::encode(whole.head.digest),
            "seals": whole.seals,
            "seals_checked": checked,
            "key_compared": compared,
            "last_seal": whole.last_seal.as_ref().map(|(line, time)| json!({ "line": line, "time": time })),
            "torn": whole.torn,
            "doubled_seals": whole.doubled,
            "unfinished_bytes": whole.unfinished,
        })),
        Ok(whole) => print(&told(&whole, checked, compared)),
        Err(Fault::Unreadable { path, error }) => Err(cannot(&path, &error)),
        Err(fault @ (Fault::Broken { .. } | Fault::Cut(_))) => {
            if as_json {
                let place = match &fault {
                    Fault::Broken { path, line, .. } => json!({ "file": path, "line": line }),
                    Fault::Unreadable { .. } | Fault::Cut(_) => Value::Null,
                };
                print_json(&json!({ "whole": false, "place": place, "reason": fault.to_string() }))?;
            } else {
                print(&format!("{}\n", sanitize::line(&fault.to_string())))?;
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What is true of a trail that is whole, and what that does not vouch for.
fn told(whole: &Whole, seals_checked: bool, key_compared: bool) -> String {
    let Whole { files, first, head, seals, last_seal, torn, doubled, unfinished } = whole;
    let lines = head.n + 1 - first;
    let mut text = format!("{lines} lines in {files} files, whole from line {first} to {}\n", head.n);
    if *first > 1 {
        text += &format!("lines 1 to {} are in older files, which are not here\n", first - 1);
    }
    match (last_seal, seals_checked) {
        (None, _) => {
            text += "no seals: what was cut off at the end shows only against a line that was noted (`--since`)\n"
        }
        (Some((line, time)), true) => text += &format!("{seals} seals, all good; the last is line {line}, of {time}\n"),
        (Some((line, time)), false) => {
            text += &format!("{seals} seals, not checked without `--key`; the last is line {line}, of {time}\n");
        }
    }
    if let Some((line, _)) = last_seal.as_ref().filter(|(line, _)| *line < head.n) {
        text += &format!(
            "{} lines after it are not sealed yet: if more followed and were cut off, that does not show\n",
            head.n - line
        );
    }
    if key_compared {
        text += "the key beside the trail agrees with its last seal\n";
    }
    if *torn > 0 {
        text +=
            &format!("{torn} pieces of lines, told of in the trail: of programs that were killed while they wrote\n");
    }
    if *doubled > 0 {
        text += &format!("{doubled} seals stand twice: of programs that were killed while they sealed\n");
    }
    if *unfinished > 0 {
        text += &format!("its last {unfinished} bytes are no whole line yet\n");
    }
    text
}

fn show_head(trail: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let found = files(trail).map_err(|error| cannot(trail, &error))?;
    let last = found.last().ok_or_else(|| cannot(trail, &"nothing was recorded yet"))?;
    let head = Head::of(last).map_err(|error| cannot(last, &error))?;
    let head = head.ok_or_else(|| cannot(last, &"it has no line yet"))?;
    let (n, digest) = (head.n, hex::encode(head.digest));
    if as_json { print_json(&json!({ "n": n, "sha256": digest })) } else { print(&format!("{n}:{digest}\n")) }
}

fn show(trail: &Path, refused: bool, since: Option<Duration>, as_json: bool) -> Result<ExitCode, Failure> {
    // Times of the trail are all of one form, and compare as text.
    let from = since.and_then(|since| SystemTime::now().checked_sub(since));
    let from = from.map(|from| humantime::format_rfc3339_millis(from).to_string());
    let mut rows = rows();
    for path in files(trail).map_err(|error| cannot(trail, &error))? {
        let file = File::open(&path).map_err(|error| cannot(&path, &error))?;
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(|error| cannot(&path, &error))?;
            let Ok(value) = serde_json::from_slice::<Value>(&line) else { continue };
            let is_young = from.as_deref().is_none_or(|from| text(&value, "time") >= from);
            if is_young && (!refused || is_refusal(&value)) {
                add(&mut rows, &value, as_json)?;
            }
        }
    }
    if as_json { Ok(ExitCode::SUCCESS) } else { rows.print() }
}

/// Puts on record what a person has changed; says so where it is not.
pub(super) fn changed(settings: &Settings, dirs: &Dirs, what: &str) {
    if let Some(missing) = Audit::of(settings, dirs).0.changed(what) {
        notice(&missing);
    }
}

/// Returns when the call was accepted whose id begins so, in milliseconds since 1970; none where the trail has no such call.
pub(super) fn accepted(global: &Global, dirs: &Dirs, call: &str) -> Result<Option<u64>, Failure> {
    let trail = load(&sources(global, dirs)?)?.trail_file(dirs);
    let mut accepted = None;
    for path in files(&trail).unwrap_or_default() {
        let Ok(file) = File::open(&path) else { continue };
        for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
            let Ok(value) = serde_json::from_slice::<Value>(&line) else { continue };
            if text(&value, "event") == "accepted" && text(&value, "call").starts_with(call) {
                let time = humantime::parse_rfc3339(text(&value, "time")).ok();
                accepted = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).or(accepted);
            }
        }
    }
    Ok(accepted.map(|since| since.as_millis() as u64))
}

async fn tail(trail: &Path, lines: usize, follow: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let mut read = Vec::new();
    let mut file = File::open(trail).map_err(|error| cannot(trail, &error))?;
    file.read_to_end(&mut read).map_err(|error| cannot(trail, &error))?;
    let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let rest = read.split_off(whole);
    let values: Vec<Value> =
        read.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for value in &values[values.len().saturating_sub(lines)..] {
        print_one(value, as_json)?;
    }
    if follow {
        return follow_on(trail, file, rest, as_json).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what is added to a trail, until somebody ends this.
async fn follow_on(trail: &Path, mut file: File, mut rest: Vec<u8>, as_json: bool) -> Result<ExitCode, Failure> {
    loop {
        tokio::time::sleep(LOOK).await;
        file.read_to_end(&mut rest).map_err(|error| cannot(trail, &error))?;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if let Ok(value) = serde_json::from_slice(&line) {
                print_one(&value, as_json)?;
            }
        }
        // A full file gets another name: what is in the next one follows when this one has nothing more.
        if rest.is_empty()
            && let Ok(next) = File::open(trail)
            && !is_same(&file, &next)
        {
            file = next;
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    id(one) == id(other)
}

fn rows() -> Table {
    Table::new(&["time", "event", "what", "outcome", "by"])
}

fn add(rows: &mut Table, value: &Value, as_json: bool) -> Result<(), Failure> {
    if as_json {
        print(&format!("{value}\n"))?;
    } else {
        rows.row(cells(value).each_ref().map(|cell| cell.as_ref()));
    }
    Ok(())
}

fn print_one(value: &Value, as_json: bool) -> Result<(), Failure> {
    if as_json {
        print(&format!("{value}\n"))?;
        return Ok(());
    }
    let mut page = Page::default();
    let cells = cells(value);
    page.add(
        &cells.iter().map(|cell| sanitize::line(cell)).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  "),
    )
    .end(2);
    page.print()?;
    Ok(())
}

/// A line in columns: when, what, of what, what came of it, by whom.
fn cells(value: &Value) -> [String; 5] {
    let first =
        |keys: &[&str]| keys.iter().map(|key| shown(value, key)).find(|text| !text.is_empty()).unwrap_or_default();
    [
        shown(value, "time"),
        shown(value, "event"),
        first(&["tool", "plugin", "what", "to", "policies"]),
        first(&["outcome", "code", "calls", "epoch", "level"]),
        first(&["principal", "place", "pid"]),
    ]
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn shown(value: &Value, key: &str) -> String {
    match value.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) if list.is_empty() => String::new(),
        Some(other) => other.to_string(),
    }
}

fn is_refusal(value: &Value) -> bool {
    matches!(text(value, "event"), "refused" | "refused_builtins" | "refused_calls")
        || text(value, "outcome") == Kind::Denied.name()
}

fn read_key(path: &Path) -> Result<[u8; 32], Failure> {
    let read = if path == Path::new("-") { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) };
    let text = read.map_err(|error| {
        usage(format!("`{}` cannot be read: {error}", path.display()))
            .hint("give `--key` a file with the first key, as `toolcrib audit init` printed it, or `-` for stdin")
    })?;
    let mut key = [0; 32];
    let first = text.split_whitespace().next().unwrap_or_default();
    hex::decode_to_slice(first, &mut key)
        .map_err(|_| usage(format!("`{}` holds no key: that is 64 hex digits", path.display())))?;
    Ok(key)
}

fn head(text: &str) -> Result<Head, String> {
    let read = || {
        let (n, digest) = text.split_once(':')?;
        let mut head = Head { n: n.parse().ok()?, digest: [0; 32] };
        hex::decode_to_slice(digest, &mut head.digest).ok()?;
        Some(head)
    };
    read().ok_or_else(|| "write a line as `audit show --head` prints it: its number, `:`, 64 hex digits".into())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write a time such as 90m or 24h"))
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Unavailable, format!("audit trail {}: {error}", path.display()))
}
