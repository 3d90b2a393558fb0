//! Secrets and commands: which get one, how that is asked, and what else sees it.

use crate::rig::{Rig, Via, program};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, QUESTION, Terminal, eventually};

const VALUE: &str = "zK4vQ9-Lw2x_Ht7Rm";
/// Prints the value so that it is not found again.
const SPELLED: &str = "printf %s \"$GITHUB\" | sed 's/./& /g'";

fn spelled() -> String {
    VALUE.chars().map(|c| format!("{c} ")).collect()
}

/// A program with a secret that commands may get.
fn lending(via: Via) -> (Program, Vec<String>) {
    lending_value(via, VALUE)
}

/// The same, of another value.
fn lending_value(via: Via, value: &str) -> (Program, Vec<String>) {
    let program = program(via);
    program.write("home/key", value);
    let key = program.path("home/key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a file of ours");
    let settings = vec![
        format!("secret.GITHUB.file={:?}", key.display().to_string()),
        "secret.GITHUB.env=true".into(),
        "tools.shell_secrets=[\"GITHUB\"]".into(),
    ];
    (program, settings)
}

fn rig(via: Via, more: &[&str]) -> Rig {
    rig_of(lending(via), more)
}

fn rig_of((program, settings): (Program, Vec<String>), more: &[&str]) -> Rig {
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Rig::of(program, &settings)
}

/// A command gets the secret that it names, and no other one gets it; what it prints of it is taken out.
#[test]
fn a_command_gets_the_secret_that_it_names() {
    for via in [Via::Process, Via::Pane] {
        let mut rig = rig(via, &[]);
        assert_eq!(rig.run(SPELLED), (0, spelled()), "{via:?}");
        assert_eq!(rig.run("env | sed 's/./& /g' | grep -c 'G I T H U B' || true").1.trim(), "0", "{via:?}");
        let printed = rig.run("echo $GITHUB; echo $GITHUB | base64; echo $GITHUB | rev").1;
        assert!(printed.starts_with("[secret:GITHUB]\n") && !printed.contains(VALUE), "{printed}");
        // A pane's shell has not seen it.
        assert_eq!(rig.run("set | sed 's/./& /g' | grep -c 'z K 4 v' || true").1.trim(), "0", "{via:?}");
    }
}

/// What gets one has a process of its own: not a pane, and not something that is left to itself.
#[test]
fn what_gets_a_secret_runs_in_no_pane() {
    let mut rig = rig(Via::Pane, &[]);
    // In a pane both streams would be one.
    let result = rig.result(&format!("{SPELLED}; echo beside >&2"));
    assert_eq!(result["stderr"], "beside\n", "{result}");
    for (name, value) in [("pane", Value::from("%0")), ("wait", Value::from(false))] {
        let mut arguments = command(SPELLED);
        arguments[name] = value;
        let answer = rig.client.call("run_shell", arguments);
        assert_eq!(answer["error"]["kind"], "invalid_arguments", "{answer}");
        assert!(answer["error"]["message"].as_str().expect("a message").contains("process of its own"), "{answer}");
    }
}

/// K-09: nobody else sees it: neither another command's view of processes, nor arguments, nor the host's own environment.
#[test]
fn a_secret_is_in_no_arguments_and_no_environment_but_the_commands() {
    let mut rig = rig(Via::Process, &["confine.mode=off", "tools.shell_confirm=false"]);
    let answer = rig.client.call("run_shell", command(SPELLED));
    assert_eq!(answer["error"]["kind"], "denied", "unconfined and unasked: {answer}");
    // A value of its own: commands of other tests that run at the same time have theirs in their environment.
    let value = "mB7tX-3qPf_8sYcEd";
    let mut rig = rig_of(lending_value(Via::Process, value), &[]);
    let me = std::process::id();
    let spelled = value.chars().map(|c| format!("{c} ")).collect();
    assert_eq!(rig.run(SPELLED), (0, spelled));
    let seen_in = |file: &str| {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let others = processes.filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.parse::<u32>().is_ok() && name != me.to_string())
        });
        let holds = |entry: &std::fs::DirEntry| {
            let text = std::fs::read(entry.path().join(file)).unwrap_or_default();
            text.windows(value.len()).any(|piece| piece == value.as_bytes())
        };
        others.filter(holds).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    assert_eq!(seen_in("cmdline"), Vec::<PathBuf>::new());
    // The command's own first process has it, and ends a moment after the answer.
    eventually("no environment has the secret", || seen_in("environ").is_empty());
}

/// Where its command can send it anywhere, no answer in advance counts.
#[test]
fn a_command_that_reaches_every_host_gets_no_secret_without_a_person() {
    for network in ["full", "egress", "none"] {
        let mut rig = rig(Via::Process, &[&format!("confine.network={network}")]);
        let answer = rig.client.call("run_shell", command(SPELLED));
        let denied = answer["error"]["message"].as_str().unwrap_or_default().contains("a person has to allow it");
        assert_eq!(denied, network == "full", "{network}: {answer}");
    }
}

/// The question names the secret, and where the command can send it; a yes for all commands of the session says nothing of secrets.
#[test]
fn the_question_names_the_secret_and_where_it_can_go() {
    let (program, settings) = lending(Via::Process);
    let set = settings.iter().map(|setting| format!("--set '{setting}'")).collect::<Vec<_>>().join(" ");
    let terminal = Terminal::idle(program);
    let request =
        |id: u32, text: &str| serde_json::json!({ "id": id, "tool": "run_shell", "arguments": command(text) });
    terminal.program.write("work/first", format!("{}\n", request(1, "true")));
    terminal.program.write("work/second", format!("{}\n", request(2, SPELLED)));
    terminal.run(&format!(
        "touch out; (cat first; while [ ! -s out ]; do sleep 0.1; done; cat second) | \
         $toolcrib {set} --set 'confine.hosts=[\"api.org\"]' run >out"
    ));
    terminal.shows(QUESTION);
    terminal.press(&["s", "Enter"]);
    terminal.asked(2);
    let screen = terminal.shows(QUESTION).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("named hosts only, with a secret"), "{screen}");
    assert!(
        screen.contains("gets │ GITHUB, and can send it to: api.org")
            || screen.contains("GITHUB, and can send it to: api.org"),
        "{screen}"
    );
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let out = terminal.out();
    assert!(out.iter().any(|answer| answer["result"]["stdout"] == spelled()), "{out:?}");
}

/// The file that holds it is not there for commands.
#[test]
fn the_file_of_a_secret_is_hidden_from_commands() {
    for via in crate::rig::BOTH {
        let mut rig = rig(via, &[]);
        let key = rig.program.path("home/key").display().to_string();
        let (_, printed) = rig.run(&format!("sed 's/./& /g' {key}"));
        assert!(!printed.contains("z K 4 v"), "{printed}");
    }
}

/// Plugins of others get none by naming one: their sections would have to say so.
#[test]
fn commands_of_other_plugins_get_no_secret() {
    let (program, settings) = lending(Via::Process);
    program.write("plugins/shell_echo.wasm", std::fs::read(toolcrib_tests::guest("shell_echo")).expect("a guest"));
    let digest = format!("plugin.shell_echo.sha256={:?}", toolcrib_tests::digest("shell_echo"));
    let plugins = program.path("plugins").display().to_string();
    let mut arguments = vec!["--yes", "--plugins", &plugins, "--set", &digest, "--set", "plugin.shell_echo.shell=true"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    arguments.push("run");
    let mut client = program.client(&arguments);
    assert_eq!(client.result("shell_echo", serde_json::json!({ "text": "GITHUB" })), "GITHUB");
    assert_eq!(client.result("run_shell", command("echo GITHUB"))["stdout"], "GITHUB\n");
    let trail = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    let lending: Vec<&str> = trail.lines().filter(|line| line.contains("secrets: GITHUB")).collect();
    assert!(lending.len() == 1 && lending[0].contains("run_shell"), "{trail}");
}
