//! Chat Completions. Signed thinking is that of OpenRouter, which has details
//! where others have one string.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::{
    Dialect, End, ImagePlace, Lack, Prefix, RESPONSE_ID, Refusal, SERVED, Script, Step, Tokens, by_turns,
    items, sse,
};

pub(crate) struct Chat;

impl Dialect for Chat {
    fn api(&self) -> &'static str {
        "openai-completions"
    }

    fn lacks(&self) -> &'static [Lack] {
        &[]
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut n_calls = 0;
        for step in &script.steps {
            match step {
                Step::Text(pieces) => {
                    frames.extend(pieces.iter().map(|piece| chunk(json!({"content": piece}), None)));
                }
                Step::Thinking { pieces, signature: None } => {
                    frames
                        .extend(pieces.iter().map(|piece| chunk(json!({"reasoning_content": piece}), None)));
                }
                Step::Thinking { pieces, signature: Some(signature) } => {
                    let detail = |text: &str, signature: &str| {
                        chunk(
                            json!({"reasoning_details": [{"type": "reasoning.text", "text": text, "signature": signature,
                                "index": 0}]}),
                            None,
                        )
                    };
                    frames.extend(pieces.iter().map(|piece| detail(piece, "")));
                    frames.push(detail("", signature));
                }
                Step::Calls(calls) => {
                    for (at, call) in calls.iter().enumerate() {
                        let function = json!({"name": call.name, "arguments": ""});
                        let start = json!({"index": n_calls + at, "id": call.id, "type": "function", "function": function});
                        frames.push(chunk(json!({"content": null, "tool_calls": [start]}), None));
                    }
                    for (at, piece) in by_turns(calls) {
                        let piece = json!({"index": n_calls + at, "function": {"arguments": piece}});
                        frames.push(chunk(json!({"tool_calls": [piece]}), None));
                    }
                    n_calls += calls.len();
                }
                Step::Unknown => {
                    frames.push(b": OPENROUTER PROCESSING\n\n".to_vec());
                    frames.push(chunk(json!({"moon": [1], "audio": {"data": ""}}), None));
                    frames.push(sse(None, &json!({"object": "moon.phase", "moon": {"choices": 1}})));
                }
            }
        }
        let reason = match script.end {
            End::Natural if script.has_calls() => "tool_calls",
            End::Natural => "stop",
            End::Length => "length",
            End::Refused(words) => {
                frames.push(chunk(json!({"refusal": words}), None));
                "stop"
            }
            End::Failed(message) => {
                frames.push(sse(None, &json!({"error": {"code": "overloaded", "message": message}})));
                return frames;
            }
            End::Missing => return frames,
        };
        frames.push(chunk(json!({}), Some(reason)));
        frames.push(sse(
            None,
            &json!({"id": RESPONSE_ID, "model": SERVED, "choices": [], "usage": usage(&script.usage)}),
        ));
        frames.push(b"data: [DONE]\n\n".to_vec());
        frames
    }

    fn refusal(&self) -> Refusal {
        Refusal::Said
    }

    fn signature(&self, thinking: &Thinking) -> Option<String> {
        let details: Value = serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
        Some(details[0]["signature"].as_str()?.to_owned())
    }

    fn images(&self, body: &Value) -> Vec<ImagePlace> {
        images(body)
    }

    fn prefix(&self, body: &Value) -> Prefix {
        prefix(body)
    }
}

pub(super) fn chunk(delta: Value, finish_reason: Option<&str>) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    sse(None, &json!({"id": RESPONSE_ID, "model": SERVED, "choices": [choice], "usage": null}))
}

fn usage(usage: &Tokens) -> Value {
    let total = usage.prompt() + usage.output;
    json!({"prompt_tokens": usage.prompt(), "completion_tokens": usage.output, "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning}})
}

pub(super) fn images(body: &Value) -> Vec<ImagePlace> {
    let mut places = Vec::new();
    let mut after_results = false;
    for message in body["messages"].as_array().into_iter().flatten() {
        let parts = message["content"].as_array().into_iter().flatten();
        let n_images = parts.filter(|part| part["type"] == "image_url").count();
        let place = if after_results { ImagePlace::AfterResults } else { ImagePlace::Prompt };
        places.extend(std::iter::repeat_n(place, n_images));
        after_results |= message["role"] == "tool";
    }
    places
}

pub(super) fn prefix(body: &Value) -> Prefix {
    let messages = items(&body["messages"]);
    let is_system = matches!(body["messages"][0]["role"].as_str(), Some("system" | "developer"));
    let (system, messages) = messages.split_at(usize::from(is_system));
    Prefix { system: system.concat(), tools: items(&body["tools"]), messages: messages.to_vec() }
}
