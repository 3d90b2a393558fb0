//! P-73: tools and plugins whose names look like those of others: `run_sheIl`, `tirne`, `vveb_search`.
//! Outcome: refused where they are loaded, with the name that they stand beside; the real ones answer.
//! Switched off: without `LOOK_ALIKE` (`text/names.rs`) all of them were taken and both tests failed.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const LOOK_ALIKES: [(&str, &str); 9] = [
    ("run_sheIl", "run_shell"),
    ("run_she1l", "run_shell"),
    ("tirne", "time"),
    ("t1me", "time"),
    ("vveb_search", "web_search"),
    ("reacl_file", "read_file"),
    ("write_fiIe", "write_file"),
    ("fetch__url", "fetch_url"),
    ("web_5earch", "web_search"),
];

#[test]
fn a_tool_that_looks_like_one_that_is_there_is_refused() {
    let host = LOOK_ALIKES.iter().enumerate().fold(Preparation::new(), |host, (index, (name, _))| {
        host.component(&format!("other{index}"), &Forged::new(name).bytes())
    });
    let mut siege = host.begin();
    for (index, (name, meant)) in LOOK_ALIKES.iter().enumerate() {
        let refusal = siege.refusal(&format!("other{index}"));
        assert!(refusal.contains(&format!("its tool `{name}` could be confused with `{meant}`")), "{refusal}");
        assert!(siege.failure(name, json!({})).starts_with("unknown_tool: "));
    }
    siege.lift();
}

#[test]
fn a_plugin_that_looks_like_one_that_is_there_is_refused() {
    let host = LOOK_ALIKES.iter().enumerate().fold(Preparation::new(), |host, (index, (name, _))| {
        host.component(name, &Forged::new(&format!("own{index}x")).bytes())
    });
    let siege = host.begin();
    for (name, meant) in LOOK_ALIKES {
        let refusal = siege.refusal(name);
        assert!(refusal.contains(&format!("a plugin `{meant}` exists already")), "{refusal}");
    }
    siege.lift();
}
