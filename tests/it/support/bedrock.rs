//! What tests know of Bedrock's Converse: its framing, its rules, and how an
//! accepted request reads as a conversation. Written from the API's pages, not
//! from the codec.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use serde_json::{Value, json};

/// An event in the form of the stream.
pub(crate) fn event(kind: &str, payload: &Value) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, payload.to_string().as_bytes())
}

/// An exception in the form of the stream.
pub(crate) fn exception(kind: &str, text: &str) -> Vec<u8> {
    let headers =
        [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    message(&headers, json!({"message": text}).to_string().as_bytes())
}

/// A message with string headers: lengths, their checksum, headers, payload,
/// checksum of all before it.
pub(crate) fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    for (name, value) in headers {
        section.push(u8::try_from(name.len()).unwrap());
        section.extend(name.as_bytes());
        section.push(7);
        section.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        section.extend(value.as_bytes());
    }
    let mut bytes = Vec::new();
    bytes.extend(u32::try_from(16 + section.len() + payload.len()).unwrap().to_be_bytes());
    bytes.extend(u32::try_from(section.len()).unwrap().to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(section);
    bytes.extend(payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// A body of events written one per line, as `{"type":payload}`.
pub(crate) fn framed(lines: &str) -> Vec<u8> {
    let events = lines.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let parsed: Value = serde_json::from_str(line).unwrap();
        let (kind, payload) = parsed.as_object().unwrap().iter().next().unwrap();
        event(kind, payload)
    });
    events.collect::<Vec<_>>().concat()
}

/// The first rule of the API that `body` breaks. `signs` is whether it is for a
/// model that signs its thinking.
pub(crate) fn broken(body: &Value, signs: bool) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut last_role = "";
    let messages = body["messages"].as_array().unwrap();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == last_role || (last_role.is_empty() && role != "user") {
            return Some(format!("{role} after {last_role:?}"));
        }
        last_role = role;
        let blocks = message["content"].as_array().unwrap();
        let broken = blocks.iter().find_map(|block| broken_block(block, role, signs));
        if blocks.is_empty() || broken.is_some() {
            return broken.or(Some("empty message".to_owned()));
        }
        let images = message.to_string().matches("\"image\":").count();
        if images > 20 {
            return Some(format!("{images} images in a message"));
        }
        let results: Vec<&str> =
            blocks.iter().filter_map(|block| block["toolResult"]["toolUseId"].as_str()).collect();
        if results != open || blocks.iter().take(results.len()).any(|block| block.get("toolResult").is_none())
        {
            return Some(format!("results {results:?} for calls {open:?}"));
        }
        let calls = blocks.iter().filter_map(|block| block["toolUse"]["toolUseId"].as_str());
        open = calls.map(str::to_owned).collect();
        for id in &open {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if !(1..=64).contains(&id.len()) || !id.bytes().all(fits) || seen.contains(id) {
                return Some(format!("id {id:?}"));
            }
            seen.push(id.clone());
        }
    }
    if messages.is_empty() || !open.is_empty() {
        return Some("no message, or an unanswered call at the end".to_owned());
    }
    if !seen.is_empty() && body["toolConfig"]["tools"].as_array().is_none_or(Vec::is_empty) {
        return Some("calls without tools".to_owned());
    }
    let points = body.to_string().matches("\"cachePoint\"").count();
    if points > 4 {
        return Some(format!("{points} cache points"));
    }
    let last = messages.last().filter(|message| message["role"] == "assistant")?;
    let text = last["content"].as_array()?.last()?["text"].as_str()?;
    text.ends_with(char::is_whitespace).then(|| "trailing white space".to_owned())
}

fn broken_block(block: &Value, role: &str, signs: bool) -> Option<String> {
    let members = block.as_object().unwrap();
    let (kind, value) = members.iter().next().unwrap();
    let is_user = role == "user";
    let fine = match kind.as_str() {
        "text" => !value.as_str().unwrap().trim().is_empty(),
        "image" => is_user && is_image(value, signs),
        "toolUse" => !is_user && value["input"].is_object() && !value["input"].to_string().contains("\"\":"),
        "toolResult" => {
            let content = value["content"].as_array().unwrap();
            let is_error = value["status"] == "error";
            let part = |part: &Value| match part.get("text") {
                Some(text) => !text.as_str().unwrap().trim().is_empty(),
                None => !is_error && is_image(&part["image"], signs),
            };
            is_user
                && (is_error || value["status"] == "success")
                && !content.is_empty()
                && content.iter().all(part)
        }
        "reasoningContent" => {
            !is_user
                && match value.get("reasoningText") {
                    Some(text) if signs => !text["signature"].as_str().unwrap_or_default().is_empty(),
                    Some(text) => {
                        text.get("signature").is_none() && !text["text"].as_str().unwrap().trim().is_empty()
                    }
                    None => is_base64(&value["redactedContent"]),
                }
        }
        "cachePoint" => value["type"] == "default",
        _ => false,
    };
    (members.len() != 1 || !fine).then(|| format!("{role} has {block}"))
}

/// Only models of Amazon look into S3, and those do not sign.
fn is_image(image: &Value, signs: bool) -> bool {
    let source = &image["source"];
    let is_there = match source.get("s3Location") {
        Some(place) => {
            !signs && source.get("bytes").is_none() && place["uri"].as_str().unwrap().starts_with("s3://")
        }
        None => is_base64(&source["bytes"]),
    };
    matches!(image["format"].as_str(), Some("png" | "jpeg" | "gif" | "webp")) && is_there
}

fn is_base64(value: &Value) -> bool {
    use base64::Engine as _;
    let text = value.as_str().unwrap_or_default();
    !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// The conversation that an accepted request came from.
pub(crate) fn conversation(accepted: &Value, model: &Value) -> Vec<Value> {
    let tools = accepted["toolConfig"]["tools"].as_array().into_iter().flatten().map(|tool| {
        let spec = &tool["toolSpec"];
        json!({"name": spec["name"], "description": spec["description"], "parameters": spec["inputSchema"]["json"]})
    });
    let tools: Vec<Value> = tools.collect();
    let mut messages =
        vec![json!({"role": "system", "content": accepted["system"][0]["text"], "toolsAdded": tools})];
    for message in accepted["messages"].as_array().unwrap() {
        let blocks = message["content"].as_array().unwrap();
        if message["role"] == "assistant" {
            let content: Vec<Value> = blocks.iter().map(answer_block).collect();
            messages.push(json!({"role": "assistant", "provider": model["provider"], "api": model["api"],
                "model": model["id"], "content": content}));
            continue;
        }
        for block in blocks {
            messages.push(match block.get("toolResult") {
                Some(result) => json!({"role": "toolResult", "toolCallId": result["toolUseId"],
                    "content": [{"type": "text", "text": result["content"][0]["text"]}]}),
                None => json!({"role": "user", "content": block["text"]}),
            });
        }
    }
    messages
}

fn answer_block(block: &Value) -> Value {
    match block.get("toolUse") {
        Some(call) => {
            json!({"type": "toolCall", "id": call["toolUseId"], "name": call["name"], "arguments": call["input"]})
        }
        None => json!({"type": "text", "text": block["text"]}),
    }
}
