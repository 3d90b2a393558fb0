//! What a command finds when it starts: variables, descriptors, signals, no terminal.

use super::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use toolcrib_tests::shell::{harmless, waiting};
use toolcrib_tests::{PATIENCE, Program, TestHost, skip};

/// Prints the environment that `sh` itself was started with, a variable a line.
const ENVIRONMENT: &str = "tr '\\0' '\\n' < /proc/$$/environ";

const STANDARD: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TZ", "TERM"];

/// By which toolchains are found, and the certificates that programs trust.
#[rustfmt::skip]
const TOOLCHAINS: [&str; 17] = [
    "LOGNAME", "SHELL", "VIRTUAL_ENV", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT",
    "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS", "EDITOR",
];

fn names(environment: &str) -> BTreeSet<&str> {
    environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect()
}

/// Runs a command by the program, in this environment.
fn run(command: &str, variables: &[(&str, &str)], flags: &[&str]) -> Value {
    let program = Program::new().unconfined();
    let arguments = harmless(command).to_string();
    let mut started = program.command(&[&["--yes", "call", "run_shell", &arguments], flags].concat());
    let output = started.envs(variables.iter().copied()).stdin(Stdio::null()).output().expect("the program starts");
    let envelope: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    envelope["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_hosts_environment_passes_but_the_standard_names() {
    assert!(std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("CARGO_")));
    let result = TestHost::new().set("confine.mode=off").shell(ENVIRONMENT).await;
    for name in names(text(&result, "stdout")) {
        let standard = STANDARD.contains(&name) || name.starts_with("LC_") || name == "TOOLCRIB_CALL";
        let standard = standard || TOOLCHAINS.contains(&name);
        assert!(standard, "`{name}` was passed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_is_named_in_the_environment() {
    let host = TestHost::new();
    let marks = [host.shell("echo $TOOLCRIB_CALL").await, host.shell("echo $TOOLCRIB_CALL").await];
    let [one, two] = marks.each_ref().map(|result| text(result, "stdout").trim());
    assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    assert_ne!(one, two);
    let calls: Vec<Value> = host.audit().into_iter().map(|line| line["call"].clone()).collect();
    assert!(calls.contains(&one.into()) && calls.contains(&two.into()));
}

#[test]
fn a_hostile_environment_of_the_host_reaches_no_command() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let hook = directory.path().join("hook");
    std::fs::write(&hook, "touch hooked\n").expect("a file");
    let hook = hook.to_str().expect("a path in UTF-8");
    let hostile = [
        ("LD_PRELOAD", "/no/such/library.so"),
        ("LD_LIBRARY_PATH", "/no/such/directory"),
        ("LD_AUDIT", ""),
        ("BASH_ENV", hook),
        ("ENV", hook),
        ("BASH_FUNC_ls%%", "() { touch hooked; }"),
        ("SHELLOPTS", "xtrace"),
        ("PS4", "$(touch hooked)"),
        ("PROMPT_COMMAND", "touch hooked"),
        ("IFS", "/"),
        ("CDPATH", "/"),
        ("TOKEN", "secret"),
        ("GITHUB_TOKEN", "secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
        ("LC_API_KEY", "secret"),
        ("TOOLCRIB_CALL", "forged"),
        ("TOOLCRIB_TOOLS_SHELL_CONFIRM", "false"),
        ("EDITOR", "vi"),
    ];
    let command = format!("{ENVIRONMENT}; bash -c 'ls; {ENVIRONMENT}' | grep -E 'secret|hook|forged'; ls");
    let result = run(&command, &hostile, &[]);
    let stdout = text(&result, "stdout");
    assert_eq!(names(stdout), ["EDITOR", "HOME", "PATH", "TERM", "TOOLCRIB_CALL"].into(), "{result}");
    assert!(stdout.contains("EDITOR=true\n"), "{stdout}");
    for value in ["secret", "forged", "hook"] {
        assert!(!stdout.contains(value), "`{value}` was passed: {stdout}");
    }
    assert_eq!(text(&result, "stderr"), "");
}

#[test]
fn the_standard_names_pass_with_their_values() {
    let set =
        [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "Asia/Tokyo"), ("USER", "someone"), ("TERM", "vt100")];
    let result = run(ENVIRONMENT, &set, &[]);
    let environment: BTreeSet<&str> = text(&result, "stdout").lines().collect();
    for (name, value) in set {
        assert!(environment.contains(format!("{name}={value}").as_str()), "{name}: {environment:?}");
    }
}

#[test]
fn what_shell_env_names_passes_and_nothing_beside_it() {
    let set = [("GITHUB_TOKEN", "named"), ("GITHUB_TOKEN_2", "other"), ("EDITOR", "vi")];
    let result = run(ENVIRONMENT, &set, &["--set", "tools.shell_env=[\"GITHUB_TOKEN\", \"UNSET\"]"]);
    let environment = text(&result, "stdout");
    assert_eq!(names(environment), ["EDITOR", "GITHUB_TOKEN", "HOME", "PATH", "TERM", "TOOLCRIB_CALL"].into());
    assert!(environment.contains("GITHUB_TOKEN=named\n"), "{environment}");
}

#[test]
fn variables_of_toolchains_pass_if_what_they_name_is_there() {
    let set = [("LOGNAME", "someone"), ("JAVA_HOME", "/usr"), ("NVM_DIR", "/no/such/place"), ("SHELL", "/bin/sh")];
    let result = run(ENVIRONMENT, &[&set[..], &[("XDG_DATA_DIRS", "/usr:/etc"), ("GOPATH", "go")]].concat(), &[]);
    let found: BTreeSet<&str> = text(&result, "stdout").lines().collect();
    for expected in ["LOGNAME=someone", "JAVA_HOME=/usr", "XDG_DATA_DIRS=/usr:/etc", "EDITOR=true", "SHELL=/bin/sh"] {
        assert!(found.contains(expected), "{expected}: {found:?}");
    }
    assert!(!found.iter().any(|line| line.starts_with("NVM_DIR=") || line.starts_with("GOPATH=")), "{found:?}");
    // A person's own editor, where settings name it.
    let result = run("echo $EDITOR", &[("EDITOR", "vi")], &["--set", "tools.shell_env=[\"EDITOR\"]"]);
    assert_eq!(text(&result, "stdout"), "vi\n");
}

#[test]
fn a_hook_of_loader_or_shell_cannot_be_named() {
    for name in ["LD_PRELOAD", "BASH_ENV", "ENV", "BASH_FUNC_ls%%", "IFS"] {
        let setting = format!("tools.shell_env=[{name:?}]");
        let output = Program::new().run(&["--set", &setting, "call", "time"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("is never passed"), "{name}: {stderr}");
    }
}

#[test]
fn a_host_without_path_finds_programs_all_the_same() {
    let program = Program::new();
    let arguments = harmless("env | grep ^PATH=; ls / > /dev/null").to_string();
    let mut command = program.command(&["--yes", "call", "run_shell", &arguments]);
    let output = command.env_remove("PATH").stdin(Stdio::null()).output().expect("the program starts");
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope}");
    assert_eq!(text(&envelope["result"], "stdout"), "PATH=/usr/local/bin:/usr/bin:/bin\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_starts_in_the_working_directory() {
    let host = TestHost::new();
    assert_eq!(text(&host.shell("pwd -P").await, "stdout"), format!("{}\n", host.work().display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_at_its_end() {
    let host = TestHost::new();
    let result = host.result("run_shell", waiting("cat; read x; echo $?; readlink /proc/$$/fd/0", "10s")).await;
    assert_eq!(text(&result, "stdout"), "1\n/dev/null\n");
}

#[test]
fn the_hosts_own_input_is_not_the_commands() {
    let program = Program::new();
    let arguments = waiting("cat", "10s").to_string();
    let mut running = program.start(&["--yes", "call", "run_shell", &arguments]);
    running.write("for somebody else\n");
    let envelope = running.line();
    assert_eq!(envelope["result"]["stdout"], "", "{envelope}");
    assert!(running.ended(PATIENCE).expect("an exit status").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_terminal_to_ask_on() {
    let result =
        TestHost::new().shell("sh -c 'exec 3</dev/tty'; echo $?; cut -d' ' -f6,7 /proc/$$/stat; echo $$").await;
    let lines: Vec<&str> = text(&result, "stdout").lines().collect();
    assert_ne!(lines[0], "0", "{result}");
    assert_eq!(lines[1], format!("{} 0", lines[2]), "not a session of its own without a terminal: {result}");
    assert!(text(&result, "stderr").contains("/dev/tty"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_of_the_host_is_out_of_reach() {
    let host = TestHost::new().set("confine.mode=off");
    if host.shell("command -v script").await["exit_code"] != 0 {
        skip!("`script`, which makes a terminal, is not installed");
    }
    let reach = harmless("sh -c 'exec 3</dev/tty' && echo reached");
    std::fs::write(host.work().join("arguments"), reach.to_string()).expect("a file");
    let (home, file) = (host.home(), Program::file());
    let call = format!(
        "HOME={0} XDG_CONFIG_HOME={0} XDG_STATE_HOME={0} {1} --yes --no-tmux call run_shell -",
        home.display(),
        file.display()
    );
    let script = format!("sh -c \"exec 3</dev/tty\" && touch outer; {call} < arguments > envelope");
    host.shell(&format!("script -qec '{script}' /dev/null")).await;
    assert!(host.work().join("outer").exists(), "the program itself had no terminal");
    let envelope = std::fs::read(host.work().join("envelope")).expect("an envelope");
    let envelope: Value = serde_json::from_slice(&envelope).expect("an envelope");
    assert_eq!(
        (&envelope["result"]["stdout"], &envelope["result"]["exit_code"]),
        (&"".into(), &2.into()),
        "{envelope}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_three_standard_descriptors_are_open() {
    let inheritable = rustix::io::dup(std::fs::File::open("/dev/null").expect("a file")).expect("a descriptor");
    let flags = rustix::io::fcntl_getfd(&inheritable).expect("its flags");
    assert!(!flags.contains(rustix::io::FdFlags::CLOEXEC));
    let result = TestHost::new().shell("ls /proc/$$/fd; :").await;
    assert_eq!(text(&result, "stdout"), "0\n1\n2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_pipe_ends_a_command_as_in_any_shell() {
    let result = TestHost::new().shell("yes | head -n 1; sh -c 'kill -PIPE $$'; echo $?").await;
    assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("y\n141\n", ""));
}
