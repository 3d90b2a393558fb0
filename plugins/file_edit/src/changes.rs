//! What differs between two texts.
//!
//! Everything is compared as numbers by one algorithm: each kind of item and each choice would be code of its own.

use similar::algorithms::{Capture, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, diff_ratio, group_diff_ops};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The largest product of items that are compared one by one; above it all between the first and the last difference counts as changed.
const COMPARED: usize = 16_000_000;
/// Lines shown around a change.
const CONTEXT: usize = 2;

/// The steps that lead from one list to another.
pub(crate) fn steps<T: Ord>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let mut numbers = BTreeMap::new();
    let mut number = |item| {
        let next = numbers.len();
        *numbers.entry(item).or_insert(next)
    };
    let (old, new): (Vec<usize>, Vec<usize>) =
        (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect());
    let same = |(one, other): &(&usize, &usize)| one == other;
    let start = old.iter().zip(&new).take_while(same).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(same).count();
    let (old_len, new_len) = (old.len() - start - end, new.len() - start - end);
    if old_len.saturating_mul(new_len) > COMPARED {
        return vec![
            DiffOp::Equal { old_index: 0, new_index: 0, len: start },
            DiffOp::Replace { old_index: start, old_len, new_index: start, new_len },
            DiffOp::Equal { old_index: start + old_len, new_index: start + new_len, len: end },
        ];
    }
    let mut steps = Replace::new(Capture::new());
    let Ok(()) = myers::diff_deadline_raw(&mut steps, &*old, 0..old.len(), &*new, 0..new.len(), None);
    steps.into_inner().into_ops()
}

/// How much two texts have in common: 1 for the same, 0 for nothing.
pub(crate) fn alike(one: &str, other: &str) -> f32 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    diff_ratio(&steps(&one, &other), one.len(), other.len())
}

/// The lines of a text, each with its end.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// What changed in a file, as a unified diff.
pub(crate) fn diff(path: &str, old: &str, new: &str) -> String {
    let (old, new) = (lines(old), lines(new));
    let mut shown = format!("--- {path}\n+++ {path}\n");
    let steps =
        steps(&old, &new).into_iter().filter(|step| !step.old_range().is_empty() || !step.new_range().is_empty());
    for hunk in group_diff_ops(steps.collect(), CONTEXT) {
        let _ = writeln!(shown, "{}", UnifiedHunkHeader::new(&hunk));
        for step in &hunk {
            let (before, after) = (&old[step.old_range()], &new[step.new_range()]);
            match step {
                DiffOp::Equal { .. } => show(&mut shown, ' ', before),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    show(&mut shown, '-', before);
                    show(&mut shown, '+', after);
                }
            }
        }
    }
    shown
}

fn show(shown: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        shown.push(sign);
        *shown += line;
        if !line.ends_with('\n') {
            *shown += "\n\\ No newline at end of file\n";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_the_lines_around_a_change() {
        let shown = diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        let lines = "@@ -3,7 +3,7 @@\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n\\ No newline at end of file\n+9\n";
        assert_eq!(shown, format!("--- f\n+++ f\n{lines}"));
        assert_eq!(diff("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn much_that_changes_is_not_compared_line_by_line() {
        let text = |word: &str| (0..5_000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let shown = diff("f", &format!("top\n{}end\n", text("old")), &format!("top\n{}end\n", text("new")));
        assert!(shown.starts_with("--- f\n+++ f\n@@ -1,5002 +1,5002 @@\n top\n-old 0\n"), "{}", &shown[..80]);
        assert!(shown.ends_with("+new 4999\n end\n"));
    }

    #[test]
    fn texts_are_alike_by_what_they_share() {
        assert_eq!((alike("abcd", "abcd"), alike("ab", "cd"), alike("abcd", "abxd")), (1.0, 0.0, 0.75));
    }
}
