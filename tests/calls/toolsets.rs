//! Sessions on toolsets: some of the tools, some of their arguments, less than they may do elsewhere. The numbers are those of the cases of
//! agents that are made of several processes.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib::toolset::Lifetime;
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

const SETTINGS: &str = r#"
[toolset.base]
tools = ["time", "read_file"]
[toolset.worker]
extends = ["base"]
tools = ["run_shell"]
bind.run_shell = { why = "the worker's task", risk = "low" }
bind.read_file.path = "$session.file"
[toolset.channel]
tools = ["time"]
turn = ["write_file"]
delegates = ["worker"]
[toolset.nothing]
tools = []
"#;

fn host() -> TestHost {
    TestHost::new().user(SETTINGS)
}

fn open(host: &TestHost, toolset: &str, given: Value) -> Result<Arc<Session>, Failure> {
    let given: Map<String, Value> = serde_json::from_value(given).expect("an object");
    Session::on(host.parts().0.toolset(toolset)?, given).map(Arc::new)
}

async fn call(host: &TestHost, session: &Arc<Session>, tool: &str, arguments: Value) -> Envelope {
    let (called, context) = host.parts();
    let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
    called.call(request, &context.clone().session(session.clone())).await
}

async fn failure(host: &TestHost, session: &Arc<Session>, tool: &str, arguments: Value) -> Failure {
    call(host, session, tool, arguments).await.outcome.map(|output| output.result.to_string()).expect_err("a failure")
}

async fn result(host: &TestHost, session: &Arc<Session>, tool: &str, arguments: Value) -> Value {
    call(host, session, tool, arguments).await.outcome.map(|output| output.result).expect("a result")
}

async fn offered(host: &TestHost, session: &Arc<Session>) -> Vec<(String, Vec<String>)> {
    let (host, context) = host.parts();
    let offered = host.offered(&context.clone().session(session.clone())).await;
    let arguments =
        |schema: &Value| schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let named = |tool: &Arc<toolcrib::tools::definition::Tool>| {
        (tool.name().to_owned(), arguments(&tool.definition().input_schema))
    };
    offered.tools.iter().map(named).collect()
}

/// Case 18.
#[tokio::test]
async fn a_session_has_the_tools_of_its_toolset_and_no_others() {
    let host = host();
    std::fs::write(host.work().join("there"), "told\n").expect("a file");
    let worker = open(&host, "worker", json!({ "file": "there" })).expect("a session");
    let names: Vec<String> = offered(&host, &worker).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["read_file", "run_shell", "time"]);
    let refused = failure(&host, &worker, "write_file", json!({ "path": "x", "content": "x" })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Unavailable, "toolset `worker` has no tool `write_file`"));
    assert_eq!(refused.hint.as_deref(), Some("it has `read_file`, `run_shell`, `time`"));
    assert!(!host.work().join("x").exists());
    // What there is nowhere is unknown here as well.
    assert_eq!(failure(&host, &worker, "no_such", json!({})).await.kind, Kind::UnknownTool);
    let nothing = open(&host, "nothing", json!({})).expect("a session");
    assert_eq!(offered(&host, &nothing).await, []);
    assert_eq!(failure(&host, &nothing, "time", json!({})).await.hint.as_deref(), Some("it has no tools at all"));
    // A session without one has all.
    assert_eq!(
        host.result("write_file", json!({ "path": "x", "content": "x" })).await,
        json!(host.result("write_file", json!({ "path": "x", "content": "x" })).await)
    );
    let tools: Vec<_> =
        worker.toolset().expect("a toolset").tools().map(|(name, lifetime)| (name.to_owned(), lifetime)).collect();
    assert_eq!(tools, ["read_file", "run_shell", "time"].map(|name| (name.to_owned(), Lifetime::Session)));
}

/// Case 19.
#[tokio::test]
async fn a_tool_of_a_turn_goes_with_the_turn() {
    let host = host();
    let channel = open(&host, "channel", json!({})).expect("a session");
    let write = || json!({ "path": "said", "content": "x" });
    let refused = failure(&host, &channel, "write_file", write()).await;
    assert_eq!(refused.kind, Kind::Unavailable);
    assert_eq!(refused.message, "`write_file` of toolset `channel` is there while a turn is open, and none is");
    assert_eq!(channel.turn(false).expect_err("a failure").message, "no turn is open");
    channel.turn(true).expect("a turn");
    assert_eq!(channel.turn(true).expect_err("a failure").message, "a turn is open already");
    assert!(result(&host, &channel, "write_file", write()).await.is_string());
    assert_eq!(offered(&host, &channel).await.len(), 2);
    channel.turn(false).expect("its end");
    assert_eq!(failure(&host, &channel, "write_file", write()).await.kind, Kind::Unavailable);
    assert_eq!((offered(&host, &channel).await.len(), channel.generation()), (1, 2));
    let plain = Session::default();
    assert_eq!(plain.turn(true).expect_err("a failure").message, "a session without a toolset has no turns");
}

/// Cases 13 and 20: what is bound is set, and nobody gives it.
#[tokio::test]
async fn a_constant_is_not_an_argument() {
    let host = host().answering(Answer::Yes);
    std::fs::write(host.work().join("there"), "told\n").expect("a file");
    let worker = open(&host, "worker", json!({ "file": "there" })).expect("a session");
    let listed = offered(&host, &worker).await;
    let of = |tool: &str| {
        listed.iter().find(|(name, _)| name == tool).map(|(_, arguments)| arguments.clone()).expect("a tool")
    };
    assert!(!of("read_file").contains(&"path".to_owned()), "{listed:?}");
    assert!(
        of("run_shell").contains(&"command".to_owned()) && !of("run_shell").contains(&"why".to_owned()),
        "{listed:?}"
    );
    assert_eq!(result(&host, &worker, "read_file", json!({})).await, "told\n");
    let given = failure(&host, &worker, "read_file", json!({ "path": "/etc/passwd" })).await;
    assert_eq!(
        (given.kind, &*given.message),
        (Kind::InvalidArguments, "`path` of `read_file` is set by toolset `worker`, and cannot be given")
    );
    let ran =
        result(&host, &worker, "run_shell", json!({ "command": "echo ran", "mutation": false, "privesc": false }))
            .await;
    assert_eq!(ran["stdout"], "ran\n");
    let declared = host.asked().pop().and_then(|asked| asked.declaration).expect("it was asked");
    assert_eq!(declared.why, "the worker's task");
    // Another session has another.
    std::fs::write(host.work().join("other"), "else\n").expect("a file");
    let other = open(&host, "worker", json!({ "file": "other" })).expect("a session");
    assert_eq!(result(&host, &other, "read_file", json!({})).await, "else\n");
    for (given, said) in [
        (json!({}), "toolset `worker` wants `file` of its session"),
        (json!({ "file": "x", "task": 7 }), "toolset `worker` has no use for `task`"),
    ] {
        assert_eq!(open(&host, "worker", given).map(|_| ()).expect_err("a failure").message, said);
    }
    // One that does not fit is told as what was given would be.
    let odd = open(&host, "worker", json!({ "file": 5 })).expect("a session");
    assert_eq!(failure(&host, &odd, "read_file", json!({})).await.kind, Kind::InvalidArguments);
}

/// Case 21, and what a grant leaves.
#[tokio::test]
async fn a_grant_only_narrows() {
    let host = TestHost::new().set("tools.shell_confirm=false").user(
        "[plugin.read_file]\nfiles.read = [\"~/\", \"/tmp\"]\n\
         [toolset.closed]\ntools = [\"run_shell\", \"read_file\"]\n[toolset.closed.grant]\ntools.shell_enabled = false\n\
         plugin.read_file.files.read = [\"~/inner\"]\n\
         [toolset.open]\ntools = [\"read_file\"]\ngrant.plugin.read_file.files.read = [\"/\"]\n\
         [toolset.more]\ntools = [\"time\"]\ngrant.plugin.stranger.files.read = [\"~/x\"]\n\
         [toolset.limits]\ntools = [\"time\"]\ngrant.limits.call_ms = 5\n\
         [toolset.yes]\ntools = [\"time\"]\ngrant.approval.allow_yes = false\n\
         [toolset.off]\ntools = [\"time\"]\ngrant.plugin.time.enabled = false\n\
         [toolset.asking]\nextends = [\"closed\"]\ngrant.tools.shell_confirm = true\n",
    );
    let closed = open(&host, "closed", json!({})).expect("a session");
    let refused = failure(&host, &closed, "run_shell", harmless("true")).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::Denied, "`shell` is switched off by `tools.shell_enabled = false`")
    );
    assert_eq!(host.shell("echo elsewhere").await["stdout"], "elsewhere\n");
    let denied = host.parts().0.offered(&host.parts().1.clone().session(closed.clone())).await;
    let shell = denied.tools.iter().find(|tool| tool.name() == "run_shell").expect("a tool");
    assert!(host.parts().0.denial(shell, &host.parts().1.clone().session(closed)).is_some());
    assert!(host.parts().0.denial(shell, &host.parts().1).is_none());
    for (name, said) in [
        ("open", "`plugin.read_file.files.read` gives more than there is: a toolset can only narrow"),
        ("more", "`plugin.stranger.files.read` gives what nothing else gives: a toolset can only narrow"),
        ("limits", "`limits.call_ms` is one for the whole program: a toolset cannot narrow it"),
        ("yes", "`approval.allow_yes` is one for the whole program: a toolset cannot narrow it"),
    ] {
        let failure = open(&host, name, json!({})).map(|_| ()).expect_err("a failure");
        assert!(
            failure.kind == Kind::InvalidArguments && failure.message.contains(said),
            "{name}: {}",
            failure.message
        );
    }
    // A plugin that is off there is not offered either, whatever it can do.
    let off = open(&host, "off", json!({})).expect("a session");
    assert_eq!(failure(&host, &off, "time", json!({})).await.kind, Kind::Denied);
    let (called, context) = host.parts();
    let context = context.clone().session(off);
    let time = called.offered(&context).await.tools.pop().expect("a tool");
    assert!(called.denial(&time, &context).is_some());
    // What it extends binds it as well.
    let asking = open(&host, "asking", json!({})).expect("a session");
    assert_eq!(failure(&host, &asking, "run_shell", harmless("true")).await.kind, Kind::Denied);
}

/// What a policy file says for a moment is in force neither then nor later.
#[test]
fn a_policy_that_is_swapped_for_a_moment_is_not_what_a_toolset_narrows() {
    let strict = "[tools]\nshell_enabled = false\n";
    let host = TestHost::new()
        .policy(strict)
        .user("[toolset.x]\ntools = [\"run_shell\"]\ngrant.tools.fetch_enabled = false\n");
    let (called, _) = host.parts();
    let file = host.work().parent().expect("its directory").join("policy0.toml");
    assert!(file.exists());
    std::fs::write(&file, "").expect("a file");
    let refused = called.toolset("x").map(|_| ()).expect_err("a failure");
    assert!(refused.kind == Kind::Unavailable && refused.message.contains("is not obeyed yet"), "{}", refused.message);
    std::fs::write(&file, strict).expect("a file");
    assert!(called.toolset("x").is_ok());
}

#[tokio::test]
async fn toolsets_that_make_no_sense_are_told() {
    let host = TestHost::new().user(
        "[toolset.a]\nextends = [\"b\"]\n[toolset.b]\nextends = [\"a\"]\n[toolset.c]\nextends = [\"d\"]\n\
         [toolset.odd]\ntools = [\"no_such\", \"nowhere__*\", \"time\"]\nbind.run_shell.why = \"x\"\ndelegates = [\"idle\", \"gone\"]\n\
         [toolset.idle]\ntools = [\"time\"]\n",
    );
    for (name, said) in [
        ("a", "toolset `a` extends `b` extends `a`: none can extend itself"),
        ("c", "there is no toolset `d`"),
        ("nowhere", "there is no toolset `nowhere`"),
    ] {
        assert_eq!(open(&host, name, json!({})).map(|_| ()).expect_err("a failure").message, said);
    }
    let (host, context) = host.parts();
    let odd =
        host.toolset("odd").expect("a toolset").odd(host.policy().config(), &|tool| context.tools.find_plugin(tool));
    assert_eq!(
        odd,
        [
            "[toolset.odd] names `no_such`, and there is no such tool",
            "[toolset.odd] names `nowhere__*`, and there is no such server",
            "[toolset.odd] binds arguments of `run_shell`, which it does not have",
            "[toolset.odd] hands work over: there is no toolset `gone`",
            "[toolset.odd] hands work over to `idle`, and neither that nor any that it hands it on to has a tool that runs commands",
        ]
    );
}

/// The sets in `host/docs/toolsets/`: each has tools that there are, and sessions can be opened on it.
#[tokio::test]
async fn the_sets_that_are_shipped_can_be_used() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/docs/toolsets");
    let files: Vec<_> = std::fs::read_dir(root).expect("the sets").map(|file| file.expect("a file").path()).collect();
    let mut names = Vec::new();
    for file in &files {
        let host = TestHost::new().user(&std::fs::read_to_string(file).expect("a set"));
        let (called, context) = host.parts();
        let policy = called.policy();
        for name in policy.config().toolset.keys() {
            let toolset = called.toolset(name).map_err(|failure| failure.message).expect("a toolset");
            assert_eq!(
                toolset.odd(policy.config(), &|tool| context.tools.find_plugin(tool)),
                [""; 0],
                "{}",
                file.display()
            );
            let given: Map<String, Value> = toolset.needs().into_iter().map(|need| (need.into(), json!("x"))).collect();
            let session = Arc::new(Session::on(toolset, given).expect("a session"));
            session.turn(true).expect("a turn");
            assert!(!offered(&host, &session).await.is_empty(), "{name}");
            names.push(name.clone());
        }
    }
    for name in ["channel", "branch", "worker", "cortex", "compactor", "cortex-chat", "otter"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
}

/// What Spacebot and OpenOtters give their processes (`browser` stands for all of its tools), and what our sets give them besides.
const PROCESSES: [(&str, &str, &str); 7] = [
    (
        "channel",
        "reply ask react skip send_file branch spawn_worker route cancel cron goal_list attachment_recall",
        "time",
    ),
    (
        "branch",
        "memory_save memory_recall memory_delete channel_recall spacebot_docs email_search worker_inspect spawn_worker file_read \
         task_create task_list task_update task_history add_task_comment goal_list",
        "time file_list task_show goal_create goal_update",
    ),
    (
        "worker",
        "shell exec file_read file_write file_edit file_list web_search set_status task_update",
        "time fetch_url",
    ),
    ("cortex", "memory_save", "time"),
    ("compactor", "memory_save", "time"),
    (
        "cortex-chat",
        "memory_save memory_recall memory_delete channel_recall spacebot_docs config_inspect shell exec file_read file_write \
         file_edit file_list browser web_search task_create task_list task_update",
        "time fetch_url task_show",
    ),
    (
        "otter",
        "exec context_list context_show env_list mount_list bin_list note_list note_show note_save note_delete note_pin note_unpin \
         job_submit job_status job_wait job_watch job_list job_cancel agent_list agent_info agent_exec",
        "time file_read file_write file_edit file_list",
    ),
];

#[tokio::test]
async fn the_sets_that_are_shipped_have_the_tools_of_their_processes() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/docs/toolsets");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a set");
    let host = TestHost::new().user(&(read("spacebot.toml") + &read("openotters.toml")));
    for (name, theirs, besides) in PROCESSES {
        let toolset = host.parts().0.toolset(name).expect("a toolset");
        let one = |tool: &str| if tool.starts_with("browser_") { "browser".to_owned() } else { tool.to_owned() };
        let has: BTreeSet<String> = toolset.tools().map(|(tool, _)| one(tool)).collect();
        let expected: BTreeSet<String> =
            theirs.split_whitespace().chain(besides.split_whitespace()).map(str::to_owned).collect();
        assert_eq!(has, expected, "{name}");
    }
}

/// The set of a reviewer changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_of_a_shipped_set_narrows_what_its_sessions_do() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/docs/toolsets/spacebot.toml");
    let host = TestHost::new().user(&std::fs::read_to_string(file).expect("a set"));
    std::fs::write(host.work().join("a.txt"), "tea").expect("a file");
    let given = json!({ "channel": "x", "worker": "w1", "task": 1 });
    let (worker, reviewer) = (open(&host, "worker", given.clone()), open(&host, "reviewer", given));
    let (worker, reviewer) = (worker.expect("a session"), reviewer.expect("a session"));
    let edit = |to: &str| json!({ "path": "a.txt", "old_string": "tea", "new_string": to });
    assert_eq!(failure(&host, &reviewer, "file_edit", edit("milk")).await.kind, Kind::Denied);
    assert_eq!(result(&host, &reviewer, "file_read", json!({ "path": "a.txt" })).await, "tea");
    let write = json!({ "command": "echo x > made" });
    assert_ne!(result(&host, &reviewer, "shell", write.clone()).await["exit_code"], 0);
    assert!(!host.work().join("made").exists());
    let diff = result(&host, &worker, "file_edit", edit("coffee")).await;
    assert!(diff.as_str().is_some_and(|diff| diff.contains("+coffee\n")), "{diff}");
    assert_eq!(result(&host, &worker, "shell", write).await["exit_code"], 0);
}

/// A session costs little, and leaves nothing.
#[tokio::test]
async fn many_sessions_are_opened_and_closed() {
    let host = host();
    let toolset = host.parts().0.toolset("channel").expect("a toolset");
    let count = if toolcrib_tests::is_long() { 10_000 } else { 100 };
    let before = toolcrib_tests::resident_kib(std::process::id());
    for _ in 0..10 {
        let open: Vec<_> = (0..count).map(|_| Session::on(toolset.clone(), Map::new()).expect("a session")).collect();
        open.iter().for_each(|session| session.turn(true).expect("a turn"));
    }
    let sessions: Vec<_> =
        (0..1000).map(|_| Arc::new(Session::on(toolset.clone(), Map::new()).expect("a session"))).collect();
    for session in &sessions {
        assert!(call(&host, session, "time", json!({})).await.outcome.is_ok());
    }
    let each = (toolcrib_tests::resident_kib(std::process::id()).saturating_sub(before)) / sessions.len() as u64;
    assert!(each <= 20, "{each} KiB a session");
}
