//! Runs a command in a process group of its own and returns its output.
//!
//! Standard output and standard error share one pipe, so their order is the
//! order of arrival. Invariant: a command that is cancelled, times out or
//! is dropped is killed together with all its descendants that stayed in its
//! session; so are commands that run when the program ends, even
//! by SIGKILL. The caller decodes and limits the output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Child;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::os::{self, OutputPipe, PipeReader};
use super::watchdog::{Change, Member, Watchdog};

/// How long the pipe must stay silent after the command has exited, if
/// a background process still holds it, until the command counts as ended.
const QUIET_AFTER_EXIT: Duration = Duration::from_millis(100);

/// How long the output of a command is read that has exited when its limit is reached. Then
/// background processes write on.
const READ_AFTER_LIMIT: Duration = Duration::from_millis(500);

const CHUNK_BYTES: usize = 64 * 1024;

/// The command to run.
#[derive(Debug, Clone)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// Changes to the inherited environment; `None` removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The command is killed after this time.
    pub timeout: Option<Duration>,
}

/// The next event of a running command.
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
    /// With `command_exited`, only background processes were still writing.
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
    output: PipeReader,
    output_open: bool,
    exit_code: Option<i32>,
    /// Why the group was killed; its remaining output is still read.
    killed: Option<End>,
    kill_at: Option<Instant>,
    is_past_limit: bool,
    stop_reading_at: Option<Instant>,
    cancel: CancellationToken,
    ended: bool,
}

impl Running {
    /// Starts `command` with no input.
    ///
    /// # Errors
    /// If the program or the directory does not exist or is not accessible.
    pub fn start(command: &Command, cancel: CancellationToken) -> io::Result<Self> {
        let OutputPipe { reader, stdout, stderr, inode } = os::output_pipe()?;
        let mut spawned = tokio::process::Command::from(os::detached(&command.program, &command.args)?);
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
        let starting = Registered::new(inode.map(Member::Output));
        let child = spawned.spawn()?;
        // The parent's write ends of the pipe must close, or the pipe would never end.
        drop(spawned);
        let group = Group::register(child.id());
        drop(starting);
        Ok(Self {
            child,
            group,
            output: reader,
            output_open: true,
            exit_code: None,
            killed: None,
            kill_at: command.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            is_past_limit: false,
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
                () = until(self.kill_at), if running && self.kill_at.is_some() => self.on_limit(),
                // Before reading, because continuous output is always ready.
                status = self.child.wait(), if self.exit_code.is_none() => {
                    self.exit_code = Some(status.map_or(-1, os::exit_code));
                    self.stop_reading_soon();
                }
                read = self.output.read(CHUNK_BYTES), if self.output_open => match read {
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

    /// How it ended, once there is nothing left to wait for.
    fn end(&self) -> Option<End> {
        if self.output_open {
            return None;
        }
        match (self.killed, self.exit_code) {
            // Do not wait for a killed process that is stuck in the kernel.
            (Some(end), Some(_)) => Some(end),
            (Some(end), None) if self.stop_reading_at.is_some_and(|at| at <= Instant::now()) => Some(end),
            (None, Some(code)) => Some(End::Exited(code)),
            (Some(_) | None, None) => None,
        }
    }

    /// Kills the command, unless it has ended already: this process may have been stopped
    /// since, with the end and the output of the command waiting to be read.
    fn on_limit(&mut self) {
        let is_first = !std::mem::replace(&mut self.is_past_limit, true);
        if is_first && self.has_exited() {
            self.kill_at = Instant::now().checked_add(READ_AFTER_LIMIT);
        } else {
            self.kill(End::TimedOut { command_exited: self.exit_code.is_some() });
        }
    }

    /// Asks the system, because the timer may be seen before the signal.
    fn has_exited(&mut self) -> bool {
        if self.exit_code.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exit_code = Some(os::exit_code(status));
            self.stop_reading_soon();
        }
        self.exit_code.is_some()
    }

    fn kill(&mut self, end: End) {
        self.group.kill();
        self.killed = Some(end);
        // A process outside the group may write forever, so this limit is not extended.
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

/// Kills every running command with its group, for the end of
/// the program, which the kernel does not signal to other process groups.
pub fn kill_all() {
    let members: Vec<Member> = live().members.iter().copied().collect();
    for member in members {
        if let Member::Group(leader) = member {
            os::kill_group(leader);
        }
    }
}

/// The running commands, and the watchdog that ends them if this process is killed.
#[derive(Debug)]
struct Live {
    members: BTreeSet<Member>,
    /// Started with the first command.
    watchdog: Option<Watchdog>,
}

static LIVE: Mutex<Live> = Mutex::new(Live { members: BTreeSet::new(), watchdog: None });

fn live() -> std::sync::MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    fn change(&mut self, change: Change) {
        match change {
            Change::Added(member) => drop(self.members.insert(member)),
            Change::Removed(member) => drop(self.members.remove(&member)),
        }
        if let Some(watchdog) = &mut self.watchdog
            && watchdog.note(change).is_ok()
        {
            return;
        }
        // The watchdog was killed or stopped. Commands run without one as well.
        self.watchdog = if self.members.is_empty() { None } else { self.new_watchdog().ok() };
    }

    fn new_watchdog(&self) -> io::Result<Watchdog> {
        let mut watchdog = Watchdog::start()?;
        for &member in &self.members {
            watchdog.note(Change::Added(member))?;
        }
        Ok(watchdog)
    }
}

/// A member of [`LIVE`] while this value lives.
#[derive(Debug)]
struct Registered(Option<Member>);

impl Registered {
    fn new(member: Option<Member>) -> Self {
        if let Some(member) = member {
            live().change(Change::Added(member));
        }
        Self(member)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(member) = self.0 {
            live().change(Change::Removed(member));
        }
    }
}

/// A process group, ended with the program while this value lives.
#[derive(Debug)]
pub struct Group {
    /// Process id of the leader; `None` if it exited before its id was known.
    leader: Option<u32>,
    _registered: Registered,
}

impl Group {
    /// The group of the process `leader`, whose id it shares.
    pub fn register(leader: Option<u32>) -> Self {
        Self { leader, _registered: Registered::new(leader.map(Member::Group)) }
    }

    /// Kills the group, and its session if it has one of its own. An error
    /// means that nothing is left to kill.
    pub fn kill(&self) {
        if let Some(leader) = self.leader {
            os::kill_group(leader);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str, timeout: Duration) -> Command {
        Command {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), line.into()],
            cwd: PathBuf::from("/"),
            env: Vec::new(),
            timeout: Some(timeout),
        }
    }

    /// Waits, without giving the runtime a turn, until the process has exited.
    fn wait_for_exit(pid: u32) {
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        while !state().contains(") Z ") {
            std::thread::yield_now();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn command_that_ended_while_pi_was_stopped_keeps_its_exit_status() {
        let limit = Duration::from_secs(8);
        let mut running =
            Running::start(&command("echo out; exit 3", limit), CancellationToken::new()).unwrap();
        wait_for_exit(running.child.id().unwrap());
        tokio::time::advance(limit + Duration::from_secs(3)).await;
        let mut output = Vec::new();
        let end = loop {
            match running.next().await {
                Event::Output(bytes) => output.extend(bytes),
                Event::Ended(end) => break end,
            }
        };
        assert_eq!((output.as_slice(), end), (b"out\n".as_slice(), End::Exited(3)));
    }
}
