//! `exec`, and what plugins of others start: programs without a shell between. The numbers are those of the cases of agents that are made of
//! several processes.

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::TestHost;

fn started(program: &str, args: &[&str]) -> Value {
    json!({ "program": program, "args": args })
}

/// Case 30.
#[tokio::test(flavor = "multi_thread")]
async fn no_argument_is_more_than_itself() {
    let host = TestHost::new();
    for odd in ["a b;$(id)", "it's", "*", "~", "$HOME", "`id`", "-n", "", "a\nb", "世界"] {
        let result = host.result("exec", started("printf", &["%s", "--", odd])).await;
        // `printf` itself takes `--` for the text of its first argument.
        assert_eq!(result["stdout"].as_str(), Some(&*format!("--{odd}")), "{odd:?}");
    }
    let result = host.result("exec", started("printf", &["%s", "a b;$(id)"])).await;
    assert_eq!(result["stdout"], "a b;$(id)");
    let actions = host.audit().last().expect("a line")["actions"].clone();
    assert_eq!((&actions[0]["capability"], &actions[0]["what"]), (&json!("exec"), &json!("printf %s 'a b;$(id)'")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_its_directory_variables_and_input() {
    let host = TestHost::new();
    std::fs::create_dir(host.work().join("lib")).expect("a directory");
    let result = host.result("exec", json!({ "program": "pwd", "working_dir": "lib" })).await;
    assert!(result["stdout"].as_str().is_some_and(|directory| directory.ends_with("/work/lib\n")), "{result}");
    let variable = json!({ "program": "printenv", "args": ["TEXT"], "env": [{ "key": "TEXT", "value": "a b" }] });
    assert_eq!(host.result("exec", variable).await["stdout"], "a b\n");
    assert_eq!(host.result("exec", json!({ "program": "cat", "stdin": "one\ntwo" })).await["stdout"], "one\ntwo");
    assert_eq!(host.result("exec", json!({ "program": "cat" })).await["stdout"], "");
    let large = "x".repeat(1 << 20);
    let counted = host.result("exec", json!({ "program": "wc", "args": ["-c"], "stdin": large })).await;
    assert_eq!(counted["stdout"].as_str().map(str::trim), Some("1048576"));
    let failed = host.result("exec", started("sh", &["-c", "echo out; echo err >&2; exit 7"])).await;
    assert_eq!(failed, json!({ "exit_code": 7, "stdout": "out\n", "stderr": "err\n" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_says_why() {
    let host = TestHost::new();
    for (arguments, kind, said) in [
        (started(" ", &[]), Kind::InvalidArguments, "is blank"),
        (started("./run", &[]), Kind::InvalidArguments, "is neither a name nor an absolute path"),
        (started("no-such-program", &[]), Kind::Unavailable, "`no-such-program` could not be started"),
        (started("/no/such/program", &[]), Kind::Unavailable, "could not be started"),
        (started("rm", &["-rf", "/"]), Kind::Denied, "`rm -rf /`"),
        (started("sh", &["-c", "rm -rf /"]), Kind::Denied, "`rm -rf /`"),
        (started("/bin/rm", &["-r", "-f", "/"]), Kind::Denied, "`rm -rf /`"),
        (json!({ "program": "true", "working_dir": "missing" }), Kind::ExecutionFailed, "is not a directory"),
        (json!({ "program": "true", "env": [{ "key": "LD_PRELOAD", "value": "x" }] }), Kind::Denied, "never reaches"),
        (
            json!({ "program": "true", "env": [{ "key": "NODE_OPTIONS", "value": "--require=./x" }] }),
            Kind::Denied,
            "`NODE_OPTIONS` cannot be set beside a command",
        ),
        (json!({ "program": "true", "args": vec!["x"; 1000] }), Kind::Limit, "limit: 1000 arguments"),
        (json!({ "program": "true", "stdin": "x".repeat(4 << 20) }), Kind::InvalidArguments, ""),
    ] {
        let failure = host.failure("exec", arguments.clone()).await;
        let shown: String = arguments.to_string().chars().take(80).collect();
        assert!(failure.kind == kind && failure.message.contains(said), "{shown}: {failure:?}");
    }
}

fn starter(lines: &[&str]) -> TestHost {
    lines.iter().fold(TestHost::new().plugin("starter"), |host, line| host.grant("starter", line))
}

fn program(run: &[&str]) -> Value {
    json!({ "run": run, "program": true })
}

/// Case 31.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_off_the_list_is_denied_with_the_line_to_add() {
    let host = TestHost::new().plugin("starter");
    let refused = host.failure("start", program(&["true"])).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::Denied, "`starter` needs `exec`, which the policy does not grant")
    );
    let host = starter(&["exec.programs=[\"printf\", \"/bin/true\"]"]);
    assert_eq!(host.result("start", program(&["printf", "x"])).await["stdout"], "x");
    assert_eq!(host.result("start", program(&["/bin/true"])).await["exit_code"], 0);
    for other in ["true", "/usr/bin/printf", "touch", "printf ", "sh"] {
        let refused = host.failure("start", program(&[other, "made"])).await;
        assert_eq!((refused.kind, refused.message), (Kind::Denied, format!("`starter` may not start `{other}`")));
        let line = format!("add {other:?} to `exec.programs` under [plugin.starter]");
        assert_eq!(refused.hint, Some(line));
        let actions = host.audit().last().expect("a line")["actions"].clone();
        assert!(actions[0]["decision"].as_str().is_some_and(|decision| decision.starts_with("denied: ")), "{actions}");
    }
    // The right to start programs is none to run commands, and the other way round.
    assert_eq!(host.failure("start", json!({ "run": ["true"] })).await.kind, Kind::Denied);
    let shell = starter(&["shell=true"]);
    assert_eq!(shell.result("start", json!({ "run": ["echo x"] })).await["stdout"], "x\n");
    assert_eq!(shell.failure("start", program(&["true"])).await.kind, Kind::Denied);
    // One of this binary, within a policy.
    let host = TestHost::new().policy("plugin.exec.exec.programs = ['printf']");
    assert_eq!(host.result("exec", started("printf", &["x"])).await["stdout"], "x");
    let refused = host.failure("exec", started("true", &[])).await;
    assert!(refused.hint.is_some_and(|hint| hint.starts_with("the operator's policy decides this")));
}

/// A variable may lead a program to another one: where programs are listed, none is set unless that is listed, too.
#[tokio::test(flavor = "multi_thread")]
async fn variables_are_set_where_they_are_listed() {
    let set = |name: &str| json!({ "run": ["printenv", name], "program": true, "env": [[name, "x"]] });
    let host = starter(&["exec.programs=[\"printenv\"]"]);
    for name in ["PATH", "GIT_SSH_COMMAND", "LC_ALL"] {
        let refused = host.failure("start", set(name)).await;
        assert_eq!(refused.message, format!("`starter` may not set `{name}` for a program"));
        let line = format!("add {name:?} to `exec.environment` under [plugin.starter]");
        assert_eq!(refused.hint, Some(line));
    }
    let host = starter(&["exec.programs=[\"printenv\"]", "exec.environment=[\"LC_ALL\"]"]);
    assert_eq!(host.result("start", set("LC_ALL")).await["stdout"], "x\n");
    assert_eq!(host.failure("start", set("PATH")).await.kind, Kind::Denied);
    let host = starter(&["exec.programs=[\"*\"]", "exec.environment=[\"*\"]"]);
    assert_eq!(host.result("start", set("ANY")).await["stdout"], "x\n");
    assert_eq!(host.failure("start", set("LD_PRELOAD")).await.kind, Kind::Denied);
    // One of this binary may set any, until programs are listed.
    let printenv = json!({ "program": "printenv", "args": ["A"], "env": [{ "key": "A", "value": "x" }] });
    let listed = TestHost::new().set("plugin.exec.exec.programs=[\"printenv\"]");
    assert_eq!(listed.failure("exec", printenv.clone()).await.kind, Kind::Denied);
    assert_eq!(TestHost::new().result("exec", printenv).await["stdout"], "x\n");
}

/// Commands of plugins have all that: variables, a directory, an input and both ends of their output.
#[tokio::test(flavor = "multi_thread")]
async fn commands_of_plugins_have_variables_a_directory_and_an_input() {
    let host = starter(&["shell=true"]);
    std::fs::create_dir(host.work().join("lib")).expect("a directory");
    let run = json!({
        "run": ["pwd | tail -c 5; echo $A; cat; echo err >&2"], "env": [["A", "a b"]], "directory": "lib", "stdin": "in\n",
    });
    let result = host.result("start", run).await;
    assert_eq!(result, json!({ "exit_code": 0, "bytes": 12, "stdout": "/lib\na b\nin\n", "stderr": "err\n" }));
    let ends = json!({ "run": ["seq 1 1000"], "shown": [4, 9] });
    let result = host.result("start", ends).await;
    let stdout = result["stdout"].as_str().expect("text");
    assert!(
        stdout.starts_with("1\n2\n\n[3880 bytes left out, kept in /") && stdout.ends_with("]\n999\n1000\n"),
        "{stdout}"
    );
}

/// A person is shown program, arguments and input; secrets in any of them are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_shown_what_is_started_and_its_input() {
    let host = TestHost::new().set("confine.ask=always").answering(Answer::Yes);
    let arguments = json!({ "program": "cat", "args": ["-", "a b"], "stdin": "rm -rf ~\n", "why": "show it" });
    let _ = host.call("exec", arguments).await;
    let asked = host.asked();
    let question = asked.first().expect("a question");
    assert_eq!(question.action, "cat - 'a b'");
    assert_eq!(question.details.as_deref(), Some("on its standard input:\nrm -rf ~\n"));
    let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let host = TestHost::new().set("leaks.shapes=block");
    for arguments in [
        json!({ "program": "cat", "stdin": key }),
        json!({ "program": "echo", "args": [key] }),
        json!({ "program": "true", "env": [{ "key": "TOKEN", "value": key }] }),
    ] {
        assert_eq!(host.failure("exec", arguments).await.kind, Kind::Denied);
    }
}
