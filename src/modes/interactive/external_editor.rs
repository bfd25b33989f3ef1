//! The user's own editor, on a text in a temporary file.

use std::io::Write as _;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::config::Env;
use crate::util::os;

/// How long an editor may take to end by itself after a signal that it may have received too. A second one
/// would keep some from saving what they have.
const OWN_SIGNAL: Duration = Duration::from_millis(300);
/// The same after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(1);

/// An editor that has the terminal. If it is dropped, it keeps running.
pub(super) struct ExternalEditor {
    command: String,
    before: String,
    file: NamedTempFile,
    child: Child,
}

impl ExternalEditor {
    /// Opens `text` in the command line `editor`, or that of the environment.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(text: &str, editor: Option<&str>, env: &Env) -> Result<Self, String> {
        let editor = editor.map(str::trim).filter(|editor| !editor.is_empty()).map(str::to_owned);
        let editor = editor.or_else(|| env.get("VISUAL")).or_else(|| env.get("EDITOR"));
        let command = editor.unwrap_or_else(|| "nano".to_owned());
        let mut file =
            tempfile::Builder::new().prefix("pi-").suffix(".md").tempfile().map_err(|e| e.to_string())?;
        file.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        // The variable may contain a command line, such as `code --wait`.
        let child = Command::new("sh")
            // The shell waits for the editor, which may save something at the end, and commands do not inherit its
            // traps.
            .args(["-c", &format!("trap : HUP TERM; {command} \"$1\""), "sh"])
            .arg(file.path())
            .spawn()
            .map_err(|error| format!("cannot start {command}: {error}"))?;
        Ok(Self { command, before: text.to_owned(), file, child })
    }

    /// Waits until it ends. Cancel safe.
    ///
    /// # Errors
    /// Why its text does not count.
    pub(super) async fn ended(&mut self) -> Result<(), String> {
        let command = &self.command;
        let status =
            self.child.wait().await.map_err(|error| format!("cannot wait for {command}: {error}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!(
            "{command} exited with {status}; set externalEditor, VISUAL or EDITOR to use another editor"
        ))
    }

    /// Ends it, because pi ends. An editor that does not is left alone: it may have unsaved text.
    pub(super) async fn end(&mut self) {
        if timeout(OWN_SIGNAL, self.child.wait()).await.is_ok() {
            return;
        }
        let pid = self.child.id();
        let ended = timeout(END_LIMIT, async {
            if let Some(pid) = pid {
                // Looks at all processes of the system.
                spawn_blocking(move || os::ask_to_end(pid)).await.unwrap_or_default();
            }
            self.child.wait().await
        });
        if ended.await.is_err() {
            self.file.disable_cleanup(true);
        }
    }

    /// The text as it was last saved.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn text(&self) -> Result<String, String> {
        let text = std::fs::read_to_string(self.file.path()).map_err(|error| error.to_string())?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// The same if it was saved since the start.
    pub(super) fn changed_text(&self) -> Option<String> {
        let before = self.before.strip_suffix('\n').unwrap_or(&self.before);
        self.text().ok().filter(|text| text != before)
    }
}
