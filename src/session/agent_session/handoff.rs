//! `/handoff`: a new session for a goal, with a prompt drafted from the conversation so far.

use std::sync::Arc;

use serde_json::json;

use crate::ai::Extra;

use super::super::command::PromptDraft;
use super::super::compaction::{self, Summary, SummaryError};
use super::super::event::{NoticeLevel, SessionEvent, SummarySource};
use super::super::handle::SessionError;
use super::super::open::OpenSession;
use super::super::refusal::Refusal;
use super::super::store::{EntryBody, UsageEntry};
use super::AgentSession;
use super::opening::ModelChoice;
use super::summaries::{ActiveSummary, SummaryPurpose, summarizer};

/// Starts to draft the prompt of a new session that works on `goal`; `session` is idle.
///
/// # Errors
/// If there is no key, or the conversation is empty.
pub(super) async fn start(session: &mut AgentSession, goal: String) -> Result<(), SessionError> {
    let window = session.model.model().context_window;
    let reserve = session.settings.get().values.branch_summary.reserve_tokens;
    let plan = compaction::plan_branch(&session.log.context_branch(), window, reserve);
    let plan = plan.ok_or(Refusal::NothingToHandOff)?;
    let summarizer = summarizer(session, SummarySource::Handoff).await?;
    let cancel = summarizer.cancel.clone();
    let task = tokio::spawn(async move { summarizer.draft_handoff(&plan, &goal).await });
    session.run.on_summary_start(ActiveSummary { task, cancel, purpose: SummaryPurpose::Handoff });
    session.outbox.send(SessionEvent::HandoffStarted);
    Ok(())
}

/// Opens the new session with the draft; a failure leaves everything unchanged.
pub(super) async fn on_end(session: &mut AgentSession, draft: Result<Summary, SummaryError>) {
    session.publish();
    let drafted = match draft {
        Ok(draft) => continue_in_new_session(session, draft).await,
        Err(SummaryError::Cancelled) => return ended(session, None, true).await,
        Err(error) => Err(format!("cannot draft the handoff: {error}; nothing was changed")),
    };
    match drafted {
        Ok(prompt) => ended(session, Some(prompt), false).await,
        Err(error) => {
            session.outbox.notice(NoticeLevel::Error, error);
            ended(session, None, false).await;
        }
    }
}

async fn ended(session: &mut AgentSession, prompt: Option<PromptDraft>, aborted: bool) {
    session.outbox.send(SessionEvent::HandoffEnded { prompt: prompt.map(Arc::new), aborted });
    if aborted {
        session.settle(true).await;
    } else {
        session.start_queued().await;
    }
}

async fn continue_in_new_session(session: &mut AgentSession, draft: Summary) -> Result<PromptDraft, String> {
    let model = session.model.model();
    let (provider, id) = (model.provider.clone(), model.id.clone());
    let mut extra = Extra::new();
    extra.extend([
        ("kind".to_owned(), json!("handoff")),
        ("provider".to_owned(), json!(provider)),
        ("model".to_owned(), json!(id)),
    ]);
    let cost_usd = draft.usage.cost.total;
    session.append(EntryBody::Usage(Box::new(UsageEntry { usage: draft.usage, extra })));
    let store = session.log.store();
    let parent = store.path().filter(|_| store.is_on_disk()).map(std::path::Path::to_owned);
    let folder = parent.as_deref().and_then(std::path::Path::parent).map(std::path::Path::to_owned);
    let open = match (parent, folder) {
        (Some(parent), Some(folder)) => OpenSession::Forked { folder, parent, lines: Vec::new() },
        _ => OpenSession::New,
    };
    session.switch(open, ModelChoice::Current).await.map_err(|error| error.to_string())?;
    if cost_usd > 0.0 {
        session.outbox.notice(NoticeLevel::Info, format!("Drafting the handoff cost ${cost_usd:.4}."));
    }
    Ok(PromptDraft::from(draft.text.as_str()))
}
