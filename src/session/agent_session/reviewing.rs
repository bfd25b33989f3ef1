//! `/compact --edit`: a summary that takes effect only when the user accepts it.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::ai::{self, Extra};

use super::super::command::{Reply, SummaryDecision};
use super::super::event::{NoticeLevel, SessionEvent};
use super::super::handle::SessionError;
use super::super::outbox::Outbox;
use super::super::pins;
use super::super::projection;
use super::super::refusal::Refusal;
use super::super::state::{Phase, SessionState};
use super::super::store::{EntryBody, EntryId, UsageEntry};
use super::super::summary_draft::{SummaryDraft, SummaryFile};
use super::AgentSession;
use super::compacting::{Compacting, Replacement};
use super::window_fit;

/// The summary of a session that waits for a decision, with its file.
pub(super) struct DraftedSummary {
    current: Option<Arc<SummaryDraft>>,
    file: SummaryFile,
    outbox: Outbox,
}

impl DraftedSummary {
    pub(super) fn new((file, current): (SummaryFile, Option<SummaryDraft>), outbox: Outbox) -> Self {
        Self { current: current.map(Arc::new), file, outbox }
    }

    /// Continues with another session, whose file and draft these are.
    pub(super) fn replace(&mut self, opened: (SummaryFile, Option<SummaryDraft>)) {
        *self = Self::new(opened, self.outbox.clone());
    }

    /// Continues beside the session at `session`, whose path has changed.
    pub(super) fn follow(&mut self, session: Option<&Path>) {
        self.file.follow(session);
    }

    fn set(&mut self, draft: Option<SummaryDraft>) {
        self.current = draft.map(Arc::new);
        if let Err(error) = self.file.save(self.current.as_deref()) {
            let text = format!("cannot store the draft of the summary: {error}; it is kept until pi exits");
            self.outbox.notice(NoticeLevel::Warning, text);
        }
        self.outbox.update(|state| self.show(state));
    }

    fn change(&mut self, text: String) {
        let changed = self.current.as_deref().filter(|draft| draft.text != text).cloned();
        if let Some(draft) = changed {
            self.set(Some(SummaryDraft { text, ..draft }));
        }
    }

    /// Reports a draft that an earlier process left.
    pub(super) fn report_left_over(&self) {
        if self.current.is_some() {
            let text = "A summary of this conversation waits for your decision; compacting with review (/compact --edit) shows it.";
            self.outbox.notice(NoticeLevel::Info, text);
        }
    }

    /// Sets the snapshot's field about the draft.
    pub(super) fn show(&self, state: &mut SessionState) {
        state.summary_draft.clone_from(&self.current);
    }
}

/// Lets the user decide about a summary.
pub(super) struct Reviewing<'s> {
    session: &'s mut AgentSession,
}

impl<'s> Reviewing<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    /// Shows the draft that is waiting, if there is one that can still be accepted.
    pub(super) fn show_waiting(&mut self) -> bool {
        let session = &mut *self.session;
        let Some(draft) = session.drafted.current.clone() else { return false };
        let first_kept = EntryId::new(&draft.first_kept_entry_id);
        if !draft.fits(&session.log.context().landmarks(&first_kept)) {
            self.drop_draft();
            let text = "Discarded an earlier draft of a summary: the conversation was compacted or \
                        continued elsewhere since it was written.";
            self.session.outbox.notice(NoticeLevel::Warning, text);
            return false;
        }
        session.outbox.send(SessionEvent::SummaryDrafted(draft));
        true
    }

    /// Keeps a new summary until the user decides.
    pub(super) fn on_drafted(&mut self, draft: SummaryDraft) {
        self.session.drafted.set(Some(draft));
        if let Some(draft) = self.session.drafted.current.clone() {
            self.session.outbox.send(SessionEvent::SummaryDrafted(draft));
        }
    }

    /// Applies the user's decision.
    ///
    /// # Errors
    /// If there is no draft, it is empty, the agent is working, or the conversation has
    /// changed; the draft is kept with its changes then.
    pub(super) async fn decide(&mut self, decision: SummaryDecision) -> Result<Reply, SessionError> {
        if self.session.drafted.current.is_none() {
            return Err(Refusal::NoSummaryDraft.into());
        }
        match decision {
            SummaryDecision::Save { text } => {
                self.session.drafted.change(text);
                return Ok(Reply::Done);
            }
            SummaryDecision::Later { text } => self.session.drafted.change(text),
            SummaryDecision::Accept { text } => {
                self.session.drafted.change(text);
                self.accept()?;
            }
            SummaryDecision::Drop => {
                self.drop_draft();
                self.session.outbox.notice(NoticeLevel::Info, "Dropped the summary; nothing was changed.");
            }
        }
        // Messages that were queued while the summary was written.
        if self.session.run.phase() == Phase::Idle && !self.session.queue.is_empty() {
            self.session.start_queued().await;
        }
        Ok(Reply::Done)
    }

    fn accept(&mut self) -> Result<(), SessionError> {
        let session = &mut *self.session;
        if session.run.phase() != Phase::Idle {
            return Err(Refusal::Working.into());
        }
        let Some(draft) = session.drafted.current.clone() else { return Err(Refusal::NoSummaryDraft.into()) };
        if draft.text.trim().is_empty() {
            return Err(Refusal::EmptySummary.into());
        }
        if let Some(holder) = session.log.store().locked_by() {
            return Err(Refusal::ReadOnly { holder: holder.to_owned() }.into());
        }
        let system = projection::messages(&session.log.context().system());
        let max_chars = window_fit::plan_limits(session, &ai::system_state(&system)).quotes_chars();
        let branch = session.log.context().landmarks(&EntryId::new(&draft.first_kept_entry_id));
        let first_kept = draft.first_kept(&branch).filter(|_| draft.fits(&branch));
        let first_kept = first_kept.ok_or(Refusal::StaleSummary)?;
        Compacting::of(session).store(Replacement {
            quotes: pins::quotes(&branch, first_kept, max_chars),
            text: draft.text.trim().to_owned(),
            first_kept_entry_id: draft.first_kept_entry_id.clone(),
            tokens_before: draft.tokens_before,
            details: draft.details.clone(),
            usage: draft.usage.clone(),
        });
        session.drafted.set(None);
        session.publish();
        session.outbox.send(SessionEvent::SummaryDecided { accepted: true });
        Ok(())
    }

    /// Forgets the draft, and records what it cost.
    fn drop_draft(&mut self) {
        let session = &mut *self.session;
        let Some(draft) = session.drafted.current.clone() else { return };
        let (provider, model) = draft.model.split_once('/').unwrap_or(("", &draft.model));
        let mut extra = Extra::new();
        extra.extend([
            ("kind".to_owned(), json!("compaction")),
            ("provider".to_owned(), json!(provider)),
            ("model".to_owned(), json!(model)),
        ]);
        session.append(EntryBody::Usage(Box::new(UsageEntry { usage: draft.usage.clone(), extra })));
        session.drafted.set(None);
        session.outbox.send(SessionEvent::SummaryDecided { accepted: false });
    }
}
