//! text of a model stands where a program reads options: `-oProxyCommand=`, `--checkpoint-action=exec=`, `@file`.
//! Outcome: a command is a script, a quoted word is one word, a path is a name; none of them is an option.
//! Switched off: the `--` before the script (`backend/lib.rs`, `ProcessSpec::shell`): the first test failed.

use crate::exec::run;
use serde_json::json;
use toolcrib_tests::{Preparation, Siege};

const OPTIONS: [&str; 20] = [
    "-oProxyCommand=touch owned",
    "--upload-pack=touch owned",
    "--output=owned",
    "-e",
    "-n",
    "-c",
    "-s",
    "--",
    "-",
    "--help",
    "--version",
    "--checkpoint-action=exec=touch owned",
    "--to-command=touch owned",
    "-exec touch owned ;",
    "--rcfile owned",
    "-v",
    "+x",
    "@owned",
    "--config=owned",
    "-%s",
];

#[test]
fn a_command_that_looks_like_an_option_is_run_as_the_script_it_is() {
    let mut siege = Preparation::new().begin();
    for text in ["-x", "-e", "-c", "-s", "-i", "--", "--help", "--version", "+x", "-", "-oProxyCommand=x"] {
        let result = run(&mut siege, text);
        let stderr = result["stderr"].as_str().unwrap_or_default();
        assert!(result["exit_code"] == 127 && stderr.contains("not found"), "`{text}`: {result}");
    }
    siege.lift();
}

#[test]
fn a_quoted_word_reaches_its_program_as_it_is() {
    let mut siege = Siege::with("shell_echo").allowing("shell_echo").begin();
    for text in OPTIONS {
        let answer = siege.call("shell_echo", json!({ "text": text }));
        assert_eq!(answer["result"], text, "{answer}");
    }
    assert_eq!(run(&mut siege, "ls")["stdout"], "health.txt\n");
    siege.lift();
}

#[test]
fn a_path_that_looks_like_an_option_is_a_name() {
    let mut siege = Preparation::new().begin();
    for text in OPTIONS.into_iter().filter(|text| !text.contains('/')) {
        let written = siege.call("write_file", json!({ "path": text, "content": text }));
        assert!(written["result"].is_string(), "{written}");
        assert_eq!(siege.call("read_file", json!({ "path": text }))["result"], text);
        assert!(siege.program.path("work").join(text).is_file(), "{text}");
    }
    assert_eq!(siege.program.path("work").read_dir().expect("a directory").count(), OPTIONS.len() + 1);
    siege.lift();
}
