//! Extracts the message from an error response of any shape, and formats it as
//! one line that `failure` can parse.

use std::time::Duration;

use serde_json::Value;

use super::patterns::{PER_DAY, PER_MINUTE, contains};
use super::{
    Failure, FailureClass, RequestError, RequestPath, classify, codes, parse_duration, rejection_in,
};
use super::{can_never_fit, retry_delay, size_in, with_verdict};

/// The contents of an error response, extracted from the shapes servers use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::ai) struct ErrorBody {
    /// The most specific name the server has for the error.
    pub(in crate::ai) code: Option<String>,
    pub(in crate::ai) message: String,
    /// Further facts that affect whether a retry makes sense.
    pub(in crate::ai) notes: Vec<String>,
    /// Path of the error within the request, as the server writes it.
    pub(in crate::ai) place: Option<String>,
    /// The wait the service demands before the next attempt.
    pub(in crate::ai) retry_after: Option<Duration>,
    /// Further codes of the error besides `code`: its type, status and reasons.
    pub(in crate::ai) kinds: Vec<String>,
    /// Ids of the quotas that are used up.
    pub(in crate::ai) quotas: Vec<String>,
}

/// Maximum length of the message.
const MESSAGE_LIMIT_CHARS: usize = 4_000;
/// Maximum length of a code, quota, reason or plan.
const NAME_LIMIT_CHARS: usize = 120;
const MAX_NOTES: usize = 12;

/// Notes from servers that state whether to retry.
pub(in crate::ai) const RETRY: &str = "to be retried";
pub(in crate::ai) const NO_RETRY: &str = "not to be retried";

impl ErrorBody {
    /// Parses a body of text. A body of unknown shape is itself the message.
    pub(in crate::ai) fn from_text(body: &str) -> Self {
        let parsed = serde_json::from_str(body).ok().and_then(|value| Self::from_json(&value));
        parsed.unwrap_or_else(|| Self { message: clip(body.trim()), ..Self::default() })
    }

    /// Parses a JSON document; `None` if it does not look like an error.
    pub(in crate::ai) fn from_json(value: &Value) -> Option<Self> {
        let value = match value {
            Value::Array(items) => items.first()?,
            other => other,
        };
        match value.get("error") {
            Some(error @ Value::Object(_)) => return Some(Self::from_object(error)),
            Some(Value::String(message)) if !message.is_empty() => {
                let code = name(value.get("code")).or_else(|| name(value.get("type")));
                return Some(Self { code, message: clip(message), ..Self::default() });
            }
            _ => {}
        }
        let looks_like_error = ["message", "Message", "detail"].iter().any(|key| value.get(key).is_some())
            && value.get("choices").is_none()
            && value.get("type").and_then(Value::as_str) != Some("message");
        looks_like_error.then(|| Self::from_object(value))
    }

    fn from_object(error: &Value) -> Self {
        // Amazon uses either capitalisation.
        let keys = ["message", "Message", "error", "detail", "msg"];
        let message = keys.iter().find_map(|key| text_of(error.get(key)?));
        let names = [
            name(error.get("code").filter(|code| !code.is_number())),
            name(error.get("type").filter(|kind| *kind != "error")),
            name(error.get("error_type")),
            name(error.get("status").filter(|status| status.is_string())),
            name(error.get("code")),
        ];
        let mut names = names.into_iter().flatten();
        let code = names.next();
        let message = clip(&message.unwrap_or_else(|| error.to_string()));
        let mut body = Self { code, message, kinds: names.collect(), ..Self::default() };
        // OpenRouter nests the upstream provider's error.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(text_of)
            && !body.message.contains(&raw)
        {
            body.message = clip(&format!("{}: {raw}", body.message));
        }
        // Google puts the quota and the retry delay into `details`.
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
            let quotas = violations.filter_map(|violation| violation.get("quotaId"));
            let limit = detail.pointer("/metadata/quota_limit");
            for quota in quotas.chain(limit).filter_map(Value::as_str) {
                body.notes.push(format!("quota {quota}"));
                body.quotas.push(quota.to_owned());
            }
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                body.notes.push(reason.to_owned());
                body.kinds.push(reason.to_owned());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                body.notes.push(format!("retry after {delay}"));
                body.retry_after = parse_duration(delay);
            }
        }
        // The path in the request, unless the message contains it.
        if let Some(param) = error.get("param").and_then(Value::as_str)
            && param.contains(|c: char| c.is_ascii_digit())
        {
            if !body.message.contains(param) {
                body.notes.push(format!("at {param}"));
            }
            body.place = Some(param.to_owned());
        }
        body.note_size(error);
        body.note_plan(error);
        body
    }

    /// Adds the sizes that llama.cpp puts beside its message.
    fn note_size(&mut self, error: &Value) {
        for key in ["n_prompt_tokens", "n_ctx"] {
            let count = error.get(key).and_then(Value::as_u64).map(|count| count.to_string());
            if let Some(count) = count.filter(|count| !self.message.contains(count)) {
                self.notes.push(format!("{key} {count}"));
            }
        }
    }

    /// Adds a subscription service's facts about a limit: the plan and the reset time.
    fn note_plan(&mut self, error: &Value) {
        let number = |key: &str| {
            let value = error.get(key)?;
            value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|number| *number > 0.0)
        };
        let plan = name(error.get("plan_type"));
        let reset = number("resets_at").and_then(date).map(|date| format!("resets at {date}"));
        let reset = reset.or_else(|| Some(format!("resets in {}", span(number("resets_in_seconds")?))));
        // With a plan, this code means a wait of days; elsewhere, of a minute.
        if (plan.is_some() || reset.is_some()) && self.code.as_deref() == Some("rate_limit_exceeded") {
            self.code = Some("usage_limit_reached".to_owned());
        }
        self.notes.extend(plan.map(|plan| format!("plan {plan}")));
        self.notes.extend(reset);
    }

    /// The error of a response with `status`, or of an event in a stream.
    ///
    /// What codes and fields do not say is read from the text.
    pub(in crate::ai) fn into_error(self, status: Option<u16>) -> RequestError {
        let class = self.class();
        let retry_after = self.retry_after;
        let place = self.place.as_deref().and_then(RequestPath::parse);
        let text = match status {
            Some(status) => self.with_status(status),
            None => self.in_stream(),
        };
        let class = match class {
            Some(FailureClass::RateLimit) if can_never_fit(&text.to_lowercase()) => FailureClass::Overflow,
            Some(class) => class,
            None => classify(&text, status),
        };
        let mut rejection = rejection_in(&text, class);
        if let (Some(rejection), Some(place)) = (&mut rejection, place) {
            rejection.place = Some(place);
        }
        let failure = Failure {
            class,
            status: status.or_else(|| super::leading_status(&text)),
            retry_after: retry_after.or_else(|| retry_delay(&text)),
            rejection,
            size: size_in(&text, class),
        };
        RequestError { text, failure }
    }

    /// The class that the codes alone decide.
    fn class(&self) -> Option<FailureClass> {
        let has = |note: &str| self.notes.iter().any(|other| other == note);
        let verdict = if has(NO_RETRY) { Some(false) } else { has(RETRY).then_some(true) };
        let mut codes = self.code.iter().chain(&self.kinds);
        let class = codes.find_map(|code| codes::class_of(code)).or_else(|| self.class_of_quotas())?;
        Some(with_verdict(class, verdict))
    }

    /// A quota per day that is used up ends the work, one per minute delays it.
    fn class_of_quotas(&self) -> Option<FailureClass> {
        let lower: Vec<String> = self.quotas.iter().map(|quota| quota.to_lowercase()).collect();
        let names =
            |table: &[&str]| lower.iter().any(|quota| table.iter().any(|pattern| contains(quota, pattern)));
        if names(PER_DAY) {
            Some(FailureClass::Quota)
        } else {
            names(PER_MINUTE).then_some(FailureClass::RateLimit)
        }
    }

    /// `429: Slow down (rate_limit_error, retry after 12s)`.
    fn with_status(mut self, status: u16) -> String {
        let known = |code: &str| code == status.to_string() || self.message.contains(code);
        if let Some(code) = self.code.take_if(|code| !known(code)) {
            self.notes.insert(0, code);
        }
        format!("{status}: {}{}", self.message, notes(&self.notes))
    }

    /// `overloaded_error: Overloaded`, for errors in the middle of a stream.
    fn in_stream(self) -> String {
        let notes = notes(&self.notes);
        match self.code {
            Some(code) => format!("{}: {}{notes}", clip_to(&code, NAME_LIMIT_CHARS), self.message),
            None => format!("{}{notes}", self.message),
        }
    }
}

/// Formats seconds since the Unix epoch as a readable date.
fn date(seconds: f64) -> Option<String> {
    let timestamp = jiff::Timestamp::from_second(seconds as i64).ok()?;
    Some(timestamp.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// `45 min`, `1 h`, `2 h 5 min`, `3 d 1 h`.
pub(super) fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil() as u64;
    match (minutes / 1_440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} d"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    // The first note is the code and the last ones are ours, so those in between go.
    let n_left_out = notes.len().saturating_sub(MAX_NOTES);
    let (first, rest) = notes.split_at(notes.len().min(1));
    let kept = first.iter().chain(&rest[n_left_out.min(rest.len())..]);
    let kept: Vec<String> = kept.map(|note| clip_to(note, NAME_LIMIT_CHARS)).collect();
    format!(" ({})", kept.join(", "))
}

/// Returns a name or number as text, or `None` for the words servers use for "none".
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

pub(in crate::ai) fn clip(text: &str) -> String {
    clip_to(text, MESSAGE_LIMIT_CHARS)
}

fn clip_to(text: &str, limit_chars: usize) -> String {
    match text.char_indices().nth(limit_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn error_bodies_of_all_shapes_become_one_line() {
        let check = |body: Value, expected: &str| {
            assert_eq!(ErrorBody::from_text(&body.to_string()).with_status(400), expected);
        };
        check(json!({"error": {"message": "m", "type": "t", "code": "c"}}), "400: m (c)");
        check(json!({"error": {"message": "m", "type": "t", "code": 400}}), "400: m (t)");
        check(json!({"error": {"message": "m", "code": 400}}), "400: m");
        let param = "messages[3].content[1].image_url";
        check(
            json!({"error": {"message": "m", "type": "t", "param": param}}),
            "400: m (t, at messages[3].content[1].image_url)",
        );
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
        let limit = |error: Value, expected: &str| {
            let mut all = json!({"message": "The usage limit has been reached"});
            all.as_object_mut().unwrap().extend(error.as_object().unwrap().clone());
            let error = ErrorBody::from_json(&json!({"error": all})).unwrap().into_error(Some(429));
            assert_eq!(error.text, format!("429: The usage limit has been reached ({expected})"));
            assert_eq!(error.failure.class, FailureClass::Quota);
            assert_eq!(classify(&error.text, None), FailureClass::Quota);
        };
        limit(
            json!({"type": "usage_limit_reached", "plan_type": "plus", "resets_at": 1_795_253_027}),
            "usage_limit_reached, plan plus, resets at 2026-11-21 09:23 UTC",
        );
        limit(
            json!({"code": "rate_limit_exceeded", "plan_type": "pro", "resets_in_seconds": 7_500}),
            "usage_limit_reached, plan pro, resets in 2 h 5 min",
        );
        limit(json!({"code": "usage_not_included", "plan_type": "free"}), "usage_not_included, plan free");
        limit(json!({"code": "usage_limit_reached", "resets_at": 1e300}), "usage_limit_reached");
        check(json!({"unknown": 1}), "400: {\"unknown\":1}");
        check(
            json!({"error": {"message": "m 512", "type": "t", "n_ctx": 512, "n_prompt_tokens": 9000}}),
            "400: m 512 (t, n_prompt_tokens 9000)",
        );
        let long = "x".repeat(100_000);
        let reasons: Vec<Value> = (0..1_000).map(|_| json!({"reason": long})).collect();
        let hostile = json!({"error": {"message": long, "type": long, "details": reasons}});
        let body = ErrorBody::from_json(&hostile).unwrap();
        for text in [body.clone().with_status(400), body.in_stream()] {
            assert!(text.chars().count() < 6_000, "{}", text.len());
        }
        assert_eq!(ErrorBody::from_text(&"x".repeat(9_000)).message.chars().count(), MESSAGE_LIMIT_CHARS + 1);
    }

    #[test]
    fn codes_decide_the_class_whatever_the_text_says() {
        use FailureClass::*;
        let check = |error: Value, expected: FailureClass| {
            let body = ErrorBody::from_json(&json!({ "error": error })).unwrap();
            for status in [None, Some(400), Some(500)] {
                assert_eq!(body.clone().into_error(status).failure.class, expected, "{body:?}");
            }
        };
        let hostile = "rate limit, prompt is too long, invalid api key, overloaded, billing, timeout";
        check(json!({"type": "rate_limit_error", "message": hostile}), RateLimit);
        check(json!({"type": "overloaded_error", "message": hostile}), Overloaded);
        check(
            json!({"type": "invalid_request_error", "code": "context_length_exceeded", "message": hostile}),
            Overflow,
        );
        check(
            json!({"type": "authentication_error", "code": "invalid_request_error", "message": hostile}),
            Auth,
        );
        check(json!({"type": "not_found_error", "message": hostile}), NotFound);
        check(json!({"code": "insufficient_quota", "message": hostile}), Quota);
        check(json!({"code": "tool_use_failed", "message": "tool_use_failed is its code"}), ToolUseFailed);
        check(json!({"status": "UNAVAILABLE", "code": 503, "message": hostile}), Overloaded);
        let reason = json!([{"reason": "API_KEY_INVALID"}]);
        check(json!({"status": "INVALID_ARGUMENT", "code": 400, "message": "no", "details": reason}), Auth);
        let quota = |id: &str| {
            json!({"status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded",
            "details": [{"violations": [{"quotaId": id}]}]})
        };
        check(quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), Quota);
        check(quota("GenerateContentInputTokensPerModelPerMinute-FreeTier"), RateLimit);
    }

    #[test]
    fn nothing_of_a_conversation_is_rejected_by_an_error_whose_code_names_another_cause() {
        let rejection = |code: &str| {
            let error = json!({"code": code, "message": "too many images"});
            let body = ErrorBody::from_json(&json!({ "error": error })).unwrap();
            body.into_error(Some(400)).failure.rejection
        };
        assert!(rejection("invalid_value").is_some());
        for code in ["1308", "servicequotaexceededexception", "engine_overloaded_error"] {
            assert_eq!(rejection(code), None, "{code}");
        }
    }

    #[test]
    fn the_verdict_of_a_service_and_its_demanded_wait_are_values() {
        let check = |note: &str, class: FailureClass| {
            let code = Some("rate_limit_error".to_owned());
            let mut body = ErrorBody { code, message: "m".to_owned(), ..ErrorBody::default() };
            body.notes.push(note.to_owned());
            assert_eq!(body.into_error(Some(429)).failure.class, class);
        };
        check(NO_RETRY, FailureClass::InvalidRequest);
        check(RETRY, FailureClass::RateLimit);
        let details = json!([{"retryDelay": "28s"}]);
        let error = json!({"error": {"message": "in 5 s", "code": 429, "details": details}});
        let error = ErrorBody::from_json(&error).unwrap().into_error(Some(429));
        assert_eq!(error.failure.retry_after, Some(Duration::from_secs(28)));
    }
}
