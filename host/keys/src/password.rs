//! Passwords that git asks for, by gitcredentials(7): the user's helpers outside are asked, once a person allowed it, and the command gets
//! what they say. So it is then a command with a secret.

use super::git::Reply;
use super::{Asker, Wanted, What};
use base::envelope::{Failure, Kind};
use base::target::Target;
use leaks::Value;
use std::collections::HashMap;

/// No settings of a repository, and nobody at a terminal: it is the command's.
pub(super) const QUIET: [(&str, &str); 2] = [("GIT_DIR", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")];
/// Has git ask nobody else.
const NOBODY_ELSE: &[u8] = b"quit=1\n";

pub(super) async fn give(asker: &dyn Asker, wanted: &[u8]) -> Result<Reply, Failure> {
    let wanted = Description::read(wanted)?;
    if let Err(refusal) = asker.ask(&wanted.wanted()).await {
        asker.refuse(&refusal);
        return Ok(Reply { stdout: NOBODY_ELSE.into(), ..Reply::default() });
    }
    let filled = asker.keyring()?.run(&["git", "credential", "fill"], wanted.described().as_bytes(), &QUIET).await?;
    let said = fields(&filled.stdout);
    let (Some(user), Some(password)) = (said.get("username"), said.get("password")) else {
        let unknown = format!("no credential helper of git outside has a password for `{}`", wanted.host());
        return Err(
            Failure::new(Kind::Unavailable, unknown).hint("`git push` outside asks for it, and keeps it with a helper")
        );
    };
    let value = Value::read(password.as_bytes())
        .map_err(|why| Failure::new(Kind::Unavailable, format!("the password {why}")))?;
    asker.lent(&wanted.server, &value)?;
    Ok(Reply { stdout: format!("username={user}\npassword={password}\n").into(), ..Reply::default() })
}

/// What git wants a password for.
struct Description {
    server: Target,
    user: Option<String>,
    path: Option<String>,
}

impl Description {
    fn read(from: &[u8]) -> Result<Self, Failure> {
        let said = fields(from);
        let get = |name: &str| said.get(name).cloned();
        let (protocol, host) = (get("protocol").unwrap_or_default(), get("host").unwrap_or_default());
        if protocol != "https" {
            return Err(Failure::denied(format!("a password goes to https alone, and not to `{protocol}`")));
        }
        let server = Target::parse(&format!("https://{host}"), None)?;
        if server.url().path() != "/" || server.url().query().is_some() {
            return Err(Failure::denied(format!("`{host}` is not a host alone")));
        }
        Ok(Self { server, user: get("username"), path: get("path") })
    }

    /// With its port where that is not the usual one.
    fn host(&self) -> String {
        let server = self.server.server();
        server.strip_suffix(":443").map(str::to_owned).unwrap_or(server)
    }

    fn wanted(&self) -> Wanted {
        let user = self.user.as_ref().map(|user| format!("of `{user}` ")).unwrap_or_default();
        Wanted {
            what: What::Password,
            action: format!("get the password {user}for https://{}", self.host()),
            details: None,
            covers: format!("the password {user}for {}", self.host()),
        }
    }

    /// As git-credential(1) reads it.
    fn described(&self) -> String {
        let more = [("username", &self.user), ("path", &self.path)];
        let more = more.into_iter().filter_map(|(name, value)| Some(format!("{name}={}\n", value.as_ref()?)));
        format!("protocol=https\nhost={}\n{}\n", self.host(), more.collect::<String>())
    }
}

/// Lines of a name and a value. Of two of a name the last counts.
fn fields(text: &[u8]) -> HashMap<String, String> {
    let text = String::from_utf8_lossy(text);
    let fields = text.lines().map_while(|line| line.split_once('='));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_for_one_server_of_https() {
        for (said, host) in [
            ("protocol=https\nhost=git.example\n", Some("git.example")),
            (
                "capability[]=authtype\nprotocol=https\nhost=GIT.example:8443\nwwwauth[]=Basic\n",
                Some("git.example:8443"),
            ),
            ("protocol=https\nhost=git.example:443\n", Some("git.example")),
            ("protocol=http\nhost=git.example\n", None),
            ("protocol=https\n", None),
            ("protocol=https\nhost=git.example/other\n", None),
            ("protocol=https\nhost=git.example?x\n", None),
            ("protocol=https\nhost=a@git.example\n", None),
            ("host=git.example\n", None),
        ] {
            let read = Description::read(said.as_bytes());
            assert_eq!(read.ok().map(|read| read.host()).as_deref(), host, "{said}");
        }
    }

    #[test]
    fn helpers_are_asked_for_what_a_person_read() {
        let said = b"protocol=https\nhost=git.example\nusername=me\npath=a/b.git\n\nhost=other.example\n";
        let read = Description::read(said).expect("a description");
        assert_eq!(read.described(), "protocol=https\nhost=git.example\nusername=me\npath=a/b.git\n\n");
        assert_eq!(read.wanted().action, "get the password of `me` for https://git.example");
    }
}
