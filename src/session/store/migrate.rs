//! Migrates files of older formats to the current one.
//!
//! The old file is copied; the new one is written beside it, synced and renamed over
//! it. Unreadable lines keep their position.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::util::atomic_file;
use crate::util::disk::Disk;

/// The format this version writes. Newer files are read without migration.
pub(super) const CURRENT_VERSION: u64 = 3;

/// Rewrites the file at `path`, which has the format `version`, in the current
/// format. Returns the copy of the old file.
pub(super) fn migrate(disk: &dyn Disk, path: &Path, version: u64) -> io::Result<PathBuf> {
    let target = atomic_file::follow_links(path)?;
    let backup = back_up(disk, &target, version)?;
    migrate_to(disk, path, &target).inspect_err(|_| drop(disk.remove(&backup)))?;
    Ok(backup)
}

/// Copies the file to one beside it: `NAME.v1-backup`, or the next free name.
fn back_up(disk: &dyn Disk, path: &Path, version: u64) -> io::Result<PathBuf> {
    let backups = (1_u64..).map(|n| {
        let number = if n == 1 { String::new() } else { format!("-{n}") };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".v{version}-backup{number}"));
        path.with_file_name(name)
    });
    let mut old = File::open(path)?;
    atomic_file::create_new(disk, backups, |out| io::copy(&mut old, out)).map(|(backup, _)| backup)
}

/// A line of the old file.
enum Line {
    Entry(Map<String, Value>),
    /// Not a JSON object; kept unchanged.
    Damaged(Vec<u8>),
}

/// Writes the file at `path` in the current format to `target`.
pub(super) fn migrate_to(disk: &dyn Disk, path: &Path, target: &Path) -> io::Result<()> {
    let reader = BufReader::new(File::open(path)?);
    let mut lines: Vec<Line> = Vec::new();
    for line in reader.split(b'\n') {
        let line = line?;
        match serde_json::from_slice(&line) {
            Ok(Value::Object(fields)) => lines.push(Line::Entry(fields)),
            _ => lines.push(Line::Damaged(line)),
        }
    }
    let mut entries: Vec<&mut Map<String, Value>> = lines
        .iter_mut()
        .filter_map(|line| match line {
            Line::Entry(fields) => Some(fields),
            Line::Damaged(_) => None,
        })
        .collect();
    let version =
        entries.first().and_then(|header| header.get("version")).and_then(Value::as_u64).unwrap_or(1);
    if version < 2 {
        to_version_2(&mut entries);
    }
    if version < 3 {
        to_version_3(&mut entries);
    }
    if let Some(header) = entries.first_mut() {
        header.insert("version".to_owned(), CURRENT_VERSION.into());
    }
    let mut bytes = Vec::new();
    for line in lines {
        match line {
            Line::Entry(fields) => bytes.extend_from_slice(Value::Object(fields).to_string().as_bytes()),
            Line::Damaged(line) => bytes.extend_from_slice(&line),
        }
        bytes.push(b'\n');
    }
    atomic_file::write_on(disk, target, &bytes)
}

/// Version 1 was a list: entries get ids and follow each other. An entry that has both, because
/// only the header lost its version, keeps them.
fn to_version_2(lines: &mut [&mut Map<String, Value>]) {
    let mut parent = Value::Null;
    let mut ids = Vec::with_capacity(lines.len());
    ids.push(Value::Null);
    let mut taken = HashSet::new();
    for fields in lines.iter_mut().skip(1) {
        let own = fields.get("id").filter(|id| id.is_string() && fields.contains_key("parentId")).cloned();
        let id = own.unwrap_or_else(|| {
            // Eight digits collide in long sessions.
            let mut id = short_id();
            while !taken.insert(id.clone()) {
                id = short_id();
            }
            let id = Value::from(id);
            fields.insert("id".to_owned(), id.clone());
            fields.insert("parentId".to_owned(), parent.take());
            id
        });
        parent = id.clone();
        ids.push(id);
    }
    for fields in lines.iter_mut().skip(1) {
        // An index into all lines; the header is line 0.
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
fn to_version_3(lines: &mut [&mut Map<String, Value>]) {
    for fields in lines.iter_mut().skip(1) {
        if let Some(Value::Object(message)) = fields.get_mut("message")
            && message.get("role").and_then(Value::as_str) == Some("hookMessage")
        {
            message.insert("role".to_owned(), "custom".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::util::disk::SystemDisk;

    #[test]
    fn entries_that_have_ids_keep_them_where_only_the_header_lost_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let header = json!({"type": "session", "vession": 3, "id": "s", "cwd": "/"});
        let first = json!({"type": "model_change", "id": "a", "parentId": null});
        let second = json!({"type": "model_change", "id": "b", "parentId": "a"});
        // Of another branch.
        let third = json!({"type": "model_change", "id": "c", "parentId": "a"});
        let old = json!({"type": "model_change"});
        std::fs::write(&path, format!("{header}\n{first}\n{second}\n{third}\n{old}\n")).unwrap();
        migrate_to(&SystemDisk, &path, &path).unwrap();
        let migrated = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = migrated.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["version"], CURRENT_VERSION);
        assert_eq!(lines[1..4], [first, second, third]);
        assert_eq!((lines[4]["parentId"].as_str(), lines[4]["id"].is_string()), (Some("c"), true));
    }
}
