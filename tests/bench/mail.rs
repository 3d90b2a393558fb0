//! What it costs to search a mailbox of 100,000 messages, in a Dovecot that has indexed it, over TLS on this machine. The mailbox is one file (mbox):
//! figures of other formats are not to be compared with these.

use crate::{quantile, row};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{ACCOUNT, Dovecot, RARE, many, reader};

const MESSAGES: u64 = 100_000;
const TIMES: usize = 20;

pub(crate) fn mail() {
    if !Dovecot::is_there() {
        println!("mail: dovecot is not installed");
        return;
    }
    let authority = Authority::new();
    let server = Dovecot::with_file(&authority, &many(MESSAGES));
    let host = reader(&authority, server.port, &[ACCOUNT]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let search = |arguments: Value| {
        let begun = Instant::now();
        let found = runtime.block_on(host.result("email_search", arguments));
        (begun.elapsed(), found["hits"].as_array().map_or(0, Vec::len))
    };
    // What is compiled, loaded and connected once is no part of it.
    let (first, _) = search(json!({ "unread_only": true }));
    row("mail: the first call: load, connect, log in, ten newest unread", "", &format!("{first:.0?}"), "", "");
    let commands = |name: &str| server.asked().iter().filter(|line| line.contains(name)).count();
    let timed = |arguments: Value, hits: usize| {
        let asked = || ["EXAMINE", "UID SEARCH", "UID FETCH"].map(&commands);
        let before = asked();
        let mut times: Vec<Duration> = (0..TIMES)
            .map(|_| {
                let (took, found) = search(arguments.clone());
                assert_eq!(found, hits, "{arguments}");
                took
            })
            .collect();
        // A call that asked nobody would not be measured.
        let sent = asked().iter().zip(before).map(|(after, before)| after - before).collect::<Vec<_>>();
        assert_eq!(sent, [TIMES, TIMES, 2 * TIMES], "{arguments}");
        // The median is that of the same search again on a connection that is kept: the first one shows what it hides.
        let first = times[0];
        times.sort();
        format!("p50 {:.1?}, the first {first:.0?}, the slowest {:.0?}", quantile(&times, 50), times[TIMES - 1])
    };
    row("mail: ten newest unread of 100,000", "<= 100 ms", &timed(json!({ "unread_only": true }), 10), "", "");
    row(
        "mail: ten by a word, in the newest 2,000",
        "<= 150 ms",
        &timed(json!({ "query": "tomato", "limit": 10 }), 10),
        "",
        "",
    );
    let (took, found) = search(json!({ "query": RARE }));
    row(
        &format!("mail: a word of two messages, one of them the oldest ({found} found)"),
        "<= 20 s",
        &format!("{took:.0?}"),
        "",
        "",
    );
}
