//! `visitor`, a component that was written for another host, with the standard library of its language: its files are those that it was granted.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib_tests::outcome::{json_of, stderr, succeeded};
use toolcrib_tests::{Program, TestHost, guest};

fn unallowed() -> TestHost {
    // It has the names of tools that came with Toolcrib.
    let host = TestHost::new().set("plugin.read_file.enabled=false").set("plugin.write_file.enabled=false");
    let host = host.plugin("visitor");
    fs::write(host.work().join("a.txt"), "one\ntwo\n").expect("a file");
    host
}

/// It may read and write in `inside`, below the working directory.
fn allowed() -> TestHost {
    let host = unallowed();
    let inside = host.work().join("inside");
    fs::create_dir(&inside).expect("a directory");
    fs::write(inside.join("b.txt"), "inside").expect("a file");
    let host = host.grant("visitor", &format!("files.read=[{inside:?}]"));
    host.grant("visitor", &format!("files.write=[{inside:?}]"))
}

async fn refused(host: &TestHost, tool: &str, arguments: Value) -> Failure {
    host.failure(tool, arguments).await
}

async fn did(host: &TestHost, tool: &str, arguments: Value) -> Value {
    host.result(tool, arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_it_reaches_no_file_and_the_hint_says_what_would_allow_it() {
    let host = unallowed();
    for (tool, arguments) in [
        ("read-file", json!({ "path": "a.txt" })),
        ("list-directory", json!({ "path": "." })),
        ("get-file-info", json!({ "path": "missing" })),
        ("search-file", json!({ "path": ".", "pattern": "a" })),
        ("write-file", json!({ "path": "a.txt", "content": "x" })),
        ("make-directory", json!({ "path": "new" })),
    ] {
        let failure = refused(&host, tool, arguments).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{tool}: {}", failure.message);
        let hint = failure.hint.unwrap_or_default();
        assert!(hint.starts_with("`visitor` needs `files`, which the policy does not grant"), "{tool}: {hint}");
        assert!(hint.contains("toolcrib plugin allow") && hint.contains("--read DIR"), "{tool}: {hint}");
    }
    assert_eq!(fs::read_to_string(host.work().join("a.txt")).unwrap(), "one\ntwo\n");
    assert!(!host.work().join("new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_grant_it_reads_there_by_both_kinds_of_paths() {
    let host = allowed();
    let whole = host.work().join("inside/b.txt").display().to_string();
    for path in ["inside/b.txt", "./inside/../inside/b.txt", &whole] {
        assert_eq!(did(&host, "read-file", json!({ "path": path })).await, "inside", "{path}");
    }
    assert_eq!(did(&host, "list-directory", json!({ "path": "inside" })).await, json!(["[FILE] b.txt"]));
    let info = did(&host, "get-file-info", json!({ "path": "inside/b.txt" })).await;
    assert!(info.as_str().unwrap().contains('6'), "{info}");
    let large = "x".repeat(3 << 20);
    fs::write(host.work().join("inside/large.txt"), &large).unwrap();
    let failure = refused(&host, "read-file", json!({ "path": "inside/large.txt" })).await;
    assert!(failure.message.contains("limit: result"), "it was read whole: {}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_was_not_granted_is_denied_and_what_is_not_there_is_missing() {
    let host = allowed();
    symlink("../a.txt", host.work().join("inside/out")).expect("a link");
    fs::create_dir(host.work().join("inside/.ssh")).unwrap();
    for path in ["a.txt", "inside/../a.txt", "inside/out", "/etc/hostname", "../../etc/hostname"] {
        let failure = refused(&host, "read-file", json!({ "path": path })).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{path}");
        assert!(!failure.message.contains("one"), "{path}: {}", failure.message);
    }
    let failure = refused(&host, "read-file", json!({ "path": "inside/out" })).await;
    assert!(failure.hint.unwrap().contains("may not read"), "the reason is told");
    let failure = refused(&host, "read-file", json!({ "path": "inside/missing" })).await;
    assert!(failure.message.contains("No such file"), "{}", failure.message);
    assert_eq!(failure.hint, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_writes_is_written_at_once_or_not_at_all() {
    let host = allowed().set("tools.files_confirm=never");
    let (new, old) = (host.work().join("inside/new.txt"), host.work().join("inside/b.txt"));
    did(&host, "write-file", json!({ "path": "inside/new.txt", "content": "zwei Wörter" })).await;
    did(&host, "write-file", json!({ "path": "inside/b.txt", "content": "" })).await;
    did(&host, "make-directory", json!({ "path": "inside/deep" })).await;
    assert_eq!(fs::read_to_string(&new).unwrap(), "zwei Wörter");
    assert_eq!(fs::read_to_string(&old).unwrap(), "");
    assert!(host.work().join("inside/deep").is_dir());
    let failure = refused(&host, "write-file", json!({ "path": "a.txt", "content": "x" })).await;
    assert!(failure.hint.unwrap().contains("may not write"));
    // What `files` cannot do, it cannot do either, and says so.
    for (tool, arguments) in [
        ("remove-file", json!({ "path": "inside/new.txt" })),
        ("move-path", json!({ "source": "inside/new.txt", "destination": "inside/c.txt" })),
    ] {
        let failure = refused(&host, tool, arguments).await;
        assert!(failure.hint.as_deref().unwrap_or_default().contains("a component cannot"), "{tool}: {failure:?}");
    }
    assert!(new.exists());
    let actions = host.audit().iter().filter_map(|line| line["actions"].as_array().cloned()).flatten().count();
    assert!(actions >= 4, "what it did is on record");
}

/// A person sees what will be in the file. A file has no answer when it is closed, so the call has none that says that it is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_about_what_it_writes_and_may_refuse() {
    let host = allowed().answering(Answer::No).set("tools.files_confirm=always");
    let failure = refused(&host, "write-file", json!({ "path": "inside/new.txt", "content": "text" })).await;
    assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
    assert!(failure.message.contains("new.txt` was not written"), "{}", failure.message);
    assert!(!host.work().join("inside/new.txt").exists());
    assert_eq!(host.asked().len(), 1);
}

/// As the README of such a component would have it: added, named, allowed, called.
#[test]
fn it_is_installed_with_words_of_its_own() {
    let program = Program::new();
    let file = program.path("work/fs.wasm");
    fs::copy(guest("visitor"), &file).unwrap();
    let clash = program.run(&["plugin", "add", "fs.wasm"]);
    assert!(stderr(&clash).contains("could be confused with `read_file`"), "{}", stderr(&clash));
    assert!(stderr(&clash).contains("write `prefix = \"fs_\"` into `fs.tool.toml`"), "{}", stderr(&clash));

    program.write(
        "work/fs.tool.toml",
        "prefix = 'fs_'\n[tool.read-file]\nname = 'peek'\nsummary = 'Reads a note.'\nwhen-to-use = 'Notes only.'\n\
         parameters.path = 'The name of the note.'\n[tool.search-file.constants]\npath = 'notes'\n",
    );
    succeeded(&program.run(&["plugin", "add", "fs.wasm"]));
    fs::create_dir(program.path("work/notes")).unwrap();
    program.write("work/notes/todo.txt", "buy bread");
    succeeded(&program.run(&["plugin", "allow", "fs", "--read", "notes"]));
    let described = json_of(&program.run(&["tools", "--json", "peek"]));
    assert_eq!(described["inputSchema"]["properties"]["path"]["description"], "The name of the note.");
    let description = described["description"].as_str().unwrap();
    assert!(description.starts_with("Reads a note.") && description.contains("Notes only."), "{description}");
    assert_eq!(program.call(&["peek", "path=notes/todo.txt"]).1["result"], "buy bread");
    // The model does not see where is looked, and cannot say it.
    let described = json_of(&program.run(&["tools", "--json", "fs_search-file"]));
    assert_eq!(described["inputSchema"]["required"], json!(["pattern"]));
    assert_eq!(program.call(&["fs_search-file", "pattern=todo"]).1["result"], "notes/todo.txt");
    assert_eq!(program.call(&["fs_search-file", "pattern=todo", "path=."]).1["error"]["kind"], "invalid_arguments");

    // Other words are other definitions: what was allowed was not about them.
    program.write("data/toolcrib/plugins/fs.tool.toml", "prefix = 'fs_'\n[tool.search-file.constants]\npath = '/'\n");
    let refused = program.call(&["fs_search-file", "pattern=todo"]).1;
    assert_eq!(refused["error"]["kind"], "unavailable", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("definitions have changed"), "{refused}");
    succeeded(&program.run(&["plugin", "remove", "fs"]));
    assert!(!program.path("data/toolcrib/plugins/fs.tool.toml").exists());
}

#[test]
fn a_function_can_be_no_tool() {
    let program = Program::new();
    fs::copy(guest("visitor"), program.path("work/fs.wasm")).unwrap();
    let tools = || json_of(&program.run(&["plugin", "inspect", "--json", "fs.wasm"]))["tools"].clone();
    let all: Vec<String> = serde_json::from_value(tools()).unwrap();
    let omit = |tools: &[String]| tools.iter().map(|tool| format!("[tool.{tool}]\nomit = true\n")).collect::<String>();
    program.write("work/fs.tool.toml", "prefix = 'fs_'\n".to_owned() + &omit(&all[1..]));
    assert_eq!(tools(), json!([format!("fs_{}", all[0])]));
    succeeded(&program.run(&["plugin", "add", "fs.wasm"]));
    assert_eq!(program.call(&[&format!("fs_{}", all[1]), "{}"]).1["error"]["kind"], "unknown_tool");
    succeeded(&program.run(&["plugin", "allow", "fs", "--nothing"]));
    let denied = program.call(&[&format!("fs_{}", all[0]), "path=a"]).1;
    assert_eq!(denied["error"]["kind"], "execution_failed", "{denied}");
    program.write("work/fs.tool.toml", omit(&all));
    let refused = program.run(&["plugin", "inspect", "fs.wasm"]);
    assert!(stderr(&refused).contains("omit each of its tools"), "{}", stderr(&refused));
    // Other names for its tools are not another name for itself.
    fs::copy(guest("visitor"), program.path("work/time.wasm")).unwrap();
    let taken = program.run(&["plugin", "add", "time.wasm"]);
    assert!(stderr(&taken).contains("rename your file"), "{}", stderr(&taken));
}

#[test]
fn words_that_fit_nothing_refuse_the_plugin() {
    let program = Program::new();
    fs::copy(guest("visitor"), program.path("work/fs.wasm")).unwrap();
    for (words, wanted) in [
        ("[tool.raed-file]\nname = 'x'", "`raed-file`"),
        ("[tool.read-file]\nsumary = 'x'", "sumary"),
        ("prefix = ' '", "not a valid tool name"),
        ("prefix", "fs.tool.toml"),
    ] {
        program.write("work/fs.tool.toml", words);
        let refused = program.run(&["plugin", "inspect", "fs.wasm"]);
        assert!(!refused.status.success() && stderr(&refused).contains(wanted), "{words}: {}", stderr(&refused));
    }
    fs::copy(guest("word_count"), program.path("work/wc.wasm")).unwrap();
    program.write("work/wc.tool.toml", "prefix = 'x_'");
    let refused = program.run(&["plugin", "inspect", "wc.wasm"]);
    assert!(stderr(&refused).contains("its tools say themselves what they are for"), "{}", stderr(&refused));
}
