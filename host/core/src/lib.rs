//! Toolcrib: a sandboxed tool host for AI agents. This is the library; the command line and the MCP server are built on it.
//!
//! One call, door to effect:
//! 1. a door turns what came in into a [`call::Request`] with a [`call::CallContext`], and gives both to [`Host::call`];
//! 2. [`call`] accepts it, bounds it in time, and makes its one outcome; a [`call::session::Session`] remembers across calls;
//! 3. [`tools`] finds the plugin among its [`tools::source`], and validates the arguments by the tool's definition; a session on a [`toolset`]
//!    has some of them;
//! 4. [`policy`] turns the settings of [`config`] into the plugin's grants, and asks people;
//! 5. [`sandbox`] makes a fresh instance with all limits, and runs the guest, whose words come out as [`event`]s;
//! 6. the guest reaches the world through a [`capability`]: check the grant, act, convert; the tools of other people's servers have no guest
//!    ([`upstream`]);
//! 7. [`backend`] is where it lands: processes, files, at home in a [`workspace`]; [`tmux`] keeps the panes in which commands run
//!    there; `egress` is the one way out, and `keys` what signs and logs in for commands; the program around the host is its [`embedder`]; output that is cut goes to [`kept_output`], what
//!    stays into the [`store`], where it is found by its words, and by its meaning with `embeddings`; what outlives its caller is one of the
//!    [`jobs`];
//! 8. back in [`call`], texts are cleaned by [`text::sanitize`], the values of [`secrets`] are taken out by `leaks`, the outcome goes on the
//!    [`audit`] trail, and one [`envelope`] goes out.
//!
//! What is public and waits returns a `BoxFuture`. The code of an `async fn` is made where it is awaited: in each crate anew, with all that it
//! awaits in its turn, optimised as that crate is.
//!
//! Definitions, calls and results as model APIs write them are in [`formats`]. What is Toolcrib's own on disk lies where [`dirs`] says,
//! and is opened by [`disk`].

pub mod audit;
pub mod backend;
mod browser;
pub mod call;
pub mod capability;
pub mod config;
pub mod dirs;
pub mod disk;
mod egress;
pub mod embedder;
mod embeddings;
pub mod envelope;
pub mod event;
pub mod formats;
mod host;
pub mod jobs;
pub mod kept_output;
mod keys;
mod leaks;
mod mail;
mod mountinfo;
pub mod policy;
pub mod sandbox;
pub mod schedules;
pub mod secrets;
pub mod store;
pub mod text;
pub mod tmux;
pub mod tools;
pub mod toolset;
mod unchanged;
pub mod upstream;
mod watches;
pub mod workspace;

pub use host::{Compiled, Host, ended};

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// What has types of its caller is made there in any case.
    const GENERIC: [&str; 3] = ["ask", "next_line", "serve_handler"];

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
        for sources in ["core/src", "serve/src"] {
            waiting(&host.join(sources), &mut found);
        }
        found.sort();
        assert_eq!(found, GENERIC, "let it return a BoxFuture, or say here that it is generic");
    }
}
