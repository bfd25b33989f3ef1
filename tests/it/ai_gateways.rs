//! Answers of gateways: translated between APIs, with events cut, missing or out of place.
//!
//! Each row is a stream and the answer that it is, as one line.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::Arc;

use pi::ai::{
    AssistantBlock, AssistantMessage, Credential, FailureClass, Message, Model, Request, StopReason,
    StreamEvent, StreamOptions, StreamOrder, Usage, UserMessage, classify, decode_recorded, is_overflow,
    is_retryable,
};
use serde_json::{Value, json};

use crate::support::bedrock;

const ANTHROPIC: &str = "anthropic-messages";
const BEDROCK: &str = "bedrock-converse-stream";
const CHAT: &str = "openai-completions";
const GOOGLE: &str = "google-generative-ai";
const RESPONSES: &str = "openai-responses";

/// A request with this many bytes of text.
fn request(api: &str, sent_bytes: usize) -> Request {
    let model = json!({"id": "m", "api": api, "provider": "p", "cost": {"input": 1, "output": 1}});
    let model: Model = serde_json::from_value(model).unwrap();
    let prompt = UserMessage::builder().text("x".repeat(sent_bytes)).build();
    Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages: vec![Arc::new(Message::from(prompt))],
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}

fn decode_for(request: &Request, frames: &[Value]) -> AssistantMessage {
    // Halves of pairs cannot be in a string of Rust, so tests write `<d83d>`.
    let json = |frame: &Value| {
        let text = frame.to_string();
        text.replace("<d83d>", "\\ud83d").replace("<de0b>", "\\ude0b")
    };
    let body = match request.model.api.as_str() {
        BEDROCK => {
            let events = frames.iter().map(|frame| {
                let (kind, _) = frame.as_object().unwrap().iter().next().unwrap();
                let payload = json(&frame[kind]);
                let headers = [
                    (":event-type", &**kind),
                    (":content-type", "application/json"),
                    (":message-type", "event"),
                ];
                bedrock::message(&headers, payload.as_bytes())
            });
            events.collect::<Vec<_>>().concat()
        }
        _ => frames.iter().map(|frame| format!("data: {}\n\n", json(frame))).collect::<String>().into_bytes(),
    };
    let events = decode_recorded(request, [body.as_slice()]);
    let mut order = StreamOrder::default();
    events.iter().for_each(|event| order.accept(event).unwrap());
    match events.into_iter().next_back() {
        Some(StreamEvent::Done(message)) => *message,
        other => panic!("the last event is {other:?}"),
    }
}

fn decode(api: &str, frames: &[Value]) -> AssistantMessage {
    decode_for(&request(api, 0), frames)
}

/// The answer as one line: `[thinking] text call{"a":1} -> stop`.
fn line(message: &AssistantMessage) -> String {
    let mut parts: Vec<String> = message.content.iter().map(shown).collect();
    parts.push(format!("-> {}", json!(message.stop_reason).as_str().unwrap()));
    parts.extend(message.error_message.as_ref().map(|error| format!("({error})")));
    parts.join(" ")
}

fn shown(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text(text) => text.text.clone(),
        AssistantBlock::Thinking(thinking) => format!("[{}]", thinking.thinking),
        AssistantBlock::ToolCall(call) if call.arguments_error.is_some() => format!("{}!", call.name),
        AssistantBlock::ToolCall(call) => format!("{}{}", call.name, call.arguments),
        AssistantBlock::Unknown(block) => block.to_string(),
    }
}

#[track_caller]
fn check(api: &str, frames: &[Value], expected: &str) {
    assert_eq!(line(&decode(api, frames)), expected, "{api}: {frames:?}");
}

fn chat(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn chat_end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn chat_call(arguments: &str) -> Value {
    chat(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]}))
}

fn message_start() -> Value {
    json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}})
}

fn block_start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn block_delta(index: u64, kind: &str, text: &str) -> Value {
    let field = match kind {
        "text_delta" => "text",
        "thinking_delta" => "thinking",
        _ => "partial_json",
    };
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}})
}

fn block_stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn message_end(reason: &str) -> [Value; 2] {
    [json!({"type": "message_delta", "delta": {"stop_reason": reason}}), json!({"type": "message_stop"})]
}

/// An answer of Anthropic around `frames`.
fn anthropic(frames: &[Value], reason: &str) -> Vec<Value> {
    [&[message_start()][..], frames, &message_end(reason)].concat()
}

fn event(kind: &str, fields: Value) -> Value {
    let mut event = json!({"type": format!("response.{kind}")});
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn completed(output: Value) -> Value {
    event("completed", json!({"response": {"status": "completed", "output": output}}))
}

fn google(parts: Value, reason: Option<&str>) -> Value {
    json!({"candidates": [{"index": 0, "content": {"parts": parts}, "finishReason": reason}]})
}

fn converse_delta(delta: Value) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}})
}

fn converse_end(reason: &str) -> Value {
    json!({"messageStop": {"stopReason": reason}})
}

#[test]
fn halves_of_a_character_in_two_deltas_become_one() {
    let (one, two) = ("a<d83d>", "<de0b>b");
    check(
        CHAT,
        &[chat(json!({"content": one})), chat(json!({"content": two})), chat_end("stop")],
        "a😋b -> stop",
    );
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let frames = [chat(json!({field: one})), chat(json!({field: two})), chat_end("stop")];
        check(CHAT, &frames, "[a😋b] -> stop");
    }
    let detail = |text: &str| chat(json!({"reasoning_details": [{"type": "reasoning.text", "text": text}]}));
    let message = decode(CHAT, &[detail(one), detail(two), chat_end("stop")]);
    assert_eq!(line(&message), "[a😋b] -> stop");
    let AssistantBlock::Thinking(thinking) = &message.content[0] else { panic!("no thinking") };
    assert_eq!(thinking.thinking_signature.as_deref(), Some(r#"[{"type":"reasoning.text","text":"a😋b"}]"#));
    check(
        CHAT,
        &[chat_call("{\"x\":\"a<d83d>"), chat_call("<de0b>b\"}"), chat_end("tool_calls")],
        r#"f{"x":"a😋b"} -> toolUse"#,
    );
    for (block, delta) in [("text", "text_delta"), ("thinking", "thinking_delta")] {
        let frames =
            [block_start(0, json!({"type": block, block: one})), block_delta(0, delta, two), block_stop(0)];
        let expected = if block == "text" { "a😋b -> stop" } else { "[a😋b] -> stop" };
        check(ANTHROPIC, &anthropic(&frames, "end_turn"), expected);
    }
    let frames = [
        block_start(0, json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
        block_delta(0, "input_json_delta", "{\"x\":\"a<d83d>"),
        block_delta(0, "input_json_delta", "<de0b>b\"}"),
        block_stop(0),
    ];
    check(ANTHROPIC, &anthropic(&frames, "tool_use"), r#"f{"x":"a😋b"} -> toolUse"#);
    for (name, kind, expected) in
        [("output_text", "message", "a😋b"), ("reasoning_summary_text", "reasoning", "[a😋b]")]
    {
        let frames = [
            event("output_item.added", json!({"output_index": 0, "item": {"type": kind}})),
            event(&format!("{name}.delta"), json!({"output_index": 0, "delta": one})),
            event(&format!("{name}.delta"), json!({"output_index": 0, "delta": two})),
            completed(json!([])),
        ];
        check(RESPONSES, &frames, &format!("{expected} -> stop"));
    }
    let arguments =
        |delta: &str| event("function_call_arguments.delta", json!({"output_index": 0, "delta": delta}));
    let added = json!({"output_index": 0, "item": {"type": "function_call", "call_id": "c", "name": "f"}});
    let frames = [
        event("output_item.added", added),
        arguments("{\"x\":\"a<d83d>"),
        arguments("<de0b>b\"}"),
        completed(json!([])),
    ];
    check(RESPONSES, &frames, r#"f{"x":"a😋b"} -> toolUse"#);
    for thought in [false, true] {
        let part = |text: &str| json!([{"text": text, "thought": thought}]);
        let expected = if thought { "[a😋b] -> stop" } else { "a😋b -> stop" };
        check(GOOGLE, &[google(part(one), None), google(part(two), Some("STOP"))], expected);
    }
    let piece = |text: &str, more: bool| {
        let value = json!({"jsonPath": "$.x", "stringValue": text, "willContinue": more});
        json!([{"functionCall": {"name": "f", "willContinue": more, "partialArgs": [value]}}])
    };
    let named = json!([{"functionCall": {"willContinue": false, "partialArgs": piece(two, false)[0]["functionCall"]["partialArgs"]}}]);
    check(
        GOOGLE,
        &[google(piece(one, true), None), google(named, Some("STOP"))],
        r#"f{"x":"a😋b"} -> toolUse"#,
    );
    for (delta, expected) in [
        (|text: &str| json!({"text": text}), "a😋b -> stop"),
        (|text: &str| json!({"reasoningContent": {"text": text}}), "[a😋b] -> stop"),
    ] as [(fn(&str) -> Value, &str); 2]
    {
        check(
            BEDROCK,
            &[converse_delta(delta(one)), converse_delta(delta(two)), converse_end("end_turn")],
            expected,
        );
    }
}

#[test]
fn half_of_a_character_that_stays_alone_is_replaced() {
    let said = |pieces: &[&str]| -> Vec<Value> {
        let pieces = pieces.iter().map(|text| chat(json!({"content": text})));
        pieces.chain([chat_end("stop")]).collect()
    };
    check(CHAT, &said(&["a<d83d>"]), "a\u{fffd} -> stop");
    check(CHAT, &said(&["a<d83d>", "b"]), "a\u{fffd}b -> stop");
    check(CHAT, &said(&["<de0b>b"]), "\u{fffd}b -> stop");
    check(CHAT, &said(&["<d83d>", "<d83d>", "<de0b>"]), "\u{fffd}😋 -> stop");
    // A half of the thinking and one of the text are not one character.
    let frames =
        [chat(json!({"reasoning": "a<d83d>"})), chat(json!({"content": "<de0b>b"})), chat_end("stop")];
    check(CHAT, &frames, "[a\u{fffd}] \u{fffd}b -> stop");
    let frames = [
        block_start(0, json!({"type": "text", "text": ""})),
        block_delta(0, "text_delta", "a<d83d>"),
        block_stop(0),
    ];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "a\u{fffd} -> stop");
    // Whole strings have no other half.
    let call = json!([{"functionCall": {"name": "f", "args": {"x": "a<d83d>"}}}]);
    check(GOOGLE, &[google(call, Some("STOP"))], "f{\"x\":\"a\u{fffd}\"} -> toolUse");
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "a<d83d>"}]});
    check(RESPONSES, &[completed(json!([item]))], "a\u{fffd} -> stop");
}

#[test]
fn call_that_is_announced_and_missing_is_a_failure_that_is_retried() {
    let check = |api: &str, frames: &[Value], text: &str| {
        let message = decode(api, frames);
        assert_eq!(line(&message), text);
        assert!(is_retryable(&message), "{api}");
        // A stored answer has its text alone.
        let stored = classify(message.error_message.as_deref().unwrap(), None);
        assert_eq!(stored, FailureClass::ToolUseFailed);
    };
    let missing = "-> error (the answer announced a tool call but contains none";
    for reason in ["tool_calls", "function_call", "tool_use"] {
        let frames = [chat(json!({"content": "hi"})), chat_end(reason)];
        check(CHAT, &frames, &format!("hi {missing} (finish_reason: {reason}))"));
    }
    let text = [block_start(0, json!({"type": "text", "text": "hi"})), block_stop(0)];
    check(ANTHROPIC, &anthropic(&text, "tool_use"), &format!("hi {missing} (stop_reason: tool_use))"));
    let text = converse_delta(json!({"text": "hi"}));
    check(BEDROCK, &[text, converse_end("tool_use")], &format!("hi {missing} (stopReason: tool_use))"));
    let unnamed = "-> error (malformed_function_call: the answer contains a tool call without a name)";
    let frames = [block_delta(0, "input_json_delta", "{\"a\":1}")];
    check(ANTHROPIC, &anthropic(&frames, "tool_use"), unnamed);
    check(BEDROCK, &[converse_delta(json!({"toolUse": {"input": "{}"}})), converse_end("tool_use")], unnamed);
    let frames =
        [chat(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})), chat_end("stop")];
    check(CHAT, &frames, &format!("! {unnamed}"));
    let delta = event("function_call_arguments.delta", json!({"output_index": 0, "delta": "{}"}));
    check(RESPONSES, &[delta, completed(json!([]))], &format!("! {unnamed}"));
}

#[test]
fn text_without_the_event_that_opens_its_block_is_kept() {
    let delta = |fields: Value| event("output_text.delta", fields);
    let added =
        event("output_item.added", json!({"output_index": 0, "item": {"type": "message", "id": "m"}}));
    for place in [
        json!({}),
        json!({"output_index": 0}),
        json!({"item_id": "m"}),
        json!({"output_index": 0, "item_id": "m"}),
    ] {
        let piece = |text: &str| {
            let mut fields = place.clone();
            fields["delta"] = json!(text);
            delta(fields)
        };
        check(RESPONSES, &[piece("hel"), piece("lo"), completed(json!([]))], "hello -> stop");
        check(RESPONSES, &[piece("hel"), added.clone(), piece("lo"), completed(json!([]))], "hello -> stop");
        let item =
            json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hello"}]});
        let done = event("output_item.done", json!({"output_index": 0, "item": item}));
        check(RESPONSES, &[piece("hel"), done.clone(), completed(json!([]))], "hello -> stop");
        check(RESPONSES, &[piece("hel"), piece("lo"), completed(json!([item]))], "hello -> stop");
        check(RESPONSES, &[piece("hel"), piece("lo"), done, completed(json!([item]))], "hello -> stop");
    }
    let whole = event("output_text.done", json!({"text": "hello"}));
    check(RESPONSES, &[whole, completed(json!([]))], "hello -> stop");
    let reasoning = event("reasoning_summary_text.delta", json!({"delta": "hm"}));
    let frames = [reasoning, delta(json!({"delta": "hi"})), completed(json!([]))];
    check(RESPONSES, &frames, "[hm] hi -> stop");
    // An item that only the last event has.
    let message = json!({"type": "message", "id": "m2", "content": [{"type": "output_text", "text": "hi"}]});
    let reasoning = json!({"type": "reasoning", "id": "r", "summary": []});
    let done = event("output_item.done", json!({"output_index": 0, "item": reasoning}));
    check(RESPONSES, &[done, completed(json!([reasoning, message]))], "[] hi -> stop");
    // Text that is no string.
    let message = decode(RESPONSES, &[delta(json!({"delta": {"text": "hi"}})), completed(json!([]))]);
    assert_eq!(message.stop_reason, StopReason::Error);

    let text = block_delta(0, "text_delta", "hi");
    check(ANTHROPIC, &anthropic(std::slice::from_ref(&text), "end_turn"), "hi -> stop");
    let one = [
        block_start(0, json!({"type": "text", "text": ""})),
        block_delta(0, "text_delta", "one "),
        block_stop(0),
    ];
    let frames = [&one[..], &[block_delta(1, "text_delta", "two")]].concat();
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "one  two -> stop");
    for block in [json!(null), json!({})] {
        let frames = [block_start(0, block), text.clone(), block_stop(0)];
        check(ANTHROPIC, &anthropic(&frames, "end_turn"), "hi -> stop");
    }
    let frames = [json!({"type": "content_block_start", "index": 0}), text.clone(), block_stop(0)];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "hi -> stop");
    let frames = [block_start(0, json!({"type": "text", "text": "whole"})), block_stop(0)];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "whole -> stop");
    // In a block of another kind.
    let frames = [block_start(0, json!({"type": "thinking"})), text.clone(), block_stop(0)];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "[] hi -> stop");
    // Text of unknown blocks alone is no empty answer.
    let unread = "-> error (the answer has text only in parts of a kind that pi does not know)";
    let frames = [block_start(0, json!({"type": "moon"})), text.clone(), block_stop(0)];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), unread);
    let moon =
        event("output_item.added", json!({"output_index": 0, "item": {"type": "moon_call", "id": "m"}}));
    for place in [json!({"output_index": 0, "delta": "hi"}), json!({"item_id": "m", "delta": "hi"})] {
        check(RESPONSES, &[moon.clone(), delta(place), completed(json!([]))], unread);
    }
    let frames = [block_delta(0, "thinking_delta", "hm"), block_delta(1, "text_delta", "hi")];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "[hm] hi -> stop");
    let frames = [json!({"type": "content_block_delta", "index": 0, "delta": {"text": "hi"}})];
    check(ANTHROPIC, &anthropic(&frames, "end_turn"), "hi -> stop");

    let whole = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]});
    check(CHAT, std::slice::from_ref(&whole), "hi -> stop");
    check(CHAT, &[chat(json!({"content": "hi"})), whole], "hi -> stop");
    let plain = |text: &str| json!({"choices": [{"text": text}]});
    check(CHAT, &[plain("h"), plain("i"), chat_end("stop")], "hi -> stop");
    let both = json!({"choices": [{"text": "hi", "delta": {"content": "hi"}}]});
    check(CHAT, &[chat(json!({"role": "assistant"})), both, chat_end("stop")], "hi -> stop");
}

#[test]
fn older_form_of_a_call_is_read() {
    let piece = |call: Value| chat(json!({"function_call": call}));
    let expected = r#"f{"a":1} -> toolUse"#;
    let whole = piece(json!({"name": "f", "arguments": "{\"a\":1}"}));
    check(CHAT, &[whole.clone(), chat_end("function_call")], expected);
    check(CHAT, &[whole, chat_end("stop")], expected);
    let frames = [
        piece(json!({"name": "f", "arguments": ""})),
        piece(json!({"arguments": "{\"a\""})),
        piece(json!({"name": "f", "arguments": ":1}"})),
        chat_end("function_call"),
    ];
    check(CHAT, &frames, expected);
    let flat = chat(json!({"tool_calls": [{"index": 0, "id": "a", "name": "f", "arguments": "{\"a\":1}"}]}));
    check(CHAT, &[flat, chat_end("tool_calls")], expected);
}

#[test]
fn events_that_name_their_item_only_by_id_reach_it() {
    let message = event("output_item.added", json!({"item": {"type": "message", "id": "m"}}));
    let call = json!({"type": "function_call", "id": "f1", "call_id": "c", "name": "f"});
    let call_added = event("output_item.added", json!({"item": call}));
    let text = event("output_text.delta", json!({"item_id": "m", "delta": "hello"}));
    let arguments = event("function_call_arguments.done", json!({"item_id": "f1", "arguments": "{\"a\":1}"}));
    let mut whole = call;
    whole["arguments"] = json!("{\"a\":1}");
    let done = event("output_item.done", json!({"item": whole}));
    let frames = [message, call_added, text, arguments, done, completed(json!([]))];
    check(RESPONSES, &frames, r#"hello f{"a":1} -> toolUse"#);
    // All with index 0.
    let frames = frames.map(|mut frame| {
        frame["output_index"] = json!(0);
        frame
    });
    check(RESPONSES, &frames, r#"hello f{"a":1} -> toolUse"#);
    let calls = ["f1", "f2"].map(|id| {
        event(
            "output_item.added",
            json!({"item": {"type": "function_call", "id": id, "call_id": id, "name": id}}),
        )
    });
    let piece =
        |id: &str, text: &str| event("function_call_arguments.delta", json!({"item_id": id, "delta": text}));
    let pieces = [piece("f1", "{\"a\""), piece("f2", "{\"b\""), piece("f1", ":1}"), piece("f2", ":2}")];
    let frames = [&calls[..], &pieces, &[completed(json!([]))]].concat();
    check(RESPONSES, &frames, r#"f1{"a":1} f2{"b":2} -> toolUse"#);
}

#[test]
fn finish_reasons_of_other_apis_count_as_theirs() {
    let stop = ["stop", "STOP", "end_turn", "END_TURN", "eos_token", "completed", "stop_sequence", "endTurn"];
    let length = ["length", "max_output_tokens", "MAX_TOKENS", "max_tokens", "CONTINUATION", "model_length"];
    let calls = ["tool_use", "tool_call", "TOOL_CALLS", "function_call", "toolUse", "tool_calls"];
    let text = |reason: &str| {
        let block = [block_start(0, json!({"type": "text", "text": "hi"})), block_stop(0)];
        [
            (CHAT, vec![chat(json!({"content": "hi"})), chat_end(reason)]),
            (ANTHROPIC, anthropic(&block, reason)),
            (GOOGLE, vec![google(json!([{"text": "hi"}]), Some(reason))]),
            (BEDROCK, vec![converse_delta(json!({"text": "hi"})), converse_end(reason)]),
        ]
    };
    let call = |reason: &str| {
        let block = [
            block_start(0, json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
            block_delta(0, "input_json_delta", "{\"a\":1}"),
            block_stop(0),
        ];
        let start = json!({"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}});
        let input = converse_delta(json!({"toolUse": {"input": "{\"a\":1}"}}));
        let stop = json!({"contentBlockStop": {"contentBlockIndex": 0}});
        [
            (CHAT, vec![chat_call("{\"a\":1}"), chat_end(reason)]),
            (ANTHROPIC, anthropic(&block, reason)),
            (GOOGLE, vec![google(json!([{"functionCall": {"name": "f", "args": {"a": 1}}}]), Some(reason))]),
            (BEDROCK, vec![start, input, stop, converse_end(reason)]),
        ]
    };
    for reason in stop {
        text(reason).iter().for_each(|(api, frames)| check(api, frames, "hi -> stop"));
    }
    for reason in length {
        text(reason).iter().for_each(|(api, frames)| check(api, frames, "hi -> length"));
    }
    for reason in stop.iter().chain(&calls) {
        call(reason).iter().for_each(|(api, frames)| check(api, frames, r#"f{"a":1} -> toolUse"#));
    }
    // An unknown one is a failure that keeps the text.
    for (api, frames) in text("moonquake") {
        let message = decode(api, &frames);
        assert_eq!((message.stop_reason, message.text()), (StopReason::Error, "hi".to_owned()), "{api}");
        assert!(message.error_message.unwrap().contains("moonquake"));
    }
    for (status, reason) in [("COMPLETED", None), ("succeeded", None), ("Incomplete", Some("MAX_TOKENS"))] {
        let response = json!({"status": status, "incomplete_details": {"reason": reason}});
        let message = decode(RESPONSES, &[event("completed", json!({"response": response}))]);
        let expected = if reason.is_some() { StopReason::Length } else { StopReason::Stop };
        assert_eq!(message.stop_reason, expected, "{status}");
    }
}

#[test]
fn failure_in_a_finish_reason_has_its_class() {
    let message = decode(GOOGLE, &[google(json!([]), Some("UNEXPECTED_TOOL_CALL"))]);
    assert!(is_retryable(&message));
    let frames = anthropic(&[block_delta(0, "text_delta", "hi")], "model_context_window_exceeded");
    let message = decode(ANTHROPIC, &frames);
    assert_eq!(line(&message), "hi -> length");
    assert!(is_overflow(&message, 200_000));
}

#[test]
fn finished_call_whose_block_is_open_runs() {
    let start = || block_start(0, json!({"type": "tool_use", "id": "t", "name": "f", "input": {}}));
    let input = |text: &str| block_delta(0, "input_json_delta", text);
    let runs = r#"f{"a":1} -> toolUse"#;
    let whole = [start(), input("{\"a\":"), input("1}")];
    check(ANTHROPIC, &anthropic(&whole, "tool_use"), runs);
    check(ANTHROPIC, &anthropic(&whole, "end_turn"), runs);
    let at_once = block_start(0, json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}));
    check(ANTHROPIC, &anthropic(&[at_once], "tool_use"), runs);
    check(ANTHROPIC, &anthropic(&[start(), input("{\"a\":")], "tool_use"), "f! -> toolUse");
    check(ANTHROPIC, &anthropic(&whole, "max_tokens"), "f! -> length");
    let cut = [&[message_start()][..], &whole, &message_end("tool_use")[..1]].concat();
    check(ANTHROPIC, &cut, "f! -> error (stream ended before message_stop)");

    let item = |status: &str, arguments: Value| json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments, "status": status});
    let added =
        event("output_item.added", json!({"output_index": 0, "item": item("in_progress", json!(""))}));
    let all = event("function_call_arguments.done", json!({"output_index": 0, "arguments": "{\"a\":1}"}));
    let piece =
        |text: &str| event("function_call_arguments.delta", json!({"output_index": 0, "delta": text}));
    let end = || completed(json!([]));
    let output = || completed(json!([item("completed", json!("{\"a\":1}"))]));
    let done = |status: &str| {
        event("output_item.done", json!({"output_index": 0, "item": item(status, json!("{\"a\":1}"))}))
    };
    for frames in [
        vec![added.clone(), all.clone(), end()],
        vec![added.clone(), piece("{\"a\""), piece(":1}"), end()],
        vec![added.clone(), output()],
        vec![added.clone(), piece("{\"a\""), output()],
        vec![output()],
        vec![done("completed"), end()],
        vec![added.clone(), all.clone(), done("in_progress"), end()],
        vec![event("output_item.added", json!({"item": item("in_progress", json!("{\"a\":1}"))})), end()],
        vec![completed(json!([item("in_progress", json!({"a": 1}))]))],
    ] {
        check(RESPONSES, &frames, runs);
    }
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "g"});
    let added_custom = event("output_item.added", json!({"output_index": 0, "item": custom}));
    for (kind, field) in [("delta", "delta"), ("done", "input")] {
        let text =
            event(&format!("custom_tool_call_input.{kind}"), json!({"output_index": 0, field: "x\ny"}));
        check(RESPONSES, &[added_custom.clone(), text, end()], r#"g{"input":"x\ny"} -> toolUse"#);
    }
    let incomplete = |output: Value| {
        let reason = json!({"reason": "max_output_tokens"});
        event(
            "incomplete",
            json!({"response": {"status": "incomplete", "incomplete_details": reason, "output": output}}),
        )
    };
    for (frames, expected) in [
        (vec![added.clone(), piece("{\"a\""), end()], "f! -> toolUse"),
        (vec![added.clone(), all.clone(), done("incomplete"), incomplete(json!([]))], "f! -> length"),
        (vec![added.clone(), all.clone(), incomplete(json!([]))], "f! -> length"),
        (
            vec![incomplete(
                json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}"}]),
            )],
            "f! -> length",
        ),
        (vec![completed(json!([item("incomplete", json!("{\"a\":1}"))]))], "f! -> toolUse"),
        (vec![added, all], "f! -> error (stream ended before a terminal response event)"),
    ] {
        check(RESPONSES, &frames, expected);
    }

    let call =
        |value: Value| json!([{"functionCall": {"name": "f", "willContinue": true, "partialArgs": [value]}}]);
    let frames = [google(call(json!({"jsonPath": "$.a", "numberValue": 1})), Some("STOP"))];
    check(GOOGLE, &frames, runs);
    let cut = json!({"jsonPath": "$.a", "stringValue": "x", "willContinue": true});
    check(GOOGLE, &[google(call(cut), Some("STOP"))], "f! -> toolUse");
}

/// The usage of an answer to a request with 150 kB of text.
fn usage(api: &str, frames: &[Value]) -> Usage {
    decode_for(&request(api, 150_000), frames).usage
}

#[test]
fn counts_that_cannot_be_true_replace_no_better_ones() {
    let check = |api: &str, first: Value, last: Value| {
        let usage = usage(api, &[first, last]);
        assert_eq!((usage.input, usage.total_tokens), (40_000, 40_009), "{api}");
        assert_eq!(usage.cost.input, 0.04);
    };
    for bad in [json!(0), json!(7), json!(1e308), json!(-5)] {
        let start = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 40_000, "output_tokens": 1}}});
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": bad, "output_tokens": 9}});
        check(ANTHROPIC, start, end);
        let chunk =
            |input: &Value| json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": 9}});
        check(CHAT, chunk(&json!(40_000)), chunk(&bad));
        let chunk =
            |input: &Value| json!({"usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": 9}});
        check(GOOGLE, chunk(&json!(40_000)), chunk(&bad));
        let counts =
            |input: &Value| json!({"metadata": {"usage": {"inputTokens": input, "outputTokens": 9}}});
        check(BEDROCK, counts(&json!(40_000)), counts(&bad));
    }
    // A count that is never more than 0 is estimated, because compaction depends on it.
    for (api, frame) in [
        (CHAT, json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 9}})),
        (
            RESPONSES,
            event(
                "completed",
                json!({"response": {"usage": {"input_tokens": 0, "output_tokens": 9, "total_tokens": 9}}}),
            ),
        ),
        (
            GOOGLE,
            json!({"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 9, "totalTokenCount": 9}}),
        ),
    ] {
        let usage = usage(api, &[frame]);
        assert_eq!((usage.input, usage.output, usage.total_tokens), (37_500, 9, 37_509), "{api}");
    }
    let none = usage(CHAT, &[json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})]);
    assert_eq!(none.total_tokens, 0, "the session estimates an answer without counts");
}

#[test]
fn impossible_costs_and_counts_are_ignored() {
    let chunk = |cost: Value| json!({"choices": [], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0, "cost": cost}});
    for (cost, expected) in
        [(json!(0.5), 0.5), (json!(-1000), 1.0), (json!(1e300), 1.0), (json!("free"), 1.0)]
    {
        assert_eq!(decode(CHAT, &[chunk(cost.clone())]).usage.cost.total, expected, "{cost}");
        let response = json!({"usage": {"input_tokens": 1_000_000, "output_tokens": 0, "cost": cost}});
        let message = decode(RESPONSES, &[event("completed", json!({"response": response}))]);
        assert_eq!(message.usage.cost.total, expected, "{cost}");
    }
    let absurd = json!({"choices": [], "usage": {"prompt_tokens": 1e308, "completion_tokens": 1e308}});
    assert_eq!(decode(CHAT, &[absurd]).usage.total_tokens, 0);
}

#[test]
fn reasoning_tokens_are_read_where_copilot_has_them() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 9, "reasoning_tokens": 4});
    assert_eq!(decode(CHAT, &[json!({"choices": [], "usage": usage})]).usage.reasoning, Some(4));
}

#[test]
fn names_of_tools_have_a_bounded_length() {
    let long = "n".repeat(70_000);
    let call =
        chat(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": long, "arguments": "{}"}}]}));
    let item = json!({"type": "function_call", "call_id": "c", "name": long, "arguments": "{}"});
    for message in [decode(CHAT, &[call, chat_end("stop")]), decode(RESPONSES, &[completed(json!([item]))])] {
        let names: Vec<usize> = message.tool_calls().map(|call| call.name.len()).collect();
        assert_eq!(names, [256]);
    }
}

#[test]
fn answer_without_end_is_cut_with_an_error() {
    let piece = chat(json!({"content": "x".repeat(1 << 20)}));
    let message = decode(CHAT, &vec![piece; 70]);
    assert_eq!(message.error_message.as_deref(), Some("the answer is longer than 67108864 bytes"));
    assert_eq!(message.text().len(), 65 << 20);
    assert!(!is_retryable(&message));
    let call = |at: usize| {
        chat(
            json!({"tool_calls": [{"index": at, "id": at.to_string(), "function": {"name": "f", "arguments": "{}"}}]}),
        )
    };
    let calls: Vec<Value> = (0..1_500).map(call).chain([chat_end("tool_calls")]).collect();
    let message = decode(CHAT, &calls);
    assert_eq!(message.error_message.as_deref(), Some("the answer has more than 1000 tool calls"));
    assert!(message.tool_calls().all(|call| call.arguments_error.is_some()));
    let calls: Vec<Value> = (0..1_000).map(call).chain([chat_end("tool_calls")]).collect();
    assert_eq!(decode(CHAT, &calls).stop_reason, StopReason::ToolUse);
}

#[test]
fn reasoning_that_openai_dropped_is_noted() {
    let entry =
        |reason: &str| json!({"type": "reasoning", "id": "rs_1", "action": "removed", "reason": reason});
    let transformed = |entries: Value| {
        let response = json!({"status": "completed", "input_transformations": entries});
        decode(RESPONSES, &[event("completed", json!({"response": response}))])
            .extra
            .get("diagnostics")
            .cloned()
    };
    let note = |entries: Value| {
        Some(json!([{"type": "openai_input_transformations", "details": {"transformations": entries}}]))
    };
    let mixed = json!([entry("turn_boundary"), entry("prefix_mismatch")]);
    assert_eq!(transformed(mixed), note(json!([entry("prefix_mismatch")])));
    for nothing in [json!([]), json!(null), json!([entry("turn_boundary")]), json!("x")] {
        assert_eq!(transformed(nothing), None);
    }
}
