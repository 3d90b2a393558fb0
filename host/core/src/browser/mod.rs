//! Browsers for tools: started, confined, spoken to and ended by the host.
//!
//! A session has at its `Desk`, for each plugin, one browser a profile (`desk.rs`); it ends with the session, or after some time
//! without a call. `program.rs` starts it in a cell of its own, `cdp.rs` speaks its protocol over a pipe, and `running.rs` keeps what is known of its tabs and
//! answers at once what would hold a page up. A call goes to pages (`going.rs`), looks at them (`looking.rs`, by `tree.rs`, which makes a page text;
//! `picture.rs`), keeps what they download (`downloads.rs`), and does something there (`doing.rs`, by `act.rs`, with `keys.rs`, `guard.rs` and
//! `uploads.rs`). What is allowed is decided by `policy/browser.rs`, before, and at each connection by the egress.

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

pub(crate) use act::{Action, Filling};
pub(crate) use desk::{Desk, Desks, ended};
pub(crate) use program::Programs;
pub(crate) use uploads::{UPLOAD_BYTES, UPLOADS, Upload};

use crate::egress::Target;
use std::time::Duration;

/// How long a page may take to load, a script to come to something, and a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A tab, for whoever asks.
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) is_active: bool,
    pub(crate) profile: Option<String>,
}

/// What became of an act.
pub(crate) struct Effect {
    pub(crate) tab: String,
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) notices: Vec<String>,
    pub(crate) changes: Vec<String>,
}

/// Where a tab goes.
pub(crate) enum Destination {
    Page(Target),
    Back,
    Forward,
    Reload,
}

/// What of a page is wanted.
pub(crate) struct View {
    pub(crate) within: Option<String>,
    pub(crate) find: Option<String>,
    pub(crate) changes: bool,
}

/// How dialogs are answered that an act brings about.
pub(crate) struct Answer {
    pub(crate) accept: bool,
    pub(crate) text: Option<String>,
}
