//! Selects a session's model and thinking level. Pure policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ai::{Catalog, DEMO_PROVIDER, Model, ProviderInfo, ScopedModel, ThinkingLevel, UnmatchedPattern};
use crate::config::{EffectiveSettings, Layer};

use super::projection::Selected;
use super::services::ModelOptions;

/// The current model and thinking level.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) model: Arc<Model>,
    /// The level the user requested; the model may support less.
    pub(super) wanted_thinking: ThinkingLevel,
}

impl Selection {
    /// The level used in requests.
    pub(super) fn thinking(&self) -> ThinkingLevel {
        self.model.clamp_thinking(self.wanted_thinking)
    }
}

/// The user's model preferences, as they are now.
#[derive(Debug, Clone)]
pub(super) struct ModelPreferences {
    /// From the command line.
    pub(super) model: Option<Arc<Model>>,
    pub(super) thinking: Option<ThinkingLevel>,
    /// From the settings: provider and model id.
    pub(super) default_provider: Option<String>,
    pub(super) default_model: Option<String>,
    pub(super) default_thinking: ThinkingLevel,
    /// Whether the user chose that default.
    pub(super) has_default_thinking: bool,
    /// The models to cycle through; an empty list means all models with a key.
    pub(super) scope: Vec<ScopedModel>,
    /// The thinking level to use after a switch to a model, by `provider/id`.
    pub(super) model_thinking: BTreeMap<String, ThinkingLevel>,
}

impl ModelPreferences {
    pub(super) fn of(options: &ModelOptions, settings: &EffectiveSettings, scope: &[ScopedModel]) -> Self {
        let has_default_thinking = settings.origin("defaultThinkingLevel") != Some(Layer::BuiltIn);
        let settings = &settings.values;
        Self {
            model: options.model.clone(),
            thinking: options.thinking,
            default_provider: settings.default_provider.clone(),
            default_model: settings.default_model.clone(),
            default_thinking: settings.default_thinking_level,
            has_default_thinking,
            scope: scope.to_vec(),
            model_thinking: settings.model_thinking_levels.clone(),
        }
    }

    fn thinking_of(&self, model: &Model) -> Option<ThinkingLevel> {
        let scoped = self.scope.iter().find(|scoped| scoped.model.reference() == model.reference());
        let scoped = scoped.and_then(|scoped| scoped.thinking);
        scoped.or_else(|| self.model_thinking.get(&model.reference()).copied())
    }
}

/// Chooses for a session whose branch selected `selected`. Also returns a notice
/// about the choice.
///
/// The order: the command line, the session's own model, the default of the settings if
/// the scope has it, the first of the scope, the default of the settings, the default model of the first provider with a
/// key, the demo model. The demo model is chosen only if no provider is set up,
/// unless the command line names it.
pub(super) fn initial(
    preferences: &ModelPreferences,
    selected: &Selected,
    catalog: &Catalog,
    usable: &dyn Fn(&ProviderInfo) -> bool,
) -> (Selection, Option<String>) {
    let is_usable = |id: &str| id != DEMO_PROVIDER && catalog.provider(id).is_some_and(usable);
    let own = selected.model.as_ref().filter(|(provider, _)| provider != DEMO_PROVIDER);
    let restored = own.and_then(|(provider, id)| {
        let is_gone = catalog.get(provider, id).is_none() && catalog.lists_all_models_of(provider);
        let model = catalog.get_or_assume(provider, id, &is_usable).filter(|_| !is_gone);
        model.filter(|_| is_usable(provider))
    });
    let notice = own.and_then(|(provider, id)| match &restored {
        None => Some(Unrestored::Gone { wanted: format!("{provider}/{id}") }),
        Some(model) => catalog.get(provider, id).is_none().then(|| Unrestored::Unlisted(Arc::clone(model))),
    });
    let model = preferences
        .model
        .clone()
        .or(restored)
        .or_else(|| from_scope(preferences, catalog, usable))
        .or_else(|| from_settings(preferences, catalog, &is_usable))
        .or_else(|| first_usable(catalog, usable))
        .or_else(|| catalog.get(DEMO_PROVIDER, "pi").cloned())
        .expect("the catalogue always has the demo model");
    let wanted_thinking = preferences
        .thinking
        .or(selected.thinking)
        .or_else(|| preferences.thinking_of(&model))
        .unwrap_or(preferences.default_thinking);
    let notice = notice.filter(|_| preferences.model.is_none()).map(|notice| match notice {
        Unrestored::Gone { wanted } => {
            format!("Could not restore model {wanted}. Using {}.", model.reference())
        }
        Unrestored::Unlisted(model) => assumed(&model),
    });
    (Selection { model, wanted_thinking }, notice)
}

/// Why the model of a session is not simply there again.
enum Unrestored {
    /// `provider/id`; another one takes its place.
    Gone { wanted: String },
    /// No list has it, but its provider may.
    Unlisted(Arc<Model>),
}

fn from_settings(
    preferences: &ModelPreferences,
    catalog: &Catalog,
    is_usable: &dyn Fn(&str) -> bool,
) -> Option<Arc<Model>> {
    let provider = preferences.default_provider.as_deref();
    let found = match (provider, preferences.default_model.as_deref()) {
        (Some(provider), Some(id)) => catalog.get_or_assume(provider, id, is_usable),
        (None, Some(id)) => catalog.find(id, None, is_usable).ok().map(|matched| matched.model),
        (Some(provider), None) => default_of(catalog, provider),
        (None, None) => None,
    };
    found.filter(|model| is_usable(&model.provider))
}

fn default_of(catalog: &Catalog, provider: &str) -> Option<Arc<Model>> {
    let default = catalog.provider(provider)?.default_model.as_deref();
    let model = default.and_then(|id| catalog.get(provider, id));
    // The first of a vendor's own list, which may have hundreds, is nobody's choice.
    let has_order = |info: &ProviderInfo| info.custom || info.template.is_none();
    let first =
        || catalog.models_of(provider).first().filter(|_| catalog.provider(provider).is_some_and(has_order));
    model.or_else(first).cloned()
}

fn first_usable(catalog: &Catalog, usable: &dyn Fn(&ProviderInfo) -> bool) -> Option<Arc<Model>> {
    let providers =
        catalog.providers().iter().filter(|provider| provider.id != DEMO_PROVIDER && usable(provider));
    // A key in the environment is a stronger signal than a server that needs none.
    let mut providers: Vec<&ProviderInfo> = providers.collect();
    providers.sort_by_key(|provider| provider.custom);
    providers.into_iter().find_map(|provider| default_of(catalog, &provider.id))
}

/// The default of the settings if it is in the scope, otherwise the first of the scope.
fn from_scope(
    preferences: &ModelPreferences,
    catalog: &Catalog,
    usable: &dyn Fn(&ProviderInfo) -> bool,
) -> Option<Arc<Model>> {
    let is_usable = |id: &str| catalog.provider(id).is_some_and(usable);
    let scope = preferences.scope.iter().map(|scoped| &scoped.model).filter(|model| !is_demo(model));
    let scope: Vec<&Arc<Model>> = scope.filter(|model| is_usable(&model.provider)).collect();
    let default = from_settings(preferences, catalog, &is_usable);
    let default =
        default.filter(|default| scope.iter().any(|model| model.reference() == default.reference()));
    default.or_else(|| scope.first().map(|first| Arc::clone(first)))
}

/// The notice about a model that is not in the catalogue.
pub fn assumed(model: &Model) -> String {
    format!(
        "{} is not in the model list; assuming the capabilities of its provider's default model",
        model.reference()
    )
}

/// The notice about a pattern of the scope that matches no model; `origin` is where the patterns come
/// from, `None` for those of this session.
pub fn unmatched(pattern: &UnmatchedPattern, origin: Option<Layer>) -> String {
    let place = match origin {
        None => "",
        Some(Layer::CommandLine) => "; change --models",
        Some(Layer::Project) => "; change enabledModels in .pi/settings.json of the project",
        Some(Layer::BuiltIn | Layer::User | Layer::Session) => "; change enabledModels in your settings.json",
    };
    format!("models to cycle through: {}{place}", pattern.problem)
}

/// A switch to `model`: with the requested thinking level, otherwise the preferred one of this model, otherwise the
/// user's default, otherwise the current one, unless that is the preferred one of the model that is left.
pub(super) fn to_model(
    current: &Selection,
    model: Arc<Model>,
    thinking: Option<ThinkingLevel>,
    preferences: &ModelPreferences,
) -> Selection {
    let wanted = thinking.or_else(|| preferences.thinking_of(&model));
    let is_of_current = preferences.thinking_of(&current.model) == Some(current.wanted_thinking);
    let kept = if preferences.has_default_thinking || is_of_current {
        preferences.default_thinking
    } else {
        current.wanted_thinking
    };
    Selection { model, wanted_thinking: wanted.unwrap_or(kept) }
}

fn is_demo(model: &Model) -> bool {
    model.provider == DEMO_PROVIDER
}

/// The model after (or before) the current one in the scope, or
/// without a scope among all usable providers. Skips the demo model.
pub(super) fn cycle(
    current: &Selection,
    forward: bool,
    preferences: &ModelPreferences,
    catalog: &Catalog,
    usable: &dyn Fn(&ProviderInfo) -> bool,
) -> Option<Selection> {
    let models: Vec<&Arc<Model>> = if preferences.scope.is_empty() {
        let usable = catalog.providers().iter().filter(|info| usable(info));
        usable.flat_map(|info| catalog.models_of(&info.id)).collect()
    } else {
        let is_usable = |model: &&Arc<Model>| catalog.provider(&model.provider).is_some_and(usable);
        preferences.scope.iter().map(|scoped| &scoped.model).filter(is_usable).collect()
    };
    let models: Vec<&Arc<Model>> = models.into_iter().filter(|model| !is_demo(model)).collect();
    let n = models.len();
    let reference = current.model.reference();
    let next = match (models.iter().position(|model| model.reference() == reference), forward) {
        (None, _) => 0,
        (Some(at), true) => (at + 1) % n,
        (Some(at), false) => (at + n - 1) % n,
    };
    let next = models.get(next).filter(|model| model.reference() != reference)?;
    Some(to_model(current, Arc::clone(next), None, preferences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::LOCAL_SERVERS;

    fn preferences() -> ModelPreferences {
        ModelPreferences {
            model: None,
            thinking: None,
            default_provider: None,
            default_model: None,
            default_thinking: ThinkingLevel::Medium,
            has_default_thinking: false,
            scope: Vec::new(),
            model_thinking: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn check(preferences: &ModelPreferences, session: Option<(&str, &str)>, keys: &[&str], expected: &str) {
        let catalog = Catalog::builtin();
        let selected = Selected { model: session.map(|(p, m)| (p.to_owned(), m.to_owned())), thinking: None };
        let usable =
            |provider: &ProviderInfo| keys.contains(&provider.id.as_str()) || provider.id == DEMO_PROVIDER;
        let (selection, notice) = initial(preferences, &selected, &catalog, &usable);
        let shown = match notice {
            Some(notice) => format!("{} ({notice})", selection.model.reference()),
            None => selection.model.reference(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_nearest_wish_that_can_be_granted_wins() {
        check(&preferences(), None, &[], "demo/pi");
        check(&preferences(), None, &["deepseek", "anthropic"], "anthropic/claude-opus-5-5");
        let settings = ModelPreferences { default_provider: Some("deepseek".to_owned()), ..preferences() };
        check(&settings, None, &["deepseek", "anthropic"], "deepseek/deepseek-v4-pro");
        check(&settings, None, &["anthropic"], "anthropic/claude-opus-5-5");
        check(&settings, Some(("groq", "openai/gpt-oss-120b")), &["groq"], "groq/openai/gpt-oss-120b");
    }

    #[test]
    fn the_scope_is_cycled_with_its_levels() {
        let catalog = Catalog::builtin();
        let usable = |provider: &ProviderInfo| ["anthropic", "deepseek"].contains(&provider.id.as_str());
        let patterns = ["deepseek/deepseek-v4-pro:high", "groq/*", "anthropic/claude-opus-5-5"];
        let (scope, _) = catalog.scope(&patterns.map(str::to_owned), &|_| true);
        let level = ("anthropic/claude-opus-5-5".to_owned(), ThinkingLevel::Low);
        let preferences = ModelPreferences { scope, model_thinking: [level].into(), ..preferences() };
        let (mut selection, _) = initial(&preferences, &Selected::default(), &catalog, &usable);
        let mut seen = vec![(selection.model.reference(), selection.wanted_thinking)];
        for forward in [true, true, false] {
            selection = cycle(&selection, forward, &preferences, &catalog, &usable).unwrap();
            seen.push((selection.model.reference(), selection.wanted_thinking));
        }
        let deepseek = ("deepseek/deepseek-v4-pro".to_owned(), ThinkingLevel::High);
        let opus = ("anthropic/claude-opus-5-5".to_owned(), ThinkingLevel::Low);
        assert_eq!(seen, [deepseek.clone(), opus.clone(), deepseek, opus]);
    }

    #[test]
    fn the_default_of_the_settings_comes_before_others_of_the_scope() {
        let patterns = ["anthropic/claude-sonnet-5", "deepseek/*"].map(str::to_owned);
        let (scope, _) = Catalog::builtin().scope(&patterns, &|_| true);
        let with = |default: &str| {
            let default_model = Some(default.to_owned());
            let default_provider = Some("deepseek".to_owned());
            ModelPreferences { default_provider, default_model, scope: scope.clone(), ..preferences() }
        };
        let keys = ["anthropic", "deepseek"];
        check(&with("deepseek-v4-pro"), None, &keys, "deepseek/deepseek-v4-pro");
        check(&with("deepseek-v4-pro"), None, &["anthropic"], "anthropic/claude-sonnet-5");
        check(&with("no-such-model"), None, &keys, "anthropic/claude-sonnet-5");
    }

    #[test]
    fn a_level_of_one_model_stays_with_it() {
        let catalog = Catalog::builtin();
        let [opus, sonnet] = ["claude-opus-5-5", "claude-sonnet-5"]
            .map(|id| Arc::clone(catalog.get("anthropic", id).unwrap()));
        let of_opus = (opus.reference(), ThinkingLevel::High);
        let preferred = ModelPreferences { model_thinking: [of_opus].into(), ..preferences() };
        let chosen = ModelPreferences {
            default_thinking: ThinkingLevel::Low,
            has_default_thinking: true,
            ..preferences()
        };
        let check = |preferences: &ModelPreferences, wanted_thinking, expected| {
            let current = Selection { model: Arc::clone(&opus), wanted_thinking };
            let next = to_model(&current, Arc::clone(&sonnet), None, preferences);
            assert_eq!(next.wanted_thinking, expected, "{wanted_thinking:?}, {preferences:?}");
        };
        check(&preferences(), ThinkingLevel::High, ThinkingLevel::High);
        check(&preferred, ThinkingLevel::High, ThinkingLevel::Medium);
        check(&preferred, ThinkingLevel::Off, ThinkingLevel::Off);
        check(&chosen, ThinkingLevel::High, ThinkingLevel::Low);
    }

    #[test]
    fn the_demo_model_is_only_chosen_by_name_where_a_provider_is_set_up() {
        let catalog = Catalog::builtin();
        let demo = |id: &str| id == DEMO_PROVIDER;
        let (scope, _) =
            catalog.scope(&["demo/*".to_owned(), "anthropic/claude-opus-5-5".to_owned()], &|_| true);
        assert!(demo(&scope[0].model.provider));
        let opus = "anthropic/claude-opus-5-5";
        check(&ModelPreferences { scope: scope.clone(), ..preferences() }, None, &["anthropic"], opus);
        check(
            &ModelPreferences { default_provider: Some("demo".to_owned()), ..preferences() },
            None,
            &["anthropic"],
            opus,
        );
        check(&preferences(), Some(("demo", "pi")), &["anthropic"], opus);
        check(&preferences(), Some(("demo", "pi")), &[], "demo/pi");
        let named = ModelPreferences { model: catalog.get("demo", "pi").cloned(), ..preferences() };
        check(&named, None, &["anthropic"], "demo/pi");
        for preferences in [preferences(), ModelPreferences { scope, ..preferences() }] {
            let usable = |info: &ProviderInfo| ["anthropic", "demo"].contains(&info.id.as_str());
            let first = Selected::default();
            let (mut selection, _) = initial(&preferences, &first, &catalog, &usable);
            let n_models = catalog.models_of("anthropic").len();
            for forward in [true, false] {
                for _ in 0..n_models {
                    let Some(next) = cycle(&selection, forward, &preferences, &catalog, &usable) else {
                        break;
                    };
                    assert!(!demo(&next.model.provider));
                    selection = next;
                }
            }
        }
    }

    #[test]
    fn a_session_whose_model_is_gone_says_what_is_used_instead() {
        check(
            &preferences(),
            Some(("acme", "m-1")),
            &["anthropic"],
            "anthropic/claude-opus-5-5 (Could not restore model acme/m-1. Using \
             anthropic/claude-opus-5-5.)",
        );
    }

    #[test]
    fn model_that_a_complete_list_lacks_is_replaced() {
        let server = &LOCAL_SERVERS[0];
        let check = |models: &[&str], expected: &str| {
            let mut catalog = Catalog::builtin();
            let model = |id: &&str| Model {
                id: (*id).to_owned(),
                provider: server.id.to_owned(),
                ..Model::default()
            };
            catalog.set_local(server, models.iter().map(model).collect());
            let selected = Selected { model: Some((server.id.to_owned(), "old".to_owned())), thinking: None };
            let usable = |provider: &ProviderInfo| provider.id == server.id;
            let (selection, notice) = initial(&preferences(), &selected, &catalog, &usable);
            let found = format!("{} {}", selection.model.reference(), notice.unwrap_or_default());
            assert_eq!(found.replace(server.id, "P"), expected);
        };
        check(&["old", "new"], "P/old ");
        check(&["new"], "P/new Could not restore model P/old. Using P/new.");
        // The server was not asked yet.
        check(
            &[],
            "P/old P/old is not in the model list; assuming the capabilities of its provider's default model",
        );
    }
}
