//! The way to the terminal, which can be recorded byte by byte, to replay a session in an
//! emulator.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ratatui::layout::Size;

use crate::util::os;

/// The record. Static, because the panic hook writes to the terminal too.
static RECORD: Mutex<Option<Record>> = Mutex::new(None);

struct Record {
    bytes: File,
    /// What the bytes do not tell, one line each, with the number of bytes before it.
    events: File,
    n_bytes: u64,
    size: Option<Size>,
}

impl Record {
    fn event(&mut self, event: &str) -> io::Result<()> {
        writeln!(self.events, "{} {event}", self.n_bytes)
    }
}

/// Writes everything that this process sends to the terminal from now on into a file too, which
/// only its owner may read: it contains the conversation. `PATH.events` beside it has the terminal's sizes and
/// says where the scrollback was erased. Existing files are replaced.
///
/// # Errors
/// If a file cannot be written.
pub fn record_output(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    os::make_file_private(&mut options);
    options.write(true).create(true).truncate(true);
    let mut events_path = path.as_os_str().to_owned();
    events_path.push(".events");
    let (bytes, events) = (options.open(path)?, options.open(events_path)?);
    let record = Record { bytes, events, n_bytes: 0, size: None };
    *RECORD.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    Ok(())
}

/// Records the size of the terminal, as known from now on.
pub fn record_size(size: Size) {
    change_record(|record| {
        if record.size.replace(size) == Some(size) {
            return Ok(());
        }
        record.event(&format!("{}x{}", size.width, size.height))
    });
}

/// Records that the next frame erases screen and scrollback, because the user wants that.
pub fn record_erasure() {
    change_record(|record| record.event("erase"));
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

/// Records bytes that were sent.
fn record(bytes: &[u8]) {
    change_record(|record| {
        record.n_bytes += bytes.len() as u64;
        record.bytes.write_all(bytes)
    });
}

/// A record that cannot be continued ends.
fn change_record(change: impl FnOnce(&mut Record) -> io::Result<()>) {
    let mut record = RECORD.lock().unwrap_or_else(PoisonError::into_inner);
    if record.as_mut().is_some_and(|record| change(record).is_err()) {
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
