//! The program in a terminal, with the time of everything that it writes.
//!
//! A thread notes when bytes arrive and passes them on. The emulator runs where the measurement
//! waits, so that it delays neither the times nor the program.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ratatui::layout::Size;

use crate::support::pty::TestHome;
use crate::support::virtual_terminal::VirtualTerminal;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    output: Receiver<(Instant, Vec<u8>)>,
    emulator: VirtualTerminal,
    started: Instant,
    n_bytes: usize,
}

/// What a terminal is asked.
const CURSOR_QUERY: &[u8] = b"\x1b[6n";
const DEVICE_QUERY: &[u8] = b"\x1b[c";

impl Terminal {
    pub(crate) fn start(program: &OsStr, home: &TestHome, size: Size, args: &[&OsStr]) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).expect("the system has terminals");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        let environment = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TERM", "xterm-256color")];
        for (name, value) in
            environment.into_iter().chain([("COLORFGBG", "15;0"), ("PI_LOCAL_SERVERS", "none")])
        {
            command.env(name, value);
        }
        command.env("HOME", home.home());
        command.env("TMPDIR", home.temp());
        command.cwd(home.project());
        let mut reader = pair.master.try_clone_reader().expect("the terminal is open");
        let keys = pair.master.take_writer().expect("the terminal is open");
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut chunk = vec![0; 65_536];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                if sender.send((Instant::now(), chunk[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).expect("the program can be started");
        drop(pair.slave);
        let emulator = VirtualTerminal::new(size);
        Self { child, master: pair.master, keys, output, emulator, started, n_bytes: 0 }
    }

    /// Time since the start of the program until `ready` holds for what it wrote last, or for the screen.
    pub(crate) fn since_start(&mut self, ready: impl FnMut(&[u8], &VirtualTerminal) -> bool) -> Duration {
        let started = self.started;
        self.wait(ready) - started
    }

    /// Types, and returns the time until `ready` holds for what the program wrote last, or for the screen.
    pub(crate) fn type_until(
        &mut self,
        keys: &str,
        ready: impl FnMut(&[u8], &VirtualTerminal) -> bool,
    ) -> Duration {
        let typed = Instant::now();
        self.write(keys);
        self.wait(ready) - typed
    }

    pub(crate) fn write(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the program reads");
    }

    /// Changes the size, and returns the time until `ready` holds for the screen.
    pub(crate) fn resize_until(
        &mut self,
        size: Size,
        mut ready: impl FnMut(&VirtualTerminal) -> bool,
    ) -> Duration {
        self.emulator.resize(size);
        let resized = Instant::now();
        self.master.resize(pty_size(size)).expect("the terminal is open");
        self.wait(|_, screen| ready(screen)) - resized
    }

    /// Waits until nothing was written for this long.
    pub(crate) fn rest(&mut self, quiet: Duration) {
        while self.next(quiet).is_some() {}
    }

    /// Types the keys that quit, and returns the time until the process is gone.
    pub(crate) fn quit(mut self, keys: &str) -> Duration {
        let typed = Instant::now();
        self.write(keys);
        // It asks before it leaves, and may wait for the answer.
        self.rest(LIMIT);
        self.child.wait().expect("it is a child");
        typed.elapsed()
    }

    /// Bytes that the program has written.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Processor time of all threads.
    pub(crate) fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).expect("the program runs");
        let times = tasks.flatten().filter_map(|task| {
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            times.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(times.sum())
    }

    /// Resident kilobytes, and those that no file holds and no other process shares.
    pub(crate) fn memory(&self) -> (f64, f64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("the program runs");
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
            number.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
        };
        (kilobytes("VmRSS"), kilobytes("RssAnon"))
    }

    fn id(&self) -> u32 {
        self.child.process_id().expect("it was started")
    }

    /// When the bytes arrived after which `ready` holds.
    #[track_caller]
    fn wait(&mut self, mut ready: impl FnMut(&[u8], &VirtualTerminal) -> bool) -> Instant {
        loop {
            let Some((at, bytes)) = self.next(LIMIT) else {
                panic!("the program does not get there:\n{}", self.emulator.screen().join("\n"));
            };
            if ready(&bytes, &self.emulator) {
                return at;
            }
        }
    }

    /// The next bytes, shown by the emulator; `None` after `limit` or at the end.
    fn next(&mut self, limit: Duration) -> Option<(Instant, Vec<u8>)> {
        let (at, bytes) = match self.output.recv_timeout(limit) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        self.n_bytes += bytes.len();
        self.emulator.feed(&bytes);
        let n_asked = |query: &[u8]| bytes.windows(query.len()).filter(|window| *window == query).count();
        let cursor = self.emulator.cursor();
        let answers = [
            (CURSOR_QUERY, format!("\x1b[{};{}R", cursor.y + 1, cursor.x + 1)),
            (DEVICE_QUERY, "\x1b[?62;22c".to_owned()),
        ];
        for (query, answer) in answers {
            // The program may have ended since it asked.
            drop(self.keys.write_all(answer.repeat(n_asked(query)).as_bytes()));
        }
        Some((at, bytes))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Whether a row of the screen contains the text.
pub(crate) fn shows(terminal: &VirtualTerminal, text: &str) -> bool {
    terminal.screen().iter().any(|row| row.contains(text))
}

/// Whether the editor is there and the agent does nothing.
pub(crate) fn is_ready(terminal: &VirtualTerminal) -> bool {
    let rows = terminal.screen();
    rows.iter().any(|row| row.starts_with("───")) && !rows.iter().any(|row| row.contains("to interrupt)"))
}

/// The path as it is after the program changes its directory.
pub(crate) fn absolute(path: &Path) -> std::path::PathBuf {
    fs::canonicalize(path).expect("the named program exists")
}

fn pty_size(size: Size) -> PtySize {
    PtySize { rows: size.height, cols: size.width, pixel_width: 0, pixel_height: 0 }
}
