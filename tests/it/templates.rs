//! Prompt templates: calls in every front end, trust, settings, `/reload`.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;

use pi::ai::{FakeAnswer, TestBarrier};
use pi::config::{Trust, TrustDefault, TrustPolicy};
use pi::session::{Reply, SessionCommand, TakenQueue, TrustChoice, WhenBusy};
use serde_json::json;

use crate::support::chat;
use crate::support::program::{pi, run};
use crate::support::pty::TestHome;
use crate::support::rpc_client::RpcClient;
use crate::support::session_bench::{Session, SessionBench, sent};
use crate::support::sse_server::{Reply as Answer, SseServer};

fn bench<const N: usize>(answers: [&str; N]) -> SessionBench {
    SessionBench::new(answers.map(FakeAnswer::of_text))
}

fn put(bench: &SessionBench, path: &str, text: &str) {
    let path = bench.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(session: &Session) -> Vec<String> {
    session.handle.state().templates.iter().map(|template| template.name.clone()).collect()
}

fn last_sent(bench: &SessionBench) -> String {
    sent(bench.provider.requests().last().unwrap()).pop().unwrap()
}

#[tokio::test]
async fn a_call_sends_the_template_with_its_arguments() {
    let bench = bench(["1", "2", "3"]);
    put(&bench, "agent/prompts/fix.md", "---\ndescription: Fixes\n---\nFix $1 in ${2:-all files}.\n");
    let mut session = bench.start().await;
    session.ask("/fix 'the bug' a.rs").await;
    assert_eq!(last_sent(&bench), "user Fix the bug in a.rs.");
    session.ask("/fix it").await;
    assert_eq!(last_sent(&bench), "user Fix it in all files.");
    // Any other text that begins with a slash is a message.
    session.ask("/fixed it").await;
    assert_eq!(last_sent(&bench), "user /fixed it");
}

#[tokio::test]
async fn a_queued_call_is_what_the_template_said_then_and_comes_back_as_typed() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([
        FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate)),
        FakeAnswer::of_text("done"),
    ]);
    put(&bench, "agent/prompts/fix.md", "Fix $@.");
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    assert_eq!(session.say("/fix a", WhenBusy::FollowUp).await, Reply::Queued);
    let taken = session.request(SessionCommand::TakeQueue).await.unwrap();
    let follow_up = vec!["/fix a".into()];
    assert_eq!(taken, Reply::Queue(TakenQueue { follow_up, ticket: 1, ..TakenQueue::default() }));
    assert_eq!(session.say("/fix b", WhenBusy::FollowUp).await, Reply::Queued);
    put(&bench, "agent/prompts/fix.md", "Break $@.");
    gate.open();
    session.settled().await;
    assert_eq!(last_sent(&bench), "user Fix b.");
}

#[tokio::test]
async fn templates_of_a_project_wait_for_trust() {
    let bench = bench(["1"]).trust(TrustPolicy { flag: None, default: TrustDefault::Ask, can_ask: true });
    put(&bench, "work/.pi/prompts/own.md", "Own.");
    put(&bench, "work/.pi/settings.json", r#"{"prompts": ["more"]}"#);
    put(&bench, "work/.pi/more/other.md", "Other.");
    put(&bench, "agent/prompts/mine.md", "Mine.");
    let session = bench.start().await;
    assert_eq!(
        (session.handle.state().project.trust, names(&session)),
        (Trust::Undecided, vec!["mine".to_owned()])
    );
    session.request(SessionCommand::DecideTrust { choice: TrustChoice::Folder }).await.unwrap();
    assert_eq!(names(&session), ["mine", "other", "own"]);
}

#[tokio::test]
async fn a_project_with_templates_alone_asks_for_trust_or_says_what_it_lacks() {
    let bench = bench([]).trust(TrustPolicy { flag: None, default: TrustDefault::Ask, can_ask: true });
    put(&bench, "work/.pi/prompts/own.md", "Own.");
    let session = bench.start().await;
    assert_eq!(session.handle.state().project.trust, Trust::Undecided);
    session.shut_down().await;
    let bench = bench.trust(TrustPolicy::default());
    let mut session = bench.start().await;
    let expected = "Warning: prompt templates in .pi/prompts are not loaded because this folder isn't trusted; \
                    --approve loads them";
    assert_eq!(session.waiting()[1..], [expected]);
}

#[tokio::test]
async fn reload_reads_templates_again() {
    let bench = bench(["1"]);
    let mut session = bench.start().await;
    assert_eq!(names(&session), [""; 0]);
    put(&bench, "agent/prompts/fix.md", "Fix it.");
    put(&bench, "agent/prompts/bad.md", "---\n[\n---\n");
    session.request(SessionCommand::Reload).await.unwrap();
    assert_eq!(names(&session), ["fix"]);
    let told = session.waiting();
    assert!(
        told.iter().any(|line| line.contains("prompts/bad.md:2: the prompt template is not loaded: ")),
        "{told:?}"
    );
    session.ask("/fix").await;
    assert_eq!(last_sent(&bench), "user Fix it.");
}

#[tokio::test]
async fn text_that_is_nearly_a_placeholder_is_sent_and_reported_once() {
    let bench = bench(["1", "2"]);
    put(&bench, "agent/prompts/fix.md", "Fix ${1} and $1 in ${HOME}.");
    let mut session = bench.start().await;
    let told = session.ask("/fix a").await;
    assert_eq!(last_sent(&bench), "user Fix ${1} and a in ${HOME}.");
    let is_it =
        |line: &&String| line.contains("prompts/fix.md: ${1} is no placeholder and is sent as it is; ");
    assert_eq!(told.iter().filter(is_it).count(), 1, "{told:?}");
    assert_eq!(session.ask("/fix b").await.iter().filter(is_it).count(), 0);
}

#[tokio::test]
async fn a_template_that_cannot_be_read_is_refused_and_nothing_is_sent() {
    let bench = bench([]);
    put(&bench, "agent/prompts/fix.md", "Fix it.");
    let session = bench.start().await;
    fs::remove_file(bench.path("agent/prompts/fix.md")).unwrap();
    let refused = session.request(crate::support::session_bench::prompt("/fix x", WhenBusy::Steer)).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the prompt template \"fix\": "), "{error}");
    assert_eq!(bench.provider.requests().len(), 0);
}

// The program.

fn last_message(server: &SseServer) -> String {
    let body = server.requests().last().unwrap().body.clone();
    let message = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    message.as_str().map(str::to_owned).unwrap_or_else(|| message[0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn print_and_json_mode_call_templates() {
    let server = SseServer::start((0..5).map(|_| Answer::sse(chat::text("ok")))).await;
    let home = TestHome::with_server(server.url());
    fs::create_dir_all(home.agent().join("prompts")).unwrap();
    fs::write(home.agent().join("prompts/review.md"), "Review $1 for bugs.").unwrap();
    fs::write(home.project().join("extra.md"), "Extra.").unwrap();
    let piped = Some("line one\n  line two\n");
    for (args, piped, said) in [
        (&["-p", "/review main"][..], None, "Review main for bugs."),
        (&["--mode", "json", "/review main"], None, "Review main for bugs."),
        (&["-p", "/review this"], piped, "Review this for bugs.\n\nline one\n  line two"),
        (&["-np", "--prompt-template", "extra.md", "-p", "/extra"], None, "Extra."),
        (&["-np", "-p", "/review main"], None, "/review main"),
    ] {
        let (output, told) = run(pi(&home, args), piped).await;
        assert!(output.status.success() && told.is_empty(), "{args:?}: {told}");
        assert_eq!(last_message(&server), said, "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rpc_mode_lists_and_calls_templates() {
    let server = SseServer::start([Answer::sse(chat::text("ok"))]).await;
    let home = TestHome::with_server(server.url());
    fs::create_dir_all(home.agent().join("prompts")).unwrap();
    let text = "---\ndescription: Reviews\nargument-hint: <file>\n---\nReview $@.";
    fs::write(home.agent().join("prompts/review.md"), text).unwrap();
    let answer = tokio::task::spawn_blocking({
        let mut client = RpcClient::start(&home, &["--mode", "rpc"]);
        move || {
            let answer = client.request(json!({ "type": "get_commands" }), "c");
            client.send(&json!({ "type": "prompt", "message": "/review a b" }));
            client.until(|line| line["type"] == "agent_settled");
            answer
        }
    });
    let answer = answer.await.unwrap();
    let path = home.agent().join("prompts");
    let expected = json!([{
        "name": "review",
        "description": "Reviews",
        "source": "prompt",
        "sourceInfo": {
            "path": path.join("review.md"), "source": "local", "scope": "user", "origin": "top-level", "baseDir": path,
        },
    }]);
    assert_eq!(answer["data"]["commands"], expected);
    assert_eq!(last_message(&server), "Review a b.");
}
