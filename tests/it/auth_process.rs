//! Keys and sign-ins as users meet them: `/login` and `/logout` in the terminal,
//! `pi auth` in the shell. A key is nowhere but in `auth.json`.

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

const SIZE: Size = Size { width: 80, height: 24 };
const CANARY: &str = "gsk-canary-7351";

/// A user without any key, whose Groq is served at `url`.
fn home(url: &str) -> TestHome {
    let home = TestHome::new();
    let models = json!({"providers": {"groq": {"baseUrl": url}}});
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    home
}

fn auth(home: &TestHome) -> Value {
    let text = fs::read_to_string(home.agent().join("auth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The files of the user that hold `text`.
fn files_with(home: &TestHome, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![home.home(), home.project()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if contains(&fs::read(&path).unwrap(), text) {
                found.push(path);
            }
        }
    }
    found
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[track_caller]
fn assert_private(path: &Path) {
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_typed_into_the_dialog_opens_the_provider_and_is_seen_nowhere() {
    let server = SseServer::start([Reply::sse(chat::text("Hello from Groq."))]).await;
    let home = home(server.url());
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.wait_text("type /login");
    pty.keys("/login groq\r");
    pty.wait_text("Key for Groq");
    pty.keys("\r");
    pty.wait_text("type or paste it first");
    // Pasted text as terminals send it; a key copied from wrapped text contains a line break.
    let (start, end) = CANARY.split_at(6);
    pty.keys(&format!("\x1b[200~ {start}\r{end}\n\x1b[201~"));
    pty.wait_text("••••");
    pty.keys("\r");
    pty.wait_text("Saved the key for groq. The model is now groq/openai/gpt-oss-120b;");
    pty.wait_idle();
    assert_eq!(auth(&home), json!({"groq": {"type": "api_key", "key": CANARY}}));
    assert_private(&home.agent().join("auth.json"));

    pty.keys("hello\r");
    pty.wait_text("Hello from Groq.");
    pty.wait_idle();
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {CANARY}").as_str()));

    pty.keys("/login\r");
    pty.wait_text("Log in to a provider");
    pty.keys("groq");
    pty.wait("where the key is", |rows| rows.iter().any(|row| row.contains("Groq  key in auth.json")));
    pty.keys("\x1b");
    pty.wait_idle();
    // The prompt's history knows the command, not the key.
    pty.keys("\x1b[A");
    pty.wait_text("/login");
    pty.keys("\x03");
    pty.wait_idle();
    assert_eq!(files_with(&home, CANARY), [home.agent().join("auth.json")]);

    pty.keys("/logout groq\r");
    pty.wait_text("Removed the credentials of groq.");
    assert_eq!(auth(&home), json!({}));
    assert!(files_with(&home, CANARY).is_empty());
    pty.keys("\x04");
    let (status, everything, log) = pty.end();
    assert!(status.success());
    assert!(!contains(&log, CANARY) && !contains(&log, "canary"), "{}", everything.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_behind_the_command_is_refused_and_not_remembered() {
    let home = home("http://127.0.0.1:1");
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    // ctrl+j breaks the line.
    for before in ["/login groq ", "/login ", "/login groq\n", "/logout\n"] {
        let line = format!("{before}{CANARY}\r");
        pty.keys(&line);
        let rows = pty.wait_text("enter only the provider's name");
        assert!(!rows.join("\n").contains(CANARY));
    }
    pty.keys("\x1b[A");
    pty.keys("x");
    let rows = pty.wait("the typed letter", |rows| rows.iter().any(|row| row == "x"));
    assert!(!rows.join("\n").contains(CANARY));
    pty.keys("\x7f\x04");
    assert!(pty.end().0.success());
    assert!(files_with(&home, CANARY).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_shows_where_to_go_and_can_be_given_up() {
    let home = home("http://127.0.0.1:1");
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("/login openai\r");
    pty.wait_text("Log in to OpenAI");
    pty.keys("\x1b[B\r");
    let rows = pty.wait_text("Open this address in your browser:");
    assert!(
        rows.iter().any(|row| row.contains("https://auth.openai.com/api/accounts/authorize?")),
        "{rows:?}"
    );
    pty.keys("\x1b[200~http://127.0.0.1:1455/auth/callback?code=c&state=wrong\x1b[201~\r");
    pty.wait_text("belongs to another sign-in");
    pty.keys("\x1b");
    pty.wait_text("The sign-in was cancelled.");
    pty.wait_idle();
    pty.keys("/logout\r");
    pty.wait_text("No key or account is saved.");
    pty.keys("\x04");
    assert!(pty.end().0.success());
    assert!(!home.agent().join("auth.json").exists());
}

fn pi(home: &TestHome, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_DEMO_INSTANT", "1");
    command.current_dir(home.project()).stdin(Stdio::null()).args(args);
    command
}

fn with_input(mut command: Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that fails first does not read it.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_key_can_be_piped_in_listed_and_forgotten() {
    let home = home("http://127.0.0.1:1");
    let stored = with_input(pi(&home, &["auth", "login", "groq"]), &format!("\u{feff} {CANARY}\u{200b}\r\n"));
    assert!(stored.status.success(), "{}", text(&stored.stderr));
    let path = home.agent().join("auth.json");
    assert_eq!(text(&stored.stdout), "Saved the key for groq in ~/.pi/agent/auth.json.\n");
    assert_eq!(auth(&home)["groq"]["key"], CANARY);
    assert_private(&path);

    let status = pi(&home, &["auth", "status"]).env("XAI_API_KEY", CANARY).output().unwrap();
    let table = text(&status.stdout);
    let rows: Vec<&str> = table.lines().take(4).collect();
    let expected = [
        "provider                       key                 token ends",
        "groq                           key in auth.json",
        "xai                            key in XAI_API_KEY",
        "anthropic                      no key",
    ];
    assert_eq!(rows, expected);
    assert!(!table.contains(CANARY));
    let status = pi(&home, &["auth", "status", "groq", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(
        shown,
        json!([{"provider": "groq", "name": "Groq", "source": "auth.json", "variable": null, "stored": true, "expires": null}])
    );

    let forgotten = pi(&home, &["auth", "logout", "groq"]).output().unwrap();
    assert_eq!(text(&forgotten.stdout), "Removed the credentials of groq.\n");
    assert_eq!(auth(&home), json!({}));
}

#[test]
fn what_goes_wrong_is_a_line_and_an_exit_code() {
    let check = |args: &[&str], input: &str, code: i32, expected: &str| {
        let home = home("http://127.0.0.1:1");
        let output = with_input(pi(&home, args), input);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
        assert!(!home.agent().join("auth.json").exists());
    };
    check(&["auth", "login", "groq"], " \n", 1, "pi: no key entered; nothing was saved");
    check(
        &["auth", "login", "groq"],
        "sk\u{2013}1\n",
        1,
        "the key contains an invalid character at position 3 (U+2013)",
    );
    check(&["auth", "login", "acme"], "k", 1, "pi: there is no provider \"acme\"; choose one of anthropic, ");
    check(&["auth", "login", "groq", "--with", "browser"], "", 2, "groq does not support this way to log in");
    check(&["auth", "logout", "groq"], "", 0, "pi: no key or account is saved for groq");
    check(&["auth", "check"], "", 2, "--provider");
    check(&["auth", "print-api-key", "--provider", "groq"], "", 1, "pi: no key for groq; set GROQ_API_KEY");
    check(&["auth", "print-api-key", "--provider", "acme"], "", 1, "there is no provider \"acme\"");
    let token = ["auth", "print-bearer-token", "--provider", "groq", "--min-expiry", "soon"];
    check(&token, "", 2, "expected a time such as 30m; the units are ms, s, m and h");
    check(&["auth", "status", "acme"], "", 1, "there is no provider \"acme\"");
    check(&["auth", "frobnicate"], "", 2, "unrecognized subcommand");
    check(&["auth"], "", 2, "Usage: pi auth <COMMAND>");
}

#[test]
fn scripts_can_ask_whether_a_provider_is_ready_and_print_its_key() {
    let home = home("http://127.0.0.1:1");
    // Beginnings of their times: 2001 and 2096.
    let accounts = json!({
        "openai-codex": {"type": "oauth", "access": "codex-token", "refresh": "r", "expires": 4_000_000_000_000_u64},
        "xai": {"type": "oauth", "access": "old-token", "refresh": "r", "expires": 1_000_000_000_000_u64},
    });
    fs::write(home.agent().join("auth.json"), accounts.to_string()).unwrap();
    let check = |args: &[&str], code: i32, stdout: &str| {
        let words = [&["auth"], args].concat();
        let output = pi(&home, &words).env("GROQ_API_KEY", CANARY).output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stdout).trim_end()),
            (Some(code), stdout),
            "{words:?}"
        );
        let error = text(&output.stderr);
        assert!(!error.contains(CANARY) && error.is_empty() == (code == 0), "{words:?}: {error}");
    };
    check(&["check", "--provider", "groq"], 0, "ready");
    check(
        &["check", "--provider", "groq", "--json"],
        0,
        r#"{"status":"ready","provider":"groq","authType":"api_key"}"#,
    );
    check(
        &["check", "--model", "openai-codex/gpt-5.6-sol", "--json"],
        0,
        r#"{"status":"ready","provider":"openai-codex","authType":"oauth"}"#,
    );
    check(
        &["check", "--provider", "anthropic", "--json"],
        1,
        r#"{"status":"not_ready","provider":"anthropic","reason":"credentials_not_configured"}"#,
    );
    check(
        &["check", "--provider", "acme", "--json"],
        2,
        r#"{"status":"invalid","provider":"acme","reason":"provider_not_found"}"#,
    );
    check(&["check", "--provider", "xai", "--no-refresh"], 2, "invalid");
    check(&["print-api-key", "--provider", "groq"], 0, CANARY);
    check(&["print-bearer-token", "--provider", "openai-codex", "--min-expiry", "30m"], 0, "codex-token");
    check(&["print-api-key", "--provider", "openai-codex"], 1, "");
    check(&["print-bearer-token", "--provider", "groq"], 1, "");
}

#[test]
fn a_broken_file_is_named_and_left_alone() {
    let home = home("http://127.0.0.1:1");
    let path = home.agent().join("auth.json");
    fs::write(&path, "{\n oops").unwrap();
    for args in
        [&["auth", "login", "groq"][..], &["auth", "logout", "groq"], &["auth", "status"], &["-p", "hi"]]
    {
        let output = with_input(pi(&home, args), CANARY);
        let error = text(&output.stderr);
        assert!(error.contains("auth.json") && error.contains("line 2"), "{args:?}: {error}");
        assert!(!error.contains(CANARY));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n oops");
    }
}

#[test]
fn a_key_typed_in_the_shell_is_not_echoed() {
    let home = home("http://127.0.0.1:1");
    let pty = Pty::start(&home, SIZE, &["auth", "login", "groq"]);
    pty.wait_text("Key for groq (not shown):");
    pty.keys(&format!("{CANARY}x\x7f\r"));
    let (status, everything, log) = pty.end();
    assert!(status.success(), "{everything:?}");
    assert!(everything.iter().any(|row| row.contains("Saved the key for")), "{everything:?}");
    assert!(!contains(&log, "canary"), "{everything:?}");
    assert_eq!(auth(&home)["groq"]["key"], CANARY);

    let pty = Pty::start(&home, SIZE, &["auth", "login", "xai"]);
    pty.wait_text("Key for xai (not shown):");
    pty.keys("half a key\x03");
    let (status, everything, _) = pty.end();
    assert!(!status.success());
    assert!(everything.iter().any(|row| row.contains("no key entered")), "{everything:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_request_uses_a_key_that_changed_during_the_run() {
    let home = home("");
    let path = home.agent().join("auth.json");
    let change = json!({"command": format!("sed -i.bak s/first/second/ '{}'", path.display())});
    let replies = [Reply::sse(chat::calls(&[("bash", change)])), Reply::sse(chat::text("Done."))];
    let server = SseServer::start(replies).await;
    let models = json!({"providers": {"groq": {"baseUrl": server.url()}}});
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    fs::write(&path, json!({"groq": {"type": "api_key", "key": "first"}}).to_string()).unwrap();
    let mut command = pi(&home, &["-p", "change the key"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(text(&output.stdout), "Done.\n", "{}", text(&output.stderr));
    let keys: Vec<String> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Bearer first", "Bearer second"]);
}
