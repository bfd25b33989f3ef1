//! What takes the place of a summary that the model does not write: the words of the user and of the
//! model, cut to a size. Pure.

use std::sync::Arc;

use crate::ai::Message;

use super::plan::CompactionPlan;
use super::shorten::within;

/// Characters of one message in an excerpt.
const MESSAGE_CHARS: usize = 400;
/// Characters of an excerpt at most, in any window.
const MAX_CHARS: usize = 12_000;

/// An excerpt of the messages that `plan` removes, the latest ones if not all have room; `reason` is
/// why there is no summary.
pub(super) fn excerpt(plan: &CompactionPlan, reason: &str) -> String {
    let head = format!(
        "There is no summary of the beginning of this conversation: {reason}. It was cut off. \
         These are the latest words of it, shortened:"
    );
    let most = MAX_CHARS.min(plan.limits.summary_chars() / 2);
    let said = latest(plan.history.iter().chain(&plan.turn_prefix), most);
    let before = plan.previous_summary.as_deref().map(|summary| {
        let summary = within(summary.to_owned(), plan.limits.summary_chars() / 2);
        format!("{summary}\n\n---\n\n")
    });
    format!("{}{head}\n\n{}", before.unwrap_or_default(), said.join("\n\n"))
}

/// The texts of the last messages that have at most `most` characters together, at least one.
fn latest<'m>(messages: impl DoubleEndedIterator<Item = &'m Arc<Message>>, most: usize) -> Vec<String> {
    let mut sum = 0_usize;
    let texts = messages.rev().filter_map(|message| said(message));
    let mut texts: Vec<String> = texts
        .map(|text| within(text, MESSAGE_CHARS))
        .take_while(|text| {
            let is_first = sum == 0;
            sum = sum.saturating_add(text.chars().count());
            is_first || sum <= most
        })
        .collect();
    texts.reverse();
    texts
}

/// What the user or the model said.
fn said(message: &Message) -> Option<String> {
    let (role, text) = match message {
        Message::User(user) => ("User", user.content.text()),
        Message::Assistant(answer) => ("Assistant", answer.texts().collect::<Vec<_>>().join("\n")),
        Message::System(_) | Message::ToolResult(_) => return None,
    };
    let text = text.trim();
    (!text.is_empty()).then(|| format!("[{role}]: {text}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(rows: &[(&str, &str)]) -> Vec<Arc<Message>> {
        let message = |(role, text): &(&str, &str)| match *role {
            "user" => Message::User(serde_json::from_value(json!({"content": text})).unwrap()),
            _ => Message::Assistant(
                serde_json::from_value(json!({"content": [{"type": "text", "text": text}]})).unwrap(),
            ),
        };
        rows.iter().map(message).map(Arc::new).collect()
    }

    #[test]
    fn latest_messages_are_kept_and_long_ones_shortened() {
        let long = "x".repeat(1_000);
        let all = messages(&[("user", "first"), ("model", " "), ("model", "second"), ("user", &long)]);
        let texts = latest(all.iter(), 10_000);
        assert_eq!(texts[..2], ["[User]: first", "[Assistant]: second"]);
        assert!(texts[2].contains("characters omitted") && texts[2].chars().count() < 500, "{}", texts[2]);
        assert_eq!(latest(all.iter(), 450).len(), 2);
        assert_eq!(latest(all.iter(), 0).len(), 1);
        assert_eq!(latest([].iter(), 10), Vec::<String>::new());
    }
}
