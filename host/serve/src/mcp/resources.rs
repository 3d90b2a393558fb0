//! Output that was cut, and the texts of a toolset, as resources: listed for the session that they are of, and read; output a page at a time.

use super::Inner;
use super::pinned::PINNED;
use super::sessions::is_shared;
use rmcp::ErrorData;
use rmcp::model::{ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::path::Path;
use toolcrib::call::session::Session;
use url::Url;

/// What the addresses of kept output begin with; then its name, which nobody can guess.
const PREFIX: &str = "toolcrib://output/";
/// Where the texts of a toolset are.
const CONTEXT: &str = "toolcrib://context/";
/// Bytes of a page.
const PAGE_BYTES: usize = 256 << 10;

/// Makes links of kept files, and lets the session read them.
pub(super) fn links(kept: &[String], session: &Session) -> Vec<Value> {
    let names = kept.iter().filter_map(|path| Path::new(path).file_name()?.to_str());
    let link = |name: &str| {
        session.remember_output(name);
        let stream = name.rsplit('-').next().unwrap_or(name);
        json!({
            "type": "resource_link",
            "uri": format!("{PREFIX}{name}"),
            "name": name,
            "title": format!("{stream}, as far as it was kept"),
            "description": "what was cut; `?offset=BYTES` reads on",
            "mimeType": "text/plain",
        })
    };
    names.map(link).collect()
}

/// How pages are named.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = json!({ "resourceTemplates": [{
        "uriTemplate": format!("{PREFIX}{{name}}{{?offset}}"),
        "name": "output",
        "title": "Output that was cut",
        "description": format!("pages of {} KiB; `_meta.next` names the one that follows", PAGE_BYTES >> 10),
        "mimeType": "text/plain",
    }], "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private" });
    serde_json::from_value(template).expect("the list is one of the protocol's")
}

impl Inner {
    /// Lists what this session's calls have left.
    pub(super) async fn list_resources(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        // A link is known to whom it was given; without sessions nobody knows who else asks.
        let session = self.sessions.of(context)?;
        // Where there is nothing, there is none to read: a client that has no notes sees no trace of them.
        let pinned = self.pinned(session.clone()).await;
        let names = if is_shared(context) { Vec::new() } else { session.outputs() };
        let resource =
            |name: &String| json!({ "uri": format!("{PREFIX}{name}"), "name": name, "mimeType": "text/plain" });
        let contexts = session.toolset().into_iter().flat_map(|toolset| toolset.context_names());
        let contexts = contexts.map(|(name, about)| {
            json!({ "uri": format!("{CONTEXT}{name}"), "name": name, "description": about, "mimeType": "text/plain" })
        });
        let pinned = (!pinned.is_empty()).then(|| {
            json!({ "uri": PINNED, "name": "pinned", "description": "what you have pinned", "mimeType": "text/plain" })
        });
        let list: Vec<Value> = names.iter().map(resource).chain(contexts).chain(pinned).collect();
        let list = json!({ "resources": list, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        Ok(serde_json::from_value(list).expect("the list is one of the protocol's"))
    }

    /// Reads a page of what this session's calls have left; of others' there is nothing.
    pub(super) async fn read_resource(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let missing = || ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })));
        if let Some(name) = uri.strip_prefix(CONTEXT) {
            return self.read_context(uri, name, context).await;
        }
        if uri == PINNED {
            return whole(uri, &self.pinned(self.sessions.of(context)?).await);
        }
        let (name, offset) = parsed(uri).ok_or_else(missing)?;
        if !self.sessions.of(context)?.outputs().contains(&name) {
            return Err(missing());
        }
        let gone = || {
            ErrorData::resource_not_found(
                "this output was removed to make room for newer output",
                Some(json!({ "uri": uri })),
            )
        };
        let _turn = self.lists.acquire().await;
        self.client.has_room().await;
        let kept = self.host.kept(&name).ok_or_else(gone)?;
        let page = kept.read(offset, PAGE_BYTES).await.map_err(|_| gone())?;
        let read = page.bytes.len() as u64;
        let (text, used) = whole_characters(&page.bytes, offset + read >= page.size);
        let next = (offset + used < page.size).then(|| format!("{PREFIX}{name}?offset={}", offset + used));
        let content = json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": self.host.redacted(&toolcrib::text::sanitize::text(&text)),
            "_meta": { "bytes": page.size, "next": next },
        });
        let result = json!({ "contents": [content], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

impl Inner {
    /// Reads a text that the toolset of the session has for its agent.
    async fn read_context(
        &self,
        uri: &str,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let session = self.sessions.of(context)?;
        let missing = || ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })));
        let toolset = session.toolset().ok_or_else(missing)?;
        let text = toolset.context(name).await.map_err(|failure| {
            ErrorData::resource_not_found(failure.message, failure.hint.map(|hint| json!({ "hint": hint })))
        })?;
        whole(uri, &self.host.redacted(&toolcrib::text::sanitize::text(&text)))
    }
}

/// A text that is read as a whole.
fn whole(uri: &str, text: &str) -> Result<ReadResourceResult, ErrorData> {
    let content = json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    let result = json!({ "contents": [content], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The name and the offset of an address.
fn parsed(uri: &str) -> Option<(String, u64)> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
    let offset = match query {
        "" => 0,
        query => query.strip_prefix("offset=")?.parse().ok()?,
    };
    Url::parse(uri).ok().map(|_| (name.to_owned(), offset))
}

/// The text of a page, without a character that its end cuts, and the bytes that it has.
fn whole_characters(bytes: &[u8], is_last: bool) -> (String, u64) {
    let cut = match std::str::from_utf8(bytes) {
        Err(error) if !is_last && error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    (String::from_utf8_lossy(&bytes[..cut]).into_owned(), cut as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_an_output_and_where_to_begin() {
        assert_eq!(parsed("toolcrib://output/ab-stdout"), Some(("ab-stdout".into(), 0)));
        assert_eq!(parsed("toolcrib://output/ab-stdout?offset=17"), Some(("ab-stdout".into(), 17)));
        for uri in
            ["toolcrib://other/ab", "file:///etc/passwd", "toolcrib://output/ab?offset=-1", "toolcrib://output/ab?x=1"]
        {
            assert_eq!(parsed(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_page_ends_with_a_whole_character() {
        let bytes = "a🙂".as_bytes();
        assert_eq!(whole_characters(&bytes[..3], false), ("a".into(), 1));
        assert_eq!(whole_characters(bytes, true), ("a🙂".into(), 5));
        assert_eq!(whole_characters(b"a\xffb", false).1, 3);
    }
}
