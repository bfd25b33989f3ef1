//! The models there are: built in, and those of the user's `models.json`.
//!
//! Pure: takes the text of files, not their paths. An error in the user's file
//! is reported and never hides the built-in models.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::model::{Api, Cost, Modality, Model, ThinkingLevel};
use super::vendors::{self, VENDORS};

const BUILTIN: &str = include_str!("data/models.json");

/// The provider id of the offline demo model.
pub const DEMO_PROVIDER: &str = "demo";

/// All models, and what is known of their providers.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    providers: Vec<ProviderInfo>,
    models: Vec<Arc<Model>>,
}

/// One provider: a vendor, or one from `models.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderInfo {
    pub id: String,
    pub name: String,
    /// The `apiKey` of `models.json`, unresolved: a literal, `$NAME` or `!command`.
    pub api_key: Option<String>,
    /// Whether the provider comes from `models.json` alone.
    pub custom: bool,
    /// The key is sent as a bearer token, whatever the API's habit is.
    pub auth_header: bool,
    pub default_model: Option<String>,
}

/// Why a model reference names no single model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    #[error("no model matches \"{reference}\"{hint}; pi --list-models shows all")]
    Unknown { reference: String, hint: String },
    #[error("\"{reference}\" could be {}; name one of them in full", candidates.join(", "))]
    Ambiguous { reference: String, candidates: Vec<String> },
}

/// A model, with the thinking level its reference asked for.
#[derive(Debug, Clone)]
pub struct Matched {
    pub model: Arc<Model>,
    pub thinking: Option<ThinkingLevel>,
}

impl Catalog {
    /// The built-in models, the demo model last.
    pub fn builtin() -> Self {
        let mut rows: BTreeMap<String, Vec<Model>> =
            serde_json::from_str(BUILTIN).expect("the catalogue compiled in is valid (tested)");
        let mut catalog = Self::default();
        for vendor in VENDORS {
            catalog.providers.push(ProviderInfo {
                id: vendor.id.to_owned(),
                name: vendor.name.to_owned(),
                api_key: None,
                custom: false,
                auth_header: false,
                default_model: Some(vendor.default_model.to_owned()),
            });
            let models = match vendor.models_of {
                Some(other) => rows.get(other).cloned(),
                None => rows.get(vendor.id).cloned(),
            };
            for mut model in models.unwrap_or_default() {
                model.provider = vendor.id.to_owned();
                if model.base_url.is_empty() {
                    model.base_url = vendor.base_url.to_owned();
                }
                catalog.models.push(Arc::new(model));
            }
        }
        rows.clear();
        catalog.providers.push(ProviderInfo {
            id: DEMO_PROVIDER.to_owned(),
            name: "Demo".to_owned(),
            api_key: None,
            custom: false,
            auth_header: false,
            default_model: Some("pi".to_owned()),
        });
        catalog.models.push(Arc::new(demo_model()));
        catalog
    }

    pub fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    pub fn get(&self, provider: &str, id: &str) -> Option<&Arc<Model>> {
        self.models.iter().find(|model| model.provider == provider && model.id == id)
    }

    pub fn provider(&self, id: &str) -> Option<&ProviderInfo> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    pub fn providers(&self) -> &[ProviderInfo] {
        &self.providers
    }

    /// Adds the user's `models.json` (comments, trailing commas and a byte order
    /// mark are fine). Providers that are wrong are left out and reported; the
    /// others count.
    ///
    /// # Errors
    /// One line per problem, with the place in the file where it is known.
    pub fn add_user_models(&mut self, text: &str) -> Result<(), Vec<String>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let value: Value =
            jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
                .map_err(|error| vec![format!("line {}: {}", error.line_display(), error.kind())])?;
        let Value::Object(mut root) = value else {
            return Err(vec!["expected an object with \"providers\"".to_owned()]);
        };
        let providers = match root.remove("providers") {
            Some(Value::Object(providers)) => providers,
            Some(_) => return Err(vec!["\"providers\" must be an object".to_owned()]),
            None => Map::new(),
        };
        let mut problems = Vec::new();
        for (id, value) in providers {
            let added = serde_json::from_value::<UserProvider>(value)
                .map_err(|error| error.to_string())
                .and_then(|provider| self.add_provider(&id, provider));
            if let Err(problem) = added {
                problems.push(format!("provider \"{id}\": {problem}"));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn add_provider(&mut self, id: &str, user: UserProvider) -> Result<(), String> {
        let known = vendors::vendor(id);
        let mut models = Vec::new();
        for mut fields in user.models {
            let model_id = fields.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            if model_id.is_empty() {
                return Err("a model without \"id\"".to_owned());
            }
            if let Some(builtin) = self.get(id, &model_id) {
                // What the user does not say is as it was.
                fields = merged(to_fields(builtin), fields);
            }
            let mut model: Model = serde_json::from_value(Value::Object(fields))
                .map_err(|error| format!("model \"{model_id}\": {error}"))?;
            model.provider = id.to_owned();
            if model.name.is_empty() {
                model.name.clone_from(&model.id);
            }
            if model.base_url.is_empty() {
                model.base_url = user
                    .base_url
                    .clone()
                    .or_else(|| known.map(|vendor| vendor.base_url.to_owned()))
                    .ok_or("\"baseUrl\" is missing")?;
            }
            if model.api.as_str().is_empty() {
                let api = user.api.clone().or_else(|| self.first_api(id)).ok_or("\"api\" is missing")?;
                model.api = Api::new(api);
            }
            if !super::SUPPORTED_APIS.contains(&model.api.as_str()) {
                return Err(format!(
                    "unknown api \"{}\"; known are {}",
                    model.api,
                    super::SUPPORTED_APIS.join(", ")
                ));
            }
            let cost = &model.cost;
            if [cost.input, cost.output, cost.cache_read, cost.cache_write].iter().any(|rate| *rate < 0.0) {
                return Err(format!("model \"{model_id}\": a price is negative"));
            }
            models.push(model);
        }
        for existing in self.models.iter_mut().filter(|model| model.provider == id) {
            let model = Arc::make_mut(existing);
            if let Some(base_url) = &user.base_url {
                model.base_url.clone_from(base_url);
            }
            if let Some(fields) = user.model_overrides.get(&model.id) {
                let merged = merged(to_fields(model), fields.clone());
                let mut changed: Model = serde_json::from_value(Value::Object(merged))
                    .map_err(|error| format!("modelOverrides \"{}\": {error}", model.id))?;
                changed.provider = id.to_owned();
                *model = changed;
            }
        }
        for model in models {
            self.models.retain(|existing| existing.provider != id || existing.id != model.id);
            self.models.push(Arc::new(model));
        }
        for model in self.models.iter_mut().filter(|model| model.provider == id) {
            let model = Arc::make_mut(model);
            for (name, value) in &user.headers {
                model.headers.entry(name.clone()).or_insert_with(|| value.clone());
            }
            for (flag, value) in &user.compat {
                model.compat.entry(flag.clone()).or_insert_with(|| value.clone());
            }
        }
        self.note_provider(id, user.name, user.api_key, user.auth_header.unwrap_or(false));
        Ok(())
    }

    fn note_provider(&mut self, id: &str, name: Option<String>, api_key: Option<String>, auth_header: bool) {
        if let Some(provider) = self.providers.iter_mut().find(|provider| provider.id == id) {
            provider.name = name.unwrap_or_else(|| provider.name.clone());
            provider.api_key = api_key.or_else(|| provider.api_key.clone());
            provider.auth_header |= auth_header;
        } else {
            self.providers.push(ProviderInfo {
                id: id.to_owned(),
                name: name.unwrap_or_else(|| id.to_owned()),
                api_key,
                custom: true,
                auth_header,
                default_model: None,
            });
        }
    }

    fn first_api(&self, provider: &str) -> Option<String> {
        let model = self.models.iter().find(|model| model.provider == provider)?;
        Some(model.api.as_str().to_owned())
    }

    /// The model a reference means: an id, `provider/id`, or part of an id or
    /// name, in any letter case, with an optional `:level`. `usable` says which
    /// providers the user has access to; they win over others.
    ///
    /// # Errors
    /// When nothing matches, or one id belongs to several usable providers.
    pub fn find(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Result<Matched, MatchError> {
        let reference = reference.trim();
        let whole = self.find_whole(reference, provider, usable);
        if let Ok(model) = whole {
            return Ok(Matched { model, thinking: None });
        }
        if let Some((rest, level)) = reference.rsplit_once(':')
            && let Some(level) = ThinkingLevel::parse(level)
        {
            let model = self.find_whole(rest, provider, usable)?;
            return Ok(Matched { model, thinking: Some(level) });
        }
        whole.map(|model| Matched { model, thinking: None })
    }

    fn find_whole(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Result<Arc<Model>, MatchError> {
        let in_provider =
            |model: &&Arc<Model>| provider.is_none_or(|id| model.provider.eq_ignore_ascii_case(id));
        let exact: Vec<&Arc<Model>> = self
            .models
            .iter()
            .filter(in_provider)
            .filter(|model| {
                model.id.eq_ignore_ascii_case(reference) || model.reference().eq_ignore_ascii_case(reference)
            })
            .collect();
        if !exact.is_empty() {
            return one_of(exact, reference, usable);
        }
        let needle = reference.to_lowercase();
        let partial: Vec<&Arc<Model>> = self
            .models
            .iter()
            .filter(in_provider)
            .filter(|_| !needle.is_empty())
            .filter(|model| {
                model.reference().to_lowercase().contains(&needle)
                    || model.name.to_lowercase().contains(&needle)
            })
            .collect();
        let usable_partial: Vec<&Arc<Model>> =
            partial.iter().copied().filter(|model| usable(&model.provider)).collect();
        let candidates = if usable_partial.is_empty() { partial } else { usable_partial };
        // An alias stands for the newest of its dated versions.
        let best = candidates.into_iter().max_by(|a, b| {
            (is_alias(&a.id), &a.id).cmp(&(is_alias(&b.id), &b.id)).then_with(|| b.provider.cmp(&a.provider))
        });
        best.cloned().ok_or_else(|| MatchError::Unknown {
            reference: match provider {
                Some(provider) => format!("{provider}/{reference}"),
                None => reference.to_owned(),
            },
            hint: self.hint(reference),
        })
    }

    /// A model the user may have meant.
    fn hint(&self, reference: &str) -> String {
        let wanted = reference.rsplit('/').next().unwrap_or(reference).to_lowercase();
        let common = |id: &str| id.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        let best = self.models.iter().max_by_key(|model| common(&model.id.to_lowercase()));
        best.filter(|model| common(&model.id.to_lowercase()) >= 3)
            .map(|model| format!("; did you mean {}?", model.reference()))
            .unwrap_or_default()
    }
}

/// The one of several providers' equally named models the user can use.
fn one_of(
    mut exact: Vec<&Arc<Model>>,
    reference: &str,
    usable: &dyn Fn(&str) -> bool,
) -> Result<Arc<Model>, MatchError> {
    if exact.iter().any(|model| usable(&model.provider)) {
        exact.retain(|model| usable(&model.provider));
    }
    match exact.as_slice() {
        [only] => Ok(Arc::clone(only)),
        several => Err(MatchError::Ambiguous {
            reference: reference.to_owned(),
            candidates: several.iter().map(|model| model.reference()).collect(),
        }),
    }
}

/// Whether an id names no dated version.
fn is_alias(id: &str) -> bool {
    let dated =
        id.rsplit('-').next().is_some_and(|last| last.len() == 8 && last.bytes().all(|b| b.is_ascii_digit()));
    id.ends_with("-latest") || !dated
}

fn demo_model() -> Model {
    Model {
        id: "pi".to_owned(),
        name: "Demo (offline)".to_owned(),
        api: Api::DEMO,
        provider: DEMO_PROVIDER.to_owned(),
        base_url: String::new(),
        reasoning: true,
        input: vec![Modality::Text, Modality::Image],
        cost: Cost::default(),
        context_window: 128_000,
        max_tokens: 16_384,
        thinking_level_map: BTreeMap::new(),
        headers: BTreeMap::new(),
        compat: Map::new(),
        extra: Map::new(),
    }
}

fn to_fields(model: &Model) -> Map<String, Value> {
    match serde_json::to_value(model) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// `base` with the members of `over`; objects are merged member by member.
fn merged(mut base: Map<String, Value>, over: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => *old = merged(std::mem::take(old), new),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
    base
}

/// One provider of `models.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserProvider {
    name: Option<String>,
    base_url: Option<String>,
    api_key: Option<String>,
    api: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    compat: Map<String, Value>,
    auth_header: Option<bool>,
    #[serde(default)]
    models: Vec<Map<String, Value>>,
    #[serde(default)]
    model_overrides: BTreeMap<String, Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(provider: &str) -> bool {
        ["anthropic", "openrouter", "mine"].contains(&provider)
    }

    fn catalog() -> Catalog {
        let mut catalog = Catalog::builtin();
        let text = r#"{
            // a server at home
            "providers": {
                "mine": {
                    "baseUrl": "http://localhost:1/v1", "api": "openai-completions", "apiKey": "$KEY",
                    "models": [{"id": "m-1"}, {"id": "m-1-20260101"}, {"id": "a/b:free", "reasoning": true}],
                },
            },
        }"#;
        catalog.add_user_models(text).unwrap();
        catalog
    }

    #[track_caller]
    fn check(reference: &str, expected: &str) {
        let found = match catalog().find(reference, None, &usable) {
            Ok(Matched { model, thinking: None }) => model.reference(),
            Ok(Matched { model, thinking: Some(level) }) => format!("{} at {level}", model.reference()),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn references_name_models() {
        check("claude-opus-5-5", "anthropic/claude-opus-5-5");
        check("ANTHROPIC/Claude-Opus-5-5", "anthropic/claude-opus-5-5");
        check("m-1", "mine/m-1");
        check("mine/m-1:high", "mine/m-1 at high");
        check("a/b:free", "mine/a/b:free");
        check("a/b:free:low", "mine/a/b:free at low");
        check("m-1-2", "mine/m-1-20260101");
        check("mine/m", "mine/m-1");
    }

    #[test]
    fn what_matches_nothing_says_so() {
        check(
            "claude-opsu",
            "no model matches \"claude-opsu\"; did you mean anthropic/claude-opus-5-5?; pi --list-models shows all",
        );
    }

    #[test]
    fn a_wrong_provider_is_reported_and_hides_nothing() {
        let mut catalog = Catalog::builtin();
        let n = catalog.models().len();
        let text = r#"{"providers":{"x":{"models":[{"id":"m"}]},"y":{"baseUrl":"http://h","api":"smoke","models":[{"id":"m"}]},"z":{"baseUrl":"http://h","api":"anthropic-messages","models":[{"id":"m"}]}}}"#;
        let problems = catalog.add_user_models(text).unwrap_err();
        assert_eq!(problems[0], "provider \"x\": \"baseUrl\" is missing");
        assert!(
            problems[1].starts_with("provider \"y\": unknown api \"smoke\"; known are "),
            "{}",
            problems[1]
        );
        assert_eq!(catalog.models().len(), n + 1);
        let problems = catalog.add_user_models("{\n  \"providers\": {\n    oops\n").unwrap_err();
        assert!(problems[0].starts_with("line 4"), "{problems:?}");
    }

    #[test]
    fn a_builtin_provider_can_be_redirected_and_a_model_changed() {
        let mut catalog = Catalog::builtin();
        let text = r#"{"providers":{"anthropic":{"baseUrl":"http://gateway","headers":{"x-team":"a"},"modelOverrides":{"claude-opus-5-5":{"contextWindow":1000}}}}}"#;
        catalog.add_user_models(text).unwrap();
        let model = catalog.get("anthropic", "claude-opus-5-5").unwrap();
        assert_eq!((model.base_url.as_str(), model.context_window), ("http://gateway", 1000));
        assert_eq!(model.headers["x-team"], "a");
    }
}
