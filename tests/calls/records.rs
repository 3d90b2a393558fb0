//! Documents that stay: changes together or not at all, revisions, looks, limits, and whose they are.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::config::Config;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::{Program, TestHost, is_long};

fn keeper() -> TestHost {
    TestHost::new().plugin("keeper").grant("keeper", "records=true")
}

async fn change(host: &TestHost, changes: Value) -> Result<(), Failure> {
    host.call("keep", json!({ "changes": changes })).await.outcome.map(drop)
}

async fn found(host: &TestHost, find: Value) -> Value {
    host.result("keep", json!({ "find": find })).await["page"].clone()
}

fn keys(page: &Value) -> Vec<&str> {
    page["items"].as_array().expect("items").iter().map(|item| item["key"].as_str().expect("a key")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_keeps_documents_only_where_it_was_granted() {
    let host = TestHost::new().plugin("keeper");
    let refused = host.failure("keep", json!({ "get": ["c", "k"] })).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::Denied, "`keeper` needs `records`, which the policy does not grant")
    );
    assert!(refused.hint.is_some_and(|hint| hint.contains("--records")));
    let closed = keeper().policy("plugin.keeper.records = false");
    assert_eq!(closed.failure("keep", json!({ "get": ["c", "k"] })).await.kind, Kind::Denied);
    assert!(!host.dirs().state.join("store.sqlite").exists(), "nothing was opened for that");
}

/// What a plugin wants approved a person is shown, with the changes not yet made; no answer but a yes makes them.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_before_changes_that_are_to_be_approved() {
    let changes = json!([{ "put": ["c", "a", 1] }, { "confirm": ["approve \u{1b}[31mtask 7", "paint the boat"] }]);
    let kept = async |host: &TestHost| host.result("keep", json!({ "get": ["c", "a"] })).await["item"]["body"].clone();
    let host = keeper().answering(Answer::No);
    let refused = change(&host, changes.clone()).await.expect_err("denied");
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "Change denied by user."));
    assert_eq!(kept(&host).await, Value::Null);
    let asked = host.asked();
    assert_eq!((asked.len(), asked[0].kind, &*asked[0].landing.backend), (1, ActionKind::Change, "the store"));
    assert!(asked[0].action.ends_with("task 7") && !asked[0].action.contains('\u{1b}'), "{:?}", asked[0].action);
    assert_eq!(asked[0].details.as_deref(), Some("paint the boat"));

    let host = keeper().answering(Answer::Yes);
    change(&host, changes.clone()).await.expect("changed");
    assert_eq!((kept(&host).await, host.asked().len()), (json!(1), 1));
    let host = keeper().answering(Answer::No).set("tools.records_confirm=false");
    change(&host, changes.clone()).await.expect("changed");
    assert!(host.asked().is_empty());
    // A policy can hold the question on.
    let held = keeper().answering(Answer::No).set("tools.records_confirm=false").policy("tools.records_confirm = true");
    assert_eq!(change(&held, changes).await.expect_err("denied").kind, Kind::Denied);
}

/// Case 46: changes are made together, and only on what was read.
#[tokio::test(flavor = "multi_thread")]
async fn changes_are_made_together_or_not_at_all() {
    let host = keeper();
    change(&host, json!([{ "put": ["c", "a", { "n": 1 }] }, { "put": ["c", "b", "text"] }])).await.expect("changed");
    let item = host.result("keep", json!({ "get": ["c", "a"] })).await["item"].clone();
    assert_eq!((&item["body"], &item["revision"]), (&json!({ "n": 1 }), &json!(1)));
    let busy = change(&host, json!([{ "put": ["c", "a", 2] }, { "expect": ["c", "b", 7] }])).await.expect_err("busy");
    assert_eq!((busy.kind, &*busy.message), (Kind::Busy, "`b` was changed meanwhile: it has revision 1, not 7"));
    assert_eq!(busy.data.as_deref(), Some(&json!({ "key": "b", "revision": 1 })));
    for (changes, said) in [
        (json!([{ "expect": ["c", "a", 0] }]), "`a` is there already"),
        (json!([{ "expect": ["c", "x", 1] }]), "`x` is not there any more"),
    ] {
        assert_eq!(change(&host, changes).await.expect_err("busy").message, said);
    }
    let item = host.result("keep", json!({ "get": ["c", "a"] })).await["item"].clone();
    assert_eq!(item["body"], json!({ "n": 1 }), "nothing of it was made");
    change(&host, json!([{ "expect": ["c", "a", 1] }, { "put": ["c", "a", 2] }, { "delete": ["c", "b"] }]))
        .await
        .expect("changed");
    assert_eq!(keys(&found(&host, json!({ "collection": "c" })).await), ["a"]);
    let actions = host.audit().iter().map(|line| line["actions"].to_string()).collect::<String>();
    assert!(actions.contains("put c/a (7 bytes); put c/b (6 bytes)") && actions.contains("busy: "), "{actions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_found_by_values_words_and_order() {
    let host = keeper();
    let all = [
        ("one", json!({ "kind": "fact", "n": 1, "done": true, "text": "The red house stands by the river" })),
        ("two", json!({ "kind": "fact", "n": 2.5, "done": false, "text": "A river is wide, a river is deep" })),
        ("three", json!({ "kind": "goal", "n": 10, "text": "Café by the sea", "sub": { "a b": "x" } })),
        ("four", json!({ "kind": null, "n": "10", "text": "Nothing" })),
    ];
    let puts: Vec<Value> = all.iter().map(|(key, body)| json!({ "put": ["c", key, body] })).collect();
    change(&host, json!(puts)).await.expect("changed");
    change(&host, json!([{ "put": ["d", "other", { "kind": "fact", "text": "river" }] }])).await.expect("changed");
    for (find, expected) in [
        (json!({ "equals": [["/kind", "fact"]] }), &["one", "two"][..]),
        (json!({ "equals": [["/kind", null]] }), &["four"]),
        (json!({ "equals": [["/done", true]] }), &["one"]),
        (json!({ "equals": [["/n", 10]] }), &["three"]),
        (json!({ "equals": [["/n", "10"]] }), &["four"]),
        (json!({ "equals": [["/sub/a b", "x"]] }), &["three"]),
        (json!({ "equals": [["/kind", "fact"], ["/n", 2.5]] }), &["two"]),
        (json!({ "between": ["/n", 2, 10] }), &["three", "two"]),
        (json!({ "between": ["/kind", "g", "h"] }), &["three"]),
        (json!({ "words": "river" }), &["two", "one"]),
        (json!({ "words": "RIVER house" }), &["one"]),
        (json!({ "words": "cafe" }), &["three"]),
        (json!({ "words": "river\" OR \"sea" }), &[]),
        (json!({ "words": "river", "equals": [["/n", 1]] }), &["one"]),
        (json!({ "order": ["/n", true], "equals": [["/kind", "fact"]] }), &["two", "one"]),
        (json!({ "order": ["@key", true] }), &["two", "three", "one", "four"]),
        (json!({ "equals": [["/absent", null]] }), &[]),
    ] {
        let mut find = find;
        find["collection"] = json!("c");
        let page = found(&host, find.clone()).await;
        assert_eq!((keys(&page), &page["total"]), (expected.to_vec(), &json!(expected.len())), "{find}");
    }
    let ranked = found(&host, json!({ "collection": "c", "words": "river" })).await;
    assert!(ranked["items"][0]["rank"].as_f64() > ranked["items"][1]["rank"].as_f64(), "{ranked}");
    for find in [
        json!({ "words": "--" }),
        json!({ "equals": [["kind", "x"]] }),
        json!({ "equals": [["/a\"b", "x"]] }),
        json!({ "equals": [["/kind", ["x"]]] }),
        json!({ "between": ["/n", 1, "2"] }),
        json!({ "after": "nonsense" }),
    ] {
        let mut find = find;
        find["collection"] = json!("c");
        assert_eq!(host.failure("keep", json!({ "find": find })).await.kind, Kind::InvalidArguments, "{find}");
    }
}

/// Pages follow each other without gap or double, in any order, while others write.
#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_double() {
    let host = keeper();
    let count: usize = 250;
    for first in (0..count).step_by(50) {
        let puts: Vec<Value> = (first..first + 50)
            .map(|n| json!({ "put": ["c", format!("k{n:03}"), { "n": n % 7, "third": n as f64 / 3.0, "text": "word ".repeat(1 + n % 90) }] }))
            .collect();
        change(&host, json!(puts)).await.expect("changed");
    }
    for look in [
        json!({}),
        json!({ "order": ["/n", true] }),
        json!({ "order": ["/third", false] }),
        json!({ "order": ["@changed", false] }),
        json!({ "words": "word" }),
    ] {
        let (mut after, mut seen, mut pages) = (None::<String>, Vec::new(), 0);
        loop {
            let mut find = look.clone();
            find["collection"] = json!("c");
            find["limit"] = json!(60);
            find["after"] = json!(after);
            let page = found(&host, find).await;
            assert_eq!(page["total"], count, "{look}");
            seen.extend(keys(&page).into_iter().map(str::to_owned));
            pages += 1;
            match page["next"].as_str() {
                Some(next) => after = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!((pages, seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (5, count, count), "{look}");
    }
}

/// However many items a page may have, the host keeps no more of them than that at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_bytes_for_one_answer() {
    let host = keeper();
    let (body, count) = ("x".repeat(250_000), 24);
    for key in 0..count {
        change(&host, json!([{ "put": ["c", format!("k{key:02}"), body] }])).await.expect("changed");
    }
    let first = found(&host, json!({ "collection": "c", "limit": 1000, "keys": true })).await;
    assert_eq!((keys(&first).len(), &first["total"]), ((4 << 20) / 250_002, &json!(count)));
    let second = found(&host, json!({ "collection": "c", "limit": 1000, "keys": true, "after": first["next"] })).await;
    assert_eq!((keys(&second).first(), keys(&second).len()), (Some(&"k16"), 8));
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_in_the_change_that_would_break_them() {
    let host = keeper().set("store.items=3").set("store.item_kib=1").set("store.total_mib=1");
    let long = host.call("keep", json!({ "changes": [{ "put": ["c", "a", "x".repeat(1 << 10)] }] })).await.outcome;
    let long = long.expect_err("too long");
    assert_eq!((long.kind, &*long.message), (Kind::Limit, "`a` has 1026 bytes (limit: 1 KiB)"));
    let puts = |keys: &[&str]| json!(keys.iter().map(|key| json!({ "put": ["c", key, 1] })).collect::<Vec<_>>());
    change(&host, puts(&["a", "b", "c"])).await.expect("changed");
    let many = change(&host, puts(&["a", "d"])).await.expect_err("too many");
    assert_eq!(
        (many.kind, &*many.message),
        (Kind::Limit, "4 items are too many for one plugin of an agent (limit: 3)")
    );
    let item = host.result("keep", json!({ "get": ["c", "a"] })).await["item"].clone();
    assert_eq!(item["revision"], 1, "nothing of it was made");
    change(&host, json!([{ "delete": ["c", "a"] }, { "put": ["c", "d", 1] }])).await.expect("changed");
    for odd in [
        json!([{ "put": ["", "a", 1] }]),
        json!([{ "put": ["c", "a\n", 1] }]),
        json!([{ "put": ["c", "x".repeat(257), 1] }]),
        json!([{ "deep": ["c", "a", 200] }]),
    ] {
        assert_eq!(change(&host, odd).await.expect_err("odd").kind, Kind::InvalidArguments);
    }
    let many: Vec<Value> = (0..101).map(|_| json!({ "delete": ["c", "a"] })).collect();
    assert_eq!(change(&host, json!(many)).await.expect_err("too many").kind, Kind::Limit);
}

/// Whose documents are looked at is never an argument: agents and plugins are apart, whatever they are called.
#[tokio::test(flavor = "multi_thread")]
async fn agents_and_plugins_are_apart() {
    let bytes = std::fs::read(toolcrib_tests::guest("keeper")).expect("a guest");
    let agents = ["a", "b", "a\"", "A", "a/keeper", ""];
    let host = keeper().plugin_as("keeper", &bytes).user("[toolset.x]\ntools = [\"keep\"]\nsession = [\"agent\"]\n");
    let call = async |agent: &str, arguments: Value| -> Value {
        let (called, context) = host.parts();
        let given = json!({ "agent": agent }).as_object().expect("an object").clone();
        let session = Session::on(called.toolset("x").expect("a toolset"), given).expect("a session");
        let request = Request { tool: "keep".into(), arguments: Arguments::Json(arguments) };
        let outcome = called.call(request, &context.clone().session(Arc::new(session))).await.outcome;
        outcome.map_err(|failure| failure.message).expect("a result").result
    };
    for agent in agents {
        call(agent, json!({ "changes": [{ "put": ["c", "k", { "text": format!("word of <{agent}>") }] }] })).await;
    }
    for agent in agents {
        let looked = call(agent, json!({ "get": ["c", "k"], "find": { "collection": "c", "words": "word" } })).await;
        assert_eq!(looked["item"]["body"]["text"], format!("word of <{agent}>"));
        assert_eq!(looked["page"]["total"], 1, "{agent}");
        assert_eq!(looked["item"]["revision"], 1);
    }
    // How much others have written changes no rank.
    let rank = async || {
        call("b", json!({ "find": { "collection": "c", "words": "word" } })).await["page"]["items"][0]["rank"].clone()
    };
    let before = rank().await;
    for number in 0..50 {
        call("a", json!({ "changes": [{ "put": ["c", format!("n{number}"), { "text": "word word word" }] }] })).await;
    }
    assert_eq!(rank().await, before);
}

/// Several programs write into one store, and none loses what another wrote.
#[test]
fn several_programs_share_a_store() {
    let program = Program::new();
    let settings = "[toolset.otter]\ntools = [\"note_save\", \"note_list\"]\n";
    program.write("config/toolcrib/toolcrib.toml", settings);
    let save = |writer: usize, n: usize| {
        let arguments = json!({ "key": format!("w{writer}-{n}"), "content": "x" });
        format!("{}\n", json!({ "id": n, "tool": "note_save", "arguments": arguments }))
    };
    let mut writers: Vec<_> = (0..4).map(|_| program.start(&["run"])).collect();
    for (writer, running) in writers.iter_mut().enumerate() {
        running.write((0..15).map(|n| save(writer, n)).collect::<String>());
    }
    for running in &mut writers {
        for _ in 0..15 {
            let answer = running.line();
            assert!(answer.get("result").is_some(), "{answer}");
        }
    }
    let (_, listed) = program.call(&["note_list", "{}"]);
    assert_eq!(listed["result"]["notes"].as_array().map(Vec::len), Some(60));
}

/// A program that is killed at any moment leaves a whole store, with all that it had said was kept.
#[test]
fn what_was_said_to_be_kept_survives_any_end() {
    let program = Program::new();
    let times = if is_long() { 10_000 } else { 60 };
    for time in 0..times {
        let mut running = program.start(&["run"]);
        let lines: String = (0..40)
            .map(|n| json!({ "id": n, "tool": "note_save", "arguments": { "key": format!("n{n}"), "content": format!("{time}") } }))
            .map(|line| format!("{line}\n"))
            .collect();
        running.write(lines);
        // Some of it is answered by then; how much is up to chance.
        let answered = (0..time % 40).map(|_| running.line()).filter(|answer| answer.get("result").is_some());
        let kept: Vec<u64> = answered.map(|answer| answer["id"].as_u64().expect("an id")).collect();
        running.kill();
        let (_, shown) = program.call(&["note_list", "{}"]);
        let notes = shown["result"]["notes"].as_array().unwrap_or_else(|| panic!("{time}: {shown}")).clone();
        for id in kept {
            let note = notes
                .iter()
                .find(|note| note["key"] == format!("n{id}"))
                .unwrap_or_else(|| panic!("{time}: n{id} is gone"));
            assert_eq!(note["preview"], format!("{time}"), "{time}: n{id}");
        }
    }
    let checked = program.run(&["store", "check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// A million documents are read page by page without gap or double, found by a word, and go from one store to another.
#[tokio::test(flavor = "multi_thread")]
async fn a_million_documents_are_kept_and_found() {
    let count: usize = if is_long() { 1_000_000 } else { 10_000 };
    let host = keeper().set("store.items=1000000").set("store.total_mib=4096");
    let agent = Config::default().agent.name;
    let mut lines = format!("{{\"toolcrib_store\":1,\"items\":{count}}}\n");
    for n in 0..count {
        let (body, at) =
            (json!({ "text": format!("word{n} even{}", n % 2), "n": n }), 1_790_000_000_000_u64 + n as u64);
        let document = json!({
            "agent": agent, "plugin": "keeper", "collection": "c", "key": format!("k{n:07}"), "body": body, "revision": 1,
            "made_ms": at, "changed_ms": at,
        });
        lines += &format!("{document}\n");
    }
    let file = host.work().join("export");
    std::fs::write(&file, &lines).expect("an export");
    let limits = config::Store { items: 1_000_000, total_mib: 4096, ..Config::default().store };
    let imported = store::import(&host.dirs(), &limits, &file, false).expect("it is imported");
    assert_eq!(imported.made, count as u64);
    let (mut after, mut seen) = (None, 0);
    loop {
        let page = found(&host, json!({ "collection": "c", "limit": 1000, "keys": true, "after": after })).await;
        assert_eq!(page["total"], count);
        for key in keys(&page) {
            assert_eq!(key, format!("k{seen:07}"));
            seen += 1;
        }
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, count);
    for n in [0, count / 3, count - 1] {
        let one = found(&host, json!({ "collection": "c", "words": format!("word{n}") })).await;
        assert_eq!((keys(&one), &one["total"]), (vec![format!("k{n:07}").as_str()], &json!(1)));
    }
    assert_eq!(found(&host, json!({ "collection": "c", "words": "even1", "limit": 1 })).await["total"], count / 2);
    let one_more = change(&host, json!([{ "put": ["c", "more", {}] }])).await;
    match is_long() {
        true => assert_eq!(one_more.expect_err("a refusal").kind, Kind::Limit),
        false => one_more.expect("it is kept"),
    }
    let checked = store::check(&host.dirs()).expect("it can be read").expect("it is there");
    assert_eq!(checked.faults, Vec::<String>::new());
    let written = store::export(&host.dirs(), &host.work().join("again"), None).expect("it is written");
    assert_eq!(written, Some(checked.items));
    if is_long() {
        assert!(std::fs::read_to_string(host.work().join("again")).expect("an export").lines().count() == count + 1);
    }
}
