//! P-33: tags and exceptions.
//! Outcome: the plugin is refused when it is first needed, and the reason names what is switched off.
//! Switched off: not tried: exceptions are compiled out of wasmtime.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const MODULES: [(&str, &str); 3] = [
    ("tag", "(core module (tag))"),
    ("try", "(core module (tag $t) (func (block (try_table (catch_all 0)))))"),
    ("throw", "(core module (func (param exnref)))"),
];

#[test]
fn exceptions_are_refused() {
    let host = MODULES.iter().fold(Preparation::new(), |host, (tool, module)| {
        host.component(tool, &Forged::new(tool).items(module).bytes())
    });
    let mut siege = host.begin();
    for (tool, _) in MODULES {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(failure.contains("exception"), "{failure}");
        }
    }
    siege.lift();
}
