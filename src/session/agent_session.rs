//! The task that owns one conversation: takes commands, runs the agent, stores
//! what happens, tells its client.
//!
//! It dispatches; policies are elsewhere (`recovery`, `selection`,
//! `projection`). Journal first: an event that shows something as finished goes
//! out after it was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::agent::{AgentEvent, Pushed, QueueKind, Queued, Queues, RunOutcome, SteeringDelivery};
use crate::ai::{self, AssistantMessage, Credential, Message, Model, StopReason, ThinkingLevel, UserMessage};
use crate::config::SettingsFile;

use super::cache_watch::{CacheWatch, Miss};
use super::command::{Reply, Scope, SessionCommand, TakenQueue, WhenBusy};
use super::event::{NoticeLevel, Opened, SessionEvent};
use super::handle::{Envelope, SessionError, SessionEvents, SessionHandle};
use super::open::{self, OpenSession, OpenedSession};
use super::projection::{self, Selected};
use super::queue_file::QueueFile;
use super::recovery::{self, Next, Recovery};
use super::repair::{self, Repair};
use super::resources::ContextFile;
use super::run::{self, ActiveRun, LiveSelection, Report, RunParts};
use super::selection::{self, Selection, Wishes};
use super::services::Services;
use super::state::{ContextUsage, Phase, QueueView, SessionState};
use super::store::{
    ContextEdit, EntryBody, EntryId, JournalError, ModelChange, OpenError, SessionInfo, SessionMessage,
    SessionStore, ThinkingLevelChange, clean_name,
};
use super::urgent::is_urgent;
use super::user_bash::{UserBash, UserBashEvent};

/// How long a written line may wait to be made durable against power loss.
const SYNC_DELAY: Duration = Duration::from_millis(100);
/// Entries of a session that are shown when it is opened.
const TAIL_ENTRIES: usize = 400;
/// Reports handled before commands get their turn.
const REPORTS_PER_TURN: usize = 256;

/// Starts the task of a session. It ends when every handle is gone or after
/// `Shutdown`. A large file is shown by its end at once and read by the task;
/// commands wait for that.
///
/// # Errors
/// When the session cannot be opened.
pub async fn start(
    services: Arc<Services>,
    cwd: PathBuf,
    open: OpenSession,
) -> Result<(SessionHandle, SessionEvents), OpenError> {
    let (command_sender, commands) = mpsc::unbounded_channel();
    let (events, event_receiver) = mpsc::unbounded_channel();
    if let Some(preview) = open::preview(&open)? {
        let (selection, _) = select(&services, &Selected::default());
        let state = SessionState::of(&selection.model, &preview.cwd);
        let state = watch::Sender::new(Arc::new(SessionState { id: preview.id, ..state }));
        let handle = SessionHandle::new(command_sender, state.subscribe());
        let opened = Opened { tail: preview.tail, n_earlier: None };
        drop(events.send(SessionEvent::Opened(Arc::new(opened))));
        tokio::spawn(async move {
            match open::open(&services, &cwd, open).await {
                Ok(opened) => AgentSession::new(services, opened, events, state).main_loop(commands).await,
                Err(error) => {
                    let text = error.to_string();
                    drop(events.send(SessionEvent::Notice { level: NoticeLevel::Error, text }));
                }
            }
        });
        return Ok((handle, event_receiver));
    }
    let opened = open::open(&services, &cwd, open).await?;
    let (selection, _) = select(&services, &Selected::default());
    let state = watch::Sender::new(Arc::new(SessionState::of(&selection.model, &opened.cwd)));
    let handle = SessionHandle::new(command_sender, state.subscribe());
    let session = AgentSession::new(services, opened, events, state);
    tokio::spawn(session.main_loop(commands));
    Ok((handle, event_receiver))
}

fn select(services: &Services, selected: &Selected) -> (Selection, Option<String>) {
    selection::initial(&services.wishes, selected, &services.catalog.get(), &|provider| {
        services.is_usable(provider)
    })
}

/// Owns one conversation; the only task that may change it.
struct AgentSession {
    services: Arc<Services>,
    cwd: PathBuf,
    store: SessionStore,
    context_files: Vec<ContextFile>,
    selection: Selection,
    /// As the process was started, but with the scope of this session.
    wishes: Wishes,
    recovery: Recovery,
    queues: Arc<Queues>,
    queue_file: QueueFile,
    activity: Activity,
    bash: UserBash,
    /// Entries that must not come between a tool call and its result.
    held: Vec<EntryBody>,
    /// Entry of the latest answer of the current run.
    cache: CacheWatch,
    last_answer: Option<EntryId>,
    context: ContextUsage,
    /// What the next request of a running loop uses.
    live: watch::Sender<LiveSelection>,
    events: mpsc::UnboundedSender<SessionEvent>,
    state: watch::Sender<Arc<SessionState>>,
    sync_at: Option<Instant>,
    /// Entries could not be written; the user knows.
    unsaved: bool,
}

/// What the session is doing, with what it takes to stop it.
enum Activity {
    Idle,
    Running(ActiveRun),
    Retrying { at: Instant, error: String },
}

/// What wakes the task.
enum Input {
    Command(Option<Envelope>),
    Report(Report),
    RunEnded,
    Bash(UserBashEvent),
    RetryNow,
    Sync,
}

impl AgentSession {
    /// Takes an opened session over and tells of it.
    fn new(
        services: Arc<Services>,
        opened: OpenedSession,
        events: mpsc::UnboundedSender<SessionEvent>,
        state: watch::Sender<Arc<SessionState>>,
    ) -> Self {
        let (selection, notice) = select(&services, &opened.store_selected);
        let queues = Arc::new(Queues::default());
        let (steering_mode, follow_up_mode) = services.queue_modes();
        queues.configure(services.steering_delivery(), steering_mode, follow_up_mode);
        let mut session = Self {
            wishes: services.wishes.clone(),
            services,
            cwd: opened.cwd,
            store: opened.store,
            context_files: opened.context_files,
            selection,
            recovery: Recovery::default(),
            queues,
            queue_file: opened.queue_file,
            activity: Activity::Idle,
            bash: UserBash::default(),
            held: Vec::new(),
            cache: CacheWatch::default(),
            last_answer: None,
            context: ContextUsage::default(),
            live: watch::Sender::new(LiveSelection::default()),
            events,
            state,
            sync_at: None,
            unsaved: false,
        };
        session.announce_open(notice);
        session
    }

    async fn main_loop(mut self, mut commands: mpsc::UnboundedReceiver<Envelope>) {
        loop {
            match self.next_input(&mut commands).await {
                Input::Command(None) => break,
                Input::Command(Some(Envelope { command: SessionCommand::Shutdown, reply })) => {
                    self.stop().await;
                    answer(reply, self.flush().map(|()| Reply::Done));
                    break;
                }
                Input::Command(Some(Envelope { command, reply })) => {
                    let result = self.handle(command).await;
                    if let (Err(error), None) = (&result, &reply) {
                        self.notice(NoticeLevel::Error, error.to_string());
                    }
                    answer(reply, result);
                }
                Input::Report(report) => self.take_reports(report),
                Input::RunEnded => self.run_ended().await,
                Input::Bash(event) => self.take_bash(event),
                Input::RetryNow => self.retry_now().await,
                Input::Sync => self.sync_later(),
            }
        }
        self.stop().await;
        // Whoever sent `Shutdown` knows; otherwise nobody is left to be told.
        drop(self.flush());
    }

    async fn next_input(&mut self, commands: &mut mpsc::UnboundedReceiver<Envelope>) -> Input {
        let sync_at = self.sync_at;
        let (reports, retry_at) = match &mut self.activity {
            Activity::Idle => (None, None),
            Activity::Running(run) => (Some(&mut run.reports), None),
            Activity::Retrying { at, .. } => (None, Some(*at)),
        };
        tokio::select! {
            biased;
            command = commands.recv() => Input::Command(command),
            report = recv(reports) => report.map_or(Input::RunEnded, Input::Report),
            event = self.bash.next_event() => Input::Bash(event),
            () = until(retry_at) => Input::RetryNow,
            () = until(sync_at) => Input::Sync,
        }
    }

    async fn handle(&mut self, command: SessionCommand) -> Result<Reply, SessionError> {
        match command {
            SessionCommand::Prompt { text, images, when_busy } => {
                if text.trim().is_empty() && images.is_empty() {
                    return Err(SessionError::Refused("there is nothing to send".to_owned()));
                }
                let now = ai::Millis(self.services.clock.now_ms());
                let message = run::user_message(&text, images, now, &self.services.settings).await;
                self.prompt(text, message, when_busy).await
            }
            SessionCommand::DeliverNow => {
                if self.queues.deliver_now() {
                    self.stop_waiting();
                }
                Ok(Reply::Done)
            }
            SessionCommand::TakeQueue => Ok(self.take_queue()),
            SessionCommand::TakeQueued { slot } => {
                let kind = slot.kind;
                let texts = self.queues.take_one(&slot).map(|queued| queued.text).into_iter().collect();
                self.queue_changed();
                Ok(Reply::Queue(match kind {
                    QueueKind::Steering => TakenQueue { steering: texts, ..TakenQueue::default() },
                    QueueKind::FollowUp => TakenQueue { follow_up: texts, ..TakenQueue::default() },
                }))
            }
            SessionCommand::MoveQueued { slot, kind, index } => {
                self.queues.move_one(&slot, kind, index);
                self.queue_changed();
                Ok(Reply::Done)
            }
            SessionCommand::TakeLeftOver => {
                let left_over = self.queue_file.take_left_over();
                self.save_queue();
                Ok(Reply::Queue(left_over))
            }
            SessionCommand::Abort => {
                self.abort();
                Ok(Reply::Done)
            }
            SessionCommand::SetModel { reference, scope } => self.set_model(&reference, scope).await,
            SessionCommand::SetThinking { level, scope } => self.set_thinking(level, scope).await,
            SessionCommand::SetScope { patterns, scope } => self.set_scope(patterns, scope).await,
            SessionCommand::ModelsChanged => self.models_changed().await,
            SessionCommand::CycleModel { forward } => self.cycle_model(forward).await,
            SessionCommand::CycleThinking => self.cycle_thinking().await,
            SessionCommand::RunBash { command, exclude_from_context } => {
                self.run_bash(command, exclude_from_context)
            }
            SessionCommand::SetName { name } => {
                let name = clean_name(&name).unwrap_or_default();
                self.append(EntryBody::SessionInfo(SessionInfo { name, extra: ai::Extra::new() }));
                self.selection_changed();
                Ok(Reply::Done)
            }
            SessionCommand::New => self.switch(OpenSession::New).await,
            SessionCommand::Open { path } => self.switch(OpenSession::File(path)).await,
            SessionCommand::Shutdown => Ok(Reply::Done),
        }
    }

    // Prompts and runs.

    async fn prompt(
        &mut self,
        text: String,
        message: UserMessage,
        when_busy: WhenBusy,
    ) -> Result<Reply, SessionError> {
        if let Some(holder) = self.store.locked_by() {
            let holder = holder.to_owned();
            return Err(SessionError::Refused(JournalError::Locked { holder }.to_string()));
        }
        if matches!(self.activity, Activity::Idle) {
            self.start_run(vec![Message::User(message)]).await?;
            return Ok(Reply::Started);
        }
        let now_ms = self.services.clock.now_ms();
        let urgent = is_urgent(&text, &self.services.settings.urgent_words);
        let queued = Queued { text, message: Arc::new(Message::User(message)) };
        let interrupts = matches!(when_busy, WhenBusy::Now)
            || (matches!(when_busy, WhenBusy::Steer)
                && (urgent || self.queues.delivery() == SteeringDelivery::Now));
        let pushed = match when_busy {
            WhenBusy::Refuse => {
                return Err(SessionError::Refused(
                    "the agent is still working; press Escape to stop it".to_owned(),
                ));
            }
            WhenBusy::Now => self.queues.push_now(queued, now_ms),
            WhenBusy::Steer if urgent => self.queues.push_now(queued, now_ms),
            WhenBusy::Steer => self.queues.push(QueueKind::Steering, queued, now_ms),
            WhenBusy::FollowUp => self.queues.push(QueueKind::FollowUp, queued, now_ms),
        };
        match pushed {
            Pushed::Duplicate => {
                self.notice(NoticeLevel::Info, "the same message was queued moments ago; dropped".to_owned());
                Ok(Reply::Duplicate)
            }
            Pushed::Queued => {
                if interrupts {
                    self.stop_waiting();
                }
                self.queue_changed();
                Ok(Reply::Queued)
            }
        }
    }

    /// Starts a run with `prompts`; none repeats the last request.
    async fn start_run(&mut self, prompts: Vec<Message>) -> Result<(), SessionError> {
        let credential = self.credential(&self.selection.model).await?;
        self.start_run_with(credential, prompts);
        Ok(())
    }

    fn start_run_with(&mut self, credential: Credential, prompts: Vec<Message>) {
        self.record_selection();
        self.live.send_replace(LiveSelection::default());
        let messages = projection::messages(&self.store.context_branch());
        self.cache.catch_up(&messages);
        if !prompts.is_empty() {
            self.recovery.prompted();
        }
        let parts = RunParts {
            services: &self.services,
            cwd: &self.cwd,
            context_files: &self.context_files,
            queues: &self.queues,
            session_id: &self.store.header().id.clone(),
            selection: &self.selection,
            credential,
            messages,
            live: self.live.subscribe(),
            again: self.recovery.again(),
        };
        self.activity = Activity::Running(run::spawn(parts, prompts));
        self.last_answer = None;
        self.publish();
    }

    async fn credential(&self, model: &Arc<Model>) -> Result<Credential, SessionError> {
        let found = open::credential(&self.services, model).await;
        found.map_err(|error| SessionError::Refused(error.to_string()))
    }

    /// Handles a report and those that wait behind it.
    fn take_reports(&mut self, first: Report) {
        self.take_report(first);
        for _ in 0..REPORTS_PER_TURN {
            let Activity::Running(run) = &mut self.activity else { return };
            match run.reports.try_recv() {
                Ok(report) => self.take_report(report),
                Err(_) => return,
            }
        }
    }

    fn take_report(&mut self, report: Report) {
        let Report { event, taken } = report;
        match &event {
            AgentEvent::MessageEnd(message) => self.message_ended(message),
            AgentEvent::MessageStart(message) if matches!(**message, Message::User(_)) => {
                // The borrow must end before `publish`, which takes the same lock to write.
                let changed = self.state.borrow().queue != queue_view(&self.queues);
                if changed {
                    self.publish();
                    self.send(SessionEvent::QueueChanged);
                }
            }
            _ => {}
        }
        if let Some(taken) = taken {
            // The loop may be gone already; then it does not wait either.
            let _gone = taken.send(());
        }
        self.send(SessionEvent::Agent(event));
    }

    fn message_ended(&mut self, message: &Arc<Message>) {
        let entry_id = self.append(EntryBody::message(Arc::clone(message)));
        if let Message::Assistant(answer) = &**message {
            self.last_answer = Some(entry_id);
            self.context.note(answer);
            self.watch_cache(answer);
            if !answer.is_failed() {
                let attempt = self.recovery.answered();
                if attempt > 0 {
                    self.send(SessionEvent::RetryEnded { success: true, attempt, final_error: None });
                }
            }
        }
        if let Message::System(_) = &**message {
            self.cache.changed("system prompt or tools changed");
        }
        if let Message::User(_) = &**message {
            // Delivered, and in the session from here on.
            self.save_queue();
        }
        self.publish();
    }

    fn watch_cache(&mut self, answer: &AssistantMessage) {
        let settings = &self.services.settings;
        let shown = settings.show_cache_miss_notices;
        if let Some(miss) = self.cache.answered(answer, settings.sampling.long_cache)
            && shown
        {
            let Miss { tokens, reason } = miss;
            let text = format!("Cache miss: {tokens} tokens of the prompt were paid for again; {reason}.");
            self.notice(NoticeLevel::Info, text);
        }
    }

    async fn run_ended(&mut self) {
        let Activity::Running(run) = std::mem::replace(&mut self.activity, Activity::Idle) else { return };
        let outcome = run.task.await.unwrap_or_else(|error| {
            self.notice(NoticeLevel::Error, format!("the run ended unexpectedly: {error}"));
            RunOutcome { last: None, aborted: true }
        });
        for body in std::mem::take(&mut self.held) {
            self.append(body);
        }
        // The abort may have come when the loop was over and its end not yet known here.
        if outcome.aborted || run.cancel.is_cancelled() {
            self.end_retries("Retry cancelled".to_owned());
            return self.settle(true).await;
        }
        if let Some(answer) =
            outcome.last_assistant().filter(|answer| answer.stop_reason == StopReason::Error)
        {
            return self.recover(answer).await;
        }
        self.start_queued().await;
    }

    /// Goes on with what was queued in the run's last moment, or settles.
    async fn start_queued(&mut self) {
        if self.queues.is_empty() {
            return self.settle(false).await;
        }
        // Before anything leaves the queue: without a key it would be lost.
        match self.credential(&self.selection.model).await {
            Ok(credential) => {
                let prompts = self.queues.take_next().iter().map(|message| (**message).clone()).collect();
                self.start_run_with(credential, prompts);
            }
            Err(error) => {
                self.notice(NoticeLevel::Error, error.to_string());
                self.settle(false).await;
            }
        }
    }

    async fn recover(&mut self, answer: &AssistantMessage) {
        let error = answer.error_message.clone().unwrap_or_else(|| "request error".to_owned());
        if let Some(repair) = self.repair_for(&error) {
            return self.repair(repair, &error).await;
        }
        if ai::is_overflow(answer, self.selection.model.context_window) {
            let hint = "the conversation no longer fits into the model's context window; go on in a new session \
                        with /new, or switch to a model with a larger one with /model";
            self.notice(NoticeLevel::Error, hint.to_owned());
            self.end_retries(error);
            return self.settle(false).await;
        }
        let policy = self.services.retry_policy();
        match self.recovery.decide(ai::is_retryable(answer), ai::retry_delay(&error), &policy) {
            Next::Retry { attempt, delay } => {
                self.hide_answer();
                self.recovery.continue_from(ai::continuable(&self.selection.model, answer));
                self.activity = Activity::Retrying { at: Instant::now() + delay, error: error.clone() };
                self.publish();
                let max_attempts = policy.max_retries;
                self.send(SessionEvent::RetryScheduled { attempt, max_attempts, delay, error });
            }
            Next::TooLong { demanded } => {
                self.notice(NoticeLevel::Error, recovery::too_long(demanded, policy.max_delay));
                self.end_retries(error);
                self.settle(false).await;
            }
            Next::GiveUp => {
                self.end_retries(error);
                self.settle(false).await;
            }
        }
    }

    /// What to take out of the conversation so that its service takes it again.
    fn repair_for(&mut self, error: &str) -> Option<Repair> {
        let rejection = ai::rejection(error)?;
        let breadth = self.recovery.may_repair()?;
        let sources = projection::sources(&self.store.context_branch());
        repair::plan(&rejection, error, &sources, &self.selection.model, breadth)
    }

    /// Takes it out and repeats the request.
    async fn repair(&mut self, repair: Repair, error: &str) {
        self.hide_answer();
        self.notice(NoticeLevel::Warning, repair.notice(&self.selection.model.provider, error));
        self.recovery.repaired(repair.thinking_off, repair.no_continuation);
        for edit in repair.edits {
            self.append(EntryBody::ContextEdit(edit));
        }
        self.retry_now().await;
    }

    /// The failed answer stays in the file, but the model does not see it again.
    fn hide_answer(&mut self) {
        if let Some(target_id) = self.last_answer.take() {
            let edit = ContextEdit { target_id, replacement: None, extra: ai::Extra::new() };
            self.append(EntryBody::ContextEdit(edit));
        }
    }

    /// Repeats a failed request at once, if one waits.
    fn stop_waiting(&mut self) {
        if let Activity::Retrying { at, .. } = &mut self.activity {
            *at = Instant::now();
        }
    }

    /// Tells that repeating did not help, if anything was repeated.
    fn end_retries(&mut self, error: String) {
        let attempt = self.recovery.give_up();
        if attempt > 0 {
            let final_error = Some(error);
            self.send(SessionEvent::RetryEnded { success: false, attempt, final_error });
        }
    }

    async fn retry_now(&mut self) {
        self.activity = Activity::Idle;
        if let Err(error) = self.start_run(Vec::new()).await {
            self.end_retries(error.to_string());
            self.notice(NoticeLevel::Error, error.to_string());
            self.settle(false).await;
        }
    }

    fn abort(&mut self) {
        self.bash.cancel();
        match &mut self.activity {
            Activity::Idle => {}
            Activity::Running(run) => run.cancel.cancel(),
            Activity::Retrying { error, .. } => {
                let error = format!("Retry cancelled: {error}");
                self.activity = Activity::Idle;
                self.end_retries(error);
                self.publish();
                self.send(SessionEvent::Settled { aborted: true });
            }
        }
    }

    async fn settle(&mut self, aborted: bool) {
        self.publish();
        self.sync().await;
        self.send(SessionEvent::Settled { aborted });
    }

    fn take_queue(&mut self) -> Reply {
        let (steering, follow_up) = self.queues.take_all();
        let texts = |queued: Vec<Queued>| queued.into_iter().map(|queued| queued.text).collect();
        let taken = TakenQueue { steering: texts(steering), follow_up: texts(follow_up) };
        self.queue_changed();
        Reply::Queue(taken)
    }

    fn queue_changed(&mut self) {
        self.save_queue();
        self.publish();
        self.send(SessionEvent::QueueChanged);
    }

    /// Keeps the file of queued messages in step with the queue.
    fn save_queue(&mut self) {
        if let Err(error) = self.queue_file.save(&queue_view(&self.queues)) {
            let text = format!("queued messages cannot be saved, and would not survive a crash: {error}");
            self.notice(NoticeLevel::Warning, text);
        }
    }

    // Selection.

    async fn set_model(&mut self, reference: &str, scope: Scope) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let catalog = services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|provider| services.is_usable(provider));
        let matched = catalog
            .find(reference, None, &usable)
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        if matched.assumed {
            self.notice(NoticeLevel::Warning, selection::assumed(&matched.model));
        }
        let selection = selection::to_model(&self.selection, matched.model, matched.thinking, &self.wishes);
        self.select(selection).await?;
        if scope == Scope::Default {
            let model = Arc::clone(&self.selection.model);
            self.save_settings(vec![
                ("defaultProvider", model.provider.as_str().into()),
                ("defaultModel", model.id.as_str().into()),
            ])
            .await;
        }
        Ok(Reply::Done)
    }

    async fn set_thinking(&mut self, level: ThinkingLevel, scope: Scope) -> Result<Reply, SessionError> {
        let model = Arc::clone(&self.selection.model);
        if !model.supports(level) {
            let levels: Vec<&str> = model.thinking_levels().into_iter().map(ThinkingLevel::name).collect();
            let levels = levels.join(", ");
            return Err(SessionError::Refused(format!(
                "{} cannot think at {level}; it can at {levels}",
                model.id
            )));
        }
        self.select(Selection { model, wanted_thinking: level }).await?;
        if scope == Scope::Default {
            self.save_settings(vec![("defaultThinkingLevel", level.name().into())]).await;
        }
        Ok(Reply::Done)
    }

    async fn cycle_model(&mut self, forward: bool) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let next =
            selection::cycle(&self.selection, forward, &self.wishes, &services.catalog.get(), &|provider| {
                services.is_usable(provider)
            });
        let Some(selection) = next else {
            return Err(SessionError::Refused("there is no other model to switch to".to_owned()));
        };
        self.select(selection).await?;
        Ok(Reply::Done)
    }

    async fn set_scope(&mut self, patterns: Vec<String>, scope: Scope) -> Result<Reply, SessionError> {
        let services = Arc::clone(&self.services);
        let catalog = services.catalog.get();
        let usable = |id: &str| catalog.provider(id).is_some_and(|provider| services.is_usable(provider));
        let (models, problems) = catalog.scope(&patterns, &usable);
        for problem in problems {
            self.notice(NoticeLevel::Warning, problem);
        }
        self.wishes.scope = models;
        if scope == Scope::Default {
            self.save_settings(vec![("enabledModels", patterns.into())]).await;
        }
        self.selection_changed();
        Ok(Reply::Done)
    }

    /// The window of a model on this machine is known when its server has been asked.
    async fn models_changed(&mut self) -> Result<Reply, SessionError> {
        let model = &self.selection.model;
        let known = self.services.catalog.get().get(&model.provider, &model.id).cloned();
        if let Some(known) = known.filter(|known| known != model) {
            let selection = Selection { model: known, ..self.selection.clone() };
            self.select(selection).await?;
        }
        Ok(Reply::Done)
    }

    async fn cycle_thinking(&mut self) -> Result<Reply, SessionError> {
        let model = Arc::clone(&self.selection.model);
        let levels = model.thinking_levels();
        if levels.len() < 2 {
            return Err(SessionError::Refused(format!("{} does not think", model.id)));
        }
        let current = self.selection.thinking();
        let at = levels.iter().position(|level| *level == current).unwrap_or_default();
        let wanted_thinking = levels[(at + 1) % levels.len()];
        self.select(Selection { model, wanted_thinking }).await?;
        Ok(Reply::Done)
    }

    /// Makes a selection the session's, for a running loop from its next request on.
    async fn select(&mut self, selection: Selection) -> Result<(), SessionError> {
        // A model without a key is refused now, not at the next prompt.
        self.credential(&selection.model).await?;
        self.selection = selection;
        self.context.window = self.selection.model.context_window;
        self.record_selection();
        if matches!(self.activity, Activity::Running(_)) {
            self.live.send_replace(LiveSelection {
                selected: Some((Arc::clone(&self.selection.model), self.selection.thinking())),
            });
        }
        self.selection_changed();
        Ok(())
    }

    fn selection_changed(&mut self) {
        self.publish();
        self.send(SessionEvent::SelectionChanged);
    }

    /// Appends what the branch does not say about the selection yet.
    fn record_selection(&mut self) {
        let said = projection::selected(&self.store.selecting_entries());
        let model = Arc::clone(&self.selection.model);
        if said.model != Some((model.provider.clone(), model.id.clone())) {
            let (provider, model_id) = (model.provider.clone(), model.id.clone());
            self.append(EntryBody::ModelChange(ModelChange { provider, model_id, extra: ai::Extra::new() }));
        }
        // What a lesser model could not do is not forgotten for the next one.
        let unchanged =
            said.thinking.is_some_and(|said| model.clamp_thinking(said) == self.selection.thinking());
        if !unchanged {
            let thinking_level = self.selection.thinking().name().to_owned();
            let change = ThinkingLevelChange { thinking_level, extra: ai::Extra::new() };
            self.append(EntryBody::ThinkingLevelChange(change));
        }
    }

    async fn save_settings(&mut self, changes: Vec<(&'static str, serde_json::Value)>) {
        let path = self.services.dirs.settings_file();
        let saved = tokio::task::spawn_blocking(move || SettingsFile::load(path).save(&changes)).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.notice(NoticeLevel::Error, error.to_string()),
            Err(error) => self.notice(NoticeLevel::Error, error.to_string()),
        }
    }

    // The user's own commands.

    fn run_bash(&mut self, command: String, exclude_from_context: bool) -> Result<Reply, SessionError> {
        if self.bash.is_running() {
            let text = "a command is still running; press Escape to stop it";
            return Err(SessionError::Refused(text.to_owned()));
        }
        self.send(SessionEvent::BashStarted { command: command.clone(), exclude_from_context });
        let (config, clock) = (self.services.bash.clone(), self.services.clock.clone());
        self.bash.start(config, command, exclude_from_context, self.cwd.clone(), clock);
        Ok(Reply::Started)
    }

    fn take_bash(&mut self, event: UserBashEvent) {
        match event {
            UserBashEvent::Output(chunk) => self.send(SessionEvent::BashOutput { chunk }),
            UserBashEvent::Ended(execution) => {
                let body = EntryBody::bash(execution.clone());
                if matches!(self.activity, Activity::Running(_)) {
                    self.held.push(body);
                } else {
                    self.append(body);
                }
                self.send(SessionEvent::BashEnded(Arc::new(execution)));
            }
            UserBashEvent::Failed(error) => {
                self.send(SessionEvent::BashEnded(Arc::default()));
                self.notice(NoticeLevel::Error, error);
            }
        }
    }

    // Opening and closing.

    async fn switch(&mut self, open: OpenSession) -> Result<Reply, SessionError> {
        if let OpenSession::File(path) = &open
            && self.store.locked_by().is_none()
            && self.store.path().is_some_and(|own| open::is_same_file(own, path))
        {
            // This task writes the file; there is nothing in it to be read again.
            self.stop().await;
            self.announce_open(None);
            return Ok(Reply::Done);
        }
        let opened = open::open(&self.services, &self.cwd, open)
            .await
            .map_err(|error| SessionError::Refused(error.to_string()))?;
        self.stop().await;
        // What is in memory only would go with the store.
        self.flush()?;
        let (selection, notice) = if opened.store.is_empty() {
            // A new session goes on with the model at hand.
            (self.selection.clone(), None)
        } else {
            select(&self.services, &opened.store_selected)
        };
        // What is queued now goes along; it is then not left over in the old session.
        drop(self.queue_file.save(&QueueView::default()));
        self.store = opened.store;
        self.queue_file = opened.queue_file;
        self.save_queue();
        self.cwd = opened.cwd;
        self.context_files = opened.context_files;
        self.selection = selection;
        self.recovery = Recovery::default();
        self.cache = CacheWatch::default();
        self.last_answer = None;
        self.unsaved = false;
        self.announce_open(notice);
        Ok(Reply::Done)
    }

    fn announce_open(&mut self, notice: Option<String>) {
        self.context =
            ContextUsage { window: self.selection.model.context_window, ..ContextUsage::default() };
        if let Some(entry) = self.store.last_answer()
            && let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body
            && let Message::Assistant(answer) = &**message
        {
            self.context.note(answer);
        }
        self.publish();
        let (tail, n_earlier) = self.store.branch_tail(TAIL_ENTRIES);
        self.send(SessionEvent::Opened(Arc::new(Opened { tail, n_earlier: Some(n_earlier) })));
        if let Some(notice) = open::damage(self.store.damaged_lines()) {
            self.notice(NoticeLevel::Warning, notice);
        }
        if let Some(holder) = self.store.locked_by() {
            let text = format!(
                "this session is open in another pi (process {holder}); it can be read here, not continued"
            );
            self.notice(NoticeLevel::Warning, text);
        }
        if let Some(notice) = notice {
            self.notice(NoticeLevel::Warning, notice);
        }
    }

    /// Ends what is going on, keeping what there is of it, and makes all durable.
    async fn stop(&mut self) {
        self.abort();
        while let Activity::Running(run) = &mut self.activity {
            match run.reports.recv().await {
                Some(report) => self.take_report(report),
                None => self.run_ended().await,
            }
        }
        if let Some(event) = self.bash.wait().await {
            self.take_bash(event);
        }
        self.sync().await;
    }

    // Journal and state.

    /// Writes an entry; a failure is told and the entry kept for later.
    fn append(&mut self, body: EntryBody) -> EntryId {
        let (entry, written) = self.store.append(body, self.services.clock.now_ms());
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.unsaved) {
                    let text = "the session file can be written again; nothing was lost";
                    self.notice(NoticeLevel::Info, text.to_owned());
                }
                self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY);
            }
            // Said once, not for every entry.
            Err(error) if !std::mem::replace(&mut self.unsaved, true) => {
                self.notice(NoticeLevel::Error, error.to_string());
            }
            Err(_) => {}
        }
        let id = entry.id.clone();
        self.send(SessionEvent::EntryAppended(entry));
        id
    }

    /// Writes what could not be written before.
    fn flush(&mut self) -> Result<(), SessionError> {
        self.store.flush().map_err(|error| SessionError::Refused(error.to_string()))
    }

    /// Makes the file durable without waiting for it.
    fn sync_later(&mut self) {
        self.sync_at = None;
        if let Some(file) = self.store.take_unsynced() {
            tokio::task::spawn_blocking(move || file.sync_data());
        }
    }

    async fn sync(&mut self) {
        self.sync_at = None;
        if let Some(file) = self.store.take_unsynced() {
            // The entries are written; a failing sync leaves them to the system.
            drop(tokio::task::spawn_blocking(move || file.sync_data()).await);
        }
    }

    fn notice(&self, level: NoticeLevel, text: String) {
        self.send(SessionEvent::Notice { level, text });
    }

    fn send(&self, event: SessionEvent) {
        // The client may be gone; the session still finishes its work.
        drop(self.events.send(event));
    }

    fn publish(&self) {
        let services = &self.services;
        let state = SessionState {
            id: self.store.header().id.clone(),
            path: self.store.path().map(Path::to_owned),
            on_disk: self.store.is_on_disk(),
            cwd: self.cwd.clone(),
            name: self.store.name().map(str::to_owned),
            model: Arc::clone(&self.selection.model),
            thinking: self.selection.thinking(),
            phase: match self.activity {
                Activity::Idle => Phase::Idle,
                Activity::Running(_) => Phase::Running,
                Activity::Retrying { .. } => Phase::Retrying,
            },
            queue: queue_view(&self.queues),
            totals: self.store.totals().clone(),
            context: self.context,
            damaged_lines: self.store.damaged_lines().to_vec(),
            steering_delivery: self.queues.delivery(),
            urgent_words: services.settings.urgent_words.clone().into(),
            // The demo model is always there and does not count.
            several_providers: services.has_several_providers(),
            scope: self.wishes.scope.as_slice().into(),
        };
        services.bash.session.set(open::session_vars(&state));
        self.state.send_replace(Arc::new(state));
    }
}

fn queue_view(queues: &Queues) -> QueueView {
    let (steering, follow_up) = queues.texts();
    QueueView { steering, follow_up }
}

fn answer(reply: Option<oneshot::Sender<Result<Reply, SessionError>>>, result: Result<Reply, SessionError>) {
    if let Some(reply) = reply {
        // Whoever asked may have stopped waiting.
        drop(reply.send(result));
    }
}

/// The next report; never, without a run.
async fn recv(reports: Option<&mut mpsc::UnboundedReceiver<Report>>) -> Option<Report> {
    match reports {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
