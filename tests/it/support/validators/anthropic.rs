//! Anthropic Messages.

use serde_json::Value;

use super::{
    COMMON_IMAGES, MAX_MARKERS, Target, broken_bound, broken_ending, broken_image, broken_names,
    broken_schema, is_address, is_said, is_word, n_markers,
};

/// The first rule that `body` breaks.
pub(crate) fn broken(body: &Value, target: &Target) -> Option<String> {
    broken_options(body, target).or_else(|| broken_tools(body)).or_else(|| broken_messages(body, target))
}

fn broken_options(body: &Value, target: &Target) -> Option<String> {
    let Some(max_tokens) = body["max_tokens"].as_u64() else { return Some("no max_tokens".to_owned()) };
    if let Some(broken) = broken_bound(&body["max_tokens"], 1, target) {
        return Some(broken);
    }
    let thinking = &body["thinking"];
    let thinks = matches!(thinking["type"].as_str(), Some("enabled" | "adaptive"));
    let samples = body.get("temperature").is_some() || body.get("top_p").is_some();
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    if thinks && (samples || forced) {
        return Some("thinking, and told how to answer".to_owned());
    }
    if let Some(budget) = thinking["budget_tokens"].as_u64()
        && (budget < 1_024 || budget >= max_tokens)
    {
        return Some(format!("budget of {budget} in {max_tokens}"));
    }
    let markers = n_markers(body);
    (markers > MAX_MARKERS).then(|| format!("{markers} cache markers"))
}

fn broken_tools(body: &Value) -> Option<String> {
    let tools: &[Value] = body["tools"].as_array().map_or(&[], Vec::as_slice);
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let roots = tools.iter().find_map(|tool| {
        let mut schema = tool["input_schema"].clone();
        // This API does without the properties.
        schema.as_object_mut()?.entry("properties").or_insert_with(|| serde_json::json!({}));
        broken_schema(&schema)
    });
    broken_names(&names, 128).or(roots)
}

fn broken_messages(body: &Value, target: &Target) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let messages = body["messages"].as_array().unwrap();
    if messages.is_empty() {
        return Some("nothing said".to_owned());
    }
    let mut before = "";
    for message in messages {
        let role = message["role"].as_str().unwrap();
        let blocks = message["content"].as_array().unwrap();
        if role == "system" {
            if let Some(broken) = broken_update(message, before, &open, target) {
                return Some(broken);
            }
            // Several in a row are one.
            before = if blocks.is_empty() { before } else { "user" };
            continue;
        }
        before = role;
        if blocks.is_empty() || !matches!(role, "user" | "assistant") {
            return Some(format!("{role} says {blocks:?}"));
        }
        let mut answered = 0;
        for (at, block) in blocks.iter().enumerate() {
            let kind = block["type"].as_str().unwrap();
            let wrong = match (kind, role) {
                ("text", _) => !is_said(&block["text"]),
                ("image", "user") => {
                    let broken = broken_source(&block["source"], body, target);
                    if broken.is_some() {
                        return broken;
                    }
                    false
                }
                ("thinking", "assistant") => {
                    block["signature"].as_str().unwrap().is_empty() || !block["thinking"].is_string()
                }
                ("redacted_thinking", "assistant") => block["data"].as_str().unwrap().is_empty(),
                ("tool_use", "assistant") => {
                    let id = block["id"].as_str().unwrap().to_owned();
                    let is_fine = (is_word(&id, 64) || target.made(&id)) && !seen.contains(&id);
                    seen.push(id);
                    !is_fine || !is_word(block["name"].as_str().unwrap(), 128) || !block["input"].is_object()
                }
                ("tool_result", "user") => {
                    let expected = open.get(answered).map(String::as_str);
                    let in_place = at == answered && expected == block["tool_use_id"].as_str();
                    answered += 1;
                    if let Some(broken) = broken_result(block, body, target) {
                        return Some(broken);
                    }
                    !in_place
                }
                _ => true,
            };
            if wrong {
                return Some(format!("block {at} of {role}: {block}"));
            }
        }
        if answered != open.len() {
            return Some(format!("{answered} results to {open:?}"));
        }
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        open = calls.filter_map(|block| block["id"].as_str().map(str::to_owned)).collect();
    }
    if !open.is_empty() {
        return Some("unanswered call at the end".to_owned());
    }
    if !seen.is_empty() && body["tools"].as_array().is_none_or(Vec::is_empty) {
        return Some("calls without tools".to_owned());
    }
    let last = messages.last().filter(|message| message["role"] == "assistant")?;
    let text = last["content"].as_array()?.last()?["text"].as_str()?;
    text.ends_with(char::is_whitespace).then(|| "trailing white space".to_owned())
}

/// Checks a system message between the turns: it follows a user message, or contains
/// only the thinking effort.
fn broken_update(message: &Value, before: &str, open: &[String], target: &Target) -> Option<String> {
    let blocks = message["content"].as_array().unwrap();
    let effort = &message["output_config"]["effort"];
    let is_known = |block: &Value| match block["type"].as_str() {
        Some("text") => is_said(&block["text"]),
        Some("tool_addition") => block["tool"]["definition"]["input_schema"].is_object(),
        Some("tool_removal") => block["tool"]["name"].is_string(),
        _ => false,
    };
    let is_fine = target.reads_updates
        && open.is_empty()
        && blocks.iter().all(is_known)
        && (effort.is_string() && blocks.is_empty() || !blocks.is_empty() && before == "user");
    (!is_fine).then(|| format!("behind {before}: {message}"))
}

fn broken_source(source: &Value, body: &Value, target: &Target) -> Option<String> {
    match source["type"].as_str() {
        Some("base64") => broken_image(&source["media_type"], &source["data"], &COMMON_IMAGES, target),
        // On Vertex AI, which wants the version in the body, nothing is fetched.
        Some("url")
            if target.reads_images
                && body.get("anthropic_version").is_none()
                && source.as_object().unwrap().len() == 2
                && is_address(&source["url"], &["https"]) =>
        {
            broken_ending(&source["url"], &COMMON_IMAGES)
        }
        _ => Some(format!("source {source} of an image")),
    }
}

fn broken_result(block: &Value, body: &Value, target: &Target) -> Option<String> {
    let content = block["content"].as_array().unwrap();
    if content.is_empty() {
        return Some("empty result".to_owned());
    }
    content.iter().find_map(|part| match part["type"].as_str() {
        Some("text") => (!is_said(&part["text"])).then(|| "blank result".to_owned()),
        Some("image") if block["is_error"] != true => broken_source(&part["source"], body, target),
        other => Some(format!("{other:?} in a result")),
    })
}
