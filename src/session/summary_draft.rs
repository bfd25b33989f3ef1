//! A summary that waits for the user's decision, in memory and in a file beside the
//! session.
//!
//! Until the user accepts it, the conversation is unchanged. The file is replaced as a
//! whole when the user changes the text, so a draft survives the end of the process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ai::Usage;
use crate::util::atomic_file;
use crate::util::disk::Disk;
use crate::util::os;

use super::sidecar;
use super::store::{Entry, EntryBody, EntryId};

/// Ending of the file's name.
pub(super) const SUFFIX: &str = ".summary";

/// A complete summary that replaces nothing yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryDraft {
    /// The summary as the user may change it. Quotes of pinned messages are added when it
    /// takes effect.
    pub text: String,
    /// The first entry that stays word for word.
    pub first_kept_entry_id: String,
    /// Tokens of the conversation before the compaction.
    pub tokens_before: u64,
    /// Number of messages that the summary replaces.
    pub n_replaced: usize,
    /// The model that wrote it, as `provider/id`.
    pub model: String,
    /// The usage of its requests.
    pub usage: Usage,
    /// The lists of files, for the entry.
    pub(super) details: Value,
    /// The latest compaction of the branch when the summary was written.
    #[serde(default)]
    pub(super) after: Option<EntryId>,
}

impl SummaryDraft {
    /// Whether it still describes what comes before the kept part of `branch`: the user may
    /// have gone to another branch, or compacted the conversation in the meantime.
    pub(super) fn fits(&self, branch: &[Arc<Entry>]) -> bool {
        latest_compaction(branch) == self.after.as_ref() && self.first_kept(branch).is_some()
    }

    /// Index of the first kept entry in `branch`.
    pub(super) fn first_kept(&self, branch: &[Arc<Entry>]) -> Option<usize> {
        branch.iter().position(|entry| entry.id.as_str() == self.first_kept_entry_id)
    }
}

/// The id of the latest compaction of `branch`.
pub(super) fn latest_compaction(branch: &[Arc<Entry>]) -> Option<&EntryId> {
    branch.iter().rfind(|entry| matches!(entry.body, EntryBody::Compaction(_))).map(|entry| &entry.id)
}

/// The file of the draft of one session.
#[derive(Debug)]
pub(super) struct SummaryFile {
    disk: Arc<dyn Disk>,
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
}

impl SummaryFile {
    /// The file beside the session at `session`, and the draft it contains. Blocks, briefly.
    pub(super) fn open(disk: &Arc<dyn Disk>, session: Option<&Path>) -> (Self, Option<SummaryDraft>) {
        let path = sidecar::path(session, SUFFIX);
        let read = path.as_deref().and_then(|path| {
            serde_json::from_slice(&os::read_regular(path, sidecar::LIMIT_BYTES).ok()?).ok()
        });
        (Self { disk: Arc::clone(disk), path }, read)
    }

    /// Replaces the stored draft; `None` removes it. Blocks, briefly.
    ///
    /// # Errors
    /// If the file cannot be written or removed; it keeps the previous draft then.
    pub(super) fn save(&self, draft: Option<&SummaryDraft>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        match draft {
            Some(draft) => atomic_file::write_private_on(&*self.disk, path, &serde_json::to_vec(draft)?),
            None => sidecar::remove(&*self.disk, path),
        }
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        let path = sidecar::path(session, SUFFIX);
        if let (Some(old), Some(new)) = (&self.path, &path) {
            // There may be no draft; the next change writes it again.
            drop(self.disk.rename(old, new));
        }
        self.path = path;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::util::disk::SystemDisk;

    use super::*;

    fn disk() -> Arc<dyn Disk> {
        Arc::new(SystemDisk)
    }

    fn draft() -> SummaryDraft {
        serde_json::from_value(
            json!({"text": "S", "firstKeptEntryId": "b", "tokensBefore": 9, "nReplaced": 2,
            "model": "p/m", "usage": {}, "details": {}, "after": null}),
        )
        .unwrap()
    }

    #[test]
    fn summary_fits_the_branch_it_was_written_for_and_its_continuations() {
        let entry = |id: &str, kind: &str| {
            let body = match kind {
                "compaction" => json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "a",
                    "tokensBefore": 1}),
                _ => json!({"type": "message", "message": {"role": "user", "content": "x"}}),
            };
            let mut line = json!({"id": id, "parentId": null, "timestamp": ""});
            line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            Arc::new(Entry::parse(&line.to_string()).unwrap())
        };
        let check = |entries: &[(&str, &str)], after: Option<&str>, expected: bool| {
            let branch: Vec<_> = entries.iter().map(|(id, kind)| entry(id, kind)).collect();
            let draft = SummaryDraft { after: after.map(EntryId::new), ..draft() };
            assert_eq!(draft.fits(&branch), expected, "{entries:?} after {after:?}");
        };
        check(&[("a", "user"), ("b", "user")], None, true);
        check(&[("a", "user"), ("b", "user"), ("c", "user")], None, true);
        check(&[("a", "user"), ("x", "user")], None, false);
        check(&[("a", "user"), ("b", "user"), ("c", "compaction")], None, false);
        check(&[("a", "user"), ("c", "compaction"), ("b", "user")], Some("c"), true);
        check(&[("a", "user"), ("b", "user")], Some("c"), false);
    }

    #[test]
    fn stored_draft_is_read_back_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        let (file, none) = SummaryFile::open(&disk(), Some(&session));
        assert_eq!(none, None);
        file.save(Some(&draft())).unwrap();
        assert_eq!(SummaryFile::open(&disk(), Some(&session)).1, Some(draft()));
        file.save(None).unwrap();
        file.save(None).unwrap();
        assert_eq!(SummaryFile::open(&disk(), Some(&session)).1, None);
        std::fs::write(folder.path().join(".s.jsonl.summary"), "{\"text\": 3").unwrap();
        assert_eq!(SummaryFile::open(&disk(), Some(&session)).1, None, "a damaged file is no draft");
        SummaryFile::open(&disk(), None).0.save(Some(&draft())).unwrap();
    }
}
