//! Panes: found by name or id, made, ended.

use super::condition::Prompt;
use super::control::quoted;
use super::names::{self, SHARED};
use super::screen::{self, Input, View};
use super::server::FIELD;
use super::{GONE, Session, Tmux};
use crate::envelope::Failure;
use crate::policy::shell::AdmittedAction;
use std::sync::{Arc, PoisonError};

/// Which pane is meant, as a caller names it. Nothing: the shared one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) session: Option<String>,
    pub(crate) pane: Option<String>,
    /// An id: `%3@1f2e3d4c`.
    pub(crate) target: Option<String>,
}

/// A pane that is there.
pub(crate) struct Pane {
    pub(super) session: Arc<Session>,
    pub(super) number: u32,
    pub(super) name: String,
    /// It was made just now.
    pub(super) created: bool,
    pub(crate) notices: Vec<String>,
}

/// What a guest learns of a pane.
pub(crate) struct Place {
    pub(crate) session: String,
    pub(crate) pane: String,
    pub(crate) id: String,
    pub(crate) created: bool,
    pub(crate) notices: Vec<String>,
}

/// One line of the inventory.
struct Entry {
    number: u32,
    name: String,
    session: String,
    owner: String,
    workspace: String,
}

impl Entry {
    fn is_of(&self, owner: &str, workspace: &str) -> bool {
        self.owner == owner && self.workspace == workspace
    }
}

impl Pane {
    pub(crate) fn place(self) -> Place {
        let id = self.session.pane_id(self.number);
        let Self { name, created, notices, .. } = self;
        Place { session: self.session.name.clone(), pane: name, id, created, notices }
    }

    /// `shared of toolcrib-agent`, for people.
    pub(crate) fn shown(&self) -> String {
        format!("{} of {}", self.name, self.session.name)
    }

    /// The failure says that the pane is not there any more; then it is not believed in again.
    pub(crate) fn is_gone(&self, failure: &Failure) -> bool {
        let is_gone = failure.message == GONE;
        if is_gone {
            self.session.learn(&self.name, None);
        }
        is_gone
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.name == SHARED
    }

    /// Takes what the pane shows.
    pub(crate) async fn capture(&self, view: &View) -> Result<(String, Option<String>), Failure> {
        screen::capture(&self.session.client, self.number, view).await
    }

    /// Types what a person or the settings admitted.
    pub(crate) async fn send(&self, input: &Input, _: &AdmittedAction) -> Result<(), Failure> {
        self.session.client.run(&Prompt::touch(self.number)).await?;
        screen::send(&self.session.client, self.number, input).await
    }
}

impl Selector {
    /// `session:pane`, for people.
    pub(crate) fn shown(&self) -> String {
        format!("{}:{}", self.session.as_deref().unwrap_or_default(), self.pane.as_deref().unwrap_or(SHARED))
    }
}

impl Tmux {
    /// Full names for what a caller calls a pane.
    pub(crate) async fn canonical(&self, session: Option<&str>, pane: &str) -> Result<Selector, Failure> {
        let session = self.session_name(session).await?;
        Ok(Selector { session: Some(session), pane: Some(names::pane(Some(pane))?), target: None })
    }

    /// Finds a pane. The shared pane of the default session is made when it is missing; another one is not.
    pub(crate) async fn find(&self, selector: &Selector) -> Result<Pane, Failure> {
        if let Some(target) = selector.target.as_deref().map(str::trim).filter(|target| !target.is_empty()) {
            return self.by_id(target).await;
        }
        let session = self.session_name(selector.session.as_deref()).await?;
        let name = names::pane(selector.pane.as_deref())?;
        let (session, _, notices) = self.session(&session, self.is_default(&session).await?).await?;
        if let Some(entry) = session.panes().await?.into_iter().find(|entry| entry.name == name) {
            return Ok(Pane { session, number: entry.number, name, created: false, notices });
        }
        if name == SHARED {
            let mut pane = self.make(session, SHARED, notices).await?;
            pane.notices
                .push("the shared pane was gone and has been made anew: its state and what ran in it are lost".into());
            return Ok(pane);
        }
        Err(Failure::failed(format!("there is no pane `{name}` in session `{}`", session.name))
            .hint("leave `pane` away for the shared one, or make it with tmux-create-pane"))
    }

    /// As [`Self::find`], but a pane that was found before is believed to be there: whoever uses it is told when it is not.
    pub(crate) async fn find_again(&self, selector: &Selector) -> Result<Pane, Failure> {
        if selector.target.is_none() {
            let (session, name) =
                (self.session_name(selector.session.as_deref()).await?, names::pane(selector.pane.as_deref())?);
            let session = self.sessions.lock().await.get(&session).filter(|session| session.client.is_open()).cloned();
            let known = session.and_then(|session| Some((session.known(&name)?, session)));
            if let Some((number, session)) = known {
                return Ok(Pane { session, number, name, created: false, notices: Vec::new() });
            }
        }
        let pane = self.find(selector).await?;
        pane.session.learn(&pane.name, Some(pane.number));
        Ok(pane)
    }

    async fn by_id(&self, target: &str) -> Result<Pane, Failure> {
        let home = &self.home().await?.session;
        let (session, ..) = self.session(home, true).await?;
        let odd = || {
            Failure::invalid(format!("`{target}` is no pane's id, such as `{}`", session.pane_id(0)))
                .hint("ids are in the results of tmux-create-pane and send-keys; `session` and `pane` take names")
        };
        let (number, generation) = target.strip_prefix('%').and_then(|id| id.split_once('@')).ok_or_else(odd)?;
        let number: u32 = number.parse().map_err(|_| odd())?;
        let missing = || {
            Failure::failed(format!("there is no pane `{target}`"))
                .hint("leave `target` away for the shared pane, or make one with tmux-create-pane")
        };
        if generation != session.generation {
            return Err(missing());
        }
        // Ids count for the whole server; those of other workspaces are not reached by one.
        let all = session.client.run(&list("-a")).await?;
        let entry =
            entries(&all).find(|entry| entry.number == number && entry.is_of(&self.owner, home)).ok_or_else(missing)?;
        let (session, _, notices) = self.session(&entry.session, false).await?;
        Ok(Pane { session, number, name: entry.name, created: false, notices })
    }

    /// Makes a pane, or finds it.
    pub(crate) async fn create_pane(&self, selector: &Selector, _: &AdmittedAction) -> Result<Pane, Failure> {
        let session = self.session_name(selector.session.as_deref()).await?;
        let name = names::pane(selector.pane.as_deref())?;
        let (session, _, notices) = self.session(&session, self.is_default(&session).await?).await?;
        let panes = session.panes().await?;
        if let Some(entry) = panes.iter().find(|entry| entry.name == name) {
            return Ok(Pane { session, number: entry.number, name, created: false, notices });
        }
        if panes.len() as u64 >= self.max_panes {
            let message =
                format!("limit: tmux panes {} in session `{}`, and all are there", self.max_panes, session.name);
            return Err(Failure::limit(message).hint("end one with tmux-kill-pane, or raise `max_panes` under [tmux]"));
        }
        self.make(session, &name, notices).await
    }

    /// Makes a session, or finds it, with its shared pane.
    pub(crate) async fn create_session(&self, name: &str, _: &AdmittedAction) -> Result<Pane, Failure> {
        let (session, created, notices) = self.session(&self.session_name(Some(name)).await?, true).await?;
        let selector = Selector { session: Some(session.name.clone()), ..Selector::default() };
        let pane = self.find(&selector).await?;
        Ok(Pane { created, notices, ..pane })
    }

    /// Ends a session; returns its name.
    pub(crate) async fn kill_session(&self, name: &str, _: &AdmittedAction) -> Result<String, Failure> {
        let name = self.session_name(Some(name)).await?;
        if self.is_default(&name).await? {
            return Err(Failure::denied(format!("`{name}` is the default session, which stays"))
                .hint("end a pane in it with tmux-kill-pane"));
        }
        self.end_session(&name).await?;
        Ok(name)
    }

    /// Ends a pane.
    pub(crate) async fn kill_pane(&self, selector: &Selector, _: &AdmittedAction) -> Result<Pane, Failure> {
        let pane = self.find(selector).await?;
        let (client, number) = (&pane.session.client, pane.number);
        if !pane.is_shared() {
            client.run(&format!("kill-pane -t %{number}")).await?;
            return Ok(pane);
        }
        // Commands land in this one when they name none, so there always is one.
        client.run(&format!("respawn-pane -k -t %{number}")).await?;
        for option in ["@toolcrib_holder", Prompt::OPTION] {
            client.run(&format!("set-option -pu -t %{number} {option}")).await?;
        }
        let notices = vec!["the shared pane has a new shell: its state and what ran in it are lost".into()];
        Ok(Pane { notices, ..pane })
    }

    /// In a window of its own, so that every pane is wide.
    async fn make(&self, session: Arc<Session>, name: &str, notices: Vec<String>) -> Result<Pane, Failure> {
        let target = quoted(format!("{}:", session.id));
        // New panes run the shell that the session was made with.
        let shell = session.client.run(&format!("show-options -qv -t {target} @toolcrib_program")).await?;
        let made = session
            .client
            .run(&format!(
                "new-window -d -P -F '#{{pane_id}}' -t {target} -n {} {}",
                quoted(name),
                quoted(format!("exec {shell}"))
            ))
            .await?;
        let number = number(&made).ok_or_else(|| Failure::failed(format!("tmux made no pane: {made}")))?;
        session.client.run(&format!("set-option -p -t %{number} @toolcrib_pane {}", quoted(name))).await?;
        Ok(Pane { session, number, name: name.to_owned(), created: true, notices })
    }
}

impl Session {
    fn known(&self, name: &str) -> Option<u32> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    fn learn(&self, name: &str, pane: Option<u32>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match pane {
            Some(pane) => _ = known.insert(name.to_owned(), pane),
            None => _ = known.remove(name),
        }
    }

    async fn panes(&self) -> Result<Vec<Entry>, Failure> {
        let target = quoted(format!("{}:", self.id));
        let listed = self.client.run(&list(&format!("-s -t {target}"))).await?;
        Ok(entries(&listed).collect())
    }
}

fn list(scope: &str) -> String {
    let fields = [
        "#{pane_id}",
        "#{pane_dead}",
        "#{@toolcrib_pane}",
        "#{@toolcrib_session}",
        "#{@toolcrib_owner}",
        "#{@toolcrib_workspace}",
    ];
    let fields = fields.join(&FIELD.to_string());
    format!("list-panes {scope} -F '{fields}'")
}

fn entries(listed: &str) -> impl Iterator<Item = Entry> {
    listed.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(FIELD).collect();
        let [id, dead, name, session, owner, workspace] = fields[..] else { return None };
        // One that a person split off has no name; it is theirs, and counts for nothing. A dead one stays where somebody wants to see it.
        if name.is_empty() || dead == "1" {
            return None;
        }
        let [name, session, owner, workspace] = [name, session, owner, workspace].map(str::to_owned);
        Some(Entry { number: number(id)?, name, session, owner, workspace })
    })
}

fn number(id: &str) -> Option<u32> {
    id.trim().strip_prefix('%')?.parse().ok()
}
