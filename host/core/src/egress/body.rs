//! What a server sends: read piece by piece, compression undone, never more than was asked for.

use crate::envelope::Failure;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, ErrorKind, Write};

/// How many times its size a body may grow when its compression is undone, beyond [`FREE_BYTES`].
/// Deflate can reach about 1,000 to 1, which only a bomb does; pages and JSON stay far below 100.
const MAX_RATIO: usize = 100;
/// Short bodies may be all blanks.
const FREE_BYTES: usize = 64 << 10;

/// The encodings that are undone, as `accept-encoding` names them.
pub(super) const ENCODINGS: &str = "gzip, deflate";

/// A body on its way.
pub(super) struct Body {
    decoder: Decoder,
    received: usize,
}

enum Decoder {
    Plain(Head),
    Gzip(MultiGzDecoder<Head>),
    Zlib(ZlibDecoder<Head>),
}

/// Takes the first bytes and refuses further ones.
struct Head {
    bytes: Vec<u8>,
    limit: usize,
}

impl Body {
    /// `encoding` is the server's `content-encoding`.
    pub(super) fn new(encoding: Option<&str>, limit: usize) -> Result<Self, Failure> {
        let head = Head { bytes: Vec::new(), limit };
        let decoder = match encoding.map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "identity") => Decoder::Plain(head),
            Some("gzip" | "x-gzip") => Decoder::Gzip(MultiGzDecoder::new(head)),
            // HTTP means the zlib format by this name (RFC 9110, 8.4.1.2).
            Some("deflate") => Decoder::Zlib(ZlibDecoder::new(head)),
            Some(other) => {
                let message =
                    format!("the server encoded its answer as `{other}`, though only {ENCODINGS} was asked for");
                return Err(Failure::failed(message));
            }
        };
        Ok(Self { decoder, received: 0 })
    }

    /// Takes a piece; returns whether more is wanted.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<bool, Failure> {
        self.received += piece.len();
        // Flushed, or a decoder would hold back what this piece grew to, and the check below would miss it.
        let written = match &mut self.decoder {
            Decoder::Plain(head) => head.write_all(piece),
            Decoder::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Decoder::Zlib(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
        };
        let decoded = self.head().bytes.len();
        // Before the limit is looked at: a bomb is refused even if its head would be enough for the guest.
        if decoded > FREE_BYTES + self.received.saturating_mul(MAX_RATIO) {
            let message = format!("limit: a body grows at most {MAX_RATIO} times when it is unpacked");
            return Err(Failure::limit(message).hint("this looks like a decompression bomb"));
        }
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::StorageFull => Ok(false),
            Err(error) => Err(Failure::failed(format!("the server's answer cannot be unpacked: {error}"))),
        }
    }

    /// The bytes, as many as were asked for.
    pub(super) fn finish(self) -> Vec<u8> {
        match self.decoder {
            Decoder::Plain(head) => head.bytes,
            Decoder::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
            Decoder::Zlib(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
        }
    }

    fn head(&self) -> &Head {
        match &self.decoder {
            Decoder::Plain(head) => head,
            Decoder::Gzip(decoder) => decoder.get_ref(),
            Decoder::Zlib(decoder) => decoder.get_ref(),
        }
    }
}

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.limit - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(encoding: Option<&str>, sent: &[u8], limit: usize) -> Result<(Vec<u8>, bool), String> {
        let mut body = Body::new(encoding, limit).map_err(|failure| failure.message)?;
        for piece in sent.chunks(1000) {
            if !body.push(piece).map_err(|failure| failure.message)? {
                return Ok((body.finish(), true));
            }
        }
        Ok((body.finish(), false))
    }

    fn noise(length: usize) -> Vec<u8> {
        let step = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        std::iter::repeat_n((), length).scan(1, |state, ()| step(state)).collect()
    }

    #[test]
    fn a_body_is_handed_on_whole_or_to_its_limit() {
        let text = noise(5000);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&text).unwrap();
        let (gzip, zlib) = (gzip(&text), zlib.finish().unwrap());
        for (encoding, sent) in
            [(None, &text), (Some("gzip"), &gzip), (Some("deflate"), &zlib), (Some(" GZIP "), &gzip)]
        {
            assert_eq!(read(encoding, sent, 5000).unwrap(), (text.clone(), false), "{encoding:?}");
            assert_eq!(read(encoding, sent, 4999).unwrap(), (text[..4999].to_vec(), true), "{encoding:?}");
        }
    }

    #[test]
    fn a_body_that_grows_without_bound_is_refused() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 70_000);
        assert!(read(Some("gzip"), &bomb, 8 << 20).unwrap_err().contains("grows at most 100 times"));
    }

    #[test]
    fn other_encodings_and_broken_ones_are_told() {
        assert!(read(Some("br"), b"x", 10).unwrap_err().contains("`br`"));
        assert!(read(Some("gzip"), b"no gzip at all", 10).unwrap_err().contains("cannot be unpacked"));
    }
}
