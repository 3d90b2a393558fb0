//! `fetch_url`: returns what one URL answers, as much as a model wants to read at once.

mod charset;
mod media;
mod readable;

use crate::media::Media;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Captured, Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};
use url::Url;

const HEAD_CHARS: usize = 8_000;
const BODY_BYTES: u32 = 4 << 20;
const ACCEPT: &str = "text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.8";

struct FetchUrl;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Absolute URL.
    url: String,
    /// `text`: HTML as lines with links, without markup. `raw` (default): the unchanged body.
    #[serde(default, rename = "as")]
    form: Form,
    /// Character to start at; a notice names the next one.
    offset: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    Text,
    #[default]
    Raw,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Page {
    /// Where the answer came from, after redirects.
    url: String,
    /// 200 is success; any other is a result too, with the text that came with it.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Size of the body, at most the 4 MiB that are read.
    bytes: u64,
    /// Absent for binary content.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Tool for FetchUrl {
    const NAME: &str = "fetch_url";
    const TITLE: Option<&str> = Some("Fetch a URL");
    const SUMMARY: &str = "Get a URL and return status, type and text: at most 8,000 characters a call.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You know the URL: a page, an API, a server of yours (http://localhost:3000/).",
        when_not_to_use: "To send data or get a binary file: `curl` in `run_shell`.",
        disambiguation: "`web_search` finds URLs.",
        examples: &[r#"{"url":"https://www.rust-lang.org/","as":"text"}"#],
    };
    type Input = Input;
    type Output = Page;

    fn call(Input { url, form, offset }: Input) -> Result<Page> {
        let url = url.trim();
        if url.is_empty() {
            return Err(Failure::invalid("`url` is blank"));
        }
        let response = Request::get(url).header("accept", ACCEPT).limit(BODY_BYTES).send()?;
        let (page, notices) = read(response, form, offset.unwrap_or(0));
        notices.into_iter().for_each(notice);
        Ok(page)
    }
}

/// Returns the part of an answer that was asked for, and what the text itself does not say.
fn read(response: Response, form: Form, offset: u32) -> (Page, Vec<String>) {
    let content_type = response.header("content-type").map(str::to_owned);
    let Response { status, url, body, truncated, .. } = response;
    let bytes = body.len() as u64;
    let media = Media::of(content_type.as_deref());
    let is_html = media.is_html() || media::starts_as_html(&body);
    let encoding = charset::encoding(&body, media.charset(), is_html);
    if media.is_binary(&body, encoding) {
        let notice = binary(media.name(), bytes, truncated);
        return (Page { url, status, content_type, bytes, text: None }, vec![notice]);
    }
    let source = encoding.decode(&body).0;
    let is_html = is_html || media::starts_as_html(source.as_bytes());
    let text = match form {
        Form::Text if is_html => Cow::Owned(readable::text(&source, Url::parse(&url).ok())),
        _ => source,
    };
    let part = part(&text, offset, truncated);
    let notices = remarks(&text, offset, &part, truncated, is_html && form == Form::Raw);
    (Page { url, status, content_type, bytes, text: Some(part.marked()) }, notices)
}

/// Returns what lies at the offset. `cut`: the text is not the whole of what the server has.
fn part(text: &str, offset: u32, cut: bool) -> Captured {
    let start = text.char_indices().nth(offset as usize).map_or(text.len(), |(at, _)| at);
    let rest = &text[start..];
    let end = rest.char_indices().nth(HEAD_CHARS).map(|(at, _)| at);
    let truncated = end.is_some() || cut;
    Captured { text: rest[..end.unwrap_or(rest.len())].into(), bytes: text.len() as u64, truncated, stored: None }
}

fn remarks(text: &str, offset: u32, part: &Captured, cut: bool, has_markup: bool) -> Vec<String> {
    let (chars, shown) = (text.chars().count(), part.text.chars().count());
    let next = offset as usize + shown;
    let mut remarks = Vec::new();
    if offset > 0 && shown == 0 {
        remarks.push(format!("`offset` {offset} is at or past the end: the text has {chars} characters"));
    } else if next < chars {
        let shorter = if has_markup { ", `as` `text` omits the markup" } else { "" };
        remarks.push(format!("the text has {chars} characters; set `offset` to {next} to read on{shorter}"));
    }
    if cut && next >= chars {
        remarks.push("the body is longer, but only its first 4 MiB are read".into());
    }
    remarks
}

/// Says what a body is that is not text, and how to get it.
fn binary(kind: Option<&str>, bytes: u64, cut: bool) -> String {
    let kind = kind.map_or("unknown type".into(), |kind| format!("type `{kind}`"));
    let size = if cut { "more than 4 MiB".into() } else { format!("{bytes} bytes") };
    format!(
        "the body is binary, of {kind} and {size}, so it is not shown; if you need it, download it with `run_shell` and \
         `curl`"
    )
}

toolcrib_sdk::export!(FetchUrl);

#[cfg(test)]
mod tests;
