//! What is hidden is so by what it is: at a second mount, in another home of the user, in the homes of others that root can read.

use crate::doors::mounted;
use crate::rig::{Via, program, word};
use serde_json::json;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, Program};

/// Nothing of these files is read: by a command, which finds nothing there, or by a tool, which is refused.
fn is_closed(client: &mut Client, program: &Program, names: &[&str]) {
    for name in names {
        let path = program.root().canonicalize().expect("a directory").join(name);
        let result = client.result("run_shell", command(&format!("cat {} 2>&1; echo done", word(&path))));
        let printed = result["stdout"].as_str().expect("text");
        assert!(!printed.contains("private") && printed.ends_with("done\n"), "{name}: {result}");
        let refused = client.failure("read_file", json!({ "path": path }));
        assert!(refused.starts_with("denied: ") && !refused.contains("private"), "{name}: {refused}");
    }
}

fn is_open(client: &mut Client, program: &Program, name: &str) {
    let path = program.root().canonicalize().expect("a directory").join(name);
    let result = client.result("run_shell", command(&format!("cat {}", word(&path))));
    assert_eq!(result["stdout"], "# open\n", "{name}: {result}");
    assert_eq!(client.result("read_file", json!({ "path": path })), "# open\n", "{name}");
}

/// Of the home, of Toolcrib's state, and of a part of what is hidden.
#[test]
fn what_is_hidden_is_so_at_its_second_mount() {
    let program = program(Via::Process);
    for name in ["home/.ssh/keys/id", "home/.config/gh/hosts.yml", "state/toolcrib/notes.key"] {
        program.write(name, "# private\n");
    }
    program.write("home/readme", "# open\n");
    for name in ["alternative", "keys", "records"] {
        std::fs::create_dir(program.path(name)).expect("a directory");
    }
    let mount = |from: &str, to: &str| format!("mount --bind {} {}", word(program.path(from)), word(program.path(to)));
    let mounts = [mount("home", "alternative"), mount("home/.ssh/keys", "keys"), mount("state", "records")];
    let mut client = mounted(&program, &mounts.join(" && "));
    let names = [
        "home/.ssh/id",
        "alternative/.ssh/id",
        "alternative/.ssh/keys/id",
        "alternative/.config/gh/hosts.yml",
        "keys/id",
        "records/toolcrib/notes.key",
    ];
    is_closed(&mut client, &program, &names);
    is_open(&mut client, &program, "alternative/readme");
}

/// Root reads every home. Which there are, passwd says.
#[test]
fn homes_that_passwd_names_are_closed_to_root() {
    let program = program(Via::Process);
    for name in [
        "other/.netrc",
        "other/.local/state/toolcrib/code.key",
        "other/.config/toolcrib/secrets/KEY",
        "service/.ssh/id",
        "home/.local/state/toolcrib/code.key",
    ] {
        program.write(name, "# private\n");
    }
    program.write("other/readme", "# open\n");
    let root = program.root().canonicalize().expect("a directory");
    let root = root.display();
    let passwd = format!("root:x:0:0::{root}/other:/bin/sh\nservice:x:990:990::{root}/service:/bin/sh\n");
    program.write("passwd", passwd);
    let mut client = mounted(&program, &format!("mount --bind {} /etc/passwd", word(program.path("passwd"))));
    let names = [
        "other/.netrc",
        "other/.local/state/toolcrib/code.key",
        "other/.config/toolcrib/secrets/KEY",
        "service/.ssh/id",
        "home/.local/state/toolcrib/code.key",
    ];
    is_closed(&mut client, &program, &names);
    is_open(&mut client, &program, "other/readme");
}
