//! Parsers: whatever a guest, a model or a file can hand them is read or refused; none panics, none hangs.
//! Outcome: lines of `toolcrib run`, arguments, commands and settings are answered by kind.
//! Switched off: the answer to a line that is no request (`cli/run.rs`, `parse`): the first test failed.

use command::{Denylist, Script, Unparsable};
use config::DEFAULT_TOML;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;
use toolcrib::call::Arguments;
use toolcrib::config::{Settings, Sources};
use toolcrib::envelope::Kind;
use toolcrib_tests::{Program, TestHost, ended, is_long};

fn cases(normally: u32) -> ProptestConfig {
    let cases = if is_long() { normally * 50 } else { normally };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// JSON of any shape, with words that the parsers know.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "1e999",
            "-0",
            "18446744073709551616",
            "10m",
            "-1s",
            "1.5h",
            "99999999999999999999d",
            "low",
            "\0",
            "\u{feff}"
        ])
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = vec![
        "id",
        "tool",
        "arguments",
        "cancel",
        "event",
        "command",
        "risk",
        "mutation",
        "privesc",
        "why",
        "wait",
        "session",
        "pane",
        "path",
        "offset",
        "content",
        "$ref",
        "__proto__",
        "",
    ];
    prop_oneof![8 => prop::sample::select(known).prop_map(str::to_owned), 1 => ".{0,6}"]
}

/// Text with a few bytes changed, doubled, cut away or made very many.
fn mutated(text: String, changes: Vec<(prop::sample::Index, u8, u8)>) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    for (place, what, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = place.index(bytes.len());
        match what % 6 {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 => _ = bytes.remove(at),
            3 => bytes.truncate(at),
            4 => bytes = [&bytes[..at], &bytes[at / 2..]].concat(),
            _ => _ = bytes.splice(at..at, [byte; 70]),
        }
    }
    bytes
}

fn changes(most: usize) -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\"'\\:,$()`;&|<>\n=#-\0".to_vec())];
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), byte), 0..most)
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let request = (
        value(),
        prop_oneof![Just("time"), Just("read_file"), Just("write_file"), Just("run_shell"), Just("nothing")],
        value(),
    )
        .prop_map(|(id, tool, arguments)| json!({ "id": id, "tool": tool, "arguments": arguments }));
    let cancel = (value(), value()).prop_map(|(id, other)| json!({ "id": id, "cancel": other }));
    let text = prop_oneof![3 => request, 1 => cancel, 2 => value()].prop_map(|line| line.to_string());
    prop_oneof![
        6 => (text, changes(4)).prop_map(|(text, changes)| mutated(text, changes)),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => (1..200_usize).prop_map(|depth| "[".repeat(depth).into_bytes()),
    ]
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn every_line_has_an_answer_and_the_next_call_too(lines in prop::collection::vec(line(), 1..40)) {
        let program = Program::new();
        let lines: Vec<Vec<u8>> = lines.into_iter().map(|line| line.into_iter().filter(|byte| *byte != b'\n').collect()).collect();
        let blank = |line: &Vec<u8>| line.trim_ascii().is_empty();
        let asked = lines.iter().filter(|line| !blank(line)).count();
        program.write("lines", [lines.join(&b'\n'), b"\n{\"id\":\"last\",\"tool\":\"time\"}\n".to_vec()].concat());
        // No line may do anything: it would be whatever the generator wrote.
        let mut host = program.command(&["--set", "tools.shell_enabled=false", "--set", "tools.files_enabled=false", "run"]);
        host.stdin(File::open(program.path("lines")).expect("lines"));
        host.stdout(File::create(program.path("answers")).expect("a file")).stderr(Stdio::null());
        let mut child = host.spawn().expect("the program starts");
        let status = ended(&mut child, Duration::from_secs(60)).unwrap_or_else(|| {
            child.kill().expect("it is ours");
            panic!("the program hangs")
        });
        prop_assert!(status.success(), "{status}");
        let answers = std::fs::read_to_string(program.path("answers")).expect("text");
        let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).expect("each answer is JSON")).collect();
        prop_assert!(answers.iter().any(|answer| answer["id"] == "last" && answer["result"]["source"] == "harness"));
        prop_assert!(answers.iter().all(|answer| answer["error"]["kind"] != "internal"), "{answers:?}");
        // What cancels has no answer of its own when it finds what it cancels.
        let cancelling = lines.iter().filter(|line| line.windows(6).any(|window| window == b"cancel")).count();
        let answered = asked + 1 - cancelling..=asked + 1;
        prop_assert!(answered.contains(&answers.len()), "{asked} asked, {cancelling} to cancel, {} answered", answers.len());
    }
}

static HOST: LazyLock<(Runtime, TestHost)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let host = TestHost::new().set("tools.shell_enabled=false").set("tools.files_enabled=false");
    (runtime, host)
});

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn arguments_of_any_shape_are_taken_or_refused(
        tool in prop::sample::select(vec!["time", "read_file", "write_file", "run_shell"]),
        arguments in value(),
        changes in changes(3),
        as_text in any::<bool>(),
    ) {
        let (runtime, host) = &*HOST;
        let arguments = match as_text {
            true => Arguments::Text(String::from_utf8_lossy(&mutated(arguments.to_string(), changes)).into_owned()),
            false => Arguments::Json(arguments),
        };
        let envelope = runtime.block_on(host.send(tool, arguments.clone()));
        if let Err(failure) = envelope.outcome {
            let refused = matches!(failure.kind, Kind::InvalidArguments | Kind::Denied);
            prop_assert!(refused, "{tool} {arguments:?}: {:?} {}", failure.kind, failure.message);
        }
    }

    #[test]
    fn a_wait_of_any_text_is_a_time_or_refused(wait in prop_oneof![
        "[0-9.+-]{0,24}(ms|s|m|h|d|S| |)", "[0-9]{1,40}e[0-9]{1,4}", ".{0,20}"
    ]) {
        let (runtime, host) = &*HOST;
        let mut arguments = toolcrib_tests::shell::command("true");
        arguments["wait"] = wait.clone().into();
        let failure = runtime.block_on(host.failure("run_shell", arguments));
        prop_assert!(matches!(failure.kind, Kind::InvalidArguments | Kind::Denied), "{wait:?}: {:?} {}", failure.kind, failure.message);
    }
}

/// Scripts as people write them; the attack is what is done to them.
const SCRIPTS: &[&str] = &[
    "for f in $(ls *.rs | sort -u); do case $f in a*|b?) echo \"${f%%.rs}\" >> \"out $(date +%s)\" 2>&1;; *) continue;; esac; done",
    "cat <<-'EOF' | while IFS= read -r x; do [[ $x =~ ^(a|b)+$ ]] && { echo $((x << 2)); }; done\n\ttext $(not run)\n\tEOF\n",
    "f() { local a=(1 2 \"$@\"); (( ${#a[@]} > 2 )) || return; sudo env -i A=1 sh -c 'exec \"$0\"' -- \"${a[0]:-`id`}\"; }; f &",
    "if ! diff <(sort a) <(sort b) > /dev/null; then trap 'rm -f \"$t\"' EXIT INT; elif [ -e x -a ! -L y ]; then :; else exit 1; fi",
    "find . -name '*.c' -exec grep -l $'\\x41\\n' {} + | xargs -0 -I {} timeout 5 sh -c 'echo {}' ; x=$(( (1+2) * 3 ? 4 : 5 ))",
    "until false; do coproc c { read; }; select y in a b; do break; done; done <<< \"$(printf '%s' \"${!x@Q}\")\" {fd}>&-",
];

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn scripts_that_were_tampered_with_are_read_or_refused_in_time(
        script in prop::sample::select(SCRIPTS),
        other in prop::sample::select(SCRIPTS),
        changes in changes(12),
    ) {
        let text = String::from_utf8_lossy(&mutated(format!("{script}\n{other}"), changes)).into_owned();
        let outcome = Script::parse(&text).err();
        prop_assert!(!matches!(outcome, Some(Unparsable::Failed | Unparsable::TooSlow)), "{outcome:?}: {text:?}");
    }

    #[test]
    fn patterns_of_any_text_are_taken_or_refused(pattern in prop_oneof![".{0,40}", "[ -~]{0,60}"], script in prop::sample::select(SCRIPTS)) {
        if let Ok(list) = Denylist::parse(std::slice::from_ref(&pattern)) {
            let _ = Script::parse(script).map(|script| script.denied_by(&list).is_some());
            // A command that is the pattern is denied by it, or is no command.
            if let Ok(same) = Script::parse(&pattern) {
                let _ = same.denied_by(&list);
            }
        } else {
            prop_assert!(pattern.trim().is_empty(), "{pattern:?}");
        }
    }
}

/// The keys of every setting.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut section = String::new();
    let mut keys = vec![
        "plugin.x.sha256".into(),
        "plugin.x.shell".into(),
        "plugin.x.files.read".into(),
        "plugin.".into(),
        ".".into(),
    ];
    for line in DEFAULT_TOML.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            keys.push(format!("{section}.{key}"));
        }
    }
    keys
});

fn setting() -> impl Strategy<Value = String> {
    let key = prop_oneof![6 => prop::sample::select(KEYS.clone()), 1 => "[a-z.\"\\[\\] ]{0,20}"];
    let value = prop_oneof![
        value().prop_map(|value| value.to_string()),
        prop::sample::select(vec![
            "true",
            "-1",
            "9223372036854775808",
            "nan",
            "1979-05-27",
            "\"\"\"",
            "'''",
            "[\"/\"]",
            "[\"~/\", \"~x\", \"..\"]",
            "{ a = 1, a = 2 }",
            "\"none\"",
            "[\"\\u0000\"]",
            "0x_1",
            "[[[[[[[[[[[[[[[[",
        ])
        .prop_map(str::to_owned),
        ".{0,20}",
    ];
    (key, value).prop_map(|(key, value)| format!("{key}={value}"))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn settings_of_any_text_are_read_or_refused(
        settings in prop::collection::vec(setting(), 0..6),
        source in 0..4_u8,
        changes in changes(6),
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("settings.toml");
        let mut sources = Sources { home: directory.path().into(), ..Sources::default() };
        match source {
            0 => sources.set = settings,
            1 => {
                let variable = |text: String| text.split_once('=').map(|(key, value)| {
                    (format!("TOOLCRIB_{}", key.replace('.', "_").to_uppercase()), value.to_owned())
                });
                sources.environment = settings.into_iter().filter_map(variable).collect();
            }
            _ => {
                std::fs::write(&file, mutated(format!("{}\n{}", settings.join("\n"), DEFAULT_TOML), changes)).expect("a file");
                let place = if source == 2 { &mut sources.user } else { &mut sources.project };
                *place = Some(file);
            }
        }
        match Settings::load(&sources) {
            Ok(settings) => prop_assert!(settings.render(true).len() > 100),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
