//! A screen that a caller has seen is not repeated until it changes, or something was done.

use crate::crib::{Crib, SHARED};
use serde_json::{Value, json};
use toolcrib_tests::eventually;
use toolcrib_tests::shell::declared;

fn look(crib: &mut Crib, arguments: Value) -> (String, bool) {
    let answer = crib.call("capture-pane", arguments);
    let notices = answer["notices"].as_array().cloned().unwrap_or_default();
    let is_unchanged = notices.iter().any(|notice| notice.as_str().is_some_and(|text| text.contains("not repeated")));
    (answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned(), is_unchanged)
}

#[test]
fn a_screen_that_has_not_changed_is_not_repeated() {
    let mut crib = Crib::new();
    crib.run("echo seen");
    crib.within("true", "5s");
    // The prompt comes after the answer.
    let column = || crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{cursor_x}:"]);
    eventually("the prompt is drawn", || column().trim() != "0:");
    let (first, is_unchanged) = look(&mut crib, json!({}));
    assert!(first.contains("seen") && !is_unchanged, "{first}");
    // Arguments that come to the same are the same.
    for same in [json!({}), json!({ "pane": "shared", "join_wrapped_lines": true, "delay": "1ms" })] {
        assert_eq!(look(&mut crib, same), (String::new(), true));
    }
    let (other, is_unchanged) = look(&mut crib, json!({ "start": "0", "end": "1" }));
    assert!(!is_unchanged, "another part is no repetition: {other}");
}

#[test]
fn what_is_done_makes_the_next_look_news() {
    let mut crib = Crib::new();
    crib.run("true");
    look(&mut crib, json!({}));
    crib.result("send-keys", declared(json!({ "keys": ["C-l"] })));
    assert!(!look(&mut crib, json!({})).1);
}

#[test]
fn another_host_sees_it_in_full() {
    let mut crib = Crib::new();
    crib.run("echo seen");
    look(&mut crib, json!({}));
    let Crib { program, .. } = crib;
    let other = program.run(&["call", "capture-pane", "{}"]);
    assert!(String::from_utf8_lossy(&other.stdout).contains("seen"));
}
