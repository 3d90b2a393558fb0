//! What both tools say of a search in the same words.

use toolcrib_sdk::files::Looked;

/// The path of a find, as other tools take it.
pub(crate) fn path(directory: &str, below: &str) -> String {
    match (directory.trim_end_matches('/'), below) {
        (_, "") => directory.to_owned(),
        ("." | "", _) if !directory.starts_with('/') => below.to_owned(),
        (directory, below) => format!("{directory}/{below}"),
    }
}

/// What was not looked at, one sentence; none where that was nothing. `is_empty` says that nothing was found: then all of it may matter.
pub(crate) fn left_out(looked: &Looked, is_empty: bool) -> Option<String> {
    let always = [
        (looked.refused, "closed to tools"),
        (looked.unreadable, "not readable"),
        (looked.long, "with a line of more than 8 MiB"),
        (looked.deep, "too deep"),
    ];
    let only_then = [(looked.binary, "binary"), (looked.links, "links"), (looked.irregular, "not regular files")];
    let counted = always.iter().chain(only_then.iter().filter(|_| is_empty));
    let parts: Vec<String> =
        counted.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    (!parts.is_empty()).then(|| format!("Not searched: {}.", parts.join(", ")))
}

/// What may be missing in the result beside that, each one sentence.
pub(crate) fn remarks(looked: &Looked, is_empty: bool) -> Vec<String> {
    let mut remarks: Vec<String> = left_out(looked, is_empty).into_iter().collect();
    if looked.not_utf8 > 0 {
        remarks.push(format!("{} paths are not UTF-8: tools cannot open them.", looked.not_utf8));
    }
    if looked.timed_out {
        remarks.push("The search was stopped after 30 s: search a smaller directory.".to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_where_the_search_was_told_to() {
        for (directory, below, expected) in [
            (".", "a/b", "a/b"),
            ("./", "a", "a"),
            ("src", "a", "src/a"),
            ("src/", "a", "src/a"),
            ("/", "a", "/a"),
            ("a.rs", "", "a.rs"),
        ] {
            assert_eq!(path(directory, below), expected);
        }
    }

    #[test]
    fn what_was_left_out_is_counted() {
        let looked = Looked { refused: 2, links: 3, not_utf8: 1, ..Looked::default() };
        assert_eq!(left_out(&looked, false).as_deref(), Some("Not searched: 2 closed to tools."));
        assert_eq!(remarks(&looked, true)[0], "Not searched: 2 closed to tools, 3 links.");
        assert_eq!(remarks(&Looked::default(), true), Vec::<String>::new());
    }
}
