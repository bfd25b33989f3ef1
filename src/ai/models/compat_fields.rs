//! The fields of `compat` that pi reads, for documentation and for validating files.
//!
//! `compat` implements their effects; this table lists their values. Unlisted
//! fields are kept, because a later version may know them.

use serde_json::{Map, Value};

/// One field of `compat` in `models.json`.
#[derive(Debug)]
pub struct CompatField {
    /// Its name in `models.json`.
    pub name: &'static str,
    /// The names of the APIs it applies to.
    pub apis: &'static [&'static str],
    /// Which values it takes.
    pub kind: CompatKind,
    /// The default, in words.
    pub default: &'static str,
    /// The property of the server or model that it describes.
    pub help: &'static str,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy)]
pub enum CompatKind {
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text.
    Text,
    /// A whole number.
    Whole,
    /// An object.
    Object,
    /// A list.
    List,
}

impl CompatKind {
    /// The accepted values, in words.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(", ")
            }
            Self::Text => "a string".to_owned(),
            Self::Whole => "a whole number".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::List => "a list".to_owned(),
        }
    }

    fn allows(self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Text => value.is_string(),
            Self::Whole => value.is_i64(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
        }
    }
}

const ALL: &[&str] = &[
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "google-generative-ai",
    "bedrock-converse-stream",
];
const CHAT: &[&str] = &["openai-completions"];
const RESPONSES: &[&str] = &["openai-responses"];
const OPENAI: &[&str] = &["openai-completions", "openai-responses"];
const ANTHROPIC: &[&str] = &["anthropic-messages"];
const CLAUDE: &[&str] = &["anthropic-messages", "bedrock-converse-stream"];
const STRICT: &[&str] = &["openai-completions", "openai-responses", "bedrock-converse-stream"];
const GOOGLE: &[&str] = &["google-generative-ai", "google-vertex"];
const UPDATES: &[&str] = &["openai-completions", "openai-responses", "anthropic-messages"];
const EFFORT: &[&str] = &["openai-responses", "anthropic-messages"];
const CACHES: &[&str] = UPDATES;
const AZURE: &[&str] = &["azure-openai-responses"];

/// TABLE: every field that is read.
///
/// The fields of an API also apply to its variants: those of Mistral, Vertex AI,
/// ChatGPT and Azure.
pub const COMPAT_FIELDS: &[CompatField] = &[
    CompatField {
        name: "supportsStore",
        apis: OPENAI,
        kind: CompatKind::Bool,
        default: "yes; with `openai-completions` only for OpenAI and Azure",
        help: "accepts `store`, and stores by default",
    },
    CompatField {
        name: "supportsDeveloperRole",
        apis: OPENAI,
        kind: CompatKind::Bool,
        default: "yes; with `openai-completions` only for OpenAI",
        help: "thinking models read instructions in the role `developer`",
    },
    CompatField {
        name: "supportsReasoningEffort",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "yes, except xAI, z.ai, Moonshot and Copilot",
        help: "accepts `reasoning_effort`",
    },
    CompatField {
        name: "supportsUsageInStreaming",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "yes, except Mistral",
        help: "accepts `stream_options.include_usage`",
    },
    CompatField {
        name: "supportsFinishReason",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "yes, except Snowflake",
        help: "reports why an answer ended",
    },
    CompatField {
        name: "supportsTemperature",
        apis: ALL,
        kind: CompatKind::Bool,
        default: "yes, except models that control their own sampling",
        help: "accepts `temperature` and `top_p`",
    },
    CompatField {
        name: "maxTokensField",
        apis: CHAT,
        kind: CompatKind::Choice(&["max_completion_tokens", "max_tokens"]),
        default: "by provider; `max_tokens` for unknown ones",
        help: "field for the output token limit",
    },
    CompatField {
        name: "supportsMaxOutputTokens",
        apis: RESPONSES,
        kind: CompatKind::Bool,
        default: "yes, except ChatGPT accounts",
        help: "accepts `max_output_tokens`",
    },
    CompatField {
        name: "requiresToolResultName",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "only Mistral",
        help: "tool results must contain the tool's name",
    },
    CompatField {
        name: "requiresAssistantAfterToolResult",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "only Mistral",
        help: "an assistant message is required between tool results and a user message",
    },
    CompatField {
        name: "requiresNonNullAssistantContent",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "only Mistral",
        help: "every answer must contain text",
    },
    CompatField {
        name: "requiresToolsWithToolHistory",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "no",
        help: "a conversation with tool calls requires a list of tools",
    },
    CompatField {
        name: "requiresThinkingAsText",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "no",
        help: "earlier thinking must be sent as text",
    },
    CompatField {
        name: "requiresReasoningContentOnAssistantMessages",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "only thinking models of DeepSeek and Moonshot",
        help: "every answer must contain `reasoning_content`",
    },
    CompatField {
        name: "thinkingFormat",
        apis: CHAT,
        kind: CompatKind::Choice(&[
            "openai",
            "openrouter",
            "deepseek",
            "together",
            "baseten",
            "zai",
            "qwen",
            "chat-template",
            "qwen-chat-template",
            "string-thinking",
            "ant-ling",
        ]),
        default: "by provider; `openai` for unknown ones",
        help: "request format of the thinking level",
    },
    CompatField {
        name: "chatTemplateKwargs",
        apis: CHAT,
        kind: CompatKind::Object,
        default: "only `enable_thinking`",
        help: "`chat_template_kwargs` of the two template formats; `{\"$var\": \"thinking.enabled\"}` is replaced with whether thinking is on, `thinking.effort` and `thinking.budget` with its amount",
    },
    CompatField {
        name: "chatTemplateArgs",
        apis: CHAT,
        kind: CompatKind::Object,
        default: "`chatTemplateKwargs`",
        help: "`chat_template_args` of the format `baseten`, with the same variables",
    },
    CompatField {
        name: "thinkingTokenBudgetField",
        apis: CHAT,
        kind: CompatKind::Text,
        default: "none",
        help: "field for the thinking token limit",
    },
    CompatField {
        name: "supportsThinkingTokenBudget",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "no",
        help: "that field is `thinking_token_budget`",
    },
    CompatField {
        name: "forceAdaptiveThinking",
        apis: CLAUDE,
        kind: CompatKind::Bool,
        default: "no; on Bedrock by model id",
        help: "accepts an effort instead of a thinking token budget",
    },
    CompatField {
        name: "allowEmptySignature",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "no",
        help: "sends and accepts thinking without a signature",
    },
    CompatField {
        name: "supportsAssistantPrefill",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "only Anthropic's own models without adaptive thinking",
        help: "can continue a truncated answer when thinking is off",
    },
    CompatField {
        name: "allowedFallbackModels",
        apis: ANTHROPIC,
        kind: CompatKind::List,
        default: "none",
        help: "models that may answer instead, each as `{\"model\", \"cost\"}`; the cost is that of the model that answers",
    },
    CompatField {
        name: "supportsStrictTools",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "no",
        help: "constrains tool arguments to the schema",
    },
    CompatField {
        name: "supportsStrictMode",
        apis: STRICT,
        kind: CompatKind::Bool,
        default: "no; yes for OpenAI, Azure and ChatGPT with `openai-responses`",
        help: "constrains tool arguments to the schema",
    },
    CompatField {
        name: "supportsOpenAIGrammarTools",
        apis: OPENAI,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts tools whose argument is text defined by a grammar",
    },
    CompatField {
        name: "supportsEagerToolInputStreaming",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "only Anthropic",
        help: "streams arguments of tools that request it; other servers are asked with a beta header",
    },
    CompatField {
        name: "zaiToolStream",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "no",
        help: "streams arguments if `tool_stream` is set",
    },
    CompatField {
        name: "supportsParametersJsonSchema",
        apis: GOOGLE,
        kind: CompatKind::Bool,
        default: "yes",
        help: "accepts tools in JSON Schema; otherwise pi sends OpenAPI's subset. Not in the original",
    },
    CompatField {
        name: "streamFunctionCallArguments",
        apis: GOOGLE,
        kind: CompatKind::Bool,
        default: "no",
        help: "streams arguments, like Gemini 3 on Vertex AI. Not in the original",
    },
    CompatField {
        name: "supportsMidConvoSystemMessages",
        apis: UPDATES,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts new instructions between turns; otherwise pi sends changes at the start, which invalidates the cached prompt",
    },
    CompatField {
        name: "supportsMidConvoToolChanges",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts changes of tools between turns",
    },
    CompatField {
        name: "supportsMidConvoToolAdditions",
        apis: CHAT,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts new tools between turns",
    },
    CompatField {
        name: "supportsAdditionalTools",
        apis: RESPONSES,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts changes of tools between turns",
    },
    CompatField {
        name: "supportsToolSearch",
        apis: RESPONSES,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts new tools between turns",
    },
    CompatField {
        name: "supportsMidConvoEffort",
        apis: EFFORT,
        kind: CompatKind::Bool,
        default: "no",
        help: "accepts changes of the thinking level between turns",
    },
    CompatField {
        name: "promptCacheKeyMode",
        apis: OPENAI,
        kind: CompatKind::Choice(&["auto", "enabled", "disabled"]),
        default: "`auto`: sent; with `openai-completions` only to OpenAI",
        help: "whether pi sends the session id as `prompt_cache_key`",
    },
    CompatField {
        name: "supportsLongCacheRetention",
        apis: CACHES,
        kind: CompatKind::Bool,
        default: "only OpenAI, Anthropic, and Anthropic's models on OpenRouter",
        help: "supports `PI_CACHE_RETENTION=long`: an hour at Anthropic, a day at OpenAI",
    },
    CompatField {
        name: "supportsExplicitPromptCacheMode",
        apis: RESPONSES,
        kind: CompatKind::Bool,
        default: "no",
        help: "long retention is requested with `prompt_cache_options`, for half an hour",
    },
    CompatField {
        name: "cacheControlFormat",
        apis: CHAT,
        kind: CompatKind::Choice(&["anthropic"]),
        default: "`anthropic` for Anthropic's models on OpenRouter",
        help: "format of cache markers",
    },
    CompatField {
        name: "supportsCacheControlOnTools",
        apis: ANTHROPIC,
        kind: CompatKind::Bool,
        default: "yes",
        help: "accepts cache markers on tools",
    },
    CompatField {
        name: "sendSessionAffinityHeaders",
        apis: CACHES,
        kind: CompatKind::Bool,
        default: "only OpenAI with `openai-responses`, ChatGPT, OpenRouter and Mistral",
        help: "receives headers that keep a session on one server",
    },
    CompatField {
        name: "sessionAffinityFormat",
        apis: CACHES,
        kind: CompatKind::Choice(&["openai", "openai-nosession", "openrouter"]),
        default: "`openrouter` for OpenRouter, otherwise `openai`",
        help: "format of these headers; `openai-nosession` omits the session id",
    },
    CompatField {
        name: "openRouterRouting",
        apis: CHAT,
        kind: CompatKind::Object,
        default: "none",
        help: "OpenRouter's `provider`: which providers may serve the model",
    },
    CompatField {
        name: "vercelGatewayRouting",
        apis: CHAT,
        kind: CompatKind::Object,
        default: "none",
        help: "the same for Vercel AI Gateway",
    },
    CompatField {
        name: "vllmPriority",
        apis: CHAT,
        kind: CompatKind::Whole,
        default: "none",
        help: "vLLM's `priority`",
    },
    CompatField {
        name: "deployment",
        apis: AZURE,
        kind: CompatKind::Text,
        default: "the model id",
        help: "deployment name of the model on Azure",
    },
];

/// Removes invalid values from `compat`, so that the defaults apply, and returns a
/// description of each.
pub(in crate::ai) fn take_wrong(compat: &mut Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    for field in COMPAT_FIELDS {
        let wrong = compat.get(field.name).filter(|value| !value.is_null() && !field.kind.allows(value));
        let Some(wrong) = wrong else { continue };
        let allowed = field.kind.describe();
        let lead = if matches!(field.kind, CompatKind::Choice(_)) { "one of " } else { "" };
        problems.push(format!("compat \"{}\" is {}; it must be {lead}{allowed}", field.name, shown(wrong)));
        compat.shift_remove(field.name);
    }
    problems
}

/// A value, shortened to a few characters.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => {
            let text = other.to_string();
            if text.chars().count() > 40 { "a long text".to_owned() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// The names that the sources look up.
    fn read_names() -> BTreeSet<&'static str> {
        const SOURCES: [&str; 2] = [include_str!("compat.rs"), include_str!("../api/azure.rs")];
        const ASKING: [&str; 8] = [
            ".bool(\"",
            ".is_on(\"",
            ".text(\"",
            ".object(\"",
            ".list(\"",
            ".number(\"",
            "0.get(\"",
            "compat.get(\"",
        ];
        let mut names = BTreeSet::new();
        for source in SOURCES {
            for asking in ASKING {
                let asked = source.split(asking).skip(1).filter_map(|rest| rest.split('"').next());
                names.extend(asked);
            }
        }
        names
    }

    #[test]
    fn the_table_has_what_is_read_and_nothing_else() {
        let listed: BTreeSet<&str> = COMPAT_FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(listed.len(), COMPAT_FIELDS.len(), "no name comes twice");
        assert_eq!(listed, read_names());
    }

    #[test]
    fn what_cannot_stand_there_is_taken_out_and_named() {
        let check = |compat: Value, left: Value, expected: &[&str]| {
            let mut compat = compat.as_object().unwrap().clone();
            assert_eq!(take_wrong(&mut compat), expected);
            assert_eq!(Value::Object(compat), left);
        };
        let fine = json!({"supportsStore": false, "promptCacheKeyMode": "auto", "vllmPriority": 2, "later": {},
            "allowedFallbackModels": [], "openRouterRouting": {}, "deployment": "d", "zaiToolStream": null});
        check(fine.clone(), fine, &[]);
        check(
            json!({"supportsStore": "no"}),
            json!({}),
            &["compat \"supportsStore\" is \"no\"; it must be true or false"],
        );
        check(
            json!({"promptCacheKeyMode": "on", "later": 1}),
            json!({"later": 1}),
            &[
                "compat \"promptCacheKeyMode\" is \"on\"; it must be one of \"auto\", \"enabled\", \"disabled\"",
            ],
        );
        check(
            json!({"vllmPriority": 1.5}),
            json!({}),
            &["compat \"vllmPriority\" is 1.5; it must be a whole number"],
        );
        check(
            json!({"deployment": {}}),
            json!({}),
            &["compat \"deployment\" is an object; it must be a string"],
        );
        check(
            json!({"openRouterRouting": ["a"]}),
            json!({}),
            &["compat \"openRouterRouting\" is a list; it must be an object"],
        );
    }

    #[test]
    fn the_built_in_models_have_only_what_may_stand_there() {
        let catalog = super::super::catalog::Catalog::builtin();
        for model in catalog.models() {
            assert_eq!(take_wrong(&mut model.compat.clone()), [""; 0], "{}", model.reference());
        }
    }
}
