//! Every recorded stream decodes to what was recorded with it, however it is cut.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi::ai::{
    Api, AssistantBlock, AssistantMessage, Credential, MessageBuilder, Millis, Model, Request, StopReason,
    StreamEvent, StreamOptions, StreamOrder, ToolCall, decode_recorded,
};
use serde_json::{Value, json};

struct Recording {
    name: String,
    request: Request,
    body: Vec<u8>,
    expected: Value,
}

#[test]
fn recorded_streams_decode_to_what_they_say() {
    for recording in recordings() {
        let events = decode_recorded(&recording.request, [recording.body.as_slice()]);
        let message = checked(&recording, &events);
        compare(&recording, &message);
    }
}

#[test]
fn streams_decode_alike_byte_by_byte() {
    for recording in recordings() {
        let whole = done(&decode_recorded(&recording.request, [recording.body.as_slice()])).clone();
        let events = decode_recorded(&recording.request, recording.body.chunks(1));
        assert_eq!(checked(&recording, &events), whole, "{}", recording.name);
    }
}

#[test]
fn small_streams_decode_alike_at_every_cut() {
    for recording in recordings().into_iter().filter(|recording| recording.body.len() < 2_500) {
        let whole = decode_recorded(&recording.request, [recording.body.as_slice()]);
        for at in 0..recording.body.len() {
            let (head, tail) = recording.body.split_at(at);
            let events = decode_recorded(&recording.request, [head, tail]);
            assert_eq!(events, whole, "{} cut at {at}", recording.name);
        }
    }
}

#[test]
fn a_stream_that_breaks_off_never_leaves_a_call_to_run() {
    for recording in recordings().into_iter().filter(|recording| recording.body.len() < 8_000) {
        let step = recording.body.len() / 40 + 1;
        for end in (0..recording.body.len()).step_by(step) {
            let events = decode_recorded(&recording.request, [&recording.body[..end]]);
            let message = checked(&recording, &events);
            let incomplete = message.tool_calls().all(|call| call.arguments_error.is_some());
            // Without the last frames an answer may be whole; then it is the recorded one.
            if message.is_failed() {
                let text = message.error_message.as_deref().unwrap_or_default();
                assert!(!text.is_empty(), "{}", recording.name);
            } else if !incomplete {
                assert_eq!(
                    content_json(&message),
                    content_json(done(&whole(&recording))),
                    "{}",
                    recording.name
                );
            }
        }
    }
}

#[test]
fn line_ends_do_not_matter() {
    for recording in recordings().into_iter().filter(|recording| recording.body.len() < 10_000) {
        let text = String::from_utf8(recording.body.clone()).unwrap().replace("\r\n", "\n");
        for end in ["\r\n", "\r"] {
            let body = text.replace('\n', end);
            let events = decode_recorded(&recording.request, [body.as_bytes()]);
            assert_eq!(events, decode_recorded(&recording.request, [text.as_bytes()]), "{}", recording.name);
        }
    }
}

/// What the recordings lack, by frames of one line each.
#[track_caller]
fn check_chat(frames: &[&str], expected: Value) {
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let events = decode_recorded(&request("openai-completions", "x"), [body.as_bytes()]);
    let mut order = StreamOrder::default();
    events.iter().for_each(|event| order.accept(event).unwrap());
    let message = done(&events);
    let actual = json!({"content": content_json(message), "stop": message.stop_reason, "error": message.error_message});
    assert_eq!(actual, expected);
}

const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": serde_json::from_str::<Value>(arguments).unwrap()})
}

#[test]
fn calls_are_assembled_whatever_servers_get_wrong() {
    let two = json!({"content": [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")], "stop": "toolUse", "error": null});
    // Index counts from 1 and has gaps; a later fragment blanks the name; ids change without a name.
    check_chat(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"zz","function":{"name":"","arguments":":1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":5,"id":"b","function":{"name":"g","arguments":""}}]}}]}"#,
            STOP,
        ],
        two.clone(),
    );
    // No index: by id; the fragment without either belongs to the last call; arguments are an object.
    check_chat(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g"}},{"function":{"arguments":"{}"}}]}}]}"#,
            STOP,
        ],
        two,
    );
    // No id at all, or the word null: each named call is one, with an id of ours.
    check_chat(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"null","function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"g","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"h","arguments":"{}"}}]}}]}"#,
            STOP,
        ],
        json!({"content": [call("call_7_0", "f", "{}"), call("call_7_1", "f", "{}"), call("call_7_2", "g", "{}"),
            call("call_7_3", "h", "{}")], "stop": "toolUse", "error": null}),
    );
}

#[test]
fn chunks_of_content_hold_text_and_thinking() {
    check_chat(
        &[
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"reference","reference_ids":[1]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#,
        ],
        json!({"content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "content"},
            {"type": "text", "text": "ab"}], "stop": "stop", "error": null}),
    );
}

#[test]
fn damaged_json_is_repaired_where_that_is_safe() {
    check_chat(
        &["{\"choices\":[{\"delta\":{\"content\":\"a\tb\\q\\ud83d\"},\"finish_reason\":\"stop\"}]}"],
        json!({"content": [{"type": "text", "text": "a\tb\\q\u{fffd}"}], "stop": "stop", "error": null}),
    );
    check_chat(
        &["{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", "{broken", STOP],
        json!({"content": [{"type": "text", "text": "a"}], "stop": "error",
            "error": "the stream carried malformed JSON: key must be a string at line 1 column 2"}),
    );
}

#[test]
fn unknown_reasons_to_stop_are_errors_that_name_them() {
    check_chat(
        &[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"moonquake"}]}"#],
        json!({"content": [{"type": "text", "text": "a"}], "stop": "error", "error": "finish_reason: moonquake"}),
    );
}

#[test]
fn a_bare_document_in_the_stream_is_the_error_it_reports() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\"\n  }\n}\n";
    let events = decode_recorded(&request("openai-completions", "x"), [&body[..]]);
    assert_eq!(done(&events).error_message.as_deref(), Some("503: busy"));
}

#[test]
fn prepopulated_content_and_whole_inputs_are_read() {
    let frames = [
        r#"{"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"pre"}],"usage":{}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":1}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let events = decode_recorded(&request("anthropic-messages", "x"), [body.as_bytes()]);
    assert_eq!(
        content_json(done(&events)),
        json!([{"type": "text", "text": "pre"}, call("t", "f", "{\"a\":1}")])
    );
}

#[test]
fn an_unknown_api_is_an_answer_that_says_so() {
    let events = decode_recorded(&request("smoke-signals", "x"), []);
    let error = done(&events).error_message.clone().unwrap();
    assert!(error.contains("smoke-signals") && error.contains("anthropic-messages"), "{error}");
}

/// The message of a stream whose events are in order and add up to it.
fn checked(recording: &Recording, events: &[StreamEvent]) -> AssistantMessage {
    let mut order = StreamOrder::default();
    let pending = AssistantMessage::pending(Api::default(), "", "", Millis(0));
    let mut builder = MessageBuilder::new(pending);
    for event in events {
        order.accept(event).unwrap_or_else(|error| panic!("{}: {error}", recording.name));
        if let StreamEvent::Done(message) = event {
            assert_eq!(builder.message().content, message.content, "{}", recording.name);
        }
        builder.push(event);
    }
    assert!(order.is_done(), "{}", recording.name);
    builder.into_message()
}

fn whole(recording: &Recording) -> Vec<StreamEvent> {
    decode_recorded(&recording.request, [recording.body.as_slice()])
}

fn done(events: &[StreamEvent]) -> &AssistantMessage {
    match events.last() {
        Some(StreamEvent::Done(message)) => message,
        other => panic!("the last event is {other:?}"),
    }
}

fn content_json(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn compare(recording: &Recording, message: &AssistantMessage) {
    let Recording { name, expected, .. } = recording;
    let expected_blocks = expected["content"].as_array().unwrap();
    assert_eq!(message.content.len(), expected_blocks.len(), "{name}: {:?}", message.content);
    for (block, expected) in message.content.iter().zip(expected_blocks) {
        compare_block(name, block, expected, message);
    }
    let usage = &message.usage;
    for (field, actual) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cacheRead", usage.cache_read),
        ("cacheWrite", usage.cache_write),
        ("totalTokens", usage.total_tokens),
        ("reasoning", usage.reasoning.unwrap_or(0)),
        ("cacheWrite1h", usage.cache_write_1h.unwrap_or(0)),
    ] {
        assert_eq!(actual, expected["usage"][field].as_u64().unwrap_or(0), "{name}: {field}");
    }
    if let Some(cost) = expected["reportedCost"].as_f64() {
        assert_eq!(usage.cost.total, cost, "{name}");
    }
    assert_eq!(json!(message.stop_reason), expected["stopReason"], "{name}: {:?}", message.error_message);
    assert_eq!(message.raw_stop_reason.as_deref(), expected["rawStopReason"].as_str(), "{name}");
    assert_eq!(message.error_message.as_deref(), expected["errorMessage"].as_str(), "{name}");
    assert_eq!(message.response_id.as_deref(), expected["responseId"].as_str(), "{name}");
    assert_eq!(message.response_model.as_deref(), expected["model"].as_str(), "{name}");
}

fn compare_block(name: &str, block: &AssistantBlock, expected: &Value, message: &AssistantMessage) {
    match block {
        AssistantBlock::Text(text) => {
            assert_eq!(expected["type"], "text", "{name}");
            assert_eq!(text.text, expected["text"].as_str().unwrap(), "{name}");
        }
        AssistantBlock::Thinking(thinking) => {
            assert_eq!(expected["type"], "thinking", "{name}");
            assert_eq!(thinking.thinking, expected["thinking"].as_str().unwrap(), "{name}");
            assert_eq!(thinking.redacted, expected["redacted"] == true, "{name}");
            let signature = thinking.thinking_signature.as_deref();
            if let details @ Value::Array(_) = &expected["reasoningDetails"] {
                let kept: Value = serde_json::from_str(signature.unwrap()).unwrap();
                assert_eq!(without_nulls(&kept), without_nulls(details), "{name}");
            } else {
                let expected = expected["signature"].as_str().or_else(|| expected["field"].as_str());
                assert_eq!(signature, expected, "{name}");
            }
        }
        AssistantBlock::ToolCall(call) => {
            assert_eq!(expected["type"], "toolCall", "{name}");
            assert_eq!(
                (json!(call.id), json!(call.name)),
                (expected["id"].clone(), expected["name"].clone()),
                "{name}"
            );
            compare_arguments(name, call, expected, message);
        }
        AssistantBlock::Unknown(block) => panic!("{name}: {block}"),
    }
}

fn compare_arguments(name: &str, call: &ToolCall, expected: &Value, message: &AssistantMessage) {
    if expected["argumentsIncomplete"] == true {
        let may_run = call.arguments_error.is_none() && !message.is_failed();
        assert!(!may_run || message.stop_reason == StopReason::Length, "{name}: {call:?}");
    } else {
        assert_eq!(call.arguments_error, None, "{name}");
        assert_eq!(call.arguments, expected["arguments"], "{name}");
    }
}

/// Order and explicit nulls differ between writers of the same details.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

fn recordings() -> Vec<Recording> {
    let mut recordings = Vec::new();
    for api in ["anthropic-messages", "openai-completions"] {
        let folder = fixtures().join(api);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sse") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let expected = fs::read_to_string(folder.join(format!("{name}.expected.json"))).unwrap();
            recordings.push(Recording {
                request: request(api, &name),
                body: fs::read(&path).unwrap(),
                expected: serde_json::from_str(&expected).unwrap(),
                name,
            });
        }
    }
    assert!(recordings.len() > 40);
    recordings
}

/// A request that the recording called `name` answers.
fn request(api: &str, name: &str) -> Request {
    let finishes = !name.starts_with("snowflake");
    let model: Model = serde_json::from_value(json!({
        "id": "asked-for", "api": api, "provider": "recorded",
        "compat": {"supportsFinishReason": finishes},
    }))
    .unwrap();
    Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: Vec::new(),
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ai")
}
