//! The memory of the program, as a user meets it: `cargo bench --bench memory -- target/release/pi`.
//!
//! The real binary in a terminal; prints resident kilobytes, of which those that no other process
//! shares and no file holds are `private`. Linux only, where `/proc` has them. Without a path it
//! measures the binary that cargo built with the bench, whose dependencies have the features that the
//! tests need; the list of functions to link together is that of `cargo build --release`.
#![expect(clippy::print_stdout, reason = "this is its output")]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use ratatui::layout::Size;

use long_session::LongSession;
use support::chat;
use support::pty::{Pty, TestHome};
use support::sse_server::{Reply, SseServer};

#[path = "../tests/it/support/long_session.rs"]
mod long_session;
mod support;

const SIZE: Size = Size { width: 120, height: 40 };

/// A block of code in each language of a usual answer.
const CODE: [&str; 3] = [
    "```rust\nfn main() {\n    let x: Vec<u32> = (0..10).map(|n| n * 2).collect();\n    println!(\"{x:?}\");\n}\n```\n",
    "```python\ndef f(a, b=1):\n    \"\"\"Doc.\"\"\"\n    return [x ** 2 for x in range(a) if x % b == 0]\n```\n",
    "```ts\nexport const f = async (a: string): Promise<number> => {\n  return (await fetch(`/x/${a}`)).status;\n};\n```\n",
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("the system has threads");
    let answer: String = (0..24).map(|n| format!("Part {n}:\n\n{}\n", CODE[n % CODE.len()])).collect();
    let replies = [chat::text("Done."), chat::text(&format!("{answer}The end."))].map(Reply::sse);
    let server = runtime.block_on(SseServer::start(replies));
    let home = TestHome::with_server(server.url());
    let pty = start(&home, &[]);
    print_memory("idle after the start", &pty);
    for (prompt, end, what) in
        [("hello", "Done.", "after a short answer"), ("more", "The end.", "after a long answer with code")]
    {
        pty.keys(prompt);
        pty.wait_text(prompt);
        pty.keys("\r");
        pty.wait_text(end);
        pty.wait_idle();
        print_memory(what, &pty);
    }
    pty.kill_hard();

    let home = TestHome::with_server(server.url());
    let session = write_long_session(&home);
    for what in ["after the first resume of 10,000 messages", "after the second resume"] {
        let pty = start(&home, &["--session", &session.to_string_lossy()]);
        // The last message is an answer of many words.
        pty.wait("the end of the session", |rows| rows.iter().filter(|row| row.len() > 60).count() > 8);
        pty.keys("typed");
        pty.wait_text("typed");
        print_memory(what, &pty);
        pty.kill_hard();
    }
}

/// Starts the program that the command line names.
fn start(home: &TestHome, args: &[&str]) -> Pty {
    // Cargo passes `--bench`.
    let named = env::args_os().skip(1).find(|arg| !arg.to_string_lossy().starts_with('-'));
    let named = named.map(|path| fs::canonicalize(path).expect("the named program exists"));
    let program = named.map_or_else(|| OsString::from(env!("CARGO_BIN_EXE_pi")), OsString::from);
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let pty = Pty::start_program(home, &home.project(), SIZE, &program, &args, &[]);
    pty.wait_idle();
    pty
}

/// A session of 400 bytes a message in the project of the user.
fn write_long_session(home: &TestHome) -> PathBuf {
    let folder = home.agent().join("sessions/--all--");
    fs::create_dir_all(&folder).expect("the folder is writable");
    let session = LongSession::plain(10_000, 400);
    let path = folder.join("long.jsonl");
    session.write(&path, "long", &home.project().to_string_lossy()).expect("the folder is writable");
    path
}

fn print_memory(when: &str, pty: &Pty) {
    let status = fs::read_to_string(format!("/proc/{}/status", pty.process().as_raw_nonzero()));
    let status = status.expect("the program runs on a system with /proc");
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("?", |line| line.trim_start_matches(':').trim().trim_end_matches(" kB")).to_owned()
    };
    println!("{when}: {} kB, of which {} private", kilobytes("VmRSS"), kilobytes("RssAnon"));
}
