//! The conversation of a session as updates, for clients that load it.
//!
//! Messages are read one by one while they are written, so that a session of any length
//! takes little memory. Each is read once.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentChunk, MessageId, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::Value;

use crate::ai::{AssistantBlock, AssistantMessage, Message, ToolResultMessage, UserContent};
use crate::session::{BashExecution, Entry, EntryBody, EntryKind, SessionMessage, SessionTree};

use super::tool_calls::{self, Folders, text_block};

/// Entries that are written before others get their turn.
const BATCH: usize = 64;

/// What is left of a conversation.
pub(super) struct Replay {
    tree: SessionTree,
    /// Entries of the active branch, the next one last.
    left: Vec<usize>,
    folders: Folders,
    /// Calls without a result so far: id, name and arguments, oldest first.
    calls: Vec<(String, String, Value)>,
}

impl Replay {
    pub(super) fn new(tree: SessionTree, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        let mut left = tree.path(tree.leaf());
        left.retain(|idx| is_shown(tree.entries()[*idx].kind));
        left.reverse();
        Self { tree, left, folders: Folders { cwd, home }, calls: Vec::new() }
    }

    /// The next updates, and what is left after them. Reads the disk.
    pub(super) fn next(mut self) -> (Vec<SessionUpdate>, Option<Self>) {
        let mut updates = Vec::new();
        for _ in 0..BATCH {
            let Some(idx) = self.left.pop() else {
                updates.extend(self.calls.iter().map(|(id, ..)| failed(id)));
                return (updates, None);
            };
            if let Some(entry) = self.tree.read(idx) {
                self.push(&entry, &mut updates);
            }
        }
        (updates, Some(self))
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

    fn replay_of(lines: &str) -> (tempfile::TempDir, Replay) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/work"}"#;
        fs::write(&path, format!("{header}\n{lines}")).unwrap();
        let stored = session::read_tree(&path).unwrap().unwrap();
        (folder, Replay::new(stored.tree, PathBuf::from("/work"), None))
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
        let (_folder, replay) = replay_of(&lines);
        let (mut left, mut n_batches, mut ids) = (Some(replay), 0, Vec::new());
        while let Some(replay) = left.take() {
            let before = replay.left.len();
            let (updates, rest) = replay.next();
            let after = rest.as_ref().map_or(0, |rest| rest.left.len());
            assert!(before - after <= BATCH && updates.len() == before - after);
            for update in updates {
                let SessionUpdate::UserMessageChunk(chunk) = update else { panic!("{update:?}") };
                ids.push(chunk.message_id.unwrap().0.to_string());
            }
            (left, n_batches) = (rest, n_batches + 1);
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
        let (_folder, replay) = replay_of(lines);
        let (updates, rest) = replay.next();
        assert!(rest.is_none());
        let Some(SessionUpdate::ToolCallUpdate(last)) = updates.last() else { panic!("{updates:?}") };
        assert_eq!((&*last.tool_call_id.0, last.fields.status), ("c", Some(ToolCallStatus::Failed)));
    }
}
