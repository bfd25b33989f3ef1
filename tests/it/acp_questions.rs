//! Questions of a session through ACP mode: permissions of tool calls and limits of cost.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use pi::ai::{FakeAnswer, TestBarrier, Usage};
use pi::config::TrustPolicy;
use pi::modes::{AcpHost, AcpStart, serve_acp};
use pi::session::{PendingCall, Services, ToolGate, Verdict};
use pi::tools::Editor;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::agent_bench::TestTool;
use crate::support::session_bench::SessionBench;

/// All sessions of a bench.
struct BenchHost {
    services: Arc<Services>,
    folder: PathBuf,
}

impl AcpHost for BenchHost {
    fn services(&self, _cwd: &Path, _editor: Option<Arc<dyn Editor>>) -> Arc<Services> {
        Arc::clone(&self.services)
    }

    fn folder(&self, _cwd: &Path) -> PathBuf {
        self.folder.clone()
    }

    fn root(&self) -> PathBuf {
        self.folder.clone()
    }
}

/// The other end of the pipes.
struct Ends {
    input: PipeWriter,
    output: BufReader<PipeReader>,
}

impl Ends {
    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next message that `is_it`, and those before it.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the output ended after {before:#?}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_it(&message) {
                return (message, before);
            }
            before.push(message);
        }
    }

    fn response(&mut self, id: &str) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none()).0
    }

    /// The next question.
    fn asked(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission").0
    }

    fn choose(&mut self, asked: &Value, option: &str) {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        self.send(&json!({ "id": asked["id"], "result": { "outcome": outcome } }));
    }

    fn prompt(&mut self, id: &str, session: &str) {
        self.send(&json!({ "id": id, "method": "session/prompt",
            "params": { "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] } }));
    }
}

/// Serves the bench, and opens a session.
async fn open(bench: &SessionBench) -> (JoinHandle<ExitCode>, Ends, String) {
    let folder = bench.path("sessions");
    let host = Arc::new(BenchHost { services: Arc::new(bench.services()), folder });
    let (program_input, input) = std::io::pipe().unwrap();
    let (output, program_output) = std::io::pipe().unwrap();
    let start = AcpStart { host, program: None, problems: Vec::new() };
    let server = tokio::spawn(serve_acp(start, program_input, program_output, std::future::pending()));
    let cwd = bench.path("work");
    let opening = tokio::task::spawn_blocking(move || {
        let mut ends = Ends { input, output: BufReader::new(output) };
        ends.send(&json!({ "id": "i", "method": "initialize", "params": { "protocolVersion": 1 } }));
        ends.response("i");
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        ends.send(&json!({ "id": "n", "method": "session/new", "params": params }));
        let opened = ends.response("n");
        let session = opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        (ends, session)
    });
    let (ends, session) = opening.await.unwrap();
    (server, ends, session)
}

/// Serves the bench, and runs `dialogue` with an open session of it.
async fn serve(bench: SessionBench, dialogue: impl FnOnce(&mut Ends, &str) + Send + 'static) {
    let (server, mut ends, session) = open(&bench).await;
    tokio::task::spawn_blocking(move || dialogue(&mut ends, &session)).await.unwrap();
    assert_eq!(server.await.unwrap(), ExitCode::SUCCESS);
}

#[tokio::test]
async fn client_that_closes_its_end_of_the_output_ends_the_program_which_saves() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate))]);
    let (server, mut ends, session) = open(&bench).await;
    ends.prompt("p", &session);
    gate.reached().await;
    let Ends { input, output } = ends;
    drop(output);
    gate.open();
    assert_eq!(server.await.unwrap(), ExitCode::SUCCESS);
    drop(input);
    let files = std::fs::read_dir(bench.path("sessions")).unwrap();
    let saved: String = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert!(saved.contains("half"), "{saved}");
}

/// Asks about every call.
struct AskAlways;

impl ToolGate for AskAlways {
    fn check(&self, pending: &PendingCall<'_>) -> Verdict {
        Verdict::Ask { text: format!("May it say {}?", pending.arguments["text"]) }
    }
}

fn asking() -> SessionBench {
    let call = FakeAnswer::new().tool_call("a", "say", json!({ "text": "x" }));
    SessionBench::new([call, FakeAnswer::of_text("ok")])
        .tools([TestTool::say()])
        .gate(AskAlways)
        .trust(TrustPolicy { can_ask: true, ..TrustPolicy::default() })
}

#[tokio::test]
async fn call_that_needs_permission_runs_when_the_client_allows_it() {
    serve(asking(), |ends, session| {
        ends.prompt("p", session);
        let asked = ends.asked();
        let call = &asked["params"]["toolCall"];
        assert_eq!((&call["toolCallId"], &call["title"]), (&json!("a"), &json!("May it say \"x\"?")));
        assert_eq!((&call["status"], &call["rawInput"]), (&json!("pending"), &json!({ "text": "x" })));
        let options = json!([
            { "optionId": "0", "name": "Allow", "kind": "allow_once" },
            { "optionId": "1", "name": "Don't allow", "kind": "reject_once" },
        ]);
        assert_eq!(asked["params"]["options"], options);
        ends.choose(&asked, "0");
        let (end, _) = ends.until(|message| message["params"]["update"]["status"] == "completed");
        assert_eq!(end["params"]["update"]["content"][0]["content"]["text"], "x");
        assert_eq!(ends.response("p")["result"]["stopReason"], "end_turn");
    })
    .await;
}

#[tokio::test]
async fn call_is_blocked_when_the_client_rejects_or_cannot_ask() {
    for answer in [
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "1" } } }),
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "maybe" } } }),
        json!({ "result": { "outcome": { "outcome": "cancelled" } } }),
        json!({ "result": 7 }),
        json!({ "error": { "code": -32601, "message": "no such method" } }),
    ] {
        serve(asking(), move |ends, session| {
            ends.prompt("p", session);
            let mut answer = answer;
            answer["id"] = ends.asked()["id"].clone();
            ends.send(&answer);
            let (end, _) = ends.until(|message| message["params"]["update"]["status"] == "failed");
            let text = end["params"]["update"]["content"][0]["content"]["text"].as_str().unwrap();
            assert!(text.contains("did not allow"), "{text}");
            assert_eq!(ends.response("p")["result"]["stopReason"], "end_turn");
        })
        .await;
    }
}

#[tokio::test]
async fn cancelling_withdraws_the_question() {
    serve(asking(), |ends, session| {
        ends.prompt("p", session);
        let asked = ends.asked();
        ends.send(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
        let (response, before) =
            ends.until(|message| message["id"] == "p" && message.get("method").is_none());
        assert_eq!(response["result"]["stopReason"], "cancelled");
        let failed = before.iter().any(|message| message["params"]["update"]["status"] == "failed");
        assert!(failed, "{before:#?}");
        // The client answers what it was asked; nobody waits for it any more.
        let outcome = json!({ "outcome": { "outcome": "cancelled" } });
        ends.send(&json!({ "id": asked["id"], "result": outcome }));
        ends.prompt("q", session);
        assert_eq!(ends.response("q")["result"]["stopReason"], "end_turn");
    })
    .await;
}

fn costing(answer: FakeAnswer) -> FakeAnswer {
    let mut usage = Usage { input: 10, output: 1, total_tokens: 11, ..Usage::default() };
    usage.cost.total = 2.0;
    usage.cost.total_from_provider = Some(true);
    answer.usage(usage)
}

/// A bench whose first answer exceeds the limit of cost.
fn expensive() -> SessionBench {
    let call = FakeAnswer::new().tool_call("a", "say", json!({ "text": "x" }));
    SessionBench::new([costing(call), FakeAnswer::of_text("done")])
        .tools([TestTool::say()])
        .settings(json!({ "budget": { "turnUsd": 1 } }))
        .trust(TrustPolicy { can_ask: true, ..TrustPolicy::default() })
}

#[tokio::test]
async fn prompt_at_a_limit_of_cost_continues_or_ends_as_the_user_says() {
    serve(expensive(), |ends, session| {
        ends.prompt("p", session);
        let asked = ends.asked();
        assert_eq!(asked["params"]["options"][0]["kind"], "reject_once");
        ends.choose(&asked, "0");
        let response = ends.response("p");
        assert_eq!(response["result"]["stopReason"], "max_turn_requests", "{response}");
    })
    .await;
    serve(expensive(), |ends, session| {
        ends.prompt("p", session);
        let asked = ends.asked();
        ends.choose(&asked, "1");
        let response = ends.response("p");
        assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    })
    .await;
    serve(expensive(), |ends, session| {
        ends.prompt("p", session);
        ends.asked();
        ends.send(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
        assert_eq!(ends.response("p")["result"]["stopReason"], "cancelled");
    })
    .await;
}
