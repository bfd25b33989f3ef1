//! Encodes a Converse request.
//!
//! The structural rules of the API that concern this module: the first message is the
//! user's and roles alternate; all results of an answer are at the start of the
//! next message; no text is blank; calls need declarations.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::super::{BodyTo, EncodeError, Headers, object_schema, strict_tools, write_body};
use super::family::{Family, Thinking};
use super::images::Images;
use super::wire::{
    self, Block, Body, CachePoint, InferenceConfig, InputSchema, Message, Reasoning, ReasoningText, Role,
    SystemBlock, Tool, ToolConfig, ToolSpec, ToolUse, cache_point,
};
use crate::ai::messages::{ToolDeclaration, message};
use crate::ai::models::{BedrockCompat, Dialect, Updates};
use crate::ai::requests::{
    AssistantTurn, Content, IdRule, NO_TEXT, Picture, Prompt, Request, StrictTools, ToolChoice, Turn,
    transform,
};
use crate::ai::transport::Credential;

pub(super) fn write(request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
    let prompt = transform::prompt(request, IdRule::StrictWord { max: 64 }, Updates::None);
    let compat = BedrockCompat::of(&request.model);
    let strict = strict_tools(request, &prompt, compat.strict_tools.then_some(Dialect::Claude))?;
    let body = body(request, &compat, &prompt, &strict);
    write_body(&body, &request.options.extra_body, prompt.json_bytes(), to)?;
    Ok(headers(request)?.0)
}

/// A thinking budget must be less than the limit of the answer, and some models choose the
/// limit themselves.
pub(super) fn shortest_answer(request: &Request) -> Option<u64> {
    let model = &request.model;
    let thinking = Family::of(model).thinking(request, &BedrockCompat::of(model), model.max_tokens, true);
    (!thinking.fixes_length && !thinking.has_budget()).then_some(1)
}

fn headers(request: &Request) -> Result<Headers, EncodeError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json")?;
    headers.set("accept", "application/vnd.amazon.eventstream")?;
    let token = match &request.credential {
        Credential::ApiKey(key) => Some(key.as_str()),
        other => other.bearer(),
    };
    if let Some(token) = token {
        headers.set_bearer(token)?;
    }
    headers.extend(&request.model.headers)?;
    Ok(headers)
}

fn body<'a>(
    request: &'a Request,
    compat: &BedrockCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
) -> Body<'a> {
    let Request { model, options, .. } = request;
    let family = Family::of(model);
    let point = cache_point(options.long_cache && compat.supports_long_cache);
    let has_tools = !prompt.tools.is_empty();
    let thinking = family.thinking(request, compat, prompt.max_tokens, has_tools);
    let samples = family.samples(model, compat) && !thinking.fixes_sampling;
    let stops = options.stop_sequences.iter().map(String::as_str);
    Body {
        messages: messages(prompt, family, point),
        system: system(prompt, family, point),
        inference_config: InferenceConfig {
            max_tokens: Some(request.answer_limit(prompt.max_tokens)).filter(|_| !thinking.fixes_length),
            temperature: options.temperature.filter(|_| samples),
            top_p: options.top_p.filter(|_| samples),
            stop_sequences: stops.filter(|stop| family.takes_stops() && !stop.trim().is_empty()).collect(),
        },
        tool_config: tool_config(options.tool_choice.as_ref(), prompt, strict, family, point, &thinking),
        additional_model_request_fields: thinking.fields,
    }
}

fn system<'a>(prompt: &'a Prompt<'a>, family: Family, point: CachePoint) -> Vec<SystemBlock<'a>> {
    if prompt.system.is_empty() {
        return Vec::new();
    }
    let mut system = vec![SystemBlock::Text(&prompt.system)];
    if family.cache_points().prompt {
        system.push(SystemBlock::CachePoint(point));
    }
    system
}

fn messages<'a>(prompt: &'a Prompt<'a>, family: Family, point: CachePoint) -> Vec<Message<'a>> {
    let mut messages = Messages::default();
    for turn in &prompt.turns {
        match turn {
            Turn::User(content) => messages.add_user(content),
            Turn::Assistant(turn) => {
                messages.add(Role::Assistant, answer(turn, family));
                messages.add_results(turn);
            }
            // Never requested.
            Turn::System(_) => {}
        }
    }
    let mut messages = messages.list;
    // A prefill must not end in white space.
    if let Some(Message { role: Role::Assistant, content }) = messages.last_mut()
        && let Some(Block::Text(text)) = content.last_mut()
    {
        *text = Cow::Owned(text.trim_end().to_owned());
    }
    // Cache everything up to the last message of the user.
    let last_user = messages.iter_mut().rev().find(|message| message.role == Role::User);
    if family.cache_points().prompt
        && let Some(message) = last_user
    {
        message.content.push(Block::CachePoint(point));
    }
    messages
}

/// Messages whose roles alternate.
#[derive(Default)]
struct Messages<'a> {
    list: Vec<Message<'a>>,
    /// Images of the user message at the end.
    images: Images,
}

impl<'a> Messages<'a> {
    /// Appends `content` to the last message if it has the same role, otherwise as
    /// a new message.
    fn add(&mut self, role: Role, mut content: Vec<Block<'a>>) {
        match self.list.last_mut() {
            Some(last) if last.role == role => last.content.append(&mut content),
            _ => self.list.push(Message { role, content }),
        }
    }

    fn add_user(&mut self, content: &'a [Content<'a>]) {
        self.begin_user();
        let blocks = content.iter().map(|content| block(content, &mut self.images)).collect();
        self.add(Role::User, blocks);
    }

    /// Adds the results in order, then the images of failed calls, whose results may
    /// contain only text.
    fn add_results(&mut self, turn: &'a AssistantTurn<'a>) {
        if turn.results.is_empty() {
            return;
        }
        self.begin_user();
        let mut blocks = Vec::with_capacity(turn.results.len());
        let mut moved: Vec<Picture<'a>> = Vec::new();
        for result in &turn.results {
            let mut content = Vec::with_capacity(result.content.len());
            for part in &result.content {
                match part {
                    Content::Image(picture) if result.is_error => moved.push(*picture),
                    other => content.push(block(other, &mut self.images)),
                }
            }
            if content.is_empty() {
                content.push(text("(see the image after the tool results)"));
            }
            let status = if result.is_error { "error" } else { "success" };
            let result = wire::ToolResult { tool_use_id: &result.id, content, status };
            blocks.push(Block::ToolResult(result));
        }
        if !moved.is_empty() {
            blocks.push(text("Images of the failed tool calls:"));
            blocks.extend(moved.into_iter().map(|picture| self.images.block(picture)));
        }
        self.add(Role::User, blocks);
    }

    /// Ensures that the last message is the user's. A new message has no images.
    fn begin_user(&mut self) {
        if self.list.last().is_none_or(|last| last.role != Role::User) {
            self.images = Images::default();
            self.list.push(Message { role: Role::User, content: Vec::new() });
        }
    }
}

fn text(text: &str) -> Block<'_> {
    Block::Text(Cow::Borrowed(text))
}

fn block<'a>(content: &'a Content<'a>, images: &mut Images) -> Block<'a> {
    match content {
        Content::Text(content) => text(content),
        Content::Image(picture) => images.block(*picture),
    }
}

fn answer<'a>(turn: &'a AssistantTurn<'a>, family: Family) -> Vec<Block<'a>> {
    let blocks = turn.blocks.iter().filter_map(|block| match block {
        // Blank texts exist only for their signature, and this API has no field for it.
        transform::Block::Text { text, .. } if text.trim().is_empty() => None,
        transform::Block::Text { text: said, .. } => Some(text(said)),
        transform::Block::ToolCall { id, name, arguments, .. } => {
            let input = without_empty_keys(arguments);
            Some(Block::ToolUse(ToolUse { tool_use_id: id, name, input }))
        }
        transform::Block::Thinking(thinking) => reasoning(thinking, family),
    });
    let mut blocks: Vec<Block<'a>> = blocks.collect();
    if blocks.is_empty() {
        blocks.push(text(NO_TEXT));
    }
    blocks
}

/// `None` for thinking the service would reject.
fn reasoning(thinking: &message::Thinking, family: Family) -> Option<Block<'_>> {
    if !family.takes_thinking() {
        return None;
    }
    let said = thinking.thinking.as_str();
    let signature = thinking.thinking_signature.as_deref().filter(|signature| !signature.is_empty());
    let reasoning = match signature {
        Some(data) if thinking.redacted => {
            STANDARD.decode(data).ok()?;
            Reasoning::RedactedContent(data)
        }
        None if thinking.redacted => return None,
        Some(_) if family.signs_thinking() => {
            Reasoning::ReasoningText(ReasoningText { text: said, signature })
        }
        _ if said.trim().is_empty() => return None,
        // The service rejects unsigned thinking; sending it as text preserves it.
        None if family.signs_thinking() => return Some(text(said)),
        _ => Reasoning::ReasoningText(ReasoningText { text: said, signature: None }),
    };
    Some(Block::ReasoningContent(reasoning))
}

/// `arguments` without members whose name is empty, which models write and the
/// service rejects.
fn without_empty_keys<'a>(arguments: &'a Value) -> Cow<'a, Value> {
    fn has_empty_key(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.iter().any(|(key, value)| key.is_empty() || has_empty_key(value))
            }
            Value::Array(items) => items.iter().any(has_empty_key),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    fn cleaned(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let kept = members.iter().filter(|(key, _)| !key.is_empty());
                Value::Object(kept.map(|(key, value)| (key.clone(), cleaned(value))).collect())
            }
            Value::Array(items) => items.iter().map(cleaned).collect(),
            other => other.clone(),
        }
    }
    if has_empty_key(arguments) { Cow::Owned(cleaned(arguments)) } else { Cow::Borrowed(arguments) }
}

fn tool_config<'a>(
    choice: Option<&'a ToolChoice>,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
    family: Family,
    point: CachePoint,
    thinking: &Thinking,
) -> Option<ToolConfig<'a>> {
    // The API can forbid calls only by offering no tools, and it rejects that
    // if the conversation contains calls.
    let is_forbidden = choice == Some(&ToolChoice::None) && !prompt.has_tool_calls();
    if prompt.tools.is_empty() || is_forbidden {
        return None;
    }
    let specs = prompt.tools.iter().map(|tool| tool_spec(tool, strict.schema(tool)));
    let mut tools: Vec<Tool<'a>> = specs.map(Tool::ToolSpec).collect();
    if family.cache_points().tools {
        tools.push(Tool::CachePoint(point));
    }
    let tool_choice = match choice.filter(|_| !prompt.tools_are_history) {
        None | Some(ToolChoice::None) => None,
        Some(ToolChoice::Auto) => Some(wire::ToolChoice::Auto {}),
        Some(ToolChoice::Any | ToolChoice::Tool(_)) if !family.can_be_forced(thinking) => {
            Some(wire::ToolChoice::Auto {})
        }
        Some(ToolChoice::Any) => Some(wire::ToolChoice::Any {}),
        Some(ToolChoice::Tool(name)) => Some(wire::ToolChoice::Tool { name }),
    };
    Some(ToolConfig { tools, tool_choice })
}

fn tool_spec<'a>(tool: &'a ToolDeclaration, strict_schema: Option<&'a Value>) -> ToolSpec<'a> {
    let strict = strict_schema.is_some();
    let json = strict_schema.map_or_else(|| object_schema(&tool.parameters), Cow::Borrowed);
    ToolSpec { name: &tool.name, description: &tool.description, input_schema: InputSchema { json }, strict }
}
