//! `file_edit`: replaces pieces of text in a file by others, all of them or none.

#[path = "changes.rs"]
mod changes;
#[path = "nearest.rs"]
mod nearest;
#[path = "passages.rs"]
mod passages;

use passages::{Found, Text, find, flat, meant, noted};
use serde::Deserialize;
use std::collections::BTreeSet;
use toolcrib_sdk::files::{self, Keep, Writing};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Kind, Result, Tool, schemars};

/// What is shown of the changes, in characters.
const DIFF: usize = 4_000;
/// What is shown of the nearest passage, in characters.
const NEAREST: usize = 1_000;

pub(crate) struct FileEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File to change.
    pub(crate) path: String,
    /// Text to replace, as it was shown.
    pub(crate) old_string: Option<String>,
    /// New text; empty to remove.
    pub(crate) new_string: Option<String>,
    /// Replace every occurrence, not exactly one.
    pub(crate) replace_all: Option<bool>,
    /// Several replacements in order, instead of one. If one fails, none is made.
    pub(crate) edits: Option<Vec<Edit>>,
    /// `revision` of a read. Refuse if the file has changed since.
    pub(crate) expected_revision: Option<String>,
    /// Encoding, such as `utf-16le`; default: UTF-8.
    pub(crate) encoding: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Text to replace.
    pub(crate) old_string: String,
    /// New text.
    pub(crate) new_string: String,
    /// Replace every occurrence.
    pub(crate) replace_all: Option<bool>,
}

impl Tool for FileEdit {
    const NAME: &str = "file_edit";
    const TITLE: Option<&str> = Some("Change a file");
    const SUMMARY: &str = "Replace exact pieces of text in a file, and show what changed.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have read the file and know the text to change.",
        when_not_to_use: "To create a file or replace all of it.",
        disambiguation: "Give the text as it was shown: characters such as `\\u{200b}` too. \
            Line breaks match CRLF and LF.",
        examples: &[r#"{"path":"src/main.rs","old_string":"let port = 80;","new_string":"let port = 8080;"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(input: Input) -> Result<String> {
        if input.path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let edits = Edits::of(&input)?;
        let file = files::read_encoded(&input.path, input.encoding.as_deref())?;
        if input.expected_revision.as_ref().is_some_and(|expected| *expected != file.revision) {
            let message = format!("`{}` has changed since it was read; nothing was changed", input.path);
            return Err(Failure::new(Kind::BUSY, message).hint("read it again, then change it again"));
        }
        let shown = noted_characters(&edits)?;
        let old = Text::of(&file.content);
        let new = edits.made(&input.path, old.clone(), &|c| shown.contains(&c))?;
        if new == old {
            return Err(Failure::invalid("the replacements leave the file as it is"));
        }
        let how = Writing { encoding: input.encoding, keep: Keep::Mark, revision: Some(file.revision) };
        let raw = match file.has_mark && new.flat.starts_with('\u{feff}') {
            // A second one is text.
            true => format!("\u{feff}{}", new.raw()),
            false => new.raw(),
        };
        // First what can fail.
        let changes = files::notation(&cut(&changes::diff(&input.path, &old.flat, &new.flat), DIFF))?;
        files::write_encoded(&input.path, &raw, &how)?;
        Ok(cut(&changes, DIFF))
    }
}

/// The replacements of one call, and how each is named to the model.
struct Edits<'i>(Vec<(String, &'i str, &'i str, bool)>);

impl<'i> Edits<'i> {
    fn of(input: &'i Input) -> Result<Self> {
        let single = (&input.old_string, &input.new_string, input.replace_all);
        let edits: Vec<_> = match (single, &input.edits) {
            ((Some(old), Some(new), all), None) => vec![(String::new(), &**old, &**new, all.unwrap_or(false))],
            ((None, None, None), Some(edits)) if !edits.is_empty() => {
                let named = |(at, edit): (usize, &'i Edit)| {
                    (
                        format!("edits[{at}]."),
                        &*edit.old_string,
                        &*edit.new_string,
                        edit.replace_all.unwrap_or_default(),
                    )
                };
                edits.iter().enumerate().map(named).collect()
            }
            ((None, None, None), Some(_)) => return Err(Failure::invalid("`edits` is empty")),
            ((None, _, _) | (_, None, _), None) => {
                return Err(Failure::invalid("`old_string` and `new_string` are both needed")
                    .hint("give both, or `edits` in place of them"));
            }
            (_, Some(_)) => {
                return Err(Failure::invalid("`edits` and `old_string`, `new_string` or `replace_all` are both given")
                    .hint("give all replacements in `edits`"));
            }
        };
        for (name, old, new, _) in &edits {
            if old.is_empty() {
                return Err(Failure::invalid(format!("`{name}old_string` is empty"))
                    .hint("give the text that is to be replaced; `write_file` fills an empty file"));
            }
            if flat(old) == flat(new) {
                let message =
                    format!("`{name}old_string` and `{name}new_string` are the same, so nothing would change");
                return Err(Failure::invalid(message));
            }
        }
        Ok(Self(edits))
    }

    /// The text after all of them.
    fn made(&self, path: &str, text: Text, is_noted: &dyn Fn(char) -> bool) -> Result<Text> {
        self.0.iter().try_fold(text, |text, (name, old, new, all)| {
            let (old, new) = (flat(old), flat(new));
            let found = find(&text.flat, &old, is_noted);
            check(path, &text, &format!("{name}old_string"), &old, &found, *all)?;
            let new = meant(&new, &found, is_noted).map_err(|notation| {
                let message = format!(
                    "`{notation}` in `{name}new_string` is not clear: where the text is found it is both a character and written out"
                );
                Failure::invalid(message).hint("replace a smaller piece, with one of both")
            })?;
            let passages: Vec<_> = found.into_iter().map(|found| found.passage).collect();
            Ok(text.replaced(&passages, &new))
        })
    }
}

/// Refuses a text that is not there, or at more places than were meant.
fn check(path: &str, text: &Text, name: &str, old: &str, found: &[Found], all: bool) -> Result<()> {
    let line = |found: &Found| text.line(found.passage.start);
    let plain = found.iter().find(|found| found.is_plain());
    let noted = found.iter().find(|found| !found.is_plain());
    match (plain, noted) {
        (Some(plain), Some(noted)) => {
            let message = format!(
                "`{name}` is in line {} of `{path}` as it is, and in line {} with the characters that it writes as `\\u{{…}}`; nothing was changed",
                line(plain),
                line(noted)
            );
            return Err(Failure::failed(message).hint("give more of the text around the one that you mean"));
        }
        (None, None) => return Err(missing(path, &text.flat, name, old)),
        (Some(_), None) | (None, Some(_)) => {}
    }
    if found.len() > 1 && !all {
        let lines: Vec<String> = found.iter().take(10).map(|found| line(found).to_string()).collect();
        let more = if found.len() > lines.len() { " …" } else { "" };
        let message = format!(
            "`{name}` is {} times in `{path}`, in lines {}{more}; nothing was changed",
            found.len(),
            lines.join(", ")
        );
        return Err(Failure::failed(message).hint("give more of the text around it, or set `replace_all`"));
    }
    Ok(())
}

/// Says what is most like a text that is not there.
fn missing(path: &str, text: &str, name: &str, old: &str) -> Failure {
    let message = format!("`{name}` is not in `{path}`; nothing was changed");
    match nearest::nearest(text, old) {
        None => Failure::failed(message).hint("read the file again, and give the text as it is shown"),
        Some((line, lines)) => {
            let shown = files::notation(&lines.join("\n")).unwrap_or_default();
            let shown = cut(&shown, NEAREST);
            let blanks = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let why = if blanks(old) == blanks(&lines.join("\n")) { ", which differs in blanks" } else { "" };
            Failure::failed(format!("{message}. The nearest text begins in line {line}{why}:\n{shown}"))
                .hint("give the text as it is there, or read the file again")
        }
    }
}

/// The characters among those that the edits write as `\u{…}` that readers of files are shown so.
fn noted_characters(edits: &Edits) -> Result<BTreeSet<char>> {
    let texts = edits.0.iter().flat_map(|(_, old, new, _)| [*old, *new]);
    let written: BTreeSet<char> = texts.flat_map(noted).map(|(_, c)| c).collect();
    if written.is_empty() {
        return Ok(written);
    }
    // Between two letters none of them depends on another.
    let asked: Vec<String> = written.iter().map(|c| format!("a{c}a")).collect();
    let answered = files::notation(&asked.join("\n"))?;
    let is_noted = |c: &char| answered.contains(&format!("a{}a", c.escape_unicode()));
    Ok(written.into_iter().filter(is_noted).collect())
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => {
            let lines = text[end..].lines().count();
            format!("{}\n[cut: {lines} more lines]", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(fields: serde_json::Value) -> Input {
        let mut input = json!({ "path": "f" });
        input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(input).unwrap()
    }

    fn edited(content: &str, fields: serde_json::Value) -> Result<String> {
        let input = input(fields);
        Edits::of(&input)?.made("f", Text::of(content), &|c| c == '\u{200b}').map(|text| text.raw())
    }

    #[test]
    fn exactly_one_occurrence_is_replaced_unless_all_are_to_be() {
        assert_eq!(edited("a b a", json!({ "old_string": "b", "new_string": "c" })).unwrap(), "a c a");
        let all = json!({ "old_string": "a", "new_string": "", "replace_all": true });
        assert_eq!(edited("a b a", all).unwrap(), " b ");
        let twice = edited("a b\na", json!({ "old_string": "a", "new_string": "c" })).unwrap_err();
        assert_eq!(twice.message, "`old_string` is 2 times in `f`, in lines 1, 2; nothing was changed");
    }

    #[test]
    fn edits_are_made_in_order_or_not_at_all() {
        let edits =
            json!({ "edits": [{ "old_string": "a", "new_string": "b" }, { "old_string": "bc", "new_string": "d" }] });
        assert_eq!(edited("ac", edits.clone()).unwrap(), "d");
        let failure = edited("a", edits).unwrap_err();
        assert!(failure.message.starts_with("`edits[1].old_string` is not in `f`; nothing"), "{}", failure.message);
    }

    #[test]
    fn a_notation_that_could_be_both_is_refused_with_both_lines() {
        let content = "let a = \"\\u{200b}\";\nx\nlet a = \"\u{200b}\";\n";
        let failure = edited(content, json!({ "old_string": "\\u{200b}", "new_string": "" })).unwrap_err();
        let start = "`old_string` is in line 1 of `f` as it is, and in line 3 with the characters";
        assert!(failure.message.starts_with(start), "{}", failure.message);
        let more = json!({ "old_string": "x\nlet a = \"\\u{200b}\"", "new_string": "x\nlet b = \"\\u{200b}\"" });
        assert_eq!(edited(content, more).unwrap(), "let a = \"\\u{200b}\";\nx\nlet b = \"\u{200b}\";\n");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for fields in [
            json!({}),
            json!({ "old_string": "a" }),
            json!({ "edits": [] }),
            json!({ "edits": [], "replace_all": true }),
            json!({ "old_string": "", "new_string": "a" }),
            json!({ "old_string": "a\r\n", "new_string": "a\n" }),
            json!({ "old_string": "a", "new_string": "b", "edits": [{ "old_string": "a", "new_string": "b" }] }),
        ] {
            assert_eq!(edited("a\n", fields.clone()).unwrap_err().kind, Kind::INVALID_ARGUMENTS, "{fields}");
        }
    }

    #[test]
    fn a_long_diff_is_cut() {
        let shown = cut(&changes::diff("f", "", &"line\n".repeat(2000)), DIFF);
        assert!(shown.starts_with("--- f\n+++ f\n@@ -0,0 +1,2000 @@\n+line\n"), "{shown}");
        assert!(shown.ends_with(" more lines]"), "{shown}");
        assert!(shown.chars().count() < DIFF + 40);
    }
}
