//! Requests the summaries of a plan from a model and assembles them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::ai::{
    self, AssistantMessage, Credential, Failure, FailureClass, Message, Millis, Model, Provider, Request,
    StopReason, StreamEvent, StreamOptions, SystemMessage, ThinkingLevel, Usage, UserMessage,
};
use crate::util::clock::Clock;
use crate::util::counted;

use super::super::event::{SessionEvent, SummarySource};
use super::super::outbox::Outbox;
use super::super::recovery::{Next, Recovery, RetryPolicy, too_long};
use super::branch::BranchPlan;
use super::excerpt::excerpt;
use super::limits::PlanLimits;
use super::plan::CompactionPlan;
use super::portions::{Portion, Portions};
use super::prompts::{self, Subject};
use super::shorten::within;

/// The text between the summary of whole turns and that of a split turn.
const SPLIT_TURN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";
const NO_HISTORY: &str = "No prior history.";
/// What the summary of a branch begins with.
const BRANCH_LEAD: &str = "The user tried another way from here and came back to this point.\n\
                           What happened on that branch:\n\n";

/// Writes summaries.
#[derive(Clone)]
pub(in super::super) struct Summarizer {
    pub(in super::super) provider: Arc<dyn Provider>,
    pub(in super::super) model: Arc<Model>,
    pub(in super::super) credential: Credential,
    pub(in super::super) options: StreamOptions,
    pub(in super::super) clock: Clock,
    pub(in super::super) retry: RetryPolicy,
    pub(in super::super) announce: Announce,
    pub(in super::super) cancel: CancellationToken,
}

/// Reports the retries of a summary.
#[derive(Clone)]
pub(in super::super) struct Announce {
    pub(in super::super) outbox: Outbox,
    pub(in super::super) source: SummarySource,
}

/// A part of a conversation that is summarised by itself.
#[derive(Clone, Copy)]
struct Part<'p> {
    subject: Subject,
    messages: &'p [Arc<Message>],
    limits: PlanLimits,
}

/// A summary.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Summary {
    pub(in super::super) text: String,
    /// The usage of all its requests.
    pub(in super::super) usage: Usage,
    /// Why an excerpt takes its place, if the model wrote none.
    pub(in super::super) replaced: Option<SummaryError>,
}

/// Why there is no summary; the conversation is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum SummaryError {
    #[error("cancelled")]
    Cancelled,
    #[error("{text}")]
    Failed { text: String, may_pass: bool },
    #[error("the conversation does not fit into the model's window, not even in parts; choose another model")]
    TooLong,
    #[error("the model called a tool instead of writing a summary; try again")]
    CalledTool,
    #[error("the model's summary is empty; try again")]
    Empty,
}

impl SummaryError {
    /// The task that wrote it ended with `error`.
    pub(in super::super) fn of_task(error: &impl ToString) -> Self {
        Self::Failed { text: error.to_string(), may_pass: true }
    }

    /// Whether the model cannot write this summary, so that an excerpt has to do.
    fn is_final(&self, is_needed: bool) -> bool {
        match self {
            Self::TooLong | Self::CalledTool | Self::Empty => true,
            Self::Failed { may_pass, .. } => is_needed && !may_pass,
            Self::Cancelled => false,
        }
    }
}

impl Summarizer {
    /// Writes the summary of `plan`, without the quotes of pinned messages; `focus` is the
    /// subject it should emphasise. If the model cannot write one, an excerpt of what is removed takes
    /// its place; if the summary `is_needed` to continue, also if its request is rejected.
    ///
    /// # Errors
    /// If it is cancelled, or the requests fail after the retries that the policy allows.
    pub(in super::super) async fn summarize(
        &self,
        plan: &CompactionPlan,
        focus: Option<&str>,
        is_needed: bool,
    ) -> Result<Summary, SummaryError> {
        let mut usage = Usage::default();
        let (text, replaced) = match self.write(plan, focus, &mut usage).await {
            Ok(text) => (text, None),
            Err(error) if error.is_final(is_needed) => (excerpt(plan, &error.to_string()), Some(error)),
            Err(error) => return Err(error),
        };
        let text = within(text, plan.limits.summary_chars());
        let lists = within(plan.files.lists(), plan.limits.summary_chars() / 2);
        Ok(Summary { text: text + &lists, usage, replaced })
    }

    /// Writes the summary of both parts of a plan.
    async fn write(
        &self,
        plan: &CompactionPlan,
        focus: Option<&str>,
        usage: &mut Usage,
    ) -> Result<String, SummaryError> {
        let (mut text, mut n_left_out) = (plan.previous_summary.clone(), plan.n_unread);
        if !plan.history.is_empty() {
            let part = Part { subject: Subject::Turns, messages: &plan.history, limits: plan.limits };
            text = Some(self.in_portions(part, text, focus, usage, &mut n_left_out).await?);
        }
        let mut text = text.unwrap_or_else(|| NO_HISTORY.to_owned());
        if !plan.turn_prefix.is_empty() {
            let part =
                Part { subject: Subject::TurnPrefix, messages: &plan.turn_prefix, limits: plan.limits };
            text.push_str(SPLIT_TURN);
            text.push_str(&self.in_portions(part, None, focus, usage, &mut n_left_out).await?);
        }
        if n_left_out > 0 {
            let earliest = counted(n_left_out as u64, "message");
            text.push_str("\n\nNot in this summary, because they are too long: the earliest ");
            text.push_str(&earliest);
            text.push('.');
        }
        Ok(text)
    }

    /// Summarises a part of a conversation, in several requests if it is too long for one: each
    /// carries the summary on. Adds the messages that are too many to `n_left_out`.
    async fn in_portions(
        &self,
        part: Part<'_>,
        mut summary: Option<String>,
        focus: Option<&str>,
        usage: &mut Usage,
        n_left_out: &mut usize,
    ) -> Result<String, SummaryError> {
        let divided = Portions::of(prompts::texts(part.messages), part.limits.portion_chars());
        *n_left_out += divided.n_left_out;
        let mut portions = divided.portions;
        while let Some(portion) = portions.pop_front() {
            match self.ask_about(part, &portion, summary.as_deref(), focus, usage).await {
                Ok(text) => summary = Some(within(text, part.limits.summary_chars())),
                // Tokens are only estimated.
                Err(SummaryError::TooLong) => {
                    let smaller = portion.smaller().ok_or(SummaryError::TooLong)?;
                    smaller.into_iter().rev().for_each(|portion| portions.push_front(portion));
                }
                Err(error) => return Err(error),
            }
        }
        summary.ok_or(SummaryError::Empty)
    }

    /// Asks for the summary of a portion; once more about shorter texts and without thinking, if the
    /// answer is none.
    async fn ask_about(
        &self,
        part: Part<'_>,
        portion: &Portion,
        before: Option<&str>,
        focus: Option<&str>,
        usage: &mut Usage,
    ) -> Result<String, SummaryError> {
        let prompt = |portion: &Portion| prompts::summary(part.subject, &portion.0, before, focus);
        match self.ask(&prompt(portion), usage).await {
            Err(SummaryError::Empty | SummaryError::CalledTool) => {
                self.without_thinking().ask(&prompt(&portion.shortened()), usage).await
            }
            asked => asked,
        }
    }

    /// The same with as little thinking as the model can do.
    fn without_thinking(&self) -> Self {
        let thinking = self.model.clamp_thinking(ThinkingLevel::Off);
        Self { options: StreamOptions { thinking, ..self.options.clone() }, ..self.clone() }
    }

    /// Asks about the end of `conversation`, as much of it as fits.
    async fn ask_about_end(
        &self,
        mut conversation: Vec<String>,
        prompt: impl Fn(&[String]) -> String + Sync,
        usage: &mut Usage,
    ) -> Result<String, SummaryError> {
        loop {
            match self.ask(&prompt(&conversation), usage).await {
                Err(SummaryError::TooLong) if conversation.len() > 1 => {
                    conversation.drain(..conversation.len().div_ceil(2));
                }
                asked => return asked,
            }
        }
    }

    /// Writes the summary of a branch; `focus` is what the user wants it to dwell on.
    ///
    /// # Errors
    /// As [`Self::summarize`].
    pub(in super::super) async fn summarize_branch(
        &self,
        plan: &BranchPlan,
        focus: Option<&str>,
    ) -> Result<Summary, SummaryError> {
        let mut usage = Usage::default();
        let texts = prompts::texts(&plan.messages);
        let prompt = |texts: &[String]| prompts::branch(texts, focus);
        let summary = self.ask_about_end(texts, prompt, &mut usage).await?;
        let text = format!("{BRANCH_LEAD}{summary}{}", plan.files.lists());
        Ok(Summary { text, usage, replaced: None })
    }

    /// Drafts the first prompt of a session that works on `goal`, after `plan`.
    ///
    /// # Errors
    /// As for [`Self::summarize`].
    pub(in super::super) async fn draft_handoff(
        &self,
        plan: &BranchPlan,
        goal: &str,
    ) -> Result<Summary, SummaryError> {
        let mut usage = Usage::default();
        let texts = prompts::texts(&plan.messages);
        let prompt = |texts: &[String]| prompts::handoff(texts, goal);
        let text = self.ask_about_end(texts, prompt, &mut usage).await?;
        Ok(Summary { text, usage, replaced: None })
    }

    /// Sends one request, with the usual retries.
    async fn ask(&self, prompt: &str, usage: &mut Usage) -> Result<String, SummaryError> {
        let mut retries = 0;
        let asked = self.ask_repeatedly(prompt, usage, &mut retries).await;
        if retries > 0 {
            self.announce.outbox.send(SessionEvent::SummaryRetriesFinished);
        }
        asked
    }

    async fn ask_repeatedly(
        &self,
        prompt: &str,
        usage: &mut Usage,
        retries: &mut u32,
    ) -> Result<String, SummaryError> {
        let mut recovery = Recovery::default();
        loop {
            let answer = self.answer(prompt).await?;
            add(usage, &answer.usage);
            if ai::is_overflow(&answer, self.model.context_window) {
                return Err(SummaryError::TooLong);
            }
            if answer.stop_reason != StopReason::Error {
                return text_of(&answer);
            }
            let error = answer.error_message.clone().unwrap_or_default();
            let demanded = Failure::of_answer(&answer).and_then(|failure| failure.retry_after);
            match recovery.decide(ai::is_retryable(&answer), demanded, &self.retry) {
                Next::Retry { attempt, delay } => {
                    *retries = attempt;
                    let (max_attempts, outbox) = (self.retry.max_retries, &self.announce.outbox);
                    outbox.send(SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error });
                    self.wait(delay).await?;
                    outbox.send(SessionEvent::SummaryRetryStarted { source: self.announce.source });
                }
                Next::TooLong { demanded } => {
                    let text = too_long(demanded, self.retry.max_delay);
                    return Err(SummaryError::Failed { text, may_pass: true });
                }
                Next::GiveUp => {
                    let may_pass = may_pass(&answer);
                    return Err(SummaryError::Failed { text: error, may_pass });
                }
            }
        }
    }

    async fn answer(&self, prompt: &str) -> Result<AssistantMessage, SummaryError> {
        let now = Millis(self.clock.now_ms());
        let system = SystemMessage { timestamp: now, ..SystemMessage::new(prompts::SYSTEM) };
        let user = UserMessage::new(prompt, Vec::new(), now);
        let request = Request {
            model: Arc::clone(&self.model),
            credential: self.credential.clone(),
            messages: vec![Arc::new(Message::from(system)), Arc::new(Message::User(user))],
            options: StreamOptions { started_ms: now.0, ..self.options.clone() },
        };
        let mut events = self.provider.stream(Arc::new(request), self.cancel.clone());
        while let Some(event) = events.next().await {
            if let StreamEvent::Done(message) = event {
                return match message.stop_reason {
                    StopReason::Aborted => Err(SummaryError::Cancelled),
                    _ => Ok(*message),
                };
            }
        }
        let text = "the stream ended without an answer".to_owned();
        Err(SummaryError::Failed { text, may_pass: true })
    }

    async fn wait(&self, delay: Duration) -> Result<(), SummaryError> {
        let waited = self.cancel.run_until_cancelled(tokio::time::sleep(delay)).await;
        waited.ok_or(SummaryError::Cancelled)
    }
}

/// What ends a summary that is not complete.
const CUT_OFF: &str = "[The summary was cut off here at the output limit of the model.]";

/// The text of an answer, with a mark if it was cut off.
fn text_of(answer: &AssistantMessage) -> Result<String, SummaryError> {
    if answer.tool_calls().next().is_some() {
        return Err(SummaryError::CalledTool);
    }
    let text: String = answer.texts().collect::<Vec<_>>().join("\n");
    match (text.trim(), answer.stop_reason) {
        ("", _) => Err(SummaryError::Empty),
        (text, StopReason::Length) => Ok(format!("{text}\n\n{CUT_OFF}")),
        (text, _) => Ok(text.to_owned()),
    }
}

/// Whether the failure of `answer` concerns the service or the account rather than this request, so
/// that a later one may succeed.
fn may_pass(answer: &AssistantMessage) -> bool {
    use FailureClass::{Config, InvalidRequest, Refused, ToolUseFailed, Unknown};
    let class = Failure::of_answer(answer).map(|failure| failure.class);
    !matches!(class, Some(Config | InvalidRequest | Refused | ToolUseFailed | Unknown))
}

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input = sum.input.saturating_add(usage.input);
    sum.output = sum.output.saturating_add(usage.output);
    sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
    sum.total_tokens = sum.total_tokens.saturating_add(usage.total_tokens);
    sum.cost.input += usage.cost.input;
    sum.cost.output += usage.cost.output;
    sum.cost.cache_read += usage.cost.cache_read;
    sum.cost.cache_write += usage.cost.cache_write;
    sum.cost.total += usage.cost.total;
}
