//! Finds, lists and deletes sessions.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{Error, ErrorCode, ListSessionsResponse, SessionInfo};

use crate::session::{self, FoundSessions, SessionIndex, SessionScope, SessionSummary};
use crate::util::clock;

use super::methods::invalid_params;

/// Sessions of a page.
const PAGE: usize = 50;
/// The program that moves files to the trash, where there is one.
const TRASH: &str = "trash";
/// Longest title, in characters.
const TITLE_CHARS: usize = 80;

/// The folders of sessions.
#[derive(Debug, Clone)]
pub(super) struct SessionPlaces {
    /// Of the sessions of one directory.
    pub(super) folder: PathBuf,
    /// Contains the folders of all directories.
    pub(super) root: PathBuf,
}

/// The file of the session `id`, which works in `cwd`. Blocks.
///
/// # Errors
/// If there is no such session, or it works in another directory.
pub(super) fn find(places: &SessionPlaces, cwd: &Path, id: &str) -> Result<PathBuf, Error> {
    let SessionPlaces { folder, root } = places;
    let FoundSessions { here, elsewhere } = session::find(root, folder, cwd, id);
    // A part of an id is no id, and a folder may contain sessions of any directory.
    let found = here.into_iter().chain(elsewhere).filter_map(|path| {
        let header = session::read_header(&path).filter(|header| header.id == id)?;
        Some((path, header.cwd))
    });
    let mut other = None;
    for (path, works_in) in found {
        if works_in.is_empty() || Path::new(&works_in) == cwd {
            return Ok(path);
        }
        other = Some(works_in);
    }
    if let Some(other) = other {
        return Err(invalid_params(format!("session {id} works in {other}, not in {}", cwd.display())));
    }
    Err(unknown(id))
}

pub(super) fn unknown(id: &str) -> Error {
    Error::new(ErrorCode::ResourceNotFound.into(), format!("there is no session {id}"))
}

/// Deletes the session `id`, wherever it works; one that does not exist is deleted already.
/// Blocks.
///
/// # Errors
/// If it is open elsewhere, or cannot be deleted.
pub(super) fn delete(root: &Path, id: &str) -> Result<(), Error> {
    let FoundSessions { here, elsewhere } = session::find(root, root, Path::new("/"), id);
    let mut found = here.into_iter().chain(elsewhere);
    let is_it = |path: &PathBuf| session::read_header(path).is_some_and(|header| header.id == id);
    let Some(path) = found.find(is_it) else { return Ok(()) };
    let deleted = session::delete_session(&path, TRASH);
    deleted.map(drop).map_err(|error| Error::new(ErrorCode::InvalidRequest.into(), error.to_string()))
}

/// A page of the sessions of `scope`, newest first. Blocks.
///
/// # Errors
/// If the cursor is none that pi made.
pub(super) fn list(
    root: &Path,
    scope: &SessionScope,
    cursor: Option<&str>,
) -> Result<ListSessionsResponse, Error> {
    let after = cursor.map(Cursor::parse).transpose()?;
    let mut index = SessionIndex::load(root);
    index.refresh(scope, &|| false, &mut |_| {});
    let mut sessions = index.sessions(scope);
    sessions.sort_by(|a, b| (b.modified_ms, &b.id).cmp(&(a.modified_ms, &a.id)));
    // Without it the next list takes longer, which is all.
    drop(index.save());
    if let Some(after) = after {
        sessions.retain(|session| after.precedes(session));
    }
    let has_more = sessions.len() > PAGE;
    sessions.truncate(PAGE);
    let next = sessions.last().filter(|_| has_more).map(Cursor::text);
    let sessions = sessions.into_iter().map(info).collect();
    Ok(ListSessionsResponse::new(sessions).next_cursor(next))
}

/// The last session of a page. What changes meanwhile shifts no page.
struct Cursor {
    modified_ms: u64,
    id: String,
}

impl Cursor {
    fn text(session: &SessionSummary) -> String {
        format!("{}-{}", session.modified_ms, session.id)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || invalid_params("session/list: the cursor is none of an earlier page");
        let (modified_ms, id) = text.split_once('-').ok_or_else(wrong)?;
        let modified_ms = modified_ms.parse().map_err(|_| wrong())?;
        Ok(Self { modified_ms, id: id.to_owned() })
    }

    /// Whether `session` comes on a later page.
    fn precedes(&self, session: &SessionSummary) -> bool {
        (session.modified_ms, session.id.as_str()) < (self.modified_ms, self.id.as_str())
    }
}

fn info(session: SessionSummary) -> SessionInfo {
    let title = session.name.or(session.first_message);
    let title = title.map(|title| {
        let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(TITLE_CHARS).collect();
        if short.len() < line.len() { format!("{short}…") } else { short }
    });
    SessionInfo::new(session.id, session.cwd).title(title).updated_at(clock::iso8601(session.modified_ms))
}
