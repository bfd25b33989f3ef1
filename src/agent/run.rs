//! The outer loop: turns until the model calls no more tools and both queues are
//! empty.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::ai::{AssistantMessage, Message, Millis, Provider, Request, StopReason};
use crate::util::{clock::Clock, panics::panic_text};

use super::crash::{Watched, crash_error};
use super::event::AgentEvent;
use super::hooks::{Hooks, NextRequest};
use super::queue::Queues;
use super::tool::ToolRegistry;
use super::tool_calls;
use super::tool_names;
use super::turn::{self, Answered};

/// Everything one run depends on in addition to its [`Hooks`].
pub struct Run<'a> {
    /// Answers the requests.
    pub provider: &'a dyn Provider,
    /// The tools of the first request; [`Hooks::prepare_request`] may change them.
    pub tools: &'a ToolRegistry,
    /// Where messages for the agent wait.
    pub queues: &'a Queues,
    /// Model, options and the conversation before `prompts`.
    pub request: Request,
    /// The messages that start the run; empty to repeat a failed request, in which case
    /// the conversation must not end in an answer.
    pub prompts: Vec<Message>,
    /// The session's directory, where tools work.
    pub cwd: &'a std::path::Path,
    /// Times messages and calls.
    pub clock: Clock,
    /// Ends the run; what arrived until then is kept.
    pub cancel: CancellationToken,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// The last answer; `None` if the run was cancelled before there was one.
    pub last: Option<Arc<Message>>,
    /// Whether the run was cancelled.
    pub aborted: bool,
    /// The message of a panic that ended the run. It is a bug, so a retry would panic
    /// again.
    pub panic: Option<String>,
}

impl RunOutcome {
    /// The last answer of the run, complete or not.
    pub fn last_assistant(&self) -> Option<&AssistantMessage> {
        match self.last.as_deref() {
            Some(Message::Assistant(message)) => Some(message),
            Some(Message::System(_) | Message::User(_) | Message::ToolResult(_)) | None => None,
        }
    }
}

/// Runs until the model calls no more tools and both queues are empty, the request
/// fails, or `run.cancel` fires. Emits exactly the grammar of [`AgentEvent`], even
/// if a tool, the provider or a hook panics.
pub async fn run(run: Run<'_>, hooks: &mut dyn Hooks) -> RunOutcome {
    let mut watched = Watched::new(hooks);
    let panic = match AssertUnwindSafe(run_to_end(&run, &mut watched)).catch_unwind().await {
        Ok(outcome) => return outcome,
        Err(panic) => panic_text(&*panic),
    };
    run.queues.end_turn();
    let now = Millis(run.clock.now_ms());
    let last = watched.close(&run.request, &crash_error(&panic), now).await;
    RunOutcome { last, aborted: run.cancel.is_cancelled(), panic: Some(panic) }
}

async fn run_to_end(run: &Run<'_>, hooks: &mut dyn Hooks) -> RunOutcome {
    let next =
        NextRequest { request: run.request.clone(), tools: run.tools.clone(), system: None, stop: false };
    let mut state = State { next, new: Vec::new(), last: None, panic: None };
    hooks.emit(AgentEvent::AgentStart).await;
    hooks.emit(AgentEvent::TurnStart).await;
    for prompt in run.prompts.iter().cloned() {
        state.append(Arc::new(prompt), hooks).await;
    }
    // The user typed these while the run was being prepared.
    let mut pending = run.queues.take_steering();
    let (mut first, mut calls_tools) = (true, false);
    loop {
        if !first {
            // Messages stay queued until it is certain that the request is sent.
            hooks.prepare_request(&mut state.next).await;
            if state.next.stop {
                break;
            }
            pending = run.queues.take_steering();
            if pending.is_empty() && !calls_tools {
                pending = run.queues.take_follow_up();
                if pending.is_empty() {
                    break;
                }
            }
            hooks.emit(AgentEvent::TurnStart).await;
            if let Some(system) = state.next.system.take() {
                state.append(Arc::new(Message::from(system)), hooks).await;
            }
        }
        first = false;
        if !pending.is_empty() {
            // Messages queued meanwhile need a new answer.
            state.next.request.options.continue_from = None;
        }
        for message in pending.drain(..) {
            state.append(message, hooks).await;
        }
        let ended = state.turn(run, hooks).await;
        if run.cancel.is_cancelled() || ended == Turn::Failed {
            break;
        }
        calls_tools = ended == Turn::CallsTools;
        if !calls_tools && run.queues.is_empty() {
            break;
        }
    }
    hooks.emit(AgentEvent::AgentEnd { messages: state.new }).await;
    RunOutcome { last: state.last, aborted: run.cancel.is_cancelled(), panic: state.panic }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There are tool results the model has not seen.
    CallsTools,
    /// The model has nothing more to do.
    Finished,
    /// An urgent message interrupted the answer and is delivered next.
    Interrupted,
    Failed,
}

struct State {
    next: NextRequest,
    /// Messages of this run, in order.
    new: Vec<Arc<Message>>,
    last: Option<Arc<Message>>,
    panic: Option<String>,
}

impl State {
    /// Appends a finished message to the conversation and emits it.
    async fn append(&mut self, message: Arc<Message>, hooks: &mut dyn Hooks) {
        hooks.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
        hooks.emit(AgentEvent::MessageEnd(Arc::clone(&message))).await;
        self.keep(message);
    }

    fn keep(&mut self, message: Arc<Message>) {
        self.next.request.messages.push(Arc::clone(&message));
        self.new.push(message);
    }

    /// One answer and its tool calls; `TurnStart` has been emitted.
    async fn turn(&mut self, run: &Run<'_>, hooks: &mut dyn Hooks) -> Turn {
        // Cancelled by the run, or by a message that must not wait.
        let cancel = run.cancel.child_token();
        for message in run.queues.begin_turn(cancel.clone()) {
            self.append(message, hooks).await;
        }
        let ended = self.turn_inner(run, &cancel, hooks).await;
        run.queues.end_turn();
        ended
    }

    async fn turn_inner(&mut self, run: &Run<'_>, cancel: &CancellationToken, hooks: &mut dyn Hooks) -> Turn {
        self.next.request.options.started_ms = run.clock.now_ms();
        let Answered { mut answer, panic } =
            turn::stream_answer(run.provider, &self.next.request, cancel, hooks).await;
        self.panic = panic;
        tool_names::use_real_names(&mut answer, &self.next.tools);
        let message = Arc::new(Message::from(answer));
        hooks.emit(AgentEvent::MessageEnd(Arc::clone(&message))).await;
        self.keep(Arc::clone(&message));
        self.last = Some(Arc::clone(&message));
        let Message::Assistant(answer) = &*message else { return Turn::Failed };

        if answer.is_failed() {
            hooks.emit(AgentEvent::TurnEnd { message: Arc::clone(&message), results: Vec::new() }).await;
            let interrupted = answer.stop_reason == StopReason::Aborted && !run.cancel.is_cancelled();
            return if interrupted { Turn::Interrupted } else { Turn::Failed };
        }
        let batch = tool_calls::run_all(answer, run, &self.next.tools, cancel, hooks).await;
        for result in &batch.results {
            if !batch.announced {
                hooks.emit(AgentEvent::MessageStart(Arc::clone(result))).await;
                hooks.emit(AgentEvent::MessageEnd(Arc::clone(result))).await;
            }
            self.keep(Arc::clone(result));
        }
        let calls_tools = !batch.results.is_empty() && !batch.terminate;
        hooks.emit(AgentEvent::TurnEnd { message: Arc::clone(&message), results: batch.results }).await;
        if calls_tools { Turn::CallsTools } else { Turn::Finished }
    }
}
