//! `memory_save`.

use crate::keep::{FORGOTTEN, Link, MEMORIES, Memory, MemoryType, Relation, check_content, is_id, link, new_id, put};
use crate::rank::{likeness, telling};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Batch, Query, again, get};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Memories that say nearly the same, and how much of their words they share with the new one.
const DUPLICATES: usize = 3;
const LIKE: f64 = 0.6;
/// Links that are given with a memory.
const ASSOCIATIONS: usize = 20;
/// Characters of a preview, and bytes of a source, a channel or a person's id.
const PREVIEW: usize = 80;
const NAME_BYTES: usize = 256;

pub(crate) struct MemorySave;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveInput {
    /// Text that is clear without this conversation: at most 50,000 bytes.
    content: String,
    /// Kind of memory.
    #[serde(default)]
    memory_type: MemoryType,
    /// 0 to 1; default: by type.
    importance: Option<f64>,
    /// Where it comes from.
    source: Option<String>,
    /// Channel in which it was said.
    channel_id: Option<String>,
    /// For `human`: the person. The text is added to that one memory.
    human_id: Option<String>,
    /// Related memories.
    #[serde(default)]
    associations: Vec<Association>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Association {
    /// Id of the other memory.
    target_id: String,
    /// How the new memory relates to it.
    relation: Relation,
    /// Strength: 0 to 1.
    #[serde(default = "half")]
    weight: f64,
}

fn half() -> f64 {
    0.5
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SaveOutput {
    memory_id: String,
    /// It was added to the memory of this person.
    added: bool,
    /// Memories that say nearly the same: perhaps one of them is to be consolidated with this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near_duplicates: Vec<Duplicate>,
}

#[derive(Serialize, JsonSchema)]
struct Duplicate {
    memory_id: String,
    preview: String,
}

impl Tool for MemorySave {
    const NAME: &str = "memory_save";
    const TITLE: Option<&str> = Some("Remember something");
    const SUMMARY: &str = "Remember something for later conversations.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A fact, preference, decision or event will matter again.",
        when_not_to_use: "For the current task, secrets, or what files already say.",
        disambiguation: "Memories are found by their words; `note_save` keeps a few texts by key.",
        examples: &[r#"{"content":"Billing is deployed on Tuesdays.","memory_type":"fact"}"#],
    };
    type Input = SaveInput;
    type Output = SaveOutput;

    fn call(input: SaveInput) -> Result<SaveOutput> {
        check(&input)?;
        let (memory_id, added) = again(|| save(&input))?;
        let near_duplicates =
            if input.memory_type == MemoryType::Human { Vec::new() } else { duplicates(&memory_id, &input.content)? };
        Ok(SaveOutput { memory_id, added, near_duplicates })
    }
}

fn check(input: &SaveInput) -> Result<()> {
    check_content(&input.content)?;
    let unit = |name: &str, number: f64| match (0.0..=1.0).contains(&number) {
        true => Ok(()),
        false => Err(Failure::invalid(format!("`{name}` is {number}")).hint("it is a number from 0 to 1")),
    };
    unit("importance", input.importance.unwrap_or_default())?;
    input.associations.iter().try_for_each(|to| unit("weight", to.weight))?;
    if input.associations.len() > ASSOCIATIONS {
        let message = format!("{} associations are too many (limit: {ASSOCIATIONS})", input.associations.len());
        return Err(Failure::limit(message).hint("keep those that matter most"));
    }
    for (name, text) in [("source", &input.source), ("channel_id", &input.channel_id), ("human_id", &input.human_id)] {
        let text = text.as_deref().unwrap_or("-");
        if text.trim().is_empty() || text.len() > NAME_BYTES || text.contains(char::is_control) {
            return Err(Failure::invalid(format!("`{name}` has 1 to {NAME_BYTES} bytes, in one line")));
        }
    }
    if input.memory_type == MemoryType::Human && input.human_id.is_none() {
        return Err(Failure::invalid("a memory of the type `human` needs `human_id`")
            .hint("say whom it is about, always by the same id"));
    }
    Ok(())
}

/// Saves a memory with its links. Its id, and whether it was added to one that was there.
fn save(input: &SaveInput) -> Result<(String, bool)> {
    let person = match (input.memory_type, &input.human_id) {
        (MemoryType::Human, Some(human)) => {
            let known = Query::new(MEMORIES).equals("/type", &MemoryType::Human).equals("/human", human).limit(1);
            known.run::<Memory>()?.items.into_iter().next()
        }
        _ => None,
    };
    let mut memory = Memory {
        content: input.content.clone(),
        kind: input.memory_type,
        importance: input.importance.unwrap_or(input.memory_type.importance()),
        source: input.source.clone(),
        channel: input.channel_id.clone(),
        human: input.human_id.clone(),
    };
    let (mut batch, id, revision) = match &person {
        Some(there) => {
            memory.content = format!("{}\n{}", there.body.content, memory.content);
            check_content(&memory.content)?;
            memory.importance = input.importance.unwrap_or(there.body.importance);
            (Batch::new(), there.key.clone(), there.revision)
        }
        None => {
            let (batch, id) = new_id(Batch::new())?;
            (batch, id, 0)
        }
    };
    batch = put(batch, &id, revision, &memory);
    let mut links = Vec::new();
    for Association { target_id, relation, weight } in &input.associations {
        let is_there = is_id(target_id)
            && (get::<Memory>(MEMORIES, target_id)?.is_some()
                || get::<crate::keep::Forgotten>(FORGOTTEN, target_id)?.is_some());
        if !is_there || *target_id == id || links.iter().any(|link: &Link| link.other == *target_id) {
            let shown: String = target_id.chars().take(40).collect();
            notice(format!("it was not linked to `{shown}`: that is no other memory, or linked already"));
            continue;
        }
        links.push(Link { other: target_id.clone(), relation: *relation, weight: *weight });
        batch = link(batch, target_id, &[Link { other: id.clone(), relation: *relation, weight: *weight }])?;
    }
    link(batch, &id, &links)?.commit()?;
    Ok((id, person.is_some()))
}

/// Other memories that say nearly the same.
fn duplicates(id: &str, content: &str) -> Result<Vec<Duplicate>> {
    let words = telling(content);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let found = Query::new(MEMORIES).any_word(&words).limit(DUPLICATES as u32 + 1).run::<Memory>()?;
    let others = found.items.into_iter().filter(|item| item.key != id);
    let alike = others.filter(|item| likeness(&item.body.content, content) >= LIKE);
    let shown = |content: &str| content.chars().take(PREVIEW).collect();
    Ok(alike
        .map(|item| Duplicate { preview: shown(&item.body.content), memory_id: item.key })
        .take(DUPLICATES)
        .collect())
}
