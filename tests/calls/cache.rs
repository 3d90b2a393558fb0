//! Compiled code on disk: believed only as it was written, compiled anew otherwise; a plugin speaks for itself once.

use crate::world::{cold_host, started_with};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Envelope, Kind};
use toolcrib_builtins::{BUILTINS, Builtin};
use toolcrib_tests::TestHost;

/// The files of the cache with their bytes, but for the one that is of no component alone.
fn entries(host: &TestHost) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(host.dirs().state.join("code")).unwrap();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.file_name().unwrap() != "components");
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Calls `time` as a program that is started again, and that does not know by itself what its plugins say.
async fn time_again(host: &TestHost, set: &[&str]) -> Envelope {
    let asked = BUILTINS.iter().map(|builtin| Builtin { definitions: "", ..*builtin });
    let (again, context) = started_with(asked.collect::<Vec<_>>().leak(), host, set);
    again.call(Request { tool: "time".into(), arguments: Arguments::Json(json!({})) }, &context).await
}

/// A host with nothing in its cache, and with a plugin that has to be asked what it offers: the built-in one of these bytes, whose words are
/// known, is switched off.
fn asking_host() -> TestHost {
    let bytes = BUILTINS.iter().find(|builtin| builtin.name == "time").unwrap().bytes;
    cold_host().plugin_as("clock", bytes).set("plugin.time.enabled=false")
}

/// A host whose cache holds `time`, and that entry.
async fn cached() -> (TestHost, PathBuf, Vec<u8>) {
    let host = asking_host();
    host.result("time", json!({})).await;
    let mut entries = entries(&host);
    assert_eq!(entries.len(), 1);
    let (path, good) = entries.pop_first().unwrap();
    (host, path, good)
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_was_kept_is_used_and_not_written_again() {
    let (host, path, good) = cached().await;
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert!(time_again(&host, &[]).await.outcome.is_ok());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    assert_eq!(entries(&host), BTreeMap::from([(path, good)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn code_with_a_changed_byte_is_compiled_anew_and_never_run() {
    let (host, path, good) = cached().await;
    for at in [0, 31, 32, 63, 64, 80, good.len() / 3, good.len() / 2, good.len() - 1] {
        let mut forged = good.clone();
        forged[at] ^= 1;
        fs::write(&path, forged).unwrap();
        assert!(time_again(&host, &[]).await.outcome.is_ok(), "byte {at}");
        assert!(fs::read(&path).unwrap() == good, "byte {at} is still changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_was_cut_or_replaced_is_compiled_anew() {
    let (host, path, good) = cached().await;
    for bytes in [&[][..], b"x", &good[..40], &good[..good.len() - 1], &[good.as_slice(), b"x"].concat()] {
        fs::write(&path, bytes).unwrap();
        assert!(time_again(&host, &[]).await.outcome.is_ok());
        assert!(fs::read(&path).unwrap() == good, "{} bytes were believed", bytes.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_of_another_plugin_is_not_run_in_its_place() {
    let (host, path, good) = cached().await;
    host.call("read_file", json!({ "path": "a" })).await;
    let mut others = entries(&host);
    others.remove(&path);
    fs::write(&path, others.pop_first().unwrap().1).unwrap();
    let envelope = time_again(&host, &[]).await;
    assert_eq!(envelope.outcome.unwrap().result["source"], "harness");
    assert!(fs::read(&path).unwrap() == good);
}

#[tokio::test(flavor = "multi_thread")]
async fn code_under_another_key_is_compiled_anew() {
    let (host, path, good) = cached().await;
    for key in [vec![0; 32], vec![0; 31], Vec::new()] {
        fs::write(host.dirs().state.join("code.key"), key).unwrap();
        assert!(time_again(&host, &[]).await.outcome.is_ok());
        let anew = fs::read(&path).unwrap();
        // The MACs of both parts.
        assert!(anew[..32] != good[..32] && anew[32..64] != good[32..64] && anew[64..] == good[64..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_and_key_are_for_this_user_alone() {
    let (host, path, _) = cached().await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = host.dirs().state;
    assert_eq!([mode(state.join("code")), mode(path), mode(state.join("code.key"))], [0o700, 0o600, 0o600]);
}

/// What a plugin says of itself is more than 1 KiB, what `time` answers is less: the bound tells whether it was asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_asked_for_its_definitions_once_per_digest() {
    const BOUND: &str = "limits.host_call_kib=1";
    let cold = crate::world::failure(asking_host().set(BOUND).call("time", json!({})).await);
    assert_eq!(cold.kind, Kind::Unavailable);
    assert!(cold.message.contains("bytes from the guest in one host call 1 KiB"), "{}", cold.message);
    let (host, ..) = cached().await;
    let warm = time_again(&host, &[BOUND]).await;
    assert!(warm.outcome.is_ok(), "{}", warm.to_json());
}
