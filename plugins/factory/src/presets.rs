//! What an agent can be made from: presets, and what is known of the people and their work.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Results of a search: usually, and at most.
const RESULTS: u64 = 10;
const MOST_RESULTS: u64 = 25;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Preset {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Presets {
    presets: Vec<Preset>,
}

pub(crate) struct ListPresets;

impl Tool for ListPresets {
    const NAME: &str = "factory_list_presets";
    const TITLE: Option<&str> = Some("List presets");
    const SUMMARY: &str = "List the presets for new agents.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Somebody wants a new agent.",
        when_not_to_use: "You know which preset you want: use `factory_load_preset`.",
        disambiguation: "",
        examples: &[],
    };
    const EVENTS: &[&str] = &["factory.presets"];
    type Input = ();
    type Output = Presets;

    fn call((): ()) -> Result<Presets> {
        hand_over("factory.presets", &serde_json::Map::new())
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadInput {
    /// Id of the preset.
    preset_id: String,
}

/// The draft of an agent.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Loaded {
    /// Who it is and how it speaks.
    soul_content: String,
    /// What it is and what it is for.
    identity_content: String,
    /// How it is to act.
    role_content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(crate) struct LoadPreset;

impl Tool for LoadPreset {
    const NAME: &str = "factory_load_preset";
    const TITLE: Option<&str> = Some("Load a preset");
    const SUMMARY: &str = "Load a preset: the three texts of an agent, as a draft.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A preset is close to what is wanted.",
        when_not_to_use: "",
        disambiguation: "Adapt the texts, then pass them to `factory_create_agent`.",
        examples: &[r#"{"preset_id":"researcher"}"#],
    };
    const EVENTS: &[&str] = &["factory.preset"];
    type Input = LoadInput;
    type Output = Loaded;

    fn call(input: LoadInput) -> Result<Loaded> {
        check_text("preset_id", &input.preset_id)?;
        hand_over("factory.preset", &input)
    }
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MemoryType {
    Fact,
    Preference,
    Decision,
    Identity,
    Event,
    Observation,
    Goal,
    Todo,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// Words to search for.
    query: String,
    /// Number of results: 1 to 25, default 10.
    max_results: Option<u64>,
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
}

#[derive(Serialize)]
struct Search {
    query: String,
    max_results: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_type: Option<MemoryType>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Found {
    results: Vec<Memory>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Memory {
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_type: Option<String>,
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
}

pub(crate) struct SearchContext;

impl Tool for SearchContext {
    const NAME: &str = "factory_search_context";
    const TITLE: Option<&str> = Some("Search what is known");
    const SUMMARY: &str = "Search the main agent's memories of people and their work.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Before you write the texts of a new agent.",
        when_not_to_use: "To recall something for yourself: use `memory_recall`.",
        disambiguation: "",
        examples: &[r#"{"query":"how we release, and who decides","memory_type":"decision"}"#],
    };
    const EVENTS: &[&str] = &["factory.context"];
    type Input = SearchInput;
    type Output = Found;

    fn call(SearchInput { query, max_results, memory_type }: SearchInput) -> Result<Found> {
        check_text("query", &query)?;
        let wanted = max_results.unwrap_or(RESULTS);
        let most = wanted.clamp(1, MOST_RESULTS);
        if most != wanted {
            notice(format!("`max_results` is 1 to {MOST_RESULTS}: {most} was used"));
        }
        hand_over("factory.context", &Search { query, max_results: most, memory_type })
    }
}
