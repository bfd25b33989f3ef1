//! A scripted service that answers over WebSockets, and over HTTP like [`SseServer`].
//!
//! Connections that ask for the upgrade take the scripts in order, all other requests the
//! replies. A script is a list of steps; after the last one the connection stays open
//! until the client closes it.
//!
//! [`SseServer`]: super::sse_server::SseServer

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use pi::ai::TestBarrier;
use ring::digest;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::sse_server::{RecordedRequest, Reply, Sent, read_request, send};
use super::tls_server::server_config;

/// A running server; it stops when dropped.
pub(crate) struct WebSocketServer {
    url: String,
    shared: Arc<Shared>,
    listener: JoinHandle<()>,
}

/// What happens to a connection that asks for the upgrade.
pub(crate) enum Script {
    /// An answer in place of the upgrade.
    Refuse(Reply),
    /// An upgrade with this key of the server.
    WrongKey,
    Steps(Vec<Step>),
}

pub(crate) enum Step {
    /// Waits for a request and records it.
    Request,
    Send(String),
    /// Sends a ping and waits for its answer.
    Ping,
    /// Waits here until the test opens the barrier, or the client hangs up.
    Gate(TestBarrier),
    Close(u16, &'static str),
    /// Bytes that need not be a frame.
    Raw(Vec<u8>),
    /// Breaks the connection off.
    HangUp,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<VecDeque<Script>>,
    replies: Mutex<VecDeque<Reply>>,
    upgrades: Mutex<Vec<RecordedRequest>>,
    posts: Mutex<Vec<RecordedRequest>>,
    /// With the number of the connection, from 0.
    requests: Mutex<Vec<(usize, Value)>>,
    /// One permit for each connection with a WebSocket that the client has closed.
    closed: Closed,
    tls: Option<TlsAcceptor>,
}

struct Closed(Semaphore);

impl Default for Closed {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl WebSocketServer {
    /// Listens on a free local port.
    pub(crate) async fn start(
        scripts: impl IntoIterator<Item = Script>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        Self::listen(scripts, replies, None).await
    }

    /// As [`Self::start`] with TLS. Takes connections through a proxy, too: it is the proxy.
    pub(crate) async fn start_tls(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::listen(scripts, [], Some(TlsAcceptor::from(Arc::new(server_config())))).await
    }

    async fn listen(
        scripts: impl IntoIterator<Item = Script>,
        replies: impl IntoIterator<Item = Reply>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", socket.local_addr().unwrap());
        let shared = Arc::new(Shared { tls, ..Shared::default() });
        shared.scripts.lock().unwrap().extend(scripts);
        shared.replies.lock().unwrap().extend(replies);
        let for_listener = shared.clone();
        let listener = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = socket.accept().await {
                let shared = for_listener.clone();
                connections.spawn(async move { shared.serve(socket).await });
            }
        });
        Self { url, shared, listener }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The requests for an upgrade, and those of proxies.
    pub(crate) fn upgrades(&self) -> Vec<RecordedRequest> {
        self.shared.upgrades.lock().unwrap().clone()
    }

    /// The requests over HTTP.
    pub(crate) fn posts(&self) -> Vec<RecordedRequest> {
        self.shared.posts.lock().unwrap().clone()
    }

    /// The requests over WebSockets, each with the number of its connection.
    pub(crate) fn requests(&self) -> Vec<(usize, Value)> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns once the client has closed a connection; each closing is reported once.
    pub(crate) async fn client_closed(&self) {
        self.shared.closed.0.acquire().await.unwrap().forget();
    }
}

impl Drop for WebSocketServer {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Shared {
    async fn serve(&self, mut socket: TcpStream) {
        let Some(acceptor) = &self.tls else { return self.serve_stream(socket).await };
        let mut first = [0];
        if socket.peek(&mut first).await.is_ok() && first == *b"C" {
            let Some(request) = read_request(&mut socket).await else { return };
            self.upgrades.lock().unwrap().push(request);
            socket.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
        }
        if let Ok(stream) = acceptor.accept(socket).await {
            self.serve_stream(stream).await;
        }
    }

    async fn serve_stream(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) {
        while let Some(request) = read_request(&mut socket).await {
            if request.header("upgrade") == Some("websocket") {
                self.upgrades.lock().unwrap().push(request.clone());
                let script = self.scripts.lock().unwrap().pop_front();
                let n = self.upgrades.lock().unwrap().len() - 1;
                match script.unwrap_or_else(|| Script::Refuse(Reply::status(500, &[], "no script"))) {
                    Script::Refuse(reply) => match send(&mut socket, reply).await {
                        Sent::Whole => continue,
                        Sent::HungUp => return,
                        Sent::ClientGone => {}
                    },
                    Script::WrongKey => {
                        accept(&mut socket, "d3Jvbmc=").await;
                        drop(socket.read(&mut [0]).await);
                    }
                    Script::Steps(steps) => {
                        let key = request.header("sec-websocket-key").unwrap();
                        accept(&mut socket, &accept_key(key)).await;
                        if !self.play(n, socket, steps).await {
                            return;
                        }
                    }
                }
                self.closed.0.add_permits(1);
                return;
            }
            let reply = self.replies.lock().unwrap().pop_front();
            self.posts.lock().unwrap().push(request);
            let reply = reply.unwrap_or_else(|| Reply::status(500, &[], "no reply scripted"));
            match send(&mut socket, reply).await {
                Sent::Whole => {}
                Sent::HungUp | Sent::ClientGone => return,
            }
        }
    }

    /// Whether the client closed the connection.
    async fn play(&self, n: usize, stream: impl AsyncRead + AsyncWrite + Unpin, steps: Vec<Step>) -> bool {
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        for step in steps {
            match step {
                Step::Request => match socket.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let request = serde_json::from_str(&text).unwrap();
                        self.requests.lock().unwrap().push((n, request));
                    }
                    _ => return true,
                },
                Step::Send(text) => {
                    if socket.send(Message::text(text)).await.is_err() {
                        return true;
                    }
                }
                Step::Ping => {
                    socket.send(Message::Ping("are you there".into())).await.unwrap();
                    match socket.next().await {
                        Some(Ok(Message::Pong(said))) => assert_eq!(&*said, b"are you there"),
                        _ => return true,
                    }
                }
                Step::Gate(gate) => {
                    tokio::select! {
                        () = gate.pass() => {}
                        message = socket.next() => {
                            assert!(!matches!(message, Some(Ok(Message::Text(_)))), "{message:?}");
                            return true;
                        }
                    }
                }
                Step::Close(code, reason) => {
                    let frame = CloseFrame { code: code.into(), reason: reason.into() };
                    socket.close(Some(frame)).await.unwrap();
                    while let Some(Ok(_)) = socket.next().await {}
                    return false;
                }
                Step::Raw(bytes) => {
                    socket.get_mut().write_all(&bytes).await.unwrap();
                    socket.get_mut().flush().await.unwrap();
                }
                Step::HangUp => return false,
            }
        }
        while let Some(Ok(_)) = socket.next().await {}
        true
    }
}

async fn accept(socket: &mut (impl AsyncWrite + Unpin), key: &str) {
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {key}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
}

/// RFC 6455, section 4.2.2.
fn accept_key(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}
