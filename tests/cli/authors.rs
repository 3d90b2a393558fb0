//! What authors of plugins use: `plugin pack`, `check`, `wit` and `doctor`. `plugin new` and `build` are in `tests/languages`.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toolcrib_tests::forge::{Forged, component, liar, naming};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, guest};

/// A component that says `tools` and has no section.
fn nameless(tools: &[&str]) -> Vec<u8> {
    let said: Vec<_> = tools.iter().map(|tool| json!({ "name": tool, "summary": "Answer." })).collect();
    let named = liar(&json!({ "tools": said }), &["x"]);
    let section = naming(Vec::new(), "x").len();
    named[..named.len() - section].to_vec()
}

#[test]
fn packing_writes_the_names_that_the_component_says() {
    let program = Program::new();
    program.write("work/built.wasm", nameless(&["one", "two"]));
    let refused = program.run(&["plugin", "add", "built.wasm"]);
    assert!(stderr(&refused).contains("run `toolcrib plugin pack` on its file"), "{}", stderr(&refused));

    assert_eq!(succeeded(&program.run(&["plugin", "pack", "built.wasm"])), "wrote built.wasm with one, two\n");
    succeeded(&program.run(&["plugin", "add", "built.wasm"]));
    assert_eq!(program.call(&["two"]).1["result"], "two");

    // Once more, and over a section that is not true any more.
    let packed = fs::read(program.path("work/built.wasm")).unwrap();
    succeeded(&program.run(&["plugin", "pack", "built.wasm"]));
    assert_eq!(fs::read(program.path("work/built.wasm")).unwrap(), packed);
    program.write("work/false.wasm", naming(nameless(&["other"]), "one\nthree"));
    assert_eq!(succeeded(&program.run(&["plugin", "pack", "false.wasm"])), "wrote false.wasm with other\n");
}

#[test]
fn a_packed_file_may_be_read_by_whoever_could_read_what_was_built() {
    let program = Program::new();
    program.write("work/built.wasm", nameless(&["one"]));
    let built = program.path("work/built.wasm");
    fs::set_permissions(&built, fs::Permissions::from_mode(0o644)).unwrap();
    succeeded(&program.run(&["plugin", "pack", "built.wasm", "--output", "plugin.wasm"]));
    assert_eq!(fs::metadata(program.path("work/plugin.wasm")).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read(&built).unwrap(), nameless(&["one"]), "what was built stays as it is");
}

#[test]
fn a_core_module_becomes_a_component_of_its_own_world_or_of_the_contract() {
    let program = Program::new();
    let forged = Forged::new("answer");
    program.write("work/knows.wasm", forged.core_module());
    program.write("work/bare.wasm", forged.bare_module());
    for name in ["knows", "bare"] {
        let file = format!("{name}.wasm");
        let wrote =
            succeeded(&program.run(&["plugin", "pack", &file, "--output", &format!("packed/../{name}_p.wasm")]));
        assert!(wrote.ends_with("with answer\n"), "{wrote}");
        let seen = json_of(&program.run(&["plugin", "inspect", "--json", &format!("{name}_p.wasm")]));
        assert_eq!(seen["tools"], json!(["answer"]));
    }
    // Another world, which it does not fit.
    program.write("work/wit/world.wit", "package a:b;\nworld plugin { export other: func(); }\n");
    let output = program.run(&["plugin", "pack", "bare.wasm", "--wit", "wit"]);
    assert!(
        stderr(&output).contains("`bare.wasm` cannot be a plugin: it does not fit the world `plugin`"),
        "{output:?}"
    );
}

#[test]
fn what_cannot_be_packed_says_why_and_stays_as_it_is() {
    let program = Program::new();
    let unknown = component(r#"(component (import "wasi:keyvalue/store@0.2.0" (instance)))"#, "x");
    let files: [(&str, Vec<u8>, &str); 6] = [
        ("text", b"hello".to_vec(), "the file is not WebAssembly"),
        ("cut", nameless(&["one"])[..5000].to_vec(), "it is not a component"),
        ("unknown", unknown, "it imports `wasi:keyvalue/store@0.2.0`, which this host does not know"),
        ("nothing", nameless(&[]), "it names no tools"),
        ("odd", nameless(&["odd name"]), "`odd name` is not a valid tool name"),
        ("endless", liar(&json!({ "tools": [], "spin": true }), &["x"]), "limit"),
    ];
    for (name, bytes, reason) in files {
        program.write(&format!("work/{name}.wasm"), &bytes);
        let output = program.run(&["plugin", "pack", &format!("{name}.wasm")]);
        assert!(code(&output) != 0 && stderr(&output).contains(reason), "{name}: {}", stderr(&output));
        assert_eq!(fs::read(program.path(&format!("work/{name}.wasm"))).unwrap(), bytes, "{name}");
    }
    assert_eq!(code(&program.run(&["plugin", "pack", "missing.wasm"])), 2);
}

/// Programs in C are plugins as they are; those in Go are not, without the runtime that only their start would make.
#[test]
fn a_program_that_cannot_be_packed_is_told_to_become_a_library() {
    let program = Program::new();
    let built = |start: &str, first: &str| {
        Forged::new("answer").parts(&format!("(func (export \"{start}\"))")).definitions(first).bare_module()
    };
    program.write("work/good.wasm", built("_start", ""));
    assert_eq!(succeeded(&program.run(&["plugin", "pack", "good.wasm"])), "wrote good.wasm with answer\n");
    for (start, is_program) in [("_start", true), ("_initialize", false)] {
        program.write("work/bad.wasm", built(start, "unreachable"));
        let output = program.run(&["plugin", "pack", "bad.wasm"]);
        assert!(stderr(&output).contains("`bad.wasm` cannot be a plugin: the plugin stopped"), "{output:?}");
        assert_eq!(stderr(&output).contains("in Go with `-buildmode=c-shared`"), is_program, "{output:?}");
    }
}

/// The findings of a check, as `what: found`.
fn findings(program: &Program, verdict: &str) -> Vec<String> {
    let output = program.run(&["plugin", "check", "--json", "plugin.wasm"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let is_ok = report["ok"].as_bool().unwrap();
    assert_eq!(code(&output), i32::from(!is_ok));
    let checks = report["checks"].as_array().unwrap().iter().filter(|finding| finding["verdict"] == verdict);
    checks
        .map(|finding| format!("{}: {}", finding["check"].as_str().unwrap(), finding["found"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_plugin_without_fault_has_none_found() {
    let program = Program::new();
    let file = guest("word_count").display().to_string();
    let told = succeeded(&program.run(&["plugin", "check", "--deny-notes", &file]));
    assert!(told.contains("0 bad, 0 to note; next: toolcrib plugin add "), "{told}");
    assert!(told.contains("asks for files"), "{told}");
}

#[test]
fn a_check_finds_what_a_model_a_host_and_a_reviewer_would() {
    let program = Program::new();
    let input = json!({ "type": "object", "properties": { "a": { "type": "string" } } }).to_string();
    let odd = Forged::new("odd").summary("One. And more.").guidance("").schema(&input);
    program.write("work/plugin.wasm", odd.bytes());
    let notes = findings(&program, "note");
    for wanted in [
        "guidance: `odd`: its summary is more than one sentence",
        "guidance: `odd`: it has no examples of its arguments",
        "guidance: `odd`: it does not say when to use it, when not to use it, how it differs from its neighbours: models",
        "schema: `odd`: its input does not say `additionalProperties`: set it to false",
        "schema: `odd`: argument `a` has no description",
        "schema: `odd`: it has no output schema",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(wanted)), "{wanted}: {notes:?}");
    }
    assert_eq!(code(&program.run(&["plugin", "check", "plugin.wasm"])), 0);
    assert_eq!(code(&program.run(&["plugin", "check", "--deny-notes", "plugin.wasm"])), 1);

    program.write(
        "work/plugin.wasm",
        liar(&json!({ "tools": [{ "name": "odd", "summary": "One." }], "daily": true }), &["odd"]),
    );
    let bad = findings(&program, "bad");
    assert!(bad.iter().any(|fault| fault.contains("does not always say the same of its tools")), "{bad:?}");

    program.write(
        "work/plugin.wasm",
        liar(&json!({ "tools": [{ "name": "run_shell", "summary": "One." }] }), &["run_shell"]),
    );
    let bad = findings(&program, "bad");
    assert!(bad.iter().any(|fault| fault.contains("could be confused with `run_shell`")), "{bad:?}");

    program.write("work/plugin.wasm", "text");
    assert!(findings(&program, "bad")[0].contains("the file is not WebAssembly"));
}

#[test]
fn an_example_that_does_not_fit_is_a_fault() {
    let program = Program::new();
    let forged = Forged::new("answer").example("{\"x\":1}").schema(r#"{"type":"object","additionalProperties":false}"#);
    program.write("work/plugin.wasm", forged.bytes());
    let bad = findings(&program, "bad");
    assert!(bad.iter().any(|fault| fault.starts_with("examples: `answer`: the example {\"x\":1}: ")), "{bad:?}");
}

#[test]
fn the_contract_is_printed_or_written_as_it_stands() {
    let program = Program::new();
    let printed = succeeded(&program.run(&["plugin", "wit"]));
    assert!(printed.contains("world plugin {") && printed.contains("interface files {"), "{printed}");
    succeeded(&program.run(&["plugin", "wit", "--out", "deps/toolcrib"]));
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut count = 0;
    for entry in fs::read_dir(&wit).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".wit") {
            let written = fs::read_to_string(program.path(&format!("work/deps/toolcrib/{name}"))).unwrap();
            assert_eq!(written, fs::read_to_string(entry.path()).unwrap(), "{name}");
            count += 1;
        }
    }
    assert_eq!(fs::read_dir(program.path("work/deps/toolcrib")).unwrap().count(), count);
}

#[test]
fn what_is_missing_for_a_language_is_said_with_what_installs_it() {
    let program = Program::new();
    program.write_program("bin/cargo", "#!/bin/sh\necho cargo 1.0\n");
    let run = |lang: &str| {
        let mut command = program.command(&["plugin", "doctor", lang]);
        command.env("PATH", program.path("bin")).env("RUSTFLAGS", "-g").output().unwrap()
    };
    let rust = run("rust");
    assert_eq!(code(&rust), 1);
    for wanted in ["cargo 1.0", "rustup target add wasm32-wasip2", "RUSTFLAGS is set"] {
        assert!(stdout(&rust).contains(wanted), "{wanted}: {}", stdout(&rust));
    }
    assert!(stdout(&run("js")).contains("missing: install Node.js"), "{}", stdout(&run("js")));
    assert!(stdout(&run("python")).contains("pip install -r requirements.txt"));
    for (lang, wanted) in [("go", "missing: install Go 1.27 or newer, or in the"), ("c", "missing: install zig 0.17")] {
        let output = run(lang);
        assert_eq!(code(&output), 1);
        for wanted in [wanted, "pip install -r requirements.txt", "missing: run: cargo install wit-bindgen-cli@0.63.0 "]
        {
            assert!(stdout(&output).contains(wanted), "{wanted}: {}", stdout(&output));
        }
    }
}
