//! Servers that lie, break off, flood or hang: what is told, what is tried again, and what it costs.

use crate::rig::{Liar, hits, ids, search, subjects, try_read, try_search};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::mail::{Asked, Say, envelope, listed};
use toolcrib_tests::resident_kib;

const PLAIN: &str = r#"("TEXT" "PLAIN" ("charset" "utf-8") NIL NIL "7BIT" 12 1)"#;

/// A list of one message, as a whole answer.
fn one(asked: &Asked<'_>, structure: &str) -> Say {
    Say::This(format!("{}{} OK done\r\n", listed(3, &envelope(3), structure), asked.tag).into())
}

fn kind(outcome: Result<Output, Failure>) -> Kind {
    outcome.map(|output| panic!("it succeeded: {output:?}")).unwrap_or_else(|failure: Failure| failure.kind)
}

/// Case 11.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_folder_that_was_rebuilt_is_busy_and_no_other_message() {
    let is_rebuilt = Arc::new(AtomicBool::new(false));
    let turns = is_rebuilt.clone();
    let Liar { server, host } = Liar::new(move |asked| match asked.command {
        command if command.starts_with("EXAMINE") && turns.load(Ordering::SeqCst) => Say::This(
            format!("* 3 EXISTS\r\n* OK [UIDVALIDITY 8] valid\r\n* OK [UIDNEXT 4] next\r\n{} OK done\r\n", asked.tag)
                .into(),
        ),
        // Whoever has it open is told by the end of the connection.
        command if command.starts_with("UID FETCH") && turns.load(Ordering::SeqCst) && asked.connection == 1 => {
            Say::Last(b"* BYE the folder was rebuilt\r\n".to_vec())
        }
        _ => Say::Truth,
    });
    let id = ids(&search(&host, json!({})).await).remove(0);
    assert!(try_read(&host, &id).await.is_ok());
    is_rebuilt.store(true, Ordering::SeqCst);
    let failure = try_read(&host, &id).await.expect_err("the folder was rebuilt");
    assert_eq!(failure.kind, Kind::Busy, "{failure:?}");
    let before = server.count("UID FETCH");
    assert_eq!(kind(try_read(&host, &id).await), Kind::Busy);
    assert_eq!(server.count("UID FETCH"), before, "nothing is fetched by an id that no longer holds");
    let found = search(&host, json!({})).await;
    assert!(try_read(&host, &ids(&found)[0]).await.is_ok(), "the new id holds");
}

/// Case 12.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_goes_between_the_steps_is_a_notice() {
    let Liar { host, .. } = Liar::new(|asked| match asked.command {
        command if command.contains("ENVELOPE") && command.contains(',') => {
            let two = [1, 3].map(|uid| listed(uid, &envelope(uid), PLAIN)).concat();
            Say::This(format!("* 2 EXPUNGE\r\n{two}{} OK done\r\n", asked.tag).into())
        }
        command if command.contains("ENVELOPE") => Say::This(format!("{} OK done\r\n", asked.tag).into()),
        _ => Say::Truth,
    });
    let found = search(&host, json!({})).await;
    assert_eq!(subjects(&found), ["Message 3", "Message 1"]);
    assert!(
        found.notices.iter().any(|notice| notice.contains("`INBOX`") && notice.contains("are gone by now: 1")),
        "{:?}",
        found.notices
    );
    assert_eq!(kind(try_read(&host, &ids(&found)[0]).await), Kind::Busy, "and by its id it is busy");
}

/// Case 13.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_within_a_literal_is_tried_once_more() {
    for (dies, connections) in [(1, 2), (99, 2)] {
        let Liar { server, host } = Liar::new(move |asked| match asked.command.contains("BODY.PEEK[1]") {
            true if asked.connection <= dies => {
                Say::Last(b"* 3 FETCH (UID 3 BODY[1]<0> {100}\r\nthe beginning of".to_vec())
            }
            _ => Say::Truth,
        });
        let outcome = try_read(&host, "work:7:3:INBOX").await;
        assert_eq!(server.connections(), connections, "{outcome:?}");
        match dies {
            1 => assert_eq!(outcome.expect("the second time it is whole").result["text"], "text of 3"),
            _ => {
                let failure = outcome.expect_err("it dies each time");
                assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
                // In our words: those of a library name their own documents.
                assert_eq!(failure.message, "the mail server of `work` broke off: it ended the connection");
            }
        }
    }
}

/// Case 14.
#[tokio::test(flavor = "multi_thread")]
async fn a_literal_of_4_gib_is_a_limit_and_costs_no_memory() {
    // The last is beyond what any number of IMAP can be.
    for size in ["4294967296", "999999999", "18446744073709551616"] {
        for begin in ["* 3 FETCH (UID 3 BODY[1]<0> {", "* SEARCH {", "* X ({1}\r\na {"] {
            let lie = format!("{begin}{size}}}\r\n");
            let Liar { host, .. } = Liar::new(move |asked| match asked.command.contains("BODY.PEEK[1]") {
                true => Say::Hang(lie.clone().into()),
                false => Say::Truth,
            });
            // What is loaded once is no part of it.
            let _ = try_search(&host, json!({ "folders": ["None"] })).await;
            let (before, began) = (resident_kib(std::process::id()), Instant::now());
            let failure = try_read(&host, "work:7:3:INBOX").await.expect_err("it is too much");
            assert_eq!(failure.kind, Kind::Limit, "{begin}{size}: {failure:?}");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            let grown = resident_kib(std::process::id()).saturating_sub(before);
            assert!(grown < 400 << 10, "{grown} KiB more");
        }
    }
}

/// Case 15.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_without_its_ok_is_noticed() {
    let Liar { server, host } = Liar::new(|asked| match asked.command {
        command if command.contains("ENVELOPE") => Say::Last(listed(3, &envelope(3), PLAIN).into()),
        command if command.starts_with("UID SEARCH") && command.contains("TEXT") => {
            Say::Last(b"* SEARCH 1 2\r\n".to_vec())
        }
        _ => Say::Truth,
    });
    let failure = try_search(&host, json!({})).await.expect_err("half a list is none");
    assert_eq!((failure.kind, server.connections()), (Kind::Unavailable, 2), "{failure:?}");
    let failure = try_search(&host, json!({ "query": "x" })).await.expect_err("half a search is none");
    assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
}

/// Cases 15 and 6: one that says nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_given_up_in_time_and_its_connection_is_not_used_again() {
    let hung = Arc::new(AtomicUsize::new(0));
    let hangs = hung.clone();
    let Liar { server, host } = Liar::new(move |asked| match asked.command.contains("BODY.PEEK[1]") {
        true if hangs.fetch_add(1, Ordering::SeqCst) == 0 => {
            Say::Hang(b"* 3 FETCH (UID 3 BODY[1]<0> {9}\r\ntext".to_vec())
        }
        _ => Say::Truth,
    });
    let begin = Instant::now();
    let failure = try_read(&host, "work:7:3:INBOX").await.expect_err("it does not come");
    assert!(matches!(failure.kind, Kind::TimedOut | Kind::Unavailable), "{failure:?}");
    assert!((14..40).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    let read = try_read(&host, "work:7:3:INBOX").await.expect("another connection");
    assert_eq!((read.result["text"].as_str(), server.connections()), (Some("text of 3"), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_another_command_is_no_answer() {
    let Liar { host, .. } = Liar::new(|asked| match asked.command.starts_with("UID SEARCH") {
        true => Say::This(b"* SEARCH 1 2 3\r\nX99 OK done\r\n".to_vec()),
        false => Say::Truth,
    });
    let failure = try_search(&host, json!({})).await.expect_err("it is not ours");
    assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
    for lie in ["HTTP/1.1 200 OK\r\n", "+ more\r\n", "\r\n\r\n", "* ((((\r\n", "\0\u{1b}[2J\r\n"] {
        let Liar { host, .. } = Liar::new(move |asked| match asked.command.starts_with("EXAMINE") {
            true => Say::Hang(lie.into()),
            false => Say::Truth,
        });
        let failure = try_search(&host, json!({})).await.expect_err("it makes no sense");
        assert_eq!(failure.kind, Kind::Unavailable, "{lie:?}: {failure:?}");
        assert!(!format!("{failure:?}").contains('\u{1b}'), "{failure:?}");
    }
}

/// What nobody asked for changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_nobody_asked_for_is_not_believed() {
    let injected = [
        listed(99, &envelope(99), PLAIN),
        listed(2, &envelope(98), PLAIN).replace("UID 2 ", ""),
        "* SEARCH 99 98 4000000000\r\n* 99 EXPUNGE\r\n* FLAGS (\\Seen)\r\n* 7 FETCH (FLAGS (\\Seen))\r\n".into(),
        "* LIST () \"/\" \"Evil\"\r\n* OK [UIDVALIDITY 99] other\r\n* 12 EXISTS\r\n* X-NEW (a b)\r\n* NO warning\r\n"
            .into(),
    ]
    .concat();
    let Liar { host, .. } = Liar::new(move |asked| match asked.command {
        command if command.starts_with("UID") => Say::Before(injected.clone().into()),
        _ => Say::Truth,
    });
    let found = search(&host, json!({})).await;
    assert_eq!(subjects(&found), ["Message 3", "Message 2", "Message 1"]);
    assert!(ids(&found).iter().all(|id| id.starts_with("work:7:")), "{found:?}");
    let read = try_read(&host, "work:7:2:INBOX").await.expect("the message");
    assert_eq!(read.result["message"]["subject"], "Message 2", "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_without_end_is_a_limit_and_costs_no_memory() {
    for flood in [
        "* OK still here\r\n",
        "* 1 FETCH (FLAGS ())\r\n",
        "* SEARCH 1 2 3 4 5 6 7 8 9\r\n",
        "xxxxxxxx",
        "* LIST () \"/\" ((((((((",
    ] {
        for at in ["", "EXAMINE", "UID FETCH"] {
            let Liar { host, .. } = Liar::new(move |asked| {
                match asked.command.starts_with(at) && (at.is_empty() == asked.command.is_empty()) {
                    true => Say::Flood(flood.into()),
                    false => Say::Truth,
                }
            });
            let before = resident_kib(std::process::id());
            let begin = Instant::now();
            let failure = try_search(&host, json!({})).await.expect_err("it has no end");
            assert!(matches!(failure.kind, Kind::Limit | Kind::Unavailable), "{at} {flood:?}: {failure:?}");
            assert!(begin.elapsed() < Duration::from_secs(8), "{at} {flood:?}: {:?}", begin.elapsed());
            let grown = resident_kib(std::process::id()).saturating_sub(before);
            assert!(grown < 400 << 10, "{at} {flood:?}: {grown} KiB more");
        }
    }
}

/// Case 20, as the server says it.
#[tokio::test(flavor = "multi_thread")]
async fn a_structure_of_100_000_parts_or_of_20_000_levels_takes_no_time() {
    let part = r#"("IMAGE" "PNG" ("name" "a.png") NIL NIL "BASE64" 12)"#;
    let wide = format!("({PLAIN}{} \"MIXED\")", part.repeat(100_000));
    let deep = format!("{}{PLAIN}{}", "(".repeat(20_000), " \"MIXED\")".repeat(20_000));
    let inner: String = (0..20_000).fold(PLAIN.to_owned(), |inner, _| inner);
    let empty = format!("{}{}", "(".repeat(20_000), ")".repeat(20_000));
    for structure in [wide, deep, inner, empty, "NIL".into(), "(((".into(), "\"\"".into()] {
        let Liar { host, .. } = Liar::new(move |asked| match asked.command.contains("ENVELOPE") {
            true => one(asked, &structure),
            false => Say::Truth,
        });
        // What is loaded once is no part of it.
        let _ = try_search(&host, json!({ "folders": ["None"] })).await;
        let begin = Instant::now();
        let found = try_search(&host, json!({})).await;
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        match found {
            Ok(found) => assert!(serde_json::to_string(&found.result).is_ok_and(|json| json.len() < 100 << 10)),
            Err(failure) => assert!(matches!(failure.kind, Kind::Unavailable | Kind::Limit), "{failure:?}"),
        }
    }
}

/// Sizes that are not so.
#[tokio::test(flavor = "multi_thread")]
async fn sizes_that_lie_are_no_way_to_more_memory() {
    // More than it announced.
    let much = "x".repeat(12 << 20);
    let Liar { host, .. } = Liar::new(move |asked| match asked.command {
        command if command.contains("ENVELOPE") => one(asked, PLAIN),
        command if command.contains("BODY.PEEK[1]") => Say::This(
            format!("* 3 FETCH (UID 3 BODY[1]<0> {{{}}}\r\n{much})\r\n{} OK done\r\n", much.len(), asked.tag).into(),
        ),
        _ => Say::Truth,
    });
    assert_eq!(kind(try_read(&host, "work:7:3:INBOX").await), Kind::Limit);
    // Less.
    let large = PLAIN.replace("12 1", "4000000 1");
    let Liar { host, .. } = Liar::new(move |asked| match asked.command.contains("ENVELOPE") {
        true => one(asked, &large),
        false => Say::Truth,
    });
    let read = try_read(&host, "work:7:3:INBOX").await.expect("what there is");
    assert_eq!(read.result["text"], "text of 3", "{read:?}");
}

/// Whatever a server does, the next call is answered.
#[tokio::test(flavor = "multi_thread")]
async fn after_each_failure_the_next_call_succeeds() {
    let lies: [fn(&Asked<'_>) -> Say; 5] = [
        |_| Say::Last(Vec::new()),
        |_| Say::Last(b"* BYE too busy\r\n".to_vec()),
        |asked| Say::This(format!("{} BAD what\r\n", asked.tag).into()),
        |_| Say::Last(b"* SEARCH {5}\r\nab".to_vec()),
        |_| Say::This(b"T0 OK done\r\n".to_vec()),
    ];
    let lied = Arc::new(AtomicUsize::new(0));
    let lies_so_far = lied.clone();
    let Liar { host, .. } = Liar::new(move |asked| {
        let number = lies_so_far.load(Ordering::SeqCst);
        match asked.command.starts_with("UID SEARCH") && number % 3 != 2 && number < 15 {
            true => {
                lies_so_far.fetch_add(1, Ordering::SeqCst);
                lies[number / 3](asked)
            }
            false => {
                if asked.command.starts_with("UID SEARCH") {
                    lies_so_far.fetch_add(1, Ordering::SeqCst);
                }
                Say::Truth
            }
        }
    });
    while lied.load(Ordering::SeqCst) < 15 {
        let _ = try_search(&host, json!({})).await;
    }
    assert_eq!(hits(&search(&host, json!({})).await).len(), 3);
}
