//! OpenAI Responses, and the servers that offer it too.

use serde_json::Value;

use super::{Target, broken_bound, broken_names, broken_schema, broken_url, is_said, is_word};

/// Differences between servers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Server {
    /// Wants an id for everything.
    pub(crate) wants_ids: bool,
    /// Takes reasoning that is not encrypted.
    pub(crate) knows_reasoning: bool,
    /// Puts the field `instructions` behind the input, where it breaks the cache.
    pub(crate) is_codex: bool,
}

/// The first rule that `body` breaks.
pub(crate) fn broken(body: &Value, server: Server, target: &Target) -> Option<String> {
    if server.is_codex && body.get("instructions").is_some() {
        return Some("instructions outside the input".to_owned());
    }
    broken_bound(&body["max_output_tokens"], 16, target)
        .or_else(|| broken_tools(body))
        .or_else(|| broken_input(body, server, target))
}

fn broken_tools(body: &Value) -> Option<String> {
    let Some(tools) = body["tools"].as_array() else {
        return body.get("tool_choice").map(|choice| format!("choice {choice} of nothing"));
    };
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    broken_names(&names, 64).or_else(|| tools.iter().find_map(|tool| broken_schema(&tool["parameters"])))
}

fn broken_input(body: &Value, server: Server, target: &Target) -> Option<String> {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let mut after_reasoning = false;
    let input = body["input"].as_array().unwrap();
    if input.is_empty() {
        return Some("nothing said".to_owned());
    }
    for item in input {
        let kind = item.get("type").map_or("said", |kind| kind.as_str().unwrap());
        let is_output = kind.ends_with("_output");
        let is_update = matches!(kind, "additional_tools" | "configuration_update");
        if !open.is_empty() && (kind == "said" || is_update) {
            return Some(format!("{kind} of {} before the outputs of {open:?}", item["role"]));
        }
        if is_update {
            let is_fine = target.reads_updates
                && !after_reasoning
                && (item["tools"].as_array().is_some_and(|tools| !tools.is_empty())
                    || item["reasoning"]["effort"].is_string());
            if !is_fine {
                return Some(format!("update {item}"));
            }
            continue;
        }
        if after_reasoning && (kind == "said" || is_output) {
            return Some(format!("{kind} right after reasoning"));
        }
        after_reasoning = kind == "reasoning";
        let prefix = match kind {
            "said" | "function_call_output" | "custom_tool_call_output" => "",
            "reasoning" => "rs_",
            "message" => "msg_",
            "function_call" => "fc_",
            "custom_tool_call" => "ctc_",
            other => return Some(format!("item {other}")),
        };
        match item.get("id").map(|id| id.as_str().unwrap().to_owned()) {
            Some(id) => {
                if prefix.is_empty() || !id.starts_with(prefix) || !is_word(&id, 64) || ids.contains(&id) {
                    return Some(format!("id {id:?} of {kind}"));
                }
                ids.push(id);
            }
            None if kind == "reasoning" || (server.wants_ids && !prefix.is_empty()) => {
                return Some(format!("{kind} without an id"));
            }
            None => {}
        }
        let call_id = item["call_id"].as_str().unwrap_or_default().to_owned();
        let broken = match kind {
            "said" => broken_words(item, target),
            "reasoning" => {
                let is_known = server.knows_reasoning || is_said(&item["encrypted_content"]);
                (!item["summary"].is_array() || !is_known).then(|| format!("reasoning {item}"))
            }
            "message" => broken_message(item),
            "function_call" | "custom_tool_call" => {
                let broken = broken_call(item, kind, &calls);
                calls.push(call_id.clone());
                open.push((call_id, format!("{kind}_output")));
                broken
            }
            _ => {
                let Some(at) = open.iter().position(|(id, output)| *id == call_id && output == kind) else {
                    return Some(format!("{kind} of {call_id:?}, open are {open:?}"));
                };
                open.remove(at);
                broken_output(&item["output"], target)
            }
        };
        if broken.is_some() {
            return broken;
        }
    }
    if after_reasoning {
        return Some("reasoning at the end".to_owned());
    }
    (!open.is_empty()).then(|| "unanswered call at the end".to_owned())
}

fn broken_words(item: &Value, target: &Target) -> Option<String> {
    let role = item["role"].as_str().unwrap();
    match &item["content"] {
        Value::String(text) if matches!(role, "developer" | "system") && !text.trim().is_empty() => None,
        Value::Array(parts) if role == "user" && !parts.is_empty() => broken_parts(parts, target),
        other => Some(format!("{role} says {other}")),
    }
}

fn broken_parts(parts: &[Value], target: &Target) -> Option<String> {
    parts.iter().find_map(|part| match part["type"].as_str() {
        Some("input_text") => (!is_said(&part["text"])).then(|| "blank part".to_owned()),
        Some("input_image") => broken_url(&part["image_url"], target),
        other => Some(format!("part {other:?}")),
    })
}

fn broken_message(item: &Value) -> Option<String> {
    let part = &item["content"][0];
    let is_fine = item["role"] == "assistant"
        && part["type"] == "output_text"
        && is_said(&part["text"])
        && part["annotations"].is_array();
    let phase = item.get("phase").is_none_or(|phase| phase == "commentary" || phase == "final_answer");
    (!is_fine || !phase).then(|| format!("message {item}"))
}

fn broken_call(item: &Value, kind: &str, calls: &[String]) -> Option<String> {
    let call_id = item["call_id"].as_str().unwrap();
    if call_id.is_empty() || call_id.len() > 64 || calls.iter().any(|known| known == call_id) {
        return Some(format!("call id {call_id:?}"));
    }
    if !is_word(item["name"].as_str().unwrap(), 64) {
        return Some(format!("call of {}", item["name"]));
    }
    if kind == "custom_tool_call" {
        return (!item["input"].is_string()).then(|| format!("input {item}"));
    }
    let arguments = serde_json::from_str::<Value>(item["arguments"].as_str().unwrap());
    (!arguments.is_ok_and(|arguments| arguments.is_object())).then(|| "arguments are no object".to_owned())
}

fn broken_output(output: &Value, target: &Target) -> Option<String> {
    match output {
        Value::String(text) if !text.is_empty() => None,
        Value::Array(parts) if !parts.is_empty() => broken_parts(parts, target),
        other => Some(format!("output {other}")),
    }
}
