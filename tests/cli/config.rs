//! `toolcrib config show`, and settings that cannot be: where each value comes from, and where each fault is.

use std::process::{Output, Stdio};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};

const USER: &str = "config/toolcrib/toolcrib.toml";
const PROJECT: &str = "work/toolcrib.toml";

/// The line of one key in `config show --origin`.
fn shown<'t>(text: &'t str, key: &str) -> &'t str {
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = ")));
    line.unwrap_or_else(|| panic!("no `{key}` in {text}"))
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let program = Program::new();
    let path = |name: &str| program.path(name).display().to_string();
    program.write(USER, "[limits]\ncall_ms = 5000\nmemory_mib = 32\n");
    program.write(PROJECT, "[limits]\n\nmemory_mib = 16\n");
    program.write("policy.toml", "[limits]\nhandles = 7\n");
    let mut command =
        program.command(&["--policy", &path("policy.toml"), "--set", "limits.events=9", "config", "show", "--origin"]);
    let output = command.env("TOOLCRIB_LIMITS_HOST_CALLS", "11").stdin(Stdio::null()).output().unwrap();
    let text = succeeded(&output);
    assert_eq!(shown(&text, "grace_ms"), "grace_ms = 2000  # default");
    assert_eq!(shown(&text, "call_ms"), format!("call_ms = 5000  # {}:2", path(USER)));
    assert_eq!(shown(&text, "memory_mib"), format!("memory_mib = 16  # narrowed by {}:3", path(PROJECT)));
    assert_eq!(shown(&text, "handles"), format!("handles = 7  # narrowed by {}:2", path("policy.toml")));
    assert_eq!(shown(&text, "host_calls"), "host_calls = 11  # environment TOOLCRIB_LIMITS_HOST_CALLS");
    assert_eq!(shown(&text, "events"), "events = 9  # --set");
}

#[test]
fn what_is_shown_is_a_file_that_says_the_same() {
    let program = Program::new();
    program.write(USER, "[tools]\nfiles_allowed_paths = [\"~/out\"]\nshell_denylist = [\"say \\\"no\\\"\"]\n[plugin.x]\nshell = false\n");
    let text = succeeded(&program.run(&["config", "show"]));
    program.write("shown.toml", &text);
    let again = program.path("shown.toml").display().to_string();
    assert_eq!(succeeded(&program.run(&["--config", &again, "config", "show"])), text);
    assert!(text.contains(&format!("files_allowed_paths = [\"{}/out\"]", program.path("home").display())), "{text}");
}

/// A fault, the source it is in, and the place that has to be named.
struct Fault {
    source: &'static str,
    what: &'static str,
    output: Output,
    place: String,
}

/// An unknown key, a wrong type and what is not even a setting, in every source there is.
fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    let files = [
        (
            "unknown key",
            "# first\n[tools]\nshell_confrim = true\n",
            ":3:1: `tools.shell_confrim` is not a setting, did you mean `tools.shell_confirm`?",
        ),
        ("wrong type", "[limits]\n\n  call_ms = \"long\"\n", ":3:3: `limits.call_ms`: must be a whole number"),
        ("syntax", "[tools]\nshell_env = [\n", ":2:14: "),
    ];
    for (what, text, place) in files {
        for source in [USER, "policy.toml"] {
            let program = Program::new();
            program.write(source, text);
            let path = program.path(source).display().to_string();
            let policy = ["--policy", path.as_str(), "call", "time"];
            let output = program.run(if source == "policy.toml" { &policy } else { &policy[2..] });
            faults.push(Fault { source, what, output, place: format!("{path}{place}") });
        }
    }
    for (what, name, value, place) in [
        (
            "unknown key",
            "TOOLCRIB_TOOLS_SHELL_CONFRIM",
            "true",
            "`TOOLCRIB_TOOLS_SHELL_CONFRIM` is not a setting, did you mean `TOOLCRIB_TOOLS_SHELL_CONFIRM`?",
        ),
        (
            "wrong type",
            "TOOLCRIB_LIMITS_CALL_MS",
            "long",
            "environment TOOLCRIB_LIMITS_CALL_MS: `limits.call_ms`: must be a whole number",
        ),
        (
            "syntax",
            "TOOLCRIB_TOOLS_SHELL_ENV",
            "[",
            "environment TOOLCRIB_TOOLS_SHELL_ENV: `tools.shell_env`: invalid type",
        ),
    ] {
        let program = Program::new();
        let output = program.command(&["call", "time"]).env(name, value).stdin(Stdio::null()).output().unwrap();
        faults.push(Fault { source: "environment", what, output, place: place.into() });
    }
    for (what, argument, place) in [
        (
            "unknown key",
            "tools.shell_confrim=true",
            "--set: `tools.shell_confrim` is not a setting, did you mean `tools.shell_confirm`?",
        ),
        ("wrong type", "limits.call_ms=long", "--set: `limits.call_ms`: must be a whole number"),
        ("syntax", "tools.shell_env", "--set: `tools.shell_env` has no value: write `key=value`"),
    ] {
        let output = Program::new().run(&["--set", argument, "call", "time"]);
        faults.push(Fault { source: "--set", what, output, place: place.into() });
    }
    faults
}

#[test]
fn a_fault_in_any_source_is_told_with_its_place_and_nothing_is_called() {
    for Fault { source, what, output, place } in faults() {
        assert!(!output.status.success(), "{what} in {source}");
        assert_eq!(stdout(&output), "", "{what} in {source}");
        assert!(stderr(&output).contains(&place), "{what} in {source}: {} instead of {place}", stderr(&output));
    }
}

#[test]
fn a_fault_in_any_source_exits_as_a_fault_of_usage() {
    let codes: Vec<String> =
        faults().iter().map(|fault| format!("{} in {}: {}", fault.what, fault.source, code(&fault.output))).collect();
    assert!(codes.iter().all(|code| code.ends_with(": 2")), "{codes:#?}");
}

#[test]
fn what_is_near_is_something_that_could_be_written() {
    let program = Program::new();
    for section in ["tools.x", "limits.x"] {
        let told = stderr(&program.run(&["--set", &format!("{section}=1"), "call", "time"]));
        assert!(!told.contains(&format!("did you mean `{}`", section.trim_end_matches(".x"))), "{told}");
    }
    let told = program.command(&["call", "time"]).env("TOOLCRIB_TOOLS_X", "1").stdin(Stdio::null()).output().unwrap();
    assert!(!stderr(&told).contains("did you mean `TOOLCRIB_TOOLS`"), "{}", stderr(&told));
}

#[test]
fn a_type_is_named_in_words_of_the_file() {
    let told = stderr(&Program::new().run(&["--set", "limits.call_ms=long", "call", "time"]));
    assert!(!told.contains("i64"), "{told}");
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let program = Program::new();
    for flag in ["--config", "--policy"] {
        let output = program.run(&[flag, "missing.toml", "call", "time"]);
        assert!(code(&output) != 0 && stdout(&output).is_empty());
        assert!(stderr(&output).contains("cannot read `missing.toml`: No such file"), "{}", stderr(&output));
    }
}

#[test]
fn settings_before_and_after_the_subcommand_add_up() {
    let program = Program::new();
    let flags = ["--set", "limits.events=7", "config", "show", "--set", "limits.handles=8"];
    let text = succeeded(&program.run(&flags));
    assert_eq!((shown(&text, "events"), shown(&text, "handles")), ("events = 7", "handles = 8"));
}

/// Who starts the program with a policy is not outvoted by who adds arguments.
#[test]
fn policies_before_and_after_the_subcommand_add_up() {
    let program = Program::new();
    program.write("strict.toml", "[tools]\nshell_enabled = false\n");
    program.write("other.toml", "[limits]\nhandles = 8\n");
    let path = |name: &str| program.path(name).display().to_string();
    let (strict, other) = (path("strict.toml"), path("other.toml"));
    let text = succeeded(&program.run(&["--policy", &strict, "config", "show", "--policy", &other]));
    assert_eq!((shown(&text, "shell_enabled"), shown(&text, "handles")), ("shell_enabled = false", "handles = 8"));
}

#[test]
fn a_value_out_of_its_range_is_told_with_the_range() {
    let told = stderr(&Program::new().run(&["--set", "limits.memory_mib=0", "call", "time"]));
    assert!(told.contains("`limits.memory_mib`: must be 1 to 4096, not 0"), "{told}");
}

/// What `config show --origin` says of `call_ms` when started in this directory.
fn call_ms_in(program: &Program, directory: &str) -> String {
    let mut command = program.command(&["config", "show", "--origin"]);
    let output = command.current_dir(program.path(directory)).stdin(Stdio::null()).output().unwrap();
    shown(&succeeded(&output), "call_ms").to_owned()
}

#[test]
fn a_projects_file_counts_below_it_up_to_the_root_of_its_repository() {
    let program = Program::new();
    program.write("toolcrib.toml", "limits.call_ms = 1\n");
    program.write("repository/toolcrib.toml", "limits.call_ms = 2\n");
    program.write("repository/near/toolcrib.toml", "limits.call_ms = 3\n");
    for directory in ["repository/.git", "repository/a/b", "repository/near/c", "bare/.git", "bare/d"] {
        std::fs::create_dir_all(program.path(directory)).unwrap();
    }
    let narrowed = |milliseconds: u32, file: &str| {
        format!("call_ms = {milliseconds}  # narrowed by {}:1", program.path(file).display())
    };
    for directory in ["repository", "repository/a", "repository/a/b"] {
        assert_eq!(call_ms_in(&program, directory), narrowed(2, "repository/toolcrib.toml"), "{directory}");
    }
    assert_eq!(call_ms_in(&program, "repository/near/c"), narrowed(3, "repository/near/toolcrib.toml"), "the nearest");
    for directory in ["bare", "bare/d", "work"] {
        assert_eq!(call_ms_in(&program, directory), "call_ms = 60000  # default", "{directory}: what lies beyond");
    }
}

#[test]
fn without_a_repository_a_projects_file_counts_up_to_the_home() {
    let program = Program::new();
    program.write("toolcrib.toml", "limits.call_ms = 1\n");
    std::fs::create_dir_all(program.path("home/a/b")).unwrap();
    assert_eq!(call_ms_in(&program, "home/a/b"), "call_ms = 60000  # default");
    program.write("home/toolcrib.toml", "limits.call_ms = 2\n");
    let home = format!("call_ms = 2  # narrowed by {}:1", program.path("home/toolcrib.toml").display());
    assert_eq!([call_ms_in(&program, "home/a/b"), call_ms_in(&program, "home")], [home.clone(), home]);
    program.write("home/a/toolcrib.toml", "limits.call_ms = 3\n");
    let nearest = format!("call_ms = 3  # narrowed by {}:1", program.path("home/a/toolcrib.toml").display());
    assert_eq!(call_ms_in(&program, "home/a/b"), nearest);
}

#[test]
fn trust_is_given_to_the_file_that_counts() {
    let program = Program::new();
    program.write("repository/toolcrib.toml", "limits.call_ms = 90000\n");
    std::fs::create_dir_all(program.path("repository/.git")).unwrap();
    std::fs::create_dir_all(program.path("repository/a")).unwrap();
    let mut trust = program.command(&["trust"]);
    let told = succeeded(&trust.current_dir(program.path("repository/a")).stdin(Stdio::null()).output().unwrap());
    let file = program.path("repository/toolcrib.toml").display().to_string();
    assert!(told.starts_with(&format!("{file} is trusted")), "{told}");
    assert_eq!(call_ms_in(&program, "repository/a"), format!("call_ms = 90000  # {file}:1"));
}

#[test]
fn a_setting_without_its_section_is_named_with_it() {
    let program = Program::new();
    let output = program.run(&["--set", "shell_confirm=false", "config", "show"]);
    let expected = "--set: `shell_confirm` is not a setting, did you mean `tools.shell_confirm`?";
    assert!(code(&output) == 2 && stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn a_section_of_a_plugin_that_is_not_here_is_told() {
    let program = Program::new();
    program.write(
        USER,
        "[plugin.raed_file]\nshell = false\n[plugin.somewhere-else]\nshell = false\n[plugin.time]\nshell = false\n",
    );
    let user = program.path(USER).display().to_string();
    let output = program.run(&["call", "time"]);
    let told = stderr(&output);
    let notice = format!(
        "notice: {user}:2: `[plugin.raed_file]` has no effect: there is no plugin of that name, did you mean `[plugin.read_file]`?\n"
    );
    assert!(code(&output) == 0 && told == notice, "{told}");
    let doctor = succeeded(&program.run(&["doctor"]));
    for name in ["raed_file", "somewhere-else"] {
        assert!(doctor.contains(&format!("`[plugin.{name}]` has no effect")), "{doctor}");
    }
    assert!(!doctor.contains("[plugin.time]"), "{doctor}");
}

/// A mistyped section is told, as other programs may have variables that begin as ours do; in a section that there is, it is an error.
#[test]
fn a_variable_that_is_nearly_a_setting_is_told() {
    let program = Program::new();
    let call = |name: &str| {
        let output = program.command(&["call", "time"]).env(name, "5").stdin(Stdio::null()).output().unwrap();
        (code(&output), stderr(&output))
    };
    let (exit, told) = call("TOOLCRIB_LIMIT_CALL_MS");
    let stray = "`TOOLCRIB_LIMIT_CALL_MS` is not a setting, and has no effect: did you mean `TOOLCRIB_LIMITS_CALL_MS`?";
    assert!(exit == 0 && told.contains(stray), "{told}");
    for other in ["TOOLCRIB_SESSION", "TOOLCRIB_DASHBOARD_URL"] {
        assert_eq!(call(other), (0, String::new()), "{other}");
    }
}

/// What only begins alike was not meant.
#[test]
fn a_far_name_is_not_suggested() {
    let program = Program::new();
    for line in [&["--set", "tools.nope=1", "tools"][..], &["policy", "explain", "nope"], &["call", "nope"]] {
        let told = stderr(&program.run(line));
        assert!(told.contains("nope") && !told.contains("did you mean"), "{line:?}: {told}");
    }
}
