//! Which model the session talks to, and how much it thinks: commands about that.

use std::sync::Arc;

use crate::ai::{self, ThinkingLevel};
use crate::config::SettingsFile;

use super::super::command::{Reply, Scope};
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::projection;
use super::super::run::LiveSelection;
use super::super::selection::{self, Selection};
use super::super::store::{EntryBody, ModelChange, ThinkingLevelChange};
use super::{Activity, AgentSession};

impl AgentSession {
    pub(super) async fn set_model(&mut self, reference: &str, scope: Scope) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let catalog = services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|provider| services.is_usable(provider));
        let matched = catalog
            .find(reference, None, &usable)
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        if matched.assumed {
            self.notice(NoticeLevel::Warning, selection::assumed(&matched.model));
        }
        let selection =
            selection::to_model(&self.selection, matched.model, matched.thinking, &self.preferences);
        self.select(selection).await?;
        if scope == Scope::Default {
            let model = Arc::clone(&self.selection.model);
            self.save_settings(vec![
                ("defaultProvider", model.provider.as_str().into()),
                ("defaultModel", model.id.as_str().into()),
            ])
            .await;
        }
        Ok(Reply::Done)
    }

    pub(super) async fn set_thinking(
        &mut self,
        level: ThinkingLevel,
        scope: Scope,
    ) -> Result<Reply, SessionError> {
        let model = Arc::clone(&self.selection.model);
        if !model.supports(level) {
            let levels: Vec<&str> = model.thinking_levels().into_iter().map(ThinkingLevel::name).collect();
            let levels = levels.join(", ");
            return Err(SessionError::Refused(format!(
                "{} cannot think at {level}; it can at {levels}",
                model.id
            )));
        }
        self.select(Selection { model, wanted_thinking: level }).await?;
        if scope == Scope::Default {
            self.save_settings(vec![("defaultThinkingLevel", level.name().into())]).await;
        }
        Ok(Reply::Done)
    }

    pub(super) async fn cycle_model(&mut self, forward: bool) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let next = selection::cycle(
            &self.selection,
            forward,
            &self.preferences,
            &services.catalog.get(),
            &|provider| services.is_usable(provider),
        );
        let Some(selection) = next else {
            return Err(SessionError::Refused("there is no other model to switch to".to_owned()));
        };
        self.select(selection).await?;
        Ok(Reply::Done)
    }

    pub(super) async fn set_scope(
        &mut self,
        patterns: Vec<String>,
        scope: Scope,
    ) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let catalog = services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|provider| services.is_usable(provider));
        let (models, problems) = catalog.scope(&patterns, &usable);
        for problem in problems {
            self.notice(NoticeLevel::Warning, problem);
        }
        self.preferences.scope = models;
        if scope == Scope::Default {
            self.save_settings(vec![("enabledModels", patterns.into())]).await;
        }
        self.selection_changed();
        Ok(Reply::Done)
    }

    /// The window of a model on this machine is known when its server has been asked.
    pub(super) async fn models_changed(&mut self) -> Result<Reply, SessionError> {
        let model = &self.selection.model;
        let known = self.services.catalog.get().get(&model.provider, &model.id).cloned();
        if let Some(known) = known.filter(|known| known != model) {
            let selection = Selection { model: known, ..self.selection.clone() };
            self.select(selection).await?;
        }
        Ok(Reply::Done)
    }

    pub(super) async fn cycle_thinking(&mut self) -> Result<Reply, SessionError> {
        let model = Arc::clone(&self.selection.model);
        let levels = model.thinking_levels();
        if levels.len() < 2 {
            return Err(SessionError::Refused(format!("{} does not think", model.id)));
        }
        let current = self.selection.thinking();
        let at = levels.iter().position(|level| *level == current).unwrap_or_default();
        let wanted_thinking = levels[(at + 1) % levels.len()];
        self.select(Selection { model, wanted_thinking }).await?;
        Ok(Reply::Done)
    }

    /// Makes a selection the session's, for a running loop from its next request on.
    async fn select(&mut self, selection: Selection) -> Result<(), SessionError> {
        // A model without a key is refused now, not at the next prompt.
        self.credential(&selection.model).await?;
        if selection.model != self.selection.model {
            // No model goes on with the answer of another.
            self.recovery.continue_from(None);
        }
        self.selection = selection;
        self.context.window = self.selection.model.context_window;
        self.record_selection();
        if matches!(self.activity, Activity::Running(_)) {
            self.live.send_replace(LiveSelection {
                selected: Some((Arc::clone(&self.selection.model), self.selection.thinking())),
            });
        }
        self.selection_changed();
        Ok(())
    }

    pub(super) fn selection_changed(&mut self) {
        self.publish();
        self.send(SessionEvent::SelectionChanged);
    }

    /// Appends what the branch does not say about the selection yet.
    pub(super) fn record_selection(&mut self) {
        let said = projection::selected(&self.store.selecting_entries());
        let model = Arc::clone(&self.selection.model);
        if said.model != Some((model.provider.clone(), model.id.clone())) {
            let (provider, model_id) = (model.provider.clone(), model.id.clone());
            self.append(EntryBody::ModelChange(ModelChange { provider, model_id, extra: ai::Extra::new() }));
        }
        // What a lesser model could not do is not forgotten for the next one.
        let unchanged =
            said.thinking.is_some_and(|said| model.clamp_thinking(said) == self.selection.thinking());
        if !unchanged {
            let thinking_level = self.selection.thinking().name().to_owned();
            let change = ThinkingLevelChange { thinking_level, extra: ai::Extra::new() };
            self.append(EntryBody::ThinkingLevelChange(change));
        }
    }

    async fn save_settings(&mut self, changes: Vec<(&'static str, serde_json::Value)>) {
        let path = self.services.dirs.settings_file();
        let saved = tokio::task::spawn_blocking(move || SettingsFile::load(path).save(&changes)).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.notice(NoticeLevel::Error, error.to_string()),
            Err(error) => self.notice(NoticeLevel::Error, error.to_string()),
        }
    }
}
