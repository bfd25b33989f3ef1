//! Every way out of the program, on both screens: what it set in the terminal is reset, and the
//! main screen has what it must tell.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pi::ai::TestBarrier;
use pi::tui::term::{FullscreenWindow, TerminalGuard, TerminalModes};
use pi::tui::text::Row;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ratatui::style::Style;
use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::files::wait_for_files;
use crate::support::lifeline::Lifeline;
use crate::support::pty::{Pty, SIZE, TestHome, assert_restored, start_with_server};
use crate::support::sse_server::{Reply, SseServer};

const SCREENS: [&str; 2] = ["regular", "fullscreen"];

/// Says what a process does that another test started.
const CHILD: &str = "PI_EXITS_CHILD";

/// Starts the test `name` of this file as a program of its own.
fn child_args(name: &str) -> (std::path::PathBuf, [String; 3]) {
    let args = ["--exact".to_owned(), format!("process_exits::{name}"), "--nocapture".to_owned()];
    (std::env::current_exe().unwrap(), args)
}

fn job() -> Option<Value> {
    #[expect(clippy::disallowed_methods, reason = "the test that starts this one uses a variable")]
    let job = std::env::var(CHILD).ok()?;
    Some(serde_json::from_str(&job).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn quitting_restores_the_terminal() {
    for screen in SCREENS {
        for keys in ["/quit\r", "\x04", "\x03\x03"] {
            let (_server, _home, pty) = start_with_server(&["--tui-mode", screen], []).await;
            pty.keys(keys);
            let (status, _, log) = pty.end();
            assert!(status.success(), "{screen} {keys:?}");
            assert_restored(&log);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_end_restores_the_terminal() {
    let others = [
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::XCPU,
        Signal::VTALARM,
        Signal::PROF,
        Signal::SYS,
        Signal::TRAP,
        Signal::ABORT,
    ];
    let others = others.map(|signal| (signal, 128 + u32::try_from(signal.as_raw()).unwrap()));
    let signals = [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)];
    for screen in SCREENS {
        for (signal, code) in signals.into_iter().chain(others) {
            let never = TestBarrier::new();
            let busy = Reply::stream("text/event-stream").piece(chat::delta("Busy")).gate(&never);
            let (_server, home, pty) = start_with_server(&["--tui-mode", screen], [busy]).await;
            pty.keys("go\r");
            pty.wait_text("Busy");
            pty.signal(signal);
            let (status, everything, log) = pty.end();
            assert_eq!(status.exit_code(), code);
            assert_restored(&log);
            let saved = home.entries().last().unwrap().to_string();
            assert!(saved.contains("Busy"), "{signal:?}: {saved}");
            let n_shown = everything.iter().filter(|row| row.trim() == "Busy").count();
            assert_eq!(n_shown, 1, "{screen} {signal:?}: {everything:#?}");
        }
    }
}

/// Over a connection that hangs, or in a terminal that is paused.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_restores_a_terminal_that_does_not_read() {
    for screen in SCREENS {
        let long = "words that fill the terminal's buffer ".repeat(40_000);
        let server = SseServer::start([Reply::sse(chat::text(&long))]).await;
        let home = TestHome::with_server(server.url());
        let pty = Pty::start(&home, SIZE, &["--tui-mode", screen]);
        pty.wait_idle();
        let (status, log) = pty.end_unread(|pty| {
            pty.keys("go\r");
            let has_answer =
                |file: &PathBuf| fs::read_to_string(file).unwrap_or_default().contains("assistant");
            wait_for_files(&home.agent(), "the answer", || home.sessions().iter().any(has_answer));
            pty.signal(Signal::TERM);
        });
        assert_eq!(status.exit_code(), 143, "{screen}");
        assert_restored(&log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quitting_does_not_wait_for_a_terminal_that_does_not_read() {
    let long = "words that fill the terminal's buffer ".repeat(40_000);
    let server = SseServer::start([Reply::sse(chat::text(&long))]).await;
    let home = TestHome::with_server(server.url());
    // The transcript is written to the main screen at the end.
    let pty = Pty::start(&home, SIZE, &["--tui-mode", "fullscreen"]);
    pty.wait_idle();
    pty.keys("go\r");
    let has_answer = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default().contains("assistant");
    wait_for_files(&home.agent(), "the answer", || home.sessions().iter().any(has_answer));
    pty.wait_idle();
    let (status, log) = pty.end_unread(|pty| pty.keys("\x04"));
    assert_eq!(status.exit_code(), 0);
    assert_restored(&log);
}

/// The system sends SIGXFSZ for a write beyond the limit.
#[tokio::test(flavor = "multi_thread")]
async fn terminal_is_restored_although_no_file_may_grow() {
    let call = chat::calls(&[("bash", json!({"command": "head -c 300000 /dev/zero | tr '\\0' x"}))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("Done."))]).await;
    let home = TestHome::with_server(server.url());
    let pty = Pty::start_shell(&home, SIZE);
    pty.keys("ulimit -f 100; exec \"$PI\"\r");
    pty.wait_idle();
    pty.keys("go\r");
    pty.wait_text("Done.");
    pty.wait_idle();
    pty.keys("\x04");
    let (status, _, log) = pty.end();
    assert!(status.signal().is_none(), "{status:?}");
    assert_restored(&log);
}

/// A report covers the transcript: the end of the program leaves the transcript, and nothing of the
/// report.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_end_while_a_report_is_open_leaves_the_transcript() {
    for signal in [Signal::TERM, Signal::HUP] {
        let (_server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text("An answer."))]).await;
        pty.keys("a question\r");
        pty.wait_text("An answer.");
        pty.wait_idle();
        pty.keys("/hotkeys\r");
        pty.wait_text("Keys and commands");
        pty.signal(signal);
        let (_, everything, log) = pty.end();
        assert_restored(&log);
        let n_shown = everything.iter().filter(|row| row.trim() == "An answer.").count();
        assert_eq!(n_shown, 1, "{signal:?}: {everything:#?}");
        assert!(!everything.iter().any(|row| row.contains("Keys and commands")), "{everything:#?}");
    }
}

/// The message of a panic is on the main screen, where it can be read and scrolled to.
#[test]
fn a_panic_of_the_interface_is_told_on_the_main_screen() {
    for screen in ["regular", "fullscreen", "over"] {
        let home = TestHome::new();
        let (program, args) = child_args("the_interface_that_panics");
        let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        let job = json!({ "screen": screen }).to_string();
        let env = [(CHILD, job.as_str()), ("RUST_BACKTRACE", "0")];
        let pty = Pty::start_program(&home, &home.project(), SIZE, program.as_os_str(), &args, &env);
        let (_, everything, log) = pty.end();
        assert_restored(&log);
        let text = everything.join("\n");
        assert!(text.contains("the interface broke"), "{screen}: {text}");
        assert!(!text.contains("PAINTED"), "what was on the alternate screen is not on the main one");
        let log = String::from_utf8_lossy(&log).into_owned();
        assert_eq!(log.contains("PAINTED"), screen != "regular");
        // Lines of a terminal in raw mode would not return to its left edge.
        let row = |text: &str| everything.iter().position(|row| row.starts_with(text));
        let message = row("the interface broke").unwrap();
        assert!(row("DRAFT").is_none_or(|draft| draft < message), "{screen}: {text}");
        assert_eq!(row("DRAFT").is_some(), screen == "over", "the row of the cursor stays: {text}");
    }
}

/// Does nothing unless another test started it.
#[test]
fn the_interface_that_panics() {
    let Some(job) = job() else { return };
    let fullscreen = job["screen"] == "fullscreen";
    let modes = TerminalModes { fullscreen, focus: true, ..TerminalModes::default() };
    let mut guard = TerminalGuard::enter(modes).unwrap();
    if job["screen"] == "over" {
        stdout().write_all(b"\r\nDRAFT\r").unwrap();
        guard.show_alternate_screen(true).unwrap();
    }
    if job["screen"] != "regular" {
        let mut window = FullscreenWindow::new(stdout(), SIZE);
        let row = Row::styled("PAINTED", Style::new());
        window.draw([std::borrow::Cow::Owned(row)], None).unwrap();
    }
    panic!("a panic in the test of panics:\nthe interface broke");
}

/// Types into a shell and waits until it is ready for the next line.
#[track_caller]
fn in_shell(pty: &Pty, line: &str, shown: &str) -> Vec<String> {
    pty.keys(&format!("{line}\r"));
    pty.wait(shown, |rows| {
        let prompt = rows.iter().rposition(|row| row.starts_with("shell>"));
        let text = rows.iter().rposition(|row| row.contains(shown) && !row.starts_with("shell>"));
        prompt.zip(text).is_some_and(|(prompt, text)| text < prompt && rows[prompt].trim() == "shell>")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn suspending_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    for screen in SCREENS {
        let server = SseServer::start([Reply::sse(chat::text("An answer."))]).await;
        let home = TestHome::with_server(server.url());
        let pty = Pty::start_shell(&home, SIZE);
        pty.keys(&format!("\"$PI\" --tui-mode {screen}\r"));
        pty.wait_idle();
        pty.keys("a question\r");
        pty.wait_text("An answer.");
        pty.wait_idle();
        for draft in ["draft", "draft again"] {
            pty.keys(&draft["draft".len() * usize::from(draft != "draft")..]);
            pty.wait("the draft", |rows| rows.iter().any(|row| row.trim() == draft));
            pty.keys("\x1a");
            pty.wait("the shell", |rows| rows.iter().any(|row| row.trim_end() == "shell>"));
            assert_restored(&pty.log());
            let rows = in_shell(&pty, "stty -a | tr ' ' '\\n' | grep canon", "icanon");
            assert!(!rows.iter().any(|row| row.contains("-icanon")), "{screen}: {rows:#?}");
            assert!(!rows.iter().any(|row| row.trim() == draft), "{screen}: {rows:#?}");
            pty.keys("fg\r");
            pty.wait("the editor", |rows| rows.iter().any(|row| row.trim() == draft));
            let log = pty.text_log();
            let is_fullscreen = log.rfind("\x1b[?1049h") > log.rfind("\x1b[?1049l");
            assert_eq!(is_fullscreen, screen == "fullscreen");
            assert_eq!(log.rfind("\x1b[?1002h") > log.rfind("\x1b[?1002l"), is_fullscreen);
        }
        pty.keys("\x15/quit\r");
        let rows = pty.wait("the shell", |rows| {
            rows.iter()
                .rposition(|row| !row.trim().is_empty())
                .is_some_and(|last| rows[last].trim() == "shell>")
        });
        assert_restored(&pty.log());
        let n_shown = pty.everything().iter().filter(|row| row.trim() == "An answer.").count();
        assert_eq!(n_shown, 1, "{screen}: {rows:#?}");
        pty.keys("exit\r");
        pty.end();
    }
}

/// In a terminal of its own, and below a shell that has no jobs.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_shell_that_could_bring_it_back_the_program_is_not_suspended() {
    for screen in SCREENS {
        for command in ["exec \"$PI\" --tui-mode \"$0\"", "\"$PI\" --tui-mode \"$0\"; echo ended"] {
            let home = TestHome::new();
            let pty = Pty::start_shell(&home, SIZE);
            pty.keys(&format!("exec sh -c '{command}' {screen}\r"));
            pty.wait_idle();
            pty.keys("\x1a");
            pty.wait_text("pi cannot be suspended here");
            let log = pty.text_log();
            assert!(log.rfind("\x1b[?2004h") > log.rfind("\x1b[?2004l"), "{screen}: {command}");
            pty.keys("draft");
            pty.wait("the draft", |rows| rows.iter().any(|row| row.trim() == "draft"));
            pty.keys("\x15/quit\r");
            let (status, _, log) = pty.end();
            assert!(status.success(), "{screen}: {command}");
            assert_restored(&log);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_others_stopped_takes_the_terminal_back() {
    for screen in SCREENS {
        let server = SseServer::start([Reply::sse(chat::text("An answer."))]).await;
        let home = TestHome::with_server(server.url());
        let pty = Pty::start_shell(&home, SIZE);
        pty.keys(&format!("sh -c 'echo $$ > pid; exec \"$PI\" --tui-mode {screen}'\r"));
        pty.wait_idle();
        pty.keys("a question\r");
        pty.wait_text("An answer.");
        pty.wait_idle();
        let pid = fs::read_to_string(home.project().join("pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        pty.keys("draft");
        pty.wait("the draft", |rows| rows.iter().any(|row| row.trim() == "draft"));
        kill_process(pid, Signal::STOP).unwrap();
        let n_prompts = |rows: &[String]| rows.iter().filter(|row| row.contains("shell>")).count();
        pty.wait("the shell", |rows| n_prompts(rows) == 1 + usize::from(screen == "regular"));
        // As shells with an editor of their own do before they prompt.
        pty.keys("stty sane\n");
        pty.wait("the shell", |rows| rows.iter().any(|row| row.contains("shell> shell>")));
        in_shell(&pty, "echo be''tween", "between");
        let enter = "\x1b[>5u";
        let n_entered = pty.text_log().matches(enter).count();
        pty.keys("fg\r");
        pty.wait_log("the terminal to be taken", |log| log.matches(enter).count() > n_entered);
        pty.wait("the editor", |rows| rows.iter().any(|row| row.trim() == "draft"));
        pty.keys(" goes on");
        pty.wait("keys to arrive", |rows| rows.iter().any(|row| row.trim() == "draft goes on"));
        pty.keys("\x15/quit\r");
        pty.wait("the shell", |rows| {
            rows.iter()
                .rposition(|row| !row.trim().is_empty())
                .is_some_and(|last| rows[last].trim() == "shell>")
        });
        assert_restored(&pty.log());
        let everything = pty.everything();
        let n_shown = |text: &str| everything.iter().filter(|row| row.trim() == text).count();
        assert_eq!(n_shown("An answer."), 1, "{screen}: {everything:#?}");
        // The shell wrote to the alternate screen otherwise.
        assert!(
            screen == "fullscreen" || everything.iter().any(|row| row.starts_with("between")),
            "{everything:#?}"
        );
        pty.keys("exit\r");
        pty.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_editor_gets_the_main_screen_without_the_mouse() {
    for screen in SCREENS {
        let server = SseServer::start([]).await;
        let home = TestHome::with_server(server.url());
        let script = home.project().join("editor.sh");
        let text = "#!/bin/sh\nprintf 'EDITOR\\n'\nstty -a > modes\nprintf 'from outside' > \"$1\"\n";
        fs::write(&script, text).unwrap();
        let env = [("EDITOR", "sh ./editor.sh")];
        let pty = Pty::start_in(&home, &home.project(), SIZE, &["--tui-mode", screen], &env);
        pty.wait_idle();
        pty.keys("draft\x07");
        let rows = pty.wait("the text", |rows| rows.iter().any(|row| row.trim() == "from outside"));
        let is_fullscreen = screen == "fullscreen";
        assert_eq!(rows.iter().any(|row| row.contains("EDITOR")), !is_fullscreen, "{rows:#?}");
        let log = pty.text_log();
        let (outside, _) = log.rsplit_once("EDITOR").unwrap();
        assert_restored(outside.as_bytes());
        let modes = fs::read_to_string(home.project().join("modes")).unwrap();
        assert!(modes.contains(" icanon") && !modes.contains("-icanon"), "{modes}");
        assert_eq!(log.rfind("\x1b[?1002h") > log.rfind("\x1b[?1002l"), is_fullscreen, "the mouse is ours");
        pty.keys("\x15\x04");
        let (status, _, log) = pty.end();
        assert!(status.success());
        assert_restored(&log);
    }
}

/// The title that a terminal shows after this output, with its stack of saved ones.
fn title_after(output: &str, before: &str) -> String {
    let (mut title, mut saved) = (before.to_owned(), Vec::new());
    for part in output.split("\x1b").skip(1) {
        if part.starts_with("[22;0t") {
            saved.push(title.clone());
        } else if part.starts_with("[23;0t") {
            title = saved.pop().unwrap();
        } else if let Some(text) = part.strip_prefix("]0;").or_else(|| part.strip_prefix("]2;")) {
            text.split('\x07').next().unwrap().clone_into(&mut title);
        }
    }
    assert_eq!(saved, [""; 0]);
    title
}

#[tokio::test(flavor = "multi_thread")]
async fn title_that_an_editor_leaves_is_not_restored_at_the_end() {
    let (_server, _home, pty) =
        start_with_editor("regular", "printf '\\033]2;EDITOR\\007'; echo text > \"$1\"").await;
    for _ in 0..2 {
        pty.keys("\x07");
        pty.wait("the text", |rows| rows.iter().any(|row| row.trim() == "text"));
        pty.keys("\x15");
        pty.wait("an empty prompt", |rows| !rows.iter().any(|row| row.trim() == "text"));
    }
    pty.keys("\x04");
    let (_, _, log) = pty.end();
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("]2;EDITOR"));
    assert_eq!(title_after(&log, "the user's"), "the user's");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_is_not_given_away_if_no_editor_is_there() {
    let home = TestHome::new();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("PATH", "/nowhere")]);
    pty.wait_idle();
    pty.keys("draft\x07");
    pty.wait_text("no editor found");
    assert!(!pty.text_log().contains("\x1b[?2004l"), "{}", pty.text_log());
}

/// The program in its project, with this shell script as the editor.
async fn start_with_editor(screen: &str, script: &str) -> (SseServer, TestHome, Pty) {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    fs::write(home.project().join("editor.sh"), script).unwrap();
    let env = [("EDITOR", "sh ./editor.sh")];
    let pty = Pty::start_in(&home, &home.project(), SIZE, &["--tui-mode", screen], &env);
    pty.wait_idle();
    (server, home, pty)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_end_while_an_editor_is_open_ends_both_and_keeps_what_was_saved() {
    let saves = "printf 'from outside' > \"$1\"";
    for (screen, signal, code, saves, draft) in [
        ("regular", Signal::TERM, 143, saves, "from outside"),
        ("fullscreen", Signal::TERM, 143, saves, "from outside"),
        ("regular", Signal::HUP, 129, saves, "from outside"),
        ("regular", Signal::TERM, 143, ":", "draft"),
    ] {
        let script = format!("trap 'echo told > told; exit' TERM\n{saves}\nsleep 1000 & echo EDITOR; wait\n");
        let (_server, home, pty) = start_with_editor(screen, &script).await;
        pty.keys("draft\x07");
        pty.wait_text("EDITOR");
        pty.signal(signal);
        let (status, _, log) = pty.end();
        assert_eq!(status.exit_code(), code, "{screen} {signal:?}");
        assert_restored(&log);
        assert!(home.project().join("told").exists(), "{screen} {signal:?}: the editor was not told");
        let drafts = home.drafts();
        assert!(drafts.iter().any(|saved| saved["text"] == draft), "{screen} {signal:?}: {drafts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_leaves_no_modes_behind_however_it_ends() {
    let ends = ["kill -KILL $$\n", "echo ready > ready; sleep 1000\n", "printf '\\033[?1049l'\n"];
    for (screen, end) in SCREENS.iter().flat_map(|screen| ends.map(|end| (*screen, end))) {
        let home = TestHome::new();
        let script = "printf '\\033[?1049h\\033[?1000hEDITOR'\nstty raw -echo\n";
        fs::write(home.project().join("editor.sh"), [script, end].concat()).unwrap();
        let pty = Pty::start_shell(&home, SIZE);
        pty.keys("export EDITOR='sh ./editor.sh'; stty -a > before\r");
        let pid = start_in_shell(&home, &pty, screen);
        pty.keys("\x07");
        // Not the screen, which shows the name in the command of the shell, and the editor for a moment only.
        pty.wait_log("the editor", |log| log.contains("\x1b[?1000hEDITOR"));
        if end.starts_with("kill") {
            pty.wait_text("failed");
            pty.keys("\x15/quit\r");
        } else if end.starts_with("printf") {
            pty.wait_log("the prompt", |log| log.rfind("\x1b[?2004h") > log.rfind("\x1b[?1000hEDITOR"));
            pty.wait("the prompt", |rows| rows.iter().any(|row| row.contains("0.0%")));
            pty.keys("\x15/quit\r");
        } else {
            wait_for_files(&home.project(), "the editor", || home.project().join("ready").exists());
            kill_process(pid, Signal::TERM).unwrap();
        }
        pty.wait("the shell below the transcript", |rows| {
            let last = rows.iter().rfind(|row| !row.trim().is_empty());
            rows.iter().any(|row| row.contains("pi 0.1.0"))
                && last.is_some_and(|last| last.trim() == "shell>")
        });
        pty.keys("stty -a > after; echo wri''tten\r");
        pty.wait_text("written");
        let modes = |name: &str| fs::read_to_string(home.project().join(name)).unwrap();
        assert_eq!(modes("after"), modes("before"), "{screen}: {end}");
        let log = pty.text_log();
        assert!(log.rfind("\x1b[?1000l") > log.rfind("\x1b[?1000h"), "{screen}: {end}");
        assert!(log.rfind("\x1b[?1049l") > log.rfind("\x1b[?1049h"), "{screen}: {end}");
        if !end.starts_with("echo") {
            assert!(log.rfind("\x1b]0;π") > log.rfind("\x1b[22;0t"), "{screen}: the title is pi's again");
        }
        assert_restored(&pty.log());
        pty.keys("exit\r");
        pty.end();
    }
}

/// The editor gets the signal of the terminal's job too, and a second one could keep it from saving.
#[tokio::test(flavor = "multi_thread")]
async fn editor_that_ends_by_its_own_signal_is_not_sent_another() {
    let script =
        "trap 'echo told >> told; printf late > \"$1\"; exit' HUP TERM\nsleep 1000 & echo EDITOR; wait\n";
    let (_server, home, pty) = start_with_editor("regular", script).await;
    pty.keys("draft\x07");
    pty.wait_text("EDITOR");
    kill_process_group(pty.process(), Signal::HUP).unwrap();
    let (status, _, log) = pty.end();
    assert_eq!(status.exit_code(), 129);
    assert_restored(&log);
    assert_eq!(fs::read_to_string(home.project().join("told")).unwrap(), "told\n");
    let drafts = home.drafts();
    assert!(drafts.iter().any(|saved| saved["text"] == "late"), "{drafts:?}");
}

/// Starts the program in a shell, and returns its process.
fn start_in_shell(home: &TestHome, pty: &Pty, screen: &str) -> Pid {
    pty.keys(&format!("sh -c 'echo $$ > pid; exec \"$PI\" --tui-mode {screen}'\r"));
    pty.wait_idle();
    let pid = fs::read_to_string(home.project().join("pid")).unwrap();
    Pid::from_raw(pid.trim().parse().unwrap()).unwrap()
}

/// Waits for a prompt of the shell in the last row.
fn wait_for_prompt(pty: &Pty) {
    pty.wait("the shell", |rows| {
        let last = rows.iter().rposition(|row| !row.trim().is_empty());
        last.is_some_and(|last| rows[last].trim() == "shell>")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_from_elsewhere_gives_the_terminal_to_the_shell() {
    for screen in SCREENS {
        let server = SseServer::start([Reply::sse(chat::text("An answer."))]).await;
        let home = TestHome::with_server(server.url());
        let pty = Pty::start_shell(&home, SIZE);
        let pid = start_in_shell(&home, &pty, screen);
        pty.keys("a question\r");
        pty.wait_text("An answer.");
        pty.wait_idle();
        pty.keys("draft");
        pty.wait("the draft", |rows| rows.iter().any(|row| row.trim() == "draft"));
        for _ in 0..2 {
            kill_process(pid, Signal::TSTP).unwrap();
            wait_for_prompt(&pty);
            assert_restored(&pty.log());
            let rows = in_shell(&pty, "stty -a | tr ' ' '\\n' | grep canon", "icanon");
            assert!(!rows.iter().any(|row| row.contains("-icanon")), "{screen}: {rows:#?}");
            assert!(!rows.iter().any(|row| row.trim() == "draft"), "{screen}: {rows:#?}");
            pty.keys("fg\r");
            pty.wait("the editor", |rows| rows.iter().any(|row| row.trim() == "draft"));
        }
        pty.keys("\x15/quit\r");
        wait_for_prompt(&pty);
        assert_restored(&pty.log());
        let everything = pty.everything();
        let n_shown = everything.iter().filter(|row| row.trim() == "An answer.").count();
        assert_eq!(n_shown, 1, "{screen}: {everything:#?}");
        pty.keys("exit\r");
        pty.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_suspends_its_job_stops_the_program_with_it() {
    let home = TestHome::new();
    let script = "echo EDITOR\nkill -TSTP 0\nprintf 'from outside' > \"$1\"\n";
    fs::write(home.project().join("editor.sh"), script).unwrap();
    let pty = Pty::start_shell(&home, SIZE);
    pty.keys("export EDITOR='sh ./editor.sh'\r");
    start_in_shell(&home, &pty, "regular");
    pty.keys("\x07");
    pty.wait_log("the editor", |log| log.contains("EDITOR\r\n"));
    wait_for_prompt(&pty);
    pty.keys("fg\r");
    pty.wait("the text", |rows| rows.iter().any(|row| row.trim() == "from outside"));
    pty.keys("\x15/quit\r");
    wait_for_prompt(&pty);
    assert_restored(&pty.log());
    pty.keys("exit\r");
    pty.end();
}

/// A suspended program that is ended belongs to the background: it must not touch the terminal, or the
/// system would stop it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_end_while_suspended_ends_it_in_the_background() {
    let [key, kill, term, int] = ["\x1a", "kill", "143", "130"];
    for (stop, screen, expected) in [
        (key, "regular", term),
        (key, "fullscreen", term),
        (kill, "regular", term),
        (kill, "fullscreen", term),
        (key, "regular", int),
        (kill, "fullscreen", int),
    ] {
        let home = TestHome::new();
        let pty = Pty::start_shell(&home, SIZE);
        // The code that the shell itself would report is that of the stop.
        let script = "sh -c 'echo $$ > pid; exec \"$PI\" --tui-mode \"$0\"' \"$1\"\necho $? > code\n";
        fs::write(home.project().join("run.sh"), script).unwrap();
        pty.keys(&format!("sh run.sh {screen}\r"));
        pty.wait_idle();
        let pid = fs::read_to_string(home.project().join("pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        pty.keys("draft");
        pty.wait("the draft", |rows| rows.iter().any(|row| row.trim() == "draft"));
        let job = getpgid(Some(pid)).unwrap();
        if stop == "kill" {
            kill_process_group(job, Signal::STOP).unwrap();
        } else {
            pty.keys(stop);
        }
        // The alternate screen stays if pi was stopped without being asked.
        let n_wanted = 2 - usize::from(stop == "kill" && screen == "fullscreen");
        let n_prompts = |rows: &[String]| rows.iter().filter(|row| row.contains("shell>")).count();
        pty.wait("the shell", |rows| n_prompts(rows) == n_wanted);
        kill_process(pid, if expected == int { Signal::INT } else { Signal::TERM }).unwrap();
        kill_process_group(job, Signal::CONT).unwrap();
        let code = || fs::read_to_string(home.project().join("code")).unwrap_or_default();
        wait_for_files(&home.project(), "the exit code", || !code().is_empty());
        assert_eq!(code().trim(), expected, "{stop:?} {screen}");
        let (on, off) = ("\x1b[?2004h", "\x1b[?2004l");
        pty.wait_log("the terminal to be restored", |log| log.rfind(off) > log.rfind(on));
        assert_restored(&pty.log());
        assert!(home.drafts().iter().any(|saved| saved["text"] == "draft"), "{:?}", home.drafts());
    }
}

/// The window is closed while an answer arrives: the program ends, and keeps what had come.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_is_gone_ends_the_program_and_keeps_the_answer() {
    for screen in SCREENS {
        let never = TestBarrier::new();
        let busy = Reply::stream("text/event-stream").piece(chat::delta("Busy")).gate(&never);
        let server = SseServer::start([busy]).await;
        let home = TestHome::with_server(server.url());
        close_terminal(&home, screen, "go\r", "Busy").await;
        let code = fs::read_to_string(home.project().join("code")).unwrap();
        assert_eq!(code.trim(), "129", "{screen}");
        let saved = home.entries().last().unwrap().to_string();
        assert!(saved.contains("Busy"), "{screen}: {saved}");
    }
}

/// The terminal is gone, and an editor saves what it has and ends well.
#[tokio::test(flavor = "multi_thread")]
async fn text_that_an_editor_saves_when_the_terminal_is_gone_is_kept() {
    for screen in SCREENS {
        let server = SseServer::start([]).await;
        let home = TestHome::with_server(server.url());
        let script = "trap : HUP\necho EDITOR\ncat > rest\nprintf 'saved at the end' > \"$1\"\n";
        fs::write(home.project().join("editor.sh"), script).unwrap();
        close_terminal(&home, screen, "draft\x07", "EDITOR").await;
        let code = fs::read_to_string(home.project().join("code")).unwrap();
        assert_eq!(code.trim(), "129", "{screen}");
        let drafts = home.drafts();
        assert!(drafts.iter().any(|saved| saved["text"] == "saved at the end"), "{screen}: {drafts:?}");
    }
}

/// Types `keys` in a terminal that is gone when `shown` has come, and waits for the end of the program.
async fn close_terminal(home: &TestHome, screen: &str, keys: &str, shown: &str) {
    let life = Lifeline::new(home.project().join("life"));
    let (program, args) = child_args("the_terminal_that_goes");
    let job = json!({ "home": home.home(), "temp": home.temp(), "project": home.project(),
        "screen": screen, "keys": keys, "shown": shown });
    let mut command = Command::new(program);
    command.args(args).env(CHILD, job.to_string()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut terminal = command.spawn().unwrap();
    let mut output = terminal.stdout.take().unwrap();
    let going = tokio::task::spawn_blocking(move || wait_for(&mut output, "GOING"));
    going.await.unwrap();
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    life.ended().await;
}

/// Reads until `text` has come.
fn wait_for(output: &mut impl std::io::Read, text: &str) {
    let (mut seen, mut chunk) = (Vec::new(), [0; 4_096]);
    while !String::from_utf8_lossy(&seen).contains(text) {
        let n_bytes = output.read(&mut chunk).unwrap();
        assert!(n_bytes > 0, "{text} did not come: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&chunk[..n_bytes]);
    }
}

/// A terminal that another test kills. Does nothing unless that test started it.
#[test]
fn the_terminal_that_goes() {
    let Some(job) = job() else { return };
    let size = PtySize { rows: SIZE.height, cols: SIZE.width, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new("sh");
    // The shell survives the hang-up to write down how the program ended.
    command.args(["-c", "trap : HUP; exec 3> life; \"$PI\" --tui-mode \"$SCREEN\"; echo $? > code"]);
    command.env_clear();
    command.env("PI", env!("CARGO_BIN_EXE_pi"));
    command.env("SCREEN", job["screen"].as_str().unwrap());
    command.env("HOME", job["home"].as_str().unwrap());
    command.env("TMPDIR", job["temp"].as_str().unwrap());
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("TERM", "xterm-256color");
    command.env("COLORFGBG", "15;0");
    command.env("PI_LOCAL_SERVERS", "none");
    command.env("EDITOR", "sh ./editor.sh");
    command.cwd(Path::new(job["project"].as_str().unwrap()));
    let _child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut writer = pair.master.take_writer().unwrap();
    wait_for(&mut reader, "\x1b[6n");
    write!(writer, "\x1b[1;1R\x1b[?62;22c").unwrap();
    wait_for(&mut reader, "m-1");
    write!(writer, "{}", job["keys"].as_str().unwrap()).unwrap();
    wait_for(&mut reader, job["shown"].as_str().unwrap());
    writeln!(stdout(), "GOING").unwrap();
    // Until the end of this process.
    wait_for(&mut reader, "what never comes");
}
