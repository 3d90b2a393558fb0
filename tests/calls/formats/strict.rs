//! Schemas of every shape in the strict modes, and what is said of those that have none.

use super::golden::assert_golden;
use formats::schema::portable;
use formats::strict::{ANTHROPIC, Dialect, OPENAI};
use serde_json::{Map, Value, json};
use toolcrib::envelope::Failure;
use toolcrib::formats::{Definitions, Effects, Format, Offer, Strictness};
use toolcrib::tools::definition::{Definition, Guidance};

/// Schemas as people and generators write them, by name.
fn schemas() -> Map<String, Value> {
    let text = include_str!("schemas.json");
    serde_json::from_str(text).expect("an object of schemas")
}

fn said(dialect: &Dialect) -> Value {
    let texts = |notes: &[toolcrib::formats::Note]| notes.iter().map(ToString::to_string).collect::<Value>();
    let say = |(name, schema): (&String, &Value)| {
        let strict = dialect.say(&portable(schema).schema, schema);
        let said = match strict.impossible.as_slice() {
            [] => json!({ "schema": strict.schema, "lost": texts(&strict.lost) }),
            impossible => json!({ "impossible": texts(impossible) }),
        };
        (name.clone(), said)
    };
    schemas().iter().map(say).collect::<Map<_, _>>().into()
}

#[test]
fn strict_schemas_are_the_goldens() {
    assert_golden("strict-openai", &said(&OPENAI));
    assert_golden("strict-anthropic", &said(&ANTHROPIC));
}

#[test]
fn every_strict_schema_is_a_schema() {
    for dialect in [OPENAI, ANTHROPIC] {
        for (name, said) in said(&dialect).as_object().expect("schemas") {
            let is_schema = said.get("schema").is_none_or(jsonschema::draft202012::meta::is_valid);
            assert!(is_schema, "{name}: {said}");
        }
    }
}

fn definition(name: &str, input_schema: Value) -> Definition {
    let guidance = Guidance {
        when_to_use: String::new(),
        when_not_to_use: String::new(),
        disambiguation: String::new(),
        examples: Vec::new(),
    };
    let (title, usage, output_schema, events) = (None, None, None, Vec::new());
    let summary = "Test.".into();
    let name = name.into();
    Definition { name, title, summary, guidance, usage, input_schema, output_schema, events, is_of_command: false }
}

fn offer(definition: &Definition) -> Offer<'_> {
    let effects = Effects { writes: false, reaches_out: false };
    Offer { definition, description: &definition.summary, effects, keeps_its_word: true }
}

fn define(format: Format, strictness: Strictness, tools: &[Definition]) -> Result<Definitions, Failure> {
    format.definitions(tools.iter().map(offer).collect(), strictness)
}

fn listed(definitions: &Definitions) -> &Value {
    definitions.json.as_ref().expect("a list")
}

fn three() -> [Definition; 3] {
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let lossy = json!({ "type": "object", "properties": { "a": { "type": "string", "minLength": 1 } } });
    let open = json!({ "type": "object", "properties": { "a": { "type": "object", "additionalProperties": true } } });
    [definition("plain", plain), definition("open", open), definition("lossy", lossy)]
}

#[test]
fn auto_leaves_a_tool_plain_where_strict_would_lose_something() {
    let Definitions { json, report } =
        define(Format::OpenaiResponses, Strictness::Auto, &three()).expect("definitions");
    let json = json.expect("a list");
    let strict: Vec<(&Value, &Value)> =
        json.as_array().expect("a list").iter().map(|tool| (&tool["name"], &tool["strict"])).collect();
    assert_eq!(
        strict,
        [(&json!("lossy"), &json!(false)), (&json!("open"), &json!(false)), (&json!("plain"), &json!(true))]
    );
    assert_eq!(json[0]["parameters"], three()[2].input_schema);
    assert_eq!(
        report,
        [
            "`lossy` is not strict: /properties/a: a strict mode cannot enforce `minLength`",
            "`open` is not strict: /properties/a: an object with keys that are not listed",
        ]
    );
}

#[test]
fn on_refuses_the_list_for_a_tool_that_cannot_be_said() {
    for format in [Format::OpenaiChat, Format::Anthropic] {
        let failure = define(format, Strictness::On, &three()).err().expect("`open` cannot be said");
        let message = format!(
            "the strict mode of `{}` cannot express `open`: /properties/a: an object with keys that are not listed",
            format.name()
        );
        assert_eq!((failure.kind.exit_code(), failure.message), (2, message));
        let definitions = define(format, Strictness::On, &[three()[2].clone()]).expect("a loss is no fault");
        assert_eq!(definitions.report, ["`lossy`: /properties/a: a strict mode cannot enforce `minLength`"]);
        assert!(listed(&definitions)[0].to_string().contains("{minLength: 1}"));
    }
}

#[test]
fn without_a_tool_there_is_no_list_but_that_of_mcp() {
    for format in [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
        let definitions = define(format, Strictness::Auto, &[]).expect("definitions");
        assert_eq!(definitions.json, None);
        assert_eq!(definitions.report, ["no tool can be called: omit the list of tools from the request"]);
    }
    let definitions = define(Format::Mcp, Strictness::Auto, &[]).expect("definitions");
    assert_eq!((listed(&definitions), definitions.report.len()), (&json!({ "tools": [] }), 0));
}

#[test]
fn off_leaves_schemas_alone() {
    for format in [Format::OpenaiChat, Format::Anthropic, Format::Mcp] {
        let definitions = define(format, Strictness::Off, &three()).expect("definitions");
        assert!(listed(&definitions).to_string().contains("\"minLength\":1"));
        assert_eq!(definitions.report, [""; 0]);
    }
}

#[test]
fn references_that_stay_are_told() {
    let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } });
    let list =
        json!({ "type": "object", "properties": { "list": { "$ref": "#/$defs/node" } }, "$defs": { "node": node } });
    let lost = json!({ "type": "object", "properties": { "list": { "$ref": "#nowhere" } } });
    let tools = [definition("list", list), definition("lost", lost)];
    let definitions = define(Format::OpenaiChat, Strictness::Auto, &tools).expect("definitions");
    assert_eq!(listed(&definitions)[0]["function"]["parameters"]["$defs"]["node"]["type"], "object");
    assert_eq!(definitions.report[0], "`list`: #/$defs/node: refers to itself and stays a reference");
    let stays = "`lost`: its references stay as they are: `#nowhere` points to nothing in it";
    assert!(definitions.report.contains(&stays.to_owned()), "{:?}", definitions.report);
    assert_eq!(listed(&definitions)[1]["function"]["strict"], false);
}

#[test]
fn gemini_takes_no_name_that_starts_with_a_digit() {
    let schema = json!({ "type": "object" });
    let tools = [definition("1st", schema.clone()), definition("-a", schema.clone()), definition("_a", schema)];
    let definitions = define(Format::Gemini, Strictness::Auto, &tools).expect("definitions");
    assert_eq!(listed(&definitions)["functionDeclarations"].as_array().map(Vec::len), Some(1));
    let why = "is omitted: a name has to start with a letter or `_` here";
    assert_eq!(definitions.report, [format!("`-a` {why}"), format!("`1st` {why}")]);
    assert_eq!(define(Format::Anthropic, Strictness::Auto, &tools).expect("definitions").report, [""; 0]);
}

#[test]
fn a_description_that_some_servers_refuse_is_told() {
    let mut long = definition("long", json!({ "type": "object" }));
    long.summary = "ä".repeat(1025);
    let report = define(Format::OpenaiChat, Strictness::Auto, &[long.clone()]).expect("definitions").report;
    let line = "`long`: its description has 1025 characters, and some servers of this API refuse more than 1024";
    assert_eq!(report, [line]);
    assert_eq!(define(Format::Gemini, Strictness::Auto, &[long]).expect("definitions").report, [""; 0]);
}
