//! Starting the program, as a user meets it: `cargo bench --bench start`.
//!
//! The real binary, in a home of its own, as a process; `cargo bench` builds it
//! as `cargo build --release` does.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use divan::counter::ItemsCount;
use ratatui::layout::Size;
use tokio::runtime::{Builder, Runtime};

use long_session::LongSession;
use support::chat;
use support::pty::{Pty, TestHome};
use support::sse_server::{Reply, SseServer};

#[path = "../tests/it/support/long_session.rs"]
mod long_session;
mod support;

const SIZE: Size = Size { width: 120, height: 40 };

fn main() {
    divan::main();
}

/// From the start of the process to the first frame with an editor in it, in a
/// terminal that answers at once.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn first_frame(bencher: divan::Bencher<'_, '_>) {
    bencher.with_inputs(TestHome::new).bench_local_values(|home| {
        let pty = Pty::start(&home, SIZE, &[]);
        pty.wait_idle();
        // Dropped, and with it killed, when the time has been taken.
        (pty, home)
    });
}

/// As [`first_frame`], with 200 skills and 100 prompt templates of the user.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn first_frame_with_resources(bencher: divan::Bencher<'_, '_>) {
    bencher.with_inputs(home_with_resources).bench_local_values(|home| {
        let pty = Pty::start(&home, SIZE, &[]);
        pty.wait_idle();
        (pty, home)
    });
}

fn home_with_resources() -> TestHome {
    let home = TestHome::new();
    let write = |path: &str, text: &str| {
        let path = home.agent().join(path);
        let folder = path.parent().expect("it is below the agent's folder");
        fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)).expect("the folder is writable");
    };
    let body = "Read the files first, then change them.\n".repeat(50);
    for n in 0..200 {
        let head = format!("---\nname: skill-{n}\ndescription: Does a kind of work, number {n}\n---\n");
        write(&format!("skills/skill-{n}/SKILL.md"), &(head + &body));
    }
    for n in 0..100 {
        let head = format!("---\ndescription: Template number {n}\nargument-hint: <file>\n---\nFix $1.\n");
        write(&format!("prompts/template-{n}.md"), &(head + &body));
    }
    home
}

/// The least a start can cost: process, arguments, one line.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn version(bencher: divan::Bencher<'_, '_>) {
    bencher.with_inputs(TestHome::new).bench_local_values(|home| {
        let output = run(&home, &["--version"]);
        assert!(output.status.success());
        home
    });
}

/// One question in print mode, to a server in this process that answers at once.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn print(bencher: divan::Bencher<'_, '_>) {
    let runtime = server_runtime();
    bencher
        .with_inputs(|| {
            let server = runtime.block_on(SseServer::start([Reply::sse(chat::text("Done."))]));
            (TestHome::with_server(server.url()), server)
        })
        .bench_local_values(|(home, server)| {
            let output = run(&home, &["-p", "hello"]);
            assert_eq!(output.stdout, b"Done.\n");
            (home, server)
        });
}

/// `session/load` of a session of 10,000 messages of so many bytes, from the request to its
/// response, which follows the whole conversation.
#[divan::bench(args = [400, 3_000], sample_count = 20, sample_size = 1)]
fn acp_load(bencher: divan::Bencher<'_, '_>, message_bytes: usize) {
    const N_MESSAGES: usize = 10_000;
    let home = TestHome::with_server("http://127.0.0.1:1");
    let cwd = home.project();
    let folder = home.agent().join("sessions/--all--");
    fs::create_dir_all(&folder).expect("the folder is writable");
    let session = LongSession::plain(N_MESSAGES, message_bytes);
    let written = session.write(&folder.join("long.jsonl"), "long", &cwd.to_string_lossy());
    written.expect("the folder is writable");
    bencher
        .counter(ItemsCount::new(N_MESSAGES))
        .with_inputs(|| {
            let mut agent = Agent::start(&home);
            agent.send(
                1,
                "initialize",
                &serde_json::json!({ "protocolVersion": 1, "clientCapabilities": {} }),
            );
            agent.read_to_response(1);
            agent
        })
        .bench_local_values(|mut agent| {
            let params = serde_json::json!({ "sessionId": "long", "cwd": cwd, "mcpServers": [] });
            agent.send(2, "session/load", &params);
            assert!(agent.read_to_response(2) > 8_000);
            agent
        });
}

/// `pi acp` with its pipes. Ends when it is dropped.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(home: &TestHome) -> Self {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_pi")));
        command.arg("acp").current_dir(home.project()).env_clear().env("HOME", home.home());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program can be started");
        let output = child.stdout.take().expect("it is piped");
        let (input, output) = (child.stdin.take(), BufReader::with_capacity(1 << 20, output));
        Self { child, input, output }
    }

    fn send(&mut self, id: u32, method: &str, params: &serde_json::Value) {
        let request = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut input = self.input.as_ref().expect("it is open until the end");
        writeln!(input, "{request}").expect("the program reads");
    }

    /// Number of lines up to the response.
    fn read_to_response(&mut self, id: u32) -> usize {
        let response = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        let mut line = Vec::new();
        for n_lines in 1.. {
            line.clear();
            let n_bytes = self.output.read_until(b'\n', &mut line).expect("the program writes");
            assert!(n_bytes > 0, "the program ended");
            if line.starts_with(response.as_bytes()) {
                return n_lines;
            }
        }
        0
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It saves and ends with its input.
        drop(self.input.take());
        drop(self.child.wait());
    }
}

/// Serves while the bench waits for the program.
fn server_runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("the system has threads")
}

fn run(home: &TestHome, args: &[&str]) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_pi")));
    command.args(args).current_dir(home.project());
    command.env_clear().env("HOME", home.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null());
    command.output().expect("the program can be started")
}
