//! Attacks over `wasi:http`.

use crate::{first_line, number};
use std::fmt::Debug;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, ResponseOutparam, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

type Outcome = Result<String, String>;

/// The most that `blocking-write-and-flush` takes at once.
const CHUNK: usize = 4_096;
/// So many values of that size wasmtime takes in one list: it has 128 KiB. It traps at one more.
const MOST_VALUES: usize = 31;

/// Sends exactly the scheme, authority and path of the three lines. An empty line sets nothing.
pub(crate) fn raw_url(argument: &str) -> Outcome {
    let (scheme, rest) = first_line(argument)?;
    let (authority, path) = first_line(rest)?;
    let request = OutgoingRequest::new(Fields::new());
    let scheme = match scheme {
        "" => None,
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        other => Some(Scheme::Other(other.into())),
    };
    request.set_scheme(scheme.as_ref()).map_err(|()| "set-scheme failed")?;
    request.set_authority(Some(authority).filter(|text| !text.is_empty())).map_err(|()| "set-authority failed")?;
    request.set_path_with_query(Some(path).filter(|text| !text.is_empty())).map_err(|()| "set-path failed")?;
    whole(send(request, None)?)
}

/// Sends the headers of the lines after method and URL, in each way that headers can be set. Says which ones were refused.
pub(crate) fn header(argument: &str) -> Outcome {
    let (method, rest) = first_line(argument)?;
    let (url, lines) = first_line(rest)?;
    let fields = Fields::new();
    let mut said = String::new();
    for line in lines.lines() {
        let (name, value) = line.split_once(": ").ok_or("a header is `name: value`")?;
        // A value with a line break cannot stand in a line.
        let value = value.replace("\\r", "\r").replace("\\n", "\n").into_bytes();
        let listed = Fields::from_list(&[(name.into(), value.clone())]).map(drop);
        let appended = fields.append(name, &value);
        let set = fields.set(name, &[value]);
        for (way, result) in [("from-list", listed), ("append", appended), ("set", set)] {
            if let Err(error) = result {
                said.push_str(&format!("refused {name} ({way}): {error:?}\n"));
            }
        }
    }
    let request = request(&Method::Other(method.into()), url, fields)?;
    match send(request, None).and_then(whole) {
        Ok(answer) => Ok(said + &answer),
        Err(error) => Err(said + &error),
    }
}

/// Changes the headers of a request that is made, through the handle that it gives out.
pub(crate) fn late_header(url: &str) -> Outcome {
    let request = request(&Method::Get, url, Fields::new())?;
    request.headers().append("x-late", b"1").map_err(text)?;
    whole(send(request, None)?)
}

/// Sends as many requests at once as the first line says, and only then waits. All answers are kept.
pub(crate) fn many(argument: &str) -> Outcome {
    let (count, url) = number(argument)?;
    let mut waiting = Vec::new();
    let mut refused = Vec::new();
    for _ in 0..count {
        match start(request(&Method::Get, url, Fields::new())?, None) {
            Ok(response) => waiting.push(response),
            Err(error) => refused.push(error),
        }
    }
    let sent = waiting.len();
    let mut kept = Vec::new();
    for response in waiting {
        match answer(&response) {
            Ok(response) => kept.push(response),
            Err(error) => refused.push(error),
        }
    }
    let reason = refused.first().map_or("", String::as_str);
    Ok(format!("sent {sent}, answered {}, refused {}: {reason}", kept.len(), refused.len()))
}

/// Asks one after another, and never reads what the servers answer.
pub(crate) fn unread(argument: &str) -> Outcome {
    let (count, url) = number(argument)?;
    let mut kept = Vec::new();
    for _ in 0..count {
        match send(request(&Method::Get, url, Fields::new())?, None) {
            Ok(response) => kept.push((response.consume(), response)),
            Err(error) => return Err(format!("{} unread, then {error}", kept.len())),
        }
    }
    Ok(format!("{} unread", kept.len()))
}

/// Reads the beginning of an answer and drops the rest.
pub(crate) fn drop_early(url: &str) -> Outcome {
    let response = send(request(&Method::Get, url, Fields::new())?, None)?;
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let bytes = stream.blocking_read(16).map_err(reason)?;
    Ok(format!("{}, then dropped after {} bytes", response.status(), bytes.len()))
}

/// Begins a body and drops it unfinished.
pub(crate) fn abandon(url: &str) -> Outcome {
    let request = request(&Method::Post, url, Fields::new())?;
    let body = request.body().map_err(|()| "no body")?;
    let response = start(request, None)?;
    let stream = body.write().map_err(|()| "no stream")?;
    stream.blocking_write_and_flush(b"the first half").map_err(reason)?;
    drop(stream);
    drop(body);
    whole(answer(&response)?)
}

/// Sends a whole body, and waits for nothing.
pub(crate) fn leave(argument: &str) -> Outcome {
    let (count, url) = number(argument)?;
    let request = request(&Method::Post, url, Fields::new())?;
    let body = request.body().map_err(|()| "no body")?;
    let response = start(request, None)?;
    let stream = body.write().map_err(|()| "no stream")?;
    let mut left = usize::try_from(count).map_err(text)?;
    while left > 0 {
        stream.blocking_write_and_flush(&vec![b'x'; left.min(CHUNK)]).map_err(reason)?;
        left = left.saturating_sub(CHUNK);
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(text)?;
    drop(response);
    Ok("left".into())
}

/// Writes a body without an end.
pub(crate) fn endless_body(url: &str) -> Outcome {
    let request = request(&Method::Post, url, Fields::new())?;
    let body = request.body().map_err(|()| "no body")?;
    let response = start(request, None)?;
    let stream = body.write().map_err(|()| "no stream")?;
    let mut written = 0;
    let error = loop {
        match stream.blocking_write_and_flush(&[b'x'; CHUNK]) {
            Ok(()) => written += CHUNK,
            Err(error) => break reason(error),
        }
    };
    let answer = answer(&response).and_then(whole).unwrap_or_else(|error| error);
    Err(format!("{written} bytes, then {error}; {answer}"))
}

/// Reads an answer as long as it goes on.
pub(crate) fn endless_answer(url: &str) -> Outcome {
    let response = send(request(&Method::Get, url, Fields::new())?, None)?;
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let mut read = 0;
    loop {
        match stream.blocking_read(1 << 20) {
            Ok(bytes) => read += bytes.len(),
            Err(StreamError::Closed) => return Ok(format!("{read} bytes")),
            Err(error) => return Err(format!("{read} bytes, then {}", reason(error))),
        }
    }
}

/// Sends a body of another length than its header says.
pub(crate) fn wrong_length(url: &str, length: &str, content: &[u8]) -> Outcome {
    let fields = Fields::from_list(&[("content-length".into(), length.into())]).map_err(text)?;
    let request = request(&Method::Post, url, fields)?;
    let body = request.body().map_err(|()| "no body")?;
    let response = start(request, None)?;
    let stream = body.write().map_err(|()| "no stream")?;
    let written = stream.blocking_write_and_flush(content).map_err(reason);
    drop(stream);
    let finished = OutgoingBody::finish(body, None).map_err(text);
    let answer = answer(&response).and_then(whole);
    if written.is_ok() && finished.is_ok() && answer.is_ok() {
        return answer;
    }
    Err(format!("write: {written:?}, finish: {finished:?}, answer: {answer:?}"))
}

/// Announces a body and sends none.
pub(crate) fn missing_body(url: &str) -> Outcome {
    let fields = Fields::from_list(&[("content-length".into(), b"10".into())]).map_err(text)?;
    whole(send(request(&Method::Post, url, fields)?, None)?)
}

/// Sends trailers after a body.
pub(crate) fn trailers(url: &str) -> Outcome {
    let forbidden = Fields::new().append("transfer-encoding", b"chunked");
    let trailers = Fields::from_list(&[("x-trailer".into(), b"1".into()), ("authorization".into(), b"no".into())]);
    let request = request(&Method::Post, url, Fields::new())?;
    let body = request.body().map_err(|()| "no body")?;
    let response = start(request, None)?;
    write(&body, b"a body")?;
    OutgoingBody::finish(body, Some(trailers.map_err(text)?)).map_err(text)?;
    let answer = whole(answer(&response)?)?;
    Ok(format!("forbidden trailer: {forbidden:?}\n{answer}"))
}

/// Sets all three timeouts to the nanoseconds of the first line.
pub(crate) fn timeouts(argument: &str) -> Outcome {
    let (nanoseconds, url) = number(argument)?;
    let options = RequestOptions::new();
    options.set_connect_timeout(Some(nanoseconds)).map_err(|()| "set-connect-timeout failed")?;
    options.set_first_byte_timeout(Some(nanoseconds)).map_err(|()| "set-first-byte-timeout failed")?;
    options.set_between_bytes_timeout(Some(nanoseconds)).map_err(|()| "set-between-bytes-timeout failed")?;
    whole(send(request(&Method::Get, url, Fields::new())?, Some(options))?)
}

/// Adds as many values of 4 KiB to one list of headers as the argument says.
pub(crate) fn fill_fields(argument: &str) -> Outcome {
    let count = argument.parse().map_err(|_| "the argument is not a number")?;
    filled(count)?;
    Ok(format!("{count} values of {CHUNK} bytes"))
}

/// Makes as many lists of headers as the argument says, each nearly as long as may be. The memory is the host's.
pub(crate) fn hoard_fields(argument: &str) -> Outcome {
    let count: usize = argument.parse().map_err(|_| "the argument is not a number")?;
    let mut kept = Vec::new();
    for _ in 0..count {
        kept.push(filled(MOST_VALUES).map_err(|error| format!("{} lists, then {error}", kept.len()))?);
    }
    Ok(format!("{count} lists of headers"))
}

fn filled(count: usize) -> Result<Fields, String> {
    let fields = Fields::new();
    for _ in 0..count {
        fields.append("x-fill", &[b'x'; CHUNK]).map_err(text)?;
    }
    Ok(fields)
}

/// Answers a request that nobody made, through a handle that was not given.
pub(crate) fn guess_outparam(argument: &str) -> Outcome {
    let handle = argument.parse().map_err(|_| "the argument is not a number")?;
    // SAFETY: it is not sound, and need not be.
    let response = unsafe { ResponseOutparam::from_handle(handle) };
    ResponseOutparam::set(response, Err(ErrorCode::LoopDetected));
    Ok("answered".into())
}

/// Makes a request to a URL, which is only cut in pieces.
fn request(method: &Method, url: &str, fields: Fields) -> Result<OutgoingRequest, String> {
    let (scheme, rest) = url.split_once("://").ok_or("the URL has no scheme")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    let request = OutgoingRequest::new(fields);
    request.set_method(method).map_err(|()| "set-method failed")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "set-scheme failed")?;
    request.set_authority(Some(authority)).map_err(|()| "set-authority failed")?;
    request.set_path_with_query(Some(path)).map_err(|()| "set-path failed")?;
    Ok(request)
}

fn start(request: OutgoingRequest, options: Option<RequestOptions>) -> Result<FutureIncomingResponse, String> {
    handle(request, options).map_err(text)
}

fn send(request: OutgoingRequest, options: Option<RequestOptions>) -> Result<IncomingResponse, String> {
    answer(&start(request, options)?)
}

fn answer(response: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    response.subscribe().block();
    response.get().ok_or("no answer after waiting")?.map_err(|()| "the answer was taken already")?.map_err(text)
}

fn write(body: &OutgoingBody, content: &[u8]) -> Result<(), String> {
    let stream: OutputStream = body.write().map_err(|()| "no stream")?;
    stream.blocking_write_and_flush(content).map_err(reason)
}

/// Status and body of an answer.
fn whole(response: IncomingResponse) -> Outcome {
    let body = response.consume().map_err(|()| "no body")?;
    let stream: InputStream = body.stream().map_err(|()| "no stream")?;
    let mut content = Vec::new();
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(bytes) => content.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(format!("{}, then {}", response.status(), reason(error))),
        }
    }
    drop(stream);
    drop(IncomingBody::finish(body));
    Ok(format!("{}\n{}", response.status(), String::from_utf8_lossy(&content)))
}

fn text(error: impl Debug) -> String {
    format!("{error:?}")
}

fn reason(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".into(),
        StreamError::LastOperationFailed(error) => {
            http_error_code(&error).map_or_else(|| error.to_debug_string(), text)
        }
    }
}
