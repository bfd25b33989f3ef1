//! Opens a session: its file, its selection, and its project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::agent::ToolRegistry;
use crate::ai::{Credential, Extra, Message, Model};
use crate::config::CredentialError;
use crate::tools::SessionVars;
use crate::util::clock;
use crate::util::disk::Disk;

use super::deferred::DeferredEntries;
use super::draft_file::DraftFile;
use super::project_context::{ProjectContext, TrustOverrides};
use super::projection::{self, Selected};
use super::queue_file::QueueFile;
use super::services::Services;
use super::state::SessionState;
use super::store::{self, DamagedLine, Entry, EntryBody, Header, OpenError, SessionMessage, SessionStore};
use super::summary_draft::{SummaryDraft, SummaryFile};

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenSession {
    /// A new session in the directory it is opened in.
    New,
    /// A new session with this id, which [`OpenSession::with_id`] has checked.
    WithId(String),
    /// Continues the session in this file.
    File(PathBuf),
    /// A new session in `folder` that begins with entries of another.
    Forked {
        /// The folder of its file.
        folder: PathBuf,
        /// File of the other session.
        parent: PathBuf,
        /// The entries as lines, oldest first.
        lines: Vec<String>,
    },
}

impl OpenSession {
    /// A new session with the id `id`.
    ///
    /// # Errors
    /// If a file's name cannot contain it; the text says what an id is made of.
    pub fn with_id(id: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins_well = id.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && id.len() <= MAX_ID_BYTES && id.chars().all(is_plain) {
            return Ok(Self::WithId(id.to_owned()));
        }
        Err(format!(
            "\"{id}\" cannot be the id of a session; use up to {MAX_ID_BYTES} letters, digits, dots, dashes and underscores, a letter or digit first"
        ))
    }
}

/// File names have at most 255 bytes, and begin with the time.
const MAX_ID_BYTES: usize = 128;

/// Larger files are shown by their end before they are scanned.
const LARGE_BYTES: u64 = 1 << 20;

pub(super) struct OpenedSession {
    pub(super) store: SessionStore,
    /// The session's own directory is authoritative.
    pub(super) cwd: PathBuf,
    pub(super) store_selected: Selected,
    pub(super) queue_file: QueueFile,
    pub(super) draft_file: DraftFile,
    /// With the summary that an earlier process left.
    pub(super) summary: (SummaryFile, Option<SummaryDraft>),
    pub(super) deferred_entries: DeferredEntries,
    pub(super) project: ProjectContext,
    /// Created for this session.
    pub(super) tools: ToolRegistry,
}

/// The data of a large session available before its file is read.
pub(super) struct Preview {
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    /// The last entries of its branch.
    pub(super) tail: Vec<Arc<Entry>>,
}

/// Reads the header and the end of a large session file; `None` if the
/// session is new or small enough to open at once.
pub(super) fn preview(open: &OpenSession, cwd: &Path) -> Result<Option<Preview>, OpenError> {
    let OpenSession::File(path) = open else { return Ok(None) };
    let len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if len <= LARGE_BYTES {
        return Ok(None);
    }
    let header = store::read_header(path).ok_or_else(|| OpenError::NotASession { path: path.clone() })?;
    let cwd = directory(&header.cwd, cwd);
    check_directory(&cwd)?;
    let tail = SessionStore::peek_tail(path).unwrap_or_default();
    Ok(Some(Preview { id: header.id, cwd, tail }))
}

/// Opens a session without blocking the caller's thread. `overrides` are the trust
/// decisions of this process.
pub(super) async fn open(
    services: &Arc<Services>,
    cwd: &Path,
    open: OpenSession,
    overrides: &TrustOverrides,
) -> Result<OpenedSession, OpenError> {
    let services = Arc::clone(services);
    let (cwd, overrides) = (cwd.to_owned(), overrides.clone());
    let opened = tokio::task::spawn_blocking(move || open_blocking(&services, cwd, open, &overrides)).await;
    opened.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn open_blocking(
    services: &Services,
    cwd: PathBuf,
    open: OpenSession,
    overrides: &TrustOverrides,
) -> Result<OpenedSession, OpenError> {
    let header = || new_header(&cwd, services.clock.now_ms());
    let disk = Arc::clone(&services.disk);
    let mut store = match open {
        OpenSession::New | OpenSession::WithId(_) => {
            let mut header = header();
            if let OpenSession::WithId(id) = open {
                header.id = id;
            }
            let name = store::file_name(&header.timestamp, &header.id);
            let path = services.sessions.as_ref().map(|folder| folder.join(name));
            SessionStore::create_on(disk, header, path)
        }
        OpenSession::Forked { folder, parent, lines } => {
            let parent_session = Some(parent.to_string_lossy().into_owned());
            let header = Header { parent_session, ..header() };
            let path = folder.join(store::file_name(&header.timestamp, &header.id));
            let mut store = SessionStore::create_on(disk, header, Some(path));
            for entry in lines.iter().filter_map(|line| Entry::parse(line).ok()) {
                // Nothing is written before somebody says something.
                drop(store.append_entry(entry));
            }
            store
        }
        OpenSession::File(path) if !path.try_exists().unwrap_or(true) => {
            return Err(OpenError::Missing { path });
        }
        OpenSession::File(path) => SessionStore::open_on(disk, &path, header)?,
    };
    let cwd = directory(&store.header().cwd, &cwd);
    check_directory(&cwd)?;
    let project = ProjectContext::read(services, &services.settings.get(), &cwd, overrides);
    let store_selected = projection::selected(&store.selecting_entries());
    // If another process has the session open, its sidecar files belong to that process.
    let ours = store.path().filter(|_| store.locked_by().is_none()).map(Path::to_owned);
    let disk = &services.disk;
    let mut draft_file = DraftFile::open(disk, ours.as_deref(), &cwd);
    let mut queue_file = QueueFile::open(disk, ours.as_deref(), draft_file.held());
    store.report(draft_file.take_problem().into_iter().chain(queue_file.take_problem()));
    let summary = SummaryFile::open(disk, ours.as_deref());
    let deferred_entries = append_deferred(&mut store, disk, ours.as_deref());
    let tools = services.tools.for_session();
    Ok(OpenedSession {
        store,
        cwd,
        store_selected,
        queue_file,
        draft_file,
        summary,
        deferred_entries,
        project,
        tools,
    })
}

/// Appends entries that an earlier process showed as finished and could not append.
fn append_deferred(
    store: &mut SessionStore,
    disk: &Arc<dyn Disk>,
    session: Option<&Path>,
) -> DeferredEntries {
    let mut deferred = DeferredEntries::open(disk, session);
    store.report(deferred.take_problems());
    let entries = deferred.take();
    if !entries.is_empty() {
        let mut all_written = true;
        for entry in entries.into_iter().filter(|entry| !store.contains(&entry.id)).collect::<Vec<_>>() {
            all_written &= store.append_entry(entry).1.is_ok();
        }
        if all_written {
            deferred.forget();
        }
    }
    deferred
}

/// The directory that a header names, for a pi in `cwd`. A header has only text, so a path with other bytes is known
/// in its directory alone.
fn directory(header_cwd: &str, cwd: &Path) -> PathBuf {
    let is_here = header_cwd.is_empty() || header_cwd == cwd.to_string_lossy();
    if is_here { cwd.to_owned() } else { PathBuf::from(header_cwd) }
}

fn check_directory(cwd: &Path) -> Result<(), OpenError> {
    let name = || cwd.display().to_string();
    match std::fs::metadata(cwd) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(OpenError::NoAccess { cwd: name() })
        }
        Ok(_) | Err(_) => Err(OpenError::NoDirectory { cwd: name() }),
    }
}

pub(super) fn new_header(cwd: &Path, now_ms: u64) -> Header {
    Header {
        version: 3,
        id: Uuid::now_v7().to_string(),
        timestamp: clock::iso8601(now_ms),
        cwd: cwd.to_string_lossy().into_owned(),
        parent_session: None,
        extra: Extra::new(),
    }
}

/// The key for `model`, or no key if finding it needs the network: then the
/// provider finds it when a request is sent.
pub(super) async fn credential(
    services: &Arc<Services>,
    model: &Arc<Model>,
) -> Result<Credential, CredentialError> {
    services.credentials.prepare(model, &services.catalog.get()).await
}

/// Environment variables that describe the session to the model's commands.
pub(super) fn session_vars(state: &SessionState) -> SessionVars {
    SessionVars {
        id: Some(state.id.clone()),
        file: state.path.clone(),
        provider: Some(state.model.provider.clone()),
        model: Some(state.model.id.clone()),
        reasoning_level: Some(state.thinking.name().to_owned()),
    }
}

/// Whether two paths are the same file, which may not exist yet.
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    a == b || canonical(a).is_some_and(|a| canonical(b) == Some(a))
}

/// Whether the conversation ends in the middle of a run: pi ended before the answer
/// was complete, or before a failed request was repeated. `tail` is the end of the
/// active branch.
pub(super) fn is_cut_off(tail: &[Arc<Entry>]) -> bool {
    let hidden = tail.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::ContextEdit(edit) if edit.replacement.is_none() => Some(&edit.target_id),
        _ => None,
    });
    let last = tail.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => Some((entry, message)),
        _ => None,
    });
    last.is_some_and(|(entry, message)| match &**message {
        Message::User(_) | Message::ToolResult(_) => true,
        Message::Assistant(answer) if answer.is_failed() => hidden == Some(&entry.id),
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        Message::System(_) => false,
    })
}

/// Describes unreadable lines and their kind; `None` if there are none.
pub fn damage(lines: &[DamagedLine]) -> Option<String> {
    let named = store::name_lines(lines)?;
    Some(format!("{named} of the session file could not be read; the rest is intact"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_named_by_its_lines() {
        assert_eq!(damage(&[]), None);
        let check = |lines: &[usize], expected: &str| {
            let lines: Vec<DamagedLine> =
                lines.iter().map(|line| DamagedLine { line: *line, what: None }).collect();
            assert_eq!(damage(&lines).as_deref(), Some(expected));
        };
        check(&[118], "line 118 of the session file could not be read; the rest is intact");
        check(&[1, 2, 3, 4, 5, 6], "lines 1-6 of the session file could not be read; the rest is intact");
    }
}
