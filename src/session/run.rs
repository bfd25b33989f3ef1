//! A run of the agent loop for a session: it reports and changes nothing itself.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::{
    self, AgentEvent, CheckedCall, Environment, Gate, Hooks, NextRequest, Queues, Run, RunOutcome,
    ToolOutput, ToolRegistry, Touches,
};
use crate::ai::{
    self, ContentBlock, Credential, Extra, Image, Message, Millis, Model, Request, StreamEvent,
    StreamOptions, SystemContent, SystemMessage, SystemState, ThinkingLevel, ToolCall, ToolDeclaration,
    UserContent, UserMessage,
};
use crate::config::{LiveSettings, Settings};

use super::open;
use super::outbox::Outbox;
use super::project_context::ProjectContext;
use super::recovery::Again;
use super::resources::{self, PromptParts};
use super::selection::Selection;
use super::services::Services;

/// A report or request of the loop, which waits for each reply.
pub(super) enum Report {
    /// The loop waits until `taken` is answered, if present.
    Event { event: AgentEvent, taken: Option<oneshot::Sender<()>> },
    /// This request is sent now.
    Sending(Arc<Request>),
    /// Requests the changes for the next model call; `said` is the transcript's system state.
    NextRequest { said: SystemState, reply: oneshot::Sender<RequestChange> },
    /// Whether a call with validated arguments may run.
    Gate { call: Arc<ToolCall>, arguments: Value, touches: Touches, reply: oneshot::Sender<Gate> },
}

impl Report {
    fn event(event: AgentEvent) -> Self {
        Self::Event { event, taken: None }
    }
}

/// Changes for the next request of a loop.
pub(super) struct RequestChange {
    /// Set if a compaction replaced the conversation so far.
    pub(super) messages: Option<Vec<Arc<Message>>>,
    /// Set if the selection changed since the run began.
    pub(super) selected: Option<(Arc<Model>, StreamOptions)>,
    pub(super) tools: ToolRegistry,
    pub(super) system: Option<SystemMessage>,
    /// Ends the run instead of sending the request.
    pub(super) stop: bool,
}

/// A running loop. Dropping it cancels the loop; to keep partial results,
/// cancel it and read `reports` to their end.
pub(super) struct ActiveRun {
    pub(super) task: JoinHandle<RunOutcome>,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) cancel: CancellationToken,
    /// Without a session, nothing would store the loop's results.
    pub(super) _guard: DropGuard,
}

/// The inputs of a run.
pub(super) struct RunParts<'a> {
    pub(super) services: &'a Arc<Services>,
    pub(super) cwd: &'a Path,
    pub(super) project: &'a ProjectContext,
    pub(super) tools: &'a ToolRegistry,
    pub(super) queues: &'a Arc<Queues>,
    pub(super) session_id: &'a str,
    pub(super) selection: &'a Selection,
    pub(super) credential: Credential,
    /// The conversation so far.
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) settings: &'a LiveSettings,
    /// The snapshot from which the model's commands learn about their session.
    pub(super) outbox: Outbox,
    /// How this run differs from an ordinary one.
    pub(super) again: Again,
    /// Answers may be as long as the model allows, whatever the settings say.
    pub(super) is_limit_raised: bool,
}

/// Spawns a loop that begins with `prompts`, after a system message if the
/// prompt or the tools changed. The task ends with the run, or soon after
/// `cancel`.
pub(super) fn spawn(parts: RunParts<'_>, mut prompts: Vec<Message>) -> ActiveRun {
    let services = Arc::clone(parts.services);
    let said = ai::system_state(&parts.messages);
    if let Some(system) = system_delta(&services, parts.project, parts.tools, parts.cwd, &said) {
        prompts.insert(0, Message::from(system));
    }
    let thinking = if parts.again.thinking_off { ThinkingLevel::Off } else { parts.selection.thinking() };
    let settings = parts.settings.clone();
    let mut options =
        services.options(&settings.get().values, &parts.selection.model, thinking, parts.session_id);
    options.continue_from = parts.again.continue_from;
    if parts.is_limit_raised {
        options.max_tokens = None;
    }
    let request = Request {
        model: Arc::clone(&parts.selection.model),
        credential: parts.credential,
        messages: parts.messages,
        options,
    };
    let (sender, reports) = mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let run_cancel = cancel.clone();
    let queues = Arc::clone(parts.queues);
    let cwd = parts.cwd.to_owned();
    let tools = parts.tools.clone();
    let model = Arc::clone(&parts.selection.model);
    let mut hooks = RunHooks { reports: sender, settings, outbox: parts.outbox, model };
    let task = tokio::spawn(async move {
        let run = Run {
            provider: &*services.provider,
            tools: &tools,
            queues: &queues,
            request,
            prompts,
            cwd: &cwd,
            clock: services.clock.clone(),
            cancel: run_cancel,
        };
        agent::run(run, &mut hooks).await
    });
    let _guard = cancel.clone().drop_guard();
    ActiveRun { task, reports, cancel, _guard }
}

/// The changes of prompt and tools that the transcript does not contain yet.
pub(super) fn system_delta(
    services: &Services,
    project: &ProjectContext,
    tools: &ToolRegistry,
    cwd: &Path,
    said: &SystemState,
) -> Option<SystemMessage> {
    let (flags, files) = (&services.prompt, &project.prompt_files);
    let prompt = PromptParts {
        custom: flags.custom.as_deref().or(files.system.as_deref()),
        addendum: flags.addendum.as_deref().or(files.append.as_deref()),
        docs_command: flags.docs_command.as_deref(),
        context_files: &project.context_files,
        skills: &project.skills,
    };
    let wanted = resources::sections(&prompt, tools, cwd);
    let declarations: Vec<ToolDeclaration> = tools.iter().map(|tool| tool.spec().declaration()).collect();
    resources::delta(said, &wanted, &declarations, services.clock.now_ms())
}

/// The current system prompt and tools as one message, for a compaction that removes
/// the original messages.
pub(super) fn replayed_system(state: &SystemState, now_ms: u64) -> Option<SystemMessage> {
    let mut message = resources::delta(&SystemState::default(), &state.sections, &state.tools, now_ms)?;
    message.content = SystemContent::Text(state.contents.join("\n\n"));
    Some(message)
}

/// The user's message, with images that every model accepts and notes about changed images.
pub(super) async fn user_message(
    text: &str,
    images: Vec<Image>,
    timestamp: Millis,
    model: &Model,
    settings: &Settings,
) -> UserMessage {
    let mut blocks: Vec<ContentBlock> = images.into_iter().map(ContentBlock::Image).collect();
    let hints = ai::fit_for_storing(&mut blocks, model, settings.images_auto_resize).await;
    let text = if hints.is_empty() { text.to_owned() } else { format!("{text}\n\n{}", hints.join("\n")) };
    blocks.insert(0, ContentBlock::text(text));
    UserMessage { content: UserContent::Blocks(blocks), timestamp, extra: Extra::new() }
}

/// Names the model in the details of a result with an image that it cannot see. The image is
/// stored, because another model may see it; each request decides about its placeholder.
fn note_unseen_image(output: &mut ToolOutput, model: &Model) {
    if model.reads_images() || !output.content.iter().any(ContentBlock::is_image) {
        return;
    }
    let details = output.details.get_or_insert_with(|| Value::Object(Extra::new()));
    if let Some(details) = details.as_object_mut() {
        details.insert("imageUnsupportedByModel".to_owned(), Value::from(model.id.as_str()));
    }
}

struct RunHooks {
    reports: mpsc::UnboundedSender<Report>,
    settings: LiveSettings,
    outbox: Outbox,
    /// The model of the last request.
    model: Arc<Model>,
}

impl Hooks for RunHooks {
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()> {
        // The loop waits only for events that are stored.
        if !matches!(event, AgentEvent::MessageEnd(_) | AgentEvent::ToolEnd { .. }) {
            drop(self.reports.send(Report::event(event)));
            return std::future::ready(()).boxed();
        }
        let (taken, done) = oneshot::channel();
        drop(self.reports.send(Report::Event { event, taken: Some(taken) }));
        async move {
            // A closed channel means the session has ended; nothing to wait for.
            drop(done.await);
        }
        .boxed()
    }

    fn update(&mut self, event: &StreamEvent) {
        if self.outbox.wants_deltas() {
            drop(self.reports.send(Report::event(AgentEvent::MessageUpdate(event.clone()))));
        }
    }

    fn on_request(&mut self, request: &Arc<Request>) {
        drop(self.reports.send(Report::Sending(Arc::clone(request))));
    }

    fn prepare_request<'a>(&'a mut self, next: &'a mut NextRequest) -> BoxFuture<'a, ()> {
        let request = &mut next.request;
        request.options.continue_from = None;
        // A token may expire during a run, and the user may store another key.
        request.credential = Credential::None;
        let (reply, change) = oneshot::channel();
        let said = ai::system_state(&request.messages);
        drop(self.reports.send(Report::NextRequest { said, reply }));
        async move {
            // The session has ended and cancels this run.
            let Ok(change) = change.await else { return };
            let RequestChange { messages, selected, tools, system, stop } = change;
            next.stop = stop;
            if let Some(messages) = messages {
                next.request.messages = messages;
            }
            if let Some((model, options)) = selected {
                self.model = Arc::clone(&model);
                next.request.model = model;
                next.request.options = options;
            }
            next.tools = tools;
            next.system = system;
        }
        .boxed()
    }

    fn settle_result<'a>(&'a mut self, call: &'a ToolCall, output: &'a mut ToolOutput) -> BoxFuture<'a, ()> {
        async {
            if call.name == "read" {
                note_unseen_image(output, &self.model);
            }
            let auto_resize = self.settings.get().values.images_auto_resize;
            let hints = ai::fit_for_storing(&mut output.content, &self.model, auto_resize).await;
            output.content.extend(hints.into_iter().map(ContentBlock::text));
        }
        .boxed()
    }

    fn environment(&self) -> Environment {
        open::session_vars(&self.outbox.snapshot()).variables()
    }

    fn gate_tool<'a>(&'a mut self, call: CheckedCall<'a>) -> BoxFuture<'a, Gate> {
        let (reply, gate) = oneshot::channel();
        let CheckedCall { call, arguments, touches } = call;
        let (call, arguments, touches) = (Arc::clone(call), arguments.clone(), touches.clone());
        drop(self.reports.send(Report::Gate { call, arguments, touches, reply }));
        async move { gate.await.unwrap_or(Gate::Withdrawn) }.boxed()
    }
}
