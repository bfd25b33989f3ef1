//! Leaving a session for another, and saying what is open.

use std::sync::Arc;

use crate::ai::Message;

use super::super::cache_watch::CacheWatch;
use super::super::command::Reply;
use super::super::event::{NoticeLevel, Opened, SessionEvent};
use super::super::handle::SessionError;
use super::super::open::{self, OpenSession};
use super::super::queue_file::StoredQueues;
use super::super::recovery::Recovery;
use super::super::state::ContextUsage;
use super::super::store::{EntryBody, SessionMessage};
use super::{Activity, AgentSession, TAIL_ENTRIES, select};

impl AgentSession {
    pub(super) async fn switch(&mut self, open: OpenSession) -> Result<Reply, SessionError> {
        if let OpenSession::File(path) = &open
            && self.store.locked_by().is_none()
            && self.store.path().is_some_and(|own| open::is_same_file(own, path))
        {
            // This task writes the file; there is nothing in it to be read again.
            self.stop().await;
            self.announce_open(None);
            return Ok(Reply::Done);
        }
        let opened = open::open(&self.services, &self.cwd, open, &self.overrides)
            .await
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        self.stop().await;
        // What is in memory only would go with the store.
        self.flush()?;
        let (selection, notice) = if opened.store.is_empty() {
            // A new session goes on with the model at hand.
            (self.selection.clone(), None)
        } else {
            select(&self.services, &opened.store_selected)
        };
        // What is queued now goes along; it is then not left over in the old session.
        drop(self.queue_file.save(&StoredQueues::default()));
        self.store = opened.store;
        self.queue_file = opened.queue_file;
        self.deferred = opened.deferred;
        // The user goes on writing in this one; what is written stays stored meanwhile.
        let left = std::mem::replace(&mut self.draft_file, opened.draft_file);
        self.draft_file.replace(left);
        self.save_queue();
        self.cwd = opened.cwd;
        self.project = opened.project;
        self.tools = opened.tools;
        self.selection = selection;
        self.recovery = Recovery::default();
        self.cache = CacheWatch::default();
        self.last_answer = None;
        self.unsaved = false;
        self.announce_open(notice);
        Ok(Reply::Done)
    }

    pub(super) fn announce_open(&mut self, notice: Option<String>) {
        self.context =
            ContextUsage { window: self.selection.model.context_window, ..ContextUsage::default() };
        if let Some(entry) = self.store.last_answer()
            && let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body
            && let Message::Assistant(answer) = &**message
        {
            self.context.note(answer);
        }
        self.publish();
        let (tail, n_earlier) = self.store.branch_tail(TAIL_ENTRIES);
        let is_cut_off = open::is_cut_off(&tail) && self.store.locked_by().is_none();
        self.send(SessionEvent::Opened(Arc::new(Opened { tail, n_earlier: Some(n_earlier) })));
        // What could not be written while the file was opened.
        let written = self.store.flush();
        if written.is_err() {
            self.written(written);
            self.publish();
        }
        self.tell_store();
        if let Some(notice) = open::damage(self.store.damage()) {
            self.notice(NoticeLevel::Warning, notice);
        }
        if let Some(holder) = self.store.locked_by() {
            let text = format!(
                "this session is open in another pi (process {holder}); it can be read here, not continued"
            );
            self.notice(NoticeLevel::Warning, text);
        }
        if is_cut_off {
            let text = "The last answer was cut off because pi stopped. Send a message to continue.";
            self.notice(NoticeLevel::Warning, text.to_owned());
        }
        if let Some(notice) = notice {
            self.notice(NoticeLevel::Warning, notice);
        }
        self.show_project_notices();
    }

    /// Ends what is going on, keeping what there is of it, and makes all durable.
    pub(super) async fn stop(&mut self) {
        self.abort();
        while let Activity::Running(run) = &mut self.activity {
            match run.reports.recv().await {
                Some(report) => self.take_report(report),
                None => self.run_ended().await,
            }
        }
        if let Some(event) = self.bash.wait().await {
            self.take_bash(event);
        }
        self.sync().await;
    }
}
