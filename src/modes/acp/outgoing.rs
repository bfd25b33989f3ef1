//! What waits to be written to the client, and how it becomes lines.
//!
//! Lines are made on the output's own thread. Events of sessions and messages of a replay
//! wait as they are, so that a client that reads slowly costs no copies.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId, SessionId, SessionUpdate};
use serde_json::Value;

use crate::session::{Services, SessionUpdate as SessionChange};

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
    Change(SessionId, Box<SessionChange>),
    /// The conversation of a session, from its beginning, and the response to the request for it.
    Replay(Replay, ReplayResponse),
    /// A tool is about to replace this file, which contains this text.
    Overwritten(SessionId, PathBuf, String),
    Closed(SessionId),
}

/// The response to a request whose replay comes first.
pub(super) struct ReplayResponse {
    pub(super) id: RequestId,
    /// The line if the whole conversation was written.
    pub(super) ok: String,
}

impl ReplayResponse {
    /// The line if the conversation ended early.
    fn failed(&self, why: String) -> String {
        let error = Error::new(ErrorCode::InternalError.into(), why);
        message::response::<Value>(&self.id, Err(&error))
    }
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
                join_updates(last, *new).map(|new| Self::Change(other, Box::new(new)))
            }
            (_, next) => Some(next),
        }
    }

    fn answer_bytes(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Open(..)
            | Self::Announce(_)
            | Self::Change(..)
            | Self::Replay(..)
            | Self::Overwritten(..)
            | Self::Closed(_) => 0,
        }
    }

    fn keeps_state(&self) -> bool {
        matches!(self, Self::Change(..))
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
        let (session, updates) = match item {
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
                (session, updates)
            }
            Outgoing::Change(session, change) => {
                let updates = self.sessions.get_mut(&session).map(|lines| lines.on_change(&change));
                (session, updates)
            }
            Outgoing::Overwritten(session, path, text) => {
                if let Some(lines) = self.sessions.get_mut(&session) {
                    lines.on_overwrite(path, text);
                }
                return None;
            }
            Outgoing::Replay(mut replay, response) => {
                match replay.next() {
                    Some(Ok(text)) => {
                        if out.is_empty() {
                            *out = text;
                        } else {
                            out.push_str(&text);
                        }
                        return Some(Outgoing::Replay(replay, response));
                    }
                    Some(Err(why)) => out.push_str(&response.failed(why)),
                    None => out.push_str(&response.ok),
                }
                out.push('\n');
                return None;
            }
        };
        out.push_str(&message::update_lines(&session, &updates.unwrap_or_default()));
        None
    }
}

/// An update as a line, without its break.
pub(super) fn update_line(session: &SessionId, update: SessionUpdate) -> String {
    let mut line = message::update_lines(session, &[update]);
    line.pop();
    line
}
