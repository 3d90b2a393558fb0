//! P-36: files, sockets, names, environment and arguments through WASI; preview 1 and 3.
//! Outcome: nothing can be opened, connected or read but files that the plugin was granted; what is not linked refuses the plugin.
//! Switched off: with the host's environment given to WASI (`sandbox/state.rs`) the first test failed, without `is_known` (`component.rs`) the second.

use serde_json::json;
use std::net::TcpListener;
use toolcrib_tests::Siege;
use toolcrib_tests::forge::{OURS, component};

#[test]
fn wasi_reaches_nothing_of_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener that can be asked");
    let address = listener.local_addr().expect("an address").to_string();
    for is_granted in [false, true] {
        let siege = Siege::with("hostile");
        let mut siege = if is_granted { siege.allowing("hostile") } else { siege }.begin();
        for _ in 0..2 {
            let answer = siege.call("hostile", json!({ "how": "use_wasi", "text": address }));
            // To its language `/` is the directory that it begins in; there it may read and write by its grant.
            let mut reached = [false; 10];
            (reached[1], reached[2]) = (is_granted, is_granted);
            assert_eq!(answer["result"], format!("{reached:?}"));
        }
        assert!(listener.accept().is_err(), "somebody connected");
        assert_eq!(siege.program.path("work/planted").exists(), is_granted);
        siege.lift();
    }
}

#[test]
fn wasi_that_is_not_linked_refuses_the_plugin() {
    let imports = [
        ("blobs", "wasi:blobstore/blobstore@0.2.0"),
        ("keys", "wasi:keyvalue/store@0.2.0"),
        ("names", "wasi:nn/graph@0.2.0"),
        ("one", "wasi_snapshot_preview1"),
    ];
    let host = imports[..3].iter().fold(Siege::with("hostile"), |host, (name, import)| {
        host.component(name, &component(&format!(r#"(component (import "{import}" (instance)))"#), name))
    });
    // A component cannot even say the name of preview 1; a core module inside may, and nothing provides it.
    let text = r#"(core module $m (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32))))
        (core instance $none) (core instance (instantiate $m (with "wasi_snapshot_preview1" (instance $none))))"#;
    let mut siege = host.component("one", &component(&format!("(component {OURS} {text})"), "one")).begin();
    for (name, import) in &imports[..3] {
        let reason = format!("was refused: it imports `{import}`, which this host does not know");
        assert!(siege.refusal(name).ends_with(&reason), "{}", siege.refusal(name));
    }
    for _ in 0..2 {
        let failure = siege.failure("one", json!({}));
        assert!(failure.starts_with("unavailable: plugin `one` was refused: "), "{failure}");
        assert!(failure.contains("fd_write"), "{failure}");
    }
    siege.lift();
}
