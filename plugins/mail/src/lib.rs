//! `mail`: searches and reads the user's mail, and changes nothing. One tool finds messages, the other reads one.
//!
//! `shown.rs` says what of a message is returned; the tools are in `search.rs` and `read.rs`.

mod read;
mod search;
mod shown;

use read::EmailRead;
use search::EmailSearch;

toolcrib_sdk::export!(EmailSearch, EmailRead);
