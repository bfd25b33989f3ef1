//! The real program in a pseudo-terminal, watched by a terminal emulator.
//!
//! The environment contains only a test's variables, and home is a temporary
//! folder. Waiting means waiting for output: a thread feeds the emulator and
//! wakes the waiting test; nothing sleeps.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use pi::session::project_folder;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use ratatui::layout::Size;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::files::wait_for_files;
use super::sse_server::{Reply, SseServer};
use super::virtual_terminal::VirtualTerminal;

/// The size of most terminals here.
pub(crate) const SIZE: Size = Size { width: 80, height: 24 };

/// How long something may take before the test has failed.
const LIMIT: Duration = Duration::from_secs(30);

/// A user: a home with pi's files, and a project to work in.
pub(crate) struct TestHome {
    root: TempDir,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/.pi/agent")).unwrap();
        fs::create_dir_all(root.path().join("project")).unwrap();
        fs::create_dir_all(root.path().join("tmp")).unwrap();
        Self { root }
    }

    /// A user whose only model is served at `url`, in Chat Completions.
    pub(crate) fn with_server(url: &str) -> Self {
        let home = Self::new();
        let models = json!({"providers": {"local": {
            "baseUrl": url, "api": "openai-completions", "apiKey": "key",
            "models": [{"id": "m-1", "contextWindow": 200_000}],
        }}});
        fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
        home
    }

    pub(crate) fn settings(self, settings: &Value) -> Self {
        fs::write(self.agent().join("settings.json"), settings.to_string()).unwrap();
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// For temporary files, such as long output.
    pub(crate) fn temp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.home().join(".pi/agent")
    }

    pub(crate) fn project(&self) -> PathBuf {
        // The system may hand out its temporary folder by a link.
        fs::canonicalize(self.root.path().join("project")).unwrap()
    }

    /// All session files, oldest first.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let Ok(folders) = fs::read_dir(self.agent().join("sessions")) else { return files };
        for folder in folders {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    files.push(path);
                }
            }
        }
        files.sort();
        files
    }

    /// The drafts that are stored for the project.
    pub(crate) fn drafts(&self) -> Vec<Value> {
        let folders = fs::read_dir(self.agent().join("sessions")).into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten();
        let drafts = files.filter(|file| file.file_name().to_string_lossy().ends_with(".draft"));
        // One that is being replaced is no draft yet.
        drafts.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok()).collect()
    }

    /// The entries of the only session file.
    pub(crate) fn entries(&self) -> Vec<Value> {
        let [file] = self.sessions().try_into().unwrap();
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The program in a terminal of [`SIZE`], ready for keys, with a model that gives these replies.
pub(crate) async fn start_with_server(
    args: &[&str],
    replies: impl IntoIterator<Item = Reply>,
) -> (SseServer, TestHome, Pty) {
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, args);
    pty.wait_idle();
    (server, home, pty)
}

/// The modes that pi sets, and what resets them: alternate screen, mouse, focus, paste,
/// keyboard flags, a frame, the cursor.
const MODES: [(&str, &str); 8] = [
    ("\x1b[?1049h", "\x1b[?1049l"),
    ("\x1b[?1002h", "\x1b[?1002l"),
    ("\x1b[?1006h", "\x1b[?1006l"),
    ("\x1b[?1004h", "\x1b[?1004l"),
    ("\x1b[?2004h", "\x1b[?2004l"),
    ("\x1b[>5u", "\x1b[<1u"),
    ("\x1b[?2026h", "\x1b[?2026l"),
    ("\x1b[?25l", "\x1b[?25h"),
];

/// Asserts that whatever was set in the output is reset at its end.
#[track_caller]
pub(crate) fn assert_restored(output: &[u8]) {
    let output = String::from_utf8_lossy(output);
    assert!(output.contains("\x1b[?2004h"), "the terminal was never taken");
    for (on, off) in MODES {
        if let Some(on_at) = output.rfind(on) {
            assert!(output.rfind(off) > Some(on_at), "{on:?} is not undone");
        }
    }
}

/// The program, running.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    shared: Arc<(Mutex<Shared>, Condvar)>,
    /// Where sessions of its directory are.
    sessions: PathBuf,
}

struct Shared {
    terminal: VirtualTerminal,
    /// Everything the program wrote.
    log: Vec<u8>,
    /// How much of `log` the emulator has seen.
    seen: usize,
    ended: bool,
    terminal_answers: TerminalAnswers,
}

impl Pty {
    /// Starts pi in the user's project.
    pub(crate) fn start(home: &TestHome, size: Size, args: &[&str]) -> Self {
        Self::start_in(home, &home.project(), size, args, &[])
    }

    pub(crate) fn start_in(
        home: &TestHome,
        cwd: &Path,
        size: Size,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        Self::start_on(&[], home, cwd, size, args, env)
    }

    /// Starts pi on a terminal that also answers these queries.
    pub(crate) fn start_on(
        terminal_answers: TerminalAnswers,
        home: &TestHome,
        cwd: &Path,
        size: Size,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let pi = OsStr::new(env!("CARGO_BIN_EXE_pi"));
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        Self::spawn(terminal_answers, home, cwd, size, pi, &args, env)
    }

    /// Starts a shell with job control in the user's project; `$PI` is the program.
    pub(crate) fn start_shell(home: &TestHome, size: Size) -> Self {
        let env = [("PI", env!("CARGO_BIN_EXE_pi")), ("PS1", "shell> "), ("ENV", "")];
        let shell = Self::start_program(home, &home.project(), size, "sh".as_ref(), &["-i".as_ref()], &env);
        shell.wait_text("shell>");
        shell
    }

    /// Starts a program in the environment of pi.
    pub(crate) fn start_program(
        home: &TestHome,
        cwd: &Path,
        size: Size,
        program: &OsStr,
        args: &[&OsStr],
        env: &[(&str, &str)],
    ) -> Self {
        Self::spawn(&[], home, cwd, size, program, args, env)
    }

    fn spawn(
        terminal_answers: TerminalAnswers,
        home: &TestHome,
        cwd: &Path,
        size: Size,
        program: &OsStr,
        args: &[&OsStr],
        env: &[(&str, &str)],
    ) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        command.env("HOME", home.home());
        command.env("TMPDIR", home.temp());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("COLORFGBG", "15;0");
        command.env("PI_LOCAL_SERVERS", "none");
        for (name, value) in env {
            command.env(name, value);
        }
        command.cwd(cwd);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let terminal = VirtualTerminal::new(size);
        let shared = Shared { terminal, log: Vec::new(), seen: 0, ended: false, terminal_answers };
        let shared = Arc::new((Mutex::new(shared), Condvar::new()));
        let writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let reader = pair.master.try_clone_reader().unwrap();
        thread::spawn({
            let (shared, writer) = (Arc::clone(&shared), Arc::clone(&writer));
            move || watch(reader, &shared, &writer)
        });
        let sessions = project_folder(&home.agent().join("sessions"), cwd);
        Self { child, master: pair.master, writer, shared, sessions }
    }

    /// Types; `\r` is Enter, `\x1b` Escape.
    pub(crate) fn keys(&self, keys: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn resize(&self, size: Size) {
        // Held until the program knows too: it answers the signal at once.
        let mut shared = self.lock();
        shared.terminal.resize(size);
        self.master.resize(pty_size(size)).unwrap();
    }

    /// Waits until `ready` is true for the screen's rows, and returns them.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, ready: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut rows = Vec::new();
        self.wait_for(what, |shared| {
            rows = shared.terminal.screen();
            ready(&rows)
        });
        rows
    }

    /// Waits until `ready` holds of the files of the project's sessions.
    #[track_caller]
    pub(crate) fn wait_saved(&self, what: &str, ready: impl Fn() -> bool) {
        fs::create_dir_all(&self.sessions).unwrap();
        wait_for_files(&self.sessions, what, ready);
    }

    /// Waits until `ready` holds of everything the program wrote.
    #[track_caller]
    pub(crate) fn wait_log(&self, what: &str, ready: impl Fn(&str) -> bool) {
        self.wait_for(what, |shared| ready(&String::from_utf8_lossy(&shared.log)));
    }

    /// Waits until `text` is somewhere on the screen.
    #[track_caller]
    pub(crate) fn wait_text(&self, text: &str) -> Vec<String> {
        self.wait(text, |rows| rows.iter().any(|row| row.contains(text)))
    }

    /// Waits until the program has taken the terminal.
    #[track_caller]
    pub(crate) fn wait_taken(&self) {
        self.wait_bytes("the terminal to be taken", b"\x1b[?2004h");
    }

    /// Waits until the program has written `bytes`.
    #[track_caller]
    pub(crate) fn wait_bytes(&self, what: &str, bytes: &[u8]) {
        self.wait_for(what, |shared| shared.log.windows(bytes.len()).any(|window| window == bytes));
    }

    /// Waits until the editor is there and nothing is going on.
    #[track_caller]
    pub(crate) fn wait_idle(&self) -> Vec<String> {
        self.wait("an idle editor", |rows| {
            rows.iter().any(|row| row.starts_with("───"))
                && !rows.iter().any(|row| row.contains("to interrupt)"))
        })
    }

    /// What `draw` makes of the screen with its colours.
    pub(crate) fn picture<T>(&self, draw: impl FnOnce(&vt100::Screen) -> T) -> T {
        draw(self.lock().terminal.picture())
    }

    /// Scrollback and screen.
    pub(crate) fn everything(&self) -> Vec<String> {
        let mut shared = self.lock();
        shared.terminal.everything()
    }

    /// The program's output, byte by byte.
    pub(crate) fn log(&self) -> Vec<u8> {
        self.lock().log.clone()
    }

    /// The same as text.
    pub(crate) fn text_log(&self) -> String {
        String::from_utf8_lossy(&self.lock().log).into_owned()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).unwrap();
    }

    /// Reads no more of what the program writes until the program has ended, after `action`.
    #[track_caller]
    pub(crate) fn end_unread(mut self, action: impl FnOnce(&Self)) -> (ExitStatus, Vec<u8>) {
        let shared = Arc::clone(&self.shared);
        // The thread that reads needs it.
        let held = shared.0.lock().unwrap();
        action(&self);
        let status = self.child.wait().unwrap();
        drop(held);
        self.wait_for("the end of the output", |shared| shared.ended);
        (status, self.log())
    }

    /// Waits for the end of the program and of its output.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>, Vec<u8>) {
        self.wait_for("the end", |shared| shared.ended);
        let status = self.child.wait().unwrap();
        (status, self.everything(), self.log())
    }

    /// Ends the program without giving it a chance to do anything about it. The
    /// child's own `kill` would begin with a hang-up.
    pub(crate) fn kill_hard(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    pub(crate) fn process(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.process_id().unwrap()).unwrap()).unwrap()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.0.lock().unwrap()
    }

    #[track_caller]
    fn wait_for(&self, what: &str, mut ready: impl FnMut(&mut Shared) -> bool) {
        let (shared, woken) = &*self.shared;
        let guard = shared.lock().unwrap();
        let (mut guard, timeout) =
            woken.wait_timeout_while(guard, LIMIT, |shared| !ready(shared) && !shared.ended).unwrap();
        if timeout.timed_out() || !ready(&mut guard) {
            let state = if guard.ended { "the program ended" } else { "nothing more happened" };
            let rows = guard.terminal.everything().join("\n");
            drop(guard);
            panic!("waiting for {what}, but {state}:\n{rows}");
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Already ended, in most tests.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn pty_size(size: Size) -> PtySize {
    PtySize { rows: size.height, cols: size.width, pixel_width: 0, pixel_height: 0 }
}

type Answer = fn(&VirtualTerminal) -> String;

/// Queries, and what the terminal answers.
pub(crate) type TerminalAnswers = &'static [(&'static [u8], &'static str)];

enum TerminalAnswer {
    Text(&'static str),
    Of(Answer),
}

/// Queries to a terminal, and its answers.
const QUERIES: &[(&[u8], Answer)] = &[
    (b"\x1b[6n", |terminal| {
        let cursor = terminal.cursor();
        format!("\x1b[{};{}R", cursor.y + 1, cursor.x + 1)
    }),
    (b"\x1b[c", |_| "\x1b[?62;22c".to_owned()),
];

fn watch(
    mut reader: Box<dyn Read + Send>,
    shared: &(Mutex<Shared>, Condvar),
    writer: &Mutex<Box<dyn Write + Send>>,
) {
    let (shared, woken) = shared;
    let mut chunk = [0; 65_536];
    loop {
        // Linux reports the end of the other side as an error.
        let n = reader.read(&mut chunk).unwrap_or(0);
        let mut guard = shared.lock().unwrap();
        guard.log.extend_from_slice(&chunk[..n]);
        guard.ended = n == 0;
        let answers = guard.show();
        drop(guard);
        woken.notify_all();
        if n == 0 {
            return;
        }
        for answer in answers {
            let mut writer = writer.lock().unwrap();
            drop(writer.write_all(answer.as_bytes()).and_then(|()| writer.flush()));
        }
    }
}

impl Shared {
    /// Feeds new output to the emulator, and returns its answers to queries.
    fn show(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        loop {
            let rest = &self.log[self.seen..];
            let end_of = |query: &[u8]| {
                let at = rest.windows(query.len()).position(|window| window == query)?;
                Some(at + query.len())
            };
            let own = self
                .terminal_answers
                .iter()
                .filter_map(|(query, text)| Some((end_of(query)?, TerminalAnswer::Text(text))));
            let usual = QUERIES
                .iter()
                .filter_map(|(query, answer)| Some((end_of(query)?, TerminalAnswer::Of(*answer))));
            let Some((end, answer)) = own.chain(usual).min_by_key(|(end, _)| *end) else { break };
            let bytes = rest[..end].to_vec();
            self.terminal.feed(&bytes);
            self.seen += end;
            answers.push(match answer {
                TerminalAnswer::Text(text) => text.to_owned(),
                TerminalAnswer::Of(answer) => answer(&self.terminal),
            });
        }
        // A query may be cut in two; a few bytes wait for the rest of it.
        let tail = self.log[self.seen..].iter().rev().take(3).position(|byte| *byte == b'\x1b');
        let end = tail.map_or(self.log.len(), |from_end| self.log.len() - from_end - 1);
        // A frame is shown whole: it may arrive in pieces, and half of one is no state of the
        // program.
        let frame = begun_frame(&self.log[self.seen..end]).map_or(end, |at| self.seen + at);
        let end = if self.ended { self.log.len() } else { frame };
        let bytes = self.log[self.seen..end].to_vec();
        self.terminal.feed(&bytes);
        self.seen = end;
        answers
    }
}

/// Where a synchronized update begins that has not ended.
fn begun_frame(output: &[u8]) -> Option<usize> {
    let last = |mark: &[u8]| output.windows(mark.len()).rposition(|window| window == mark);
    let begin = last(b"\x1b[?2026h")?;
    last(b"\x1b[?2026l").is_none_or(|end| end < begin).then_some(begin)
}
