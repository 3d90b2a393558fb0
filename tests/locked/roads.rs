//! Every road by which a user, a project or an environment could add a plugin to a locked machine, or drop the lock.

#![expect(clippy::disallowed_methods, reason = "the program runs as a copy of its own")]

use crate::rig::{Locked, word_count};
use serde_json::json;
use std::fs;
use std::time::Duration;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded, with_a_section_more};
use toolcrib_tests::registry::{CONFIG, LAYER, Message, Pages, manifest};
use toolcrib_tests::{Client, Program, Running, eventually, write_program};

const NONE: &str = "[lock]\nplugins = \"pins\"\n";
const CALL: [&str; 2] = ["word_count", "path=a.txt"];

/// L-36: nothing is written.
#[test]
fn what_was_not_vetted_is_neither_added_nor_allowed() {
    let locked = Locked::by(&[NONE]);
    let file = locked.program.path("word_count.wasm").display().to_string();
    locked.program.write("word_count.wasm", word_count());
    for arguments in [&["plugin", "add", &file][..], &["plugin", "allow", &file, "--read", "."]] {
        let output = locked.run(arguments);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert!(stderr(&output).contains("it was not vetted") && stderr(&output).contains(&locked.line(2)));
    }
    assert!(!locked.program.path("data/toolcrib/plugins/word_count.wasm").exists());
    assert!(!locked.program.path("config/toolcrib/toolcrib.toml").exists());
}

/// The same for what comes from elsewhere; of a registry no more is asked than what the tag means.
#[test]
fn what_was_not_vetted_is_not_fetched() {
    let component = word_count();
    let served = component.clone();
    let pages = Pages::serve(move |asked, _| match asked.path.contains("/manifests/") {
        true => Message::answer(200, &[], manifest([CONFIG, LAYER], &served).to_string().as_bytes()),
        false => Message::answer(200, &[], &served),
    });
    let digest = format!("sha256:{}", toolcrib_tests::digest("word_count"));
    let (page, artifact) =
        (format!("http://{}/word_count.wasm", pages.first), format!("oci://{}/word_count:1", pages.first));
    let locked = Locked::by(&[NONE]);
    for arguments in [&["plugin", "add", &page, "--digest", &digest][..], &["plugin", "add", &artifact]] {
        let output = locked.run(arguments);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert!(stderr(&output).contains("it was not vetted") && stderr(&output).contains(&locked.line(2)));
    }
    let asked: Vec<String> = pages.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(asked, ["/v2/word_count/manifests/1"]);
    assert!(!locked.program.path("data/toolcrib/plugins/word_count.wasm").exists());

    let vetted = Locked::by(&[&format!("{NONE}[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n")]);
    succeeded(&vetted.run(&["plugin", "add", &artifact]));
    let renamed = vetted.run(&["plugin", "add", "--name", "words", &artifact]);
    assert!(
        code(&renamed) == 5 && stderr(&renamed).contains("it was vetted under another name, `word_count`"),
        "{}",
        stderr(&renamed)
    );
}

/// L-33 to L-35 and L-37: flags, variables, other directories and a trusted project change nothing.
#[test]
fn no_flag_variable_or_file_of_a_user_opens_a_lock() {
    let locked = Locked::by(&[NONE]);
    let file = locked.installed("word_count", &word_count());
    let directory = std::path::Path::new(&file).parent().unwrap().display().to_string();
    let digest = toolcrib_tests::digest("word_count");
    let set = format!("plugin.word_count.sha256={digest}");
    for flags in
        [&["--yes"][..], &["--plugins", &directory], &["--set", "plugin.word_count.enabled=true"], &["--set", &set]]
    {
        let (exit, envelope) = locked.call(&[flags, &CALL].concat());
        assert_eq!((exit, &envelope["error"]["data"]["code"]), (5, &json!("not_vetted")), "{flags:?}: {envelope}");
    }
    let data = locked.program.path("data").display().to_string();
    for variables in [&[("TOOLCRIB_LOCK_PLUGINS", "off")][..], &[("XDG_DATA_HOME", &data), ("HOME", &data)]] {
        let mut command = locked.program.command(&locked.under(&["call", "word_count", "path=a.txt"]));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(code(&output), 5, "{variables:?}: {}", stderr(&output));
    }
    // A project that the user trusts is one more layer of settings.
    fs::write(locked.program.path("work/toolcrib.toml"), "[plugin.word_count]\nshell = true\n").unwrap();
    assert_eq!(code(&locked.run(&["trust"])), 0);
    assert_eq!(locked.call(&CALL).0, 5);
    // And no file of settings has a lock, to open or to close.
    fs::write(locked.program.path("work/toolcrib.toml"), "[lock]\nplugins = \"off\"\n").unwrap();
    let output = locked.run(&["tools"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("toolcrib.toml:1:2: `lock` is not a setting"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_swapped_after_it_was_admitted_is_judged_anew() {
    let pinned = format!("{NONE}[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n");
    let locked = Locked::by(&[&pinned]);
    let file = locked.installed("word_count", &word_count());
    assert_eq!(locked.call(&CALL).0, 0);
    fs::write(file, with_a_section_more(word_count())).unwrap();
    assert_eq!(locked.call(&CALL).1["error"]["data"]["code"], "other_bytes");
}

/// Options of the command line, with a value for each that takes one: whoever adds an option says here that it opens nothing.
const OPTIONS: [(&str, Option<&str>); 66] = [
    ("--config", Some("user.toml")),
    ("--policy", Some("open.toml")),
    ("--plugins", Some("plugins")),
    ("--set", Some("plugin.word_count.shell=true")),
    ("--offer", Some("files")),
    ("--embedder", Some("message.*")),
    ("--event", Some("message.send")),
    ("--exec", Some("true")),
    ("--program", Some("true")),
    ("--job", Some("true")),
    ("--introspect", None),
    ("--records", None),
    ("--schedules", None),
    ("--browse", Some("a.example.com")),
    ("--mail", Some("work")),
    ("--tmux", None),
    ("--no-tmux", None),
    ("--own-pane", None),
    ("--container", Some("none")),
    ("--engine", Some("docker")),
    ("--ssh", Some("none@127.0.0.1:1")),
    ("--panes", Some("there")),
    ("--yes", None),
    ("--help", None),
    ("--version", None),
    ("--json", None),
    ("--raw", Some("words")),
    ("--from", Some("anthropic")),
    ("--events", None),
    ("--format", Some("mcp")),
    ("--strict", Some("on")),
    ("--http", Some("0")),
    ("--token-file", Some("token")),
    ("--no-auth", None),
    ("--allow-host", Some("example.com")),
    ("--allow-origin", Some("https://example.com")),
    ("--replace", None),
    ("--digest", Some("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")),
    ("--name", Some("word_count")),
    ("--read", Some("/")),
    ("--write", Some("/")),
    ("--host", Some("example.com")),
    ("--shell", None),
    ("--pane", None),
    ("--keep", None),
    ("--nothing", None),
    ("--method", Some("GET")),
    ("--path", Some("/")),
    ("--toolset", Some("open")),
    ("--bind", Some("x=1")),
    ("--files", Some("texts")),
    ("--why", Some("word_count")),
    ("--all", None),
    ("--serve", None),
    ("--port", Some("443")),
    ("--variable", Some("X=1")),
    ("--tool", Some("word_count")),
    ("--reads", Some("word_count")),
    ("--confirm", Some("none")),
    ("--lazy", None),
    ("--results", Some("envelope")),
    ("--file", Some("mcp.json")),
    ("--installed", Some("plugins")),
    ("--rewrite", None),
    ("--directory", Some("plugins")),
    ("--header", Some("x-team=ours")),
];

/// A client that asks for the tools, and calls one that it should not have.
const ASK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"word_count","arguments":{"path":"a.txt"}}}"#,
    "\n",
);

/// L-52: no option of any command gets a plugin past the lock, alone or beside another.
#[test]
fn no_option_of_the_command_line_opens_a_lock() {
    let locked = Locked::by(&[NONE]);
    let file = locked.installed("word_count", &word_count());
    locked.program.write("work/open.toml", "[lock]\nplugins = \"off\"\n");
    locked
        .program
        .write("work/user.toml", "[plugin.word_count]\nenabled = true\n[toolset.open]\ntools = [\"word_count\"]\n");
    locked.program.write("work/plugins/word_count.wasm", word_count());
    locked.program.write("work/token", "0123456789abcdef0123456789abcdef");
    under_development(&locked.program);
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py").display().to_string();
    let commands: [&[&str]; 8] = [
        &["call", "word_count", "path=a.txt"],
        &["tools"],
        &["run"],
        &["serve"],
        &["plugin", "allow", &file],
        &["plugin", "add", &file],
        &["plugin", "dev", "count"],
        &["upstream", "add", "server", "--read", &server, "--", "/usr/bin/python3", &server, "plain"],
    ];
    for command in commands {
        let verbs: Vec<&str> =
            command.iter().copied().take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect();
        let help = stdout(&locked.program.run(&[&verbs[..], &["--help"]].concat()));
        let named = help.split_whitespace().filter_map(|word| {
            let name = word.trim_start_matches('[').split(['=', '[', ',', ']', '`', ':', '.', ';', ')']).next()?;
            name.strip_prefix("--").filter(|rest| !rest.is_empty()).map(|_| name)
        });
        for name in named.collect::<std::collections::BTreeSet<_>>() {
            let Some((_, value)) = OPTIONS.iter().find(|(option, _)| *option == name) else {
                panic!("`{name}` of `{}` is a new option: does it open a lock?", verbs.join(" "));
            };
            let text = value.map(|value| format!("{name}={value}")).unwrap_or_else(|| name.to_owned());
            // What is behind `--` is for another program.
            let (own, behind) =
                command.split_at(command.iter().position(|word| *word == "--").unwrap_or(command.len()));
            let arguments = locked.under(&[own, &[text.as_str()], behind].concat());
            let input = "{\"id\":1,\"tool\":\"word_count\",\"arguments\":{\"path\":\"a.txt\"}}\n";
            // Served over HTTP it would not end; that door shows the same tools.
            if name == "--http" {
                continue;
            }
            let said = stdout(&locked.program.run_with(&arguments, if command == ["serve"] { ASK } else { input }));
            if command == ["serve"] && name == "--no-tmux" {
                assert!(said.contains("run_shell") && said.contains("not_vetted"), "it lists and refuses: {said}");
            }
            assert!(!said.contains("\"words\":2"), "{arguments:?}: {said}");
            assert!(!said.contains("now says") && !said.starts_with("added"), "{arguments:?}: {said}");
            if command == ["tools"] || command == ["serve"] {
                assert!(!said.contains("\"name\":\"word_count\""), "{arguments:?}: {said}");
                assert!(!said.lines().any(|line| line.starts_with("word_count ")), "{arguments:?}: {said}");
            }
        }
    }
}

/// An author's project whose plugin is built already, with all rights that it can name for itself.
fn under_development(program: &Program) {
    let project = "name = \"word_count\"\nlang = \"rust\"\nbuild = [\"true\"]\nout = \"word_count.wasm\"\n";
    let case = "[grants]\nfiles.read = [\".\"]\n[[case]]\nname = \"x\"\ntool = \"word_count\"\narguments = { path = \"a.txt\" }\nresult_has = { words = 2 }\n";
    program.write("work/count/toolcrib-plugin.toml", project);
    program.write("work/count/cases.toml", case);
    program.write("work/count/word_count.wasm", word_count());
    program.write("work/count/a.txt", "two words");
}

/// What an author has just built was not vetted either: neither its cases nor a client can call it.
#[test]
fn a_plugin_under_development_does_not_get_past_a_lock() {
    let locked = Locked::by(&[NONE]);
    under_development(&locked.program);
    let open = Program::new();
    under_development(&open);
    for (program, arguments, is_served) in [
        (&open, vec!["plugin", "dev", "--serve", "count"], true),
        (&locked.program, locked.under(&["plugin", "dev", "--serve", "count"]), false),
    ] {
        let mut dev = Running::start(&mut program.command(&arguments));
        let built = if is_served { "1 of 1 cases passed" } else { "the client has no tools yet" };
        eventually("it was built", || dev.said().contains(built));
        dev.write(ASK);
        // Of the list and of the call, in whatever order.
        let mut answers = Vec::new();
        while !["\"id\":2", "\"id\":3"].iter().all(|id| answers.iter().any(|line: &String| line.contains(id))) {
            answers.push(dev.try_line("answer").expect("both are answered"));
        }
        let has = |text| answers.iter().any(|line| line.contains(text));
        assert_eq!([has("\"name\":\"word_count\""), has("\"words\":2")], [is_served; 2], "{answers:?}");
        assert_eq!(dev.said().contains("it was not vetted"), !is_served, "{}", dev.said());
        dev.close();
        assert!(dev.ended(Duration::from_secs(10)).is_some_and(|status| status.success()));
    }
}

/// L-49: another program in the place of the host's own file compiles nothing.
#[test]
fn a_program_that_takes_the_hosts_place_compiles_nothing() {
    let policy = format!("{NONE}[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n");
    let locked = Locked::by(&[&policy]);
    locked.installed("word_count", &word_count());
    // What was compiled when it was allowed is gone.
    fs::remove_dir_all(locked.program.path("state/toolcrib/code")).expect("compiled code");
    locked.program.write("work/a.txt", "two words");
    let (own, mark) = (locked.program.path("own"), locked.program.path("mark"));
    write_program(&own, fs::read(toolcrib_tests::Program::file()).expect("the program"));
    let base = locked.program.command(&locked.under(&["--no-tmux", "run"]));
    let mut command = std::process::Command::new(&own);
    command.args(base.get_args()).env_clear().current_dir(locked.program.path("work"));
    command.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut client = Client::of(Running::start(&mut command));
    assert!(client.call("time", json!({}))["error"].is_null());
    fs::remove_file(&own).expect("removed");
    write_program(&own, format!("#!/bin/sh\ntouch {mark:?}\n"));
    let answer = client.call("word_count", json!({ "path": "a.txt" }));
    assert_eq!(answer["result"]["words"], 2, "{answer}");
    assert!(!mark.exists(), "the other program was started");
}

/// L-35: a project that its user trusts gives what the lock leaves, and no more.
#[test]
fn a_trusted_project_stays_within_the_ceiling() {
    let pinned = "[lock]\nplugins = \"pins\"\n[lock.ceiling]\nfiles.read = [\"/nowhere\"]\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n";
    let project = |locked: &Locked| {
        let digest = toolcrib_tests::digest("word_count");
        let text = format!("[plugin.word_count]\nsha256 = \"{digest}\"\nshell = true\nfiles.read = [\".\", \"/\"]\n");
        locked.program.write("work/toolcrib.toml", text);
        succeeded(&locked.run(&["trust"]));
    };
    let file = |locked: &Locked| locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    // Without the lock, that project's word is enough.
    let open = Locked::by(&["[lock]\nplugins = \"off\"\n"]);
    file(&open);
    project(&open);
    assert_eq!(open.call(&CALL).0, 0);
    let locked = Locked::by(&[pinned]);
    file(&locked);
    project(&locked);
    let (code, envelope) = locked.call(&CALL);
    assert_eq!((code, &envelope["error"]["kind"]), (5, &json!("denied")), "{envelope}");
    let hint = envelope["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("the operator's policy decides this"), "{hint}");
}

/// A policy that other users than root can write may have been changed by a command of this program: it accepts no call, whatever the file
/// says now.
#[test]
fn a_policy_that_changes_stops_a_program_that_read_another() {
    let locked = Locked::by(&["[lock]\nplugins = \"off\"\n"]);
    let policy = locked.program.path("policy0.toml");
    let before = fs::read_to_string(&policy).unwrap();
    let mut client = locked.program.client(&locked.under(&["run"]));
    assert!(client.call("time", json!({}))["error"].is_null());
    let client = std::cell::RefCell::new(client);
    let kind = || client.borrow_mut().call("time", json!({}))["error"]["kind"].clone();
    // In one step: a file that is written in its place is empty for a moment, which the program may see.
    let write = |text: &str| {
        locked.program.write("policy0.new", text);
        fs::rename(locked.program.path("policy0.new"), &policy).unwrap();
    };
    for changed in ["[lock]\nplugins = \"pins\"\nbuiltin = []\n", "not a policy", ""] {
        write(changed);
        eventually("it has changed", || kind() == "unavailable");
        write(&before);
        eventually("it is as it was", || kind().is_null());
    }
    fs::remove_file(&policy).unwrap();
    eventually("it is gone", || kind() == "unavailable");
    let trail = fs::read_to_string(locked.program.path("state/toolcrib/audit.jsonl")).unwrap();
    let refused = trail.lines().filter(|line| line.contains("policy_changed") && line.contains("not_obeyed")).count();
    assert_eq!(refused, 4, "{trail}");
}
