//! The pane that this program was started in, where the user chose it: it can be looked at and typed into, no more.
//!
//! Its server is the user's own, so nothing attaches to it: each command is a process. Whether anything may be typed there is decided in
//! `policy/typing.rs`.

use super::commands::{self, Command};
use super::condition::is_shell;
use super::pane::{Place, Selector};
use super::screen::{self, Door, View};
use super::server::run_to_end;
use async_trait::async_trait;
use backend::Backend;
use backend::terminals::Terminal;
use base::envelope::{Failure, Kind};
use base::input::Unfinished;
use base::text::sanitize;
use futures_util::future::BoxFuture;
use policy::typing::AdmittedInput;
use std::path::Path;
use std::sync::Arc;

/// The pane that this program was started in.
pub struct OwnPane {
    backend: Arc<dyn Backend>,
    socket: String,
    number: u32,
    unfinished: Unfinished,
}

/// What this program is called there.
const PROGRAM: &str = "toolcrib";

impl OwnPane {
    /// Takes the pane that `$TMUX` (socket, pid, session) and `$TMUX_PANE` (`%3`) name; None for what tmux does not write there.
    #[must_use]
    pub fn named(backend: Arc<dyn Backend>, tmux: &str, pane: &str) -> Option<Self> {
        let socket = tmux.split(',').next().filter(|socket| socket.starts_with('/'))?;
        let number = pane.strip_prefix('%')?.parse().ok()?;
        Some(Self { backend, socket: socket.to_owned(), number, unfinished: Unfinished::default() })
    }

    /// Where it is; an error for a caller that names another pane.
    pub fn place<'a>(&'a self, selector: &'a Selector) -> BoxFuture<'a, Result<Place, Failure>> {
        Box::pin(async move {
            let id = format!("%{}", self.number);
            let is_meant = selector.session.is_none()
                && selector.pane.is_none()
                && selector.target.as_ref().is_none_or(|target| *target == id);
            if !is_meant {
                let message = format!("there is only the pane that this program was started in, `{id}`");
                return Err(Failure::new(Kind::Unavailable, message)
                    .hint("omit `session`, `pane` and `target`; without `--own-pane` there are managed panes"));
            }
            let session = sanitize::line(&self.said("#{session_name}").await?).into_owned();
            Ok(Place { session, pane: id.clone(), id, created: false, notices: Vec::new() })
        })
    }

    /// Its terminal.
    pub fn terminal(&self) -> BoxFuture<'_, Result<Option<Terminal>, Failure>> {
        Box::pin(async move { Ok(Terminal::at(Path::new(&self.said("#{pane_tty}").await?))) })
    }

    /// The present directory of what runs there.
    pub fn directory(&self) -> BoxFuture<'_, Result<String, Failure>> {
        Box::pin(async move { self.said("#{pane_current_path}").await })
    }

    /// Finds a shell that reads a command, now or when this program has ended, which the user may have started there.
    pub fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let (screen, program) = (self.said("#{alternate_on}").await?, self.said("#{pane_current_command}").await?);
            let is_shell = is_shell(&program) || program == PROGRAM;
            if is_shell && screen != "1" {
                return Ok(());
            }
            let program = sanitize::line(&program);
            Err(Failure::new(
                Kind::Busy,
                format!("`{program}` runs in pane %{} and would read the command", self.number),
            )
            .hint("omit `wait`: the command then runs as a process of its own"))
        })
    }

    /// What tmux says of the pane in this format. Asked for a pane that is gone, it may speak of another one.
    async fn said(&self, format: &str) -> Result<String, Failure> {
        let id = format!("%{}", self.number);
        let said = self.command(&commands::ask(self.number, &format!("#{{pane_id}}|{format}"))).await?.ok();
        let said = said.and_then(|said| Some(said.strip_prefix(&id)?.strip_prefix('|')?.to_owned()));
        // A server that is about to end still answers, of no pane.
        said.ok_or_else(|| {
            Failure::new(Kind::Unavailable, format!("the pane that this program was started in, `{id}`, is gone"))
        })
    }

    /// What was typed there after the last Enter.
    pub fn unfinished(&self) -> String {
        self.unfinished.line(self.number)
    }

    pub fn capture<'a>(&'a self, view: &'a View) -> BoxFuture<'a, Result<(String, Option<String>), Failure>> {
        Box::pin(async move { screen::capture(self, self.number, view).await })
    }

    /// Types what a person or the settings admitted.
    pub fn send<'a>(&'a self, admitted: &'a AdmittedInput) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.unfinished.typed(self.number, admitted.input());
            screen::send(self, self.number, admitted.input()).await
        })
    }
}

#[async_trait]
impl Door for OwnPane {
    async fn command(&self, command: &Command) -> Result<Result<String, String>, Failure> {
        let argv = commands::run(&self.socket, [command.clone()]);
        let (status, stdout, stderr) = run_to_end(&*self.backend, argv).await?;
        let gone = ["no server running", "error connecting", "lost server"];
        if status != 0 && gone.iter().any(|word| stderr.contains(word)) {
            return Err(Failure::new(
                Kind::Unavailable,
                format!("the tmux server of this pane is gone: {}", stderr.trim()),
            ));
        }
        Ok(if status == 0 { Ok(stdout.strip_suffix('\n').unwrap_or(&stdout).to_owned()) } else { Err(stderr) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend::local::Local;

    #[test]
    fn only_what_tmux_writes_names_a_pane() {
        let pane = |tmux, pane| {
            let backend = Arc::new(Local::new("/".into(), "/".into(), "/".into(), Default::default()));
            OwnPane::named(backend, tmux, pane).map(|own| (own.socket.clone(), own.number))
        };
        assert_eq!(pane("/tmp/tmux-0/default,42,0", "%3"), Some(("/tmp/tmux-0/default".into(), 3)));
        for (tmux, id) in [("", "%3"), ("relative,42,0", "%3"), ("/s,1,0", "3"), ("/s,1,0", "%"), ("/s,1,0", "{last}")]
        {
            assert_eq!(pane(tmux, id), None, "{tmux} {id}");
        }
    }
}
