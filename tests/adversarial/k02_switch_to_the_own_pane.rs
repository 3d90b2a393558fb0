//! K-02: a project that nobody trusts, or a variable that it sets, makes tools look at the pane that the user sits at.
//! Outcome: neither can choose that pane; what stands on its screen stays there.
//! Switched off: the rule of `tmux.enabled` (`config/narrow.rs`) with the own pane as what is left: `capture-pane` returned the user's shell.

use toolcrib_tests::{Seat, without_terminal};

const SECRET: &str = "hunter2-on-the-screen";

/// What two looks at a pane say, with this project and these variables: at all of it, and at what is visible.
fn looks(project: &str, variables: &[(&str, &str)]) -> String {
    let seat = Seat::new();
    seat.types(&format!("echo {SECRET}"));
    seat.shows(SECRET);
    seat.program.write("work/toolcrib.toml", project);
    let looks = ["{}", r#"{"start":"-"}"#].map(|arguments| {
        let mut look = seat.program.command(&["--yes", "call", "capture-pane", arguments]);
        look.env("TMUX", seat.variable()).env("TMUX_PANE", &seat.pane);
        look.env_remove("TOOLCRIB_TMUX_ENABLED").envs(variables.iter().copied());
        let output = without_terminal(&mut look).output().expect("it runs");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    });
    looks.concat()
}

#[test]
fn an_untrusted_project_cannot_switch_to_the_pane_of_the_user() {
    let said = looks("[tmux]\nenabled = false\n", &[]);
    assert!(!said.contains(SECRET), "{said}");
    assert!(said.contains("`tmux.enabled` is ignored"), "{said}");
    let said = looks("[tools]\nshell_enabled = false\n", &[]);
    assert!(!said.contains(SECRET) && said.contains("denied"), "{said}");
}

#[test]
fn no_variable_switches_to_the_pane_of_the_user() {
    for variables in [[("TOOLCRIB_TMUX_ENABLED", "false")], [("TOOLCRIB_TOOLS_SHELL_ENABLED", "false")]] {
        let said = looks("", &variables);
        assert!(!said.contains(SECRET), "{said}");
        assert!(said.contains("unavailable") || said.contains("denied"), "{said}");
    }
}

#[test]
fn there_is_no_setting_that_chooses_the_pane() {
    for project in ["[tmux]\nown_pane = true\n", "[tmux]\nenabled = \"own\"\n"] {
        let said = looks(project, &[]);
        assert!(!said.contains(SECRET) && said.contains("toolcrib.toml:2"), "{said}");
    }
}
