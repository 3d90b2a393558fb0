//! The pane that this program was started in, where there is no managed tmux: it can be looked at and typed into, no more.
//!
//! Its server is the user's own, so nothing attaches to it: each command is a process.

use super::pane::{Place, Selector};
use super::screen::{self, Door, Input, View};
use super::server::run_to_end;
use crate::backend::Backend;
use crate::envelope::{Failure, Kind};
use crate::policy::shell::AdmittedAction;
use crate::sanitize;
use async_trait::async_trait;
use std::ffi::OsString;
use std::sync::Arc;

/// The pane that this program was started in.
pub struct OwnPane {
    backend: Arc<dyn Backend>,
    socket: String,
    number: u32,
}

impl OwnPane {
    /// Takes the pane that `$TMUX` (socket, pid, session) and `$TMUX_PANE` (`%3`) name; None for what tmux does not write there.
    #[must_use]
    pub fn named(backend: Arc<dyn Backend>, tmux: &str, pane: &str) -> Option<Self> {
        let socket = tmux.split(',').next().filter(|socket| socket.starts_with('/'))?;
        let number = pane.strip_prefix('%')?.parse().ok()?;
        Some(Self { backend, socket: socket.to_owned(), number })
    }

    /// Where it is; a caller that names another place is told that there is none.
    pub(crate) async fn place(&self, selector: &Selector) -> Result<Place, Failure> {
        let id = format!("%{}", self.number);
        let is_meant = selector.session.is_none()
            && selector.pane.is_none()
            && selector.target.as_ref().is_none_or(|target| *target == id);
        if !is_meant {
            let message = format!("there is only the pane that this program was started in, `{id}`");
            return Err(Failure::new(Kind::Unavailable, message)
                .hint("leave `session`, `pane` and `target` away; without `--no-tmux` there are managed panes"));
        }
        let words = ["display-message", "-p", "-t", &id, "#{pane_id}|#{session_name}"].map(str::to_owned);
        match self.command(&words).await? {
            Ok(said) if said.starts_with(&format!("{id}|")) => {
                let session = sanitize::line(&said[id.len() + 1..]).into_owned();
                Ok(Place { session, pane: id.clone(), id, created: false, notices: Vec::new() })
            }
            _ => Err(Failure::failed(format!("the pane that this program was started in, `{id}`, is gone"))),
        }
    }

    pub(crate) async fn capture(&self, view: &View) -> Result<(String, Option<String>), Failure> {
        screen::capture(self, self.number, view).await
    }

    /// Types what a person or the settings admitted.
    pub(crate) async fn send(&self, input: &Input, _: &AdmittedAction) -> Result<(), Failure> {
        screen::send(self, self.number, input).await
    }
}

#[async_trait]
impl Door for OwnPane {
    async fn command(&self, words: &[String]) -> Result<Result<String, String>, Failure> {
        let argv = ["tmux", "-S", &self.socket].map(OsString::from);
        let argv = argv.into_iter().chain(words.iter().map(|word| argument(word).into())).collect();
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

/// An argument for tmux: one that ends in `;` would end the command.
fn argument(word: &str) -> String {
    word.strip_suffix(';').map_or_else(|| word.to_owned(), |before| format!("{before}\\;"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::local::Local;

    #[test]
    fn only_what_tmux_writes_names_a_pane() {
        let pane = |tmux, pane| {
            let backend = Arc::new(Local::new("/".into(), "/".into(), "/".into()));
            OwnPane::named(backend, tmux, pane).map(|own| (own.socket.clone(), own.number))
        };
        assert_eq!(pane("/tmp/tmux-0/default,42,0", "%3"), Some(("/tmp/tmux-0/default".into(), 3)));
        for (tmux, id) in [("", "%3"), ("relative,42,0", "%3"), ("/s,1,0", "3"), ("/s,1,0", "%"), ("/s,1,0", "{last}")]
        {
            assert_eq!(pane(tmux, id), None, "{tmux} {id}");
        }
    }

    #[test]
    fn a_semicolon_at_the_end_ends_nothing() {
        assert_eq!(["a;", ";", "a;b", "a\\;"].map(argument), ["a\\;", "\\;", "a;b", "a\\\\;"]);
    }
}
