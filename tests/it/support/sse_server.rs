//! A scripted HTTP server inside the test process.
//!
//! Replies are given out in order, one per request, and are raw: a reply is a
//! list of byte pieces with gates between them at which the server waits for the
//! test. It records the requests and knows when a client hangs up. It speaks
//! just enough HTTP/1.1 for that: one request at a time per connection, bodies
//! by content length.
//!
//! ```ignore
//! let server = SseServer::start([Reply::sse("data: {}\n\n")]).await;
//! // … point a model's base URL at server.url() …
//! assert_eq!(server.requests()[0].path, "/v1/messages");
//! ```

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pi::ai::TestBarrier;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A running server; it stops when dropped.
pub(crate) struct SseServer {
    url: String,
    shared: Arc<Shared>,
    /// Owns the connections' tasks too: they end with the listener's.
    listener: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<RecordedRequest>>,
    n_connections: Mutex<usize>,
    /// One permit per connection that the client has closed.
    closed: Closed,
}

struct Closed(Semaphore);

impl Default for Closed {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// `Null` if the body is not JSON.
    pub(crate) body: Value,
    /// The body as text.
    pub(crate) text: String,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The server's reply to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// The only path it is for; `None` for any.
    path: Option<String>,
    /// Part of the bodies it is for; none for any.
    about: String,
    pieces: Vec<Piece>,
    is_chunked: bool,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    TestBarrier(TestBarrier),
    HangUp,
}

impl Reply {
    /// A complete event stream.
    pub(crate) fn sse(body: impl AsRef<[u8]>) -> Self {
        Self::stream("text/event-stream").piece(body)
    }

    /// The head of a successful response of that type; the body follows in
    /// [`Self::piece`]s, each a chunk of its own.
    pub(crate) fn stream(content_type: &str) -> Self {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n");
        Self { pieces: vec![Piece::Bytes(head.into_bytes())], is_chunked: true, ..Self::default() }
    }

    /// A whole response.
    pub(crate) fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        }
        Self::raw(head + "\r\n" + body)
    }

    /// Exactly these bytes.
    pub(crate) fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes.as_ref().to_vec())], ..Self::default() }
    }

    #[must_use]
    /// Keeps the reply for requests of this path.
    pub(crate) fn on(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    #[must_use]
    /// Keeps the reply for requests with this text in their body.
    pub(crate) fn about(mut self, text: &str) -> Self {
        text.clone_into(&mut self.about);
        self
    }

    pub(crate) fn piece(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return self;
        }
        self.pieces.push(Piece::Bytes(if self.is_chunked {
            [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
        } else {
            bytes.to_vec()
        }));
        self
    }

    /// Waits here until the test opens `gate`, or the client hangs up.
    #[must_use]
    pub(crate) fn gate(mut self, gate: &TestBarrier) -> Self {
        self.pieces.push(Piece::TestBarrier(gate.clone()));
        self
    }

    /// Closes the connection here, whatever was promised.
    #[must_use]
    pub(crate) fn hang_up(mut self) -> Self {
        self.pieces.push(Piece::HangUp);
        self
    }
}

impl SseServer {
    /// Listens on a free local port.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        shared.replies.lock().unwrap().extend(replies);
        let for_listener = shared.clone();
        let listener = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = socket.accept().await {
                *for_listener.n_connections.lock().unwrap() += 1;
                let shared = for_listener.clone();
                connections.spawn(async move { shared.serve(socket).await });
            }
        });
        Self { url, shared, listener }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// One more reply, after those there are.
    pub(crate) fn reply(&self, reply: Reply) {
        self.shared.replies.lock().unwrap().push_back(reply);
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn n_connections(&self) -> usize {
        *self.shared.n_connections.lock().unwrap()
    }

    /// Returns once a client has closed a connection; each closing is reported once.
    pub(crate) async fn client_closed(&self) {
        self.shared.closed.0.acquire().await.unwrap().forget();
    }
}

impl Drop for SseServer {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Shared {
    /// The first reply that is for such a request, or for any.
    fn reply_to(&self, path: &str, body: &str) -> Option<Reply> {
        let mut replies = self.replies.lock().unwrap();
        let is_for = |reply: &Reply| {
            reply.path.as_deref().is_none_or(|only| only == path) && body.contains(&reply.about)
        };
        let at = replies.iter().position(is_for)?;
        replies.remove(at)
    }

    async fn serve(&self, mut socket: TcpStream) {
        while let Some(request) = read_request(&mut socket).await {
            let reply = self.reply_to(&request.path, &request.text);
            self.requests.lock().unwrap().push(request);
            let reply = reply.unwrap_or_else(|| Reply::status(500, &[], "no reply scripted"));
            match send(&mut socket, reply).await {
                Sent::Whole => {}
                Sent::HungUp => return,
                Sent::ClientGone => break,
            }
        }
        self.closed.0.add_permits(1);
    }
}

pub(super) enum Sent {
    Whole,
    HungUp,
    ClientGone,
}

pub(super) async fn send(socket: &mut (impl AsyncRead + AsyncWrite + Unpin), reply: Reply) -> Sent {
    for piece in reply.pieces {
        match piece {
            Piece::Bytes(bytes) => {
                if socket.write_all(&bytes).await.is_err() || socket.flush().await.is_err() {
                    return Sent::ClientGone;
                }
            }
            Piece::TestBarrier(gate) => {
                let mut byte = [0];
                tokio::select! {
                    () = gate.pass() => {}
                    // A client sends nothing before the reply is complete.
                    _ = socket.read(&mut byte) => return Sent::ClientGone,
                }
            }
            Piece::HangUp => return Sent::HungUp,
        }
    }
    if reply.is_chunked && socket.write_all(b"0\r\n\r\n").await.is_err() {
        return Sent::ClientGone;
    }
    Sent::Whole
}

/// `None` once the client has closed the connection.
pub(super) async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head_end + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[head_end..]).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[head_end..]).into_owned();
    Some(RecordedRequest { method, path, headers, body, text })
}
