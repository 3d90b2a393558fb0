//! A host for `cargo test`: it answers capabilities as the test has played them, in the form of `cases.toml`.
//!
//! ```
//! # use serde::{Deserialize, Serialize};
//! # use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, files, schemars};
//! # struct WordCount;
//! # #[derive(Deserialize, JsonSchema)]
//! # struct Input { path: String }
//! # #[derive(Serialize, JsonSchema)]
//! # struct Counts { words: usize }
//! # impl Tool for WordCount {
//! #     const NAME: &str = "word_count";
//! #     const SUMMARY: &str = "Count the words of a file.";
//! #     const GUIDANCE: Guidance = Guidance { when_to_use: "", when_not_to_use: "", disambiguation: "", examples: &[] };
//! #     type Input = Input;
//! #     type Output = Counts;
//! #     fn call(input: Input) -> Result<Counts> {
//! #         Ok(Counts { words: files::read_text(&input.path)?.split_whitespace().count() })
//! #     }
//! # }
//! use toolcrib_sdk::testing::{Host, json, text};
//! use toolcrib_sdk::{Failure, Kind};
//!
//! // In Rust …
//! let host = Host::new().plays("files.read", text("one two\nthree\n")).with(json!({ "path": "a.txt" }));
//! assert_eq!(host.call::<WordCount>(json!({ "path": "a.txt" })), Ok(json!({ "words": 3 })));
//!
//! // … or as `cases.toml` says it.
//! let host = Host::from_toml(r#"host = [{ call = "files.read", fails = { kind = "denied", message = "no grant" } }]"#);
//! let failure = host.call::<WordCount>(json!({ "path": "a.txt" })).unwrap_err();
//! assert_eq!((failure.kind, failure.message.as_str()), (Kind::DENIED, "no grant"));
//! ```
//!
//! A call that was not played fails the test, with the line that plays it. Its name is the interface and the function of the contract, as in `wit/`.
//! Arguments and results are JSON with the names of the contract: records are objects, bytes base64, tuples arrays, enums strings, variants
//! `{"case": value}`; an option may be omitted. What a resource is told goes with the call that ends it, and what it is told several times is a
//! list: `http.send` has `method`, `url`, `headers`, `body` and `limit`.
//!
//! The rights of a plugin, limits and time are the host's affair: `toolcrib plugin test` has them.

mod call;
mod fits;
mod host;
pub(crate) mod played;
mod values;

pub use call::Call;
pub use host::Host;
pub use serde_json::{Value, json};

use values::Write;

/// Returns text that was not cut, as `files.read` and the streams of commands have it.
#[must_use]
pub fn text(text: &str) -> Value {
    json!({ "text": text, "bytes": text.len(), "truncated": false })
}

/// Returns bytes, as `files.read-bytes` and the body of a response have them.
#[must_use]
pub fn bytes(bytes: impl AsRef<[u8]>) -> Value {
    bytes.as_ref().write()
}

/// Returns what `http.send` returns: a response with that status and body, without headers.
#[must_use]
pub fn response(status: u16, body: impl AsRef<[u8]>) -> Value {
    json!({ "status": status, "headers": [], "url": "", "body": bytes(body), "truncated": false })
}

/// Returns what `exec.run` and `programs.start` return: the exit status, and what was printed to standard output. For `shell.run` it is in
/// `{"finished": …}`.
#[must_use]
pub fn finished(exit_code: i32, stdout: &str) -> Value {
    json!({ "exit-code": exit_code, "stdout": text(stdout), "stderr": text(""), "notices": [] })
}
