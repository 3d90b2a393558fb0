//! Directories of PATH in the workspace: commands install programs there, and none that takes the place of another one.

use super::{BEFORE, UNTIL_GO, assert_held, assert_nothing_held, held_at, is_there, mode, text};
use crate::rig::{BOTH, REQUIRED, Rig, Via, program};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use toolcrib_tests::{Client, Program, Running, eventually};

/// A host whose PATH begins with these directories of the workspace.
fn on_path(program: Program, directories: &[&str]) -> Rig {
    let work = program.path("work").canonicalize().expect("a directory");
    let own = directories.iter().map(|directory| work.join(directory));
    let system = std::env::var_os("PATH").expect("where programs are");
    let path = std::env::join_paths(own.chain(std::env::split_paths(&system))).expect("a path");
    let mut command = program.command(&["--yes", "--set", REQUIRED, "run"]);
    command.env("PATH", path);
    let client = Client::of(Running::start(&mut command));
    Rig { client, program }
}

fn tool(program: &Program, name: &str) {
    program.write(&format!("work/{name}"), BEFORE);
    fs::set_permissions(program.path(&format!("work/{name}")), Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn programs_that_commands_install_are_there() {
    for via in BOTH {
        let program = program(via);
        tool(&program, "bin/own-tool");
        let mut rig = on_path(program, &["node_modules/.bin", "bin"]);
        for (text, count) in [
            ("true", 0),
            ("mkdir -p node_modules/.bin; for i in 1 2 3 4 5; do echo x >node_modules/.bin/tool-$i; done", 5),
            ("ln -s ../elsewhere node_modules/.bin/linked; mkdir bin/below; echo x >bin/below/ls", 1),
            ("echo x >>bin/own-tool; mv node_modules/.bin/tool-1 bin/tool-1", 2),
            ("rm -r node_modules; mkdir -p x/.bin; echo y >x/.bin/tool-2; mv x node_modules", 1),
            ("true", 0),
        ] {
            let result = rig.result(text);
            assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
            let notices = result["notices"].to_string();
            let told = format!("programs were made or changed in directories on PATH ({count}): ");
            assert_eq!(notices.contains(&told), count > 0, "{via:?} {text}: {notices}");
            assert_eq!(notices.matches("PATH").count(), usize::from(count > 0), "{via:?} {text}: {notices}");
        }
        assert_nothing_held(&rig, "what takes nobody's place");
        assert!(is_there(&rig.work("bin/tool-1")) && is_there(&rig.work("bin/below/ls")));
    }
}

/// Ways to have another program run in the place of `ls` or of one that Toolcrib starts itself; and what is held.
const WAYS: [(&str, &str); 7] = [
    ("echo x >bin/ls", "bin/ls"),
    ("mkdir -p node_modules/.bin; echo x >plain; ln plain node_modules/.bin/ls", "node_modules/.bin/ls"),
    ("ln -s ../evil bin/ls", "bin/ls"),
    ("mkdir x; echo x >x/ls; rm -r bin; mv x bin", "bin/ls"),
    ("mkdir -p x/.bin; echo x >x/.bin/ls; mv x node_modules", "node_modules/.bin/ls"),
    ("mkdir evil; echo x >evil/ls; mv bin old; ln -s evil bin", "bin"),
    ("echo x >bin/podman", "bin/podman"),
];

#[test]
fn what_takes_the_place_of_another_program_is_held() {
    for via in BOTH {
        for (way, held) in WAYS {
            let program = program(via);
            tool(&program, "bin/own-tool");
            let mut rig = on_path(program, &["node_modules/.bin", "bin"]);
            let notices = rig.notices(way);
            assert_held(&rig, held, &notices, &format!("{via:?} {way}"));
            assert!(!is_there(&rig.work("bin/ls")) && !is_there(&rig.work("bin/podman")), "{via:?} {way}: {notices}");
        }
    }
}

#[test]
fn what_a_process_in_the_background_puts_in_the_place_of_another_program_is_held() {
    for (way, held) in WAYS {
        let program = program(Via::Pane);
        tool(&program, "bin/own-tool");
        let mut rig = on_path(program, &["node_modules/.bin", "bin"]);
        rig.run(&format!("({UNTIL_GO}; {way}; touch gone) & true"));
        rig.program.write("work/go", "");
        eventually("it was made", || rig.work("gone").exists());
        eventually(way, || held_at(&rig, held).len() == 1 && !is_there(&rig.work("bin/ls")));
    }
}

/// One of the person's that takes the place of another one stays as it is, and what leads to it does.
#[test]
fn a_program_of_the_persons_in_the_place_of_another_is_put_back() {
    for via in BOTH {
        let program = program(via);
        for name in ["bin/ls", "tools/cat", "envs/one/bin/python3"] {
            tool(&program, name);
        }
        symlink("../tools/cat", program.path("work/bin/cat")).expect("a link");
        symlink("envs/one", program.path("work/.venv")).expect("a link");
        let mut rig = on_path(program, &[".venv/bin", "bin"]);
        for (text, file) in [
            ("echo made >bin/ls", "bin/ls"),
            ("rm bin/ls; echo made >bin/ls", "bin/ls"),
            ("chmod 600 bin/ls", "bin/ls"),
            ("echo made >tools/cat", "bin/cat"),
            ("ln -sf ../evil bin/cat", "bin/cat"),
            ("echo made >.venv/bin/python3", ".venv/bin/python3"),
            ("mkdir -p envs/two/bin; echo made >envs/two/bin/python3; ln -sfn envs/two .venv", ".venv/bin/python3"),
        ] {
            let before = rig.held().len();
            let notices = rig.notices(text);
            assert_eq!(self::text(&rig, file), BEFORE, "{via:?} {text}: {notices}");
            assert_eq!(mode(&rig.work(file).canonicalize().expect("it is there")), 0o755, "{via:?} {text}: {notices}");
            assert!(rig.held().len() > before, "{via:?} {text}: {notices}");
        }
        rig.run("cp bin/ls plain; rm bin/ls; mv plain bin/ls");
        assert_eq!(text(&rig, "bin/ls"), BEFORE, "{via:?}");
    }
}

/// What Toolcrib starts for itself is none that commands could have written, and what it makes a pane with neither.
#[test]
fn toolcrib_starts_no_program_of_the_workspace() {
    let program = program(Via::Pane);
    let proof = program.path("proof");
    for name in ["tmux", "sh", "find", "mkdir", "chmod", "sed", "env", "getent", "grep", "head"] {
        program.write(&format!("work/bin/{name}"), format!("#!/bin/sh\ntouch '{}'\nexit 1\n", proof.display()));
        fs::set_permissions(program.path(&format!("work/bin/{name}")), Permissions::from_mode(0o755)).expect("a mode");
    }
    let mut rig = on_path(program, &["bin"]);
    let (status, said) = rig.run("echo ran; type chmod");
    assert!(status == 0 && said.starts_with("ran\n"), "{said}");
    // The person's PATH is there in the pane.
    assert!(said.contains(rig.work("bin/chmod").to_str().expect("text")), "{said}");
    assert!(!proof.exists());
}

/// Package managers work where the directories are on PATH into which they install, as in a virtual environment that somebody has entered.
#[test]
fn package_managers_install_programs_on_path() {
    for via in BOTH {
        let mut rig = on_path(program(via), &["node_modules/.bin", ".venv/bin"]);
        let mut is_usable = |text: &str| {
            let (status, said) = rig.run(&format!("({text}) >/dev/null"));
            if status != 0 {
                println!("not tried, as it does not run here: {text}: {said}");
            }
            status == 0
        };
        let (has_npm, has_pip) =
            (is_usable("npm --version"), is_usable("python3 -c 'import ensurepip, setuptools, wheel'"));
        if has_npm {
            let package = "{\"name\":\"tiny\",\"version\":\"1.0.0\",\"bin\":{\"tiny-tool\":\"t.js\"}}";
            let made = format!(
                "mkdir tiny; echo '{package}' >tiny/package.json; echo '#!/usr/bin/env node' >tiny/t.js; echo '{{}}' >package.json"
            );
            for text in [
                &*format!("{made}; npm install --offline --no-audit --no-fund ./tiny"),
                "npm install --offline --no-audit --no-fund ./tiny",
                "rm -rf node_modules; npm ci --offline --no-audit --no-fund",
            ] {
                let result = rig.result(text);
                assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
                assert!(is_there(&rig.work("node_modules/.bin/tiny-tool")), "{via:?} {text}: {result}");
            }
        }
        if has_pip {
            // What somebody has entered is there.
            let mut rig = with_environment(via);
            let tiny = "mkdir tiny; echo 'def main(): print(1)' >tiny/tiny.py; cd tiny; \
                printf '[project]\\nname = \"tiny\"\\nversion = \"1\"\\n[project.scripts]\\ntiny-script = \"tiny:main\"\\n' >pyproject.toml; cd ..";
            let install = "python -m pip install -q --no-build-isolation --no-deps --no-index -e ./tiny";
            for text in [
                &*format!("{tiny}; .venv/bin/{install}"),
                &*format!(".venv/bin/{install}"),
                ".venv/bin/python -m pip uninstall -q -y tiny",
            ] {
                let result = rig.result(text);
                assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
                assert_nothing_held(&rig, text);
                assert_eq!(
                    is_there(&rig.work(".venv/bin/tiny-script")),
                    !text.contains("uninstall"),
                    "{via:?} {text}: {result}"
                );
            }
        }
    }
}

/// One in which the person has made a virtual environment, and entered it.
#[expect(clippy::disallowed_methods, reason = "the developer's own tools")]
fn with_environment(via: Via) -> Rig {
    let program = program(via);
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--system-site-packages", ".venv"])
        .current_dir(program.path("work"))
        .status();
    assert!(made.expect("python").success());
    on_path(program, &[".venv/bin"])
}
