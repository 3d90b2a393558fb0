//! Browsers for tools: started, confined, spoken to and ended by the host.
//!
//! A session has at its `Desk`, for each plugin, one browser a profile (`desk.rs`); it ends with the session, or after some time
//! without a call. `program.rs` starts it in a cell of its own, `cdp.rs` speaks its protocol over a pipe, and `running.rs` keeps what is known of its tabs and
//! answers at once what would hold a page up. A call goes to pages (`going.rs`), looks at them (`looking.rs`, by `tree.rs`, which makes a page text;
//! `picture.rs`), keeps what they download (`downloads.rs`), and does something there (`doing.rs`, by `act.rs`, with `keys.rs`, `guard.rs` and
//! `uploads.rs`). What is allowed is decided by `policy/browser.rs`, before, and at each connection by the egress.
//!
//! It depends on `egress`, `policy` and `backend`, and on `base`, `config`, `leaks` and `secrets`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod act;
mod cdp;
mod desk;
mod doing;
mod downloads;
mod going;
mod guard;
mod keys;
mod looking;
mod managed;
mod picture;
mod program;
mod running;
mod tree;
mod uploads;

pub use act::{Action, Filling};
pub use desk::{Desk, Desks, ended};
pub use program::Programs;
pub use tree::Element;
pub use uploads::{UPLOAD_BYTES, UPLOADS, Upload};

use base::target::Target;
use std::time::Duration;

/// How long a page may take to load, a script to come to something, and a wait.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A tab, for whoever asks.
pub struct Shown {
    pub id: String,
    pub url: String,
    pub title: String,
    pub is_active: bool,
    pub profile: Option<String>,
}

/// What became of an act.
pub struct Effect {
    pub tab: String,
    pub url: String,
    pub title: String,
    pub notices: Vec<String>,
    pub changes: Vec<String>,
}

/// Where a tab goes.
pub enum Destination {
    Page(Target),
    Back,
    Forward,
    Reload,
}

/// What of a page is wanted.
pub struct View {
    pub within: Option<String>,
    pub find: Option<String>,
    pub changes: bool,
}

/// How dialogs are answered that an act brings about.
pub struct Answer {
    pub accept: bool,
    pub text: Option<String>,
}
