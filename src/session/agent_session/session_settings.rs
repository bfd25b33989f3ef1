//! The settings of a session, and the effects of changes.

use std::sync::Arc;

use crate::config::{EffectiveSettings, LiveSettings, ProjectSettings, Row, SettingChange, SettingsWatch};

use super::super::event::{NoticeLevel, SessionEvent};
use super::super::outbox::Outbox;
use super::super::state::SessionState;
use super::AgentSession;

pub(super) struct SessionSettings {
    live: LiveSettings,
    watch: SettingsWatch,
    outbox: Outbox,
}

impl SessionSettings {
    pub(super) fn new(live: LiveSettings, outbox: Outbox) -> Self {
        let watch = live.watch();
        Self { live, watch, outbox }
    }

    /// For parts that read settings themselves.
    pub(super) fn live(&self) -> &LiveSettings {
        &self.live
    }

    /// The current settings.
    pub(super) fn get(&self) -> Arc<EffectiveSettings> {
        self.live.get()
    }

    /// Replaces the project layer.
    pub(super) fn use_project(&self, project: ProjectSettings) {
        self.live.use_project(project);
    }

    /// Waits for a change by another session.
    pub(super) async fn changed(&mut self) -> Vec<&'static str> {
        self.watch.changed().await
    }

    /// Applies changes of defaults, saves them, and reports that `what` is saved.
    pub(super) async fn change_default(session: &mut AgentSession, changes: Vec<SettingChange>, what: &str) {
        if Self::change(session, changes).await {
            session.outbox.notice(NoticeLevel::Info, format!("Saved {what}."));
        }
    }

    /// Applies changes at once, then saves them. Returns whether they were saved.
    pub(super) async fn change(session: &mut AgentSession, changes: Vec<SettingChange>) -> bool {
        let write = session.settings.live.change(changes);
        let keys = session.settings.watch.take().unwrap_or_default();
        Self::apply_now(session, &keys);
        let error = match tokio::task::spawn_blocking(move || write.save()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        let is_saved = error.is_none();
        match error {
            Some(error) => session.outbox.notice(NoticeLevel::Error, error),
            None => session.settings.report_late(&keys),
        }
        Self::follow(session);
        is_saved
    }

    /// Applies changes since the last call to all parts of `session`.
    pub(super) fn follow(session: &mut AgentSession) {
        if let Some(keys) = session.settings.watch.take() {
            Self::apply(session, keys);
        }
    }

    /// Applies the new values of `keys` to all parts of `session`.
    pub(super) fn apply(session: &mut AgentSession, keys: Vec<&'static str>) {
        Self::apply_now(session, &keys);
        session.settings.report_late(&keys);
    }

    fn apply_now(session: &mut AgentSession, keys: &[&'static str]) {
        let settings = session.settings.get();
        session.queue.configure(&settings.values);
        session.budget.configure(&settings.values.budget);
        if keys.contains(&"enabledModels") {
            session.model.find_scope();
        }
        if keys.contains(&"cacheWarming") {
            session.cache.on_mode_change();
        }
        session.outbox.update(|state| {
            session.queue.show(state);
            session.model.show(state);
            session.settings.show(state);
        });
        session.outbox.send(SessionEvent::SettingsChanged { keys: keys.into() });
    }

    /// Names those of `keys` that a later start applies.
    fn report_late(&self, keys: &[&'static str]) {
        let late: Vec<&str> =
            keys.iter().copied().filter(|key| Row::find(key).is_some_and(|row| row.at_start)).collect();
        if !late.is_empty() {
            let text = format!("Restart pi to apply the changed settings: {}.", late.join(", "));
            self.outbox.notice(NoticeLevel::Info, text);
        }
    }

    /// Sets the snapshot's field for the settings.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.settings = self.get();
    }
}
