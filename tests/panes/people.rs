//! A person at the pane: what they see when they attach, and that nobody types while they do.
#![expect(clippy::disallowed_methods, reason = "the person's terminal is a tmux of its own")]

use crate::crib::Crib;
use serde_json::json;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually};

/// The terminal of somebody who is attached, ended when it is dropped.
pub(crate) struct Person {
    socket: String,
}

impl Person {
    /// With a server of its own: one that was ended may take a moment to let go of its socket.
    fn beside(program: &Program) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("person{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Self { socket: program.path(&name).display().to_string() }
    }

    pub(crate) fn attached_to(program: &Program) -> Self {
        Self::attached_with(program, "120")
    }

    fn attached_with(program: &Program, columns: &str) -> Self {
        let person = Self::beside(program);
        let attach = format!(
            "exec tmux -S {} attach -t ={}",
            program.path("state/toolcrib/tmux/socket").display(),
            program.session()
        );
        person.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "person", "-x", columns, "-y", "40", &attach]);
        eventually("the person is attached", || {
            program.tmux(&["list-clients", "-F", "#{client_control_mode}"]).lines().any(|mode| mode == "0")
        });
        // Within its first second nobody can tell typing from attaching.
        let clients = || program.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_created}"]);
        let came =
            clients().lines().find_map(|line| line.strip_prefix("0 ")?.parse::<u64>().ok()).expect("they are there");
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
        eventually("a second has passed", || now() > came);
        person
    }

    /// With the program itself in the terminal, in a directory below that of the program.
    pub(crate) fn running(program: &Program, directory: &str, arguments: &[&str]) -> Self {
        let person = Self::beside(program);
        let command = program.command(arguments);
        let mut words: Vec<String> = vec!["exec".into(), "env".into(), "-i".into()];
        words.extend(
            command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?))),
        );
        words.push(command.get_program().to_str().expect("text").into());
        words.extend(arguments.iter().map(ToString::to_string));
        let line =
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ").replacen("'exec'", "exec", 1);
        let place = program.path(directory).display().to_string();
        person.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "person",
            "-c",
            &place,
            "-x",
            "120",
            "-y",
            "40",
            &line,
        ]);
        person
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-S", &self.socket]).args(arguments).env_remove("TMUX").output();
        String::from_utf8_lossy(&output.expect("tmux is installed").stdout).into_owned()
    }

    pub(crate) fn sees(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "person"])
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Calls until nobody counts as typing any more.
pub(crate) fn once_quiet(crib: &mut Crib, text: &str) -> serde_json::Value {
    let begin = Instant::now();
    loop {
        let answer = crib.call("run_shell", command(text));
        if answer["error"]["kind"] != "busy" {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_person_sees_commands_and_their_output_and_nothing_of_the_machinery() {
    let mut crib = Crib::with(&["tmux.default_shell=\"/bin/bash\""]);
    crib.run("PS1='> '");
    let person = Person::attached_to(&crib.program);
    let answer = once_quiet(&mut crib, "for i in 1 2; do\n  echo step $i\ndone");
    assert_eq!(answer["result"]["stdout"], "step 1\nstep 2\n", "{answer}");
    eventually("it is drawn, with the prompt behind it", || person.sees().contains("step 2\n>"));
    let seen = person.sees();
    assert!(seen.contains("$ for i in 1 2; do\n    echo step $i\n  done\nstep 1\nstep 2\n>"), "{seen}");
    for hidden in ["133;", "toolcrib_s", "state/toolcrib", "PROMPT_COMMAND"] {
        assert!(!seen.contains(hidden), "`{hidden}` is seen: {seen}");
    }
}

#[test]
fn while_a_person_types_no_command_is_typed_between() {
    let mut crib = Crib::new();
    crib.run("true");
    let person = Person::attached_to(&crib.program);
    once_quiet(&mut crib, "true");
    person.tmux(&["send-keys", "-t", "person", "-l", "echo half"]);
    let refused = std::thread::scope(|scope| {
        let (_answered, is_over) = channel::<()>();
        let person = &person;
        // They go on until there is an answer, however long that takes.
        scope.spawn(move || {
            while is_over.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
                person.tmux(&["send-keys", "-t", "person", "-l", " "]);
            }
        });
        eventually("what was typed is there", || person.sees().contains("echo half"));
        crib.refusal("echo mine")
    });
    assert_eq!(refused, format!("busy: somebody is typing at session `{}`", crib.program.session()));
    person.tmux(&["send-keys", "-t", "person", "Enter"]);
    let answer = once_quiet(&mut crib, "echo mine");
    assert_eq!(answer["result"]["stdout"], "mine\n", "{answer}");
    assert!(crib.shows("half"), "{}", crib.screen());
}

#[test]
fn on_a_narrow_terminal_the_typed_line_goes_with_all_its_rows_and_nothing_else_does() {
    let mut crib = Crib::with(&["tmux.default_shell=\"/bin/bash\""]);
    crib.run("PS1='somebody@somewhere:~/a/directory/of/theirs> '");
    let person = Person::attached_with(&crib.program, "80");
    for word in ["one", "two", "three"] {
        let answer = once_quiet(&mut crib, &format!("echo {word} a; echo {word} b"));
        assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
        eventually("it is drawn, with the prompt behind it", || {
            person
                .sees()
                .lines()
                .filter(|line| !line.is_empty())
                .rev()
                .nth(1)
                .is_some_and(|line| line.ends_with("theirs>"))
        });
    }
    let seen = person.sees();
    for word in ["one", "two", "three"] {
        assert!(seen.contains(&format!("$ echo {word} a; echo {word} b\n{word} a\n{word} b\n")), "{seen}");
    }
    assert!(!seen.contains("/t-") && !seen.contains("\\."), "{seen}");
}

#[test]
fn the_first_look_at_a_new_pane_shows_the_command_and_no_line_of_ours() {
    for startup in ["", "sleep 0.4\n", "sleep 1.5\n", "PS1=\n"] {
        let program = Program::with_panes();
        program.write("home/.bashrc", startup);
        let mut crib = Crib::on(program, &["tmux.default_shell=\"/bin/bash\""]);
        assert_eq!(crib.run("echo first").1, "first\n");
        let shown = crib.result("capture-pane", json!({ "start": "-" }));
        let shown = shown.as_str().expect("text");
        assert!(shown.contains("$ echo first\nfirst\n") && !shown.contains("/t-"), "{startup:?}: {shown}");
    }
}

/// Output reaches whoever watches while the command runs.
#[test]
fn output_is_streamed_while_the_command_runs() {
    let program = Program::with_panes();
    let mut host = program.client(&["--yes", "run", "--events"]);
    let id = host.send("run_shell", command("echo early; until [ -e go ]; do sleep 0.05; done; echo late"));
    host.until_printed(id, "early");
    program.write("work/go", "");
    let answer = host.answer_to(id);
    assert_eq!(answer["result"]["stdout"], "early\nlate\n", "{answer}");
}

#[test]
fn attaching_is_told_once() {
    let program = Program::with_panes();
    let mut host = program.client(&["--yes", "run", "--events"]);
    let mut told = Vec::new();
    for _ in 0..2 {
        let id = host.send("run_shell", command("true"));
        host.answer_to(id);
        told.extend(host.events(id).filter_map(|event| event["text"].as_str().map(str::to_owned)));
    }
    assert_eq!(told, [format!("attaching to the tmux session `{}` on local", program.session())]);
}

/// The lines that source staged commands are nobody's; what a person types there is theirs.
#[test]
fn histories_keep_what_people_type_and_nothing_that_was_staged() {
    for (shell, history, settings) in [
        ("/bin/bash", ".bash_history", ""),
        ("/usr/bin/zsh", ".zsh_history", "HISTFILE=~/.zsh_history\nSAVEHIST=100\nHISTSIZE=100\n"),
    ] {
        if !std::path::Path::new(shell).exists() {
            toolcrib_tests::note_skip(module_path!(), &format!("`{shell}` is not installed"));
            continue;
        }
        let program = Program::with_panes().unconfined();
        program.write("home/.zshrc", settings);
        let mut crib = Crib::on(program, &[&format!("tmux.default_shell={shell:?}")]);
        crib.run("true");
        let _ = crib.program.tmux(&["send-keys", "-t", "=toolcrib-agent:", "echo typed-by-me", "Enter"]);
        assert!(crib.shows("\ntyped-by-me"), "{}", crib.screen());
        crib.run("true");
        let _ = crib.program.tmux(&["send-keys", "-t", "=toolcrib-agent:", "exit", "Enter"]);
        let kept = || std::fs::read_to_string(crib.program.path(&format!("home/{history}"))).unwrap_or_default();
        eventually("the history is written", || kept().contains("echo typed-by-me"));
        assert!(!kept().contains("/t-"), "{shell}: {}", kept());
    }
}
