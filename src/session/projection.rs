//! Projects the active branch to the messages of a request. Pure.
//!
//! Entries that are not messages become messages here (`!` commands,
//! summaries, application messages), and context edits take effect. `ai` adapts the
//! result to each provider.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::ai::{
    AssistantBlock, ContentBlock, Extra, Message, Millis, Text, ThinkingLevel, UserContent, UserMessage,
};
use crate::tools::saved_output;
use crate::util::clock;

use super::store::{BashExecution, Compaction, Entry, EntryBody, EntryId, Replacement, SessionMessage};

const COMPACTION_LEAD: &str =
    "The conversation before this point was compacted. This summary stands for what was said and done:";
const BRANCH_LEAD: &str =
    "Another branch of this conversation was explored and left. This is a summary of it:";

/// The messages of a request, from the part of the branch it depends on, oldest
/// first (see `SessionStore::context_branch`).
pub fn messages(branch: &[Arc<Entry>]) -> Vec<Arc<Message>> {
    sources(branch).into_iter().map(|source| source.message).collect()
}

/// Whether a message of the user with this text is a summary, of a compaction or a branch.
pub(super) fn is_summary(text: &str) -> bool {
    text.starts_with(COMPACTION_LEAD) || text.starts_with(BRANCH_LEAD)
}

/// A message of a request, and its origin.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The entry that a context edit must target to change the message; `None`
    /// if that is not possible.
    pub(super) entry: Option<EntryId>,
    pub(super) message: Arc<Message>,
}

impl Source {
    fn fixed(message: Arc<Message>) -> Self {
        Self { entry: None, message }
    }
}

/// Like [`messages`], with their entries.
pub(super) fn sources(branch: &[Arc<Entry>]) -> Vec<Source> {
    let mut sources = in_stored_order(branch);
    order_results(&mut sources);
    sources
}

/// The message of each entry, with edits applied; `None` if the model does not see the entry.
pub(super) fn per_entry(entries: &[Arc<Entry>]) -> Vec<Option<Arc<Message>>> {
    let edits = edits(entries);
    entries.iter().map(|entry| edited(entry, &edits).map(|source| source.message)).collect()
}

/// Puts the results of each answer into the order of its calls. Sessions store them
/// in the order in which the calls finished.
fn order_results(sources: &mut [Source]) {
    let mut rest = sources;
    while let Some(at) = rest.iter().position(|source| matches!(*source.message, Message::Assistant(_))) {
        let (answer, after) = rest[at..].split_at_mut(1);
        let n_results = after.iter().take_while(|source| result_id(source).is_some()).count();
        let (results, after) = after.split_at_mut(n_results);
        if let Message::Assistant(answer) = &*answer[0].message {
            let place = |source: &Source| {
                let id = result_id(source);
                answer.tool_calls().position(|call| Some(call.id.as_str()) == id).unwrap_or(usize::MAX)
            };
            results.sort_by_key(place);
        }
        rest = after;
    }
}

/// The call that a tool result answers.
fn result_id(source: &Source) -> Option<&str> {
    match &*source.message {
        Message::ToolResult(result) => Some(&result.tool_call_id),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    }
}

fn in_stored_order(branch: &[Arc<Entry>]) -> Vec<Source> {
    let compaction = branch.iter().rposition(|entry| matches!(entry.body, EntryBody::Compaction(_)));
    let edits = edits(branch);
    let mut messages = Vec::with_capacity(branch.len());
    let mut add = |entry: &Arc<Entry>| messages.extend(edited(entry, &edits));
    match compaction {
        None => branch.iter().for_each(&mut add),
        Some(at) => {
            // The summary comes first, then the part it kept, then later entries.
            if let EntryBody::Compaction(compaction) = &branch[at].body {
                let (system, summary) = summary(compaction, &branch[at].timestamp);
                messages.extend(system.map(Source::fixed));
                messages.push(Source::fixed(summary));
            }
            let mut add = |entry: &Arc<Entry>| messages.extend(edited(entry, &edits));
            branch[..at].iter().filter(|entry| !is_system(entry)).for_each(&mut add);
            branch[at + 1..].iter().for_each(&mut add);
        }
    }
    messages
}

/// The model and thinking level at the end of a whole branch.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Selected {
    /// Provider and id.
    pub(super) model: Option<(String, String)>,
    pub(super) thinking: Option<ThinkingLevel>,
}

/// Scans a branch for the last selection. An answer counts as a selection
/// of the model that gave it, if that is known.
pub(super) fn selected<'a>(branch: impl IntoIterator<Item = &'a Arc<Entry>>) -> Selected {
    let mut selected = Selected::default();
    for entry in branch {
        match &entry.body {
            EntryBody::ThinkingLevelChange(change) => {
                selected.thinking = ThinkingLevel::parse(&change.thinking_level).or(selected.thinking);
            }
            EntryBody::ModelChange(change) => {
                selected.model = Some((change.provider.clone(), change.model_id.clone()));
            }
            EntryBody::Message { message: SessionMessage::Model(message), .. } => {
                if let Message::Assistant(answer) = &**message
                    && !answer.model.is_empty()
                {
                    selected.model = Some((answer.provider.clone(), answer.model.clone()));
                }
            }
            _ => {}
        }
    }
    selected
}

/// The last edit of each target.
fn edits(branch: &[Arc<Entry>]) -> HashMap<&EntryId, Option<&Replacement>> {
    let mut edits = HashMap::new();
    for entry in branch {
        if let EntryBody::ContextEdit(edit) = &entry.body {
            edits.insert(&edit.target_id, edit.replacement.as_ref());
        }
    }
    edits
}

fn edited(entry: &Arc<Entry>, edits: &HashMap<&EntryId, Option<&Replacement>>) -> Option<Source> {
    let message = match edits.get(&entry.id) {
        None => to_message(entry),
        Some(None) => None,
        Some(Some(replacement)) => to_message(entry).map(|message| replaced(&message, replacement)),
    }?;
    Some(Source { entry: is_editable(entry).then(|| entry.id.clone()), message })
}

/// The kinds of entries that context edits can target.
fn is_editable(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => {
            !matches!(**message, Message::System(_))
        }
        EntryBody::CustomMessage(_) => true,
        _ => false,
    }
}

fn to_message(entry: &Entry) -> Option<Arc<Message>> {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => Some(Arc::clone(message)),
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            let visible = execution.exclude_from_context != Some(true);
            visible.then(|| user(bash_text(execution), execution.timestamp))
        }
        EntryBody::BranchSummary(branch) => {
            let text = format!("{BRANCH_LEAD}\n\n<summary>\n{}</summary>", branch.summary);
            (!branch.summary.is_empty()).then(|| user(text, time(&entry.timestamp)))
        }
        EntryBody::CustomMessage(custom) => {
            let content =
                UserContent::Blocks(custom.content.as_ref().map(UserContent::blocks).unwrap_or_default());
            let message = UserMessage { content, timestamp: time(&entry.timestamp), extra: Extra::new() };
            Some(Arc::new(Message::User(message)))
        }
        EntryBody::Message { message: SessionMessage::Unknown(message), .. } => application_message(message),
        EntryBody::ModelChange(_)
        | EntryBody::ThinkingLevelChange(_)
        | EntryBody::Usage(_)
        | EntryBody::Compaction(_)
        | EntryBody::ContextEdit(_)
        | EntryBody::Custom(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::Unknown { .. } => None,
    }
}

/// A legacy application message: a message of the
/// role `custom`. The model reads no other unknown role.
fn application_message(message: &Value) -> Option<Arc<Message>> {
    if message.get("role").and_then(Value::as_str) != Some("custom") {
        return None;
    }
    let content: UserContent = serde_json::from_value(message.get("content")?.clone()).ok()?;
    let content = UserContent::Blocks(content.blocks());
    let timestamp = message.get("timestamp").and_then(Value::as_u64).unwrap_or_default();
    Some(Arc::new(Message::User(UserMessage { content, timestamp: Millis(timestamp), extra: Extra::new() })))
}

fn summary(compaction: &Compaction, timestamp: &str) -> (Option<Arc<Message>>, Arc<Message>) {
    let system = compaction.system_message.clone().map(|system| Arc::new(Message::from(system)));
    let text = format!("{COMPACTION_LEAD}\n\n<summary>\n{}\n</summary>", compaction.summary);
    (system, user(text, time(timestamp)))
}

fn is_system(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => {
            matches!(**message, Message::System(_))
        }
        _ => false,
    }
}

/// The text that the model reads about a command of the user.
fn bash_text(execution: &BashExecution) -> String {
    let output = match execution.output.as_str() {
        "" => "(no output)".to_owned(),
        output => format!("```\n{output}\n```"),
    };
    let mut text = format!("Ran `{}`\n{output}", execution.command);
    if execution.cancelled {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = execution.exit_code.filter(|code| *code != 0) {
        text.push_str("\n\nCommand exited with code ");
        text.push_str(&code.to_string());
    }
    if let (true, Some(path)) = (execution.truncated, &execution.full_output_path) {
        let saved = saved_output(execution.left_out_bytes.unwrap_or_default());
        text.push_str(&["\n\n[Output truncated. ", &saved, ": ", path, "]"].concat());
    }
    text
}

/// `message` with other content; an unreadable replacement changes nothing.
fn replaced(message: &Arc<Message>, replacement: &Replacement) -> Arc<Message> {
    let value = match &replacement.content {
        Value::String(text) => serde_json::json!([{ "type": "text", "text": text }]),
        other => other.clone(),
    };
    let mut message = (**message).clone();
    match &mut message {
        Message::User(message) => {
            if let Ok(blocks) = serde_json::from_value::<Vec<ContentBlock>>(value) {
                message.content = UserContent::Blocks(blocks);
            }
        }
        Message::Assistant(message) => {
            if let Ok(blocks) = serde_json::from_value::<Vec<AssistantBlock>>(value) {
                message.content = blocks;
            }
        }
        Message::ToolResult(message) => {
            if let Ok(blocks) = serde_json::from_value::<Vec<ContentBlock>>(value) {
                Arc::make_mut(message).content = blocks;
            }
        }
        Message::System(_) => {}
    }
    Arc::new(message)
}

fn user(text: String, timestamp: Millis) -> Arc<Message> {
    let content = UserContent::Blocks(vec![ContentBlock::Text(Text::new(text))]);
    Arc::new(Message::User(UserMessage { content, timestamp, extra: Extra::new() }))
}

fn time(timestamp: &str) -> Millis {
    Millis(clock::parse_iso8601(timestamp).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries from `id: JSON fields` rows; each follows the one before.
    fn branch(rows: &[&str]) -> Vec<Arc<Entry>> {
        let mut parent = "null".to_owned();
        rows.iter()
            .map(|row| {
                let (id, fields) = row.split_once(": ").unwrap();
                let line = format!(
                    r#"{{"id":"{id}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.280Z",{fields}}}"#
                );
                parent = format!("\"{id}\"");
                Arc::new(Entry::parse(&line).unwrap())
            })
            .collect()
    }

    /// Role and text of each message.
    #[track_caller]
    fn check(rows: &[&str], expected: &[&str]) {
        let shown: Vec<String> = messages(&branch(rows))
            .iter()
            .map(|message| match &**message {
                Message::System(_) => "system".to_owned(),
                Message::User(message) => format!("user {}", message.content.text()),
                Message::Assistant(message) => format!("assistant {}", message.texts().collect::<String>()),
                Message::ToolResult(message) => format!("result {}", crate::ai::join_text(&message.content)),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    const SYSTEM: &str = r#"s: "type":"message","message":{"role":"system","content":"p"}"#;
    const ASK: &str = r#"u: "type":"message","message":{"role":"user","content":"ask"}"#;
    const ANSWER: &str = r#"a: "type":"message","message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"stopReason":"stop"}"#;
    const MORE: &str = r#"m: "type":"message","message":{"role":"user","content":"more"}"#;

    #[test]
    fn command_whose_saved_output_lacks_its_middle_says_so() {
        let told = |left_out: &str| {
            let row = format!(
                r#"b: "type":"message","message":{{"role":"bashExecution","command":"yes","output":"y","truncated":true,"fullOutputPath":"/tmp/a.log"{left_out}}}"#
            );
            messages(&branch(&[&row]))
                .iter()
                .map(|message| match &**message {
                    Message::User(message) => message.content.text().lines().last().unwrap().to_owned(),
                    message => panic!("{message:?}"),
                })
                .collect::<String>()
        };
        assert_eq!(told(""), "[Output truncated. Full output: /tmp/a.log]");
        let lacks = "[Output truncated. Output without 2.0KB in the middle: /tmp/a.log]";
        assert_eq!(told(r#","leftOutBytes":2048"#), lacks);
    }

    #[test]
    fn messages_pass_and_bookkeeping_does_not() {
        check(
            &[r#"x: "type":"model_change","provider":"p","modelId":"m""#, SYSTEM, ASK, ANSWER],
            &["system", "user ask", "assistant yes"],
        );
    }

    #[test]
    fn the_last_edit_of_a_target_wins() {
        check(&[ASK, ANSWER, r#"e: "type":"context_edit","targetId":"a","replacement":null"#], &["user ask"]);
        check(
            &[
                ASK,
                ANSWER,
                r#"e: "type":"context_edit","targetId":"a","replacement":null"#,
                r#"f: "type":"context_edit","targetId":"a","replacement":{"content":"no"}"#,
            ],
            &["user ask", "assistant no"],
        );
    }

    #[test]
    fn a_compaction_stands_for_what_it_does_not_keep() {
        // The store returns the branch from the first kept entry on.
        check(
            &[
                SYSTEM,
                ASK,
                r#"c: "type":"compaction","summary":"S","firstKeptEntryId":"u","tokensBefore":1"#,
                MORE,
            ],
            &[&format!("user {COMPACTION_LEAD}\n\n<summary>\nS\n</summary>"), "user ask", "user more"],
        );
    }

    #[test]
    fn the_model_reads_what_the_user_ran_unless_excluded() {
        check(
            &[
                r#"b: "type":"message","message":{"role":"bashExecution","command":"ls","output":"a\n","exitCode":2}"#,
                r#"d: "type":"message","message":{"role":"bashExecution","command":"pwd","output":"/","excludeFromContext":true}"#,
            ],
            &["user Ran `ls`\n```\na\n\n```\n\nCommand exited with code 2"],
        );
    }

    #[test]
    fn an_answer_selects_the_model_that_gave_it() {
        let rows = [
            r#"x: "type":"model_change","provider":"p","modelId":"m""#,
            r#"t: "type":"thinking_level_change","thinkingLevel":"high""#,
            r#"a: "type":"message","message":{"role":"assistant","content":[],"provider":"q","model":"n","stopReason":"stop"}"#,
        ];
        let expected =
            Selected { model: Some(("q".to_owned(), "n".to_owned())), thinking: Some(ThinkingLevel::High) };
        assert_eq!(selected(&branch(&rows)), expected);
    }

    #[test]
    fn an_answer_of_an_unknown_model_selects_nothing() {
        assert_eq!(selected(&branch(&[ANSWER])), Selected::default());
    }
}
