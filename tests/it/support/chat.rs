//! Answers in the Chat Completions format, for scripted servers.

use serde_json::{Value, json};

/// A whole answer of one text.
pub(crate) fn text(text: &str) -> String {
    [delta(text), end("stop")].concat()
}

/// A piece of text.
pub(crate) fn delta(text: &str) -> String {
    chunk(&json!({ "content": text }), None)
}

/// A whole answer that calls tools: name and arguments of each.
pub(crate) fn calls(calls: &[(&str, Value)]) -> String {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
        })
        .collect();
    [chunk(&json!({ "tool_calls": calls }), None), end("tool_calls")].concat()
}

/// The end of an answer, with its usage.
pub(crate) fn end(reason: &str) -> String {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 20 } });
    format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), Some(reason)))
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    format!("data: {}\n\n", json!({ "id": "r", "model": "m-1", "choices": [choice] }))
}
