//! Tools whose arguments are sampled by a schema or a grammar.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use pi::agent::ToolOutput;
use pi::ai::{
    AssistantMessage, Credential, FakeAnswer, HttpOptions, HttpProvider, Message, Model, Provider as _,
    Request, StopReason, StreamEvent, StreamOptions, ThinkingLevel, ToolChoice, Transport, decode_recorded,
    preview_request,
};
use pi::tools::{BashConfig, ImageLimits, ToolsConfig, builtins};
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::agent_bench::{AgentBench, TestTool};
use crate::support::sse_server::{Reply, SseServer};

fn request(model: &Value, messages: &[Value]) -> Request {
    let model: Model = serde_json::from_value(model.clone()).unwrap();
    let messages =
        messages.iter().map(|message| Arc::new(serde_json::from_value::<Message>(message.clone()).unwrap()));
    Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: messages.collect(),
        options: StreamOptions::default(),
    }
}

fn model(api: &str, compat: &Value) -> Value {
    json!({"id": "m", "api": api, "provider": "x", "baseUrl": "http://x", "compat": compat})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A system message with one tool of one argument that may be left out.
fn one_tool(strict: &str, schema: &Value) -> Value {
    json!({"role": "system", "toolsAdded": [{"name": "t", "description": "d",
        "parameters": {"type": "object", "properties": {"n": schema}},
        "constrainedSampling": {"type": "json_schema", "strict": strict}}]})
}

fn body(request: &Request) -> Value {
    preview_request(request).unwrap().body
}

fn declared_builtins() -> Value {
    let bash = BashConfig::new(PathBuf::from("/"));
    let tools = builtins(&ToolsConfig { home: None, images: ImageLimits::default(), bash });
    let tools: Vec<Value> =
        tools.iter().map(|tool| serde_json::to_value(tool.spec().declaration()).unwrap()).collect();
    json!({"role": "system", "toolsAdded": tools})
}

#[test]
fn each_api_has_its_place_for_a_strict_schema() {
    let plain = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let strict = json!({"type": "object", "properties": {"n": {"type": ["number", "null"]}}, "required": ["n"],
        "additionalProperties": false});
    let check = |api: &str, compat: Value, expected: Value| {
        let declared = one_tool("prefer", &json!({"type": "number"}));
        let body = body(&request(&model(api, &compat), &[declared, user("hi")]));
        let mut tool = match api {
            "bedrock-converse-stream" => body["toolConfig"]["tools"][0].clone(),
            "google-generative-ai" => body["tools"][0]["functionDeclarations"][0].clone(),
            _ => body["tools"][0].clone(),
        };
        if let Some(tool) = tool.as_object_mut() {
            tool.remove("cache_control");
        }
        assert_eq!(tool, expected, "{api} {compat}");
    };
    let anthropic = |schema: &Value| json!({"name": "t", "description": "d", "input_schema": schema});
    check("anthropic-messages", json!({}), anthropic(&plain));
    let mut expected = anthropic(&strict);
    expected["strict"] = json!(true);
    check("anthropic-messages", json!({"supportsStrictTools": true}), expected);

    let chat = |function: Value| json!({"type": "function", "function": function});
    check(
        "openai-completions",
        json!({}),
        chat(json!({"name": "t", "description": "d", "parameters": plain})),
    );
    check(
        "openai-completions",
        json!({"supportsStrictMode": true}),
        chat(json!({"name": "t", "description": "d", "parameters": strict, "strict": true})),
    );

    let responses =
        |schema: &Value| json!({"type": "function", "name": "t", "description": "d", "parameters": schema});
    let mut expected = responses(&strict);
    expected["strict"] = json!(true);
    check("openai-responses", json!({"supportsStrictMode": true}), expected);
    check("openai-responses", json!({"supportsStrictMode": false}), responses(&plain));
    // Without a word schemas count as strict, and not every server enforces them.
    let mut expected = responses(&plain);
    expected["strict"] = json!(false);
    check("openai-responses", json!({}), expected);

    let bedrock = |schema: &Value| json!({"toolSpec": {"name": "t", "description": "d", "inputSchema": {"json": schema}}});
    check("bedrock-converse-stream", json!({}), bedrock(&plain));
    let mut expected = bedrock(&strict);
    expected["toolSpec"]["strict"] = json!(true);
    check("bedrock-converse-stream", json!({"supportsStrictMode": true}), expected);

    check(
        "google-generative-ai",
        json!({"supportsStrictMode": true}),
        json!({"name": "t", "description": "d", "parametersJsonSchema": plain}),
    );
}

#[test]
fn the_built_in_tools_are_strict_where_that_is_known() {
    let check = |api: &str, compat: Value, at: &str, expected: usize| {
        let body = body(&request(&model(api, &compat), &[declared_builtins(), user("hi")]));
        let tools = body["tools"].as_array().unwrap();
        let strict = tools.iter().filter(|tool| tool.pointer(at) == Some(&Value::Bool(true)));
        assert_eq!((tools.len(), strict.count()), (7, expected), "{api} {compat}");
    };
    check("anthropic-messages", json!({"supportsStrictTools": true}), "/strict", 7);
    check("anthropic-messages", json!({}), "/strict", 0);
    check("openai-completions", json!({"supportsStrictMode": true}), "/function/strict", 7);
    check("openai-responses", json!({"supportsStrictMode": true}), "/strict", 7);
    check("openai-codex-responses", json!({}), "/strict", 7);
    check("openai-responses", json!({}), "/strict", 0);
}

#[test]
fn what_cannot_be_enforced_is_left_or_refused_as_the_tool_says() {
    let model = model("anthropic-messages", &json!({"supportsStrictTools": true}));
    let tool = |strict: &str| one_tool(strict, &json!({"type": "number", "minimum": 1}));
    let sent = body(&request(&model, &[tool("prefer"), user("hi")]));
    assert_eq!(sent["tools"][0].get("strict"), None);
    let error = preview_request(&request(&model, &[tool("require"), user("hi")])).unwrap_err();
    assert_eq!(error, "the tool \"t\" requires a strict schema: minimum cannot be enforced");
}

#[test]
fn a_tool_that_comes_later_is_as_strict_as_those_from_the_start() {
    let added = one_tool("prefer", &json!({"type": "number"}));
    let mut later = added.clone();
    later["toolsAdded"][0]["name"] = json!("later");
    let model = model(
        "anthropic-messages",
        &json!({"supportsStrictTools": true, "supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}),
    );
    let sent = body(&request(&model, &[added, user("hi"), later]));
    assert_eq!(sent["tools"][0]["strict"], true);
    let addition = &sent["messages"][1]["content"][0];
    assert_eq!(addition["type"], "tool_addition");
    assert_eq!(addition["tool"]["definition"]["strict"], true);
    assert_eq!(addition["tool"]["definition"]["input_schema"]["additionalProperties"], false);
}

/// From the schema that a service enforces to the arguments a tool gets.
#[tokio::test]
async fn what_a_strict_call_leaves_out_the_tool_does_not_get() {
    let parameters = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string"}, "limit": {"type": "number"}, "glob": {"type": ["string", "null"]},
        "edits": {"type": "array", "items": {"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}}}});
    let declared = json!({"role": "system", "toolsAdded": [{"name": "t", "parameters": parameters,
        "constrainedSampling": {"type": "json_schema", "strict": "require"}}]});
    let sent = body(&request(
        &model("openai-responses", &json!({"supportsStrictMode": true})),
        &[declared, user("hi")],
    ));
    let arguments = json!({"path": "a", "limit": null, "glob": null, "edits": [{"a": "x", "b": null}]});
    let strict = &sent["tools"][0]["parameters"];
    // The model has to write every property, and nothing else.
    assert_eq!(pi::agent::validate(strict, arguments.clone()), Ok(arguments.clone()));
    assert!(pi::agent::validate(strict, json!({"path": "a"})).is_err());

    let got = Arc::new(Mutex::new(Value::Null));
    let seen = Arc::clone(&got);
    let tool = TestTool::new("t", move |arguments, _| {
        *seen.lock().unwrap() = arguments;
        async { Ok(ToolOutput::text("ok")) }
    });
    let answers = [FakeAnswer::new().tool_call("1", "t", arguments), FakeAnswer::of_text("done")];
    AgentBench::new(answers).tools([tool.parameters(parameters)]).run("go").await;
    assert_eq!(*got.lock().unwrap(), json!({"path": "a", "glob": null, "edits": [{"a": "x"}]}));
}

const HELLO: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"r\",\"model\":\"m\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

async fn done(provider: &HttpProvider, request: &Request) -> AssistantMessage {
    let events: Vec<StreamEvent> =
        provider.stream(Arc::new(request.clone()), CancellationToken::new()).collect().await;
    match events.into_iter().last() {
        Some(StreamEvent::Done(message)) => *message,
        other => panic!("the last event is {other:?}"),
    }
}

fn recorded_refusal() -> Reply {
    let path = "tests/fixtures/ai/errors/anthropic-400-too-many-strict-tools.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let recorded: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    Reply::status(400, &[("content-type", "application/json")], recorded["bodyText"].as_str().unwrap())
}

#[tokio::test]
async fn a_service_that_refuses_strict_schemas_gets_none_from_then_on() {
    let server = SseServer::start([recorded_refusal(), Reply::sse(HELLO), Reply::sse(HELLO)]).await;
    let provider = HttpProvider::new(Transport::new(), Clock::manual(1), HttpOptions::default());
    let mut model = model("anthropic-messages", &json!({"supportsStrictTools": true}));
    model["baseUrl"] = json!(server.url());
    let request = request(&model, &[one_tool("prefer", &json!({"type": "number"})), user("hi")]);
    for _ in 0..2 {
        assert_eq!(done(&provider, &request).await.stop_reason, StopReason::Stop);
    }
    let strict: Vec<bool> =
        server.requests().iter().map(|request| request.body["tools"][0]["strict"] == true).collect();
    assert_eq!(strict, [true, false, false]);
}

#[tokio::test]
async fn a_refusal_that_is_repeated_in_vain_teaches_nothing() {
    let server = SseServer::start([recorded_refusal(), recorded_refusal(), Reply::sse(HELLO)]).await;
    let provider = HttpProvider::new(Transport::new(), Clock::manual(1), HttpOptions::default());
    let mut model = model("anthropic-messages", &json!({"supportsStrictTools": true}));
    model["baseUrl"] = json!(server.url());
    let request = request(&model, &[one_tool("prefer", &json!({"type": "number"})), user("hi")]);
    assert_eq!(done(&provider, &request).await.stop_reason, StopReason::Error);
    assert_eq!(done(&provider, &request).await.stop_reason, StopReason::Stop);
    assert_eq!(server.requests()[2].body["tools"][0]["strict"], true);
}

#[tokio::test]
async fn a_service_that_reads_nothing_between_the_turns_is_told_at_the_start() {
    let errors = [
        "Unexpected value(s) `inline-tools-2026-09-15` for the `anthropic-beta` header",
        "messages.2.output_config: Extra inputs are not permitted",
        "tools.1.defer_loading: Extra inputs are not permitted",
        "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter",
    ];
    for error in errors {
        let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": error}});
        let refusal = Reply::status(400, &[("content-type", "application/json")], &body.to_string());
        let server = SseServer::start([refusal, Reply::sse(HELLO), Reply::sse(HELLO)]).await;
        let provider = HttpProvider::new(Transport::new(), Clock::manual(1), HttpOptions::default());
        let mut model = model(
            "anthropic-messages",
            &json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true,
                "supportsMidConvoEffort": true, "forceAdaptiveThinking": true}),
        );
        (model["baseUrl"], model["reasoning"]) = (json!(server.url()), json!(true));
        let declared = one_tool("prefer", &json!({"type": "number"}));
        let more = json!({"role": "system", "sections": {"cwd": "/b"}});
        let mut request = request(&model, &[declared, user("hi"), more, user("go on")]);
        request.options.thinking = ThinkingLevel::High;
        for _ in 0..2 {
            assert_eq!(done(&provider, &request).await.stop_reason, StopReason::Stop, "{error}");
        }
        let sent = server.requests();
        let is_plain = |at: usize| {
            let body = &sent[at].body;
            let roles = body["messages"].as_array().unwrap().iter().all(|message| message["role"] == "user");
            let betas = sent[at].header("anthropic-beta").unwrap_or_default();
            let asks = ["inline", "mid-", "binding"].iter().any(|name| betas.contains(name));
            roles && body["tools"].as_array().unwrap().len() == 1 && !asks
        };
        assert_eq!([0, 1, 2].map(is_plain), [false, true, true], "{error}");
    }
}

#[tokio::test]
async fn a_refusal_is_shown_where_nothing_could_be_sent_instead() {
    // The tool insists; no tool wants it; the service never was asked to.
    let rows = [
        (json!({"supportsStrictTools": true}), one_tool("require", &json!({"type": "number"}))),
        (json!({"supportsStrictTools": true}), json!({"role": "system", "toolsAdded": [{"name": "t"}]})),
        (json!({}), one_tool("prefer", &json!({"type": "number"}))),
    ];
    for (compat, declared) in rows {
        let server = SseServer::start([recorded_refusal()]).await;
        let provider = HttpProvider::new(Transport::new(), Clock::manual(1), HttpOptions::default());
        let mut model = model("anthropic-messages", &compat);
        model["baseUrl"] = json!(server.url());
        let message = done(&provider, &request(&model, &[declared, user("hi")])).await;
        assert!(message.error_message.unwrap().starts_with("400: Too many strict tools (21)"));
        assert_eq!(server.requests().len(), 1);
    }
}

/// A system message with a tool that takes one text of a grammar.
fn grammar_tool() -> Value {
    json!({"role": "system", "toolsAdded": [{"name": "patch", "description": "d",
        "parameters": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "constrainedSampling": {"type": "grammar", "variants": {"openai_lark": "start: /.+/"}}}]})
}

#[test]
fn a_tool_with_a_grammar_takes_a_text_where_that_is_known() {
    let grammars = json!({"supportsOpenAIGrammarTools": true});
    let check = |api: &str, compat: &Value, tool: Value, choice: Value| {
        let mut request = request(&model(api, compat), &[grammar_tool(), user("hi")]);
        request.options.tool_choice = Some(ToolChoice::Tool("patch".to_owned()));
        let body = body(&request);
        assert_eq!((&body["tools"][0], &body["tool_choice"]), (&tool, &choice), "{api}");
    };
    for api in ["openai-responses", "openai-codex-responses", "azure-openai-responses"] {
        check(
            api,
            &grammars,
            json!({"type": "custom", "name": "patch", "description": "d",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}),
            json!({"type": "custom", "name": "patch"}),
        );
    }
    let parameters =
        json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    check(
        "openai-responses",
        &json!({}),
        json!({"type": "function", "name": "patch", "description": "d", "parameters": parameters, "strict": false}),
        json!({"type": "function", "name": "patch"}),
    );
    check(
        "openai-completions",
        &grammars,
        json!({"type": "custom", "custom": {"name": "patch", "description": "d",
            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}}}}),
        json!({"type": "custom", "custom": {"name": "patch"}}),
    );
    check(
        "openai-completions",
        &json!({}),
        json!({"type": "function", "function": {"name": "patch", "description": "d", "parameters": parameters}}),
        json!({"type": "function", "function": {"name": "patch"}}),
    );
}

/// The answer `events` are read as, and the conversation with it.
fn answered(api: &str, events: &[Value]) -> (AssistantMessage, Vec<Value>) {
    let model = model(api, &json!({"supportsOpenAIGrammarTools": true}));
    let mut conversation = vec![grammar_tool(), user("hi")];
    let request = request(&model, &conversation);
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let events = decode_recorded(&request, [stream.as_bytes()]);
    let Some(StreamEvent::Done(message)) = events.into_iter().last() else { panic!("no end") };
    conversation.push(serde_json::to_value(Message::from((*message).clone())).unwrap());
    let call = message.tool_calls().next().unwrap();
    conversation.push(json!({"role": "toolResult", "toolCallId": call.id, "toolName": "patch",
        "content": [{"type": "text", "text": "ok"}]}));
    (*message, conversation)
}

#[test]
fn a_text_for_a_tool_comes_and_goes_back_as_a_text() {
    let item = |input: &str, status: &str| {
        json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch",
        "input": input, "status": status})
    };
    let (message, conversation) = answered(
        "openai-responses",
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("", "in_progress")}),
            json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "a \"b\"\n"}),
            json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "c"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item("a \"b\"\nc", "completed")}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}}),
        ],
    );
    let call = message.tool_calls().next().unwrap();
    assert_eq!((&call.arguments, &call.arguments_error), (&json!({"text": "a \"b\"\nc"}), &None));
    assert_eq!(message.stop_reason, StopReason::ToolUse);

    let replay = |compat: Value| {
        let sent = body(&request(&model("openai-responses", &compat), &conversation));
        sent["input"].as_array().unwrap()[1..].to_vec()
    };
    let custom = [
        json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch", "input": "a \"b\"\nc"}),
        json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}),
    ];
    assert_eq!(replay(json!({"supportsOpenAIGrammarTools": true})), custom);
    // Calls that the server remembers as such stay such.
    assert_eq!(replay(json!({})), custom);
}

#[test]
fn a_call_of_another_model_goes_as_the_tool_is_offered_now() {
    let conversation = [
        grammar_tool(),
        user("hi"),
        json!({"role": "assistant", "provider": "y", "api": "anthropic-messages", "model": "z", "stopReason": "toolUse",
            "content": [{"type": "toolCall", "id": "c1", "name": "patch", "arguments": {"text": "t"}}]}),
        json!({"role": "toolResult", "toolCallId": "c1", "toolName": "patch", "content": []}),
    ];
    let sent =
        |api: &str| body(&request(&model(api, &json!({"supportsOpenAIGrammarTools": true})), &conversation));
    let responses = sent("openai-responses");
    assert_eq!(
        responses["input"][1],
        json!({"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "t"})
    );
    assert_eq!(responses["input"][2]["type"], "custom_tool_call_output");
    assert_eq!(
        sent("openai-completions")["messages"][1]["tool_calls"],
        json!([{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "t"}}])
    );
}

#[test]
fn chat_completions_writes_such_calls_in_its_own_way() {
    let piece = |call: Value, reason: Value| json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": reason}]});
    let (message, conversation) = answered(
        "openai-completions",
        &[
            piece(
                json!({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": ""}}),
                Value::Null,
            ),
            piece(json!({"index": 0, "custom": {"input": "a \"b\""}}), Value::Null),
            piece(json!({"index": 0, "custom": {"input": "\n"}}), json!("tool_calls")),
        ],
    );
    let call = message.tool_calls().next().unwrap();
    assert_eq!((&call.arguments, &call.arguments_error), (&json!({"text": "a \"b\"\n"}), &None));
    let compat = json!({"supportsOpenAIGrammarTools": true});
    let sent = body(&request(&model("openai-completions", &compat), &conversation));
    assert_eq!(
        sent["messages"][1]["tool_calls"],
        json!([{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "a \"b\"\n"}}])
    );
    assert_eq!(sent["messages"][2], json!({"role": "tool", "tool_call_id": "c1", "content": "ok"}));

    // Cut off in the middle, such a call must not run.
    let cut =
        piece(json!({"index": 0, "id": "c1", "custom": {"name": "patch", "input": "a"}}), json!("length"));
    let (message, _) = answered("openai-completions", &[cut]);
    assert_eq!(message.stop_reason, StopReason::Length);
    assert!(message.tool_calls().next().unwrap().arguments_error.is_some());
    let events =
        [piece(json!({"index": 0, "id": "c1", "custom": {"name": "patch", "input": "a"}}), Value::Null)];
    let (message, _) = answered("openai-completions", &events);
    assert!(message.tool_calls().next().unwrap().arguments_error.is_some());
}
