//! `file_find`: the paths of files by their names, one a line.

use crate::said;
use serde::Deserialize;
use toolcrib_sdk::files::{self, FoundNames, NameQuery, Which};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Paths that a model is shown, unless it says how many.
const PATHS: u32 = 200;
/// The same at most.
const MOST_PATHS: u32 = 2000;

pub(crate) struct FileFind;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Glob: `*.rs`, `docs/**`; default: all files.
    pub(crate) pattern: Option<String>,
    /// Directory; default: the working directory.
    pub(crate) path: Option<String>,
    /// Only this type: `rust`, `py`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// Hidden files too.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Ignored files too.
    #[serde(default)]
    pub(crate) no_ignore: bool,
    /// Most paths; default: 200.
    #[schemars(range(min = 1, max = 2000))]
    pub(crate) limit: Option<u32>,
    /// Paths to skip.
    #[serde(default)]
    #[schemars(range(max = 8000))]
    pub(crate) offset: u32,
}

impl Tool for FileFind {
    const NAME: &str = "file_find";
    const TITLE: Option<&str> = Some("Find files by name");
    const SUMMARY: &str = "Find files below a directory by name.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You know a part of a name, or want to see what files there are.",
        when_not_to_use: "You look for text in files: use `file_search`.",
        disambiguation: "`file_list` shows one directory. Hidden and ignored files are skipped.",
        examples: &[r#"{"pattern":"*.rs","path":"src"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(input: Input) -> Result<String> {
        let path = input.path.as_deref().unwrap_or(".").trim();
        if path.is_empty() || input.pattern.as_deref().is_some_and(|pattern| pattern.trim().is_empty()) {
            return Err(Failure::invalid("`path` or `pattern` is blank").hint("omit it"));
        }
        let found = files::find(
            path,
            &NameQuery {
                files: Which {
                    globs: input.pattern.into_iter().collect(),
                    types: input.kind.into_iter().collect(),
                    hidden: input.hidden,
                    ignored: input.no_ignore,
                },
                path: None,
                directories: false,
                skip: input.offset,
                max: input.limit.unwrap_or(PATHS).clamp(1, MOST_PATHS),
            },
        )?;
        found.notices.iter().for_each(|said| notice(said.as_str()));
        Ok(text(path, &found, input.offset))
    }
}

/// What a model reads.
fn text(path: &str, found: &FoundNames, offset: u32) -> String {
    let shown = found.paths.len();
    let mut lines: Vec<String> = found.paths.iter().map(|below| said::path(path, below)).collect();
    if shown == 0 && offset > 0 {
        lines.push(format!("No file after the first {offset}."));
    } else if shown == 0 {
        lines.push("No file found.".to_owned());
    } else if found.more {
        let next = u64::from(offset) + shown as u64;
        lines.push(format!("\n{shown} files shown. More follow: set `offset` to {next}."));
    }
    lines.extend(said::remarks(&found.looked, shown == 0));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::files::Looked;

    fn said(paths: &[&str], more: bool, offset: u32) -> String {
        let paths = paths.iter().map(ToString::to_string).collect();
        let looked = Looked { refused: 1, ..Looked::default() };
        text("src", &FoundNames { paths, more, looked, ..FoundNames::default() }, offset)
    }

    #[test]
    fn each_path_is_a_line() {
        let refused = "Not searched: 1 closed to tools.";
        assert_eq!(said(&["a", "b/c"], false, 0), format!("src/a\nsrc/b/c\n{refused}"));
        let more = "2 files shown. More follow: set `offset` to 12.";
        assert_eq!(said(&["a", "b/c"], true, 10), format!("src/a\nsrc/b/c\n\n{more}\n{refused}"));
        assert_eq!(said(&[], false, 0), format!("No file found.\n{refused}"));
        assert_eq!(said(&[], false, 3), format!("No file after the first 3.\n{refused}"));
    }
}
