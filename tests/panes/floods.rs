//! More output than anybody reads: all of it is there, none of it holds up another pane, and a look at it stays small.

use crate::crib::Crib;
use serde_json::json;
use toolcrib_tests::envelope::{kept, notices};
use toolcrib_tests::shell::{command, declared};

/// The history of the pane, which is more than one look hands over.
fn assert_cut(crib: &mut Crib, end: &str) {
    let answer = crib.call("capture-pane", json!({ "start": "-" }));
    let text = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(text.len() <= 256 << 10 && text.contains(end), "{} bytes: {text:.100}", text.len());
    assert!(notices(&answer).contains("only the last 262144 of "), "{}", answer["notices"]);
}

#[test]
fn a_mebibyte_without_a_line_break_is_complete() {
    let mut crib = Crib::new();
    let answer = crib.call("run_shell", command("head -c 1048576 /dev/zero | tr '\\0' x"));
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
    assert!(kept(&answer) == vec![b'x'; 1 << 20], "the kept file is not the output");
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn a_line_of_a_million_columns_is_one_line() {
    let mut crib = Crib::new();
    let answer = crib.call("run_shell", command("printf '%01000000d\\n' 7"));
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
    assert!(kept(&answer) == format!("{}7\n", "0".repeat(999_999)).as_bytes(), "the kept file is not the output");
    assert_cut(&mut crib, "0007\n");
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn a_look_after_a_flood_is_cut() {
    let mut crib = Crib::new();
    let answer = crib.call("run_shell", command("seq 1 300000"));
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
    assert_cut(&mut crib, "\n299999\n300000\n");
}

#[test]
fn while_one_pane_floods_another_answers_each_command() {
    const ROUND: usize = 588_895;
    let mut crib = Crib::new();
    crib.result("tmux-create-pane", declared(json!({ "pane": "beside" })));
    let mut flood = command("until [ -e stop ]; do seq 1 100000; echo >>begun; done");
    flood["pane"] = json!("beside");
    let id = crib.send("run_shell", flood);
    toolcrib_tests::eventually("it floods", || crib.program.path("work/begun").exists());
    for number in 0..30 {
        assert_eq!(crib.run(&format!("echo {number}; (exit {number})")), (number, format!("{number}\n")));
        let answer = crib.call("capture-pane", json!({ "pane": "beside" }));
        assert!(answer["result"].as_str().is_some_and(|text| text.len() < 64 << 10), "{answer}");
    }
    crib.program.write("work/stop", "");
    let answer = crib.answer();
    assert_eq!((&answer["id"], &answer["result"]["exit_code"]), (&json!(id), &json!(0)), "{answer}");
    let rounds = std::fs::read(crib.program.path("work/begun")).expect("a file").len();
    assert!(notices(&answer).contains(&format!("stdout has {} bytes", rounds * ROUND)), "{rounds} rounds: {answer}");
}
