//! One question about several servers of a command: those that its text names, and those to which it connects while another question is open.

use crate::approval::By;
use base::envelope::Failure;
use base::target::Target;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep_until};
use url::Url;

/// The most servers in one question.
pub(super) const MOST: usize = 8;
/// How long others are waited for before a person is asked: a program that needs several servers connects to them at once.
const GATHERING: Duration = Duration::from_millis(100);
/// The least time from the end of one question of a command to its next one. An answer that is typed for the first must not meet the second.
const APART: Duration = Duration::from_secs(1);

/// The servers of one command about which a person has to be asked.
#[derive(Default)]
pub(super) struct Together {
    named: Vec<Target>,
    waiting: Mutex<Vec<Target>>,
    asked: tokio::sync::Mutex<Asked>,
}

/// The answers of a person for a call.
#[derive(Default)]
struct Asked {
    call: String,
    answers: HashMap<String, Result<By, (Failure, By)>>,
    /// When the last question ended.
    last: Option<Instant>,
}

/// A connection that waits to be asked about, as long as this lives.
struct Waiting<'t> {
    together: &'t Together,
    target: Target,
}

/// The turn of one connection: no other one of the command is asked about meanwhile.
pub(super) struct Turn<'t> {
    waiting: Waiting<'t>,
    asked: MutexGuard<'t, Asked>,
    has_asked: bool,
}

/// The other servers that may be part of a question.
#[derive(Default)]
pub(super) struct Others {
    /// Those to which the command connects.
    pub waiting: Vec<Target>,
    /// Those that only its text names.
    pub named: Vec<Target>,
}

impl Together {
    pub(super) fn of_text(text: &str) -> Self {
        Self { named: servers(text), ..Self::default() }
    }

    /// Waits until no other connection of the command is asked about.
    pub(super) async fn turn(&self, target: &Target, call: &str) -> Turn<'_> {
        self.waiting.lock().push(target.clone());
        let waiting = Waiting { together: self, target: target.clone() };
        let mut asked = self.asked.lock().await;
        if asked.call != call {
            *asked = Asked { call: call.to_owned(), ..Asked::default() };
        }
        Turn { waiting, asked, has_asked: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.together.waiting.lock();
        if let Some(at) = waiting.iter().position(|target| target.server() == self.target.server()) {
            waiting.remove(at);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.has_asked {
            self.asked.last = Some(Instant::now());
        }
    }
}

impl Turn<'_> {
    /// Waits until it is time to ask, and returns what else may be asked about.
    pub(super) async fn others(&mut self) -> Others {
        let now = Instant::now();
        let due = self.asked.last.map_or(now, |last| last + APART).max(now + GATHERING);
        sleep_until(due).await;
        self.has_asked = true;
        let together = self.waiting.together;
        let mut known = vec![self.waiting.target.server()];
        let mut new = |target: &&Target| {
            let server = target.server();
            let is_new = !self.asked.answers.contains_key(&server) && !known.contains(&server);
            known.push(server);
            is_new
        };
        let waiting = together.waiting.lock().iter().filter(&mut new).cloned().collect();
        let named = together.named.iter().filter(&mut new).cloned().collect();
        Others { waiting, named }
    }

    pub(super) fn answer(&self) -> Option<Result<By, (Failure, By)>> {
        self.asked.answers.get(&self.waiting.target.server()).cloned()
    }

    pub(super) fn note(&mut self, target: &Target, answer: &Result<By, (Failure, By)>) {
        self.asked.answers.insert(target.server(), answer.clone());
    }
}

/// The servers of the URLs in a text.
fn servers(text: &str) -> Vec<Target> {
    let is_of_url = |c: char| c.is_ascii_alphanumeric() || ".-_~:/?#[]@!$&*+,;=%".contains(c);
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let server = |(at, _): (usize, &str)| {
        let before = &text[..at];
        let begin = before
            .rfind(|c: char| !is_of_scheme(c))
            .map_or(0, |last| last + before[last..].chars().next().map_or(1, char::len_utf8));
        let rest = &text[at..];
        let end = rest.find(|c: char| !is_of_url(c)).unwrap_or(rest.len());
        let url = Url::parse(&text[begin..at + end]).ok()?;
        let port = url.port_or_known_default().or(match url.scheme() {
            "ssh" | "git+ssh" | "sftp" => Some(22),
            "git" => Some(9418),
            "git+https" => Some(443),
            _ => None,
        })?;
        Target::of_server(url.host_str()?, port).ok()
    };
    let mut servers: Vec<Target> = text.match_indices("://").filter_map(server).take(10 * MOST).collect();
    let mut known = Vec::new();
    servers.retain(|target| {
        let is_new = !known.contains(&target.server());
        known.push(target.server());
        is_new
    });
    servers.truncate(MOST);
    servers
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn target(server: &str) -> Target {
        Target::of_server(server, 443).expect("a server")
    }

    fn shown(targets: &[Target]) -> Vec<String> {
        targets.iter().map(Target::server).collect()
    }

    #[tokio::test]
    async fn what_waits_meanwhile_is_asked_about_together() {
        let together = Together::of_text("curl https://a.example https://d.example");
        let (a, b, c) = (target("a.example"), target("b.example"), target("c.example"));
        let first = async {
            let mut turn = together.turn(&a, "call").await;
            // What has gone before the question is not asked about.
            assert!(together.turn(&c, "call").now_or_never().is_none());
            let others = turn.others().await;
            assert_eq!(shown(&others.waiting), ["b.example:443"]);
            assert_eq!(shown(&others.named), ["d.example:443"]);
            let yes = Ok("user".into());
            [&a, &b].into_iter().for_each(|target| turn.note(target, &yes));
            Instant::now()
        };
        let second = async { together.turn(&b, "call").await.answer() };
        let (ended, answered) = tokio::join!(first, second);
        assert_eq!(answered, Some(Ok("user".into())));
        assert!(together.waiting.lock().is_empty());
        // The next question comes a second after the end of the last one.
        let mut turn = together.turn(&c, "call").await;
        let others = turn.others().await;
        assert!(ended.elapsed() >= APART && others.waiting.is_empty());
        assert_eq!(shown(&others.named), ["d.example:443"]);
        drop(turn);
        assert_eq!(together.turn(&a, "another call").await.answer(), None);
    }

    #[test]
    fn servers_are_read_from_the_urls_of_a_text() {
        for (text, expected) in [
            ("curl https://a.example/x; git ls-remote https://b.example/c", vec!["a.example:443", "b.example:443"]),
            ("curl 'http://a.example:8080/?q=http://b.example/'", vec!["a.example:8080", "b.example:80"]),
            ("git clone ssh://git@a.example/x && git clone git://b.example/", vec!["a.example:22", "b.example:9418"]),
            ("pip install git+https://a.example/p.git", vec!["a.example:443"]),
            ("curl https://a.example https://a.example/again", vec!["a.example:443"]),
            ("x=https://$host/ y=:// z=file:///etc/passwd ä://b https://", vec![]),
            ("echo é://a ://b.example 日本https://c.example/", vec!["c.example:443"]),
            ("wss://[::1]:9/ https://192.0.2.1/", vec!["[::1]:9", "192.0.2.1:443"]),
        ] {
            let found: Vec<String> = servers(text).iter().map(Target::server).collect();
            assert_eq!(found, expected, "{text}");
        }
        let many: String = (0..20).map(|at| format!("https://h{at}.example/ ")).collect();
        assert_eq!(servers(&many).len(), MOST);
    }
}
