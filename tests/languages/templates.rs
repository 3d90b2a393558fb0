//! What `plugin new` writes is a plugin that is without fault, as it stands.

use super::{C, GO, JS, Lang, PYTHON, Project, RUST, installed};
use serde_json::json;
use std::fs;
use toolcrib_tests::outcome::{code, json_of, stderr, succeeded};
use toolcrib_tests::{Program, skip};

fn is_a_plugin_without_fault(lang: Lang) {
    let project = Project::new(lang, "greeter", &[]);
    let built = project.build();
    let file = project.component();
    assert!(succeeded(&built).ends_with(&format!("{}\n", file)), "{built:?}");
    assert!(stderr(&built).contains("built `greeter` in "), "{}", stderr(&built));

    let bytes = || fs::read(project.path(&format!("{}/greeter.wasm", lang.component))).unwrap();
    let before = bytes();
    let tested = succeeded(&project.run(&["plugin", "test", "greeter"]));
    assert!(tested.ends_with("2 of 2 cases passed\n"), "{tested}");
    if ![JS.name, PYTHON.name].contains(&lang.name) {
        // Built anew without a change, it is the plugin that it was; these two builders make other bytes each time.
        assert_eq!(bytes(), before);
    }
    let checked = project.run(&["plugin", "check", "--deny-notes", &file]);
    assert!(succeeded(&checked).starts_with("ok "), "{checked:?}");
    let seen = json_of(&project.run(&["plugin", "inspect", "--json", &file]));
    let ours: Vec<&str> = seen["capabilities"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    assert!(ours.is_empty() || ours == ["events"], "{ours:?}");

    succeeded(&project.run(&["plugin", "add", &file]));
    let call = |arguments: &[&str]| project.program.call(&[&["greeter"], arguments].concat());
    assert_eq!(call(&["name=Ada"]).1["result"], json!({ "greeting": "Hello, Ada!" }));
    assert_eq!(call(&[]).1["result"], json!({ "greeting": "Hello, world!" }));
    let (status, wrong) = call(&["{\"name\":5}"]);
    assert_ne!(status, 0);
    assert_eq!(wrong["error"]["kind"], "invalid_arguments", "{wrong}");
    let vet = ["plugin", "vet", "--version", "1.0.0", "--expires", "30d", "--criteria", "safe-to-run", &file];
    succeeded(&project.run(&vet));
}

#[test]
fn a_new_plugin_in_rust() {
    is_a_plugin_without_fault(RUST);
}

#[test]
fn a_new_plugin_in_javascript() {
    match installed() {
        Some(_) => is_a_plugin_without_fault(JS),
        None => skip!("what builds JavaScript is not installed"),
    }
}

#[test]
fn a_new_plugin_in_python() {
    match installed() {
        Some(_) => is_a_plugin_without_fault(PYTHON),
        None => skip!("what builds Python is not installed"),
    }
}

#[test]
fn a_new_plugin_in_go() {
    match installed() {
        Some(_) => is_a_plugin_without_fault(GO),
        None => skip!("what builds Go is not installed"),
    }
}

#[test]
fn a_new_plugin_in_c() {
    match installed() {
        Some(_) => is_a_plugin_without_fault(C),
        None => skip!("what builds C is not installed"),
    }
}

/// The tests build with the versions that authors install.
#[test]
fn templates_name_the_builders_that_are_tested() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let packages = ["python", "go", "c"].map(|lang| read(&format!("../sdk/templates/{lang}/requirements.txt")));
    assert_eq!(packages.concat(), read("languages/builders/requirements.txt"));
    let builders =
        |file: &str| serde_json::from_str::<serde_json::Value>(&read(file)).unwrap()["devDependencies"].clone();
    assert_eq!(builders("../sdk/templates/js/package.json"), builders("languages/builders/package.json"));
}

#[test]
fn a_world_has_what_was_asked_for_and_no_more() {
    let program = Program::new();
    succeeded(&program.run(&["plugin", "new", "reader", "--lang", "js", "--needs", "files"]));
    let world = fs::read_to_string(program.path("work/reader/wit/world.wit")).unwrap();
    let imports: Vec<&str> = world.lines().filter_map(|line| line.trim().strip_prefix("import ")).collect();
    assert_eq!(imports, ["toolcrib:plugin/files@0.1.0;", "toolcrib:plugin/events@0.1.0;"]);
    assert!(program.path("work/reader/toolcrib-files.js").exists());
    assert!(!program.path("work/reader/toolcrib-http.js").exists());
    assert!(program.path("work/reader/wit/deps/toolcrib-plugin/files.wit").exists());
}

#[test]
fn nothing_that_is_there_is_written_over_and_a_bad_name_is_refused() {
    let program = Program::new();
    program.write("work/taken/notes.txt", "mine");
    let output = program.run(&["plugin", "new", "taken"]);
    assert_eq!((code(&output), fs::read_dir(program.path("work/taken")).unwrap().count()), (2, 1));
    assert!(stderr(&output).contains("`taken` exists already, and is not an empty directory"), "{}", stderr(&output));
    for name in ["Word", "word-count", "1word", "word_", "w__w", "a_2", "time", "wörd", "", "a/../B", &"w".repeat(65)]
    {
        let output = program.run(&["plugin", "new", name]);
        assert_eq!(code(&output), 2, "{name}: {}", stderr(&output));
    }
    let output = program.run(&["plugin", "new", "x", "--needs", "everything"]);
    assert!(stderr(&output).contains("there is no such capability: choose from shell, "), "{}", stderr(&output));
    assert!(!program.path("work/x").exists());
}

/// The first build of a project with a fault says where it is, and changes nothing.
#[test]
fn a_build_that_fails_shows_why_and_is_no_plugin() {
    let project = Project::new(RUST, "faulty", &[]);
    fs::write(project.path("src/lib.rs"), "fn main() { this is not Rust }").unwrap();
    let output = project.build();
    assert_ne!(code(&output), 0);
    let told = stderr(&output);
    assert!(told.contains("error: expected") && told.contains("src/lib.rs"), "{told}");
    assert!(told.contains("the build failed (see above)"), "{told}");

    let settings = project.path("toolcrib-plugin.toml");
    let text = fs::read_to_string(&settings).unwrap();
    for (with, wanted) in [
        ("build = [\"no-such-builder\"]", "the build starts a program that is missing (see above): `no-such-builder`"),
        ("build = []", "`build` names no program"),
        ("bild = []", "unknown field `bild`"),
    ] {
        let lines = text.lines().map(|line| if line.starts_with("build") { with } else { line });
        fs::write(&settings, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let output = project.build();
        assert!(code(&output) != 0 && stderr(&output).contains(wanted), "{}", stderr(&output));
    }
    let elsewhere = project.run(&["plugin", "build", "."]);
    assert!(stderr(&elsewhere).contains("toolcrib plugin new"), "{}", stderr(&elsewhere));
}
