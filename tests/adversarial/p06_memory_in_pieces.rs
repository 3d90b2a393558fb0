//! P-06: memory split over several instances, each below the limit.
//! Outcome: the limit is for the sum; what comes too late is refused to the guest.
//! Switched off: without the sum in `engine/meter.rs` 76 MiB were given and both tests failed.

use serde_json::json;
use std::fmt::Write;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

/// Pages of 64 KiB in 64 MiB.
const PAGES: u32 = 1024;

#[test]
fn memories_that_grow_in_turn_share_one_limit() {
    let mut items = String::from(
        r#"(core module $grows (memory (export "m") 0)
            (func $start
                (loop $on (br_if $on (i32.and
                    (i32.ne (memory.grow (i32.const 1)) (i32.const -1))
                    (i32.lt_u (memory.size) (i32.const 400))))))
            (start $start)
            (func (export "pages") (result i32) (memory.size)))"#,
    );
    let (mut imports, mut sum, mut with) = (String::new(), "(i32.const 17)".to_owned(), String::new());
    for index in 0..4 {
        let _ = write!(items, "(core instance $grown{index} (instantiate $grows))");
        let _ = write!(imports, r#"(import "{index}" "pages" (func $pages{index} (result i32)))"#);
        let _ = write!(with, r#"(with "{index}" (instance $grown{index}))"#);
        sum = format!("(i32.add {sum} (call $pages{index}))");
    }
    // Traps when the instances together, with the plugin's own 17 pages, have more than the limit, or hardly any.
    let _ = write!(
        items,
        "(core module $counts {imports}
            (func $start (if (i32.or (i32.gt_u {sum} (i32.const {PAGES})) (i32.lt_u {sum} (i32.const 1000))) (then unreachable)))
            (start $start))
         (core instance (instantiate $counts {with}))"
    );
    let mut siege = Preparation::new().component("pieces", &Forged::new("pieces").items(&items).bytes()).begin();
    for _ in 0..2 {
        assert_eq!(siege.call("pieces", json!({}))["result"], "ok");
    }
    siege.lift();
}

#[test]
fn memories_that_begin_large_share_one_limit() {
    let items = "(core module $large (memory 300))
        (core instance (instantiate $large)) (core instance (instantiate $large))
        (core instance (instantiate $large)) (core instance (instantiate $large))";
    let mut siege = Preparation::new().component("large", &Forged::new("large").items(items).bytes()).begin();
    for _ in 0..2 {
        let failure = siege.failure("large", json!({}));
        assert_eq!(failure, "unavailable: plugin `large` was refused: limit: memory 64 MiB");
    }
    siege.lift();
}
