//! Records in answers the facts that a trace could otherwise only guess.
//!
//! An answer's entry gets the field `trace`: the id of the prompt that started the run,
//! and the ids of the calls whose results the answer is the first to follow. It is a field
//! of the entry, not of the message: the original keeps unknown fields of an entry and
//! never sends them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::ai::{Extra, Message};

use super::super::store::{Entry, EntryBody, EntryId, SessionMessage};

/// The field of an entry.
const FIELD: &str = "trace";

/// Follows a session's messages and describes each answer's position.
#[derive(Debug, Default)]
pub(in crate::session) struct StepRecorder {
    request: Option<EntryId>,
    /// The next user message starts a run.
    starts_run: bool,
    /// Calls with a result since the last answer with text.
    finished_calls: Vec<String>,
}

impl StepRecorder {
    /// A run starts after `branch`, with a prompt or to repeat a request.
    pub(in crate::session) fn on_run_start(&mut self, branch: &[Arc<Entry>], is_prompted: bool) {
        self.starts_run = is_prompted;
        if is_prompted || self.request.is_some() {
            return;
        }
        // Another process stored the prompt.
        self.request = branch.iter().rev().find(|entry| is_prompt(&entry.body)).map(|entry| entry.id.clone());
    }

    /// A message was stored as entry `id`.
    pub(in crate::session) fn on_message(&mut self, id: &EntryId, message: &Message) {
        match message {
            Message::User(_) if std::mem::take(&mut self.starts_run) => {
                self.request = Some(id.clone());
                self.finished_calls.clear();
            }
            Message::Assistant(answer) if answer.texts().any(|text| !text.trim().is_empty()) => {
                self.finished_calls.clear();
            }
            Message::ToolResult(result) => self.finished_calls.push(result.tool_call_id.clone()),
            Message::User(_) | Message::Assistant(_) | Message::System(_) => {}
        }
    }

    /// The fields of the next answer's entry.
    pub(in crate::session) fn fields(&self) -> Extra {
        let mut trace = Map::new();
        if let Some(request) = &self.request {
            trace.insert("request".to_owned(), request.as_str().into());
        }
        if !self.finished_calls.is_empty() {
            trace.insert("reflectsOn".to_owned(), json!(self.finished_calls));
        }
        let mut fields = Extra::new();
        if !trace.is_empty() {
            fields.insert(FIELD.to_owned(), Value::Object(trace));
        }
        fields
    }
}

fn is_prompt(body: &EntryBody) -> bool {
    matches!(body, EntryBody::Message { message: SessionMessage::Model(message), .. }
        if matches!(**message, Message::User(_)))
}

/// The recorded id of the prompt that started the run of an answer.
pub(super) fn request_id(extra: &Extra) -> Option<EntryId> {
    Some(EntryId::new(extra.get(FIELD)?.get("request")?.as_str()?))
}

/// The recorded calls whose results an answer follows; empty if nothing was recorded.
pub(super) fn reflects_on(extra: &Extra) -> Vec<String> {
    let calls = extra.get(FIELD).and_then(|trace| trace.get("reflectsOn")).and_then(Value::as_array);
    calls.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
