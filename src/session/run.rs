//! A run of the agent loop on behalf of a session: it reports, it changes nothing.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::{
    self, AgentEvent, Environment, Gate, Hooks, Queues, Run, RunOutcome, ToolOutput, ToolRegistry,
};
use crate::ai::{
    self, ContentBlock, Credential, Extra, Image, Message, Millis, Model, Request, StreamEvent,
    SystemMessage, ThinkingLevel, ToolCall, ToolDeclaration, UserContent, UserMessage,
};
use crate::config::Settings;

use super::open;
use super::project_context::ProjectContext;
use super::recovery::Again;
use super::resources::{self, PromptParts};
use super::selection::Selection;
use super::services::Services;
use super::state::SessionState;

/// An event of the loop; the loop waits until `taken` is answered, if it is set.
pub(super) struct Report {
    pub(super) event: AgentEvent,
    pub(super) taken: Option<oneshot::Sender<()>>,
}

/// A running loop. Dropping it cancels the loop; to keep what there is of it,
/// cancel it and read `reports` to their end.
pub(super) struct ActiveRun {
    pub(super) task: JoinHandle<RunOutcome>,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) cancel: CancellationToken,
    /// Without a session nobody would write down what the loop does.
    pub(super) _guard: DropGuard,
}

/// What the user selected while a run was going on; its next request uses it.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveSelection {
    pub(super) selected: Option<(Arc<Model>, ThinkingLevel)>,
}

/// What a run is started from.
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
    pub(super) live: watch::Receiver<LiveSelection>,
    /// Where commands of the model read about their session.
    pub(super) state: watch::Receiver<Arc<SessionState>>,
    /// How this run differs from an ordinary one.
    pub(super) again: Again,
}

/// Spawns a loop that begins with `prompts`, after a system message if the
/// prompt or the tools changed. The task ends when the run does, or soon after
/// `cancel`.
pub(super) fn spawn(parts: RunParts<'_>, mut prompts: Vec<Message>) -> ActiveRun {
    let services = Arc::clone(parts.services);
    if let Some(system) = system_delta(&parts) {
        prompts.insert(0, Message::System(system));
    }
    let thinking = if parts.again.thinking_off { ThinkingLevel::Off } else { parts.selection.thinking() };
    let mut options = services.options(&parts.selection.model, thinking, parts.session_id);
    options.continue_from = parts.again.continue_from;
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
    let mut hooks = RunHooks {
        reports: sender,
        services: Arc::clone(&services),
        live: parts.live,
        state: parts.state,
        model,
    };
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

/// What the transcript does not say yet about prompt and tools.
fn system_delta(parts: &RunParts<'_>) -> Option<SystemMessage> {
    let services = parts.services;
    let prompt = PromptParts {
        custom: services.prompt.custom.as_deref(),
        addendum: services.prompt.addendum.as_deref(),
        context_files: &parts.project.context_files,
        skills: &parts.project.skills,
    };
    let wanted = resources::sections(&prompt, parts.tools, parts.cwd);
    let tools: Vec<ToolDeclaration> = parts.tools.iter().map(|tool| tool.spec().declaration()).collect();
    let said = ai::system_state(&parts.messages);
    resources::delta(&said, &wanted, &tools, services.clock.now_ms())
}

/// What the user says, with pictures every model takes and notes on what became of them.
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

struct RunHooks {
    reports: mpsc::UnboundedSender<Report>,
    services: Arc<Services>,
    live: watch::Receiver<LiveSelection>,
    state: watch::Receiver<Arc<SessionState>>,
    /// The one that was asked last.
    model: Arc<Model>,
}

impl Hooks for RunHooks {
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()> {
        // The loop waits only for what is stored.
        if !matches!(event, AgentEvent::MessageEnd(_) | AgentEvent::ToolEnd { .. }) {
            drop(self.reports.send(Report { event, taken: None }));
            return std::future::ready(()).boxed();
        }
        let (taken, done) = oneshot::channel();
        drop(self.reports.send(Report { event, taken: Some(taken) }));
        async move {
            // A closed channel means the session has ended; nothing to wait for.
            drop(done.await);
        }
        .boxed()
    }

    fn update(&mut self, event: &StreamEvent) {
        if self.services.wants_deltas {
            let event = AgentEvent::MessageUpdate(event.clone());
            drop(self.reports.send(Report { event, taken: None }));
        }
    }

    fn prepare_request<'a>(&'a mut self, request: &'a mut Request) -> BoxFuture<'a, ()> {
        request.options.continue_from = None;
        // A run may outlast a token, and the user may store another key meanwhile.
        request.credential = Credential::None;
        if let Some((model, thinking)) = &self.live.borrow().selected {
            request.model = Arc::clone(model);
            self.model = Arc::clone(model);
            let session_id = request.options.session_id.take().unwrap_or_default();
            request.options = self.services.options(model, *thinking, &session_id);
        }
        std::future::ready(()).boxed()
    }

    fn settle_result<'a>(&'a mut self, output: &'a mut ToolOutput) -> BoxFuture<'a, ()> {
        async {
            let auto_resize = self.services.settings.images_auto_resize;
            let hints = ai::fit_for_storing(&mut output.content, &self.model, auto_resize).await;
            output.content.extend(hints.into_iter().map(ContentBlock::text));
        }
        .boxed()
    }

    fn environment(&self) -> Environment {
        open::session_vars(&self.state.borrow()).variables()
    }

    fn gate_tool<'a>(&'a mut self, _call: &'a ToolCall) -> BoxFuture<'a, Gate> {
        std::future::ready(Gate::Allow).boxed()
    }
}
