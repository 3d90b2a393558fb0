//! How memories are kept. Each is a document; beside it, under the same key, are what it belongs to (`links`) and how often it was recalled
//! (`recalls`), so that neither changes when the memory was written. A memory that is forgotten moves to a collection of its own.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Batch, Item, get};
use toolcrib_sdk::{Failure, JsonSchema, Kind, Result, schemars};

pub(crate) const MEMORIES: &str = "memories";
pub(crate) const FORGOTTEN: &str = "forgotten";
pub(crate) const LINKS: &str = "links";
pub(crate) const RECALLS: &str = "recalls";
const COUNTS: &str = "counts";
const ALL: &str = "all";
/// Bytes of a memory, and links of one; the weakest make room.
pub(crate) const BYTES: usize = 50_000;
const MOST_LINKS: usize = 100;

/// What kind of thing is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MemoryType {
    #[default]
    Fact,
    Preference,
    Decision,
    Identity,
    Event,
    Observation,
    Goal,
    Todo,
    /// The one memory about a person.
    Human,
}

impl MemoryType {
    /// How important one is where nothing is said.
    pub(crate) fn importance(self) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Goal => 0.9,
            Self::Human => 0.85,
            Self::Decision | Self::Todo => 0.8,
            Self::Preference => 0.7,
            Self::Fact => 0.6,
            Self::Event => 0.4,
            Self::Observation => 0.3,
        }
    }
}

/// How one memory belongs to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    RelatedTo,
    /// It is a newer version of the other.
    Updates,
    Contradicts,
    CausedBy,
    ResultOf,
    PartOf,
}

/// A memory, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) content: String,
    #[serde(rename = "type")]
    pub(crate) kind: MemoryType,
    pub(crate) importance: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) human: Option<String>,
}

/// A memory that is not recalled any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) memory: Memory,
    pub(crate) reason: Option<String>,
    /// The memory that says it now.
    pub(crate) absorbed_by: Option<String>,
}

/// What a memory belongs to, and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Links(pub(crate) Vec<Link>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) other: String,
    pub(crate) relation: Relation,
    pub(crate) weight: f64,
}

impl Links {
    /// Adds a link, in the place of the same one.
    pub(crate) fn add(&mut self, link: Link) {
        self.0.retain(|old| (&old.other, old.relation) != (&link.other, link.relation));
        self.0.push(link);
        self.0.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        self.0.truncate(MOST_LINKS);
    }
}

/// How often a memory was recalled, and when last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recalls {
    pub(crate) times: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    /// The number of the memory that was made last.
    last: u64,
}

/// Whether it can be the id of a memory.
pub(crate) fn is_id(id: &str) -> bool {
    id.strip_prefix('m')
        .is_some_and(|number| (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The number of an id: the later a memory was made, the larger.
pub(crate) fn number(id: &str) -> u64 {
    id.strip_prefix('m').and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A memory of this id.
///
/// # Errors
///
/// Where there is none.
pub(crate) fn memory(id: &str) -> Result<Item<Memory>> {
    let found = if is_id(id) { get(MEMORIES, id)? } else { None };
    found.ok_or_else(|| {
        let shown: String = id.chars().take(40).collect();
        Failure::failed(format!("there is no memory `{shown}`")).hint("`memory_recall` says which there are")
    })
}

/// What stands in the place of a memory that was absorbed by others, perhaps more than once.
pub(crate) fn present(id: &str) -> Result<Option<Item<Memory>>> {
    let mut id = id.to_owned();
    for _ in 0..16 {
        if let Some(memory) = get(MEMORIES, &id)? {
            return Ok(Some(memory));
        }
        match get::<Forgotten>(FORGOTTEN, &id)?.and_then(|item| item.body.absorbed_by) {
            Some(by) => id = by,
            None => break,
        }
    }
    Ok(None)
}

/// A batch that makes a new memory, and its id.
pub(crate) fn new_id(batch: Batch) -> Result<(Batch, String)> {
    let counts = get::<Counts>(COUNTS, ALL)?;
    let last = counts.as_ref().map_or(0, |item| item.body.last) + 1;
    let batch = batch.expect(COUNTS, ALL, counts.map_or(0, |item| item.revision)).put(COUNTS, ALL, &Counts { last });
    Ok((batch, format!("m{last}")))
}

/// Adds a memory to a batch, which its content finds: by its words, and by its meaning.
pub(crate) fn put(batch: Batch, id: &str, revision: u64, memory: &Memory) -> Batch {
    batch.expect(MEMORIES, id, revision).put(MEMORIES, id, memory).embed(MEMORIES, id, "/content")
}

/// Adds links to those that a memory has.
pub(crate) fn link(batch: Batch, id: &str, links: &[Link]) -> Result<Batch> {
    if links.is_empty() {
        return Ok(batch);
    }
    let there = get::<Links>(LINKS, id)?;
    let revision = there.as_ref().map_or(0, |item| item.revision);
    let mut all = there.map(|item| item.body).unwrap_or_default();
    links.iter().cloned().for_each(|link| all.add(link));
    Ok(batch.expect(LINKS, id, revision).put(LINKS, id, &all))
}

pub(crate) fn check_content(content: &str) -> Result<()> {
    if content.trim().is_empty() {
        return Err(Failure::invalid("`content` is empty").hint("say what is to be remembered"));
    }
    if content.len() > BYTES {
        let message = format!("a memory of {} bytes is too long (limit: {BYTES})", content.len());
        return Err(Failure::new(Kind::LIMIT, message).hint("say it shorter, or in two memories"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_letter_and_a_number() {
        assert!(is_id("m1") && is_id("m120"));
        for odd in ["", "m", "1", "m1x", "M1", "m-1", "m111111111111111111111"] {
            assert!(!is_id(odd), "{odd}");
        }
    }

    #[test]
    fn a_link_is_there_once_and_the_weakest_make_room() {
        let link = |other: usize, weight| Link { other: format!("m{other}"), relation: Relation::RelatedTo, weight };
        let mut links = Links::default();
        links.add(link(1, 0.2));
        links.add(link(1, 0.9));
        assert_eq!(links.0, [link(1, 0.9)]);
        (2..200).for_each(|other| links.add(link(other, 0.5)));
        assert_eq!((links.0.len(), links.0[0].weight), (MOST_LINKS, 0.9));
    }
}
