//! Long files: where the text is cut, and how it goes on.

use super::{holding, read};
use serde_json::{Value, json};
use toolcrib::envelope::Output;
use toolcrib_tests::TestHost;

const HEAD: usize = 8_000;
const MARK: &str = "...[truncated]";

async fn read_at(host: &TestHost, path: &str, offset: u64) -> Output {
    let outcome = host.call("read_file", json!({ "path": path, "offset": offset })).await.outcome;
    outcome.unwrap_or_else(|failure| panic!("{path} at {offset}: {}", failure.message))
}

fn text(output: &Output) -> &str {
    output.result.as_str().expect("text")
}

/// The offset that a notice names to go on with.
fn next(output: &Output) -> Option<u64> {
    let rest = output.notices.iter().find_map(|notice| notice.split_once("set `offset` to "))?.1;
    rest.split(' ').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_thousand_characters_are_not_cut() {
    for content in ["x".repeat(HEAD), "🙂".repeat(HEAD), "ä\n".repeat(HEAD / 2)] {
        let output = read(&holding("a.txt", &content), "a.txt").await;
        assert_eq!((text(&output), output.notices.len()), (content.as_str(), 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_character_more_is_cut_and_the_notice_says_where_to_go_on() {
    for character in ["x", "ä", "世", "🙂"] {
        let host = holding("a.txt", character.repeat(HEAD + 1));
        let output = read(&host, "a.txt").await;
        assert_eq!(text(&output), format!("{}{MARK}", character.repeat(HEAD)));
        let (bytes, at) = (character.len() * (HEAD + 1), character.len() * HEAD);
        assert_eq!(output.notices, [format!("`a.txt` has {bytes} bytes; set `offset` to {at} to read on")]);
        let rest = read_at(&host, "a.txt", at as u64).await;
        assert_eq!((text(&rest), rest.notices.len()), (character, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_put_together_are_the_file() {
    let lines = (0..5_000).map(|number| format!("{number}: naïve 世界 🙂 e\u{301}\t{}\n", "x".repeat(number % 40)));
    let content: String = lines.collect();
    let host = holding("long.txt", &content);
    let (mut whole, mut offset, mut pages) = (String::new(), 0, 0);
    loop {
        let output = read_at(&host, "long.txt", offset).await;
        pages += 1;
        match next(&output) {
            Some(next) => {
                whole += text(&output).strip_suffix(MARK).expect("a page that is cut is marked");
                assert!(next > offset, "page {pages} does not go on");
                offset = next;
            }
            None => break whole += text(&output),
        }
    }
    assert_eq!(whole.len(), content.len());
    assert!(whole == content, "the pages do not give the file back");
    assert_eq!(pages, content.chars().count().div_ceil(HEAD));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_file_with_carriage_returns_lose_no_line() {
    let content: String = (0..3_000).map(|number| format!("line {number}\r\n")).collect();
    let host = holding("dos.txt", &content);
    let (mut whole, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let output = read_at(&host, "dos.txt", at).await;
        whole += text(&output).trim_end_matches(MARK);
        offset = next(&output);
    }
    assert!(whole.replace('␍', "") == content.replace('\r', ""), "a line is lost or doubled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_within_a_character_moves_on_to_the_next() {
    let host = holding("a.txt", "🙂🙂b");
    for (offset, expected) in [(0, "🙂🙂b"), (1, "🙂b"), (3, "🙂b"), (4, "🙂b"), (7, "b"), (8, "b")] {
        assert_eq!(text(&read_at(&host, "a.txt", offset).await), expected, "{offset}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_the_end_there_is_nothing_and_the_notice_says_so() {
    let host = holding("a.txt", "abc");
    for offset in [3, 4, 1 << 40] {
        let output = read_at(&host, "a.txt", offset).await;
        assert_eq!(text(&output), "");
        assert_eq!(output.notices, [format!("`offset` {offset} is at or past the end: `a.txt` has 3 bytes")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_beyond_what_any_file_can_hold_is_behind_the_end() {
    let host = holding("a.txt", "abc");
    for offset in [i64::MAX.unsigned_abs(), u64::MAX] {
        let output = read_at(&host, "a.txt", offset).await;
        assert_eq!(output.notices, [format!("`offset` {offset} is at or past the end: `a.txt` has 3 bytes")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_that_the_schema_takes_the_tool_takes() {
    let output = holding("a.txt", "abc").result("read_file", json!({ "path": "a.txt", "offset": 1.0 })).await;
    assert_eq!(output, "bc");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_huge_file_only_a_page_is_read() {
    let host = holding("huge", "begin");
    let size = 8_u64 << 30;
    let file = std::fs::File::options().write(true).open(host.work().join("huge")).expect("a file");
    file.set_len(size).expect("a sparse file");
    let output = read(&host, "huge").await;
    assert!(text(&output).starts_with("begin\\u{0}\\u{0}"), "{}", &text(&output)[..40]);
    assert!(output.notices[0].starts_with(&format!("`huge` has {size} bytes")), "{:?}", output.notices);
    let end = read_at(&host, "huge", size - 3).await;
    assert_eq!(end.result, Value::from("\\u{0}\\u{0}\\u{0}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_far_behind_the_page_does_not_close_the_page() {
    let mut content = b"text\n".repeat(20_000);
    content.push(0xff);
    let host = holding("a.log", content);
    assert!(text(&read(&host, "a.log").await).starts_with("text\n"));
    let failure = host.failure("read_file", json!({ "path": "a.log", "offset": 99_990 })).await;
    assert_eq!(failure.message, "`a.log` is not text: byte 100000 of 100001 is not valid UTF-8");
}
