//! Requests over WebSockets: which connection takes a request, and until when it stays open.
//!
//! A request gets the kept connection of its session, or a new one. What the service answers
//! is the business of `http_provider`, what is sent that of `api::Chain`. Until the first event of an
//! answer a request can go another way: on a new connection, as a whole, over HTTP.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ai::api::{Chain, SocketError, is_aside};
use crate::ai::failure::RequestError;
use crate::ai::transport::{AFTER_A_STOP, SocketEnd, Transport, WebSocket, silence};
use crate::util::clock::Clock;

/// Which requests travel over WebSockets, where the service has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebSocketUse {
    /// None: all are streamed over HTTP.
    #[default]
    Never,
    /// Each has a connection of its own.
    PerRequest,
    /// Those of a session share one, which stays open between them.
    Kept,
}

/// Services close a connection after an hour, also in the middle of an answer.
const MAX_AGE: Duration = Duration::from_secs(45 * 60);
/// Difference between the wall clock and the timer that shows that the machine slept.
const SLEPT: Duration = Duration::from_secs(10);
/// Connections that one request may use: a kept one that has closed, one that was too old, a new one.
const MAX_ATTEMPTS: usize = 3;
/// Most bytes that are read at once.
const BATCH_BYTES: usize = 64 << 10;

/// The kept connections, by session. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sockets(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    kept: HashMap<String, Kept>,
    /// Addresses that do not speak the protocol.
    unavailable: HashSet<String>,
}

/// A connection between two requests. Dropping it closes the connection.
#[derive(Debug)]
struct Kept {
    address: Address,
    /// When it began to wait, by the wall clock and by the timer.
    since: (u64, Instant),
    /// Reads the connection meanwhile.
    task: JoinHandle<Option<Connection>>,
    /// Ends the task.
    hold: DropGuard,
}

/// What a connection was opened with: it is used for nothing else.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) provider: String,
}

#[derive(Debug)]
struct Connection {
    socket: WebSocket,
    chain: Chain,
    opened: Instant,
}

impl Connection {
    /// Sends a request and waits for the first event of its answer.
    async fn ask(&mut self, request: String) -> Result<Utf8Bytes, SocketEnd> {
        self.socket.send(request).await?;
        loop {
            let event = self.socket.next().await?;
            if !is_aside(&event) {
                return Ok(event);
            }
        }
    }
}

/// A request that can be sent over a WebSocket.
#[derive(Debug)]
pub(super) struct SocketRequest {
    pub(super) address: Address,
    /// That of the HTTP request.
    pub(super) body: Bytes,
    /// The session whose connection is used and kept.
    pub(super) session: Option<String>,
}

/// Why there is no answer to read.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// The service has not begun to answer: the request can be sent over HTTP.
    Unavailable(String),
    /// The service refused the request.
    Refused(RequestError),
    /// The service said nothing for too long.
    Silent,
}

/// How long a request waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// For a connection; `None` means no limit.
    pub(super) connect: Option<Duration>,
    /// For the first event; `None` means no limit.
    pub(super) first_event: Option<Duration>,
}

impl Sockets {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the address is known not to speak the protocol.
    pub(super) fn is_unavailable(&self, url: &str) -> bool {
        self.known().unavailable.contains(url)
    }

    /// Closes the connection of a session.
    pub(super) fn end_session(&self, session: &str) {
        let kept = self.known().kept.remove(session);
        drop(kept);
    }

    /// Sends a request and waits for the first event of its answer.
    ///
    /// # Errors
    /// If there is no connection, or the service refuses the request.
    pub(super) async fn open(
        &self,
        request: &SocketRequest,
        transport: &Transport,
        waits: Waits,
        clock: &Clock,
    ) -> Result<SocketAnswer, NotOpened> {
        let mut waiting = match &request.session {
            Some(session) => self.take(session, &request.address, clock).await,
            None => None,
        };
        let mut problem = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let is_kept = waiting.is_some();
            let mut connection = match waiting.take() {
                Some(connection) => connection,
                None => self.connect(&request.address, transport, waits.connect, clock).await?,
            };
            let frame = connection.chain.frame(&request.body);
            let frame = frame.map_err(|error| NotOpened::Unavailable(error.to_string()))?;
            let first = {
                let mut asking = pin!(connection.ask(frame.text));
                tokio::select! {
                    biased;
                    first = &mut asking => Some(first),
                    // It may have arrived while pi was stopped.
                    () = silence(waits.first_event, clock) => {
                        tokio::time::timeout(AFTER_A_STOP, asking).await.ok()
                    }
                }
            };
            let first = match first.ok_or(NotOpened::Silent)? {
                Ok(first) => first,
                Err(end) if is_kept => {
                    problem = end.to_string();
                    continue;
                }
                Err(end) => return Err(NotOpened::Unavailable(end.to_string())),
            };
            match SocketError::of(&first) {
                None => {
                    let answer = SocketAnswer {
                        connection,
                        first: Some(first),
                        end: None,
                        home: request
                            .session
                            .clone()
                            .map(|session| (self.clone(), session, request.address.clone())),
                    };
                    return Ok(answer);
                }
                Some(error) if error.is_connection_limit() => problem = error.error.text,
                // The service may have forgotten the earlier answer; the chain begins anew.
                Some(error) if frame.is_continued && error.is_about_the_request() => {
                    problem = error.error.text;
                    waiting = Some(connection);
                }
                Some(error) => return Err(NotOpened::Refused(error.error)),
            }
        }
        Err(NotOpened::Unavailable(problem))
    }

    async fn connect(
        &self,
        address: &Address,
        transport: &Transport,
        timeout: Option<Duration>,
        clock: &Clock,
    ) -> Result<Connection, NotOpened> {
        let Address { url, headers, provider } = address;
        let opening = transport.web_socket(url, headers.clone(), provider, clock.now_ms());
        let opened = match timeout {
            Some(limit) => tokio::time::timeout(limit, opening).await.ok(),
            None => Some(opening.await),
        };
        let (text, is_lasting) = match opened {
            Some(Ok(socket)) => {
                return Ok(Connection { socket, chain: Chain::default(), opened: Instant::now() });
            }
            Some(Err(error)) => (error.text, error.is_lasting),
            // The next request shall not wait again.
            None => (format!("no connection within {} s", timeout.unwrap_or_default().as_secs_f64()), true),
        };
        if is_lasting {
            self.known().unavailable.insert(url.clone());
        }
        Err(NotOpened::Unavailable(text))
    }

    /// The kept connection of `session`, if it can take a request.
    async fn take(&self, session: &str, address: &Address, clock: &Clock) -> Option<Connection> {
        let kept = self.known().kept.remove(session)?;
        let Kept { address: its_address, since: (wall_ms, timer), task, hold } = kept;
        let by_wall = Duration::from_millis(clock.now_ms().saturating_sub(wall_ms));
        // Timers stop while a machine sleeps; connections do not survive that, and nobody says so.
        if its_address != *address || by_wall > timer.elapsed() + SLEPT {
            return None;
        }
        drop(hold);
        task.await.ok().flatten()
    }

    fn keep(&self, session: String, address: Address, connection: Connection, clock: &Clock) {
        let hold = CancellationToken::new();
        let task = tokio::spawn(wait_between(connection, hold.clone()));
        let since = (clock.now_ms(), Instant::now());
        let kept = Kept { address, since, task, hold: hold.drop_guard() };
        let replaced = self.known().kept.insert(session, kept);
        drop(replaced);
    }
}

/// Reads a connection that nobody uses, so that pings are answered, until `wanted` fires. `None`
/// if it was closed or became too old.
async fn wait_between(mut connection: Connection, wanted: CancellationToken) -> Option<Connection> {
    let end = connection.opened + MAX_AGE;
    loop {
        tokio::select! {
            biased;
            () = wanted.cancelled() => return Some(connection),
            // What is still said about the last answer is of no use.
            message = connection.socket.next() => drop(message.ok()?),
            () = tokio::time::sleep_until(end) => return None,
        }
    }
}

/// An answer that arrives over a WebSocket. Dropping it closes the connection.
pub(super) struct SocketAnswer {
    connection: Connection,
    /// The event that was waited for.
    first: Option<Utf8Bytes>,
    /// How the connection ended, after the events that were read.
    end: Option<SocketEnd>,
    /// Where the connection is kept.
    home: Option<(Sockets, String, Address)>,
}

impl SocketAnswer {
    /// The next events: all that have arrived, at least one.
    pub(super) async fn next(&mut self) -> Result<Vec<Utf8Bytes>, SocketEnd> {
        let first = match (self.first.take(), self.end.take()) {
            (Some(first), _) => first,
            (None, Some(end)) => return Err(end),
            (None, None) => self.connection.socket.next().await?,
        };
        let mut n_bytes = first.len();
        self.connection.chain.note(&first);
        let mut events = vec![first];
        while n_bytes < BATCH_BYTES && !self.connection.chain.is_answered() {
            match self.connection.socket.next_now() {
                None => break,
                Some(Ok(event)) => {
                    n_bytes += event.len();
                    self.connection.chain.note(&event);
                    events.push(event);
                }
                Some(Err(end)) => {
                    self.end = Some(end);
                    break;
                }
            }
        }
        Ok(events)
    }

    /// Keeps the connection for the next request of the session, if there may be one.
    pub(super) fn finish(self, clock: &Clock) {
        if let Some((sockets, session, address)) = self.home
            && self.connection.chain.is_answered()
            && self.end.is_none()
        {
            sockets.keep(session, address, self.connection, clock);
        }
    }
}
