//! The tool calls of one answer: validates them, runs them in parallel, reports them.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ai::{AssistantMessage, Extra, Message, Millis, StopReason, ToolCall, ToolResultMessage};
use crate::util::panics::panic_text;

use super::crash::crash_error;
use super::event::AgentEvent;
use super::hooks::{CheckedCall, Gate, Hooks};
use super::run::Run;
use super::schema;
use super::tool::{Concurrency, Environment, Progress, Tool, ToolCx, ToolError, ToolOutput, ToolRegistry};
use super::tool_names;
use super::touches::Touches;

/// Maximum number of calls that run at the same time; the others start as these
/// finish, unless a steering message arrives first.
const MAX_PARALLEL: usize = 8;

/// The result of a call that did not start because a message of the user came first.
pub const SKIPPED_CALL: &str = "Skipped due to queued user message.";

/// The results of the calls of one answer.
pub(super) struct Batch {
    /// One per answered call, in the order of the calls.
    pub(super) results: Vec<Arc<Message>>,
    /// Whether every result requested the end of the run.
    pub(super) terminate: bool,
    /// Whether the results were already emitted as messages.
    pub(super) announced: bool,
}

/// Runs the calls of `answer` and emits their events.
pub(super) async fn run_all(
    answer: &AssistantMessage,
    run: &Run<'_>,
    tools: &ToolRegistry,
    cancel: &CancellationToken,
    hooks: &mut dyn Hooks,
) -> Batch {
    let calls: Vec<Arc<ToolCall>> = answer.tool_calls().cloned().map(Arc::new).collect();
    let sequential = calls
        .iter()
        .any(|call| tools.get(&call.name).is_some_and(|tool| tool.concurrency() == Concurrency::Sequential));
    let mut batch = BatchRun { run, tools, cancel, hooks, withdrawn: false, finished: Vec::new() };
    if answer.stop_reason == StopReason::Length {
        batch.refuse_all(&calls, &truncated_call()).await;
    } else if sequential {
        batch.one_by_one(&calls).await;
    } else {
        batch.side_by_side(&calls).await;
    }
    let mut finished = batch.finished;
    finished.sort_by_key(|finished| finished.call_idx);
    let terminate = !finished.is_empty() && finished.iter().all(|finished| finished.terminate);
    Batch {
        results: finished.into_iter().map(|finished| finished.message).collect(),
        terminate,
        announced: sequential && answer.stop_reason != StopReason::Length,
    }
}

struct BatchRun<'a, 'r> {
    run: &'a Run<'r>,
    tools: &'a ToolRegistry,
    cancel: &'a CancellationToken,
    hooks: &'a mut dyn Hooks,
    /// A question about a call was withdrawn, so the other calls ask none.
    withdrawn: bool,
    finished: Vec<Finished>,
}

struct Finished {
    call_idx: usize,
    message: Arc<Message>,
    terminate: bool,
}

/// A call that may run, with valid arguments.
struct Ready<'a> {
    call_idx: usize,
    call: Arc<ToolCall>,
    tool: &'a Arc<dyn Tool>,
    arguments: Value,
    touches: Touches,
}

/// The outcome of one execution, with its duration.
struct Executed {
    call_idx: usize,
    call: Arc<ToolCall>,
    result: Result<ToolOutput, ToolError>,
    duration_ms: u64,
}

/// Partial output of a running call.
struct Report {
    call_idx: usize,
    call_id: String,
    partial: Arc<ToolOutput>,
}

/// A running call.
type Execution<'a> = BoxFuture<'a, Executed>;

impl<'a> BatchRun<'a, '_> {
    async fn side_by_side(&mut self, calls: &[Arc<ToolCall>]) {
        let mut waiting = VecDeque::new();
        for (call_idx, call) in calls.iter().enumerate() {
            self.hooks.emit(AgentEvent::ToolStart { call: Arc::clone(call) }).await;
            match self.prepare(call_idx, call).await {
                Ok(ready) => waiting.push_back(ready),
                Err(error) => self.finish_with_error(call_idx, call, &error).await,
            }
        }
        let (progress, mut reports) = mpsc::unbounded_channel();
        let mut running = FuturesUnordered::new();
        // By call index.
        let mut touched: Vec<(usize, Touches)> = Vec::new();
        loop {
            while running.len() < MAX_PARALLEL
                && let Some(ready) = take_startable(&mut waiting, &touched)
            {
                if let Some(reason) = self.reason_not_to_start() {
                    self.finish_with_error(ready.call_idx, &ready.call, &reason).await;
                } else {
                    touched.push((ready.call_idx, ready.touches.clone()));
                    self.hooks.emit(AgentEvent::ToolRunning { call_id: ready.call.id.clone() }).await;
                    running.push(self.execute(ready, progress.clone()));
                }
            }
            tokio::select! {
                biased;
                Some(report) = reports.recv() => self.update(report).await,
                executed = running.next() => match executed {
                    Some(executed) => {
                        // Output from before the end of the call is reported before the end.
                        while let Ok(report) = reports.try_recv() {
                            self.update(report).await;
                        }
                        touched.retain(|(call_idx, _)| *call_idx != executed.call_idx);
                        self.finish(executed).await;
                    }
                    None => break,
                },
            }
        }
    }

    async fn one_by_one(&mut self, calls: &[Arc<ToolCall>]) {
        for (call_idx, call) in calls.iter().enumerate() {
            self.hooks.emit(AgentEvent::ToolStart { call: Arc::clone(call) }).await;
            match self.prepare(call_idx, call).await {
                Err(error) => self.finish_with_error(call_idx, call, &error).await,
                Ok(ready) => match self.reason_not_to_start() {
                    Some(reason) => self.finish_with_error(call_idx, call, &reason).await,
                    None => self.execute_alone(ready).await,
                },
            }
            if let Some(finished) = self.finished.last() {
                let message = Arc::clone(&finished.message);
                self.hooks.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
                self.hooks.emit(AgentEvent::MessageEnd(message)).await;
            }
        }
    }

    async fn execute_alone(&mut self, ready: Ready<'a>) {
        let (progress, mut reports) = mpsc::unbounded_channel();
        self.hooks.emit(AgentEvent::ToolRunning { call_id: ready.call.id.clone() }).await;
        let mut execution = self.execute(ready, progress);
        let executed = loop {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => self.update(report).await,
                executed = &mut execution => break executed,
            }
        };
        while let Ok(report) = reports.try_recv() {
            self.update(report).await;
        }
        self.finish(executed).await;
    }

    async fn refuse_all(&mut self, calls: &[Arc<ToolCall>], reason: &ToolError) {
        for (call_idx, call) in calls.iter().enumerate() {
            self.hooks.emit(AgentEvent::ToolStart { call: Arc::clone(call) }).await;
            self.finish_with_error(call_idx, call, reason).await;
        }
    }

    /// All checks before a call runs; the error becomes its result.
    async fn prepare(&mut self, call_idx: usize, call: &Arc<ToolCall>) -> Result<Ready<'a>, ToolError> {
        // After an abort neither the tool nor the arguments matter, and nobody is asked.
        if self.run.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if let Some(error) = &call.arguments_error {
            let name = &call.name;
            return Err(ToolError::new(format!("the arguments of {name} are not a JSON object: {error}")));
        }
        let tool = self.tools.get(&call.name).ok_or_else(|| tool_names::not_found(self.tools, &call.name))?;
        let check = |arguments: Value| -> Result<(Value, Touches), ToolError> {
            let arguments = schema::validate(&tool.spec().parameters, arguments).map_err(|problems| {
                ToolError::new(schema::describe(&call.name, &problems, &call.arguments))
            })?;
            let touches = tool.touches(&arguments, self.run.cwd);
            Ok((arguments, touches))
        };
        let (arguments, touches) = check(tool.prepare_arguments(call.arguments.clone()))?;
        if self.withdrawn {
            return Err(self.reason_not_to_start().unwrap_or_else(ToolError::aborted));
        }
        let checked = CheckedCall { call, arguments: &arguments, touches: &touches };
        let (arguments, touches) = match self.hooks.gate_tool(checked).await {
            Gate::Allow => (arguments, touches),
            Gate::Change { arguments } => check(arguments)?,
            Gate::Block { reason } => return Err(ToolError::new(reason)),
            Gate::Withdrawn => {
                self.withdrawn = true;
                return Err(self.reason_not_to_start().unwrap_or_else(ToolError::aborted));
            }
        };
        Ok(Ready { call_idx, call: Arc::clone(call), tool, arguments, touches })
    }

    fn execute(&self, ready: Ready<'a>, reports: mpsc::UnboundedSender<Report>) -> Execution<'a> {
        execute(self.run, self.cancel.clone(), self.hooks.environment(), ready, reports)
    }

    /// Why a call that is ready must not start.
    fn reason_not_to_start(&self) -> Option<ToolError> {
        if self.run.cancel.is_cancelled() {
            return Some(ToolError::aborted());
        }
        if self.cancel.is_cancelled() || self.run.queues.cuts_between_tools() {
            return Some(ToolError::new(SKIPPED_CALL));
        }
        None
    }

    /// Forwards a report, unless its call has ended: an abandoned thread may still send some.
    async fn update(&mut self, report: Report) {
        if self.finished.iter().all(|finished| finished.call_idx != report.call_idx) {
            let Report { call_id, partial, .. } = report;
            self.hooks.emit(AgentEvent::ToolUpdate { call_id, partial }).await;
        }
    }

    async fn finish(&mut self, executed: Executed) {
        let Executed { call_idx, call, result, duration_ms } = executed;
        let mut output = result.unwrap_or_else(|error| error_output(&error));
        self.hooks.settle_result(&call, &mut output).await;
        self.finish_with(call_idx, &call, output, Some(duration_ms)).await;
    }

    async fn finish_with_error(&mut self, call_idx: usize, call: &ToolCall, error: &ToolError) {
        self.finish_with(call_idx, call, error_output(error), None).await;
    }

    async fn finish_with(
        &mut self,
        call_idx: usize,
        call: &ToolCall,
        output: ToolOutput,
        duration_ms: Option<u64>,
    ) {
        let result = ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: output.content,
            details: output.details,
            is_error: output.is_error,
            duration_ms,
            timestamp: Millis(self.run.clock.now_ms()),
            extra: Extra::new(),
        };
        let result = Arc::new(result);
        let event = AgentEvent::ToolEnd { call_id: call.id.clone(), result: Arc::clone(&result) };
        self.hooks.emit(event).await;
        let message = Arc::new(Message::ToolResult(result));
        self.finished.push(Finished { call_idx, message, terminate: output.terminate });
    }
}

/// Removes the first call that conflicts neither with a running one nor with an earlier one
/// that waits: calls on one file run in the order in which the model wrote them.
fn take_startable<'a>(waiting: &mut VecDeque<Ready<'a>>, running: &[(usize, Touches)]) -> Option<Ready<'a>> {
    let is_startable = |at: &usize| {
        let earlier = waiting.iter().take(*at).map(|ready| &ready.touches);
        let mut others = running.iter().map(|(_, touches)| touches).chain(earlier);
        !others.any(|other| other.conflicts_with(&waiting[*at].touches))
    };
    let at = (0..waiting.len()).find(is_startable)?;
    waiting.remove(at)
}

/// Runs one call. Its reports stop counting when it ends.
fn execute<'a>(
    run: &'a Run<'_>,
    cancel: CancellationToken,
    environment: Environment,
    ready: Ready<'a>,
    reports: mpsc::UnboundedSender<Report>,
) -> Execution<'a> {
    Box::pin(async move {
        let Ready { call_idx, call, tool, arguments, .. } = ready;
        let call_id = call.id.clone();
        let progress = Progress::new(move |partial| {
            // Once the batch is over, nothing receives reports.
            drop(reports.send(Report { call_idx, call_id: call_id.clone(), partial: Arc::new(partial) }));
        });
        let started = run.clock.monotonic();
        let cx = ToolCx { call_id: &call.id, cwd: run.cwd, environment, cancel, progress };
        // A panic counts as a failure of the tool; the other calls continue.
        let running = AssertUnwindSafe(async { tool.run(arguments, cx).await }).catch_unwind();
        let result = running.await.unwrap_or_else(|panic| {
            Err(ToolError::new(format!("{} failed: {}", call.name, crash_error(&panic_text(&*panic)))))
        });
        let duration = run.clock.monotonic().saturating_sub(started);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Executed { call_idx, call, result, duration_ms }
    })
}

fn error_output(error: &ToolError) -> ToolOutput {
    ToolOutput { is_error: true, details: Some(Value::Object(Extra::new())), ..ToolOutput::text(&error.0) }
}

fn truncated_call() -> ToolError {
    ToolError::new(
        "This call was not executed: the answer hit the output token limit, so its arguments may be \
         truncated. Repeat the complete call.",
    )
}
