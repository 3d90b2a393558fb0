//! Checks that the headers of a message agree with its body: proxies decide by the headers, the handler by the body.
//!
//! rmcp checks that required headers are present, and the version; this module refuses contradictions.

use super::super::arguments::Written;
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// How headers begin that repeat arguments of a tool.
const PARAMETER: &str = "mcp-param-";
pub(super) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// A message, as far as headers speak of it. A key that appears twice can be read in two ways, and is refused.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Object<Params>>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    name: Option<Value>,
    uri: Option<Value>,
    #[serde(rename = "taskId")]
    task_id: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<Object<Meta>>,
    arguments: Option<Written>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<ProtocolVersion>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
}

/// Why a message is not accepted: an error of JSON-RPC.
#[derive(Debug)]
pub(super) struct Fault(Value);

impl Fault {
    fn new(id: Option<&Value>, error: ErrorData) -> Self {
        let mut json = json!({ "jsonrpc": "2.0", "error": error });
        if let Some(id) = id.filter(|id| id.is_string() || id.is_number()) {
            json["id"] = id.clone();
        }
        Self(json)
    }

    pub(super) fn to_json(&self) -> &Value {
        &self.0
    }
}

impl Message {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When it is not one JSON object, or says something twice.
    pub(super) fn read(body: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(body).map(|Object(message)| message).map_err(|error| {
            let code = if error.is_data() { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
            let told = format!("the body is not a message of JSON-RPC: {error}");
            Fault::new(None, ErrorData::new(code, told, None))
        })
    }

    /// What it asks for; a response asks for nothing.
    pub(super) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Checks that the headers say what the message says.
    ///
    /// # Errors
    /// When one of them does not, or appears twice.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Fault> {
        let mismatch = |told: String| Fault::new(self.id.as_ref(), ErrorData::header_mismatch(told, None));
        let is_several = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
        if let Some(name) = [VERSION, METHOD, NAME, SESSION_ID].iter().find(|name| is_several(name)) {
            return Err(mismatch(format!("the header `{name}` appears more than once")));
        }
        let (method, name) = (headers.get(METHOD), headers.get(NAME));
        if method.is_some_and(|said| self.method().is_none_or(|method| said != method)) {
            return Err(mismatch("the header `mcp-method` does not match the body".into()));
        }
        if name.is_some_and(|said| decoded(said).is_none_or(|said| self.name() != Some(&said))) {
            return Err(mismatch("the header `mcp-name` does not match the body".into()));
        }
        self.check_version()
    }

    /// A request that carries all that `initialize` would say has no session. rmcp accepts that at any version; here it is refused at
    /// versions that have `initialize`, by which a client could be asked back.
    fn check_version(&self) -> Result<(), Fault> {
        let meta = self.params().and_then(|params| params.meta.as_ref());
        let Some(Object(Meta { version: Some(version), capabilities: Some(_) })) = meta else { return Ok(()) };
        if !version.has_initialize() {
            return Ok(());
        }
        let error = ErrorData::unsupported_protocol_version(version.clone(), &[ProtocolVersion::NO_INITIALIZE]);
        Err(Fault::new(self.id.as_ref(), error))
    }

    /// Whether nothing about a request is left to be judged but its parameters: it calls a tool, and its headers say all that they have to
    /// say at the version without sessions, in the plainest form. What says it otherwise may be as good, and is the transport's to judge.
    pub(super) fn is_plain_call(&self, headers: &HeaderMap) -> bool {
        let is = |name: HeaderName, value: &str| headers.get(name).is_some_and(|said| said == value);
        let meta = self.params().and_then(|params| params.meta.as_ref());
        let version = meta.and_then(|Object(meta)| meta.version.as_ref());
        let mut accepted = headers.get_all(ACCEPT).iter();
        let accepted = accepted.next().filter(|_| accepted.next().is_none()).and_then(|value| value.to_str().ok());
        let accepts = |kind: &str| accepted.is_some_and(|list| list.split(',').any(|entry| entry.trim() == kind));
        version == Some(&ProtocolVersion::NO_INITIALIZE)
            && self.method() == Some("tools/call")
            && is(VERSION, ProtocolVersion::NO_INITIALIZE.as_str())
            && is(METHOD, "tools/call")
            && headers.get(NAME).and_then(|said| said.to_str().ok()).is_some_and(|said| self.name() == Some(said))
            && is(CONTENT_TYPE, JSON)
            && accepts(JSON)
            && accepts(EVENTS)
            && !headers.contains_key(SESSION_ID)
            // Nor a page's: its request passes the transport's checks as well.
            && !headers.contains_key(ORIGIN)
            && !headers.keys().any(|name| name.as_str().starts_with(PARAMETER))
    }

    /// Whether it calls a tool with arguments that are no object as they stand.
    pub(super) fn has_odd_arguments(&self) -> bool {
        let written = self.params().and_then(|params| params.arguments);
        self.method() == Some("tools/call") && written == Some(Written::InAnotherWay)
    }

    fn params(&self) -> Option<&Params> {
        self.params.as_ref().map(|Object(params)| params)
    }

    fn name(&self) -> Option<&str> {
        let Params { name, uri, task_id, .. } = self.params()?;
        let name = match self.method()? {
            "tools/call" | "prompts/get" => name,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => task_id,
            _ => return None,
        };
        name.as_ref()?.as_str()
    }
}

/// The text of a header, which is in base64 where it is not of ASCII.
fn decoded(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded).ok()?).ok(),
        None => Some(text.into()),
    }
}

/// A JSON object. Serde would also accept a list, whose values another reader would put in another order.
#[derive(Default)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"time","arguments":{}}}"#;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs =
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    fn check(body: &str, pairs: &[(HeaderName, &str)]) -> Result<(), i32> {
        let checked = Message::read(body.as_bytes()).and_then(|message| message.check(&headers(pairs)));
        checked.map_err(|fault| fault.to_json()["error"]["code"].as_i64().unwrap().try_into().unwrap())
    }

    #[test]
    fn headers_that_say_what_the_body_says_pass() {
        for pairs in [
            &[][..],
            &[(METHOD, "tools/call")],
            &[(METHOD, "tools/call"), (NAME, "time")],
            &[(NAME, "=?base64?dGltZQ==?=")],
        ] {
            assert_eq!(check(CALL, pairs), Ok(()), "{pairs:?}");
        }
        let read = r#"{"method":"resources/read","params":{"uri":"a:ü","name":"b"}}"#;
        assert_eq!(check(read, &[(NAME, "=?base64?YTrDvA==?=")]), Ok(()));
        assert_eq!(check(r#"{"method":"tasks/get","params":{"taskId":"1"}}"#, &[(NAME, "1")]), Ok(()));
        assert_eq!(check(r#"{"id":1,"result":{}}"#, &[]), Ok(()));
        assert_eq!(check(r#"{"id":1,"method":"ping","params":null}"#, &[(METHOD, "ping")]), Ok(()));
    }

    #[test]
    fn headers_that_say_something_else_do_not() {
        for pairs in [
            &[(METHOD, "tools/list")][..],
            &[(METHOD, "TOOLS/CALL")],
            &[(METHOD, "")],
            &[(METHOD, "=?base64?dG9vbHMvY2FsbA==?=")],
            &[(METHOD, "tools/call"), (METHOD, "tools/call")],
            &[(NAME, "read_file")],
            &[(NAME, "Time")],
            &[(NAME, "")],
            &[(NAME, "tïme")],
            &[(NAME, "=?base64?dGltZQ?=")],
            &[(NAME, "=?BASE64?dGltZQ==?=")],
            &[(NAME, "=?base64?/w==?=")],
            &[(NAME, "time"), (NAME, "read_file")],
            &[(VERSION, "2026-07-28"), (VERSION, "2025-11-25")],
            &[(SESSION_ID, "a"), (SESSION_ID, "b")],
        ] {
            assert_eq!(check(CALL, pairs), Err(ErrorCode::HEADER_MISMATCH.0), "{pairs:?}");
        }
        let list = r#"{"id":1,"method":"tools/list","params":{"name":"time"}}"#;
        assert_eq!(check(list, &[(NAME, "time")]), Err(ErrorCode::HEADER_MISMATCH.0));
        assert_eq!(check(r#"{"id":1,"result":{}}"#, &[(METHOD, "tools/call")]), Err(ErrorCode::HEADER_MISMATCH.0));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for body in [
            r#"{"method":"tools/list","method":"tools/call"}"#,
            r#"{"method":"tools/list","m\u0065thod":"tools/call"}"#,
            r#"{"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"method":"tools/call","params":{"_meta":{},"_meta":{}}}"#,
            r#"{"method":"tools/call","params":["time"]}"#,
            r#"{"method":"tools/call","params":{"_meta":[]}}"#,
            r#"{"method":1}"#,
            r#"[1,"tools/call",{"name":"time"}]"#,
            r#"[{"method":"tools/list"}]"#,
            "null",
        ] {
            assert_eq!(check(body, &[]), Err(ErrorCode::INVALID_REQUEST.0), "{body}");
        }
        for body in ["", "{", "{} {}", "{\"method\":\"\u{0}\"}", &"[".repeat(1000), &r#"{"a":"#.repeat(1000)] {
            assert!(check(body, &[]).is_err(), "{body}");
        }
    }

    #[test]
    fn an_older_version_cannot_be_spoken_without_initialize() {
        let body = |version: &str, rest: &str| {
            let meta = format!(r#"{{"io.modelcontextprotocol/protocolVersion":"{version}"{rest}}}"#);
            format!(r#"{{"id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#)
        };
        let whole = r#","io.modelcontextprotocol/clientCapabilities":{}"#;
        assert_eq!(check(&body("2025-11-25", whole), &[]), Err(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0));
        assert_eq!(check(&body("2026-07-28", whole), &[]), Ok(()));
        assert_eq!(check(&body("2025-11-25", ""), &[]), Ok(()));
    }

    #[test]
    fn a_fault_bears_the_id_of_its_message() {
        let told = |id: &str| {
            let body = CALL.replace("\"id\":7", id);
            let message = Message::read(body.as_bytes()).unwrap_or_else(|fault| panic!("{fault:?}"));
            message.check(&headers(&[(METHOD, "x")])).unwrap_err().to_json()["id"].clone()
        };
        assert_eq!((told("\"id\":7"), told("\"id\":\"a\""), told("\"id\":{}")), (json!(7), json!("a"), Value::Null));
    }
}
