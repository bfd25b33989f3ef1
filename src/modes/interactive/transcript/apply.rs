//! Converts session events and stored entries to cells.
//!
//! This file knows which cell an event concerns; cells draw
//! themselves. Any order and number of events is safe.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::{
    AssistantMessage, Message, StopReason, empty_answer_text, failure_text, length_text, plain_error,
};
use crate::session::{
    BashExecution, Entry, EntryBody, NoticeLevel, Opened, RETRY_CANCELLED, SessionEvent, SessionMessage,
};

use super::Transcript;
use super::answer::{StreamingAnswer, finish_thinking, show_block};
use super::calls::{NO_RESULT, OpenCalls};
use super::cell_list::{CellId, CellList};
use super::cells::{BashCell, CustomCell, NoticeCell, SummaryCell, Tone, UserCell};
use super::notices;
use super::remarks::{EntryPlace, Remarks, RemarksBetween};

const ABORTED: &str = "Operation aborted";
/// The error of a call whose session has ended.
const SESSION_ENDED: &str = "The session stopped before this finished";

/// Activities in progress, and their cells.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) answer: Option<StreamingAnswer>,
    pub(super) calls: OpenCalls,
    /// The user's command in progress.
    bash: Option<CellId<BashCell>>,
    /// The error of the last answer, which is already shown.
    failure: Option<String>,
    /// Why the last answer has nothing to read, until it is certain that it is not requested again.
    remark: Option<&'static str>,
}

impl Transcript {
    /// Shows an event; `now` is monotonic. After `Opened` and `Navigated` the caller
    /// starts over on the screen; [`Self::open`] also takes a new directory.
    pub(in super::super) fn apply(&mut self, event: &SessionEvent, now: Duration) {
        match event {
            SessionEvent::Opened(opened) => self.show(opened),
            SessionEvent::Navigated(navigated) => self.show(&navigated.branch),
            SessionEvent::Agent(event) => self.on_agent_event(event, now),
            SessionEvent::RetryScheduled { error, .. } => self.failed_request(error),
            SessionEvent::RetryEnded { success: true, .. } => {}
            SessionEvent::RetryEnded { success: false, attempt, final_error } => {
                self.gave_up(*attempt, final_error.as_deref());
            }
            SessionEvent::BashStarted { command, exclude_from_context, .. } => {
                self.end_bash(None);
                let cell = BashCell::start(command, *exclude_from_context);
                self.live.bash = Some(self.cells.push(cell));
            }
            SessionEvent::BashOutput { chunk, .. } => {
                if let Some(cell) = self.live.bash.and_then(|id| self.cells.get_mut(id)) {
                    cell.push(chunk);
                }
            }
            SessionEvent::BashEnded { execution, .. } => self.end_bash(Some(execution)),
            SessionEvent::EntryAppended(entry) => self.show_standalone(&entry.body),
            SessionEvent::Notice { level, text } => self.notice(*level, text),
            SessionEvent::CompactionEnded { aborted: true, .. } => {
                self.notice(NoticeLevel::Info, "The compaction was cancelled; nothing was changed.");
            }
            SessionEvent::HandoffEnded { aborted: true, .. } => {
                self.notice(NoticeLevel::Info, "The handoff was cancelled; nothing was changed.");
            }
            // The app, footer, status line and dock show these.
            SessionEvent::QueueChanged
            | SessionEvent::SelectionChanged
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionEnded { aborted: false, .. }
            | SessionEvent::SummaryDrafted(_)
            | SessionEvent::SummaryDecided { .. }
            | SessionEvent::SummaryRetryScheduled { .. }
            | SessionEvent::SummaryRetryStarted { .. }
            | SessionEvent::SummaryRetriesFinished
            | SessionEvent::BranchSummaryStarted
            | SessionEvent::HandoffStarted
            | SessionEvent::HandoffEnded { aborted: false, .. }
            | SessionEvent::BranchSummaryEnded { .. }
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::QueueReturned(_)
            | SessionEvent::PromptReturned { .. }
            | SessionEvent::SettingsChanged { .. }
            | SessionEvent::ProjectChanged => {}
            SessionEvent::Settled { .. } => {
                self.abandon_run(ABORTED);
                show_remark(&mut self.live, &mut self.cells);
            }
            SessionEvent::Ended { .. } => {
                show_remark(&mut self.live, &mut self.cells);
                self.end_bash(None);
                self.abandon_run(SESSION_ENDED);
            }
        }
    }

    fn on_agent_event(&mut self, event: &AgentEvent, now: Duration) {
        match event {
            AgentEvent::AssistantStart(pending) => self.begin_answer(pending),
            AgentEvent::MessageUpdate(event) => {
                if let Some(answer) = &mut self.live.answer {
                    answer.on_event(event, &mut self.cells, &mut self.live.calls);
                }
            }
            AgentEvent::MessageEnd(message) => self.end_message(message),
            AgentEvent::ToolStart { call } => self.live.calls.start(call, &mut self.cells),
            AgentEvent::ToolRunning { call_id } => self.live.calls.run(call_id, now, &mut self.cells),
            AgentEvent::ToolUpdate { call_id, partial } => {
                self.live.calls.update(call_id, partial, &mut self.cells);
            }
            AgentEvent::ToolEnd { result, .. } => {
                self.live.calls.end(result, &mut self.cells);
            }
            AgentEvent::AgentEnd { .. } => self.abandon_run(ABORTED),
            // Messages are shown when they end, because only then are they on disk.
            AgentEvent::AgentStart
            | AgentEvent::TurnStart
            | AgentEvent::MessageStart(_)
            | AgentEvent::TurnEnd { .. } => {}
        }
    }

    // Answers.

    fn begin_answer(&mut self, pending: &AssistantMessage) {
        self.finish_answer();
        self.live.calls.begin_answer();
        self.live.answer = Some(StreamingAnswer::new(pending));
    }

    fn end_answer(&mut self, message: &Arc<Message>, answer: &AssistantMessage) {
        let streamed = self.live.answer.take();
        let was_streamed = streamed.as_ref().is_some_and(StreamingAnswer::has_blocks);
        match streamed {
            Some(streamed) => {
                streamed.complete(answer, &mut self.cells, &mut self.live.calls);
                streamed.finish(&mut self.cells);
            }
            None => {
                self.live.calls.begin_answer();
                for block in &answer.content {
                    show_block(block, &mut self.cells, &mut self.live.calls);
                }
            }
        }
        if answer.texts().any(|text| !text.trim().is_empty()) {
            self.last_answer = Some(Arc::clone(message));
        } else if answer.stop_reason == StopReason::Stop {
            // A normal end without text leaves nothing to copy.
            self.last_answer = None;
        }
        self.show_outcome(answer, was_streamed);
    }

    /// Ends the texts of the answer in progress; its calls continue.
    fn finish_answer(&mut self) {
        if let Some(answer) = self.live.answer.take() {
            answer.finish(&mut self.cells);
        }
    }

    /// Reports how an answer ended, unless it ended normally and has something to read.
    fn show_outcome(&mut self, answer: &AssistantMessage, was_streamed: bool) {
        finish_thinking(&mut self.cells);
        self.live.failure = None;
        let (error, shown) = (answer.error_message.as_deref(), failure_text(answer));
        let (tone, text) = match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse | StopReason::Deferred | StopReason::Pending => {
                self.live.remark = empty_answer_text(answer);
                return;
            }
            StopReason::Length => (Tone::Failure, length_text(answer)),
            StopReason::Aborted => (Tone::Info, ABORTED),
            StopReason::Error => (Tone::Error, shown.as_deref().unwrap_or_default()),
        };
        if answer.stop_reason == StopReason::Error {
            self.live.failure = Some(error.unwrap_or(text).to_owned());
        }
        let has_calls = answer.tool_calls().next().is_some() || (was_streamed && !self.live.calls.is_empty());
        if answer.is_failed() && has_calls {
            // Its calls never run; their rows show the reason.
            self.abandon_run(text);
        } else if tone == Tone::Error {
            notices::show_failure(text, &mut self.cells);
        } else {
            self.cells.push(NoticeCell::new(tone, text).of_entry());
        }
    }

    /// Ends the calls of a finished run that have no result.
    fn abandon_run(&mut self, reason: &str) {
        self.finish_answer();
        self.live.calls.abandon(reason, &mut self.cells);
    }

    /// Ends all activities.
    pub(super) fn abandon(&mut self, reason: &str) {
        self.abandon_run(reason);
        self.end_bash(None);
        self.cells.settle();
    }

    // Failures between runs.

    fn failed_request(&mut self, error: &str) {
        if self.live.failure.as_deref() != Some(error) {
            self.live.failure = Some(error.to_owned());
            // What the user wanted is no error.
            let level = if error == RETRY_CANCELLED { NoticeLevel::Info } else { NoticeLevel::Error };
            self.notice(level, &plain_error(error));
        }
    }

    fn gave_up(&mut self, attempts: u32, error: Option<&str>) {
        match error.filter(|&error| self.live.failure.as_deref() != Some(error)) {
            Some(error) => self.failed_request(error),
            None => {
                let noun = if attempts == 1 { "retry" } else { "retries" };
                self.notice(NoticeLevel::Error, &format!("gave up after {attempts} {noun}"));
            }
        }
    }

    fn end_bash(&mut self, execution: Option<&Arc<BashExecution>>) {
        let Some(id) = self.live.bash.take() else {
            if let Some(execution) = execution {
                self.cells.push(BashCell::ended(execution));
            }
            return;
        };
        if let Some(cell) = self.cells.get_mut(id) {
            match execution {
                Some(execution) => cell.end(execution),
                None => drop(cell.cancel()),
            }
        }
    }

    // Messages and entries.

    fn end_message(&mut self, message: &Arc<Message>) {
        show_remark(&mut self.live, &mut self.cells);
        match &**message {
            Message::System(_) => {}
            Message::User(user) => {
                self.cells.push(UserCell::new(user, message));
                self.cells.on_message();
            }
            Message::Assistant(answer) => {
                self.end_answer(message, answer);
                self.cells.on_message();
            }
            Message::ToolResult(result) => self.live.calls.end(result, &mut self.cells),
        }
    }

    /// Removes everything except the header and shows `opened`.
    pub(super) fn show(&mut self, opened: &Opened) {
        show_between(self, opened, &mut Remarks::default().from(EntryPlace::default()));
    }

    pub(super) fn show_entry(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => {
                if let Message::ToolResult(result) = &**message
                    && !self.live.calls.contains(&result.tool_call_id)
                {
                    // Its call is in an entry that is not shown.
                    let (id, name) = (&result.tool_call_id, &result.tool_name);
                    self.live.calls.open_arriving(id, name, &mut self.cells);
                }
                self.end_message(message);
            }
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
                self.cells.push(BashCell::ended(execution));
            }
            body => self.show_standalone(body),
        }
    }

    /// Shows an entry that has no other event.
    fn show_standalone(&mut self, body: &EntryBody) {
        match body {
            EntryBody::Compaction(compaction) => {
                self.cells.push(SummaryCell::compaction(compaction));
            }
            EntryBody::BranchSummary(branch) => {
                self.cells.push(SummaryCell::branch(branch));
            }
            // The answer was hidden and requested again.
            EntryBody::ContextEdit(_) => self.live.remark = None,
            EntryBody::CustomMessage(message) if message.display => {
                self.cells.push(CustomCell::new(message));
            }
            EntryBody::CustomMessage(_)
            | EntryBody::Message { .. }
            | EntryBody::ModelChange(_)
            | EntryBody::ThinkingLevelChange(_)
            | EntryBody::Usage(_)
            | EntryBody::Custom(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInfo(_)
            | EntryBody::Unknown { .. } => {}
        }
    }
}

/// Shows why the last answer has nothing to read.
fn show_remark(live: &mut Live, cells: &mut CellList) {
    if let Some(text) = live.remark.take() {
        cells.push(NoticeCell::new(Tone::Info, text).of_entry());
    }
}

/// Does what [`Transcript::show`] does, with remarks between the entries.
pub(super) fn show_between(transcript: &mut Transcript, opened: &Opened, remarks: &mut RemarksBetween<'_>) {
    transcript.cells.reset(1, opened.n_earlier);
    transcript.live = Live::default();
    transcript.last_answer = None;
    let has_earlier = opened.n_earlier != Some(0);
    transcript.first_entry = opened.tail.first().filter(|_| has_earlier).map(|entry| entry.id.clone());
    for entry in &opened.tail {
        remarks.before(entry, &mut transcript.cells);
        transcript.show_entry(entry);
    }
    transcript.abandon_run(NO_RESULT);
    show_remark(&mut transcript.live, &mut transcript.cells);
    transcript.live = Live::default();
}
