//! What waits to be written to the client, and how it becomes lines.
//!
//! Lines are made on the output's own thread. Events of sessions and messages of a replay
//! wait as they are, so that a client that reads slowly costs no copies.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{SessionId, SessionNotification, SessionUpdate};

use crate::session::{Services, SessionTree, SessionUpdate as SessionChange};

use super::super::wire::{LineFormat, Waiting, join_updates};
use super::features::ClientFeatures;
use super::message;
use super::replay::Replay;
use super::updates::SessionUpdates;

/// What is written, in order.
pub(super) enum Outgoing {
    /// A whole line, without its break.
    Line(String),
    /// The client knows this session from here on.
    Open(SessionId, Box<OpenedSession>),
    /// What a session offers, once the client knows it.
    Announce(SessionId),
    /// An event of a session.
    Change(SessionId, SessionChange),
    /// The conversation of a session, from its beginning.
    Replay(SessionId, Replay),
    /// A tool is about to replace this file, which contains this text.
    Overwritten(SessionId, PathBuf, String),
    Closed(SessionId),
}

/// What is known of a session when it is opened.
pub(super) struct OpenedSession {
    pub(super) services: Arc<Services>,
    pub(super) features: ClientFeatures,
    pub(super) state: Arc<crate::session::SessionState>,
}

impl Waiting for Outgoing {
    fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Change(session, last), Self::Change(other, new)) if *session == other => {
                join_updates(last, new).map(|new| Self::Change(other, new))
            }
            (_, next) => Some(next),
        }
    }
}

/// The lines of all sessions.
#[derive(Default)]
pub(super) struct AcpLines {
    sessions: HashMap<SessionId, SessionUpdates>,
}

impl LineFormat for AcpLines {
    type Item = Outgoing;

    fn push(&mut self, item: Outgoing, out: &mut String) -> Option<Outgoing> {
        let (session, updates, rest) = match item {
            Outgoing::Line(line) => {
                out.push_str(&line);
                out.push('\n');
                return None;
            }
            Outgoing::Closed(session) => {
                self.sessions.remove(&session);
                return None;
            }
            Outgoing::Open(session, opened) => {
                self.sessions.insert(session, SessionUpdates::new(*opened));
                return None;
            }
            Outgoing::Announce(session) => {
                let updates = self.sessions.get_mut(&session).map(SessionUpdates::announce);
                (session, updates, None)
            }
            Outgoing::Change(session, change) => {
                let updates = self.sessions.get_mut(&session).map(|lines| lines.on_change(&change));
                (session, updates, None)
            }
            Outgoing::Overwritten(session, path, text) => {
                if let Some(lines) = self.sessions.get_mut(&session) {
                    lines.on_overwrite(path, text);
                }
                return None;
            }
            Outgoing::Replay(session, replay) => {
                let (updates, rest) = replay.next();
                let rest = rest.map(|rest| Outgoing::Replay(session.clone(), rest));
                (session, Some(updates), rest)
            }
        };
        for update in updates.unwrap_or_default() {
            push_update(&session, update, out);
        }
        rest
    }
}

fn push_update(session: &SessionId, update: SessionUpdate, out: &mut String) {
    let params = SessionNotification::new(session.clone(), update);
    message::push_notification("session/update", &params, out);
    out.push('\n');
}

/// An update as a line, without its break.
pub(super) fn update_line(session: &SessionId, update: SessionUpdate) -> String {
    let mut line = String::new();
    let params = SessionNotification::new(session.clone(), update);
    message::push_notification("session/update", &params, &mut line);
    line
}

/// The conversation of `tree`, ready to be replayed.
pub(super) fn replay(session: SessionId, tree: SessionTree, cwd: PathBuf, home: Option<PathBuf>) -> Outgoing {
    Outgoing::Replay(session, Replay::new(tree, cwd, home))
}
