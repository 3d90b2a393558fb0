//! E-08: a setting names a hook of the loader or of a shell, or the mark by which a call is known, as a variable to pass.
//! Outcome: refused where the setting is read, from whichever source, however it is spelled; an ordinary name passes.
//! Switched off: `is_never_passed` (`config/variables.rs`): both tests of hooks failed.

use crate::environment::find_with;
use toolcrib_tests::Program;

#[rustfmt::skip]
const HOOKS: &[&str] = &[
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_PROFILE", "LD_PROFILE_OUTPUT",
    "LD_BIND_NOW", "LD_ORIGIN_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
    "RES_OPTIONS", "LOCALDOMAIN", "MALLOC_CHECK_", "MALLOC_PERTURB_", "MALLOC_TRACE", "MALLOC_CONF",
    "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "BASH_ENV", "ENV", "BASH_FUNC_ls%%",
    "BASH_FUNC_cat%%", "BASH_FUNC_x()", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH",
    "GLOBIGNORE", "ZDOTDIR", "FPATH", "KSH_ENV", "fish_function_path", "fish_user_paths", "INPUTRC", "HISTFILE",
    "SHELL",
];

/// How a host answers that is told to pass these names, from each source of settings.
fn answers(names: &str) -> [(&'static str, String); 4] {
    let program = Program::new();
    let text = format!("[tools]\nshell_env = {names}\n");
    program.write("other.toml", &text);
    let other = program.path("other.toml").display().to_string();
    let setting = format!("tools.shell_env={names}");
    let said = |mut host: std::process::Command| {
        let output = host.stdin(std::process::Stdio::null()).output().expect("the program starts");
        format!("{:?} {}", output.status.code(), String::from_utf8_lossy(&output.stderr))
    };
    let flag = said(program.command(&["--set", &setting, "call", "time"]));
    let mut host = program.command(&["call", "time"]);
    host.env("TOOLCRIB_TOOLS_SHELL_ENV", names);
    let variable = said(host);
    let named = said(program.command(&["--config", &other, "call", "time"]));
    program.write("config/toolcrib/toolcrib.toml", text);
    [("flag", flag), ("variable", variable), ("named file", named), ("file", said(program.command(&["call", "time"])))]
}

#[test]
fn no_hook_can_be_named_from_any_source() {
    for hook in HOOKS {
        for (source, said) in answers(&format!("[\"TZ\", {hook:?}]")) {
            assert!(said.contains("is never passed") && !said.starts_with("Some(0)"), "{hook} by {source}: {said}");
        }
    }
}

#[test]
fn no_spelling_makes_a_hook_another_name() {
    for name in [
        r#""""#,
        r#"" ""#,
        r#"" LD_PRELOAD""#,
        r#""LD_PRELOAD ""#,
        r#""LD_PRELOAD=x""#,
        r#""A=B""#,
        r#""A\nLD_PRELOAD""#,
        r#""LD_PRELOAD\u0000""#,
        r#""\u0000""#,
        r#""LD\u005fPRELOAD""#,
        r#""ＬD_PRELOAD""#,
        r#""LD_PRELOAD\u200b""#,
        r#""BASH_FUNC_ls()""#,
        r#""LD_*""#,
        r#""*""#,
        r#""Ä""#,
        r#""1A""#,
        r#""A-B""#,
    ] {
        for (source, said) in answers(&format!("[{name}]")) {
            assert!(said.contains("is never passed") && !said.starts_with("Some(0)"), "{name} by {source}: {said}");
        }
    }
    let many: Vec<String> = (0..10_000).map(|number| format!("A{number}")).collect();
    for (source, said) in answers(&format!("{many:?}")) {
        assert!(!said.starts_with("Some(0)"), "10,000 names by {source}");
    }
}

#[test]
fn an_ordinary_name_passes_and_repeating_it_does_no_harm() {
    let set = [("JAVA_HOME", "/opt/java"), ("ENVIRONMENT", "test"), ("OLD_PATH", "/x")];
    let names = "tools.shell_env=[\"JAVA_HOME\", \"ENVIRONMENT\", \"OLD_PATH\", \"JAVA_HOME\", \"PATH\", \"UNSET\"]";
    let found = find_with(&set, &["--set", names], "true");
    for (name, value) in set {
        assert_eq!(found.environment.get(name).map(String::as_str), Some(value));
    }
    assert_eq!(found.stdout.split("=END=").next().expect("text").matches("JAVA_HOME=").count(), 1);
    assert!(!found.environment.contains_key("UNSET"));
}

/// A process that carries another call's mark would be taken for that call's, and not found with its own.
#[test]
fn the_mark_of_a_call_is_the_hosts_to_set() {
    let found = find_with(&[("TOOLCRIB_CALL", "forged")], &["--set", "tools.shell_env=[\"TZ\"]"], "true");
    assert!(!found.stdout.contains("forged"), "{}", found.stdout);
    let program = Program::new();
    let mut host = program.command(&["--set", "tools.shell_env=[\"TOOLCRIB_CALL\"]", "call", "time"]);
    let output = host.stdin(std::process::Stdio::null()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("is never passed"), "the mark can be named: {:?} {said}", output.status);
}
