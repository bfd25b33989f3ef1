//! Google's `generateContent`, on the Gemini API and on Vertex AI.

use pi::ai::Thinking;
use serde_json::{Value, json};

use super::{
    Call, Dialect, End, ImagePlace, Lack, Prefix, RESPONSE_ID, Refusal, SERVED, Script, Step, Tokens, items,
};

pub(crate) struct Google {
    pub(crate) api: &'static str,
}

impl Dialect for Google {
    fn api(&self) -> &'static str {
        self.api
    }

    fn lacks(&self) -> &'static [Lack] {
        &[Lack::ArgumentPieces, Lack::BrokenArguments, Lack::CacheWrites]
    }

    fn frames(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut part = |part: Value| frames.push(chunk(json!([part]), None, &script.usage));
        for step in &script.steps {
            match step {
                Step::Text(pieces) => pieces.iter().for_each(|piece| part(json!({"text": piece}))),
                Step::Thinking { pieces, signature } => {
                    for (at, piece) in pieces.iter().enumerate() {
                        let mut thought = json!({"text": piece, "thought": true});
                        if let Some(signature) = signature.filter(|_| at + 1 == pieces.len()) {
                            thought["thoughtSignature"] = json!(signature);
                        }
                        part(thought);
                    }
                }
                Step::Calls(calls) => calls.iter().for_each(|call| part(function_call(call))),
                Step::Unknown => {
                    part(json!({"executableCode": {"language": "PYTHON", "code": "never shown"}}));
                    part(json!({"moon": {"text": "never shown"}}));
                }
            }
        }
        let reason = match script.end {
            End::Natural => "STOP",
            End::Length => "MAX_TOKENS",
            End::Refused(_) => "SAFETY",
            End::Failed(message) => {
                let error = json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}});
                frames.push(format!("{error:#}\r\n").into_bytes());
                return frames;
            }
            End::Missing => return frames,
        };
        let words = if let End::Refused(words) = script.end { Some(words) } else { None };
        frames.push(chunk(json!([{"text": ""}]), Some((reason, words)), &script.usage));
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
        for content in body["contents"].as_array().into_iter().flatten() {
            let mut after_results = false;
            for part in content["parts"].as_array().into_iter().flatten() {
                let inner = part["functionResponse"]["parts"].as_array().into_iter().flatten();
                places.extend(inner.map(|_| ImagePlace::Result));
                after_results |= part.get("functionResponse").is_some();
                if part.get("inlineData").or_else(|| part.get("fileData")).is_some() {
                    places.push(if after_results { ImagePlace::AfterResults } else { ImagePlace::Prompt });
                }
            }
        }
        places
    }

    /// A content grows when the same side continues, so its parts are what stays.
    fn prefix(&self, body: &Value) -> Prefix {
        let contents = body["contents"].as_array().into_iter().flatten();
        let parts = contents.flat_map(|content| {
            items(&content["parts"]).into_iter().map(move |part| format!("{} {part}", content["role"]))
        });
        Prefix {
            system: body["systemInstruction"].to_string(),
            tools: items(&body["tools"][0]["functionDeclarations"]),
            messages: parts.collect(),
        }
    }
}

/// The API has the arguments as they are, or none at all.
fn function_call(call: &Call) -> Value {
    let arguments = call.pieces.concat();
    let mut function = json!({"id": call.id, "name": call.name});
    if let Ok(arguments) = serde_json::from_str::<Value>(&arguments) {
        function["args"] = arguments;
    }
    json!({"functionCall": function})
}

fn chunk(parts: Value, finish: Option<(&str, Option<&str>)>, usage: &Tokens) -> Vec<u8> {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some((reason, words)) = finish {
        candidate["finishReason"] = json!(reason);
        candidate["finishMessage"] = json!(words);
    }
    let chunk = json!({"candidates": [candidate], "modelVersion": SERVED, "responseId": RESPONSE_ID,
        "usageMetadata": {"promptTokenCount": usage.prompt(), "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output - usage.reasoning, "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.prompt() + usage.output}});
    format!("data: {chunk}\r\n\r\n").into_bytes()
}
