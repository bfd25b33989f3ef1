//! The output of a session: its events and its snapshot.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::event::{NoticeLevel, SessionEvent};
use super::state::SessionState;

/// Sends events and updates the snapshot for every part of a session; clones share the client.
#[derive(Clone)]
pub(super) struct Outbox {
    events: mpsc::UnboundedSender<SessionEvent>,
    state: watch::Sender<Arc<SessionState>>,
}

impl Outbox {
    pub(super) fn new(
        events: mpsc::UnboundedSender<SessionEvent>,
        state: watch::Sender<Arc<SessionState>>,
    ) -> Self {
        Self { events, state }
    }

    pub(super) fn send(&self, event: SessionEvent) {
        // The client may be gone; the session still finishes its work.
        drop(self.events.send(event));
    }

    pub(super) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        self.send(SessionEvent::Notice { level, text: text.into() });
    }

    /// Changes the snapshot; each part sets only its own fields.
    pub(super) fn update(&self, change: impl FnOnce(&mut SessionState)) {
        self.state.send_modify(|state| change(Arc::make_mut(state)));
    }

    pub(super) fn snapshot(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }

    /// The snapshot, for other readers.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<SessionState>> {
        self.state.subscribe()
    }
}
