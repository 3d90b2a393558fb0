//! Output of any length and kind: what is handed back, what is kept, and how much memory it takes.

use super::text;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{PATIENCE, Program, TestHost};

/// Characters that are handed back whole, and those of the beginning and of the end of more.
const WHOLE: usize = 4_000;
const ENDS: (usize, usize) = (1_500, 2_500);
const REMOVED: &str = "control characters were removed from the result or made visible";

/// The file that a notice about a stream names.
fn kept(result: &Value, stream: &str) -> PathBuf {
    let notices = result["notices"].as_array().expect("notices").iter().filter_map(Value::as_str);
    let notice = notices.into_iter().find(|notice| notice.starts_with(stream)).unwrap_or_else(|| panic!("{result}"));
    notice.split('`').nth(1).unwrap_or_else(|| panic!("no file in {notice}")).into()
}

/// What is handed back of a text that is longer.
fn both_ends(text: &str, kept: &Path) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (head, rest) = chars.split_at(ENDS.0);
    let (middle, tail) = rest.split_at(rest.len() - ENDS.1);
    let [head, middle, tail] = [head, middle, tail].map(|part| part.iter().collect::<String>());
    format!("{head}\n[{} bytes left out, kept in {}]\n{tail}", middle.len(), kept.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn four_thousand_characters_are_not_cut_and_one_more_is() {
    let host = TestHost::new();
    for character in ["x", "ä", "🙂"] {
        std::fs::write(host.work().join("fits"), character.repeat(WHOLE)).expect("a file");
        std::fs::write(host.work().join("over"), character.repeat(WHOLE + 1)).expect("a file");
        let result = host.shell("cat fits").await;
        assert_eq!((text(&result, "stdout"), &result["notices"]), (character.repeat(WHOLE).as_str(), &json!([])));
        let result = host.shell("cat over").await;
        let (file, over) = (kept(&result, "stdout"), character.repeat(WHOLE + 1));
        assert_eq!(text(&result, "stdout"), both_ends(&over, &file));
        assert_eq!(std::fs::read_to_string(file).expect("a kept file"), over);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_thousand_lines_are_cut_and_kept_to_the_byte() {
    let host = TestHost::new();
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let result = host.shell("seq 200000").await;
    let file = kept(&result, "stdout");
    assert_eq!(text(&result, "stdout"), both_ends(&expected, &file));
    let notice = format!(
        "stdout has {} bytes, of which the middle is left out; more of it is kept as `{}`",
        expected.len(),
        file.display()
    );
    assert_eq!(result["notices"], json!([notice]));
    assert!(std::fs::read_to_string(&file).expect("a kept file") == expected, "the kept file is not the output");
}

/// Both ends have the last state of a line that shows progress; what is kept is as it was printed.
#[tokio::test(flavor = "multi_thread")]
async fn progress_shows_its_last_state() {
    let host = TestHost::new();
    let progress =
        r"for i in $(seq 1 3000); do printf 'downloading %d\r' $i; done; printf '\nwindows\r\n'; printf 'a\rb' >&2";
    let result = host.shell(progress).await;
    assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("downloading 3000\nwindows\n", "b"));
    assert_eq!(result["notices"], json!([]));
    let result = host.shell(&format!("{progress}; seq 2000; {progress}")).await;
    let (file, stdout) = (kept(&result, "stdout"), text(&result, "stdout"));
    assert!(stdout.starts_with("downloading 3000\nwindows\n1\n2\n"), "{stdout}");
    assert!(stdout.ends_with("\n2000\ndownloading 3000\nwindows\n"), "{stdout}");
    let printed = std::fs::read_to_string(&file).expect("a kept file");
    assert!(printed.starts_with("downloading 1\rdownloading 2\r") && printed.ends_with("\r\nwindows\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_stream_is_cut_and_kept_by_itself() {
    let host = TestHost::new();
    let result = host.shell("seq 3000; seq 4000 >&2; echo done").await;
    let lines = |last: usize| (1..=last).map(|number| format!("{number}\n")).collect::<String>();
    assert_eq!(text(&result, "stdout"), both_ends(&(lines(3000) + "done\n"), &kept(&result, "stdout")));
    assert_eq!(text(&result, "stderr"), both_ends(&lines(4000), &kept(&result, "stderr")));
    let read = |stream| std::fs::read_to_string(kept(&result, stream)).expect("a kept file");
    assert!(read("stdout") == lines(3000) + "done\n" && read("stderr") == lines(4000));
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_output_can_be_read_on_and_by_nobody_else() {
    let host = TestHost::new();
    let file = kept(&host.shell("seq 200000").await, "stdout");
    let path = file.display().to_string();
    let end = host.result("read_file", json!({ "path": path, "offset": 1_288_881 })).await;
    assert_eq!(end, "199999\n200000\n");
    let mode = |path: &Path| std::fs::metadata(path).expect("a kept file").mode() & 0o077;
    assert_eq!((mode(&file), mode(file.parent().expect("a directory"))), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_output_is_made_visible_and_kept_to_the_byte() {
    let host = TestHost::new();
    let envelope = host.call("run_shell", harmless(r"printf '\377\376\000bin\007\n'")).await.to_json();
    assert_eq!(text(&envelope["result"], "stdout"), "\u{fffd}\u{fffd}␀bin␇\n");
    assert_eq!(envelope["notices"], json!([REMOVED]));
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(host.work().join("noise"), &bytes).expect("a file");
    let result = host.shell("cat noise").await;
    assert!(text(&result, "stdout").contains(" bytes left out, kept in "), "{result}");
    assert!(std::fs::read(kept(&result, "stdout")).expect("a kept file") == bytes, "the kept file is not the output");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_sequences_are_removed_and_said() {
    let host = TestHost::new();
    let command = r"printf '\033[31mred\033[0m \033]0;title\007\033]8;;http://a\033\\link\033]8;;\033\\ \302\233Kx\n'; printf '\033[2Jgone' >&2";
    let envelope = host.call("run_shell", harmless(command)).await.to_json();
    assert_eq!((text(&envelope["result"], "stdout"), text(&envelope["result"], "stderr")), ("red link x\n", "gone"));
    assert_eq!(envelope["notices"], json!([REMOVED]));
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_output_is_not_remarked() {
    let envelope = TestHost::new().call("run_shell", harmless("printf 'plain\\ttext\\n'")).await.to_json();
    assert_eq!(envelope.get("notices"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_closes_its_output_and_goes_on_is_waited_for() {
    let host = TestHost::new();
    let result = host.shell("echo before; exec >&-; seq 20000 > numbers; cp numbers done; echo err >&2; exit 3").await;
    assert_eq!(result, json!({ "exit_code": 3, "stdout": "before\n", "stderr": "err\n", "notices": [] }));
    let result = host.shell("exec >&- 2>&-; seq 200000 > numbers; cp numbers again; exit 4").await;
    assert_eq!(result["exit_code"], 4);
    assert!(host.work().join("done").exists() && host.work().join("again").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stood_in_the_pipe_at_the_end_is_not_lost() {
    let host = TestHost::new();
    std::fs::write(host.work().join("full"), "x".repeat(65_536)).expect("a file");
    for _ in 0..20 {
        let result = host.shell("cat full; printf end >&2").await;
        assert_eq!(std::fs::metadata(kept(&result, "stdout")).expect("a kept file").len(), 65_536);
        assert_eq!(text(&result, "stderr"), "end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_on_both_streams_are_not_lost() {
    let host = TestHost::new();
    for round in 0..300 {
        let result = host.shell("printf out; printf err >&2").await;
        assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("out", "err"), "round {round}");
    }
}

/// The most memory that the process has had resident, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_flood_takes_bounded_memory_and_keeps_its_beginning_and_its_end() {
    let program = Program::new();
    let mut host = program.client(&["--yes", "run"]);
    let mut call = |command: &str| (host.shell(command)["result"].clone(), peak(host.pid()));
    let (_, before) = call("seq 5000");
    let (result, after) = call("yes | head -c 50000000; echo the end");
    let (head, tail) = text(&result, "stdout").split_once("\n[49996008 bytes left out, kept in ").expect("both ends");
    assert!(head == "y\n".repeat(ENDS.0 / 2) && tail.ends_with("\ny\nthe end\n"), "{result}");
    assert!(after < before + (32 << 10), "the flood took {} KiB", after - before);
    let file = std::fs::read(kept(&result, "stdout")).expect("a kept file");
    assert!(file.starts_with(b"y\ny\n") && file.ends_with(b"y\nthe end\n"));
    assert!(file.len() < (16 << 20) + (128 << 10), "{} bytes were kept", file.len());
    assert!(String::from_utf8_lossy(&file).contains("bytes were not kept]"));
    assert!(host.end(PATIENCE).expect("an exit status").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_outgrew_its_file_is_not_said_to_be_kept_whole() {
    let host = TestHost::new().set("limits.kept_stream_mib=1");
    let result = host.shell("yes | head -c 3000000").await;
    assert!(std::fs::metadata(kept(&result, "stdout")).expect("a kept file").len() < 3_000_000);
    assert!(!result["notices"][0].as_str().is_some_and(|notice| notice.contains("all of it is kept")), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_keeps_nothing_says_so() {
    let host = TestHost::new();
    std::fs::create_dir_all(host.dirs().state).expect("a directory");
    std::fs::write(host.dirs().output(), "in the way").expect("a file");
    let result = host.shell("seq 5000").await;
    assert_eq!(
        result["notices"],
        json!(["stdout has 23893 bytes, of which the middle is left out; the rest was not kept"])
    );
    assert!(text(&result, "stdout").contains("\n[19893 bytes left out, not kept]\n"), "{result}");
}
