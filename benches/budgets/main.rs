//! What the terminal mode costs, as a user meets it, beside what it may cost.
//!
//! ```sh
//! cargo build --release && cp target/release/pi target/pi
//! cargo bench --bench budgets -- target/pi              # all rows
//! cargo bench --bench budgets -- target/pi memory       # those whose group has this name
//! ```
//!
//! The real program in a terminal, against a model server of this process. Linux only, where `/proc`
//! has memory and processor times. Without a path it measures the program that cargo built with the
//! bench, whose dependencies have the features that the tests need, and whose functions are therefore
//! not in their order.
#![expect(clippy::print_stdout, reason = "this is its output")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ratatui::layout::Size;

use long_session::LongSession;
use server::{BURST, CODE, END, TRICKLE};
use support::pty::TestHome;
use support::virtual_terminal::VirtualTerminal;
use terminal::{Terminal, absolute, contains, is_ready, shows};

#[path = "../../tests/it/support/long_session.rs"]
mod long_session;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod terminal;

/// The size of the terminal in which the peers of pi were measured.
const SIZE: Size = Size { width: 160, height: 45 };
const NARROW: Size = Size { width: 100, height: 45 };

/// Longer than unused grammars are kept.
const GRAMMARS_LEAVE: Duration = Duration::from_secs(4);

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_O: &str = "\x0f";
const CTRL_T: &str = "\x14";
const ALT_O: &str = "\x1bo";
const ESCAPE: &str = "\x1b";

type Group = (&'static str, fn(&Program));

/// Measurements that start the program, by the name of their group.
const GROUPS: [Group; 6] = [
    ("start", measure_start),
    ("memory", measure_memory),
    ("keys", measure_keys),
    ("streams", measure_streams),
    ("sessions", measure_long_session),
    ("picker", measure_picker),
];

fn main() {
    // Cargo passes `--bench`.
    let mut args = env::args_os().skip(1).filter(|arg| !arg.to_string_lossy().starts_with('-'));
    let path = args.next().map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_pi")), PathBuf::from);
    let program = Program { path: absolute(&path), server: server::start() };
    let groups: Vec<OsString> = args.collect();
    println!("{:<58} {:>10} {:>10} {:>10}", "", "median", "p95", "goal");
    for (name, measure) in GROUPS {
        if groups.is_empty() || groups.iter().any(|group| group == name) {
            measure(&program);
        }
    }
}

/// The program to measure, and the model it uses.
struct Program {
    path: PathBuf,
    server: String,
}

impl Program {
    fn home(&self) -> TestHome {
        TestHome::with_server(&self.server)
    }

    fn start(&self, home: &TestHome, args: &[&OsStr]) -> Terminal {
        Terminal::start(self.path.as_os_str(), home, SIZE, args)
    }

    /// Started, and at rest.
    fn start_idle(&self, home: &TestHome, args: &[&OsStr]) -> Terminal {
        let mut terminal = self.start(home, args);
        terminal.since_start(|_, screen| is_ready(screen));
        terminal.rest(Duration::from_millis(300));
        terminal
    }
}

/// Prints a row: what was measured and the goal that its median has to reach.
fn report(what: &str, mut values: Vec<f64>, unit: &str, goal: f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    report_row(what, at(0.5), at(0.95), unit, goal, at(0.5));
}

/// As [`report`], for a goal that 95 of 100 values have to reach.
fn report_p95(what: &str, mut values: Vec<f64>, unit: &str, goal: f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    report_row(what, at(0.5), at(0.95), unit, goal, at(0.95));
}

fn report_row(what: &str, median: f64, p95: f64, unit: &str, goal: f64, judged: f64) {
    let verdict = if judged <= goal { "" } else { "  over" };
    println!("{what:<58} {median:>7.2} {unit:<2} {p95:>7.2} {unit:<2} {goal:>7.2} {unit:<2}{verdict}");
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Whether the last bytes end a frame that shows the editor.
fn is_first_frame(bytes: &[u8]) -> bool {
    contains(bytes, "───")
}

fn measure_start(program: &Program) {
    let (mut frames, mut echoes, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..40 {
        let home = program.home();
        let mut terminal = program.start(&home, &[]);
        frames.push(milliseconds(terminal.since_start(|bytes, _| is_first_frame(bytes))));
        drop(terminal);
        let home = program.home();
        let mut terminal = program.start(&home, &[]);
        terminal.since_start(|bytes, _| contains(bytes, "\x1b[?2004h"));
        terminal.write("Q");
        echoes.push(milliseconds(terminal.since_start(|bytes, _| contains(bytes, "Q"))));
        terminal.write("\x7f");
        terminal.rest(Duration::from_millis(200));
        ends.push(milliseconds(terminal.quit(CTRL_D)));
    }
    report("start: to the first frame", frames, "ms", 6.0);
    report("start: to the first echoed key", echoes, "ms", 7.0);
    report("quit: to the end of the process", ends, "ms", 5.0);
}

fn measure_memory(program: &Program) {
    let (mut idle, mut private, mut code, mut resumed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let home = program.home();
        let mut terminal = program.start_idle(&home, &[]);
        let (all, own) = terminal.memory();
        idle.push(all / 1_000.0);
        private.push(own / 1_000.0);
        ask(&mut terminal, "hello");
        ask(&mut terminal, CODE);
        terminal.rest(GRAMMARS_LEAVE);
        code.push(terminal.memory().0 / 1_000.0);
        let long = write_long_session(&home);
        let mut terminal = program.start_idle(&home, &["--session".as_ref(), long.as_os_str()]);
        terminal.type_until("Q", |bytes, _| contains(bytes, "Q"));
        terminal.rest(Duration::from_millis(300));
        resumed.push(terminal.memory().0 / 1_000.0);
    }
    report("memory: idle", idle, "MB", 10.0);
    report("memory: idle, private", private, "MB", 1.75);
    report("memory: after a long answer with code", code, "MB", 15.0);
    report("memory: with a resumed session of 10,000 messages", resumed, "MB", 18.0);
}

/// Sends a prompt and waits for the whole answer; returns how long it took.
fn ask(terminal: &mut Terminal, prompt: &str) -> Duration {
    terminal.write(prompt);
    terminal.rest(Duration::from_millis(100));
    let end = format!("{END}{prompt}");
    let took = terminal.type_until("\r", |_, screen| shows(screen, &end) && is_ready(screen));
    terminal.rest(Duration::from_millis(300));
    took
}

/// Times from keys to their echo, which nothing else on the screen contains.
fn echoes(terminal: &mut Terminal, n: usize, pause: Duration) -> Vec<f64> {
    let echo = |at: usize| {
        let key = ["Q", "Z", "X", "J"][at % 4];
        let took = terminal.type_until(key, |bytes, _| contains(bytes, key));
        terminal_pause(pause);
        milliseconds(took)
    };
    (0..n).map(echo).collect()
}

fn terminal_pause(pause: Duration) {
    std::thread::sleep(pause);
}

fn measure_keys(program: &Program) {
    let home = program.home();
    let mut terminal = program.start_idle(&home, &[]);
    let idle = echoes(&mut terminal, 120, Duration::from_millis(15));
    report_p95("keys: to the echo, idle", idle, "ms", 0.5);
    terminal.write(CTRL_C);
    terminal.rest(Duration::from_millis(700));
    terminal.write(TRICKLE);
    terminal.rest(Duration::from_millis(100));
    terminal.type_until("\r", |_, screen| shows(screen, "parser"));
    let streaming = echoes(&mut terminal, 100, Duration::from_millis(60));
    report_p95("keys: to the echo, while 150 tokens a second arrive", streaming, "ms", 0.8);
    drop(terminal);
    let mut escapes = Vec::new();
    for _ in 0..12 {
        let home = program.home();
        let mut terminal = program.start_idle(&home, &[]);
        terminal.write(TRICKLE);
        terminal.rest(Duration::from_millis(100));
        terminal.type_until("\r", |_, screen| shows(screen, "offset"));
        terminal_pause(Duration::from_millis(500));
        escapes
            .push(milliseconds(terminal.type_until(ESCAPE, |_, screen| shows(screen, "Operation aborted"))));
    }
    report("keys: Escape to the screen, while an answer arrives", escapes, "ms", 4.0);
}

fn measure_streams(program: &Program) {
    let (mut walls, mut cpus, mut bursts_bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        let home = program.home();
        let mut terminal = program.start_idle(&home, &[]);
        ask(&mut terminal, "hello");
        let (cpu, bytes) = (terminal.cpu(), terminal.n_bytes());
        walls.push(milliseconds(ask(&mut terminal, BURST)));
        cpus.push(milliseconds(terminal.cpu() - cpu));
        bursts_bytes.push((terminal.n_bytes() - bytes) as f64 / 1_000.0);
    }
    report("streams: 2,000 tokens at once, until ready", walls, "ms", 20.0);
    report("streams: 2,000 tokens at once, processor", cpus, "ms", 15.0);
    report("streams: 2,000 tokens at once, written", bursts_bytes, "kB", 60.0);
    let (mut cpus, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let home = program.home();
        let mut terminal = program.start_idle(&home, &[]);
        ask(&mut terminal, "hello");
        let before = (terminal.cpu(), terminal.n_bytes());
        ask(&mut terminal, TRICKLE);
        cpus.push(milliseconds(terminal.cpu() - before.0));
        bytes.push((terminal.n_bytes() - before.1) as f64 / 1_000.0);
    }
    report("streams: 1,500 tokens at 150 a second, processor", cpus, "ms", 120.0);
    report("streams: 1,500 tokens at 150 a second, written", bytes, "kB", 60.0);
}

fn measure_long_session(program: &Program) {
    let home = program.home();
    let session = write_long_session(&home);
    let mut terminal = program.start_idle(&home, &["--session".as_ref(), session.as_os_str()]);
    let (mut resizes, mut bytes) = (Vec::new(), Vec::new());
    for round in 0..10 {
        let size = if round % 2 == 0 { NARROW } else { SIZE };
        let before = terminal.n_bytes();
        let border = "─".repeat(usize::from(size.width));
        let took =
            terminal.resize_until(size, |screen| screen.screen().iter().any(|row| row.starts_with(&border)));
        resizes.push(milliseconds(took));
        terminal.rest(Duration::from_millis(600));
        bytes.push((terminal.n_bytes() - before) as f64 / 1_000.0);
    }
    report("sessions: resize of 10,000 messages, until redrawn", resizes, "ms", 8.0);
    report("sessions: resize of 10,000 messages, written", bytes, "kB", 10.0);
    let reaches_screen: fn(&[u8], &VirtualTerminal) -> bool = |bytes, _| contains(bytes, "\x1b[?2026l");
    let toggles = [
        ("all tools shown or hidden", CTRL_O, None, reaches_screen),
        ("all thinking shown or hidden", CTRL_T, None, reaches_screen),
        ("pager opened", ALT_O, Some("q"), |_, screen| shows(screen, " of 100")),
        ("tree opened", "/tree\r", Some(ESCAPE), |_, screen| shows(screen, "/6667)")),
    ];
    for (what, keys, close, is_there) in toggles {
        let mut times = Vec::new();
        for _ in 0..10 {
            // A command is typed before its time is taken.
            let (typed, last) = keys.split_at(keys.len() - if keys.ends_with('\r') { 1 } else { keys.len() });
            terminal.write(typed);
            terminal.rest(Duration::from_millis(300));
            times.push(milliseconds(terminal.type_until(last, is_there)));
            terminal.rest(Duration::from_millis(300));
            if let Some(close) = close {
                terminal.write(close);
                terminal.rest(Duration::from_millis(300));
            }
        }
        report(&format!("sessions: 10,000 messages, {what}"), times, "ms", 30.0);
    }
}

fn measure_picker(program: &Program) {
    let home = program.home();
    let folder = session_folder(&home);
    for n in 0..500 {
        let path = folder.join(format!("2026-11-21T09-23-47-000Z_s{n}.jsonl"));
        let cwd = home.project();
        let written = LongSession::plain(12, 400).write(&path, &format!("s{n}"), &cwd.to_string_lossy());
        written.expect("the folder is writable");
    }
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let mut terminal = program.start_idle(&home, &[]);
        for times in [&mut first, &mut later] {
            terminal.write("/resume");
            terminal.rest(Duration::from_millis(200));
            times.push(milliseconds(terminal.type_until("\r", |_, screen| shows(screen, "/500)"))));
            terminal.rest(Duration::from_millis(200));
            terminal.write(ESCAPE);
            terminal.rest(Duration::from_millis(300));
        }
    }
    report("picker: 500 sessions, until the list is there", first, "ms", 20.0);
    report("picker: 500 sessions, opened again", later, "ms", 20.0);
}

/// A session of 10,000 messages of 400 bytes in the project of the user.
fn write_long_session(home: &TestHome) -> PathBuf {
    let path = session_folder(home).join("long.jsonl");
    let cwd = home.project();
    let written = LongSession::plain(10_000, 400).write(&path, "long", &cwd.to_string_lossy());
    written.expect("the folder is writable");
    path
}

fn session_folder(home: &TestHome) -> PathBuf {
    let folder = pi::session::project_folder(&home.agent().join("sessions"), Path::new(&home.project()));
    fs::create_dir_all(&folder).expect("the folder is writable");
    folder
}
