//! `introspect`: what an agent can know of the place that it works in: contexts, variables, settings, documents.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::introspect::{self, ContextFile, Entry, MountPoint};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Characters of a context that are shown at once.
const SHOWN: u32 = 32_000;
/// Lines of a document that are shown at once: usually, and at most.
const LINES: usize = 300;
const MOST_LINES: usize = 2000;

struct ContextList;

#[derive(Serialize, JsonSchema)]
struct Contexts {
    contexts: Vec<Context>,
}

#[derive(Serialize, JsonSchema)]
struct Context {
    name: String,
    file: String,
    description: String,
}

impl Tool for ContextList {
    const NAME: &str = "context_list";
    const TITLE: Option<&str> = Some("List contexts");
    const SUMMARY: &str = "List the texts that were written for you, with the subject of each.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You begin work that may have rules.",
        when_not_to_use: "",
        disambiguation: "`context_show` shows one text.",
        examples: &[],
    };
    type Input = ();
    type Output = Contexts;

    fn call((): ()) -> Result<Contexts> {
        let contexts: Vec<Context> = introspect::contexts()?
            .into_iter()
            .map(|ContextFile { name, file, about }| Context { name, file, description: about })
            .collect();
        if contexts.is_empty() {
            notice("no texts were written for you");
        }
        Ok(Contexts { contexts })
    }
}

struct ContextShow;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Show {
    /// Name from `context_list`.
    name: String,
    /// Byte to start at, from a notice.
    #[serde(default)]
    offset: u64,
}

impl Tool for ContextShow {
    const NAME: &str = "context_show";
    const TITLE: Option<&str> = Some("Show a context");
    const SUMMARY: &str = "Show one of the texts that `context_list` lists.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A text is about your work.",
        when_not_to_use: "",
        disambiguation: "",
        examples: &[r#"{"name":"style"}"#],
    };
    type Input = Show;
    type Output = String;

    fn call(Show { name, offset }: Show) -> Result<String> {
        let shown = introspect::context(&name, offset, SHOWN)?;
        if shown.truncated {
            let next = offset + shown.text.len() as u64;
            notice(format!("`{name}` has {} bytes: read on with `offset`: {next}", shown.bytes));
        }
        Ok(shown.text)
    }
}

struct EnvList;

#[derive(Serialize, JsonSchema)]
struct Variables {
    variables: Vec<Variable>,
}

#[derive(Serialize, JsonSchema)]
struct Variable {
    key: String,
    description: String,
}

impl Tool for EnvList {
    const NAME: &str = "env_list";
    const TITLE: Option<&str> = Some("List variables");
    const SUMMARY: &str = "List the environment variables described for you, without values.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A program needs a setting, and you need the name of its variable.",
        when_not_to_use: "",
        disambiguation: "Variables that are not listed may be set, too.",
        examples: &[],
    };
    type Input = ();
    type Output = Variables;

    fn call((): ()) -> Result<Variables> {
        let variable = |Entry { name, about }: Entry| Variable { key: name, description: about };
        let variables: Vec<Variable> = introspect::environment()?.into_iter().map(variable).collect();
        if variables.is_empty() {
            notice("you were told of no variables");
        }
        Ok(Variables { variables })
    }
}

struct MountList;

#[derive(Serialize, JsonSchema)]
struct Mounts {
    mounts: Vec<Mount>,
}

#[derive(Serialize, JsonSchema)]
struct Mount {
    /// Where it is.
    target: String,
    description: String,
    read_only: bool,
}

impl Tool for MountList {
    const NAME: &str = "mount_list";
    const TITLE: Option<&str> = Some("List mounts");
    const SUMMARY: &str = "List extra directories, with their contents and whether you can write there.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You look for provided data, or for a place to write.",
        when_not_to_use: "To see what a directory contains: use `file_list`.",
        disambiguation: "",
        examples: &[],
    };
    type Input = ();
    type Output = Mounts;

    fn call((): ()) -> Result<Mounts> {
        let mount =
            |MountPoint { target, about, read_only }: MountPoint| Mount { target, description: about, read_only };
        let mounts: Vec<Mount> = introspect::mounts()?.into_iter().map(mount).collect();
        if mounts.is_empty() {
            notice("nothing is mounted for you");
        }
        Ok(Mounts { mounts })
    }
}

struct ConfigInspect;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Inspect {
    /// Section such as `tools`, `confine` or `limits`; default: `all`.
    section: Option<String>,
}

impl Tool for ConfigInspect {
    const NAME: &str = "config_inspect";
    const TITLE: Option<&str> = Some("Show settings");
    const SUMMARY: &str = "Show the settings in force and where each comes from.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To tell the person which setting refused or limited something.",
        when_not_to_use: "",
        disambiguation: "It shows no secrets. `spacebot_docs` explains the settings.",
        examples: &[r#"{"section":"confine"}"#],
    };
    type Input = Inspect;
    type Output = String;

    fn call(Inspect { section }: Inspect) -> Result<String> {
        introspect::settings(section.as_deref())
    }
}

struct Docs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// What to do.
    action: Action,
    /// For `read`: id of the document.
    doc_id: Option<String>,
    /// For `list`: words that a document must contain.
    query: Option<String>,
    /// For `read`: first line, from 1.
    start_line: Option<usize>,
    /// For `read`: number of lines: default 300, at most 2,000.
    max_lines: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Read,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Answer {
    List { documents: Vec<Document> },
    Page(Page),
}

#[derive(Serialize, JsonSchema)]
struct Document {
    id: String,
    title: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Page {
    text: String,
    /// The lines that are shown.
    start_line: usize,
    end_line: usize,
    total_lines: usize,
    /// Whether more follows.
    has_more: bool,
}

impl Tool for Docs {
    const NAME: &str = "spacebot_docs";
    const TITLE: Option<&str> = Some("Read the documents");
    const SUMMARY: &str = "List the documents of the program that you run in, or read one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Somebody asks how this program works, or a refusal names a setting.",
        when_not_to_use: "",
        disambiguation: "`config_inspect` shows values; this explains them.",
        examples: &[r#"{"action":"list","query":"secret"}"#],
    };
    type Input = Ask;
    type Output = Answer;

    fn call(Ask { action, doc_id, query, start_line, max_lines }: Ask) -> Result<Answer> {
        match (action, doc_id) {
            (Action::List, None) => {
                let mut documents = Vec::new();
                for Entry { name, about } in introspect::documents()? {
                    if query.as_ref().is_none_or(|query| about_it(query, &name)) {
                        documents.push(Document { id: name, title: about });
                    }
                }
                Ok(Answer::List { documents })
            }
            (Action::Read, Some(id)) => {
                page(&introspect::document(&id)?, start_line.unwrap_or(1), max_lines.unwrap_or(LINES)).map(Answer::Page)
            }
            (Action::List, Some(_)) => Err(Failure::invalid("`doc_id` is for the action `read`").hint("omit it")),
            (Action::Read, None) => {
                Err(Failure::invalid("`doc_id` is missing").hint("the action `list` shows which there are"))
            }
        }
    }
}

/// Whether a document holds all of these words.
fn about_it(query: &str, name: &str) -> bool {
    let text = introspect::document(name).unwrap_or_default().to_lowercase();
    query.to_lowercase().split_whitespace().all(|word| text.contains(word) || name.contains(word))
}

/// Some lines of a text.
fn page(text: &str, start: usize, most: usize) -> Result<Page> {
    if start == 0 || most == 0 {
        return Err(Failure::invalid("`start_line` and `max_lines` count from 1"));
    }
    let total_lines = text.lines().count();
    if start > total_lines {
        return Err(Failure::invalid(format!("`start_line` is {start}, and there are {total_lines} lines")));
    }
    let lines: Vec<&str> = text.lines().skip(start - 1).take(most.min(MOST_LINES)).collect();
    let end_line = start - 1 + lines.len();
    Ok(Page { text: lines.join("\n"), start_line: start, end_line, total_lines, has_more: end_line < total_lines })
}

toolcrib_sdk::export!(ContextList, ContextShow, EnvList, MountList, ConfigInspect, Docs);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_lines_that_are_asked_for() {
        let text = "1\n2\n3\n4\n";
        let shown = |start, most| page(text, start, most).unwrap();
        let whole = Page { text: "1\n2\n3\n4".into(), start_line: 1, end_line: 4, total_lines: 4, has_more: false };
        assert_eq!(shown(1, 300), whole);
        let some = shown(2, 2);
        assert_eq!((some.text.as_str(), some.end_line, some.has_more), ("2\n3", 3, true));
        assert_eq!(page(text, 5, 1).unwrap_err().message, "`start_line` is 5, and there are 4 lines");
        assert!(page(text, 0, 1).is_err() && page(text, 1, 0).is_err());
    }
}
