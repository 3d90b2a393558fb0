//! The server and its sessions: brought up when they are needed, found again by whoever comes later.

use super::client::Client;
use super::commands;
use super::screen::{Door as _, said};
use super::shell::{self, Start};
use super::{Session, Tmux, Version, wrapper};
use backend::cell::Profile;
use backend::{Backend, Finished, ProcessSpec, finish};
use base::envelope::{Failure, Kind};
use base::input::Unfinished;
use base::text::{sanitize, shell_quote};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where a socket's path ends for the kernel, in bytes.
const SOCKET_PATH: usize = 107;
/// The socket's name in the directory of ours; [`BRING_UP`] has it as well.
pub(super) const SOCKET: &str = "socket";
/// Fields in what the server prints of itself; no name of ours contains it.
pub(super) const FIELD: char = '|';

/// Makes directory, server and session, as far as they are not there. Arguments: directory, session, owner, the workspace's default session,
/// where its shells begin, shell, most sessions of the workspace, where panes lead elsewhere the command line for that, or nothing; the file
/// of what shells read once, and its text; `make` if a missing session may be made; the tmux words that make one, and those that
/// mark it, as words that are quoted for this shell; what comes before the path of its first shell. The environment and the program are known here alone, and stand behind these.
///
/// A session is known by its marks, as people rename them. Its environment is this host's own, not that of whoever started the server: the
/// server starts with nothing but what it needs itself, and each session is given the rest. The directory is entered, not named to tmux, which
/// would expand formats in it. The lines that source staged commands stay out of the histories that bash (`HISTIGNORE`) and zsh keep.
///
/// Prints the session's id, `made` for a new one, and of a login shell that panes do not use why; a status of its own says what is wrong.
///
/// Panes have the umask of the server, which is the person's.
const BRING_UP: &str = r##"
set -u
mask=$(umask)
umask 077
dir=$1 session=$2 owner=$3 workspace=$4 root=$5 shell=$6 most=$7
tmux=$(command -v tmux 2>/dev/null) || exit 10
mkdir -p -- "$dir" || exit 11
[ ! -L "$dir" ] && [ -O "$dir" ] || exit 11
if [ -n "$(find "$dir" -prune \( -perm -020 -o -perm -002 \))" ]; then
    rm -rf -- "$dir" && mkdir -- "$dir" || exit 11
fi
chmod 700 -- "$dir" || exit 11
find "$dir" -name '[ts]-*' -mtime +1 -exec rm -f {} + 2>/dev/null
staged=${9%/*}
[ -d "$staged" ] || mkdir -p -- "$staged" || exit 11
[ -s "$9" ] || { printf %s "${10}" >"$9.$$" && mv -f -- "$9.$$" "$9" ; }
program=$8
if [ -n "$program" ]; then
    shell=/bin/sh
elif [ -z "$shell" ]; then
    login=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f7)
    shell=${login:-/bin/sh}
fi
case ${shell##*/} in bash | zsh | dash | ash | sh) ;; *) echo "unknown $shell" ; shell=/bin/sh ;; esac
[ -x "$shell" ] || { echo "missing $shell" ; shell=/bin/sh ; }
shell=${program:-$shell}
listed() {
    tmux -S "$dir/socket" list-sessions -F '#{@toolcrib_owner}|#{@toolcrib_workspace}|#{@toolcrib_session}|#{session_id}' 2>/dev/null
}
find_it() { listed | sed -n "s/^$owner|[^|]*|$session|//p" | head -n 1 ; }
id=$(find_it) fault=
if [ -z "$id" ]; then
    [ "${11}" = make ] || exit 17
    if [ "$session" != "$workspace" ]; then
        others=$(listed | grep "^$owner|$workspace|" | grep -vc "^$owner|$workspace|$workspace|")
        [ "$others" -lt $((most - 1)) ] || exit 12
    fi
    cd -- "$root" || exit 16
    marks=${13} cell=${14}
    # The user's own, where no program is looked for here that a command may have made.
    path=${TOOLCRIB_USERS_PATH-$PATH}
    eval "set -- ${12}"
    for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
        case $name in PWD | OLDPWD | SHLVL | _ | TERM | TOOLCRIB_USERS_PATH) continue ;; esac
        eval "[ -n \"\${$name+set}\" ] && value=\$$name" || continue
        [ "$name" != PATH ] || value=$path
        # At the end of a word it would end the command.
        case $value in *\;) value=${value%;}\\\; ;; esac
        set -- "$@" -e "$name=$value"
    done
    [ -n "${LC_CTYPE+set}" ] || set -- "$@" -e LC_CTYPE=
    set -- "$@" -e PAGER=cat -e GIT_PAGER=cat -e "HISTIGNORE= \\\\. '*/t-*" -e "HISTORY_IGNORE= \\\\. '*/t-*" \
        -e "TOOLCRIB_SESSION=$session" "exec $cell $shell"
    eval "set -- \"\$@\" \; $marks"
    fault=$(umask "$mask" && env -i PATH="$path" HOME="${HOME:-/}" LC_CTYPE="${LC_ALL:-${LC_CTYPE:-${LANG:-}}}" \
        "$tmux" -u -S "$dir/socket" -f /dev/null "$@" "$shell" 2>&1) &&
        echo made
    # Another host may have been quicker.
    id=$(find_it)
fi
if [ -z "$id" ]; then
    tmux -S "$dir/socket" has-session -t "=$session" 2>/dev/null && exit 14
    [ -z "$fault" ] || { echo "$fault" >&2 ; exit 13 ; }
    exit 15
fi
echo "id $id"
"##;

/// Prints the shell for panes that lead elsewhere.
const SHELL_INSIDE: &str =
    r#"command -v bash || case $(readlink -f /bin/sh) in */bash) echo /bin/bash ;; *) echo /bin/sh ;; esac"#;
/// Becomes that shell, as a login shell.
const BECOME_SHELL: &str = r#"PAGER=cat GIT_PAGER=cat; export PAGER GIT_PAGER; exec "$0" -l"#;
/// Makes a directory that is this user's alone, with a file in it of what shells read once.
const PRIVATE_DIRECTORY: &str = r#"umask 077
mkdir -p -- "$1" && [ ! -L "$1" ] && [ -O "$1" ] && chmod 700 -- "$1" || exit 1
[ -s "$2" ] || { printf %s "$3" >"$2.$$" && mv -f -- "$2.$$" "$2" ; }"#;

/// What bringing up a session returned.
struct Up {
    /// What the server knows it by.
    id: String,
    made: bool,
    notices: Vec<String>,
}

impl Tmux {
    /// The directory of the socket and of staged commands: absolute, this user's alone.
    async fn state(&self) -> Result<String, Failure> {
        let state = self.backend.facts().await?.tmux();
        state.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::new(Kind::Unavailable, format!("`{}` is not UTF-8, so tmux cannot use it", state.display()))
                .hint("set XDG_STATE_HOME to another path")
        })
    }

    pub(super) async fn socket(&self) -> Result<String, Failure> {
        Ok(format!("{}/{SOCKET}", self.state().await?))
    }

    /// A session of ours, brought up when it is missing and may be made. Says whether it was made just now, and what else there is to say.
    pub(super) async fn session(
        &self,
        name: &str,
        may_make: bool,
        cell: Option<&Arc<Profile>>,
    ) -> Result<(Arc<Session>, bool, Vec<String>), Failure> {
        let mut sessions = self.sessions.lock().await;
        if let Some(session) = sessions.get(name).filter(|session| session.client.is_open()) {
            return Ok((session.clone(), false, Vec::new()));
        }
        let was_lost = sessions.remove(name).is_some();
        let mut up = match self.bring_up(name, may_make, cell).await {
            Ok(up) => up,
            Err(failure) => return Err(self.explained(failure, cell).await),
        };
        if was_lost && up.made {
            up.notices
                .push("the session was gone and has been made anew: its state and what ran in it are lost".into());
        }
        let session = match self.attach(name, &up.id).await {
            Ok(session) => Arc::new(session),
            Err(failure) => return Err(self.explained(failure, cell).await),
        };
        if up.made {
            match session.shared().await {
                Ok(Some(shared)) => session.until_confined(shared, cell).await?,
                Ok(None) => {}
                Err(failure) => return Err(self.explained(failure, cell).await),
            }
        }
        sessions.insert(name.to_owned(), session.clone());
        Ok((session, up.made, up.notices))
    }

    /// Says why a shell that has just ended could not be confined, if that is why.
    pub(super) async fn explained(&self, failure: Failure, cell: Option<&Arc<Profile>>) -> Failure {
        let server = match cell {
            Some(cell) if cell.memory.is_some() => self.server().await,
            Some(_) | None => None,
        };
        shell::explained(failure, cell, server.as_deref()).await
    }

    /// The number of the server, where it is there.
    async fn server(&self) -> Option<String> {
        let ask = commands::run(&self.socket().await.ok()?, [commands::ask_of_client("#{pid}")]);
        let (status, stdout, _) = run_to_end(&*self.backend, ask).await.ok()?;
        (status == 0).then(|| stdout.trim().to_owned())
    }

    /// The version of tmux that is there.
    ///
    /// # Errors
    ///
    /// When there is none, or it does not say.
    pub fn version(&self) -> BoxFuture<'_, Result<Version, Failure>> {
        Box::pin(async move {
            let (status, stdout, _) = run_to_end(&*self.backend, commands::version()).await?;
            Version::read(&stdout).filter(|_| status == 0).ok_or_else(|| no_tmux(self.backend.name()))
        })
    }

    /// Forgets a session that was ended.
    pub(super) async fn forget(&self, name: &str) {
        self.sessions.lock().await.remove(name);
    }

    /// Makes a session where it is missing and may be made.
    async fn bring_up(&self, name: &str, may_make: bool, cell: Option<&Arc<Profile>>) -> Result<Up, Failure> {
        let missing = || {
            Failure::failed(format!("there is no session `{name}`"))
                .hint("omit `session` for the default one, or make it with tmux-create-session")
        };
        // Of a session that is there its panes tell which cell to join; so none is made before that is known.
        if (cell.is_some() || !may_make)
            && let Some(up) = self.find_or_make(name, None).await?
        {
            return Ok(up);
        }
        if !may_make {
            return Err(missing());
        }
        let (own, root) = (self.backend.facts().await?.own.clone(), &self.home().await?.root);
        let start = shell::start(cell, &*self.backend, &own, root)?;
        self.find_or_make(name, Some(&start)).await?.ok_or_else(missing)
    }

    /// Finds a session, or makes it where it is said how; none where it is missing.
    async fn find_or_make(&self, name: &str, start: Option<&Start>) -> Result<Option<Up>, Failure> {
        let (state, socket) = (self.state().await?, self.socket().await?);
        if socket.len() > SOCKET_PATH {
            let message = format!("`{socket}` is too long for a socket (limit: {SOCKET_PATH} bytes)");
            return Err(Failure::new(Kind::Unavailable, message).hint("set XDG_STATE_HOME to a shorter path"));
        }
        let (most, home) = (self.max_sessions.to_string(), self.home().await?);
        let program = self.program_inside().await?;
        let library = format!("{}/{}", self.staged(name).await?, wrapper::library_name());
        let text = wrapper::library(&library);
        let before = ["/bin/sh", "-c", BRING_UP, "sh", &state, name, &self.owner, &home.session].map(OsString::from);
        let make = if start.is_some() { "make" } else { "" };
        let (cell, mark) = start.map_or(("", ""), |start| (&start.before, &start.mark));
        let behind = [&self.shell, &most, &program, &library, &text, make].map(OsString::from);
        let marks = commands::mark_session(name, &self.owner, &home.session, mark);
        let tmux = [commands::make_session(name), marks].map(|words| OsString::from_vec(shell_quote::words(&words)));
        let argv = before
            .into_iter()
            .chain([home.root.clone().into()])
            .chain(behind)
            .chain(tmux)
            .chain([cell.into()])
            .collect();
        let toolchains = start.map(|start| start.toolchains.clone()).unwrap_or_default();
        let spec = ProcessSpec { toolchains, ..ProcessSpec::own(argv) };
        let (status, stdout, stderr) = spec_to_end(&*self.backend, spec).await?;
        match status {
            0 => {
                let made = stdout.lines().any(|line| line == "made");
                let id = stdout.lines().find_map(|line| line.strip_prefix("id ")).unwrap_or_default().to_owned();
                let leads = self.inside.as_ref().filter(|_| made).map(|inside| inside.name());
                let leads = leads.map(|name| {
                    format!("panes are on this machine and their shells run on {name}: what runs in them ends with the connection")
                });
                Ok(Some(Up { id, made, notices: stdout.lines().filter_map(odd_shell).chain(leads).collect() }))
            }
            10 => Err(no_tmux(self.backend.name())),
            11 => Err(Failure::new(Kind::Unavailable, format!("`{state}` cannot be used as a private directory"))
                .hint("it must belong to you and must not be a link")),
            12 => {
                let instead = "end one with tmux-kill-session";
                let hint = self.remedies.raise("tmux.max_sessions", self.max_sessions, instead);
                Err(Failure::limit(format!("limit: tmux sessions of this workspace {most}, and all are in use"))
                    .hint(hint))
            }
            14 => Err(Failure::denied(format!("the session `{name}` exists, but does not belong to this agent"))
                .hint("choose another name")),
            15 => Err(Failure::new(Kind::Unavailable, "the shell of the session ended as soon as it began")
                .hint("its start-up files may end it: fix them, or set `default_shell` under [tmux]")),
            16 => Err(Failure::new(Kind::Unavailable, format!("`{}` cannot be entered", home.root.display()))
                .hint("the shells of this workspace begin there; start in another directory")),
            17 => Ok(None),
            _ => {
                Err(Failure::new(Kind::Unavailable, format!("tmux does not start: {}", sanitize::line(stderr.trim()))))
            }
        }
    }

    /// The command line by which panes lead elsewhere; empty where they do not.
    async fn program_inside(&self) -> Result<String, Failure> {
        let Some(inside) = &self.inside else { return Ok(String::new()) };
        let (_, shell) = inside.run_script(SHELL_INSIDE, &[]).await?;
        let shell = String::from_utf8_lossy(&shell).trim().to_owned();
        let argv = inside.terminal(["/bin/sh", "-c", BECOME_SHELL, &shell].map(OsString::from).into()).await?;
        String::from_utf8(shell_quote::words(&argv)).map_err(|_| {
            Failure::new(
                Kind::Unavailable,
                format!("the command line for {} is not UTF-8, so tmux cannot use it", inside.name()),
            )
        })
    }

    /// The directory of a session's staged commands, where the shells of its panes run. Cells have those of their workspace, and nothing
    /// beside them.
    pub(super) async fn staged(&self, session: &str) -> Result<String, Failure> {
        let Some(inside) = &self.inside else {
            return Ok(format!("{}/{}/{session}", self.state().await?, self.home().await?.digest));
        };
        let own = inside.facts().await?.own.join("panes").display().to_string();
        let library = format!("{own}/{}", wrapper::library_name());
        let arguments = [&own, &library, &wrapper::library(&library)].map(OsString::from);
        match inside.run_script(PRIVATE_DIRECTORY, &arguments).await? {
            (0, _) => Ok(own),
            _ => Err(Failure::new(
                Kind::Unavailable,
                format!("`{own}` cannot be used as a private directory on {}", inside.name()),
            )),
        }
    }

    async fn attach(&self, name: &str, id: &str) -> Result<Session, Failure> {
        let argv = commands::control(&self.socket().await?, id);
        let (process, input) = self.backend.open(ProcessSpec::own(argv)).await?;
        let client = Client::open(process, input).await?;
        let said = client.run(&commands::ask_of_client("#{pid} #{start_time}|#{client_pid}|#{session_id}")).await?;
        let mut fields = said.split(FIELD);
        let mut field = || fields.next().unwrap_or_default();
        let (server, client_pid, id) = (field(), field(), field());
        let generation = hex::encode(&Sha256::digest(server.as_bytes())[..4]);
        Ok(Session {
            name: name.to_owned(),
            id: id.to_owned(),
            generation,
            client_pid: client_pid.to_owned(),
            directory: self.staged(name).await?,
            own: self.backend.facts().await?.own.clone(),
            root: self.home().await?.root.clone(),
            place: self.inside.as_ref().unwrap_or(&self.backend).clone(),
            inside: self.inside.clone(),
            turns: parking_lot::Mutex::default(),
            known: parking_lot::Mutex::default(),
            unfinished: Unfinished::default(),
            left: self.left.clone(),
            is_here: self.backend.is_this_machine(),
            client,
        })
    }

    /// Ends a session with all that runs in it.
    ///
    /// # Errors
    ///
    /// When it does not exist, or is not ours.
    pub fn end_session<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (session, ..) = self.session(name, false, None).await?;
            // The client is of the session that it ends, so its answer may never come.
            let ended = session.client.command(&commands::kill_session(&session.id)).await;
            self.forget(name).await;
            match ended {
                Ok(Err(reason)) => Err(said(&reason)),
                _ => Ok(()),
            }
        })
    }

    /// Whether this is our server, as `$TMUX` names it: socket, pid, session.
    pub fn owns<'a>(&'a self, server: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.socket().await.is_ok_and(|socket| server.split(',').next() == Some(&socket)) })
    }
}

/// Runs a program of tmux's, or a script of ours about it, to its end: status, standard output and error.
pub(crate) async fn run_to_end(backend: &dyn Backend, argv: Vec<OsString>) -> Result<(i32, String, String), Failure> {
    spec_to_end(backend, ProcessSpec::own(argv)).await
}

async fn spec_to_end(backend: &dyn Backend, spec: ProcessSpec) -> Result<(i32, String, String), Failure> {
    let mut process = backend.start(spec).await?;
    process.begun().await?;
    let no_answer = |what: String| Failure::new(Kind::Unavailable, format!("tmux {what}"));
    let Finished { status, stdout, stderr } = tokio::time::timeout(PATIENCE, finish(process))
        .await
        .map_err(|_| no_answer(format!("did not answer within {} s", PATIENCE.as_secs())))?
        .map_err(|error| no_answer(format!("did not answer: {error}")))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((status, text(stdout), text(stderr)))
}

pub(super) fn no_tmux(backend: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{backend} has no tmux")).hint("install tmux there, or pass `--no-tmux`")
}

pub(super) fn no_room(backend: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{backend} has no writable directory for tmux"))
        .hint("set HOME, XDG_STATE_HOME or TMPDIR there to a writable directory, or pass `--no-tmux`")
}

/// The notice for a login shell that panes do not use.
fn odd_shell(line: &str) -> Option<String> {
    let (what, shell) = line.split_once(' ')?;
    match what {
        "unknown" => Some(format!("`{shell}` does not run POSIX scripts, so panes run /bin/sh")),
        "missing" => Some(format!("`{shell}` is not there, so panes run /bin/sh")),
        _ => None,
    }
}
