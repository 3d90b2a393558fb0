//! What people see: results as text, errors once, progress, tables that fit; and no control sequence but our own.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolcrib_tests::outcome::{NO_QUESTION, code, install, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Terminal, eventually, skip};

#[test]
fn a_result_is_text_at_a_terminal_and_an_envelope_elsewhere() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    terminal.program.write("work/a.txt", "one\n{\"two\": 2}\n");
    let run = harmless("echo ran; echo beside >&2; true").to_string().replace('\'', r"'\''");
    terminal.run(&format!(
        "$toolcrib call read_file path=a.txt; $toolcrib --set tools.shell_confirm=false call run_shell '{run}'
        $toolcrib call read_file path=a.txt > out; $toolcrib call --json read_file path=a.txt"
    ));
    assert_eq!(terminal.ended(), 0);
    let rows = terminal.rows();
    let rows: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
    let text =
        ["one", "{\"two\": 2}", "exit_code: 0", "stdout: ran", "stderr: beside", "{", "  \"harness_timestamp\": {"];
    assert_eq!(rows[..text.len()], text, "{rows:#?}");
    assert_eq!(terminal.out()[0]["result"], "one\n{\"two\": 2}\n");
}

#[test]
fn an_error_is_said_once_at_a_terminal() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let said = "there is no tool `tmie`";
    for json in ["", "--json"] {
        let terminal = Terminal::new(&format!("$toolcrib call {json} tmie"));
        assert_eq!(terminal.ended(), 3);
        let screen = terminal.screen();
        assert_eq!((screen.matches(said).count(), screen.matches("did you mean `time`?").count()), (1, 1), "{screen}");
    }
    let message = r#"'{"type":"tool_use","id":"t","name":"tmie","input":{}}'"#;
    let terminal = Terminal::new(&format!("$toolcrib call --from anthropic {message}"));
    assert_eq!((terminal.ended(), terminal.screen().matches(said).count()), (3, 1), "{}", terminal.screen());
}

#[test]
fn what_a_command_printed_before_it_took_too_long_is_shown_with_the_error() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let mut late = harmless("echo so far; sleep 1000");
    late["wait"] = json!("3s");
    let terminal = Terminal::new(&format!("$toolcrib {} call run_shell '{late}'", NO_QUESTION.join(" ")));
    assert_eq!(terminal.ended(), 7);
    let screen = terminal.screen();
    assert!(screen.contains("stdout: so far\n") && screen.contains("timed_out: "), "{screen}");
}

#[test]
fn raw_writes_one_field_to_the_byte() {
    let program = Program::new();
    program.write("work/a.txt", "a\n\n");
    let raw = |field: &str, call: &[&str]| program.run(&[&NO_QUESTION[..], &["call", "--raw", field], call].concat());
    let shell = harmless("printf 'a\\tb'").to_string();
    for (field, call, expected) in [
        (".", ["read_file", "path=a.txt"], "a\n\n"),
        ("stdout", ["run_shell", &shell], "a\tb"),
        ("/exit_code", ["run_shell", &shell], "0"),
        ("notices", ["run_shell", &shell], "[]"),
    ] {
        let output = raw(field, &call);
        assert_eq!((succeeded(&output).as_str(), stderr(&output).as_str()), (expected, ""), "{field}");
    }
    let output = raw("stdoot", &["run_shell", &shell]);
    assert_eq!((code(&output), stdout(&output)), (2, String::new()));
    assert_eq!(
        stderr(&output),
        "usage: the call succeeded, and its result has no field `stdoot`\n\
         hint: it has `exit_code`, `stdout`, `stderr`, `notices`, `.` for all of it\n"
    );
    let output = raw("stdout", &["tmie", "{}"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (3, ""));
    assert!(stderr(&output).starts_with("unknown_tool: "), "{}", stderr(&output));
}

/// A terminal whose home has the plugin `hostile`, which may run commands.
fn with_hostile() -> Terminal {
    let program = Program::new();
    let file = install(&program, "hostile");
    succeeded(&program.run(&["plugin", "allow", &file, "--shell"]));
    Terminal::idle(program)
}

#[test]
fn a_plugin_that_counts_has_a_bar_with_its_own_numbers() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = with_hostile();
    terminal.run("$toolcrib call hostile how=count number=3000");
    // Position and message come one after the other.
    let screen = terminal.shows("3/5 pages");
    assert!(screen.contains("█"), "{screen}");
    assert_eq!(terminal.ended(), 0);
    assert!(!terminal.screen().contains("3/5"), "{}", terminal.screen());
}

#[test]
fn nothing_moves_around_a_question() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = with_hostile();
    terminal.run("$toolcrib call hostile how=count text='touch ran'");
    let screen = terminal.asked(1);
    assert!(!screen.contains("3/5"), "{screen}");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    eventually("the command ran", || terminal.has("ran"));
}

#[test]
fn tables_and_pages_fit_the_terminal_and_break_between_words() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let commands =
        ["tools", "tools run_shell", "policy explain run_shell", "plugin list", "doctor", "plugin inspect ../a.wasm"];
    for columns in [50, 80] {
        let terminal = Terminal::idle(Program::new()).columns(columns);
        let guest = std::fs::read(toolcrib_tests::guest("word_count")).expect("a guest that was built");
        terminal.program.write("a.wasm", guest);
        let all: Vec<String> =
            commands.iter().map(|command| format!("$toolcrib {command}; $toolcrib {command} >> piped")).collect();
        terminal.run(&all.join("\n"));
        assert_eq!(terminal.ended(), 0);
        let piped = std::fs::read_to_string(terminal.program.path("work/piped")).expect("text");
        let rows = terminal.rows();
        // A word that alone is longer than a row is broken by the terminal; whatever fits stays whole.
        let most = usize::from(columns) / 3;
        let shown: BTreeSet<&str> = rows.split([' ', '\n']).collect();
        let broken: Vec<&str> = piped
            .split_whitespace()
            .filter(|word| {
                word.chars().count() < most && !shown.contains(word) && !shown.contains(format!("{word}:").as_str())
            })
            .collect();
        // The headings of a table become names of fields where there is no room for columns.
        let headings = ["tool", "plugin", "capability"];
        assert!(broken.iter().all(|word| headings.contains(word)), "{broken:?} at {columns} columns:\n{rows}");
    }
}

#[test]
fn tables_in_a_pipe_are_plain_lines() {
    let program = Program::new().without_settings();
    for (arguments, rows) in
        [(&["tools"][..], 11), (&["plugin", "list"], 40), (&["policy", "explain", "run_shell"], 17)]
    {
        let text = succeeded(&program.run(arguments));
        assert_eq!(text.lines().count(), rows, "{arguments:?}: {text}");
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control() && !('\u{2500}'..='\u{257f}').contains(&c)),
            "{text}"
        );
    }
    let tools = succeeded(&program.run(&["tools"]));
    let begins: BTreeSet<Option<usize>> =
        tools.lines().map(|line| line.find("built in").or_else(|| line.find("plugin"))).collect();
    assert_eq!(begins.len(), 1, "the columns are not aligned: {tools}");
}

#[test]
fn what_lists_or_reports_has_json() {
    let program = Program::new();
    install(&program, "word_count");
    program.write("data/toolcrib/plugins/broken.wasm", "text");
    let file = program.path("data/toolcrib/plugins/word_count.wasm").display().to_string();
    let json = |arguments: &[&str]| -> Value {
        let output = program.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    assert_eq!(json(&["tools"]), json_of(&program.run(&["tools", "--format", "json"])));
    assert_eq!(json(&["tools", "time"])["name"], "time");
    let list = json(&["plugin", "list"]);
    let names: Vec<&Value> =
        list["plugins"].as_array().expect("plugins").iter().map(|plugin| &plugin["name"]).collect();
    assert!(names.contains(&&json!("word_count")) && names.contains(&&json!("time")), "{list}");
    assert_eq!(list["refused"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(json(&["plugin", "inspect", &file])["capabilities"], json!(["files"]));
    assert_eq!(json(&["policy", "explain", "time"])["clauses"][0]["verdict"], "allowed");
    let config = json(&["config", "show"]);
    assert_eq!(config["tools.shell_confirm"], json!({ "value": true, "origin": "default" }), "{config}");
    let report = json(&["doctor"]);
    let is_bad = |check: &&Value| check["verdict"] == "bad";
    assert_eq!(report["ok"], false);
    assert_eq!(report["checks"].as_array().expect("checks").iter().filter(is_bad).count(), 1, "{report}");
    assert_eq!(json(&["call", "time"])["result"]["source"], "harness");
}

#[test]
fn sessions_are_listed_as_json() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let program = Program::with_panes();
    succeeded(&program.run(&[&NO_QUESTION[..], &["call", "run_shell", &harmless("true").to_string()][..]].concat()));
    let sessions = json_of(&program.run(&["panes", "--json"]));
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions}");
    assert!(sessions[0]["session"].as_str().is_some_and(|name| name.starts_with("toolcrib-")), "{sessions}");
}

/// What a name can hold that a terminal would obey: a colour, a title, a line up, an 8-bit sequence.
const ODD: &str = "odd\u{1b}[45m\u{1b}]2;owned\u{7}\u{1b}M\u{9b}2J";

#[test]
fn no_name_of_a_file_or_directory_reaches_the_terminal_as_a_sequence() {
    let program = Program::new();
    let path = |name: String| program.path(&name).display().to_string();
    program.write(&format!("work/{ODD}/broken.wasm"), "text");
    let guest = std::fs::read(toolcrib_tests::guest("word_count")).expect("a guest that was built");
    program.write(&format!("work/{ODD}/word_count.wasm"), guest);
    program.write(&format!("work/{ODD}.toml"), "[limits]\nevents = 5\n");
    let (directory, settings) = (path(format!("work/{ODD}")), path(format!("work/{ODD}.toml")));
    let component = format!("{directory}/word_count.wasm");
    for arguments in [
        &["--plugins", &directory, "plugin", "list"][..],
        &["--plugins", &directory, "tools"],
        &["--plugins", &directory, "tools", "word_count"],
        &["--plugins", &directory, "doctor"],
        &["--plugins", &settings, "tools"],
        &["plugin", "inspect", &component],
        &["plugin", "inspect", &settings],
        &["plugin", "allow", &component, "--read", &directory],
        &["trust", &settings],
        &["trust", &directory],
        &["--config", &component, "tools"],
        &["--config", &settings, "config", "show", "--origin"],
        &["call", "read_file", ODD],
        &["call", ODD],
        &["tools", ODD],
        &["man", ODD],
        &[ODD],
        &["--engine", ODD, "doctor"],
    ] {
        // Styles of our own stay although nothing is a terminal: what it would get is seen.
        let output = program.command(arguments).env("CLICOLOR_FORCE", "1").output().expect("the program starts");
        let text = stdout(&output) + &stderr(&output);
        let foreign = ["\u{1b}[45m", "\u{1b}]", "\u{7}", "\u{1b}M", "\u{9b}"];
        assert!(!foreign.iter().any(|sequence| text.contains(sequence)), "{arguments:?}: {text:?}");
        assert!(text.contains("odd") || arguments.contains(&"read_file"), "{arguments:?} names nothing: {text:?}");
    }
}

#[test]
fn a_bare_word_is_offered_as_the_first_argument() {
    let program = Program::new();
    let hint = |call: &[&str]| program.call(call).1["error"]["hint"].clone();
    assert_eq!(hint(&["read_file", "README.md"]), "did you mean `path=README.md`?");
    assert_eq!(hint(&["read_file", "my file"]), "did you mean `'path=my file'`?");
    assert_eq!(hint(&["run_shell", "ls"]), "did you mean `command=ls`?");
    assert_eq!(hint(&["tmie", "x"]), "did you mean `time`?");
    assert_eq!(
        hint(&["read_file", "{\"path\": \"a}"]),
        "give one JSON object; this one breaks off: add the `\"`, `}` or `]` that is missing at its end"
    );
}

#[test]
fn an_argument_that_is_given_twice_is_refused() {
    let program = Program::new();
    program.write("work/b", "text");
    let output = program.run(&["call", "read_file", "path=a", "path=b"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""));
    assert_eq!(stderr(&output), "usage: `path` is given twice\nhint: omit `path=b` or the one before it\n");
    let output = program.run(&["call", "read_file", "{\"path\":\"b\"}", "offset=1"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("hint: give one JSON object, or key=value pairs"), "{}", stderr(&output));
}

#[test]
fn a_misspelt_argument_is_answered_with_the_one_that_was_meant() {
    let (code, envelope) = Program::new().call(&["read_file", "pth=a"]);
    let message = "arguments of `read_file`: unknown argument `pth` (did you mean `path`?); `path` is missing";
    assert_eq!((code, envelope["error"]["message"].as_str()), (4, Some(message)));
}
