//! The session task: its storage, retries, queues and events.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pi::agent::{AgentEvent, QueueKind, QueueSlot, Tool, ToolOutput};
use pi::ai::{FakeAnswer, Image, Message, Request, TestBarrier, ThinkingLevel, Usage, system_state};
use pi::config::{Trust, TrustPolicy};
use pi::session::{
    IfBusy, OpenError, OpenSession, OtherCommands, PendingCall, Phase, PromptDraft, Question, QuestionKind,
    Refusal, Reply, Scope, SessionCommand, SessionError, SessionEvent, TRUST_OPTIONS, TakenQueue, ToolGate,
    TrustChoice, Verdict, WhenBusy,
};
use serde_json::json;

use crate::recovery::picture;
use crate::support::agent_bench::{TestTool, message_line};
use crate::support::faults::disk::TrialDisk;
use crate::support::faults::trial;
use crate::support::faulty_disk::FaultyDisk;
use crate::support::session_bench::{START_MS, Session, SessionBench, entries, entry_line, prompt, sent};

fn says(id: &str, text: &str) -> FakeAnswer {
    FakeAnswer::new().tool_call(id, "say", json!({ "text": text }))
}

fn texts<const N: usize>(texts: [&str; N]) -> [FakeAnswer; N] {
    texts.map(FakeAnswer::of_text)
}

/// An answer of two pieces with a stop between them.
fn half(gate: &TestBarrier) -> FakeAnswer {
    FakeAnswer::new().text_pieces(&["half", " whole"], Some(gate))
}

fn is_end_of_answer(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Agent(AgentEvent::MessageEnd(message)) if matches!(**message, Message::Assistant(_)))
}

fn set_model(reference: &str) -> SessionCommand {
    SessionCommand::SetModel { reference: reference.to_owned(), scope: Scope::Session }
}

fn bash(command: &str) -> SessionCommand {
    SessionCommand::RunBash {
        command: command.to_owned(),
        exclude_from_context: false,
        others: OtherCommands::Refuse,
    }
}

// The journal.

#[tokio::test]
async fn a_prompt_with_tools_is_stored_in_order_and_before_it_is_shown() {
    let bench =
        SessionBench::new([says("a", "x").tool_call("b", "none", json!({})), FakeAnswer::of_text("ok")])
            .tools([TestTool::say()]);
    let mut session = bench.start().await;
    assert_eq!(session.waiting(), ["opened with 0 after Some(0)"]);
    assert!(!session.handle.state().on_disk);
    assert!(!session.path().exists(), "the session has no messages");
    // `Session` checks every event against the file.
    let lines = session.ask("go").await;
    assert_eq!(lines.first().unwrap(), "agent start");
    assert_eq!(lines.last().unwrap(), "settled");
    assert_eq!(
        session.on_disk(),
        [
            "model acme/m-1",
            "thinking medium",
            "system",
            "user go",
            "answer [a][b]",
            "result b failed: Tool none not found. Available tools: say",
            "result a: x",
            "answer ok",
        ]
    );
    let entries = entries(&session.path());
    assert_eq!(entries[0].parent_id, None);
    assert!(entries.windows(2).all(|pair| pair[1].parent_id.as_ref() == Some(&pair[0].id)));
    let totals = session.handle.state().totals.clone();
    let counts = [totals.n_user, totals.n_assistant, totals.n_tool_calls, totals.n_tool_results];
    assert_eq!(counts, [1, 2, 2, 2]);
}

/// Results are stored as their calls finish, and asked about in the order of the calls.
#[tokio::test]
async fn kill_between_parallel_results_keeps_the_first() {
    let gates = [TestBarrier::new(), TestBarrier::new()];
    let wait = |id: &str, gate: u64| (id.to_owned(), json!({ "gate": gate }));
    let answer = [wait("a", 0), wait("b", 1)]
        .into_iter()
        .fold(FakeAnswer::new(), |answer, (id, arguments)| answer.tool_call(&id, "wait", arguments));
    let bench = SessionBench::new([vec![answer], texts(["1", "2", "3"]).to_vec()].concat())
        .tools([TestTool::wait(&gates)]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gates[1].open();
    let is_end = |event: &SessionEvent| matches!(event, SessionEvent::Agent(AgentEvent::ToolEnd { .. }));
    session.until(is_end).await;
    // The state after a kill.
    let killed = bench.path("killed.jsonl");
    fs::copy(session.path(), &killed).unwrap();
    gates[0].open();
    session.settled().await;
    assert_eq!(session.on_disk()[4..], ["answer [a][b]", "result b: waited", "result a: waited", "answer 1"]);
    let asked = |at: usize| -> Vec<String> {
        bench.provider.requests()[at].messages.iter().map(|message| message_line(message)).collect()
    };
    assert_eq!(asked(1)[2..], ["answer [a][b]", "result a: waited", "result b: waited"]);
    session.ask("again").await;
    assert_eq!(asked(2)[2..5], asked(1)[2..], "read from the file as well");

    let mut session = bench.resume(&killed).await;
    session.ask("more").await;
    assert_eq!(asked(3)[2..], ["answer [a][b]", "result b: waited", "user more"]);
}

#[tokio::test]
async fn a_tool_result_is_one_object_from_the_tool_to_the_next_prompt() {
    let bench = SessionBench::new([vec![says("a", "x")], texts(["1", "2"]).to_vec()].concat())
        .tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    let result_of = |message: &Message| match message {
        Message::ToolResult(result) => Some(Arc::clone(result)),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    };
    let is_end = |event: &SessionEvent| matches!(event, SessionEvent::Agent(AgentEvent::ToolEnd { .. }));
    let SessionEvent::Agent(AgentEvent::ToolEnd { result, .. }) = session.until(is_end).await else {
        panic!("not the end of the call");
    };
    let is_message = |event: &SessionEvent| matches!(event, SessionEvent::Agent(AgentEvent::MessageEnd(message)) if result_of(message).is_some());
    let SessionEvent::Agent(AgentEvent::MessageEnd(message)) = session.until(is_message).await else {
        panic!("not the message");
    };
    assert!(Arc::ptr_eq(&result_of(&message).unwrap(), &result), "the message");
    session.settled().await;
    session.ask("again").await;
    for (at, from) in [(1, "the loop"), (2, "the session")] {
        let request = &bench.provider.requests()[at];
        let sent = request.messages.iter().find_map(|message| result_of(message)).unwrap();
        assert!(Arc::ptr_eq(&sent, &result), "request {at}, from {from}");
    }
}

#[tokio::test]
async fn the_prompt_is_said_once_and_only_changes_after_that() {
    let mut bench = SessionBench::new(texts(["1", "2", "3"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let path = session.path();
    session.shut_down().await;
    // The next program has one more tool.
    bench = bench.tools([TestTool::say()]);
    let mut session = bench.resume(&path).await;
    session.ask("three").await;
    assert_eq!(
        session.on_disk()[2..],
        ["system", "user one", "answer 1", "user two", "answer 2", "system", "user three", "answer 3"]
    );
    let messages = &bench.provider.requests()[2].messages;
    let Message::System(change) = &*messages[messages.len() - 2] else { panic!("not the change") };
    assert_eq!((change.sections.is_none(), change.tools_added.len()), (true, 1));
    assert!(system_state(messages).prompt().contains("Be brief."));
}

/// The names of the tools a request declares, in order.
fn declared(request: &Request) -> Vec<String> {
    system_state(&request.messages).tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn tools_come_and_go_while_a_session_runs() {
    let gate = TestBarrier::new();
    let calls = [says("a", "x").gate(&gate), FakeAnswer::new().tool_call("b", "late", json!({}))];
    let answers = [calls.to_vec(), vec![says("c", "y")], texts(["ok", "bye", "new"]).to_vec()].concat();
    let bench = SessionBench::new(answers).tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    // The name is made while the program runs.
    let late: Arc<dyn Tool> =
        Arc::new(TestTool::new(&["la", "te"].concat(), |_, _| async { Ok(ToolOutput::text("here")) }));
    session.request(SessionCommand::AddTool { tool: Arc::clone(&late) }).await.unwrap();
    session.request(SessionCommand::RemoveTool { name: "say".to_owned() }).await.unwrap();
    assert_eq!(session.handle.state().tools[..], ["late"]);
    gate.open();
    let lines = session.settled().await;
    for result in
        ["tool end a: x", "tool end b: here", "tool end c failed: Tool say not found. Available tools: late"]
    {
        assert!(lines.contains(&result.to_owned()), "{result} {lines:?}");
    }
    let requests = bench.provider.requests();
    let names: Vec<Vec<String>> = requests.iter().map(|request| declared(request)).collect();
    assert_eq!(names, [vec!["say"], vec!["late"], vec!["late"], vec!["late"]]);
    // The change is a message between the turns, and what was sent before stays as it was.
    assert_eq!(requests[1].messages[..2], requests[0].messages[..]);
    assert!(matches!(*requests[1].messages[4], Message::System(_)), "{:?}", requests[1].messages);

    // A tool that was added is there in the next session too; one that was removed is not.
    session.ask("more").await;
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(session.handle.state().tools[..], ["late"]);
    session.ask("again").await;
    assert_eq!(declared(&bench.provider.requests()[5]), ["late"]);
}

#[tokio::test]
async fn a_tool_that_providers_would_reject_is_refused() {
    let bench = SessionBench::new(texts(["ok"])).tools([TestTool::say()]);
    let mut session = bench.start().await;
    let check = async |tool: TestTool, expected: &str| {
        let refused = session.request(SessionCommand::AddTool { tool: Arc::new(tool) }).await;
        assert_eq!(refused.unwrap_err().to_string(), expected);
    };
    let tool = |name: &str| TestTool::new(name, |_, _| async { Ok(ToolOutput::default()) });
    check(tool("a b"), "the tool name \"a b\" is invalid: use 1 to 64 letters, digits, _ or -").await;
    check(
        tool("list").parameters(json!({"type": "array"})),
        "the parameters of the tool list are invalid: their schema must have the type object",
    )
    .await;
    let refused = session.request(SessionCommand::RemoveTool { name: "none".to_owned() }).await;
    assert_eq!(refused.unwrap_err().to_string(), "there is no tool none");
    session.ask("go").await;
    assert_eq!(declared(&bench.provider.requests()[0]), ["say"]);
}

#[tokio::test]
async fn a_session_in_memory_works_without_a_file() {
    let bench = SessionBench::new(texts(["ok"])).in_memory();
    let mut session = bench.start().await;
    session.ask("go").await;
    assert_eq!(session.handle.state().path, None);
    assert!(!bench.path("sessions").exists());
}

#[tokio::test]
async fn a_session_of_the_original_goes_on_where_it_ended() {
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions/tools3.jsonl");
    let original = fs::read_to_string(original).unwrap();
    let (_, lines) = original.split_once('\n').unwrap();
    let bench = SessionBench::new(texts(["ok"]));
    let path = bench.session_file(lines);
    let before = fs::read_to_string(&path).unwrap();
    let mut session = bench.resume(&path).await;
    let opened = session.opened().await;
    assert_eq!(opened.n_earlier, Some(0));
    let n_before = opened.tail.len();
    session.ask("go on").await;
    assert!(fs::read_to_string(&path).unwrap().starts_with(&before), "what was there is untouched");
    let entries = entries(&path);
    assert_eq!(entries[n_before].parent_id, Some(entries[n_before - 1].id.clone()));
    let added: Vec<String> = entries[n_before..].iter().map(entry_line).collect();
    assert_eq!(added[added.len() - 3..], ["system", "user go on", "answer ok"]);
    // Only this program's prompt is left of both.
    let prompt = system_state(&bench.provider.requests()[0].messages).prompt();
    assert!(prompt.starts_with("Be brief.") && !prompt.contains("<tools>"), "{prompt}");
    let sent = sent(&bench.provider.requests()[0]);
    assert_eq!(sent.last().unwrap(), "user go on");
    assert!(sent.len() > 3, "{sent:?}");
}

#[test]
fn what_was_shown_as_finished_survives_the_end_of_the_process() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([says("a", "x"), half(&gate)]).tools([TestTool::say()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = runtime.block_on(async {
        let mut session = bench.start().await;
        session.prompt("go").await;
        gate.reached().await;
        session.waiting();
        session.path()
    });
    // No chance to clean up.
    runtime.shutdown_background();
    let lines: Vec<String> = entries(&path).iter().map(entry_line).collect();
    assert_eq!(lines[2..], ["system", "user go", "answer [a]", "result a: x"]);
}

#[tokio::test]
async fn a_shutdown_keeps_what_had_arrived() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let session = bench.start().await;
    let handle = session.handle.clone();
    session.prompt("go").await;
    gate.reached().await;
    let path = session.path();
    let lines = session.shut_down().await;
    assert_eq!(lines.last().unwrap(), "settled aborted");
    assert_eq!(entry_line(entries(&path).last().unwrap()), "answer half (aborted)");
    assert_eq!(handle.request(SessionCommand::Abort).await, Err(SessionError::Ended));
}

#[tokio::test]
async fn a_session_ends_with_its_last_handle() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    let (path, mut events) = session.let_go();
    while events.recv().await.is_some() {}
    assert_eq!(entry_line(entries(&path).last().unwrap()), "answer half (aborted)");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_once_and_caught_up_with() {
    let bench = SessionBench::new(texts(["1", "2"]));
    fs::write(bench.path("sessions"), "a file where a folder is wanted").unwrap();
    let mut session = bench.start().await;
    let lines = session.ask("one").await;
    let told: Vec<&String> = lines.iter().filter(|line| line.starts_with("Error")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    // Nothing may be left behind in memory only.
    let refused = session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))), "{refused:?}");

    fs::remove_file(bench.path("sessions")).unwrap();
    let lines = session.ask("two").await;
    assert!(
        lines.iter().any(|line| line.starts_with("Info: the session file is writable again")),
        "{lines:?}"
    );
    assert_eq!(session.on_disk()[2..], ["system", "user one", "answer 1", "user two", "answer 2"]);
}

#[tokio::test]
async fn what_could_not_be_written_is_written_at_the_end() {
    let bench = SessionBench::new(texts(["1"]));
    fs::write(bench.path("sessions"), "").unwrap();
    let mut session = bench.start().await;
    session.ask("one").await;
    let handle = session.handle.clone();
    let path = session.path();
    fs::remove_file(bench.path("sessions")).unwrap();
    handle.request(SessionCommand::Shutdown).await.unwrap();
    assert_eq!(entries(&path).len(), 5);
}

// Retries.

fn transient() -> FakeAnswer {
    FakeAnswer::failed("503 overloaded")
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_repeated_and_hidden_from_the_model() {
    let bench = SessionBench::new([transient(), transient(), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    let begun = tokio::time::Instant::now();
    let lines = session.ask("go").await;
    assert_eq!(begun.elapsed().as_secs(), 6, "2 s and 4 s");
    let retries: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("retry") || line.starts_with("settled")).collect();
    let expected = [
        "retry 1 of 3 in 2s: 503 overloaded",
        "retry 2 of 3 in 4s: 503 overloaded",
        "retry 2 ended: true",
        "settled",
    ];
    assert_eq!(retries, expected);
    let expected = ["user go", "answer  (error)", "hidden", "answer  (error)", "hidden", "answer ok"];
    assert_eq!(session.on_disk()[3..], expected);
    for request in bench.provider.requests() {
        let last = request.messages.last().unwrap();
        assert_eq!(message_line(last), "user go");
        assert_eq!(sent(&request), ["user go"]);
    }
}

#[tokio::test(start_paused = true)]
async fn repeating_ends_when_all_attempts_are_spent() {
    let settings = json!({"retry": {"maxRetries": 1, "baseDelayMs": 100}});
    let bench = SessionBench::new([transient(), transient(), transient(), FakeAnswer::of_text("ok")])
        .settings(settings);
    let mut session = bench.start().await;
    let lines = session.ask("go").await;
    assert_eq!(lines[lines.len() - 2..], ["retry 1 ended: 503 overloaded", "settled"]);
    assert_eq!(bench.provider.n_left(), 2);
    // The next prompt starts counting anew.
    let lines = session.ask("again").await;
    assert!(lines.contains(&"retry 1 of 1 in 100ms: 503 overloaded".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "settled");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_demands_a_longer_wait_gets_it() {
    let failed = FakeAnswer::failed("429 rate limit: retry delay 15s");
    let bench = SessionBench::new([failed, FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    let begun = tokio::time::Instant::now();
    session.ask("go").await;
    assert_eq!(begun.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_aborted_and_queued_messages_stay() {
    let bench = SessionBench::new([transient(), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    session.until(|event| matches!(event, SessionEvent::RetryScheduled { .. })).await;
    assert_eq!(session.handle.state().phase, Phase::Retrying);
    assert_eq!(session.prompt("rather").await, Reply::Queued);
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines[lines.len() - 2..], ["retry 1 ended: Retry cancelled", "settled aborted"]);
    let begun = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((begun.elapsed().as_secs(), bench.provider.n_left()), (60, 1), "nothing is repeated any more");
    assert_eq!(session.handle.state().queue.steering, ["rather"]);
    session.ask("now").await;
    assert_eq!(sent(&bench.provider.requests()[1]), ["user go", "user now", "user rather"]);
}

#[tokio::test(start_paused = true)]
async fn messages_queued_during_a_wait_come_along() {
    let bench = SessionBench::new([transient(), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    session.until(|event| matches!(event, SessionEvent::RetryScheduled { .. })).await;
    session.prompt("rather").await;
    session.settled().await;
    assert_eq!(sent(&bench.provider.requests()[1]), ["user go", "user rather"]);
}

#[tokio::test(start_paused = true)]
async fn message_queued_during_a_wait_has_all_attempts() {
    let settings = json!({"retry": {"maxRetries": 1, "baseDelayMs": 100}});
    let answers = [transient(), transient(), FakeAnswer::of_text("ok")];
    let mut session = SessionBench::new(answers).settings(settings).start().await;
    session.prompt("go").await;
    session.until(|event| matches!(event, SessionEvent::RetryScheduled { .. })).await;
    session.prompt("rather").await;
    let lines = session.settled().await;
    let retries: Vec<&String> = lines.iter().filter(|line| line.starts_with("retry")).collect();
    let scheduled = "retry 1 of 1 in 100ms: 503 overloaded";
    assert_eq!(retries, [scheduled, scheduled, "retry 1 ended: true"]);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_repetition_ends_the_retries() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([transient(), half(&gate), transient(), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines[lines.len() - 2..], ["retry 1 ended: Retry cancelled", "settled aborted"]);
    let lines = session.ask("again").await;
    assert!(lines.contains(&"retry 1 of 3 in 2s: 503 overloaded".to_owned()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_will_not_pass_ends_the_retries() {
    let bench = SessionBench::new([transient(), FakeAnswer::failed("401 invalid api key")]);
    let mut session = bench.start().await;
    let lines = session.ask("go").await;
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "retry 1 ended: 401 invalid api key\npi sent no key because acme has no apiKey in models.json.",
            "settled"
        ]
    );
}

#[tokio::test]
async fn what_would_fail_again_is_not_repeated() {
    for error in ["429 insufficient_quota: you exceeded your current quota", "401 invalid api key"] {
        let bench = SessionBench::new([FakeAnswer::failed(error), FakeAnswer::of_text("never")]);
        let mut session = bench.start().await;
        let lines = session.ask("go").await;
        assert!(!lines.iter().any(|line| line.starts_with("retry")), "{lines:?}");
        assert_eq!(bench.provider.n_left(), 1);
        assert_eq!(session.on_disk().last().unwrap(), "answer  (error)");
    }
}

#[tokio::test]
async fn a_conversation_that_no_longer_fits_is_told_and_not_repeated() {
    let bench = SessionBench::new([FakeAnswer::failed("400 prompt is too long: 9 tokens > 8 maximum")]);
    let mut session = bench.start().await;
    let lines = session.ask("go").await;
    let notice = &lines[lines.len() - 2];
    assert!(notice.starts_with("Error: the conversation no longer fits"), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "settled");
}

// The provider's cache.

#[tokio::test]
async fn a_prompt_that_was_paid_for_again_is_named() {
    let cached = |read, write| Usage { input: 10, cache_read: read, cache_write: write, ..Usage::default() };
    let answers = [
        FakeAnswer::of_text("1").usage(cached(0, 90_000)),
        FakeAnswer::of_text("2").usage(cached(90_010, 100)),
        FakeAnswer::of_text("3").usage(cached(0, 90_200)),
    ];
    for shown in [true, false] {
        // The counts are above those of the window.
        let settings = json!({"showCacheMissNotices": shown, "compaction": {"enabled": false}});
        let bench = SessionBench::new(answers.clone()).settings(settings);
        let mut session = bench.start().await;
        let mut notices = Vec::new();
        for text in ["a", "b", "c"] {
            session.prompt(text).await;
            notices.extend(session.settled().await.into_iter().filter(|line| line.contains("Cache miss")));
        }
        let expected = "Cache miss: 90,120 prompt tokens were billed again; the provider no longer had it";
        assert_eq!(notices.len(), usize::from(shown), "{notices:?}");
        assert!(notices.iter().all(|line| line.contains(expected)), "{notices:?}");
    }
}

// Queues.

#[tokio::test]
async fn messages_typed_while_the_agent_works_are_queued_and_delivered() {
    let gate = TestBarrier::new();
    let answers = [says("a", "x").gate(&gate), FakeAnswer::of_text("1"), FakeAnswer::of_text("2")];
    let bench = SessionBench::new(answers).tools([TestTool::say()]);
    let mut session = bench.start().await;
    assert_eq!(session.prompt("go").await, Reply::Started);
    gate.reached().await;
    assert_eq!(session.say("and then", WhenBusy::FollowUp).await, Reply::Queued);
    assert_eq!(session.prompt("rather").await, Reply::Queued);
    assert_eq!(session.prompt("rather").await, Reply::Duplicate);
    let refused = session.request(prompt("now?", WhenBusy::Refuse)).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))));
    let state = session.handle.state();
    assert_eq!(
        (&state.queue.steering[..], &state.queue.follow_up[..]),
        (&["rather".to_owned()][..], &["and then".to_owned()][..])
    );
    session.waiting();
    gate.open();
    let lines = session.settled().await;
    assert_eq!(lines.iter().filter(|line| *line == "queue changed").count(), 2);
    let skipped = "result a failed: Skipped due to queued user message.";
    assert_eq!(
        session.on_disk()[4..],
        ["answer [a]", skipped, "user rather", "answer 1", "user and then", "answer 2"]
    );
    assert_eq!(session.handle.state().queue.steering, [""; 0]);
}

#[tokio::test]
async fn messages_delivered_together_are_on_disk_all_the_time() {
    const WORDS: [&str; 3] = ["rather", "better", "at last"];
    for settings in [json!({"steeringMode": "all"}), json!({"followUpMode": "all"})] {
        let gate = TestBarrier::new();
        let disk = TrialDisk::new(None);
        let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
        let bench = bench.settings(settings.clone()).disk(Arc::<TrialDisk>::clone(&disk));
        let mut session = bench.start().await;
        session.prompt("go").await;
        gate.reached().await;
        let follow_up = settings.get("followUpMode").is_some();
        for word in WORDS {
            session.say(word, if follow_up { WhenBusy::FollowUp } else { WhenBusy::Steer }).await;
        }
        let steps: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, folder) = (Arc::clone(&steps), bench.path("sessions"));
        disk.observe(move |_| {
            let texts = trial::files(&folder);
            let texts = texts.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            seen.lock().unwrap().push(texts.collect());
        });
        gate.open();
        session.settled().await;
        disk.stop_observing();
        let last = ["user rather", "user better", "user at last", "answer ok"];
        assert_eq!(session.on_disk()[5..], last, "{settings}");
        let steps = steps.lock().unwrap();
        assert!(steps.len() > 5);
        for (step, text) in steps.iter().enumerate() {
            assert!(WORDS.iter().all(|word| text.contains(word)), "{settings}, step {step}: {text}");
        }
    }
}

#[tokio::test]
async fn urgent_words_and_demands_interrupt() {
    let urgent: [(&str, WhenBusy, Option<SessionCommand>); 3] = [
        ("wait, use tabs", WhenBusy::Steer, None),
        ("use tabs", WhenBusy::Now, None),
        ("use tabs", WhenBusy::Steer, Some(SessionCommand::DeliverNow)),
    ];
    for (text, when_busy, then) in urgent {
        let gate = TestBarrier::new();
        let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
        let mut session = bench.start().await;
        session.prompt("go").await;
        gate.reached().await;
        session.say(text, when_busy).await;
        if let Some(command) = then {
            session.request(command).await.unwrap();
        }
        let lines = session.settled().await;
        assert_eq!(lines.last().unwrap(), "settled", "an interruption is no abort");
        assert_eq!(session.on_disk()[4..], ["answer half (aborted)", &format!("user {text}"), "answer ok"]);
        assert_eq!(sent(&bench.provider.requests()[1]), ["user go", &format!("user {text}")]);
    }
}

#[tokio::test]
async fn steering_at_once_is_a_setting() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")])
        .settings(json!({"steeringDelivery": "now", "urgentWords": []}));
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.prompt("rather").await;
    session.settled().await;
    assert_eq!(session.on_disk()[4..], ["answer half (aborted)", "user rather", "answer ok"]);
}

#[tokio::test]
async fn the_queue_can_be_put_in_another_order() {
    let gate = TestBarrier::new();
    let answers = [half(&gate), FakeAnswer::of_text("1"), FakeAnswer::of_text("2")];
    let bench = SessionBench::new(answers);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    for text in ["first", "second", "third"] {
        session.prompt(text).await;
    }
    let slot = |index, text: &str| QueueSlot { kind: QueueKind::Steering, index, text: text.to_owned() };
    let to = |slot, kind, index| SessionCommand::MoveQueued { slot, kind, index };
    session.request(to(slot(1, "second"), QueueKind::Steering, 0)).await.unwrap();
    session.request(to(slot(1, "first"), QueueKind::FollowUp, 0)).await.unwrap();
    let taken = session.request(SessionCommand::TakeQueued { slot: slot(1, "third") }).await.unwrap();
    assert_eq!(
        taken,
        Reply::Queue(TakenQueue { steering: vec!["third".into()], ticket: 1, ..TakenQueue::default() })
    );
    let gone = session.request(SessionCommand::TakeQueued { slot: slot(1, "third") }).await.unwrap();
    assert_eq!(gone, Reply::Queue(TakenQueue::default()));
    gate.open();
    session.settled().await;
    assert_eq!(
        session.on_disk()[4..],
        ["answer half whole", "user second", "answer 1", "user first", "answer 2"]
    );
}

#[tokio::test]
async fn edited_message_keeps_its_kind_and_its_place() {
    let gate = TestBarrier::new();
    let answers = ["1", "2", "3", "4"].map(FakeAnswer::of_text);
    let bench = SessionBench::new([half(&gate)].into_iter().chain(answers));
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    for text in ["first", "second", "third"] {
        session.say(text, WhenBusy::FollowUp).await;
    }
    let slot = QueueSlot { kind: QueueKind::FollowUp, index: 1, text: "second".to_owned() };
    session.request(SessionCommand::TakeQueued { slot }).await.unwrap();
    let at = |kind, index| WhenBusy::At { kind, index };
    // A word that is urgent while the agent works does not interrupt a follow-up.
    assert_eq!(session.say("wait, again", at(QueueKind::FollowUp, 1)).await, Reply::Queued);
    // The queue may have become shorter.
    assert_eq!(session.say("rather", at(QueueKind::Steering, 7)).await, Reply::Queued);
    gate.open();
    session.settled().await;
    let users: Vec<String> = session.on_disk().into_iter().filter(|line| line.starts_with("user ")).collect();
    assert_eq!(users, ["user go", "user rather", "user first", "user wait, again", "user third"]);
    // Without a run it is sent.
    assert_eq!(session.say("later", at(QueueKind::FollowUp, 1)).await, Reply::Started);
    session.settled().await;
    assert!(session.on_disk().iter().any(|line| line == "user later"));
}

#[tokio::test]
async fn the_queue_can_be_taken_back() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.prompt("rather").await;
    session.say("and then", WhenBusy::FollowUp).await;
    let taken = session.request(SessionCommand::TakeQueue).await.unwrap();
    let expected = TakenQueue {
        steering: vec!["rather".into()],
        follow_up: vec!["and then".into()],
        ticket: 1,
        draft: None,
    };
    assert_eq!(taken, Reply::Queue(expected));
    gate.open();
    session.settled().await;
    assert_eq!(session.on_disk().last().unwrap(), "answer half whole");
}

#[tokio::test]
async fn dropped_message_does_not_come_back_after_a_kill() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.say("first", WhenBusy::FollowUp).await;
    session.say("second", WhenBusy::FollowUp).await;
    let slot = QueueSlot { kind: QueueKind::FollowUp, index: 0, text: "first".to_owned() };
    session.request(SessionCommand::DropQueued { slot: slot.clone() }).await.unwrap();
    // Gone already: nothing else is dropped in its place.
    session.request(SessionCommand::DropQueued { slot }).await.unwrap();
    let left: Vec<String> =
        left_by(&bench, &session.path()).await.into_iter().map(|prompt| prompt.text).collect();
    assert_eq!(left, ["second"]);
    gate.open();
    session.settled().await;
    assert_eq!(session.on_disk()[4..], ["answer half whole", "user second", "answer ok"]);
    assert!(left_by(&bench, &session.path()).await.is_empty());
}

/// What another process would find of the session in `path`: messages and draft.
async fn left_by(bench: &SessionBench, path: &Path) -> Vec<PromptDraft> {
    // Beside a copy, since the session itself is open.
    let copy = bench.path("copy.jsonl");
    let name = path.file_name().unwrap().to_string_lossy();
    fs::copy(path, &copy).unwrap();
    for kind in ["queue", "draft"] {
        let to = bench.path(&format!(".copy.jsonl.{kind}"));
        if fs::copy(path.with_file_name(format!(".{name}.{kind}")), &to).is_err() {
            fs::remove_file(to).unwrap_or_default();
        }
    }
    let session = bench.resume(&copy).await;
    let taken = session.request(SessionCommand::TakeLeftOver).await.unwrap();
    let Reply::Queue(taken) = taken else { unreachable!() };
    taken.into_prompts()
}

#[tokio::test]
async fn kill_at_any_step_of_taking_messages_back_leaves_each_on_disk_once() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    let image = picture(2, 2);
    let pastes = vec![1..3, 4..6];
    let prompt = PromptDraft { text: "rather".to_owned(), images: vec![image.clone()], pastes };
    let steering = SessionCommand::Prompt { prompt, when_busy: WhenBusy::Steer };
    assert_eq!(session.request(steering).await, Ok(Reply::Queued));
    session.say("and then", WhenBusy::FollowUp).await;
    let path = session.path();
    let texts = |prompts: &[PromptDraft]| -> Vec<String> {
        prompts.iter().map(|prompt| prompt.text.clone()).collect()
    };
    let queued = left_by(&bench, &path).await;
    assert_eq!(
        (texts(&queued), queued[0].images.len()),
        (vec!["rather".to_owned(), "and then".to_owned()], 1)
    );
    assert_eq!(queued[0].pastes, [1..3, 4..6]);

    let taken = session.request(SessionCommand::TakeQueue).await.unwrap();
    let Reply::Queue(taken) = taken else { unreachable!() };
    let ticket = taken.ticket;
    assert_eq!(taken.into_prompts(), queued, "with the image");
    assert_eq!(left_by(&bench, &path).await, queued, "taken, and in no stored draft");

    // A draft that was written before the messages arrived in the editor.
    let draft = |text: &str| PromptDraft {
        text: text.to_owned(),
        images: vec![image.clone()],
        ..PromptDraft::default()
    };
    let save = |draft, tickets: &[u64]| SessionCommand::SaveDraft { draft, tickets: tickets.to_vec() };
    session.request(save(draft("typing"), &[])).await.unwrap();
    assert_eq!(texts(&left_by(&bench, &path).await), ["rather", "and then", "typing"]);
    session.request(save(draft("rather and then typing"), &[ticket])).await.unwrap();
    assert_eq!(left_by(&bench, &path).await, [draft("rather and then typing")]);
    // The same again at once is no slip of the finger.
    assert_eq!(session.say("and then", WhenBusy::FollowUp).await, Reply::Queued);
    session.request(save(PromptDraft::default(), &[ticket])).await.unwrap();
    assert_eq!(texts(&left_by(&bench, &path).await), ["and then"]);
    gate.open();
    session.settled().await;
}

#[tokio::test]
async fn draft_stays_on_disk_until_the_prompt_that_was_sent_is_stored() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let path = session.path();
    let save = |draft: &str| SessionCommand::SaveDraft { draft: draft.into(), tickets: Vec::new() };
    session.request(save("two")).await.unwrap();
    // The editor is empty as soon as the prompt is sent; the run has not begun then.
    assert_eq!(session.prompt("two").await, Reply::Started);
    session.request(save("")).await.unwrap();
    let left = left_by(&bench, &path).await;
    assert!(left == ["two".into()] || session.on_disk().contains(&"user two".to_owned()), "{left:?}");
    session.settled().await;
    assert!(left_by(&bench, &path).await.is_empty());
    assert_eq!(session.on_disk().last().unwrap(), "answer 2");
}

#[tokio::test]
async fn an_abort_ends_the_run_and_leaves_the_queue() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("never")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.say("and then", WhenBusy::FollowUp).await;
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted");
    assert_eq!(session.handle.state().queue.follow_up, ["and then"]);
    assert_eq!(bench.provider.n_left(), 1);
}

/// Runs the test as one task among others, so that it comes between the end of
/// a loop and the session's notice of it.
async fn between(test: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(test).await.unwrap();
}

#[tokio::test]
async fn a_message_queued_in_the_last_moment_starts_a_run() {
    between(async {
        let bench = SessionBench::new(texts(["1", "2"]));
        let mut session = bench.start().await;
        session.prompt("go").await;
        session.until(is_end_of_answer).await;
        session.handle.send(prompt("more", WhenBusy::FollowUp));
        while !session.on_disk().contains(&"answer 2".to_owned()) {
            session.next().await;
        }
        session.settled().await;
    })
    .await;
}

#[tokio::test]
async fn without_a_key_queued_messages_go_back_to_the_user() {
    between(async {
        let bench = SessionBench::new(texts(["1", "2"])).model("m-2");
        let keys = bench.path("agent").join("auth.json");
        fs::create_dir_all(bench.path("agent")).unwrap();
        fs::write(&keys, r#"{"xai": {"type": "api_key", "key": "sesame"}}"#).unwrap();
        let mut session = bench.start().await;
        session.request(set_model("xai/grok-4.7")).await.unwrap();
        session.prompt("go").await;
        session.until(is_end_of_answer).await;
        fs::remove_file(&keys).unwrap();
        assert_eq!(session.say("more", WhenBusy::FollowUp).await, Reply::Queued);
        let lines = session.settled().await;
        let [.., problem, changed, returned, settled] = &lines[..] else { panic!("{lines:?}") };
        assert!(problem.starts_with("Error: no key for xai"), "{lines:?}");
        assert_eq!([changed, returned, settled], ["queue changed", "returned more", "settled"]);
        assert!(session.handle.state().queue.is_empty());
        // Until a draft holds it, it stays on the disk.
        assert_eq!(left_by(&bench, &session.path()).await, [PromptDraft::from("more")]);
    })
    .await;
}

#[tokio::test]
async fn a_key_command_that_hangs_can_be_stopped() {
    let bench = SessionBench::new(texts(["1"]));
    let key = bench.path("key");
    assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
    let mut session = bench.start().await;
    session.request(set_model("keyed/m-3")).await.unwrap();
    session.prompt("go").await;
    // The command reads the pipe from here on.
    let writer = tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(key).unwrap());
    let writer = writer.await.unwrap();
    session.request(SessionCommand::Abort).await.unwrap();
    assert_eq!(session.settled().await.last().unwrap(), "settled aborted");
    assert_eq!(bench.provider.n_left(), 1);
    drop(writer);
}

#[tokio::test]
async fn an_abort_in_the_last_moment_still_counts() {
    between(async {
        let bench = SessionBench::new([transient(), FakeAnswer::of_text("never")]);
        let mut session = bench.start().await;
        session.prompt("go").await;
        session.until(is_end_of_answer).await;
        session.handle.send(SessionCommand::Abort);
        let lines = session.settled().await;
        assert!(!lines.iter().any(|line| line.starts_with("retry")), "{lines:?}");
        assert_eq!((lines.last().unwrap().as_str(), bench.provider.n_left()), ("settled aborted", 1));
    })
    .await;
}

#[tokio::test]
async fn a_failure_does_not_follow_into_the_next_session() {
    between(async {
        let bench = SessionBench::new([transient(), FakeAnswer::of_text("ok")]);
        let mut session = bench.start().await;
        session.prompt("go").await;
        session.until(is_end_of_answer).await;
        session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
        session.opened().await;
        assert_eq!(session.handle.state().phase, Phase::Idle);
        session.ask("else").await;
        assert_eq!(sent(&bench.provider.requests()[1]), ["user else"]);
    })
    .await;
}

// The contents of requests.

#[tokio::test]
async fn an_aborted_batch_leaves_nothing_unanswered_in_the_next_request() {
    for sequential in [false, true] {
        let gate = TestBarrier::new();
        let calls = (0..10).fold(FakeAnswer::new(), |answer, at| {
            answer.tool_call(&format!("c{at}"), "wait", json!({"gate": 0}))
        });
        let bench = SessionBench::new([calls, FakeAnswer::of_text("ok")]);
        let tool = TestTool::wait(std::slice::from_ref(&gate));
        let bench = bench.tools([if sequential { tool.sequential() } else { tool }]);
        let mut session = bench.start().await;
        session.prompt("go").await;
        gate.reached().await;
        session.request(SessionCommand::Abort).await.unwrap();
        session.settled().await;
        session.ask("again").await;
        let sent = sent(&bench.provider.requests()[1]);
        assert_eq!((sent[0].as_str(), sent[1].as_str()), ("user go", "assistant [10]"));
        let (results, rest) = sent[2..].split_at(10);
        assert!(results.iter().all(|line| line.starts_with("tool ")), "{sent:?}");
        assert_eq!(rest, ["user again"]);
    }
}

#[tokio::test]
async fn an_image_needs_no_words() {
    let bench = SessionBench::new(texts(["ok"]));
    let mut session = bench.start().await;
    let image =
        Image { data: "iVBO".to_owned(), mime_type: "image/png".to_owned(), extra: serde_json::Map::new() };
    let say = |images| SessionCommand::Prompt {
        prompt: PromptDraft { images, ..PromptDraft::from(" ") },
        when_busy: WhenBusy::Steer,
    };
    assert!(session.request(say(Vec::new())).await.is_err(), "nothing at all");
    session.request(say(vec![image])).await.unwrap();
    session.settled().await;
    assert_eq!(bench.provider.requests().len(), 1);
}

#[tokio::test]
async fn the_state_knows_how_full_the_window_is() {
    let usage = Usage { input: 60, output: 10, cache_read: 40, total_tokens: 110, ..Usage::default() };
    let bench = SessionBench::new([FakeAnswer::of_text("ok").usage(usage)]);
    let mut session = bench.start().await;
    session.ask("go").await;
    let check = |state: &pi::session::SessionState| {
        assert_eq!((state.context.tokens, state.context.window), (Some(110), 1_000));
        assert_eq!(state.context.cache_hit, Some(0.4));
    };
    check(&session.handle.state());
    let path = session.path();
    session.shut_down().await;
    check(&bench.resume(&path).await.handle.state());
}

#[tokio::test]
async fn the_use_of_the_window_is_estimated_until_an_answer_counts_it() {
    let gate = TestBarrier::new();
    let usage = Usage { input: 100, output: 10, total_tokens: 110, ..Usage::default() };
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok").usage(usage)]);
    let mut session = bench.start().await;
    let context = |session: &Session| session.handle.state().context;
    assert_eq!(context(&session).tokens, None, "nothing was sent");
    session.prompt("go").await;
    gate.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    session.settled().await;
    let estimated = context(&session);
    assert!(estimated.is_estimate && estimated.tokens > Some(0), "{estimated:?}");
    let path = session.path();
    session.shut_down().await;
    let mut session = bench.resume(&path).await;
    assert_eq!(context(&session), estimated);
    session.ask("go on").await;
    assert_eq!((context(&session).counted(), context(&session).is_estimate), (Some(110), false));
}

// Selection.

#[tokio::test]
async fn a_model_chosen_mid_run_answers_the_next_request() {
    let gate = TestBarrier::new();
    let bench =
        SessionBench::new([says("a", "x").gate(&gate), FakeAnswer::of_text("ok")]).tools([TestTool::say()]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.request(set_model("m-2")).await.unwrap();
    gate.open();
    session.settled().await;
    let asked: Vec<(String, ThinkingLevel)> = bench
        .provider
        .requests()
        .iter()
        .map(|request| (request.model.id.clone(), request.options.thinking))
        .collect();
    assert_eq!(asked, [("m-1".to_owned(), ThinkingLevel::Medium), ("m-2".to_owned(), ThinkingLevel::Off)]);
    let path = session.path();
    session.shut_down().await;
    assert_eq!(bench.resume(&path).await.handle.state().model.id, "m-2");
}

#[tokio::test]
async fn a_level_the_model_lacks_is_refused_and_not_forgotten_for_the_next() {
    let bench = SessionBench::new([]);
    let session = bench.start().await;
    let think = |level| SessionCommand::SetThinking { level, scope: Scope::Session };
    session.request(think(ThinkingLevel::High)).await.unwrap();
    session.request(set_model("m-2")).await.unwrap();
    assert_eq!(session.handle.state().thinking, ThinkingLevel::Off);
    let refused = session.request(think(ThinkingLevel::Low)).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))), "{refused:?}");
    session.request(set_model("m-1")).await.unwrap();
    assert_eq!(session.handle.state().thinking, ThinkingLevel::High);
    let unknown = session.request(set_model("no-such-model")).await;
    assert!(matches!(unknown, Err(SessionError::Refused(_))), "{unknown:?}");
}

#[tokio::test]
async fn a_choice_can_become_the_default() {
    let bench = SessionBench::new([]);
    let mut session = bench.start().await;
    session.waiting();
    let choose = SessionCommand::SetModel { reference: "m-2".to_owned(), scope: Scope::Default };
    session.request(choose).await.unwrap();
    let level = session.handle.state().thinking;
    session.request(SessionCommand::SetThinking { level, scope: Scope::Default }).await.unwrap();
    let patterns = vec!["acme/m-2".to_owned()];
    session.request(SessionCommand::SetScope { patterns, scope: Scope::Default }).await.unwrap();
    let told: Vec<String> = session.waiting().into_iter().filter(|line| line.contains("Saved")).collect();
    let expected = [
        "Info: Saved acme/m-2 as the default model.".to_owned(),
        format!("Info: Saved {level} as the default thinking level."),
        "Info: Saved the models to cycle through as the default.".to_owned(),
    ];
    assert_eq!(told, expected);
    let saved = fs::read_to_string(bench.path("agent/settings.json")).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!((&saved["defaultProvider"], &saved["defaultModel"]), (&json!("acme"), &json!("m-2")));
}

#[tokio::test]
async fn patterns_without_a_model_are_passed_over_and_told_once() {
    let bench = SessionBench::new([]);
    let mut session = bench.start().await;
    let patterns = ["acme/nomatch", "acme/m-2", "dead/*", "acme/m-1"].map(str::to_owned).to_vec();
    let choose = SessionCommand::SetScope { patterns, scope: Scope::Session };
    for command in [choose.clone(), choose, SessionCommand::ModelsChanged] {
        session.request(command).await.unwrap();
    }
    for expected in ["m-2", "m-1", "m-2"] {
        session.request(SessionCommand::CycleModel { forward: true }).await.unwrap();
        assert_eq!(session.handle.state().model.id, expected);
    }
    let state = session.handle.state();
    let unmatched: Vec<&str> = state.unmatched_scope.iter().map(|one| one.pattern.as_str()).collect();
    assert_eq!(unmatched, ["acme/nomatch", "dead/*"]);
    let told: Vec<String> =
        session.waiting().into_iter().filter(|line| line.starts_with("Warning")).collect();
    let expected = ["acme/nomatch", "dead/*"]
        .map(|pattern| format!("Warning: models to cycle through: no model matches \"{pattern}\""));
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_name_is_one_line_and_survives() {
    let bench = SessionBench::new(texts(["ok"]));
    let mut session = bench.start().await;
    let name = |name: &str| SessionCommand::SetName { name: name.to_owned() };
    session.request(name(" two\r\nlines ")).await.unwrap();
    assert_eq!(session.handle.state().name.as_deref(), Some("two lines"));
    assert!(!session.path().exists(), "a name alone makes no file");
    session.ask("go").await;
    assert_eq!(session.on_disk()[0], "name two lines");
    let path = session.path();
    session.shut_down().await;
    let session = bench.resume(&path).await;
    assert_eq!(session.handle.state().name.as_deref(), Some("two lines"));
    session.request(name("")).await.unwrap();
    assert_eq!(session.handle.state().name, None);
}

// Switching.

#[tokio::test]
async fn a_new_session_keeps_what_was_said_in_the_old_one() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    let old = session.path();
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    assert_ne!(session.path(), old);
    assert_eq!(entry_line(entries(&old).last().unwrap()), "answer half (aborted)");
    session.waiting();
    session.ask("else").await;
    assert_eq!(sent(&bench.provider.requests()[1]), ["user else"]);
    assert_eq!(session.on_disk().last().unwrap(), "answer ok");
    // And back, although it was this task that wrote it.
    session.request(SessionCommand::Open { path: old.clone(), if_busy: IfBusy::Cancel }).await.unwrap();
    session.waiting();
    assert_eq!((session.path(), session.handle.state().totals.n_user), (old, 1));
}

#[tokio::test]
async fn opening_the_session_at_hand_does_not_lock_it_out() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let path = session.path();
    session.request(SessionCommand::Open { path, if_busy: IfBusy::Cancel }).await.unwrap();
    assert_eq!(session.opened().await.tail.len(), 5);
    session.waiting();
    session.ask("two").await;
    assert_eq!(session.on_disk().last().unwrap(), "answer 2");
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_leaves_the_one_at_hand() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    fs::write(bench.path("notes"), "no session").unwrap();
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    let refused =
        session.request(SessionCommand::Open { path: bench.path("notes"), if_busy: IfBusy::Cancel }).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))));
    gate.open();
    session.settled().await;
    assert_eq!(session.on_disk().last().unwrap(), "answer half whole");
}

#[tokio::test]
async fn a_session_open_elsewhere_can_be_read_and_not_continued() {
    let bench = SessionBench::new(texts(["ok", "never"]));
    let mut first = bench.start().await;
    first.ask("go").await;
    let mut second = bench.resume(&first.path()).await;
    assert_eq!(second.opened().await.tail.len(), 5);
    let lines = second.waiting();
    assert!(lines.iter().any(|line| line.contains("open in another pi")), "{lines:?}");
    let refused = second.request(prompt("me too", WhenBusy::Steer)).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))), "{refused:?}");
    assert!(second.handle.state().is_read_only && !first.handle.state().is_read_only);
    let path = first.path();
    first.shut_down().await;
    // Free again, it can be taken over.
    second.request(SessionCommand::Open { path, if_busy: IfBusy::Cancel }).await.unwrap();
    second.waiting();
    assert!(!second.handle.state().is_read_only);
    second.ask("me too").await;
    assert_eq!(second.on_disk()[5..], ["user me too", "answer never"]);
}

#[tokio::test]
async fn a_session_whose_directory_is_gone_is_not_opened() {
    let bench = SessionBench::new([]);
    let path = bench.path("gone.jsonl");
    let header = bench.header().replace("/work", "/gone");
    fs::write(&path, format!("{header}\n")).unwrap();
    let Err(error) = bench.open(OpenSession::File(path.clone())).await else { panic!("it opened") };
    assert!(matches!(error, OpenError::NoDirectory { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{header}\n"));
}

#[tokio::test]
async fn damage_is_told_when_a_session_is_opened() {
    let bench = SessionBench::new([]);
    let path = bench.session_file("garbage\n");
    let mut session = bench.resume(&path).await;
    let lines = session.waiting();
    assert_eq!(lines[1], "Warning: line 2 of the session file could not be read; the rest is intact");
    assert_eq!(session.handle.state().damaged_lines, [2]);
}

#[tokio::test]
async fn a_session_file_that_is_missing_is_an_error_and_is_not_made() {
    let bench = SessionBench::new([]);
    let path = bench.path("missing.jsonl");
    let Err(error) = bench.open(OpenSession::File(path.clone())).await else { panic!("it opened") };
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    let session = bench.start().await;
    let refused = session.request(SessionCommand::Open { path: path.clone(), if_busy: IfBusy::Cancel }).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))), "{refused:?}");
    assert!(!path.exists());
}

// A disk that is full or broken.

#[tokio::test(start_paused = true)]
async fn what_is_not_saved_is_in_the_state_until_it_is() {
    let disk = FaultyDisk::new();
    let bench = SessionBench::new(texts(["1", "2"])).disk(disk.clone());
    let mut session = bench.start().await;
    session.ask("one").await;
    assert_eq!(session.handle.state().unsaved, None);
    disk.set_room(10);
    session.request(prompt("two", WhenBusy::Steer)).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let event = session.next_unchecked().await;
        match event {
            SessionEvent::Notice { text, .. } => seen.push(text),
            SessionEvent::Settled { .. } => break,
            _ => {}
        }
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("cannot write the session file"), "{seen:?}");
    assert_eq!(session.handle.state().unsaved.as_deref(), Some("no storage space"));
    // Without any input.
    disk.set_room(usize::MAX);
    let again = session.until(|event| matches!(event, SessionEvent::Notice { .. })).await;
    assert!(matches!(&again, SessionEvent::Notice { text, .. } if text.contains("is writable again")));
    session.until(|event| matches!(event, SessionEvent::SelectionChanged)).await;
    assert_eq!(session.handle.state().unsaved, None);
    assert_eq!(session.on_disk()[5..], ["user two", "answer 2"]);
}

#[tokio::test]
async fn quitting_with_unsaved_messages_says_so_and_leaves_a_copy() {
    let disk = FaultyDisk::new();
    let bench = SessionBench::new(texts(["1", "2"])).disk(disk.clone());
    fs::create_dir_all(bench.path("tmp")).unwrap();
    let mut session = bench.start().await;
    session.ask("one").await;
    let path = session.path();
    disk.set_room(10);
    session.request(prompt("two", WhenBusy::Steer)).await.unwrap();
    while !matches!(session.next_unchecked().await, SessionEvent::Settled { .. }) {}
    // The copy fits, the session still does not.
    disk.set_room_elsewhere(path.clone());
    let Err(SessionError::Refused(Refusal::Unsaved { reason: text })) =
        session.request(SessionCommand::Shutdown).await
    else {
        panic!("it says nothing")
    };
    assert!(text.starts_with("2 messages of this session are not saved: no storage space"), "{text}");
    let copy = PathBuf::from(text.rsplit(" session to ").next().unwrap());
    assert_eq!(copy.parent().unwrap(), bench.path("tmp"));
    let lines: Vec<String> = entries(&copy).iter().map(entry_line).collect();
    assert_eq!(lines[3..], ["user one", "answer 1", "user two", "answer 2"]);
    assert!(!fs::read_to_string(path).unwrap().contains("answer 2"));
}

#[tokio::test(start_paused = true)]
async fn a_failing_sync_is_reported_and_the_lines_are_written_again() {
    let disk = FaultyDisk::new();
    let bench = SessionBench::new(texts(["1", "2"])).disk(disk.clone());
    let mut session = bench.start().await;
    disk.fail_syncs(1);
    let lines = session.ask("one").await.join("\n");
    assert!(lines.contains("lost page") && lines.contains("again succeeded"), "{lines}");
    assert_eq!(session.handle.state().unsaved, None);
    disk.fail_syncs(3);
    let lines = session.ask("two").await.join("\n");
    assert!(lines.contains("keeps retrying"), "{lines}");
    assert_eq!(session.handle.state().unsaved.as_deref(), Some("lost page"));
    // Tried again by itself.
    session.until(|event| matches!(event, SessionEvent::Notice { .. })).await;
    session.until(|event| matches!(event, SessionEvent::SelectionChanged)).await;
    assert_eq!(session.handle.state().unsaved, None);
}

#[tokio::test]
async fn a_session_file_deleted_while_open_is_written_anew_and_that_is_said() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    fs::remove_file(session.path()).unwrap();
    let lines = session.ask("two").await;
    let said = lines.iter().filter(|line| line.contains("was deleted or moved while it was open")).count();
    assert_eq!(said, 1, "{lines:?}");
    assert_eq!(session.on_disk()[3..], ["user one", "answer 1", "user two", "answer 2"]);
    // Replaced: the rest goes elsewhere, and the state says where.
    let old = session.path();
    fs::remove_file(&old).unwrap();
    fs::write(&old, "precious").unwrap();
    session.request(SessionCommand::SetName { name: "n".to_owned() }).await.unwrap();
    assert_ne!(session.path(), old);
    assert_eq!(
        (session.on_disk().last().unwrap().as_str(), fs::read_to_string(old).unwrap().as_str()),
        ("name n", "precious")
    );
}

#[tokio::test]
async fn a_large_session_is_shown_by_its_end_first() {
    let bench = SessionBench::new(texts(["ok"])).settings(json!({"compaction": {"enabled": false}}));
    let filler = "x".repeat(1_000);
    let line = |at: usize| {
        let parent = if at == 0 { "null".to_owned() } else { format!("\"e{}\"", at - 1) };
        format!(
            r#"{{"type":"message","id":"e{at}","parentId":{parent},"timestamp":"T","message":{{"role":"user","content":"{at} {filler}","timestamp":1}}}}"#
        ) + "\n"
    };
    let lines: String = (0..2_000).map(line).collect();
    let path = bench.session_file(&lines);
    let mut session = bench.resume(&path).await;
    assert_eq!(session.handle.state().id, "given");
    let preview = session.opened().await;
    assert_eq!(preview.n_earlier, None);
    assert!((100..2_000).contains(&preview.tail.len()), "{}", preview.tail.len());
    assert_eq!(preview.tail.last().unwrap().id.as_str(), "e1999");
    // Commands wait for the rest.
    session.prompt("go").await;
    let opened = session.opened().await;
    assert_eq!((opened.tail.len(), opened.n_earlier), (400, Some(1_600)));
    session.settled().await;
    assert_eq!(bench.provider.requests()[0].messages.len(), 2_002);
}

// The user's own commands.

#[tokio::test]
async fn a_command_of_the_user_is_recorded_and_read_by_the_model() {
    let bench = SessionBench::new(texts(["1", "2"]));
    let mut session = bench.start().await;
    session.ask("go").await;
    for (command, exclude_from_context) in [("echo seen", false), ("echo unseen", true)] {
        let command = SessionCommand::RunBash {
            command: command.to_owned(),
            exclude_from_context,
            others: OtherCommands::Refuse,
        };
        assert!(matches!(session.request(command).await, Ok(Reply::BashStarted(_))));
        session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    }
    let lines = session.waiting();
    assert_eq!(lines[..3], ["bash start echo seen", "bash output seen", "bash end Some(0)"]);
    assert_eq!(session.on_disk()[5..], ["ran echo seen", "ran echo unseen"]);
    session.ask("more").await;
    let sent = sent(&bench.provider.requests()[1]);
    assert_eq!(sent[2..], ["user Ran `echo seen`\n```\nseen\n\n```", "user more"]);
}

#[tokio::test]
async fn a_command_never_comes_between_a_call_and_its_result() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([
        FakeAnswer::new().tool_call("a", "wait", json!({})),
        FakeAnswer::of_text("1"),
        FakeAnswer::of_text("2"),
    ])
    .tools([TestTool::wait(std::slice::from_ref(&gate))]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.request(bash("echo hi")).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    gate.open();
    session.settled().await;
    assert_eq!(session.on_disk()[4..], ["answer [a]", "result a: waited", "answer 1", "ran echo hi"]);
    session.ask("more").await;
    let sent = sent(&bench.provider.requests()[2]);
    assert_eq!(sent[3..], ["assistant 1", "user Ran `echo hi`\n```\nhi\n\n```", "user more"]);
}

#[tokio::test]
async fn kill_during_a_run_keeps_the_results_of_commands() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate)]);
    let mut session = bench.start().await;
    session.prompt("go").await;
    gate.reached().await;
    session.request(bash("echo hi")).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    // The state after a kill.
    let path = session.path();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    fs::copy(&path, bench.path("killed.jsonl")).unwrap();
    fs::copy(path.with_file_name(format!(".{name}.deferred")), bench.path(".killed.jsonl.deferred")).unwrap();
    gate.open();
    session.settled().await;
    assert!(!path.with_file_name(format!(".{name}.deferred")).exists());

    for _ in 0..2 {
        let session = bench.resume(&bench.path("killed.jsonl")).await;
        assert_eq!(session.on_disk().last().unwrap(), "ran echo hi");
        assert_eq!(session.on_disk().iter().filter(|line| *line == "ran echo hi").count(), 1);
        session.shut_down().await;
    }
    assert!(!bench.path(".killed.jsonl.deferred").exists());
}

#[tokio::test]
async fn a_command_before_the_first_prompt_is_stored() {
    let bench = SessionBench::new([]);
    let mut session = bench.start().await;
    session.request(bash("echo hi")).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    assert_eq!(session.on_disk(), ["ran echo hi"]);
}

// Panics.

/// A tool whose description panics while `armed`: in the session task, which lists
/// the tools for each request.
fn panicking_spec() -> (TestTool, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let is_armed = Arc::clone(&armed);
    (TestTool::say().when_listed(move || assert!(!is_armed.load(Ordering::SeqCst), "spec broke")), armed)
}

#[tokio::test]
async fn panic_of_the_session_task_is_reported_and_the_session_can_be_reopened() {
    let (tool, armed) = panicking_spec();
    let bench = SessionBench::new(texts(["1", "2"])).tools([tool]);
    let mut session = bench.start().await;
    session.ask("one").await;
    let path = session.path();
    armed.store(true, Ordering::SeqCst);
    let refused = session.request(prompt("two", WhenBusy::Steer)).await;
    assert_eq!(refused, Err(SessionError::Ended));
    let crashed = session.until(|event| matches!(event, SessionEvent::Ended { .. })).await;
    let SessionEvent::Ended { reason } = crashed else { unreachable!() };
    assert!(reason.contains("spec broke"), "{reason}");
    armed.store(false, Ordering::SeqCst);
    let mut session = bench.resume(&path).await;
    assert!(session.opened().await.tail.iter().any(|entry| entry_line(entry) == "answer 1"));
    session.ask("two").await;
    assert_eq!(session.on_disk().last().unwrap(), "answer 2");
}

#[tokio::test]
async fn panic_in_the_provider_ends_the_run_and_is_not_repeated() {
    let bench = SessionBench::new([FakeAnswer::new().text_pieces(&["half"], None).panics("stream broke")]);
    let mut session = bench.start().await;
    let lines = session.ask("go").await;
    assert!(lines.iter().all(|line| !line.starts_with("retry")), "{lines:?}");
    assert_eq!(session.on_disk().last().unwrap(), "answer half (error)");
    assert_eq!(bench.provider.requests().len(), 1);
}

#[tokio::test]
async fn one_command_runs_at_a_time_and_can_be_stopped() {
    let bench = SessionBench::new([]);
    let mut session = bench.start().await;
    session.request(bash("echo begun; sleep 60")).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::BashOutput { .. })).await;
    let refused = session.request(bash("echo hi")).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))));
    session.request(SessionCommand::Abort).await.unwrap();
    let ended = session.until(|event| matches!(event, SessionEvent::BashEnded { .. })).await;
    let SessionEvent::BashEnded { execution, .. } = ended else { unreachable!() };
    assert!(execution.cancelled);
    assert_eq!(execution.timestamp.0, START_MS);
    assert_eq!(execution.output.trim_end(), "begun");
    assert_eq!(Arc::strong_count(&execution), 1);
}

#[tokio::test]
async fn two_sessions_of_one_process_see_nothing_of_each_other() {
    let command = json!({ "command": "echo $PI_SESSION_ID,$PI_MODEL" });
    let call = || FakeAnswer::new().tool_call("c", "bash", command.clone());
    let answers = [call(), FakeAnswer::of_text("1"), call(), FakeAnswer::of_text("2")];
    let bench = SessionBench::new(answers)
        .builtin_tools()
        .trust(TrustPolicy { can_ask: true, ..TrustPolicy::default() });
    bench.skill("work/.pi/skills/greet", "---\nname: greet\ndescription: d\n---\n");
    let [mut first, mut second] = bench.start_two().await;
    second.request(set_model("m-2")).await.unwrap();
    first.request(SessionCommand::DecideTrust { choice: TrustChoice::Session }).await.unwrap();
    let trust = [&first, &second].map(|session| session.handle.state().project.trust);
    assert_eq!(trust, [Trust::Trusted, Trust::Undecided]);
    for (session, model) in [(&mut first, "m-1"), (&mut second, "m-2")] {
        let lines = session.ask("where am I?").await;
        let id = session.handle.state().id.clone();
        let result = format!("tool end c: {id},{model}\n");
        assert!(lines.contains(&result), "{result} {lines:?}");
    }
    assert_ne!(first.handle.state().id, second.handle.state().id);
}

// Questions.

/// Asks about every call of `say`.
struct AskAboutSay;

impl ToolGate for AskAboutSay {
    fn check(&self, pending: &PendingCall<'_>) -> Verdict {
        assert_eq!(pending.spec.map(|spec| spec.name.as_str()), Some("say"));
        Verdict::Ask { text: format!("May it say {}?", pending.arguments["text"]) }
    }
}

/// A run that waits for permission to run `say x`, and the question about it.
async fn asked(can_ask: bool) -> (SessionBench, Session) {
    asked_by(says("a", "x"), can_ask).await
}

async fn asked_by(calls: FakeAnswer, can_ask: bool) -> (SessionBench, Session) {
    let bench = SessionBench::new([calls, FakeAnswer::of_text("ok")])
        .tools([TestTool::say()])
        .trust(TrustPolicy { can_ask, ..TrustPolicy::default() })
        .gate(AskAboutSay);
    let session = bench.start().await;
    session.prompt("go").await;
    (bench, session)
}

async fn question(session: &mut Session) -> Arc<Question> {
    match session.until(|event| matches!(event, SessionEvent::Question(_))).await {
        SessionEvent::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

fn is_closed(question: &Question) -> impl Fn(&SessionEvent) -> bool {
    let asked = question.id;
    move |event| matches!(event, SessionEvent::QuestionClosed { id } if *id == asked)
}

#[tokio::test]
async fn a_call_that_needs_permission_waits_for_the_answer() {
    for (option, expected) in
        [(0, "tool end a: x"), (1, "tool end a failed: The user did not allow this call.")]
    {
        let (_bench, mut session) = asked(true).await;
        let question = question(&mut session).await;
        assert_eq!(question.text, "May it say \"x\"?");
        assert_eq!(session.handle.state().questions[..], [Arc::clone(&question)]);
        let id = question.id;
        let refused = session.request(SessionCommand::Answer { id, option: 2 }).await;
        assert!(matches!(refused, Err(SessionError::Refused(_))), "{refused:?}");
        session.request(SessionCommand::Answer { id, option }).await.unwrap();
        session.until(is_closed(&question)).await;
        assert!(session.settled().await.contains(&expected.to_owned()));
        assert!(session.handle.state().questions.is_empty());
        let late = session.request(SessionCommand::Answer { id, option }).await;
        assert!(matches!(late, Err(SessionError::Refused(_))), "{late:?}");
    }
}

#[tokio::test]
async fn a_question_about_a_call_is_withdrawn_when_the_run_is_aborted_or_interrupted() {
    // The second call asks nothing then.
    let two = || says("a", "x").tool_call("b", "say", json!({ "text": "y" }));
    let (_bench, mut session) = asked_by(two(), true).await;
    let first = question(&mut session).await;
    session.request(SessionCommand::Abort).await.unwrap();
    session.until(is_closed(&first)).await;
    assert!(session.settled().await.contains(&"tool end a failed: Operation aborted".to_owned()));

    let (_bench, mut session) = asked_by(two(), true).await;
    let first = question(&mut session).await;
    session.say("rather this", WhenBusy::Now).await;
    session.until(is_closed(&first)).await;
    let skipped = "tool end a failed: Skipped due to queued user message.".to_owned();
    assert!(session.settled().await.contains(&skipped));
}

#[tokio::test]
async fn a_call_that_needs_permission_is_blocked_without_a_front_end() {
    let (_bench, mut session) = asked(false).await;
    let lines = session.settled().await;
    let expected =
        "tool end a failed: say was not run: it needs permission, and no user is available to ask".to_owned();
    assert!(lines.contains(&expected), "{lines:?}");
}

#[tokio::test]
async fn trust_is_a_question_and_its_answer_counts_for_the_next_request_of_a_run() {
    let gate = TestBarrier::new();
    let wait = FakeAnswer::new().tool_call("a", "wait", json!({ "gate": 0 }));
    let read = TestTool::new("read", |_, _| async { Ok(pi::agent::ToolOutput::text("read")) });
    let bench = SessionBench::new([wait, FakeAnswer::of_text("ok")])
        .tools([TestTool::wait(std::slice::from_ref(&gate)), read])
        .trust(TrustPolicy { can_ask: true, ..TrustPolicy::default() });
    bench.skill("work/.pi/skills/greet", "---\nname: greet\ndescription: d\n---\n");
    let mut session = bench.start().await;
    let question = question(&mut session).await;
    assert_eq!(question.kind, QuestionKind::Trust);
    assert_eq!(question.options[question.default], "Not now");
    session.prompt("go").await;
    session.until(|event| matches!(event, SessionEvent::Agent(AgentEvent::ToolStart { .. }))).await;
    let option = TRUST_OPTIONS.iter().position(|(choice, _)| *choice == TrustChoice::Folder).unwrap();
    session.request(SessionCommand::Answer { id: question.id, option }).await.unwrap();
    assert_eq!(session.handle.state().project.trust, Trust::Trusted);
    gate.open();
    session.settled().await;
    let requests = bench.provider.requests();
    let names = |at: usize| -> Vec<String> {
        let state = system_state(&requests[at].messages);
        state.sections.iter().map(|(name, _)| name.clone()).collect()
    };
    assert!(!names(0).contains(&"skills".to_owned()), "{:?}", names(0));
    assert!(names(1).contains(&"skills".to_owned()), "{:?}", names(1));
}

// Commands that leave the session while it works.

#[tokio::test]
async fn commands_that_leave_a_working_session_ask_first() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([FakeAnswer::of_text("1"), half(&gate)]);
    let mut session = bench.start().await;
    session.ask("one").await;
    let target =
        entries(&session.path()).into_iter().find(|entry| entry_line(entry) == "user one").unwrap().id;
    session.prompt("two").await;
    gate.reached().await;
    let path = session.path();
    let if_busy = IfBusy::Refuse;
    let commands = [
        SessionCommand::New { if_busy },
        SessionCommand::Open { path: path.clone(), if_busy },
        SessionCommand::Open { path: bench.path("missing.jsonl"), if_busy },
        SessionCommand::Import { path: path.clone(), if_busy },
        SessionCommand::Clone { if_busy },
        SessionCommand::Fork { target, if_busy },
    ];
    for command in commands {
        let refused = session.request(command.clone()).await;
        assert_eq!(refused, Err(Refusal::Working.into()), "{command:?}");
    }
    assert_eq!(session.path(), path);
    gate.open();
    session.settled().await;
    assert_eq!(session.on_disk().last().unwrap(), "answer half whole", "the answer was not touched");
}

#[tokio::test]
async fn queued_messages_return_to_the_user_when_the_session_is_left() {
    let gate = TestBarrier::new();
    let bench = SessionBench::new([half(&gate), FakeAnswer::of_text("ok")]);
    let mut session = bench.start().await;
    session.prompt("one").await;
    gate.reached().await;
    assert_eq!(session.say("queued", WhenBusy::FollowUp).await, Reply::Queued);
    let old = session.path();
    session.request(SessionCommand::New { if_busy: IfBusy::Cancel }).await.unwrap();
    let lines = session.waiting();
    assert!(lines.contains(&"returned queued".to_owned()), "{lines:?}");
    assert!(session.handle.state().queue.is_empty());
    // Until the editor is stored, the message is on disk beside the new session.
    let left: Vec<String> = fs::read_dir(old.parent().unwrap())
        .unwrap()
        .filter_map(|file| fs::read_to_string(file.unwrap().path()).ok())
        .filter(|text| text.contains("queued"))
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    session.ask("else").await;
    assert_eq!(sent(&bench.provider.requests()[1]), ["user else"]);
}

// Models that are gone.

#[tokio::test]
async fn model_that_no_list_has_is_named_when_the_session_is_opened() {
    let bench = SessionBench::new(texts(["ok"]));
    let change = r#"{"type":"model_change","id":"a","parentId":null,"timestamp":"T","provider":"acme","modelId":"old"}"#;
    let path = bench.session_file(&format!("{change}\n"));
    let mut session = bench.resume(&path).await;
    let lines = session.waiting();
    let expected = "Warning: acme/old is not in the model list; assuming the capabilities of its provider's default model";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    assert_eq!(session.handle.state().model.reference(), "acme/old");

    // Also after /resume.
    let gone = change.replace("acme", "no-such-provider");
    let text = format!("{}\n{gone}\n", bench.header().replace("given", "other"));
    let second = bench.path("second.jsonl");
    fs::write(&second, text).unwrap();
    session.request(SessionCommand::Open { path: second, if_busy: IfBusy::Cancel }).await.unwrap();
    let lines = session.waiting();
    let expected = "Warning: Could not restore model no-such-provider/old. Using acme/m-1.";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[tokio::test]
async fn second_process_cannot_name_an_open_session() {
    let bench = SessionBench::new(texts(["ok"]));
    let mut first = bench.start().await;
    first.ask("go").await;
    let second = bench.resume(&first.path()).await;
    let refused = second.request(SessionCommand::SetName { name: "mine".to_owned() }).await;
    assert!(matches!(refused, Err(SessionError::Refused(Refusal::ReadOnly { .. }))), "{refused:?}");
    assert_eq!(second.handle.state().name, None);
}
