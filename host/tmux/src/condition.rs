//! What a pane is doing, as tmux tells it in one answer, and whether a command may be typed into it.

use super::client::Said;
use super::commands::{self, Command};
use super::hold::HOLDER;
use super::pane::Pane;
use super::server::FIELD;
use super::shell::CELL;
use super::wrapper::Trace;
use super::{GONE, Session};
use base::envelope::{Failure, Kind};
use std::fmt;

/// What a pane runs until its shell is there.
const STARTING: [&str; 4] = ["tmux", "toolcrib", "toolcrib-init", "bwrap"];
/// A person who typed so many seconds ago may go on typing.
const PERSON_SECONDS: u64 = 2;
/// A mode of tmux's that shows what was printed: leaving it disturbs nobody's work.
const LOOKING_BACK: [&str; 2] = ["copy-mode", "view-mode"];
/// Programs that read what is typed as a POSIX shell does.
const SHELLS: [&str; 8] = ["bash", "zsh", "dash", "ash", "sh", "ksh", "mksh", "busybox"];

/// The option of the server that grows whenever a person comes or leaves.
pub(super) const VISITS: &str = "@toolcrib_visits";
/// The option of a pane that keeps what that was when the pane was made.
pub(super) const MADE: &str = "@toolcrib_made";

/// What keeps that a pane has a shell that nobody has visited.
pub(super) fn made(pane: u32) -> Command {
    commands::set_expanded(pane, MADE, &format!("#{{{VISITS}}}"))
}

/// What a pane is doing.
pub(super) struct Condition {
    /// Client and nonce of who holds it, and the command's beginning.
    pub(super) holder: String,
    /// The mode of tmux's that it is in; empty for none.
    mode: String,
    pub(super) alternate: bool,
    /// Which cell its shell is in.
    pub(super) cell: String,
    program: String,
    /// The process that the pane runs: another one after it was respawned.
    pub(super) pid: String,
    pub(super) directory: String,
    /// Where the cursor is.
    pub(super) cursor: String,
    /// Columns of the pane.
    width: usize,
    /// What tells how often people have come to the server's sessions or left them, now and when the pane was made.
    pub(super) visits: String,
    made: String,
    /// Where it stood at the last prompt that was known to be empty, and when a line was typed there.
    pub(super) prompt: Prompt,
    /// When a person last typed at the session, and when one last typed or came; both in seconds since 1970, as the present is.
    typed: Option<u64>,
    active: Option<u64>,
    pub(super) now: u64,
}

/// What is known of the last prompt.
#[derive(Debug, PartialEq)]
pub(super) enum Prompt {
    /// Nothing was typed into the pane yet.
    Fresh,
    /// The cursor stood here when a line was typed, or could have been, at that time and after so many visits.
    Was { cursor: String, time: u64, visits: String },
    /// Keys were sent since.
    Touched,
}

impl Prompt {
    /// The option of a pane that keeps it, among all hosts.
    pub(super) const OPTION: &str = "@toolcrib_prompt";
    /// The one that keeps where the cursor was when the first line was typed; it counts until a prompt was seen.
    pub(super) const BEGAN: &str = "@toolcrib_began";
    /// Its value after keys were sent.
    pub(super) const TOUCHED: &str = "touched";
    /// The cursor's column, and whether something is under it.
    pub(super) const CURSOR: &str = "#{cursor_x}:#{?#{==:#{cursor_character}, },,#{?#{==:#{cursor_character},},,on}}";

    fn read(text: &str) -> Self {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (cursor, time, visits) = (word(), word().parse(), word());
        match time {
            Ok(time) => Self::Was { cursor, time, visits },
            Err(_) if text.is_empty() => Self::Fresh,
            Err(_) => Self::Touched,
        }
    }
}

/// When a line was typed: by the server's clock, and by the visits until then.
#[derive(Clone)]
pub(super) struct Since {
    time: u64,
    visits: String,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A program may have put anything into the option: it is not used as a format.
        let visits: String = self.visits.chars().filter(char::is_ascii_alphanumeric).collect();
        write!(f, "{} {visits}", self.time)
    }
}

impl Condition {
    /// What there is to ask.
    pub(super) fn asked(session: &Session, number: u32) -> [Command; 5] {
        let fields = [
            "#{pane_id}",
            "#{pane_dead}",
            "#{pane_mode}",
            "#{alternate_on}",
            "#{pane_pid}",
            Prompt::CURSOR,
            "#{pane_width}",
            &format!("#{{{CELL}}}"),
            &format!("#{{{HOLDER}}}"),
        ];
        let prompt = [
            &format!("#{{{VISITS}}}"),
            &format!("#{{{MADE}}}"),
            &format!("#{{?{prompt},#{{{prompt}}},#{{{began}}}}}", prompt = Prompt::OPTION, began = Prompt::BEGAN),
        ];
        let (fields, prompt) = (fields.join(&FIELD.to_string()), prompt.map(String::as_str).join(&FIELD.to_string()));
        let ask = |format: &str| commands::ask(number, format);
        let people = "#{client_control_mode} #{client_created} #{client_activity}";
        let people = commands::list_clients_of(&session.id, people);
        [ask(&fields), ask(&prompt), ask("#{pane_current_command}"), ask("#{pane_current_path}"), people]
    }

    /// From what the server said.
    pub(super) fn read(
        number: u32,
        [condition, prompt, program, directory, people]: [Said; 5],
    ) -> Result<Self, Failure> {
        // The last field may hold anything, as a program in the pane can set options; other such text has its own answer.
        let mut fields = condition.text.splitn(9, FIELD).map(str::to_owned);
        let mut field = || fields.next().unwrap_or_default();
        // Asked for a pane that is gone, the server says nothing, or speaks of another one; a dead one may stay on the screen.
        let is_there = field() == format!("%{number}") && field() == "0";
        if !is_there {
            return Err(Failure::failed(GONE));
        }
        let (mode, alternate, pid, cursor) = (field(), field() == "1", field(), field());
        let width = field().parse().unwrap_or_default();
        let (cell, holder) = (field(), field());
        let mut fields = prompt.text.splitn(3, FIELD).map(str::to_owned);
        let mut field = || fields.next().unwrap_or_default();
        let (visits, made, prompt) = (field(), field(), Prompt::read(&field()));
        let people_active: Vec<(u64, u64)> = people.text.lines().filter_map(person).collect();
        let active = people_active.iter().map(|(_, active)| *active).max();
        // To attach is not to type.
        let typed = people_active.iter().filter(|(came, active)| came != active).map(|(_, active)| *active).max();
        let (program, directory, now) = (program.text, directory.text, people.time);
        Ok(Self {
            holder,
            mode,
            alternate,
            cell,
            program,
            pid,
            directory,
            cursor,
            width,
            visits,
            made,
            prompt,
            typed,
            active,
            now,
        })
    }

    /// Now, as far as this goes.
    pub(super) fn since(&self) -> Since {
        Since { time: self.now, visits: self.visits.clone() }
    }

    pub(super) fn is_held_by(&self, sign: &str) -> bool {
        self.sign() == sign
    }

    /// Client and nonce of the holder.
    pub(super) fn sign(&self) -> &str {
        self.holder.match_indices(' ').nth(1).map_or(&self.holder, |(end, _)| &self.holder[..end])
    }

    /// What the holder runs.
    pub(super) fn command(&self) -> &str {
        self.holder.get(self.sign().len()..).unwrap_or_default().trim()
    }

    /// Its shell is not there yet, or nothing is in the foreground for a moment: then tmux tells what the pane was started with, in quotes.
    pub(super) fn is_starting(&self) -> bool {
        STARTING.contains(&self.program.as_str()) || self.program.starts_with('\'')
    }

    /// Nothing was typed into it yet, and its shell has shown no prompt: what is typed now is echoed where it falls, and once more after the
    /// prompt.
    pub(super) fn has_no_prompt(&self) -> bool {
        self.prompt == Prompt::Fresh && self.column() == Some(0)
    }

    /// What a line of so many characters takes on the screen. Where it begins is known while the cursor is at an empty prompt; else the
    /// least is taken, as one row more would be of what a command printed.
    pub(super) fn trace(&self, chars: usize) -> Trace {
        if self.has_no_prompt() {
            return Trace::Screen;
        }
        let is_at_prompt = self.prompt != Prompt::Touched && !self.is_elsewhere() && !self.alternate;
        let column = self.column().filter(|_| is_at_prompt && self.width > 0);
        Trace::Rows(column.map_or(1, |column| (column + chars).div_ceil(self.width)))
    }

    fn column(&self) -> Option<usize> {
        self.cursor.split(':').next()?.parse().ok()
    }

    /// It shows what was printed before; there, keys are the mode's commands.
    pub(super) fn looks_back(&self) -> bool {
        LOOKING_BACK.contains(&self.mode.as_str())
    }

    /// The cursor is not where it was at the last empty prompt.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(&self.prompt, Prompt::Was { cursor, .. } if *cursor != self.cursor)
    }

    /// Somebody may have begun a line that a command must not be appended to. Who came may have typed in the same second, and seconds are
    /// all that there is to compare.
    pub(super) fn may_have_line(&self) -> bool {
        match &self.prompt {
            Prompt::Fresh => self.active.is_some() || self.visits != self.made,
            // Somebody who has left may have typed before.
            Prompt::Was { time, visits, .. } => {
                self.is_elsewhere() || self.visits != *visits || self.active.is_some_and(|active| active >= *time)
            }
            Prompt::Touched => true,
        }
    }

    /// What is said of a program that has the alternate screen.
    pub(super) fn fills_screen(&self, pane: &Pane) -> Failure {
        Failure::new(Kind::Busy, format!("`{}` fills the screen of pane {}", self.program, pane.shown()))
            .hint("leave it with send-keys (`q`, `C-c`), or use another pane")
    }

    /// Its shell is in the foreground, and nothing covers it.
    pub(super) fn is_at_prompt(&self) -> bool {
        self.mode.is_empty() && !self.alternate && is_shell(&self.program)
    }

    /// Refuses a pane in which something else reads what is typed.
    pub(super) fn check_ready(&self, pane: &Pane) -> Result<(), Failure> {
        let busy = |message: String| Failure::new(Kind::Busy, message);
        let session = &pane.session;
        if self.typed.is_some_and(|typed| self.now.saturating_sub(typed) < PERSON_SECONDS) {
            return Err(busy(format!("somebody is typing at session `{}`", session.name))
                .hint("try again when they have stopped, or use another session"));
        }
        if !self.mode.is_empty() && !self.looks_back() {
            return Err(busy(format!("somebody has tmux's `{}` open in pane {}", self.mode, pane.shown()))
                .hint("try again when they have left it (`q`), or use another pane"));
        }
        let program = &self.program;
        // What a pane runs that leads elsewhere is the way there.
        if session.inside.is_some() || is_shell(program) {
            return Ok(());
        }
        if self.alternate {
            return Err(self.fills_screen(pane));
        }
        Err(busy(format!("`{program}` runs in pane {} and would read the command", pane.shown()))
            .hint("end it with send-keys `C-c` or `C-d`, or use another pane"))
    }
}

/// A program of this name reads what is typed as a POSIX shell does.
pub(super) fn is_shell(program: &str) -> bool {
    program.trim_start_matches('-').rsplit('/').next().is_some_and(|name| SHELLS.contains(&name))
}

/// When the person of this client came and was last active. Hosts are clients in control mode.
fn person(client: &str) -> Option<(u64, u64)> {
    let (created, active) = client.strip_prefix("0 ")?.split_once(' ')?;
    Some((created.parse().ok()?, active.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_no_people() {
        for (client, expected) in [
            ("0 100 107", Some((100, 107))),
            ("0 100 100", Some((100, 100))),
            ("1 100 107", None),
            ("0 100", None),
            ("", None),
        ] {
            assert_eq!(person(client), expected, "{client}");
        }
    }

    #[test]
    fn what_is_no_record_of_a_prompt_is_no_empty_prompt() {
        let was = |cursor: &str, time| Prompt::Was { cursor: cursor.into(), time, visits: String::new() };
        assert_eq!(Prompt::read(""), Prompt::Fresh);
        assert_eq!(Prompt::read("20: 1763800000"), was("20:", 1_763_800_000));
        for odd in [Prompt::TOUCHED, "20: ", "20: x", " "] {
            assert_eq!(Prompt::read(odd), Prompt::Touched, "{odd}");
        }
    }
}
