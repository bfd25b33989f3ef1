//! The list of sessions and their texts, cached in the folder `.index` beside the sessions.
//!
//! A session whose file has not changed is not read; of one that grew, only the new lines
//! are read. The cache may be deleted at any time. It is never trusted beyond its
//! checksums, never locked, and no failure of it is an error: the sessions are read instead.
//! Two processes may update it; the last one wins, and the other one's rows are kept
//! unless both have the same session.

mod contents;
mod packs;
mod query;
mod rows;
mod search;
fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::store::{self, Stamp};
use packs::Packs;
use rows::{Row, Rows};

pub use contents::Author;
pub use query::{QueryError, SearchQuery};
pub use search::{HitRank, MessageHit, SearchHit, Snippet};

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    /// Its file.
    pub path: PathBuf,
    /// A UUID.
    pub id: String,
    /// The directory it works in.
    pub cwd: String,
    /// What the user named it.
    pub name: Option<String>,
    /// Start of the first user message that contains text.
    pub first_message: Option<String>,
    /// Messages of the user and answers, of all branches.
    pub n_messages: usize,
    /// When it began, milliseconds since the Unix epoch, if the header contains it.
    pub created_ms: Option<u64>,
    /// Time of the newest prompt or answer, milliseconds since the Unix epoch. Without one it is
    /// when the session began, or else the time of the file.
    pub modified_ms: u64,
    /// The file it was forked from.
    pub parent: Option<PathBuf>,
}

/// Which sessions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum SessionScope {
    /// Those in `folder`; `cwd` restricts to the sessions of a directory.
    Folder { folder: PathBuf, cwd: Option<PathBuf> },
    /// All below the root of the index.
    All,
}

/// What a refresh read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// Session files in the scope.
    pub n_files: usize,
    /// Files that were read, whole or in part.
    pub n_read: usize,
    /// Those of them whose beginning was known.
    pub n_resumed: usize,
    /// Bytes that were read.
    pub n_bytes: u64,
    /// Whether it was cancelled before all files were read.
    pub is_partial: bool,
    /// Folders and files that cannot be read, one line each.
    pub problems: Vec<String>,
}

/// Most problems that are reported one by one.
const MAX_PROBLEMS: usize = 5;

impl Refreshed {
    fn problem(&mut self, path: &Path, error: &io::Error) {
        // A file may be deleted at any time, and a folder may not exist yet.
        if error.kind() != io::ErrorKind::NotFound && self.problems.len() < MAX_PROBLEMS {
            self.problems.push(format!("cannot list {}: {error}", path.display()));
        }
    }
}

/// The sessions below a root folder.
#[derive(Debug)]
pub struct SessionIndex {
    root: PathBuf,
    /// The file of rows.
    file: PathBuf,
    /// The version of `file` that `rows` started from.
    loaded: Option<Stamp>,
    rows: Rows,
    /// Paths whose rows were added, changed or removed.
    touched: HashSet<PathBuf>,
    packs: Packs,
}

/// Rows are passed on when this many, or this many bytes, have been read.
const BATCH_ROWS: usize = 64;
const BATCH_BYTES: u64 = 4 << 20;

impl SessionIndex {
    /// Reads the cache below `root`, if there is one. Blocks.
    pub fn load(root: &Path) -> Self {
        let folder = root.join(".index");
        let file = folder.join("rows");
        let (loaded, packs) = (stamp_of(&file), Packs::new(folder));
        let mut rows = rows::load(&file, root);
        let known = packs.ids();
        // A row whose texts are gone is not worth more than no row.
        rows.retain(|_, row| row.texts.iter().flatten().all(|segment| known.contains(&segment.pack)));
        Self { root: root.to_owned(), file, loaded, rows, touched: HashSet::new(), packs }
    }

    /// At most `max` sessions of `scope` that have not changed since the cache was written, the
    /// latest first. Looks at no other files; what changed since may be later. Blocks.
    pub fn latest_unchanged(&self, scope: &SessionScope, max: usize) -> Vec<SessionSummary> {
        let mut rows: Vec<(&OsString, &Row)> = self.rows.iter().collect();
        rows.sort_unstable_by_key(|(path, row)| (Reverse(row.modified_ms()), *path));
        let is_unchanged = |path: &OsString, stamp: &Stamp| {
            fs::metadata(path).is_ok_and(|metadata| Stamp::of(&metadata) == *stamp)
        };
        let sessions = rows.into_iter().filter_map(|(path, row)| {
            let session = self.summary(path.as_ref(), scope)?;
            is_unchanged(path, &row.stamp).then_some(session)
        });
        sessions.take(max).collect()
    }

    /// Reads the sessions of `scope` that changed, the last changed first, and passes all of
    /// them to `on_rows`: the known ones at once, then the others as they are read.
    /// Blocks; asks `is_cancelled` before each file and during long ones.
    pub fn refresh(
        &mut self,
        scope: &SessionScope,
        is_cancelled: &dyn Fn() -> bool,
        on_rows: &mut dyn FnMut(Vec<SessionSummary>),
    ) -> Refreshed {
        let mut refreshed = Refreshed::default();
        let mut files = self.files(scope, &mut refreshed);
        files.sort_by_key(|(_, stamp)| Reverse(stamp.mtime_ns));
        self.forget_removed(scope, &files);
        refreshed.n_files = files.len();
        let is_known = |(path, stamp): &(PathBuf, Stamp)| {
            self.rows.get(path.as_os_str()).is_some_and(|row| row.stamp == *stamp)
        };
        let (known, changed): (Vec<_>, Vec<_>) = files.into_iter().partition(is_known);
        on_rows(known.iter().filter_map(|(path, _)| self.summary(path, scope)).collect());
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        for (path, _) in changed {
            if is_cancelled() {
                refreshed.is_partial = true;
                break;
            }
            let n_bytes = self.read(&path, is_cancelled, &mut refreshed);
            batch_bytes += n_bytes;
            batch.extend(self.summary(&path, scope));
            if batch.len() >= BATCH_ROWS || batch_bytes >= BATCH_BYTES {
                on_rows(std::mem::take(&mut batch));
                batch_bytes = 0;
            }
        }
        if !batch.is_empty() {
            on_rows(batch);
        }
        self.packs.flush();
        refreshed
    }

    /// The files of `scope` with their versions.
    fn files(&self, scope: &SessionScope, refreshed: &mut Refreshed) -> Vec<(PathBuf, Stamp)> {
        let folders = match scope {
            SessionScope::Folder { folder, .. } => vec![folder.clone()],
            SessionScope::All => self.folders(),
        };
        for folder in &folders {
            if let Err(error) = fs::read_dir(folder) {
                refreshed.problem(folder, &error);
            }
        }
        let files = folders.iter().flat_map(|folder| store::session_files(folder));
        files.map(|(path, metadata)| (path, Stamp::of(&metadata))).collect()
    }

    /// The root, which contains all sessions if the user chose it, and its folders.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let below = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
        std::iter::once(self.root.clone()).chain(below).collect()
    }

    fn forget_removed(&mut self, scope: &SessionScope, files: &[(PathBuf, Stamp)]) {
        let found: HashSet<&OsStr> = files.iter().map(|(path, _)| path.as_os_str()).collect();
        let is_listed = |path: &Path| match scope {
            SessionScope::Folder { folder, .. } => path.parent() == Some(folder),
            SessionScope::All => true,
        };
        let is_removed = |path: &OsStr| !found.contains(path) && is_listed(Path::new(path));
        let removed = self.rows.keys().filter(|path| is_removed(path));
        let removed: Vec<OsString> = removed.cloned().collect();
        for path in removed {
            self.rows.remove(&path);
            self.touched.insert(path.into());
        }
    }

    /// Reads a file whose row is missing or outdated. Returns the number of bytes read.
    fn read(&mut self, path: &Path, is_cancelled: &dyn Fn() -> bool, refreshed: &mut Refreshed) -> u64 {
        let earlier = self.rows.remove(path.as_os_str());
        self.touched.insert(path.to_owned());
        let mut texts = self.packs.texts();
        let resumed = earlier.as_ref().map(Row::as_earlier);
        let read = contents::read(path, resumed, is_cancelled, &mut |id, author, text| {
            texts.push(id, author, text);
        });
        // A file that cannot be read is not listed.
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                refreshed.problem(path, &error);
                return 0;
            }
        };
        let Some(reading) = read else {
            refreshed.is_partial = true;
            self.rows.extend(earlier.map(|row| (path.into(), row)));
            return 0;
        };
        let known = if reading.is_resumed { earlier.and_then(|row| row.texts) } else { Some(Vec::new()) };
        let texts = texts.finish(known);
        refreshed.n_read += 1;
        refreshed.n_resumed += usize::from(reading.is_resumed);
        refreshed.n_bytes += reading.n_bytes;
        let row = Row { stamp: reading.stamp, end: reading.end, facts: reading.facts, texts };
        self.rows.insert(path.into(), row);
        reading.n_bytes
    }

    /// The session in `path`, if it is one and in `scope`.
    fn summary(&self, path: &Path, scope: &SessionScope) -> Option<SessionSummary> {
        let row = self.rows.get(path.as_os_str())?;
        let head = row.facts.head.as_ref()?;
        if let SessionScope::Folder { folder, cwd } = scope {
            let works_in = |cwd: &PathBuf| store::works_in(&head.cwd, folder, cwd);
            if path.parent() != Some(folder) || !cwd.as_ref().is_none_or(works_in) {
                return None;
            }
        }
        Some(SessionSummary {
            path: path.to_owned(),
            id: head.id.clone(),
            cwd: head.cwd.clone(),
            name: row.facts.name.clone(),
            first_message: row.facts.first_message.clone(),
            n_messages: row.facts.n_messages,
            created_ms: head.created_ms,
            modified_ms: row.modified_ms(),
            parent: head.parent.as_ref().map(PathBuf::from),
        })
    }

    /// The sessions of `scope` as of the last refresh, the latest first.
    pub fn sessions(&self, scope: &SessionScope) -> Vec<SessionSummary> {
        let mut sessions: Vec<_> =
            self.rows.keys().filter_map(|path| self.summary(path.as_ref(), scope)).collect();
        sort(&mut sessions);
        sessions
    }

    /// Files of `scope` that are listed nowhere, because they are not sessions, as of the last
    /// refresh; sorted.
    pub fn not_sessions(&self, scope: &SessionScope) -> Vec<PathBuf> {
        let is_listed = |path: &Path| match scope {
            SessionScope::Folder { folder, .. } => path.parent() == Some(folder),
            SessionScope::All => true,
        };
        let rows = self.rows.iter().filter(|(_, row)| row.facts.head.is_none());
        let mut paths: Vec<PathBuf> = rows.map(|(path, _)| PathBuf::from(path)).collect();
        paths.retain(|path| is_listed(path));
        paths.sort();
        paths
    }

    /// Writes the cache if something changed. Blocks.
    ///
    /// # Errors
    /// If it cannot be written. Callers may ignore that: the next process reads the
    /// sessions again.
    pub fn save(&mut self) -> io::Result<()> {
        if self.touched.is_empty() || !self.root.is_dir() {
            return Ok(());
        }
        if let Some(folder) = self.file.parent() {
            if is_link(folder) {
                return Err(io::Error::other("the directory of the index is a link"));
            }
            crate::util::atomic_file::create_private_folder(folder)?;
        }
        // In a shared directory somebody else may have put a link there, whose target is not the index, or a pipe.
        if fs::symlink_metadata(&self.file).is_ok_and(|metadata| !metadata.is_file()) {
            fs::remove_file(&self.file)?;
        }
        if stamp_of(&self.file) != self.loaded {
            self.add_rows_of_others();
        }
        self.merge_packs();
        self.packs.close();
        rows::save(&self.file, &self.root, &self.rows)?;
        self.touched.clear();
        self.loaded = stamp_of(&self.file);
        self.packs.remove_unused(&self.used_packs().into_keys().collect(), &self.file);
        Ok(())
    }

    /// Adds what another process has saved since the cache was loaded.
    fn add_rows_of_others(&mut self) {
        let known = self.packs.ids();
        for (path, row) in rows::load(&self.file, &self.root) {
            let is_whole = row.texts.iter().flatten().all(|segment| known.contains(&segment.pack));
            if is_whole && !self.touched.contains(Path::new(&path)) {
                self.rows.insert(path, row);
            }
        }
    }

    /// The packs that rows refer to, with the number of bytes in use.
    fn used_packs(&self) -> HashMap<u64, u64> {
        let mut used = HashMap::new();
        for segment in self.rows.values().flat_map(|row| row.texts.iter().flatten()) {
            *used.entry(segment.pack).or_default() += u64::from(segment.len);
        }
        used
    }

    /// Copies small packs, and those of which little is in use, into one.
    fn merge_packs(&mut self) {
        self.packs.close();
        let merged = self.packs.to_merge(&self.used_packs());
        if merged.is_empty() {
            return;
        }
        let mut damaged = Vec::new();
        for (path, row) in &mut self.rows {
            let Some(texts) = &mut row.texts else { continue };
            if !texts.iter().any(|segment| merged.contains(&segment.pack)) {
                continue;
            }
            match self.packs.copy(texts, &merged) {
                Some(copied) => *texts = copied,
                None if self.packs.is_unwritable() => break,
                None => damaged.push(path.into()),
            }
        }
        self.distrust(damaged);
    }

    /// Lets the next refresh read the files again, because their texts turned out to be
    /// damaged. Until then they stay listed.
    fn distrust(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if let Some(row) = self.rows.get_mut(path.as_os_str()) {
                (row.texts, row.end) = (None, None);
                row.stamp.outdate();
            }
            self.touched.insert(path);
        }
    }
}

fn stamp_of(file: &Path) -> Option<Stamp> {
    fs::metadata(file).ok().map(|metadata| Stamp::of(&metadata))
}

/// The latest first; by path if several changed at the same time.
fn sort(sessions: &mut [SessionSummary]) {
    sessions.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.path.cmp(&b.path)));
}

/// The sessions of `folder`, the latest first, read without a cache; `cwd` restricts to
/// those of a directory. Blocks.
pub fn list(folder: &Path, cwd: Option<&Path>) -> Vec<SessionSummary> {
    let mut index = SessionIndex {
        root: folder.to_owned(),
        file: PathBuf::new(),
        loaded: None,
        rows: Rows::default(),
        touched: HashSet::new(),
        packs: Packs::unwritable(),
    };
    let scope = SessionScope::Folder { folder: folder.to_owned(), cwd: cwd.map(Path::to_owned) };
    index.refresh(&scope, &|| false, &mut |_| {});
    index.sessions(&scope)
}
