//! `plugins = "signed"`: who reviewed what, by keys of `minisign`, and every way in which lists, statements and signatures are not what they
//! should be.
#![expect(clippy::disallowed_methods, reason = "the program of the packages signs and checks")]

use crate::rig::{Locked, word_count};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolcrib_tests::forge::liar;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded, with_a_section_more};
use toolcrib_tests::{eventually, guest, skip};

/// A deployment: its directory of plugins with statements, its list, and the keys of its reviewers.
pub(crate) struct Deployment {
    pub(crate) locked: Locked,
}

/// Reviewers of every deployment, and what their keys may sign.
const REVIEWERS: [(&str, &str); 3] =
    [("alice", r#"["vet", "list", "revoke"]"#), ("bob", r#"["vet"]"#), ("carol", r#"["vet", "list"]"#)];

impl Deployment {
    /// With `word_count`, vetted by alice and bob and listed by alice; `more` is more of `[lock]`. None where there is no `minisign`.
    pub(crate) fn new(more: &str) -> Option<Self> {
        let deployment = Self::empty(more)?;
        deployment.put("word_count", &word_count());
        deployment.vet("word_count", &["--read", "/"]);
        deployment.sign("plugins/word_count.vet.toml", &["alice", "bob"]);
        deployment.list(&[]);
        Some(deployment)
    }

    fn empty(more: &str) -> Option<Self> {
        let locked = Locked::by(&[]);
        locked.program.write("plugins/.keep", "");
        let root = locked.program.root().to_owned();
        let keys: Option<Vec<String>> = REVIEWERS
            .iter()
            .map(|(name, roles)| {
                let key = public_key(&root, name)?;
                Some(format!("[lock.keys.{name}]\nminisign = \"{key}\"\nroles = {roles}\n"))
            })
            .collect();
        let (plugins, list) = (root.join("plugins"), root.join("plugins/vetted.toml"));
        let text = format!(
            "[lock]\nplugins = \"signed\"\nmessage = \"MESSAGE\"\ndirectories = [{plugins:?}]\nlist = {list:?}\nlist_name = \"test\"\n{more}\n\
             [lock.threshold]\nvet = 2\nlist = 1\n{}",
            keys?.concat()
        );
        Some(Self { locked: locked.and(&text) })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.locked.program.path(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        self.locked.program.write(&format!("plugins/{name}.wasm"), bytes);
    }

    /// Writes the statement about a plugin, the next of its name.
    pub(crate) fn vet(&self, name: &str, options: &[&str]) -> String {
        let file = self.path(&format!("plugins/{name}.wasm")).display().to_string();
        let arguments = ["plugin", "vet", &file, "--version", "1", "--criteria", "source-read", "--expires", "365d"];
        succeeded(&self.locked.program.run(&[&arguments[..], options].concat()))
    }

    /// Has reviewers sign a file with `minisign`, each in a file of their own.
    pub(crate) fn sign(&self, name: &str, reviewers: &[&str]) {
        for reviewer in reviewers {
            minisign_sign(self.locked.program.root(), name, reviewer, &format!("{name}.{reviewer}.minisig"));
        }
    }

    /// Writes the next list of all that is there, and has alice sign it.
    pub(crate) fn list(&self, options: &[&str]) {
        self.list_for("30d", options);
    }

    fn list_for(&self, valid: &str, options: &[&str]) {
        let (directory, list) = (self.path("plugins").display().to_string(), self.list_path());
        let arguments = ["plugin", "lock", &directory, "-o", &list, "--name", "test", "--valid", valid];
        succeeded(&self.locked.program.run(&[&arguments[..], options].concat()));
        self.sign("plugins/vetted.toml", &["alice"]);
    }

    pub(crate) fn list_path(&self) -> String {
        self.path("plugins/vetted.toml").display().to_string()
    }

    /// Changes a file that is not signed again.
    pub(crate) fn change(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).expect("a file");
        assert!(text.contains(from), "{text}");
        fs::write(self.path(name), text.replace(from, to)).expect("written");
    }

    /// Changes the statement of `word_count`, has it signed, and lists it.
    fn restate(&self, from: &str, to: &str) {
        self.change("plugins/word_count.vet.toml", from, to);
        self.sign("plugins/word_count.vet.toml", &["alice", "bob"]);
        self.list(&[]);
    }

    /// The same by a clock that is set so (`faketime -f`).
    fn outcome_at(&self, clock: &str) -> String {
        self.locked.program.write("work/a.txt", "two words");
        let base = self.locked.program.command(&self.locked.under(&["call", "word_count", "path=a.txt"]));
        let mut command = Command::new("faketime");
        command.args(["-f", clock]).arg(base.get_program()).args(base.get_args()).env_clear();
        command.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.current_dir(self.path("work")).output().expect("faketime");
        outcome_of(&serde_json::from_slice(&output.stdout).expect("an envelope"))
    }

    /// What a call of `word_count` answers: its code where it is refused, `ok` or the kind of its failure else.
    pub(crate) fn outcome(&self) -> String {
        let (_, envelope) = self.locked.call(&["word_count", "path=a.txt"]);
        outcome_of(&envelope)
    }
}

pub(crate) fn outcome_of(envelope: &Value) -> String {
    let error = &envelope["error"];
    if error.is_null() {
        return "ok".into();
    }
    error["data"]["code"].as_str().or(error["kind"].as_str()).unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

/// Makes the key of a reviewer with `minisign`, without a password; returns the public half.
pub(crate) fn public_key(root: &Path, name: &str) -> Option<String> {
    let made = Command::new("minisign")
        .current_dir(root)
        .args(["-G", "-W", "-f"])
        .arg("-p")
        .arg(format!("{name}.pub"))
        .arg("-s")
        .arg(format!("{name}.key"))
        .output();
    made.ok().filter(|output| output.status.success())?;
    let text = fs::read_to_string(root.join(format!("{name}.pub"))).expect("a public key");
    Some(text.lines().nth(1).expect("its second line").to_owned())
}

pub(crate) fn minisign_sign(root: &Path, name: &str, reviewer: &str, output: &str) {
    let signed = Command::new("minisign")
        .current_dir(root)
        .args(["-S", "-s", &format!("{reviewer}.key"), "-m", name, "-x", output])
        .output();
    assert!(signed.as_ref().is_ok_and(|output| output.status.success()), "{signed:?}");
}

macro_rules! deployment {
    ($more:expr) => {
        match Deployment::new($more) {
            Some(deployment) => deployment,
            None => skip!("there is no minisign"),
        }
    };
}

#[test]
fn what_two_reviewers_signed_and_the_list_names_is_called_with_the_rights_of_its_section() {
    let deployment = deployment!("");
    assert_eq!(deployment.outcome(), "denied", "its user has allowed nothing");
    let file = deployment.path("plugins/word_count.wasm").display().to_string();
    succeeded(&deployment.locked.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(deployment.outcome(), "ok");
    let told = succeeded(&deployment.locked.run(&["plugin", "verify", &file]));
    assert!(told.contains("signed by alice, bob; expires "), "{told}");
    let checked = succeeded(&deployment.locked.run(&["policy", "check"]));
    assert!(checked.contains("list test 1: 1 plugins, signed by alice, valid until "), "{checked}");
    let explained = json_of(&deployment.locked.run(&["policy", "explain", "word_count", "--json"]));
    let lock = &explained["clauses"][0];
    assert_eq!((&lock["subject"], &lock["verdict"]), (&json!("lock"), &json!("allowed")), "{explained}");
    assert_eq!(lock["detail"], "vetted as 1 (sequence 1) by alice, bob", "{explained}");
}

/// Ours are checked by `minisign`, and count; a signature of ours is one of the same key.
#[test]
fn what_this_program_signs_minisign_checks() {
    let deployment = deployment!("grant = \"vetted\"");
    fs::remove_file(deployment.path("plugins/word_count.vet.toml.bob.minisig")).expect("a signature");
    assert_eq!(deployment.outcome(), "too_few_signatures");
    let (file, key) = (deployment.path("plugins/word_count.vet.toml"), deployment.path("bob.key"));
    let (file, key) = (file.display().to_string(), key.display().to_string());
    succeeded(&deployment.locked.program.run(&["plugin", "sign", &file, "--key", &key, "--as", "bob"]));
    let root = deployment.locked.program.root();
    let checked = Command::new("minisign")
        .current_dir(root)
        .args(["-V", "-p", "bob.pub", "-m", &file, "-x", &format!("{file}.bob.minisig")])
        .output()
        .expect("minisign");
    assert!(checked.status.success() && stdout(&checked).contains("toolcrib vet/1"), "{}", stderr(&checked));
    assert_eq!(deployment.outcome(), "ok");
    deployment.locked.program.write("other.toml", "a = 1\n");
    let other = deployment.path("other.toml").display().to_string();
    let refused = deployment.locked.program.run(&["plugin", "sign", &other, "--key", &key]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("cannot be signed"), "{}", stderr(&refused));
}

/// L-09, L-14, L-18, L-19, L-24 to L-26: each thing that can be wrong has its code.
#[test]
fn what_does_not_hold_is_refused_with_its_code() {
    type Spoil = fn(&Deployment);
    let cases: [(&str, Spoil); 20] = [
        ("other_bytes", |d| d.put("word_count", &with_a_section_more(word_count()))),
        ("renamed", |d| {
            fs::rename(d.path("plugins/word_count.wasm"), d.path("plugins/other_name.wasm")).expect("renamed")
        }),
        ("not_vetted", |d| {
            d.change("plugins/vetted.toml", "name = \"word_count\"", "name = \"another\"");
            d.change("plugins/vetted.toml", &toolcrib_tests::digest("word_count"), &"0".repeat(64));
            d.sign("plugins/vetted.toml", &["alice"]);
        }),
        ("list_invalid", |d| fs::remove_file(d.path("plugins/vetted.toml")).expect("removed")),
        ("list_invalid", |d| {
            fs::write(d.path("plugins/vetted.toml"), "toolcrib = \"list/1\"\nunknown = 1\n").expect("written");
            d.sign("plugins/vetted.toml", &["alice"]);
        }),
        ("list_invalid", |d| {
            fs::File::options()
                .write(true)
                .open(d.path("plugins/vetted.toml"))
                .and_then(|file| file.set_len(1 << 30))
                .expect("a long file")
        }),
        ("list_unsigned", |d| d.change("plugins/vetted.toml", "sequence = 1", "sequence = 2")),
        ("list_unsigned", |d| fs::remove_file(d.path("plugins/vetted.toml.alice.minisig")).expect("removed")),
        // Bob may vet, and sign no list.
        ("list_unsigned", |d| {
            fs::remove_file(d.path("plugins/vetted.toml.alice.minisig")).expect("removed");
            d.sign("plugins/vetted.toml", &["bob"]);
        }),
        ("list_unsigned", |d| {
            d.change("plugins/vetted.toml", "name = \"test\"", "name = \"tset\"");
            d.sign("plugins/vetted.toml", &["alice"]);
        }),
        // A statement's signature for a list: the first line says what was signed.
        ("list_invalid", |d| {
            fs::copy(d.path("plugins/word_count.vet.toml"), d.path("plugins/vetted.toml")).expect("copied");
            fs::copy(d.path("plugins/word_count.vet.toml.alice.minisig"), d.path("plugins/vetted.toml.alice.minisig"))
                .expect("copied");
        }),
        ("list_expired", |d| {
            let text = fs::read_to_string(d.path("plugins/vetted.toml")).expect("a list");
            let line = text.lines().find(|line| line.starts_with("valid_until")).expect("its end").to_owned();
            d.change("plugins/vetted.toml", &line, "valid_until = 2026-01-01T00:00:00Z");
            d.sign("plugins/vetted.toml", &["alice"]);
        }),
        ("clock", |d| {
            let text = fs::read_to_string(d.path("plugins/vetted.toml")).expect("a list");
            let line = text.lines().find(|line| line.starts_with("issued")).expect("its beginning").to_owned();
            d.change("plugins/vetted.toml", &line, "issued = 2099-01-01T00:00:00Z");
            d.sign("plugins/vetted.toml", &["alice"]);
        }),
        ("statement_changed", |d| d.change("plugins/word_count.vet.toml", "version = \"1\"", "version = \"2\"")),
        ("statement_changed", |d| fs::remove_file(d.path("plugins/word_count.vet.toml")).expect("removed")),
        ("too_few_signatures", |d| {
            fs::remove_file(d.path("plugins/word_count.vet.toml.bob.minisig")).expect("removed")
        }),
        ("statement_mismatch", |d| d.restate("imports = [", "imports = [\"wasi:http/types@0.2.0\", ")),
        ("statement_mismatch", |d| d.restate("tools = [\"word_count\"]", "tools = [\"count_words\"]")),
        ("expired", |d| {
            let text = fs::read_to_string(d.path("plugins/word_count.vet.toml")).expect("a statement");
            let line = text.lines().find(|line| line.starts_with("expires")).expect("its end").to_owned();
            d.restate(&line, "expires = 2026-01-01T00:00:00Z");
        }),
        ("definitions_changed", |d| {
            let text = fs::read_to_string(d.path("plugins/word_count.vet.toml")).expect("a statement");
            let line = text.lines().find(|line| line.starts_with("definitions_sha256")).expect("a digest").to_owned();
            d.restate(&line, &format!("definitions_sha256 = \"{}\"", "0".repeat(64)));
        }),
    ];
    for (number, (expected, spoil)) in cases.into_iter().enumerate() {
        let deployment = deployment!("grant = \"vetted\"");
        spoil(&deployment);
        assert_eq!(deployment.outcome(), expected, "case {number}");
        assert!(!deployment.locked.tools().contains(&"word_count".to_owned()), "case {number}: {expected}");
        let name = if expected == "renamed" { "other_name" } else { "word_count" };
        let why = stdout(&deployment.locked.run(&["policy", "explain", "--why-not", name, "--json"]));
        let why: Value = serde_json::from_str(&why).expect("JSON");
        assert_eq!(why["code"], expected, "case {number}: {why}");
        let verdicts: Vec<&str> = why["locks"][0]["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .filter_map(|step| step["verdict"].as_str())
            .collect();
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == "!!").count(), 1, "case {number}: {why}");
    }
}

/// L-22 to L-25: what a signature is worth.
#[test]
fn a_key_counts_once_in_its_role_while_it_is_good() {
    // One key twice: two files, two comments.
    let deployment = deployment!("grant = \"vetted\"");
    fs::remove_file(deployment.path("plugins/word_count.vet.toml.bob.minisig")).expect("removed");
    minisign_sign(
        deployment.locked.program.root(),
        "plugins/word_count.vet.toml",
        "alice",
        "plugins/word_count.vet.toml.again.minisig",
    );
    assert_eq!(deployment.outcome(), "too_few_signatures");
    // A third reviewer's makes two again; thousands of files beside it are bounded, and told.
    deployment.sign("plugins/word_count.vet.toml", &["carol"]);
    assert_eq!(deployment.outcome(), "ok");
    for number in 0..1000 {
        fs::write(deployment.path(&format!("plugins/word_count.vet.toml.0{number}.minisig")), "x").expect("written");
    }
    let (_, envelope) = deployment.locked.call(&["word_count", "path=a.txt"]);
    assert_eq!(outcome_of(&envelope), "too_few_signatures");
    assert!(
        envelope["error"]["message"].as_str().is_some_and(|text| text.contains("more signatures: 32 are looked at")),
        "{envelope}"
    );
    // A comment that was swapped, a signature of the old form, and one of a gigabyte.
    for spoil in [
        (|file: &Path| {
            let text = fs::read_to_string(file).expect("a signature");
            fs::write(file, text.replace("trusted comment: timestamp", "trusted comment: timestomp")).expect("written");
        }) as fn(&Path),
        |file| fs::File::create(file).and_then(|file| file.set_len(1 << 30)).expect("a long file"),
        |file| {
            let root = file.ancestors().nth(2).expect("a root");
            let signed = Command::new("minisign")
                .current_dir(root)
                .args(["-S", "-l", "-s", "bob.key", "-m", "plugins/word_count.vet.toml", "-x"])
                .arg(file)
                .output();
            assert!(signed.is_ok_and(|output| output.status.success()));
        },
    ] {
        let deployment = deployment!("grant = \"vetted\"");
        spoil(&deployment.path("plugins/word_count.vet.toml.bob.minisig"));
        assert_eq!(deployment.outcome(), "too_few_signatures");
    }
}

/// L-22: a key that was revoked, with and without what it signed before; one that had ended.
#[test]
fn a_revoked_key_counts_for_what_it_signed_before() {
    let deployment = deployment!("grant = \"vetted\"");
    let text = fs::read_to_string(deployment.path("bob.pub")).expect("a key");
    let number = text.lines().next().and_then(|line| line.rsplit(' ').next()).expect("its number").to_owned();
    let policy = |more: &str| {
        let text = fs::read_to_string(deployment.path("policy0.toml")).expect("a policy");
        let before = text.split("\n[lock.revoked]").next().expect("a policy").to_owned();
        fs::write(deployment.path("policy0.toml"), format!("{before}\n[lock.revoked]\n{more}\n")).expect("written");
        deployment.outcome()
    };
    assert_eq!(policy(&format!("keys = [\"{number}\"]")), "too_few_signatures");
    assert_eq!(policy(&format!("keys = [\"{number}\"]\nsigned_before = {{ bob = 2030-01-01 }}")), "ok");
    assert_eq!(policy(&format!("keys = [\"{number}\"]\nsigned_before = {{ bob = 2020-01-01 }}")), "too_few_signatures");
    assert_eq!(policy(&format!("plugins = [\"{}\"]", toolcrib_tests::digest("word_count"))), "revoked");
    let text = fs::read_to_string(deployment.path("policy0.toml")).expect("a policy");
    let ended = text
        .split("\n[lock.revoked]")
        .next()
        .expect("a policy")
        .replace("roles = [\"vet\"]", "roles = [\"vet\"]\nnot_after = 2020-01-01");
    fs::write(deployment.path("policy0.toml"), ended).expect("written");
    assert_eq!(deployment.outcome(), "too_few_signatures");
}

/// L-23: one key under two names is no two reviewers.
#[test]
fn a_key_under_two_names_does_not_start() {
    let deployment = deployment!("");
    let text = fs::read_to_string(deployment.path("policy0.toml")).expect("a policy");
    let alice =
        fs::read_to_string(deployment.path("alice.pub")).expect("a key").lines().nth(1).expect("a key").to_owned();
    let twice = format!("{text}\n[lock.keys.dave]\nminisign = \"{alice}\"\nroles = [\"vet\"]\n");
    fs::write(deployment.path("policy0.toml"), twice).expect("written");
    let output = deployment.locked.run(&["tools"]);
    assert!(code(&output) == 2 && stderr(&output).contains("this is the key of `alice` too"), "{}", stderr(&output));
}

/// L-15 to L-17: lists only go on.
#[test]
fn an_older_list_and_a_second_of_one_number_are_refused() {
    let deployment = deployment!("grant = \"vetted\"");
    let keep = |name: &str| {
        for end in ["", ".alice.minisig"] {
            fs::copy(format!("{}{end}", deployment.list_path()), deployment.path(&format!("{name}{end}")))
                .expect("copied");
        }
    };
    let put = |name: &str| {
        for end in ["", ".alice.minisig"] {
            fs::copy(deployment.path(&format!("{name}{end}")), format!("{}{end}", deployment.list_path()))
                .expect("copied");
        }
    };
    keep("first");
    assert_eq!(deployment.outcome(), "ok");
    deployment.list(&[]);
    keep("second");
    assert_eq!(deployment.outcome(), "ok");
    put("first");
    assert_eq!(deployment.outcome(), "rolled_back");
    // Another list of the same number.
    put("second");
    deployment.change("plugins/vetted.toml", "[[plugin]]", "# other\n[[plugin]]");
    deployment.sign("plugins/vetted.toml", &["alice"]);
    assert_eq!(deployment.outcome(), "forked");
    put("second");
    assert_eq!(deployment.outcome(), "ok");
    // Without its marks, the machine has the policy's number alone to go by.
    put("first");
    fs::remove_file(deployment.path("state/toolcrib/marks.toml")).expect("marks");
    assert_eq!(deployment.outcome(), "ok");
    let text = fs::read_to_string(deployment.path("policy0.toml")).expect("a policy");
    fs::write(deployment.path("policy0.toml"), text.replace("list_name", "min_sequence = 2\nlist_name"))
        .expect("written");
    assert_eq!(deployment.outcome(), "rolled_back");
    // A stolen key signed the highest number there is; taken out of the policy, it is forgotten.
    put("second");
    deployment.change("plugins/vetted.toml", "sequence = 2", "sequence = 9007199254740992");
    deployment.sign("plugins/vetted.toml", &["carol"]);
    fs::remove_file(deployment.path("plugins/vetted.toml.alice.minisig")).expect("removed");
    assert_eq!(deployment.outcome(), "ok");
    put("second");
    fs::remove_file(deployment.path("plugins/vetted.toml.carol.minisig")).expect("removed");
    assert_eq!(deployment.outcome(), "rolled_back");
    let text = fs::read_to_string(deployment.path("policy0.toml")).expect("a policy");
    fs::write(deployment.path("policy0.toml"), text.replace(r#"["vet", "list"]"#, r#"["vet"]"#)).expect("written");
    assert_eq!(deployment.outcome(), "ok");
}

/// L-38: rights come from the statement, and a user's section only narrows them; the ceiling of the lock binds both.
#[test]
fn rights_are_what_was_vetted_and_no_more() {
    let deployment = deployment!("grant = \"vetted\"\nceiling = { files.read = [\"/\"] }");
    assert_eq!(deployment.outcome(), "ok");
    let explained = stdout(&deployment.locked.run(&["policy", "explain", "word_count"]));
    assert!(explained.contains("word_count.vet.toml"), "the statement decides: {explained}");
    let user = |text: &str| {
        deployment.locked.program.write("config/toolcrib/toolcrib.toml", format!("[plugin.word_count]\n{text}\n"));
        deployment.outcome()
    };
    assert_eq!(user("files.read = [\"/nowhere\"]"), "denied", "a user narrows");
    assert_eq!(user("files.read = [\"/\"]\nshell = true"), "ok");
    // The statement gives less than the user asks for.
    let deployment = deployment!("grant = \"vetted\"\ncriteria = [\"source-read\"]");
    let output = deployment.vet(
        "word_count",
        &[
            "--read",
            "/nowhere",
            "--from",
            &deployment.path("plugins/word_count.vet.toml").display().to_string(),
            "--widen",
        ],
    );
    assert!(output.contains("right + files.read \"/nowhere\"  widens"), "{output}");
    deployment.sign("plugins/word_count.vet.toml", &["alice", "bob"]);
    deployment.list(&[]);
    deployment.locked.program.write("config/toolcrib/toolcrib.toml", "[plugin.word_count]\nfiles.read = [\"/\"]\n");
    assert_eq!(deployment.outcome(), "denied");
    let hint = |deployment: &Deployment| {
        deployment.locked.call(&["word_count", "path=a.txt"]).1["error"]["hint"].as_str().expect("a hint").to_owned()
    };
    let decides = "the operator's policy decides this: `plugin.word_count.files.read` in ";
    let told = hint(&deployment);
    assert!(told.starts_with(decides) && told.contains("word_count.vet.toml:"), "{told}");
    // And a ceiling of the lock binds what users allow.
    let deployment = deployment!("ceiling = { files.read = [\"/nowhere\"] }");
    let file = deployment.path("plugins/word_count.wasm").display().to_string();
    succeeded(&deployment.locked.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(deployment.outcome(), "denied");
    let told = hint(&deployment);
    assert!(told.starts_with(decides) && told.contains("policy0.toml:"), "{told}");
}

#[test]
fn criteria_of_the_policy_have_to_be_met() {
    let deployment = deployment!("grant = \"vetted\"\ncriteria = [\"source-read\", \"no-exfiltration\"]");
    assert_eq!(deployment.outcome(), "criteria");
    deployment.restate("criteria = [\"source-read\"]", "criteria = [\"no-exfiltration\", \"source-read\"]");
    assert_eq!(deployment.outcome(), "ok");
}

/// What is signed may be named without a directory.
#[test]
fn a_file_of_the_working_directory_is_signed_there() {
    let deployment = deployment!("");
    let revocation =
        format!("toolcrib = \"revoke/1\"\nsha256 = \"{}\"\nissued = 2026-01-01T00:00:00Z\n", "a".repeat(64));
    deployment.locked.program.write("work/a.revoke.toml", revocation);
    let key = deployment.path("alice.key").display().to_string();
    let told = json_of(&deployment.locked.program.run(&["plugin", "sign", "a.revoke.toml", "--key", &key, "--json"]));
    assert_eq!(told, json!({ "kind": "revoke/1", "written": "a.revoke.toml.minisig" }));
    assert!(deployment.path("work/a.revoke.toml.minisig").exists());
}

/// L-08: what a new build can do more stops the review.
#[test]
fn a_review_of_what_got_wider_stops() {
    let deployment = deployment!("");
    let old = deployment.path("plugins/word_count.vet.toml").display().to_string();
    deployment.change("plugins/word_count.vet.toml", "\"toolcrib:plugin/files@0.1.0\", ", "");
    let file = deployment.path("plugins/word_count.wasm").display().to_string();
    let vet = [
        "plugin",
        "vet",
        &file,
        "--version",
        "2",
        "--from",
        &old,
        "--expires",
        "1d",
        "--criteria",
        "source-read",
        "--read",
        "/",
    ];
    let output = deployment.locked.program.run(&vet);
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert!(stdout(&output).contains("import + toolcrib:plugin/files@0.1.0  widens"), "{}", stdout(&output));
    let output = deployment.locked.program.run(&[&vet[..], &["--json"]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((code(&output), &told["written"]), (5, &Value::Null), "{told}");
    assert_eq!(told["changes"][0], json!({ "what": "import + toolcrib:plugin/files@0.1.0", "widens": true }));
    succeeded(&deployment.locked.program.run(&[&vet[..], &["--widen"]].concat()));
    let text = fs::read_to_string(&old).expect("a statement");
    assert!(text.contains("sequence = 2") && text.contains("reviewed_from = 1") && text.contains("--widen"), "{text}");
}

/// L-10: a plugin that says something else of its tools each time, or each day, cannot be vetted.
#[test]
fn a_plugin_that_changes_its_words_is_not_vetted() {
    let deployment = deployment!("");
    let file = deployment.path("plugins/liar.wasm").display().to_string();
    for (change, daily) in [(true, false), (false, true), (false, false)] {
        let tools = json!([{ "name": "one", "summary": "Answer." }]);
        deployment.put("liar", &liar(&json!({ "change": change, "daily": daily, "tools": tools }), &["one"]));
        let output = deployment.locked.program.run(&["plugin", "vet", &file, "--version", "1", "--expires", "1d"]);
        let (is_vetted, told) = (deployment.path("plugins/liar.vet.toml").exists(), stderr(&output));
        assert_eq!((code(&output) == 0, is_vetted), (!change && !daily, !change && !daily), "{told}");
        assert!(is_vetted || told.contains("does not always say the same"), "{told}");
    }
}

/// L-50: without a plugin that the list requires, nothing is served.
#[test]
fn what_is_required_and_not_there_stops_the_start() {
    let deployment = deployment!("grant = \"vetted\"");
    deployment.list(&["--require", "word_count"]);
    let served = deployment.locked.program.run_with(&deployment.locked.under(&["run"]), "");
    assert_eq!(code(&served), 0, "{}", stderr(&served));
    deployment.put("word_count", &with_a_section_more(word_count()));
    let served = deployment.locked.program.run_with(&deployment.locked.under(&["run"]), "");
    assert!(code(&served) == 5 && stderr(&served).contains("other bytes"), "{}", stderr(&served));
    fs::remove_file(deployment.path("plugins/word_count.wasm")).expect("removed");
    let served = deployment.locked.program.run_with(&deployment.locked.under(&["run"]), "");
    assert!(code(&served) == 10 && stderr(&served).contains("is required"), "{}", stderr(&served));
    assert_eq!(code(&deployment.locked.run(&["policy", "check"])), 1);
}

/// A list or revocation that changes takes effect at the next call, and what is taken back ends at once.
#[test]
fn what_changes_takes_effect_without_a_new_start() {
    let deployment = deployment!("grant = \"vetted\"");
    deployment.locked.program.write("work/a.txt", "two words");
    let mut client = deployment.locked.program.client(&deployment.locked.under(&["run"]));
    let call = json!({ "path": "a.txt" });
    assert_eq!(outcome_of(&client.call("word_count", call.clone())), "ok");
    fs::write(
        deployment.path("plugins/word_count.revoke.toml"),
        format!(
            "toolcrib = \"revoke/1\"\nsha256 = \"{}\"\nissued = 2026-01-01T00:00:00Z\n",
            toolcrib_tests::digest("word_count")
        ),
    )
    .expect("written");
    // Nobody has signed it, then one without the role: it takes nothing away.
    deployment.sign("plugins/word_count.revoke.toml", &["bob"]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(outcome_of(&client.call("word_count", call.clone())), "ok");
    deployment.sign("plugins/word_count.revoke.toml", &["alice"]);
    let client = std::cell::RefCell::new(client);
    eventually("it is revoked", || outcome_of(&client.borrow_mut().call("word_count", call.clone())) == "revoked");
}

/// An operator who revokes in an emergency is told that the file takes nothing back yet.
#[test]
fn a_revocation_that_does_nothing_is_told() {
    let deployment = deployment!("grant = \"vetted\"");
    let name = "plugins/word_count.revoke.toml";
    let revocation = "toolcrib = \"revoke/1\"\nname = \"word_count\"\nup_to = 1\nissued = 2026-01-01T00:00:00Z\n";
    let idle = || {
        let said = stdout(&deployment.locked.run(&["policy", "check", "--json"]));
        let seen: Value = serde_json::from_str(&said).expect("JSON");
        seen["idle_revocations"].as_array().expect("a list").clone()
    };
    assert_eq!(idle(), Vec::<Value>::new());
    fs::write(deployment.path(name), revocation).expect("written");
    let file = deployment.path(name).display().to_string();
    let nothing = format!("the revocation {file} does nothing: no key with the role `revoke` has signed it");
    let why = ["policy", "explain", "--why-not", "word_count"];
    for (signer, reason) in
        [(None, "there is no `word_count.revoke.toml.minisig`"), (Some("bob"), "bob has no such role")]
    {
        signer.into_iter().for_each(|signer| deployment.sign(name, &[signer]));
        for line in [&["policy", "check"][..], &["doctor"], &why] {
            let said = stdout(&deployment.locked.run(line));
            assert!(said.contains(&nothing) && said.contains(reason), "{line:?}: {said}");
        }
        assert_eq!((idle().len(), deployment.outcome()), (1, "ok".to_owned()));
    }
    deployment.sign(name, &["alice"]);
    assert_eq!((idle(), deployment.outcome()), (Vec::new(), "revoked".to_owned()));
    assert!(!stdout(&deployment.locked.run(&why)).contains("does nothing"));
}

/// What is said of a list that too few have signed names the list, and how it is signed.
#[test]
fn a_list_without_its_signature_says_how_it_is_signed() {
    let deployment = deployment!("grant = \"vetted\"");
    fs::remove_file(deployment.path("plugins/vetted.toml.alice.minisig")).expect("removed");
    let (_, envelope) = deployment.locked.call(&["word_count", "path=a.txt"]);
    let (list, error) = (deployment.list_path(), &envelope["error"]);
    let message = format!(
        "plugin `word_count` was refused: the list {list} has 0 of 1 signatures (there is no `vetted.toml.minisig` or `vetted.toml.NAME.minisig` beside it)"
    );
    assert_eq!(error["message"], message);
    let hint = error["hint"].as_str().expect("a hint");
    let sign = format!("a reviewer signs it with `toolcrib plugin sign {list} --key KEY --as NAME`");
    assert!(hint.contains("lock.list") && hint.ends_with(&sign), "{hint}");
    // Obeyed, it works.
    let key = deployment.path("alice.key").display().to_string();
    succeeded(&deployment.locked.program.run(&["plugin", "sign", &list, "--key", &key, "--as", "alice"]));
    assert_eq!(deployment.outcome(), "ok");
}

/// A key is its number, too: what was found of a signature under another number does not count.
#[test]
fn a_signature_that_was_checked_is_checked_again_for_another_number_of_the_key() {
    let deployment = deployment!("grant = \"vetted\"");
    assert_eq!(deployment.outcome(), "ok");
    let text = fs::read_to_string(deployment.path("alice.pub")).expect("a key");
    let key = text.lines().nth(1).expect("its second line").to_owned();
    let mut other = key.clone().into_bytes();
    // The fourth digit is of the number, behind two bytes that name the algorithm.
    other[3] = if other[3] == b'A' { b'B' } else { b'A' };
    let other = String::from_utf8(other).expect("base64");
    deployment.change("policy0.toml", &key, &other);
    assert_eq!(deployment.outcome(), "list_unsigned");
    deployment.change("policy0.toml", &other, &key);
    assert_eq!(deployment.outcome(), "ok");
}

/// L-20 and L-21: a clock that is set back gains nothing, one that is far ahead does not stay, and one before what was signed is told.
#[test]
fn a_clock_that_is_set_decides_nothing() {
    let deployment = deployment!("grant = \"vetted\"");
    if !Command::new("faketime").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip!("there is no faketime");
    }
    let until = |seconds: u64| {
        let end = std::time::SystemTime::now() + std::time::Duration::from_secs(seconds);
        let since = end.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
        let date = Command::new("date").args(["-u", "-d", &format!("@{since}"), "+%Y-%m-%dT%H:%M:%SZ"]).output();
        let date = stdout(&date.expect("date")).trim().to_owned();
        let text = fs::read_to_string(deployment.path("plugins/vetted.toml")).expect("a list");
        let line = text.lines().find(|line| line.starts_with("valid_until")).expect("its end").to_owned();
        deployment.change("plugins/vetted.toml", &line, &format!("valid_until = {date}"));
        let number = text.lines().find_map(|line| line.strip_prefix("sequence = ")).expect("a number").to_owned();
        let next = number.parse::<u64>().expect("a number") + 1;
        deployment.change("plugins/vetted.toml", &format!("sequence = {number}"), &format!("sequence = {next}"));
        deployment.sign("plugins/vetted.toml", &["alice"]);
    };
    // A clock far ahead refuses what has ended by then, and the mark goes on by a day at most.
    assert_eq!(deployment.outcome(), "ok");
    assert_eq!(deployment.outcome_at("+26000d"), "list_expired");
    assert_eq!(deployment.outcome(), "ok", "a wrong year does not stay");
    // What has ended stays so when the clock goes back, below what was seen.
    until(48 * 3600);
    assert_eq!(deployment.outcome_at("+36h"), "ok");
    assert_eq!(deployment.outcome_at("+60h"), "list_expired");
    until(3600);
    assert_eq!(deployment.outcome(), "list_expired", "the mark is more than an hour ahead by now");
    assert_eq!(deployment.outcome_at("-10d"), "list_expired");
    // Without marks, the list itself says how late it is at least.
    fs::remove_file(deployment.path("state/toolcrib/marks.toml")).expect("marks");
    assert_eq!(deployment.outcome_at("-3000d"), "clock");
}

/// A signature that is written over in its place counts; what was taken back by name stays so for who has admitted it, also when a new list
/// has another statement; a revocation that cannot be read refuses everything.
#[test]
fn what_takes_back_is_not_missed() {
    let deployment = deployment!("grant = \"vetted\"");
    let name = "plugins/word_count.revoke.toml";
    let revocation = "toolcrib = \"revoke/1\"\nname = \"word_count\"\nup_to = 1\nissued = 2026-01-01T00:00:00Z\n";
    deployment.locked.program.write("work/a.txt", "two words");
    let client = deployment.locked.program.client(&deployment.locked.under(&["run"]));
    let client = std::cell::RefCell::new(client);
    let outcome = || outcome_of(&client.borrow_mut().call("word_count", json!({ "path": "a.txt" })));
    assert_eq!(outcome(), "ok");
    fs::write(deployment.path(name), revocation).expect("written");
    minisign_sign(deployment.locked.program.root(), name, "bob", &format!("{name}.minisig"));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(outcome(), "ok", "bob takes nothing back");
    // The same file, by alice: nothing else has changed since the program last looked.
    let kept = fs::read(deployment.path(&format!("{name}.minisig"))).expect("a signature");
    minisign_sign(deployment.locked.program.root(), name, "alice", "alice.minisig");
    let signature = fs::read(deployment.path("alice.minisig")).expect("a signature");
    assert_ne!(kept, signature);
    fs::write(deployment.path(&format!("{name}.minisig")), signature).expect("written over");
    eventually("it is revoked", || outcome() == "revoked");
    let before = deployment.path("plugins/word_count.vet.toml").display().to_string();
    deployment.vet("word_count", &["--read", "/", "--from", &before]);
    deployment.sign("plugins/word_count.vet.toml", &["alice", "bob"]);
    deployment.list(&[]);
    // Another program knows of no earlier admission: to it the second statement is good.
    assert_eq!(deployment.outcome(), "ok");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(outcome(), "revoked");
    fs::remove_file(deployment.path(name)).expect("removed");
    fs::create_dir(deployment.path(name)).expect("a directory in its place");
    assert_eq!(deployment.outcome(), "list_invalid");
}

/// A list or statement that ends within 14 days gets one notice a day.
#[test]
fn what_ends_soon_is_told_once_a_day() {
    let deployment = deployment!("grant = \"vetted\"");
    let told = || {
        let output = deployment.locked.run(&["call", "time"]);
        stderr(&output).lines().filter(|line| line.contains("ends on")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(), Vec::<String>::new(), "30 days are no hurry");
    deployment.list_for("9d", &[]);
    let first = told();
    assert!(first.len() == 1 && first[0].contains("list test 2 ends on 20"), "{first:?}");
    assert_eq!(told(), Vec::<String>::new(), "it was told today");
    // As on the next day; and a statement.
    fs::remove_file(deployment.path("state/toolcrib/marks.toml")).expect("marks");
    let text = fs::read_to_string(deployment.path("plugins/word_count.vet.toml")).expect("a statement");
    let line = text.lines().find(|line| line.starts_with("expires")).expect("its end").to_owned();
    let end = Command::new("date").args(["-u", "-d", "+5 days", "+%Y-%m-%dT%H:%M:%SZ"]).output().expect("date");
    deployment.restate(&line, &format!("expires = {}", stdout(&end).trim()));
    let again = told();
    assert!(again.len() == 1 && again[0].contains("the statement about plugin `word_count` ends on 20"), "{again:?}");
}

/// A list that admits more shows the agent more, without a new start.
#[test]
fn a_new_list_brings_its_plugins() {
    let deployment = deployment!("grant = \"vetted\"");
    let wasm = deployment.path("plugins/shell_echo.wasm");
    fs::copy(guest("shell_echo"), &wasm).expect("copied");
    let mut command = deployment.locked.program.command(&deployment.locked.under(&["serve"]));
    let home = std::sync::Arc::new(toolcrib_tests::Program::new());
    let mut agent = toolcrib_tests::mcp::Client::start(&mut command, home, toolcrib_tests::mcp::ERAS[0], json!({}));
    agent.shake_hands();
    assert!(!agent.tools().contains(&"shell_echo".to_owned()));
    deployment.vet("shell_echo", &["--shell"]);
    deployment.sign("plugins/shell_echo.vet.toml", &["alice", "bob"]);
    deployment.list(&[]);
    let agent = std::cell::RefCell::new(agent);
    eventually("it is there", || agent.borrow_mut().tools().contains(&"shell_echo".to_owned()));
}
