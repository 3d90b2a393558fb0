//! What a command in a pane answers: its exact output and status, whatever it prints and whatever came before.

use crate::crib::{Crib, until_it_sleeps};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use toolcrib_tests::shell::command;

/// Each command gives its status and its output, all in one shell.
fn assert_runs(crib: &mut Crib, table: &[(&str, i64, &str)]) {
    for (text, status, stdout) in table {
        assert_eq!(crib.run(text), (*status, (*stdout).to_owned()), "`{text}`");
    }
}

fn notices(result: &Value) -> Vec<&str> {
    let notices = result["notices"].as_array().unwrap_or_else(|| panic!("{result}"));
    notices.iter().filter_map(Value::as_str).collect()
}

#[test]
fn output_and_status_are_the_commands_own() {
    assert_runs(
        &mut Crib::new(),
        &[
            ("true", 0, ""),
            ("false", 1, ""),
            ("(exit 42)", 42, ""),
            ("bash -c 'exit 3'", 3, ""),
            ("no-such-program 2>/dev/null", 127, ""),
            ("echo out; echo err >&2", 0, "out\nerr\n"),
            ("printf foo", 0, "foo"),
            ("printf 'a\\nb'", 0, "a\nb"),
            ("printf '\\n\\nx\\n\\n'", 0, "\n\nx\n\n"),
            ("printf 'a\\tb\\n'", 0, "a\tb\n"),
            ("printf '  x  \\n'", 0, "  x  \n"),
            ("echo 'wait! no!!'", 0, "wait! no!!\n"),
            ("# a comment\necho c # another", 0, "c\n"),
            ("cat </dev/null", 0, ""),
        ],
    );
}

#[test]
fn several_lines_are_one_command() {
    assert_runs(
        &mut Crib::new(),
        &[
            ("echo a\nsleep 0.2\necho b", 0, "a\nb\n"),
            ("for i in 1 2 3; do\n  echo $i\ndone", 0, "1\n2\n3\n"),
            ("cat <<'END'\nexit 0\nEND", 0, "exit 0\n"),
            ("cat <<END\n$((6 * 7))\n\n\tx\nEND\n(exit 7)", 7, "42\n\n\tx\n"),
            ("if true\nthen echo yes\nelse echo no\nfi", 0, "yes\n"),
            ("echo last\n\n\n", 0, "last\n"),
        ],
    );
}

#[test]
fn what_looks_like_a_prompt_or_a_mark_ends_nothing() {
    assert_runs(
        &mut Crib::new(),
        &[
            ("echo '[agent 99: 0] $ '; (exit 7)", 7, "[agent 99: 0] $ \n"),
            ("printf '\\033]133;D;0\\007'; echo real; (exit 7)", 7, "real\n"),
            ("printf '\\033]133;D;0;0123456789abcdef\\007'; echo real; (exit 8)", 8, "real\n"),
            ("printf '\\033]133;C;0123456789abcdef\\007'; echo real", 0, "real\n"),
            ("printf '\\033]133;A\\007root@host:~# '; echo", 0, "root@host:~# \n"),
            ("clear; echo x", 0, "x\n"),
            ("printf '\\033[2J\\033[H\\033[31mred\\033[0m\\n'", 0, "red\n"),
            ("mkdir -p listed/tools; ls listed", 0, "tools\n"),
        ],
    );
}

#[test]
fn a_line_that_is_rewritten_is_shown_as_it_was_last() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("printf 'a\\r\\nb\\rc'"), (0, "a\nc".into()));
}

#[test]
fn a_line_wider_than_the_pane_stays_one_line() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("printf '%03000d\\n' 0"), (0, format!("{}\n", "0".repeat(3000))));
}

#[test]
fn a_long_command_is_not_too_long() {
    let mut crib = Crib::new();
    let text = "y".repeat(20 << 10);
    assert_eq!(crib.run(&format!("text='{text}'; echo ${{#text}}")), (0, "20480\n".into()));
}

#[test]
fn a_tab_in_a_command_is_data() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("printf '[%s]\\n' 'a\tb'\n\techo\tc"), (0, "[a\tb]\nc\n".into()));
}

#[test]
fn two_hundred_thousand_lines_are_complete() {
    let mut crib = Crib::new();
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let result = crib.result("run_shell", command("seq 1 200000"));
    let stdout = result["stdout"].as_str().expect("text");
    assert!(
        stdout.starts_with(&expected[..1_500]) && stdout.ends_with(&expected[expected.len() - 2_500..]),
        "{stdout:.100}"
    );
    let said = notices(&result);
    let notice =
        said.iter().find(|notice| notice.contains("more of it is kept as")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(notice.contains(&format!("{} bytes", expected.len())), "{notice}");
    let file =
        notice.split("more of it is kept as").nth(1).and_then(|rest| rest.split('`').nth(1)).expect("a file's name");
    assert!(std::fs::read_to_string(file).expect("a kept file") == expected, "the kept file is not the output");
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn one_stream_holds_both_and_no_result_says_so_again() {
    let mut crib = Crib::new();
    let result = crib.result("run_shell", command("echo out; echo err >&2"));
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("out\nerr\n"), &json!("")));
    assert_eq!(notices(&result), [""; 0]);
}

#[test]
fn a_shell_keeps_its_directory_and_its_variables() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("mkdir sub; cd sub; kept=here; f() { echo of f; }").0, 0);
    let result = crib.result("run_shell", command("pwd; echo $kept; f"));
    let directory = std::fs::canonicalize(crib.program.path("work/sub")).expect("a directory");
    assert_eq!(result["stdout"], json!(format!("{}\nhere\nof f\n", directory.display())));
    assert!(notices(&result).iter().any(|notice| notice.contains("paths of file tools begin in `")), "{result}");
    let result = crib.result("run_shell", command("cd .."));
    assert_eq!(result["exit_code"], 0);
    let result = crib.result("run_shell", command("echo back"));
    assert!(!notices(&result).iter().any(|notice| notice.contains("begin elsewhere")), "{result}");
}

#[test]
fn another_prompt_changes_nothing() {
    let mut crib = Crib::with(&["tmux.default_shell=\"/bin/bash\""]);
    assert_eq!(crib.run("PS1='% '; PS2='more? '; PROMPT_COMMAND='echo noise'").0, 0);
    assert_runs(&mut crib, &[("echo right\necho on", 0, "right\non\n"), ("printf x; (exit 5)", 5, "x")]);
    assert_eq!(crib.run("PS1=; echo $PROMPT_COMMAND"), (0, "echo noise\n".into()));
    assert_eq!(crib.run("echo still"), (0, "still\n".into()));
}

#[test]
fn a_background_job_holds_nothing_up() {
    let mut crib = Crib::new();
    // The job waits for a file that comes after the answer.
    let (status, stdout) = crib.run("(until [ -e go ]; do sleep 0.05; done; echo late >late.txt) & echo now");
    assert!(status == 0 && stdout.ends_with("now\n"), "{stdout}");
    crib.program.write("work/go", "");
    let (status, stdout) = crib.run("wait; cat late.txt");
    assert!(status == 0 && stdout.ends_with("late\n"), "{stdout}");
}

#[test]
fn what_would_end_or_poison_the_shell_is_refused() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    for text in ["exit 3", "true; exit", "set -e", "set -x; set -e\nfalse", "exec sleep 1", "kill -9 $$"] {
        let said = crib.refusal(text);
        assert!(said.starts_with("denied: ") && said.contains("would end or poison the shell"), "`{text}`: {said}");
    }
    for text in ["tmux kill-server", "tmux kill-session", "/usr/bin/tmux new-session -d"] {
        let said = crib.refusal(text);
        assert!(said.starts_with("denied: `tmux "), "`{text}`: {said}");
    }
    assert_runs(
        &mut crib,
        &[("( set -e; false ); echo on", 0, "on\n"), ("(exit 3)", 3, ""), ("echo $kept", 0, "here\n")],
    );
}

#[test]
fn an_unclosed_quote_is_refused_and_hangs_nothing() {
    let mut crib = Crib::new();
    for text in ["echo 'open", "echo \"open", "cat <(echo"] {
        let said = crib.refusal(text);
        assert!(said.starts_with("denied: command cannot be checked against"), "`{text}`: {said}");
    }
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn what_was_not_waited_for_runs_on_and_keeps_its_output() {
    let mut crib = Crib::of_one_pane();
    // The first call of a host brings its pane up.
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("sleep 6; echo slow", "2s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let pane = answer["error"]["data"]["pane"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(pane.starts_with('%') && pane.contains('@'), "{pane}");
    let answer = crib.within("echo next", "30s");
    assert_eq!(answer["result"]["stdout"], "next\n", "{answer}");
    assert!(crib.shows("slow"));
}

#[test]
fn what_was_printed_before_the_wait_was_over_is_told() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("echo early; sleep 6; echo late", "3s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    assert!(answer["error"]["data"].to_string().contains("early"), "{answer}");
    assert_eq!(crib.run("echo next"), (0, "next\n".into()));
}

#[test]
fn a_program_that_reads_is_not_typed_into() {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("cat", "2s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let answer = crib.within("echo never", "500ms");
    let error = &answer["error"];
    assert_eq!(error["kind"], "busy", "{answer}");
    let message = error["message"].as_str().expect("text");
    assert!(
        message.starts_with(&format!("pane shared of {} was not free within ", crib.program.session())),
        "{message}"
    );
    assert!(message.ends_with("it runs `cat`"), "{message}");
    assert!(!crib.screen().contains("never"));
    crib.type_keys(&["C-d"]);
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn a_program_that_fills_the_screen_is_left_by_its_key() {
    if !std::path::Path::new("/usr/bin/less").exists() {
        toolcrib_tests::skip!("less is not installed");
    }
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("less /etc/passwd", "3s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let answer = crib.within("echo never", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    crib.type_keys(&["q"]);
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn calls_at_the_same_time_get_each_its_own_output() {
    let mut crib = Crib::new();
    let expected: BTreeMap<u64, String> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            (
                crib.send("run_shell", command(&format!("echo {name}; sleep 0.2; echo {name}"))),
                format!("{name}\n{name}\n"),
            )
        })
        .collect();
    let mut answered = BTreeMap::new();
    for _ in 0..expected.len() {
        let answer = crib.answer();
        let stdout = answer["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}"));
        answered.insert(answer["id"].as_u64().expect("an id"), stdout.to_owned());
    }
    assert_eq!(answered, expected);
}

#[test]
fn a_dispatched_command_is_looked_at_later() {
    let mut crib = Crib::of_one_pane();
    let mut arguments = command("sleep 0.3; echo dispatched $((6 * 7))");
    arguments["wait"] = json!(false);
    let said = crib.result("run_shell", arguments);
    let said = said.as_str().unwrap_or_else(|| panic!("{said}"));
    let pane = said.split('`').nth(1).unwrap_or_else(|| panic!("no pane in {said}")).to_owned();
    assert_eq!(crib.run("echo next"), (0, "next\n".into()));
    let screen = crib.result("capture-pane", json!({ "target": pane }));
    assert!(screen.as_str().is_some_and(|text| text.contains("dispatched 42")), "{screen}");
}

#[test]
fn a_cancelled_command_is_interrupted() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    let id = crib.send("run_shell", command("sleep 20; echo never"));
    until_it_sleeps(&crib.program);
    let begin = Instant::now();
    crib.cancel(id);
    let answer = crib.answer();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("cancelled")), "{answer}");
    assert_eq!(crib.run("echo after $kept"), (0, "after here\n".into()));
    assert!(begin.elapsed() < Duration::from_secs(5), "it was not interrupted");
}

#[test]
fn what_somebody_left_half_typed_is_not_part_of_a_command() {
    let mut crib = Crib::with(&["tmux.default_shell=\"/bin/bash\""]);
    assert_eq!(crib.run("true").0, 0);
    crib.result("send-keys", toolcrib_tests::shell::declared(json!({ "literal_text": "leftover " })));
    assert_eq!(crib.run("echo z"), (0, "z\n".into()));
}

#[test]
fn bytes_that_are_no_text_are_shown_and_counted() {
    let mut crib = Crib::new();
    let result = crib.result("run_shell", command(r"printf 'a\000b\377c\n'; printf 'd'"));
    let stdout = result["stdout"].as_str().expect("text");
    assert!(stdout.starts_with('a') && stdout.ends_with("c\nd"), "{stdout:?}");
}

#[test]
fn a_backslash_at_the_end_continues_nothing() {
    let mut crib = Crib::new();
    for text in ["echo a \\", "echo a \\\n"] {
        assert_eq!(crib.within(text, "5s")["result"]["exit_code"], 0, "{text:?}");
    }
    assert_eq!(crib.run("echo on"), (0, "on\n".into()));
}

#[test]
fn without_a_wait_the_settings_bound_it() {
    let mut crib = Crib::with(&["limits.command_ms=3000"]);
    // A look brings the pane up, however long that takes.
    crib.screen();
    let answer = crib.call("run_shell", command("echo begun; sleep 20"));
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    assert_eq!(answer["error"]["data"]["stdout"], "begun\n");
    crib.type_keys(&["C-c"]);
}
