//! X-28: text that breaks out of the quotes which a plugin puts around it.
//! Outcome: every shell reads a quoted word as the very bytes that went in.
//! Switched off: the care for quotes within the text (`sdk/src/shell.rs`, `quoted`): the test failed.
#![expect(clippy::disallowed_methods, reason = "the shells themselves are asked")]

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::process::{Command, Stdio};
use toolcrib_sdk::shell::quoted;
use toolcrib_tests::{is_long, note_skip};

const SHELLS: [&[&str]; 4] = [&["sh"], &["bash"], &["dash"], &["busybox", "sh"]];
const WORDS_AT_ONCE: usize = 200;

/// Text from what shells give a meaning to, and from everything else but NUL.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "'", "''", "\\'", "'\\''", "\"", "\\", "`", "$", "$(", ")", "${", "}", "$'", "$\"", "!", "!!", "~", "*", "?", "[", "]",
            "{a,b}", ";", "&", "|", "<", ">", "\n", "\r", "\r\n", "\t", " ", "#", "=", "%", "-", "--", "^", "\u{1}", "\u{7f}",
            "\u{1b}[0m", "\u{feff}", "\u{202e}", "ß", "漢", "🙂", "\u{2019}", "touch owned", "$IFS", "\\\n", "EOF",
        ])
        .prop_map(str::to_owned),
        2 => any::<char>().prop_filter("no NUL", |c| *c != '\0').prop_map(String::from),
        1 => "[ -~]{0,12}",
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn words(count: usize) -> Vec<String> {
    let mut runner = TestRunner::default();
    (0..count).map(|_| text().new_tree(&mut runner).expect("text can be made").current()).collect()
}

fn is_there(shell: &[&str]) -> bool {
    let output = Command::new(shell[0]).args(&shell[1..]).args(["-c", "echo there"]).output();
    output.is_ok_and(|output| output.stdout == b"there\n")
}

#[test]
fn every_shell_reads_a_quoted_word_as_the_text_that_it_is() {
    let count = if is_long() { 100_000 } else { 1_000 };
    let words = words(count);
    for shell in SHELLS {
        if !is_there(shell) {
            note_skip(module_path!(), &format!("`{}` is not installed", shell.join(" ")));
            continue;
        }
        for locale in ["C", "C.UTF-8"] {
            for words in words.chunks(WORDS_AT_ONCE) {
                assert_round_trip(shell, locale, words);
            }
        }
    }
}

/// Has the shell print the words, each with a NUL behind it. On a fault the word alone is shown.
fn assert_round_trip(shell: &[&str], locale: &str, words: &[String]) {
    let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    let list = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["-c", &format!("printf '%s\\0' {list}")]).env("LC_ALL", locale);
    let output = command.current_dir(&directory).stdin(Stdio::null()).output().expect("the shell starts");
    if output.stdout != expected {
        assert!(
            words.len() > 1,
            "{shell:?} in {locale}: {:?} became {:?}",
            words[0],
            String::from_utf8_lossy(&output.stdout)
        );
        words.iter().for_each(|word| assert_round_trip(shell, locale, std::slice::from_ref(word)));
        panic!("{shell:?} in {locale}: words that pass alone fail together");
    }
    assert_eq!(directory.path().read_dir().expect("a directory").count(), 0, "something was run");
}
