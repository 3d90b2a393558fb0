//! Who holds a pane: one command at a time, across processes. The holder is kept in an option of the pane, set by test-and-set.

use super::Session;
use super::commands::{self, Command};
use super::condition::Condition;
use super::look::Doing;
use base::envelope::Failure;

/// Characters of a command by which others learn what holds a pane.
const TOLD_CHARS: usize = 80;

/// The option of a pane that keeps the sign of its holder.
pub(super) const HOLDER: &str = "@toolcrib_holder";
/// The option of a pane that keeps its shell's process.
pub(super) const PROCESS: &str = "@toolcrib_process";

/// What [`parse_sign`] takes for a sign, as a regular expression over what the option keeps.
const SIGN: &str = "^[0-9]* [0-9a-f]*( |$)";

/// The sign of a call on a pane, taken off when it is dropped.
pub(super) struct Hold {
    pub(super) session: std::sync::Arc<Session>,
    pub(super) number: u32,
    pub(super) nonce: String,
}

impl Hold {
    /// What sets the sign. Sets nothing where something is set: test and set in one.
    pub(super) fn set(&self, command: &str) -> Command {
        commands::set_first(self.number, HOLDER, &format!("{} {}", self.sign(), told(command)))
    }

    /// How this host's client signs the pane.
    pub(super) fn sign(&self) -> String {
        format!("{} {}", self.session.client_pid, self.nonce)
    }
}

impl Drop for Hold {
    /// Gives the pane free for the next command.
    fn drop(&mut self) {
        self.session.client.post_nested(&free(self.number, &self.sign()));
    }
}

impl Session {
    /// Takes the sign of a holder off whose client is gone, and so is its command. False when it has to be waited for.
    pub(super) async fn free_stale(&self, number: u32, condition: &Condition) -> Result<bool, Failure> {
        let sign = condition.sign();
        // Only our own signs go into a script.
        if let Some((client, _)) = parse_sign(sign) {
            let clients = self.client.run(&commands::list_clients("#{client_pid}")).await?;
            if clients.lines().any(|pid| pid == client) {
                return Ok(false);
            }
            if self.left_running(number, condition).await? == Doing::Runs {
                return Ok(false);
            }
        }
        self.client.run_nested(&free(number, sign)).await?;
        Ok(true)
    }

    /// What the shell of a pane does whose holder is gone. Where panes lead elsewhere, its process is kept in an option.
    async fn left_running(&self, number: u32, condition: &Condition) -> Result<Doing, Failure> {
        if self.inside.is_none() {
            return self.look_at_pane(number, &condition.pid).await;
        }
        let process = self.client.run(&commands::show(number, PROCESS)).await?;
        match process.parse() {
            Ok(process) => self.look_at_shell(number, process, "").await,
            Err(_) => Ok(Doing::Unknown),
        }
    }

    /// Keeps the process of a pane's shell for whoever comes later.
    pub(super) fn keep_process(&self, number: u32, process: Option<u32>) {
        if let Some(process) = process.filter(|_| self.inside.is_some()) {
            self.client.post_nested(&commands::set(number, PROCESS, &process.to_string()));
        }
    }
}

/// Client and nonce of a sign. Any program in the pane can write something else in its place.
fn parse_sign(sign: &str) -> Option<(&str, &str)> {
    let (client, nonce) = sign.split_once(' ')?;
    let is_sign =
        client.bytes().all(|byte| byte.is_ascii_digit()) && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_sign.then_some((client, nonce))
}

/// Takes a holder's sign off a pane, if it is still there; of what is no sign, anything that is none by then. Between the look and this,
/// another client may have become the holder.
fn free(number: u32, sign: &str) -> Command {
    let is_there = match parse_sign(sign) {
        Some(_) => format!("#{{m:{sign}*,#{{{HOLDER}}}}}"),
        None => format!("#{{?#{{m/r:{SIGN},#{{{HOLDER}}}}},,1}}"),
    };
    commands::when(number, &is_there, &commands::unset(number, HOLDER))
}

/// The beginning of a command, by which others learn what holds a pane.
pub(super) fn told(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TOLD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_sign_reaches_no_script_and_no_format() {
        assert_eq!(parse_sign("42 0af9"), Some(("42", "0af9")));
        let unset = commands::unset(3, HOLDER);
        assert_eq!(free(3, "42 0af9"), commands::when(3, "#{m:42 0af9*,#{@toolcrib_holder}}", &unset));
        for odd in ["", "42", "42 x", "4x 0a", "42 0a'; touch owned; '", "42 #(touch owned)", "#(x) 0a"] {
            assert_eq!(parse_sign(odd), None, "{odd}");
            let is_no_sign = "#{?#{m/r:^[0-9]* [0-9a-f]*( |$),#{@toolcrib_holder}},,1}";
            assert_eq!(free(3, odd), commands::when(3, is_no_sign, &unset), "{odd}");
        }
    }
}
