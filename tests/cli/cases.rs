//! `plugin test` and `plugin dev`: cases that are called for real, with the rights that they name and no others.

use std::fs;
use toolcrib_tests::outcome::{code, ended, stderr, stdout, succeeded, with_a_section_more};
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::{Program, Running, eventually, guest};

pub(crate) const PROJECT: &str = r#"
name = "word_count"
lang = "rust"
build = ["true"]
out = "word_count.wasm"
"#;
const COUNTS: &str = r#"
[[case]]
name = "counts"
tool = "word_count"
arguments = { path = "fixtures/two.txt" }
result = { lines = 1, words = 2, bytes = 9 }
"#;

/// A project whose plugin is built already.
pub(crate) fn project(cases: &str) -> Program {
    let program = Program::new().without_settings();
    program.write("work/count/toolcrib-plugin.toml", PROJECT);
    program.write("work/count/word_count.wasm", fs::read(guest("word_count")).unwrap());
    program.write("work/count/fixtures/two.txt", "two words");
    program.write("work/count/cases.toml", cases);
    program
}

fn with_grant(cases: &str) -> Program {
    project(&format!("[grants]\nfiles.read = [\"fixtures\"]\n{cases}"))
}

#[test]
fn cases_pass_with_the_rights_that_they_name() {
    let cases = format!(
        r#"{COUNTS}
[[case]]
name = "some of it"
tool = "word_count"
arguments = {{ path = "fixtures/two.txt" }}
result_has = {{ words = 2 }}

[[case]]
name = "missing file"
tool = "word_count"
arguments = {{ path = "fixtures/none" }}
error = {{ kind = "execution_failed", message_has = "no such file" }}

[[case]]
name = "beyond its rights"
tool = "word_count"
arguments = {{ path = "cases.toml" }}
error = {{ kind = "denied", hint_has = "files.read" }}
"#
    );
    let program = with_grant(&cases);
    let told = succeeded(&program.run(&["plugin", "test", "count"]));
    let lines: Vec<(&str, &str)> = told.lines().filter_map(|line| line.split_once("s] ")).collect();
    assert_eq!(lines.len(), 4, "{told}");
    assert!(lines.iter().all(|(verdict, _)| verdict.starts_with("PASS  [")), "{told}");
    assert!(told.ends_with("4 of 4 cases passed\n"), "{told}");
    // Nothing of it stays.
    assert!(!program.path("config/toolcrib/toolcrib.toml").exists());
    program.write("work/fixtures/two.txt", "two words");
    assert_eq!(
        program.call(&["--plugins", "count", "word_count", "path=fixtures/two.txt"]).1["error"]["kind"],
        "denied"
    );
}

#[test]
fn without_a_grant_it_may_do_nothing() {
    let output = project(COUNTS).run(&["plugin", "test", "count"]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("FAIL") && stdout(&output).contains("it failed: denied: "), "{}", stdout(&output));
}

#[test]
fn a_case_that_fails_shows_the_difference_and_is_blessed_on_request() {
    let comment = "# two words, and no line\n";
    let behind = "bytes = 9 } # of all\n";
    let cases = COUNTS.replace("words = 2", "words = 3").replace("bytes = 9 }\n", behind);
    let program = with_grant(&format!("{comment}{cases}"));
    let output = program.run(&["plugin", "test", "count"]);
    let told = stdout(&output);
    assert_eq!(code(&output), 1);
    assert!(told.contains("FAIL  [") && told.contains("0 of 1 cases passed"), "{told}");
    assert!(told.contains("  -   \"words\": 3,") && told.contains("  +   \"words\": 2,"), "{told}");

    let told = succeeded(&program.run(&["plugin", "test", "--bless", "count"]));
    assert!(told.contains("BLESS ["), "{told}");
    let written = fs::read_to_string(program.path("work/count/cases.toml")).unwrap();
    assert!(written.contains(comment) && written.contains("words = 2") && written.contains("# of all"), "{written}");
    assert!(succeeded(&program.run(&["plugin", "test", "count"])).contains("1 of 1 cases passed"));

    // A failure is not blessed: nobody has said that it should be one.
    let program = project(COUNTS);
    assert_eq!(code(&program.run(&["plugin", "test", "--bless", "count"])), 1);
    assert_eq!(fs::read_to_string(program.path("work/count/cases.toml")).unwrap(), COUNTS);
}

#[test]
fn what_cannot_be_a_case_is_refused_with_its_place() {
    for (cases, wanted) in [
        ("", "there is no [[case]] in it"),
        ("[[case]]\nname = \"a\"\ntool = \"b\"\n", "the case `a` must say one of `result`, `result_has` and `error`"),
        ("[[case]]\nname = \"a\"\ntool = \"b\"\nresult = 1\nerror = { kind = \"busy\" }\n", "must say one of"),
        ("[[case]]\nname = \"a\"\ntool = \"b\"\nresuld = 1\n", "unknown field `resuld`"),
        ("case = 5\n", "invalid type"),
        (
            "[grants]\nfils.read = [\"x\"]\n[[case]]\nname = \"a\"\ntool = \"b\"\nresult = 1\n",
            "`fils.read` is not a right",
        ),
        ("[grants]\nsha256 = \"00\"\n[[case]]\nname = \"a\"\ntool = \"b\"\nresult = 1\n", "`sha256` is not a right"),
        ("[grants]\n\"files.read=[] #\" = 1\n[[case]]\nname = \"a\"\ntool = \"b\"\nresult = 1\n", "is not a right"),
    ] {
        let output = project(cases).run(&["plugin", "test", "count"]);
        assert!(code(&output) == 2 && stderr(&output).contains(wanted), "{cases}: {}", stderr(&output));
    }
    let program = Program::new();
    for directory in ["nowhere", "."] {
        let output = program.run(&["plugin", "test", directory]);
        let told = stderr(&output);
        assert!(
            code(&output) == 2 && told.contains(&format!("`{directory}/toolcrib-plugin.toml` cannot be read")),
            "{told}"
        );
        assert!(told.contains("`toolcrib plugin new NAME` makes a project"), "{told}");
    }
}

/// A case calls the plugin, and nothing else that the host has.
#[test]
fn a_case_of_another_tool_is_refused() {
    for tool in ["word_kount", "run_shell"] {
        let program = project(&COUNTS.replace("tool = \"word_count\"", &format!("tool = \"{tool}\"")));
        let output = program.run(&["plugin", "test", "count"]);
        let wanted = format!("the case `counts` calls `{tool}`, which is not a tool of this plugin");
        assert!(code(&output) == 2 && stderr(&output).contains(&wanted), "{}", stderr(&output));
    }
}

/// What was installed before has the same name and other bytes. Switched off: with all plugins in the host of the cases (`plugin/cases.rs`) that
/// one was called, and this test failed.
#[test]
fn the_plugin_that_was_built_is_tested_and_not_the_one_that_is_installed() {
    let program = with_grant(COUNTS);
    let installed = with_a_section_more(fs::read(guest("word_count")).unwrap());
    program.write("data/toolcrib/plugins/word_count.wasm", installed);
    let told = succeeded(&program.run(&["plugin", "test", "count"]));
    assert!(told.contains("1 of 1 cases passed"), "{told}");
    // Nor may its name, or a tool's, be that of one that came with the program.
    program.write("work/count/toolcrib-plugin.toml", PROJECT.replace("word_count.wasm", "time.wasm"));
    program.write("work/count/time.wasm", fs::read(guest("word_count")).unwrap());
    let output = program.run(&["plugin", "test", "count"]);
    assert!(stderr(&output).contains("`time` cannot be loaded: a plugin `time` exists already"), "{}", stderr(&output));
}

/// A report is read line by line.
#[test]
fn the_name_of_a_case_is_one_line() {
    let program = project(&COUNTS.replace("name = \"counts\"", "name = \"a\\nPASS  [0.000s] forged\""));
    let told = stdout(&program.run(&["plugin", "test", "count"]));
    assert!(!told.lines().any(|line| line.starts_with("PASS")), "{told}");
}

/// Waits until a line of stdout holds this text; returns it.
fn line_with(running: &mut Running, text: &str) -> String {
    loop {
        let line =
            running.try_line(text).unwrap_or_else(|| panic!("it ended before it said `{text}`: {}", running.said()));
        if line.contains(text) {
            return line;
        }
    }
}

/// A project whose builder is a script that a test writes.
fn under_development() -> Program {
    let program = with_grant(COUNTS);
    program.write("work/count/toolcrib-plugin.toml", PROJECT.replace("[\"true\"]", "[\"sh\", \"src/build.sh\"]"));
    program.write("work/count/src/build.sh", "echo building\n");
    program
}

#[test]
fn while_it_is_developed_a_plugin_is_built_after_each_change_and_called_by_lines() {
    let program = under_development();
    let mut dev = program.start(&["plugin", "dev", "count"]);
    line_with(&mut dev, "1 of 1 cases passed");
    dev.write("{\"path\":\"fixtures/two.txt\"}\n");
    assert!(line_with(&mut dev, "result").contains("\"words\":2"));
    dev.write("word_count {\"path\":\"cases.toml\"}\n:tools\n");
    assert!(line_with(&mut dev, "word_count {").contains("\"path\": string"));

    // A build that fails leaves the plugin as it was.
    program.write("work/count/src/build.sh", "echo this is wrong; exit 3\n");
    eventually("the failed build", || dev.said().contains("the build of before is still loaded"));
    assert!(dev.said().contains("this is wrong") && dev.said().contains("exits with 3"), "{}", dev.said());
    dev.write("{\"path\":\"fixtures/two.txt\"}\n");
    assert!(line_with(&mut dev, "result").contains("\"words\":2"));

    // So does a file of cases that cannot be read; what is right again is taken.
    program.write("work/count/cases.toml", "[grants]\nfiles.read = [\"fixtures\"]\n");
    program.write("work/count/src/build.sh", "true\n");
    eventually("the faulty cases", || dev.said().contains("there is no [[case]] in it"));
    program.write(
        "work/count/cases.toml",
        format!("[grants]\nfiles.read = [\"fixtures\"]\n{COUNTS}{}", COUNTS.replace("counts", "again")),
    );
    line_with(&mut dev, "2 of 2 cases passed");

    dev.write("not JSON\n:nothing\n:help\n");
    line_with(&mut dev, ":quit");
    eventually("what it does not know", || dev.said().contains("`:nothing` is not known"));
    let errors = dev.said();
    // The call beyond its rights, above.
    assert!(errors.contains("is not JSON") && errors.contains("denied: "), "{errors}");
    dev.close();
    assert_eq!(ended(&mut dev), Some(0));
    assert!(!program.path("config/toolcrib/toolcrib.toml").exists());
}

/// What a build writes is no reason for the next one: its `out`, whose bytes differ each time, and other files, whose bytes do not.
#[test]
fn a_build_is_not_built_again_for_what_it_has_written() {
    let program = under_development();
    let other = with_a_section_more(fs::read(guest("word_count")).unwrap());
    program.write("other.wasm", other);
    program.write("first.wasm", fs::read(guest("word_count")).unwrap());
    let script = "echo built >> ../../builds; echo same > generated.txt; if cmp -s ../../first.wasm word_count.wasm; then cp ../../other.wasm word_count.wasm; else cp ../../first.wasm word_count.wasm; fi\n";
    program.write("work/count/src/build.sh", script);
    let builds = || fs::read_to_string(program.path("builds")).unwrap_or_default().lines().count();
    let mut dev = program.start(&["plugin", "dev", "count"]);
    line_with(&mut dev, "1 of 1 cases passed");
    // The file that the first build made is new, so there may be a second; then there is nothing new.
    let mut before = 0;
    while before != builds() {
        before = builds();
        assert!(before <= 2, "{before} builds");
        std::thread::sleep(std::time::Duration::from_millis(1_500));
    }
    program.write("work/count/src/lib.rs", "// a change");
    eventually("a build for it", || builds() == before + 1);
    dev.close();
    assert_eq!(ended(&mut dev), Some(0));
    assert_eq!(builds(), before + 1);
}

/// What builds, and what watches it, ends with it.
#[test]
fn an_interrupt_ends_it_and_its_builder() {
    let program = under_development();
    let seconds = unique_seconds();
    program.write("work/count/src/build.sh", format!("sleep {seconds}\n"));
    let mut dev = program.start(&["plugin", "dev", "count"]);
    eventually("the builder", || !sleeping(&seconds).is_empty());
    dev.signal("INT");
    assert!(ended(&mut dev).is_some());
    assert_gone(&seconds);
}

/// Capabilities answer as the case says, in the form that `cargo test` with the SDK has too; nothing is done, and no right is needed.
#[test]
fn capabilities_are_played() {
    let cases = r#"
[[case]]
name = "as it is played"
tool = "word_count"
arguments = { path = "none.txt" }
host = [{ call = "files.read", with = { path = "none.txt" }, gives = { text = "one two\nthree\n", bytes = 14, truncated = false } }]
result = { lines = 2, words = 3, bytes = 14 }

[[case]]
name = "it fails so"
tool = "word_count"
arguments = { path = "none.txt" }
host = [{ call = "files.read", fails = { kind = "unavailable", message = "the disk is gone", hint = "look behind it" } }]
error = { kind = "unavailable", message_has = "the disk is gone", hint_has = "behind it" }
"#;
    let program = project(cases);
    let told = succeeded(&program.run(&["plugin", "test", "count"]));
    assert!(told.ends_with("2 of 2 cases passed\n"), "{told}");
}

#[test]
fn what_was_called_and_not_played_and_the_other_way_round_fails_the_case() {
    let case = |host: &str| {
        let case = "[[case]]\nname = \"x\"\ntool = \"word_count\"\narguments = { path = \"a.txt\" }\nresult_has = {}\n";
        let output = project(&format!("{case}host = [{host}]\n")).run(&["plugin", "test", "count"]);
        assert_eq!(code(&output), 1, "{host}");
        stdout(&output)
    };
    let told = case("");
    assert!(
        told.contains("`files.read` was called, and not played; in `host`: { call = \"files.read\", with = {"),
        "{told}"
    );
    // What it prints can be put there, and only has to be filled in.
    let line = told.lines().find_map(|line| line.split_once("in `host`: ")).expect("a line").1;
    let case_of = |host: &str| {
        format!(
            "[[case]]\nname = \"x\"\ntool = \"word_count\"\narguments = {{ path = \"a.txt\" }}\nresult_has = {{}}\nhost = [{host}]\n"
        )
    };
    succeeded(&project(&case_of(line)).run(&["plugin", "test", "count"]));
    let other =
        r#"{ call = "files.read", with = { path = "b.txt" }, gives = { text = "", bytes = 0, truncated = false } }"#;
    let told = case(other);
    assert!(
        told.contains("was called, and not played") && told.contains("`files.read` was played, and not called so"),
        "{told}"
    );
    let told = case(r#"{ call = "files.read", gives = { text = 1 } }"#);
    assert!(told.contains("does not fit: `text`"), "{told}");
}

/// What a resource is told goes with the call that ends it.
#[test]
fn a_request_is_played_with_all_that_it_was_told() {
    let program = Program::new();
    program.write("work/ask/toolcrib-plugin.toml", PROJECT.replace("word_count", "requester"));
    program.write("work/ask/requester.wasm", fs::read(guest("requester")).unwrap());
    let case = |with: &str| {
        program.write(
            "work/ask/cases.toml",
            format!(
                r#"
[[case]]
name = "an answer"
tool = "request"
arguments = {{ method = "POST", url = "https://api.example.com/x", headers = [["accept", "text/plain"]], body = "hello" }}
host = [{{ call = "http.send", with = {{ {with} }}, gives = {{ status = 201, headers = [["a", "b"]], url = "", body = "aGk=", truncated = false }} }}]
result_has = {{ status = 201, body = "hi" }}
"#
            ),
        );
        program.run(&["plugin", "test", "ask"])
    };
    let told = case(
        r#"method = "POST", url = "https://api.example.com/x", headers = [["accept", "text/plain"]], body = "aGVsbG8=""#,
    );
    assert!(succeeded(&told).ends_with("1 of 1 cases passed\n"));
    let told = case(r#"method = "GET""#);
    assert!(stdout(&told).contains("`http.send` was called, and not played"), "{}", stdout(&told));
}

#[test]
fn cases_that_mean_nothing_are_refused() {
    for (case, wanted) in [
        ("error = { kind = \"no_such_kind\" }", "which is no kind of failure"),
        (
            "result = 1\nhost = [{ call = \"a.b\", gives = 1, fails = { kind = \"busy\", message = \"x\" } }]",
            "says both",
        ),
        ("result = 1\nhost = [{ cal = \"a.b\" }]", "cal"),
    ] {
        let case = format!("[[case]]\nname = \"x\"\ntool = \"word_count\"\n{case}\n");
        let output = project(&case).run(&["plugin", "test", "count"]);
        assert!(code(&output) != 0 && stderr(&output).contains(wanted), "{case}: {}", stderr(&output));
    }
}

/// Options name files from where `toolcrib` was started, and not from the project.
#[test]
fn files_of_options_are_those_of_the_callers_directory() {
    let program = with_grant(COUNTS);
    program.write("work/own.toml", "[limits]\nguest_cpu_ms = 4000\n");
    succeeded(&program.run(&["plugin", "test", "count", "--config", "own.toml"]));
    program.write("work/policy.toml", "[tools]\nfiles_enabled = false\n");
    let output = program.run(&["plugin", "test", "count", "--policy", "policy.toml"]);
    assert!(stdout(&output).contains("it failed: denied"), "{}{}", stdout(&output), stderr(&output));
}
