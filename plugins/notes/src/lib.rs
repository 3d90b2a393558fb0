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
    /// What it is to be found by: 1 to 64 of a-z, 0-9, `_` and `-`, a letter or digit first.
    key: String,
    /// What to write down: at most 4,096 bytes.
    content: String,
    /// Whether it is pinned: it matters in every conversation. Without it, it stays as it was.
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
    const SUMMARY: &str = "Write a note down, which stays for later conversations.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You learn something about the person or their work that will matter again.",
        when_not_to_use: "For the task at hand, secrets, or what files say already.",
        disambiguation: "The same key takes the place of the earlier text. At most 64 notes; pin only what matters always.",
        examples: &[r#"{"key":"deploy-day","content":"Deploys go out on Tuesdays, never on Fridays.","pin":true}"#],
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
    const SUMMARY: &str = "List your notes, those that were changed last first, with the beginning of each.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know what you wrote down.",
        when_not_to_use: "You know the key: use `note_show`.",
        disambiguation: "It has the first line of each; `note_show` has the whole text.",
        examples: &["{}"],
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
    /// The key of the note.
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
    const SUMMARY: &str = "Show one of your notes.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "`note_list` has one about what you do.",
        when_not_to_use: "To look for one: use `note_list`.",
        disambiguation: "`note_list` has the first line of each; this has the whole text.",
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
    const SUMMARY: &str = "Delete one of your notes.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It is not true any more, or nobody will need it again.",
        when_not_to_use: "It has changed: use `note_save` with the same key.",
        disambiguation: "It is gone for good.",
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
    const SUMMARY: &str = "Pin one of your notes: it matters in every conversation.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It matters in every conversation.",
        when_not_to_use: "It matters now and then: `note_show` finds it.",
        disambiguation: "All pinned notes have at most 16 KiB together. `note_save` can pin, too.",
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
    const SUMMARY: &str = "Take the pin off one of your notes; the note itself stays.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It does not matter in every conversation any more.",
        when_not_to_use: "It is not true any more: use `note_delete`.",
        disambiguation: "The note stays, and `note_show` has it.",
        examples: &[r#"{"key":"deploy-day"}"#],
    };
    type Input = KeyInput;
    type Output = Pinned;

    fn call(KeyInput { key }: KeyInput) -> Result<Pinned> {
        pin(&key, false)?.then_some(()).map_or_else(|| Err(unknown(&key)?), Ok)?;
        Ok(Pinned { key, pinned: false })
    }
}
