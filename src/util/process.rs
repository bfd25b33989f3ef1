//! Runs a command in a process group of its own and hands out its output.
//!
//! Standard output and standard error share one pipe, so their order is the
//! order of arrival. Invariant: a command that is cancelled, runs out of time or
//! is dropped half-way is killed with everything it started, as far as that
//! stayed in its group. Decoding and limiting the output is the caller's business.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Child;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long the pipe must stay silent, once the command itself has exited, until
/// a background process that still holds it no longer keeps the caller waiting.
const QUIET_AFTER_EXIT: Duration = Duration::from_millis(100);

const CHUNK_BYTES: usize = 64 * 1024;

/// What to run.
#[derive(Debug, Clone)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// Changes to the inherited environment; `None` removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The command is killed after this time, however it is doing.
    pub timeout: Option<Duration>,
}

/// What a running command does next.
#[derive(Debug)]
pub enum Event {
    Output(Vec<u8>),
    /// The last event.
    Ended(End),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its exit code, or 128 plus the number of the signal that killed it.
    Exited(i32),
    /// `command_exited` tells that only background processes were still writing.
    TimedOut {
        command_exited: bool,
    },
    Cancelled,
}

/// A command that has been started. Dropping it before [`Event::Ended`] kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Group,
    output: output::Reader,
    output_open: bool,
    exit_code: Option<i32>,
    /// Why the group was killed; its last output is still read.
    killed: Option<End>,
    kill_at: Option<Instant>,
    stop_reading_at: Option<Instant>,
    cancel: CancellationToken,
    ended: bool,
}

impl Running {
    /// Starts `command` with no input.
    ///
    /// # Errors
    /// When the program or the directory does not exist or may not be used.
    pub fn start(command: &Command, cancel: CancellationToken) -> io::Result<Self> {
        let (reader, stdout, stderr) = output::pipe()?;
        let mut spawned = detached(&command.program, &command.args);
        for (name, value) in &command.env {
            match value {
                Some(value) => spawned.env(name, value),
                None => spawned.env_remove(name),
            };
        }
        spawned
            .current_dir(&command.cwd)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .kill_on_drop(true);
        let child = spawned.spawn()?;
        // The parent's ends of the pipe must close, or it would never report its end.
        drop(spawned);
        let group = Group::register(child.id());
        Ok(Self {
            child,
            group,
            output: reader,
            output_open: true,
            exit_code: None,
            killed: None,
            kill_at: command.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            stop_reading_at: None,
            cancel,
            ended: false,
        })
    }

    /// The next event. Loses nothing when dropped before it is ready; after
    /// [`Event::Ended`] it repeats the same end.
    ///
    /// The command has ended once it has exited and its output is closed, or has
    /// been silent for a tenth of a second although a background process keeps
    /// it open.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(end) = self.end() {
                self.ended = true;
                return Event::Ended(end);
            }
            let running = self.killed.is_none();
            tokio::select! {
                biased;
                () = self.cancel.cancelled(), if running => self.kill(End::Cancelled),
                () = until(self.kill_at), if running && self.kill_at.is_some() => {
                    self.kill(End::TimedOut { command_exited: self.exit_code.is_some() });
                }
                // Before reading, which a flood of output keeps ready for ever.
                status = self.child.wait(), if self.exit_code.is_none() => {
                    self.exit_code = Some(status.map_or(-1, exit_code));
                    self.stop_reading_soon();
                }
                read = self.output.read(), if self.output_open => match read {
                    Ok(chunk) if !chunk.is_empty() => {
                        if running && self.exit_code.is_some() {
                            self.stop_reading_soon();
                        }
                        return Event::Output(chunk);
                    }
                    Ok(_) | Err(_) => self.output_open = false,
                },
                () = until(self.stop_reading_at), if self.stop_reading_at.is_some() => {
                    self.output_open = false;
                }
            }
        }
    }

    /// How it ended, once nothing is left to wait for.
    fn end(&self) -> Option<End> {
        if self.output_open {
            return None;
        }
        match (self.killed, self.exit_code) {
            // A killed process that is stuck in the kernel is not waited for.
            (Some(end), Some(_)) => Some(end),
            (Some(end), None) if self.stop_reading_at.is_some_and(|at| at <= Instant::now()) => Some(end),
            (None, Some(code)) => Some(End::Exited(code)),
            (Some(_) | None, None) => None,
        }
    }

    fn kill(&mut self, end: End) {
        self.group.kill();
        self.killed = Some(end);
        // What escaped from the group may write for ever: this one is not extended.
        self.stop_reading_soon();
    }

    fn stop_reading_soon(&mut self) {
        self.stop_reading_at = Some(Instant::now() + QUIET_AFTER_EXIT);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.group.kill();
        }
    }
}

/// Kills every command that is still running, with its group; for the end of
/// the program, which the kernel does not pass on to other process groups.
pub fn kill_all() {
    let groups: Vec<u32> = live().iter().copied().collect();
    for leader in groups {
        group::kill(leader);
    }
}

/// The leaders of the groups that are running.
static LIVE: LazyLock<Mutex<BTreeSet<u32>>> = LazyLock::new(Mutex::default);

fn live() -> std::sync::MutexGuard<'static, BTreeSet<u32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process group, known to [`kill_all`] while this value lives.
#[derive(Debug)]
pub struct Group {
    /// Process id of the leader; `None` if it exited before it could be asked.
    leader: Option<u32>,
}

impl Group {
    /// Of the process `leader`, whose group has the same id.
    pub fn register(leader: Option<u32>) -> Self {
        live().extend(leader);
        Self { leader }
    }

    /// Ends all that is in it. An error means that nothing is left to end.
    pub fn kill(&self) {
        if let Some(leader) = self.leader {
            group::kill(leader);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            live().remove(&leader);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}

/// A command that will lead a group of its own.
///
/// Where the `setsid` program exists it also gets a session of its own: without
/// a terminal a password prompt fails at once, instead of stopping the command
/// for reading from a terminal it is not in the foreground of.
fn detached(program: &Path, args: &[OsString]) -> tokio::process::Command {
    #[cfg(unix)]
    if let Some(setsid) = ["/usr/bin/setsid", "/bin/setsid"].into_iter().find(|path| Path::new(path).exists())
    {
        let mut command = tokio::process::Command::new(setsid);
        command.arg(program).args(args);
        return command;
    }
    let mut command = tokio::process::Command::new(program);
    command.args(args);
    #[cfg(unix)]
    command.process_group(0);
    command
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;

    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

#[cfg(unix)]
mod group {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    /// Kills the group, and the leader too if it has not founded its group yet.
    pub(super) fn kill(leader: u32) {
        let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) else { return };
        if kill_process_group(pid, Signal::KILL).is_err() {
            // Errors mean that nothing is left to kill.
            kill_process(pid, Signal::KILL).unwrap_or_default();
            kill_process_group(pid, Signal::KILL).unwrap_or_default();
        }
    }
}

#[cfg(not(unix))]
mod group {
    /// Kills the process and what it started.
    pub(super) fn kill(leader: u32) {
        let pid = leader.to_string();
        std::process::Command::new(r"C:\Windows\System32\taskkill.exe")
            .args(["/F", "/T", "/PID", &pid])
            .output()
            .map(drop)
            .unwrap_or_default();
    }
}

#[cfg(unix)]
mod output {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::process::Stdio;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::unix::pipe::Receiver;

    #[derive(Debug)]
    pub(super) struct Reader(Receiver);

    /// One pipe: its reading end, and its writing end twice.
    pub(super) fn pipe() -> io::Result<(Reader, Stdio, Stdio)> {
        let (reader, writer) = io::pipe()?;
        let reader = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        Ok((Reader(reader), writer.try_clone()?.into(), writer.into()))
    }

    impl Reader {
        /// The next bytes; none at the end.
        pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
            let mut chunk = Vec::with_capacity(super::CHUNK_BYTES);
            self.0.read_buf(&mut chunk).await?;
            Ok(chunk)
        }
    }
}

#[cfg(not(unix))]
mod output {
    use std::io::{self, Read as _};
    use std::process::Stdio;

    use tokio::sync::mpsc;

    /// Fed by a thread that ends with the pipe or with this receiver.
    #[derive(Debug)]
    pub(super) struct Reader(mpsc::Receiver<io::Result<Vec<u8>>>);

    /// One pipe: its reading end, and its writing end twice.
    pub(super) fn pipe() -> io::Result<(Reader, Stdio, Stdio)> {
        let (mut reader, writer) = io::pipe()?;
        let (sender, receiver) = mpsc::channel(4);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; super::CHUNK_BYTES];
                let read = reader.read(&mut chunk).map(|n_bytes| {
                    chunk.truncate(n_bytes);
                    chunk
                });
                let last = !matches!(&read, Ok(chunk) if !chunk.is_empty());
                if sender.blocking_send(read).is_err() || last {
                    return;
                }
            }
        });
        Ok((Reader(receiver), writer.try_clone()?.into(), writer.into()))
    }

    impl Reader {
        /// The next bytes; none at the end.
        pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
            self.0.recv().await.unwrap_or_else(|| Ok(Vec::new()))
        }
    }
}
