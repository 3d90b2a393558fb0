//! `transcripts`: what happened around the agent, as the program around the host has fed it: what was said in channels (`channels.rs`), what was
//! attached (`attachments.rs`), what workers did (`workers.rs`).

mod attachments;
mod channels;
mod workers;

use attachments::AttachmentRecall;
use channels::ChannelRecall;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolcrib_sdk::records::{Item, Query};
use toolcrib_sdk::{Failure, Result};
use workers::WorkerInspect;

toolcrib_sdk::export!(ChannelRecall, AttachmentRecall, WorkerInspect);

/// Names that are listed at most.
const LISTED: u32 = 200;
/// Bytes of all texts of an answer.
const TEXT_BYTES: usize = 200_000;

/// What a channel or a worker has, in short.
#[derive(Clone, Deserialize)]
struct Sum {
    count: u64,
    last_ms: u64,
    #[serde(default)]
    ended: bool,
}

/// All channels, or all workers: those first in which something happened last.
fn sums(collection: &str) -> Result<Vec<Item<Sum>>> {
    Ok(Query::new(collection).order("/last_ms", true).limit(LISTED).run()?.items)
}

/// What a name means: exactly, by how it begins, or by what it has in it, whatever the case. Several only where none is meant exactly.
fn meant<'n>(asked: &str, names: impl Iterator<Item = &'n str> + Clone) -> Vec<&'n str> {
    let asked = asked.strip_prefix('#').unwrap_or(asked).to_lowercase();
    let bare = |name: &str| name.strip_prefix('#').unwrap_or(name).to_lowercase();
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| bare(name) == asked, &|name| bare(name).starts_with(&asked), &|name| bare(name).contains(&asked)];
    ways.iter()
        .map(|way| names.clone().filter(|name| way(name)).collect::<Vec<_>>())
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// A time as RFC 3339 has it, in UTC.
fn shown(at_ms: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000);
    time.ok().and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| format!("{at_ms} ms"))
}

/// Milliseconds since 1970 of a time that a model gives.
fn instant(name: &str, text: &str) -> Result<i64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|error| {
        Failure::invalid(format!("`{name}` is no time: {error}"))
            .hint("write it as RFC 3339 has it: `2026-11-25T09:30:00Z`")
    })?;
    Ok((time.unix_timestamp_nanos() / 1_000_000) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_exactly_or_by_its_beginning_or_by_a_part() {
        let names = ["dev", "devops", "#support-dev"];
        let meant = |asked: &str| meant(asked, names.iter().copied());
        assert_eq!(meant("dev"), ["dev"]);
        assert_eq!(meant("DE"), ["dev", "devops"]);
        assert_eq!(meant("#support"), ["#support-dev"]);
        assert_eq!(meant("ops"), ["devops"]);
        assert!(meant("sales").is_empty());
    }

    #[test]
    fn times_are_compared_and_not_their_texts() {
        assert_eq!(instant("before", "1970-01-01T01:00:00.5+01:00").unwrap(), 500);
        assert_eq!(shown(500), "1970-01-01T00:00:00.5Z");
        assert!(instant("before", "yesterday").is_err());
    }
}
