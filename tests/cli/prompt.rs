//! The question at the terminal, with tmux as the terminal: what it shows, and what answers it.
#![expect(clippy::disallowed_methods, reason = "a test makes a pipe with a name")]

use serde_json::json;
use std::fs;
use std::process::Command;
use toolcrib_tests::client::request;
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::{declared, harmless};
use toolcrib_tests::{MORE, Program, QUESTION, Terminal, eventually, skip};

#[test]
fn the_question_shows_what_where_who_and_why() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = harmless("touch ran\necho 'second line'");
    arguments["why"] = json!("to see whether it works");
    arguments["risk"] = json!("medium");
    arguments["mutation"] = json!(true);
    let terminal = Terminal::new(&Terminal::call(&arguments));
    let screen = terminal.asked(1);
    for text in [
        "run_shell (built in) wants to run on local, confined with named hosts only; the model says: \"medium risk, changes something\"\n",
        "    in │ /",
        "/work\n   why │ to see whether it works\n   run │ touch ran\n     2 │ echo 'second line'\n  cell │ writes below /",
        "run_shell (built in) would run on local, confined with named hosts only: 2 lines, 28 bytes\nAllow?",
        "Allow? [y]es, [N]o, [a]lways or never, by a rule, [s]ession: all commands of this plugin until Toolcrib ends >",
    ] {
        assert!(screen.contains(text), "{text:?} is not in:\n{screen}");
    }
    assert!(!terminal.has("ran"));
}

#[test]
fn the_question_shows_the_pane_and_how_long_keys_wait() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::with_panes());
    let keys = declared(json!({ "literal_text": "touch ran", "enter": true, "delay": "6s" }));
    terminal.run(&format!("$toolcrib call send-keys '{keys}' > out"));
    let screen = terminal.asked(1);
    for text in [
        "send-keys (built in) wants to run on local after 6s, confined with named hosts only; the model says: \"low risk, changes something\"\n",
        "  pane │ shared of toolcrib-",
        "    in │ /",
        "send-keys (built in) would run on local after 6s, confined with named hosts only: 1 line, ",
    ] {
        assert!(screen.contains(text), "{text:?} is not in:\n{screen}");
    }
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
}

/// Tools type into managed panes, so nothing that is typed there is a person's word; whatever variables say of the terminal.
#[test]
fn a_managed_pane_is_no_terminal_to_ask_on() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for flag in ["", "--no-tmux"] {
        let program = Program::with_panes().unconfined();
        let (code, answer) = program.call(&["--yes", "run_shell", &harmless("true").to_string()]);
        assert_eq!(code, 0, "{answer}");
        let script = format!(
            "{}\n$toolcrib {flag} call run_shell '{}' > out\necho $? > code.part; mv code.part code\n",
            program.shell_environment(),
            harmless("touch ran")
        );
        program.write("inside", script);
        let pane = program.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).trim().to_owned();
        let _ =
            program.tmux(&["send-keys", "-t", &pane, &format!("sh '{}'", program.path("inside").display()), "Enter"]);
        eventually("the call in the pane ends", || program.path("work/code").exists());
        let out = fs::read_to_string(program.path("work/out")).unwrap();
        assert!(
            out.contains("cannot be asked for here: this is a managed pane") && out.contains("denied"),
            "{flag}: {out}"
        );
        assert!(!program.path("work/ran").exists(), "{flag}");
    }
}

#[test]
fn yes_runs_the_command() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for answer in ["y", "yes", "Y"] {
        let terminal = Terminal::new(&Terminal::call(&harmless("touch ran; echo hello")));
        terminal.asked(1);
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), 0);
        assert!(terminal.has("ran"));
        assert_eq!(terminal.out()[0]["result"]["stdout"], "hello\n");
    }
}

#[test]
fn no_an_empty_line_and_the_end_of_input_refuse() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for keys in [&["n", "Enter"][..], &["N", "Enter"], &["no", "Enter"], &["Enter"], &["C-d"]] {
        let terminal = Terminal::new(&Terminal::call(&harmless("touch ran")));
        terminal.asked(1);
        terminal.press(keys);
        assert_eq!(terminal.ended(), 5, "{keys:?}");
        assert!(!terminal.has("ran"), "{keys:?}");
        assert_eq!(terminal.out()[0]["error"]["message"], "Command execution denied by user.");
    }
}

#[test]
fn what_is_no_answer_is_asked_again() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&Terminal::call(&harmless("touch ran")));
    terminal.asked(1);
    terminal.press(&["yess", "Enter"]);
    terminal.asked(2);
    assert!(!terminal.has("ran"));
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("ran"));
}

/// A command of so many lines, of which each says its number.
fn long_command(lines: usize) -> String {
    (0..lines).map(|number| format!(": line {number};\n")).collect::<String>() + "touch ran"
}

#[test]
fn a_yes_counts_once_the_last_page_was_shown() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::sized((80, 24), &Terminal::call(&harmless(&long_command(50))));
    eventually("the first page stands there", || terminal.screen().contains(MORE));
    let mut lines = Vec::new();
    let mut note = |screen: &str| {
        lines.extend((0..50).filter(|number| screen.contains(&format!(": line {number};"))));
        assert!(!terminal.has("ran"));
    };
    note(&terminal.screen());
    assert!(terminal.screen().contains("run │ : line 0;"), "{}", terminal.screen());
    for answer in ["y", "s", "yes"] {
        let before = terminal.history().matches(MORE).count();
        terminal.press(&[answer, "Enter"]);
        eventually("the page is shown again", || terminal.history().matches(MORE).count() > before);
        assert!(!terminal.history().contains(QUESTION) && !terminal.has("ran"));
    }
    while !terminal.screen().contains(QUESTION) {
        // Each page ends with one of these; the screen alone also changes by the line break that was typed.
        let pages =
            || [MORE, "Toolcrib ends >"].map(|end| terminal.history().matches(end).count()).iter().sum::<usize>();
        let before = pages();
        terminal.press(&["Enter"]);
        eventually("the next page stands there", || pages() > before);
        note(&terminal.screen());
    }
    lines.dedup();
    assert!((0..50).all(|number| lines.contains(&number)), "{lines:?}");
    let said = terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("would run on local, confined with named hosts only: 51 lines, "), "{said}");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("ran"));
}

#[test]
fn what_was_typed_before_the_last_page_does_not_answer_it() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::sized((80, 24), &Terminal::call(&harmless(&long_command(20))));
    eventually("the first page stands there", || terminal.screen().contains(MORE));
    terminal.press(&["Enter", "y", "Enter", "y", "Enter"]);
    terminal.asked(1);
    assert!(!terminal.has("ran"));
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
}

#[test]
fn a_no_counts_on_every_page() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::sized((80, 24), &Terminal::call(&harmless(&long_command(50))));
    eventually("the first page stands there", || terminal.screen().contains(MORE));
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
    assert_eq!(terminal.out()[0]["error"]["message"], "Command execution denied by user.");
}

#[test]
fn a_page_in_a_window_of_another_size_is_shown_again_before_a_yes_counts() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::sized((80, 24), &Terminal::call(&harmless(&long_command(10))));
    terminal.asked(1);
    terminal.resize(50, 12);
    terminal.press(&["y", "Enter"]);
    eventually("it is laid out anew", || terminal.screen().trim_end().ends_with(MORE));
    assert!(!terminal.has("ran"));
    terminal.resize(90, 40);
    terminal.press(&["Enter"]);
    eventually("it is laid out once more", || terminal.screen().trim_end().ends_with("Toolcrib ends >"));
    assert!(!terminal.has("ran"));
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("ran"));
}

#[test]
fn a_terminal_that_is_too_small_is_nobody_to_ask() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::sized((10, 24), &Terminal::call(&harmless("touch ran")));
    assert_eq!(terminal.ended(), 5);
    let error = terminal.out().remove(0)["error"].clone();
    assert!(
        error["message"].as_str().is_some_and(|text| text.ends_with("too small to show it: 10 columns, 24 rows")),
        "{error}"
    );
    assert_eq!(error["hint"], "make the terminal larger, then call again");
    assert!(!terminal.has("ran"));
}

#[test]
fn stdin_carries_requests_while_the_terminal_answers() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    let lines = ["one", "two"].map(|name| request(name, "run_shell", &harmless(&format!("touch {name}"))));
    terminal.program.write("work/in", lines.concat());
    terminal.run("$toolcrib run < in > out");
    let first = if terminal.asked(1).contains("run │ touch one") { "one" } else { "two" };
    terminal.press(&["y", "Enter"]);
    terminal.asked(2);
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let out = terminal.out();
    assert_eq!(out.len(), 2);
    for answer in out {
        let ran = answer["id"] == first;
        assert_eq!(
            (answer["result"].is_object(), terminal.has(answer["id"].as_str().unwrap())),
            (ran, ran),
            "{answer}"
        );
    }
}

#[test]
fn yes_for_the_session_is_asked_once() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    assert!(Command::new("mkfifo").arg(terminal.program.path("work/in")).status().unwrap().success());
    terminal.run("$toolcrib run < in > out");
    let mut input = fs::File::options().write(true).open(terminal.program.path("work/in")).unwrap();
    let mut send = |id: u64| {
        use std::io::Write;
        input.write_all(request(id, "run_shell", &harmless(&format!("touch ran{id}"))).as_bytes()).unwrap();
    };
    send(1);
    terminal.asked(1);
    terminal.press(&["s", "Enter"]);
    eventually("the first command ran", || terminal.has("ran1"));
    (2..5).for_each(&mut send);
    eventually("the others ran", || (2..5).all(|id| terminal.has(&format!("ran{id}"))));
    terminal.asked(1);
    drop(input);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.out().len() == 4 && terminal.out().iter().all(|answer| answer["result"]["exit_code"] == 0));
}

/// Calls that already wait when the person says yes for the session are meant too.
#[test]
fn yes_for_the_session_answers_the_questions_that_wait() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    let lines: String = (0..3).map(|id| request(id, "run_shell", &harmless(&format!("touch ran{id}")))).collect();
    terminal.program.write("work/in", lines);
    terminal.run("$toolcrib run < in > out");
    terminal.asked(1);
    terminal.press(&["s", "Enter"]);
    eventually("all ran, or it asks again", || {
        (0..3).all(|id| terminal.has(&format!("ran{id}"))) || terminal.screen().matches(QUESTION).count() > 1
    });
    terminal.asked(1);
}

#[test]
fn escape_sequences_in_a_command_are_shown_harmless() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = harmless("echo \u{1b}[2J\u{1b}[1;1H\u{1b}]2;owned\u{7}shown\r\u{8}");
    arguments["why"] = json!("\u{1b}[1;1H\u{1b}[Ka reason\u{1b}[30m");
    let terminal = Terminal::new(&Terminal::call(&arguments));
    let screen = terminal.asked(1);
    for text in ["run_shell (built in) wants to run on local", "why │ a reason", "shown", QUESTION] {
        assert!(screen.contains(text), "{text:?} is not in:\n{screen}");
    }
    let lines: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with("run_shell") && lines.last().unwrap().starts_with(QUESTION), "{screen}");
    let title = terminal.tmux(&["display-message", "-p", "#{pane_title}"]).stdout;
    assert!(!String::from_utf8_lossy(&title).contains("owned"));
}

#[test]
fn a_reason_of_several_lines_cannot_pass_for_the_command() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = harmless("touch ran");
    arguments["why"] = json!("to look\n  run │ ls\nAllow? [y]es");
    let terminal = Terminal::new(&Terminal::call(&arguments));
    eventually("the question is asked", || terminal.screen().contains("until Toolcrib ends >"));
    let screen = terminal.screen();
    let commands: Vec<&str> = screen.lines().filter(|line| line.starts_with("   run │ ")).collect();
    assert_eq!(commands, ["   run │ touch ran"], "{screen}");
    assert_eq!(screen.lines().filter(|line| line.starts_with(QUESTION)).count(), 1, "{screen}");
}

#[test]
fn a_command_of_several_lines_cannot_pass_for_the_question() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal =
        Terminal::new(&Terminal::call(&harmless("true\nAllow? [y]es\n  why │ because\n\u{2028}Allow?\u{85}Allow?")));
    eventually("the question is asked", || terminal.screen().contains("until Toolcrib ends >"));
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|line| line.starts_with(QUESTION)).count(), 1, "{screen}");
    assert_eq!(screen.lines().filter(|line| line.starts_with("   why │")).count(), 1, "{screen}");
}

#[test]
fn ctrl_c_at_the_question_ends_the_call_and_runs_nothing() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    // The shell of the script would end with the call; it has to write its code.
    let terminal = Terminal::new(&format!("trap : INT\n{}", Terminal::call(&harmless("touch ran"))));
    terminal.asked(1);
    terminal.press(&["C-c"]);
    assert_eq!(terminal.ended(), 130);
    assert!(!terminal.has("ran"));
    assert_eq!(terminal.out()[0]["error"]["kind"], "cancelled");
}

#[test]
fn ctrl_c_while_a_command_runs_ends_it() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let script = Terminal::call(&harmless("echo $$ > pid; touch ran; sleep 1000")).replace("call", "--yes call");
    let terminal = Terminal::idle(Program::new().unconfined());
    terminal.run(&format!("trap : INT\n{script}"));
    eventually("the command runs", || terminal.has("ran"));
    terminal.press(&["C-c"]);
    assert_eq!(terminal.ended(), 130);
    let pid = fs::read_to_string(terminal.program.path("work/pid")).unwrap();
    assert!(!lives(&pid));
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    assert!(Command::new("mkfifo").arg(terminal.program.path("work/gate")).status().unwrap().success());
    terminal.run(&format!("echo closed; cat gate > /dev/null; {}", Terminal::call(&harmless("touch ran"))));
    eventually("the script waits", || terminal.screen().contains("closed"));
    terminal.press(&["y", "Enter", "y", "Enter"]);
    eventually("the terminal has the keys", || terminal.screen().matches("y\n").count() == 2);
    fs::write(terminal.program.path("work/gate"), "open").unwrap();
    terminal.asked(1);
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
}

#[test]
fn the_terminal_is_left_as_it_was() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let script = format!(
        "stty -a > before; {}; stty -a > after; read line; test \"$line\" = typed",
        Terminal::call(&harmless("true"))
    );
    let terminal = Terminal::new(&script);
    terminal.asked(1);
    terminal.press(&["y", "Enter"]);
    eventually("the call has ended", || terminal.has("after"));
    terminal.press(&["typed", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let mode = |name: &str| fs::read_to_string(terminal.program.path("work").join(name)).unwrap();
    assert_eq!(mode("before"), mode("after"));
}

#[test]
fn a_question_that_nobody_answers_ends_by_itself() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let script = Terminal::call(&harmless("touch ran")).replace("call", "--set approval.timeout_ms=300 call");
    let terminal = Terminal::new(&script);
    assert_eq!(terminal.ended(), 5);
    assert!(terminal.screen().contains(QUESTION) && !terminal.has("ran"));
    assert!(terminal.out()[0]["error"]["message"].as_str().unwrap().starts_with("nobody answered within "));
}

#[test]
fn a_plugin_of_others_is_named_as_such() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    toolcrib_tests::outcome::install(&terminal.program, "shell_echo");
    terminal.run("$toolcrib plugin allow shell_echo --shell > allowed\n$toolcrib call shell_echo text=hello > out");
    let screen = terminal.asked(1);
    assert!(
        screen.contains(
            "a third-party plugin wants to run on local, confined with named hosts only; the model says: \"low risk\"\n"
        ),
        "{screen}"
    );
    assert!(screen.contains("  from │ shell_echo (third party)\n"), "{screen}");
    assert!(screen.contains("   run │ printf %s 'hello'\n"), "{screen}");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert_eq!(terminal.out()[0]["result"], "hello");
}

#[test]
fn other_bytes_are_allowed_what_the_ones_before_were_by_an_answer_to_what_is_shown() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for (answer, expected) in [("y", 0), ("n", 2)] {
        let terminal = Terminal::idle(Program::new());
        let file = toolcrib_tests::outcome::install(&terminal.program, "word_count");
        toolcrib_tests::outcome::succeeded(&terminal.program.run(&["plugin", "allow", &file, "--read", "."]));
        toolcrib_tests::outcome::change(&file);
        terminal.run("$toolcrib plugin allow word_count > allowed");
        eventually("the question is asked", || terminal.screen().contains("Keep what was allowed?"));
        let screen = terminal.screen();
        let work = terminal.program.path("work").display().to_string();
        assert!(screen.contains("the bytes of `word_count` have changed since you allowed it"), "{screen}");
        assert!(screen.contains(&format!("  files.read = [\"{work}\"]")), "{screen}");
        assert!(screen.contains("It now asks to read files."), "{screen}");
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), expected, "{answer}");
    }
}

#[test]
fn what_was_typed_before_a_plugin_is_asked_about_does_not_answer() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::idle(Program::new());
    let file = toolcrib_tests::outcome::install(&terminal.program, "word_count");
    toolcrib_tests::outcome::succeeded(&terminal.program.run(&["plugin", "allow", &file, "--read", "."]));
    toolcrib_tests::outcome::change(&file);
    assert!(Command::new("mkfifo").arg(terminal.program.path("work/gate")).status().unwrap().success());
    terminal.run("echo closed; cat gate > /dev/null; $toolcrib plugin allow word_count > allowed");
    terminal.shows("closed");
    terminal.press(&["y", "Enter"]);
    eventually("the terminal has the keys", || terminal.screen().contains("y\n"));
    fs::write(terminal.program.path("work/gate"), "").unwrap();
    terminal.shows("Keep what was allowed?");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 2);
}

#[test]
fn compiling_shows_on_a_terminal_how_far_it_is_and_only_the_first_time() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    // What the terminal gets, since a line that is cleared is gone from the screen.
    let terminal = Terminal::idle(Program::cold());
    let seen = terminal.program.path("seen");
    let call = "$toolcrib call time > out";
    terminal.run(&format!("echo waits; read go; {call}; echo first; {call}; echo second"));
    terminal.shows("waits");
    assert!(terminal.tmux(&["pipe-pane", &format!("cat >> '{}'", seen.display())]).status.success());
    terminal.press(&["Enter"]);
    assert_eq!(terminal.ended(), 0);
    eventually("both calls are seen", || fs::read_to_string(&seen).is_ok_and(|seen| seen.contains("second")));
    let seen = fs::read_to_string(seen).unwrap();
    let (first, second) = seen.split_once("first").expect("two calls");
    assert!(first.contains("compiling plugins, once: 0 of 1"), "{first:?}");
    assert!(!second.contains("compiling"), "{second:?}");
}

/// Should a terminal take a character for wider than it was counted, it breaks no row all the same.
#[test]
fn rows_of_foreign_text_are_written_while_the_terminal_breaks_none() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let call = Terminal::call(&harmless("touch ran"));
    let terminal = Terminal::new(&format!("until [ -e ../go ]; do sleep 0.1; done\n{call}"));
    let raw = terminal.program.path("raw");
    assert!(terminal.tmux(&["pipe-pane", &format!("cat > '{}'", raw.display())]).status.success());
    terminal.program.write("go", "");
    terminal.asked(1);
    let written = || fs::read_to_string(&raw).unwrap_or_default();
    eventually("the question is on record", || written().contains("Allow?"));
    let text = written();
    let [off, foreign, on, asks] = ["\x1b[?7l", "touch ran", "\x1b[?7h", "Allow?"].map(|part| text.find(part));
    assert!(off.is_some() && off < foreign && foreign < on && on < asks, "{text:?}");
}

#[test]
fn escape_sequences_and_line_breaks_in_a_directory_are_shown_harmless() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let call = Terminal::call(&harmless("touch ran"));
    let terminal = Terminal::new(&format!("d=$(printf 'x\\033[2Jy\\nz'); mkdir \"$d\"; cd \"$d\"\n{call}"));
    let screen = terminal.asked(1);
    assert!(screen.contains(r"/work/x␛[2Jy\u{a}z"), "{screen}");
}
