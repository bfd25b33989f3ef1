//! Mistral's chat: its requirements beyond Chat Completions.

use serde_json::Value;

use super::{Target, chat};

/// The first rule that `body` breaks.
pub(crate) fn broken(body: &Value, target: &Target) -> Option<String> {
    let server = chat::Server { is_mistral: true, ..chat::Server::default() };
    if let Some(broken) = chat::broken(body, server, target) {
        return Some(broken);
    }
    if body.get("max_tokens").is_none() || body.get("store").is_some() || body.get("stream_options").is_some()
    {
        return Some("fields of OpenAI's".to_owned());
    }
    let messages = body["messages"].as_array().unwrap();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        let after_result = at > 0 && messages[at - 1]["role"] == "tool";
        if role == "user" && after_result {
            return Some("user right after a result".to_owned());
        }
        if role == "developer" || (role == "assistant" && message["content"].is_null()) {
            return Some(format!("{role} says {}", message["content"]));
        }
        if role == "tool" && message["name"].as_str().is_none_or(str::is_empty) {
            return Some("result without the name of its tool".to_owned());
        }
    }
    None
}
