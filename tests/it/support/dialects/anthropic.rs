//! Anthropic Messages, at Anthropic and on Vertex AI.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::{
    Call, Dialect, End, ImagePlace, Lack, Prefix, RESPONSE_ID, Refusal, SERVED, Script, Step, items, sse,
};

pub(crate) struct Anthropic {
    pub(crate) api: &'static str,
}

impl Dialect for Anthropic {
    fn api(&self) -> &'static str {
        self.api
    }

    fn lacks(&self) -> &'static [Lack] {
        &[]
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut stream = Stream { frames: Vec::new(), n_blocks: 0 };
        let usage = &script.usage;
        stream.event(json!({"type": "message_start", "message": {"id": RESPONSE_ID, "model": SERVED, "content": [],
            "usage": {"input_tokens": usage.input, "output_tokens": 1, "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write}}}));
        stream.event(json!({"type": "ping"}));
        for step in &script.steps {
            match step {
                Step::Text(pieces) => stream.block(
                    &json!({"type": "text", "text": ""}),
                    |piece| json!({"type": "text_delta", "text": piece}),
                    pieces,
                    None,
                ),
                Step::Thinking { pieces, signature } => stream.block(
                    &json!({"type": "thinking", "thinking": "", "signature": ""}),
                    |piece| json!({"type": "thinking_delta", "thinking": piece}),
                    pieces,
                    *signature,
                ),
                Step::Calls(calls) => calls.iter().for_each(|call| stream.call(call)),
                Step::Unknown => {
                    stream.event(
                        json!({"type": "moon_phase", "delta": 7, "index": {"a": []}, "message": null}),
                    );
                    stream.block(
                        &json!({"type": "moon", "text": "never shown", "data": {}}),
                        |piece| json!({"type": "moon_delta", "text": piece}),
                        &["never shown"],
                        None,
                    );
                }
            }
        }
        let reason = match script.end {
            End::Natural if script.has_calls() => "tool_use",
            End::Natural => "end_turn",
            End::Length => "max_tokens",
            End::Refused(_) => "refusal",
            End::Failed(message) => {
                stream.event(
                    json!({"type": "error", "error": {"type": "overloaded_error", "message": message}}),
                );
                return stream.frames;
            }
            End::Missing => return stream.frames,
        };
        let mut delta = json!({"stop_reason": reason, "stop_sequence": null});
        if let End::Refused(words) = script.end {
            delta["stop_details"] = json!({"type": "refusal", "category": null, "explanation": words});
        }
        stream
            .event(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output,
            "output_tokens_details": {"thinking_tokens": usage.reasoning}}}));
        stream.event(json!({"type": "message_stop"}));
        stream.frames
    }

    fn refusal(&self) -> Refusal {
        Refusal::Failed
    }

    fn signature(&self, thinking: &Thinking) -> Option<String> {
        thinking.thinking_signature.clone()
    }

    fn images(&self, body: &Value) -> Vec<ImagePlace> {
        let mut places = Vec::new();
        for message in body["messages"].as_array().into_iter().flatten() {
            let mut after_results = false;
            for block in message["content"].as_array().into_iter().flatten() {
                let inner = block["content"].as_array().into_iter().flatten();
                let n_inner = inner.filter(|part| part["type"] == "image").count();
                places.extend(std::iter::repeat_n(ImagePlace::Result, n_inner));
                after_results |= block["type"] == "tool_result";
                if block["type"] == "image" {
                    places.push(if after_results { ImagePlace::AfterResults } else { ImagePlace::Prompt });
                }
            }
        }
        places
    }

    fn prefix(&self, body: &Value) -> Prefix {
        let system = items(&body["system"]).concat();
        let mut messages = items(&body["messages"]);
        // The thinking effort of the next answer belongs to that answer.
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        if last.is_some_and(|last| last["output_config"].is_object()) {
            messages.pop();
        }
        Prefix { system, tools: items(&body["tools"]), messages }
    }

    fn marks(&self) -> bool {
        true
    }
}

struct Stream {
    frames: Vec<Vec<u8>>,
    n_blocks: usize,
}

impl Stream {
    fn event(&mut self, data: Value) {
        let kind = data["type"].as_str().map(str::to_owned);
        self.frames.push(sse(kind.as_deref(), &data));
    }

    fn block(
        &mut self,
        start: &Value,
        delta: impl Fn(&str) -> Value,
        pieces: &[&str],
        signature: Option<&str>,
    ) {
        let index = self.n_blocks;
        self.n_blocks += 1;
        self.event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for piece in pieces {
            self.event(json!({"type": "content_block_delta", "index": index, "delta": delta(piece)}));
        }
        // Signatures may come in pieces as well.
        if let Some((head, tail)) = signature.map(|signature| signature.split_at(signature.len() / 2)) {
            for piece in [head, tail] {
                let delta = json!({"type": "signature_delta", "signature": piece});
                self.event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
        }
        self.event(json!({"type": "content_block_stop", "index": index}));
    }

    fn call(&mut self, call: &Call) {
        let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
        self.block(&start, delta, &call.pieces, None);
    }
}
