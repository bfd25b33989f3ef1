//! Resolves a model reference.

use std::sync::Arc;

use super::super::local_servers::{local_model, local_server};
use super::super::model::Model;
use super::{Catalog, DEMO_PROVIDER, ProviderInfo};
use crate::ai::messages::ThinkingLevel;

/// Why a model reference does not select a single model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum MatchError {
    #[error("no model matches \"{reference}\"{hint}; list all with pi --list-models")]
    Unknown { reference: String, hint: String },
    #[error("\"{reference}\" matches {}; use the full name of one", candidates.join(", "))]
    Ambiguous { reference: String, candidates: Vec<String> },
    #[error(
        "\"{suffix}\" is no thinking level of {model}; use {model}:LEVEL with one of {}, or leave it out",
        names(levels)
    )]
    NoLevel { model: String, suffix: String, levels: Vec<ThinkingLevel> },
}

fn names(levels: &[ThinkingLevel]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}

/// A model, with the thinking level of its reference.
#[derive(Debug, Clone)]
pub struct Matched {
    /// The model.
    pub model: Arc<Model>,
    /// The level after the colon.
    pub thinking: Option<ThinkingLevel>,
    /// Whether the model is assumed: the catalogue knows its provider but not its id.
    pub assumed: bool,
}

impl Catalog {
    /// Resolves a reference: an id, `provider/id`, or part of an id or
    /// name, ignoring case, with an optional `:level`. `usable` reports which
    /// providers the user has access to; they win over others.
    ///
    /// # Errors
    /// If nothing matches, or one id belongs to several usable providers.
    pub fn find(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Result<Matched, MatchError> {
        let reference = reference.trim();
        let whole = self.find_whole(reference, provider, usable);
        let leveled = match (&whole, reference.rsplit_once(':')) {
            (Err(_), Some((rest, level))) => ThinkingLevel::parse(level).map(|level| (rest, level)),
            _ => None,
        };
        let (id, thinking) = leveled.map_or((reference, None), |(rest, level)| (rest, Some(level)));
        let found = match thinking {
            Some(_) => self.find_whole(id, provider, usable),
            None => whole,
        };
        match found {
            Ok(model) => Ok(Matched { model, thinking, assumed: false }),
            Err(error @ (MatchError::Ambiguous { .. } | MatchError::NoLevel { .. })) => Err(error),
            Err(error) => {
                if let Some(problem) = self.wrong_level(id, provider, usable) {
                    return Err(problem);
                }
                let model = self.assumed(id, provider, usable).ok_or(error)?;
                Ok(Matched { model: Arc::new(model), thinking, assumed: true })
            }
        }
    }

    /// The error for a reference that no model has, if it is that of a known model and a suffix. Where
    /// ids of the provider have suffixes themselves, as those of routers have, it may be the id of a model
    /// that the catalogue does not know.
    fn wrong_level(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Option<MatchError> {
        let (rest, suffix) = reference.rsplit_once(':').filter(|(_, suffix)| !suffix.contains('/'))?;
        let model = self.find_whole(rest, provider, usable).ok()?;
        let is_it = [&model.id, &model.reference()].iter().any(|name| name.eq_ignore_ascii_case(rest));
        let has_suffixes = self.models_of(&model.provider).iter().any(|model| model.id.contains([':', '/']));
        let is_local = local_server(&model.provider).is_some();
        (is_it && !has_suffixes && !is_local).then(|| {
            let levels = model.thinking_levels();
            MatchError::NoLevel { model: model.reference(), suffix: suffix.to_owned(), levels }
        })
    }

    /// A model with an id the catalogue does not know, of a provider that the user named
    /// and can use. It may be newer than this version, or on a server not queried yet.
    pub(super) fn assumed(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Option<Model> {
        let (provider, id) = match provider {
            Some(provider) => (provider, reference),
            None => reference.split_once('/')?,
        };
        if id.is_empty() || id.contains(char::is_whitespace) {
            return None;
        }
        if let Some(server) = local_server(provider)
            && self.provider(provider).is_some_and(|info| info.local)
        {
            if let Some(found) = self.models_of(provider).first() {
                let base_url = found.base_url.clone();
                return Some(Model { base_url, ..local_model(server, "", id, None) });
            }
            let addresses = self.local_addresses.of(server);
            return Some(local_model(server, addresses.first()?, id, None));
        }
        let info = self.provider(provider).filter(|info| info.id != DEMO_PROVIDER && usable(&info.id))?;
        let default = info.default_model.as_deref().and_then(|id| self.get(&info.id, id));
        let like = default.or_else(|| self.models_of(&info.id).first()).or(info.template.as_ref())?;
        Some(Model { id: id.to_owned(), name: id.to_owned(), ..Model::clone(like) })
    }

    fn find_whole(
        &self,
        reference: &str,
        provider: Option<&str>,
        usable: &dyn Fn(&str) -> bool,
    ) -> Result<Arc<Model>, MatchError> {
        let in_provider =
            |model: &&Arc<Model>| provider.is_none_or(|id| model.provider.eq_ignore_ascii_case(id));
        let is_it = |model: &&Arc<Model>| model.reference().eq_ignore_ascii_case(reference);
        let own = reference.split_once('/').map_or("", |(provider, _)| provider);
        // While the list of a provider is not loaded, its models must not be confused
        // with models of routers that have the same name.
        let may_have_it = |info: &ProviderInfo| {
            info.id == own
                && info.template.is_some()
                && self.models_of(&info.id).is_empty()
                && usable(&info.id)
        };
        if provider.is_none() && self.providers().iter().any(may_have_it) {
            return Err(MatchError::Unknown { reference: reference.to_owned(), hint: String::new() });
        }
        let owners = self.providers().iter().filter(|info| info.id.eq_ignore_ascii_case(own));
        let mut exact: Vec<&Arc<Model>> =
            owners.flat_map(|info| self.models_of(&info.id)).filter(in_provider).filter(is_it).collect();
        // Routers have models whose id equals another provider's full reference; they
        // match only if the other provider is not usable.
        if !exact.iter().any(|model| usable(&model.provider)) {
            let by_id = self.models().filter(in_provider);
            exact.extend(by_id.filter(|model| model.id.eq_ignore_ascii_case(reference)));
        }
        if !exact.is_empty() {
            return one_of(exact, reference, usable);
        }
        let needle = reference.to_lowercase();
        let partial: Vec<&Arc<Model>> = self
            .models()
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
        // An alias refers to the newest of its dated versions.
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

    /// Suggests a model for a reference without a match.
    fn hint(&self, reference: &str) -> String {
        let wanted = reference.rsplit('/').next().unwrap_or(reference).to_lowercase();
        let common = |id: &str| id.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        // Of several equally good ones: the newest model of the first vendor.
        let vendor = |model: &Model| self.providers.iter().position(|info| info.id == model.provider);
        let best = self
            .models()
            .max_by_key(|model| (common(&model.id.to_lowercase()), std::cmp::Reverse(vendor(model))));
        best.filter(|model| common(&model.id.to_lowercase()) >= 3)
            .map(|model| format!("; did you mean {}?", model.reference()))
            .unwrap_or_default()
    }
}

/// Of several providers' models with the same name, returns the one the user can use.
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

/// Whether an id has no date of a version.
fn is_alias(id: &str) -> bool {
    let dated =
        id.rsplit('-').next().is_some_and(|last| last.len() == 8 && last.bytes().all(|b| b.is_ascii_digit()));
    id.ends_with("-latest") || !dated
}

#[cfg(test)]
mod tests {
    use super::*;
    fn usable(provider: &str) -> bool {
        ["anthropic", "openrouter", "mine", "nvidia"].contains(&provider)
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
            Ok(Matched { model, thinking: None, assumed: false }) => model.reference(),
            Ok(Matched { model, thinking: Some(level), .. }) => format!("{} at {level}", model.reference()),
            Ok(Matched { model, .. }) => format!("{} (assumed)", model.reference()),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn references_name_models() {
        check("claude-opus-5-5", "anthropic/claude-opus-5-5");
        check("ANTHROPIC/Claude-Opus-5-5", "anthropic/claude-opus-5-5");
        check("m-1", "mine/m-1");
        check("deepseek/deepseek-v4-pro", "openrouter/deepseek/deepseek-v4-pro");
        check("moonshotai/kimi-k2.7-code", "openrouter/moonshotai/kimi-k2.7-code");
        check("mine/m-1:high", "mine/m-1 at high");
        check("a/b:free", "mine/a/b:free");
        check("a/b:free:low", "mine/a/b:free at low");
        check("m-1-2", "mine/m-1-20260101");
        check("mine/m", "mine/m-1");
    }

    #[test]
    fn an_unknown_id_of_a_known_provider_is_taken_at_its_word() {
        check("mine/m-9", "mine/m-9 (assumed)");
        check("mine/m-9:high", "mine/m-9 at high");
        check("anthropic/claude-next", "anthropic/claude-next (assumed)");
        check("ollama/qwen3:8b", "ollama/qwen3:8b (assumed)");
        check("nvidia/a/b", "nvidia/a/b (assumed)");
        check("together/a/b", "no model matches \"together/a/b\"; list all with pi --list-models");
        check("deepseek/new", "no model matches \"deepseek/new\"; list all with pi --list-models");
        let model = catalog().find("new", Some("mine"), &usable).unwrap().model;
        assert_eq!((model.base_url.as_str(), model.id.as_str()), ("http://localhost:1/v1", "new"));
    }

    #[test]
    fn suffix_that_is_no_level_is_named_where_ids_have_no_suffixes() {
        let levels = "low, medium, high, xhigh, max";
        for reference in ["claude-opus-5-5:hihg", "anthropic/claude-opus-5-5:hihg"] {
            check(
                reference,
                &format!(
                    "\"hihg\" is no thinking level of anthropic/claude-opus-5-5; use \
                     anthropic/claude-opus-5-5:LEVEL with one of {levels}, or leave it out"
                ),
            );
        }
        let error = catalog().find("claude-opus-5-5:x", Some("anthropic"), &usable).unwrap_err();
        assert!(matches!(error, MatchError::NoLevel { .. }), "{error}");
        // Ids of these providers have suffixes, or are known only to the server.
        check(
            "openrouter/deepseek/deepseek-v4-pro:nitro",
            "openrouter/deepseek/deepseek-v4-pro:nitro (assumed)",
        );
        check("mine/m-1:7b", "mine/m-1:7b (assumed)");
        check("ollama/qwen3:8b", "ollama/qwen3:8b (assumed)");
        check("anthropic/claude-next:x", "anthropic/claude-next:x (assumed)");
        let (scope, problems) = catalog().scope(&["claude-opus-5-5:hihg".to_owned()], &usable);
        let listed_later = ["nvidia/a/b".to_owned(), "ollama/qwen3".to_owned()];
        assert_eq!(catalog().scope(&listed_later, &usable).0.len(), 2, "their lists are not loaded yet");
        assert!(
            scope.is_empty() && problems[0].problem.starts_with("\"hihg\" is no thinking level"),
            "{problems:?}"
        );
    }

    #[test]
    fn what_matches_nothing_says_so() {
        check(
            "claude-opsu",
            "no model matches \"claude-opsu\"; did you mean anthropic/claude-opus-5-5?; list all with pi --list-models",
        );
    }
}
