//! X-26: a command starts processes that will not end: daemons, subreapers, without a first thread or an environment, in hundreds, ever new ones.
//! Outcome: after a timeout none is left within two seconds, or the answer says how many.
//! Switched off: looking beyond the process group (`backend/tree.rs`, `members`): the daemon lived on and the first test failed; reaping what fled (`tree.rs`, `own_children`): the last test failed.
#![expect(clippy::disallowed_methods, reason = "the attacker is a program of its own, compiled here")]

use crate::exec::{end, mark, marked};
use serde_json::Value;
use std::process::Command;
use toolcrib_tests::shell::waiting;
use toolcrib_tests::{Preparation, Siege, eventually, skip};

/// `attacker KIND MARK`: makes the file `ready` when all its processes are there. They end by themselves after a minute.
const ATTACKER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void ready(void) { close(open("ready", O_CREAT | O_WRONLY, 0600)); }
static void stay(void) { for (;;) pause(); }
static void deaf(void) { for (int s = 1; s < 32; s++) if (s != SIGALRM) signal(s, SIG_IGN); alarm(60); }
/* Loses parent, session and group. */
static void detach(void) {
    if (fork()) { wait(NULL); return; }
    setsid();
    if (fork()) _exit(0);
    setsid();
}
static void *second(void *unused) { (void)unused; usleep(100000); ready(); stay(); return NULL; }
static void tree(int depth) {
    for (int i = 0; i < 2 && depth; i++)
        if (!fork()) { deaf(); setsid(); tree(depth - 1); stay(); }
}

int main(int argc, char **argv) {
    (void)argc;
    char *kind = argv[1];
    signal(SIGCHLD, SIG_DFL);
    deaf();
    if (!strcmp(kind, "daemon")) { if (!fork()) { detach(); deaf(); ready(); stay(); } stay(); }
    if (!strcmp(kind, "subreaper")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        for (int i = 0; i < 8; i++) if (!fork()) { detach(); deaf(); stay(); }
        usleep(100000); ready(); stay();
    }
    if (!strcmp(kind, "hidden")) {
        clearenv();
        if (!strcmp(argv[2], "again")) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); detach(); deaf(); ready(); stay(); }
        execl("/proc/self/exe", argv[0], kind, "again", argv[2], NULL);
    }
    if (!strcmp(kind, "renamed")) { prctl(PR_SET_NAME, "x) Z 0 0 0 (", 0, 0, 0); detach(); deaf(); ready(); stay(); }
    if (!strcmp(kind, "headless")) {
        if (fork()) stay();
        deaf();
        pthread_t thread;
        pthread_create(&thread, NULL, second, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(kind, "bomb")) { tree(7); usleep(300000); ready(); stay(); }
    if (!strcmp(kind, "vfork")) {
        for (int i = 0; i < 200; i++) if (!vfork()) { execl("/proc/self/exe", argv[0], "stay", argv[2], NULL); _exit(1); }
        ready(); stay();
    }
    if (!strcmp(kind, "comet")) {
        /* Each generation lives for an instant; the file `stop` or a minute ends them. */
        if (fork()) { ready(); stay(); }
        deaf();
        while (access("stop", F_OK)) { if (fork()) _exit(0); setsid(); }
        _exit(0);
    }
    stay();
}
"#;

/// A host with the attacker in its working directory; none without a compiler.
fn besieged() -> Option<Siege> {
    let siege = Preparation::new().begin();
    siege.program.write("work/attacker.c", ATTACKER);
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-o", "attacker", "attacker.c"]).current_dir(siege.program.path("work"));
    compiler.status().is_ok_and(|status| status.success()).then_some(siege)
}

/// Starts the attacker, lets the call time out; returns the answer and what is left of it then.
fn attack(siege: &mut Siege, kind: &str, mark: &str) -> (Value, Vec<i32>) {
    let attack = format!(
        "rm -f ready; ./attacker {kind} {mark} & while [ ! -e ready ]; do sleep 0.01; done; echo ready; \
                          trap '' TERM; while :; do sleep 1000; done"
    );
    let answer = siege.call("run_shell", waiting(&attack, "8s"));
    let left = marked(mark);
    siege.program.write("work/stop", "");
    end(mark);
    assert_eq!(answer["error"]["kind"], "timed_out", "{kind}: {answer}");
    assert_eq!(answer["error"]["data"]["stdout"], "ready\n", "{kind}: the attack did not come about: {answer}");
    (answer, left)
}

#[test]
fn processes_that_will_not_end_are_ended() {
    let Some(mut siege) = besieged() else { skip!("no C compiler") };
    for kind in ["daemon", "subreaper", "hidden", "renamed", "bomb", "vfork"] {
        let (answer, left) = attack(&mut siege, kind, &mark());
        assert!(left.is_empty(), "{kind}: {left:?} live on; {answer}");
        assert!(answer["error"]["data"]["survivors"].is_null(), "{kind}: {answer}");
    }
    siege.lift();
}

#[test]
fn a_process_whose_first_thread_has_ended_is_ended() {
    let Some(mut siege) = besieged() else { skip!("no C compiler") };
    let (answer, left) = attack(&mut siege, "headless", &mark());
    assert!(left.is_empty(), "{left:?} live on, which the answer does not say: {answer}");
    siege.lift();
}

#[test]
fn processes_that_flee_faster_than_they_are_counted_are_ended_or_told() {
    let Some(mut siege) = besieged() else { skip!("no C compiler") };
    let mark = mark();
    let (answer, left) = attack(&mut siege, "comet", &mark);
    let told = answer["error"]["data"]["survivors"].as_u64().unwrap_or(0);
    assert!(left.is_empty() || told > 0, "{left:?} live on, which the answer does not say: {answer}");
    println!("survivors told: {told}");
    eventually("the comet has burnt out", || marked(&mark).is_empty());
    siege.lift();
}
