//! The program in RPC or JSON mode, with its lines.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::pty::TestHome;

/// Long enough for a busy machine; tests that pass never wait for it.
const LIMIT: Duration = Duration::from_secs(60);

/// The program with pipes. It is killed when dropped.
pub(crate) struct RpcClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
}

/// Whether the client reads what comes.
#[derive(PartialEq, Eq)]
pub(crate) enum Reads {
    AtOnce,
    /// Not before [`RpcClient::start_reading`].
    Later,
}

impl RpcClient {
    /// Starts the program in the user's project, with nothing else in its environment.
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> Self {
        Self::start_with(home, args, Reads::AtOnce).0
    }

    /// Also returns what starts reading later.
    pub(crate) fn start_with(home: &TestHome, args: &[&str], reads: Reads) -> (Self, impl FnOnce() + use<>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
        command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).env("PATH", "/usr/bin:/bin");
        command.env("PI_LOCAL_SERVERS", "none").current_dir(home.project()).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (sender, lines) = mpsc::channel();
        let (start, started) = mpsc::channel::<()>();
        if reads == Reads::AtOnce {
            start.send(()).unwrap();
        }
        thread::spawn(move || {
            if started.recv().is_err() {
                return;
            }
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            // Invalid text would fail the test that looks at it.
            stderr.read_to_string(&mut text).unwrap_or_default();
            text
        });
        let client = Self { child, stdin, lines, stderr: Some(stderr) };
        (client, move || start.send(()).unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, line: &Value) {
        self.send_raw(&format!("{line}\n"));
    }

    pub(crate) fn send_raw(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line; `None` at the end.
    pub(crate) fn next_text(&self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program writes nothing"),
        }
    }

    pub(crate) fn next(&self) -> Option<Value> {
        self.next_text().map(|line| serde_json::from_str(&line).unwrap())
    }

    /// All lines up to one that `is_last`.
    pub(crate) fn until(&self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.next().unwrap_or_else(|| panic!("the output ended after {lines:#?}")));
            if lines.last().is_some_and(&is_last) {
                return lines;
            }
        }
    }

    /// The response to the command with this id.
    pub(crate) fn response(&self, id: &str) -> Value {
        self.until(|line| line["type"] == "response" && line["id"] == id).pop().unwrap()
    }

    /// Sends a command and returns its response.
    pub(crate) fn request(&mut self, mut command: Value, id: &str) -> Value {
        command["id"] = id.into();
        self.send(&command);
        self.response(id)
    }

    /// Sends a prompt and waits for the end of the run.
    pub(crate) fn prompt(&mut self, text: &str) -> Vec<Value> {
        self.send(&serde_json::json!({ "type": "prompt", "message": text }));
        self.until(|line| line["type"] == "agent_settled")
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes the input and reads to the end: the rest of the lines, the exit code and what
    /// was written to standard error.
    pub(crate) fn finish(mut self) -> (Vec<Value>, ExitStatus, String) {
        self.close_input();
        let rest = std::iter::from_fn(|| self.next()).collect();
        let status = self.child.wait().unwrap();
        (rest, status, self.stderr.take().unwrap().join().unwrap())
    }
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
