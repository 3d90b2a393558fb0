//! P-35: shared memory, atomics and further proposals that no plugin needs.
//! Outcome: the plugin is refused when it is first needed, and the reason names what is switched off.
//! Switched off: with tail calls and relaxed SIMD on (`engine/lib.rs`) these were taken and the test failed; threads are compiled out.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const MODULES: [(&str, &str); 4] = [
    ("shared", "(core module (memory 1 2 shared))"),
    ("atomic", "(core module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))"),
    ("tail", "(core module (func (return_call 0)))"),
    ("relaxed", "(core module (func (param v128) (drop (i8x16.relaxed_swizzle (local.get 0) (local.get 0)))))"),
];

#[test]
fn shared_memory_is_refused() {
    let host = MODULES.iter().fold(Preparation::new(), |host, (tool, module)| {
        host.component(tool, &Forged::new(tool).items(module).bytes())
    });
    let mut siege = host.begin();
    for (tool, _) in MODULES {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(
                failure.contains("threads")
                    || failure.contains("shared")
                    || failure.contains("tail calls")
                    || failure.contains("relaxed"),
                "{failure}"
            );
        }
    }
    siege.lift();
}
