//! Deletes messages from the trace.
//!
//! Deleting appends a tombstone, an entry of the kind `custom`, which the model and the
//! original ignore: the file keeps the message, and every trace leaves it out together
//! with its steps. Purging rewrites the file without the message's lines.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::ai::Extra;
use crate::util::atomic_file;

use super::super::open::new_header;
use super::super::store::{CustomState, EntryBody, EntryId, JournalError, OpenError, SessionStore};
use super::message::{Trace, TracedMessage};

/// `customType` of a tombstone.
const TOMBSTONE: &str = "pi.trace-tombstone";

/// Why a message was not deleted; the file is unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DeleteError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the session has no message {id}; list messages with pi trace")]
    Unknown { id: EntryId },
    #[error("the message {id} has changed: its version is {current}, not {expected}; look at it again")]
    Stale { id: EntryId, expected: u64, current: u64 },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot rewrite the session: {0}")]
    Rewrite(#[from] io::Error),
}

/// Hides the message `id` and its steps from traces of the session in `path`, by an
/// appended entry. `version` is the version of the message that the caller has seen; `None`
/// deletes any version. Blocks.
///
/// # Errors
/// If the session cannot be opened for writing, has no such message, or the message has
/// changed.
///
/// ```
/// use pi::session::{DeleteError, delete_message, read_trace};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("s.jsonl");
/// # std::fs::copy("tests/fixtures/sessions/tools3.jsonl", &path).unwrap();
/// let message = read_trace(&path)?.messages.pop().unwrap();
/// let stale = delete_message(&path, &message.id, Some(message.version + 1), 0);
/// assert!(matches!(stale, Err(DeleteError::Stale { .. })));
/// delete_message(&path, &message.id, Some(message.version), 0)?;
/// assert_eq!(read_trace(&path)?.message(&message.id), None);
/// # Ok::<(), DeleteError>(())
/// ```
pub fn delete_message(
    path: &Path,
    id: &EntryId,
    version: Option<u64>,
    now_ms: u64,
) -> Result<(), DeleteError> {
    let (mut store, message) = open(path, id, version, now_ms)?;
    let data = json!({ "messageId": message.id.as_str(), "version": message.version });
    let body =
        EntryBody::Custom(CustomState { custom_type: TOMBSTONE.to_owned(), data, extra: Extra::new() });
    store.append(body, now_ms).1?;
    Ok(())
}

/// Rewrites the session in `path` without the lines of the message `id` and its steps, and
/// without labels and edits of them. Entries below them move up to the nearest remaining
/// entry. `version` is as in [`delete_message`]. Blocks.
///
/// # Errors
/// As [`delete_message`], and if the file cannot be rewritten; it is then unchanged.
pub fn purge_message(
    path: &Path,
    id: &EntryId,
    version: Option<u64>,
    now_ms: u64,
) -> Result<(), DeleteError> {
    // Keeps the lease while the file is rewritten.
    let (_store, message) = open(path, id, version, now_ms)?;
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let rewritten = without_entries(&text, &message.entries);
    atomic_file::write_private(path, rewritten.as_bytes())?;
    Ok(())
}

/// The message that an entry deletes, if the entry is a tombstone.
pub(super) fn deleted_message(body: &EntryBody) -> Option<EntryId> {
    let EntryBody::Custom(state) = body else { return None };
    let id = state.data.get("messageId").filter(|_| state.custom_type == TOMBSTONE)?;
    Some(EntryId::new(id.as_str()?))
}

fn open(
    path: &Path,
    id: &EntryId,
    version: Option<u64>,
    now_ms: u64,
) -> Result<(SessionStore, TracedMessage), DeleteError> {
    let cwd = path.parent().unwrap_or(Path::new("."));
    let mut store = SessionStore::open(path, || new_header(cwd, now_ms))?;
    if let Some(holder) = store.locked_by() {
        return Err(JournalError::Locked { holder: holder.to_owned() }.into());
    }
    let trace = Trace::of(&store.branch(0));
    let Some(message) = trace.message(id) else { return Err(DeleteError::Unknown { id: id.clone() }) };
    if let Some(expected) = version.filter(|version| *version != message.version) {
        return Err(DeleteError::Stale { id: id.clone(), expected, current: message.version });
    }
    let message = message.clone();
    Ok((store, message))
}

/// The text of a session file without the lines of `entries`.
fn without_entries(text: &str, entries: &[EntryId]) -> String {
    let lines: Vec<(&str, Option<Map<String, Value>>)> =
        text.split_inclusive('\n').map(|line| (line, serde_json::from_str(line).ok())).collect();
    let mut removed: HashSet<String> = entries.iter().map(|id| id.as_str().to_owned()).collect();
    let mut parents: HashMap<String, Option<String>> = HashMap::new();
    let mut order: Vec<String> = Vec::new();
    for fields in lines.iter().filter_map(|(_, fields)| fields.as_ref()) {
        let Some(id) = text_of(fields, "id") else { continue };
        if text_of(fields, "targetId").is_some_and(|target| removed.contains(target))
            || is_tombstone_of(fields, &removed)
        {
            removed.insert(id.to_owned());
        }
        parents.insert(id.to_owned(), text_of(fields, "parentId").map(str::to_owned));
        order.push(id.to_owned());
    }
    let surviving_parent = |mut id: Option<String>| {
        // Damaged files may contain cycles.
        for _ in 0..=parents.len() {
            match id {
                Some(parent) if removed.contains(&parent) => id = parents.get(&parent).cloned().flatten(),
                other => return other,
            }
        }
        None
    };
    let next_surviving = |id: &str| {
        let at = order.iter().position(|other| other == id)?;
        order[at..].iter().find(|other| !removed.contains(*other)).cloned()
    };
    let mut out = String::with_capacity(text.len());
    for (line, fields) in lines {
        let Some(mut fields) = fields else {
            out.push_str(line);
            continue;
        };
        if text_of(&fields, "id").is_some_and(|id| removed.contains(id)) {
            continue;
        }
        let parent = text_of(&fields, "parentId").filter(|id| removed.contains(*id)).map(str::to_owned);
        let kept = text_of(&fields, "firstKeptEntryId").filter(|id| removed.contains(*id)).map(str::to_owned);
        if parent.is_none() && kept.is_none() {
            out.push_str(line);
            continue;
        }
        if parent.is_some() {
            fields.insert("parentId".to_owned(), surviving_parent(parent).map_or(Value::Null, Value::from));
        }
        if let Some(kept) = kept {
            fields.insert("firstKeptEntryId".to_owned(), next_surviving(&kept).unwrap_or_default().into());
        }
        out.push_str(&Value::Object(fields).to_string());
        out.push('\n');
    }
    out
}

fn is_tombstone_of(fields: &Map<String, Value>, removed: &HashSet<String>) -> bool {
    text_of(fields, "customType") == Some(TOMBSTONE)
        && fields
            .get("data")
            .and_then(|data| data.get("messageId"))
            .and_then(Value::as_str)
            .is_some_and(|id| removed.contains(id))
}

fn text_of<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}
