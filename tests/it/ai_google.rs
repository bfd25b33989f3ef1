//! What recordings of Google's API lack: odd streams, and the parts of requests
//! that depend on the generation of the model.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;

use pi::ai::{
    AssistantMessage, Credential, FailureClass, Request, SignIn, StreamEvent, StreamOptions, StreamOrder,
    ThinkingLevel, ToolChoice, VERTEX_TEMPLATE, VertexPlace, classify, decode_recorded, preview_request,
    retry_delay,
};
use serde_json::{Value, json};

fn request(model: Value, messages: Value) -> Request {
    let messages: Vec<pi::ai::Message> = serde_json::from_value(messages).unwrap();
    Request {
        model: Arc::new(serde_json::from_value(model).unwrap()),
        credential: Credential::None,
        messages: messages.into_iter().map(Arc::new).collect(),
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}

/// The content, stop reason and error of `body`.
fn read(body: &str) -> AssistantMessage {
    let request = request(json!({"id": "m", "api": "google-generative-ai", "provider": "google"}), json!([]));
    let decode = |chunks: Vec<&[u8]>| {
        let events = decode_recorded(&request, chunks);
        let mut order = StreamOrder::default();
        events.iter().for_each(|event| order.accept(event).unwrap());
        match events.last() {
            Some(StreamEvent::Done(message)) => (**message).clone(),
            other => panic!("the last event is {other:?}"),
        }
    };
    let message = decode(vec![body.as_bytes()]);
    assert_eq!(decode(body.as_bytes().chunks(1).collect()), message, "byte by byte");
    message
}

fn outline(message: &AssistantMessage) -> Value {
    json!({"content": message.content, "stop": message.stop_reason, "error": message.error_message})
}

/// By parts, each in a chunk of its own, then `STOP`.
#[track_caller]
fn check_parts(parts: &[Value], expected: Value) {
    let chunks =
        parts.iter().map(|part| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
    let mut body: String = chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    body += "data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":\"STOP\"}]}\r\n\r\n";
    assert_eq!(json!(read(&body).content), expected);
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

#[test]
fn parts_in_a_row_are_one_block_unless_two_signatures_would_meet() {
    check_parts(
        &[
            json!({"text": "hm", "thought": true}),
            json!({"text": "m", "thought": true, "thoughtSignature": "AAAA"}),
            json!({"text": "a"}),
            json!({"text": "", "thought": true}),
            json!({"text": "b", "thoughtSignature": "BBBB"}),
            json!({"text": "c", "thoughtSignature": "BBBB"}),
            json!({"text": "d"}),
            json!({"thoughtSignature": "CCCC"}),
        ],
        json!([
            {"type": "thinking", "thinking": "hmm", "thinkingSignature": "AAAA"},
            {"type": "text", "text": "abcd", "textSignature": "BBBB"},
            {"type": "text", "text": "", "textSignature": "CCCC"},
        ]),
    );
}

#[test]
fn calls_arrive_whole_and_have_ids_of_their_own() {
    check_parts(
        &[
            json!({"functionCall": {"name": "f", "args": {"x": 1}}}),
            json!({"functionCall": {"name": "f", "id": "a", "args": null}}),
            json!({"functionCall": {"name": "f", "id": "a"}, "thoughtSignature": "AAAA"}),
            json!({"executableCode": {"code": "1"}, "thoughtSignature": "BBBB"}),
            json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
            json!({"fileData": {}}),
            json!({"toolCall": {"x": 1}}),
            json!({"somethingNew": [1]}),
            json!({"text": ""}),
        ],
        json!([
            call("call_7_0", "f", json!({"x": 1})),
            call("a", "f", json!({})),
            {"type": "toolCall", "id": "call_7_2", "name": "f", "arguments": {}, "thoughtSignature": "AAAA"},
        ]),
    );
}

#[test]
fn arguments_come_by_path_and_count_only_when_they_are_whole() {
    let start = || json!({"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "AAAA"});
    let piece = |text: &str, more: bool| {
        json!({"functionCall": {"willContinue": true,
            "partialArgs": [{"jsonPath": "$.x", "stringValue": text, "willContinue": more}]}})
    };
    check_parts(
        &[start(), piece("a", true), piece("b", false), json!({"functionCall": {}}), json!({"text": "t"})],
        json!([
            {"type": "toolCall", "id": "call_7_0", "name": "f", "arguments": {"x": "ab"}, "thoughtSignature": "AAAA"},
            {"type": "text", "text": "t"},
        ]),
    );
    let whole = json!({"functionCall": {"name": "f", "partialArgs": [
        {"jsonPath": "$.n", "numberValue": 2}, {"jsonPath": "$.b", "boolValue": true}, {"jsonPath": "$.z", "nullValue": "NULL_VALUE"}]}});
    check_parts(&[whole], json!([call("call_7_0", "f", json!({"n": 2, "b": true, "z": null}))]));
    // A call that ends in a string does not run, whatever follows.
    let next = json!({"functionCall": {"name": "g", "args": {}}});
    for parts in [vec![start(), piece("a", true)], vec![start(), piece("a", true), next.clone()]] {
        let body: String = parts
            .iter()
            .map(|part| json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}))
            .map(|chunk| format!("data: {chunk}\n\n"))
            .collect();
        let message = read(&body);
        let first = message.tool_calls().next().unwrap();
        let error = first.arguments_error.as_deref().unwrap_or_default();
        assert!(error.contains("\n\nReceived arguments:\n{\"x\":\"a"), "{error}");
        assert_eq!(first.arguments, json!({ "x": "a" }));
    }
    // One that lacks only its end does.
    check_parts(
        &[start(), piece("a", false), next],
        json!([
            {"type": "toolCall", "id": "call_7_0", "name": "f", "arguments": {"x": "a"}, "thoughtSignature": "AAAA"},
            call("call_7_1", "g", json!({})),
        ]),
    );
}

#[track_caller]
fn check_stream(body: &str, expected: Value) {
    assert_eq!(outline(&read(body)), expected);
}

#[test]
fn every_reason_to_stop_is_read() {
    let chunk = |candidate: Value| format!("data: {}\n\n", json!({"candidates": [candidate]}));
    let check = |reason: &str, message: Value, stop: &str, error: Value| {
        let candidate =
            json!({"content": {"parts": [{"text": "t"}]}, "finishReason": reason, "finishMessage": message});
        let text = json!([{"type": "text", "text": "t"}]);
        check_stream(&chunk(candidate), json!({"content": text, "stop": stop, "error": error}));
    };
    check("STOP", json!("fine"), "stop", json!(null));
    check("MAX_TOKENS", json!(null), "length", json!(null));
    check("SAFETY", json!(null), "error", json!("finishReason: SAFETY"));
    check("OTHER", json!("why"), "error", json!("finishReason: OTHER (why)"));
    check("", json!(null), "error", json!("stream ended without a finish reason"));
    let classes = [
        ("finishReason: MALFORMED_FUNCTION_CALL (x)", FailureClass::ToolUseFailed),
        ("finishReason: RECITATION", FailureClass::Refused),
        ("blockReason: PROHIBITED_CONTENT", FailureClass::Refused),
        ("stream ended without a finish reason", FailureClass::Network),
        ("UNAVAILABLE: The service is currently unavailable.", FailureClass::Overloaded),
        ("DEADLINE_EXCEEDED: Deadline expired before operation could complete.", FailureClass::Network),
    ];
    for (text, class) in classes {
        assert_eq!(classify(text, None), class, "{text}");
    }
}

#[test]
fn a_refused_prompt_has_no_candidate() {
    check_stream(
        "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\",\"blockReasonMessage\":\"no\"}}\n\n",
        json!({"content": [], "stop": "error", "error": "blockReason: SAFETY (no)"}),
    );
}

#[test]
fn other_candidates_and_bookkeeping_chunks_change_nothing() {
    let chunks = [
        json!({"usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 2,
            "thoughtsTokenCount": 1, "toolUsePromptTokenCount": 5, "totalTokenCount": 18}, "modelVersion": "m"}),
        json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}}, {"index": 0, "content": {"parts": [{"text": "yes"}]}}]}),
        json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"trafficType": "ON_DEMAND"}}),
        json!({"candidates": []}),
        json!({}),
    ];
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let message = read(&(body + "data: [DONE]\n\n"));
    assert_eq!(json!(message.content), json!([{"type": "text", "text": "yes"}]));
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.total_tokens), (11, 4, 3, 18));
    assert_eq!((usage.reasoning, message.response_model), (Some(1), None));
}

#[test]
fn errors_are_found_wherever_they_stand() {
    let text = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"t\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n";
    let error = "{\r\n  \"error\": {\r\n    \"code\": 503,\r\n    \"message\": \"busy\",\r\n    \"status\": \"UNAVAILABLE\"\r\n  }\r\n}\r\n";
    let expected =
        || json!({"content": [{"type": "text", "text": "t"}], "stop": "error", "error": "UNAVAILABLE: busy"});
    check_stream(&format!("{text}{error}"), expected());
    check_stream(&format!("{text}[{error}]"), expected());
    check_stream(&format!("{text}data: {}\n\n", error.replace("\r\n", "")), expected());
    check_stream(error, json!({"content": [], "stop": "error", "error": "UNAVAILABLE: busy"}));
}

#[test]
fn a_body_of_bare_json_is_read_like_a_stream() {
    let first = r#"{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}"#;
    let last = r#"{"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]}"#;
    let whole = json!({"content": [{"type": "text", "text": "ab"}], "stop": "stop", "error": null});
    check_stream(&format!("[{first},\r\n{last}\r\n]\r\n"), whole.clone());
    check_stream(&format!("{first}\n\n{last}"), whole);
    let failed = r#"[{"error": {"code": 400, "message": "m", "status": "S"}}]"#;
    check_stream(failed, json!({"content": [], "stop": "error", "error": "S: m"}));
    let cut = read(&format!("[{first},\n{}", &last[..20]));
    assert_eq!(json!(cut.stop_reason), "error");
}

#[test]
fn the_quota_decides_whether_waiting_helps() {
    let check = |quota: &str, class: FailureClass| {
        let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 48.9s.",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48s"},
        ]}});
        let text = read(&body.to_string()).error_message.unwrap();
        assert_eq!(classify(&text, None), class, "{text}");
        assert_eq!(retry_delay(&text).unwrap().as_secs(), 48);
    };
    check("GenerateContentInputTokensPerModelPerMinute-FreeTier", FailureClass::RateLimit);
    check("GenerateRequestsPerDayPerProjectPerModel-FreeTier", FailureClass::Quota);
}

/// A Gemini model of that id.
fn model(id: &str) -> Value {
    json!({"id": id, "api": "google-generative-ai", "provider": "google", "baseUrl": "https://g/v1beta/",
        "input": ["text", "image"], "maxTokens": 100})
}

fn body(request: &Request) -> Value {
    preview_request(request).unwrap().body
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn answer(model: &str, content: Value) -> Value {
    json!({"role": "assistant", "api": "google-generative-ai", "provider": "google", "model": model, "content": content})
}

fn result(id: &str, content: Value) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "content": content})
}

#[test]
fn a_request_has_all_that_was_asked_for() {
    let declared = json!({"role": "system", "content": "S", "toolsAdded": [
        {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"k": {"const": "v"}}}}]});
    let mut model = model("gemini-2.5-flash");
    model["reasoning"] = json!(true);
    model["maxTokens"] = json!(5_000);
    let mut request = request(model, json!([declared, user("hi")]));
    request.options.thinking = ThinkingLevel::Low;
    request.options.temperature = Some(0.5);
    request.options.top_p = Some(0.9);
    request.options.stop_sequences = vec!["END".to_owned()];
    request.options.tool_choice = Some(ToolChoice::Tool("f".to_owned()));
    request.options.extra_body.insert("safetySettings".to_owned(), json!([]));
    let preview = preview_request(&request).unwrap();
    assert_eq!(preview.url, "https://g/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(
        preview.body,
        json!({
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "S"}]},
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema":
                {"type": "object", "properties": {"k": {"enum": ["v"]}}}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 5_000, "stopSequences": ["END"],
                "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 2_048}},
            "safetySettings": [],
        })
    );
}

#[test]
fn tool_choice_and_streamed_arguments_share_a_place() {
    let check = |compat: Value, choice: Option<ToolChoice>, expected: Value| {
        let mut model = model("gemini-3-pro-preview");
        model["compat"] = compat;
        let mut request =
            request(model, json!([{"role": "system", "toolsAdded": [{"name": "f"}]}, user("hi")]));
        request.options.tool_choice = choice;
        assert_eq!(body(&request)["toolConfig"]["functionCallingConfig"], expected);
    };
    check(json!({}), None, json!(null));
    check(json!({}), Some(ToolChoice::Auto), json!({"mode": "AUTO"}));
    check(json!({}), Some(ToolChoice::None), json!({"mode": "NONE"}));
    let streams = || json!({"streamFunctionCallArguments": true});
    check(streams(), None, json!({"mode": "AUTO", "streamFunctionCallArguments": true}));
    check(streams(), Some(ToolChoice::Any), json!({"mode": "ANY", "streamFunctionCallArguments": true}));
}

#[test]
fn model_ids_are_one_segment_of_the_path() {
    let check = |id: &str, expected: &str| {
        let url = preview_request(&request(model(id), json!([user("hi")]))).unwrap().url;
        assert_eq!(url, format!("https://g/v1beta/{expected}:streamGenerateContent?alt=sse"));
    };
    check("models/gemini-4-argon", "models/gemini-4-argon");
    check("tunedModels/my-1", "tunedModels/my-1");
    check("a/b?c:d", "models/a%2Fb%3Fc%3Ad");
}

#[test]
fn ids_and_images_of_results_depend_on_the_generation() {
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let messages = |id: &str| {
        let calls = json!([{"type": "toolCall", "id": "a", "name": "see", "arguments": {}, "thoughtSignature": "c2ln"},
            {"type": "toolCall", "id": "b", "name": "see", "arguments": {}}]);
        let failed = json!({"role": "toolResult", "toolCallId": "b", "isError": true,
            "content": [{"type": "text", "text": "no"}]});
        json!([user("hi"), answer(id, calls), result("a", json!([image])), failed, user("next")])
    };
    let blob = json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}});
    let contents = |id: &str| body(&request(model(id), messages(id)))["contents"].clone();
    let see = json!({"output": "(see attached image)"});
    let newer = contents("gemini-3-flash-preview");
    assert_eq!(newer[1]["parts"][0]["functionCall"]["id"], "a");
    assert_eq!(
        newer[2]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "see", "response": see, "parts": [blob]}},
            {"functionResponse": {"id": "b", "name": "see", "response": {"error": "no"}}},
            {"text": "next"},
        ])
    );
    let older = contents("gemini-2.5-flash");
    assert_eq!(older[1]["parts"][0]["functionCall"].get("id"), None);
    assert_eq!(
        older[2]["parts"],
        json!([
            {"functionResponse": {"name": "see", "response": see}},
            {"functionResponse": {"name": "see", "response": {"error": "no"}}},
            {"text": "Images of the tool results:"},
            blob,
            {"text": "next"},
        ])
    );
}

#[test]
fn signatures_stay_on_their_parts_and_with_their_model() {
    let content = json!([
        {"type": "thinking", "thinking": "t", "thinkingSignature": "AAAA"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "text", "text": "a", "textSignature": "BBBB"},
        {"type": "text", "text": "", "textSignature": "CCCC"},
        {"type": "text", "text": "", "textSignature": "not base64"},
        {"type": "text", "text": "b"},
    ]);
    let parts = |id: &str| {
        body(&request(model("gemini-2.5-pro"), json!([user("hi"), answer(id, content.clone())])))["contents"]
            [1]["parts"]
            .clone()
    };
    assert_eq!(
        parts("gemini-2.5-pro"),
        json!([
            {"text": "t", "thought": true, "thoughtSignature": "AAAA"},
            {"text": "unsigned", "thought": true},
            {"text": "a", "thoughtSignature": "BBBB"},
            {"text": "", "thoughtSignature": "CCCC"},
            {"text": "b"},
        ])
    );
    assert_eq!(parts("another"), json!([{"text": "a"}, {"text": "b"}]));
}

#[test]
fn the_first_unsigned_call_of_each_step_gets_the_stand_in() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {}, "thoughtSignature": "c2ln"});
    let done = || json!([{"type": "text", "text": "done"}]);
    let messages = json!([
        user("one"),
        answer("other", json!([call("1")])),
        result("1", done()),
        answer("other", done()),
        user("two"),
        answer("other", json!([call("2"), call("3")])),
        result("2", done()),
        result("3", done()),
        answer("gemini-3.1-pro-preview", json!([call("4"), call("5")])),
        result("4", done()),
        result("5", done()),
    ]);
    let signatures = |id: &str| -> Vec<Value> {
        let body = body(&request(model(id), messages.clone()));
        let parts = body["contents"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|content| content["parts"].as_array().unwrap());
        parts
            .filter(|part| part.get("functionCall").is_some())
            .map(|part| part["thoughtSignature"].clone())
            .collect()
    };
    let stand_in = "skip_thought_signature_validator";
    assert_eq!(
        json!(signatures("gemini-3.1-pro-preview")),
        json!([stand_in, stand_in, null, "c2ln", "c2ln"])
    );
    assert_eq!(json!(signatures("gemini-2.5-pro")), json!([null, null, null, null, null]));
}

fn at_vertex(api: &str, id: &str, credential: Credential) -> Request {
    let model = json!({"id": id, "api": api, "provider": "google-vertex", "baseUrl": VERTEX_TEMPLATE, "maxTokens": 100});
    Request { credential, ..request(model, json!([user("hi")])) }
}

fn signed_in(location: &str) -> Credential {
    let place = VertexPlace { project: "proj".to_owned(), location: location.to_owned() };
    Credential::SignedIn(Box::new(SignIn {
        token: "t".to_owned(),
        base_url: Some(place.base_url(VERTEX_TEMPLATE)),
        account_id: None,
    }))
}

#[test]
fn vertex_is_addressed_by_project_and_location() {
    let check = |api: &str, id: &str, credential: Credential, expected: &str| {
        assert_eq!(preview_request(&at_vertex(api, id, credential)).unwrap().url, expected);
    };
    check(
        "google-vertex",
        "gemini-2.5-pro",
        signed_in("us-central1"),
        "https://us-central1-aiplatform.googleapis.com/v1/projects/proj/locations/us-central1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    );
    check(
        "anthropic-vertex",
        "claude-sonnet-4-5@20250929",
        signed_in("global"),
        "https://aiplatform.googleapis.com/v1/projects/proj/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
    );
    check(
        "google-vertex",
        "google/gemini-2.5-pro",
        Credential::ApiKey("k".to_owned()),
        "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    );
    let error =
        preview_request(&at_vertex("google-vertex", "m", Credential::Bearer("t".to_owned()))).unwrap_err();
    assert_eq!(error, "no project for Vertex AI; set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION");
}

#[test]
fn claude_on_vertex_gets_a_messages_body_without_a_model() {
    let preview =
        preview_request(&at_vertex("anthropic-vertex", "claude-opus-4-6", signed_in("us-east5"))).unwrap();
    let body = &preview.body;
    assert_eq!((body.get("model"), &body["anthropic_version"]), (None, &json!("vertex-2023-10-16")));
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(100), &json!(true)));
    let names: Vec<&str> = preview.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"authorization") && !names.contains(&"anthropic-version"), "{names:?}");
}

#[test]
fn claude_on_vertex_answers_as_it_does_at_home() {
    let path = "tests/fixtures/ai/anthropic-messages/thinking-signature-tool.sse";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let body = std::fs::read(path).unwrap();
    let content = |api: &str| {
        let events = decode_recorded(&at_vertex(api, "claude", Credential::None), [body.as_slice()]);
        match events.last() {
            Some(StreamEvent::Done(message)) => (message.content.clone(), message.stop_reason),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(content("anthropic-vertex"), content("anthropic-messages"));
}
