//! The first finds in the order of their paths, whatever the order in which they come.

use super::FoundFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What lines may take while they are kept, in bytes.
const KEPT_BYTES: usize = 8 << 20;

/// Finds up to a number, and to a sum of bytes.
pub(crate) struct First {
    wanted: usize,
    kept: BTreeMap<PathBuf, Kept>,
    finds: usize,
    bytes: usize,
    /// Finds were left out.
    is_cut: bool,
}

struct Kept {
    file: FoundFile,
    finds: usize,
    bytes: usize,
}

impl First {
    /// One find more than so many is looked for: then there is more.
    pub(crate) fn new(skip: u32, max: u32) -> Self {
        let wanted = (skip as usize).saturating_add(max as usize).saturating_add(1);
        Self { wanted, kept: BTreeMap::new(), finds: 0, bytes: 0, is_cut: false }
    }

    /// How many finds of one file can count.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Takes finds of one file. Returns the path behind which none counts any more, once there is one.
    pub(crate) fn add(&mut self, path: PathBuf, file: FoundFile, finds: usize) -> Option<&Path> {
        let bytes = file.path.len() + file.lines.iter().map(|line| line.text.len() + size_of_val(line)).sum::<usize>();
        self.finds += finds;
        self.bytes += bytes;
        self.kept.insert(path, Kept { file, finds, bytes });
        while let Some(last) = self.kept.last_entry()
            && (self.finds - last.get().finds >= self.wanted || self.bytes - last.get().bytes >= KEPT_BYTES)
        {
            let last = last.remove();
            self.finds -= last.finds;
            self.bytes -= last.bytes;
            self.is_cut = true;
        }
        let is_full = self.finds >= self.wanted || self.bytes >= KEPT_BYTES;
        self.kept.last_key_value().filter(|_| is_full).map(|(path, _)| path.as_path())
    }

    /// All but the first `skip`, at most `max`; and whether there are more. A line with a find has a column, or is the only one.
    pub(crate) fn into_files(self, skip: u32, max: u32) -> (Vec<FoundFile>, bool) {
        let (mut skip, mut left) = (skip as usize, max as usize);
        let is_more = self.is_cut || self.finds > skip.saturating_add(left) || self.bytes >= KEPT_BYTES;
        let mut files = Vec::new();
        for Kept { mut file, finds, .. } in self.kept.into_values() {
            if finds <= skip {
                skip -= finds;
                continue;
            }
            if left == 0 {
                break;
            }
            if skip > 0 || finds > left {
                file.lines = some(file.lines, skip, left);
            }
            left = left.saturating_sub(finds - skip);
            skip = 0;
            files.push(file);
        }
        (files, is_more)
    }
}

/// Lines from one find to another, with the context of these.
fn some(lines: Vec<super::FoundLine>, skip: usize, max: usize) -> Vec<super::FoundLine> {
    let is_find: Vec<bool> = lines.iter().map(|line| line.column.is_some()).collect();
    let places: Vec<usize> = (0..lines.len()).filter(|at| is_find[*at]).collect();
    let from = if skip == 0 { 0 } else { places.get(skip - 1).map_or(0, |before| before + 1) };
    let to = places.get(skip + max).map_or(lines.len(), |next| *next);
    lines.into_iter().take(to).skip(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::FoundLine;

    fn file(path: &str, finds: u64) -> FoundFile {
        let line = |number| FoundLine { number, offset: 0, column: Some(0), text: "x".into(), before: 0, after: 0 };
        FoundFile { path: path.into(), lines: (1..=finds).map(line).collect() }
    }

    /// Paths with the numbers of their lines.
    type Numbers = Vec<(String, Vec<u64>)>;

    fn first(skip: u32, max: u32, added: &[(&str, u64)]) -> (Numbers, bool, Option<String>) {
        let mut first = First::new(skip, max);
        let mut bound = None;
        for (path, finds) in added {
            let past = first.add(path.into(), file(path, *finds), *finds as usize);
            bound = past.map(|path| path.display().to_string());
        }
        let (files, more) = first.into_files(skip, max);
        let numbers = |file: FoundFile| (file.path, file.lines.iter().map(|line| line.number).collect());
        (files.into_iter().map(numbers).collect(), more, bound)
    }

    #[test]
    fn the_first_are_the_same_in_whatever_order_they_come() {
        let files = [("a", 2), ("b/c", 1), ("b/d", 3), ("b.x", 1), ("e", 1)];
        let mut turned = files;
        turned.reverse();
        let expected = vec![("a".to_owned(), vec![2]), ("b/c".to_owned(), vec![1]), ("b/d".to_owned(), vec![1])];
        for files in [files, turned] {
            let (found, more, _) = first(1, 3, &files);
            assert_eq!((found, more), (expected.clone(), true));
        }
        let (found, more, bound) = first(0, 8, &files);
        assert_eq!((found.len(), more, bound), (5, false, None));
        let (found, more, bound) = first(0, 2, &files);
        assert_eq!((found.len(), more, bound.as_deref()), (1, true, Some("b/c")));
        assert_eq!(first(8, 5, &files).0, []);
    }
}
