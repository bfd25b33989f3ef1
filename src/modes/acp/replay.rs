//! The conversation of a session as updates, for clients that load it.
//!
//! Messages are read in batches while others are written, so that a session of any length
//! takes little memory. Each is read once.

use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
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
use crate::session::{BashExecution, Entry, EntryBody, EntryKind, SessionMessage, SessionTree, StoredEntry};
use crate::util::panics::crash_text;
use crate::util::parts;

use super::message;
use super::splice::{Forms, ReadCall, Spliced};
use super::tool_calls::{self, Folders, text_block};

/// Entries that are read at once, unless they are long.
const BATCH: usize = 512;
/// Bytes of the entries that are read at once, unless one is longer.
const BATCH_BYTES: u64 = 1 << 20;
/// Bytes of entries that are worth a thread of their own.
const BYTES_PER_THREAD: usize = 256 << 10;
/// Parts of batches that wait to be written.
const AHEAD: usize = 4;

/// The lines of a conversation that are still to be written. A thread of their own makes
/// them while others are written.
pub(super) enum Replay {
    /// Fails with the text of a panic.
    Ahead(Receiver<Result<String, String>>),
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
            let Ok(mut conversation) = started.recv() else { return };
            while let Some(made) = conversation.caught_lines() {
                let (parts, failure) = match made {
                    Ok(parts) => (parts, None),
                    Err(why) => (Vec::new(), Some(why)),
                };
                let mut made = parts.into_iter().map(Ok).chain(failure.map(Err));
                // Nobody reads any more when the client is gone.
                if !made.all(|text| lines.send(text).is_ok()) {
                    return;
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

    /// The next lines; `None` after the last ones. Waits for the disk.
    ///
    /// # Errors
    /// With the text of a panic, after which nothing follows.
    pub(super) fn next(&mut self) -> Option<Result<String, String>> {
        match self {
            Self::Ahead(lines) => lines.recv().ok(),
            Self::Here(conversation) => {
                conversation.caught_lines().map(|made| made.map(|parts| parts.concat()))
            }
        }
    }
}

/// What is left of a conversation.
pub(super) struct Conversation {
    session: SessionId,
    tree: SessionTree,
    /// Entries of the active branch, the next one last.
    left: Vec<usize>,
    folders: Folders,
    /// Without them, every entry is decoded.
    forms: Option<Forms>,
    /// Those without a result so far, oldest first.
    calls: Vec<Call>,
    is_over: bool,
}

/// A tool call that waits for its result.
struct Call {
    id: String,
    tool: String,
    arguments: Value,
}

/// The lines of entries that follow each other, made without knowing the calls before them.
#[derive(Default)]
struct Part {
    text: String,
    /// In their order.
    pieces: Vec<Piece>,
}

/// What of a part depends on other entries.
enum Piece {
    Call(Call),
    /// The line of the result of a call, which is not shown if the call is not open.
    Line {
        call_id: String,
        idx: usize,
        place: Range<usize>,
    },
    /// The result of a call, whose line belongs here.
    Result {
        result: Arc<Entry>,
        at: usize,
    },
}

impl Conversation {
    fn new(session: SessionId, tree: SessionTree, cwd: PathBuf, home: Option<PathBuf>) -> Self {
        let mut left = tree.path(tree.leaf());
        left.retain(|idx| is_shown(tree.entry(*idx).kind));
        left.reverse();
        let (folders, forms) = (Folders { cwd, home }, Forms::new(&session));
        Self { session, tree, left, folders, forms, calls: Vec::new(), is_over: false }
    }

    /// [`Self::next_lines`], or the text of a panic, after which nothing follows.
    fn caught_lines(&mut self) -> Option<Result<Vec<String>, String>> {
        let made = panic::catch_unwind(AssertUnwindSafe(|| self.next_lines()));
        if made.is_err() {
            self.is_over = true;
        }
        made.map_err(|panic| crash_text(&*panic)).transpose()
    }

    /// The lines of the next entries, in parts; `None` after the last one. Reads the disk.
    fn next_lines(&mut self) -> Option<Vec<String>> {
        if self.is_over {
            return None;
        }
        let batch = self.next_batch();
        let n_bytes = |idx: &usize| usize::try_from(self.tree.line_bytes(*idx)).unwrap_or_default();
        let n_threads = parts::threads_for(batch.iter().map(n_bytes).sum(), BYTES_PER_THREAD);
        let made = parts::in_parts(&batch, n_threads, &n_bytes, &|entries| vec![self.part(entries)]);
        let mut lines: Vec<String> = made.into_iter().map(|part| self.finish(part)).collect();
        if self.left.is_empty() {
            self.is_over = true;
            let open: Vec<SessionUpdate> = self.calls.iter().map(|call| failed(&call.id)).collect();
            lines.push(message::update_lines(&self.session, &open));
        }
        Some(lines)
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

    fn part(&self, entries: &[usize]) -> Part {
        // Lines of the client are about as long as those of the file.
        let n_bytes: u64 = entries.iter().map(|idx| self.tree.line_bytes(*idx)).sum();
        let text = String::with_capacity(usize::try_from(n_bytes + n_bytes / 8).unwrap_or_default());
        let (mut part, mut lines) = (Part { text, pieces: Vec::new() }, self.tree.lines());
        for idx in entries {
            let id = self.tree.entry(*idx).id;
            let entry = match lines.read(*idx) {
                Some(StoredEntry::Entry(entry)) => entry,
                Some(StoredEntry::Line(line)) => {
                    if self.splice(*idx, &line, &mut part) {
                        continue;
                    }
                    match Entry::parse(&line) {
                        Ok(entry) if entry.id == *id => Arc::new(entry),
                        _ => continue,
                    }
                }
                None => continue,
            };
            self.push(entry, &mut part);
        }
        part
    }

    /// Copies the texts of `line` to the lines if that is enough; `false` otherwise.
    fn splice(&self, idx: usize, line: &str, part: &mut Part) -> bool {
        let Some(forms) = &self.forms else { return false };
        let (entry, start) = (&self.tree.entry(idx), part.text.len());
        let Part { text, pieces } = part;
        let push_call = |ReadCall { id, tool, arguments }: ReadCall, text: &mut String| {
            let call = Call { id, tool, arguments };
            text.push_str(&message::update_lines(&self.session, &[call.shown(&self.folders)]));
            pieces.push(Piece::Call(call));
        };
        match forms.push((entry.id, entry.kind), line, text, push_call) {
            Some(Spliced::Lines) => true,
            Some(Spliced::Result { call_id }) => {
                let place = start..text.len();
                pieces.push(Piece::Line { call_id, idx, place });
                true
            }
            None => false,
        }
    }

    fn push(&self, entry: Arc<Entry>, part: &mut Part) {
        let id = entry.id.as_str();
        let mut updates = Vec::new();
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::User(user) => push_user(id, &user.content, &mut updates),
                Message::Assistant(answer) => self.push_answer(id, answer, part, &mut updates),
                Message::ToolResult(_) => {
                    part.pieces.push(Piece::Result { at: part.text.len(), result: entry });
                    return;
                }
                Message::System(_) => {}
            },
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
                push_command(id, execution, &mut updates);
            }
            EntryBody::CustomMessage(custom) if custom.display => {
                let text = custom.content.as_ref().map(UserContent::text).unwrap_or_default();
                push_text(id, &text, &mut updates, SessionUpdate::AgentMessageChunk);
            }
            EntryBody::Compaction(compaction) => {
                let text = format!("The conversation was compacted to:\n\n{}\n\n", compaction.summary);
                push_text(id, &text, &mut updates, SessionUpdate::AgentThoughtChunk);
            }
            EntryBody::BranchSummary(branch) => {
                let text = format!("Summary of a branch that was left:\n\n{}\n\n", branch.summary);
                push_text(id, &text, &mut updates, SessionUpdate::AgentThoughtChunk);
            }
            _ => {}
        }
        part.text.push_str(&message::update_lines(&self.session, &updates));
    }

    fn push_answer(
        &self,
        id: &str,
        answer: &AssistantMessage,
        part: &mut Part,
        out: &mut Vec<SessionUpdate>,
    ) {
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => {
                    push_text(id, &text.text, out, SessionUpdate::AgentMessageChunk);
                }
                AssistantBlock::Thinking(thinking) => {
                    push_text(id, &thinking.thinking, out, SessionUpdate::AgentThoughtChunk);
                }
                AssistantBlock::ToolCall(call) => {
                    let (id, tool) = (call.id.clone(), call.name.clone());
                    let call = Call { id, tool, arguments: call.arguments.clone() };
                    out.push(call.shown(&self.folders));
                    part.pieces.push(Piece::Call(call));
                }
                AssistantBlock::Unknown(_) => {}
            }
        }
    }

    /// The lines of `part`, now that the calls before it are known.
    fn finish(&mut self, part: Part) -> String {
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        for piece in part.pieces {
            match piece {
                Piece::Call(call) => {
                    // Some servers reuse ids; results that follow are those of the later call.
                    self.calls.retain(|open| open.id != call.id);
                    self.calls.push(call);
                }
                Piece::Line { call_id, idx, place } => match self.take_call(&call_id) {
                    Some(call) if !tool_calls::changes_files(&call.tool) => {}
                    Some(call) => {
                        let result = self.tree.read(idx);
                        let line = result.map(|result| self.result_line(call, &result)).unwrap_or_default();
                        changes.push((place, line));
                    }
                    None => changes.push((place, String::new())),
                },
                Piece::Result { result, at } => {
                    let Some(call) = result_of(&result).and_then(|of| self.take_call(&of.tool_call_id))
                    else {
                        continue;
                    };
                    changes.push((at..at, self.result_line(call, &result)));
                }
            }
        }
        with_changes(part.text, &changes)
    }

    fn take_call(&mut self, id: &str) -> Option<Call> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    fn result_line(&self, call: Call, entry: &Entry) -> String {
        let Some(result) = result_of(entry) else { return String::new() };
        let changed = if result.is_error {
            None
        } else {
            let details = result.details.as_ref();
            tool_calls::changed(&call.tool, &call.arguments, details, None, &self.folders)
        };
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let content = changed.unwrap_or_else(|| tool_calls::output(&result.content));
        let fields = ToolCallUpdateFields::new().status(status).content(content);
        let update = SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id, fields));
        message::update_lines(&self.session, &[update])
    }
}

impl Call {
    fn shown(&self, folders: &Folders) -> SessionUpdate {
        let view = tool_calls::describe(&self.tool, &self.arguments, folders);
        let shown = ToolCall::new(self.id.clone(), view.title)
            .name(self.tool.clone())
            .kind(tool_calls::kind(&self.tool))
            .content(view.content)
            .locations(view.locations)
            .raw_input(self.arguments.clone());
        SessionUpdate::ToolCall(shown)
    }
}

fn result_of(entry: &Entry) -> Option<&ToolResultMessage> {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        },
        _ => None,
    }
}

/// `text` with other texts in these places, which are in order and apart.
fn with_changes(text: String, changes: &[(Range<usize>, String)]) -> String {
    if changes.is_empty() {
        return text;
    }
    let added: usize = changes.iter().map(|(_, line)| line.len()).sum();
    let (mut changed, mut at) = (String::with_capacity(text.len() + added), 0);
    for (place, line) in changes {
        changed.push_str(&text[at..place.start]);
        changed.push_str(line);
        at = place.end;
    }
    changed.push_str(&text[at..]);
    changed
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
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use agent_client_protocol_schema::v1::RequestId;

    use crate::session;

    use super::super::super::wire::LineFormat;
    use super::super::outgoing::{AcpLines, Outgoing, ReplayResponse};
    use super::*;

    fn tree(path: &Path) -> Option<SessionTree> {
        Some(session::read_tree(path).unwrap()?.tree)
    }

    fn conversation(tree: SessionTree) -> Conversation {
        Conversation::new(SessionId::new("s"), tree, PathBuf::from("/work"), None)
    }

    fn replay_of(lines: &str) -> (tempfile::TempDir, Conversation) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/work"}"#;
        fs::write(&path, format!("{header}\n{lines}")).unwrap();
        let conversation = conversation(tree(&path).unwrap());
        (folder, conversation)
    }

    fn updates(lines: &[String]) -> Vec<Value> {
        let lines = lines.iter().flat_map(|part| part.lines());
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["params"]["update"].take()).collect()
    }

    fn all_updates(mut conversation: Conversation) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(lines) = conversation.next_lines() {
            all.extend(updates(&lines));
        }
        all
    }

    /// What texts that are copied and texts that are decoded become is the same.
    #[track_caller]
    fn check_alike(path: &Path) -> usize {
        // Entries of the first format get other ids with every reading.
        let Some(tree) = tree(path) else { return 0 };
        let copied = conversation(tree.clone());
        let decoded = Conversation { forms: None, ..conversation(tree) };
        let (copied, decoded) = (all_updates(copied), all_updates(decoded));
        assert_eq!(copied, decoded, "{}", path.display());
        copied.len()
    }

    #[test]
    fn replay_takes_each_entry_once_and_a_batch_at_a_time() {
        let mut lines = String::new();
        for number in 0..1_000 {
            let parent = if number == 0 { "null".to_owned() } else { format!("\"{}\"", number - 1) };
            writeln!(
                lines,
                r#"{{"type":"message","id":"{number}","parentId":{parent},"timestamp":"","message":{{"role":"user","content":[{{"type":"text","text":"text {number}"}}],"timestamp":1}}}}"#
            )
            .unwrap();
        }
        let (_folder, mut replay) = replay_of(&lines);
        let (mut n_batches, mut ids) = (0, Vec::new());
        while let Some(lines) = replay.next_lines() {
            let updates = updates(&lines);
            assert!(updates.len() <= BATCH);
            for update in updates {
                assert_eq!(update["sessionUpdate"], "user_message_chunk");
                ids.push(update["messageId"].as_str().unwrap().to_owned());
            }
            n_batches += 1;
        }
        assert_eq!(n_batches, 1_000 / BATCH + 1);
        let expected: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn replay_that_panics_is_answered_with_an_error() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"go","timestamp":1}}"#;
        let (_folder, mut conversation) = replay_of(&format!("{line}\n"));
        // No entry of the session.
        conversation.left.insert(0, usize::MAX);
        let response = ReplayResponse { id: RequestId::Number(7), ok: "{}".to_owned() };
        let mut left = Some(Outgoing::Replay(Replay::Here(Box::new(conversation)), response));
        let (mut lines, mut format) = (String::new(), AcpLines::default());
        while let Some(item) = left {
            left = format.push(item, &mut lines);
        }
        let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!((&last["id"], last.get("result")), (&json!(7), None));
        let text = last["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("internal error in pi: "), "{text}");
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
        let updates = all_updates(replay);
        let last = updates.last().unwrap();
        assert_eq!((&last["toolCallId"], &last["status"]), (&json!("c"), &json!("failed")));
    }

    #[test]
    fn result_belongs_to_the_last_call_with_its_id() {
        let call = |id: &str, parent: &str, tool: &str| {
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": {"role": "assistant",
                "content": [{"type": "toolCall", "id": "c", "name": tool, "arguments": {"path": "a"}}],
                "stopReason": "toolUse", "timestamp": 2}})
        };
        let result = json!({"type": "message", "id": "d", "parentId": "b", "timestamp": "", "message": {"role": "toolResult",
            "toolCallId": "c", "toolName": "read", "content": [{"type": "text", "text": "x"}], "isError": false, "timestamp": 3}});
        let mut first = call("a", "", "bash");
        first["parentId"] = Value::Null;
        let (_folder, replay) = replay_of(&format!("{first}\n{}\n{result}\n", call("b", "a", "read")));
        let updates = all_updates(replay);
        // The first call, which has no result, does not fail instead of the second.
        let statuses: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
        assert_eq!(statuses.last(), Some(&&json!("completed")), "{updates:?}");
        assert_eq!(updates.len(), 3, "{updates:?}");
    }

    #[test]
    fn sessions_are_replayed_alike_whether_texts_are_copied_or_decoded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
        let (mut folders, mut n_sessions, mut n_updates) = (vec![root], 0, 0);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    n_updates += check_alike(&path);
                    n_sessions += 1;
                }
            }
        }
        assert!(n_sessions > 20 && n_updates > 200, "{n_sessions} sessions with {n_updates} updates");
    }

    /// Texts as the original, pi and others may have written them.
    fn texts() -> impl Strategy<Value = String> {
        let plain = ".{0,30}".prop_map(|text| serde_json::to_string(&text).unwrap());
        let escaped = ".{0,12}".prop_map(|text| {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            format!("\"{}\"", units.collect::<String>())
        });
        let odd = prop::sample::select(vec![
            r#""half \ud83d of a pair""#,
            r#""\\ud800 is text""#,
            r#""\/ \b \u001b[1m""#,
            r#""""#,
            "\"\u{e000}0\"",
            "\"tab\t\"",
            "7",
            "null",
        ]);
        let text = prop_oneof![4 => plain, 1 => escaped, 1 => odd.prop_map(str::to_owned)];
        // Some are so long that they are not parsed.
        (text, prop::bool::weighted(0.3)).prop_map(|(text, is_long)| match text.strip_prefix('"') {
            Some(rest) if is_long => format!("\"{}{rest}", "x".repeat(600)),
            _ => text,
        })
    }

    /// The message of an entry, with calls and results of few ids, so that some meet.
    fn messages() -> impl Strategy<Value = String> {
        let block = |text: &String| format!(r#"{{"type":"text","text":{text}}}"#);
        let user = prop::collection::vec(texts(), 0..3).prop_map(move |texts| {
            let blocks: Vec<String> = texts.iter().map(block).collect();
            format!(r#"{{"role":"user","content":[{}],"timestamp":1}}"#, blocks.join(","))
        });
        let tools = prop::sample::select(vec!["read", "edit", "write", "bash"]);
        let call = (tools, 0..4, texts()).prop_map(|(tool, id, text)| {
            let arguments = format!(r#"{{"path":"a","content":{text},"edits":[{{"oldText":"x","newText":{text}}}]}}"#);
            format!(
                r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":{text}}},{{"type":"toolCall","id":"c{id}","name":"{tool}","arguments":{arguments}}}],"stopReason":"toolUse","timestamp":1}}"#
            )
        });
        let result = (0..4, any::<bool>(), prop::collection::vec(texts(), 0..3)).prop_map(move |(id, is_error, texts)| {
            let blocks: Vec<String> = texts.iter().map(block).collect();
            format!(
                r#"{{"role":"toolResult","toolCallId":"c{id}","toolName":"x","content":[{}],"details":{{"patch":"@@ -1 +1 @@\n-a\n+b\n"}},"isError":{is_error},"timestamp":1}}"#,
                blocks.join(",")
            )
        });
        let others = prop::sample::select(vec![
            r#"{"role":"user","content":"plain","timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x","more":1}],"timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x"}],"timestamp":"no number"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"image","data":"AA==","mimeType":"image/png"}],"timestamp":1}"#,
            r#"{"role":"toolResult","toolCallId":7,"content":[{"type":"text","text":"x"}],"timestamp":1}"#,
            r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}"#,
        ]);
        prop_oneof![2 => user, 3 => call, 3 => result, 1 => others.prop_map(str::to_owned)]
    }

    proptest! {
        #[test]
        fn any_session_is_replayed_alike_whether_texts_are_copied_or_decoded(
            messages in prop::collection::vec(messages(), 1..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            let mut lines = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/work\"}\n");
            for (at, message) in messages.iter().enumerate() {
                let parent = at.checked_sub(1).map_or("null".to_owned(), |before| format!("\"{before}\""));
                writeln!(
                    lines,
                    r#"{{"type":"message","id":"{at}","parentId":{parent},"timestamp":"","message":{message}}}"#
                )
                .unwrap();
            }
            fs::write(&path, lines).unwrap();
            check_alike(&path);
        }
    }
}
