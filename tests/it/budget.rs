//! Limits of cost: where a run ends, what is asked, how it continues.

use pi::ai::{FakeAnswer, TestBarrier, Usage};
use pi::config::TrustPolicy;
use pi::session::{
    BudgetPeriod, Phase, QuestionKind, Reply, SessionCommand, SessionError, SessionEvent, WhenBusy,
};
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::session_bench::{Session, SessionBench, prompt};

fn costing(answer: FakeAnswer, usd: f64) -> FakeAnswer {
    let mut usage = Usage { input: 10, output: 1, total_tokens: 11, ..Usage::default() };
    usage.cost.total = usd;
    usage.cost.total_from_provider = Some(true);
    answer.usage(usage)
}

fn calling(id: &str) -> FakeAnswer {
    FakeAnswer::new().tool_call(id, "say", json!({ "text": id }))
}

fn bench(answers: Vec<FakeAnswer>, budget: Value, can_ask: bool) -> SessionBench {
    SessionBench::new(answers)
        .tools([TestTool::say()])
        .settings(json!({ "budget": budget }))
        .trust(TrustPolicy { can_ask, ..TrustPolicy::default() })
}

/// The open question about a limit, if there is one.
fn question(session: &Session) -> Option<(pi::session::QuestionId, BudgetPeriod)> {
    session.handle.state().questions.iter().find_map(|question| match question.kind {
        QuestionKind::Budget(period) => Some((question.id, period)),
        QuestionKind::Trust | QuestionKind::ToolCall(_) => None,
    })
}

#[tokio::test]
async fn a_run_ends_one_answer_after_the_limit_and_continues_on_request() {
    let answers = vec![
        costing(calling("c1"), 1.0),
        costing(calling("c2"), 1.0),
        costing(FakeAnswer::of_text("done"), 1.0),
    ];
    let bench = bench(answers, json!({ "turnUsd": 1.5 }), true);
    let mut session = bench.start().await;
    session.ask("work").await;
    assert_eq!(bench.provider.requests().len(), 2, "overshoot is one answer");
    // The calls of the last answer ran, and their results are stored.
    assert!(session.on_disk().last().unwrap().contains("c2"), "{:?}", session.on_disk());
    let (id, period) = question(&session).unwrap();
    assert_eq!((period, session.handle.state().phase), (BudgetPeriod::Turn, Phase::Idle));

    assert_eq!(session.request(SessionCommand::Answer { id, option: 1 }).await, Ok(Reply::Done));
    session.settled().await;
    assert_eq!(bench.provider.requests().len(), 3);
    assert!(session.on_disk().last().unwrap().contains("done"));
    assert_eq!(question(&session), None);
}

#[tokio::test]
async fn stopping_leaves_the_conversation_usable() {
    let answers = vec![costing(calling("c1"), 2.0), FakeAnswer::of_text("next")];
    let bench = bench(answers, json!({ "turnUsd": 1 }), true);
    let mut session = bench.start().await;
    session.ask("work").await;
    let (id, _) = question(&session).unwrap();
    session.request(SessionCommand::Answer { id, option: 0 }).await.unwrap();
    assert_eq!(bench.provider.requests().len(), 1);
    // A new prompt has a limit of its own.
    session.ask("something else").await;
    assert!(session.on_disk().last().unwrap().contains("next"));
}

#[tokio::test]
async fn without_a_front_end_the_run_stops_with_a_notice() {
    let bench = bench(vec![costing(calling("c1"), 2.0)], json!({ "turnUsd": 1 }), false);
    let mut session = bench.start().await;
    session.prompt("work").await;
    let notice = session.until(|event| matches!(event, SessionEvent::Notice { .. })).await;
    let SessionEvent::Notice { text, .. } = notice else { unreachable!() };
    assert_eq!(
        text,
        "This prompt has cost $2.00, more than the limit of $1.00 (budget.turnUsd). The agent stopped."
    );
    session.settled().await;
    assert_eq!((bench.provider.requests().len(), question(&session)), (1, None));
}

#[tokio::test]
async fn a_session_over_its_limit_refuses_prompts_until_it_is_raised() {
    let answers = vec![costing(FakeAnswer::of_text("one"), 2.0), FakeAnswer::of_text("two")];
    let bench = bench(answers, json!({ "sessionUsd": 1 }), true);
    let mut session = bench.start().await;
    session.ask("first").await;
    assert_eq!(question(&session), None, "nothing was stopped");
    let refused = session.request(prompt("second", WhenBusy::Steer)).await;
    let Err(SessionError::Refused(text)) = refused else { panic!("{refused:?}") };
    assert!(text.to_string().starts_with("This session has cost $2.00"), "{text}");
    let (id, period) = question(&session).unwrap();
    assert_eq!(period, BudgetPeriod::Session);
    session.request(SessionCommand::Answer { id, option: 1 }).await.unwrap();
    session.ask("second").await;
    assert_eq!(bench.provider.requests().len(), 2);
    // Another process counts what the file contains.
    let path = session.path();
    session.shut_down().await;
    let session = bench.resume(&path).await;
    assert!(session.request(prompt("third", WhenBusy::Steer)).await.is_err());
}

#[tokio::test]
async fn the_limit_of_a_day_counts_all_sessions() {
    let answers = vec![costing(FakeAnswer::of_text("one"), 2.0)];
    let bench = bench(answers, json!({ "dayUsd": 1 }), true);
    let mut session = bench.start().await;
    session.ask("first").await;
    session.shut_down().await;
    let session = bench.start().await;
    let refused = session.request(prompt("second", WhenBusy::Steer)).await;
    let Err(SessionError::Refused(text)) = refused else { panic!("{refused:?}") };
    assert!(text.to_string().starts_with("Today's sessions have cost $2.00"), "{text}");
}

#[tokio::test]
async fn messages_queued_when_a_run_is_stopped_stay_queued() {
    let gate = TestBarrier::new();
    let first = costing(FakeAnswer::new().gate(&gate).tool_call("c1", "say", json!({ "text": "x" })), 2.0);
    let bench = bench(vec![first], json!({ "turnUsd": 1 }), true);
    let mut session = bench.start().await;
    session.prompt("work").await;
    gate.reached().await;
    session.say("later", WhenBusy::FollowUp).await;
    gate.open();
    session.settled().await;
    assert_eq!(session.handle.state().queue.follow_up.as_slice(), ["later"]);
    assert_eq!(bench.provider.requests().len(), 1);
}
