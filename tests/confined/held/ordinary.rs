//! Ordinary work makes nothing that is held.

use super::assert_nothing_held;
use crate::git::git;
use crate::rig::{BOTH, Rig, program, word};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs what people have commands do; nothing of it acts by itself.
fn ordinary(rig: &mut Rig, text: &str) {
    let result = rig.result(text);
    assert_eq!(result["exit_code"], 0, "{text}: {result}");
    assert!(!result["notices"].to_string().contains("held back"), "{text}: {result}");
    assert_nothing_held(rig, text);
}

/// A tool that is not there for this user is left out, which is printed.
fn is_usable(rig: &mut Rig, text: &str) -> bool {
    let (status, said) = rig.run(&format!("({text}) >/dev/null"));
    if status != 0 {
        println!("not tried, as it does not run here: {text}: {said}");
    }
    status == 0
}

/// Where this machine's cargo is without the help of rustup, which looks for its settings in a home.
#[expect(clippy::disallowed_methods, reason = "the developer's own tools")]
fn cargo() -> Option<PathBuf> {
    let output = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(root.trim()).join("bin/cargo"))
}

#[test]
fn ordinary_work_ends_with_nothing_held() {
    for via in BOTH {
        let program = program(via);
        let plain = program.path("plain");
        fs::create_dir(&plain).expect("a directory");
        git(&plain, &["init", "-q", "-b", "main"]);
        fs::write(plain.join("f"), "1\n").expect("a file");
        git(&plain, &["add", "f"]);
        git(&plain, &["commit", "-q", "-m", "first"]);
        let plain = word(plain.canonicalize().expect("a path"));
        let mut rig = Rig::of(program, &[]);
        ordinary(
            &mut rig,
            "git init -q new; cd new; echo 1 >f; git add f; git -c user.name=a -c user.email=a@b commit -q -m f; cd ..",
        );
        ordinary(&mut rig, &format!("git clone -q {plain} cloned; test -e cloned/f"));
        if let Some(cargo) = cargo().map(word)
            && is_usable(&mut rig, &format!("{cargo} --version"))
        {
            ordinary(&mut rig, &format!("{cargo} new --offline -q made; test -e made/src/main.rs"));
        }
        if is_usable(&mut rig, "npm --version") {
            ordinary(&mut rig, "mkdir package; cd package; npm init -y >/dev/null; test -e package.json; cd ..");
        }
        if is_usable(&mut rig, "python3 -m venv --help && python3 -c 'import ensurepip'") {
            ordinary(&mut rig, "python3 -m venv .venv; test -e .venv/bin/python");
            let tiny = "mkdir tiny; cd tiny; echo 'x = 1' >tiny.py; printf '[project]\\nname = \"tiny\"\\nversion = \"1\"\\n' >pyproject.toml";
            ordinary(&mut rig, &format!("{tiny}; cd .."));
            if is_usable(&mut rig, ".venv/bin/python -c 'import setuptools'") {
                ordinary(
                    &mut rig,
                    "cd tiny; ../.venv/bin/pip install -q --no-build-isolation --no-deps --no-index -e .; cd ..; .venv/bin/python -c 'import tiny'",
                );
            }
        }
    }
}
