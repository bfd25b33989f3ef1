//! Print mode as others run it: standard output, exit codes, bad input.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::chat;
use crate::support::lifeline::Lifeline;
use crate::support::pty::TestHome;
use crate::support::sse_server::{Reply, SseServer};

/// pi in the user's project, with nothing else in its environment.
fn pi(home: &TestHome) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.temp())
        .env("PATH", "/usr/bin:/bin")
        .env("PI_DEMO_INSTANT", "1");
    command.env("PI_LOCAL_SERVERS", "none");
    command.current_dir(home.project()).stdin(Stdio::null());
    command
}

/// Runs it off the server's threads.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_is_all_there_is_on_standard_output() {
    let call = chat::calls(&[("bash", json!({"command": "echo from the tool"}))]);
    let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("Done."))]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "do it"]);
    let output = output(command).await;
    assert_eq!(text(&output.stdout), "Done.\n");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let second = &server.requests()[1].body["messages"];
    let last = second.as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["content"]), (&json!("tool"), &json!("from the tool\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_does_not_reach_the_terminal_as_it_is() {
    let said = json!({"error": {"message": "no\u{1b}[2J\u{1b}]0;owned\u{7} model\u{9b}31m\u{8} here"}});
    let server = SseServer::start([Reply::status(400, &[], &said.to_string())]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = output(command).await;
    let error = text(&output.stderr);
    assert!(error.contains("no model here"), "{error:?}");
    assert!(error.chars().all(|c| c == '\n' || !c.is_control()), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_is_asked_without_a_proxy() {
    let server = SseServer::start([Reply::sse(chat::text("ok"))]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    let proxy = "http://127.0.0.1:1";
    command.args(["-p", "hello"]).env("HTTP_PROXY", proxy).env("http_proxy", proxy).env("ALL_PROXY", proxy);
    let output = output(command).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("ok\n".to_owned(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn piped_text_and_files_become_the_prompt() {
    let server = SseServer::start([Reply::sse(chat::text("ok"))]).await;
    let home = TestHome::with_server(server.url());
    fs::write(home.project().join("a.txt"), "alpha\n").unwrap();
    let mut command = pi(&home);
    command.args(["-p", "@a.txt", "what is this?"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"piped\n").unwrap();
        child.wait_with_output().unwrap()
    });
    assert_eq!(text(&output.await.unwrap().stdout), "ok\n");
    let messages = &server.requests()[0].body["messages"];
    let said = text_of(messages.as_array().unwrap().last().unwrap());
    let path = home.project().join("a.txt");
    assert_eq!(said, format!("piped\n<file name=\"{}\">\nalpha\n\n</file>\nwhat is this?", path.display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_files_are_noted_where_the_model_gets_less_than_they_have() {
    let server = SseServer::start([Reply::sse(chat::text("ok"))]).await;
    let home = TestHome::with_server(server.url());
    let path = |name: &str| home.project().join(name);
    fs::write(path("latin1.txt"), b"caf\xe9").unwrap();
    fs::write(path("empty.txt"), "").unwrap();
    fs::write(path("資料\u{3000}一覧.md"), "wide").unwrap();
    let mut command = pi(&home);
    command.args(["-p", "@latin1.txt", "@empty.txt", "@資料\u{3000}一覧.md", "explain"]);
    let output = output(command).await;
    assert_eq!(text(&output.stdout), "ok\n");
    let problem = "not valid UTF-8: byte 3 (0xe9, line 1) and maybe others are shown as U+FFFD; writing the \
                   text back would destroy them";
    let (latin1, empty) = (path("latin1.txt"), path("empty.txt"));
    assert_eq!(
        text(&output.stderr),
        format!(
            "pi: the attached file {} is {problem}\npi: the attached file {} is empty\n",
            latin1.display(),
            empty.display()
        )
    );
    let messages = &server.requests()[0].body["messages"];
    let said = text_of(messages.as_array().unwrap().last().unwrap());
    let expected = format!(
        "<file name=\"{}\">\ncaf\u{fffd}\n[This file is {problem}.]\n</file>\n\
         <file name=\"{}\">[The file is empty.]</file>\n\
         <file name=\"{}\">\nwide\n</file>\nexplain",
        latin1.display(),
        empty.display(),
        path("資料\u{3000}一覧.md").display()
    );
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_without_end_is_refused_before_anything_is_sent() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "@/dev/zero", "explain"]);
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot attach /dev/zero"), "{output:?}");
    assert!(server.requests().is_empty());
}

/// The system sends SIGXFSZ for a write beyond the limit.
#[tokio::test(flavor = "multi_thread")]
async fn answer_arrives_although_no_file_may_grow() {
    for mode in ["text", "json"] {
        let server = SseServer::start([Reply::sse(chat::text("ok"))]).await;
        let home = TestHome::with_server(server.url());
        let mut command = Command::new("sh");
        let of_pi = pi(&home);
        command.env_clear().envs(of_pi.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""]).arg(of_pi.get_program());
        command.args(["--mode", mode, "-p", "hello"]).current_dir(home.project()).stdin(Stdio::null());
        let output = output(command).await;
        assert!(output.status.code().is_some(), "{mode}: {output:?}");
        assert!(text(&output.stdout).contains("ok"), "{mode}: {output:?}");
    }
}

fn text_of(message: &serde_json::Value) -> String {
    match &message["content"] {
        serde_json::Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
    }
}

/// Has the model of `server` take pictures.
fn reads_images(home: &TestHome, server: &SseServer) {
    let models = json!({"providers": {"local": {
        "baseUrl": server.url(), "api": "openai-completions",
        "models": [{"id": "m-1", "input": ["text", "image"]}],
    }}});
    fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_attached_as_one() {
    let server = SseServer::start([Reply::sse(chat::text("a dot"))]).await;
    let home = TestHome::with_server(server.url());
    reads_images(&home, &server);
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(2, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    fs::write(home.project().join("dot.png"), png.into_inner()).unwrap();
    let mut command = pi(&home);
    command.args(["-p", "@dot.png", "what is this?"]);
    assert_eq!(text(&output(command).await.stdout), "a dot\n");
    let request = &server.requests()[0].body;
    let content = &request["messages"].as_array().unwrap().last().unwrap()["content"];
    assert!(
        content[1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,"),
        "{content}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_picture_is_named_and_spoils_nothing() {
    let server = SseServer::start([Reply::sse(chat::text("no picture")), Reply::sse(chat::text("on"))]).await;
    let home = TestHome::with_server(server.url());
    reads_images(&home, &server);
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(9, 9).write_to(&mut png, image::ImageFormat::Png).unwrap();
    fs::write(home.project().join("cut.png"), &png.into_inner()[..40]).unwrap();
    fs::write(home.project().join("empty.png"), "").unwrap();
    for args in [vec!["-p", "@cut.png", "@empty.png", "what is this?"], vec!["-pc", "go on"]] {
        let mut command = pi(&home);
        command.args(args);
        assert!(output(command).await.status.success());
    }
    for request in server.requests() {
        let body = request.body["messages"].to_string();
        assert!(!body.contains("image_url"), "{body}");
        for reason in ["could not be converted to a supported inline image format", "the file is empty"] {
            assert!(body.contains(&format!("[Image omitted: {reason}.]</file>")), "{body}");
        }
    }
}

fn send(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

/// Waits off the server's threads.
async fn ended(mut child: std::process::Child) -> std::process::ExitStatus {
    tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_signal_ends_it_and_saves_what_there_is() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let call = chat::calls(&[("bash", json!({"command": "exec 3> life; echo up >&3; sleep 1000"}))]);
        let server = SseServer::start([Reply::sse(call)]).await;
        let home = TestHome::with_server(server.url());
        let life = Lifeline::new(home.project().join("life"));
        let child = pi(&home).args(["-p", "go"]).stderr(Stdio::null()).spawn().unwrap();
        life.line().await;
        send(&child, signal);
        assert_eq!(ended(child).await.code(), Some(code));
        assert!(home.entries().iter().any(|entry| entry["message"]["role"] == "toolResult"), "{signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_ends_what_the_first_could_not() {
    // More than a pipe buffers without a reader.
    let server = SseServer::start([Reply::sse(chat::text(&"x".repeat(300_000)))]).await;
    let home = TestHome::with_server(server.url());
    let mut child = pi(&home).args(["-p", "go"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut unread = child.stdout.take().unwrap();
    // What is left is still more than a pipe holds.
    let unread = tokio::task::spawn_blocking(move || {
        unread.read_exact(&mut vec![0; 100_000]).unwrap();
        unread
    });
    let unread = unread.await.unwrap();
    send(&child, Signal::TERM);
    send(&child, Signal::INT);
    // The other one would be the code after the time limit.
    let code = ended(child).await.code();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    drop(unread);
}

#[tokio::test(flavor = "multi_thread")]
async fn its_commands_die_with_it_when_it_is_killed() {
    let command = "exec 3> life; sleep 1000 & set -m; sleep 1000 & echo up >&3; sleep 1000";
    let call = chat::calls(&[("bash", json!({"command": command}))]);
    let server = SseServer::start([Reply::sse(call)]).await;
    let home = TestHome::with_server(server.url());
    let life = Lifeline::new(home.project().join("life"));
    let child = pi(&home).args(["-p", "go"]).stderr(Stdio::null()).spawn().unwrap();
    life.line().await;
    assert!(!life.has_ended());
    send(&child, Signal::KILL);
    ended(child).await;
    life.ended().await;
}

#[test]
fn a_link_out_of_the_project_is_named_and_read_once_it_is_trusted() {
    let home = TestHome::new();
    fs::write(home.home().join("private"), "the-secret-word").unwrap();
    std::os::unix::fs::symlink(home.home().join("private"), home.project().join("AGENTS.md")).unwrap();
    let prompt = |args: &[&str]| {
        let output = pi(&home).args(["-p", "hello"]).args(args).output().unwrap();
        assert!(output.status.success());
        let session = fs::read_to_string(home.sessions().last().unwrap()).unwrap();
        (text(&output.stderr), session)
    };
    let (stderr, session) = prompt(&["--model", "demo/pi"]);
    let notice = "pi: AGENTS.md, which links to ~/private, is not loaded because this folder";
    assert!(stderr.contains(notice), "{stderr}");
    assert!(!session.contains("the-secret-word"));
    let (stderr, session) = prompt(&["--model", "demo/pi", "--approve"]);
    assert!(!stderr.contains("AGENTS.md"), "{stderr}");
    assert!(session.contains("the-secret-word"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_answer_is_an_exit_code_and_a_reason() {
    let body = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let server = SseServer::start([Reply::status(401, &[("content-type", "application/json")], body)]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = output(command).await;
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
    let reason = text(&output.stderr);
    assert!(reason.starts_with("pi: local: 401: Incorrect API key provided"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passing_failure_is_tried_again() {
    let busy =
        Reply::status(529, &[("content-type", "application/json")], r#"{"error":{"message":"Overloaded"}}"#);
    let server = SseServer::start([busy, Reply::sse(chat::text("now"))]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({"retry": {"baseDelayMs": 1}}));
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = output(command).await;
    assert_eq!(text(&output.stdout), "now\n");
    assert!(text(&output.stderr).contains("retrying in 0 s (1 of 3)"), "{}", text(&output.stderr));
    // The failed answer is in the file, hidden from the model.
    let kinds: Vec<String> =
        home.entries().iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains(&"context_edit".to_owned()), "{kinds:?}");
    assert_eq!(server.requests()[0].body["messages"], server.requests()[1].body["messages"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_where_it_ended() {
    let server = SseServer::start([Reply::sse(chat::text("one")), Reply::sse(chat::text("two"))]).await;
    let home = TestHome::with_server(server.url());
    for args in [["-p", "first"], ["-pc", "second"]] {
        let mut command = pi(&home);
        command.args(args);
        assert!(output(command).await.status.success());
    }
    let messages = server.requests()[1].body["messages"].clone();
    let said: Vec<String> = messages.as_array().unwrap().iter().skip(1).map(text_of).collect();
    assert_eq!(said, ["first", "one", "second"]);
    assert_eq!(home.sessions().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_continues_a_copy_in_the_current_directory() {
    let server = SseServer::start(["one", "two", "three"].map(|text| Reply::sse(chat::text(text)))).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "first"]);
    assert!(output(command).await.status.success());
    let [source] = home.sessions().try_into().unwrap();
    let before = fs::read(&source).unwrap();
    let elsewhere = home.project().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let id = source.file_stem().unwrap().to_str().unwrap().split_once('_').unwrap().1.to_owned();
    for (wanted, answer) in [(id, "two"), (source.display().to_string(), "three")] {
        let mut command = pi(&home);
        command.args(["-p", "--fork", &wanted, "second"]).current_dir(&elsewhere);
        let output = output(command).await;
        assert_eq!((text(&output.stdout), text(&output.stderr)), (format!("{answer}\n"), String::new()));
        let messages = server.requests().last().unwrap().body["messages"].clone();
        let said: Vec<String> = messages.as_array().unwrap().iter().skip(1).map(text_of).collect();
        assert_eq!(said, ["first", "one", "second"]);
    }
    assert_eq!(fs::read(&source).unwrap(), before);
    let copies = home.sessions().into_iter().filter(|path| *path != source);
    let headers: Vec<serde_json::Value> = copies
        .map(|path| fs::read_to_string(path).unwrap().lines().next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(headers.len(), 2);
    for header in headers {
        assert_eq!((&header["cwd"], &header["parentSession"]), (&json!(elsewhere), &json!(source)));
    }
}

/// Each line: arguments, and the start of standard error. All exit with 1 or 2.
#[test]
fn bad_input_is_answered_with_what_to_do() {
    let home = TestHome::new();
    let project = home.project();
    fs::create_dir(project.join("folder.jsonl")).unwrap();
    fs::write(project.join("notes.jsonl"), "{\"not\":\"a session\"}\n").unwrap();
    fs::write(project.join("binary"), [0_u8, 1, 2]).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["--bogus"], "error: unexpected argument '--bogus' found"),
        (&["-p", "--model", "nope-9", "hi"], "pi: no model matches \"nope-9\""),
        (
            &["-p", "--provider", "nobody", "hi"],
            "pi: unknown provider \"nobody\"; choose one of anthropic, openai",
        ),
        (&["-p", "--thinking", "hard", "hi"], "error: invalid value 'hard' for '--thinking <LEVEL>'"),
        (&["-p", "--model", "claude-opus-5-5", "hi"], "pi: no key for anthropic; set ANTHROPIC_API_KEY"),
        (&["-p", "--api-key", "k", "hi"], "pi: --api-key needs --provider or --model"),
        (&["-p"], "pi: no prompt; pass one"),
        (&[], "pi: interactive mode needs a terminal; use pi -p"),
        (&["-p", "@missing.txt", "hi"], "pi: cannot attach"),
        (&["-p", "@binary", "hi"], "pi: cannot attach"),
        (&["-p", "--session", "./notes.jsonl", "hi"], "pi: "),
        (&["-p", "--session", "./missing.jsonl", "hi"], "pi: cannot read "),
        (
            &["-p", "--session", "/missing.jsonl", "hi"],
            "pi: cannot read /missing.jsonl: the session file does not exist; check the path",
        ),
        (&["-p", "--session", "./folder.jsonl", "hi"], "pi: cannot read "),
        (&["-p", "--session", "0000", "hi"], "pi: no session id starts with \"0000\""),
        (&["-p", "--fork", "0000", "hi"], "pi: no session id starts with \"0000\""),
        (&["-p", "--fork", "./notes.jsonl", "hi"], "pi: "),
        (&["-p", "--fork", "./folder.jsonl", "hi"], "pi: cannot read "),
        (&["-p", "--fork", "a", "--continue", "hi"], "error: the argument '--fork <PATH|ID>' cannot be used"),
        (&["-p", "--tools", "hammer", "hi"], "pi: unknown tool \"hammer\"; choose from read"),
        (
            &["-p", "--tools", "read,+ls", "hi"],
            "pi: --tools either selects tools (read,bash) or changes the selection",
        ),
        (&["-p", "-xt", "bsh", "hi"], "pi: unknown tool \"bsh\"; choose from read"),
        (&["-p", "-r"], "pi: --resume needs a terminal"),
    ];
    for (args, expected) in cases {
        let output = pi(&home).args(*args).output().unwrap();
        let stderr = text(&output.stderr);
        let first = stderr.lines().find(|line| !line.contains("demo model")).unwrap_or_default();
        assert!(first.starts_with(expected), "{args:?}: {stderr}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {:?}", output.status);
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert!(stderr.matches("is a directory").count() <= 1, "{args:?}: {stderr}");
        assert!(stderr.lines().count() <= 8, "{args:?}: {stderr}");
    }
    let missing = home.home().join("missing.jsonl");
    let output = pi(&home).args(["-p", "--session"]).arg(&missing).arg("hi").output().unwrap();
    let expected = "pi: cannot read ~/missing.jsonl: the session file does not exist";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    assert!(!project.join("missing.jsonl").exists());
    let session = fs::read_to_string(project.join("notes.jsonl")).unwrap();
    assert_eq!(session, "{\"not\":\"a session\"}\n");
}

#[test]
fn an_unreachable_host_is_named() {
    // A port without a listener: bound and released.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let home = TestHome::with_server(&url).settings(&json!({"retry": {"enabled": false}}));
    let output = pi(&home).args(["-p", "hi"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("127.0.0.1") || stderr.contains("connect"), "{stderr}");
}

#[test]
fn broken_files_are_reported_and_left_alone() {
    let home = TestHome::new();
    fs::write(home.agent().join("settings.json"), "{\n  \"theme\": dark\n}").unwrap();
    fs::write(home.agent().join("models.json"), "{\"providers\": {\"x\": {\"models\": [{\"id\": \"m\"}]}}}")
        .unwrap();
    let output = pi(&home).args(["-p", "--model", "demo/pi", "who are you?"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("pi: ~/.pi/agent/settings.json: "), "{stderr}");
    assert_eq!(stderr.matches(".json: ").count(), 2, "each once: {stderr}");
    assert!(stderr.contains("settings.json: expected value at line 2 column 12"), "{stderr}");
    assert!(stderr.contains("models.json: provider \"x\": \"baseUrl\" is missing"), "{stderr}");
    assert!(text(&output.stdout).contains("demo model"));
    assert_eq!(fs::read_to_string(home.agent().join("settings.json")).unwrap(), "{\n  \"theme\": dark\n}");
}

#[test]
fn file_that_cannot_be_read_is_named_where_it_is_missed() {
    let home = TestHome::new();
    fs::write(home.agent().join("models.json"), "{bad").unwrap();
    fs::write(home.agent().join("settings.json"), "{\"theme\": \"dark\"\n \"x\": 1}").unwrap();
    let check = |args: &[&str], file: &str, code: i32| {
        let output = pi(&home).args(args).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(
            (stderr.matches(file).count(), output.status.code()),
            (1, Some(code)),
            "{args:?}: {stderr}"
        );
    };
    check(&["-p", "--model", "mine/ok", "hi"], "models.json: ", 1);
    check(&["--mode", "json", "--model", "mine/ok", "hi"], "models.json: ", 1);
    for args in [&["config", "get", "theme"][..], &["sessions"], &["usage"], &["auth", "status"]] {
        check(args, "settings.json: ", 0);
    }
    check(&["config", "set", "theme", "light"], "settings.json: ", 1);
}

#[test]
fn misspelt_template_is_refused_and_other_lines_with_a_slash_are_sent() {
    let home = TestHome::new();
    fs::create_dir_all(home.agent().join("prompts")).unwrap();
    fs::write(home.agent().join("prompts/review.md"), "Review $1.").unwrap();
    for mode in [&["-p"][..], &["--mode", "json"]] {
        let run = |prompt: &str| {
            let args = [mode, &["--model", "demo/pi", prompt]].concat();
            let output = pi(&home).args(args).output().unwrap();
            (output.status.code(), text(&output.stderr))
        };
        let (code, stderr) = run("/reveiw dev");
        assert_eq!(code, Some(4));
        assert!(
            stderr.ends_with("pi: there is no prompt template /reveiw; did you mean /review?\n"),
            "{stderr}"
        );
        for sent in ["/review dev", "/frobnicate dev", "/etc/hosts, what is in there?"] {
            assert_eq!(run(sent).0, Some(0), "{sent}");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn text_of_an_answer_with_an_unknown_end_is_printed() {
    let end = json!({"choices": [{"delta": {"content": "Part."}, "finish_reason": "bored"}]});
    let server = SseServer::start([Reply::sse(format!("data: {end}\n\ndata: [DONE]\n\n"))]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = output(command).await;
    assert_eq!((text(&output.stdout), output.status.code()), ("Part.\n".to_owned(), Some(1)));
    assert!(text(&output.stderr).contains("finish_reason: bored"), "{}", text(&output.stderr));
}

#[test]
fn output_that_cannot_be_written_is_reported_and_fails() {
    let home = TestHome::new();
    fs::write(home.project().join("input"), "{\"id\":1,\"type\":\"get_state\"}\n").unwrap();
    let commands = [
        &["-p", "--model", "demo/pi", "who are you?"][..],
        &["docs", "cli"],
        &["--list-models"],
        &["--mode", "json", "--model", "demo/pi", "who are you?"],
        &["--mode", "rpc", "--model", "demo/pi"],
        &["acp", "--model", "demo/pi"],
    ];
    for args in commands {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let input = fs::File::open(home.project().join("input")).unwrap();
        let output = pi(&home).args(args).stdin(input).stdout(full).output().unwrap();
        let stderr = text(&output.stderr);
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("pi: cannot write to standard output: No space left on device"), "{stderr}");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
    // Whoever closes a pipe has read enough.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = pi(&home).args(["docs", "cli"]).stdout(writer).output().unwrap();
    assert_eq!((text(&output.stderr), output.status.code()), (String::new(), Some(0)));
}

#[test]
fn a_session_folder_that_cannot_be_written_costs_no_answer() {
    let home = TestHome::new();
    // A file where the folder should be.
    fs::write(home.agent().join("sessions"), "").unwrap();
    let output = pi(&home)
        .args(["-p", "--model", "demo/pi", "who are you?"])
        .env("TMPDIR", home.home())
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert!(text(&output.stdout).contains("demo model"), "{stderr}");
    assert!(stderr.contains("cannot write the session file"), "{stderr}");
    assert!(!stderr.contains("cannot read"), "nothing is there: {stderr}");
    // The unsaved messages, and the location of the copy.
    let last = stderr.lines().last().unwrap();
    assert!(last.starts_with("pi: 3 messages of this session are not saved: "), "{stderr}");
    let copy = last.rsplit(" session to ~/").next().unwrap();
    let copy = home.home().join(copy);
    assert!(fs::read_to_string(copy).unwrap().contains("who are you?"));
}

#[test]
fn continue_takes_no_session_of_another_directory_in_the_same_folder() {
    let home = TestHome::new();
    // `a-b` and `a/b` share a folder of sessions.
    let (one, other) = (home.project().join("a-b"), home.project().join("a/b"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&other).unwrap();
    let ask = |cwd: &std::path::Path, args: &[&str]| {
        let output = pi(&home).args(args).current_dir(cwd).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    ask(&other, &["-p", "--model", "demo/pi", "who are you?"]);
    let [first] = home.sessions().try_into().unwrap();
    let before = fs::read_to_string(&first).unwrap();
    ask(&one, &["-p", "--model", "demo/pi", "--continue", "who are you?"]);
    assert_eq!(fs::read_to_string(&first).unwrap(), before);
    assert_eq!(home.sessions().len(), 2);
    assert_eq!(home.sessions()[0].parent(), home.sessions()[1].parent());
    ask(&other, &["-p", "--model", "demo/pi", "--continue", "who are you?"]);
    assert!(fs::read_to_string(&first).unwrap().len() > before.len());
}

#[test]
fn the_directory_of_a_session_must_exist() {
    let home = TestHome::new();
    let header = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-11-21T09:23:47.280Z","cwd":"/nowhere/at/all"}"#;
    let file = home.project().join("s.jsonl");
    fs::write(&file, format!("{header}\n")).unwrap();
    let output = pi(&home).args(["-p", "--session", "./s.jsonl", "hi"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(stderr.contains("/nowhere/at/all, no longer exists"), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_whose_name_is_no_text_has_sessions_too() {
    use std::os::unix::ffi::OsStrExt as _;

    let home = TestHome::new();
    let odd = home.project().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    for args in [["-p", "create hello.txt with hello world"], ["-cp", "create b.txt with b"]] {
        let output = pi(&home).args(["--model", "demo/pi"]).args(args).current_dir(&odd).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert!(odd.join("hello.txt").exists() && odd.join("b.txt").exists());
    assert_eq!(home.sessions().len(), 1, "continued");
}

#[test]
fn models_are_listed_and_searched() {
    let home = TestHome::new();
    let output = pi(&home).args(["--list-models", "OPUS-5"]).env("ANTHROPIC_API_KEY", "k").output().unwrap();
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    assert!(lines.next().unwrap().starts_with("model "));
    assert!(lines.next().unwrap().starts_with("anthropic/claude-opus-5"), "{stdout}");
    assert!(!stdout.contains("gpt"));
    let output = pi(&home).args(["--list-models", "no such"]).output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(1), "pi: no model contains \"no such\"\n")
    );
}

#[test]
fn the_demo_model_works_on_the_real_directory() {
    let home = TestHome::new();
    let say = |prompt: &str| {
        let output = pi(&home).args(["-p", "--no-session", "--model", "demo/pi", prompt]).output().unwrap();
        assert!(output.status.success(), "{prompt}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(say("create hello.txt with hello world").contains("`hello.txt` is written"));
    assert!(say("create hello.txt with something else").contains("I do not overwrite files"));
    let file = home.project().join("hello.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello world\n");
    assert!(say("replace hello with goodbye in hello.txt").contains("`hello` is now `goodbye`"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "goodbye world\n");
    assert!(say("read hello.txt").contains("goodbye world"));
    assert!(say("search for goodbye").contains("One line contains `goodbye`"));
    assert!(say("run `echo one; echo two`").contains("2 lines of output"));
    assert!(say("run `exit 3`").contains("Command exited with code 3"));
    assert!(say("list the files").contains("listing"));
    let overview = say("give me an overview");
    assert!(overview.contains("| bash |") && !overview.contains("failed"), "{overview}");
    assert!(overview.contains("no README here") && overview.contains("no git repository here"), "{overview}");
    assert!(say("what does this project do?").contains("There is no README here"));
    assert!(say("show me the diff").contains("not in a git repository"));
    assert!(say("run the tests").contains("I cannot tell how that is done here"));
    assert!(say("undo that").contains("I have changed nothing in this conversation"));
    assert!(say("help").contains("Try one of"));
    assert!(say("a long answer").contains("```rust"));
    assert!(say("who are you?").contains("no artificial intelligence"));
    assert!(say("asdf").contains("Try one of"));
    assert!(home.sessions().is_empty());
}

/// The first inputs of users without a key. None of them spells out a change of an
/// existing file.
const REQUESTS: &[&str] = &[
    "add a function mul to calc.py",
    "add a new dependency to Cargo.toml",
    "see README.md and write a summary",
    "write a summary of README.md",
    "write README.md",
    "create README.md",
    "create README.md with hello",
    "create a file called README.md with `hello`",
    "make README.md",
    "make a new calc.py",
    "new file calc.py",
    "write calc.py with \"print(1)\"",
    "overwrite calc.py with hello",
    "create src/main.rs with hello world",
    "create ./calc.py with hello",
    "create link.txt with hello",
    "create src with hello",
    "create src/../calc.py with hello",
    "rewrite calc.py",
    "refactor calc.py",
    "fix the bug in calc.py",
    "fix calc.py",
    "format calc.py",
    "make calc.py faster",
    "make all tests pass",
    "delete calc.py",
    "remove calc.py",
    "rm calc.py",
    "rm -rf .",
    "run rm calc.py",
    "run rm -rf src",
    "run git checkout .",
    "run git reset --hard",
    "run git clean -fdx",
    "run git diff --output=calc.py",
    "run git log --output calc.py",
    "run echo hello > calc.py",
    "run cat README.md | tee calc.py",
    "run echo `rm calc.py`",
    "run sed -i s/a/b/ calc.py",
    "execute the script",
    "run it",
    "run calc.py",
    "run the tests",
    "run all the tests",
    "test it",
    "build it",
    "build the project",
    "run `make` and fix what breaks",
    "don't run `rm calc.py`",
    "never run `rm calc.py`",
    "what happens if I run `rm calc.py`?",
    "explain `rm calc.py`",
    "move calc.py to src/calc.py",
    "rename calc.py to add.py",
    "rename add to sum in calc.py",
    "rename the function add to sum in calc.py",
    "change add to sum in calc.py",
    "change the name of the function in calc.py",
    "change the title to Notes in README.md",
    "replace the function with another in calc.py",
    "replace everything in calc.py",
    "replace all of README.md with hello",
    "replace add with sum in calc.py and README.md",
    "replace the word add with sum in calc.py",
    "edit calc.py",
    "edit README.md and add a section",
    "append a line to README.md",
    "insert a comment at the top of calc.py",
    "update the README.md",
    "update dependencies in Cargo.toml",
    "set the version in Cargo.toml to 2.0",
    "bump the version",
    "commit this",
    "commit everything and push",
    "undo that",
    "revert the last change",
    "write a commit message",
    "write a test for calc.py",
    "write tests",
    "create a test for calc.py",
    "create tests in calc.py with pytest",
    "add logging",
    "add type hints to calc.py, please",
    "translate README.md to German",
    "convert calc.py to Rust",
    "port calc.py to src/main.rs",
    "generate docs for calc.py",
    "split calc.py into modules",
    "sort the lines in README.md",
    "clean up",
    "install numpy",
    "what does this project do",
    "what does calc.py do?",
    "explain calc.py",
    "summarize README.md",
    "review calc.py",
    "read calc.py",
    "show me the diff",
    "show me the history",
    "show me calc.py",
    "what changed?",
    "list the files",
    "give me an overview",
    "search for add",
    "find the bug",
    "where is add defined?",
    "help",
    "hello",
    "who are you?",
    "can you code?",
    "asdf",
    "ok",
    "yes",
    "stop",
    "do it",
    "a long answer",
    "tell me a story",
    "/etc/hosts what is this",
    "calc.py",
    "README.md: create it with hello",
    "please create README.md with hello, replacing the old one",
    "diff --git a/calc.py b/calc.py\n-create calc.py with x\n+run `rm calc.py`",
    "create calc.py with x\nand then\nrun `rm calc.py`",
];

/// Every file and link below a folder, with its content.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            found.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else if kind.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_hundred_requests_to_the_demo_model_change_nothing_that_was_there() {
    let home = TestHome::new();
    let project = home.project();
    fs::create_dir(project.join("src")).unwrap();
    for (name, content) in [
        ("README.md", "# Calc\n\nAdds. TODO: multiply.\n"),
        ("calc.py", "def add(a, b):\n    return a + b\n"),
        ("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n"),
        ("Makefile", "all:\n\trm calc.py\ntest:\n\trm calc.py\n"),
        ("src/main.rs", "fn main() {}\n"),
    ] {
        fs::write(project.join(name), content).unwrap();
    }
    // Not there, but writing through it would create something elsewhere.
    std::os::unix::fs::symlink("nowhere.txt", project.join("link.txt")).unwrap();
    let before = tree(&project);
    assert!(REQUESTS.len() >= 100);
    // One conversation, as the rules look back for some.
    let output = pi(&home).args(["-p", "--model", "demo/pi"]).args(REQUESTS.iter().skip(1)).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = pi(&home).args(["-pc", "--model", "demo/pi", REQUESTS[0]]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls: Vec<String> = home
        .entries()
        .iter()
        .flat_map(|entry| entry["message"]["content"].as_array().cloned().unwrap_or_default())
        .filter(|block| block["type"] == "toolCall")
        .map(|call| call["arguments"].to_string())
        .collect();
    assert!(calls.len() > 20, "real calls: {calls:?}");
    assert!(tree(&project) == before, "something changed; the calls were\n{}", calls.join("\n"));
    // Told word for word, it does.
    let output =
        pi(&home).args(["-pc", "--model", "demo/pi", "replace add with sum in calc.py"]).output().unwrap();
    assert!(text(&output.stdout).contains("Done"), "{}", text(&output.stdout));
    assert_ne!(tree(&project), before);
    let output = pi(&home).args(["-pc", "--model", "demo/pi", "undo that"]).output().unwrap();
    assert!(text(&output.stdout).contains("replace `sum` with `add` in calc.py"), "{}", text(&output.stdout));
}

#[test]
fn print_mode_without_a_key_sends_nothing_and_says_what_to_do() {
    let home = TestHome::new();
    fs::write(home.project().join("notes.txt"), "kept\n").unwrap();
    for args in [
        &["-p", "create notes.txt with x"][..],
        &["-p", "--models", "demo/*", "hello"],
        &["-p", "-c", "hello"],
    ] {
        let output = pi(&home).args(args).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{args:?}");
        assert!(
            stderr.contains("ANTHROPIC_API_KEY") && stderr.contains("--model demo/pi"),
            "{args:?}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    }
    assert_eq!(fs::read_to_string(home.project().join("notes.txt")).unwrap(), "kept\n");
    assert!(home.sessions().is_empty(), "no prompt was sent");
    // A session with the demo model is no reason to go on with it.
    assert!(pi(&home).args(["-p", "--model", "demo/pi", "hello"]).output().unwrap().status.success());
    assert_eq!(pi(&home).args(["-pc", "hello"]).output().unwrap().status.code(), Some(1));
}

#[test]
fn wrong_flags_are_reported_before_problems_of_files() {
    let home = TestHome::new();
    for n in 0..8 {
        let folder = home.agent().join(format!("skills/x{n}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\n[\n---\n").unwrap();
    }
    let args = ["-p", "--model", "demo/pi", "--skill", "gone", "--prompt-template", "lost.md", "hello"];
    let stderr = text(&pi(&home).args(args).output().unwrap().stderr);
    let at = |part: &str| stderr.find(part).unwrap_or_else(|| panic!("{part} is not in {stderr}"));
    assert!(at("/gone does not exist") < at("/lost.md does not exist"), "{stderr}");
    assert!(at("/lost.md does not exist") < at("/skills/x0/SKILL.md"), "{stderr}");
    assert!(stderr.contains("more problems with settings, skills or prompt templates"), "{stderr}");
}

#[test]
fn words_that_look_like_commands_are_answered_by_pi_and_not_by_a_model() {
    let home = TestHome::new();
    let run = |args: &[&str]| {
        let output = pi(&home).args(args).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for args in [&["help"][..], &["--help"], &["help", "auth"]] {
        let (code, stdout, _) = run(args);
        assert!(code == Some(0) && stdout.contains("Usage: pi"), "{args:?}: {stdout}");
    }
    for (args, expected_code, expected) in [
        (&["update"][..], 2, "pi: pi update is not supported yet"),
        (&["install", "-l", "npm:x"], 2, "pi: pi install is not supported yet: this version has no packages"),
        (&["mcp", "list"], 2, "pi: pi mcp is not supported yet: this version has no MCP servers"),
        (&["sesions", "--json"], 2, "pi: pi has no command \"sesions\"; did you mean pi sessions?"),
        (&["exprot"], 2, "pi: pi has no command \"exprot\"; did you mean pi export?"),
        (&["-p", "/compact"], 2, "pi: /compact is a command of the interactive mode"),
        (&["-a", "config", "list"], 2, "pi: a command comes first, and its flags follow it: pi config;"),
        (&["--mode", "rpc", "hello"], 2, "pi: --mode rpc takes no messages (\"hello\")"),
        (&["-p", "--tools", "nope", "hi"], 2, "pi: unknown tool"),
        (&["-p", "--tools", "read,+bash", "hi"], 2, "pi: --tools either selects tools"),
        (&["-p", "--api-key", "k", "hi"], 2, "pi: --api-key needs --provider or --model"),
        (&["-p"], 2, "pi: no prompt; "),
        (&["-p", "--resume", "hi"], 2, "pi: --resume needs a terminal"),
        (&["--slim-events", "--mode", "text", "hi"], 2, "pi: --slim-events needs --mode json or rpc"),
        (&["sessions", "--search", "re:("], 2, "pi: "),
        (&["export", "x", "a.odt"], 2, "pi: the name of the file does not tell the format"),
        (&["auth", "login", "groq", "--with", "browser"], 2, "pi: groq does not support this way"),
        (&["acp", "--resume"], 2, "pi: --resume does not go with pi acp"),
        (&["--export", "x"], 1, "pi: no session id starts with \"x\""),
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (Some(expected_code), ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with(expected), "{args:?}: {stderr}");
    }
    let (code, stdout, stderr) =
        run(&["-p", "--offline", "--model", "demo/pi", "--tui-mode", "regular", "hello"]);
    assert!(code == Some(0) && stdout.contains("demo model"), "{stderr}");
    assert!(stderr.contains("pi: --offline has no effect: ") && !stderr.contains("--tui-mode"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_followed_by_where_it_comes_from() {
    let body = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let refusal = || Reply::status(401, &[("content-type", "application/json")], body);
    let server = SseServer::start([refusal(), refusal(), refusal(), refusal(), refusal()]).await;
    let home = TestHome::new();
    let models = |key: &str| {
        let models = json!({"providers": {"local": {
            "baseUrl": server.url(), "api": "openai-completions", "apiKey": key, "models": [{"id": "m-1"}],
        }, "groq": {"baseUrl": server.url()}}});
        fs::write(home.agent().join("models.json"), models.to_string()).unwrap();
    };
    let asked = async |args: &[&str]| {
        let mut command = pi(&home);
        command.args(["-p", "hello"]).args(args).env("GROQ_API_KEY", "secret").env("MINE", "secret");
        let stderr = text(&output(command).await.stderr);
        assert!(stderr.contains("401: Incorrect API key") && !stderr.contains("secret"), "{stderr}");
        stderr.lines().nth(1).unwrap_or_default().to_owned()
    };
    models("secret");
    let model = ["--model", "local/m-1"];
    assert_eq!(asked(&model).await, "The key is stored as apiKey of local in models.json. Change it there.");
    models("$MINE");
    assert!(
        asked(&model).await.starts_with("The key comes from the environment variable MINE, set as apiKey")
    );
    models("!echo secret");
    assert!(asked(&model).await.starts_with("The key is printed by a command, set as apiKey of local"));
    assert_eq!(asked(&["--model", "local/m-1", "--api-key", "x"]).await, "The key comes from --api-key.");
    let of_groq = asked(&["--model", "groq/openai/gpt-oss-120b"]).await;
    assert!(of_groq.starts_with("The key comes from the environment variable GROQ_API_KEY. "), "{of_groq}");
    assert!(of_groq.contains("/login groq"), "{of_groq}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_failure_again_is_not_repeated_word_for_word() {
    let busy = || {
        let body = r#"{"error":{"message":"Overloaded"}}"#;
        Reply::status(529, &[("content-type", "application/json")], body)
    };
    let server = SseServer::start([busy(), busy(), busy(), Reply::sse(chat::text("now"))]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({"retry": {"baseDelayMs": 1}}));
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let stderr = text(&output(command).await.stderr);
    assert_eq!(stderr.matches("Overloaded").count(), 1, "{stderr}");
    assert_eq!(stderr.matches("retrying in 0 s").count(), 3, "{stderr}");
}

#[test]
fn a_section_of_the_settings_that_is_no_object_is_named() {
    let home = TestHome::new().settings(&json!({"retry": 3}));
    let output = pi(&home).args(["-p", "--model", "demo/pi", "hello"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(stderr.contains("~/.pi/agent/settings.json:1: \"retry\" must be an object"), "{stderr}");
}

#[test]
fn the_demo_model_says_what_could_be_asked_instead() {
    let home = TestHome::new();
    let said = |key: &str, args: &[&str]| {
        let mut command = pi(&home);
        let output = command.args(["-p", "--no-session", "hello"]).args(args).env(key, "k").output().unwrap();
        text(&output.stderr)
    };
    assert!(said("NO_KEY", &[]).contains("set a key such as ANTHROPIC_API_KEY"));
    // Its models are only known once it was asked, so none is chosen.
    assert!(said("TOGETHER_API_KEY", &[]).contains("together is set up: list its models"));
    // Chosen although there is something else.
    let chosen = said("ANTHROPIC_API_KEY", &["--model", "demo/pi"]);
    assert!(chosen.contains("anthropic is set up") && !chosen.contains("set a key"), "{chosen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_pi_or_the_model_declines_has_an_exit_code_of_its_own() {
    let declined = [chat::delta("I cannot"), chat::end("content_filter")].concat();
    let server = SseServer::start([Reply::sse(declined)]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "do something bad"]);
    let by_model = output(command).await;
    assert_eq!(by_model.status.code(), Some(4), "{}", text(&by_model.stderr));
    let mut command = pi(&home);
    command.args(["-p", "/skill:missing go"]);
    let by_pi = output(command).await;
    assert_eq!(by_pi.status.code(), Some(4), "{}", text(&by_pi.stderr));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_through_the_proxy_of_the_settings() {
    let proxy = SseServer::start([Reply::sse(chat::text("Through."))]).await;
    let home =
        TestHome::with_server("http://model.invalid/v1").settings(&json!({ "httpProxy": proxy.url() }));
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = output(command).await;
    assert_eq!(text(&output.stdout), "Through.\n", "{}", text(&output.stderr));
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/chat/completions");

    let direct = SseServer::start([Reply::sse(chat::text("Direct."))]).await;
    let home = TestHome::with_server(direct.url()).settings(&json!({ "httpProxy": "::" }));
    let mut command = pi(&home);
    command.args(["-p", "hello"]);
    let output = self::output(command).await;
    assert_eq!(text(&output.stdout), "Direct.\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("httpProxy is ignored: \"::\" is no address of a proxy"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_id_of_a_script_starts_a_session_and_continues_it() {
    let replies = ["One.", "Two.", "Three."].map(|answer| Reply::sse(chat::text(answer)));
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let run = async |id: &str| {
        let mut command = pi(&home);
        command.args(["--session-id", id, "-p", "hello"]);
        let output = self::output(command).await;
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, answer, stderr) = run("job-7").await;
    assert_eq!((code, answer.as_str()), (Some(0), "One.\n"), "{stderr}");
    assert!(stderr.contains("there is no session job-7 in this directory; starting it"), "{stderr}");
    let (_, answer, stderr) = run("job-7").await;
    assert_eq!((answer.as_str(), stderr.as_str()), ("Two.\n", ""));
    assert_eq!(server.requests()[1].body["messages"].as_array().unwrap().len(), 4);
    // The beginning of an id is another id.
    let (_, _, stderr) = run("job").await;
    assert!(stderr.contains("there is no session job in"), "{stderr}");
    let (code, _, stderr) = run("../job").await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--session-id: \"../job\" cannot be the id of a session"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn export_flag_of_the_original_writes_a_page() {
    let server = SseServer::start([Reply::sse(chat::text("Exported."))]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["--session-id", "page", "-p", "hello"]);
    assert!(output(command).await.status.success());
    for (words, file) in [(&["page"][..], "pi-session-page.html"), (&["page", "own.html"], "own.html")] {
        let mut command = pi(&home);
        command.arg("--export").args(words);
        let output = output(command).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(fs::read_to_string(home.project().join(file)).unwrap().contains("Exported."));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_selected_and_excluded() {
    let check = async |args: &[&str], settings: serde_json::Value, expected: &[&str]| {
        let server = SseServer::start([Reply::sse(chat::text("Done."))]).await;
        let home = TestHome::with_server(server.url()).settings(&settings);
        let mut command = pi(&home);
        command.args(args).args(["-p", "hello"]);
        let output = output(command).await;
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        let request = &server.requests()[0].body;
        let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{args:?}");
    };
    check(&["-xt", "bash,write"], json!({}), &["read", "edit"]).await;
    check(&["--tools", "+ls,-bash"], json!({}), &["read", "edit", "write", "ls"]).await;
    check(&["--tools", "read,grep", "--exclude-tools", "grep"], json!({}), &["read"]).await;
    let of_the_original = json!({ "defaultTools": ["+grep", "-edit", "+codemode"] });
    check(&[], of_the_original, &["read", "bash", "write", "grep"]).await;
    check(&[], json!({ "defaultTools": ["raed", "bash"] }), &["bash"]).await;
    check(
        &["--tools", "+ls"],
        json!({ "defaultTools": ["-bsah", "-bash"] }),
        &["read", "edit", "write", "ls"],
    )
    .await;
}

#[test]
fn unknown_tools_of_settings_are_reported_and_those_of_flags_are_errors() {
    let home = TestHome::new().settings(&json!({ "defaultTools": ["raed", "bash"] }));
    let run = |args: &[&str]| {
        let output = pi(&home).args(args).args(["--model", "demo/pi", "-p", "hi"]).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, stderr) = run(&[]);
    let expected = "pi: ~/.pi/agent/settings.json:1: defaultTools: unknown tool \"raed\" is ignored; \
                    choose from read, bash, edit, write, grep, find, ls\n";
    assert!(code == Some(0) && stderr.contains(expected), "{stderr}");
    assert_eq!(stderr.matches("raed").count(), 1, "{stderr}");
    let doctor = pi(&home).arg("doctor").output().unwrap();
    let doctor = text(&doctor.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains("defaultTools: unknown tool \"raed\" is ignored;"), "{doctor}");
    let (code, stderr) = run(&["--tools", "+hammer"]);
    assert!(code == Some(2) && stderr.contains("unknown tool \"hammer\""), "{stderr}");
    let (code, stderr) = run(&["--tools", "read"]);
    assert!(code == Some(0) && !stderr.contains("raed"), "{stderr}");
}

#[test]
fn certificates_of_the_program_serve_where_the_system_has_none() {
    let home = TestHome::with_server("https://127.0.0.1:1/v1");
    let settings = json!({ "retry": { "enabled": false, "provider": { "maxRetries": 0 } } });
    fs::write(home.agent().join("settings.json"), settings.to_string()).unwrap();
    let mut command = pi(&home);
    command.env("SSL_CERT_FILE", "/missing").env("SSL_CERT_DIR", "/missing").args(["-p", "hello"]);
    let stderr = text(&command.output().unwrap().stderr);
    assert!(stderr.contains("127.0.0.1:1") && !stderr.contains("cannot be built"), "{stderr}");
}

// Endings without an answer.

const EMPTY: &str = "pi: The model returned an empty answer.\n";

fn thinking_only() -> String {
    [chat::chunk(&json!({"reasoning_content": "hm"}), None), chat::end("stop")].concat()
}

/// A call whose arguments the output limit cut off.
fn cut_call() -> String {
    let function = json!({"name": "write", "arguments": "{\"path\": \"f\", \"content\": \"abc"});
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
    [chat::chunk(&call, None), chat::end("length")].concat()
}

/// Runs it with these answers; returns the exit code, standard output, standard error and the number of requests.
async fn ran_with(args: &[&str], answers: &[String]) -> (Option<i32>, String, String, usize) {
    let server = SseServer::start(answers.iter().map(Reply::sse)).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(args);
    let output = output(command).await;
    (output.status.code(), text(&output.stdout), text(&output.stderr), server.requests().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_answer_is_requested_once_more_and_then_has_an_exit_code() {
    let call = chat::calls(&[("bash", json!({"command": "true"}))]);
    let blank = || chat::text(" \n");
    for (answers, sentence) in [
        (vec![chat::end("stop"), chat::end("stop")], EMPTY),
        (vec![blank(), blank()], EMPTY),
        (
            vec![thinking_only(), thinking_only()],
            "pi: The model stopped after thinking, without an answer.\n",
        ),
        (vec![call, chat::end("stop"), chat::end("stop")], EMPTY),
    ] {
        let (code, _, stderr, n_requests) = ran_with(&["-p", "go"], &answers).await;
        assert_eq!((code, stderr.as_str(), n_requests), (Some(5), sentence, answers.len()));
        let (code, stdout, stderr, n_requests) = ran_with(&["--mode", "json", "go"], &answers).await;
        assert_eq!((code, stderr.as_str(), n_requests), (Some(5), sentence, answers.len()));
        assert!(stdout.lines().last().unwrap().contains("agent_settled"), "{stdout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_after_an_empty_one_is_a_success() {
    let answers = [chat::end("stop"), chat::text("here")];
    let (code, stdout, stderr, n_requests) = ran_with(&["-p", "go"], &answers).await;
    assert_eq!((code, stdout.as_str(), stderr.as_str(), n_requests), (Some(0), "here\n", "", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_cut_off_three_times_end_the_run() {
    let answers = [cut_call(), cut_call(), cut_call(), chat::text("never")];
    for args in [vec!["-p", "go"], vec!["--mode", "json", "go"]] {
        let (code, _, stderr, n_requests) = ran_with(&args, &answers).await;
        assert_eq!((code, n_requests), (Some(5), 3), "{stderr}");
        assert!(stderr.contains("pi: the model cannot finish a call within "), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_first_of_two_prompts_is_reported() {
    let refused = Reply::status(400, &[], r#"{"error":{"message":"no such thing"}}"#);
    let server = SseServer::start([refused, Reply::sse(chat::text("two"))]).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "one", "two"]);
    let output = output(command).await;
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "two\n"));
    assert!(text(&output.stderr).contains("no such thing"), "{}", text(&output.stderr));

    let cut = [chat::delta("half"), chat::end("length")].concat();
    let (code, stdout, stderr, _) = ran_with(&["-p", "one", "two"], &[cut, chat::text("two")]).await;
    assert_eq!((code, stdout.as_str()), (Some(1), "two\n"));
    assert_eq!(stderr, "pi: the answer was truncated at the output token limit\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_survives_the_compaction_of_a_run() {
    let call = chat::calls(&[("bash", json!({"command": "true"}))]);
    let too_long =
        Reply::status(400, &[], r#"{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum"}}"#);
    let replies =
        [Reply::sse(call), too_long, Reply::sse(chat::text("SUMMARY")), Reply::sse(chat::text("done"))];
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let mut command = pi(&home);
    command.args(["-p", "my very own words"]);
    let output = output(command).await;
    assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
    let last = server.requests()[3].body["messages"].to_string();
    assert!(last.contains("SUMMARY") && last.contains("my very own words"), "{last}");
}

// Sessions that cannot be read.

#[tokio::test(flavor = "multi_thread")]
async fn continuing_names_a_latest_file_that_is_no_session() {
    let server = SseServer::start(["1", "2", "3"].map(|answer| Reply::sse(chat::text(answer)))).await;
    let home = TestHome::with_server(server.url());
    let run = async |args: &[&str]| {
        let mut command = pi(&home);
        command.args(args);
        output(command).await
    };
    run(&["-p", "one"]).await;
    let first = home.sessions().pop().unwrap();
    let pretty = format!("{:#}", json!({"type": "session", "version": 3, "id": "x", "cwd": home.project()}));
    for (name, damaged) in [("9999-empty.jsonl", String::new()), ("9999-pretty.jsonl", pretty)] {
        let path = first.with_file_name(name);
        fs::write(&path, damaged).unwrap();
        let of_first = fs::metadata(&first).unwrap().modified().unwrap();
        let later = of_first + std::time::Duration::from_secs(60);
        fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        let output = run(&["-pc", "go on"]).await;
        let stderr = text(&output.stderr);
        assert!(stderr.contains("could not be read, so an older session is continued"), "{stderr}");
        assert!(stderr.contains(name) && output.status.success(), "{stderr}");
        let listed = run(&["sessions"]).await;
        assert!(text(&listed.stderr).contains(name), "{}", text(&listed.stderr));
        fs::remove_file(path).unwrap();
    }
    assert_eq!(home.sessions().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_of_a_very_long_path_is_saved_and_continued() {
    let server = SseServer::start(["1", "2"].map(|answer| Reply::sse(chat::text(answer)))).await;
    let home = TestHome::with_server(server.url());
    let deep = vec!["p".repeat(65); 6].iter().fold(home.project(), |path, part| path.join(part));
    fs::create_dir_all(&deep).unwrap();
    for args in [["-p", "one"], ["-pc", "two"]] {
        let mut command = pi(&home);
        command.args(args).current_dir(&deep);
        let output = output(command).await;
        assert_eq!(text(&output.stderr), "");
    }
    assert!(server.requests()[1].body["messages"].to_string().contains("one"));
    let mut command = pi(&home);
    command.args(["sessions"]).current_dir(&deep);
    assert!(text(&output(command).await.stdout).contains("one"));
}
