//! Mounts of toolsets: directories under other names for commands, programs and file tools, which give nothing more than their own names do.
//! The numbers are those of the cases of agents whose tools are programs.

use crate::rig::{REQUIRED, Step, Via, program};
use serde_json::{Value, json};
use std::path::Path;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, Running, on_path};

/// A session on a toolset.
struct Session {
    program: Program,
    running: Running,
    lines: u64,
}

impl Session {
    /// One whose commands are confined by this step, with this toolset.
    fn open(program: Program, step: Step, set: &[&str]) -> Result<Self, String> {
        let set = step.settings().iter().chain(set).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["--yes"].into_iter().chain(set).chain(["run"]).collect();
        let running = Running::start(&mut program.failing(step.failing(), &arguments));
        let mut session = Self { program, running, lines: 0 };
        let opened = session.ask(json!({ "open": { "toolset": "otter" } }));
        if opened["result"]["session"] == "s1" { Ok(session) } else { Err(opened["error"].to_string()) }
    }

    fn ask(&mut self, mut line: Value) -> Value {
        self.lines += 1;
        line["id"] = json!(self.lines);
        self.running.write(format!("{line}\n"));
        self.running.line()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(json!({ "session": "s1", "tool": tool, "arguments": arguments }))
    }

    /// Runs a command: all that it printed.
    fn run(&mut self, text: &str) -> String {
        let answer = self.call("run_shell", command(text));
        let said =
            |name: &str| answer["result"][name].as_str().map(str::to_owned).unwrap_or_else(|| answer.to_string());
        said("stdout") + &said("stderr")
    }
}

/// A toolset with these mounts, each a target, a directory of the program, and whether it is only read.
fn toolset(program: &Program, mounts: &[(&str, &str, bool)]) {
    let mut text =
        "[toolset.otter]\ntools = [\"run_shell\", \"read_file\", \"write_file\", \"file_list\", \"file_search\", \"mount_list\", \
                    \"exec\", \"cat\", \"touch\", \"job_submit\", \"job_wait\"]\n"
            .to_owned();
    for (target, directory, read_only) in mounts {
        let path = program.path(directory);
        text += &format!(
            "[toolset.otter.mount.{target:?}]\npath = {path:?}\nabout = \"What is there.\"\nread_only = {read_only}\n"
        );
    }
    program.write("config/toolcrib/toolcrib.toml", text);
    program.declares("cat", &on_path("cat"), "");
    program.declares("touch", &on_path("touch"), "");
}

/// Cases 27 and 28.
#[test]
fn a_mount_is_there_under_its_name_for_commands_programs_and_files() {
    for step in [Step::Namespaces, Step::Bwrap] {
        let program = program(Via::Process);
        program.write("home/data/cities", "Oslo\n");
        program.write("work/out/.keep", "");
        toolset(&program, &[("/run/data", "home/data", true), ("/run/results/here", "work/out", false)]);
        let mut session = Session::open(program, step, &[REQUIRED]).expect("a session");
        let listed = session.call("mount_list", json!({}));
        let expected = json!([
            { "target": "/run/data", "description": "What is there.", "read_only": true },
            { "target": "/run/results/here", "description": "What is there.", "read_only": false },
        ]);
        assert_eq!(listed["result"]["mounts"], expected, "{step:?} {listed}");
        assert!(!listed.to_string().contains("home/data"));
        assert_eq!(session.run("cat /run/data/cities; cd /run/data && pwd"), "Oslo\n/run/data\n", "{step:?}");
        let refused = session.run("echo x >/run/data/cities; touch /run/data/new; rm -f /run/data/cities");
        assert_eq!(refused.matches("Read-only file system").count(), 3, "{step:?} {refused}");
        assert_eq!(session.run("echo result >/run/results/here/one && cat out/one"), "result\n", "{step:?}");
        let given = |words: &[&str]| json!({ "args": words });
        assert_eq!(session.call("cat", given(&["/run/data/cities"]))["result"]["stdout"], "Oslo\n", "{step:?}");
        let touched = session.call("touch", given(&["/run/data/new"]));
        assert_eq!(touched["error"]["kind"], "execution_failed", "{step:?} {touched}");
        for (bin, path, code) in [("touch", "/run/data/new", 1), ("cat", "/run/data/cities", 0)] {
            let submitted = session.call("job_submit", json!({ "bin": bin, "args": [path] }));
            let ended = session.call("job_wait", json!({ "job_id": submitted["result"]["job_id"] }));
            let of_job = &ended["result"];
            assert_eq!((&of_job["state"], &of_job["exit_code"]), (&json!("done"), &json!(code)), "{step:?} {ended}");
            let said = if code == 0 { of_job["stdout"] == "Oslo\n" } else { of_job.to_string().contains("Read-only") };
            assert!(said, "{step:?} {ended}");
        }
        let in_it = session.call("exec", json!({ "program": "cat", "args": ["cities"], "working_dir": "/run/data" }));
        assert_eq!(in_it["result"]["stdout"], "Oslo\n", "{step:?} {in_it}");
        // Files likewise, and no answer has what it is on this machine.
        assert_eq!(session.call("read_file", json!({ "path": "/run/data/cities" }))["result"], "Oslo\n", "{step:?}");
        let entries = session.call("file_list", json!({ "path": "/run/data" }));
        assert!(entries["result"].to_string().contains("cities"), "{step:?} {entries}");
        let found = session.call("file_search", json!({ "pattern": "Oslo", "path": "/run/data" }));
        assert_eq!(found["result"], "/run/data/cities\n1:Oslo\n\n1 match in 1 file.", "{step:?} {found}");
        let write = |path: &str| json!({ "path": path, "content": "written\n" });
        for path in ["/run/data/cities", "/run/data/new", "/run/data/../data/new", "/run/data/a/b"] {
            let refused = session.call("write_file", write(path));
            assert_eq!(refused["error"]["kind"], "denied", "{step:?} {refused}");
            assert!(
                refused["error"]["message"].as_str().is_some_and(|said| said.contains("only for reading")),
                "{refused}"
            );
        }
        let written = session.call("write_file", write("/run/results/here/two"));
        assert!(written.get("result").is_some(), "{step:?} {written}");
        assert_eq!(std::fs::read_to_string(session.program.path("work/out/two")).expect("a file"), "written\n");
        for (tool, arguments) in [
            ("read_file", json!({ "path": "/run/data/missing" })),
            ("read_file", json!({ "path": "/run/data" })),
            ("file_list", json!({ "path": "/run/data/cities" })),
        ] {
            let failed = session.call(tool, arguments);
            assert!(failed["error"].to_string().contains("/run/data"), "{failed}");
            assert!(!failed.to_string().contains("home/data"), "{failed}");
        }
        // `..` leads out of it as elsewhere.
        let out = session.call("read_file", json!({ "path": "/run/data/../../etc/hostname" }));
        assert!(!out.to_string().contains("only for reading"), "{out}");
        assert_eq!(std::fs::read_dir(session.program.path("home/data")).expect("a directory").count(), 1);
        // Another session has none of it.
        let line = json!({ "tool": "run_shell", "arguments": command("ls /run/data") });
        assert_ne!(session.ask(line)["result"]["exit_code"], 0);
    }
}

/// Likewise in panes, whose shells are in a cell of the toolset's.
#[test]
fn a_mount_is_there_in_panes() {
    let program = program(Via::Pane);
    program.write("home/data/cities", "Oslo\n");
    toolset(&program, &[("/run/data", "home/data", true)]);
    let mut session = Session::open(program, Step::Namespaces, &[REQUIRED]).expect("a session");
    assert_eq!(
        session.run("cd /run/data && cat cities && { echo x >new || echo refused; }").matches("Oslo").count(),
        1
    );
    let in_it = session.run("pwd; ls");
    assert!(in_it.contains("/run/data") && in_it.contains("cities") && !in_it.contains("new"), "{in_it}");
}

/// A mount gives nothing: what its directory would not give, it does not give either, and what cannot be mounted is not silently left out.
#[test]
fn a_mount_opens_nothing() {
    let here = |name: &str| Path::new(name).is_dir();
    assert!(!here("/no-such-place"));
    for (target, directory, read_only, set, said) in [
        ("/run/home", "home", true, REQUIRED, "which is hidden from commands"),
        ("/run/keys", "home/.ssh", true, REQUIRED, "which is hidden from commands"),
        ("/run/data", "home/data", false, REQUIRED, "name that in `write` under [confine]"),
        ("/run/work", "work", false, REQUIRED, "which commands do not write"),
        ("/no-such-place", "home/data", true, REQUIRED, "needs a directory there: make one, or mount it below /run"),
        ("/proc/data", "home/data", true, REQUIRED, "is in a place of the kernel's"),
        ("/run/none", "home/none", true, REQUIRED, "cannot be used: No such file"),
        ("/run/file", "home/notes", true, REQUIRED, "is of what is no directory"),
        ("/run/data", "home/data", true, "confine.mode=off", "commands would not find the mounts of this toolset"),
    ] {
        let program = program(Via::Process);
        program.write("home/data/cities", "Oslo\n");
        program.write("work/.git/hooks/x", "");
        toolset(&program, &[(target, directory, read_only)]);
        let answer = match Session::open(program, Step::Namespaces, &[set]) {
            Ok(mut session) => session.run("ls -A /run"),
            Err(refused) => refused,
        };
        assert!(answer.contains(said), "{target} {directory}: {answer}");
    }
    for target in ["data", "/", "/a/../b", "/a/", "/a//b", "/a/./b"] {
        let program = program(Via::Process);
        toolset(&program, &[(target, "home", true)]);
        let output = program.run(&["tools"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is not a place for a mount: write it as `/data`"), "{target}: {said}");
    }
}
