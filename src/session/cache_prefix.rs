//! What a request consists of, so that the first part that two requests do not share can be
//! named. Pure.
//!
//! Texts are compared by length and by their first and last bytes: hashing a whole
//! conversation with every request would cost as much as encoding it. Edits of entries
//! change one of these.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::ai::{self, AssistantBlock, ContentBlock, Message, UserContent};

/// Bytes that are compared at both ends of a text.
const SAMPLE_BYTES: usize = 256;
/// Characters of a message that name it.
const PREVIEW_CHARS: usize = 40;

/// The parts of a request in the order in which providers read them, as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Prefix {
    tools: Vec<(String, u64)>,
    /// Of the system prompt, by name; `""` for its own text.
    sections: Vec<(String, u64)>,
    messages: Vec<u64>,
}

/// The first difference between a request and the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Difference {
    Tool {
        name: String,
        change: Change,
    },
    ToolOrder,
    Section {
        name: String,
        change: Change,
    },
    /// `number` counts messages from 1; `preview` is empty if the message is gone.
    Message {
        number: usize,
        role: &'static str,
        preview: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Removed,
    Changed,
}

impl Change {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Added => "was added",
            Self::Removed => "was removed",
            Self::Changed => "changed",
        }
    }
}

impl Prefix {
    /// The parts of the request that contains `messages`.
    pub(super) fn of(messages: &[Arc<Message>]) -> Self {
        let state = ai::system_state(messages);
        let tools = state.tools.iter().map(|tool| {
            let mut hash = FxHasher::default();
            sample(&tool.description, &mut hash);
            sample(&tool.parameters.to_string(), &mut hash);
            (tool.name.clone(), hash.finish())
        });
        let own = (String::new(), hash_of(&state.contents.join("\n\n")));
        let sections = state.sections.iter().map(|(name, text)| (name.clone(), hash_of(text)));
        Self {
            tools: tools.collect(),
            sections: std::iter::once(own).chain(sections).collect(),
            messages: conversation(messages).map(|message| hash_of_message(message)).collect(),
        }
    }

    /// The first part of `self` that `later`, the request with `messages`, does not begin
    /// with.
    pub(super) fn difference(&self, later: &Self, messages: &[Arc<Message>]) -> Option<Difference> {
        if self.tools != later.tools {
            let named = first_named(&self.tools, &later.tools);
            return Some(match named {
                Some((name, change)) => Difference::Tool { name, change },
                None => Difference::ToolOrder,
            });
        }
        if self.sections != later.sections {
            // Sections in another order are new sections at the end.
            let (name, change) =
                first_named(&self.sections, &later.sections).unwrap_or((String::new(), Change::Changed));
            return Some(Difference::Section { name, change });
        }
        let at = (0..self.messages.len()).find(|at| later.messages.get(*at) != Some(&self.messages[*at]))?;
        let (role, preview) =
            conversation(messages).nth(at).map(|message| describe(message)).unwrap_or_default();
        Some(Difference::Message { number: at + 1, role, preview })
    }
}

/// Messages other than changes of the system prompt.
fn conversation(messages: &[Arc<Message>]) -> impl Iterator<Item = &Arc<Message>> {
    messages.iter().filter(|message| !matches!(***message, Message::System(_)))
}

/// The first part that is not the same in both; `None` if only their order differs.
fn first_named(before: &[(String, u64)], now: &[(String, u64)]) -> Option<(String, Change)> {
    let find = |parts: &[(String, u64)], name: &str| {
        parts.iter().find(|(other, _)| other == name).map(|(_, hash)| *hash)
    };
    let gone_or_changed = before.iter().find_map(|(name, hash)| match find(now, name) {
        None => Some((name.clone(), Change::Removed)),
        Some(other) if other != *hash => Some((name.clone(), Change::Changed)),
        Some(_) => None,
    });
    let added = || now.iter().find(|(name, _)| find(before, name).is_none());
    gone_or_changed.or_else(|| added().map(|(name, _)| (name.clone(), Change::Added)))
}

fn hash_of(text: &str) -> u64 {
    let mut hash = FxHasher::default();
    sample(text, &mut hash);
    hash.finish()
}

fn sample(text: &str, hash: &mut FxHasher) {
    let bytes = text.as_bytes();
    bytes.len().hash(hash);
    bytes[..bytes.len().min(SAMPLE_BYTES)].hash(hash);
    bytes[bytes.len().saturating_sub(SAMPLE_BYTES)..].hash(hash);
}

fn hash_of_message(message: &Message) -> u64 {
    let mut hash = FxHasher::default();
    std::mem::discriminant(message).hash(&mut hash);
    match message {
        Message::System(_) => {}
        Message::User(user) => match &user.content {
            UserContent::Text(text) => sample(text, &mut hash),
            UserContent::Blocks(blocks) => blocks.iter().for_each(|block| hash_block(block, &mut hash)),
        },
        Message::Assistant(answer) => answer.content.iter().for_each(|block| {
            std::mem::discriminant(block).hash(&mut hash);
            match block {
                AssistantBlock::Text(text) => sample(&text.text, &mut hash),
                AssistantBlock::Thinking(thinking) => sample(&thinking.thinking, &mut hash),
                AssistantBlock::ToolCall(call) => {
                    (&call.id, &call.name).hash(&mut hash);
                    sample(&call.arguments.to_string(), &mut hash);
                }
                AssistantBlock::Unknown(_) => {}
            }
        }),
        Message::ToolResult(result) => {
            (&result.tool_call_id, result.is_error).hash(&mut hash);
            result.content.iter().for_each(|block| hash_block(block, &mut hash));
        }
    }
    hash.finish()
}

fn hash_block(block: &ContentBlock, hash: &mut FxHasher) {
    match block {
        ContentBlock::Image(image) => sample(&image.data, hash),
        other => sample(other.as_text().unwrap_or_default(), hash),
    }
}

/// The role of a message for the user, and its beginning on one line.
fn describe(message: &Message) -> (&'static str, String) {
    let (role, text) = match message {
        Message::User(user) => ("your message", user.content.text()),
        Message::Assistant(answer) => ("the answer", answer.texts().collect::<Vec<_>>().join(" ")),
        Message::ToolResult(result) => ("a tool result", ai::join_text(&result.content)),
        Message::System(_) => ("", String::new()),
    };
    let head: String = text.chars().take(20 * PREVIEW_CHARS).collect();
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let preview: String = line.chars().take(PREVIEW_CHARS).collect();
    (role, if preview.len() < line.len() { preview + "…" } else { preview })
}
