//! P-32: types of the garbage collection proposal.
//! Outcome: the plugin is refused when it is first needed, and the reason names what is switched off.
//! Switched off: `wasm_gc(false)` (`engine/lib.rs`): `i31` was taken and the test failed; structs and arrays are compiled out of wasmtime.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const MODULES: [(&str, &str); 4] = [
    ("struct", "(core module (type (struct (field i32))))"),
    ("array", "(core module (type (array i8)))"),
    ("i31", "(core module (func (drop (ref.i31 (i32.const 1)))))"),
    ("extern", "(core module (func (param externref)))"),
];

#[test]
fn garbage_collection_is_refused() {
    let host = MODULES.iter().fold(Preparation::new(), |host, (tool, module)| {
        host.component(tool, &Forged::new(tool).items(module).bytes())
    });
    let mut siege = host.begin();
    for (tool, _) in MODULES {
        for _ in 0..2 {
            let answer = siege.call(tool, json!({}));
            assert!(answer.get("result").is_none(), "`{tool}` was taken");
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(failure.contains("gc") || failure.contains("reference"), "{failure}");
        }
    }
    siege.lift();
}
