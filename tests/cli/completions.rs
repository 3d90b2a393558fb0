//! Completions in the shells themselves, at a terminal, and the manual page.
#![expect(clippy::disallowed_methods, reason = "shells and groff are what is asked")]

use std::io::Write;
use std::process::{Command, Stdio};
use toolcrib_tests::outcome::{code, install, stderr, succeeded};
use toolcrib_tests::{Program, Terminal, eventually, skip};

/// How each shell starts without settings of its own, and takes the script.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "bash --norc --noprofile -i", "PS1='ready> '; source <(toolcrib completions bash)"),
    ("zsh", "zsh -f -i", "PS1='ready> '; autoload -U compinit; compinit -u -D; source <(toolcrib completions zsh)"),
    ("fish", "fish --no-config -i", "function fish_prompt; echo -n 'ready> '; end; toolcrib completions fish | source"),
];

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn tool_names_complete_in_each_shell() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for (shell, start, settings) in SHELLS {
        if !is_installed(shell) {
            skip!("{shell} is not installed");
        }
        let terminal = Terminal::idle(Program::new());
        // The tool of a plugin that nobody has allowed has a name all the same.
        install(&terminal.program, "word_count");
        let directory = Program::file().parent().expect("a directory").display().to_string();
        terminal.run(&format!("export PATH='{directory}':\"$PATH\"\n{start}"));
        eventually("the shell is at its prompt", || !terminal.rows().trim().is_empty());
        terminal.press(&["-l", settings]);
        terminal.press(&["Enter"]);
        terminal.shows("\nready>");
        for (begun, whole) in [
            ("toolcrib call read", "toolcrib call read_file"),
            ("toolcrib tools word", "toolcrib tools word_count"),
            ("toolcrib policy explain run", "toolcrib policy explain run_shell"),
            ("toolcrib doc", "toolcrib doctor"),
        ] {
            terminal.press(&["-l", begun]);
            terminal.press(&["Tab"]);
            terminal.shows(&format!("ready> {whole}"));
            // Not C-c, at which a shell forgets what was typed behind it.
            terminal.press(&["C-u"]);
        }
    }
}

#[test]
fn a_plugin_of_the_command_line_completes() {
    let program = Program::new();
    let file = install(&program, "word_count");
    let plugins = program.path("elsewhere").display().to_string();
    program.write("elsewhere/word_count.wasm", std::fs::read(&file).expect("a plugin"));
    std::fs::remove_file(&file).expect("it goes");
    let complete = |words: &[&str]| {
        let mut toolcrib = program.command(&[&["--"][..], words].concat());
        let index = (words.len() - 1).to_string();
        let output = toolcrib.envs([("_TOOLCRIB_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", index.as_str())]).output();
        succeeded(&output.expect("the program starts"))
    };
    assert_eq!(complete(&["toolcrib", "call", "word"]), "");
    assert_eq!(complete(&["toolcrib", "--plugins", &plugins, "call", "word"]), "word_count");
    assert_eq!(complete(&["toolcrib", "call", "--plugins", &plugins, "word"]), "word_count");
}

#[test]
fn names_of_plugins_servers_and_secrets_complete() {
    let program = Program::new();
    install(&program, "word_count");
    program.write(
        "own.toml",
        "[secret.SHOP]\nfile = \"/a/shop\"\nhosts = [\"shop.example.com\"]\n[upstream.git]\ncommand = [\"/a/git\"]\n",
    );
    let own = program.path("own.toml").display().to_string();
    let complete = |words: &[&str]| {
        let words = [&["toolcrib", "--config", &own][..], words].concat();
        let mut toolcrib = program.command(&[&["--"][..], &words[..]].concat());
        let index = (words.len() - 1).to_string();
        let output = toolcrib.envs([("_TOOLCRIB_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", index.as_str())]).output();
        succeeded(&output.expect("the program starts"))
    };
    for (words, whole) in [
        (["plugin", "allow", "word"], "word_count"),
        (["plugin", "deny", "word"], "word_count"),
        (["upstream", "review", "g"], "git"),
        (["upstream", "remove", "g"], "git"),
        (["secret", "remove", "S"], "SHOP"),
    ] {
        assert_eq!(complete(&words), whole, "{words:?}");
    }
    assert_eq!(complete(&["plugin", "allow", "read_f"]), "", "what is built in cannot be allowed");
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let program = Program::new();
    for (shell, _, _) in SHELLS.into_iter().filter(|(shell, _, _)| is_installed(shell)) {
        program.write("completions", succeeded(&program.run(&["completions", shell])));
        let checked =
            Command::new(shell).arg("-n").arg(program.path("completions")).output().expect("the shell starts");
        assert!(checked.status.success(), "{shell}: {}", stderr(&checked));
    }
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_subcommand() {
    let program = Program::new();
    for (subcommand, words) in [
        (&[][..], &["toolcrib - A sandboxed tool host", "toolcrib-call(1)", "--container", "Exit codes"][..]),
        (&["call"], &["toolcrib-call - Call one tool", "--raw <FIELD>", "Examples"]),
        (&["policy", "explain"], &["toolcrib-policy-explain - Say what a call"]),
    ] {
        let page = succeeded(&program.run(&[&["man"][..], subcommand].concat()));
        if !is_installed("groff") {
            skip!("groff is not installed");
        }
        let mut groff = Command::new("groff");
        groff
            .args(["-man", "-Tascii", "-P-cbou", "-ww", "-rLL=1000n"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = groff.spawn().expect("groff starts");
        child.stdin.take().expect("piped").write_all(page.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("groff ends");
        let text = succeeded(&output);
        for word in words {
            assert!(text.contains(word), "{word} is not in:\n{text}");
        }
    }
    let output = program.run(&["man", "cal"]);
    assert_eq!(
        (code(&output), stderr(&output).as_str()),
        (2, "usage: `toolcrib` has no subcommand `cal`\nhint: `toolcrib --help` lists them\n")
    );
}
