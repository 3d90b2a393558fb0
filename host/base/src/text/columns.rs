//! Text in rows of so many columns, so that whoever shows a text decides how each of its rows begins.
//!
//! Widths are upper bounds. Terminals differ in what a character takes, and one that takes more than was counted would break the row
//! again, where nobody decides.

use unicode_width::UnicodeWidthChar;

/// Columns from one tab stop to the next.
const TAB: usize = 8;
/// Asks for the character before it as a picture, which takes two columns.
const AS_PICTURE: char = '\u{fe0f}';
/// Makes one picture of the characters on either side.
const JOINER: char = '\u{200d}';
/// Carries a mark that has no character of its own; else the mark would sit on what comes before the row.
const CARRIER: char = '\u{25cc}';

/// One row of a line.
#[derive(Debug, Default, PartialEq)]
pub struct Row {
    /// Where in the line it begins, in bytes.
    pub start: usize,
    /// What it shows.
    pub text: String,
}

/// Breaks a sanitised line into rows of at most so many columns, of which there are at least two. An empty line is one row. Tabs become
/// spaces, for a tab at the end of a row would not move.
pub fn rows(line: &str, columns: usize) -> Vec<Row> {
    let (mut rows, mut row, mut filled) = (Vec::new(), Row::default(), 0);
    let mut chars = line.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let follower = chars.peek().map(|(_, follower)| *follower);
        let least = match c {
            '\t' => 1,
            _ if follower == Some(AS_PICTURE) => 2,
            c => cells(c),
        };
        if filled + least > columns && filled > 0 {
            // At the end of a row it would take the first character of the next one to what it joins.
            row.text.truncate(row.text.trim_end_matches(JOINER).len());
            rows.push(std::mem::replace(&mut row, Row { start, text: String::new() }));
            filled = 0;
        }
        if c == '\t' {
            let spaces = (TAB - filled % TAB).min(columns - filled);
            row.text.extend(std::iter::repeat_n(' ', spaces));
            filled += spaces;
            continue;
        }
        if least == 0 && row.text.is_empty() {
            row.text.push(CARRIER);
            filled += cells(CARRIER);
        }
        row.text.push(c);
        filled += least;
    }
    rows.push(row);
    rows
}

/// How many columns a text may take.
pub fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

/// How many columns a character may take: those of ambiguous width count as wide, as terminals set up for Chinese or Japanese show them.
fn cells(c: char) -> usize {
    c.width_cjk().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(line: &str, columns: usize) -> Vec<String> {
        rows(line, columns).into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn a_line_that_fits_is_one_row() {
        assert_eq!(texts("", 5), [""]);
        assert_eq!(texts("12345", 5), ["12345"]);
        assert_eq!(texts("123456", 5), ["12345", "6"]);
    }

    #[test]
    fn wide_characters_count_as_two_columns() {
        assert_eq!(texts("漢字漢", 5), ["漢字", "漢"]);
        assert_eq!(texts("a漢字", 4), ["a漢", "字"]);
        // A check mark that is asked for as a picture, and a box's side, which is as wide as the font has it.
        assert_eq!(texts("✔\u{fe0f}✔\u{fe0f}", 3), ["✔\u{fe0f}", "✔\u{fe0f}"]);
        assert_eq!(texts("││", 3), ["│", "│"]);
    }

    #[test]
    fn marks_stay_with_their_character() {
        assert_eq!(texts("e\u{301}e\u{301}", 1), ["e\u{301}", "e\u{301}"]);
        assert_eq!(texts("\u{301}a", 5), ["\u{25cc}\u{301}a"]);
    }

    #[test]
    fn tabs_end_at_stops_and_at_the_end_of_the_row() {
        assert_eq!(texts("a\tb", 20), ["a       b"]);
        assert_eq!(texts("1234567\t8", 10), ["1234567 8"]);
        assert_eq!(texts("123456789\tb", 10), ["123456789 ", "b"]);
        assert_eq!(texts("1234567890\tb", 10), ["1234567890", "        b"]);
    }

    #[test]
    fn rows_know_where_they_begin() {
        let starts: Vec<usize> = rows("漢字漢字", 4).into_iter().map(|row| row.start).collect();
        assert_eq!(starts, [0, 6]);
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_nothing_is_lost(line in "[a-z漢é│ \u{301}\u{200d}\u{fe0f}👩]{0,80}", columns in 2_usize..30) {
            let rows = rows(&line, columns);
            for row in &rows {
                prop_assert!(width(&row.text) <= columns, "{row:?}");
            }
            let whole: String = rows.iter().flat_map(|row| row.text.chars()).filter(|c| *c != CARRIER).collect();
            prop_assert_eq!(whole.replace(JOINER, ""), line.replace(JOINER, ""));
            prop_assert!(rows[..rows.len() - 1].iter().all(|row| !row.text.ends_with(JOINER)));
            let starts: Vec<usize> = rows.iter().map(|row| row.start).collect();
            prop_assert!(starts.is_sorted());
        }
    }
}
