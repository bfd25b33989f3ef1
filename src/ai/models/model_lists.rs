//! Models of providers that publish their own list.
//!
//! `GET {base}/models` of the Chat Completions API, including the vendors'
//! additional fields. Callers decide which providers to query, when, and what to
//! keep. Facts missing from a list get the defaults for unknown models.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::model::{Modality, Model};
use super::vendors::{Models, Vendor};
use crate::ai::messages::Api;
use crate::ai::transport::{Credential, Route, Transport, connection_error, read_whole, redact};

/// Maximum wait for a list.
const LIMIT: Duration = Duration::from_secs(3);
const LIST_LIMIT_BYTES: usize = 4 << 20;
const MAX_MODELS: usize = 1_000;

/// Kinds of models that do not answer prompts, as named in lists.
const OTHER_KINDS: [&str; 9] =
    ["embedding", "embeddings", "image", "audio", "video", "rerank", "reranking", "moderation", "transcribe"];

/// The defaults for models of a vendor that are not built in.
pub(in crate::ai) fn template(vendor: &Vendor) -> Model {
    let mut model = Model {
        api: Api::OPENAI_COMPLETIONS,
        provider: vendor.id.to_owned(),
        base_url: vendor.base_url.to_owned(),
        ..Model::default()
    };
    if matches!(vendor.models, Models::Queried { thinking_in_history: true }) {
        // Its models think by default, and every answer must be sent back with its
        // thinking, even if empty: https://platform.xiaomimimo.com.
        model.compat.insert("requiresReasoningContentOnAssistantMessages".to_owned(), json!(true));
    }
    model
}

/// The first variable in an address that has no value: `{NAME}`.
pub fn variable(base_url: &str) -> Option<&str> {
    let mut parts = base_url.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0));
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    parts.find(is_name)
}

/// An address with its variables replaced by their values, if they have one.
pub(in crate::ai) fn fill(base_url: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(base_url.len());
    let mut rest = base_url;
    while let Some(name) = variable(rest) {
        let mark = format!("{{{name}}}");
        let Some((before, after)) = rest.split_once(&mark) else { break };
        filled.push_str(before);
        filled.push_str(&value(name).unwrap_or(mark));
        rest = after;
    }
    filled + rest
}

/// The models of the provider of `template`; facts missing from the list come from the
/// template. Takes at most 3 s; dropping the future cancels the request.
///
/// # Errors
/// If there is no list, in a few words for the user.
pub async fn list_models(
    transport: &Transport,
    template: &Model,
    credential: &Credential,
) -> Result<Vec<Model>, String> {
    let address = format!("{}/models", template.base_url.trim_end_matches('/'));
    let url: Url =
        address.parse().map_err(|error| format!("invalid URL {}: {error}", redact::shown_url(&address)))?;
    if !matches!(url.scheme(), "http" | "https") {
        let url = redact::shown_url(url.as_str());
        return Err(format!("unsupported scheme in {url}; use http or https"));
    }
    let headers = headers(template, credential)?;
    let client = transport.client(Route::to(&url))?;
    let origin = url.origin().ascii_serialization();
    let exchange = async {
        let response = client.get(url).headers(headers).send().await;
        let response = response.map_err(|error| connection_error(&error, &origin).text)?;
        if !response.status().is_success() {
            return Err(format!("{} for its list of models", response.status().as_u16()));
        }
        read_whole(response, LIST_LIMIT_BYTES).await
    };
    let late = |_| format!("no model list from {origin} for {} s", LIMIT.as_secs());
    let text = tokio::time::timeout(LIMIT, exchange).await.map_err(late)??;
    let list: Value = serde_json::from_str(&text).map_err(|_| "its model list is not JSON".to_owned())?;
    // Most services wrap the rows, as OpenAI does.
    let rows = list.get("data").unwrap_or(&list).as_array().ok_or("its model list has no entries")?;
    Ok(rows.iter().filter_map(|row| model(template, row)).take(MAX_MODELS).collect())
}

fn headers(template: &Model, credential: &Credential) -> Result<HeaderMap, String> {
    let key = match credential {
        Credential::None | Credential::Aws(_) => None,
        Credential::ApiKey(key) | Credential::Bearer(key) => Some(key.as_str()),
        Credential::SignedIn(account) => Some(account.token.as_str()),
    };
    let mut headers = HeaderMap::new();
    let authorization = key.map(|key| ("authorization", format!("Bearer {key}")));
    let own = template.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
    for (name, value) in authorization.into_iter().chain(own) {
        let invalid = || format!("the {name} header is not valid");
        let mut value = HeaderValue::from_str(&value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(name.parse::<HeaderName>().map_err(|_| invalid())?, value);
    }
    Ok(headers)
}

/// One row; `None` if it is not a chat model.
fn model(template: &Model, row: &Value) -> Option<Model> {
    let is_plain = |text: &&str| !text.is_empty() && !text.chars().any(char::is_control);
    let id = row["id"].as_str().filter(is_plain).filter(|id| !id.contains(char::is_whitespace))?;
    let kind = row["type"].as_str().unwrap_or_default();
    if OTHER_KINDS.contains(&kind) || row["supports_chat"] == false {
        return None;
    }
    let name = ["name", "display_name"].into_iter().find_map(|field| row[field].as_str().filter(is_plain));
    let mut model =
        Model { id: id.to_owned(), name: name.unwrap_or(id).to_owned(), ..Model::clone(template) };
    let number = |row: &Value, fields: &[&str]| {
        fields.iter().find_map(|field| row[*field].as_u64()).filter(|tokens| *tokens > 0)
    };
    const WINDOW: [&str; 4] = ["context_length", "context_window", "max_model_len", "max_context_length"];
    // Routers report it for each provider behind them.
    let routed = || items(&row["providers"]).filter_map(|provider| number(provider, &WINDOW)).max();
    if let Some(window) = number(row, &WINDOW).or_else(routed) {
        model.context_window = window;
    }
    if let Some(most) = number(row, &["max_completion_tokens", "max_output_tokens", "max_tokens"]) {
        model.max_tokens = most;
    }
    model.max_tokens = model.max_tokens.min(model.context_window);
    let says = |list: &Value, word: &str| items(list).any(|one| one == word);
    let sees = row["supports_image_input"] == true
        || says(&row["input_modalities"], "image")
        || says(&row["architecture"]["input_modalities"], "image")
        || says(&row["tags"], "vision");
    if sees && !model.reads_images() {
        model.input.push(Modality::Image);
    }
    Some(model)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::vendors::vendor;
    use super::*;

    #[test]
    fn rows_say_more_or_less() {
        let template = template(vendor("nvidia").unwrap());
        let check = |row: Value, expected: Option<&str>| {
            let shown = model(&template, &row).map(|model| {
                let sees = if model.reads_images() { " sees" } else { "" };
                format!("{} {} {} {}{sees}", model.id, model.name, model.context_window, model.max_tokens)
            });
            assert_eq!(shown.as_deref(), expected, "{row}");
        };
        check(json!({"id": "a/b", "object": "model"}), Some("a/b a/b 128000 16384"));
        check(json!({"id": "m", "name": "M", "context_length": 8192, "type": "chat"}), Some("m M 8192 8192"));
        check(
            json!({"id": "m", "context_window": 200_000, "max_tokens": 64_000, "type": "language", "tags": ["vision"]}),
            Some("m m 200000 64000 sees"),
        );
        check(
            json!({"id": "m", "providers": [{"context_length": 1000}, {"context_length": 4000}, {}], "architecture": {"input_modalities": ["text", "image"]}}),
            Some("m m 4000 4000 sees"),
        );
        check(
            json!({"id": "m", "supports_chat": true, "supports_image_input": true}),
            Some("m m 128000 16384 sees"),
        );
        check(json!({"id": "m", "supports_chat": false}), None);
        check(json!({"id": "m", "type": "embedding"}), None);
        check(json!({"id": "m\u{1b}[31m"}), None);
        check(json!({"id": "m", "name": "M\u{7}"}), Some("m m 128000 16384"));
        check(json!({"id": 7}), None);
        check(json!("m"), None);
    }

    #[test]
    fn variables_of_addresses_are_found() {
        let check =
            |address: &str, expected: Option<&str>| assert_eq!(variable(address), expected, "{address}");
        check("https://a/{ACCOUNT_ID}/{GATEWAY}/x", Some("ACCOUNT_ID"));
        check("https://a/{region}/{B2}", Some("B2"));
        check("https://{location}-x.y", None);
        check("https://a/{}/{A", None);
    }
}
