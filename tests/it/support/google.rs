//! How an accepted request to Google's `generateContent` reads as a conversation.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use serde_json::{Value, json};

/// The conversation that an accepted request came from.
pub(crate) fn conversation(accepted: &Value, model: &Value) -> Vec<Value> {
    let declared = accepted["tools"][0]["functionDeclarations"].as_array().into_iter().flatten();
    let tools: Vec<Value> = declared
        .map(|tool| json!({"name": tool["name"], "description": tool["description"], "parameters": tool["parameters"]}))
        .collect();
    let system = &accepted["systemInstruction"]["parts"][0]["text"];
    let mut messages = vec![json!({"role": "system", "content": system, "toolsAdded": tools})];
    let mut calls: Vec<Value> = Vec::new();
    for content in accepted["contents"].as_array().unwrap() {
        let parts = content["parts"].as_array().unwrap();
        if content["role"] == "model" {
            let blocks: Vec<Value> = parts.iter().enumerate().map(|(at, part)| block(part, at)).collect();
            calls = blocks.iter().filter(|block| block["type"] == "toolCall").cloned().collect();
            messages.push(json!({"role": "assistant", "provider": model["provider"], "api": model["api"],
                "model": model["id"], "content": blocks}));
            continue;
        }
        for part in parts {
            messages.push(match part.get("functionResponse") {
                Some(response) => {
                    let text = response["response"].as_object().unwrap().values().next().unwrap();
                    let call = calls.remove(0);
                    json!({"role": "toolResult", "toolCallId": call["id"], "content": [{"type": "text", "text": text}]})
                }
                None => json!({"role": "user", "content": part["text"]}),
            });
        }
    }
    messages
}

fn block(part: &Value, at: usize) -> Value {
    let mut block = match part.get("functionCall") {
        Some(call) => json!({"type": "toolCall", "id": format!("call_{at}"), "name": call["name"],
            "arguments": call["args"], "thoughtSignature": part["thoughtSignature"]}),
        None if part["thought"] == true => json!({"type": "thinking", "thinking": part["text"],
            "thinkingSignature": part["thoughtSignature"]}),
        None => json!({"type": "text", "text": part["text"], "textSignature": part["thoughtSignature"]}),
    };
    block.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    block
}

/// The content on which two bodies for the same conversation must agree.
pub(crate) fn outline(body: &Value) -> Vec<Value> {
    let mut lines = vec![body["systemInstruction"]["parts"][0]["text"].clone()];
    for content in body["contents"].as_array().unwrap() {
        let parts = content["parts"].as_array().unwrap().iter().map(|part| {
            let (call, response) = (&part["functionCall"], &part["functionResponse"]);
            let said = response["response"].as_object().and_then(|response| response.values().next());
            json!([
                part["text"],
                part["thought"],
                part["thoughtSignature"],
                part["inlineData"],
                call["name"],
                call["args"],
                response["name"],
                said
            ])
        });
        lines.push(json!([content["role"], parts.collect::<Vec<_>>()]));
    }
    for tool in body["tools"][0]["functionDeclarations"].as_array().into_iter().flatten() {
        lines.push(json!([tool["name"], tool["description"], tool["parameters"]]));
    }
    lines
}
