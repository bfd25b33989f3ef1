//! The answer in progress, and the cells that show its blocks.

use std::sync::Arc;

use crate::agent::AgentEvent;
use crate::ai::{AssistantBlock, AssistantMessage, BlockKind, MessageBuilder, StreamEvent};

use super::calls::OpenCalls;
use super::cell_list::{CellId, CellList};
use super::cells::{TextCell, ThinkingCell, ToolCell};

/// Follows the fold of an answer's events: cells show the blocks it accepts.
#[derive(Debug)]
pub(super) struct StreamingAnswer {
    builder: MessageBuilder,
    /// The cell of each block of the message.
    places: Vec<BlockPlace>,
    /// Calls whose arguments have grown since the last frame, by block.
    grown: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum BlockPlace {
    Text(CellId<TextCell>),
    Thinking { cell: CellId<ThinkingCell>, part: usize },
    Call(CellId<ToolCell>),
    Nowhere,
}

impl StreamingAnswer {
    pub(super) fn new(pending: &AssistantMessage) -> Self {
        let mut pending = pending.clone();
        pending.content.clear();
        Self { builder: MessageBuilder::new(pending), places: Vec::new(), grown: Vec::new() }
    }

    /// Events that show the answer so far in another transcript.
    pub(super) fn events(&self) -> Vec<AgentEvent> {
        let mut pending = self.builder.message().clone();
        pending.content.clear();
        let start = AgentEvent::AssistantStart(Arc::new(pending));
        let events = self.builder.events().into_iter().map(AgentEvent::MessageUpdate);
        [start].into_iter().chain(events).collect()
    }

    /// Whether a block has begun.
    pub(super) fn has_blocks(&self) -> bool {
        !self.places.is_empty()
    }

    pub(super) fn on_event(&mut self, event: &StreamEvent, cells: &mut CellList, calls: &mut OpenCalls) {
        if !self.builder.accept(event) {
            return;
        }
        match event {
            StreamEvent::Start | StreamEvent::Done(_) => {}
            StreamEvent::BlockStart { kind, .. } => self.places.push(begin_block(kind, cells, calls)),
            StreamEvent::Delta { index, text } => match self.places.get(*index) {
                Some(BlockPlace::Call(_)) if self.grown.contains(index) => {}
                Some(BlockPlace::Call(_)) => self.grown.push(*index),
                Some(&place) => push_delta(place, text, cells),
                None => {}
            },
            StreamEvent::BlockEnd { index, block } => {
                if let Some(&place) = self.places.get(*index) {
                    end_block(place, block, cells, calls);
                }
            }
        }
    }

    /// Parses the arguments received so far; once per frame, because it parses the
    /// whole text each time.
    pub(super) fn read_partial_arguments(&mut self, cells: &mut CellList) {
        for block_idx in std::mem::take(&mut self.grown) {
            if let Some(&BlockPlace::Call(cell)) = self.places.get(block_idx)
                && let Some(arguments) = self.builder.partial_arguments(block_idx)
                && let Some(cell) = cells.get_mut(cell)
            {
                cell.set_partial_arguments(arguments);
            }
        }
    }

    /// Shows `answer`, the result of the events.
    pub(super) fn complete(&self, answer: &AssistantMessage, cells: &mut CellList, calls: &mut OpenCalls) {
        for (block_idx, block) in answer.content.iter().enumerate() {
            match self.places.get(block_idx) {
                Some(&place) => end_block(place, block, cells, calls),
                None => show_block(block, cells, calls),
            }
        }
    }

    /// Ends the texts; calls continue.
    pub(super) fn finish(self, cells: &mut CellList) {
        for place in self.places {
            match place {
                BlockPlace::Text(cell) => {
                    if let Some(cell) = cells.get_mut(cell) {
                        cell.finish();
                    }
                }
                BlockPlace::Thinking { cell, .. } => {
                    if let Some(cell) = cells.get_mut(cell) {
                        cell.finish();
                    }
                }
                BlockPlace::Call(_) | BlockPlace::Nowhere => {}
            }
        }
    }
}

/// Shows a complete block that was not streamed.
pub(super) fn show_block(block: &AssistantBlock, cells: &mut CellList, calls: &mut OpenCalls) {
    match block {
        AssistantBlock::Text(text) => {
            finish_thinking(cells);
            cells.push(TextCell::finished(&text.text));
        }
        AssistantBlock::Thinking(thinking) => {
            let place = begin_thinking(cells);
            push_delta(place, &thinking.thinking, cells);
        }
        AssistantBlock::ToolCall(call) => {
            finish_thinking(cells);
            calls.open(call, cells);
        }
        AssistantBlock::Unknown(_) => {}
    }
}

/// Ends the thinking at the end of the list.
pub(super) fn finish_thinking(cells: &mut CellList) {
    if let Some(cell) = open_thinking(cells).and_then(|cell| cells.get_mut(cell)) {
        cell.finish();
    }
}

fn open_thinking(cells: &CellList) -> Option<CellId<ThinkingCell>> {
    cells.last::<ThinkingCell>().filter(|(_, cell)| !cell.is_finished()).map(|(id, _)| id)
}

fn begin_block(kind: &BlockKind, cells: &mut CellList, calls: &mut OpenCalls) -> BlockPlace {
    match kind {
        BlockKind::Text => {
            finish_thinking(cells);
            BlockPlace::Text(cells.push(TextCell::default()))
        }
        BlockKind::Thinking => begin_thinking(cells),
        BlockKind::ToolCall { id, name } => {
            finish_thinking(cells);
            BlockPlace::Call(calls.open_arriving(id, name, cells))
        }
    }
}

/// Continues the previous thinking, if nothing is in between.
fn begin_thinking(cells: &mut CellList) -> BlockPlace {
    let id = open_thinking(cells).unwrap_or_else(|| cells.push(ThinkingCell::default()));
    match cells.get_mut(id) {
        Some(cell) => BlockPlace::Thinking { cell: id, part: cell.add_part() },
        None => BlockPlace::Nowhere,
    }
}

fn push_delta(place: BlockPlace, text: &str, cells: &mut CellList) {
    match place {
        BlockPlace::Text(cell) => {
            if let Some(cell) = cells.get_mut(cell) {
                cell.push(text);
            }
        }
        BlockPlace::Thinking { cell, part } => {
            if let Some(cell) = cells.get_mut(cell) {
                cell.push(part, text);
            }
        }
        BlockPlace::Call(_) | BlockPlace::Nowhere => {}
    }
}

/// Replaces the accumulated deltas by the finished block.
fn end_block(place: BlockPlace, block: &AssistantBlock, cells: &mut CellList, calls: &mut OpenCalls) {
    match (place, block) {
        (BlockPlace::Text(cell), AssistantBlock::Text(text)) => {
            if let Some(cell) = cells.get_mut(cell) {
                cell.set(&text.text);
                cell.finish();
            }
        }
        (BlockPlace::Thinking { cell, part }, AssistantBlock::Thinking(thinking)) => {
            if let Some(cell) = cells.get_mut(cell) {
                cell.set(part, &thinking.thinking);
            }
        }
        (BlockPlace::Call(cell), AssistantBlock::ToolCall(call)) => calls.complete(cell, call, cells),
        // A block that changed its kind keeps the content shown so far.
        (
            BlockPlace::Text(_) | BlockPlace::Thinking { .. } | BlockPlace::Call(_) | BlockPlace::Nowhere,
            _,
        ) => {}
    }
}
