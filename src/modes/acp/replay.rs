//! The conversation of a session as updates, for clients that load it.
//!
//! Messages are read in batches while others are written, so that a session of any length
//! takes little memory. Each is read once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use agent_client_protocol_schema::v1::{
    ContentChunk, MessageId, SessionId, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use serde_json::Value;

use crate::ai::{AssistantBlock, AssistantMessage, Message, ToolResultMessage, UserContent};
use crate::session::{BashExecution, Entry, EntryBody, EntryKind, SessionMessage, SessionTree};
use crate::util::parts;

use super::message;
use super::tool_calls::{self, Folders, text_block};

/// Entries that are read at once, unless they are long.
const BATCH: usize = 512;
/// Bytes of the entries that are read at once, unless one is longer.
const BATCH_BYTES: u64 = 1 << 20;
/// Updates that are worth a thread of their own.
const UPDATES_PER_THREAD: usize = 50;
/// Parts of batches that wait to be written.
const AHEAD: usize = 4;

/// The lines of a conversation that are still to be written. A thread of their own makes
/// them while others are written.
pub(super) enum Replay {
    Ahead(Receiver<String>),
    /// The system has no thread for it.
    Here(Box<Conversation>),
}

impl Replay {
    /// The conversation of `tree`, for the session that the client knows as `session`.
    pub(super) fn start(session: SessionId, tree: SessionTree, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        let conversation = Conversation::new(session, tree, cwd, home);
        let (lines, made) = mpsc::sync_channel(AHEAD);
        let (start, started) = mpsc::channel::<Box<Conversation>>();
        let make = move || {
            let mut left = started.recv().ok();
            while let Some(mut conversation) = left.take() {
                // Nobody reads any more when the client is gone.
                if let Some(made) = conversation.next_lines()
                    && made.into_iter().all(|text| lines.send(text).is_ok())
                {
                    left = Some(conversation);
                }
            }
        };
        if thread::Builder::new().name("replay".to_owned()).spawn(make).is_err() {
            return Self::Here(Box::new(conversation));
        }
        match start.send(Box::new(conversation)) {
            Ok(()) => Self::Ahead(made),
            Err(mpsc::SendError(conversation)) => Self::Here(conversation),
        }
    }

    /// The next lines, and what is left after them. Waits for the disk.
    pub(super) fn next(mut self) -> Option<(String, Self)> {
        let text = match &mut self {
            Self::Ahead(lines) => lines.recv().ok(),
            Self::Here(conversation) => conversation.next_lines().map(|made| made.concat()),
        };
        Some((text?, self))
    }
}

/// What is left of a conversation.
pub(super) struct Conversation {
    session: SessionId,
    tree: SessionTree,
    /// Entries of the active branch, the next one last.
    left: Vec<usize>,
    folders: Folders,
    /// Calls without a result so far: id, name and arguments, oldest first.
    calls: Vec<(String, String, Value)>,
    is_over: bool,
}

impl Conversation {
    fn new(session: SessionId, tree: SessionTree, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        let mut left = tree.path(tree.leaf());
        left.retain(|idx| is_shown(tree.entries()[*idx].kind));
        left.reverse();
        Self { session, tree, left, folders: Folders { cwd, home }, calls: Vec::new(), is_over: false }
    }

    /// The lines of the next entries, in parts; `None` after the last one.
    fn next_lines(&mut self) -> Option<Vec<String>> {
        let updates = self.next_updates()?;
        let n_threads = parts::threads_for(updates.len(), UPDATES_PER_THREAD);
        Some(parts::in_parts(&updates, n_threads, &|_| 1, &|updates| {
            vec![message::update_lines(&self.session, updates)]
        }))
    }

    /// The updates of the next entries; `None` after the last one. Reads the disk.
    fn next_updates(&mut self) -> Option<Vec<SessionUpdate>> {
        if self.is_over {
            return None;
        }
        let mut updates = Vec::new();
        let batch = self.next_batch();
        for entry in self.tree.read_all(&batch) {
            self.push(&entry, &mut updates);
        }
        if self.left.is_empty() {
            self.is_over = true;
            updates.extend(self.calls.iter().map(|(id, ..)| failed(id)));
        }
        Some(updates)
    }

    fn next_batch(&mut self) -> Vec<usize> {
        let (mut batch, mut n_bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && n_bytes < BATCH_BYTES {
            let Some(idx) = self.left.pop() else { break };
            n_bytes += self.tree.line_bytes(idx);
            batch.push(idx);
        }
        batch
    }

    fn push(&mut self, entry: &Arc<Entry>, out: &mut Vec<SessionUpdate>) {
        let id = entry.id.as_str();
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::User(user) => push_user(id, &user.content, out),
                Message::Assistant(answer) => self.push_answer(id, answer, out),
                Message::ToolResult(result) => self.push_result(result, out),
                Message::System(_) => {}
            },
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
                push_command(id, execution, out);
            }
            EntryBody::CustomMessage(custom) if custom.display => {
                let text = custom.content.as_ref().map(UserContent::text).unwrap_or_default();
                push_text(id, &text, out, SessionUpdate::AgentMessageChunk);
            }
            EntryBody::Compaction(compaction) => {
                let text = format!("The conversation was compacted to:\n\n{}\n\n", compaction.summary);
                push_text(id, &text, out, SessionUpdate::AgentThoughtChunk);
            }
            EntryBody::BranchSummary(branch) => {
                let text = format!("Summary of a branch that was left:\n\n{}\n\n", branch.summary);
                push_text(id, &text, out, SessionUpdate::AgentThoughtChunk);
            }
            _ => {}
        }
    }

    fn push_answer(&mut self, id: &str, answer: &AssistantMessage, out: &mut Vec<SessionUpdate>) {
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => {
                    push_text(id, &text.text, out, SessionUpdate::AgentMessageChunk);
                }
                AssistantBlock::Thinking(thinking) => {
                    push_text(id, &thinking.thinking, out, SessionUpdate::AgentThoughtChunk);
                }
                AssistantBlock::ToolCall(call) => {
                    let view = tool_calls::describe(&call.name, &call.arguments, &self.folders);
                    let shown = ToolCall::new(call.id.clone(), view.title)
                        .name(call.name.clone())
                        .kind(tool_calls::kind(&call.name))
                        .content(view.content)
                        .locations(view.locations)
                        .raw_input(call.arguments.clone());
                    out.push(SessionUpdate::ToolCall(shown));
                    self.calls.push((call.id.clone(), call.name.clone(), call.arguments.clone()));
                }
                AssistantBlock::Unknown(_) => {}
            }
        }
    }

    fn push_result(&mut self, result: &ToolResultMessage, out: &mut Vec<SessionUpdate>) {
        let at = self.calls.iter().position(|(id, ..)| *id == result.tool_call_id);
        let Some((id, tool, arguments)) = at.map(|at| self.calls.remove(at)) else { return };
        let changed = if result.is_error {
            None
        } else {
            tool_calls::changed(&tool, &arguments, result.details.as_ref(), None, &self.folders)
        };
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let content = changed.unwrap_or_else(|| tool_calls::output(&result.content));
        let fields = ToolCallUpdateFields::new().status(status).content(content);
        out.push(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
    }
}

fn is_shown(kind: EntryKind) -> bool {
    !matches!(kind, EntryKind::Label | EntryKind::System)
}

fn push_user(id: &str, content: &UserContent, out: &mut Vec<SessionUpdate>) {
    for block in content.blocks().iter().filter_map(tool_calls::block) {
        out.push(SessionUpdate::UserMessageChunk(ContentChunk::new(block).message_id(MessageId::new(id))));
    }
}

fn push_text(id: &str, text: &str, out: &mut Vec<SessionUpdate>, wrap: fn(ContentChunk) -> SessionUpdate) {
    if !text.is_empty() {
        out.push(wrap(ContentChunk::new(text_block(text)).message_id(MessageId::new(id))));
    }
}

/// A `!` command of the user, as a call that has ended.
fn push_command(id: &str, execution: &BashExecution, out: &mut Vec<SessionUpdate>) {
    let succeeded = execution.exit_code == Some(0) && !execution.cancelled;
    let status = if succeeded { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let content = tool_calls::output(&[crate::ai::ContentBlock::text(execution.output.as_str())]);
    let call = ToolCall::new(format!("command-{id}"), execution.command.as_str())
        .kind(tool_calls::kind("bash"))
        .status(status)
        .content(content);
    out.push(SessionUpdate::ToolCall(call));
}

fn failed(id: &str) -> SessionUpdate {
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use crate::session;

    use super::*;

    fn replay_of(lines: &str) -> (tempfile::TempDir, Conversation) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/work"}"#;
        fs::write(&path, format!("{header}\n{lines}")).unwrap();
        let stored = session::read_tree(&path).unwrap().unwrap();
        (folder, Conversation::new(SessionId::new("s"), stored.tree, PathBuf::from("/work"), None))
    }

    #[test]
    fn replay_takes_each_entry_once_and_a_batch_at_a_time() {
        let mut lines = String::new();
        for number in 0..1_000 {
            let parent = if number == 0 { "null".to_owned() } else { format!("\"{}\"", number - 1) };
            writeln!(
                lines,
                r#"{{"type":"message","id":"{number}","parentId":{parent},"timestamp":"","message":{{"role":"user","content":"text {number}","timestamp":1}}}}"#
            )
            .unwrap();
        }
        let (_folder, mut replay) = replay_of(&lines);
        let (mut n_batches, mut ids) = (0, Vec::new());
        while let Some(updates) = replay.next_updates() {
            assert!(updates.len() <= BATCH);
            for update in updates {
                let SessionUpdate::UserMessageChunk(chunk) = update else { panic!("{update:?}") };
                ids.push(chunk.message_id.unwrap().0.to_string());
            }
            n_batches += 1;
        }
        assert_eq!(n_batches, 1_000 / BATCH + 1);
        let expected: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn call_without_a_result_ends_as_failed() {
        let lines = concat!(
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"go","timestamp":1}}"#,
            "\n",
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"make"}}],"stopReason":"aborted","errorMessage":"x","timestamp":2}}"#,
            "\n",
        );
        let (_folder, mut replay) = replay_of(lines);
        let updates = replay.next_updates().unwrap();
        assert!(replay.next_updates().is_none());
        let Some(SessionUpdate::ToolCallUpdate(last)) = updates.last() else { panic!("{updates:?}") };
        assert_eq!((&*last.tool_call_id.0, last.fields.status), ("c", Some(ToolCallStatus::Failed)));
    }
}
