//! `tasks`: what is to be done, step by step from somebody's approval to the end.
//!
//! `keep.rs` says how tasks are kept, `change.rs` what may become of one; the tools are in `create.rs`, `look.rs`, `update.rs`, `history.rs` and
//! `comment.rs`.

mod change;
mod comment;
mod create;
mod history;
mod keep;
mod look;
mod update;

use comment::AddTaskComment;
use create::TaskCreate;
use history::TaskHistory;
use look::{TaskList, TaskShow};
use update::TaskUpdate;

toolcrib_sdk::export!(TaskCreate, TaskList, TaskShow, TaskUpdate, TaskHistory, AddTaskComment);
