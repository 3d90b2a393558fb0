//! S-05: the disk of the audit trail is full, or its user's quota (L-46), so that what happens next would be on no record; a line is torn in its middle.
//! Outcome: a result says that its call is not on record, or with `audit.required` nothing happens; later lines are whole again.
//! Switched off: with the errors of `append` in `trail/chain.rs` ignored the commands ran without a word, and the next line was glued to the torn one.
#![expect(clippy::disallowed_methods, reason = "the program runs where a small disk is mounted")]

use serde_json::{Value, json};
use std::process::Command;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, skip};

/// Mounts a disk as the state directory (`$1`), fills it after a first call, calls until an answer holds `$UNTIL`, then makes room and
/// calls again. The rest of the arguments is the program with its options.
const STORY: &str = r#"
    state=$1; shift
    eval "$DISK" || { echo cannot mount; exit 99; }
    "$@" call run_shell "$CALL" || exit 98
    dd if=/dev/zero of="$state/fill" bs=4096 2>/dev/null
    calls=0
    while [ $calls -lt 40 ]; do
        calls=$((calls + 1))
        rm -f ran
        answer=$("$@" call run_shell "$CALL" 2>/dev/null); code=$?
        case $answer in *"$UNTIL"*) break ;; esac
    done
    printf '%s\n%s\n' "$answer" "$code"
    [ -e ran ] && echo ran || echo "did not run"
    rm -f "$state/fill"
    sync "$state"
    "$@" call run_shell "$CALL" || exit 97
    cat "$state/audit.jsonl""#;

/// A disk that is full when it is.
const SMALL: &str = r#"mount -t tmpfs -o size=8m,mode=700 tmpfs "$state""#;
/// A large one, of which little may be used: the error is another one (`EDQUOT`).
const BY_QUOTA: &str = r#"
    truncate -s 128M ../disk && mkfs.btrfs -q -M ../disk >&2 && mount -o loop ../disk "$state" && chmod 700 "$state" &&
    btrfs quota enable "$state" && btrfs qgroup limit 8M "$state""#;

/// Only root can mount a file as a disk.
fn disks() -> &'static [&'static str] {
    if rustix::process::getuid().is_root() { &[SMALL, BY_QUOTA] } else { &[SMALL] }
}

/// What the system says there.
fn full(disk: &str) -> &'static str {
    if disk == SMALL { " space" } else { "quota exceeded" }
}

/// What happened: the first answer, the one on a full disk with its exit code and whether its command ran, one with room, the trail.
fn story(program: &Program, disk: &str, options: &[&str], until: &str) -> Option<Vec<String>> {
    std::fs::create_dir_all(program.path("state/toolcrib")).expect("a state directory");
    let namespaces = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    let call = command("touch ran");
    let base = program.command(&[]);
    let mut command = Command::new("timeout");
    command.args(["120", "unshare", namespaces, "sh", "-c", STORY, "sh"]).arg(program.path("state/toolcrib"));
    command.arg(Program::file()).arg("--yes").args(options).current_dir(program.path("work")).env_clear();
    command
        .envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("CALL", call.to_string())
        .env("DISK", disk)
        .env("UNTIL", until);
    let output = command.output().expect("`timeout` is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("cannot mount") || output.status.code() == Some(1) && text.is_empty() {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Every line of the trail but the torn one is JSON; each outcome belongs to a line of its own.
fn is_whole(trail: &[String], most_torn: usize) {
    let torn: Vec<_> = trail.iter().filter(|line| serde_json::from_str::<Value>(line).is_err()).collect();
    assert!(torn.len() <= most_torn, "{torn:?}");
    for line in torn {
        assert_eq!(line.matches("{\"n\"").count(), 1, "two lines are glued: {line}");
    }
    let last = trail.iter().rfind(|line| line.contains("\"call\"")).expect("a line about a call");
    let last = parsed(last);
    assert_eq!((&last["event"], &last["outcome"]), (&json!("outcome"), &json!("ok")));
}

#[test]
fn a_call_that_is_not_on_record_says_so_and_later_ones_are() {
    for disk in disks() {
        let program = Program::new();
        let Some(story) = story(&program, disk, &[], "not in the audit trail") else {
            skip!("no disk of its own can be mounted")
        };
        assert_eq!(parsed(&story[0])["result"]["exit_code"], 0);
        let (answer, code, ran) = (parsed(&story[1]), &story[2], &story[3]);
        assert_eq!((code.as_str(), ran.as_str()), ("0", "ran"), "{answer}");
        let notices = answer["notices"].as_array().expect("notices");
        let told =
            notices.iter().filter_map(Value::as_str).find(|notice| notice.contains("is not in the audit trail: "));
        assert!(told.is_some_and(|told| told.contains(full(disk))), "{answer}");
        assert_eq!(parsed(&story[4]).get("notices"), None, "with room there is nothing to tell");
        is_whole(&story[5..], 1);
    }
}

#[test]
fn where_a_record_is_required_nothing_happens_without_one() {
    for disk in disks() {
        let program = Program::new();
        program.write("policy.toml", "[audit]\nrequired = true\n");
        let policy = program.path("policy.toml").display().to_string();
        let options = ["--policy", &policy, "--set", "audit.required=false"];
        let Some(story) = story(&program, disk, &options, "\"error\"") else {
            skip!("no disk of its own can be mounted")
        };
        let (answer, code, ran) = (parsed(&story[1]), &story[2], &story[3]);
        let error = &answer["error"];
        assert_eq!(
            (code.as_str(), ran.as_str(), &error["kind"]),
            ("10", "did not run", &json!("unavailable")),
            "{answer}"
        );
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("`audit.required`") && message.contains(full(disk)), "{answer}");
        is_whole(&story[5..], 1);
    }
}
