//! Lines from another program, read on a thread of their own.

use std::io::{self, BufRead, BufReader, Read};
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use tokio::sync::mpsc;

use crate::util::panics::crash_text;

use super::output::{LineOutput, Waiting};

/// Longest line that is read. A prompt with several images fits.
pub(in crate::modes) const MAX_LINE_BYTES: u64 = 64 << 20;
/// Lines that wait before the client has to.
const MAX_WAITING: usize = 16;

/// Requests without a response, before no more is read. Each may use a thread.
const MAX_IN_FLIGHT: usize = 64;

/// A line that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modes) enum LineInput {
    /// Without its break.
    Whole(Vec<u8>),
    /// Longer than [`MAX_LINE_BYTES`]; it was skipped.
    TooLong,
    /// Reading it failed, for this reason.
    Failed(String),
}

impl LineInput {
    /// Without the byte order mark that some programs write before their first line.
    fn without_mark(self) -> Self {
        match self {
            Self::Whole(bytes) => {
                Self::Whole(bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes))
            }
            other @ (Self::TooLong | Self::Failed(_)) => other,
        }
    }
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
        let mut is_first = true;
        while let Some(mut line) = next_line(&mut source) {
            if std::mem::take(&mut is_first) {
                line = line.without_mark();
            }
            let is_blank =
                matches!(&line, LineInput::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace));
            if is_blank {
                continue;
            }
            let parsed = panic::catch_unwind(AssertUnwindSafe(|| parse(line)));
            let parsed = parsed.unwrap_or_else(|panic| parse(LineInput::Failed(crash_text(&*panic))));
            if sender.blocking_send(parsed).is_err() {
                return;
            }
        }
    })?;
    Ok(inputs)
}

/// The next input, once there is room for it: fewer than [`MAX_IN_FLIGHT`] requests are in
/// flight, and the client reads its responses. Until then lines wait unread. `None` at the end of
/// the input. May be dropped and called again, and must be when a request has its response.
///
/// Requests count as in flight only if nothing else that the client sends can be necessary for
/// their responses.
pub(in crate::modes) async fn next_input<T, I: Waiting>(
    inputs: &mut mpsc::Receiver<T>,
    n_in_flight: usize,
    output: &LineOutput<I>,
) -> Option<T> {
    if n_in_flight >= MAX_IN_FLIGHT {
        return std::future::pending().await;
    }
    output.room().await;
    inputs.recv().await
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::{EventStyle, Lines};
    use super::*;

    #[tokio::test]
    async fn line_whose_parser_panics_is_answered_and_others_are_read() {
        let parse = |line| match line {
            LineInput::Whole(bytes) if bytes == b"bad" => panic!("the parser broke"),
            line => line,
        };
        let mut inputs = read_lines(&b"one\nbad\ntwo\n"[..], parse).unwrap();
        assert_eq!(inputs.recv().await, Some(LineInput::Whole(b"one".to_vec())));
        let failed = "internal error in pi: the parser broke; please report it";
        assert_eq!(inputs.recv().await, Some(LineInput::Failed(failed.to_owned())));
        assert_eq!(inputs.recv().await, Some(LineInput::Whole(b"two".to_vec())));
        assert_eq!(inputs.recv().await, None);
    }

    #[tokio::test]
    async fn byte_order_mark_before_the_first_line_is_no_part_of_it() {
        let mut inputs = read_lines("\u{feff}one\n\u{feff}two\n".as_bytes(), |line| line).unwrap();
        assert_eq!(inputs.recv().await, Some(LineInput::Whole(b"one".to_vec())));
        assert_eq!(inputs.recv().await, Some(LineInput::Whole("\u{feff}two".into())));
        let mut inputs = read_lines("\u{feff}\nx".as_bytes(), |line| line).unwrap();
        assert_eq!(inputs.recv().await, Some(LineInput::Whole(b"x".to_vec())));
    }

    #[tokio::test]
    async fn lines_wait_unread_while_as_many_requests_as_may_be_are_in_flight() {
        let output = LineOutput::start(Lines::new(EventStyle::Whole), io::sink()).unwrap();
        let lines = "x\n".repeat(100_000);
        let (reader, mut writer) = io::pipe().unwrap();
        let mut inputs = read_lines(reader, |line| line).unwrap();
        let (sent, all_sent) = std::sync::mpsc::channel();
        thread::spawn(move || {
            io::Write::write_all(&mut writer, lines.as_bytes()).unwrap();
            sent.send(()).unwrap();
        });
        for _ in 0..MAX_IN_FLIGHT {
            next_input(&mut inputs, MAX_IN_FLIGHT - 1, &output).await.unwrap();
        }
        // What is read ahead and what the pipe holds is less than what the client sends.
        while inputs.len() < MAX_WAITING {
            tokio::task::yield_now().await;
        }
        assert_eq!(next_input(&mut inputs, MAX_IN_FLIGHT, &output).now_or_never(), None);
        assert!(all_sent.try_recv().is_err(), "the client could send everything");
        let mut n_read = MAX_IN_FLIGHT;
        while next_input(&mut inputs, 0, &output).await.is_some() {
            n_read += 1;
        }
        assert_eq!(n_read, 100_000);
    }
}
