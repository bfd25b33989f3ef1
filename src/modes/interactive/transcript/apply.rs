//! From session events and stored entries to cells.
//!
//! This file knows which cell an event is about; what the cell then looks like is
//! the cell's business. Events may come in any order and number without harm.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::ai::{
    AssistantBlock, AssistantMessage, BlockKind, Message, MessageBuilder, StopReason, StreamEvent, ToolCall,
    ToolResultMessage, failure_text,
};
use crate::session::{BashExecution, Entry, EntryBody, NoticeLevel, Opened, SessionEvent, SessionMessage};

use super::Transcript;
use super::cells::{
    BashCell, Cell, CustomCell, NoticeCell, SummaryCell, TextCell, ThinkingCell, Tone, ToolCell, UserCell,
};

const ABORTED: &str = "Operation aborted";
/// What became of a call whose session is gone.
const SESSION_ENDED: &str = "The session stopped before this finished";

/// What is going on, and which cells show it. Cells are named by their index.
#[derive(Debug, Default)]
pub(super) struct Live {
    answer: Option<Answer>,
    /// Calls without a result, by their id.
    calls: HashMap<String, usize>,
    /// The user's own command that runs.
    bash: Option<usize>,
    /// Why the last answer failed; shown already.
    failure: Option<String>,
}

/// The answer that is being given.
#[derive(Debug)]
struct Answer {
    builder: MessageBuilder,
    /// Where each block of the message is shown.
    places: Vec<BlockPlace>,
    /// Calls whose arguments have grown since the last frame, by block.
    grown: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum BlockPlace {
    Text { cell: usize },
    Thinking { cell: usize, part: usize },
    Call { cell: usize },
    Nowhere,
}

impl Transcript {
    pub(super) fn take_event(&mut self, event: &SessionEvent, now: Duration) {
        match event {
            SessionEvent::Opened(opened) => self.show(opened),
            SessionEvent::Agent(event) => self.take_agent_event(event, now),
            SessionEvent::RetryScheduled { error, .. } => self.failed_request(error),
            SessionEvent::RetryEnded { success: true, .. } => {}
            SessionEvent::RetryEnded { success: false, attempt, final_error } => {
                self.gave_up(*attempt, final_error.as_deref());
            }
            SessionEvent::BashStarted { command, exclude_from_context } => {
                self.end_bash(None);
                let cell = BashCell::start(command, *exclude_from_context);
                self.live.bash = Some(self.cells.push(Cell::Bash(cell)));
            }
            SessionEvent::BashOutput { chunk } => {
                if let Some(Cell::Bash(cell)) = self.live.bash.and_then(|index| self.cells.get_mut(index)) {
                    cell.push(chunk);
                }
            }
            SessionEvent::BashEnded(execution) => self.end_bash(Some(execution)),
            SessionEvent::EntryAppended(entry) => self.show_standalone(&entry.body),
            SessionEvent::Notice { level, text } => self.notice(*level, text),
            // Footer, status line and dock show these.
            SessionEvent::QueueChanged
            | SessionEvent::SelectionChanged
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. } => {}
            SessionEvent::Settled { .. } => self.abandon_run(ABORTED),
            SessionEvent::Ended { .. } => {
                self.end_bash(None);
                self.abandon_run(SESSION_ENDED);
            }
        }
    }

    fn take_agent_event(&mut self, event: &AgentEvent, now: Duration) {
        match event {
            AgentEvent::AssistantStart(pending) => self.begin_answer(pending),
            AgentEvent::MessageUpdate(event) => self.take_stream_event(event),
            AgentEvent::MessageEnd(message) => self.end_message(message),
            AgentEvent::ToolStart { call } => {
                let index = self.call_cell(call);
                if let Some(Cell::Tool(cell)) = self.cells.get_mut(index) {
                    cell.start(call, now);
                }
            }
            AgentEvent::ToolUpdate { call_id, partial } => {
                if let Some(Cell::Tool(cell)) = self.known_call(call_id) {
                    cell.update(partial);
                }
            }
            AgentEvent::ToolEnd { call_id, result } => self.end_call(call_id, result, now),
            AgentEvent::AgentEnd { .. } => self.abandon_run(ABORTED),
            // Messages are shown when they end, since only then are they on disk.
            AgentEvent::AgentStart
            | AgentEvent::TurnStart
            | AgentEvent::MessageStart(_)
            | AgentEvent::TurnEnd { .. } => {}
        }
    }

    // Answers.

    fn begin_answer(&mut self, pending: &AssistantMessage) {
        self.finish_answer();
        let mut pending = pending.clone();
        pending.content.clear();
        let builder = MessageBuilder::new(pending);
        self.live.answer = Some(Answer { builder, places: Vec::new(), grown: Vec::new() });
    }

    fn take_stream_event(&mut self, event: &StreamEvent) {
        let Some(answer) = &mut self.live.answer else { return };
        answer.builder.push(event);
        match event {
            StreamEvent::Start | StreamEvent::Done(_) => {}
            StreamEvent::BlockStart { index, kind } if *index == answer.places.len() => {
                let place = self.begin_block(kind);
                if let Some(answer) = &mut self.live.answer {
                    answer.places.push(place);
                }
            }
            StreamEvent::BlockStart { .. } => {}
            StreamEvent::Delta { index, text } => match answer.places.get(*index) {
                Some(BlockPlace::Call { .. }) if answer.grown.contains(index) => {}
                Some(BlockPlace::Call { .. }) => answer.grown.push(*index),
                Some(&place) => self.push_delta(place, text),
                None => {}
            },
            StreamEvent::BlockEnd { index, block } => {
                if let Some(&place) = answer.places.get(*index) {
                    self.end_block(place, block);
                }
            }
        }
    }

    fn begin_block(&mut self, kind: &BlockKind) -> BlockPlace {
        match kind {
            BlockKind::Text => {
                self.finish_thinking();
                BlockPlace::Text { cell: self.cells.push(Cell::Text(TextCell::default())) }
            }
            BlockKind::Thinking => self.begin_thinking(),
            BlockKind::ToolCall { id, name } => {
                self.finish_thinking();
                let cell = self.cells.push(Cell::Tool(Box::new(ToolCell::arriving(name))));
                self.live.calls.insert(id.clone(), cell);
                BlockPlace::Call { cell }
            }
        }
    }

    /// Goes on with the thinking above, if there is nothing between.
    fn begin_thinking(&mut self) -> BlockPlace {
        let open = match self.cells.last() {
            Some((index, Cell::Thinking(cell))) if !cell.is_finished() => Some(index),
            _ => None,
        };
        let index = open.unwrap_or_else(|| self.cells.push(Cell::Thinking(ThinkingCell::default())));
        match self.cells.get_mut(index) {
            Some(Cell::Thinking(cell)) => BlockPlace::Thinking { cell: index, part: cell.add_part() },
            _ => BlockPlace::Nowhere,
        }
    }

    fn finish_thinking(&mut self) {
        if let Some((index, Cell::Thinking(cell))) = self.cells.last()
            && !cell.is_finished()
            && let Some(Cell::Thinking(cell)) = self.cells.get_mut(index)
        {
            cell.finish();
        }
    }

    fn push_delta(&mut self, place: BlockPlace, text: &str) {
        match place {
            BlockPlace::Text { cell } => {
                if let Some(Cell::Text(cell)) = self.cells.get_mut(cell) {
                    cell.push(text);
                }
            }
            BlockPlace::Thinking { cell, part } => {
                if let Some(Cell::Thinking(cell)) = self.cells.get_mut(cell) {
                    cell.push(part, text);
                }
            }
            BlockPlace::Call { .. } | BlockPlace::Nowhere => {}
        }
    }

    /// Takes a finished block for what its deltas added up to.
    fn end_block(&mut self, place: BlockPlace, block: &AssistantBlock) {
        match (place, block) {
            (BlockPlace::Text { cell }, AssistantBlock::Text(text)) => {
                if let Some(Cell::Text(cell)) = self.cells.get_mut(cell) {
                    cell.set(&text.text);
                    cell.finish();
                }
            }
            (BlockPlace::Thinking { cell, part }, AssistantBlock::Thinking(thinking)) => {
                if let Some(Cell::Thinking(cell)) = self.cells.get_mut(cell) {
                    cell.set(part, &thinking.thinking);
                }
            }
            (BlockPlace::Call { cell: index }, AssistantBlock::ToolCall(call)) => {
                if let Some(Cell::Tool(cell)) = self.cells.get_mut(index) {
                    cell.set_call(call);
                    self.live.calls.insert(call.id.clone(), index);
                }
            }
            // A block that is not of the kind it began as stays what was seen of it.
            (
                BlockPlace::Text { .. }
                | BlockPlace::Thinking { .. }
                | BlockPlace::Call { .. }
                | BlockPlace::Nowhere,
                _,
            ) => {}
        }
    }

    /// Parses what has arrived of arguments; once per frame, as it takes the whole
    /// text each time.
    pub(super) fn read_partial_arguments(&mut self) {
        let Some(answer) = &mut self.live.answer else { return };
        for block_idx in std::mem::take(&mut answer.grown) {
            if let Some(&BlockPlace::Call { cell }) = answer.places.get(block_idx)
                && let Some(arguments) = answer.builder.partial_arguments(block_idx)
                && let Some(Cell::Tool(cell)) = self.cells.get_mut(cell)
            {
                cell.set_partial_arguments(arguments);
            }
        }
    }

    fn end_answer(&mut self, message: &Arc<Message>, answer: &AssistantMessage) {
        let places = self.live.answer.as_ref().map(|live| live.places.clone()).unwrap_or_default();
        for (block_idx, block) in answer.content.iter().enumerate() {
            match places.get(block_idx) {
                Some(&place) => self.end_block(place, block),
                None => self.show_block(block),
            }
        }
        self.finish_answer();
        if answer.texts().any(|text| !text.trim().is_empty()) {
            self.last_answer = Some(Arc::clone(message));
        }
        self.show_outcome(answer, !places.is_empty());
    }

    /// Ends the texts of the answer that is being given; its calls go on.
    fn finish_answer(&mut self) {
        let Some(answer) = self.live.answer.take() else { return };
        for place in answer.places {
            match place {
                BlockPlace::Text { cell } => {
                    if let Some(Cell::Text(cell)) = self.cells.get_mut(cell) {
                        cell.finish();
                    }
                }
                BlockPlace::Thinking { cell, .. } => {
                    if let Some(Cell::Thinking(cell)) = self.cells.get_mut(cell) {
                        cell.finish();
                    }
                }
                BlockPlace::Call { .. } | BlockPlace::Nowhere => {}
            }
        }
    }

    /// A whole block that was not streamed.
    fn show_block(&mut self, block: &AssistantBlock) {
        match block {
            AssistantBlock::Text(text) => {
                self.finish_thinking();
                self.cells.push(Cell::Text(TextCell::finished(&text.text)));
            }
            AssistantBlock::Thinking(thinking) => {
                let place = self.begin_thinking();
                self.push_delta(place, &thinking.thinking);
            }
            AssistantBlock::ToolCall(call) => {
                self.finish_thinking();
                self.call_cell(call);
            }
            AssistantBlock::Unknown(_) => {}
        }
    }

    /// Reports how an answer ended, unless it ended normally.
    fn show_outcome(&mut self, answer: &AssistantMessage, was_streamed: bool) {
        self.finish_thinking();
        self.live.failure = None;
        let (error, shown) = (answer.error_message.as_deref(), failure_text(answer));
        let (tone, text) = match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse | StopReason::Deferred | StopReason::Pending => return,
            StopReason::Length => (Tone::Failure, "The answer was truncated at the output token limit"),
            StopReason::Aborted => (Tone::Info, ABORTED),
            StopReason::Error => (Tone::Error, shown.as_deref().unwrap_or_default()),
        };
        if answer.stop_reason == StopReason::Error {
            self.live.failure = Some(error.unwrap_or(text).to_owned());
        }
        let has_calls = answer.tool_calls().next().is_some() || (was_streamed && !self.live.calls.is_empty());
        if answer.is_failed() && has_calls {
            // Its calls are never run; their rows say why.
            self.abandon_run(text);
        } else if tone == Tone::Error {
            self.failed(text);
        } else {
            self.cells.push(Cell::Notice(NoticeCell::new(tone, text)));
        }
    }

    /// Shows why a request failed. The same reason again, with nothing between, is
    /// counted.
    fn failed(&mut self, text: &str) {
        if let Some((last, Cell::Notice(_))) = self.cells.last()
            && let Some(Cell::Notice(notice)) = self.cells.get_mut(last)
            && notice.repeat(text)
        {
            return;
        }
        self.cells.push(Cell::Notice(NoticeCell::failure(text)));
    }

    // Calls.

    /// The cell of a call, whose arguments are complete; a new one if there is none.
    fn call_cell(&mut self, call: &ToolCall) -> usize {
        if let Some(&index) = self.live.calls.get(&call.id) {
            if let Some(Cell::Tool(cell)) = self.cells.get_mut(index) {
                cell.set_call(call);
            }
            return index;
        }
        let index = self.cells.push(Cell::Tool(Box::new(ToolCell::new(call))));
        self.live.calls.insert(call.id.clone(), index);
        index
    }

    fn known_call(&mut self, call_id: &str) -> Option<&mut Cell> {
        let index = *self.live.calls.get(call_id)?;
        self.cells.get_mut(index)
    }

    fn end_call(&mut self, call_id: &str, result: &Arc<ToolResultMessage>, now: Duration) {
        if let Some(Cell::Tool(cell)) = self.known_call(call_id) {
            cell.end(result, now);
            self.live.calls.remove(call_id);
        }
    }

    /// Ends what belongs to a run that is over: calls that got no result.
    fn abandon_run(&mut self, reason: &str) {
        self.finish_answer();
        self.live.calls.clear();
        self.cells.change_live(|cell| match cell {
            Cell::Tool(tool) => tool.fail(reason),
            Cell::Text(_)
            | Cell::Thinking(_)
            | Cell::Header(_)
            | Cell::User(_)
            | Cell::Bash(_)
            | Cell::Summary(_)
            | Cell::Custom(_)
            | Cell::Block(_)
            | Cell::Notice(_) => false,
        });
    }

    /// Ends everything that is going on.
    pub(super) fn abandon(&mut self, reason: &str) {
        self.abandon_run(reason);
        self.end_bash(None);
        self.cells.change_live(Cell::succeeded);
    }

    // Failures between runs.

    fn failed_request(&mut self, error: &str) {
        if self.live.failure.as_deref() != Some(error) {
            self.live.failure = Some(error.to_owned());
            self.notice(NoticeLevel::Error, error);
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
        let Some(index) = self.live.bash.take() else {
            if let Some(execution) = execution {
                self.cells.push(Cell::Bash(BashCell::ended(execution)));
            }
            return;
        };
        if let Some(Cell::Bash(cell)) = self.cells.get_mut(index) {
            match execution {
                Some(execution) => cell.end(execution),
                None => drop(cell.cancel()),
            }
        }
    }

    // Messages and entries.

    fn end_message(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::System(_) => {}
            Message::User(user) => {
                self.cells.push(Cell::User(UserCell::new(user)));
            }
            Message::Assistant(answer) => self.end_answer(message, answer),
            Message::ToolResult(result) => {
                if let Some(Cell::Tool(cell)) = self.known_call(&result.tool_call_id) {
                    cell.end_with(message);
                    self.live.calls.remove(&result.tool_call_id);
                }
            }
        }
    }

    /// Forgets everything but the header and shows `opened`.
    pub(super) fn show(&mut self, opened: &Opened) {
        self.cells.reset(1, opened.n_earlier);
        self.live = Live::default();
        self.last_answer = None;
        for entry in &opened.tail {
            self.show_entry(entry);
        }
        self.abandon_run("No result was recorded");
        self.live = Live::default();
    }

    fn show_entry(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => {
                if let Message::ToolResult(result) = &**message
                    && !self.live.calls.contains_key(&result.tool_call_id)
                {
                    // Its call is among the entries that are not shown.
                    let cell = Cell::Tool(Box::new(ToolCell::arriving(&result.tool_name)));
                    let index = self.cells.push(cell);
                    self.live.calls.insert(result.tool_call_id.clone(), index);
                }
                self.end_message(message);
            }
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
                self.cells.push(Cell::Bash(BashCell::ended(execution)));
            }
            body => self.show_standalone(body),
        }
    }

    /// Shows an entry that no other event tells of.
    fn show_standalone(&mut self, body: &EntryBody) {
        let cell = match body {
            EntryBody::Compaction(compaction) => Cell::Summary(SummaryCell::compaction(compaction)),
            EntryBody::BranchSummary(branch) => Cell::Summary(SummaryCell::branch(branch)),
            EntryBody::CustomMessage(message) if message.display => Cell::Custom(CustomCell::new(message)),
            EntryBody::CustomMessage(_)
            | EntryBody::Message { .. }
            | EntryBody::ModelChange(_)
            | EntryBody::ThinkingLevelChange(_)
            | EntryBody::Usage(_)
            | EntryBody::ContextEdit(_)
            | EntryBody::Custom(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInfo(_)
            | EntryBody::Unknown { .. } => return,
        };
        self.cells.push(cell);
    }
}
