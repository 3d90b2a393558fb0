//! Another policy for the machine: by root's hand, or by the keys that the present one names (L-27).

use crate::rig::{Machine, machine, word_count};
use crate::signed::{minisign_sign, public_key};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};
use toolcrib_tests::skip;

const OLD: [&str; 2] = ["anna", "bert"];
const NEW: [&str; 2] = ["cora", "dirk"];

/// A policy of these keys, of which `needed` have to sign its successor.
fn policy(machine: &Machine, keys: &[&str], needed: usize, more: &str) -> Option<String> {
    let keys: Option<Vec<String>> = keys.iter().map(|name| key(machine, name, "")).collect();
    let needed = if needed > 0 { format!("policy = {needed}\n") } else { String::new() };
    Some(format!(
        "[lock]\nplugins = \"signed\"\nlist = \"/etc/toolcrib/vetted.toml\"\nlist_name = \"test\"\n{more}\
         [lock.threshold]\nvet = 1\nlist = 1\n{needed}{}",
        keys?.concat()
    ))
}

/// The section of a key, which is made the first time; none where there is no `minisign`.
fn key(machine: &Machine, name: &str, more: &str) -> Option<String> {
    let (root, file) = (machine.program.root(), machine.program.path(&format!("{name}.pub")));
    if !file.exists() {
        public_key(root, name)?;
    }
    let text = fs::read_to_string(file).expect("a public key");
    let key = text.lines().nth(1).expect("its second line");
    Some(format!("[lock.keys.{name}]\nminisign = \"{key}\"\nroles = [\"vet\", \"list\", \"policy\"]\n{more}"))
}

/// Offers a policy that these have signed.
fn offer(machine: &Machine, text: &str, signers: &[&str]) -> Output {
    for entry in fs::read_dir(machine.program.root()).expect("a directory").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".minisig") {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
    machine.program.write("offered.toml", text);
    for (number, signer) in signers.iter().enumerate() {
        minisign_sign(machine.program.root(), "offered.toml", signer, &format!("offered.toml.{number}.minisig"));
    }
    install(machine)
}

fn install(machine: &Machine) -> Output {
    let file = machine.program.path("offered.toml").display().to_string();
    machine.command(&["policy", "install", &file]).output().expect("`timeout` is installed")
}

fn installed(machine: &Machine) -> String {
    fs::read_to_string(machine.program.path("etc/policy.toml")).expect("a policy")
}

#[test]
fn a_policy_is_replaced_by_one_that_the_keys_of_both_have_signed() {
    let machine = machine!("");
    let Some(old) = policy(&machine, &OLD, 2, "sequence = 4\n") else { skip!("there is no minisign") };
    machine.write(&old);
    let new = |needed, more| policy(&machine, &NEW, needed, more).expect("minisign");
    let next = new(1, "sequence = 5\n");
    let ended = next.replace("[lock.keys.dirk]", "[lock.keys.dirk]\nnot_after = 2020-01-01");
    let revoked = format!("{}[lock.revoked]\nkeys = [\"{}\"]\n", next, number(&machine, "cora"));
    let all = ["anna", "bert", "cora"];
    for (text, signers, reason) in [
        (&next, &[][..], "signed by 0 of the 2 keys that the policy in force"),
        (&next, &NEW[..], "signed by 0 of the 2 keys that the policy in force"),
        (&next, &["anna", "cora"], "signed by 1 of the 2 keys that the policy in force"),
        // One person, twice.
        (&next, &["anna", "anna", "cora"], "signed by 1 of the 2 keys that the policy in force"),
        (&next, &OLD, "signed by 0 of the 1 keys that it names itself"),
        (&new(2, "sequence = 5\n"), &all, "signed by 1 of the 2 keys that it names itself"),
        (&ended, &["anna", "bert", "dirk"], "had ended by then"),
        (&revoked, &all, "cora was revoked"),
        (&new(1, "sequence = 4\n"), &all, "is number 4, and /etc/toolcrib/policy.toml is number 4"),
        (&new(1, ""), &all, "is number 0, and /etc/toolcrib/policy.toml is number 4"),
        (&new(0, "sequence = 5\n"), &all, "names no `policy` under [lock.threshold]"),
        (&"[tools]\nshell_enabled = false\n".to_owned(), &all, "has no [lock]"),
    ] {
        let output = offer(&machine, text, signers);
        assert_eq!(code(&output), 5, "{reason}: {}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains(reason), "{reason}: {}", stderr(&output));
        assert_eq!(installed(&machine), old, "{reason}");
    }
    offer(&machine, &next, &all);
    machine.write(&old);
    // Other bytes than those that were signed.
    machine.program.write("offered.toml", next.replace("vet = 1", "vet = 2"));
    assert_eq!((code(&install(&machine)), installed(&machine)), (5, old.clone()));
    let said = succeeded(&offer(&machine, &next, &all));
    assert!(said.contains("number 5, signed by anna, bert of the policy before, and by cora of its own"), "{said}");
    assert_eq!(installed(&machine), next);
    let mode = fs::metadata(machine.program.path("etc/policy.toml")).expect("a policy").permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
    // And what is not a policy at all.
    assert_eq!(code(&offer(&machine, "[lock]\nplugins = \"maybe\"\n", &NEW)), 2);
    assert_eq!(installed(&machine), next);
}

/// The documentation names the file without a directory.
#[test]
fn a_policy_of_the_working_directory_is_found_with_its_signatures() {
    let machine = machine!("");
    let with = |number: u32| policy(&machine, &OLD, 1, &format!("sequence = {number}\n"));
    let Some(old) = with(1) else { skip!("there is no minisign") };
    machine.write(&old);
    let next = with(2).expect("a policy");
    machine.program.write("work/offered.toml", &next);
    let install = || machine.command(&["policy", "install", "offered.toml"]).output().expect("`timeout` is installed");
    let output = install();
    assert_eq!((code(&output), installed(&machine)), (5, old), "{}", stdout(&output));
    let told = stderr(&output);
    assert!(told.contains("there is no `offered.toml.minisig` or `offered.toml.NAME.minisig` beside it"), "{told}");
    assert!(told.contains("`toolcrib plugin sign offered.toml --key KEY --as NAME`"), "{told}");
    minisign_sign(machine.program.root(), "work/offered.toml", "anna", "work/offered.toml.anna.minisig");
    let said = succeeded(&install());
    assert!(said.contains("number 2, signed by anna"), "{said}");
    assert_eq!(installed(&machine), next);
}

/// Of two that are installed at once, the second is judged against the first.
#[test]
fn two_policies_are_not_installed_past_each_other() {
    let machine = machine!("");
    let with = |number: u32| policy(&machine, &OLD, 1, &format!("sequence = {number}\n"));
    let Some(old) = with(1) else { skip!("there is no minisign") };
    machine.write(&old);
    let (second, third) = (with(2).expect("a policy"), with(3).expect("a policy"));
    succeeded(&offer(&machine, &second, &["anna"]));
    machine.write(&old);
    let lock =
        fs::File::options().write(true).open(machine.program.path("etc/.policy.lock")).expect("a file of root's");
    lock.lock().expect("nobody has it");
    let output = std::thread::scope(|scope| {
        let installs = scope.spawn(|| install(&machine));
        // Long enough for it to come to its end, if it did not wait.
        std::thread::sleep(std::time::Duration::from_millis(700));
        machine.write(&third);
        lock.unlock().expect("it was ours");
        installs.join().expect("it ends")
    });
    assert_eq!((code(&output), installed(&machine)), (5, third), "{}", stderr(&output));
    let mode = fs::metadata(machine.program.path("etc/.policy.lock")).expect("a lock").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600, "nobody else can keep it");
}

/// A key's number, as minisign prints it.
fn number(machine: &Machine, name: &str) -> String {
    let text = fs::read_to_string(machine.program.path(&format!("{name}.pub"))).expect("a public key");
    text.lines().next().and_then(|line| line.split(' ').next_back()).expect("a number").to_owned()
}

/// The first policy comes by root's hand, who sees before what it refuses.
#[test]
fn a_machine_is_locked_after_a_look_at_what_stops() {
    let machine = machine!("");
    machine.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    let Some(prepared) = policy(&machine, &OLD, 1, "") else { skip!("there is no minisign") };
    machine.program.write("prepared.toml", "[lock]\nplugins = \"pins\"\n");
    let file = machine.program.path("prepared.toml").display().to_string();
    let lock = |flags: &[&str]| {
        let line = [flags, &["policy", "lock", &file]].concat();
        machine.command(&line).output().expect("`timeout` is installed")
    };
    let shown = succeeded(&lock(&[]));
    assert!(shown.contains("word_count.wasm: not_vetted") && shown.contains("nothing was written"), "{shown}");
    assert_eq!(installed(&machine), "");
    let shown = succeeded(&lock(&["--yes"]));
    assert!(shown.contains("wrote /etc/toolcrib/policy.toml"), "{shown}");
    assert_eq!(installed(&machine), "[lock]\nplugins = \"pins\"\n");
    // Nobody's keys stand there, so `install` has nothing to go by.
    let output = offer(&machine, &prepared, &OLD);
    assert_eq!(code(&output), 5);
    assert!(stderr(&output).contains("only root's hand replaces it"), "{}", stderr(&output));
    // With keys, the hand is no way any more.
    machine.write(&prepared);
    let output = lock(&["--yes"]);
    assert_eq!((code(&output), installed(&machine)), (5, prepared));
    assert!(stderr(&output).contains("policy install"), "{}", stderr(&output));
}

/// What a look at a policy says goes, also without a word of the policy against it: built-in plugins, and directories that it does not name.
#[test]
fn every_plugin_that_goes_is_counted_before_a_machine_is_locked() {
    let machine = machine!("");
    machine.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    let lock = "[lock]\nplugins = \"pins\"\n";
    machine.program.write("work/open.toml", lock);
    machine.program.write(
        "work/prepared.toml",
        format!("{lock}builtin = [\"time\"]\ndirectories = [\"/etc/toolcrib/plugins\"]\n"),
    );
    let look = |file: &str, more: &[&str]| {
        let line = [&["policy", "lock", file], more].concat();
        succeeded(&machine.command(&line).output().expect("`timeout` is installed"))
    };
    let shown = look("open.toml", &[]);
    assert!(shown.contains("it takes away 1 plugin: 1 refused"), "{shown}");
    let seen: Value = serde_json::from_str(&look("prepared.toml", &["--json"])).expect("JSON");
    let file = machine.program.path("data/toolcrib/plugins/word_count.wasm");
    assert_eq!((&seen["refused"], &seen["unread"]), (&json!([]), &json!([file])), "{seen}");
    let off = seen["builtin_off"].as_array().expect("a list");
    assert!(off.contains(&json!("run_shell")) && !off.contains(&json!("time")), "{seen}");
    let shown = look("prepared.toml", &[]);
    let (all, off) = (off.len() + 1, off.len());
    let total = format!("it takes away {all} plugins: 1 in directories that are not read, {off} built in and off");
    assert!(shown.contains(&total), "{shown}");
    assert!(shown.contains(&format!("{}: not read", file.display())), "{shown}");
    machine.program.write("work/none.toml", "[lock]\nplugins = \"off\"\n");
    let shown = look("none.toml", &[]);
    assert!(shown.contains("it takes away no plugin that is installed for you"), "{shown}");
}
