//! What the system messages of a conversation add up to, and what of them may
//! stay where it was said.
//!
//! Every API has one place for instructions and tools, at the start of a request.
//! To change what stands there is to change the start, and with it all that the
//! service had kept of the conversation. Models that read instructions, or even
//! tools, between the turns get later changes there ([`Updates`]), so that what
//! was sent once stays as it was. For all others the last word counts, said at
//! the start.

use crate::ai::models::Updates;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::ai::messages::{Message, SystemContent, SystemMessage, ToolDeclaration, join_text};

/// What the system messages of a conversation add up to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SystemState {
    /// Texts of the messages themselves, in order.
    pub contents: Vec<String>,
    /// Named sections in force, in the order their names were first seen.
    pub sections: Vec<(String, String)>,
    /// Tools in force, in the order they were added.
    pub tools: Vec<ToolDeclaration>,
}

impl SystemState {
    /// The system prompt: contents, then sections, separated by blank lines.
    pub fn prompt(&self) -> String {
        let sections = self.sections.iter().map(|(_, text)| text.as_str());
        join_parts(self.contents.iter().map(String::as_str).chain(sections))
    }
}

/// Replays the system messages among `messages`: the last word on each section
/// and tool counts.
pub fn system_state(messages: &[Arc<Message>]) -> SystemState {
    let replay = Replay::of(messages);
    SystemState {
        contents: replay.contents.iter().map(ToString::to_string).collect(),
        sections: replay.live_sections().map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        tools: replay.tools.into_iter().cloned().collect(),
    }
}

/// A change of the system, said in its place. Never empty.
#[derive(Debug, Default)]
pub(in crate::ai) struct SystemUpdate<'a> {
    /// Empty if only tools change.
    pub(in crate::ai) text: String,
    /// Empty unless tools are declared between the turns.
    pub(in crate::ai) tools_added: Vec<&'a ToolDeclaration>,
    /// The same; never one of those added.
    pub(in crate::ai) tools_removed: Vec<&'a str>,
}

/// Which system messages make up the start of a request, and which stay in place.
#[derive(Debug)]
pub(super) struct Placement<'a> {
    pub(super) system: String,
    /// The tools declared at the start.
    pub(super) tools: Vec<&'a ToolDeclaration>,
    /// Whether any tool is in force at the end.
    pub(super) has_tools: bool,
    /// What the model reads between the turns of this conversation.
    pub(super) updates: Updates,
    /// Every declaration there ever was, the latest of each name.
    pub(super) declared: HashMap<&'a str, &'a ToolDeclaration>,
    /// Messages from here on say their texts in place.
    texts_from: usize,
    /// Messages from here on say their tools in place.
    tools_from: usize,
}

impl<'a> Placement<'a> {
    pub(super) fn of(messages: &'a [Arc<Message>], updates: Updates) -> Self {
        let whole = Replay::of(messages);
        let has_tools = !whole.tools.is_empty();
        let end = messages.len();
        if updates == Updates::None {
            return Self {
                system: whole.prompt(),
                tools: whole.tools,
                has_tools,
                updates,
                declared: whole.declared,
                texts_from: end,
                tools_from: end,
            };
        }
        let start = first_system_messages(messages);
        let head = Replay::of(&messages[..start]);
        // A conversation that began without tools has no place to add them to.
        let updates = if head.tools.is_empty() { Updates::Texts } else { updates };
        let tools_from = match updates {
            Updates::None | Updates::Texts => end,
            Updates::Additions => last_change_of_tools(messages).map_or(start, |at| start.max(at + 1)),
            Updates::Changes => start,
        };
        Self {
            system: head.prompt(),
            tools: Replay::of(&messages[..tools_from]).tools,
            has_tools,
            updates,
            declared: whole.declared,
            texts_from: start,
            tools_from,
        }
    }

    /// What the message `at` says in its place, if anything.
    pub(super) fn update(&self, at: usize, message: &'a SystemMessage) -> Option<SystemUpdate<'a>> {
        let mut update = SystemUpdate::default();
        if at >= self.texts_from {
            update.text = update_text(message);
        }
        if at >= self.tools_from {
            update.tools_added = message.tools_added.iter().collect();
            let removed = message.tools_removed.iter().map(|tool| tool.name.as_str());
            update.tools_removed =
                removed.filter(|name| message.tools_added.iter().all(|added| added.name != *name)).collect();
        }
        let is_empty =
            update.text.is_empty() && update.tools_added.is_empty() && update.tools_removed.is_empty();
        (!is_empty).then_some(update)
    }
}

/// The end of the first system messages: those that open the conversation, or,
/// if it came from elsewhere without any, the first that were added to it.
fn first_system_messages(messages: &[Arc<Message>]) -> usize {
    let is_system = |message: &Arc<Message>| matches!(**message, Message::System(_));
    let Some(first) = messages.iter().position(is_system) else { return messages.len() };
    let n_first = messages[first..].iter().take_while(|message| is_system(message)).count();
    first + n_first
}

/// The last message that takes a tool away or declares a known one anew.
fn last_change_of_tools(messages: &[Arc<Message>]) -> Option<usize> {
    let mut declared: Vec<&str> = Vec::new();
    let mut last = None;
    for (at, message) in messages.iter().enumerate() {
        let Message::System(system) = &**message else { continue };
        if !system.tools_removed.is_empty() {
            last = Some(at);
        }
        for tool in &system.tools_added {
            if declared.contains(&tool.name.as_str()) {
                last = Some(at);
            }
            declared.push(&tool.name);
        }
    }
    last
}

/// The instructions of a later message, as the model reads them in its place.
fn update_text(message: &SystemMessage) -> String {
    let content = text_of(&message.content);
    let sections = message.sections.iter().flatten().map(|(name, text)| match text.as_str() {
        Some(text) => format!("The part \"{name}\" of the system prompt now reads:\n\n{text}"),
        None => format!("The part \"{name}\" of the system prompt no longer applies."),
    });
    let parts: Vec<Cow<'_, str>> = std::iter::once(content).chain(sections.map(Cow::Owned)).collect();
    join_parts(parts.iter().map(AsRef::as_ref))
}

fn text_of(content: &SystemContent) -> Cow<'_, str> {
    match content {
        SystemContent::Text(text) => Cow::Borrowed(text.as_str()),
        SystemContent::Blocks(blocks) => Cow::Owned(join_text(blocks)),
    }
}

/// The system messages, replayed.
#[derive(Default)]
struct Replay<'a> {
    contents: Vec<Cow<'a, str>>,
    /// `None`: removed, but its place is kept for when it comes back.
    sections: Vec<(&'a str, Option<&'a str>)>,
    tools: Vec<&'a ToolDeclaration>,
    /// Every declaration there ever was, the latest of each name.
    declared: HashMap<&'a str, &'a ToolDeclaration>,
}

impl<'a> Replay<'a> {
    fn of(messages: &'a [Arc<Message>]) -> Self {
        let mut replay = Self::default();
        for message in messages {
            let Message::System(system) = &**message else { continue };
            let content = text_of(&system.content);
            if !content.trim().is_empty() {
                replay.contents.push(content);
            }
            for (name, text) in system.sections.iter().flatten() {
                let text = text.as_str();
                match replay.sections.iter_mut().find(|(known, _)| known == name) {
                    Some((_, slot)) => *slot = text,
                    None => replay.sections.push((name, text)),
                }
            }
            for removed in &system.tools_removed {
                replay.tools.retain(|tool| tool.name != removed.name);
            }
            for tool in &system.tools_added {
                replay.declared.insert(&tool.name, tool);
                match replay.tools.iter_mut().find(|known| known.name == tool.name) {
                    Some(slot) => *slot = tool,
                    None => replay.tools.push(tool),
                }
            }
        }
        replay
    }

    fn live_sections(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.sections.iter().filter_map(|(name, text)| text.map(|text| (*name, text)))
    }

    fn prompt(&self) -> String {
        let sections = self.live_sections().map(|(_, text)| text);
        join_parts(self.contents.iter().map(AsRef::as_ref).chain(sections))
    }
}

fn join_parts<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = parts.filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}
