//! The output of a session: its events, with a stream per subscriber, and its snapshot.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};

use crate::agent::AgentEvent;
use crate::util::paths;

use super::event::{NoticeLevel, SessionEvent, SessionUpdate};
use super::handle::SessionError;
use super::state::SessionState;

/// Maximum number of deltas that wait for a subscriber. A slower one gets no more deltas
/// until the next message begins; `MessageEnd` contains the whole message.
const MAX_WAITING_DELTAS: usize = 1 << 16;

/// Whether a subscriber wants the deltas of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deltas {
    /// Every piece of an answer as it arrives.
    Wanted,
    /// Only whole messages.
    Unwanted,
}

/// The events of a session, for one subscriber. Ends with the session.
#[derive(Debug)]
pub struct SessionEvents {
    updates: mpsc::UnboundedReceiver<SessionUpdate>,
    waiting_deltas: Arc<AtomicUsize>,
}

impl SessionEvents {
    /// The next event; `None` once the session has ended. Nothing is lost if it is
    /// cancelled.
    pub async fn recv(&mut self) -> Option<SessionUpdate> {
        let update = self.updates.recv().await;
        self.note(update.as_ref());
        update
    }

    /// An event that is waiting already.
    pub fn try_recv(&mut self) -> Option<SessionUpdate> {
        let update = self.updates.try_recv().ok();
        self.note(update.as_ref());
        update
    }

    fn note(&self, update: Option<&SessionUpdate>) {
        if update.is_some_and(|update| is_delta(&update.event)) {
            self.waiting_deltas.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The sending end of a [`SessionEvents`].
pub(super) struct Subscriber {
    updates: mpsc::UnboundedSender<SessionUpdate>,
    deltas: DeltaFlow,
    waiting_deltas: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaFlow {
    Unwanted,
    Flowing,
    /// Deltas of the current message are missing, so the others are useless.
    NextMessage,
}

impl Subscriber {
    pub(super) fn new(deltas: Deltas) -> (Self, SessionEvents) {
        let (sender, updates) = mpsc::unbounded_channel();
        let waiting_deltas = Arc::new(AtomicUsize::new(0));
        let deltas = match deltas {
            Deltas::Wanted => DeltaFlow::NextMessage,
            Deltas::Unwanted => DeltaFlow::Unwanted,
        };
        let subscriber = Self { updates: sender, deltas, waiting_deltas: Arc::clone(&waiting_deltas) };
        (subscriber, SessionEvents { updates, waiting_deltas })
    }

    /// Whether this subscriber gets the event.
    fn takes(&mut self, event: &SessionEvent) -> bool {
        if matches!(event, SessionEvent::Agent(AgentEvent::MessageStart(_)))
            && self.deltas == DeltaFlow::NextMessage
        {
            self.deltas = DeltaFlow::Flowing;
        }
        if !is_delta(event) {
            return true;
        }
        if self.deltas == DeltaFlow::Flowing
            && self.waiting_deltas.load(Ordering::Relaxed) >= MAX_WAITING_DELTAS
        {
            self.deltas = DeltaFlow::NextMessage;
        }
        self.deltas == DeltaFlow::Flowing
    }

    /// Sends an event; `false` if the subscriber is gone.
    fn send(&self, update: SessionUpdate) -> bool {
        if is_delta(&update.event) {
            self.waiting_deltas.fetch_add(1, Ordering::Relaxed);
        }
        self.updates.send(update).is_ok()
    }
}

fn is_delta(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Agent(AgentEvent::MessageUpdate(_)))
}

/// Sends events and updates the snapshot for every part of a session; clones share the
/// subscribers.
#[derive(Clone)]
pub(super) struct Outbox {
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
    state: watch::Sender<Arc<SessionState>>,
    /// Shown as `~` in texts for the user.
    home: Option<PathBuf>,
}

impl Outbox {
    /// Texts for the user show `home` as `~`.
    pub(super) fn new(state: SessionState, home: Option<PathBuf>) -> Self {
        Self { subscribers: Arc::default(), state: watch::Sender::new(Arc::new(state)), home }
    }

    /// Adds a subscriber, which gets every event from now on.
    pub(super) fn add(&self, subscriber: Subscriber) {
        self.lock().push(subscriber);
    }

    /// As [`Self::add`], with a first event for this subscriber alone.
    pub(super) fn add_with(&self, subscriber: Subscriber, event: SessionEvent) {
        let mut subscribers = self.lock();
        if subscriber.send(SessionUpdate { event, state: self.snapshot() }) {
            subscribers.push(subscriber);
        }
    }

    /// Whether any subscriber wants deltas.
    pub(super) fn wants_deltas(&self) -> bool {
        self.lock().iter().any(|subscriber| subscriber.deltas != DeltaFlow::Unwanted)
    }

    /// Never blocks. A session without subscribers still finishes its work.
    pub(super) fn send(&self, event: SessionEvent) {
        let state = self.snapshot();
        let mut subscribers = self.lock();
        // The last subscriber, most often the only one, gets the event without a copy.
        let (mut n_left, mut event) = (subscribers.len(), Some(event));
        subscribers.retain_mut(|subscriber| {
            n_left -= 1;
            if !event.as_ref().is_some_and(|event| subscriber.takes(event)) {
                return !subscriber.updates.is_closed();
            }
            let own = if n_left == 0 { event.take() } else { event.clone() };
            own.is_some_and(|event| subscriber.send(SessionUpdate { event, state: Arc::clone(&state) }))
        });
    }

    pub(super) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        self.send(SessionEvent::Notice { level, text: self.shown(&text.into()) });
    }

    /// `text` with `~` for the home directory.
    pub(super) fn shown(&self, text: &str) -> String {
        paths::with_tilde(text, self.home.as_deref())
    }

    /// `error` with `~` for the home directory in its text.
    pub(super) fn shown_error(&self, error: SessionError) -> SessionError {
        match error {
            SessionError::Refused(refusal) => refusal.with_tilde(self.home.as_deref()).into(),
            SessionError::Ended => SessionError::Ended,
        }
    }

    /// Changes the snapshot; each part sets only its own fields.
    pub(super) fn update(&self, change: impl FnOnce(&mut SessionState)) {
        self.state.send_modify(|state| change(Arc::make_mut(state)));
    }

    pub(super) fn snapshot(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }

    /// The snapshot, for other readers.
    pub(super) fn watch_state(&self) -> watch::Receiver<Arc<SessionState>> {
        self.state.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::ai::{Catalog, Message, Millis, StreamEvent, UserMessage};

    use super::super::refusal::Refusal;
    use super::*;

    fn outbox() -> Outbox {
        let catalog = Catalog::builtin();
        let model = catalog.get("demo", "pi").unwrap();
        Outbox::new(SessionState::of(model, Path::new("/")), Some("/home/ada".into()))
    }

    fn delta() -> SessionEvent {
        let delta = StreamEvent::Delta { index: 0, text: "x".to_owned() };
        SessionEvent::Agent(AgentEvent::MessageUpdate(delta))
    }

    fn begin() -> SessionEvent {
        let message = Message::User(UserMessage::new("go", Vec::new(), Millis(0)));
        SessionEvent::Agent(AgentEvent::MessageStart(Arc::new(message)))
    }

    fn n_waiting(events: &mut SessionEvents) -> usize {
        std::iter::from_fn(|| events.try_recv()).count()
    }

    #[test]
    fn a_subscriber_that_stops_reading_costs_a_limited_number_of_pieces() {
        let outbox = outbox();
        let (subscriber, mut events) = Subscriber::new(Deltas::Wanted);
        outbox.add(subscriber);
        outbox.send(begin());
        for _ in 0..MAX_WAITING_DELTAS + 10 {
            outbox.send(delta());
        }
        assert_eq!(n_waiting(&mut events), MAX_WAITING_DELTAS + 1);
        // Pieces are missing, so no others follow; the next message is whole again.
        outbox.send(delta());
        assert_eq!(n_waiting(&mut events), 0);
        outbox.send(begin());
        outbox.send(delta());
        assert_eq!(n_waiting(&mut events), 2);
    }

    #[test]
    fn a_subscriber_that_is_gone_is_forgotten() {
        let outbox = outbox();
        let (subscriber, events) = Subscriber::new(Deltas::Wanted);
        outbox.add(subscriber);
        assert!(outbox.wants_deltas());
        drop(events);
        outbox.send(begin());
        assert!(!outbox.wants_deltas());
    }

    #[test]
    fn notices_and_errors_show_the_home_directory_as_a_tilde() {
        let outbox = outbox();
        let (subscriber, mut events) = Subscriber::new(Deltas::Unwanted);
        outbox.add(subscriber);
        outbox.notice(NoticeLevel::Error, "cannot write /home/ada/.pi/x and /home/adam/y");
        let Some(SessionUpdate { event: SessionEvent::Notice { text, .. }, .. }) = events.try_recv() else {
            panic!("no notice")
        };
        assert_eq!(text, "cannot write ~/.pi/x and /home/adam/y");
        let reason = "cannot read /home/ada/s.jsonl: denied".to_owned();
        let error = outbox.shown_error(Refusal::CannotOpen { reason }.into());
        assert_eq!(error.to_string(), "cannot read ~/s.jsonl: denied");
    }
}
