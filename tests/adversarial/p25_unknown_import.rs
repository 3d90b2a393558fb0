//! P-25: an import that this host does not know: another interface, another function, another version, another type.
//! Outcome: the plugin is refused, and the reason names the import.
//! Switched off: without `is_known` (`tools/provider/component.rs`) the linker refused them instead, with other words, and the first test failed.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::{OURS, component};

#[test]
fn an_import_of_another_package_is_refused_before_it_is_compiled() {
    let imports = [
        "evil:host/root@1.0.0",
        "toolcrib:host/secret@0.1.0",
        "toolcrib:plugin/root@0.1.0",
        "wasi:keyvalue/store@0.2.0",
        "plain-name",
    ];
    let siege = imports
        .iter()
        .enumerate()
        .fold(Preparation::new(), |host, (index, import)| {
            let text = format!(r#"(component (import "{import}" (instance)))"#);
            host.component(&format!("wants{index}"), &component(&text, &format!("wants{index}")))
        })
        .begin();
    for (index, import) in imports.iter().enumerate() {
        for _ in 0..2 {
            let refusal = siege.refusal(&format!("wants{index}"));
            let reason = format!("was refused: it imports `{import}`, which this host does not know");
            assert!(refusal.ends_with(&reason), "{refusal}");
        }
    }
    siege.lift();
}

#[test]
fn an_import_of_a_known_interface_that_does_not_exist_is_refused() {
    let imports = [
        (
            "function",
            r#"(import "toolcrib:plugin/files@0.1.0" (instance (export "delete" (func (param "path" string)))))"#,
            "delete",
        ),
        (
            "version",
            r#"(import "toolcrib:plugin/events@9.9.0" (instance (export "log" (func (param "text" string)))))"#,
            "events@9.9.0",
        ),
        (
            "type",
            r#"(import "toolcrib:plugin/events@0.1.0" (instance (export "log" (func (param "text" u64)))))"#,
            "log",
        ),
        ("socket", r#"(import "wasi:sockets/raw@0.2.0" (instance (export "open" (func))))"#, "wasi:sockets/raw@0.2.0"),
    ];
    let siege = imports.iter().fold(Preparation::new(), |host, (tool, import, _)| {
        host.component(tool, &component(&format!("(component {OURS} {import})"), tool))
    });
    let mut siege = siege.begin();
    for (tool, _, named) in imports {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with(&format!("unavailable: plugin `{tool}` was refused: ")), "{failure}");
            assert!(failure.contains(named), "{failure}");
        }
    }
    siege.lift();
}
