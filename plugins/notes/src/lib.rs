//! `notes`: durable facts that a model writes down about its work and its people, by key. Pinned ones are for every conversation: the
//! program around shows them, and `note_list` says which they are.
//!
//! How many there are, and how much is pinned, is counted in a document of its own, which each change expects as it was read: of two calls
//! at once one begins anew.

mod keep;

use keep::{Note, Saved, check_key, delete, note, notes, pin, save};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

toolcrib_sdk::export!(NoteSave, NoteList, NoteShow, NoteDelete, NotePin, NoteUnpin);

/// Keys that are named where one is not found.
const NAMED: usize = 20;
/// Characters of a preview.
const PREVIEW: usize = 80;

struct NoteSave;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveInput {
    /// 1 to 64 of a-z, 0-9, `_` and `-`, starting with a letter or digit.
    key: String,
    /// Text: at most 4,096 bytes.
    content: String,
    /// Whether it matters in every conversation; default: unchanged.
    pin: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct SaveOutput {
    key: String,
    /// It took the place of an earlier text.
    overwrote: bool,
    pinned: bool,
}

impl Tool for NoteSave {
    const NAME: &str = "note_save";
    const TITLE: Option<&str> = Some("Save a note");
    const SUMMARY: &str = "Save a text under a key for later conversations.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You learn something that will matter again.",
        when_not_to_use: "For the current task, secrets, or what files already say.",
        disambiguation: "A note with the same key is replaced. You can have 64 notes.",
        examples: &[r#"{"key":"deploy-day","content":"Deploys go out on Tuesdays."}"#],
    };
    type Input = SaveInput;
    type Output = SaveOutput;

    fn call(SaveInput { key, content, pin }: SaveInput) -> Result<SaveOutput> {
        check_key(&key)?;
        let Saved { overwrote, pinned } = save(&key, content, pin)?;
        Ok(SaveOutput { key, overwrote, pinned })
    }
}

struct NoteList;

#[derive(Serialize, JsonSchema)]
struct Listed {
    notes: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    key: String,
    /// When it was changed, in milliseconds since 1970.
    changed_ms: u64,
    pinned: bool,
    /// The beginning of its first line.
    preview: String,
}

impl Tool for NoteList {
    const NAME: &str = "note_list";
    const TITLE: Option<&str> = Some("List notes");
    const SUMMARY: &str = "List your notes, last changed first, with the first line of each.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know what you noted.",
        when_not_to_use: "You know the key: use `note_show`.",
        disambiguation: "",
        examples: &[],
    };
    type Input = ();
    type Output = Listed;

    fn call((): ()) -> Result<Listed> {
        let row = |(key, changed_ms, Note { content, pinned }): (String, u64, Note)| {
            let line = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Row { key, changed_ms, pinned, preview: line.trim().chars().take(PREVIEW).collect() }
        };
        let notes: Vec<Row> = notes()?.into_iter().map(row).collect();
        if notes.is_empty() {
            notice("there are no notes yet");
        }
        Ok(Listed { notes })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyInput {
    /// Key of the note.
    key: String,
}

#[derive(Serialize, JsonSchema)]
struct Shown {
    key: String,
    content: String,
    pinned: bool,
    made_ms: u64,
    changed_ms: u64,
}

struct NoteShow;

impl Tool for NoteShow {
    const NAME: &str = "note_show";
    const TITLE: Option<&str> = Some("Show a note");
    const SUMMARY: &str = "Show the whole text of one of your notes.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A note is about your work.",
        when_not_to_use: "You do not know the key: use `note_list`.",
        disambiguation: "",
        examples: &[r#"{"key":"deploy-day"}"#],
    };
    type Input = KeyInput;
    type Output = Shown;

    fn call(KeyInput { key }: KeyInput) -> Result<Shown> {
        match note(&key)? {
            Some(item) => {
                let Note { content, pinned } = item.body;
                Ok(Shown { key, content, pinned, made_ms: item.made_ms, changed_ms: item.changed_ms })
            }
            None => Err(unknown(&key)?),
        }
    }
}

/// What there is instead of a note that is not there.
fn unknown(key: &str) -> Result<Failure> {
    let mut keys: Vec<String> = notes()?.into_iter().map(|(key, ..)| key).collect();
    keys.sort_unstable();
    let more = keys.len().saturating_sub(NAMED);
    let named = keys.iter().take(NAMED).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let hint = match (keys.is_empty(), more) {
        (true, _) => "there are no notes yet".to_owned(),
        (false, 0) => format!("there is {named}"),
        (false, more) => format!("there is {named}, and {more} more"),
    };
    let shown: String = key.chars().take(64).collect();
    Ok(Failure::failed(format!("there is no note `{shown}`")).hint(hint))
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    key: String,
    /// False: there was none.
    deleted: bool,
}

struct NoteDelete;

impl Tool for NoteDelete {
    const NAME: &str = "note_delete";
    const TITLE: Option<&str> = Some("Delete a note");
    const SUMMARY: &str = "Delete one of your notes for good.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It is no longer true or needed.",
        when_not_to_use: "It changed: use `note_save` with the same key.",
        disambiguation: "",
        examples: &[r#"{"key":"deploy-day"}"#],
    };
    type Input = KeyInput;
    type Output = Deleted;

    fn call(KeyInput { key }: KeyInput) -> Result<Deleted> {
        let deleted = delete(&key)?;
        if !deleted {
            notice(format!("there was no note `{}`", key.chars().take(64).collect::<String>()));
        }
        Ok(Deleted { key, deleted })
    }
}

#[derive(Serialize, JsonSchema)]
struct Pinned {
    key: String,
    pinned: bool,
}

struct NotePin;

impl Tool for NotePin {
    const NAME: &str = "note_pin";
    const TITLE: Option<&str> = Some("Pin a note");
    const SUMMARY: &str = "Pin one of your notes, because it matters in every conversation.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need the note in every conversation.",
        when_not_to_use: "",
        disambiguation: "Pinned notes have 16 KiB together.",
        examples: &[r#"{"key":"deploy-day"}"#],
    };
    type Input = KeyInput;
    type Output = Pinned;

    fn call(KeyInput { key }: KeyInput) -> Result<Pinned> {
        pin(&key, true)?.then_some(()).map_or_else(|| Err(unknown(&key)?), Ok)?;
        Ok(Pinned { key, pinned: true })
    }
}

struct NoteUnpin;

impl Tool for NoteUnpin {
    const NAME: &str = "note_unpin";
    const TITLE: Option<&str> = Some("Unpin a note");
    const SUMMARY: &str = "Unpin one of your notes; the note itself stays.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It no longer matters in every conversation.",
        when_not_to_use: "It is no longer true: use `note_delete`.",
        disambiguation: "",
        examples: &[r#"{"key":"deploy-day"}"#],
    };
    type Input = KeyInput;
    type Output = Pinned;

    fn call(KeyInput { key }: KeyInput) -> Result<Pinned> {
        pin(&key, false)?.then_some(()).map_or_else(|| Err(unknown(&key)?), Ok)?;
        Ok(Pinned { key, pinned: false })
    }
}
