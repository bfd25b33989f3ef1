//! Classifies failed requests: the class of the failure, whether a retry can
//! help, whether the conversation must shrink, and how long to wait.
//!
//! Each failure is classified once, where it arises, and travels beside its text
//! as a [`Failure`]. The text is parsed only where nothing else is known: errors in
//! the middle of a stream, gateways that answer with prose, and messages read from
//! a file. [`ErrorBody`] therefore writes status, message, code and the requested
//! wait into the text.

mod codes;
mod error_body;
mod patterns;
mod plain_words;
mod refused_size;
mod rejection;

use std::fmt;
use std::time::Duration;

use patterns::{
    ANSWER_LIMITS, AUTH, CONFIG, DEMANDS, EXCESSES, LENGTHS, NETWORK, NETWORK_CODES, NOT_FOUND,
    OTHER_LENGTHS, OVERFLOW, OVERLOADED, PER_DAY, PER_MINUTE, PERMANENT, QUOTA, RATE_LIMIT, REASONING_FIELDS,
    REFUSED, REFUSES_FIELD, SERVER, STRICT_SCHEMAS, TOKENS_PER_MINUTE, TOOL_USE_FAILED, TRANSIENT_STATUSES,
    UPDATES, contains, has_token,
};

pub(super) use codes::normalised;
pub(super) use error_body::{ErrorBody, NO_RETRY, RETRY, clip};
pub use plain_words::{plain_error, wait_text};
pub use refused_size::RefusedSize;
use rejection::rejection_in;
pub use rejection::{Refused, Rejection, RequestPath, rejection};

/// The class of a failure; there is one for each way callers react.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The key or token is missing, wrong or lacks the permission.
    Auth,
    /// The request was larger than the model's context window.
    Overflow,
    /// No such model, endpoint or earlier response.
    NotFound,
    /// Too many requests or tokens in a period that ends soon.
    RateLimit,
    /// The service has no capacity at the moment.
    Overloaded,
    /// The credit, plan or daily allowance is used up.
    Quota,
    /// The server rejects this request.
    InvalidRequest,
    /// The server could not parse the tool call its model wrote.
    ToolUseFailed,
    /// The server was started without an option the request needs.
    Config,
    /// The service failed internally.
    Server,
    /// The service could not be reached, or the connection was lost.
    Network,
    /// The model declined to answer.
    Refused,
    /// Nothing is known about it.
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

/// Facts about a failed request in addition to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What callers do about it.
    pub class: FailureClass,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The wait the server requests before the next attempt.
    pub retry_after: Option<Duration>,
    /// The part of the conversation the server rejected, if that is the cause.
    pub rejection: Option<Rejection>,
    /// The token counts that the error names; only for [`FailureClass::Overflow`]. Its `limit` is
    /// the window that counts, if it is smaller than the configured one.
    pub size: Option<Box<RefusedSize>>,
}

impl Failure {
    /// A failure that did not come from a server.
    pub fn of_class(class: FailureClass) -> Self {
        Self { class, status: None, retry_after: None, rejection: None, size: None }
    }

    /// Classifies an error text. Without a `status`, a status at the start of the text counts.
    pub fn read(text: &str, status: Option<u16>) -> Self {
        let class = classify(text, status);
        Self {
            class,
            status: status.or_else(|| leading_status(text)),
            retry_after: retry_delay(text),
            rejection: rejection_in(text, class),
            size: size_in(text, class),
        }
    }
}

/// The token counts in an error of this class.
fn size_in(text: &str, class: FailureClass) -> Option<Box<RefusedSize>> {
    if class == FailureClass::Overflow { RefusedSize::read(text).map(Box::new) } else { None }
}

/// A failure before it is put into the answer, with the text for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestError {
    pub(super) text: String,
    pub(super) failure: Failure,
}

impl RequestError {
    pub(super) fn of_class(text: String, class: FailureClass) -> Self {
        Self { text, failure: Failure::of_class(class) }
    }

    /// The stream ended before the answer did.
    pub(super) fn cut_off(text: &str) -> Self {
        Self::of_class(text.to_owned(), FailureClass::Network)
    }

    /// The model stopped for `reason`, the value of the field `key`, without an answer.
    /// `explanation` is what the service adds.
    pub(super) fn of_stop_reason(key: &str, reason: &str, explanation: Option<&str>) -> Self {
        let explanation = explanation.map(|text| format!(" ({text})")).unwrap_or_default();
        let text = format!("{key}: {reason}{explanation}");
        match codes::class_of_stop_reason(reason) {
            Some(class) => Self::of_class(text, class),
            None => text.into(),
        }
    }
}

/// Begins the text of an answer that announces calls and has none. It is in `TOOL_USE_FAILED`.
const WITHOUT_CALL: &str = "the answer announced a tool call but contains none";

impl RequestError {
    /// The service reported calls, with `reason` in the field `key`, but sent none.
    pub(super) fn without_call(key: &str, reason: &str) -> Self {
        Self::of_class(format!("{WITHOUT_CALL} ({key}: {reason})"), FailureClass::ToolUseFailed)
    }

    /// The service sent a part of a call, but not which tool is called.
    pub(super) fn unnamed_call() -> Self {
        let text = "malformed_function_call: the answer contains a tool call without a name";
        Self::of_class(text.to_owned(), FailureClass::ToolUseFailed)
    }

    /// The answer has text, but only in parts of kinds that pi does not read.
    pub(super) fn unread_text() -> Self {
        let text = "the answer has text only in parts of a kind that pi does not know";
        Self::of_class(text.to_owned(), FailureClass::Unknown)
    }

    /// The service paused the answer, with `reason` in the field `key`, and nobody resumed it.
    pub(super) fn paused(key: &str, reason: &str) -> Self {
        let text = format!("{key}: {reason} (the provider paused the answer before its end)");
        Self::of_class(text, FailureClass::Unknown)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for RequestError {
    fn from(text: String) -> Self {
        Self { failure: Failure::read(&text, None), text }
    }
}

/// Whether a failed request was rejected because it enforces schemas. No code names that, so
/// the text does, within the class of the failure.
pub(super) fn refuses_strict_schemas(error: &RequestError) -> bool {
    let lower = error.text.to_lowercase();
    matches!(error.failure.class, FailureClass::InvalidRequest | FailureClass::Config | FailureClass::Unknown)
        && (STRICT_SCHEMAS.iter().any(|pattern| contains(&lower, pattern)) || refuses_a_schema(&lower))
}

/// Whether a text in lower case rejects the schema of a tool, in any wording.
fn refuses_a_schema(lower: &str) -> bool {
    ["schema", "unknown variant"].iter().any(|word| lower.contains(word))
        && ["tool", "function", "parameters"].iter().any(|word| lower.contains(word))
}

/// Whether a failed request was rejected because of system messages between the turns, or
/// fallback models.
pub(super) fn refuses_updates(error: &RequestError) -> bool {
    let lower = error.text.to_lowercase();
    error.failure.class == FailureClass::InvalidRequest
        && UPDATES.iter().any(|pattern| contains(&lower, pattern))
}

/// Whether a failed request was rejected because an answer in it has no `reasoning_content`, in
/// any wording.
pub(super) fn demands_reasoning_content(error: &RequestError) -> bool {
    let lower = error.text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    matches!(
        error.failure.class,
        FailureClass::InvalidRequest
            | FailureClass::Config
            | FailureClass::Server
            | FailureClass::Refused
            | FailureClass::Unknown
    ) && has(REASONING_FIELDS)
        && has(DEMANDS)
        && !has(REFUSES_FIELD)
}

/// Classifies an error by its text and HTTP status. Without a `status`, a status
/// at the start of the text counts.
pub fn classify(text: &str, status: Option<u16>) -> FailureClass {
    let text = text.to_lowercase();
    let status = status.or_else(|| leading_status(&text));
    let says = |table: &[&str]| table.iter().any(|pattern| contains(&text, pattern));

    if says(TOOL_USE_FAILED) {
        return FailureClass::ToolUseFailed;
    }
    let verdict =
        if has_note(&text, NO_RETRY) { Some(false) } else { has_note(&text, RETRY).then_some(true) };
    with_verdict(classify_text(&text, status), verdict)
}

/// Applies the service's own verdict on whether to send the request again.
fn with_verdict(class: FailureClass, retry: Option<bool>) -> FailureClass {
    match class {
        // The server's own note decides, except that it cannot make a conversation fit or a key valid.
        FailureClass::Overflow | FailureClass::Auth | FailureClass::Quota | FailureClass::Refused => class,
        class if retry == Some(false) && class.is_retryable() => FailureClass::InvalidRequest,
        class if retry == Some(true) && !class.is_retryable() => FailureClass::Server,
        class => class,
    }
}

/// Whether `note` is among the notes at the end of a text.
fn has_note(text: &str, note: &str) -> bool {
    let notes = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    notes.is_some_and(|(_, notes)| notes.split(", ").any(|other| other == note))
}

fn classify_text(text: &str, status: Option<u16>) -> FailureClass {
    let says = |table: &[&str]| table.iter().any(|pattern| contains(text, pattern));

    if says(CONFIG) {
        return FailureClass::Config;
    }
    if can_never_fit(text) {
        return FailureClass::Overflow;
    }
    // Errors about rate limits also contain "tokens" and "limit", so rule them out first.
    let limited = status == Some(429) || says(RATE_LIMIT) || text.starts_with("service unavailable:");
    if !limited && (status == Some(413) || says(OVERFLOW) || is_about_length(text, status)) {
        return FailureClass::Overflow;
    }
    // A limit per minute passes, even if the text mentions quota and billing.
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
    let has_code = || NETWORK_CODES.iter().any(|code| has_token(text, code));
    if says(NETWORK) || is_about_a_connection(text) || has_code() {
        return FailureClass::Network;
    }
    if says(SERVER) || TRANSIENT_STATUSES.iter().any(|status| has_token(text, status)) {
        return FailureClass::Server;
    }
    FailureClass::Unknown
}

/// Whether a text in lower case has `connection closed` or `connection reset`, with any one
/// character between the words.
fn is_about_a_connection(text: &str) -> bool {
    text.match_indices("connection").any(|(at, word)| {
        let mut rest = text[at + word.len()..].chars();
        rest.next();
        ["closed", "reset"].iter().any(|end| rest.as_str().starts_with(end))
    })
}

/// Whether a text in lower case rejects a request that no wait can help: it has more tokens than
/// the service accepts in a minute, or leaves no room for an answer.
fn can_never_fit(text: &str) -> bool {
    let is_above = || RefusedSize::read(text).is_some_and(|size| size.limit.and(size.requested).is_some());
    let has_no_room = || ["got -", "got 0", "given -", "is negative"].iter().any(|word| text.contains(word));
    (TOKENS_PER_MINUTE.iter().any(|word| text.contains(word)) && is_above())
        || (ANSWER_LIMITS.iter().any(|name| text.contains(name)) && has_no_room())
}

/// Whether a text in lower case rejects the length of a request in words that no table has.
fn is_about_length(text: &str, status: Option<u16>) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    matches!(status, None | Some(400 | 413 | 422 | 500))
        && has(LENGTHS)
        && has(EXCESSES)
        && !has(OTHER_LENGTHS)
        && !has(ANSWER_LIMITS)
}

/// The wait the server requests before the next attempt, if its error text contains one.
pub fn retry_delay(text: &str) -> Option<Duration> {
    let text = text.to_lowercase();
    let marks = [
        "retry after ",
        "retry delay of ",
        "retry in ",
        "try again in ",
        "try again after ",
        "retrydelay\":\"",
        "retry delay ",
    ];
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

/// A status at the start of the text, unless more of a word follows it.
fn leading_status(text: &str) -> Option<u16> {
    let digits = text.get(..3)?;
    let status: u16 = digits.parse().ok()?;
    let ends = text[3..].chars().next().is_none_or(|next| matches!(next, ':' | ' '));
    ((100..600).contains(&status) && ends).then_some(status)
}

#[cfg(test)]
mod tests;
