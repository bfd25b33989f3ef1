//! `pi doctor` in a terminal.

use ratatui::layout::Size;

use crate::support::pty::{Pty, TerminalAnswers, TestHome};

#[test]
fn doctor_reports_and_leaves_the_terminal_as_it_was() {
    let home = TestHome::new();
    std::fs::write(home.agent().join("settings.json"), "{\"them\": 1}").unwrap_or_default();
    for (folder, n_sessions) in [("--one--", 2), ("--two--", 1)] {
        let folder = home.agent().join("sessions").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for n in 0..n_sessions {
            std::fs::write(folder.join(format!("{n}.jsonl")), "").unwrap();
        }
        std::fs::write(folder.join("notes.txt"), "").unwrap();
    }
    let env = [("OPENAI_API_KEY", "sk-canary-1234567890"), ("LANG", "C.UTF-8")];
    let size = Size { width: 100, height: 60 };
    let pty = Pty::start_in(&home, &home.project(), size, &["doctor"], &env);
    let (status, rows, log) = pty.end();
    assert!(status.success());
    let text = rows.join("\n");
    for shown in [
        "Terminal",
        "TERM=xterm-256color",
        "~/.pi/agent/settings.json",
        "~/.pi/agent/sessions (3 sessions)",
        "openai",
        "api.openai.com",
        "What to change",
    ] {
        assert!(text.contains(shown), "{shown} is not in\n{text}");
    }
    assert!(text.contains("them"), "a wrong setting is named\n{text}");
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("\x1b]7501;?"), "the terminal is asked whether it shows the status: {log:?}");
    assert!(
        !log.contains("canary") && !log.contains("\x1b[?2004h") && !log.contains("\x1b[?1049h"),
        "{log:?}"
    );
}

#[test]
fn hotkeys_name_indistinct_keys_only_in_a_terminal_without_the_protocol() {
    let home = TestHome::new();
    let size = Size { width: 100, height: 30 };
    let with_protocol: TerminalAnswers = &[(b"\x1b[?u", "\x1b[?5u")];
    for (answers, is_named) in [(TerminalAnswers::default(), true), (with_protocol, false)] {
        let pty = Pty::start_on(
            answers,
            &home,
            &home.project(),
            size,
            &["--model", "demo/pi"],
            &[("TERM", "foot")],
        );
        pty.wait_idle();
        pty.keys("/hotkeys\r");
        let rows = pty.wait_text("While typing a prompt").join("\n");
        assert_eq!(rows.contains("This terminal cannot tell some keys apart"), is_named, "{rows}");
    }
}
