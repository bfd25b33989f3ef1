//! The refreshed model lists that the original keeps in `models-store.json`.
//!
//! Read, never written: nothing is downloaded here. The invariant: no content of the
//! file can remove the built-in models, and all its problems are reported in one line.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::model::{Cost, Modality, Model};
use super::super::vendors;
use super::user_models::check;
use super::{Catalog, DEMO_PROVIDER, ProviderInfo, builtin};
use crate::ai::messages::{Api, ThinkingLevel, supported_apis};
use crate::ai::models::Sampling;

impl Catalog {
    /// Adds the models of `models-store.json` that are newer than the built-in
    /// lists; they replace models with the same ids. Leaves out models of types other
    /// than `chat`, models with unsupported APIs, and unreadable rows.
    ///
    /// # Errors
    /// The problems of the file, in one line. All valid rows are added regardless.
    pub fn add_stored_models(&mut self, text: &str) -> Result<(), String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let providers: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let supported = supported_apis();
        let mut wrong = Wrong::default();
        for (provider, list) in providers {
            let list: StoredList<'_> = match serde_json::from_str(list.get()) {
                Ok(list) => list,
                Err(error) => {
                    wrong.note(&provider, &error.to_string());
                    continue;
                }
            };
            if list.last_modified.is_none_or(|modified| modified <= builtin::LISTED_MS as f64) {
                continue;
            }
            let mut models = Vec::new();
            for row in list.models {
                match read_row(row, &provider, &supported) {
                    Ok(model) => models.extend(model),
                    Err(problem) => wrong.note(&provider, &problem),
                }
            }
            self.put_stored(&provider, models);
        }
        wrong.result()
    }

    fn put_stored(&mut self, provider: &str, models: Vec<Model>) {
        // The models of this machine are queried, not listed.
        let is_here = self.provider(provider).is_some_and(|known| known.local || known.id == DEMO_PROVIDER);
        if models.is_empty() || is_here {
            return;
        }
        if self.provider(provider).is_none() {
            self.providers.push(ProviderInfo {
                id: provider.to_owned(),
                name: provider.to_owned(),
                api_key: None,
                // It needs a key, and pi knows no variable for it.
                custom: false,
                local: false,
                auth_header: false,
                default_model: None,
                template: None,
            });
        }
        self.group_of(provider).store(models.into_iter().map(Arc::new).collect());
    }
}

/// The problems of rows: their number, and the first one.
#[derive(Default)]
struct Wrong {
    n: usize,
    first: Option<String>,
}

impl Wrong {
    fn note(&mut self, provider: &str, problem: &str) {
        self.n += 1;
        self.first.get_or_insert_with(|| format!("{provider}: {problem}"));
    }

    fn result(self) -> Result<(), String> {
        match (self.first, self.n) {
            (None, _) => Ok(()),
            (Some(first), 1) => Err(first),
            (Some(first), n) => Err(format!("{first}; and {} more", n - 1)),
        }
    }
}

/// `None` for a model that pi cannot use.
fn read_row(row: &RawValue, provider: &str, supported: &[&str]) -> Result<Option<Model>, String> {
    let row: Row = serde_json::from_str(row.get()).map_err(|error| error.to_string())?;
    if row.kind.as_deref().is_some_and(|kind| kind != "chat") || !supported.contains(&row.api.as_str()) {
        return Ok(None);
    }
    let id = row.id.clone();
    if id.is_empty() {
        return Err("a model without \"id\"".to_owned());
    }
    let model = row.model(provider);
    match check(&model) {
        Ok(()) => Ok(Some(model)),
        Err(problem) => Err(format!("model \"{id}\": {problem}")),
    }
}

/// The models of one provider. The dates are milliseconds since the Unix epoch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredList<'a> {
    #[serde(borrow, default)]
    models: Vec<&'a RawValue>,
    last_modified: Option<f64>,
}

/// One model. Its fields are listed, because parsing them is several times as fast as
/// parsing a [`Model`], which keeps unknown fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    api: String,
    #[serde(default)]
    base_url: String,
    #[serde(default)]
    reasoning: bool,
    input: Option<Vec<Modality>>,
    #[serde(default)]
    cost: Cost,
    context_window: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(default)]
    thinking_level_map: BTreeMap<ThinkingLevel, Option<Value>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    compat: Map<String, Value>,
    #[serde(default)]
    sampling_params: Sampling,
    #[serde(default)]
    sampling_params_by_thinking_level: BTreeMap<ThinkingLevel, Sampling>,
    #[serde(alias = "limits")]
    input_limits: Option<Value>,
    #[serde(alias = "promptCacheSeconds")]
    prompt_cache: Option<Value>,
}

impl Row {
    fn model(self, provider: &str) -> Model {
        let vendor_url = || vendors::vendor(provider).map_or("", |vendor| vendor.base_url).to_owned();
        let base = Model::default();
        let extras = [("inputLimits", self.input_limits), ("promptCache", self.prompt_cache)];
        let extras = extras.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Model {
            name: self.name.filter(|name| !name.is_empty()).unwrap_or_else(|| self.id.clone()),
            id: self.id,
            api: Api::new(self.api),
            provider: provider.to_owned(),
            base_url: if self.base_url.is_empty() { vendor_url() } else { self.base_url },
            reasoning: self.reasoning,
            input: self.input.unwrap_or(base.input),
            cost: self.cost,
            context_window: self.context_window.unwrap_or(base.context_window),
            max_tokens: self.max_tokens.unwrap_or(base.max_tokens),
            thinking_level_map: self.thinking_level_map,
            headers: self.headers,
            compat: self.compat,
            sampling_params: self.sampling_params,
            sampling_params_by_thinking_level: self.sampling_params_by_thinking_level,
            extra: extras.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NEW: u64 = builtin::LISTED_MS + 1;

    fn row(id: &str, more: &Value) -> Value {
        let mut row = json!({"id": id, "name": id, "api": "anthropic-messages", "baseUrl": "https://stored", "reasoning": false,
            "input": ["text"], "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 9, "maxTokens": 8});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    }

    #[test]
    fn both_forms_of_the_date_of_the_lists_agree() {
        assert_eq!(crate::util::clock::iso8601(builtin::LISTED_MS), builtin::LISTED);
    }

    #[test]
    fn newer_models_replace_and_are_added() {
        let store = json!({
            "anthropic": {"lastModified": NEW, "checkedAt": NEW + 5, "etag": "\"x\"", "models": [
                row("claude-opus-5-5", &json!({"type": "chat", "inputLimits": {"imagesPerRequest": 3}, "later": 1})),
                row("claude-new", &json!({"baseUrl": null, "name": ""})),
                row("claude-image", &json!({"type": "image"})),
                row("claude-radius", &json!({"api": "pi-messages"})),
            ]},
            "openai": {"lastModified": builtin::LISTED_MS, "models": [row("old", &json!({}))]},
            "groq": {"models": [row("undated", &json!({}))]},
            "ollama": {"lastModified": NEW, "models": [row("local", &json!({}))]},
            "elsewhere": {"lastModified": NEW as f64 + 0.5, "models": [row("m", &json!({}))]},
        });
        let mut store = store;
        store["anthropic"]["models"][1].as_object_mut().unwrap().remove("baseUrl");
        let before = Catalog::builtin();
        let mut catalog = Catalog::builtin();
        catalog.add_stored_models(&store.to_string()).unwrap();
        let model = catalog.get("anthropic", "claude-opus-5-5").unwrap();
        assert_eq!((model.context_window, model.base_url.as_str()), (9, "https://stored"));
        assert_eq!(model.extra, *json!({"inputLimits": {"imagesPerRequest": 3}}).as_object().unwrap());
        let model = catalog.get("anthropic", "claude-new").unwrap();
        assert_eq!(
            (model.base_url.as_str(), model.name.as_str()),
            ("https://api.anthropic.com", "claude-new")
        );
        assert!(catalog.get("anthropic", "claude-image").is_none());
        assert!(catalog.get("anthropic", "claude-radius").is_none());
        assert_eq!(catalog.models_of("anthropic").len(), before.models_of("anthropic").len() + 1);
        assert_eq!(catalog.models_of("openai"), before.models_of("openai"));
        assert_eq!(catalog.models_of("groq"), before.models_of("groq"));
        assert!(catalog.get("elsewhere", "m").is_some() && catalog.get("ollama", "local").is_none());
        // The result is the same whether the lists were parsed before or not.
        before.models_of("anthropic");
        let mut read = before.clone();
        read.add_stored_models(&store.to_string()).unwrap();
        assert_eq!(read.models_of("anthropic"), catalog.models_of("anthropic"));
    }

    #[test]
    fn the_users_file_has_the_last_word() {
        let store =
            json!({"anthropic": {"lastModified": NEW, "models": [row("claude-opus-5-5", &json!({}))]}});
        let mut catalog = Catalog::builtin();
        catalog.add_stored_models(&store.to_string()).unwrap();
        let user = r#"{"providers":{"anthropic":{"modelOverrides":{"claude-opus-5-5":{"maxTokens":5}}}}}"#;
        catalog.add_user_models(user).unwrap();
        let model = catalog.get("anthropic", "claude-opus-5-5").unwrap();
        assert_eq!((model.max_tokens, model.context_window), (5, 9));
    }

    #[test]
    fn what_is_wrong_is_one_line_and_hides_nothing() {
        let check = |text: &str, expected: &str| {
            let mut catalog = Catalog::builtin();
            let n_before = catalog.models().count();
            let problem = catalog.add_stored_models(text).unwrap_err();
            assert!(problem.contains(expected) && !problem.contains('\n'), "{problem}");
            assert!(catalog.models().count() >= n_before);
        };
        check("{", "EOF while parsing");
        check("[]", "invalid type");
        check(r#"{"anthropic": {"models": 7}}"#, "anthropic: invalid type");
        let rows = [
            json!({"id": 7}),
            row("", &json!({})),
            row("m", &json!({"cost": {"input": -1}})),
            row("fine", &json!({})),
        ];
        let store = json!({"anthropic": {"lastModified": NEW, "models": rows}}).to_string();
        check(&store, "anthropic: invalid type: integer `7`, expected a string");
        check(&store, "; and 2 more");
        let mut catalog = Catalog::builtin();
        catalog.add_stored_models(&store).unwrap_err();
        assert!(catalog.get("anthropic", "fine").is_some());
        assert_eq!(catalog.add_stored_models(" \n"), Ok(()));
    }
}
