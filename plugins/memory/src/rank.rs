//! Which memories fit best: lists of ids, each the best first, become one.

use crate::keep::{MemoryType, Relation};
use std::collections::HashMap;

/// What damps the first places of a list: of reciprocal rank fusion (Cormack, Clarke, Büttcher: SIGIR 2009).
const DAMPING: f64 = 60.0;
/// After so many days half of a memory's importance is left, unless it says who somebody is.
const HALF_LIFE_DAYS: f64 = 90.0;
const DAY_MS: f64 = 24.0 * 3600.0 * 1000.0;

impl Relation {
    /// How much what belongs so to a memory matters with it.
    pub(crate) fn factor(self) -> f64 {
        match self {
            Self::Updates => 1.5,
            Self::CausedBy | Self::ResultOf => 1.3,
            Self::RelatedTo => 1.0,
            Self::PartOf => 0.8,
            Self::Contradicts => 0.5,
        }
    }
}

/// How important a memory is now, that was changed or recalled so long ago. Nothing of this is kept.
pub(crate) fn present_importance(kind: MemoryType, importance: f64, age_ms: u64) -> f64 {
    match kind {
        MemoryType::Identity | MemoryType::Human => importance,
        MemoryType::Fact
        | MemoryType::Preference
        | MemoryType::Decision
        | MemoryType::Event
        | MemoryType::Observation
        | MemoryType::Goal
        | MemoryType::Todo => importance * 0.5_f64.powf(age_ms as f64 / DAY_MS / HALF_LIFE_DAYS),
    }
}

/// Fuses lists, each the best first. Ids with their score from 0 to 1: 1 is what every list has at its top.
pub(crate) fn fused(lists: &[Vec<String>]) -> HashMap<String, f64> {
    let used = lists.iter().filter(|list| !list.is_empty()).count();
    let best = used as f64 / (DAMPING + 1.0);
    let mut scores = HashMap::new();
    for list in lists {
        for (place, id) in list.iter().enumerate() {
            *scores.entry(id.clone()).or_insert(0.0) += 1.0 / (DAMPING + 1.0 + place as f64) / best;
        }
    }
    scores
}

/// How much of the words of two texts they have in common, from 0 to 1.
pub(crate) fn likeness(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> std::collections::HashSet<String> {
        text.split(|char: char| !char.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let common = one.intersection(&other).count();
    common as f64 / (one.len() + other.len() - common).max(1) as f64
}

/// The words of a question that say something: those that every text has find every text.
pub(crate) fn telling(text: &str) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let telling: Vec<&str> = words.clone().filter(|word| !is_common(&word.to_lowercase())).take(32).collect();
    match telling.is_empty() {
        true => words.take(32).collect::<Vec<_>>().join(" "),
        false => telling.join(" "),
    }
}

/// Words of English that say little by themselves.
fn is_common(word: &str) -> bool {
    #[rustfmt::skip]
    const COMMON: [&str; 70] = [
        "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "did", "do", "does", "for",
        "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "me", "my", "no", "not", "of", "on",
        "or", "our", "she", "should", "so", "than", "that", "the", "their", "them", "then", "there", "they", "this", "to", "us", "was",
        "we", "were", "what", "when", "where", "which", "who", "whom", "why", "will", "with", "would", "you", "your",
    ];
    COMMON.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn what_is_at_the_top_of_every_list_has_a_score_of_one() {
        let scores = fused(&[list(&["a", "b"]), list(&["a", "c"]), Vec::new()]);
        assert!((scores["a"] - 1.0).abs() < 1e-9);
        assert!(scores["b"] < 0.51 && scores["b"] > 0.0 && (scores["b"] - scores["c"]).abs() < 1e-9);
        assert!(fused(&[]).is_empty());
    }

    #[test]
    fn what_two_lists_have_comes_before_what_one_has_higher_up() {
        let scores = fused(&[list(&["a", "b"]), list(&["c", "b"])]);
        assert!(scores["b"] > scores["a"]);
    }

    #[test]
    fn importance_fades_and_who_somebody_is_stays() {
        let days = |days: u64| days * DAY_MS as u64;
        assert!((present_importance(MemoryType::Fact, 0.6, days(90)) - 0.3).abs() < 1e-9);
        assert_eq!(present_importance(MemoryType::Identity, 1.0, days(9000)).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn only_telling_words_are_looked_for() {
        assert_eq!(telling("When do we deploy to the cluster?"), "deploy cluster");
        assert_eq!(telling("who are you?"), "who are you");
        assert_eq!(telling("?!"), "");
        assert!(likeness("Deploys are on Tuesday", "deploys are on tuesday!") > 0.99);
        assert!(likeness("red", "") < 0.01);
    }
}
