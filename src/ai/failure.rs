//! What a failed request means: which class of failure, whether trying again
//! can help, whether the conversation has to shrink, how long to wait.
//!
//! The stored `error_message` is all that is left of a failure, so everything
//! is read from that text, and [`ErrorBody`] writes into it what is needed to
//! read it back: status, message, code and demanded wait. The tables hold what
//! servers are known to say; a new wording is a new row. A pattern is lower
//! case; `*` stands for any text and `#` for a number.

use std::time::Duration;

use serde_json::Value;

use super::message::{AssistantMessage, StopReason};

/// What went wrong, as far as callers treat it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The key or token is missing, wrong or not allowed to do this.
    Auth,
    /// The request was larger than the model's context window.
    Overflow,
    /// No such model, endpoint or earlier response.
    NotFound,
    /// Too many requests or tokens for now.
    RateLimit,
    /// The service has no room for now.
    Overloaded,
    /// Credit, plan or daily allowance is used up.
    Quota,
    /// The server refuses this very request.
    InvalidRequest,
    /// The server could not read what its model wrote as a tool call.
    ToolUseFailed,
    /// The server is started without something the request needs.
    Config,
    /// The service broke.
    Server,
    /// The service could not be reached, or the connection was lost.
    Network,
    /// The model declined to answer.
    Refused,
    Unknown,
}

impl FailureClass {
    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit | Self::Overloaded | Self::ToolUseFailed | Self::Server | Self::Network => true,
            Self::Auth
            | Self::Overflow
            | Self::NotFound
            | Self::Quota
            | Self::InvalidRequest
            | Self::Config
            | Self::Refused
            | Self::Unknown => false,
        }
    }
}

/// Classifies an error by its text and HTTP status. Without a `status`, one
/// that the text begins with counts.
pub fn classify(text: &str, status: Option<u16>) -> FailureClass {
    let text = text.to_lowercase();
    let status = status.or_else(|| leading_status(&text));
    let says = |table: &[&str]| table.iter().any(|pattern| contains(&text, pattern));

    if says(TOOL_USE_FAILED) {
        return FailureClass::ToolUseFailed;
    }
    if says(CONFIG) {
        return FailureClass::Config;
    }
    // Rate limits speak of tokens and limits too, so they are ruled out first.
    let limited = status == Some(429) || says(RATE_LIMIT) || text.starts_with("service unavailable:");
    if !limited && (status == Some(413) || says(OVERFLOW)) {
        return FailureClass::Overflow;
    }
    // A limit per minute passes by itself, even where the text speaks of quota and billing.
    let passing = says(PER_MINUTE) && !says(PER_DAY);
    if status == Some(402) || (says(QUOTA) && !passing) {
        return FailureClass::Quota;
    }
    if says(REFUSED) {
        return FailureClass::Refused;
    }
    if matches!(status, Some(401 | 403)) || says(AUTH) {
        return FailureClass::Auth;
    }
    if status == Some(404) || says(NOT_FOUND) {
        return FailureClass::NotFound;
    }
    match status {
        Some(429) => return FailureClass::RateLimit,
        Some(503 | 529) => return FailureClass::Overloaded,
        Some(408 | 409 | 425 | 500..=599) if says(OVERLOADED) => return FailureClass::Overloaded,
        Some(408 | 409 | 425 | 500..=599) => return FailureClass::Server,
        Some(400..=499) if limited && passing => return FailureClass::RateLimit,
        Some(400..=499) => return FailureClass::InvalidRequest,
        _ => {}
    }
    if limited || passing {
        return FailureClass::RateLimit;
    }
    if says(OVERLOADED) {
        return FailureClass::Overloaded;
    }
    if says(PERMANENT) {
        return FailureClass::InvalidRequest;
    }
    if says(NETWORK) {
        return FailureClass::Network;
    }
    if says(SERVER) || TRANSIENT_STATUSES.iter().any(|status| has_token(&text, status)) {
        return FailureClass::Server;
    }
    FailureClass::Unknown
}

/// Whether repeating the request that `message` answers may help.
pub fn is_retryable(message: &AssistantMessage) -> bool {
    message.stop_reason == StopReason::Error
        && message.error_message.as_deref().is_some_and(|text| classify(text, None).is_retryable())
}

/// Whether `message` shows that the conversation no longer fits a window of
/// `context_window` tokens. Some servers say so, some only answer nothing.
pub fn is_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    if message.raw_stop_reason.as_deref() == Some("model_context_window_exceeded") {
        return true;
    }
    let prompt = message.usage.input.saturating_add(message.usage.cache_read);
    match message.stop_reason {
        StopReason::Error => {
            let text = message.error_message.as_deref().unwrap_or_default();
            classify(text, None) == FailureClass::Overflow
        }
        StopReason::Length if message.usage.output == 0 => {
            context_window > 0 && prompt >= context_window - context_window / 100
        }
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => {
            context_window > 0 && prompt > context_window
        }
        StopReason::Aborted | StopReason::Deferred | StopReason::Pending => false,
    }
}

/// How long the server asks to wait before the next attempt, if its error text says so.
pub fn retry_delay(text: &str) -> Option<Duration> {
    let text = text.to_lowercase();
    let marks =
        ["retry after ", "retry delay of ", "retry in ", "try again in ", "retrydelay\":\"", "retry delay "];
    marks.iter().find_map(|mark| {
        let start = text.find(mark)? + mark.len();
        parse_duration(text.get(start..)?)
    })
}

/// `12`, `12s`, `1.5s`, `800ms`, `7m12.5s`, `2 seconds`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text;
    let mut found = false;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        found = true;
        let unit_text = tail.trim_start();
        let length = unit_text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_text.len());
        let (unit, after) = unit_text.split_at(length);
        let factor = match unit {
            "ms" | "milliseconds" => 0.001,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => 1.0,
        };
        seconds += number * factor;
        rest = after;
        if !matches!(unit, "h" | "m") {
            break;
        }
    }
    (found && seconds.is_finite()).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

/// What an error response says, taken out of the shapes servers use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ErrorBody {
    /// The most specific name the server has for the error.
    pub(super) code: Option<String>,
    pub(super) message: String,
    /// Further facts that decide about a retry.
    pub(super) notes: Vec<String>,
}

/// Longest message kept of an error body.
const MESSAGE_LIMIT_CHARS: usize = 4_000;

impl ErrorBody {
    /// Reads a body of text; anything that is no known shape is the message itself.
    pub(super) fn from_text(body: &str) -> Self {
        let parsed = serde_json::from_str(body).ok().and_then(|value| Self::from_json(&value));
        parsed.unwrap_or_else(|| Self { message: clip(body.trim()), ..Self::default() })
    }

    /// Reads a JSON document; `None` if it does not look like an error.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let value = match value {
            Value::Array(items) => items.first()?,
            other => other,
        };
        match value.get("error") {
            Some(error @ Value::Object(_)) => return Some(Self::from_object(error)),
            Some(Value::String(message)) if !message.is_empty() => {
                let code = name(value.get("code")).or_else(|| name(value.get("type")));
                return Some(Self { code, message: clip(message), notes: Vec::new() });
            }
            _ => {}
        }
        let looks_like_error = ["message", "detail"].iter().any(|key| value.get(key).is_some())
            && value.get("choices").is_none()
            && value.get("type").and_then(Value::as_str) != Some("message");
        looks_like_error.then(|| Self::from_object(value))
    }

    fn from_object(error: &Value) -> Self {
        let message = ["message", "error", "detail", "msg"].iter().find_map(|key| text_of(error.get(key)?));
        let code = name(error.get("code").filter(|code| !code.is_number()))
            .or_else(|| name(error.get("type").filter(|kind| *kind != "error")))
            .or_else(|| name(error.get("error_type")))
            .or_else(|| name(error.get("status").filter(|status| status.is_string())))
            .or_else(|| name(error.get("code")));
        let mut body =
            Self { code, message: clip(&message.unwrap_or_else(|| error.to_string())), notes: Vec::new() };
        // OpenRouter hides what the provider behind it said.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(text_of)
            && !body.message.contains(&raw)
        {
            body.message = clip(&format!("{}: {raw}", body.message));
        }
        // Google says in details which quota it is and when to come back.
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
            let quotas = violations.filter_map(|violation| violation.get("quotaId"));
            let limit = detail.pointer("/metadata/quota_limit");
            for quota in quotas.chain(limit).filter_map(Value::as_str) {
                body.notes.push(format!("quota {quota}"));
            }
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                body.notes.push(reason.to_owned());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                body.notes.push(format!("retry after {delay}"));
            }
        }
        // The Codex service names the plan's limit and its end.
        if let Some(at) = error.get("resets_at").and_then(Value::as_u64) {
            body.notes.push(format!("resets at {at}"));
        }
        body
    }

    /// `429: Slow down (rate_limit_error, retry after 12s)`.
    pub(super) fn with_status(mut self, status: u16) -> String {
        let known = |code: &str| code == status.to_string() || self.message.contains(code);
        if let Some(code) = self.code.take_if(|code| !known(code)) {
            self.notes.insert(0, code);
        }
        format!("{status}: {}{}", self.message, notes(&self.notes))
    }

    /// `overloaded_error: Overloaded`, for errors in the middle of a stream.
    pub(super) fn in_stream(self) -> String {
        let notes = notes(&self.notes);
        match self.code {
            Some(code) => format!("{code}: {}{notes}", self.message),
            None => format!("{}{notes}", self.message),
        }
    }
}

fn notes(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}

/// A name or number as text; not the words servers use for "none".
fn name(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() && text != "null" => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a message field, which some frameworks fill with lists and objects.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(text_of).collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        Value::Object(members) => {
            ["msg", "message", "detail"].iter().find_map(|key| text_of(members.get(*key)?))
        }
        _ => None,
    }
}

pub(super) fn clip(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_LIMIT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A status at the start of the text, followed by anything but more of a word.
fn leading_status(text: &str) -> Option<u16> {
    let digits = text.get(..3)?;
    let status: u16 = digits.parse().ok()?;
    let ends = text[3..].chars().next().is_none_or(|next| matches!(next, ':' | ' '));
    ((100..600).contains(&status) && ends).then_some(status)
}

/// Whether `text` has `token` standing alone: not part of a word, number or id.
fn has_token(text: &str, token: &str) -> bool {
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
fn contains(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    for part in pattern.split('*') {
        match end_of(rest, part) {
            Some(end) => rest = &rest[end..],
            None => return false,
        }
    }
    true
}

/// Where the first match of `part`, which has no `*`, ends in `text`.
fn end_of(text: &str, part: &str) -> Option<usize> {
    let Some((head, tail)) = part.split_once('#') else {
        return text.find(part).map(|at| at + part.len());
    };
    text.match_indices(head).find_map(|(at, _)| {
        let number = at + head.len();
        let digits = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_' | '.');
        let after = &text[number..];
        let length = after.find(|c| !digits(c)).unwrap_or(after.len());
        let starts_with_digit = after.starts_with(|c: char| c.is_ascii_digit());
        let end = number + length;
        (starts_with_digit && text[end..].starts_with(tail)).then_some(end + tail.len())
    })
}

const TOOL_USE_FAILED: &[&str] = &["tool_use_failed", "failed to call a function"];

const CONFIG: &[&str] = &[
    "provide the mmproj",
    "--mmproj",
    "requires --jinja",
    "--jinja flag",
    "--enable-auto-tool-choice",
    "--tool-call-parser",
    "does not support tools",
];

const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "input tokens exceeded",
    "exceeds the context window",
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
    "cerebras answered with an empty body",
];

const RATE_LIMIT: &[&str] = &[
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

const PER_MINUTE: &[&str] =
    &["perminute", "per minute", "per-minute", "please retry in #", "rate_limit_exceeded"];

const PER_DAY: &[&str] = &["perday", "per day", "per-day"];

const QUOTA: &[&str] = &[
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
];

const REFUSED: &[&str] = &[
    "stop_reason: refusal",
    "stop_reason: sensitive",
    "finish_reason: content_filter",
    "finish_reason: sensitive",
    "content management policy",
    "usage policy",
    "content_policy_violation",
];

const AUTH: &[&str] = &[
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
    "no auth credentials",
];

const NOT_FOUND: &[&str] = &[
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

const OVERLOADED: &[&str] = &[
    "overloaded",
    "server busy",
    "server is busy",
    "high demand",
    "at capacity",
    "over capacity",
    "service unavailable",
    "service temporarily unavailable",
    "service is temporarily unavailable",
    "service_unavailable",
    "insufficient_system_resource",
    "subscription_sharing_*unavailable",
];

/// Ruled out before the network and server tables, whose words they share.
const PERMANENT: &[&str] =
    &["certificate", "invalid url", "invalid_request", "unsupported scheme", "cannot be sent"];

const NETWORK: &[&str] = &[
    "network error",
    "network_error",
    "connection error",
    "connection refused",
    "connection lost",
    "connection reset",
    "connection closed",
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

const SERVER: &[&str] = &[
    "server error",
    "server_error",
    "internal error",
    "internal_error",
    "internal server",
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

const TRANSIENT_STATUSES: &[&str] = &["429", "500", "502", "503", "504", "520", "524", "529"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::model::Api;
    use super::*;

    #[test]
    fn texts_are_classified_by_what_servers_say() {
        use FailureClass::*;
        let rows = [
            (
                "429: You exceeded your current quota, please check your plan and billing details. (insufficient_quota)",
                Quota,
            ),
            (
                "429: You exceeded your current quota, billing. Please retry in 48.9s. (RESOURCE_EXHAUSTED, quota GenerateContentInputTokensPerModelPerMinute-FreeTier, retry after 48s)",
                RateLimit,
            ),
            (
                "429: You exceeded your current quota (RESOURCE_EXHAUSTED, quota GenerateRequestsPerDayPerProjectPerModel-FreeTier, retry after 48s)",
                Quota,
            ),
            (
                "rate_limit_exceeded: Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000",
                RateLimit,
            ),
            ("413: Request too large for model on tokens per minute (TPM): Limit 6000", RateLimit),
            ("413: failed to parse request", Overflow),
            ("400: cerebras answered with an empty body", Overflow),
            ("400: someone answered with an empty body", InvalidRequest),
            (
                "400: Requested token count exceeds the model's maximum context length of 131072 tokens",
                Overflow,
            ),
            (
                "400: This model's maximum context length is 128,000 tokens. However, you requested 130000",
                Overflow,
            ),
            (
                "400: Trying to keep the first 9000 tokens when context the overflows: The number of tokens to keep from the initial prompt is greater than the context length",
                Overflow,
            ),
            ("400: Incorrect API key provided: xx (invalid-argument)", Auth),
            ("500: tools param requires --jinja flag", Config),
            ("overloaded_error: Overloaded", Overloaded),
            ("Sorry, something went wrong.", Server),
            ("stream ended before message_stop", Network),
            ("connection error: cannot reach http://x (connection refused)", Network),
            ("connection error: invalid peer certificate: UnknownIssuer", InvalidRequest),
            ("upstream says 502 and no more", Server),
            ("request req_502abc went wrong; limit 1,500.25", Unknown),
            ("finish_reason: model_context_window_exceeded", Overflow),
            ("finish_reason: network_error", Network),
            ("finish_reason: content_filter", Refused),
            ("400: Please retry your request", InvalidRequest),
        ];
        for (text, expected) in rows {
            assert_eq!(classify(text, None), expected, "{text}");
        }
    }

    #[test]
    fn patterns_match_gaps_and_numbers() {
        assert!(contains(
            "input token count (12) exceeds the maximum",
            "input token count * exceeds the maximum"
        ));
        assert!(contains("is at is 12,000 tokens", "is # tokens"));
        assert!(!contains("is many tokens", "is # tokens"));
        assert!(!contains("b a", "a*b"));
    }

    #[test]
    fn error_bodies_of_all_shapes_become_one_line() {
        let check = |body: Value, expected: &str| {
            assert_eq!(ErrorBody::from_text(&body.to_string()).with_status(400), expected);
        };
        check(json!({"error": {"message": "m", "type": "t", "code": "c"}}), "400: m (c)");
        check(json!({"error": {"message": "m", "type": "t", "code": 400}}), "400: m (t)");
        check(json!({"error": {"message": "m", "code": 400}}), "400: m");
        check(json!({"error": "text", "code": "bad"}), "400: text (bad)");
        check(json!({"object": "error", "message": "m", "type": "t", "code": "3051"}), "400: m (3051)");
        check(json!({"detail": [{"msg": "a", "loc": []}, {"msg": "b"}]}), "400: a; b");
        check(
            json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "busy"}}}),
            "400: Provider returned error: busy",
        );
        check(
            json!([{"error": {"message": "m", "status": "S", "code": 400, "details": [{"retryDelay": "28s"}]}}]),
            "400: m (S, retry after 28s)",
        );
        check(json!({"unknown": 1}), "400: {\"unknown\":1}");
        assert_eq!(ErrorBody::from_text(&"x".repeat(9_000)).message.chars().count(), MESSAGE_LIMIT_CHARS + 1);
    }

    #[test]
    fn demanded_waits_are_read_back() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(retry_delay(text).map(|delay| delay.as_secs_f64()), expected, "{text}");
        };
        check("429: slow (rate_limit_error, retry after 12s)", Some(12.0));
        check("Please retry in 48.9s.", Some(48.9));
        check("Please try again in 7m12.5s. Need more?", Some(432.5));
        check("try again in 20 seconds", Some(20.0));
        check("retry after 800ms", Some(0.8));
        check("retry after lunch", None);
    }

    #[test]
    fn overflow_can_be_silent() {
        let check = |stop: StopReason, input: u64, output: u64, expected: bool| {
            let mut message =
                AssistantMessage::pending(Api::DEMO, "p", "m", super::super::message::Millis(0));
            message.stop_reason = stop;
            message.usage.input = input;
            message.usage.output = output;
            assert_eq!(is_overflow(&message, 1_000), expected, "{stop:?} {input} {output}");
        };
        check(StopReason::Stop, 1_001, 5, true);
        check(StopReason::Stop, 1_000, 5, false);
        check(StopReason::Length, 990, 0, true);
        check(StopReason::Length, 989, 0, false);
        check(StopReason::Length, 995, 1, false);
        check(StopReason::Aborted, 5_000, 0, false);
    }
}
