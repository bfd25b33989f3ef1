//! The program in a terminal, against a scripted server: the screen, requests, and
//! files.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;

use pi::ai::TestBarrier;
use pi::util::clock::{Clock, iso8601};
use ratatui::layout::Size;
use serde_json::{Value, json};

use crate::support::chat::{self, assert_each_once, numbered};
use crate::support::files::{make_fifo, wait_for_files};
use crate::support::lifeline::Lifeline;
use crate::support::pty::{Pty, SIZE, TestHome, assert_restored, start_with_server};
use crate::support::sse_server::{Reply, SseServer};

/// A command that holds a lifeline open in the project, as what it starts does.
fn sleepy(name: &str) -> String {
    format!("exec 3> {name}; sleep 1000 & echo up >&3; wait")
}

/// The roles and texts of the last request, without the system prompt.
fn said(server: &SseServer) -> Vec<String> {
    let requests = server.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    messages
        .iter()
        .filter(|message| !matches!(message["role"].as_str(), Some("system" | "developer")))
        .map(|message| {
            let text = match &message["content"] {
                Value::String(text) => text.clone(),
                Value::Array(blocks) => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
                _ => String::new(),
            };
            format!("{}: {}", message["role"].as_str().unwrap(), text.trim_end())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_with_two_parallel_tools() {
    let calls = chat::calls(&[
        ("bash", json!({"command": "echo tool one"})),
        ("write", json!({"path": "new.txt", "content": "made\n"})),
    ]);
    let (server, home, pty) =
        start_with_server(&[], [Reply::sse(calls), Reply::sse(chat::text("Both are done."))]).await;
    pty.keys("do two things\r");
    let rows = pty.wait_text("Both are done.");
    let screen = rows.join("\n");
    for shown in ["$ echo tool one", "tool one", "write new.txt"] {
        assert!(screen.contains(shown), "{shown} is not in\n{screen}");
    }
    assert_eq!(fs::read_to_string(home.project().join("new.txt")).unwrap(), "made\n");
    assert_eq!(
        said(&server),
        ["user: do two things", "assistant: ", "tool: tool one", "tool: Successfully wrote to new.txt"]
    );
    pty.wait_idle();
    pty.keys("\x04");
    let (status, everything, log) = pty.end();
    assert!(status.success());
    let text = everything.join("\n");
    assert!(text.contains("To resume this session:\npi --session "), "{text}");
    assert_eq!(everything.iter().filter(|row| row.contains("Both are done.")).count(), 1, "{text}");
    assert_restored(&log);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_tree_shows_what_arrives() {
    let (call, last) = (TestBarrier::new(), TestBarrier::new());
    let body = chat::calls(&[("bash", json!({"command": "echo ran"}))]);
    let asks =
        Reply::stream("text/event-stream").piece(chat::delta("I will run it.")).gate(&call).piece(body);
    let ends = Reply::stream("text/event-stream").gate(&last).piece(chat::text("It ran."));
    let (_server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text("Hello.")), asks, ends]).await;
    pty.keys("hi\r");
    pty.wait_text("Hello.");
    pty.wait_idle();
    pty.keys("run it\r");
    pty.wait_text("I will run it.");
    pty.keys("/tree\r");
    pty.wait_text("Session tree");
    // A label is being typed while the call runs.
    pty.keys("\x1b[AL");
    pty.wait_text("Label of this entry");
    pty.keys("gree");
    call.open();
    last.reached().await;
    pty.keys("ting\r");
    pty.wait_text("[bash: echo ran]");
    last.open();
    let rows = pty.wait_text("assistant: It ran.");
    let row_of = |text: &str| {
        let row = rows.iter().position(|row| row.contains(text));
        row.unwrap_or_else(|| panic!("{text} is not in\n{}", rows.join("\n")))
    };
    assert!(rows[row_of("[greeting] assistant: Hello.")].starts_with("\u{203a} "), "{rows:#?}");
    let shown =
        ["assistant: Hello.", "user: run it", "assistant: I will run it.", "[bash: echo ran]", "It ran."];
    assert!(shown.map(row_of).is_sorted(), "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_between_tools_skips_those_not_started() {
    let gate = TestBarrier::new();
    let body = chat::calls(&[("bash", json!({"command": "touch ran"}))]);
    let answer =
        Reply::stream("text/event-stream").piece(chat::delta("I will touch a file.")).gate(&gate).piece(body);
    let (server, home, pty) = start_with_server(&[], [answer, Reply::sse(chat::text("As you wish."))]).await;
    pty.keys("touch it\r");
    pty.wait_text("I will touch a file.");
    pty.keys("rather not\r");
    pty.wait_text("Steering: rather not");
    gate.open();
    pty.wait_text("As you wish.");
    assert!(!home.project().join("ran").exists());
    assert_eq!(
        said(&server),
        [
            "user: touch it",
            "assistant: I will touch a file.",
            "tool: Skipped due to queued user message.",
            "user: rather not"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_after_the_turn_lets_all_tools_run() {
    let gate = TestBarrier::new();
    let body = chat::calls(&[("bash", json!({"command": "touch ran"}))]);
    let answer =
        Reply::stream("text/event-stream").piece(chat::delta("I will touch a file.")).gate(&gate).piece(body);
    let server = SseServer::start([answer, Reply::sse(chat::text("As you wish."))]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({"steeringDelivery": "turn"}));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("touch it\r");
    pty.wait_text("I will touch a file.");
    pty.keys("and then\r");
    pty.wait_text("Steering: and then");
    gate.open();
    pty.wait_text("As you wish.");
    assert!(home.project().join("ran").exists());
    assert_eq!(
        said(&server),
        ["user: touch it", "assistant: I will touch a file.", "tool: (no output)", "user: and then"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_messages_are_reordered_and_edited() {
    let gate = TestBarrier::new();
    let answer = Reply::stream("text/event-stream").piece(chat::delta("The work")).gate(&gate);
    let answer = answer.piece(chat::delta(" is done.")).piece(chat::end("stop"));
    let more = ["One.", "Two.", "Three."].map(|text| Reply::sse(chat::text(text)));
    let (server, _home, pty) = start_with_server(&[], [answer].into_iter().chain(more)).await;
    pty.keys("go\r");
    // Not the status line, which shows that the run has begun before the request is sent.
    pty.wait_text("The work");
    for text in ["alpha", "beta", "gamma"] {
        pty.keys(&format!("{text}\r"));
        pty.wait_text(&format!("Steering: {text}"));
    }
    pty.keys("/queue\r");
    pty.wait_text("→ alpha");
    let order = |wanted: &'static [&str]| {
        pty.wait("the order", move |rows| {
            let shown = rows.iter().filter_map(|row| row.split_once("  steering"));
            shown.map(|(text, _)| text.trim_matches(['→', ' '])).eq(wanted.iter().copied())
        });
    };
    order(&["alpha", "beta", "gamma"]);
    pty.keys("\x1b[1;3B");
    order(&["beta", "alpha", "gamma"]);
    pty.keys("\x1b[1;3B");
    order(&["beta", "gamma", "alpha"]);
    pty.keys("\x1b[A\r");
    pty.wait("the message in the editor", |rows| rows.iter().any(|row| row.trim() == "gamma"));
    pty.keys(" rays\r");
    pty.wait_text("Steering: gamma rays");
    gate.open();
    pty.wait_text("Three.");
    let users: Vec<String> = said(&server).into_iter().filter(|line| line.starts_with("user")).collect();
    assert_eq!(users, ["user: go", "user: beta", "user: gamma rays", "user: alpha"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_now_cuts_the_answer_short() {
    let never = TestBarrier::new();
    let answer = Reply::stream("text/event-stream").piece(chat::delta("A very long answer")).gate(&never);
    let server = SseServer::start([answer, Reply::sse(chat::text("Something else."))]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({"steeringDelivery": "now"}));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("tell me\r");
    pty.wait_text("A very long answer");
    pty.keys("something else\r");
    pty.wait_text("Something else.");
    server.client_closed().await;
    // The interrupted answer is kept, but the model does not see it again.
    assert_eq!(said(&server), ["user: tell me", "user: something else"]);
    let aborted =
        home.entries().into_iter().find(|entry| entry["message"]["stopReason"] == "aborted").unwrap();
    assert_eq!(aborted["message"]["content"][0]["text"], "A very long answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_word_and_enter_on_an_empty_editor_deliver_at_once() {
    let (first, second) = (TestBarrier::new(), TestBarrier::new());
    let replies = [
        Reply::stream("text/event-stream").piece(chat::delta("One.")).gate(&first),
        Reply::stream("text/event-stream").piece(chat::delta("Two.")).gate(&second),
        Reply::sse(chat::text("Three.")),
    ];
    let (server, _home, pty) = start_with_server(&[], replies).await;
    pty.keys("go\r");
    pty.wait_text("One.");
    pty.keys("wait, use tabs");
    pty.wait_text("enter: interrupt with this");
    pty.keys("\r");
    pty.wait_text("Two.");
    pty.keys("later\r");
    pty.wait_text("enter: deliver queued messages now");
    pty.keys("\r");
    pty.wait_text("Three.");
    assert_eq!(said(&server), ["user: go", "user: wait, use tabs", "user: later"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_in_a_stream_closes_the_connection_and_keeps_what_came() {
    let never = TestBarrier::new();
    let answer = Reply::stream("text/event-stream").piece(chat::delta("Partial answer")).gate(&never);
    let (server, _home, pty) = start_with_server(&[], [answer, Reply::sse(chat::text("Fresh answer"))]).await;
    pty.keys("go on\r");
    pty.wait_text("Partial answer");
    pty.keys("queued words\r");
    pty.wait_text("Steering: queued words");
    pty.keys("\x1b");
    server.client_closed().await;
    let rows = pty.wait_idle();
    let rows = if rows.iter().any(|row| row.starts_with("queued words")) {
        rows
    } else {
        pty.wait_text("queued words")
    };
    assert!(rows.iter().any(|row| row.contains("aborted")), "{}", rows.join("\n"));
    assert!(rows.iter().any(|row| row == "queued words"), "{}", rows.join("\n"));
    pty.keys("\r");
    pty.wait_text("Fresh answer");
    assert_eq!(said(&server), ["user: go on", "user: queued words"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_gives_queued_messages_back() {
    let gate = TestBarrier::new();
    let error =
        "data: {\"error\":{\"message\":\"Incorrect API key provided\",\"code\":\"invalid_api_key\"}}\n\n";
    let answer = Reply::stream("text/event-stream").piece(chat::delta("Well,")).gate(&gate).piece(error);
    let (_server, _home, pty) = start_with_server(&[], [answer]).await;
    pty.keys("go\r");
    pty.wait_text("Well,");
    pty.keys("and then this\r");
    pty.wait_text("Steering: and then this");
    gate.open();
    let rows = pty.wait("the text in the editor", |rows| rows.iter().any(|row| row == "and then this"));
    assert!(rows.join("\n").contains("Incorrect API key provided"), "{}", rows.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_in_a_tool_kills_it_to_the_last_grandchild() {
    let server =
        SseServer::start([Reply::sse(chat::calls(&[("bash", json!({ "command": sleepy("tool") }))]))]).await;
    let home = TestHome::with_server(server.url());
    let life = Lifeline::new(home.project().join("tool"));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("sleep\r");
    pty.wait_text("$ exec 3> tool");
    life.line().await;
    pty.keys("\x1b");
    pty.wait_text("Command aborted");
    pty.wait_idle();
    life.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_loses_nothing_that_was_shown_as_finished() {
    let never = TestBarrier::new();
    let replies = [
        Reply::sse(chat::calls(&[("bash", json!({"command": "echo finished tool"}))])),
        Reply::stream("text/event-stream").piece(chat::delta("half an ans")).gate(&never),
        Reply::sse(chat::text("Back again.")),
    ];
    let (server, home, pty) = start_with_server(&[], replies).await;
    pty.keys("run it\r");
    pty.wait_text("half an ans");
    pty.keys("still queued\r");
    pty.wait_text("Steering: still queued");
    pty.kill_hard();

    let pty = Pty::start(&home, SIZE, &["--continue"]);
    let rows = pty.wait_text("The last answer is incomplete");
    let screen = rows.join("\n");
    assert!(screen.contains("run it") && screen.contains("$ echo finished tool"), "{screen}");
    assert!(screen.contains("finished tool"), "{screen}");
    // The queued message was not delivered, and is not lost either.
    pty.wait("the queued words", |rows| rows.iter().any(|row| row == "still queued"));
    pty.keys("\x15and now\r");
    pty.wait_text("Back again.");
    assert_eq!(said(&server), ["user: run it", "assistant: ", "tool: finished tool", "user: and now"]);
    assert_eq!(home.sessions().len(), 1);
}

/// The result of the call that finished first is kept, though the other still ran.
#[tokio::test(flavor = "multi_thread")]
async fn kill_during_parallel_tools_keeps_the_result_that_was_shown() {
    let calls = [
        ("write", json!({"path": "new.txt", "content": "made\n"})),
        ("bash", json!({"command": "sleep 1000"})),
    ];
    let (server, home, pty) =
        start_with_server(&[], [Reply::sse(chat::calls(&calls)), Reply::sse(chat::text("Again."))]).await;
    pty.keys("do two things\r");
    // The first call is drawn as finished: the number of its lines is shown.
    pty.wait("the result of write", |rows| rows.iter().any(|row| row.contains("write new.txt")));
    let stored = || home.entries().iter().any(|entry| entry["message"]["toolName"] == "write");
    pty.wait_saved("the result on disk", stored);
    pty.kill_hard();

    let pty = Pty::start(&home, SIZE, &["--continue"]);
    pty.wait_text("The last answer is incomplete");
    pty.keys("and now\r");
    pty.wait_text("Again.");
    assert_eq!(
        said(&server),
        [
            "user: do two things",
            "assistant: ",
            "tool: Successfully wrote to new.txt",
            "tool: No result provided",
            "user: and now"
        ]
    );
}

/// The editor's text comes back after a kill, and after another one.
#[tokio::test(flavor = "multi_thread")]
async fn kill_while_typing_keeps_the_draft_any_number_of_times() {
    let server = SseServer::start([Reply::sse(chat::text("Understood."))]).await;
    let home = TestHome::with_server(server.url());
    let stored = |text: &str| home.drafts().iter().any(|draft| draft["text"] == text);
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys("a long thought");
    pty.wait_saved("the stored draft", || stored("a long thought"));
    pty.kill_hard();

    // Nobody has said anything in that session: the next one takes the draft over.
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_text("Your draft is back in the editor.");
    pty.wait_text("a long thought");
    pty.kill_hard();

    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_text("a long thought");
    pty.keys(" at last");
    pty.wait_saved("the stored draft", || stored("a long thought at last"));
    pty.keys("\r");
    pty.wait_text("Understood.");
    pty.wait_saved("the end of the draft", || home.drafts().is_empty());
    pty.keys("more to say");
    pty.wait_saved("the stored draft", || stored("more to say"));
    pty.kill_hard();

    let pty = Pty::start(&home, SIZE, &["--continue"]);
    pty.wait("the draft in the editor", |rows| rows.iter().any(|row| row == "more to say"));
    assert_eq!(said(&server), ["user: a long thought at last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_quits_only_when_it_is_pressed_twice_in_a_row() {
    let (_server, _home, pty) = start_with_server(&[], []).await;
    let armed = |pty: &Pty| pty.wait_text("ctrl+c again to quit");
    let disarmed = |pty: &Pty| {
        pty.wait("the end of the hint", |rows| !rows.iter().any(|row| row.contains("again to quit")));
    };
    // By itself, after a while.
    pty.keys("\x03");
    armed(&pty);
    disarmed(&pty);
    // By a paste, and by any other key.
    for other in ["\x1b[200~pasted\x1b[201~", "x"] {
        pty.keys(&format!("\x03{other}\x03"));
        armed(&pty);
        disarmed(&pty);
    }
    pty.keys("still here");
    pty.wait_text("still here");
    pty.keys("\x03\x03");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_command_is_answered_by_pi_and_stays_to_be_corrected() {
    let (server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text("A path."))]).await;
    for (line, answer) in [
        ("/hotkesy", "there is no command /hotkesy; did you mean /hotkeys?"),
        ("/mcp", "/mcp is not supported yet"),
        ("/quit now", "/quit takes no arguments"),
    ] {
        pty.keys(&format!("{line}\r"));
        pty.wait_text(answer);
        pty.wait("the line in the editor", |rows| rows.iter().any(|row| row == line));
        pty.keys("\x15");
    }
    assert!(server.requests().is_empty());
    pty.keys("/etc/hosts what is this\r");
    pty.wait_text("A path.");
    assert_eq!(said(&server), ["user: /etc/hosts what is this"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn start_and_screen_are_reported_when_they_are_asked_for() {
    let home = TestHome::new();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("PI_TIMING", "1")]);
    pty.wait_idle();
    let path = home.home().join(".pi/agent/pi-debug.log");
    let wrote = "Wrote what is on the screen to ~/.pi/agent/pi-debug.log";
    // One that others may read is there already.
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(&path, "earlier").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    pty.keys("/debug\r");
    pty.wait_text(wrote);
    let report = fs::read_to_string(&path).unwrap();
    let size = format!("{}x{}", SIZE.width, SIZE.height);
    for fact in [
        format!("screen: {size}, main screen"),
        format!("size reported by the system: {size}"),
        format!("size reported by the terminal: {size}"),
    ] {
        assert!(report.lines().any(|line| line == fact), "{fact}: {report}");
    }
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // With a list over the main screen, which the report has as it is shown.
    pty.keys("/theme\r");
    let shown = pty.wait("the list", |rows| rows.iter().any(|row| row.contains("→ ")));
    fs::remove_file(&path).unwrap();
    pty.keys("\x1b[100;6u");
    wait_for_files(&home.agent(), "the report", || path.exists());
    let report = fs::read_to_string(&path).unwrap();
    let (report, _) = report.split_once("Transcript").unwrap();
    for row in shown.iter().filter(|row| !row.trim().is_empty()) {
        assert!(report.contains(row.trim_end()), "{row:?} is not in\n{report}");
    }
    assert!(report.contains("over the main screen"), "{report}");
    pty.keys("\x1b");
    pty.wait("the end of the list", |rows| !rows.iter().any(|row| row.contains("→ ")));
    pty.keys("\x04");
    let (_, everything, _) = pty.end();
    let timing = everything.iter().find(|row| row.starts_with("start: ")).unwrap();
    assert!(timing.contains("settings, models and keys "), "{timing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_during_a_run_is_asked_for() {
    let gate = TestBarrier::new();
    let answer = Reply::stream("text/event-stream").piece(chat::delta("Half")).gate(&gate);
    let (_server, _home, pty) =
        start_with_server(&[], [answer.piece(chat::delta(" and whole.")).piece(chat::end("stop"))]).await;
    pty.keys("go\r");
    pty.wait_text("Half");
    pty.keys("/new\r");
    pty.wait_text("Start a new session?");
    // The first answer leaves everything as it is.
    pty.keys("\r");
    pty.wait("the end of the question", |rows| !rows.iter().any(|row| row.contains("Start a new session?")));
    pty.keys("/new\r");
    pty.wait_text("→ Keep working");
    pty.keys("\x1b");
    pty.wait("the end of the question", |rows| !rows.iter().any(|row| row.contains("Start a new session?")));
    gate.open();
    pty.wait_text("Half and whole.");
    pty.wait_idle();
    // With nothing to end there is nothing to ask.
    pty.keys("/new\r");
    // It begins below the old one.
    let header = |row: &&String| row.contains("escape interrupt");
    let rows = pty.wait("an empty session", |rows| rows.iter().filter(header).count() == 2);
    let last_header = rows.iter().rposition(|row| row.contains("escape interrupt")).unwrap();
    assert!(!rows[last_header..].iter().any(|row| row.contains("Half and whole.")), "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_a_file_is_said_once() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    let path = home.agent().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    models["providers"]["odd"] = json!({"baseUrl": "http://x/v1", "api": "openai-completions",
        "models": [{"id": "a", "contextWindow": "big"}]});
    fs::write(&path, models.to_string()).unwrap();
    let pty = Pty::start(&home, Size { width: 120, height: 24 }, &[]);
    pty.wait_text(
        "~/.pi/agent/models.json: provider \"odd\": model \"a\": \"contextWindow\" must be a whole number",
    );
    // The list reads the file again.
    pty.keys("/model\r");
    pty.wait_text("→ ");
    pty.keys("\x1b");
    pty.wait("the end of the list", |rows| !rows.iter().any(|row| row.contains("→ ")));
    pty.keys("!echo done\r");
    pty.wait_text("$ echo done");
    let said = pty.everything().iter().filter(|row| row.contains("provider \"odd\"")).count();
    assert_eq!(said, 1);
}

#[test]
fn a_crash_is_told_once_at_the_next_start() {
    let home = TestHome::new();
    tell_crash_once(&home, &[]);
    tell_crash_once(&home, &["--screen-reader"]);
}

/// Starts pi twice after a crash.
fn tell_crash_once(home: &TestHome, args: &[&str]) {
    let file = home.agent().join("crashes.json");
    let timestamp = iso8601(Clock::system().now_ms());
    let crash = serde_json::json!([{ "timestamp": timestamp, "message": "the screen broke" }]);
    fs::write(&file, crash.to_string()).unwrap();
    for n_told in [1, 0] {
        let pty = Pty::start(home, SIZE, args);
        if args.is_empty() {
            pty.wait_idle();
        } else {
            pty.wait_text("Type a prompt, or /help.");
        }
        if n_told == 1 {
            pty.wait_text("the screen broke. Please report it with");
        }
        pty.keys("\x04");
        let (_, everything, _) = pty.end();
        assert_eq!(everything.join("\n").matches("the screen broke").count(), n_told);
    }
    assert!(fs::read_to_string(file).unwrap().contains("\"notified\": true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn quit_and_resume_by_the_printed_line() {
    let (server, home, pty) =
        start_with_server(&[], [Reply::sse(chat::text("Remember me.")), Reply::sse(chat::text("I do."))])
            .await;
    pty.keys("hello\r");
    pty.wait_text("Remember me.");
    pty.wait_idle();
    pty.keys("/quit\r");
    let (_, everything, _) = pty.end();
    let hint = everything.iter().position(|row| row == "To resume this session:").unwrap();
    let line = everything[hint + 1].clone();
    assert!(line.starts_with("pi --session "), "{line}");
    let id = line.rsplit(' ').next().unwrap();

    let pty = Pty::start(&home, SIZE, &["--session", id]);
    pty.wait_text("Remember me.");
    // The text typed before can be restored.
    pty.keys("\x1b[A");
    pty.wait("history", |rows| rows.iter().filter(|row| row.trim() == "hello").count() == 2);
    pty.keys("\x05 again\r");
    pty.wait_text("I do.");
    assert_eq!(said(&server), ["user: hello", "assistant: Remember me.", "user: hello again"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_in_the_middle_of_a_stream_loses_and_doubles_nothing() {
    let (first, second) = (TestBarrier::new(), TestBarrier::new());
    let answer = chat::numbered_in_three_parts(&first, &second);
    let (_server, _home, pty) = start_with_server(&[], [answer]).await;
    pty.keys("many lines\r");
    pty.wait_text("line 039");
    pty.resize(Size { width: 60, height: 24 });
    first.open();
    pty.wait_text("line 079");
    pty.resize(Size { width: 60, height: 16 });
    second.open();
    pty.wait_text("line 119");
    pty.wait_idle();
    pty.keys("\x04");
    let (_, everything, _) = pty.end();
    let shown: Vec<&str> =
        everything.iter().map(|row| row.trim()).filter(|row| row.starts_with("line ")).collect();
    let expected: Vec<String> = (0..120).map(|n| format!("line {n:03}")).collect();
    let missing: Vec<&String> = expected.iter().filter(|row| !shown.contains(&row.as_str())).collect();
    assert!(shown == expected, "missing {missing:?} of\n{}", everything.join("\n"));
}

/// They cover finished rows, so rows of them could reach the scrollback with the next change.
#[tokio::test(flavor = "multi_thread")]
async fn suggestions_close_when_the_size_changes_and_open_with_the_next_key() {
    let (_server, _home, pty) = start_with_server(&[], []).await;
    let is_open = |rows: &[String]| rows.iter().any(|row| row.contains("→ /"));
    pty.keys("/");
    pty.wait("the suggestions", is_open);
    pty.resize(Size { width: 80, height: 20 });
    pty.wait("no suggestions", |rows| rows.iter().any(|row| row == "/") && !is_open(rows));
    pty.resize(Size { width: 60, height: 20 });
    pty.wait("the narrower footer", |rows| {
        let is_followed = rows.iter().any(|row| row.ends_with("m-1") && row.chars().count() == 60);
        is_followed && !is_open(rows)
    });
    pty.keys("m");
    pty.wait("the suggestions again", |rows| rows.iter().any(|row| row.contains("→ /m")));
    assert!(pty.everything().iter().filter(|row| row.contains("→ /")).count() == 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_redraw_erases_the_scrollback() {
    let (_server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text(&numbered(0..40)))]).await;
    pty.keys("many lines\r");
    pty.wait_text("line 039");
    pty.wait_idle();
    pty.keys("\x0f");
    pty.wait_text("tool output is expanded");
    pty.keys("\x14");
    pty.wait_text("thinking is hidden");
    pty.resize(Size { width: 60, height: 24 });
    pty.keys("x");
    pty.wait("the key", |rows| rows.iter().any(|row| row.trim() == "x"));
    pty.keys("\x7f\x0f");
    pty.wait_text("collapsed from here on");
    pty.keys("/new\r");
    pty.wait_text("escape interrupt");
    pty.wait_idle();
    let log = pty.text_log();
    assert!(!log.contains("\x1b[3J") && !log.contains("\x1b[2J"));
    let everything = pty.everything();
    assert_each_once(0..40, &everything);
    pty.keys("/redraw\r");
    pty.wait("an erased screen", |rows| !rows.iter().any(|row| row.contains("line 0")));
    assert!(pty.text_log().contains("\x1b[3J"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pager_shows_the_whole_session_and_leaves_the_screen_as_it_was() {
    let (_server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text(&numbered(0..60)))]).await;
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    let before = pty.everything();
    pty.keys("\x1bo");
    pty.wait("the end", |rows| rows[0].contains("entry") && rows.iter().any(|row| row.contains("line 059")));
    pty.keys("g");
    pty.wait_text("line 000");
    pty.keys("/line 030\r");
    pty.wait_text("n/shift+n: next/previous match");
    pty.wait_text("line 030");
    pty.keys("q");
    pty.wait("the main screen", |rows| rows.iter().any(|row| row.contains("line 059")));
    pty.wait_idle();
    assert_eq!(pty.everything(), before);
    // A change of the size behind the pager is followed afterwards.
    pty.keys("\x1bo");
    pty.wait("the pager", |rows| rows[0].contains("entry"));
    pty.resize(Size { width: 80, height: 18 });
    pty.wait("the new height", |rows| {
        // Above the footer.
        rows.len() == 18 && rows[0].contains("entry") && rows[15].contains("previous/next prompt")
    });
    pty.keys("q");
    pty.wait("the main screen", |rows| rows.iter().any(|row| row.contains("line 059")));
    pty.wait_idle();
    let everything = pty.everything();
    assert_each_once(0..60, &everything);
    // Quitting from the pager restores the terminal.
    pty.keys("\x1bo");
    pty.wait("the pager", |rows| rows[0].contains("entry"));
    pty.keys("q/quit\r");
    let (status, _, log) = pty.end();
    assert!(status.success());
    assert_restored(&log);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_lists_leave_the_main_screen_as_it_was_after_changes_of_the_size() {
    let (_server, _home, pty) = start_with_server(&[], [Reply::sse(chat::text(&numbered(0..60)))]).await;
    pty.keys("many lines\r");
    pty.wait_text("line 059");
    pty.wait_idle();
    for (keys, title) in
        [("/hotkeys\r", "Keys and commands"), ("/settings\r", "Settings"), ("\x0c", "[local]")]
    {
        pty.keys(keys);
        pty.wait_text(title);
        for height in [10, 30, 6, 24] {
            pty.resize(Size { width: 80, height });
            pty.wait(title, |rows| {
                rows.len() == usize::from(height) && rows.iter().any(|row| row.contains(title))
            });
        }
        pty.keys("\x1b");
        pty.wait("the main screen", |rows| rows.last().is_some_and(|row| row.trim_end().ends_with("m-1")));
        pty.wait_idle();
        let everything = pty.everything();
        assert_each_once(0..60, &everything);
        assert!(!everything.iter().any(|row| row.contains(title)), "{everything:#?}");
    }
}

/// tmux hides keys unless it is told not to: pi says so if tmux answers.
#[test]
fn tmux_that_hides_keys_is_mentioned_and_one_that_passes_them_is_not() {
    use std::os::unix::fs::PermissionsExt as _;

    for (answer, is_told) in [("echo off", true), ("echo on", false), ("exit 1", false)] {
        let home = TestHome::new();
        let tmux = home.project().join("tmux");
        fs::write(&tmux, format!("#!/bin/sh\ntouch asked\n{answer}\n")).unwrap();
        fs::set_permissions(&tmux, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", home.project().display());
        let env = [("TMUX", "/tmp/none,1,0"), ("PATH", path.as_str())];
        let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &env);
        if is_told {
            pty.wait_text("tmux hides shift+enter");
        }
        wait_for_files(&home.project(), "the question", || home.project().join("asked").exists());
        pty.keys("hello\r");
        let rows = pty.wait_text("offline demo model");
        assert_eq!(rows.iter().any(|row| row.contains("tmux hides")), is_told, "{rows:#?}");
        pty.keys("\x03\x03");
        pty.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_model_and_user_die_with_a_killed_program() {
    let server =
        SseServer::start([Reply::sse(chat::calls(&[("bash", json!({ "command": sleepy("tool") }))]))]).await;
    let home = TestHome::with_server(server.url());
    let [own, tool] = ["own", "tool"].map(|name| Lifeline::new(home.project().join(name)));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_idle();
    pty.keys(&format!("!{}\r", sleepy("own")));
    own.line().await;
    pty.keys("sleep\r");
    tool.line().await;
    assert!(!own.has_ended() && !tool.has_ended());
    pty.kill_hard();
    own.ended().await;
    tool.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_ends_a_search_that_hangs_and_nothing_holds_up_the_end() {
    let call = chat::calls(&[("find", json!({ "pattern": "*.rs" }))]);
    let server = SseServer::start([Reply::sse(call)]).await;
    let home = TestHome::with_server(server.url());
    let pipe = home.project().join(".ignore");
    make_fifo(&pipe);
    let pty = Pty::start(&home, SIZE, &["--tools", "find"]);
    pty.wait_idle();
    pty.keys("search\r");
    // Succeeds once the search has opened its end.
    let opened = tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(pipe).unwrap());
    let writer = opened.await.unwrap();
    pty.keys("\x1b");
    pty.wait_text("abandoned");
    pty.wait_idle();
    pty.keys("/quit\r");
    let (status, _, _) = pty.end();
    assert_eq!(status.exit_code(), 0);
    drop(writer);
}

#[test]
fn tiny_terminals_are_no_reason_to_panic() {
    let home = TestHome::new();
    for (width, height) in [(10, 3), (1, 1), (20, 5)] {
        let size = Size { width, height };
        let pty = Pty::start_in(&home, &home.project(), size, &[], &[("PI_DEMO_INSTANT", "1")]);
        pty.wait_taken();
        pty.keys("a long answer\r");
        pty.keys("\x0f\x14");
        pty.resize(Size { width: width + 3, height: height + 2 });
        pty.wait("an answer", |rows| rows.iter().any(|row| !row.is_empty()));
        pty.keys("\x03\x03");
        let (status, everything, _) = pty.end();
        assert!(status.success(), "{width}x{height}: {}", everything.join("\n"));
        assert!(!everything.iter().any(|row| row.contains("panicked")), "{}", everything.join("\n"));
    }
}

#[test]
fn a_dumb_terminal_is_told_what_works_there() {
    let home = TestHome::new();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("TERM", "dumb")]);
    let (status, everything, _) = pty.end();
    assert_eq!(status.exit_code(), 1);
    // It may wrap anywhere.
    let said = everything.concat();
    for part in ["TERM=dumb", "--screen-reader", "pi -p"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("needs a terminal"), "{said}");
}

#[test]
fn a_theme_is_a_file_and_a_broken_one_is_reported() {
    let home = TestHome::new().settings(&json!({"theme": "mine"}));
    let folder = home.agent().join("themes");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine.json"), "{\"name\": \"mine\"}").unwrap();
    let pty = Pty::start(&home, Size { width: 160, height: 24 }, &[]);
    let rows = pty.wait_text("using the system theme");
    assert!(rows.join("\n").contains("theme \"mine\": ~/.pi/agent/themes/mine.json"), "{}", rows.join("\n"));
    drop(pty);
    fs::write(folder.join("mine.json"), include_str!("../../themes/light.json")).unwrap();
    let pty = Pty::start(&home, SIZE, &[]);
    let rows = pty.wait_idle();
    assert!(!rows.join("\n").contains("Warning"), "{}", rows.join("\n"));
}

/// Writes the theme `mine`, the dark one with this colour.
fn write_own_theme(home: &TestHome, dim: &str) {
    let folder = home.agent().join("themes");
    fs::create_dir_all(&folder).unwrap();
    let mut theme: Value = serde_json::from_str(include_str!("../../themes/dark.json")).unwrap();
    theme["name"] = "mine".into();
    theme["colors"]["dim"] = dim.into();
    fs::write(folder.join("mine.json"), theme.to_string()).unwrap();
}

/// Changes the theme `mine`, which is on the screen.
fn check_theme_is_followed(home: &TestHome, pty: &Pty) {
    write_own_theme(home, "#040506");
    pty.wait_log("the new colour", |log| log.contains("38;2;4;5;6"));
    write_own_theme(home, "no colour");
    pty.wait_text("its colours stay as they were");
    write_own_theme(home, "#070809");
    pty.wait_log("the next colour", |log| log.contains("38;2;7;8;9"));
}

#[test]
fn a_change_of_the_theme_is_shown_at_once_and_a_broken_one_is_not() {
    let home = TestHome::new().settings(&json!({"theme": "mine"}));
    write_own_theme(&home, "#010203");
    let env = [("COLORTERM", "truecolor")];
    let pty = Pty::start_in(&home, &home.project(), Size { width: 160, height: 24 }, &[], &env);
    pty.wait_idle();
    // The file is watched before the first key.
    pty.keys("draft");
    pty.wait_text("draft");
    check_theme_is_followed(&home, &pty);
}

#[test]
fn a_change_of_a_theme_is_shown_while_it_is_selected() {
    let home = TestHome::new().settings(&json!({"theme": "light"}));
    write_own_theme(&home, "#010203");
    let env = [("COLORTERM", "truecolor")];
    let pty = Pty::start_in(&home, &home.project(), Size { width: 160, height: 24 }, &[], &env);
    pty.wait_idle();
    pty.keys("/theme\r");
    pty.wait("the list", |rows| rows.iter().any(|row| row.contains("→ ✓ light")));
    pty.keys("mine");
    pty.wait_log("the theme", |log| log.contains("38;2;1;2;3"));
    check_theme_is_followed(&home, &pty);
}

/// As git does it: the new head replaces the old one.
fn check_out(git_dir: &Path, branch: &str) {
    let lock = git_dir.join("HEAD.lock");
    fs::write(&lock, format!("ref: refs/heads/{branch}\n")).unwrap();
    fs::rename(lock, git_dir.join("HEAD")).unwrap();
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_shown_at_once() {
    for git_dir in [".git", "../main/.git/worktrees/project"] {
        let home = TestHome::new();
        let folder = home.project().join(git_dir);
        fs::create_dir_all(&folder).unwrap();
        check_out(&folder, "main");
        if git_dir != ".git" {
            fs::write(home.project().join(".git"), format!("gitdir: {git_dir}\n")).unwrap();
        }
        let pty = Pty::start(&home, SIZE, &[]);
        pty.wait_idle();
        pty.wait_text("(main)");
        for branch in ["first", "second", "third"] {
            check_out(&folder, branch);
            pty.wait_text(&format!("({branch})"));
        }
        pty.keys("/quit\r");
        pty.end();
    }
}

#[test]
fn the_first_screen_names_a_provider_whose_models_are_not_known_yet() {
    let home = TestHome::new();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("TOGETHER_API_KEY", "k")]);
    let screen = pty.wait_idle().join("\n");
    assert!(screen.contains("together is set up: use /model"), "{screen}");
    assert!(!screen.contains("No key is configured"), "{screen}");
    pty.keys("\x04");
    let (status, _, _) = pty.end();
    assert!(status.success());
}

#[test]
fn the_first_minute_with_the_demo_model() {
    let home = TestHome::new();
    fs::write(home.project().join("README.md"), "# A project\n\nTODO: everything\n").unwrap();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("PI_DEMO_INSTANT", "1")]);
    let rows = pty.wait_idle();
    let screen = rows.join("\n");
    assert!(screen.contains("demo model") && screen.contains("ANTHROPIC_API_KEY"), "{screen}");
    pty.keys("read README.md\r");
    pty.wait_text("has 3 lines");
    pty.keys("!echo from the shell\r");
    pty.wait("the output and the end of the command", |rows| {
        rows.iter().any(|row| row.trim() == "│ from the shell")
            && !rows.iter().any(|row| row.contains("to stop)"))
    });
    pty.keys("/name The demo\r");
    pty.wait_text("• The demo");
    pty.keys("/thinking high\r");
    pty.wait_text("demo model • high");
    pty.keys("/mod\r");
    pty.wait_text("[demo]");
    pty.keys("\x1b");
    pty.wait("the list to close", |rows| !rows.iter().any(|row| row.contains("[demo]")));
    pty.keys("/hotkeys\r");
    pty.wait_text("Keys and commands");
    pty.keys("G");
    pty.wait_text("!!COMMAND");
    pty.keys("q");
    pty.wait("the report to close", |rows| !rows.iter().any(|row| row.contains("!!COMMAND")));
    pty.keys("\x04");
    let (status, _, _) = pty.end();
    assert!(status.success());
    let kinds: Vec<String> = home
        .entries()
        .iter()
        .map(|entry| entry["message"]["role"].as_str().or(entry["type"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "session",
            "model_change",
            "thinking_level_change",
            "system",
            "user",
            "assistant",
            "toolResult",
            "assistant",
            "bashExecution",
            "session_info",
            "thinking_level_change"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_is_shown_until_the_end_and_no_resume_is_promised() {
    let server = SseServer::start([Reply::sse(chat::text("One.")), Reply::sse(chat::text("Two."))]).await;
    let home = TestHome::with_server(server.url());
    // A file where the folder should be.
    fs::write(home.agent().join("sessions"), "").unwrap();
    let tmp = home.home().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("TMPDIR", tmp.to_str().unwrap())]);
    pty.wait_idle();
    for (prompt, answer) in [("first\r", "One."), ("second\r", "Two.")] {
        pty.keys(prompt);
        pty.wait_text(answer);
        pty.wait_text("Not saved: Not a directory");
        pty.wait_idle();
    }
    pty.keys("\x04");
    let (_, everything, _) = pty.end();
    let text = everything.join("\n");
    assert!(!text.contains("To resume this session"), "{text}");
    let said =
        everything.iter().position(|row| row.contains("5 messages of this session are not saved")).unwrap();
    let said = everything[said..].concat();
    let [copy] = fs::read_dir(&tmp)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert!(said.contains(copy.file_name().unwrap().to_str().unwrap()), "{said}");
    let saved = fs::read_to_string(copy).unwrap();
    assert!(["first", "One.", "second", "Two."].iter().all(|said| saved.contains(said)), "{saved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_follows_the_files_of_the_user() {
    let (_server, home, pty) = start_with_server(&[], []).await;
    let settings = home.agent().join("settings.json");
    fs::write(&settings, r#"{"theme": "nope", "novel": 1}"#).unwrap();
    fs::write(home.agent().join("keybindings.json"), r#"{"app.thinking.toggle": "ctrl+y"}"#).unwrap();
    pty.keys("/reload\r");
    let rows = pty.wait_text("Reloaded settings, theme, keybindings, skills, templates and instructions.");
    let problems = rows.iter().filter(|row| row.contains("theme \"nope\"")).count();
    assert_eq!(problems, 1, "{}", rows.join("\n"));
    pty.keys("\x19");
    pty.wait_text("thinking is hidden");
    let wait_until_stored = |is_hidden: bool| {
        wait_for_files(&home.agent(), "the setting on the disk", || {
            let stored = fs::read_to_string(&settings).unwrap_or_default();
            serde_json::from_str(&stored).unwrap_or(json!(null))
                == json!({"theme": "nope", "novel": 1, "hideThinkingBlock": is_hidden})
        });
    };
    wait_until_stored(true);
    // What cannot be read changes nothing, and pi says so.
    fs::write(home.agent().join("keybindings.json"), "{ bad").unwrap();
    pty.keys("/reload\r");
    pty.wait_text("the keys read before stay");
    pty.keys("\x19");
    pty.wait_text("thinking is shown");
    wait_until_stored(false);
    fs::write(&settings, "{ bad").unwrap();
    pty.keys("/reload\r");
    pty.wait_text("settings read before stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_takes_a_message_back_and_keeps_both_branches() {
    let answers = ["one answer", "two answer", "## Goal\nTHE SUMMARY", "three answer"];
    let (server, _home, pty) = start_with_server(&[], answers.map(|text| Reply::sse(chat::text(text)))).await;
    for (prompt, answer) in [("one\r", "one answer"), ("two\r", "two answer")] {
        pty.keys(prompt);
        pty.wait_text(answer);
        pty.wait_idle();
    }
    pty.keys("/tree\r");
    pty.wait_text("› • assistant: two answer");
    pty.keys("\x1b[A\r");
    pty.wait_text("Summarise the branch you leave?");
    pty.keys("\x1b[B\r");
    // The branch is shown below what was there, with the message in the editor.
    let begin = |rows: &[String]| rows.iter().rposition(|row| row.contains("escape interrupt")).unwrap_or(0);
    pty.wait("the other branch", |rows| {
        let branch = &rows[begin(rows)..];
        let has = |text: &str| branch.iter().any(|row| row.contains(text));
        has("Summary of an abandoned branch")
            && has("one answer")
            && !has("two answer")
            && branch.iter().any(|row| row.trim() == "two")
    });
    pty.keys(" again\r");
    pty.wait_text("three answer");
    let last = said(&server);
    assert_eq!((last.len(), last[3].as_str()), (4, "user: two again"), "{last:?}");
    assert!(last[2].contains("THE SUMMARY"), "{last:?}");

    pty.wait_idle();
    // A search finds what was left; Escape ends first the search, then the tree.
    pty.keys("/tree\r");
    pty.wait_text("Session tree");
    pty.keys("two answer");
    let is_found = |rows: &[String]| {
        rows.iter().any(|row| row.contains("assistant: two answer"))
            && !rows.iter().any(|row| row.contains("user: one"))
    };
    pty.wait("what was found", is_found);
    pty.keys("\x1b");
    pty.wait_text("user: one");
    pty.keys("\x1b");
    pty.wait("the tree to close", |rows| !rows.iter().any(|row| row.contains("Session tree")));
    pty.keys("\x04");
    assert!(pty.end().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_a_tool_reads_is_a_picture_in_kitty_and_a_line_elsewhere() {
    let png = pi::util::image::png_of_rgba(300, 100, vec![200; 300 * 100 * 4]).unwrap();
    for (term, is_picture) in [("xterm-kitty", true), ("xterm-256color", false)] {
        let call = chat::calls(&[("read", json!({"path": "lamp.png"}))]);
        let server = SseServer::start([Reply::sse(call), Reply::sse(chat::text("A lamp."))]).await;
        let home = TestHome::with_server(server.url());
        fs::write(home.project().join("lamp.png"), &png).unwrap();
        let pty = Pty::start_in(&home, &home.project(), SIZE, &[], &[("TERM", term)]);
        pty.wait_idle();
        pty.keys("look\r");
        let rows = pty.wait_text("A lamp.");
        let is_shown = rows.iter().any(|row| row.contains("[Image: image/png 300×100]"));
        assert_eq!(is_shown, !is_picture, "{rows:#?}");
        if is_picture {
            let place = b",p=1,c=30,r=5,q=2\x1b\\";
            pty.wait_bytes("the picture", place);
        }
        pty.keys("/quit\r");
        let (status, _, log) = pty.end();
        assert!(status.success());
        let log = String::from_utf8_lossy(&log).into_owned();
        assert_eq!(log.contains("\x1b_Ga=t,f=100,i="), is_picture);
        // Five rows of thirty cells.
        let n_cells = log.matches('\u{10eeee}').count();
        assert_eq!(n_cells >= 150, is_picture, "{n_cells}");
    }
}
