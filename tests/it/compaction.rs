//! Compaction: when it happens, what it stores, what the model reads afterwards.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pi::ai::{FakeAnswer, FakeProvider, Message, Provider, Request, StopReason, TestBarrier, Usage};
use pi::session::{
    EntryBody, Refusal, Reply, SessionCommand, SessionError, SessionEvent, SummaryDecision, WhenBusy,
};
use serde_json::{Value, json};

use crate::support::session_bench::{Session, SessionBench, entries, sent};

fn texts<const N: usize>(texts: [&str; N]) -> Vec<FakeAnswer> {
    texts.map(FakeAnswer::of_text).to_vec()
}

/// An answer after which the window contains this many tokens.
fn filling(text: &str, tokens: u64) -> FakeAnswer {
    FakeAnswer::of_text(text).usage(Usage { input: tokens, total_tokens: tokens, ..Usage::default() })
}

/// Keeps about one exchange. The window of `acme/m-1` has 1,000 tokens.
fn settings(reserve: u64) -> Value {
    json!({ "compaction": { "keepRecentTokens": 2, "reserveTokens": reserve }, "retry": { "maxRetries": 0 } })
}

fn bench(answers: Vec<FakeAnswer>) -> SessionBench {
    SessionBench::new(answers).settings(settings(100))
}

async fn compact(session: &mut Session, focus: Option<&str>) -> Vec<String> {
    let command = SessionCommand::Compact { focus: focus.map(str::to_owned), with_review: false };
    assert_eq!(session.request(command).await, Ok(Reply::Started));
    session.settled().await
}

fn compaction_of(session: &Session) -> pi::session::Compaction {
    let found = entries(&session.path()).into_iter().rev().find_map(|entry| match entry.body {
        EntryBody::Compaction(compaction) => Some(compaction),
        _ => None,
    });
    *found.unwrap()
}

#[tokio::test]
async fn summary_takes_the_place_of_what_came_before_the_last_exchange() {
    // Both messages of the last exchange have four tokens.
    let settings = json!({ "compaction": { "keepRecentTokens": 6, "reserveTokens": 100 } });
    let answers = texts(["first answer", "second answer", "THE SUMMARY", "third answer"]);
    let bench = SessionBench::new(answers).settings(settings);
    let mut session = bench.start().await;
    session.ask("first question").await;
    session.ask("second question").await;
    let lines = compact(&mut session, Some("the questions")).await;
    assert_eq!(lines, ["compaction start Manual", "compaction end false None", "settled"]);

    let asked = &bench.provider.requests()[2];
    let prompt = sent(asked).concat();
    for part in [
        "[User]: first question",
        "[Assistant]: first answer",
        "## Critical Context",
        "Additional focus: the questions",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    assert!(!prompt.contains("second"), "the kept part is not summarised: {prompt}");
    assert!(!prompt.contains("Be brief.\n\n<"), "the session's own prompt stays out");
    let stored = compaction_of(&session);
    assert_eq!(stored.summary, "THE SUMMARY");
    assert_eq!(stored.from_hook, Some(false));
    assert!(stored.system_message.is_some());
    assert_eq!(session.handle.state().context.tokens, None);

    session.ask("third question").await;
    let request = sent(&bench.provider.requests()[3]);
    assert!(request[0].contains("<summary>"), "{request:?}");
    assert_eq!(request[1..], ["user second question", "assistant second answer", "user third question"]);
    // The prompt is still there, from the compaction.
    let system = format!("{:?}", pi::ai::system_state(&bench.provider.requests()[3].messages).prompt());
    assert!(system.contains("Be brief."), "{system}");

    // And so it is after the session was opened again.
    let path = session.path();
    session.shut_down().await;
    bench.provider.push(FakeAnswer::of_text("fourth answer"));
    let mut session = bench.resume(&path).await;
    session.ask("fourth question").await;
    let request = sent(&bench.provider.requests()[4]);
    assert!(request[0].contains("<summary>") && request.len() == 6, "{request:?}");
}

#[tokio::test]
async fn a_conversation_longer_than_the_window_is_summarised_in_portions() {
    // A request for a summary may have 3,200 characters of the conversation.
    let too_long = FakeAnswer::failed("400: prompt is too long: 1200 tokens > 1000 maximum");
    let answers = [
        texts(["a1", "a2", "a3", "a4", "SUMMARY 1"]),
        // Two questions are more tokens than their length tells.
        vec![too_long],
        texts(["SUMMARY 2", "SUMMARY 3"]),
    ];
    let bench = SessionBench::new(answers.concat()).settings(json!({
        "compaction": { "enabled": false, "keepRecentTokens": 2, "reserveTokens": 100 }, "retry": { "maxRetries": 0 }
    }));
    let mut session = bench.start().await;
    for (name, filler) in [("first", 1_900), ("second", 1_000), ("third", 1_000), ("fourth", 10)] {
        session.ask(&format!("{name} {}", "x".repeat(filler))).await;
    }
    compact(&mut session, Some("all of it")).await;
    let prompts: Vec<String> =
        bench.provider.requests()[4..].iter().map(|request| sent(request).concat()).collect();
    let named = |prompt: &String| -> Vec<&str> {
        let names = ["first", "second", "third", "fourth", "SUMMARY 1", "SUMMARY 2", "all of it"];
        names.into_iter().filter(|name| prompt.contains(name)).collect()
    };
    assert_eq!(
        prompts.iter().map(named).collect::<Vec<_>>(),
        [
            vec!["first", "all of it"],
            vec!["second", "third", "SUMMARY 1", "all of it"],
            vec!["second", "SUMMARY 1", "all of it"],
            vec!["third", "SUMMARY 2", "all of it"],
        ]
    );
    let stored = compaction_of(&session);
    assert_eq!(stored.summary, "SUMMARY 3");
    assert_eq!(bench.provider.n_left(), 0);
}

#[tokio::test]
async fn what_is_too_long_for_any_summary_is_left_out_and_said() {
    let answers =
        [vec![FakeAnswer::of_text("a"); 20], texts(["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"])]
            .concat();
    let bench = SessionBench::new(answers).settings(json!({
        "compaction": { "enabled": false, "keepRecentTokens": 2, "reserveTokens": 100 }, "retry": { "maxRetries": 0 }
    }));
    let mut session = bench.start().await;
    for at in 0..20 {
        session.ask(&format!("question {at} {}", "x".repeat(1_900))).await;
    }
    compact(&mut session, None).await;
    let summary = compaction_of(&session).summary;
    assert!(
        summary.starts_with("S8\n\nNot in this summary, because they are too long: the earliest "),
        "{summary}"
    );
    assert_eq!(bench.provider.n_left(), 0);
}

#[tokio::test]
async fn summary_that_fits_in_no_way_is_replaced_by_an_excerpt() {
    let too_long = || FakeAnswer::failed("400: prompt is too long: 1200 tokens > 1000 maximum");
    let bench = bench([texts(["a1", "a2"]), vec![too_long(), too_long(), too_long()]].concat());
    let mut session = bench.start().await;
    session.ask("first question").await;
    session.ask("second question").await;
    let lines = compact(&mut session, None).await;
    assert!(lines.iter().any(|line| line.contains("not even in parts")), "{lines:?}");
    let summary = compaction_of(&session).summary;
    assert!(summary.contains("[User]: first question\n\n[Assistant]: a1"), "{summary}");
}

#[tokio::test]
async fn a_full_window_is_compacted_after_the_answer() {
    let bench = bench(vec![
        filling("first", 100),
        filling("second", 950),
        FakeAnswer::of_text("S"),
        FakeAnswer::of_text("third"),
    ]);
    let mut session = bench.start().await;
    let lines = session.ask("one").await;
    assert!(!lines.iter().any(|line| line.starts_with("compaction")), "{lines:?}");
    let lines = session.ask("two").await;
    assert_eq!(
        lines[lines.len() - 3..],
        ["compaction start Threshold", "compaction end false None", "settled"]
    );
    // The earlier count is no longer valid.
    let lines = session.ask("three").await;
    assert!(!lines.iter().any(|line| line.starts_with("compaction")), "{lines:?}");
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_repeated_once_after_a_compaction() {
    let too_long = || FakeAnswer::failed("400: prompt is too long: 1200 tokens > 1000 maximum");
    let bench = bench(
        [
            texts(["first", "second"]),
            vec![too_long(), FakeAnswer::of_text("S"), FakeAnswer::of_text("third")],
            // Each attempt gives up more, as long as there is something.
            vec![too_long(), FakeAnswer::of_text("S2"), too_long(), FakeAnswer::of_text("S3"), too_long()],
        ]
        .concat(),
    );
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = session.ask("three").await;
    let compactions: Vec<&String> = lines.iter().filter(|line| line.starts_with("compaction")).collect();
    assert_eq!(compactions, ["compaction start Overflow", "compaction end false None"]);
    assert_eq!(session.on_disk().last().unwrap(), "answer third");
    assert!(session.on_disk().contains(&"hidden".to_owned()));
    let request = sent(&bench.provider.requests()[4]);
    assert_eq!(request.last().unwrap(), "user three");

    // Then only the prompt is left.
    let lines = session.ask("four").await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("compaction start")).count(), 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("no longer fits")), "{lines:?}");
    assert_eq!(bench.provider.n_left(), 0);
}

#[tokio::test]
async fn a_compaction_that_fails_or_is_cancelled_changes_nothing() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let failed = FakeAnswer::failed("401: no such key");
    let bench = bench([texts(["1", "2"]), vec![failed, held], texts(["3"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let before = session.on_disk();
    let lines = compact(&mut session, None).await;
    let is_told = |line: &String| line.contains("no such key") && line.contains("nothing was changed");
    assert!(lines.iter().any(is_told), "{lines:?}");
    assert_eq!(session.on_disk(), before);
    session.request(SessionCommand::Compact { focus: None, with_review: false }).await.unwrap();
    gate.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted");
    assert_eq!(session.on_disk(), before);
    session.ask("three").await;
    assert_eq!(session.on_disk().last().unwrap(), "answer 3");
}

#[tokio::test]
async fn prompts_during_a_compaction_wait_for_its_end() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["S", "ummary"], Some(&gate));
    let bench = bench([texts(["1", "2"]), vec![held], texts(["3", "4"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    session.request(SessionCommand::Compact { focus: None, with_review: false }).await.unwrap();
    gate.reached().await;
    assert_eq!(session.say("later", WhenBusy::FollowUp).await, Reply::Queued);
    assert_eq!(session.prompt("next").await, Reply::Queued);
    let refused = session.request(SessionCommand::Compact { focus: None, with_review: false }).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))));
    gate.open();
    session.until(|event| matches!(event, SessionEvent::Settled { .. })).await;
    let tail = session.on_disk();
    assert_eq!(tail[tail.len() - 4..], ["user next", "answer 3", "user later", "answer 4"]);
}

#[tokio::test]
async fn a_prompt_that_finds_the_window_full_waits_in_the_queue_for_the_summary() {
    let gates = [TestBarrier::new(), TestBarrier::new(), TestBarrier::new()];
    let held = |gate| FakeAnswer::new().text_pieces(&["S", "ummary"], Some(gate));
    let [first, second, third] = &gates;
    let bench = bench(
        [texts(["1"]), vec![filling("2", 950), held(first), held(second), held(third)], texts(["3"])]
            .concat(),
    );
    let mut session = bench.start().await;
    session.ask("one").await;
    session.prompt("two").await;
    first.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    session.settled().await;

    assert_eq!(session.prompt("three").await, Reply::Started);
    second.reached().await;
    assert_eq!(session.handle.state().queue.steering, ["three"]);
    session.request(SessionCommand::Interrupt).await.unwrap();
    let lines = session.settled().await;
    assert!(lines.contains(&"returned three".to_owned()), "{lines:?}");
    assert!(session.handle.state().queue.is_empty());

    session.prompt("three again").await;
    third.reached().await;
    session.say("four", WhenBusy::Steer).await;
    third.open();
    session.until(|event| matches!(event, SessionEvent::Settled { .. })).await;
    let disk = session.on_disk();
    let tail: Vec<&str> = disk.iter().rev().take(4).rev().map(String::as_str).collect();
    assert_eq!(tail[1..], ["user three again", "user four", "answer 3"], "{disk:?}");
}

#[tokio::test]
async fn a_prompt_that_waits_for_the_summary_survives_a_crash() {
    let gates = [TestBarrier::new(), TestBarrier::new()];
    let held = |gate| FakeAnswer::new().text_pieces(&["S", "ummary"], Some(gate));
    let bench = bench([texts(["1"]), vec![filling("2", 950), held(&gates[0]), held(&gates[1])]].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.prompt("two").await;
    gates[0].reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    session.settled().await;
    session.prompt("three").await;
    gates[1].reached().await;
    // As a crash leaves the files.
    let path = session.path();
    let name = path.file_name().unwrap().to_str().unwrap();
    let saved = fs::read_to_string(path.with_file_name(format!(".{name}.queue"))).unwrap();
    assert!(saved.contains("three"), "{saved}");
}

#[tokio::test]
async fn there_may_be_nothing_to_compact() {
    let bench = SessionBench::new(texts(["1"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    let refused = session.request(SessionCommand::Compact { focus: None, with_review: false }).await;
    let Err(SessionError::Refused(Refusal::Compaction(why))) = refused else { panic!("{refused:?}") };
    assert!(why.to_string().contains("nothing to compact"), "{why}");
}

/// An answer that calls a tool and leaves the window nearly full.
fn calling(id: &str) -> FakeAnswer {
    filling("", 950).tool_call(id, "say", json!({"text": "x"}))
}

#[tokio::test]
async fn a_window_that_fills_up_in_a_run_is_compacted_before_the_next_request() {
    let bench = bench(
        // The turn is split: its beginning gets a summary of its own.
        [texts(["first"]), vec![calling("a")], texts(["THE SUMMARY", "THE TURN", "done", "after"])].concat(),
    );
    let mut session = bench.start().await;
    session.ask("one").await;
    let lines = session.ask("two").await;
    let n_of = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((n_of("compaction start Threshold"), n_of("compaction end false")), (1, 1), "{lines:?}");
    assert_eq!((n_of("agent start"), n_of("agent end")), (1, 1), "the run goes on: {lines:?}");
    let disk = session.on_disk();
    assert_eq!(disk.last().unwrap(), "answer done", "{disk:?}");
    let request = sent(&bench.provider.requests()[4]);
    assert!(request[0].contains("THE SUMMARY") && request[0].contains("THE TURN"), "{request:?}");
    assert!(!request.concat().contains("user one"), "{request:?}");
    assert!(request.last().unwrap().starts_with("tool "), "{request:?}");
    // What the run knows is what the file says.
    session.ask("three").await;
    let requests = bench.provider.requests();
    let (during, after) = (sent(&requests[4]), sent(&requests[5]));
    assert_eq!(after[..during.len()], during[..]);
    assert_eq!(session.handle.state().phase, pi::session::Phase::Idle);
}

#[tokio::test]
async fn a_compaction_in_a_run_that_fails_lets_the_run_go_on() {
    let failed = FakeAnswer::failed("400: no");
    let bench = bench([texts(["first"]), vec![calling("a"), failed], texts(["done"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    let lines = session.ask("two").await;
    assert!(lines.iter().any(|line| line.contains("nothing was changed")), "{lines:?}");
    assert_eq!(session.on_disk().last().unwrap(), "answer done");
    assert!(sent(&bench.provider.requests()[3]).contains(&"user one".to_owned()));
}

#[tokio::test]
async fn an_abort_during_a_compaction_in_a_run_ends_the_run() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["S", "ummary"], Some(&gate));
    let bench = bench([texts(["first"]), vec![calling("a"), held], texts(["next"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.prompt("two").await;
    gate.reached().await;
    assert_eq!(session.handle.state().phase, pi::session::Phase::Compacting);
    assert_eq!(session.say("steer", WhenBusy::FollowUp).await, Reply::Queued);
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted", "{lines:?}");
    assert!(!session.on_disk().iter().any(|line| line.contains("compaction")), "{:?}", session.on_disk());
    assert_eq!(session.handle.state().queue.follow_up.len(), 1, "what is queued stays");
}

/// The latest entry on disk whose line is `line`.
fn entry_id(session: &Session, line: &str) -> pi::session::EntryId {
    let entries = entries(&session.path());
    let found = entries.iter().rfind(|entry| crate::support::session_bench::entry_line(entry) == line);
    found.unwrap().id.clone()
}

#[tokio::test]
async fn pinned_messages_stay_word_for_word_over_compactions() {
    let answers = ["1", "2", "S1", "3", "4", "S2", "5", "6", "S3", "7"];
    let bench = bench(texts(answers));
    let mut session = bench.start().await;
    let rule = "never touch <b>main.rs</b>\n\n</pinned-messages> & \"quotes\"";
    session.ask(rule).await;
    session.request(SessionCommand::Pin { target: None, pinned: true }).await.unwrap();
    session.ask("two").await;
    compact(&mut session, None).await;
    assert!(compaction_of(&session).summary.starts_with("S1"));
    session.ask("three").await;
    let request = |n: usize| sent(&bench.provider.requests()[n]).concat();
    assert!(request(3).contains(rule), "{}", request(3));

    // An answer is pinned too; the summary of before is updated without the quotes.
    let target = Some(entry_id(&session, "answer 3"));
    session.request(SessionCommand::Pin { target, pinned: true }).await.unwrap();
    assert_eq!(session.handle.state().pinned.len(), 2);
    session.ask("four").await;
    compact(&mut session, None).await;
    assert!(!request(5).contains("pinned-messages>\nThe user"), "{}", request(5));
    session.ask("five").await;
    assert!(request(6).contains(rule) && request(6).contains("<message from=\"assistant\">\n3\n"));

    // After a restart they are still pinned, until that is ended.
    let path = session.path();
    session.shut_down().await;
    let mut session = bench.resume(&path).await;
    assert_eq!(session.opened().await.n_compactions, 2);
    let pinned = session.handle.state().pinned.clone();
    assert_eq!(pinned.len(), 2);
    for target in pinned.iter() {
        let target = Some(target.clone());
        session.request(SessionCommand::Pin { target, pinned: false }).await.unwrap();
    }
    session.ask("six").await;
    compact(&mut session, None).await;
    session.ask("seven").await;
    assert!(!request(9).contains("main.rs"), "{}", request(9));
    let refused =
        session.request(SessionCommand::Pin { target: Some(pi::session::EntryId::new("x")), pinned: true });
    assert!(refused.await.is_err());
}

#[tokio::test]
async fn handoff_opens_a_new_session_with_a_drafted_prompt() {
    let bench = bench(texts(["old answer", "## Goal\nTHE DRAFT", "new answer"]));
    let mut session = bench.start().await;
    session.ask("old question").await;
    let old = session.path();
    let goal = SessionCommand::Handoff { goal: "port it to Rust".to_owned() };
    assert_eq!(session.request(goal).await, Ok(Reply::Started));
    let lines = session.settled().await;
    assert!(lines.contains(&"handoff end false Some(\"## Goal\\nTHE DRAFT\")".to_owned()), "{lines:?}");
    let asked = sent(&bench.provider.requests()[1]).concat();
    assert!(asked.contains("[User]: old question") && asked.contains("The goal: port it to Rust"), "{asked}");

    // The old session has only the cost in addition, the new one names it.
    let kinds =
        |path: &std::path::Path| std::fs::read_to_string(path).unwrap().matches("\"handoff\"").count();
    assert_eq!(kinds(&old), 1);
    session.ask("edited draft").await;
    let new = session.path();
    assert_ne!(new, old);
    let header = std::fs::read_to_string(&new).unwrap();
    let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    assert_eq!(header["parentSession"], json!(old));
    assert_eq!(sent(&bench.provider.requests()[2]), ["user edited draft"]);
}

#[tokio::test]
async fn handoff_that_fails_or_is_cancelled_changes_nothing() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["half", " whole"], Some(&gate));
    let bench = bench([texts(["1"]), vec![FakeAnswer::failed("400: no"), held]].concat());
    let mut session = bench.start().await;
    let handoff = || SessionCommand::Handoff { goal: "g".to_owned() };
    let refused = session.request(handoff()).await;
    assert!(matches!(refused, Err(SessionError::Refused(_))), "there is no conversation yet");
    session.ask("one").await;
    let (path, before) = (session.path(), session.on_disk());
    session.request(handoff()).await.unwrap();
    let lines = session.settled().await;
    assert!(lines.iter().any(|line| line.contains("cannot draft the handoff")), "{lines:?}");
    session.request(handoff()).await.unwrap();
    gate.reached().await;
    session.request(SessionCommand::Abort).await.unwrap();
    assert_eq!(session.settled().await.last().unwrap(), "settled aborted");
    assert_eq!((session.path(), session.on_disk()), (path, before));
}

// Summaries that the user decides about.

async fn draft_summary(session: &mut Session) -> Vec<String> {
    let command = SessionCommand::Compact { focus: None, with_review: true };
    assert_eq!(session.request(command).await, Ok(Reply::Started));
    session.settled().await
}

async fn decide(session: &Session, decision: SummaryDecision) -> Result<Reply, SessionError> {
    session.request(SessionCommand::DecideSummary { decision }).await
}

fn accept(text: &str) -> SummaryDecision {
    SummaryDecision::Accept { text: text.to_owned() }
}

#[tokio::test]
async fn edited_summary_takes_effect_when_it_is_accepted() {
    let costly = filling("THE SUMMARY", 5);
    let bench = bench([texts(["1", "2"]), vec![costly], texts(["3"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.request(SessionCommand::Pin { target: None, pinned: true }).await.unwrap();
    session.ask("two").await;
    let before = session.on_disk();
    let lines = draft_summary(&mut session).await;
    let expected =
        ["compaction start Manual", "summary drafted THE SUMMARY", "compaction end false None", "settled"];
    assert_eq!(lines, expected);
    assert_eq!(session.on_disk(), before, "nothing has changed yet");
    let draft = session.handle.state().summary_draft.clone().unwrap();
    assert_eq!((draft.text.as_str(), draft.n_replaced, draft.model.as_str()), ("THE SUMMARY", 2, "acme/m-1"));

    assert_eq!(decide(&session, accept("  Mine.\n")).await, Ok(Reply::Done));
    let stored = compaction_of(&session);
    assert!(stored.summary.starts_with("Mine.\n\n<pinned-messages>"), "{}", stored.summary);
    assert!(stored.summary.contains("\none\n"), "a pinned message stays word for word: {}", stored.summary);
    assert_eq!(stored.usage.unwrap().input, 5);
    assert_eq!(session.handle.state().summary_draft, None);
    session.waiting();
    session.ask("three").await;
    let request = sent(&bench.provider.requests()[3]);
    assert!(request[0].contains("Mine."), "{request:?}");
    assert_eq!(request[1..], ["user two", "assistant 2", "user three"]);
    let refused = decide(&session, accept("again")).await;
    assert_eq!(refused, Err(Refusal::NoSummaryDraft.into()));
}

#[tokio::test]
async fn dropped_summary_changes_nothing_but_the_costs() {
    let bench = bench([texts(["1", "2"]), vec![filling("S", 70)], texts(["3"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let before = session.on_disk();
    draft_summary(&mut session).await;
    let input = session.handle.state().totals.input;
    assert_eq!(decide(&session, SummaryDecision::Drop).await, Ok(Reply::Done));
    let after = session.on_disk();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(session.handle.state().totals.input, input + 70);
    session.waiting();
    session.ask("three").await;
    assert_eq!(sent(&bench.provider.requests()[3])[0], "user one");
}

#[tokio::test]
async fn draft_of_a_summary_survives_the_process_with_its_changes() {
    let bench = bench(texts(["1", "2", "THE SUMMARY", "3"]));
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    draft_summary(&mut session).await;
    decide(&session, SummaryDecision::Save { text: "half edited".to_owned() }).await.unwrap();
    let path = session.path();
    let (_, mut events) = session.let_go();
    while events.recv().await.is_some() {}

    let mut session = bench.resume(&path).await;
    let lines = session.waiting();
    assert!(lines.iter().any(|line| line.contains("waits for your decision")), "{lines:?}");
    let draft = session.handle.state().summary_draft.clone().unwrap();
    assert_eq!(draft.text, "half edited");
    // It is shown again, and nothing is requested for that.
    let command = SessionCommand::Compact { focus: None, with_review: true };
    assert_eq!(session.request(command).await, Ok(Reply::Done));
    assert_eq!(session.waiting(), ["summary drafted half edited"]);
    assert_eq!(bench.provider.requests().len(), 3);
    decide(&session, accept("edited")).await.unwrap();
    assert_eq!(compaction_of(&session).summary, "edited");
    session.shut_down().await;
    let session = bench.resume(&path).await;
    assert_eq!(session.handle.state().summary_draft, None);
}

#[tokio::test]
async fn messages_that_arrive_while_a_summary_waits_are_answered() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["S", "ummary"], Some(&gate));
    let bench = bench([texts(["1", "2"]), vec![held], texts(["3", "4"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let command = SessionCommand::Compact { focus: None, with_review: true };
    session.request(command).await.unwrap();
    gate.reached().await;
    assert_eq!(session.prompt("queued").await, Reply::Queued);
    gate.open();
    session.settled().await;
    assert_eq!(session.handle.state().queue.steering, ["queued"], "it waits for the decision");
    decide(&session, accept("S")).await.unwrap();
    session.settled().await;
    let request = sent(&bench.provider.requests()[3]);
    assert_eq!(request[1..], ["user two", "assistant 2", "user queued"], "{request:?}");
    assert_eq!(session.on_disk().last().unwrap(), "answer 3");
}

#[tokio::test]
async fn conversation_goes_on_while_a_summary_waits() {
    let gate = TestBarrier::new();
    let held = FakeAnswer::new().text_pieces(&["ha", "lf"], Some(&gate));
    let bench = bench([texts(["1", "2", "S"]), vec![held], texts(["S2", "5"])].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    draft_summary(&mut session).await;
    session.prompt("three").await;
    gate.reached().await;
    let refused = decide(&session, accept("changed")).await;
    assert_eq!(refused, Err(Refusal::Working.into()));
    gate.open();
    session.settled().await;
    let draft = session.handle.state().summary_draft.clone().unwrap();
    assert_eq!(draft.text, "changed", "the changes are kept");
    assert_eq!(decide(&session, accept(" \n")).await, Err(Refusal::EmptySummary.into()));
    decide(&session, SummaryDecision::Save { text: "changed".to_owned() }).await.unwrap();

    // Another compaction makes it useless.
    compact(&mut session, None).await;
    assert_eq!(decide(&session, accept("changed")).await, Err(Refusal::StaleSummary.into()));
    assert_eq!(compaction_of(&session).summary, "S2");
    let command = SessionCommand::Compact { focus: None, with_review: true };
    let refused = session.request(command).await;
    assert!(matches!(refused, Err(SessionError::Refused(Refusal::Compaction(_)))), "{refused:?}");
    assert_eq!(session.handle.state().summary_draft, None);
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_summary_are_reported_and_can_be_cancelled() {
    let settings = json!({ "compaction": { "keepRecentTokens": 2 }, "retry": { "maxRetries": 2 } });
    let overloaded = || FakeAnswer::failed("529: overloaded");
    let answers = [texts(["1", "2"]), vec![overloaded(), FakeAnswer::of_text("S"), overloaded()]].concat();
    let bench = SessionBench::new(answers).settings(settings);
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = draft_summary(&mut session).await;
    let expected = [
        "compaction start Manual",
        "summary retry 1 of 2 in 2s: 529: overloaded",
        "summary retry start Compaction(Manual)",
        "summary retries finished",
        "summary drafted S",
        "compaction end false None",
        "settled",
    ];
    assert_eq!(lines, expected);
    decide(&session, SummaryDecision::Drop).await.unwrap();
    session.waiting();

    let before = session.on_disk();
    session.request(SessionCommand::Compact { focus: None, with_review: false }).await.unwrap();
    session.until(|event| matches!(event, SessionEvent::SummaryRetryScheduled { .. })).await;
    session.request(SessionCommand::Abort).await.unwrap();
    let lines = session.settled().await;
    let expected = ["summary retries finished", "compaction end true Some(\"cancelled\")", "settled aborted"];
    assert_eq!(lines[2..], expected);
    assert_eq!(session.on_disk(), before);
}

// Summaries that the model does not write as it should.

/// A session with two exchanges, the first of which is about to be summarised with these answers.
async fn summarised(answers: Vec<FakeAnswer>) -> (SessionBench, Session, Vec<String>) {
    let bench = bench([texts(["1", "2"]), answers].concat());
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = compact(&mut session, None).await;
    (bench, session, lines)
}

#[tokio::test]
async fn summary_that_is_cut_off_is_kept_and_marked() {
    let cut_off = FakeAnswer::of_text("half a summ").stop(StopReason::Length);
    let (_bench, session, _) = summarised(vec![cut_off]).await;
    let summary = compaction_of(&session).summary;
    assert!(summary.starts_with("half a summ\n\n[The summary was cut off here"), "{summary}");
}

#[tokio::test]
async fn summary_that_is_none_is_requested_once_more_without_thinking() {
    let call = || FakeAnswer::of_text("S").tool_call("t", "say", json!({}));
    let thinking = || FakeAnswer::new().thinking("hm").stop(StopReason::Length);
    for none in [FakeAnswer::of_text(" "), call(), thinking()] {
        let (bench, session, lines) = summarised(vec![none, FakeAnswer::of_text("SUMMARY")]).await;
        assert_eq!(compaction_of(&session).summary, "SUMMARY", "{lines:?}");
        let second = bench.provider.requests()[3].clone();
        assert_eq!(second.options.thinking, pi::ai::ThinkingLevel::Off);
        assert!(sent(&second).concat().contains("[User]: one"));
    }
}

#[tokio::test]
async fn excerpt_takes_the_place_of_a_summary_that_is_none_twice() {
    let call = || FakeAnswer::new().tool_call("t", "say", json!({}));
    let (bench, mut session, lines) = summarised(vec![FakeAnswer::of_text(""), call()]).await;
    let is_told = |line: &String| line.contains("there is no summary") && line.contains("called a tool");
    assert!(lines.iter().any(is_told), "{lines:?}");
    let summary = compaction_of(&session).summary;
    assert!(
        summary.contains("was cut off") && summary.contains("[User]: one\n\n[Assistant]: 1"),
        "{summary}"
    );
    bench.provider.push(FakeAnswer::of_text("3"));
    session.ask("three").await;
    let request = sent(&bench.provider.requests()[4]);
    assert_eq!(request[1..], ["user two", "assistant 2", "user three"], "{request:?}");
}

#[tokio::test]
async fn summary_longer_than_its_share_of_the_window_is_cut() {
    let (_bench, session, _) = summarised(vec![FakeAnswer::of_text(&"word ".repeat(2_000))]).await;
    let summary = compaction_of(&session).summary;
    assert!(summary.contains("characters omitted]") && summary.chars().count() < 1_000, "{}", summary.len());
}

// Windows of all sizes, with a server that counts four characters as a token.

/// A provider with a window that it enforces: it rejects what does not fit, and cuts answers off.
struct Windowed {
    tokens: usize,
    /// What it answers; `None` to continue the task with calls of `say`.
    answer: fn(n_request: usize) -> FakeAnswer,
    requests: Mutex<Vec<Arc<Request>>>,
}

impl Windowed {
    fn new(tokens: usize, answer: fn(usize) -> FakeAnswer) -> Arc<Self> {
        Arc::new(Self { tokens, answer, requests: Mutex::default() })
    }

    /// Those that are not for summaries.
    fn n_answered(&self) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| !is_summary_request(request)).count()
    }

    fn n_summaries(&self) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| is_summary_request(request)).count()
    }
}

fn is_summary_request(request: &Request) -> bool {
    pi::ai::system_state(&request.messages).prompt().starts_with("You summarise")
}

fn n_tokens(request: &Request) -> usize {
    let texts = sent(request).concat().chars().count();
    let calls = request.messages.iter().map(|message| match &**message {
        Message::Assistant(answer) => answer.tool_calls().map(|call| call.arguments.to_string().len()).sum(),
        _ => 0,
    });
    let system = pi::ai::system_state(&request.messages).prompt().chars().count();
    (texts + calls.sum::<usize>() + system).div_ceil(4)
}

impl Provider for Windowed {
    fn stream(
        &self,
        request: Arc<Request>,
        cancel: tokio_util::sync::CancellationToken,
    ) -> pi::ai::EventStream {
        let n = n_tokens(&request);
        assert!(self.requests.lock().unwrap().len() < 200, "endless");
        let answer = if n > self.tokens {
            FakeAnswer::failed(&format!(
                "400: request ({n} tokens) exceeds the available context size ({} tokens)",
                self.tokens
            ))
        } else if is_summary_request(&request) {
            FakeAnswer::of_text("THE SUMMARY")
        } else {
            (self.answer)(self.n_answered())
        };
        self.requests.lock().unwrap().push(Arc::clone(&request));
        FakeProvider::new([answer]).stream(request, cancel)
    }
}

fn windowed(provider: &Arc<Windowed>, configured: usize) -> SessionBench {
    let model = json!({"id": "m-1", "contextWindow": configured, "maxTokens": 4_096});
    let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "models": [model]});
    let provider: Arc<dyn Provider> = provider.clone();
    SessionBench::new([]).acme(acme).answered_by(provider).settings(json!({"retry": {"maxRetries": 0}}))
}

/// Asks six questions in sessions that continue each other; each answer has `n_filler` pairs of words.
async fn six_turns(configured: usize, real: usize, answer: fn(usize) -> FakeAnswer) -> usize {
    let provider = Windowed::new(real, answer);
    let bench = windowed(&provider, configured);
    let mut path: Option<std::path::PathBuf> = None;
    for turn in 0..6 {
        let mut session = match &path {
            None => bench.start().await,
            Some(path) => bench.resume(path).await,
        };
        let lines = session.ask(&format!("question {turn}")).await;
        assert!(!lines.iter().any(|line| line.contains("no longer fits")), "{configured}/{real}: {lines:?}");
        let disk = session.on_disk();
        let last = disk.iter().rfind(|line| line.starts_with("answer")).unwrap();
        assert!(last.starts_with("answer filler"), "{configured}/{real}: {last}");
        path = Some(session.path());
        session.shut_down().await;
    }
    provider.n_summaries()
}

#[tokio::test]
async fn every_window_from_4k_up_is_compacted_before_it_is_too_late() {
    fn of_16k(_: usize) -> FakeAnswer {
        FakeAnswer::of_text(&"filler ".repeat(16_000 * 4 / 4 / 7))
    }
    fn of_8k(_: usize) -> FakeAnswer {
        FakeAnswer::of_text(&"filler ".repeat(8_000 * 4 / 4 / 7))
    }
    fn of_4k(_: usize) -> FakeAnswer {
        FakeAnswer::of_text(&"filler ".repeat(4_096 * 4 / 4 / 7))
    }
    for (configured, real, answer) in [
        (128_000, 16_000, of_16k as fn(usize) -> FakeAnswer),
        (16_000, 16_000, of_16k),
        (8_192, 8_192, of_8k),
        (16_000, 8_000, of_8k),
        (20_000, 8_000, of_8k),
        (128_000, 8_000, of_8k),
        (4_096, 4_096, of_4k),
        (32_000, 4_096, of_4k),
    ] {
        let n_summaries = six_turns(configured, real, answer).await;
        assert!((1..=8).contains(&n_summaries), "{configured}/{real}: {n_summaries}");
    }
}

/// Reads eight thousand characters twelve times, then ends.
fn twelve_steps(n: usize) -> FakeAnswer {
    match n {
        0..12 => FakeAnswer::new().tool_call(&format!("c{n}"), "read", json!({"path": "eight-kb"})),
        _ => FakeAnswer::of_text("done"),
    }
}

#[tokio::test]
async fn run_of_large_results_ends_in_every_window() {
    for (configured, real) in [
        (16_000, 16_000),
        (8_000, 8_000),
        (20_000, 8_000),
        (128_000, 8_000),
        (128_000, 16_000),
        (32_000, 32_000),
    ] {
        let provider = Windowed::new(real, twelve_steps);
        let bench = windowed(&provider, configured).builtin_tools();
        fs::write(bench.path("work").join("eight-kb"), "r".repeat(8_000)).unwrap();
        let mut session = bench.start().await;
        session.ask("do it").await;
        let disk = session.on_disk();
        assert!(disk.contains(&"answer done".to_owned()), "{configured}/{real}: {:?}", disk.last());
        let n_summaries = provider.n_summaries();
        let most = if real < 10_000 { 8 } else { 2 };
        assert!(n_summaries <= most, "{configured}/{real}: {n_summaries}");
    }
}

#[tokio::test]
async fn result_larger_than_its_share_is_sent_as_head_and_tail_and_kept_whole() {
    fn reads(n: usize) -> FakeAnswer {
        match n {
            0 => FakeAnswer::new().tool_call("c", "read", json!({"path": "large"})),
            _ => FakeAnswer::of_text("done"),
        }
    }
    for (configured, real) in [(8_000, 8_000), (16_000, 16_000), (128_000, 8_000)] {
        let provider = Windowed::new(real, reads);
        let bench = windowed(&provider, configured).builtin_tools();
        let text = (0..5_000).map(|n| format!("line {n} {}\n", "x".repeat(20))).collect::<String>();
        fs::write(bench.path("work").join("large"), text).unwrap();
        let mut session = bench.start().await;
        session.ask("read it").await;
        assert!(session.on_disk().contains(&"answer done".to_owned()), "{configured}/{real}");
        let requests = provider.requests.lock().unwrap().clone();
        assert_eq!(provider.n_summaries(), 0, "it fits without a compaction");
        let sent = sent(requests.last().unwrap()).concat();
        assert!(sent.contains("line 0 x") && sent.contains("characters omitted here"), "{sent}");
        let stored = fs::read_to_string(session.path()).unwrap();
        assert!(stored.contains("line 1500 x") && !stored.contains("characters omitted here"));
    }
}

#[tokio::test]
async fn answer_that_ends_at_a_limit_lowered_by_the_window_is_repeated_after_a_compaction() {
    // The conversation leaves less room in the window of 8,000 tokens than the model's limit of 4,096.
    let model = json!({"id": "m-1", "contextWindow": 8_000, "maxTokens": 4_096});
    let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "models": [model]});
    let long = "x".repeat(8_000);
    let answers = [
        vec![FakeAnswer::of_text(&long), FakeAnswer::of_text(&long)],
        vec![FakeAnswer::of_text("I").stop(StopReason::Length)],
        texts(["S", "whole"]),
    ];
    let bench = SessionBench::new(answers.concat()).acme(acme);
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = session.ask("three").await;
    assert!(lines.contains(&"compaction start Overflow".to_owned()), "{lines:?}");
    assert_eq!(session.on_disk().last().unwrap(), "answer whole");
    for request in bench.provider.requests() {
        assert!(pi::ai::answer_limit(&request) >= 1_000, "no limit that helps nobody");
    }
}

#[tokio::test]
async fn window_named_in_a_refusal_counts_from_then_on() {
    let too_long = FakeAnswer::failed("400: prompt is too long: 9000 tokens > 5000 maximum");
    let model = json!({"id": "m-1", "contextWindow": 100_000});
    let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "models": [model]});
    let answers = [texts(["1", "2"]), vec![too_long], texts(["S", "3"])].concat();
    let bench = SessionBench::new(answers).acme(acme);
    let mut session = bench.start().await;
    session.ask("one").await;
    session.ask("two").await;
    let lines = session.ask("three").await;
    assert!(lines.iter().any(|line| line.contains("has 5000 tokens here, not 100000")), "{lines:?}");
    assert_eq!(session.handle.state().model.context_window, 5_000);
    assert_eq!(session.on_disk().last().unwrap(), "answer 3");
}

#[tokio::test]
async fn first_request_larger_than_the_window_only_by_its_answer_is_repeated_with_a_shorter_one() {
    let refusal = "413: Request too large for model on tokens per minute (TPM): Limit 6000, Requested 34516";
    let model = json!({"id": "m-1", "contextWindow": 131_072, "maxTokens": 32_768});
    let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "models": [model]});
    let bench = SessionBench::new(vec![FakeAnswer::failed(refusal), FakeAnswer::of_text("1")]).acme(acme);
    let mut session = bench.start().await;
    let lines = session.ask("one").await;
    assert!(!lines.iter().any(|line| line.starts_with("compaction")), "{lines:?}");
    assert_eq!(session.on_disk().last().unwrap(), "answer 1");
    let limits: Vec<u64> = bench.provider.requests().iter().map(|one| pi::ai::answer_limit(one)).collect();
    assert!(limits[0] == 32_768 && limits[1] < 6_000, "{limits:?}");
}

#[tokio::test]
async fn prompt_to_be_kept_is_in_every_request_word_for_word() {
    let bench = bench(texts(["1", "2", "S1", "3", "S2", "4"]));
    let mut session = bench.start().await;
    session.request(SessionCommand::KeepNextPrompt).await.unwrap();
    session.ask("the task, in my own words").await;
    session.ask("two").await;
    assert!(session.handle.state().pinned.is_empty(), "nothing is stored before it is needed");
    compact(&mut session, None).await;
    session.ask("three").await;
    compact(&mut session, None).await;
    session.ask("four").await;
    for at in [3, 5] {
        let request = sent(&bench.provider.requests()[at]).concat();
        assert!(request.contains("the task, in my own words"), "{request}");
    }
}

#[tokio::test]
async fn plans_are_those_of_the_original() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions/compacted");
    let plans = fs::read_to_string(folder.join("plans.json")).unwrap();
    let plans: Vec<Value> = serde_json::from_str(&plans).unwrap();
    assert!(plans.len() >= 18);
    for plan in plans {
        let settings =
            json!({ "compaction": { "keepRecentTokens": plan["keepRecentTokens"], "reserveTokens": 100 } });
        // A small window would keep less.
        let model = json!({"id": "m-1", "contextWindow": 100_000});
        let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "models": [model]});
        let answers = vec![FakeAnswer::of_text("a part"); 20];
        let bench = SessionBench::new(answers).settings(settings).acme(acme);
        let text = fs::read_to_string(folder.join(plan["session"].as_str().unwrap())).unwrap();
        // The file of the bench has a header of its own.
        let path = bench.session_file(text.split_once('\n').unwrap().1);
        let mut session = bench.resume(&path).await;
        compact(&mut session, None).await;
        let stored = compaction_of(&session);
        let found = json!({
            "firstKeptEntryId": stored.first_kept_entry_id,
            "tokensBefore": stored.tokens_before,
            "splitTurn": stored.summary.contains("Turn Context (split turn)"),
            "details": stored.details,
        });
        for (name, found) in found.as_object().unwrap() {
            assert_eq!(*found, plan[name], "{name} of {plan}");
        }
    }
}
