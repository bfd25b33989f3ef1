//! New session files made from others: forks, and imports from elsewhere.
//!
//! All of it blocks on the disk. A copy appears as a whole or not at all, and replaces
//! nothing.

use std::io;
use std::path::{Path, PathBuf};

use crate::ai::{ContentBlock, Message, UserContent};
use crate::util::disk::{Disk, SystemDisk};
use crate::util::{atomic_file, clock};

use super::command::PromptDraft;
use super::open::{OpenSession, new_header};
use super::resources::SkillBlock;
use super::secrets::mask_line;
use super::store::{self, BranchCopy, Entry, EntryBody, Header, OpenError, SessionMessage, SessionTree};

/// Copies all of the session in `source` to a new one of `cwd` in `folder`, which is made
/// if need be. Returns its file. Blocks.
///
/// # Errors
/// When the session cannot be read or the copy not be written.
pub fn fork_session(source: &Path, cwd: &Path, folder: &Path, now_ms: u64) -> Result<PathBuf, OpenError> {
    fork_session_on(&SystemDisk, source, cwd, folder, now_ms)
}

/// Like [`fork_session`], on a given disk.
///
/// # Errors
/// As [`fork_session`].
pub fn fork_session_on(
    disk: &dyn Disk,
    source: &Path,
    cwd: &Path,
    folder: &Path,
    now_ms: u64,
) -> Result<PathBuf, OpenError> {
    let (header, path) = forked(source, cwd, folder, now_ms);
    let made = atomic_file::create_private_folder(folder);
    made.map_err(|error| OpenError::Copy { path: path.clone(), error })?;
    store::copy_file(disk, source, &header, &path)?;
    Ok(path)
}

/// Header and file of a session that begins as a copy of `source`.
fn forked(source: &Path, cwd: &Path, folder: &Path, now_ms: u64) -> (Header, PathBuf) {
    let source = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
    let parent_session = Some(source.to_string_lossy().into_owned());
    let header = Header { parent_session, ..new_header(cwd, now_ms) };
    let path = folder.join(store::file_name(&header.timestamp, &header.id));
    (header, path)
}

/// A copy of a branch, ready to be opened.
pub(super) struct ForkedBranch {
    pub(super) open: OpenSession,
    /// Entries that could not be read and are missing.
    pub(super) n_lost: usize,
}

/// Copies the branch that ends with `end` to a new session beside `source`. One in which
/// nobody says anything gets its file later, as every new session.
pub(super) fn fork_branch(
    disk: &dyn Disk,
    tree: &SessionTree,
    end: Option<usize>,
    source: &Path,
    cwd: &Path,
    now_ms: u64,
) -> Result<ForkedBranch, OpenError> {
    let folder = source.parent().unwrap_or(Path::new("")).to_owned();
    let copy = BranchCopy::new(tree, end);
    let (header, path) = forked(source, cwd, &folder, now_ms);
    if copy.has_conversation() {
        let written = copy.create(disk, &header, &path);
        let n_lost = written.map_err(|error| OpenError::Copy { path: path.clone(), error })?;
        return Ok(ForkedBranch { open: OpenSession::File(path), n_lost });
    }
    let lines: Vec<Option<String>> = copy.lines().collect();
    let n_lost = lines.iter().filter(|line| line.is_none()).count();
    let lines = lines.into_iter().flatten().collect();
    let open = OpenSession::Forked { folder, parent: source.to_owned(), lines };
    Ok(ForkedBranch { open, n_lost })
}

/// What becomes of text that looks like a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// Secrets stay in the copy.
    Keep,
    /// A placeholder takes the place of each.
    Mask,
}

/// Writes the active branch to a file that does not exist yet. Returns how many entries
/// are missing because they could not be read.
pub(super) fn export_branch(
    disk: &dyn Disk,
    tree: &SessionTree,
    header: &Header,
    now_ms: u64,
    secrets: Secrets,
    path: &Path,
) -> io::Result<usize> {
    let (copy, header) = exported(tree, header, now_ms, secrets);
    copy.create(disk, &header, path)
}

/// Like an export to a file, to any writer.
///
/// # Errors
/// If writing fails.
pub fn write_branch(
    tree: &SessionTree,
    header: &Header,
    now_ms: u64,
    secrets: Secrets,
    out: impl io::Write,
) -> io::Result<usize> {
    let (copy, header) = exported(tree, header, now_ms, secrets);
    copy.write(&header, out)
}

fn exported<'t>(
    tree: &'t SessionTree,
    header: &Header,
    now_ms: u64,
    secrets: Secrets,
) -> (BranchCopy<'t>, Header) {
    let timestamp = clock::iso8601(now_ms);
    let header = Header { parent_session: None, timestamp, ..header.clone() };
    let copy = BranchCopy::export(tree);
    match secrets {
        Secrets::Keep => (copy, header),
        Secrets::Mask => (copy.changed_by(mask_line), header),
    }
}

/// Whether `source` is a session file that can be imported. Blocks.
///
/// # Errors
/// If it is missing, not a regular file, or does not begin like a session.
pub fn check_import(source: &Path) -> Result<(), OpenError> {
    if !source.try_exists().unwrap_or(true) {
        return Err(OpenError::Missing { path: source.to_owned() });
    }
    store::check_file(source)?;
    match store::read_header(source) {
        Some(_) => Ok(()),
        None => Err(OpenError::NotASession { path: source.to_owned() }),
    }
}

/// Copies the session file `source` into `folder` under its name, or a similar one that is
/// free. Returns the copy.
pub(super) fn import(disk: &dyn Disk, source: &Path, folder: &Path) -> Result<PathBuf, OpenError> {
    let source = &std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
    check_import(source)?;
    let copy_error = |error| OpenError::Copy { path: folder.to_owned(), error };
    atomic_file::create_private_folder(folder).map_err(copy_error)?;
    let read_error = |error| OpenError::Read { path: source.clone(), error };
    let mut file = std::fs::File::open(source).map_err(read_error)?;
    let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let copies = (0_u64..)
        .map(|n| folder.join(if n == 0 { format!("{stem}.jsonl") } else { format!("{stem}-{n}.jsonl") }));
    let copied = atomic_file::create_new(disk, copies, |out| io::copy(&mut file, out));
    copied.map(|(copy, _)| copy).map_err(copy_error)
}

/// What the user wrote, as it was typed, if the entry is something to be sent anew.
pub fn prompt_of(entry: &Entry) -> Option<PromptDraft> {
    let content = match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
            Message::User(user) => &user.content,
            Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => return None,
        },
        EntryBody::CustomMessage(message) => message.content.as_ref()?,
        _ => return None,
    };
    let text = content.text();
    let text = SkillBlock::parse(&text).map(|block| block.command()).unwrap_or(text);
    let images = match content {
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Image(image) => Some(image.clone()),
                _ => None,
            })
            .collect(),
        UserContent::Text(_) => Vec::new(),
    };
    Some(PromptDraft { text, images, ..PromptDraft::default() })
}
