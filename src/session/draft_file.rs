//! The user's draft on disk, beside the session: it survives every way the
//! program can end.
//!
//! The file is replaced as a whole when the editor changes, and removed when the
//! editor is empty. The draft of a session without messages has no session
//! file beside it; the next new session in the same directory adopts it, unless the
//! process that wrote it is still alive and holds its lock.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::util::atomic_file;
use crate::util::disk::Disk;
use crate::util::os;

use super::command::PromptDraft;
use super::{sidecar, store};

const SUFFIX: &str = ".draft";

/// Content of the file.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Stored {
    /// Where the session works, for drafts without a session.
    #[serde(default)]
    cwd: PathBuf,
    #[serde(flatten)]
    draft: PromptDraft,
    /// Messages of the queue file that are also in the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    holds: Vec<PromptDraft>,
}

/// The draft file of one session.
#[derive(Debug)]
pub(super) struct DraftFile {
    disk: Arc<dyn Disk>,
    /// `None` for a session that is not saved.
    path: Option<PathBuf>,
    cwd: PathBuf,
    recovered: Option<Stored>,
    /// Draft files that this one replaces once it is written.
    replaces: Vec<PathBuf>,
    /// Held from the first draft until the session has a file of its own.
    lock: Option<DraftLock>,
    /// What could not be read, for the user.
    problem: Option<String>,
}

/// Marks the writer of a draft as alive; removed when the writer exits.
#[derive(Debug)]
struct DraftLock {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _file: File,
}

impl DraftFile {
    /// The file beside the session at `session`, which works in `cwd`. Blocks, briefly.
    pub(super) fn open(disk: &Arc<dyn Disk>, session: Option<&Path>, cwd: &Path) -> Self {
        let path = sidecar::path(session, SUFFIX);
        let (recovered, problem) = path.as_deref().map(|path| read(&**disk, path)).unwrap_or_default();
        let disk = Arc::clone(disk);
        let mut file =
            Self { disk, path, cwd: cwd.to_owned(), recovered, replaces: Vec::new(), lock: None, problem };
        if session.is_some_and(|session| !is_session(session)) {
            file.adopt();
        }
        file
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        let path = sidecar::path(session, SUFFIX);
        if let (Some(old), Some(new)) = (&self.path, &path)
            && old != new
        {
            // There may be no draft; a file that cannot be moved is replaced by the next draft.
            if self.disk.rename(old, new).is_err() {
                self.replaces.push(old.clone());
            }
        }
        self.path = path;
    }

    /// Looks for a draft whose session was never written and whose process has ended.
    fn adopt(&mut self) {
        let Some(folder) = self.path.as_deref().and_then(Path::parent) else { return };
        let Ok(files) = fs::read_dir(folder) else { return };
        let mut orphans: Vec<_> = files
            .flatten()
            .filter_map(|file| {
                let session = session_of(&file.path())?;
                let is_orphan = !is_session(&session) && !is_locked(&*self.disk, &file.path());
                let stored = is_orphan
                    .then(|| parse(&os::read_regular(&file.path(), sidecar::LIMIT_BYTES).ok()?))
                    .flatten()?;
                (stored.cwd == self.cwd).then(|| (file.path(), stored))
            })
            .collect();
        // Names begin with the time; the user expects the latest draft.
        orphans.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some((path, stored)) = orphans.pop() {
            self.recovered.get_or_insert(stored);
            self.replaces.push(path);
        }
    }

    /// Returns the recovered draft, once. It stays on disk until another is saved.
    pub(super) fn take_recovered(&mut self) -> Option<PromptDraft> {
        self.recovered.take().map(|stored| stored.draft).filter(|draft| !draft.is_empty())
    }

    /// Removes and returns what could not be read, for the user.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// The messages of the queue file that the recovered draft contains.
    pub(super) fn held(&self) -> &[PromptDraft] {
        self.recovered.as_ref().map_or(&[], |stored| &stored.holds)
    }

    /// Replaces the draft. `holds` are messages of the queue file that it contains.
    /// Blocks, briefly.
    ///
    /// # Errors
    /// If it cannot be written; the previous draft is then still on disk.
    pub(super) fn save(&mut self, draft: &PromptDraft, holds: &[PromptDraft]) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        if draft.is_empty() {
            sidecar::remove(&*self.disk, &path)?;
        } else {
            self.lock(&path);
            let stored = Stored { cwd: self.cwd.clone(), draft: draft.clone(), holds: holds.to_vec() };
            store::replace(&*self.disk, &path, &serde_json::to_vec(&stored)?)?;
        }
        // The replaced drafts are no longer the only copy.
        for replaced in std::mem::take(&mut self.replaces) {
            drop(sidecar::remove(&*self.disk, &replaced));
            drop(sidecar::remove(&*self.disk, &lock_path(&replaced)));
        }
        Ok(())
    }

    /// Replaces `other` with the next draft that is saved: the user continues
    /// writing in another session. Until then, the draft stays where it is found with its
    /// session; one whose session has no file comes along. Blocks, briefly.
    pub(super) fn replace(&mut self, other: Self) {
        let Self { path, replaces, lock, .. } = other;
        if path == self.path && self.lock.is_none() {
            self.lock = lock;
            return self.replaces.extend(replaces);
        }
        if let Some(old) = path.filter(|path| Some(path) != self.path.as_ref())
            && !self.take_along(&old)
        {
            self.replaces.push(old);
        }
        self.replaces.extend(replaces);
        // Nobody else may adopt the draft in the meantime.
        drop(lock);
    }

    /// Moves the draft at `old` here; `false` if it stays there.
    fn take_along(&mut self, old: &Path) -> bool {
        let Some(path) = self.path.clone().filter(|path| !path.exists()) else { return false };
        if session_of(old).is_none_or(|session| is_session(&session)) || !old.exists() {
            return false;
        }
        if session_of(&path).is_some_and(|session| !is_session(&session)) {
            self.lock(&path);
        }
        self.disk.rename(old, &path).is_ok()
    }

    fn lock(&mut self, path: &Path) {
        if self.lock.is_none() {
            // The first draft of a directory comes before its sessions. Without the folder the draft cannot be saved either.
            let made = path.parent().map_or(Ok(()), atomic_file::create_private_folder);
            let path = lock_path(path);
            let file = made
                .ok()
                .and_then(|()| lock_file(&path, true))
                .filter(|file| self.disk.try_lock(file).is_ok());
            self.lock = file.map(|file| DraftLock { disk: Arc::clone(&self.disk), path, _file: file });
        }
    }
}

impl Drop for DraftLock {
    fn drop(&mut self) {
        drop(sidecar::remove(&*self.disk, &self.path));
    }
}

fn lock_path(draft: &Path) -> PathBuf {
    let mut name = draft.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Opens a lock file, never through a link.
fn lock_file(path: &Path, create: bool) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    os::make_file_private(&mut options);
    os::refuse_links(&mut options);
    options.open(path).ok()
}

/// Whether a living process holds the lock of a draft.
fn is_locked(disk: &dyn Disk, draft: &Path) -> bool {
    lock_file(&lock_path(draft), false)
        .is_some_and(|file| matches!(disk.try_lock(&file), Err(fs::TryLockError::WouldBlock)))
}

/// The session file that a draft is beside.
fn session_of(draft: &Path) -> Option<PathBuf> {
    let name = draft.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    Some(draft.with_file_name(name))
}

/// Whether the session of a draft can be opened. A process killed while it created the file
/// leaves one without a complete header.
fn is_session(path: &Path) -> bool {
    path.exists() && store::read_header(path).is_some()
}

/// The contents of a file, if there is one, and what could not be read.
fn read(disk: &dyn Disk, path: &Path) -> (Option<Stored>, Option<String>) {
    let sidecar::Contents { bytes, problem } = sidecar::read(disk, path, "the draft");
    if bytes.is_empty() {
        return (None, problem);
    }
    let stored = parse(&bytes);
    let damage = stored.is_none().then(|| sidecar::keep_damaged(disk, path, &bytes, "of the draft"));
    (stored, damage)
}

fn parse(bytes: &[u8]) -> Option<Stored> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Arc<dyn Disk> {
        Arc::new(crate::util::disk::SystemDisk)
    }

    fn draft(text: &str) -> PromptDraft {
        PromptDraft::from(text)
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn draft_comes_back_after_any_number_of_crashes_until_another_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        fs::write(&session, "").unwrap();
        let open = || DraftFile::open(&disk(), Some(&session), Path::new("/work"));
        open().save(&draft("half a thought"), &[draft("queued")]).unwrap();
        for _ in 0..2 {
            let mut crashed = open();
            assert_eq!(crashed.held(), [draft("queued")]);
            assert_eq!(crashed.take_recovered(), Some(draft("half a thought")));
            assert_eq!(crashed.take_recovered(), None);
        }
        let mut file = open();
        file.save(&draft("other"), &[]).unwrap();
        assert!(open().held().is_empty());
        file.save(&draft(""), &[]).unwrap();
        drop(file);
        assert_eq!(open().take_recovered(), None);
        assert_eq!(files(folder.path()), ["s.jsonl"]);
    }

    #[test]
    fn draft_without_a_session_goes_to_the_next_of_the_same_directory() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            |name: &str, cwd: &str| DraftFile::open(&disk(), Some(&folder.path().join(name)), Path::new(cwd));
        let mut living = open("1.jsonl", "/work");
        living.save(&draft("mine"), &[]).unwrap();
        assert_eq!(open("2.jsonl", "/work").take_recovered(), None, "its process lives");
        drop(living);
        assert_eq!(open("2.jsonl", "/elsewhere").take_recovered(), None);

        let mut next = open("2.jsonl", "/work");
        assert_eq!(next.take_recovered(), Some(draft("mine")));
        assert_eq!(open("3.jsonl", "/work").take_recovered(), Some(draft("mine")), "not saved yet");
        next.save(&draft("mine and more"), &[]).unwrap();
        assert_eq!(files(folder.path()), [".2.jsonl.draft", ".2.jsonl.draft.lock"]);
    }

    #[test]
    fn first_draft_of_a_directory_belongs_to_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            DraftFile::open(&disk(), Some(&folder.path().join("new").join(name)), Path::new("/work"))
        };
        let mut living = open("1.jsonl");
        living.save(&draft("mine"), &[]).unwrap();
        assert_eq!(open("2.jsonl").take_recovered(), None);
        let mut again = open("1.jsonl");
        again.replace(living);
        assert_eq!(open("2.jsonl").take_recovered(), None, "opened again by the same process");
    }

    #[test]
    fn draft_moves_along_to_another_session() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| DraftFile::open(&disk(), Some(&folder.path().join(name)), Path::new("/work"));
        let mut first = open("1.jsonl");
        first.save(&draft("text"), &[]).unwrap();
        let mut second = open("2.jsonl");
        second.replace(first);
        assert_eq!(files(folder.path()), [".2.jsonl.draft", ".2.jsonl.draft.lock"], "at once");
        second.save(&draft("text"), &[]).unwrap();
        drop(second);
        assert_eq!(files(folder.path()), [".2.jsonl.draft"]);
    }

    #[test]
    fn draft_of_a_stored_session_stays_with_it_until_it_is_saved_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| DraftFile::open(&disk(), Some(&folder.path().join(name)), Path::new("/work"));
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/work"}"#;
        fs::write(folder.path().join("1.jsonl"), format!("{header}\n")).unwrap();
        let mut first = open("1.jsonl");
        first.save(&draft("text"), &[]).unwrap();
        let mut second = open("2.jsonl");
        second.replace(first);
        assert_eq!(open("1.jsonl").take_recovered(), Some(draft("text")));
        second.save(&draft("text"), &[]).unwrap();
        drop(second);
        assert_eq!(files(folder.path()), [".2.jsonl.draft", "1.jsonl"]);
    }

    #[test]
    fn broken_file_is_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s.jsonl");
        for text in ["", "[1]", "{\"text\":7}", "null"] {
            fs::write(folder.path().join(".s.jsonl.draft"), text).unwrap();
            assert_eq!(
                DraftFile::open(&disk(), Some(&session), Path::new("/")).take_recovered(),
                None,
                "{text}"
            );
        }
    }
}
