//! Finds the lines of a text that are most like those that were looked for.

use super::changes::alike;

/// Windows that are compared character by character.
const COMPARED: usize = 12;
/// What is compared of a window, in characters.
const COMPARED_CHARS: usize = 2_000;
/// What is compared of a text, in lines and in products of lines.
const LINES: usize = 200_000;
const PRODUCTS: usize = 4_000_000;
/// How alike lines have to be to be shown: of 1.
const ALIKE: f32 = 0.5;

/// The first line, counted from 1, and the lines; none where nothing is like them.
pub(crate) fn nearest<'t>(text: &'t str, old: &str) -> Option<(usize, Vec<&'t str>)> {
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    let height = wanted.len().max(1).min(lines.len());
    if lines.is_empty() || wanted.is_empty() {
        return None;
    }
    let marks: Vec<Marks> = lines.iter().map(|line| Marks::of(line)).collect();
    let compared: Vec<Marks> =
        wanted.iter().take((PRODUCTS / lines.len()).max(1)).map(|line| Marks::of(line)).collect();
    let score =
        |start: usize| compared.iter().zip(&marks[start..]).map(|(wanted, line)| wanted.alike(line)).sum::<f32>();
    let mut windows: Vec<(f32, usize)> = (0..=lines.len() - height).map(|start| (score(start), start)).collect();
    windows.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let old = cut(&wanted.join("\n"));
    let ratio = |start: usize| alike(&old, &cut(&lines[start..start + height].join("\n")));
    let candidates = windows.into_iter().take(COMPARED).map(|(_, start)| (ratio(start), start));
    let best = candidates.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    best.filter(|(ratio, _)| *ratio >= ALIKE).map(|(_, start)| (start + 1, lines[start..start + height].to_vec()))
}

fn cut(text: &str) -> String {
    text.chars().take(COMPARED_CHARS).collect()
}

/// How often bytes come in a line that are not blanks, by 32 groups.
struct Marks {
    counts: [u16; 32],
    all: u32,
}

impl Marks {
    fn of(line: &str) -> Self {
        let mut marks = Self { counts: [0; 32], all: 0 };
        for byte in line.bytes().take(COMPARED_CHARS).filter(|byte| !byte.is_ascii_whitespace()) {
            marks.counts[usize::from(byte % 32)] += 1;
            marks.all += 1;
        }
        marks
    }

    /// From 0 to 1; two blank lines are little alike, as there are many.
    fn alike(&self, other: &Self) -> f32 {
        let same: u32 = self.counts.iter().zip(&other.counts).map(|(one, other)| u32::from(*one.min(other))).sum();
        match self.all + other.all {
            0 => 0.1,
            all => 2.0 * same as f32 / all as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_lines_are_found() {
        let text = "fn main() {\n    let port = 80;\n    serve(port);\n}\n\nfn other() {\n    let host = 1;\n}\n";
        assert_eq!(nearest(text, "let port = 8080;"), Some((2, vec!["    let port = 80;"])));
        assert_eq!(
            nearest(text, "fn other() {\n  let host = 2;\n"),
            Some((6, vec!["fn other() {", "    let host = 1;"]))
        );
        assert_eq!(nearest(text, "something that is quite another thing"), None);
        assert_eq!((nearest("", "a"), nearest("a", "\n")), (None, None));
        assert_eq!(nearest("one", "one\ntwo"), Some((1, vec!["one"])));
    }
}
