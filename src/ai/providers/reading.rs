//! Reads an answer that is arriving, until there are events to pass on.
//!
//! What arrives in small pieces is collected, and a service that falls silent, or that only keeps
//! the connection alive, ends the answer. `http_provider` opens the source and passes on the events.

use std::mem;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::answer::{Answer, Ending, service};
use super::sockets::SocketAnswer;
use crate::ai::failure::{FailureClass, RequestError};
use crate::ai::messages::StreamEvent;
use crate::ai::requests::Request;
use crate::ai::transport::{AFTER_A_STOP, Pace, Rest, SocketEnd, root_cause, silence};
use crate::util::clock::Clock;

/// More bytes of a trickle than this are not collected, but passed on at once.
const MAX_HELD_BYTES: usize = 16 << 10;

/// How long a finished answer waits for its stream to end, so that the next
/// request can reuse the connection.
const DRAIN_HERE: Duration = Duration::from_millis(2);
/// How long that may take in the background before the connection is closed.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// How long nothing may arrive; `None` means no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimits {
    /// No bytes.
    pub(super) data: Option<Duration>,
    /// Bytes, but nothing of the answer: comments, pings and empty pieces.
    pub(super) content: Option<Duration>,
}

/// An answer that is arriving.
pub(super) struct Reading {
    pub(super) opened: Opened,
    pace: Pace,
    /// Whether less than the most that is held arrived while it collected.
    trickles: bool,
}

/// A request that is being answered.
pub(super) struct Opened {
    pub(super) source: Source,
    pub(super) answer: Answer,
    /// Why it did not go over the WebSocket that was wanted.
    pub(super) no_socket: Option<String>,
}

/// Where an answer comes from. Dropping it closes the connection.
pub(super) enum Source {
    Http(Response),
    Socket(Box<SocketAnswer>),
}

/// What has arrived of an answer.
pub(super) enum Arrived {
    Bytes(Bytes),
    Events(Vec<Utf8Bytes>),
}

impl Reading {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened, pace: Pace::new(Instant::now()), trickles: false }
    }

    /// Reads until there are events to pass on, and appends them to `events`. Cancelling loses nothing of
    /// what was read.
    pub(super) async fn read(
        &mut self,
        request: &Request,
        limits: ReadLimits,
        clock: &Clock,
        rest: &Rest,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), Ending> {
        if mem::take(&mut self.trickles)
            && let Some(end) = self.pace.collects_until(Instant::now())
        {
            rest.until(end).await;
            let n_bytes = self.read_arrived(0, events).await?;
            if n_bytes > 0 {
                self.pace.on_collected(Instant::now());
                self.trickles = n_bytes < MAX_HELD_BYTES;
                return Ok(());
            }
        }
        let n_bytes = self.read_first(request, limits, clock, events).await?;
        if self.opened.answer.is_complete() {
            return Ok(());
        }
        let Some(at) = self.pace.pass_on_at(n_bytes, Instant::now()) else { return Ok(()) };
        // What has arrived with it may be the whole answer.
        let n_held_bytes = self.read_arrived(n_bytes, events).await?;
        if self.opened.answer.is_complete() || n_held_bytes >= MAX_HELD_BYTES {
            return Ok(());
        }
        // Each piece would wake several tasks. What comes meanwhile waits in the connection.
        rest.until(at).await;
        let n_held_bytes = self.read_arrived(n_held_bytes, events).await?;
        self.trickles = n_held_bytes < MAX_HELD_BYTES;
        Ok(())
    }

    /// Waits for what arrives next that has an event; returns how many bytes were read.
    async fn read_first(
        &mut self,
        request: &Request,
        limits: ReadLimits,
        clock: &Clock,
        events: &mut Vec<StreamEvent>,
    ) -> Result<usize, Ending> {
        let mut no_data = pin!(silence(limits.data, clock));
        let mut no_content = pin!(silence(limits.content, clock));
        loop {
            let arrived = tokio::select! {
                biased;
                // First, because comments may arrive without a pause.
                () = &mut no_content => {
                    if let Some(arrived) = self.opened.source.next_now().await {
                        let n_bytes = self.opened.take(arrived?, events)?;
                        if self.opened.answer.is_complete() || !events.is_empty() {
                            return Ok(n_bytes);
                        }
                    }
                    return Err(Ending::Failed(silent("content", request, limits.content)));
                }
                arrived = self.opened.source.next() => arrived?,
                () = &mut no_data => match self.opened.source.next_now().await {
                    Some(arrived) => arrived?,
                    None => return Err(Ending::Failed(silent("data", request, limits.data))),
                },
            };
            let n_bytes = self.opened.take(arrived, events)?;
            if self.opened.answer.is_complete() || !events.is_empty() {
                return Ok(n_bytes);
            }
            no_data.set(silence(limits.data, clock));
        }
    }

    /// Reads all that has arrived: many services send each event in a chunk of its own, and one that waits
    /// holds up all behind it. Returns how many bytes are held, of which there were `n_held_bytes` before.
    async fn read_arrived(
        &mut self,
        mut n_held_bytes: usize,
        events: &mut Vec<StreamEvent>,
    ) -> Result<usize, Ending> {
        while !self.opened.answer.is_complete() && n_held_bytes < MAX_HELD_BYTES {
            let arrived = tokio::select! {
                biased;
                arrived = self.opened.source.next() => arrived?,
                () = turn_of_the_connection() => break,
            };
            n_held_bytes += self.opened.take(arrived, events)?;
        }
        Ok(n_held_bytes)
    }
}

/// Lets the task of the connection pass on the next chunk, if it has one.
async fn turn_of_the_connection() {
    /// One to wake it, and one in which it runs.
    const N_TURNS: usize = 2;
    for _ in 0..N_TURNS {
        tokio::task::yield_now().await;
    }
}

impl Source {
    /// What arrives next, `None` at the end of the body. Nothing is lost if the future is dropped.
    async fn next(&mut self) -> Result<Option<Arrived>, Ending> {
        match self {
            Self::Http(response) => {
                let chunk = response.chunk().await.map_err(|error| {
                    Ending::Lost(format!("stream interrupted: connection lost ({})", root_cause(&error)))
                })?;
                Ok(chunk.map(Arrived::Bytes))
            }
            Self::Socket(socket) => Ok(Some(Arrived::Events(socket.next().await.map_err(ended)?))),
        }
    }

    /// What has arrived although nobody has read it; `None` if nothing has. After a time in which
    /// pi was stopped, timers end before the connection has run.
    async fn next_now(&mut self) -> Option<Result<Option<Arrived>, Ending>> {
        tokio::select! {
            biased;
            arrived = self.next() => Some(arrived),
            () = tokio::time::sleep(AFTER_A_STOP) => None,
        }
    }
}

impl Arrived {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Events(events) => events.iter().map(|event| event.len()).sum(),
        }
    }
}

/// What the end of a WebSocket means to the answer that was arriving.
fn ended(end: SocketEnd) -> Ending {
    let error = RequestError::from(end);
    match error.failure.class {
        FailureClass::Network => Ending::Lost(error.text),
        _ => Ending::Failed(error),
    }
}

impl Opened {
    /// Reads what arrived, `None` at the end, and appends the events it completes. Returns its bytes.
    fn take(&mut self, arrived: Option<Arrived>, out: &mut Vec<StreamEvent>) -> Result<usize, Ending> {
        let Some(arrived) = arrived else { return Err(Ending::Closed) };
        let fed = match &arrived {
            Arrived::Bytes(bytes) => self.answer.feed(bytes, out),
            Arrived::Events(events) => events.iter().try_for_each(|event| self.answer.read(event, out)),
        };
        fed.map_err(Ending::Failed)?;
        Ok(arrived.n_bytes())
    }
}

/// The error for a service that has sent no `what` for too long.
pub(super) fn silent(what: &str, request: &Request, limit: Option<Duration>) -> RequestError {
    let seconds = limit.unwrap_or_default().as_secs_f64();
    let text = format!("timed out: no {what} from {} for {seconds} s", service(&request.model));
    RequestError::of_class(text, FailureClass::Network)
}

/// Reads to the end of a finished body: here if it arrives at once, otherwise in a
/// separate task, which ends with the body or after [`DRAIN_LIMIT`].
pub(super) async fn drain(mut response: Response) {
    if tokio::time::timeout(DRAIN_HERE, read_rest(&mut response)).await.is_err() {
        tokio::spawn(async move {
            tokio::time::timeout(DRAIN_LIMIT, read_rest(&mut response)).await.unwrap_or_default();
        });
    }
}

async fn read_rest(response: &mut Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}
