//! The way to the terminal, which can be recorded byte by byte, to replay a session in an
//! emulator.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::util::os;

/// The record. Static, because the panic hook writes to the terminal too.
static RECORD: Mutex<Option<File>> = Mutex::new(None);

/// Writes everything that this process sends to the terminal from now on into a file too, which
/// only its owner may read: it contains the conversation. An existing file is replaced.
///
/// # Errors
/// If the file cannot be written.
pub fn record_output(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    os::make_file_private(&mut options);
    let file = options.write(true).create(true).truncate(true).open(path)?;
    *RECORD.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    Ok(())
}

/// Sends text to the terminal at once.
///
/// # Errors
/// If the terminal cannot be written to.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    record(text.as_bytes());
    stdout.flush()
}

/// Records bytes that were sent. A record that cannot be continued ends.
fn record(bytes: &[u8]) {
    let mut record = RECORD.lock().unwrap_or_else(PoisonError::into_inner);
    if record.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
        *record = None;
    }
}

/// The terminal.
#[derive(Debug)]
pub struct TerminalOutput(File);

impl TerminalOutput {
    /// The terminal on standard output.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn stdout() -> io::Result<Self> {
        os::terminal_output().map(Self)
    }

    /// Another handle of the same terminal.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Write for TerminalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_bytes = self.0.write(bytes)?;
        record(bytes.get(..n_bytes).unwrap_or_default());
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
