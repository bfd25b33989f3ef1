//! What the model gets beside the conversation: prompt files, `/context`, and the size of the
//! first request.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use pi::ai::{FakeAnswer, request_body, system_state};
use pi::config::{Trust, TrustDefault, TrustPolicy};
use pi::session::{ContextReport, Reply, SessionCommand, TrustChoice};
use serde_json::json;

use crate::support::chat;
use crate::support::dialects::{self, ROWS};
use crate::support::program::{pi, run};
use crate::support::pty::TestHome;
use crate::support::rpc_client::RpcClient;
use crate::support::session_bench::{Session, SessionBench};
use crate::support::sse_server::{Reply as Answer, SseServer};

/// Most tokens of prompt and tools in the first request of a session without project files.
const MAX_FIRST_TOKENS: usize = 1_500;

fn put(bench: &SessionBench, path: &str, text: &str) {
    let path = bench.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A section of the prompt in the last request; empty if it is not there.
fn section(bench: &SessionBench, name: &str) -> String {
    let requests = bench.provider.requests();
    let said = system_state(&requests.last().unwrap().messages);
    said.sections.iter().find(|(other, _)| other == name).map(|(_, text)| text.clone()).unwrap_or_default()
}

async fn report(session: &Session) -> ContextReport {
    match session.request(SessionCommand::DescribeContext).await.unwrap() {
        Reply::ContextReport(report) => *report,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn prompt_files_of_a_project_count_once_it_is_trusted() {
    let bench = SessionBench::new(["1", "2", "3"].map(FakeAnswer::of_text)).prompt("").trust(TrustPolicy {
        flag: None,
        default: TrustDefault::Ask,
        can_ask: true,
    });
    put(&bench, "agent/SYSTEM.md", "Mine.");
    put(&bench, "agent/APPEND_SYSTEM.md", "And mine.");
    put(&bench, "work/.pi/SYSTEM.md", "Theirs.");
    let mut session = bench.start().await;
    assert_eq!(session.handle.state().project.trust, Trust::Undecided);
    session.ask("before").await;
    assert_eq!(section(&bench, "preamble"), "Mine.");
    assert_eq!(section(&bench, "addendum"), "<addendum>\nAnd mine.\n</addendum>");
    assert_eq!(section(&bench, "tools"), "", "a prompt of the user replaces the list of tools");
    session.request(SessionCommand::DecideTrust { choice: TrustChoice::Session }).await.unwrap();
    session.ask("after").await;
    assert_eq!(section(&bench, "preamble"), "Theirs.");
    assert_eq!(section(&bench, "addendum"), "<addendum>\nAnd mine.\n</addendum>");
    fs::remove_file(bench.path("work/.pi/SYSTEM.md")).unwrap();
    fs::remove_file(bench.path("agent/SYSTEM.md")).unwrap();
    session.request(SessionCommand::Reload).await.unwrap();
    session.ask("reloaded").await;
    assert!(section(&bench, "preamble").starts_with("You are a coding assistant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_replace_prompt_files_and_name_texts_or_files() {
    let server = SseServer::start((0..3).map(|_| Answer::sse(chat::text("ok")))).await;
    let home = TestHome::with_server(server.url());
    fs::create_dir_all(home.agent()).unwrap();
    fs::write(home.agent().join("SYSTEM.md"), "From the file.").unwrap();
    fs::write(home.agent().join("APPEND_SYSTEM.md"), "Appended.").unwrap();
    fs::write(home.project().join("AGENTS.md"), "Use tabs.").unwrap();
    fs::write(home.project().join("given.md"), "Given.\n").unwrap();
    let prompt = |server: &SseServer| {
        let body = server.requests().last().unwrap().body.clone();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    for (args, parts, missing) in [
        (&[][..], &["From the file.", "Appended.", "Use tabs."][..], "Given."),
        (&["--system-prompt", "given.md", "-nc"], &["Given.", "Appended."], "Use tabs."),
        (
            &["--append-system-prompt", "One.", "--append-system-prompt", "given.md"],
            &["From the file.", "<addendum>\nOne.\n\nGiven.\n</addendum>"],
            "Appended.",
        ),
    ] {
        let (output, told) = run(pi(&home, &[args, &["-p", "hi"]].concat()), None).await;
        assert!(output.status.success() && told.is_empty(), "{args:?}: {told}");
        let prompt = prompt(&server);
        assert!(parts.iter().all(|part| prompt.contains(part)), "{args:?}: {prompt}");
        assert!(!prompt.contains(missing), "{args:?}: {prompt}");
    }
}

#[tokio::test]
async fn context_names_every_part_of_the_next_request() {
    let bench = SessionBench::new(["An answer."].map(FakeAnswer::of_text)).prompt("").builtin_tools();
    bench.skill("agent/skills/greet", "---\nname: greet\ndescription: Says hello\n---\n");
    put(&bench, "agent/prompts/fix.md", "Fix it.");
    let mut session = bench.start().await;
    let names = |report: &ContextReport| -> Vec<String> {
        report.parts.iter().map(|part| part.name.clone()).collect()
    };
    let before = report(&session).await;
    assert_eq!(names(&before), ["System prompt", "Tools", "Skills"]);
    assert_eq!((before.n_templates, before.counted), (1, None));
    let tools: Vec<&str> = before.parts[1].items.iter().map(|item| item.name.as_str()).collect();
    assert!(tools.starts_with(&["read", "bash", "edit", "write"]), "{tools:?}");
    session.ask(&"word ".repeat(400)).await;
    let after = report(&session).await;
    assert_eq!(names(&after), ["System prompt", "Tools", "Skills", "Messages"]);
    assert_eq!(before.parts[..3], after.parts[..3], "the prompt is the same");
    assert!(after.parts[3].tokens >= 500, "{after:?}");
    assert_eq!(after.tokens, after.parts.iter().map(|part| part.tokens).sum::<u64>());
}

#[tokio::test(flavor = "multi_thread")]
async fn context_is_read_by_rpc() {
    let server = SseServer::start([]).await;
    let home = TestHome::with_server(server.url());
    fs::write(home.project().join("AGENTS.md"), "Use tabs.").unwrap();
    let answer = tokio::task::spawn_blocking({
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        move || client.request(json!({ "type": "get_context" }), "c")
    });
    let data = answer.await.unwrap()["data"].clone();
    let names: Vec<&str> =
        data["parts"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["System prompt", "Tools", "Instruction files"]);
    let file = &data["parts"][2]["items"][0];
    assert!(
        file["name"].as_str().unwrap().ends_with("/AGENTS.md") && file["tokens"].as_u64() > Some(0),
        "{file}"
    );
}

/// Counted with a tokenizer of OpenAI; those of other vendors give similar numbers for English
/// and JSON.
#[tokio::test]
async fn first_request_without_project_files_costs_few_tokens_in_every_api() {
    let bench = SessionBench::new(["1"].map(FakeAnswer::of_text)).prompt("").default_tools();
    let mut session = bench.start().await;
    session.ask("hi").await;
    let messages: Vec<_> = bench.provider.requests()[0].messages.clone();
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    for row in ROWS {
        let mut request = dialects::request(dialects::model(*row, "http://x"), &[]);
        request.messages.clone_from(&messages);
        request
            .messages
            .retain(|message| matches!(**message, pi::ai::Message::System(_) | pi::ai::Message::User(_)));
        let body = serde_json::from_slice(&request_body(&request).unwrap()).unwrap();
        let prefix = row.prefix(&body);
        assert!(
            prefix.system.contains("coding assistant") || prefix.messages[0].contains("coding assistant")
        );
        assert_eq!(prefix.tools.len(), 4, "{}", row.api());
        // All of it, with the message "hi".
        let text = [&[prefix.system][..], &prefix.tools, &prefix.messages].concat().join("\n");
        let n_tokens = tokenizer.encode_ordinary(&text).len();
        assert!(n_tokens > 500 && n_tokens <= MAX_FIRST_TOKENS, "{}: {n_tokens} tokens", row.api());
    }
}
