//! `toolcrib secret`: values come in by standard input or unseen by the terminal, and never out again.

use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::outcome::{code, stderr, succeeded};
use toolcrib_tests::{Program, Terminal};

const VALUE: &str = "zK4vQ9-Lw2x_Ht7Rm";

/// Runs it with a value on standard input.
fn set(program: &Program, arguments: &[&str], value: &str) -> std::process::Output {
    program.run_with(&[&["secret", "set"], arguments].concat(), value)
}

#[test]
fn a_value_is_kept_for_nobody_else_and_never_printed() {
    let program = Program::new();
    let told = succeeded(&set(&program, &["GITHUB", "--host", "api.github.com", "--env"], &format!("{VALUE}\n")));
    let file = program.path("config/toolcrib/secrets/GITHUB");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim_end(), VALUE);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(told.contains("[secret.GITHUB]") && told.contains("hosts = [\"api.github.com\"]"), "{told}");
    let listed = succeeded(&program.run(&["secret", "list"]));
    assert!(listed.contains("GITHUB") && listed.contains("api.github.com") && listed.contains("ok"), "{listed}");
    let shown = succeeded(&program.run(&["config", "show", "--origin"]));
    let trail = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap();
    assert!(shown.contains("[secret.GITHUB]") && trail.contains("set secret GITHUB"), "{shown}{trail}");
    for text in [told, listed, shown, trail] {
        assert!(!text.contains(VALUE), "{text}");
    }
}

/// What a section said before stays, but for what is named; a program takes the place of a value, which is then gone.
#[test]
fn another_value_keeps_what_it_may_be_used_for() {
    let program = Program::new();
    succeeded(&set(&program, &["A", "--host", "a.org"], VALUE));
    succeeded(&set(&program, &["A"], "another-value-1X"));
    let kept = program.path("config/toolcrib/secrets/A");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "another-value-1X");
    let told = succeeded(&program.run(&["secret", "set", "A", "--", "pass", "show", "a"]));
    assert!(told.contains("command = [\"pass\", \"show\", \"a\"]") && told.contains("a.org"), "{told}");
    assert!(!told.contains("file =") && !kept.exists(), "{told}");
    let list = succeeded(&program.run(&["secret", "list", "--json"]));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list[0]["name"], &list[0]["command"][0]), (&"A".into(), &"pass".into()));
    succeeded(&program.run(&["secret", "remove", "A"]));
    assert_eq!(code(&program.run(&["secret", "remove", "A"])), 2);
    assert!(!std::fs::read_to_string(program.path("config/toolcrib/toolcrib.toml")).unwrap().contains("secret.A"));
}

#[test]
fn values_and_names_that_cannot_be_used_are_refused_without_being_repeated() {
    let program = Program::new().without_settings();
    for (name, value, why) in [
        ("A", "short", "has fewer than 8 characters"),
        ("A", "aaaaaaaaaaaaaaaa", "has fewer than 5 different characters"),
        ("A", "", "has fewer than 8 characters"),
        ("a b", VALUE, "is not the name of a secret"),
        ("../x", VALUE, "is not the name of a secret"),
    ] {
        let output = set(&program, &[name], value);
        assert!(code(&output) == 2 && stderr(&output).contains(why), "{}", stderr(&output));
        assert!(value.is_empty() || !stderr(&output).contains(value), "{}", stderr(&output));
    }
    assert!(!program.path("config/toolcrib/toolcrib.toml").exists());
    let output = set(&program, &["A", "--host", "*.a.org"], VALUE);
    assert!(code(&output) != 0 && stderr(&output).contains("does not name one host"), "{}", stderr(&output));
    for address in ["127.0.0.1", "::1", "10.1.2.3"] {
        let output = set(&program, &["A", "--host", address], VALUE);
        let told = stderr(&output);
        assert!(
            code(&output) != 0 && told.contains("is an address, and a secret goes to hosts by their names"),
            "{told}"
        );
    }
    assert!(!program.path("config/toolcrib/toolcrib.toml").exists(), "what cannot be loaded is not written");
    succeeded(&set(&program, &["A", "--host", "localhost"], VALUE));
}

/// A file that others can read is not used, and the list says so.
#[test]
fn a_file_that_others_can_read_is_said_to_be_unusable() {
    let program = Program::new();
    succeeded(&set(&program, &["A"], VALUE));
    let file = program.path("config/toolcrib/secrets/A");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let listed = succeeded(&program.run(&["secret", "list"]));
    assert!(listed.contains("0644"), "{listed}");
}

/// A project has no say in secrets, whether it is trusted or not; a policy cannot name one.
#[test]
fn projects_and_policies_have_no_secrets() {
    let program = Program::new();
    program.write("work/toolcrib.toml", "[secret.A]\nfile = '/etc/hostname'\nhosts = ['evil.org']\n");
    for trusted in [false, true] {
        if trusted {
            succeeded(&program.run(&["trust"]));
        }
        let output = program.run(&["secret", "list"]);
        assert!(!succeeded(&output).contains("evil.org"));
        let output = program.run(&["config", "show"]);
        assert!(!succeeded(&output).contains("secret.A") && stderr(&output).contains("`secret.A.file` is ignored"));
    }
    program.write("policy.toml", "[secret.A]\nfile = '/etc/hostname'\n");
    let policy = program.path("policy.toml").display().to_string();
    let output = program.run(&["--policy", &policy, "secret", "list"]);
    assert!(stderr(&output).contains("`secret.A.file` cannot be set by policy"), "{}", stderr(&output));
}

/// Typed at a terminal it is not seen.
#[test]
fn a_value_that_is_typed_is_not_seen() {
    let terminal = Terminal::idle(Program::new());
    terminal.run("$toolcrib secret set A");
    terminal.shows("The value of A:");
    terminal.press(&["-l", VALUE]);
    terminal.press(&["Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(!terminal.screen().contains(VALUE), "{}", terminal.screen());
    assert_eq!(std::fs::read_to_string(terminal.program.path("config/toolcrib/secrets/A")).unwrap().trim_end(), VALUE);
}
