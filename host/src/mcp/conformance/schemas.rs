//! Tools that are about their input schema: one of many keywords, one with a parameter that is also a header.

use super::catalog::{Entry, done, said};
use serde_json::{Value, json};

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "json_schema_2020_12_tool",
        summary: "Has a schema of keywords that must not be lost.",
        input: many_keywords,
        call: |_| done(Ok(said("The arguments fit the schema, or nobody looked.").into())),
    },
    Entry {
        name: "test_header_parameter",
        summary: "Has a parameter that clients send as a header, too.",
        input: header_parameter,
        call: |call| done(Ok(said(format!("The region is {}.", call.text("region"))).into())),
    },
];

/// Word for word what the suite looks for.
fn many_keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// The server below compares header and argument before the tool is called.
fn header_parameter() -> Value {
    json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": false,
    })
}
