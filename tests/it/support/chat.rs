//! Answers in the Chat Completions format, for scripted servers.

use std::ops::Range;

use pi::ai::TestBarrier;
use serde_json::{Value, json};

use super::sse_server::Reply;

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

/// Paragraphs with numbers, which [`assert_each_once`] looks for.
pub(crate) fn numbered(lines: Range<usize>) -> String {
    lines.map(|n| format!("line {n:03}\n\n")).collect()
}

/// Asserts that each of these lines is one row.
#[track_caller]
pub(crate) fn assert_each_once(lines: Range<usize>, rows: &[String]) {
    for n in lines {
        let line = format!("line {n:03}");
        let n_shown = rows.iter().filter(|row| row.trim() == line).count();
        assert_eq!(n_shown, 1, "{line}: {rows:#?}");
    }
}

/// An answer of 120 numbered lines, whose second and third part wait for their barriers.
pub(crate) fn numbered_in_three_parts(first: &TestBarrier, second: &TestBarrier) -> Reply {
    Reply::stream("text/event-stream")
        .piece(delta(&numbered(0..40)))
        .gate(first)
        .piece(delta(&numbered(40..80)))
        .gate(second)
        .piece(delta(&numbered(80..120)))
        .piece(end("stop"))
}

/// The end of an answer, with its usage.
pub(crate) fn end(reason: &str) -> String {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 20 } });
    format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), Some(reason)))
}

pub(crate) fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    format!("data: {}\n\n", json!({ "id": "r", "model": "m-1", "choices": [choice] }))
}
