//! `pi sessions`, and the list of sessions in the terminal.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use pi::session::project_folder;
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::pty::{Pty, TestHome};

/// pi in the user's project, without a key.
fn pi(home: &TestHome, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).stdin(Stdio::null()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A session of messages; entries have the ids `m0`, `m1`, …
pub(crate) fn put_session(
    home: &TestHome,
    cwd: &Path,
    id: &str,
    age_days: u64,
    messages: &[(&str, &str)],
) -> PathBuf {
    let folder = project_folder(&home.agent().join("sessions"), cwd);
    fs::create_dir_all(&folder).unwrap();
    let time = UNIX_EPOCH.elapsed().unwrap() - Duration::from_secs(age_days * 86_400 + 60);
    let time_ms = u64::try_from(time.as_millis()).unwrap();
    let mut text = json!({"type": "session", "version": 3, "id": id, "timestamp": "2025-11-21T09:23:47.280Z", "cwd": cwd}).to_string() + "\n";
    for (at, (role, said)) in messages.iter().enumerate() {
        let parent = at.checked_sub(1).map(|at| format!("m{at}"));
        let line = if *role == "name" {
            json!({"type": "session_info", "id": format!("m{at}"), "parentId": parent, "timestamp": "2025-11-21T09:23:47.280Z", "name": said})
        } else {
            let content = json!([{"type": "text", "text": said}]);
            json!({"type": "message", "id": format!("m{at}"), "parentId": parent, "timestamp": "2025-11-21T09:23:47.280Z", "message": {"role": role, "content": content, "api": "openai-completions", "provider": "acme", "model": "m-1", "stopReason": "stop", "timestamp": time_ms}})
        };
        text.push_str(&(line.to_string() + "\n"));
    }
    let path = folder.join(format!("2025-11-21T09-23-47-280Z_{id}.jsonl"));
    fs::write(&path, text).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(UNIX_EPOCH + time).unwrap();
    path
}

fn home() -> TestHome {
    let home = TestHome::new();
    let project = home.project();
    put_session(
        &home,
        &project,
        "0199aaaa-0000-7000-8000-000000000001",
        2,
        &[("user", "Fix the parser"), ("assistant", "The offset of the lexer was wrong")],
    );
    put_session(
        &home,
        &project,
        "0199bbbb-0000-7000-8000-000000000002",
        1,
        &[("user", "Write a poem"), ("name", "Poetry")],
    );
    put_session(&home, Path::new("/elsewhere"), "other", 0, &[("user", "Another offset")]);
    home
}

/// What is damaged among the sessions is named where they are listed, counted, traced and exported.
#[test]
fn files_that_are_no_sessions_and_damaged_lines_are_named() {
    let home = TestHome::new();
    let project = fs::canonicalize(home.project()).unwrap();
    let path =
        put_session(&home, &project, "0198c2aa", 0, &[("user", "a question"), ("assistant", "an answer")]);
    let folder = path.parent().unwrap().to_owned();
    let garbage = folder.join("2025-11-22T09-23-47-280Z_ab.jsonl");
    fs::write(&garbage, "garbage\n").unwrap();
    // As a full disk leaves it.
    let empty = folder.join("2025-11-22T09-23-47-280Z_ac.jsonl");
    fs::write(&empty, "").unwrap();
    let shown =
        [garbage, empty].map(|path| path.display().to_string().replace(home.home().to_str().unwrap(), "~"));
    let note = format!("pi: 2 files are not sessions: {}\n", shown.join(", "));
    for args in [&["sessions"][..], &["sessions", "--all"], &["sessions", "--search", "answer"]] {
        let output = pi(&home, args);
        assert_eq!((text(&output.stderr), output.status.code()), (note.clone(), Some(0)), "{args:?}");
    }
    // An empty file has cost nothing.
    assert!(text(&pi(&home, &["usage"]).stderr).starts_with("pi: 1 file is not a session: "));
    // The second time the list comes from its cache.
    assert_eq!(text(&pi(&home, &["sessions"]).stderr), note);
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, lines.clone() + "{\"type\":\"message\",\"id\":\n").unwrap();
    let damage = "pi: line 4 (a message) of the session file could not be read; the rest is intact";
    for args in [&["trace"][..], &["trace", "--json"], &["export", "--to", "md", "0198c2aa"]] {
        let output = pi(&home, args);
        let stderr = text(&output.stderr);
        assert!(stderr.lines().any(|line| line == damage), "{args:?}: {stderr}");
        assert!(output.status.success() && text(&output.stdout).contains("an answer"), "{args:?}: {stderr}");
    }
    for n in 0..4 {
        fs::write(folder.join(format!("2025-11-23T09-23-47-28{n}Z_x.jsonl")), "{}\n").unwrap();
    }
    let told = text(&pi(&home, &["usage"]).stderr);
    assert!(told.starts_with("pi: 5 files are not sessions: ") && told.ends_with(" and 2 more\n"), "{told}");
}

#[test]
fn folders_of_sessions_that_cannot_be_read_are_errors() {
    let home = TestHome::new();
    let path = home.home().join("file");
    fs::write(&path, "").unwrap();
    let missing = home.home().join("missing");
    for (folder, reason) in [
        (&path, "~/file: Not a directory (os error 20)"),
        (&missing, "~/missing: No such file or directory (os error 2)"),
    ] {
        let folder = folder.to_str().unwrap();
        for args in
            [&["sessions"][..], &["usage"], &["trace"], &["trace", "0198"], &["export", "0198", "--to", "md"]]
        {
            let output = pi(&home, &[args, &["--session-dir", folder]].concat());
            let expected = format!("pi: cannot read the sessions in {reason}\n");
            assert_eq!((text(&output.stderr), output.status.code()), (expected, Some(1)), "{args:?}");
        }
    }
    // What pi makes itself need not exist yet.
    for args in [&["sessions"][..], &["usage"]] {
        assert_eq!(pi(&home, args).status.code(), Some(0), "{args:?}");
    }
    // Its place is taken by a file.
    fs::create_dir_all(home.agent()).unwrap();
    fs::write(home.agent().join("sessions"), "").unwrap();
    for args in [&["sessions", "--all"][..], &["usage"]] {
        let output = pi(&home, args);
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("pi: cannot read the sessions in ~/.pi/agent/sessions: "),
            "{args:?}: {stderr}"
        );
        assert_eq!((stderr.lines().count(), output.status.code()), (1, Some(1)), "{args:?}: {stderr}");
    }
}

#[test]
fn sessions_are_listed_and_searched_in_a_shell() {
    let home = home();
    let check = |args: &[&str], code: i32, stdout: &str, stderr: &str| {
        let output = pi(&home, &[&["sessions"], args].concat());
        let shown = (text(&output.stdout), text(&output.stderr));
        assert_eq!(shown, (stdout.to_owned(), stderr.to_owned()), "{args:?}");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    };
    let (poem, parser) = ("1d  1  0199bbbb-0000  Poetry\n", "2d  2  0199aaaa-0000  Fix the parser\n");
    check(&[], 0, &format!("{poem}{parser}"), "");
    check(&["--limit", "1"], 0, poem, "1 of 2 sessions; --limit 0 shows all\n");
    let snippet = "    assistant: The offset of the lexer was wrong\n";
    check(&["--search", "OFFSET lexer"], 0, &format!("{parser}{snippet}"), "");
    let project = pi::util::paths::display(&home.project(), Some(&home.home()));
    let other = format!("1m  1  other          {:<1$}  Another offset\n", "/elsewhere", project.len());
    let ours = format!("2d  2  0199aaaa-0000  {project}  Fix the parser\n");
    let expected = [&other, "    user: Another offset\n", &ours, snippet].concat();
    check(&["--search", "offset", "--all"], 0, &expected, "");
    check(
        &["--search", "nowhere"],
        1,
        "",
        "pi: no session contains nowhere; --all includes other directories\n",
    );
    check(&["--search", "  "], 2, "", "pi: --search needs at least one word\n");
    check(&["--search", "re:("], 2, "", "pi: invalid regular expression: unclosed group\n");
    let missing = home.home().join("missing");
    let wrong = "pi: cannot read the sessions in ~/missing: No such file or directory (os error 2)\n";
    check(&["--session-dir", missing.to_str().unwrap()], 1, "", wrong);
}

#[test]
fn session_list_as_json_has_entry_and_snippet() {
    let home = home();
    let output = pi(&home, &["sessions", "--search", "wrong", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let session = &listed[0];
    let expected =
        json!({"entryId": "m1", "author": "assistant", "snippet": "The offset of the lexer was wrong"});
    assert_eq!((&session["match"], listed.as_array().unwrap().len()), (&expected, 1));
    assert_eq!(session["firstMessage"], "Fix the parser");
    assert_eq!((&session["messages"], &session["matchingMessages"]), (&json!(2), &json!(1)));
    assert_eq!(session["created"], "2025-11-21T09:23:47.280Z");
    assert!(Path::new(session["path"].as_str().unwrap()).is_file());
    let output = pi(&home, &["sessions", "--search", "nowhere", "--json"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("[]\n", Some(1)));
}

#[test]
fn deleted_or_damaged_cache_changes_no_list() {
    let home = home();
    let list = || text(&pi(&home, &["sessions", "--all", "--search", "offset"]).stdout);
    let expected = list();
    let index = home.agent().join("sessions/.index");
    assert!(index.join("rows").is_file());
    assert_eq!(list(), expected);
    for file in fs::read_dir(&index).unwrap() {
        fs::write(file.unwrap().path(), "\0damage").unwrap();
    }
    assert_eq!(list(), expected);
    fs::remove_dir_all(&index).unwrap();
    fs::write(&index, "not a folder").unwrap();
    assert_eq!(list(), expected);
    assert_eq!(fs::read_to_string(&index).unwrap(), "not a folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_found_in_the_list_is_selected_in_the_tree_of_its_session() {
    let home = home();
    let pty = Pty::start(&home, Size::new(80, 24), &[]);
    pty.wait_idle();
    pty.keys("/resume\r");
    pty.wait_text("Poetry");
    pty.keys("lexer");
    pty.wait_text("assistant: The offset of the lexer was wrong");
    pty.keys("\r");
    pty.wait("the message in the tree", |rows| {
        rows.iter().any(|row| row.contains('›') && row.contains("The offset of the lexer was wrong"))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_renamed_and_deleted_in_the_list() {
    let home = home();
    let pty = Pty::start(&home, Size::new(100, 24), &["--resume"]);
    pty.wait_text("Fix the parser");
    pty.keys("\x1b[B\x12Lexer\r");
    pty.wait_text("→ Lexer");
    assert_eq!(home.sessions().len(), 3);
    pty.keys("\x04");
    pty.wait_text("Delete this session?");
    pty.keys("\r");
    pty.wait_text("The session was deleted.");
    let left: Vec<String> = home.sessions().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(left.len() == 2 && left.iter().all(|text| !text.contains("Fix the parser")));
    // The sessions of all directories.
    pty.keys("\t");
    pty.wait_text("Another offset");
}
