//! What holds wherever tools act: one list of cases over every place, with panes and without.

use crate::rig::{Rig, failure};
use crate::targets::{Container, Engine, Sshd, need_podman, need_targets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use toolcrib_sdk::shell::quoted;
use toolcrib_tests::envelope::{kept, notices, said};
use toolcrib_tests::eventually;
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::{command, declared, waiting};

/// A case may leave files behind, under names of its own; nothing else.
#[rustfmt::skip]
/// What one place has to do, by what it is.
type Case = (&'static str, fn(&mut Rig));

const CASES: [Case; 34] = [
    ("the exit status is the command's own", exit_status),
    ("death by a signal is no exit", death_by_a_signal),
    ("both streams are returned", both_streams),
    ("output is returned to the byte", output_to_the_byte),
    ("unicode passes", unicode),
    ("bytes that are no text are made visible", bytes_that_are_no_text),
    ("much output is cut and kept whole", much_output),
    ("several lines are one command", several_lines),
    ("quotes reach the shell unchanged", quotes),
    ("a long command is not too long", a_long_command),
    ("standard input is at its end", standard_input),
    ("a timeout leaves nothing running, or its pane to it", timeout),
    ("a cancel leaves nothing running", cancel),
    ("a process in the background holds nothing up", background),
    ("output is streamed while the command runs", streaming),
    ("calls at the same time get each its own output", concurrent_calls),
    ("paths begin where commands do", working_directory),
    ("files hold what was written, to the byte", file_contents),
    ("a mebibyte passes both ways", a_large_file),
    ("names of files may hold anything", file_names),
    ("failures of files are told apart", file_failures),
    ("directories are listed and made, and a file is edited", directories),
    ("lines and names are searched for as on this machine", searches),
    ("commands and programs have their directory, variables and input", surroundings),
    ("keys, the kernel's trees and the system's files are closed", closed_files),
    ("links that exist only there are followed before it is decided", closed_by_links),
    ("nothing of the host's environment passes", environment),
    ("what a shell keeps and what it does not", state),
    ("what needs panes is refused without them", without_panes),
    ("a pane is looked at and typed into", keys),
    ("panes are made, used and ended", panes_of_ones_own),
    ("a dispatched command is looked at later", dispatch),
    ("a pane that is in use is busy", busy),
    ("the managed server is nobody else's", private_server),
];

/// Runs all cases in one host, a new one behind each that failed.
fn conforms(flags: &[String], panes: bool) {
    let start = || {
        let mut rig = Rig::new(flags, panes);
        let mut warns = || rig.result("run_shell", command("true"))["notices"].to_string().contains("holds back");
        // On this machine nobody asked for it.
        let is_elsewhere = !flags.contains(&unconfined()[1]);
        assert_eq!([warns(), warns()], [is_elsewhere, false], "what says once that nothing is held back there");
        rig
    };
    let (mut rig, mut failed) = (start(), Vec::new());
    for (name, case) in CASES {
        let begin = std::time::Instant::now();
        let outcome = failure(|| case(&mut rig));
        println!("{:>6.2} s  {name}", begin.elapsed().as_secs_f64());
        if let Some(why) = outcome {
            failed.push(format!("{name}: {why}"));
            if let Some(why) = failure(|| rig = start()) {
                failed.push(format!("a new host behind it: {why}"));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn this_machine() {
    conforms(&unconfined(), false);
}

/// What the user can do, as in the other places.
fn unconfined() -> [String; 2] {
    ["--set".into(), "confine.mode=off".into()]
}

#[test]
fn this_machine_with_panes() {
    conforms(&unconfined(), true);
}

#[test]
fn docker() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    conforms(&container.flags(), false);
}

#[test]
fn docker_with_panes() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    conforms(&container.flags(), true);
}

/// Panes of this machine that lead to where there is no tmux.
fn led_to(flags: &[String]) -> Vec<String> {
    [flags, &["--panes".to_owned(), "host".to_owned()]].concat()
}

#[test]
fn docker_with_panes_of_this_machine() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    conforms(&led_to(&container.flags()), true);
}

#[test]
fn ssh_with_panes_of_this_machine() {
    need_targets!();
    let sshd = Sshd::new();
    conforms(&led_to(&sshd.flags("cribplain")), true);
}

#[test]
fn podman() {
    need_podman!();
    let container = Container::new(Engine::Podman, "debian");
    conforms(&container.flags(), false);
}

#[test]
fn podman_with_panes() {
    need_podman!();
    let container = Container::new(Engine::Podman, "debian");
    conforms(&container.flags(), true);
}

#[test]
fn ssh() {
    need_targets!();
    let sshd = Sshd::new();
    conforms(&sshd.flags("crib"), false);
}

#[test]
fn ssh_with_panes() {
    need_targets!();
    let sshd = Sshd::new();
    conforms(&sshd.flags("crib"), true);
}

/// Nothing but busybox is there: no bash, no tmux, no GNU programs.
#[test]
fn ssh_to_busybox() {
    need_targets!();
    let sshd = Sshd::new();
    conforms(&sshd.flags("cribplain"), false);
}

fn exit_status(rig: &mut Rig) {
    let anywhere =
        [("true", 0), ("false", 1), ("(exit 3)", 3), ("(exit 255)", 255), ("no-such-program 2>/dev/null", 127)];
    for (text, status) in anywhere {
        assert_eq!(rig.run(text), (status, String::new()), "`{text}`");
    }
    if !rig.panes {
        for status in [0, 1, 3, 126, 127, 128, 255] {
            assert_eq!(rig.run(&format!("exit {status}")), (status, String::new()));
        }
        let result = rig.result("run_shell", command("no-such-program"));
        assert!(result["stderr"].as_str().is_some_and(|text| text.contains("not found")), "{result}");
    }
}

/// Where only a shell reports of a death, it may report as shells do.
fn death_by_a_signal(rig: &mut Rig) {
    if rig.panes {
        return;
    }
    for (signal, number) in [("KILL", 9), ("TERM", 15)] {
        let (status, stdout) = rig.run(&format!("echo before; kill -{signal} $$; echo after"));
        assert!(status == -1 || status == 128 + number, "{signal}: {status}");
        assert_eq!(stdout, "before\n", "{signal}");
    }
}

fn both_streams(rig: &mut Rig) {
    let result = rig.result("run_shell", command("echo out; echo err >&2; echo more; echo worse >&2; (exit 3)"));
    if rig.panes {
        assert_eq!((&result["stdout"], &result["stderr"]), (&json!("out\nerr\nmore\nworse\n"), &json!("")));
        // The description says so, once for all results.
        assert_eq!(result["notices"], json!([]));
        assert_eq!(result["exit_code"], 3);
        return;
    }
    let expected = json!({ "exit_code": 3, "stdout": "out\nmore\n", "stderr": "err\nworse\n", "notices": [] });
    assert_eq!(result, expected);
    // A stream that is closed early ends nothing.
    let result = rig.result("run_shell", command("echo before; exec >&-; sleep 0.3; echo err >&2; exit 4"));
    assert_eq!(result, json!({ "exit_code": 4, "stdout": "before\n", "stderr": "err\n", "notices": [] }));
}

fn output_to_the_byte(rig: &mut Rig) {
    for (text, stdout) in [
        ("true", ""),
        ("printf abc", "abc"),
        ("printf 'a\\nb'", "a\nb"),
        ("printf '\\n\\nx\\n\\n'", "\n\nx\n\n"),
        ("printf '  x  \\n'", "  x  \n"),
        ("printf '\\t|\\n'", "\t|\n"),
        ("echo noise >/dev/null", ""),
        ("echo 'exit 0'; echo '[agent 99: 0] $ '", "exit 0\n[agent 99: 0] $ \n"),
        ("printf '%s\\n' '...[truncated]'", "...[truncated]\n"),
        // The marks of terminals, which panes and others may use as well, of somebody who does not know the nonce.
        ("printf '\\033]133;C;0123456789abcdef0123456789abcdef\\007x\\n'", "x\n"),
        ("printf '\\033]133;D;7;0123456789abcdef0123456789abcdef\\007x\\n'", "x\n"),
    ] {
        assert_eq!(rig.run(text), (0, stdout.to_owned()), "`{text}`");
    }
    // The last words of a short command are not lost.
    for round in 0..10 {
        assert_eq!(rig.run("printf out"), (0, "out".into()), "round {round}");
    }
}

fn unicode(rig: &mut Rig) {
    let text = "Grüße, 世界, 🙂 and e\u{301}\n";
    assert_eq!(rig.run(&format!("printf %s {}", quoted(text))), (0, text.into()));
}

fn bytes_that_are_no_text(rig: &mut Rig) {
    let answer = rig.call("run_shell", command(r"printf 'a\377\376\000b\007c\n'"));
    let stdout = answer["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}"));
    if rig.panes {
        assert!(stdout.starts_with('a') && stdout.ends_with("c\n"), "{stdout:?}");
    } else {
        assert_eq!(stdout, "a\u{fffd}\u{fffd}␀b␇c\n");
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let octal: String = (0..=255).map(|byte| format!("\\{byte:03o}")).collect();
        let text = format!("printf '{octal}' >bytes; for i in $(seq 400); do cat bytes; done | head -c 100000");
        let answer = rig.call("run_shell", command(&text));
        assert!(kept(&answer) == bytes, "the kept file is not the output");
    }
}

fn much_output(rig: &mut Rig) {
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let answer = rig.call("run_shell", command("seq 1 200000"));
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
    assert!(notices(&answer).contains(&format!("stdout has {} bytes", expected.len())), "{}", notices(&answer));
    let stdout = answer["result"]["stdout"].as_str().expect("text");
    let (head, tail) = (&expected[..1_500], &expected[expected.len() - 2_500..]);
    let out = expected.len() - 4_000;
    assert!(
        stdout.starts_with(&format!("{head}\n[{out} bytes left out, kept in /"))
            && stdout.ends_with(&format!("]\n{tail}"))
    );
    assert!(kept(&answer) == expected.as_bytes(), "the kept file is not the output");
    assert_eq!(rig.output("echo after"), "after\n");
}

fn several_lines(rig: &mut Rig) {
    for (text, status, stdout) in [
        ("x=1\nfor i in a b; do\n  x=$((x + 1))\ndone\n\n# a remark\necho $x\n", 0, "3\n"),
        (
            "cat <<'END'\nexit 0\n$HOME `id` \"$(id)\" \\\n\nEND\necho after",
            0,
            "exit 0\n$HOME `id` \"$(id)\" \\\n\nafter\n",
        ),
        ("cat <<END\n$((6 * 7))\n\n\tx\nEND\n(exit 7)", 7, "42\n\n\tx\n"),
        ("if true\nthen echo yes\nelse echo no\nfi", 0, "yes\n"),
        ("echo last\n\n\n", 0, "last\n"),
        ("# nothing but a remark", 0, ""),
    ] {
        assert_eq!(rig.run(text), (status, stdout.to_owned()), "`{text}`");
    }
}

fn quotes(rig: &mut Rig) {
    let odd = "'a'\"b\"$c`d`\\\\e\\n %h %% ~ {x,y} !! # ; & | <(z) $((1)) *\n'\\''\n-n end";
    assert_eq!(rig.run(&format!("printf %s {}", quoted(odd))), (0, odd.into()));
    for (text, stdout) in [
        (r"printf '%s' 'it'\''s'", "it's"),
        (r#"printf '%s|' "a b" c"#, "a b|c|"),
        (r"printf '%s' '\n$x`y`%d'", r"\n$x`y`%d"),
        ("x='a  b'; printf '%s' \"$x\"; printf '|%s' $x", "a  b|a|b"),
        ("printf '%s' 'tab\there'", "tab\there"),
        ("  echo  spaced  ", "spaced\n"),
        ("echo $0 >/dev/null; echo \"$#\"", "0\n"),
    ] {
        assert_eq!(rig.run(text), (0, stdout.to_owned()), "`{text}`");
    }
}

fn a_long_command(rig: &mut Rig) {
    for filler in ["y".repeat(100 << 10), "'\\''".repeat(20 << 10)] {
        let text = format!("text='{filler}'; echo ${{#text}}");
        let length = filler.replace("'\\''", "'").len();
        assert_eq!(rig.run(&text), (0, format!("{length}\n")));
    }
}

fn standard_input(rig: &mut Rig) {
    if rig.panes {
        return;
    }
    let answer = rig.within("cat; read x; echo \"$?\"; test -t 0; echo $?; test -t 1; echo $?", "10s");
    assert_eq!(answer["result"]["stdout"], "1\n1\n1\n", "{answer}");
}

/// A command that does not want to end, in several ways. It prints `ready` when it has started all of them. `env`, because a shell of
/// busybox sleeps by itself, under its own name.
fn stubborn(seconds: &str) -> String {
    "trap '' TERM HUP INT\n\
     env sleep SECONDS &\n\
     (setsid sleep SECONDS &)\n\
     setsid sh -c 'env sleep SECONDS & env sleep SECONDS' &\n\
     env -i sleep SECONDS &\n\
     sh -c 'kill -STOP $$; sleep SECONDS' &\n\
     echo ready\n\
     env sleep SECONDS\n\
     sleep SECONDS"
        .replace("SECONDS", seconds)
}

fn until_ready(rig: &mut Rig, id: u64, seconds: &str) {
    rig.until_printed(id, "ready");
    eventually("all of them are there", || sleeping(seconds).len() >= 6);
}

fn timeout(rig: &mut Rig) {
    let seconds = unique_seconds();
    if rig.panes {
        let answer = rig.within(&format!("echo begun; sleep {seconds}"), "3s");
        assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
        assert_eq!(answer["error"]["data"]["stdout"], "begun\n", "{answer}");
        eventually("it sleeps", || !sleeping(&seconds).is_empty());
        rig.type_keys(&["C-c"]);
    } else {
        let id = rig.send("run_shell", waiting(&stubborn(&seconds), "8s"));
        until_ready(rig, id, &seconds);
        let begin = Instant::now();
        let answer = rig.answer();
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("timed_out")), "{answer}");
        assert_eq!(answer["error"]["data"]["stdout"], "ready\n", "{answer}");
        assert!(begin.elapsed() < Duration::from_secs(20), "it took {:?}", begin.elapsed());
    }
    assert_gone(&seconds);
    assert_eq!(rig.output("echo next"), "next\n");
}

fn cancel(rig: &mut Rig) {
    let seconds = unique_seconds();
    let text = if rig.panes { format!("echo ready; sleep {seconds}") } else { stubborn(&seconds) };
    let id = rig.send("run_shell", command(&text));
    if rig.panes {
        rig.until_printed(id, "ready");
        eventually("it sleeps", || !sleeping(&seconds).is_empty());
    } else {
        until_ready(rig, id, &seconds);
    }
    let begin = Instant::now();
    rig.cancel(id);
    let answer = rig.answer();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("cancelled")), "{answer}");
    // A terminal shows the key that interrupted it.
    let printed = answer["error"]["data"]["stdout"].as_str().unwrap_or_default();
    assert!(printed == "ready\n" || rig.panes && printed.starts_with("ready\n"), "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
    assert_gone(&seconds);
    assert_eq!(rig.output("echo next"), "next\n");
}

fn background(rig: &mut Rig) {
    let (seconds, begin) = (unique_seconds(), Instant::now());
    let answer = rig.within(&format!("env sleep {seconds} & echo \"pid $!\"; echo hi >&2"), "30s");
    let took = begin.elapsed();
    let stdout = answer["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(took < Duration::from_secs(10), "it was waited for: {took:?}");
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
    eventually("it lives on", || !sleeping(&seconds).is_empty());
    let pid = stdout.lines().find_map(|line| line.strip_prefix("pid ")).expect("its number").to_owned();
    if !rig.panes {
        let said = notices(&answer);
        assert!(said.contains("still running") && said.contains(&pid), "{said}");
    }
    // An interactive shell tells of the end of a job when it next can.
    rig.run(&format!("kill {pid}; wait {pid} 2>/dev/null; true"));
    assert_gone(&seconds);
    // What talks on does not hold it up either.
    if !rig.panes {
        let answer = rig.within(&format!("yes {seconds} & echo \"pid $!\" >&2; exit 5"), "30s");
        assert_eq!(answer["result"]["exit_code"], 5, "{answer}");
        let stderr = answer["result"]["stderr"].as_str().unwrap_or_default();
        let pid = stderr.lines().find_map(|line| line.strip_prefix("pid ")).expect("its number");
        rig.run(&format!("kill -9 {pid} 2>/dev/null"));
        assert_gone(&seconds);
    }
}

fn streaming(rig: &mut Rig) {
    // It ends when there is a file that is written once the first line has come.
    let text = "echo early; until [ -e streamed ]; do sleep 0.05; done; echo late";
    let id = rig.send("run_shell", command(text));
    rig.until_printed(id, "early");
    let written = rig.send("write_file", json!({ "path": "streamed", "content": "" }));
    let answer = rig.answer_to(written);
    assert!(answer["error"].is_null(), "{answer}");
    let answer = rig.answer_to(id);
    assert_eq!(answer["result"]["stdout"], "early\nlate\n", "{answer}");
}

fn concurrent_calls(rig: &mut Rig) {
    let names = ["a", "b", "c", "d"];
    let text = |name: &str| match rig.panes {
        true => format!("echo {name}; sleep 0.1; echo {name}"),
        // None of them ends before all of them are there.
        false => format!(
            "echo {name}; touch there-{name}; until [ -e there-a ] && [ -e there-b ] && [ -e there-c ] && [ -e there-d ]; \
             do sleep 0.05; done; echo {name}; echo {name} >&2"
        ),
    };
    let texts = names.map(|name| (name, text(name)));
    let sent: BTreeMap<u64, &str> =
        texts.iter().map(|(name, text)| (rig.send("run_shell", waiting(text, "20s")), *name)).collect();
    let answers: BTreeMap<u64, Value> = names
        .iter()
        .map(|_| {
            let answer = rig.answer();
            (answer["id"].as_u64().expect("an id"), answer)
        })
        .collect();
    for (id, name) in sent {
        let result = &answers[&id]["result"];
        assert_eq!(result["stdout"], format!("{name}\n{name}\n"), "{}", answers[&id]);
        let stderr = if rig.panes { String::new() } else { format!("{name}\n") };
        assert_eq!(result["stderr"], stderr, "{}", answers[&id]);
    }
}

/// Directory and home, as commands see them.
fn places(rig: &mut Rig) -> (String, String) {
    let both = rig.output("pwd -P; echo \"$HOME\"");
    let mut lines = both.lines().map(str::to_owned);
    (lines.next().expect("a directory"), lines.next().expect("a home"))
}

fn written(rig: &mut Rig, path: &str, content: &str) {
    let answer = rig.write_file(path, content);
    let said = answer["result"].as_str().unwrap_or_default();
    // A byte order mark is told besides.
    assert!(said.starts_with(&format!("Wrote {} bytes to {path}", content.len())), "{answer}");
}

fn working_directory(rig: &mut Rig) {
    let (directory, home) = places(rig);
    assert_eq!(rig.output("mkdir -p place/sub ~/place"), "");
    for (path, start, rest) in [
        ("place/relative", &directory, "place/relative"),
        ("./place/sub/../dotted", &directory, "place/dotted"),
        ("~/place/tilde", &home, "place/tilde"),
        ("~//place/slashes", &home, "place/slashes"),
    ] {
        written(rig, path, path);
        let place = format!("{start}/{rest}");
        assert_eq!(rig.output(&format!("cat {}", quoted(&place))), path);
        assert_eq!(rig.read_file(path)["result"], path);
        assert_eq!(rig.read_file(&place)["result"], path, "{place}");
    }
}

/// The bytes of a file, by a program of the place.
fn hex(rig: &mut Rig, path: &str) -> String {
    rig.output(&format!("od -An -v -tx1 {} | tr -d ' \\n'", quoted(path)))
}

fn file_contents(rig: &mut Rig) {
    for (number, content) in [
        "",
        "\n",
        "no final newline",
        "line\n",
        "\n\n\n",
        "\n\n  leading and trailing  \n\n",
        "one\r\ntwo\r\n",
        "Grüße, 世界, 🙂\n",
        "\u{feff}with a mark",
        "\u{1b}[31m\u{0}\u{7}\u{202e}",
        "$HOME `id` $(id) 'quoted' \"twice\" \\n %s {}\n",
        "-n\n~.\n~?\nEOF\nEND\n.\n",
        "\u{4}\u{3}\u{1a}\u{11}\u{13}\u{7f}end",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("content-{number}");
        written(rig, &path, content);
        let bytes: String = content.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex(rig, &path), bytes, "{content:?}");
        if content.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}' && c != '\u{feff}') {
            let answer = rig.read_file(&path);
            assert_eq!((&answer["result"], &answer["notices"]), (&json!(content), &Value::Null), "{content:?}");
        }
    }
    // Replaced by less, with its mode kept, and nothing left beside it.
    assert_eq!(rig.output("mkdir -p replaced && echo old and longer >replaced/it && chmod 750 replaced/it"), "");
    written(rig, "replaced/it", "new");
    assert_eq!(
        rig.output("cat replaced/it; echo; ls -A replaced; ls -l replaced | grep -c '^-rwxr-x---'"),
        "new\nit\n1\n"
    );
}

fn a_large_file(rig: &mut Rig) {
    let content: String = (0..16_384).map(|line| format!("{line:063}\n")).collect();
    written(rig, "large", &content);
    assert!(
        kept(&rig.call("run_shell", command("cat large"))) == content.as_bytes(),
        "the file is not what was written"
    );
    let answer = rig.read_file("large");
    assert_eq!(answer["result"], format!("{}...[truncated]", &content[..8_000]), "{}", answer["notices"]);
    assert!(notices(&answer).contains("`large` has 1048576 bytes; set `offset` to 8000"), "{}", notices(&answer));
    for offset in [8_000, 524_288, 1_048_000, 1_048_575, 1_048_576] {
        let result = rig.result("read_file", json!({ "path": "large", "offset": offset }));
        let rest = &content[offset..];
        let expected = if rest.len() > 8_000 { format!("{}...[truncated]", &rest[..8_000]) } else { rest.to_owned() };
        assert!(result == expected, "at {offset}: {result:.200}");
    }
    // A character that the piece would cut.
    written(rig, "wide", &"ß".repeat(5_000));
    assert_eq!(rig.result("read_file", json!({ "path": "wide", "offset": 9_997 })), "ß");
}

fn file_names(rig: &mut Rig) {
    const NAMES: [&str; 24] = [
        "a b", " a", "a ", "it's", "\"q\"", "-rf", "--", "-", "$HOME", "$x", "a;id", "`id`", "$(id)", "a\nb", "a\n",
        "\n", "a\tb", "*", "?[a-z]", "世界", "\\", "\\n", "#!%h", "{a,b}",
    ];
    let directory = "names of any kind";
    assert_eq!(rig.output(&format!("mkdir -p '{directory}'")), "");
    for (number, name) in NAMES.iter().enumerate() {
        let path = format!("{directory}/{name}");
        let answer = rig.write_file(&path, &number.to_string());
        assert!(answer["error"].is_null(), "{name:?}: {answer}");
        assert_eq!(rig.read_file(&path)["result"], number.to_string(), "{name:?}");
    }
    // They are the names that the place knows them by, and there are no others.
    let all: Vec<String> =
        NAMES.iter().map(|name| format!("cat <{}; echo", quoted(&format!("./{directory}/{name}")))).collect();
    let expected: String = (0..NAMES.len()).map(|number| format!("{number}\n")).collect();
    assert_eq!(rig.output(&all.join("\n")), expected);
    let count = rig.output(&format!("find '{directory}' -type f -exec printf x ';' | wc -c"));
    assert_eq!(count.trim(), NAMES.len().to_string());
    // Where nothing stands before it, a name is taken for no option either.
    written(rig, "-n", "dashed");
    assert_eq!(rig.read_file("-n")["result"], "dashed");
    assert_eq!(rig.output("cat ./-n; rm ./-n"), "dashed");
}

fn file_failures(rig: &mut Rig) {
    assert_eq!(
        rig.output(
            "mkdir -p fail/directory && echo old >fail/file && mkfifo fail/fifo 2>/dev/null; ln -sf nowhere fail/link"
        ),
        ""
    );
    let before = rig.output("ls -A fail");
    for (path, message) in [
        ("fail/gone", "no such file or directory"),
        ("fail/gone/file", "no such file or directory"),
        ("fail/directory", "is a directory"),
        ("fail/directory/", "is a directory"),
        (".", "is a directory"),
        ("~", "is a directory"),
        ("fail/file/below", "a part of the path is not a directory"),
        ("fail/file/", "a part of the path is not a directory"),
        ("fail/fifo", "is not a regular file"),
    ] {
        let said = rig.refused("read_file", json!({ "path": path }));
        assert!(said.starts_with("execution_failed: ") && said.contains(message), "reading {path}: {said}");
        if path != "fail/gone" {
            let said = rig.refused("write_file", json!({ "path": path, "content": "new" }));
            assert!(said.starts_with("execution_failed: ") && said.contains(message), "writing {path}: {said}");
        }
    }
    let said = rig.refused("write_file", json!({ "path": "fail/link", "content": "new" }));
    assert!(said.starts_with("execution_failed: "), "through a link to nowhere: {said}");
    let said = rig.refused("read_file", json!({ "path": " " }));
    assert!(said.starts_with("invalid_arguments: "), "{said}");
    let said = rig.refused("read_file", json!({ "path": "a\u{0}b" }));
    assert!(said.starts_with("invalid_arguments: "), "{said}");
    assert_eq!(rig.output("printf 'ab\\377\\000c' >fail/binary"), "");
    let said = rig.refused("read_file", json!({ "path": "fail/binary" }));
    assert!(said.starts_with("execution_failed: ") && said.contains("byte 2 of 5"), "{said}");
    assert_eq!(rig.output("rm fail/binary; cat fail/file; ls -A fail"), format!("old\n{before}"));
}

fn surroundings(rig: &mut Rig) {
    let result = |rig: &mut Rig, tool: &str, arguments: Value| {
        let answer = rig.call(tool, arguments);
        assert!(answer["error"].is_null(), "{tool}: {answer}");
        answer["result"].clone()
    };
    assert_eq!(rig.output("mkdir -p 'sur roundings'"), "");
    let env = json!([{ "key": "TEXT", "value": "it's $HOME" }, { "key": "EMPTY", "value": "" }]);
    let script = json!({
        "command": "pwd; echo \"$TEXT|${EMPTY-unset}\"; cat; echo err >&2; exit 3", "working_dir": "sur roundings", "env": env,
    });
    let ran = result(rig, "shell", script);
    let stdout = ran["stdout"].as_str().expect("text");
    assert!(stdout.ends_with("/sur roundings\nit's $HOME|\n"), "{stdout}");
    assert_eq!((&ran["stderr"], &ran["exit_code"]), (&json!("err\n"), &json!(3)));
    let printed = result(rig, "exec", json!({ "program": "printf", "args": ["%s|", "a b;$(id)", "it's", "*", ""] }));
    assert_eq!(printed["stdout"], "a b;$(id)|it's|*||");
    let input = "one\ntwo \\ 'three' \u{e9}\0".to_owned() + &"x".repeat(10_000);
    let read = json!({ "program": "cat", "stdin": input, "env": env, "working_dir": "sur roundings" });
    let read = result(rig, "exec", read)["stdout"].as_str().expect("text").to_owned();
    // A NUL is made visible.
    assert!(read == input.replace('\0', "\u{2400}"), "{} bytes", read.len());
    let program = json!({ "program": "sh", "args": ["-c", "echo \"$TEXT\"; exit 4"], "env": env });
    let ran = result(rig, "exec", program);
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("it's $HOME\n"), &json!(4)));
    let missing = rig.call("exec", json!({ "program": "no-such-program" }));
    assert!(missing["error"]["kind"] == "unavailable" || missing["result"]["exit_code"] == 127, "{missing}");
    let nowhere = rig.call("shell", json!({ "command": "touch made", "working_dir": "no such directory" }));
    assert!(nowhere["error"]["kind"] == "execution_failed" || nowhere["result"]["exit_code"] == 125, "{nowhere}");
}

fn directories(rig: &mut Rig) {
    let result = |rig: &mut Rig, tool: &str, arguments: Value| {
        let answer = rig.call(tool, arguments);
        assert!(answer["error"].is_null(), "{tool}: {answer}");
        answer["result"].clone()
    };
    let path = "dirs/a b/'\u{e9}/file";
    let write = json!({ "path": path, "content": "one two\n" });
    assert_eq!(result(rig, "file_write", write.clone()), format!("Wrote 8 bytes to {path}"));
    let edit = json!({ "path": path, "old_string": "two", "new_string": "three" });
    let diff = format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-one two\n+one three\n");
    assert_eq!(result(rig, "file_edit", edit), diff);
    assert_eq!(result(rig, "file_read", json!({ "path": path, "offset": 1 })), "1\tone three\n");
    assert_eq!(rig.output(&format!("cat {}", quoted(path))), "one three\n");
    // What a shell sets aside, what ends a line, a link, what is no file.
    assert_eq!(
        rig.output(
            "(cd dirs && touch -- -n '*' .hid 'a\nb' 'a b/c' && ln -s /nowhere gone && mkfifo fifo && mkdir empty)"
        ),
        ""
    );
    let listed = result(rig, "file_list", json!({ "path": "dirs" }));
    let seen: Vec<_> = listed["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| (&entry["name"], &entry["type"], &entry["size"]))
        .collect();
    let (file, none) = (json!("file"), Value::Null);
    let expected = [
        ("*", &file, &json!(0)),
        ("-n", &file, &json!(0)),
        (".hid", &file, &json!(0)),
        ("a b", &json!("directory"), &none),
        ("empty", &json!("directory"), &none),
        ("fifo", &json!("other"), &none),
        ("gone", &json!("link"), &none),
    ];
    let (odd, seen): (Vec<_>, Vec<_>) = seen
        .into_iter()
        .partition(|(name, ..)| name.as_str().is_some_and(|name| name.starts_with("a\\n") || name.starts_with("a\n")));
    assert_eq!(odd.len(), 1, "{listed}");
    let names: Vec<_> = expected.iter().map(|(name, ..)| json!(name)).collect();
    let expected: Vec<_> = names.iter().zip(&expected).map(|(name, (_, kind, size))| (name, *kind, *size)).collect();
    assert_eq!((seen, &listed["total"]), (expected, &json!(8)));
    assert_eq!(result(rig, "file_list", json!({ "path": "dirs/empty" })), json!({ "entries": [], "total": 0 }));
    let inner = result(rig, "file_list", json!({ "path": "dirs/a b/'\u{e9}" }));
    assert_eq!(inner["entries"], json!([{ "name": "file", "type": "file", "size": 10 }]));
    for (path, why) in
        [("dirs/gone", "directory"), ("dirs/fifo", "not a directory"), ("dirs/none", "no such file or directory")]
    {
        let said = rig.refused("file_list", json!({ "path": path }));
        assert!(said.starts_with("execution_failed: ") && said.contains(why), "{path}: {said}");
    }
    for path in ["dirs/fifo/x/y", "dirs/none/../../../x/y"] {
        let said = rig.refused("file_write", json!({ "path": path, "content": "x" }));
        assert!(said.starts_with("execution_failed: ") || said.starts_with("denied: "), "{path}: {said}");
    }
    assert_eq!(rig.output("ls -A dirs/none ../x 2>/dev/null; rm -r dirs"), "");
}

fn searches(rig: &mut Rig) {
    let prepared = "mkdir -p find/src/deep find/out find/.hid find/.git ~/.ssh && (cd find && echo '*.log' >.gitignore && echo '/in' >src/.gitignore && \
         printf 'one\nneedle 12\nthree\n' >src/a.rs && echo 'Needle' >src/deep/b.py && echo 'needle 7' >src/in && echo 'needle' >out/c.log && \
         echo 'needle' >.hid/d && printf 'needle\\000' >bin && echo 'needle x12' >'a b' && echo needle SECRET >~/.ssh/id_find && \
         ln ~/.ssh/id_find linked && ln -s ~/.ssh/id_find soft && mkfifo fifo)";
    assert_eq!(rig.output(prepared), "");
    let result = |rig: &mut Rig, tool: &str, arguments: Value| {
        let answer = rig.result(tool, arguments);
        answer.as_str().unwrap_or_else(|| panic!("{tool}: {answer}")).to_owned()
    };
    for (arguments, expected) in [
        (
            json!({ "pattern": "needle" }),
            "find/a b\n1:needle x12\n\nfind/src/a.rs\n2:needle 12\n\n2 matches in 2 files.",
        ),
        (
            json!({ "pattern": r"needle \d+$", "context": 1 }),
            "find/src/a.rs\n1-one\n2:needle 12\n3-three\n\n1 match in 1 file.",
        ),
        (
            json!({ "pattern": "NEEDLE", "ignore_case": true, "type": "py" }),
            "find/src/deep/b.py\n1:Needle\n\n1 match in 1 file.",
        ),
        (
            json!({ "pattern": "needle", "glob": "src/**", "no_ignore": true }),
            "find/src/a.rs\n2:needle 12\n\nfind/src/in\n1:needle 7\n\n2 matches in 2 files.",
        ),
        (
            json!({ "pattern": "needle", "hidden": true, "glob": ".hid/*" }),
            "find/.hid/d\n1:needle\n\n1 match in 1 file.",
        ),
        (json!({ "pattern": r"\bx1(2|3)", "limit": 1 }), "find/a b\n1:needle x12\n\n1 match in 1 file."),
    ] {
        let mut asked = arguments.clone();
        asked["path"] = "find".into();
        let said = result(rig, "file_search", asked);
        assert!(said.starts_with(expected) && !said.contains("SECRET"), "{arguments}: {said}");
    }
    let single = result(rig, "file_search", json!({ "pattern": "needle", "path": "find/src/in" }));
    assert_eq!(single, "find/src/in\n1:needle 7\n\n1 match in 1 file.");
    let named = result(rig, "file_find", json!({ "path": "find", "pattern": "*.{rs,py}" }));
    assert_eq!(named.lines().take(2).collect::<Vec<_>>(), ["find/src/a.rs", "find/src/deep/b.py"]);
    for (path, kind) in [
        ("~/.ssh", "denied: "),
        ("/proc/self", "denied: "),
        ("find/none", "execution_failed: "),
        ("find/fifo", "execution_failed: "),
    ] {
        let said = rig.refused("file_search", json!({ "pattern": "needle", "path": path }));
        assert!(said.starts_with(kind), "{path}: {said}");
    }
    assert_eq!(rig.output("rm -r find ~/.ssh/id_find"), "");
}

fn closed_files(rig: &mut Rig) {
    let (_, home) = places(rig);
    assert_eq!(
        rig.output("mkdir -p ~/.ssh ~/.aws && echo SECRET >~/.ssh/id_test && echo SECRET >~/.aws/credentials"),
        ""
    );
    for path in [
        "~/.ssh/id_test",
        "~/./.ssh/../.ssh/id_test",
        "~/.aws/credentials",
        &format!("{home}/.ssh/id_test"),
        "~/.ssh/none",
        "/proc/self/environ",
        "/proc/1/status",
        "/etc/../proc/self/environ",
        "/sys/kernel/notes",
        "/dev/null",
    ] {
        let said = rig.refused("read_file", json!({ "path": path }));
        assert!(said.starts_with("denied: ") && !said.contains("SECRET"), "reading {path}: {said}");
    }
    assert_eq!(rig.output("md5sum /etc/passwd ~/.profile >sums 2>&1; true"), "");
    for path in [
        "/etc/passwd",
        "/etc/new",
        "/usr/new",
        "/bin/new",
        "/proc/self/comm",
        "/dev/null",
        "/sys/new",
        "~/.ssh/authorized_keys",
        "~/.ssh/new",
        "~/.bashrc",
        "~/.profile",
        "~/.zshenv",
        "/etc/../etc/passwd",
        "~/../../../../../../etc/passwd",
    ] {
        let said = rig.refused("write_file", json!({ "path": path, "content": "new" }));
        assert!(said.starts_with("denied: "), "writing {path}: {said}");
    }
    assert_eq!(rig.output("md5sum /etc/passwd ~/.profile 2>&1 | cmp - sums && echo same"), "same\n");
    assert_eq!(rig.output("ls /etc/new /usr/new /bin/new ~/.ssh/new 2>/dev/null; true"), "");
    // Reading the system's files is open, and so is a neighbour with a similar name.
    let answer = rig.read_file("/etc/passwd");
    assert!(answer["result"].as_str().is_some_and(|text| text.contains("root:")), "{answer}");
    written(rig, "~/.sshrc-not", "open");
    assert_eq!(rig.read_file("~/.sshrc-not")["result"], "open");
}

fn closed_by_links(rig: &mut Rig) {
    assert_eq!(
        rig.output(
            "mkdir -p ~/.ssh links && echo SECRET >~/.ssh/id_test && cd links && rm -f * && ln -s ~/.ssh/id_test key && ln -s ~/.ssh keys && \
             ln -s keys again && ln -s /etc etc && ln -s /etc/passwd passwd && ln -s passwd twice && ln -s /proc proc && ln -s circle circle && \
             echo open >file && ln -s file fine; cd .."
        ),
        ""
    );
    for path in [
        "links/key",
        "links/keys/id_test",
        "links/again/id_test",
        "links/proc/self/environ",
        "links/etc/../proc/1/status",
    ] {
        let said = rig.refused("read_file", json!({ "path": path }));
        assert!(said.starts_with("denied: ") && !said.contains("SECRET"), "reading {path}: {said}");
    }
    for path in
        ["links/etc/new", "links/etc/passwd", "links/passwd", "links/twice", "links/keys/new", "links/proc/self/comm"]
    {
        let said = rig.refused("write_file", json!({ "path": path, "content": "new" }));
        assert!(said.starts_with("denied: "), "writing {path}: {said}");
    }
    let said = rig.refused("read_file", json!({ "path": "links/circle" }));
    assert!(said.starts_with("execution_failed: "), "{said}");
    assert_eq!(rig.read_file("links/fine")["result"], "open\n");
    written(rig, "links/fine", "written");
    assert_eq!(rig.output("cat links/file; test -h links/fine && echo; ls /etc/new 2>/dev/null; true"), "written\n");
}

/// Every host here is started with secrets in its environment.
fn environment(rig: &mut Rig) {
    let text = "env | grep -c hunter2; echo \"[$AWS_SECRET$SECRET_TOKEN$GITHUB_TOKEN$LC_API_KEY]\"; \
                tr '\\000' '\\n' <\"/proc/$$/environ\" | grep -c hunter2; true";
    assert_eq!(rig.output(text), "0\n[]\n0\n");
    let (directory, home) = (rig.program.path("work"), rig.program.path("home"));
    let text = "for f in /proc/[0-9]*/environ; do tr '\\000' '\\n' <\"$f\" | grep -c '^AWS_SECRET=hunter2'; done 2>/dev/null | sort -u";
    if places(rig) != (directory.display().to_string(), home.display().to_string()) {
        // No process that can be looked at from there has them; in a container or as another user that is not this machine's.
        assert_eq!(rig.output(text).trim(), "0");
    }
}

fn state(rig: &mut Rig) {
    if rig.panes {
        let (directory, _) = places(rig);
        assert_eq!(rig.output("mkdir -p state; cd state; kept=here; f() { echo of f; }"), "");
        assert_eq!(rig.output("pwd -P; echo $kept; f"), format!("{directory}/state\nhere\nof f\n"));
        assert_eq!(rig.output("cd .."), "");
        return;
    }
    let (directory, _) = places(rig);
    rig.output("cd /; x=1; export y=2; umask 077; set -e; alias ls=false");
    assert_eq!(rig.output("pwd -P; echo \"[$x$y]\"; false; echo on"), format!("{directory}\n[]\non\n"));
}

fn without_panes(rig: &mut Rig) {
    if rig.panes {
        return;
    }
    for (name, value) in [("wait", json!(false)), ("session", json!("build")), ("pane", json!("build"))] {
        let mut arguments = command("touch never-ran");
        arguments[name] = value;
        let said = rig.refused("run_shell", arguments);
        assert!(said.starts_with("unavailable: ") && said.contains("tmux"), "{name}: {said}");
    }
    for (tool, arguments) in [
        ("capture-pane", json!({})),
        ("send-keys", declared(json!({ "enter": true }))),
        ("tmux-create-pane", declared(json!({ "pane": "build" }))),
    ] {
        let said = rig.refused(tool, arguments);
        assert!(said.starts_with("unavailable: "), "{tool}: {said}");
    }
    assert_eq!(rig.output("ls never-ran 2>/dev/null; true"), "");
}

fn dispatched(rig: &mut Rig, text: &str) -> String {
    let said = rig.result("run_shell", waiting(text, false));
    let said = said.as_str().unwrap_or_else(|| panic!("{said}"));
    said.split('`').nth(1).unwrap_or_else(|| panic!("no pane in {said}")).to_owned()
}

fn keys(rig: &mut Rig) {
    if !rig.panes {
        return;
    }
    dispatched(rig, "read -r x; echo \"got $x\"");
    let text = "one \"two\" '$HOME' \\n 'ä🙂' ~ ;";
    rig.result("send-keys", declared(json!({ "literal_text": text, "keys": ["!"], "enter": true })));
    assert_eq!(rig.output("printf '%s' \"$x\""), format!("{text}!"));
    let screen = rig.screen();
    assert!(screen.contains("got one \"two\" '$HOME'"), "{screen}");
}

fn panes_of_ones_own(rig: &mut Rig) {
    if !rig.panes {
        return;
    }
    assert_eq!(rig.output("kept=shared"), "");
    let made = rig.result("tmux-create-pane", declared(json!({ "pane": "Dev Server" })));
    assert_eq!((&made["pane"], &made["created"]), (&json!("dev-server"), &json!(true)), "{made}");
    let mut arguments = command("echo \"[$kept]\"");
    arguments["pane"] = json!("dev-server");
    assert_eq!(rig.result("run_shell", arguments.clone())["stdout"], "[]\n");
    let ended = rig.result("tmux-kill-pane", declared(json!({ "pane": "dev-server" })));
    assert_eq!(ended["id"], made["id"]);
    let said = rig.refused("run_shell", arguments);
    assert!(said.starts_with("execution_failed: "), "{said}");
    assert_eq!(rig.output("echo $kept"), "shared\n");
    let said = rig.refused("tmux-kill-pane", declared(json!({ "pane": "shared" })));
    assert!(said.starts_with("denied: "), "{said}");
}

fn dispatch(rig: &mut Rig) {
    if !rig.panes {
        return;
    }
    let pane = dispatched(rig, "sleep 0.3; echo dispatched $((6 * 7))");
    assert_eq!(rig.output("echo next"), "next\n");
    let screen = rig.result("capture-pane", json!({ "target": pane }));
    assert!(screen.as_str().is_some_and(|text| text.contains("dispatched 42")), "{screen}");
}

fn busy(rig: &mut Rig) {
    if !rig.panes {
        return;
    }
    let answer = rig.within("cat", "3s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let answer = rig.within("echo never", "400ms");
    assert!(said(&answer).starts_with("busy: ") && said(&answer).contains("it runs `cat`"), "{answer}");
    rig.type_keys(&["C-d"]);
    assert_eq!(rig.output("echo after"), "after\n");
    assert!(!rig.screen().contains("echo never"));
}

/// The directory of its socket is for nobody else, and this machine's own server is not used for other places.
fn private_server(rig: &mut Rig) {
    // Panes of this machine that lead elsewhere have their server here.
    if !rig.panes || rig.output("echo \"${TMUX:-none}\"") == "none\n" {
        return;
    }
    assert_eq!(rig.output("stat -c %a \"$(dirname \"${TMUX%%,*}\")\""), "700\n");
    let (directory, _) = places(rig);
    let own = rig.program.tmux(&["list-sessions", "-F", "#{session_name}"]);
    let is_here = directory == rig.program.path("work").display().to_string();
    assert_eq!(own, if is_here { format!("{}\n", rig.program.session()) } else { String::new() });
}
