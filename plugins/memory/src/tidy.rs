//! `memory_delete` and `memory_consolidate`: memories that are not recalled any more.

use crate::keep::{
    FORGOTTEN, Forgotten, LINKS, Link, Links, MEMORIES, Memory, MemoryType, check_content, link, memory, put,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use toolcrib_sdk::records::{Batch, Item, again, get};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Pairs that are consolidated together: within the changes that one batch holds.
const PAIRS: usize = 10;
/// Bytes of a reason.
const REASON_BYTES: usize = 1000;

pub(crate) struct MemoryDelete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteInput {
    /// Id of the memory.
    memory_id: String,
    /// Why: at most 1,000 bytes.
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Deleted {
    memory_id: String,
    /// False: it was forgotten already.
    forgotten: bool,
}

impl Tool for MemoryDelete {
    const NAME: &str = "memory_delete";
    const TITLE: Option<&str> = Some("Forget a memory");
    const SUMMARY: &str = "Forget a memory: it is no longer recalled.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It is wrong, or somebody wants it forgotten.",
        when_not_to_use: "It changed: save the new text with the relation `updates`.",
        disambiguation: "",
        examples: &[r#"{"memory_id":"m3"}"#],
    };
    type Input = DeleteInput;
    type Output = Deleted;

    fn call(DeleteInput { memory_id, reason }: DeleteInput) -> Result<Deleted> {
        if reason.as_ref().is_some_and(|reason| reason.len() > REASON_BYTES) {
            return Err(Failure::invalid(format!("`reason` has at most {REASON_BYTES} bytes")));
        }
        again(|| {
            let item = match memory(&memory_id) {
                Ok(item) => item,
                Err(missing) => {
                    return match crate::keep::is_id(&memory_id) && get::<Forgotten>(FORGOTTEN, &memory_id)?.is_some() {
                        true => {
                            notice(format!("`{memory_id}` was forgotten already"));
                            Ok(Deleted { memory_id: memory_id.clone(), forgotten: false })
                        }
                        false => Err(missing),
                    };
                }
            };
            forget(Batch::new(), &item, reason.clone(), None).commit()?;
            Ok(Deleted { memory_id: memory_id.clone(), forgotten: true })
        })
    }
}

/// Moves a memory to those that are forgotten.
fn forget(batch: Batch, item: &Item<Memory>, reason: Option<String>, absorbed_by: Option<String>) -> Batch {
    let forgotten = Forgotten { memory: item.body.clone(), reason, absorbed_by };
    batch.expect(MEMORIES, &item.key, item.revision).delete(MEMORIES, &item.key).put(FORGOTTEN, &item.key, &forgotten)
}

pub(crate) struct MemoryConsolidate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsolidateInput {
    /// Type of all these memories.
    partition: MemoryType,
    /// At most 10 pairs, merged all or none.
    batch: Vec<Pair>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// Memory that stays.
    survivor_id: String,
    /// Memory that is merged into it.
    absorbed_id: String,
    /// New text of the memory that stays.
    merged_content: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Consolidated {
    /// Pairs that are one memory now.
    consolidated: usize,
}

impl Tool for MemoryConsolidate {
    const NAME: &str = "memory_consolidate";
    const TITLE: Option<&str> = Some("Consolidate memories");
    const SUMMARY: &str = "Merge pairs of memories that say nearly the same.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Memories repeat each other, or one is a newer version of another.",
        when_not_to_use: "They contradict each other, and you do not know which is right.",
        disambiguation: "",
        examples: &[
            r#"{"partition":"fact","batch":[{"survivor_id":"m4","absorbed_id":"m9","merged_content":"Billing is deployed on Tuesdays."}]}"#,
        ],
    };
    type Input = ConsolidateInput;
    type Output = Consolidated;

    fn call(ConsolidateInput { partition, batch }: ConsolidateInput) -> Result<Consolidated> {
        if batch.is_empty() || batch.len() > PAIRS {
            return Err(
                Failure::invalid(format!("`batch` has {} pairs", batch.len())).hint(format!("give 1 to {PAIRS}"))
            );
        }
        let mut ids = HashSet::new();
        for id in batch.iter().flat_map(|pair| [&pair.survivor_id, &pair.absorbed_id]) {
            if !ids.insert(id) {
                let shown: String = id.chars().take(40).collect();
                return Err(Failure::invalid(format!("`{shown}` is in the batch twice"))
                    .hint("consolidate the rest in a further call"));
            }
        }
        batch.iter().try_for_each(|pair| check_content(&pair.merged_content))?;
        again(|| consolidate(partition, &batch))?;
        Ok(Consolidated { consolidated: batch.len() })
    }
}

fn consolidate(partition: MemoryType, pairs: &[Pair]) -> Result<()> {
    let mut batch = Batch::new();
    for Pair { survivor_id, absorbed_id, merged_content } in pairs {
        let (survivor, absorbed) = (memory(survivor_id)?, memory(absorbed_id)?);
        for item in [&survivor, &absorbed] {
            if item.body.kind != partition {
                let message = format!("`{}` is of another type than the partition", item.key);
                return Err(Failure::invalid(message).hint("consolidate memories of one type at a time"));
            }
        }
        let mut merged = Memory { content: merged_content.clone(), ..survivor.body };
        merged.importance = merged.importance.max(absorbed.body.importance);
        batch = put(batch, survivor_id, survivor.revision, &merged);
        batch = forget(batch, &absorbed, None, Some(survivor_id.clone()));
        let links = get::<Links>(LINKS, absorbed_id)?.map(|item| item.body.0).unwrap_or_default();
        let links: Vec<Link> = links.into_iter().filter(|link| link.other != *survivor_id).collect();
        batch = link(batch, survivor_id, &links)?;
    }
    batch.commit()
}
