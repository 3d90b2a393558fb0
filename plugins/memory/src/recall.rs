//! `memory_recall`: by words, by meaning, and by what belongs to what is important; the newest, the most important, or all of a type.

use crate::keep::{LINKS, Links, MEMORIES, Memory, MemoryType, RECALLS, Recalls, number, present};
use crate::rank::{fused, present_importance, telling};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};
use toolcrib_sdk::records::{Batch, Item, Query, get};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Kind, Result, Tool, notice, schemars};

/// Memories of an answer at most, and where nothing is said.
const MOST: u32 = 50;
const RESULTS: u32 = 10;
/// Each list has so many times as many.
const WIDER: u32 = 2;
/// What belongs to these is looked at: how important they are, how many there are, and how far it goes.
const SEED_IMPORTANCE: f64 = 0.8;
const SEEDS: u32 = 20;
const DEPTH: u32 = 2;
/// Memories that are looked at on the way.
const WALKED: usize = 200;
/// Of these the most important are found: importance fades, which no order of the store knows.
const WEIGHED: u32 = 200;
/// Bytes of all contents of an answer.
const CONTENT_BYTES: usize = 200_000;

pub(crate) struct MemoryRecall;

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// By words of `query`, by meaning if a model is set, and by related memories.
    #[default]
    Hybrid,
    /// Newest first.
    Recent,
    /// Most important first.
    Important,
    /// All of `memory_type`, newest first.
    Typed,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SortBy {
    Recent,
    Importance,
    MostAccessed,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallInput {
    /// Words that the memory may contain.
    query: Option<String>,
    /// Number of memories: 1 to 50.
    #[serde(default = "results")]
    max_results: u32,
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
    /// How to search.
    #[serde(default)]
    mode: Mode,
    /// Order, instead of that of the mode.
    sort_by: Option<SortBy>,
}

fn results() -> u32 {
    RESULTS
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RecallOutput {
    memories: Vec<Recalled>,
    /// How many there are of this type, or of all, whatever was looked for.
    total: u64,
}

#[derive(Serialize, JsonSchema)]
struct Recalled {
    memory_id: String,
    memory_type: MemoryType,
    content: String,
    /// How important it is now: it fades with time.
    importance: f64,
    /// How well it fits, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// When it was made, in milliseconds since 1970.
    made_ms: u64,
    /// When it was changed last, likewise.
    changed_ms: u64,
    /// How often it was recalled before.
    accessed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    human_id: Option<String>,
}

/// A memory that was found.
struct Found {
    item: Item<Memory>,
    score: Option<f64>,
    /// How important it is now.
    importance: f64,
    recalls: u64,
}

impl Tool for MemoryRecall {
    const NAME: &str = "memory_recall";
    const TITLE: Option<&str> = Some("Recall memories");
    const SUMMARY: &str = "Find your memories by words, type, age or importance.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Something said, decided or learned before may matter now.",
        when_not_to_use: "It is in this conversation or in a file.",
        disambiguation: "If nothing is found, try other words.",
        examples: &[r#"{"query":"deploy billing service"}"#],
    };
    type Input = RecallInput;
    type Output = RecallOutput;

    fn call(input: RecallInput) -> Result<RecallOutput> {
        let (found, total) = find(&input)?;
        count(&found);
        let mut left = CONTENT_BYTES;
        let all = found.len();
        let fits = |found: &Found| match left.checked_sub(found.item.body.content.len()) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let memories: Vec<Recalled> = found.into_iter().take_while(fits).map(Recalled::from).collect();
        match memories.len() {
            0 => notice("nothing was found: other words may find it, or `mode` `recent`"),
            shown if shown < all => notice(format!("{} more are left out: they are long", all - shown)),
            _ => {}
        }
        Ok(RecallOutput { memories, total })
    }
}

impl From<Found> for Recalled {
    fn from(Found { item, score, importance, recalls }: Found) -> Self {
        let round = |number: f64| (number * 1000.0).round() / 1000.0;
        let Memory { content, kind, source, human, .. } = item.body;
        Self {
            memory_id: item.key,
            memory_type: kind,
            content,
            importance: round(importance),
            score: score.map(round),
            made_ms: item.made_ms,
            changed_ms: item.changed_ms,
            accessed: recalls,
            source,
            human_id: human,
        }
    }
}

fn find(input: &RecallInput) -> Result<(Vec<Found>, u64)> {
    if !(1..=MOST).contains(&input.max_results) {
        return Err(
            Failure::invalid(format!("`max_results` is {}", input.max_results)).hint(format!("it is 1 to {MOST}"))
        );
    }
    let most = input.max_results as usize;
    let total = of_type(input).limit(1).run::<Memory>()?.total;
    let mut found = match input.mode {
        Mode::Hybrid => hybrid(input)?,
        Mode::Recent => newest(input)?,
        Mode::Typed if input.memory_type.is_none() => {
            return Err(Failure::invalid("`mode` `typed` needs `memory_type`").hint("say of which type"));
        }
        Mode::Typed => newest(input)?,
        Mode::Important => {
            let kept = of_type(input).order("/importance", true).limit(WEIGHED).run()?;
            let mut found = weighed(kept.items)?;
            found.sort_by(|one, other| other.importance.total_cmp(&one.importance));
            found
        }
    };
    // What was found is sorted; not all that there is.
    found.truncate(most);
    match input.sort_by {
        None => {}
        Some(SortBy::Recent) => found.sort_by(|one, other| newer_first(&one.item, &other.item)),
        Some(SortBy::Importance) => found.sort_by(|one, other| other.importance.total_cmp(&one.importance)),
        Some(SortBy::MostAccessed) => found.sort_by_key(|found| std::cmp::Reverse(found.recalls)),
    }
    Ok((found, total))
}

/// A look at memories of the type that is asked for.
fn of_type(input: &RecallInput) -> Query {
    let query = Query::new(MEMORIES);
    input.memory_type.map_or_else(|| Query::new(MEMORIES), |kind| query.equals("/type", &kind))
}

fn newest(input: &RecallInput) -> Result<Vec<Found>> {
    weighed(of_type(input).order("@made", true).limit(input.max_results).run()?.items)
}

/// By words, by meaning and by links: what is asked for holds in each list, so that none is full of what is left out afterwards.
fn hybrid(input: &RecallInput) -> Result<Vec<Found>> {
    let words = telling(input.query.as_deref().unwrap_or_default());
    if words.is_empty() {
        return Err(Failure::invalid("`mode` `hybrid` needs a `query` with a word in it")
            .hint("say what you want to know, or choose another `mode`"));
    }
    let wide = input.max_results * WIDER;
    let by_words = of_type(input).any_word(&words).limit(wide).run::<Memory>()?.items;
    let by_links = linked(&words, input.memory_type, wide as usize)?;
    let by_meaning = near(input, wide)?;
    let lists = [by_words, by_meaning, by_links];
    let scores = fused(&lists.each_ref().map(|list| list.iter().map(|item| item.key.clone()).collect()));
    let items: HashMap<String, Item<Memory>> =
        lists.into_iter().flatten().map(|item| (item.key.clone(), item)).collect();
    let mut ranked: Vec<(f64, Item<Memory>)> = items.into_values().map(|item| (scores[&item.key], item)).collect();
    ranked.sort_by(|(one, first), (other, second)| other.total_cmp(one).then_with(|| newer_first(first, second)));
    ranked.truncate(input.max_results as usize);
    let (scores, items): (Vec<f64>, Vec<Item<Memory>>) = ranked.into_iter().unzip();
    let found = weighed(items)?.into_iter().zip(scores);
    Ok(found.map(|(found, score)| Found { score: Some(score), ..found }).collect())
}

/// What is near in its meaning. A model that fails costs a notice, and one that is not set nothing.
fn near(input: &RecallInput, wide: u32) -> Result<Vec<Item<Memory>>> {
    match of_type(input).near(input.query.as_deref().unwrap_or_default()).limit(wide).run() {
        Ok(page) => Ok(page.items),
        Err(failure) if failure.kind == Kind::UNAVAILABLE => Ok(Vec::new()),
        Err(failure) if failure.kind == Kind::EXECUTION_FAILED => {
            notice(format!("it was looked for by words alone, not by meaning: {}", failure.message));
            Ok(Vec::new())
        }
        Err(failure) => Err(failure),
    }
}

/// What belongs to important memories that have one of these words, over two steps: the most important first.
fn linked(words: &str, kind: Option<MemoryType>, most: usize) -> Result<Vec<Item<Memory>>> {
    let seeds = Query::new(MEMORIES).any_word(words).between("/importance", &SEED_IMPORTANCE, &1.0).limit(SEEDS);
    let mut best: HashMap<String, (f64, Item<Memory>)> = HashMap::new();
    let mut edge: Vec<(String, f64)> = Vec::new();
    for seed in seeds.run::<Memory>()?.items {
        edge.push((seed.key.clone(), seed.body.importance));
        best.insert(seed.key.clone(), (seed.body.importance, seed));
    }
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for (id, score) in edge {
            let links = get::<Links>(LINKS, &id)?.map(|item| item.body.0).unwrap_or_default();
            for link in links {
                let score = score * link.relation.factor() * link.weight;
                if best.len() >= WALKED || best.get(&link.other).is_some_and(|(known, _)| *known >= score) {
                    continue;
                }
                let Some(item) = present(&link.other)? else { continue };
                if best.get(&item.key).is_none_or(|(known, _)| *known < score) {
                    next.push((item.key.clone(), score));
                    best.insert(item.key.clone(), (score, item));
                }
            }
        }
        edge = next;
    }
    let mut all: Vec<(f64, Item<Memory>)> =
        best.into_values().filter(|(_, item)| kind.is_none_or(|kind| item.body.kind == kind)).collect();
    all.sort_by(|(one, first), (other, second)| other.total_cmp(one).then_with(|| newer_first(first, second)));
    Ok(all.into_iter().map(|(_, item)| item).take(most).collect())
}

/// Adds how often each was recalled, and how important it is now.
fn weighed(items: Vec<Item<Memory>>) -> Result<Vec<Found>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let found = items.into_iter().map(|item| {
        let recalls = get::<Recalls>(RECALLS, &item.key)?;
        let used = recalls.as_ref().map_or(0, |recalls| recalls.changed_ms).max(item.changed_ms);
        let importance = present_importance(item.body.kind, item.body.importance, now.saturating_sub(used));
        Ok(Found { item, score: None, importance, recalls: recalls.map_or(0, |item| item.body.times) })
    });
    found.collect()
}

/// The newest first; of those that were changed in the same millisecond, the one that was made last.
fn newer_first(one: &Item<Memory>, other: &Item<Memory>) -> Ordering {
    (other.changed_ms, number(&other.key)).cmp(&(one.changed_ms, number(&one.key)))
}

/// Counts what was recalled. Where that cannot be written down, what was found is worth more than the count.
fn count(found: &[Found]) {
    let counted = found.iter().fold(Batch::new(), |batch, Found { item, recalls, .. }| {
        batch.put(RECALLS, &item.key, &Recalls { times: recalls + 1 })
    });
    if !found.is_empty()
        && let Err(failure) = counted.commit()
    {
        notice(format!("it is not counted that these were recalled: {}", failure.message));
    }
}
