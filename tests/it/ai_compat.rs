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

/// The fields of a Chat Completions body that `compat` is about.
#[track_caller]
fn check_chat(model: Value, compat: Value, level: ThinkingLevel, expected: Value) {
    let mut all = json!({"api": "openai-completions", "reasoning": true});
    all.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
    let mut body = preview(&all, &compat, level).body;
    let fields = body.as_object_mut().unwrap();
    for common in
        ["model", "messages", "stream", "stream_options", "max_tokens", "store", "max_completion_tokens"]
    {
        fields.remove(common);
    }
    assert_eq!(body, expected, "{compat}");
}

#[test]
fn templates_are_told_what_is_thought() {
    use ThinkingLevel::{High, Off};
    let all = json!({"on": {"$var": "thinking.enabled"}, "how": {"$var": "thinking.effort"},
        "most": {"$var": "thinking.budget"}, "else": {"$var": "weather"}, "keep": {"a": 1}});
    let on = json!({"on": true, "how": "high", "most": 16_384, "keep": {"a": 1}, "enable_thinking": true});
    let off = json!({"on": false, "keep": {"a": 1}, "enable_thinking": false});
    let kwargs = json!({"thinkingFormat": "chat-template", "chatTemplateKwargs": all});
    check_chat(json!({}), kwargs.clone(), High, json!({"chat_template_kwargs": on}));
    check_chat(json!({}), kwargs, Off, json!({"chat_template_kwargs": off}));
    let args = json!({"thinkingFormat": "baseten", "chatTemplateArgs": all, "chatTemplateKwargs": {"x": 1}});
    check_chat(json!({}), args.clone(), High, json!({"chat_template_args": on}));
    check_chat(json!({}), args, Off, json!({"chat_template_args": off}));
    let qwen = json!({"thinkingFormat": "qwen-chat-template"});
    check_chat(
        json!({}),
        qwen.clone(),
        High,
        json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
    );
    check_chat(
        json!({}),
        qwen,
        Off,
        json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
    );
}

#[test]
fn thinking_is_asked_for_in_the_format_that_is_named() {
    use ThinkingLevel::{High, Low, Off};
    let ling = json!({"thinkingFormat": "ant-ling"});
    let map = json!({"thinkingLevelMap": {"high": "max", "low": null}});
    check_chat(map.clone(), ling.clone(), High, json!({"reasoning": {"effort": "max"}}));
    check_chat(json!({}), ling.clone(), Low, json!({}));
    check_chat(map, ling, Off, json!({}));
    let words = json!({"thinkingFormat": "string-thinking"});
    check_chat(json!({}), words.clone(), High, json!({"thinking": "high"}));
    check_chat(json!({}), words.clone(), Off, json!({"thinking": "none"}));
    check_chat(json!({"thinkingLevelMap": {"off": "never"}}), words, Off, json!({"thinking": "never"}));
    let budget = |more: Value| {
        let mut compat = json!({"thinkingFormat": "qwen"});
        compat.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        compat
    };
    let thinks = |field: &str| json!({"enable_thinking": true, field: 16_384});
    check_chat(
        json!({}),
        budget(json!({"supportsThinkingTokenBudget": true})),
        High,
        thinks("thinking_token_budget"),
    );
    check_chat(
        json!({}),
        budget(json!({"supportsThinkingTokenBudget": true, "thinkingTokenBudgetField": "b"})),
        High,
        thinks("b"),
    );
    check_chat(
        json!({}),
        budget(json!({"supportsThinkingTokenBudget": false})),
        High,
        json!({"enable_thinking": true}),
    );
    check_chat(
        json!({}),
        budget(json!({"supportsThinkingTokenBudget": true})),
        Off,
        json!({"enable_thinking": false}),
    );
}

#[test]
fn options_of_one_server_are_fields_of_the_request() {
    let plain = |compat: Value, expected: Value| {
        check_chat(json!({"reasoning": false}), compat, ThinkingLevel::Off, expected);
    };
    plain(json!({"vllmPriority": -3}), json!({"priority": -3}));
    plain(json!({"promptCacheKeyMode": "enabled"}), json!({"prompt_cache_key": "s1"}));
    plain(json!({"promptCacheKeyMode": "auto"}), json!({}));
    check_chat(
        json!({"provider": "openai", "reasoning": false}),
        json!({"promptCacheKeyMode": "auto"}),
        ThinkingLevel::Off,
        json!({"prompt_cache_key": "s1"}),
    );
    check_chat(
        json!({"provider": "openai", "reasoning": false}),
        json!({"promptCacheKeyMode": "disabled"}),
        ThinkingLevel::Off,
        json!({}),
    );
    let tool = json!({"role": "system", "toolsAdded": [{"name": "t"}]});
    let mut request = request(&json!({"api": "openai-completions"}), &json!({"zaiToolStream": true}));
    request.messages.insert(0, Arc::new(serde_json::from_value(tool).unwrap()));
    assert_eq!(preview_request(&request).unwrap().body["tool_stream"], true);
}

#[test]
fn a_responses_server_may_take_neither_key_nor_bound() {
    let check = |compat: Value, key: bool, bound: bool| {
        let sent = preview(&json!({"api": "openai-responses"}), &compat, ThinkingLevel::Off).body;
        let has = |name: &str| sent.get(name).is_some();
        assert_eq!((has("prompt_cache_key"), has("max_output_tokens")), (key, bound), "{compat}");
    };
    check(json!({}), true, true);
    check(json!({"promptCacheKeyMode": "auto", "supportsMaxOutputTokens": true}), true, true);
    check(json!({"promptCacheKeyMode": "disabled"}), false, true);
    check(json!({"supportsMaxOutputTokens": false}), true, false);
}

#[test]
fn a_prompt_is_kept_for_long_in_the_words_of_the_server() {
    let check = |provider: &str, id: &str, compat: Value, retention: Option<&str>, ttl: Option<&str>| {
        let model = json!({"api": "openai-completions", "provider": provider, "id": id, "baseUrl": ""});
        let mut request = request(&model, &compat);
        request.options.long_cache = true;
        let sent = preview_request(&request).unwrap().body;
        let said = &sent["messages"][0]["content"][0]["cache_control"]["ttl"];
        assert_eq!(
            (sent["prompt_cache_retention"].as_str(), said.as_str()),
            (retention, ttl),
            "{provider} {compat}"
        );
    };
    check("x", "m", json!({}), None, None);
    check("x", "m", json!({"supportsLongCacheRetention": true}), Some("24h"), None);
    check("openai", "m", json!({}), Some("24h"), None);
    check("openai", "m", json!({"supportsLongCacheRetention": false}), None, None);
    check("openrouter", "anthropic/m", json!({}), None, Some("1h"));
    check("openrouter", "anthropic/m", json!({"supportsLongCacheRetention": false}), None, None);
    check(
        "x",
        "m",
        json!({"cacheControlFormat": "anthropic", "supportsLongCacheRetention": true}),
        None,
        Some("1h"),
    );
}

#[test]
fn the_headers_of_a_session_are_those_its_server_reads() {
    const ALL: &[&str] = &[
        "session_id",
        "session-id",
        "x-affinity",
        "x-client-request-id",
        "x-session-affinity",
        "x-session-id",
    ];
    let check = |api: &str, provider: &str, compat: Value, expected: &[&str]| {
        let model = json!({"api": api, "provider": provider, "baseUrl": ""});
        let model = if provider == "x" { json!({"api": api}) } else { model };
        let sent = preview(&model, &compat, ThinkingLevel::Off);
        let found: Vec<&str> = ALL.iter().copied().filter(|name| header(&sent, name).is_some()).collect();
        assert_eq!(found, expected, "{api} {provider} {compat}");
        assert!(found.iter().all(|name| header(&sent, name) == Some("s1")));
    };
    let on = |format: &str| json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": format});
    let off = json!({"sendSessionAffinityHeaders": false});

    let chat = "openai-completions";
    check(chat, "x", json!({}), &[]);
    check(
        chat,
        "x",
        json!({"sendSessionAffinityHeaders": true}),
        &["session_id", "x-client-request-id", "x-session-affinity"],
    );
    check(chat, "x", on("openai"), &["session_id", "x-client-request-id", "x-session-affinity"]);
    check(chat, "x", on("openai-nosession"), &["x-client-request-id", "x-session-affinity"]);
    check(chat, "x", on("openrouter"), &["x-session-id"]);
    check(chat, "openrouter", json!({}), &["x-session-id"]);
    check(chat, "openrouter", on("openai-nosession"), &["x-client-request-id", "x-session-affinity"]);
    check(chat, "openrouter", off.clone(), &[]);
    check("mistral-conversations", "mistral", json!({}), &["x-affinity"]);

    let responses = "openai-responses";
    check(responses, "x", json!({}), &[]);
    check(responses, "openai", json!({}), &["session-id", "x-client-request-id"]);
    check(responses, "openai", off.clone(), &[]);
    check(responses, "x", on("openai"), &["session-id", "x-client-request-id"]);
    check(responses, "x", on("openai-nosession"), &["x-client-request-id"]);
    check(responses, "x", on("openrouter"), &["x-session-id"]);
    check(responses, "openrouter", json!({}), &["x-session-id"]);

    let anthropic = "anthropic-messages";
    check(anthropic, "x", json!({}), &[]);
    check(anthropic, "anthropic", json!({}), &[]);
    check(anthropic, "x", json!({"sendSessionAffinityHeaders": true}), &["x-session-affinity"]);
    check(anthropic, "x", on("openrouter"), &["x-session-id"]);
    check(anthropic, "openrouter", json!({}), &["x-session-id"]);
    check(anthropic, "openrouter", off, &[]);
}
