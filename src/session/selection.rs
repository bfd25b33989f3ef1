//! Which model a session talks to, and how much it thinks: pure policy.

use std::sync::Arc;

use crate::ai::{Catalog, DEMO_PROVIDER, Model, ProviderInfo, ThinkingLevel};

use super::projection::Selected;

/// The model and thinking level in force.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) model: Arc<Model>,
    /// What the user asked for; the model may support less.
    pub(super) wanted_thinking: ThinkingLevel,
}

impl Selection {
    /// The level the model is asked to think at.
    pub(super) fn thinking(&self) -> ThinkingLevel {
        self.model.clamp_thinking(self.wanted_thinking)
    }
}

/// What the start of a session knows about the user's wishes.
pub struct Wishes {
    /// From the command line.
    pub model: Option<Arc<Model>>,
    pub thinking: Option<ThinkingLevel>,
    /// From the settings: provider and model id.
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking: ThinkingLevel,
}

/// Chooses for a session whose branch selected `selected`. Also says what the
/// user should know about the choice.
///
/// In order: the command line, the session's own model, the default of the
/// settings, the default model of the first provider there is a key for, any
/// model there is a key for, the demo model.
pub(super) fn initial(
    wishes: &Wishes,
    selected: &Selected,
    catalog: &Catalog,
    usable: &dyn Fn(&ProviderInfo) -> bool,
) -> (Selection, Option<String>) {
    let is_usable = |id: &str| catalog.provider(id).is_some_and(usable);
    let mut notice = None;
    let restored = selected.model.as_ref().and_then(|(provider, id)| {
        let model = catalog.get(provider, id).filter(|_| is_usable(provider));
        if model.is_none() {
            notice = Some(format!("the model of this session, {provider}/{id}, is not available"));
        }
        model.cloned()
    });
    let model = wishes
        .model
        .clone()
        .or(restored)
        .or_else(|| from_settings(wishes, catalog, &is_usable))
        .or_else(|| first_usable(catalog, usable))
        .or_else(|| catalog.get(DEMO_PROVIDER, "pi").cloned())
        .expect("the catalogue always has the demo model");
    let wanted_thinking = wishes.thinking.or(selected.thinking).unwrap_or(wishes.default_thinking);
    let notice = notice
        .filter(|_| wishes.model.is_none())
        .map(|problem| format!("{problem}; using {} instead", model.reference()));
    (Selection { model, wanted_thinking }, notice)
}

fn from_settings(wishes: &Wishes, catalog: &Catalog, is_usable: &dyn Fn(&str) -> bool) -> Option<Arc<Model>> {
    let provider = wishes.default_provider.as_deref();
    let found = match (provider, wishes.default_model.as_deref()) {
        (Some(provider), Some(id)) => catalog.get(provider, id).cloned(),
        (None, Some(id)) => catalog.find(id, None, is_usable).ok().map(|matched| matched.model),
        (Some(provider), None) => default_of(catalog, provider),
        (None, None) => None,
    };
    found.filter(|model| is_usable(&model.provider))
}

fn default_of(catalog: &Catalog, provider: &str) -> Option<Arc<Model>> {
    let default = catalog.provider(provider)?.default_model.as_deref();
    let model = default.and_then(|id| catalog.get(provider, id));
    model.or_else(|| catalog.models().iter().find(|model| model.provider == provider)).cloned()
}

fn first_usable(catalog: &Catalog, usable: &dyn Fn(&ProviderInfo) -> bool) -> Option<Arc<Model>> {
    let providers =
        catalog.providers().iter().filter(|provider| provider.id != DEMO_PROVIDER && usable(provider));
    // A key in the environment says more than a server that asks for none.
    let mut providers: Vec<&ProviderInfo> = providers.collect();
    providers.sort_by_key(|provider| provider.custom);
    providers.into_iter().find_map(|provider| default_of(catalog, &provider.id))
}

/// The model after (or before) `current` among those of usable providers.
pub(super) fn cycle(
    current: &Model,
    forward: bool,
    catalog: &Catalog,
    usable: &dyn Fn(&ProviderInfo) -> bool,
) -> Option<Arc<Model>> {
    let models: Vec<&Arc<Model>> = catalog
        .models()
        .iter()
        .filter(|model| catalog.provider(&model.provider).is_some_and(usable))
        .collect();
    let n = models.len();
    let at = models.iter().position(|model| model.provider == current.provider && model.id == current.id);
    let next = match (at, forward) {
        (None, _) => 0,
        (Some(at), true) => (at + 1) % n,
        (Some(at), false) => (at + n - 1) % n,
    };
    models.get(next).map(|model| Arc::clone(model)).filter(|model| **model != *current)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes() -> Wishes {
        Wishes {
            model: None,
            thinking: None,
            default_provider: None,
            default_model: None,
            default_thinking: ThinkingLevel::Medium,
        }
    }

    #[track_caller]
    fn check(wishes: &Wishes, session: Option<(&str, &str)>, keys: &[&str], expected: &str) {
        let catalog = Catalog::builtin();
        let selected = Selected { model: session.map(|(p, m)| (p.to_owned(), m.to_owned())), thinking: None };
        let usable =
            |provider: &ProviderInfo| keys.contains(&provider.id.as_str()) || provider.id == DEMO_PROVIDER;
        let (selection, notice) = initial(wishes, &selected, &catalog, &usable);
        let shown = match notice {
            Some(notice) => format!("{} ({notice})", selection.model.reference()),
            None => selection.model.reference(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_nearest_wish_that_can_be_granted_wins() {
        check(&wishes(), None, &[], "demo/pi");
        check(&wishes(), None, &["deepseek", "anthropic"], "anthropic/claude-opus-5-5");
        let settings = Wishes { default_provider: Some("deepseek".to_owned()), ..wishes() };
        check(&settings, None, &["deepseek", "anthropic"], "deepseek/deepseek-v4-pro");
        check(&settings, None, &["anthropic"], "anthropic/claude-opus-5-5");
        check(&settings, Some(("groq", "openai/gpt-oss-120b")), &["groq"], "groq/openai/gpt-oss-120b");
    }

    #[test]
    fn a_session_whose_model_is_gone_says_what_is_used_instead() {
        check(
            &wishes(),
            Some(("acme", "m-1")),
            &["anthropic"],
            "anthropic/claude-opus-5-5 (the model of this session, acme/m-1, is not available; using \
             anthropic/claude-opus-5-5 instead)",
        );
    }
}
