//! What is typed into a pane's shell: one line that sources a file, which sources itself once more, and so the command, between two
//! invisible marks. One file is one write less a command.
//!
//! Terminals swallow the marks (OSC 133), so people see clean text. They carry a random nonce that is never shown: what a log or a remote
//! prints cannot end a command. Code in the same shell could read it; nothing keeps a shell from lying about itself.

use crate::quote::word;
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
