//! Error texts for people: what happened first, the words of the protocol after it.
//!
//! Stored texts stay as they are, because their class is read from them.

use std::borrow::Cow;
use std::time::Duration;

use super::{FailureClass, codes, error_body::span, parse_duration};

/// Beginnings of the texts about answers that are not complete, with what happened.
const BROKEN: &[(&str, &str)] = &[
    ("stream ended ", "the connection closed before the answer was complete"),
    ("stream interrupted", "the connection closed before the answer was complete"),
    ("the stream carried malformed JSON", "a part of the answer could not be read"),
];

/// The fields whose value says why a model stopped.
const STOP_FIELDS: &[&str] =
    &["finish_reason: ", "finishReason: ", "stop_reason: ", "stopReason: ", "blockReason: ", "incomplete: "];

/// What precedes the wait that a server asks for.
const RETRY_AFTER: &str = "retry after ";

/// Shorter waits are in seconds.
const MIN_SPAN: Duration = Duration::from_secs(120);

/// The text of an error as people read it.
pub fn plain_error(text: &str) -> Cow<'_, str> {
    match what_happened(text) {
        Some(happened) => Cow::Owned(format!("{happened} ({text})")),
        None => with_plain_wait(text),
    }
}

fn what_happened(text: &str) -> Option<&'static str> {
    if let Some((_, happened)) = BROKEN.iter().find(|(start, _)| text.starts_with(start)) {
        return Some(happened);
    }
    let reason = STOP_FIELDS.iter().find_map(|field| text.strip_prefix(field))?;
    let reason = reason.split(' ').next().unwrap_or_default();
    Some(match codes::class_of_stop_reason(reason) {
        Some(FailureClass::Refused) => "a content filter stopped the answer",
        Some(FailureClass::Overflow) => "the conversation is too long for the model",
        Some(FailureClass::ToolUseFailed) => "the provider could not read the tool call of its model",
        _ => "the provider stopped the answer",
    })
}

/// The text with a long wait in hours and minutes.
fn with_plain_wait(text: &str) -> Cow<'_, str> {
    let plain = || {
        let (before, wait) = text.split_once(RETRY_AFTER)?;
        let length = wait.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let after =
            wait[length..].strip_prefix('s').filter(|after| !after.starts_with(char::is_alphanumeric))?;
        let delay = parse_duration(&wait[..length]).filter(|delay| *delay >= MIN_SPAN)?;
        Some([before, RETRY_AFTER, &wait_text(delay), after].concat())
    };
    plain().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `90s`, `45 min`, `1 h`, `2 h 5 min`.
pub fn wait_text(delay: Duration) -> String {
    let seconds = delay.as_secs_f64().ceil();
    if delay < MIN_SPAN { format!("{seconds}s") } else { span(seconds) }
}

#[cfg(test)]
mod tests {
    use super::super::classify;
    use super::*;

    #[test]
    fn errors_say_what_happened_before_the_words_of_the_protocol() {
        let check = |text: &str, expected: &str| {
            assert_eq!(plain_error(text), expected);
            assert_eq!(classify(expected, None), classify(text, None), "{text}");
        };
        let closed = "the connection closed before the answer was complete";
        check(
            "stream ended before a finish_reason",
            &format!("{closed} (stream ended before a finish_reason)"),
        );
        check(
            "stream interrupted: connection lost (reset)",
            &format!("{closed} (stream interrupted: connection lost (reset))"),
        );
        check(
            "the stream carried malformed JSON: expected ident at line 1 column 9",
            "a part of the answer could not be read (the stream carried malformed JSON: expected ident at line 1 column 9)",
        );
        check(
            "finish_reason: content_filter",
            "a content filter stopped the answer (finish_reason: content_filter)",
        );
        check("finishReason: OTHER (why)", "the provider stopped the answer (finishReason: OTHER (why))");
        check(
            "finishReason: MALFORMED_FUNCTION_CALL (x)",
            "the provider could not read the tool call of its model (finishReason: MALFORMED_FUNCTION_CALL (x))",
        );
        check("400: no such model", "400: no such model");
    }

    #[test]
    fn long_waits_are_in_hours_and_minutes() {
        let check = |text: &str, expected: &str| assert_eq!(plain_error(text), expected);
        check("429: slow (t, retry after 3600s)", "429: slow (t, retry after 1 h)");
        check("429: slow (retry after 7500.5s, x)", "429: slow (retry after 2 h 6 min, x)");
        check("429: slow (retry after 90s)", "429: slow (retry after 90s)");
        check("retry after 500 seconds", "retry after 500 seconds");
        assert_eq!(wait_text(Duration::from_secs(90_000)), "1 d 1 h");
    }
}
