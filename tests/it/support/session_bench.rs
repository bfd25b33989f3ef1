//! Runs a session task against a scripted provider, in a folder of its own.
#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pi::agent::{AgentEvent, Tool, ToolRegistry};
use pi::ai::{
    self, Catalog, FakeAnswer, FakeProvider, HttpOptions, HttpProvider, LiveCatalog, Message, Provider,
    Quotas, Transport,
};
use pi::config::{
    Accounts, AuthFile, Authorised, Credentials, Dirs, Endpoints, Env, LiveSettings, Settings, TrustPolicy,
};
use pi::session::{
    AllowAll, Deltas, Disk, Entry, EntryBody, ModelOptions, OpenError, OpenSession, Opened, Phase,
    PromptDraft, PromptOptions, Reply, ResourceOptions, Services, SessionCommand, SessionError, SessionEvent,
    SessionEvents, SessionHandle, SessionMessage, SessionState, SessionUpdate, SystemDisk, TakenQueue,
    ToolGate, TrustOptions, WhenBusy, start,
};
use pi::tools::{BashConfig, ImageLimits, ToolsConfig, builtins};
use pi::util::clock::Clock;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent_bench::{TestTool, line, message_line};
use super::agent_order::AgentOrder;

/// A session that is silent for longer has lost something.
const PATIENCE: Duration = Duration::from_secs(20);

/// When every test begins.
pub(crate) const START_MS: u64 = 1_795_253_027_280;

/// The parts of a session, and the folder it works in.
pub(crate) struct SessionBench {
    pub(crate) folder: TempDir,
    /// In place of `folder`.
    root: Option<PathBuf>,
    pub(crate) provider: FakeProvider,
    pub(crate) clock: Clock,
    settings: Value,
    tools: Vec<Arc<dyn Tool>>,
    model: &'static str,
    /// In place of the models of `acme`.
    acme: Option<Value>,
    prompt: &'static str,
    /// Whether instruction files are read.
    context_files: bool,
    /// URL and API of the server that answers instead of the script.
    server: Option<(String, &'static str)>,
    /// Answers in place of the script.
    answered_by: Option<Arc<dyn Provider>>,
    trust: TrustPolicy,
    gate: Arc<dyn ToolGate>,
    /// Where new sessions go, below the folder.
    sessions: Option<&'static str>,
    disk: Arc<dyn Disk>,
}

impl SessionBench {
    pub(crate) fn new(answers: impl IntoIterator<Item = FakeAnswer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "agent", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            root: None,
            provider: FakeProvider::new(answers),
            clock: Clock::manual(START_MS),
            settings: json!({}),
            tools: Vec::new(),
            model: "m-1",
            acme: None,
            prompt: "Be brief.",
            context_files: false,
            server: None,
            answered_by: None,
            trust: TrustPolicy::default(),
            gate: Arc::new(AllowAll),
            sessions: Some("sessions"),
            disk: Arc::new(SystemDisk),
        }
    }

    pub(crate) fn tools(mut self, tools: impl IntoIterator<Item = TestTool>) -> Self {
        self.tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
        self
    }

    /// The tools that come with pi, in place of others.
    pub(crate) fn builtin_tools(mut self) -> Self {
        let bash = BashConfig::new(self.path("tmp"));
        self.tools = builtins(&ToolsConfig { home: None, images: ImageLimits::default(), bash });
        self
    }

    /// The tools that pi offers by default.
    pub(crate) fn default_tools(mut self) -> Self {
        self = self.builtin_tools();
        let defaults = Settings::default().default_tools;
        self.tools.retain(|tool| defaults.contains(&tool.spec().name));
        self
    }

    pub(crate) fn settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    pub(crate) fn model(mut self, id: &'static str) -> Self {
        self.model = id;
        self
    }

    /// Who decides about the folder `work`.
    pub(crate) fn trust(mut self, trust: TrustPolicy) -> Self {
        self.trust = trust;
        self
    }

    /// Reads instruction files.
    pub(crate) fn context_files(mut self) -> Self {
        self.context_files = true;
        self
    }

    /// Who decides about calls of tools.
    pub(crate) fn gate(mut self, gate: impl ToolGate + 'static) -> Self {
        self.gate = Arc::new(gate);
        self
    }

    /// Writes `SKILL.md` into the folder `name`, below the bench's own.
    pub(crate) fn skill(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name).join("SKILL.md");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The provider `acme` as an entry of `models.json`.
    pub(crate) fn acme(mut self, provider: Value) -> Self {
        self.acme = Some(provider);
        self
    }

    /// The beginning of the system prompt; empty for that of pi.
    pub(crate) fn prompt(mut self, prompt: &'static str) -> Self {
        self.prompt = prompt;
        self
    }

    /// Lets a server answer, over HTTP; one that is silent for half a second has failed.
    pub(crate) fn served_by(mut self, url: &str, api: &'static str) -> Self {
        self.server = Some((url.to_owned(), api));
        self
    }

    /// Lets another provider answer.
    pub(crate) fn answered_by(mut self, provider: Arc<dyn Provider>) -> Self {
        self.answered_by = Some(provider);
        self
    }

    fn answering(&self) -> Arc<dyn Provider> {
        if let Some(provider) = &self.answered_by {
            return Arc::clone(provider);
        }
        let Some(_) = &self.server else { return Arc::new(self.provider.clone()) };
        let idle_timeout = Some(Duration::from_millis(500));
        let options = HttpOptions { idle_timeout, ..HttpOptions::default() };
        Arc::new(HttpProvider::new(Transport::new(), self.clock.clone(), options))
    }

    /// The disk for session files.
    pub(crate) fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    pub(crate) fn in_memory(mut self) -> Self {
        self.sessions = None;
        self
    }

    /// Works in the folder of another bench, perhaps of another process.
    pub(crate) fn at(mut self, root: PathBuf) -> Self {
        self.root = Some(root);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(self.folder.path()).join(name)
    }

    /// Writes a session file that works in this folder; `lines` without header.
    pub(crate) fn session_file(&self, lines: &str) -> PathBuf {
        let path = self.path("given.jsonl");
        fs::write(&path, format!("{}\n{lines}", self.header())).unwrap();
        path
    }

    pub(crate) fn header(&self) -> String {
        let cwd = self.path("work");
        json!({"type": "session", "version": 3, "id": "given", "timestamp": "2026-11-21T09:00:00.000Z", "cwd": cwd})
            .to_string()
    }

    /// `acme/m-1` thinks, `acme/m-2` does not; the key of `keyed/m-3` is in the file
    /// `key`, which a command prints. Keys of built-in models are in `agent/auth.json`.
    fn models(&self) -> Value {
        let server = self.server.as_ref().map(|(url, api)| (url.as_str(), *api));
        let (base_url, api) = server.unwrap_or(("http://127.0.0.1:1", "openai-completions"));
        let (input, compat) = (json!(["text", "image"]), json!({"supportsAssistantPrefill": true}));
        let acme = json!([
            {"id": "m-1", "reasoning": true, "contextWindow": 1_000, "input": input},
            {"id": "m-2", "contextWindow": 2_000, "input": input, "compat": compat},
        ]);
        let key = format!("!cat '{}'", self.path("key").display());
        let acme =
            self.acme.clone().unwrap_or_else(|| json!({"baseUrl": base_url, "api": api, "models": acme}));
        json!({"providers": {
            "acme": acme,
            "keyed": {"baseUrl": base_url, "api": api, "apiKey": key, "models": [{"id": "m-3"}]},
        }})
    }

    /// Where the settings of the user are.
    pub(crate) fn settings_file(&self) -> PathBuf {
        self.path("agent").join("settings.json")
    }

    /// The settings the bench was given, with `acme` as the default provider, unless a
    /// session of the bench has stored others.
    fn live_settings(&self) -> LiveSettings {
        let file = self.settings_file();
        if !file.exists() {
            let mut settings = json!({"defaultProvider": "acme", "defaultModel": self.model});
            settings.as_object_mut().unwrap().extend(self.settings.as_object().unwrap().clone());
            fs::create_dir_all(self.path("agent")).unwrap();
            fs::write(&file, settings.to_string()).unwrap();
        }
        let (settings, problems) = LiveSettings::load(file, []);
        assert!(problems.is_empty(), "{problems:?}");
        settings
    }

    pub(crate) fn services(&self) -> Services {
        let mut catalog = Catalog::builtin();
        catalog.add_user_models(&self.models().to_string()).unwrap();
        let catalog = Arc::new(LiveCatalog::new(catalog));
        let file = Arc::new(AuthFile::open(self.path("agent").join("auth.json")));
        let (transport, clock) = (Transport::new(), self.clock.clone());
        let accounts = Accounts::new(transport, clock, Endpoints::default(), Arc::clone(&file), None);
        let credentials = Credentials::new(Env::of(&[])).with_store(file, accounts);
        let provider = self.answering();
        Services {
            provider: Arc::new(Authorised::new(provider, credentials.clone(), Arc::clone(&catalog))),
            catalog,
            credentials,
            tools: ToolRegistry::new(self.tools.clone()),
            bash: BashConfig::new(self.path("tmp")),
            settings: self.live_settings(),
            dirs: Dirs { home: None, agent: self.path("agent"), sessions: self.path("sessions") },
            clock: self.clock.clone(),
            model: ModelOptions::default(),
            prompt: PromptOptions {
                custom: Some(self.prompt.to_owned()).filter(|prompt| !prompt.is_empty()),
                addendum: None,
                no_context_files: !self.context_files,
                docs_command: self.prompt.is_empty().then(|| "/usr/local/bin/pi docs".to_owned()),
            },
            skills: ResourceOptions::default(),
            templates: ResourceOptions::default(),
            trust: TrustOptions { flag: self.trust.flag, can_ask: self.trust.can_ask },
            gate: Arc::clone(&self.gate),
            disk: Arc::clone(&self.disk),
            sessions: self.sessions.map(|name| self.path(name)),
            long_cache: false,
            warms_caches: true,
            quotas: Quotas::default(),
        }
    }

    /// A new session.
    pub(crate) async fn start(&self) -> Session {
        self.open(OpenSession::New).await.unwrap()
    }

    /// The session in `path`, with its own model.
    pub(crate) async fn resume(&self, path: &Path) -> Session {
        self.open(OpenSession::File(path.to_owned())).await.unwrap()
    }

    /// Two new sessions of one process, side by side.
    pub(crate) async fn start_two(&self) -> [Session; 2] {
        let services = Arc::new(self.services());
        let first = self.open_with(&services, OpenSession::New).await.unwrap();
        [first, self.open_with(&services, OpenSession::New).await.unwrap()]
    }

    pub(crate) async fn open(&self, open: OpenSession) -> Result<Session, OpenError> {
        self.open_with(&Arc::new(self.services()), open).await
    }

    async fn open_with(&self, services: &Arc<Services>, open: OpenSession) -> Result<Session, OpenError> {
        let (handle, events) = start(Arc::clone(services), self.path("work"), open, Deltas::Wanted).await?;
        Ok(Session { handle, events, order: AgentOrder::default(), kept: Vec::new(), lines: Vec::new() })
    }
}

/// A running session, seen by its one client.
pub(crate) struct Session {
    pub(crate) handle: SessionHandle,
    events: SessionEvents,
    order: AgentOrder,
    kept: Vec<SessionEvent>,
    /// All events so far as lines, pieces of answers, entries and questions left out.
    pub(crate) lines: Vec<String>,
}

impl Session {
    pub(crate) async fn request(&self, command: SessionCommand) -> Result<Reply, SessionError> {
        self.handle.request(command).await
    }

    pub(crate) async fn prompt(&self, text: &str) -> Reply {
        self.say(text, WhenBusy::Steer).await
    }

    pub(crate) async fn say(&self, text: &str, when_busy: WhenBusy) -> Reply {
        self.request(prompt(text, when_busy)).await.unwrap()
    }

    /// The next event; checks order, and that finished items are on disk.
    pub(crate) async fn next(&mut self) -> SessionEvent {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let event = event.unwrap_or_else(|_| panic!("nothing happens after {:?}", self.lines));
        let update = event.expect("the session goes on");
        self.note(&update);
        update.event
    }

    /// The next event, of a session whose disk may hold less than is shown.
    pub(crate) async fn next_unchecked(&mut self) -> SessionEvent {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let event = event.unwrap_or_else(|_| panic!("nothing happens after {:?}", self.lines));
        let SessionUpdate { event, .. } = event.expect("the session goes on");
        if let SessionEvent::Agent(event) = &event {
            self.order.accept(event).unwrap();
        }
        event
    }

    /// Takes events until one fits, which it returns.
    pub(crate) async fn until(&mut self, fits: impl Fn(&SessionEvent) -> bool) -> SessionEvent {
        loop {
            let event = self.next().await;
            if fits(&event) {
                return event;
            }
        }
    }

    pub(crate) async fn opened(&mut self) -> Arc<Opened> {
        match self.until(|event| matches!(event, SessionEvent::Opened(_))).await {
            SessionEvent::Opened(opened) => opened,
            _ => unreachable!("until returns what fits"),
        }
    }

    /// Takes events until the session is idle again; the lines since the last call.
    pub(crate) async fn settled(&mut self) -> Vec<String> {
        self.until(|event| matches!(event, SessionEvent::Settled { .. })).await;
        assert!(self.order.is_complete(), "settled in the middle of a run");
        assert_eq!(self.handle.state().phase, Phase::Idle);
        std::mem::take(&mut self.lines)
    }

    /// Prompts and takes events until the session is idle again.
    pub(crate) async fn ask(&mut self, text: &str) -> Vec<String> {
        self.prompt(text).await;
        self.settled().await
    }

    /// The events that are there already, as lines.
    pub(crate) fn waiting(&mut self) -> Vec<String> {
        while let Some(update) = self.events.try_recv() {
            self.note(&update);
        }
        std::mem::take(&mut self.lines)
    }

    /// The events that are there already, and those [`Self::next_kept`] returned.
    pub(crate) fn waiting_events(&mut self) -> Vec<SessionEvent> {
        let waiting = std::iter::from_fn(|| self.events.try_recv()).map(|update| update.event);
        std::mem::take(&mut self.kept).into_iter().chain(waiting).collect()
    }

    /// Like [`Self::next_unchecked`]; [`Self::waiting_events`] returns the event again.
    pub(crate) async fn next_kept(&mut self) -> SessionEvent {
        let event = self.next_unchecked().await;
        self.kept.push(event.clone());
        event
    }

    /// Waits until the session's task, which was told to stop, has released everything.
    pub(crate) async fn gone(mut self) {
        while self.events.recv().await.is_some() {}
    }

    /// Ends the session in order.
    pub(crate) async fn shut_down(mut self) -> Vec<String> {
        self.request(SessionCommand::Shutdown).await.unwrap();
        self.waiting()
    }

    /// Drops the handle; returns the session's file and its remaining events.
    pub(crate) fn let_go(self) -> (PathBuf, SessionEvents) {
        (self.path(), self.events)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.handle.state().path.clone().unwrap()
    }

    /// The contents of the file: one line per entry.
    pub(crate) fn on_disk(&self) -> Vec<String> {
        entries(&self.path()).iter().map(entry_line).collect()
    }

    fn note(&mut self, SessionUpdate { event, state }: &SessionUpdate) {
        match event {
            SessionEvent::Agent(event) => {
                self.order.accept(event).unwrap();
                match event {
                    AgentEvent::MessageEnd(message) => self.check_on_disk(message, state),
                    AgentEvent::ToolEnd { result, .. } => {
                        self.check_on_disk(&Arc::new(Message::ToolResult(Arc::clone(result))), state);
                    }
                    _ => {}
                }
                if !matches!(event, AgentEvent::MessageUpdate(_)) {
                    self.lines.push(line(event));
                }
            }
            SessionEvent::EntryAppended(_)
            | SessionEvent::Question(_)
            | SessionEvent::QuestionClosed { .. }
            | SessionEvent::ProjectChanged
            | SessionEvent::SettingsChanged { .. } => {}
            SessionEvent::BashEnded { execution, .. } => {
                self.check_command_on_disk(&execution.command);
                self.lines.push(event_line(event));
            }
            other => self.lines.push(event_line(other)),
        }
    }

    /// Anything shown as finished must survive every later event.
    fn check_on_disk(&self, message: &Arc<Message>, shown_with: &SessionState) {
        let state = self.handle.state();
        // The session may have been left since.
        let is_open = state.path == shown_with.path;
        let path =
            shown_with.path.as_ref().filter(|path| if is_open { state.on_disk } else { path.exists() });
        let Some(path) = path else { return };
        let written = entries(path).iter().any(|entry| {
            matches!(&entry.body, EntryBody::Message { message: SessionMessage::Model(written), .. }
                if json!(written) == json!(message))
        });
        assert!(written, "shown and not on disk: {}", message_line(message));
    }

    /// The same of a command of the user: in the session file, or beside it while a
    /// run is going on.
    fn check_command_on_disk(&self, command: &str) {
        let state = self.handle.state();
        let Some(path) = &state.path else { return };
        let name = path.file_name().unwrap().to_string_lossy();
        let deferred = fs::read_to_string(path.with_file_name(format!(".{name}.deferred")));
        let deferred = deferred.unwrap_or_default();
        let deferred = deferred.lines().map(|line| Entry::parse(line).unwrap());
        let mut stored = entries(path).into_iter().chain(deferred);
        let written = stored.any(|entry| {
            matches!(entry.body, EntryBody::Message { message: SessionMessage::BashExecution(stored), .. }
                if stored.command == command)
        });
        assert!(written, "shown and not on disk: ran {command}");
    }
}

pub(crate) fn prompt(text: &str, when_busy: WhenBusy) -> SessionCommand {
    SessionCommand::Prompt { prompt: PromptDraft::from(text), when_busy }
}

/// The entries of a session file, each line of which must be one.
pub(crate) fn entries(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| Entry::parse(line).unwrap()).collect()
}

pub(crate) fn entry_line(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::Message { message: SessionMessage::Model(message), .. } => message_line(message),
        EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => {
            format!("ran {}", execution.command)
        }
        EntryBody::ModelChange(change) => format!("model {}/{}", change.provider, change.model_id),
        EntryBody::ThinkingLevelChange(change) => format!("thinking {}", change.thinking_level),
        EntryBody::ContextEdit(edit) => {
            if edit.replacement.is_none() {
                "hidden".to_owned()
            } else {
                "edited".to_owned()
            }
        }
        EntryBody::SessionInfo(info) => format!("name {}", info.name),
        other => format!("{other:?}"),
    }
}

fn prompt_texts(taken: &TakenQueue) -> Vec<String> {
    taken.clone().into_prompts().into_iter().map(|prompt| prompt.text).collect()
}

fn event_line(event: &SessionEvent) -> String {
    match event {
        SessionEvent::Opened(opened) => {
            format!("opened with {} after {:?}", opened.tail.len(), opened.n_earlier)
        }
        SessionEvent::QueueChanged => "queue changed".to_owned(),
        SessionEvent::QueueReturned(taken) => format!("returned {}", prompt_texts(taken).join(", ")),
        SessionEvent::PromptReturned { prompt, error } => format!("returned {}: {error}", prompt.text),
        SessionEvent::CompactionStarted { reason } => format!("compaction start {reason:?}"),
        SessionEvent::CompactionEnded { aborted, error, .. } => format!("compaction end {aborted} {error:?}"),
        SessionEvent::SummaryDrafted(draft) => format!("summary drafted {}", draft.text),
        SessionEvent::SummaryDecided { accepted } => format!("summary accepted {accepted}"),
        SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay, error } => {
            format!("summary retry {attempt} of {max_attempts} in {delay:?}: {error}")
        }
        SessionEvent::SummaryRetryStarted { source } => format!("summary retry start {source:?}"),
        SessionEvent::SummaryRetriesFinished => "summary retries finished".to_owned(),
        SessionEvent::HandoffStarted => "handoff start".to_owned(),
        SessionEvent::HandoffEnded { prompt, aborted } => {
            let text = prompt.as_ref().map(|prompt| prompt.text.as_str());
            format!("handoff end {aborted} {text:?}")
        }
        SessionEvent::BranchSummaryStarted => "branch summary start".to_owned(),
        SessionEvent::BranchSummaryEnded { aborted, error, .. } => {
            format!("branch summary end {aborted} {error:?}")
        }
        SessionEvent::Navigated(navigated) => {
            let prompt = navigated.prompt.as_ref().map(|prompt| prompt.text.as_str());
            format!("navigated to {} entries, back {prompt:?}", navigated.branch.tail.len())
        }
        SessionEvent::Ended { reason } => format!("ended: {reason}"),
        SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
            format!("retry {attempt} of {max_attempts} in {delay:?}: {error}")
        }
        SessionEvent::RetryEnded { success, attempt, final_error } => match final_error {
            Some(error) => format!("retry {attempt} ended: {error}"),
            None => format!("retry {attempt} ended: {success}"),
        },
        SessionEvent::BashStarted { command, .. } => format!("bash start {command}"),
        SessionEvent::BashOutput { chunk, .. } => format!("bash output {}", chunk.trim_end()),
        SessionEvent::BashEnded { execution, .. } => format!("bash end {:?}", execution.exit_code),
        SessionEvent::SelectionChanged => "selection changed".to_owned(),
        SessionEvent::Notice { level, text } => format!("{level:?}: {text}"),
        SessionEvent::Settled { aborted } => {
            if *aborted {
                "settled aborted".to_owned()
            } else {
                "settled".to_owned()
            }
        }
        SessionEvent::Agent(_)
        | SessionEvent::EntryAppended(_)
        | SessionEvent::ProjectChanged
        | SessionEvent::SettingsChanged { .. }
        | SessionEvent::Question(_)
        | SessionEvent::QuestionClosed { .. } => {
            unreachable!("shown elsewhere")
        }
    }
}

/// The messages of a request as a provider would get them: role and text.
pub(crate) fn sent(request: &ai::Request) -> Vec<String> {
    let body = ai::preview_request(request).unwrap().body;
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| {
            let role = message["role"].as_str().unwrap();
            let text = match &message["content"] {
                Value::String(text) => text.clone(),
                Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
                _ => String::new(),
            };
            let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
            if calls > 0 { format!("{role} {text}[{calls}]") } else { format!("{role} {text}") }
        })
        .filter(|line| !line.starts_with("system") && !line.starts_with("developer"))
        .collect()
}
