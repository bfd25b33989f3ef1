//! Requests have the structure that services accepted, and obey the rules of
//! their API whatever the conversation looks like.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pi::ai::{
    Credential, Message, Model, Request, RequestPreview, StreamOptions, ThinkingLevel, ToolChoice,
    preview_request,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn accepted_requests_are_reproduced_in_structure() {
    let rows = [
        ("anthropic-parallel-tool-results-cache", "anthropic-messages", "anthropic"),
        ("anthropic-thinking-tool-result", "anthropic-messages", "anthropic"),
        ("copilot-tool-results", "openai-completions", "github-copilot"),
        ("groq-tool-results", "openai-completions", "groq"),
        ("llamacpp-reasoning-tool-result", "openai-completions", "llama.cpp"),
        ("mistral-tool-results", "mistral-conversations", "mistral"),
        ("ollama-tool-result", "openai-completions", "ollama"),
        ("openrouter-claude-signed-reasoning", "openai-completions", "openrouter"),
    ];
    for (name, api, provider) in rows {
        let path = format!("tests/fixtures/ai/replay/{name}.request.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let accepted: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let model =
            json!({"id": accepted["model"], "api": api, "provider": provider, "baseUrl": "http://x/v1"});
        let messages = conversation(&accepted, &model);
        let sent = body(&request(model, messages));
        assert_eq!(outline(&sent), outline(&accepted), "{name}");
    }
}

#[test]
fn anthropic_thinks_by_effort_or_by_budget() {
    let check = |model: Value, level: ThinkingLevel, expected: Value| {
        let mut all =
            json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic", "reasoning": true});
        merge(&mut all, &model);
        let mut request = request(all, vec![user("hi")]);
        request.options.thinking = level;
        request.options.temperature = Some(0.5);
        let body = body(&request);
        let pick = |key: &str| body.get(key).cloned().unwrap_or_default();
        assert_eq!(json!([pick("thinking"), pick("output_config"), pick("temperature")]), expected);
    };
    let adaptive = json!({"compat": {"forceAdaptiveThinking": true}, "thinkingLevelMap": {"xhigh": "xhigh", "off": null}});
    let summarized = json!({"type": "adaptive", "display": "summarized"});
    check(adaptive.clone(), ThinkingLevel::Xhigh, json!([summarized, {"effort": "xhigh"}, null]));
    check(adaptive.clone(), ThinkingLevel::Minimal, json!([summarized, {"effort": "low"}, null]));
    check(adaptive, ThinkingLevel::Off, json!([summarized, {"effort": "low"}, null]));
    check(json!({}), ThinkingLevel::High, json!([{"type": "enabled", "budget_tokens": 15_360}, null, null]));
    check(
        json!({"maxTokens": 64_000}),
        ThinkingLevel::High,
        json!([{"type": "enabled", "budget_tokens": 16_384}, null, null]),
    );
    check(json!({"maxTokens": 1_500}), ThinkingLevel::Low, json!([{"type": "disabled"}, null, 0.5]));
    check(json!({}), ThinkingLevel::Off, json!([{"type": "disabled"}, null, 0.5]));
    check(json!({"reasoning": false}), ThinkingLevel::High, json!([null, null, 0.5]));
    check(
        json!({"compat": {"supportsTemperature": false}}),
        ThinkingLevel::Off,
        json!([{"type": "disabled"}, null, null]),
    );
}

#[test]
fn anthropic_marks_the_ends_of_cacheable_prefixes() {
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic"});
    let tools = json!({"role": "system", "content": "S", "toolsAdded": [{"name": "a"}, {"name": "b", "parameters": {"anyOf": []}}]});
    let body = body(&request(
        model,
        vec![tools, user("one"), answer(json!([{"type": "text", "text": "x"}])), user("two")],
    ));
    let marked = json!({"type": "ephemeral"});
    assert_eq!(body["system"], json!([{"type": "text", "text": "S", "cache_control": marked}]));
    assert_eq!(body["tools"][0].get("cache_control"), None);
    assert_eq!(body["tools"][1]["cache_control"], marked);
    assert_eq!(body["tools"][1]["input_schema"], json!({"type": "object", "properties": {}}));
    assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);
    assert_eq!(body["messages"][2]["content"][0]["cache_control"], marked);
}

#[test]
fn credentials_go_where_the_service_looks() {
    let check = |api: &str, provider: &str, credential: Credential, name: &str| {
        let model = json!({"id": "m", "api": api, "provider": provider, "baseUrl": "http://x", "headers": {"X-Own": "1"}});
        let mut request = request(model, vec![user("hi")]);
        request.credential = credential;
        let headers = preview(&request).headers;
        let secret = headers.iter().find(|(_, value)| value == "…").map(|(name, _)| name.as_str());
        assert_eq!(secret, Some(name), "{headers:?}");
        assert!(headers.contains(&("x-own".to_owned(), "1".to_owned())));
    };
    let key = || Credential::ApiKey("k".to_owned());
    check("anthropic-messages", "anthropic", key(), "x-api-key");
    check("anthropic-messages", "anthropic", Credential::Bearer("t".to_owned()), "authorization");
    check("anthropic-messages", "anthropic", Credential::ApiKey("sk-ant-oat01".to_owned()), "authorization");
    check("anthropic-messages", "openrouter", key(), "authorization");
    check("openai-completions", "openai", key(), "authorization");
    check("openai-completions", "azure", key(), "api-key");
}

#[test]
fn urls_are_where_the_service_listens() {
    let check = |api: &str, base: &str, expected: &str| {
        let model = json!({"id": "m", "api": api, "provider": "p", "baseUrl": base});
        assert_eq!(preview(&request(model, vec![user("hi")])).url, expected);
    };
    check("anthropic-messages", "https://a.com", "https://a.com/v1/messages");
    check("openai-completions", "https://a.com/v1", "https://a.com/v1/chat/completions");
    check("mistral-conversations", "https://api.mistral.ai", "https://api.mistral.ai/v1/chat/completions");
}

#[test]
fn copilot_is_told_who_asks_and_for_what() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let call = answer(json!([{"type": "toolCall", "id": "a", "name": "f", "arguments": {}}]));
    let result = json!({"role": "toolResult", "toolCallId": "a", "content": [image]});
    for api in ["anthropic-messages", "openai-completions"] {
        let told = |messages: Vec<Value>| -> Vec<(String, String)> {
            let model = json!({"id": "m", "api": api, "provider": "github-copilot", "baseUrl": "http://x",
                "input": ["text", "image"]});
            let mut headers = preview(&request(model, messages)).headers;
            let names = ["x-initiator", "openai-intent", "copilot-vision-request"];
            headers.retain(|(name, _)| names.contains(&name.as_str()));
            headers.sort();
            headers
        };
        let expected = |initiator: &str, vision: bool| -> Vec<(String, String)> {
            let mut rows = vec![("openai-intent", "conversation-edits"), ("x-initiator", initiator)];
            rows.extend(vision.then_some(("copilot-vision-request", "true")));
            rows.sort_unstable();
            rows.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        assert_eq!(told(vec![user("hi")]), expected("user", false), "{api}");
        assert_eq!(told(vec![user("hi"), call.clone(), result.clone()]), expected("agent", true), "{api}");
        assert_eq!(told(vec![call.clone(), result.clone(), user("so?")]), expected("user", true), "{api}");
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_by_name() {
    let model = json!({"id": "m", "api": "openai-completions", "headers": {"bad name": "x"}});
    let error = preview_request(&request(model, vec![user("hi")])).unwrap_err();
    assert!(error.contains("bad name"), "{error}");
}

/// The fields of a Chat Completions body that depend on the server.
#[track_caller]
fn check_dialect(model: Value, level: ThinkingLevel, expected: Value) {
    let mut all = json!({"id": "m", "api": "openai-completions", "reasoning": true, "maxTokens": 100});
    merge(&mut all, &model);
    let mut request = request(all, vec![user("hi")]);
    request.options.thinking = level;
    let mut body = body(&request);
    let fields = body.as_object_mut().unwrap();
    for common in ["model", "messages", "stream", "stream_options"] {
        fields.remove(common);
    }
    assert_eq!(body, expected);
}

#[test]
fn each_server_is_told_to_think_in_its_own_way() {
    use ThinkingLevel::{High, Off};
    check_dialect(json!({"provider": "x"}), High, json!({"max_tokens": 100, "reasoning_effort": "high"}));
    check_dialect(json!({"provider": "x"}), Off, json!({"max_tokens": 100}));
    check_dialect(
        json!({"provider": "openai", "thinkingLevelMap": {"off": "none"}}),
        Off,
        json!({"max_completion_tokens": 100, "store": false, "reasoning_effort": "none"}),
    );
    check_dialect(
        json!({"provider": "openrouter", "compat": {"openRouterRouting": {"order": ["A"]}}}),
        High,
        json!({"max_completion_tokens": 100, "reasoning": {"effort": "high"}, "provider": {"order": ["A"]}}),
    );
    check_dialect(
        json!({"provider": "openrouter"}),
        Off,
        json!({"max_completion_tokens": 100, "reasoning": {"effort": "none"}}),
    );
    check_dialect(
        json!({"provider": "deepseek", "thinkingLevelMap": {"high": "max"}}),
        High,
        json!({"max_tokens": 100, "thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
    );
    check_dialect(
        json!({"provider": "deepseek"}),
        Off,
        json!({"max_tokens": 100, "thinking": {"type": "disabled"}}),
    );
    check_dialect(
        json!({"provider": "zai"}),
        High,
        json!({"max_tokens": 100, "thinking": {"type": "enabled", "clear_thinking": false}}),
    );
    check_dialect(
        json!({"provider": "together"}),
        Off,
        json!({"max_tokens": 100, "reasoning": {"enabled": false}}),
    );
    check_dialect(
        json!({"provider": "x", "compat": {"thinkingFormat": "qwen", "thinkingTokenBudgetField": "thinking_budget"}}),
        High,
        json!({"max_tokens": 100, "enable_thinking": true, "thinking_budget": 16_384}),
    );
    check_dialect(
        json!({"provider": "x", "compat": {"thinkingFormat": "chat-template", "chatTemplateKwargs":
            {"thinking": {"$var": "thinking.enabled"}, "level": {"$var": "thinking.effort"}, "keep": 1}}}),
        Off,
        json!({"max_tokens": 100, "chat_template_kwargs": {"thinking": false, "keep": 1, "enable_thinking": false}}),
    );
    check_dialect(
        json!({"id": "magistral-small", "provider": "mistral"}),
        High,
        json!({"max_tokens": 100, "prompt_mode": "reasoning"}),
    );
}

#[test]
fn own_fields_replace_what_would_be_sent() {
    let model = json!({"id": "m", "api": "openai-completions", "provider": "x"});
    let mut request = request(model, vec![user("hi")]);
    request.options.extra_body = serde_json::from_value(json!({"stream_options": null, "seed": 7})).unwrap();
    let body = body(&request);
    assert_eq!((&body["stream_options"], &body["seed"]), (&Value::Null, &json!(7)));
}

#[test]
fn images_of_results_follow_as_a_user_message() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let messages = || {
        vec![
            answer(json!([{"type": "toolCall", "id": "aaaaaaaaa", "name": "see", "arguments": {}}])),
            json!({"role": "toolResult", "toolCallId": "aaaaaaaaa", "content": [image]}),
            user("next"),
        ]
    };
    let model =
        json!({"id": "m", "api": "mistral-conversations", "provider": "p", "input": ["text", "image"]});
    let roles: Vec<String> = body(&request(model, messages()))["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["assistant", "tool", "assistant", "user", "user"]);
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "p", "input": ["text", "image"]});
    let content = &body(&request(model, messages()))["messages"][1]["content"];
    assert_eq!(content[0]["content"][0]["source"]["media_type"], "image/png");
}

#[test]
fn tool_choice_is_put_as_the_api_has_it() {
    let check = |api: &str, choice: ToolChoice, expected: Value| {
        let declared = json!({"role": "system", "toolsAdded": [{"name": "a"}]});
        let mut request =
            request(json!({"id": "m", "api": api, "provider": "x"}), vec![declared, user("hi")]);
        request.options.tool_choice = Some(choice);
        assert_eq!(body(&request)["tool_choice"], expected);
    };
    check("anthropic-messages", ToolChoice::Any, json!({"type": "any"}));
    check("anthropic-messages", ToolChoice::Tool("a".to_owned()), json!({"type": "tool", "name": "a"}));
    check("openai-completions", ToolChoice::Any, json!("required"));
    check(
        "openai-completions",
        ToolChoice::Tool("a".to_owned()),
        json!({"type": "function", "function": {"name": "a"}}),
    );
}

/// A message drawn at random: roles in any order, few ids so that they collide,
/// blank texts, foreign models, failed turns.
fn any_message() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", " ", "hello ", "world"]);
    let id = prop::sample::select(vec![
        "",
        "a",
        "b:1",
        "call_with_an_id_that_is_much_longer_than_forty_characters_allow",
    ]);
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let block = (0..6, text.clone(), id.clone()).prop_map(|(kind, text, id)| match kind {
        0 | 1 => json!({"type": "text", "text": text}),
        2 => json!({"type": "thinking", "thinking": text, "thinkingSignature": "sig"}),
        3 => json!({"type": "thinking", "thinking": text}),
        _ => json!({"type": "toolCall", "id": id, "name": "f", "arguments": {"x": text}}),
    });
    let model = prop::sample::select(vec!["m", "other"]);
    let stop = prop::sample::select(vec!["stop", "toolUse", "error", "aborted"]);
    let result =
        (id, text.clone(), any::<bool>(), any::<bool>()).prop_map(move |(id, text, is_error, with_image)| {
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(with_image.then(|| image.clone()));
            json!({"role": "toolResult", "toolCallId": id, "content": content, "isError": is_error})
        });
    prop_oneof![
        text.prop_map(|text| json!({"role": "user", "content": text})),
        Just(json!({"role": "system", "content": "more", "toolsAdded": [{"name": "f"}]})),
        Just(json!({"role": "system", "toolsRemoved": [{"name": "f"}]})),
        (prop::collection::vec(block, 0..4), model, stop).prop_map(|(content, model, stop)| {
            json!({"role": "assistant", "api": "x", "provider": "p", "model": model, "content": content, "stopReason": stop})
        }),
        result.clone(),
        result,
    ]
}

proptest! {
    #[test]
    fn any_conversation_obeys_the_rules_of_its_api(messages in prop::collection::vec(any_message(), 0..12)) {
        for api in ["anthropic-messages", "openai-completions", "mistral-conversations"] {
            let mut messages = messages.clone();
            for message in messages.iter_mut().filter(|message| message["role"] == "assistant") {
                message["api"] = json!(api);
            }
            let model = json!({"id": "m", "api": api, "provider": "p", "input": ["text", "image"], "reasoning": true});
            let body = body(&request(model, messages));
            let broken = if api == "anthropic-messages" { broken_anthropic(&body) } else { broken_chat(&body) };
            prop_assert_eq!(broken, None, "{}", body);
        }
    }
}

/// The first structural rule of Anthropic Messages that `body` breaks.
fn broken_anthropic(body: &Value) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let messages = body["messages"].as_array().unwrap();
    for message in messages {
        let blocks = message["content"].as_array().unwrap();
        if blocks.is_empty() {
            return Some("empty message".to_owned());
        }
        let mut answered = 0;
        for (at, block) in blocks.iter().enumerate() {
            match block["type"].as_str().unwrap() {
                "text" if block["text"].as_str().unwrap().trim().is_empty() => {
                    return Some("blank text".to_owned());
                }
                "text" | "image" => {}
                "thinking" if block["signature"].as_str().unwrap().is_empty() => {
                    return Some("unsigned thinking".to_owned());
                }
                "thinking" => {}
                "tool_use" => {
                    let id = block["id"].as_str().unwrap().to_owned();
                    if id.is_empty() || seen.contains(&id) {
                        return Some(format!("id {id:?} used twice"));
                    }
                    if !block["input"].is_object() {
                        return Some("input is no object".to_owned());
                    }
                    seen.push(id);
                }
                "tool_result" => {
                    if at != answered
                        || open.get(answered).map(String::as_str) != block["tool_use_id"].as_str()
                    {
                        return Some("result out of place".to_owned());
                    }
                    let content = block["content"].as_array().unwrap();
                    if content.is_empty()
                        || (block["is_error"] == true && content.iter().any(|part| part["type"] != "text"))
                    {
                        return Some("result content".to_owned());
                    }
                    answered += 1;
                }
                other => return Some(format!("block {other}")),
            }
        }
        if answered != open.len() {
            return Some("unanswered call".to_owned());
        }
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        open = calls.filter_map(|block| block["id"].as_str().map(str::to_owned)).collect();
    }
    if !open.is_empty() {
        return Some("unanswered call at the end".to_owned());
    }
    if !seen.is_empty() && body["tools"].as_array().is_none_or(Vec::is_empty) {
        return Some("calls without tools".to_owned());
    }
    let last = messages.last().filter(|message| message["role"] == "assistant")?;
    let text = last["content"].as_array()?.last()?["text"].as_str()?;
    text.ends_with(char::is_whitespace).then(|| "trailing white space".to_owned())
}

/// The first structural rule of Chat Completions that `body` breaks.
fn broken_chat(body: &Value) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if role != "tool" && !open.is_empty() {
            return Some(format!("{role} before the results of {open:?}"));
        }
        match role {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                if open.first().map(String::as_str) != Some(id) {
                    return Some(format!("result of {id}, expected {open:?}"));
                }
                open.remove(0);
                if message["content"].as_str().unwrap().is_empty() {
                    return Some("empty result".to_owned());
                }
            }
            "assistant" => {
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                if calls.is_empty() && message["content"].as_str().unwrap_or_default().is_empty() {
                    return Some("empty answer".to_owned());
                }
                open = calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)).collect();
                let mut distinct = open.clone();
                distinct.sort();
                distinct.dedup();
                if distinct.len() != calls.len() || open.iter().any(String::is_empty) {
                    return Some(format!("ids {open:?}"));
                }
            }
            "user" if message["content"].as_str().is_some_and(|text| text.trim().is_empty()) => {
                return Some("blank user message".to_owned());
            }
            _ => {}
        }
    }
    (!open.is_empty()).then(|| "unanswered call at the end".to_owned())
}

/// The conversation that an accepted request came from.
fn conversation(accepted: &Value, model: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let declare = |tool: &Value| {
        let tool = tool.get("function").unwrap_or(tool);
        let schema = tool.get("input_schema").unwrap_or(&tool["parameters"]);
        json!({"name": tool["name"], "description": tool["description"], "parameters": schema})
    };
    let tools: Vec<Value> = accepted["tools"].as_array().into_iter().flatten().map(declare).collect();
    let system = accepted.get("system").map(text).unwrap_or_default();
    messages.push(json!({"role": "system", "content": system, "toolsAdded": tools}));
    let answer = |content: Vec<Value>| json!({"role": "assistant", "provider": model["provider"], "api": model["api"], "model": model["id"], "content": content});
    for message in accepted["messages"].as_array().unwrap() {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        match message["role"].as_str().unwrap() {
            "system" => messages.push(json!({"role": "system", "content": text(&message["content"])})),
            "user" if blocks.iter().any(|block| block["type"] == "tool_result") => {
                for block in blocks {
                    messages.push(json!({"role": "toolResult", "toolCallId": block["tool_use_id"], "content": block["content"]}));
                }
            }
            "user" => messages.push(user(&text(&message["content"]))),
            "tool" => messages.push(json!({"role": "toolResult", "toolCallId": message["tool_call_id"],
                "content": [{"type": "text", "text": message["content"]}]})),
            "assistant" if !blocks.is_empty() => {
                let content = blocks.iter().map(|block| match block["type"].as_str().unwrap() {
                    "thinking" => json!({"type": "thinking", "thinking": block["thinking"], "thinkingSignature": block["signature"]}),
                    "tool_use" => json!({"type": "toolCall", "id": block["id"], "name": block["name"], "arguments": block["input"]}),
                    _ => json!({"type": "text", "text": block["text"]}),
                });
                messages.push(answer(content.collect()));
            }
            _ => messages.push(answer(chat_answer(message))),
        }
    }
    messages
}

fn chat_answer(message: &Value) -> Vec<Value> {
    let mut content = Vec::new();
    if let Some(details) = message.get("reasoning_details") {
        content.push(json!({"type": "thinking", "thinking": "", "thinkingSignature": details.to_string()}));
    }
    for field in ["reasoning_content", "reasoning"] {
        if let Some(text) = message.get(field).filter(|_| content.is_empty()) {
            content.push(json!({"type": "thinking", "thinking": text, "thinkingSignature": field}));
        }
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        content.push(json!({"type": "toolCall", "id": call["id"], "name": call["function"]["name"], "arguments": arguments}));
    }
    content
}

/// What both bodies must agree on: who says what, in which order, by which ids.
fn outline(body: &Value) -> Vec<Value> {
    let parts = |content: &Value| -> Vec<Value> {
        match content {
            Value::String(text) if text.is_empty() => Vec::new(),
            Value::String(text) => vec![json!(text)],
            Value::Array(blocks) => blocks.iter().map(part_outline).collect(),
            _ => Vec::new(),
        }
    };
    let mut lines = vec![json!({"role": "system", "content": parts(&body["system"])})];
    for message in body["messages"].as_array().unwrap() {
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
            let text = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(text).unwrap();
            let arguments = if arguments.is_null() { json!({}) } else { arguments };
            json!([call["id"], call["function"]["name"], arguments])
        });
        let reasoning =
            ["reasoning_details", "reasoning_content", "reasoning"].iter().find_map(|key| message.get(*key));
        lines.push(json!({
            "role": message["role"],
            "content": parts(&message["content"]),
            "calls": calls.collect::<Vec<_>>(),
            "answers": message["tool_call_id"],
            "reasoning": reasoning,
        }));
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let tool = tool.get("function").unwrap_or(tool);
        lines.push(json!([
            tool["name"],
            tool["description"],
            tool.get("input_schema").unwrap_or(&tool["parameters"])
        ]));
    }
    lines
}

fn part_outline(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("text") => block["text"].clone(),
        Some("tool_result") => json!([
            block["tool_use_id"],
            block["content"].as_array().unwrap().iter().map(part_outline).collect::<Vec<_>>()
        ]),
        _ => {
            let mut kept: Map<String, Value> = block.as_object().unwrap().clone();
            kept.remove("cache_control");
            Value::Object(kept)
        }
    }
}

fn merge(base: &mut Value, over: &Value) {
    base.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn request(model: Value, messages: Vec<Value>) -> Request {
    let model: Model = serde_json::from_value(model).unwrap();
    let messages =
        messages.into_iter().map(|message| Arc::new(serde_json::from_value::<Message>(message).unwrap()));
    Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: messages.collect(),
        options: StreamOptions::default(),
    }
}

fn preview(request: &Request) -> RequestPreview {
    preview_request(request).unwrap()
}

fn body(request: &Request) -> Value {
    preview(request).body
}
