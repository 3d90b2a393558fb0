//! What a host has in memory is no command's to read, in no cell either: its environment, its secrets, what it has open.

use crate::rig::{Via, program, word};
use toolcrib_tests::{Client, Running, shell};

/// Looks for a value in the memory of its parent, of which it knows the beginning alone; prints an error or what it could do, a line each.
const LOOK: &str = r#"
import ctypes, errno, os, re
host, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)
def attempt(name, action):
    try:
        print(name, action())
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def search():
    found, memory = 0, open(f"/proc/{host}/mem", "rb", 0)
    for line in open(f"/proc/{host}/maps"):
        begin, end, rights = re.match("([0-9a-f]+)-([0-9a-f]+) (r?)", line).groups()
        try:
            memory.seek(int(begin, 16))
            found += bool(rights) and (b"value-in-" + b"memory-") in memory.read(int(end, 16) - int(begin, 16))
        except (OSError, OverflowError, ValueError):
            pass
    return f"found {found}"
def call(*arguments):
    if libc.syscall(*[ctypes.c_long(one) for one in arguments]) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "traced"
attempt("memory", search)
attempt("maps", lambda: len(open(f"/proc/{host}/maps").read()))
attempt("descriptors", lambda: os.listdir(f"/proc/{host}/fd"))
attempt("environment", lambda: len(open(f"/proc/{host}/environ").read()))
attempt("working directory", lambda: os.readlink(f"/proc/{host}/cwd"))
attempt("trace", lambda: call(101 if os.uname().machine == "x86_64" else 117, 16, host, 0, 0))
"#;

/// Root may look into everything; `again.rs` has this tried as another user.
#[test]
fn an_unconfined_command_does_not_read_the_memory_of_its_host() {
    if rustix::process::getuid().is_root() {
        return;
    }
    let program = program(Via::Process).unconfined();
    let mut command = program.command(&["--yes", "run"]);
    command.env("SERVICE_TOKEN", format!("value-in-memory-{}", std::process::id()));
    let mut client = Client::of(Running::start(&mut command));
    // The shell becomes the program, so that the host is its parent.
    let result = client.result("run_shell", shell::command(&format!("exec python3 -c {}", word(LOOK))));
    let printed = result["stdout"].as_str().expect("text");
    let refused: Vec<&str> = printed.lines().filter_map(|line| line.rsplit_once(' ')).map(|(_, error)| error).collect();
    assert_eq!(refused, ["EACCES", "EACCES", "EACCES", "EACCES", "EACCES", "EPERM"], "{result}");
}
