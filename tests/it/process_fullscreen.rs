//! The program in fullscreen, in a pseudo-terminal: entering, leaving and switching, the mouse, and
//! every way out.

use pi::ai::TestBarrier;
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};

const SIZE: Size = Size { width: 80, height: 24 };

/// The modes that fullscreen sets, and what resets them.
const MODES: [(&str, &str); 4] = [
    ("\x1b[?1049h", "\x1b[?1049l"),
    ("\x1b[?1002h", "\x1b[?1002l"),
    ("\x1b[?1006h", "\x1b[?1006l"),
    ("\x1b[?2004h", "\x1b[?2004l"),
];

#[track_caller]
fn check_restored(log: &[u8]) {
    let log = String::from_utf8_lossy(log).into_owned();
    for (on, off) in MODES {
        assert!(log.rfind(off) > log.rfind(on), "{on:?} is not undone");
    }
    assert!(log.rfind("\x1b[?25h") > log.rfind("\x1b[?25l"), "the cursor is hidden");
}

fn lines(n: usize) -> String {
    (0..n).map(|n| format!("line {n:03}\n\n")).collect()
}

fn count(rows: &[String], text: &str) -> usize {
    rows.iter().filter(|row| row.trim() == text).count()
}

fn log(pty: &Pty) -> String {
    String::from_utf8_lossy(&pty.log()).into_owned()
}

/// Waits until the alternate screen is shown, or the main screen again.
#[track_caller]
fn wait_screen(pty: &Pty, is_full: bool) {
    let screens = |log: &str| (log.rfind("\x1b[?1049h"), log.rfind("\x1b[?1049l"));
    pty.wait_log("the other screen", |log| {
        let (entered, left) = screens(log);
        (entered > left) == is_full
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_fullscreen_writes_the_transcript_once_and_restores_the_terminal() {
    let server = SseServer::start([Reply::sse(chat::text(&lines(40)))]).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, &["--tui-mode", "fullscreen"]);
    pty.wait_idle();
    pty.keys("many lines\r");
    let rows = pty.wait_text("line 039");
    assert_eq!(rows.len(), 24);
    let rows = pty.wait_idle();
    assert!(rows[23].contains("m-1"), "the editor stays at the bottom: {rows:#?}");
    pty.keys("\x1b[5~");
    let rows = pty.wait_text("↓ latest");
    assert!(!rows.iter().any(|row| row.contains("line 039")), "{rows:#?}");
    pty.keys("/quit\r");
    let (status, everything, log) = pty.end();
    assert!(status.success());
    check_restored(&log);
    for n in 0..40 {
        assert_eq!(count(&everything, &format!("line {n:03}")), 1, "{everything:#?}");
    }
    assert!(everything.iter().any(|row| row.contains("To resume this session: pi --session ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_hint_is_all_that_is_left_if_the_setting_says_so() {
    let server = SseServer::start([Reply::sse(chat::text("Short answer"))]).await;
    let settings = json!({"tuiMode": "fullscreen", "fullscreenExitOutput": "resume-hint"});
    let home = TestHome::with_server(server.url()).settings(&settings);
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("hello\r");
    pty.wait_text("Short answer");
    pty.wait_idle();
    pty.keys("\x04");
    let (_, everything, log) = pty.end();
    check_restored(&log);
    let rows: Vec<&String> = everything.iter().filter(|row| !row.is_empty()).collect();
    assert!(rows.len() == 1 && rows[0].starts_with("To resume this session: "), "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_between_the_screens_keeps_every_row_once_on_the_main_screen() {
    let (first, second) = (TestBarrier::new(), TestBarrier::new());
    let part = |from: usize, to: usize| (from..to).map(|n| format!("line {n:03}\n\n")).collect::<String>();
    let answer = Reply::stream("text/event-stream")
        .piece(chat::delta(&part(0, 40)))
        .gate(&first)
        .piece(chat::delta(&part(40, 80)))
        .gate(&second)
        .piece(chat::delta(&part(80, 120)))
        .piece(chat::end("stop"));
    let server = SseServer::start([answer]).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 039");
    pty.keys("/fullscreen\r");
    wait_screen(&pty, true);
    first.open();
    pty.wait_text("line 079");
    pty.keys("/fullscreen\r");
    wait_screen(&pty, false);
    second.open();
    pty.wait_text("line 119");
    pty.wait_idle();
    let everything = pty.everything();
    for n in 0..120 {
        assert_eq!(count(&everything, &format!("line {n:03}")), 1, "{n}: {everything:#?}");
    }
    // Again, while nothing happens, and with a change of the size in between.
    pty.keys("/fullscreen\r");
    wait_screen(&pty, true);
    pty.wait_text("line 119");
    pty.resize(Size { width: 60, height: 20 });
    pty.wait("the new size", |rows| rows.len() == 20 && rows[19].contains("m-1"));
    pty.keys("\x1b[5~");
    pty.wait_text("↓ latest");
    pty.keys("/fullscreen\r");
    wait_screen(&pty, false);
    pty.wait_idle();
    pty.keys("\x04");
    let (_, everything, log) = pty.end();
    check_restored(&log);
    for n in 0..120 {
        assert_eq!(count(&everything, &format!("line {n:03}")), 1, "{n}: {everything:#?}");
    }
    let saved: Value =
        serde_json::from_slice(&std::fs::read(home.agent().join("settings.json")).unwrap()).unwrap();
    assert_eq!(saved["tuiMode"], "regular");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mouse_selects_copies_and_scrolls() {
    let server = SseServer::start([Reply::sse(chat::text(&lines(40)))]).await;
    let home = TestHome::with_server(server.url());
    // Over ssh the terminal's clipboard is used.
    let env = [("SSH_CONNECTION", "1 2 3 4")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &["--tui-mode", "fullscreen"], &env);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 039");
    let rows = pty.wait_idle();
    let row = rows.iter().position(|row| row.trim() == "line 039").unwrap() + 1;
    // A drag over a part of a row and beyond it.
    pty.keys(&format!("\x1b[<0;2;{row}M\x1b[<32;5;{row}M\x1b[<32;9;{row}M\x1b[<0;9;{row}m"));
    pty.wait_log("the copy", |log| log.contains("\x1b]52;c;bGluZSAwMzk=\x07"));
    pty.keys("\x1b[<64;10;5M\x1b[<64;10;5M");
    pty.wait_text("↓ latest");
    pty.keys("typed");
    pty.wait("the keys", |rows| rows.iter().any(|row| row.trim() == "typed"));
    pty.keys("\x15\x04");
    let (_, _, log) = pty.end();
    check_restored(&log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_end_restores_the_main_screen_and_the_mouse() {
    use rustix::process::{Pid, Signal, kill_process};

    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let never = TestBarrier::new();
        let busy = Reply::stream("text/event-stream").piece(chat::delta("Busy")).gate(&never);
        let server = SseServer::start([busy]).await;
        let home = TestHome::with_server(server.url());
        let pty = Pty::start(&home, SIZE, &["--tui-mode", "fullscreen"]);
        pty.wait_idle();
        pty.keys("go\r");
        pty.wait_text("Busy");
        kill_process(Pid::from_raw(i32::try_from(pty.pid()).unwrap()).unwrap(), signal).unwrap();
        let (status, _, log) = pty.end();
        assert_eq!(status.exit_code(), code);
        check_restored(&log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_editor_gets_the_main_screen_without_the_mouse() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    let script = home.project().join("editor.sh");
    std::fs::write(&script, "#!/bin/sh\nprintf 'EDITOR\\n'\nprintf 'from outside' > \"$1\"\n").unwrap();
    let env = [("EDITOR", "sh ./editor.sh")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &["--tui-mode", "fullscreen"], &env);
    pty.wait_idle();
    pty.keys("draft\x07");
    let rows = pty.wait("the text", |rows| rows.iter().any(|row| row.trim() == "from outside"));
    assert!(!rows.iter().any(|row| row.contains("EDITOR")), "{rows:#?}");
    let log = log(&pty);
    let (outside, _) = log.rsplit_once("EDITOR").unwrap();
    check_restored(outside.as_bytes());
    assert!(log.rfind("\x1b[?1002h") > log.rfind("\x1b[?1002l"), "the mouse is ours again");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pager_and_dialogs_are_shown_in_fullscreen_too() {
    let server = SseServer::start([Reply::sse(chat::text(&lines(40)))]).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, &["--tui-mode", "fullscreen"]);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 039");
    pty.wait_idle();
    pty.keys("\x1bo");
    pty.wait("the pager", |rows| rows[0].contains("entry"));
    pty.keys("q");
    pty.wait("the transcript", |rows| {
        rows[23].contains("m-1") && rows.iter().any(|row| row.contains("line 039"))
    });
    pty.keys("/settings tuiMode\r");
    pty.wait_text("→ tuiMode");
    pty.keys("\r");
    wait_screen(&pty, false);
    pty.wait_text("\"regular\"");
    pty.keys("\x1b");
    pty.wait("the end of the dialog", |rows| !rows.iter().any(|row| row.contains("→ tuiMode")));
    pty.wait_idle();
    pty.keys("\x04");
    let (_, everything, log) = pty.end();
    check_restored(&log);
    for n in 0..40 {
        assert_eq!(count(&everything, &format!("line {n:03}")), 1, "{everything:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_shows_its_matches_and_gives_the_keys_back() {
    let server = SseServer::start([Reply::sse(chat::text(&lines(60)))]).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start(&home, SIZE, &["--tui-mode", "fullscreen"]);
    pty.wait_idle();
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    pty.keys("\x1b/line 007");
    pty.wait("the match", |rows| {
        count(rows, "line 007") == 1 || rows.iter().any(|row| row.contains(" line 007"))
    });
    pty.keys("\x1b");
    pty.wait("the end of the search", |rows| !rows.iter().any(|row| row.contains("Search:")));
    pty.keys("typed");
    pty.wait("the keys", |rows| rows.iter().any(|row| row.trim() == "typed"));
}
