//! The record of a locked machine: what stands in it, where it is, and that nobody gets round it.

use crate::rig::{Locked, word_count};
use config::project_sha256;
use policy::vetting::documents::Document;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, digest, eventually, is_long};

const PINS: &str = "[lock]\nplugins = \"pins\"\n";
const CALL: [&str; 2] = ["word_count", "path=a.txt"];

fn trail_of(locked: &Locked) -> PathBuf {
    locked.program.path("state/toolcrib/audit.jsonl")
}

fn lines(locked: &Locked) -> Vec<Value> {
    let text = fs::read_to_string(trail_of(locked)).expect("a trail");
    text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
}

fn of<'l>(lines: &'l [Value], event: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// A machine whose trail is in a directory of its own, beside the state.
fn elsewhere(more: &str) -> (Locked, PathBuf) {
    let locked = Locked::by(&[]);
    locked.program.write("log/.keep", "");
    let trail = locked.program.path("log/audit.jsonl");
    let text = format!("{PINS}[lock.audit]\nfile = {trail:?}\n{more}");
    (locked.and(&text), trail)
}

#[test]
fn each_program_says_first_what_it_obeys() {
    let locked = Locked::by(&[PINS]);
    locked.call(&["--yes", "--set", "agent.name=anna", "time"]);
    let lines = lines(&locked);
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((&first["event"], &first["level"], &last["event"]), (&json!("opened"), &json!(0), &json!("closed")));
    let policy = &first["policies"][0];
    let sha256 = project_sha256(Path::new(policy["path"].as_str().expect("a path"))).expect("a policy");
    assert_eq!(policy["sha256"], sha256);
    let named = format!("--policy {}", policy["path"].as_str().expect("a path"));
    assert_eq!(first["flags"], json!(["--yes", named, "--set agent.name=anna"]));
    assert_eq!(of(&lines, "admitted")[0]["plugin"], "time");
    let program = fs::read(Program::file()).expect("the program");
    assert_eq!(first["program_sha256"], Document::sha256(&program));
}

#[test]
fn what_is_refused_is_on_record_with_its_code_and_line() {
    let locked = Locked::by(&[PINS]);
    let file = locked.installed("word_count", &word_count());
    fs::remove_file(trail_of(&locked)).expect("a trail of what was allowed");
    // Also by a program that only lists what is there.
    locked.tools();
    assert_eq!(of(&lines(&locked), "refused").len(), 1);
    fs::remove_file(trail_of(&locked)).expect("a trail of the refusal");
    assert_eq!(locked.call(&CALL).0, 5);
    let lines = lines(&locked);
    let refused = of(&lines, "refused");
    assert_eq!((refused.len(), &refused[0]["code"], &refused[0]["origin"]), (1, &json!("not_vetted"), &json!(file)));
    assert_eq!(refused[0]["plugin_sha256"], digest("word_count"));
    assert!(refused[0]["place"].as_str().is_some_and(|place| place.starts_with(&locked.line(2))));
    assert_eq!(of(&lines, "refused_calls")[0]["calls"], 1);
    assert!(of(&lines, "accepted").is_empty());
    let shown = locked.run(&["audit", "show", "--refused", "--json"]);
    assert_eq!(stdout(&shown).lines().count(), 2, "{}", stdout(&shown));
}

/// An auditor who looks for what was refused is not shown each built-in plugin at each start.
#[test]
fn built_in_plugins_that_are_off_are_one_line_of_a_start() {
    let locked = Locked::by(&["[lock]\nplugins = \"pins\"\nbuiltin = [\"time\"]\n"]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    locked.call(&["time"]);
    let lines = lines(&locked);
    let builtins = of(&lines, "refused_builtins");
    assert_eq!((builtins.len(), &builtins[0]["code"]), (1, &json!("builtin_off")), "{builtins:?}");
    assert!(builtins[0]["place"].as_str().is_some_and(|place| place.starts_with(&locked.line(2))), "{builtins:?}");
    let names = builtins[0]["plugins"].as_array().expect("a list");
    assert!(names.contains(&json!("run_shell")) && !names.contains(&json!("time")), "{names:?}");
    assert_eq!(builtins[0]["what"], format!("{} built-in plugins", names.len()));
    let refused = of(&lines, "refused");
    assert_eq!((refused.len(), &refused[0]["plugin"]), (1, &json!("word_count")), "{refused:?}");
    // Both are what an auditor asks for; and a program that calls one of them says so.
    let shown = stdout(&locked.run(&["audit", "show", "--refused", "--json"]));
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

/// L-51: a model that asks on and on fills no disk.
#[test]
fn calls_of_what_is_refused_are_counted() {
    let locked = Locked::by(&[PINS]);
    locked.installed("word_count", &word_count());
    let calls = if is_long() { 10_000 } else { 300 };
    let policy = locked.under(&["run"]);
    let mut client = locked.program.client(&policy);
    for _ in 0..calls {
        let answer = client.call("word_count", json!({ "path": "a.txt" }));
        assert_eq!(answer["error"]["data"]["code"], "not_vetted", "{answer}");
    }
    drop(client);
    eventually("the program has ended", || !of(&lines(&locked), "closed").is_empty());
    let lines = lines(&locked);
    let counted: Vec<u64> = of(&lines, "refused_calls").iter().filter_map(|line| line["calls"].as_u64()).collect();
    assert_eq!((counted.len(), counted.iter().sum::<u64>()), (2, calls), "{counted:?}");
}

/// L-47: where the trail is, the policy says; no variable moves it.
#[test]
fn a_trail_of_the_policy_is_where_the_policy_says() {
    let (locked, trail) = elsewhere("required = true\n");
    let moved = locked.program.path("moved").display().to_string();
    let mut command = locked.program.command(&locked.under(&["call", "time"]));
    succeeded(&command.env("XDG_STATE_HOME", &moved).output().expect("it runs"));
    assert!(fs::read_to_string(&trail).expect("a trail").contains("\"tool\":\"time\""));
    assert!(!trail_of(&locked).exists() && !locked.program.path("moved/toolcrib/audit.jsonl").exists());
    assert_eq!(json_of(&locked.run(&["audit", "verify", "--json"]))["whole"], true);
}

/// L-46: a trail that cannot be kept refuses every call, before anything happens, if the policy says so.
#[test]
fn without_a_record_that_is_required_nothing_happens() {
    type Spoil = (&'static str, fn(&Path));
    let spoils: [Spoil; 4] = [
        ("its directory is gone", |log| fs::remove_dir_all(log).expect("removed")),
        ("a directory is in its place", |log| fs::create_dir(log.join("audit.jsonl")).expect("a directory")),
        ("a link is in its place", |log| {
            std::os::unix::fs::symlink("/dev/null", log.join("audit.jsonl")).expect("a link")
        }),
        ("others can write its directory", |log| {
            fs::set_permissions(log, Permissions::from_mode(0o777)).expect("a mode")
        }),
    ];
    for (spoil, how) in spoils {
        let (locked, trail) = elsewhere("required = true\n");
        how(trail.parent().expect("a directory"));
        let (exit, envelope) = locked.call(&["--yes", "run_shell", &harmless("touch ran").to_string()]);
        assert_eq!(envelope["error"]["kind"], "unavailable", "{spoil}: {exit} {envelope}");
        assert!(!locked.program.path("work/ran").exists(), "{spoil}");
        // A user's wish changes nothing.
        let (_, envelope) = locked.call(&["--set", "audit.required=false", "time"]);
        assert_eq!(envelope["error"]["kind"], "unavailable", "{spoil}: {envelope}");
    }
}

/// L-39: no tool writes what is on record, nor the key that seals it.
#[test]
fn no_tool_writes_the_trail() {
    let (locked, trail) = elsewhere("");
    locked.call(&["time"]);
    let before = fs::read_to_string(&trail).expect("a trail");
    for name in ["audit.jsonl", "audit.jsonl.key", "audit-000001.jsonl"] {
        let path = trail.with_file_name(name).display().to_string();
        let call = json!({ "path": path, "content": "x" }).to_string();
        let open = ["--yes", "--set", "tools.files_allowed_paths=[\"/\"]", "write_file", &call];
        let (_, envelope) = locked.call(&open);
        assert_eq!(envelope["error"]["kind"], "denied", "{name}: {envelope}");
    }
    assert!(fs::read_to_string(&trail).expect("a trail").starts_with(&before));
}

/// L-48: what a name holds stays in its line, and a screen shows it.
#[test]
fn a_line_stays_a_line_whatever_a_name_holds() {
    let locked = Locked::by(&[PINS]);
    let (exit, _) = locked.call(&["a\n{\"event\":\"closed\"}\u{1b}[2J\u{202e}", "{}"]);
    assert_ne!(exit, 0);
    assert!(lines(&locked).iter().all(|line| line["n"].is_u64()));
    let shown = stdout(&locked.run(&["audit", "show"]));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn changes_of_a_person_are_on_record() {
    let locked = Locked::by(&["[lock]\nplugins = \"off\"\n"]);
    locked.installed("word_count", &word_count());
    locked.program.write("work/toolcrib.toml", "[agent]\nname = \"a\"\n");
    succeeded(&locked.run(&["trust"]));
    succeeded(&locked.run(&["plugin", "deny", "word_count"]));
    succeeded(&locked.run(&["plugin", "remove", "word_count"]));
    let lines = lines(&locked);
    let changed: Vec<&str> = of(&lines, "changed").iter().filter_map(|line| line["what"].as_str()).collect();
    assert!(changed[0].starts_with("allowed word_count: sha256 = "), "{changed:?}");
    assert!(
        changed[1].ends_with("toolcrib.toml is trusted as it is now; a change takes the trust away"),
        "{changed:?}"
    );
    assert!(changed[2] == "denied word_count" && changed[3].starts_with("removed "), "{changed:?}");
}

/// L-44 and L-45: programs that are killed at any point leave one chain, with at most a piece of a line in it for each.
#[test]
fn programs_that_are_killed_leave_one_chain() {
    let locked = Locked::by(&[PINS]);
    let killed = if is_long() { 1000 } else { 12 };
    for round in 0..killed / 4 {
        let running: Vec<_> = (0..4).map(|_| locked.program.client(&locked.under(&["run"]))).collect();
        std::thread::scope(|scope| {
            for (number, mut client) in running.into_iter().enumerate() {
                scope.spawn(move || {
                    (0..=number + round % 5).for_each(|_| _ = client.call("time", json!({})));
                    client.kill();
                });
            }
        });
    }
    locked.call(&["time"]);
    let report = json_of(&locked.run(&["audit", "verify", "--json"]));
    assert_eq!(report["whole"], true, "{report}");
    let lines = lines(&locked);
    assert_eq!(of(&lines, "opened").len(), killed + 1, "each program said who it is");
}

#[test]
fn a_trail_is_checked_shown_and_sealed_from_the_command_line() {
    let locked = Locked::by(&[PINS]);
    let refused = locked.run(&["audit", "verify"]);
    assert!(stderr(&refused).contains("nothing was recorded yet"), "{}", stderr(&refused));
    let key = stdout(&locked.run(&["audit", "init"])).lines().next().expect("a key").to_owned();
    locked.program.write("key", &key);
    locked.call(&["time"]);
    let file = locked.program.path("key").display().to_string();
    let told = stdout(&locked.run(&["audit", "verify", "--key", &file]));
    assert!(told.contains("in 1 files, whole from line 1 to ") && told.contains("seals, all good"), "{told}");
    let again = locked.run(&["audit", "init"]);
    assert!(code(&again) != 0 && stderr(&again).contains("exists"), "{}", stderr(&again));
    let noted = stdout(&locked.run(&["audit", "show", "--head"])).trim().to_owned();
    locked.call(&["time"]);
    assert_eq!(code(&locked.run(&["audit", "verify", "--since", &noted])), 0);
    let tail = stdout(&locked.run(&["audit", "tail", "-n", "2"]));
    assert!(tail.lines().count() == 2 && tail.contains("seal"), "{tail}");
    // Changed, then cut before what was noted.
    let text = fs::read_to_string(trail_of(&locked)).expect("a trail");
    fs::write(trail_of(&locked), text.replacen("\"tool\":\"time\"", "\"tool\":\"none\"", 1)).expect("written");
    let broken = locked.run(&["audit", "verify"]);
    assert_eq!(code(&broken), 1);
    assert!(stdout(&broken).contains("audit.jsonl:4: line 4 does not go on"), "{}", stdout(&broken));
    let half: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(trail_of(&locked), half).expect("written");
    assert_eq!(code(&locked.run(&["audit", "verify", "--since", &noted])), 1);
    let copy = locked.program.path("copy.jsonl").display().to_string();
    fs::copy(trail_of(&locked), &copy).expect("copied");
    assert_eq!(code(&locked.run(&["audit", "verify", &copy])), 0, "a cut trail is a good chain");
}

/// The key beside the trail knows how many seals there were, and which line was sealed last.
#[test]
fn a_trail_that_was_emptied_or_cut_back_to_a_seal_is_found_by_its_key() {
    let locked = Locked::by(&[PINS]);
    let key = stdout(&locked.run(&["audit", "init"])).lines().next().expect("a key").to_owned();
    locked.program.write("key", &key);
    let file = locked.program.path("key").display().to_string();
    locked.call(&["time"]);
    let sealed = fs::read(trail_of(&locked)).expect("a trail");
    locked.call(&["time"]);
    let whole = fs::read(trail_of(&locked)).expect("a trail");
    let verify = |first: bool| {
        let key: &[&str] = if first { &["--key", &file] } else { &[] };
        // Named without a directory it is the same file.
        let mut command =
            locked.program.command(&locked.under(&[&["audit", "verify"], key, &["audit.jsonl"]].concat()));
        let named = command.current_dir(locked.program.path("state/toolcrib")).output().expect("it runs");
        let own = locked.run(&[&["audit", "verify"], key].concat());
        assert_eq!((code(&named), stdout(&named).len() > 20), (code(&own), true), "{}", stderr(&named));
        (code(&own), stdout(&own))
    };
    for first in [false, true] {
        fs::write(trail_of(&locked), &whole).expect("written");
        let (exit, told) = verify(first);
        assert!(exit == 0 && told.contains("the key beside the trail agrees with its last seal"), "{told}");
        // Cut back to the last seal of the first program, which is a good chain with all its seals.
        let last = String::from_utf8_lossy(&sealed).lines().last().expect("a line").to_owned();
        assert!(whole.starts_with(&sealed) && last.contains("\"event\":\"seal\""), "{last}");
        for cut in [&sealed[..], b""] {
            fs::write(trail_of(&locked), cut).expect("written");
            let (exit, told) = verify(first);
            assert!(exit == 1 && told.contains("its end was cut off"), "{first}: {told}");
        }
    }
    fs::write(trail_of(&locked), &whole).expect("written");
    let beside = trail_of(&locked).with_file_name("audit.jsonl.key");
    let used = fs::read(&beside).expect("a key");
    fs::remove_file(&beside).expect("removed");
    let own = locked.run(&["audit", "verify"]);
    assert!(code(&own) == 1 && stdout(&own).contains("no longer beside it"), "{}", stdout(&own));
    // A number that was changed to fit is found by the first key.
    let text = String::from_utf8(used).expect("text");
    let mut fields: Vec<&str> = text.trim_end().split(' ').collect();
    let earlier = format!("{:020}", fields[1].parse::<u64>().expect("an epoch") - 1);
    let line = format!("{:020}", String::from_utf8_lossy(&sealed).lines().count());
    (fields[1], fields[2]) = (&earlier, &line);
    locked.program.write("state/toolcrib/audit.jsonl.key", format!("{}\n", fields.join(" ")));
    fs::write(trail_of(&locked), &sealed).expect("written");
    let own = locked.run(&["audit", "verify", "--key", &file]);
    assert!(code(&own) == 1 && stdout(&own).contains("does not come from the first key"), "{}", stdout(&own));
}

#[test]
fn a_trail_without_a_line_is_not_whole() {
    let locked = Locked::by(&[PINS]);
    locked.call(&["time"]);
    fs::write(trail_of(&locked), "").expect("written");
    let own = locked.run(&["audit", "verify"]);
    assert!(code(&own) == 1 && stdout(&own).starts_with("no line is in the trail"), "{}", stdout(&own));
}

/// Seals that a policy demands need a key: without it the trail cannot be kept as it says.
#[test]
fn a_policy_that_wants_seals_wants_a_key() {
    let (locked, _) = elsewhere("required = true\nseal = \"ratchet\"\n");
    let (_, envelope) = locked.call(&["time"]);
    assert!(envelope["error"]["message"].as_str().is_some_and(|text| text.contains("audit init")), "{envelope}");
    succeeded(&locked.run(&["audit", "init"]));
    assert_eq!(locked.call(&["time"]).0, 0);
}
