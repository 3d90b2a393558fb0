//! P-19: components that are small to send and long to compile.
//! Outcome: each costs one child process within its CPU time and memory, and an error or a plugin; the host keeps nothing of it.
//! Switched off: compiled in the host itself (`sandbox/mod.rs`) the bombs took 40 s or left 70 to 110 MiB and four tests failed.

use crate::process::{peak_mib, resident_mib};
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::{Forged, OURS, component};

const OVER_CPU: &str = "unavailable: plugin `bomb` was refused: compiling it takes more than 1000 ms of CPU time (limit: `limits.compile_ms`)";
const OVER_MEMORY: &str = "unavailable: plugin `bomb` was refused: compiling it takes more than 192 MiB of memory (limit: `limits.compile_mib`)";
/// What a machine that is busy comes to first, before a second of CPU time is used.
const OVER_TIME: &str = "unavailable: plugin `bomb` was refused: compiling it did not end within 4 s, four times `limits.compile_ms`: this machine is busy";

fn is_over(outcome: &str) -> bool {
    [OVER_CPU, OVER_MEMORY, OVER_TIME].contains(&outcome)
}

/// A plugin that would do no harm, with a core module beside its own that nobody uses.
fn bomb(module: &str) -> Vec<u8> {
    Forged::new("bomb").items(&format!("(core module {module})")).bytes()
}

/// Has the host load it twice; returns what came of it each time.
fn explode(bytes: &[u8]) -> Vec<String> {
    let host = Preparation::new().component("bomb", bytes);
    let mut siege = host.set("limits.compile_ms=1000").set("limits.compile_mib=192").begin();
    let (resident, peak) = (resident_mib(siege.pid()), peak_mib(siege.pid()));
    let begin = Instant::now();
    let answers = (0..2).map(|_| siege.call("bomb", json!({})));
    let outcomes = answers
        .map(|answer| match &answer["error"] {
            error if error.is_object() => {
                format!("{}: {}", error["kind"].as_str().unwrap(), error["message"].as_str().unwrap())
            }
            _ => "it compiles".into(),
        })
        .collect();
    // Its own limit is a second of CPU time; waiting for a child that gets little of it has a bound of four.
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    assert!(peak_mib(siege.pid()) < peak + 192, "the host itself took {} MiB", peak_mib(siege.pid()) - peak);
    assert!(resident_mib(siege.pid()) < resident + 64, "the host keeps {} MiB", resident_mib(siege.pid()) - resident);
    siege.lift();
    outcomes
}

fn is_over_or_compiles(outcomes: &[String]) {
    assert!(outcomes.iter().all(|outcome| is_over(outcome) || outcome == "it compiles"), "{outcomes:?}");
}

#[test]
fn one_function_of_700_kib_is_stopped() {
    let body = "(local.set 0 (i32.add (i32.mul (local.get 0) (local.get 1)) (local.get 2)))
        (local.set 1 (i32.xor (local.get 0) (i32.load (local.get 2))))
        (local.set 2 (i32.rotl (local.get 1) (call 0 (local.get 0) (local.get 1) (local.get 2))))";
    let text = format!("(memory 1) (func (param i32 i32 i32) (result i32) {} (local.get 0))", body.repeat(20_000));
    let outcomes = explode(&bomb(&text));
    assert!(outcomes.iter().all(|outcome| is_over(outcome)), "{outcomes:?}");
}

#[test]
fn twenty_thousand_functions_are_stopped_or_compile() {
    let body =
        "(func (param i32) (result i32) (i32.add (call 0 (local.get 0)) (i32.div_s (local.get 0) (i32.const 7))))";
    is_over_or_compiles(&explode(&bomb(&body.repeat(20_000))));
}

#[test]
fn a_hundred_thousand_nested_blocks_are_stopped_or_compile() {
    let text = format!("(func {} {})", "block ".repeat(100_000), "end ".repeat(100_000));
    is_over_or_compiles(&explode(&bomb(&text)));
}

#[test]
fn a_hundred_thousand_types_are_stopped_or_compile() {
    let mut text = String::new();
    for index in 0_u32..100_000 {
        let parameters: String = (0..17).map(|bit| if index >> bit & 1 == 0 { " i32" } else { " i64" }).collect();
        let _ = write!(text, "(type (func (param{parameters})))");
    }
    is_over_or_compiles(&explode(&bomb(&text)));
}

#[test]
fn a_hundred_thousand_imports_are_refused() {
    let imports: String =
        (0..100_000).map(|index| format!(r#"(import "toolcrib:plugin/files@0.1.0" "{index}" (func))"#)).collect();
    let outcomes = explode(&bomb(&imports));
    assert!(
        outcomes.iter().all(|outcome| outcome == "it compiles" || outcome.starts_with("unavailable: ")),
        "{outcomes:?}"
    );
}

#[test]
fn fifty_thousand_data_segments_are_stopped_or_compile() {
    let text = format!("(memory 1) {}", r#"(data (i32.const 0) "x")"#.repeat(50_000));
    is_over_or_compiles(&explode(&bomb(&text)));
}

#[test]
fn types_that_double_with_each_level_are_refused() {
    let mut text = String::from("(type $t0 (tuple string string))");
    for level in 1..60 {
        let _ = write!(text, "(type $t{level} (tuple $t{0} $t{0}))", level - 1);
    }
    let bytes = component(
        &format!(
            "(component {OURS} {text} (import \"toolcrib:plugin/files@0.1.0\" (instance (export \"x\" (func (param \"a\" $t59))))))"
        ),
        "bomb",
    );
    let outcomes = explode(&bytes);
    assert!(outcomes.iter().all(|outcome| outcome.starts_with("unavailable: ")), "{outcomes:?}");
}
