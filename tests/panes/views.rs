//! What `capture-pane` can be asked for.

use crate::crib::Crib;
use serde_json::{Value, json};
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::skip;

fn look(crib: &mut Crib, arguments: Value) -> String {
    let shown = crib.result("capture-pane", arguments);
    shown.as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
}

#[test]
fn a_part_of_the_screen_and_of_the_history_can_be_named() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("seq 1 200").0, 0);
    let history = look(&mut crib, json!({ "start": "-5", "end": "-1" }));
    let first: u32 = history.lines().next().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{history}"));
    let expected: Vec<String> = (first..first + 5).map(|number| number.to_string()).collect();
    assert_eq!(history.lines().collect::<Vec<_>>(), expected);
    assert_eq!(look(&mut crib, json!({ "start": "0", "end": "0" })).trim_end(), (first + 5).to_string());
    let whole = look(&mut crib, json!({ "start": "-", "end": "-" }));
    assert!(whole.contains("\n1\n2\n") && whole.contains("\n199\n200\n"), "{whole}");
    let visible = look(&mut crib, json!({ "start": " ", "end": "", "pane": " ", "session": "\t", "target": "  " }));
    assert!(!visible.contains("\n1\n2\n") && visible.contains("\n199\n200\n"), "{visible}");
}

#[test]
fn a_line_that_is_none_is_refused() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    for line in ["x", "1; kill-server", "-t %1", "#{pane_id}", "99999999999999999999", "1.5", "--"] {
        for name in ["start", "end"] {
            let mut arguments = json!({});
            arguments[name] = json!(line);
            let said = crib.failure("capture-pane", arguments);
            assert!(said.starts_with(&format!("invalid_arguments: `{name}` is ")), "`{line}`: {said}");
        }
    }
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()));
}

#[test]
fn blanks_colours_and_breaks_are_shown_when_they_are_asked_for() {
    let mut crib = Crib::new();
    let printed = crib.run("clear; printf 'blank  |\\nblanks  \\n\\033[31mred\\033[0m\\n'; printf '%0300d\\n' 7");
    assert_eq!(printed.0, 0);
    let zeros = format!("{:0300}", 7);
    let plain = look(&mut crib, json!({}));
    assert!(plain.contains("\nblanks") && plain.contains("\nred\n") && plain.contains(&zeros), "{plain}");
    let blanks = look(&mut crib, json!({ "preserve_trailing_spaces": true, "join_wrapped_lines": false }));
    assert!(blanks.contains("\nblanks  "), "{blanks}");
    let broken = look(&mut crib, json!({ "join_wrapped_lines": false }));
    assert!(!broken.contains(&zeros) && broken.contains(&format!("{}\n{}", &zeros[..200], &zeros[200..])), "{broken}");
    let colours = look(&mut crib, json!({ "include_escape_sequences": true }));
    assert!(colours.contains("\u{241b}[31mred") && !colours.contains('\u{1b}'), "{colours}");
}

#[test]
fn the_screen_that_a_program_has_put_aside_can_be_seen() {
    if !std::path::Path::new("/usr/bin/less").exists() {
        skip!("less is not installed");
    }
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("echo put aside; seq 1 100 >numbers").0, 0);
    let answer = crib.call("capture-pane", json!({ "include_alternate_screen": true }));
    assert!(answer["result"].as_str().is_some_and(|text| text.contains("put aside")), "{answer}");
    assert!(answer["notices"].to_string().contains("no alternate screen"), "{answer}");
    let arguments = waiting("less numbers", false);
    crib.result("run_shell", arguments);
    toolcrib_tests::eventually("less fills the screen", || {
        crib.program.tmux(&["display-message", "-p", "-t", "=toolcrib-agent:", "#{alternate_on}"]) == "1\n"
    });
    let aside = look(&mut crib, json!({ "include_alternate_screen": true }));
    assert!(aside.contains("put aside"), "{aside}");
    crib.type_keys(&["q"]);
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn a_look_may_wait_and_an_unending_one_is_refused() {
    let mut crib = Crib::new();
    let mut arguments = command("sleep 0.2; echo printed late");
    arguments["wait"] = json!(false);
    crib.result("run_shell", arguments);
    assert!(look(&mut crib, json!({ "delay": "3s" })).contains("\nprinted late\n"));
    for delay in [json!("2d"), json!("601s"), json!("soon"), json!(-1)] {
        let said = crib.failure("capture-pane", json!({ "delay": delay }));
        assert!(said.starts_with("invalid_arguments: "), "{delay}: {said}");
    }
}
