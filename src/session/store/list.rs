//! Finds session files: by folder, by recency, by id; and what a picker shows of them.

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::ai::Message;
use crate::util::clock;

use super::super::resources::SkillBlock;
use super::entry::{EntryBody, Header, SessionMessage};
use super::scan;
use super::tree::Location;

/// What a picker shows of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub path: PathBuf,
    pub id: String,
    pub cwd: String,
    pub name: Option<String>,
    /// Start of the first thing the user said, if it was said in words.
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

/// The file name of a session begun at `timestamp` (ISO 8601).
pub fn file_name(timestamp: &str, id: &str) -> String {
    format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"))
}

/// The session in `folder` changed last; `cwd` restricts to those of a directory.
pub fn latest(folder: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let mut files = session_files(folder);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    files.into_iter().map(|(path, _)| path).find(|path| is_wanted(path, cwd))
}

/// The sessions of `folder`, newest first; `cwd` restricts to those of a
/// directory. Reads each of them once; blocks.
pub fn list(folder: &Path, cwd: Option<&Path>) -> Vec<SessionSummary> {
    let mut summaries: Vec<SessionSummary> = session_files(folder)
        .into_iter()
        .filter(|(path, _)| is_wanted(path, cwd))
        .filter_map(|(path, modified)| summarize(&path, modified))
        .collect();
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.modified_ms));
    summaries
}

/// The sessions below `root` whose id is `id` or, failing that, starts with it.
/// Those in `folder` come first and, if there are any, alone.
pub fn find(root: &Path, folder: &Path, id: &str) -> Vec<PathBuf> {
    let here = matching(folder, id);
    if !here.is_empty() {
        return here;
    }
    let Ok(folders) = fs::read_dir(root) else { return Vec::new() };
    folders
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .flat_map(|entry| matching(&entry.path(), id))
        .collect()
}

fn matching(folder: &Path, id: &str) -> Vec<PathBuf> {
    let mut files = session_files(folder);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    let with_ids: Vec<(PathBuf, String)> = files
        .into_iter()
        .filter_map(|(path, _)| scan::read_header(&path).map(|header| (path, header.id)))
        .collect();
    let exact: Vec<PathBuf> =
        with_ids.iter().filter(|(_, found)| found == id).map(|(path, _)| path.clone()).collect();
    if !exact.is_empty() {
        return exact;
    }
    with_ids.into_iter().filter(|(_, found)| found.starts_with(id)).map(|(path, _)| path).collect()
}

fn session_files(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let is_session = path.extension().is_some_and(|extension| extension == "jsonl");
            let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
            is_session.then_some((path, modified))
        })
        .collect()
}

/// Whether `path` is a session, and one of `cwd` if that matters; reads the header only.
fn is_wanted(path: &Path, cwd: Option<&Path>) -> bool {
    scan::read_header(path).is_some_and(|header| cwd.is_none_or(|cwd| works_in(&header, cwd)))
}

fn works_in(header: &Header, cwd: &Path) -> bool {
    !header.cwd.is_empty() && lexical(Path::new(&header.cwd)) == lexical(cwd)
}

fn lexical(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}

fn summarize(path: &Path, modified: SystemTime) -> Option<SessionSummary> {
    let scan = scan::scan(path).ok()??;
    let created = clock::parse_iso8601(&scan.header.timestamp).unwrap_or_default();
    Some(SessionSummary {
        path: path.to_owned(),
        id: scan.header.id,
        cwd: scan.header.cwd,
        name: scan.facts.name,
        first_message: scan.first_user.and_then(|location| first_message(path, location)),
        n_messages: scan.facts.n_messages,
        modified_ms: created.max(millis(modified)),
    })
}

/// The first words of the user message at `location`, on one line.
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
