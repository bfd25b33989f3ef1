//! `/export`: looks for secrets, then writes the session, on a thread that may wait.

use std::io;
use std::path::PathBuf;

use crate::ai::Extra;
use crate::session::{Header, Reply, SecretReport, Secrets, SessionCommand, SessionState, SessionTree};
use crate::tui::widgets::ListState;
use crate::util::paths;

use super::super::export::{ExistingFile, ExportFormat, ExportSource, default_file};
use super::effects::Effects;
use super::msg::{EffectDone, WorldEffect};
use super::overlays::{Confirmation, DialogOutcome};

/// Why nothing is written.
const OTHER_SESSION: &str = "another session was opened meanwhile";

/// An export the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportRequest {
    /// The session it is about.
    pub(super) session_id: String,
    /// `None` for a name made of the session's.
    pub(super) path: Option<PathBuf>,
    pub(super) format: ExportFormat,
    /// `None` if nobody decided yet.
    pub(super) secrets: Option<Secrets>,
    /// The command, without its slash: it returns to the editor if nothing can be written.
    pub(super) line: String,
}

impl Effects {
    /// Writes the session, or asks about secrets first.
    pub(super) fn export(&self, request: ExportRequest) {
        let handle = self.link.handle().clone();
        let (state, home, done) = (handle.state(), self.services.dirs.home.clone(), self.done.clone());
        // Sent here and not in the task, so that commands keep their order.
        let answer = handle.post(SessionCommand::ReadTree);
        tokio::spawn(async move {
            let Ok(Reply::Tree(tree)) = answer.await else { return };
            let ExportRequest { session_id, path, format, secrets, line } = request.clone();
            let failed = |error: String| EffectDone::CommandFailed { line: line.clone(), error };
            if session_id != state.id || session_id != tree.session_id() {
                return drop(done.send(failed(OTHER_SESSION.to_owned())));
            }
            let source = source(&state, tree);
            if source.tree.is_empty() {
                return drop(done.send(failed("there is nothing to export yet".to_owned())));
            }
            let (secrets, source) = match secrets {
                Some(secrets) => (secrets, source),
                None => {
                    let look = move || (source.secrets(format), source);
                    let Ok((found, source)) = tokio::task::spawn_blocking(look).await else { return };
                    if !found.is_empty() {
                        return drop(done.send(EffectDone::SecretsFound { request, found }));
                    }
                    (Secrets::Keep, source)
                }
            };
            let path = path.unwrap_or_else(|| default_file(&state.cwd, state.path.as_deref(), &state.id));
            if format == ExportFormat::Session {
                if session_id != handle.state().id {
                    return drop(done.send(failed(OTHER_SESSION.to_owned())));
                }
                // The session knows its header, and reports what it did.
                if let Err(error) = handle.request(SessionCommand::Export { path, secrets }).await {
                    drop(done.send(failed(error.to_string())));
                }
                return;
            }
            let shown = paths::display(&path, home.as_deref());
            let write = move || source.write_file(format, secrets, 0, &path, ExistingFile::Keep);
            let Ok(written) = tokio::task::spawn_blocking(write).await else { return };
            drop(done.send(match written {
                Ok(0) => EffectDone::Notice(format!("Exported the session to {shown}.")),
                Ok(n_lost) => EffectDone::Notice(format!(
                    "Exported the session to {shown}. Entries that could not be read are missing: {n_lost}."
                )),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    failed(format!("{shown} exists already; choose another name"))
                }
                Err(error) => failed(format!("cannot write {shown}: {error}")),
            }));
        });
    }
}

fn source(state: &SessionState, tree: SessionTree) -> ExportSource {
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

/// Asks what becomes of secrets before they are written to a file.
pub(super) fn question(request: &ExportRequest, found: &SecretReport) -> Confirmation {
    let lines = found.lines().join("\n");
    let about = format!(
        "Parts of the session look like secrets. Everybody who gets the file can read them.\n\n{lines}"
    );
    let proceed = |secrets| {
        let decided = ExportRequest { secrets: Some(secrets), ..request.clone() };
        Some(DialogOutcome::Effect(WorldEffect::Export(decided).into()))
    };
    Confirmation {
        title: "Export secrets?",
        about: about.into(),
        leave: "Don't export",
        proceed: vec![
            ("Mask them and export", proceed(Secrets::Mask)),
            ("Export with the secrets", proceed(Secrets::Keep)),
        ],
        list: ListState::default(),
    }
}
