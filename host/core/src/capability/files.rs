//! `wit/files.wit`: regular files, by the backend, where the grant admits the resolved path.

use super::Capability;
use super::Refusal;
use super::bindings::toolcrib::plugin::{files, types};
use crate::audit::Action;
use crate::envelope::{Failure, Kind};
use crate::kept_output::Captured;
use crate::leaks::Exit;
use crate::policy::files::Resolved;
use crate::sandbox::State;
use serde_json::json;

/// What one `read` returns at most, as `wit/files.wit` promises.
const READ_BYTES: usize = 4 << 20;

impl files::Host for State {
    async fn read(&mut self, path: String, offset: u64, max: u32) -> Result<types::Captured, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len())?;
        let max_bytes = (max as usize).saturating_mul(char::MAX.len_utf8()).min(READ_BYTES);
        // One sequence more at each end: the first may begin before the offset, the last may be cut.
        let piece = max_bytes + 2 * char::MAX.len_utf8();
        let file = match self.scope.output.kept(&path).filter(|_| grant.reads_everywhere()) {
            // Kept output lies on this machine, wherever the call lands.
            Some(kept) => {
                self.record("read", &path, Ok(None));
                kept.read(offset, piece).await?
            }
            None => {
                let resolved = self.scope.backend.resolve(&path, &grant.roots()).await;
                let admitted = judged(resolved, move |resolved| grant.admit_read(resolved)).await;
                self.record("read", &path, admitted.as_ref().map(|_| None).map_err(|refusal| (refusal, None)));
                self.scope.backend.read(&admitted?, offset, piece).await?
            }
        };
        Ok(text(&path, offset, &file.bytes, file.size, max as usize, max_bytes)?.into())
    }

    async fn write(&mut self, path: String, content: Vec<u8>) -> Result<u64, Refusal> {
        let grant = self.grants()?.files()?.clone();
        self.meter.charge_bytes(path.len() + content.len())?;
        if let Err(refusal) = self.scope.guard.check(Exit::Write, [path.as_bytes(), &content]) {
            self.record("write", &path, Err((&refusal, None)));
            return Err(refusal.into());
        }
        let resolved = self.scope.backend.resolve(&path, &grant.roots()).await;
        let rules = grant.clone();
        let admitted = match judged(resolved, move |resolved| rules.admit_write(resolved)).await {
            Ok(wanted) => grant.confirm(wanted, &content, &self.scope).await,
            Err(refusal) => Err((refusal, None)),
        };
        let decided = admitted.as_ref().map(|(_, by)| *by).map_err(|(refusal, by)| (refusal, *by));
        self.record("write", &path, decided);
        let (admitted, _) = admitted.map_err(|(refusal, _)| refusal)?;
        let bytes = content.len() as u64;
        self.scope.backend.write(&admitted, content).await?;
        self.scope.touch_state();
        Ok(bytes)
    }
}

impl State {
    /// Writes down what was decided, and by whom where somebody was asked.
    fn record(&self, verb: &str, path: &str, decided: Result<Option<&'static str>, (&Failure, Option<&'static str>)>) {
        let decision = match decided {
            Ok(None) => "allowed".to_owned(),
            Ok(Some(by)) => format!("allowed by {by}"),
            Err((refusal, None)) => format!("{}: {}", refusal.kind.name(), refusal.message),
            Err((_, Some(by))) => format!("denied by {by}"),
        };
        let what = format!("{verb} {path}");
        self.scope.record(Action {
            capability: Capability::Files,
            what,
            confinement: None,
            declaration: None,
            decision,
        });
    }
}

/// Judges a path on a thread that serves no other call: this reads from the disk, which may be slow.
async fn judged<A: Send + 'static>(
    resolved: Result<Resolved, Failure>,
    judge: impl FnOnce(&Resolved) -> Result<A, Failure> + Send + 'static,
) -> Result<A, Failure> {
    let resolved = resolved?;
    let judged = tokio::task::spawn_blocking(move || judge(&resolved)).await;
    judged.unwrap_or_else(|error| Err(Failure::new(Kind::Internal, format!("the path was not checked: {error}"))))
}

/// Cuts the text at the offset; refuses what is not text.
fn text(path: &str, offset: u64, bytes: &[u8], size: u64, max: usize, max_bytes: usize) -> Result<Captured, Failure> {
    // After an offset the first bytes may be the rest of a sequence.
    let skipped = if offset == 0 { 0 } else { bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count() };
    let bytes = &bytes[skipped..];
    let readable = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last sequence was cut by the piece's end, not by the file's.
        Err(error) if error.error_len().is_none() && offset + ((skipped + bytes.len()) as u64) < size => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to here")
        }
        Err(error) => return Err(not_text(path, offset + (skipped + error.valid_up_to()) as u64, size)),
    };
    let end = readable.char_indices().map(|(index, _)| index).chain([readable.len()]);
    let end = end.take_while(|end| *end <= max_bytes).take(max.saturating_add(1)).last().unwrap_or(0);
    let truncated = offset + ((skipped + end) as u64) < size;
    Ok(Captured { text: readable[..end].to_owned(), bytes: size, truncated, stored: None })
}

fn not_text(path: &str, at: u64, size: u64) -> Failure {
    Failure::failed(format!("`{path}` is not text: byte {at} of {size} is not valid UTF-8"))
        .hint("look at it with run_shell, for example `file`, `xxd` or `strings`")
        .data(json!({ "bytes": size }))
}

#[cfg(test)]
mod tests {
    fn cut(text: &str, offset: usize, max: usize) -> (String, bool) {
        let bytes = text.as_bytes();
        let piece = &bytes[offset.min(bytes.len())..];
        let captured = super::text("f", offset as u64, piece, bytes.len() as u64, max, max * 4).expect("text");
        (captured.text, captured.truncated)
    }

    #[test]
    fn text_of_exactly_the_length_is_not_cut() {
        assert_eq!(cut("🙂🙂🙂", 0, 3), ("🙂🙂🙂".into(), false));
        assert_eq!(cut("🙂🙂🙂", 0, 2), ("🙂🙂".into(), true));
    }

    #[test]
    fn an_offset_inside_a_sequence_moves_to_the_next_character() {
        assert_eq!(cut("🙂ab", 1, 9), ("ab".into(), false));
    }

    #[test]
    fn an_offset_behind_the_end_reads_nothing() {
        assert_eq!(cut("ab", 7, 9), (String::new(), false));
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_place() {
        let failure = super::text("f", 0, b"ab\xff\x00c", 5, 9, 99).expect_err("binary");
        assert_eq!(failure.message, "`f` is not text: byte 2 of 5 is not valid UTF-8");
    }

    #[test]
    fn a_file_that_ends_within_a_sequence_is_refused() {
        assert!(super::text("f", 0, b"ab\xf0\x9f", 4, 9, 99).is_err());
    }
}
