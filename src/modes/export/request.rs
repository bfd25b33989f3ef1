//! Writes a session that is open to a file, at the user's wish.

use std::io;
use std::path::{Path, PathBuf};

use crate::ai::Extra;
use crate::session::{
    EntryKind, Header, SecretReport, Secrets, SessionCommand, SessionHandle, SessionState, SessionTree,
};
use crate::util::{paths, worker};

use super::{ExistingFile, ExportFormat, ExportSource, default_file};

/// Why nothing is written.
pub(super) const OTHER_SESSION: &str = "another session was opened meanwhile";

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct FileExport {
    /// The session it is about.
    pub(in super::super) session_id: String,
    /// `None` for a name made of the session's.
    pub(in super::super) path: Option<PathBuf>,
    pub(in super::super) format: ExportFormat,
    /// `None` if nobody decided yet.
    pub(in super::super) secrets: Option<Secrets>,
}

/// What became of an export.
#[derive(Debug)]
pub(in super::super) enum Exported {
    /// Nothing is written before the user decides about these.
    Found(SecretReport),
    /// The file is written; the text says where.
    Written(String),
    /// The session wrote the file and reports that.
    Reported,
}

impl FileExport {
    /// An export of this session to the file that the user named, or to one with a name of its own.
    pub(in super::super) fn new(session_id: &str, path: Option<PathBuf>) -> Self {
        let format = path.as_deref().and_then(ExportFormat::of_file).unwrap_or(ExportFormat::Html);
        Self { session_id: session_id.to_owned(), path, format, secrets: None }
    }

    /// Writes the session whose state and tree are given, unless secrets in it wait for a decision.
    ///
    /// # Errors
    /// Why nothing was written.
    pub(in super::super) async fn write(
        &self,
        handle: &SessionHandle,
        (state, tree): (&SessionState, SessionTree),
        home: Option<&Path>,
    ) -> Result<Exported, String> {
        // Without an entry the tree belongs to no session.
        if !has_messages(&tree) {
            return Err("there is nothing to export yet".to_owned());
        }
        if self.session_id != state.id || self.session_id != tree.session_id() {
            return Err(OTHER_SESSION.to_owned());
        }
        let (format, source) = (self.format, source(state, tree));
        let (secrets, source) = match self.secrets {
            Some(secrets) => (secrets, source),
            None => {
                let look = move || (source.secrets(format), source);
                let (found, source) =
                    worker::run("secrets", look).await.map_err(|error| error.to_string())?;
                if !found.is_empty() {
                    return Ok(Exported::Found(found));
                }
                (Secrets::Keep, source)
            }
        };
        let default = || default_file(&state.cwd, state.path.as_deref(), &state.id);
        let path = self.path.clone().unwrap_or_else(default);
        if format == ExportFormat::Session {
            if self.session_id != handle.state().id {
                return Err(OTHER_SESSION.to_owned());
            }
            // The session knows its header.
            let answer = handle.request(SessionCommand::Export { path, secrets }).await;
            return answer.map(|_| Exported::Reported).map_err(|error| error.to_string());
        }
        let shown = paths::display(&path, home);
        let write = move || source.write_file(format, secrets, 0, &path, ExistingFile::Keep);
        match worker::run("export", write).await.map_err(|error| error.to_string())? {
            Ok(0) => Ok(Exported::Written(format!("Exported the session to {shown}"))),
            Ok(n_lost) => Ok(Exported::Written(format!(
                "Exported the session, without entries that could not be read ({n_lost}), to {shown}"
            ))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(format!("{shown} exists already; choose another name"))
            }
            Err(error) => Err(format!("cannot write {shown}: {error}")),
        }
    }
}

/// Whether there is more than a name, a model and the like.
pub(super) fn has_messages(tree: &SessionTree) -> bool {
    let is_message = |kind| {
        matches!(kind, EntryKind::User | EntryKind::Assistant | EntryKind::Bash | EntryKind::OtherMessage)
    };
    (0..tree.len()).any(|idx| is_message(tree.entry(idx).kind))
}

/// What an export of the open session is made of.
pub(super) fn source(state: &SessionState, tree: SessionTree) -> ExportSource {
    let header = Header {
        version: 3,
        id: state.id.clone(),
        timestamp: String::new(),
        cwd: state.cwd.display().to_string(),
        parent_session: None,
        extra: Extra::new(),
    };
    ExportSource { tree, header, name: state.name.clone() }
}
