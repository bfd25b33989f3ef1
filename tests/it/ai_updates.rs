//! Instructions, tools and efforts between the turns, as each API has them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;

use pi::ai::{Credential, Message, Request, RequestPreview, StreamOptions, ThinkingLevel, preview_request};
use serde_json::{Value, json};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": name, "parameters": {"type": "object", "properties": {}}})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

/// Begins with one tool, then has another added and the first taken away.
fn request(api: &str, provider: &str, compat: Value, level: ThinkingLevel) -> Request {
    let messages = [
        json!({"role": "system", "content": "S", "toolsAdded": [tool("a")]}),
        user("one"),
        json!({"role": "assistant", "api": api, "provider": provider, "model": "m", "thinkingLevel": "high",
            "providerThinkingLevel": "high", "content": [{"type": "text", "text": "first"}]}),
        json!({"role": "system", "content": "", "sections": {"cwd": "/b"}, "toolsAdded": [tool("b")]}),
        user("two"),
        json!({"role": "assistant", "api": api, "provider": provider, "model": "m",
            "content": [{"type": "text", "text": "second"}]}),
        json!({"role": "system", "content": "", "toolsRemoved": [{"name": "a"}]}),
        user("three"),
    ];
    let model = json!({"id": "m", "api": api, "provider": provider, "reasoning": true, "compat": compat});
    let messages = messages.map(|message| Arc::new(serde_json::from_value::<Message>(message).unwrap()));
    Request {
        model: Arc::new(serde_json::from_value(model).unwrap()),
        credential: Credential::None,
        messages: messages.to_vec(),
        options: StreamOptions { thinking: level, ..StreamOptions::default() },
    }
}

fn preview(api: &str, provider: &str, compat: Value, level: ThinkingLevel) -> RequestPreview {
    preview_request(&request(api, provider, compat, level)).unwrap()
}

fn beta(preview: &RequestPreview) -> Option<&str> {
    preview.headers.iter().find(|(name, _)| name == "anthropic-beta").map(|(_, value)| value.as_str())
}

const UPDATE: &str = "The part \"cwd\" of the system prompt now reads:\n\n/b";

#[test]
fn anthropic_has_tools_added_and_removed_by_blocks() {
    let compat = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true,
        "supportsMidConvoEffort": true, "forceAdaptiveThinking": true});
    let preview = preview("anthropic-messages", "anthropic", compat, ThinkingLevel::Low);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let definition = |name: &str| {
        json!({"name": name, "description": name, "eager_input_streaming": true,
            "input_schema": {"type": "object", "properties": {}}})
    };
    let mark = json!({"type": "ephemeral"});
    let added =
        json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition("b")}});
    let removed = json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"},
        "cache_control": mark});
    assert_eq!(
        preview.body["messages"],
        json!([
            {"role": "user", "content": text("one")},
            {"role": "system", "content": [], "output_config": {"effort": "high"}},
            {"role": "assistant", "content": text("first")},
            {"role": "user", "content": text("two")},
            {"role": "system", "content": [{"type": "text", "text": UPDATE}, added]},
            {"role": "assistant", "content": text("second")},
            {"role": "user", "content": text("three")},
            {"role": "system", "content": [removed]},
            {"role": "system", "content": [], "output_config": {"effort": "low"}},
        ])
    );
    let mut first = definition("a");
    first["cache_control"] = mark;
    let placeholder = &preview.body["tools"][1];
    assert_eq!(preview.body["tools"][0], first);
    assert_eq!(placeholder["defer_loading"], true);
    assert_eq!(preview.body["tools"].as_array().unwrap().len(), 2);
    // The same whatever the level is.
    assert_eq!(preview.body["output_config"], json!({"effort": "low"}));
    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
    assert_eq!(
        preview.body["thinking"],
        json!({"type": "adaptive", "display": "summarized", "block_binding": binding})
    );
    assert_eq!(
        beta(&preview),
        Some(
            "mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01,inline-tools-2026-09-15"
        )
    );
}

#[test]
fn without_thinking_no_effort_is_told() {
    let compat = json!({"supportsMidConvoEffort": true, "forceAdaptiveThinking": true});
    let preview = preview("anthropic-messages", "anthropic", compat, ThinkingLevel::Off);
    assert_eq!(preview.body["thinking"], json!({"type": "disabled"}));
    assert_eq!(preview.body.get("output_config"), None);
    assert_eq!(beta(&preview), None);
    let roles: Vec<&Value> =
        preview.body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(preview.body["system"][0]["text"], "S\n\n/b");
}

#[test]
fn what_changed_stands_behind_what_a_user_said() {
    let compat = json!({"supportsMidConvoSystemMessages": true});
    let mut request = request("anthropic-messages", "anthropic", compat, ThinkingLevel::Off);
    // As in imported conversations: no user message between the two answers.
    request.messages.remove(4);
    let body = preview_request(&request).unwrap().body;
    let roles: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "system", "assistant", "user"]);
    assert_eq!(body["messages"][2]["content"][0]["text"], "(no text)");
}

#[test]
fn thinking_that_is_bound_to_efforts_goes_with_them() {
    let compat = json!({"supportsMidConvoEffort": true, "forceAdaptiveThinking": true});
    let thinks = |level| {
        let mut request = request("anthropic-messages", "anthropic", compat.clone(), level);
        let thought = json!({"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "m",
            "providerThinkingLevel": "high", "content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
                {"type": "text", "text": "first"}]});
        request.messages[2] = Arc::new(serde_json::from_value(thought).unwrap());
        let body = preview_request(&request).unwrap().body;
        body["messages"].to_string().contains("\"thinking\"")
    };
    assert!(thinks(ThinkingLevel::High));
    assert!(!thinks(ThinkingLevel::Off));
}

#[test]
fn responses_has_tools_as_items() {
    let compat = json!({"supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true,
        "supportsMidConvoEffort": true});
    let body = preview("openai-responses", "openai", compat, ThinkingLevel::Low).body;
    let function = |name: &str| {
        json!({"type": "function", "name": name, "description": name, "strict": false,
            "parameters": {"type": "object", "properties": {}}})
    };
    let tools =
        |name: &str| json!({"type": "additional_tools", "role": "developer", "tools": [function(name)]});
    let said = |text: &str| json!({"role": "user", "content": [{"type": "input_text", "text": text}]});
    let answer = |text: &str| {
        json!({"type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
    };
    let effort = |effort: &str| json!({"type": "configuration_update", "reasoning": {"effort": effort}});
    let developer = |text: &str| json!({"role": "developer", "content": text});
    assert_eq!(
        body["input"],
        json!([
            developer("S"),
            said("one"),
            effort("high"),
            answer("first"),
            developer(
                "The tools declared next come on top of those before. Of two with one name the later counts."
            ),
            tools("b"),
            developer(UPDATE),
            said("two"),
            answer("second"),
            developer("These tools are not available any more; do not call them: a."),
            said("three"),
            effort("low"),
        ])
    );
    assert_eq!(body["tools"], json!([function("a")]));
    assert_eq!(body["reasoning"], json!({"effort": "medium", "summary": "auto"}));
}

#[test]
fn responses_may_let_the_model_find_tools() {
    let compat = json!({"supportsMidConvoSystemMessages": true, "supportsToolSearch": true});
    let mut request = request("openai-responses", "openai", compat, ThinkingLevel::Off);
    // Nothing was removed yet.
    request.messages.truncate(5);
    let body = preview_request(&request).unwrap().body;
    let call = &body["input"][3];
    let output = &body["input"][4];
    assert_eq!(call["type"], "tool_search_call");
    assert_eq!(call["arguments"], json!({"query": "b", "limit": 1}));
    assert_eq!(call["call_id"], output["call_id"]);
    assert_eq!(output["type"], "tool_search_output");
    assert_eq!(output["tools"][0]["name"], "b");
    assert_eq!(output["tools"][0]["defer_loading"], true);
    let tools = body["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[1]), (2, &json!({"type": "tool_search", "execution": "client"})));
}

#[test]
fn chat_has_tools_in_system_messages() {
    let compat = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true});
    let mut request = request("openai-completions", "acme", compat, ThinkingLevel::Off);
    request.messages.truncate(5);
    let body = preview_request(&request).unwrap().body;
    let function = json!({"type": "function", "function": {"name": "b", "description": "b",
        "parameters": {"type": "object", "properties": {}}}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "S"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "first"},
            {"role": "system", "tools": [function]},
            {"role": "system", "content": UPDATE},
            {"role": "user", "content": "two"},
        ])
    );
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
}
