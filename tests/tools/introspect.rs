//! The tools of the family `introspect`: contexts, variables, settings and documents. The numbers are those of the cases of agents.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Envelope, Kind};
use toolcrib_tests::TestHost;

/// A host with a toolset that declares these lines.
fn host(lines: &str) -> TestHost {
    TestHost::new().user(&format!(
        "[toolset.otter]\ntools = [\"context_list\", \"context_show\", \"env_list\", \"config_inspect\", \"spacebot_docs\"]\n{lines}"
    ))
}

async fn call(host: &TestHost, tool: &str, arguments: Value) -> Envelope {
    let (called, context) = host.parts();
    let session = Session::on(called.toolset("otter").expect("a toolset"), Map::new()).expect("a session");
    let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
    called.call(request, &context.clone().session(Arc::new(session))).await
}

async fn result(host: &TestHost, tool: &str, arguments: Value) -> Value {
    let outcome = call(host, tool, arguments).await.outcome;
    outcome.map(|output| output.result).map_err(|failure| failure.to_json().to_string()).expect("a result")
}

/// Cases 20 to 25: texts by their names, and nothing of where they lie.
#[tokio::test]
async fn contexts_are_listed_and_shown_by_name() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    std::fs::write(at("style.md"), "Write plainly.\n").expect("a file");
    std::fs::write(at("long.md"), "ä".repeat(500_000)).expect("a file");
    std::fs::write(at("binary"), b"\xff\xfe").expect("a file");
    let line = |name: &str, file: &str, about: &str| {
        format!("context.{name} = {{ file = {:?}, about = {about:?} }}\n", at(file).display().to_string())
    };
    let lines = [
        line("style", "style.md", "How we | write\nhere."),
        line("long", "long.md", "Long."),
        line("gone", "gone.md", "Gone."),
        line("binary", "binary", "Odd."),
    ];
    let host = host(&lines.concat());
    let listed = result(&host, "context_list", json!({})).await;
    let names: Vec<&str> = listed["contexts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["style", "long", "gone", "binary"]);
    assert_eq!(
        listed["contexts"][0],
        json!({ "name": "style", "file": "style.md", "description": "How we | write\nhere." })
    );
    assert_eq!(result(&host, "context_show", json!({ "name": "style" })).await, "Write plainly.\n");
    let head = call(&host, "context_show", json!({ "name": "long" })).await.outcome.expect("a result");
    assert_eq!(head.result.as_str().map(|text| text.chars().count()), Some(32_000));
    assert_eq!(head.notices, ["`long` has 1000000 bytes: read on with `offset`: 64000"]);
    let rest =
        call(&host, "context_show", json!({ "name": "long", "offset": 999_999 })).await.outcome.expect("a result");
    assert_eq!((rest.result, rest.notices.len()), (json!(""), 0));
    for (name, why) in [
        ("styl", "there is no context `styl`"),
        ("../agent.yaml", "there is no context `../agent.yaml`"),
        ("gone", "the context `gone` cannot be read: entity not found"),
        ("binary", "the context `binary` cannot be read: it is not text"),
    ] {
        let failure = call(&host, "context_show", json!({ "name": name })).await.outcome.expect_err("a failure");
        assert_eq!((failure.kind, &*failure.message), (Kind::ExecutionFailed, why));
        let all = format!("{failure:?}");
        assert!(!all.contains(&place.path().display().to_string()), "{all}");
        assert!(why.starts_with("the context") || all.contains("`style`, `long`, `gone`, `binary`"), "{all}");
    }
    let nothing = self::host("");
    let none = call(&nothing, "context_list", json!({})).await.outcome.expect("a result");
    assert_eq!(
        (none.result, none.notices),
        (json!({ "contexts": [] }), vec!["no texts were written for you".to_owned()])
    );
    // Outside of a toolset there are none.
    assert_eq!(host.result("context_list", json!({})).await, json!({ "contexts": [] }));
}

/// Cases 26 and 70.
#[tokio::test]
async fn variables_are_told_of_and_never_their_values() {
    let host = host("environment = { TOKEN = \"For the registry.\", CI = \"Set in tests.\" }\n");
    let listed = result(&host, "env_list", json!({})).await;
    let expected = json!([
        { "key": "CI", "description": "Set in tests." }, { "key": "TOKEN", "description": "For the registry." },
    ]);
    assert_eq!(listed["variables"], expected);
    for name in ["OPENAI_API_KEY", "PATH", "LD_PRELOAD", "A_API_BASE"] {
        let text = format!("[toolset.x]\ntools = []\nenvironment = {{ {name} = \"x\" }}\n");
        let directory = tempfile::tempdir().expect("a directory");
        let user = directory.path().join("user.toml");
        std::fs::write(&user, text).expect("settings");
        let sources = toolcrib::config::Sources { home: "/".into(), user: Some(user), ..Default::default() };
        let error = toolcrib::config::Settings::load(&sources).map(|_| ()).expect_err("an error").to_string();
        assert!(error.contains(&format!("`{name}` is not a variable for an agent")), "{error}");
    }
}

/// Case 60.
#[tokio::test]
async fn settings_are_shown_with_where_they_come_from_and_no_secret() {
    let host = host("").set("limits.call_ms=4321");
    let limits = result(&host, "config_inspect", json!({ "section": "limits" })).await;
    let text = limits.as_str().expect("text");
    assert!(text.starts_with("[limits]\n") && text.contains("call_ms = 4321  # --set\n"), "{text}");
    assert!(text.contains("guest_cpu_ms = 5000  # default\n") && !text.contains("[tools]"), "{text}");
    for all in [json!({}), json!({ "section": "all" })] {
        let all = result(&host, "config_inspect", all).await;
        assert!(all.as_str().is_some_and(|text| text.contains("[tools]") && text.contains("[limits]")));
    }
    let failure = call(&host, "config_inspect", json!({ "section": "limit" })).await.outcome.expect_err("a failure");
    assert_eq!(failure.message, "there is no section of settings `limit`");
    assert!(failure.hint.is_some_and(|hint| hint.contains("`limits`")));
}

#[tokio::test]
async fn documents_are_listed_found_and_read_by_lines() {
    let host = host("");
    let ids = |answer: Value| -> Vec<String> {
        let documents = answer["documents"].as_array().expect("a list").clone();
        documents.iter().map(|document| document["id"].as_str().expect("an id").to_owned()).collect()
    };
    let all = ids(result(&host, "spacebot_docs", json!({ "action": "list" })).await);
    assert!(all.len() >= 15 && all.contains(&"policy".to_owned()), "{all:?}");
    let some = ids(result(&host, "spacebot_docs", json!({ "action": "list", "query": "minisign signature" })).await);
    assert!(some.contains(&"locked".to_owned()) && some.len() < all.len(), "{some:?}");
    let read = json!({ "action": "read", "doc_id": "policy", "start_line": 3, "max_lines": 2 });
    let page = result(&host, "spacebot_docs", read).await;
    assert_eq!((&page["start_line"], &page["end_line"], &page["has_more"]), (&json!(3), &json!(4), &json!(true)));
    assert!(page["text"].as_str().is_some_and(|text| text.starts_with("This page describes")), "{page}");
    for (arguments, kind, said) in [
        (json!({ "action": "read", "doc_id": "polici" }), Kind::ExecutionFailed, "there is no document `polici`"),
        (json!({ "action": "read" }), Kind::InvalidArguments, "`doc_id` is missing"),
        (json!({ "action": "list", "doc_id": "policy" }), Kind::InvalidArguments, "is for the action `read`"),
        (json!({ "action": "read", "doc_id": "policy", "start_line": 100_000 }), Kind::InvalidArguments, "there are"),
    ] {
        let failure = call(&host, "spacebot_docs", arguments).await.outcome.expect_err("a failure");
        assert!(failure.kind == kind && failure.message.contains(said), "{failure:?}");
    }
}

#[tokio::test]
async fn a_policy_closes_it() {
    let host = TestHost::new().policy("plugin.introspect.introspect = false");
    for (tool, arguments) in
        [("context_list", json!({})), ("config_inspect", json!({})), ("spacebot_docs", json!({ "action": "list" }))]
    {
        let refused = host.failure(tool, arguments).await;
        assert_eq!(refused.kind, Kind::Denied, "{tool}");
        assert!(refused.hint.is_some_and(|hint| hint.starts_with("the operator's policy decides this")), "{tool}");
    }
}

/// Case 36: who an agent is, no tool reads or writes, under any name; `context_show` shows it.
#[tokio::test(flavor = "multi_thread")]
async fn identity_files_are_closed_to_tools_and_commands() {
    let test = TestHost::new();
    let place = |name: &str| test.work().join(name);
    for name in ["SOUL.md", "role.txt", "style.md"] {
        std::fs::write(place(name), format!("{name} of the agent\n")).expect("a file");
    }
    std::os::unix::fs::symlink("SOUL.md", place("link")).expect("a link");
    std::fs::hard_link(place("SOUL.md"), place("other")).expect("another name");
    let context =
        |name: &str, file: &str| format!("[toolset.otter.context.{name}]\nfile = {:?}\nabout = \"x\"\n", place(file));
    let contexts = context("SOUL", "SOUL.md") + &context("Role", "role.txt") + &context("STYLE", "style.md");
    let host = test.user(&format!("[toolset.otter]\ntools = [\"context_show\"]\n{contexts}"));
    for name in ["SOUL.md", "role.txt", "link", "other", "./SOUL.md"] {
        for (tool, arguments) in [
            ("read_file", json!({ "path": name })),
            ("file_read", json!({ "path": name })),
            ("write_file", json!({ "path": name, "content": "mine" })),
            ("file_write", json!({ "path": name, "content": "mine" })),
            ("file_edit", json!({ "path": name, "old_string": "of", "new_string": "off" })),
        ] {
            let refused = host.failure(tool, arguments).await;
            assert_eq!(refused.kind, Kind::Denied, "{tool} {name}: {refused:?}");
        }
    }
    let refused = host.failure("read_file", json!({ "path": "SOUL.md" })).await;
    assert!(refused.message.contains("holds what an agent is, which `context_show` shows"), "{refused:?}");
    // Other contexts are files like all.
    assert_eq!(host.result("read_file", json!({ "path": "style.md" })).await, "style.md of the agent\n");
    let shown = result(&host, "context_show", json!({ "name": "SOUL" })).await;
    assert!(shown.to_string().contains("SOUL.md of the agent"), "{shown}");
}

/// Case 27, where nothing is mounted; `tests/confined/mounts.rs` has what is.
#[tokio::test]
async fn without_mounts_there_are_none() {
    let host = host("");
    let (called, context) = host.parts();
    let request = Request { tool: "mount_list".into(), arguments: Arguments::Json(json!({})) };
    let output = called.call(request, context).await.outcome.expect("a result");
    assert_eq!(
        (output.result, output.notices),
        (json!({ "mounts": [] }), vec!["nothing is mounted for you".to_owned()])
    );
}
