//! The content of an answer while it arrives.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::halves::{Joint, without_signs};
use crate::ai::messages::{
    AssistantBlock, BlockKind, Extra, StreamEvent, Text, Thinking, ToolCall, partial_json,
};

/// The blocks of an answer in progress. Keeps the content and
/// emits its events.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) content: Vec<AssistantBlock>,
    /// Per block: the argument text of a tool call so far.
    arguments: Vec<String>,
    /// Per block: what joins its next piece to the last one.
    joints: Vec<Joint>,
    open: Vec<bool>,
}

impl Blocks {
    pub(super) fn start_text(&mut self, out: &mut Vec<StreamEvent>) -> usize {
        self.start(BlockKind::Text, AssistantBlock::Text(Text::default()), out)
    }

    pub(super) fn start_thinking(&mut self, out: &mut Vec<StreamEvent>) -> usize {
        self.start(BlockKind::Thinking, AssistantBlock::Thinking(Thinking::default()), out)
    }

    pub(super) fn start_call(&mut self, id: String, name: String, out: &mut Vec<StreamEvent>) -> usize {
        let name = bounded(name);
        let call = ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: Value::Object(Map::new()),
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        self.start(BlockKind::ToolCall { id, name }, AssistantBlock::ToolCall(call), out)
    }

    pub(super) fn start(
        &mut self,
        kind: BlockKind,
        block: AssistantBlock,
        out: &mut Vec<StreamEvent>,
    ) -> usize {
        let index = self.content.len();
        self.content.push(block);
        self.arguments.push(String::new());
        self.joints.push(Joint::default());
        self.open.push(true);
        out.push(StreamEvent::BlockStart { index, kind });
        index
    }

    /// Appends to an open block. The text may be a [`TextPiece`](super::TextPiece) of a frame, cut in a character.
    pub(super) fn push(&mut self, index: usize, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if !self.is_open(index) {
            return;
        }
        let text = self.joints[index].add(text);
        self.append(index, text, out);
    }

    fn append(&mut self, index: usize, text: Cow<'_, str>, out: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        match &mut self.content[index] {
            AssistantBlock::Text(block) => block.text.push_str(&text),
            AssistantBlock::Thinking(block) => block.thinking.push_str(&text),
            AssistantBlock::ToolCall(_) => self.arguments[index].push_str(&text),
            AssistantBlock::Unknown(_) => return,
        }
        out.push(StreamEvent::Delta { index, text: text.into_owned() });
    }

    /// Marks an open block as closed, after half a character that still waits. Returns whether it was open.
    fn close(&mut self, index: usize, out: &mut Vec<StreamEvent>) -> bool {
        if !self.is_open(index) {
            return false;
        }
        if let Some(half) = self.joints[index].end() {
            self.append(index, Cow::Borrowed(half), out);
        }
        self.open[index] = false;
        true
    }

    /// Names the call at `index`, which may have begun without a name.
    pub(super) fn name_call(&mut self, index: usize, id: String, name: &str) {
        if let Some(call) = self.call_mut(index) {
            call.id = id;
            call.name = bounded(name.to_owned());
        }
    }

    /// Whether a call has no name, so that nothing can be made of it.
    pub(super) fn has_unnamed_call(&self) -> bool {
        self.content
            .iter()
            .any(|block| matches!(block, AssistantBlock::ToolCall(call) if call.name.is_empty()))
    }

    pub(super) fn thinking_mut(&mut self, index: usize) -> Option<&mut Thinking> {
        match self.content.get_mut(index)? {
            AssistantBlock::Thinking(thinking) => Some(thinking),
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    /// Replaces the text of an open block, which its deltas have accumulated, by `text`
    /// if there is one.
    pub(super) fn replace(&mut self, index: usize, text: Option<String>) {
        let Some(text) = text.filter(|_| self.is_open(index)) else { return };
        self.joints[index] = Joint::default();
        match &mut self.content[index] {
            AssistantBlock::Text(block) => block.text = text,
            AssistantBlock::Thinking(block) => block.thinking = text,
            AssistantBlock::ToolCall(_) => self.arguments[index] = text,
            AssistantBlock::Unknown(_) => {}
        }
    }

    pub(super) fn is_open(&self, index: usize) -> bool {
        self.open.get(index) == Some(&true)
    }

    pub(super) fn text_mut(&mut self, index: usize) -> Option<&mut Text> {
        match self.content.get_mut(index)? {
            AssistantBlock::Text(text) => Some(text),
            AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    pub(super) fn call_mut(&mut self, index: usize) -> Option<&mut ToolCall> {
        match self.content.get_mut(index)? {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => None,
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.content.iter().any(|block| matches!(block, AssistantBlock::ToolCall(_)))
    }

    /// The argument text so far, for decoders that inspect it.
    pub(super) fn arguments(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// Closes a block that is complete.
    pub(super) fn end(&mut self, index: usize, out: &mut Vec<StreamEvent>) {
        self.end_as(index, true, out);
    }

    /// Closes a block that is incomplete.
    pub(super) fn cut(&mut self, index: usize, out: &mut Vec<StreamEvent>) {
        self.end_as(index, false, out);
    }

    /// Closes a call whose `arguments` take precedence over their text; an error states
    /// why there are none.
    pub(super) fn end_call(
        &mut self,
        index: usize,
        arguments: Result<Value, String>,
        out: &mut Vec<StreamEvent>,
    ) {
        if !self.close(index, out) {
            return;
        }
        let text = std::mem::take(&mut self.arguments[index]);
        if let AssistantBlock::ToolCall(call) = &mut self.content[index] {
            match arguments {
                Ok(arguments) => call.arguments = arguments,
                Err(error) => {
                    call.arguments_error = Some(partial_json::quoting(&error, &text));
                }
            }
        }
        out.push(StreamEvent::BlockEnd { index, block: self.content[index].clone() });
    }

    /// Closes all open blocks as `whole` or incomplete.
    pub(super) fn end_all(&mut self, whole: bool, out: &mut Vec<StreamEvent>) {
        for index in 0..self.content.len() {
            self.end_as(index, whole, out);
        }
    }

    pub(super) fn end_as(&mut self, index: usize, whole: bool, out: &mut Vec<StreamEvent>) {
        if !self.close(index, out) {
            return;
        }
        if let AssistantBlock::ToolCall(call) = &mut self.content[index] {
            let text = std::mem::take(&mut self.arguments[index]);
            let read = if whole { partial_json::finished_arguments } else { partial_json::cut_arguments };
            (call.arguments, call.arguments_error) = read(&text);
        }
        out.push(StreamEvent::BlockEnd { index, block: self.content[index].clone() });
    }
}

/// The name of a tool, at most as long as any service allows several times over: names are in
/// tables and in every later request.
fn bounded(name: String) -> String {
    const MAX_CHARS: usize = 256;
    let name = match without_signs(&name) {
        Cow::Borrowed(_) => name,
        Cow::Owned(whole) => whole,
    };
    match name.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => name[..end].to_owned(),
        None => name,
    }
}
