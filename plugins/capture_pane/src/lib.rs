//! `capture-pane`: returns what a terminal pane shows, the last of it when that is much.

use serde::Deserialize;
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::panes::{self, Screen, View};
use toolcrib_sdk::{Guidance, JsonSchema, Pane, Result, Tool, notice, schemars};

const TAIL_CHARS: usize = 8_000;

struct CapturePane;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Instead of `session` and `pane`: `%3`, `SESSION` or `SESSION:PANE`.
    target: Option<String>,
    /// Session name.
    session: Option<String>,
    /// Pane name; default: that of the last command.
    pane: Option<String>,
    /// First line: `0` is the first visible one, `-100` is 100 lines earlier, `-` is the oldest.
    start: Option<String>,
    /// Last line; `-` is the last visible line.
    end: Option<String>,
    /// Join wrapped lines.
    #[serde(default = "yes")]
    join_wrapped_lines: bool,
    /// Keep trailing spaces.
    #[serde(default)]
    preserve_trailing_spaces: bool,
    /// Include colours.
    #[serde(default)]
    include_escape_sequences: bool,
    /// Show control characters as octal.
    #[serde(default)]
    escape_non_printable: bool,
    /// Show the screen behind a full-screen program.
    #[serde(default)]
    include_alternate_screen: bool,
    /// Time to wait first: seconds, or `500ms`, `2m`; at most 10 minutes.
    delay: Option<Span>,
    /// `delay` in milliseconds.
    delay_ms: Option<u64>,
}

fn yes() -> bool {
    true
}

impl Tool for CapturePane {
    const NAME: &str = "capture-pane";
    const TITLE: Option<&str> = Some("Look at a pane");
    const SUMMARY: &str = "Return what a terminal pane shows: at most the last 8,000 characters.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To see the output of a program that runs in a pane.",
        when_not_to_use: "To get the output of a command that ends.",
        disambiguation: "An unchanged screen is not returned again: set `delay`.",
        examples: &[r#"{"pane":"server","delay":"2s"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(input: Input) -> Result<String> {
        let delay = panes::delay(input.delay.as_ref(), input.delay_ms)?;
        let keeps_blanks = input.preserve_trailing_spaces;
        let (pane, view) = request(input);
        let Screen { text, notices, unchanged_ms } = panes::capture(&pane, &view, delay)?;
        notices.into_iter().for_each(notice);
        Ok(match unchanged_ms {
            Some(unchanged) => {
                notice(still(unchanged));
                String::new()
            }
            None if keeps_blanks => tail(text),
            None => tail(without_blank_end(text)),
        })
    }
}

/// Returns which pane to look at, and how. Blank text counts as absent.
fn request(input: Input) -> (Pane, View) {
    let given = |line: Option<String>| line.filter(|line| !line.trim().is_empty());
    let view = View {
        start: given(input.start),
        end: given(input.end),
        join_wrapped_lines: input.join_wrapped_lines,
        preserve_trailing_spaces: input.preserve_trailing_spaces,
        include_escape_sequences: input.include_escape_sequences,
        escape_non_printable: input.escape_non_printable,
        include_alternate_screen: input.include_alternate_screen,
    };
    (Pane::named(input.session, input.pane, input.target).unwrap_or_default(), view)
}

/// What is said instead of a screen that the caller has seen already.
fn still(unchanged_ms: u64) -> String {
    let seconds = unchanged_ms / 1000;
    format!(
        "the pane shows what you saw {seconds} s ago, so it is not repeated: do not look again at once, set `delay` to wait for \
         something to happen, or give `start` or `end` for another part"
    )
}

/// Returns the text without the blank lines at its end: most of a screen is empty until a program has filled it.
fn without_blank_end(mut text: String) -> String {
    let end = text.trim_end().len();
    let rest_of_line = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    text.truncate(if end == 0 { 0 } else { rest_of_line });
    text
}

/// Returns the last characters: the end of a screen is what is new.
fn tail(text: String) -> String {
    match text.char_indices().nth_back(TAIL_CHARS - 1) {
        Some((start @ 1.., _)) => {
            let (before, tail) = text.split_at(start);
            format!("[truncated {} chars from start]\n{tail}", before.chars().count())
        }
        _ => text,
    }
}

toolcrib_sdk::export!(CapturePane);

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::{Failure, Kind};

    fn input(arguments: &str) -> Result<Input> {
        serde_json::from_str(arguments).map_err(Failure::from)
    }

    #[test]
    fn without_arguments_it_is_the_visible_part_of_the_shared_pane() {
        let input = input("{}").unwrap();
        assert_eq!((&input.delay, input.delay_ms), (&None, None));
        let view = View { join_wrapped_lines: true, ..View::default() };
        assert_eq!(request(input), (Pane::default(), view));
    }

    #[test]
    fn blank_lines_at_the_end_are_cut() {
        for (text, cut) in [
            ("a\n\nb \n\n \n\n", "a\n\nb \n"),
            ("a\n", "a\n"),
            ("a  ", "a  "),
            ("é\n\n", "é\n"),
            ("\n \n", ""),
            ("", ""),
        ] {
            assert_eq!(without_blank_end(text.into()), cut);
        }
    }

    #[test]
    fn every_argument_has_its_effect() {
        let arguments = r#"{
            "target": "%3", "session": " build ", "pane": "server", "start": "-200", "end": "-", "join_wrapped_lines": false,
            "preserve_trailing_spaces": true, "include_escape_sequences": true, "escape_non_printable": true,
            "include_alternate_screen": true, "delay": "250ms"
        }"#;
        let input = input(arguments).unwrap();
        assert_eq!(input.delay, Some(Span::Text("250ms".into())));
        let pane = Pane { session: Some("build".into()), pane: Some("server".into()), target: Some("%3".into()) };
        let view = View {
            start: Some("-200".into()),
            end: Some("-".into()),
            join_wrapped_lines: false,
            preserve_trailing_spaces: true,
            include_escape_sequences: true,
            escape_non_printable: true,
            include_alternate_screen: true,
        };
        assert_eq!(request(input), (pane, view));
    }

    #[test]
    fn blank_lines_and_names_count_as_absent() {
        let (pane, view) = request(input(r#"{"start": "", "end": " ", "pane": "\t"}"#).unwrap());
        assert_eq!((pane, view.start, view.end), (Pane::default(), None, None));
    }

    #[test]
    fn a_delay_may_be_a_number_and_has_a_bound() {
        assert_eq!(input(r#"{"delay": 2}"#).unwrap().delay, Some(Span::Seconds(2)));
        for arguments in [r#"{"delay": "11m"}"#, r#"{"delay_ms": 660000}"#] {
            let failure = CapturePane::call(input(arguments).unwrap()).unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("10 minutes"), "{}", failure.message);
        }
        assert!(input(r#"{"delay": 0.5}"#).is_err());
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(input(r#"{"colour": true}"#).is_err());
    }

    #[test]
    fn a_long_screen_loses_its_start() {
        let long = "🙂".repeat(3) + &"é".repeat(TAIL_CHARS);
        assert_eq!(tail(long), format!("[truncated 3 chars from start]\n{}", "é".repeat(TAIL_CHARS)));
    }

    #[test]
    fn a_screen_that_fits_is_whole() {
        for text in [String::new(), "$ ".into(), "é".repeat(TAIL_CHARS)] {
            assert_eq!(tail(text.clone()), text);
        }
    }
}
