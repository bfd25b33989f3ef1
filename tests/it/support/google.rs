//! What tests know of Google's `generateContent`: its rules, and how an accepted
//! request reads as a conversation. Written from the API's pages, not from the
//! encoder.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use serde_json::{Value, json};

/// The first rule of the API that `body` breaks. `is_3` is whether it is for a
/// model that has ids, sees images in responses and checks signatures.
pub(crate) fn broken(body: &Value, is_3: bool) -> Option<String> {
    let contents = body["contents"].as_array().unwrap();
    let mut open: Vec<&Value> = Vec::new();
    let mut ids: Vec<&Value> = Vec::new();
    let mut last_role = "";
    for content in contents {
        let role = content["role"].as_str().unwrap();
        if role == last_role || !matches!(role, "user" | "model") {
            return Some(format!("{role} after {last_role:?}"));
        }
        last_role = role;
        let parts = content["parts"].as_array().unwrap();
        if parts.is_empty() {
            return Some("content without parts".to_owned());
        }
        if let Some(broken) = parts.iter().find_map(|part| broken_part(part, role, is_3)) {
            return Some(broken);
        }
        let responses: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionResponse")).collect();
        if responses.len() != open.len() {
            return Some(format!("{} responses to {} calls", responses.len(), open.len()));
        }
        for (call, response) in open.iter().zip(&responses) {
            if call["name"] != response["name"] || call.get("id") != response.get("id") {
                return Some(format!("{response} answers {call}"));
            }
        }
        open = parts.iter().filter_map(|part| part.get("functionCall")).collect();
        for call in &open {
            match call.get("id") {
                Some(id) if !is_3 || ids.contains(&id) || id == "" => return Some(format!("id {id}")),
                Some(id) => ids.push(id),
                None if is_3 => return Some("call without an id".to_owned()),
                None => {}
            }
        }
    }
    if !open.is_empty() {
        return Some("unanswered call at the end".to_owned());
    }
    if contents.iter().any(|content| content.to_string().contains("\"functionCall\""))
        && body["tools"][0]["functionDeclarations"].as_array().is_none_or(Vec::is_empty)
    {
        return Some("calls without tools".to_owned());
    }
    let thinking = &body["generationConfig"]["thinkingConfig"];
    if thinking.get("thinkingBudget").is_some() && thinking.get("thinkingLevel").is_some() {
        return Some("thinking by budget and by level".to_owned());
    }
    if is_3 { unsigned_step(contents) } else { None }
}

/// A step of the current turn whose first call has no signature.
fn unsigned_step(contents: &[Value]) -> Option<String> {
    let has = |content: &Value, kind: &str| {
        content["parts"].as_array().unwrap().iter().any(|part| part.get(kind).is_some())
    };
    let is_prompt = |content: &Value| content["role"] == "user" && !has(content, "functionResponse");
    let turn = contents.iter().rposition(is_prompt).unwrap_or(0);
    contents[turn..].iter().find_map(|content| {
        let parts = content["parts"].as_array().unwrap();
        let first = parts.iter().find(|part| part.get("functionCall").is_some())?;
        first.get("thoughtSignature").is_none().then(|| format!("unsigned {first}"))
    })
}

fn broken_part(part: &Value, role: &str, is_3: bool) -> Option<String> {
    let signature = part.get("thoughtSignature").map(|signature| signature.as_str().unwrap());
    let kinds = ["text", "inlineData", "functionCall", "functionResponse"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| part.get(kind).is_some()).collect();
    let [kind] = kinds.as_slice() else { return Some(format!("a part of kinds {kinds:?}")) };
    match signature {
        Some("skip_thought_signature_validator") if is_3 && *kind == "functionCall" => {}
        Some(signature) if base64_length(signature).is_none() || role != "model" => {
            return Some(format!("signature {signature:?} on {kind} of {role}"));
        }
        Some(_) | None => {}
    }
    let wrong = match *kind {
        "text" => {
            let blank = part["text"].as_str().unwrap().trim().is_empty();
            (blank && signature.is_none()) || (part.get("thought").is_some() && role != "model")
        }
        "inlineData" => role != "user" || part["inlineData"]["mimeType"].as_str().unwrap().is_empty(),
        "functionCall" => role != "model" || !part["functionCall"]["args"].is_object(),
        _ => {
            let response = &part["functionResponse"];
            let outcome = response["response"].as_object().unwrap();
            let is_told =
                |key: &str| outcome.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            role != "user"
                || outcome.len() != 1
                || !(is_told("output") || is_told("error"))
                || (response.get("parts").is_some() && !is_3)
        }
    };
    wrong.then(|| format!("{kind} of {role}: {part}"))
}

/// Bytes that the standard alphabet encodes in `text`.
fn base64_length(text: &str) -> Option<usize> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| bytes.len())
}

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

/// What two bodies for the same conversation must agree on.
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
