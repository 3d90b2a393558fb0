//! Lists of a server, page by page and entry by entry, as far as there is a bound to all of that.

use super::listing::{Trouble, client, request, shown, trouble};
use super::message::NO_METHOD;
use super::wire::{Via, Wire};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pages, entries and bytes of a list.
const MOST_PAGES: usize = 64;
const MOST_ENTRIES: usize = 2000;
const MOST_BYTES: usize = 16 << 20;
/// How long it may take to say a whole list without which there is nothing.
pub(super) const MOST_TIME: Duration = Duration::from_secs(30);
/// Bytes of what names the next page.
const CURSOR_BYTES: usize = 4 << 10;

/// What a server lists.
#[derive(Clone, Copy)]
pub(super) enum List {
    Tools,
    Prompts,
    Resources,
    /// Forms of addresses of resources.
    Templates,
}

/// What is listed, with what it is known by.
pub(super) type Entry = (String, Map<String, Value>);
/// The entries that make sense, and what was left out, a sentence each.
pub(super) type Entries = (Vec<Entry>, Vec<String>);

impl List {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of a page that has the entries.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// What an entry is known by: the member that says so, and the bytes that it may have.
    fn key(self) -> (&'static str, usize) {
        match self {
            Self::Tools | Self::Prompts => ("name", 256),
            Self::Resources => ("uri", 4 << 10),
            Self::Templates => ("uriTemplate", 4 << 10),
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "template of addresses",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "templates of addresses",
        }
    }

    /// An entry with what it is known by.
    fn read(self, entry: &RawValue) -> Result<Entry, String> {
        let (one, (key, most)) = (self.singular(), self.key());
        let entry: Map<String, Value> =
            serde_json::from_str(entry.get()).map_err(|error| format!("one {one} makes no sense: {error}"))?;
        let known_by = entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty() && text.len() <= most);
        let known_by = known_by.ok_or_else(|| format!("one {one} has no `{key}`, or one of more than {most} bytes"))?;
        Ok((known_by.to_owned(), entry))
    }
}

/// All pages of a list, for which the server has so long: what makes no sense of one entry is no fault of another.
pub(super) async fn all(
    wire: &Wire,
    protocol: &str,
    list: List,
    most: Duration,
    via: &Via<'_>,
) -> Result<Entries, Trouble> {
    let (many, begin) = (list.plural(), Instant::now());
    let (mut entries, mut notices, mut bytes, mut cursor) = (Vec::new(), Vec::new(), 0, None::<String>);
    for page in 0.. {
        let mut params = json!({ "_meta": client(protocol, via) });
        if let Some(cursor) = &cursor {
            params["cursor"] = json!(cursor);
        }
        let left = most.saturating_sub(begin.elapsed());
        let answered = request(wire, list.method(), &params, left, via).await?;
        let answered =
            answered.ok_or_else(|| trouble(format!("did not list its {many} within {} s", most.as_secs())))?;
        let result = match answered {
            Ok(result) => result,
            // It has none.
            Err(refusal) if refusal.code == NO_METHOD && page == 0 => break,
            Err(refusal) => return Err(trouble(format!("does not list its {many}: {}", shown(&refusal.message)))),
        };
        let nonsense = |error| trouble(format!("lists its {many} in a way that makes no sense: {error}"));
        let (listed, next) = read(result.get(), list.member()).map_err(nonsense)?;
        for entry in listed {
            bytes += entry.get().len();
            if entries.len() == MOST_ENTRIES || bytes > MOST_BYTES {
                notices.push(format!(
                    "more than {MOST_ENTRIES} {many}, or {} MiB of them: the rest was left out",
                    MOST_BYTES >> 20
                ));
                return Ok((entries, notices));
            }
            match list.read(entry) {
                Ok(entry) => entries.push(entry),
                Err(why) if notices.len() < MOST_PAGES => notices.push(why),
                Err(_) => {}
            }
        }
        match next {
            None => break,
            Some(next) if Some(&next) == cursor.as_ref() || page + 1 == MOST_PAGES || next.len() > CURSOR_BYTES => {
                notices.push(format!("the list of {many} has no end: the rest was left out"));
                break;
            }
            next => cursor = next,
        }
    }
    Ok((entries, notices))
}

/// The entries of a page, and what names the next one.
fn read<'p>(page: &'p str, member: &str) -> serde_json::Result<(Vec<&'p RawValue>, Option<String>)> {
    let members: BTreeMap<String, &'p RawValue> = serde_json::from_str(page)?;
    let entries = members.get(member).map(|entries| serde_json::from_str(entries.get())).transpose()?;
    let next = members.get("nextCursor").map(|next| serde_json::from_str(next.get())).transpose()?;
    Ok((entries.unwrap_or_default(), next.flatten()))
}
