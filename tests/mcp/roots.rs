//! The workspace of a client that names its roots, for a server that was started without `--directory`.

use crate::rig::Home;
use crate::sdk::{PYTHON, TYPESCRIPT, installed, started};
use serde_json::{Value, json};
use std::path::Path;
use toolcrib_tests::mcp::{Client, Era, envelope, text};
use toolcrib_tests::{Program, skip};

const LIST: &str = "roots/list";
const CHANGED: &str = "notifications/roots/list_changed";
/// How every notice ends that refuses a root.
const HINT: &str = "name another directory with `toolcrib serve --directory DIR`";

fn with_roots() -> Value {
    json!({ "roots": { "listChanged": true } })
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A server in the directory `work`, beside which there is a project.
fn home() -> Home {
    let home = Home::new();
    home.program.write("project/a.txt", "of the project\n");
    home
}

/// Answers the server's question for the roots.
fn name_roots(client: &mut Client, roots: &[String]) {
    let asked = client.take("question for roots", |message| message["method"] == LIST);
    let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } });
    client.write(format!("{answer}\n"));
}

/// A client that has these roots.
fn rooted(home: &Home, roots: &[String]) -> Client {
    let mut client = home.serve_to(Era::Legacy, with_roots());
    name_roots(&mut client, roots);
    client
}

/// Where the tools work: a file that is written by its name alone.
fn works_in(client: &mut Client, home: &Home, directory: &str) -> String {
    let result = client.call("write_file", json!({ "path": "mark", "content": "x" }));
    envelope(&result);
    let mark = home.program.path(directory).join("mark");
    assert!(mark.exists(), "nothing was written in `{directory}`: {result}");
    std::fs::remove_file(mark).expect("a file");
    text(&result).to_owned()
}

#[test]
fn the_first_root_is_the_workspace() {
    let home = home();
    let mut client = rooted(&home, &[uri(&home.program.path("project"))]);
    let said = works_in(&mut client, &home, "project");
    assert!(!said.contains("root"), "{said}");
    assert_eq!(envelope(&client.call("read_file", json!({ "path": "a.txt" })))["result"], "of the project\n");
}

/// Settings and trust are those of the project, as if `--directory` had named it.
#[test]
fn a_project_counts_as_it_does_by_an_option() {
    let home = home();
    let project = home.program.path("project");
    home.program.write("work/toolcrib.toml", "[tools]\noffer = [\"tasks\"]\n");
    home.program.write("project/toolcrib.toml", "[tools]\noffer = [\"notes\"]\n");
    let listed = |is_trusted: bool| {
        let named = project.display().to_string();
        let by_option = home.clone().options(&["--directory", &named]).serve_to(Era::Legacy, with_roots()).tools();
        assert_eq!(rooted(&home, &[uri(&project)]).tools(), by_option);
        let has = |tool: &str| by_option.iter().any(|name| name == tool);
        assert_eq!((has("note_save"), has("task_create")), (is_trusted, false), "{by_option:?}");
    };
    listed(false);
    assert!(home.program.run(&["trust"]).status.success());
    let mut trust = home.program.command(&["trust"]);
    assert!(trust.current_dir(&project).status().expect("it starts").success());
    listed(true);
}

#[test]
fn what_is_not_a_workspace_is_refused_with_a_hint() {
    let home = home();
    home.program.write("home/a.txt", "");
    let path = |name: &str| uri(&home.program.path(name));
    for (root, why) in [
        ("file:///".to_owned(), "`/` is not a workspace"),
        (path("home"), "is your home"),
        (path("missing"), "it is not a directory"),
        (path("project/a.txt"), "it is not a directory"),
        ("file://elsewhere/srv".to_owned(), "it is not on this machine"),
        ("https://example.com/".to_owned(), "it is not a `file:` address"),
    ] {
        let mut client = rooted(&home, std::slice::from_ref(&root));
        let said = works_in(&mut client, &home, "work");
        assert!(said.contains(why) && said.contains(HINT), "{root}: {said}");
        assert!(client.said().contains(why), "{root}: {}", client.said());
        let again = works_in(&mut client, &home, "work");
        assert!(!again.contains(why), "it is said once: {again}");
    }
}

#[test]
fn a_notice_names_further_roots() {
    let home = home();
    let [project, work] = ["project", "work"].map(|name| uri(&home.program.path(name)));
    let mut client = rooted(&home, &["untitled:one".to_owned(), project, work.clone()]);
    let said = works_in(&mut client, &home, "project");
    assert!(said.contains("`untitled:one`") && said.contains(&work) && said.contains("start another server"), "{said}");
}

#[test]
fn a_client_without_a_root_or_an_answer_works_where_it_was_started() {
    let home = home();
    let mut client = rooted(&home, &[]);
    assert!(!works_in(&mut client, &home, "work").contains("root"));
    let mut silent = home.serve_to(Era::Legacy, with_roots());
    let said = works_in(&mut silent, &home, "work");
    assert!(said.contains("it named none within 2 seconds") && said.contains(HINT), "{said}");
    // Its answer comes too late.
    name_roots(&mut silent, &[uri(&home.program.path("project"))]);
    works_in(&mut silent, &home, "work");
    let mut failing = home.serve_to(Era::Legacy, with_roots());
    let asked = failing.take("question for roots", |message| message["method"] == LIST);
    let error = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32603, "message": "none" } });
    failing.write(format!("{error}\n"));
    assert!(works_in(&mut failing, &home, "work").contains("it answered with an error"));
}

/// Clients need not wait with their requests, and no request comes before the workspace is known.
#[test]
fn requests_before_the_answer_are_served_in_the_root() {
    let home = home();
    let mut client = home.serve_to(Era::Legacy, with_roots());
    let list = client.request("tools/list", json!({}));
    let read = client.begin("read_file", json!({ "path": "a.txt" }));
    name_roots(&mut client, &[uri(&home.program.path("project"))]);
    assert!(client.result(list)["tools"].is_array());
    assert_eq!(envelope(&client.result(read))["result"], "of the project\n");
}

#[test]
fn a_change_of_the_roots_is_told_once_and_not_followed() {
    let home = home();
    let mut client = rooted(&home, &[uri(&home.program.path("project"))]);
    works_in(&mut client, &home, "project");
    for is_news in [true, false] {
        client.notify(CHANGED, json!({}));
        client.settle();
        let said = works_in(&mut client, &home, "project");
        assert_eq!(said.contains("roots have changed"), is_news, "{said}");
    }
    assert_eq!(client.count(|message| message["method"] == LIST), 0);
}

#[test]
fn a_server_whose_directory_is_named_or_locked_asks_for_no_roots() {
    let home = home();
    home.program.write("lock.toml", "[lock]\nplugins = \"off\"\n");
    let (named, lock) = (home.program.path("work"), home.program.path("lock.toml"));
    let [named, lock] = [named, lock].map(|path| path.display().to_string());
    for home in [home.clone().options(&["--directory", &named]), home.clone().flags(&["--policy", &lock])] {
        let mut client = home.serve_to(Era::Legacy, with_roots());
        client.notify(CHANGED, json!({}));
        assert!(!works_in(&mut client, &home, "work").contains("root"));
        assert_eq!(client.count(|message| message["method"] == LIST), 0);
    }
}

#[test]
fn a_client_without_roots_or_of_the_newer_era_is_not_asked() {
    let home = home();
    for mut client in [home.serve_to(Era::Legacy, json!({})), home.serve_to(Era::Modern, with_roots())] {
        works_in(&mut client, &home, "work");
        assert_eq!(client.count(|message| message["method"] == LIST), 0);
    }
}

/// It is greeted before there is a host, in its own version and with all that is known by then.
#[test]
fn a_client_with_roots_is_greeted_as_any_other() {
    let home = home();
    let plain = home.start(Era::Legacy).shake_hands();
    for (wanted, given) in [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")] {
        let mut client = home.start(Era::Legacy);
        let who = json!({ "name": "old", "version": "1" });
        let hello = json!({ "protocolVersion": wanted, "capabilities": with_roots(), "clientInfo": who });
        let mut said = client.ask("initialize", hello);
        assert_eq!(said["protocolVersion"], given, "{said}");
        assert!(said["capabilities"]["prompts"].is_object(), "{said}");
        // Whether there are prompts is not known by then.
        said["capabilities"].as_object_mut().expect("an object").remove("prompts");
        for part in ["capabilities", "serverInfo", "instructions"] {
            assert_eq!(said[part], plain[part], "{part}");
        }
        client.notify("notifications/initialized", json!({}));
        name_roots(&mut client, &[uri(&home.program.path("project"))]);
        works_in(&mut client, &home, "project");
        assert!(client.ask("prompts/list", json!({}))["prompts"].as_array().is_some_and(Vec::is_empty));
    }
}

#[test]
fn sdks_name_their_roots() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in [TYPESCRIPT, PYTHON] {
        let program = Program::new();
        program.write("project/a.txt", "of the project\n");
        let scenario = json!({
            "server": started(&program, &[]),
            "tool": "read_file",
            "arguments": { "path": "a.txt" },
            "roots": [uri(&program.path("project"))],
        });
        let outcome = sdk.run(&sdks, scenario);
        assert_eq!(envelope(&outcome["result"])["result"], "of the project\n", "{sdk:?}: {outcome}");
    }
}
