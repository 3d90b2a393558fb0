//! commands chained by the thousand, nested a thousand deep or a mebibyte long, to tire out the check of the denylist.
//! Outcome: each is checked whole or `denied`; the check never becomes weaker, and its threads end.
//! Switched off: the refusal of what cannot be parsed (`command/lib.rs`, `check`), and alone the count of its cost (`command/cost.rs`): each time the second test failed.

use crate::exec::run;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Preparation, Siege};

/// What the denylist of these tests names: a word that is no program, so that a check that fails does no harm.
const DENIED: &str = "no-such-program";

fn guarded() -> Siege {
    Preparation::new().set(&format!("tools.shell_denylist=[{DENIED:?}]")).begin()
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn the_last_of_many_commands_is_checked_like_the_first() {
    let mut siege = guarded();
    for count in [51, 5_000] {
        let chain = "true; ".repeat(count);
        assert_eq!(run(&mut siege, &format!("{chain}touch ran{count}"))["exit_code"], 0);
        assert!(siege.program.path(&format!("work/ran{count}")).exists());
        for last in
            [DENIED, &format!("sh -c 'exec {DENIED}'"), &format!("echo $({DENIED})"), &format!("{{ {DENIED}; }}")]
        {
            let refused = siege.failure("run_shell", command(&format!("touch early; {chain}{last}")));
            assert!(refused.contains("pattern `no-such-program`"), "{refused}");
        }
    }
    assert!(!siege.program.path("work/early").exists());
    siege.lift();
}

#[test]
fn what_nests_too_deep_or_is_too_long_is_refused_and_not_waved_through() {
    let mut siege = guarded();
    let mut texts: Vec<String> =
        [("$(", ")"), ("echo $(", ")"), ("echo \"$(", ")\""), ("(", ")"), ("{ ", "; }"), ("eval ", "")]
            .into_iter()
            .flat_map(|(open, close)| [200, 1_000, 10_000].map(|depth| nested(open, "true", close, depth)))
            .collect();
    texts.extend(["$(", "${", "$((", "<(", "[[ (", "if ", "case x in x) ", "<<E "].map(|open| open.repeat(20_000)));
    texts.push(format!(": {}", "x".repeat(1 << 20)));
    texts.push("\\\n".repeat(200_000));
    // A shell reads a line at a time and ends at `exit`: should one of these be waved through, it starts no storm of shells.
    let texts: Vec<String> = texts.into_iter().map(|text| format!("touch early; exit\n{text}")).collect();
    // Two parentheses count as one level; so many are still read, and what stands in them is found.
    let refused = siege.failure("run_shell", command(&nested("(", &format!("touch early; {DENIED}"), ")", 100)));
    assert!(refused.contains("pattern `no-such-program`"), "{refused}");
    // All at one time: a check that does not end would hold up the others.
    let calls: Vec<u64> = texts.iter().map(|text| siege.send("run_shell", command(text))).collect();
    for _ in &calls {
        let answer = siege.answer();
        let index = calls.iter().position(|id| answer["id"] == *id).expect("an answer to one of them");
        let shown: String = texts[index].chars().take(30).collect();
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("`{shown}…` ran: {answer}"));
        assert!(
            message.starts_with("command cannot be checked against `tools.shell_denylist`"),
            "`{shown}…`: {answer}"
        );
    }
    assert!(!siege.program.path("work/early").exists());
    siege.lift();
}

#[test]
fn without_a_denylist_what_no_shell_can_take_harms_no_host() {
    let mut siege = Preparation::new().set("tools.shell_denylist=[]").begin();
    for open in ["$(", "(", "{ ", "eval "] {
        let answer = siege.call("run_shell", command(&open.repeat(30_000)));
        assert_ne!(answer["result"]["exit_code"], 0, "{answer}");
    }
    let refused = siege.failure("run_shell", command(&format!("true {}", "x".repeat(1 << 20))));
    assert!(refused.starts_with("limit: "), "{refused}");
    siege.lift();
}
