//! The body of a request: bytes in memory, or pieces that are written while they are sent.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_LENGTH;
use tokio::sync::mpsc;

use crate::util::worker;

/// Writes a body, the same bytes every time.
pub(in crate::ai) type WriteBody = dyn Fn(&mut dyn io::Write) -> io::Result<()> + Send + Sync;

/// Cheap to clone, so that an attempt does not copy it.
#[derive(Clone)]
pub(in crate::ai) enum HttpBody {
    Whole(Bytes),
    /// Only a few pieces of it are in memory at a time.
    Written {
        /// Its length; servers of HTTP/1 may reject a body without it.
        n_bytes: u64,
        write: Arc<WriteBody>,
    },
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Written { n_bytes, .. } => write!(f, "{n_bytes} bytes to be written"),
        }
    }
}

impl HttpBody {
    /// Its length.
    pub(in crate::ai) fn n_bytes(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Written { n_bytes, .. } => *n_bytes,
        }
    }

    pub(super) fn attach(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Whole(bytes) => request.body(bytes.clone()),
            Self::Written { n_bytes, write } => {
                let body = reqwest::Body::wrap_stream(pieces(Arc::clone(write)));
                request.header(CONTENT_LENGTH, *n_bytes).body(body)
            }
        }
    }
}

/// How much is sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// How many pieces may wait for the connection.
const MAX_WAITING: usize = 4;

/// What `write` writes on a thread of its own, which waits while the connection is busy.
/// Dropping the stream ends it.
fn pieces(write: Arc<WriteBody>) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        let mut out = Pieces { sender: sender.clone(), bytes: BytesMut::new() };
        let work = move || write(&mut out).and_then(|()| out.send());
        let written = worker::run("request body", work).await;
        if let Err(error) = written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            // If nobody receives it, the request was given up.
            drop(sender.send(Err(error)).await);
        }
    });
    stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|piece| (piece, receiver)) })
}

struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    bytes: BytesMut,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let piece = self.bytes.split().freeze();
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.bytes.reserve(PIECE_BYTES);
        }
        let n = bytes.len().min(PIECE_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..n]);
        if self.bytes.len() == PIECE_BYTES {
            self.send()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::StreamExt as _;

    use super::*;

    const LINE: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";

    /// Writes `n_lines`, and counts those that were taken.
    fn lines(n_lines: usize, n_taken: &Arc<AtomicUsize>) -> Arc<WriteBody> {
        let n_taken = Arc::clone(n_taken);
        Arc::new(move |out| {
            (0..n_lines).try_for_each(|_| {
                out.write_all(LINE)?;
                n_taken.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
    }

    #[tokio::test]
    async fn pieces_are_what_was_written() {
        let n_taken = Arc::default();
        let mut body = Vec::new();
        let mut stream = Box::pin(pieces(lines(5_000, &n_taken)));
        while let Some(piece) = stream.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            body.write_all(&piece).unwrap();
        }
        assert_eq!(body, LINE.repeat(5_000));
    }

    #[tokio::test]
    async fn writer_waits_for_the_connection_and_ends_with_it() {
        let n_taken = Arc::new(AtomicUsize::new(0));
        let ended = Arc::clone(&n_taken);
        let mut stream = Box::pin(pieces(lines(1_000_000, &n_taken)));
        drop(stream.next().await.unwrap().unwrap());
        let per_piece = PIECE_BYTES / LINE.len();
        // The one that was taken, those that wait, and the one that waits to wait.
        assert!(n_taken.load(Ordering::Relaxed) <= per_piece * (MAX_WAITING + 2));
        drop(stream);
        drop(n_taken);
        // The thread and its task let go of the counter.
        while Arc::strong_count(&ended) > 1 {
            tokio::task::yield_now().await;
        }
        assert!(ended.load(Ordering::Relaxed) < 1_000_000);
    }

    #[tokio::test]
    async fn an_error_of_the_writer_reaches_the_connection() {
        let write: Arc<WriteBody> = Arc::new(|out| {
            out.write_all(LINE)?;
            Err(io::Error::other("no more"))
        });
        let pieces: Vec<_> = pieces(write).collect().await;
        assert_eq!(pieces.last().unwrap().as_ref().unwrap_err().to_string(), "no more");
    }
}
