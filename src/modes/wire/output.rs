//! Writes lines to standard output on a thread of its own, so that a client that reads
//! slowly, or not at all, delays nothing else.
//!
//! Events wait as events, not as text: they share their messages with the session. While a
//! piece of an answer waits, the next one is joined to it, an interim result of a tool
//! replaces the one before, and an event that reports a whole state replaces an earlier one
//! that still waits. A client that reads nothing is read no further commands.
//! A [`LineFormat`] turns them into lines on that thread; each protocol has its own.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::agent::AgentEvent;
use crate::ai::StreamEvent;
use crate::session::{BashId, SessionEvent, SessionUpdate};

use super::events::Lines;

/// Bytes of answers that wait before no more is asked for.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Events that wait before no more is asked for: each keeps a state of the session.
const MAX_EVENTS: usize = 8_192;
/// Bytes collected for one write, if so many wait.
const WRITE_BYTES: usize = 64 << 10;

/// What waits to be written.
pub(in crate::modes) trait Waiting: Sized + Send + 'static {
    /// Adds `next` to this one, which waits last, if the two are one; returns it otherwise.
    fn join(&mut self, next: Self) -> Option<Self>;

    /// Its size, if it is an answer to the client: a client that asks and does not read would
    /// fill the memory with them. Events share their messages with the session.
    fn answer_bytes(&self) -> usize;

    /// Whether it keeps a state of the session.
    fn keeps_state(&self) -> bool;

    /// The state that it reports as a whole, so that only the latest one matters.
    fn whole_state(&self) -> Option<WholeState> {
        None
    }
}

/// A state of the session that some events report as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::modes) enum WholeState {
    Queue,
    Selection,
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
    /// Why, with the number that the system gave it.
    broken: Option<(io::ErrorKind, Option<i32>)>,
}

struct Shared<I> {
    queue: Mutex<Queue<I>>,
    changed: Condvar,
}

struct Queue<I> {
    /// `None` is in the place of an item that a later one replaced.
    waiting: VecDeque<Option<I>>,
    /// How many items have left the front of `waiting`.
    n_taken: usize,
    /// The number of the latest item of each state, counted from the first item ever.
    latest: Vec<(WholeState, usize)>,
    answer_bytes: usize,
    /// How many of the items keep a state.
    n_states: usize,
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
        let queue = Queue {
            waiting: VecDeque::new(),
            n_taken: 0,
            latest: Vec::new(),
            answer_bytes: 0,
            n_states: 0,
            closed: false,
            broken: false,
        };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
        let (written, state) = watch::channel(Written::default());
        let own = Arc::clone(&shared);
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let writing = AssertUnwindSafe(|| own.write_all(format, sink, &written));
            if panic::catch_unwind(writing).is_err() {
                own.on_broken((io::ErrorKind::Other, None), &written);
            }
        })?;
        Ok(Self { shared, state })
    }

    /// Never blocks. After the client is gone, drops everything.
    pub(in crate::modes) fn send(&self, next: I) {
        let mut queue = self.shared.lock();
        if queue.broken {
            return;
        }
        queue.add(next);
        self.shared.changed.notify_one();
    }

    /// Returns while the client reads what it asked for: at once, unless very much of that
    /// waits. Whoever reads requests calls it before each.
    pub(in crate::modes) async fn room(&self) {
        let mut state = self.state.clone();
        loop {
            state.borrow_and_update();
            if self.shared.lock().has_room() {
                return;
            }
            if state.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns when nothing can be written: the client has closed its end, or the disk is full.
    pub(in crate::modes) async fn broken(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| state.broken.is_some()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Why not everything was written.
    pub(in crate::modes) fn failure(&self) -> Option<io::Error> {
        let (kind, number) = self.state.borrow().broken?;
        Some(number.map_or_else(|| kind.into(), io::Error::from_raw_os_error))
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
                return seen.broken.is_none();
            }
            let changed = match patience {
                Some(patience) => tokio::time::timeout(patience, state.changed()).await,
                None => Ok(state.changed().await),
            };
            if !matches!(changed, Ok(Ok(()))) {
                return state.borrow().ended && state.borrow().broken.is_none();
            }
        }
    }
}

impl<I: Waiting> Queue<I> {
    fn add(&mut self, next: I) {
        let next = match self.waiting.back_mut() {
            Some(Some(last)) => last.join(next),
            Some(None) | None => Some(next),
        };
        let Some(next) = next else { return };
        if let Some(state) = next.whole_state() {
            self.drop_earlier(state);
        }
        self.count(&next);
        self.waiting.push_back(Some(next));
    }

    fn count(&mut self, item: &I) {
        self.answer_bytes += item.answer_bytes();
        self.n_states += usize::from(item.keeps_state());
    }

    fn uncount(&mut self, item: &I) {
        self.answer_bytes -= item.answer_bytes();
        self.n_states -= usize::from(item.keeps_state());
    }

    /// Drops the item that waits with an earlier version of `state`.
    fn drop_earlier(&mut self, state: WholeState) {
        let number = self.n_taken + self.waiting.len();
        match self.latest.iter_mut().find(|(known, _)| *known == state) {
            Some((_, latest)) => {
                let earlier = std::mem::replace(latest, number);
                let place = earlier.checked_sub(self.n_taken).and_then(|at| self.waiting.get_mut(at));
                if let Some(item) = place.and_then(Option::take) {
                    self.uncount(&item);
                }
            }
            None => self.latest.push((state, number)),
        }
    }

    /// The next item, unless nothing waits.
    fn take(&mut self) -> Option<I> {
        loop {
            let item = self.waiting.pop_front()?;
            self.n_taken += 1;
            if let Some(item) = item {
                self.uncount(&item);
                return Some(item);
            }
        }
    }

    /// Returns the rest of an item that was taken.
    fn put_back(&mut self, rest: I) {
        self.count(&rest);
        self.waiting.push_front(Some(rest));
        self.n_taken -= 1;
    }

    fn has_room(&self) -> bool {
        self.answer_bytes < MAX_ANSWER_BYTES && self.n_states < MAX_EVENTS
    }
}

impl Waiting for Outgoing {
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Update(last), Self::Update(new)) => join_updates(last, new).map(Self::Update),
            (_, next) => Some(next),
        }
    }

    fn answer_bytes(&self) -> usize {
        match self {
            // Each also has its place in the queue.
            Self::Line(line) => line.len() + size_of::<Option<Self>>(),
            Self::Update(_) | Self::NameBash(..) => 0,
        }
    }

    fn keeps_state(&self) -> bool {
        matches!(self, Self::Update(_))
    }

    fn whole_state(&self) -> Option<WholeState> {
        match self {
            Self::Update(SessionUpdate { event: SessionEvent::QueueChanged, .. }) => Some(WholeState::Queue),
            Self::Update(SessionUpdate { event: SessionEvent::SelectionChanged, .. }) => {
                Some(WholeState::Selection)
            }
            Self::Update(_) | Self::Line(_) | Self::NameBash(..) => None,
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
            if let Err(error) = sink.write_all(text.as_bytes()).and_then(|()| sink.flush()) {
                return self.on_broken((error.kind(), error.raw_os_error()), written);
            }
            text.clear();
            // A message may have been a gigabyte.
            text.shrink_to(WRITE_BYTES);
            written.send_modify(|state| state.n_writes += 1);
        }
        written.send_modify(|state| state.ended = true);
    }

    /// Nothing more is written, for this reason.
    fn on_broken(&self, why: (io::ErrorKind, Option<i32>), written: &watch::Sender<Written>) {
        let mut queue = self.lock();
        queue.broken = true;
        queue.waiting.clear();
        (queue.answer_bytes, queue.n_states) = (0, 0);
        drop(queue);
        written.send_modify(|state| (state.broken, state.ended) = (Some(why), true));
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
            let Some(next) = queue.take() else { break };
            drop(queue);
            if let Some(rest) = format.push(next, text) {
                self.lock().put_back(rest);
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Queue<I>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Weak;
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use serde_json::json;

    use crate::ai::{
        AssistantBlock, AssistantMessage, BlockKind, Catalog, Message, Millis, StopReason, Text,
    };
    use crate::session::SessionState;

    use super::super::EventStyle;
    use super::super::slim::MAX_LINE_BYTES;
    use super::*;

    /// What a client read.
    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    struct Reading {
        n_bytes: usize,
        longest_line: usize,
        /// The largest piece that was written at once, all of which was in memory.
        largest_write: usize,
        n_delta_bytes: usize,
        n_truncated_deltas: usize,
    }

    /// A client that counts; it reads nothing until it may.
    struct CountingSink {
        start: Option<mpsc::Receiver<()>>,
        line: Vec<u8>,
        reading: Arc<Mutex<Reading>>,
    }

    impl Write for CountingSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(start) = self.start.take() {
                start.recv().ok();
            }
            let mut reading = self.reading.lock().unwrap();
            reading.n_bytes += bytes.len();
            reading.largest_write = reading.largest_write.max(bytes.len());
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    reading.longest_line = reading.longest_line.max(self.line.len());
                    let head = &self.line[..self.line.len().min(400)];
                    if head.windows(10).any(|window| window == b"text_delta") {
                        let line: Value = serde_json::from_slice(&self.line).unwrap();
                        let delta = line["assistantMessageEvent"]["delta"].as_str().unwrap();
                        reading.n_delta_bytes += delta.len();
                        reading.n_truncated_deltas += usize::from(line["truncated"] == true);
                    }
                    self.line.clear();
                }
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn update(event: AgentEvent) -> Outgoing {
        let catalog = Catalog::builtin();
        let state = Arc::new(SessionState::of(catalog.get("demo", "pi").unwrap(), Path::new("/")));
        Outgoing::Update(SessionUpdate { event: SessionEvent::Agent(event), state })
    }

    fn message(text: &str) -> Arc<Message> {
        let mut answer = AssistantMessage::pending(Default::default(), "p", "m", Millis(0));
        (answer.content, answer.stop_reason) =
            (vec![AssistantBlock::Text(Text::new(text))], StopReason::Stop);
        Arc::new(Message::from(answer))
    }

    /// Sends the events of a run of `n_answers` of this length; returns handles of the messages.
    fn run(output: &LineOutput, n_answers: usize, answer: &str) -> Vec<Weak<Message>> {
        let mut messages = Vec::new();
        output.send(update(AgentEvent::AgentStart));
        for _ in 0..n_answers {
            let whole = message(answer);
            let Message::Assistant(pending) = &*message("") else { panic!("an answer") };
            output.send(update(AgentEvent::AssistantStart(Arc::new(AssistantMessage::clone(pending)))));
            let begin = StreamEvent::BlockStart { index: 0, kind: BlockKind::Text };
            output.send(update(AgentEvent::MessageUpdate(begin)));
            for start in (0..answer.len()).step_by(50_000) {
                let text = answer[start..answer.len().min(start + 50_000)].to_owned();
                output.send(update(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text })));
            }
            output.send(update(AgentEvent::MessageEnd(Arc::clone(&whole))));
            output.send(update(AgentEvent::TurnEnd { message: Arc::clone(&whole), results: Vec::new() }));
            messages.push(whole);
        }
        let handles = messages.iter().map(Arc::downgrade).collect();
        output.send(update(AgentEvent::AgentEnd { messages }));
        handles
    }

    fn start(style: EventStyle, starts: Option<mpsc::Receiver<()>>) -> (LineOutput, Arc<Mutex<Reading>>) {
        let reading = Arc::<Mutex<Reading>>::default();
        let sink = CountingSink { start: starts, line: Vec::new(), reading: Arc::clone(&reading) };
        (LineOutput::start(Lines::new(style), sink).unwrap(), reading)
    }

    #[tokio::test]
    async fn slim_lines_of_a_run_of_sixty_megabytes_are_short_and_nothing_of_it_is_kept() {
        const N_ANSWERS: usize = 20;
        let answer = "0123456789abcdef".repeat(1_000_000 / 16);
        let (output, reading) = start(EventStyle::Slim, None);
        let handles = run(&output, N_ANSWERS, &answer);
        // The end of a run is held back until the next event; its messages are not.
        assert!(output.finish(None).await);
        let reading = *reading.lock().unwrap();
        assert_eq!(reading.n_delta_bytes, N_ANSWERS * answer.len(), "{reading:?}");
        assert!(reading.n_bytes > 60_000_000 && reading.longest_line < MAX_LINE_BYTES, "{reading:?}");
        // However long the run is: what was collected for a write, and the line that exceeded it.
        assert!(reading.largest_write < WRITE_BYTES + 2 * MAX_LINE_BYTES, "{reading:?}");
        assert!(handles.iter().all(|message| message.strong_count() == 0), "messages are kept");
    }

    #[tokio::test]
    async fn a_slow_client_gets_all_of_an_answer_in_short_lines() {
        let answer = "\u{1}\n".repeat(1_500_000);
        let (release, starts) = mpsc::channel();
        let (output, reading) = start(EventStyle::Slim, Some(starts));
        run(&output, 1, &answer);
        // All pieces wait, joined to one.
        release.send(()).unwrap();
        assert!(output.finish(None).await);
        let reading = *reading.lock().unwrap();
        assert_eq!((reading.n_delta_bytes, reading.n_truncated_deltas), (answer.len(), 0), "{reading:?}");
        assert!(reading.longest_line < MAX_LINE_BYTES, "{reading:?}");
    }

    #[tokio::test]
    async fn a_client_that_asks_and_does_not_read_is_not_asked_for_more() {
        let (release, starts) = mpsc::channel();
        let (output, reading) = start(EventStyle::Whole, Some(starts));
        let answer = json!({ "data": "x".repeat(1 << 20) }).to_string();
        let mut n_answers = 0;
        while output.room().now_or_never().is_some() {
            output.send(Outgoing::Line(answer.clone()));
            n_answers += 1;
            assert!(n_answers <= 2 + (MAX_ANSWER_BYTES >> 20), "the limit");
        }
        assert!(n_answers >= MAX_ANSWER_BYTES >> 20);
        release.send(()).unwrap();
        output.room().await;
        assert!(output.finish(None).await);
        assert_eq!(reading.lock().unwrap().n_bytes, n_answers * (answer.len() + 1));
    }

    #[tokio::test]
    async fn client_that_does_not_read_gets_the_latest_queue_and_is_read_no_more_commands() {
        let (release, starts) = mpsc::channel();
        let (output, reading) = start(EventStyle::Whole, Some(starts));
        let catalog = Catalog::builtin();
        let state = Arc::new(SessionState::of(catalog.get("demo", "pi").unwrap(), Path::new("/")));
        let mut states = Vec::new();
        for _ in 0..3_000 {
            let state = Arc::new(SessionState::clone(&state));
            states.push(Arc::downgrade(&state));
            output.send(Outgoing::Update(SessionUpdate { event: SessionEvent::QueueChanged, state }));
            output.send(Outgoing::Line("{}".to_owned()));
        }
        // What the thread took already, and the latest.
        let n_kept = states.iter().filter(|state| state.strong_count() > 0).count();
        assert!(n_kept <= 2 && output.room().now_or_never().is_some(), "{n_kept}");
        for _ in 0..=MAX_EVENTS {
            output.send(update(AgentEvent::AgentStart));
        }
        assert!(output.room().now_or_never().is_none());
        release.send(()).unwrap();
        output.room().await;
        assert!(output.finish(None).await);
        let n_lines_of_queue = 2 * 100;
        assert!(reading.lock().unwrap().n_bytes < 3_000 * 3 + n_lines_of_queue + (MAX_EVENTS + 1) * 40);
    }

    /// Panics at a line with this text.
    struct BreakingFormat(&'static str);

    impl LineFormat for BreakingFormat {
        type Item = Outgoing;

        fn push(&mut self, item: Outgoing, out: &mut String) -> Option<Outgoing> {
            let Outgoing::Line(line) = item else { panic!("a line") };
            assert!(line != self.0, "the format broke");
            out.push_str(&line);
            None
        }
    }

    #[tokio::test]
    async fn output_whose_thread_panics_has_failed_and_delays_nothing() {
        let output = LineOutput::start(BreakingFormat("bad"), io::sink()).unwrap();
        output.send(Outgoing::Line("good".to_owned()));
        output.send(Outgoing::Line("bad".to_owned()));
        output.broken().await;
        assert_eq!(output.failure().map(|error| error.kind()), Some(io::ErrorKind::Other));
        assert!(!output.finish(None).await);
    }

    #[tokio::test]
    async fn a_response_is_a_line_of_any_length() {
        let (output, reading) = start(EventStyle::Slim, None);
        output.send(Outgoing::Line(json!({ "data": "x".repeat(3 << 20) }).to_string()));
        assert!(output.finish(None).await);
        assert!(reading.lock().unwrap().longest_line > 3 << 20);
    }
}
