//! Search: folder by folder, newest first, until there is enough or the time is over; then what lists show of the hits, and the beginnings of
//! their texts. A folder that fails is a notice as long as another one does not.

use super::commands::{Items, Keys, PartNumber, Uids, Window};
use super::connection::{COMMAND, Connection};
use super::pool::Work;
use super::structure::{self, Fetched};
use super::trouble::Trouble;
use super::windows::Windows;
use super::{Access, Header, Mailboxes, message};
use base::envelope::{Failure, Kind, duration};
use base::text::sanitize;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// Hits where nobody says how many, and at most.
const HITS: usize = 10;
const MOST_HITS: usize = 50;
/// How long one folder is searched, and all of them.
const FOLDER: Duration = Duration::from_secs(8);
const IN_ALL: Duration = Duration::from_secs(20);
/// How long a search has gone on before it is found out how far back it is: that is asked of the server.
const FAR: Duration = Duration::from_millis(500);
/// Folders at a time, a connection each.
const AT_A_TIME: usize = 2;
/// Bytes of a text that lists show, and of all of them, after which no more are asked for.
const SNIPPET: u32 = 1600;
const SNIPPETS: usize = 256 << 10;
/// Characters of it.
const SNIPPET_CHARS: usize = 500;

/// What is searched for.
pub struct Query {
    /// None for all that may be read.
    pub folders: Vec<String>,
    pub(super) keys: Keys,
    pub with_attachment: bool,
    pub limit: usize,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    pub hits: Vec<Header>,
    /// There may be older ones that were not looked at.
    pub back_to_ms: Option<u64>,
    pub notices: Vec<String>,
}

/// What a query says in texts and times.
pub struct Terms {
    pub words: Vec<String>,
    pub sender: Option<String>,
    pub recipient: Option<String>,
    pub subject: Option<String>,
    pub since_ms: Option<u64>,
    pub before_ms: Option<u64>,
    pub is_unread: bool,
}

impl Query {
    pub fn new(folders: Vec<String>, terms: Terms, with_attachment: bool, limit: u32) -> Result<Self, Failure> {
        let Terms { words, sender, recipient, subject, since_ms, before_ms, is_unread: unread } = terms;
        for text in words.iter().chain([&sender, &recipient, &subject].into_iter().flatten()) {
            super::commands::check_text(text)?;
        }
        let day = |ms: Option<u64>| match ms.map(super::commands::Day::of) {
            Some(None) => Err(Failure::invalid("a time of a search is beyond the year 9999")),
            day => Ok(day.flatten()),
        };
        let (since, before) = (day(since_ms)?, day(before_ms)?);
        let keys = Keys { words, sender, recipient, subject, since, before, unread };
        let limit = if limit == 0 { HITS } else { usize::try_from(limit).unwrap_or(MOST_HITS).min(MOST_HITS) };
        Ok(Self { folders, keys, with_attachment, limit })
    }
}

/// Searches one folder.
struct Finding<'f> {
    folder: &'f str,
    query: &'f Query,
    until: Instant,
}

/// What was found in a folder.
struct Candidates {
    validity: u32,
    uids: Vec<u32>,
    /// Older messages were not looked at, or more was found than is wanted.
    is_cut: bool,
    /// How far back it was searched, where that is known.
    back_to_ms: Option<u64>,
    notice: Option<String>,
}

impl Work for Finding<'_> {
    type Output = Candidates;

    fn folder(&self) -> Option<&str> {
        Some(self.folder)
    }

    async fn run(&self, connection: &mut Connection) -> Result<Candidates, Trouble> {
        let begin = Instant::now();
        let left = || self.until.saturating_duration_since(Instant::now()).min(COMMAND);
        let opened = connection.examine(self.folder, left()).await?;
        let mut found =
            Candidates { validity: opened.validity, uids: Vec::new(), is_cut: false, back_to_ms: None, notice: None };
        if opened.messages == 0 {
            return Ok(found);
        }
        let wanted = if self.query.with_attachment { MOST_HITS } else { self.query.limit };
        let mut windows = Windows::new(opened.messages, opened.next);
        while let Some(window) = windows.next() {
            let uids = match connection.search(window, &self.query.keys, left()).await {
                Ok(uids) => uids,
                // A server that has no index makes one now: the next search is quick.
                Err(Trouble::Slow(_)) => {
                    let (folder, shown) = (sanitize::line(self.folder), duration(begin.elapsed()));
                    let remedy = "the server may be building its index; the same search may be quick later";
                    found.notice = Some(format!("`{folder}`: the search was stopped after {shown}: {remedy}"));
                    found.back_to_ms = found.back_to_ms.or(Some(now_ms()));
                    found.is_cut = true;
                    return Ok(found);
                }
                Err(trouble) => return Err(trouble),
            };
            found.uids.extend(uids);
            if found.uids.len() >= wanted {
                found.is_cut = found.uids.len() > wanted || !windows.is_over();
                found.uids.truncate(wanted);
                return Ok(found);
            }
            if windows.is_over() {
                break;
            }
            if begin.elapsed() >= FAR {
                let ends = Window { first: window.first, last: Some(window.first.saturating_add(windows.some())) };
                found.back_to_ms = received(connection, ends).await?.or(found.back_to_ms);
            }
            if left().is_zero() {
                let folder = sanitize::line(self.folder);
                found.notice = Some(format!("`{folder}`: the search was stopped after {}", duration(begin.elapsed())));
                found.is_cut = true;
                break;
            }
        }
        Ok(found)
    }
}

/// When the first message of a window was received.
async fn received(connection: &mut Connection, window: Window) -> Result<Option<u64>, Trouble> {
    let fetched = connection.fetch(&Uids::Within(window), Items::Dates, 0).await?;
    let dates = fetched.iter().filter_map(|response| {
        let items = structure::Items::of(response)?;
        Some((items.uid()?, items.date_ms()?))
    });
    Ok(dates.min().map(|(_, date)| date))
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Has a folder open in which UIDs are those of this validity.
pub(super) async fn open(connection: &mut Connection, folder: &str, validity: u32) -> Result<(), Trouble> {
    let is_open =
        connection.opened.as_ref().is_some_and(|opened| opened.folder == folder && opened.validity == validity);
    if is_open {
        return Ok(());
    }
    match connection.examine(folder, COMMAND).await?.validity == validity {
        true => Ok(()),
        false => Err(rebuilt(folder).into()),
    }
}

/// The failure for an id of before.
pub(super) fn rebuilt(folder: &str) -> Failure {
    let folder = sanitize::line(folder);
    Failure::new(
        Kind::Busy,
        format!("the folder `{folder}` was rebuilt on its server: ids of its messages no longer hold"),
    )
    .hint("search again")
}

/// What lists show of messages.
pub(super) struct Looking<'l> {
    pub(super) folder: &'l str,
    pub(super) validity: u32,
    pub(super) uids: Vec<u32>,
    /// The UIDs are of before: whether they still hold, the server is asked.
    pub(super) are_old: bool,
}

impl Work for Looking<'_> {
    type Output = Vec<Fetched>;

    fn folder(&self) -> Option<&str> {
        Some(self.folder)
    }

    async fn run(&self, connection: &mut Connection) -> Result<Vec<Fetched>, Trouble> {
        if self.are_old {
            connection.opened = None;
        }
        open(connection, self.folder, self.validity).await?;
        let fetched = connection.fetch(&Uids::These(self.uids.clone()), Items::Headers, 0).await?;
        let read = |response: &Vec<_>| structure::Items::of(response)?.fetched();
        let wanted = |fetched: &Fetched| self.uids.contains(&fetched.uid);
        // A server may tell of a message twice, once with its flags alone.
        let mut by_uid: BTreeMap<u32, Fetched> = BTreeMap::new();
        for message in fetched.iter().filter_map(read).filter(wanted) {
            by_uid.entry(message.uid).or_insert(message);
        }
        Ok(by_uid.into_values().collect())
    }
}

/// The beginnings of the texts of messages, by their UIDs, and what servers found of them.
struct Beginnings<'b> {
    folder: &'b str,
    validity: u32,
    texts: Vec<(u32, PartNumber)>,
    uids: Vec<u32>,
    with_results: bool,
}

#[derive(Default)]
struct Beginning {
    text: String,
    results: Vec<u8>,
}

impl Work for Beginnings<'_> {
    type Output = BTreeMap<u32, Beginning>;

    fn folder(&self) -> Option<&str> {
        Some(self.folder)
    }

    async fn run(&self, connection: &mut Connection) -> Result<BTreeMap<u32, Beginning>, Trouble> {
        open(connection, self.folder, self.validity).await?;
        let mut by_part: BTreeMap<&PartNumber, Vec<u32>> = BTreeMap::new();
        self.texts.iter().for_each(|(uid, part)| by_part.entry(part).or_default().push(*uid));
        let mut all: BTreeMap<u32, Beginning> = BTreeMap::new();
        let mut taken = 0;
        for (part, uids) in by_part {
            if taken >= SNIPPETS {
                break;
            }
            let fetched = connection.fetch(&Uids::These(uids), Items::Part(part, SNIPPET), 0).await?;
            for items in fetched.iter().filter_map(|response| structure::Items::of(response)) {
                let (head, body) = (items.section(&part.head()), items.section(&part.to_string()));
                taken += head.unwrap_or_default().len() + body.unwrap_or_default().len();
                if let (Some(uid), Some(body)) = (items.uid(), body) {
                    all.entry(uid).or_default().text = snippet(&message::text(head.unwrap_or_default(), body).text);
                }
            }
        }
        if self.with_results {
            let fetched = connection.fetch(&Uids::These(self.uids.clone()), Items::Results, 0).await?;
            for items in fetched.iter().filter_map(|response| structure::Items::of(response)) {
                if let (Some(uid), Some(results)) = (items.uid(), items.section(RESULTS)) {
                    all.entry(uid).or_default().results = results.to_vec();
                }
            }
        }
        Ok(all)
    }
}

/// The section that has what servers found.
pub(super) const RESULTS: &str = "HEADER.FIELDS (AUTHENTICATION-RESULTS)";

/// A text in one line, and not all of it.
fn snippet(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A hit, and where it is.
struct Hit {
    /// The place of its folder among those that were searched.
    place: usize,
    validity: u32,
    fetched: Fetched,
}

/// What became of a folder.
struct Searched {
    hits: Vec<Hit>,
    is_cut: bool,
    back_to_ms: Option<u64>,
    notices: Vec<String>,
}

impl Access<'_> {
    /// Searches.
    pub fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Found, Failure>> {
        Box::pin(async move {
            let folders = match query.folders.is_empty() {
                true => self.granted_folders().await.map_err(|trouble| trouble.told(self.account))?,
                false => query.folders.clone(),
            };
            // First of all one connection: of a server that cannot be reached, or that refuses the login, every folder would tell the same.
            let pool = self.scope.session.slot::<Mailboxes>().of(self);
            let lease = pool.lease(self, folders.first().map(String::as_str), false).await;
            lease.map_err(|trouble| trouble.told(self.account))?.give_back();
            let until = Instant::now() + IN_ALL;
            let mut searches = Vec::new();
            for (place, folder) in folders.iter().enumerate() {
                searches.push(self.search_folder(place, folder, query, until));
            }
            let searched: Vec<_> = stream::iter(searches).buffered(AT_A_TIME).collect().await;
            self.merged(&folders, searched, query).await
        })
    }

    async fn search_folder(
        &self,
        place: usize,
        folder: &str,
        query: &Query,
        until: Instant,
    ) -> Result<Searched, Trouble> {
        let begin = Instant::now();
        if begin >= until {
            return Err(Trouble::Slow(format!(
                "has no time left: folders are searched for {} in all",
                duration(IN_ALL)
            )));
        }
        let finding = Finding { folder, query, until: until.min(begin + FOLDER) };
        let Candidates { validity, uids, is_cut, back_to_ms, notice } = self.have_done(&finding).await?;
        let mut searched = Searched { hits: Vec::new(), is_cut, back_to_ms, notices: notice.into_iter().collect() };
        if uids.is_empty() {
            return Ok(searched);
        }
        let looking = Looking { folder, validity, uids, are_old: false };
        let fetched = self.have_done(&looking).await?;
        let gone = looking.uids.len() - fetched.len();
        if gone > 0 {
            let folder = sanitize::line(folder);
            searched.notices.push(format!("`{folder}`: messages that were found and are gone by now: {gone}"));
        }
        let is_wanted = |fetched: &Fetched| !query.with_attachment || !fetched.body.others.is_empty();
        searched.hits = fetched.into_iter().filter(is_wanted).map(|fetched| Hit { place, validity, fetched }).collect();
        Ok(searched)
    }

    async fn merged(
        &self,
        folders: &[String],
        searched: Vec<Result<Searched, Trouble>>,
        query: &Query,
    ) -> Result<Found, Failure> {
        let (mut found, mut hits, mut failed) = (Found::default(), Vec::new(), Vec::new());
        for (folder, searched) in folders.iter().zip(searched) {
            match searched {
                Ok(searched) => {
                    let oldest = searched.hits.iter().filter_map(|hit| hit.fetched.date_ms).min();
                    let back_to = searched.back_to_ms.or(oldest).filter(|_| searched.is_cut);
                    found.back_to_ms = found.back_to_ms.max(back_to);
                    found.notices.extend(searched.notices);
                    hits.extend(searched.hits);
                }
                Err(trouble) => failed.push((sanitize::line(folder).into_owned(), trouble)),
            }
        }
        let reasons: Vec<String> = failed.iter().map(|(folder, why)| format!("`{folder}`: {}", why.line())).collect();
        if !failed.is_empty() && failed.len() == folders.len() {
            let message = format!("no folder could be searched: {}", reasons.join("; "));
            let is_limit = failed.iter().all(|(_, why)| matches!(why, Trouble::Limit(_)));
            return Err(Failure::new(if is_limit { Kind::Limit } else { Kind::Unavailable }, message));
        }
        found.notices.extend(reasons.into_iter().map(|reason| format!("not searched: {reason}")));
        let is_more = distinct(&mut hits, query.limit);
        if is_more {
            found.back_to_ms = found.back_to_ms.max(hits.last().and_then(|hit| hit.fetched.date_ms));
        }
        found.hits = self.shown(folders, hits, &mut found.notices).await;
        Ok(found)
    }

    /// The hits with the beginnings of their texts.
    async fn shown(&self, folders: &[String], hits: Vec<Hit>, notices: &mut Vec<String>) -> Vec<Header> {
        let with_results = !self.section.authority.is_empty();
        let mut beginnings: BTreeMap<(usize, u32), Beginning> = BTreeMap::new();
        for (place, folder) in folders.iter().enumerate() {
            let of_folder: Vec<&Hit> = hits.iter().filter(|hit| hit.place == place).collect();
            let Some(first) = of_folder.first() else { continue };
            let text = |hit: &&Hit| Some((hit.fetched.uid, hit.fetched.body.texts.first()?.number.clone()));
            let work = Beginnings {
                folder,
                validity: first.validity,
                texts: of_folder.iter().filter_map(text).collect(),
                uids: of_folder.iter().map(|hit| hit.fetched.uid).collect(),
                with_results,
            };
            match self.have_done(&work).await {
                Ok(all) => beginnings.extend(all.into_iter().map(|(uid, beginning)| ((place, uid), beginning))),
                Err(trouble) => {
                    let folder = sanitize::line(folder);
                    notices.push(format!("`{folder}`: the beginnings of texts are missing: {}", trouble.line()));
                }
            }
        }
        let shown = |hit: &Hit| {
            let mut header = self.header(&folders[hit.place], hit.validity, &hit.fetched);
            if let Some(beginning) = beginnings.get(&(hit.place, hit.fetched.uid)) {
                header.snippet = beginning.text.clone();
                header.verified = self.verified(&beginning.results, hit.fetched.sender.as_ref());
            }
            header
        };
        hits.iter().map(shown).collect()
    }
}

/// Puts hits in order, newest first, drops doubles, and leaves so many. Returns whether there were more.
fn distinct(hits: &mut Vec<Hit>, most: usize) -> bool {
    // Of doubles that of the folder that was named first stays: a folder of all mail comes last, most often.
    hits.sort_by_key(|hit| (hit.place, std::cmp::Reverse(hit.fetched.uid)));
    let mut seen = HashSet::new();
    hits.retain(|hit| hit.fetched.message_id.clone().is_none_or(|id| seen.insert(id)));
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.fetched.date_ms));
    let is_more = hits.len() > most;
    hits.truncate(most);
    is_more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(place: usize, uid: u32, date_ms: u64, id: Option<&str>) -> Hit {
        let message_id = id.map(|id| id.as_bytes().to_vec());
        Hit { place, validity: 1, fetched: Fetched { uid, date_ms: Some(date_ms), message_id, ..Fetched::default() } }
    }

    #[test]
    fn the_same_message_of_two_folders_is_one_hit_and_the_newest_come_first() {
        let mut hits = vec![
            hit(1, 900, 50, Some("<a>")),
            hit(0, 7, 50, Some("<a>")),
            hit(1, 901, 90, None),
            hit(0, 8, 70, Some("<b>")),
            hit(1, 902, 80, None),
        ];
        assert!(!distinct(&mut hits, 4));
        let left: Vec<_> = hits.iter().map(|hit| (hit.place, hit.fetched.uid)).collect();
        assert_eq!(left, [(1, 901), (1, 902), (0, 8), (0, 7)]);
        assert!(distinct(&mut hits, 2) && hits.len() == 2);
    }

    #[test]
    fn a_snippet_is_one_line_and_not_long() {
        assert_eq!(snippet(" a\n\n b\tc "), "a b c");
        assert_eq!(snippet(&"ä".repeat(600)).chars().count(), SNIPPET_CHARS + 1);
    }
}
