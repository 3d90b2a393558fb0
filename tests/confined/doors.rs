//! Sockets and pipes of other programs: which are closed to commands, and which stay open.
#![expect(clippy::disallowed_methods, reason = "the other programs are started by the tests")]

use crate::rig::{BOTH, REQUIRED, Rig, Via, program, word};
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use toolcrib_tests::shell::{command, declared, with};
use toolcrib_tests::{Client, Program, Running, eventually};

/// Waits for connections at a name that is relative to where it is started, and answers each.
const SERVES: &str = "import socket,sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); \
                      [s.accept()[0].sendall(b'served') for _ in range(99)]";
/// Connects to each of these, and says what came of it.
const ASKS: &str = "
import socket, sys
for name in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name)
        print(name, s.recv(9).decode())
    except OSError as error:
        print(name, type(error).__name__)
";

/// A program that ends with the test.
struct Server(Child);

impl Server {
    /// Serves at a name in a directory; what comes before it makes namespaces for it.
    fn start(before: &[&str], directory: &Path, name: &str) -> Self {
        let words = before.iter().copied().chain(["python3", "-c", SERVES, name]);
        let mut words = words.map(str::to_owned);
        let mut command = Command::new(words.next().expect("a word"));
        let server = command.args(words).current_dir(directory).stdin(Stdio::null()).spawn().expect("python3");
        let server = Self(server);
        eventually("it serves", || directory.join(name).exists());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What makes a network namespace for a program.
fn other_network() -> Vec<&'static str> {
    if rustix::process::getuid().is_root() {
        vec!["unshare", "--net", "--"]
    } else {
        vec!["unshare", "--user", "--map-current-user", "--net", "--"]
    }
}

fn ask(names: &[&str]) -> String {
    let words: Vec<String> = names.iter().map(word).collect();
    format!("python3 -c {} {}", word(ASKS), words.join(" "))
}

fn in_pane(client: &mut Client, pane: &str, text: &str) -> Value {
    client.result("tmux-create-pane", declared(json!({ "pane": pane })));
    client.result("run_shell", with(command(text), "pane", pane))
}

/// C-09: whatever its name, and whatever network namespace it is in.
#[test]
fn sockets_of_programs_outside_are_closed_in_the_workspace_and_in_the_home() {
    for via in BOTH {
        let program = program(via);
        let (home, work) = (program.path("home"), program.path("work"));
        fs::create_dir_all(work.join("a/b")).expect("a directory");
        fs::create_dir_all(home.join("a/b")).expect("a directory");
        let _servers = [
            Server::start(&[], &work, "./here"),
            Server::start(&[], &work.join("a/b"), "deep"),
            Server::start(&other_network(), &work, "elsewhere"),
            Server::start(&[], &home, "here"),
            Server::start(&other_network(), &home.join("a/b"), "elsewhere"),
        ];
        let home = home.canonicalize().expect("a directory").display().to_string();
        let mut rig = Rig::of(program, &[]);
        let names = ["here", "a/b/deep", "elsewhere", &format!("{home}/here"), &format!("{home}/a/b/elsewhere")];
        let (_, printed) = rig.run(&ask(&names));
        assert!(!printed.contains("served") && printed.matches("Error").count() == names.len(), "{via:?} {printed}");
        // They cannot be moved out of what covers them either.
        let (_, printed) = rig.run(&format!("mv here away; rm -f elsewhere; {}", ask(&["away", "here", "elsewhere"])));
        assert!(!printed.contains("served"), "{via:?} {printed}");
    }
}

/// One that was bound while the cell lives is closed before the next command.
#[test]
fn sockets_that_are_bound_later_are_closed_too() {
    let mut rig = Rig::new(Via::Process);
    rig.run("mkdir -p a/b");
    let work = rig.work("");
    let _servers = [Server::start(&[], &work, "here"), Server::start(&other_network(), &work.join("a/b"), "elsewhere")];
    let (_, printed) = rig.run(&ask(&["here", "a/b/elsewhere"]));
    assert!(!printed.contains("served") && printed.matches("Error").count() == 2, "{printed}");
}

/// What a command has started stays open to the others of its cell, and what nobody serves any more can be removed.
#[test]
fn sockets_of_the_cell_itself_stay_open() {
    let program = program(Via::Pane);
    let mut client = program.client(&["--yes", "--set", REQUIRED, "--set", "tmux.max_panes=9", "run"]);
    let work = program.path("work").canonicalize().expect("a directory");
    client.result("tmux-create-pane", declared(json!({ "pane": "server" })));
    for (pane, name) in [("server", "own"), ("second", "sub/../absolute")] {
        let name = if pane == "server" { name.to_owned() } else { work.join(name).display().to_string() };
        fs::create_dir_all(work.join("sub")).expect("a directory");
        client.result("tmux-create-pane", declared(json!({ "pane": pane })));
        let serve = format!("python3 -c {} {}", word(SERVES), word(name));
        client.result("run_shell", with(with(command(&serve), "pane", pane), "wait", false));
    }
    eventually("both serve", || work.join("own").exists() && work.join("absolute").exists());
    let _outside = Server::start(&[], &work, "outside");
    // Each of these joins the cell anew.
    for pane in ["one", "two"] {
        let result = in_pane(&mut client, pane, &ask(&["own", "absolute", "outside"]));
        assert_eq!(
            result["stdout"], "own served\nabsolute served\noutside ConnectionRefusedError\n",
            "{pane} {result}"
        );
    }
    drop(Server::start(&[], &work, "left"));
    let result = in_pane(&mut client, "three", "rm left && echo removed");
    assert_eq!(result["stdout"], "removed\n", "{result}");
}

/// A mount that cannot be written does not keep anybody from writing into a pipe.
#[test]
fn pipes_outside_are_closed() {
    for via in BOTH {
        let program = program(via);
        fs::create_dir_all(program.path("home/a")).expect("a directory");
        let pipes = ["home/control", "home/a/control", "beside"].map(|name| program.path(name));
        let own = program.path("work/own");
        for pipe in pipes.iter().chain([&own]) {
            assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
        }
        let open = |pipe| {
            fs::File::options()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(pipe)
                .expect("a pipe")
        };
        let mut readers: Vec<fs::File> = pipes.iter().map(open).collect();
        let mut rig = Rig::of(program, &[]);
        let words: Vec<String> = pipes.iter().map(|pipe| word(pipe.canonicalize().expect("a pipe"))).collect();
        let text =
            format!("for pipe in {}; do echo injected >\"$pipe\"; done; [ -p own ] && echo own", words.join(" "));
        let (_, printed) = rig.run(&text);
        assert!(printed.ends_with("own\n"), "those in the workspace are its own: {via:?} {printed}");
        for (reader, pipe) in readers.iter_mut().zip(&pipes) {
            let mut read = String::new();
            let _ = reader.read_to_string(&mut read);
            assert_eq!(read, "", "{via:?} {}", pipe.display());
        }
    }
}

/// As docker's is in many containers: by a mount of its own, wherever that is.
#[test]
fn a_socket_that_is_mounted_by_itself_is_closed() {
    let program = program(Via::Process);
    let home = program.path("home").canonicalize().expect("a directory");
    let deep = home.join("a/b/c/d/e");
    fs::create_dir_all(&deep).expect("a directory");
    for file in [deep.join("docker.sock"), program.path("work/docker.sock")] {
        fs::write(file, "").expect("a file");
    }
    let _server = Server::start(&[], program.root(), "served");
    let mounts = format!(
        "mount --bind {0} {1} && mount --bind {0} {2}",
        word(program.path("served")),
        word(deep.join("docker.sock")),
        word(program.path("work/docker.sock"))
    );
    let mut client = mounted(&program, &mounts);
    let at = deep.join("docker.sock").display().to_string();
    let result = client.result("run_shell", command(&ask(&[&at, "docker.sock"])));
    let printed = result["stdout"].as_str().expect("text");
    assert!(!printed.contains("served") && printed.matches("Error").count() == 2, "{result}");
}

/// A host that starts where these mounts were made.
pub(crate) fn mounted(program: &Program, mounts: &str) -> Client {
    let given = program.command(&["--yes", "--set", REQUIRED, "run"]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &format!("{mounts} && exec \"$@\""), "sh"]);
    command.arg(given.get_program()).args(given.get_args()).current_dir(program.path("work")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Client::of(Running::start(&mut command))
}
