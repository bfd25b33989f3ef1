//! Other branches, and sessions made of them: moving in the tree, labels, forks, copies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ai::Extra;

use super::super::command::{IfBusy, LeftBranch, PromptDraft, Reply};
use super::super::compaction::{self, BranchPlan, Summary, SummaryError};
use super::super::copies::{self, ForkedBranch, Secrets};
use super::super::event::{Navigated, NoticeLevel, SessionEvent, SummarySource};
use super::super::handle::SessionError;
use super::super::open::OpenSession;
use super::super::pins;
use super::super::refusal::Refusal;
use super::super::state::Phase;
use super::super::store::{BranchSummary, EntryBody, EntryId, EntryKind, Label, SessionTree, clean_name};
use super::opening::{ModelChoice, note_context};
use super::summaries::{ActiveSummary, SummaryPurpose, summarizer};
use super::{AgentSession, TAIL_ENTRIES};

/// Moves a session in its tree and copies what is there.
pub(super) struct Branching<'s> {
    session: &'s mut AgentSession,
}

/// A branch that is about to be left.
pub(super) struct Departure {
    /// The entry the user chose.
    target: EntryId,
    /// What the session continues after; `None` for a new root.
    leaf: Option<EntryId>,
    /// The message that is taken back.
    prompt: Option<PromptDraft>,
    /// The end of the branch that is left.
    from: Option<EntryId>,
    /// Of what a summary is made.
    plan: Option<BranchPlan>,
}

impl<'s> Branching<'s> {
    pub(super) fn of(session: &'s mut AgentSession) -> Self {
        Self { session }
    }

    // Moving.

    /// Continues at `target`, or before it if it is something that can be sent anew.
    ///
    /// # Errors
    /// Without such an entry, at the end of the active branch, while something works that
    /// is not to be cancelled, and without a key for a summary.
    pub(super) async fn navigate(
        &mut self,
        target: &EntryId,
        left: LeftBranch,
        if_busy: IfBusy,
    ) -> Result<Reply, SessionError> {
        if let LeftBranch::Summarize { .. } = left {
            self.check_writable()?;
        }
        self.find(target)?;
        self.make_idle(if_busy).await?;
        // What waited for the work that ended has nothing to wait for.
        self.session.queue.interrupt(Phase::Idle);
        let departure = self.departure(target, &left).await?;
        let (LeftBranch::Summarize { focus }, Some(plan)) = (left, departure.plan.clone()) else {
            self.arrive(departure, None);
            return Ok(Reply::Done);
        };
        let summarizer = summarizer(self.session, SummarySource::Branch).await?;
        let cancel = summarizer.cancel.clone();
        let task = tokio::spawn(async move { summarizer.summarize_branch(&plan, focus.as_deref()).await });
        let purpose = SummaryPurpose::Branch(departure);
        self.session.run.on_summary_start(ActiveSummary { task, cancel, purpose });
        self.session.outbox.send(SessionEvent::BranchSummaryStarted);
        Ok(Reply::Started)
    }

    /// What it means to go to `target` from the end of the active branch.
    async fn departure(&mut self, target: &EntryId, left: &LeftBranch) -> Result<Departure, SessionError> {
        let (tree, at) = self.find(target)?;
        if tree.leaf() == Some(at) {
            return Err(Refusal::AtThisPoint.into());
        }
        let wants_summary = matches!(left, LeftBranch::Summarize { .. });
        let window = self.session.model.model().context_window;
        let reserve = self.session.settings.get().values.branch_summary.reserve_tokens;
        let target = target.clone();
        blocking(move || {
            let prompt = tree.read(at).and_then(|entry| copies::prompt_of(&entry));
            let leaf = if prompt.is_some() { tree.entry(at).parent } else { Some(at) };
            let plan = wants_summary.then(|| tree.read_all(&tree.path_left(tree.leaf(), at)));
            let plan = plan.and_then(|entries| compaction::plan_branch(&entries, window, reserve));
            let id = |idx: usize| tree.entry(idx).id.clone();
            Departure { target, leaf: leaf.map(id), prompt, from: tree.leaf().map(id), plan }
        })
        .await
    }

    /// A summary has been written, or not; then goes on with what is queued.
    pub(super) async fn on_summary(&mut self, departure: Departure, summary: Result<Summary, SummaryError>) {
        let aborted = summary == Err(SummaryError::Cancelled);
        let error = summary.as_ref().err().map(ToString::to_string);
        let target = departure.target.clone();
        self.session.publish();
        self.session.outbox.send(SessionEvent::BranchSummaryEnded { target, aborted, error: error.clone() });
        if let Some(error) = error.filter(|_| !aborted) {
            let text = format!("cannot summarise the branch: {error}; the session is where it was");
            self.session.outbox.notice(NoticeLevel::Error, text);
        }
        if let Ok(summary) = summary {
            self.arrive(departure, Some(summary));
        }
        if aborted {
            self.session.settle(true).await;
        } else {
            self.session.start_queued().await;
        }
    }

    /// Continues on the other branch, with the summary of the one before if there is one.
    fn arrive(&mut self, departure: Departure, summary: Option<Summary>) {
        let session = &mut *self.session;
        // It was there when it was looked for, and entries do not go away.
        session.log.move_leaf(departure.leaf.as_ref());
        session.cache.on_prefix_change("the session continued at another entry");
        if let Some(Summary { text, usage, .. }) = summary {
            session.cache.on_summary();
            let cost_usd = usage.cost.total;
            session.append(EntryBody::BranchSummary(Box::new(BranchSummary {
                from_id: departure.from.map_or_else(|| "root".to_owned(), |id| id.to_string()),
                summary: text,
                details: departure.plan.as_ref().map(BranchPlan::details),
                usage: Some(usage),
                from_hook: Some(false),
                extra: Extra::new(),
            })));
            if cost_usd > 0.0 {
                session.outbox.notice(NoticeLevel::Info, format!("Writing the summary cost ${cost_usd:.4}."));
            }
        }
        note_context(session);
        session.publish();
        let branch = session.log.opened(TAIL_ENTRIES);
        let navigated = Navigated { branch, prompt: departure.prompt };
        session.outbox.send(SessionEvent::Navigated(Arc::new(navigated)));
        // Bodies that the branch needs may have been unreadable.
        session.log.report_store();
    }

    // Labels.

    /// Names an entry; a blank label takes the name away.
    ///
    /// # Errors
    /// Without such an entry, and when the session cannot be written.
    pub(super) fn label(&mut self, target: EntryId, label: Option<String>) -> Result<(), SessionError> {
        self.check_writable()?;
        self.find(&target)?;
        let label = label.as_deref().and_then(clean_name);
        self.session.append(EntryBody::Label(Label { target_id: target, label, extra: Extra::new() }));
        Ok(())
    }

    /// Pins a message of the branch, or ends that; without a `target` the latest one of the
    /// user.
    ///
    /// # Errors
    /// If there is no such message, and when the session cannot be written.
    pub(super) fn pin(&mut self, target: Option<EntryId>, pinned: bool) -> Result<(), SessionError> {
        self.check_writable()?;
        let latest = || self.session.log.store().last_of(&[EntryKind::User]);
        let target = target.or_else(latest).ok_or(Refusal::NothingToPin)?;
        let (tree, at) = self.find(&target)?;
        let kind = tree.entry(at).kind;
        let is_message = matches!(kind, EntryKind::User | EntryKind::Assistant | EntryKind::ToolResult);
        if !is_message || !tree.path(tree.leaf()).contains(&at) {
            return Err(Refusal::NothingToPin.into());
        }
        let session = &mut *self.session;
        if session.outbox.snapshot().pinned.contains(&target) == pinned {
            let state = if pinned { "is pinned already" } else { "is not pinned" };
            session.outbox.notice(NoticeLevel::Info, format!("The message {state}."));
            return Ok(());
        }
        session.append(pins::pin_entry(&target, pinned));
        session.outbox.update(|state| session.log.show(state));
        let n_pinned = session.outbox.snapshot().pinned.len();
        let text = match (pinned, n_pinned) {
            (true, _) => {
                "Pinned: the message stays word for word when the conversation is compacted. /unpin ends that for all \
                 pinned messages."
                    .to_owned()
            }
            (false, 0) => "No message is pinned any more.".to_owned(),
            (false, 1) => "The message is no longer pinned; 1 other is.".to_owned(),
            (false, others) => format!("The message is no longer pinned; {others} others are."),
        };
        session.outbox.notice(NoticeLevel::Info, text);
        Ok(())
    }

    // Copies.

    /// Continues in a new session with what came before `target`.
    ///
    /// # Errors
    /// If that is no message of the user, the session works and is not to be cancelled, and
    /// when the copy cannot be written.
    pub(super) async fn fork(&mut self, target: &EntryId, if_busy: IfBusy) -> Result<Reply, SessionError> {
        self.check_idle(if_busy)?;
        let (tree, at) = self.find(target)?;
        let (reading, entry) = (tree.clone(), tree.entry(at).parent);
        let prompt = blocking(move || reading.read(at).and_then(|entry| copies::prompt_of(&entry))).await?;
        let Some(prompt) = prompt else {
            return Err(Refusal::NotYourMessage.into());
        };
        self.continue_in_copy(&tree, entry).await?;
        Ok(Reply::Forked(prompt))
    }

    /// Continues in a new session with the whole branch.
    ///
    /// # Errors
    /// If the session works and is not to be cancelled, and when the copy cannot be written.
    pub(super) async fn clone_branch(&mut self, if_busy: IfBusy) -> Result<Reply, SessionError> {
        self.session_file()?;
        // What is going on is part of it.
        self.make_idle(if_busy).await?;
        let tree = self.session.log.store().tree();
        self.continue_in_copy(&tree, tree.leaf()).await?;
        Ok(Reply::Done)
    }

    async fn continue_in_copy(&mut self, tree: &SessionTree, end: Option<usize>) -> Result<(), SessionError> {
        let source = self.session_file()?;
        self.make_idle(IfBusy::Cancel).await?;
        self.session.log.flush().map_err(|error| Refusal::Unsaved { reason: error.to_string() })?;
        let (tree, cwd) = (tree.clone(), self.session.project.cwd().to_owned());
        let now_ms = self.session.services.clock.now_ms();
        let disk = Arc::clone(&self.session.services.disk);
        let made = blocking(move || copies::fork_branch(&*disk, &tree, end, &source, &cwd, now_ms)).await?;
        let ForkedBranch { open, n_lost } = made.map_err(refused)?;
        self.switch_to_copy(open, ModelChoice::Current).await?;
        let text = "This is a new session that begins with a copy; the one before is unchanged.";
        self.session.outbox.notice(NoticeLevel::Info, text);
        self.warn_of_lost(n_lost);
        Ok(())
    }

    /// Copies a session file to those of this session and continues with it.
    ///
    /// # Errors
    /// If it is no session, this one works and is not to be cancelled, and when the file cannot
    /// be copied or opened; no copy is left then.
    pub(super) async fn import(&mut self, path: PathBuf, if_busy: IfBusy) -> Result<Reply, SessionError> {
        self.check_idle(if_busy)?;
        let own = self.session.log.store().path().and_then(Path::parent).map(PathBuf::from);
        let folder =
            own.or_else(|| self.session.services.sessions.clone()).ok_or(Refusal::NoSessionFolder)?;
        let disk = Arc::clone(&self.session.services.disk);
        let copy = blocking(move || copies::import(&*disk, &path, &folder)).await?.map_err(refused)?;
        self.switch_to_copy(OpenSession::File(copy), ModelChoice::Stored).await
    }

    /// Removes the copy again if it cannot be opened.
    async fn switch_to_copy(&mut self, open: OpenSession, model: ModelChoice) -> Result<Reply, SessionError> {
        let copy = match &open {
            OpenSession::File(path) => Some(path.clone()),
            OpenSession::New | OpenSession::WithId(_) | OpenSession::Forked { .. } => None,
        };
        let switched = self.session.switch(open, model).await;
        if let (Err(_), Some(copy)) = (&switched, copy) {
            let disk = Arc::clone(&self.session.services.disk);
            drop(blocking(move || disk.remove(&copy)).await);
        }
        switched
    }

    /// Writes the active branch to the new file `path`.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub(super) async fn export(&mut self, path: PathBuf, secrets: Secrets) -> Result<Reply, SessionError> {
        if self.session.log.store().is_empty() {
            return Err(Refusal::NothingToExport.into());
        }
        let store = self.session.log.store();
        let (tree, header) = (store.tree(), store.header().clone());
        let now_ms = self.session.services.clock.now_ms();
        let shown = path.display().to_string();
        let disk = Arc::clone(&self.session.services.disk);
        let written =
            blocking(move || copies::export_branch(&*disk, &tree, &header, now_ms, secrets, &path)).await?;
        match written {
            Ok(n_lost) => {
                self.session.outbox.notice(NoticeLevel::Info, format!("Exported the session to {shown}"));
                self.warn_of_lost(n_lost);
                Ok(Reply::Done)
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Refusal::FileExists { path: shown }.into())
            }
            Err(error) => Err(refused(format!("cannot write {shown}: {error}"))),
        }
    }

    fn warn_of_lost(&self, n_lost: usize) {
        if n_lost > 0 {
            let text =
                format!("entries of the session that could not be read are missing in the copy: {n_lost}");
            self.session.outbox.notice(NoticeLevel::Warning, text);
        }
    }

    // What they share.

    fn find(&self, id: &EntryId) -> Result<(SessionTree, usize), SessionError> {
        let tree = self.session.log.store().tree();
        let at = tree.index_of(id);
        let at = at.ok_or_else(|| Refusal::NoSuchEntry { id: id.to_string() })?;
        Ok((tree, at))
    }

    /// The file that a copy is made from.
    fn session_file(&self) -> Result<PathBuf, SessionError> {
        let store = self.session.log.store();
        let path = store.path().filter(|_| store.is_on_disk() || store.locked_by().is_some());
        path.map(PathBuf::from).ok_or(Refusal::NotSavedYet.into())
    }

    pub(super) fn check_writable(&self) -> Result<(), SessionError> {
        match self.session.log.store().locked_by() {
            Some(holder) => Err(Refusal::ReadOnly { holder: holder.to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// # Errors
    /// While something works that is not to be cancelled.
    pub(super) fn check_idle(&self, if_busy: IfBusy) -> Result<(), SessionError> {
        match if_busy {
            IfBusy::Cancel => Ok(()),
            IfBusy::Refuse if self.session.run.phase() != Phase::Idle => Err(Refusal::Working.into()),
            IfBusy::Refuse if self.session.bash.is_running() => Err(Refusal::CommandRunning.into()),
            IfBusy::Refuse => Ok(()),
        }
    }

    async fn make_idle(&mut self, if_busy: IfBusy) -> Result<(), SessionError> {
        self.check_idle(if_busy)?;
        if self.session.run.phase() != Phase::Idle || self.session.bash.is_running() {
            self.session.stop().await;
        }
        Ok(())
    }
}

fn refused(error: impl ToString) -> SessionError {
    Refusal::CannotCopy { reason: error.to_string() }.into()
}

/// Runs what reads or writes files without holding up the task's thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SessionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::Internal { problem: error.to_string() }.into())
}
