//! The conversation while it is being imported.
//!
//! The formats put results after their call, before it, or among
//! other items, and refer to it by id or by the name of the tool. [`Draft::finish`]
//! attaches results to their calls, so that in the outcome every result directly
//! follows its answer and every call has a unique id.

use std::sync::Arc;

use serde_json::Value;

use super::document::ImportError;
use super::json::{Noted, ONLY_ADDRESS, Object, Piece, text_block};
use super::report::Report;
use super::{Format, Imported};
use crate::ai::messages::{
    AssistantBlock, AssistantMessage, ContentBlock, Extra, Message, Millis, StopReason, SystemContent,
    SystemMessage, ToolCall, ToolResultMessage, UserContent, UserMessage, join_text,
};
use crate::ai::requests::Ids;

/// The text of a result whose images follow elsewhere.
pub(super) const SEE_IMAGE: &str = "(see attached image)";

/// Introduces the images of a result that could not contain them.
const IMAGES_OF: &str = "Images of the result of ";

#[derive(Debug)]
pub(super) struct Draft {
    format: Format,
    model: String,
    system: Vec<String>,
    items: Vec<Item>,
    pub(super) report: Report,
}

#[derive(Debug)]
enum Item {
    System(String),
    User(UserMessage),
    Answer { place: String, answer: Box<AssistantMessage> },
    Result(RawResult),
}

/// A result as parsed.
#[derive(Debug)]
pub(super) struct RawResult {
    pub(super) place: String,
    /// Empty if only the name refers to its call.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

impl Draft {
    pub(super) fn new(format: Format, model: &str, report: Report) -> Self {
        Self { format, model: model.to_owned(), system: Vec::new(), items: Vec::new(), report }
    }

    /// Adds to the system prompt: from this position on, or from the beginning if the
    /// format has no positions for it.
    pub(super) fn system(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.format == Format::Google {
            self.system.push(text.to_owned());
        } else {
            self.items.push(Item::System(text.to_owned()));
        }
    }

    /// Adds a user message; ignored if it is empty.
    pub(super) fn user(&mut self, blocks: Vec<ContentBlock>, name: Option<&str>) {
        if !blocks.is_empty() {
            self.items.push(Item::User(user_message(blocks, named(name))));
        }
    }

    /// Adds an answer; ignored if it is empty.
    pub(super) fn answer(&mut self, place: &str, blocks: Vec<AssistantBlock>, name: Option<&str>) {
        if blocks.is_empty() {
            return;
        }
        let (api, provider) = self.format.origin();
        let mut answer = AssistantMessage::builder(api, provider, &self.model).build();
        answer.content = blocks;
        answer.extra = named(name);
        self.items.push(Item::Answer { place: place.to_owned(), answer: Box::new(answer) });
    }

    pub(super) fn result(&mut self, mut result: RawResult) {
        forget_placeholder(&mut result.content);
        self.items.push(Item::Result(result));
    }

    /// The blocks of a message of a user, a tool or the system, each part converted by
    /// `block`; reports parts that changed.
    pub(super) fn shown(
        &mut self,
        pieces: Vec<(String, Piece<'_>)>,
        block: impl Fn(&Object) -> Noted,
    ) -> Vec<ContentBlock> {
        let mut blocks = Vec::with_capacity(pieces.len());
        for (place, piece) in pieces {
            let (shown, note) = match piece {
                Piece::Text(text) => (text_block(text), None),
                Piece::Part(part) => block(part),
            };
            if let Some(note) = note {
                self.report.add(place, note);
            }
            blocks.extend(shown);
        }
        blocks
    }

    /// The texts of `blocks`, for messages that can contain only text: prompts and answers.
    pub(super) fn texts(&mut self, place: &str, blocks: Vec<ContentBlock>) -> Vec<String> {
        let texts = blocks.into_iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text),
            ContentBlock::ImageUrl(image) => {
                self.report.add(place, ONLY_ADDRESS);
                Some(image.label())
            }
            ContentBlock::Image(_) => {
                self.report.add(place, "image where only text is allowed");
                None
            }
            ContentBlock::Unknown(_) => None,
        });
        texts.collect()
    }

    /// Attaches results to their calls.
    ///
    /// # Errors
    /// If the conversation has no message of a user or a model.
    pub(super) fn finish(self) -> Result<Imported, ImportError> {
        let Self { format, mut system, items, mut report, .. } = self;
        let mut messages = Tied::new(items, format, &mut report).into_messages(format, &mut report);
        // Formats that join answers can put images into results.
        messages = if format.joins_answers() { joined(messages, format) } else { with_images(messages) };
        let is_system = |message: &&Message| matches!(message, Message::System(_));
        let n_leading = messages.iter().take_while(is_system).count();
        system.extend(messages.drain(..n_leading).filter_map(|message| match message {
            Message::System(system) => match system.content {
                SystemContent::Text(text) => Some(text),
                SystemContent::Blocks(_) => None,
            },
            _ => None,
        }));
        let says = |message: &Message| matches!(message, Message::User(_) | Message::Assistant(_));
        if !messages.iter().any(says) {
            return Err(ImportError::NoConversation);
        }
        let system = (!system.is_empty()).then(|| SystemMessage::new(system.join("\n\n")));
        Ok(Imported { format, system, messages, report })
    }
}

fn user_message(blocks: Vec<ContentBlock>, extra: Extra) -> UserMessage {
    UserMessage { content: UserContent::Blocks(blocks), timestamp: Millis(0), extra }
}

fn named(name: Option<&str>) -> Extra {
    name.map(|name| ("name".to_owned(), Value::from(name))).into_iter().collect()
}

/// The text before the images of a result that cannot contain them itself.
pub(super) fn images_of(id: &str) -> String {
    format!("{IMAGES_OF}{id}:")
}

/// Removes the placeholder text if the image itself is there.
fn forget_placeholder(content: &mut Vec<ContentBlock>) {
    let mut texts = content.iter().filter_map(ContentBlock::as_text);
    let is_placeholder = (texts.next(), texts.next()) == (Some(SEE_IMAGE), None);
    if is_placeholder && content.len() > 1 {
        content.retain(|block| block.as_text().is_none());
    }
}

/// Moves images that [`images_of`] announced back into their results.
fn with_images(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let is_result = |message: &&Message| matches!(message, Message::ToolResult(_));
        let results_at = out.len() - out.iter().rev().take_while(is_result).count();
        let is_taken = match (&message, out.get_mut(results_at..)) {
            (Message::User(user), Some(results)) if user.extra.is_empty() => {
                attach_images(&user.content.blocks(), results)
            }
            _ => false,
        };
        if !is_taken {
            out.push(message);
        }
    }
    out
}

/// Attaches images to `results`. Returns false if `blocks` are not just such images.
fn attach_images(blocks: &[ContentBlock], results: &mut [Message]) -> bool {
    let mut moves: Vec<(usize, Vec<ContentBlock>)> = Vec::new();
    for block in blocks {
        match (block.as_text(), moves.last_mut()) {
            (Some(text), _) => {
                let id = text.strip_prefix(IMAGES_OF).and_then(|rest| rest.strip_suffix(':'));
                let is_it = |result: &Message| match result {
                    Message::ToolResult(result) => id == Some(&result.tool_call_id),
                    Message::System(_) | Message::User(_) | Message::Assistant(_) => false,
                };
                match results.iter().position(is_it) {
                    Some(at) => moves.push((at, Vec::new())),
                    None => return false,
                }
            }
            (None, Some((_, images))) => images.push(block.clone()),
            (None, None) => return false,
        }
    }
    if moves.is_empty() || moves.iter().any(|(_, images)| images.is_empty()) {
        return false;
    }
    for (at, mut images) in moves {
        if let Some(Message::ToolResult(result)) = results.get_mut(at) {
            let result = Arc::make_mut(result);
            result.content.append(&mut images);
            forget_placeholder(&mut result.content);
        }
    }
    true
}

/// Converts a result without a call, which every API rejects, to a user message.
pub(super) fn stray_result(id: &str, name: &str, content: &[ContentBlock]) -> Vec<ContentBlock> {
    let call: String =
        [name, id].iter().filter(|part| !part.is_empty()).map(|part| format!(" {part}")).collect();
    let mut text = format!("Result of the tool call{call}, which is not in this conversation:");
    let said = join_text(content);
    if !said.is_empty() {
        text.push('\n');
        text.push_str(&said);
    }
    let images = content.iter().filter(|block| block.is_image()).cloned();
    text_block(&text).into_iter().chain(images).collect()
}

/// The report's note about such a result.
pub(super) const STRAY: &str = "result without a call; kept as a user message";

/// The items without results, and the results of the calls of each answer.
struct Tied {
    items: Vec<TiedItem>,
}

enum TiedItem {
    Plain(Box<Message>),
    Answer { place: String, answer: Box<AssistantMessage>, results: Vec<Option<RawResult>> },
}

impl Tied {
    fn new(items: Vec<Item>, format: Format, report: &mut Report) -> Self {
        let mut tied = Self { items: Vec::with_capacity(items.len()) };
        // Results with their position among the remaining items.
        let mut results = Vec::new();
        for item in items {
            tied.items.push(match item {
                Item::System(text) => TiedItem::Plain(Box::new(SystemMessage::new(text).into())),
                Item::User(user) => TiedItem::Plain(Box::new(user.into())),
                Item::Answer { place, answer } => {
                    let results = answer.tool_calls().map(|_| None).collect();
                    TiedItem::Answer { place, answer, results }
                }
                Item::Result(result) => {
                    results.push((tied.items.len(), result));
                    continue;
                }
            });
        }
        let mut strays = Vec::new();
        for (at, result) in results {
            if let Err(stray) = tied.tie(at, result, format, report) {
                strays.push((at, stray));
            }
        }
        for (_, stray) in &strays {
            report.add(stray.place.as_str(), STRAY);
        }
        // Backwards, so that positions stay valid.
        for (at, stray) in strays.into_iter().rev() {
            let blocks = stray_result(&stray.id, &stray.name, &stray.content);
            tied.items.insert(at, TiedItem::Plain(Box::new(user_message(blocks, Extra::new()).into())));
        }
        tied
    }

    /// Attaches `result`, which preceded item `at`, to its call: the latest
    /// unanswered one before it, otherwise the first one after it.
    fn tie(
        &mut self,
        at: usize,
        result: RawResult,
        format: Format,
        report: &mut Report,
    ) -> Result<(), RawResult> {
        let by_id = |call: &ToolCall| {
            let id = match (format, call.id.split_once('|')) {
                // The second part is the item's id, which its result does not contain.
                (Format::OpenAiResponses, Some((id, _))) => id,
                _ => &call.id,
            };
            !result.id.is_empty() && id == result.id
        };
        let by_name =
            |call: &ToolCall| (result.id.is_empty() || call.id.is_empty()) && call.name == result.name;
        let found = self.find(at, &by_id).or_else(|| self.find(at, &by_name));
        let Some((idx, slot)) = found else { return Err(result) };
        // A result in its proper position has only results between itself and its answer.
        if idx + 1 != at {
            report.add(result.place.as_str(), "result out of order; moved after its call");
        }
        if let Some(TiedItem::Answer { results, .. }) = self.items.get_mut(idx)
            && let Some(slot) = results.get_mut(slot)
        {
            *slot = Some(result);
        }
        Ok(())
    }

    /// The index of the item and of the call.
    fn find(&self, at: usize, is_it: &dyn Fn(&ToolCall) -> bool) -> Option<(usize, usize)> {
        let before = (0..at.min(self.items.len())).rev();
        before.chain(at..self.items.len()).find_map(|idx| {
            let TiedItem::Answer { answer, results, .. } = self.items.get(idx)? else { return None };
            let open = |(call, result): (&ToolCall, &Option<RawResult>)| result.is_none() && is_it(call);
            answer.tool_calls().zip(results).position(open).map(|slot| (idx, slot))
        })
    }

    fn into_messages(self, format: Format, report: &mut Report) -> Vec<Message> {
        let mut ids = Ids::new(format.id_rule());
        let mut n_calls = 0;
        let mut messages = Vec::new();
        for item in self.items {
            let (place, mut answer, results) = match item {
                TiedItem::Plain(message) => {
                    messages.push(*message);
                    continue;
                }
                TiedItem::Answer { place, answer, results } => (place, answer, results),
            };
            let mut answered = Vec::new();
            let calls = answer.content.iter_mut().filter_map(|block| match block {
                AssistantBlock::ToolCall(call) => Some(call),
                AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => None,
            });
            for (call, result) in calls.zip(results) {
                n_calls += 1;
                let id = match call.id.as_str() {
                    "" => ids.assign(&format!("call_{n_calls}"), true),
                    id => ids.assign(id, true),
                };
                if !call.id.is_empty() && call.id != id {
                    let old = &call.id;
                    report.add(
                        place.as_str(),
                        format!("call {old:?}: id already used or too long; renamed to {id:?}"),
                    );
                }
                call.id = id;
                let result = result.map(|result| ToolResultMessage {
                    content: result.content,
                    is_error: result.is_error,
                    ..call.result().build()
                });
                answered.extend(result.map(Message::from));
            }
            if answer.tool_calls().next().is_some() {
                answer.stop_reason = StopReason::ToolUse;
            }
            messages.push(Message::Assistant(answer));
            messages.append(&mut answered);
        }
        messages
    }
}

/// Joins neighbouring messages of the same side.
fn joined(messages: Vec<Message>, format: Format) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (out.last_mut(), message) {
            (Some(Message::Assistant(last)), Message::Assistant(mut next)) => {
                last.content.append(&mut next.content);
                if next.stop_reason == StopReason::ToolUse {
                    last.stop_reason = next.stop_reason;
                }
            }
            (Some(Message::User(last)), Message::User(next)) if format == Format::Google => {
                let mut blocks = last.content.blocks();
                blocks.extend(next.content.blocks());
                last.content = UserContent::Blocks(blocks);
            }
            (_, message) => out.push(message),
        }
    }
    out
}
