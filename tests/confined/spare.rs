//! From the third command on the first process of the next one is there before it is known.

use crate::rig::{Rig, Step, Via, idle, program, word};
use rustix::process::{Pid, Signal, kill_process};
use toolcrib_tests::eventually;

fn rig(settings: &[&str]) -> Rig {
    let mut rig = Rig::by(Step::Namespaces, program(Via::Process), settings);
    for _ in 0..3 {
        assert_eq!(rig.run("true").0, 0);
    }
    has_spare(&rig);
    rig
}

fn has_spare(rig: &Rig) {
    eventually("a spare", || idle(rig, "spare").len() == 1);
}

/// Whether a process has no descriptors any more: its name and its memory go before those.
fn has_ended(pid: Pid) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    state.is_empty() || state.contains(") Z ") || state.contains(") X ")
}

/// The beginning of that, which is all but most mounts: other tests make and end some meanwhile.
fn shown(rig: &mut Rig) -> (i64, String) {
    let (status, said) = rig.run(&format!("{{ {SHOWS}; }} >shown 2>&1"));
    let shown = std::fs::read_to_string(rig.work("shown")).expect("what it saw");
    (status, said + &shown[..shown.floor_char_boundary(4000)])
}

const SHOWS: &str = "env | grep -v TOOLCRIB_CALL | sort; pwd; umask; ulimit -a; cat; readlink /proc/self/fd/0; ls /proc/self/fd; set -- /proc/[0-9]*; echo $#; \
                     grep -E '^(Cap|Sig|Shd|NoNew|Seccomp:|Uid|Gid|Groups)' /proc/self/status; \
                     ps -o pid,ppid,pgid,sid,args | grep -v toolcrib-init; cat /proc/mounts; cat /proc/1/environ; cat /proc/self/cgroup";

#[test]
fn a_command_finds_all_as_one_that_joined_by_itself() {
    let mut rig = Rig::by(Step::Namespaces, program(Via::Process), &["confine.network=egress"]);
    let first = shown(&mut rig);
    assert!(first.1.contains("Seccomp:\t2") && first.1.contains("NoNewPrivs:\t1"), "{}", first.1);
    rig.run("true");
    has_spare(&rig);
    let pid = idle(&rig, "spare")[0];
    // It is seen a moment before it may be used, and a moment after its command has ended.
    eventually("it was used", || {
        assert_eq!(shown(&mut rig), first);
        !idle(&rig, "spare").contains(&pid)
    });
    has_spare(&rig);
    // Words of every kind, and how it ends.
    let odd = "a\"b'c\n\u{e9}\t$(x) \\";
    assert_eq!(rig.run(&format!("printf %s {}; exit 7", word(odd))), (7, odd.into()));
    has_spare(&rig);
    assert_eq!(rig.result("kill -9 $$")["exit_code"], -1);
    has_spare(&rig);
    let left = rig.notices("sleep 1009 & sleep 1009 & true");
    assert!(left.contains('2'), "{left}");
    has_spare(&rig);
    assert_eq!(rig.run("nosuchprogram 2>/dev/null").0, 127);
}

/// One that was ended is none: the command joins by itself. So does one that is too long.
#[test]
fn a_command_does_without() {
    let mut rig = rig(&[]);
    for _ in 0..3 {
        has_spare(&rig);
        let pid = idle(&rig, "spare")[0];
        kill_process(pid, Signal::KILL).expect("a signal");
        eventually("it ended", || has_ended(pid));
        assert_eq!(rig.run("echo there"), (0, "there\n".into()));
    }
    has_spare(&rig);
    let long = "x".repeat(100_000);
    assert_eq!(rig.run(&format!("printf %s {long} | wc -c")), (0, "100000\n".into()));
    // What did not fit has used none up.
    assert_eq!(rig.run("echo there"), (0, "there\n".into()));
}

/// It ends with the host, whose cell it is in.
#[test]
fn it_ends_with_the_host() {
    let rig = rig(&[]);
    let pid = idle(&rig, "spare")[0];
    kill_process(Pid::from_raw(rig.client.pid() as i32).expect("a number"), Signal::KILL).expect("a signal");
    eventually("it is gone", || has_ended(pid));
}
