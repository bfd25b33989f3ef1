//! Writes lines to standard output on a thread of its own, so that a client that reads
//! slowly, or not at all, delays nothing else.
//!
//! Events wait as events, not as text: they share their messages with the session. While a
//! piece of an answer waits, the next one is joined to it, and an interim result of a tool
//! replaces the one before, so what waits is never larger than the conversation.
//! A [`LineFormat`] turns them into lines on that thread; each protocol has its own.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::agent::AgentEvent;
use crate::ai::StreamEvent;
use crate::session::{BashId, SessionEvent, SessionUpdate};

use super::events::Lines;

/// Bytes collected for one write, if so many wait.
const WRITE_BYTES: usize = 64 << 10;

/// What waits to be written.
pub(in crate::modes) trait Waiting: Sized + Send + 'static {
    /// Adds `next` to this one, which waits last, if the two are one; returns it otherwise.
    fn join(&mut self, next: Self) -> Option<Self>;
}

/// Turns what waits into lines.
pub(in crate::modes) trait LineFormat: Send + 'static {
    type Item: Waiting;

    /// Appends the lines of `item`, each with its line break. Returns what is left of an
    /// item that is too long for one write.
    fn push(&mut self, item: Self::Item, out: &mut String) -> Option<Self::Item>;
}

/// What JSON and RPC mode write, in order.
#[derive(Debug)]
pub(in crate::modes) enum Outgoing {
    Update(SessionUpdate),
    /// A whole line, without its break.
    Line(String),
    /// From here on, output of this command is marked with the client's id.
    NameBash(BashId, Option<Value>),
}

/// The way out. Dropping it leaves the thread to write what waits.
pub(in crate::modes) struct LineOutput<I = Outgoing> {
    shared: Arc<Shared<I>>,
    state: watch::Receiver<Written>,
}

/// How far the thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Written {
    n_writes: u64,
    /// Nothing will be written any more: all is, or the client is gone.
    ended: bool,
    broken: bool,
}

struct Shared<I> {
    queue: Mutex<Queue<I>>,
    changed: Condvar,
}

struct Queue<I> {
    waiting: VecDeque<I>,
    /// No more will come.
    closed: bool,
    broken: bool,
}

impl<I: Waiting> LineOutput<I> {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system cannot start one.
    pub(in crate::modes) fn start(
        format: impl LineFormat<Item = I>,
        sink: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Queue { waiting: VecDeque::new(), closed: false, broken: false };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
        let (written, state) = watch::channel(Written::default());
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || own.write_all(format, sink, &written))?;
        Ok(Self { shared, state })
    }

    /// Never blocks. After the client is gone, drops everything.
    pub(in crate::modes) fn send(&self, next: I) {
        let mut queue = self.shared.lock();
        if queue.broken {
            return;
        }
        let next = match queue.waiting.back_mut() {
            Some(last) => last.join(next),
            None => Some(next),
        };
        queue.waiting.extend(next);
        self.shared.changed.notify_one();
    }

    /// Returns when the client has closed its end.
    pub(in crate::modes) async fn broken(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| state.broken).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until everything is written, or the client is gone, or has read nothing for
    /// `patience`. Whether everything was written.
    pub(in crate::modes) async fn finish(&self, patience: Option<Duration>) -> bool {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        let mut state = self.state.clone();
        loop {
            let seen = *state.borrow_and_update();
            if seen.ended {
                return !seen.broken;
            }
            let changed = match patience {
                Some(patience) => tokio::time::timeout(patience, state.changed()).await,
                None => Ok(state.changed().await),
            };
            if !matches!(changed, Ok(Ok(()))) {
                return state.borrow().ended && !state.borrow().broken;
            }
        }
    }
}

impl Waiting for Outgoing {
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Update(last), Self::Update(new)) => join_updates(last, new).map(Self::Update),
            (_, next) => Some(next),
        }
    }
}

/// Adds `next` to the event that waits last if the two are one; returns it otherwise.
pub(in crate::modes) fn join_updates(last: &mut SessionUpdate, next: SessionUpdate) -> Option<SessionUpdate> {
    match (&mut last.event, &next.event) {
        (
            SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index, text })),
            SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index: other, text: more })),
        ) if index == other => text.push_str(more),
        (
            SessionEvent::Agent(AgentEvent::ToolUpdate { call_id, partial }),
            SessionEvent::Agent(AgentEvent::ToolUpdate { call_id: other, partial: later }),
        ) if call_id == other => *partial = Arc::clone(later),
        (SessionEvent::BashOutput { id, chunk }, SessionEvent::BashOutput { id: other, chunk: more })
            if id == other =>
        {
            chunk.push_str(more);
        }
        _ => return Some(next),
    }
    None
}

impl LineFormat for Lines {
    type Item = Outgoing;

    fn push(&mut self, item: Outgoing, out: &mut String) -> Option<Outgoing> {
        match item {
            Outgoing::Update(update) => self.push_update(&update, out),
            Outgoing::Line(line) => {
                out.push_str(&line);
                out.push('\n');
            }
            Outgoing::NameBash(id, name) => self.name_bash(id, name),
        }
        None
    }
}

impl<I: Waiting> Shared<I> {
    fn write_all(
        &self,
        mut format: impl LineFormat<Item = I>,
        mut sink: impl Write,
        written: &watch::Sender<Written>,
    ) {
        let mut text = String::new();
        while self.next_text(&mut format, &mut text) {
            if sink.write_all(text.as_bytes()).and_then(|()| sink.flush()).is_err() {
                let mut queue = self.lock();
                queue.broken = true;
                queue.waiting.clear();
                written.send_modify(|state| (state.broken, state.ended) = (true, true));
                return;
            }
            text.clear();
            // A message may have been a gigabyte.
            text.shrink_to(WRITE_BYTES);
            written.send_modify(|state| state.n_writes += 1);
        }
        written.send_modify(|state| state.ended = true);
    }

    /// Collects lines; `false` once all are written and no more will come.
    fn next_text(&self, format: &mut impl LineFormat<Item = I>, text: &mut String) -> bool {
        while text.len() < WRITE_BYTES {
            let mut queue = self.lock();
            while queue.waiting.is_empty() && text.is_empty() {
                if queue.closed {
                    return false;
                }
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(next) = queue.waiting.pop_front() else { break };
            drop(queue);
            if let Some(rest) = format.push(next, text) {
                self.lock().waiting.push_front(rest);
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Queue<I>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
