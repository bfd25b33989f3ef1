//! `/export`: looks for secrets, then writes the session, on a thread that may wait.

use crate::session::{Reply, SecretReport, Secrets, SessionCommand};
use crate::tui::widgets::ListState;

use super::super::export::{Exported, FileExport};
use super::effects::Effects;
use super::msg::{EffectDone, WorldEffect};
use super::overlays::{Confirmation, DialogOutcome};

/// An export the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportRequest {
    pub(super) file: FileExport,
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
            let exported = request.file.write(&handle, (&state, tree), home.as_deref()).await;
            drop(done.send(match exported {
                Ok(Exported::Found(found)) => EffectDone::SecretsFound { request, found },
                Ok(Exported::Written(text)) => EffectDone::Notice(text),
                Ok(Exported::Reported) => return,
                Err(error) => EffectDone::CommandFailed { line: request.line, error },
            }));
        });
    }
}

/// Asks what becomes of secrets before they are written to a file.
pub(super) fn question(request: &ExportRequest, found: &SecretReport) -> Confirmation {
    let lines = found.lines().join("\n");
    let about = format!(
        "Parts of the session look like secrets. Everybody who gets the file can read them.\n\n{lines}"
    );
    let proceed = |secrets| {
        let file = FileExport { secrets: Some(secrets), ..request.file.clone() };
        let decided = ExportRequest { file, line: request.line.clone() };
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
