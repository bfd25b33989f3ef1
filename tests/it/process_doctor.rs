//! `pi doctor` in a terminal.

use ratatui::layout::Size;

use crate::support::pty::{Pty, TestHome};

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
    assert!(
        !log.contains("canary") && !log.contains("\x1b[?2004h") && !log.contains("\x1b[?1049h"),
        "{log:?}"
    );
}
