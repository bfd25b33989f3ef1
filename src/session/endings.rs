//! Decides what follows an answer that is of no use: one that is empty, or a call that the output
//! limit cut off. Pure.

use crate::ai::{AssistantBlock, AssistantMessage, StopReason, empty_answer_text};

/// Calls that are cut off one after the other until the run ends.
const MAX_CUT_CALLS: u32 = 3;

/// Calls without readable arguments, one after the other, until the run ends. A model that is told
/// what is wrong mends most of them.
const MAX_BROKEN_CALLS: u32 = 6;

/// Counts useless answers since the last useful one.
#[derive(Debug, Default)]
pub(super) struct Endings {
    n_cut_calls: u32,
    /// Answers one after the other of whose calls none had arguments that could be read.
    n_broken_calls: u32,
    asked_again: bool,
    /// Answers may be as long as the model allows, whatever the settings say.
    is_limit_raised: bool,
}

/// What follows an answer whose calls could not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterCalls {
    GoOn,
    /// The last answers were cut off; another one would be too.
    GiveUp,
}

impl Endings {
    /// A prompt of the user begins anew.
    pub(super) fn on_prompt(&mut self) {
        *self = Self::default();
    }

    /// Counts an answer; one that failed counts as none.
    pub(super) fn on_answer(&mut self, answer: &AssistantMessage) {
        if answer.is_failed() {
            return;
        }
        match has_cut_call(answer) {
            true => self.n_cut_calls += 1,
            false => self.n_cut_calls = 0,
        }
        match has_only_broken_calls(answer) {
            true => self.n_broken_calls += 1,
            false => self.n_broken_calls = 0,
        }
        self.asked_again &= !is_useful(answer);
    }

    /// What follows the calls of the last answer; `can_raise` if the model allows longer answers than
    /// the settings.
    pub(super) fn after_calls(&mut self, can_raise: bool) -> AfterCalls {
        if self.n_cut_calls >= MAX_CUT_CALLS || self.n_broken_calls >= MAX_BROKEN_CALLS {
            return AfterCalls::GiveUp;
        }
        self.is_limit_raised |= self.n_cut_calls > 0 && can_raise;
        AfterCalls::GoOn
    }

    /// Whether the last answer of a run is requested once more.
    pub(super) fn asks_again(&mut self, answer: &AssistantMessage, can_raise: bool) -> bool {
        if empty_answer_text(answer).is_some() {
            return !std::mem::replace(&mut self.asked_again, true);
        }
        let raises = is_cut_off_before_text(answer) && can_raise && !self.is_limit_raised;
        self.is_limit_raised |= raises;
        raises
    }

    /// Whether the last answer was a call that was cut off.
    pub(super) fn is_cut_call(&self) -> bool {
        self.n_cut_calls > 0
    }

    pub(super) fn is_limit_raised(&self) -> bool {
        self.is_limit_raised
    }
}

/// Why an answer that did not fail has nothing to read; `None` if it has, or calls.
pub fn no_answer_text(answer: &AssistantMessage) -> Option<&'static str> {
    if is_cut_off_before_text(answer) {
        return Some("The model reached its output limit before it wrote an answer.");
    }
    empty_answer_text(answer)
}

/// Whether the output limit cut off a call, which therefore did not run.
pub fn has_cut_call(answer: &AssistantMessage) -> bool {
    answer.stop_reason == StopReason::Length && answer.tool_calls().next().is_some()
}

fn has_only_broken_calls(answer: &AssistantMessage) -> bool {
    let mut calls = answer.tool_calls().peekable();
    calls.peek().is_some() && calls.all(|call| call.arguments_error.is_some())
}

fn is_cut_off_before_text(answer: &AssistantMessage) -> bool {
    answer.stop_reason == StopReason::Length && !is_useful(answer)
}

fn is_useful(answer: &AssistantMessage) -> bool {
    answer.content.iter().any(|block| match block {
        AssistantBlock::Text(text) => !text.text.trim().is_empty(),
        AssistantBlock::Thinking(_) => false,
        AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An answer by words: `text`, `blank`, `thinking`, `call`; the last word is how it stopped.
    fn answer(words: &str) -> AssistantMessage {
        let (content, stop) = words.rsplit_once(' ').unwrap_or(("", words));
        let block = |word: &str| -> Value {
            match word {
                "text" => json!({"type": "text", "text": "hi"}),
                "blank" => json!({"type": "text", "text": " \n"}),
                "thinking" => json!({"type": "thinking", "thinking": "hm"}),
                "call" => json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}}),
                other => panic!("{other}"),
            }
        };
        let content: Vec<Value> = content.split_whitespace().map(block).collect();
        serde_json::from_value(json!({"content": content, "stopReason": stop})).unwrap()
    }

    /// Whether each answer, the last of its run, is requested again.
    #[track_caller]
    fn check_again(answers: &[&str], can_raise: bool, expected: &[bool]) {
        let mut endings = Endings::default();
        let mut found = Vec::new();
        for words in answers {
            let answer = answer(words);
            endings.on_answer(&answer);
            found.push(endings.asks_again(&answer, can_raise));
        }
        assert_eq!(found, expected, "{answers:?}");
    }

    #[test]
    fn empty_answer_is_requested_once_more() {
        for empty in ["stop", "blank stop", "thinking stop", "thinking blank stop", "toolUse"] {
            check_again(&[empty, empty, "text stop", empty], false, &[true, false, false, true]);
        }
        check_again(&["error", "aborted", "thinking text stop"], true, &[false; 3]);
    }

    #[test]
    fn thinking_up_to_the_limit_is_repeated_once_if_the_model_allows_more() {
        check_again(&["thinking length", "thinking length"], true, &[true, false]);
        check_again(&["thinking length"], false, &[false]);
        check_again(&["length"], true, &[true]);
        check_again(&["text length"], true, &[false]);
    }

    #[test]
    fn third_cut_call_in_a_row_ends_the_run() {
        let mut endings = Endings::default();
        let mut after = |words: &str, can_raise| {
            endings.on_answer(&answer(words));
            (endings.after_calls(can_raise), endings.is_limit_raised())
        };
        assert_eq!(after("call length", false), (AfterCalls::GoOn, false));
        assert_eq!(after("call toolUse", true), (AfterCalls::GoOn, false));
        assert_eq!(after("text call length", true), (AfterCalls::GoOn, true));
        assert_eq!(after("call length", true), (AfterCalls::GoOn, true));
        assert_eq!(after("call length", true), (AfterCalls::GiveUp, true));
        endings.on_prompt();
        assert!(!endings.is_cut_call() && !endings.is_limit_raised());
    }

    #[test]
    fn calls_without_readable_arguments_end_the_run_at_last() {
        let broken = || {
            let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
            let mut answer: AssistantMessage =
                serde_json::from_value(json!({"content": [call], "stopReason": "toolUse"})).unwrap();
            let AssistantBlock::ToolCall(call) = &mut answer.content[0] else { unreachable!() };
            call.arguments_error = Some("no JSON".into());
            answer
        };
        let mut endings = Endings::default();
        let mut after = |answer: &AssistantMessage| {
            endings.on_answer(answer);
            endings.after_calls(false)
        };
        for _ in 1..MAX_BROKEN_CALLS {
            assert_eq!(after(&broken()), AfterCalls::GoOn);
        }
        assert_eq!(after(&answer("call toolUse")), AfterCalls::GoOn, "one that can be read");
        for _ in 1..MAX_BROKEN_CALLS {
            assert_eq!(after(&broken()), AfterCalls::GoOn);
        }
        assert_eq!(after(&broken()), AfterCalls::GiveUp);
    }

    #[test]
    fn sentence_names_why_there_is_no_answer() {
        let check = |words: &str, expected: &str| {
            let text = no_answer_text(&answer(words)).unwrap_or_default();
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{words}: {text}");
        };
        check("stop", "empty answer");
        check("thinking stop", "after thinking");
        check("thinking length", "before it wrote an answer");
        check("call length", "");
        check("text length", "");
        check("text stop", "");
        check("call toolUse", "");
        check("error", "");
    }
}
