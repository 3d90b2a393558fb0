//! Asking about a write: its path, why it is asked, the sizes, and what changes.
//!
//! What is shown was read by descriptor; when the answer comes, the same file has to be there still (`backend/files.rs`).

use crate::approval::{ActionKind, By, Landing, Question};
use crate::rules::Subject;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use backend::Before;
use base::capability::Capability;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use file_access::{Expected, FilesGrant, New, Reason, Wanted, WritePath};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use similar::algorithms::{Capture, Replace, myers};
use similar::group_diff_ops;
use similar::udiff::UnifiedHunkHeader;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// What is compared of a file at most; as much as `write_file` takes.
const COMPARED_BYTES: usize = 4 << 20;
/// What is shown of the changes at most.
const SHOWN_BYTES: usize = 256 << 10;
/// How long two texts are compared; after that the differences are coarser.
const COMPARED_FOR: Duration = Duration::from_millis(500);
/// Lines shown around a change.
const CONTEXT: usize = 3;

fn kind(reason: Reason) -> ActionKind {
    match reason {
        Reason::Later(_) => ActionKind::WriteLater,
        Reason::Outside | Reason::Always => ActionKind::Write,
    }
}

/// A path that may be written, and who allowed it, where somebody had to.
pub type Admitted = (WritePath, Option<By>);
/// Why not, and who refused it.
pub type Refused = (Failure, Option<By>);

/// Has a person admit a write, where settings ask for that. Returns who allowed it, none where nobody has to, or who refused it.
pub fn confirm<'a>(
    grant: &'a FilesGrant,
    wanted: Wanted,
    new: New<'a>,
    scope: &'a Scope,
) -> BoxFuture<'a, Result<Admitted, Refused>> {
    Box::pin(async move {
        let subject = Subject::Write(wanted.shown().into());
        if let Some((refusal, by)) = scope.denied_by_rule(&subject).await {
            return Err((refusal, Some(by)));
        }
        let Some(reason) = wanted.reason() else { return Ok((admitted(wanted), None)) };
        let backend = scope.backend.name();
        let key = ApprovalKey::new(&grant.sha256, Capability::Files, kind(reason), backend);
        // The changes are made only if somebody sees them.
        let is_shown = scope.approver.is_read() && !scope.session.is_approved(&key);
        let before = match new {
            New::Content(content) if is_shown => {
                let before = scope.backend.look(&wanted, COMPARED_BYTES).await;
                Some((before.map_err(|failure| (failure, None))?, content))
            }
            New::Content(_) | New::Directory => None,
        };
        let (details, expected) = match before {
            None if matches!(new, New::Directory) => {
                (facts(reason, "a new directory", wanted.workspace()), Expected::Anything)
            }
            None => (String::new(), Expected::Anything),
            Some((before, content)) => {
                let expected = before.expected();
                let (content, workspace) = (content.to_vec(), wanted.workspace().to_owned());
                let shown = tokio::task::spawn_blocking(move || {
                    let sizes = match before.size() {
                        None => format!("a new file of {} bytes", content.len()),
                        Some(old) => format!("{} bytes in place of {old}", content.len()),
                    };
                    format!("{}\n{}", facts(reason, &sizes, &workspace), changes(&before, &content))
                });
                let unshown = |_| (Failure::new(Kind::Internal, "the changes could not be shown"), None);
                (shown.await.map_err(unshown)?, expected)
            }
        };
        let question = Question {
            key,
            plugin: &grant.label,
            site: &Landing { backend: backend.to_owned(), ..Landing::default() },
            confinement: None,
            lent: None,
            action: &sanitize::visible_line(&wanted.shown()),
            details: Some(&details),
            declaration: None,
            subject: Some(&subject).filter(|_| kind(reason) == ActionKind::Write),
            also: &[],
            refused: None,
            timeout: grant.approval_timeout,
        };
        let consent = question.ask(scope).await.map_err(|(refusal, by)| (refusal, Some(by)))?;
        let wanted = match wanted.expected() {
            Expected::Anything => wanted.expecting(expected),
            // What it was before is what it still has to be.
            Expected::New | Expected::Marked(_) => wanted,
        };
        Ok((admitted(wanted), Some(consent.by)))
    })
}

#[expect(clippy::disallowed_methods, reason = "whoever had to be asked has said yes")]
fn admitted(wanted: Wanted) -> WritePath {
    wanted.admitted()
}

/// What the host knows of the write.
fn facts(reason: Reason, what: &str, workspace: &str) -> String {
    match reason {
        Reason::Later(later) => format!("{what}; it runs later: {}", later.what),
        Reason::Outside => format!("{what}; it lies outside the workspace {}", sanitize::visible_line(workspace)),
        Reason::Always => what.to_owned(),
    }
}

/// What differs between two contents, as a unified diff where both are text.
pub fn changes_of(before: &[u8], after: &[u8]) -> String {
    let before = Before::There { size: before.len() as u64, content: Some(before.to_vec()), stamp: String::new() };
    changes(&before, after)
}

/// What changes, as a unified diff where both are text.
fn changes(before: &Before, after: &[u8]) -> String {
    let old = match before {
        Before::New => Ok(""),
        Before::There { content: Some(content), .. } => text(content).ok_or_else(|| described(content)),
        Before::There { content: None, .. } => {
            Err("the present content is not shown: it is too large, closed to tools or cannot be read".into())
        }
    };
    match (old, text(after)) {
        (Ok(old), Some(new)) if old == new => "nothing changes".into(),
        (Ok(old), Some(new)) => cut(diff(old, new)),
        (Err(old), Some(new)) => format!("- {old}\n{}", cut(diff("", new))),
        (Ok(""), None) => format!("+ {}", described(after)),
        (Ok(old), None) => format!("{}\n+ {}", cut(diff(old, "")), described(after)),
        (Err(old), None) => format!("- {old}\n+ {}", described(after)),
    }
}

/// The lines that differ, as a unified diff. (One algorithm is named: a choice among all of them is code for each.)
fn diff(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut ops = Replace::new(Capture::new());
    let deadline = Instant::now() + COMPARED_FOR;
    let Ok(()) = myers::diff_deadline(&mut ops, &*old, 0..old.len(), &*new, 0..new.len(), Some(deadline));
    let mut shown = String::new();
    for hunk in group_diff_ops(ops.into_inner().into_ops(), CONTEXT) {
        let _ = writeln!(shown, "{}", UnifiedHunkHeader::new(&hunk));
        for change in hunk.iter().flat_map(|op| op.iter_changes(&*old, &*new)) {
            let line = change.value();
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            let _ = write!(shown, "{}{line}{end}", change.tag());
        }
    }
    shown
}

fn text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

fn described(content: &[u8]) -> String {
    format!("binary content, {} bytes, SHA-256 {}", content.len(), hex::encode(Sha256::digest(content)))
}

/// Says first what is not shown, so that nobody misses it.
fn cut(diff: String) -> String {
    if diff.len() <= SHOWN_BYTES {
        return diff;
    }
    let end = diff[..diff.floor_char_boundary(SHOWN_BYTES)].rfind('\n').unwrap_or(0);
    let mut shown = String::new();
    let _ = writeln!(shown, "ONLY THE FIRST {end} OF {} BYTES OF THE CHANGES ARE SHOWN", diff.len());
    shown + &diff[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(content: &[u8]) -> Before {
        Before::There { size: content.len() as u64, content: Some(content.to_vec()), stamp: String::new() }
    }

    #[test]
    fn changed_lines_are_shown_with_their_neighbours() {
        let diff = changes(&there(b"1\n2\n3\n4\n5\n6\n7\n8\n"), b"1\n2\n3\n4\n5\nsix\n7\n8\n");
        assert_eq!(diff, "@@ -3,6 +3,6 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n");
        assert_eq!(changes(&Before::New, b"a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(changes(&there(b"a\n"), b"a\n"), "nothing changes");
    }

    #[test]
    fn binary_content_is_named_by_size_and_digest() {
        let shown = changes(&there(b"\xff\x00"), b"text\n");
        assert!(shown.starts_with("- binary content, 2 bytes, SHA-256 ") && shown.ends_with("+text\n"), "{shown}");
        let shown = changes(&Before::New, b"\0\0\0");
        assert!(shown.starts_with("+ binary content, 3 bytes, SHA-256 "), "{shown}");
    }

    #[test]
    fn what_is_not_shown_is_said_first() {
        let long = "line\n".repeat(100_000);
        let shown = changes(&Before::New, long.as_bytes());
        assert!(shown.starts_with("ONLY THE FIRST ") && shown.len() < SHOWN_BYTES + 100, "{}", &shown[..80]);
        let unread = Before::There { size: 9, content: None, stamp: String::new() };
        assert!(changes(&unread, b"x\n").starts_with("- the present content is not shown"));
    }

    #[test]
    fn the_name_of_a_workspace_adds_no_lines_to_the_question() {
        assert!(!facts(Reason::Outside, "a new directory", "/w\n+ harmless").contains('\n'));
    }
}
