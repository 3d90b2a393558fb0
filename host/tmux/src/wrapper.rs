//! What is typed into a pane's shell: one line that sources a file, which sources itself once more, and so the command, between two
//! invisible marks. One file is one write less a command.
//!
//! Terminals swallow the marks (OSC 133), so people see clean text. They carry a random nonce that is never shown: what a log or a remote
//! prints cannot end a command. Code in the same shell could read it; nothing keeps a shell from lying about itself.

use base::text::sanitize;
use base::text::shell_quote::word;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Lines and characters of a command that people at the pane are shown.
const SHOWN_LINES: usize = 5;
const SHOWN_CHARS: usize = 400;

/// The files of a client's commands in one pane, on the backend.
pub(super) struct Files {
    /// What is sourced.
    pub(super) script: String,
    /// [`library`], which a shell reads once.
    pub(super) library: String,
}

/// What the typed line left on the screen, to be taken off it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trace {
    /// The rows above the cursor.
    Rows(usize),
    /// It may be anywhere on a screen that showed no prompt yet.
    Screen,
}

/// What is done to the screen before a command's own output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cleaning {
    pub(super) trace: Trace,
    /// A program died in the alternate screen and left it so.
    pub(super) leaves_alternate: bool,
}

impl Cleaning {
    /// As most commands need it.
    pub(super) const PLAIN: Self = Self { trace: Trace::Rows(1), leaves_alternate: false };

    /// As the terminal takes it.
    fn sequences(self) -> String {
        let leave = if self.leaves_alternate { "\x1b[?1049l" } else { "" };
        let clean = match self.trace {
            Trace::Rows(rows) => "\x1b[A\x1b[2K".repeat(rows),
            // What is cleared may be kept in the history, so that goes as well.
            Trace::Screen => "\x1b[H\x1b[J\x1b[3J".into(),
        };
        format!("{leave}{clean}")
    }
}

/// Builds the file that is sourced. Any POSIX shell reads it: what differs between shells is in the library.
///
/// The whole file is one compound command, the user's command a quoted word in it. A shell has to read it to its end before it runs any
/// of it, so that a file which a full disk cut short runs nothing. The command is behind a gate that opens when the first mark was
/// printed, and closes when the command begins: it cannot run outside of the marks, or twice.
///
/// An interrupt makes shells give up all that they source. Then the next prompt tells the end, by a hook that is there for as long as the
/// command runs; no trap is set, so the user's own stay what they are. Tracing (`set -x`) ends with the command, or it would show the
/// wrapper.
pub(super) fn script(command: &str, nonce: &str, files: &Files, cleaning: Cleaning) -> String {
    let [script, library, shown, command] = [files.script.as_str(), &files.library, &shown(command), command].map(word);
    let clean = cleaning.sequences();
    format!(
        "case ${{__toolcrib_n-}} in\n\
         {nonce}.) ;;\n\
         {nonce})\n\
         __toolcrib_n={nonce}.\n\
         eval {command} ;;\n\
         *)\n\
         __toolcrib_n=\n\
         case ${{__toolcrib_l-}} in {library}$$) ;; *) \\. {library} ;; esac\n\
         __toolcrib_a {nonce} '{clean}' {shown} && __toolcrib_n={nonce}\n\
         case $__toolcrib_n in\n\
         {nonce})\n\
         $__toolcrib_c . {script}\n\
         {{ __toolcrib_s=$?; set +xv; }} 2>/dev/null\n\
         __toolcrib_z ;;\n\
         *) __toolcrib_l= ;;\n\
         esac\n\
         return 0 ;;\n\
         esac\n"
    )
}

/// What a shell reads once: what differs between shells is in quotes that the others do not look into. `path` is where it lies.
///
/// It defines how to begin (`a`: arms the hook, prints the first mark, which names the shell's process), how to end (`z`), and what sources
/// (`c`). What it uses is named so that neither functions nor aliases of the user's can stand in for it.
pub(super) fn library(path: &str) -> String {
    let [bash, zsh, posix] = [BASH, ZSH, POSIX].map(|arm| word(&arm.replace("ESC", "\x1b").replace("BEL", "\x07")));
    let (path, common) = (word(path), word(COMMON));
    format!(
        "case ${{BASH_VERSION:+bash}}${{ZSH_VERSION:+zsh}} in\n\
         bash) eval {bash} ;;\n\
         zsh) eval {zsh} ;;\n\
         *) command eval {posix} ;;\n\
         esac\n\
         eval {common}\n\
         __toolcrib_l={path}$$\n"
    )
}

/// The library's name says what is in it: another version has another one.
pub(super) fn library_name() -> &'static str {
    static NAME: LazyLock<String> =
        LazyLock::new(|| format!("l-{}", hex::encode(&Sha256::digest(library("").as_bytes())[..8])));
    &NAME
}

const COMMON: &str = r#"__toolcrib_a() {
    __toolcrib_k=$1
    __toolcrib_h
    __toolcrib_p '%s\r\033[2m%s\033[0m\n\033]133;C;%s\007' "$2" "$3" "$1;$$"
}
__toolcrib_z() {
    __toolcrib_p '\033]133;D;%s;%s\007' "$__toolcrib_s" "$__toolcrib_k"
    __toolcrib_d 2>/dev/null
}
__toolcrib_e() {
    __toolcrib_s=$?
    __toolcrib_p '\033]133;D;%s;%s\007' "$__toolcrib_s" "$__toolcrib_k"
    __toolcrib_d 2>/dev/null
}"#;
/// Each of them defines how to print (`p`), how to put the hook in place (`h`), and how to take it away (`d`). Where a hook is forbidden,
/// the command runs without.
///
/// With a function of the user's named `builtin`, or with `enable -n printf`, printing takes another way: what it stores tells.
const BASH: &str = r#"__toolcrib_c=
__toolcrib_p() {
    case $__toolcrib_v in
    "$__toolcrib_k") builtin printf "$@" ;;
    *) command printf "$@" ;;
    esac
}
if [[ ${BASH_VERSINFO[0]}${BASH_VERSINFO[1]} -ge 51 ]]; then
    __toolcrib_h() {
        __toolcrib_v=
        builtin printf -v __toolcrib_v %s "$__toolcrib_k"
        eval "PROMPT_COMMAND[133]=__toolcrib_e" 2>/dev/null
    }
    __toolcrib_d() { unset "PROMPT_COMMAND[133]"; }
else
    __toolcrib_h() {
        __toolcrib_v=
        builtin printf -v __toolcrib_v %s "$__toolcrib_k"
        [[ ${PROMPT_COMMAND-} = __toolcrib_e ]] || __toolcrib_o=${PROMPT_COMMAND-}
        eval "PROMPT_COMMAND=__toolcrib_e" 2>/dev/null
    }
    __toolcrib_d() { [[ ${PROMPT_COMMAND-} != __toolcrib_e ]] || PROMPT_COMMAND=$__toolcrib_o; }
fi"#;
/// The sign of a line without an end (`PROMPT_SP`) would be printed before the hook runs, as if the command had printed it.
const ZSH: &str = r#"__toolcrib_c=
__toolcrib_p() {
    case $__toolcrib_v in
    "$__toolcrib_k") builtin printf "$@" ;;
    *) command printf "$@" ;;
    esac
}
__toolcrib_h() {
    __toolcrib_v= __toolcrib_o=
    builtin printf -v __toolcrib_v %s "$__toolcrib_k" 2>/dev/null
    if [[ -o promptsp ]]; then
        __toolcrib_o=1
        unsetopt promptsp
    fi
    eval "precmd_functions+=(__toolcrib_e)" 2>/dev/null
}
__toolcrib_d() {
    [[ -z $__toolcrib_o ]] || setopt promptsp
    precmd_functions=("${precmd_functions[@]:#__toolcrib_e}")
}"#;
/// Shells without hooks expand their prompt when they print it. What stands in it expands to nothing between commands: whatever saves and
/// restores the prompt meanwhile does no harm.
const POSIX: &str = r#"__toolcrib_c=command
__toolcrib_p() { command printf "$@"; }
__toolcrib_i='${__toolcrib_m:+$__toolcrib_m$?$__toolcrib_t}'
__toolcrib_h() {
    __toolcrib_m='ESC]133;D;' __toolcrib_t=";${__toolcrib_k}BEL"
    case ${PS1-} in
    "$__toolcrib_i"*) ;;
    *) command eval 'PS1=$__toolcrib_i${PS1-}' 2>/dev/null ;;
    esac
}
__toolcrib_d() {
    __toolcrib_m=
    PS1=${PS1#"$__toolcrib_i"}
}"#;

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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "only a shell can tell how a shell reads a file")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn files(directory: &std::path::Path) -> Files {
        let file = |name: &str| directory.join(name).display().to_string();
        std::fs::write(file("library"), library(&file("library"))).expect("a file");
        Files { script: file("script"), library: file("library") }
    }

    /// Sources a file of so many bytes of the script as a pane does; returns what was printed.
    fn source(shell: &str, text: &str, directory: &std::path::Path) -> String {
        std::fs::write(directory.join("script"), text).expect("a file");
        let mut shell = Command::new(shell);
        shell.arg("-c").arg(line(&files(directory))).current_dir(directory).stdin(Stdio::null());
        String::from_utf8_lossy(&shell.output().expect("it runs").stdout).into_owned()
    }

    /// A disk that is full leaves the beginning of a file, and nobody is told.
    #[test]
    fn a_file_that_was_cut_short_runs_nothing() {
        for shell in ["bash", "sh"] {
            let directory = tempfile::tempdir().expect("a directory");
            let command = "touch ran\ntouch ran-too # and what else it is to do";
            let whole = script(command, "0af9", &files(directory.path()), Cleaning::PLAIN);
            for end in (0..whole.len() - 1).step_by(if shell == "sh" { 13 } else { 97 }) {
                let printed = source(shell, &whole[..end], directory.path());
                assert!(!printed.contains("133;C"), "{shell}, {end}: {printed}");
                assert!(!directory.path().join("ran").exists(), "{shell}: it ran, cut at {end} of {}", whole.len());
            }
            let printed = source(shell, &whole, directory.path());
            assert!(printed.contains("133;C;0af9;") && printed.contains("133;D;0;0af9"), "{shell}: {printed}");
            assert!(directory.path().join("ran-too").exists(), "{shell}");
        }
    }

    /// Where the first mark cannot be printed, or what stands for the wrapper's words is a function of the user's.
    #[test]
    fn a_command_without_its_first_mark_cannot_be_reached() {
        let directory = tempfile::tempdir().expect("a directory");
        let whole = script("touch ran", "0af9", &files(directory.path()), Cleaning::PLAIN);
        for before in ["command() { return 1; }; builtin() { return 1; }\n", "exec 1>&-\n"] {
            for shell in ["bash", "sh"] {
                source(shell, &format!("{before}{whole}"), directory.path());
                assert!(!directory.path().join("ran").exists(), "{shell}: {before}");
            }
        }
    }
}
