//! How one server's dialect differs from its API, as a typed view of
//! `Model.compat`.
//!
//! Defaults depend on the server, recognised by base URL or provider id; flags in
//! `models.json` override them. An unknown base URL gets a request that every
//! server accepts. The facts come from the vendors' API pages and
//! from recorded exchanges. Codecs only read the flags and never check the vendor.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::model::{Cost, Model};
use super::vendors::{self, Server, ServerKind};
use crate::ai::messages::Api;

impl ServerKind {
    fn of(model: &Model) -> Self {
        Server::of(model, |server| server.kind != Self::Unknown).map_or(Self::Unknown, |server| server.kind)
    }
}

/// The system messages that a model reads between the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::ai) enum Updates {
    /// None: everything is in the system prompt.
    #[default]
    None,
    /// Instructions.
    Texts,
    /// Instructions, and new tools.
    Additions,
    /// Instructions, and all changes of the tools.
    Changes,
}

/// The subset of JSON Schema that a service enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum Dialect {
    /// <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>
    OpenAi,
    /// Anthropic's models, on any service:
    /// <https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs>
    Claude,
}

/// Properties of a request that affect the dialect.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ai) struct RequestTraits {
    /// The credential is a signed-in account.
    pub(in crate::ai) signed_in: bool,
    /// The prompt should stay in the provider's cache for long.
    pub(in crate::ai) long_cache: bool,
    /// All system messages go into the system prompt.
    pub(in crate::ai) without_updates: bool,
}

/// Dialect of a Chat Completions server.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct ChatCompat {
    /// Accepts `store`, and stores answers unless it is false.
    pub(in crate::ai) supports_store: bool,
    /// Expects instructions of reasoning models in the `developer` role.
    pub(in crate::ai) supports_developer_role: bool,
    pub(in crate::ai) supports_reasoning_effort: bool,
    /// Accepts `stream_options.include_usage`.
    pub(in crate::ai) supports_usage_in_streaming: bool,
    /// Sends a finish reason; otherwise a clean end of the stream ends the answer.
    pub(in crate::ai) supports_finish_reason: bool,
    /// Accepts sampling parameters for this model.
    pub(in crate::ai) supports_temperature: bool,
    /// Accepts stop sequences for this model.
    pub(in crate::ai) supports_stop: bool,
    pub(in crate::ai) max_tokens_field: MaxTokensField,
    pub(in crate::ai) requires_tool_result_name: bool,
    pub(in crate::ai) requires_assistant_after_tool_result: bool,
    pub(in crate::ai) requires_non_null_assistant_content: bool,
    pub(in crate::ai) requires_tools_with_tool_history: bool,
    pub(in crate::ai) requires_thinking_as_text: bool,
    pub(in crate::ai) requires_reasoning_content: bool,
    /// Tool call ids must be exactly nine letters and digits.
    pub(in crate::ai) nine_character_ids: bool,
    pub(in crate::ai) thinking_format: ThinkingFormat,
    /// Template arguments for the two `chat-template` formats.
    pub(in crate::ai) chat_template_kwargs: Option<Map<String, Value>>,
    /// The same for `baseten`, which uses another field.
    pub(in crate::ai) chat_template_args: Option<Map<String, Value>>,
    /// The field that limits the thinking tokens.
    pub(in crate::ai) thinking_token_budget_field: Option<String>,
    pub(in crate::ai) open_router_routing: Option<Value>,
    pub(in crate::ai) vercel_gateway_routing: Option<Value>,
    /// The system messages that the model reads between the turns.
    pub(in crate::ai) updates: Updates,
    /// Accepts Anthropic's `cache_control` on text parts and tools.
    pub(in crate::ai) anthropic_cache_control: bool,
    /// Accepts it on tool results too; other proxies then put it where Claude rejects it.
    pub(in crate::ai) cache_control_on_results: bool,
    /// Sends `prompt_cache_key`.
    pub(in crate::ai) prompt_cache_key: bool,
    /// Keeps a prompt for long on request: by `prompt_cache_retention`, or in
    /// Anthropic's markers.
    pub(in crate::ai) supports_long_cache: bool,
    /// Headers that pin a session to one server; their value is the session's id.
    pub(in crate::ai) affinity_headers: &'static [&'static str],
    pub(in crate::ai) zai_tool_stream: bool,
    /// The priority of requests in vLLM; lower is sooner.
    pub(in crate::ai) vllm_priority: Option<i64>,
    /// Enforces the schema of a function that is marked `strict`, if the schema follows
    /// this dialect.
    pub(in crate::ai) strict_tools: Option<Dialect>,
    /// Accepts tools whose argument is text of a grammar.
    pub(in crate::ai) grammar_tools: bool,
    /// Uses Azure's addresses and expects the key in the `api-key` header.
    pub(in crate::ai) azure: bool,
    /// Expects headers that describe the request.
    pub(in crate::ai) copilot: bool,
}

/// The name of the field that limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum MaxTokensField {
    MaxTokens,
    MaxCompletionTokens,
}

/// The request format of the thinking level on a Chat Completions server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum ThinkingFormat {
    OpenAi,
    OpenRouter,
    DeepSeek,
    Together,
    Baseten,
    Zai,
    Qwen,
    ChatTemplate,
    /// Like [`Self::ChatTemplate`], and earlier thinking stays in the prompt.
    QwenChatTemplate,
    StringThinking,
    AntLing,
    /// `reasoning_effort`, or `prompt_mode` for the Magistral models.
    Mistral,
}

/// The names of the headers that pin a session to one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AffinityFormat {
    /// OpenAI's.
    Plain,
    /// OpenAI's, for proxies that drop headers with "session" in their name.
    Sessionless,
    /// OpenRouter's.
    Routed,
}

impl AffinityFormat {
    fn of(vendor: ServerKind) -> Self {
        if vendor == ServerKind::OpenRouter { Self::Routed } else { Self::Plain }
    }
}

impl ChatCompat {
    /// The dialect that applies to this request.
    pub(in crate::ai) fn for_request(model: &Model, traits: RequestTraits) -> Self {
        let compat = Self::of(model);
        if traits.without_updates { Self { updates: Updates::None, ..compat } } else { compat }
    }

    pub(in crate::ai) fn of(model: &Model) -> Self {
        let vendor = ServerKind::of(model);
        // OpenRouter passes these two vendors' dialects through.
        let routed_to = |name: &str| vendor == ServerKind::OpenRouter && model.id.starts_with(name);
        let openai = matches!(vendor, ServerKind::OpenAi | ServerKind::Azure);
        let mistral = vendor == ServerKind::Mistral || model.api == Api::MISTRAL_CONVERSATIONS;
        let flags = Flags(&model.compat);

        let anthropic_cache_control = match flags.text("cacheControlFormat") {
            Some(format) => format == "anthropic",
            None => routed_to("anthropic/"),
        };
        Self {
            supports_store: flags.bool("supportsStore").unwrap_or(openai),
            supports_developer_role: flags
                .bool("supportsDeveloperRole")
                .unwrap_or(vendor == ServerKind::OpenAi),
            // Sent only for models declared as reasoning. A model of an unknown server is
            // declared as reasoning only in the user's configuration.
            supports_reasoning_effort: flags.bool("supportsReasoningEffort").unwrap_or(!matches!(
                vendor,
                ServerKind::Xai | ServerKind::Zai | ServerKind::Moonshot | ServerKind::Copilot
            )),
            supports_usage_in_streaming: flags.bool("supportsUsageInStreaming").unwrap_or(!mistral),
            supports_finish_reason: flags
                .bool("supportsFinishReason")
                .unwrap_or(vendor != ServerKind::Snowflake),
            supports_temperature: flags.bool("supportsTemperature").unwrap_or(!(openai && model.reasoning)),
            // <https://platform.openai.com/docs/api-reference/chat>,
            // <https://docs.x.ai/docs/guides/reasoning>.
            supports_stop: !(model.reasoning && (openai || vendor == ServerKind::Xai)),
            max_tokens_field: max_tokens_field(&flags, vendor),
            requires_tool_result_name: flags.bool("requiresToolResultName").unwrap_or(mistral),
            requires_assistant_after_tool_result: flags
                .bool("requiresAssistantAfterToolResult")
                .unwrap_or(mistral),
            requires_non_null_assistant_content: flags
                .bool("requiresNonNullAssistantContent")
                .unwrap_or(mistral),
            requires_tools_with_tool_history: flags.bool("requiresToolsWithToolHistory").unwrap_or(false),
            requires_thinking_as_text: flags.bool("requiresThinkingAsText").unwrap_or(false),
            requires_reasoning_content: flags
                .bool("requiresReasoningContentOnAssistantMessages")
                .unwrap_or(matches!(vendor, ServerKind::DeepSeek | ServerKind::Moonshot) && model.reasoning),
            nine_character_ids: mistral,
            thinking_format: thinking_format(&flags, vendor, mistral),
            chat_template_kwargs: flags.object("chatTemplateKwargs").cloned(),
            chat_template_args: flags.object("chatTemplateArgs").cloned(),
            thinking_token_budget_field: match flags.text("thinkingTokenBudgetField") {
                None if flags.bool("supportsThinkingTokenBudget") == Some(true) => {
                    Some("thinking_token_budget".to_owned())
                }
                named => named.map(str::to_owned),
            },
            open_router_routing: flags.0.get("openRouterRouting").cloned(),
            vercel_gateway_routing: flags.0.get("vercelGatewayRouting").cloned(),
            updates: match flags.is_on("supportsMidConvoSystemMessages") {
                true if flags.is_on("supportsMidConvoToolAdditions") => Updates::Additions,
                true => Updates::Texts,
                false => Updates::None,
            },
            anthropic_cache_control,
            cache_control_on_results: anthropic_cache_control && vendor == ServerKind::OpenRouter,
            prompt_cache_key: flags.prompt_cache_key().unwrap_or(vendor == ServerKind::OpenAi),
            supports_long_cache: flags
                .bool("supportsLongCacheRetention")
                .unwrap_or(vendor == ServerKind::OpenAi || routed_to("anthropic/")),
            affinity_headers: affinity_headers(&flags, vendor, mistral),
            vllm_priority: flags.number("vllmPriority"),
            zai_tool_stream: flags.bool("zaiToolStream").unwrap_or(false),
            strict_tools: flags
                .bool("supportsStrictMode")
                .unwrap_or(false)
                .then_some(if routed_to("anthropic/") { Dialect::Claude } else { Dialect::OpenAi }),
            grammar_tools: supports_grammar_tools(model),
            azure: vendor == ServerKind::Azure,
            copilot: vendor == ServerKind::Copilot,
        }
    }
}

fn max_tokens_field(flags: &Flags<'_>, vendor: ServerKind) -> MaxTokensField {
    match flags.text("maxTokensField") {
        Some("max_completion_tokens") => MaxTokensField::MaxCompletionTokens,
        Some("max_tokens") => MaxTokensField::MaxTokens,
        _ => match vendor {
            ServerKind::OpenAi
            | ServerKind::Azure
            | ServerKind::OpenRouter
            | ServerKind::VercelGateway
            | ServerKind::Groq
            | ServerKind::Xai
            | ServerKind::Cerebras
            | ServerKind::Copilot
            | ServerKind::Snowflake => MaxTokensField::MaxCompletionTokens,
            _ => MaxTokensField::MaxTokens,
        },
    }
}

fn affinity_headers(flags: &Flags<'_>, vendor: ServerKind, mistral: bool) -> &'static [&'static str] {
    let is_sent =
        flags.bool("sendSessionAffinityHeaders").unwrap_or(vendor == ServerKind::OpenRouter || mistral);
    match flags.affinity_format() {
        _ if !is_sent => &[],
        None if mistral => &["x-affinity"],
        format => match format.unwrap_or(AffinityFormat::of(vendor)) {
            AffinityFormat::Plain => &["session_id", "x-client-request-id", "x-session-affinity"],
            AffinityFormat::Sessionless => &["x-client-request-id", "x-session-affinity"],
            AffinityFormat::Routed => &["x-session-id"],
        },
    }
}

fn thinking_format(flags: &Flags<'_>, vendor: ServerKind, mistral: bool) -> ThinkingFormat {
    match flags.text("thinkingFormat") {
        Some("openrouter") => ThinkingFormat::OpenRouter,
        Some("deepseek") => ThinkingFormat::DeepSeek,
        Some("together") => ThinkingFormat::Together,
        Some("baseten") => ThinkingFormat::Baseten,
        Some("zai") => ThinkingFormat::Zai,
        Some("qwen") => ThinkingFormat::Qwen,
        Some("chat-template") => ThinkingFormat::ChatTemplate,
        Some("qwen-chat-template") => ThinkingFormat::QwenChatTemplate,
        Some("string-thinking") => ThinkingFormat::StringThinking,
        Some("ant-ling") => ThinkingFormat::AntLing,
        Some("openai") => ThinkingFormat::OpenAi,
        _ if mistral => ThinkingFormat::Mistral,
        _ => match vendor {
            ServerKind::OpenRouter => ThinkingFormat::OpenRouter,
            ServerKind::DeepSeek | ServerKind::Moonshot => ThinkingFormat::DeepSeek,
            ServerKind::Zai => ThinkingFormat::Zai,
            ServerKind::Together => ThinkingFormat::Together,
            ServerKind::Qwen => ThinkingFormat::Qwen,
            ServerKind::Vllm => ThinkingFormat::ChatTemplate,
            _ => ThinkingFormat::OpenAi,
        },
    }
}

/// Dialect of an Anthropic Messages server.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct AnthropicCompat {
    /// Streams tool arguments per tool on request; others need a beta header.
    pub(in crate::ai) eager_tool_input: bool,
    pub(in crate::ai) cache_control_on_tools: bool,
    /// Enforces the schema of a tool that is marked `strict`.
    pub(in crate::ai) strict_tools: bool,
    /// Keeps a prompt for an hour on request.
    pub(in crate::ai) supports_long_cache: bool,
    pub(in crate::ai) supports_temperature: bool,
    /// Decides itself how long to think; accepts an effort instead of a budget.
    pub(in crate::ai) adaptive_thinking: bool,
    /// Continues an answer whose beginning is the last message of the request (prefill).
    pub(in crate::ai) assistant_prefill: bool,
    /// Models that may answer if the requested one declines.
    pub(in crate::ai) fallback_models: Vec<FallbackModel>,
    /// Sends and accepts thinking without a signature.
    pub(in crate::ai) allow_empty_signature: bool,
    /// Accepts only tool call ids in its own format.
    pub(in crate::ai) strict_ids: bool,
    /// The system messages that the model reads between the turns.
    pub(in crate::ai) updates: Updates,
    /// Reads changes of the thinking effort there, so that the rest of the prompt stays unchanged.
    pub(in crate::ai) effort_between_turns: bool,
    /// Headers that pin a session to one server; their value is the session's id.
    pub(in crate::ai) affinity_headers: &'static [&'static str],
    /// Accepts API keys as bearer tokens.
    pub(in crate::ai) bearer_key: bool,
    /// Expects headers that describe the request.
    pub(in crate::ai) copilot: bool,
}

impl AnthropicCompat {
    /// The dialect that applies to this request.
    pub(in crate::ai) fn for_request(model: &Model, traits: RequestTraits) -> Self {
        let compat = Self::of(model);
        if !traits.without_updates {
            return compat;
        }
        Self { updates: Updates::None, effort_between_turns: false, fallback_models: Vec::new(), ..compat }
    }

    pub(in crate::ai) fn of(model: &Model) -> Self {
        let vendor = ServerKind::of(model);
        let flags = Flags(&model.compat);
        let anthropic = vendors::is_of(model, "anthropic");
        let adaptive_thinking = flags.bool("forceAdaptiveThinking").unwrap_or(false);
        let sends_affinity =
            flags.bool("sendSessionAffinityHeaders").unwrap_or(vendor == ServerKind::OpenRouter);
        let affinity_headers: &'static [&'static str] =
            match flags.affinity_format().unwrap_or(AffinityFormat::of(vendor)) {
                _ if !sends_affinity => &[],
                AffinityFormat::Plain | AffinityFormat::Sessionless => &["x-session-affinity"],
                AffinityFormat::Routed => &["x-session-id"],
            };
        Self {
            eager_tool_input: flags.bool("supportsEagerToolInputStreaming").unwrap_or(anthropic),
            supports_long_cache: flags.bool("supportsLongCacheRetention").unwrap_or(anthropic),
            cache_control_on_tools: flags.bool("supportsCacheControlOnTools").unwrap_or(true),
            strict_tools: flags.bool("supportsStrictTools").unwrap_or(false),
            supports_temperature: flags.bool("supportsTemperature").unwrap_or(true),
            adaptive_thinking,
            // Models that decide themselves how long to think reject it.
            assistant_prefill: flags
                .bool("supportsAssistantPrefill")
                .unwrap_or(anthropic && !adaptive_thinking),
            strict_ids: anthropic || model.api == Api::ANTHROPIC_VERTEX,
            fallback_models: fallback_models(model),
            allow_empty_signature: flags.bool("allowEmptySignature").unwrap_or(false),
            updates: match flags.is_on("supportsMidConvoSystemMessages") {
                true if flags.is_on("supportsMidConvoToolChanges") => Updates::Changes,
                true => Updates::Texts,
                false => Updates::None,
            },
            effort_between_turns: adaptive_thinking && flags.is_on("supportsMidConvoEffort"),
            affinity_headers,
            bearer_key: matches!(vendor, ServerKind::Copilot | ServerKind::OpenRouter),
            copilot: vendor == ServerKind::Copilot,
        }
    }
}

/// A model that may answer in place of the requested one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(in crate::ai) struct FallbackModel {
    pub(in crate::ai) model: String,
    /// `None` means the rates of the requested model.
    pub(in crate::ai) cost: Option<Cost>,
}

impl FallbackModel {
    /// Whether `answering`, the model name in an answer, is this model: its id, or its
    /// id and the date of a version.
    fn is(&self, answering: &str) -> bool {
        let version = answering.strip_prefix(&self.model);
        version.is_some_and(|rest| {
            let date = rest.strip_prefix('-').unwrap_or_default();
            rest.is_empty() || (date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }
}

/// The fallbacks that `models.json` allows for `model`, by preference.
fn fallback_models(model: &Model) -> Vec<FallbackModel> {
    let listed = Flags(&model.compat).list("allowedFallbackModels").unwrap_or_default();
    let read = |entry: &Value| FallbackModel::deserialize(entry).ok();
    listed.iter().filter_map(read).filter(|fallback| !fallback.model.is_empty()).collect()
}

/// The rates of an answer to `model` that was written by `answering`; `None`
/// if that is not a fallback with rates of its own.
pub(in crate::ai) fn fallback_cost(model: &Model, answering: &str) -> Option<Cost> {
    fallback_models(model).into_iter().find(|fallback| fallback.is(answering))?.cost
}

/// Dialect of a Responses server.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct ResponsesCompat {
    /// Accepts `store`, and stores answers unless it is false.
    pub(in crate::ai) supports_store: bool,
    /// Expects instructions of reasoning models in the `developer` role.
    pub(in crate::ai) supports_developer_role: bool,
    /// Caches the tools as the first item of the input, not in the field `tools`.
    pub(in crate::ai) tools_in_input: bool,
    /// The requested length of answers, where the request names one.
    pub(in crate::ai) verbosity: Option<&'static str>,
    /// Accepts sampling parameters for this model.
    pub(in crate::ai) supports_temperature: bool,
    pub(in crate::ai) supports_max_output_tokens: bool,
    /// Accepts the field `strict` of tools; a missing field counts as true.
    pub(in crate::ai) takes_strict: bool,
    /// Enforces the schema of a tool that is marked `strict`.
    pub(in crate::ai) strict_tools: bool,
    /// The system messages that the model reads between the turns.
    pub(in crate::ai) updates: Updates,
    /// Reads changes of the thinking effort there, so that the rest of the prompt stays unchanged.
    pub(in crate::ai) effort_between_turns: bool,
    /// Accepts tools whose argument is text of a grammar.
    pub(in crate::ai) grammar_tools: bool,
    /// Sends `prompt_cache_key`.
    pub(in crate::ai) prompt_cache_key: bool,
    pub(in crate::ai) cache_retention: CacheRetention,
    /// Headers that pin a session to one server; their value is the session's id.
    pub(in crate::ai) affinity_headers: &'static [&'static str],
    /// Cannot look up reasoning by id, so it must be sent back encrypted.
    pub(in crate::ai) requires_encrypted_reasoning: bool,
    /// Requests encrypted reasoning even for models not known to reason.
    pub(in crate::ai) always_encrypted: bool,
    /// Rejects messages and calls without an id.
    pub(in crate::ai) requires_item_ids: bool,
    /// Is the service behind ChatGPT.
    pub(in crate::ai) codex: bool,
    /// Uses Azure's addresses and expects the key in the `api-key` header.
    pub(in crate::ai) azure: bool,
    /// Expects headers that describe the request.
    pub(in crate::ai) copilot: bool,
    /// Answers over WebSockets too:
    /// <https://developers.openai.com/api/docs/guides/websocket-mode>.
    pub(in crate::ai) web_socket: bool,
}

/// How long the server should keep its cache of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum CacheRetention {
    /// The server's default.
    Default,
    /// By `prompt_cache_retention`.
    Day,
    /// By `prompt_cache_options`, which replaced `prompt_cache_retention` in GPT-5.6.
    HalfHour,
}

impl ResponsesCompat {
    pub(in crate::ai) fn for_request(model: &Model, traits: RequestTraits) -> Self {
        let vendor = ServerKind::of(model);
        let flags = Flags(&model.compat);
        let codex = model.api == Api::OPENAI_CODEX_RESPONSES;
        let azure = model.api == Api::AZURE_OPENAI_RESPONSES || (vendor == ServerKind::Azure && !codex);
        let copilot = vendor == ServerKind::Copilot;
        // The service does not let an account signed in to OpenAI set these.
        let signed_in = vendor == ServerKind::OpenAi && traits.signed_in;
        let openai_model = codex || azure || copilot || vendor == ServerKind::OpenAi;
        let takes_wish = traits.long_cache
            && !(codex || signed_in)
            && flags.bool("supportsLongCacheRetention").unwrap_or(vendor == ServerKind::OpenAi);
        let cache_retention = match flags.bool("supportsExplicitPromptCacheMode") {
            _ if !takes_wish => CacheRetention::Default,
            Some(true) => CacheRetention::HalfHour,
            Some(false) | None => CacheRetention::Day,
        };
        let sends_affinity = flags
            .bool("sendSessionAffinityHeaders")
            .unwrap_or(codex || matches!(vendor, ServerKind::OpenAi | ServerKind::OpenRouter));
        let affinity_headers: &'static [&'static str] =
            match flags.affinity_format().unwrap_or(AffinityFormat::of(vendor)) {
                _ if !sends_affinity => &[],
                AffinityFormat::Plain => &["session-id", "x-client-request-id"],
                AffinityFormat::Sessionless => &["x-client-request-id"],
                AffinityFormat::Routed => &["x-session-id"],
            };
        Self {
            supports_store: flags.bool("supportsStore").unwrap_or(true),
            supports_developer_role: flags.bool("supportsDeveloperRole").unwrap_or(true),
            tools_in_input: codex,
            verbosity: codex.then_some("low"),
            supports_temperature: !codex
                && !signed_in
                && flags.bool("supportsTemperature").unwrap_or(!(openai_model && model.reasoning)),
            supports_max_output_tokens: !signed_in && flags.bool("supportsMaxOutputTokens").unwrap_or(true),
            takes_strict: flags.bool("supportsStrictMode").unwrap_or(true),
            strict_tools: flags
                .bool("supportsStrictMode")
                .unwrap_or(codex || azure || vendor == ServerKind::OpenAi),
            updates: match flags.is_on("supportsMidConvoSystemMessages") {
                _ if traits.without_updates => Updates::None,
                true if flags.is_on("supportsAdditionalTools") => Updates::Changes,
                true if flags.is_on("supportsToolSearch") => Updates::Additions,
                true => Updates::Texts,
                false => Updates::None,
            },
            effort_between_turns: (codex || model.api == Api::OPENAI_RESPONSES)
                && !traits.without_updates
                && !signed_in
                && model.reasoning
                && flags.is_on("supportsMidConvoEffort"),
            grammar_tools: supports_grammar_tools(model),
            prompt_cache_key: flags.prompt_cache_key().unwrap_or(true),
            cache_retention,
            affinity_headers,
            requires_encrypted_reasoning: openai_model,
            always_encrypted: vendor == ServerKind::Xai,
            requires_item_ids: vendor == ServerKind::OpenRouter,
            codex,
            azure,
            copilot,
            web_socket: codex || vendor == ServerKind::OpenAi,
        }
    }
}

/// Whether a tool may be offered with a grammar, see [`GrammarTool`](crate::ai::messages::GrammarTool).
pub(in crate::ai) fn supports_grammar_tools(model: &Model) -> bool {
    Flags(&model.compat).bool("supportsOpenAIGrammarTools").unwrap_or(false)
}

/// Dialect of a server with Google's `generateContent`.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct GoogleCompat {
    /// Accepts JSON Schema for tools; others know a subset of OpenAPI.
    pub(in crate::ai) json_schema: bool,
    /// Streams tool arguments on request, as Vertex AI does for Gemini 3.
    pub(in crate::ai) stream_arguments: bool,
    pub(in crate::ai) supports_temperature: bool,
}

impl GoogleCompat {
    pub(in crate::ai) fn of(model: &Model) -> Self {
        let flags = Flags(&model.compat);
        Self {
            json_schema: flags.bool("supportsParametersJsonSchema").unwrap_or(true),
            stream_arguments: flags.bool("streamFunctionCallArguments").unwrap_or(false),
            supports_temperature: flags.bool("supportsTemperature").unwrap_or(true),
        }
    }
}

/// Settings of `models.json` that override the facts derived from a Bedrock model's id.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct BedrockCompat {
    /// Decides itself how long to think; accepts an effort instead of a budget.
    pub(in crate::ai) adaptive_thinking: Option<bool>,
    pub(in crate::ai) supports_temperature: Option<bool>,
    /// Keeps a prompt for an hour on request.
    pub(in crate::ai) supports_long_cache: bool,
    /// Enforces the schema of a tool that is marked `strict`.
    pub(in crate::ai) strict_tools: bool,
}

impl BedrockCompat {
    pub(in crate::ai) fn of(model: &Model) -> Self {
        let flags = Flags(&model.compat);
        Self {
            adaptive_thinking: flags.bool("forceAdaptiveThinking"),
            supports_temperature: flags.bool("supportsTemperature"),
            supports_long_cache: flags.is_on("supportsLongCacheRetention"),
            strict_tools: flags.bool("supportsStrictMode").unwrap_or(false),
        }
    }
}

/// The flags of `models.json`; a value of the wrong type counts as absent.
struct Flags<'a>(&'a Map<String, Value>);

impl<'a> Flags<'a> {
    fn bool(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    fn is_on(&self, name: &str) -> bool {
        self.bool(name).unwrap_or(false)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    /// Whether to send `prompt_cache_key`, if configured.
    fn prompt_cache_key(&self) -> Option<bool> {
        match self.text("promptCacheKeyMode")? {
            "enabled" => Some(true),
            "disabled" => Some(false),
            _ => None,
        }
    }

    fn affinity_format(&self) -> Option<AffinityFormat> {
        match self.text("sessionAffinityFormat")? {
            "openai" => Some(AffinityFormat::Plain),
            "openai-nosession" => Some(AffinityFormat::Sessionless),
            "openrouter" => Some(AffinityFormat::Routed),
            _ => None,
        }
    }

    fn list(&self, name: &str) -> Option<&'a [Value]> {
        self.0.get(name)?.as_array().map(Vec::as_slice)
    }

    fn object(&self, name: &str) -> Option<&'a Map<String, Value>> {
        self.0.get(name)?.as_object()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(provider: &str, base_url: &str, compat: Value) -> Model {
        let model = json!({"id": "m", "provider": provider, "baseUrl": base_url, "reasoning": true,
            "api": "openai-completions", "compat": compat});
        serde_json::from_value(model).unwrap()
    }

    #[test]
    fn an_unknown_server_gets_what_all_accept() {
        let compat = ChatCompat::of(&model("mine", "http://localhost:1234/v1", json!({})));
        assert!(
            !compat.supports_store && !compat.supports_developer_role && compat.supports_usage_in_streaming
        );
        assert_eq!(compat.max_tokens_field, MaxTokensField::MaxTokens);
        assert_eq!(compat.thinking_format, ThinkingFormat::OpenAi);
    }

    #[test]
    fn developer_role_is_assumed_of_openai_only() {
        let check = |provider: &str, base_url: &str, expected: bool| {
            let compat = ChatCompat::of(&model(provider, base_url, json!({})));
            assert_eq!(compat.supports_developer_role, expected, "{provider} {base_url}");
        };
        check("openai", "https://api.openai.com/v1", true);
        check("mine", "https://api.openai.com/v1", true);
        check("azure", "https://r.openai.azure.com/openai/v1", false);
        check("groq", "https://api.groq.com/openai/v1", false);
        check("openrouter", "https://openrouter.ai/api/v1", false);
        check("mine", "http://localhost:1/v1", false);
    }

    #[test]
    fn the_base_url_decides_before_the_provider_id() {
        let compat = ChatCompat::of(&model("openai", "https://api.deepseek.com", json!({})));
        assert_eq!(compat.thinking_format, ThinkingFormat::DeepSeek);
        assert!(compat.requires_reasoning_content);
    }

    #[test]
    fn flags_override_what_was_detected() {
        let flags = json!({"supportsStore": false, "maxTokensField": "max_tokens", "thinkingFormat": "zai",
            "supportsDeveloperRole": "no"});
        let compat = ChatCompat::of(&model("openai", "https://api.openai.com/v1", flags));
        assert!(!compat.supports_store && compat.supports_developer_role);
        assert_eq!(compat.max_tokens_field, MaxTokensField::MaxTokens);
        assert_eq!(compat.thinking_format, ThinkingFormat::Zai);
    }
}
