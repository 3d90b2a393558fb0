//! P-71: a plugin without any right takes all that the pool of instances has (8 memories a call), or all memory, with calls that wait.
//! Outcome: it gets at most half of what others leave; its further calls are `busy` and say why, everybody else's are answered.
//! Switched off: with a share of everything for every plugin (`fits` in `engine/room.rs`) calls of the other plugins were `busy` and the tests failed.

use serde_json::{Value, json};
use toolcrib_tests::forge::with_items;
use toolcrib_tests::{Preparation, guest};

/// `hostile` with seven memories more, which is all that a plugin may have.
fn hog() -> Vec<u8> {
    let bytes = std::fs::read(guest("hostile")).expect("a guest that was built");
    let hoard = "(core instance (instantiate $hoard))".repeat(7);
    with_items(&bytes, &format!("(core module $hoard (memory 1)) {hoard}"))
}

#[test]
fn calls_of_eight_memories_each_leave_room_for_other_plugins() {
    const CALLS: usize = 200;
    let mut siege = Preparation::new().component("hog", &hog()).guest("shell_echo").begin();
    siege.call("hostile", json!({ "how": "say" }));
    siege.failure("shell_echo", json!({ "text": "a" }));
    (0..CALLS).for_each(|_| _ = siege.send("hostile", json!({ "how": "sleep", "number": 10_000 })));
    // The pool has 1,026 places; each of these calls takes eight of the half that is theirs.
    let mut busy = Vec::new();
    while busy.len() < CALLS - 64 {
        busy.push(siege.answer()["error"].clone());
    }
    let said: Vec<&Value> = busy.iter().filter(|error| error["kind"] != "busy").collect();
    assert!(said.is_empty(), "{said:?}");
    assert!(busy[0]["message"].as_str().expect("a message").contains("it has used its share of the sandbox"));
    for _ in 0..20 {
        assert_eq!(siege.call("time", json!({}))["result"]["source"], "harness");
        assert!(siege.failure("shell_echo", json!({ "text": "a" })).starts_with("denied: "));
    }
    (0..64).for_each(|_| assert_eq!(siege.answer()["result"], "slept"));
    siege.lift();
}

#[test]
fn memory_over_the_share_of_a_plugin_is_refused_and_the_host_serves_others() {
    let mut siege = Preparation::new().guest("hostile").set("limits.total_memory_mib=40").begin();
    for _ in 0..2 {
        let answer = siege.call("hostile", json!({ "how": "fill_memory", "number": 1 }));
        assert_eq!(answer["error"]["kind"], "busy", "{answer}");
        let message = "this plugin has used its share of the memory (limit for all plugins: 40 MiB)";
        assert_eq!(answer["error"]["message"], message);
        assert!(answer["error"]["hint"].as_str().expect("a hint").contains("`total_memory_mib` under [limits]"));
        assert_eq!(siege.call("hostile", json!({ "how": "say", "text": "small" }))["result"], "small");
    }
    siege.lift();
}
