//! Mistral's chat: thinking in chunks of content, whole calls, usage with the
//! last chunk.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::{
    Dialect, End, ImagePlace, Lack, Prefix, RESPONSE_ID, Refusal, SERVED, Script, Step,
    chat::{chunk, images, prefix},
    sse,
};

pub(crate) struct Mistral;

impl Dialect for Mistral {
    fn api(&self) -> &'static str {
        "mistral-conversations"
    }

    fn lacks(&self) -> &'static [Lack] {
        &[Lack::Signatures, Lack::ArgumentPieces, Lack::CacheWrites, Lack::ReasoningTokens]
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
        for step in &script.steps {
            match step {
                Step::Text(pieces) => {
                    frames.extend(pieces.iter().map(|piece| chunk(json!({"content": piece}), None)));
                }
                Step::Thinking { pieces, .. } => {
                    frames.extend(pieces.iter().map(|piece| {
                        let thinking = json!([{"type": "text", "text": piece}]);
                        chunk(json!({"content": [{"type": "thinking", "thinking": thinking}]}), None)
                    }));
                }
                Step::Calls(calls) => {
                    let calls = calls.iter().enumerate().map(|(index, call)| {
                        let function = json!({"name": call.name, "arguments": call.pieces.concat()});
                        json!({"id": call.id, "index": index, "function": function})
                    });
                    frames.push(chunk(json!({"content": "", "tool_calls": calls.collect::<Value>()}), None));
                }
                Step::Unknown => {
                    frames
                        .push(chunk(json!({"content": [{"type": "moon", "phase": 1}], "p": "abcdef"}), None));
                    frames.push(sse(None, &json!({"object": "moon.phase", "p": "ab"})));
                }
            }
        }
        let reason = match script.end {
            End::Natural if script.has_calls() => "tool_calls",
            End::Natural => "stop",
            End::Length => "model_length",
            End::Refused(words) => {
                frames.push(chunk(json!({"content": words}), None));
                "stop"
            }
            End::Failed(message) => {
                let error =
                    json!({"object": "error", "type": "overloaded", "code": "3505", "message": message});
                frames.push(sse(None, &json!({"error": error})));
                return frames;
            }
            End::Missing => return frames,
        };
        let tokens = &script.usage;
        let choice = json!({"index": 0, "delta": {"content": ""}, "finish_reason": reason});
        let usage = json!({"prompt_tokens": tokens.prompt(), "completion_tokens": tokens.output,
            "total_tokens": tokens.prompt() + tokens.output, "num_cached_tokens": tokens.cache_read});
        let last = json!({"id": RESPONSE_ID, "model": SERVED, "choices": [choice], "usage": usage});
        frames.push(sse(None, &last));
        frames.push(b"data: [DONE]\n\n".to_vec());
        frames
    }

    fn refusal(&self) -> Refusal {
        Refusal::Said
    }

    fn signature(&self, _thinking: &Thinking) -> Option<String> {
        None
    }

    fn images(&self, body: &Value) -> Vec<ImagePlace> {
        images(body)
    }

    fn prefix(&self, body: &Value) -> Prefix {
        prefix(body)
    }
}
