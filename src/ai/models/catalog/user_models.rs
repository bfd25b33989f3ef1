//! The user's `models.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::compat_fields::take_wrong;
use super::super::model::{Cost, MAX_ID_BYTES, Model};
use super::super::vendors;
use super::{Catalog, ProviderInfo, wrong_field};
use crate::ai::messages::{Api, supported_apis};
use crate::ai::models::Sampling;

impl Catalog {
    /// Adds the user's `models.json` (comments, trailing commas and a byte order
    /// mark are allowed). Invalid providers are left out and reported; the
    /// others are added.
    ///
    /// # Errors
    /// One line per problem, with its position in the file where known.
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
            if id.len() > MAX_ID_BYTES {
                problems.push(format!("a provider whose id has more than {MAX_ID_BYTES} bytes"));
                continue;
            }
            let mut found = Vec::new();
            let added = wrong_field::read::<UserProvider>(value)
                .and_then(|provider| self.add_provider(&id, provider, &mut found));
            found.extend(added.err());
            problems.extend(found.into_iter().map(|problem| format!("provider \"{id}\": {problem}")));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Adds one provider. Problems that leave the rest usable go into `problems`; an
    /// error means that the provider is unusable and nothing of it was added.
    fn add_provider(
        &mut self,
        id: &str,
        mut user: UserProvider,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        problems.extend(user.oauth.as_ref().and_then(sign_in_problem));
        let mut fields = Map::from_iter([("compat".to_owned(), std::mem::take(&mut user.compat))]);
        problems.extend(compat_problems(&mut fields));
        let compat = match fields.remove("compat") {
            Some(Value::Object(compat)) => compat,
            _ => Map::new(),
        };
        self.discover_models(id, &user, problems);
        let mut models = Vec::new();
        for fields in std::mem::take(&mut user.models) {
            models.extend(self.user_model(id, &user, &compat, fields, problems)?);
        }
        let mut group = self.group(id).clone();
        for existing in &mut group {
            let model = Arc::make_mut(existing);
            if let Some(base_url) = &user.base_url {
                redirect(model, base_url);
            }
            if !compat.is_empty() {
                model.compat = merged(std::mem::take(&mut model.compat), compat.clone());
            }
            if let Some(fields) = user.model_overrides.get(&model.id) {
                *model = overridden(model, fields.clone(), problems)?;
            }
        }
        for model in models {
            group.retain(|existing| existing.id != model.id);
            group.push(Arc::new(model));
        }
        let complete = |model: &mut Arc<Model>| {
            let model = Arc::make_mut(model);
            for (name, value) in &user.headers {
                model.headers.entry(name.clone()).or_insert_with(|| value.clone());
            }
        };
        group.iter_mut().for_each(complete);
        let info = self.providers.iter_mut().find(|info| info.id == id);
        if let Some(template) = info.and_then(|info| info.template.as_mut()) {
            let changed = Arc::make_mut(template);
            if let Some(base_url) = &user.base_url {
                redirect(changed, base_url);
            }
            if let Some(api) = &user.api {
                changed.api = Api::new(api.clone());
            }
            changed.compat = merged(std::mem::take(&mut changed.compat), compat);
            complete(template);
        }
        *self.group(id) = group;
        self.group_of(id).overrides.extend(user.model_overrides);
        self.note_provider(id, user.name, user.api_key, user.auth_header.unwrap_or(false));
        Ok(())
    }

    /// The model that `fields` describe; `None` if its API is not supported, which is
    /// then one of the problems.
    fn user_model(
        &self,
        id: &str,
        user: &UserProvider,
        compat: &Map<String, Value>,
        mut fields: Map<String, Value>,
        problems: &mut Vec<String>,
    ) -> Result<Option<Model>, String> {
        let model_id = fields.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if model_id.is_empty() {
            return Err("a model without \"id\"".to_owned());
        }
        let own_api = fields.get("api").and_then(Value::as_str).filter(|api| !api.is_empty());
        if own_api.or(user.api.as_deref()) == Some(RADIUS_API) {
            problems.push(format!("model \"{model_id}\": api \"{RADIUS_API}\": {NOT_SPOKEN}"));
            return Ok(None);
        }
        let wrong = compat_problems(&mut fields).into_iter();
        problems.extend(wrong.map(|text| format!("model \"{model_id}\": {text}")));
        let mut base = Map::new();
        add_compat(&mut base, compat);
        let mut model: Model = wrong_field::read(Value::Object(merged(base, fields)))
            .map_err(|error| format!("model \"{model_id}\": {error}"))?;
        model.provider = id.to_owned();
        if model.name.is_empty() {
            model.name.clone_from(&model.id);
        }
        // It replaces an existing model, but only at the same service.
        let replaced = self.get(id, &model_id);
        if model.base_url.is_empty() {
            let template = self.provider(id).and_then(|info| info.template.as_deref());
            model.base_url = user
                .base_url
                .clone()
                .or_else(|| replaced.map(|model| model.base_url.clone()))
                .or_else(|| template.map(|template| template.base_url.clone()))
                .or_else(|| vendors::vendor(id).map(|vendor| vendor.base_url.to_owned()))
                .ok_or("\"baseUrl\" is missing")?;
        }
        if model.api.as_str().is_empty() {
            let api = user.api.clone().or_else(|| replaced.map(|model| model.api.as_str().to_owned()));
            model.api = Api::new(api.or_else(|| self.first_api(id)).ok_or("\"api\" is missing")?);
        }
        let supported = supported_apis();
        if !supported.contains(&model.api.as_str()) {
            return Err(format!("unknown api \"{}\"; choose one of {}", model.api, supported.join(", ")));
        }
        check(&model).map_err(|problem| format!("model \"{model_id}\": {problem}"))?;
        Ok(Some(model))
    }

    /// Has the models of a provider that lists none queried, if its API has a list.
    fn discover_models(&mut self, id: &str, user: &UserProvider, problems: &mut Vec<String>) {
        let Some(base_url) = user.base_url.as_ref().filter(|_| user.models.is_empty()) else { return };
        let is_known = |info: &ProviderInfo| !info.local && (!info.custom || info.template.is_some());
        if self.provider(id).is_some_and(is_known) {
            return;
        }
        let api = match user.api.as_deref() {
            None | Some("") => Api::OPENAI_COMPLETIONS,
            Some(api) => Api::new(api.to_owned()),
        };
        if api.as_str() == RADIUS_API {
            return;
        }
        if !DISCOVERED_APIS.contains(&api.as_str()) {
            let apis = DISCOVERED_APIS.join(" and ");
            problems.push(format!(
                "it has no \"models\"; list them, because pi queries the lists of {apis} only, not of {api}"
            ));
            return;
        }
        let (provider, base_url) = (id.to_owned(), base_url.clone());
        let template = Arc::new(Model { api, provider, base_url, ..Model::default() });
        self.note_provider(id, None, None, false);
        if let Some(info) = self.providers.iter_mut().find(|info| info.id == id) {
            info.template = Some(template);
        }
    }

    fn note_provider(&mut self, id: &str, name: Option<String>, api_key: Option<String>, auth_header: bool) {
        if let Some(provider) = self.providers.iter_mut().find(|provider| provider.id == id) {
            provider.name = name.unwrap_or_else(|| provider.name.clone());
            provider.api_key = api_key.or_else(|| provider.api_key.clone());
            provider.auth_header |= auth_header;
            provider.local = false;
        } else {
            self.providers.push(ProviderInfo {
                id: id.to_owned(),
                name: name.unwrap_or_else(|| id.to_owned()),
                api_key,
                custom: true,
                local: false,
                auth_header,
                default_model: None,
                template: None,
            });
        }
    }

    fn first_api(&self, provider: &str) -> Option<String> {
        let template = || self.provider(provider)?.template.as_ref();
        let model = self.models_of(provider).first().or_else(template)?;
        Some(model.api.as_str().to_owned())
    }
}

/// `model` with the fields of `modelOverrides`; unchanged if they are invalid, which is a
/// problem of the file that was reported when it was read.
pub(super) fn with_override(model: &Model, fields: &Map<String, Value>) -> Model {
    overridden(&mut model.clone(), fields.clone(), &mut Vec::new()).unwrap_or_else(|_| model.clone())
}

/// Sends the requests of `model` to `base_url`.
fn redirect(model: &mut Model, base_url: &str) {
    base_url.clone_into(&mut model.base_url);
    model.compat.retain(|name, _| !OWN_SERVICE_ONLY.contains(&name.as_str()));
}

/// `model` with the user's fields replacing its own.
fn overridden(
    model: &mut Model,
    mut fields: Map<String, Value>,
    problems: &mut Vec<String>,
) -> Result<Model, String> {
    let place = format!("modelOverrides \"{}\"", model.id);
    let wrong = compat_problems(&mut fields).into_iter();
    problems.extend(wrong.map(|text| format!("{place}: {text}")));
    if let Some(base_url) = fields.get("baseUrl").and_then(Value::as_str) {
        redirect(model, base_url);
    }
    let mut changed: Model = wrong_field::read(Value::Object(merged(to_fields(model), fields)))
        .map_err(|error| format!("{place}: {error}"))?;
    changed.provider.clone_from(&model.provider);
    check(&changed).map_err(|problem| format!("{place}: {problem}"))?;
    Ok(changed)
}

/// Features that a vendor's own service supports for a listed model, and that a gateway
/// may reject, unless the user configures them.
const OWN_SERVICE_ONLY: [&str; 7] = [
    "allowedFallbackModels",
    "supportsAdditionalTools",
    "supportsMidConvoEffort",
    "supportsMidConvoSystemMessages",
    "supportsMidConvoToolAdditions",
    "supportsMidConvoToolChanges",
    "supportsToolSearch",
];

/// APIs whose servers list their models at `/models`.
const DISCOVERED_APIS: [&str; 2] = ["openai-completions", "openai-responses"];

/// The API of Radius, a service of the original.
const RADIUS_API: &str = "pi-messages";
const NOT_SPOKEN: &str = "pi does not support the protocol of this provider; use the providers of its models";

/// The message about a provider's `oauth`.
fn sign_in_problem(oauth: &Value) -> Option<String> {
    match oauth {
        Value::Null => None,
        Value::String(service) if service == "radius" => Some(format!("oauth \"radius\": {NOT_SPOKEN}")),
        other => Some(format!("oauth {other}: unsupported sign-in; use \"apiKey\"")),
    }
}

/// The problems of the `compat` among the fields of a model; invalid values are removed.
fn compat_problems(fields: &mut Map<String, Value>) -> Vec<String> {
    match fields.get_mut("compat") {
        Some(Value::Object(compat)) => take_wrong(compat),
        None => Vec::new(),
        Some(other) => {
            let is_nothing = other.is_null();
            fields.shift_remove("compat");
            if is_nothing { Vec::new() } else { vec!["\"compat\" must be an object".to_owned()] }
        }
    }
}

/// Merges the `compat` of a provider over the default one in `fields`.
fn add_compat(fields: &mut Map<String, Value>, compat: &Map<String, Value>) {
    if compat.is_empty() {
        return;
    }
    let known = match fields.shift_remove("compat") {
        Some(Value::Object(known)) => known,
        _ => Map::new(),
    };
    fields.insert("compat".to_owned(), Value::Object(merged(known, compat.clone())));
}

/// The problem with a model's numbers.
pub(super) fn check(model: &Model) -> Result<(), String> {
    let Cost { input, output, cache_read, cache_write, tiers } = &model.cost;
    let tiers = tiers.iter().flat_map(|tier| [tier.input, tier.output, tier.cache_read, tier.cache_write]);
    if [*input, *output, *cache_read, *cache_write].into_iter().chain(tiers).any(|rate| rate < 0.0) {
        return Err("a price is negative".to_owned());
    }
    if model.id.len() > MAX_ID_BYTES {
        return Err(format!("its id has more than {MAX_ID_BYTES} bytes"));
    }
    if model.context_window == 0 || model.max_tokens == 0 {
        return Err("contextWindow and maxTokens must be at least 1".to_owned());
    }
    let by_level = model.sampling_params_by_thinking_level.values();
    match std::iter::once(&model.sampling_params).chain(by_level).find_map(Sampling::problem) {
        Some(problem) => Err(format!("samplingParams: {problem}")),
        None => Ok(()),
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
    compat: Value,
    auth_header: Option<bool>,
    /// A sign-in that pi does not implement.
    oauth: Option<Value>,
    #[serde(default)]
    models: Vec<Map<String, Value>>,
    #[serde(default)]
    model_overrides: BTreeMap<String, Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_provider_is_reported_and_hides_nothing() {
        let mut catalog = Catalog::builtin();
        let n = catalog.models().count();
        let text = r#"{"providers":{"x":{"models":[{"id":"m"}]},"y":{"baseUrl":"http://h","api":"smoke","models":[{"id":"m"}]},"z":{"baseUrl":"http://h","api":"anthropic-messages","models":[{"id":"m"}]}}}"#;
        let problems = catalog.add_user_models(text).unwrap_err();
        assert_eq!(problems[0], "provider \"x\": \"baseUrl\" is missing");
        assert!(
            problems[1].starts_with("provider \"y\": unknown api \"smoke\"; choose one of "),
            "{}",
            problems[1]
        );
        assert_eq!(catalog.models().count(), n + 1);
        let problems = catalog.add_user_models("{\n  \"providers\": {\n    oops\n").unwrap_err();
        assert!(problems[0].starts_with("line 4"), "{problems:?}");
    }

    #[test]
    fn address_alone_lets_pi_query_the_models() {
        let check = |provider: &str, fields: &str, expected: Result<Option<&str>, &str>| {
            let mut catalog = Catalog::builtin();
            let read = catalog.add_user_models(&format!(r#"{{"providers":{{"{provider}":{fields}}}}}"#));
            let info = catalog.provider(provider).unwrap();
            let template = info.template.as_deref().filter(|_| info.is_discovered());
            let found = template.map(|template| format!("{} {}", template.api, template.base_url));
            match expected {
                Ok(expected) => {
                    assert_eq!((found.as_deref(), read), (expected, Ok(())), "{provider} {fields}");
                }
                Err(problem) => {
                    assert!(read.unwrap_err()[0].contains(problem) && found.is_none(), "{fields}");
                }
            }
        };
        let address = r#"{"baseUrl":"http://h/v1"}"#;
        check("home", address, Ok(Some("openai-completions http://h/v1")));
        check("ollama", address, Ok(Some("openai-completions http://h/v1")));
        let responses = r#"{"baseUrl":"http://h","api":"openai-responses"}"#;
        check("home", responses, Ok(Some("openai-responses http://h")));
        // The user's own list is complete, and vendors have theirs.
        check("home", r#"{"baseUrl":"http://h","api":"openai-completions","models":[{"id":"m"}]}"#, Ok(None));
        check("anthropic", address, Ok(None));
        check("nvidia", address, Ok(None));
        check("home", r#"{"baseUrl":"http://h","api":"anthropic-messages"}"#, Err("list them, because"));
    }

    #[test]
    fn overrides_apply_to_models_that_a_list_adds() {
        let text = r#"{"providers":{"home":{"baseUrl":"http://h","headers":{"x-team":"a"},
            "compat":{"supportsStore":false},"modelOverrides":{"m":{"contextWindow":5000}}}}}"#;
        let mut catalog = Catalog::builtin();
        catalog.add_user_models(text).unwrap();
        let template = catalog.provider("home").unwrap().template.clone().unwrap();
        let listed = |id: &str| Model { id: id.to_owned(), ..Model::clone(&template) };
        catalog.set_listed("home", vec![listed("m"), listed("n")]);
        let windows = catalog.models_of("home").iter().map(|model| model.context_window);
        assert_eq!(windows.collect::<Vec<_>>(), [5_000, 128_000]);
        let model = catalog.get("home", "m").unwrap();
        assert_eq!(
            (model.headers["x-team"].as_str(), &model.compat["supportsStore"]),
            ("a", &Value::Bool(false))
        );
    }

    #[test]
    fn a_model_of_the_same_id_is_another_at_the_users_address() {
        let text = r#"{"providers":{"anthropic":{"baseUrl":"https://gateway",
            "models":[{"id":"claude-opus-5-5","contextWindow":500000}]}}}"#;
        let mut catalog = Catalog::builtin();
        catalog.add_user_models(text).unwrap();
        let model = catalog.get("anthropic", "claude-opus-5-5").unwrap();
        assert_eq!((model.base_url.as_str(), model.context_window), ("https://gateway", 500_000));
        assert_eq!((model.api.as_str(), model.max_tokens), ("anthropic-messages", 16_384));
        assert!(!model.reasoning && model.compat.is_empty());
    }

    #[test]
    fn a_gateway_is_asked_for_nothing_that_only_the_service_is_known_to_do() {
        let flags = |text: &str| {
            let mut catalog = Catalog::builtin();
            catalog.add_user_models(text).unwrap();
            let model = Arc::clone(catalog.get("anthropic", "claude-opus-5-5").unwrap());
            ["supportsMidConvoToolChanges", "supportsStrictTools"]
                .map(|name| model.compat.get(name).and_then(Value::as_bool).unwrap_or(false))
        };
        let gateway =
            |more: &str| format!(r#"{{"providers":{{"anthropic":{{"baseUrl":"https://gateway"{more}}}}}}}"#);
        assert_eq!(flags(r#"{"providers":{"anthropic":{"apiKey":"k"}}}"#), [true, true]);
        assert_eq!(flags(&gateway("")), [false, true]);
        let one = r#"{"providers":{"anthropic":{"modelOverrides":{"claude-opus-5-5":{"baseUrl":"https://gateway"}}}}}"#;
        assert_eq!(flags(one), [false, true]);
        assert_eq!(flags(&gateway(r#","compat":{"supportsMidConvoToolChanges":true}"#)), [true, true]);
    }

    #[test]
    fn a_provider_that_is_left_out_changes_nothing() {
        let text = r#"{"providers":{"anthropic":{"baseUrl":"https://gateway","modelOverrides":
            {"claude-opus-5-5":{"contextWindow":0}}}}}"#;
        let mut catalog = Catalog::builtin();
        let problems = catalog.add_user_models(text).unwrap_err();
        assert_eq!(problems.len(), 1);
        let urls = catalog.models_of("anthropic").iter().map(|model| model.base_url.as_str());
        assert!(urls.into_iter().all(|url| url == "https://api.anthropic.com"));
    }

    #[test]
    fn numbers_no_model_has_are_reported() {
        let check = |fields: &str, expected: &str| {
            let text = format!(
                r#"{{"providers":{{"x":{{"baseUrl":"http://h","api":"openai-completions","models":[{{"id":"m",{fields}}}]}}}}}}"#
            );
            let problems = Catalog::builtin().add_user_models(&text).unwrap_err();
            assert_eq!(problems, [format!("provider \"x\": model \"m\": {expected}")]);
        };
        check(r#""cost":{"input":-1}"#, "a price is negative");
        check(r#""cost":{"tiers":[{"inputTokensAbove":1,"output":-1}]}"#, "a price is negative");
        check(r#""contextWindow":0"#, "contextWindow and maxTokens must be at least 1");
        check(r#""samplingParams":{"topP":3}"#, "samplingParams: topP must be between 0 and 1");
    }

    #[test]
    fn a_wrong_compat_is_named_and_its_default_holds() {
        let text = r#"{"providers":{"x":{"baseUrl":"http://h","api":"openai-completions",
            "compat":{"supportsStore":1,"zaiToolStream":true},
            "models":[{"id":"m","compat":{"thinkingFormat":"loud","later":[1]}}]},
            "anthropic":{"modelOverrides":{"claude-opus-5-5":{"compat":{"supportsStrictTools":"yes"}}}}}}"#;
        let mut catalog = Catalog::builtin();
        let problems = catalog.add_user_models(text).unwrap_err();
        assert_eq!(
            problems,
            [
                "provider \"x\": compat \"supportsStore\" is 1; it must be true or false",
                "provider \"x\": model \"m\": compat \"thinkingFormat\" is \"loud\"; it must be one of \"openai\", \
                 \"openrouter\", \"deepseek\", \"together\", \"baseten\", \"zai\", \"qwen\", \"chat-template\", \
                 \"qwen-chat-template\", \"string-thinking\", \"ant-ling\"",
                "provider \"anthropic\": modelOverrides \"claude-opus-5-5\": compat \"supportsStrictTools\" is \"yes\"; \
                 it must be true or false",
            ]
        );
        let compat = Value::Object(catalog.get("x", "m").unwrap().compat.clone());
        assert_eq!(compat, serde_json::json!({"zaiToolStream": true, "later": [1]}));
        assert_eq!(catalog.get("anthropic", "claude-opus-5-5").unwrap().compat["supportsStrictTools"], true);
    }

    #[test]
    fn the_compat_of_a_model_counts_before_that_of_its_provider() {
        let text = r#"{"providers":{"x":{"baseUrl":"http://h","api":"openai-completions",
            "compat":{"supportsStore":true,"openRouterRouting":{"order":["a"],"sort":"price"}},
            "models":[{"id":"m","compat":{"openRouterRouting":{"order":["b"]}}},{"id":"n","compat":{"supportsStore":false}}]},
            "anthropic":{"compat":{"supportsStrictTools":false},"modelOverrides":{"claude-opus-5":{"compat":{"supportsStrictTools":true}}},
                "models":[{"id":"claude-opus-4-8","maxTokens":7}]}}}"#;
        let mut catalog = Catalog::builtin();
        catalog.add_user_models(text).unwrap();
        let check = |provider: &str, id: &str, field: &str, expected: Value| {
            assert_eq!(catalog.get(provider, id).unwrap().compat[field], expected, "{provider}/{id}");
        };
        check("x", "m", "supportsStore", Value::Bool(true));
        check("x", "m", "openRouterRouting", serde_json::json!({"order": ["b"], "sort": "price"}));
        check("x", "n", "supportsStore", Value::Bool(false));
        // The user knows the gateway; the list knows only the service.
        check("anthropic", "claude-opus-5-5", "supportsStrictTools", Value::Bool(false));
        check("anthropic", "claude-opus-4-8", "supportsStrictTools", Value::Bool(false));
        check("anthropic", "claude-opus-5", "supportsStrictTools", Value::Bool(true));
    }

    #[test]
    fn a_service_of_the_original_is_named_and_hides_nothing() {
        let text = r#"{"providers":{"radius":{"baseUrl":"http://h","oauth":"radius","api":"pi-messages",
            "models":[{"id":"a"},{"id":"b","api":"openai-completions"}]},
            "y":{"baseUrl":"http://h","oauth":7,"api":"openai-completions","compat":7,"models":[{"id":"c","compat":[]}]}}}"#;
        let mut catalog = Catalog::builtin();
        let problems = catalog.add_user_models(text).unwrap_err();
        assert_eq!(
            problems,
            [
                format!("provider \"radius\": oauth \"radius\": {NOT_SPOKEN}"),
                format!("provider \"radius\": model \"a\": api \"pi-messages\": {NOT_SPOKEN}"),
                "provider \"y\": oauth 7: unsupported sign-in; use \"apiKey\"".to_owned(),
                "provider \"y\": \"compat\" must be an object".to_owned(),
                "provider \"y\": model \"c\": \"compat\" must be an object".to_owned(),
            ]
        );
        assert!(catalog.get("radius", "a").is_none());
        assert!(catalog.get("radius", "b").is_some() && catalog.get("y", "c").is_some());
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
