//! Toolcrib: a sandboxed tool host for AI agents. This is the library; the command line and the MCP server are built on it.
//!
//! One call, door to effect:
//! 1. a door turns what came in into a [`call::Request`] with a [`call::CallContext`], and gives both to [`Host::call`];
//! 2. [`call`] accepts it, bounds it in time, and makes its one outcome; a [`call::session::Session`] remembers across calls;
//! 3. [`tools`] finds the plugin among its [`tools::source`], and validates the arguments by the tool's definition (the crate `contract`); a
//!    session on a `toolset` has some of them;
//! 4. `policy` turns the settings of `config` into the plugin's grants, and asks people; `file_access` says which paths a plugin may open,
//!    `command` what a script would run, `vetting` what reviewers have signed;
//! 5. `sandbox` makes a fresh instance with all limits, by the `engine`, and runs the guest, whose words come out as `event`s;
//! 6. the guest reaches the world through a `capability`: check the grant, act, convert; the tools of other people's servers have no guest
//!    (`upstream`);
//! 7. `backend` is where it lands: processes, files, at home in a `workspace`; `tmux` keeps the panes in which commands run there;
//!    `egress` is the one way out, for `browser` and `mail` too, and `keys` what signs and logs in for commands; the program around the host is
//!    its `embedder`; output that is cut goes to `kept_output`, what stays into the `store`, where it is found by its words, and by its
//!    meaning with `embeddings`; what outlives its caller is one of the [`jobs`];
//! 8. back in [`call`], texts are cleaned by `text::sanitize`, the values of `secrets` are taken out by `policy::guard` with `leaks`, the
//!    outcome goes on the `audit` trail, and one `envelope` goes out.
//!
//! Each of these that is not a module here is a crate beside this one (`sandbox` and `capability` are of `guest`, `envelope` and `text` of
//! `base`, `event`, `session` and `toolset` of `policy`); the head of its `lib.rs` says what it owns and depends on, and `tests/cli/crates.rs`
//! holds that.
//!
//! What is public and waits returns a `BoxFuture`. The code of an `async fn` is made where it is awaited: in each crate anew, with all that it
//! awaits in its turn, optimised as that crate is.
//!
//! Definitions, calls and results as model APIs write them are in `formats`. What is Toolcrib's own on disk lies where `dirs` says, and is
//! opened by `disk`; both are of `base`.

pub mod call;
mod host;
pub mod jobs;
pub mod records;
pub mod schedules;
pub mod tools;

pub use host::{Host, ended};

// What embedders use of the other crates, and nothing else of them.

/// The trail of a host, and records of calls that are answered together.
pub mod audit {
    pub use ::audit::{Audit, Batch};
}

/// Where effects land: this machine, a container, an SSH host, or a place of the embedder's own.
pub mod backend {
    pub use ::backend::{
        Backend, Before, Entry, Environment, Facts, FileText, Finished, Input, Listing, Place, Process, ProcessEvent,
        ProcessSpec, ReadPath, Resolved, Wanted, WritePath, container, local, ssh,
        undo::{Replaced, Was},
    };
}

/// What plugins may ask for.
pub mod capability {
    pub use base::capability::{AllowOption, Capability};
}

/// Settings, and where they are read.
pub mod config {
    pub use ::config::{
        Config, ConfigError, Limits, Origins, PolicySource, RuleSection, Settings, Sources, UpstreamConfirm,
        UpstreamSection, Verdict,
    };
}

/// The directories of a user.
pub mod dirs {
    pub use base::dirs::Dirs;
}

/// The program around the host, which takes events.
pub mod embedder {
    pub use ::embedder::{
        AnswerLine, AttachedFile, Embedder, EmbedderEvent, End, ErrorLine, KindPattern, Link, NoEmbedder,
    };
}

/// What a call answers.
pub mod envelope {
    pub use base::envelope::{Content, Envelope, Failure, Kind, Output};
}

/// What is told of a call while it runs.
pub mod event {
    pub use policy::event::{Compiling, Event, EventSink, Level, NoEvents};
}

/// Definitions, calls and results as model APIs write them.
pub mod formats {
    pub use ::formats::{Definitions, ENVELOPE, Effects, Format, Note, Offer, Strictness, ToolCalls, ToolResult};
}

/// Output that was cut, and is kept.
pub mod output {
    pub use ::kept_output::KeptFile;
}

/// What decides, and who is asked.
pub mod policy {
    pub use ::policy::{Policy, approval};
}

/// What runs guests.
pub mod sandbox {
    pub use guest::sandbox::{Compiler, trial};
}

/// The values of secrets.
pub mod secrets {
    pub use ::secrets::Secrets;
}

/// The panes in which commands run.
pub mod tmux {
    pub use ::tmux::{OwnPane, Panes, Tmux};
}

/// The part of the tools that a session has.
pub mod toolset {
    pub use policy::toolset::{Lifetime, Toolset};
}

/// The tools of other people's servers.
pub mod upstream {
    pub use ::upstream::{Accepted, AcceptedKind, AcceptedTool, Look};
}

/// The directory that a session works in.
pub mod workspace {
    pub use base::workspace::Workspace;
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// What has types of its caller is made there in any case.
    const GENERIC: [&str; 8] =
        ["aside", "ask", "call_typed", "compile", "instantiate", "next_line", "run", "serve_handler"];
    /// The command line is nobody's library.
    const PROGRAM: &str = "cli";

    /// The public functions below a directory that are `async`.
    fn waiting(directory: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("pub async fn "));
            found.extend(names.map(|rest| rest.split(['(', '<']).next().unwrap().to_owned()));
        }
    }

    #[test]
    fn the_code_of_what_is_public_and_waits_is_made_in_its_own_crate() {
        let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(host).unwrap() {
            let entry = entry.unwrap();
            let sources = entry.path().join("src");
            if entry.file_name() != PROGRAM && sources.is_dir() {
                waiting(&sources, &mut found);
            }
        }
        found.sort();
        assert_eq!(found, GENERIC, "let it return a BoxFuture, or say here that it is generic");
    }
}
