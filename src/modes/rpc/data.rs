//! The data of responses, from snapshots and trees.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::ai::{Message, Model, StopReason};
use crate::session::{
    BashExecution, Entry, EntryBody, EntryKind, Phase, PromptTemplate, ResourceOrigin, SessionMessage,
    SessionState, SessionTree, Skill,
};
use crate::util::clock;

/// A model without the values of its headers, which may be keys.
pub(super) fn model(model: &Model) -> Value {
    let is_reference = |value: &String| value.starts_with('!') || value.contains('$');
    let mut model = Model::clone(model);
    for value in model.headers.values_mut().filter(|value| !is_reference(value)) {
        "…".clone_into(value);
    }
    serde_json::to_value(model).unwrap_or_default()
}

/// `get_state`; the session has `n_messages`.
pub(super) fn state(state: &SessionState, n_messages: usize) -> Value {
    let values = &state.settings.values;
    let mut data = json!({
        "model": model(&state.model),
        "thinkingLevel": state.thinking,
        "isStreaming": matches!(state.phase, Phase::Running | Phase::Retrying),
        "isCompacting": state.phase == Phase::Compacting,
        "steeringMode": values.steering_mode.name(),
        "followUpMode": values.follow_up_mode.name(),
    });
    identify(&mut data, state);
    if let Some(name) = &state.name {
        data["sessionName"] = name.as_str().into();
    }
    data["autoCompactionEnabled"] = values.compaction.enabled.into();
    data["messageCount"] = n_messages.into();
    data["pendingMessageCount"] = (state.queue.steering.len() + state.queue.follow_up.len()).into();
    data
}

fn identify(data: &mut Value, state: &SessionState) {
    if let Some(path) = &state.path {
        data["sessionFile"] = path.to_string_lossy().into();
    }
    data["sessionId"] = state.id.as_str().into();
}

/// `get_session_stats`: counts, tokens and cost of the whole file. `estimate` is about the next
/// request. Reads all answers; blocks.
pub(super) fn stats(state: &SessionState, tree: &SessionTree, estimate: Option<u64>) -> Value {
    let kinds = || tree.entries().map(|entry| entry.kind);
    let n_of = |wanted: EntryKind| kinds().filter(|kind| *kind == wanted).count();
    let n_calls = |idx: usize| match &tree.read(idx)?.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::Assistant(answer) => Some(answer.tool_calls().count()),
            _ => None,
        },
        _ => None,
    };
    let answers = (0..tree.len()).filter(|idx| tree.entry(*idx).kind == EntryKind::Assistant);
    let totals = &state.totals;
    let total = [totals.input, totals.output, totals.cache_read, totals.cache_write]
        .into_iter()
        .fold(0, u64::saturating_add);
    let mut data = json!({});
    identify(&mut data, state);
    let n_messages = kinds().filter(|kind| is_stored_message(*kind)).count();
    data["userMessages"] = n_of(EntryKind::User).into();
    data["assistantMessages"] = n_of(EntryKind::Assistant).into();
    data["toolCalls"] = answers.filter_map(n_calls).sum::<usize>().into();
    data["toolResults"] = n_of(EntryKind::ToolResult).into();
    data["totalMessages"] = n_messages.into();
    data["tokens"] = json!({
        "input": totals.input,
        "output": totals.output,
        "cacheRead": totals.cache_read,
        "cacheWrite": totals.cache_write,
        "total": total,
    });
    data["cost"] = number(totals.cost_usd);
    let is_compacted =
        tree.path(tree.leaf()).iter().any(|idx| tree.entry(*idx).kind == EntryKind::Compaction);
    let tokens = match (state.context.tokens, n_messages) {
        (Some(tokens), _) => Some(tokens),
        (None, 0) => Some(0),
        // As in the original, whose clients show a question mark until the next answer.
        (None, _) => estimate.filter(|_| !is_compacted),
    };
    data["contextUsage"] = context(state.context.window, tokens);
    data
}

/// Whether the entry is of the type `message`.
fn is_stored_message(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::System
            | EntryKind::User
            | EntryKind::Assistant
            | EntryKind::ToolResult
            | EntryKind::Bash
            | EntryKind::OtherMessage
    )
}

fn context(window: u64, tokens: Option<u64>) -> Value {
    let percent = tokens.filter(|_| window > 0).map(|tokens| number(tokens as f64 / window as f64 * 100.0));
    json!({ "tokens": tokens, "contextWindow": window, "percent": percent })
}

/// A whole number without a decimal point, as JavaScript writes it.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}

/// The number of messages in the conversation that ends at the leaf. Reads few entries; blocks.
pub(super) fn n_messages(tree: &SessionTree) -> usize {
    let path = tree.path(tree.leaf());
    let kind = |idx: &usize| tree.entry(*idx).kind;
    let compaction = path.iter().rposition(|idx| kind(idx) == EntryKind::Compaction);
    let mut n_summary = 0;
    let mut range = &path[..];
    let mut n_system_before = 0;
    if let Some(at) = compaction
        && let Some(entry) = tree.read(path[at])
        && let EntryBody::Compaction(compaction) = &entry.body
    {
        let kept = path[..at]
            .iter()
            .position(|idx| tree.entry(*idx).id.as_str() == compaction.first_kept_entry_id)
            .unwrap_or(at);
        range = &path[kept..];
        n_system_before = path[kept..at].iter().filter(|idx| kind(idx) == EntryKind::System).count();
        n_summary = 1 + usize::from(compaction.system_message.is_some());
    }
    let n_hidden = range
        .iter()
        .filter(|idx| kind(idx) == EntryKind::ContextEdit)
        .filter_map(|idx| tree.read(*idx))
        .filter(|entry| matches!(&entry.body, EntryBody::ContextEdit(edit) if edit.replacement.is_none()))
        .count();
    let is_message = |kind: EntryKind| {
        is_stored_message(kind) || matches!(kind, EntryKind::BranchSummary | EntryKind::CustomMessage)
    };
    let n_all = range.iter().filter(|idx| is_message(kind(idx))).count();
    (n_all + n_summary).saturating_sub(n_system_before + n_hidden)
}

/// `get_entries`, as text: all entries, or those after `since`. Blocks.
///
/// # Errors
/// If there is no entry `since`.
pub(super) fn entries(tree: &SessionTree, since: Option<&str>) -> Result<String, String> {
    let start = match since {
        None => 0,
        Some(since) => {
            let at = tree.entries().position(|entry| entry.id.as_str() == since);
            at.ok_or_else(|| format!("Entry not found: {since}"))? + 1
        }
    };
    let mut data = r#"{"entries":["#.to_owned();
    let mut is_first = true;
    for entry in (start..tree.len()).filter_map(|idx| tree.read(idx)) {
        if !std::mem::take(&mut is_first) {
            data.push(',');
        }
        data.push_str(&entry.to_line());
    }
    end_with_leaf(&mut data, tree);
    Ok(data)
}

fn push_all(text: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| text.push_str(part));
}

fn end_with_leaf(data: &mut String, tree: &SessionTree) {
    push_all(data, &[r#"],"leafId":"#, &leaf_id(tree).to_string(), "}"]);
}

fn leaf_id(tree: &SessionTree) -> Value {
    tree.leaf().map(|leaf| Value::from(tree.entry(leaf).id.as_str())).unwrap_or_default()
}

/// `get_tree`, as text, because its depth is that of the conversation. Blocks.
pub(super) fn tree(tree: &SessionTree) -> String {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.len()];
    let mut roots = Vec::new();
    for (idx, entry) in tree.entries().enumerate() {
        match entry.parent {
            Some(parent) => children[parent].push(idx),
            None => roots.push(idx),
        }
    }
    let labels = tree.labels();
    let mut data = r#"{"tree":["#.to_owned();
    // What is still to be written, the next last.
    let mut todo: Vec<Step> = siblings(&roots);
    while let Some(step) = todo.pop() {
        match step {
            Step::Text(text) => data.push_str(text),
            Step::End(idx) => {
                data.push(']');
                if let Some(label) = labels.get(&idx) {
                    let at = clock::iso8601(label.at_ms);
                    let (text, at) = (Value::from(label.text.as_str()), Value::from(at));
                    push_all(
                        &mut data,
                        &[r#","label":"#, &text.to_string(), r#","labelTimestamp":"#, &at.to_string()],
                    );
                }
                data.push('}');
            }
            Step::Begin(idx) => {
                let line = tree.read(idx).map_or_else(|| "null".to_owned(), |entry| entry.to_line());
                push_all(&mut data, &[r#"{"entry":"#, &line, r#","children":["#]);
                todo.push(Step::End(idx));
                todo.extend(siblings(&children[idx]));
            }
        }
    }
    end_with_leaf(&mut data, tree);
    data
}

enum Step {
    Text(&'static str),
    Begin(usize),
    End(usize),
}

/// Writes these entries, the first one last in the list.
fn siblings(entries: &[usize]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(entries.len() * 2);
    for (nth, idx) in entries.iter().enumerate().rev() {
        steps.push(Step::Begin(*idx));
        if nth > 0 {
            steps.push(Step::Text(","));
        }
    }
    steps
}

/// `get_fork_messages`. Blocks.
pub(super) fn fork_messages(tree: &SessionTree) -> Value {
    let users = (0..tree.len()).filter(|idx| tree.entry(*idx).kind == EntryKind::User);
    let messages: Vec<Value> = users
        .filter_map(|idx| tree.read(idx))
        .filter_map(|entry| match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::User(user) => Some(json!({ "entryId": entry.id, "text": user.content.text() })),
                _ => None,
            },
            _ => None,
        })
        .collect();
    json!({ "messages": messages })
}

/// `get_last_assistant_text`.
pub(super) fn last_text(branch: &[Arc<Entry>]) -> Value {
    let text = branch.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::Assistant(answer) => {
                let text = Some(answer.texts().collect::<String>()).filter(|text| !text.is_empty());
                // A normal end without text is the last answer, too.
                (text.is_some() || answer.stop_reason == StopReason::Stop).then_some(text)
            }
            _ => None,
        },
        _ => None,
    });
    json!({ "text": text.flatten() })
}

/// `bash`.
pub(super) fn bash(execution: &BashExecution) -> Value {
    let mut data = json!({ "output": execution.output });
    if let Some(code) = execution.exit_code {
        data["exitCode"] = code.into();
    }
    data["cancelled"] = execution.cancelled.into();
    data["truncated"] = execution.truncated.into();
    if let Some(path) = &execution.full_output_path {
        data["fullOutputPath"] = path.as_str().into();
    }
    if let Some(n_bytes) = execution.left_out_bytes {
        data["leftOutBytes"] = n_bytes.into();
    }
    data
}

/// `get_commands`.
pub(super) fn commands(templates: &[PromptTemplate], skills: &[Skill]) -> Value {
    let templates = templates.iter().map(|template| {
        json!({
            "name": template.name,
            "description": template.description,
            "source": "prompt",
            "sourceInfo": source(&template.path, template.origin),
        })
    });
    let skills = skills.iter().map(|skill| {
        json!({
            "name": format!("skill:{}", skill.name),
            "description": skill.description,
            "source": "skill",
            "sourceInfo": source(&skill.path, skill.origin),
        })
    });
    json!({ "commands": templates.chain(skills).collect::<Vec<Value>>() })
}

fn source(path: &Path, origin: ResourceOrigin) -> Value {
    let scope = match origin {
        ResourceOrigin::User => "user",
        ResourceOrigin::Project => "project",
        ResourceOrigin::CommandLine => "temporary",
    };
    json!({
        "path": path.to_string_lossy(),
        "source": "local",
        "scope": scope,
        "origin": "top-level",
        "baseDir": path.parent().map(|folder| folder.to_string_lossy()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the last of these answers: text and reason for which each stopped.
    #[track_caller]
    fn check_last_text(answers: &[(&str, &str)], expected: Value) {
        let entry = |(text, stop): &(&str, &str)| {
            let content = if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
            let message = json!({"role": "assistant", "content": content, "stopReason": stop});
            let entry =
                json!({"type": "message", "id": "a", "parentId": null, "timestamp": "T", "message": message});
            Arc::new(Entry::parse(&entry.to_string()).unwrap())
        };
        let branch: Vec<Arc<Entry>> = answers.iter().map(entry).collect();
        assert_eq!(last_text(&branch), json!({ "text": expected }));
    }

    #[test]
    fn last_text_is_of_the_last_answer_with_text_or_normal_end() {
        check_last_text(&[], Value::Null);
        check_last_text(&[("one", "stop"), ("", "aborted"), ("", "error"), ("", "toolUse")], json!("one"));
        check_last_text(&[("one", "stop"), ("half", "aborted")], json!("half"));
        check_last_text(&[("one", "stop"), ("", "stop")], Value::Null);
    }
}
