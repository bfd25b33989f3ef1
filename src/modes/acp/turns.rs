//! Which prompt an event of the session answers, and how.
//!
//! A session runs prompts in the order in which they were sent: one that is sent during a
//! run waits until the agent would stop. A prompt is answered when the next one begins or
//! when the session has settled. Pure.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, PromptResponse, RequestId, StopReason, Usage as TurnUsage,
};

use crate::ai::{self, AssistantMessage, FailureClass, Usage};

/// The answer to a prompt.
pub(super) type Answered = (RequestId, Result<PromptResponse, Error>);

/// The prompts without an answer.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The one that the agent works on.
    current: Option<Turn>,
    waiting: VecDeque<Turn>,
}

#[derive(Debug)]
struct Turn {
    id: RequestId,
    /// Whether the session has accepted it.
    is_accepted: bool,
    is_cancelled: bool,
    last: Option<Ending>,
    /// Tokens of its answers.
    usage: TurnUsage,
}

/// How an answer of the model ended.
#[derive(Debug, Clone)]
enum Ending {
    Stopped(StopReason),
    Failed(Error),
}

impl Turns {
    pub(super) fn push(&mut self, id: RequestId) {
        self.waiting.push_back(Turn {
            id,
            is_accepted: false,
            is_cancelled: false,
            last: None,
            usage: TurnUsage::new(0, 0, 0),
        });
    }

    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.current.iter().chain(&self.waiting).any(|turn| turn.id == *id)
    }

    /// The session has accepted a prompt, which may have begun already.
    pub(super) fn on_accepted(&mut self, id: &RequestId) {
        if let Some(turn) = self.waiting.iter_mut().find(|turn| turn.id == *id) {
            turn.is_accepted = true;
        }
    }

    /// The session has rejected a prompt.
    pub(super) fn on_rejected(&mut self, id: &RequestId, error: Error) -> Option<Answered> {
        let at = self.waiting.iter().position(|turn| turn.id == *id)?;
        let turn = self.waiting.remove(at)?;
        Some(turn.answered(Some(Ending::Failed(error))))
    }

    /// The agent begins with the next prompt; the one before has ended.
    pub(super) fn on_delivered(&mut self) -> Option<Answered> {
        let next = self.waiting.pop_front()?;
        self.current.replace(next).map(|turn| turn.answered(None))
    }

    pub(super) fn on_answer(&mut self, answer: &AssistantMessage) {
        let Some(turn) = &mut self.current else { return };
        add(&mut turn.usage, &answer.usage);
        turn.last = Some(Ending::of(answer));
    }

    /// The session waits for the user. Prompts that were accepted and are in no queue any
    /// more have been returned.
    pub(super) fn on_settled(&mut self, queue_is_empty: bool) -> Vec<Answered> {
        let mut answered: Vec<Answered> =
            self.current.take().map(|turn| turn.answered(None)).into_iter().collect();
        if queue_is_empty {
            let (returned, waiting): (VecDeque<Turn>, _) =
                std::mem::take(&mut self.waiting).into_iter().partition(|turn| turn.is_accepted);
            self.waiting = waiting;
            let cancelled = || Some(Ending::Stopped(StopReason::Cancelled));
            answered.extend(returned.into_iter().map(|turn| turn.answered(cancelled())));
        }
        answered
    }

    /// The run ended early, at a limit that the user keeps.
    pub(super) fn on_limit(&mut self) -> Option<Answered> {
        let stopped = Ending::Stopped(StopReason::MaxTurnRequests);
        self.current.take().map(|turn| turn.answered(Some(stopped)))
    }

    /// All open prompts end with `cancelled`, however their runs end.
    pub(super) fn cancel(&mut self) {
        for turn in self.current.iter_mut().chain(&mut self.waiting) {
            turn.is_cancelled = true;
        }
    }

    /// Answers all open prompts: nothing will run any more.
    pub(super) fn finish(&mut self) -> Vec<Answered> {
        self.cancel();
        let turns = self.current.take().into_iter().chain(std::mem::take(&mut self.waiting));
        turns.map(|turn| turn.answered(None)).collect()
    }
}

impl Turn {
    /// `ending` is how it ended; `None` means with the last answer of the model.
    fn answered(self, ending: Option<Ending>) -> Answered {
        let ending = ending.or(self.last).unwrap_or(Ending::Stopped(StopReason::EndTurn));
        let result = match ending {
            _ if self.is_cancelled => Ok(StopReason::Cancelled),
            Ending::Stopped(reason) => Ok(reason),
            Ending::Failed(error) => Err(error),
        };
        let usage = Some(self.usage).filter(|usage| usage.total_tokens > 0);
        (self.id, result.map(|reason| PromptResponse::new(reason).usage(usage)))
    }
}

impl Ending {
    fn of(answer: &AssistantMessage) -> Self {
        match answer.stop_reason {
            ai::StopReason::Stop
            | ai::StopReason::ToolUse
            | ai::StopReason::Deferred
            | ai::StopReason::Pending => Self::Stopped(StopReason::EndTurn),
            ai::StopReason::Length => Self::Stopped(StopReason::MaxTokens),
            ai::StopReason::Aborted => Self::Stopped(StopReason::Cancelled),
            ai::StopReason::Error => Self::Failed(failure(answer)),
        }
    }
}

/// The error of a prompt whose answer failed. A refusal of the model is one too: clients
/// forget prompts with the reason `refusal`, but they stay in the session.
fn failure(answer: &AssistantMessage) -> Error {
    let text = ai::failure_text(answer)
        .or_else(|| answer.error_message.clone())
        .unwrap_or_else(|| "the request failed".to_owned());
    let is_auth = answer.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Auth);
    let code = if is_auth { ErrorCode::AuthRequired } else { ErrorCode::InternalError };
    Error::new(code.into(), text)
}

fn add(sum: &mut TurnUsage, usage: &Usage) {
    let add = |sum: Option<u64>, more: u64| Some(sum.unwrap_or_default().saturating_add(more));
    sum.total_tokens = sum.total_tokens.saturating_add(usage.total_tokens);
    sum.input_tokens = sum.input_tokens.saturating_add(usage.input);
    sum.output_tokens = sum.output_tokens.saturating_add(usage.output);
    sum.cached_read_tokens = add(sum.cached_read_tokens, usage.cache_read);
    sum.cached_write_tokens = add(sum.cached_write_tokens, usage.cache_write);
    if let Some(reasoning) = usage.reasoning {
        sum.thought_tokens = add(sum.thought_tokens, reasoning);
    }
}

#[cfg(test)]
mod tests {
    use crate::ai::{Api, Failure, Millis};

    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn answer(stop_reason: ai::StopReason) -> AssistantMessage {
        let usage = Usage { input: 3, output: 2, total_tokens: 5, ..Usage::default() };
        AssistantMessage {
            stop_reason,
            usage,
            error_message: (stop_reason == ai::StopReason::Error).then(|| "overloaded".to_owned()),
            ..AssistantMessage::pending(Api::default(), "acme", "m", Millis(0))
        }
    }

    fn shown(answered: impl IntoIterator<Item = Answered>) -> Vec<String> {
        let shown = |(id, result): Answered| match result {
            Ok(response) => format!("{id} {:?}", response.stop_reason),
            Err(error) => format!("{id} {} {}", i32::from(error.code), error.message),
        };
        answered.into_iter().map(shown).collect()
    }

    #[track_caller]
    fn check_ending(reason: ai::StopReason, expected: &str) {
        let mut turns = Turns::default();
        turns.push(id(1));
        assert!(turns.on_delivered().is_none());
        turns.on_answer(&answer(reason));
        assert_eq!(shown(turns.on_settled(true)), [expected]);
        assert!(!turns.contains(&id(1)));
    }

    #[test]
    fn prompt_ends_as_its_last_answer_did() {
        check_ending(ai::StopReason::Stop, "1 EndTurn");
        check_ending(ai::StopReason::Length, "1 MaxTokens");
        check_ending(ai::StopReason::Aborted, "1 Cancelled");
        check_ending(ai::StopReason::Error, "1 -32603 acme: overloaded");
    }

    #[test]
    fn failed_sign_in_is_told_apart() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_delivered();
        let failure = Some(Box::new(Failure::of_class(FailureClass::Auth)));
        turns.on_answer(&AssistantMessage { failure, ..answer(ai::StopReason::Error) });
        assert_eq!(shown(turns.on_settled(true)), ["1 -32000 acme: overloaded"]);
    }

    #[test]
    fn queued_prompt_ends_the_one_before_it_when_it_begins() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_delivered();
        turns.on_answer(&answer(ai::StopReason::Stop));
        turns.push(id(2));
        turns.on_accepted(&id(2));
        assert_eq!(shown(turns.on_delivered()), ["1 EndTurn"]);
        assert_eq!(shown(turns.on_settled(true)), ["2 EndTurn"]);
    }

    #[test]
    fn prompt_sent_when_the_session_settles_waits_for_its_own_run() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_delivered();
        turns.push(id(2));
        assert_eq!(shown(turns.on_settled(true)), ["1 EndTurn"]);
        assert!(turns.contains(&id(2)));
        turns.on_delivered();
        assert_eq!(shown(turns.on_settled(true)), ["2 EndTurn"]);
    }

    #[test]
    fn cancelled_prompts_end_as_cancelled_even_if_they_failed() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_delivered();
        turns.push(id(2));
        turns.on_accepted(&id(2));
        turns.cancel();
        turns.on_answer(&answer(ai::StopReason::Error));
        assert_eq!(shown(turns.on_settled(true)), ["1 Cancelled", "2 Cancelled"]);
        turns.push(id(3));
        turns.cancel();
        let error = Error::new(-32603, "no");
        assert_eq!(shown(turns.on_rejected(&id(3), error)), ["3 Cancelled"]);
    }

    #[test]
    fn prompt_that_stays_queued_waits() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_accepted(&id(1));
        assert_eq!(shown(turns.on_settled(false)), [""; 0]);
        assert_eq!(shown(turns.finish()), ["1 Cancelled"]);
    }

    #[test]
    fn tokens_of_all_answers_are_added_up() {
        let mut turns = Turns::default();
        turns.push(id(1));
        turns.on_delivered();
        turns.on_answer(&answer(ai::StopReason::ToolUse));
        turns.on_answer(&answer(ai::StopReason::Stop));
        let (_, response) = turns.on_settled(true).pop().unwrap();
        assert_eq!(response.unwrap().usage.unwrap().total_tokens, 10);
    }
}
