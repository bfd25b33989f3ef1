//! Entries that wait for the end of a run: the results of `!` commands, which must
//! not come between a tool call and its result.
//!
//! They are shown at once, so they are also stored at once: as lines of a file
//! beside the session, which is removed after they have been appended. Entries left in
//! it are appended when the session is opened. An entry keeps its id, so a
//! crash between the two steps duplicates nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::util::clock;

use super::sidecar;
use super::store::{Entry, EntryBody, EntryId};

/// The waiting entries of one session, oldest first.
#[derive(Debug, Default)]
pub(super) struct DeferredEntries {
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
    entries: Vec<Entry>,
}

impl DeferredEntries {
    /// The entries beside the session at `session`. Blocks, briefly.
    pub(super) fn open(session: Option<&Path>) -> Self {
        let path = sidecar::path(session, ".deferred");
        let text = path.as_deref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        // The last line may be incomplete; its command had not been shown as finished.
        let entries = text.lines().filter_map(|line| Entry::parse(line).ok()).collect();
        Self { path, entries }
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        let path = sidecar::path(session, ".deferred");
        if let (Some(old), Some(new)) = (&self.path, &path) {
            // Entries that cannot be moved are in memory as well.
            drop(fs::rename(old, new));
        }
        self.path = path;
    }

    /// Adds an entry. Blocks, briefly.
    ///
    /// # Errors
    /// If the file cannot be written; the entry is then only in memory.
    pub(super) fn push(&mut self, body: EntryBody, now_ms: u64) -> io::Result<()> {
        let id = EntryId::new(&uuid::Uuid::new_v4().simple().to_string()[..8]);
        let entry = Entry { id, parent_id: None, timestamp: clock::iso8601(now_ms), body };
        let line = entry.to_line() + "\n";
        self.entries.push(entry);
        let Some(path) = &self.path else { return Ok(()) };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(line.as_bytes())
    }

    /// Removes and returns all entries. They stay on disk until [`Self::forget`].
    pub(super) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Removes the file, once its entries have been appended. Blocks, briefly.
    pub(super) fn forget(&self) {
        if let Some(path) = &self.path {
            // If the file stays, it is read again, and its entries are recognised by their ids.
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::store::SessionInfo;

    fn named(name: &str) -> EntryBody {
        EntryBody::SessionInfo(SessionInfo { name: name.to_owned(), extra: crate::ai::Extra::new() })
    }

    #[test]
    fn entries_come_back_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let mut deferred = DeferredEntries::open(Some(&session));
        deferred.push(named("a"), 0).unwrap();
        deferred.push(named("b"), 0).unwrap();
        let pushed = deferred.take();

        // Torn by a crash.
        let path = folder.path().join(".s.jsonl.deferred");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"type\":\"sess")).unwrap();
        let mut next = DeferredEntries::open(Some(&session));
        assert_eq!(next.take(), pushed);
        next.forget();
        assert!(!path.exists());
        assert!(DeferredEntries::open(Some(&session)).take().is_empty());
    }
}
