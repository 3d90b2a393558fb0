//! `toolcrib policy explain`: what a call may do, and which line decides.

use serde_json::{Value, json};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, install, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::{declared, harmless};

const SETTINGS: &str = "config/toolcrib/toolcrib.toml";

/// The clauses about a tool, each as subject, verdict, detail and what decided.
fn explain(program: &Program, more: &[&str], tool: &str) -> Vec<[String; 4]> {
    let answer = json_of(&program.run(&[more, &["policy", "explain", "--json", tool]].concat()));
    assert_eq!(answer["tool"], tool);
    let text = |clause: &Value, key: &str| clause[key].as_str().unwrap().to_owned();
    let clause = |clause: &Value| ["subject", "verdict", "detail", "decided_by"].map(|key| text(clause, key));
    answer["clauses"].as_array().unwrap().iter().map(clause).collect()
}

/// The place of a line in the user's settings, as messages name it.
fn line(program: &Program, text: &str) -> String {
    let settings = std::fs::read_to_string(program.path(SETTINGS)).unwrap();
    let number = settings.lines().position(|line| line.starts_with(text)).expect("the line") + 1;
    format!("{}:{number}", program.path(SETTINGS).display())
}

fn allow(program: &Program, name: &str) {
    let file = install(program, name);
    let rights: &[&str] = if name == "shell_echo" { &["--shell"] } else { &["--read", "."] };
    succeeded(&program.run(&[&["plugin", "allow", &file], rights].concat()));
}

#[test]
fn a_built_in_tool_is_explained_by_the_defaults() {
    let program = Program::new().without_settings();
    let clauses = explain(&program, &[], "run_shell");
    assert_eq!(clauses[0], ["shell", "allowed", "may run commands, and use panes where there is tmux", "built in"]);
    assert_eq!(clauses[1], ["shell", "asks", "a person is shown every command first", "tools.shell_confirm (default)"]);
    let (confined, last) = (&clauses[2..clauses.len() - 1], &clauses[clauses.len() - 1]);
    let decided = confined.iter().map(|clause| clause[3].trim_start_matches("confine.").trim_end_matches(" (default)"));
    let settings = [
        "mode",
        "floor",
        "write",
        "protect",
        "held",
        "caches",
        "read",
        "hide",
        "network",
        "hosts",
        "ports",
        "unconfined",
    ];
    assert_eq!(decided.collect::<Vec<_>>(), settings, "{clauses:?}");
    assert_eq!((last[1].as_str(), last[3].as_str()), ("denied", "tools.shell_denylist (default)"));
    let clauses = explain(&program, &[], "time");
    assert_eq!(clauses, [["nothing", "allowed", "only computes; it imports no capability", "its imports"]]);
}

#[test]
fn a_setting_of_the_user_is_named_with_file_and_line() {
    let program = Program::new();
    program.write(SETTINGS, "# mine\n[tools]\nshell_confirm = false\nfiles_enabled = false\n");
    let shell = explain(&program, &[], "run_shell").remove(1);
    assert_eq!(
        (shell[1].as_str(), shell[3].clone()),
        ("allowed", format!("tools.shell_confirm ({})", line(&program, "shell_confirm")))
    );
    let files = explain(&program, &[], "read_file").remove(0);
    assert_eq!(
        (files[1].as_str(), files[3].clone()),
        ("denied", format!("tools.files_enabled ({})", line(&program, "files_enabled")))
    );
}

#[test]
fn a_policy_that_narrows_is_named_with_file_and_line() {
    let program = Program::new();
    program.write("policy.toml", "\n\n[tools]\nshell_enabled = false\n");
    let policy = program.path("policy.toml").display().to_string();
    let clause = explain(&program, &["--policy", &policy], "run_shell").remove(0);
    assert_eq!(
        (clause[1].as_str(), clause[3].clone()),
        ("denied", format!("tools.shell_enabled (narrowed by {policy}:4)"))
    );
}

#[test]
fn a_plugin_that_was_not_allowed_is_denied_for_want_of_a_section() {
    let program = Program::new().without_settings();
    install(&program, "word_count");
    let message = "`word_count` needs `files`, which the policy does not grant";
    assert_eq!(explain(&program, &[], "word_count"), [["files", "denied", message, "no [plugin.word_count] section"]]);
}

#[test]
fn a_plugin_that_may_read_is_explained_by_the_line_that_lets_it() {
    let program = Program::new();
    allow(&program, "word_count");
    let clause = explain(&program, &[], "word_count").remove(0);
    assert_eq!((clause[0].as_str(), clause[1].as_str()), ("files.read", "allowed"));
    assert_eq!(clause[2], format!("below {}", program.path("work").display()));
    assert_eq!(clause[3], format!("plugin.word_count.files.read ({})", line(&program, "files.read")));
}

#[test]
fn the_values_that_a_plugin_gets_are_explained() {
    let program = Program::new();
    allow(&program, "word_count");
    let config = r#"plugin.word_count.config={ PLACE = "Bonn", TOKEN = "a ${secret:key}" }"#;
    let set = ["--set", "secret.key.file=\"/nowhere/key\"", "--set", config];
    let clause =
        explain(&program, &set, "word_count").into_iter().find(|clause| clause[0] == "config").expect("a clause");
    assert_eq!(clause[1..3], ["allowed", "gets the values `PLACE`, `TOKEN`, where a word stands for the secret"]);
    assert!(clause[3].starts_with("plugin.word_count.config (--set"), "{clause:?}");
    assert!(explain(&program, &[], "word_count").iter().all(|clause| clause[0] != "config"));
}

#[test]
fn a_plugin_that_may_not_write_is_not_explained_by_a_setting_that_allows_it() {
    let program = Program::new();
    allow(&program, "word_count");
    let write = explain(&program, &[], "word_count").into_iter().find(|clause| clause[0] == "files.write");
    let decided_by = write.map(|clause| clause[3].clone());
    assert_ne!(
        decided_by.as_deref(),
        Some("tools.files_allowed_paths (default)"),
        "that list is empty and forbids nothing"
    );
}

#[test]
fn a_plugin_that_may_run_commands_is_explained_by_the_line_that_lets_it() {
    let program = Program::new();
    allow(&program, "shell_echo");
    let place = line(&program, "shell = true");
    let clauses = explain(&program, &[], "shell_echo");
    assert!(clauses.iter().any(|clause| clause[3].contains(&place)), "none names {place}: {clauses:?}");
}

#[test]
fn a_plugin_whose_section_takes_the_shell_away_is_explained_by_that_line() {
    let program = Program::new();
    allow(&program, "shell_echo");
    let allowed = std::fs::read_to_string(program.path(SETTINGS)).unwrap();
    program.write(SETTINGS, allowed.replace("shell = true", "shell = false"));
    let clause = explain(&program, &[], "shell_echo").remove(0);
    assert_eq!(
        (clause[1].as_str(), clause[3].clone()),
        ("denied", format!("plugin.shell_echo.shell ({})", line(&program, "shell =")))
    );
}

#[test]
fn a_built_in_plugin_whose_section_takes_the_shell_away_is_explained_by_that_line() {
    let program = Program::new();
    program.write(SETTINGS, "[plugin.run_shell]\nshell = false\n");
    let clause = explain(&program, &[], "run_shell").remove(0);
    assert_eq!(
        (clause[1].as_str(), clause[3].clone()),
        ("denied", format!("plugin.run_shell.shell ({})", line(&program, "shell =")))
    );
}

#[test]
fn other_bytes_are_explained_by_the_digest_that_does_not_fit() {
    let program = Program::new();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    toolcrib_tests::outcome::change(&file);
    let clause = explain(&program, &[], "word_count").remove(0);
    assert!(clause[2].ends_with("but these are not the bytes that were allowed"), "{clause:?}");
    assert_eq!(clause[3], format!("plugin.word_count.sha256 ({})", line(&program, "sha256")));
}

#[test]
fn nothing_is_called_in_words_that_are_no_words() {
    let program = Program::new();
    allow(&program, "word_count");
    for clause in explain(&program, &[], "word_count") {
        assert!(!clause[2].contains("below nothing"), "{clause:?}");
    }
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest() {
    let output = Program::new().run(&["policy", "explain", "runshell"]);
    assert_eq!((code(&output), stdout(&output)), (3, String::new()));
    assert!(stderr(&output).contains("did you mean `run_shell`?"));
}

#[test]
fn explaining_says_the_same_as_calling_does() {
    let program = Program::new();
    install(&program, "word_count");
    let (_, envelope) = program.call(&["word_count", "path=a"]);
    assert_eq!(json!(explain(&program, &[], "word_count")[0][2]), envelope["error"]["message"]);
}

#[test]
fn what_is_asked_before_a_write_is_explained_as_it_is_done() {
    let program = Program::new();
    program.write("policy.toml", "[tools]\nfiles_confirm = \"always\"\n");
    let policy = program.path("policy.toml").display().to_string();
    for (more, verdict, detail, inside, outside) in [
        (vec![], "asks", "a person is shown writes outside the workspace, and to files that run later", 0, 5),
        (
            vec!["--set", "tools.files_confirm=runs-later"],
            "asks",
            "a person is shown writes to files that run later",
            0,
            0,
        ),
        (vec!["--set", "tools.files_confirm=never"], "allowed", "no write is asked about", 0, 0),
        (
            vec!["--set", "tools.files_confirm=never", "--policy", &policy],
            "asks",
            "a person is shown every write",
            5,
            5,
        ),
    ] {
        let clauses = explain(&program, &more, "write_file");
        let asked = clauses.iter().rfind(|clause| clause[0] == "files.write").expect("a clause");
        assert_eq!((asked[1].as_str(), asked[2].as_str()), (verdict, detail));
        assert!(asked[3].starts_with("tools.files_confirm ("), "{asked:?}");
        for (path, expected) in [("inside", inside), ("../outside", outside)] {
            let written =
                program.run(&[&more[..], &["call", "write_file", &format!("path={path}"), "content=x"]].concat());
            assert_eq!(code(&written), expected, "{more:?} {path}");
        }
    }
}

#[test]
fn what_is_closed_to_reading_is_explained_by_its_classes_and_its_bounds() {
    let program = Program::new();
    let clauses = explain(&program, &["--set", "tools.files_read_paths=[\"~/docs\"]"], "read_file");
    let reads: Vec<_> = clauses.iter().filter(|clause| clause[0] == "files.read").collect();
    let docs = program.path("home/docs").display().to_string();
    assert!(
        reads
            .iter()
            .any(|clause| clause[2] == format!("below {docs}") && clause[3] == "tools.files_read_paths (--set)"),
        "{reads:?}"
    );
    let closed = reads.iter().find(|clause| clause[1] == "denied").expect("a clause");
    for class in file_access::CREDENTIALS {
        assert!(closed[2].contains(class.what), "{closed:?}");
    }
}

/// What an operator decided is not for the user to change: a hint names the line that decides.
#[test]
fn under_a_policy_hints_name_the_line_that_decides_and_none_that_cannot_help() {
    let program = Program::new();
    program.write(
        "policy.toml",
        "[tools]\nshell_confirm = true\nfiles_allowed_paths = [\"/srv\"]\nfetch_ports = [443]\n\
         [approval]\nallow_yes = false\n[plugin.time]\nenabled = false\n",
    );
    let policy = program.path("policy.toml").display().to_string();
    let hint = |arguments: &[&str]| {
        let (code, envelope) = program.call(&[&["--policy", &policy], arguments].concat());
        assert_eq!(code, 5, "{envelope}");
        envelope["error"]["hint"].as_str().expect("a hint").to_owned()
    };
    let decides = |key: &str, line: u32| format!("the operator's policy decides this: `{key}` in {policy}:{line}");
    let command = harmless("true").to_string();
    assert_eq!(hint(&["run_shell", &command]), decides("tools.shell_confirm", 2));
    assert_eq!(hint(&["write_file", "path=a.txt", "content=x"]), decides("tools.files_allowed_paths", 3));
    assert_eq!(hint(&["fetch_url", "url=http://example.com:8080/"]), decides("tools.fetch_ports", 4));
    assert_eq!(hint(&["time"]), decides("plugin.time.enabled", 8));
}

#[test]
fn under_a_policy_hints_of_limits_name_the_line_that_sets_them() {
    let program = Program::with_panes();
    program.write("policy.toml", "[tmux]\nmax_sessions = 1\nmax_panes = 1\n[limits]\ncalls_per_minute = 2\n");
    let policy = program.path("policy.toml").display().to_string();
    let mut host = program.client(&["--policy", &policy, "--set", "tools.shell_confirm=false", "run"]);
    let mut hint = |tool: &str, arguments: Value| {
        let answer = host.call(tool, declared(arguments));
        answer["error"]["hint"].as_str().unwrap_or_default().to_owned()
    };
    let decides = |key: &str, line: u32| format!("; the operator's policy decides this: `{key}` in {policy}:{line}");
    let sessions = hint("tmux-create-session", json!({ "session": "second" }));
    assert!(sessions.ends_with(&decides("tmux.max_sessions", 2)), "{sessions}");
    let panes = hint("tmux-create-pane", json!({ "pane": "second" }));
    assert!(panes.ends_with(&decides("tmux.max_panes", 3)), "{panes}");
    let calls = hint("tmux-create-pane", json!({ "pane": "second" }));
    assert!(calls.ends_with(&decides("limits.calls_per_minute", 5)), "{calls}");
}

#[test]
fn a_policy_that_switches_tmux_off_is_obeyed() {
    let program = Program::with_panes();
    program.write("policy.toml", "[tmux]\nenabled = false\n");
    let policy = program.path("policy.toml").display().to_string();
    let (_, answer) =
        program.call(&["--policy", &policy, "--yes", "run_shell", &harmless("echo ${TMUX-none}").to_string()]);
    assert_eq!(answer["result"]["stdout"], "none\n", "{answer}");
}
