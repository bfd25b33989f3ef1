//! Session files that are damaged, foreign, or in a place that fails: each gets a clear line,
//! and none is destroyed.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pi::ai::FakeAnswer;
use pi::session::{Disk, OpenSession, SessionCommand, SessionEvent, WhenBusy};
use pi::util::clock::Clock;

use crate::support::faults::disk::TrialDisk;
use crate::support::files::make_fifo;
use crate::support::program;
use crate::support::pty::TestHome;
use crate::support::session_bench::{START_MS, Session, SessionBench, prompt};

/// What becomes of a line.
type Change = fn(String) -> String;

fn bench() -> SessionBench {
    SessionBench::new(["one", "two", "three"].map(FakeAnswer::of_text))
}

/// A line of a message of the user, the child of `parent`.
fn says(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.280Z","message":{{"role":"user","content":"{id}!","timestamp":1}}}}"#
    )
}

fn notices(session: &mut Session) -> String {
    let events = session.waiting_events().into_iter();
    let texts = events.filter_map(|event| match event {
        SessionEvent::Notice { text, .. } => Some(text + "\n"),
        _ => None,
    });
    texts.collect()
}

#[test]
fn relative_home_is_refused_and_nothing_is_made_in_the_current_directory() {
    let home = TestHome::new();
    let run = |agent: &str| {
        let mut command = program::pi(&home, &["-p", "--model", "demo/pi", "hello"]);
        command.envs([("HOME", "rel"), ("PI_CODING_AGENT_DIR", agent), ("PI_DEMO_INSTANT", "1")]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = run("");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("HOME is not an absolute path: rel; correct it, or set"), "{told}");
    let (code, told) = run(home.agent().to_str().unwrap());
    assert_eq!(code, Some(0), "{told}");
    assert!(!home.project().join("rel").exists());
}

/// Replaces what is at `path` by a pipe, which would block whoever opens it, or by a link to a
/// device without end.
fn obstruct(path: &std::path::Path, with_pipe: bool) {
    drop(fs::remove_file(path));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if with_pipe {
        make_fifo(path);
    } else {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }
}

#[test]
fn pipes_and_devices_beside_sessions_and_settings_are_not_read() {
    let home = TestHome::new();
    let pi = |args: &[&str]| {
        let mut command = program::pi(&home, args);
        let output = command.env("PI_DEMO_INSTANT", "1").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = pi(&["-p", "--model", "demo/pi", "who are you?"]);
    assert_eq!(code, Some(0), "{told}");
    let session = home.sessions().pop().unwrap();
    let name = session.file_name().unwrap().to_str().unwrap();
    for with_pipe in [true, false] {
        for ending in ["queue", "draft", "deferred", "summary"] {
            obstruct(&session.with_file_name(format!(".{name}.{ending}")), with_pipe);
        }
        let (code, told) = pi(&["-p", "-c", "--model", "demo/pi", "who are you?"]);
        assert_eq!(code, Some(0), "{told}");
        obstruct(&home.agent().join("sessions/.index/rows"), with_pipe);
        obstruct(&home.agent().join("quota.json"), with_pipe);
        for command in ["sessions", "usage"] {
            let (code, told) = pi(&[command]);
            assert_eq!(code, Some(0), "{command}: {told}");
        }
        let device = home.project().join("device");
        obstruct(&device, with_pipe);
        let device = device.to_str().unwrap();
        for args in [&["-p", "--fork", device, "hi"][..], &["import", "--from", "openai", device]] {
            let (code, told) = pi(args);
            assert!(code == Some(1) && told.contains("it is not a regular file"), "{args:?}: {told}");
        }
    }
}

#[tokio::test]
async fn bad_session_files_are_reported_and_continued() {
    let (a, b, c) = (says("a", ""), says("b", "a"), says("c", "b"));
    let long = says("b", "a").replace("b!", &"x".repeat(1_000_000));
    // The file without its header, what a notice says, and entries that are on the branch.
    let rows: [(&str, String, &str, &[&str]); 13] = [
        (
            "a missing parent",
            format!("{a}\n{}\n", says("c", "gone")),
            "line 3 of the session file follows an entry that is missing",
            &["c"],
        ),
        (
            "a circle",
            format!("{}\n{}\n", says("a", "b"), says("b", "a")),
            "follows one of its own successors",
            &["a", "b"],
        ),
        (
            "an entry that is its own parent",
            format!("{a}\n{}\n", says("b", "b")),
            "follows one of its own successors",
            &["b"],
        ),
        (
            "an id used twice",
            format!("{a}\n{b}\n{}\n", says("a", "b")),
            "line 4 of the session file has the id of an earlier entry",
            &["a", "b"],
        ),
        (
            "a line written twice",
            format!("{a}\n{b}\n{c}\n{a}\n"),
            "line 5 of the session file repeats an earlier line",
            &["a", "b", "c"],
        ),
        ("lines that changed places", format!("{a}\n{c}\n{b}\n"), "", &["a", "b", "c"]),
        ("a long line", format!("{a}\n{long}\n{c}\n"), "", &["a", "b", "c"]),
        (
            "a long line that is cut off",
            format!("{a}\n{}\n{c}\n", &long[..900_000]),
            "line 3 (a message of yours)",
            &["a", "c"],
        ),
        ("zeros", format!("{a}\n{}{b}\n", "\0".repeat(4096)), "", &["a", "b"]),
        (
            "no parent at all",
            format!("{a}\n{}\n", b.replace(r#""parentId":"a","#, "")),
            "line 3 (a message of yours)",
            &["a", "b"],
        ),
        (
            "garbage",
            format!("{a}\nwhat is this\n{}\n", says("c", "b")),
            "line 3 of the session file could not be read",
            &["a", "c"],
        ),
        (
            "foreign lines among others",
            format!("{a}\n[1]\n{b}\n"),
            "line 3 of the session file could not be read",
            &["a", "b"],
        ),
        ("an unterminated line", format!("{a}\n{b}"), "", &["a", "b"]),
    ];
    for (what, lines, notice, branch) in rows {
        let bench = bench();
        let path = bench.session_file(&lines);
        continues(&bench, &path, what, notice, branch).await;
    }
    // The same of the header: what becomes of it.
    let headers: [(&str, Change, &str); 4] = [
        (
            "a newer version",
            |line| line.replace(r#""version":3"#, r#""version":99"#) + "\n",
            "the format version 99",
        ),
        ("a header cut short", |line| line[..40].to_owned() + "\n", "line 1 (the header)"),
        ("a header of zeros", |line| "\0".repeat(line.len()) + "\n", "line 1 (the header)"),
        ("no header", |_| String::new(), "line 1 (the header)"),
    ];
    for (what, change, notice) in headers {
        let bench = bench();
        let path = bench.path("given.jsonl");
        fs::write(&path, format!("{}{a}\n{b}\n", change(bench.header()))).unwrap();
        continues(&bench, &path, what, notice, &["a", "b"]).await;
    }
}

/// Opens a file, which must report `notice` (nothing, if that is empty) and show `branch`,
/// and says something. Nothing that was in the file changes, and a third process reads both.
async fn continues(bench: &SessionBench, path: &std::path::Path, what: &str, notice: &str, branch: &[&str]) {
    let before = fs::read(path).unwrap();
    let mut session = bench.open(OpenSession::File(path.to_owned())).await.unwrap();
    let told = notices(&mut session);
    // A message without an answer is another matter.
    let told: String = told.lines().filter(|line| !line.starts_with("The last answer")).collect();
    assert_eq!(told.is_empty(), notice.is_empty(), "{what}: {told}");
    assert!(told.contains(notice), "{what}: {told}");
    session.request(plain("more")).await.unwrap();
    while !matches!(session.next_kept().await, SessionEvent::Settled { .. }) {}
    session.request(SessionCommand::Shutdown).await.unwrap();
    session.gone().await;
    let after = fs::read(path).unwrap();
    assert!(after.starts_with(&before), "{what}: the file was changed");
    let stored = pi::session::read_tree(path).unwrap().unwrap();
    let (tree, leaf) = (&stored.tree, stored.tree.leaf());
    let ids: Vec<String> = tree.path(leaf).iter().map(|idx| tree.entry(*idx).id.to_string()).collect();
    for id in branch {
        assert!(ids.iter().any(|other| other == id), "{what}: {id} is not on the branch {ids:?}");
    }
    let text = String::from_utf8_lossy(&after[before.len()..]).into_owned();
    assert!(text.contains("more") && text.contains("one"), "{what}: {text}");
}

fn plain(text: &str) -> SessionCommand {
    prompt(text, WhenBusy::Refuse)
}

#[tokio::test]
async fn what_is_no_session_is_refused_with_a_reason_and_left_alone() {
    let rows = [
        (
            "another program's lines",
            "{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"1\"}\n{}\n".to_owned(),
        ),
        ("an object", "{\"name\": \"x\"}".to_owned()),
        ("zeros", "\0".repeat(5000)),
        ("text", "hello\nworld\n".to_owned()),
        ("an entry of a stream", "{\"type\":\"message\",\"id\":\"1\"}\n".to_owned()),
    ];
    for (what, text) in rows {
        let bench = bench();
        let path = bench.path("given.jsonl");
        fs::write(&path, &text).unwrap();
        let error = bench.open(OpenSession::File(path.clone())).await.err().unwrap().to_string();
        assert!(error.contains("is not a pi session") && error.contains("not changed"), "{what}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{what}");
    }
    let bench = bench();
    let error = bench.open(OpenSession::File(bench.path("work"))).await.err().unwrap().to_string();
    assert!(error.starts_with("cannot read ") && error.contains("directory"), "{error}");
}

#[tokio::test]
async fn session_that_cannot_be_read_for_lack_of_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = bench();
    let path = bench.session_file(&says("a", ""));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if fs::File::open(&path).is_err() {
        let error = bench.open(OpenSession::File(path.clone())).await.err().unwrap().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("ermission denied"), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(bench.open(OpenSession::File(path)).await.is_ok());
}

#[tokio::test]
async fn clock_that_runs_backwards_keeps_the_order_of_messages() {
    let mut bench = bench();
    let mut session = bench.start().await;
    session.ask("first").await;
    let path = session.path();
    session.request(SessionCommand::Shutdown).await.unwrap();
    session.gone().await;
    bench.clock = Clock::manual(START_MS - 86_400_000);
    let mut session = bench.resume(&path).await;
    assert_eq!(notices(&mut session), "");
    session.ask("second").await;
    bench.clock.advance(Duration::from_secs(1));
    session.request(SessionCommand::Shutdown).await.unwrap();
    session.gone().await;
    let mut session = bench.resume(&path).await;
    session.opened().await;
    let lines = session.on_disk();
    let said: Vec<&String> = lines.iter().filter(|line| line.starts_with("user")).collect();
    assert_eq!(said, ["user first", "user second"]);
}

#[tokio::test]
async fn session_without_locks_says_so_and_is_writable() {
    let bench = bench().disk(TrialDisk::without_locks() as Arc<dyn Disk>);
    let path = bench.session_file(&says("a", ""));
    let mut session = bench.resume(&path).await;
    let told = notices(&mut session);
    assert!(told.contains("cannot be locked") && told.contains("another pi"), "{told}");
    session.request(plain("more")).await.unwrap();
    while !matches!(session.next_kept().await, SessionEvent::Settled { .. }) {}
    assert!(fs::read_to_string(&path).unwrap().contains("more"));
}

#[tokio::test]
async fn command_that_ran_when_pi_was_killed_is_reported_and_stored() {
    let bench = bench();
    let path = bench.session_file(&(says("a", "") + "\n"));
    let line = r#"{"type":"message","id":"r","parentId":null,"timestamp":"2026-11-21T09:23:47.280Z","message":{"role":"bashExecution","command":"make all","output":"","cancelled":true,"truncated":false,"timestamp":1,"running":true}}"#;
    fs::write(bench.path(".given.jsonl.deferred"), format!("{line}\n")).unwrap();
    let mut session = bench.resume(&path).await;
    let told = notices(&mut session);
    assert!(told.contains("its output is lost: make all"), "{told}");
    assert_eq!(session.on_disk().last().unwrap(), "ran make all");
    assert!(!fs::read_to_string(&path).unwrap().contains("running\":"));
}

#[tokio::test]
async fn damaged_files_beside_a_session_are_reported_and_kept() {
    let bench = bench();
    let path = bench.session_file(&(says("a", "") + "\n"));
    let rows = [
        (".given.jsonl.queue", "{\"steering\":[\"kept\"],\"followUp\":[]}\ngarbage\n", "queued messages"),
        (".given.jsonl.draft", "{\"text\":", "of the draft"),
        (".given.jsonl.deferred", "\0\0\0\n", "results of ! commands"),
    ];
    for (name, text, _) in rows {
        fs::write(bench.path(name), text).unwrap();
    }
    let mut session = bench.resume(&path).await;
    let told = notices(&mut session);
    for (name, text, what) in rows {
        assert!(told.contains(&format!("some {what} could not be read")), "{told}");
        assert_eq!(fs::read_to_string(bench.path(&format!("{name}.damaged"))).unwrap(), text);
    }
    let left = session.request(SessionCommand::TakeLeftOver).await.unwrap();
    assert!(format!("{left:?}").contains("kept"), "{left:?}");
}

/// What `pi -p` prints for a session file, with the demo model; on a full disk, if that is
/// wanted. Returns standard output and standard error.
fn print(home: &TestHome, session: &std::path::Path, is_full: bool) -> (String, String) {
    let mut command = Command::new("sh");
    // A limit of file sizes fails every write to a file, also for root; pipes are not limited.
    let full = if is_full { "trap '' XFSZ; ulimit -f 0; " } else { "" };
    command.args(["-c", &format!("{full}exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_pi")]);
    command.args(["-p", "hi", "--model", "demo/pi", "--session"]).arg(session);
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    let output = command.current_dir(home.project()).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn program_reports_a_full_disk_and_bad_files_and_destroys_nothing() {
    let home = TestHome::new();
    let path = home.project().join("s.jsonl");
    let cwd = serde_json::json!(home.project());
    let header = format!(
        r#"{{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T09:00:00.000Z","cwd":{cwd}}}"#
    );
    let torn = format!("{header}\n{}\n{{\"type\":\"mess", says("a", ""));
    let damaged = format!("{}\n{}\n", &header[..50], says("a", ""));
    let rows = [
        ("a full disk", torn.as_str(), true, "cannot write the session file", true),
        ("a full disk and a torn line", &torn, true, "line 3 of the session file could not be read", true),
        ("a full disk and unsaved messages", &torn, true, "messages of this session are not saved", true),
        (
            "a damaged header",
            &damaged,
            false,
            "line 1 (the header) of the session file could not be read",
            true,
        ),
        ("foreign JSON", "{\"a\": 1}\n", false, "is not a pi session", false),
    ];
    for (what, text, is_full, report, is_answered) in rows {
        fs::write(&path, text).unwrap();
        let (stdout, stderr) = print(&home, &path, is_full);
        assert!(stderr.contains(report), "{what}: {stderr}");
        assert_eq!(stdout.contains("demo model"), is_answered, "{what}: {stdout}");
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(text), "{what}: the file was changed");
        assert_eq!(after.len() > text.len(), is_answered && !is_full, "{what}");
    }
    let (stdout, stderr) = print(&home, &home.project(), false);
    assert!(stderr.contains("is a directory") && stdout.is_empty(), "{stderr}");
}

#[test]
fn doctor_names_every_skill_and_template_that_cannot_be_loaded() {
    let home = TestHome::new();
    for n in 0..7 {
        let folder = home.agent().join(format!("skills/x{n}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\n[\n---\n").unwrap();
    }
    fs::create_dir_all(home.agent().join("prompts")).unwrap();
    fs::write(home.agent().join("prompts/t.md"), "---\nargument-hint: {a: b}\n---\nGo.\n").unwrap();
    let output = program::pi(&home, &["doctor"]).output().unwrap();
    // Rows are wrapped.
    let text = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for n in 0..7 {
        let told = format!("~/.pi/agent/skills/x{n}/SKILL.md:2: the skill is not loaded: ");
        assert!(text.contains(&told), "{text}");
    }
    // The name of the field is wrapped at its hyphen.
    let hint = "prompts/t.md:2: the prompt template is not loaded: argument- hint is neither text nor a list of texts";
    assert!(text.contains(hint), "{text}");
    assert!(output.status.success());
}

/// Opening a pipe waits for its other end, which nobody opens here.
#[test]
fn a_pipe_in_place_of_a_file_holds_up_no_start() {
    let user = ["settings.json", "models.json", "auth.json", "trust.json", "SYSTEM.md", "APPEND_SYSTEM.md"];
    let user = user.map(|name| format!("home/.pi/agent/{name}"));
    let project = [".git", ".pi/settings.json", ".pi/SYSTEM.md", ".pi/skills/a/SKILL.md", ".pi/prompts/a.md"];
    let project = project.map(|name| format!("project/{name}"));
    for pipe in user.iter().chain(&project) {
        let home = TestHome::new();
        let path = match pipe.strip_prefix("home/") {
            Some(name) => home.home().join(name),
            None => home.project().join(pipe.trim_start_matches("project/")),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_fifo(&path);
        let args = ["20", env!("CARGO_BIN_EXE_pi"), "--approve", "--model", "demo/pi", "-p", "hello"];
        let mut command = Command::new("timeout");
        command.env_clear().env("HOME", home.home()).env("TMPDIR", home.temp());
        command.env("PATH", "/usr/bin:/bin").env("PI_LOCAL_SERVERS", "none");
        let output = command.args(args).current_dir(home.project()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{pipe}: {:?}, {said}", output.status);
    }
}
