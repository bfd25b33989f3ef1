//! Requests have the structure that services accepted.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pi::ai::{
    Credential, Message, Model, Request, RequestPreview, SignIn, StreamOptions, ThinkingLevel, ToolChoice,
    preview_request,
};
use serde_json::{Map, Value, json};

use crate::support::{bedrock, google};

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
        ("openai-responses-encrypted-reasoning", "openai-responses", "openai"),
        ("openai-responses-parallel", "openai-responses", "openai"),
        ("openai-responses-phase", "openai-responses", "openai"),
        ("xai-responses-followup", "openai-responses", "xai"),
    ];
    for (name, api, provider) in rows {
        let path = format!("tests/fixtures/ai/replay/{name}.request.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let accepted: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let model =
            json!({"id": accepted["model"], "api": api, "provider": provider, "baseUrl": "http://x/v1"});
        let of_responses = accepted.get("input").is_some();
        let read = if of_responses { responses_conversation } else { conversation };
        let sent = body(&request(model.clone(), read(&accepted, &model)));
        let outline = if of_responses { responses_outline } else { outline };
        assert_eq!(outline(&sent), outline(&accepted), "{name}");
    }
}

#[test]
fn an_accepted_request_of_google_is_reproduced_in_structure() {
    let path = "tests/fixtures/ai/replay/gemini25-thinking-tool-result.request.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let accepted: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let model = json!({"id": "gemini-2.5-pro", "api": "google-generative-ai", "provider": "google",
        "compat": {"supportsParametersJsonSchema": false}});
    let sent = body(&request(model.clone(), google::conversation(&accepted, &model)));
    assert_eq!(google::outline(&sent), google::outline(&accepted));
}

#[test]
fn an_accepted_request_of_bedrock_is_reproduced() {
    let path = "tests/fixtures/ai/replay/bedrock-tool-result.request.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let accepted: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let model = json!({"id": "us.amazon.nova-micro-v1:0", "api": "bedrock-converse-stream", "provider": "amazon-bedrock"});
    let mut request = request(model.clone(), bedrock::conversation(&accepted, &model));
    request.options.top_p = Some(0.5);
    let mut sent = preview(&request);
    assert_eq!(
        sent.url,
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-micro-v1%3A0/converse-stream"
    );
    assert!(sent.body["inferenceConfig"].as_object_mut().unwrap().remove("maxTokens").is_some());
    // The later request differs from the earlier one only in cache markers.
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(sent.body["system"].as_array_mut().unwrap().pop(), Some(point.clone()));
    let last = sent.body["messages"].as_array_mut().unwrap().last_mut().unwrap();
    assert_eq!(last["content"].as_array_mut().unwrap().pop(), Some(point));
    assert_eq!(sent.body, accepted);
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
fn a_cache_for_long_is_asked_for_where_it_is_known() {
    let check = |api: &str, provider: &str, compat: Value, wish: bool, expected: Value| {
        let model = json!({"id": "m", "api": api, "provider": provider, "compat": compat, "maxTokens": 9});
        let mut request = request(model, vec![user("hi")]);
        request.options.long_cache = wish;
        let body = body(&request);
        let mark = &body["messages"][0]["content"][0]["cache_control"]["ttl"];
        let point = &body["messages"][0]["content"][1]["cachePoint"]["ttl"];
        let found = [mark, point, &body["prompt_cache_retention"]];
        let found = found.into_iter().find(|value| !value.is_null()).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{api} {provider} {wish}");
    };
    let (no, none) = (json!({"supportsLongCacheRetention": false}), json!({}));
    check("anthropic-messages", "anthropic", none.clone(), true, json!("1h"));
    check("anthropic-messages", "anthropic", none.clone(), false, Value::Null);
    check("anthropic-messages", "anthropic", no.clone(), true, Value::Null);
    check("anthropic-messages", "minimax", none.clone(), true, Value::Null);
    let claude = json!({"cacheControlFormat": "anthropic", "supportsLongCacheRetention": true});
    check("openai-completions", "gateway", claude, true, json!("1h"));
    check("openai-completions", "openai", none.clone(), true, json!("24h"));
    check("openai-completions", "openai", none.clone(), false, Value::Null);
    check("openai-completions", "groq", none.clone(), true, Value::Null);
    check("openai-responses", "openai", none.clone(), true, json!("24h"));
    check("openai-responses", "openai", none.clone(), false, Value::Null);
    check("openai-responses", "openai", no, true, Value::Null);
    check("openai-responses", "xai", none, true, Value::Null);
}

#[test]
fn openrouter_passes_the_marker_on_from_the_last_thing_said() {
    let check = |base_url: &str, results: Value| {
        let model = json!({"id": "m", "api": "openai-completions", "provider": "p", "baseUrl": base_url,
            "compat": {"cacheControlFormat": "anthropic"}});
        let call = answer(json!([{"type": "toolCall", "id": "a", "name": "f", "arguments": {}}]));
        let result =
            json!({"role": "toolResult", "toolCallId": "a", "content": [{"type": "text", "text": "r"}]});
        let body = body(&request(
            model,
            vec![user("one"), answer(json!([{"type": "text", "text": "x"}])), user("two"), call, result],
        ));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages[0]["content"], json!([{"type": "text", "text": "one"}]));
        assert_eq!(json!([messages[2]["content"], messages[4]["content"]]), results, "{base_url}");
    };
    let marked = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    check("https://openrouter.ai/api/v1", json!([[{"type": "text", "text": "two"}], marked("r")]));
    check("https://proxy/v1", json!([marked("two"), "r"]));
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
    check("openai-responses", "openai", key(), "authorization");
    check("azure-openai-responses", "azure", key(), "api-key");
    check("azure-openai-responses", "azure", Credential::Bearer("t".to_owned()), "authorization");
    check("openai-codex-responses", "openai-codex", signed_in(), "authorization");
    check("google-generative-ai", "google", key(), "x-goog-api-key");
    check("google-generative-ai", "google", Credential::Bearer("t".to_owned()), "authorization");
    check("bedrock-converse-stream", "amazon-bedrock", key(), "authorization");
    check("bedrock-converse-stream", "amazon-bedrock", Credential::Bearer("t".to_owned()), "authorization");
    check("google-vertex", "google-vertex", key(), "x-goog-api-key");
    check("anthropic-vertex", "google-vertex", Credential::Bearer("t".to_owned()), "authorization");
}

fn signed_in() -> Credential {
    let account_id = Some("acc-1".to_owned());
    Credential::SignedIn(Box::new(SignIn { token: "t".to_owned(), base_url: None, account_id }))
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
    check("openai-responses", "https://a.com/v1/", "https://a.com/v1/responses");
    let codex = "https://chatgpt.com/backend-api";
    for base in [codex, "https://chatgpt.com/backend-api/codex/"] {
        check("openai-codex-responses", base, "https://chatgpt.com/backend-api/codex/responses");
    }
    let azure = "https://r.openai.azure.com/openai/v1";
    check(
        "azure-openai-responses",
        "https://r.openai.azure.com",
        &format!("{azure}/responses?api-version=v1"),
    );
    check(
        "openai-completions",
        "https://r.openai.azure.com",
        &format!("{azure}/chat/completions?api-version=v1"),
    );
}

#[test]
fn azure_is_asked_for_the_deployment() {
    for api in ["azure-openai-responses", "openai-completions"] {
        let model = json!({"id": "m", "api": api, "provider": "azure", "baseUrl": "https://r.openai.azure.com",
            "compat": {"deployment": "mine"}});
        assert_eq!(body(&request(model, vec![user("hi")]))["model"], "mine");
    }
}

#[test]
fn copilot_is_told_who_asks_and_for_what() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let call = answer(json!([{"type": "toolCall", "id": "a", "name": "f", "arguments": {}}]));
    let result = json!({"role": "toolResult", "toolCallId": "a", "content": [image]});
    for api in ["anthropic-messages", "openai-completions", "openai-responses"] {
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
fn the_service_behind_chatgpt_is_told_who_comes() {
    let model = json!({"id": "m", "api": "openai-codex-responses", "provider": "openai-codex", "baseUrl": "http://x",
        "reasoning": true, "maxTokens": 100});
    let mut request = request(model, vec![json!({"role": "system", "content": "Be kind."}), user("hi")]);
    request.credential = signed_in();
    request.options.session_id = Some("s-1".to_owned());
    request.options.temperature = Some(0.5);
    request.options.thinking = ThinkingLevel::Low;
    let sent = preview(&request);
    let header =
        |name: &str| sent.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(header("chatgpt-account-id"), Some("acc-1"));
    assert_eq!(header("originator"), Some("pi"));
    assert_eq!(header("openai-beta"), Some("responses=experimental"));
    assert_eq!(header("session-id"), Some("s-1"));
    assert_eq!(
        sent.body,
        json!({"model": "m", "stream": true, "store": false, "max_output_tokens": 100,
            "input": [{"role": "developer", "content": "Be kind."},
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
            "reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
            "text": {"verbosity": "low"}, "prompt_cache_key": "s-1"})
    );
}

#[test]
fn codex_input_begins_with_tools_and_system_prompt_and_ends_with_the_effort() {
    let check = |level: ThinkingLevel, map: Value, answered_with: Option<&str>, expected: Value| {
        let compat = json!({"supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true,
            "supportsMidConvoEffort": true});
        let model = json!({"id": "m", "api": "openai-codex-responses", "provider": "openai-codex",
            "baseUrl": "http://x", "reasoning": true, "thinkingLevelMap": map, "compat": compat});
        let tools = json!([{"name": "a", "description": "d"}]);
        let mut messages = vec![json!({"role": "system", "content": "S", "toolsAdded": tools}), user("hi")];
        if let Some(effort) = answered_with {
            let mut answer = answer(json!([{"type": "text", "text": "yes"}]));
            merge(
                &mut answer,
                &json!({"api": "openai-codex-responses", "provider": "openai-codex", "model": "m",
                    "providerThinkingLevel": effort}),
            );
            messages.extend([answer, user("so?")]);
        }
        let mut request = request(model, messages);
        request.options.thinking = level;
        let body = body(&request);
        assert_eq!(body["reasoning"]["effort"], "medium", "{level:?}");
        assert!(body.get("tools").is_none() && body.get("instructions").is_none());
        let items = body["input"].as_array().unwrap();
        let line = |item: &Value| match item["type"].as_str() {
            Some("additional_tools") => format!("tools {}", item["tools"][0]["name"]),
            Some("configuration_update") => format!("effort {}", item["reasoning"]["effort"]),
            Some(kind) => kind.to_owned(),
            None => item["role"].as_str().unwrap().to_owned(),
        };
        assert_eq!(json!(items.iter().map(line).collect::<Vec<_>>()), expected, "{level:?}");
    };
    let tools = r#"tools "a""#;
    let effort = |name: &str| format!("effort {name:?}");
    let start = |name: &str| json!([tools, "developer", "user", effort(name)]);
    check(ThinkingLevel::High, json!({}), None, start("high"));
    check(ThinkingLevel::Minimal, json!({"minimal": "low"}), None, start("low"));
    check(ThinkingLevel::Off, json!({"off": "none"}), None, start("none"));
    check(ThinkingLevel::Off, json!({}), None, start("none"));
    // A model that cannot stop thinking thinks as little as it can.
    check(ThinkingLevel::Off, json!({"off": null, "minimal": "low"}), None, start("low"));
    let changed = json!([tools, "developer", "user", effort("high"), "message", "user", effort("low")]);
    check(ThinkingLevel::Low, json!({}), Some("high"), changed);
}

#[test]
fn codex_limit_of_an_answer_is_sent_unless_a_flag_forbids_it() {
    let check = |more: Value, expected: Value| {
        let mut model = json!({"id": "m", "api": "openai-codex-responses", "provider": "openai-codex",
            "baseUrl": "http://x", "maxTokens": 9});
        merge(&mut model, &more);
        let body = body(&request(model, vec![user("hi")]));
        assert_eq!(body.get("max_output_tokens").cloned().unwrap_or_default(), expected, "{more}");
    };
    check(json!({}), json!(16));
    check(json!({"maxTokens": 128_000, "contextWindow": 500_000}), json!(128_000));
    check(json!({"compat": {"supportsMaxOutputTokens": false}}), Value::Null);
}

/// The fields of a Responses body other than model and input.
#[track_caller]
fn check_responses(model: Value, credential: Credential, level: ThinkingLevel, expected: Value) {
    let mut all = json!({"id": "m", "api": "openai-responses", "provider": "openai", "maxTokens": 100});
    merge(&mut all, &model);
    let mut request = request(all, vec![user("hi")]);
    request.credential = credential;
    request.options.thinking = level;
    request.options.temperature = Some(0.5);
    request.options.long_cache = request.model.compat.contains_key("supportsLongCacheRetention");
    request.options.session_id = Some("s".repeat(70));
    let mut body = body(&request);
    let fields = body.as_object_mut().unwrap();
    for common in ["model", "input", "stream", "store"] {
        assert!(fields.remove(common).is_some());
    }
    let key = fields.remove("prompt_cache_key").unwrap_or_default();
    assert!(key.as_str().is_none_or(|key| key.len() == 64));
    assert_eq!(body, expected);
}

#[test]
fn each_responses_server_is_sent_what_it_takes() {
    use ThinkingLevel::{High, Minimal, Off};
    let none = || Credential::None;
    let include = json!(["reasoning.encrypted_content"]);
    let thinks = json!({"reasoning": true, "thinkingLevelMap": {"off": "none", "minimal": "low"}});
    let with = |more: Value| {
        let mut model = thinks.clone();
        merge(&mut model, &more);
        model
    };
    check_responses(json!({}), none(), High, json!({"max_output_tokens": 100, "temperature": 0.5}));
    check_responses(
        json!({"maxTokens": 1}),
        none(),
        Off,
        json!({"max_output_tokens": 16, "temperature": 0.5}),
    );
    check_responses(
        thinks.clone(),
        none(),
        Minimal,
        json!({"max_output_tokens": 100, "reasoning": {"effort": "low", "summary": "auto"}, "include": include}),
    );
    check_responses(
        thinks.clone(),
        none(),
        Off,
        json!({"max_output_tokens": 100, "reasoning": {"effort": "none"}, "include": include}),
    );
    check_responses(
        json!({"reasoning": true}),
        none(),
        Off,
        json!({"max_output_tokens": 100, "include": include}),
    );
    let kept = json!({"supportsLongCacheRetention": true});
    check_responses(
        with(json!({"compat": kept})),
        none(),
        Off,
        json!({"max_output_tokens": 100, "reasoning": {"effort": "none"}, "include": include,
            "prompt_cache_retention": "24h"}),
    );
    check_responses(
        with(
            json!({"compat": {"supportsLongCacheRetention": true, "supportsExplicitPromptCacheMode": true}}),
        ),
        none(),
        Off,
        json!({"max_output_tokens": 100, "reasoning": {"effort": "none"}, "include": include,
            "prompt_cache_options": {"ttl": "30m"}}),
    );
    // An account that signed in may not say how long, how random or how well kept.
    check_responses(
        with(json!({"compat": kept})),
        signed_in(),
        Off,
        json!({"reasoning": {"effort": "none"}, "include": include}),
    );
    check_responses(
        json!({"provider": "xai", "reasoning": true}),
        none(),
        High,
        json!({"max_output_tokens": 100, "temperature": 0.5, "reasoning": {"effort": "high", "summary": "auto"},
            "include": include}),
    );
}

#[test]
fn a_responses_input_begins_with_the_instructions() {
    let check = |more: Value, role: &str| {
        let mut model = json!({"id": "m", "api": "openai-responses", "provider": "p"});
        merge(&mut model, &more);
        let messages = vec![
            json!({"role": "system", "content": "S", "toolsAdded": [{"name": "a", "description": "d"}]}),
            user("hi"),
        ];
        let body = body(&request(model, messages));
        assert_eq!(body["input"][0], json!({"role": role, "content": "S"}));
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "name": "a", "description": "d", "parameters": schema, "strict": false}])
        );
    };
    check(json!({}), "system");
    check(json!({"reasoning": true}), "developer");
    check(json!({"reasoning": true, "compat": {"supportsDeveloperRole": false}}), "system");
}

/// The items that an answer of this model, or of another, is sent back as.
#[track_caller]
fn check_replay(provider: &str, content: Value, own: bool, expected: &[&str]) {
    let model = json!({"id": "m", "api": "openai-responses", "provider": provider, "reasoning": true});
    let mut answer = answer(content);
    merge(
        &mut answer,
        &json!({"api": "openai-responses", "provider": provider, "model": if own { "m" } else { "n" }}),
    );
    let body = body(&request(model, vec![user("hi"), answer, user("so?")]));
    let items = body["input"].as_array().unwrap();
    let lines: Vec<String> = items[1..items.len() - 1]
        .iter()
        .map(|item| {
            let parts = ["type", "id", "call_id", "phase"].map(|key| item[key].as_str().unwrap_or("-"));
            parts.join(" ")
        })
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn reasoning_goes_back_with_the_item_it_led_to() {
    let thinking = |id: &str, encrypted: Value| {
        let item = json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted});
        json!({"type": "thinking", "thinking": "", "thinkingSignature": item.to_string()})
    };
    let whole = |id: &str| thinking(id, json!("E"));
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {"input": "x"}});
    let text = |signature: &str| json!({"type": "text", "text": "t", "textSignature": signature});
    let phased = r#"{"v":1,"id":"msg_1","phase":"commentary"}"#;
    let output = |id: &str| format!("function_call_output - {id} -");

    check_replay(
        "openai",
        json!([whole("rs_1"), text(phased), call("c|fc_1"), call("d|fc_2")]),
        true,
        &[
            "reasoning rs_1 - -",
            "message msg_1 - commentary",
            "function_call fc_1 c -",
            "function_call fc_2 d -",
            &output("c"),
            &output("d"),
        ],
    );
    // Another model of the provider neither reasoned nor gave the ids.
    check_replay(
        "openai",
        json!([whole("rs_1"), text(phased), call("c|fc_1")]),
        false,
        &["message - - -", "function_call - c -", &output("c")],
    );
    // Nothing follows the last one; two in a row belong together.
    check_replay(
        "openai",
        json!([whole("rs_1"), whole("rs_2"), text("msg_1"), whole("rs_3")]),
        true,
        &["reasoning rs_1 - -", "reasoning rs_2 - -", "message msg_1 - -"],
    );
    // What cannot go back takes along what came with it, and the names of what it led to.
    let lost = json!([
        whole("rs_1"),
        thinking("rs_2", json!(null)),
        text(phased),
        call("c|fc_1"),
        whole("rs_3"),
        call("d|fc_2")
    ]);
    check_replay(
        "openai",
        lost.clone(),
        true,
        &[
            "message - - commentary",
            "function_call - c -",
            "reasoning rs_3 - -",
            "function_call fc_2 d -",
            &output("c"),
            &output("d"),
        ],
    );
    // Other servers have it by its text.
    check_replay(
        "xai",
        lost,
        true,
        &[
            "reasoning rs_1 - -",
            "reasoning rs_2 - -",
            "message msg_1 - commentary",
            "function_call fc_1 c -",
            "reasoning rs_3 - -",
            "function_call fc_2 d -",
            &output("c"),
            &output("d"),
        ],
    );
    check_replay(
        "openai",
        json!([text(r#"{"v":1,"id":"msg_1","phase":"of the moon"}"#)]),
        true,
        &["message msg_1 - -"],
    );
    // Ids of gateways, ids twice, and tools that take text.
    let long = "msg_".to_owned() + &"x".repeat(61);
    check_replay(
        "github-copilot",
        json!([text("rotated"), text(&long), text("msg_1"), text("msg_1"), call("c|0123"), call("d|ctc_1")]),
        true,
        &[
            "message - - -",
            "message - - -",
            "message msg_1 - -",
            "message - - -",
            "function_call - c -",
            "custom_tool_call ctc_1 d -",
            &output("c"),
            "custom_tool_call_output - d -",
        ],
    );
    // A server that insists on ids gets some.
    check_replay(
        "openrouter",
        json!([text(""), call("c")]),
        true,
        &["message msg_1 - -", "function_call fc_2 c -", &output("c")],
    );
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
fn claude_is_sent_what_it_can_sample_by() {
    let mut request =
        request(json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic"}), vec![user("hi")]);
    request.options.temperature = Some(1.5);
    request.options.top_p = Some(0.9);
    let sent = body(&request);
    assert_eq!((&sent["temperature"], sent.get("top_p")), (&json!(1.0), None));
    request.options.temperature = None;
    assert_eq!(body(&request)["top_p"], 0.9);
}

#[test]
fn what_a_reasoning_model_refuses_is_not_sent() {
    let stop = |provider: &str, reasoning: bool| {
        let model =
            json!({"id": "m", "api": "openai-completions", "provider": provider, "reasoning": reasoning});
        let mut request = request(model, vec![user("hi")]);
        request.options.stop_sequences = vec!["END".to_owned()];
        body(&request).get("stop").is_some()
    };
    assert!(stop("openai", false) && stop("groq", true));
    assert!(!stop("openai", true) && !stop("xai", true));
}

#[test]
fn betas_of_the_user_come_on_top_of_ours() {
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic", "reasoning": true,
        "headers": {"Anthropic-Beta": "context-1m-2025-08-07, interleaved-thinking-2025-05-14"}});
    let tools = json!({"role": "system", "content": "", "toolsAdded": [{"name": "a"}]});
    let mut request = request(model, vec![tools, user("hi")]);
    request.options.thinking = ThinkingLevel::High;
    let preview = preview(&request);
    let betas = preview.headers.iter().find(|(name, _)| name == "anthropic-beta");
    assert_eq!(betas.unwrap().1, "interleaved-thinking-2025-05-14,context-1m-2025-08-07");
}

#[test]
fn ids_of_another_maker_under_the_models_name_are_fitted() {
    let call = json!([{"type": "toolCall", "id": "functions.bash:0", "name": "bash", "arguments": {}}]);
    let messages = vec![
        user("hi"),
        json!({"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "m", "content": call}),
    ];
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic"});
    let sent = body(&request(model, messages));
    assert_eq!(sent["messages"][1]["content"][0]["id"], "functions_bash_0");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "functions_bash_0");
}

#[test]
fn own_fields_are_merged_into_what_would_be_sent() {
    let model =
        json!({"id": "gemini-2.5-pro", "api": "google-generative-ai", "provider": "google", "maxTokens": 9});
    let mut request = request(model, vec![user("hi")]);
    request.options.extra_body =
        json!({"generationConfig": {"topK": 40}, "labels": {"a": "b"}}).as_object().unwrap().clone();
    let sent = body(&request);
    assert_eq!(sent["generationConfig"], json!({"maxOutputTokens": 9, "topK": 40}));
    assert_eq!(sent["labels"], json!({"a": "b"}));
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
            user("look"),
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
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user", "user"]);
    let model = json!({"id": "m", "api": "openai-responses", "provider": "p", "input": ["text", "image"]});
    assert_eq!(
        body(&request(model, messages()))["input"][2]["output"],
        json!([{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="}])
    );
    let model = json!({"id": "m", "api": "anthropic-messages", "provider": "p", "input": ["text", "image"]});
    let content = &body(&request(model, messages()))["messages"][2]["content"];
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
    check("openai-responses", ToolChoice::Any, json!("required"));
    check("openai-responses", ToolChoice::Tool("a".to_owned()), json!({"type": "function", "name": "a"}));
}

/// The conversation that an accepted request of Responses came from.
fn responses_conversation(accepted: &Value, model: &Value) -> Vec<Value> {
    let text = |content: &Value| content.as_str().or(content[0]["text"].as_str()).unwrap().to_owned();
    let declare = |tool: &Value| {
        let description = tool["description"].as_str().unwrap_or_default();
        json!({"name": tool["name"], "description": description, "parameters": tool["parameters"]})
    };
    let tools: Vec<Value> = accepted["tools"].as_array().into_iter().flatten().map(declare).collect();
    let instructions = accepted["instructions"].as_str().unwrap_or_default();
    let mut messages = vec![json!({"role": "system", "content": instructions, "toolsAdded": tools})];
    let mut content: Vec<Value> = Vec::new();
    for item in accepted["input"].as_array().unwrap() {
        let is_answer = match item["type"].as_str() {
            Some("reasoning") => {
                content
                    .push(json!({"type": "thinking", "thinking": "", "thinkingSignature": item.to_string()}));
                true
            }
            Some("function_call") => {
                let call_id = item["call_id"].as_str().unwrap();
                let id = item["id"].as_str().map_or(call_id.to_owned(), |id| format!("{call_id}|{id}"));
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                content.push(
                    json!({"type": "toolCall", "id": id, "name": item["name"], "arguments": arguments}),
                );
                true
            }
            Some("message") if item["role"] == "assistant" => {
                let signature = json!({"v": 1, "id": item["id"], "phase": item["phase"]}).to_string();
                content.push(
                    json!({"type": "text", "text": text(&item["content"]), "textSignature": signature}),
                );
                true
            }
            _ => false,
        };
        if is_answer {
            continue;
        }
        if !content.is_empty() {
            let mut answer = answer(Value::Array(std::mem::take(&mut content)));
            merge(
                &mut answer,
                &json!({"provider": model["provider"], "api": model["api"], "model": model["id"]}),
            );
            messages.push(answer);
        }
        messages.push(match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call_output"), _) => {
                let called = messages.last().unwrap();
                let id = call_of(messages.iter().rev(), item["call_id"].as_str().unwrap())
                    .unwrap_or_else(|| panic!("{called}"));
                json!({"role": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": item["output"]}]})
            }
            (_, Some("user")) => user(&text(&item["content"])),
            _ => json!({"role": "system", "content": text(&item["content"])}),
        });
    }
    messages
}

/// The whole id of the call with this first part.
fn call_of<'a>(mut messages: impl Iterator<Item = &'a Value>, call_id: &str) -> Option<String> {
    messages.find_map(|message| {
        let calls = message["content"].as_array()?.iter().filter_map(|block| block["id"].as_str());
        calls.into_iter().find(|id| id.split('|').next() == Some(call_id)).map(str::to_owned)
    })
}

/// As [`outline`], for Responses.
fn responses_outline(body: &Value) -> Vec<Value> {
    let text =
        |content: &Value| content.as_str().or(content[0]["text"].as_str()).unwrap_or_default().to_owned();
    let mut lines: Vec<Value> = Vec::new();
    lines.extend(body.get("instructions").map(|text| json!(["system", text])));
    for item in body["input"].as_array().unwrap() {
        let ids = json!([item["id"], item["call_id"]]);
        lines.push(match item["type"].as_str() {
            Some("reasoning") => json!([ids, item["summary"], item["encrypted_content"]]),
            Some("function_call") => json!([ids, item["name"], item["arguments"]]),
            Some("function_call_output") => json!([ids, item["output"]]),
            _ => {
                let role =
                    if item["role"] == "developer" { "system" } else { item["role"].as_str().unwrap() };
                match role {
                    "assistant" => json!([ids, item["phase"], item["content"]]),
                    role => json!([role, text(&item["content"])]),
                }
            }
        });
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        lines.push(json!([
            tool["name"],
            tool["description"].as_str().unwrap_or_default(),
            tool["parameters"]
        ]));
    }
    lines
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

/// The content on which both bodies must agree: roles, order and ids.
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
