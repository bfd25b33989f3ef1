//! The task that owns one conversation: handles commands, runs the agent, stores
//! results, and reports to its client.
//!
//! [`AgentSession`] dispatches to parts that own their fields and rules: `session_log`
//! the file, `prompt_queue` what waits, `held_prompts` what waits for trust,
//! `model_control` the selection, `run_state` what goes on, `window_fit` what keeps requests within the window, `prompt_cache` what the provider caches, `project` the folder and its
//! trust, `session_settings` the settings, `session_tools` what the model may call,
//! `outbox` events and snapshot. What takes several of them is in `running`, `opening` and `warming`. Policies are elsewhere
//! (`recovery`, `repair`, `selection`, `projection`). Journal first: an event that shows
//! something as finished goes out after it was written.

mod branching;
mod budgeting;
mod compacting;
mod describing;
mod handoff;
mod held_prompts;
mod model_control;
mod opening;
mod project;
mod prompt_cache;
mod prompt_queue;
mod questions;
mod recovering;
mod reviewing;
mod run_state;
mod running;
mod session_log;
mod session_settings;
mod session_tools;
mod summaries;
mod warming;
mod window_fit;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::agent::QueueKind;
use crate::ai::{self, Message};
use crate::config::{LiveSettings, ProjectSettings, SettingChange};
use crate::util::panics::panic_text;

use super::budget::Budget;
use super::cache_warming::NotWarmed;
use super::command::{PromptDraft, Reply, Scope, SessionCommand, WhenBusy};
use super::endings::Endings;
use super::event::{NoticeLevel, Opened, SessionEvent};
use super::from_settings::setting_change;
use super::handle::{Envelope, SessionError, SessionHandle};
use super::open::{self, OpenSession, OpenedSession};
use super::outbox::{Deltas, Outbox, SessionEvents, Subscriber};
use super::project_context::TrustOverrides;
use super::projection::{self, Selected};
use super::refusal::Refusal;
use super::run;
use super::selection::Selection;
use super::services::Services;
use super::state::{Phase, SessionState, UserCommand};
use super::store::{EntryBody, EntryId, OpenError, SessionInfo, clean_name};
use super::trace::StepRecorder;
use super::user_bash::{BashId, UserBash, UserBashEvent};
use branching::Branching;
use budgeting::Budgeting;
use compacting::{AfterCompaction, Compacting};
use held_prompts::HeldPrompts;
use model_control::ModelControl;
use opening::ModelChoice;
use project::Project;
use prompt_cache::{CacheInput, PromptCache};
use prompt_queue::{Enqueued, PromptQueue};
use questions::{Answered, Questions};
use reviewing::{DraftedSummary, Reviewing};
pub use run_state::RETRY_CANCELLED;
use run_state::{RunInput, RunState};
use session_log::{LogInput, SessionLog};
use session_settings::SessionSettings;
use session_tools::SessionTools;
use warming::Warming;
use window_fit::WindowFit;

/// Number of entries that are shown when a session is opened.
const TAIL_ENTRIES: usize = 400;
/// Maximum number of reports handled before the next command.
const REPORTS_PER_TURN: usize = 256;

/// Starts the task of a session. It ends when the last handle is dropped or after
/// `Shutdown`. The task shows the end of a large file at once and then reads the file;
/// commands wait for that. `deltas` applies to the returned events; other subscribers
/// may follow.
///
/// # Errors
/// If the session cannot be opened.
pub async fn start(
    services: Arc<Services>,
    cwd: PathBuf,
    open: OpenSession,
    deltas: Deltas,
) -> Result<(SessionHandle, SessionEvents), OpenError> {
    let (command_sender, commands) = mpsc::unbounded_channel();
    let (subscriber, events) = Subscriber::new(deltas);
    let settings = services.settings.for_session(ProjectSettings::default());
    let (selection, _) = model_control::initial(&services, &settings.get(), &Selected::default());
    if let Some(preview) = open::preview(&open, &cwd)? {
        let instead_of_demo = services.instead_of_demo(&selection.model);
        let state = SessionState::of(&selection.model, &preview.cwd);
        let (id, settings_now) = (preview.id, settings.get());
        let state = SessionState { id, instead_of_demo, settings: settings_now, ..state };
        let outbox = Outbox::new(state, services.dirs.home.clone());
        let handle = SessionHandle::new(command_sender, outbox.watch_state());
        let opened = Opened { tail: preview.tail, ..Opened::default() };
        outbox.add_with(subscriber, SessionEvent::Opened(Arc::new(opened)));
        tokio::spawn(async move {
            match open::open(&services, &cwd, open, &TrustOverrides::default()).await {
                Ok(opened) => AgentSession::new(services, settings, opened, outbox).run(commands).await,
                Err(error) => outbox.send(SessionEvent::Ended { reason: outbox.shown(&error.to_string()) }),
            }
        });
        return Ok((handle, events));
    }
    let opened = open::open(&services, &cwd, open, &TrustOverrides::default()).await?;
    let state = SessionState::of(&selection.model, &opened.cwd);
    let outbox = Outbox::new(state, services.dirs.home.clone());
    outbox.add(subscriber);
    let handle = SessionHandle::new(command_sender, outbox.watch_state());
    let session = AgentSession::new(services, settings, opened, outbox);
    tokio::spawn(session.run(commands));
    Ok((handle, events))
}

/// Owns one conversation; the only task that may change it.
struct AgentSession {
    services: Arc<Services>,
    log: SessionLog,
    queue: PromptQueue,
    held: HeldPrompts,
    settings: SessionSettings,
    model: ModelControl,
    run: RunState,
    fit: WindowFit,
    endings: Endings,
    cache: PromptCache,
    project: Project,
    tools: SessionTools,
    bash: UserBash,
    questions: Questions,
    steps: StepRecorder,
    budget: Budget,
    drafted: DraftedSummary,
    outbox: Outbox,
}

/// The events that wake the task.
enum Input {
    Command(Option<Envelope>),
    Run(RunInput),
    Bash((BashId, UserBashEvent)),
    Log(LogInput),
    Settings(Vec<&'static str>),
    Cache(CacheInput),
}

impl AgentSession {
    /// Creates the owner of an opened session and reports the session.
    fn new(services: Arc<Services>, settings: LiveSettings, opened: OpenedSession, outbox: Outbox) -> Self {
        settings.use_project(opened.project.settings.clone());
        let values = settings.get();
        let (selection, notice) = model_control::initial(&services, &values, &opened.store_selected);
        let (clock, files) = (services.clock.clone(), (opened.queue_file, opened.draft_file));
        let spent_usd = opened.store.totals().cost_usd;
        let mut session = Self {
            budget: Budget::new(&values.values.budget, spent_usd),
            log: SessionLog::new(opened.store, opened.deferred_entries, clock, outbox.clone()),
            queue: PromptQueue::new(&values.values, files.0, files.1, outbox.clone()),
            held: HeldPrompts::default(),
            model: ModelControl::new(Arc::clone(&services), settings.clone(), selection, outbox.clone()),
            cache: PromptCache::new(Arc::clone(&services), settings.clone(), outbox.clone()),
            settings: SessionSettings::new(settings, outbox.clone()),
            run: RunState::new(outbox.clone()),
            fit: WindowFit::default(),
            endings: Endings::default(),
            project: Project::new(Arc::clone(&services), opened.cwd, opened.project, outbox.clone()),
            tools: SessionTools::new(opened.tools, outbox.clone()),
            bash: UserBash::new(outbox.clone()),
            questions: Questions::new(&services, outbox.clone()),
            steps: StepRecorder::default(),
            drafted: DraftedSummary::new(opened.summary, outbox.clone()),
            services,
            outbox,
        };
        session.announce_open(notice);
        session
    }

    /// Runs to the end; reports a panic and releases everything the session held.
    async fn run(self, commands: mpsc::UnboundedReceiver<Envelope>) {
        let outbox = self.outbox.clone();
        if let Err(panic) = AssertUnwindSafe(self.main_loop(commands)).catch_unwind().await {
            outbox.send(SessionEvent::Ended { reason: panic_text(&*panic) });
        }
    }

    async fn main_loop(mut self, mut commands: mpsc::UnboundedReceiver<Envelope>) {
        let farewell = loop {
            match self.next_input(&mut commands).await {
                Input::Command(None) => {
                    // No client is left to read the result, but the copy was written.
                    drop(self.shut_down().await);
                    break None;
                }
                Input::Command(Some(Envelope::Subscribe(subscriber))) => {
                    let opened = self.log.opened(TAIL_ENTRIES);
                    self.outbox.add_with(subscriber, SessionEvent::Opened(Arc::new(opened)));
                }
                Input::Command(Some(Envelope::Command { command: SessionCommand::Shutdown, reply })) => {
                    let result = self.shut_down().await;
                    break Some((reply, result.map_err(|error| self.outbox.shown_error(error))));
                }
                Input::Command(Some(Envelope::Command { command, reply })) => {
                    let result = self.on_command(command).await;
                    let result = result.map_err(|error| self.outbox.shown_error(error));
                    if let (Err(error), None) = (&result, &reply) {
                        self.outbox.notice(NoticeLevel::Error, error.to_string());
                    }
                    answer(reply, result);
                }
                Input::Run(input) => self.on_run_input(input).await,
                Input::Bash(event) => self.on_bash(event),
                Input::Log(input) => {
                    self.log.on_input(input);
                    self.follow_log();
                }
                Input::Settings(keys) => SessionSettings::apply(&mut self, keys),
                Input::Cache(input) => Warming::of(&mut self).on_input(input).await,
            }
        };
        self.services.provider.end_session(self.log.session_id());
        // The process may end with the answer, so lock files and the like are removed before.
        drop(self);
        if let Some((reply, result)) = farewell {
            answer(reply, result);
        }
    }

    async fn next_input(&mut self, commands: &mut mpsc::UnboundedReceiver<Envelope>) -> Input {
        tokio::select! {
            biased;
            command = commands.recv() => Input::Command(command),
            input = self.run.next_input() => Input::Run(input),
            event = self.bash.next_event() => Input::Bash(event),
            input = self.log.next_input() => Input::Log(input),
            keys = self.settings.changed() => Input::Settings(keys),
            input = self.cache.next_input() => Input::Cache(input),
        }
    }

    async fn on_command(&mut self, command: SessionCommand) -> Result<Reply, SessionError> {
        if command.needs_idle() && self.run.phase() != Phase::Idle {
            return Err(Refusal::Working.into());
        }
        match command {
            SessionCommand::Prompt { prompt, when_busy } => return self.prompt(prompt, when_busy).await,
            SessionCommand::Begin { prompts } => {
                self.held.extend(prompts);
                HeldPrompts::release(self).await;
            }
            SessionCommand::KeepNextPrompt => self.fit.keep_next_prompt(),
            SessionCommand::DeliverNow => {
                if self.queue.deliver_now() {
                    self.run.skip_wait();
                    self.questions.withdraw_calls();
                }
            }
            SessionCommand::TakeQueue => return Ok(Reply::Queue(self.queue.take_all())),
            SessionCommand::TakeQueued { slot } => return Ok(Reply::Queue(self.queue.take_one(&slot))),
            SessionCommand::DropQueued { slot } => self.queue.drop_one(&slot),
            SessionCommand::MoveQueued { slot, kind, index } => self.queue.move_one(&slot, kind, index),
            SessionCommand::TakeLeftOver => return Ok(Reply::Queue(self.queue.take_left_over())),
            SessionCommand::SaveDraft { draft, tickets } => self.queue.save_draft(draft, tickets),
            SessionCommand::Abort => self.abort(),
            SessionCommand::Interrupt => {
                self.queue.interrupt(self.run.phase());
                self.abort();
            }
            SessionCommand::ChangeSetting { key, value } => {
                let change = changed(&key, value.unwrap_or_default())?;
                SessionSettings::change(self, vec![change]).await;
            }
            SessionCommand::Reload => project::reload(self).await?,
            SessionCommand::SetModel { reference, scope } => {
                self.select(self.model.find(&reference)?).await?;
                if scope == Scope::Default {
                    let changes = self.model.as_default()?;
                    let what = format!("{} as the default model", self.model.model().reference());
                    SessionSettings::change_default(self, changes, &what).await;
                }
            }
            SessionCommand::SetThinking { level, scope } => {
                self.select(self.model.with_thinking(level)?).await?;
                if scope == Scope::Default {
                    let change = changed("defaultThinkingLevel", level.name().into())?;
                    let what = format!("{level} as the default thinking level");
                    SessionSettings::change_default(self, vec![change], &what).await;
                }
            }
            SessionCommand::SetScope { patterns, scope } => {
                self.model.set_scope(&patterns);
                if scope == Scope::Default {
                    let change = changed("enabledModels", patterns.into())?;
                    let what = "the models to cycle through as the default";
                    SessionSettings::change_default(self, vec![change], what).await;
                }
                self.report_selection();
            }
            SessionCommand::ModelsChanged => {
                self.model.find_scope();
                match self.model.updated() {
                    Some(selection) => self.select(selection).await?,
                    // The change may have added a key for another provider.
                    None => self.outbox.update(|state| self.model.show(state)),
                }
            }
            SessionCommand::CycleModel { forward } => self.select(self.model.cycled(forward)?).await?,
            SessionCommand::CycleThinking => self.select(self.model.with_next_thinking()?).await?,
            SessionCommand::Compact { focus, with_review } => {
                return Compacting::of(self).on_command(focus, with_review).await;
            }
            SessionCommand::DecideSummary { decision } => {
                return Reviewing::of(self).decide(decision).await;
            }
            SessionCommand::Handoff { goal } => {
                handoff::start(self, goal).await?;
                return Ok(Reply::Started);
            }
            SessionCommand::RunBash { command, exclude_from_context, others } => {
                let id = self.bash.next_id(others)?;
                self.log.on_command_start(id, &command, exclude_from_context);
                let command = UserCommand { command, exclude_from_context };
                self.bash.start(id, &self.services, self.project.cwd(), command);
                return Ok(Reply::BashStarted(id));
            }
            SessionCommand::CancelBash { id } => self.bash.cancel(id),
            SessionCommand::SetName { name } => {
                Branching::of(self).check_writable()?;
                let name = clean_name(&name).unwrap_or_default();
                self.append(EntryBody::SessionInfo(SessionInfo { name, extra: ai::Extra::new() }));
                self.report_selection();
            }
            SessionCommand::DecideTrust { choice } => {
                self.questions.close_trust();
                project::decide_trust(self, choice).await?;
            }
            SessionCommand::Answer { id, option } => match self.questions.answer(id, option)? {
                Answered::Call | Answered::Stop => {}
                Answered::Trust(choice) => project::decide_trust(self, choice).await?,
                Answered::GoOn => Budgeting::of(self).go_on().await,
            },
            SessionCommand::AddTool { tool } => self.tools.add(tool)?,
            SessionCommand::RemoveTool { name } => self.tools.remove(name)?,
            SessionCommand::ReadTree => return Ok(Reply::Tree(self.log.store().tree())),
            SessionCommand::ReadContext => return Ok(Reply::Context(self.log.context_branch())),
            SessionCommand::DescribeContext => {
                return Ok(Reply::ContextReport(Box::new(describing::context_report(self))));
            }
            SessionCommand::Navigate { target, summary, if_busy } => {
                return Branching::of(self).navigate(&target, summary, if_busy).await;
            }
            SessionCommand::Pin { target, pinned } => Branching::of(self).pin(target, pinned)?,
            SessionCommand::SetLabel { target, label } => Branching::of(self).label(target, label)?,
            SessionCommand::Fork { target, if_busy } => {
                return Branching::of(self).fork(&target, if_busy).await;
            }
            SessionCommand::Clone { if_busy } => return Branching::of(self).clone_branch(if_busy).await,
            SessionCommand::Import { path, if_busy } => {
                return Branching::of(self).import(path, if_busy).await;
            }
            SessionCommand::Export { path, secrets } => {
                return Branching::of(self).export(path, secrets).await;
            }
            SessionCommand::New { if_busy } => {
                Branching::of(self).check_idle(if_busy)?;
                return self.switch(OpenSession::New, ModelChoice::Stored).await;
            }
            SessionCommand::NewChild { parent, if_busy } => {
                Branching::of(self).check_idle(if_busy)?;
                let folder = self.services.sessions.clone();
                let open = folder.map_or(OpenSession::New, |folder| OpenSession::Forked {
                    folder,
                    parent,
                    lines: Vec::new(),
                });
                return self.switch(open, ModelChoice::Stored).await;
            }
            SessionCommand::Open { path, if_busy } => {
                Branching::of(self).check_idle(if_busy)?;
                return self.switch(OpenSession::File(path), ModelChoice::Stored).await;
            }
            SessionCommand::Shutdown => {}
        }
        Ok(Reply::Done)
    }

    /// Starts a run, or queues the prompt if one is in progress.
    async fn prompt(&mut self, prompt: PromptDraft, when_busy: WhenBusy) -> Result<Reply, SessionError> {
        let PromptDraft { text, images, pastes } = prompt;
        if text.trim().is_empty() && images.is_empty() {
            return Err(Refusal::NothingToSend.into());
        }
        let now_ms = self.services.clock.now_ms();
        let expanded = self.project.expanded(&text).await?;
        let settings = self.settings.get();
        let (time, settings) = (ai::Millis(now_ms), &settings.values);
        let message = run::user_message(&expanded, images, time, self.model.model(), settings).await;
        if let Some(holder) = self.log.store().locked_by() {
            return Err(Refusal::ReadOnly { holder: holder.to_owned() }.into());
        }
        if self.run.phase() == Phase::Idle {
            Budgeting::of(self).check_prompt().await?;
            let credential = self.model.credential().await?;
            if Compacting::of(self).start_if_full(AfterCompaction::Queue).await.is_some() {
                self.start_run(credential, vec![Message::User(message)]);
            } else {
                // Shown, stored and returned like all that wait.
                let first = WhenBusy::At { kind: QueueKind::Steering, index: 0 };
                self.queue.push((text, pastes), message, first, now_ms)?;
            }
            return Ok(Reply::Started);
        }
        let now_ms = self.services.clock.now_ms();
        match self.queue.push((text, pastes), message, when_busy, now_ms)? {
            Enqueued::Duplicate => Ok(Reply::Duplicate),
            Enqueued::Queued { interrupts } => {
                if interrupts {
                    self.run.skip_wait();
                    self.questions.withdraw_calls();
                }
                Ok(Reply::Queued)
            }
        }
    }

    // The model.

    /// Applies a selection; a running loop uses it from its next request on.
    async fn select(&mut self, selection: Selection) -> Result<(), SessionError> {
        let before = Arc::clone(self.model.model());
        self.model.select(selection).await?;
        self.cache.stop(NotWarmed::Changed);
        let model = self.model.model();
        if *model != before {
            self.run.on_model_change();
        }
        self.run.set_window(model.context_window);
        self.record_selection();
        self.report_selection();
        Ok(())
    }

    /// Appends entries for changes of the selection that the branch does not contain.
    fn record_selection(&mut self) {
        let recorded = projection::selected(&self.log.selecting_entries());
        for body in self.model.unrecorded(&recorded) {
            self.append(body);
        }
    }

    fn report_selection(&self) {
        self.publish();
        self.outbox.send(SessionEvent::SelectionChanged);
    }

    // The user's own commands.

    fn on_bash(&mut self, (id, event): (BashId, UserBashEvent)) {
        match event {
            UserBashEvent::Output(chunk) => self.outbox.send(SessionEvent::BashOutput { id, chunk }),
            UserBashEvent::Ended(execution) => {
                let body = EntryBody::bash(execution.clone());
                self.log.on_command_end(id, Some(body), self.run.is_in_run());
                self.follow_log();
                self.outbox.send(SessionEvent::BashEnded { id, execution: Arc::new(execution) });
            }
            UserBashEvent::Failed(error) => {
                self.log.on_command_end(id, None, self.run.is_in_run());
                self.outbox.send(SessionEvent::BashEnded { id, execution: Arc::default() });
                self.outbox.notice(NoticeLevel::Error, error);
            }
        }
    }

    // File and snapshot.

    fn append(&mut self, body: EntryBody) -> EntryId {
        let id = self.log.append(body);
        self.follow_log();
        id
    }

    /// Moves the sidecar files along with the session file.
    fn follow_log(&mut self) {
        if self.log.take_moved() {
            self.queue.follow(self.log.store().path());
            self.drafted.follow(self.log.store().path());
        }
    }

    /// Publishes the state that changes with a run or a selection.
    fn publish(&self) {
        self.outbox.update(|state| {
            self.run.show(state);
            self.queue.show(state);
            self.model.show(state);
        });
    }

    /// # Errors
    /// If something is not saved.
    async fn shut_down(&mut self) -> Result<Reply, SessionError> {
        self.stop().await;
        let (temp_dir, home) = (self.services.bash.temp_dir.clone(), self.services.dirs.home.clone());
        let folders: Vec<PathBuf> =
            [temp_dir].into_iter().chain(home).chain([self.project.cwd().to_owned()]).collect();
        self.log.save_or_copy(&folders).map(|()| Reply::Done)
    }
}

fn answer(reply: Option<oneshot::Sender<Result<Reply, SessionError>>>, result: Result<Reply, SessionError>) {
    if let Some(reply) = reply {
        // The sender may have stopped waiting.
        drop(reply.send(result));
    }
}

fn changed(key: &str, value: Value) -> Result<SettingChange, Refusal> {
    Ok(setting_change(key, value)?)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
