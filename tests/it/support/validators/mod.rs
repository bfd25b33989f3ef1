//! The rules of each provider, as far as a request's body shows them.
//!
//! Written from the providers' pages and error texts, apart from the encoders: a
//! validator shares no code with what it checks. Each names the first rule that
//! is broken, or nothing.

#![expect(clippy::unwrap_used, reason = "a body that lacks what a rule speaks of breaks the rule")]

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod google;
pub(crate) mod mistral;
pub(crate) mod responses;

use base64::Engine as _;
use serde_json::Value;

/// Facts about a request that its body does not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    /// Ids of calls that the model made itself. Its server takes them as they are.
    pub(crate) own_ids: Vec<String>,
    pub(crate) reads_images: bool,
    /// Where the request goes, for what only some providers of an API do.
    pub(crate) provider: String,
    /// Most tokens the model answers with.
    pub(crate) max_tokens: u64,
    /// The model reads changes of the system between the turns.
    pub(crate) reads_updates: bool,
}

impl Target {
    fn made(&self, id: &str) -> bool {
        self.own_ids.iter().any(|own| own == id)
    }
}

/// Types that Anthropic and OpenAI take.
const COMMON_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Types that Google takes.
const GOOGLE_IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// Letters, digits, `_` and `-`, one to `max` of them.
fn is_word(text: &str, max: usize) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.len() <= max && text.bytes().all(is_fine)
}

/// Whether `value` is text with something to read in it.
fn is_said(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn is_base64(data: &str) -> bool {
    !data.is_empty() && base64::engine::general_purpose::STANDARD.decode(data).is_ok()
}

/// The problem with an image of `media_type` and `data`.
fn broken_image(media_type: &Value, data: &Value, types: &[&str], target: &Target) -> Option<String> {
    let (media_type, data) = (media_type.as_str().unwrap_or_default(), data.as_str().unwrap_or_default());
    if !target.reads_images {
        return Some("image for a model without eyes".to_owned());
    }
    (!types.contains(&media_type) || !is_base64(data)).then(|| format!("image {media_type} of {data:?}"))
}

/// Whether `url` is an address of one of these schemes.
fn is_address(url: &Value, schemes: &[&str]) -> bool {
    let url = url.as_str().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    schemes.contains(&scheme) && !rest.is_empty() && !url.contains(char::is_whitespace)
}

/// As [`broken_image`], for `data:` URLs and addresses on the web.
fn broken_url(url: &Value, target: &Target) -> Option<String> {
    let reads_bytes_only = ["github-copilot", "moonshotai", "ollama"].contains(&target.provider.as_str());
    if target.reads_images && !reads_bytes_only && is_address(url, &["https", "http"]) {
        return broken_ending(url, &COMMON_IMAGES);
    }
    let url = url.as_str().unwrap_or_default();
    let (media_type, data) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).unwrap_or_default();
    broken_image(&Value::from(media_type), &Value::from(data), &COMMON_IMAGES, target)
}

/// The problem with an address whose type is not one of `types`.
fn broken_ending(url: &Value, types: &[&str]) -> Option<String> {
    let url = url.as_str().unwrap_or_default();
    let ending = url.rsplit('.').next().filter(|ending| ["bmp", "svg", "gif", "heic"].contains(ending))?;
    let is_fine = types.iter().any(|kind| kind.ends_with(ending));
    (!is_fine).then(|| format!("image at {url}"))
}

/// The problem with the schema of a tool's arguments: an object with its
/// properties and no alternatives at its root.
fn broken_schema(schema: &Value) -> Option<String> {
    let is_object = schema["type"] == "object" && schema["properties"].is_object();
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().any(|key| schema.get(key).is_some());
    (!is_object || alternatives).then(|| format!("schema {schema}"))
}

/// The problem with the names of the tools.
fn broken_names(names: &[&str], max: usize) -> Option<String> {
    let bad = names.iter().find(|name| !is_word(name, max));
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    bad.or(twice.map(|(_, name)| name)).map(|name| format!("tool name {name:?}"))
}

/// The problem with the limit of the answer.
fn broken_bound(bound: &Value, least: u64, target: &Target) -> Option<String> {
    let tokens = bound.as_u64()?;
    let most = target.max_tokens.max(least);
    (tokens < least || tokens > most).then(|| format!("{tokens} tokens, of {least} to {most}"))
}

/// How many cache markers there are in `value`.
pub(crate) fn n_markers(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(n_markers).sum(),
        Value::Object(members) => {
            let is_mark = ["cache_control", "cachePoint"].iter().any(|key| members.contains_key(*key));
            let own = usize::from(is_mark);
            own + members.values().map(n_markers).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Most cache markers that a request may have.
pub(crate) const MAX_MARKERS: usize = 4;
