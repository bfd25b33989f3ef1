//! Encodes a Responses request.
//!
//! The rules of the API that concern this module: every call is followed by its
//! output; a reasoning item must directly precede the item it led to,
//! and that item keeps its own id only after its reasoning; no id
//! appears twice. An item whose id cannot be sent is sent without one, and the API
//! then treats it as an item it did not create.

use std::borrow::Cow;
use std::collections::HashSet;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::super::{
    BodyTo, EncodeError, Headers, azure, cache_key, join_url, mapped_level, object_schema, strict_tools,
    write_body,
};
use super::wire::{
    Body, CacheOptions, Content, CustomFormat, Effort, Item, KnownItem, Offered, OutputText, Part, Reasoning,
    TextOptions, TextSignature, Tool, ToolQuery,
};
use crate::ai::messages::{GrammarTool, Thinking, ThinkingLevel, ToolDeclaration};
use crate::ai::models::{CacheRetention, Dialect, ResponsesCompat, Updates};
use crate::ai::requests::{
    AssistantTurn, Block, IdRule, Prompt, Request, StrictTools, SystemUpdate, ToolChoice, Turn, transform,
};
use crate::ai::transport::Credential;

/// Maximum length of an id.
const MAX_ID: usize = 64;
/// Smallest output limit the API accepts.
const MIN_OUTPUT_TOKENS: u64 = 16;
/// The text before tools that are declared between the turns.
const TOOLS_FOLLOW: &str =
    "The tools declared next come on top of those before. Of two with one name the later counts.";
const ENCRYPTED_REASONING: &[&str] = &["reasoning.encrypted_content"];

pub(super) fn write(request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
    let compat = ResponsesCompat::for_request(&request.model, request.traits());
    let prompt = transform::prompt(request, IdRule::CallAndItem { max: MAX_ID }, compat.updates);
    let strict = strict_tools(request, &prompt, compat.strict_tools.then_some(Dialect::OpenAi))?;
    let effort = effort(request, &compat);
    let body = body(request, &compat, &prompt, &strict, effort.as_deref());
    write_body(&body, &request.options.extra_body, prompt.json_bytes(), to)?;
    Ok(headers(request, &compat, &prompt)?.0)
}

pub(super) fn url(request: &Request, path: &str) -> Result<String, EncodeError> {
    if ResponsesCompat::for_request(&request.model, request.traits()).azure {
        return azure::url(request, path);
    }
    // Users configure the address of the service behind ChatGPT with or without its last segment.
    let base = request.base_url().trim_end_matches('/');
    let base = if path.starts_with("/codex/") { base.strip_suffix("/codex").unwrap_or(base) } else { base };
    Ok(join_url(base, path))
}

fn headers(request: &Request, compat: &ResponsesCompat, prompt: &Prompt<'_>) -> Result<Headers, EncodeError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json")?;
    headers.set("accept", "text/event-stream")?;
    match &request.credential {
        Credential::ApiKey(key) if compat.azure => headers.set_secret("api-key", key)?,
        Credential::ApiKey(key) => headers.set_bearer(key)?,
        other => other.bearer().map_or(Ok(()), |token| headers.set_bearer(token))?,
    }
    if compat.codex {
        headers.set("openai-beta", "responses=experimental")?;
        headers.set("originator", "pi")?;
        if let Credential::SignedIn(account) = &request.credential
            && let Some(id) = &account.account_id
        {
            headers.set("chatgpt-account-id", id)?;
        }
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

/// The service behind ChatGPT expects it; OpenAI's own address needs none.
const CODEX_WEB_SOCKETS: HeaderValue = HeaderValue::from_static("responses_websockets=2026-02-06");

pub(super) fn web_socket_headers(request: &Request, headers: &HeaderMap) -> Option<HeaderMap> {
    let compat = ResponsesCompat::for_request(&request.model, request.traits());
    if !compat.web_socket {
        return None;
    }
    let mut headers = headers.clone();
    headers.remove(ACCEPT);
    headers.remove(CONTENT_TYPE);
    if compat.codex {
        headers.insert("openai-beta", CODEX_WEB_SOCKETS);
    }
    Some(headers)
}

fn body<'a>(
    request: &'a Request,
    compat: &ResponsesCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
    effort: Option<&'a str>,
) -> Body<'a> {
    let options = &request.options;
    let model = &request.model;
    let session = options.session_id.as_deref().filter(|_| compat.prompt_cache_key);
    let mut tools = tools(compat, prompt, strict);
    let told = effort.filter(|_| is_told(request, compat));
    let choice = options.tool_choice.as_ref().filter(|_| !tools.is_empty());
    let tool_choice = choice.map(|choice| tool_choice(choice, compat, prompt));
    let tools_in_input = compat.tools_in_input && prompt.updates == Updates::Changes;
    let first_tools = if tools_in_input { std::mem::take(&mut tools) } else { Vec::new() };
    Body {
        model: if compat.azure { azure::deployment(request) } else { Cow::Borrowed(&model.id) },
        input: input(request, compat, prompt, strict, first_tools, told),
        stream: true,
        store: compat.supports_store.then_some(false),
        max_output_tokens: compat
            .supports_max_output_tokens
            .then_some(request.answer_limit(prompt.max_tokens).max(MIN_OUTPUT_TOKENS)),
        temperature: options.temperature.filter(|_| compat.supports_temperature),
        top_p: options.top_p.filter(|_| compat.supports_temperature),
        tools,
        tool_choice,
        text: compat.verbosity.map(|verbosity| TextOptions { verbosity }),
        reasoning: reasoning(request, effort, told.is_some()),
        include: if model.reasoning || compat.always_encrypted { ENCRYPTED_REASONING } else { &[] },
        prompt_cache_key: session.map(cache_key),
        prompt_cache_retention: (compat.cache_retention == CacheRetention::Day).then_some("24h"),
        prompt_cache_options: (compat.cache_retention == CacheRetention::HalfHour)
            .then_some(CacheOptions { ttl: "30m" }),
    }
}

/// Some services accept no limit.
pub(super) fn shortest_answer(request: &Request) -> Option<u64> {
    let compat = ResponsesCompat::for_request(&request.model, request.traits());
    compat.supports_max_output_tokens.then_some(MIN_OUTPUT_TOKENS)
}

/// The thinking effort in the API's words; `None` leaves it to the model.
fn effort(request: &Request, compat: &ResponsesCompat) -> Option<String> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    match (level(request), model.thinking_level_map.get(&ThinkingLevel::Off)) {
        (ThinkingLevel::Off, Some(Some(Value::String(effort)))) => Some(effort.clone()),
        // The service behind ChatGPT thinks unless the request turns it off.
        (ThinkingLevel::Off, _) => compat.codex.then(|| "none".to_owned()),
        (level, _) => Some(mapped_level(model, level)),
    }
}

pub(super) fn told_effort(request: &Request) -> Option<String> {
    let compat = ResponsesCompat::for_request(&request.model, request.traits());
    effort(request, &compat).filter(|_| is_told(request, &compat))
}

/// Whether the input contains the effort, so that a change of it leaves the rest of the prompt cached.
fn is_told(request: &Request, compat: &ResponsesCompat) -> bool {
    compat.effort_between_turns && (compat.codex || level(request) != ThinkingLevel::Off)
}

fn level(request: &Request) -> ThinkingLevel {
    request.model.clamp_thinking(request.options.thinking)
}

/// The reasoning setting of the request; `None` leaves it to the model.
fn reasoning(request: &Request, effort: Option<&str>, is_told: bool) -> Option<Reasoning> {
    let effort = effort?;
    if is_told {
        // The same value in every request, because the input contains the current effort.
        return Some(Reasoning { effort: "medium".to_owned(), summary: Some("auto") });
    }
    let summary = (level(request) != ThinkingLevel::Off).then_some("auto");
    Some(Reasoning { effort: effort.to_owned(), summary })
}

fn input<'a>(
    request: &Request,
    compat: &ResponsesCompat,
    prompt: &'a Prompt<'a>,
    strict: &'a StrictTools<'a>,
    first_tools: Vec<Tool<'a>>,
    told: Option<&'a str>,
) -> Vec<Item<'a>> {
    let as_developer = compat.supports_developer_role && request.model.reasoning;
    let mut input = Input {
        compat,
        prompt,
        strict,
        items: Vec::with_capacity(prompt.turns.len() * 3 + 1),
        ids: HashSet::new(),
        system_role: if as_developer { "developer" } else { "system" },
        unavailable: Vec::new(),
    };
    if !first_tools.is_empty() {
        input.declare(first_tools);
    }
    if !prompt.system.is_empty() {
        input.instruct(Cow::Borrowed(&prompt.system));
    }
    for turn in &prompt.turns {
        match turn {
            Turn::User(content) => {
                let content = Content::Parts(content.iter().map(part).collect());
                input.items.push(Item::Said { role: "user", content });
            }
            Turn::Assistant(turn) => {
                if let Some(effort) = turn.effort.filter(|_| told.is_some()) {
                    input.configure(effort);
                }
                input.assistant(turn);
            }
            Turn::System(update) => input.update(update, prompt.updates),
        }
    }
    if let Some(effort) = told {
        input.configure(effort);
    }
    input.items
}

/// The input being written.
struct Input<'a, 'c> {
    compat: &'c ResponsesCompat,
    prompt: &'c Prompt<'a>,
    strict: &'a StrictTools<'a>,
    items: Vec<Item<'a>>,
    /// Item ids used so far.
    ids: HashSet<String>,
    system_role: &'static str,
    /// Tools removed so far; their declarations stay in the input.
    unavailable: Vec<&'a str>,
}

impl<'a> Input<'a, '_> {
    fn instruct(&mut self, text: Cow<'a, str>) {
        self.items.push(Item::Said { role: self.system_role, content: Content::Text(text) });
    }

    fn configure(&mut self, effort: &'a str) {
        self.items.push(Item::Known(KnownItem::ConfigurationUpdate { reasoning: Effort { effort } }));
    }

    fn declare(&mut self, tools: Vec<Tool<'a>>) {
        self.items.push(Item::Known(KnownItem::AdditionalTools { role: "developer", tools }));
    }

    /// Writes a change of instructions and tools.
    fn update(&mut self, update: &'a SystemUpdate<'a>, updates: Updates) {
        if !update.tools_added.is_empty() {
            self.add_tools(&update.tools_added, updates);
        }
        let mut text = Cow::Borrowed(update.text.as_str());
        if !update.tools_removed.is_empty() {
            self.unavailable.extend(&update.tools_removed);
            let notice = format!(
                "These tools are not available any more; do not call them: {}.",
                update.tools_removed.join(", ")
            );
            text =
                if text.is_empty() { Cow::Owned(notice) } else { Cow::Owned(format!("{text}\n\n{notice}")) };
        }
        if !text.is_empty() {
            self.instruct(text);
        }
    }

    fn add_tools(&mut self, added: &[&'a ToolDeclaration], updates: Updates) {
        let tools: Vec<Tool<'a>> =
            added.iter().map(|declared| tool(declared, self.compat, self.strict)).collect();
        self.unavailable.retain(|name| added.iter().all(|tool| tool.name != *name));
        if updates == Updates::Changes {
            let notice = match self.unavailable.as_slice() {
                [] => TOOLS_FOLLOW.to_owned(),
                names => format!("{TOOLS_FOLLOW} Still not available: {}.", names.join(", ")),
            };
            self.instruct(Cow::Owned(notice));
            self.declare(tools);
            return;
        }
        // Derived from the position, so that it is the same in every later request.
        let call_id = format!("pi_tools_{}", self.items.len());
        let names: Vec<&str> = added.iter().map(|tool| tool.name.as_str()).collect();
        let arguments = ToolQuery { query: names.join(" "), limit: names.len() };
        let tools = tools.into_iter().map(|tool| Tool { defer_loading: true, ..tool }).collect();
        let (execution, status) = ("client", "completed");
        let call = KnownItem::ToolSearchCall { call_id: call_id.clone(), execution, status, arguments };
        self.items.push(Item::Known(call));
        self.items.push(Item::Known(KnownItem::ToolSearchOutput { call_id, execution, status, tools }));
    }

    fn assistant(&mut self, turn: &'a AssistantTurn<'a>) {
        // Reasoning whose following item has not been written yet.
        let mut reasoning: Vec<Map<String, Value>> = Vec::new();
        // Some earlier reasoning cannot be sent back. The item it led to must not keep
        // the id that ties it to that reasoning.
        let mut is_lost = false;
        let mut in_reasoning = false;
        let mut custom: Vec<&str> = Vec::new();
        for block in &turn.blocks {
            // Blank texts exist only for their signature, and this API has no field for it.
            if matches!(block, Block::Text { text, .. } if text.trim().is_empty()) {
                continue;
            }
            if let Block::Thinking(thinking) = block {
                is_lost &= in_reasoning;
                in_reasoning = true;
                match self.reasoning(thinking) {
                    Some(item) => reasoning.push(item),
                    None => is_lost = true,
                }
                continue;
            }
            in_reasoning = false;
            if is_lost {
                reasoning.clear();
            }
            self.items.extend(reasoning.drain(..).map(Item::Reasoning));
            match block {
                Block::Text { text, signature } => self.message(text, *signature, is_lost),
                Block::ToolCall { id, name, arguments, .. } => {
                    let (call_id, item_id) = split_id(id);
                    let item_id = item_id.filter(|_| !is_lost);
                    if let Some(item) = self.custom_call(call_id, item_id, name, arguments) {
                        custom.push(call_id);
                        self.items.push(Item::Known(item));
                    } else {
                        let id = self.id("fc_", item_id);
                        let arguments = arguments.to_string();
                        self.items.push(Item::Known(KnownItem::FunctionCall {
                            id,
                            call_id,
                            name,
                            arguments,
                        }));
                    }
                }
                Block::Thinking(_) => {}
            }
        }
        for result in &turn.results {
            let (call_id, _) = split_id(&result.id);
            let output = output(&result.content);
            self.items.push(Item::Known(if custom.contains(&call_id) {
                KnownItem::CustomToolCallOutput { call_id, output }
            } else {
                KnownItem::FunctionCallOutput { call_id, output }
            }));
        }
    }

    fn message(&mut self, text: &'a str, signature: Option<&str>, is_lost: bool) {
        let signature = signature.map(TextSignature::parse).unwrap_or_default();
        let id = self.id("msg_", Some(signature.id.as_str()).filter(|_| !is_lost));
        self.items.push(Item::Known(KnownItem::Message {
            role: "assistant",
            id,
            status: "completed",
            content: [OutputText { text, annotations: [] }],
            // A file may contain any phase; the API accepts two.
            phase: signature.phase.filter(|phase| matches!(phase.as_str(), "commentary" | "final_answer")),
        }));
    }

    /// A call of a tool with text input: of one that has it now, or had it when it
    /// was called, as the item's id shows.
    fn custom_call(
        &mut self,
        call_id: &'a str,
        item_id: Option<&str>,
        name: &'a str,
        arguments: &'a Value,
    ) -> Option<KnownItem<'a>> {
        // Finding a tool requires a search of the conversation.
        let tool = if self.compat.grammar_tools { self.prompt.declared(name) } else { None };
        let offered = tool.and_then(|tool| grammar(self.compat, tool)?.input(arguments));
        let was_custom = || item_id.is_some_and(|id| id.starts_with("ctc_"));
        let input = match offered {
            Some(input) => input,
            None if was_custom() => only_text(arguments)?,
            None => return None,
        };
        Some(KnownItem::CustomToolCall { id: self.id("ctc_", item_id), call_id, name, input })
    }

    /// The reasoning item stored in the signature, if this server accepts it.
    fn reasoning(&mut self, thinking: &Thinking) -> Option<Map<String, Value>> {
        let signature = thinking.thinking_signature.as_deref()?;
        let mut item: Map<String, Value> = serde_json::from_str(signature).ok()?;
        if item.get("type").and_then(Value::as_str) != Some("reasoning") {
            return None;
        }
        item.retain(|_, value| !value.is_null());
        let filled = |name: &str| item.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if self.compat.requires_encrypted_reasoning && !filled("encrypted_content") {
            return None;
        }
        let id = item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())?;
        if !self.ids.insert(id.to_owned()) {
            return None;
        }
        item.entry("summary").or_insert_with(|| json!([]));
        Some(item)
    }

    /// `id` if it can be sent: of its kind, short enough, not a duplicate. Otherwise
    /// a generated one for servers that require ids.
    fn id(&mut self, prefix: &str, id: Option<&str>) -> Option<String> {
        let is_word = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let kept = id.filter(|id| id.starts_with(prefix) && id.len() <= MAX_ID && is_word(id));
        if let Some(id) = kept
            && self.ids.insert(id.to_owned())
        {
            return Some(id.to_owned());
        }
        if !self.compat.requires_item_ids {
            return None;
        }
        // Derived from the position, so that it is the same in every later request.
        let mut place = self.items.len();
        loop {
            let id = format!("{prefix}{place}");
            if self.ids.insert(id.clone()) {
                return Some(id);
            }
            place += 1;
        }
    }
}

/// The text of arguments with a single text member.
fn only_text(arguments: &Value) -> Option<&str> {
    let members = arguments.as_object()?;
    if members.len() == 1 { members.values().next()?.as_str() } else { None }
}

/// `call_id|item_id` as [`IdRule::CallAndItem`] makes it.
fn split_id(id: &str) -> (&str, Option<&str>) {
    id.split_once('|').map_or((id, None), |(call, item)| (call, Some(item)))
}

fn part<'a>(content: &'a transform::Content<'a>) -> Part<'a> {
    match content {
        transform::Content::Text(text) => Part::InputText { text },
        transform::Content::Image(picture) => Part::image(*picture),
    }
}

/// A single string if possible, because some servers reject parts.
fn output<'a>(content: &'a [transform::Content<'a>]) -> Content<'a> {
    let texts: Option<Vec<&str>> = content
        .iter()
        .map(|part| match part {
            transform::Content::Text(text) => Some(&**text),
            transform::Content::Image(_) => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Content::Text(Cow::Borrowed(text)),
        Some(texts) => Content::Text(Cow::Owned(texts.join("\n"))),
        None => Content::Parts(content.iter().map(part).collect()),
    }
}

/// The declared tools. Earlier calls need no declarations here.
fn tools<'a>(compat: &ResponsesCompat, prompt: &'a Prompt<'a>, strict: &'a StrictTools<'a>) -> Vec<Tool<'a>> {
    // Tools declared at the start stay there if later changes are sent in position.
    if prompt.tools_are_history && prompt.updates != Updates::Changes {
        return Vec::new();
    }
    let mut tools: Vec<Tool<'a>> =
        prompt.tools.iter().map(|declared| tool(declared, compat, strict)).collect();
    if prompt.updates == Updates::Additions {
        tools.push(Tool { offered: Offered::ToolSearch { execution: "client" }, defer_loading: false });
    }
    tools
}

fn tool<'a>(tool: &'a ToolDeclaration, compat: &ResponsesCompat, strict: &'a StrictTools<'a>) -> Tool<'a> {
    let (name, description) = (tool.name.as_str(), tool.description.as_str());
    let offered = match grammar(compat, tool) {
        Some(GrammarTool { syntax, definition, .. }) => {
            Offered::Custom { name, description, format: CustomFormat::Grammar { syntax, definition } }
        }
        None => {
            let schema = strict.schema(tool);
            Offered::Function {
                name,
                description,
                // If absent, the API makes every property required.
                strict: compat.takes_strict.then_some(schema.is_some()),
                parameters: schema.map_or_else(|| object_schema(&tool.parameters), Cow::Borrowed),
            }
        }
    };
    Tool { offered, defer_loading: false }
}

/// The grammar of `tool`, if the server supports grammars.
fn grammar<'a>(compat: &ResponsesCompat, tool: &'a ToolDeclaration) -> Option<GrammarTool<'a>> {
    GrammarTool::of(tool).filter(|_| compat.grammar_tools)
}

fn tool_choice(choice: &ToolChoice, compat: &ResponsesCompat, prompt: &Prompt<'_>) -> Value {
    match choice {
        ToolChoice::Auto => Value::from("auto"),
        ToolChoice::None => Value::from("none"),
        ToolChoice::Any => Value::from("required"),
        ToolChoice::Tool(name) => {
            let tool = prompt.declared(name);
            let is_custom = tool.is_some_and(|tool| grammar(compat, tool).is_some());
            json!({"type": if is_custom { "custom" } else { "function" }, "name": name})
        }
    }
}
