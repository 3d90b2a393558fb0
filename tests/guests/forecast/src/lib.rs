//! `forecast`: asks a server whose name and key are in its configuration.
#![cfg(target_arch = "wasm32")]
#![expect(missing_docs, unsafe_code, reason = "what the bindings are made of")]

use wasi::config::store::{self, Error};
use wasi::http::outgoing_handler::handle;
use wasi::http::types::{Fields, OutgoingRequest, Scheme};
use wasi::io::streams::StreamError;

wit_bindgen::generate!({ world: "forecast", generate_all });

const MOST_AT_ONCE: u64 = 65_536;

struct Forecast;

impl Guest for Forecast {
    fn weather(city: String) -> Result<String, String> {
        let key = setting("OPENWEATHER_API_KEY")?;
        let base = setting("BASE_URL")?;
        let (scheme, base) = match base.strip_prefix("https://") {
            Some(base) => (Scheme::Https, base),
            None => (Scheme::Http, base.trim_start_matches("http://")),
        };
        let (status, body) = get(&scheme, base, &format!("/data?q={}&appid={key}", escaped(&city)))?;
        if status == 200 { Ok(body) } else { Err(format!("status {status}: {body}")) }
    }
}

fn setting(key: &str) -> Result<String, String> {
    match store::get(key) {
        Ok(value) => value.ok_or(format!("`{key}` is not set")),
        Err(Error::Upstream(text) | Error::Io(text)) => Err(text),
    }
}

/// Returns status and body of what a server answers.
fn get(scheme: &Scheme, authority: &str, path: &str) -> Result<(u16, String), String> {
    let headers = Fields::from_list(&[]).map_err(|error| format!("{error:?}"))?;
    let request = OutgoingRequest::new(headers);
    request.set_scheme(Some(scheme)).map_err(|()| "the scheme is not valid")?;
    request.set_authority(Some(authority)).map_err(|()| "the host is not valid")?;
    request.set_path_with_query(Some(path)).map_err(|()| "the path is not valid")?;
    let response = handle(request, None).map_err(|error| format!("{error:?}"))?;
    response.subscribe().block();
    let response = response.get().ok_or("no answer after waiting")?.map_err(|()| "the answer was taken already")?;
    let response = response.map_err(|error| format!("{error:?}"))?;
    let incoming = response.consume().map_err(|()| "the body was taken already")?;
    let stream = incoming.stream().map_err(|()| "the body is being read already")?;
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(MOST_AT_ONCE) {
            Ok(bytes) => body.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => return Err(error.to_debug_string()),
        }
    }
    Ok((response.status(), String::from_utf8(body).map_err(|_| "the body is not text")?))
}

/// Returns a text as the value of a query has it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

export!(Forecast);
