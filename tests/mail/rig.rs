//! A host with an account, and how its two tools are called.

use serde_json::{Value, json};
use toolcrib::envelope::{Failure, Output};
use toolcrib_tests::TestHost;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{ACCOUNT, Asked, Dovecot, Letter, Lying, SERVER, Say, reader};

/// A mailbox of Dovecot, and a host that reads it.
pub(crate) struct Mailbox {
    pub(crate) server: Dovecot,
    pub(crate) host: TestHost,
}

/// A server that lies, and a host that reads it.
pub(crate) struct Liar {
    pub(crate) server: Lying,
    pub(crate) host: TestHost,
}

/// Ends a test where Dovecot is not installed.
macro_rules! dovecot {
    () => {
        if !toolcrib_tests::mail::Dovecot::is_there() {
            toolcrib_tests::skip!("dovecot is missing");
        }
    };
}
pub(crate) use dovecot;

impl Mailbox {
    pub(crate) fn with(letters: &[Letter]) -> Self {
        Self::of(letters, &[ACCOUNT])
    }

    /// The same with these lines of its account.
    pub(crate) fn of(letters: &[Letter], lines: &[&str]) -> Self {
        let authority = Authority::new();
        let server = Dovecot::with(&authority, letters);
        let host = reader(&authority, server.port, lines);
        Self { server, host }
    }
}

impl Liar {
    pub(crate) fn new(lie: impl Fn(&Asked<'_>) -> Say + Send + Sync + 'static) -> Self {
        Self::of(&[ACCOUNT], lie)
    }

    /// The same with these lines of its account.
    pub(crate) fn of(lines: &[&str], lie: impl Fn(&Asked<'_>) -> Say + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let server = Lying::new(authority.server(SERVER), lie);
        let host = reader(&authority, server.port, lines);
        Self { server, host }
    }
}

/// What a search comes to, of all the time.
pub(crate) async fn try_search(host: &TestHost, mut arguments: Value) -> Result<Output, Failure> {
    arguments["since_days"] = json!(36_500);
    host.call("email_search", arguments).await.outcome
}

pub(crate) async fn search(host: &TestHost, arguments: Value) -> Output {
    try_search(host, arguments.clone()).await.unwrap_or_else(|failure| panic!("{arguments}: {failure:?}"))
}

pub(crate) async fn try_read(host: &TestHost, id: &str) -> Result<Output, Failure> {
    host.call("email_read", json!({ "id": id })).await.outcome
}

pub(crate) async fn read(host: &TestHost, id: &str) -> Output {
    try_read(host, id).await.unwrap_or_else(|failure| panic!("{id}: {failure:?}"))
}

/// The hits of a search.
pub(crate) fn hits(found: &Output) -> &[Value] {
    found.result["hits"].as_array().expect("hits")
}

/// The subjects of the hits.
pub(crate) fn subjects(found: &Output) -> Vec<&str> {
    hits(found).iter().map(|hit| text(&hit["subject"])).collect()
}

/// The ids of the hits.
pub(crate) fn ids(found: &Output) -> Vec<String> {
    hits(found).iter().map(|hit| text(&hit["id"]).to_owned()).collect()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
