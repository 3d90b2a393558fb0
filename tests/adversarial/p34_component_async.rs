//! P-34: streams, futures and asynchronous functions of the component model.
//! Outcome: the plugin is refused when it is first needed, and the reason names what is switched off.
//! Switched off: not tried: component-model async is compiled out of wasmtime.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const MODULES: [(&str, &str); 5] = [
    ("stream", "(type (stream u8))"),
    ("future", "(type (future u8))"),
    ("error", "(type (func (param \"a\" error-context)))"),
    ("lift", "(type (func async (param \"a\" u8)))"),
    ("task", "(core func (canon task.cancel))"),
];

#[test]
fn component_model_async_is_refused() {
    let host = MODULES.iter().fold(Preparation::new(), |host, (tool, module)| {
        host.component(tool, &Forged::new(tool).items(module).bytes())
    });
    let mut siege = host.begin();
    for (tool, _) in MODULES {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(
                failure.contains("async")
                    || failure.contains("requires the component model")
                    || failure.contains("error-context"),
                "{failure}"
            );
        }
    }
    siege.lift();
}
