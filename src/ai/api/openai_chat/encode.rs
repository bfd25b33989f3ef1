//! Encodes a Chat Completions request in the dialect of its server.

use std::borrow::Cow;

use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::super::{
    BodyTo, EncodeError, Headers, azure, cache_key, join_url, mapped_level, object_schema, strict_tools,
    thinking_budget, write_body,
};
use super::wire::{
    Body, CacheControl, Called, Content, Custom, CustomCall, CustomFormat, Function, FunctionCall, Grammar,
    ImageUrl, Message, Offered, Part, StreamOptions, Tool, ToolCall, cache_mark,
};
use crate::ai::messages::{GrammarTool, Thinking, ThinkingLevel, ToolDeclaration};
use crate::ai::models::{ChatCompat, MaxTokensField, ThinkingFormat};
use crate::ai::requests::{
    AssistantTurn, Block, IdRule, Picture, Prompt, Request, StrictTools, ToolChoice, Turn, transform,
};
use crate::ai::transport::Credential;

/// Maximum length of a call id at OpenAI.
const MAX_ID: usize = 40;

pub(super) fn url(request: &Request, path: &str) -> Result<String, EncodeError> {
    match ChatCompat::of(&request.model).azure {
        true => azure::url(request, path),
        false => Ok(join_url(request.base_url(), path)),
    }
}

pub(super) fn write(request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
    let mut compat = ChatCompat::for_request(&request.model, request.traits());
    compat.requires_reasoning_content |= request.options.with_reasoning_content;
    let ids = if compat.nine_character_ids { IdRule::Nine } else { IdRule::Word { max: MAX_ID } };
    let prompt = transform::prompt(request, ids, compat.updates);
    let strict = strict_tools(request, &prompt, compat.strict_tools)?;
    let body = body(request, &compat, &prompt, &strict);
    write_body(&body, &request.options.extra_body, prompt.json_bytes(), to)?;
    Ok(headers(request, &compat, &prompt)?.0)
}

fn headers(request: &Request, compat: &ChatCompat, prompt: &Prompt<'_>) -> Result<Headers, EncodeError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json")?;
    headers.set("accept", "text/event-stream")?;
    match &request.credential {
        Credential::ApiKey(key) if compat.azure => headers.set_secret("api-key", key)?,
        Credential::ApiKey(key) => headers.set_bearer(key)?,
        other => other.bearer().map_or(Ok(()), |token| headers.set_bearer(token))?,
    }
    if let Some(session) = &request.options.session_id {
        compat.affinity_headers.iter().try_for_each(|name| headers.set(name, session))?;
    }
    if compat.copilot {
        headers.set_copilot(prompt)?;
    }
    headers.extend(&request.model.headers)?;
    Ok(headers)
}

fn body<'a>(
    request: &'a Request,
    compat: &ChatCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
) -> Body<'a> {
    let options = &request.options;
    let level = request.model.clamp_thinking(options.thinking);
    let thinks = request.model.reasoning && level != ThinkingLevel::Off;
    let max_tokens =
        |field| (compat.max_tokens_field == field).then_some(request.answer_limit(prompt.max_tokens));
    let session = options.session_id.as_deref().filter(|_| compat.prompt_cache_key);
    let for_long = options.long_cache && compat.supports_long_cache;
    let mark = compat.anthropic_cache_control.then(|| cache_mark(for_long));
    Body {
        model: if compat.azure { azure::deployment(request) } else { Cow::Borrowed(&request.model.id) },
        messages: messages(request, compat, prompt, strict, mark),
        stream: true,
        stream_options: compat.supports_usage_in_streaming.then_some(StreamOptions { include_usage: true }),
        store: compat.supports_store.then_some(false),
        max_tokens: max_tokens(MaxTokensField::MaxTokens),
        max_completion_tokens: max_tokens(MaxTokensField::MaxCompletionTokens),
        temperature: options.temperature.filter(|_| compat.supports_temperature),
        top_p: options.top_p.filter(|_| compat.supports_temperature),
        stop: if compat.supports_stop { &options.stop_sequences } else { &[] },
        tools: tools(compat, prompt, strict, mark),
        tool_choice: tool_choice(options.tool_choice.as_ref(), compat, prompt, thinks),
        prompt_cache_key: session.map(cache_key),
        prompt_cache_retention: (for_long && mark.is_none()).then_some("24h"),
        dialect: dialect(request, compat, prompt, level),
    }
}

fn messages<'a>(
    request: &'a Request,
    compat: &ChatCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
    mark: Option<CacheControl>,
) -> Vec<Message<'a>> {
    let mut messages = Vec::with_capacity(prompt.turns.len() * 2 + 1);
    let as_developer = compat.supports_developer_role && request.model.reasoning;
    let instructions = |content| match as_developer {
        true => Message::Developer { content },
        false => Message::System { content },
    };
    if !prompt.system.is_empty() {
        let text = Cow::Borrowed(prompt.system.as_str());
        messages.push(instructions(if mark.is_some() {
            Content::Parts(vec![Part::Text { text, cache_control: mark }])
        } else {
            Content::Text(text)
        }));
    }
    for turn in &prompt.turns {
        match turn {
            Turn::User(content) => {
                let is_instruction = |message: &&Message<'_>| {
                    matches!(
                        message,
                        Message::System { .. } | Message::Developer { .. } | Message::Tools { .. }
                    )
                };
                let last = messages.iter().rev().find(|message| !is_instruction(message));
                if compat.requires_assistant_after_tool_result && matches!(last, Some(Message::Tool { .. })) {
                    messages.push(processed());
                }
                messages.push(Message::User { content: user_content(content, compat) });
            }
            Turn::Assistant(turn) => {
                messages.extend(assistant(turn, compat, prompt));
                tool_messages(turn, compat, &mut messages);
            }
            Turn::System(update) => {
                if !update.tools_added.is_empty() {
                    let tools =
                        update.tools_added.iter().map(|declared| tool(declared, compat, strict)).collect();
                    messages.push(Message::Tools { tools });
                }
                if !update.text.is_empty() {
                    messages.push(instructions(Content::Text(Cow::Borrowed(&update.text))));
                }
            }
        }
    }
    if let Some(mark) = mark {
        mark_last_text(&mut messages, mark);
    }
    messages
}

/// A filler answer, for servers that require one before the user's message.
fn processed<'a>() -> Message<'a> {
    let content = Some(Content::Text(Cow::Borrowed("I have processed the tool results.")));
    Message::Assistant { content, tool_calls: Vec::new(), reasoning: Map::new() }
}

/// A single string if possible, because some servers reject parts. A server that
/// accepts cache markers accepts parts and always gets them, because the marker moves
/// on and the earlier messages must stay unchanged.
fn user_content<'a>(content: &'a [transform::Content<'a>], compat: &ChatCompat) -> Content<'a> {
    if compat.anthropic_cache_control {
        return Content::Parts(content.iter().map(part).collect());
    }
    if let [transform::Content::Text(text)] = content {
        return Content::Text(Cow::Borrowed(text));
    }
    if content.iter().any(|part| matches!(part, transform::Content::Image(_))) {
        return Content::Parts(content.iter().map(part).collect());
    }
    Content::Text(Cow::Owned(join_texts(content)))
}

fn part<'a>(content: &'a transform::Content<'a>) -> Part<'a> {
    match content {
        transform::Content::Text(text) => Part::text(&**text),
        transform::Content::Image(picture) => Part::ImageUrl { image_url: image(*picture) },
    }
}

fn image(picture: Picture<'_>) -> ImageUrl<'_> {
    match picture {
        Picture::Data(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            ImageUrl { url: Cow::Owned(url), detail: None }
        }
        Picture::At(image) => ImageUrl { url: Cow::Borrowed(image.url()), detail: image.detail() },
    }
}

fn join_texts(content: &[transform::Content<'_>]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| match part {
            transform::Content::Text(text) => Some(&**text),
            transform::Content::Image(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// A call in the form of its tool's declaration.
fn called<'a>(
    name: &'a str,
    arguments: &'a Value,
    compat: &ChatCompat,
    prompt: &'a Prompt<'a>,
) -> Called<'a> {
    // Finding a tool requires a search of the conversation.
    let tool = if compat.grammar_tools { prompt.declared(name) } else { None };
    let input = tool.and_then(|tool| grammar(compat, tool)?.input(arguments));
    match input {
        Some(input) => Called::Custom { custom: CustomCall { name, input } },
        None => Called::Function { function: FunctionCall { name, arguments: arguments.to_string() } },
    }
}

/// `None` if the answer contains nothing that this API supports.
fn assistant<'a>(
    turn: &'a AssistantTurn<'a>,
    compat: &ChatCompat,
    prompt: &'a Prompt<'a>,
) -> Option<Message<'a>> {
    let mut texts: Vec<&str> = Vec::new();
    let mut thoughts: Vec<&Thinking> = Vec::new();
    let mut tool_calls = Vec::new();
    for block in &turn.blocks {
        match block {
            // Blank texts exist only for their signature, and this API has no field for it.
            Block::Text { text, .. } if text.trim().is_empty() => {}
            Block::Text { text, .. } => texts.push(text),
            Block::Thinking(thinking) => thoughts.push(thinking),
            Block::ToolCall { id, name, arguments, .. } => {
                tool_calls.push(ToolCall { id, called: called(name, arguments, compat, prompt) });
            }
        }
    }
    let mut parts = Vec::new();
    let mut reasoning = Map::new();
    if compat.requires_thinking_as_text {
        let thoughts = thoughts.iter().map(|thinking| thinking.thinking.as_str());
        let thoughts: Vec<&str> = thoughts.filter(|text| !text.trim().is_empty()).collect();
        if !thoughts.is_empty() {
            let prefix = thoughts.join("\n\n");
            texts.insert(0, "\n\n");
            return Some(message(Cow::Owned(prefix + &texts.concat()), parts, tool_calls, reasoning, compat));
        }
    } else {
        (parts, reasoning) = replayed(&thoughts);
    }
    if compat.requires_reasoning_content {
        reasoning.entry("reasoning_content").or_insert_with(|| Value::from(""));
    }
    let text = match texts.as_slice() {
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.concat()),
    };
    if text.is_empty() && tool_calls.is_empty() && parts.is_empty() {
        return None;
    }
    Some(message(text, parts, tool_calls, reasoning, compat))
}

fn message<'a>(
    text: Cow<'a, str>,
    mut parts: Vec<Part<'a>>,
    tool_calls: Vec<ToolCall<'a>>,
    reasoning: Map<String, Value>,
    compat: &ChatCompat,
) -> Message<'a> {
    let content = if !parts.is_empty() {
        if !text.is_empty() {
            parts.push(Part::text(text));
        }
        Some(Content::Parts(parts))
    } else if text.is_empty() && !compat.requires_non_null_assistant_content {
        None
    } else {
        // A string and not parts, because some models start to imitate the parts.
        Some(Content::Text(text))
    };
    Message::Assistant { content, tool_calls, reasoning }
}

/// The thinking in its original form: content parts, details or a named field.
fn replayed<'a>(thoughts: &[&'a Thinking]) -> (Vec<Part<'a>>, Map<String, Value>) {
    let mut parts = Vec::new();
    let mut fields = Map::new();
    for thinking in thoughts {
        let text = thinking.thinking.as_str();
        match thinking.thinking_signature.as_deref().unwrap_or_default() {
            "content" => parts.push(Part::Thinking { thinking: vec![Part::text(text)] }),
            details if details.starts_with('[') => {
                if let Ok(Value::Array(mut details)) = serde_json::from_str(details) {
                    let all = fields.entry("reasoning_details").or_insert_with(|| json!([]));
                    if let Value::Array(all) = all {
                        all.append(&mut details);
                    }
                }
            }
            field => {
                let field = match field {
                    "reasoning" | "reasoning_text" => field,
                    _ => "reasoning_content",
                };
                match fields.get_mut(field) {
                    Some(Value::String(known)) => {
                        known.push('\n');
                        known.push_str(text);
                    }
                    _ => drop(fields.insert(field.to_owned(), Value::from(text))),
                }
            }
        }
    }
    (parts, fields)
}

/// The results, then their images as a user message, because tool messages cannot
/// contain images.
fn tool_messages<'a>(turn: &'a AssistantTurn<'a>, compat: &ChatCompat, messages: &mut Vec<Message<'a>>) {
    let mut images = Vec::new();
    for result in &turn.results {
        let mut text = match result.content.as_slice() {
            [transform::Content::Text(text)] => Cow::Borrowed(&**text),
            content => Cow::Owned(join_texts(content)),
        };
        if text.is_empty() {
            text = Cow::Borrowed("(see attached image)");
        }
        let name = compat.requires_tool_result_name.then_some(result.name);
        let content = if compat.cache_control_on_results {
            Content::Parts(vec![Part::text(text)])
        } else {
            Content::Text(text)
        };
        messages.push(Message::Tool { tool_call_id: &result.id, name, content });
        images.extend(
            result.content.iter().filter(|part| matches!(part, transform::Content::Image(_))).map(part),
        );
    }
    if !images.is_empty() {
        if compat.requires_assistant_after_tool_result {
            messages.push(processed());
        }
        images.insert(0, Part::text("Images of the tool results:"));
        messages.push(Message::User { content: Content::Parts(images) });
    }
}

/// Marks the end of the part to cache: the last input message that
/// is written in parts.
fn mark_last_text(messages: &mut [Message<'_>], mark: CacheControl) {
    let last = messages.iter_mut().rev().find_map(|message| match message {
        Message::User { content: Content::Parts(parts) }
        | Message::Tool { content: Content::Parts(parts), .. } => {
            parts.iter_mut().rev().find_map(|part| match part {
                Part::Text { cache_control, .. } => Some(cache_control),
                Part::ImageUrl { .. } | Part::Thinking { .. } => None,
            })
        }
        Message::System { .. }
        | Message::Tools { .. }
        | Message::Developer { .. }
        | Message::User { .. }
        | Message::Assistant { .. }
        | Message::Tool { .. } => None,
    });
    if let Some(cache_control) = last {
        *cache_control = Some(mark);
    }
}

/// The grammar of `tool`, if the server supports grammars.
fn grammar<'a>(compat: &ChatCompat, tool: &'a ToolDeclaration) -> Option<GrammarTool<'a>> {
    GrammarTool::of(tool).filter(|_| compat.grammar_tools)
}

fn custom<'a>(tool: &'a ToolDeclaration, grammar: GrammarTool<'a>) -> Offered<'a> {
    let GrammarTool { syntax, definition, .. } = grammar;
    let format = CustomFormat::Grammar { grammar: Grammar { syntax, definition } };
    Offered::Custom { custom: Custom { name: &tool.name, description: &tool.description, format } }
}

fn function<'a>(tool: &'a ToolDeclaration, strict_schema: Option<&'a Value>) -> Offered<'a> {
    let strict = strict_schema.is_some();
    let parameters = strict_schema.map_or_else(|| object_schema(&tool.parameters), Cow::Borrowed);
    let function = Function { name: &tool.name, description: &tool.description, parameters, strict };
    Offered::Function { function }
}

fn tools<'a>(
    compat: &ChatCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
    mark: Option<CacheControl>,
) -> Option<Vec<Tool<'a>>> {
    if prompt.tools_are_history || prompt.tools.is_empty() {
        return (compat.requires_tools_with_tool_history && prompt.has_tool_calls()).then(Vec::new);
    }
    let tools = prompt.tools.iter().map(|declared| tool(declared, compat, strict));
    let mut tools: Vec<Tool<'a>> = tools.collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = mark;
    }
    Some(tools)
}

fn tool<'a>(tool: &'a ToolDeclaration, compat: &ChatCompat, strict: &'a StrictTools<'a>) -> Tool<'a> {
    Tool {
        offered: match grammar(compat, tool) {
            Some(grammar) => custom(tool, grammar),
            None => function(tool, strict.schema(tool)),
        },
        cache_control: None,
    }
}

fn tool_choice(
    choice: Option<&ToolChoice>,
    compat: &ChatCompat,
    prompt: &Prompt<'_>,
    thinks: bool,
) -> Option<Value> {
    if prompt.tools_are_history || prompt.tools.is_empty() {
        return None;
    }
    // DeepSeek rejects forced calls while it thinks.
    let forced = !(thinks && compat.thinking_format == ThinkingFormat::DeepSeek);
    Some(match choice? {
        ToolChoice::Auto => Value::from("auto"),
        ToolChoice::None => Value::from("none"),
        ToolChoice::Any if forced => Value::from("required"),
        ToolChoice::Tool(name) if forced => {
            match prompt.declared(name).and_then(|tool| grammar(compat, tool)) {
                Some(_) => json!({"type": "custom", "custom": {"name": name}}),
                None => json!({"type": "function", "function": {"name": name}}),
            }
        }
        ToolChoice::Any | ToolChoice::Tool(_) => Value::from("auto"),
    })
}

/// The fields that only this server supports.
fn dialect(
    request: &Request,
    compat: &ChatCompat,
    prompt: &Prompt<'_>,
    level: ThinkingLevel,
) -> Map<String, Value> {
    let mut fields = Map::new();
    if request.model.reasoning {
        reasoning(request, compat, level, &mut fields);
    }
    if compat.zai_tool_stream && !prompt.tools.is_empty() {
        fields.insert("tool_stream".to_owned(), Value::Bool(true));
    }
    if let Some(priority) = compat.vllm_priority {
        fields.insert("priority".to_owned(), Value::from(priority));
    }
    if let Some(routing) = &compat.open_router_routing {
        fields.insert("provider".to_owned(), routing.clone());
    }
    if let Some(routing) = &compat.vercel_gateway_routing {
        fields.insert("providerOptions".to_owned(), json!({"gateway": routing}));
    }
    fields
}

fn reasoning(request: &Request, compat: &ChatCompat, level: ThinkingLevel, fields: &mut Map<String, Value>) {
    let model = &request.model;
    let on = level != ThinkingLevel::Off;
    let effort = mapped_level(model, level);
    // The model's value for "off", if it has one.
    let off = match model.thinking_level_map.get(&ThinkingLevel::Off) {
        Some(Some(Value::String(name))) => Some(name.clone()),
        _ => None,
    };
    let state = TemplateState { on, effort: &effort, budget: thinking_budget(&request.options, level) };
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let switch = if on { "enabled" } else { "disabled" };
    let can_be_off = model.supports(ThinkingLevel::Off);
    match compat.thinking_format {
        ThinkingFormat::OpenAi => match off {
            _ if !compat.supports_reasoning_effort => {}
            _ if on => set("reasoning_effort", Value::from(effort)),
            Some(off) => set("reasoning_effort", Value::from(off)),
            None => {}
        },
        ThinkingFormat::OpenRouter if on => set("reasoning", json!({"effort": effort})),
        ThinkingFormat::OpenRouter if can_be_off => {
            set("reasoning", json!({"effort": off.as_deref().unwrap_or("none")}));
        }
        // Supports only the efforts in the model's entry.
        ThinkingFormat::AntLing if on && matches!(model.thinking_level_map.get(&level), Some(Some(_))) => {
            set("reasoning", json!({"effort": effort}));
        }
        ThinkingFormat::OpenRouter | ThinkingFormat::AntLing => {}
        ThinkingFormat::Together if on || can_be_off => set("reasoning", json!({"enabled": on})),
        ThinkingFormat::DeepSeek | ThinkingFormat::Zai if on || can_be_off => {
            let mut thinking = json!({"type": switch});
            if on && compat.thinking_format == ThinkingFormat::Zai {
                thinking["clear_thinking"] = Value::Bool(false);
            }
            set("thinking", thinking);
            if on && compat.supports_reasoning_effort {
                set("reasoning_effort", Value::from(effort));
            }
        }
        ThinkingFormat::Together | ThinkingFormat::DeepSeek | ThinkingFormat::Zai => {}
        ThinkingFormat::Qwen => set("enable_thinking", Value::Bool(on)),
        ThinkingFormat::ChatTemplate => {
            set(
                "chat_template_kwargs",
                Value::Object(template_arguments(compat.chat_template_kwargs.as_ref(), &state)),
            );
        }
        ThinkingFormat::QwenChatTemplate => {
            let mut arguments = template_arguments(compat.chat_template_kwargs.as_ref(), &state);
            arguments.entry("preserve_thinking").or_insert(Value::Bool(true));
            set("chat_template_kwargs", Value::Object(arguments));
        }
        ThinkingFormat::Baseten => {
            let configured = compat.chat_template_args.as_ref().or(compat.chat_template_kwargs.as_ref());
            set("chat_template_args", Value::Object(template_arguments(configured, &state)));
        }
        ThinkingFormat::StringThinking if on => set("thinking", Value::from(effort)),
        ThinkingFormat::StringThinking => {
            set("thinking", Value::from(off.unwrap_or_else(|| "none".to_owned())));
        }
        ThinkingFormat::Mistral if model.id.contains("magistral") => {
            if on {
                set("prompt_mode", Value::from("reasoning"));
            }
        }
        ThinkingFormat::Mistral if on => set("reasoning_effort", Value::from(effort)),
        ThinkingFormat::Mistral => {
            if let Some(off) = off {
                set("reasoning_effort", Value::from(off));
            }
        }
    }
    if let Some(field) = compat.thinking_token_budget_field.as_deref().filter(|_| on) {
        set(field, Value::from(thinking_budget(&request.options, level)));
    }
}

/// The values available to template arguments.
struct TemplateState<'a> {
    on: bool,
    effort: &'a str,
    budget: u64,
}

/// The `configured` arguments, in which `{"$var": NAME}` refers to the thinking
/// state: `thinking.enabled`, and if that is true `thinking.effort` and
/// `thinking.budget`. Arguments with an undefined variable are left out. The
/// usual switch is added.
fn template_arguments(
    configured: Option<&Map<String, Value>>,
    state: &TemplateState<'_>,
) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (name, value) in configured.into_iter().flatten() {
        let value = match value.get("$var").and_then(Value::as_str) {
            Some("thinking.enabled") => Value::Bool(state.on),
            Some("thinking.effort") if state.on => Value::from(state.effort),
            Some("thinking.budget") if state.on => Value::from(state.budget),
            Some(_) => continue,
            None => value.clone(),
        };
        arguments.insert(name.clone(), value);
    }
    arguments.entry("enable_thinking").or_insert(Value::Bool(state.on));
    arguments
}
