//! The side of Windows.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::windows::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};
use tokio::sync::mpsc;

use super::super::clock::Clock;
use super::FileId;

// Files. Profiles are for their user alone, and files inherit that.

/// The file that is always empty.
pub const NULL_DEVICE: &str = "NUL";

/// New files are for their owner alone.
pub fn make_file_private(_options: &mut OpenOptions) {}

/// New folders are for their owner alone.
pub fn make_folder_private(_builder: &mut DirBuilder) {}

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and is no regular file.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// Opening does not follow a symbolic link.
pub fn refuse_links(options: &mut OpenOptions) {
    options.custom_flags(OPEN_REPARSE_POINT);
}

/// The same.
pub fn refuse_links_and_waiting(options: &mut OpenOptions) {
    refuse_links(options);
}

/// Opens a file that must not be a link.
///
/// # Errors
/// As [`File::open`].
pub fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    refuse_links(options.read(true));
    options.open(path)
}

/// Opens a regular file, through links, for reading.
///
/// # Errors
/// As [`File::open`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads some bytes at `offset`.
///
/// # Errors
/// As [`std::io::Read::read`].
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Fills `bytes` from `offset` on.
///
/// # Errors
/// As [`std::io::Read::read_exact`].
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                bytes = &mut bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes `bytes` at `offset`.
///
/// # Errors
/// As [`std::io::Write::write_all`].
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time of creation, which is as good as unique: the number of a file needs a call that the
/// standard library does not have.
/// Windows has no named pipes among files.
pub fn is_pipe(_metadata: &Metadata) -> bool {
    false
}

pub fn file_id(metadata: &Metadata) -> FileId {
    (0, metadata.creation_time())
}

/// When it was last modified: seconds since the Unix epoch, and nanoseconds.
pub fn modified(metadata: &Metadata) -> (i64, i64) {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let since = since.unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos().into())
}

/// Whether the file has other names, which is not known.
pub fn has_other_names(_metadata: &Metadata) -> bool {
    false
}

/// The id of the file's owner: Windows has no numbers for them.
pub fn owner(_metadata: &Metadata) -> Option<u32> {
    Some(0)
}

/// Whether this is the owner that pi runs as.
pub fn is_this_user(_owner: u32) -> bool {
    true
}

/// Whether everybody can write to it.
pub fn is_writable_by_all(_metadata: &Metadata) -> bool {
    false
}

/// Whether others than its owner have access.
pub fn is_open_to_others(_metadata: &Metadata) -> bool {
    false
}

/// Restricts a file to its owner.
///
/// # Errors
/// None: the folder's permissions count.
pub fn restrict_to_owner(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// As [`restrict_to_owner`], for an open file.
///
/// # Errors
/// None.
pub fn restrict_open_file(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives `new` the owner in `metadata`: it has it already.
///
/// # Errors
/// None.
pub fn copy_owner(_new: &File, _metadata: &Metadata) -> io::Result<bool> {
    Ok(true)
}

/// Sets the times of a file to now.
///
/// # Errors
/// If the system does not allow it.
pub fn touch(file: &File) -> io::Result<()> {
    let now = UNIX_EPOCH + Duration::from_millis(Clock::system().now_ms());
    file.set_times(FileTimes::new().set_accessed(now).set_modified(now))
}

// Processes.

/// `CREATE_NO_WINDOW` and `CREATE_NEW_PROCESS_GROUP`: no console of its own, and ctrl+c does not
/// reach it.
const DETACHED: u32 = 0x0800_0000 | 0x0000_0200;

/// A command without a console.
///
/// # Errors
/// None.
pub fn detached(program: &Path, args: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(args).creation_flags(DETACHED);
    Ok(command)
}

/// Its exit code.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

/// Asks a process and all that it started to end.
pub fn ask_to_end(child: u32) {
    task_kill(&["/T", "/PID", &child.to_string()]);
}

/// Kills the process and all that it started.
pub fn kill_group(leader: u32) {
    task_kill(&["/F", "/T", "/PID", &leader.to_string()]);
}

fn task_kill(args: &[&str]) {
    let mut kill = Command::new("taskkill");
    kill.args(args).creation_flags(DETACHED);
    kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // An error means that nothing is left to kill.
    drop(kill.status());
}

/// The reading end of a pipe, which a thread reads.
#[derive(Debug)]
pub struct PipeReader(mpsc::Receiver<io::Result<Vec<u8>>>);

/// One pipe: its reading end, and its writing end twice.
pub struct OutputPipe {
    pub reader: PipeReader,
    pub stdout: Stdio,
    pub stderr: Stdio,
    /// Windows has no number by which processes that write to it are found.
    pub inode: Option<u64>,
}

/// A pipe keeps the size it was made with.
pub fn widen_standard_output() {}

/// Chunks that wait to be taken.
const N_CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 64 * 1024;

/// # Errors
/// If the system has no pipe or thread left.
pub fn output_pipe() -> io::Result<OutputPipe> {
    let (mut reader, writer) = io::pipe()?;
    let (chunks, taken) = mpsc::channel(N_CHUNKS);
    // Ends with the pipe, or when nobody reads any more.
    thread::Builder::new().name("output".to_owned()).spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = reader.read(&mut chunk).map(|n| chunk[..n].to_vec());
            let is_last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
            if chunks.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    })?;
    let reader = PipeReader(taken);
    Ok(OutputPipe { reader, stdout: writer.try_clone()?.into(), stderr: writer.into(), inode: None })
}

impl PipeReader {
    /// Some bytes; none at the end. Cancel safe.
    ///
    /// # Errors
    /// As [`std::io::Read::read`].
    pub async fn read(&mut self, _limit: usize) -> io::Result<Vec<u8>> {
        self.0.recv().await.unwrap_or(Ok(Vec::new()))
    }
}

// Signals.

/// A console always reads.
pub fn write_instead_of_unread(_bytes: &[u8]) {}

/// Ctrl+c, ctrl+break, a closed window, and the end of Windows, from its creation on.
pub struct EndSignals {
    ctrl_c: CtrlC,
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl EndSignals {
    /// # Errors
    /// If there are no more listeners.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ctrl_c: ctrl_c()?,
            ctrl_break: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// The exit code for the next signal, as on Unix. Loses none if dropped.
    pub async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.ctrl_c.recv() => 130,
            _ = self.ctrl_break.recv() => 131,
            _ = self.close.recv() => 129,
            _ = self.shutdown.recv() => 143,
        }
    }

    /// The same for what no key causes.
    pub async fn next_request(&mut self) -> u8 {
        tokio::select! {
            _ = self.close.recv() => 129,
            _ = self.shutdown.recv() => 143,
        }
    }

    /// Drops signals of keys that were meant for another program in the
    /// terminal; pi received them as well.
    pub fn forget_keys(&mut self) {
        if let (Ok(key), Ok(other)) = (ctrl_c(), ctrl_break()) {
            (self.ctrl_c, self.ctrl_break) = (key, other);
        }
    }
}

/// Never reports anything: Windows does not stop processes.
#[derive(Debug)]
pub struct Continuations;

impl Continuations {
    /// # Errors
    /// None.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for ever.
    pub async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Never reports anything: Windows does not stop processes.
#[derive(Debug)]
pub struct StopRequests;

impl StopRequests {
    /// # Errors
    /// None.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for ever.
    pub async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Windows has no jobs of a terminal.
///
/// # Errors
/// Always.
pub fn stop_job() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows cannot suspend pi; use another window or tab"))
}

/// The same.
///
/// # Errors
/// Always.
pub fn stop_self() -> io::Result<()> {
    stop_job()
}

/// [`stop_job`] says that there are no jobs.
pub fn can_stop_job() -> bool {
    true
}

/// Nothing to do here: no signal tells of the size of files.
///
/// # Errors
/// None.
pub fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}

/// Windows has no jobs of a terminal.
pub fn is_in_foreground() -> bool {
    true
}

// The terminal.

/// The console on standard output. Bytes that are written to its handle are taken for those of a code page, so
/// this goes through the standard library, which writes them as the text they are.
#[derive(Debug)]
pub struct TerminalStream(());

impl TerminalStream {
    /// Another one of the same console.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(()))
    }
}

impl Write for TerminalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut console = io::stdout().lock();
        console.write_all(bytes)?;
        console.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output.
///
/// # Errors
/// None.
pub fn terminal_output() -> io::Result<TerminalStream> {
    Ok(TerminalStream(()))
}

/// Has the console follow escape sequences, which it shows as text otherwise.
///
/// # Errors
/// If it cannot: consoles can since Windows 10.
pub fn follow_sequences() -> io::Result<()> {
    if crossterm::ansi_support::supports_ansi() {
        return Ok(());
    }
    let problem = "this console does not understand escape sequences; start pi in Windows Terminal";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}

/// `None`: the console reports keys.
pub fn erase_byte() -> Option<u8> {
    None
}

/// The console restores its modes itself.
#[derive(Debug, Clone)]
pub struct DriverModes(());

impl DriverModes {
    pub fn read() -> Option<Self> {
        None
    }

    pub fn restore(&self) {}
}

/// Whether `input` has something to read, or has ended: that is found out by reading.
pub fn has_input<T>(_input: T, _limit: Duration) -> bool {
    true
}

/// Bytes that the terminal keeps of a line while it edits it, where that is known.
pub const LINE_BYTES: Option<usize> = None;

/// Whether the terminal has another line: the console reports keys, and lines only to who reads them.
pub fn has_line(_limit: Duration) -> bool {
    false
}

/// Reads keys of the terminal one by one, without echo; restores it when dropped.
pub struct HiddenInput(());

impl HiddenInput {
    /// # Errors
    /// If standard input is no terminal.
    pub fn start() -> io::Result<Self> {
        crossterm::terminal::enable_raw_mode()?;
        Ok(Self(()))
    }

    /// The next byte; `None` at the end.
    pub fn next_byte(&self) -> Option<u8> {
        let mut byte = [0];
        let n = io::stdin().lock().read(&mut byte).unwrap_or_default();
        (n == 1).then_some(byte[0])
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        crossterm::terminal::disable_raw_mode().unwrap_or_default();
    }
}
