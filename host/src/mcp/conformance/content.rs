//! Tools that answer with each kind of content.

use super::catalog::{Answer, Entry, done, said};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// A red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// Four samples of silence.
const WAV: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

pub(super) const TOOLS: &[Entry] = &[
    Entry::plain("test_simple_text", "Answers with one text.", |_| {
        done(Ok(said("This is a simple text response for testing.").into()))
    }),
    Entry::plain("test_image_content", "Answers with an image.", |_| success(vec![png()])),
    Entry::plain("test_audio_content", "Answers with a sound.", |_| {
        success(vec![ContentBlock::audio(WAV, "audio/wav")])
    }),
    Entry::plain("test_embedded_resource", "Answers with a resource that is embedded.", |_| {
        success(vec![ContentBlock::embedded_text("test://embedded-resource", "This is an embedded resource content.")])
    }),
    Entry::plain("test_multiple_content_types", "Answers with a text, an image and a resource.", |_| success(mixed())),
    Entry::plain("test_error_handling", "Fails, and says so in its result.", |_| {
        let text = ContentBlock::text("This tool intentionally returns an error for testing");
        done(Ok(CallToolResult::error(vec![text]).into()))
    }),
];

fn success(content: Vec<ContentBlock>) -> Answer {
    done(Ok(CallToolResult::success(content).into()))
}

pub(super) fn png() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

fn mixed() -> Vec<ContentBlock> {
    let data = ResourceContents::text(r#"{"test":"data","value":123}"#, "test://mixed-content-resource");
    let data = ContentBlock::resource(data.with_mime_type("application/json"));
    vec![ContentBlock::text("Multiple content types test:"), png(), data]
}
