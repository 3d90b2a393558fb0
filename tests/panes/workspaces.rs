//! A workspace has a session of its own: what it is called, where it begins, who finds it, and that nothing of another one gets in.

use crate::crib::Crib;
use crate::people::Person;
use serde_json::json;
use std::process::Stdio;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Client, Program, Running, eventually};

/// A host in a directory below that of the program, which is made.
fn serve_in(program: &Program, directory: &str, flags: &[&str], environment: &[(&str, &str)]) -> Client {
    std::fs::create_dir_all(program.path(directory)).expect("a directory");
    let arguments = [&["--yes"][..], flags, &["run"]].concat();
    let mut command = program.command(&arguments);
    command.current_dir(program.path(directory)).envs(environment.iter().copied());
    Client::of(Running::start(&mut command))
}

fn run(host: &mut Client, text: &str) -> String {
    let answer = host.shell(text);
    answer["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// What a subcommand prints in a directory: on stdout, and on stderr.
fn said(program: &Program, directory: &str, arguments: &[&str]) -> (String, String) {
    let output = program.command(arguments).current_dir(program.path(directory)).stdin(Stdio::null()).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (stdout, stderr)
}

#[test]
fn shells_begin_at_the_root_of_the_repository_and_the_result_says_where_file_tools_do() {
    let program = Program::with_panes();
    std::fs::create_dir_all(program.path("repository/.git")).expect("a directory");
    let mut below = serve_in(&program, "repository/src/deep", &[], &[]);
    let answer = below.shell("pwd; echo $TOOLCRIB_SESSION");
    let (root, session) = (program.path("repository"), program.session_in("repository"));
    assert_eq!(answer["result"]["stdout"], format!("{}\n{session}\n", root.display()));
    let expected = format!(
        "the pane's directory is `{}`; paths of file tools begin in `{}`",
        root.display(),
        program.path("repository/src/deep").display()
    );
    assert_eq!(answer["result"]["notices"][0], expected, "{answer}");
    // Whoever starts elsewhere in the repository has the same shell, and where the directories are the same there is nothing to say.
    let answer = serve_in(&program, "repository", &[], &[]).shell("pwd");
    assert_eq!(answer["result"]["stdout"], format!("{}\n", root.display()));
    assert!(!answer["result"]["notices"].to_string().contains("paths of file tools"), "{answer}");
    let made = below.call("tmux-create-pane", declared(json!({ "pane": "beside" })));
    assert_eq!(made["result"]["created"], true, "{made}");
    let mut arguments = command("pwd");
    arguments["pane"] = json!("beside");
    assert_eq!(below.call("run_shell", arguments)["result"]["stdout"], format!("{}\n", root.display()));
}

#[test]
fn directories_of_one_name_have_a_shell_each_until_somebody_asks_for_one_by_name() {
    let program = Program::with_panes().unconfined();
    for (directory, kept) in [("a/api", "a"), ("b/api", "b")] {
        assert_eq!(
            run(&mut serve_in(&program, directory, &[], &[]), &format!("kept={kept}; pwd")),
            format!("{}\n", program.path(directory).display())
        );
    }
    for (directory, kept) in [("a/api", "a\n"), ("b/api", "b\n")] {
        assert_eq!(run(&mut serve_in(&program, directory, &[], &[]), "echo $kept"), kept);
    }
    let asked = ["--tmux=Both"];
    assert_eq!(
        run(&mut serve_in(&program, "a/api", &asked, &[]), "kept=both; echo $TOOLCRIB_SESSION"),
        "toolcrib-agent-both\n"
    );
    assert_eq!(run(&mut serve_in(&program, "b/api", &asked, &[]), "echo $kept"), "both\n");
    let full = format!("--tmux={}", program.session_in("a/api"));
    assert_eq!(run(&mut serve_in(&program, "b/api", &[&full], &[]), "echo $kept"), "a\n");
}

#[test]
fn each_workspace_has_room_for_its_own_sessions() {
    let program = Program::with_panes();
    let session = |name: &str| declared(json!({ "session": name }));
    // At the defaults: one session each.
    for directory in ["one", "two"] {
        let mut host = serve_in(&program, directory, &[], &[]);
        assert_eq!(run(&mut host, "echo here"), "here\n", "{directory}");
        let refused = host.call("tmux-create-session", session("build"));
        assert_eq!(refused["error"]["message"], "limit: tmux sessions of this workspace 1, and all are in use");
    }
    // With room for two, the default one always has its own, whichever comes first.
    let two = ["--set", "tmux.max_sessions=2"];
    for directory in ["three", "four"] {
        let mut host = serve_in(&program, directory, &two, &[]);
        let made = host.call("tmux-create-session", session("build"));
        assert_eq!(made["result"]["session"], format!("{}-build", program.session_in(directory)), "{made}");
        assert_eq!(host.call("tmux-create-session", session("more"))["error"]["kind"], "limit");
        assert_eq!(run(&mut host, "echo $TOOLCRIB_SESSION"), format!("{}\n", program.session_in(directory)));
    }
}

#[test]
fn a_session_that_a_person_renamed_is_found_by_its_marks() {
    let program = Program::with_panes();
    let mut first = serve_in(&program, "work", &[], &[]);
    assert_eq!(run(&mut first, "kept=here; echo $kept"), "here\n");
    let _ = program.tmux(&["rename-session", "-t", "=toolcrib-agent", "mine"]);
    assert_eq!(run(&mut first, "echo $kept"), "here\n");
    let mut next = serve_in(&program, "work", &[], &[]);
    assert_eq!(run(&mut next, "echo $kept"), "here\n");
    assert_eq!(program.tmux(&["list-sessions", "-F", "#{session_name}"]), "mine\n");
    let (listed, _) = said(&program, "work", &["panes"]);
    assert!(listed.contains(&program.session()) && listed.contains("(now `mine`)"), "{listed}");
    let (ended, _) = said(&program, "work", &["panes", "--prune"]);
    assert!(ended.contains("ended"), "{ended}");
    assert_eq!(program.tmux(&["list-sessions"]), "");
}

#[test]
fn an_old_name_that_somebody_else_took_is_told_and_not_touched() {
    let program = Program::with_panes();
    let _ = program.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", &program.session(), "cat"]);
    std::fs::create_dir_all(program.path("state/toolcrib/tmux")).expect("a directory");
    let _ = program.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", &program.session(), "cat"]);
    let answer = serve_in(&program, "work", &[], &[]).shell("true");
    assert_eq!(
        answer["error"]["message"],
        format!("the session `{}` exists, but does not belong to this agent", program.session())
    );
}

#[test]
fn the_environment_of_a_shell_is_that_of_its_own_host() {
    let program = Program::with_panes();
    let path = std::env::var("PATH").expect("a path");
    let theirs = format!("{}/bin;:{path}", program.path("one").display());
    let told = "echo \"$PATH|${TZ-unset}|${LC_TIME-unset}\"";
    let mut one = serve_in(&program, "one", &[], &[("PATH", theirs.as_str()), ("TZ", "Asia/Tokyo"), ("LC_TIME", "C")]);
    assert_eq!(run(&mut one, told), format!("{theirs}|Asia/Tokyo|C\n"));
    // The server was started by the first host; nothing of it is there for the second.
    let mut two = serve_in(&program, "two", &["--set", "tmux.max_panes=2"], &[("TZ", "UTC;")]);
    assert_eq!(run(&mut two, told), format!("{path}|UTC;|unset\n"));
    let made = two.call("tmux-create-pane", declared(json!({ "pane": "beside" })));
    assert_eq!(made["result"]["created"], true, "{made}");
    let mut beside = command(told);
    beside["pane"] = json!("beside");
    assert_eq!(two.call("run_shell", beside)["result"]["stdout"], format!("{path}|UTC;|unset\n"));
}

#[test]
fn no_name_of_a_directory_is_read_as_anything_else() {
    let program = Program::with_panes();
    for name in ["#(touch owned)", "#{session_name}", "a;", "$(touch owned)", "it's \"a\"", "##[x] %H", "-n", "世界"]
    {
        let directory = format!("odd/{name}");
        let mut host = serve_in(&program, &directory, &[], &[]);
        let place = program.path(&directory);
        assert_eq!(run(&mut host, "pwd"), format!("{}\n", place.display()), "{name}");
        assert_eq!(std::fs::read_dir(&place).expect("a directory").count(), 0, "{name}");
    }
}

#[test]
fn sessions_shows_what_runs_where_and_who_holds_a_pane() {
    let program = Program::with_panes();
    let (mut here, mut there) = (serve_in(&program, "work", &[], &[]), serve_in(&program, "there", &[], &[]));
    run(&mut there, "true");
    run(&mut here, "mkdir sub; cd sub");
    let (listed, _) = said(&program, "work", &["panes"]);
    let row = |listed: &str, word: &str| {
        listed.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert!(row(&listed, "shared").contains("sh") && !listed.contains("for the agent"), "{listed}");
    let waits = "touch waits; tail -f /dev/null";
    here.send("run_shell", command(waits));
    eventually("the command runs", || program.path("work/sub/waits").exists());
    let _ = program.tmux(&["split-window", "-d", "-t", "=toolcrib-agent:", "exec cat"]);
    eventually("a person's program runs", || {
        program.tmux(&["list-panes", "-a", "-F", "#{pane_current_command}"]).lines().any(|program| program == "cat")
    });
    let (listed, hint) = said(&program, "work", &["panes"]);
    let held = format!("`{waits}`, for the agent");
    assert!(row(&listed, "shared").contains(&held), "{listed}");
    assert!(row(&listed, "shared").contains(&program.path("work/sub").display().to_string()), "{listed}");
    assert!(row(&listed, "(a person's)").contains("cat"), "{listed}");
    assert!(!listed.contains(&program.session_in("there")), "{listed}");
    assert!(hint.contains("1 more session belongs to other directories: `toolcrib panes --all`"), "{hint}");
    let (all, hint) = said(&program, "work", &["panes", "--all"]);
    assert!(all.contains(&program.session_in("there")) && !hint.contains("more session"), "{all}{hint}");
    here.kill();
    eventually("its client is gone", || program.tmux(&["list-clients"]).lines().count() == 1);
    let (listed, _) = said(&program, "work", &["panes"]);
    assert!(row(&listed, "shared").contains(&format!("`{waits}`, left by a host that is gone")), "{listed}");
}

#[test]
fn pruning_ends_the_sessions_of_this_workspace_alone() {
    let program = Program::with_panes();
    for directory in ["one", "two", "three"] {
        run(&mut serve_in(&program, directory, &[], &[]), "true");
    }
    said(&program, "one", &["panes", "--prune"]);
    let left = program.tmux(&["list-sessions", "-F", "#{session_name}"]);
    assert!(!left.contains(&program.session_in("one")) && left.lines().count() == 2, "{left}");
    said(&program, "one", &["panes", "--all", "--prune"]);
    assert_eq!(program.tmux(&["list-sessions"]), "");
}

#[test]
fn attaching_takes_a_person_to_the_session_of_the_directory_or_to_the_one_that_they_name() {
    let program = Program::with_panes();
    for directory in ["one", "two"] {
        run(&mut serve_in(&program, directory, &[], &[]), "true");
    }
    // A renamed window is found all the same.
    let _ = program.tmux(&["rename-window", "-t", &format!("={}:", program.session_in("two")), "other"]);
    let (one, two) = (program.session_in("one"), program.session_in("two"));
    for (directory, arguments, expected) in
        [("one", &[][..], &one), ("two", &[][..], &two), ("one", &[two.as_str()][..], &two)]
    {
        let person = Person::running(&program, directory, &[&["attach"], arguments].concat());
        let people = || program.tmux(&["list-clients", "-F", "#{client_control_mode} #{session_name}"]);
        eventually("the person is attached", || people().lines().any(|line| line == format!("0 {expected}")));
        drop(person);
        eventually("the person has left", || !people().lines().any(|line| line.starts_with('0')));
    }
}

#[test]
fn doctor_says_how_to_join_this_very_session() {
    let crib = Crib::new();
    let output = crib.program.run(&["--tmux=build it", "--set", "agent.name=ops", "doctor"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("join with `toolcrib --set agent.name=ops '--tmux=build it' attach`"), "{report}");
}
