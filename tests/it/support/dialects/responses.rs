//! Responses, at OpenAI, behind ChatGPT and at Azure.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::{
    Call, Dialect, End, ImagePlace, Lack, Prefix, RESPONSE_ID, Refusal, SERVED, Script, Step, by_turns,
    items, sse,
};

pub(crate) struct Responses {
    pub(crate) api: &'static str,
}

impl Dialect for Responses {
    fn api(&self) -> &'static str {
        self.api
    }

    fn lacks(&self) -> &'static [Lack] {
        &[]
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut stream = Stream { frames: Vec::new(), n_items: 0 };
        stream.event(json!({"type": "response.created", "response": {"id": RESPONSE_ID, "model": SERVED,
            "status": "in_progress", "output": []}}));
        for step in &script.steps {
            match step {
                Step::Text(pieces) => stream.message("output_text", "text", pieces),
                Step::Thinking { pieces, signature } => stream.reasoning(pieces, *signature),
                Step::Calls(calls) => stream.calls(calls),
                Step::Unknown => {
                    stream.event(json!({"type": "response.moon.delta", "delta": {"phase": 1}, "item": 7}));
                    let item = json!({"type": "moon_call", "id": "moon_1", "content": "never shown"});
                    let index = stream.n_items;
                    stream.n_items += 1;
                    stream.event(
                        json!({"type": "response.output_item.added", "output_index": index, "item": item}),
                    );
                    stream.event(json!({"type": "response.output_text.delta", "output_index": index, "delta": "never shown"}));
                    stream.event(
                        json!({"type": "response.output_item.done", "output_index": index, "item": item}),
                    );
                }
            }
        }
        let usage = &script.usage;
        let mut response = json!({"id": RESPONSE_ID, "model": SERVED, "status": "completed", "output": [],
            "usage": {"input_tokens": usage.prompt(), "output_tokens": usage.output,
                "total_tokens": usage.prompt() + usage.output,
                "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
                "output_tokens_details": {"reasoning_tokens": usage.reasoning}}});
        match script.end {
            End::Natural => {}
            End::Refused(words) => stream.message("refusal", "refusal", &[words]),
            End::Length => {
                response["status"] = json!("incomplete");
                response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                stream.event(json!({"type": "response.incomplete", "response": response}));
                return stream.frames;
            }
            End::Failed(message) => {
                let error =
                    json!({"type": "server_error", "code": "server_is_overloaded", "message": message});
                stream.event(json!({"type": "error", "error": error}));
                return stream.frames;
            }
            End::Missing => return stream.frames,
        }
        stream.event(json!({"type": "response.completed", "response": response}));
        stream.frames
    }

    fn refusal(&self) -> Refusal {
        Refusal::Said
    }

    fn signature(&self, thinking: &Thinking) -> Option<String> {
        let item: Value = serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
        Some(item["encrypted_content"].as_str()?.to_owned())
    }

    fn images(&self, body: &Value) -> Vec<ImagePlace> {
        let mut places = Vec::new();
        for item in body["input"].as_array().into_iter().flatten() {
            for (list, place) in [("content", ImagePlace::Prompt), ("output", ImagePlace::Result)] {
                let parts = item[list].as_array().into_iter().flatten();
                let n_images = parts.filter(|part| part["type"] == "input_image").count();
                places.extend(std::iter::repeat_n(place, n_images));
            }
        }
        places
    }

    fn prefix(&self, body: &Value) -> Prefix {
        let mut input = items(&body["input"]);
        // The thinking effort of the next answer belongs to that answer.
        input.pop_if(|item| item.contains("configuration_update"));
        let is_system = matches!(body["input"][0]["role"].as_str(), Some("system" | "developer"));
        let messages = input.split_off(usize::from(is_system));
        let instructions = body["instructions"].as_str().unwrap_or_default();
        Prefix { system: input.concat() + instructions, tools: items(&body["tools"]), messages }
    }
}

struct Stream {
    frames: Vec<Vec<u8>>,
    n_items: usize,
}

impl Stream {
    fn event(&mut self, mut data: Value) {
        data["sequence_number"] = json!(self.frames.len());
        let kind = data["type"].as_str().map(str::to_owned);
        self.frames.push(sse(kind.as_deref(), &data));
    }

    fn message(&mut self, kind: &str, member: &str, pieces: &[&str]) {
        let index = self.n_items;
        self.n_items += 1;
        let item = |content: Value| {
            json!({"type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": "completed",
                "content": content})
        };
        self.event(
            json!({"type": "response.output_item.added", "output_index": index, "item": item(json!([]))}),
        );
        for piece in pieces {
            self.event(
                json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0,
                "delta": piece, "obfuscation": "kPzq"}),
            );
        }
        let whole = pieces.concat();
        let mut done =
            json!({"type": format!("response.{kind}.done"), "output_index": index, "content_index": 0});
        done[member] = json!(whole);
        self.event(done);
        let mut part = json!({"type": kind, "annotations": []});
        part[member] = json!(whole);
        let item = item(json!([part]));
        self.event(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }

    fn reasoning(&mut self, pieces: &[&str], signature: Option<&str>) {
        let index = self.n_items;
        self.n_items += 1;
        let item = |summary: Value, encrypted: Option<&str>| json!({"type": "reasoning", "id": format!("rs_{index}"), "summary": summary, "encrypted_content": encrypted});
        self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item(json!([]), None)}));
        for piece in pieces {
            self.event(json!({"type": "response.reasoning_summary_text.delta", "output_index": index, "summary_index": 0,
                "delta": piece}));
        }
        let item = item(json!([{"type": "summary_text", "text": pieces.concat()}]), signature);
        self.event(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }

    fn calls(&mut self, calls: &[Call]) {
        let first = self.n_items;
        self.n_items += calls.len();
        let item = |at: usize, call: &Call, arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{}", first + at), "call_id": call.id, "name": call.name,
                "arguments": arguments})
        };
        for (at, call) in calls.iter().enumerate() {
            let item = item(at, call, "");
            self.event(
                json!({"type": "response.output_item.added", "output_index": first + at, "item": item}),
            );
        }
        for (at, piece) in by_turns(calls) {
            self.event(json!({"type": "response.function_call_arguments.delta", "output_index": first + at,
                "delta": piece}));
        }
        for (at, call) in calls.iter().enumerate() {
            let whole = call.pieces.concat();
            self.event(json!({"type": "response.function_call_arguments.done", "output_index": first + at,
                "arguments": whole}));
            let mut item = item(at, call, &whole);
            item["status"] = json!("completed");
            self.event(
                json!({"type": "response.output_item.done", "output_index": first + at, "item": item}),
            );
        }
    }
}
