//! The requests for summaries. Pure.

use std::sync::Arc;

use serde_json::Value;

use crate::ai::{AssistantBlock, Message, join_text};

/// The part of a tool result that the summary is based on.
const RESULT_LIMIT_CHARS: usize = 2_000;

pub(super) const SYSTEM: &str = "You summarise a conversation between a user and a coding agent, so that another \
     model can continue the work from the summary alone. Do not continue the conversation and do not answer \
     questions in it. Write only the summary.";

const FIRST: &str = "Summarise the conversation above under exactly these headings:

## Goal
What the user wants. Several goals if there are several.

## Constraints & Preferences
Requirements, conventions and wishes the user stated, or \"none\".

## Progress
### Done
- [x] finished work
### In Progress
- [ ] work under way
### Blocked
- what prevents progress, if anything

## Key Decisions
- **decision**: its reason, and what was rejected

## Next Steps
1. what comes next, in order

## Critical Context
- facts needed to continue, or \"none\"

Be brief. Keep file paths, function names and error messages exactly as they are.";

const UPDATE: &str = "The messages above came after the summary in <previous-summary>. Write the summary anew so that \
     it covers both, under the same headings. Keep what still matters, add what is new, move finished work from \
     In Progress to Done, bring Next Steps up to date and drop what no longer applies. Keep file paths, function \
     names and error messages exactly as they are.";

const PREFIX: &str =
    "The messages above are the beginning of a turn that was too long to keep. Its end stays in the \
     conversation as it is. Summarise the beginning under exactly these headings:

## Original Request
What the user asked for in this turn.

## Progress So Far
- decisions and work of the beginning

## Context Needed to Continue
- what the end of the turn builds on

Be brief, and keep names exactly as they are.";

const BRANCH: &str =
    "The conversation above is a branch that the user leaves to continue elsewhere. Summarise it \
     under exactly these headings:

## Goal
What the user wanted on this branch.

## Constraints & Preferences
- requirements and preferences the user stated, or \"none\"

## Progress
### Done
- [x] finished work
### In Progress
- [ ] work that was begun
### Blocked
- what prevented progress, if anything

## Key Decisions
- **decision**: its reason

## Next Steps
1. what would come next on this branch

Be brief. Keep file paths, function names and error messages exactly as they are.";

const HANDOFF: &str = "The user continues in a new session, whose agent knows nothing of the conversation above. Write \
     the first message of that session, as the user would write it, under exactly these headings:

## Goal
The goal, in the user's words, and what counts as done.

## Context
- facts of the conversation that matter for this goal

## Decisions
- **decision**: its reason, and the ways that were tried or rejected

## Files
- `path`: why to read or change it

## Next Step
The first thing to do.

Leave out everything that does not matter for the goal. Keep file paths, function names and error messages exactly \
     as they are.";

const PREFIX_UPDATE: &str = "The messages above come after those that <previous-summary> is about; together they are the \
     beginning of a turn that was too long to keep. Write the summary anew so that it covers both, under the same \
     headings. Be brief, and keep names exactly as they are.";

/// The part of a conversation that a summary is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// Whole turns.
    Turns,
    /// The beginning of the turn whose end is kept.
    TurnPrefix,
}

/// The request to draft the first prompt of a session that works on `goal`.
pub(super) fn handoff(conversation: &[String], goal: &str) -> String {
    format!("{}\n\n{HANDOFF}\n\nThe goal: {goal}", quoted(conversation))
}

/// The request for the summary of a branch.
pub(super) fn branch(conversation: &[String], focus: Option<&str>) -> String {
    format!("{}\n\n{BRANCH}{}", quoted(conversation), focused(focus))
}

/// The request to summarise `conversation`, which follows what the summary `previous` is about.
pub(super) fn summary(
    subject: Subject,
    conversation: &[String],
    previous: Option<&str>,
    focus: Option<&str>,
) -> String {
    let instructions = match (subject, previous) {
        (Subject::Turns, None) => FIRST,
        (Subject::Turns, Some(_)) => UPDATE,
        (Subject::TurnPrefix, None) => PREFIX,
        (Subject::TurnPrefix, Some(_)) => PREFIX_UPDATE,
    };
    let previous = previous
        .map(|previous| format!("\n\n<previous-summary>\n{previous}\n</previous-summary>"))
        .unwrap_or_default();
    format!("{}{previous}\n\n{instructions}{}", quoted(conversation), focused(focus))
}

fn focused(focus: Option<&str>) -> String {
    focus.map(|focus| format!("\n\nAdditional focus: {focus}")).unwrap_or_default()
}

fn quoted(conversation: &[String]) -> String {
    format!("<conversation>\n{}\n</conversation>", conversation.join("\n\n"))
}

/// The texts of messages, without those that have none.
pub(super) fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| serialised(message).join("\n\n")).filter(|text| !text.is_empty()).collect()
}

/// A message as text; thinking and system messages are left out.
fn serialised(message: &Message) -> Vec<String> {
    match message {
        Message::System(_) => Vec::new(),
        Message::User(user) => labelled("User", &user.content.text()),
        Message::Assistant(answer) => {
            let mut parts = labelled("Assistant", &answer.texts().collect::<Vec<_>>().join("\n"));
            let calls: Vec<String> = answer.content.iter().filter_map(call).collect();
            parts.extend(labelled("Assistant tool calls", &calls.join("; ")));
            parts
        }
        Message::ToolResult(result) => labelled("Tool result", &shortened(&join_text(&result.content))),
    }
}

fn labelled(label: &str, text: &str) -> Vec<String> {
    if text.trim().is_empty() { Vec::new() } else { vec![format!("[{label}]: {text}")] }
}

/// `edit(path="a.rs", edits=[…])`.
fn call(block: &AssistantBlock) -> Option<String> {
    let AssistantBlock::ToolCall(call) = block else { return None };
    let arguments: Vec<String> = match &*call.sent_arguments() {
        Value::Object(fields) => fields.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        other => vec![other.to_string()],
    };
    Some(format!("{}({})", call.name, arguments.join(", ")))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(RESULT_LIMIT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let n_more = text[end..].chars().count();
            format!("{}\n[{n_more} more characters omitted]", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(message: Value, expected: &[&str]) {
        let message: Message = match message["role"].as_str() {
            Some("user") => Message::User(serde_json::from_value(message).unwrap()),
            Some("assistant") => Message::Assistant(serde_json::from_value(message).unwrap()),
            _ => Message::ToolResult(Arc::new(serde_json::from_value(message).unwrap())),
        };
        assert_eq!(serialised(&message), expected);
    }

    #[test]
    fn messages_become_text_without_thinking() {
        check(json!({"role": "user", "content": "hi"}), &["[User]: hi"]);
        check(
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a", "limit": 3}},
                {"type": "toolCall", "id": "d", "name": "ls", "arguments": {}}]}),
            &["[Assistant]: I look.", "[Assistant tool calls]: read(path=\"a\", limit=3); ls()"],
        );
        let long = "ü".repeat(2_003);
        let shown = format!("[Tool result]: {}\n[3 more characters omitted]", "ü".repeat(2_000));
        check(
            json!({"toolCallId": "c", "toolName": "read", "isError": false,
                "content": [{"type": "text", "text": long}]}),
            &[&shown],
        );
        check(json!({"role": "assistant", "content": []}), &[]);
    }
}
