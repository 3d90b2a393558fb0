//! What a server sends: piece by piece, compression undone, never more at a time than a body may grow.

use base::envelope::Failure;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, ErrorKind, Write};

/// How many times its size a body may grow when its compression is undone, beyond [`FREE_BYTES`].
/// Deflate can reach about 1,000 to 1, which only a bomb does; pages and JSON stay far below 100.
const MAX_RATIO: usize = 100;
/// Short bodies may be all blanks.
const FREE_BYTES: usize = 64 << 10;

/// Bytes that one piece may grow to, however little the pieces before have grown.
const PIECE_BYTES: usize = 16 << 20;

/// The encodings that are undone, as `accept-encoding` names them.
pub(super) const ENCODINGS: &str = "gzip, deflate";

/// A body on its way.
pub(super) struct Body {
    decoder: Decoder,
    received: usize,
    unpacked: usize,
}

enum Decoder {
    Plain(Room),
    Gzip(MultiGzDecoder<Room>),
    Zlib(ZlibDecoder<Room>),
}

/// Takes as many bytes as there is room for, and refuses further ones.
#[derive(Default)]
struct Room {
    bytes: Vec<u8>,
    most: usize,
}

impl Body {
    /// `encoding` is the server's `content-encoding`.
    pub(super) fn new(encoding: Option<&str>) -> Result<Self, Failure> {
        let room = Room::default();
        let decoder = match encoding.map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "identity") => Decoder::Plain(room),
            Some("gzip" | "x-gzip") => Decoder::Gzip(MultiGzDecoder::new(room)),
            // HTTP means the zlib format by this name (RFC 9110, 8.4.1.2).
            Some("deflate") => Decoder::Zlib(ZlibDecoder::new(room)),
            Some(other) => {
                let message =
                    format!("the server encoded its answer as `{other}`, though only {ENCODINGS} was asked for");
                return Err(Failure::failed(message));
            }
        };
        Ok(Self { decoder, received: 0, unpacked: 0 })
    }

    /// Takes a piece; returns what it says.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, Failure> {
        self.received += piece.len();
        let allowed = FREE_BYTES + self.received.saturating_mul(MAX_RATIO) - self.unpacked;
        self.room().most = allowed.min(PIECE_BYTES);
        // Flushed, or a decoder would hold back what this piece grew to.
        let written = match &mut self.decoder {
            Decoder::Plain(room) => room.write_all(piece),
            Decoder::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Decoder::Zlib(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
        };
        let bytes = std::mem::take(&mut self.room().bytes);
        self.unpacked += bytes.len();
        match written {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                let message = format!("limit: a body grows at most {MAX_RATIO} times when it is unpacked");
                Err(Failure::limit(message).hint("this looks like a decompression bomb"))
            }
            Err(error) => Err(Failure::failed(format!("the server's answer cannot be unpacked: {error}"))),
        }
    }

    fn room(&mut self) -> &mut Room {
        match &mut self.decoder {
            Decoder::Plain(room) => room,
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zlib(decoder) => decoder.get_mut(),
        }
    }
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.most - self.bytes.len());
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

    fn read(encoding: Option<&str>, sent: &[u8]) -> Result<Vec<u8>, String> {
        let mut body = Body::new(encoding).map_err(|failure| failure.message)?;
        let mut whole = Vec::new();
        for piece in sent.chunks(1000) {
            whole.extend(body.push(piece).map_err(|failure| failure.message)?);
        }
        Ok(whole)
    }

    fn noise(length: usize) -> Vec<u8> {
        let step = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        std::iter::repeat_n((), length).scan(1, |state, ()| step(state)).collect()
    }

    #[test]
    fn a_body_is_handed_on_piece_by_piece() {
        let text = noise(5000);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&text).unwrap();
        let (gzip, zlib) = (gzip(&text), zlib.finish().unwrap());
        for (encoding, sent) in
            [(None, &text), (Some("gzip"), &gzip), (Some("deflate"), &zlib), (Some(" GZIP "), &gzip)]
        {
            assert_eq!(read(encoding, sent).unwrap(), text, "{encoding:?}");
        }
    }

    #[test]
    fn a_body_that_grows_without_bound_is_refused() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 70_000);
        assert!(read(Some("gzip"), &bomb).unwrap_err().contains("grows at most 100 times"));
    }

    #[test]
    fn other_encodings_and_broken_ones_are_told() {
        assert!(read(Some("br"), b"x").unwrap_err().contains("`br`"));
        assert!(read(Some("gzip"), b"no gzip at all").unwrap_err().contains("cannot be unpacked"));
    }
}
