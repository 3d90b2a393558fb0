//! M-02: a mail server floods, announces 4 GiB, answers for others, dies within a literal, or asks for the password again and again.
//! Outcome: `limit` or `unavailable` in bounded time and memory, one outcome each in the audit trail, and the next call is answered.
//! Switched off: with literals of any announced size waited for (`Budget::take` in `mail/reader.rs`) a call waited for 4 GiB until its time was over.

use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{ACCOUNT, Lying, SERVER, Say, reader};
use toolcrib_tests::resident_kib;

type Lie = fn(&str, &str) -> Option<Say>;

const LIES: [(&str, Lie); 7] = [
    ("a flood", |command, _| command.starts_with("UID SEARCH").then(|| Say::Flood(b"* OK still here\r\n".to_vec()))),
    ("4 GiB", |command, _| command.starts_with("UID SEARCH").then(|| Say::Hang(b"* SEARCH {4294967296}\r\n".to_vec()))),
    ("an endless line", |command, _| command.starts_with("EXAMINE").then(|| Say::Flood(b"x".to_vec()))),
    ("the answer to another", |command, _| {
        command.starts_with("EXAMINE").then(|| Say::This(b"Z OK done\r\n".to_vec()))
    }),
    ("death", |command, _| command.starts_with("UID SEARCH").then(|| Say::Last(b"* SEARCH {9}\r\n1".to_vec()))),
    ("brackets", |command, _| {
        command.contains("ENVELOPE").then(|| Say::Hang([&b"* 3 FETCH "[..], &b"(".repeat(1 << 20), b"\r\n"].concat()))
    }),
    ("questions", |command, tag| {
        (command.starts_with("AUTHENTICATE") || command.is_empty() && !tag.is_empty())
            .then(|| Say::Flood(b"+ \r\n".to_vec()))
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_server_costs_more_than_its_own_answer() {
    for (what, lie) in LIES {
        let authority = Authority::new();
        let server =
            Lying::new(authority.server(SERVER), move |asked| lie(asked.command, asked.tag).unwrap_or(Say::Truth));
        let honest = Lying::new(authority.server(SERVER), |_| Say::Truth);
        let host = reader(&authority, server.port, &[ACCOUNT]);
        let host = host
            .set(&format!("mail.other.host={SERVER:?}"))
            .set(&format!("mail.other.port={}", honest.port))
            .set("mail.other.user=\"ann\"")
            .set("mail.other.secret=\"MAIL\"");
        let ask = |account: &str| host.call("email_search", json!({ "account": account, "since_days": 36_500 }));
        let (before, begin) = (resident_kib(std::process::id()), Instant::now());
        let failure = ask("work").await.outcome.expect_err(what);
        assert!(matches!(failure.kind, Kind::Limit | Kind::Unavailable | Kind::Denied), "{what}: {failure:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}: {:?}", begin.elapsed());
        let grown = resident_kib(std::process::id()).saturating_sub(before);
        assert!(grown < 400 << 10, "{what}: {grown} KiB more");
        let next = ask("other").await.outcome.unwrap_or_else(|failure| panic!("after {what}: {failure:?}"));
        assert_eq!(next.result["hits"].as_array().map(Vec::len), Some(3), "after {what}");
        let outcomes = host.audit().iter().filter(|line| line.get("outcome").is_some()).count();
        assert_eq!(outcomes, 2, "{what}: {:?}", host.audit());
    }
}
