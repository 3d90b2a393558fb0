//! Sessions on toolsets at the doors: lines of `toolcrib run`, `serve --toolset`, `tools --toolset` and `--why`, `--all`, `doctor`.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolcrib_tests::http::{Server, home};
use toolcrib_tests::outcome::{NO_QUESTION, answers, code, json_of, stderr, succeeded};
use toolcrib_tests::{Program, Running};

const SETTINGS: &str = "[toolset.worker]\ntools = [\"run_shell\", \"read_file\"]\nbind.read_file.path = \"$session.file\"\n\
                        [toolset.channel]\ntools = [\"time\"]\nturn = [\"write_file\"]\ndelegates = [\"channel\"]\n";

fn program() -> Program {
    let program = Program::new();
    program.write("toolsets.toml", SETTINGS);
    program.write("work/there", "told\n");
    program
}

fn with<'a>(config: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&NO_QUESTION[..], &["--config", config], arguments].concat()
}

/// Writes a line and reads its answer.
fn ask(running: &mut Running, line: &Value) -> Value {
    running.write(format!("{line}\n"));
    let answer = running.line();
    assert_eq!(answer["id"], line["id"], "{answer}");
    answer
}

#[test]
fn a_session_is_opened_used_and_closed_by_lines() {
    let program = program();
    let config = program.path("toolsets.toml").display().to_string();
    let mut running = program.start(&with(&config, &["run"]));
    let mut ask = |line: Value| ask(&mut running, &line);
    let opened = ask(json!({ "id": 1, "open": { "toolset": "worker", "bind": { "file": "there" } } }));
    assert_eq!(opened["result"], json!({ "session": "s1", "toolset": "worker", "generation": 0 }));
    let read = json!({ "id": 2, "session": "s1", "tool": "read_file", "arguments": {} });
    assert_eq!(ask(read.clone())["result"], "told\n");
    let refused = ask(json!({ "id": 3, "session": "s1", "tool": "time", "arguments": {} }));
    assert_eq!(refused["error"]["message"], "toolset `worker` has no tool `time`");
    // A line without a session has all tools.
    assert_eq!(ask(json!({ "id": 4, "tool": "time" }))["result"]["source"], "harness");
    let all = ask(json!({ "id": 5, "list": "anthropic" }))["result"]["definitions"].clone();
    assert!(all.as_array().is_some_and(|all| all.iter().any(|tool| tool["name"] == "time")), "{all}");
    let listed = ask(json!({ "id": 5, "session": "s1", "list": "mcp" }));
    let tools = listed["result"]["definitions"]["tools"].as_array().expect("a list").clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["read_file", "run_shell"]);
    assert!(tools[0]["inputSchema"]["properties"].get("path").is_none(), "{}", tools[0]);
    assert_eq!(ask(json!({ "id": 6, "session": "s1", "close": true }))["result"], json!({ "closed": "s1" }));
    assert_eq!(ask(read)["error"]["message"], "no session `s1` is open");
    // Turns.
    let opened = ask(json!({ "id": 7, "open": { "toolset": "channel" } }));
    assert_eq!(opened["result"]["session"], "s2");
    let write = |id: u64| json!({ "id": id, "session": "s2", "tool": "write_file", "arguments": { "path": "x", "content": "x" } });
    assert_eq!(ask(write(8))["error"]["kind"], "unavailable");
    assert_eq!(ask(json!({ "id": 9, "session": "s2", "turn": "begin" }))["result"], json!({ "generation": 1 }));
    assert!(ask(write(10))["result"].is_string());
    assert_eq!(
        ask(json!({ "id": 11, "session": "s2", "turn": "end" }))["result"],
        json!({ "generation": 2, "told": [] })
    );
    assert_eq!(ask(write(12))["error"]["kind"], "unavailable");
}

#[test]
fn lines_about_sessions_that_make_no_sense_are_told() {
    let program = program();
    let config = program.path("toolsets.toml").display().to_string();
    let lines = [
        (json!({ "open": { "toolset": "none" } }), "there is no toolset `none`"),
        (json!({ "open": { "toolset": "worker" } }), "toolset `worker` wants `file` of its session"),
        (json!({ "open": { "toolset": "channel", "bind": { "x": 1 } } }), "toolset `channel` has no use for `x`"),
        (json!({ "session": "s9", "tool": "time" }), "no session `s9` is open"),
        (json!({ "session": "s9", "turn": "begin" }), "no session `s9` is open"),
        (json!({ "session": "s9", "close": false }), "a line has either `tool` or `cancel`, or is about a session"),
        (json!({ "session": "s9" }), "a line has either `tool` or `cancel`, or is about a session"),
        (
            json!({ "session": "s9", "close": true, "tool": "time" }),
            "a line has either `tool` or `cancel`, or is about a session",
        ),
        (
            json!({ "open": { "toolset": "channel" }, "arguments": {} }),
            "a line has either `tool` or `cancel`, or is about a session",
        ),
    ];
    let input: String = lines
        .iter()
        .enumerate()
        .map(|(id, (line, _))| {
            let mut line = line.clone();
            line["id"] = id.into();
            format!("{line}\n")
        })
        .collect();
    let said = answers(&program.run_with(&with(&config, &["run"]), &input));
    for (id, (line, expected)) in lines.iter().enumerate() {
        let answer = said.iter().find(|answer| answer["id"] == id).expect("an answer");
        assert_eq!(answer["error"]["message"], *expected, "{line}");
    }
    for line in [
        "{\"id\":1,\"session\":\"s1\",\"turn\":\"middle\"}",
        "{\"id\":1,\"open\":{}}",
        "{\"id\":1,\"open\":{\"toolset\":\"a\",\"more\":1}}",
    ] {
        let said = answers(&program.run_with(&with(&config, &["run"]), &format!("{line}\n")));
        assert!(
            said[0]["error"]["message"].as_str().is_some_and(|text| text.starts_with("the line is not a request")),
            "{said:?}"
        );
    }
}

#[test]
fn tools_are_listed_and_missed_by_toolset() {
    let program = program();
    let config = program.path("toolsets.toml").display().to_string();
    let tools = |arguments: &[&str]| program.run(&with(&config, &[&["tools"], arguments].concat()));
    let names = |arguments: &[&str]| {
        let list = json_of(&tools(&[arguments, &["--json"]].concat()));
        list.as_array()
            .expect("a list")
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--toolset", "channel"]), ["time", "write_file"]);
    assert_eq!(names(&["--toolset", "worker", "--bind", "file=there"]), ["read_file", "run_shell"]);
    let one = json_of(&tools(&["read_file", "--toolset", "worker", "--bind", "file=there", "--json"]));
    assert!(one["inputSchema"]["properties"].get("path").is_none(), "{one}");
    for (arguments, said) in [
        (&["time"][..], "`time` is offered"),
        (
            &["time", "--toolset", "worker", "--bind", "file=there"],
            "`time` is not offered: toolset `worker` has no tool `time`",
        ),
        (&["no_such"], "`no_such` is not offered: there is no tool `no_such`"),
        (&["capture-pane"], "`capture-pane` is not offered: it needs `panes`, and there are no managed panes here"),
    ] {
        let text = succeeded(&tools(&[&["--why"], arguments].concat()));
        assert!(text.starts_with(said), "{text}");
    }
    let off = program.run(&with(&config, &["--set", "tools.files_enabled=false", "tools", "--why", "read_file"]));
    assert!(succeeded(&off).contains("switched off by `tools.files_enabled = false`"));
    for (arguments, said) in [
        (&["--toolset", "none"][..], "there is no toolset `none`"),
        (&["--toolset", "worker"], "wants `file`"),
        (&["--toolset", "worker", "--bind", "file"], "write NAME=VALUE"),
        (&["--bind", "file=x"], "--toolset"),
    ] {
        let output = tools(arguments);
        assert!(code(&output) != 0 && stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
    let doctor = String::from_utf8(program.run(&with(&config, &["doctor"])).stdout).expect("text");
    assert!(doctor.contains("[toolset.channel] hands work over to `channel`, and neither that"), "{doctor}");
}

#[test]
fn every_tool_is_shown_with_why_it_is_not_offered() {
    let program = home();
    program.write("toolsets.toml", SETTINGS);
    let config = program.path("toolsets.toml").display().to_string();
    let tools = |arguments: &[&str]| program.run(&[&["--config", &config, "--no-tmux", "tools"], arguments].concat());
    let reasons = |arguments: &[&str]| {
        let list = json_of(&tools(&[arguments, &["--all", "--json"]].concat()));
        let list = list.as_array().expect("a list").clone();
        let reason = |tool: &Value| {
            assert_eq!(tool["offered"], tool["missing"].is_null(), "{tool}");
            (tool["name"].as_str().expect("a name").to_owned(), tool["missing"]["message"].clone())
        };
        list.iter().map(reason).collect::<BTreeMap<String, Value>>()
    };
    let plain = reasons(&[]);
    assert_eq!(plain["time"], Value::Null);
    assert!(plain["file_read"].as_str().expect("a reason").contains("one of the family `files`"), "{plain:?}");
    assert!(plain["capture-pane"].as_str().expect("a reason").contains("no managed panes here"), "{plain:?}");
    assert_eq!(reasons(&["--set", "tools.offer=[\"files\"]"])["file_read"], Value::Null);
    let odd = tools(&["--set", "tools.offer=[\"filez\"]"]);
    let said = stderr(&odd);
    assert!(code(&odd) == 2 && said.contains("there is no family of tools `filez`: there is files, exec,"), "{said}");
    let worker = reasons(&["--toolset", "worker", "--bind", "file=there"]);
    assert!(worker.keys().eq(plain.keys()), "{worker:?}");
    assert_eq!(worker["read_file"], Value::Null);
    assert_eq!(worker["time"], "toolset `worker` has no tool `time`");
    // What is offered is what the list without the option has.
    for arguments in [&[][..], &["--toolset", "worker", "--bind", "file=there"]] {
        let listed = json_of(&tools(&[arguments, &["--json"]].concat()));
        let listed = listed.as_array().expect("a list").iter().map(|tool| tool["name"].as_str().expect("a name"));
        let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
        let offered = reasons(arguments).into_iter().filter(|(_, reason)| reason.is_null()).map(|(name, _)| name);
        assert_eq!(offered.collect::<BTreeSet<String>>(), listed);
    }
    assert!(!reasons(&["--toolset", "worker", "--bind", "file=there", "--offer", "files"])["file_read"].is_null());
    assert_eq!(reasons(&["--offer", "files"])["file_read"], Value::Null);
    let elsewhere = tools(&["--offer", "nothing"]);
    assert_eq!(code(&elsewhere), 2);
    assert!(
        stderr(&elsewhere).contains(
            "[possible values: files, exec, browser, mail, introspect, jobs, schedules, memory, notes, agent, fleet, factory, goals, tasks, transcripts]"
        ),
        "{}",
        stderr(&elsewhere)
    );
    let table = succeeded(&tools(&["--all"]));
    assert!(table.lines().any(|line| line.starts_with("time ") && line.ends_with("yes")), "{table}");
    assert!(table.lines().any(|line| line.starts_with("file_read ") && line.contains("no: it is one of")), "{table}");
    let nowhere = program.run(&["--ssh", "none@127.0.0.1:1", "--set", "tmux.enabled=true", "tools", "--all"]);
    assert_eq!(stderr(&nowhere).matches("what it offers is not known").count(), 1, "{}", stderr(&nowhere));
    let refused = tools(&["--all", "--format", "mcp"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("a model is given the tools that are offered to it"));
}

#[test]
fn a_server_has_the_tools_of_its_toolset() {
    let program = home();
    program.write("toolsets.toml", SETTINGS);
    program.write("work/there", "told\n");
    let config = program.path("toolsets.toml").display().to_string();
    let toolset = ["--toolset", "worker", "--bind", "file=there", "--http", "127.0.0.1:0"];
    let server = Server::start_with(&program, &["--config", &config], &toolset, &[]);
    let session = server.session();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for (reply, modern) in [
        (server.answer(&server.of_session(&session, &list)), false),
        (server.answer(&server.modern("tools/list", json!({}))), true),
    ] {
        let tools = reply.message()["result"]["tools"].as_array().expect("a list").clone();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["read_file", "run_shell"], "{modern}");
    }
    let call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
        [
            server.answer(&server.of_session(&session, &body)).message(),
            server.answer(&server.call(tool, params["arguments"].clone())).message(),
        ]
    };
    for answer in call("read_file", json!({})) {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text, "told\n", "{answer}");
    }
    for answer in call("time", json!({})) {
        assert!(answer.to_string().contains("toolset `worker` has no tool `time`"), "{answer}");
    }
    for answer in call("read_file", json!({ "path": "/etc/passwd" })) {
        assert!(answer.to_string().contains("is set by toolset `worker`"), "{answer}");
    }
}

/// The texts of a toolset are resources as well, of both eras.
#[test]
fn a_server_offers_the_contexts_of_its_toolset_as_resources() {
    let program = home();
    program.write("style.md", "Write plainly.\n");
    let style = program.path("style.md").display().to_string();
    let settings =
        format!("[toolset.otter]\ntools = [\"time\"]\ncontext.style = {{ file = {style:?}, about = \"Ours.\" }}\n");
    program.write("toolsets.toml", settings);
    let config = program.path("toolsets.toml").display().to_string();
    let otter = ["--toolset", "otter", "--http", "127.0.0.1:0"];
    let server = Server::start_with(&program, &["--config", &config], &otter, &[]);
    let session = server.session();
    let ask = |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params });
        server.answer(&server.of_session(&session, &body)).message()
    };
    let listed = ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!((&listed[0]["uri"], &listed[0]["description"]), (&json!("toolcrib://context/style"), &json!("Ours.")));
    let read = ask("resources/read", json!({ "uri": "toolcrib://context/style" }));
    assert_eq!(read["result"]["contents"][0]["text"], "Write plainly.\n");
    for uri in ["toolcrib://context/other", "toolcrib://context/../style", "toolcrib://context/"] {
        let refused = ask("resources/read", json!({ "uri": uri }));
        assert!(
            refused["error"]["message"].as_str().is_some_and(|text| text.starts_with("there is no context")),
            "{refused}"
        );
        assert!(!refused.to_string().contains("style.md"), "{refused}");
    }
    let modern = server.answer(&server.modern("resources/list", json!({}))).message();
    assert_eq!(modern["result"]["resources"][0]["uri"], "toolcrib://context/style");
}

/// What is pinned is handed out by a line and by a resource, for the agent of the session.
#[test]
fn what_is_pinned_is_shown_at_the_doors() {
    let program = home();
    program.write(
        "toolsets.toml",
        "[toolset.otter]\ntools = [\"note_save\"]\nsession = [\"agent\"]\n[toolset.clock]\ntools = [\"time\"]\n",
    );
    let config = program.path("toolsets.toml").display().to_string();
    let note = |text: &str| json!({ "key": "day", "content": text, "pin": true });
    let mut running = program.start(&with(&config, &["run"]));
    let mut ask = |line: Value| ask(&mut running, &line);
    ask(json!({ "id": 1, "open": { "toolset": "otter", "bind": { "agent": "iris" } } }));
    ask(json!({ "id": 2, "open": { "toolset": "otter", "bind": { "agent": "ada" } } }));
    ask(json!({ "id": 3, "open": { "toolset": "clock" } }));
    assert_eq!(ask(json!({ "id": 4, "session": "s1", "pinned": true }))["result"], json!({ "pinned": [] }));
    assert_eq!(
        ask(json!({ "id": 5, "session": "s1", "tool": "note_save", "arguments": note("of iris") }))["result"]["pinned"],
        true
    );
    assert_eq!(
        ask(json!({ "id": 6, "tool": "note_save", "arguments": note("of the program") }))["result"]["pinned"],
        true
    );
    let of = |text: &str| json!({ "pinned": [{ "plugin": "notes", "key": "day", "text": text }] });
    assert_eq!(ask(json!({ "id": 7, "session": "s1", "pinned": true }))["result"], of("of iris"));
    assert_eq!(ask(json!({ "id": 8, "pinned": true }))["result"], of("of the program"));
    for session in ["s2", "s3"] {
        assert_eq!(ask(json!({ "id": 9, "session": session, "pinned": true }))["result"], json!({ "pinned": [] }));
    }
    assert_eq!(
        ask(json!({ "id": 10, "session": "s9", "pinned": true }))["error"]["message"],
        "no session `s9` is open"
    );
    for odd in [json!({ "id": 11, "pinned": false }), json!({ "id": 12, "pinned": true, "tool": "time" })] {
        assert_eq!(ask(odd.clone())["error"]["kind"], "invalid_arguments", "{odd}");
    }

    let server = Server::start_with(&program, &["--config", &config], &["--http", "127.0.0.1:0"], &[]);
    let session = server.session();
    let ask = |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params });
        server.answer(&server.of_session(&session, &body)).message()
    };
    let listed = ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(listed[0]["uri"], "toolcrib://pinned", "{listed}");
    let read = ask("resources/read", json!({ "uri": "toolcrib://pinned" }));
    assert_eq!(read["result"]["contents"][0]["text"], "# day\n\nof the program\n");
    let modern = server.answer(&server.modern("resources/list", json!({}))).message();
    assert_eq!(modern["result"]["resources"][0]["uri"], "toolcrib://pinned");
    drop(server);
    let otter = ["--toolset", "clock", "--http", "127.0.0.1:0"];
    let server = Server::start_with(&program, &["--config", &config], &otter, &[]);
    let listed = server.answer(&server.modern("resources/list", json!({}))).message();
    assert_eq!(listed["result"]["resources"], json!([]));
}

/// What the program around feeds is kept for the agent of the session that the line names, and for no other.
#[test]
fn what_is_fed_is_kept_for_the_sessions_agent() {
    let program = home();
    program.write("toolsets.toml", "[toolset.otter]\ntools = [\"channel_recall\"]\nsession = [\"agent\"]\n");
    let config = program.path("toolsets.toml").display().to_string();
    let mut running = program.start(&with(&config, &["run"]));
    let mut ask = |line: Value| ask(&mut running, &line);
    ask(json!({ "id": 1, "open": { "toolset": "otter", "bind": { "agent": "iris" } } }));
    let said = json!({ "message": { "channel": "dev", "author": "ada", "content": "hello", "at_ms": 1000 } });
    assert_eq!(ask(json!({ "id": 2, "session": "s1", "feed": said }))["result"], json!({ "kept": true }));
    let recall = json!({ "channel": "dev" });
    let read = ask(json!({ "id": 3, "session": "s1", "tool": "channel_recall", "arguments": recall }));
    assert_eq!(read["result"]["messages"][0]["content"], "hello", "{read}");
    let other = ask(json!({ "id": 4, "tool": "channel_recall", "arguments": recall }));
    assert_eq!(other["result"], json!({}), "another agent has none");
    for odd in [
        json!({ "id": 5, "feed": { "song": {} } }),
        json!({ "id": 6, "feed": { "message": { "channel": "dev" } } }),
        json!({ "id": 7, "feed": said, "tool": "time" }),
        json!({ "id": 8, "feed": said, "arguments": {} }),
    ] {
        assert_eq!(ask(odd.clone())["error"]["kind"], "invalid_arguments", "{odd}");
    }
}

/// Over HTTP each client may choose its own by the address at which it speaks, where the server serves all tools.
#[test]
fn a_client_chooses_a_toolset_by_the_address() {
    let program = home();
    program.write("toolsets.toml", SETTINGS);
    program.write("work/there", "told\n");
    let config = program.path("toolsets.toml").display().to_string();
    let http = ["--http", "127.0.0.1:0"];
    let server = Server::start_with(&program, &["--config", &config], &http, &[]);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let both = |at: &str, method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params });
        let session = server.session();
        [
            server.answer(&server.of_session(&session, &body).to(at)).message(),
            server.answer(&server.modern(method, params).to(at)).message(),
        ]
    };
    let names = |answer: &Value| -> Vec<String> {
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    for answer in both("/mcp?toolset=worker&file=there", "tools/list", json!({})) {
        assert_eq!(names(&answer), ["read_file", "run_shell"]);
    }
    for answer in both("/mcp?toolset=channel", "tools/list", json!({})) {
        assert_eq!(names(&answer), ["time", "write_file"]);
    }
    for answer in both("/mcp", "tools/list", json!({})) {
        assert!(names(&answer).contains(&"fetch_url".to_owned()), "{answer}");
    }
    let read = json!({ "name": "read_file", "arguments": {} });
    for answer in both("/mcp?toolset=worker&file=there", "tools/call", read) {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text, "told\n", "{answer}");
    }
    for answer in both("/mcp?toolset=channel", "tools/call", json!({ "name": "run_shell", "arguments": {} })) {
        assert!(answer.to_string().contains("toolset `channel` has no tool `run_shell`"), "{answer}");
    }
    for (at, said) in [
        ("/mcp?toolset=nothing", "there is no toolset `nothing`"),
        ("/mcp?toolset=worker", "toolset `worker` wants `file` of its session"),
        ("/mcp?toolset=channel&x=1", "toolset `channel` has no use for `x`"),
    ] {
        for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "time", "arguments": {} }))]
        {
            for answer in both(at, method, params) {
                assert_eq!(answer["error"]["message"], said, "{method} {answer}");
            }
        }
    }
    // What a session has chosen first stays.
    let session = server.session();
    let first = server.of_session(&session, &list).to("/mcp?toolset=channel");
    assert_eq!(names(&server.answer(&first).message()), ["time", "write_file"]);
    assert_eq!(names(&server.answer(&server.of_session(&session, &list)).message()), ["time", "write_file"]);
    let twice = server.modern("tools/list", json!({})).to("/mcp?toolset=channel&toolset=worker");
    assert!(server.answer(&twice).body.contains("`toolset` is twice in the address"));
    // A server of one toolset has no other.
    let one = Server::start_with(&program, &["--config", &config], &["--toolset", "channel", http[0], http[1]], &[]);
    let other = one.answer(&one.modern("tools/list", json!({})).to("/mcp?toolset=worker&file=there")).message();
    assert_eq!(other["error"]["message"], "this server serves the toolset `channel` alone");
}

#[test]
fn settings_of_toolsets_are_the_users_alone() {
    let program = Program::new();
    for (text, said) in [
        ("[toolset.x]\ntools = [\"a b\"]", "toolsets.toml:2:1: `toolset.x.tools`: `a b` is not a tool"),
        ("[toolset.x]\ntool = [\"a\"]", "`toolset.x.tool`"),
        ("[toolset.x]\nbind.time = 5", "`toolset.x.bind`"),
        ("[toolset.'a b']\ntools = []", "toolset"),
    ] {
        program.write("toolsets.toml", text);
        let output = program.run(&["--config", &program.path("toolsets.toml").display().to_string(), "tools"]);
        assert!(code(&output) != 0 && stderr(&output).contains(said), "{text}: {}", stderr(&output));
    }
    program.write("policy.toml", "[toolset.x]\ntools = [\"time\"]");
    let output = program.run(&["--policy", &program.path("policy.toml").display().to_string(), "tools"]);
    assert!(stderr(&output).contains("`toolset.x.tools` cannot be set by policy"), "{}", stderr(&output));
    // A project that is not trusted has none.
    program.write("work/toolcrib.toml", "[toolset.x]\ntools = [\"time\"]");
    let output = program.run(&["tools", "--toolset", "x"]);
    assert!(code(&output) != 0 && stderr(&output).contains("there is no toolset `x`"), "{}", stderr(&output));
}
