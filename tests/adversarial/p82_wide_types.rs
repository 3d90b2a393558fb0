//! P-82: components of another world whose types are small in the file and large when they are read, before anybody allows anything.
//! Outcome: refused at start with a reason, or taken within bounds on schemas; the host keeps little of it, and does not look twice.
//! Switched off: without `Copied` (`foreign/exports.rs`) the first file took the host 1.9 GB and 4 s at each start.

use crate::process::peak_mib;
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};
use toolcrib_tests::Preparation;

/// Few bytes for each instance, which has all the exports.
fn many_instances() -> Vec<u8> {
    let exports: String = (0..30_000).fold(String::new(), |mut text, index| {
        let _ = write!(text, "(export \"e-{index}\" (func $f))");
        text
    });
    let instances = "(instance (instantiate $c (with \"f\" (func $f))))".repeat(300);
    let text = format!(
        r#"(component
            (core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (component $c (import "f" (func $f)) {exports})
            {instances})"#
    );
    wat::parse_str(text).expect("a component in text form")
}

/// One record of many fields, which 64 functions take and return: each has two schemas of 64 KiB.
fn wide(name: &str) -> Vec<u8> {
    let fields: String = (0..540).fold(String::new(), |mut text, index| {
        let _ = write!(text, "(field \"x{index}\" u64)");
        text
    });
    let exports: String = (0..64).fold(String::new(), |mut text, index| {
        let _ = write!(text, "(export \"{name}-g{index}\" (func $f))");
        text
    });
    let text = format!(
        r#"(component
            (core module $m (memory (export "m") 1)
                (func (export "f") (param i32) (result i32) local.get 0)
                (func (export "r") (param i32 i32 i32 i32) (result i32) i32.const 1024))
            (core instance $i (instantiate $m))
            (type $t (record {fields})) (export $r "r" (type $t))
            (func $f (param "x" $r) (result $r)
                (canon lift (core func $i "f") (memory (core memory $i "m")) (realloc (core func $i "r"))))
            {exports})"#
    );
    wat::parse_str(text).expect("a component in text form")
}

#[test]
fn instances_of_many_exports_are_refused_before_they_are_made() {
    let host = Preparation::new().component("instances", &many_instances());
    let started = Instant::now();
    let siege = host.begin();
    let refusal = siege.refusal("instances");
    assert!(refusal.ends_with("it makes too many instances of components with too many types or exports"), "{refusal}");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    assert!(peak_mib(siege.pid()) < 256, "the host had {} MiB", peak_mib(siege.pid()));
    siege.lift();
}

#[test]
fn wide_types_of_many_components_cost_little_and_are_kept_by_their_names() {
    let host = (0..10).fold(Preparation::new(), |host, index| {
        let name = format!("wide{index}");
        host.component(&name, &wide(&name))
    });
    let mut siege = host.begin();
    // It is there, and checks what it is given.
    let failure = siege.failure("wide3-g0", json!({ "x": {} }));
    assert!(failure.starts_with("invalid_arguments: "), "{failure}");
    assert!(peak_mib(siege.pid()) < 400, "the host had {} MiB", peak_mib(siege.pid()));
    // What is remembered from one start to the next has no schemas.
    let table = std::fs::read_dir(siege.program.path("state/toolcrib/code")).expect("the cache").flatten();
    let table = table.filter(|entry| entry.file_name().to_string_lossy().starts_with("components"));
    let bytes: u64 = table.map(|entry| entry.metadata().map_or(0, |found| found.len())).sum();
    assert!(bytes > 0 && bytes < 2 << 20, "{bytes} bytes");
    siege.lift();
}
