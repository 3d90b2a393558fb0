//! `reader`: fetches pages and sends requests through `wasi:http`.
#![cfg(target_arch = "wasm32")]
#![expect(clippy::too_many_arguments, missing_docs, unsafe_code, reason = "what the bindings are made of")]

use wasi::http::outgoing_handler::handle;
use wasi::http::types::{Fields, IncomingBody, Method, OutgoingBody, OutgoingRequest, Scheme, http_error_code};
use wasi::io::streams::{OutputStream, StreamError};

wit_bindgen::generate!({ world: "reader", generate_all });

/// The most that `blocking-write-and-flush` takes at once.
const CHUNK: usize = 4_096;
const MOST_AT_ONCE: u64 = 65_536;

struct Reader;

impl Guest for Reader {
    fn fetch(url: String) -> Result<String, String> {
        let answer = Self::send("GET".into(), url, Vec::new(), Vec::new())?;
        let body = String::from_utf8(answer.body).map_err(|_| "the body is not text")?;
        if answer.status >= 400 {
            return Err(format!("status {}: {body}", answer.status));
        }
        let is_json = answer.headers.iter().any(|(name, value)| name == "content-type" && value.contains("json"));
        match serde_json::from_str::<serde_json::Value>(&body) {
            Ok(value) if is_json => Ok(format!("{value:#}")),
            _ => Ok(body),
        }
    }

    fn send(method: String, url: String, headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Answer, String> {
        let request = request(method, &url, headers)?;
        let outgoing = request.body().map_err(|()| "the request has no body")?;
        let response = handle(request, None).map_err(|error| format!("{error:?}"))?;
        let stream = outgoing.write().map_err(|()| "the body has no stream")?;
        // A server may answer without reading all of the body, or any of it: its answer says more than the failed write.
        let _ = write(&stream, &body);
        drop(stream);
        let _ = OutgoingBody::finish(outgoing, None);
        response.subscribe().block();
        let response = response.get().ok_or("no answer after waiting")?.map_err(|()| "the answer was taken already")?;
        let response = response.map_err(|error| format!("{error:?}"))?;
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()));
        let (body, trailers_were_there) = read(response.consume().map_err(|()| "the body was taken already")?)?;
        Ok(Answer { status: response.status(), headers: headers.collect(), body, trailers_were_there })
    }
}

/// Makes a request without a body. The URL is only cut in pieces: it is the host that judges them.
fn request(method: String, url: &str, headers: Vec<(String, String)>) -> Result<OutgoingRequest, String> {
    let (scheme, rest) = url.split_once("://").ok_or("the URL has no scheme")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = path.split('#').next().unwrap_or_default();
    let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let headers = Fields::from_list(&headers).map_err(|error| format!("{error:?}"))?;
    let request = OutgoingRequest::new(headers);
    request.set_method(&named(method)).map_err(|()| "the method is not valid")?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.into()),
    };
    request.set_scheme(Some(&scheme)).map_err(|()| "the scheme is not valid")?;
    request.set_authority(Some(authority)).map_err(|()| "the host is not valid")?;
    request.set_path_with_query(Some(path)).map_err(|()| "the path is not valid")?;
    Ok(request)
}

fn named(method: String) -> Method {
    match method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        _ => Method::Other(method),
    }
}

fn write(stream: &OutputStream, body: &[u8]) -> Result<(), StreamError> {
    body.chunks(CHUNK).try_for_each(|chunk| stream.blocking_write_and_flush(chunk))
}

/// Reads a body to its end, and whether trailers came after it.
fn read(incoming: IncomingBody) -> Result<(Vec<u8>, bool), String> {
    let stream = incoming.stream().map_err(|()| "the body is being read already")?;
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(MOST_AT_ONCE) {
            Ok(bytes) => body.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(reason(error)),
        }
    }
    drop(stream);
    let trailers = IncomingBody::finish(incoming);
    trailers.subscribe().block();
    match trailers.get() {
        Some(Ok(Ok(trailers))) => Ok((body, trailers.is_some())),
        Some(Ok(Err(error))) => Err(format!("{error:?}")),
        Some(Err(())) | None => Err("no trailers after waiting".into()),
    }
}

fn reason(error: StreamError) -> String {
    match error {
        StreamError::Closed => "the stream is closed".into(),
        StreamError::LastOperationFailed(error) => match http_error_code(&error) {
            Some(code) => format!("{code:?}"),
            None => error.to_debug_string(),
        },
    }
}

export!(Reader);
