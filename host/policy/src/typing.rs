//! Typing into panes: never where a person may be answering questions, and never what the denylist forbids.
//!
//! A person's answer is typed as well. Where keys and answers can reach the same program, a model could answer for the person.

use backend::terminals::{Sitting, Terminal};
use base::envelope::Failure;
use base::input::Input;
use command::Held;

/// What is to be typed where.
pub struct Typing {
    pub input: Input,
    /// What is checked against the denylist.
    pub held: Held,
    pub keyboard: Keyboard,
    /// The whole action, as people read it.
    pub shown: String,
}

/// The pane that keys go to.
#[derive(Clone)]
pub struct Keyboard {
    /// Its terminal, where that is one of this machine.
    pub terminal: Option<Terminal>,
    /// The pane that this program was started in, not one that is managed.
    pub is_own: bool,
}

/// Input that policy and, where asked, a person admitted. Made only by the grant.
pub struct AdmittedInput(pub(super) Input);

impl AdmittedInput {
    pub fn input(&self) -> &Input {
        &self.0
    }
}

impl Keyboard {
    /// Refuses keys for a place where questions may be answered. `is_asked` says that this host's questions have a reader.
    pub fn check(&self, is_asked: bool, sitting: &Sitting) -> Result<(), Failure> {
        if self.terminal.is_some_and(|terminal| sitting.others_are_at(terminal)) {
            return Err(refused("another Toolcrib runs in this pane and may ask questions there")
                .hint("end it, or use another pane"));
        }
        if !is_asked {
            return Ok(());
        }
        if self.is_own && sitting.we_may_be_at_any() {
            return Err(cannot_use_own());
        }
        if self.terminal.is_some_and(|terminal| sitting.we_are_at(terminal)) {
            return Err(refused("questions are answered in this pane")
                .hint("start Toolcrib in another terminal, or use another pane"));
        }
        Ok(())
    }
}

/// Whether anything could be typed into the pane that this program was started in, as far as is known before a call.
///
/// A terminal may lead to another one, through `script`, `ssh` or a second tmux, so that nobody can tell from outside which keys arrive
/// where. Hence it is enough that this program, or whatever started it, has a terminal at all.
pub fn check_own(is_asked: bool) -> Result<(), Failure> {
    Keyboard { terminal: None, is_own: true }.check(is_asked, &Sitting::now())
}

fn cannot_use_own() -> Failure {
    refused("questions are, or may be, answered in the pane that this program was started in")
        .hint("omit `--own-pane` to use separate panes; or, if the policy allows it, answer in advance with `--yes`")
}

fn refused(why: &str) -> Failure {
    Failure::denied(format!("nothing is typed there: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/dev/pts/3`.
    const HERE: Terminal = Terminal { major: 136, minor: 3 };
    const ELSEWHERE: Terminal = Terminal { major: 136, minor: 4 };

    fn sitting(ours: &[Terminal], is_whole: bool, others: &[Terminal]) -> Sitting {
        Sitting { ours: ours.to_vec(), is_whole, others: others.to_vec() }
    }

    fn is_refused(keyboard: &Keyboard, is_asked: bool, sitting: &Sitting) -> bool {
        keyboard.check(is_asked, sitting).is_err()
    }

    #[test]
    fn the_own_pane_takes_keys_only_where_nobody_can_be_answering() {
        let own = Keyboard { terminal: Some(HERE), is_own: true };
        let daemon = sitting(&[], true, &[]);
        assert!(!is_refused(&own, true, &daemon));
        for at in [HERE, ELSEWHERE] {
            let sitting = sitting(&[at], true, &[]);
            assert!(is_refused(&own, true, &sitting) && !is_refused(&own, false, &sitting));
        }
        assert!(is_refused(&own, true, &sitting(&[], false, &[])));
    }

    #[test]
    fn a_managed_pane_takes_no_keys_when_it_is_the_approvers() {
        let pane = Keyboard { terminal: Some(HERE), is_own: false };
        let (here, elsewhere) = (sitting(&[HERE], true, &[]), sitting(&[ELSEWHERE], false, &[]));
        assert!(is_refused(&pane, true, &here) && !is_refused(&pane, false, &here));
        assert!(!is_refused(&pane, true, &elsewhere));
        let remote = Keyboard { terminal: None, is_own: false };
        assert!(!is_refused(&remote, true, &here));
    }

    #[test]
    fn a_pane_where_another_host_asks_takes_no_keys_even_after_a_yes_in_advance() {
        let sitting = sitting(&[], true, &[HERE]);
        for is_own in [true, false] {
            let (there, other) =
                (Keyboard { terminal: Some(HERE), is_own }, Keyboard { terminal: Some(ELSEWHERE), is_own });
            assert!(is_refused(&there, false, &sitting) && is_refused(&there, true, &sitting));
            assert!(!is_refused(&other, false, &sitting));
        }
    }
}
