//! Panes: found by name or id, made, ended.

use super::commands::{self, Command};
use super::condition::Prompt;
use super::names::{self, SHARED};
use super::screen::{self, Door as _, View, said};
use super::server::FIELD;
use super::shell::{CELL, Wanted, mark};
use super::{GONE, Session, Tmux};
use backend::cell::Profile;
use backend::terminals::Terminal;
use base::envelope::{Failure, Kind};
use futures_util::future::BoxFuture;
use policy::shell::AdmittedAction;
use policy::typing::AdmittedInput;
use std::path::Path;
use std::sync::Arc;

/// Which pane is meant, as a caller names it. Nothing: the shared one, or that of the last command (`extra.rs`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    pub session: Option<String>,
    pub pane: Option<String>,
    /// As tmux writes it: `%3`, `build`, `build:server`.
    pub target: Option<String>,
}

/// A pane that is there.
pub struct Pane {
    pub(super) session: Arc<Session>,
    pub(super) number: u32,
    pub(super) name: String,
    /// Which cell its shell has to be in when it is used; none says that it does not matter.
    pub(super) mark: Option<String>,
    /// That cell.
    pub(super) cell: Option<Arc<Profile>>,
    /// It was made just now.
    pub(super) created: bool,
    pub notices: Vec<String>,
}

/// What a guest learns of a pane.
pub struct Place {
    pub session: String,
    pub pane: String,
    pub id: String,
    pub created: bool,
    pub notices: Vec<String>,
}

/// One line of the inventory.
pub(super) struct Entry {
    number: u32,
    name: String,
    /// Which cell its shell is in.
    cell: String,
    session: String,
    owner: String,
    workspace: String,
    /// What it runs.
    process: String,
}

impl Entry {
    fn is_of(&self, owner: &str, workspace: &str) -> bool {
        self.owner == owner && self.workspace == workspace
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    /// It has this name, and is not the pane of this number.
    pub(super) fn is_other(&self, name: &str, number: u32) -> bool {
        self.name == name && self.number != number
    }

    /// The pane, once its shell is one that will do.
    async fn found(self, session: Arc<Session>, wanted: Wanted<'_>, mut notices: Vec<String>) -> Result<Pane, Failure> {
        let Self { number, name, cell, process, .. } = self;
        let (number, told) = session.confine(number, &name, wanted, (&cell, &process)).await?;
        notices.extend(told);
        let mark = (!wanted.is_for_looks).then(|| mark(wanted.cell).to_owned());
        Ok(Pane { session, number, name, mark, cell: wanted.cell.cloned(), created: false, notices })
    }
}

impl Pane {
    pub fn place(self) -> Place {
        let id = self.session.pane_id(self.number);
        let Self { name, created, notices, .. } = self;
        Place { session: self.session.name.clone(), pane: name, id, created, notices }
    }

    /// `shared of toolcrib-agent`, for people.
    pub fn shown(&self) -> String {
        format!("{} of {}", self.name, self.session.name)
    }

    /// A pane that is made beside it, for people.
    pub fn shown_beside(&self) -> String {
        format!("a new one of {}", self.session.name)
    }

    /// The failure says that the pane is gone, or that our client was detached; then it is found anew, as long as nothing was typed.
    pub fn is_gone(&self, failure: &Failure) -> bool {
        let is_gone = failure.message == GONE;
        if is_gone {
            self.session.learn(&self.name, None);
        }
        is_gone || self.session.is_left_by(failure)
    }

    /// Another host may have given the pane another shell since it was found, or its memory may not be bounded any more: for whoever wanted the
    /// one before, it is gone. `cell` and `process` are what it has now.
    pub(super) fn check_cell(&self, cell: &str, process: &str) -> Result<(), Failure> {
        let Some(mark) = &self.mark else { return Ok(()) };
        let is_bounded = self.cell.as_ref().is_none_or(|profile| self.session.place.bounds(profile, process));
        if mark == cell && is_bounded { Ok(()) } else { Err(Failure::failed(GONE)) }
    }

    pub fn is_shared(&self) -> bool {
        self.name == SHARED
    }

    /// Takes what the pane shows.
    pub fn capture<'a>(&'a self, view: &'a View) -> BoxFuture<'a, Result<(String, Option<String>), Failure>> {
        Box::pin(async move { screen::capture(&self.session.client, self.number, view).await })
    }

    /// Types what a person or the settings admitted.
    pub fn send<'a>(&'a self, admitted: &'a AdmittedInput) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let asked = [commands::show(self.number, CELL), commands::ask(self.number, "#{pane_pid}")];
            let [cell, process] = self.session.client.run_all(asked).await?;
            self.check_cell(&cell.text, &process.text)?;
            self.session.client.run(&Prompt::touch(self.number)).await?;
            self.session.unfinished.typed(self.number, admitted.input());
            screen::send(&self.session.client, self.number, admitted.input()).await
        })
    }

    /// What was typed here after the last Enter.
    pub fn unfinished(&self) -> String {
        self.session.unfinished.line(self.number)
    }

    /// Its terminal; none where that is another machine's.
    pub fn terminal(&self) -> BoxFuture<'_, Result<Option<Terminal>, Failure>> {
        Box::pin(async move {
            if !self.session.is_here {
                return Ok(None);
            }
            let said = self.session.client.run(&commands::ask(self.number, "#{pane_tty}")).await?;
            Ok(Terminal::at(Path::new(said.trim())))
        })
    }
}

impl Selector {
    /// `session:pane`, for people.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.session.as_deref().unwrap_or_default(), self.pane.as_deref().unwrap_or(SHARED))
    }
}

impl Tmux {
    /// Full names for what a caller calls a pane.
    pub fn canonical<'a>(
        &'a self,
        session: Option<&'a str>,
        pane: &'a str,
    ) -> BoxFuture<'a, Result<Selector, Failure>> {
        Box::pin(async move {
            let session = self.session_name(session).await?;
            Ok(Selector { session: Some(session), pane: Some(names::pane(Some(pane))?), target: None })
        })
    }

    /// Finds a pane whose shell is in this cell, or in none. The shared pane of the default session is made when it is missing; another one is
    /// not. One whose shell is confined otherwise gets another shell.
    pub fn find<'a>(
        &'a self,
        selector: &'a Selector,
        cell: Option<&'a Arc<Profile>>,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move { self.find_any(selector, Wanted { cell, is_for_looks: false }).await })
    }

    /// Finds a pane to look at, whatever its shell is confined to; one that is made is in this cell, or in none.
    pub fn look_for<'a>(
        &'a self,
        selector: &'a Selector,
        cell: Option<&'a Arc<Profile>>,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move { self.find_any(selector, Wanted { cell, is_for_looks: true }).await })
    }

    async fn find_any(&self, selector: &Selector, wanted: Wanted<'_>) -> Result<Pane, Failure> {
        let session = self.session_name(selector.session.as_deref()).await?;
        let before = self.sessions.lock().await.get(&session).cloned();
        let found = self.find_once(selector, wanted).await;
        match (&found, before) {
            // A person who detaches all clients of a session detaches ours as well, and it learns of that with the next question.
            (Err(failure), Some(before)) if before.is_left_by(failure) => self.find_once(selector, wanted).await,
            // A session may be gone because its shell could not be confined.
            (Err(failure), _) if failure.kind == Kind::Unavailable => {
                Err(self.explained(failure.clone(), wanted.cell).await)
            }
            (Ok(_) | Err(_), _) => found,
        }
    }

    async fn find_once(&self, selector: &Selector, wanted: Wanted<'_>) -> Result<Pane, Failure> {
        let target = selector.target.as_deref().map(str::trim).filter(|target| !target.is_empty());
        let target = target.map(Target::of).transpose()?;
        let selector = match &target {
            Some(Target::Id { number, generation }) => return self.by_id(*number, *generation, wanted).await,
            Some(Target::Names(names)) => names,
            None => selector,
        };
        let session = self.session_name(selector.session.as_deref()).await?;
        let name = names::pane(selector.pane.as_deref())?;
        let may_make = self.is_default(&session).await?;
        let (session, _, notices) = self.session(&session, may_make, wanted.cell).await?;
        if let Some(entry) = session.panes_for(wanted.cell).await?.into_iter().find(|entry| entry.name == name) {
            return entry.found(session, wanted, notices).await;
        }
        if name == SHARED {
            let mut pane = self.make(session, SHARED, wanted.cell, notices).await?;
            pane.notices
                .push("the shared pane was gone and has been made anew: its state and what ran in it are lost".into());
            return Ok(pane);
        }
        Err(Failure::failed(format!("there is no pane `{name}` in session `{}`", session.name))
            .hint("omit `pane` for the shared one, or make it with tmux-create-pane"))
    }

    /// As [`Self::find`], but a pane that was found before is believed to be there: whoever uses it gets an error when it is not.
    pub fn find_again<'a>(
        &'a self,
        selector: &'a Selector,
        cell: Option<&'a Arc<Profile>>,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move {
            if selector.target.is_none() {
                let (session, name) =
                    (self.session_name(selector.session.as_deref()).await?, names::pane(selector.pane.as_deref())?);
                let session =
                    self.sessions.lock().await.get(&session).filter(|session| session.client.is_open()).cloned();
                let known = session.and_then(|session| Some((session.known(&name)?, session)));
                if let Some(((number, was), session)) = known.filter(|((_, was), _)| was == mark(cell)) {
                    let (mark, cell) = (Some(was), cell.cloned());
                    return Ok(Pane { session, number, name, mark, cell, created: false, notices: Vec::new() });
                }
            }
            let pane = self.find(selector, cell).await?;
            pane.session.learn(&pane.name, pane.mark.clone().map(|mark| (pane.number, mark)));
            Ok(pane)
        })
    }

    /// Finds a pane by its number; a number from an earlier result counts only for the server of that result.
    async fn by_id(&self, number: u32, generation: Option<&str>, wanted: Wanted<'_>) -> Result<Pane, Failure> {
        let home = &self.home().await?.session;
        let (session, ..) = self.session(home, true, wanted.cell).await?;
        let target = generation.map_or_else(|| format!("%{number}"), |of| format!("%{number}@{of}"));
        let missing = || self.missing(&target);
        if generation.is_some_and(|generation| generation != session.generation) {
            return Err(missing());
        }
        // Ids count for the whole server; those of other workspaces are not reached by one.
        let all = session.client.run(&list(commands::list_panes)).await?;
        let entry =
            entries(&all).find(|entry| entry.number == number && entry.is_of(&self.owner, home)).ok_or_else(missing)?;
        let (session, _, notices) = self.session(&entry.session, false, None).await?;
        entry.found(session, wanted, notices).await
    }

    /// Makes a pane, or finds it.
    pub fn create_pane<'a>(
        &'a self,
        selector: &'a Selector,
        admitted: &'a AdmittedAction,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move {
            let session = self.session_name(selector.session.as_deref()).await?;
            let name = names::pane(selector.pane.as_deref())?;
            let may_make = self.is_default(&session).await?;
            let (session, _, notices) = self.session(&session, may_make, admitted.cell()).await?;
            let mut panes = session.panes_for(admitted.cell()).await?;
            if let Some(at) = panes.iter().position(|entry| entry.name == name) {
                let wanted = Wanted { cell: admitted.cell(), is_for_looks: false };
                return panes.swap_remove(at).found(session, wanted, notices).await;
            }
            self.make_room(&session, &mut panes).await?;
            self.make(session, &name, admitted.cell(), notices).await
        })
    }

    /// Makes a session, or finds it, with its shared pane.
    pub fn create_session<'a>(
        &'a self,
        name: &'a str,
        admitted: &'a AdmittedAction,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move {
            let (session, created, notices) =
                self.session(&self.session_name(Some(name)).await?, true, admitted.cell()).await?;
            let selector = Selector { session: Some(session.name.clone()), ..Selector::default() };
            let pane = self.find(&selector, admitted.cell()).await?;
            Ok(Pane { created, notices, ..pane })
        })
    }

    /// Ends a session; returns its name.
    pub fn kill_session<'a>(&'a self, name: &'a str, _: &'a AdmittedAction) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let name = self.session_name(Some(name)).await?;
            if self.is_default(&name).await? {
                return Err(Failure::denied(format!("`{name}` is the default session, which stays"))
                    .hint("end a pane in it with tmux-kill-pane"));
            }
            self.end_session(&name).await?;
            Ok(name)
        })
    }

    /// Commands go to the shared pane of the default session, and what a person did there stays until a person ends it.
    ///
    /// # Errors
    ///
    /// `denied` if this is that pane.
    pub fn check_end<'a>(&'a self, selector: &'a Selector) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let session = self.session_name(selector.session.as_deref()).await?;
            if names::pane(selector.pane.as_deref())? != SHARED || !self.is_default(&session).await? {
                return Ok(());
            }
            Err(Failure::denied("the shared pane of the default session stays: commands go there")
                .hint("end what runs in it with send-keys `C-c` or `C-d`; a person can run `toolcrib panes restart`"))
        })
    }

    /// Ends the shared pane of a session, for the person whose session it is. The next command makes it anew.
    ///
    /// # Errors
    ///
    /// When it is not there, or tmux does not end it.
    pub fn end_shared<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (found, ..) = self.session(session, false, None).await?;
            let missing = || Failure::failed(format!("there is no shared pane in session `{session}`"));
            let number = found.shared().await?.ok_or_else(missing)?;
            // A session ends with its last pane, and our client with it.
            let ended = found.client.command(&commands::kill_pane(number)).await;
            self.forget(session).await;
            match ended {
                Ok(Err(reason)) => Err(said(&reason)),
                Ok(Ok(_)) | Err(_) => Ok(()),
            }
        })
    }

    /// Ends a pane.
    pub fn kill_pane<'a>(
        &'a self,
        selector: &'a Selector,
        admitted: &'a AdmittedAction,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move {
            let pane = self.look_for(selector, admitted.cell()).await?;
            if !pane.is_shared() {
                pane.session.client.run(&commands::kill_pane(pane.number)).await?;
                return Ok(pane);
            }
            // Commands land in this one when they name the session alone, so there always is one.
            let number = pane.session.replace(pane.number, &pane.name, admitted.cell()).await?;
            let notices = vec!["the shared pane has a new shell: its state and what ran in it are lost".into()];
            Ok(Pane { number, notices, ..pane })
        })
    }

    async fn make(
        &self,
        session: Arc<Session>,
        name: &str,
        cell: Option<&Arc<Profile>>,
        notices: Vec<String>,
    ) -> Result<Pane, Failure> {
        self.make_in(session, name, cell, notices, None).await
    }

    /// Makes a pane whose shell begins in a directory, or where shells begin.
    pub(super) async fn make_in(
        &self,
        session: Arc<Session>,
        name: &str,
        cell: Option<&Arc<Profile>>,
        notices: Vec<String>,
        directory: Option<&str>,
    ) -> Result<Pane, Failure> {
        let (number, mark) = session.open(name, cell, directory).await?;
        session.until_confined(number, cell).await?;
        let (mark, cell) = (Some(mark), cell.cloned());
        Ok(Pane { session, number, name: name.to_owned(), mark, cell, created: true, notices })
    }
}

/// A target, read as tmux reads one, but by names and numbers only: no pattern, format or `{last}`.
#[derive(Debug, PartialEq)]
pub(super) enum Target<'t> {
    /// `%3`, or `%3@1f2e3d4c` as results have it.
    Id { number: u32, generation: Option<&'t str> },
    /// `build` or `build:server`.
    Names(Selector),
}

impl<'t> Target<'t> {
    pub(super) fn of(text: &'t str) -> Result<Self, Failure> {
        Self::parse(text).ok_or_else(|| no_target(text))
    }

    fn parse(text: &'t str) -> Option<Self> {
        if let Some(id) = text.strip_prefix('%') {
            let (number, generation) = id.split_once('@').map_or((id, None), |(number, of)| (number, Some(of)));
            let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
            return Some(Self::Id { number, generation });
        }
        let (session, pane) = text.split_once(':').map_or((text, ""), |names| names);
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let names = Selector {
            session: Some(session.to_owned()),
            pane: Some(pane.to_owned()).filter(|pane| !pane.is_empty()),
            target: None,
        };
        (!session.is_empty() && is_name(session) && is_name(pane)).then_some(Self::Names(names))
    }
}

fn no_target(target: &str) -> Failure {
    Failure::invalid(format!("`{target}` is not a valid pane"))
        .hint("give `%3`, a session such as `build`, or session and pane such as `build:server`")
}

impl Session {
    fn known(&self, name: &str) -> Option<(u32, String)> {
        self.known.lock().get(name).cloned()
    }

    /// `pane` is its number, and which cell its shell is in.
    pub(super) fn learn(&self, name: &str, pane: Option<(u32, String)>) {
        let mut known = self.known.lock();
        match pane {
            Some(pane) => _ = known.insert(name.to_owned(), pane),
            None => _ = known.remove(name),
        }
    }

    /// The number of the shared pane, where it is there.
    pub(super) async fn shared(&self) -> Result<Option<u32>, Failure> {
        Ok(self.panes().await?.into_iter().find(|entry| entry.name == SHARED).map(|entry| entry.number))
    }

    /// All panes. Where commands are to be in this cell, that is the one in which a pane is already.
    async fn panes_for(&self, cell: Option<&Arc<Profile>>) -> Result<Vec<Entry>, Failure> {
        let panes = self.panes().await?;
        // One that this host does not bound gets another shell, so its cell is not joined either.
        let is_there =
            |entry: &&Entry, cell: &Profile| entry.cell == cell.digest() && self.place.bounds(cell, &entry.process);
        if let Some(cell) = cell
            && let Some(there) = panes.iter().find(|entry| is_there(entry, cell))
        {
            // Where that fails, the pane has one for itself.
            let _ = self.place.cell(cell, Some(&there.process));
        }
        Ok(panes)
    }

    pub(super) async fn panes(&self) -> Result<Vec<Entry>, Failure> {
        let listed = self.client.run(&list(|format| commands::list_panes_of(&self.id, format))).await?;
        Ok(entries(&listed).collect())
    }
}

fn list(those: impl Fn(&str) -> Command) -> Command {
    let fields = [
        "#{pane_id}",
        "#{pane_dead}",
        "#{@toolcrib_pane}",
        "#{@toolcrib_session}",
        "#{@toolcrib_owner}",
        "#{@toolcrib_workspace}",
        &format!("#{{{CELL}}}"),
        "#{pane_pid}",
    ];
    those(&fields.join(&FIELD.to_string()))
}

fn entries(listed: &str) -> impl Iterator<Item = Entry> {
    listed.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(FIELD).collect();
        let [id, dead, name, session, owner, workspace, cell, process] = fields[..] else { return None };
        // One that a person split off has no name; it is theirs, and counts for nothing. A dead one stays where somebody wants to see it.
        if name.is_empty() || dead == "1" {
            return None;
        }
        let owned = [name, session, owner, workspace, cell, process].map(str::to_owned);
        let [name, session, owner, workspace, cell, process] = owned;
        Some(Entry { number: number(id)?, name, cell, session, owner, workspace, process })
    })
}

pub(super) fn number(id: &str) -> Option<u32> {
    id.trim().strip_prefix('%')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_number_or_names() {
        let names = |session: &str, pane: Option<&str>| {
            let names = Selector { session: Some(session.into()), pane: pane.map(str::to_owned), target: None };
            Some(Target::Names(names))
        };
        assert_eq!(Target::parse("%3"), Some(Target::Id { number: 3, generation: None }));
        assert_eq!(Target::parse("%3@1f2e3d4c"), Some(Target::Id { number: 3, generation: Some("1f2e3d4c") }));
        assert_eq!(Target::parse("build"), names("build", None));
        assert_eq!(Target::parse("build:"), names("build", None));
        assert_eq!(Target::parse("build:dev-server"), names("build", Some("dev-server")));
        let odd = [
            "",
            ":",
            ":server",
            "%",
            "%x",
            "%+3",
            "%-1",
            "%99999999999",
            "=build:",
            "build:0.1",
            "{last}",
            "a*",
            "#{x}",
            "@1",
            "$0",
        ];
        for odd in odd {
            assert_eq!(Target::parse(odd), None, "{odd}");
        }
    }
}
