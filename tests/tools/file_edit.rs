//! `file_edit`: pieces of text by others, and nothing that was changed meanwhile is lost. The numbers are those of the cases of agents
//! that are made of several processes.

mod labelled;

use serde_json::{Map, Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "file", "old_string": old, "new_string": new })
}

fn content_of(host: &TestHost, name: &str) -> Vec<u8> {
    std::fs::read(host.work().join(name)).expect("a file")
}

fn content(host: &TestHost) -> String {
    String::from_utf8(content_of(host, "file")).expect("text")
}

/// Case 34.
#[tokio::test]
async fn one_occurrence_is_replaced_or_all_or_none() {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), "let a = 1;\r\n\tlet b = 1;\nü 🙂").expect("a file");
    let diff = "--- file\n+++ file\n@@ -1,3 +1,3 @@\n let a = 1;\n-\tlet b = 1;\n+\tlet b = 2;\n ü 🙂\n\\ No newline at end of file\n";
    assert_eq!(host.result("file_edit", edit("\tlet b = 1;", "\tlet b = 2;")).await, diff);
    assert_eq!(content(&host), "let a = 1;\r\n\tlet b = 2;\nü 🙂");
    let twice = host.failure("file_edit", edit("let ", "const ")).await;
    assert_eq!(
        (twice.kind, &*twice.message),
        (Kind::ExecutionFailed, "`old_string` is 2 times in `file`, in lines 1, 2; nothing was changed")
    );
    assert_eq!(content(&host), "let a = 1;\r\n\tlet b = 2;\nü 🙂");
    let mut all = edit("let ", "");
    all["replace_all"] = true.into();
    host.result("file_edit", all).await;
    assert_eq!(content(&host), "a = 1;\r\n\tb = 2;\nü 🙂");
    for (arguments, kind) in [
        (edit("", "x"), Kind::InvalidArguments),
        (edit("a", "a"), Kind::InvalidArguments),
        (edit("not there", "x"), Kind::ExecutionFailed),
        (json!({ "path": "missing", "old_string": "a", "new_string": "b" }), Kind::ExecutionFailed),
        (json!({ "path": ".", "old_string": "a", "new_string": "b" }), Kind::ExecutionFailed),
        (json!({ "path": "file", "old_string": "a" }), Kind::InvalidArguments),
    ] {
        assert_eq!(host.failure("file_edit", arguments.clone()).await.kind, kind, "{arguments}");
    }
    assert_eq!(content(&host), "a = 1;\r\n\tb = 2;\nü 🙂");
}

#[tokio::test]
async fn what_is_no_text_or_too_large_is_refused() {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), b"a\xffb").expect("a file");
    assert!(host.failure("file_edit", edit("a", "c")).await.message.contains("is not text"));
    std::fs::write(host.work().join("file"), "a".repeat(3 << 20) + "b").expect("a file");
    let diff = host.result("file_edit", edit("b", "c")).await;
    let diff = diff.as_str().expect("a diff");
    assert!(diff.len() < 4_100 && diff.ends_with("more lines]"), "{diff}");
    assert!(content(&host).ends_with("aac"));
    std::fs::write(host.work().join("file"), "a".repeat(4 << 20) + "b").expect("a file");
    let failure = host.failure("file_edit", edit("b", "c")).await;
    assert!(failure.kind == Kind::Limit && failure.message.contains("more than the 4 MiB"), "{}", failure.message);
}

/// Cases 32 and 36: what nobody may write is not edited either.
#[tokio::test]
async fn the_rules_of_writing_hold() {
    let host = TestHost::new();
    for path in ["nope/../../x", "/etc/hostname", "~/.ssh/config"] {
        let arguments = json!({ "path": path, "old_string": "a", "new_string": "b" });
        let failure = host.failure("file_edit", arguments).await;
        assert!(matches!(failure.kind, Kind::Denied | Kind::ExecutionFailed), "{path}: {}", failure.message);
    }
    assert!(!host.work().join("../x").exists());
}

/// What was written since is not lost: the revision that was read has to be there still.
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let host = TestHost::new()
        .plugin("hostile")
        .grant("hostile", "files.read=[\"/tmp\"]")
        .set("plugin.hostile.files.write=[\"/tmp\"]");
    let path = host.work().join("file").display().to_string();
    std::fs::write(&path, "before").expect("a file");
    let said = host.result("hostile", json!({ "how": "replace_stale", "text": path })).await;
    assert_eq!(said, "Ok(9) Err(\"busy\")");
    assert_eq!(content(&host), "meanwhile");
}

/// A file keeps its mode and its owner, and a link its target.
#[tokio::test]
async fn a_file_keeps_what_is_not_its_text() {
    let host = TestHost::new();
    let path = host.work().join("file");
    std::fs::write(&path, "\u{feff}a\r\nb\r\n").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65534), Some(65533)).expect("the superuser gives files away");
    }
    let before = std::fs::metadata(&path).expect("a file");
    std::os::unix::fs::symlink("file", host.work().join("link")).expect("a link");
    host.result("file_edit", json!({ "path": "link", "old_string": "b", "new_string": "c" })).await;
    let after = std::fs::metadata(&path).expect("a file");
    assert_eq!(content(&host), "\u{feff}a\r\nc\r\n");
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(host.work().join("link").is_symlink());
}

/// The model reads, and changes what it was shown.
#[tokio::test]
async fn what_was_shown_can_be_changed() {
    let host = TestHost::new();
    let path = host.work().join("file");
    for tool in ["read_file", "file_read"] {
        std::fs::write(&path, "a\u{200b}b \u{1b}[31m\u{202e}x\r\nend\r\n").expect("a file");
        let shown = host.result(tool, json!({ "path": "file" })).await;
        let shown = shown.as_str().expect("a text").to_owned();
        assert_eq!(shown, "a\\u{200b}b \\u{1b}[31m\\u{202e}x\nend\n");
        let diff = host.result("file_edit", edit(&shown, &shown.replace("\\u{202e}", "").replace("end", "END"))).await;
        let lines = "-a\\u{200b}b \\u{1b}[31m\\u{202e}x\n-end\n+a\\u{200b}b \\u{1b}[31mx\n+END\n";
        assert_eq!(diff, format!("--- file\n+++ file\n@@ -1,2 +1,2 @@\n{lines}"));
        assert_eq!(content(&host), "a\u{200b}b \u{1b}[31mx\r\nEND\r\n");
    }
}

#[tokio::test]
async fn it_is_listed_and_a_toolset_may_have_it_alone() {
    let names = async |host: &TestHost, session: Option<Session>| {
        let (called, context) = host.parts();
        let context = session.map_or_else(|| context.clone(), |session| context.clone().session(Arc::new(session)));
        let offered = called.offered(&context).await;
        offered.tools.iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
    };
    let host = TestHost::new().user("[toolset.editor]\ntools = [\"file_edit\"]\n");
    for name in ["file_edit", "file_list", "file_search", "file_find"] {
        assert!(names(&host, None).await.contains(&name.to_owned()), "{name}");
    }
    let editor = Session::on(host.parts().0.toolset("editor").expect("a toolset"), Map::new()).expect("a session");
    assert_eq!(names(&host, Some(editor)).await, ["file_edit"]);
}
