//! `toolcrib toolset import`: an Agentfile of OpenOtters as settings. The numbers are those of the cases of agents whose tools are programs.

use serde_json::{Value, json};
use std::fs;
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{NO_QUESTION, code, json_of, stderr, stdout, succeeded};

const AGENTFILE: &str = r#"# syntax=openotters/agentfile:1
FROM scratch

RUNTIME example.com/runtime:latest
ARG SIZE=small
MODEL example/${SIZE}
NAME counter
LABEL description="Counts"

CONTEXT SOUL "How it speaks" <<EOF
You count what you are shown.
EOF
CONTEXT RULES file://rules/all.md

ENV COUNT_MODE="very exact" "How exact it counts"
CONFIG max-tokens=1024 "Most that it says"

BIN wc example.com/tools/wc:latest "Counts lines, words and bytes" <<EOF
Give it text, and `-l` for its lines.
EOF
BIN no-such-program example.com/tools/none:latest "Does nothing"
BIN time example.com/tools/time:latest
ADD cities.json /data/cities.json "Known cities"

CAPABILITY context-list
CAPABILITY context_show
CAPABILITY job-wait
"#;

fn program(agentfile: &str) -> Program {
    let program = Program::new();
    program.write("work/agent/Agentfile", agentfile);
    program.write("work/agent/rules/all.md", "Be exact.\n");
    program
}

/// Cases 67 and 68: programs, variables, contexts and capabilities become settings that can be used; what does not is named.
#[test]
fn an_agentfile_becomes_settings_that_can_be_used() {
    let program = program(AGENTFILE);
    let output = program.run(&["toolset", "import", "agent/Agentfile", "--files", "texts"]);
    let settings = succeeded(&output);
    for left_out in [
        "RUNTIME example.com/runtime:latest: the embedder's",
        "MODEL example/small: the embedder's",
        "CONFIG max-tokens=1024 Most that it says: the embedder's",
        "LABEL description=Counts: says nothing of tools",
        "ENV COUNT_MODE: its value; start Toolcrib with it",
        "BIN time: Toolcrib has a tool of that name",
        "ADD cities.json /data/cities.json: ",
    ] {
        assert!(settings.contains(&format!("# Left out: {left_out}")), "{left_out}: {settings}");
    }
    assert!(!settings.contains("very exact"), "a value: {settings}");
    assert_eq!(fs::read_to_string(program.path("work/texts/SOUL.md")).unwrap(), "You count what you are shown.\n");
    assert!(stderr(&output).contains("texts/wc.usage.md"), "{}", stderr(&output));
    program.write("config/toolcrib/toolcrib.toml", &settings);
    // A program that is not there yet is refused by itself.
    let listed = program.run(&["tools", "--toolset", "counter", "--json"]);
    assert!(stderr(&listed).contains("[program.no-such-program] says no `sha256`"), "{}", stderr(&listed));
    let tools = json_of(&listed);
    let names: Vec<_> = tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["context_list", "context_show", "job_wait", "time", "wc"]);
    let wc = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "wc").unwrap();
    let described = wc["description"].as_str().unwrap();
    assert!(
        described.starts_with("Counts lines, words and bytes\n") && described.ends_with("`-l` for its lines."),
        "{wc}"
    );
    let call = |id: u64, tool: &str, arguments: Value| json!({ "id": id, "session": "s1", "tool": tool, "arguments": arguments });
    let mut running = program.start(&[&NO_QUESTION[..], &["run"]].concat());
    let mut ask = |line: Value| {
        running.write(format!("{line}\n"));
        running.line()["result"].to_string()
    };
    assert!(ask(json!({ "id": 1, "open": { "toolset": "counter" } })).contains("s1"));
    let counted = ask(call(2, "wc", json!({ "args": ["-l"], "stdin": "a\nb\n" })));
    assert!(counted.contains(r#""stdout":"2\n""#), "{counted}");
    let contexts = ask(call(3, "context_list", json!({})));
    assert!(contexts.contains("How it speaks") && contexts.contains("RULES"), "{contexts}");
    assert!(ask(call(4, "context_show", json!({ "name": "RULES" }))).contains("Be exact."));
    // A capability is a tool of its own, with whatever else there is.
    running.write(format!("{}\n", call(5, "job_wait", json!({ "job_id": "0" }))));
    assert_eq!(running.line()["error"]["message"], "there is no job `0`");
    // Once more changes nothing, and what a person has changed is not written over.
    let again = program.run(&["toolset", "import", "agent/Agentfile", "--files", "texts"]);
    assert!(!stderr(&again).contains("wrote"), "{}", stderr(&again));
    program.write("work/texts/SOUL.md", "My own.\n");
    let refused = program.run(&["toolset", "import", "agent/Agentfile", "--files", "texts"]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("SOUL.md` cannot be written"), "{}", stderr(&refused));
    // Without a directory texts are left out, and nothing is written.
    let without = succeeded(&program.run(&["toolset", "import", "agent/Agentfile"]));
    assert!(without.contains("# Left out: the text of CONTEXT SOUL: `--files DIR` writes it to a file"), "{without}");
}

#[test]
fn what_an_agentfile_cannot_mean_is_named_with_its_line() {
    for (text, said) in [
        ("FROM scratch\nCAPABILITY job_wiat\n", ":2: there is no capability `job_wiat`, did you mean `job_wait`?"),
        // Tools that are there, and nothing that an agent's runtime hands out.
        ("CAPABILITY exec\n", ":1: there is no capability `exec`"),
        ("CAPABILITY secret_set\n", ":1: there is no capability `secret_set`"),
        ("ENV OPENAI_API_KEY=x\n", ":1: `OPENAI_API_KEY` is not an ENV for an agent"),
        ("ENV PATH=/bin\n", ":1: `PATH` is not an ENV for an agent"),
        ("ENV HOME=/x\n", ":1: `HOME` is not an ENV for an agent"),
        ("ENV lower=x\n", ":1: `lower` is not a name of an ENV"),
        ("ENV X\n", ":1: an ENV has the form `KEY=value`"),
        ("BIN jq\n", ":1: `BIN` has too few words, or too many"),
        ("BIN jq image more\n", ":1: `more` is not expected here: a description is in quotes"),
        ("BIN ../jq image\n", ":1: `../jq` cannot be the name of a tool"),
        ("NAME a b\n", ":1: `NAME` has too few words, or too many"),
        ("NAME ../a\n", ":1: `../a` cannot be the name of a toolset"),
        ("CONTEXT ../x <<E\nE\n", ":1: `../x` cannot be the name of a context"),
        ("CONTEXT X\n", ":1: `X` needs a `file://` or a text"),
        ("CONTEXT X <<E\ntext\n", ":1: its text has no end"),
        ("\nRUN apt install\n", ":2: `RUN` is no instruction of an Agentfile"),
    ] {
        let program = program(text);
        let output = program.run(&["toolset", "import", "agent/Agentfile"]);
        assert!(code(&output) == 2 && stderr(&output).contains(said), "{text:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    let output = Program::new().run(&["toolset", "import", "missing"]);
    assert!(code(&output) == 2 && stderr(&output).contains("`missing` cannot be read"), "{}", stderr(&output));
}

/// The names of an Agentfile lead to no file outside the directory, and what a screen obeys is not printed.
#[test]
fn an_agentfile_of_somebody_else_writes_nowhere_else() {
    let text = "NAME a\nCONTEXT SOUL \"x\u{1b}[31m\" <<E\ntext\nE\nMODEL a\u{1b}]0;b\u{7}\n";
    let program = program(text);
    fs::create_dir(program.path("work/texts")).unwrap();
    program.write("work/target", "mine\n");
    std::os::unix::fs::symlink(program.path("work/target"), program.path("work/texts/SOUL.md")).unwrap();
    let output = program.run(&["toolset", "import", "agent/Agentfile", "--files", "texts"]);
    assert_eq!(code(&output), 2);
    assert_eq!(fs::read_to_string(program.path("work/target")).unwrap(), "mine\n");
    let shown = succeeded(&program.run(&["toolset", "import", "agent/Agentfile", "--files", "others"]));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
}
