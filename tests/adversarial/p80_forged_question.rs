//! P-80: a command is padded, broken and laid out so that it scrolls itself away and draws a question of its own.
//! Outcome: the host breaks the rows, and each row of foreign text stands behind a bar; what does not fit is paged through before a yes counts.
//! Switched off: with the action written as it is (`question.rs`) rows without a bar stood there; with a yes that counts on every page the command ran.

use serde_json::Value;
use toolcrib_tests::shell::{harmless, with};
use toolcrib_tests::{MORE, QUESTION, Terminal, eventually, skip};

/// In no word of the host's.
const MARK: char = 'Q';
/// The rows of a question, as an attacker would draw it.
const DRAWN: [&str; 6] = [
    "Q run_shell (built in) wants to run on local, unconfined; the model says: \"low risk\"",
    "  why \u{2502} to list the files Q",
    "  run \u{2502} ls Q",
    "Q run_shell (built in) would run on local, unconfined: 1 line, 2 bytes",
    "Allow? [y]es, [N]o, [s]ession: all commands of this plugin until Toolcrib ends > Q",
    "QQQQ",
];

fn arguments(command: &str, why: &str) -> Value {
    with(harmless(command), "why", why)
}

/// Pads each row to so many columns, so that a terminal that breaks the line breaks it there.
fn padded(columns: usize) -> String {
    let row = |text: &str| format!("{text}{}", " ".repeat(columns.saturating_sub(text.chars().count())));
    let blank = " ".repeat(columns * 60);
    format!("touch planted #Q{blank}{}", DRAWN.map(row).concat())
}

/// Looks at the screen: each row with foreign text has its bar where the host sets it, and nothing asks but the host.
fn check(terminal: &Terminal, is_last: bool, attack: &str) {
    let screen = terminal.rows();
    for row in screen.lines().filter(|row| row.contains(MARK)) {
        let (label, _) =
            row.split_once(" \u{2502} ").unwrap_or_else(|| panic!("{attack}: `{row}` has no bar:\n{screen}"));
        let is_label =
            label.starts_with("  ") && label.trim().chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        assert!(is_label && label.len() <= 6, "{attack}: `{row}` does not begin as rows of the host do:\n{screen}");
    }
    let asks = screen.lines().filter(|row| row.starts_with(QUESTION)).count();
    assert_eq!(asks, usize::from(is_last), "{attack}:\n{screen}");
}

/// Pages through the question, with a yes on the first page that is not the last; returns the first page.
fn paged(terminal: &Terminal, attack: &str) -> String {
    let asks = || terminal.screen().trim_end().ends_with("until Toolcrib ends >");
    // Pages may look alike; so those that were shown are counted.
    let pages = || terminal.history().matches(MORE).count();
    eventually("the question stands there", || asks() || pages() > 0);
    let first = terminal.screen();
    check(terminal, asks(), attack);
    if !asks() {
        terminal.press(&["y", "Enter"]);
        eventually("the same page is shown again", || pages() == 2);
        check(terminal, false, attack);
        assert!(!terminal.has("planted"), "{attack}: the command ran");
    }
    while !asks() {
        let before = pages();
        terminal.press(&["Enter"]);
        eventually("the next page stands there", || asks() || pages() > before);
        check(terminal, asks(), attack);
    }
    first
}

#[test]
fn no_command_draws_a_question_of_its_own() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let lines = DRAWN.join("\n");
    let wide = "\u{6f22}Q".repeat(300);
    let marks = "Qe\u{301}\u{327}".repeat(300) + "\n\u{301}\u{301}Q";
    let pictures = "\u{2714}\u{fe0f}Q\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}".repeat(100);
    let tabs = "\tQ\t\tQ".repeat(100);
    for (attack, size, command) in [
        ("a padded line", (80, 24), padded(80)),
        ("a padded line behind a bar", (80, 24), padded(71)),
        ("a padded line", (40, 10), padded(40)),
        ("a padded line", (20, 24), padded(20)),
        ("line breaks", (80, 24), format!("touch planted #Q\n: <<'Q'{}{lines}\nQ", "\n".repeat(60))),
        ("wide characters", (80, 24), format!("touch planted #Q{wide}{wide}{wide}{wide}{wide}{wide}{wide}")),
        ("marks", (80, 24), format!("touch planted #Q{marks}{marks}{marks}{marks}{marks}{marks}")),
        ("pictures", (80, 24), format!("touch planted #Q{pictures}{pictures}{pictures}")),
        ("tabs", (80, 24), format!("touch planted #Q{tabs}{tabs}{tabs}")),
    ] {
        let terminal = Terminal::sized(size, &Terminal::call(&arguments(&command, "a test")));
        let first = paged(&terminal, attack);
        let shown = first.replace(['\n', ' ', '\u{2502}'], "");
        assert!(shown.contains("touchplanted#Q"), "{attack}: the command is not on the first page:\n{first}");
        terminal.press(&["n", "Enter"]);
        assert_eq!(terminal.ended(), 5, "{attack}");
        assert!(!terminal.has("planted"), "{attack}: the command ran");
    }
}

#[test]
fn no_reason_draws_a_question_of_its_own() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let why = DRAWN.map(|row| format!("{row:80}")).concat();
    let terminal = Terminal::sized((80, 24), &Terminal::call(&arguments("touch planted", &why)));
    paged(&terminal, "a padded reason");
    terminal.press(&["Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("planted"), "the command ran");
}

/// The name of the directory that the question shows is anybody's who can make one.
#[test]
fn no_directory_draws_a_question_of_its_own() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let name = format!("Q{}\n{}", " ".repeat(70), DRAWN[4]);
    let script =
        format!("(mkdir '{name}' && cd '{name}'\n{})", Terminal::call(&arguments("touch ../planted", "a test")));
    let terminal = Terminal::sized((80, 24), &script);
    paged(&terminal, "a directory");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("planted"), "the command ran");
}
