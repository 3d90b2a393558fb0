//! S-06: a command leaves a link, a second name or a FIFO where the host itself reads: texts of toolsets, usage pages, words of plugins, imports.
//! Outcome: the host follows no link that a command could have made and shows no credential, with the same answer at each door, and waits for nothing.
//! Switched off: with `HostReads::is_out_of_reach` (`policy/host_reads.rs`) always `true` the notes, and without `Protected::refuse` the key, were shown.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use toolcrib_tests::mcp::{Client, Era};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, guest, on_path};

const SETTINGS: &str = "config/toolcrib/toolcrib.toml";
/// Where commands write.
const TEXT: &str = "work/texts/style.md";
const PLAIN: &str = "Write plainly.";
const KEY: &str = "KEY-OF-THE-USER";
/// No credential, and nobody's to read for a tool.
const NOTES: &str = "NOTES-OF-THE-USER";
/// What is in the place of the text, and a part of why it is not read, for those who may know where it lies.
const ATTACKS: [(&str, &str); 6] = [
    ("a link to a key", "is a link that commands could have made"),
    ("a link to notes", "is a link that commands could have made"),
    ("a link on the way", "is a link that commands could have made"),
    ("a second name of a key", "is also a file of"),
    ("a FIFO", "it is not a regular file"),
    ("a directory", "it is not a regular file"),
];

/// A user with a key and notes, whose settings name a text of the workspace for an agent and for a program.
fn program() -> Arc<Program> {
    let program = Program::new();
    program.write("home/.ssh/style.md", KEY);
    program.write("home/notes.md", NOTES);
    program.write(TEXT, PLAIN);
    let text = program.path(TEXT);
    program.write(
        SETTINGS,
        format!(
            "[toolset.otter]\ntools = [\"context_show\"]\ncontext.style = {{ file = {text:?}, about = \"Ours.\" }}\n"
        ),
    );
    program.declares("cat", &on_path("cat"), &format!("usage = {text:?}"));
    Arc::new(program)
}

/// Puts something in the place of a file, as a command there can.
fn attack(program: &Program, place: &str, name: &str, what: &str) {
    let (directory, file) = (program.path(place), program.path(place).join(name));
    let _ = fs::remove_dir_all(&directory);
    let _ = fs::remove_file(&directory);
    if what == "a link on the way" {
        // The name that is looked for is in the directory of keys, too.
        program.write(&format!("home/.ssh/{name}"), KEY);
        return symlink(program.path("home/.ssh"), &directory).expect("a link");
    }
    fs::create_dir_all(&directory).expect("a directory");
    let made = match what {
        "a link to a key" => symlink(program.path("home/.ssh/style.md"), &file),
        "a link to notes" => symlink(program.path("home/notes.md"), &file),
        "a second name of a key" => fs::hard_link(program.path("home/.ssh/style.md"), &file),
        "a directory" => fs::create_dir(&file),
        "a FIFO" => mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).map_err(Into::into),
        _ => panic!("{what}"),
    };
    made.expect("it is made");
}

/// Takes it away again. A directory that is one to everybody else is not followed for that.
fn lift(program: &Program, place: &str) {
    let directory = program.path(place);
    match directory.is_symlink() {
        true => fs::remove_file(directory),
        false => fs::remove_dir_all(directory),
    }
    .expect("it goes");
}

fn is_quiet(said: &str, what: &str) {
    assert!(!said.contains(KEY) && !said.contains(NOTES), "{what}: {said}");
}

/// What an agent is told of the text by a line of `run`.
fn by_run(program: &Program) -> Value {
    let mut running = program.start(&["run"]);
    running.write(format!("{}\n", json!({ "id": 1, "open": { "toolset": "otter" } })));
    assert_eq!(running.line()["result"]["session"], "s1");
    let show = json!({ "id": 2, "session": "s1", "tool": "context_show", "arguments": { "name": "style" } });
    running.write(format!("{show}\n"));
    running.line()
}

fn served(program: &Arc<Program>) -> Client {
    let mut serve = program.command(&["serve", "--toolset", "otter"]);
    let mut client = Client::start(&mut serve, program.clone(), Era::Legacy, json!({}));
    client.shake_hands();
    client
}

#[test]
fn a_text_of_a_toolset_is_read_through_nothing_that_commands_made() {
    let program = program();
    assert_eq!(by_run(&program)["result"], PLAIN);
    for (what, why) in ATTACKS {
        attack(&program, "work/texts", "style.md", what);
        let answer = by_run(&program);
        is_quiet(&answer.to_string(), what);
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{what}: {answer}"));
        assert!(message.starts_with("the context `style` cannot be read: "), "{what}: {message}");
        // Where it lies is not told.
        assert!(!message.contains("texts") && !message.contains(".ssh"), "{what}: {message}");
        assert!(why.starts_with("is also") || message.contains(why.trim_start_matches("is ")), "{what}: {message}");
        lift(&program, "work/texts");
    }
}

#[test]
fn a_resource_is_read_through_nothing_that_commands_made() {
    let program = program();
    let mut client = served(&program);
    let uri = json!({ "uri": "toolcrib://context/style" });
    assert_eq!(client.ask("resources/read", uri.clone())["contents"][0]["text"], PLAIN);
    for (what, _) in ATTACKS {
        attack(&program, "work/texts", "style.md", what);
        let id = client.request("resources/read", uri.clone());
        let (_, message) = client.error(id);
        is_quiet(&message, what);
        assert!(message.starts_with("the context `style` cannot be read: "), "{what}: {message}");
        let shown = client.call("context_show", json!({ "name": "style" }));
        is_quiet(&shown.to_string(), what);
        assert_eq!(shown["isError"], true, "{what}: {shown}");
        lift(&program, "work/texts");
    }
}

#[test]
fn a_usage_page_is_read_through_nothing_that_commands_made() {
    let program = program();
    let described = || succeeded(&program.run(&["tools", "--json", "cat"]));
    let listed = || program.call(&["bin_list"]).1["result"]["programs"][0]["has_usage"].clone();
    assert!(described().contains(PLAIN) && listed() == true, "{}", described());
    for (what, why) in ATTACKS {
        attack(&program, "work/texts", "style.md", what);
        let described = described();
        is_quiet(&described, what);
        assert!(!described.contains("## Usage"), "{what}: {described}");
        assert_eq!(listed(), false, "{what}");
        let said = stdout(&program.run(&["doctor"]));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        is_quiet(&said, what);
        assert!(said.contains("`cat` has no usage page: ") && said.contains(why), "{what}: {said}");
        lift(&program, "work/texts");
    }
}

/// The words are in the place of a text, beside a component of another world.
#[test]
fn plugins_and_their_words_are_read_through_nothing_that_commands_made() {
    let program = program();
    let plugins = program.path("work/plugins").display().to_string();
    let shop = fs::read(guest("shop")).expect("a guest that was built");
    let list = || json_of(&program.run(&["--plugins", &plugins, "plugin", "list", "--json"]));
    let reason = || list()["refused"][0]["reason"].as_str().unwrap_or_default().to_owned();
    for (what, why) in ATTACKS.iter().filter(|(what, _)| *what != "a link on the way") {
        attack(&program, "work/plugins", "shop.tool.toml", what);
        program.write("work/plugins/shop.wasm", &shop);
        let reason = reason();
        is_quiet(&reason, what);
        assert!(reason.contains(why), "{what}: {reason}");
        lift(&program, "work/plugins");
    }
    program.write("work/shop.wasm", &shop);
    fs::create_dir(program.path("work/plugins")).expect("a directory");
    symlink("../shop.wasm", program.path("work/plugins/shop.wasm")).expect("a link");
    assert!(reason().contains("is a link that commands could have made"), "{}", reason());
    // Where no command writes, people keep links to what they build.
    let own = program.path("data/toolcrib/plugins");
    fs::create_dir_all(&own).expect("a directory");
    fs::remove_file(program.path("work/plugins/shop.wasm")).expect("it goes");
    symlink(program.path("work/shop.wasm"), own.join("shop.wasm")).expect("a link");
    assert!(list()["plugins"].as_array().expect("a list").iter().any(|plugin| plugin["name"] == "shop"), "{}", list());
}

#[test]
fn an_import_reads_and_writes_through_nothing_that_commands_made() {
    let program = program();
    let agentfile = "FROM scratch\nNAME otter\nCONTEXT style \"Ours.\" <<EOF\nWrite plainly.\nEOF\n";
    let import = |file: &str| program.run(&["toolset", "import", file, "--files", "texts"]);
    program.write("work/Agentfile", agentfile);
    lift(&program, "work/texts");
    for (what, _) in ATTACKS {
        attack(&program, "work/texts", "style.md", what);
        let output = import("Agentfile");
        assert_eq!(code(&output), 2, "{what}: {}", stdout(&output));
        assert!(stderr(&output).contains("style.md` cannot be written: "), "{what}: {}", stderr(&output));
        is_quiet(&stderr(&output), what);
        lift(&program, "work/texts");
    }
    // Nor is a new file put behind a link.
    fs::create_dir(program.path("home/autostart")).expect("a directory");
    symlink(program.path("home/autostart"), program.path("work/texts")).expect("a link");
    assert_eq!(code(&import("Agentfile")), 2);
    assert_eq!(fs::read_dir(program.path("home/autostart")).expect("a directory").count(), 0);
    lift(&program, "work/texts");
    for (what, why) in ATTACKS {
        attack(&program, "work/agent", "Agentfile", what);
        let output = import("agent/Agentfile");
        assert!(code(&output) == 2 && stderr(&output).contains(why), "{what}: {}", stderr(&output));
        is_quiet(&stderr(&output), what);
        lift(&program, "work/agent");
    }
    assert_eq!(code(&import("Agentfile")), 0);
}

/// A person's links stand where no command writes.
#[test]
fn links_of_people_are_followed() {
    let program = program();
    let named = program.path("config/toolcrib/style.md");
    symlink(program.path(TEXT), &named).expect("a link");
    let text = fs::read_to_string(program.path(SETTINGS)).expect("settings");
    program.write(SETTINGS, text.replace(&program.path(TEXT).display().to_string(), &named.display().to_string()));
    assert_eq!(by_run(&program)["result"], PLAIN);
    // What it leads to is judged by its own place.
    fs::remove_file(&named).expect("it goes");
    symlink(program.path("home/.ssh/style.md"), &named).expect("a link");
    let answer = by_run(&program).to_string();
    is_quiet(&answer, "a link to a key");
    assert!(answer.contains("it is closed to tools"), "{answer}");
}
