//! P-17: components that were cut or changed anywhere.
//! Outcome: a reason to refuse, within bounded time; never a panic. What can be loaded all the same costs one call.
//! Switched off: with a panic where the parser fails (`look_into` in `component.rs`) all three tests failed.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toolcrib::config::{Config as Settings, Limits};
use toolcrib::envelope::Kind;
use toolcrib::tools::provider::Component;
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{TestHost, guest, is_long};

fn components() -> Vec<Vec<u8>> {
    let guests = ["hostile", "shell_echo", "word_count"].map(|name| std::fs::read(guest(name)).expect("a guest"));
    let forged = Forged::new("forged").items("(core module $m (memory 1)) (core instance (instantiate $m))").bytes();
    BUILTINS.iter().map(|builtin| builtin.bytes.to_vec()).chain(guests).chain([forged]).collect()
}

/// Opens the bytes as a plugin's file, and asks all that can be asked of it without running it.
fn inspect(file: &Path, bytes: &[u8], limits: &Limits) -> Result<(), String> {
    std::fs::write(file, bytes).expect("a file");
    let begin = Instant::now();
    let opened = Component::open(file, limits).map(|component| {
        let calls = component.manifest().calls(toolcrib::capability::Capability::Files, "read");
        let _ = (format!("{:?}", component.manifest()), component.manifest().imports.len(), calls);
    });
    assert!(begin.elapsed() < Duration::from_secs(5), "{} bytes took {:?}", bytes.len(), begin.elapsed());
    opened.map_err(|refused| refused.reason)
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("mutant.wasm");
    (directory, file)
}

#[test]
fn a_component_cut_anywhere_is_refused_or_read_without_a_panic() {
    let (_directory, file) = file();
    let limits = Settings::default().limits;
    for whole in components() {
        let step = if is_long() { 1 } else { whole.len() / 100 + 1 };
        let refused = (0..whole.len()).step_by(step).filter(|end| inspect(&file, &whole[..*end], &limits).is_err());
        assert!(refused.count() > whole.len() / step / 2, "hardly any cut is refused");
        assert_eq!(inspect(&file, &whole, &limits), Ok(()));
    }
}

/// One change of a component.
#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    Flip(u8),
    Insert(Vec<u8>),
    Remove(usize),
    /// Copies a piece from elsewhere.
    Copy(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    // Bytes that mean something to a parser, beside any byte.
    let telling = prop::sample::select(&[0_u8, 1, 0x0b, 0x40, 0x60, 0x6f, 0x70, 0x7f, 0x80, 0xff][..]);
    prop_oneof![
        prop_oneof![any::<u8>(), telling].prop_map(Change::Set),
        (0_u8..8).prop_map(Change::Flip),
        prop::collection::vec(any::<u8>(), 1..12).prop_map(Change::Insert),
        (1_usize..300).prop_map(Change::Remove),
        (any::<usize>(), 1_usize..300).prop_map(|(from, length)| Change::Copy(from, length)),
    ]
}

fn apply(bytes: &mut Vec<u8>, at: usize, change: Change) {
    let at = at % bytes.len().max(1);
    match change {
        _ if bytes.is_empty() => {}
        Change::Set(byte) => bytes[at] = byte,
        Change::Flip(bit) => bytes[at] ^= 1 << bit,
        Change::Insert(new) => drop(bytes.splice(at..at, new)),
        Change::Remove(length) => drop(bytes.drain(at..bytes.len().min(at + length))),
        Change::Copy(from, length) => {
            let from = from % bytes.len();
            let piece = bytes[from..bytes.len().min(from + length)].to_vec();
            drop(bytes.splice(at..at, piece));
        }
    }
}

fn mutants(cases: u32, seed: u8, check: impl Fn(Vec<u8>) + std::panic::RefUnwindSafe) {
    let components = components();
    let mutant = (0..components.len(), prop::collection::vec((any::<usize>(), change()), 1..4));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]));
    let outcome = runner.run(&mutant, |(component, changes)| {
        let mut bytes = components[component].clone();
        changes.into_iter().for_each(|(at, change)| apply(&mut bytes, at, change));
        check(bytes);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_component_changed_anywhere_is_refused_or_read_without_a_panic() {
    let (_directory, file) = file();
    let limits = Settings::default().limits;
    mutants(if is_long() { 1_000_000 } else { 3_000 }, 1, |bytes| _ = inspect(&file, &bytes, &limits));
}

#[test]
fn a_changed_component_that_can_be_read_costs_at_most_its_own_calls() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (_directory, file) = file();
    let limits = Settings::default().limits;
    mutants(if is_long() { 2_000 } else { 12 }, 2, |bytes| {
        if inspect(&file, &bytes, &limits).is_err() {
            return;
        }
        let host = TestHost::new()
            .set("limits.concurrent_calls=16")
            .set("limits.guest_cpu_ms=300")
            .set("limits.call_ms=3000")
            .plugin_as("mutant", &bytes);
        let mutant = host.parts().1.tools.plugins().find(|plugin| plugin.name() == "mutant");
        let tool = mutant.and_then(|plugin| plugin.tools.first().cloned()).unwrap_or_default();
        runtime.block_on(async {
            for _ in 0..2 {
                let envelope = host.call(&tool, json!({})).await;
                let kind = envelope.outcome.err().map(|failure| failure.kind);
                assert_ne!(kind, Some(Kind::Internal), "internal error in the host");
            }
            host.result("time", json!({})).await;
        });
    });
}
