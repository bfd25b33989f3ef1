//! Known error texts of servers, and how a pattern is matched.
//!
//! Patterns are lower case and match anywhere in the text; `*` stands for any
//! text and `#` for a number. For a new wording, add a row.

pub(super) const TOOL_USE_FAILED: &[&str] = &[
    "tool_use_failed",
    "failed to call a function",
    // Gemini's names for calls that its own parser rejected.
    "malformed_function_call",
    "unexpected_tool_call",
    // An answer that announces calls and has none.
    "announced a tool call but contains none",
    "finishreason: malformed_response",
    // Bedrock's name for the same.
    "stopreason: malformed_",
    "invalid sequence as part of tooluse",
];

pub(super) const CONFIG: &[&str] = &[
    "provide the mmproj",
    "--mmproj",
    "requires --jinja",
    "--jinja flag",
    "--enable-auto-tool-choice",
    "--tool-call-parser",
    "does not support tools",
];

/// Rejections of system messages between the turns and of the fields that go with
/// them, by the names the APIs use.
pub(super) const UPDATES: &[&str] = &[
    "anthropic-beta",
    "inline-tools",
    "mid-conversation",
    "thinking-binding",
    "server-side-fallback",
    "defer_loading",
    "tool_addition",
    "tool_removal",
    "block_binding",
    "output_config",
    "fallbacks",
    "additional_tools",
    "configuration_update",
    "tool_search",
    "unexpected role",
    "role 'system'",
    "role \"system\"",
    "role: system",
    "'system' role",
    "system messages are only",
    "system message must be",
    "must be at the beginning",
];

/// Rejections of schemas to be enforced. The patterns include the words around
/// "schema", because that word alone is in other errors too.
pub(super) const STRICT_SCHEMAS: &[&str] = &[
    // Anthropic, which limits the schemas of one request.
    "too many strict tools",
    "too many parameters with union types",
    "too many optional parameters",
    "schema is too complex",
    "schemas are too complex",
    "compiled grammar is too large",
    "grammar compilation",
    "for '*' type, propert* not supported",
    "'additionalproperties' must be",
    // OpenAI.
    "invalid schema for function",
    "'additionalproperties' is required to be",
    "'required' is required to be",
    // Servers that reject the field as unknown.
    "custom.strict:",
    "function.strict",
    "].strict",
    "toolspec.strict",
    "strict mode",
    "strict tool",
    "strict schema",
    "`strict`",
    "'strict'",
    "\"strict\"",
];

/// Names of the limit of an answer. A service that rejects the limit as negative has computed it
/// from the length of the prompt.
pub(super) const ANSWER_LIMITS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "maxoutputtokens",
    "maxtokens",
    "n_predict",
    "num_predict",
];

/// The field with the thinking of an answer, as errors name it.
pub(super) const REASONING_FIELDS: &[&str] =
    &["reasoning_content", "reasoningcontent", "reasoning content", "reasoning-content"];

/// Words that demand a field.
pub(super) const DEMANDS: &[&str] = &[
    "must",
    "missing",
    "require",
    "passed back",
    "pass back",
    "sent back",
    "send back",
    "expected",
    "need",
    "should",
    "include",
    "not found",
    "absent",
    "lack",
    "without",
    "not provided",
    "no reasoning",
    "undefined",
    "is none",
    "null",
];

/// Words that reject a field.
pub(super) const REFUSES_FIELD: &[&str] = &[
    "not allowed",
    "not permitted",
    "not supported",
    "unsupported",
    "does not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "extra ",
    "additional properties",
    "must not",
    "should not",
    "cannot be set",
    "forbidden",
];

pub(super) const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "cannot truncate prompt",
    "n_keep",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "input tokens exceeded",
    "exceeds the context window",
    "exceed context limit",
    "exceeds the context length",
    "longer than the maximum model length",
    "exceeds the maximum allowed length",
    "max_new_tokens* must be <=",
    "reached context length of #",
    "exceeds the maximum context length",
    "exceeds the model's maximum context length",
    "exceeds model's maximum context length",
    "exceeds maximum context length",
    "maximum context length is # tokens",
    "maximum context length of # tokens",
    "maximum context length",
    "context window exceed",
    "context window is exceeded",
    "contextwindowexceedederror",
    "context window exceeds limit",
    "input token count * exceeds the maximum",
    "input token count exceeds the maximum",
    "maximum prompt length is #",
    "reduce the length of the messages",
    "exceeds the maximum allowed input length of # tokens",
    "exceeds maximum allowed input length of # tokens",
    "input (# tokens) is longer than the model's context length",
    "longer than the model's context length",
    "prompt token count of # exceeds the limit of #",
    "exceeds the limit of # tokens",
    "model_max_prompt_tokens_exceeded",
    "exceeds the available context size",
    "exceed_context_size_error",
    "greater than the context length",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "prompt has # tokens but the configured context size is #",
    "model_context_window_exceeded",
    "exceeded context length",
    "exceeded max context length",
    "range of input length should be",
    "context_length_exceeded",
    "context length exceeded",
    "too many tokens",
    "too_many_tokens",
    "too_many_prompt_tokens",
    "token limit exceeded",
    "total length of all messages is too long",
    "400: cerebras answered with an empty body",
    "413: cerebras answered with an empty body",
    // LM Studio.
    "when context the overflows",
    "context length of only #",
    "input tokens exceed the configured limit",
];

/// In an error about the length of a request, what is too long. With one of [`EXCESSES`] it is a
/// rejection in any wording.
pub(super) const LENGTHS: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "context limit",
    "context_length",
    "context_window",
    "maximum context",
    "max context",
    "n_ctx",
    "input tokens",
    "prompt tokens",
    "input token count",
    "prompt token count",
    "input length",
    "prompt length",
    "model length",
    "max_model_len",
    "length of the prompt",
    "length of the input",
    "tokens in the prompt",
    "prompt is",
    "input is",
    "conversation is",
];

pub(super) const EXCESSES: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too big",
    "too many",
    "longer than",
    "greater than",
    "larger than",
    "bigger than",
    "more than",
    "over the",
    "above the",
    "overflow",
    "not enough",
    "not fit",
    "doesn't fit",
    "cannot fit",
    "can't fit",
    "beyond",
    "surpass",
];

/// Words of errors about another length: of the answer, of a name, of a picture, of a month.
pub(super) const OTHER_LENGTHS: &[&str] = &[
    "output token",
    "completion token",
    "output length",
    "thinking",
    "reasoning",
    "image",
    "tool",
    "function",
    "schema",
    "character",
    "quota",
    "month",
    "week",
    "daily",
    "per day",
    "credit",
    "balance",
    "billing",
    "stop sequence",
    "temperature",
    "top_p",
];

/// Names of a limit of tokens per minute.
pub(super) const TOKENS_PER_MINUTE: &[&str] =
    &["tokens per min", "tokens per-min", "tokens_per_min", "(tpm)", "tokens/min"];

pub(super) const RATE_LIMIT: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "too many requests",
    "too_many_requests",
    "throttling",
    "throttled",
    "tokens per min",
    "requests per min",
    "please wait before trying again",
    "resource_exhausted",
    "resourceexhausted",
    "resource exhausted",
];

pub(super) const PER_MINUTE: &[&str] = &[
    "perminute",
    "per minute",
    "per-minute",
    "per_minute",
    "requests_per_base_model",
    "please retry in #",
    "rate_limit_exceeded",
];

pub(super) const PER_DAY: &[&str] = &["perday", "per day", "per-day", "per_day"];

pub(super) const QUOTA: &[&str] = &[
    "all available credits",
    "spending limit",
    "exceeded_current_quota",
    "exceeded your current token quota",
    "api usage limits",
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit",
    "usage_limit_reached",
    "usage_not_included",
    "subscription_sharing_*usage_limit_exceeded",
    "available balance",
    "insufficient balance",
    "insufficient_quota",
    "insufficient credit",
    "credit balance is too low",
    "requires more credits",
    "out of budget",
    "quota exceeded",
    "exceeded your current quota",
    "quota_exceeded",
    "billing",
    "(1308)",
    "1308:",
    "\"code\":1308",
    "\"code\": 1308",
    "\"code\":\"1308\"",
    "\"code\": \"1308\"",
    "usage limit reached",
    "servicequotaexceeded",
];

pub(super) const REFUSED: &[&str] = &[
    "stop_reason: refusal",
    "stop_reason: sensitive",
    "finish_reason: content_filter",
    "incomplete: content_filter",
    "finish_reason: sensitive",
    "content management policy",
    "usage policy",
    "finishreason: safety",
    "finishreason: recitation",
    "finishreason: blocklist",
    "finishreason: prohibited_content",
    "finishreason: spii",
    "finishreason: image_",
    "blockreason: ",
    "stopreason: guardrail_intervened",
    "stopreason: content_filtered",
    "content_policy_violation",
];

pub(super) const AUTH: &[&str] = &[
    "authentication_error",
    "authentication fails",
    "authentication failed",
    "unauthenticated",
    "unauthorized",
    "permission_denied",
    "permission_error",
    "invalid_api_key",
    "api_key_invalid",
    "invalid api key",
    "invalid x-api-key",
    "incorrect api key",
    "api key not valid",
    "api key not found",
    "api key expired",
    "no api key",
    "missing api key",
    "security token included in the request is invalid",
    "accessdeniedexception",
    "expiredtokenexception",
    "unrecognizedclientexception",
    "no auth credentials",
];

pub(super) const NOT_FOUND: &[&str] = &[
    "model_not_found",
    "model not found",
    "not_found_error",
    "_not_found",
    "no such model",
    "unknown model",
    "invalid model",
    "is not a valid model",
    "does not exist or you do not have access",
    "model * does not exist",
    "model * not found",
];

pub(super) const OVERLOADED: &[&str] = &[
    "overloaded",
    "server busy",
    "server is busy",
    "high demand",
    "at capacity",
    "over capacity",
    "service unavailable",
    "service temporarily unavailable",
    "service is temporarily unavailable",
    "service is currently unavailable",
    "service_unavailable",
    "serviceunavailableexception",
    "modelnotreadyexception",
    "insufficient_system_resource",
    "subscription_sharing_*unavailable",
];

/// Matched before the network and server tables, whose words these patterns share.
pub(super) const PERMANENT: &[&str] = &[
    "certificate",
    "invalid url",
    "invalid_request",
    "validationexception",
    "unsupported scheme",
    "cannot be sent",
];

pub(super) const NETWORK: &[&str] = &[
    "network error",
    "network_error",
    "connection error",
    "connection refused",
    "connection lost",
    "connection reset",
    "connection closed",
    "connectionclosed",
    "connectionreset",
    "websocket connection limit reached",
    "websocket_connection_limit_reached",
    "connection aborted",
    "broken pipe",
    "other side closed",
    "fetch failed",
    "request to * failed, reason:",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "failed to lookup address",
    "upstream connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "timed out",
    "timeout",
    "deadline expired",
    "deadline_exceeded",
    "terminated",
    "websocket closed",
    "websocket error",
    "ended without",
    "stream ended before",
    "stream interrupted",
    "stream disconnected before completion",
    "http2 stream failed",
    "http2 no response",
    "http2 request did not get a response",
    "pending stream has been canceled",
    "malformed json",
];

/// Names of network errors, as words of their own.
pub(super) const NETWORK_CODES: &[&str] =
    &["econnreset", "econnaborted", "econnrefused", "etimedout", "epipe", "econnclosed"];

pub(super) const SERVER: &[&str] = &[
    "server error",
    "server_error",
    "internal error",
    "internal_error",
    "internal server",
    "internalserverexception",
    "modelstreamerrorexception",
    "api_error",
    "provider returned error",
    "upstream buffer",
    "upstream forward",
    "upstream request",
    "upstream read",
    "upstream error",
    "retry delay",
    "retry your request",
    "try your request again",
    "something went wrong",
    "finish_reason: error",
];

pub(super) const TRANSIENT_STATUSES: &[&str] = &["429", "500", "502", "503", "504", "520", "524", "529"];

/// Whether `text` contains `token` as a word of its own: not part of a word, number or id.
pub(super) fn has_token(text: &str, token: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ',' | '.');
    text.match_indices(token).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + token.len()..].chars();
        let next = after.next();
        // A full stop ends a sentence unless a digit follows.
        let next_joins = match next {
            Some('.' | ',') => after.next().is_some_and(|c| c.is_ascii_digit()),
            Some(c) => joins(c),
            None => false,
        };
        !before.is_some_and(joins) && !next_joins
    })
}

/// Whether `text` contains `pattern`, see the module documentation.
pub(super) fn contains(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    for part in pattern.split('*') {
        match end_of(rest, part) {
            Some(end) => rest = &rest[end..],
            None => return false,
        }
    }
    true
}

/// The position in `text` after the first match of `part`, which contains no `*`.
fn end_of(text: &str, part: &str) -> Option<usize> {
    let Some((head, tail)) = part.split_once('#') else {
        return text.find(part).map(|at| at + part.len());
    };
    text.match_indices(head).find_map(|(at, _)| {
        let number = at + head.len();
        Some(number + number_and(&text[number..], tail)?)
    })
}

/// The length of a number followed by `tail`, which may contain more numbers, at the start of `text`.
fn number_and(text: &str, tail: &str) -> Option<usize> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_' | '.');
    let length = text.find(|c| !digits(c)).unwrap_or(text.len());
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = &text[length..];
    match tail.split_once('#') {
        None => rest.starts_with(tail).then_some(length + tail.len()),
        Some((between, tail)) => {
            let rest = rest.strip_prefix(between)?;
            Some(length + between.len() + number_and(rest, tail)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_gaps_and_numbers() {
        assert!(contains(
            "input token count (12) exceeds the maximum",
            "input token count * exceeds the maximum"
        ));
        assert!(contains("is at is 12,000 tokens", "is # tokens"));
        assert!(!contains("is many tokens", "is # tokens"));
        assert!(contains("so 12 of 1,000 now", "so # of # now"));
        assert!(!contains("so 12 of many now", "so # of # now"));
        assert!(!contains("b a", "a*b"));
    }
}
