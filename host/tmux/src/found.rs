//! What is there for people to see and to join: sessions, their panes, what runs in them and who holds one.
//!
//! Asked of the server by a process that ends, so that nothing has to be attached. What is found here decides nothing: whoever acts on a session
//! finds it again by its marks.

use super::Tmux;
use super::commands::{self, Command};
use super::condition::is_shell;
use super::names::{self, SHARED};
use super::server::{FIELD, run_to_end};
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::ffi::OsString;

/// A session of this agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    /// Its full name.
    pub session: String,
    /// What a person calls it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// It belongs to the workspace that this program was started in.
    pub here: bool,
    /// Where its shells begin.
    pub directory: String,
    /// People who are attached.
    pub people: u64,
    /// Its panes.
    pub panes: Vec<FoundPane>,
    #[serde(skip)]
    id: String,
}

/// A pane of such a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FoundPane {
    /// Its name; none for one that a person made.
    pub pane: Option<String>,
    /// The present directory of what runs in it.
    pub directory: String,
    /// The program in its foreground.
    pub program: String,
    /// The command of the agent that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The host whose command that is has gone.
    pub left_behind: bool,
    /// Its first process.
    #[serde(skip)]
    pub process: String,
    #[serde(skip)]
    id: String,
    #[serde(skip)]
    window: String,
}

/// What is listed, and in which format.
type Question = (fn(&str) -> Command, &'static str);

/// What the server is asked in one go. Each line begins with a letter and the id of what it is about; what may hold anything is alone and
/// last.
const QUESTIONS: [Question; 10] = [
    (commands::list_sessions, "s #{session_id} #{@toolcrib_owner}|#{@toolcrib_session}|#{@toolcrib_workspace}"),
    (commands::list_sessions, "n #{session_id} #{session_name}"),
    (commands::list_sessions, "d #{session_id} #{session_path}"),
    (commands::list_panes, "p #{session_id} #{pane_id} #{window_id} #{@toolcrib_pane}"),
    (commands::list_panes, "i #{pane_id} #{pane_pid}"),
    (commands::list_panes, "r #{pane_id} #{pane_current_command}"),
    (commands::list_panes, "w #{pane_id} #{pane_current_path}"),
    (commands::list_panes, "h #{pane_id} #{@toolcrib_holder}"),
    (commands::list_clients, "c #{session_id} #{client_control_mode}"),
    (commands::list_clients, "k #{client_pid} "),
];

impl Tmux {
    /// The sessions of this agent on this server, in all workspaces. None when there is no server.
    ///
    /// # Errors
    ///
    /// When tmux cannot be started.
    pub fn found(&self) -> BoxFuture<'_, Result<Vec<Found>, Failure>> {
        Box::pin(async move {
            let (socket, home) = (self.socket().await?, self.home().await?);
            let argv = commands::run_in_utf8(&socket, QUESTIONS.map(|(list, format)| list(format)));
            let (_, said, _) = run_to_end(&*self.backend, argv).await?;
            Ok(read(&said, &self.owner, &home.session))
        })
    }

    /// The session that a person means: of this workspace, or of another one by its full name.
    ///
    /// # Errors
    ///
    /// When it is not a valid name or does not exist, or the backend cannot be reached.
    pub fn meant<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<Found, Failure>> {
        Box::pin(async move {
            let (here, anywhere) = (self.session_name(name).await?, names::asked(&self.owner, name)?);
            let mut found = self.found().await?;
            found.sort_by_key(|found| found.session != here);
            let is_meant = |found: &Found| found.session == here || anywhere.as_ref() == Some(&found.session);
            found.into_iter().find(is_meant).ok_or_else(|| Failure::failed(format!("there is no session `{here}` yet")))
        })
    }

    /// The command that takes a person to a session, at its shared pane.
    ///
    /// # Errors
    ///
    /// When the backend cannot be reached.
    pub fn attach_command<'a>(&'a self, session: &'a Found) -> BoxFuture<'a, Result<Vec<OsString>, Failure>> {
        Box::pin(async move {
            let shared = session.panes.iter().find(|pane| pane.pane.as_deref() == Some(SHARED));
            let target = format!("{}:{}", session.id, shared.map(|pane| pane.window.as_str()).unwrap_or_default());
            self.backend.terminal(commands::attach(&self.socket().await?, &target)).await
        })
    }
}

fn read(said: &str, owner: &str, home: &str) -> Vec<Found> {
    let mut sessions: Vec<Found> = Vec::new();
    let hosts: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("k ")).map(str::trim).collect();
    for line in said.lines() {
        let mut words = line.splitn(3, ' ');
        let [sort, id, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
        if sort == "s" {
            sessions.extend(session(id, rest, owner, home));
        }
        if let Some(session) = sessions.iter_mut().find(|session| session.id == id) {
            session.learn(sort, rest);
        }
        if let Some(pane) = sessions.iter_mut().flat_map(|session| &mut session.panes).find(|pane| pane.id == id) {
            pane.learn(sort, rest, &hosts);
        }
    }
    sessions
}

fn session(id: &str, rest: &str, owner: &str, home: &str) -> Option<Found> {
    let fields: Vec<&str> = rest.split(FIELD).collect();
    let [of, name, workspace] = fields[..] else { return None };
    let found = || Found { session: name.into(), here: workspace == home, id: id.into(), ..Found::default() };
    (of == owner && !name.is_empty()).then(found)
}

fn pane(rest: &str) -> Option<FoundPane> {
    let fields: Vec<&str> = rest.split(' ').collect();
    let [id, window, name] = fields[..] else { return None };
    let name = Some(name.to_owned()).filter(|name| !name.is_empty());
    Some(FoundPane { pane: name, id: id.into(), window: window.into(), ..FoundPane::default() })
}

impl Found {
    fn learn(&mut self, sort: &str, rest: &str) {
        match sort {
            "n" => self.renamed = (rest != self.session).then(|| rest.to_owned()),
            "d" => rest.clone_into(&mut self.directory),
            // Hosts are clients in control mode, people are not.
            "c" => self.people += u64::from(rest == "0"),
            "p" => self.panes.extend(pane(rest)),
            _ => {}
        }
    }
}

impl FoundPane {
    fn learn(&mut self, sort: &str, rest: &str, hosts: &[&str]) {
        match sort {
            "i" => rest.clone_into(&mut self.process),
            "r" => rest.clone_into(&mut self.program),
            "w" => rest.clone_into(&mut self.directory),
            "h" if !rest.is_empty() => {
                // Client, nonce and the beginning of the command.
                let mut fields = rest.splitn(3, ' ');
                let client = fields.next().unwrap_or_default();
                let command = fields.nth(1).unwrap_or_default().to_owned();
                self.left_behind = !hosts.contains(&client);
                // A host that ended took its sign along or not; with a shell in the foreground its command is over.
                let is_over = self.left_behind && is_shell(&self.program);
                self.left_behind &= !is_over;
                self.command = Some(command).filter(|_| !is_over);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "s $0 toolcrib-a|toolcrib-a-api-01|toolcrib-a-api-01\n\
        s $1 toolcrib-b|toolcrib-b-api-01|toolcrib-b-api-01\n\
        s $2 ||\n\
        s $3 toolcrib-a|toolcrib-a-web-02-build|toolcrib-a-web-02\n\
        n $0 mine | yours\n\
        n $3 toolcrib-a-web-02-build\n\
        d $0 /srv/a b|c\n\
        p $0 %0 @0 shared\n\
        p $0 %4 @0 \n\
        p $3 %3 @3 shared\n\
        r %0 make\n\
        r %3 sleep\n\
        r %4 vim\n\
        w %0 /srv/a b|c/sub\n\
        h %0 4242 0af9 make all | tee log\n\
        h %3 999 0af9 sleep 9\n\
        c $0 0\n\
        c $0 1\n\
        k 4242 \n";

    #[test]
    fn sessions_of_this_agent_are_read_with_what_runs_in_them() {
        let found = read(SAID, "toolcrib-a", "toolcrib-a-api-01");
        let names: Vec<(&str, bool)> = found.iter().map(|found| (found.session.as_str(), found.here)).collect();
        assert_eq!(names, [("toolcrib-a-api-01", true), ("toolcrib-a-web-02-build", false)]);
        assert_eq!(
            (found[0].renamed.as_deref(), found[0].directory.as_str(), found[0].people),
            (Some("mine | yours"), "/srv/a b|c", 1)
        );
        assert_eq!(found[1].renamed, None);
        let panes = &found[0].panes;
        assert_eq!(
            (panes[0].pane.as_deref(), panes[0].program.as_str(), panes[0].directory.as_str()),
            (Some("shared"), "make", "/srv/a b|c/sub")
        );
        assert_eq!((panes[0].command.as_deref(), panes[0].left_behind), (Some("make all | tee log"), false));
        assert_eq!(
            (panes[1].pane.as_deref(), panes[1].command.as_deref(), panes[1].program.as_str()),
            (None, None, "vim")
        );
        assert!(found[1].panes[0].left_behind);
        let over = read(&SAID.replace("r %3 sleep", "r %3 bash"), "toolcrib-a", "toolcrib-a-api-01");
        assert_eq!((over[1].panes[0].command.as_deref(), over[1].panes[0].left_behind), (None, false));
    }

    #[test]
    fn a_name_that_holds_a_line_of_its_own_makes_no_session_of_ours_twice() {
        assert!(read("n $0 x\nd $0 y\np $0 %0 @0 shared\nh %0 1 2 3\n", "toolcrib-a", "h").is_empty());
    }
}
