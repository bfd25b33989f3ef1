//! What `models.json` says about servers reaches them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;

use pi::ai::{
    Credential, Message, Model, Request, RequestPreview, StreamEvent, StreamOptions, ThinkingLevel,
    decode_recorded, preview_request,
};
use serde_json::{Value, json};

fn request(model: &Value, compat: &Value) -> Request {
    let mut all = json!({"id": "m", "provider": "x", "baseUrl": "http://x"});
    all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    all["compat"] = compat.clone();
    let user = json!({"role": "user", "content": "hi"});
    Request {
        model: Arc::new(serde_json::from_value::<Model>(all).unwrap()),
        credential: Credential::None,
        messages: vec![Arc::new(serde_json::from_value::<Message>(user).unwrap())],
        options: StreamOptions { session_id: Some("s1".to_owned()), ..StreamOptions::default() },
    }
}

fn preview(model: &Value, compat: &Value, level: ThinkingLevel) -> RequestPreview {
    let mut request = request(model, compat);
    request.options.thinking = level;
    preview_request(&request).unwrap()
}

fn header<'a>(sent: &'a RequestPreview, name: &str) -> Option<&'a str> {
    sent.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

const FALLBACKS: &str = r#"[{"provider": "anthropic", "model": "claude-b", "cost": {"input": 5, "output": 25}},
    {"model": "claude-c"}, {"model": ""}, "claude-d"]"#;

#[test]
fn anthropic_is_told_who_may_answer_instead() {
    let fallbacks: Value = serde_json::from_str(FALLBACKS).unwrap();
    let compat = json!({"allowedFallbackModels": fallbacks});
    let sent = preview(&json!({"api": "anthropic-messages"}), &compat, ThinkingLevel::Off);
    assert_eq!(sent.body["fallbacks"], json!([{"model": "claude-b"}, {"model": "claude-c"}]));
    assert_eq!(header(&sent, "anthropic-beta"), Some("server-side-fallback-2026-07-01"));
    for (api, compat) in
        [("anthropic-messages", json!({})), ("anthropic-messages", json!({"allowedFallbackModels": []}))]
    {
        let sent = preview(&json!({"api": api}), &compat, ThinkingLevel::Off);
        assert_eq!((sent.body.get("fallbacks"), header(&sent, "anthropic-beta")), (None, None));
    }
}

#[test]
fn an_answer_costs_what_the_model_that_gave_it_costs() {
    let fallbacks: Value = serde_json::from_str(FALLBACKS).unwrap();
    let check = |answering: &str, input: f64| {
        let model =
            json!({"id": "claude-a", "api": "anthropic-messages", "cost": {"input": 10, "output": 50}});
        let request = request(&model, &json!({"allowedFallbackModels": fallbacks}));
        let events = [
            json!({"type": "message_start", "message": {"id": "r", "model": answering, "usage": {"input_tokens": 1_000_000}}}),
            json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": answering}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "hi"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 0}}),
            json!({"type": "message_stop"}),
        ];
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let events = decode_recorded(&request, [stream.as_bytes()]);
        let Some(StreamEvent::Done(message)) = events.into_iter().last() else { panic!("no end") };
        assert_eq!(message.texts().collect::<Vec<_>>(), ["hi"]);
        assert_eq!(message.response_model.as_deref(), (answering != "claude-a").then_some(answering));
        assert_eq!(message.usage.cost.input, input, "{answering}");
    };
    check("claude-a", 10.0);
    check("claude-b", 5.0);
    check("claude-b-20260801", 5.0);
    check("claude-b-next", 10.0);
    check("claude-c", 10.0);
    check("claude-z", 10.0);
}
