//! Why an answer ended, in the words of any API.
//!
//! Gateways translate between APIs and keep the word of the other one, so each decoder
//! understands all of them, in any spelling.

use crate::ai::failure::{RequestError, normalised};
use crate::ai::messages::StopReason;

/// The end that a service reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportedEnd {
    /// The answer is complete.
    Stop,
    /// The answer is complete and has calls.
    Calls,
    /// The limit of tokens was reached.
    Length,
    /// The service paused between calls of its own tools.
    Pause,
}

/// The words for each end, as [`normalised`] leaves them.
const WORDS: &[(ReportedEnd, &[&str])] = &[
    (
        ReportedEnd::Stop,
        &[
            "stop",
            "stopped",
            "end",
            "ended",
            "eos",
            "eot",
            "eostoken",
            "eottoken",
            "stoptoken",
            "stopsequence",
            "stopsequences",
            "stopstr",
            "stopword",
            "endturn",
            "endofturn",
            "endoftext",
            "endofsequence",
            "endofmessage",
            "complete",
            "completed",
            "finish",
            "finished",
            "done",
            "success",
            "succeeded",
            "normal",
        ],
    ),
    (
        ReportedEnd::Calls,
        &[
            "tooluse",
            "tooluses",
            "toolcall",
            "toolcalls",
            "toolscall",
            "toolscalls",
            "tool",
            "tools",
            "functioncall",
            "functioncalls",
            "function",
            "functions",
            "requiresaction",
        ],
    ),
    (
        ReportedEnd::Length,
        &[
            "length",
            "maxlength",
            "modellength",
            "lengthlimit",
            "maxtoken",
            "maxtokens",
            "maxtokensreached",
            "maxoutputtokens",
            "maxcompletiontokens",
            "maxnewtokens",
            "tokenlimit",
            "tokenlimitreached",
            "outputlimit",
            "outputtokenlimit",
            "modelcontextwindowexceeded",
            "contextwindowexceeded",
            // Gemini: the answer would go on in another request.
            "continuation",
        ],
    ),
    (ReportedEnd::Pause, &["pauseturn", "pause", "paused"]),
];

/// The end that `reason` names; `None` if it names a failure or nothing known.
pub(super) fn reported_end(reason: &str) -> Option<ReportedEnd> {
    let word = normalised(reason);
    // The names of Google's list in other languages begin with that of the list.
    let word = word.strip_prefix("finishreason").or(word.strip_prefix("stopreason")).unwrap_or(&word);
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(end, _)| *end)
}

/// The result of an answer that ended with `reason`, the value of the field `key`.
///
/// # Errors
/// If the reason is a failure, or contradicts the answer.
pub(super) fn outcome_of(
    key: &str,
    reason: &str,
    has_calls: bool,
    explanation: Option<&str>,
) -> Result<StopReason, RequestError> {
    match reported_end(reason) {
        // Many services report the end of a text although the answer has calls.
        Some(ReportedEnd::Stop | ReportedEnd::Calls) if has_calls => Ok(StopReason::ToolUse),
        Some(ReportedEnd::Stop) => Ok(StopReason::Stop),
        Some(ReportedEnd::Calls) => Err(RequestError::without_call(key, reason)),
        Some(ReportedEnd::Length) => Ok(StopReason::Length),
        Some(ReportedEnd::Pause) => Err(RequestError::paused(key, reason)),
        None => Err(RequestError::of_stop_reason(key, reason, explanation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_apis_are_known_in_any_spelling() {
        let check = |reasons: &[&str], expected: Option<ReportedEnd>| {
            for reason in reasons {
                assert_eq!(reported_end(reason), expected, "{reason}");
            }
        };
        let stop = &[
            "stop",
            "STOP",
            "end_turn",
            "EndTurn",
            "END-TURN",
            "eos_token",
            "completed",
            "FinishReason.STOP",
        ];
        check(stop, Some(ReportedEnd::Stop));
        check(&["tool_use", "tool_call", "TOOL_CALLS", "function_call", "toolUse"], Some(ReportedEnd::Calls));
        let length = &["length", "MAX_TOKENS", "max_output_tokens", "CONTINUATION", "model_length"];
        check(length, Some(ReportedEnd::Length));
        check(&["pause_turn"], Some(ReportedEnd::Pause));
        check(&["", "moonquake", "content_filter", "error", "stopgap", "SAFETY"], None);
    }

    #[test]
    fn every_word_is_normalised_and_in_one_row() {
        let words: Vec<&str> = WORDS.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        for (position, word) in words.iter().enumerate() {
            assert_eq!(normalised(word), *word);
            assert!(!words[position + 1..].contains(word), "{word} is there twice");
        }
    }

    #[test]
    fn an_announced_call_that_is_missing_is_retried() {
        let error = outcome_of("finish_reason", "tool_calls", false, None).unwrap_err();
        assert!(error.failure.class.is_retryable());
        assert!(error.text.contains("finish_reason: tool_calls"), "{error}");
        assert_eq!(outcome_of("finish_reason", "stop", true, None), Ok(StopReason::ToolUse));
    }
}
