//! Switches between sessions and reports the open one.

use std::sync::Arc;

use crate::ai::Message;
use crate::config::Trust;

use super::super::cache_warming::NotWarmed;
use super::super::command::Reply;
use super::super::compaction;
use super::super::endings::Endings;
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::open::{self, OpenSession};
use super::super::refusal::Refusal;
use super::super::state::Phase;
use super::super::store::{EntryBody, SessionMessage};
use super::super::trace::StepRecorder;
use super::held_prompts::HeldPrompts;
use super::session_settings::SessionSettings;
use super::window_fit::WindowFit;
use super::{AgentSession, TAIL_ENTRIES};

impl AgentSession {
    /// Continues with another session; ends all activity once that is open.
    pub(super) async fn switch(
        &mut self,
        open: OpenSession,
        model: ModelChoice,
    ) -> Result<Reply, SessionError> {
        let keeps_model = model == ModelChoice::Current;
        let store = self.log.store();
        if let OpenSession::File(path) = &open
            && store.locked_by().is_none()
            && store.path().is_some_and(|own| open::is_same_file(own, path))
        {
            // This task writes the file, so it contains nothing new.
            self.stop().await;
            self.announce_open(None);
            return Ok(Reply::Done);
        }
        let opened = open::open(&self.services, self.project.cwd(), open, self.project.overrides())
            .await
            .map_err(|error| Refusal::CannotOpen { reason: error.to_string() })?;
        self.stop().await;
        // Lines that exist only in memory would be lost with the store.
        self.log.flush().map_err(|error| Refusal::Unsaved { reason: error.to_string() })?;
        self.settings.use_project(opened.project.settings.clone());
        let (selection, notice) = if opened.store.is_empty() || keeps_model {
            // A new session continues with the current model.
            (self.model.selection().clone(), None)
        } else {
            self.model.initial(&opened.store_selected)
        };
        self.log.replace(opened.store, opened.deferred_entries);
        if !self.queue.is_empty() {
            // Nothing finds a queue beside a session without a file.
            self.log.begin_file();
        }
        self.queue.move_to(opened.queue_file, opened.draft_file);
        self.drafted.replace(opened.summary);
        self.project.replace(opened.cwd, opened.project);
        self.tools.replace(opened.tools);
        self.model.replace(selection);
        SessionSettings::follow(self);
        self.run.reset();
        self.fit = WindowFit::default();
        self.endings = Endings::default();
        self.cache.reset();
        self.steps = StepRecorder::default();
        self.budget.on_session(self.log.store().totals().cost_usd);
        self.announce_open(notice);
        // They were meant for the conversation before.
        self.queue.interrupt(Phase::Idle);
        HeldPrompts::release(self).await;
        Ok(Reply::Done)
    }

    pub(super) fn announce_open(&mut self, notice: Option<String>) {
        note_context(self);
        self.outbox.update(|state| {
            self.log.show(state);
            self.project.show(state);
            self.tools.show(state);
            self.run.show(state);
            self.cache.show(state);
            self.queue.show(state);
            self.model.show(state);
            self.settings.show(state);
            self.drafted.show(state);
        });
        let opened = self.log.opened(TAIL_ENTRIES);
        let is_cut_off = open::is_cut_off(&opened.tail) && self.log.store().locked_by().is_none();
        self.outbox.send(SessionEvent::Opened(Arc::new(opened)));
        // Lines that could not be written while the file was being opened.
        self.log.flush_and_report();
        self.follow_log();
        if let Some(notice) = open::damage(self.log.store().damage()) {
            self.outbox.notice(NoticeLevel::Warning, notice);
        }
        if let Some(holder) = self.log.store().locked_by() {
            let text = format!(
                "this session is open in another pi process ({holder}), so it is read-only here; quit that process and open the session again, or start a new one"
            );
            self.outbox.notice(NoticeLevel::Warning, text);
        }
        if is_cut_off {
            let text = "The last answer is incomplete. Send a message to continue.";
            self.outbox.notice(NoticeLevel::Warning, text);
        }
        if let Some(notice) = notice {
            self.outbox.notice(NoticeLevel::Warning, notice);
        }
        self.drafted.report_left_over();
        self.project.show_notices();
        self.ask_trust();
    }

    /// Asks about trust if it is undecided, in place of an earlier question.
    pub(super) fn ask_trust(&mut self) {
        self.questions.close_trust();
        if self.project.context().state.trust == Trust::Undecided {
            self.questions.ask_trust(&self.project.shown_cwd());
        }
    }

    /// Ends all activity, keeps partial results, and makes everything durable.
    pub(super) async fn stop(&mut self) {
        self.cache.stop(NotWarmed::Changed);
        self.abort();
        while matches!(self.run.phase(), Phase::Running | Phase::Compacting) {
            let input = self.run.next_input().await;
            // A handoff ends by opening another session, which comes here.
            Box::pin(self.on_run_input(input)).await;
        }
        while let Some(event) = self.bash.wait().await {
            self.on_bash(event);
        }
        self.log.sync().await;
        self.follow_log();
    }
}

/// The model of a session that is switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelChoice {
    /// The one its branch ends with.
    Stored,
    /// The one at hand.
    Current,
}

/// Tells how full the window is from the last answer of the active branch, or estimates it.
pub(super) fn note_context(session: &mut AgentSession) {
    session.run.clear_context(session.model.model().context_window);
    if let Some(entry) = session.log.last_answer()
        && let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body
        && let Message::Assistant(answer) = &**message
    {
        session.run.note_context(answer);
    }
    estimate_context(session);
}

/// Estimates how full the window is if no answer has counted it: the first one was interrupted, or the
/// provider does not count.
pub(super) fn estimate_context(session: &mut AgentSession) {
    let usage = session.run.context();
    if usage.counted().is_some() || session.log.last_answer().is_none() {
        return;
    }
    // More than the window is not read.
    let tokens = compaction::context_tokens_unless_compacted(&mut session.log.context(), usage.window);
    session.run.estimate_context(tokens);
}
