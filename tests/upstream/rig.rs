//! A host with one server of others, which behaves as its argument says, or over HTTP as it is told.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolcrib::config::{UpstreamConfirm, UpstreamSection};
use toolcrib::envelope::{Failure, Output};
use toolcrib::upstream::{Accepted, Look};
use toolcrib_tests::{Jotter, TestHost};

/// The interpreter, which the system brings.
const PYTHON: &str = "/usr/bin/python3";
/// What the server is called.
pub(crate) const NAME: &str = "jotter";

/// The program of the server.
pub(crate) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py")
}

/// The command line of a server that behaves so.
pub(crate) fn command(mode: &str, more: &[&str]) -> Vec<String> {
    let program = program().display().to_string();
    [PYTHON, &program, mode].iter().chain(more).map(ToString::to_string).collect()
}

/// What its section says as long as nobody says more.
pub(crate) fn section(mode: &str, more: &[&str]) -> UpstreamSection {
    UpstreamSection { read: vec![program()], ..UpstreamSection::of_command(command(mode, more)) }
}

/// A host where nothing of a server was accepted yet.
pub(crate) fn host() -> TestHost {
    TestHost::new().set("limits.concurrent_calls=128")
}

/// What a server says that behaves so.
pub(crate) async fn look(host: &TestHost, section: &UpstreamSection) -> Result<Look, Failure> {
    let (made, context) = host.parts();
    made.look_at_upstream(NAME, section, context).await
}

/// Has a host accept a server as it is now, and puts it among its settings with these lines.
pub(crate) async fn accepting(host: TestHost, section: &UpstreamSection, lines: &[&str]) -> TestHost {
    accepting_as(host, section, &section.command, lines).await
}

/// The same, where another command line is started by then.
pub(crate) async fn accepting_as(
    host: TestHost,
    section: &UpstreamSection,
    command: &[String],
    lines: &[&str],
) -> TestHost {
    let look = look(&host, section).await.map_err(|failure| failure.to_json().to_string());
    let accepted = Accepted { command: command.to_vec(), ..look.expect("a server that says what it offers").accepted };
    let digest = accepted.keep(&host.dirs().config, NAME).expect("what was accepted is kept");
    let own = [
        format!("command={}", json!(command)),
        format!("read={}", json!(section.read)),
        format!("accepted={}", json!(digest)),
    ];
    let all = own.iter().map(String::as_str).chain(lines.iter().copied());
    all.fold(host, |host, line| host.set(&format!("upstream.{NAME}.{line}")))
}

/// A host with a server that was accepted as `plain`, and behaves so by now; nobody is asked about its tools.
pub(crate) async fn behaving(mode: &str, lines: &[&str]) -> TestHost {
    behaving_with(mode, &[], lines).await
}

/// The same with further arguments for the server.
pub(crate) async fn behaving_with(mode: &str, more: &[&str], lines: &[&str]) -> TestHost {
    let lines: Vec<&str> = ["confirm=none"].iter().chain(lines).copied().collect();
    accepting_as(host(), &section("plain", &[]), &command(mode, more), &lines).await
}

/// A host that has accepted a server of this name as `plain`, and starts what the section says; nobody is asked about its tools.
pub(crate) async fn beside(host: TestHost, name: &str, now: UpstreamSection) -> TestHost {
    let plain = section("plain", &[]);
    let (made, context) = host.parts();
    let look = made.look_at_upstream(name, &plain, context).await.map_err(|failure| failure.to_json().to_string());
    let look = look.expect("a server that says what it offers");
    let accepted = Accepted { command: now.command.clone(), ..look.accepted };
    let accepted = accepted.keep(&host.dirs().config, name).expect("what was accepted is kept");
    set(host, name, &UpstreamSection { accepted, confirm: UpstreamConfirm::None, ..now })
}

/// Calls a tool of the server.
pub(crate) async fn call(host: &TestHost, tool: &str, arguments: Value) -> Result<Output, Failure> {
    host.call(&format!("{NAME}__{tool}"), arguments).await.outcome
}

/// The text that `echo` answers with.
pub(crate) async fn echoed(host: &TestHost, text: &str) -> Result<String, Failure> {
    call(host, "echo", json!({ "text": text }))
        .await
        .map(|output| output.result.as_str().unwrap_or_default().to_owned())
}

/// The names of the tools that a caller is offered of the server.
pub(crate) async fn offered(host: &TestHost) -> Vec<String> {
    let (made, context) = host.parts();
    let offered = made.offered(context).await;
    offered
        .tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .filter(|name| name.starts_with(&format!("{NAME}__")))
        .collect()
}

/// What the section of a server over HTTP says as long as nobody says more.
pub(crate) fn of(server: &Jotter) -> UpstreamSection {
    UpstreamSection { confirm: UpstreamConfirm::None, ..UpstreamSection::of_url(server.url()) }
}

/// Has a host accept a server as it is now, and puts its section among its settings.
pub(crate) async fn connected(host: TestHost, section: UpstreamSection) -> TestHost {
    let look = look(&host, &section).await.map_err(|failure| failure.to_json().to_string());
    let accepted = look.expect("a server that says what it offers").accepted;
    let accepted = accepted.keep(&host.dirs().config, NAME).expect("what was accepted is kept");
    set(host, NAME, &UpstreamSection { accepted, ..section })
}

/// A server over HTTP that a host has accepted as it was at first, and that behaves in another way by now; these lines are added to its section.
pub(crate) async fn turned(first: &str, now: &str, lines: &[&str]) -> (Jotter, TestHost) {
    let server = Jotter::start(first);
    let host = connected(host(), of(&server)).await;
    server.behaves(&format!("{first} {now}"));
    let host = lines.iter().fold(host, |host, line| host.set(&format!("upstream.{NAME}.{line}")));
    (server, host)
}

/// Puts a section among the settings of a host, as far as it says something else than it says by default.
pub(crate) fn set(host: TestHost, name: &str, section: &UpstreamSection) -> TestHost {
    let keys = |section: &UpstreamSection| match serde_json::to_value(section) {
        Ok(Value::Object(keys)) => keys,
        other => panic!("a section: {other:?}"),
    };
    let default = keys(&UpstreamSection::of_command(Vec::new()));
    let own = keys(section).into_iter().filter(|(key, value)| default.get(key) != Some(value));
    own.fold(host, |host, (key, value)| {
        let value = match value {
            Value::Object(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{{{}}}", fields.join(", "))
            }
            value => value.to_string(),
        };
        host.set(&format!("upstream.{name}.{key}={value}"))
    })
}

/// Waits until there is something.
pub(crate) async fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..200 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it did not come");
}
