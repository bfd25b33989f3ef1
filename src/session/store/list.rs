//! Finds session files by folder, recency or id, and summarises them for pickers.

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::ai::Message;
use crate::util::clock;

use super::super::resources::SkillBlock;
use super::entry::{EntryBody, Header, SessionMessage};
use super::scan;
use super::tree::Location;

/// A session as shown in a picker.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub path: PathBuf,
    pub id: String,
    pub cwd: String,
    pub name: Option<String>,
    /// Start of the first user message, if it contains text.
    pub first_message: Option<String>,
    pub n_messages: usize,
    /// Last change, milliseconds since the Unix epoch.
    pub modified_ms: u64,
}

/// The folder of a project's sessions below `root`: the directory's path with
/// separators and colons as dashes. Two directories can share a folder.
pub fn project_folder(root: &Path, cwd: &Path) -> PathBuf {
    let text = cwd.to_string_lossy();
    let text = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    root.join(format!("--{}--", text.replace(['/', '\\', ':'], "-")))
}

/// The file name of a session that began at `timestamp` (ISO 8601).
pub fn file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// The most recently changed session in `folder`; `cwd` restricts to those of a directory.
pub fn latest(folder: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let mut files = session_files(folder);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    files.into_iter().map(|(path, _)| path).find(|path| is_wanted(path, folder, cwd))
}

/// The sessions of `folder`, newest first; `cwd` restricts to those of a
/// directory. Reads each of them once; blocks.
pub fn list(folder: &Path, cwd: Option<&Path>) -> Vec<SessionSummary> {
    let mut summaries: Vec<SessionSummary> = session_files(folder)
        .into_iter()
        .filter(|(path, _)| is_wanted(path, folder, cwd))
        .filter_map(|(path, modified_ms)| summarize(&path, modified_ms))
        .collect();
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.modified_ms));
    summaries
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
        matching(folder, id).into_iter().partition(|(_, header)| works_in(header, folder, cwd));
    if here.is_empty() {
        let folders = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = folders.filter(|other| other != folder && other.is_dir());
        elsewhere.extend(others.flat_map(|other| matching(&other, id)));
    }
    let paths = |found: Vec<(PathBuf, Header)>| found.into_iter().map(|(path, _)| path).collect();
    FoundSessions { here: paths(here), elsewhere: paths(elsewhere) }
}

fn matching(folder: &Path, id: &str) -> Vec<(PathBuf, Header)> {
    let mut files = session_files(folder);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    let (exact, others): (Vec<_>, Vec<_>) = files
        .into_iter()
        .filter_map(|(path, _)| scan::read_header(&path).map(|header| (path, header)))
        .filter(|(_, header)| header.id.starts_with(id))
        .partition(|(_, header)| header.id == id);
    if exact.is_empty() { others } else { exact }
}

/// The regular files in `folder` that may be sessions, so that reading cannot block, with the times of their last changes in
/// milliseconds since the Unix epoch.
pub(in crate::session) fn session_files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let is_named = path.extension().is_some_and(|extension| extension == "jsonl");
            let metadata = is_named.then(|| fs::metadata(&path).ok()).flatten()?;
            metadata
                .is_file()
                .then(|| metadata.modified().ok().map(|modified| (path, millis(modified))))
                .flatten()
        })
        .collect()
}

/// Whether `path` is a session, and one of `cwd` if given; reads only the header.
fn is_wanted(path: &Path, folder: &Path, cwd: Option<&Path>) -> bool {
    scan::read_header(path).is_some_and(|header| cwd.is_none_or(|cwd| works_in(&header, folder, cwd)))
}

/// Whether a session in `folder` belongs to `cwd`. Old files do not contain their
/// directory; for them the name of the folder decides.
fn works_in(header: &Header, folder: &Path, cwd: &Path) -> bool {
    if header.cwd.is_empty() {
        return folder.file_name() == project_folder(Path::new(""), cwd).file_name();
    }
    lexical(Path::new(&header.cwd)) == lexical(cwd)
}

fn lexical(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}

fn summarize(path: &Path, modified_ms: u64) -> Option<SessionSummary> {
    let scan = scan::scan(path).ok()??;
    let created = clock::parse_iso8601(&scan.header.timestamp).unwrap_or_default();
    Some(SessionSummary {
        path: path.to_owned(),
        id: scan.header.id,
        cwd: scan.header.cwd,
        name: scan.facts.name,
        first_message: scan.first_user.and_then(|location| first_message(path, location)),
        n_messages: scan.facts.n_messages,
        modified_ms: created.max(modified_ms),
    })
}

/// The start of the user message at `location`, on one line.
fn first_message(path: &Path, location: Location) -> Option<String> {
    let entry = scan::read_entry(&File::open(path).ok()?, location)?;
    let EntryBody::Message { message: SessionMessage::Model(message), .. } = entry.body else { return None };
    let Message::User(user) = &*message else { return None };
    let text = user.content.text();
    let typed = SkillBlock::parse(&text).map(|block| block.command());
    let text = typed.unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| text.chars().take(200).collect())
}

fn millis(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
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
        let name = file_name("2026-11-21T09:23:47.280Z", "abc");
        assert_eq!(name, "2026-11-21T09-23-47-280Z_abc.jsonl");
    }
}
