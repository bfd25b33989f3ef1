//! The user's own editor, on a text in a temporary file.

use std::fs;
use std::io::{self, Write as _};
use std::process::ExitStatus;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::config::{Env, Settings};
use crate::util::os;

/// Editors that pi looks for if the user names none, in this order.
const EDITORS: [&str; 3] = ["nano", "vim", "vi"];

/// What a shell exits with if there is no such command.
const NOT_FOUND: i32 = 127;

/// How long an editor may take to end by itself after a signal that it may have received too. A second one
/// would keep some from saving what they have.
const OWN_SIGNAL: Duration = Duration::from_millis(300);
/// The same after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(1);

/// The command line that edits a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditorCommand {
    pub(super) line: String,
    pub(super) source: EditorSource,
}

/// What names an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditorSource {
    Setting,
    Variable(&'static str),
    /// Nothing: it is the first of [`EDITORS`] that is installed.
    Default,
}

impl EditorCommand {
    /// That of the setting, of the environment, or one that is installed.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(settings: &Settings, env: &Env) -> Result<Self, String> {
        let of_setting = || Some((settings.external_editor.clone()?, EditorSource::Setting));
        let of_variable = |name| Some((env.get(name)?, EditorSource::Variable(name)));
        let named = of_setting().into_iter().chain(["VISUAL", "EDITOR"].into_iter().filter_map(of_variable));
        let mut named = named.filter(|(line, _)| !line.trim().is_empty());
        let (line, source) = named
            .next()
            .or_else(|| Some((installed(env)?.to_owned(), EditorSource::Default)))
            .ok_or_else(none_found)?;
        Ok(Self { line: line.trim().to_owned(), source })
    }
}

/// The editor that is used if the user names none.
fn installed(env: &Env) -> Option<&'static str> {
    // There the shell that starts it has a search path of its own.
    let is_there = |name: &&str| cfg!(windows) || env.find_program(name).is_some();
    EDITORS.into_iter().find(is_there)
}

/// What to do without an editor.
fn none_found() -> String {
    let [first, second, third] = EDITORS;
    format!("no editor found; install {first}, {second} or {third}, or set externalEditor, VISUAL or EDITOR")
}

/// How the time ended in which an editor had the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// With this text, as it was last saved.
    Text(String),
    /// Without a text, for this reason.
    Failed(String),
    /// pi must end with the exit code; `saved` is the text if it was saved since the start.
    Ending { code: u8, saved: Option<String> },
}

/// An editor that has the terminal. If it is dropped, it keeps running.
pub(super) struct ExternalEditor {
    command: String,
    before: String,
    file: NamedTempFile,
    child: Child,
}

impl ExternalEditor {
    /// Opens `text` in the command line `command`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(text: &str, command: &str) -> Result<Self, String> {
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
        Ok(Self { command: command.to_owned(), before: text.to_owned(), file, child })
    }

    /// Waits until it ends. Cancel safe.
    ///
    /// # Errors
    /// If the system cannot wait for it.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
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

    /// Returns the text that the editor saved, after it ended with this status.
    ///
    /// # Errors
    /// If the editor failed, or the text cannot be read. What was saved stays in the file then, and the error
    /// contains its path.
    pub(super) fn text_after(&mut self, ended: &io::Result<ExitStatus>) -> Result<String, String> {
        let (command, read) = (self.command.clone(), fs::read(self.file.path()));
        let is_same = read.as_ref().is_ok_and(|saved| self.is_start(saved));
        match (ended, read) {
            (Ok(status), Ok(saved)) if status.success() => String::from_utf8(saved)
                .map(without_last_break)
                .map_err(|_| self.keep(&format!("the text that {command} saved is not UTF-8"))),
            (Ok(status), _) if !status.success() && is_same => {
                let is_missing = status.code() == Some(NOT_FOUND);
                let problem = if is_missing { "was not found" } else { "failed" };
                Err(format!(
                    "{command} {problem} ({status}); set externalEditor, VISUAL or EDITOR to use another editor"
                ))
            }
            (Ok(status), Ok(_)) => Err(self.keep(&format!("{command} failed ({status})"))),
            (Ok(_), Err(error)) => {
                self.file.disable_cleanup(true);
                Err(format!("cannot read {}, the text for {command}: {error}", self.file.path().display()))
            }
            (Err(error), _) => Err(self.keep(&format!("cannot wait for {command}: {error}"))),
        }
    }

    /// The text as it was last saved, if that was since the start. Bytes that are not UTF-8 are replaced
    /// in it, and stay in the file.
    pub(super) fn saved_text(&mut self) -> Option<String> {
        let saved = fs::read(self.file.path()).ok().filter(|saved| !self.is_start(saved))?;
        let text = String::from_utf8(saved).unwrap_or_else(|error| {
            self.file.disable_cleanup(true);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        Some(without_last_break(text))
    }

    /// Whether this is the text that the editor began with.
    fn is_start(&self, saved: &[u8]) -> bool {
        let before = self.before.as_bytes();
        saved.strip_suffix(b"\n").unwrap_or(saved) == before.strip_suffix(b"\n").unwrap_or(before)
    }

    /// Keeps the file, and adds its name to why that is necessary.
    fn keep(&mut self, why: &str) -> String {
        self.file.disable_cleanup(true);
        format!("{why}; the text is in {}", self.file.path().display())
    }
}

/// Editors end the last line.
fn without_last_break(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// What comes of an editor that runs this script on a file with `before`, and the file.
    async fn after(script: &str) -> (Result<String, String>, Option<String>, PathBuf) {
        let editor = format!("sh -c '{script}' editor");
        let mut editor = ExternalEditor::start("before", &editor).unwrap();
        let ended = editor.ended().await;
        let path = editor.file.path().to_owned();
        (editor.text_after(&ended), editor.saved_text(), path)
    }

    /// Checks that the file stays, has these bytes and is named.
    fn check_kept(path: &Path, error: &str, bytes: &[u8]) {
        assert_eq!(fs::read(path).unwrap(), bytes, "{error}");
        assert!(error.ends_with(&format!("the text is in {}", path.display())), "{error}");
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn text_is_what_was_saved_without_the_last_line_break() {
        let (text, saved, path) = after(r#"printf "one\\ntwo\\n" > "$1""#).await;
        assert_eq!((text, saved), (Ok("one\ntwo".to_owned()), Some("one\ntwo".to_owned())));
        assert!(!path.exists());
        let (text, saved, _) = after("true").await;
        assert_eq!((text, saved), (Ok("before".to_owned()), None));
        // Editors that replace the file.
        let (text, ..) = after(r#"printf new > "$1.new"; mv "$1.new" "$1""#).await;
        assert_eq!(text, Ok("new".to_owned()));
    }

    #[tokio::test]
    async fn text_in_another_encoding_stays_in_its_file() {
        let (text, saved, path) = after(r#"printf "caf\\351" > "$1""#).await;
        let error = text.unwrap_err();
        assert!(error.contains("saved is not UTF-8"), "{error}");
        assert_eq!(saved.as_deref(), Some("caf\u{fffd}"));
        check_kept(&path, &error, b"caf\xe9");
    }

    #[tokio::test]
    async fn text_of_an_editor_that_fails_stays_in_its_file_if_it_was_saved() {
        for end in ["exit 3", "kill -9 $$"] {
            let (text, saved, path) = after(&format!(r#"printf mine > "$1"; {end}"#)).await;
            let error = text.unwrap_err();
            assert!(error.contains(" failed (exit status: "), "{error}");
            assert_eq!(saved.as_deref(), Some("mine"));
            check_kept(&path, &error, b"mine");
        }
        // As with `:cq`.
        let (text, saved, path) = after("exit 1").await;
        assert!(text.unwrap_err().ends_with("VISUAL or EDITOR to use another editor"));
        assert_eq!(saved, None);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn editor_that_is_not_there_is_told_from_one_that_fails() {
        let mut editor = ExternalEditor::start("before", "no-such-editor --wait 2>&-").unwrap();
        let ended = editor.ended().await;
        let error = editor.text_after(&ended).unwrap_err();
        assert!(error.starts_with("no-such-editor --wait 2>&- was not found ("), "{error}");
    }

    #[test]
    fn editor_is_the_users_choice_or_the_first_that_is_installed() {
        let bin = tempfile::tempdir().unwrap();
        let path = bin.path().to_str().unwrap();
        let command = |setting: Option<&str>, variables: &[(&str, &str)]| {
            let settings = Settings { external_editor: setting.map(str::to_owned), ..Settings::default() };
            EditorCommand::of(&settings, &Env::of(&[variables, &[("PATH", path)]].concat()))
                .map(|command| (command.line, command.source))
        };
        let found = |line: &str, source| Ok((line.to_owned(), source));
        let problem = command(None, &[("VISUAL", " ")]).unwrap_err();
        assert!(problem.starts_with("no editor found; install nano, vim or vi, or set "), "{problem}");
        for name in ["vi", "vim", "nano"] {
            fs::write(bin.path().join(name), "").unwrap();
            assert_eq!(command(None, &[]), found(name, EditorSource::Default));
        }
        let both = [("EDITOR", "ed"), ("VISUAL", "code --wait")];
        assert_eq!(command(None, &both), found("code --wait", EditorSource::Variable("VISUAL")));
        assert_eq!(command(Some(" "), &both[..1]), found("ed", EditorSource::Variable("EDITOR")));
        assert_eq!(command(Some(" mine -x "), &both), found("mine -x", EditorSource::Setting));
    }

    #[tokio::test]
    async fn error_says_that_a_text_is_gone() {
        let (text, saved, _) = after(r#"rm "$1""#).await;
        let error = text.unwrap_err();
        assert!(error.starts_with("cannot read ") && !error.contains("the text is in"), "{error}");
        assert_eq!(saved, None);
    }
}
