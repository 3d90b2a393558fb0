//! P-08: a table that grows without end, or begins with all there can be.
//! Outcome: growth is refused to the guest at 10,000 elements; a table declared larger refuses the plugin.
//! Switched off: without the sum in `engine/meter.rs` and with a larger pool all three tests failed.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

#[test]
fn a_table_grows_to_its_limit_and_the_call_goes_on() {
    let grow = "(loop $on (br_if $on (i32.ne (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1))))
        (if (i32.ne (table.size $t) (i32.const 10000)) (then unreachable))";
    let plugin = Forged::new("table").parts("(table $t 0 funcref)").call(grow).bytes();
    let mut siege = Preparation::new().component("table", &plugin).begin();
    for _ in 0..2 {
        assert_eq!(siege.call("table", json!({}))["result"], "ok");
    }
    siege.lift();
}

#[test]
fn tables_that_grow_in_turn_share_one_limit() {
    let items = r#"(core module $grows (table $t 0 funcref)
            (func $start
                (loop $on (br_if $on (i32.and
                    (i32.ne (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1))
                    (i32.lt_u (table.size $t) (i32.const 6000))))))
            (start $start)
            (func (export "size") (result i32) (table.size $t)))
        (core instance $a (instantiate $grows))
        (core instance $b (instantiate $grows))
        (core module $counts (import "a" "size" (func $a (result i32))) (import "b" "size" (func $b (result i32)))
            (func $start (if (i32.ne (i32.add (call $a) (call $b)) (i32.const 10000)) (then unreachable)))
            (start $start))
        (core instance (instantiate $counts (with "a" (instance $a)) (with "b" (instance $b))))"#;
    let mut siege = Preparation::new().component("tables", &Forged::new("tables").items(items).bytes()).begin();
    for _ in 0..2 {
        let answer = siege.call("tables", json!({}));
        assert_eq!(answer["result"], "ok", "{answer}");
    }
    siege.lift();
}

#[test]
fn a_table_that_begins_with_more_than_the_limit_is_refused() {
    for elements in ["10001", "4294967295"] {
        let plugin = Forged::new("large").parts(&format!("(table $t {elements} funcref)")).bytes();
        let mut siege = Preparation::new().component("large", &plugin).begin();
        for _ in 0..2 {
            let failure = siege.failure("large", json!({}));
            assert!(failure.starts_with("unavailable: plugin `large` was refused: "), "{failure}");
            assert!(failure.contains("table") || failure.contains("elements"), "{failure}");
        }
        siege.lift();
    }
}
