//! What lies in a plugin directory: components are taken, the rest is refused with a reason and harms nobody.
#![expect(clippy::disallowed_methods, reason = "a FIFO is made by `mkfifo`")]

use crate::world::{failure, small_host};
use serde_json::json;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolcrib::envelope::Kind;
use toolcrib::tools::manifest::Manifest;
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{TestHost, guest, plugin_source, write_program};

fn word_count() -> Vec<u8> {
    fs::read(guest("word_count")).unwrap()
}

/// A directory of what is no component.
fn rubbish() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("empty.wasm"), "").unwrap();
    fs::write(path("text.wasm"), "hello, this is text").unwrap();
    fs::write(path("core.wasm"), b"\0asm\x01\0\0\0").unwrap();
    fs::write(path("cut.wasm"), &word_count()[..1000]).unwrap();
    File::create(path("large.wasm")).unwrap().set_len(33 << 20).unwrap();
    fs::create_dir(path("directory.wasm")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("dangling.wasm")).unwrap();
    fs::write(path("odd name.wasm"), word_count()).unwrap();
    fs::write(path("notes.txt"), "not looked at").unwrap();
    directory
}

/// Reasons by file name.
fn refused(directory: &Path) -> HashMap<String, String> {
    let registry = plugin_source(BUILTINS, &[directory], &[]).load();
    // All but the one that declared programs are made of; of those that search one is there.
    assert_eq!(registry.plugins().chain(registry.barred()).count(), BUILTINS.len() - 1);
    let name = |origin: &str| Path::new(origin).file_name().unwrap().to_string_lossy().into_owned();
    registry.refused().iter().map(|refused| (name(&refused.origin), refused.reason.clone())).collect()
}

#[test]
fn what_is_no_component_is_refused_with_a_reason() {
    let directory = rubbish();
    let refused = refused(directory.path());
    let reasons = [
        ("empty.wasm", "it is not a component: "),
        ("text.wasm", "it is not a component: "),
        ("core.wasm", "it is a core module, not a component: build it for wasm32-wasip2"),
        ("cut.wasm", "it is not a component: "),
        ("large.wasm", "it is larger than 32 MiB (limit: `limits.component_mib`)"),
        ("directory.wasm", "it is not a regular file"),
        ("dangling.wasm", "is a link that commands could have made"),
        ("odd name.wasm", "`odd name` is not a valid plugin name: "),
    ];
    for (file, reason) in reasons {
        assert!(refused[file].contains(reason), "{file}: {}", refused[file]);
    }
    assert_eq!(refused["text.wasm"], "it is not a component: the file is not WebAssembly");
    assert_eq!(refused.len(), reasons.len());
}

#[test]
fn a_reason_is_one_line() {
    let directory = rubbish();
    for (file, reason) in refused(directory.path()) {
        assert!(!reason.contains('\n') && reason.len() < 200, "{file}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_rubbish_among_its_plugins_answers_all_others() {
    let mut host = small_host().plugin("word_count");
    for (name, bytes) in [("empty", &b""[..]), ("core", b"\0asm\x01\0\0\0"), ("cut", &word_count()[..500])] {
        host = host.plugin_as(name, bytes);
    }
    let host = host.grant("word_count", "files.read=[\"/\"]");
    host.result("time", json!({})).await;
    fs::write(host.work().join("a.txt"), "two words").unwrap();
    assert_eq!(host.result("word_count", json!({ "path": "a.txt" })).await["words"], 2);
}

/// A child that is killed says nothing of the component.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_compiler_was_killed_or_missing_is_taken_when_it_is_called_again() {
    let directory = tempfile::tempdir().unwrap();
    let (compiler, deadly) = (directory.path().join("compiler"), directory.path().join("deadly"));
    let host = small_host().plugin("word_count").compiler(&compiler);
    let failure = host.failure("word_count", json!({ "path": "a" })).await;
    assert_eq!(failure.kind, Kind::Unavailable, "{}", failure.message);
    assert!(failure.message.contains("it could not be compiled"), "{}", failure.message);

    let program = toolcrib_tests::Program::file();
    let script = format!("#!/bin/sh\n[ ! -e {deadly:?} ] || kill -9 $$\nexec {program:?} \"$@\"\n");
    write_program(&compiler, script);
    fs::write(&deadly, "").unwrap();
    taken_again(&host, |message| message.contains("the process that compiled it was killed")).await;

    fs::remove_file(&deadly).unwrap();
    taken_again(&host, |message| message.contains("needs `files`")).await;
}

/// Calls the plugin until the refusal is another one: that of before stands for a moment.
async fn taken_again(host: &TestHost, is_so: impl Fn(&str) -> bool) {
    let begin = Instant::now();
    loop {
        let failure = host.failure("word_count", json!({ "path": "a" })).await;
        if is_so(&failure.message) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{}", failure.message);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Opening a FIFO waits for a writer, unless one asks not to.
#[test]
fn a_fifo_among_the_plugins_does_not_hold_up_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("y.wasm");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (sender, receiver) = channel();
    let plugins = directory.path().to_owned();
    let loading = std::thread::spawn(move || sender.send(refused(&plugins)));
    let refused = receiver.recv_timeout(Duration::from_secs(5));
    // Lets a reader that waits go on, so that the thread ends in any case.
    let _writer = File::options().read(true).write(true).open(&fifo).unwrap();
    drop(File::options().write(true).open(&fifo).unwrap());
    drop(loading);
    assert_eq!(refused.expect("the registry is loaded within 5 s")["y.wasm"], "it is not a regular file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_cut_anywhere_is_refused_at_the_latest_when_it_is_called() {
    let whole = word_count();
    for sixteenth in 0..16 {
        let cut = &whole[..whole.len() * sixteenth / 16];
        let host = small_host().plugin_as("word_count", cut);
        let envelope = host.call("word_count", json!({ "path": "a" })).await;
        let kind = failure(envelope).kind;
        let is_refused = host.parts().1.tools.refused().len() == 1;
        let expected = if is_refused { Kind::UnknownTool } else { Kind::Unavailable };
        assert_eq!(kind, expected, "cut at {} of {}", cut.len(), whole.len());
        host.result("time", json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_cut_between_two_sections_is_refused() {
    let whole = word_count();
    let mut ends = Vec::new();
    let mut at = 8;
    while at < whole.len() {
        let (mut length, mut shift) = (0_usize, 0);
        at += 1;
        loop {
            length |= usize::from(whole[at] & 0x7f) << shift;
            shift += 7;
            at += 1;
            if whole[at - 1] < 0x80 {
                break;
            }
        }
        at += length;
        ends.push(at);
    }
    assert!(ends.len() > 5 && ends.pop() == Some(whole.len()), "sections end at {ends:?}");
    for end in ends {
        let host = small_host().plugin_as("word_count", &whole[..end]);
        let kind = failure(host.call("word_count", json!({ "path": "a" })).await).kind;
        // Without its last custom sections a component is whole: then it is the missing grant that refuses.
        assert!(matches!(kind, Kind::UnknownTool | Kind::Unavailable | Kind::Denied), "cut at {end}: {kind:?}");
        host.result("time", json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_take_the_name_of_one_that_is_built_in() {
    for name in ["time", "Time", "read-file", "Read_File", "RUN-SHELL"] {
        let host = small_host().plugin_as(name, &word_count());
        let tools = &host.parts().1.tools;
        assert_eq!(tools.refused().len(), 1, "{name}");
        assert!(tools.refused()[0].reason.contains("exists already"), "{}", tools.refused()[0].reason);
        assert!(tools.plugin_of("time").ok().unwrap().id.is_builtin());
        assert_eq!(host.result("time", json!({})).await["source"], "harness");
        assert_eq!(host.failure("word_count", json!({ "path": "a" })).await.kind, Kind::UnknownTool);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_plugins_cannot_have_one_name_in_two_spellings() {
    let host = small_host().plugin("word_count").plugin_as("Word-Count", &word_count());
    let tools = &host.parts().1.tools;
    assert_eq!(tools.plugins().chain(tools.barred()).count(), BUILTINS.len());
    let [refused] = tools.refused() else { panic!("one is refused: {:?}", tools.refused()) };
    let kept = tools.plugin_of("word_count").ok().unwrap();
    assert_ne!(refused.origin, kept.id.origin());
    assert_eq!(refused.reason, format!("a plugin `{}` exists already, from {}", kept.name(), kept.id.origin()));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_plugins_cannot_offer_one_tool() {
    let host = small_host().plugin("word_count").plugin_as("another", &word_count());
    let tools = &host.parts().1.tools;
    let [refused] = tools.refused() else { panic!("one is refused: {:?}", tools.refused()) };
    assert!(refused.reason.starts_with("its tool `word_count` could be confused with `word_count` of plugin "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_directory_that_is_missing_is_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(refused(&directory.path().join("missing")), HashMap::new());
}

#[test]
fn a_larger_component_is_taken_where_the_limit_is_larger() {
    let directory = rubbish();
    let registry = plugin_source(&[], &[directory.path()], &["limits.component_mib=64"]).load();
    let large = registry.refused().iter().find(|refused| refused.origin.ends_with("large.wasm")).unwrap();
    assert!(large.reason.starts_with("it is not a component"), "{}", large.reason);
}

/// A plugin that is kept keeps its compiled code, and that the address space of all instances.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_dropped_takes_its_plugins_with_it() {
    let host = small_host();
    host.result("time", json!({})).await;
    let plugins: Vec<_> = host.parts().1.tools.plugins().map(Arc::downgrade).collect();
    drop(host);
    let kept: Vec<String> = plugins.iter().filter_map(|plugin| Some(plugin.upgrade()?.name().to_owned())).collect();
    assert_eq!(kept, [""; 0]);
}

/// Whoever takes the place of a tool that was switched off needs its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_was_switched_off_takes_no_name_and_says_so_when_it_is_called() {
    let off = || TestHost::new().set("plugin.time.enabled=false");
    let host = off();
    let (tools, name) = (&host.parts().1.tools, |plugin: &Manifest| plugin.name().to_owned());
    assert!(tools.plugins().all(|plugin| plugin.name() != "time"));
    assert_eq!(
        tools.barred().map(|plugin| name(plugin)).collect::<Vec<_>>(),
        ["time", "web_search_brave", "web_search_searxng"]
    );
    let refused = host.failure("time", json!({})).await;
    assert_eq!(refused.kind, Kind::Denied);
    assert_eq!(refused.message, "plugin `time` is switched off by `plugin.time.enabled = false`");
    assert!(!host.audit()[1]["plugin_sha256"].is_null(), "the trail says which plugin it was");

    let other = Forged::new("time").bytes();
    let host = off().plugin_as("clock", &other);
    assert_eq!(host.result("time", json!({})).await, "ok", "the tool of the plugin that is there is called");
    let host = TestHost::new().plugin_as("clock", &other);
    assert_eq!(host.parts().1.tools.refused().len(), 1, "a name that is taken stays taken");
}
