//! What rules answer, by what they are about.

use super::*;
use ::config::{Settings, Sources};
use std::path::Path;
use std::time::{Duration, Instant};

/// The rules of a settings file with this text.
fn rules(text: &str) -> Result<Rules, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("user.toml");
    std::fs::write(&path, text).unwrap();
    let settings = Settings::load(&Sources { home: "/home/u".into(), user: Some(path), ..Sources::default() }).unwrap();
    Rules::new(&settings.rules, true).map_err(|failure| failure.message)
}

fn command(text: &str) -> Subject {
    let texts = vec![text.to_owned()];
    Subject::Command(CommandSubject { texts, goes_to: Destination::Process, is_fed: false })
}

fn server(url: &str) -> Subject {
    Subject::Host(Target::parse(url, None).unwrap())
}

fn denies(rules: &Rules, subject: &Subject, tool: &str) -> bool {
    !rules.denying(subject, tool).is_empty()
}

fn allows(rules: &Rules, subject: &Subject, tool: &str) -> bool {
    !rules.allowing(subject, tool).is_empty()
}

#[test]
fn a_host_is_meant_with_its_port_and_below_its_name() {
    let rules = rules("[[allow]]\nhost = '*.example.org:443'\n[[deny]]\nhost = 't.example.com'").unwrap();
    assert!(allows(&rules, &server("https://a.example.org/"), "run_shell"));
    assert!(!allows(&rules, &server("https://example.org/"), "run_shell"));
    assert!(!allows(&rules, &server("http://a.example.org/"), "run_shell"));
    assert!(denies(&rules, &server("http://t.example.com:8080/"), "run_shell"));
    assert!(!denies(&rules, &server("https://x.t.example.com/"), "run_shell"));
}

#[test]
fn files_are_meant_by_their_paths() {
    let rules = rules("[[allow]]\nwrite = '~/notes/**'\n[[deny]]\nwrite = '/srv/*.conf'").unwrap();
    let file = |path: &str| Subject::Write(path.into());
    assert!(allows(&rules, &file("/home/u/notes/a/b.md"), "file_write"));
    assert!(!allows(&rules, &file("/home/u/notesx"), "file_write"));
    assert!(denies(&rules, &file("/srv/a.conf"), "file_write"));
    assert!(!denies(&rules, &file("/srv/a/b.conf"), "file_write"));
}

#[test]
fn a_tool_is_meant_by_its_name_and_alone_in_each_call() {
    let rules =
        rules("[[allow]]\ntool = 'git__*'\n[[deny]]\ntool = 'run_shell'\n[[deny]]\ntool = 'shell'\ncommand = 'rm'")
            .unwrap();
    assert!(allows(&rules, &Subject::Call, "git__log") && !allows(&rules, &Subject::Call, "github__log"));
    assert!(!allows(&rules, &command("ls"), "git__log"));
    let denied = |tool: &str| rules.denying_tool(tool, Path::new("/w")).map(|rule| rule.number);
    assert_eq!((denied("run_shell"), denied("shell"), denied("git__log")), (Some(Some(2)), None, None));
    assert!(denies(&rules, &command("rm x"), "shell") && !denies(&rules, &command("rm x"), "exec"));
}

#[test]
fn a_rule_that_cannot_be_kept_is_named_with_its_line() {
    for (text, expected) in [
        ("\n[[allow]]\ncommand = 'a; b'", "user.toml:2: this [[allow]] has a `command` that is not one plain command"),
        ("[[allow]]\ncommand = 'sudo *'", "user.toml:1: this [[allow]] has a `command` that has a `*` after `sudo`"),
        ("[[deny]]\nhost = 'a.*.b'", "user.toml:1: this [[deny]] has a `host` that cannot be used"),
        ("[[deny]]\nhost = 'a.example:0'", "user.toml:1: this [[deny]] has a `host` that cannot be used: the port"),
        ("[[deny]]\nwrite = '/a/[b'", "user.toml:1: this [[deny]] has a `write` that is not a pattern"),
    ] {
        let message = rules(text).err().unwrap_or_else(|| panic!("kept: {text}"));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_program_that_a_command_could_have_written_is_not_the_one_meant() {
    let directory = tempfile::Builder::new().tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let (own, work) = (directory.path().join("bin"), directory.path().join("work"));
    for place in [&own, &work] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir(place).unwrap();
        std::fs::write(place.join("tool"), "").unwrap();
        std::fs::set_permissions(place.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let check = |path: &[&Path]| {
        let path = path.iter().map(|entry| entry.to_path_buf()).collect();
        Programs { path, written: vec![base::paths::canonical(&work)] }.check("tool")
    };
    assert!(check(&[&own, &work]).is_ok());
    assert!(check(&[&work, &own]).is_err() && check(&[]).is_err() && check(&[Path::new("."), &own]).is_err());
    let link = directory.path().join("links");
    std::fs::create_dir(&link).unwrap();
    std::os::unix::fs::symlink(work.join("tool"), link.join("tool")).unwrap();
    assert!(check(&[&link]).is_err());
}

#[test]
fn each_command_of_a_text_needs_a_rule_that_counts() {
    let rules = rules("[[allow]]\ncommand = './a *'\n[[allow]]\ncommand = './b'\nuntil = 2001-01-01").unwrap();
    let counts = |rule: &compiled::Rule| rule.counts_in(Path::new("/work"));
    let cover = |text: &str| rules.cover(text, false, None, &Programs::default(), &counts);
    let shown = |text: &str| cover(text).unwrap().into_iter().map(|one| one.by.is_ok()).collect::<Vec<_>>();
    assert_eq!(shown("./a 1 && ./a"), [true, true]);
    assert_eq!(shown("./a; ./b; ./c"), [true, false, false]);
    assert!(cover("./a > x").is_err());
}

/// A bound that a slow machine keeps, too: decided in less than 1 ms, and looked at in less than 5 µs, where it is measured.
#[test]
fn five_hundred_rules_cost_what_a_few_do() {
    let text: String =
        (0..500).map(|n| format!("[[allow]]\ncommand = 'tool{n} run *'\n[[deny]]\ncommand = 'bad{n} x'\n")).collect();
    let rules = rules(&text).unwrap();
    let counts = |_: &compiled::Rule| true;
    let begin = Instant::now();
    for _ in 0..100 {
        assert!(!denies(&rules, &command("echo hello world --and more"), "run_shell"));
        assert!(rules.cover("tool499 run a b c", false, None, &Programs::default(), &counts).is_ok());
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}
