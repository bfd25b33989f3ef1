use super::*;
use crate::ai::messages::{Api, AssistantMessage, StopReason, is_overflow};

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
            Overflow,
        ),
        (
            "429: Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000",
            RateLimit,
        ),
        ("413: Request too large for model on tokens per minute (TPM): Limit 6000", RateLimit),
        ("413: failed to parse request", Overflow),
        ("400: cerebras answered with an empty body", Overflow),
        ("503: cerebras answered with an empty body", Overloaded),
        ("400: input length and `max_tokens` exceed context limit: 183434 + 21333 > 200000", Overflow),
        ("400: The input token count exceeds the maximum number of tokens allowed 1048576.", Overflow),
        ("400: The decoder prompt (length 9000) is longer than the maximum model length of 8192", Overflow),
        ("400: the input length exceeds the context length", Overflow),
        ("400: Input length (9000 tokens) exceeds the maximum allowed length", Overflow),
        ("422: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000", Overflow),
        ("Reached context length of 4096 tokens", Overflow),
        (
            "429: Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project_per_base_model with base model: gemini-2.5-pro. Please submit a quota increase request. (RESOURCE_EXHAUSTED)",
            RateLimit,
        ),
        ("429: Your team has either used all available credits or reached its monthly spending limit", Quota),
        ("429: You exceeded your current token quota (exceeded_current_quota_error)", Quota),
        ("400: You have reached your specified API usage limits (invalid_request_error)", Quota),
        ("401: cerebras answered with an empty body", Auth),
        ("429: too fast (rate_limit_error, not to be retried)", InvalidRequest),
        ("400: try later (to be retried)", Server),
        ("401: no (to be retried)", Auth),
        ("400: someone answered with an empty body", InvalidRequest),
        ("400: Requested token count exceeds the model's maximum context length of 131072 tokens", Overflow),
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
fn demanded_waits_are_read_back() {
    let check = |text: &str, expected: Option<f64>| {
        assert_eq!(retry_delay(text).map(|delay| delay.as_secs_f64()), expected, "{text}");
    };
    check("429: slow (rate_limit_error, retry after 12s)", Some(12.0));
    check("Please retry in 48.9s.", Some(48.9));
    check("Please try again in 7m12.5s. Need more?", Some(432.5));
    check("please try again after 1 seconds", Some(1.0));
    check("try again in 20 seconds", Some(20.0));
    check("retry after 800ms", Some(0.8));
    check("retry after lunch", None);
}

#[test]
fn overflow_can_be_silent() {
    let check = |stop: StopReason, input: u64, output: u64, expected: bool| {
        let mut message = AssistantMessage::pending(Api::DEMO, "p", "m", crate::ai::messages::Millis(0));
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

/// Known texts of failures that may pass, one row per wording.
const PASSING: &[&str] = &[
    "Overloaded",
    "server busy, try later",
    "We are experiencing high demand",
    "the model is at capacity",
    "rate limit reached",
    "too many requests",
    "429",
    "status: 500",
    "502 from the gateway",
    "503.",
    "(504)",
    "error 520",
    "code 524",
    "529: x",
    "service unavailable",
    "service temporarily unavailable",
    "server error",
    "internal error",
    "Provider returned error",
    "upstream buffer overflowed",
    "upstream forward failed",
    "upstream request failed",
    "upstream read failed",
    "stream interrupted",
    "http2 stream failed",
    "network error",
    "connection error",
    "connection refused",
    "connection lost",
    "other side closed",
    "fetch failed",
    "request to https://a.b/c failed, reason: x",
    "getaddrinfo x",
    "ENOTFOUND",
    "EAI_AGAIN",
    "upstream connect error",
    "reset before headers",
    "socket hang up",
    "The socket connection was closed unexpectedly",
    "timed out",
    "Timeout",
    "terminated",
    "Connection closed",
    "connection-closed",
    "CONNECTION_CLOSED",
    "ConnectionClosed",
    "read: connection reset by peer",
    "websocket connection limit reached",
    "x (websocket_connection_limit_reached)",
    "read ECONNRESET",
    "ECONNABORTED",
    "connect ECONNREFUSED 10.0.0.1:443",
    "connect ETIMEDOUT",
    "write EPIPE",
    "websocket closed 1006",
    "websocket error",
    "stream ended without finish",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "http2 request did not get a response",
    "stream disconnected before completion",
    "pending stream has been canceled",
    "the demanded retry delay of 90s is above the limit",
    "You can retry your request",
    "please try your request again",
    "ResourceExhausted",
    "408: request timeout",
    "409: conflict",
    "overloaded_error: Overloaded",
    "api_error: x",
    "server_error: x",
    "rate_limit_error: x",
];

/// Known texts of failures that only payment or another day resolves.
const USED_UP: &[&str] = &[
    "GoUsageLimitError: x",
    "FreeUsageLimitError: x",
    "429: Monthly usage limit reached",
    "429: your available balance is too low",
    "429: insufficient_quota",
    "429: out of budget",
    "429: quota exceeded",
    "429: check your billing",
    "429: x (subscription_sharing_user_usage_limit_exceeded)",
    "429: {\"code\": 1308}",
    "429: Usage limit reached (1308)",
    "429: x (usage_limit_reached)",
    "402: Payment Required",
];

/// Known texts for a conversation that is too long.
const TOO_LONG: &[&str] = &[
    "400: prompt is too long: 3333404 tokens > 200000 maximum",
    "400: The prompt exceeds max length",
    "413: request_too_large",
    "400: Input is too long for requested model.",
    "400: Input Tokens Exceeded",
    "400: Your input exceeds the context window of this model",
    "400: exceeds the model's maximum context length of 4,096 tokens",
    "400: exceeds maximum context length (8192)",
    "400: exceeds model's maximum context length (8192)",
    "400: context window exceeded",
    "400: ContextWindowExceededError: x",
    "400: The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
    "400: This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "400: Please reduce the length of the messages or completion.",
    "400: maximum context length is 128000 tokens. However, you requested 130000",
    "400: exceeds the maximum allowed input length of 262144 tokens",
    "400: The input (300000 tokens) is longer than the model's context length",
    "400: prompt token count of 300000 exceeds the limit of 128000",
    "400: request (2009 tokens) exceeds the available context size (512 tokens)",
    "400: x (exceed_context_size_error)",
    "400: the number of tokens to keep is greater than the context length",
    "400: context window exceeds limit",
    "400: exceeded model token limit: 262144",
    "400: Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "400: prompt has 9000 tokens but the configured context size is 8192",
    "model_context_window_exceeded",
    "400: prompt too long; exceeded max context length by 1119046 tokens",
    "400: exceeded context length",
    "400: Range of input length should be [1, 98304]",
    "400: x (context_length_exceeded)",
    "400: too many tokens: size limit exceeded by 25836 tokens",
    "400: x (too_many_prompt_tokens)",
    "400: token limit exceeded",
    "413: failed to parse request",
    "413: Payload Too Large",
    "400: cerebras answered with an empty body",
    "413: cerebras answered with an empty body",
    "400: Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    "400: Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280000 tokens.",
    "400: max_tokens must be at least 1, got -2048",
    "400: `max_completion_tokens` must be greater than 0, got -17. (BadRequestError)",
    "413: Request too large for model `x` in organization `y` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12500, please reduce your message size and try again. (rate_limit_exceeded)",
    "429: Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced.",
    // In words that no table has.
    "400: the conversation does not fit into the context window (8192)",
    "500: prompt tokens (9000) are more than the context size of 8192",
    "400: Your prompt is too large for this model",
    "422: number of prompt tokens 9000 surpasses max_model_len 8192",
];

/// Known texts of failures that recur with the same request.
const REFUSED_FOR_GOOD: &[&str] = &[
    "400: bad request",
    "401: invalid key",
    "403: forbidden",
    "404: nothing here",
    "422: unprocessable",
    "400: max_tokens is too large: 128000. This model supports at most 16384 completion tokens",
    "400: max_output_tokens must be at least 16, got 1",
    "400: `max_tokens` must be greater than `thinking.budget_tokens`",
    "400: the input length of tools.0.name exceeds 64 characters",
    "400: context window of the image model is not enough for this image",
    "request req_429abc5003 was not understood",
    "v5.503.1 is not supported",
    "no file EPIPELINE",
];

#[test]
fn every_known_wording_is_classified() {
    for text in PASSING {
        assert!(classify(text, None).is_retryable(), "{text}: {:?}", classify(text, None));
    }
    for text in USED_UP {
        assert_eq!(classify(text, None), FailureClass::Quota, "{text}");
    }
    for text in TOO_LONG {
        assert_eq!(classify(text, None), FailureClass::Overflow, "{text}");
    }
    for text in REFUSED_FOR_GOOD {
        let class = classify(text, None);
        assert!(!class.is_retryable() && class != FailureClass::Overflow, "{text}: {class:?}");
    }
    // Limits that mention tokens, and throttling worded like an overflow.
    for text in [
        "Throttling error: Too many tokens, please wait before trying again.",
        "Service unavailable: prompt too long",
        "429: Request too large for gpt-4o on tokens per min (TPM): Limit 30000",
        "too many requests: token limit exceeded",
    ] {
        let class = classify(text, None);
        assert!(class.is_retryable() && class != FailureClass::Overflow, "{text}: {class:?}");
    }
}

#[test]
fn refusals_of_strict_schemas_are_recognised() {
    let check = |text: &str, expected: bool| {
        let error = RequestError::from(text.to_owned());
        assert_eq!(refuses_strict_schemas(&error), expected, "{text}");
    };
    for text in [
        "400: Too many strict tools (21). The maximum number of strict tools supported is 20.",
        "400: Schemas contains too many parameters with union types (17 parameters with type arrays or anyOf).",
        "400: Schemas contains too many optional parameters (25), which would make grammar compilation inefficient.",
        "400: tools.0.custom: For 'number' type, properties maximum, minimum are not supported",
        "400: tools.3.custom.strict: Extra inputs are not permitted",
        "400: Invalid schema for function 'read': In context=(), 'required' is required to be supplied and to be an array including every key in properties. (invalid_function_parameters)",
        "400: Unknown parameter: 'tools[0].function.strict'.",
        "400: `tools.0.function.strict` is unsupported",
        "422: strict mode is not supported by this model",
    ] {
        check(text, true);
    }
    for text in [
        "400: prompt is too long: 3333404 tokens > 200000 maximum",
        "400: this key is restricted",
        "429: too many requests in strict mode",
        "401: strict mode needs another key",
        "400: messages.1.content: unexpected tool_use_id",
    ] {
        check(text, false);
    }
    // The code says that credit is used up, so the same request without schemas fails too.
    let text = "400: strict mode is not supported by this model".to_owned();
    let failure = Failure::of_class(FailureClass::Quota);
    assert!(!refuses_strict_schemas(&RequestError { text, failure }));
}

#[test]
fn size_of_a_rejected_request_is_a_value_of_its_failure() {
    let check = |body: serde_json::Value, status: u16, expected: Option<(u64, u64)>| {
        let error = ErrorBody::from_text(&body.to_string()).into_error(Some(status));
        let size =
            |failure: &Failure| failure.size.as_ref().and_then(|size| Some((size.limit?, size.requested?)));
        assert_eq!(size(&error.failure), expected, "{body}");
        // A stored answer has its text alone.
        assert_eq!(size(&Failure::read(&error.text, None)), expected, "{}", error.text);
    };
    let llama = serde_json::json!({"error": {"code": 400, "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size", "n_prompt_tokens": 9000, "n_ctx": 4096}});
    check(llama, 400, Some((4_096, 9_000)));
    let text = "Request too large on tokens per minute (TPM): Limit 6000, Requested 12500, please reduce your message size";
    let groq =
        serde_json::json!({"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}});
    check(groq, 413, Some((6_000, 12_500)));
    let slow = "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5000, Requested 1500";
    check(serde_json::json!({"error": {"message": slow, "code": "rate_limit_exceeded"}}), 429, None);
    check(serde_json::json!({"error": {"message": "no key of 2000 tokens, maximum 1000"}}), 401, None);
}
