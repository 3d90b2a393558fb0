//! What can be written, what is hidden, what is protected.

use crate::rig::{BOTH, Rig, Via, program, word};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use toolcrib_tests::outcome::{code, stderr};

/// C-22, C-27: nothing is written but the workspace and what is named.
#[test]
fn only_what_is_named_is_written() {
    for via in BOTH {
        let program = program(via);
        fs::create_dir(program.path("more")).expect("a directory");
        let more = program.path("more").canonicalize().expect("a directory");
        let mut rig = Rig::of(program, &[&format!("confine.write=[\".\", {more:?}]")]);
        let home = rig.program.path("home").canonicalize().expect("a directory");
        let (_, printed) = rig.run(&format!(
            "touch in {0}/in && echo both; cd {1}; touch .profile .config/autostart x; echo x >>.bashrc; rm notes; mv notes n; ln notes m",
            word(&more),
            word(&home)
        ));
        assert!(printed.starts_with("both\n"), "{via:?} {printed}");
        // What is not there cannot be touched in a directory that is not there either.
        assert_eq!(printed.matches("Read-only file system").count(), 6, "{via:?} {printed}");
        assert!(rig.work("in").exists() && more.join("in").exists() && home.join("notes").exists());
    }
}

/// What is hidden is empty, and nobody can write in its place.
#[test]
fn what_is_hidden_is_not_there() {
    for via in BOTH {
        let program = program(via);
        program.write("home/diary/today", "private\n");
        program.write("work/secret/key", "private\n");
        let hide = ["home/diary", "work/secret"].map(|name| program.path(name).canonicalize().expect("a directory"));
        let mut rig = Rig::of(program, &[&format!("confine.hide={hide:?}")]);
        let home = word(rig.program.path("home").canonicalize().expect("a directory"));
        let (_, printed) = rig.run(&format!(
            "cd {home}; ls -A .ssh diary; cat .netrc notes; touch .ssh/x /run/.nothing/x; rmdir .ssh diary; mv .ssh y; cat {0}/key; echo x >{0}/key; rm -r {0}; ls -A {0}",
            word(rig.work("secret"))
        ));
        assert_eq!(printed.matches("private").count(), 1, "the notes alone can be read\n{via:?} {printed}");
        for name in ["home/.ssh/id", "home/diary/today", "work/secret/key"] {
            assert!(fs::read_to_string(rig.program.path(name)).expect("a file").contains("private\n"), "{name}");
        }
    }
}

/// Who an agent is, commands neither read nor write, also where it lies in the workspace.
#[test]
fn identity_files_of_agents_are_out_of_reach() {
    for via in BOTH {
        let program = program(via);
        program.write("work/SOUL.md", "identity\n");
        let soul = program.path("work/SOUL.md").canonicalize().expect("a file");
        let settings = format!("[toolset.otter.context.SOUL]\nfile = {soul:?}\nabout = \"x\"\n");
        program.write("config/toolcrib/toolcrib.toml", settings);
        let mut rig = Rig::of(program, &[]);
        let (_, printed) =
            rig.run("cat SOUL.md; echo mine >SOUL.md; rm -f SOUL.md; mv SOUL.md x; ln SOUL.md y; cat y x");
        assert!(!printed.contains("identity"), "{via:?} {printed}");
        assert_eq!(fs::read_to_string(&soul).expect("a file"), "identity\n", "{via:?}");
    }
}

/// With a list in `read` the home is empty but for that, for what is written there, and for caches.
#[test]
fn the_home_is_empty_but_for_what_is_to_be_read() {
    for via in BOTH {
        let program = program(via);
        for name in ["home/shared/there", "home/shared/.ssh-like", "home/.gitconfig", "home/.cache/outside", "home/new"]
        {
            program.write(name, "told\n");
        }
        program.write("home/src/project/file", "told\n");
        let home = program.path("home").canonicalize().expect("a directory");
        symlink("shared/there", home.join("link")).expect("a link");
        let _socket = UnixListener::bind(home.join("shared/socket")).expect("a socket");
        let written = home.join("src/project");
        let read = ["shared", ".gitconfig", "link", "missing"].map(|name| home.join(name));
        let settings = [
            format!("confine.read={read:?}"),
            format!("confine.write=[\".\", {written:?}]"),
            format!("confine.hide=[{:?}]", home.join("shared/.ssh-like")),
        ];
        let mut rig = Rig::of(program, &settings.each_ref().map(String::as_str));
        let at = word(&home);
        let (_, printed) = rig.run(&format!("cd {at} && ls -A1 . src"));
        // Programs and caches are those of this machine and of the defaults.
        assert_eq!(printed, ".:\n.cache\n.gitconfig\nlink\nshared\nsrc\n\nsrc:\nproject\n", "{via:?}");
        let (_, printed) = rig
            .run(&format!("cd {at} && cat .gitconfig link shared/there src/project/file .bashrc notes; ls -A .cache"));
        assert_eq!(printed.matches("told").count(), 4, "{via:?} {printed}");
        assert!(!printed.contains("private") && !printed.contains("outside"), "{via:?} {printed}");
        let (_, printed) =
            rig.run(&format!("cd {at} && cat shared/.ssh-like; touch x shared/x .ssh; mkdir .config; mv shared away"));
        assert!(!printed.contains("told"), "{via:?} {printed}");
        assert_eq!(printed.matches("Read-only file system").count(), 5, "{via:?} {printed}");
        assert_eq!(
            rig.run(&format!("echo inside | tee {at}/src/project/made >{at}/.cache/made && cat {at}/.cache/made")).1,
            "inside\n"
        );
        assert!(written.join("made").exists() && !home.join(".cache/made").exists() && !home.join("x").exists());
        let script = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('reached')";
        let (_, printed) = rig.run(&format!("python3 -c {} {at}/shared/socket 2>&1 | tail -n 1", word(script)));
        assert!(!printed.contains("reached") && printed.contains("Error"), "{via:?} {printed}");
        let notices = rig.notices(&format!("cat {at}/notes"));
        let line = format!(
            "`{}` is not there for commands: add it, or a directory above it, to `read` under [confine]",
            home.join("notes").display()
        );
        assert!(notices.contains(&line), "{via:?} {notices}");
    }
}

/// A list about the home has nothing to say of other places, and what cannot close the home does not pretend to.
#[test]
fn a_list_of_what_is_read_is_one_of_the_home() {
    for (read, said) in [("[\"/usr\"]", "is not in the home"), ("[\"relative\"]", "is relative")] {
        let program = program(Via::Process);
        let set = format!("confine.read={read}");
        let output =
            program.command(&["--set", &set, "--set", crate::rig::REQUIRED, "tools"]).output().expect("it starts");
        assert!(stderr(&output).contains(said), "{read}: {}", stderr(&output));
        assert_ne!(code(&output), 0, "{read}");
    }
    // By the name of the home, and above it: all of it.
    let program = program(Via::Process);
    let mut rig = Rig::of(program, &["confine.read=[\"~/\"]"]);
    let home = rig.program.path("home").canonicalize().expect("a directory");
    assert_eq!(rig.run(&format!("cat {}", word(home.join("notes")))), (0, "# private\n".into()));
}

/// Programs keep what they download in copies that the workspace has for itself.
#[test]
fn what_is_written_in_caches_stays_with_the_workspace() {
    for via in BOTH {
        let program = crate::rig::program(via);
        program.write("home/.cargo/registry/there", "outside\n");
        program.write("home/.cargo/credentials.toml", "# private\n");
        std::fs::create_dir_all(program.path("home/.cache")).expect("a directory");
        let mut rig = Rig::of(program, &[]);
        let home = rig.program.path("home").canonicalize().expect("a directory");
        let registry = word(home.join(".cargo/registry"));
        let script =
            format!("cd {registry} && cat there && echo inside >there && echo new >new && rm -f there && ls; cd - >&2");
        assert_eq!(rig.run(&script).1.lines().take(2).collect::<Vec<_>>(), ["outside", "new"], "{via:?}");
        assert_eq!(rig.run(&format!("ls {registry}")), (0, "new\n".into()), "{via:?}");
        let (_, printed) = rig.run(&format!("cat {}", word(home.join(".cargo/credentials.toml"))));
        assert!(!printed.contains("private"), "{via:?} {printed}");
        // One that is missing is where its variable says.
        let script =
            "touch \"$npm_config_cache/x\" && echo \"$npm_config_cache\"; echo \"[$CARGO_HOME$XDG_CACHE_HOME]\"";
        assert_eq!(rig.run(script), (0, "/run/caches/.npm\n[]\n".into()), "{via:?}");
        let outside = |name: &str| home.join(".cargo/registry").join(name);
        assert_eq!(std::fs::read_to_string(outside("there")).expect("a file"), "outside\n");
        assert!(!outside("new").exists() && !home.join(".npm").exists());
        // Another workspace of the same person has others.
        let Rig { client, program } = rig;
        drop(client);
        std::fs::create_dir(program.path("other")).expect("a directory");
        let elsewhere = program.path("other").canonicalize().expect("a directory");
        let mut command = program.command(&["--yes", "--set", crate::rig::REQUIRED, "call", "run_shell"]);
        let arguments = toolcrib_tests::shell::command(&format!("ls {registry} \"$npm_config_cache\"")).to_string();
        let output = command.arg(arguments).current_dir(elsewhere).output().expect("it starts");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an envelope");
        assert!(
            said["result"]["stdout"].as_str().is_some_and(|said| said.contains("there\n") && !said.contains("new")),
            "{said}"
        );
    }
}

/// C-25, C-26: what runs or is obeyed later is read, and cannot be moved away to be made anew.
#[test]
fn what_is_protected_is_not_written() {
    for via in BOTH {
        let program = program(via);
        for name in [".git/hooks/pre-commit", ".git/config", ".envrc", "toolcrib.toml"] {
            program.write(&format!("work/{name}"), "# kept\n");
        }
        let mut rig = Rig::of(program, &[]);
        let (_, printed) = rig.run(
            "cat .git/config; echo x >.git/hooks/pre-commit; echo x >>.git/config; echo x >.envrc; rm -f .envrc toolcrib.toml; \
             mv .git git; mv .git/hooks h; touch .git/hooks/post-commit; chmod +x .envrc; touch work && echo open",
        );
        assert!(printed.starts_with("# kept\n") && printed.contains("open\n"), "{via:?} {printed}");
        for name in [".git/hooks/pre-commit", ".git/config", ".envrc", "toolcrib.toml"] {
            assert_eq!(fs::read_to_string(rig.work(name)).expect("a file"), "# kept\n", "{via:?} {printed}");
        }
        assert!(!rig.work(".git/hooks/post-commit").exists() && !rig.work("git").exists(), "{printed}");
    }
}

/// A name that leads elsewhere ends no command, and is no way out either.
#[test]
fn a_link_in_a_protected_place_does_no_harm() {
    for via in BOTH {
        let program = program(via);
        symlink(program.path("home/.bashrc"), program.path("work/.envrc")).expect("a link");
        symlink("nowhere", program.path("work/.vscode")).expect("a link");
        symlink(".", program.path("work/.git")).expect("a link");
        let mut rig = Rig::of(program, &[]);
        let (_, printed) = rig.run("echo x >.envrc; touch on && echo on");
        assert!(printed.contains("on\n"), "{via:?} {printed}");
        let kept = |name: &str| fs::read_to_string(rig.program.path(name)).expect("a file");
        assert_eq!(kept("home/.bashrc"), "# private\n", "{printed}");
    }
}

/// Kept output is read by commands as by tools.
#[test]
fn output_that_was_kept_can_be_read() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let result = rig.result("seq 100000").to_string();
        let at = result.find("/state/toolcrib/output/").unwrap_or_else(|| panic!("nothing was kept: {result}"));
        let is_outside = |letter: char| "\"'` )]".contains(letter);
        let begin = result[..at].rfind(is_outside).map_or(0, |begin| begin + 1);
        let end = result[at..].find(is_outside).map_or(result.len(), |end| at + end);
        let stored = &result[begin..end];
        let (status, printed) = rig.run(&format!("tail -n 1 {}", word(stored)));
        assert_eq!((status, printed.as_str()), (0, "100000\n"), "{via:?}");
    }
}

/// C-44: what cannot be enforced, or would be no wall, is refused before anything runs.
#[test]
fn what_is_no_place_to_write_is_refused() {
    let program = program(Via::Process);
    let home = program.path("home").canonicalize().expect("a directory");
    let above = home.parent().expect("a directory").to_owned();
    let state = program.path("state").canonicalize().expect("a directory");
    for (write, why) in [
        ("/".into(), "it is the whole disk"),
        (home.display().to_string(), "it is the home"),
        (above.display().to_string(), "the home is in it"),
        (state.display().to_string(), "Toolcrib's own"),
        ("/usr/local/lib".into(), "is the system's"),
        ("/nowhere".into(), "cannot be used: No such file"),
    ] {
        let set = ["--set", "confine.mode=auto", "--set", &format!("confine.write=[{write:?}]"), "doctor"];
        let output = program.run(&set);
        let said = toolcrib_tests::outcome::stdout(&output) + &stderr(&output);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code(&output) != 0 && said.contains(why), "{write}: {said}");
    }
    for (setting, why) in [
        ("confine.mode=\"of\"", "unknown variant"),
        ("confine.protect=[\"../x\"]", "is not a path below a directory"),
        ("confine.protect=[\"/x\"]", "is not a path below a directory"),
        ("confine.write=[\"work\"]", "is relative"),
        ("confine.processes=1", "must be 8 to"),
        ("confine.memory=15 MiB", "must be a size in MiB, GiB or TiB"),
        ("confine.wirte=[]", "did you mean"),
    ] {
        let output = program.run(&["--set", setting, "tools"]);
        assert!(code(&output) != 0 && stderr(&output).contains(why), "{setting}: {}", stderr(&output));
    }
}

/// The home itself is no workspace to write in, and it is said why.
#[test]
fn a_home_is_not_made_writable_by_starting_there() {
    let program = program(Via::Process);
    let mut command = program.command(&["--yes", "--set", crate::rig::REQUIRED, "run"]);
    command.current_dir(program.path("home"));
    let mut client = toolcrib_tests::Client::of(toolcrib_tests::Running::start(&mut command));
    let result = client.result("run_shell", toolcrib_tests::shell::command("touch x"));
    assert_eq!(result["exit_code"], 1, "{result}");
    assert!(result["notices"].to_string().contains("the workspace is not writable: it is the home"), "{result}");
    assert!(!program.path("home/x").exists());
}

/// A directory that its owner has closed can be opened again by that owner: what is hidden in it would be open.
#[test]
fn what_is_hidden_behind_a_closed_door_ends_the_cell() {
    if rustix::process::getuid().is_root() {
        return;
    }
    let program = program(Via::Process);
    program.write("work/closed/secret", "private\n");
    let closed = program.path("work/closed").canonicalize().expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("a mode");
    let hide = format!("confine.hide=[{:?}]", closed.join("secret"));
    let mut program = Some(program);
    // No lower step takes over: a command could have closed the door for that.
    for floor in ["confine.floor=full", "confine.floor=partial"] {
        let mut rig = Rig::of(program.take().expect("a program"), &[&hide, floor]);
        let refused =
            rig.client.failure("run_shell", toolcrib_tests::shell::command("chmod 700 closed; cat closed/secret"));
        assert!(refused.starts_with("unavailable: "), "{refused}");
        program = Some(rig.program);
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("a mode");
}
