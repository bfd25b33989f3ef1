//! Runs the agent loop against a scripted provider and small tools.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pi::agent::{
    AgentEvent, CheckedCall, Concurrency, Gate, Hooks, NextRequest, Progress, QueueMode, Queued, Queues, Run,
    RunOutcome, SteeringDelivery, Tool, ToolCx, ToolError, ToolOutput, ToolRegistry, ToolSpec, Touches, run,
};
use pi::ai::{
    self, Credential, FakeAnswer, FakeProvider, Message, Millis, Model, Request, StopReason, StreamEvent,
    StreamOptions, UserMessage,
};
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent_order::AgentOrder;

/// A test's reaction to an event.
type OnEvent = Box<dyn FnMut(&AgentEvent) + Send>;

type Prepare = Box<dyn FnMut(&mut NextRequest) + Send>;
type GateCall = Box<dyn FnMut(CheckedCall<'_>) -> Gate + Send>;

/// One loop with everything it depends on.
pub(crate) struct AgentBench {
    pub(crate) provider: FakeProvider,
    pub(crate) tools: ToolRegistry,
    pub(crate) queues: Arc<Queues>,
    pub(crate) cancel: CancellationToken,
    pub(crate) clock: Clock,
    /// Names of tools whose calls are blocked.
    pub(crate) blocked: Vec<&'static str>,
    /// Changes each request after the first.
    pub(crate) prepare: Option<Prepare>,
    /// Decides about calls, in place of `blocked`.
    pub(crate) gate: Option<GateCall>,
    on_event: Option<OnEvent>,
}

/// The outcome of a run.
pub(crate) struct Ran {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) outcome: RunOutcome,
}

impl AgentBench {
    pub(crate) fn new(answers: impl IntoIterator<Item = FakeAnswer>) -> Self {
        Self {
            provider: FakeProvider::new(answers),
            tools: ToolRegistry::default(),
            queues: Arc::default(),
            cancel: CancellationToken::new(),
            clock: Clock::manual(1_000),
            blocked: Vec::new(),
            prepare: None,
            gate: None,
            on_event: None,
        }
    }

    pub(crate) fn tools(mut self, tools: impl IntoIterator<Item = TestTool>) -> Self {
        let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>);
        self.tools = ToolRegistry::new(tools.collect());
        self
    }

    pub(crate) fn delivery(self, delivery: SteeringDelivery) -> Self {
        self.queues.configure(delivery, QueueMode::default(), QueueMode::default());
        self
    }

    pub(crate) fn on_event(mut self, on_event: impl FnMut(&AgentEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(on_event));
        self
    }

    /// Runs to the end. Fails when the events are out of order or the run hangs.
    pub(crate) async fn run(&mut self, prompt: &str) -> Ran {
        self.run_with(vec![Message::User(user(prompt))], Vec::new()).await
    }

    pub(crate) async fn run_with(&mut self, prompts: Vec<Message>, messages: Vec<Arc<Message>>) -> Ran {
        let mut hooks = Recorder {
            events: Arc::default(),
            order: AgentOrder::default(),
            on_event: self.on_event.take(),
            blocked: self.blocked.clone(),
            prepare: self.prepare.take(),
            gate: self.gate.take(),
        };
        let events = Arc::clone(&hooks.events);
        let parts = Run {
            provider: &self.provider,
            tools: &self.tools,
            queues: &self.queues,
            request: request(messages),
            prompts,
            cwd: Path::new("/"),
            clock: self.clock.clone(),
            cancel: self.cancel.clone(),
        };
        let outcome = run(parts, &mut hooks).await;
        assert!(hooks.order.is_complete(), "the run stopped in the middle of its events");
        let events = events.lock().unwrap().clone();
        Ran { events, outcome }
    }
}

impl Ran {
    /// The events as lines, pieces of answers left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let shown = self.events.iter().filter(|event| !matches!(event, AgentEvent::MessageUpdate(_)));
        shown.map(line).collect()
    }

    /// The messages the run added, one line each.
    pub(crate) fn messages(&self) -> Vec<String> {
        let ends = self.events.iter().filter_map(|event| match event {
            AgentEvent::MessageEnd(message) => Some(message_line(message)),
            _ => None,
        });
        ends.collect()
    }
}

/// One event as a line.
pub(crate) fn line(event: &AgentEvent) -> String {
    match event {
        AgentEvent::AgentStart => "agent start".to_owned(),
        AgentEvent::TurnStart => "turn start".to_owned(),
        AgentEvent::MessageStart(message) => format!("start {}", message_line(message)),
        AgentEvent::AssistantStart(_) => "start answer".to_owned(),
        AgentEvent::MessageUpdate(update) => format!("update {update:?}"),
        AgentEvent::MessageEnd(message) => format!("end {}", message_line(message)),
        AgentEvent::ToolStart { call } => format!("tool start {}", call.id),
        AgentEvent::ToolRunning { call_id } => format!("tool runs {call_id}"),
        AgentEvent::ToolUpdate { call_id, partial } => {
            format!("tool update {call_id}: {}", ai::join_text(&partial.content))
        }
        AgentEvent::ToolEnd { call_id, result } => {
            let failed = if result.is_error { " failed" } else { "" };
            format!("tool end {call_id}{failed}: {}", ai::join_text(&result.content))
        }
        AgentEvent::TurnEnd { results, .. } => format!("turn end with {}", results.len()),
        AgentEvent::AgentEnd { messages } => format!("agent end with {}", messages.len()),
    }
}

/// One message as a line: role, text, calls, how it ended.
pub(crate) fn message_line(message: &Message) -> String {
    match message {
        Message::System(_) => "system".to_owned(),
        Message::User(user) => format!("user {}", user.content.text()),
        Message::Assistant(answer) => {
            let text: String = answer.texts().collect();
            let calls: String = answer.tool_calls().map(|call| format!("[{}]", call.id)).collect();
            let end = match answer.stop_reason {
                StopReason::Stop | StopReason::ToolUse => String::new(),
                StopReason::Aborted => " (aborted)".to_owned(),
                StopReason::Error => " (error)".to_owned(),
                other => format!(" ({other:?})"),
            };
            format!("answer {text}{calls}{end}")
        }
        Message::ToolResult(result) => {
            let failed = if result.is_error { " failed" } else { "" };
            format!("result {}{failed}: {}", result.tool_call_id, ai::join_text(&result.content))
        }
    }
}

pub(crate) fn user(text: &str) -> UserMessage {
    UserMessage::new(text, Vec::new(), Millis(1))
}

pub(crate) fn queued(text: &str) -> Queued {
    Queued { text: text.to_owned(), pastes: Vec::new(), message: Arc::new(Message::User(user(text))) }
}

fn request(messages: Vec<Arc<Message>>) -> Request {
    let model: Model =
        serde_json::from_value(json!({"id": "m", "api": "openai-completions", "provider": "acme"})).unwrap();
    Request {
        model: Arc::new(model),
        credential: Credential::None,
        messages,
        options: StreamOptions::default(),
    }
}

/// Hooks that write down every event and check their order.
struct Recorder {
    events: Arc<Mutex<Vec<AgentEvent>>>,
    order: AgentOrder,
    on_event: Option<OnEvent>,
    blocked: Vec<&'static str>,
    prepare: Option<Prepare>,
    gate: Option<GateCall>,
}

impl Recorder {
    fn take(&mut self, event: AgentEvent) {
        self.order.accept(&event).unwrap();
        if let Some(on_event) = &mut self.on_event {
            on_event(&event);
        }
        self.events.lock().unwrap().push(event);
    }
}

impl Hooks for Recorder {
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()> {
        self.take(event);
        // A point where other tasks run, as there is one in a session.
        tokio::task::yield_now().boxed()
    }

    fn update(&mut self, event: &StreamEvent) {
        self.take(AgentEvent::MessageUpdate(event.clone()));
    }

    fn prepare_request<'a>(&'a mut self, next: &'a mut NextRequest) -> BoxFuture<'a, ()> {
        if let Some(prepare) = &mut self.prepare {
            prepare(next);
        }
        std::future::ready(()).boxed()
    }

    fn gate_tool<'a>(&'a mut self, call: CheckedCall<'a>) -> BoxFuture<'a, Gate> {
        let name = call.call.name.as_str();
        let gate = if let Some(gate) = &mut self.gate {
            gate(call)
        } else if self.blocked.contains(&name) {
            Gate::Block { reason: format!("{name} is not allowed here") }
        } else {
            Gate::Allow
        };
        std::future::ready(gate).boxed()
    }
}

/// The context of a call of a [`TestTool`].
pub(crate) struct CallCx {
    pub(crate) id: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Progress,
}

type Behaviour = dyn Fn(Value, CallCx) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool whose behaviour the test defines.
pub(crate) struct TestTool {
    spec: ToolSpec,
    concurrency: Concurrency,
    touches: Touches,
    behaviour: Arc<Behaviour>,
    when_listed: Option<Box<dyn Fn() + Send + Sync>>,
}

impl TestTool {
    pub(crate) fn new<F>(name: &str, behaviour: impl Fn(Value, CallCx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let parameters = json!({"type": "object"});
        let spec = ToolSpec {
            name: name.to_owned(),
            description: name.to_owned(),
            snippet: Some(name.to_owned()),
            guidelines: Vec::new(),
            parameters,
            constrained_sampling: None,
        };
        let behaviour = Arc::new(move |arguments, cx| behaviour(arguments, cx).boxed());
        let touches = Touches::undeclared();
        Self { spec, concurrency: Concurrency::Parallel, touches, behaviour, when_listed: None }
    }

    /// A tool `say` that answers with its argument `text`.
    pub(crate) fn say() -> Self {
        Self::new("say", |arguments, _| async move {
            Ok(ToolOutput::text(arguments["text"].as_str().unwrap_or_default()))
        })
    }

    /// A tool `wait` whose calls stand at the gate that the argument `gate`
    /// counts to, from 0, until it opens or they are cancelled.
    pub(crate) fn wait(gates: &[ai::TestBarrier]) -> Self {
        let gates = gates.to_vec();
        Self::new("wait", move |arguments, cx| {
            let at = arguments["gate"].as_u64().unwrap_or_default();
            let gate = gates[usize::try_from(at).unwrap()].clone();
            async move {
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => Err(ToolError::new("Command aborted")),
                    () = gate.pass() => Ok(ToolOutput::text("waited")),
                }
            }
        })
    }

    pub(crate) fn parameters(mut self, parameters: Value) -> Self {
        self.spec.parameters = parameters;
        self
    }

    /// What every call declares to access, besides its argument `writes`.
    pub(crate) fn touching(mut self, touches: Touches) -> Self {
        self.touches = touches;
        self
    }

    /// Called whenever somebody asks what the tool is.
    pub(crate) fn when_listed(mut self, called: impl Fn() + Send + Sync + 'static) -> Self {
        self.when_listed = Some(Box::new(called));
        self
    }

    pub(crate) fn sequential(mut self) -> Self {
        self.concurrency = Concurrency::Sequential;
        self
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        if let Some(called) = &self.when_listed {
            called();
        }
        &self.spec
    }

    fn touches(&self, arguments: &Value, cwd: &Path) -> Touches {
        let mut touches = self.touches.clone();
        touches.writes.extend(arguments["writes"].as_str().map(|path| cwd.join(path)));
        touches
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let cx = CallCx { id: cx.call_id.to_owned(), cancel: cx.cancel, progress: cx.progress };
        (self.behaviour)(arguments, cx)
    }
}
