//! Finds session files by folder, recency or id. `session::index` lists them with their contents.

use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};

use crate::util::hash::fnv1a;
use crate::util::parts;

use super::entry::Header;
use super::scan;

/// Longest name of a folder that file systems take, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The folder of a project's sessions below `root`: the directory's path with
/// separators and colons as dashes. Two directories can share a folder. Of a path that is too long for a
/// name, the name has a hash and the end.
pub fn project_folder(root: &Path, cwd: &Path) -> PathBuf {
    let text = cwd.to_string_lossy();
    let text = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    let name = text.replace(['/', '\\', ':'], "-");
    let frame = "----".len();
    if name.len() + frame <= MAX_NAME_BYTES {
        return root.join(format!("--{name}--"));
    }
    let hash = fnv1a(text.bytes());
    let n_kept = MAX_NAME_BYTES - frame - "0123456789abcdef-".len();
    let start = name.ceil_char_boundary(name.len() - n_kept);
    root.join(format!("--{hash:016x}-{}--", &name[start..]))
}

/// The file name of a session that began at `timestamp` (ISO 8601).
pub fn file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// The most recently changed session in `folder`; `cwd` restricts to those of a directory.
pub fn latest(folder: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    files_by_time(folder).into_iter().find(|path| is_wanted(path, folder, cwd))
}

/// The most recently changed file in `folder` if it cannot be recognised as a session.
pub fn unrecognised_latest(folder: &Path) -> Option<PathBuf> {
    files_by_time(folder).into_iter().next().filter(|path| scan::read_header(path).is_none())
}

/// Sessions that match an id, the most recently changed of each folder first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundSessions {
    /// Sessions of the given directory.
    pub here: Vec<PathBuf>,
    /// Sessions of other directories.
    pub elsewhere: Vec<PathBuf>,
}

/// The sessions whose id is `id` or, failing that, starts with it: in `folder` and,
/// if none of them belongs to `cwd`, in the other folders below `root`.
pub fn find(root: &Path, folder: &Path, cwd: &Path, id: &str) -> FoundSessions {
    let (here, mut elsewhere): (Vec<_>, Vec<_>) =
        matching(folder, id).into_iter().partition(|(_, header)| works_in(&header.cwd, folder, cwd));
    if here.is_empty() {
        let folders = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = folders.filter(|other| other != folder && other.is_dir());
        elsewhere.extend(others.flat_map(|other| matching(&other, id)));
    }
    let paths = |found: Vec<(PathBuf, Header)>| found.into_iter().map(|(path, _)| path).collect();
    FoundSessions { here: paths(here), elsewhere: paths(elsewhere) }
}

fn matching(folder: &Path, id: &str) -> Vec<(PathBuf, Header)> {
    let (exact, others): (Vec<_>, Vec<_>) = files_by_time(folder)
        .into_iter()
        .filter_map(|path| scan::read_header(&path).map(|header| (path, header)))
        .filter(|(_, header)| header.id.starts_with(id))
        .partition(|(_, header)| header.id == id);
    if exact.is_empty() { others } else { exact }
}

/// The session files of `folder`, the most recently changed one first.
fn files_by_time(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = session_files(folder)
        .into_iter()
        .filter_map(|(path, metadata)| Some((path, metadata.modified().ok()?)))
        .collect();
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    files.into_iter().map(|(path, _)| path).collect()
}

/// The regular files in `folder` that may be sessions, so that reading cannot block.
pub(in crate::session) fn session_files(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let named: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    let n_threads = parts::threads_for(named.len(), FILES_PER_THREAD);
    let files = parts::in_parts(&named, n_threads, &|_| 1, &|paths| {
        let metadata = |path: &PathBuf| fs::metadata(path).ok().filter(Metadata::is_file);
        paths.iter().map(metadata).collect()
    });
    named.into_iter().zip(files).filter_map(|(path, metadata)| Some((path, metadata?))).collect()
}

/// Files that are worth a thread of their own.
const FILES_PER_THREAD: usize = 500;

/// Whether `path` is a session, and one of `cwd` if given; reads only the header.
fn is_wanted(path: &Path, folder: &Path, cwd: Option<&Path>) -> bool {
    scan::read_header(path).is_some_and(|header| cwd.is_none_or(|cwd| works_in(&header.cwd, folder, cwd)))
}

/// Whether a session in `folder`, whose header contains `header_cwd`, belongs to `cwd`. Old
/// files do not contain their directory; for them the name of the folder decides.
pub(in crate::session) fn works_in(header_cwd: &str, folder: &Path, cwd: &Path) -> bool {
    if header_cwd.is_empty() {
        return folder.file_name() == project_folder(Path::new(""), cwd).file_name();
    }
    // A header has only text.
    lexical(Path::new(header_cwd)) == lexical(Path::new(&*cwd.to_string_lossy()))
}

fn lexical(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_named_as_the_original_names_them() {
        let folder = |cwd: &str| {
            let folder = project_folder(Path::new(""), Path::new(cwd));
            folder.to_string_lossy().into_owned()
        };
        assert_eq!(folder("/tmp/pit/w.d"), "--tmp-pit-w.d--");
        assert_eq!(folder("/"), "----");
        let longest = format!("/{}", "a".repeat(251));
        assert_eq!(folder(&longest), format!("--{}--", "a".repeat(251)));
        let name = file_name("2026-11-21T09:23:47.280Z", "abc");
        assert_eq!(name, "2026-11-21T09-23-47-280Z_abc.jsonl");
    }

    #[test]
    fn path_too_long_for_a_name_is_cut_and_hashed() {
        let name = |cwd: &str| {
            let folder = project_folder(Path::new(""), Path::new(cwd));
            folder.to_string_lossy().into_owned()
        };
        for part in ["p".repeat(65), "目".repeat(30), "p目".repeat(20)] {
            let long = format!("/{}", vec![part; 6].join("/"));
            let (name, other) = (name(&long), name(&format!("/x{long}")));
            assert!((250..=255).contains(&name.len()), "{}", name.len());
            assert!(name.starts_with("--") && name.ends_with(&format!("{}--", long.chars().last().unwrap())));
            assert_ne!(name, other, "only the hash tells them apart");
            assert_eq!(name.rsplit('-').nth(2), other.rsplit('-').nth(2));
        }
    }
}
