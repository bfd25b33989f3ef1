//! Google's `generateContent`.

use serde_json::Value;

use super::{
    GOOGLE_IMAGES, Target, broken_bound, broken_image, broken_names, is_address, is_base64, is_word,
};

/// Differences between the models behind the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// No ids, images beside the responses.
    Gemini2,
    /// Ids, images in responses, and signatures that are checked.
    Gemini3,
    /// Ids, images beside the responses, and no thinking that is not signed.
    Claude,
}

/// The first rule that `body` breaks.
pub(crate) fn broken(body: &Value, family: Family, target: &Target) -> Option<String> {
    broken_contents(body, family, target)
        .or_else(|| broken_tools(body))
        .or_else(|| broken_config(&body["generationConfig"], target))
}

fn broken_tools(body: &Value) -> Option<String> {
    let declared = body["tools"][0]["functionDeclarations"].as_array();
    let declared: &[Value] = declared.map_or(&[], Vec::as_slice);
    if declared.is_empty() && body.get("tools").is_some() {
        return Some("an empty list of tools".to_owned());
    }
    let names: Vec<&str> = declared.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let roots = declared.iter().find_map(|tool| {
        let schema = tool.get("parametersJsonSchema").or_else(|| tool.get("parameters"))?;
        let kind = schema.get("type").map_or("object", |kind| kind.as_str().unwrap_or_default());
        let is_object = schema.is_object() && kind.eq_ignore_ascii_case("object");
        (!is_object).then(|| format!("schema {schema}"))
    });
    broken_names(&names, 64).or(roots)
}

fn broken_config(config: &Value, target: &Target) -> Option<String> {
    let thinking = &config["thinkingConfig"];
    if thinking.get("thinkingBudget").is_some() && thinking.get("thinkingLevel").is_some() {
        return Some("thinking by budget and by level".to_owned());
    }
    broken_bound(&config["maxOutputTokens"], 1, target)
}

fn broken_contents(body: &Value, family: Family, target: &Target) -> Option<String> {
    let is_3 = family == Family::Gemini3;
    let has_ids = family != Family::Gemini2;
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
        if let Some(broken) = parts.iter().find_map(|part| broken_part(part, role, family, target)) {
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
                Some(id) => {
                    let name = id.as_str().unwrap();
                    if !has_ids || ids.contains(&id) || !(is_word(name, 64) || target.made(name)) {
                        return Some(format!("id {id}"));
                    }
                    ids.push(id);
                }
                None if has_ids => return Some("call without an id".to_owned()),
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

fn broken_part(part: &Value, role: &str, family: Family, target: &Target) -> Option<String> {
    let is_3 = family == Family::Gemini3;
    let signature = part.get("thoughtSignature").map(|signature| signature.as_str().unwrap());
    let kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| part.get(kind).is_some()).collect();
    let [kind] = kinds.as_slice() else { return Some(format!("a part of kinds {kinds:?}")) };
    match signature {
        Some("skip_thought_signature_validator") if is_3 && *kind == "functionCall" => {}
        Some(signature) if !is_base64(signature) || role != "model" => {
            return Some(format!("signature {signature:?} on {kind} of {role}"));
        }
        Some(_) | None => {}
    }
    let wrong = match *kind {
        "text" => {
            let blank = part["text"].as_str().unwrap().trim().is_empty();
            let is_thought = part.get("thought").is_some();
            (blank && signature.is_none())
                || (is_thought && role != "model")
                || (is_thought && family == Family::Claude && signature.is_none())
        }
        "inlineData" => role != "user" || broken_blob(part, target),
        "fileData" => role != "user" || family == Family::Claude || broken_file(part, target),
        "functionCall" => {
            let call = &part["functionCall"];
            role != "model" || !call["args"].is_object() || !is_word(call["name"].as_str().unwrap(), 64)
        }
        _ => {
            let response = &part["functionResponse"];
            let outcome = response["response"].as_object().unwrap();
            let is_told =
                |key: &str| outcome.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            let nested: &[Value] = response["parts"].as_array().map_or(&[], Vec::as_slice);
            role != "user"
                || nested.iter().any(|part| match part.get("fileData") {
                    // The Gemini API has a place for bytes only.
                    Some(_) => target.provider != "google-vertex" || broken_file(part, target),
                    None => broken_blob(part, target),
                })
                || outcome.len() != 1
                || !(is_told("output") || is_told("error"))
                || (response.get("parts").is_some() && !is_3)
        }
    };
    wrong.then(|| format!("{kind} of {role}: {part}"))
}

/// Vertex AI fetches objects in a bucket or on the web and requires their type; the
/// Gemini API knows only files uploaded to it.
fn broken_file(part: &Value, target: &Target) -> bool {
    let file = &part["fileData"];
    let uri = &file["fileUri"];
    let kind = file.get("mimeType").map(|kind| kind.as_str().unwrap());
    let is_kind = kind.is_some_and(|kind| GOOGLE_IMAGES.contains(&kind));
    let is_fine = if target.provider == "google-vertex" {
        is_kind && is_address(uri, &["gs", "https"])
    } else {
        let uploaded = "https://generativelanguage.googleapis.com/v1beta/files/";
        (kind.is_none() || is_kind) && uri.as_str().unwrap().starts_with(uploaded)
    };
    !target.reads_images || !is_fine
}

fn broken_blob(part: &Value, target: &Target) -> bool {
    let blob = &part["inlineData"];
    broken_image(&blob["mimeType"], &blob["data"], &GOOGLE_IMAGES, target).is_some()
}
