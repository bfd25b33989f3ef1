//! What changed in pi: shown once after an update, and on request.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::files::wait_for_files;
use crate::support::pty::{Pty, SIZE, TestHome};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn seen(home: &TestHome) -> String {
    fs::read_to_string(home.agent().join("seen-version")).unwrap_or_default().trim().to_owned()
}

/// A user who has seen the changes of `version`.
fn home_of(version: &str, settings: &Value) -> TestHome {
    let home = TestHome::new().settings(settings);
    fs::write(home.agent().join("seen-version"), format!("{version}\n")).unwrap();
    home
}

/// What a start shows before anything is typed, once the file says `expected`.
fn started(home: &TestHome, args: &[&str], expected: &str) -> String {
    let pty = Pty::start(home, SIZE, args);
    pty.wait_idle();
    wait_for_files(&home.agent(), "the recorded version", || seen(home) == expected);
    pty.keys("\x04");
    let (status, rows, _) = pty.end();
    assert!(status.success());
    rows.join("\n")
}

#[test]
fn a_first_start_records_the_version_and_shows_nothing() {
    let home = TestHome::new();
    let screen = started(&home, &[], VERSION);
    assert!(!screen.contains("new in pi") && !screen.contains("/changelog"), "{screen}");
}

#[test]
fn an_update_shows_what_is_new_once() {
    let home = home_of("0.0.1", &json!({"theme": "dark"}));
    let screen = started(&home, &[], VERSION);
    assert!(screen.contains("What is new in pi"), "{screen}");
    assert!(screen.contains("The first version."), "{screen}");
    let screen = started(&home, &[], VERSION);
    assert!(!screen.contains("new in pi"), "{screen}");
    let settings = fs::read_to_string(home.agent().join("settings.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&settings).unwrap(),
        json!({"theme": "dark"}),
        "it is the user's"
    );
}

#[test]
fn an_update_takes_one_line_or_none_if_you_like() {
    let screen = started(&home_of("0.0.1", &json!({"collapseChangelog": true})), &[], VERSION);
    let line = format!("pi is now version {VERSION}; /changelog shows what changed");
    assert!(screen.contains(&line) && !screen.contains("The first version."), "{screen}");
    let screen = started(&home_of("0.0.1", &json!({"quietStartup": true})), &[], VERSION);
    assert!(!screen.contains("/changelog") && !screen.contains("new in pi"), "{screen}");
}

#[test]
fn an_older_program_and_the_original_have_no_news() {
    let home = home_of("9.0.0", &json!({"lastChangelogVersion": "0.0.1"}));
    let screen = started(&home, &[], VERSION);
    assert!(!screen.contains("new in pi"), "{screen}");
}

#[test]
fn other_modes_and_continued_sessions_leave_it_to_the_next_new_session() {
    let home = home_of("0.0.1", &json!({}));
    for args in [["-p", "hello"].as_slice(), &["--mode", "json", "hello"], &["--mode", "rpc"], &["acp"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
        command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp()).env("PATH", "/usr/bin:/bin");
        command.env("PI_LOCAL_SERVERS", "none").env("PI_DEMO_INSTANT", "1").current_dir(home.project());
        let output =
            command.args(args).args(["--model", "demo/pi"]).stdin(std::process::Stdio::null()).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(!text.contains("new in pi") && seen(&home) == "0.0.1", "{args:?}: {text}");
    }
    let screen = started(&home, &["--continue"], "0.0.1");
    assert!(screen.contains("hello") && !screen.contains("new in pi"), "{screen}");
    let screen = started(&home, &[], VERSION);
    assert!(screen.contains("What is new in pi"), "{screen}");
}

#[test]
fn the_command_shows_all_changes() {
    let home = TestHome::new();
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("/changelog\r");
    let rows = pty.wait_text("What changed in pi");
    assert!(rows.join("\n").contains("The first version."), "{rows:#?}");
    pty.keys("q");
    pty.wait("the report is closed", |rows| !rows.iter().any(|row| row.contains("What changed in pi")));
    pty.keys("\x04");
    assert!(pty.end().0.success());
}
