//! a command that a person approved leaves functions, aliases, hooks and a `PATH` in the shared shell, to take over what plugins run later.
//! Outcome: a plugin's command runs in a process of its own, with the real programs and two streams, and panes are `denied` to its plugin; one whose grant says `shell.pane` works in the pane as it is.
//! Switched off: the question whether the grant reaches panes (`capability/shell.rs`, `run`): the first two tests failed; the same in `capability/panes.rs`: the third failed.

use serde_json::json;
use toolcrib_tests::{Client, Program, digest, eventually, guest};

/// What is left behind in the shared shell.
const TRAPS: &str = "printf() { command printf 'taken over'; }\n\
    alias printf='echo taken over by an alias'\n\
    export PATH=$PWD/bin:$PATH ENV=$PWD/env BASH_ENV=$PWD/env\n\
    trap 'echo taken over by a trap' DEBUG 2>/dev/null\n\
    cd /";

/// A host with panes and two plugins of others, whose grants are the lines.
struct Shared {
    // Ends before its home goes.
    host: Client,
    program: Program,
}

impl Shared {
    fn with(lines: &[(&str, &str)]) -> Self {
        let program = Program::with_panes();
        let mut arguments = vec!["--yes".to_owned(), "--set=tmux.default_shell='/bin/bash'".to_owned()];
        for (name, line) in lines {
            program.write(&format!("data/toolcrib/plugins/{name}.wasm"), std::fs::read(guest(name)).expect("a guest"));
            arguments.push(format!("--set=plugin.{name}.sha256={:?}", digest(name)));
            arguments.push(format!("--set=plugin.{name}.{line}"));
        }
        arguments.push("run".into());
        program.write("work/bin/cat", "#!/bin/sh\necho taken over by a program\n");
        let host = program.client(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let mut shared = Self { host, program };
        assert_eq!(shared.host.shell(TRAPS)["result"]["exit_code"], 0);
        shared
    }

    fn hostile(&mut self, how: &str, text: &str) -> String {
        self.say("hostile", how, text)
    }

    fn uses_pane(&mut self, how: &str, text: &str) -> String {
        self.say("pane_user", how, text)
    }

    fn say(&mut self, plugin: &str, how: &str, text: &str) -> String {
        let answer = self.host.call(plugin, json!({ "how": how, "text": text }));
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The shell still serves who may use it.
    fn assert_healthy(&mut self) {
        let answer = self.host.shell("command echo healthy");
        assert!(answer["result"]["stdout"].as_str().is_some_and(|text| text.contains("healthy")), "{answer}");
    }
}

#[test]
fn a_function_of_the_shared_shell_takes_over_nothing_of_a_plugins_command() {
    let mut shared = Shared::with(&[("shell_echo", "shell=true")]);
    for text in ["hello", "it's $PATH"] {
        assert_eq!(shared.host.call("shell_echo", json!({ "text": text }))["result"], text);
    }
    shared.assert_healthy();
}

#[test]
fn a_plugins_command_begins_where_the_host_does_and_has_two_streams() {
    let mut shared = Shared::with(&[("hostile", "shell=true")]);
    let work = shared.program.path("work").display().to_string();
    let said = shared.hostile("run_and_split", "pwd; echo fault >&2; cat </dev/null; echo ${ENV-unset}; tty");
    assert_eq!(said, format!("out: {work}\nunset\nnot a tty\nerr: fault\n"));
    shared.assert_healthy();
}

#[test]
fn panes_are_denied_to_a_plugin_whose_grant_does_not_name_them() {
    let mut shared = Shared::with(&[("pane_user", "shell=true")]);
    let refused = "denied: `pane_user` may run commands in processes of their own, but not use panes; \
                   write `shell.pane = true` instead of `shell` under [plugin.pane_user]";
    for how in ["run", "look", "type"] {
        assert_eq!(shared.uses_pane(how, "touch owned"), refused, "{how}");
    }
    assert!(!shared.program.path("work/owned").exists());
    shared.assert_healthy();
}

#[test]
fn a_grant_that_names_panes_opens_them() {
    let mut shared = Shared::with(&[("pane_user", "shell.pane=true"), ("shell_echo", "shell={ pane = true }")]);
    assert_eq!(
        shared.host.call("shell_echo", json!({ "text": "hello" }))["result"]
            .as_str()
            .map(|text| text.contains("taken over")),
        Some(true)
    );
    assert_eq!(shared.uses_pane("run", "true"), "it ran");
    assert_eq!(shared.uses_pane("type", "command echo typed"), "shared");
    eventually("what was typed is seen", || {
        shared.program.tmux(&["capture-pane", "-p", "-t", "=toolcrib-agent:"]).contains("typed")
    });
    assert!(shared.uses_pane("look", "").contains("typed"));
    shared.assert_healthy();
}
