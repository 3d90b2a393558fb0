//! What all places beyond this machine have in common: commands between marks, their end, what is there, files by scripts.
//!
//! A way there can run `/bin/sh` with a script of ours, with its input closed or open; everything else is built on that. The words of a
//! command travel as arguments, never as part of a script.

mod files;
mod runner;
mod search;

use super::{
    Backend, Before, Entry, Facts, FileText, Input, Listing, Process, ProcessEvent, ProcessSpec, TmuxThere, finish,
};
use crate::osc133::{Breaks, Scanner, State};
use crate::search::{Find, Found, Search, Watch};
use crate::undo::Replaced;
use async_trait::async_trait;
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use base::text::sanitize;
use base::workspace::Workspace;
use file_access::{Place, ReadPath, ReadTree, Resolved, Surroundings, Wanted, WritePath};
use runner::Runner;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::task::TaskTracker;

/// How long a script of ours may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a command that is to end may take to begin.
const BEGIN: Duration = Duration::from_secs(5);
/// Statuses by which shells and engines report that they executed nothing.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Characters of the reason that is given when nothing could be started.
const REASON_CHARS: usize = 300;

/// Runs a program between two marks on both streams. Arguments: nonce, call, `-lc` or `-c`, program and its arguments. What start-up files
/// print comes before the first mark; a login shell knows where programs are.
const FRAMED: &str = r#"n=$1 c=$2 l=$3
shift 3
[ -z "$c" ] || { TOOLCRIB_CALL=$c; export TOOLCRIB_CALL; }
/bin/sh "$l" 'n=$1; shift; printf "\033]133;C;%s\007" "$n"; printf "\033]133;C;%s\007" "$n" >&2; exec "$@"' sh "$n" "$@" </dev/null
s=$?
printf '\033]133;D;%s;%s\007' "$s" "$n"
printf '\033]133;D;%s;%s\007' "$s" "$n" >&2"#;

/// Becomes a program after one mark; its input is left open. Arguments: nonce, `-lc` or `-c`, program and its arguments.
const OPENED: &str = r#"n=$1 l=$2
shift 2
exec /bin/sh "$l" 'n=$1; shift; printf "\033]133;C;%s\007" "$n"; exec "$@"' sh "$n" "$@""#;

/// Ends all processes of a call: marked ones, all in their sessions, and all below them. Prints how many are left.
const END: &str = r#"c=$1
seen=' '
look() {
    marked=' '
    for f in $(grep -l -s -e "TOOLCRIB_CALL=$c" /proc/[0-9]*/environ); do
        p=${f#/proc/}
        marked="$marked${p%/environ} "
    done
    sessions=' '
    changed=1
    while [ -n "$changed" ]; do
        changed=
        for d in /proc/[0-9]*; do
            p=${d#/proc/}
            [ "$p" != "$$" ] || continue
            { read -r line <"$d/stat"; } 2>/dev/null || continue
            set -- ${line##*) }
            case "$1" in Z | X) continue ;; esac
            ours=
            case "$marked$seen" in *" $p "* | *" $2 "*) ours=1 ;; esac
            case "$sessions" in *" $4 "*) ours=1 ;; esac
            [ -n "$ours" ] || continue
            case "$seen" in *" $p "*) ;; *) seen="$seen$p " ; sessions="$sessions$4 " ; changed=1 ;; esac
        done
    done
    left=
    for p in $seen; do
        { read -r line <"/proc/$p/stat"; } 2>/dev/null || continue
        set -- ${line##*) }
        case "$1" in Z | X) ;; *) left="$left $p" ;; esac
    done
}
signal=TERM tries=0
look
while [ -n "$left" ] && [ "$tries" -lt 30 ]; do
    kill -s $signal $left 2>/dev/null
    sleep 0.1 2>/dev/null || sleep 1
    [ "$tries" -lt 1 ] || signal=KILL
    tries=$((tries + 1))
    look
done
set -- $left
echo $#"#;

/// Prints the processes of a call that still run.
const LEFT: &str = r#"for f in $(grep -l -s -e "TOOLCRIB_CALL=$1" /proc/[0-9]*/environ); do
    p=${f#/proc/}
    p=${p%/environ}
    { read -r line <"/proc/$p/stat"; } 2>/dev/null || continue
    set -- ${line##*) }
    case "$1" in Z | X) ;; *) echo "$p" ;; esac
done"#;

/// Prints, each ended by NUL: where commands begin, home, a directory for files of our own, how it is with tmux, then without links the home
/// and the directories of `PATH`.
const FACTS: &str = r#"own=${XDG_STATE_HOME:-$HOME/.local/state}/toolcrib
room=1
if ! [ -w "$own" ] && ! [ -w "${XDG_STATE_HOME:-$HOME}" ]; then
    own=${TMPDIR:-/tmp}/toolcrib-$(id -u)
    [ -w "$own" ] || [ -w "${TMPDIR:-/tmp}" ] || room=
fi
tmux=missing
command -v tmux >/dev/null 2>&1 && tmux=${room:+there}
printf '%s\0' "$(pwd -P)" "$HOME" "$own" "$tmux" "$(cd -P -- "$HOME" 2>/dev/null && pwd -P)"
set -f
IFS=:
for d in $PATH; do
    (cd -P -- "$d" 2>/dev/null && printf '%s\0' "$(pwd -P)")
done
:"#;

/// A script of ours with its arguments.
pub(super) struct Script {
    pub(super) text: &'static str,
    pub(super) arguments: Vec<OsString>,
}

/// A way to a place.
#[async_trait]
pub(super) trait Way: Send + Sync + 'static {
    /// What approvals, audit lines and messages call the place.
    fn name(&self) -> &str;

    /// Runs `/bin/sh` there with a script; its input is at its end.
    async fn start(&self, script: Script) -> Result<Box<dyn Process>, Failure>;

    /// Runs `/bin/sh` there with a script and an open input.
    async fn open(&self, script: Script) -> Result<(Box<dyn Process>, Input), Failure>;

    /// Why nothing was started, from what the way said and its status; none when it may have been started all the same.
    fn refusal(&self, said: &str, status: Option<i32>) -> Option<Failure>;

    /// See [`Backend::lost`].
    async fn lost(&self) -> Failure;

    /// See [`Backend::terminal`].
    async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure>;

    /// See [`Backend::inspect`].
    async fn inspect(&self) -> Result<String, Failure>;

    /// See [`Backend::close`].
    fn close(&self) {}
}

/// A place beyond this machine.
pub(super) struct Remote<W> {
    way: Arc<W>,
    facts: OnceCell<Arc<Facts>>,
    runner: Mutex<Option<Runner>>,
}

/// The shell that becomes a program there.
#[derive(Clone, Copy)]
enum Shell {
    /// Knows what start-up files say, such as where programs are.
    Login,
    Plain,
}

impl Shell {
    fn flag(self) -> OsString {
        match self {
            Self::Login => "-lc",
            Self::Plain => "-c",
        }
        .into()
    }
}

impl<W: Way> Remote<W> {
    pub(super) fn new(way: W) -> Self {
        Self { way: Arc::new(way), facts: OnceCell::new(), runner: Mutex::default() }
    }

    /// Runs a short script of ours that may be run twice, in the shell that stays open for them; returns status and standard output.
    async fn script(&self, text: &str, arguments: &[OsString]) -> Result<(i32, Vec<u8>), Failure> {
        let work = async {
            let mut runner = self.runner.lock().await;
            // Taken out, so that one which is given up half-way is not used again.
            if let Some(mut open) = runner.take()
                && let Ok(done) = open.run(&*self.way, text, arguments).await
            {
                *runner = Some(open);
                return Ok(done);
            }
            let mut new = Runner::open(&*self.way).await?;
            let done = new.run(&*self.way, text, arguments).await?;
            *runner = Some(new);
            Ok(done)
        };
        tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(slow(self.way.name())))
    }

    /// The same for one that reads `input`. It has to say that it came to its end.
    async fn feed(
        &self,
        text: &'static str,
        arguments: Vec<OsString>,
        input: &[u8],
    ) -> Result<(i32, Vec<u8>), Failure> {
        let nonce = random_id();
        let argv = sh(text, arguments);
        let arguments = [OsString::from(&nonce), Shell::Plain.flag()].into_iter().chain(argv).collect();
        let work = async {
            let (mut process, mut writer) = self.way.open(Script { text: OPENED, arguments }).await?;
            let mut scanner = Scanner::new(&nonce, Breaks::Kept);
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let write = async {
                // A script that ends early says why.
                let _ = writer.write_all(input).await;
                let _ = writer.shutdown().await;
                drop(writer);
                // Never ends, so that `read` alone decides what came of it.
                std::future::pending::<()>().await;
            };
            let read = async {
                loop {
                    match process.next().await {
                        Ok(ProcessEvent::Stdout(bytes)) => stdout.extend(scanner.push(&bytes)),
                        Ok(ProcessEvent::Stderr(bytes)) => stderr.extend(bytes),
                        Ok(ProcessEvent::Exited(status)) => return Some(status),
                        Err(_) => return None,
                    }
                }
            };
            let status = tokio::select! { status = read => status, () = write => None };
            let said = String::from_utf8_lossy(&stderr);
            match status {
                Some(status) if scanner.state() != State::Before => Ok((status, stdout)),
                _ => Err(self.way.refusal(&said, status).unwrap_or_else(|| unknown(self.way.name()))),
            }
        };
        tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(slow(self.way.name())))
    }
}

/// `/bin/sh` with a script and its arguments.
fn sh(text: &str, arguments: Vec<OsString>) -> Vec<OsString> {
    ["/bin/sh", "-c", text, "sh"].map(OsString::from).into_iter().chain(arguments).collect()
}

/// Starts a program; it may not have begun yet.
async fn framed<W: Way>(
    way: Arc<W>,
    argv: Vec<OsString>,
    call: Option<String>,
    shell: Shell,
) -> Result<Framed<W>, Failure> {
    let (nonce, may_leave) = (random_id(), may_leave(&argv));
    let marks = [OsString::from(&nonce), call.clone().unwrap_or_default().into(), shell.flag()];
    let arguments = marks.into_iter().chain(argv).collect();
    let process = way.start(Script { text: FRAMED, arguments }).await?;
    let scanner = || Scanner::new(&nonce, Breaks::Kept);
    let (stdout, stderr) = (scanner(), scanner());
    Ok(Framed {
        way,
        process: Some(process),
        stdout,
        stderr,
        said: Vec::new(),
        greeted: Vec::new(),
        next: VecDeque::new(),
        may_leave,
        call,
    })
}

async fn script<W: Way>(
    way: Arc<W>,
    text: &'static str,
    arguments: Vec<OsString>,
    shell: Shell,
) -> Result<(i32, Vec<u8>), Failure> {
    let name = way.name().to_owned();
    let work = async {
        let mut process = framed(way, sh(text, arguments), None, shell).await?;
        process.begun().await?;
        let finished = finish(Box::new(process)).await.map_err(|_| unknown(&name))?;
        Ok((finished.status, finished.stdout))
    };
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(slow(&name)))
}

/// Begins a program in a directory, with variables and an input, which come as arguments: the directory, the input as `printf` reads it, the
/// variables, and the program.
const WITHIN: &str = r#"[ -z "$1" ] || cd -- "$1" || exit 125
input=$2
shift 2
if [ -z "$input" ]; then
    exec env "$@"
fi
printf %b "$input" | env "$@""#;

/// Bytes of an input that a line of arguments has room for, each written as five.
const INPUT_BYTES: usize = 20 << 10;

/// The program of a process, which begins in its directory with its variables and input where it has any.
fn within(spec: &ProcessSpec, name: &str) -> Result<Vec<OsString>, Failure> {
    if spec.directory.is_none() && spec.variables.is_empty() && spec.input.is_empty() {
        return Ok(spec.argv.clone());
    }
    if spec.input.len() > INPUT_BYTES {
        let bytes = spec.input.len();
        let message = format!("an input of {bytes} bytes is too long for {name} (limit: {} KiB)", INPUT_BYTES >> 10);
        return Err(Failure::limit(message).hint("put it into a file there, and read that"));
    }
    // `env` would take it for a variable.
    if spec.argv.first().is_some_and(|program| program.as_encoded_bytes().contains(&b'=')) {
        return Err(Failure::invalid("a program with `=` in its name cannot be started there"));
    }
    let octal: String = spec.input.iter().map(|byte| format!("\\0{byte:03o}")).collect();
    let directory = spec.directory.as_ref().map(|directory| directory.clone().into_os_string()).unwrap_or_default();
    let variables = spec.variables.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
    let before = [OsString::from("/bin/sh"), "-c".into(), WITHIN.into(), "sh".into(), directory, octal.into()];
    Ok(before.into_iter().chain(variables).chain(spec.argv.iter().cloned()).collect())
}

/// Secrets go to commands of this machine alone.
fn keep_secrets(spec: &ProcessSpec, name: &str) -> Result<(), Failure> {
    match spec.secrets.is_empty() {
        true => Ok(()),
        false => Err(Failure::denied(format!("secrets are for commands of this machine, not for those on {name}"))),
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(Kind::OutcomeUnknown, format!("the connection to {name} ended before the answer came"))
        .hint("check whether it had its effect before you try again")
}

fn slow(name: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{name} did not answer within {} s", PATIENCE.as_secs()))
}

#[async_trait]
impl<W: Way> Backend for Remote<W> {
    fn name(&self) -> &str {
        self.way.name()
    }

    /// Variables that settings name are this machine's: there, commands have the environment of that place.
    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>, Failure> {
        keep_secrets(&spec, self.name())?;
        let argv = within(&spec, self.name())?;
        Ok(Box::new(framed(self.way.clone(), argv, spec.call, Shell::Login).await?))
    }

    async fn open(&self, spec: ProcessSpec) -> Result<(Box<dyn Process>, Input), Failure> {
        keep_secrets(&spec, self.name())?;
        let nonce = random_id();
        let arguments = [OsString::from(&nonce), Shell::Login.flag()].into_iter().chain(spec.argv).collect();
        let (process, input) = self.way.open(Script { text: OPENED, arguments }).await?;
        Ok((Box::new(Opened { process, stdout: Scanner::new(&nonce, Breaks::Kept) }), input))
    }

    async fn facts(&self) -> Result<Arc<Facts>, Failure> {
        let find = async || {
            let (status, printed) = script(self.way.clone(), FACTS, Vec::new(), Shell::Login).await?;
            let mut fields = printed.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
            let mut path = || fields.next().filter(|field| !field.is_empty()).map(PathBuf::from);
            match (status, path(), path(), path()) {
                (0, Some(directory), Some(home), Some(own)) => {
                    let tmux = match path() {
                        Some(word) if word.as_os_str() == "there" => TmuxThere::Yes,
                        Some(_) => TmuxThere::No,
                        None => TmuxThere::NoRoom,
                    };
                    let surroundings = Surroundings {
                        home: path().unwrap_or_else(|| home.clone()),
                        programs: fields.filter(|field| !field.is_empty()).map(PathBuf::from).collect(),
                        ..Surroundings::default()
                    };
                    let workspace = Workspace::at(directory.clone());
                    Ok(Arc::new(Facts { directory, home, own, tmux, workspace, surroundings }))
                }
                _ => Err(Failure::new(
                    Kind::Unavailable,
                    format!("{} does not report a working directory and a home", self.name()),
                )
                .hint("its shell needs HOME and a working directory")),
            }
        };
        self.facts.get_or_try_init(find).await.cloned()
    }

    async fn resolve(&self, path: &str, roots: &[PathBuf]) -> Result<Resolved, Failure> {
        let facts = self.facts().await?;
        files::resolve(self, facts, path, roots).await
    }

    async fn read(&self, path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure> {
        files::read(self, path, offset, max_bytes).await
    }

    async fn list(&self, path: &ReadPath, max: usize) -> Result<Listing, Failure> {
        files::list(self, path, max).await
    }

    async fn stat(&self, path: &Place) -> Result<Entry, Failure> {
        files::stat(self, path).await
    }

    async fn search(&self, tree: &ReadTree, query: &Search, watch: Arc<Watch>) -> Result<Found, Failure> {
        search::search(self, tree, query, &watch).await
    }

    async fn find(&self, tree: &ReadTree, query: &Find, _: Arc<Watch>) -> Result<Found, Failure> {
        search::find(self, tree, query).await
    }

    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure> {
        files::make_directory(self, path).await
    }

    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
        files::look(self, path, max_bytes).await
    }

    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<Replaced, Failure> {
        files::write(self, path, &content).await.map(|()| Replaced::Elsewhere)
    }

    async fn run_script(&self, text: &str, arguments: &[OsString]) -> Result<(i32, Vec<u8>), Failure> {
        self.script(text, arguments).await
    }

    async fn lost(&self) -> Failure {
        self.way.lost().await
    }

    async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
        self.way.terminal(argv).await
    }

    async fn inspect(&self) -> Result<String, Failure> {
        self.way.inspect().await
    }

    fn close(&self) {
        if let Ok(mut runner) = self.runner.try_lock() {
            *runner = None;
        }
        self.way.close();
    }
}

/// A program between marks.
struct Framed<W: Way> {
    way: Arc<W>,
    /// None once the program has ended: what it left running may hold the streams open.
    process: Option<Box<dyn Process>>,
    stdout: Scanner,
    stderr: Scanner,
    /// What was said before the program began, on standard error.
    said: Vec<u8>,
    /// The same on standard output: an engine tells there that it found nothing to execute, and start-up files greet.
    greeted: Vec<u8>,
    next: VecDeque<ProcessEvent>,
    /// What its processes are marked with.
    call: Option<String>,
    /// It starts something in the background.
    may_leave: bool,
}

/// Whether a script puts something in the background, by its looks: `&` that joins nothing and turns nothing elsewhere.
fn may_leave(argv: &[OsString]) -> bool {
    let script = argv.last().map(|script| script.to_string_lossy()).unwrap_or_default();
    let bytes = script.as_bytes();
    let is_other = |index: Option<usize>, other: &[u8]| {
        index.and_then(|index| bytes.get(index)).is_some_and(|byte| other.contains(byte))
    };
    memchr::memchr_iter(b'&', bytes).any(|at| !is_other(at.checked_sub(1), b"&><") && !is_other(Some(at + 1), b"&>"))
}

impl<W: Way> Framed<W> {
    /// Ends all processes of the call there; returns how many are left, none where that is not known.
    async fn end_call(&mut self, call: String) -> Option<usize> {
        // What has not begun would begin after the look for its processes.
        let begun = tokio::time::timeout(BEGIN, self.begun()).await;
        if let Ok(Err(failure)) = &begun
            && failure.kind != Kind::OutcomeUnknown
        {
            return Some(0);
        }
        let left = end(self.way.clone(), call).await;
        left.filter(|_| matches!(begun, Ok(Ok(()))))
    }

    /// Reads what comes next. Returns a status when the connection has ended.
    async fn advance(&mut self) -> io::Result<Option<i32>> {
        let Some(process) = &mut self.process else { return Ok(Some(-1)) };
        match process.next().await? {
            ProcessEvent::Stdout(bytes) => {
                if self.stdout.state() == State::Before && self.greeted.len() < REASON_CHARS * 4 {
                    self.greeted.extend_from_slice(&bytes);
                }
                let output = self.stdout.push(&bytes);
                self.next.extend((!output.is_empty()).then_some(ProcessEvent::Stdout(output)));
            }
            ProcessEvent::Stderr(bytes) => {
                if self.stderr.state() == State::Before && self.said.len() < REASON_CHARS * 4 {
                    self.said.extend_from_slice(&bytes);
                }
                let output = self.stderr.push(&bytes);
                self.next.extend((!output.is_empty()).then_some(ProcessEvent::Stderr(output)));
            }
            ProcessEvent::Exited(status) => return Ok(Some(status)),
        }
        Ok(None)
    }
}

#[async_trait]
impl<W: Way> Process for Framed<W> {
    async fn begun(&mut self) -> Result<(), Failure> {
        while self.stdout.state() == State::Before {
            let status = match self.advance().await {
                Ok(None) => continue,
                Ok(Some(status)) => Some(status),
                Err(_) => None,
            };
            self.process = None;
            let is_told_by_status = self.said.is_empty() && matches!(status, Some(NOT_EXECUTABLE | NOT_FOUND));
            let said = String::from_utf8_lossy(if is_told_by_status { &self.greeted } else { &self.said });
            return Err(self.way.refusal(&said, status).unwrap_or_else(|| unknown(self.way.name())));
        }
        Ok(())
    }

    async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Ok(event);
            }
            // Both: the streams arrive separately, and the end of one does not mean that the other is complete.
            if let (State::Ended(status), State::Ended(_)) = (self.stdout.state(), self.stderr.state()) {
                self.process = None;
                return Ok(ProcessEvent::Exited(status));
            }
            if self.advance().await?.is_some() && self.next.is_empty() {
                let is_over = matches!((self.stdout.state(), self.stderr.state()), (State::Ended(_), State::Ended(_)));
                if !is_over {
                    self.process = None;
                    return Err(io::Error::other(format!("the connection to {} ended", self.way.name())));
                }
            }
        }
    }

    async fn end(&mut self) -> Option<usize> {
        let Some(call) = self.call.clone().filter(|_| self.process.is_some()) else { return Some(0) };
        let left = self.end_call(call).await;
        // Until here whoever drops this leaves the rest to `drop`.
        (self.call, self.process) = (None, None);
        left
    }

    /// Asking takes another round trip, so it is done only for commands that may have left something.
    async fn left_running(&mut self) -> Vec<u32> {
        let Some(call) = self.call.take().filter(|_| self.may_leave) else { return Vec::new() };
        let printed = script(self.way.clone(), LEFT, vec![call.into()], Shell::Plain).await.unwrap_or_default().1;
        String::from_utf8_lossy(&printed).lines().filter_map(|pid| pid.trim().parse().ok()).collect()
    }
}

impl<W: Way> Drop for Framed<W> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take()
            && let Some(process) = self.process.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (stdout, stderr) = (self.stdout.clone(), self.stderr.clone());
            let (said, greeted) = (std::mem::take(&mut self.said), std::mem::take(&mut self.greeted));
            let (way, next) = (self.way.clone(), VecDeque::new());
            let (process, may_leave) = (Some(process), self.may_leave);
            let mut rest = Self { way, process, stdout, stderr, said, greeted, next, call: None, may_leave };
            ENDS.spawn_on(async move { rest.end_call(call).await }, &runtime);
        }
    }
}

/// Commands that nobody waits for any more, and that are being ended.
static ENDS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Returns when all commands that were given up beyond this machine have ended, as far as that takes a bearable time.
pub(crate) async fn ended() {
    ENDS.close();
    let _ = tokio::time::timeout(BEGIN * 2, ENDS.wait()).await;
}

/// Ends all processes of a call there; returns how many are left.
async fn end<W: Way>(way: Arc<W>, call: String) -> Option<usize> {
    let (_, left) = script(way, END, vec![call.into()], Shell::Plain).await.ok()?;
    String::from_utf8_lossy(&left).trim().parse().ok()
}

/// A program with an open input, from its mark on.
struct Opened {
    process: Box<dyn Process>,
    stdout: Scanner,
}

#[async_trait]
impl Process for Opened {
    async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            match self.process.next().await? {
                ProcessEvent::Stdout(bytes) => {
                    let output = self.stdout.push(&bytes);
                    if !output.is_empty() {
                        return Ok(ProcessEvent::Stdout(output));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    async fn end(&mut self) -> Option<usize> {
        self.process.end().await
    }

    async fn left_running(&mut self) -> Vec<u32> {
        self.process.left_running().await
    }
}

/// The last line of what a program said, fit for a message.
pub(super) fn reason(said: &str) -> String {
    let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it does not say why");
    sanitize::beginning(line, REASON_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_the_background_is_seen() {
        for (script, expected) in [
            ("make &", true),
            ("(sleep 3 & echo) 2>&1", true),
            ("a & b", true),
            ("a && b", false),
            ("a >&2 2>&1 &>log", false),
            ("cat <&3", false),
        ] {
            assert_eq!(may_leave(&["sh".into(), script.into()]), expected, "{script}");
        }
    }
}
