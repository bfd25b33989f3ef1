//! Changes of sessions that are not open: a new name, removal.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::util::disk::SystemDisk;

use super::super::sidecar;
use super::entry::{EntryBody, SessionInfo};
use super::lease::{Lease, LeaseOutcome};
use super::{JournalError, OpenError, SessionStore, clean_name, outline};

/// Why a session that is not open cannot be changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ManageError {
    #[error("the session is open in another pi (process {holder}); change it there")]
    Locked { holder: String },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot write the new name: {0}")]
    Write(#[from] JournalError),
    #[error("cannot delete {}: {source}", path.display())]
    Delete { path: std::path::PathBuf, source: io::Error },
}

/// What became of a deleted session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It can be restored from the system's trash.
    ToTrash,
    /// It is gone.
    Permanently,
}

/// Names the session in `path`; an empty name removes the name. `now_ms` is the time of the
/// entry. Blocks.
///
/// # Errors
/// If the file is no session, cannot be written, or is open in another process.
pub fn rename_session(path: &Path, name: &str, now_ms: u64) -> Result<(), ManageError> {
    if super::read_header(path).is_none() {
        return Err(OpenError::NotASession { path: path.to_owned() }.into());
    }
    let mut store = SessionStore::open(path, || unreachable!("the file has a header"))?;
    if let Some(holder) = store.locked_by() {
        return Err(ManageError::Locked { holder: holder.to_owned() });
    }
    let name = clean_name(name).unwrap_or_default();
    let info = SessionInfo { name, extra: serde_json::Map::new() };
    let (_, written) = store.append(EntryBody::SessionInfo(info), now_ms);
    Ok(written?)
}

/// Moves the session in `path` to the trash with the program `trash`, or deletes it if
/// there is no such program or it fails. Its queue, drafts and results are deleted. Blocks.
///
/// # Errors
/// If it cannot be deleted, or is open in another process.
pub fn delete_session(path: &Path, trash: &str) -> Result<Deleted, ManageError> {
    // Held until the file is gone.
    let lease = Lease::take(&SystemDisk, path);
    if let LeaseOutcome::Theirs { holder } = lease {
        return Err(ManageError::Locked { holder });
    }
    let mut command = Command::new(trash);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_trashed = command.status().is_ok_and(|status| status.success()) && !path.exists();
    if !is_trashed {
        let failed = |source| ManageError::Delete { path: path.to_owned(), source };
        fs::remove_file(path).map_err(failed)?;
    }
    for ending in sidecar::ENDINGS.into_iter().chain([outline::SUFFIX]) {
        if let Some(beside) = sidecar::path(Some(path), ending) {
            // Most sessions have none.
            drop(fs::remove_file(beside));
        }
    }
    drop(lease);
    Ok(if is_trashed { Deleted::ToTrash } else { Deleted::Permanently })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#;

    fn session() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, format!("{HEADER}\n")).unwrap();
        (folder, path)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn name_is_appended_and_an_open_session_is_left_alone() {
        let (folder, path) = session();
        rename_session(&path, "a\nb ", 0).unwrap();
        let open = SessionStore::open(&path, || unreachable!("it has a header")).unwrap();
        assert_eq!(open.name(), Some("a b"));
        let before = fs::read(&path).unwrap();
        let refused = |error: ManageError| assert!(matches!(error, ManageError::Locked { .. }), "{error}");
        refused(rename_session(&path, "c", 0).unwrap_err());
        refused(delete_session(&path, "no-such-program").unwrap_err());
        assert_eq!(fs::read(&path).unwrap(), before);
        drop(open);
        fs::write(&path, "").unwrap();
        assert!(matches!(
            rename_session(&path, "c", 0),
            Err(ManageError::Open(OpenError::NotASession { .. }))
        ));
        assert_eq!(names(folder.path()), ["s.jsonl"]);
    }

    #[test]
    fn deleted_session_takes_what_is_beside_it_along() {
        let (folder, path) = session();
        for beside in [".s.jsonl.draft", ".s.jsonl.outline"] {
            fs::write(folder.path().join(beside), "{}").unwrap();
        }
        fs::write(folder.path().join("other.jsonl"), HEADER).unwrap();
        assert_eq!(delete_session(&path, "no-such-program").unwrap(), Deleted::Permanently);
        assert_eq!(names(folder.path()), ["other.jsonl"]);
        let error = delete_session(&path, "no-such-program").unwrap_err();
        assert!(error.to_string().starts_with("cannot delete"), "{error}");
    }

    #[test]
    fn trash_is_used_where_there_is_one() {
        let (folder, path) = session();
        let trash = folder.path().join("trash");
        let script = |text: &str| {
            // A script that was just written cannot always be run at once; sh can read it.
            fs::write(&trash, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&trash, fs::Permissions::from_mode(0o700)).unwrap();
        };
        script("mv \"$1\" \"$1.trashed\"");
        assert_eq!(delete_session(&path, trash.to_str().unwrap()).unwrap(), Deleted::ToTrash);
        assert_eq!(names(folder.path()), ["s.jsonl.trashed", "trash"]);
        fs::write(&path, HEADER).unwrap();
        script("exit 1");
        assert_eq!(delete_session(&path, trash.to_str().unwrap()).unwrap(), Deleted::Permanently);
    }
}
