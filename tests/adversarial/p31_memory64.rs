//! P-31: memories and tables with 64-bit addresses.
//! Outcome: the plugin is refused when it is first needed, and the reason names what is switched off.
//! Switched off: with `wasm_memory64` on (`engine/lib.rs`) the plugin was taken and the test failed.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const MODULES: [(&str, &str); 2] =
    [("wide_memory", "(core module (memory i64 1))"), ("wide_table", "(core module (table i64 1 funcref))")];

#[test]
fn memory64_is_refused() {
    let host = MODULES.iter().fold(Preparation::new(), |host, (tool, module)| {
        host.component(tool, &Forged::new(tool).items(module).bytes())
    });
    let mut siege = host.begin();
    for (tool, _) in MODULES {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(failure.contains("memory64"), "{failure}");
        }
    }
    siege.lift();
}
