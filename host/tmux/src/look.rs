//! What the shell of a pane is doing, asked of its kernel: marks and hooks can be lost, a process cannot hide what it reads.
//!
//! A process there answers, so this is asked only when something is in doubt: when no mark of an end comes though a shell is in the
//! foreground, when a holder has gone, when somebody may have begun a line.

use super::Session;
use base::envelope::Failure;
use std::ffi::OsString;

/// What a shell is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doing {
    /// It runs something.
    Runs,
    /// It waits at its prompt, or is gone.
    Waits,
    /// This system does not tell.
    Unknown,
}

/// Tells what a shell does. Arguments: how the files begin that it sources; its process, as it knows it itself, or an empty word; that of its
/// pane, or an empty word. In a cell a process has another number than outside; the pane's session tells which cell is meant.
///
/// dash, ash and zsh have the sourced file open for as long as they are at it; bash, zsh and ash have a line editor's terminal only at their
/// prompt (and in bash's `read -e`); dash sleeps there in the terminal's read. A shell that is not in the foreground waits for what is. That
/// may end while it is looked at, and the next one come: where they keep coming, as in a loop, the shell runs something. One that has ended, or is
/// about to, has no command line, unlike one of another user, of which nobody tells what it is.
const LOOK: &str = r#"script=$1 pid=$2 pane=$3
say() { echo "$1"; exit 0; }
stat() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    line=${line##*) }
    state=${line%% *}
    front=${line#* * * * * }
    front=${front%% *}
    group=${line#* * }
    group=${group%% *}
}
if [ -n "$pid" ] && [ -n "$pane" ]; then
    inner=$pid pid=0
    for file in $(grep -ls "^NSpid:.*[[:space:]]$inner\$" /proc/[0-9]*/status); do
        file=${file%/status}
        stat "${file#/proc/}" || continue
        session=${line#* * * }
        [ "${session%% *}" = "$pane" ] && pid=${file#/proc/}
    done
    pane=
fi
is_there() { [ -n "$(tr '\0' x <"/proc/$pid/cmdline" 2>/dev/null)" ]; }
named=$pid exe=
for try in 1 2 3 4 5; do
    pid=$named
    if ! stat "${pid:-$pane}"; then
        stat self || say unknown
        say waits
    fi
    if [ -z "$pid" ]; then
        pid=$front
        stat "$pid" || continue
    fi
    [ "$group" = "$front" ] || say runs
    exe=$(readlink "/proc/$pid/exe") && break
    { [ -n "$named" ] || is_there; } && say unknown
done
[ -n "$exe" ] || say runs
exe=${exe% (deleted)}
case ${exe##*/} in
bash | zsh | dash | ash | busybox) ;;
*sh) say unknown ;;
*) [ "$pid" = "$pane" ] && say unknown ; say runs ;;
esac
modes=" $(stty -a <"/proc/$pid/fd/0" 2>/dev/null | tr '\n;' '  ') "
has() { case $modes in *" $1 "*) return 0 ;; esac; return 1; }
case ${exe##*/} in
bash)
    has -icanon && has -icrnl && has -echo && say waits
    say runs ;;
*)
    open=$(ls -l "/proc/$pid/fd" 2>/dev/null)
    if [ -z "$open" ]; then
        is_there || [ -n "$named" ] || say runs
        say unknown
    fi
    case $open in *" -> $script"*) say runs ;; esac
    [ -z "$pane" ] && say waits
    if [ "${exe##*/}" = dash ]; then
        where=
        { read -r where <"/proc/$pid/wchan"; } 2>/dev/null
        case $state$where in S | S0 | S*wait_woken* | S*tty*) say waits ;; esac
        say runs
    fi
    has -icanon && has -echo && say waits
    say runs ;;
esac"#;

impl Session {
    /// What the shell does that has this process and took up a command in a pane.
    /// `pane` is the pane's own; empty where nobody knows it.
    pub(super) async fn look_at_shell(&self, number: u32, process: u32, pane: &str) -> Result<Doing, Failure> {
        let pane = if self.inside.is_some() { "" } else { pane };
        self.look(number, &process.to_string(), pane).await
    }

    /// What the shell in the foreground of a pane does that has this process. Where panes lead elsewhere, nobody tells.
    pub(super) async fn look_at_pane(&self, number: u32, process: &str) -> Result<Doing, Failure> {
        if self.inside.is_some() { Ok(Doing::Unknown) } else { self.look(number, "", process).await }
    }

    async fn look(&self, number: u32, shell: &str, pane: &str) -> Result<Doing, Failure> {
        let scripts = self.scripts(number);
        let (_, printed) = self.place.run_script(LOOK, &[scripts.as_str(), shell, pane].map(OsString::from)).await?;
        Ok(match String::from_utf8_lossy(&printed).trim() {
            "runs" => Doing::Runs,
            "waits" => Doing::Waits,
            _ => Doing::Unknown,
        })
    }
}
