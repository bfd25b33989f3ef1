//! What the tree says about an entry. Reads bodies, so it blocks; the result is a line.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::ai::{self, AssistantBlock, AssistantMessage, Message, StopReason, ToolCall, UserContent};
use crate::session::{Entry, EntryBody, EntryKind, SessionMessage, SessionTree, SkillBlock};
use crate::tui::theme::Token;

use super::super::footer::tokens_short;

/// Most characters of an entry that are shown.
const MAX_CHARS: usize = 300;

/// The line of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct EntryText {
    /// Who speaks, if somebody does.
    pub(super) speaker: Option<(&'static str, Token)>,
    pub(super) text: String,
    pub(super) tone: Token,
}

impl EntryText {
    fn said(speaker: &'static str, token: Token, text: &str) -> Self {
        Self { speaker: Some((speaker, token)), text: one_line(text), tone: Token::Text }
    }

    fn note(text: impl AsRef<str>) -> Self {
        Self { speaker: None, text: one_line(text.as_ref()), tone: Token::Muted }
    }

    /// The line as it is searched.
    fn plain(&self) -> String {
        match self.speaker {
            Some((speaker, _)) => format!("{speaker}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

/// The line of the entry at `idx`. Blocks.
pub(super) fn describe(tree: &SessionTree, idx: usize) -> EntryText {
    match tree.read(idx) {
        Some(entry) => describe_entry(&entry, || called_by(tree, idx, &entry)),
        None => EntryText { speaker: None, text: "[cannot be read]".to_owned(), tone: Token::Error },
    }
}

fn describe_entry(entry: &Entry, call: impl FnOnce() -> Option<String>) -> EntryText {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(user) => {
                let text = user.content.text();
                let typed = SkillBlock::parse(&text).map(|block| block.command());
                EntryText::said("user", Token::Accent, &typed.unwrap_or(text))
            }
            Message::Assistant(answer) => describe_answer(answer),
            Message::ToolResult(result) => {
                let text = call().unwrap_or_else(|| result.tool_name.clone());
                let tone = if result.is_error { Token::Error } else { Token::Muted };
                EntryText { tone, ..EntryText::note(format!("[{text}]")) }
            }
            Message::System(_) => EntryText::note("[system]"),
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            let mark = if execution.exclude_from_context == Some(true) { "!!" } else { "!" };
            EntryText { tone: Token::BashMode, ..EntryText::note(format!("{mark}{}", execution.command)) }
        }
        EntryBody::Message { message: SessionMessage::Unknown(message), .. } => {
            let mut fields = message.clone();
            let role = fields.as_object_mut().and_then(|fields| fields.remove("role"));
            data_note(role.as_ref().and_then(Value::as_str).unwrap_or("message"), &fields)
        }
        EntryBody::ModelChange(change) => EntryText::note(format!("[model: {}]", change.model_id)),
        EntryBody::ThinkingLevelChange(change) => {
            EntryText::note(format!("[thinking: {}]", change.thinking_level))
        }
        EntryBody::Usage(_) => EntryText::note("[usage]"),
        EntryBody::Compaction(compaction) => {
            let text = format!("[compaction: {} tokens]", tokens_short(compaction.tokens_before));
            EntryText { tone: Token::CustomMessageLabel, ..EntryText::note(text) }
        }
        EntryBody::BranchSummary(branch) => {
            let text = format!("[branch summary]: {}", without_lead(&branch.summary));
            EntryText { tone: Token::CustomMessageLabel, ..EntryText::note(text) }
        }
        EntryBody::ContextEdit(edit) if edit.replacement.is_none() => {
            EntryText::note("[hidden from the model]")
        }
        EntryBody::ContextEdit(_) => EntryText::note("[replaced for the model]"),
        EntryBody::Custom(custom) => data_note(&custom.custom_type, &custom.data),
        EntryBody::CustomMessage(message) => {
            let text = message.content.as_ref().map(UserContent::text).unwrap_or_default();
            EntryText::note(format!("[{}]: {text}", message.custom_type))
        }
        EntryBody::Label(label) => {
            EntryText::note(format!("[label: {}]", label.label.as_deref().unwrap_or("(removed)")))
        }
        EntryBody::SessionInfo(info) if info.name.is_empty() => EntryText::note("[name removed]"),
        EntryBody::SessionInfo(info) => EntryText::note(format!("[name: {}]", info.name)),
        EntryBody::Unknown { kind, fields } => data_note(kind, fields),
    }
}

/// An entry whose form only an extension knows, or a newer pi.
fn data_note(kind: &str, data: &impl Serialize) -> EntryText {
    match json_text(data, serde_json::to_string) {
        json if json.is_empty() => EntryText::note(format!("[{kind}]")),
        json => EntryText::note(format!("[{kind}]: {json}")),
    }
}

/// Data as JSON; empty if there is none.
fn json_text<T: Serialize>(data: &T, write: fn(&T) -> serde_json::Result<String>) -> String {
    write(data).ok().filter(|json| json != "null" && json != "{}").unwrap_or_default()
}

fn describe_answer(answer: &AssistantMessage) -> EntryText {
    let text = answer.texts().collect::<Vec<_>>().join(" ");
    let shown = match (answer.stop_reason, text.trim()) {
        (StopReason::Aborted, "") => "(aborted)".to_owned(),
        (StopReason::Aborted, text) => format!("{text} (aborted)"),
        (StopReason::Error, _) => {
            let error = answer.error_message.as_deref().unwrap_or("the request failed");
            let said = EntryText::said("assistant", Token::Success, error);
            return EntryText { tone: Token::Error, ..said };
        }
        (_, "") if answer.tool_calls().next().is_some() => {
            // As its results are shown when they come.
            let calls: Vec<String> = answer.tool_calls().map(call_text).collect();
            return EntryText::note(format!("[{}]", calls.join(", ")));
        }
        (_, "") => "(no content)".to_owned(),
        (_, text) => text.to_owned(),
    };
    EntryText::said("assistant", Token::Success, &shown)
}

/// The call that a result answers, in short: `bash: cargo test`.
fn called_by(tree: &SessionTree, idx: usize, entry: &Entry) -> Option<String> {
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body else { return None };
    let Message::ToolResult(result) = &**message else { return None };
    let answer = tree.read(answer_of(tree, idx)?)?;
    calls(&answer).remove(&result.tool_call_id)
}

/// The answer whose calls an entry belongs to.
fn answer_of(tree: &SessionTree, idx: usize) -> Option<usize> {
    let above = |idx: usize| tree.entry(idx).parent;
    let mut way = std::iter::successors(above(idx), |idx| above(*idx));
    way.find(|idx| tree.entry(*idx).kind == EntryKind::Assistant)
}

/// What each call of an answer is, in short.
fn calls(entry: &Entry) -> HashMap<String, String> {
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body else {
        return HashMap::new();
    };
    let Message::Assistant(answer) = &**message else { return HashMap::new() };
    let calls = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::ToolCall(call) => Some((call.id.clone(), call_text(call))),
        _ => None,
    });
    calls.collect()
}

/// `bash: cargo test`, `read: src/main.rs:10-30`, `grep: /todo/ in src`.
fn call_text(call: &ToolCall) -> String {
    let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    let number = |key: &str| call.arguments.get(key).and_then(Value::as_u64);
    let what = match (call.name.as_str(), text("path")) {
        ("bash", _) => text("command").unwrap_or_default().to_owned(),
        ("read", Some(path)) => match (number("offset"), number("limit")) {
            (None, None) => path.to_owned(),
            (from, None) => format!("{path}:{}", from.unwrap_or(1)),
            (from, Some(n)) => {
                let from = from.unwrap_or(1);
                format!("{path}:{from}-{}", from.saturating_add(n).saturating_sub(1))
            }
        },
        ("grep" | "find", path) => {
            let pattern = text("pattern").unwrap_or_default();
            path.map_or_else(|| pattern.to_owned(), |path| format!("{pattern} in {path}"))
        }
        (_, Some(path)) => path.to_owned(),
        (_, None) => call.arguments.to_string(),
    };
    let what: String = one_line(&what).chars().take(80).collect();
    format!("{}: {what}", call.name)
}

/// A summary without the sentence that introduces it.
fn without_lead(summary: &str) -> &str {
    match summary.split_once("\n\n") {
        Some((lead, rest)) if lead.trim_end().ends_with(':') => rest,
        _ => summary,
    }
}

fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split_whitespace() {
        let room = MAX_CHARS.saturating_sub(n_chars);
        if room < 2 {
            break;
        }
        if n_chars > 0 {
            line.push(' ');
            n_chars += 1;
        }
        let taken: String = word.chars().take(room).collect();
        n_chars += taken.chars().count();
        line.push_str(&taken);
    }
    line
}

/// The whole text of an entry, for the clipboard. Blocks.
pub(super) fn whole(tree: &SessionTree, idx: usize) -> Option<String> {
    let entry = tree.read(idx)?;
    let text = match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(user) => user.content.text(),
            Message::Assistant(answer) => answer.texts().map(str::trim).collect::<Vec<_>>().join("\n\n"),
            Message::ToolResult(result) => ai::join_text(&result.content),
            Message::System(_) => String::new(),
        },
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            execution.output.clone()
        }
        EntryBody::Compaction(compaction) => compaction.summary.clone(),
        EntryBody::BranchSummary(branch) => branch.summary.clone(),
        EntryBody::CustomMessage(message) => {
            message.content.as_ref().map(UserContent::text).unwrap_or_default()
        }
        EntryBody::Custom(custom) => json_text(&custom.data, serde_json::to_string_pretty),
        EntryBody::Unknown { fields, .. } => json_text(fields, serde_json::to_string_pretty),
        EntryBody::Message { message: SessionMessage::Unknown(message), .. } => {
            json_text(message, serde_json::to_string_pretty)
        }
        _ => String::new(),
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The entries from the number `from` on, and those that they label, in which all words of `query` occur: in the
/// line that is shown, in the label, or in the text behind it. Reads all bodies; stops early if `is_stale`.
pub(super) fn search(
    (tree, from): (&SessionTree, usize),
    query: &str,
    is_stale: &dyn Fn() -> bool,
) -> Option<Vec<usize>> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    // Stored text is escaped: only words that escaping leaves alone can be looked for in it.
    let is_plain = |word: &&String| !word.contains(['"', '\\']);
    let plain: Vec<&String> = words.iter().filter(is_plain).collect();
    let mut calls_above: Option<(usize, HashMap<String, String>)> = None;
    let mut found = Vec::new();
    let labels = tree.labels();
    let newly = if from > 0 { tree.labels_since(from) } else { HashMap::new() };
    let mut labelled: Vec<usize> = newly.into_keys().filter(|idx| *idx < from).collect();
    labelled.sort_unstable();
    for idx in labelled.into_iter().chain(from..tree.len()) {
        if idx % 64 == 0 && is_stale() {
            return None;
        }
        let head = tree.entry(idx);
        let label = labels.get(&idx).map(|label| label.text.to_lowercase()).unwrap_or_default();
        let Some(line) = tree.line(idx) else { continue };
        let mut call = String::new();
        if head.kind == EntryKind::ToolResult
            && let Some(answer) = answer_of(tree, idx)
        {
            if calls_above.as_ref().is_none_or(|(at, _)| *at != answer) {
                calls_above =
                    Some((answer, tree.read(answer).map(|entry| calls(&entry)).unwrap_or_default()));
            }
            call = calls_above
                .iter()
                .flat_map(|(_, calls)| calls.values())
                .map(|call| call.to_lowercase())
                .collect();
        }
        let stored = line.to_lowercase();
        let kind = speaker(head.kind);
        let beside = [&*call, &*label, kind];
        if !plain
            .iter()
            .all(|word| stored.contains(*word) || beside.iter().any(|text| text.contains(word.as_str())))
        {
            continue;
        }
        let text = format!("{}\n{}", describe(tree, idx).plain(), whole(tree, idx).unwrap_or_default());
        let text = [&*text.to_lowercase(), "\n", &label].concat();
        if words.iter().all(|word| text.contains(word)) {
            found.push(idx);
        }
    }
    Some(found)
}

/// Words of a line that are not in the file.
fn speaker(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Compaction => "[compaction: tokens]",
        EntryKind::BranchSummary => "[branch summary]:",
        EntryKind::ContextEdit => "[hidden replaced for the model]",
        EntryKind::SessionInfo => "[name: removed]",
        EntryKind::ModelChange => "[model:",
        EntryKind::ThinkingLevelChange => "[thinking:",
        EntryKind::Label => "[label: (removed)]",
        EntryKind::User => "user:",
        EntryKind::Assistant => "assistant: (aborted) (no content)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::tree_of;
    use super::*;

    #[track_caller]
    fn check(body: Value, expected: &str) {
        let mut line = json!({"id": "x", "parentId": null, "timestamp": ""});
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert_eq!(describe(&tree_of(&[line.to_string()]), 0).plain(), expected, "{body}");
    }

    fn message(message: Value) -> Value {
        json!({"type": "message", "message": message})
    }

    #[test]
    fn each_kind_of_entry_has_a_line() {
        check(message(json!({"role": "user", "content": "one\n  two"})), "user: one two");
        let answer = |text: &str, stop: &str| {
            message(
                json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": stop,
                "errorMessage": "no network"}),
            )
        };
        check(answer("fine", "stop"), "assistant: fine");
        check(answer("half", "aborted"), "assistant: half (aborted)");
        check(answer("", "aborted"), "assistant: (aborted)");
        check(answer("half", "error"), "assistant: no network");
        check(answer(" ", "stop"), "assistant: (no content)");
        let call = |command: &str| json!({"type": "toolCall", "id": command, "name": "bash", "arguments": {"command": command}});
        let calls =
            json!({"role": "assistant", "content": [call("ls"), call("pwd")], "stopReason": "toolUse"});
        check(message(calls), "[bash: ls, bash: pwd]");
        check(
            message(json!({"role": "bashExecution", "command": "ls -l", "excludeFromContext": true})),
            "!!ls -l",
        );
        check(message(json!({"role": "oracle", "says": "yes"})), "[oracle]: {\"says\":\"yes\"}");
        check(
            json!({"type": "compaction", "summary": "S", "tokensBefore": 111_616}),
            "[compaction: 112k tokens]",
        );
        check(
            json!({"type": "branch_summary", "summary": "Back again.\nSummary of it:\n\n## Goal\nA goal"}),
            "[branch summary]: ## Goal A goal",
        );
        check(json!({"type": "model_change", "provider": "p", "modelId": "m-1"}), "[model: m-1]");
        check(json!({"type": "label", "targetId": "a"}), "[label: (removed)]");
        check(json!({"type": "session_info", "name": "N"}), "[name: N]");
        check(json!({"type": "novel"}), "[novel]");
        check(json!({"type": "novel", "at": 1}), "[novel]: {\"at\":1}");
        check(json!({"type": "custom", "customType": "ext"}), "[ext]");
        check(json!({"type": "custom", "customType": "ext", "data": {"n": 1}}), "[ext]: {\"n\":1}");
        check(
            message(json!({"role": "user", "content": "x".repeat(500)})),
            &format!("user: {}", "x".repeat(300)),
        );
    }

    #[test]
    fn data_of_extensions_and_newer_versions_can_be_copied() {
        let body = |body: Value| {
            let mut line = json!({"id": "x", "parentId": null, "timestamp": ""});
            line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            tree_of(&[line.to_string()])
        };
        let data = json!({"n": 1, "text": "two words"});
        for stored in [
            json!({"type": "custom", "customType": "ext", "data": data}),
            json!({"type": "novel", "n": 1, "text": "two words"}),
        ] {
            let tree = body(stored);
            let whole: Value = serde_json::from_str(&whole(&tree, 0).unwrap()).unwrap();
            assert_eq!(whole, data);
            assert_eq!(search((&tree, 0), "words two", &|| false).unwrap(), [0]);
        }
        assert_eq!(whole(&body(json!({"type": "novel"})), 0), None);
    }

    #[test]
    fn results_are_named_by_their_calls() {
        let call = |name: &str, arguments: Value| {
            let line = json!({"type": "message", "id": "a", "parentId": null, "timestamp": "", "message":
                {"role": "assistant", "content": [{"type": "toolCall", "id": "t", "name": name, "arguments": arguments}]}});
            let result = json!({"type": "message", "id": "b", "parentId": "a", "timestamp": "", "message":
                {"role": "toolResult", "toolCallId": "t", "toolName": name, "content": [], "isError": false}});
            describe(&tree_of(&[line.to_string(), result.to_string()]), 1).plain()
        };
        assert_eq!(call("bash", json!({"command": "cargo\n test"})), "[bash: cargo test]");
        assert_eq!(call("read", json!({"path": "a.rs"})), "[read: a.rs]");
        assert_eq!(call("read", json!({"path": "a.rs", "offset": 10, "limit": 5})), "[read: a.rs:10-14]");
        assert_eq!(call("grep", json!({"pattern": "todo", "path": "src"})), "[grep: todo in src]");
        assert_eq!(call("edit", json!({"path": "a.rs", "edits": []})), "[edit: a.rs]");
        assert_eq!(call("other", json!({"n": 1})), "[other: {\"n\":1}]");
    }

    #[test]
    fn labels_are_looked_for_with_the_line_they_stand_in() {
        let entry = |id: &str, kind: &str, rest: Value| {
            let mut line = json!({"type": kind, "id": id, "parentId": null, "timestamp": ""});
            line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            line.to_string()
        };
        let said = |text: &str| json!({"message": {"role": "user", "content": text}});
        let named = |target: &str, label: Value| json!({"targetId": target, "label": label});
        let tree = tree_of(&[
            entry("a", "message", said("hello one")),
            entry("b", "message", said("hello two")),
            entry("c", "label", named("a", json!("Zebra"))),
            entry("d", "label", named("b", json!("zebra"))),
            entry("e", "label", named("b", json!(null))),
        ]);
        let found = |query: &str, from: usize| {
            let found = search((&tree, from), query, &|| false).unwrap();
            found.into_iter().filter(|idx| *idx < 2).collect::<Vec<_>>()
        };
        assert_eq!(found("zebra", 0), [0]);
        assert_eq!(found("zebra hello", 0), [0]);
        assert_eq!(found("zebra", 2), [0], "labels that arrived later");
        assert_eq!(found("zebra", 3), [0_usize; 0]);
    }

    #[test]
    fn all_words_are_looked_for_in_texts_and_calls() {
        let line = |id: &str, parent: Value, message: Value| {
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message})
                .to_string()
        };
        let tree = tree_of(&[
            line("a", json!(null), json!({"role": "user", "content": "Fix the \"Parser\" of grüne Äpfel"})),
            line(
                "b",
                json!("a"),
                json!({"role": "assistant", "content": [
                {"type": "toolCall", "id": "t", "name": "bash", "arguments": {"command": "cargo test"}}]}),
            ),
            line(
                "c",
                json!("b"),
                json!({"role": "toolResult", "toolCallId": "t", "toolName": "bash",
                "content": [{"type": "text", "text": "thread panicked"}], "isError": false}),
            ),
            line(
                "d",
                json!("c"),
                json!({"role": "assistant", "content": [{"type": "text", "text": "It failed."}]}),
            ),
        ]);
        let found = |query: &str| search((&tree, 0), query, &|| false).unwrap();
        assert_eq!(found("fix parser"), [0]);
        assert_eq!(found("\"parser\""), [0]);
        assert_eq!(found("GRÜNE äpfel"), [0]);
        assert_eq!(found("cargo test"), [1, 2], "the call and its result");
        assert_eq!(found("cargo panicked"), [2]);
        assert_eq!(found("assistant failed"), [3]);
        assert_eq!(found("toolcallid"), [0_usize; 0], "names of fields are no text");
        assert_eq!(search((&tree, 0), "fix", &|| true), None);
    }
}
