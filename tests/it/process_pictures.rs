//! Pictures in the program, in a pseudo-terminal: which protocol the terminal gets, and that each
//! of its screens has them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use ratatui::layout::Size;
use serde_json::json;

use crate::support::chat;
use crate::support::pty::{Pty, TerminalAnswers, TestHome};
use crate::support::sse_server::{Reply, SseServer};

const SIZE: Size = Size { width: 80, height: 30 };

/// What kitty gets of a picture for placeholders.
const SENT: &str = "\x1b_Ga=t,f=100,i=";

/// A user whose model looks at a picture in the project.
async fn home_with_picture() -> (TestHome, SseServer) {
    let call = chat::calls(&[("read", json!({"path": "lamp.png"}))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("A lamp."))]).await;
    let home = TestHome::with_server(server.url());
    let png = pi::util::image::png_of_rgba(300, 100, vec![200; 300 * 100 * 4]).unwrap();
    fs::write(home.project().join("lamp.png"), png).unwrap();
    (home, server)
}

fn wait_sent(pty: &Pty, what: &str, times: usize) {
    pty.wait_log(what, |log| log.matches(SENT).count() == times);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_gets_the_pictures_that_it_shows() {
    let (home, _server) = home_with_picture().await;
    let env = [("TERM", "xterm-kitty"), ("EDITOR", "true")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
    pty.wait_idle();
    pty.keys("look\r");
    pty.wait_text("A lamp.");
    wait_sent(&pty, "the picture on the main screen", 1);
    pty.wait_idle();
    // The pager is on the alternate screen, which the terminal clears.
    pty.keys("\x1bo");
    wait_sent(&pty, "the picture in the pager", 2);
    pty.keys("q");
    pty.wait_idle();
    pty.keys("/fullscreen\r");
    wait_sent(&pty, "the picture in fullscreen", 3);
    // An editor had the terminal in between.
    pty.keys("\x07");
    wait_sent(&pty, "the picture after the editor", 4);
    pty.keys("/fullscreen\r");
    pty.wait_log("the main screen", |log| {
        let last = |mark: &str| log.rfind(mark).unwrap_or_default();
        last("\x1b[?1049l") > last("\x1b[?1049h")
    });
    pty.wait_idle();
    pty.keys("\x04");
    let (status, _, log) = pty.end();
    assert!(status.success());
    // The main screen draws its rows again.
    assert_eq!(String::from_utf8_lossy(&log).matches(SENT).count(), 5);

    let pty = Pty::start_in(&home, &home.project(), SIZE, &["--continue"], &env);
    wait_sent(&pty, "the picture of a resumed session", 1);
    pty.wait_idle();
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_the_pictures_that_its_answers_name() {
    let sixel = "\x1bP0;1;0q\"1;1;300;20";
    let iterm = ";width=30;height=1;";
    let cases: [(TerminalAnswers, &str); 3] = [
        (
            &[
                (b"\x1b[>0q", "\x1bP>|XTerm(390)\x1b\\"),
                (b"\x1b[16t", "\x1b[6;20;10t"),
                (b"\x1b[c", "\x1b[?63;1;4c"),
            ],
            sixel,
        ),
        (&[(b"\x1b[>0q", "\x1bP>|iTerm2 3.5.11\x1b\\")], iterm),
        (&[(b"\x1b[>0q", "\x1bP>|kitty(0.40.1)\x1b\\")], SENT),
    ];
    for (answers, expected) in cases {
        let (home, _server) = home_with_picture().await;
        let pty = Pty::start_on(answers, &home, &home.project(), SIZE, &[], &[("TERM", "xterm-256color")]);
        pty.wait_idle();
        pty.keys("look\r");
        let rows = pty.wait_text("A lamp.");
        let n_parts = if expected == SENT { 1 } else { 5 };
        pty.wait_log("the picture", |log| log.matches(expected).count() == n_parts);
        // Nothing of what the terminal said about itself is text.
        let text = rows.join("\n");
        assert!(!text.contains("XTerm") && !text.contains("iTerm") && !text.contains(";4c"), "{text}");
        pty.wait_idle();
        pty.keys("\x04");
        let (status, _, log) = pty.end();
        assert!(status.success());
        let log = String::from_utf8_lossy(&log).into_owned();
        let others = [sixel, iterm, SENT].into_iter().filter(|other| *other != expected);
        assert!(others.into_iter().all(|other| !log.contains(other)), "{expected:?}");
    }
}

/// The screen has room, so that the picture is the last thing that changes.
#[tokio::test(flavor = "multi_thread")]
async fn fullscreen_draws_a_picture_that_is_unpacked_after_everything_else() {
    let answers: TerminalAnswers = &[
        (b"\x1b[>0q", "\x1bP>|XTerm(390)\x1b\\"),
        (b"\x1b[16t", "\x1b[6;20;10t"),
        (b"\x1b[c", "\x1b[?63;1;4c"),
    ];
    let (home, _server) = home_with_picture().await;
    let arguments = ["--tui-mode", "fullscreen"];
    let env = [("TERM", "xterm-256color")];
    let pty = Pty::start_on(answers, &home, &home.project(), SIZE, &arguments, &env);
    pty.wait_idle();
    pty.keys("look\r");
    pty.wait_text("A lamp.");
    pty.wait_log("the picture", |log| log.matches("\x1bP0;1;0q\"1;1;300;20").count() == 5);
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_of_another_size_get_pictures_of_their_size() {
    let (home, _server) = home_with_picture().await;
    let answers: TerminalAnswers = &[(b"\x1b[16t", "\x1b[6;20;10t"), (b"\x1b[c", "\x1b[?63;1;4c")];
    let pty = Pty::start_on(answers, &home, &home.project(), SIZE, &[], &[("TERM", "xterm-256color")]);
    pty.wait_idle();
    pty.keys("look\r");
    pty.wait_text("A lamp.");
    pty.wait_log("the picture", |log| log.matches("\"1;1;300;20").count() == 5);
    pty.wait_idle();
    // What the terminal says when it is asked with a change of its size.
    pty.keys("\x1b[6;40;20t");
    pty.wait_log("half as many rows", |log| log.matches("\"1;1;300;40").count() == 3);
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[test]
fn late_answers_change_the_looks_and_never_become_text() {
    for theme in ["system", "light/dark"] {
        check_late_answers(theme);
    }
}

fn check_late_answers(theme: &str) {
    let home = TestHome::new().settings(&json!({ "theme": theme }));
    let env = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
    pty.wait_idle();
    pty.keys("hello");
    pty.wait_text("hello");
    // It changed to light; the colours come when they are asked for.
    let before = pty.log().len();
    pty.keys("\x1b[?997;2n");
    pty.wait_log("the question", |log| log.get(before..).is_some_and(|new| new.contains("\x1b]11;?\x1b\\")));
    // After the last one, as through tmux, and in pieces.
    for piece in ["\x1b]11;rgb:fdfd/f6", "f6/e3e3\x1b\\", "\x1b]10;rgb:5858/6e6e/7575\x07"] {
        pty.keys(piece);
    }
    // The border of the editor has the hue of the light theme.
    pty.wait_log("the other looks", |log| log.get(before..).is_some_and(|new| new.contains("38;2;")));
    pty.keys("!");
    pty.wait_text("hello!");
    let rows = pty.wait_idle();
    assert!(!rows.join("\n").contains("rgb:"), "{rows:#?}");
    pty.keys("\x15\x04");
    assert!(pty.end().0.success());
}
