//! Whatever becomes an argument of tmux arrives as it is: nothing in it ends a command, is expanded, or names a key.

use crate::crib::Crib;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use toolcrib_sdk::shell::quoted;
use toolcrib_tests::shell::{command, declared, waiting};
use toolcrib_tests::{Client, PATIENCE, Program, Running, eventually, is_long};

/// What ends or begins an argument in a way that tmux looks at.
const ODD: [&str; 24] = [
    ";",
    ";;",
    "\\;",
    "\\\\;",
    "a;",
    "a\\;",
    "a \\;",
    "a ;",
    "; kill-server",
    ";a",
    "-",
    "--",
    "-l",
    "-t %1",
    "'",
    "\"",
    "{",
    "}",
    "~",
    "#",
    "#{",
    "%",
    "$",
    "\\",
];
/// Typed behind all others, so that their arrival is known.
const LAST: &str = "that was all";
/// What a pane runs to keep what is typed into it; Enter is a carriage return then.
const RECORDER: &str = "stty raw -echo; touch begun; cat >typed";

/// Text from what tmux and shells give a meaning to, and from everything else but control characters.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            ";", "\\;", "\\", "\\073", "\\n", "'", "\"", "`", "$", "$HOME", "${", "#{pane_id}", "#(touch owned)", "#", "##", "#{E:@x}", "~",
            "{", "}", "%", "%1", "%end 1 1 1", "%output %0 x", "-", "--", "-X", " ", "\t", "=", "!", "@", "|", "Enter", "C-c", "0x0d",
            "kill-server", "ß", "漢", "🙂", "\u{301}", "\u{200d}", "\u{fe0f}", "\u{feff}", "\u{202e}", "\u{e000}", "\u{10ffff}",
        ])
        .prop_map(str::to_owned),
        2 => any::<char>().prop_filter("a control character is a key", |c| !c.is_control()).prop_map(String::from),
        1 => "[ -~]{0,12}",
    ];
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

/// The odd ones, then as many by chance, the same ones each time.
fn texts(count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let mut texts: Vec<String> = ODD.map(str::to_owned).into();
    texts.extend((0..count).map(|_| text().new_tree(&mut runner).expect("text can be made").current()));
    texts
}

/// A pane that keeps what is typed into it.
fn recording() -> Crib {
    let mut crib = Crib::with(&["tools.shell_denylist=[]"]);
    let arguments = waiting(RECORDER, false);
    crib.result("run_shell", arguments);
    eventually("the recording began", || crib.program.path("work/begun").exists());
    crib
}

fn type_line(crib: &mut Crib, text: &str) {
    crib.result("send-keys", declared(json!({ "literal_text": text, "enter": true })));
}

/// These lines were typed and then the last one, byte for byte, and nothing in them was run.
fn assert_typed(program: &Program, texts: &[String]) {
    let (file, end) = (program.path("work/typed"), format!("{LAST}\r").into_bytes());
    eventually("all that was typed has arrived", || std::fs::read(&file).is_ok_and(|typed| typed.ends_with(&end)));
    let typed = std::fs::read(&file).expect("a file");
    let lines: Vec<&[u8]> = typed.split(|byte| *byte == b'\r').collect();
    for (line, text) in lines.iter().zip(texts) {
        assert!(*line == text.as_bytes(), "{text:?} became {:?}", String::from_utf8_lossy(line));
    }
    assert_eq!(lines.len(), texts.len() + 2, "there are lines that nobody typed");
    assert!(!program.path("work/owned").exists(), "something was run");
}

#[test]
fn any_text_is_typed_byte_for_byte() {
    let texts = texts(if is_long() { 100_000 } else { 300 });
    let mut crib = recording();
    texts.iter().for_each(|text| type_line(&mut crib, text));
    type_line(&mut crib, LAST);
    assert_typed(&crib.program, &texts);
}

#[test]
fn the_longest_text_is_typed_whole_and_a_longer_one_not_at_all() {
    let mut crib = recording();
    let texts = [";".repeat(64 << 10), "🙂".repeat(16 << 10)];
    texts.iter().for_each(|text| type_line(&mut crib, text));
    let longer = declared(json!({ "literal_text": "x".repeat((64 << 10) + 1), "enter": true }));
    let said = crib.failure("send-keys", longer);
    assert!(said.starts_with("invalid_arguments: at most 65536 bytes"), "{said}");
    type_line(&mut crib, LAST);
    assert_typed(&crib.program, &texts);
}

/// A server of the user's own, ended when it is dropped.
struct Theirs<'p>(&'p Path);

impl Theirs<'_> {
    #[expect(clippy::disallowed_methods, reason = "a test stands in for the user")]
    fn tmux(&self, arguments: &[&str]) -> bool {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.0.join("theirs")).args(arguments).current_dir(self.0.join("work"));
        tmux.output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for Theirs<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// There each command of tmux is a process, and its arguments are read in another way.
#[test]
fn any_text_is_typed_byte_for_byte_into_the_pane_of_the_program() {
    let texts = texts(if is_long() { 5_000 } else { 100 });
    let program = Program::with_panes().unconfined();
    let theirs = Theirs(program.root());
    let begun = theirs.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "mine", "-x", "80", "-y", "24", RECORDER]);
    assert!(begun, "tmux is installed");
    eventually("the recording began", || program.path("work/begun").exists());
    let mut host = program.command(&["--yes", "--own-pane", "--set", "tools.shell_denylist=[]", "run"]);
    host.env("TMUX", format!("{},1,0", program.path("theirs").display())).env("TMUX_PANE", "%0");
    let mut host = Client::of(Running::start(&mut host));
    for text in texts.iter().map(String::as_str).chain([LAST]) {
        let answer = host.call("send-keys", declared(json!({ "literal_text": text, "enter": true })));
        assert!(answer["result"].is_object(), "{text:?}: {answer}");
    }
    assert_typed(&program, &texts);
    assert!(host.end(PATIENCE).is_some_and(|status| status.success()), "it ends badly");
}

#[test]
fn any_text_within_a_script_reaches_its_shell() {
    let mut crib = Crib::with(&["tools.shell_denylist=[]"]);
    let all = texts(if is_long() { 100_000 } else { 300 });
    for texts in all.chunks(300) {
        let lines = texts.join("\n");
        assert_eq!(
            crib.run(&format!("cat >texts <<'END OF TEXTS'\n{lines}\nEND OF TEXTS")),
            (0, String::new()),
            "{texts:?}"
        );
        let found = std::fs::read_to_string(crib.program.path("work/texts")).expect("a file");
        assert!(found.lines().eq(texts.iter().map(String::as_str)), "{found:?} was {texts:?}");
    }
    assert!(!crib.program.path("work/owned").exists(), "something was run");
}

#[test]
fn a_format_in_a_command_a_title_a_directory_or_a_name_is_not_expanded() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("# #(touch owned) #{E:pane_title}\nprintf '\\033]2;#(touch owned)\\007'").0, 0);
    assert_eq!(crib.run("mkdir '#(touch owned)'; cd '#(touch owned)'").0, 0);
    assert_eq!(crib.run("echo there; cd ..").1, "there\n");
    let made = crib.result("tmux-create-pane", declared(json!({ "pane": "#(touch owned)" })));
    assert_eq!(made["pane"], "touch-owned");
    // One that is expanded is run: for as long as its client lives.
    let run = crib.program.path("run");
    let job = format!("#(touch {})", run.display());
    eventually("the job of the test ran", || {
        let _ = crib.program.tmux(&["display-message", "-p", &job, ";", "run-shell", "sleep 0.05"]);
        run.exists()
    });
    for place in ["", "work", "work/#(touch owned)", "home", "state/toolcrib/tmux"] {
        assert!(!crib.program.path(place).join("owned").exists(), "it was run in `{place}`");
    }
}

#[test]
fn a_directory_of_any_name_holds_nothing_up() {
    let mut crib = Crib::new();
    for name in ["a b", "#{pane_id}", "-n", "x\ny", "ü 漢", "a|b", "%0|1|1|bash|bash"] {
        let name = quoted(name);
        let answer = crib.within(&format!("mkdir -- {name}; cd -- {name}"), "2s");
        assert_eq!(answer["result"]["exit_code"], 0, "{name}: {answer}");
        let answer = crib.within("cd ..; echo left", "2s");
        assert_eq!(answer["result"]["stdout"], "left\n", "{name}: {answer}");
    }
}

#[test]
fn a_directory_is_named_as_it_is() {
    let program = Program::with_panes();
    program.write("ü 漢/file", "");
    let arguments = command("echo ä").to_string();
    let mut call = program.command(&["--yes", "call", "run_shell", &arguments]);
    let output = call.current_dir(program.path("ü 漢")).stdin(Stdio::null()).output().expect("the program starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("ä\\n") && !stdout.contains("begin elsewhere"), "{stdout}");
}
