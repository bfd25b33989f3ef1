//! Models of providers that publish their own list.
//!
//! `GET {base}/models` of the Chat Completions API, including the additional fields of
//! vendors, routers and local servers. Callers decide which providers to query, when, and
//! what to keep. Facts missing from a list get the defaults for unknown models.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::model::{MAX_ID_BYTES, Modality, Model};
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

/// The facts that a provider's list has about a model, for a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    id: String,
    name: String,
    base_url: String,
    context_window: u64,
    max_tokens: u64,
    reasoning: bool,
    input: Vec<Modality>,
}

impl ListedModel {
    /// The facts about a model from a list.
    pub fn of(model: &Model) -> Self {
        Self {
            id: model.id.clone(),
            name: model.name.clone(),
            base_url: model.base_url.clone(),
            context_window: model.context_window,
            max_tokens: model.max_tokens,
            reasoning: model.reasoning,
            input: model.input.clone(),
        }
    }

    /// The model; the rest comes from `template`.
    pub fn model(self, template: &Model) -> Model {
        Model {
            id: self.id,
            name: self.name,
            base_url: self.base_url,
            context_window: self.context_window.max(1),
            max_tokens: self.max_tokens.max(1),
            reasoning: self.reasoning,
            input: self.input,
            ..Model::clone(template)
        }
    }
}

/// The models of the provider of `template`; facts missing from the list come from the
/// template. If an address without a path has no list, its `/v1` is queried, and the models
/// get that address. Takes at most 3 s; dropping the future cancels the request.
///
/// # Errors
/// If there is no list, in a few words for the user.
pub async fn list_models(
    transport: &Transport,
    template: &Model,
    credential: &Credential,
) -> Result<Vec<Model>, String> {
    let base = template.base_url.trim_end_matches('/');
    let origin = list_url(base)?.origin().ascii_serialization();
    let query = async {
        match models_at(transport, template, credential, base).await {
            Err(missing) if missing.may_be_below && has_no_path(base) => {
                let below = Model { base_url: format!("{base}/v1"), ..template.clone() };
                let models = models_at(transport, &below, credential, &below.base_url).await;
                models.map_err(|_| missing.problem)
            }
            answer => answer.map_err(|missing| missing.problem),
        }
    };
    let late = |_| format!("no model list from {origin} for {} s", LIMIT.as_secs());
    tokio::time::timeout(LIMIT, query).await.map_err(late)?
}

/// Why an address has no list.
struct MissingList {
    problem: String,
    /// Whether the server answered, and may have the list at another path.
    may_be_below: bool,
}

impl From<String> for MissingList {
    fn from(problem: String) -> Self {
        Self { problem, may_be_below: false }
    }
}

async fn models_at(
    transport: &Transport,
    template: &Model,
    credential: &Credential,
    base: &str,
) -> Result<Vec<Model>, MissingList> {
    let url = list_url(base)?;
    let headers = headers(template, credential)?;
    let client = transport.client(Route::to(&url))?;
    let origin = url.origin().ascii_serialization();
    let response = client.get(url).headers(headers).send().await;
    let response = response.map_err(|error| connection_error(&error, &origin).text)?;
    let status = response.status();
    if !status.is_success() {
        let may_be_below = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        let problem = format!("{} for its list of models", status.as_u16());
        return Err(MissingList { problem, may_be_below });
    }
    let text = read_whole(response, LIST_LIMIT_BYTES).await?;
    let other = |problem: &str| MissingList { problem: problem.to_owned(), may_be_below: true };
    let list: Value = serde_json::from_str(&text).map_err(|_| other("its model list is not JSON"))?;
    // Most services wrap the rows, as OpenAI does.
    let rows = list.get("data").unwrap_or(&list).as_array();
    let rows = rows.ok_or_else(|| other("its model list has no entries"))?;
    Ok(rows.iter().filter_map(|row| model(template, row)).take(MAX_MODELS).collect())
}

fn list_url(base: &str) -> Result<Url, String> {
    let address = format!("{base}/models");
    let url: Url =
        address.parse().map_err(|error| format!("invalid URL {}: {error}", redact::shown_url(&address)))?;
    if matches!(url.scheme(), "http" | "https") {
        return Ok(url);
    }
    let url = redact::shown_url(url.as_str());
    Err(format!("unsupported scheme in {url}; use http or https"))
}

fn has_no_path(base: &str) -> bool {
    base.parse::<Url>().is_ok_and(|url| url.path() == "/")
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
    let is_plain =
        |text: &&str| !text.is_empty() && text.len() <= MAX_ID_BYTES && !text.chars().any(char::is_control);
    let id = row["id"].as_str().filter(is_plain).filter(|id| !id.contains(char::is_whitespace))?;
    let kind = row["type"].as_str().unwrap_or_default();
    if OTHER_KINDS.contains(&kind) || row["supports_chat"] == false {
        return None;
    }
    let name = ["name", "display_name"].into_iter().find_map(|field| row[field].as_str().filter(is_plain));
    let mut model =
        Model { id: id.to_owned(), name: name.unwrap_or(id).to_owned(), ..Model::clone(template) };
    if let Some(window) = number(row, &WINDOWS) {
        model.context_window = window;
    }
    if let Some(most) = number(row, &ANSWER_LIMITS) {
        model.max_tokens = most;
    }
    model.max_tokens = model.max_tokens.min(model.context_window);
    model.reasoning |= reasons(row);
    let sees = row["supports_image_input"] == true
        || row["supports_vision"] == true
        || names(row, "input_modalities", &["image"])
        || names(&row["architecture"], "input_modalities", &["image"])
        || names(row, "tags", &["vision"])
        || names(row, "capabilities", &["vision"]);
    if sees && !model.reads_images() {
        model.input.push(Modality::Image);
    }
    Some(model)
}

/// Fields with the context window.
const WINDOWS: [&str; 13] = [
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "max_context_window_tokens",
    "context_size",
    "context_len",
    "n_ctx",
    "max_seq_len",
    "max_sequence_length",
    "max_input_tokens",
    "max_position_embeddings",
    // The window of the training; a server may run the model with a smaller one.
    "n_ctx_train",
];
/// Fields with the limit of an answer.
const ANSWER_LIMITS: [&str; 4] =
    ["max_completion_tokens", "max_output_tokens", "max_tokens", "max_generation_tokens"];
/// Objects of a row that have further facts, by router and server.
const PARTS: [&str; 8] =
    ["meta", "limits", "capabilities", "top_provider", "model_info", "metadata", "details", "architecture"];

/// The number in the first of `fields` that the row, one of its parts, or the services
/// behind a router have.
fn number(row: &Value, fields: &[&str]) -> Option<u64> {
    let own = |row: &Value| {
        let count = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        fields.iter().find_map(|field| row.get(*field).and_then(count).filter(|tokens| *tokens > 0))
    };
    let of_parts = || PARTS.iter().find_map(|part| own(&row[*part]).or_else(|| own(&row[*part]["limits"])));
    let routed = || items(&row["providers"]).filter_map(own).max();
    own(row).or_else(of_parts).or_else(routed)
}

/// Whether the list says that the model thinks.
fn reasons(row: &Value) -> bool {
    const WORDS: [&str; 4] = ["reasoning", "thinking", "include_reasoning", "reasoning_effort"];
    let is_on =
        |row: &Value| ["reasoning", "supports_reasoning", "thinking"].iter().any(|field| row[*field] == true);
    let lists = ["supported_parameters", "capabilities", "tags", "features", "supported_features"];
    is_on(row)
        || PARTS.iter().any(|part| is_on(&row[*part]))
        || lists.iter().any(|list| names(row, list, &WORDS))
}

/// Whether the list `field` contains one of `words`.
fn names(row: &Value, field: &str, words: &[&str]) -> bool {
    items(&row[field]).filter_map(Value::as_str).any(|one| words.contains(&one))
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
                let thinks = if model.reasoning { " thinks" } else { "" };
                format!(
                    "{} {} {} {}{sees}{thinks}",
                    model.id, model.name, model.context_window, model.max_tokens
                )
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
        check(json!({"id": "m", "max_model_len": 4096}), Some("m m 4096 4096"));
        check(json!({"id": "m", "meta": {"n_ctx_train": 40_960, "n_ctx": 8192}}), Some("m m 8192 8192"));
        check(json!({"id": "m", "max_input_tokens": "32768"}), Some("m m 32768 16384"));
        check(
            json!({"id": "m", "capabilities": {"limits": {"max_context_window_tokens": 64_000}, "vision": true}}),
            Some("m m 64000 16384"),
        );
        check(
            json!({"id": "m", "top_provider": {"context_length": 9000, "max_completion_tokens": 700},
                "supported_parameters": ["tools", "include_reasoning"]}),
            Some("m m 9000 700 thinks"),
        );
        check(
            json!({"id": "m", "supports_reasoning": true, "supports_vision": true}),
            Some("m m 128000 16384 sees thinks"),
        );
        check(
            json!({"id": "m", "capabilities": ["vision", "thinking"]}),
            Some("m m 128000 16384 sees thinks"),
        );
        check(json!({"id": "m", "context_length": 0, "reasoning": "no"}), Some("m m 128000 16384"));
        check(json!({"id": "m", "supports_chat": false}), None);
        check(json!({"id": "m", "type": "embedding"}), None);
        check(json!({"id": "m\u{1b}[31m"}), None);
        check(json!({"id": "m".repeat(70_000)}), None);
        check(json!({"id": "m", "name": "M\u{7}"}), Some("m m 128000 16384"));
        check(json!({"id": "m".repeat(70_000)}), None);
        check(json!({"id": "m", "name": "M".repeat(70_000)}), Some("m m 128000 16384"));
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
