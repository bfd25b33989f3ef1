//! The output of a session: its events and its snapshot.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::util::paths;

use super::event::{NoticeLevel, SessionEvent};
use super::handle::SessionError;
use super::state::SessionState;

/// Sends events and updates the snapshot for every part of a session; clones share the client.
#[derive(Clone)]
pub(super) struct Outbox {
    events: mpsc::UnboundedSender<SessionEvent>,
    state: watch::Sender<Arc<SessionState>>,
    /// Shown as `~` in texts for the user.
    home: Option<PathBuf>,
}

impl Outbox {
    pub(super) fn new(
        events: mpsc::UnboundedSender<SessionEvent>,
        state: watch::Sender<Arc<SessionState>>,
        home: Option<PathBuf>,
    ) -> Self {
        Self { events, state, home }
    }

    pub(super) fn send(&self, event: SessionEvent) {
        // The client may be gone; the session still finishes its work.
        drop(self.events.send(event));
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
            SessionError::Refused(text) => SessionError::Refused(self.shown(&text)),
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
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<SessionState>> {
        self.state.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::Model;

    #[test]
    fn notices_and_errors_show_the_home_directory_as_a_tilde() {
        let (events, mut received) = mpsc::unbounded_channel();
        let model = Model { id: "m".to_owned(), ..Model::default() };
        let state = SessionState::of(&Arc::new(model), "/home/ada/work".as_ref());
        let outbox = Outbox::new(events, watch::Sender::new(Arc::new(state)), Some("/home/ada".into()));
        outbox.notice(NoticeLevel::Error, "cannot write /home/ada/.pi/x and /home/adam/y");
        let Ok(SessionEvent::Notice { text, .. }) = received.try_recv() else { panic!("no notice") };
        assert_eq!(text, "cannot write ~/.pi/x and /home/adam/y");
        let error = SessionError::Refused("cannot read /home/ada/s.jsonl: denied".to_owned());
        assert_eq!(outbox.shown_error(error).to_string(), "cannot read ~/s.jsonl: denied");
    }
}
