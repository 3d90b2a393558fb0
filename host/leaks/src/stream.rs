//! Redaction of bytes that arrive in pieces, with the result that redacting the whole would have.
//!
//! What is searched for is left to `known`, and when a stream ends to the callers.

use super::known::Known;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// A stream on its way out.
///
/// Holds back what may still become part of a secret, or make one longer: nothing else, and less than
/// [`Known::longest`] bytes. So text that begins no secret is never late. Searches for the values that were known when
/// it began.
pub struct Stream {
    known: Arc<Known>,
    /// The beginning of a form; what is before it is decided.
    held: Vec<u8>,
    /// The names of the secrets that it held.
    found: BTreeSet<String>,
}

impl Stream {
    pub fn new(known: Arc<Known>) -> Self {
        Self { known, held: Vec::new(), found: BTreeSet::new() }
    }

    /// Takes a piece and returns what is certain so far; borrowed when it is the beginning of the piece, unchanged.
    pub fn push<'p>(&mut self, piece: &'p [u8]) -> Cow<'p, [u8]> {
        if self.held.is_empty() {
            let (output, decided) = decide(&self.known, piece, &mut self.found);
            self.held.extend_from_slice(&piece[decided..]);
            return output;
        }
        let mut bytes = mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let (output, decided) = decide(&self.known, &bytes, &mut self.found);
        let redacted = match output {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        };
        self.held = bytes.split_off(decided);
        Cow::Owned(redacted.unwrap_or(bytes))
    }

    /// Ends the stream and returns what was held back, and the names of the secrets that were in the whole of it.
    pub fn finish(mut self) -> (Vec<u8>, BTreeSet<String>) {
        self.found.extend(self.known.names(&self.held).map(str::to_owned));
        (self.known.redact_bytes(&self.held).into_owned(), self.found)
    }
}

/// Redacts the part of `bytes` that nothing after them can change; returns it, and its length in `bytes`.
fn decide<'b>(known: &Known, bytes: &'b [u8], found: &mut BTreeSet<String>) -> (Cow<'b, [u8]>, usize) {
    let mut unfinished = known.unfinished(bytes).peekable();
    let mut output = Vec::new();
    let mut done = 0;
    loop {
        // A match that ends past the beginning of a form takes that beginning with it.
        while unfinished.next_if(|start| *start < done).is_some() {}
        let decided = unfinished.peek().copied().unwrap_or(bytes.len());
        // A match from before `decided` stands: no earlier or longer one is to come. One from there on may be a part of
        // what follows, so it is looked for again.
        let Some(hit) = known.hit(bytes, done).filter(|hit| hit.start < decided) else {
            if done == 0 {
                return (Cow::Borrowed(&bytes[..decided]), decided);
            }
            output.extend_from_slice(&bytes[done..decided]);
            return (Cow::Owned(output), decided);
        };
        output.extend_from_slice(&bytes[done..hit.start]);
        output.extend_from_slice(hit.mark().as_bytes());
        found.insert(hit.name.to_owned());
        done = hit.end;
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::forms;
    use super::super::sample::{PRINTED, Random};
    use super::*;
    use proptest::prelude::*;

    fn known(secrets: &[impl AsRef<str>]) -> Arc<Known> {
        Arc::new(Known::new(secrets.iter().map(|value| ("S", value.as_ref()))))
    }

    /// Puts a text through a stream; after every piece, what is held must be the beginning of a form.
    fn streamed<'p>(known: &Arc<Known>, pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<u8> {
        let mut stream = Stream::new(known.clone());
        let mut output = Vec::new();
        for piece in pieces {
            output.extend_from_slice(&stream.push(piece));
            assert!(stream.held.is_empty() || known.unfinished(&stream.held).next() == Some(0));
            assert!(stream.held.len() < known.longest().max(1));
        }
        output.extend(stream.finish().0);
        output
    }

    fn every_cut_changes_nothing(known: &Arc<Known>, text: &[u8]) {
        let whole = known.redact_bytes(text);
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(streamed(known, [first, second]), *whole, "cut at {cut}");
        }
        assert_eq!(streamed(known, text.chunks(1)), *whole);
    }

    #[test]
    fn every_form_is_redacted_wherever_it_is_cut() {
        let value = "aab-aab/aaab \"c1'&d2\"";
        let known = known(&[value]);
        for form in forms::of(value) {
            every_cut_changes_nothing(&known, &[b"before ", &form[..], b" after"].concat());
            every_cut_changes_nothing(&known, &[&form[..form.len() - 1], &form[..], &form[..]].concat());
        }
    }

    #[test]
    fn overlapping_secrets_are_redacted_wherever_they_are_cut() {
        let hex = hex::encode("aabaab-1cd");
        let known = known(&[
            "aabaab-1cd",
            "aabaab-1cdef",
            "aabaab-1cdefghijk",
            "baab-1cdefg",
            "-1cdefghijkl",
            "ghijklmn-op",
            &hex,
            &format!("{hex}-z"),
        ]);
        for text in [
            "aabaab-1cdefghijklmn-op",
            "aaabaabaab-1cdefghij-1cdefghijkl",
            "aabaab-1cdefghijaabaab-1cdefghijk",
            "aabaabaabaabaab-1caabaab-1cde",
            &format!("{hex}{hex}-{hex}-z"),
        ] {
            every_cut_changes_nothing(&known, text.as_bytes());
        }
    }

    #[test]
    fn text_that_begins_no_secret_is_handed_out_at_once() {
        let known = known(&["Zq-secret-1", "Zq-secret-1-long"]);
        let mut stream = Stream::new(known.clone());
        assert!(matches!(stream.push(b"plain text"), Cow::Borrowed(b"plain text")));
        assert!(matches!(stream.push(b"plain Zq-"), Cow::Borrowed(b"plain ")));
        assert_eq!(*stream.push(b"sec"), *b"");
        assert_eq!(*stream.push(b"ond Zq-secret-1"), *b"Zq-second ");
        assert_eq!(*stream.push(b"."), *b"[secret:S].");
        assert_eq!(*stream.push(b"Zq-secret-1-long"), *b"[secret:S]");
        assert_eq!(*stream.push(b"Zq-secret-1-lo"), *b"");
        assert_eq!(format!("{stream:?}"), "Stream { held: 14, .. }");
        assert_eq!(stream.finish().0, b"[secret:S]-lo");
    }

    #[test]
    fn without_secrets_nothing_is_copied() {
        let mut stream = Stream::new(Arc::default());
        assert!(matches!(stream.push(b"text"), Cow::Borrowed(b"text")));
        assert_eq!(stream.finish().0, b"");
    }

    /// K-02: however a stream is cut into pieces.
    #[test]
    fn random_secrets_in_random_pieces_are_redacted() {
        let mut random = Random::new();
        let secrets: Vec<_> = (0..200).map(|index| random.text(PRINTED, 12 + index % 50)).collect();
        let known = known(&secrets);
        for secret in &secrets {
            let forms = forms::of(secret);
            for _ in 0..10 {
                let (front, back) = (random.below(300), random.below(300));
                let form = &forms[random.below(forms.len())];
                let text = [&random.text(PRINTED, front).into_bytes(), &form[..], &random.bytes(back)].concat();
                let mut rest = &text[..];
                let pieces = std::iter::from_fn(|| {
                    let length = (1 + random.below(40)).min(rest.len());
                    rest.split_off(..length).filter(|piece| !piece.is_empty())
                });
                let output = streamed(&known, pieces);
                assert_eq!(output, *known.redact_bytes(&text));
                assert!(!output.windows(form.len()).any(|window| window == form));
            }
        }
    }

    /// Secrets that begin alike, and with repeats of their own beginning; a text of pieces of their forms.
    fn alike() -> impl Strategy<Value = (Vec<String>, Vec<u8>, Vec<usize>)> {
        let secrets = prop::collection::vec("[ab]{3,8}c1-[ab]{2,4}", 1..6);
        let parts = prop::collection::vec((any::<(u16, u16, u16, u16)>(), "[abc1-]{0,3}"), 1..12);
        (secrets, parts, prop::collection::vec(1..40_usize, 1..20)).prop_map(|(secrets, parts, lengths)| {
            let forms: Vec<_> = secrets.iter().flat_map(|secret| forms::of(secret)).collect();
            let mut text = Vec::new();
            for ((of, from, to, raw), filler) in parts {
                // Every second part is of a value as it is, where most overlaps are.
                let form = match usize::from(of) {
                    of if raw % 2 == 0 => secrets[of % secrets.len()].as_bytes(),
                    of => &forms[of % forms.len()][..],
                };
                // Every third part is whole, the others are cut at one end or both.
                let from = [0, usize::from(from) % form.len()][usize::from(raw % 3 == 1)];
                let to = [form.len(), from + usize::from(to) % (form.len() - from + 1)][usize::from(raw % 3 > 0)];
                text.extend_from_slice(&form[from..to]);
                text.extend_from_slice(filler.as_bytes());
            }
            (secrets, text, lengths)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn a_stream_is_redacted_as_the_whole_is((secrets, text, lengths) in alike()) {
            let known = known(&secrets);
            prop_assume!(!known.is_apart(&text));
            let whole = known.redact_bytes(&text);
            let mut rest = &text[..];
            let mut lengths = lengths.iter().cycle();
            let pieces = std::iter::from_fn(|| {
                let length = (*lengths.next()?).min(rest.len());
                rest.split_off(..length).filter(|piece| !piece.is_empty())
            });
            prop_assert_eq!(&streamed(&known, pieces), &*whole);
            prop_assert_eq!(&streamed(&known, text.chunks(1)), &*whole);
        }
    }
}
