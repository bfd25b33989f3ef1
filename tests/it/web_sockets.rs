//! Requests over WebSockets, against a service that behaves well, badly, or not at all.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use pi::ai::{
    AssistantMessage, Credential, EventStream, ExtraRoots, FailureClass, FakeProvider, HttpOptions,
    HttpProvider, Message, Model, Provider, Request, SignIn, StopReason, StreamEvent, StreamOptions,
    TestBarrier, Transport, WebSocketUse, decode_recorded, is_retryable, recorded_frames, request_body,
};
use pi::session::SessionCommand;
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ai_contract::transport::joined;
use crate::ai_http::done;
use crate::support::session_bench::SessionBench;
use crate::support::sse_server::{Reply, SseServer};
use crate::support::tls_server::AUTHORITY;
use crate::support::web_socket_server::{Script, Step, WebSocketServer};

const SESSION: &str = "session-1";

fn provider(web_sockets: WebSocketUse) -> HttpProvider {
    HttpProvider::new(Transport::new(), Clock::manual(1), options(web_sockets))
}

fn options(web_sockets: WebSocketUse) -> HttpOptions {
    HttpOptions { web_sockets, ..HttpOptions::default() }
}

/// A request to the service behind ChatGPT at `url`.
fn request(url: &str, messages: &[Value]) -> Arc<Request> {
    request_of("openai-codex-responses", url, messages)
}

fn request_of(api: &str, url: &str, messages: &[Value]) -> Arc<Request> {
    let model = json!({ "id": "gpt-x", "api": api, "provider": "acme", "baseUrl": url, "reasoning": true });
    let account =
        SignIn { token: "token".to_owned(), base_url: None, account_id: Some("account".to_owned()) };
    let message = |value: &Value| Arc::new(serde_json::from_value::<Message>(value.clone()).unwrap());
    Arc::new(Request {
        model: Arc::new(serde_json::from_value::<Model>(model).unwrap()),
        credential: Credential::SignedIn(Box::new(account)),
        messages: messages.iter().map(message).collect(),
        options: StreamOptions {
            started_ms: 42,
            session_id: Some(SESSION.to_owned()),
            ..StreamOptions::default()
        },
    })
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// The events of an answer with the id `id` that says `text`.
fn saying(id: &str, text: &str) -> Vec<String> {
    let item = json!({ "type": "message", "role": "assistant", "id": format!("msg_{id}"), "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }] });
    events(id, &[item])
}

fn events(id: &str, items: &[Value]) -> Vec<String> {
    let mut events = vec![json!({ "type": "response.created", "response": { "id": id } })];
    for (at, item) in items.iter().enumerate() {
        events.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    let usage = json!({ "input_tokens": 10, "output_tokens": 2, "total_tokens": 12 });
    let response = json!({ "id": id, "status": "completed", "usage": usage });
    events.push(json!({ "type": "response.completed", "response": response }));
    events.iter().map(Value::to_string).collect()
}

fn error(status: u16, code: &str) -> String {
    let error = json!({ "type": "invalid_request_error", "code": code, "message": format!("said {code}") });
    json!({ "type": "error", "status": status, "error": error }).to_string()
}

/// Waits for a request and sends `events`.
fn replying(events: Vec<String>) -> Vec<Step> {
    std::iter::once(Step::Request).chain(events.into_iter().map(Step::Send)).collect()
}

/// One connection that answers several requests.
fn answers(answers: impl IntoIterator<Item = Vec<String>>) -> Script {
    Script::Steps(answers.into_iter().flat_map(replying).collect())
}

fn sse(events: &[String]) -> Reply {
    Reply::sse(events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

async fn ask(provider: &HttpProvider, request: Arc<Request>) -> AssistantMessage {
    done(provider.stream(request, CancellationToken::new())).await
}

#[track_caller]
fn said(message: &AssistantMessage, text: &str) {
    assert_eq!(message.error_message, None);
    assert_eq!(message.texts().collect::<Vec<_>>(), [text]);
}

/// Why the answer came over HTTP.
fn fallback(message: &AssistantMessage) -> Option<&str> {
    message.extra.get("diagnostics")?[0]["error"]["message"].as_str()
}

#[tokio::test]
async fn request_is_one_message_with_the_headers_of_the_service() {
    let server = WebSocketServer::start([answers([saying("r1", "Hello")])], []).await;
    let request = request(server.url(), &[user("hi")]);
    let message = ask(&provider(WebSocketUse::PerRequest), Arc::clone(&request)).await;
    said(&message, "Hello");
    assert_eq!((message.response_id.as_deref(), message.usage.total_tokens), (Some("r1"), 12));
    assert_eq!(fallback(&message), None);
    server.client_closed().await;
    let upgrade = &server.upgrades()[0];
    assert_eq!((upgrade.method.as_str(), upgrade.path.as_str()), ("GET", "/codex/responses"));
    for (name, value) in [
        ("authorization", "Bearer token"),
        ("chatgpt-account-id", "account"),
        ("openai-beta", "responses_websockets=2026-02-06"),
        ("originator", "pi"),
        ("session-id", SESSION),
        ("sec-websocket-version", "13"),
    ] {
        assert_eq!(upgrade.header(name), Some(value), "{name}");
    }
    let mut body: Value = serde_json::from_slice(&request_body(&request).unwrap()).unwrap();
    let body = body.as_object_mut().unwrap();
    body.remove("stream");
    body.insert("type".to_owned(), "response.create".into());
    assert_eq!(server.requests(), [(0, Value::Object(body.clone()))]);
    assert_eq!(server.posts().len(), 0);
}

#[tokio::test]
async fn services_without_web_sockets_and_the_default_stream_over_http() {
    let rows = [
        ("openai-responses", WebSocketUse::Kept),
        ("azure-openai-responses", WebSocketUse::Kept),
        ("openai-codex-responses", WebSocketUse::Never),
    ];
    for (api, use_of) in rows {
        let server = WebSocketServer::start([], [sse(&saying("r1", "Hello"))]).await;
        let message = ask(&provider(use_of), request_of(api, server.url(), &[user("hi")])).await;
        said(&message, "Hello");
        assert_eq!(
            (server.upgrades().len(), server.posts().len(), fallback(&message)),
            (0, 1, None),
            "{api}"
        );
    }
}

#[tokio::test]
async fn recorded_answers_are_the_same_as_over_http() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ai/openai-responses");
    let mut n_compared = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        let body = fs::read(&path).unwrap();
        let frames = recorded_frames([body.as_slice()]).unwrap();
        let frames: Vec<String> =
            frames.into_iter().map(|frame| frame.data).filter(|data| data.starts_with('{')).collect();
        let is_error =
            |frame: &String| frame.contains("\"type\":\"error\"") || frame.contains("\"type\": \"error\"");
        if frames.first().is_none_or(is_error) {
            continue;
        }
        let mut steps = replying(frames);
        steps.push(Step::Close(1000, ""));
        let server = WebSocketServer::start([Script::Steps(steps)], []).await;
        let request = request(server.url(), &[user("hi")]);
        let mut expected = decode_recorded(&request, [body.as_slice()]);
        let mut found: Vec<StreamEvent> =
            provider(WebSocketUse::PerRequest).stream(request, CancellationToken::new()).collect().await;
        let (Some(StreamEvent::Done(expected_end)), Some(StreamEvent::Done(end))) =
            (expected.pop(), found.pop())
        else {
            panic!("{}", path.display());
        };
        // Pieces that arrive together are one.
        assert_eq!(joined(&found), joined(&expected), "{}", path.display());
        assert_eq!((&end.content, end.stop_reason), (&expected_end.content, expected_end.stop_reason));
        assert_eq!(
            (end.usage.input, end.usage.output),
            (expected_end.usage.input, expected_end.usage.output)
        );
        let class = |message: &AssistantMessage| message.failure.as_ref().map(|failure| failure.class);
        assert_eq!(class(&end), class(&expected_end), "{}", path.display());
        n_compared += 1;
    }
    assert!(n_compared > 10, "{n_compared}");
}

#[tokio::test]
async fn request_goes_over_http_once_if_there_is_no_connection() {
    let refuse = |status: u16| Script::Refuse(Reply::status(status, &[], ""));
    // Whether the next request tries again.
    let rows: Vec<(Script, &str, bool)> = vec![
        (refuse(404), "answered the upgrade with 404 Not Found", false),
        (refuse(426), "answered the upgrade with 426 Upgrade Required", false),
        (Script::Refuse(Reply::status(200, &[], "{}")), "answered the upgrade with 200 OK", false),
        (Script::WrongKey, "did not accept the key", false),
        (refuse(401), "answered the upgrade with 401", true),
        (refuse(503), "answered the upgrade with 503", true),
        (Script::Refuse(Reply::raw("").hang_up()), "cannot reach http://127.0.0.1", true),
        (Script::Steps(vec![Step::Request, Step::HangUp]), "websocket closed 1006", true),
        (Script::Steps(vec![Step::Request, Step::Close(1011, "oops")]), "websocket closed 1011 (oops)", true),
        (Script::Steps(vec![Step::HangUp]), "websocket closed 1006", true),
    ];
    for (script, why, tries_again) in rows {
        let replies = [sse(&saying("r1", "Hello")), sse(&saying("r2", "Again"))];
        let server = WebSocketServer::start([script], replies).await;
        let provider = provider(WebSocketUse::PerRequest);
        let message = ask(&provider, request(server.url(), &[user("hi")])).await;
        said(&message, "Hello");
        let told = fallback(&message).unwrap();
        assert!(told.contains(why), "{told}");
        said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Again");
        assert_eq!(
            (server.upgrades().len(), server.posts().len()),
            (1 + usize::from(tries_again), 2),
            "{why}"
        );
        assert_eq!(server.posts()[0].header("openai-beta"), Some("responses=experimental"));
    }
}

/// Time passes as soon as everybody waits, from the moment at which the service waits at `gate`.
async fn hurry_from(gate: &TestBarrier) {
    gate.reached().await;
    tokio::time::pause();
}

#[tokio::test]
async fn connection_that_does_not_come_is_waited_for_as_long_as_the_setting_says() {
    let gate = TestBarrier::new();
    let never = Script::Refuse(Reply::raw("").gate(&gate));
    let server = WebSocketServer::start([never], [sse(&saying("r1", "Hello"))]).await;
    let begun = tokio::time::Instant::now();
    let options = HttpOptions { idle_timeout: None, ..options(WebSocketUse::PerRequest) };
    let provider = HttpProvider::new(Transport::new(), Clock::manual(1), options);
    let (message, ()) = tokio::join!(ask(&provider, request(server.url(), &[user("hi")])), async {
        hurry_from(&gate).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        tokio::time::resume();
    });
    said(&message, "Hello");
    assert_eq!(fallback(&message), Some("no connection within 15 s"));
    assert!(begun.elapsed().as_secs() >= 15);
}

#[tokio::test]
async fn silence_ends_in_a_failure_before_and_after_the_first_event() {
    let first = saying("r1", "Hello").swap_remove(0);
    let rows = [
        (vec![Step::Request], "timed out: no answer from acme for 300 s"),
        (vec![Step::Request, Step::Send(first)], "timed out: no data from acme for 300 s"),
    ];
    for (mut steps, expected) in rows {
        let gate = TestBarrier::new();
        steps.push(Step::Gate(gate.clone()));
        let server = WebSocketServer::start([Script::Steps(steps)], []).await;
        let provider = provider(WebSocketUse::Kept);
        let asking = ask(&provider, request(server.url(), &[user("hi")]));
        let (message, ()) = tokio::join!(asking, hurry_from(&gate));
        tokio::time::resume();
        assert_eq!(message.error_message.as_deref(), Some(expected));
        assert!(is_retryable(&message));
        server.client_closed().await;
        assert_eq!(server.posts().len(), 0);
    }
}

#[tokio::test]
async fn error_in_place_of_an_answer_is_that_of_http() {
    let rows = [
        (error(429, "rate_limit_exceeded"), "429: said rate_limit_exceeded", FailureClass::RateLimit),
        (error(401, "invalid_api_key"), "401: said invalid_api_key", FailureClass::Auth),
        (error(400, "context_length_exceeded"), "400: said context_length_exceeded", FailureClass::Overflow),
        (error(400, "bad"), "400: said bad", FailureClass::InvalidRequest),
    ];
    for (event, text, class) in rows {
        let server = WebSocketServer::start([answers([vec![event]])], []).await;
        let message = ask(&provider(WebSocketUse::PerRequest), request(server.url(), &[user("hi")])).await;
        let told = message.error_message.as_deref().unwrap();
        assert!(told.starts_with(text), "{told}");
        assert_eq!(message.failure.unwrap().class, class);
        server.client_closed().await;
        assert_eq!(server.posts().len(), 0);
    }
}

#[tokio::test]
async fn answer_that_breaks_off_keeps_what_came_and_fails() {
    let item = json!({ "type": "message", "role": "assistant", "id": "msg_1", "content": [] });
    let begun = || {
        let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": item });
        let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Hel" });
        replying(vec![added.to_string(), delta.to_string()])
    };
    let gigabyte = [&[0x81, 127][..], &(1_u64 << 30).to_be_bytes()].concat();
    let limit = error(400, "websocket_connection_limit_reached");
    let rows = [
        (Step::HangUp, "websocket closed 1006", FailureClass::Network),
        (Step::Close(1001, ""), "websocket closed 1001", FailureClass::Network),
        (Step::Close(1008, "policy"), "websocket closed 1008 (policy)", FailureClass::InvalidRequest),
        (Step::Close(1013, ""), "websocket closed 1013", FailureClass::Overloaded),
        (Step::Raw(gigabyte), "websocket error: ", FailureClass::Unknown),
        (Step::Raw(vec![0xff, 0]), "websocket closed 1006", FailureClass::Network),
        (Step::Send(limit), "websocket_connection_limit_reached: said", FailureClass::Network),
        (Step::Send("no JSON".to_owned()), "the stream carried malformed JSON", FailureClass::Network),
    ];
    for (end, text, class) in rows {
        let mut steps = begun();
        steps.push(end);
        let server = WebSocketServer::start([Script::Steps(steps)], []).await;
        let message = ask(&provider(WebSocketUse::Kept), request(server.url(), &[user("hi")])).await;
        let told = message.error_message.as_deref().unwrap();
        assert!(told.starts_with(text), "{told}");
        assert_eq!(message.texts().collect::<Vec<_>>(), ["Hel"], "{text}");
        assert_eq!(message.failure.unwrap().class, class, "{text}");
        assert_eq!(server.posts().len(), 0);
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_before_and_during_an_answer() {
    let first = saying("r1", "Hello").swap_remove(0);
    for before in [vec![Step::Request], vec![Step::Request, Step::Send(first)]] {
        let gate = TestBarrier::new();
        let steps = before.into_iter().chain([Step::Gate(gate.clone())]).collect();
        let server = WebSocketServer::start([Script::Steps(steps)], []).await;
        let cancel = CancellationToken::new();
        let events =
            provider(WebSocketUse::Kept).stream(request(server.url(), &[user("hi")]), cancel.clone());
        let (message, ()) = tokio::join!(done(events), async {
            gate.reached().await;
            cancel.cancel();
        });
        assert_eq!(message.stop_reason, StopReason::Aborted);
        server.client_closed().await;
        assert_eq!(server.posts().len(), 0);
    }
}

#[tokio::test]
async fn pings_are_answered_during_an_answer_and_between_two() {
    let gate = TestBarrier::new();
    let mut steps = vec![Step::Request];
    for event in saying("r1", "Hello") {
        steps.extend([Step::Ping, Step::Send(event)]);
    }
    steps.extend([Step::Ping, Step::Gate(gate.clone())]);
    steps.extend(replying(saying("r2", "Again")));
    let server = WebSocketServer::start([Script::Steps(steps)], []).await;
    let provider = provider(WebSocketUse::Kept);
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Hello");
    gate.reached().await;
    gate.open();
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Again");
    assert_eq!(server.upgrades().len(), 1);
}

#[tokio::test]
async fn connection_has_the_certificates_and_the_proxy_of_other_requests() {
    let pem = fs::read(AUTHORITY).unwrap();
    let trusting = || Transport::trusting(ExtraRoots::from_pem(pem.clone(), String::new(), String::new()));
    let direct = WebSocketServer::start_tls([answers([saying("r1", "Hello")])]).await;
    let options = || options(WebSocketUse::PerRequest);
    let provider = HttpProvider::new(trusting(), Clock::manual(1), options());
    let message = ask(&provider, request(direct.url(), &[user("hi")])).await;
    said(&message, "Hello");
    assert_eq!(fallback(&message), None);

    let proxy = WebSocketServer::start_tls([answers([saying("r1", "Hello")])]).await;
    let address = proxy.url().replace("https:", "http:");
    let provider = HttpProvider::new(trusting().through(&address).unwrap(), Clock::manual(1), options());
    let message = ask(&provider, request("https://service.test/backend", &[user("hi")])).await;
    said(&message, "Hello");
    assert_eq!(fallback(&message), None);
    let seen: Vec<(String, String)> =
        proxy.upgrades().into_iter().map(|request| (request.method, request.path)).collect();
    let expected = [("CONNECT", "service.test:443"), ("GET", "/backend/codex/responses")];
    assert_eq!(seen, expected.map(|(method, path)| (method.to_owned(), path.to_owned())));
}

/// What the service has read after `requests`, if it gave these answers.
fn known_to_the_service(requests: &[(usize, Value)], answers: &[Scripted]) -> Vec<Value> {
    let mut known: Vec<Value> = Vec::new();
    for (n, (_, request)) in requests.iter().enumerate() {
        if let Some(previous) = request.get("previous_response_id") {
            let (id, items) = &answers[n - 1];
            assert_eq!(previous, id);
            known.extend(items.clone());
        } else {
            known.clear();
        }
        known.extend(request["input"].as_array().unwrap().clone());
    }
    known
}

/// The id and the items of an answer.
type Scripted = (&'static str, Vec<Value>);

/// A conversation of three answers with thinking, text and calls of tools.
fn conversation() -> ([Vec<Value>; 3], [Scripted; 3]) {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Hm." }],
        "encrypted_content": "sealed" });
    let text = |id: &str, text: &str| {
        json!({ "type": "message", "role": "assistant", "id": id, "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
    };
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
        "arguments": "{\"path\":\"a\"}" });
    let answers = [
        ("r1", vec![reasoning.clone(), text("msg_1", "I look."), call]),
        ("r2", vec![text("msg_2", "Found.")]),
        ("r3", vec![text("msg_3", "Bye.")]),
    ];
    let result = json!({ "role": "toolResult", "toolCallId": "call_1|fc_1", "toolName": "read",
        "content": [{ "type": "text", "text": "A" }], "isError": false });
    ([vec![user("hi")], vec![result], vec![user("thanks")]], answers)
}

/// Has the conversation; `change` may alter the messages before each request.
async fn converse(
    provider: &HttpProvider,
    url: &str,
    change: impl Fn(usize, &mut Request),
) -> Vec<AssistantMessage> {
    let (turns, _) = conversation();
    let mut messages: Vec<Value> = Vec::new();
    let mut answers = Vec::new();
    for (n, turn) in turns.into_iter().enumerate() {
        messages.extend(turn);
        let mut request = Arc::unwrap_or_clone(request(url, &messages));
        change(n, &mut request);
        let answer = ask(provider, Arc::new(request)).await;
        let mut stored = serde_json::to_value(&answer).unwrap();
        stored["role"] = "assistant".into();
        messages.push(stored);
        answers.push(answer);
    }
    answers
}

fn all_of(answers: &[Scripted]) -> Vec<Vec<String>> {
    answers.iter().map(|(id, items)| events(id, items)).collect()
}

#[tokio::test]
async fn kept_connection_sends_only_what_is_new() {
    let (_, script) = conversation();
    let server = WebSocketServer::start([answers(all_of(&script))], []).await;
    let provider = provider(WebSocketUse::Kept);
    let wholes = Mutex::new(Vec::new());
    let whole = |_, request: &mut Request| {
        let body: Value = serde_json::from_slice(&request_body(request).unwrap()).unwrap();
        wholes.lock().unwrap().push(body["input"].as_array().unwrap().clone());
    };
    for answer in converse(&provider, server.url(), whole).await {
        assert_eq!((answer.error_message.as_deref(), fallback(&answer)), (None, None));
    }
    let requests = server.requests();
    assert_eq!((server.upgrades().len(), requests.len()), (1, 3));
    let previous = |n: usize| requests[n].1.get("previous_response_id").cloned();
    assert_eq!([previous(0), previous(1), previous(2)], [None, Some(json!("r1")), Some(json!("r2"))]);
    let n_items = |n: usize| requests[n].1["input"].as_array().unwrap().len();
    assert_eq!([n_items(0), n_items(1), n_items(2)], [1, 1, 1]);
    // The service has read what it would have read in whole requests, in the same order.
    for (n, whole) in wholes.into_inner().unwrap().into_iter().enumerate() {
        assert_eq!(known_to_the_service(&requests[..=n], &script), whole);
    }
}

#[tokio::test]
async fn kept_connection_gets_the_whole_request_if_anything_else_changed() {
    let changes: [fn(&mut Request); 3] = [
        |request| drop(request.options.extra_body.insert("text".to_owned(), json!({ "verbosity": "high" }))),
        |request| request.messages.insert(0, Arc::new(serde_json::from_value(user("before")).unwrap())),
        |request| {
            let Message::Assistant(answer) = &*request.messages[1] else { panic!("no answer") };
            let mut edited = answer.clone();
            edited.content.remove(1);
            request.messages[1] = Arc::new(Message::Assistant(edited));
        },
    ];
    for change in changes {
        let (_, script) = conversation();
        let server = WebSocketServer::start([answers(all_of(&script))], []).await;
        let provider = provider(WebSocketUse::Kept);
        let change = |n: usize, request: &mut Request| {
            if n == 1 {
                change(request);
            }
        };
        for answer in converse(&provider, server.url(), change).await {
            assert_eq!((answer.error_message.as_deref(), fallback(&answer)), (None, None));
        }
        let requests = server.requests();
        let continued: Vec<bool> =
            requests.iter().map(|(_, request)| request.get("previous_response_id").is_some()).collect();
        assert_eq!((server.upgrades().len(), continued), (1, vec![false, false, false]));
    }
}

#[tokio::test]
async fn refused_earlier_answer_repeats_the_request_as_a_whole() {
    let (_, script) = conversation();
    let [first, second, third] = <[Vec<String>; 3]>::try_from(all_of(&script)).unwrap();
    for refusal in ["previous_response_not_found", "invalid_value"] {
        // The service may tell the limits of the account before everything else.
        let limits = json!({ "type": "codex.rate_limits", "plan_type": "plus" }).to_string();
        let all = [first.clone(), vec![limits, error(400, refusal)], second.clone(), third.clone()];
        let server = WebSocketServer::start([answers(all)], []).await;
        let provider = provider(WebSocketUse::Kept);
        for answer in converse(&provider, server.url(), |_, _| {}).await {
            assert_eq!((answer.error_message.as_deref(), fallback(&answer)), (None, None));
        }
        let requests = server.requests();
        let previous: Vec<Option<&str>> =
            requests.iter().map(|(_, request)| request.get("previous_response_id")?.as_str()).collect();
        assert_eq!(previous, [None, Some("r1"), None, Some("r2")]);
        assert_eq!(requests[2].1["input"].as_array().unwrap().len(), 5);
        assert_eq!((server.upgrades().len(), server.posts().len()), (1, 0));
    }
}

#[tokio::test]
async fn new_connection_takes_the_place_of_one_that_closed() {
    let (_, script) = conversation();
    let [first, second, third] = <[Vec<String>; 3]>::try_from(all_of(&script)).unwrap();
    let limit = vec![error(400, "websocket_connection_limit_reached")];
    let mut closed = replying(first.clone());
    closed.push(Step::Close(1001, ""));
    let mut broken = replying(first.clone());
    broken.extend([Step::Request, Step::HangUp]);
    for connection in [answers([first, limit]), Script::Steps(closed), Script::Steps(broken)] {
        let server = WebSocketServer::start([connection, answers([second.clone(), third.clone()])], []).await;
        let provider = provider(WebSocketUse::Kept);
        for answer in converse(&provider, server.url(), |_, _| {}).await {
            assert_eq!((answer.error_message.as_deref(), fallback(&answer)), (None, None));
        }
        let requests = server.requests();
        let last_two: Vec<(usize, bool)> = requests[requests.len() - 2..]
            .iter()
            .map(|(connection, request)| (*connection, request.get("previous_response_id").is_some()))
            .collect();
        assert_eq!(last_two, [(1, false), (1, true)]);
        assert_eq!((server.upgrades().len(), server.posts().len()), (2, 0));
    }
}

#[tokio::test]
async fn new_connections_that_are_too_old_at_once_lead_to_http() {
    let limit = || answers([vec![error(400, "websocket_connection_limit_reached")]]);
    let server = WebSocketServer::start([limit(), limit(), limit()], [sse(&saying("r1", "Hello"))]).await;
    let message = ask(&provider(WebSocketUse::Kept), request(server.url(), &[user("hi")])).await;
    said(&message, "Hello");
    assert_eq!((server.upgrades().len(), server.posts().len()), (3, 1));
}

#[tokio::test]
async fn kept_connection_serves_one_session_and_one_account() {
    let others: [fn(&mut Request); 2] = [
        |request| request.options.session_id = Some("session-2".to_owned()),
        |request| request.credential = Credential::ApiKey("other".to_owned()),
    ];
    for other in others {
        let connections = [answers([saying("r1", "Hello")]), answers([saying("r2", "Again")])];
        let server = WebSocketServer::start(connections, []).await;
        let provider = provider(WebSocketUse::Kept);
        said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Hello");
        let mut second = Arc::unwrap_or_clone(request(server.url(), &[user("hi")]));
        other(&mut second);
        said(&ask(&provider, Arc::new(second)).await, "Again");
        let connections: Vec<usize> =
            server.requests().into_iter().map(|(connection, _)| connection).collect();
        assert_eq!(connections, [0, 1]);
    }
}

#[tokio::test]
async fn end_of_the_session_closes_its_connection() {
    let server = WebSocketServer::start([answers([saying("r1", "Hello")])], []).await;
    let provider = provider(WebSocketUse::Kept);
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Hello");
    provider.end_session("another");
    provider.end_session(SESSION);
    server.client_closed().await;
}

/// Records which sessions have ended.
#[derive(Default)]
struct Ends {
    answers: FakeProvider,
    ended: Mutex<Vec<String>>,
}

impl Provider for Ends {
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        self.answers.stream(request, cancel)
    }

    fn end_session(&self, session_id: &str) {
        self.ended.lock().unwrap().push(session_id.to_owned());
    }
}

#[tokio::test]
async fn session_tells_the_provider_that_it_has_ended() {
    let ends = Arc::new(Ends::default());
    let bench = SessionBench::new([]).answered_by(ends.clone());
    let session = bench.start().await;
    let id = session.handle.state().id.clone();
    assert_eq!(*ends.ended.lock().unwrap(), [""; 0]);
    session.request(SessionCommand::Shutdown).await.unwrap();
    session.gone().await;
    assert_eq!(*ends.ended.lock().unwrap(), [id]);
}

#[tokio::test]
async fn kept_connection_is_closed_before_the_service_closes_it() {
    let server = WebSocketServer::start([answers([saying("r1", "Hello")])], []).await;
    let provider = provider(WebSocketUse::Kept);
    let begun = tokio::time::Instant::now();
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Hello");
    tokio::time::pause();
    server.client_closed().await;
    assert_eq!(begun.elapsed().as_secs(), 45 * 60);
}

#[tokio::test]
async fn connection_is_new_after_the_machine_slept() {
    let connections = [answers([saying("r1", "Hello")]), answers([saying("r2", "Again")])];
    let server = WebSocketServer::start(connections, []).await;
    let clock = Clock::manual(1);
    let provider = HttpProvider::new(Transport::new(), clock.clone(), options(WebSocketUse::Kept));
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Hello");
    clock.advance(Duration::from_secs(600));
    said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Again");
    assert_eq!(server.upgrades().len(), 2);
}

#[tokio::test]
async fn two_requests_of_a_session_at_a_time_have_two_connections() {
    let gate = TestBarrier::new();
    let mut first = replying(Vec::new());
    first.push(Step::Gate(gate.clone()));
    first.extend(saying("r1", "Hello").into_iter().map(Step::Send));
    let server = WebSocketServer::start([Script::Steps(first), answers([saying("r2", "Again")])], []).await;
    let provider = provider(WebSocketUse::Kept);
    let slow = ask(&provider, request(server.url(), &[user("hi")]));
    let (slow, ()) = tokio::join!(slow, async {
        gate.reached().await;
        said(&ask(&provider, request(server.url(), &[user("hi")])).await, "Again");
        gate.open();
    });
    said(&slow, "Hello");
    // Only one of them is kept.
    server.client_closed().await;
}

#[tokio::test]
async fn conversation_that_is_written_while_it_is_sent_goes_over_http() {
    let server = SseServer::start([sse(&saying("r1", "Hello"))]).await;
    let long = "x".repeat(5 << 20);
    let message = ask(&provider(WebSocketUse::Kept), request(server.url(), &[user(&long)])).await;
    said(&message, "Hello");
    assert_eq!(server.requests()[0].method, "POST");
}
