//! Files that pages download: refused, or, where settings let that be, kept by the host as long outputs are.

use super::cdp::Cdp;
use super::desk::Turn;
use super::running::{Browser, Known, SOON, failed, noted};
use base::envelope::Failure;
use policy::browser::BrowserGrant;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

/// Bytes of a file that is kept.
const DOWNLOAD_BYTES: u64 = 10 << 20;
/// Downloads between two calls; more are refused.
const MOST_DOWNLOADS: usize = 8;
/// Characters of a name and of an address that are shown.
const SHOWN: usize = 200;
/// How the browser names the error where a file came in place of a page.
const ABORTED: &str = "net::ERR_ABORTED";
/// How long the browser may take to say that it was a file that it refused.
const TOLD: Duration = Duration::from_secs(3);
/// How long an act waits for the files that it has begun to load.
const WAIT: Duration = Duration::from_secs(10);

/// A file on its way.
#[derive(Clone, Debug)]
pub(super) struct Download {
    id: String,
    name: String,
    from: String,
    state: State,
    /// An act has waited for it already: others do not.
    is_waited_for: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Going,
    Done,
    /// Broken off, by the page, the network or us.
    Ended,
    TooLarge,
}

/// A download begins.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begins {
    guid: String,
    url: String,
    suggested_filename: String,
}

/// A download comes on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    pub(super) guid: String,
    total_bytes: f64,
    received_bytes: f64,
    state: String,
}

impl Known {
    pub(super) fn download_begins(&mut self, cdp: &Cdp, Begins { guid, url, suggested_filename }: Begins) {
        let (name, from) = (noted(&suggested_filename), noted(&url));
        match self.keeps_downloads {
            true => {
                let (id, state) = (guid, State::Going);
                self.downloads.push(Download { id, name, from, state, is_waited_for: false });
                if self.downloads.len() >= MOST_DOWNLOADS {
                    // The next call lets it keep files again.
                    self.keeps_downloads = false;
                    cdp.tell(None, "Browser.setDownloadBehavior", refusing());
                }
            }
            false => {
                self.note(format!("a download of `{name}` from {from} was refused"));
                self.refused_download = Some(from);
            }
        }
    }

    /// Notes how far a download is. Returns whether it has to be broken off: one that is too large, or was refused.
    pub(super) fn download_comes(&mut self, progress: &Progress) -> bool {
        let is_going = progress.state == "inProgress";
        let Some(found) = self.downloads.iter_mut().find(|download| download.id == progress.guid) else {
            return is_going;
        };
        let is_large = progress.received_bytes.max(progress.total_bytes) > DOWNLOAD_BYTES as f64;
        found.state = match (progress.state.as_str(), &found.state) {
            (_, State::TooLarge) => State::TooLarge,
            _ if is_large => State::TooLarge,
            ("completed", _) => State::Done,
            ("canceled", _) => State::Ended,
            (_, _) => State::Going,
        };
        is_large && is_going
    }
}

impl Browser {
    /// Has it keep what pages download from now on, or refuse it.
    pub(super) async fn keep_downloads(&self, keeps: bool) -> Result<(), Failure> {
        {
            let mut known = self.state.known.lock();
            // One that has as many as there may be goes on when a call has taken them.
            if known.keeps_downloads == keeps || keeps && known.downloads.len() >= MOST_DOWNLOADS {
                return Ok(());
            }
            known.keeps_downloads = keeps;
        }
        let params = match keeps {
            true => {
                let place = self.kept.downloads().display().to_string();
                json!({ "behavior": "allowAndName", "downloadPath": place, "eventsEnabled": true })
            }
            false => refusing(),
        };
        let told = self.cdp.call::<IgnoredAny>(None, "Browser.setDownloadBehavior", params, SOON).await;
        told.map(drop).map_err(failed)
    }

    /// Where the browser shows no page because a file came, which it says a moment later: whether that is kept.
    pub(super) async fn keeps_file(&self, url: &str, error: &str) -> Option<bool> {
        if error != ABORTED {
            return None;
        }
        let (url, keeps) = (noted(url), self.state.known.lock().keeps_downloads);
        let came = |known: &Known| {
            let is_kept = known.downloads.iter().any(|one| one.from == url);
            (is_kept || known.refused_download.as_ref() == Some(&url)).then_some(is_kept)
        };
        self.until(if keeps { SOON } else { TOLD }, came).await
    }

    fn has_no_downloads(&self) -> bool {
        self.state.known.lock().downloads.is_empty()
    }

    /// What is to be kept, and what became of the others, for each one that is not on its way any more.
    async fn downloaded(&self) -> Vec<Download> {
        let is_awaited = |download: &Download| download.state == State::Going && !download.is_waited_for;
        let is_over = |known: &Known| (!known.downloads.iter().any(is_awaited)).then_some(());
        let _ = self.until(WAIT, is_over).await;
        let mut known = self.state.known.lock();
        known.downloads.iter_mut().for_each(|download| download.is_waited_for = true);
        let (going, ended) =
            std::mem::take(&mut known.downloads).into_iter().partition(|one| one.state == State::Going);
        known.downloads = going;
        ended
    }
}

impl Turn<'_> {
    /// Keeps what was downloaded, and tells of it.
    pub(super) async fn downloads(&self, browser: &Browser) -> Vec<String> {
        let mut told = Vec::new();
        for Download { id, name, from, state, .. } in browser.downloaded().await {
            let (name, from) = (browser.line(&name, SHOWN), browser.line(&from, SHOWN));
            let what = format!("download `{name}` from {from}");
            let kept = match state {
                State::Done => self.keep(browser, &id).await,
                State::TooLarge => Err(Failure::limit(format!("limit: bytes of a download {DOWNLOAD_BYTES}"))),
                State::Ended | State::Going => Err(Failure::failed("it was broken off")),
            };
            BrowserGrant::record(what, kept.as_ref().map(drop), self.scope);
            told.push(match kept {
                Ok(kept) => format!("`{name}` was downloaded: {kept}"),
                Err(failure) => format!("`{name}` was not downloaded: {}", failure.message),
            });
        }
        if browser.has_no_downloads() {
            // One that came at once is whole by the time that it is refused.
            let _ = browser.kept.clear_downloads();
        }
        told
    }

    /// Moves a file from the browser's own directory to where outputs are kept.
    async fn keep(&self, browser: &Browser, id: &str) -> Result<String, Failure> {
        self.grant.admit_download()?;
        let (kept, id) = (browser.kept.clone(), id.to_owned());
        let read = tokio::task::spawn_blocking(move || kept.take_download(&id, DOWNLOAD_BYTES)).await;
        let read = read.map_err(std::io::Error::other).and_then(|read| read);
        let mut bytes = read.map_err(|error| Failure::failed(error.to_string()))?;
        self.scope.guard.redact_bytes(&mut bytes);
        let mut capture = self.scope.output.capture(format!("{}.download", self.scope.id), 0, 0);
        capture.push(&bytes).await;
        let captured = capture.finish().await;
        let path = captured.stored.ok_or_else(|| Failure::failed("there is no room for it"))?;
        self.scope.remember_kept(&path);
        Ok(format!("{} bytes at {path}", bytes.len()))
    }
}

/// What makes a browser refuse downloads.
fn refusing() -> Value {
    json!({ "behavior": "deny", "eventsEnabled": true })
}

/// The whole of a file that has no more than so many bytes.
pub(super) fn whole(file: std::fs::File, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(std::io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}
