//! Standard output and error, which may be closed at any time.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::session::Header;
use crate::util::escapes::without_escapes;
use crate::util::paths::with_tilde;
use crate::util::visible::spell_out;

use super::exit;

/// A delay too short to need an explanation.
const NOTICEABLE: Duration = Duration::from_millis(300);

/// Which standard streams are a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminals {
    pub stdin: bool,
    pub stdout: bool,
}

impl Terminals {
    pub fn detect() -> Self {
        Self { stdin: io::stdin().is_terminal(), stdout: io::stdout().is_terminal() }
    }

    /// Whether the user can interact.
    pub fn can_interact(self) -> bool {
        self.stdin && self.stdout
    }
}

/// Why text for standard output was lost.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes to standard output. A terminal receives no escape sequences or control
/// characters, because the text may come from a model or a server; a file or another
/// program receives the text unchanged. A closed pipe is not an error; [`after_output`] reports
/// others.
pub(super) fn write_out(text: &str) {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { without_escapes(text) } else { text.into() };
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // The first reason is as good as a later one.
            drop(LOST.set(error));
        }
        _ => {}
    }
}

/// The exit code of a program that would end with `code`: a failure, with a report, if text for
/// standard output could not be written, for example to a full disk.
pub fn after_output(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    write_err(&format!("pi: cannot write to standard output: {error}"));
    ExitCode::from(exit::FAILED)
}

/// The first line of a session file.
pub(super) fn header_line(header: &Header) -> String {
    let mut line = serde_json::json!({ "type": "session" });
    if let (Value::Object(line), Ok(Value::Object(fields))) = (&mut line, serde_json::to_value(header)) {
        line.extend(fields);
    }
    line.to_string()
}

/// Writes a line to standard error. The text may come from a server, so escape
/// sequences and control characters are removed.
pub(super) fn write_err(text: &str) {
    drop(writeln!(io::stderr().lock(), "{}", without_escapes(text)));
}

/// How to resume a session, which is in `folder` if that is not the usual one: the command has a line of
/// its own, so that a triple click selects it.
pub(super) fn resume_line(id: &str, folder: Option<&Path>) -> String {
    let folder = folder.map(|folder| format!(" --session-dir {}", folder.display())).unwrap_or_default();
    format!("To resume this session:\npi{folder} --session {id}")
}

/// Waits for a token renewal, and prints a message if that takes a while.
pub async fn tell_if_slow(settled: impl Future<Output = ()>) {
    let mut settled = pin!(settled);
    if tokio::time::timeout(NOTICEABLE, &mut settled).await.is_err() {
        write_err("pi: saving a renewed sign-in; press ctrl+c to exit without saving it");
        settled.await;
    }
}

/// Reports the error that ended the program: `pi: what: why`. Paths are shown with `~` for
/// `home`.
pub fn report_error(error: &anyhow::Error, home: Option<&Path>) -> ExitCode {
    write_err(&with_tilde(&format!("pi: {}", one_line(error)), home));
    exit::after_error(error)
}

/// Reports `problem` and ends the program, whose other threads do not answer.
#[expect(clippy::exit, reason = "the main thread waits for a disk that does not respond")]
pub fn give_up(problem: &impl Display, home: Option<&Path>) {
    write_err(&with_tilde(&format!("pi: {problem}"), home));
    std::process::exit(exit::FAILED.into());
}

/// The error with its causes. The text of some errors contains that of their cause, which is not
/// repeated.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(&[": ", &cause].concat());
        }
    }
    text
}

/// Prints notes for the user before anything starts, one line each.
pub fn report_notes(notes: &[String]) {
    for note in notes {
        write_err(&format!("pi: {}", spell_out(note, Some(" ")).0));
    }
}

/// Prints help, the version, or an error in the command line.
pub fn report_usage(text: &impl Display, is_error: bool) -> ExitCode {
    if is_error {
        write_err(text.to_string().trim_end());
        return ExitCode::from(exit::USAGE);
    }
    write_out(&text.to_string());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn cause_that_is_in_the_text_is_not_repeated() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot write a: {source}")]
        struct Failed {
            source: io::Error,
        }
        let failed = || Failed { source: io::ErrorKind::PermissionDenied.into() };
        assert_eq!(one_line(&failed().into()), "cannot write a: permission denied");
        let error = Err::<(), _>(failed()).context("saving").unwrap_err();
        assert_eq!(one_line(&error), "saving: cannot write a: permission denied");
    }
}
