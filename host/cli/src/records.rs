//! `toolcrib notes`, `memory` and `tasks`: what agents keep, for whoever answers for them.
//!
//! What changes something is a call of the plugin's own tool, with all its rules. So is what looks, but for memories: to recall one would make
//! it last longer, so they are read as they lie in the store.

use super::Global;
use super::call::cancel_on_signal;
use super::result;
use super::screen::{Table, notice, print, print_json};
use super::setup::{Setup, usage};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Failure, Output};
use toolcrib::records::{Document, Look};

/// The plugin of memories, and its collections.
const MEMORY: &str = "memory";
const MEMORIES: &str = "memories";
const LINKS: &str = "links";
const RECALLS: &str = "recalls";
/// Characters of a text that a table shows.
const SHOWN: usize = 60;
/// Bytes of a text from standard input: more than any tool takes.
const TEXT_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
pub(super) struct Whose {
    /// Whose, instead of the agent's of the settings
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
pub(super) enum Notes {
    /// List the notes, those that were changed last first
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// Print a note
    Show {
        /// What it is called
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Write a note, or give it another text
    Save {
        /// What it is called: 1 to 64 of a-z, 0-9, `_` and `-`
        key: String,
        /// What it says; `-` for standard input
        text: String,
        /// Show it to the agent all the time
        #[arg(long)]
        pin: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Remove a note
    Delete {
        /// What it is called
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(clap::Subcommand)]
pub(super) enum Memory {
    /// List the memories, the newest first
    List {
        /// Those that have one of these words, the best first
        #[arg(long, value_name = "TEXT")]
        words: Option<String>,
        /// Those of this type, such as fact, preference or human
        #[arg(long, value_name = "TYPE")]
        r#type: Option<String>,
        /// How many at most: 1 to 1000
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print a memory, with what it belongs to
    Show {
        /// What the list calls it, such as m12
        id: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Have a memory not be recalled any more
    Delete {
        /// What the list calls it
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(clap::Subcommand)]
pub(super) enum Tasks {
    /// List the tasks, those that were changed last first
    List {
        /// Those in this state: pending_approval, backlog, ready, in_progress, done or failed
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// How many at most: 1 to 500
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print a task, with its comments
    Show {
        /// Its number
        number: u64,
        #[command(flatten)]
        whose: Whose,
    },
    /// Approve a task that waits for that: it is ready then
    Approve {
        /// Its number
        number: u64,
        #[command(flatten)]
        whose: Whose,
    },
    /// Put a task into another state
    Move {
        /// Its number
        number: u64,
        /// backlog, ready, in_progress, done or failed
        status: String,
        #[command(flatten)]
        whose: Whose,
    },
}

pub(super) async fn notes(global: &Global, arguments: Notes) -> Result<ExitCode, Failure> {
    match arguments {
        Notes::List { whose } => {
            let found = Desk::open(global, &whose).await?.list("note_list", json!({})).await?;
            whose.list(&found["notes"], "no notes", &["key", "changed", "pinned", "text"], |note| {
                let pinned = if note["pinned"] == true { "yes" } else { "" };
                vec![text(&note["key"]), time(&note["changed_ms"]), pinned.into(), short(&note["preview"])]
            })
        }
        Notes::Show { key, whose } => {
            let note = Desk::open(global, &whose).await?.call("note_show", json!({ "key": key })).await?;
            whose.print(&note, || format!("{}\n", text(&note["content"])))
        }
        Notes::Save { key, text, pin, whose } => {
            let mut note = json!({ "key": key, "content": given(text)? });
            if pin {
                note["pin"] = true.into();
            }
            let saved = Desk::open(global, &whose).await?.call("note_save", note).await?;
            let how = if saved["overwrote"] == true { "has another text" } else { "is kept" };
            whose.print(&saved, || format!("the note `{key}` {how}\n"))
        }
        Notes::Delete { key, whose } => {
            let deleted = Desk::open(global, &whose).await?.call("note_delete", json!({ "key": key })).await?;
            let how = if deleted["deleted"] == true { "is deleted" } else { "was not there" };
            whose.print(&deleted, || format!("the note `{key}` {how}\n"))
        }
    }
}

pub(super) async fn memory(global: &Global, arguments: Memory) -> Result<ExitCode, Failure> {
    match arguments {
        Memory::List { words, r#type, limit, whose } => {
            let desk = Desk::open(global, &whose).await?;
            let equals = r#type.map(|kind| ("/type".to_owned(), json!(kind)));
            let (agent, plugin, collection) = (desk.agent(), MEMORY.to_owned(), MEMORIES.to_owned());
            let look = Look { agent, plugin, collection, words, equals, limit };
            let (documents, total) = desk.setup.host.documents(look).await?;
            if documents.len() < usize::try_from(total).unwrap_or(usize::MAX) {
                notice(&format!(
                    "{} of {total} are shown: `--limit` shows more, `--words` finds some",
                    documents.len()
                ));
            }
            let memories: Vec<Value> = documents.into_iter().map(of_memory).collect();
            whose.list(&json!(memories), "no memories", &["id", "made", "type", "importance", "text"], |memory| {
                let importance = memory["importance"].to_string();
                let (id, kind) = (text(&memory["memory_id"]), text(&memory["type"]));
                vec![id, time(&memory["made_ms"]), kind, importance, short(&memory["content"])]
            })
        }
        Memory::Show { id, whose } => {
            let desk = Desk::open(global, &whose).await?;
            let (host, agent) = (&desk.setup.host, desk.agent());
            let Some(memory) = host.document(&agent, MEMORY, MEMORIES, &id).await? else {
                return Err(Failure::failed(format!("there is no memory `{id}`"))
                    .hint("`toolcrib memory list` says which there are"));
            };
            let mut memory = of_memory(memory);
            for (what, collection) in [("links", LINKS), ("recalls", RECALLS)] {
                let more = host.document(&agent, MEMORY, collection, &id).await?;
                memory[what] = more.map_or(Value::Null, |document| document.body);
            }
            whose.print(&memory, || {
                let line = |name: &str, value: String| format!("{name}: {value}\n");
                let links = memory["links"].as_array().into_iter().flatten();
                let links = links.map(|link| format!("{} {}", text(&link["relation"]), text(&link["other"])));
                let links = links.collect::<Vec<_>>().join(", ");
                format!("{}\n\n", text(&memory["content"]))
                    + &line("type", text(&memory["type"]))
                    + &line("importance", memory["importance"].to_string())
                    + &line("made", time(&memory["made_ms"]))
                    + &line("changed", time(&memory["changed_ms"]))
                    + &line("recalled", memory["recalls"]["times"].as_u64().unwrap_or_default().to_string())
                    + &line("belongs to", if links.is_empty() { "nothing".into() } else { links })
            })
        }
        Memory::Delete { id, reason, whose } => {
            let mut which = json!({ "memory_id": id });
            if let Some(reason) = reason {
                which["reason"] = reason.into();
            }
            let deleted = Desk::open(global, &whose).await?.call("memory_delete", which).await?;
            whose.print(&deleted, || format!("the memory `{id}` is not recalled any more\n"))
        }
    }
}

pub(super) async fn tasks(global: &Global, arguments: Tasks) -> Result<ExitCode, Failure> {
    match arguments {
        Tasks::List { status, limit, whose } => {
            let mut which = json!({ "limit": limit });
            if let Some(status) = status {
                which["status"] = status.into();
            }
            let found = Desk::open(global, &whose).await?.list("task_list", which).await?;
            let (shown, total) = (found["tasks"].as_array().map_or(0, Vec::len) as u64, &found["total"]);
            if total.as_u64().is_some_and(|total| shown < total) {
                notice(&format!("{shown} of {total} are shown: `--limit` shows more"));
            }
            let columns = ["number", "state", "priority", "parts", "waits for", "title"];
            whose.list(&found["tasks"], "no tasks", &columns, |task| {
                let waits: Vec<String> =
                    task["blocked_by"].as_array().into_iter().flatten().map(Value::to_string).collect();
                let state = [&task["status"], &task["priority"], &task["subtasks"]].map(text);
                let [state, priority, parts] = state;
                vec![task["task_number"].to_string(), state, priority, parts, waits.join(", "), short(&task["title"])]
            })
        }
        Tasks::Show { number, whose } => {
            let task = Desk::open(global, &whose).await?.call("task_show", json!({ "task_number": number })).await?;
            whose.print(&task, || result::shown(&task))
        }
        Tasks::Approve { number, whose } => {
            let desk = Desk::open(global, &whose).await?;
            let task = desk.call("task_show", json!({ "task_number": number })).await?;
            if task["status"] != "pending_approval" {
                let message = format!("task {number} is {}: it does not wait for approval", text(&task["status"]));
                return Err(usage(message).hint("`toolcrib tasks move` puts it into another state"));
            }
            moved(&desk, number, "ready", &whose).await
        }
        Tasks::Move { number, status, whose } => {
            moved(&Desk::open(global, &whose).await?, number, &status, &whose).await
        }
    }
}

async fn moved(desk: &Desk, number: u64, status: &str, whose: &Whose) -> Result<ExitCode, Failure> {
    let changed = desk.call("task_update", json!({ "task_number": number, "status": status })).await?;
    whose.print(&changed, || format!("task {number} is {}\n", text(&changed["status"])))
}

/// Where an operator looks at what one agent keeps.
struct Desk {
    setup: Setup,
}

impl Desk {
    async fn open(global: &Global, whose: &Whose) -> Result<Self, Failure> {
        let mut global = global.clone();
        if let Some(agent) = &whose.agent {
            global.set.push(format!("agent.name={}", json!(agent)));
        }
        let setup = Setup::new(&global).await?;
        cancel_on_signal(setup.context.cancel.clone())?;
        Ok(Self { setup })
    }

    fn agent(&self) -> String {
        self.setup.settings.config.agent.name.clone()
    }

    /// Calls a tool as any call is made, and returns what it gives.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let output = self.output(tool, arguments).await?;
        output.notices.iter().for_each(|text| notice(text));
        Ok(output.result)
    }

    /// The same for a list, of which a table says itself that it is empty.
    async fn list(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.output(tool, arguments).await.map(|output| output.result)
    }

    async fn output(&self, tool: &str, arguments: Value) -> Result<Output, Failure> {
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        let envelope = self.setup.host.call(request, &self.setup.context).await;
        self.setup.settled().await;
        envelope.outcome
    }
}

impl Whose {
    fn print(&self, value: &Value, words: impl FnOnce() -> String) -> Result<ExitCode, Failure> {
        if self.json { print_json(value) } else { print(&words()) }
    }

    /// Prints a list as JSON, or as a table with a row for each.
    fn list(
        &self,
        rows: &Value,
        none: &str,
        columns: &[&'static str],
        row: impl Fn(&Value) -> Vec<String>,
    ) -> Result<ExitCode, Failure> {
        let all = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        if self.json {
            return print_json(rows);
        }
        if all.is_empty() {
            return print(&format!("{none}\n"));
        }
        let mut table = Table::new(columns);
        all.iter().for_each(|value| table.row(row(value).iter().map(String::as_str)));
        table.print()
    }
}

/// A memory with its id and times.
fn of_memory(Document { key, body, revision, made_ms, changed_ms }: Document) -> Value {
    let mut memory = json!({ "memory_id": key, "revision": revision, "made_ms": made_ms, "changed_ms": changed_ms });
    for (name, value) in body.as_object().into_iter().flatten() {
        memory[name] = value.clone();
    }
    memory
}

/// A text as it was typed, or all of standard input.
fn given(text: String) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text);
    }
    let mut text = String::new();
    let read = std::io::stdin().take(TEXT_BYTES).read_to_string(&mut text);
    read.map_err(|error| usage(format!("standard input cannot be read: {error}")))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The first characters of a text, in one line.
pub(super) fn short(value: &Value) -> String {
    let line = value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Milliseconds since 1970, as people read them.
pub(super) fn time(value: &Value) -> String {
    let since = Duration::from_millis(value.as_u64().unwrap_or_default());
    UNIX_EPOCH.checked_add(since).map_or_else(String::new, |time| humantime::format_rfc3339_seconds(time).to_string())
}
