//! The way to the terminal, which can be recorded byte by byte, to replay a session in an
//! emulator.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ratatui::layout::Size;

use crate::util::os::{self, TerminalStream};

/// The record. Static, because the panic hook writes to the terminal too.
static RECORD: Mutex<Option<Record>> = Mutex::new(None);

struct Record {
    bytes: File,
    /// What the bytes do not contain, one line each, with the number of bytes before it. `None` if the bytes go
    /// to a device, a pipe or a descriptor, which has no place for a file beside it.
    events: Option<File>,
    n_bytes: u64,
    size: Option<Size>,
}

impl Record {
    /// Creates or empties the files at `path` and beside it. Others lose their access to existing ones before.
    fn open(path: &Path) -> io::Result<Self> {
        let mut events_path = path.as_os_str().to_owned();
        events_path.push(".events");
        // Both are open before either is emptied.
        let bytes = open_private(path)?;
        let has_events = bytes.metadata()?.is_file() && !is_descriptor(path);
        let events = has_events.then(|| open_private(Path::new(&events_path))).transpose()?;
        for file in std::iter::once(&bytes).chain(&events) {
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
        }
        Ok(Self { bytes, events, n_bytes: 0, size: None })
    }

    fn event(&mut self, event: &str) -> io::Result<()> {
        let Some(events) = &mut self.events else { return Ok(()) };
        writeln!(events, "{} {event}", self.n_bytes)
    }
}

/// Writes everything that this process sends to the terminal from now on into a file too, which
/// only its owner may read: it contains the conversation. `PATH.events` beside it has the terminal's sizes and
/// reports where the scrollback was erased, unless PATH is a device, a pipe or a descriptor such as `/dev/fd/9`.
/// Existing files are replaced.
///
/// # Errors
/// If a file cannot be written.
pub fn record_output(path: &Path) -> io::Result<()> {
    let record = Record::open(path)?;
    *RECORD.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    Ok(())
}

/// Whether the path is a name of a descriptor or device, whatever that is connected with.
fn is_descriptor(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm")
}

/// Opens a file for writing, and restricts it to its owner.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    os::make_file_private(&mut options);
    let file = options.write(true).create(true).truncate(false).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && os::is_open_to_others(&metadata) {
        os::restrict_to_owner(path)?;
    }
    Ok(file)
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

/// How many writes have begun and ended. Static like the terminal.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Whether nothing may be written any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Holds up every write for ever, before it begins or when it ends: the process ends, and the terminal is restored.
pub(super) fn close() {
    CLOSED.store(true, Ordering::SeqCst);
}

fn wait_if_closed() {
    while CLOSED.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// A write to the terminal, which lasts as long as the terminal does not read.
struct Writing;

impl Writing {
    fn begin() -> Self {
        wait_if_closed();
        WRITES.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITES.fetch_add(1, Ordering::SeqCst);
        wait_if_closed();
    }
}

/// A number of the write to the terminal that has begun and not ended; `None` if there is none. Only one thread
/// writes at a time.
pub fn write_in_progress() -> Option<u64> {
    let n = WRITES.load(Ordering::SeqCst);
    (n % 2 == 1).then_some(n)
}

/// Sends text to the terminal at once.
///
/// # Errors
/// If the terminal cannot be written to.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let _writing = Writing::begin();
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
pub struct TerminalOutput(TerminalStream);

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
        let _writing = Writing::begin();
        let n_bytes = self.0.write(bytes)?;
        record(bytes.get(..n_bytes).unwrap_or_default());
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn record_is_private_where_files_are_already_and_replaces_them() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["log", "log.events"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::write(path, "earlier").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        let mut record = Record::open(&paths[0]).unwrap();
        record.bytes.write_all(b"now").unwrap();
        assert!(record.events.is_some());
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), "now");
        assert_eq!(fs::read_to_string(&paths[1]).unwrap(), "");
        for path in &paths {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn record_on_a_device_or_descriptor_has_no_events() {
        use std::os::fd::AsRawFd as _;

        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("log")).unwrap();
        for path in ["/dev/null".to_owned(), format!("/dev/fd/{}", file.as_raw_fd())] {
            let mut record = Record::open(Path::new(&path)).unwrap();
            assert!(record.events.is_none(), "{path}");
            record.event("80x24").unwrap();
            record.bytes.write_all(b"x").unwrap();
        }
        assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "x");
    }

    #[test]
    fn record_whose_events_cannot_be_written_leaves_the_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "earlier").unwrap();
        fs::create_dir(folder.path().join("log.events")).unwrap();
        assert!(Record::open(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
    }
}
