//! Selects the parts of a conversation to write, for every format.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Format;
use super::draft::{STRAY, stray_result};
use super::json::ONLY_ADDRESS;
use super::report::Report;
use crate::ai::api;
use crate::ai::messages::{
    AssistantBlock, AssistantMessage, ContentBlock, Extra, ImageUrl, Message, SystemContent, Thinking,
    ToolCall, ToolDeclaration, ToolResultMessage, UserContent, join_text,
};
use crate::ai::requests::{Ids, system_state};

/// A conversation ready to write.
pub(super) struct Plan<'a> {
    pub(super) format: Format,
    /// The model of the last answer, if its API has this format.
    pub(super) model: Option<&'a str>,
    /// The prompt before the conversation; empty if there is none.
    pub(super) system: String,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) report: Report,
    tools: Vec<ToolDeclaration>,
}

pub(super) enum Step<'a> {
    /// A later addition to the prompt.
    System {
        place: String,
        text: String,
    },
    /// Never empty.
    User {
        place: String,
        content: Vec<Cow<'a, ContentBlock>>,
        name: Option<&'a str>,
    },
    Answer(Answer<'a>),
}

/// Never empty.
pub(super) struct Answer<'a> {
    pub(super) place: String,
    pub(super) name: Option<&'a str>,
    pub(super) blocks: Vec<Block<'a>>,
    /// The available results, in the order of their calls.
    pub(super) results: Vec<Outcome<'a>>,
}

pub(super) enum Block<'a> {
    /// Blank only with a signature.
    Text {
        text: &'a str,
        signature: Option<&'a str>,
    },
    /// From a model whose API has this format.
    Thinking {
        place: String,
        thinking: &'a Thinking,
    },
    Call {
        place: String,
        id: String,
        call: &'a ToolCall,
        signature: Option<&'a str>,
    },
}

pub(super) struct Outcome<'a> {
    pub(super) place: String,
    pub(super) id: String,
    pub(super) name: &'a str,
    /// Texts that are not blank, and images.
    pub(super) content: Vec<&'a ContentBlock>,
    pub(super) is_error: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn new<M: Borrow<Message>>(format: Format, messages: &'a [M]) -> Self {
        let mut plan = Self {
            format,
            model: None,
            system: String::new(),
            steps: Vec::with_capacity(messages.len()),
            report: Report::default(),
            tools: Vec::new(),
        };
        let mut ids = Ids::new(format.id_rule());
        let mut contents: Vec<String> = Vec::new();
        let mut systems: Vec<Arc<Message>> = Vec::new();
        let mut taken: HashSet<usize> = HashSet::new();
        let messages: Vec<&'a Message> = messages.iter().map(Borrow::borrow).collect();
        for (at, message) in messages.iter().copied().enumerate() {
            let place = format!("messages[{at}]");
            match message {
                Message::System(system) => {
                    systems.push(Arc::new(Message::System(system.clone())));
                    let text = match &system.content {
                        SystemContent::Text(text) => text.clone(),
                        SystemContent::Blocks(blocks) => join_text(blocks),
                    };
                    if text.trim().is_empty() {
                        continue;
                    }
                    if plan.steps.is_empty() || format == Format::Google {
                        contents.push(text);
                        if !plan.steps.is_empty() {
                            plan.report.add(place, "later system message; moved before the conversation");
                        }
                    } else {
                        plan.steps.push(Step::System { place, text });
                    }
                }
                Message::User(user) => {
                    let content = match &user.content {
                        UserContent::Text(text) if text.trim().is_empty() => Vec::new(),
                        UserContent::Text(text) => vec![Cow::Owned(ContentBlock::text(text.as_str()))],
                        UserContent::Blocks(blocks) => {
                            plan.content(&place, blocks).into_iter().map(Cow::Borrowed).collect()
                        }
                    };
                    plan.user(place, content, name(&user.extra));
                }
                Message::Assistant(answer) => {
                    let results = results_after(at + 1, messages.iter().copied().skip(at + 1));
                    plan.answer(place, answer, results, &mut ids, &mut taken);
                }
                Message::ToolResult(_) if taken.contains(&at) => {}
                Message::ToolResult(result) => {
                    let content = stray_result(&result.tool_call_id, &result.tool_name, &result.content);
                    plan.report.add(place.as_str(), STRAY);
                    plan.user(place, content.into_iter().map(Cow::Owned).collect(), None);
                }
            }
        }
        let state = system_state(&systems);
        contents.extend(state.sections.into_iter().map(|(_, text)| text));
        contents.retain(|text| !text.trim().is_empty());
        plan.system = contents.join("\n\n");
        plan.tools = state.tools;
        plan
    }

    fn user(&mut self, place: String, content: Vec<Cow<'a, ContentBlock>>, name: Option<&'a str>) {
        if !content.is_empty() {
            self.steps.push(Step::User { place, content, name });
        }
    }

    fn answer(
        &mut self,
        place: String,
        answer: &'a AssistantMessage,
        mut results: Vec<(usize, &'a ToolResultMessage)>,
        ids: &mut Ids,
        taken: &mut HashSet<usize>,
    ) {
        if answer.is_failed() {
            self.report.add(place, "answer that failed or was cancelled");
            // None of its calls ran, but files can be inconsistent.
            let of_it =
                |result: &ToolResultMessage| answer.tool_calls().any(|call| call.id == result.tool_call_id);
            for (at, _) in results.iter().filter(|(_, result)| of_it(result)) {
                taken.insert(*at);
                self.report.add(format!("messages[{at}]"), "result of an answer that failed");
            }
            return;
        }
        let own = self.format.speaks(&answer.api);
        self.model = Some(answer.model.as_str()).filter(|model| own && !model.is_empty());
        // Useful only to the model that made it, so dropping it needs no note.
        let signature =
            |signed: &'a Option<String>| signed.as_deref().filter(|signature| own && !signature.is_empty());
        let mut blocks = Vec::with_capacity(answer.content.len());
        let mut outcomes = Vec::new();
        for (block_at, block) in answer.content.iter().enumerate() {
            let place = format!("{place}.content[{block_at}]");
            match block {
                AssistantBlock::Text(text) => {
                    let signature = signature(&text.text_signature);
                    if signature.is_some() || !text.text.trim().is_empty() {
                        blocks.push(Block::Text { text: &text.text, signature });
                    }
                }
                AssistantBlock::Thinking(thinking) if own => {
                    let has_signature =
                        thinking.thinking_signature.as_ref().is_some_and(|sign| !sign.is_empty());
                    if has_signature || !thinking.thinking.trim().is_empty() {
                        blocks.push(Block::Thinking { place, thinking });
                    }
                }
                AssistantBlock::Thinking(_) => {
                    self.report.add(place, "thinking of a model that does not use this format");
                }
                AssistantBlock::ToolCall(call) => {
                    let id = ids.assign(&call.id, own);
                    let answered = results.iter().position(|(_, result)| result.tool_call_id == call.id);
                    match answered.map(|answered| results.remove(answered)) {
                        Some((at, result)) => {
                            taken.insert(at);
                            let result_place = format!("messages[{at}]");
                            let content = self.content(&result_place, &result.content);
                            outcomes.push(Outcome {
                                place: result_place,
                                id: id.clone(),
                                name: &call.name,
                                content,
                                is_error: result.is_error,
                            });
                        }
                        None => self.report.add(place.as_str(), "call without a result; exported unchanged"),
                    }
                    let signature = signature(&call.thought_signature);
                    blocks.push(Block::Call { place, id, call, signature });
                }
                AssistantBlock::Unknown(_) => self.report.add(place, "block of an unknown kind"),
            }
        }
        if !blocks.is_empty() {
            let name = name(&answer.extra);
            self.steps.push(Step::Answer(Answer { place, name, blocks, results: outcomes }));
        }
    }

    /// The parts of `blocks` that a model can read.
    fn content(&mut self, place: &str, blocks: &'a [ContentBlock]) -> Vec<&'a ContentBlock> {
        let mut content = Vec::with_capacity(blocks.len());
        for (at, block) in blocks.iter().enumerate() {
            match block {
                ContentBlock::Text(text) if text.text.trim().is_empty() => {}
                ContentBlock::Text(_) | ContentBlock::Image(_) => content.push(block),
                ContentBlock::ImageUrl(image) => {
                    if let Some(note) = address_note(self.format, image) {
                        self.report.add(format!("{place}.content[{at}]"), note);
                    }
                    content.push(block);
                }
                ContentBlock::Unknown(_) => {
                    self.report.add(format!("{place}.content[{at}]"), "block of an unknown kind");
                }
            }
        }
        content
    }

    /// The tools active at the end, as the format declares them.
    pub(super) fn tools(&self) -> Option<Value> {
        if self.tools.is_empty() {
            return None;
        }
        let tools = self.tools.iter().map(|tool| {
            let (name, description) = (&tool.name, &tool.description);
            let parameters = match &tool.parameters {
                parameters @ Value::Object(_) => parameters.clone(),
                _ => json!({"type": "object", "properties": {}}),
            };
            match self.format {
                Format::OpenAiChat => json!({"type": "function", "function":
                    {"name": name, "description": description, "parameters": parameters}}),
                Format::OpenAiResponses => json!({"type": "function", "name": name,
                    "description": description, "parameters": parameters, "strict": false}),
                Format::Anthropic => json!({"name": name, "description": description,
                    "input_schema": api::object_schema(&parameters)}),
                Format::Google => json!({"name": name, "description": description,
                    "parametersJsonSchema": api::google_schema(&parameters)}),
            }
        });
        let tools: Vec<Value> = tools.collect();
        Some(match self.format {
            Format::Google => json!([{"functionDeclarations": tools}]),
            Format::OpenAiChat | Format::OpenAiResponses | Format::Anthropic => Value::Array(tools),
        })
    }

    /// Reports a name, for formats without a field for it.
    pub(super) fn drop_name(report: &mut Report, place: &str, name: Option<&str>) {
        if let Some(name) = name {
            report.add(place, format!("the name {name:?}"));
        }
    }
}

/// The note about an image by URL in `format`. All formats accept
/// any URL; their services do not fetch all of them.
fn address_note(format: Format, image: &ImageUrl) -> Option<&'static str> {
    let schemes: &[&str] = match format {
        Format::OpenAiChat | Format::OpenAiResponses => &["https", "http"],
        Format::Anthropic => &["https"],
        Format::Google if image.media_type().is_none() => return Some(ONLY_ADDRESS),
        // The first for Vertex AI, both for newer models of the Gemini API.
        Format::Google => &["gs", "https"],
    };
    let is_fetched = schemes.iter().any(|scheme| image.has_scheme(scheme));
    (!is_fetched).then_some("image at a URL the provider does not fetch; exported unchanged")
}

/// The tool results before the next answer, with their numbers.
fn results_after<'a>(
    first: usize,
    messages: impl Iterator<Item = &'a Message>,
) -> Vec<(usize, &'a ToolResultMessage)> {
    let until_answer = messages.take_while(|message| !matches!(message, Message::Assistant(_)));
    let results = until_answer.enumerate().filter_map(|(at, message)| match message {
        Message::ToolResult(result) => Some((first + at, &**result)),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    results.collect()
}

fn name(extra: &Extra) -> Option<&str> {
    extra.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// The arguments as text. If the model did not write an object, this is its original
/// text.
pub(super) fn argument_text(call: &ToolCall) -> String {
    match received(call) {
        Some(text) => text.to_owned(),
        None => arguments(call).to_string(),
    }
}

/// The arguments as an object; other values are wrapped in one.
pub(super) fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    let wrapped = |value: Value| Cow::Owned(Value::Object(Map::from_iter([(WRAPPED.to_owned(), value)])));
    match (&call.arguments, received(call)) {
        (_, Some(text)) => wrapped(Value::from(text)),
        (Value::Object(_), None) => Cow::Borrowed(&call.arguments),
        (Value::Null, None) => Cow::Owned(json!({})),
        (other, None) => wrapped(other.clone()),
    }
}

/// The field that contains wrapped arguments.
pub(super) const WRAPPED: &str = "arguments";

/// The model's original text, if it is not an object.
fn received(call: &ToolCall) -> Option<&str> {
    call.received_text().or(call.arguments_error.as_deref())
}
