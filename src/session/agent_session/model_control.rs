//! The session's model and thinking level.

use std::sync::Arc;

use crate::ai::{self, Credential, Model, StreamOptions, ThinkingLevel};
use crate::config::SettingsFile;

use super::super::event::NoticeLevel;
use super::super::handle::SessionError;
use super::super::open;
use super::super::outbox::Outbox;
use super::super::projection::Selected;
use super::super::selection::{self, ModelPreferences, Selection};
use super::super::services::Services;
use super::super::state::SessionState;
use super::super::store::{EntryBody, ModelChange, ThinkingLevelChange};

/// The current selection and the preferences behind it. Finding a selection changes
/// nothing; [`Self::select`] applies it.
pub(super) struct ModelControl {
    selection: Selection,
    /// The preferences at program start, with the scope of this session.
    preferences: ModelPreferences,
    /// Whether the selection has changed since the last run began.
    changed: bool,
    services: Arc<Services>,
    outbox: Outbox,
}

/// Chooses for a session whose branch selected `selected`; also returns a notice about
/// the choice for the user.
pub(super) fn initial(services: &Services, selected: &Selected) -> (Selection, Option<String>) {
    selection::initial(&services.preferences, selected, &services.catalog.get(), &|provider| {
        services.is_usable(provider)
    })
}

impl ModelControl {
    pub(super) fn new(services: Arc<Services>, selection: Selection, outbox: Outbox) -> Self {
        let preferences = services.preferences.clone();
        Self { selection, preferences, changed: false, services, outbox }
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
        let matched = catalog
            .find(reference, None, &usable)
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        if matched.assumed {
            self.outbox.notice(NoticeLevel::Warning, selection::assumed(&matched.model));
        }
        Ok(selection::to_model(&self.selection, matched.model, matched.thinking, &self.preferences))
    }

    pub(super) fn with_thinking(&self, level: ThinkingLevel) -> Result<Selection, SessionError> {
        let model = Arc::clone(self.model());
        if !model.supports(level) {
            let levels: Vec<&str> = model.thinking_levels().into_iter().map(ThinkingLevel::name).collect();
            let levels = levels.join(", ");
            return Err(SessionError::Refused(format!(
                "{} does not support thinking level {level}; choose one of {levels}",
                model.id
            )));
        }
        Ok(Selection { model, wanted_thinking: level })
    }

    /// The next model of the scope, or the previous one.
    pub(super) fn cycled(&self, forward: bool) -> Result<Selection, SessionError> {
        let catalog = self.services.catalog.get();
        let next = selection::cycle(&self.selection, forward, &self.preferences, &catalog, &|provider| {
            self.services.is_usable(provider)
        });
        next.ok_or_else(|| {
            SessionError::Refused(
                "no other model is available; set up another provider with /login".to_owned(),
            )
        })
    }

    pub(super) fn with_next_thinking(&self) -> Result<Selection, SessionError> {
        let model = Arc::clone(self.model());
        let levels = model.thinking_levels();
        if levels.len() < 2 {
            return Err(SessionError::Refused(format!("{} has no thinking levels", model.id)));
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
        let known = known.filter(|known| known != model)?;
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
        self.selection = selection;
    }

    /// Records that a run starts with the current selection.
    pub(super) fn on_run_start(&mut self) {
        self.changed = false;
    }

    /// The changes for the next request of a run, if the selection changed since it began.
    pub(super) fn changed(&self, session_id: &str) -> Option<(Arc<Model>, StreamOptions)> {
        let (model, thinking) = (Arc::clone(self.model()), self.selection.thinking());
        let options = self.changed.then(|| self.services.options(&model, thinking, session_id))?;
        Some((model, options))
    }

    pub(super) fn set_scope(&mut self, patterns: &[String]) {
        let catalog = self.services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|info| self.services.is_usable(info));
        let (models, problems) = catalog.scope(patterns, &usable);
        for problem in problems {
            self.outbox.notice(NoticeLevel::Warning, problem);
        }
        self.preferences.scope = models;
    }

    /// The key for the current model.
    pub(super) async fn credential(&self) -> Result<Credential, SessionError> {
        self.credential_of(self.model()).await
    }

    async fn credential_of(&self, model: &Arc<Model>) -> Result<Credential, SessionError> {
        let found = open::credential(&self.services, model).await;
        found.map_err(|error| SessionError::Refused(error.to_string()))
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

    pub(super) async fn save_model(&self) {
        let model = self.model();
        self.save_settings(vec![
            ("defaultProvider", model.provider.as_str().into()),
            ("defaultModel", model.id.as_str().into()),
        ])
        .await;
    }

    pub(super) async fn save_thinking(&self, level: ThinkingLevel) {
        self.save_settings(vec![("defaultThinkingLevel", level.name().into())]).await;
    }

    pub(super) async fn save_scope(&self, patterns: Vec<String>) {
        self.save_settings(vec![("enabledModels", patterns.into())]).await;
    }

    async fn save_settings(&self, changes: Vec<(&'static str, serde_json::Value)>) {
        let path = self.services.dirs.settings_file();
        let saved = tokio::task::spawn_blocking(move || SettingsFile::load(path).save(&changes)).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.outbox.notice(NoticeLevel::Error, error.to_string()),
            Err(error) => self.outbox.notice(NoticeLevel::Error, error.to_string()),
        }
    }

    /// Sets the snapshot's fields about the model.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.model = Arc::clone(self.model());
        state.thinking = self.selection.thinking();
        // The demo model is always available and does not count.
        state.several_providers = self.services.has_several_providers();
        state.instead_of_demo = self.services.instead_of_demo(self.model());
        if *state.scope != *self.preferences.scope {
            state.scope = self.preferences.scope.as_slice().into();
        }
    }
}
