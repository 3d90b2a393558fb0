//! What is typed into a pane's shell: one line that sources a file, which sources itself once more, and so the command, between two
//! invisible marks. One file is one write less a command.
//!
//! Terminals swallow the marks (OSC 133), so people see clean text. They carry a random nonce that is never shown: what a log or a remote
//! prints cannot end a command. Code in the same shell could read it; nothing keeps a shell from lying about itself.

use crate::sanitize;

/// Lines and characters of a command that people at the pane are shown.
const SHOWN_LINES: usize = 5;
const SHOWN_CHARS: usize = 400;

/// How the shell of a pane takes a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    Bash,
    Zsh,
    /// dash, the ash of busybox, and whatever else is like them.
    Posix,
}

/// The files of a client's commands in one pane, on the backend.
pub(super) struct Files {
    /// What is sourced.
    pub(super) script: String,
    /// `NONCE running`, then `NONCE STATUS`: what a later host finds when this one is gone.
    pub(super) state: String,
}

impl Shell {
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "bash" => Self::Bash,
            "zsh" => Self::Zsh,
            _ => Self::Posix,
        }
    }

    /// A program of this name reads what is typed as a POSIX shell does.
    pub(super) fn named(program: &str) -> Option<Self> {
        let name = program.trim_start_matches('-').rsplit('/').next()?;
        ["bash", "zsh", "dash", "ash", "sh", "ksh", "mksh", "busybox"].contains(&name).then(|| Self::of(name))
    }
}

/// Builds the file that is sourced: the wrapper, and behind it the command, which the wrapper reaches by sourcing the file again.
///
/// An interrupt ends the command alone, with status 130, and the end is told all the same. bash gives up all that it sources when it is
/// interrupted, so there the next prompt tells; where the prompt's commands can be a list (5.1 on), the user's own stay what they are. The
/// others run a trap. A line that was typed twice runs the command once. Tracing (`set -x`) ends with the command, or it would show the
/// wrapper; what the wrapper uses is named so that neither functions nor aliases of the user's can stand in for it.
pub(super) fn script(shell: Shell, command: &str, nonce: &str, files: &Files) -> String {
    let (script, state, shown) = (word(&files.script), word(&files.state), word(&shown(command)));
    let (builtin, arm, source, disarm) = match shell {
        Shell::Bash => ("builtin", BASH_ARM.replace("NONCE", nonce), "builtin .", "__toolcrib_d"),
        Shell::Zsh => ("builtin", TRAP.into(), "builtin .", "trap - INT"),
        Shell::Posix => ("command", TRAP.into(), "command .", "trap - INT"),
    };
    format!(
        "case ${{__toolcrib_n-}} in\n\
         {nonce}.) return 0 ;;\n\
         {nonce}) __toolcrib_n={nonce}. ;;\n\
         *)\n\
         __toolcrib_n={nonce}\n\
         {arm}\n\
         {builtin} printf '\\r\\033[A\\033[2K\\033[2m%s\\033[0m\\n\\033]133;C;{nonce}\\007' {shown}\n\
         {builtin} printf '%s\\n' '{nonce} running' >|{state}\n\
         {source} {script}\n\
         {{ __toolcrib_s=$?; set +xv; }} 2>/dev/null\n\
         {builtin} printf '\\033]133;D;%s;{nonce}\\007' \"$__toolcrib_s\"\n\
         {builtin} printf '{nonce} %s\\n' \"$__toolcrib_s\" >|{state}\n\
         {disarm}\n\
         return 0 ;;\n\
         esac\n\
         {command}\n"
    )
}

const TRAP: &str = "trap 'return 130' INT";
const BASH_ARM: &str = r#"__toolcrib_e() { printf '\033]133;D;130;NONCE\007'; __toolcrib_d; }
if [ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 51 ]; then
    __toolcrib_d() { unset 'PROMPT_COMMAND[133]'; unset -f __toolcrib_e __toolcrib_d; }
    PROMPT_COMMAND[133]=__toolcrib_e
else
    __toolcrib_p=${PROMPT_COMMAND-}
    __toolcrib_d() { [ "$PROMPT_COMMAND" != __toolcrib_e ] || PROMPT_COMMAND=$__toolcrib_p; unset -f __toolcrib_e __toolcrib_d; }
    PROMPT_COMMAND=__toolcrib_e
fi"#;

/// The line to type. It begins with a space: shells that are told to keep such lines out of their history do.
pub(super) fn line(files: &Files) -> String {
    format!(" \\. {}", word(&files.script))
}

/// The command as people at the pane see it.
fn shown(command: &str) -> String {
    let visible = sanitize::visible(command.trim_end());
    let mut shown: String = visible.lines().take(SHOWN_LINES).collect::<Vec<_>>().join("\n  ");
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(end);
    }
    let is_cut = visible.lines().count() > SHOWN_LINES || visible.chars().count() > SHOWN_CHARS;
    format!("$ {shown}{}", if is_cut { " …" } else { "" })
}

/// One word of a script.
pub(super) fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Finds what a command printed in what its pane printed: the bytes between the marks, and the status.
pub(super) struct Scanner {
    begin: Vec<u8>,
    end: Vec<u8>,
    held: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// The shell has not taken the command yet.
    Before,
    Running,
    Ended(i32),
}

/// What stands before the status in the second mark.
const END: &[u8] = b"\x1b]133;D;";
/// Digits of a status.
const STATUS_DIGITS: usize = 3;

impl Scanner {
    pub(super) fn new(nonce: &str) -> Self {
        let begin = format!("\x1b]133;C;{nonce}\x07").into_bytes();
        Self { begin, end: format!(";{nonce}\x07").into_bytes(), held: Vec::new(), state: State::Before }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Takes a piece of the pane's output and returns what is certain to be the command's. A line break is `\n` again.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        if self.state == State::Before {
            match find(&self.held, &self.begin) {
                Some(place) => {
                    self.held.drain(..place + self.begin.len());
                    self.state = State::Running;
                }
                None => {
                    let kept = self.held.len().min(self.begin.len() - 1);
                    self.held.drain(..self.held.len() - kept);
                }
            }
        }
        match self.state {
            State::Running => self.running(),
            _ => Vec::new(),
        }
    }

    fn running(&mut self) -> Vec<u8> {
        let mut certain = 0;
        while let Some(place) = find(&self.held[certain..], b"\x1b").map(|place| certain + place) {
            match self.end_at(place) {
                Mark::Is(status) => {
                    let output = plain(&self.held[..place]);
                    self.held.clear();
                    self.state = State::Ended(status);
                    return output;
                }
                Mark::MayBe => return self.release(place),
                Mark::No => certain = place + 1,
            }
        }
        self.release(self.held.len())
    }

    /// Hands out what is held up to here, but for a CR that may belong to a line break.
    fn release(&mut self, end: usize) -> Vec<u8> {
        let end = if self.held[..end].last() == Some(&b'\r') { end - 1 } else { end };
        let output = plain(&self.held[..end]);
        self.held.drain(..end);
        output
    }

    fn end_at(&self, place: usize) -> Mark {
        let rest = &self.held[place..];
        if rest.len() < END.len() {
            return if END.starts_with(rest) { Mark::MayBe } else { Mark::No };
        }
        let Some(rest) = rest.strip_prefix(END) else { return Mark::No };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > STATUS_DIGITS {
            return Mark::No;
        }
        let tail = &rest[digits..];
        if tail.len() < self.end.len() {
            return if self.end.starts_with(tail) { Mark::MayBe } else { Mark::No };
        }
        match std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok()) {
            Some(status) if tail.starts_with(&self.end) => Mark::Is(status),
            _ => Mark::No,
        }
    }
}

enum Mark {
    Is(i32),
    /// More has to come to tell.
    MayBe,
    No,
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, pattern)
}

/// Undoes what the terminal makes of line breaks.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(index + 1) != Some(&b'\n') {
            plain.push(*byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(pieces: &[&[u8]]) -> (Vec<u8>, State) {
        let mut scanner = Scanner::new("n1");
        let output = pieces.iter().flat_map(|piece| scanner.push(piece)).collect();
        (output, scanner.state())
    }

    #[test]
    fn what_stands_between_the_marks_is_the_output() {
        let stream =
            b"$ . w\r\n\x1b]133;C;n0\x07\x1b]133;C;n1\x07a\r\nb\x1b[1m\r\r\n\x1b]133;D;0;n2\x07\x1b]133;D;42;n1\x07$ ";
        assert_eq!(scan(&[stream]), (b"a\nb\x1b[1m\r\n\x1b]133;D;0;n2\x07".to_vec(), State::Ended(42)));
    }

    #[test]
    fn a_mark_that_is_not_whole_waits() {
        assert_eq!(scan(&[b"\x1b]133;C;n1\x07a\x1b]133;D;1"]), (b"a".to_vec(), State::Running));
        assert_eq!(scan(&[b"\x1b]133;C;n"]), (Vec::new(), State::Before));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "\r\n", "\r", "\n", "\x1b", "\x1b]133;D;", "\x1b]133;D;7;n", "\x1b]133;D;7;n2\x07", "\x1b]133;D;1234;n1\x07", "\x1b]133;D;;n1\x07", "\x1b[0m",
            ]), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let output = parts.concat();
            let stream = format!("\x1b]133;C;n1\x07{output}\x1b]133;D;3;n1\x07");
            let (left, right) = stream.as_bytes().split_at(cut.index(stream.len()));
            prop_assert_eq!(scan(&[left, right]), (plain(output.as_bytes()), State::Ended(3)));
        }
    }
}
