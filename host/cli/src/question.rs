//! The question as a terminal shows it: in rows that the host breaks, and on pages where it does not fit.
//!
//! What comes from outside never begins a row: each row of it follows a label and a bar. Its words are `policy/approval/words.rs`.

use anstream::adapter::strip_str;
use anstyle::Style;
use base::text::columns;
use toolcrib::policy::approval::ApprovalRequest;

/// What is between label and text.
const BAR: &str = " │ ";
/// The fewest columns in which the text can be read.
const LEAST_COLUMNS: usize = 6;
/// Makes the terminal cut a row that is wider than was counted instead of breaking it, and then break rows again.
const CUT: &str = "\x1b[?7l";
const BREAK: &str = "\x1b[?7h";

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// A position in the foreign text: a line, and a byte of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(super) struct Place {
    line: usize,
    byte: usize,
}

/// A question, ready to be laid out for any size.
pub(super) struct Question<'r> {
    request: &'r ApprovalRequest,
    lines: Vec<Line<'r>>,
    label_width: usize,
    /// Its answer can be kept as a rule.
    can_keep: bool,
}

struct Line<'r> {
    label: String,
    text: &'r str,
}

/// What fits on the screen at once.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    /// All but the line that waits for an answer.
    pub(super) text: String,
    pub(super) prompt: String,
    /// Where the next page begins; none on the last one, where a yes counts.
    pub(super) next: Option<Place>,
}

impl<'r> Question<'r> {
    pub(super) fn new(request: &'r ApprovalRequest) -> Self {
        let lines: Vec<Line<'_>> = request
            .foreign()
            .flat_map(|part| {
                part.text.lines().enumerate().map(move |(number, text)| {
                    // A row without a label goes on with the line above.
                    let label = if number == 0 { part.label.to_owned() } else { (number + 1).to_string() };
                    Line { label, text }
                })
            })
            .collect();
        let label_width = lines.iter().map(|line| line.label.len()).max().unwrap_or_default();
        Self { request, lines, label_width, can_keep: false }
    }

    /// The same where its answer can be kept as a rule.
    pub(super) fn keeping(self, can_keep: bool) -> Self {
        Self { can_keep: can_keep && !self.request.rules.is_empty(), ..self }
    }

    /// Lays out what follows that position. None when the terminal is too small for any of it together with what is asked.
    pub(super) fn page(&self, from: Place, size: Size) -> Option<Page> {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let strong = |text: &str| format!("{bold}{text}{bold:#}");
        let gutter = 2 + self.label_width + columns::width(BAR);
        let columns = size.columns.checked_sub(gutter).filter(|columns| *columns >= LEAST_COLUMNS)?;
        let rows = self.rows(from, columns, size.rows);
        let head = match from == Place::default() {
            true => format!("\r\n{}\r\n", size.folded(&self.request.headline(strong))),
            false => String::new(),
        };
        // With room for the answer.
        let room = |foot: &str| size.rows.checked_sub(size.height(&head) + size.height(&format!("{foot}y")));
        let summary = format!("{}\r\n", size.folded(&self.request.summary(strong)));
        let out = self.request.out().map(|covers| format!("; [u]nconfined: {covers}")).unwrap_or_default();
        let all = self.request.all();
        let kept = if self.can_keep { ", [a]lways or never, by a rule" } else { "" };
        let asks = format!("{bold}Allow?{bold:#} [y]es, [N]o{kept}, [s]ession: {all} until Toolcrib ends{out} > ");
        let is_last = room(&format!("{summary}{asks}")).is_some_and(|room| rows.len() <= room);
        let (shown, foot, prompt) = if is_last {
            (rows.len(), summary, asks)
        } else {
            let reached = |shown: usize| shown.checked_sub(1).map_or(from.line, |last| rows[last].0.line + 1);
            let more = |shown| {
                let (reached, all) = (reached(shown), self.lines.len());
                format!(
                    "{bold}line {reached} of {all}{bold:#}, a yes counts on the last page: [Enter] shows more, [n]o > "
                )
            };
            // The last row is kept for the page that asks.
            let shown = room(&more(rows.len()))?.min(rows.len() - 1);
            (shown, String::new(), more(shown))
        };
        if shown == 0 && head.is_empty() {
            return None;
        }
        let body: String = rows[..shown].iter().fold(String::new(), |body, (place, text)| {
            let label = if place.byte == 0 { &self.lines[place.line].label } else { "" };
            body + &format!("  {dim}{label:>width$}{BAR}{dim:#}{text}\r\n", width = self.label_width)
        });
        let next = rows.get(shown).map(|(place, _)| *place);
        Some(Page { text: format!("{head}{CUT}{body}{BREAK}{foot}"), prompt, next })
    }

    /// The rows that follow a position; a few more than `most`, if there are that many.
    fn rows(&self, from: Place, columns: usize, most: usize) -> Vec<(Place, String)> {
        let mut rows = Vec::new();
        for (line, Line { text, .. }) in self.lines.iter().enumerate().skip(from.line) {
            let broken = columns::rows(text, columns);
            // If the width has changed, this is the row that the position is in now.
            let seen = if line == from.line {
                broken.partition_point(|row| row.start <= from.byte).saturating_sub(1)
            } else {
                0
            };
            rows.extend(broken.into_iter().skip(seen).map(|row| (Place { line, byte: row.start }, row.text)));
            if rows.len() > most {
                break;
            }
        }
        rows
    }
}

impl Size {
    /// Breaks a text of the host's own between words.
    fn folded(self, text: &str) -> String {
        let (mut folded, mut filled) = (String::new(), 0);
        for word in text.split(' ') {
            let width = columns::width(&strip_str(word).to_string());
            let fits = filled + 1 + width <= self.columns;
            let between = if filled == 0 {
                ""
            } else if fits {
                " "
            } else {
                "\r\n"
            };
            filled = if fits { filled + between.len() } else { 0 } + width;
            folded += between;
            folded += word;
        }
        folded
    }

    /// Rows that a text of the host's own takes.
    fn height(self, text: &str) -> usize {
        let plain = strip_str(text).to_string();
        plain.lines().map(|line| columns::rows(line, self.columns).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::config::RuleSection;
    use toolcrib::policy::approval::{ActionKind, Landing};

    fn request(action: &str) -> ApprovalRequest {
        ApprovalRequest {
            kind: ActionKind::Command,
            tool: "run_shell".into(),
            plugin: "run_shell (built in)".into(),
            landing: Landing { backend: "local".into(), directory: Some("/work".into()), ..Landing::default() },
            confinement: None,
            secrets: None,
            action: action.into(),
            details: None,
            declaration: None,
            refused: None,
            new: None,
            rules: Vec::new(),
        }
    }

    /// All pages in turn, without styles.
    fn pages(request: &ApprovalRequest, size: Size) -> Option<Vec<String>> {
        let question = Question::new(request);
        let (mut pages, mut from) = (Vec::new(), Some(Place::default()));
        while let Some(place) = from {
            let page = question.page(place, size)?;
            let text = page.text.replace(CUT, "").replace(BREAK, "").replace("\r\n", "\n");
            pages.push(strip_str(&format!("{text}{}", page.prompt)).to_string());
            from = page.next;
        }
        Some(pages)
    }

    #[test]
    fn a_short_question_is_one_page() {
        let pages = pages(&request("touch ran\n\tls"), Size { rows: 24, columns: 90 }).expect("room");
        let question = "\nrun_shell (built in) wants to run on local\n   in │ /work\n  run │ touch ran\n    2 │         ls\n\
                        run_shell (built in) would run on local: 2 lines, 13 bytes\n\
                        Allow? [y]es, [N]o, [s]ession: all commands of this plugin until Toolcrib ends > ";
        assert_eq!(pages, [question]);
    }

    #[test]
    fn an_answer_that_can_be_kept_is_offered() {
        let size = Size { rows: 24, columns: 200 };
        let rule = RuleSection { command: Some("ls".into()), ..RuleSection::default() };
        let asked = ApprovalRequest { rules: vec![rule], ..request("ls") };
        let prompt = |question: Question<'_>| question.page(Place::default(), size).expect("room").prompt;
        assert!(prompt(Question::new(&asked).keeping(true)).contains("[a]lways or never"));
        assert!(!prompt(Question::new(&asked)).contains("[a]lways"));
        assert!(!prompt(Question::new(&request("ls")).keeping(true)).contains("[a]lways"));
    }

    #[test]
    fn every_page_fits_and_each_row_of_the_action_is_on_one_of_them() {
        let action: String = (0..200).map(|number| format!("echo {number} {}\n", "x".repeat(number))).collect();
        let action = action + &format!("{}rm -rf /tmp/all\n", " ".repeat(3000));
        let request = request(&action);
        for (rows, columns) in [(24, 80), (10, 40), (16, 20), (50, 200), (9, 60)] {
            let size = Size { rows, columns };
            let pages = pages(&request, size).unwrap_or_else(|| panic!("{size:?} is too small"));
            for page in &pages {
                assert!(size.height(page) <= rows, "{size:?}:\n{page}");
            }
            let (last, others) = pages.split_last().expect("a page");
            assert!(
                last.contains("Allow?") && last.replace('\n', " ").contains("would run on local: 201 lines"),
                "{last}"
            );
            assert!(others.iter().all(|page| !page.contains("Allow?") && page.contains("[Enter] shows more")));
            let says_when = |page: &String| page.replace('\n', " ").contains("a yes counts on the last page");
            assert!(others.iter().all(says_when), "{others:?}");
            let text: String = pages
                .iter()
                .flat_map(|page| page.lines())
                .filter_map(|row| row.split_once(BAR))
                .map(|row| row.1)
                .collect();
            assert_eq!(text, format!("/work{}", action.replace('\n', "")), "{size:?}");
        }
    }

    #[test]
    fn a_terminal_of_another_size_goes_on_where_the_last_page_ended() {
        let action: String = (0..100).map(|number| format!("{number:03}")).collect();
        let request = request(&action);
        let question = Question::new(&request);
        let page = question.page(Place::default(), Size { rows: 10, columns: 40 }).expect("room");
        let next = page.next.expect("another page");
        for columns in [30, 40, 50, 77] {
            let rows = question.rows(next, columns, 100);
            let text: String = rows.iter().map(|(_, text)| text.as_str()).collect();
            assert!(action.ends_with(&text) && text.len() >= action.len() - next.byte, "{columns}: {text}");
            assert!(text.len() < action.len() - next.byte + columns, "{columns}: {text}");
        }
    }

    #[test]
    fn a_terminal_without_room_is_too_small() {
        for (rows, columns) in [(24, 8), (2, 80), (0, 0), (4, 20)] {
            assert_eq!(pages(&request("true"), Size { rows, columns }), None, "{rows} {columns}");
        }
    }
}
