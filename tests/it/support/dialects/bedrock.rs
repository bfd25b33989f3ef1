//! Bedrock's Converse, as it offers Claude.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::super::bedrock::{event, exception};
use super::{Dialect, End, ImagePlace, Lack, Prefix, Refusal, Script, Step, by_turns, items};

pub(crate) struct Bedrock;

impl Dialect for Bedrock {
    fn api(&self) -> &'static str {
        "bedrock-converse-stream"
    }

    /// Of the models behind it, those that sign their thinking.
    fn model_ids(&self) -> [&'static str; 2] {
        ["anthropic.claude-sonnet-4-6", "anthropic.claude-opus-4-6"]
    }

    fn lacks(&self) -> &'static [Lack] {
        &[Lack::ReasoningTokens, Lack::Identity, Lack::RefusalWords]
    }

    fn content_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = vec![event("messageStart", &json!({"role": "assistant", "p": "abc"}))];
        let mut next = 0;
        for step in &script.steps {
            // Texts and thoughts begin without a start.
            let mut block = |deltas: Vec<Value>| {
                let at = next;
                next += 1;
                for delta in deltas {
                    frames
                        .push(event("contentBlockDelta", &json!({"contentBlockIndex": at, "delta": delta})));
                }
                frames.push(event("contentBlockStop", &json!({"contentBlockIndex": at})));
            };
            match step {
                Step::Text(pieces) => block(pieces.iter().map(|piece| json!({"text": piece})).collect()),
                Step::Thinking { pieces, signature } => {
                    let texts = pieces.iter().map(|piece| json!({"reasoningContent": {"text": piece}}));
                    let signed = signature.map(|sign| json!({"reasoningContent": {"signature": sign}}));
                    block(texts.chain(signed).collect());
                }
                Step::Calls(calls) => {
                    for (at, call) in calls.iter().enumerate() {
                        let start = json!({"toolUse": {"toolUseId": call.id, "name": call.name}});
                        let start = json!({"contentBlockIndex": next + at, "start": start});
                        frames.push(event("contentBlockStart", &start));
                    }
                    for (at, piece) in by_turns(calls) {
                        let delta = json!({"toolUse": {"input": piece}});
                        let delta = json!({"contentBlockIndex": next + at, "delta": delta});
                        frames.push(event("contentBlockDelta", &delta));
                    }
                    for at in 0..calls.len() {
                        let stop = json!({"contentBlockIndex": next + at});
                        frames.push(event("contentBlockStop", &stop));
                    }
                    next += calls.len();
                }
                Step::Unknown => {
                    frames.push(event("moonPhase", &json!({"text": "never shown"})));
                    let delta = json!({"contentBlockIndex": 99, "delta": {"moon": "never shown"}});
                    frames.push(event("contentBlockDelta", &delta));
                }
            }
        }
        let reason = match script.end {
            End::Natural if script.has_calls() => "tool_use",
            End::Natural => "end_turn",
            End::Length => "max_tokens",
            End::Refused(_) => "guardrail_intervened",
            End::Failed(message) => {
                frames.push(exception("serviceUnavailableException", message));
                return frames;
            }
            End::Missing => return frames,
        };
        if script.end == End::Length
            && let Some(stop) =
                frames.iter().rposition(|frame| frame.windows(16).any(|window| window == b"contentBlockStop"))
        {
            // Whatever was being written is not stopped.
            frames.remove(stop);
        }
        frames.push(event("messageStop", &json!({"stopReason": reason})));
        let usage = &script.usage;
        let usage = json!({"inputTokens": usage.input, "outputTokens": usage.output,
            "cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write,
            "totalTokens": usage.prompt() + usage.output});
        frames.push(event("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 1}})));
        frames
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
            for block in message["content"].as_array().into_iter().flatten() {
                let inner = block["toolResult"]["content"].as_array().into_iter().flatten();
                places.extend(inner.filter(|part| part.get("image").is_some()).map(|_| ImagePlace::Result));
                places.extend(block.get("image").map(|_| ImagePlace::Prompt));
            }
        }
        places
    }

    /// Markers are blocks of their own here, and a message grows when the same side
    /// goes on.
    fn prefix(&self, body: &Value) -> Prefix {
        let is_no_marker = |item: &String| !item.starts_with("{\"cachePoint\"");
        let messages = body["messages"].as_array().into_iter().flatten().flat_map(|message| {
            let blocks = items(&message["content"]).into_iter().filter(is_no_marker);
            blocks.map(move |block| format!("{} {block}", message["role"]))
        });
        Prefix {
            system: items(&body["system"]).into_iter().filter(is_no_marker).collect(),
            tools: items(&body["toolConfig"]["tools"]).into_iter().filter(is_no_marker).collect(),
            messages: messages.collect(),
        }
    }

    fn marks(&self) -> bool {
        true
    }
}
