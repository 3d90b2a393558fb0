//! Lines of whoever speaks in lines, none longer than it may be.

use crate::envelope::Failure;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads one line of at most so many bytes; one that is longer is read to its end and refused. `None` at the end of the input.
pub async fn next_line(input: &mut BufReader<impl AsyncRead + Unpin>, most: usize) -> Option<Result<Vec<u8>, Failure>> {
    let mut line = Vec::new();
    let mut too_long = false;
    let over_long = || Err(Failure::invalid(format!("a line is longer than {most} bytes")));
    loop {
        let buffer = input.fill_buf().await.ok()?;
        if buffer.is_empty() {
            return (!line.is_empty() || too_long).then(|| if too_long { over_long() } else { Ok(line) });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > most;
        if !too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Some(if too_long { over_long() } else { Ok(line) });
        }
    }
}
