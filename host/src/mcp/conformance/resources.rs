//! The resources and the one template of them.

use super::content::PNG;
use rmcp::model::{ErrorData, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

pub(super) fn all() -> Vec<Resource> {
    vec![
        resource("test://static-text", "static-text", "A text that never changes.", "text/plain"),
        resource("test://static-binary", "static-binary", "An image that never changes.", "image/png"),
        resource("test://watched-resource", "watched-resource", "A text that may be watched.", "text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "template");
    vec![template.with_description("Data with an id in it.").with_mime_type("application/json")]
}

fn resource(uri: &str, name: &str, description: &str, mime_type: &str) -> Resource {
    Resource::new(uri, name).with_description(description).with_mime_type(mime_type)
}

/// # Errors
///
/// There is no resource of that URI.
pub(super) fn read(uri: &str) -> Result<ResourceContents, ErrorData> {
    match uri {
        "test://static-text" => Ok(ResourceContents::text("This is the content of the static text resource.", uri)),
        "test://static-binary" => Ok(ResourceContents::blob(PNG, uri).with_mime_type("image/png")),
        "test://watched-resource" => Ok(ResourceContents::text("This is the content of the watched resource.", uri)),
        _ => id(uri).map(|id| data(uri, id)).ok_or_else(|| {
            ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(json!({"uri": uri})))
        }),
    }
}

/// The part of the URI that the template leaves open.
fn id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn data(uri: &str, id: &str) -> ResourceContents {
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
}
