//! Output that was cut, and the texts of a toolset, as resources: listed for the session that they are of, and read; output a page at a time.
//! Beside them are the resources of servers of others, which are read by a tool of each server.

use super::Inner;
use super::call::{Outcome, refused};
use super::pinned::PINNED;
use super::sessions::is_shared;
use super::tools::FRESH_MS;
use base::text::sanitize;
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use toolcrib::call::CallContext;
use toolcrib::call::session::Session;
use toolcrib::envelope::{Content, Failure, Output};
use toolcrib::tools::definition::Tool;
use upstream::{address, parted};
use url::Url;

/// What the addresses of kept output begin with; then its name, which nobody can guess.
const PREFIX: &str = "toolcrib://output/";
/// Where the texts of a toolset are.
const CONTEXT: &str = "toolcrib://context/";
/// Resources of a page of the list.
const PAGE_ENTRIES: usize = 500;
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

impl Inner {
    /// How pages are named, and the resources of servers of others.
    pub(super) async fn resource_templates(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let own = json!({
            "uriTemplate": format!("{PREFIX}{{name}}{{?offset}}"),
            "name": "output",
            "title": "Output that was cut",
            "description": format!("pages of {} KiB; `_meta.next` names the one that follows", PAGE_BYTES >> 10),
            "mimeType": "text/plain",
        });
        let (_, readers) = self.readers(context).await?;
        let of_server = |reader: &Arc<Tool>| {
            let server = reader.plugin().name();
            json!({
                "uriTemplate": address(server, "{+uri}"),
                "name": server,
                "title": format!("Resources of {server}"),
                "description": format!("`uri` is the server's own URI; the tool `{}` lists these", reader.name()),
            })
        };
        let all: Vec<Value> = [own].into_iter().chain(readers.iter().map(of_server)).collect();
        let list =
            json!({ "resourceTemplates": all, "resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "private" });
        Ok(serde_json::from_value(list).expect("the list is one of the protocol's"))
    }

    /// The tools that can be called and read resources of servers of others.
    async fn readers(&self, context: &RequestContext<RoleServer>) -> Result<(CallContext, Vec<Arc<Tool>>), ErrorData> {
        let session = self.sessions.of(context)?;
        if !self.catalog.current().plugins().any(|plugin| plugin.reader.is_some()) {
            return Ok((self.context.clone().session(session), Vec::new()));
        }
        let (called, mut tools) = self.callable(session).await;
        tools.retain(|tool| tool.is_reader());
        Ok((called, tools))
    }

    /// The resources that servers of others have listed last. None is asked for a list.
    async fn listed_by_servers(&self, context: &RequestContext<RoleServer>) -> Result<Vec<Value>, ErrorData> {
        let (called, readers) = self.readers(context).await?;
        let called = called.principal(self.principal(context));
        let mut all = Vec::new();
        for reader in readers {
            let server = reader.plugin().name();
            let listed = self.host.listed_resources(&reader, &called);
            all.extend(listed.into_iter().filter_map(|listed| self.of_server(server, &listed)));
        }
        Ok(all)
    }

    /// A resource of the list of a server, under the address by which it is read here. Secrets are removed that became known since it was listed.
    fn of_server(&self, server: &str, listed: &Value) -> Option<Value> {
        let uri = listed.get("uri")?.as_str().filter(|uri| self.host.redacted(uri) == *uri)?;
        let mut resource = json!({ "uri": address(server, uri), "name": uri });
        for (key, text) in listed.as_object()?.iter().filter(|(key, _)| *key != "uri") {
            resource[key] = self.host.redacted(text.as_str()?).into();
        }
        Some(resource)
    }

    /// Reads a resource of a server of others, by the tool that is for that.
    async fn read_of_server(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let tools = self.catalog.current();
        let named = parted(&uri).and_then(|(server, own)| {
            let plugin = tools.plugins().find(|plugin| plugin.id.is_upstream() && plugin.name() == server)?;
            Some((plugin.reader.clone()?, own.to_owned()))
        });
        let Some((reader, own)) = named else {
            return Err(ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri }))));
        };
        let mut params = CallToolRequestParams::new(reader);
        params.arguments = Some(Map::from_iter([("uri".to_owned(), own.into())]));
        (params.request_state, params.input_responses) = (request.request_state, request.input_responses);
        match self.call_for(params, context).await? {
            Outcome::InputRequired(wanted) => Ok(wanted.into()),
            Outcome::Ended(envelope, session) => {
                let kept = links(&envelope.kept, &session);
                let (server, _) = parted(&uri).unwrap_or_default();
                match envelope.outcome {
                    Ok(output) => contents(server, output, &kept).map(ReadResourceResponse::from),
                    Err(failure) if is_missing(&failure) => {
                        Err(ErrorData::resource_not_found(failure.message, Some(json!({ "uri": uri }))))
                    }
                    Err(failure) => Err(refused(failure)),
                }
            }
        }
    }

    /// Lists what this session's calls have left.
    pub(super) async fn list_resources(
        &self,
        cursor: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let _turn = self.lists.acquire().await;
        self.client.has_room().await;
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
        let of_servers = self.listed_by_servers(context).await?;
        let list: Vec<Value> = names.iter().map(resource).chain(contexts).chain(pinned).chain(of_servers).collect();
        let begin = match cursor {
            None => 0,
            Some(last) => {
                let place = list.iter().position(|resource| resource["uri"] == last.as_str());
                let unknown = || ErrorData::invalid_params("the list has changed: begin again without `cursor`", None);
                place.ok_or_else(unknown)? + 1
            }
        };
        let end = list.len().min(begin + PAGE_ENTRIES);
        let mut page =
            json!({ "resources": list[begin..end], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        if end < list.len() {
            page["nextCursor"] = list[end - 1]["uri"].clone();
        }
        Ok(serde_json::from_value(page).expect("the list is one of the protocol's"))
    }

    /// Reads a resource, whatever it is.
    pub(super) async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match parted(&request.uri) {
            Some(_) => self.read_of_server(request, context).await,
            None => self.read_own(&request.uri, context).await.map(ReadResourceResponse::from),
        }
    }

    /// Reads a page of what this session's calls have left; of others' there is nothing.
    async fn read_own(&self, uri: &str, context: &RequestContext<RoleServer>) -> Result<ReadResourceResult, ErrorData> {
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
        if let Some(kind) = self.host.held_back(&text) {
            let message = format!("this page holds what looks like {kind}, so it is held back");
            return Err(ErrorData::invalid_request(message, Some(json!({ "uri": uri }))));
        }
        let next = (offset + used < page.size).then(|| format!("{PREFIX}{name}?offset={}", offset + used));
        let content = json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": self.host.redacted(&sanitize::text(&text)),
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
        let text = toolset.context(name, &self.host.policy()).await.map_err(|failure| {
            ErrorData::resource_not_found(failure.message, failure.hint.map(|hint| json!({ "hint": hint })))
        })?;
        whole(uri, &self.host.redacted(&sanitize::text(&text)))
    }
}

/// Whether there is no such resource: by the code of the older eras, or by that of the newer one.
fn is_missing(failure: &Failure) -> bool {
    let code = failure.data.as_ref().and_then(|data| data.get("code")?.as_i64());
    matches!(code, Some(-32002 | -32602))
}

/// What was read of a server. `kept` are links to the files that have all of texts that were cut.
fn contents(server: &str, output: Output, kept: &[Value]) -> Result<ReadResourceResult, ErrorData> {
    let mut result = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    if !output.notices.is_empty() {
        result["_meta"] = json!({ "notices": output.notices });
    }
    let mut parts = output.content.into_iter();
    let link = |file: &str| {
        let name = Path::new(file).file_name()?.to_str()?;
        kept.iter().find(|link| link["name"] == name).map(|link| link["uri"].clone())
    };
    let read = output.result.get("contents").and_then(Value::as_array).into_iter().flatten();
    let contents = read.filter_map(|read| {
        let text = |key: &str| read.get(key).and_then(Value::as_str);
        let mut content = json!({ "uri": address(server, text("uri")?) });
        if let Some(kind) = text("mimeType") {
            content["mimeType"] = kind.into();
        }
        if let Some(text) = text("text") {
            content["text"] = text.into();
            if read.get("whole").is_some() {
                content["_meta"] = json!({ "next": read["whole"].as_str().and_then(link) });
            }
        } else {
            match parts.next()? {
                Content::Image(_, bytes) | Content::Audio(_, bytes) => content["blob"] = BASE64.encode(bytes).into(),
                Content::Text(_) | Content::Link(_) => return None,
            }
        }
        Some(content)
    });
    result["contents"] = contents.collect();
    serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
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
