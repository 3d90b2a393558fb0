//! What happens to the value of a secret at each exit of a call, by each setting. The letters are those of the cases of secrets.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;
use toolcrib::event::Event;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::shell::{harmless, with};
use toolcrib_tests::{TestHost, canary, skip};

const VALUE: &str = "zK4/vQ9+Lw\"2x&Ht7";
const MARK: &str = "[secret:KEY]";

/// A host with one secret, and these settings.
fn host(settings: &[&str]) -> TestHost {
    holding(settings, VALUE)
}

fn holding(settings: &[&str], value: &str) -> TestHost {
    let host = settings.iter().fold(TestHost::new(), |host, setting| host.set(setting));
    let file = host.dirs().config.join("key");
    keep(&host, value);
    let section = format!("[secret.KEY]\nfile = {:?}\nhosts = ['api.org']\nenv = true\n", file.display().to_string());
    host.user(&section)
}

/// Writes the value as another one would be put in its place.
fn keep(host: &TestHost, value: &str) {
    let (file, passing) = (host.dirs().config.join("key"), host.dirs().config.join("key.part"));
    std::fs::write(&passing, format!("{value}\n")).unwrap();
    std::fs::set_permissions(&passing, Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(passing, file).unwrap();
}

/// The value as programs write it.
fn forms() -> Vec<String> {
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let base64 = BASE64_STANDARD.encode(format!("user:{VALUE}"));
    vec![VALUE.into(), hex, percent, base64, VALUE.chars().rev().collect(), json!(VALUE).to_string()]
}

/// The value as programs lay its bytes out, the last two over several lines.
fn laid_out() -> Vec<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
    let bytes = format!("key={VALUE}").into_bytes();
    let dump = bytes.chunks(16).enumerate().map(|(line, bytes)| {
        let words: Vec<String> = bytes.chunks(2).map(|pair| hex(pair).concat()).collect();
        let shown: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        format!("{:08x}: {:<39}  {shown}\n", line * 16, words.join(" "))
    });
    let (first, second) = VALUE.split_at(8);
    vec![
        hex(VALUE.as_bytes()).join(" "),
        hex(VALUE.as_bytes()).join(":").to_uppercase(),
        data_encoding::BASE32.encode(&bytes),
        dump.collect(),
        format!("{first}\n  {second}"),
    ]
}

fn everything(envelope: &Value) -> String {
    envelope.to_string()
}

fn holds_none(what: &str, text: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{what} holds {form}: {text}");
        let in_json = json!(form).to_string();
        assert!(!text.contains(in_json.trim_matches('"')), "{what} holds {form}: {text}");
    }
}

/// K-10: what a tool gives back holds the secret's name, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_has_the_name_of_a_secret_in_its_place() {
    for form in forms() {
        let host = host(&[]);
        std::fs::write(host.work().join("a.txt"), format!("before {form} after")).unwrap();
        let envelope = host.call("read_file", json!({ "path": "a.txt" })).await.to_json();
        holds_none("a result", &everything(&envelope));
        let text = envelope["result"].as_str().unwrap_or_default();
        assert!(text.starts_with("before ") && text.contains(MARK), "{envelope}");
        assert_eq!(envelope["notices"][0], "the value of a secret was taken out of the result: `KEY`");
    }
}

/// K-01: layout hides no value: spaces and colons between digits, base32, the lines of a dump, and line ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_whose_bytes_are_laid_out_is_found_all_the_same() {
    for form in laid_out() {
        let host = host(&["confine.mode=off"]);
        std::fs::write(host.work().join("a.txt"), format!("before\n{form}\nafter")).unwrap();
        let envelope = host.call("read_file", json!({ "path": "a.txt" })).await.to_json();
        let text = envelope["result"].as_str().unwrap_or_default();
        assert!(text.contains(MARK) && text.starts_with("before") && text.ends_with("\nafter"), "{form}: {envelope}");
        for part in VALUE.as_bytes().windows(5) {
            let part = std::str::from_utf8(part).unwrap();
            let spaced: Vec<String> = part.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert!(!text.contains(part) && !text.contains(&spaced.join(" ")), "{form}: {text}");
        }
        let failure = host.failure("write_file", json!({ "path": "b.txt", "content": form })).await;
        assert_eq!((failure.kind, host.work().join("b.txt").exists()), (Kind::Denied, false), "{failure:?}");
        // What is in the file all the same is found in what a command prints of it.
        let printed = host.call("run_shell", harmless("cat a.txt")).await.to_json();
        let stdout = printed["result"]["stdout"].as_str().unwrap_or_default();
        assert!(stdout.contains(MARK) && !stdout.contains(&form), "{form}: {printed}");
    }
}

/// K-11: so does what a command prints, in events as well, also where it comes in pieces or controls of a terminal stand within it.
#[tokio::test(flavor = "multi_thread")]
async fn output_and_events_of_a_command_hold_no_secret() {
    let host = host(&["confine.mode=off"]);
    let (first, second) = VALUE.split_at(7);
    std::fs::write(host.work().join("first"), first).unwrap();
    std::fs::write(host.work().join("second"), second).unwrap();
    std::fs::write(host.work().join("parted"), format!("{first}\u{1b}[0m{second}")).unwrap();
    let text = "cat first; sleep 0.2; cat second; echo; cat first second >&2; cat parted";
    let envelope = host.call("run_shell", harmless(text)).await.to_json();
    holds_none("a result", &everything(&envelope));
    let piece = |event: &Event| match event {
        Event::Stdout { text } | Event::Stderr { text } => text.clone(),
        Event::Started { .. } | Event::Log { .. } | Event::Progress { .. } | Event::Completed { .. } => String::new(),
    };
    let told: String = host.events().iter().map(piece).collect();
    holds_none("an event", &told);
    assert!(told.matches(MARK).count() >= 3, "{told}");
}

/// K-12: nor does the output that is kept, nor what is read of it in pieces.
#[tokio::test(flavor = "multi_thread")]
async fn kept_output_holds_no_secret() {
    let host = host(&["confine.mode=off"]);
    std::fs::write(host.work().join("value"), VALUE).unwrap();
    let text = "i=0; while [ $i -lt 3000 ]; do printf 'line %s ' $i; cat value; echo; i=$((i+1)); done";
    host.call("run_shell", harmless(text)).await;
    let kept: Vec<_> = std::fs::read_dir(host.dirs().output()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!kept.is_empty());
    for file in kept {
        let text = std::fs::read_to_string(file).unwrap();
        holds_none("kept output", &text);
        assert!(text.contains(MARK));
    }
}

/// K-13: a secret that is split over two results of a session is not completed by the second.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_split_over_two_results_is_not_completed() {
    let host = host(&[]);
    for cut in 1..VALUE.len() {
        std::fs::write(host.work().join("a.txt"), format!("x {}", &VALUE[..cut])).unwrap();
        std::fs::write(host.work().join("b.txt"), format!("{} y", &VALUE[cut..])).unwrap();
        host.call("read_file", json!({ "path": "a.txt" })).await;
        let second = host.call("read_file", json!({ "path": "b.txt" })).await.to_json();
        assert!(everything(&second).contains(&format!("{MARK} y")), "{cut}: {second}");
    }
}

/// K-14, K-15: a command or a file that a model writes with the value in it is refused, and goes nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn commands_and_writes_that_hold_a_secret_are_refused() {
    for form in forms() {
        let host = host(&["confine.mode=off"]);
        let failure = host.failure("run_shell", harmless(&format!("touch ran # {form}"))).await;
        assert_eq!((failure.kind, host.work().join("ran").exists()), (Kind::Denied, false), "{failure:?}");
        assert_eq!(failure.message, "the command holds the value of the secret `KEY`");
        assert!(failure.hint.unwrap().contains("`commands = \"warn\"` under [leaks] lets it pass"));
        let failure =
            host.failure("write_file", json!({ "path": "a.txt", "content": format!("key = {form}\n") })).await;
        assert_eq!((failure.kind, host.work().join("a.txt").exists()), (Kind::Denied, false), "{failure:?}");
        let trail = std::fs::read_to_string(host.dirs().audit()).unwrap();
        holds_none("the trail", &trail);
        assert!(trail.contains(MARK) && trail.contains("leaks.commands"), "{trail}");
    }
}

/// K-16: where settings say so they pass, with a notice; the record and questions hold none all the same.
#[tokio::test(flavor = "multi_thread")]
async fn where_settings_say_so_what_holds_a_secret_passes_with_a_notice() {
    let warned = ["leaks.results=warn", "leaks.commands=warn", "leaks.writes=warn", "confine.mode=off"];
    let host = host(&warned).answering(Answer::Yes);
    let envelope = host.call("run_shell", harmless(&format!("echo '{VALUE}'"))).await.to_json();
    assert_eq!(envelope["result"]["stdout"], format!("{VALUE}\n"), "{envelope}");
    let notices = envelope["notices"].to_string() + &envelope["result"]["notices"].to_string();
    for notice in ["the command holds the value of the secret `KEY`", "the result holds the value of a secret: `KEY`"] {
        assert!(notices.contains(notice), "{notices}");
    }
    let envelope = host.call("write_file", json!({ "path": "a.txt", "content": VALUE })).await.to_json();
    assert!(envelope["error"].is_null() && everything(&envelope).contains("the content holds the value"), "{envelope}");
    // A failure repeats what it is about, and a reason may be parted by what nobody sees.
    let failure = host.failure("read_file", json!({ "path": format!("{VALUE}.txt") })).await;
    assert!(failure.message.contains(VALUE), "{failure:?}");
    let parted: String = VALUE.chars().flat_map(|c| [c, '\u{200b}']).collect();
    host.call("run_shell", with(harmless("true"), "why", parted)).await;
    holds_none("the trail", &std::fs::read_to_string(host.dirs().audit()).unwrap());
    let asked = host.asked();
    assert!(asked.iter().any(|request| request.action.contains(MARK)), "{asked:?}");
    for request in &asked {
        holds_none("a question", &format!("{}{:?}{}", request.action, request.details, request.why()));
    }
}

/// K-17: where settings say so a result with a secret is held back, also one of a failure.
#[tokio::test(flavor = "multi_thread")]
async fn where_settings_say_so_a_result_with_a_secret_is_held_back() {
    let host = host(&["leaks.results=block", "confine.mode=off"]);
    std::fs::write(host.work().join("value"), VALUE).unwrap();
    for (tool, arguments) in [
        ("read_file", json!({ "path": "value" })),
        ("run_shell", harmless("cat value")),
        ("run_shell", with(harmless("cat value; sleep 60"), "wait", "3s")),
    ] {
        let failure = host.failure(tool, arguments).await;
        assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
        assert!(failure.message.starts_with("the result holds the value of a secret"), "{failure:?}");
        holds_none("a failure", &failure.to_json().to_string());
    }
}

/// K-18: names of tools, and messages that repeat what a model wrote.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_wrote_comes_back_without_secrets() {
    let value = "zK4vQ9Lw2xHt7Rm";
    let host = holding(&[], value);
    let unknown = host.call(value, json!({})).await.to_json();
    let missing = host.call("read_file", json!({ "path": format!("{value}.txt") })).await.to_json();
    let odd = host.call("read_file", json!({ "path": 1, (value): 2 })).await.to_json();
    for envelope in [unknown, missing, odd] {
        assert!(!everything(&envelope).contains(value) && everything(&envelope).contains(MARK), "{envelope}");
    }
    let trail = std::fs::read_to_string(host.dirs().audit()).unwrap();
    assert!(!trail.contains(value) && trail.contains(MARK), "{trail}");
}

/// K-08: another value is known within a second, and the one before it still is.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_takes_the_place_of_another_is_known_within_a_second() {
    let (one, other) = ("firstValue-31x", "other_value-77y");
    let host = holding(&[], one);
    std::fs::write(host.work().join("both"), format!("{one} {other}")).unwrap();
    let first = host.call("read_file", json!({ "path": "both" })).await.to_json();
    assert!(everything(&first).contains(&format!("{MARK} {other}")), "{first}");
    keep(&host, other);
    let begin = std::time::Instant::now();
    loop {
        let since = begin.elapsed();
        let later = host.call("read_file", json!({ "path": "both" })).await.to_json();
        if everything(&later).contains(&format!("{MARK} {MARK}")) {
            return;
        }
        // However long a call takes: it has to know what there was a second before it began.
        assert!(since.as_millis() < 1000, "{later}");
    }
}

/// K-05: what the rig of all tests keeps in each home is a secret as any other.
#[tokio::test(flavor = "multi_thread")]
async fn the_canary_of_the_tests_is_a_secret() {
    if canary::value().is_none() {
        skip!("the canary is switched off");
    }
    let host = TestHost::new().set("confine.mode=off");
    let said = host.shell("cat ../canary; echo; cat ../home/.netrc; base64 -w0 <../canary").await["stdout"].to_string();
    assert_eq!(said.matches("[secret:CANARY]").count(), 3, "{said}");
    // Nor does a command get the variable of its host.
    assert_eq!(host.shell("printenv TOOLCRIB_TEST_API_KEY; echo $?").await["stdout"], "1\n");
}

/// K-05: where the scanner is off the canary gets out, and the search finds it: in the answer, an event and kept output.
#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_gets_out_is_found() {
    if canary::value().is_none() {
        skip!("the canary is switched off");
    }
    let mut host = TestHost::new().set("confine.mode=off").set("leaks.results=warn");
    let text = "cat ../canary; i=0; while [ $i -lt 3000 ]; do echo; base64 -w0 <../canary; i=$((i+1)); done";
    // Not by the rig, which would fail.
    let (inner, context) = host.parts();
    let request = Request { tool: "run_shell".into(), arguments: Arguments::Json(harmless(text)) };
    let answer = inner.call(request, context).await.to_json();
    assert!(canary::find(answer.to_string()).is_some(), "{answer}");
    let finds = host.search();
    for place in ["the canary is in an event, ", "the canary is in the file `state/output/"] {
        assert!(finds.iter().any(|find| find.starts_with(place)), "{place} is not among {finds:?}");
    }
    assert!(!finds.iter().any(|find| find.contains("audit")), "the record never holds a secret: {finds:?}");
}

/// K-19: what looks like a secret has a notice; private keys are taken out; where settings say so it is held back, and refused on its way out.
#[tokio::test(flavor = "multi_thread")]
async fn what_looks_like_a_secret_is_told() {
    let token = format!("ghp{}{}", "_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let key = format!(
        "-----BEGIN {0} KEY-----\n{1}\n-----END {0} KEY-----\n",
        "PRIVATE",
        "MIIEvQIBADANBgkqhkiG9w0BAQ\n".repeat(4)
    );
    for (shapes, refuses) in [("off", false), ("warn", false), ("block", true)] {
        let host = host(&[&format!("leaks.shapes={shapes}"), "confine.mode=off"]);
        std::fs::write(host.work().join("token"), &token).unwrap();
        std::fs::write(host.work().join("key"), &key).unwrap();
        let found = host.call("read_file", json!({ "path": "token" })).await.to_json();
        assert_eq!(everything(&found).contains(&token), !refuses, "{shapes}: {found}");
        assert_eq!(found["error"]["kind"] == "denied", refuses, "{shapes}: {found}");
        assert_eq!(everything(&found).contains("looks like a GitHub token"), shapes != "off", "{shapes}: {found}");
        let found = host.call("read_file", json!({ "path": "key" })).await.to_json();
        assert_eq!(everything(&found).contains("MIIEvQIBADANBgkqhkiG9w0BAQ"), shapes == "off", "{shapes}: {found}");
        let written = host.call("write_file", json!({ "path": "new", "content": token })).await.to_json();
        assert_eq!(written["error"]["kind"] == "denied", refuses, "{shapes}: {written}");
        let ran = host.call("run_shell", harmless(&format!("echo {token} >/dev/null"))).await.to_json();
        assert_eq!(ran["error"]["kind"] == "denied", refuses, "{shapes}: {ran}");
    }
}

/// The file of a secret is closed to tools, wherever settings put it.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_secret_is_closed_to_tools() {
    let host = TestHost::new();
    let file = host.work().join("key");
    std::fs::write(&file, VALUE).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let host = host.user(&format!("[secret.KEY]\nfile = {:?}\n", file.display().to_string()));
    for (tool, arguments) in
        [("read_file", json!({ "path": "key" })), ("write_file", json!({ "path": "key", "content": "x" }))]
    {
        let failure = host.failure(tool, arguments).await;
        assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), VALUE);
}

/// A policy makes each exit stricter, and cannot give a secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_makes_exits_stricter() {
    let host = host(&["leaks.writes=warn"]).policy("[leaks]\nwrites = 'block'\nresults = 'warn'\n");
    let failure = host.failure("write_file", json!({ "path": "a", "content": VALUE })).await;
    assert!(
        failure.hint.as_ref().unwrap().contains("the operator's policy decides this: `leaks.writes`"),
        "{failure:?}"
    );
    std::fs::write(host.work().join("a.txt"), VALUE).unwrap();
    let envelope = host.call("read_file", json!({ "path": "a.txt" })).await.to_json();
    holds_none("a result", &everything(&envelope));
}

/// Sections that cannot be meant so are refused with what to change.
#[test]
fn sections_of_secrets_that_cannot_be_meant_so_are_refused() {
    for (section, expected) in [
        ("[secret.A]\nhosts = ['a.org']", "[secret.A] does not say where its value is"),
        ("[secret.A]\nfile = '/x'\ncommand = ['y']", "[secret.A] has both `file` and `command`"),
        ("[secret.A]\nfile = 'x'", "`file` of [secret.A] is relative"),
        ("[tools]\nshell_secrets = ['A']", "`shell_secrets` under [tools] names `A`, which no command may get"),
        ("[secret.A]\nfile = '/x'\n[tools]\nshell_secrets = ['A']", "`shell_secrets` under [tools] names `A`"),
    ] {
        let failure = TestHost::new().user(section).build().map(drop).expect_err(section);
        assert!(failure.message.starts_with(expected) && failure.hint.is_some(), "{failure:?}");
    }
}

/// What is kept is a way out, too: into later conversations.
#[tokio::test(flavor = "multi_thread")]
async fn a_note_with_a_secret_is_not_kept() {
    let host = host(&[]);
    for form in forms() {
        let refused = host.failure("note_save", json!({ "key": "a", "content": format!("the key is {form}") })).await;
        assert_eq!(refused.kind, Kind::Denied, "{form}: {refused:?}");
    }
    assert_eq!(host.result("note_list", json!({})).await["notes"], json!([]));
}

/// Case 42 of agents whose tools are programs: what was kept before it was a secret, or under a milder setting, is shown with its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_secret_is_shown_by_its_name() {
    let host = host(&["leaks.writes=warn"]);
    host.result("note_save", json!({ "key": "a", "content": format!("the key is {VALUE}"), "pin": true })).await;
    let (called, context) = host.parts();
    let shown = called.pinned(context).await;
    assert_eq!(shown.pinned[0].text, format!("the key is {MARK}"));
}

/// What the program around feeds may have any secret in it: it is kept by its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_fed_is_kept_by_its_name() {
    let host = host(&["leaks.results=warn"]);
    let (called, context) = host.parts();
    let said = |channel: &str| {
        let said = json!({ "channel": channel, "author": "ada", "content": format!("the key is {VALUE}") });
        serde_json::from_value(json!({ "message": said })).expect("what is fed")
    };
    called.feed(context, said("dev")).await.expect("kept");
    let refused = called.feed(context, said(&format!("dev-{VALUE}"))).await.expect_err("a name is kept as it is");
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "`channel` has a secret in it"));
    let read = host.result("channel_recall", json!({ "channel": "dev" })).await;
    assert_eq!(read["messages"][0]["content"], format!("the key is {MARK}"));
    let store = std::fs::read(host.dirs().state.join("store.sqlite")).expect("the store");
    let log = std::fs::read(host.dirs().state.join("store.sqlite-wal")).unwrap_or_default();
    let value = VALUE.as_bytes();
    assert!(![store, log].iter().any(|bytes| bytes.windows(value.len()).any(|bytes| bytes == value)));
}
