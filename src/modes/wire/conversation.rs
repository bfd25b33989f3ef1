//! The messages of a session as the original lists them: also `!` commands, summaries and
//! messages of applications, each with a role of its own.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::session::{Compaction, Entry, EntryBody, EntryId, Replacement};
use crate::util::clock;

/// The messages of a branch, from the first entry its next request depends on.
pub(in crate::modes) fn conversation(branch: &[Arc<Entry>]) -> Vec<Value> {
    let edits = edits(branch);
    let message = |entry: &Arc<Entry>| match edits.get(&entry.id) {
        None => to_message(entry),
        Some(None) => None,
        Some(Some(replacement)) => to_message(entry).map(|mut message| {
            message["content"].clone_from(&replacement.content);
            message
        }),
    };
    let compaction = branch.iter().rposition(|entry| matches!(entry.body, EntryBody::Compaction(_)));
    let Some(at) = compaction else { return branch.iter().filter_map(message).collect() };
    let EntryBody::Compaction(compaction) = &branch[at].body else { return Vec::new() };
    // The summary comes before what it keeps.
    let kept = branch[..at].iter().filter_map(message).filter(|message| message["role"] != "system");
    let later = branch[at + 1..].iter().filter_map(message);
    summary(compaction, &branch[at].timestamp).into_iter().chain(kept).chain(later).collect()
}

fn summary(compaction: &Compaction, timestamp: &str) -> Vec<Value> {
    let system = compaction.system_message.as_ref().map(|system| {
        let mut message = json!({ "role": "system" });
        if let (Value::Object(message), Ok(Value::Object(fields))) =
            (&mut message, serde_json::to_value(system))
        {
            message.extend(fields);
        }
        message
    });
    let summary = json!({
        "role": "compactionSummary",
        "summary": compaction.summary,
        "tokensBefore": compaction.tokens_before,
        "timestamp": time(timestamp),
    });
    system.into_iter().chain([summary]).collect()
}

fn edits(branch: &[Arc<Entry>]) -> HashMap<&EntryId, Option<&Replacement>> {
    let edits = branch.iter().filter_map(|entry| match &entry.body {
        EntryBody::ContextEdit(edit) => Some((&edit.target_id, edit.replacement.as_ref())),
        _ => None,
    });
    edits.collect()
}

fn to_message(entry: &Entry) -> Option<Value> {
    match &entry.body {
        EntryBody::Message { .. } => entry.to_value().get_mut("message").map(Value::take),
        EntryBody::CustomMessage(custom) => {
            let mut message = json!({
                "role": "custom",
                "customType": custom.custom_type,
                "content": custom.content,
                "display": custom.display,
            });
            if let Some(details) = &custom.details {
                message["details"].clone_from(details);
            }
            message["timestamp"] = time(&entry.timestamp);
            Some(message)
        }
        EntryBody::BranchSummary(branch) => Some(json!({
            "role": "branchSummary",
            "summary": branch.summary,
            "fromId": branch.from_id,
            "timestamp": time(&entry.timestamp),
        })),
        _ => None,
    }
}

fn time(timestamp: &str) -> Value {
    clock::parse_iso8601(timestamp).unwrap_or_default().into()
}
