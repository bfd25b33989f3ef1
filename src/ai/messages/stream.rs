//! The events of an answer in progress, their order, and the one fold that
//! assembles the message from them.

use futures_util::stream::BoxStream;
use serde_json::Value;

use super::message::{AssistantBlock, AssistantMessage, Extra, Text, Thinking, ToolCall};
use super::partial_json;

/// One event of an answer in progress.
///
/// Order, checked by [`StreamOrder`]: `Start`; then for each block index
/// `BlockStart Delta* BlockEnd`, where blocks may overlap and indices count up
/// from 0 in order of their starts; then exactly one `Done`, always last. A
/// failed or cancelled request also ends in `Done`, with `StopReason::Error` or
/// `Aborted`, possibly with blocks still open; if it failed at once, `Done` may
/// be the only event.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The service accepted the request.
    Start,
    /// A block begins.
    BlockStart {
        /// Counts from 0.
        index: usize,
        /// What it is.
        kind: BlockKind,
    },
    /// More of a block.
    Delta {
        /// The block.
        index: usize,
        /// What is added to it.
        text: String,
    },
    /// The finished block; it replaces the sum of the deltas.
    BlockEnd {
        /// The block.
        index: usize,
        /// As it is in the message.
        block: AssistantBlock,
    },
    /// The answer is over; the whole message.
    Done(Box<AssistantMessage>),
}

/// The kind of a block, known when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A text of the answer.
    Text,
    /// Thinking.
    Thinking,
    /// Deltas are pieces of the JSON text of the arguments.
    ToolCall {
        /// What the result will name.
        id: String,
        /// The tool.
        name: String,
    },
}

/// The stream itself never fails: failures are in `Done`.
pub type EventStream = BoxStream<'static, StreamEvent>;

/// Folds events into the message so far; the only such fold in the program.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    message: AssistantMessage,
    /// Per block: the raw argument text of a tool call, empty for others.
    arguments: Vec<String>,
}

impl MessageBuilder {
    /// Starts from `pending`, whose content must be empty.
    pub fn new(pending: AssistantMessage) -> Self {
        Self { message: pending, arguments: Vec::new() }
    }

    /// Applies one event. Events for unknown blocks are ignored.
    pub fn push(&mut self, event: &StreamEvent) {
        self.accept(event);
    }

    /// Like [`Self::push`], and returns whether the event was applied: code that shows
    /// the blocks must ignore the same events.
    pub fn accept(&mut self, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::Start => {}
            StreamEvent::BlockStart { index, kind } => {
                if *index != self.message.content.len() {
                    return false;
                }
                self.message.content.push(empty_block(kind));
                self.arguments.push(String::new());
            }
            StreamEvent::Delta { index, text } => match self.message.content.get_mut(*index) {
                Some(AssistantBlock::Text(block)) => block.text.push_str(text),
                Some(AssistantBlock::Thinking(block)) => block.thinking.push_str(text),
                Some(AssistantBlock::ToolCall(_)) => self.arguments[*index].push_str(text),
                Some(AssistantBlock::Unknown(_)) | None => return false,
            },
            StreamEvent::BlockEnd { index, block } => {
                let Some(slot) = self.message.content.get_mut(*index) else { return false };
                *slot = block.clone();
            }
            StreamEvent::Done(message) => self.message = (**message).clone(),
        }
        true
    }

    /// Events that make another builder continue where this one is. Blocks other than tool
    /// calls stay open.
    pub fn events(&self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for (index, block) in self.message.content.iter().enumerate() {
            let (kind, text) = match block {
                AssistantBlock::Text(text) => (BlockKind::Text, text.text.clone()),
                AssistantBlock::Thinking(thinking) => (BlockKind::Thinking, thinking.thinking.clone()),
                AssistantBlock::ToolCall(call) => {
                    let kind = BlockKind::ToolCall { id: call.id.clone(), name: call.name.clone() };
                    (kind, self.arguments.get(index).cloned().unwrap_or_default())
                }
                // Shown as nothing, like the block.
                AssistantBlock::Unknown(_) => (BlockKind::Text, String::new()),
            };
            events.push(StreamEvent::BlockStart { index, kind });
            events.push(StreamEvent::Delta { index, text });
            if let AssistantBlock::ToolCall(call) = block
                && call.arguments.as_object().is_some_and(|arguments| !arguments.is_empty())
            {
                events.push(StreamEvent::BlockEnd { index, block: block.clone() });
            }
        }
        events
    }

    /// The message so far. Arguments of open tool calls are `{}`; see
    /// [`Self::partial_arguments`].
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The readable part of the arguments of the open tool call at `index`: a JSON
    /// object whose last string may be truncated. `None` for other blocks.
    pub fn partial_arguments(&self, index: usize) -> Option<Value> {
        match self.message.content.get(index)? {
            AssistantBlock::ToolCall(_) => Some(partial_json::parse_lenient(&self.arguments[index])),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    /// The message so far. Open tool calls keep what can be read of their arguments, and an
    /// error so that they do not run.
    pub fn into_message(mut self) -> AssistantMessage {
        for (block, text) in self.message.content.iter_mut().zip(&self.arguments) {
            if let AssistantBlock::ToolCall(call) = block
                && call.arguments_error.is_none()
                && call.arguments.as_object().is_some_and(serde_json::Map::is_empty)
                && let (Value::Object(arguments), error) = partial_json::cut_arguments(text)
                && !arguments.is_empty()
            {
                (call.arguments, call.arguments_error) = (Value::Object(arguments), error);
            }
        }
        self.message
    }
}

fn empty_block(kind: &BlockKind) -> AssistantBlock {
    match kind {
        BlockKind::Text => AssistantBlock::Text(Text::default()),
        BlockKind::Thinking => AssistantBlock::Thinking(Thinking::default()),
        BlockKind::ToolCall { id, name } => AssistantBlock::ToolCall(ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: Value::Object(serde_json::Map::new()),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        }),
    }
}

/// Checks the order documented at [`StreamEvent`], for tests of every provider.
#[derive(Debug, Default)]
pub struct StreamOrder {
    started: bool,
    done: bool,
    /// Per block: whether it is still open.
    open: Vec<bool>,
}

impl StreamOrder {
    /// Checks the next event; `Err` describes the violation.
    pub fn accept(&mut self, event: &StreamEvent) -> Result<(), String> {
        if self.done {
            return Err(format!("{event:?} after Done"));
        }
        match event {
            StreamEvent::Start if self.started => Err("second Start".to_owned()),
            StreamEvent::Start => {
                self.started = true;
                Ok(())
            }
            StreamEvent::BlockStart { .. } | StreamEvent::Delta { .. } | StreamEvent::BlockEnd { .. }
                if !self.started =>
            {
                Err(format!("{event:?} before Start"))
            }
            StreamEvent::BlockStart { index, .. } if *index != self.open.len() => {
                Err(format!("block {index} starts, expected {}", self.open.len()))
            }
            StreamEvent::BlockStart { .. } => {
                self.open.push(true);
                Ok(())
            }
            StreamEvent::Delta { index, .. } if self.open.get(*index) != Some(&true) => {
                Err(format!("delta for block {index}, which is not open"))
            }
            StreamEvent::Delta { .. } => Ok(()),
            StreamEvent::BlockEnd { index, .. } => match self.open.get_mut(*index) {
                Some(open) if *open => {
                    *open = false;
                    Ok(())
                }
                _ => Err(format!("end of block {index}, which is not open")),
            },
            StreamEvent::Done(message) => {
                self.done = true;
                if self.open.contains(&true) && !message.is_failed() {
                    return Err("Done with an open block".to_owned());
                }
                if message.is_failed() != message.error_message.is_some() {
                    return Err(format!("{:?} with error {:?}", message.stop_reason, message.error_message));
                }
                Ok(())
            }
        }
    }

    /// Whether the terminal event has arrived.
    pub fn is_done(&self) -> bool {
        self.done
    }
}
