//! Recorded error responses become messages that say what to do.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt as _;
use pi::ai::{
    AssistantMessage, Credential, FailureClass, HttpOptions, HttpProvider, Provider as _, Refused, Request,
    StreamEvent, StreamOptions, Transport, classify, is_overflow, is_retryable, rejection, retry_delay,
};
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::sse_server::{Reply, SseServer};

/// The recorded errors that refuse part of the conversation; all others refuse none.
const REFUSED: &[(&str, Refused)] = &[
    ("anthropic-400-unexpected-tool-use-id", Refused::ToolExchange),
    ("deepseek-400-no-tool-output", Refused::ToolExchange),
    ("doc-anthropic-413-too-large", Refused::RequestSize),
    ("llamacpp-500-image-without-mmproj", Refused::Image),
];

#[tokio::test]
async fn recorded_errors_are_classified() {
    let mut n_checked = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ai/errors")).unwrap()
    {
        let path = entry.unwrap().path();
        let recorded: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let message = answer(&recorded).await;
        let text = message.error_message.clone().unwrap();
        let expected = &recorded["expected"];
        let status = recorded["status"].as_u64().unwrap();
        assert!(text.starts_with(&format!("{status}: ")), "{text}");
        let class = expected["class"].as_str().unwrap();
        assert_eq!(message.failure.as_ref().map(|failure| class_name(failure.class)), Some(class), "{text}");
        assert_eq!(class_name(classify(&text, None)), class, "{text}");
        assert_eq!(is_retryable(&message), expected["retryable"].as_bool().unwrap(), "{text}");
        assert_eq!(is_overflow(&message, 200_000), expected["contextOverflow"].as_bool().unwrap(), "{text}");
        let name = path.file_stem().unwrap().to_str().unwrap();
        let refused = REFUSED.iter().find(|(refusing, _)| *refusing == name).map(|(_, refused)| *refused);
        assert_eq!(rejection(&text).map(|rejection| rejection.refused), refused, "{name}: {text}");
        n_checked += 1;
    }
    assert!(n_checked > 40);
}

#[tokio::test]
async fn the_demanded_wait_stays_in_the_text() {
    let limited = json!({"provider": "acme", "status": 429, "headers": {"retry-after": "12"}, "body": {"error": {"message": "slow"}}});
    let text = answer(&limited).await.error_message.unwrap();
    assert_eq!(text, "429: slow (retry after 12s)");
    assert_eq!(retry_delay(&text), Some(std::time::Duration::from_secs(12)));
}

#[tokio::test]
async fn a_model_without_throughput_of_its_own_comes_with_a_way_out() {
    let refused = json!({"provider": "amazon-bedrock", "status": 400, "headers": {},
        "body": {"message": "Invocation of model ID m with on-demand throughput isn\u{2019}t supported."}});
    let text = answer(&refused).await.error_message.unwrap();
    let hint = "; choose an inference profile of the model, such as us.m, eu.m or global.m";
    assert!(text.starts_with("400: Invocation of model ID m") && text.ends_with(hint), "{text}");
}

async fn answer(recorded: &Value) -> AssistantMessage {
    let body = match &recorded["bodyText"] {
        Value::String(body) => body.clone(),
        _ => recorded["body"].to_string(),
    };
    let headers: Vec<(&str, &str)> = recorded["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
    let server = SseServer::start([Reply::status(status, &headers, &body)]).await;
    let api = match recorded["provider"].as_str() {
        Some("amazon-bedrock") => "bedrock-converse-stream",
        _ => "openai-completions",
    };
    let model = json!({"id": "m", "api": api, "provider": recorded["provider"], "baseUrl": server.url()});
    let request = Request {
        model: Arc::new(serde_json::from_value(model).unwrap()),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions::default(),
    };
    let provider = HttpProvider::new(Transport::new(), Clock::manual(0), HttpOptions::default());
    let mut events: Vec<StreamEvent> =
        provider.stream(Arc::new(request), CancellationToken::new()).collect().await;
    match events.pop() {
        Some(StreamEvent::Done(message)) => *message,
        other => panic!("{other:?}"),
    }
}

fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Auth => "auth",
        FailureClass::Overflow => "overflow",
        FailureClass::NotFound => "not_found",
        FailureClass::RateLimit => "rate_limit",
        FailureClass::Overloaded => "overloaded",
        FailureClass::Quota => "quota",
        FailureClass::InvalidRequest => "invalid_request",
        FailureClass::ToolUseFailed => "tool_use_failed",
        FailureClass::Config => "config",
        FailureClass::Server => "server",
        FailureClass::Network => "network",
        FailureClass::Refused => "refused",
        FailureClass::Unknown => "unknown",
    }
}
