//! The side of Unix.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _, fchown,
};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::task::Poll;
use std::time::Duration;

use nix::sys::signal::{Signal as KillSignal, kill as send_signal, killpg};
// `rustix` has no call for the session of a process that may be outside of this
// namespace, whose session has the number 0.
use nix::unistd::{Pid, getpgid, getppid, getsid};
use process_wrap::std::{CommandWrap, CommandWrapper as _, ProcessSession};
use rustix::event::{PollFd, PollFlags, Timespec as PollTime, poll};
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fcntl_getfl, fcntl_setfl, futimens};
use rustix::process::{
    Resource, Signal as StopSignal, geteuid, getpgrp, getpid, getrlimit, kill_process, kill_process_group,
};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::FileId;

// Files.

/// The file that is always empty.
pub const NULL_DEVICE: &str = "/dev/null";

/// New files are for their owner alone.
pub fn make_file_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// New folders are for their owner alone.
pub fn make_folder_private(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

/// Opening fails at a symbolic link.
pub fn refuse_links(options: &mut OpenOptions) {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
}

/// Opening fails at a symbolic link, and does not wait for the other end of a pipe.
pub fn refuse_links_and_waiting(options: &mut OpenOptions) {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
}

/// Opens a file that must not be a link, a terminal or a pipe that makes the program wait.
///
/// # Errors
/// As [`File::open`].
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Opens a regular file, through links, for reading. Does not wait for the other end of a pipe.
/// [`NULL_DEVICE`] counts as an empty file; reading from a folder fails.
///
/// # Errors
/// As [`File::open`], and for pipes, sockets and other devices.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let is_null = || fs::metadata(NULL_DEVICE).is_ok_and(|null| null.rdev() == metadata.rdev());
    match metadata.is_file() || metadata.is_dir() || is_null() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads some bytes at `offset`.
///
/// # Errors
/// As [`std::io::Read::read`].
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// Fills `bytes` from `offset` on.
///
/// # Errors
/// As [`std::io::Read::read_exact`].
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Writes `bytes` at `offset`.
///
/// # Errors
/// As [`std::io::Write::write_all`].
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Whether it is a named pipe, which waits for its other end when it is opened.
pub fn is_pipe(metadata: &Metadata) -> bool {
    metadata.file_type().is_fifo()
}

pub fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// When it was last modified: seconds since the Unix epoch, and nanoseconds.
pub fn modified(metadata: &Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

/// Whether the file has other names (hard links).
pub fn has_other_names(metadata: &Metadata) -> bool {
    metadata.nlink() > 1
}

/// The id of the file's owner.
pub fn owner(metadata: &Metadata) -> Option<u32> {
    Some(metadata.uid())
}

/// Whether this is the owner that pi runs as.
pub fn is_this_user(owner: u32) -> bool {
    owner == geteuid().as_raw()
}

/// Whether everybody can write to it.
pub fn is_writable_by_all(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o002 != 0
}

/// Whether others than its owner have access.
pub fn is_open_to_others(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}

/// Restricts a file to its owner.
///
/// # Errors
/// As [`fs::set_permissions`].
pub fn restrict_to_owner(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// As [`restrict_to_owner`], for an open file.
///
/// # Errors
/// As [`File::set_permissions`].
pub fn restrict_open_file(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Gives `new` the owner in `metadata`; `false` if the system does not allow it.
///
/// # Errors
/// If `new` cannot be examined.
pub fn copy_owner(new: &File, metadata: &Metadata) -> io::Result<bool> {
    let fresh = new.metadata()?;
    let is_same = fresh.uid() == metadata.uid() && fresh.gid() == metadata.gid();
    Ok(is_same || fchown(new, Some(metadata.uid()), Some(metadata.gid())).is_ok())
}

/// Sets the times of a file to now, by the clock of its file system.
///
/// # Errors
/// If the system does not allow it.
pub fn touch(file: &File) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Ok(futimens(file, &Timestamps { last_access: now, last_modification: now })?)
}

// Processes.

/// A command that will lead a session and a group of its own, with its process id.
///
/// Without a terminal a password prompt fails at once, instead of stopping the command
/// for reading from a terminal it is not in the foreground of.
///
/// # Errors
/// If the session cannot be prepared.
pub fn detached(program: &Path, args: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(args);
    // Nothing else of the crate is used: its child would wait for the whole group.
    let wrap = CommandWrap::from(Command::new(program));
    ProcessSession.pre_spawn(&mut command, &wrap)?;
    Ok(command)
}

/// Its exit code, or 128 plus the number of the signal that killed it.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Kills the group, then what moved from it to another one of the same session, as
/// `timeout` and `set -m` do.
pub fn kill_group(leader: u32) {
    // 0 would mean the group of this process.
    let Some(leader) = i32::try_from(leader).ok().filter(|leader| *leader > 0) else { return };
    let leader = Pid::from_raw(leader);
    // An error means that nothing is left to kill.
    killpg(leader, KillSignal::SIGKILL).unwrap_or_default();
    kill_session(leader);
}

fn kill_session(leader: Pid) {
    let mut killed = HashSet::new();
    loop {
        let n_before = killed.len();
        for pid in processes().into_iter().filter(|pid| getsid(Some(*pid)) == Ok(leader)) {
            if killed.insert(pid) {
                send_signal(pid, KillSignal::SIGKILL).unwrap_or_default();
            }
        }
        // Killed processes cannot start new ones; earlier children are visible
        // now or in the next round.
        if killed.len() == n_before {
            return;
        }
    }
}

/// Asks a process that is a child of this one, and all that it started, to end (SIGTERM).
pub fn ask_to_end(child: u32) {
    let Some(child) = i32::try_from(child).ok().filter(|child| *child > 0).map(Pid::from_raw) else { return };
    let parents = parents();
    let depth = |pid: Pid| {
        // As many steps as there are processes, because the list is no picture of one moment.
        let ancestors = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        ancestors.take(parents.len()).position(|ancestor| ancestor == child)
    };
    let mut below: Vec<(usize, Pid)> = parents.keys().filter_map(|pid| Some((depth(*pid)?, *pid))).collect();
    // A process ends better by itself than because something that it started is gone.
    below.sort();
    for (_, pid) in below {
        // An error means that it has ended.
        send_signal(pid, KillSignal::SIGTERM).unwrap_or_default();
    }
}

/// All processes with their parents.
fn parents() -> HashMap<Pid, Pid> {
    if !has_proc() {
        // An option for each column, because what follows `=` is its title.
        return listed_parents(&ps(&["-A", "-o", "pid=", "-o", "ppid="]));
    }
    let parent = |pid: Pid| {
        // `PID (NAME) STATE PARENT …`, where the name may contain anything.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
    };
    processes().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// Lines with a process and its parent.
fn listed_parents(listed: &str) -> HashMap<Pid, Pid> {
    let pair = |line: &str| {
        let mut pids = line.split_whitespace().map(|pid| pid.parse().ok().map(Pid::from_raw));
        Some((pids.next()??, pids.next()??))
    };
    listed.lines().filter_map(pair).collect()
}

fn has_proc() -> bool {
    Path::new("/proc/self").exists()
}

/// All processes: by `/proc`, or by `ps` where there is none.
fn processes() -> Vec<Pid> {
    let pid = |text: &str| text.trim().parse().ok().filter(|pid| *pid > 0).map(Pid::from_raw);
    if has_proc()
        && let Ok(processes) = fs::read_dir("/proc")
    {
        return processes.flatten().filter_map(|process| pid(process.file_name().to_str()?)).collect();
    }
    ps(&["-A", "-o", "pid="]).lines().filter_map(pid).collect()
}

/// The output of `ps`; empty if that fails.
fn ps(args: &[&str]) -> String {
    let listed = Command::new("/bin/ps").args(args).stdin(Stdio::null()).output();
    let listed = listed.map(|listed| listed.stdout).unwrap_or_default();
    String::from_utf8_lossy(&listed).into_owned()
}

/// The reading end of a pipe.
#[derive(Debug)]
pub struct PipeReader(Receiver);

/// Capacity of a standard output that long texts go through.
#[cfg(target_os = "linux")]
const OUTPUT_PIPE_BYTES: usize = 1 << 20;

/// One pipe: its reading end, and its writing end twice.
pub struct OutputPipe {
    pub reader: PipeReader,
    pub stdout: Stdio,
    pub stderr: Stdio,
    /// The number by which processes that write to it are found.
    pub inode: Option<u64>,
}

/// # Errors
/// If the system has no pipe left.
pub fn output_pipe() -> io::Result<OutputPipe> {
    let (reader, writer) = io::pipe()?;
    let inode = rustix::fs::fstat(&reader).ok().map(|stat| stat.st_ino);
    let reader = PipeReader(Receiver::from_owned_fd(OwnedFd::from(reader))?);
    Ok(OutputPipe { reader, stdout: writer.try_clone()?.into(), stderr: writer.into(), inode })
}

/// Lets standard output take more before its reader must run, if it is a pipe and the system
/// allows it.
pub fn widen_standard_output() {
    // Linux only, and it has a limit for each user. A pipe that stays narrow works too.
    #[cfg(target_os = "linux")]
    rustix::pipe::fcntl_setpipe_size(rustix::stdio::stdout(), OUTPUT_PIPE_BYTES).unwrap_or_default();
}

impl PipeReader {
    /// At most `limit` bytes; none at the end. Cancel safe.
    ///
    /// # Errors
    /// As [`std::io::Read::read`].
    pub async fn read(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        let mut chunk = Vec::with_capacity(limit);
        self.0.read_buf(&mut chunk).await?;
        Ok(chunk)
    }
}

// Signals.

/// Has writes beyond the largest size of a file (`ulimit -f`) fail with an error. By default, the
/// system ends the process, with SIGXFSZ. Programs that this one starts have the default again.
///
/// # Errors
/// If the system has no more listeners.
pub fn survive_file_size_limit() -> io::Result<()> {
    if getrlimit(Resource::Fsize).current.is_none() {
        return Ok(());
    }
    // The handler stays when the listener and its runtime are gone.
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    drop(signal(SignalKind::from_raw(StopSignal::XFSZ.as_raw()))?);
    Ok(())
}

/// The signals that end a program and that it can handle, from its creation on.
pub struct EndSignals {
    /// Those that no key sends.
    requests: Vec<EndSignal>,
    keys: Vec<EndSignal>,
}

struct EndSignal {
    signal: Signal,
    /// 128 plus its number.
    code: u8,
}

impl EndSignal {
    fn of(kinds: &[SignalKind]) -> io::Result<Vec<Self>> {
        let of = |kind: &SignalKind| {
            let code = u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX);
            Ok(Self { signal: signal(*kind)?, code })
        };
        kinds.iter().map(of).collect()
    }

    /// The code of the first one. Loses none if dropped.
    async fn first(signals: &mut [Self]) -> u8 {
        poll_fn(|cx| {
            let found =
                signals.iter_mut().find_map(|end| end.signal.poll_recv(cx).is_ready().then_some(end.code));
            found.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl EndSignals {
    /// # Errors
    /// If the system has no more listeners.
    pub fn new() -> io::Result<Self> {
        let others = [
            StopSignal::XCPU,
            StopSignal::VTALARM,
            StopSignal::PROF,
            StopSignal::SYS,
            StopSignal::TRAP,
            StopSignal::ABORT,
        ];
        let mut kinds = vec![
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
            SignalKind::alarm(),
        ];
        kinds.extend(others.map(|signal| SignalKind::from_raw(signal.as_raw())));
        let requests = EndSignal::of(&kinds)?;
        Ok(Self { requests, keys: Self::of_keys()? })
    }

    fn of_keys() -> io::Result<Vec<EndSignal>> {
        EndSignal::of(&[SignalKind::interrupt(), SignalKind::quit()])
    }

    /// The exit code for the next signal: 128 plus its number. Loses none if dropped.
    pub async fn next(&mut self) -> u8 {
        tokio::select! {
            code = EndSignal::first(&mut self.requests) => code,
            code = EndSignal::first(&mut self.keys) => code,
        }
    }

    /// The same for signals that no key sends, such as SIGTERM and SIGHUP.
    pub async fn next_request(&mut self) -> u8 {
        EndSignal::first(&mut self.requests).await
    }

    /// Drops signals of keys that were meant for another program in the
    /// terminal; pi received them as well.
    pub fn forget_keys(&mut self) {
        // If a new listener cannot be created, the old ones stay.
        if let Ok(keys) = Self::of_keys() {
            self.keys = keys;
        }
    }
}

/// Reports that the process was stopped and continues.
#[derive(Debug)]
pub struct Continuations(Signal);

impl Continuations {
    /// # Errors
    /// If the system has no more listeners.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::from_raw(StopSignal::CONT.as_raw()))?))
    }

    /// Waits until the process continues. Loses nothing if dropped.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Drops what the terminal of this process has not read yet, and writes `bytes` to it, if that is possible without
/// waiting for it to read. A write of another thread that waits for that ends early. Blocks for some tenths of a
/// second at most.
pub fn write_instead_of_unread(bytes: &[u8]) {
    const ATTEMPTS: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(1);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) else { return };
    let output = rustix::stdio::stdout();
    let Ok(before) = fcntl_getfl(output) else { return };
    // It is the shell's too, so that is undone below.
    fcntl_setfl(output, before | OFlags::NONBLOCK).unwrap_or_default();
    for _ in 0..ATTEMPTS {
        // Interrupts a write that waits, which has the terminal for itself; the signal says nothing new.
        kill_process(getpid(), StopSignal::WINCH).unwrap_or_default();
        std::thread::sleep(PAUSE);
        // Without it there may be no room, which the next line finds out.
        tcflush(&terminal, QueueSelector::OFlush).unwrap_or_default();
        match rustix::io::write(&terminal, bytes) {
            Ok(n) if n < bytes.len() => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    fcntl_setfl(output, before).unwrap_or_default();
}

/// Requests to stop (SIGTSTP), from its creation on: the process no longer stops by itself.
#[derive(Debug)]
pub struct StopRequests(Signal);

impl StopRequests {
    /// # Errors
    /// If the system has no more listeners.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::from_raw(StopSignal::TSTP.as_raw()))?))
    }

    /// Waits for the next request. Loses none if dropped.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Stops the processes of the terminal's job until the shell continues them.
///
/// # Errors
/// If they cannot be stopped.
pub fn stop_job() -> io::Result<()> {
    Ok(kill_process_group(getpgrp(), stop_signal())?)
}

/// Stops this process alone, as [`stop_job`].
///
/// # Errors
/// If it cannot be stopped.
pub fn stop_self() -> io::Result<()> {
    Ok(kill_process(getpid(), stop_signal())?)
}

/// A signal that nobody handles. Where no shell may be there to continue the job, the system
/// decides: it ignores SIGTTOU for a job without one.
fn stop_signal() -> StopSignal {
    if is_shell_of_job(getppid()) { StopSignal::STOP } else { StopSignal::TTOU }
}

/// Whether a shell can be there to continue the job after it was stopped. There is none if pi leads the
/// session, or if the job is an orphaned process group: no parent of its processes is another job of the
/// session.
pub fn can_stop_job() -> bool {
    let is_outside = |id: nix::Result<Pid>| id.is_ok_and(|id| id.as_raw() == 0);
    let is_of_job = |pid: Pid| getpgid(Some(pid)) == getpgid(None);
    // Of a job from outside of this namespace nothing is known.
    is_outside(getpgid(None))
        || is_shell_of_job(getppid())
        || parents().into_iter().any(|(pid, parent)| is_of_job(pid) && is_shell_of_job(parent))
}

/// Whether a process can have this job as one of its jobs: it is in the same session, and in another group.
fn is_shell_of_job(pid: Pid) -> bool {
    let is_in_session = getsid(Some(pid)).is_ok_and(|session| getsid(None) == Ok(session));
    let leads_job = getpgid(Some(pid)).is_ok_and(|group| getpgid(None) != Ok(group));
    is_in_session && leads_job
}

/// Whether the terminal belongs to the job of this process; also if there is no terminal.
pub fn is_in_foreground() -> bool {
    tcgetpgrp(rustix::stdio::stdin()).map_or(true, |group| group == getpgrp())
}

// The terminal.

/// The way to the terminal.
pub type TerminalStream = File;

/// A handle of its own for standard output.
///
/// # Errors
/// If the system has none left.
pub fn terminal_output() -> io::Result<TerminalStream> {
    Ok(File::from(rustix::io::dup(rustix::stdio::stdout())?))
}

/// Has the terminal follow escape sequences, as each one here does.
///
/// # Errors
/// None.
pub fn follow_sequences() -> io::Result<()> {
    Ok(())
}

/// The byte that the terminal's Backspace sends, as the terminal's settings have it (`stty erase`).
pub fn erase_byte() -> Option<u8> {
    let erase = tcgetattr(rustix::stdio::stdin()).ok()?.special_codes[SpecialCodeIndex::VERASE];
    (erase != 0).then_some(erase)
}

/// The modes of the terminal's driver, such as echo.
#[derive(Debug, Clone)]
pub struct DriverModes(Termios);

impl DriverModes {
    /// The present ones; `None` if standard input is no terminal.
    pub fn read() -> Option<Self> {
        tcgetattr(rustix::stdio::stdin()).ok().map(Self)
    }

    /// Sets them again. The terminal may be gone.
    pub fn restore(&self) {
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0).unwrap_or_default();
    }
}

/// Whether `input` has something to read within `limit`, or has ended.
pub fn has_input(input: impl AsFd, limit: Duration) -> bool {
    let Ok(limit) = PollTime::try_from(limit) else { return true };
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    // What cannot be waited for is read.
    rustix::io::retry_on_intr(|| poll(&mut fds, Some(&limit))).map_or(true, |n_ready| n_ready > 0)
}

/// Bytes that the terminal keeps of a line while it edits it, where that is known. It drops what follows.
pub const LINE_BYTES: Option<usize> = if cfg!(target_os = "linux") { Some(4_095) } else { None };

/// Whether the terminal has another line within `limit`, or its input has ended.
pub fn has_line(limit: Duration) -> bool {
    has_input(rustix::stdio::stdin(), limit)
}

/// Reads keys of the terminal one by one, without echo; restores it when dropped.
pub struct HiddenInput(Termios);

impl HiddenInput {
    /// # Errors
    /// If standard input is no terminal.
    pub fn start() -> io::Result<Self> {
        let terminal = rustix::stdio::stdin();
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        let restore = Self(before);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(restore)
    }

    /// The next byte; `None` at the end.
    pub fn next_byte(&self) -> Option<u8> {
        let mut byte = [0];
        let terminal = rustix::stdio::stdin();
        let n = rustix::io::retry_on_intr(|| rustix::io::read(terminal, &mut byte)).unwrap_or_default();
        (n == 1).then_some(byte[0])
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // The terminal may be gone.
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_processes_has_each_with_its_parent() {
        let listed = listed_parents("    1     0\n  217     1\nPID PPID\n 9\n12345   217\n");
        let expected = [(1, 0), (217, 1), (12_345, 217)];
        assert_eq!(listed, expected.map(|(pid, parent)| (Pid::from_raw(pid), Pid::from_raw(parent))).into());
    }

    #[test]
    fn parents_are_those_that_the_system_has() {
        let of_this = || parents().get(&nix::unistd::getpid()).copied();
        assert_eq!(of_this(), Some(getppid()));
        // The same from `ps`, where there is one.
        let listed = ps(&["-A", "-o", "pid=", "-o", "ppid="]);
        if !listed.is_empty() {
            assert_eq!(listed_parents(&listed).get(&nix::unistd::getpid()), Some(&getppid()));
        }
    }
}
