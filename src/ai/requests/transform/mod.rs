//! Converts the conversation into the content of a request.
//!
//! A conversation can contain answers of other models, failed turns, calls without
//! a result and several system messages. [`prompt`] converts it into a form every
//! API accepts: one system text, the active tools, and turns in which every
//! tool call owns exactly one result. Later system changes are
//! part of the start, or a turn of their own if the model reads those. The result
//! borrows from the request; the conversation itself never changes. The codecs add
//! the requirements of their wire formats.

mod room;
mod system;

use crate::ai::models::{Updates, image_limits, image_types};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::request::Request;
use crate::ai::messages::{
    AssistantBlock, AssistantMessage, ContentBlock, Image, ImageUrl, Message, Thinking, ToolDeclaration,
    ToolResultMessage, UserContent,
};
use crate::util::hash::fnv1a;

use system::Placement;

pub use room::{answer_limit, fits_with_shorter_answer, is_answer_limit_lowered, least_answer};
pub(in crate::ai) use system::SystemUpdate;
pub use system::{SystemState, system_state};

/// The content of a request.
#[derive(Debug)]
pub(in crate::ai) struct Prompt<'a> {
    /// Empty if there is none.
    pub(in crate::ai) system: String,
    /// The tools declared at the start.
    pub(in crate::ai) tools: Vec<Cow<'a, ToolDeclaration>>,
    /// No tool is active: `tools` only describes earlier calls.
    pub(in crate::ai) tools_are_history: bool,
    /// The system messages within the turns. Less than requested if the
    /// conversation has no position for more.
    pub(in crate::ai) updates: Updates,
    pub(in crate::ai) turns: Vec<Turn<'a>>,
    /// Maximum length of the answer that fits model and window.
    pub(in crate::ai) max_tokens: u64,
}

impl Prompt<'_> {
    pub(in crate::ai) fn has_tool_calls(&self) -> bool {
        self.turns.iter().any(|turn| matches!(turn, Turn::Assistant(turn) if !turn.results.is_empty()))
    }

    /// The tools from the start, then those added between the turns.
    pub(in crate::ai) fn all_tools(&self) -> impl Iterator<Item = &ToolDeclaration> {
        let added = self.turns.iter().flat_map(|turn| match turn {
            Turn::System(update) => update.tools_added.as_slice(),
            Turn::User(_) | Turn::Assistant(_) => &[],
        });
        self.tools.iter().map(AsRef::as_ref).chain(added.copied())
    }

    /// The last declaration of the tool `name`.
    pub(in crate::ai) fn declared(&self, name: &str) -> Option<&ToolDeclaration> {
        self.all_tools().filter(|tool| tool.name == name).last()
    }

    /// About the length of its JSON in bytes, more often too much than too little.
    pub(in crate::ai) fn json_bytes(&self) -> usize {
        /// Names of fields, an id, and what else a turn or block has.
        const AROUND: usize = 160;
        let content = |content: &[Content<'_>]| -> usize {
            let sizes = content.iter().map(|content| match content {
                Content::Text(text) => text.len(),
                Content::Image(Picture::Data(image)) => image.data.len(),
                Content::Image(Picture::At(_)) => AROUND,
            });
            sizes.sum::<usize>() + AROUND * content.len()
        };
        let turns = self.turns.iter().map(|turn| match turn {
            Turn::System(update) => update.text.len() + AROUND,
            Turn::User(user) => content(user),
            Turn::Assistant(turn) => {
                let blocks = turn.blocks.iter().map(|block| match block {
                    Block::Text { text, signature } => text.len() + signature.map_or(0, str::len),
                    Block::Thinking(thinking) => {
                        let signature = thinking.thinking_signature.as_deref();
                        thinking.thinking.len() + signature.map_or(0, str::len)
                    }
                    Block::ToolCall { .. } => AROUND,
                });
                let results = turn.results.iter().map(|result| content(&result.content) + AROUND);
                blocks.sum::<usize>() + AROUND * turn.blocks.len() + results.sum::<usize>()
            }
        });
        let texts = self.system.len() + turns.sum::<usize>();
        // Line breaks and quotes take two bytes; declarations of tools have a length too.
        texts + texts / 16 + (16 << 10)
    }

    pub(in crate::ai) fn has_images(&self) -> bool {
        let image = |content: &Content<'_>| matches!(content, Content::Image(_));
        self.turns.iter().any(|turn| match turn {
            Turn::System(_) => false,
            Turn::User(content) => content.iter().any(image),
            Turn::Assistant(turn) => turn.results.iter().any(|result| result.content.iter().any(image)),
        })
    }
}

#[derive(Debug)]
pub(in crate::ai) enum Turn<'a> {
    /// Never empty.
    User(Vec<Content<'a>>),
    Assistant(AssistantTurn<'a>),
    /// Only for models that read system messages between the turns.
    System(SystemUpdate<'a>),
}

/// An answer and the results of its calls: one per call, in their order.
#[derive(Debug)]
pub(in crate::ai) struct AssistantTurn<'a> {
    /// Never empty; contains thinking only if the same model wrote it.
    pub(in crate::ai) blocks: Vec<Block<'a>>,
    pub(in crate::ai) results: Vec<ToolResult<'a>>,
    /// The thinking effort that was set for the same model between the turns.
    pub(in crate::ai) effort: Option<&'a str>,
}

#[derive(Debug)]
pub(in crate::ai) enum Content<'a> {
    /// Never blank.
    Text(Cow<'a, str>),
    Image(Picture<'a>),
}

#[derive(Debug, Clone, Copy)]
pub(in crate::ai) enum Picture<'a> {
    /// Of a type that the API accepts, and not empty.
    Data(&'a Image),
    /// At an address that the service fetches, of a type that the API accepts if
    /// the type is known.
    At(&'a ImageUrl),
}

#[derive(Debug)]
pub(in crate::ai) enum Block<'a> {
    /// Blank only with a signature.
    Text {
        text: &'a str,
        /// By the same model, not empty; the same holds for signatures of calls.
        signature: Option<&'a str>,
    },
    Thinking(&'a Thinking),
    ToolCall {
        id: String,
        /// Letters, digits, `_` and `-`, unless a tool with this name was declared.
        name: &'a str,
        arguments: Cow<'a, Value>,
        signature: Option<&'a str>,
    },
}

#[derive(Debug)]
pub(in crate::ai) struct ToolResult<'a> {
    pub(in crate::ai) id: String,
    pub(in crate::ai) name: &'a str,
    /// Never empty.
    pub(in crate::ai) content: Vec<Content<'a>>,
    pub(in crate::ai) is_error: bool,
}

/// The tool call ids an API accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum IdRule {
    /// Letters, digits, `_` and `-`, at most this many.
    Word { max: usize },
    /// Like [`Self::Word`], also for ids of the same model: the
    /// server rejects some ids it created.
    StrictWord { max: usize },
    /// Exactly nine letters and digits.
    Nine,
    /// Like [`Self::Word`], but an id may have two parts, `call|item`. The first
    /// links call and result; it must be unique and valid. The second
    /// is kept only if the same model created it and the first part is unchanged.
    CallAndItem { max: usize },
}

/// Builds the prompt of `request` for an API with these `ids`, and a model that
/// reads these `updates`.
pub(in crate::ai) fn prompt(request: &Request, ids: IdRule, updates: Updates) -> Prompt<'_> {
    let placement = Placement::of(&request.messages, updates);
    let mut turns = turns(request, ids, &placement);
    // Most services reject a conversation that does not begin with a user message.
    if !matches!(turns.first(), Some(Turn::User(_))) {
        turns.insert(0, Turn::User(vec![Content::Text(Cow::Borrowed(NO_TEXT))]));
    }
    let tools_are_history = !placement.has_tools;
    let tools = if placement.tools.is_empty() {
        past_tools(&turns, &placement.declared)
    } else {
        placement.tools.iter().copied().map(Cow::Borrowed).collect()
    };
    let updates = placement.updates;
    let mut prompt =
        Prompt { system: placement.system, tools, tools_are_history, updates, turns, max_tokens: 0 };
    prompt.max_tokens = room::answer_tokens(room::wanted(request), &request.model, &prompt);
    prompt
}

/// The text used where the API requires one and there is none.
pub(in crate::ai) const NO_TEXT: &str = "(no text)";

/// Declarations of the tools in earlier calls, for servers that reject
/// calls without declarations.
fn past_tools<'a>(
    turns: &[Turn<'a>],
    declared: &HashMap<&str, &'a ToolDeclaration>,
) -> Vec<Cow<'a, ToolDeclaration>> {
    let mut tools: Vec<Cow<'a, ToolDeclaration>> = Vec::new();
    for turn in turns {
        let Turn::Assistant(turn) = turn else { continue };
        for result in &turn.results {
            if tools.iter().any(|tool| tool.name == result.name) {
                continue;
            }
            tools.push(match declared.get(result.name) {
                Some(tool) => Cow::Borrowed(*tool),
                None => Cow::Owned(ToolDeclaration {
                    name: result.name.to_owned(),
                    description: String::new(),
                    parameters: serde_json::json!({"type": "object", "properties": {}}),
                    constrained_sampling: None,
                    extra: Map::new(),
                }),
            });
        }
    }
    tools
}

fn turns<'a>(request: &'a Request, rule: IdRule, placement: &Placement<'a>) -> Vec<Turn<'a>> {
    let messages = &request.messages;
    let declared = &placement.declared;
    let mut ids = Ids::new(rule);
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match &**message {
            Message::User(user) => {
                let content = match &user.content {
                    UserContent::Text(text) if text.trim().is_empty() => Vec::new(),
                    UserContent::Text(text) => vec![Content::Text(Cow::Borrowed(text))],
                    UserContent::Blocks(blocks) => content(blocks, request, USER_IMAGE),
                };
                if !content.is_empty() {
                    turns.push(Turn::User(content));
                }
            }
            Message::Assistant(answer) if !answer.is_failed() => {
                let results = results_after(&messages[at + 1..]);
                let turn = assistant_turn(answer, results, request, &mut ids, declared);
                turns.extend(turn.map(Turn::Assistant));
            }
            Message::System(system) => turns.extend(placement.update(at, system).map(Turn::System)),
            // Failed answers are not sent again, and neither are their results.
            Message::Assistant(_) | Message::ToolResult(_) => {}
        }
    }
    turns
}

/// The tool results before the next answer, skipping user messages.
fn results_after(messages: &[Arc<Message>]) -> Vec<&ToolResultMessage> {
    let until_answer = messages.iter().take_while(|message| !matches!(***message, Message::Assistant(_)));
    let results = until_answer.filter_map(|message| match &**message {
        Message::ToolResult(result) => Some(&**result),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    results.collect()
}

/// `None` if nothing is left of the answer.
fn assistant_turn<'a>(
    answer: &'a AssistantMessage,
    mut results: Vec<&'a ToolResultMessage>,
    request: &Request,
    ids: &mut Ids,
    declared: &HashMap<&str, &ToolDeclaration>,
) -> Option<AssistantTurn<'a>> {
    let model = &request.model;
    let same_model = answer.provider == model.provider && answer.api == model.api && answer.model == model.id;
    // Only the model that created a signature can read it.
    let signature = |signed: &'a Option<String>| {
        signed.as_deref().filter(|signature| same_model && !signature.is_empty())
    };
    let effort = answer.provider_thinking_level.as_deref().filter(|_| same_model);
    let mut turn = AssistantTurn { blocks: Vec::new(), results: Vec::new(), effort };
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) => {
                let signature = signature(&text.text_signature);
                if signature.is_some() || !text.text.trim().is_empty() {
                    turn.blocks.push(Block::Text { text: &text.text, signature });
                }
            }
            AssistantBlock::Thinking(thinking) if same_model && is_worth_replaying(thinking) => {
                turn.blocks.push(Block::Thinking(thinking));
            }
            AssistantBlock::ToolCall(call) => {
                let id = ids.assign(&call.id, same_model);
                let answered = results.iter().position(|result| result.tool_call_id == call.id);
                let result = answered.map(|at| results.remove(at));
                let name = sendable_name(&call.name, declared);
                turn.results.push(tool_result(id.clone(), name, result, request));
                let arguments = call.sent_arguments();
                let signature = signature(&call.thought_signature);
                turn.blocks.push(Block::ToolCall { id, name, arguments, signature });
            }
            AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => {}
        }
    }
    (!turn.blocks.is_empty()).then_some(turn)
}

/// A signed block counts even if it has no text, because the server keeps its
/// content.
fn is_worth_replaying(thinking: &Thinking) -> bool {
    let signed = thinking.thinking_signature.as_ref().is_some_and(|signature| !signature.is_empty());
    signed || thinking.redacted || !thinking.thinking.trim().is_empty()
}

/// The name to send for the tool `name`. Models invent names that no API
/// accepts, and one such call would make the service reject every later request;
/// the call's result describes the error.
fn sendable_name<'a>(name: &'a str, declared: &HashMap<&str, &ToolDeclaration>) -> &'a str {
    const MAX_NAME: usize = 64;
    let is_fine = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_word);
    if is_fine || declared.contains_key(name) { name } else { "unknown_tool" }
}

fn tool_result<'a>(
    id: String,
    name: &'a str,
    result: Option<&'a ToolResultMessage>,
    request: &Request,
) -> ToolResult<'a> {
    let Some(result) = result else {
        let content = vec![Content::Text(Cow::Borrowed("No result provided"))];
        return ToolResult { id, name, content, is_error: true };
    };
    let mut content = content(&result.content, request, TOOL_IMAGE);
    if content.is_empty() {
        content.push(Content::Text(Cow::Borrowed("(no tool output)")));
    }
    ToolResult { id, name, content, is_error: result.is_error }
}

/// The texts that replace images which are not sent: for a model that only reads
/// text, and for an image of a type the API does not accept.
struct Placeholders {
    no_images: &'static str,
    other_type: &'static str,
}

const USER_IMAGE: Placeholders = Placeholders {
    no_images: "(image omitted: model does not support images)",
    other_type: "(image omitted: model does not support its type)",
};
const TOOL_IMAGE: Placeholders = Placeholders {
    no_images: "(tool image omitted: model does not support images)",
    other_type: "(tool image omitted: model does not support its type)",
};

/// Replaces images that the user's settings block, as in the original.
const BLOCKED_IMAGE: &str = "Image reading is disabled.";

/// Drops blank texts and unknown blocks; replaces consecutive images of types that
/// the API does not accept with one placeholder, and an image the service does not
/// fetch with its address as text.
fn content<'a>(
    blocks: &'a [ContentBlock],
    request: &Request,
    placeholders: Placeholders,
) -> Vec<Content<'a>> {
    let model = &request.model;
    let images = if request.shows_images() { image_types(model) } else { &[] };
    let mut content = Vec::with_capacity(blocks.len());
    let mut in_run = false;
    let placeholder = match images {
        _ if request.options.without_images => BLOCKED_IMAGE,
        [] => placeholders.no_images,
        _ => placeholders.other_type,
    };
    for block in blocks {
        match block {
            ContentBlock::Text(text) if !text.text.trim().is_empty() => {
                content.push(Content::Text(Cow::Borrowed(text.text.as_str())));
                in_run = false;
            }
            ContentBlock::Image(image)
                if images.contains(&image.mime_type.as_str()) && !image.data.is_empty() =>
            {
                content.push(Content::Image(Picture::Data(image)));
                in_run = false;
            }
            ContentBlock::ImageUrl(image) if !images.is_empty() => {
                content.push(if image_limits::fetches(model, image) {
                    Content::Image(Picture::At(image))
                } else {
                    Content::Text(Cow::Owned(image.label()))
                });
                in_run = false;
            }
            ContentBlock::Image(_) | ContentBlock::ImageUrl(_) if !in_run => {
                content.push(Content::Text(Cow::Borrowed(placeholder)));
                in_run = true;
            }
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::ImageUrl(_)
            | ContentBlock::Unknown(_) => {}
        }
    }
    content
}

/// Gives every call of a request a unique id that the API accepts.
#[derive(Debug)]
pub(in crate::ai) struct Ids {
    rule: IdRule,
    used: HashSet<String>,
    calls: u64,
}

impl Ids {
    pub(in crate::ai) fn new(rule: IdRule) -> Self {
        Self { rule, used: HashSet::new(), calls: 0 }
    }

    /// The id to send for `id`. The server that created it receives it unchanged,
    /// unless an earlier call already has it.
    pub(in crate::ai) fn assign(&mut self, id: &str, same_model: bool) -> String {
        let IdRule::CallAndItem { max } = self.rule else { return self.assign_part(id, same_model) };
        let (call, item) = id.split_once('|').map_or((id, None), |(call, item)| (call, Some(item)));
        let assigned = self.assign_part(call, same_model && call.len() <= max);
        match item.filter(|_| same_model && assigned == call) {
            Some(item) => format!("{assigned}|{item}"),
            None => assigned,
        }
    }

    fn assign_part(&mut self, id: &str, same_model: bool) -> String {
        self.calls += 1;
        let is_kept = same_model && !id.is_empty() && !matches!(self.rule, IdRule::StrictWord { .. });
        let mut candidate = if is_kept { id.to_owned() } else { self.rule.fit(id) };
        let mut salt = 0;
        while candidate.is_empty() || self.used.contains(&candidate) {
            // Counting calls gives a call the same id in every later request.
            candidate = self.rule.fresh(id, self.calls + (salt << 32));
            salt += 1;
        }
        self.used.insert(candidate.clone());
        candidate
    }
}

impl IdRule {
    /// `id` itself if allowed, otherwise an id derived from it.
    fn fit(self, id: &str) -> String {
        match self {
            Self::Word { max } | Self::StrictWord { max } | Self::CallAndItem { max } => {
                let word: String = id.chars().map(|char| if is_word(char) { char } else { '_' }).collect();
                if word.len() <= max { word } else { self.fresh(id, 0) }
            }
            Self::Nine if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                id.to_owned()
            }
            Self::Nine => self.fresh(id, 0),
        }
    }

    /// An allowed id that depends on `id` and `salt`.
    fn fresh(self, id: &str, salt: u64) -> String {
        // Stable between versions, so that a provider's cache of a conversation survives an update.
        let hash = fnv1a(id.bytes().chain(salt.to_le_bytes()));
        match self {
            Self::Word { max } | Self::StrictWord { max } | Self::CallAndItem { max } => {
                let hash = format!("{hash:016x}");
                let keep = max.saturating_sub(hash.len() + 1);
                let word = id.chars().map(|char| if is_word(char) { char } else { '_' }).take(keep);
                word.chain(['_']).chain(hash.chars()).collect()
            }
            Self::Nine => {
                const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
                let mut rest = hash;
                let digits = (0..9).map(|_| {
                    let digit = DIGITS[(rest % 36) as usize];
                    rest /= 36;
                    char::from(digit)
                });
                digits.collect()
            }
        }
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || char == '-'
}

#[cfg(test)]
mod tests;
