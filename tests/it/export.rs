//! `pi export` and `/export` of sessions as pages, Markdown and session files.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{Reply, SseServer};

fn pi(home: &TestHome) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).stdin(Stdio::null());
    command
}

fn export(home: &TestHome, args: &[&str]) -> Output {
    pi(home).arg("export").args(args).output().unwrap()
}

#[track_caller]
fn ok(output: &Output) -> (String, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let stderr = text(&output.stderr);
    assert!(!output.status.success() && stderr.contains(why), "{stderr}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions")
}

/// The values of the page's elements with JSON of that class or id.
fn data(page: &str, name: &str) -> Vec<Value> {
    let start = format!("<script type=\"application/json\" {name}>");
    let elements = page.split(&start).skip(1);
    elements.map(|rest| serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap()).collect()
}

fn write_session(path: &Path, messages: &[Value]) {
    let header = json!({"type": "session", "version": 3, "id": "0199c2a4", "timestamp": "2026-11-21T09:23:47.280Z", "cwd": "/work"});
    let lines = messages.iter().enumerate().map(|(n, message)| {
        let parent = (n > 0).then(|| format!("e{}", n - 1));
        json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "timestamp": "2026-11-21T09:23:47.280Z", "message": message})
    });
    let text: String = [header].into_iter().chain(lines).map(|line| line.to_string() + "\n").collect();
    fs::write(path, text).unwrap();
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 1})
}

/// Put together here, so that scanners of source code do not take it for a real one.
fn token() -> String {
    ["gh", "p_", "q7Zk2Xw9Lm4Tb8Rv3Ns6q7Zk2Xw9Lm4Tb8Rv"].concat()
}

#[test]
fn export_to_a_directory_that_is_not_there_names_no_file_of_its_own() {
    let home = TestHome::new();
    let session = home.project().join("session.jsonl");
    write_session(&session, &[user("hello")]);
    let output = export(&home, &["session.jsonl", "none/page.html"]);
    refused(&output, "cannot write none/page.html");
    refused(&output, "No such file or directory");
    assert!(!text(&output.stderr).contains(".tmp"), "{}", text(&output.stderr));
}

#[test]
fn exports_of_sessions_of_the_original_contain_all_their_entries() {
    let home = TestHome::new();
    for file in fs::read_dir(fixtures()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let name = path.to_str().unwrap();
        let n_entries = fs::read_to_string(&path).unwrap().lines().count() - 1;
        let (page, notes) = ok(&export(&home, &["--to", "html", name]));
        assert_eq!(notes, "", "{name}");
        let count = |class: &str| -> usize {
            data(&page, class).iter().map(|block| block.as_array().unwrap().len()).sum()
        };
        assert_eq!((count("class=\"index\""), count("class=\"bodies\"")), (n_entries, n_entries), "{name}");
        assert!(data(&page, "id=\"meta\"")[0]["facts"].as_array().unwrap().len() > 3, "{name}");
        let (markdown, _) = ok(&export(&home, &["--to", "md", name]));
        assert!(markdown.starts_with("# ") && markdown.contains("\n## "), "{name}: {markdown}");
    }
}

#[test]
fn page_of_a_branched_session_has_all_branches_and_markdown_the_active_one() {
    let home = TestHome::new();
    let path = fixtures().join("tree.jsonl");
    let (page, _) = ok(&export(&home, &["--to", "html", path.to_str().unwrap()]));
    let index: Vec<Value> =
        data(&page, "class=\"index\"").iter().flat_map(|block| block.as_array().unwrap().clone()).collect();
    let mut n_children = vec![0; index.len()];
    for row in &index {
        if let Ok(parent) = usize::try_from(row[0].as_i64().unwrap()) {
            n_children[parent] += 1;
        }
    }
    assert!(n_children.iter().any(|n| *n > 1), "it branches");
    assert!(index.iter().any(|row| row[4] == "start"), "the label is there");
    let (markdown, _) = ok(&export(&home, &["--to", "md", path.to_str().unwrap()]));
    let n_prompts = index.iter().filter(|row| row[1] == "user").count();
    let n_shown = markdown.matches("\n## You\n").count();
    assert!((1..n_prompts).contains(&n_shown), "{n_shown} of {n_prompts}: {markdown}");
}

#[test]
fn format_follows_the_name_of_the_file_and_nothing_is_overwritten_silently() {
    let home = TestHome::new();
    write_session(&home.project().join("s.jsonl"), &[user("hello there")]);
    let file = |name: &str| home.project().join(name);
    assert_eq!(ok(&export(&home, &["./s.jsonl", "a.html"])).0, "exported to a.html\n");
    assert!(fs::read_to_string(file("a.html")).unwrap().starts_with("<!DOCTYPE html>"));
    ok(&export(&home, &["./s.jsonl", "-o", "a.md"]));
    assert!(fs::read_to_string(file("a.md")).unwrap().contains("## You\n"));
    ok(&export(&home, &["./s.jsonl", "a.jsonl"]));
    let lines = fs::read_to_string(file("a.jsonl")).unwrap();
    assert_eq!(lines.lines().nth(1), fs::read_to_string(file("s.jsonl")).unwrap().lines().nth(1));

    let before = fs::read(file("a.html")).unwrap();
    refused(&export(&home, &["./s.jsonl", "a.html"]), "a.html exists; use --force to overwrite it");
    refused(&export(&home, &["./s.jsonl", "s.jsonl"]), "s.jsonl exists");
    assert_eq!(fs::read(file("a.html")).unwrap(), before);
    ok(&export(&home, &["./s.jsonl", "a.html", "--to", "md", "--force"]));
    assert!(fs::read_to_string(file("a.html")).unwrap().starts_with("# "));

    refused(&export(&home, &["./s.jsonl", "a.pdf"]), "end it in .html, .md or .jsonl, or use --to FORMAT");
    refused(&export(&home, &["./s.jsonl", "--to", "html", "--format", "jsonl"]), "--to jsonl");
    refused(&export(&home, &["./s.jsonl", "no/where/a.html"]), "cannot write no/where/a.html");
    refused(&export(&home, &["./gone.jsonl", "b.html"]), "gone.jsonl");
    fs::write(file("empty.jsonl"), "").unwrap();
    refused(&export(&home, &["./empty.jsonl", "b.html"]), "has nothing to export");
    assert!(!file("b.html").exists());
    let n_left = fs::read_dir(home.project())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".pi-"));
    assert_eq!(n_left.count(), 0, "no temporary file is left");
}

#[test]
fn secrets_stop_an_export_until_the_user_decides() {
    let home = TestHome::new();
    let secret = token();
    let call = json!({"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": format!("git push https://{secret}@host")}});
    let answer = json!({"role": "assistant", "content": [call], "api": "a", "provider": "p", "model": "m", "stopReason": "toolUse", "timestamp": 1});
    write_session(&home.project().join("s.jsonl"), &[user("hello"), answer]);
    for (file, args) in [("a.html", &[][..]), ("a.md", &[]), ("a.jsonl", &[])] {
        let export = |more: &[&str]| export(&home, &[&["./s.jsonl", file], args, more].concat());
        let stopped = export(&[]);
        refused(&stopped, "nothing was exported, because 1 places look like secrets; use --redact");
        let stderr = text(&stopped.stderr);
        assert!(stderr.contains("looks like a secret: 1 × GitHub token: entry e1"), "{stderr}");
        assert!(!stderr.contains(&secret) && !home.project().join(file).exists());

        ok(&export(&["--redact"]));
        let masked = fs::read_to_string(home.project().join(file)).unwrap();
        assert!(!masked.contains(&secret) && masked.contains("masked: GitHub token"), "{masked}");
        ok(&export(&["--keep-secrets", "--force"]));
        assert!(fs::read_to_string(home.project().join(file)).unwrap().contains(&secret));
    }
    // The service has read it already: a request is written, with a warning.
    let (stdout, stderr) = ok(&export(&home, &["--to", "openai", "./s.jsonl"]));
    assert!(stdout.contains(&secret) && stderr.contains("looks like a secret: 1 × GitHub token"), "{stderr}");
    let (stdout, stderr) = ok(&export(&home, &["--to", "openai", "./s.jsonl", "--redact"]));
    assert!(!stdout.contains(&secret) && !stderr.contains("secret"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slash_export_asks_about_secrets_and_writes_what_was_chosen() {
    let server = SseServer::start([Reply::sse(chat::text("Noted."))]).await;
    let home = TestHome::with_server(server.url());
    let secret = token();
    let pty = Pty::start(&home, Size::new(100, 30), &[]);
    pty.wait_idle();
    pty.keys("/export\r");
    pty.wait_text("there is nothing to export yet");
    pty.keys(&format!("use {secret}\r"));
    pty.wait_text("Noted.");
    pty.wait_idle();
    pty.keys("/export a.pdf\r");
    pty.wait_text("end the name of the file in .html, .md or .jsonl");
    let answer = |keys: &str| {
        pty.wait_text("Mask them and export");
        pty.keys(keys);
        // The next question must not be taken for this one.
        pty.wait("the question to close", |rows| !rows.iter().any(|row| row.contains("Export secrets?")));
    };
    // The text stays in the editor, and is deleted here. Enter alone changes nothing.
    pty.keys("\x15/export page.html\r");
    pty.wait_text("1 × GitHub token");
    answer("\r");
    pty.wait_idle();
    assert!(!home.project().join("page.html").exists());
    pty.keys("/export page.html\r");
    answer("\x1b[B\r");
    pty.wait_text("Exported the session to");
    let page = fs::read_to_string(home.project().join("page.html")).unwrap();
    assert!(!page.contains(&secret) && page.contains("[masked: GitHub token]") && page.contains("Noted."));
    pty.keys("/export page.html\r");
    answer("\x1b[B\r");
    pty.wait_text("exists already; choose another name");
    pty.keys("\x15/export\r");
    answer("\x1b[B\x1b[B\r");
    pty.wait_text("pi-session-");
    pty.keys("\x04");
    pty.end();
    let named = fs::read_dir(home.project()).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.file_name().unwrap().to_string_lossy().starts_with("pi-session-").then_some(path)
    });
    assert!(fs::read_to_string(named.unwrap()).unwrap().contains(&secret), "it was to be kept");
}

/// The document that headless Chromium makes of a page.
fn rendered(chromium: &Path, profile: &Path, address: &str) -> String {
    let mut command = Command::new(chromium);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,800"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    let output = command.args(["--virtual-time-budget=5000", "--dump-dom", address]).output().unwrap();
    text(&output.stdout)
}

/// Runs where a browser is installed, and otherwise reports that it did not.
#[test]
fn page_in_headless_chromium_shows_hostile_text_and_few_of_many_rows() {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders = ["/usr/bin", "/usr/local/bin", "/snap/bin", "/opt/google/chrome"];
    let places = folders.iter().flat_map(|folder| names.iter().map(move |name| Path::new(folder).join(name)));
    let Some(chromium) = places.into_iter().find(|path| path.exists()) else {
        writeln!(std::io::stderr(), "skipped: no Chromium is installed to show an exported page").unwrap();
        return;
    };
    let home = TestHome::new();
    let hostile = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>";
    let messages: Vec<Value> = (0..5_000)
        .map(|n| match n % 2 {
            0 => user(&format!("prompt number {n} {hostile}")),
            _ => json!({"role": "assistant", "content": [{"type": "text", "text": format!("# Answer {n}\n\n{hostile} [x](javascript:document.title='owned')")}, {"type": "toolCall", "id": "c", "name": hostile, "arguments": {"path": hostile}}], "api": "a", "provider": hostile, "model": hostile, "stopReason": "stop", "timestamp": 1}),
        })
        .collect();
    write_session(&home.project().join("s.jsonl"), &messages);
    ok(&export(&home, &["./s.jsonl", "page.html"]));
    let page = home.project().join("page.html");
    let profile = home.home().join("browser");
    let shown = rendered(&chromium, &profile, &format!("file://{}#e2400", page.display()));
    assert!(shown.contains("class=\"ready\""), "the program of the page ran to its end: {shown}");
    assert!(!shown.contains("<title>owned"), "content ran");
    assert!(
        shown.contains("row user current") && shown.contains("prompt number 2400 &lt;/script&gt;&lt;img")
    );
    let n_rows = shown.matches("<article").count();
    assert!((2..60).contains(&n_rows), "{n_rows} rows of 5000 are in the document");
    // Neither elements nor links were made of content.
    let from_data = shown.find("<script").unwrap_or(shown.len());
    let visible = &shown[..from_data];
    assert!(
        !visible.contains("<img") && !visible.contains("<b>bold") && !visible.contains("href=\"javascript")
    );
}
