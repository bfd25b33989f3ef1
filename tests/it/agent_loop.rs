//! The agent loop: its events, their order, and how runs end.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pi::agent::{
    AgentEvent, Progress, Pushed, QueueKind, QueueMode, SteeringDelivery, ToolError, ToolOutput, Touches,
};
use pi::ai::{
    AssistantBlock, BlockKind, FakeAnswer, Message, StopReason, StreamEvent, TestBarrier, ToolCall,
    preview_request,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::agent_bench::{AgentBench, Ran, TestTool, message_line, queued, user};

const SKIPPED: &str = "Skipped due to queued user message.";

fn says(id: &str, text: &str) -> FakeAnswer {
    FakeAnswer::new().tool_call(id, "say", json!({ "text": text }))
}

/// An answer that calls `wait` at each of the first `n` gates, as `c0`, `c1`, …
fn waits(n: usize) -> FakeAnswer {
    (0..n).fold(FakeAnswer::new(), |answer, at| {
        answer.tool_call(&format!("c{at}"), "wait", json!({ "gate": at }))
    })
}

fn gates(n: usize) -> Vec<TestBarrier> {
    (0..n).map(|_| TestBarrier::new()).collect()
}

/// One turn of calls to `tools`, then the answer `ok`.
async fn run_calls(answer: FakeAnswer, tools: impl IntoIterator<Item = TestTool>) -> Ran {
    AgentBench::new([answer, FakeAnswer::of_text("ok")]).tools(tools).run("go").await
}

// Order.

#[tokio::test]
async fn one_prompt_with_two_tools_tells_all_in_the_documented_order() {
    let gates = gates(2);
    let mut bench = AgentBench::new([waits(2), FakeAnswer::of_text("done")]).tools([TestTool::wait(&gates)]);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gates[0].reached().await;
        gates[1].open();
        tokio::task::yield_now().await;
        gates[1].reached().await;
        others_run().await;
        gates[0].open();
    });
    assert_eq!(
        ran.lines(),
        [
            "agent start",
            "turn start",
            "start user go",
            "end user go",
            "start answer",
            "end answer [c0][c1]",
            "tool start c0",
            "tool start c1",
            "tool runs c0",
            "tool runs c1",
            // As they end …
            "tool end c1: waited",
            "tool end c0: waited",
            // … and as they were called.
            "start result c0: waited",
            "end result c0: waited",
            "start result c1: waited",
            "end result c1: waited",
            "turn end with 2",
            "turn start",
            "start answer",
            "end answer done",
            "turn end with 0",
            "agent end with 5",
        ]
    );
    assert!(!ran.outcome.aborted);
    assert_eq!(message_line(ran.outcome.last.as_ref().unwrap()), "answer done");
}

/// Lets the loop do all it can without the test.
async fn others_run() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_sequential_tool_makes_its_batch_sequential() {
    let answer =
        says("a", "x").tool_call("b", "alone", json!({})).tool_call("c", "say", json!({"text": "z"}));
    let alone = TestTool::new("alone", |_, _| async { Ok(ToolOutput::text("y")) }).sequential();
    let ran = run_calls(answer, [TestTool::say(), alone]).await;
    assert_eq!(
        ran.lines()[5..19],
        [
            "end answer [a][b][c]",
            "tool start a",
            "tool runs a",
            "tool end a: x",
            "start result a: x",
            "end result a: x",
            "tool start b",
            "tool runs b",
            "tool end b: y",
            "start result b: y",
            "end result b: y",
            "tool start c",
            "tool runs c",
            "tool end c: z",
        ]
    );
}

#[tokio::test]
async fn pieces_of_an_answer_arrive_as_updates() {
    let ran = AgentBench::new([FakeAnswer::new().text_pieces(&["a", "b"], None)]).run("go").await;
    let updates: Vec<&StreamEvent> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::MessageUpdate(update) => Some(update),
            _ => None,
        })
        .collect();
    let delta = |text: &str| StreamEvent::Delta { index: 0, text: text.to_owned() };
    assert_eq!(
        updates[..3],
        [&StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }, &delta("a"), &delta("b")]
    );
    assert_eq!(updates.len(), 4);
}

#[tokio::test]
async fn every_request_holds_the_whole_conversation() {
    let mut bench = AgentBench::new([says("a", "x"), FakeAnswer::of_text("ok")]).tools([TestTool::say()]);
    bench.clock.advance(std::time::Duration::from_millis(234));
    let earlier = vec![Arc::new(Message::User(user("before")))];
    bench.run_with(vec![Message::User(user("go"))], earlier).await;
    let requests = bench.provider.requests();
    let shown: Vec<Vec<String>> = requests
        .iter()
        .map(|request| request.messages.iter().map(|message| message_line(message)).collect())
        .collect();
    assert_eq!(
        shown,
        [vec!["user before", "user go"], vec!["user before", "user go", "answer [a]", "result a: x"]]
    );
    assert_eq!(requests[0].options.started_ms, 1_234);
}

// Calls and results.

/// The results of one answer's calls.
#[track_caller]
fn check_results(ran: &Ran, expected: &[&str]) {
    let messages = ran.messages();
    let results: Vec<&String> = messages.iter().filter(|line| line.starts_with("result ")).collect();
    assert_eq!(results, expected);
    assert_eq!(messages.last().unwrap(), "answer ok", "the model answers the results");
}

#[tokio::test]
async fn call_by_a_decorated_name_runs_and_is_stored_by_the_real_one() {
    let answer = FakeAnswer::new()
        .tool_call("a", "Say", json!({"text": "x"}))
        .tool_call("b", "say<|channel|>commentary", json!({"text": "y"}))
        .tool_call("c", "functions.say", json!({"text": "z"}));
    let ran = run_calls(answer, [TestTool::say()]).await;
    check_results(&ran, &["result a: x", "result b: y", "result c: z"]);
    for event in &ran.events {
        if let AgentEvent::MessageEnd(message) = event
            && let Message::Assistant(answer) = &**message
        {
            assert!(answer.tool_calls().all(|call| call.name == "say"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_run_is_a_result_the_model_reads() {
    let strict = TestTool::say().parameters(
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
    );
    let failing =
        TestTool::new("fail", |_, _| async { Err::<ToolOutput, _>(ToolError::new("no such file")) });
    let answer = FakeAnswer::new()
        .tool_call("a", "nothing", json!({}))
        .tool_call("b", "say", json!({"text": {"deep": 1}}))
        .tool_call("c", "fail", json!({}))
        .tool_call("d", "say", json!({"text": 5}));
    let ran = run_calls(answer, [strict, failing]).await;
    let expected = [
        "result a failed: Tool nothing not found. Available tools: say, fail",
        "result b failed: Validation failed for tool \"say\":\n  - text: must be string\n\nReceived \
         arguments:\n{\n  \"text\": {\n    \"deep\": 1\n  }\n}",
        "result c failed: no such file",
        // A number where text is wanted is mended.
        "result d: 5",
    ];
    check_results(&ran, &expected);
}

#[tokio::test]
async fn the_conversation_keeps_the_arguments_as_the_model_wrote_them() {
    let strict =
        TestTool::say().parameters(json!({"type": "object", "properties": {"text": {"type": "string"}}}));
    let ran = run_calls(FakeAnswer::new().tool_call("d", "say", json!({"text": 5})), [strict]).await;
    let call = ran.events.iter().find_map(|event| match event {
        AgentEvent::MessageEnd(message) => match &**message {
            Message::Assistant(answer) => answer.tool_calls().next().cloned(),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(call.unwrap().arguments, json!({"text": 5}));
}

#[tokio::test]
async fn arguments_that_are_no_object_are_named_to_the_model() {
    let call = ToolCall {
        id: "a".to_owned(),
        name: "say".to_owned(),
        arguments: json!({}),
        thought_signature: None,
        arguments_error: Some("expected `}`\n\nReceived arguments:\n{\"text\"".to_owned()),
        extra: serde_json::Map::new(),
    };
    let mut done =
        pi::ai::AssistantMessage::pending(pi::ai::Api::OPENAI_COMPLETIONS, "acme", "m", pi::ai::Millis(0));
    done.content = vec![AssistantBlock::ToolCall(call.clone())];
    done.stop_reason = StopReason::ToolUse;
    let kind = BlockKind::ToolCall { id: "a".to_owned(), name: "say".to_owned() };
    let answer = FakeAnswer::of_events([
        StreamEvent::Start,
        StreamEvent::BlockStart { index: 0, kind },
        StreamEvent::BlockEnd { index: 0, block: AssistantBlock::ToolCall(call) },
        StreamEvent::Done(Box::new(done)),
    ]);
    let ran = run_calls(answer, [TestTool::say()]).await;
    let expected = "result a failed: the arguments of say are not a JSON object: expected `}`\n\nReceived \
                    arguments:\n{\"text\"";
    check_results(&ran, &[expected]);
}

#[tokio::test]
async fn calls_of_an_answer_that_was_cut_off_are_not_executed() {
    let n_runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_runs);
    let count = TestTool::new("count", move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(ToolOutput::text("ran")) }
    });
    // A sequential tool would announce its results one by one.
    let answer = FakeAnswer::new().tool_call("a", "count", json!({})).tool_call("b", "count", json!({}));
    let ran = run_calls(answer.stop(StopReason::Length), [count.sequential()]).await;
    let refusal = "failed: This call was not executed: the answer hit the output token limit, so its \
                   arguments may be truncated. Repeat the complete call.";
    check_results(&ran, &[&format!("result a {refusal}"), &format!("result b {refusal}")]);
    assert_eq!(n_runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_blocked_call_answers_with_the_reason() {
    let mut bench = AgentBench::new([says("a", "x"), FakeAnswer::of_text("ok")]).tools([TestTool::say()]);
    bench.blocked = vec!["say"];
    let ran = bench.run("go").await;
    check_results(&ran, &["result a failed: say is not allowed here"]);
}

#[tokio::test]
async fn a_gate_sees_validated_arguments_and_its_changes_are_validated_too() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let check = async |changed: Value, expected: &str| {
        let say = TestTool::say().parameters(schema.clone());
        let answers = [says("a", "x"), FakeAnswer::of_text("ok")];
        let mut bench = AgentBench::new(answers).tools([say]);
        bench.gate = Some(Box::new(move |call| {
            assert_eq!(*call.arguments, json!({ "text": "x" }));
            pi::agent::Gate::Change { arguments: changed.clone() }
        }));
        let ran = bench.run("go").await;
        let result = ran.messages()[2].clone();
        assert!(result.starts_with(expected), "{result}");
    };
    check(json!({ "text": "y" }), "result a: y").await;
    check(json!({ "other": 1 }), "result a failed: Validation failed for tool \"say\"").await;
}

#[tokio::test]
async fn a_gate_knows_what_a_call_touches() {
    let judged = Arc::new(Mutex::new(Vec::new()));
    let say = TestTool::say().touching(Touches::runs("cat"));
    let call = FakeAnswer::new().tool_call("a", "say", json!({"text": "x", "writes": "f"}));
    let mut bench = AgentBench::new([call, FakeAnswer::of_text("ok")]).tools([say]);
    let seen = Arc::clone(&judged);
    bench.gate = Some(Box::new(move |call| {
        seen.lock().unwrap().push(call.touches.clone());
        pi::agent::Gate::Allow
    }));
    bench.run("go").await;
    let expected = Touches { writes: vec!["/f".into()], ..Touches::runs("cat") };
    assert_eq!(*judged.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn calls_that_access_a_file_that_one_writes_run_in_the_order_of_the_calls() {
    let gate = TestBarrier::new();
    let answer = FakeAnswer::new()
        .tool_call("a", "wait", json!({"gate": 0, "writes": "f"}))
        .tool_call("b", "look", json!({}))
        .tool_call("c", "say", json!({"writes": "f"}))
        .tool_call("d", "say", json!({"text": "besides", "writes": "g"}));
    let started = Arc::new(Mutex::new(Vec::new()));
    let begun = Arc::clone(&started);
    let look = TestTool::new("look", move |_, cx| {
        begun.lock().unwrap().push(cx.id);
        async { Ok(ToolOutput::text("seen")) }
    });
    let look = look.touching(Touches::reads("/f".into()));
    let mut bench = AgentBench::new([answer, FakeAnswer::of_text("ok")]).tools([
        TestTool::wait(std::slice::from_ref(&gate)),
        look,
        TestTool::say(),
    ]);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        others_run().await;
        assert!(started.lock().unwrap().is_empty(), "the file is being written");
        gate.open();
    });
    let ends: Vec<String> = ran.lines().into_iter().filter(|line| line.starts_with("tool end")).collect();
    assert_eq!(ends, ["tool end d: besides", "tool end a: waited", "tool end b: seen", "tool end c: "]);
}

#[tokio::test]
async fn the_owner_of_a_run_changes_tools_prompt_and_messages_of_the_next_request() {
    let other = FakeAnswer::new().tool_call("b", "other", json!({}));
    let mut bench =
        AgentBench::new([says("a", "x"), other, FakeAnswer::of_text("ok")]).tools([TestTool::say()]);
    let mut n_asked = 0;
    bench.prepare = Some(Box::new(move |next| {
        n_asked += 1;
        if n_asked == 1 {
            let other = TestTool::new("other", |_, _| async { Ok(ToolOutput::text("there")) });
            next.tools = pi::agent::ToolRegistry::new(vec![Arc::new(other)]);
            next.request.messages.truncate(1);
            next.system =
                Some(serde_json::from_value(json!({"content": "New rules.", "timestamp": 1})).unwrap());
        }
    }));
    let ran = bench.run("go").await;
    let messages = ran.messages();
    assert_eq!(
        messages,
        ["user go", "answer [a]", "result a: x", "system", "answer [b]", "result b: there", "answer ok"]
    );
    let requests = bench.provider.requests();
    let second: Vec<String> = requests[1].messages.iter().map(|message| message_line(message)).collect();
    assert_eq!(second, ["user go", "system"]);
}

#[tokio::test]
async fn progress_is_told_until_the_call_ends() {
    let late: Arc<Mutex<Option<Progress>>> = Arc::default();
    let kept = Arc::clone(&late);
    let talks = TestTool::new("talk", move |_, cx| {
        let kept = Arc::clone(&kept);
        async move {
            cx.progress.report(ToolOutput::text("half"));
            tokio::task::yield_now().await;
            cx.progress.report(ToolOutput::text("nearly all"));
            *kept.lock().unwrap() = Some(cx.progress);
            Ok(ToolOutput::text(format!("all of {}", cx.id)))
        }
    });
    let gate = TestBarrier::new();
    let answer =
        FakeAnswer::new().tool_call("a", "talk", json!({})).tool_call("b", "wait", json!({"gate": 0}));
    let mut bench = AgentBench::new([answer, FakeAnswer::of_text("ok")])
        .tools([talks, TestTool::wait(std::slice::from_ref(&gate))])
        .on_event(move |event| {
            // An abandoned part of the call keeps reporting.
            if matches!(event, AgentEvent::ToolEnd { call_id, .. } if call_id == "a") {
                late.lock().unwrap().as_ref().unwrap().report(ToolOutput::text("too late"));
            }
        });
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        others_run().await;
        gate.open();
    });
    let lines = ran.lines();
    let tools: Vec<&String> = lines.iter().filter(|line| line.starts_with("tool ")).collect();
    let expected = [
        "tool start a",
        "tool start b",
        "tool runs a",
        "tool runs b",
        "tool update a: half",
        "tool update a: nearly all",
        "tool end a: all of a",
        "tool end b: waited",
    ];
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn eight_calls_run_at_a_time_and_all_run_in_the_end() {
    let gates = gates(11);
    let mut bench = AgentBench::new([waits(11), FakeAnswer::of_text("ok")]).tools([TestTool::wait(&gates)]);
    let (ran, n_first) = tokio::join!(bench.run("go"), async {
        gates[7].reached().await;
        others_run().await;
        let standing =
            gates.iter().map(|gate| tokio::time::timeout(std::time::Duration::ZERO, gate.reached()));
        let n_first =
            futures_util::future::join_all(standing).await.iter().filter(|came| came.is_ok()).count();
        for gate in &gates {
            gate.open();
        }
        n_first + 1
    });
    assert_eq!(n_first, 8);
    assert_eq!(ran.messages().iter().filter(|line| line.ends_with(": waited")).count(), 11);
}

#[tokio::test]
async fn a_run_ends_when_every_result_asks_for_it() {
    let finish = || {
        TestTool::new("finish", |_, _| async {
            Ok(ToolOutput { terminate: true, ..ToolOutput::text("bye") })
        })
    };
    let both = FakeAnswer::new().tool_call("a", "finish", json!({})).tool_call("b", "finish", json!({}));
    let ran = AgentBench::new([both]).tools([finish()]).run("go").await;
    assert_eq!(ran.messages().last().unwrap(), "result b: bye");

    let one =
        FakeAnswer::new().tool_call("a", "finish", json!({})).tool_call("b", "say", json!({"text": "no"}));
    let ran = run_calls(one, [finish(), TestTool::say()]).await;
    assert_eq!(ran.messages().last().unwrap(), "answer ok");
}

// Steering.

/// Queues `text` while two of three calls run, and ends the first.
async fn steer_mid_tools(delivery: SteeringDelivery) -> Ran {
    let gates = gates(9);
    let calls = waits(9);
    let mut bench = AgentBench::new([calls, FakeAnswer::of_text("ok")])
        .tools([TestTool::wait(&gates)])
        .delivery(delivery);
    let queues = Arc::clone(&bench.queues);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gates[7].reached().await;
        queues.push(QueueKind::Steering, queued("rather"), 0);
        others_run().await;
        for gate in &gates {
            gate.open();
        }
    });
    ran
}

#[tokio::test]
async fn steering_between_tools_skips_those_that_have_not_started() {
    let ran = steer_mid_tools(SteeringDelivery::Tools).await;
    let messages = ran.messages();
    assert_eq!(messages[2], "result c0: waited");
    assert_eq!(messages[9], "result c7: waited");
    assert_eq!(messages[10..], [&format!("result c8 failed: {SKIPPED}"), "user rather", "answer ok"]);
}

#[tokio::test]
async fn steering_after_the_turn_lets_every_tool_run() {
    let ran = steer_mid_tools(SteeringDelivery::Turn).await;
    assert_eq!(ran.messages()[10..], ["result c8: waited", "user rather", "answer ok"]);
}

#[tokio::test]
async fn steering_at_once_cancels_what_runs() {
    let ran = steer_mid_tools(SteeringDelivery::Now).await;
    let messages = ran.messages();
    assert_eq!(messages[2], "result c0 failed: Command aborted");
    assert_eq!(messages[10..], [&format!("result c8 failed: {SKIPPED}"), "user rather", "answer ok"]);
    assert!(!ran.outcome.aborted, "the run itself goes on");
}

#[tokio::test]
async fn sequential_tools_that_have_not_started_are_skipped_too() {
    let gate = TestBarrier::new();
    let mut bench = AgentBench::new([waits(1).tool_call("b", "say", json!({})), FakeAnswer::of_text("ok")])
        .tools([TestTool::wait(std::slice::from_ref(&gate)).sequential(), TestTool::say()]);
    let queues = Arc::clone(&bench.queues);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        queues.push(QueueKind::Steering, queued("rather"), 0);
        gate.open();
    });
    let skipped = format!("result b failed: {SKIPPED}");
    assert_eq!(ran.messages()[2..], ["result c0: waited", &skipped, "user rather", "answer ok"]);
}

/// Does something to the queues in the middle of an answer `half …`.
async fn mid_stream(delivery: SteeringDelivery, act: impl FnOnce(&pi::agent::Queues)) -> (Ran, AgentBench) {
    let gate = TestBarrier::new();
    let answer = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let mut bench = AgentBench::new([answer, FakeAnswer::of_text("ok")]).delivery(delivery);
    let queues = Arc::clone(&bench.queues);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        act(&queues);
        gate.open();
    });
    (ran, bench)
}

#[tokio::test]
async fn steering_waits_for_the_answer_unless_it_is_delivered_at_once() {
    let steer = |queues: &pi::agent::Queues| {
        queues.push(QueueKind::Steering, queued("rather"), 0);
    };
    for delivery in [SteeringDelivery::Tools, SteeringDelivery::Turn] {
        let (ran, _) = mid_stream(delivery, steer).await;
        assert_eq!(ran.messages(), ["user go", "answer half whole", "user rather", "answer ok"]);
    }
    let (ran, _) = mid_stream(SteeringDelivery::Now, steer).await;
    assert_eq!(ran.messages(), ["user go", "answer half (aborted)", "user rather", "answer ok"]);
}

#[tokio::test]
async fn an_urgent_message_interrupts_whatever_the_setting() {
    let (ran, bench) = mid_stream(SteeringDelivery::Turn, |queues| {
        queues.push(QueueKind::Steering, queued("later"), 0);
        queues.push_now(queued("wait"), 1);
    })
    .await;
    assert_eq!(
        ran.messages(),
        ["user go", "answer half (aborted)", "user wait", "answer ok", "user later", "answer  (error)"]
    );
    assert_eq!(bench.provider.requests().len(), 3);
}

#[tokio::test]
async fn queued_steering_can_be_delivered_now() {
    let (ran, _) = mid_stream(SteeringDelivery::Turn, |queues| {
        assert!(!queues.deliver_now(), "there is nothing to deliver");
        queues.push(QueueKind::Steering, queued("rather"), 0);
        assert!(queues.deliver_now());
    })
    .await;
    assert_eq!(ran.messages(), ["user go", "answer half (aborted)", "user rather", "answer ok"]);
}

#[tokio::test]
async fn an_interrupted_answer_is_kept_and_not_sent_again() {
    let (_, bench) = mid_stream(SteeringDelivery::Now, |queues| {
        queues.push(QueueKind::Steering, queued("rather"), 0);
    })
    .await;
    let request = &bench.provider.requests()[1];
    let kept: Vec<String> = request.messages.iter().map(|message| message_line(message)).collect();
    assert_eq!(kept, ["user go", "answer half (aborted)", "user rather"]);
    let body = preview_request(request).unwrap().body;
    let roles: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert!(roles.iter().all(|role| *role == "user"), "{body}");
}

#[tokio::test]
async fn a_message_that_must_not_wait_never_waits_for_an_answer() {
    // Urgent in the moment between two turns, when there is nothing to cancel.
    let bench = AgentBench::new([says("a", "x"), FakeAnswer::of_text("ok")]).tools([TestTool::say()]);
    let queues = Arc::clone(&bench.queues);
    let mut bench = bench.delivery(SteeringDelivery::Turn).on_event(move |event| {
        if matches!(event, AgentEvent::MessageStart(message) if message_line(message) == "user slow") {
            queues.push_now(queued("wait"), 1);
        }
    });
    let queues = Arc::clone(&bench.queues);
    queues.push(QueueKind::Steering, queued("slow"), 0);
    let ran = bench.run("go").await;
    assert_eq!(ran.messages()[..3], ["user go", "user slow", "user wait"]);
    assert_eq!(bench.provider.requests().len(), 2);
}

#[tokio::test]
async fn each_queue_delivers_as_its_mode_says() {
    for (mode, expected) in [
        (QueueMode::OneAtATime, &["user go", "answer 1", "user a", "answer 2", "user b", "answer 3"][..]),
        (QueueMode::All, &["user go", "answer 1", "user a", "user b", "answer 2"][..]),
    ] {
        for kind in [QueueKind::Steering, QueueKind::FollowUp] {
            let gate = TestBarrier::new();
            let texts = ["1", "2", "3"].map(|text| FakeAnswer::of_text(text).gate(&gate));
            let mut bench = AgentBench::new(texts);
            bench.queues.configure(SteeringDelivery::Turn, mode, mode);
            let queues = Arc::clone(&bench.queues);
            let (ran, ()) = tokio::join!(bench.run("go"), async {
                gate.reached().await;
                queues.push(kind, queued("a"), 0);
                queues.push(kind, queued("b"), 0);
                (0..3).for_each(|_| gate.open());
            });
            assert_eq!(ran.messages(), expected, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn follow_ups_come_last() {
    let gate = TestBarrier::new();
    let answers = [says("a", "x").gate(&gate), FakeAnswer::of_text("1"), FakeAnswer::of_text("2")];
    let mut bench = AgentBench::new(answers).tools([TestTool::say()]).delivery(SteeringDelivery::Turn);
    let queues = Arc::clone(&bench.queues);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        queues.push(QueueKind::FollowUp, queued("and then"), 0);
        queues.push(QueueKind::Steering, queued("rather"), 0);
        assert_eq!(queues.push(QueueKind::Steering, queued("rather"), 4_999), Pushed::Duplicate);
        gate.open();
    });
    let expected =
        ["user go", "answer [a]", "result a: x", "user rather", "answer 1", "user and then", "answer 2"];
    assert_eq!(ran.messages(), expected);
}

#[tokio::test]
async fn what_was_queued_before_the_run_comes_along() {
    let mut bench = AgentBench::new([FakeAnswer::of_text("ok")]);
    bench.queues.push(QueueKind::Steering, queued("also"), 0);
    let ran = bench.run("go").await;
    assert_eq!(ran.messages(), ["user go", "user also", "answer ok"]);
}

// Abort and failure.

#[tokio::test]
async fn an_abort_before_the_request_sends_none() {
    let mut bench = AgentBench::new([FakeAnswer::of_text("never")]);
    bench.cancel.cancel();
    let ran = bench.run("go").await;
    assert_eq!(ran.messages(), ["user go", "answer  (aborted)"]);
    assert!(ran.outcome.aborted);
    assert!(bench.provider.requests().is_empty());
}

async fn abort_at(gate: &TestBarrier, cancel: CancellationToken) {
    gate.reached().await;
    cancel.cancel();
}

#[tokio::test]
async fn an_abort_keeps_what_had_arrived_of_the_answer() {
    let gate = TestBarrier::new();
    let answer = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let mut bench = AgentBench::new([answer]);
    bench.queues.push(QueueKind::FollowUp, queued("and then"), 0);
    let cancel = bench.cancel.clone();
    let (ran, ()) = tokio::join!(bench.run("go"), abort_at(&gate, cancel));
    assert_eq!(ran.messages(), ["user go", "answer half (aborted)"]);
    assert!(ran.outcome.aborted);
    assert!(!bench.queues.is_empty(), "the queue stays");
}

#[tokio::test]
async fn an_abort_ends_running_tools_and_starts_no_more() {
    let gates = gates(9);
    let mut bench = AgentBench::new([waits(9)]).tools([TestTool::wait(&gates)]);
    let cancel = bench.cancel.clone();
    let (ran, ()) = tokio::join!(bench.run("go"), abort_at(&gates[7], cancel));
    let messages = ran.messages();
    assert_eq!(messages[2], "result c0 failed: Command aborted");
    assert_eq!(messages[10..], ["result c8 failed: Operation aborted"]);
    assert!(ran.outcome.aborted);
    assert_eq!(bench.provider.requests().len(), 1);
}

#[tokio::test]
async fn abort_gives_sequential_calls_that_have_not_started_a_result() {
    let gates = gates(2);
    let mut bench = AgentBench::new([waits(2)]).tools([TestTool::wait(&gates).sequential()]);
    let cancel = bench.cancel.clone();
    let (ran, ()) = tokio::join!(bench.run("go"), abort_at(&gates[0], cancel));
    let failed = ["result c0 failed: Command aborted", "result c1 failed: Operation aborted"];
    assert_eq!(ran.messages()[1..], ["answer [c0][c1]", failed[0], failed[1]]);
    let started = ran.events.iter().filter(|event| matches!(event, AgentEvent::ToolStart { .. })).count();
    assert_eq!(started, 2);
}

#[tokio::test]
async fn abort_is_checked_before_tool_and_arguments_of_a_call() {
    let gates = gates(1);
    let answer =
        waits(1).tool_call("x", "no_such_tool", json!({})).tool_call("y", "wait", json!("no object"));
    let mut bench = AgentBench::new([answer]).tools([TestTool::wait(&gates).sequential()]);
    let cancel = bench.cancel.clone();
    let (ran, ()) = tokio::join!(bench.run("go"), abort_at(&gates[0], cancel));
    let aborted = ["result x failed: Operation aborted", "result y failed: Operation aborted"];
    assert_eq!(ran.messages()[3..], aborted);
}

#[tokio::test]
async fn a_failed_answer_ends_the_run() {
    let mut bench = AgentBench::new([says("a", "x").error("overloaded"), FakeAnswer::of_text("never")])
        .tools([TestTool::say()]);
    bench.queues.push(QueueKind::FollowUp, queued("and then"), 0);
    let ran = bench.run("go").await;
    // Its calls do not run.
    assert_eq!(ran.messages(), ["user go", "answer [a] (error)"]);
    assert!(!ran.outcome.aborted);
    assert_eq!(ran.outcome.last_assistant().unwrap().error_message.as_deref(), Some("overloaded"));
    assert_eq!(bench.provider.n_left(), 1);
}

#[tokio::test]
async fn a_stream_that_just_ends_fails_with_what_had_arrived() {
    let events = [
        StreamEvent::Start,
        StreamEvent::BlockStart { index: 0, kind: BlockKind::Text },
        StreamEvent::Delta { index: 0, text: "half".to_owned() },
    ];
    let ran = AgentBench::new([FakeAnswer::of_events(events)]).run("go").await;
    assert_eq!(ran.messages(), ["user go", "answer half (error)"]);
    let error = ran.outcome.last_assistant().unwrap().error_message.clone();
    assert_eq!(error.as_deref(), Some("stream ended without a final event"));
    assert!(pi::ai::is_retryable(ran.outcome.last_assistant().unwrap()));
}

#[tokio::test]
async fn a_run_without_prompts_repeats_the_request() {
    let mut bench = AgentBench::new([FakeAnswer::of_text("ok")]);
    let ran = bench.run_with(Vec::new(), vec![Arc::new(Message::User(user("go")))]).await;
    assert_eq!(ran.messages(), ["answer ok"]);
    assert_eq!(bench.provider.requests()[0].messages.len(), 1);
}

// Panics.

#[tokio::test]
async fn panic_in_a_tool_is_its_result_and_the_others_go_on() {
    let breaks = TestTool::new("break", |_, _| async move { panic!("tool broke") });
    let answer =
        FakeAnswer::new().tool_call("a", "break", json!({})).tool_call("b", "say", json!({"text": "x"}));
    let mut bench = AgentBench::new([answer, FakeAnswer::of_text("ok")]).tools([breaks, TestTool::say()]);
    let ran = bench.run("go").await;
    check_results(&ran, &["result a failed: break failed: internal error in pi: tool broke", "result b: x"]);
    assert_eq!(ran.outcome.panic, None);
}

#[tokio::test]
async fn panic_in_the_provider_keeps_what_had_arrived() {
    let mut bench = AgentBench::new([FakeAnswer::new().text_pieces(&["half"], None).panics("stream broke")]);
    let ran = bench.run("go").await;
    assert_eq!(ran.messages(), ["user go", "answer half (error)"]);
    assert_eq!(ran.outcome.panic.as_deref(), Some("stream broke"));
}

#[tokio::test]
async fn enter_on_an_empty_editor_delivers_everything_queued_in_order() {
    let gate = TestBarrier::new();
    let answers =
        [FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate)), FakeAnswer::of_text("ok")];
    let mut bench = AgentBench::new(answers);
    let queues = Arc::clone(&bench.queues);
    let (ran, ()) = tokio::join!(bench.run("go"), async {
        gate.reached().await;
        for (kind, text) in
            [(QueueKind::FollowUp, "later"), (QueueKind::Steering, "a"), (QueueKind::Steering, "b")]
        {
            assert_eq!(queues.push(kind, queued(text), 0), Pushed::Queued);
        }
        assert!(queues.deliver_now());
    });
    assert_eq!(
        ran.messages(),
        ["user go", "answer half (aborted)", "user a", "user b", "user later", "answer ok"]
    );
}

/// Wherever the owner of a run panics, the events end as the grammar says (checked by
/// the bench), the last message says what happened, and the queues forget the turn.
#[tokio::test]
async fn panic_anywhere_in_a_run_ends_it_in_order() {
    // All events of the run but its last.
    for at in 0..19 {
        let mut n_seen = 0;
        let calls = says("a", "x").tool_call("b", "say", json!({"text": "y"}));
        let mut bench = AgentBench::new([calls, FakeAnswer::of_text("ok")])
            .tools([TestTool::say()])
            .on_event(move |event| {
                if !matches!(event, AgentEvent::MessageUpdate(_)) {
                    n_seen += 1;
                    assert!(n_seen != at + 1, "hook broke");
                }
            });
        let ran = bench.run("go").await;
        let lines = ran.lines();
        assert!(lines.last().unwrap().starts_with("agent end"), "{at}: {lines:?}");
        assert_eq!(ran.outcome.panic.as_deref(), Some("hook broke"), "{at}");
        assert_eq!(ran.messages().last().unwrap(), "answer  (error)", "{at}: {lines:?}");
        let queues = format!("{:?}", bench.queues);
        assert!(queues.contains("turn: None"), "a token without a waiter is left: {queues}");
    }
}
