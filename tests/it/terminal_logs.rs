//! Recorded output of terminal sessions, replayed in an emulator.
//!
//! `PI_TUI_WRITE_LOG` makes such a record of any session. Each in `tests/fixtures/terminal` has
//! the size of its terminal in its name; the text beside it is what must be in scrollback and on
//! the screen at the end. With `PI_BLESS=1` the test writes that anew.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;

use pi::config::Env;
use ratatui::layout::Size;

use crate::support::chat::{self, assert_each_once, numbered};
use crate::support::pty::{Pty, SIZE, TestHome, assert_restored};
use crate::support::sse_server::{Reply, SseServer};
use crate::support::virtual_terminal::VirtualTerminal;

/// Scrollback and screen after a record, sent in pieces of `piece` bytes.
fn replay(record: &[u8], size: Size, piece: usize) -> Vec<String> {
    let mut terminal = VirtualTerminal::new(size);
    for bytes in record.chunks(piece) {
        terminal.feed(bytes);
    }
    let mut rows = terminal.everything();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// What holds of every session: frames end, the terminal is given back, and only `/redraw` erases.
#[track_caller]
fn check(record: &[u8]) {
    assert_restored(record);
    let text = String::from_utf8_lossy(record);
    let mut frames = text.split("\x1b[?2026h").skip(1);
    assert!(frames.all(|frame| frame.contains("\x1b[?2026l")), "a frame does not end");
    assert!(!text.contains("\x1b[2J") && !text.contains("\x1b[3J"), "the scrollback was erased");
}

/// The size in `NAME.80x24.log`.
fn size_of(name: &str) -> Size {
    let size = name.trim_end_matches(".log").rsplit('.').next().unwrap();
    let (width, height) = size.split_once('x').unwrap();
    Size::new(width.parse().unwrap(), height.parse().unwrap())
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
        let (record, size) = (fs::read(&path).unwrap(), size_of(&name));
        check(&record);
        let rows = replay(&record, size, record.len());
        assert_eq!(replay(&record, size, 1), rows, "{name} byte by byte");
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
    check(&record);
    let rows = replay(&record, SIZE, 64);
    assert_each_once(0..60, &rows);
    // What other programs write is not in it: the line that says how to resume.
    let shown = |rows: &[String]| -> Vec<String> {
        rows.iter().filter(|row| row.trim().starts_with("line ")).cloned().collect()
    };
    assert_eq!(shown(&rows), shown(&everything));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
