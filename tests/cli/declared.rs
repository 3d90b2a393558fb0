//! Declared programs on the command line: `program inspect`, and what `doctor`, `plugin list` and `policy explain` say of them.

use backend::sealed::program_sha256;
use serde_json::json;
use std::fs;
use toolcrib_tests::outcome::{NO_QUESTION, code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, on_path};

/// What `inspect` prints is what declares the program.
#[test]
fn what_is_printed_declares_the_program() {
    let program = Program::new();
    let cat = on_path("cat");
    let lines = succeeded(&program.run(&["program", "inspect", &cat.display().to_string()]));
    assert!(lines.starts_with("[program.cat]\npath = "), "{lines}");
    program.write("config/toolcrib/toolcrib.toml", &lines);
    let call = [&NO_QUESTION[..], &["call", "cat", r#"{"stdin":"text"}"#]].concat();
    assert_eq!(json_of(&program.run(&call))["result"]["stdout"], "text");
    assert!(succeeded(&program.run(&["tools"])).contains("What cat is for, in a sentence."));
    let list = json_of(&program.run(&["plugin", "list", "--json"]));
    let row = list["plugins"].as_array().unwrap().iter().find(|row| row["name"] == "cat").unwrap();
    assert_eq!(
        (&row["origin"], &row["capabilities"], &row["builtin"]),
        (&json!(cat), &json!(["programs"]), &json!(false))
    );
    let explained = succeeded(&program.run(&["policy", "explain", "cat"]));
    assert!(explained.contains("cat, of plugin cat (declared program)"), "{explained}");
    let json = json_of(&program.run(&["program", "inspect", "--json", &cat.display().to_string()]));
    assert_eq!((&json["name"], &json["sha256"]), (&json!("cat"), &json!(program_sha256(&cat).unwrap())));
}

#[test]
fn what_cannot_be_a_program_says_why() {
    let program = Program::new();
    program.write("work/text", "no program");
    program.write("work/odd name", "#!/bin/sh\n");
    fs::set_permissions(program.path("work/odd name"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (file, said) in [
        ("missing", "`missing` cannot be declared: No such file"),
        ("text", "it is not executable"),
        ("odd name", "its name cannot be that of a tool"),
        (".", "is not the image of a program: `./index.json`"),
    ] {
        let output = program.run(&["program", "inspect", file]);
        assert_eq!(code(&output), 2, "{file}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

/// The directory of an image has what it is about in its annotations.
#[test]
fn an_image_says_what_its_program_is_about() {
    let program = Program::new();
    let manifest = json!({
        "schemaVersion": 2,
        "annotations": {
            "vnd.openotters.bin.name": "no-such-tool", "vnd.openotters.bin.path": "/bin/",
            "vnd.openotters.bin.description": "Says \"hello\".\u{1b}[1m",
        },
    });
    let digest = "ab".repeat(32);
    program.write(&format!("work/image/blobs/sha256/{digest}"), manifest.to_string());
    let index = json!({ "manifests": [{ "digest": format!("sha256:{digest}") }] });
    program.write("work/image/index.json", index.to_string());
    let lines = succeeded(&program.run(&["program", "inspect", "image"]));
    assert!(lines.starts_with("# First put `/bin/no-such-tool` of the image there"), "{lines}");
    program.write(
        "config/toolcrib/toolcrib.toml",
        lines.replace("# sha256 = \"…\"", &format!("sha256 = {:?}", "0".repeat(64))),
    );
    assert!(succeeded(&program.run(&["tools"])).contains("Says \"hello\"."), "{lines}");
    assert!(!lines.contains('\u{1b}'));
    for index in [json!({}), json!({ "manifests": [{ "digest": "sha256:../../../etc/passwd" }] })] {
        program.write("work/image/index.json", index.to_string());
        assert_eq!(code(&program.run(&["program", "inspect", "image"])), 2);
    }
}

/// Cases 2, 3 and 15: what is wrong with a program that is declared.
#[test]
fn doctor_says_what_is_wrong_with_a_declared_program() {
    let program = Program::new();
    let cat = on_path("cat");
    let page = program.path("page.md");
    fs::write(&page, "x".repeat(17 << 10)).unwrap();
    program.declares("long", &cat, &format!("usage = {page:?}"));
    program.declares("bare", &cat, "usage = \"/no/such/page\"");
    program.declares("fine", &cat, "");
    let said = succeeded(&program.run(&["doctor"]));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("note program the usage page of `long`") && said.contains("its first 16 KiB"), "{said}");
    assert!(said.contains("note program `bare` has no usage page: `/no/such/page`: No such file"), "{said}");
    assert!(!said.contains("`fine`"), "{said}");
    let settings = program.path("config/toolcrib/toolcrib.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let digest = program_sha256(&cat).unwrap();
    let changed = text.replacen(&digest, &"0".repeat(64), 1);
    fs::write(&settings, changed + "[program.half]\npath = \"/bin/cat\"\n").unwrap();
    let output = program.run(&["doctor"]);
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 1);
    assert!(
        said.contains(&format!("bad program `long`: the sha256 of `{}` is {digest}, not 0000", cat.display())),
        "{said}"
    );
    assert!(said.contains("`half` was refused: [program.half] says no `sha256`"), "{said}");
    for (line, fault) in [
        ("sha256 = \"12\"", "must be 64 hex digits"),
        ("path = \"bin/cat\"", "`bin/cat` is not an absolute path"),
        ("about = \"\"", "must be a sentence of at most 500 characters, in one line"),
        ("environment = [\"LD_PRELOAD\"]", "`LD_PRELOAD` is never passed"),
        ("timeout_ms = 0", "must be 1 to 86400000, not 0"),
        ("result = \"none\"", "unknown variant `none`"),
        ("shell = true", "`program.odd.shell` is not a setting"),
    ] {
        fs::write(&settings, format!("[program.odd]\n{line}\n")).unwrap();
        let output = program.run(&["tools"]);
        assert!(code(&output) == 2 && stderr(&output).contains(fault), "{line}: {}", stderr(&output));
    }
    // Nobody but the user declares any: a policy is refused, and a project is passed over.
    fs::write(&settings, "").unwrap();
    program.write("policy.toml", "[program.cat]\npath = \"/bin/cat\"\n");
    let output = program.run(&["--policy", &program.path("policy.toml").display().to_string(), "tools"]);
    assert!(
        code(&output) == 2 && stderr(&output).contains("`program.cat.path` cannot be set by policy"),
        "{}",
        stderr(&output)
    );
    program.write("work/toolcrib.toml", format!("[program.cat]\npath = {cat:?}\nsha256 = {digest:?}\nabout = \"x\"\n"));
    assert!(!succeeded(&program.run(&["tools"])).contains("What cat"));
    assert_eq!(code(&program.run(&["call", "cat", "{}"])), 3);
}
