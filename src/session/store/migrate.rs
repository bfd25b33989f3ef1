//! Brings files of older formats to the current one.
//!
//! The new file is written beside the old one, synced and renamed over it;
//! lines that cannot be read are lost, only then.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use crate::util::atomic_file;

/// The format this version writes. Newer files are read as they are.
pub(super) const CURRENT_VERSION: u64 = 3;

/// Rewrites the file at `path` in the current format.
pub(super) fn migrate(path: &Path) -> io::Result<()> {
    migrate_to(path, path)
}

/// Writes the file at `path` in the current format to `target`.
pub(super) fn migrate_to(path: &Path, target: &Path) -> io::Result<()> {
    let reader = BufReader::new(File::open(path)?);
    let mut lines: Vec<Map<String, Value>> = Vec::new();
    for line in reader.split(b'\n') {
        if let Ok(Value::Object(fields)) = serde_json::from_slice(&line?) {
            lines.push(fields);
        }
    }
    let version = lines.first().and_then(|header| header.get("version")).and_then(Value::as_u64).unwrap_or(1);
    if version < 2 {
        to_version_2(&mut lines);
    }
    if version < 3 {
        to_version_3(&mut lines);
    }
    if let Some(header) = lines.first_mut() {
        header.insert("version".to_owned(), CURRENT_VERSION.into());
    }
    let text: String = lines.into_iter().map(|line| Value::Object(line).to_string() + "\n").collect();
    atomic_file::write(target, text.as_bytes())
}

/// Version 1 was a list: entries get ids and follow each other.
fn to_version_2(lines: &mut [Map<String, Value>]) {
    let mut parent = Value::Null;
    let mut ids = Vec::with_capacity(lines.len());
    ids.push(Value::Null);
    let mut taken = HashSet::new();
    for fields in lines.iter_mut().skip(1) {
        // Eight digits collide in long sessions.
        let mut id = short_id();
        while !taken.insert(id.clone()) {
            id = short_id();
        }
        let id = Value::from(id);
        fields.insert("id".to_owned(), id.clone());
        fields.insert("parentId".to_owned(), parent);
        parent = id.clone();
        ids.push(id);
    }
    for fields in lines.iter_mut().skip(1) {
        // An index into all lines, the header being line 0.
        if let Some(index) = fields.shift_remove("firstKeptEntryIndex") {
            let kept = index.as_u64().and_then(|index| ids.get(usize::try_from(index).ok()?));
            let kept = kept.filter(|id| id.is_string()).or_else(|| fields.get("id")).cloned();
            fields.insert("firstKeptEntryId".to_owned(), kept.unwrap_or_default());
        }
    }
}

fn short_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}

/// Version 2 called application messages `hookMessage`.
fn to_version_3(lines: &mut [Map<String, Value>]) {
    for fields in lines.iter_mut().skip(1) {
        if let Some(Value::Object(message)) = fields.get_mut("message")
            && message.get("role").and_then(Value::as_str) == Some("hookMessage")
        {
            message.insert("role".to_owned(), "custom".into());
        }
    }
}
