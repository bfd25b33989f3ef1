//! Requests that keep the provider's cache: when they are sent, what ends them, what they cost.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::time::Duration;

use pi::ai::{FakeAnswer, Image, Request, StopReason, TestBarrier, Usage, request_body};
use pi::session::{
    EntryBody, IfBusy, NotWarmed, OpenSession, PromptDraft, Reply as Answered, Scope, SessionCommand,
    WarmingStatus, WhenBusy, start,
};
use serde_json::{Value, json};

use crate::support::agent_bench::TestTool;
use crate::support::chat;
use crate::support::pty::TestHome;
use crate::support::rpc_client::RpcClient;
use crate::support::session_bench::{START_MS, Session, SessionBench, entries, prompt, sent};
use crate::support::sse_server::{Reply, SseServer};

/// Models at prices with which a prompt of 100,000 tokens is worth keeping; the provider says how
/// long it caches those of `m-1`.
fn bench(answers: impl IntoIterator<Item = FakeAnswer>) -> SessionBench {
    let model = |id: &str, more: Value| {
        let mut model = json!({"id": id, "contextWindow": 400_000, "maxTokens": 8_000, "input": ["text", "image"],
            "cost": {"input": 4, "output": 20, "cacheRead": 0.2, "cacheWrite": 5}});
        model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        model
    };
    let kept = json!({"promptCache": {"short": 300, "long": 3600}});
    let models = [model("m-1", kept.clone()), model("m-2", kept), model("m-3", json!({}))];
    let acme = json!({"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "models": models});
    SessionBench::new(answers).acme(acme)
}

fn usage(read: u64, written: u64) -> Usage {
    Usage { input: 10, output: 20, cache_read: read, cache_write: written, ..Usage::default() }
}

/// An answer to a prompt of 100,000 tokens, which are cached from then on.
fn cached(text: &str) -> FakeAnswer {
    FakeAnswer::of_text(text).usage(usage(0, 100_000))
}

/// An answer of one token from the cache.
fn warmed() -> FakeAnswer {
    FakeAnswer::of_text("I").usage(Usage { output: 1, ..usage(100_000, 0) }).stop(StopReason::Length)
}

/// Lets time pass, on the clock and for timers.
async fn pass(bench: &SessionBench, seconds: u64) {
    for _ in 0..seconds {
        bench.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn n_requests(bench: &SessionBench) -> usize {
    bench.provider.requests().len()
}

fn status(session: &Session) -> WarmingStatus {
    session.handle.state().cache_warmth.status.clone()
}

/// Asks once; then nothing is sent within an hour, for this reason.
async fn check_never(bench: SessionBench, why: NotWarmed) {
    let mut session = bench.start().await;
    session.ask("go").await;
    assert_eq!(status(&session), WarmingStatus::Stopped(why));
    pass(&bench, 3_600).await;
    assert_eq!(n_requests(&bench), 1);
    assert!(session.waiting().is_empty());
}

#[tokio::test(start_paused = true)]
async fn idle_session_repeats_its_last_request_in_time_until_half_an_hour_is_over() {
    let warm = (0..6).map(|_| warmed());
    let bench = bench([cached("1")].into_iter().chain(warm).chain([cached("2")]));
    let mut session = bench.start().await;
    session.ask("go").await;
    assert_eq!(status(&session), WarmingStatus::Planned { at_ms: START_MS + 270_000 });
    pass(&bench, 269).await;
    assert_eq!(n_requests(&bench), 1);
    pass(&bench, 2).await;
    assert_eq!(n_requests(&bench), 2);
    pass(&bench, 3_600).await;
    assert_eq!(n_requests(&bench), 7, "after 4.5, 9, 13.5, 18, 22.5 and 27 minutes");
    assert_eq!(status(&session), WarmingStatus::Stopped(NotWarmed::TimeUp));

    // Each is the last request byte for byte, apart from the limit of its answer.
    let requests = bench.provider.requests();
    let body = |request: &Request| String::from_utf8(request_body(request).unwrap()).unwrap();
    let whole = body(&requests[0]);
    assert!(whole.contains("\"max_tokens\":8000"), "{whole}");
    for request in &requests[1..] {
        assert_eq!(body(request), whole.replace("\"max_tokens\":8000", "\"max_tokens\":1"));
    }
    // They count in the totals and are not part of the conversation.
    let state = session.handle.state();
    assert_eq!((state.totals.cache_read, state.totals.n_assistant), (600_000, 1));
    let cost_usd = 0.500_44 + 6.0 * 0.020_06;
    assert!((state.totals.cost_usd - cost_usd).abs() < 1e-9, "{}", state.totals.cost_usd);
    session.ask("next").await;
    let last = &bench.provider.requests()[7];
    let texts = sent(last);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(body(last).starts_with(whole.split("\"max_tokens\"").next().unwrap()));
    let kinds: Vec<Value> = entries(&session.path())
        .into_iter()
        .filter_map(|entry| match entry.body {
            EntryBody::Usage(usage) => Some(json!(usage.extra)),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, vec![json!({"kind": "cache_warm", "provider": "acme", "model": "m-1"}); 6]);
}

/// One pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test(start_paused = true)]
async fn images_are_not_held_in_memory_for_it() {
    let bench = bench([cached("1")]);
    let mut session = bench.start().await;
    let image =
        Image { data: PNG.to_owned(), mime_type: "image/png".to_owned(), extra: serde_json::Map::new() };
    let prompt = PromptDraft { images: vec![image], ..PromptDraft::from("look") };
    session.request(SessionCommand::Prompt { prompt, when_busy: WhenBusy::Steer }).await.unwrap();
    session.settled().await;
    assert_eq!(status(&session), WarmingStatus::Stopped(NotWarmed::Images));
    pass(&bench, 600).await;
    assert_eq!(n_requests(&bench), 1);
}

#[tokio::test(start_paused = true)]
async fn notices_about_it_are_those_about_misses() {
    for is_shown in [true, false] {
        let bench = bench([cached("1"), warmed()]).settings(json!({"showCacheMissNotices": is_shown}));
        let mut session = bench.start().await;
        session.ask("go").await;
        pass(&bench, 280).await;
        let shown = session.waiting();
        let expected = ["Info: Kept 100000 prompt tokens in the provider's cache for $0.0201."];
        assert_eq!(shown, expected[..usize::from(is_shown)]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_where_nothing_can_be_saved() {
    let set = |settings: Value| bench([cached("1")]).settings(settings);
    check_never(set(json!({"cacheWarming": "off"})), NotWarmed::Off).await;
    check_never(set(json!({"cacheWarming": "streaming"})), NotWarmed::Idle).await;
    check_never(bench([cached("1")]).model("m-3"), NotWarmed::UnknownLifetime).await;
    let small = FakeAnswer::of_text("1").usage(usage(0, 50_000));
    check_never(bench([small]), NotWarmed::NotWorth).await;
    let mut on_plan = usage(0, 100_000);
    on_plan.extra.insert("onPlan".to_owned(), json!(true));
    check_never(bench([FakeAnswer::of_text("1").usage(on_plan)]), NotWarmed::Plan).await;
    let uncached = Usage { input: 100_000, ..Usage::default() };
    check_never(bench([FakeAnswer::of_text("1").usage(uncached)]), NotWarmed::NotCached).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_exceed_a_limit_of_cost_is_not_sent() {
    // The prompt costs 0.5004 dollars, and keeping it 0.0201.
    for (limit, n_sent) in [(0.50, 0), (0.51, 0), (0.53, 1), (0.55, 2)] {
        for period in ["turnUsd", "sessionUsd"] {
            let bench = bench([cached("1"), warmed(), warmed(), warmed()]);
            let bench = bench.settings(json!({"budget": {period: limit}}));
            let mut session = bench.start().await;
            session.ask("go").await;
            pass(&bench, 1_800).await;
            assert_eq!(n_requests(&bench), 1 + n_sent, "{period} {limit}");
            assert_eq!(status(&session), WarmingStatus::Stopped(NotWarmed::Budget));
            assert!(session.handle.state().questions.is_empty(), "nobody is asked");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn front_ends_that_do_not_hold_their_session_open_send_none() {
    let bench = bench([cached("1")]);
    let services = pi::session::Services { warms_caches: false, ..bench.services() };
    let work = bench.path("work");
    let (handle, _events) =
        start(services.into(), work, OpenSession::New, pi::session::Deltas::Unwanted).await.unwrap();
    assert_eq!(handle.request(prompt("go", WhenBusy::Steer)).await, Ok(Answered::Started));
    pass(&bench, 3_600).await;
    let status = handle.state().cache_warmth.status.clone();
    assert_eq!((n_requests(&bench), status), (1, WarmingStatus::Stopped(NotWarmed::FrontEnd)));
}

#[tokio::test(start_paused = true)]
async fn a_long_tool_call_does_not_cost_the_cache_for_an_hour() {
    let gate = TestBarrier::new();
    let call = || FakeAnswer::new().tool_call("c1", "wait", json!({"gate": 0})).usage(usage(0, 20_000));
    let kept = || FakeAnswer::of_text("I").usage(Usage { output: 1, ..usage(20_000, 0) });
    for mode in ["streaming", "idle"] {
        let answers = [call()].into_iter().chain((0..20).map(|_| kept()));
        let bench = bench(answers).tools([TestTool::wait(std::slice::from_ref(&gate))]);
        let bench = bench.settings(json!({"cacheWarming": mode}));
        let mut session = bench.start().await;
        session.prompt("go").await;
        gate.reached().await;
        pass(&bench, 271).await;
        assert_eq!(n_requests(&bench), 2, "{mode}");
        pass(&bench, 2 * 3_600).await;
        assert_eq!(n_requests(&bench), 14, "thirteen in an hour");
        assert_eq!(status(&session), WarmingStatus::Stopped(NotWarmed::TimeUp));
        bench.provider.push(FakeAnswer::of_text("done"));
        gate.open();
        session.settled().await;
        // The next request of the run contains call and result, which the entries did not part.
        let last = bench.provider.requests().pop().unwrap();
        assert!(last.messages.len() == 4 && last.options.answer_cap.is_none(), "{:?}", last.messages);
        // 20,000 tokens are not worth it while the agent waits for the user.
        pass(&bench, 600).await;
        assert_eq!(n_requests(&bench), 15);
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_cancels_the_request_and_is_not_delayed() {
    let gate = TestBarrier::new();
    let bench = bench([cached("1"), FakeAnswer::new().gate(&gate).text("I"), cached("2")]);
    let mut session = bench.start().await;
    session.ask("go").await;
    pass(&bench, 275).await;
    gate.reached().await;
    assert_eq!(status(&session), WarmingStatus::Sending);
    let lines = session.ask("next").await;
    assert!(lines.contains(&"end answer 2".to_owned()), "{lines:?}");
    assert_eq!(n_requests(&bench), 3);
    assert!(!session.on_disk().iter().any(|line| line.contains("cache_warm")));
    // The new answer has a plan of its own.
    assert!(matches!(status(&session), WarmingStatus::Planned { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_changes_the_next_request_ends_the_plan() {
    let select =
        |reference: &str| SessionCommand::SetModel { reference: reference.to_owned(), scope: Scope::Session };
    let set =
        |key: &str, value: Value| SessionCommand::ChangeSetting { key: key.to_owned(), value: Some(value) };
    let off = set("cacheWarming", json!("off"));
    let cases = [
        (select("acme/m-2"), NotWarmed::Changed),
        (SessionCommand::RemoveTool { name: "say".to_owned() }, NotWarmed::Changed),
        (SessionCommand::Compact { focus: None, with_review: false }, NotWarmed::Changed),
        (off, NotWarmed::Off),
        (set("images.blockImages", json!(true)), NotWarmed::Changed),
    ];
    for (command, why) in cases {
        let summary = FakeAnswer::of_text("a summary");
        let bench = bench([cached("1"), summary]).tools([TestTool::say()]);
        let bench = bench.settings(json!({"compaction": {"keepRecentTokens": 1}}));
        let mut session = bench.start().await;
        session.ask("go").await;
        let is_compaction = matches!(command, SessionCommand::Compact { .. });
        session.request(command).await.unwrap();
        pass(&bench, 3_600).await;
        assert_eq!(n_requests(&bench), 1 + usize::from(is_compaction), "{why:?}");
        assert_eq!(status(&session), WarmingStatus::Stopped(why));
    }
}

#[tokio::test(start_paused = true)]
async fn another_model_another_session_and_the_end_cancel_a_request_that_was_sent() {
    let select = SessionCommand::SetModel { reference: "acme/m-2".to_owned(), scope: Scope::Session };
    for command in [select, SessionCommand::New { if_busy: IfBusy::Refuse }, SessionCommand::Shutdown] {
        let gate = TestBarrier::new();
        let bench = bench([cached("1"), FakeAnswer::new().gate(&gate).text("I").usage(usage(100_000, 0))]);
        let mut session = bench.start().await;
        session.ask("go").await;
        let path = session.path();
        pass(&bench, 275).await;
        gate.reached().await;
        session.request(command).await.unwrap();
        gate.open();
        pass(&bench, 600).await;
        assert_eq!(n_requests(&bench), 2);
        assert!(!fs::read_to_string(path).unwrap().contains("cache_warm"));
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_silent_and_end_it() {
    let lost = FakeAnswer::of_text("I").usage(usage(0, 100_000));
    let cases = [
        (FakeAnswer::failed("529 overloaded"), NotWarmed::Failed, 0),
        (FakeAnswer::new().panics("a bug"), NotWarmed::Failed, 0),
        (lost, NotWarmed::Missed, 1),
    ];
    for (answer, why, n_entries) in cases {
        let bench = bench([cached("1"), answer]).settings(json!({"showCacheMissNotices": false}));
        let mut session = bench.start().await;
        session.ask("go").await;
        pass(&bench, 3_600).await;
        assert_eq!(n_requests(&bench), 2, "{why:?}");
        assert_eq!(session.waiting(), [""; 0], "{why:?}");
        assert_eq!(status(&session), WarmingStatus::Stopped(why));
        let text = fs::read_to_string(session.path()).unwrap();
        assert_eq!(text.matches("cache_warm").count(), n_entries, "what was paid is counted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_comes_late_sends_nothing() {
    let bench = bench([cached("1"), warmed()]);
    let mut session = bench.start().await;
    session.ask("go").await;
    // The computer sleeps for a while.
    bench.clock.advance(Duration::from_secs(16));
    pass(&bench, 600).await;
    assert_eq!(n_requests(&bench), 1);
    assert_eq!(status(&session), WarmingStatus::Stopped(NotWarmed::Late));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_keeps_no_cache_does_not_wake_up() {
    let n_parks = || tokio::runtime::Handle::current().metrics().worker_park_count(0);
    let answers = [cached("1")].into_iter().chain((0..6).map(|_| warmed()));
    for bench in [bench([cached("1")]).model("m-3"), bench(answers)] {
        let mut session = bench.start().await;
        session.ask("go").await;
        // Nothing follows the last request after half an hour.
        pass(&bench, 1_801).await;
        let before = n_parks();
        tokio::time::sleep(Duration::from_secs(365 * 86_400)).await;
        // The wheel of the test's own timer turns a few times.
        assert!(n_parks() - before < 12, "{}", n_parks() - before);
    }
}

/// A whole answer to a prompt of which the cache has `cached` tokens.
fn answer(cached: u64) -> String {
    let usage = json!({"prompt_tokens": 200_000, "completion_tokens": 1, "total_tokens": 200_001,
        "prompt_tokens_details": {"cached_tokens": cached}});
    let end = json!({"id": "r", "model": "m", "usage": usage,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    format!("{}data: {end}\n\ndata: [DONE]\n\n", chat::delta("ok"))
}

#[tokio::test(flavor = "multi_thread")]
async fn rpc_mode_keeps_the_cache_with_the_same_bytes_over_http() {
    let seen = TestBarrier::new();
    let warm = Reply::stream("text/event-stream").piece(answer(199_000)).gate(&seen);
    let server = SseServer::start([Reply::sse(answer(1_000)), warm]).await;
    // A second passes between the two.
    let model = json!({"id": "m", "contextWindow": 400_000, "maxTokens": 8_000, "promptCache": {"short": 11},
        "cost": {"input": 10, "output": 20, "cacheRead": 0.2, "cacheWrite": 0}});
    let provider =
        json!({"baseUrl": server.url(), "api": "openai-completions", "apiKey": "k", "models": [model]});
    let home = TestHome::new();
    fs::write(home.agent().join("models.json"), json!({"providers": {"acme": provider}}).to_string())
        .unwrap();
    let mut client = tokio::task::spawn_blocking(move || {
        let mut client = RpcClient::start(&home, &["--mode", "rpc", "--model", "acme/m"]);
        client.prompt("hello");
        (client, home)
    })
    .await
    .unwrap();
    seen.reached().await;
    let bodies: Vec<String> = server.requests().into_iter().map(|request| request.text).collect();
    let [first, second] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!(&first.replace("\"max_tokens\":8000", "\"max_tokens\":1"), second);
    seen.open();
    client.0.close_input();
    let (_, exit, _) = tokio::task::spawn_blocking(move || client.0.finish()).await.unwrap();
    assert!(exit.success());
}
