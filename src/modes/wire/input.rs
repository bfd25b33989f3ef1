//! Lines from another program, read on a thread of their own.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use tokio::sync::mpsc;

/// Longest line that is read. A prompt with several images fits.
pub(in crate::modes) const MAX_LINE_BYTES: u64 = 64 << 20;
/// Lines that wait before the client has to.
const MAX_WAITING: usize = 16;

/// A line that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modes) enum LineInput {
    /// Without its break.
    Whole(Vec<u8>),
    /// Longer than [`MAX_LINE_BYTES`]; it was skipped.
    TooLong,
}

/// Reads `source` on a thread that ends with it, and passes on what `parse` makes of each
/// line. The channel closes at the end of the input.
///
/// # Errors
/// If the system cannot start a thread.
pub(in crate::modes) fn read_lines<T: Send + 'static>(
    source: impl Read + Send + 'static,
    parse: impl Fn(LineInput) -> T + Send + 'static,
) -> io::Result<mpsc::Receiver<T>> {
    let (sender, inputs) = mpsc::channel(MAX_WAITING);
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut source = BufReader::new(source);
        while let Some(line) = next_line(&mut source) {
            let is_blank =
                matches!(&line, LineInput::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace));
            if !is_blank && sender.blocking_send(parse(line)).is_err() {
                return;
            }
        }
    })?;
    Ok(inputs)
}

/// The next line; `None` at the end or when reading fails.
fn next_line(source: &mut impl BufRead) -> Option<LineInput> {
    let mut line = Vec::new();
    source.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
    if line.is_empty() {
        return None;
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE_BYTES {
        skip_line(source);
        return Some(LineInput::TooLong);
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Some(LineInput::Whole(line))
}

fn skip_line(source: &mut impl BufRead) {
    loop {
        let Ok(bytes) = source.fill_buf() else { return };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let n_bytes = end.map_or(bytes.len(), |end| end + 1);
        source.consume(n_bytes);
        if end.is_some() || n_bytes == 0 {
            return;
        }
    }
}
