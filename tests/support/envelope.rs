//! Reading answers: envelopes as JSON.

use serde_json::Value;

/// What an answer is: the kind of its error, or `ok`.
#[must_use]
pub fn kind(answer: &Value) -> &str {
    if answer["error"].is_object() { answer["error"]["kind"].as_str().unwrap_or_default() } else { "ok" }
}

/// The result of an answer that has to be a success.
#[must_use]
pub fn result(answer: &Value) -> Value {
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// Kind and message of an answer that has to be a failure.
#[must_use]
pub fn failure(answer: &Value) -> String {
    let error = &answer["error"];
    assert!(error.is_object(), "it succeeded: {answer}");
    format!("{}: {}", error["kind"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

/// The same with its hint.
#[must_use]
pub fn said(answer: &Value) -> String {
    format!("{} ({})", failure(answer), answer["error"]["hint"].as_str().unwrap_or_default())
}

/// What an answer says besides its result, by the tool and by the host.
#[must_use]
pub fn notices(answer: &Value) -> String {
    format!("{}{}", answer["notices"], answer["result"]["notices"])
}

/// What was kept of an output that was cut.
#[must_use]
pub fn kept(answer: &Value) -> Vec<u8> {
    let said = notices(answer);
    let file = said.split("more of it is kept as").nth(1).and_then(|rest| rest.split('`').nth(1));
    std::fs::read(file.unwrap_or_else(|| panic!("nothing was kept: {answer}"))).expect("a kept file")
}
