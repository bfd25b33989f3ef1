//! The output of `pi import` and `pi export`. Results go to standard output, notes about
//! losses to standard error, one line each.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::ai::foreign::Report;
use crate::session::{SavedSession, SecretReport};
use crate::util::escapes::without_escapes;

use super::output::{write_err, write_out};

/// Prints the location of the imported session; `resume` is the command that resumes it.
pub fn show_import(saved: &SavedSession, resume: &str, report: &Report) -> ExitCode {
    show_report(report);
    let messages = if saved.n_messages == 1 { "message" } else { "messages" };
    let SavedSession { path, id, n_messages } = saved;
    let path = path.display();
    write_out(&format!(
        "{n_messages} {messages} imported\nfile:    {path}\nsession: {id}\nresume:  {resume}\n"
    ));
    ExitCode::SUCCESS
}

/// Writes an exported conversation to standard output.
pub fn show_export(text: &str, report: &Report) -> ExitCode {
    show_report(report);
    write_out(text);
    ExitCode::SUCCESS
}

/// Reports the file of an exported conversation.
pub fn show_export_file(path: &Path, report: &Report) -> ExitCode {
    show_report(report);
    write_out(&format!("exported to {}\n", path.display()));
    ExitCode::SUCCESS
}

/// Reports secrets in an export, one line per kind.
pub fn show_secrets(report: &SecretReport) {
    for line in report.lines() {
        write_err(&format!("looks like a secret: {line}"));
    }
}

/// Reports kinds of secrets in a request.
pub fn show_secret_kinds(kinds: &[&'static str]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    for (kind, n) in counts {
        write_err(&format!("looks like a secret: {n} × {kind}; --redact masks it"));
    }
}

/// Lets `write` write to standard output. A terminal receives no escape sequences. A closed
/// pipe is not an error.
///
/// # Errors
/// If writing fails for another reason.
pub fn write_export(write: impl FnOnce(&mut dyn Write) -> io::Result<usize>) -> io::Result<usize> {
    let mut out = BufWriter::new(StandardOutput { is_terminal: io::stdout().is_terminal() });
    let written = write(&mut out).and_then(|n_lost| out.flush().map(|()| n_lost));
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        written => written,
    }
}

/// Standard output for text that may come from a model.
struct StandardOutput {
    is_terminal: bool,
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return io::stdout().write(bytes);
        }
        // Only whole characters: the rest comes again with the next bytes.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.valid_up_to() > 0 => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            // A part of a character that was divided.
            Err(_) => return io::stdout().write(&bytes[..1]),
        };
        io::stdout().write_all(without_escapes(text).as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Reports the file of an exported session.
pub fn show_session_export(path: Option<&Path>, n_lost: usize) -> ExitCode {
    if n_lost > 0 {
        write_err(&format!("entries that could not be read are missing: {n_lost}"));
    }
    if let Some(path) = path {
        write_out(&format!("exported to {}\n", path.display()));
    }
    ExitCode::SUCCESS
}

fn show_report(report: &Report) {
    for line in report.lines() {
        write_err(&line);
    }
}
