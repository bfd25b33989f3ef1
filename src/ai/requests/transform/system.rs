//! The combined effect of a conversation's system messages, and which of them keep
//! their position.
//!
//! Every API has one position for instructions and tools, at the start of a request.
//! A change there invalidates the service's whole cache of the conversation. Models
//! that read instructions, or even tools, between the turns receive later changes
//! there ([`Updates`]), so that the earlier part of the request stays unchanged. For
//! all others, the latest version is sent at the start.

use crate::ai::models::Updates;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::ai::messages::{Message, SystemContent, SystemMessage, ToolDeclaration, join_text};

/// The combined effect of a conversation's system messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SystemState {
    /// Texts of the messages themselves, in order.
    pub contents: Vec<String>,
    /// Active named sections, in the order their names first appeared.
    pub sections: Vec<(String, String)>,
    /// Active tools, in the order they were added.
    pub tools: Vec<ToolDeclaration>,
}

impl SystemState {
    /// The system prompt: contents, then sections, separated by blank lines.
    pub fn prompt(&self) -> String {
        let sections = self.sections.iter().map(|(_, text)| text.as_str());
        join_parts(self.contents.iter().map(String::as_str).chain(sections))
    }
}

/// Replays the system messages among `messages`: the latest version of each section
/// and tool wins.
pub fn system_state(messages: &[Arc<Message>]) -> SystemState {
    let replay = Replay::of(messages);
    SystemState {
        contents: replay.contents.iter().map(ToString::to_string).collect(),
        sections: replay.live_sections().map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        tools: replay.tools.into_iter().cloned().collect(),
    }
}

/// A system change that keeps its position. Never empty.
#[derive(Debug, Default)]
pub(in crate::ai) struct SystemUpdate<'a> {
    /// Empty if only tools change.
    pub(in crate::ai) text: String,
    /// Empty unless tools are declared between the turns.
    pub(in crate::ai) tools_added: Vec<&'a ToolDeclaration>,
    /// Like `tools_added`; never contains one of those.
    pub(in crate::ai) tools_removed: Vec<&'a str>,
}

/// Which system messages form the start of a request, and which keep their position.
#[derive(Debug)]
pub(super) struct Placement<'a> {
    pub(super) system: String,
    /// The tools declared at the start.
    pub(super) tools: Vec<&'a ToolDeclaration>,
    /// Whether any tool is active at the end.
    pub(super) has_tools: bool,
    /// The system messages that the model reads between the turns of this conversation.
    pub(super) updates: Updates,
    /// The latest declaration of every tool name.
    pub(super) declared: HashMap<&'a str, &'a ToolDeclaration>,
    /// The texts of messages from this index on keep their position.
    texts_from: usize,
    /// The tools of messages from this index on keep their position.
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
        // A conversation that began without tools has no position to add them.
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

    /// The change that message `at` makes in its position, if any.
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
/// if it was imported without any, the first that were added to it.
fn first_system_messages(messages: &[Arc<Message>]) -> usize {
    let is_system = |message: &Arc<Message>| matches!(**message, Message::System(_));
    let Some(first) = messages.iter().position(is_system) else { return messages.len() };
    let n_first = messages[first..].iter().take_while(|message| is_system(message)).count();
    first + n_first
}

/// The last message that removes a tool or declares a known one again.
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

/// The instructions of a later message, as the model reads them in that position.
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
    /// `None`: removed, but its position is kept in case it returns.
    sections: Vec<(&'a str, Option<&'a str>)>,
    tools: Vec<&'a ToolDeclaration>,
    /// The latest declaration of every tool name.
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
