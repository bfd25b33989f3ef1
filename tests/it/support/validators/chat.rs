//! Chat Completions, OpenAI's version, with the requirements of other servers.

use serde_json::Value;

use super::{
    MAX_MARKERS, Target, broken_bound, broken_names, broken_schema, broken_url, is_said, is_word, n_markers,
};

/// A server's requirements beyond the common ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Server {
    /// Refuses an answer without the reasoning that led to it.
    pub(crate) wants_reasoning: bool,
    /// Takes content parts where others take only a string.
    pub(crate) takes_parts: bool,
    /// Takes Mistral's thinking parts and ids instead of OpenAI's.
    pub(crate) is_mistral: bool,
}

/// The first rule that `body` breaks.
pub(crate) fn broken(body: &Value, server: Server, target: &Target) -> Option<String> {
    let bounds = ["max_tokens", "max_completion_tokens"];
    if bounds.iter().all(|key| body.get(key).is_none()) {
        return Some("no bound".to_owned());
    }
    let markers = n_markers(body);
    if markers > MAX_MARKERS {
        return Some(format!("{markers} cache markers"));
    }
    let bound = bounds.iter().find_map(|key| broken_bound(&body[*key], 1, target));
    bound.or_else(|| broken_tools(body)).or_else(|| broken_messages(body, server, target))
}

fn broken_tools(body: &Value) -> Option<String> {
    let Some(tools) = body["tools"].as_array() else {
        return body.get("tool_choice").map(|choice| format!("choice {choice} of nothing"));
    };
    if tools.is_empty() {
        return Some("an empty list of tools".to_owned());
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    broken_names(&names, 64)
        .or_else(|| tools.iter().find_map(|tool| broken_schema(&tool["function"]["parameters"])))
}

fn broken_messages(body: &Value, server: Server, target: &Target) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    let messages = body["messages"].as_array().unwrap();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if role != "tool" && !open.is_empty() {
            return Some(format!("{role} before the results of {open:?}"));
        }
        let content = &message["content"];
        let parts: &[Value] = content.as_array().map_or(&[], Vec::as_slice);
        if let Some(broken) = parts.iter().find_map(|part| broken_part(part, role, server, target)) {
            return Some(broken);
        }
        if content.is_array() && parts.is_empty() {
            return Some(format!("{role} says an empty list"));
        }
        match role {
            "system" | "developer" if at > 0 && !target.reads_updates => {
                return Some(format!("{role} in the middle"));
            }
            "system" if at > 0 && message["tools"].as_array().is_some_and(|tools| !tools.is_empty()) => {}
            "system" | "developer" | "user" => {
                if parts.is_empty() && !is_said(content) {
                    return Some(format!("blank {role} message"));
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                if open.first().map(String::as_str) != Some(id) {
                    return Some(format!("result of {id}, expected {open:?}"));
                }
                open.remove(0);
                if parts.is_empty() && content.as_str().is_none_or(str::is_empty) {
                    return Some("empty result".to_owned());
                }
                if !parts.is_empty() && !server.takes_parts {
                    return Some("result in parts".to_owned());
                }
            }
            "assistant" => match broken_answer(message, server, target) {
                Ok(ids) => open = ids,
                Err(broken) => return Some(broken),
            },
            other => return Some(format!("role {other}")),
        }
    }
    if !messages.iter().any(|message| message["role"] == "user" || message["role"] == "assistant") {
        return Some("nothing said".to_owned());
    }
    (!open.is_empty()).then(|| "unanswered call at the end".to_owned())
}

/// The ids of the calls of an answer.
fn broken_answer(message: &Value, server: Server, target: &Target) -> Result<Vec<String>, String> {
    let calls: &[Value] = match message.get("tool_calls").map(Value::as_array) {
        Some(Some(calls)) if calls.is_empty() => return Err("an empty list of calls".to_owned()),
        Some(Some(calls)) => calls,
        _ => &[],
    };
    let content = &message["content"];
    if calls.is_empty() && !content.is_array() && !is_said(content) {
        return Err(format!("empty answer {message}"));
    }
    if content.is_array() && !server.is_mistral {
        return Err("an answer in parts".to_owned());
    }
    if server.wants_reasoning && !message["reasoning_content"].is_string() {
        return Err("an answer without its reasoning".to_owned());
    }
    let mut ids = Vec::new();
    for call in calls {
        let id = call["id"].as_str().unwrap();
        let fits = if server.is_mistral {
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        } else {
            is_word(id, 40)
        };
        if !(fits || target.made(id)) || ids.iter().any(|known| known == id) {
            return Err(format!("id {id:?} after {ids:?}"));
        }
        ids.push(id.to_owned());
        let function = &call["function"];
        if call["type"] != "function" || !is_word(function["name"].as_str().unwrap(), 64) {
            return Err(format!("call {call}"));
        }
        let arguments = serde_json::from_str::<Value>(function["arguments"].as_str().unwrap());
        if !arguments.is_ok_and(|arguments| arguments.is_object()) {
            return Err("arguments are no object".to_owned());
        }
    }
    Ok(ids)
}

fn broken_part(part: &Value, role: &str, server: Server, target: &Target) -> Option<String> {
    match part["type"].as_str() {
        Some("text") => (!is_said(&part["text"])).then(|| format!("blank part of {role}")),
        Some("image_url") if role == "user" => broken_url(&part["image_url"]["url"], target),
        Some("thinking") if server.is_mistral && role == "assistant" => {
            let inner = part["thinking"].as_array().unwrap();
            inner.iter().any(|part| !is_said(&part["text"])).then(|| format!("thinking {part}"))
        }
        other => Some(format!("part {other:?} of {role}")),
    }
}
