//! What recordings of Bedrock lack: odd and damaged streams, the parts of
//! requests that depend on the model, and signatures.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pi::ai::{
    AssistantMessage, AwsKeys, Credential, FailureClass, HttpOptions, HttpProvider, Provider as _, Request,
    SignIn, StopReason, StreamEvent, StreamOptions, StreamOrder, TestBarrier, ThinkingLevel, ToolChoice,
    Transport, classify, decode_recorded, is_overflow, preview_request,
};
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::bedrock::{event, exception, framed, message};
use crate::support::sse_server::{Reply, SseServer};

const TYPE: &str = "application/vnd.amazon.eventstream";

fn request(model: Value, messages: Value) -> Request {
    let mut all = json!({"id": "anthropic.claude-sonnet-4-6", "api": "bedrock-converse-stream", "provider": "amazon-bedrock"});
    all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    let messages: Vec<pi::ai::Message> = serde_json::from_value(messages).unwrap();
    Request {
        model: Arc::new(serde_json::from_value(all).unwrap()),
        credential: Credential::None,
        messages: messages.into_iter().map(Arc::new).collect(),
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}

fn body(request: &Request) -> Value {
    preview_request(request).unwrap().body
}

fn keys() -> AwsKeys {
    AwsKeys {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: None,
        region: "us-east-1".to_owned(),
    }
}

/// The content of a stream, the same in one piece and byte by byte.
fn read(stream: &[u8]) -> AssistantMessage {
    let request = request(json!({}), json!([]));
    let decode = |chunks: Vec<&[u8]>| {
        let events = decode_recorded(&request, chunks);
        let mut order = StreamOrder::default();
        events.iter().for_each(|event| order.accept(event).unwrap());
        match events.last() {
            Some(StreamEvent::Done(message)) => (**message).clone(),
            other => panic!("the last event is {other:?}"),
        }
    };
    let whole = decode(vec![stream]);
    assert_eq!(decode(stream.chunks(1).collect()), whole, "byte by byte");
    whole
}

#[track_caller]
fn check(lines: &[&str], expected: Value) {
    let message = read(&framed(&lines.join("\n")));
    let actual =
        json!({"content": message.content, "stop": message.stop_reason, "error": message.error_message});
    assert_eq!(actual, expected);
}

const STOP: &str = r#"{"messageStop":{"stopReason":"end_turn"}}"#;
const CALL: &str =
    r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}}"#;
const INPUT: &str =
    r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}"}}}}"#;
const CALLED: &str = r#"{"messageStop":{"stopReason":"tool_use"}}"#;

#[test]
fn redacted_thinking_is_kept_whole() {
    // "ab" and "cd", encoded one by one.
    check(
        &[
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"YWI="}}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"Y2Q="}}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"x"}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
            STOP,
        ],
        json!({"content": [{"type": "thinking", "thinking": "", "thinkingSignature": "YWJjZA==", "redacted": true},
            {"type": "text", "text": "x"}], "stop": "stop", "error": null}),
    );
}

#[test]
fn blocks_end_where_another_kind_begins() {
    check(
        &[
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"S"}}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":""}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":""}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
            STOP,
        ],
        json!({"content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "S"},
            {"type": "text", "text": "a"}], "stop": "stop", "error": null}),
    );
}

#[test]
fn call_without_its_stop_runs_only_if_the_message_ended_and_its_json_is_complete() {
    const CUT: &str =
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":"}}}}"#;
    const TEXT: &str = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"x"}}}"#;
    const LIMIT: &str = r#"{"messageStop":{"stopReason":"max_tokens"}}"#;
    let check = |lines: &[&str], runs: bool| {
        let message = read(&framed(&lines.join("\n")));
        let whole: Vec<bool> = message.tool_calls().map(|call| call.arguments_error.is_none()).collect();
        assert_eq!(whole, [runs], "{lines:?}");
    };
    check(&[CALL, INPUT, CALLED], true);
    check(&[CALL, INPUT, TEXT, CALLED], true);
    check(&[CALL, INPUT], false);
    check(&[CALL, CUT, CALLED], false);
    check(&[CALL, INPUT, LIMIT], false);
}

#[test]
fn unknown_events_are_skipped() {
    check(
        &[
            r#"{"initial-response":{}}"#,
            r#"{"messageStart":{"role":"assistant","p":"abc"}}"#,
            r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"citation":{"title":"t"}}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":9}}"#,
            r#"{"moonEvent":{"phase":[]}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"a"}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
            STOP,
            r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"too late"}}}"#,
        ],
        json!({"content": [{"type": "text", "text": "a"}], "stop": "stop", "error": null}),
    );
}

#[test]
fn reasons_to_stop_are_those_of_the_table() {
    let check = |reason: &str, expected: StopReason, class: Option<FailureClass>| {
        let message = read(&event("messageStop", &json!({"stopReason": reason})));
        assert_eq!(message.stop_reason, expected, "{reason}");
        assert_eq!(message.raw_stop_reason.as_deref(), Some(reason));
        let text = message.error_message;
        assert_eq!(text.is_some(), class.is_some());
        assert_eq!(text.map(|text| classify(&text, None)), class, "{reason}");
    };
    check("end_turn", StopReason::Stop, None);
    check("stop_sequence", StopReason::Stop, None);
    check("max_tokens", StopReason::Length, None);
    check("model_context_window_exceeded", StopReason::Length, None);
    check("tool_use", StopReason::Error, Some(FailureClass::ToolUseFailed));
    check("guardrail_intervened", StopReason::Error, Some(FailureClass::Refused));
    check("content_filtered", StopReason::Error, Some(FailureClass::Refused));
    check("malformed_tool_use", StopReason::Error, Some(FailureClass::ToolUseFailed));
    check("moonquake", StopReason::Error, Some(FailureClass::Unknown));
}

#[test]
fn exceptions_say_what_they_mean() {
    let check = |kind: &str, text: &str, class: FailureClass| {
        let start = event("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": "a"}}));
        // Some gateways send them as events.
        for failure in [exception(kind, text), event(kind, &json!({"message": text}))] {
            let message = read(&[start.clone(), failure].concat());
            let error = message.error_message.clone().unwrap();
            assert_eq!((error.clone(), message.content.len()), (format!("{kind}: {text}"), 1));
            assert_eq!(classify(&error, None), class, "{error}");
            assert_eq!(is_overflow(&message, 200_000), class == FailureClass::Overflow);
        }
    };
    check(
        "throttlingException",
        "Too many tokens, please wait before trying again.",
        FailureClass::RateLimit,
    );
    check("serviceUnavailableException", "Bedrock is unable to process.", FailureClass::Overloaded);
    check("internalServerException", "Unexpected.", FailureClass::Server);
    check("modelStreamErrorException", "An error while streaming.", FailureClass::Server);
    check(
        "modelStreamErrorException",
        "Model produced invalid sequence as part of ToolUse.",
        FailureClass::ToolUseFailed,
    );
    check("modelTimeoutException", "The model took long.", FailureClass::Network);
    check("validationException", "The value is not valid.", FailureClass::InvalidRequest);
    check("validationException", "Input is too long for requested model.", FailureClass::Overflow);
}

#[test]
fn exceptions_may_be_short_of_words() {
    let check = |headers: &[(&str, &str)], payload: &str, expected: &str| {
        let error = read(&message(headers, payload.as_bytes())).error_message;
        assert_eq!(error.as_deref(), Some(expected));
    };
    let thrown = [(":message-type", "exception"), (":exception-type", "throttlingException")];
    check(&thrown, "", "throttlingException: the service does not say why");
    check(&thrown, "busy", "throttlingException: busy");
    check(&thrown, r#"{"Message":"busy"}"#, "throttlingException: busy");
    let failed = [(":message-type", "error"), (":error-code", "Internal"), (":error-message", "broke")];
    check(&failed, "", "Internal: broke");
}

#[test]
fn tokens_are_counted_as_the_service_does() {
    let counts = json!({"usage": {"inputTokens": 4, "outputTokens": 3, "cacheReadInputTokens": 1_000,
        "cacheWriteInputTokens": 300, "cacheDetails": [{"ttl": "1h", "inputTokens": 200}, {"ttl": "5m", "inputTokens": 100}],
        "totalTokens": 1_307}});
    let stop = event("messageStop", &json!({"stopReason": "end_turn"}));
    for stream in [[event("metadata", &counts), stop.clone()], [stop, event("metadata", &counts)]] {
        let usage = read(&stream.concat()).usage;
        assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (4, 3, 1_000, 300));
        assert_eq!((usage.cache_write_1h, usage.total_tokens), (Some(200), 1_307));
    }
}

#[test]
fn damaged_streams_are_failures_that_may_be_repeated() {
    let whole = framed(&[CALL, INPUT, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#, CALLED].join("\n"));
    assert_eq!(read(&whole).stop_reason, StopReason::ToolUse);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        let message = read(&damaged);
        let error = message.error_message.unwrap_or_default();
        assert!(classify(&error, None).is_retryable(), "byte {at}: {error}");
    }
    let error = read(&whole[..11]).error_message.unwrap();
    assert!(classify(&error, None).is_retryable(), "{error}");
}

#[tokio::test]
async fn answers_that_are_no_event_stream_are_named() {
    let rows = [
        (Reply::stream("text/html").piece("<html><title>Log in</title>"), "HTML page (Log in)"),
        (
            Reply::stream("application/json").piece(r#"{"Message":"no","code":"invalid_api_key"}"#),
            "invalid_api_key: no",
        ),
        (Reply::stream(TYPE).piece("{}"), "JSON instead of an event stream: {}"),
        (Reply::stream(TYPE), "sent an empty answer"),
        (Reply::stream(TYPE).piece([0, 0, 0, 99, 0, 0]), "stream ended before any event"),
    ];
    for (reply, expected) in rows {
        let server = SseServer::start([reply]).await;
        let request = request(json!({"baseUrl": server.url()}), json!([{"role": "user", "content": "hi"}]));
        let provider = HttpProvider::new(Transport::new(), Clock::manual(0), HttpOptions::default());
        let error = answer(&provider, request).await.error_message.unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

async fn answer(provider: &HttpProvider, request: Request) -> AssistantMessage {
    let mut events: Vec<StreamEvent> =
        provider.stream(Arc::new(request), CancellationToken::new()).collect().await;
    match events.pop() {
        Some(StreamEvent::Done(message)) => *message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_attempt_is_signed_at_its_time() {
    let gate = TestBarrier::new();
    let busy =
        Reply::raw("").gate(&gate).piece("HTTP/1.1 503 X\r\nretry-after-ms: 1\r\ncontent-length: 0\r\n\r\n");
    let said =
        framed(&[r#"{"contentBlockDelta":{"delta":{"text":"hi"}}}"#, STOP, r#"{"metadata":{}}"#].join("\n"));
    let server = SseServer::start([busy, Reply::stream(TYPE).piece(said)]).await;
    let mut request = request(json!({"baseUrl": server.url()}), json!([{"role": "user", "content": "hi"}]));
    let session_token = Some("session".to_owned());
    request.credential = Credential::Aws(Box::new(AwsKeys { session_token, ..keys() }));
    let clock = Clock::manual(1_440_938_160_000);
    let options = HttpOptions { max_retries: 1, ..HttpOptions::default() };
    let provider = HttpProvider::new(Transport::new(), clock.clone(), options);
    let asked = async {
        gate.reached().await;
        clock.advance(Duration::from_secs(60));
        gate.open();
    };
    let (message, ()) = tokio::join!(answer(&provider, request), asked);
    assert_eq!(message.texts().collect::<Vec<_>>(), ["hi"]);
    let requests = server.requests();
    let times: Vec<_> = requests.iter().map(|request| request.header("x-amz-date").unwrap()).collect();
    assert_eq!(times, ["20150830T123600Z", "20150830T123700Z"]);
    let signatures: Vec<_> =
        requests.iter().map(|request| request.header("authorization").unwrap()).collect();
    let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, \
        SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(signatures.iter().all(|signature| signature.starts_with(scope)), "{signatures:?}");
    assert_ne!(signatures[0], signatures[1]);
    assert_eq!(requests[1].header("x-amz-security-token"), Some("session"));
}

#[test]
fn keys_are_never_shown() {
    let mut request = request(json!({}), json!([{"role": "user", "content": "hi"}]));
    let session_token = Some("canary".to_owned());
    request.credential = Credential::Aws(Box::new(AwsKeys {
        access_key_id: "canary".to_owned(),
        secret_access_key: "canary".to_owned(),
        session_token,
        region: "us-east-1".to_owned(),
    }));
    let shown = format!("{:?} {:?}", request.credential, preview_request(&request).unwrap());
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("x-amz-date"), "{shown}");
}

#[test]
fn urls_name_region_and_model() {
    let check = |id: &str, base: &str, credential: Credential, expected: &str| {
        let mut request =
            request(json!({"id": id, "baseUrl": base}), json!([{"role": "user", "content": "hi"}]));
        request.credential = credential;
        assert_eq!(preview_request(&request).unwrap().url, expected);
    };
    let template = "https://bedrock-runtime.{region}.amazonaws.com";
    let in_region = |region: &str| Credential::Aws(Box::new(AwsKeys { region: region.to_owned(), ..keys() }));
    let path = "model/us.amazon.nova-pro-v1%3A0/converse-stream";
    let nova = "us.amazon.nova-pro-v1:0";
    check(
        nova,
        template,
        Credential::None,
        &format!("https://bedrock-runtime.us-east-1.amazonaws.com/{path}"),
    );
    check(
        nova,
        template,
        in_region("eu-west-3"),
        &format!("https://bedrock-runtime.eu-west-3.amazonaws.com/{path}"),
    );
    let written = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    check(nova, written, Credential::ApiKey("k".to_owned()), &format!("{written}/{path}"));
    check(
        nova,
        written,
        in_region("eu-west-3"),
        &format!("https://bedrock-runtime.eu-west-3.amazonaws.com/{path}"),
    );
    check(nova, "http://localhost:1/x/", in_region("eu-west-3"), &format!("http://localhost:1/x/{path}"));
    check(
        nova,
        "",
        in_region("evil.com/"),
        &format!("https://bedrock-runtime.us-east-1.amazonaws.com/{path}"),
    );
    let base_url = Some("https://bedrock-runtime.ap-south-1.amazonaws.com".to_owned());
    let account = SignIn { token: "t".to_owned(), base_url, account_id: None };
    let filled = format!("https://bedrock-runtime.ap-south-1.amazonaws.com/{path}");
    check(nova, template, Credential::SignedIn(Box::new(account)), &filled);
    check(
        "arn:aws:bedrock:us-west-2:1:inference-profile/us.x",
        template,
        in_region("eu-west-3"),
        "https://bedrock-runtime.us-west-2.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-west-2%3A1%3Ainference-profile%2Fus.x/converse-stream",
    );
}

/// The fields of a request to a thinking model other than the conversation.
#[track_caller]
fn check_thinking(model: Value, level: ThinkingLevel, expected: Value) {
    let mut all = json!({"reasoning": true, "maxTokens": 20_000});
    all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    let mut request = request(
        all,
        json!([{"role": "system", "toolsAdded": [{"name": "f"}]}, {"role": "user", "content": "hi"}]),
    );
    request.options.thinking = level;
    request.options.temperature = Some(0.5);
    let body = body(&request);
    let pick = |key: &str| body.get(key).cloned().unwrap_or_default();
    assert_eq!(json!([pick("additionalModelRequestFields"), pick("inferenceConfig")]), expected);
}

#[test]
fn each_family_is_told_to_think_in_its_own_way() {
    use ThinkingLevel::{High, Low, Max, Minimal, Off};
    let plain = json!({"maxTokens": 20_000, "temperature": 0.5});
    let fixed = json!({"maxTokens": 20_000});
    let model = |id: &str| json!({"id": id});
    let summarized = json!({"type": "adaptive", "display": "summarized"});
    check_thinking(
        model("us.anthropic.claude-sonnet-4-6"),
        Minimal,
        json!([{"thinking": summarized, "output_config": {"effort": "low"}}, fixed]),
    );
    check_thinking(model("us.anthropic.claude-sonnet-4-6"), Off, json!([null, plain]));
    check_thinking(model("us.anthropic.claude-opus-5"), Off, json!([null, fixed]));
    check_thinking(
        json!({"id": "us-gov.anthropic.claude-opus-5", "thinkingLevelMap": {"max": "max"}}),
        Max,
        json!([{"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, fixed]),
    );
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    check_thinking(
        model("anthropic.claude-haiku-4-5-20251001-v1:0"),
        High,
        json!([{"thinking": budget(16_384), "anthropic_beta": ["interleaved-thinking-2025-05-14"]}, fixed]),
    );
    check_thinking(
        model("anthropic.claude-3-7-sonnet-20250219-v1:0"),
        Low,
        json!([{"thinking": budget(2_048)}, fixed]),
    );
    check_thinking(
        json!({"id": "anthropic.claude-3-7-sonnet-20250219-v1:0", "maxTokens": 1_500}),
        Low,
        json!([null, {"maxTokens": 1_500, "temperature": 0.5}]),
    );
    check_thinking(
        json!({"id": "anthropic.claude-opus-4-5", "compat": {"forceAdaptiveThinking": true}}),
        High,
        json!([{"thinking": summarized, "output_config": {"effort": "high"}}, fixed]),
    );
    check_thinking(model("openai.gpt-6-sol"), Minimal, json!([{"reasoning": {"effort": "low"}}, fixed]));
    check_thinking(
        json!({"id": "openai.gpt-6-sol", "thinkingLevelMap": {"off": "none"}}),
        Off,
        json!([{"reasoning": {"effort": "none"}}, fixed]),
    );
    check_thinking(model("openai.gpt-oss-120b-1:0"), High, json!([{"reasoning_effort": "high"}, plain]));
    check_thinking(model("deepseek.v3.2"), High, json!([{"reasoning_config": "high"}, plain]));
    let nova = |effort: &str| json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}});
    check_thinking(model("us.amazon.nova-2-lite-v1:0"), Low, json!([nova("low"), plain]));
    check_thinking(model("us.amazon.nova-2-lite-v1:0"), High, json!([nova("high"), {}]));
    check_thinking(model("xai.grok-4.6"), High, json!([null, plain]));
    check_thinking(json!({"id": "openai.gpt-6-sol", "reasoning": false}), High, json!([null, plain]));
}

#[test]
fn budgets_of_the_user_count() {
    let mut request = request(
        json!({"id": "anthropic.claude-haiku-4-5", "reasoning": true, "maxTokens": 64_000}),
        json!([{"role": "user", "content": "hi"}]),
    );
    request.options.thinking = ThinkingLevel::High;
    request.options.thinking_budgets.insert(ThinkingLevel::High, 30_000);
    let fields = &body(&request)["additionalModelRequestFields"];
    assert_eq!(fields, &json!({"thinking": {"type": "enabled", "budget_tokens": 30_000}}));
}

#[test]
fn caches_are_marked_where_the_model_has_them() {
    let check = |id: &str, expected: [bool; 3]| {
        let messages = json!([{"role": "system", "content": "S", "toolsAdded": [{"name": "f", "description": "d"}]},
            {"role": "user", "content": "one"}, {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
            {"role": "user", "content": "two"}]);
        let body = body(&request(json!({"id": id}), messages));
        let is_marked =
            |list: &Value| list.as_array().unwrap().iter().any(|item| item.get("cachePoint").is_some());
        let last = &body["messages"][2]["content"];
        assert_eq!(
            [is_marked(&body["system"]), is_marked(&body["toolConfig"]["tools"]), is_marked(last)],
            expected
        );
        assert!(!is_marked(&body["messages"][0]["content"]));
    };
    check("us.anthropic.claude-sonnet-4-6", [true, true, true]);
    check("us.amazon.nova-pro-v1:0", [true, false, true]);
    check("openai.gpt-6-sol", [false, false, false]);
}

#[test]
fn choices_of_tools_are_put_as_the_api_has_them() {
    let check = |model: Value, choice: ToolChoice, history: Value, expected: Value| {
        let mut messages = vec![
            json!({"role": "system", "toolsAdded": [{"name": "f"}]}),
            json!({"role": "user", "content": "hi"}),
        ];
        messages.extend(history.as_array().unwrap().clone());
        let mut request = request(model, json!(messages));
        request.options.thinking = ThinkingLevel::High;
        request.options.tool_choice = Some(choice);
        let config = &body(&request)["toolConfig"];
        assert_eq!(json!([config.is_null(), config["toolChoice"]]), expected);
    };
    let named = || ToolChoice::Tool("f".to_owned());
    let called = json!([{"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "f", "arguments": {}}]}]);
    check(json!({}), ToolChoice::Auto, json!([]), json!([false, {"auto": {}}]));
    check(json!({}), ToolChoice::Any, json!([]), json!([false, {"any": {}}]));
    check(json!({}), named(), json!([]), json!([false, {"tool": {"name": "f"}}]));
    check(json!({"reasoning": true}), named(), json!([]), json!([false, {"auto": {}}]));
    let newest = json!({"id": "us.anthropic.claude-opus-5-5"});
    check(newest, ToolChoice::Any, json!([]), json!([false, {"auto": {}}]));
    check(json!({}), ToolChoice::None, json!([]), json!([true, null]));
    check(json!({}), ToolChoice::None, called, json!([false, null]));
}

#[test]
fn ids_fit_even_where_the_service_made_others() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {}});
    let model = "moonshot.kimi-k2-thinking";
    let answer = json!({"role": "assistant", "provider": "amazon-bedrock", "api": "bedrock-converse-stream", "model": model,
        "content": [call("functions.f:0"), call("functions_f_0")]});
    let body = body(&request(json!({"id": model}), json!([{"role": "user", "content": "hi"}, answer])));
    let ids: Vec<_> = body["messages"][1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["toolUse"]["toolUseId"].as_str().unwrap())
        .collect();
    assert_eq!(ids[0], "functions_f_0");
    assert!(ids[1].starts_with("functions_f_0_") && ids[1].len() <= 64, "{ids:?}");
}

#[test]
fn thinking_goes_back_as_the_model_wants_it() {
    let check = |id: &str, expected: Value| {
        let thinking = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "thinkingSignature": signature});
        let redacted = |data: &str| json!({"type": "thinking", "thinking": "", "thinkingSignature": data, "redacted": true});
        let answer = json!({"role": "assistant", "provider": "amazon-bedrock", "api": "bedrock-converse-stream", "model": id,
            "content": [thinking("a", "S"), thinking("", "S"), redacted("YWI="), redacted("?"),
                {"type": "thinking", "thinking": "b"}, {"type": "text", "text": "t"}]});
        let messages = json!([{"role": "user", "content": "hi"}, answer, {"role": "user", "content": "so?"}]);
        assert_eq!(body(&request(json!({"id": id}), messages))["messages"][1]["content"], expected);
    };
    let said = |text: &str| json!({"reasoningContent": {"reasoningText": {"text": text}}});
    let signed =
        |text: &str| json!({"reasoningContent": {"reasoningText": {"text": text, "signature": "S"}}});
    let redacted = json!({"reasoningContent": {"redactedContent": "YWI="}});
    let text = |text: &str| json!({"text": text});
    check("anthropic.claude-sonnet-4-6", json!([signed("a"), signed(""), redacted, text("b"), text("t")]));
    check("openai.gpt-6-sol", json!([said("a"), redacted, said("b"), text("t")]));
    check("deepseek.v3.2", json!([text("t")]));
}

#[test]
fn images_of_failed_calls_follow_the_results() {
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {}});
    let messages = json!([{"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call("a"), call("b")]},
        {"role": "toolResult", "toolCallId": "a", "isError": true, "content": [image]},
        {"role": "toolResult", "toolCallId": "b", "content": [image]},
        {"role": "user", "content": "so?"}]);
    let body = body(&request(json!({"id": "deepseek.v3.2", "input": ["text", "image"]}), messages));
    let png = json!({"image": {"format": "png", "source": {"bytes": "AAAA"}}});
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            {"toolResult": {"toolUseId": "a", "content": [{"text": "(see the image after the tool results)"}], "status": "error"}},
            {"toolResult": {"toolUseId": "b", "content": [png], "status": "success"}},
            {"text": "Images of the failed tool calls:"},
            png,
            {"text": "so?"},
        ])
    );
}

#[test]
fn a_conversation_begins_with_the_user() {
    let messages = json!([{"role": "assistant", "content": [{"type": "text", "text": "x "}]}]);
    let id = "deepseek.v3.2";
    let expected = json!([{"role": "user", "content": [{"text": "(no text)"}]}, {"role": "assistant", "content": [{"text": "x"}]}]);
    assert_eq!(body(&request(json!({"id": id}), messages))["messages"], expected);
    let blank = json!([{"role": "user", "content": " "}]);
    assert_eq!(body(&request(json!({"id": id}), blank))["messages"], json!([expected[0]]));
}
