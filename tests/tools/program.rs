//! Declared programs as tools, and in the hands of plugins. The numbers are those of the cases of agents whose tools are programs.

use backend::sealed::program_sha256;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib_tests::processes::{sleeping, unique_seconds};
use toolcrib_tests::{Program, TestHost, eventually, is_long, memory_kib, on_path, write_program};

fn declaring(name: &str, lines: &[&str]) -> TestHost {
    TestHost::new().declares(name, &on_path(name), lines)
}

/// A script in the working directory of a host.
fn script(host: &TestHost, name: &str, text: &str) -> PathBuf {
    let path = host.work().join(name);
    write_program(&path, text);
    path
}

fn args(args: &[&str]) -> Value {
    json!({ "args": args })
}

fn decisions(host: &TestHost) -> String {
    host.audit().last().expect("a line")["actions"].to_string()
}

/// Cases 1 to 3: a program is a tool under its name, with what it is about and its usage page.
#[tokio::test(flavor = "multi_thread")]
async fn a_declared_program_is_a_tool_with_its_usage_page() {
    let described = async |host: &TestHost| {
        let (host, context) = host.parts();
        let offered = host.offered(context).await;
        assert!(offered.notices.is_empty(), "{:?}", offered.notices);
        let tool = offered.tools.iter().find(|tool| tool.name() == "cat").expect("the tool");
        tool.description().to_owned()
    };
    let plain = described(&declaring("cat", &[])).await;
    assert!(plain.starts_with("What cat does.\n\nWhen to use: "), "{plain}");
    assert!(!plain.contains("## Usage"), "{plain}");
    let host = TestHost::new();
    let page = host.work().join("usage.md");
    let usage = format!("usage={page:?}");
    let host = host.declares("cat", &on_path("cat"), &[&usage]);
    fs::write(&page, "\n`-n` numbers the lines.\n\n").expect("a page");
    assert!(described(&host).await.ends_with("\n\n## Usage\n`-n` numbers the lines."));
    // Missing or empty, there is none; what is longer is cut between two characters.
    for (text, expected) in [(None, ""), (Some(" \n".into()), ""), (Some("é".repeat(9000)), &*"é".repeat(8192))] {
        let host = TestHost::new();
        let page = host.work().join("usage.md");
        text.iter().for_each(|text: &String| fs::write(&page, text).expect("a page"));
        let host = host.declares("cat", &on_path("cat"), &[&format!("usage={page:?}")]);
        let shown = described(&host).await;
        assert_eq!(shown.split_once("\n\n## Usage\n").map_or("", |(_, page)| page), expected);
    }
}

/// Cases 4, 5 and 16.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_input_or_both_are_given() {
    let host = declaring("cat", &[]);
    for nothing in [json!({}), args(&[]), json!({ "args": [], "stdin": "" })] {
        let refused = host.failure("cat", nothing).await;
        assert_eq!((refused.kind, &*refused.message), (Kind::InvalidArguments, "neither `args` nor `stdin` is given"));
    }
    let refused = host.failure("cat", json!({ "arguments": ["x"] })).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::InvalidArguments, "arguments of `cat`: unknown argument `arguments`")
    );
    assert!(host.audit().iter().all(|line| line["actions"].as_array().is_none_or(Vec::is_empty)), "nothing ran");
    let result = host.result("cat", json!({ "args": ["-"], "stdin": "{}\n" })).await;
    assert_eq!(result, json!({ "exit_code": 0, "stdout": "{}\n", "stderr": "" }));
    assert!(decisions(&host).contains(r#""capability":"programs""#), "{}", decisions(&host));
    let too_many = host.failure("cat", args(&["x"; 1000])).await;
    assert_eq!(too_many.kind, Kind::Limit);
}

/// Cases 6 to 8, 10 and 11.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_its_words_its_directory_and_no_more_of_the_environment_than_is_declared() {
    let odd = ["a b", "$(id)", "*", "~", "it's", "", "a\nb"];
    let host = TestHost::new();
    let lines = script(&host, "lines", "#!/bin/sh\nprintf '[%s]' \"$@\"\n");
    let host = host.declares("lines", &lines, &["arguments=[\"-M\",\"first one\"]"]);
    let expected: String = ["-M", "first one"].iter().chain(&odd).map(|word| format!("[{word}]")).collect();
    assert_eq!(host.result("lines", args(&odd)).await["stdout"], expected);
    let quiet = declaring("test", &[]).result("test", args(&["-n", "x"])).await;
    assert_eq!(quiet, json!({ "exit_code": 0, "stdout": "", "stderr": "" }));
    let host = declaring("pwd", &[]);
    let directory = host.work().canonicalize().expect("a directory").display().to_string();
    assert_eq!(host.result("pwd", args(&["-P"])).await["stdout"], format!("{directory}\n"));
    // The tests themselves have such a variable.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let absent = declaring("printenv", &[]).failure("printenv", args(&["CARGO_MANIFEST_DIR"])).await;
    assert_eq!(absent.data.expect("data")["exit_code"], 1);
    let named = declaring("printenv", &["environment=[\"CARGO_MANIFEST_DIR\"]"]);
    assert_eq!(named.result("printenv", args(&["CARGO_MANIFEST_DIR"])).await["exit_code"], 0);
}

/// Case 9.
#[tokio::test(flavor = "multi_thread")]
async fn an_exit_status_is_a_failure_with_both_streams_or_a_result() {
    let streams = json!({ "exit_code": 3, "stdout": "out\n", "stderr": "err\n" });
    for (lines, is_result) in [(&[][..], false), (&["result=\"exit-0\""][..], false), (&["result=\"any\""][..], true)] {
        let host = TestHost::new();
        let path = script(&host, "both", "#!/bin/sh\necho out; echo err >&2; exit 3\n");
        let host = host.declares("both", &path, lines);
        if is_result {
            assert_eq!(host.result("both", args(&["x"])).await, streams);
            continue;
        }
        let failed = host.failure("both", args(&["x"])).await;
        assert_eq!((failed.kind, &*failed.message), (Kind::ExecutionFailed, "`both` ended with exit status 3"));
        assert_eq!(failed.data.as_deref(), Some(&streams));
    }
    let killed = declaring("sh", &[]).failure("sh", args(&["-c", "kill -9 $$"])).await;
    assert_eq!(killed.message, "`sh` was ended by a signal");
}

/// Cases 12 and 19.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_goes_on_is_ended_with_its_group() {
    let seconds = unique_seconds();
    let endless = args(&["-c", &format!("echo begun; sleep {seconds} & sleep {seconds}")]);
    let host = declaring("sh", &["timeout_ms=3000"]);
    let failed = host.failure("sh", endless.clone()).await;
    assert_eq!((failed.kind, &failed.data.expect("data")["stdout"]), (Kind::TimedOut, &json!("begun\n")));
    assert!(failed.hint.is_some_and(|hint| hint.contains("`timeout_ms` under [program.sh]")));
    eventually("its group ends", || sleeping(&seconds).is_empty());
    let host = declaring("sh", &[]);
    let (cancel, awaited) = (host.cancel.clone(), seconds.clone());
    tokio::task::spawn_blocking(move || {
        eventually("it runs", || sleeping(&awaited).len() == 2);
        cancel.cancel();
    });
    assert_eq!(host.failure("sh", endless).await.kind, Kind::Cancelled);
    eventually("its group ends", || sleeping(&seconds).is_empty());
}

/// Case 13: what is printed is bounded in memory, and kept on disk.
#[test]
fn output_is_bounded() {
    let megabytes = if is_long() { 1000 } else { 100 };
    let program = Program::new();
    program.declares("head", &on_path("head"), "");
    let mut host = program.client(&["--yes", "run"]);
    let mut call = |bytes: &str| {
        let result = host.result("head", args(&["-c", bytes, "/dev/zero"]));
        (result, memory_kib(host.pid(), "VmHWM"))
    };
    let (_, before) = call("1M");
    let (result, after) = call(&format!("{megabytes}M"));
    assert!(after < before + (32 << 10), "{} KiB", after - before);
    let notice = result["notices"][0].as_str().expect("a notice");
    assert!(
        notice.starts_with(&format!("stdout has {} bytes; what is kept of it is in `", megabytes << 20)),
        "{notice}"
    );
    let kept = notice.split('`').nth(1).expect("a place");
    assert!(fs::metadata(kept).expect("a kept file").len() > 16 << 20);
}

/// Case 14.
#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_no_text_is_shown_as_text_with_its_true_size() {
    let host = declaring("printf", &[]);
    assert_eq!(host.result("printf", args(&["a\\377b"])).await["stdout"], "a\u{fffd}b");
    let host = starter(declaring("printf", &[]), &["programs=[\"printf\"]"]);
    let result = host.result("start", started("printf", &["a\\377b"])).await;
    assert_eq!((&result["stdout"], &result["bytes"]), (&json!("a\u{fffd}b"), &json!(3)));
}

/// Case 15: another file than the one that was declared is not run, whatever became of it, and when.
#[tokio::test(flavor = "multi_thread")]
async fn another_file_than_the_declared_one_is_not_run() {
    let host = TestHost::new();
    let path = script(&host, "tool", "#!/bin/sh\necho mine\n");
    let declared = program_sha256(&path).expect("a program");
    let host = host.declares("tool", &path, &[]);
    assert_eq!(host.result("tool", args(&["x"])).await["stdout"], "mine\n");
    for (changes, text) in [("in place", "#!/bin/sh\necho yours\n"), ("anew", "#!/bin/sh\n: >ran; echo yours\n")] {
        if changes == "anew" {
            fs::remove_file(&path).expect("removed");
        }
        script(&host, "tool", text);
        let found = program_sha256(&path).expect("a program");
        let refused = host.failure("tool", args(&["x"])).await;
        assert_eq!(refused.kind, Kind::Denied, "{changes}");
        assert!(refused.message.contains(&declared) && refused.message.contains(&found), "{refused:?}");
        assert_eq!(refused.data.as_deref(), Some(&json!({ "declared": declared, "found": found })));
        assert!(decisions(&host).contains("denied: "), "{}", decisions(&host));
    }
    assert!(!host.work().join("ran").exists());
    for gone in [
        |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)),
        |path: &Path| fs::remove_file(path),
    ] {
        gone(&path).expect("changed");
        assert_eq!(host.failure("tool", args(&["x"])).await.kind, Kind::Unavailable);
    }
}

/// What was digested is what runs: a script that somebody changes while it runs stays what it was, though its shell has not read all of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_digested_is_what_runs() {
    let host = TestHost::new();
    // Longer than what a shell reads at a time.
    let rest = "#\n".repeat(64 << 10);
    let text = format!("#!/bin/sh\n: >begun\nwhile [ ! -e changed ]; do sleep 0.05; done\n{rest}echo mine\n");
    let path = script(&host, "tool", &text);
    let host = host.declares("tool", &path, &[]);
    let work = host.work();
    let change = tokio::task::spawn_blocking(move || {
        eventually("it has begun", || work.join("begun").exists());
        fs::write(&path, text.replace("mine", "yours")).expect("written");
        fs::write(work.join("changed"), "").expect("written");
    });
    assert_eq!(host.result("tool", args(&["x"])).await["stdout"], "mine\n");
    change.await.expect("changed");
}

/// It is decided on as a command is.
#[tokio::test(flavor = "multi_thread")]
async fn programs_are_under_the_policy_of_commands() {
    let host = declaring("rm", &[]);
    let refused = host.failure("rm", args(&["-rf", "/"])).await;
    assert!(refused.kind == Kind::Denied && refused.message.contains("rm -rf /"), "{refused:?}");
    let off = declaring("cat", &[]).set("tools.shell_enabled=false");
    assert_eq!(off.failure("cat", args(&["-"])).await.kind, Kind::Denied);
    let off = declaring("cat", &[]).policy("plugin.cat.enabled = false");
    assert!(off.failure("cat", args(&["-"])).await.message.contains("switched off"));
}

/// A person is shown the program as the command that it is, and says yes to one program at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_is_for_one_program_with_its_arguments() {
    let host = TestHost::new().answering(Answer::YesForSession).set("confine.mode=off");
    let shell = on_path("sh");
    let host = host.declares("one", &shell, &[]).declares("two", &shell, &["arguments=[\"-e\"]"]);
    let call = args(&["-c", "exit 0"]);
    for (tool, questions) in [("one", 1), ("one", 1), ("two", 2), ("two", 2), ("one", 2)] {
        host.result(tool, call.clone()).await;
        assert_eq!(host.asked().len(), questions, "{tool}");
    }
    let asked = &host.asked()[1];
    assert_eq!(asked.action, format!("{} -e -c 'exit 0'", shell.display()));
    assert_eq!((&*asked.plugin, asked.declaration.is_none()), ("two (declared program)", true));
    let host = TestHost::new().answering(Answer::No).set("confine.mode=off").declares("one", &shell, &[]);
    assert_eq!(host.failure("one", call).await.kind, Kind::Denied);
}

fn starter(host: TestHost, lines: &[&str]) -> TestHost {
    lines.iter().fold(host.plugin("starter"), |host, line| host.grant("starter", line))
}

fn started(program: &str, args: &[&str]) -> Value {
    let run = [&[program], args].concat();
    json!({ "run": run, "declared": true })
}

/// A plugin runs the declared programs that its section names.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_runs_the_declared_programs_that_its_section_names() {
    let host = starter(declaring("cat", &[]), &[]);
    let refused = host.failure("start", started("cat", &["-"])).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::Denied, "`starter` needs `programs`, which the policy does not grant")
    );
    assert!(refused.hint.is_some_and(|hint| hint.contains("--program NAME")));
    let host = declaring("cat", &[]).declares("true", &on_path("true"), &[]);
    let host = starter(host, &["programs=[\"cat\",\"absent\"]"]);
    let given = json!({ "run": ["cat"], "declared": true, "stdin": "text" });
    assert_eq!(host.result("start", given).await["stdout"], "text");
    let refused = host.failure("start", started("true", &[])).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "`starter` may not run the program `true`"));
    assert_eq!(refused.hint.as_deref(), Some("add \"true\" to `programs` under [plugin.starter]"));
    let absent = host.failure("start", started("absent", &[])).await;
    assert_eq!((absent.kind, absent.hint.as_deref()), (Kind::InvalidArguments, Some("there is `cat`")));
    // The right to declared programs is none to others.
    let Failure { kind, .. } = host.failure("start", json!({ "run": ["cat"], "program": true })).await;
    assert_eq!(kind, Kind::Denied);
    let named = host.result("start", json!({ "run": ["-"], "names": true })).await;
    assert_eq!(named["stdout"], "cat: What cat does.");
}
