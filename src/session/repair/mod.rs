//! Plans the context edits that make a rejected conversation acceptable.
//!
//! Pure: turns the rejection and the conversation into context edits. The edited
//! conversation no longer contains the rejected part and still obeys the rules of
//! every API. The entries themselves stay, and so does the screen.
//!
//! Errors contain paths in the encoded request. To map a path back, the
//! conversation is encoded once more with a marker in place of each part.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::ai::{
    self, AssistantBlock, AssistantMessage, ContentBlock, Credential, Extra, ImageUrl, Message, Model,
    Refused, Rejection, Request, RequestPath, StreamOptions, ToolCall, UserContent, UserMessage,
};

use crate::util::counted;

use super::projection::Source;
use super::recovery::Breadth;
use super::store::{ContextEdit, Replacement};

/// The edits that make a conversation acceptable.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Repair {
    pub(super) edits: Vec<ContextEdit>,
    /// The removed content, for the user: `2 images`.
    pub(super) removed: String,
    /// Whether the repeated request must turn thinking off.
    pub(super) thinking_off: bool,
    /// The repeated request must not continue a partial answer.
    pub(super) no_continuation: bool,
}

impl Repair {
    /// Describes what was removed and why.
    pub(super) fn notice(&self, service: &str, error: &str) -> String {
        format!(
            "{service} rejected the conversation: {error}. Retrying without {}; the session file still contains it",
            self.removed
        )
    }
}

/// Smaller base64 data does not make a request too large.
const LARGE_BYTES: usize = 1 << 20;

/// The model that rejected a conversation, and the options of the request, which
/// affect the paths of messages.
pub(super) struct RefusedRequest {
    pub(super) model: Arc<Model>,
    pub(super) credential: Credential,
    pub(super) options: StreamOptions,
}

/// Decides what to remove from the conversation `sources`, which was rejected as
/// `refused` with the text `error`. `None` if no removal could help.
pub(super) fn plan(
    rejection: &Rejection,
    error: &str,
    sources: &[Source],
    refused: &RefusedRequest,
    breadth: Breadth,
) -> Option<Repair> {
    let mut draft = Draft::of(sources);
    let culprits = || match (&rejection.place, breadth) {
        (Some(place), Breadth::Named) => located(place, sources, refused),
        _ => Vec::new(),
    };
    let mut repair =
        Repair { edits: Vec::new(), removed: String::new(), thinking_off: false, no_continuation: false };
    let in_tool_loop = ending(sources.iter().map(|source| &*source.message)) == Ending::ToolLoop;
    repair.removed = match rejection.refused {
        Refused::Prefill => {
            repair.no_continuation = true;
            "the start of the answer".to_owned()
        }
        Refused::MissingThinking => {
            repair.thinking_off = true;
            "thinking, until the next prompt".to_owned()
        }
        Refused::Image => count(draft.drop_images(&draft.images_among(&culprits())), "image"),
        Refused::ImageUrl => {
            let images = draft.images_not_fetched(&culprits(), error, breadth);
            count(draft.drop_images(&images), "image")
        }
        Refused::ImageCount => {
            let images = draft.images();
            let limit = image_limit(error).filter(|limit| (1..images.len()).contains(limit));
            let kept = match breadth {
                Breadth::Named => limit.unwrap_or(images.len() / 2),
                Breadth::All => 0,
            };
            let n_dropped = images.len() - kept;
            count(draft.drop_images(&images[..n_dropped]), "image")
        }
        Refused::RequestSize => {
            let mut images = draft.images();
            images.retain(|at| draft.image_bytes(*at) > 0);
            let sizes: Vec<usize> = images.iter().map(|at| draft.image_bytes(*at)).collect();
            let total: usize = sizes.iter().sum();
            if total < LARGE_BYTES {
                return None;
            }
            let mut dropped = 0;
            let half = sizes.iter().take_while(|size| {
                let more = dropped < total / 2;
                dropped += **size;
                more
            });
            let n_dropped = if breadth == Breadth::All { images.len() } else { half.count() };
            count(draft.drop_images(&images[..n_dropped]), "image")
        }
        Refused::Thinking => {
            let named: BTreeSet<usize> = culprits().into_iter().map(|(source, _)| source).collect();
            let mut n_changed = draft.drop_thinking(|source| named.contains(&source));
            if n_changed == 0 {
                n_changed = draft.drop_thinking(|_| true);
            }
            // A tool loop whose thinking was removed cannot continue with thinking.
            repair.thinking_off = in_tool_loop && n_changed > 0;
            format!("the thinking of {}", count(n_changed, "answer"))
        }
        Refused::ToolExchange => {
            let ids = draft.exchange(error, &culprits(), breadth);
            count(draft.drop_calls(&ids), "tool call")
        }
        Refused::Blank => count(draft.drop_blank(&culprits()), "empty text"),
    };
    draft.settle(sources);
    repair.edits = draft.edits(sources);
    let is_enough = !repair.edits.is_empty() || repair.thinking_off || repair.no_continuation;
    (is_enough && draft.ending() != Ending::Nothing).then_some(repair)
}

fn count(n: usize, noun: &str) -> String {
    counted(n as u64, noun)
}

/// The maximum number of images in an error text: the number before the word "images",
/// otherwise the first one after it. Other numbers may be part of a path.
fn image_limit(text: &str) -> Option<usize> {
    let text = text.to_lowercase();
    let is_digit = |c: char| c.is_ascii_digit();
    let before = text.match_indices("image").find_map(|(at, _)| {
        let before = text[..at].trim_end();
        before[before.trim_end_matches(is_digit).len()..].parse().ok()
    });
    before.or_else(|| {
        let (_, behind) = text.rsplit_once("image")?;
        behind.split(|c| !is_digit(c)).find_map(|digits| digits.parse().ok())
    })
}

/// How a request with a conversation would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Nothing,
    /// A message of the user.
    Question,
    /// Results of calls.
    ToolLoop,
    /// An answer without calls.
    Answer,
}

fn ending<'a>(messages: impl DoubleEndedIterator<Item = &'a Message>) -> Ending {
    for message in messages.rev() {
        match message {
            Message::User(user) if !is_blank(user) => return Ending::Question,
            Message::Assistant(answer) if answer.is_failed() => {}
            // Calls without a result will get one.
            Message::Assistant(answer) if answer.tool_calls().next().is_some() => return Ending::ToolLoop,
            Message::Assistant(answer) if says_something(answer) => return Ending::Answer,
            // Results depend on their calls.
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) | Message::System(_) => {}
        }
    }
    Ending::Nothing
}

/// Whether an answer has content that requests include.
fn says_something(answer: &AssistantMessage) -> bool {
    !answer.is_failed()
        && answer.content.iter().any(|block| match block {
            AssistantBlock::Text(text) => text.text_signature.is_some() || !text.text.trim().is_empty(),
            AssistantBlock::Thinking(thinking) => {
                thinking.thinking_signature.is_some() || !thinking.thinking.trim().is_empty()
            }
            AssistantBlock::ToolCall(_) => true,
            AssistantBlock::Unknown(_) => false,
        })
}

fn is_blank(user: &UserMessage) -> bool {
    user.content.blocks().iter().all(|block| match block {
        ContentBlock::Text(text) => text.text.trim().is_empty(),
        ContentBlock::Image(_) | ContentBlock::ImageUrl(_) => false,
        ContentBlock::Unknown(_) => true,
    })
}

/// A part of the conversation: index of the source, index of the block in it.
type Part = (usize, usize);

/// The conversation being edited; `None` replaces removed messages.
struct Draft {
    messages: Vec<Option<Message>>,
    /// Which messages may be changed.
    editable: Vec<bool>,
}

impl Draft {
    fn of(sources: &[Source]) -> Self {
        Self {
            messages: sources.iter().map(|source| Some((*source.message).clone())).collect(),
            editable: sources.iter().map(|source| source.entry.is_some()).collect(),
        }
    }

    /// All removable images, oldest first.
    fn images(&self) -> Vec<Part> {
        let mut images = Vec::new();
        for (source, message) in self.messages.iter().enumerate().filter(|(at, _)| self.editable[*at]) {
            for (block, content) in message.iter().flat_map(Message::input_blocks).enumerate() {
                if content.is_image() {
                    images.push((source, block));
                }
            }
        }
        images
    }

    fn block(&self, (source, block): Part) -> Option<&ContentBlock> {
        self.messages.get(source)?.as_ref()?.input_blocks().get(block)
    }

    /// The images that a service could not fetch: those by URL among `parts`, otherwise
    /// those whose URL is in `error`, otherwise all by URL. If there are none
    /// by URL, the error was about another image.
    fn images_not_fetched(&self, parts: &[Part], error: &str, breadth: Breadth) -> Vec<Part> {
        let urls = |is_it: &dyn Fn(Part, &str) -> bool| -> Vec<Part> {
            let is_it = |part: &Part| match self.block(*part) {
                Some(ContentBlock::ImageUrl(image)) => is_it(*part, image.url()),
                Some(ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Unknown(_)) | None => {
                    false
                }
            };
            self.images().into_iter().filter(is_it).collect()
        };
        let found = match breadth {
            Breadth::Named => vec![
                urls(&|part, _| parts.contains(&part)),
                urls(&|_, url| names(error, url)),
                urls(&|_, url| begins_to_name(error, url)),
            ],
            Breadth::All => Vec::new(),
        };
        let all = [urls(&|_, _| true), self.images_among(parts)];
        found.into_iter().chain(all).find(|images| !images.is_empty()).unwrap_or_default()
    }

    /// The images among `parts`; all images if there are none.
    fn images_among(&self, parts: &[Part]) -> Vec<Part> {
        let images = self.images();
        let named: Vec<Part> = images.iter().filter(|image| parts.contains(image)).copied().collect();
        if named.is_empty() { images } else { named }
    }

    fn image_bytes(&self, part: Part) -> usize {
        match self.block(part) {
            Some(ContentBlock::Image(image)) => image.data.len(),
            Some(ContentBlock::Text(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_)) | None => 0,
        }
    }

    fn drop_images(&mut self, images: &[Part]) -> usize {
        for (source, block) in images {
            let blocks = self.messages[*source].as_mut().and_then(Message::input_blocks_mut);
            if let Some(block) = blocks.and_then(|blocks| blocks.get_mut(*block)) {
                *block = ContentBlock::text(match block {
                    // The model may have other ways to view it.
                    ContentBlock::ImageUrl(image) => {
                        format!("[Image removed: the provider could not use {}.]", image.url())
                    }
                    _ => "[Image removed: the provider rejected it.]".to_owned(),
                });
            }
        }
        images.len()
    }

    /// Removes thinking and signatures from answers; returns the number of answers.
    fn drop_thinking(&mut self, wanted: impl Fn(usize) -> bool) -> usize {
        let mut n_changed = 0;
        for (source, message) in self.messages.iter_mut().enumerate() {
            let Some(Message::Assistant(answer)) = message else { continue };
            if !wanted(source) || !self.editable[source] || answer.is_failed() {
                continue;
            }
            let before = answer.content.clone();
            answer.content.retain(|block| !matches!(block, AssistantBlock::Thinking(_)));
            for block in &mut answer.content {
                match block {
                    AssistantBlock::Text(text) => text.text_signature = None,
                    AssistantBlock::ToolCall(call) => call.thought_signature = None,
                    AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => {}
                }
            }
            n_changed += usize::from(answer.content != before);
        }
        n_changed
    }

    fn calls(&self) -> impl DoubleEndedIterator<Item = (usize, usize, &ToolCall)> {
        self.messages.iter().enumerate().flat_map(|(source, message)| {
            let content = match message {
                Some(Message::Assistant(answer)) if !answer.is_failed() => answer.content.as_slice(),
                _ => &[],
            };
            content.iter().enumerate().filter_map(move |(block, content)| match content {
                AssistantBlock::ToolCall(call) => Some((source, block, call)),
                _ => None,
            })
        })
    }

    /// The calls to remove: those whose id is in the error, those at its path,
    /// otherwise those of the newest answer that has any.
    fn exchange(&self, error: &str, parts: &[Part], breadth: Breadth) -> BTreeSet<String> {
        let ids = |wanted: &dyn Fn(usize, usize, &ToolCall) -> bool| -> BTreeSet<String> {
            let found = self.calls().filter(|(source, block, call)| wanted(*source, *block, call));
            found.map(|(.., call)| call.id.clone()).collect()
        };
        if breadth == Breadth::All {
            return ids(&|_, _, _| true);
        }
        let named = ids(&|_, _, call| mentions(error, &call.id));
        if !named.is_empty() {
            return named;
        }
        let mut placed = ids(&|source, block, _| parts.contains(&(source, block)));
        for (source, _) in parts {
            if let Some(Message::ToolResult(result)) = &self.messages[*source] {
                placed.insert(result.tool_call_id.clone());
            }
        }
        if !placed.is_empty() {
            return placed;
        }
        let newest = self.calls().next_back().map(|(source, ..)| source);
        ids(&|source, _, _| Some(source) == newest)
    }

    /// Removes calls and their results; returns the number of calls.
    fn drop_calls(&mut self, ids: &BTreeSet<String>) -> usize {
        for slot in &mut self.messages {
            match slot {
                Some(Message::Assistant(answer)) => answer.content.retain(
                    |block| !matches!(block, AssistantBlock::ToolCall(call) if ids.contains(&call.id)),
                ),
                Some(Message::ToolResult(result)) if ids.contains(&result.tool_call_id) => *slot = None,
                _ => {}
            }
        }
        ids.len()
    }

    /// Removes blank texts among `parts`; returns their number.
    fn drop_blank(&mut self, parts: &[Part]) -> usize {
        let mut n_dropped = 0;
        for (source, block) in parts.iter().rev() {
            if !self.editable[*source] {
                continue;
            }
            match &mut self.messages[*source] {
                Some(Message::Assistant(answer)) if *block < answer.content.len() => {
                    answer.content.remove(*block);
                    n_dropped += 1;
                }
                Some(message) => {
                    if let Some(blocks) = message.input_blocks_mut().filter(|blocks| *block < blocks.len()) {
                        blocks.remove(*block);
                        n_dropped += 1;
                    }
                }
                None => {}
            }
        }
        n_dropped
    }

    /// Removes messages that the edits left empty, and answers at the end that they
    /// left without a question.
    fn settle(&mut self, sources: &[Source]) {
        for (slot, source) in self.messages.iter_mut().zip(sources) {
            let is_empty = match &*slot {
                Some(Message::Assistant(answer)) => answer.content.is_empty(),
                Some(Message::User(user)) => {
                    matches!(&user.content, UserContent::Blocks(blocks) if blocks.is_empty())
                }
                Some(Message::ToolResult(_) | Message::System(_)) | None => false,
            };
            if is_empty && slot.as_ref() != Some(&source.message) {
                *slot = None;
            }
        }
        if ending(sources.iter().map(|source| &*source.message)) == Ending::Answer {
            return;
        }
        while self.ending() == Ending::Answer {
            let is_answer = |(slot, editable): &(&mut Option<Message>, &bool)| {
                **editable && matches!(slot, Some(Message::Assistant(answer)) if says_something(answer))
            };
            let Some((slot, _)) = self.messages.iter_mut().zip(&self.editable).rfind(is_answer) else {
                return;
            };
            *slot = None;
        }
    }

    fn ending(&self) -> Ending {
        ending(self.messages.iter().flatten())
    }

    fn edits(&self, sources: &[Source]) -> Vec<ContextEdit> {
        let changed = self.messages.iter().zip(sources).filter_map(|(after, source)| {
            if after.as_ref() == Some(&*source.message) {
                return None;
            }
            let content = after.as_ref().map(|message| match message {
                Message::Assistant(answer) => json!(answer.content),
                Message::User(user) => json!(user.content),
                Message::ToolResult(result) => json!(result.content),
                Message::System(_) => Value::Null,
            });
            let replacement = content.map(|content| Replacement { content, extra: Extra::new() });
            Some(ContextEdit { target_id: source.entry.clone()?, replacement, extra: Extra::new() })
        });
        changed.collect()
    }
}

/// Whether `text` contains the address `url`.
fn names(text: &str, url: &str) -> bool {
    let is_of_address = |c: char| c.is_alphanumeric() || "-._~:/?#@!$&*+,;=%".contains(c);
    text.match_indices(url).any(|(at, _)| {
        // The sentence may continue after it, but not the address.
        let rest = text[at + url.len()..].trim_start_matches(['.', ',', ':', ';']);
        !rest.starts_with(is_of_address)
    })
}

/// Whether `text` contains the beginning of `url`, because services truncate long ones.
fn begins_to_name(text: &str, url: &str) -> bool {
    const ENOUGH: usize = 60;
    url.char_indices().nth(ENOUGH).is_some_and(|(end, _)| text.contains(&url[..end]))
}

/// Whether `text` contains the call id `id`, possibly as it was sent.
fn mentions(text: &str, id: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let sent: String = id.chars().map(|c| if c == '|' || is_word(c) { c } else { '_' }).collect();
    let first = sent.split('|').next().unwrap_or_default();
    [id, first].into_iter().filter(|form| !form.is_empty()).any(|form| {
        text.match_indices(form).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + form.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    })
}

/// The parts of the conversation at `place` of its request.
fn located(place: &RequestPath, sources: &[Source], refused: &RefusedRequest) -> Vec<Part> {
    let request = Request {
        model: Arc::clone(&refused.model),
        credential: refused.credential.clone(),
        messages: sources
            .iter()
            .enumerate()
            .map(|(at, source)| Arc::new(marked(at, &source.message)))
            .collect(),
        options: refused.options.clone(),
    };
    let body = ai::request_body(&request).ok().and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let Some(body) = body else { return Vec::new() };
    let items = place.resolve(&body);
    let mut marks = items.into_iter().rev().map(|item| {
        let mut parts = Vec::new();
        collect_marks(item, &mut parts);
        parts
    });
    marks.find(|parts| !parts.is_empty()).unwrap_or_default()
}

const MARK: &str = "pi-part-";

fn mark(source: usize, block: usize) -> String {
    format!("{MARK}{source}-{block}.")
}

/// `message` with markers in place of all its content.
fn marked(source: usize, message: &Message) -> Message {
    let mut message = message.clone();
    let mark_blocks = |blocks: &mut Vec<ContentBlock>| {
        for (at, block) in blocks.iter_mut().enumerate() {
            match block {
                // Requests leave blank texts out, so they must be left out here too.
                ContentBlock::Text(text) if !text.text.trim().is_empty() => text.text = mark(source, at),
                // An image type that every service accepts, so that it stays an image.
                ContentBlock::Image(image) => {
                    image.data = mark(source, at);
                    "image/png".clone_into(&mut image.mime_type);
                }
                // The fragment after `#` changes neither the resource nor its type.
                ContentBlock::ImageUrl(image) => {
                    if let Ok(mut marked) = ImageUrl::new(format!("{}#{}", image.url(), mark(source, at))) {
                        marked.mime_type = image.mime_type.take();
                        *image = marked;
                    }
                }
                ContentBlock::Text(_) | ContentBlock::Unknown(_) => {}
            }
        }
    };
    match &mut message {
        Message::System(_) => {}
        Message::User(user) => match &mut user.content {
            UserContent::Text(text) if !text.trim().is_empty() => *text = mark(source, 0),
            UserContent::Text(_) => {}
            UserContent::Blocks(blocks) => mark_blocks(blocks),
        },
        Message::ToolResult(result) => mark_blocks(&mut Arc::make_mut(result).content),
        Message::Assistant(answer) => {
            for (at, block) in answer.content.iter_mut().enumerate() {
                match block {
                    AssistantBlock::Text(text) if !text.text.trim().is_empty() => {
                        text.text = mark(source, at);
                    }
                    AssistantBlock::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
                        thinking.thinking = mark(source, at);
                    }
                    AssistantBlock::ToolCall(call) => call.arguments = json!({ "mark": mark(source, at) }),
                    AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => {}
                }
            }
        }
    }
    message
}

fn collect_marks(value: &Value, parts: &mut Vec<Part>) {
    match value {
        Value::String(text) => parts.extend(text.split(MARK).skip(1).filter_map(|rest| {
            let (source, rest) = rest.split_once('-')?;
            let (block, _) = rest.split_once('.')?;
            Some((source.parse().ok()?, block.parse().ok()?))
        })),
        Value::Array(items) => items.iter().for_each(|item| collect_marks(item, parts)),
        Value::Object(members) => members.values().for_each(|member| collect_marks(member, parts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
