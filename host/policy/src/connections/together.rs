//! Which servers of a command a person is asked about in one question: those that its text names, and those to which it connects while the
//! person is asked about another one.

use crate::approval::By;
use crate::scope::Scope;
use base::envelope::Failure;
use base::target::Target;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep_until};
use url::Url;

/// Servers in one question: more are not read.
pub(super) const MOST: usize = 8;
/// How long others are waited for before a person is asked: a program that needs several servers connects to them at once.
const GATHERING: Duration = Duration::from_millis(100);
/// From one question of a command to its next one, at least.
const APART: Duration = Duration::from_secs(1);

/// What one command connects to, as far as a person has to be asked.
#[derive(Default)]
pub(super) struct Together {
    named: Vec<Target>,
    waiting: Mutex<Vec<Target>>,
    asked: tokio::sync::Mutex<Asked>,
}

/// What a person was asked for a call, and answered.
#[derive(Default)]
pub(super) struct Asked {
    call: String,
    answers: HashMap<String, Result<By, (Failure, By)>>,
    last: Option<Instant>,
}

impl Together {
    pub(super) fn of_text(text: &str) -> Self {
        Self { named: servers(text), ..Self::default() }
    }

    /// Waits until no other connection of the command is asked about.
    pub(super) async fn turn(&self, target: &Target, scope: &Scope) -> MutexGuard<'_, Asked> {
        self.waiting.lock().push(target.clone());
        let mut asked = self.asked.lock().await;
        if asked.call != scope.id {
            *asked = Asked { call: scope.id.clone(), ..Asked::default() };
        }
        asked
    }

    /// The other servers that may be part of the question, once it is time to ask.
    pub(super) async fn others(&self, target: &Target, asked: &mut Asked) -> Vec<Target> {
        let now = Instant::now();
        let due = asked.last.map_or(now, |last| last + APART).max(now + GATHERING);
        sleep_until(due).await;
        asked.last = Some(Instant::now());
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let mut others: Vec<Target> = Vec::new();
        for other in waiting.into_iter().chain(self.named.iter().cloned()) {
            let server = other.server();
            let is_known = server == target.server()
                || asked.answers.contains_key(&server)
                || others.iter().any(|known| known.server() == server);
            if !is_known {
                others.push(other);
            }
        }
        others
    }
}

impl Asked {
    pub(super) fn answer(&self, target: &Target) -> Option<Result<By, (Failure, By)>> {
        self.answers.get(&target.server()).cloned()
    }

    pub(super) fn note(&mut self, target: &Target, answer: &Result<By, (Failure, By)>) {
        self.answers.insert(target.server(), answer.clone());
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
