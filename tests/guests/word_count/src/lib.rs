//! `word_count`: counts the lines, words and bytes of one file.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, files, schemars};

struct WordCount;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File to count.
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Counts {
    lines: usize,
    words: usize,
    bytes: usize,
}

impl Tool for WordCount {
    const NAME: &str = "word_count";
    const SUMMARY: &str = "Count the lines, words and bytes of a text file.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need the size of a text and not the text.",
        when_not_to_use: "To read the text: the counts tell nothing of it.",
        disambiguation: "`read_file` returns the text itself.",
        examples: &[r#"{"path":"README.md"}"#],
    };
    type Input = Input;
    type Output = Counts;

    fn call(input: Input) -> Result<Counts> {
        let text = files::read_text(&input.path)?;
        Ok(Counts { lines: text.lines().count(), words: text.split_whitespace().count(), bytes: text.len() })
    }
}

toolcrib_sdk::export!(WordCount);

#[cfg(test)]
mod tests {
    use super::WordCount;
    use toolcrib_sdk::testing::{Host, json, text};

    #[test]
    fn lines_words_and_bytes_are_counted() {
        for (content, counts) in [
            ("zwei Wörter\nund mehr", json!({ "lines": 2, "words": 4, "bytes": 21 })),
            ("", json!({ "lines": 0, "words": 0, "bytes": 0 })),
        ] {
            let host = Host::new().plays("files.read", text(content)).with(json!({ "path": "a.txt" }));
            assert_eq!(host.call::<WordCount>(json!({ "path": "a.txt" })), Ok(counts));
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_the_hosts_failure() {
        let host = Host::from_toml(
            r#"host = [{ call = "files.read", fails = { kind = "execution_failed", message = "no such file" } }]"#,
        );
        assert_eq!(host.call::<WordCount>(json!({ "path": "none" })).unwrap_err().message, "no such file");
    }
}
