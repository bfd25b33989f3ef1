//! Imports conversations as sessions and exports sessions as conversations.
//!
//! A conversation is written completely or not at all; a session is read without
//! being opened, so one that another process writes can be read too.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ai::foreign::Report;
use crate::ai::{Extra, Message, Millis};
use crate::util::atomic_file;

use super::open::{damage, new_header};
use super::projection;
use super::store::{
    self, Entry, EntryBody, OpenError, Saved, SessionInfo, SessionMessage, SessionStore, clean_name,
};

/// A session that was just written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSession {
    /// The new file.
    pub path: PathBuf,
    /// The id of the new session.
    pub id: String,
    /// How many messages were written.
    pub n_messages: usize,
}

/// Why a conversation could not be written as a session. No part of it is on disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the session {}: {error}", path.display())]
pub struct SaveError {
    path: PathBuf,
    error: io::Error,
}

/// Writes `messages` as a new session of `cwd` into `folder`, which is created if
/// necessary. All entries get the time `now_ms`. Blocks on the disk.
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn save_conversation(
    messages: Vec<Message>,
    name: Option<&str>,
    cwd: &Path,
    folder: &Path,
    now_ms: u64,
) -> Result<SavedSession, SaveError> {
    let header = new_header(cwd, now_ms);
    let id = header.id.clone();
    let path = folder.join(store::file_name(&header.timestamp, &id));
    let mut store = SessionStore::create(header, None);
    let n_messages = messages.len();
    let name = name.and_then(clean_name);
    let name = name.map(|name| EntryBody::SessionInfo(SessionInfo { name, extra: Extra::new() }));
    let messages = messages.into_iter().map(|message| EntryBody::message(Arc::new(stamped(message, now_ms))));
    for body in name.into_iter().chain(messages) {
        // In memory, appending cannot fail.
        drop(store.append(body, now_ms));
    }
    let text = store.into_text();
    let written = atomic_file::create_private_folder(folder)
        .and_then(|()| atomic_file::write_private(&path, text.as_bytes()));
    match written {
        Ok(()) => Ok(SavedSession { path, id, n_messages }),
        Err(error) => Err(SaveError { path, error }),
    }
}

fn stamped(mut message: Message, now_ms: u64) -> Message {
    let timestamp = match &mut message {
        Message::System(message) => &mut message.timestamp,
        Message::User(message) => &mut message.timestamp,
        Message::Assistant(message) => &mut message.timestamp,
        Message::ToolResult(message) => &mut Arc::make_mut(message).timestamp,
    };
    *timestamp = Millis(now_ms);
    message
}

/// The conversation of a session, as the model reads it.
#[derive(Debug)]
pub struct Conversation {
    /// The messages of the active branch, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The parts of the session that a conversation cannot contain.
    pub report: Report,
}

/// Reads the conversation on the current branch of the session in `path`, without
/// changing anything. Blocks on the disk.
///
/// # Errors
/// If the file cannot be read or is not a session.
pub fn read_conversation(path: &Path) -> Result<Conversation, OpenError> {
    let saved = SessionStore::read(path)?;
    let report = leftovers(&saved);
    Ok(Conversation { messages: projection::messages(&saved.context), report })
}

/// The parts of a session that a conversation cannot contain.
fn leftovers(saved: &Saved) -> Report {
    let mut report = Report::default();
    if let Some(damage) = damage(&saved.damage) {
        report.add("the file", damage);
    }
    if saved.n_elsewhere > 0 {
        report.add("the file", format!("{} entries outside the current branch", saved.n_elsewhere));
    }
    let n_before = saved.branch.len().saturating_sub(saved.context.len());
    for (at, entry) in saved.branch.iter().enumerate() {
        let what = if at < n_before && is_message(entry) {
            Some("message before a compaction; only the summary is exported".to_owned())
        } else {
            leftover(entry)
        };
        if let Some(what) = what {
            let target = match &entry.body {
                EntryBody::ContextEdit(edit) => &edit.target_id,
                _ => &entry.id,
            };
            report.add(format!("entry {target}"), what);
        }
    }
    report
}

fn is_message(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::Message { .. })
}

/// The note about an entry that does not contribute a message.
fn leftover(entry: &Entry) -> Option<String> {
    let what = match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(_), .. }
        | EntryBody::ModelChange(_)
        | EntryBody::ThinkingLevelChange(_) => return None,
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            if execution.exclude_from_context == Some(true) {
                "command with !!, hidden from the model"
            } else {
                "command with !; exported as a user message"
            }
        }
        EntryBody::Message { message: SessionMessage::Unknown(message), .. } => {
            if message.get("role").and_then(serde_json::Value::as_str) == Some("custom") {
                "message of an extension; exported as a user message"
            } else {
                "message of an unknown role"
            }
        }
        EntryBody::Compaction(_) => "summary of a compaction; exported as a user message",
        EntryBody::BranchSummary(_) => "summary of another branch; exported as a user message",
        EntryBody::ContextEdit(edit) if edit.replacement.is_none() => "hidden from the model",
        EntryBody::ContextEdit(_) => "replaced for the model; only the replacement is exported",
        EntryBody::CustomMessage(_) => "message of an extension; exported as a user message",
        EntryBody::Custom(_) => "state of an extension",
        EntryBody::Label(_) => "label",
        EntryBody::SessionInfo(_) => "name of the session",
        EntryBody::Usage(_) => "tokens used outside the conversation",
        EntryBody::Unknown { kind, .. } => return Some(format!("entry of type {kind:?}")),
    };
    Some(what.to_owned())
}
