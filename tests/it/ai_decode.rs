//! Every recorded stream decodes to the result recorded with it, however it is split.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pi::ai::{
    Api, AssistantBlock, AssistantMessage, Credential, FailureClass, MessageBuilder, Millis, Model, Request,
    StopReason, StreamEvent, StreamOptions, StreamOrder, ToolCall, decode_recorded, parse_lenient,
};
use serde_json::{Value, json};

use crate::support::bedrock;

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
                // A call that counts as whole is one of the whole answer.
                let whole = whole(&recording);
                for call in message.tool_calls().filter(|call| call.arguments_error.is_none()) {
                    let same =
                        |other: &ToolCall| other.name == call.name && other.arguments == call.arguments;
                    assert!(done(&whole).tool_calls().any(same), "{} cut at {end}: {call:?}", recording.name);
                    assert_ne!(
                        recording.request.model.api.as_str(),
                        "openai-completions",
                        "{}",
                        recording.name
                    );
                }
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
fn calls_of_a_stream_that_breaks_off_keep_what_had_arrived() {
    let mut n_kept = 0;
    for recording in recordings().into_iter().filter(|recording| recording.body.len() < 8_000) {
        let step = recording.body.len() / 40 + 1;
        for end in (0..recording.body.len()).step_by(step) {
            let events = decode_recorded(&recording.request, [&recording.body[..end]]);
            let message = checked(&recording, &events);
            for (block_idx, block) in message.content.iter().enumerate().filter(|_| message.is_failed()) {
                let AssistantBlock::ToolCall(call) = block else { continue };
                let arrived: String = events.iter().filter_map(|event| delta(event, block_idx)).collect();
                assert_eq!(*call.readable_arguments(), parse_lenient(&arrived), "{}", recording.name);
                assert!(call.arguments_error.is_none() || *call.sent_arguments() == json!({}));
                n_kept += usize::from(call.arguments_error.is_some() && call.arguments != json!({}));
            }
        }
    }
    assert!(n_kept > 20, "{n_kept}");
}

fn delta(event: &StreamEvent, block_idx: usize) -> Option<&str> {
    match event {
        StreamEvent::Delta { index, text } if *index == block_idx => Some(text),
        _ => None,
    }
}

#[test]
fn line_ends_do_not_matter() {
    let text = recordings().into_iter().filter(|recording| std::str::from_utf8(&recording.body).is_ok());
    for recording in text.filter(|recording| recording.body.len() < 10_000) {
        let text = String::from_utf8(recording.body.clone()).unwrap().replace("\r\n", "\n");
        for end in ["\r\n", "\r"] {
            let body = text.replace('\n', end);
            let events = decode_recorded(&recording.request, [body.as_bytes()]);
            assert_eq!(events, decode_recorded(&recording.request, [text.as_bytes()]), "{}", recording.name);
        }
    }
}

#[test]
fn the_code_of_an_error_in_a_stream_decides_whatever_its_text_says() {
    let hostile = "prompt is too long, billing, timeout, invalid api key";
    let check = |api: &str, frame: Value, expected: FailureClass| {
        let body = format!("event: error\ndata: {frame}\n\n");
        let events = decode_recorded(&request(api, "x"), [body.as_bytes()]);
        let class = done(&events).failure.as_ref().map(|failure| failure.class);
        assert_eq!(class, Some(expected), "{api}: {frame}");
    };
    let error = json!({"type": "overloaded_error", "message": hostile});
    check("anthropic-messages", json!({"type": "error", "error": error}), FailureClass::Overloaded);
    let error = json!({"code": "rate_limit_exceeded", "message": hostile});
    check("openai-completions", json!({ "error": error }), FailureClass::RateLimit);
    check("openai-responses", json!({"type": "error", "error": error}), FailureClass::RateLimit);
    let error = json!({"code": 503, "status": "UNAVAILABLE", "message": hostile});
    check("google-generative-ai", json!({ "error": error }), FailureClass::Overloaded);
}

/// Cases missing from the recordings, by frames of one line each.
#[track_caller]
fn check_chat(frames: &[&str], expected: Value) {
    check_frames("openai-completions", frames, &expected);
}

#[track_caller]
fn check_frames(api: &str, frames: &[&str], expected: &Value) {
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let recording = Recording {
        name: String::new(),
        request: request(api, "x"),
        body: body.into_bytes(),
        expected: json!(null),
    };
    let message = checked(&recording, &whole(&recording));
    let actual = json!({"content": content_json(&message), "stop": message.stop_reason, "error": message.error_message});
    assert_eq!(&actual, expected);
}

const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": serde_json::from_str::<Value>(arguments).unwrap()})
}

/// A complete body, with its expected result.
#[track_caller]
fn check_body(api: &str, body: &str, expected: &Value) {
    let body = body.as_bytes().to_vec();
    let recording =
        Recording { name: String::new(), request: request(api, "x"), body, expected: json!(null) };
    let message = checked(&recording, &whole(&recording));
    let actual = json!({"content": content_json(&message), "stop": message.stop_reason, "error": message.error_message});
    assert_eq!(&actual, expected);
}

#[test]
fn errors_in_a_stream_are_read_wherever_they_stand() {
    let hello = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let text = json!([{"type": "text", "text": "hi"}]);
    let check = |end: &str, error: &str| {
        let expected = json!({"content": text, "stop": "error", "error": error});
        check_body("openai-completions", &format!("{hello}{end}\n\n"), &expected);
    };
    check(r#"data: {"object":"error","message":"too long","code":400}"#, "400: too long");
    check(
        "event: error\ndata: {\"message\":\"Overloaded\",\"type\":\"server_error\"}",
        "server_error: Overloaded",
    );
    check(r#"data: {"code":"busy","error":"come back later"}"#, "busy: come back later");
    check(r#"data: {"choices":[],"x_groq":{"error":"model went away"}}"#, "model went away");
    check(
        r#"error: {"code":500,"message":"context size exceeded","type":"server_error"}"#,
        "server_error: context size exceeded",
    );
    check_body(
        "anthropic-messages",
        "event: error\ndata: {\"type\":\"error\",\"message\":\"Overloaded\"}\n\n",
        &json!({"content": [], "stop": "error", "error": "Overloaded"}),
    );
}

#[test]
fn what_is_odd_and_not_needed_costs_no_answer() {
    let done = json!({"content": [{"type": "text", "text": "hi"}], "stop": "stop", "error": null});
    let end = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    for odd in [
        r#"{"id":7,"model":{},"choices":[]}"#,
        r#"{"choices":[{"index":"0","delta":{"reasoning_details":{}}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":"12","completion_tokens":1.5,"prompt_tokens_details":[]}}"#,
        r#"{"choices":[],"usage":{"cost_details":{"upstream_inference_cost":"0.01"},"is_byok":"false"}}"#,
        r#"{"choices":[],"usage":[],"x_groq":"none","service_tier":4}"#,
        "",
    ] {
        check_frames("openai-completions", &[odd, end], &done);
    }
    // Without text, a frame only shows that the server is alive.
    check_body("openai-completions", &format!("event: ping\ndata:\n\ndata: {end}\n\n"), &done);
}

#[test]
fn halves_of_pairs_cost_no_call() {
    let calls =
        |arguments: &str| json!({"content": [call("a", "f", arguments)], "stop": "toolUse", "error": null});
    let chat = |piece: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{piece}"}}}}]}}}}]}}"#
        )
    };
    let pieces = [chat(r#"{\"x\":\""#), chat(r"\ud83d"), chat(r#"\"}"#)];
    let frames: Vec<&str> = pieces.iter().map(String::as_str).chain([STOP]).collect();
    check_frames("openai-completions", &frames, &calls("{\"x\":\"\u{fffd}\"}"));
    // Written by the model itself.
    let written = chat(r#"{\"x\":\"\\ud83d\"}"#);
    check_frames("openai-completions", &[&written, STOP], &calls("{\"x\":\"\u{fffd}\"}"));
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
fn unknown_events_blocks_and_deltas_may_have_any_shape() {
    let frames = [
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{}}}"#,
        r#"{"type":"moon","delta":7,"message":"x","content_block":[],"index":"y","usage":1}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"moon","text":{"a":1},"id":7}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lost"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"moon_delta","text":["lost"]}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"kept"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let content = json!([{"type": "text", "text": "kept"}]);
    check_frames("anthropic-messages", &frames, &json!({"content": content, "stop": "stop", "error": null}));
    // Known values must be exact.
    let frames =
        [frames[0], r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#];
    let error =
        "the stream carried malformed JSON: invalid type: integer `7`, expected a string at line 1 column 77";
    check_frames("anthropic-messages", &frames, &json!({"content": [], "stop": "error", "error": error}));
}

/// Like [`check_frames`] for Responses: blocks and stop reason.
#[track_caller]
fn check_responses(frames: &[&str], content: Value, stop: &str, error: Option<&str>) {
    check_frames("openai-responses", frames, &json!({"content": content, "stop": stop, "error": error}));
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

#[test]
fn full_strings_replace_what_the_pieces_added_up_to() {
    check_responses(
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Helo"}"#,
            r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Hello"}"#,
            r#"{"type":"response.output_text.done","output_index":0,"content_index":1,"text":" world"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_2"}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"delta":"a"}"#,
            r#"{"type":"response.refusal.delta","output_index":1,"content_index":1,"delta":"no"}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_2","phase":"commentary",
                "content":[{"type":"output_text","text":"A"},{"type":"refusal","refusal":"No"}]}}"#
                .replace('\n', "")
                .as_str(),
            COMPLETED,
        ],
        json!([{"type": "text", "text": "Hello world"},
            {"type": "text", "text": "ANo", "textSignature": r#"{"v":1,"id":"msg_2","phase":"commentary"}"#}]),
        "stop",
        None,
    );
}

#[test]
fn reasoning_is_shown_in_parts_and_kept_whole() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"raw"}],"status":null}"#;
    check_responses(
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_0"}}"#,
            r#"{"type":"response.reasoning_text.delta","output_index":0,"delta":"ra"}"#,
            &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"reasoning","id":"rs_2"}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":1,"summary_index":0,"delta":"one"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":1,"summary_index":1,"delta":"two"}"#,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
        ],
        json!([{"type": "thinking", "thinking": "raw", "thinkingSignature": item},
            {"type": "thinking", "thinking": "one\n\ntwo"}]),
        "length",
        None,
    );
}

#[test]
fn encrypted_reasoning_may_come_with_the_last_event() {
    let frames = |id: &str| {
        [
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#.to_owned(),
            format!(
                r#"{{"type":"response.completed","response":{{"output":[{{"type":"reasoning","id":"{id}","encrypted_content":"E"}}]}}}}"#
            ),
        ]
    };
    let kept = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}"#;
    for id in ["rs_1", "rotated"] {
        let frames = frames(id);
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let content = json!([{"type": "thinking", "thinking": "", "thinkingSignature": kept}]);
        check_responses(&frames, content, "stop", None);
    }
}

#[test]
fn unknown_events_are_skipped() {
    check_responses(
        &[
            r#"{"type":"response.moon.delta","delta":{"phase":1},"text":[],"item":7,"response":"x","output_index":0}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"moon_call","content":"?"}}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"lost"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"moon_call"}}"#,
            "[DONE]",
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"text":"a"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"text":"a"}]}}"#,
            r#"{"type":"response.done","response":{}}"#,
            "not even JSON",
        ],
        json!([{"type": "text", "text": "a"}]),
        "stop",
        None,
    );
}

#[test]
fn a_tool_that_takes_text_gets_it_as_its_input() {
    let expected =
        json!([call("c|ctc_1", "patch", r#"{"input":"a \"b\"\n"}"#), call("d", "patch", r#"{"input":""}"#)]);
    let item = r#""item":{"type":"custom_tool_call","call_id":"c","id":"ctc_1","name":"patch""#;
    check_responses(
        &[
            &format!(r#"{{"type":"response.output_item.added","output_index":0,{item}}}}}"#),
            r#"{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"a \"b"}"#,
            r#"{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"\"\n"}"#,
            &format!(
                r#"{{"type":"response.output_item.done","output_index":0,{item},"input":"a \"b\"\n"}}}}"#
            ),
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","call_id":"d","name":"patch","input":""}}"#,
            COMPLETED,
        ],
        expected,
        "toolUse",
        None,
    );
}

#[test]
fn errors_are_read_flat_and_nested() {
    let check = |frame: &str, expected: &str| check_responses(&[frame], json!([]), "error", Some(expected));
    check(r#"{"type":"error","code":"server_error","message":"m","param":null}"#, "server_error: m");
    check(r#"{"type":"error","code":null,"message":"m"}"#, "unknown: m");
    check(
        r#"{"type":"error","error":{"type":"server_error","code":null,"message":"m"}}"#,
        "unknown: m (server_error)",
    );
    check(r#"{"type":"error","error":"m"}"#, "m");
    check(r#"{"error":{"code":"c","message":"m"}}"#, "c: m");
    check(
        r#"{"type":"error","error":{"type":"usage_limit_reached","message":"m","plan_type":"plus","resets_at":1795253027}}"#,
        "usage_limit_reached: m (plan plus, resets at 2026-11-21 09:23 UTC)",
    );
    check(
        r#"{"type":"response.failed","response":{"error":null}}"#,
        "unknown: the response failed, and the server does not say why",
    );
    check(
        r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#,
        "incomplete: content_filter",
    );
    check(r#"{"type":"response.completed","response":{"status":"cancelled"}}"#, "status: cancelled");
}

#[test]
fn what_the_processing_tier_costs_is_counted() {
    let check = |model: &str, tier: &str, expected: f64| {
        let mut request = request("openai-responses", "x");
        let fields = json!({"id": model, "api": "openai-responses", "provider": "openai", "cost": {"input": 1, "output": 2}});
        request.model = Arc::new(serde_json::from_value(fields).unwrap());
        let body = format!(
            "data: {{\"type\":\"response.completed\",\"response\":{{\"service_tier\":{tier},\"usage\":{{\"input_tokens\":1000000,\"output_tokens\":1000000}}}}}}\n\n"
        );
        let events = decode_recorded(&request, [body.as_bytes()]);
        assert_eq!(done(&events).usage.cost.total, expected, "{model} {tier}");
    };
    check("gpt-5.2", "\"default\"", 3.0);
    check("gpt-5.2", "null", 3.0);
    check("gpt-5.2", "\"flex\"", 1.5);
    check("gpt-5.2", "\"priority\"", 6.0);
    check("gpt-5.5", "\"priority\"", 7.5);
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
            if expected.get("itemId").is_some() {
                let signature =
                    text.text_signature.as_deref().map(|text| serde_json::from_str::<Value>(text).unwrap());
                let with_phase = expected
                    .get("phase")
                    .map(|phase| json!({"v": 1, "id": expected["itemId"], "phase": phase}));
                let expected = expected.get("itemId").map(|id| json!({"v": 1, "id": id}));
                assert_eq!(signature, with_phase.or(expected), "{name}");
            } else {
                assert_eq!(text.text_signature.as_deref(), expected["signature"].as_str(), "{name}");
            }
        }
        AssistantBlock::Thinking(thinking) => {
            assert_eq!(expected["type"], "thinking", "{name}");
            assert_eq!(thinking.thinking, expected["thinking"].as_str().unwrap(), "{name}");
            assert_eq!(thinking.redacted, expected["redacted"] == true, "{name}");
            let signature = thinking.thinking_signature.as_deref();
            if let details @ Value::Array(_) = &expected["reasoningDetails"] {
                let kept: Value = serde_json::from_str(signature.unwrap()).unwrap();
                assert_eq!(without_nulls(&kept), without_nulls(details), "{name}");
            } else if let Some(id) = expected.get("itemId") {
                let kept: Value = serde_json::from_str(signature.unwrap()).unwrap();
                assert_eq!((&kept["type"], &kept["id"]), (&json!("reasoning"), id), "{name}");
                assert_eq!(kept["encrypted_content"], expected["encryptedContent"], "{name}");
            } else {
                let expected = expected["signature"].as_str().or_else(|| expected["field"].as_str());
                assert_eq!(signature, expected, "{name}");
            }
        }
        AssistantBlock::ToolCall(call) => {
            assert_eq!(expected["type"], "toolCall", "{name}");
            assert_eq!(json!(call.name), expected["name"], "{name}");
            if expected["id"].is_null() {
                // The server sent none, so the id is generated and unique.
                let same = message.tool_calls().filter(|other| other.id == call.id);
                assert!(!call.id.is_empty() && same.count() == 1, "{name}: {}", call.id);
            } else {
                let id = expected["id"].as_str().unwrap();
                let id = expected["itemId"].as_str().map_or(id.to_owned(), |item| format!("{id}|{item}"));
                assert_eq!(call.id, id, "{name}");
            }
            assert_eq!(call.thought_signature.as_deref(), expected["signature"].as_str(), "{name}");
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
    let apis = [
        "anthropic-messages",
        "bedrock-converse-stream",
        "google-generative-ai",
        "openai-completions",
        "openai-responses",
    ];
    for api in apis {
        let folder = fixtures().join(api);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            let Some((name, kind)) = file.split_once('.') else { continue };
            let body = match kind {
                "sse" | "eventstream.bin" => fs::read(&path).unwrap(),
                "jsonl" => bedrock::framed(&fs::read_to_string(&path).unwrap()),
                _ => continue,
            };
            let expected = fs::read_to_string(folder.join(format!("{name}.expected.json"))).unwrap();
            recordings.push(Recording {
                request: request(api, name),
                body,
                expected: serde_json::from_str(&expected).unwrap(),
                name: name.to_owned(),
            });
        }
    }
    assert!(recordings.len() > 60);
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
