//! `send_file`: a file for the person in the conversation.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::files::{self, EntryKind};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// What one file may have.
const MOST_MIB: u64 = 25;

struct SendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Path: absolute, `~/…`, or relative to the working directory.
    file_path: String,
    /// Text below the file.
    caption: Option<String>,
}

#[derive(Serialize)]
struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Sent {
    sent: bool,
    /// What the person sees it is called.
    name: String,
    bytes: u64,
}

impl Tool for SendFile {
    const NAME: &str = "send_file";
    const TITLE: Option<&str> = Some("Send a file");
    const SUMMARY: &str = "Send a file of at most 25 MiB to the person in this conversation.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The person asked for a file, or the result is a file.",
        when_not_to_use: "For a few lines of text: use `reply`.",
        disambiguation: "",
        examples: &[r#"{"file_path":"report.pdf","caption":"The figures of May"}"#],
    };
    const EVENTS: &[&str] = &["message.file"];
    type Input = Input;
    type Output = Sent;

    fn call(Input { file_path, caption }: Input) -> Result<Sent> {
        if file_path.trim().is_empty() {
            return Err(Failure::invalid("`file_path` is blank"));
        }
        let found = files::stat(&file_path)?;
        check(&file_path, found.kind, found.size)?;
        let name = file_path.rsplit('/').next().unwrap_or_default().to_owned();
        let event = Event::new("message.file", &Payload { caption }).visible("");
        event.attach(&file_path, &name, media_type(&name)).send()?;
        Ok(Sent { sent: true, name, bytes: found.size })
    }
}

fn check(path: &str, kind: EntryKind, size: u64) -> Result<()> {
    match kind {
        EntryKind::File if size > MOST_MIB << 20 => {
            Err(Failure::limit(format!("`{path}` has {size} bytes (limit: {MOST_MIB} MiB)"))
                .hint("send less of it, or say where it is"))
        }
        EntryKind::File => Ok(()),
        EntryKind::Directory => {
            Err(Failure::failed(format!("`{path}` is a directory")).hint("send the files in it, or an archive of them"))
        }
        EntryKind::Link | EntryKind::Other => Err(Failure::failed(format!("`{path}` is not a regular file"))),
    }
}

/// What a name says of its content; people's programs look again.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "txt" | "log" | "md" => "text/plain",
        "csv" => "text/csv",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

toolcrib_sdk::export!(SendFile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_a_file_of_some_size() {
        assert_eq!(check("a", EntryKind::File, 25 << 20), Ok(()));
        assert_eq!(check("a", EntryKind::File, (25 << 20) + 1).unwrap_err().kind, toolcrib_sdk::Kind::LIMIT);
        assert_eq!(check("a", EntryKind::Directory, 0).unwrap_err().message, "`a` is a directory");
        assert_eq!(check("a", EntryKind::Other, 0).unwrap_err().message, "`a` is not a regular file");
    }

    #[test]
    fn a_name_says_what_is_in_a_file() {
        assert_eq!(
            (media_type("a.PNG"), media_type("png"), media_type("a.")),
            ("image/png", "application/octet-stream", "application/octet-stream")
        );
    }
}
