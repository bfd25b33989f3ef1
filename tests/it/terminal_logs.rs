//! Recorded output of terminal sessions, replayed in an emulator.
//!
//! `PI_TUI_WRITE_LOG` makes such a record of any session. Each in `tests/fixtures/terminal` has a file of
//! events beside it (`NAME.log.events`), or the only size of its terminal in its name
//! (`NAME.80x24.log`). The text beside it is what must be in scrollback and on the screen at the end.
//! With `PI_BLESS=1` the test writes that anew.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;

use pi::config::Env;
use ratatui::layout::Size;

use crate::support::chat::{self, assert_each_once, numbered};
use crate::support::pty::{Pty, SIZE, TestHome, assert_restored};
use crate::support::sse_server::{Reply, SseServer};
use crate::support::virtual_terminal::VirtualTerminal;

/// What the bytes of a record do not tell.
struct Events {
    /// The first size is that of the beginning; the others are known after so many bytes.
    sizes: Vec<(usize, Size)>,
    /// After how many bytes the user wants the scrollback to be erased.
    erasures: Vec<usize>,
}

impl Events {
    /// Parses lines such as `0 80x24` and `1234 erase`.
    fn parse(text: &str) -> Self {
        let mut events = Self { sizes: Vec::new(), erasures: Vec::new() };
        for line in text.lines() {
            let (at, event) = line.split_once(' ').unwrap();
            let at = at.parse().unwrap();
            match event {
                "erase" => events.erasures.push(at),
                size => events.sizes.push((at, parse_size(size))),
            }
        }
        events
    }

    /// Those beside the record at `path`, or one size if its name has it.
    fn of(path: &Path) -> Self {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".events");
        match fs::read_to_string(beside) {
            Ok(text) => Self::parse(&text),
            Err(_) => {
                let name = path.file_stem().unwrap().to_str().unwrap();
                Self::parse(&format!("0 {}", name.rsplit('.').next().unwrap()))
            }
        }
    }
}

fn parse_size(text: &str) -> Size {
    let (width, height) = text.split_once('x').unwrap();
    Size::new(width.parse().unwrap(), height.parse().unwrap())
}

/// Scrollback and screen after a record, sent in pieces of `piece` bytes.
fn replay(record: &[u8], events: &Events, piece: usize) -> Vec<String> {
    let (first, later) = events.sizes.split_first().unwrap();
    let mut terminal = VirtualTerminal::new(first.1);
    let mut from = 0;
    let mut feed = |terminal: &mut VirtualTerminal, to: usize| {
        for bytes in record[from..to].chunks(piece) {
            terminal.feed(bytes);
        }
        from = to;
    };
    for (at, size) in later {
        feed(&mut terminal, *at);
        terminal.resize(*size);
    }
    feed(&mut terminal, record.len());
    let mut rows = terminal.everything();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// What holds of every session: frames end, the terminal is given back, and screen and scrollback are
/// erased only by the frame after the user wanted that.
#[track_caller]
fn check(record: &[u8], events: &Events) {
    assert_restored(record);
    let text = String::from_utf8_lossy(record);
    let mut frames = text.split("\x1b[?2026h").skip(1);
    assert!(frames.all(|frame| frame.contains("\x1b[?2026l")), "a frame does not end");
    for (erased_at, _) in text.match_indices("\x1b[2J").chain(text.match_indices("\x1b[3J")) {
        let is_wanted = |at: &usize| *at <= erased_at && !text[*at..erased_at].contains("\x1b[?2026l");
        assert!(events.erasures.iter().any(is_wanted), "the scrollback was erased at {erased_at}");
    }
}

#[test]
fn recorded_sessions_show_what_they_showed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/terminal");
    let mut n_records = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".log") {
            continue;
        }
        n_records += 1;
        let (record, events) = (fs::read(&path).unwrap(), Events::of(&path));
        check(&record, &events);
        let rows = replay(&record, &events, record.len());
        assert_eq!(replay(&record, &events, 1), rows, "{name} byte by byte");
        let (text, shown) = (path.with_extension("txt"), rows.join("\n") + "\n");
        if Env::process().is_set("PI_BLESS") {
            fs::write(&text, &shown).unwrap();
        }
        assert_eq!(shown, fs::read_to_string(&text).unwrap_or_default(), "{name}");
    }
    assert!(n_records > 0);
}

/// The record of a session has what the terminal had: with tools, the pager, fullscreen and an
/// external editor.
#[tokio::test(flavor = "multi_thread")]
async fn record_of_a_session_replays_to_the_same_screen() {
    let server = SseServer::start([Reply::sse(chat::text(&numbered(0..60)))]).await;
    let home = TestHome::with_server(server.url());
    let path = home.home().join("record");
    let env = [("PI_TUI_WRITE_LOG", path.to_str().unwrap()), ("EDITOR", "true")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    pty.keys("\x1bo");
    pty.wait("the pager", |rows| rows[0].contains("entry"));
    pty.keys("q/fullscreen\r");
    pty.wait_log("fullscreen", |log| log.contains("\x1b[?1002h"));
    pty.keys("\x1b[5~");
    pty.wait_text("↓ latest");
    pty.keys("/fullscreen\r");
    pty.wait_log("the main screen", |log| log.rfind("\x1b[?1049l") > log.rfind("\x1b[?1049h"));
    pty.wait_idle();
    pty.keys("draft\x07");
    pty.wait_text("draft");
    pty.keys("\x15\x04");
    let (status, everything, _) = pty.end();
    assert!(status.success());
    let record = fs::read(&path).unwrap();
    let events = Events::of(&path);
    assert_eq!(events.sizes.iter().map(|(_, size)| *size).collect::<Vec<_>>(), [SIZE]);
    check(&record, &events);
    let rows = replay(&record, &events, 64);
    assert_each_once(0..60, &rows);
    // What other programs write is not in it: the line that says how to resume.
    assert_eq!(answer_rows(&rows), answer_rows(&everything));
    use std::os::unix::fs::PermissionsExt as _;
    for path in [path.clone(), home.home().join("record.events")] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// The rows of the answer.
fn answer_rows(rows: &[String]) -> Vec<&String> {
    rows.iter().filter(|row| row.trim().starts_with("line ")).collect()
}

/// Sizes and erasures are not in the bytes; the file beside the record has them.
#[tokio::test(flavor = "multi_thread")]
async fn record_of_a_resized_and_redrawn_session_replays_to_the_same_screen() {
    let server = SseServer::start([Reply::sse(chat::text(&numbered(0..60)))]).await;
    let home = TestHome::with_server(server.url());
    let path = home.home().join("record");
    let pty =
        Pty::start_in(&home, &home.project(), SIZE, &[], &[("PI_TUI_WRITE_LOG", path.to_str().unwrap())]);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    let (narrow, low) = (Size::new(60, 24), Size::new(60, 14));
    for size in [narrow, low] {
        let n_before = pty.text_log().len();
        pty.resize(size);
        pty.wait_log("a frame of the new size", |log| {
            log.get(n_before..).is_some_and(|new| new.contains("\x1b[?2026l"))
        });
        pty.wait_idle();
    }
    pty.keys("/redraw\r");
    pty.wait_log("the redrawn screen", |log| log.contains("\x1b[3J"));
    pty.wait_idle();
    pty.keys("\x04");
    let (status, everything, _) = pty.end();
    assert!(status.success());
    let (record, events) = (fs::read(&path).unwrap(), Events::of(&path));
    assert_eq!(events.sizes.iter().map(|(_, size)| *size).collect::<Vec<_>>(), [SIZE, narrow, low]);
    assert_eq!(events.erasures.len(), 1);
    check(&record, &events);
    let rows = replay(&record, &events, 64);
    assert_each_once(0..60, &rows);
    assert_eq!(answer_rows(&rows), answer_rows(&everything));
}
