//! Screen-reader mode in a terminal: nothing but appended lines.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use ratatui::layout::Size;
use serde_json::json;

use crate::support::chat;
use crate::support::pty::{Pty, TestHome};
use crate::support::sse_server::{RecordedRequest, Reply, SseServer};

const SIZE: Size = Size { width: 80, height: 24 };

/// Everything the program wrote, without the terminal's echo of line ends.
fn written(log: &[u8]) -> String {
    String::from_utf8(log.to_vec()).unwrap().replace("\r\n", "\n")
}

/// pi, when it waits for a prompt.
fn started(home: &TestHome) -> Pty {
    let pty = Pty::start(home, SIZE, &["--screen-reader"]);
    pty.wait_text("Type a prompt, or /help.");
    pty
}

/// Types a line and waits until `answer` is written once more.
fn ask(pty: &Pty, line: &str, answer: &str) {
    let count = std::cell::Cell::new(0);
    pty.wait_log("what was written", |log| {
        count.set(log.matches(answer).count());
        true
    });
    pty.keys(&format!("{line}\r"));
    pty.wait_log(answer, |log| log.matches(answer).count() > count.get());
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_conversation_is_appended_lines_without_an_escape_sequence() {
    let calls = chat::calls(&[("bash", json!({"command": "echo out; exit 3"}))]);
    let replies = [Reply::sse(calls), Reply::sse(chat::text("It **failed**.\nShall I retry?"))];
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    pty.keys("run it\r");
    pty.wait_text("Done. Your turn.");
    pty.keys("/thinking\r");
    pty.wait_text("Type a number or part of a name.");
    pty.keys("99\r");
    pty.wait_text("There is no number 99");
    pty.keys("\r");
    pty.wait_text("Cancelled.");
    // What is chosen already is read out too.
    pty.keys("/thinking off\r");
    pty.wait_text("thinking off.");
    pty.keys("!echo mine\r");
    pty.wait_text("Your command is done.");
    pty.keys("/history\r");
    pty.wait_text("Type /read with a number for the whole text.");
    pty.keys("/read 99\r");
    pty.wait_text("type 1 to 5.");
    pty.keys("/read 3\r");
    pty.wait_text("End.");
    pty.keys("/nothing\r");
    pty.wait_text("/help reads all.");
    pty.keys("/login\r");
    pty.wait_text("ANTHROPIC_API_KEY");
    pty.keys("/quit\r");
    pty.wait_text("To resume this session:");
    let (status, _, log) = pty.end();
    assert!(status.success());
    let text = written(&log);
    assert!(!text.contains(['\x1b', '\x08', '\r']), "{text:?}");
    let said = [
        "Working.",
        "Running bash: echo out; exit 3",
        "Failed: bash: echo out; exit 3",
        "It failed.",
        "Shall I retry?",
        "Done. Your turn.",
        "Running your command: echo mine",
        "1. Your command: !echo mine",
        "2. Answer: It **failed**. Shall I retry?",
        "3. Failure of bash: out Command exited with code 3",
        "4. Calls: bash: echo out; exit 3",
        "5. You: run it",
        "Error: there is no number 99; type 1 to 5.",
        "Failure of bash:\nout\n",
        "Command exited with code 3\nEnd.",
        "Error: there is no command /nothing; /help reads all.",
    ];
    let mut from = 0;
    for line in said {
        let at = text[from..].find(line).unwrap_or_else(|| panic!("{line:?} does not follow in\n{text}"));
        from += at + line.len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_ends_the_run_and_the_end_of_input_the_program() {
    let gate = pi::ai::TestBarrier::new();
    let answer = Reply::stream("text/event-stream")
        .piece(chat::delta("A first line.\n"))
        .gate(&gate)
        .piece(String::new());
    let server = SseServer::start([answer]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({"screenReader": true}));
    let pty = Pty::start(&home, SIZE, &[]);
    pty.wait_text("Type a prompt, or /help.");
    pty.keys("begin\r");
    pty.wait_text("A first line.");
    pty.keys("and then this\r");
    pty.wait_text("1 message is queued.");
    pty.keys("\x03");
    pty.wait_text("Interrupting.");
    pty.wait_text("Not sent, type it again if you still want it: and then this");
    pty.wait_text("Interrupted. Your turn.");
    pty.keys("\x04");
    let (status, _, log) = pty.end();
    assert!(status.success());
    assert!(!written(&log).contains('\x1b'));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_it_says_whose_turn_it_is_and_what_it_asks() {
    let home = TestHome::new();
    let pty = Pty::start_shell(&home, SIZE);
    pty.keys("\"$PI\" --screen-reader\r");
    pty.wait_text("Type a prompt, or /help.");
    pty.keys("/model\r");
    pty.wait_text("An empty line cancels.");
    pty.keys("\x1a");
    pty.wait("the shell", |rows| rows.iter().any(|row| row.trim_end() == "shell>"));
    pty.keys("fg\r");
    pty.wait("the list again", |rows| {
        let goes_on = rows.iter().rposition(|row| row.contains("pi goes on. It is your turn."));
        goes_on.is_some_and(|at| rows[at..].iter().any(|row| row.contains("An empty line cancels.")))
    });
    pty.keys("\r");
    pty.wait_text("Cancelled.");
    pty.keys("/thinking\r");
    pty.wait_text("Thinking level");
    pty.keys("\x03");
    pty.wait("the list closed", |rows| rows.iter().filter(|row| row.contains("Cancelled.")).count() == 2);
    pty.keys("/quit\r");
    pty.wait("the shell", |rows| {
        let last = rows.iter().rposition(|row| !row.trim().is_empty());
        last.is_some_and(|last| rows[last].trim() == "shell>")
    });
    pty.keys("exit\r");
    pty.end();
}

/// The run has settled while the question waits.
#[tokio::test(flavor = "multi_thread")]
async fn question_about_a_limit_leaves_the_turn_to_its_answer() {
    let calls = || Reply::sse(chat::calls(&[("bash", json!({"command": "echo out"}))]));
    let server = SseServer::start([calls(), calls()]).await;
    let home = TestHome::with_server(server.url()).settings(&json!({ "budget": { "turns": 1 } }));
    let pty = started(&home);
    pty.keys("run both\r");
    pty.wait_text("The agent waits for your answer.");
    // Neither commands nor pasted lines answer it.
    pty.keys("/queue\r");
    pty.wait_text("The queue is empty.");
    pty.keys("/thinking\r");
    pty.wait_text("An empty line cancels.");
    pty.keys("\r");
    pty.wait_log("the question again", |log| log.matches("Blocked, pi asks:").count() == 2);
    pty.keys("a\rb\r");
    pty.wait_text("2 lines of yours wait until the question is answered.");
    pty.keys("2\r");
    pty.wait_text("Pasted 2 lines.");
    pty.keys("\x03");
    pty.wait_text("Discarded 2 lines that you pasted.");
    pty.wait_text("has taken 2 answers");
    pty.keys("1\r");
    pty.wait_text("It is your turn.");
    pty.keys("/quit\r");
    let (status, _, log) = pty.end();
    assert!(status.success());
    let text = written(&log);
    assert_eq!(text.matches("The agent waits for your answer.").count(), 2, "{text}");
    assert_eq!(text.matches("our turn.").count(), 1, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pasted_lines_are_one_prompt_that_waits_for_enter() {
    let replies = ["one", "two", "three"].map(|text| Reply::sse(chat::text(text)));
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    // The last line has no end, and is still on the input line.
    pty.keys("  fn a() {\r\r  /model\r  } \\\r}");
    pty.wait_text("Pasted 4 lines. Enter sends them; what you type before is added.");
    pty.keys("\r");
    pty.wait_text("Sending 5 lines.");
    pty.wait_text("Done. Your turn.");
    pty.keys("a\rb\r");
    pty.wait_text("Pasted 2 lines.");
    pty.keys("\x03");
    pty.wait_text("Discarded 2 lines that you pasted.");
    pty.keys("a question\r");
    pty.wait_log("the second answer", |log| log.matches("Done. Your turn.").count() == 2);
    pty.keys("/status\r/queue\r");
    pty.wait_text("The queue is empty.");
    pty.keys(&format!("a\r{}\r", "x".repeat(5_000)));
    pty.wait_text("not sent, because line 2 is too long");
    pty.keys("!echo a\recho b\r");
    pty.wait_text("Pasted 2 lines, a command. Enter runs them");
    pty.keys("\r");
    pty.wait_text("Your command is done.");
    pty.keys("/quit\r");
    let (status, _, log) = pty.end();
    assert!(status.success());
    assert!(!written(&log).contains('\x1b'));
    let last = |request: &RecordedRequest| request.body["messages"].as_array().unwrap().last().cloned();
    let prompts: Vec<_> =
        server.requests().iter().map(|request| last(request).unwrap()["content"].clone()).collect();
    assert_eq!(prompts, ["  fn a() {\n\n  /model\n  } \\\n}", "a question"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_ctrl_c_quits_with_the_command_that_resumes() {
    let gate = pi::ai::TestBarrier::new();
    let replies = [
        Reply::sse(chat::text("Hello.")),
        Reply::stream("text/event-stream").piece(chat::delta("A line.\n")).gate(&gate).piece(String::new()),
    ];
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let folder = home.home().join("elsewhere");
    let pty = Pty::start(&home, SIZE, &["--screen-reader", "--session-dir", folder.to_str().unwrap()]);
    pty.wait_text("Type a prompt, or /help.");
    pty.keys("hi there\r");
    pty.wait_text("Done. Your turn.");
    pty.keys("\x03");
    pty.wait_text("Press ctrl+c again to quit, or type /quit.");
    // A line between them was typed by somebody who stays.
    pty.keys("go on\r");
    pty.wait_text("A line.");
    pty.keys("\x03");
    pty.wait_log("the second offer", |log| log.matches("Press ctrl+c again to quit").count() == 2);
    pty.keys("\x03");
    let (status, _, log) = pty.end();
    assert!(status.success());
    let text = written(&log);
    assert!(text.contains("^C\nInterrupting.\nPress ctrl+c again to quit.\n"), "{text}");
    let line = text.trim_end().lines().last().unwrap();
    let command = format!("pi --session-dir {} --session ", folder.display());
    assert!(line.starts_with(&command), "{text}");
    assert!(text.ends_with('\n'), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_name_reads_the_list_in_which_commands_still_run() {
    let home = TestHome::with_server("http://127.0.0.1:9");
    let pty = started(&home);
    pty.keys("/model x/y\r");
    pty.wait_text("An empty line cancels.");
    pty.keys("zz\r");
    pty.wait_log("the instruction", |log| log.matches("An empty line cancels.").count() == 2);
    pty.keys("/queue\r");
    pty.wait_text("The queue is empty.");
    // The list is closed.
    pty.keys("\r/model local/m-1\r");
    pty.wait_text("Model local/m-1, thinking");
    pty.keys("/thinking zz\r");
    pty.wait_text("Thinking levels:");
    pty.keys("!echo mine\r");
    pty.wait_text("Your command is done.");
    pty.keys("/model x\r");
    pty.wait_text("Nothing is called “x”.");
    pty.keys("/quit\r");
    let (status, _, log) = pty.end();
    assert!(status.success());
    let text = written(&log);
    let instruction = "Type a number or part of a name. An empty line cancels.";
    assert!(
        text.contains(&format!(
            "Nothing is called “x/y”.\nModels:\n1. local/m-1, the current one\n2. demo/pi\n{instruction}\n"
        )),
        "{text}"
    );
    assert!(text.contains(&format!("Nothing is called “zz”.\n{instruction}\n/queue\n")), "{text}");
    assert!(text.contains("Nothing is called “zz”.\nThinking levels:\n1. off, the current one\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn name_of_the_session_is_read_by_name_and_status() {
    let home = TestHome::with_server("http://127.0.0.1:9");
    let pty = started(&home);
    pty.keys("/name\r");
    pty.wait_text("This session has no name; /name TEXT names it.");
    pty.keys("/name src/a\u{200b}b\r");
    pty.wait_text("This session is now called “src/a<U+200B>b”.");
    pty.keys("/name\r");
    pty.wait_text("This session is called “src/a<U+200B>b”.");
    pty.keys("/status\r");
    pty.wait_text("The requests cost $0.00.");
    pty.keys("/quit\r");
    let (_, _, log) = pty.end();
    let status =
        "It is your turn.\nThis session is called “src/a<U+200B>b”.\nModel local/m-1, thinking off.\n";
    assert!(written(&log).contains(status), "{}", written(&log));
}

#[tokio::test(flavor = "multi_thread")]
async fn exclamation_marks_alone_run_nothing() {
    let home = TestHome::with_server("http://127.0.0.1:9");
    let pty = started(&home);
    pty.keys("!\r");
    pty.wait_log("that nothing runs", |log| log.matches("Nothing to run").count() == 1);
    pty.keys("!! \r");
    pty.wait_log("it again", |log| log.matches("Nothing to run").count() == 2);
    pty.keys("!!echo hidden\r");
    pty.wait_text("Your command is done.");
    pty.keys("/history\r");
    pty.wait_text("Type /read with a number for the whole text.");
    pty.keys("/quit\r");
    let (_, _, log) = pty.end();
    let text = written(&log);
    let history = "1. Your command, which the model does not see: !!echo hidden\nType /read";
    assert!(text.contains(history), "{text}");
    assert!(!text.contains("2. Your command"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trust_is_decided_by_number_and_loads_the_skills() {
    let server = SseServer::start([Reply::sse(chat::text("Reviewed."))]).await;
    let home = TestHome::with_server(server.url());
    let skill = home.project().join(".pi/skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: review\ndescription: Reviews\n---\nLook.\n").unwrap();
    let pty = Pty::start(&home, SIZE, &["--screen-reader"]);
    pty.wait_text("An empty line means: Not now");
    // The question that is open is read again.
    ask(&pty, "/trust", "An empty line means: Not now");
    ask(&pty, "5", "It is your turn.");
    ask(&pty, "/skill:review it", "use /trust or --approve");
    ask(&pty, "/trust", "An empty line cancels.");
    ask(&pty, "1", "This folder is trusted.");
    ask(&pty, "/skill:review it", "Done. Your turn.");
    ask(&pty, "/trust", "It is currently trusted.");
    ask(&pty, "", "Cancelled.");
    pty.keys("/quit\r");
    let (_, _, log) = pty.end();
    let text = written(&log);
    assert!(text.contains("It contains .pi/skills.\n"), "{text}");
    assert!(
        text.contains("It is currently not trusted.\n1. Trust this folder\n2. Trust parent folder ("),
        "{text}"
    );
    assert!(text.contains("Reviewed."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_are_left_and_found_again_by_number() {
    let replies = ["First.", "Second.", "Third.", "Fourth."].map(|text| Reply::sse(chat::text(text)));
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    ask(&pty, "/tree", "There is no message of yours in this session yet.");
    ask(&pty, "say one", "Done. Your turn.");
    ask(&pty, "say two", "Done. Your turn.");
    ask(&pty, "/tree", "1. say two\r\n2. say one\r\nType a number");
    ask(&pty, "1", "Type it again, changed or not: say two");
    ask(&pty, "/last", "First.");
    ask(&pty, "say three", "Done. Your turn.");
    ask(&pty, "/tree", "3. The end of another branch after: say two");
    ask(&pty, "another", "The last answer was:\r\nSecond.");
    ask(&pty, "/fork", "2. say one\r\nType a number");
    ask(&pty, "1", "Type it again, changed or not: say two");
    ask(&pty, "say four", "Done. Your turn.");
    ask(&pty, "/clone", "The last answer was:\r\nFourth.");
    pty.keys("/quit\r");
    let (status, _, _) = pty.end();
    assert!(status.success());
    let prompts = |request: &RecordedRequest| -> Vec<String> {
        let messages = request.body["messages"].as_array().unwrap().clone();
        let of_user = messages.iter().filter(|message| message["role"] == "user");
        of_user.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let sent: Vec<_> = server.requests().iter().map(prompts).collect();
    assert_eq!(sent[2], ["say one", "say three"]);
    assert_eq!(sent[3], ["say one", "say four"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_pinned_and_a_session_is_handed_off() {
    let replies = ["First.", "## Goal\nPort it.", "Second."].map(|text| Reply::sse(chat::text(text)));
    let server = SseServer::start(replies).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    ask(&pty, "/pin", "Error: ");
    ask(&pty, "/unpin", "No message is pinned. /pin pins your latest one.");
    ask(&pty, "say one", "Done. Your turn.");
    ask(&pty, "/pin", "Pinned: the message stays word for word");
    ask(&pty, "/pin", "The message is pinned already.");
    ask(&pty, "/context", "1 of your messages is pinned.");
    ask(&pty, "/unpin", "No message is pinned any more.");
    ask(&pty, "/handoff", "Error: say what the new session is to do: /handoff GOAL");
    ask(&pty, "/handoff port it to Rust", "2. Leave it, to type another one");
    ask(&pty, "1", "Second.\r\nDone. Your turn.");
    pty.keys("/quit\r");
    let (_, _, log) = pty.end();
    let text = written(&log);
    assert!(text.contains("\nMessages: 4 tokens, 0.0 %\nyour messages: 2 tokens"), "{text}");
    assert!(text.contains("Drafting the prompt of a new session.\n"), "{text}");
    assert!(text.contains("its first prompt is drafted:\n## Goal\nPort it.\n1. Send it\n"), "{text}");
    let sent = &server.requests()[2].body["messages"];
    let of_user: Vec<_> =
        sent.as_array().unwrap().iter().filter(|message| message["role"] == "user").collect();
    assert_eq!(of_user.len(), 1, "{sent}");
    assert_eq!(of_user[0]["content"], "## Goal\nPort it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_reports_and_settings_are_lines() {
    let server = SseServer::start([Reply::sse(chat::text("Hello."))]).await;
    let home = TestHome::with_server(server.url());
    let templates = home.agent().join("prompts");
    fs::create_dir_all(&templates).unwrap();
    fs::write(templates.join("greet.md"), "Greet $1").unwrap();
    let pty = started(&home);
    ask(&pty, "/copy", "There is no answer to copy yet.");
    ask(&pty, "/export", "Error: there is nothing to export yet");
    ask(&pty, "/greet me", "Done. Your turn.");
    ask(&pty, "/copy", "Error: not copied: there is no clipboard");
    ask(&pty, "/export talk.txt", "Error: end the name of the file in .html, .md or .jsonl");
    ask(&pty, "/export talk.md", "Exported the session to ");
    ask(&pty, "/export talk.md", "exists already; choose another name");
    ask(&pty, "/import talk.html", "Error: ");
    ask(&pty, "/session", "Messages: 2 (1 from you, 1 answer");
    ask(&pty, "/doctor", "Programs and variables:");
    ask(&pty, "/settings", "And ");
    ask(&pty, "retry.maxRetries", "Type the value, or the word default.");
    ask(&pty, "many", "must be a whole number");
    ask(&pty, "7", "retry.maxRetries, 7, from ");
    ask(&pty, "/settings retry.maxRetries default", "retry.maxRetries, 3, the default.");
    ask(&pty, "/settings quietStartup", "2. false, the current one");
    ask(&pty, "1", "quietStartup, true, from ");
    ask(&pty, "/reload", "Reloaded settings, skills, templates and instructions.");
    ask(&pty, "/theme", "/theme needs the full screen");
    ask(&pty, "/setings", "did you mean /settings?");
    ask(&pty, "/gret", "did you mean /greet?");
    pty.keys("/quit\r");
    let (status, _, log) = pty.end();
    assert!(status.success());
    assert!(!written(&log).contains('\x1b'));
    assert!(fs::read_to_string(home.project().join("talk.md")).unwrap().contains("Greet me"));
    let settings = fs::read_to_string(home.agent().join("settings.json")).unwrap();
    assert!(settings.contains("quietStartup") && !settings.contains("maxRetries"), "{settings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_exported_only_as_the_user_decides() {
    let server = SseServer::start([Reply::sse(chat::text("Hello."))]).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    let secret = ["sk-ant-api03-", &"abcdefghijklmnopqrstuvwxyz0123456789".repeat(3)[..93], "AA"].concat();
    ask(&pty, &format!("use {secret}"), "Done. Your turn.");
    ask(&pty, "/export talk.md", "An empty line means: Don't export");
    ask(&pty, "", "Nothing was changed.");
    assert!(!home.project().join("talk.md").exists());
    ask(&pty, "/export talk.md", "An empty line means: Don't export");
    ask(&pty, "2", "Exported the session to ");
    pty.keys("/quit\r");
    pty.end();
    let exported = fs::read_to_string(home.project().join("talk.md")).unwrap();
    assert!(exported.contains("use ") && !exported.contains(&secret), "{exported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_leaves_a_working_session_asks_first() {
    let gate = pi::ai::TestBarrier::new();
    let answer = Reply::stream("text/event-stream")
        .piece(chat::delta("A first line.\n"))
        .gate(&gate)
        .piece(String::new());
    let server = SseServer::start([answer]).await;
    let home = TestHome::with_server(server.url());
    let pty = started(&home);
    ask(&pty, "begin", "A first line.");
    ask(&pty, "/new", "An empty line means: Keep working");
    ask(&pty, "", "Nothing was changed.");
    ask(&pty, "/status", "The agent works.");
    ask(&pty, "and then this", "1 message is queued.");
    ask(&pty, "/new", "2. Cancel the work and start a new session");
    ask(&pty, "2", "Session, model m-1.");
    ask(&pty, "/status", "It is your turn.");
    pty.keys("/quit\r");
    let (_, _, log) = pty.end();
    let text = written(&log);
    assert!(text.contains("Not sent, type it again if you still want it: and then this"), "{text}");
}
