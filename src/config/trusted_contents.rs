//! What a project contained when the user trusted it, so that later changes ask again.
//!
//! Kept beside `trust.json`, whose format belongs to the original. A decision without a
//! record, such as one of the original, is bound to the contents that are seen first.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::util::os;

use super::json_file;
use super::trust::{self, TrustError};

/// Larger files are recognised by size and time of change.
const MAX_HASHED_BYTES: u64 = 1 << 20;
/// Maximum number of bytes that are hashed. Further files are recognized by size and time.
const MAX_HASHED_TOTAL: u64 = 64 << 20;
/// Maximum number of files and folders that are looked at.
const MAX_ENTRIES: usize = 5_000;
/// Maximum depth below a protected folder.
const MAX_DEPTH: usize = 16;

/// Digests of the files of a project that need trust, by path: relative to the project's
/// folder, or absolute outside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectContents(BTreeMap<String, String>);

impl ProjectContents {
    /// Reads `protected`, files and folders of the project `cwd`. Blocks.
    pub fn read<'a>(cwd: &Path, protected: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut reader = Reader { cwd, digests: BTreeMap::new(), n_entries: 0, n_hashed_bytes: 0 };
        for path in protected {
            reader.visit(path, 0);
        }
        Self(reader.digests)
    }

    /// The paths that differ from `before`: changed, added or removed.
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        let paths = self.0.keys().chain(before.0.keys().filter(|path| !self.0.contains_key(*path)));
        let mut paths: Vec<String> =
            paths.filter(|path| self.0.get(*path) != before.0.get(*path)).cloned().collect();
        paths.sort();
        paths
    }
}

struct Reader<'a> {
    cwd: &'a Path,
    digests: BTreeMap<String, String>,
    n_entries: usize,
    n_hashed_bytes: u64,
}

impl Reader<'_> {
    fn visit(&mut self, path: &Path, depth: usize) {
        self.n_entries += 1;
        if self.n_entries > MAX_ENTRIES || depth > MAX_DEPTH {
            return;
        }
        // A link counts as its target, which may change too.
        let Ok(metadata) = fs::metadata(path) else { return };
        if metadata.is_dir() {
            let mut names: Vec<PathBuf> =
                fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            // Sorted, because the limit may drop the last ones.
            names.sort();
            names.iter().for_each(|name| self.visit(name, depth + 1));
            return;
        }
        let name = path.strip_prefix(self.cwd).unwrap_or(path).to_string_lossy().into_owned();
        let is_hashed = self.n_hashed_bytes < MAX_HASHED_TOTAL;
        self.n_hashed_bytes += metadata.len().min(MAX_HASHED_BYTES);
        self.digests.insert(name, digest_of(path, &metadata, is_hashed));
    }
}

/// A text that changes with the content of a file.
fn digest_of(path: &Path, metadata: &fs::Metadata, is_hashed: bool) -> String {
    let by_time = || {
        let (seconds, nanoseconds) = os::modified(metadata);
        format!("{} bytes, {seconds}.{nanoseconds}", metadata.len())
    };
    if !is_hashed || !metadata.is_file() || metadata.len() > MAX_HASHED_BYTES {
        return by_time();
    }
    let mut bytes = Vec::new();
    let read =
        os::open_regular(path).and_then(|file| file.take(MAX_HASHED_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => by_time(),
    }
}

/// The file with the contents of all trusted projects, by canonical folder.
#[derive(Debug, Clone)]
pub struct TrustedContents {
    path: PathBuf,
    /// `None` if the file is invalid.
    values: Option<Map<String, Value>>,
}

impl TrustedContents {
    /// Reads the file at `path`; a missing one has no records. Blocks.
    pub fn load(path: PathBuf) -> Self {
        let values = json_file::read(&path).ok();
        Self { path, values }
    }

    /// What the project `folder` contained when it was trusted; `None` if there is no record.
    /// A record that cannot be read counts as one of nothing, so that all files have changed.
    pub fn of(&self, folder: &Path) -> Option<ProjectContents> {
        let Some(values) = &self.values else { return Some(ProjectContents::default()) };
        let folder = trust::canonical(folder);
        let record = values.get(folder.to_str()?)?.clone();
        Some(serde_json::from_value(record).unwrap_or_default())
    }

    /// Whether `file` is as it was when `folder` was trusted, as far as that is known. Blocks.
    pub fn has(&self, folder: &Path, file: &Path) -> bool {
        let now = ProjectContents::read(folder, [file]);
        self.of(folder)
            .is_none_or(|before| now.0.iter().all(|(path, digest)| before.0.get(path) == Some(digest)))
    }

    /// Records what `folder` contains, and leaves the records of other folders. Blocks.
    ///
    /// # Errors
    /// If the file cannot be written; it stays unchanged.
    pub fn save(&self, folder: &Path, contents: &ProjectContents) -> Result<(), TrustError> {
        let record = serde_json::to_value(contents).unwrap_or_default();
        // pi alone writes this file. If it is invalid, its other projects have no record
        // afterwards, which binds the decisions about them to what is seen next.
        let read = || Ok(json_file::read(&self.path).unwrap_or_default());
        trust::store(&self.path, folder, record, read).map(drop)
    }

    /// Records the content of one file that the user changed with pi, if there is a record of
    /// `folder`. Blocks.
    ///
    /// # Errors
    /// If the file cannot be written; it stays unchanged.
    pub fn accept(&self, folder: &Path, file: &Path) -> Result<(), TrustError> {
        let Some(mut contents) = self.of(folder) else { return Ok(()) };
        contents.0.extend(ProjectContents::read(folder, [file]).0);
        self.save(folder, &contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let work = fs::canonicalize(root.path()).unwrap().join("work");
        fs::create_dir_all(work.join(".pi/skills/a")).unwrap();
        fs::write(work.join(".pi/settings.json"), "{}").unwrap();
        fs::write(work.join(".pi/skills/a/SKILL.md"), "A").unwrap();
        (root, work)
    }

    fn read(work: &Path) -> ProjectContents {
        let protected = [work.join(".pi/settings.json"), work.join(".pi/skills"), work.join(".pi/missing")];
        ProjectContents::read(work, protected.iter().map(PathBuf::as_path))
    }

    #[test]
    fn every_change_of_a_file_is_named() {
        let (_root, work) = project();
        let before = read(&work);
        assert_eq!(read(&work).changed_since(&before), [""; 0]);
        fs::write(work.join(".pi/skills/a/SKILL.md"), "B").unwrap();
        fs::write(work.join(".pi/skills/run.sh"), "new").unwrap();
        fs::remove_file(work.join(".pi/settings.json")).unwrap();
        let changed = read(&work).changed_since(&before);
        assert_eq!(changed, [".pi/settings.json", ".pi/skills/a/SKILL.md", ".pi/skills/run.sh"]);
    }

    #[test]
    fn target_of_a_link_counts_and_cycles_end() {
        let (root, work) = project();
        let outside = root.path().join("outside.md");
        fs::write(&outside, "one").unwrap();
        std::os::unix::fs::symlink(&outside, work.join(".pi/skills/link.md")).unwrap();
        std::os::unix::fs::symlink(&work, work.join(".pi/skills/back")).unwrap();
        let before = read(&work);
        fs::write(&outside, "two").unwrap();
        assert!(read(&work).changed_since(&before).contains(&".pi/skills/link.md".to_owned()));
    }

    #[test]
    fn records_of_projects_are_kept_apart_and_one_file_can_be_accepted() {
        let (root, work) = project();
        let path = root.path().join("agent/contents.json");
        let records = || TrustedContents::load(path.clone());
        assert_eq!(records().of(&work), None);
        records().accept(&work, &work.join(".pi/settings.json")).unwrap();
        assert_eq!(records().of(&work), None, "without a record there is nothing to accept");
        records().save(root.path(), &ProjectContents::default()).unwrap();
        records().save(&work, &read(&work)).unwrap();
        assert_eq!(records().of(&work), Some(read(&work)));
        assert_eq!(records().of(root.path()), Some(ProjectContents::default()));
        fs::write(work.join(".pi/settings.json"), "{\"theme\": \"dark\"}").unwrap();
        fs::write(work.join(".pi/skills/a/SKILL.md"), "B").unwrap();
        records().accept(&work, &work.join(".pi/settings.json")).unwrap();
        assert_eq!(read(&work).changed_since(&records().of(&work).unwrap()), [".pi/skills/a/SKILL.md"]);
    }

    #[test]
    fn a_damaged_record_is_one_of_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("contents.json");
        fs::write(&path, "{ broken").unwrap();
        assert_eq!(TrustedContents::load(path.clone()).of(root.path()), Some(ProjectContents::default()));
        fs::write(&path, format!("{{\"{}\": 3}}", fs::canonicalize(root.path()).unwrap().display())).unwrap();
        assert_eq!(TrustedContents::load(path).of(root.path()), Some(ProjectContents::default()));
    }
}
