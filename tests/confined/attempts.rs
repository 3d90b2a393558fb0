//! What a hostile command tries from inside, and what becomes of it.

use crate::rig::{BOTH, Rig, Via, word};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// C-01 to C-08, C-11, C-12, C-16 to C-23, C-32 to C-35, C-42.
#[test]
fn nothing_outside_is_reached() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let name = format!("toolcrib-{}-{via:?}", std::process::id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name"));
        let loopback = TcpListener::bind("127.0.0.1:0").expect("a port");
        fs::write(rig.work("attempts.py"), include_str!("attempts.py")).expect("a file");
        let home = rig.program.path("home/.bashrc").canonicalize().expect("a file");
        let arguments = [
            std::process::id().to_string(),
            name,
            loopback.local_addr().expect("an address").port().to_string(),
            home.display().to_string(),
            rig.work("").display().to_string(),
        ];
        let (status, printed) = rig.run(&format!("python3 attempts.py {}", arguments.map(word).join(" ")));
        assert_eq!(status, 0, "{via:?} {printed}");
        check(&printed, via);
        assert_eq!(fs::read_to_string(home).expect("a file"), "# private\n");
        assert!(rig.work("mine").exists() && !Path::new("/tmp/mine").exists());
    }
}

fn check(printed: &str, via: Via) {
    let found: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let open = ["AF_UNIX", "own file", "a file in /tmp", "a program in memory"];
    let expected = [
        ("other terminals", "ENOENT"),
        ("mem outside", "ENOENT"),
        ("environ outside", "ENOENT"),
        ("fd outside", "ENOENT"),
        ("mem of init", "EACCES"),
        ("environ of init", "EACCES"),
        ("fd of init", "EACCES"),
        ("signal outside", "ESRCH"),
        ("clone3", "ENOSYS"),
        ("x32", "ENOSYS"),
        ("32 bits", "ENOSYS"),
        ("AF_NETLINK, NETFILTER", "EPROTONOSUPPORT"),
        ("AF_PACKET", "EAFNOSUPPORT"),
        ("AF_ALG", "EAFNOSUPPORT"),
        ("AF_VSOCK", "EAFNOSUPPORT"),
        ("an abstract socket outside", "ECONNREFUSED"),
        ("the loopback outside", "ECONNREFUSED"),
        ("a cloud's metadata", "ENETUNREACH"),
        ("a public address", "ENETUNREACH"),
        ("core_pattern", "EROFS"),
        ("sysrq-trigger", "EROFS"),
        ("a file outside", "EROFS"),
        ("a new file outside", "EROFS"),
        ("through a link", "EROFS"),
        ("a device", "ENOENT"),
        ("a group of processes", "EROFS"),
        ("a hard link", "EXDEV"),
    ];
    let expected: BTreeMap<&str, &str> = expected.into_iter().chain(open.map(|name| (name, "ok"))).collect();
    assert!(found.len() > 50, "{via:?} {printed}");
    for (name, error) in &found {
        // Not every kernel has the one, and nobody but root can write either.
        let is_denied = *error == "EACCES" && !rustix::process::getuid().is_root();
        let is_denied_or_missing = is_denied || *error == "ENOENT";
        let may_be_missing = ["sysrq-trigger", "a group of processes"].contains(name);
        if may_be_missing && is_denied_or_missing || *name == "core_pattern" && is_denied {
            continue;
        }
        // Everything else is a call that is refused.
        assert_eq!(error, expected.get(name).unwrap_or(&"EPERM"), "{via:?}: {name}\n{printed}");
    }
    for name in expected.keys().filter(|name| cfg!(target_arch = "x86_64") || !["x32", "32 bits"].contains(name)) {
        assert!(found.contains_key(name), "{via:?}: {name} was not tried\n{printed}");
    }
}

/// C-14: nothing gives a command a right that its user does not have outside.
#[test]
fn no_privilege_is_left_or_gained() {
    for via in BOTH {
        let (status, printed) = Rig::new(via).run("cat /proc/self/status");
        let line =
            |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(line(set).trim_matches('0'), "", "{via:?} {set} {printed}");
            assert!(!line(set).is_empty());
        }
        assert_eq!((status, line("NoNewPrivs:"), line("Seccomp:")), (0, "1", "2"), "{via:?} {printed}");
    }
}

/// C-10: the server of the panes, by its path, by what tmux tells its panes, and by its usual name.
#[test]
fn no_command_reaches_the_server_of_its_pane() {
    let mut rig = Rig::new(Via::Pane);
    let socket = rig.program.path("state/toolcrib/tmux/socket").canonicalize();
    assert_eq!(rig.run("true").0, 0);
    let socket = socket.or_else(|_| rig.program.path("state/toolcrib/tmux/socket").canonicalize()).expect("a socket");
    let (_, printed) =
        rig.run(&format!("echo \"[$TMUX$TMUX_PANE]\"; command tmux -S {} ls; command tmux ls", word(&socket)));
    assert!(printed.starts_with("[]\n"), "{printed}");
    assert_eq!(printed.matches("No such file or directory").count(), 2, "{printed}");
    let state = rig.program.path("state/toolcrib").canonicalize().expect("a directory");
    let (_, printed) = rig.run(&format!("cd {} && find . -type f -o -type s | sort", word(&state)));
    let is_staged = |line: &str| line.starts_with("./tmux/") && line.contains("/toolcrib-agent-work-");
    let odd: Vec<&str> = printed.lines().filter(|line| !is_staged(line)).collect();
    assert!(odd.is_empty() && !printed.is_empty(), "nothing of the state but this workspace's commands: {printed}");
}

/// C-13: what is mounted or made outside later is seen where it can be read, and nothing that is made inside is seen outside.
#[test]
fn what_is_made_inside_stays_inside() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let (status, printed) = rig.run("touch /tmp/toolcrib-inside /run/toolcrib-inside && ls /tmp /run");
        assert!(status == 0 && printed.matches("toolcrib-inside").count() == 2, "{via:?} {printed}");
        assert!(!Path::new("/tmp/toolcrib-inside").exists() && !Path::new("/run/toolcrib-inside").exists());
    }
}

/// C-28: what a command leaves in its shell's surroundings is nothing to the next one of a process of its own.
#[test]
fn a_plain_command_leaves_the_next_nothing() {
    let mut rig = Rig::new(Via::Process);
    rig.run("export LD_PRELOAD=/x BASH_ENV=/y; touch /tmp/left /run/left; alias ls=rm; exec 9>/dev/shm/left");
    let (status, printed) = rig.run("echo [$LD_PRELOAD$BASH_ENV]; ls /proc/self/fd | tr '\\n' ' '; ls /tmp");
    assert_eq!((status, printed.as_str()), (0, "[]\n0 1 2 3 left\n"), "but for the files of their cell");
}

/// A cell adds the variables by which programs find its proxy, its caches and the person's keys, and none of the host's.
#[test]
fn a_command_has_the_standard_variables_and_those_of_its_cell() {
    let mut rig = Rig::new(Via::Process);
    let (_, printed) = rig.run("env | cut -d= -f1 | LC_ALL=C sort | tr '\\n' ' '");
    let settings = |what: &str| (0..5).map(|number| format!("GIT_CONFIG_{what}_{number} ")).collect::<String>();
    let git = format!("GIT_CONFIG_COUNT {}{}", settings("KEY"), settings("VALUE"));
    let proxies = "GOMODCACHE HOME HTTPS_PROXY HTTP_PROXY NO_PROXY PATH PWD TERM TOOLCRIB_CALL";
    let rest = "XDG_CACHE_HOME all_proxy http_proxy https_proxy no_proxy npm_config_cache ";
    let expected = format!("ALL_PROXY CARGO_HOME EDITOR {git}{proxies} {rest}");
    assert_eq!(printed.replace("LANG ", "").replace("LC_ALL ", ""), expected);
}

/// C-05: where settings say so a command debugs what it started, and nothing else.
#[test]
fn a_debugger_works_where_settings_say_so() {
    for via in BOTH {
        for debug in [false, true] {
            let mut rig = Rig::with(via, &[&format!("confine.debug={debug}")]);
            let (_, printed) = rig.run("strace -f -o trace sh -c 'true' && grep -c 'exited with 0' trace");
            assert_eq!(printed.ends_with("1\n"), debug, "{via:?} {printed}");
            let (_, printed) = rig.run("strace -p 1 2>&1; cat /proc/1/environ 2>&1");
            assert!(printed.contains("Operation not permitted") && printed.contains("Permission denied"), "{printed}");
        }
    }
}

/// C-31: what a cell has of its own is bounded.
#[test]
fn a_cell_fills_no_memory() {
    for via in BOTH {
        let (_, printed) =
            Rig::new(via).run("head -c 4000000 /dev/zero >/dev/fill; head -c 20000000 /dev/zero >/run/fill");
        // What another program makes there cannot be bounded, so it cannot be written.
        let bounded = ["No space left on device", "Read-only file system"].map(|said| printed.matches(said).count());
        assert_eq!(bounded.iter().sum::<usize>(), 2, "{via:?} {printed}");
    }
}

/// Devices are the machine's: who owns them could close them to everybody.
#[test]
fn devices_keep_their_modes() {
    for via in BOTH {
        let (_, printed) = Rig::new(via).run("chmod 600 /dev/full; echo x >/dev/null && echo written");
        assert!(printed.contains("Read-only file system") && printed.contains("written\n"), "{via:?} {printed}");
    }
}

/// C-09: sockets of programs outside are not connected to, though a file system that cannot be written does not keep anybody from that.
#[test]
fn sockets_outside_are_out_of_reach() {
    for via in BOTH {
        let program = crate::rig::program(via);
        let home = program.path("home").canonicalize().expect("a directory");
        let _before = UnixListener::bind(home.join("before")).expect("a socket");
        // A name that is no text hides none of the others.
        let _odd = UnixListener::bind(home.join(OsStr::from_bytes(b"odd\xff"))).expect("a socket");
        let mut rig = Rig::of(program, &["confine.unix_sockets=false"]);
        let connect = |name: &str| {
            let script =
                "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('reached')";
            format!("python3 -c {} {}", word(script), word(home.join(name)))
        };
        let pair = format!("python3 -c {}", word("import socket; socket.socketpair(); print('a pair')"));
        assert_eq!(rig.run(&pair), (0, "a pair\n".into()), "{via:?}");
        let (status, printed) = rig.run(&connect("before"));
        assert!(status != 0 && printed.contains("Address family not supported"), "{via:?} {printed}");
        let mut rig = Rig::of(rig.program, &[]);
        let (status, printed) = rig.run(&connect("before"));
        assert!(status != 0 && !printed.contains("reached"), "{via:?} {printed}");
        assert!(printed.contains("Connection refused") || printed.contains("Permission denied"), "{via:?} {printed}");
        let own = "import socket,os; s = socket.socket(socket.AF_UNIX); s.bind('own'); s.listen(); socket.socket(socket.AF_UNIX).connect('own'); print('own')";
        assert_eq!(rig.run(&format!("python3 -c {}", word(own))), (0, "own\n".into()), "{via:?}");
    }
}
