//! The provider against a server that behaves well, badly, or not at all.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pi::ai::{
    AssistantMessage, BlockKind, Credential, EventStream, FakeAnswer, FakeProvider, HttpOptions,
    HttpProvider, Message, Model, Provider, Request, Router, SignIn, StopReason, StreamEvent, StreamOptions,
    StreamOrder, TestBarrier, Transport, is_retryable,
};
use pi::util::clock::Clock;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::sse_server::{Reply, SseServer};

const HELLO: &str = concat!(
    "data: {\"id\":\"r1\",\"model\":\"m-2026\",\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000000,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);

const FIRST: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";

#[tokio::test]
async fn an_answer_comes_with_times_cost_and_ids() {
    let server = SseServer::start([Reply::sse(HELLO)]).await;
    let message = answer(&server, HttpOptions::default()).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["Hello"]);
    assert_eq!(message.stop_reason, StopReason::Stop);
    assert_eq!(
        (message.response_id.as_deref(), message.response_model.as_deref()),
        (Some("r1"), Some("m-2026"))
    );
    assert_eq!((message.timestamp.0, message.duration_ms), (42, Some(0)));
    assert_eq!(message.usage.cost.input, 3.0);
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer key"));
    assert_eq!(request.body["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server = SseServer::start([Reply::sse(HELLO), Reply::sse(HELLO)]).await;
    let provider = provider(HttpOptions::default());
    for _ in 0..2 {
        let message = done(provider.stream(request(server.url()), CancellationToken::new())).await;
        assert_eq!(message.stop_reason, StopReason::Stop);
    }
    assert_eq!((server.requests().len(), server.n_connections()), (2, 1));
}

#[tokio::test]
async fn what_is_not_an_event_stream_is_named() {
    let page = "<!doctype html><html><head><title>Log in</title></head></html>";
    let rows = [
        (
            Reply::status(200, &[("content-type", "text/html")], page),
            "acme answered with an HTML page (Log in); check the base URL",
            false,
        ),
        (Reply::sse(page), "acme answered with an HTML page (Log in); check the base URL", false),
        (
            Reply::status(
                200,
                &[("content-type", "application/json")],
                r#"{"error":{"message":"no such key","code":"invalid_api_key"}}"#,
            ),
            "invalid_api_key: no such key",
            false,
        ),
        (
            Reply::status(200, &[], r#"{"id":"x","choices":[]}"#),
            r#"acme answered with JSON instead of an event stream: {"id":"x","choices":[]}"#,
            false,
        ),
        (
            Reply::status(200, &[("content-type", "text/plain")], "upstream connect error"),
            "acme did not answer with an event stream (text/plain): upstream connect error",
            true,
        ),
        (Reply::sse(""), "acme sent an empty answer: stream ended before any data", true),
        (Reply::status(200, &[], ""), "acme sent an empty answer: stream ended before any data", true),
        (Reply::sse(FIRST), "stream ended before a finish_reason", true),
        (Reply::sse(FIRST.trim_end_matches("}]}\n\n")), "stream ended before a finish_reason", true),
        (Reply::status(503, &[], ""), "503: acme answered with an empty body", true),
        (
            Reply::status(302, &[("location", "https://elsewhere/")], ""),
            "302: acme redirects to https://elsewhere/; check the base URL",
            false,
        ),
    ];
    for (reply, expected, retryable) in rows {
        let server = SseServer::start([reply]).await;
        let message = answer(&server, HttpOptions::default()).await;
        assert_eq!(message.error_message.as_deref(), Some(expected));
        assert_eq!(message.stop_reason, StopReason::Error);
        assert_eq!(is_retryable(&message), retryable, "{expected}");
    }
}

#[tokio::test]
async fn a_redirect_takes_nothing_to_another_server() {
    let other = SseServer::start([Reply::sse(HELLO)]).await;
    for status in [302, 307, 308] {
        let target = format!("{}/v1/chat/completions", other.url());
        let reply = Reply::status(status, &[("location", target.as_str())], "");
        let server = SseServer::start([reply]).await;
        let message = answer(&server, HttpOptions::default()).await;
        let expected = format!("{status}: acme redirects to {target}; check the base URL");
        assert_eq!(message.error_message, Some(expected));
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_kept() {
    let body = r#"{"error": {"message": "Incorrect API key provided: secret-key"}}"#;
    let server = SseServer::start([Reply::status(401, &[], body)]).await;
    let credential = Credential::ApiKey("secret-key".to_owned());
    let request = Request { credential, ..Arc::unwrap_or_clone(request(server.url())) };
    let stream = provider(HttpOptions::default()).stream(Arc::new(request), CancellationToken::new());
    let message = done(stream).await;
    assert_eq!(message.error_message.as_deref(), Some("401: Incorrect API key provided: …"));
}

#[tokio::test]
async fn a_body_that_never_ends_and_says_nothing_is_given_up() {
    let page = format!("<html>{}", "x".repeat(70_000));
    let gate = TestBarrier::new();
    let server = SseServer::start([Reply::stream("text/html").piece(&page).gate(&gate)]).await;
    let message = answer(&server, HttpOptions::default()).await;
    assert_eq!(message.error_message.as_deref(), Some("acme answered with an HTML page; check the base URL"));
}

#[tokio::test]
async fn a_lost_connection_keeps_what_had_come() {
    let server = SseServer::start([Reply::stream("text/event-stream").piece(FIRST).hang_up()]).await;
    let message = answer(&server, HttpOptions::default()).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["Hel"]);
    assert!(message.error_message.as_deref().unwrap().starts_with("stream interrupted: connection lost"));
    assert!(is_retryable(&message));
}

#[tokio::test]
async fn hanging_up_after_the_last_word_is_no_failure() {
    let said = HELLO.trim_end_matches("data: [DONE]\n\n");
    let server = SseServer::start([Reply::stream("text/event-stream").piece(said).hang_up()]).await;
    assert_eq!(answer(&server, HttpOptions::default()).await.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn an_answer_is_over_when_the_server_says_so_though_it_stays_connected() {
    let gate = TestBarrier::new();
    let server = SseServer::start([Reply::stream("text/event-stream").piece(HELLO).gate(&gate)]).await;
    assert_eq!(answer(&server, HttpOptions::default()).await.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn cancelling_keeps_the_part_and_closes_the_connection() {
    let gate = TestBarrier::new();
    let server = SseServer::start([Reply::stream("text/event-stream").piece(FIRST).gate(&gate)]).await;
    let cancel = CancellationToken::new();
    let mut events = provider(HttpOptions::default()).stream(request(server.url()), cancel.clone());
    assert_eq!(events.next().await, Some(StreamEvent::Start));
    assert_eq!(events.next().await, Some(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }));
    gate.reached().await;
    cancel.cancel();
    let message = done(events).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["Hel"]);
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(message.error_message.as_deref(), Some("Request was aborted"));
    server.client_closed().await;
}

#[tokio::test]
async fn cancelling_before_the_headers_closes_the_connection() {
    let gate = TestBarrier::new();
    let server = SseServer::start([Reply::raw("").gate(&gate)]).await;
    let cancel = CancellationToken::new();
    let mut events = provider(HttpOptions::default()).stream(request(server.url()), cancel.clone());
    tokio::select! {
        event = events.next() => panic!("{event:?}"),
        () = gate.reached() => cancel.cancel(),
    }
    assert_eq!(done(events).await.stop_reason, StopReason::Aborted);
    server.client_closed().await;
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let gate = TestBarrier::new();
    let server = SseServer::start([Reply::stream("text/event-stream").piece(FIRST).gate(&gate)]).await;
    let mut events = provider(HttpOptions::default()).stream(request(server.url()), CancellationToken::new());
    assert_eq!(events.next().await, Some(StreamEvent::Start));
    drop(events);
    server.client_closed().await;
}

#[tokio::test]
async fn silence_ends_in_a_failure_before_and_after_the_headers() {
    let options = || HttpOptions { idle_timeout: Some(Duration::from_millis(30)), ..HttpOptions::default() };
    let gate = TestBarrier::new();
    let rows = [
        (Reply::raw("").gate(&gate), "timed out: no answer from acme for 0.03 s"),
        (
            Reply::stream("text/event-stream").piece(FIRST).gate(&gate),
            "timed out: no data from acme for 0.03 s",
        ),
    ];
    for (reply, expected) in rows {
        let server = SseServer::start([reply]).await;
        let message = answer(&server, options()).await;
        assert_eq!(message.error_message.as_deref(), Some(expected));
        assert!(is_retryable(&message));
        server.client_closed().await;
    }
}

#[tokio::test]
async fn an_endless_line_is_cut_off() {
    let piece = vec![b'x'; 8 << 20];
    let mut reply = Reply::stream("text/event-stream").piece("data: ");
    for _ in 0..9 {
        reply = reply.piece(&piece);
    }
    let gate = TestBarrier::new();
    let server = SseServer::start([reply.gate(&gate)]).await;
    let message = answer(&server, HttpOptions::default()).await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("the stream holds an event larger than 67108864 bytes")
    );
}

#[tokio::test]
async fn an_unreachable_host_is_named() {
    // Bound and dropped, so nothing listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let message =
        done(provider(HttpOptions::default()).stream(request(&url), CancellationToken::new())).await;
    let error = message.error_message.clone().unwrap();
    assert!(error.starts_with(&format!("connection error: cannot reach {url}")), "{error}");
    assert!(is_retryable(&message), "{error}");
}

#[tokio::test]
async fn urls_that_cannot_be_asked_fail_at_once() {
    for (url, expected) in
        [("nonsense", "invalid URL nonsense"), ("ftp://x", "unsupported scheme in ftp://x")]
    {
        let message =
            done(provider(HttpOptions::default()).stream(request(url), CancellationToken::new())).await;
        let error = message.error_message.unwrap();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn invalid_utf8_does_not_end_the_answer() {
    let body = [HELLO.as_bytes(), b": \xff\n\n"].concat();
    let body = [b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n", body.as_slice()].concat();
    let server = SseServer::start([Reply::sse(body)]).await;
    let message = answer(&server, HttpOptions::default()).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["\u{fffd}Hello"]);
}

#[tokio::test]
async fn inner_retries_wait_as_long_as_the_server_demands() {
    let slow = Reply::status(429, &[("retry-after-ms", "1")], r#"{"error":{"message":"slow"}}"#);
    let server = SseServer::start([slow.clone(), slow, Reply::sse(HELLO)]).await;
    let options = HttpOptions { max_retries: 2, ..HttpOptions::default() };
    assert_eq!(answer(&server, options).await.stop_reason, StopReason::Stop);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_wait_that_is_too_long_fails_at_once_and_says_so() {
    let slow = Reply::status(429, &[("retry-after", "120")], r#"{"error":{"message":"slow"}}"#);
    let server = SseServer::start([slow]).await;
    let message = answer(&server, HttpOptions { max_retries: 2, ..HttpOptions::default() }).await;
    let error = message.error_message.as_deref().unwrap();
    assert_eq!(
        error,
        "429: slow (retry after 120s); the demanded retry delay of 120s is above the limit of 60s"
    );
    assert!(is_retryable(&message));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_will_fail_again_is_not_repeated() {
    let refused = Reply::status(401, &[], r#"{"error":{"message":"invalid key"}}"#);
    let server = SseServer::start([refused]).await;
    let message = answer(&server, HttpOptions { max_retries: 2, ..HttpOptions::default() }).await;
    assert_eq!(message.error_message.as_deref(), Some("401: invalid key"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_router_sends_each_api_to_its_provider() {
    let demo = FakeProvider::new([FakeAnswer::of_text("demo")]);
    let router = Router::new(provider(HttpOptions::default()), Some(Arc::new(demo.clone())));
    let mut request = (*request("http://x")).clone();
    let with_api = |request: &mut Request, api: &str| {
        let model = json!({"id": "m", "api": api, "provider": "p"});
        request.model = Arc::new(serde_json::from_value::<Model>(model).unwrap());
    };
    with_api(&mut request, "demo");
    let message = done(router.stream(Arc::new(request.clone()), CancellationToken::new())).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["demo"]);
    assert_eq!(demo.requests().len(), 1);
    with_api(&mut request, "smoke-signals");
    let message = done(router.stream(Arc::new(request), CancellationToken::new())).await;
    let error = message.error_message.unwrap();
    assert!(error.contains("smoke-signals") && error.contains("openai-completions"), "{error}");
}

#[tokio::test]
async fn the_fake_stops_at_gates_and_honours_cancel() {
    let gate = TestBarrier::new();
    let scripted = FakeAnswer::new().thinking("hm").text_pieces(&["a", "b"], Some(&gate)).tool_call(
        "1",
        "read",
        json!({"path": "x"}),
    );
    let fake = FakeProvider::new([scripted.clone(), scripted]);
    let cancel = CancellationToken::new();
    let events = fake.stream(request("http://x"), cancel.clone());
    gate.open();
    let message = done(events).await;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.tool_calls().count(), 1);
    gate.reached().await;

    let events = fake.stream(request("http://x"), cancel.clone());
    let (message, ()) = tokio::join!(done(events), async {
        gate.reached().await;
        cancel.cancel();
    });
    assert_eq!((message.stop_reason, message.texts().collect::<Vec<_>>()), (StopReason::Aborted, vec!["a"]));
    let message = done(fake.stream(request("http://x"), CancellationToken::new())).await;
    assert_eq!(message.stop_reason, StopReason::Error);
}

#[tokio::test]
async fn limits_in_headers_of_answers_and_errors_are_kept() {
    let transport = Transport::new();
    let provider = HttpProvider::new(transport.clone(), Clock::manual(1), HttpOptions::default());
    let used = |used| ("x-codex-primary-used-percent", used);
    let window = ("x-codex-primary-window-minutes", "300");
    let done_line = "data: [DONE]\n\n";
    let server = SseServer::start([
        Reply::status(200, &[("content-type", "text/event-stream"), used("20"), window], done_line),
        Reply::status(429, &[used("100"), window], r#"{"error":{"message":"usage limit"}}"#),
        Reply::sse(done_line),
    ])
    .await;
    for expected in [0.2, 1.0, 1.0] {
        done(provider.stream(request(server.url()), CancellationToken::new())).await;
        let quota = transport.quotas().get("acme").unwrap();
        assert_eq!((quota.windows[0].name.as_str(), quota.windows[0].used), ("5 h", expected));
    }
}

#[tokio::test]
async fn requests_with_the_account_of_a_plan_are_marked() {
    let check = async |credential: Credential, expected: bool| {
        let server = SseServer::start([Reply::sse("data: [DONE]\n\n")]).await;
        let mut request = (*request(server.url())).clone();
        let mut model = (*request.model).clone();
        model.provider = "openai".to_owned();
        (request.model, request.credential) = (Arc::new(model), credential);
        let provider = provider(HttpOptions::default());
        let message = done(provider.stream(Arc::new(request), CancellationToken::new())).await;
        assert_eq!(message.usage.is_on_plan(), expected);
    };
    let account = SignIn { token: "t".to_owned(), base_url: None, account_id: None };
    check(Credential::SignedIn(Box::new(account)), true).await;
    check(Credential::ApiKey("key".to_owned()), false).await;
}

/// A request of Anthropic's API to this address.
fn anthropic_request(base_url: &str) -> Arc<Request> {
    let mut request = Arc::unwrap_or_clone(request(base_url));
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "acme", "baseUrl": base_url});
    request.model = Arc::new(serde_json::from_value::<Model>(model).unwrap());
    Arc::new(request)
}

/// An answer of Anthropic's API with these blocks, each with its deltas.
fn anthropic_answer(blocks: &[(serde_json::Value, &[serde_json::Value])], reason: &str) -> String {
    let mut frames = vec![json!({"type": "message_start", "message": {"id": reason, "content": [],
        "usage": {"input_tokens": 100, "output_tokens": 1}}})];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        frames.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let deltas = deltas.iter();
        frames.extend(
            deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        frames.push(json!({"type": "content_block_stop", "index": index}));
    }
    let usage = json!({"output_tokens": 5});
    frames.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
    frames.push(json!({"type": "message_stop"}));
    frames.iter().map(|frame| format!("data: {frame}\n\n")).collect()
}

#[tokio::test]
async fn paused_answer_is_continued_with_what_has_come() {
    let text = |text: &str| json!({"type": "text_delta", "text": text});
    let block = || json!({"type": "text", "text": ""});
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let query = json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let paused = anthropic_answer(
        &[(block(), &[text("one ")]), (search, std::slice::from_ref(&query)), (found.clone(), &[])],
        "pause_turn",
    );
    let rest = anthropic_answer(&[(block(), &[text("two")])], "end_turn");
    let server = SseServer::start([Reply::sse(paused), Reply::sse(rest)]).await;
    let events =
        provider(HttpOptions::default()).stream(anthropic_request(server.url()), CancellationToken::new());
    let message = done(events).await;
    assert_eq!(message.texts().collect::<Vec<_>>(), ["one ", "two"]);
    assert_eq!(
        (message.stop_reason, message.raw_stop_reason.as_deref()),
        (StopReason::Stop, Some("end_turn"))
    );
    assert_eq!((message.usage.input, message.usage.output, message.usage.total_tokens), (200, 10, 210));
    let searched =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}});
    let sent = server.requests()[1].body["messages"].clone();
    assert_eq!(
        sent[1],
        json!({"role": "assistant", "content": [{"type": "text", "text": "one "}, searched, found]})
    );
    assert_eq!(sent[0], server.requests()[0].body["messages"][0]);
}

#[tokio::test]
async fn answer_that_is_paused_again_and_again_fails() {
    let text = [json!({"type": "text_delta", "text": "a"})];
    let paused = anthropic_answer(&[(json!({"type": "text", "text": ""}), &text)], "pause_turn");
    let server = SseServer::start((0..20).map(|_| Reply::sse(&paused))).await;
    let events =
        provider(HttpOptions::default()).stream(anthropic_request(server.url()), CancellationToken::new());
    let message = done(events).await;
    assert_eq!(message.stop_reason, StopReason::Error);
    assert_eq!((server.requests().len(), message.text().matches('a').count()), (11, 11));
}

#[tokio::test]
async fn reasoning_that_a_service_demands_of_each_answer_is_added() {
    let answers = [
        json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"}, {"type": "text", "text": "a"}]),
        json!([{"type": "text", "text": "b"}]),
    ];
    for text in [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "messages[3]: field reasoning_content is required for assistant messages",
        "Missing `reasoning_content` field in the assistant message at message index 3.",
    ] {
        let body = json!({"error": {"message": text, "type": "invalid_request_error"}}).to_string();
        let refused = Reply::status(400, &[], &body);
        let server = SseServer::start([refused, Reply::sse(HELLO), Reply::sse(HELLO)]).await;
        let mut request = Arc::unwrap_or_clone(request(server.url()));
        for answer in &answers {
            let answer = json!({"role": "assistant", "content": answer, "api": "openai-completions",
                "provider": "acme", "model": "m", "stopReason": "stop"});
            let user = json!({"role": "user", "content": "go on"});
            for message in [answer, user] {
                request.messages.push(Arc::new(serde_json::from_value::<Message>(message).unwrap()));
            }
        }
        let provider = provider(HttpOptions::default());
        for _ in 0..2 {
            let message = done(provider.stream(Arc::new(request.clone()), CancellationToken::new())).await;
            assert_eq!(message.stop_reason, StopReason::Stop, "{text}: {:?}", message.error_message);
        }
        let reasoning: Vec<_> = server
            .requests()
            .iter()
            .map(|request| [1, 3].map(|at| request.body["messages"][at]["reasoning_content"].clone()))
            .collect();
        let repaired = [json!("hm"), json!("")];
        // The next request has the field from the start.
        assert_eq!(reasoning, [[json!("hm"), json!(null)], repaired.clone(), repaired], "{text}");
    }
}

#[tokio::test]
async fn field_that_a_service_does_not_know_is_not_added() {
    let body = json!({"error": {"message": "reasoning_content: Extra inputs are not permitted"}}).to_string();
    let server = SseServer::start([Reply::status(400, &[], &body)]).await;
    assert_eq!(answer(&server, HttpOptions::default()).await.stop_reason, StopReason::Error);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn connection_that_the_server_closed_meanwhile_is_replaced_silently() {
    let server = SseServer::start(Vec::new()).await;
    let whole = Reply::status(200, &[("content-type", "text/event-stream")], HELLO);
    for provider in [provider(HttpOptions::default()), provider(HttpOptions::default()).on_own_thread()] {
        server.reply(whole.clone().hang_up());
        server.reply(Reply::sse(HELLO));
        for _ in 0..2 {
            let message = done(provider.stream(request(server.url()), CancellationToken::new())).await;
            assert_eq!(message.stop_reason, StopReason::Stop, "{:?}", message.error_message);
        }
    }
}

fn provider(options: HttpOptions) -> HttpProvider {
    HttpProvider::new(Transport::new(), Clock::manual(1), options)
}

fn request(base_url: &str) -> Arc<Request> {
    let model = json!({"id": "m", "api": "openai-completions", "provider": "acme", "baseUrl": base_url,
        "cost": {"input": 3}});
    let user = json!({"role": "user", "content": "hi"});
    Arc::new(Request {
        model: Arc::new(serde_json::from_value::<Model>(model).unwrap()),
        credential: Credential::ApiKey("key".to_owned()),
        messages: vec![Arc::new(serde_json::from_value::<Message>(user).unwrap())],
        options: StreamOptions { started_ms: 42, ..StreamOptions::default() },
    })
}

async fn answer(server: &SseServer, options: HttpOptions) -> AssistantMessage {
    done(provider(options).stream(request(server.url()), CancellationToken::new())).await
}

/// The final message of the rest of a stream, whose order is checked if it is complete.
pub(crate) async fn done(events: EventStream) -> AssistantMessage {
    let events: Vec<StreamEvent> = events.collect().await;
    if events.first() == Some(&StreamEvent::Start) {
        let mut order = StreamOrder::default();
        events.iter().for_each(|event| order.accept(event).unwrap());
    }
    match events.into_iter().last() {
        Some(StreamEvent::Done(message)) => *message,
        other => panic!("the last event is {other:?}"),
    }
}
