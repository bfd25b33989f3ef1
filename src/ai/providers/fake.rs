//! A scripted provider for tests.
//!
//! Answers requests from a queue, in order, and records the requests.
//! [`TestBarrier`]s stop an answer at a chosen position until the test continues it, so that
//! a test can interrupt or steer in the middle without waiting for time to pass.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::ai::messages::{
    AssistantBlock, AssistantMessage, BlockKind, EventStream, Extra, MessageBuilder, Millis, StopReason,
    StreamEvent, Text, Thinking, ToolCall, Usage,
};
use crate::ai::providers::Provider;
use crate::ai::requests::Request;

/// Answers from a script. Clones share the script and the record.
#[derive(Debug, Clone, Default)]
pub struct FakeProvider {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<FakeAnswer>,
    requests: Vec<Arc<Request>>,
}

impl FakeProvider {
    /// A provider that returns `answers`, one per request, and errors after the last.
    pub fn new(answers: impl IntoIterator<Item = FakeAnswer>) -> Self {
        let provider = Self::default();
        provider.lock().answers.extend(answers);
        provider
    }

    /// Appends one more answer.
    pub fn push(&self, answer: FakeAnswer) {
        self.lock().answers.push_back(answer);
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.lock().requests.clone()
    }

    /// The number of answers not yet requested.
    pub fn n_left(&self) -> usize {
        self.lock().answers.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for FakeProvider {
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let answer = {
            let mut state = self.lock();
            state.requests.push(request.clone());
            state.answers.pop_front()
        };
        let answer = answer.unwrap_or_else(|| FakeAnswer::failed("the fake provider has no answer left"));
        let model = &request.model;
        let started = Millis(request.options.started_ms);
        let mut pending = AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, started);
        pending.usage = answer.usage;
        model.price(&mut pending.usage);
        pending.thinking_level = Some(request.options.thinking);
        let player = Player {
            steps: answer.steps.into(),
            outcome: Some(answer.outcome),
            builder: MessageBuilder::new(pending),
            cancel,
        };
        stream::unfold(player, |mut player| async { player.next().await.map(|event| (event, player)) })
            .boxed()
    }
}

/// One scripted answer, built block by block.
#[derive(Debug, Clone, Default)]
pub struct FakeAnswer {
    steps: Vec<Step>,
    n_blocks: usize,
    usage: Usage,
    outcome: Outcome,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a script has a few steps, nearly all of them events")]
enum Step {
    Event(StreamEvent),
    TestBarrier(TestBarrier),
}

#[derive(Debug, Clone, Default)]
enum Outcome {
    /// `ToolUse` if there are calls, otherwise `Stop`.
    #[default]
    Natural,
    Stop(StopReason),
    Failed(String),
    /// The provider itself panics.
    Panics(String),
    /// The script contains its own `Done`.
    Scripted,
}

impl FakeAnswer {
    /// An empty answer.
    pub fn new() -> Self {
        Self { steps: vec![Step::Event(StreamEvent::Start)], ..Self::default() }
    }

    /// An answer with one text.
    pub fn of_text(text: &str) -> Self {
        Self::new().text(text)
    }

    /// An answer that fails before any content arrives.
    pub fn failed(error: &str) -> Self {
        Self { outcome: Outcome::Failed(error.to_owned()), ..Self::default() }
    }

    /// Exactly these events, including `Done`.
    pub fn of_events(events: impl IntoIterator<Item = StreamEvent>) -> Self {
        let steps = events.into_iter().map(Step::Event).collect();
        Self { steps, outcome: Outcome::Scripted, ..Self::default() }
    }

    /// Adds a text that arrives at once.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.text_pieces(&[text], None)
    }

    /// A text that arrives in pieces, with a stop at `gate` before each piece except the first.
    #[must_use]
    pub fn text_pieces(self, pieces: &[&str], gate: Option<&TestBarrier>) -> Self {
        let block = AssistantBlock::Text(Text::new(pieces.concat()));
        self.block(BlockKind::Text, pieces, block, gate)
    }

    /// Adds thinking that arrives at once.
    #[must_use]
    pub fn thinking(self, text: &str) -> Self {
        let block = AssistantBlock::Thinking(Thinking { thinking: text.to_owned(), ..Thinking::default() });
        self.block(BlockKind::Thinking, &[text], block, None)
    }

    /// Adds a tool call with these arguments, an object.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: Value) -> Self {
        let text = arguments.to_string();
        let (id, name) = (id.to_owned(), name.to_owned());
        let kind = BlockKind::ToolCall { id: id.clone(), name: name.clone() };
        let call = ToolCall {
            id,
            name,
            arguments,
            thought_signature: None,
            arguments_error: None,
            extra: Extra::new(),
        };
        self.block(kind, &[&text], AssistantBlock::ToolCall(call), None)
    }

    /// Waits here until the test opens `gate`.
    #[must_use]
    pub fn gate(mut self, gate: &TestBarrier) -> Self {
        self.steps.push(Step::TestBarrier(gate.clone()));
        self
    }

    /// Sets the tokens that the answer reports.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Ends for this reason, regardless of the content.
    #[must_use]
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.outcome = Outcome::Stop(reason);
        self
    }

    /// Fails after the events scripted so far.
    #[must_use]
    pub fn error(mut self, error: &str) -> Self {
        self.outcome = Outcome::Failed(error.to_owned());
        self
    }

    /// Panics after the events scripted so far, like a defective provider.
    #[must_use]
    pub fn panics(mut self, text: &str) -> Self {
        self.outcome = Outcome::Panics(text.to_owned());
        self
    }

    fn block(
        mut self,
        kind: BlockKind,
        pieces: &[&str],
        block: AssistantBlock,
        gate: Option<&TestBarrier>,
    ) -> Self {
        let index = self.n_blocks;
        self.n_blocks += 1;
        self.steps.push(Step::Event(StreamEvent::BlockStart { index, kind }));
        for (at, piece) in pieces.iter().enumerate() {
            if let Some(gate) = gate.filter(|_| at > 0) {
                self.steps.push(Step::TestBarrier(gate.clone()));
            }
            self.steps.push(Step::Event(StreamEvent::Delta { index, text: (*piece).to_owned() }));
        }
        self.steps.push(Step::Event(StreamEvent::BlockEnd { index, block }));
        self
    }
}

/// A position in a script where the provider waits for the test. One `open` lets
/// one arrival through; clones are the same barrier.
#[derive(Debug, Clone)]
pub struct TestBarrier {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Default for TestBarrier {
    fn default() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), opened: Arc::new(Semaphore::new(0)) }
    }
}

impl TestBarrier {
    /// A barrier that nothing has reached.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns once the provider has arrived at the barrier; each arrival is reported once.
    pub async fn reached(&self) {
        take(&self.reached).await;
    }

    /// Lets the provider pass once, now or when it arrives.
    pub fn open(&self) {
        self.opened.add_permits(1);
    }

    /// Waits at the barrier, like the provider.
    pub async fn pass(&self) {
        self.reached.add_permits(1);
        take(&self.opened).await;
    }
}

async fn take(semaphore: &Semaphore) {
    // Fails only for a closed semaphore, and this one is never closed.
    if let Ok(permit) = semaphore.acquire().await {
        permit.forget();
    }
}

struct Player {
    steps: VecDeque<Step>,
    /// `None` once `Done` was sent.
    outcome: Option<Outcome>,
    builder: MessageBuilder,
    cancel: CancellationToken,
}

impl Player {
    async fn next(&mut self) -> Option<StreamEvent> {
        self.outcome.as_ref()?;
        while let Some(step) = self.steps.pop_front() {
            if self.cancel.is_cancelled() {
                return self.done(Outcome::Stop(StopReason::Aborted));
            }
            match step {
                Step::Event(event) => {
                    self.builder.push(&event);
                    if matches!(event, StreamEvent::Done(_)) {
                        self.outcome = None;
                    }
                    return Some(event);
                }
                Step::TestBarrier(gate) => tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return self.done(Outcome::Stop(StopReason::Aborted)),
                    () = gate.pass() => {}
                },
            }
        }
        let outcome = match self.outcome.take()? {
            _ if self.cancel.is_cancelled() => Outcome::Stop(StopReason::Aborted),
            outcome => outcome,
        };
        self.done(outcome)
    }

    fn done(&mut self, outcome: Outcome) -> Option<StreamEvent> {
        self.outcome = None;
        let mut message = self.builder.clone().into_message();
        (message.stop_reason, message.error_message) = match outcome {
            Outcome::Natural if message.tool_calls().next().is_some() => (StopReason::ToolUse, None),
            Outcome::Natural => (StopReason::Stop, None),
            Outcome::Stop(StopReason::Aborted) => {
                (StopReason::Aborted, Some("Request was aborted".to_owned()))
            }
            Outcome::Stop(reason) => (reason, None),
            Outcome::Failed(error) => (StopReason::Error, Some(error)),
            Outcome::Panics(text) => panic!("{text}"),
            // A custom script without `Done` just ends.
            Outcome::Scripted => return None,
        };
        message.duration_ms = Some(0);
        Some(StreamEvent::Done(Box::new(message)))
    }
}
