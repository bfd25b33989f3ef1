//! Messages that the user pinned: a compaction keeps them word for word.
//!
//! A pin is a `custom` entry of type [`PIN`] with the id of its target; the last one for
//! a target applies. A compaction quotes the pinned messages it removes after its summary,
//! so other programs that read the file send them too.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::ai::{self, AssistantBlock, Extra, Message};

use super::compaction;
use super::projection;
use super::store::{CustomState, Entry, EntryBody, EntryId};

/// The type of the entries that pin a message.
const PIN: &str = "pi.pin";

/// The entry that pins `target`, or ends that.
pub(super) fn pin_entry(target: &EntryId, pinned: bool) -> EntryBody {
    EntryBody::Custom(CustomState {
        custom_type: PIN.to_owned(),
        data: json!({ "targetId": target, "pinned": pinned }),
        extra: Extra::new(),
    })
}

/// The ids of the pinned messages among `entries`, in the order in which they were pinned.
pub(super) fn pinned<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>) -> Vec<EntryId> {
    let mut pinned: Vec<EntryId> = Vec::new();
    for entry in entries {
        let EntryBody::Custom(CustomState { custom_type, data, .. }) = &entry.body else { continue };
        let target = data.get("targetId").and_then(Value::as_str);
        let (PIN, Some(target)) = (custom_type.as_str(), target) else { continue };
        pinned.retain(|id| id.as_str() != target);
        if data.get("pinned").and_then(Value::as_bool).unwrap_or(true) {
            pinned.push(EntryId::new(target));
        }
    }
    pinned
}

/// Quotes the pinned messages among the first `n_removed` entries of `branch`, which a
/// compaction removes; empty if there are none. They have about `max_chars` characters at most: if a
/// window is too small for the whole texts, it gets the beginning and the end of each.
pub(super) fn quotes(branch: &[Arc<Entry>], n_removed: usize, max_chars: usize) -> String {
    let pinned = pinned(branch);
    let removed = branch.iter().take(n_removed).filter(|entry| pinned.contains(&entry.id));
    let quoted: Vec<(&str, String)> = removed.filter_map(quoted).collect();
    if quoted.is_empty() {
        return String::new();
    }
    let sizes: Vec<usize> = quoted.iter().map(|(_, text)| text.chars().count()).collect();
    let share = compaction::largest_share(&sizes, max_chars);
    let quotes = quoted.into_iter().map(|(role, text)| {
        let text = compaction::within(text, share);
        format!("<message from=\"{role}\">\n{text}\n</message>\n")
    });
    let quotes: String = quotes.collect();
    format!(
        "\n\n<pinned-messages>\nThe user pinned these messages, which are quoted word for word.\n\
         {quotes}</pinned-messages>"
    )
}

/// Who wrote a message, and its text.
fn quoted(entry: &Arc<Entry>) -> Option<(&'static str, String)> {
    let message = projection::per_entry(std::slice::from_ref(entry)).pop()??;
    match &*message {
        Message::User(message) => Some(("user", message.content.text())),
        Message::Assistant(answer) => Some(("assistant", answer_text(&answer.content))),
        Message::ToolResult(result) => Some(("tool", ai::join_text(&result.content))),
        Message::System(_) => None,
    }
}

fn answer_text(blocks: &[AssistantBlock]) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| match block {
            AssistantBlock::Text(text) => Some(text.text.clone()),
            AssistantBlock::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments)),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(body: EntryBody, id: &str) -> Arc<Entry> {
        let line = match body {
            EntryBody::Custom(custom) => json!({"type": "custom", "customType": custom.custom_type,
                "data": custom.data, "id": id, "parentId": null, "timestamp": "T"}),
            _ => json!({"type": "message", "id": id, "parentId": null, "timestamp": "T",
                "message": {"role": "user", "content": format!("text of {id}")}}),
        };
        Arc::new(Entry::parse(&line.to_string()).unwrap())
    }

    #[test]
    fn the_last_pin_of_a_message_applies() {
        let pin = |id: &str, target: &str, pinned| entry(pin_entry(&EntryId::new(target), pinned), id);
        let ids = |entries: &[Arc<Entry>]| -> Vec<String> {
            pinned(entries).iter().map(ToString::to_string).collect()
        };
        assert_eq!(ids(&[pin("1", "a", true), pin("2", "b", true)]), ["a", "b"]);
        assert_eq!(ids(&[pin("1", "a", true), pin("2", "b", true), pin("3", "a", false)]), ["b"]);
        assert_eq!(ids(&[pin("1", "a", false), pin("2", "a", true)]), ["a"]);
        assert_eq!(ids(&[]), Vec::<String>::new());
    }
}
