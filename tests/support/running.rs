//! A program that runs: what goes to its stdin, the lines of its stdout, what it says on stderr, its end.
//! What the lines mean is for [`crate::Client`] and [`crate::mcp`] to know.
#![expect(clippy::disallowed_methods, reason = "signals are sent by `kill`")]

use crate::canary;
use crate::wait::{ended, is_readable};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to print anything at all: tests let a command take two minutes.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A program while it runs. It ends with this value.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    // Without a name, so that it is in nobody's way; and no pipe, which a program could fill.
    errors: File,
}

impl Running {
    /// Starts a program, without a terminal.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let errors = tempfile::tempfile().expect("a file");
        let stderr = errors.try_clone().expect("a file");
        let mut child = without_terminal(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("it does not start: {error}: {command:?}"));
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output, errors }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes to its stdin. A program that ended early is seen by what it answered.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("its stdin is open");
        let _ = input.write_all(bytes.as_ref()).and_then(|()| input.flush());
    }

    /// The other end of its stdin, to be written to elsewhere.
    #[must_use]
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("its stdin is open")
    }

    /// Gives its stdin back.
    pub fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// The other end of its stdout, to be read elsewhere.
    #[must_use]
    pub fn take_output(&mut self) -> BufReader<ChildStdout> {
        self.output.take().expect("its stdout is read here")
    }

    /// Closes its stdin.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Breaks the pipe of its stdout.
    pub fn hang_up(&mut self) {
        self.output = None;
    }

    /// The next line of its stdout, which has to be JSON.
    pub fn line(&mut self) -> Value {
        self.next("line")
    }

    /// The same; a failure to get a line says what was waited for.
    pub(crate) fn next(&mut self, what: &str) -> Value {
        let line =
            self.try_line(what).unwrap_or_else(|| panic!("no {what}, its output is at its end: {}", self.said()));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// The next line; none at the end of its output. A line that was begun, and no more, counts as none.
    pub fn try_line(&mut self, what: &str) -> Option<String> {
        let begin = Instant::now();
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let output = self.output.as_mut().expect("its stdout is read here");
            let limit = PATIENCE.saturating_sub(begin.elapsed());
            if output.buffer().is_empty() && !is_readable(output.get_ref(), limit) {
                panic!("no {what} within {PATIENCE:?}: {}", self.said());
            }
            let piece = output.fill_buf().expect("its stdout can be read");
            let end = piece.iter().position(|byte| *byte == b'\n').map_or(piece.len(), |at| at + 1);
            if end == 0 {
                return None;
            }
            line.extend_from_slice(&piece[..end]);
            output.consume(end);
        }
        canary::check("a line on stdout", &line);
        Some(String::from_utf8(line).expect("stdout is text"))
    }

    /// What it has said on stderr so far.
    #[must_use]
    pub fn said(&self) -> String {
        let length = self.errors.metadata().expect("a file").len();
        let mut said = vec![0; usize::try_from(length).expect("not that much")];
        self.errors.read_exact_at(&mut said, 0).expect("a file that only grows");
        canary::check("what was said on stderr", &said);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Sends it a signal by name, such as `INT`.
    pub fn signal(&self, name: &str) {
        signal(&self.child.id().to_string(), name);
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it ends");
    }

    /// Waits for its end, which has to come by itself.
    pub fn ended(&mut self, limit: Duration) -> Option<ExitStatus> {
        ended(&mut self.child, limit)
    }

    /// Closes its stdin and waits for its end.
    pub fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.close();
        self.ended(limit)
    }

    /// Closes its stdin; returns the rest of what it prints, and how it ends.
    #[must_use]
    pub fn finish(mut self) -> Output {
        self.close();
        let mut stdout = Vec::new();
        self.take_output().read_to_end(&mut stdout).expect("its stdout can be read");
        canary::check("what a program wrote to stdout", &stdout);
        let status = self.child.wait().expect("a child");
        Output { status, stdout, stderr: self.said().into_bytes() }
    }
}

impl Drop for Running {
    /// Asks it to end what it runs, and waits for that.
    fn drop(&mut self) {
        self.close();
        self.hang_up();
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if self.ended(Duration::from_secs(5)).is_none() {
                self.kill();
            }
        }
        // A second panic would end all tests.
        if !std::thread::panicking() {
            let _ = self.said();
        }
    }
}

/// A test run from a terminal must not be asked on it.
pub fn without_terminal(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    #[expect(unsafe_code, reason = "code between fork and exec has no safe form")]
    // SAFETY: setsid is one system call; it neither allocates nor locks.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(|_| ()).map_err(Into::into))
    }
}

/// Sends a signal by its name without SIG.
pub fn signal(process: &str, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), process.trim()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal was not sent");
}
