//! The task that owns one conversation: takes commands, runs the agent, stores
//! what happens, tells its client.
//!
//! It dispatches: what a run brings is in `running`, what a session talks to in
//! `selecting`, going from one session to another in `opening`, what its folder
//! brings along in `surrounded`. Policies are
//! elsewhere (`recovery`, `repair`, `selection`, `projection`). Journal first: an event that shows something as finished goes
//! out after it was written.

mod opening;
mod running;
mod selecting;
mod surrounded;

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::agent::{Pushed, QueueKind, Queued, Queues, SteeringDelivery, ToolRegistry};
use crate::ai::{self, ContentBlock, Credential, Message, Model, UserContent, UserMessage};
use crate::util::panics::panic_text;

use super::cache_watch::CacheWatch;
use super::command::{PromptDraft, Reply, SessionCommand, TakenQueue, WhenBusy};
use super::deferred::DeferredEntries;
use super::draft_file::DraftFile;
use super::event::{NoticeLevel, Opened, SessionEvent};
use super::handle::{Envelope, SessionError, SessionEvents, SessionHandle};
use super::open::{self, OpenSession, OpenedSession};
use super::project_context::{ProjectContext, TrustOverrides};
use super::projection::{self, Selected};
use super::queue_file::{QueueFile, StoredQueues};
use super::recovery::Recovery;
use super::run::{self, ActiveRun, LiveSelection, Report, RunParts};
use super::selection::{self, ModelPreferences, Selection};
use super::services::Services;
use super::state::{ContextUsage, Phase, QueueView, SessionState};
use super::store::{
    Entry, EntryBody, EntryId, JournalError, OpenError, SessionInfo, SessionStore, Synced, clean_name,
};
use super::urgent::is_urgent;
use super::user_bash::{UserBash, UserBashEvent};

/// How long a written line may wait to be made durable against power loss.
const SYNC_DELAY: Duration = Duration::from_millis(100);
/// How long to wait before what could not be saved is tried again.
const SAVE_AGAIN_DELAY: Duration = Duration::from_secs(5);
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
        let instead_of_demo = services.instead_of_demo(&selection.model);
        let state = SessionState::of(&selection.model, &preview.cwd);
        let state = SessionState { id: preview.id, instead_of_demo, ..state };
        let state = watch::Sender::new(Arc::new(state));
        let handle = SessionHandle::new(command_sender, state.subscribe());
        let opened = Opened { tail: preview.tail, n_earlier: None };
        drop(events.send(SessionEvent::Opened(Arc::new(opened))));
        tokio::spawn(async move {
            match open::open(&services, &cwd, open, &TrustOverrides::default()).await {
                Ok(opened) => AgentSession::new(services, opened, events, state).run(commands).await,
                // The client may be gone.
                Err(error) => drop(events.send(SessionEvent::Ended { reason: error.to_string() })),
            }
        });
        return Ok((handle, event_receiver));
    }
    let opened = open::open(&services, &cwd, open, &TrustOverrides::default()).await?;
    let (selection, _) = select(&services, &Selected::default());
    let state = watch::Sender::new(Arc::new(SessionState::of(&selection.model, &opened.cwd)));
    let handle = SessionHandle::new(command_sender, state.subscribe());
    let session = AgentSession::new(services, opened, events, state);
    tokio::spawn(session.run(commands));
    Ok((handle, event_receiver))
}

fn select(services: &Services, selected: &Selected) -> (Selection, Option<String>) {
    selection::initial(&services.preferences, selected, &services.catalog.get(), &|provider| {
        services.is_usable(provider)
    })
}

/// Owns one conversation; the only task that may change it.
struct AgentSession {
    services: Arc<Services>,
    cwd: PathBuf,
    store: SessionStore,
    project: ProjectContext,
    tools: ToolRegistry,
    /// About trust, for as long as the program runs.
    overrides: TrustOverrides,
    /// What was said about the project; it is said once.
    told: HashSet<String>,
    selection: Selection,
    /// As the process was started, but with the scope of this session.
    preferences: ModelPreferences,
    recovery: Recovery,
    queues: Arc<Queues>,
    queue_file: QueueFile,
    draft_file: DraftFile,
    /// Waits until the prompt that left the editor is stored.
    waiting_draft: Option<(PromptDraft, u64)>,
    /// Prompts were handed to a run and are not in the session file yet.
    prompt_in_flight: bool,
    /// The draft cannot be saved; the user knows.
    draft_unsaved: bool,
    activity: Activity,
    bash: UserBash,
    /// Entries that must not come between a tool call and its result.
    deferred: DeferredEntries,
    /// Entry of the latest answer of the current run.
    cache: CacheWatch,
    last_answer: Option<EntryId>,
    context: ContextUsage,
    /// What the next request of a running loop uses.
    live: watch::Sender<LiveSelection>,
    events: mpsc::UnboundedSender<SessionEvent>,
    state: watch::Sender<Arc<SessionState>>,
    /// When to make lines durable, or to try again to write them.
    sync_at: Option<Instant>,
    /// Lines that are being made durable.
    syncing: Option<JoinHandle<Synced>>,
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
    Synced(Option<Synced>),
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
            preferences: services.preferences.clone(),
            services,
            cwd: opened.cwd,
            store: opened.store,
            project: opened.project,
            tools: opened.tools,
            overrides: TrustOverrides::default(),
            told: HashSet::new(),
            selection,
            recovery: Recovery::default(),
            queues,
            queue_file: opened.queue_file,
            draft_file: opened.draft_file,
            waiting_draft: None,
            prompt_in_flight: false,
            draft_unsaved: false,
            activity: Activity::Idle,
            bash: UserBash::default(),
            deferred: opened.deferred,
            cache: CacheWatch::default(),
            last_answer: None,
            context: ContextUsage::default(),
            live: watch::Sender::new(LiveSelection::default()),
            events,
            state,
            sync_at: None,
            syncing: None,
            unsaved: false,
        };
        session.announce_open(notice);
        session
    }

    /// Runs to the end; a panic is reported, and all the session held is released.
    async fn run(self, commands: mpsc::UnboundedReceiver<Envelope>) {
        let events = self.events.clone();
        if let Err(panic) = AssertUnwindSafe(self.main_loop(commands)).catch_unwind().await {
            let reason = panic_text(&*panic);
            // The client may be gone.
            drop(events.send(SessionEvent::Ended { reason }));
        }
    }

    async fn main_loop(mut self, mut commands: mpsc::UnboundedReceiver<Envelope>) {
        loop {
            match self.next_input(&mut commands).await {
                Input::Command(None) => {
                    self.stop().await;
                    // Nobody is left to be told, but the copy is there.
                    drop(self.save_or_copy());
                    break;
                }
                Input::Command(Some(Envelope { command: SessionCommand::Shutdown, reply })) => {
                    self.stop().await;
                    answer(reply, self.save_or_copy().map(|()| Reply::Done));
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
                Input::Synced(synced) => self.synced(synced),
            }
        }
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
            synced = ended(&mut self.syncing) => Input::Synced(synced),
        }
    }

    async fn handle(&mut self, command: SessionCommand) -> Result<Reply, SessionError> {
        match command {
            SessionCommand::Prompt { text, images, when_busy } => {
                if text.trim().is_empty() && images.is_empty() {
                    return Err(SessionError::Refused("there is nothing to send".to_owned()));
                }
                let now = ai::Millis(self.services.clock.now_ms());
                let said = self.expanded(&text).await?;
                let message =
                    run::user_message(&said, images, now, &self.selection.model, &self.services.settings)
                        .await;
                self.prompt(text, message, when_busy).await
            }
            SessionCommand::DeliverNow => {
                if self.queues.deliver_now() {
                    self.stop_waiting();
                    self.queue_changed();
                }
                Ok(Reply::Done)
            }
            SessionCommand::TakeQueue => Ok(self.take_queue()),
            SessionCommand::TakeQueued { slot } => {
                let taken: Vec<Queued> = self.queues.take_one(&slot).into_iter().collect();
                Ok(Reply::Queue(match slot.kind {
                    QueueKind::Steering => self.given_back(taken, Vec::new()),
                    QueueKind::FollowUp => self.given_back(Vec::new(), taken),
                }))
            }
            SessionCommand::MoveQueued { slot, kind, index } => {
                self.queues.move_one(&slot, kind, index);
                self.queue_changed();
                Ok(Reply::Done)
            }
            SessionCommand::TakeLeftOver => {
                let left_over = self.queue_file.take_left_over();
                Ok(Reply::Queue(TakenQueue { draft: self.draft_file.take_recovered(), ..left_over }))
            }
            SessionCommand::SaveDraft { draft, ticket } => {
                self.save_draft(draft, ticket);
                Ok(Reply::Done)
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
            SessionCommand::DecideTrust { choice } => self.decide_trust(choice).await,
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
            self.prompt_in_flight = true;
        }
        let parts = RunParts {
            services: &self.services,
            cwd: &self.cwd,
            project: &self.project,
            tools: &self.tools,
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

    // The queue.

    fn take_queue(&mut self) -> Reply {
        let (steering, follow_up) = self.queues.take_all();
        Reply::Queue(self.given_back(steering, follow_up))
    }

    /// Hands messages back to the user. They stay in the queue file until a draft that
    /// holds them is stored.
    fn given_back(&mut self, steering: Vec<Queued>, follow_up: Vec<Queued>) -> TakenQueue {
        let drafts = |queued: Vec<Queued>| queued.iter().map(draft_of).collect();
        let taken = self.queue_file.give_back(drafts(steering), drafts(follow_up));
        self.queue_changed();
        taken
    }

    // The draft.

    fn save_draft(&mut self, draft: PromptDraft, ticket: u64) {
        if self.prompt_in_flight {
            // Until it is in the session file, the stored draft is the only copy of it.
            self.waiting_draft = Some((draft, ticket));
            return;
        }
        let holds = self.queue_file.held_by(ticket);
        match self.draft_file.save(&draft, &holds) {
            Ok(()) => {
                self.draft_unsaved = false;
                self.queue_file.forget(ticket);
                self.save_queue();
            }
            Err(error) if !std::mem::replace(&mut self.draft_unsaved, true) => {
                let text = format!("the draft cannot be saved, and would not survive a crash: {error}");
                self.notice(NoticeLevel::Warning, text);
            }
            Err(_) => {}
        }
    }

    /// The prompt that left the editor is stored, or its run is over.
    pub(super) fn prompt_landed(&mut self) {
        self.prompt_in_flight = false;
        if let Some((draft, ticket)) = self.waiting_draft.take() {
            self.save_draft(draft, ticket);
        }
    }

    fn queue_changed(&mut self) {
        self.save_queue();
        self.publish();
        self.send(SessionEvent::QueueChanged);
    }

    /// Keeps the file of queued messages in step with the queue.
    fn save_queue(&mut self) {
        if let Err(error) = self.queue_file.save(&stored_queues(&self.queues)) {
            let text = format!("queued messages cannot be saved, and would not survive a crash: {error}");
            self.notice(NoticeLevel::Warning, text);
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
                    self.defer(body);
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

    // Journal and state.

    /// Writes an entry; a failure is told and the entry kept for later.
    fn append(&mut self, body: EntryBody) -> EntryId {
        let appended = self.store.append(body, self.services.clock.now_ms());
        self.appended(appended)
    }

    /// Keeps an entry for the end of the run, on disk.
    fn defer(&mut self, body: EntryBody) {
        if let Err(error) = self.deferred.push(body, self.services.clock.now_ms()) {
            let text = format!("the result of the command is in memory until the run ends: {error}");
            self.notice(NoticeLevel::Warning, text);
        }
    }

    /// Appends what waited for the end of the run.
    fn append_deferred(&mut self) {
        let entries = self.deferred.take();
        if entries.is_empty() {
            return;
        }
        for entry in entries {
            let appended = self.store.append_entry(entry);
            self.appended(appended);
        }
        if !self.unsaved {
            self.deferred.forget();
        }
    }

    fn appended(&mut self, (entry, written): (Arc<Entry>, Result<(), JournalError>)) -> EntryId {
        self.written(written);
        let id = entry.id.clone();
        self.send(SessionEvent::EntryAppended(entry));
        id
    }

    /// Tells what writing came to, and plans what follows.
    fn written(&mut self, written: Result<(), JournalError>) {
        self.tell_store();
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.unsaved) {
                    let text = "the session file can be written again; nothing was lost";
                    self.notice(NoticeLevel::Info, text.to_owned());
                }
                self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY);
            }
            Err(error) => {
                if self.store.unsaved().is_some() {
                    self.sync_at.get_or_insert_with(|| Instant::now() + SAVE_AGAIN_DELAY);
                }
                // Said once, not for every entry; the status line goes on saying it.
                if !std::mem::replace(&mut self.unsaved, true) {
                    self.notice(NoticeLevel::Error, error.to_string());
                }
            }
        }
    }

    /// Passes on what happened to the file.
    fn tell_store(&mut self) {
        let notices = self.store.take_notices();
        if !notices.is_empty() && self.store.locked_by().is_none() {
            // The session may be in another file now.
            self.queue_file.follow(self.store.path());
            self.draft_file.follow(self.store.path());
            self.deferred.follow(self.store.path());
            self.save_queue();
        }
        for text in notices {
            self.notice(NoticeLevel::Warning, text);
        }
    }

    /// Writes what could not be written before.
    fn flush(&mut self) -> Result<(), SessionError> {
        self.store.flush().map_err(|error| SessionError::Refused(error.to_string()))
    }

    /// Before the session ends: what cannot be saved goes into a copy elsewhere.
    ///
    /// # Errors
    /// Says what is not saved, and where the copy is.
    fn save_or_copy(&mut self) -> Result<(), SessionError> {
        // Why it fails is told below.
        drop(self.store.flush());
        let Some(reason) = self.store.unsaved().map(str::to_owned) else { return Ok(()) };
        let what = match self.store.n_unsaved_messages() {
            0 => "the end of this session may not be saved".to_owned(),
            1 => "1 message of this session is not saved".to_owned(),
            n => format!("{n} messages of this session are not saved"),
        };
        let home = self.services.dirs.home.clone();
        let folders: Vec<PathBuf> =
            [self.services.bash.temp_dir.clone()].into_iter().chain(home).chain([self.cwd.clone()]).collect();
        let copy = match self.store.write_copy(&folders) {
            None => return Ok(()),
            Some(Ok(path)) => format!("a copy of the whole session is in {}", path.display()),
            Some(Err(error)) => format!("no copy of it could be written either ({error})"),
        };
        Err(SessionError::Refused(format!("{what}: {reason}; {copy}")))
    }

    /// Makes the file durable without waiting for it, and tries again to write what
    /// could not be written.
    fn sync_later(&mut self) {
        self.sync_at = None;
        if self.unsaved && self.store.unsaved().is_some() {
            let written = self.store.flush();
            let is_saved = written.is_ok();
            self.written(written);
            if is_saved {
                self.publish();
                self.send(SessionEvent::SelectionChanged);
            }
        }
        if self.syncing.is_some() {
            self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY);
        } else if let Some(unsynced) = self.store.take_unsynced() {
            self.syncing = Some(tokio::task::spawn_blocking(move || unsynced.sync()));
        }
    }

    async fn sync(&mut self) {
        self.sync_at = None;
        if let Some(task) = self.syncing.take() {
            self.synced(task.await.ok());
        }
        if let Some(unsynced) = self.store.take_unsynced() {
            let task = tokio::task::spawn_blocking(move || unsynced.sync());
            self.synced(task.await.ok());
        }
    }

    /// Takes over what a sync came to; `None` if its thread panicked.
    fn synced(&mut self, synced: Option<Synced>) {
        self.syncing = None;
        let was_unsaved = self.store.unsaved().is_some();
        if let Some(synced) = synced {
            self.store.synced(synced);
        }
        self.tell_store();
        let is_unsaved = self.store.unsaved().is_some();
        if is_unsaved {
            self.sync_at.get_or_insert_with(|| Instant::now() + SAVE_AGAIN_DELAY);
        }
        if is_unsaved != was_unsaved {
            self.publish();
            self.send(SessionEvent::SelectionChanged);
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
            unsaved: self.store.unsaved().map(Arc::from),
            steering_delivery: self.queues.delivery(),
            urgent_words: services.settings.urgent_words.clone().into(),
            // The demo model is always there and does not count.
            several_providers: services.has_several_providers(),
            instead_of_demo: services.instead_of_demo(&self.selection.model),
            scope: self.preferences.scope.as_slice().into(),
            skills: Arc::clone(&self.project.skills),
            project: self.project.state.clone(),
        };
        services.bash.session.set(open::session_vars(&state));
        self.state.send_replace(Arc::new(state));
    }
}

/// A queued message as the user wrote it.
fn draft_of(queued: &Queued) -> PromptDraft {
    let blocks = match &*queued.message {
        Message::User(UserMessage { content: UserContent::Blocks(blocks), .. }) => blocks.as_slice(),
        Message::User(_) | Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => &[],
    };
    let images = blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.clone()),
        _ => None,
    });
    PromptDraft { text: queued.text.clone(), images: images.collect() }
}

fn stored_queues(queues: &Queues) -> StoredQueues {
    let (steering, follow_up) = queues.map(draft_of);
    StoredQueues { steering: steering.into(), follow_up: follow_up.into() }
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

/// What a sync came to, once it has ended; never, without one.
async fn ended(syncing: &mut Option<JoinHandle<Synced>>) -> Option<Synced> {
    match syncing {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
