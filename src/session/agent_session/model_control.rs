//! The session's model and thinking level.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ai::{self, Credential, Model, ScopedModel, StreamOptions, ThinkingLevel, UnmatchedPattern};
use crate::config::{EffectiveSettings, LiveSettings, SettingChange};

use super::super::event::{NoticeLevel, SessionEvent};
use super::super::from_settings::setting_change;
use super::super::handle::SessionError;
use super::super::open;
use super::super::outbox::Outbox;
use super::super::projection::Selected;
use super::super::refusal::Refusal;
use super::super::selection::{self, ModelPreferences, Selection};
use super::super::services::Services;
use super::super::state::SessionState;
use super::super::store::{EntryBody, ModelChange, ThinkingLevelChange};

/// The current selection and the preferences behind it. Finding a selection changes
/// nothing; [`Self::select`] applies it.
pub(super) struct ModelControl {
    selection: Selection,
    /// The models to cycle through; an empty list means all models with a key.
    scope: Vec<ScopedModel>,
    /// The patterns of the scope that match no model.
    unmatched: Vec<UnmatchedPattern>,
    /// Those that the user was told of, also in other sessions of this process.
    told: Vec<UnmatchedPattern>,
    /// The patterns that were chosen for this session, in place of those of the setting.
    own_patterns: Option<Vec<String>>,
    /// Whether the selection has changed since the last run began.
    changed: bool,
    /// Windows that services named in errors, by `provider/id`.
    windows: HashMap<String, u64>,
    /// Whether the user was warned that a subscription pays.
    warned_of_extra_usage: bool,
    settings: LiveSettings,
    services: Arc<Services>,
    outbox: Outbox,
}

/// The provider whose subscriptions are for its own programs.
const ANTHROPIC: &str = "anthropic";
const EXTRA_USAGE: &str = "requests are paid by an Anthropic subscription, which may bill those of other programs as extra usage; use an API key, or switch this warning off with the setting warnings.anthropicExtraUsage";

/// Chooses for a session whose branch selected `selected`; also returns a notice about
/// the choice for the user.
pub(super) fn initial(
    services: &Services,
    settings: &EffectiveSettings,
    selected: &Selected,
) -> (Selection, Option<String>) {
    let (scope, _) = scope(services, &settings.values.enabled_models);
    let preferences = ModelPreferences::of(&services.model, settings, &scope);
    selection::initial(&preferences, selected, &services.catalog.get(), &|provider| {
        services.is_usable(provider)
    })
}

/// The models that `patterns` mean, and the patterns that match none.
fn scope(services: &Services, patterns: &[String]) -> (Vec<ScopedModel>, Vec<UnmatchedPattern>) {
    let catalog = services.catalog.get();
    let usable = |id: &str| catalog.provider(id).is_some_and(|info| services.is_usable(info));
    catalog.scope(patterns, &usable)
}

impl ModelControl {
    pub(super) fn new(
        services: Arc<Services>,
        settings: LiveSettings,
        selection: Selection,
        outbox: Outbox,
    ) -> Self {
        let (scope, unmatched) = scope(&services, &settings.get().values.enabled_models);
        Self {
            selection,
            scope,
            told: unmatched.clone(),
            unmatched,
            own_patterns: None,
            changed: false,
            windows: HashMap::new(),
            warned_of_extra_usage: false,
            settings,
            services,
            outbox,
        }
    }

    /// As the function of that name, with the scope of this session.
    pub(super) fn initial(&self, selected: &Selected) -> (Selection, Option<String>) {
        selection::initial(&self.preferences(), selected, &self.services.catalog.get(), &|provider| {
            self.services.is_usable(provider)
        })
    }

    fn preferences(&self) -> ModelPreferences {
        ModelPreferences::of(&self.services.model, &self.settings.get(), &self.scope)
    }

    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    pub(super) fn model(&self) -> &Arc<Model> {
        &self.selection.model
    }

    // Looking for a selection.

    /// The model that `reference` selects: an id, `provider/id` or part of one.
    pub(super) fn find(&self, reference: &str) -> Result<Selection, SessionError> {
        let catalog = self.services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|info| self.services.is_usable(info));
        let matched = catalog.find(reference, None, &usable).map_err(Refusal::from)?;
        if let Some(level) =
            matched.thinking.filter(|level| !matched.assumed && !matched.model.supports(*level))
        {
            return Err(unsupported(&matched.model, level));
        }
        if matched.assumed {
            self.outbox.notice(NoticeLevel::Warning, selection::assumed(&matched.model));
        }
        Ok(selection::to_model(&self.selection, matched.model, matched.thinking, &self.preferences()))
    }

    pub(super) fn with_thinking(&self, level: ThinkingLevel) -> Result<Selection, SessionError> {
        let model = Arc::clone(self.model());
        if !model.supports(level) {
            return Err(unsupported(&model, level));
        }
        Ok(Selection { model, wanted_thinking: level })
    }

    /// The next model of the scope, or the previous one.
    pub(super) fn cycled(&self, forward: bool) -> Result<Selection, SessionError> {
        let catalog = self.services.catalog.get();
        let preferences = self.preferences();
        let next = selection::cycle(&self.selection, forward, &preferences, &catalog, &|provider| {
            self.services.is_usable(provider)
        });
        Ok(next.ok_or(Refusal::NoOtherModel)?)
    }

    pub(super) fn with_next_thinking(&self) -> Result<Selection, SessionError> {
        let model = Arc::clone(self.model());
        let levels = model.thinking_levels();
        if levels.len() < 2 {
            return Err(Refusal::NoThinkingLevels { model: model.id.clone() }.into());
        }
        let current = self.selection.thinking();
        let at = levels.iter().position(|level| *level == current).unwrap_or_default();
        let wanted_thinking = levels[(at + 1) % levels.len()];
        Ok(Selection { model, wanted_thinking })
    }

    /// The current model as the catalogue defines it now, if that differs.
    pub(super) fn updated(&self) -> Option<Selection> {
        let model = self.model();
        let known = self.services.catalog.get().get(&model.provider, &model.id).cloned();
        let known = known.map(|known| self.with_window(known)).filter(|known| known != model)?;
        Some(Selection { model: known, ..self.selection.clone() })
    }

    // Changing it.

    /// Applies a selection; a running loop uses it from its next request on.
    ///
    /// # Errors
    /// If there is no key for the model, so that the user learns it before the next prompt.
    pub(super) async fn select(&mut self, selection: Selection) -> Result<(), SessionError> {
        self.credential_of(&selection.model).await?;
        self.replace(selection);
        self.changed = true;
        Ok(())
    }

    /// Like [`Self::select`], for a session that is being opened.
    pub(super) fn replace(&mut self, selection: Selection) {
        let model = self.with_window(Arc::clone(&selection.model));
        self.selection = Selection { model, ..selection };
    }

    /// Records that the window of the current model has `window` tokens at most. `false` if that is
    /// nothing new.
    pub(super) fn limit_window(&mut self, window: u64) -> bool {
        let model = Arc::clone(self.model());
        if model.context_window != 0 && model.context_window <= window {
            return false;
        }
        self.windows.insert(model.reference(), window);
        self.replace(self.selection.clone());
        self.changed = true;
        true
    }

    /// The model with the window that its service named, if that is smaller.
    fn with_window(&self, model: Arc<Model>) -> Arc<Model> {
        match self.windows.get(&model.reference()) {
            Some(window) if model.context_window == 0 || *window < model.context_window => {
                Arc::new(Model { context_window: *window, ..Model::clone(&model) })
            }
            _ => model,
        }
    }

    /// Records that a run starts with the current selection. Warns once if Anthropic may bill it
    /// although a subscription pays.
    pub(super) fn on_run_start(&mut self, credential: &Credential) {
        self.changed = false;
        let may_cost_extra = self.model().provider == ANTHROPIC && credential.is_account();
        if may_cost_extra && !self.warned_of_extra_usage && self.settings.get().values.warn_extra_usage {
            self.warned_of_extra_usage = true;
            let (level, text) = (NoticeLevel::Warning, EXTRA_USAGE.to_owned());
            self.outbox.send(SessionEvent::Notice { level, text });
        }
    }

    /// The changes for the next request of a run, if the selection changed since it began.
    pub(super) fn changed(&self, session_id: &str) -> Option<(Arc<Model>, StreamOptions)> {
        self.changed.then(|| self.selected(session_id))
    }

    /// The current model, and its options.
    pub(super) fn selected(&self, session_id: &str) -> (Arc<Model>, StreamOptions) {
        let (model, thinking) = (Arc::clone(self.model()), self.selection.thinking());
        let options = self.services.options(&self.settings.get().values, &model, thinking, session_id);
        (model, options)
    }

    /// Whether the model allows longer answers than the settings.
    pub(super) fn allows_longer_answers(&self) -> bool {
        let (model, options) = self.selected("");
        options.max_tokens.is_some_and(|limit| limit < model.max_tokens)
    }

    /// Chooses the models to cycle through for this session.
    pub(super) fn set_scope(&mut self, patterns: &[String]) {
        self.own_patterns = Some(patterns.to_vec());
        self.find_scope();
    }

    /// Finds the models of the scope after a change of the setting or of the catalogue.
    pub(super) fn find_scope(&mut self) {
        let settings = self.settings.get();
        let (patterns, origin) = match &self.own_patterns {
            Some(patterns) => (patterns, None),
            None => (&settings.values.enabled_models, settings.origin("enabledModels")),
        };
        let (models, unmatched) = scope(&self.services, patterns);
        for pattern in &unmatched {
            if !self.told.contains(pattern) {
                self.told.push(pattern.clone());
                self.outbox.notice(NoticeLevel::Warning, selection::unmatched(pattern, origin));
            }
        }
        (self.scope, self.unmatched) = (models, unmatched);
    }

    /// The key for the current model.
    pub(super) async fn credential(&self) -> Result<Credential, SessionError> {
        self.credential_of(self.model()).await
    }

    async fn credential_of(&self, model: &Arc<Model>) -> Result<Credential, SessionError> {
        Ok(open::credential(&self.services, model).await.map_err(Refusal::from)?)
    }

    /// The entries missing from a branch that selected `recorded`.
    pub(super) fn unrecorded(&self, recorded: &Selected) -> Vec<EntryBody> {
        let model = self.model();
        let mut bodies = Vec::new();
        if recorded.model != Some((model.provider.clone(), model.id.clone())) {
            let (provider, model_id) = (model.provider.clone(), model.id.clone());
            let change = ModelChange { provider, model_id, extra: ai::Extra::new() };
            bodies.push(EntryBody::ModelChange(change));
        }
        // The wanted level is kept if a model does not support it, for the next model.
        let unchanged = recorded
            .thinking
            .is_some_and(|recorded| model.clamp_thinking(recorded) == self.selection.thinking());
        if !unchanged {
            let thinking_level = self.selection.thinking().name().to_owned();
            let change = ThinkingLevelChange { thinking_level, extra: ai::Extra::new() };
            bodies.push(EntryBody::ThinkingLevelChange(change));
        }
        bodies
    }

    /// The changes that make the current model the default.
    pub(super) fn as_default(&self) -> Result<Vec<SettingChange>, SessionError> {
        let model = self.model();
        let changes = [("defaultProvider", &model.provider), ("defaultModel", &model.id)];
        let changes = changes.map(|(key, value)| setting_change(key, value.as_str().into()));
        Ok(changes.into_iter().collect::<Result<_, _>>().map_err(Refusal::from)?)
    }

    /// Sets the snapshot's fields about the model.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.model = Arc::clone(self.model());
        state.thinking = self.selection.thinking();
        state.quota = self.services.quotas.get(&self.model().provider);
        // The demo model is always available and does not count.
        state.several_providers = self.services.has_several_providers();
        state.instead_of_demo = self.services.instead_of_demo(self.model());
        if *state.scope != *self.scope {
            state.scope = self.scope.as_slice().into();
        }
        if *state.unmatched_scope != *self.unmatched {
            state.unmatched_scope = self.unmatched.as_slice().into();
        }
    }
}

fn unsupported(model: &Model, level: ThinkingLevel) -> SessionError {
    Refusal::ThinkingLevel { model: model.id.clone(), level, supported: model.thinking_levels() }.into()
}
