//! The program in fullscreen, in a pseudo-terminal: entering, leaving and switching, the mouse, and
//! every way out.

use pi::ai::TestBarrier;
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::chat::{self, assert_each_once, numbered};
use crate::support::pty::{Pty, SIZE, TestHome, assert_restored, start_with_server};
use crate::support::sse_server::{Reply, SseServer};

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
    let (_server, _home, pty) =
        start_with_server(&["--tui-mode", "fullscreen"], [Reply::sse(chat::text(&numbered(0..40)))]).await;
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
    assert_restored(&log);
    assert_each_once(0..40, &everything);
    assert!(everything.iter().any(|row| row.starts_with("pi --session ")));
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
    assert_restored(&log);
    let rows: Vec<&String> = everything.iter().filter(|row| !row.is_empty()).collect();
    let [hint, command] = rows[..] else { panic!("{rows:#?}") };
    assert_eq!(hint, "To resume this session:");
    assert!(command.starts_with("pi --session "), "{command}");
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_between_the_screens_keeps_every_row_once_on_the_main_screen() {
    let (first, second) = (TestBarrier::new(), TestBarrier::new());
    let answer = chat::numbered_in_three_parts(&first, &second);
    let (_server, home, pty) = start_with_server(&[], [answer]).await;
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
    assert_each_once(0..120, &everything);
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
    assert_restored(&log);
    assert_each_once(0..120, &everything);
    let saved: Value =
        serde_json::from_slice(&std::fs::read(home.agent().join("settings.json")).unwrap()).unwrap();
    assert_eq!(saved["tuiMode"], "regular");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mouse_selects_copies_and_scrolls() {
    let server = SseServer::start([Reply::sse(chat::text(&numbered(0..40)))]).await;
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
    assert_restored(&log);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pager_and_dialogs_are_shown_in_fullscreen_too() {
    let (_server, _home, pty) =
        start_with_server(&["--tui-mode", "fullscreen"], [Reply::sse(chat::text(&numbered(0..40)))]).await;
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
    // The list covers the main screen like that of fullscreen.
    pty.wait_text("\"regular\"");
    pty.keys("\x1b");
    wait_screen(&pty, false);
    pty.wait("the end of the dialog", |rows| !rows.iter().any(|row| row.contains("→ tuiMode")));
    pty.wait_idle();
    pty.keys("\x04");
    let (_, everything, log) = pty.end();
    assert_restored(&log);
    assert_each_once(0..40, &everything);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_shows_its_matches_and_gives_the_keys_back() {
    let (_server, _home, pty) =
        start_with_server(&["--tui-mode", "fullscreen"], [Reply::sse(chat::text(&numbered(0..60)))]).await;
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    pty.keys("\x1b/line 007");
    pty.wait("the match", |rows| rows.iter().any(|row| row.contains(" line 007")));
    pty.keys("\x1b");
    pty.wait("the end of the search", |rows| !rows.iter().any(|row| row.contains("Search:")));
    pty.keys("typed");
    pty.wait("the keys", |rows| rows.iter().any(|row| row.trim() == "typed"));
}
