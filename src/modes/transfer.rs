//! The output of `pi import` and `pi export`. Results go to standard output, notes about
//! losses to standard error, one line each.

use std::path::Path;
use std::process::ExitCode;

use crate::ai::foreign::Report;
use crate::session::SavedSession;

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

fn show_report(report: &Report) {
    for line in report.lines() {
        write_err(&line);
    }
}
