//! P-26: a plugin uses capabilities that no policy granted.
//! Outcome: each host function answers `denied`, and nothing has happened; granted later to other bytes, nothing is granted.
//! Switched off: with the shell granted to all (`policy/lib.rs`) the command ran and two tests failed.

use serde_json::json;
use toolcrib_tests::{Siege, guest};

#[test]
fn what_was_not_granted_is_denied_without_any_effect() {
    let mut siege = Siege::with("hostile").begin();
    let planted = siege.program.path("work/planted.txt");
    for _ in 0..2 {
        let text = planted.display().to_string();
        let answer = siege.call("hostile", json!({ "how": "write_file", "text": text }));
        assert_eq!(answer["result"], r#"Err("denied")"#);
        let answer = siege.call("hostile", json!({ "how": "read_file", "text": "health.txt" }));
        assert_eq!(answer["result"], r#"Err("denied")"#);
        let command = format!("touch '{text}'");
        assert_eq!(siege.call("hostile", json!({ "how": "run_command", "text": command }))["result"], "denied");
        assert!(!planted.exists(), "there was an effect");
    }
    siege.lift();
}

#[test]
fn what_is_not_granted_reads_the_same_whether_it_exists_or_not() {
    let mut siege = Siege::with("hostile").begin();
    for path in ["health.txt", "missing.txt", "/etc/passwd", "/nowhere/at/all", ""] {
        let answer = siege.call("hostile", json!({ "how": "read_file", "text": path }));
        assert_eq!(answer["result"], r#"Err("denied")"#, "{path}");
    }
    siege.lift();
}

#[test]
fn a_grant_is_for_the_bytes_that_were_allowed() {
    let host = Siege::with("hostile").allowing("hostile");
    let mut other = std::fs::read(guest("hostile")).expect("a guest that was built");
    // One more custom section: the same code, other bytes.
    other.extend_from_slice(&[0, 2, 1, b'x']);
    let mut siege = host.component("hostile", &other).begin();
    for _ in 0..2 {
        assert_eq!(siege.call("hostile", json!({ "how": "run_command", "text": "true" }))["result"], "denied");
    }
    siege.lift();
}
