//! What a summary of a branch that is left is made from. Pure.

use std::sync::Arc;

use serde_json::Value;

use crate::ai::{Message, Millis, UserMessage};

use super::super::projection;
use super::super::store::{Entry, EntryBody};
use super::estimate::message_tokens;
use super::plan::Files;

/// The window of a model of which it is not known.
pub(super) const DEFAULT_WINDOW: u64 = 128_000;

/// The end of a branch, as far as it fits into a request.
#[derive(Debug, Clone)]
pub(in super::super) struct BranchPlan {
    /// Oldest first; never empty.
    pub(super) messages: Vec<Arc<Message>>,
    /// Of the whole branch.
    pub(super) files: Files,
}

impl BranchPlan {
    /// The lists of files, for the entry's `details`.
    pub(in super::super) fn details(&self) -> Value {
        self.files.details()
    }
}

/// Plans the summary of `entries`, the part of a branch that is left, for a model with a
/// window of `window` tokens of which `reserve` stay free. `None` if the model would read
/// nothing of it.
pub(in super::super) fn plan_branch(entries: &[Arc<Entry>], window: u64, reserve: u64) -> Option<BranchPlan> {
    let window = if window == 0 { DEFAULT_WINDOW } else { window };
    // Of a small window the reserve would leave nothing.
    let budget = window.saturating_sub(reserve).max(window / 2);
    let mut files = Files::default();
    let read = projection::per_entry(entries);
    let mut messages = Vec::new();
    let mut sum = 0_u64;
    let mut is_full = false;
    for (entry, message) in entries.iter().zip(read).rev() {
        let (message, is_summary) = match &entry.body {
            EntryBody::Compaction(compaction) => {
                files.add_details(compaction.details.as_ref(), compaction.from_hook);
                let text =
                    format!("Summary of the conversation before this point:\n\n{}", compaction.summary);
                let message = UserMessage::new(&text, Vec::new(), Millis(0));
                (Some(Arc::new(Message::User(message))), true)
            }
            EntryBody::BranchSummary(branch) => {
                files.add_details(branch.details.as_ref(), branch.from_hook);
                (message, true)
            }
            _ => (message, false),
        };
        let Some(message) = message else { continue };
        files.add_message(&message);
        // What a tool returned is in the answer that followed, as far as it mattered.
        if is_full || matches!(*message, Message::ToolResult(_) | Message::System(_)) {
            continue;
        }
        let tokens = message_tokens(&message);
        if sum.saturating_add(tokens) > budget {
            is_full = true;
            // A summary stands for much of what does not fit.
            if !is_summary || sum.saturating_mul(10) >= budget.saturating_mul(9) {
                continue;
            }
        }
        sum = sum.saturating_add(tokens);
        messages.push(message);
    }
    messages.reverse();
    (!messages.is_empty()).then_some(BranchPlan { messages, files })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Entries by letters: `u` a prompt, `a` an answer that calls `edit`, `r` its result,
    /// `h` hides the entry before, `s` a summary; texts have four tokens.
    fn branch(kinds: &str) -> Vec<Arc<Entry>> {
        let entries = kinds.chars().enumerate().map(|(at, kind)| {
            let text = format!("{at:02}{}", "x".repeat(14));
            let body = match kind {
                'u' => json!({"type": "message", "message": {"role": "user", "content": text}}),
                'a' => json!({"type": "message", "message": {"role": "assistant", "content": [
                    {"type": "text", "text": &text[..2]},
                    {"type": "toolCall", "id": "t", "name": "edit", "arguments": {"path": format!("f{at}")}}]}}),
                'r' => json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "t",
                    "toolName": "edit", "content": [{"type": "text", "text": text}], "isError": false}}),
                'h' => json!({"type": "context_edit", "targetId": format!("e{}", at - 1), "replacement": null}),
                's' => json!({"type": "branch_summary", "fromId": "x", "summary": text,
                    "details": {"readFiles": ["old"], "modifiedFiles": []}}),
                other => panic!("{other}"),
            };
            let mut line = json!({"id": format!("e{at}"), "parentId": null, "timestamp": ""});
            line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            Arc::new(Entry::parse(&line.to_string()).unwrap())
        });
        entries.collect()
    }

    /// The places of what is summarised.
    fn shown(kinds: &str, window: u64) -> String {
        let Some(plan) = plan_branch(&branch(kinds), window, 0) else { return "nothing".to_owned() };
        let places = plan.messages.iter().map(|message| match &**message {
            Message::User(user) => user.content.text().split("<summary>\n").last().unwrap()[..2].to_owned(),
            Message::Assistant(answer) => answer.texts().collect(),
            other => panic!("{other:?}"),
        });
        places.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn results_and_hidden_answers_are_left_out() {
        assert_eq!(shown("uaru", 0), "00 01 03");
        assert_eq!(shown("uahu", 0), "00 03");
        assert_eq!(shown("r", 0), "nothing");
        assert_eq!(shown("", 0), "nothing");
    }

    #[test]
    fn the_end_of_a_long_branch_is_summarised_and_the_files_of_all_of_it() {
        assert_eq!(shown("uuuu", 9), "02 03");
        let plan = plan_branch(&branch("saruu"), 9, 0).unwrap();
        assert_eq!(plan.details(), json!({"readFiles": ["old"], "modifiedFiles": ["f1"]}));
        // A summary may be the one thing too much, while there is some room.
        assert_eq!(shown("usuu", 12), "01 02 03");
        assert_eq!(shown("usuu", 8), "02 03");
        let reserved = plan_branch(&branch("uuuu"), 16, 16_384).unwrap();
        assert_eq!(reserved.messages.len(), 2, "half of a window that the reserve fills");
    }
}
