//! Encodes an Anthropic request.
//!
//! The structural rules of the API that concern this module: results of a turn
//! go into one user message, before its other content; an error result contains
//! only text; thinking is sent back unmodified and first; nothing is blank; a
//! system message between the turns follows a user message.

use std::borrow::Cow;

use reqwest::header::HeaderMap;
use serde_json::json;

use super::super::{
    BodyTo, EncodeError, Headers, fitting_budget, join_url, mapped_level, object_schema, strict_tools,
    thinking_budget, vertex, write_body,
};
use super::Host;
use super::wire::{self, Block, BlockBody, CacheControl, ThinkingMode, cache_mark};
use crate::ai::messages::{ThinkingLevel, ToolDeclaration};
use crate::ai::models::{AnthropicCompat, Dialect, Updates};
use crate::ai::requests::{
    AssistantTurn, Content, IdRule, NO_TEXT, Picture, Prompt, Request, StrictTools, SystemUpdate, ToolChoice,
    Turn, continuation, transform,
};
use crate::ai::transport::Credential;

pub(super) fn url(request: &Request, host: Host) -> Result<String, EncodeError> {
    match host {
        Host::Direct => Ok(join_url(request.base_url(), "/v1/messages")),
        Host::Vertex => vertex::model_url(request, "anthropic", "streamRawPredict"),
    }
}

pub(super) fn write(request: &Request, host: Host, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
    let compat = AnthropicCompat::for_request(&request.model, request.traits());
    let ids = if compat.strict_ids { IdRule::StrictWord { max: 64 } } else { IdRule::Word { max: 64 } };
    let prompt = transform::prompt(request, ids, compat.updates);
    let thinking = Thinking::of(request, &compat, prompt.max_tokens);
    let strict = strict_tools(request, &prompt, compat.strict_tools.then_some(Dialect::Claude))?;
    let body = body(request, host, &compat, &prompt, &thinking, &strict);
    write_body(&body, &request.options.extra_body, prompt.json_bytes(), to)?;
    Ok(headers(request, host, &compat, &prompt, &thinking)?.0)
}

/// The thinking setting of the request.
enum Thinking {
    /// The model does not think, or has no setting for it.
    Unset,
    Off,
    Budget(u64),
    Effort(String),
}

impl Thinking {
    fn of(request: &Request, compat: &AnthropicCompat, max_tokens: u64) -> Self {
        let model = &request.model;
        if !model.reasoning {
            return Self::Unset;
        }
        let level = model.clamp_thinking(request.options.thinking);
        if level == ThinkingLevel::Off {
            return if model.supports(level) { Self::Off } else { Self::Unset };
        }
        if compat.adaptive_thinking {
            let effort = mapped_level(model, level);
            // "low" is the lowest effort of the API.
            return Self::Effort(if effort == "minimal" { "low".to_owned() } else { effort });
        }
        let budget = fitting_budget(thinking_budget(&request.options, level), model, max_tokens);
        budget.map_or(Self::Off, Self::Budget)
    }

    fn is_on(&self) -> bool {
        matches!(self, Self::Budget(_) | Self::Effort(_))
    }

    /// The effort, if it is set between the turns.
    fn effort_between_turns(&self, compat: &AnthropicCompat) -> Option<&str> {
        match self {
            Self::Effort(effort) if compat.effort_between_turns => Some(effort),
            Self::Effort(_) | Self::Unset | Self::Off | Self::Budget(_) => None,
        }
    }
}

/// A thinking budget must be less than the limit of the answer.
pub(super) fn shortest_answer(request: &Request) -> Option<u64> {
    let compat = AnthropicCompat::for_request(&request.model, request.traits());
    match Thinking::of(request, &compat, request.model.max_tokens) {
        Thinking::Budget(_) => None,
        Thinking::Unset | Thinking::Off | Thinking::Effort(_) => Some(1),
    }
}

pub(super) fn told_effort(request: &Request) -> Option<String> {
    let compat = AnthropicCompat::for_request(&request.model, request.traits());
    let thinking = Thinking::of(request, &compat, request.model.max_tokens);
    thinking.effort_between_turns(&compat).map(str::to_owned)
}

fn headers(
    request: &Request,
    host: Host,
    compat: &AnthropicCompat,
    prompt: &Prompt<'_>,
    thinking: &Thinking,
) -> Result<Headers, EncodeError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json")?;
    headers.set("accept", "text/event-stream")?;
    if host == Host::Direct {
        headers.set("anthropic-version", "2023-06-01")?;
    }
    let mut betas = Vec::new();
    let token = match &request.credential {
        Credential::ApiKey(key) if host == Host::Vertex => {
            headers.set_secret("x-goog-api-key", key)?;
            None
        }
        Credential::ApiKey(key) if !compat.bearer_key && !is_oauth(key) => {
            headers.set_secret("x-api-key", key)?;
            None
        }
        Credential::ApiKey(token) => Some(token.as_str()),
        other => other.bearer(),
    };
    if let Some(token) = token {
        headers.set_bearer(token)?;
        if is_oauth(token) {
            betas.push("oauth-2025-04-20");
        }
    }
    if !prompt.tools.is_empty() {
        if matches!(thinking, Thinking::Budget(_)) {
            betas.push("interleaved-thinking-2025-05-14");
        }
        if !compat.eager_tool_input {
            betas.push("fine-grained-tool-streaming-2025-05-14");
        }
    }
    if thinking.effort_between_turns(compat).is_some() {
        betas.extend(["mid-conversation-output-config-2026-07-01", "thinking-binding-controls-2026-08-01"]);
    }
    if prompt.updates == Updates::Changes {
        betas.push("inline-tools-2026-09-15");
    }
    if takes_fallbacks(host, compat) {
        betas.push("server-side-fallback-2026-07-01");
    }
    if let Some(session) = &request.options.session_id {
        compat.affinity_headers.iter().try_for_each(|name| headers.set(name, session))?;
    }
    if compat.copilot {
        headers.set_copilot(prompt)?;
    }
    headers.extend(&request.model.headers)?;
    // The header is a list; the user's values are appended.
    let own = request.model.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(BETA));
    if let Some((_, own)) = own {
        let own = own.split(',').map(str::trim).filter(|beta| !beta.is_empty());
        own.for_each(|beta| {
            if !betas.contains(&beta) {
                betas.push(beta);
            }
        });
    }
    if !betas.is_empty() {
        headers.set(BETA, &betas.join(","))?;
    }
    Ok(headers)
}

const BETA: &str = "anthropic-beta";

/// Whether to send fallback models. Vertex AI does not support them.
fn takes_fallbacks(host: Host, compat: &AnthropicCompat) -> bool {
    host == Host::Direct && !compat.fallback_models.is_empty()
}

/// The prefix of subscription tokens, which work only as bearer tokens.
fn is_oauth(token: &str) -> bool {
    token.starts_with("sk-ant-oat")
}

fn body<'a>(
    request: &'a Request,
    host: Host,
    compat: &AnthropicCompat,
    prompt: &'a Prompt<'a>,
    thinking: &'a Thinking,
    strict: &'a StrictTools<'a>,
) -> wire::Body<'a> {
    let options = &request.options;
    // Thinking models choose their own sampling.
    let samples = compat.supports_temperature && !thinking.is_on() && !compat.effort_between_turns;
    let told = thinking.effort_between_turns(compat);
    let mark = cache_mark(options.long_cache && compat.supports_long_cache);
    let mut system = Vec::new();
    if !prompt.system.is_empty() {
        let text = Cow::Borrowed(prompt.system.as_str());
        system.push(Block { body: BlockBody::Text { text }, cache_control: Some(mark) });
    }
    wire::Body {
        model: (host == Host::Direct).then_some(&request.model.id),
        anthropic_version: (host == Host::Vertex).then_some("vertex-2023-10-16"),
        max_tokens: request.answer_limit(prompt.max_tokens),
        stream: true,
        system,
        messages: paused(
            request,
            messages(prompt, compat, strict, mark, told, continuation::beginning(request)),
        ),
        tools: tools(prompt, compat, strict, mark),
        tool_choice: tool_choice(options.tool_choice.as_ref(), prompt, thinking.is_on()),
        thinking: match thinking {
            Thinking::Unset => None,
            Thinking::Off => Some(ThinkingMode::Disabled),
            Thinking::Budget(budget_tokens) => Some(ThinkingMode::Enabled { budget_tokens: *budget_tokens }),
            // Newer models show their thinking only on request.
            Thinking::Effort(_) => Some(ThinkingMode::Adaptive {
                display: "summarized",
                block_binding: told
                    .is_some()
                    .then_some(wire::BlockBinding { prefix_mismatch_behavior: "drop_block" }),
            }),
        },
        output_config: match thinking {
            // The same value in every request, because the messages contain the current effort.
            Thinking::Effort(_) if told.is_some() => {
                Some(wire::OutputConfig { effort: Cow::Borrowed("low") })
            }
            Thinking::Effort(effort) => Some(wire::OutputConfig { effort: Cow::Borrowed(effort) }),
            Thinking::Unset | Thinking::Off | Thinking::Budget(_) => None,
        },
        fallbacks: if takes_fallbacks(host, compat) {
            let models = compat.fallback_models.iter();
            models.map(|fallback| wire::Fallback { model: fallback.model.clone() }).collect()
        } else {
            Vec::new()
        },
        // The API's maximum is 1, and not every model accepts both.
        temperature: options.temperature.filter(|_| samples).map(|temperature| temperature.min(1.0)),
        top_p: options.top_p.filter(|_| samples && options.temperature.is_none()),
        stop_sequences: &options.stop_sequences,
    }
}

/// Appends the answer that the service paused, which the model then continues.
fn paused<'a>(request: &'a Request, mut messages: Vec<wire::Message<'a>>) -> Vec<wire::Message<'a>> {
    let content = &request.options.paused_content;
    if !content.is_empty() {
        messages
            .push(message("assistant", content.iter().map(|block| plain(BlockBody::Kept(block))).collect()));
    }
    messages
}

fn messages<'a>(
    prompt: &'a Prompt<'a>,
    compat: &AnthropicCompat,
    strict: &'a StrictTools<'a>,
    mark: CacheControl,
    told: Option<&'a str>,
    beginning: Option<&'a str>,
) -> Vec<wire::Message<'a>> {
    let mut messages = Vec::with_capacity(prompt.turns.len() * 2);
    let mut updates = Vec::new();
    let mut efforts = Vec::new();
    // Thinking is bound to the efforts set before it.
    let unbound = compat.effort_between_turns && told.is_none();
    for turn in &prompt.turns {
        match turn {
            Turn::User(content) => messages.push(user(content.iter().map(block).collect())),
            Turn::System(system) => updates.push(message("system", update(system, compat, strict))),
            Turn::Assistant(turn) => {
                let content = assistant_blocks(turn, compat, unbound);
                if !content.is_empty() {
                    place(&mut updates, &mut messages);
                    if let Some(effort) = turn.effort.filter(|_| told.is_some()) {
                        efforts.push((messages.len(), effort));
                    }
                    messages.push(message("assistant", content));
                }
                if !turn.results.is_empty() {
                    messages.push(user(results(turn)));
                }
            }
        }
    }
    place(&mut updates, &mut messages);
    if let Some(text) = beginning {
        let text = Cow::Borrowed(text);
        messages.push(message("assistant", vec![plain(BlockBody::Text { text })]));
    }
    // A prefill must not end in white space.
    if let Some(wire::Message { role: "assistant", content, .. }) = messages.last_mut()
        && let Some(Block { body: BlockBody::Text { text }, .. }) = content.last_mut()
    {
        *text = Cow::Owned(text.trim_end().to_owned());
    }
    // Cache everything up to the last message of the user.
    let last_said = messages.iter_mut().rev().find(|message| message.role != "assistant");
    if let Some(block) = last_said.and_then(|message| message.content.last_mut()) {
        block.cache_control = Some(mark);
    }
    with_efforts(messages, efforts, told)
}

/// Appends the pending system changes, which must follow a user message.
fn place<'a>(updates: &mut Vec<wire::Message<'a>>, messages: &mut Vec<wire::Message<'a>>) {
    if !updates.is_empty() && messages.last().is_none_or(|last| last.role != "user") {
        messages.push(user(vec![plain(BlockBody::Text { text: Cow::Borrowed(NO_TEXT) })]));
    }
    messages.append(updates);
}

/// Inserts before each answer the effort that was set for it, and at the end the
/// current effort.
fn with_efforts<'a>(
    messages: Vec<wire::Message<'a>>,
    efforts: Vec<(usize, &'a str)>,
    told: Option<&'a str>,
) -> Vec<wire::Message<'a>> {
    let Some(told) = told else { return messages };
    let effort = |effort| wire::Message {
        role: "system",
        content: Vec::new(),
        output_config: Some(wire::OutputConfig { effort: Cow::Borrowed(effort) }),
    };
    let mut all = Vec::with_capacity(messages.len() + efforts.len() + 1);
    let mut efforts = efforts.into_iter().peekable();
    for (at, message) in messages.into_iter().enumerate() {
        all.extend(efforts.next_if(|(place, _)| *place == at).map(|(_, word)| effort(word)));
        all.push(message);
    }
    all.push(effort(told));
    all
}

/// The system message for a change of instructions and tools.
fn update<'a>(
    system: &'a SystemUpdate<'a>,
    compat: &AnthropicCompat,
    strict: &'a StrictTools<'a>,
) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    if !system.text.is_empty() {
        blocks.push(plain(BlockBody::Text { text: Cow::Borrowed(&system.text) }));
    }
    let removed = system.tools_removed.iter();
    blocks.extend(removed.map(|name| plain(BlockBody::ToolRemoval { tool: wire::RemovedTool { name } })));
    let added = system.tools_added.iter();
    blocks.extend(added.map(|added| {
        plain(BlockBody::ToolAddition { tool: wire::AddedTool { definition: tool(added, compat, strict) } })
    }));
    blocks
}

fn user(content: Vec<Block<'_>>) -> wire::Message<'_> {
    message("user", content)
}

fn message<'a>(role: &'static str, content: Vec<Block<'a>>) -> wire::Message<'a> {
    wire::Message { role, content, output_config: None }
}

fn plain(body: BlockBody<'_>) -> Block<'_> {
    Block { body, cache_control: None }
}

fn block<'a>(content: &'a Content<'a>) -> Block<'a> {
    match content {
        Content::Text(text) => plain(BlockBody::Text { text: Cow::Borrowed(text) }),
        Content::Image(picture) => image(*picture),
    }
}

fn image(picture: Picture<'_>) -> Block<'_> {
    let source = match picture {
        Picture::Data(image) => wire::ImageSource::Base64 { media_type: &image.mime_type, data: &image.data },
        Picture::At(image) => wire::ImageSource::Url { url: image.url() },
    };
    plain(BlockBody::Image { source })
}

fn assistant_blocks<'a>(
    turn: &'a AssistantTurn<'a>,
    compat: &AnthropicCompat,
    without_thinking: bool,
) -> Vec<Block<'a>> {
    let blocks = turn.blocks.iter().filter_map(|block| {
        let body = match block {
            // Blank texts exist only for their signature, and this API has no field for it.
            transform::Block::Text { text, .. } if text.trim().is_empty() => return None,
            transform::Block::Text { text, .. } => BlockBody::Text { text: Cow::Borrowed(text) },
            transform::Block::ToolCall { id, name, arguments, .. } => {
                BlockBody::ToolUse { id, name, input: arguments }
            }
            transform::Block::Thinking(_) if without_thinking => return None,
            transform::Block::Thinking(thinking) => {
                let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
                match signature {
                    "" if thinking.redacted => return None,
                    data if thinking.redacted => BlockBody::RedactedThinking { data },
                    // The API rejects thinking without its signature; sending it as text preserves it.
                    "" if !compat.allow_empty_signature => {
                        BlockBody::Text { text: Cow::Borrowed(&thinking.thinking) }
                    }
                    signature => BlockBody::Thinking { thinking: &thinking.thinking, signature },
                }
            }
        };
        Some(plain(body))
    });
    blocks.collect()
}

/// The results in order, then the images that error results cannot contain.
fn results<'a>(turn: &'a AssistantTurn<'a>) -> Vec<Block<'a>> {
    let mut blocks = Vec::with_capacity(turn.results.len());
    let mut moved = Vec::new();
    for result in &turn.results {
        let mut content = Vec::with_capacity(result.content.len());
        for part in &result.content {
            match part {
                Content::Image(picture) if result.is_error => moved.push(image(*picture)),
                other => content.push(block(other)),
            }
        }
        if content.is_empty() {
            let text = Cow::Borrowed("(see the image after the tool results)");
            content.push(plain(BlockBody::Text { text }));
        }
        let is_error = result.is_error;
        blocks.push(plain(BlockBody::ToolResult { tool_use_id: &result.id, content, is_error }));
    }
    if !moved.is_empty() {
        let text = Cow::Borrowed("Images of the failed tool calls:");
        blocks.push(plain(BlockBody::Text { text }));
        blocks.append(&mut moved);
    }
    blocks
}

fn tools<'a>(
    prompt: &'a Prompt<'a>,
    compat: &AnthropicCompat,
    strict: &'a StrictTools<'a>,
    mark: CacheControl,
) -> Vec<wire::Tool<'a>> {
    let mut tools: Vec<wire::Tool<'a>> =
        prompt.tools.iter().map(|tool| self::tool(tool, compat, strict)).collect();
    if compat.cache_control_on_tools
        && let Some(last) = tools.last_mut()
    {
        last.cache_control = Some(mark);
    }
    if prompt.updates == Updates::Changes {
        // The API accepts later tools only if the request starts with deferred ones.
        tools.push(wire::Tool {
            name: "pi_deferred_tools",
            description: "Not a tool. Tools may be added later on; never call this.",
            input_schema: Cow::Owned(json!({"type": "object", "properties": {}, "required": []})),
            strict: false,
            eager_input_streaming: false,
            defer_loading: true,
            cache_control: None,
        });
    }
    tools
}

fn tool<'a>(
    tool: &'a ToolDeclaration,
    compat: &AnthropicCompat,
    strict: &'a StrictTools<'a>,
) -> wire::Tool<'a> {
    let schema = strict.schema(tool);
    wire::Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: schema.map_or_else(|| object_schema(&tool.parameters), Cow::Borrowed),
        strict: schema.is_some(),
        eager_input_streaming: compat.eager_tool_input,
        defer_loading: false,
        cache_control: None,
    }
}

fn tool_choice<'a>(
    choice: Option<&'a ToolChoice>,
    prompt: &Prompt<'_>,
    thinking: bool,
) -> Option<wire::ToolChoice<'a>> {
    if prompt.tools.is_empty() {
        return None;
    }
    if prompt.tools_are_history {
        return Some(wire::ToolChoice::None);
    }
    match choice? {
        ToolChoice::Auto => Some(wire::ToolChoice::Auto),
        ToolChoice::None => Some(wire::ToolChoice::None),
        // A thinking model cannot be forced to call a tool.
        ToolChoice::Any | ToolChoice::Tool(_) if thinking => Some(wire::ToolChoice::Auto),
        ToolChoice::Any => Some(wire::ToolChoice::Any),
        ToolChoice::Tool(name) => Some(wire::ToolChoice::Tool { name }),
    }
}
