//! Tells the user when a service ignored reasoning that the conversation contains.
//!
//! The answer has a note about it; the decoder wrote it. Pure.

use std::sync::Arc;

use serde_json::Value;

use crate::ai::{AssistantMessage, Message};
use crate::util::counted;

/// The type of OpenAI's note.
const OPENAI: &str = "openai_input_transformations";

/// A notice about the reasoning that `answer` reports as dropped, if it is more than after the last
/// answer among `messages` that reports any.
pub(super) fn notice(answer: &AssistantMessage, messages: &[Arc<Message>]) -> Option<String> {
    let dropped = entries(answer);
    let earlier = messages.iter().rev().find_map(|message| match &**message {
        Message::Assistant(answer) => Some(entries(answer).len()).filter(|count| *count > 0),
        Message::System(_) | Message::User(_) | Message::ToolResult(_) => None,
    });
    if dropped.len() <= earlier.unwrap_or(0) {
        return None;
    }
    let mut reasons: Vec<&str> = Vec::new();
    for reason in dropped.iter().filter_map(|entry| entry["reason"].as_str()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    let count = counted(dropped.len() as u64, "reasoning item");
    Some(format!("OpenAI dropped {count}{reasons} (details in session)"))
}

fn entries(answer: &AssistantMessage) -> Vec<&Value> {
    let notes = answer.extra.get("diagnostics").and_then(Value::as_array);
    let ours = notes.into_iter().flatten().filter(|note| note["type"] == OPENAI);
    ours.filter_map(|note| note["details"]["transformations"].as_array()).flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ai::Api;

    fn answer(reasons: &[Option<&str>]) -> AssistantMessage {
        let entries: Vec<Value> =
            reasons.iter().map(|reason| json!({"type": "reasoning", "id": "rs", "reason": reason})).collect();
        let mut answer = AssistantMessage::builder(Api::OPENAI_RESPONSES, "openai", "m").text("a").build();
        let note = json!([{"type": OPENAI, "details": {"transformations": entries}}]);
        answer.extra.insert("diagnostics".to_owned(), note);
        answer
    }

    #[test]
    fn only_more_dropped_reasoning_than_before_is_told() {
        let check = |before: &[AssistantMessage], now: &AssistantMessage, expected: Option<&str>| {
            let before: Vec<Arc<Message>> =
                before.iter().map(|answer| Arc::new(answer.clone().into())).collect();
            assert_eq!(notice(now, &before).as_deref(), expected);
        };
        let one = answer(&[Some("prefix_mismatch")]);
        let three = answer(&[Some("prefix_mismatch"), Some("other_model"), Some("prefix_mismatch")]);
        let plain = AssistantMessage::builder(Api::OPENAI_RESPONSES, "openai", "m").text("a").build();
        let told = "OpenAI dropped 1 reasoning item: prefix_mismatch (details in session)";
        check(&[], &one, Some(told));
        check(std::slice::from_ref(&plain), &one, Some(told));
        check(&[one.clone(), plain.clone()], &one, None);
        check(
            std::slice::from_ref(&one),
            &three,
            Some("OpenAI dropped 3 reasoning items: prefix_mismatch, other_model (details in session)"),
        );
        check(&[], &answer(&[None]), Some("OpenAI dropped 1 reasoning item (details in session)"));
        check(&[], &plain, None);
    }
}
