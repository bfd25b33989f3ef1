//! Carries out the commands of a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::ai::{DEMO_PROVIDER, Image, ThinkingLevel};
use crate::session::{
    self, BashId, Entry, EntryId, FoundSessions, IfBusy, LeftBranch, OtherCommands, Phase, PromptDraft,
    Refusal, Reply, Scope, SearchQuery, Secrets, Services, SessionCommand, SessionError, SessionHandle,
    SessionIndex, SessionScope, SessionState, SessionTree, Trace, TraceTime, UsageRecord, UsageReport,
    WhenBusy,
};
use crate::util::worker;

use super::super::export::{ExistingFile, ExportFormat, ExportSource, default_file};
use super::super::sessions::{ListedSession, to_json};
use super::super::wire::conversation;
use super::table::{RpcCommand, StreamingBehavior};
use super::{Outcome, data};

/// Messages of a page of the trace, and days of usage, where the client names no number.
const DEFAULT_LIMIT: usize = 20;
const DEFAULT_DAYS: u64 = 30;

/// Sends the commands of a client to the session.
pub(super) struct Client {
    services: Arc<Services>,
    handle: SessionHandle,
    /// The folder of this directory's sessions, and that of all.
    sessions: PathBuf,
    sessions_root: PathBuf,
}

/// The way to a response, which does not borrow.
pub(super) type Answered = BoxFuture<'static, Outcome>;
type Result<T = Outcome, E = String> = std::result::Result<T, E>;

impl Client {
    pub(super) fn new(
        services: Arc<Services>,
        handle: SessionHandle,
        sessions: PathBuf,
        sessions_root: PathBuf,
    ) -> Self {
        Self { services, handle, sessions, sessions_root }
    }

    pub(super) fn state(&self) -> Arc<SessionState> {
        self.handle.state()
    }

    pub(super) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    pub(super) fn send(&self, command: SessionCommand) {
        self.handle.send(command);
    }

    /// Sends what the session has to do at once, so that commands keep their order; the rest
    /// happens when the future is polled.
    pub(super) fn carry_out(&self, command: RpcCommand) -> Answered {
        match command {
            RpcCommand::Prompt { message, images, streaming_behavior } => {
                self.prompt(message, images, streaming_behavior)
            }
            RpcCommand::Steer { message, images } => self.queue(message, images, WhenBusy::Steer),
            RpcCommand::FollowUp { message, images } => self.queue(message, images, WhenBusy::FollowUp),
            RpcCommand::Abort => self.then(SessionCommand::Abort, |_| Outcome::WhenSettled),
            RpcCommand::ClearQueue => self.then(SessionCommand::TakeQueue, |reply| match reply {
                Reply::Queue(queue) => {
                    let texts = |drafts: Vec<session::PromptDraft>| -> Vec<String> {
                        drafts.into_iter().map(|draft| draft.text).collect()
                    };
                    let (steering, follow_up) = (texts(queue.steering), texts(queue.follow_up));
                    Outcome::data(&json!({ "steering": steering, "followUp": follow_up }))
                }
                _ => Outcome::Done(None),
            }),
            RpcCommand::NewSession { parent_session } => self.new_session(parent_session),
            RpcCommand::SwitchSession { session_path } => {
                let path = self.state().cwd.join(session_path);
                self.then(SessionCommand::Open { path, if_busy: IfBusy::Cancel }, not_cancelled)
            }
            RpcCommand::Fork { entry_id } => {
                let target = EntryId::new(&entry_id);
                let forked = self.handle.post(SessionCommand::Fork { target, if_busy: IfBusy::Cancel });
                answered(async move {
                    match forked.await {
                        Ok(Reply::Forked(prompt)) => {
                            Ok(Outcome::data(&json!({ "text": prompt.text, "cancelled": false })))
                        }
                        Ok(_) => Ok(Outcome::Done(None)),
                        Err(SessionError::Refused(Refusal::NoSuchEntry { .. } | Refusal::NotYourMessage)) => {
                            Err("Invalid entry ID for forking".to_owned())
                        }
                        Err(error) => Err(error.to_string()),
                    }
                })
            }
            RpcCommand::Clone => self.then(SessionCommand::Clone { if_busy: IfBusy::Cancel }, not_cancelled),
            RpcCommand::NavigateTree { entry_id, summarize, custom_instructions } => {
                let target = EntryId::new(&entry_id);
                let summary = match summarize {
                    true => LeftBranch::Summarize { focus: custom_instructions },
                    false => LeftBranch::Leave,
                };
                let command = SessionCommand::Navigate { target, summary, if_busy: IfBusy::Refuse };
                self.then(command, |reply| match reply {
                    Reply::Started => Outcome::WhenNavigated,
                    reply => not_cancelled(reply),
                })
            }
            RpcCommand::SetLabel { entry_id, label } => {
                self.done(SessionCommand::SetLabel { target: EntryId::new(&entry_id), label })
            }
            RpcCommand::Pin { entry_id, pinned } => {
                let target = entry_id.as_deref().map(EntryId::new);
                self.done(SessionCommand::Pin { target, pinned })
            }
            RpcCommand::SetSessionName { name } if name.trim().is_empty() => {
                fails("Session name cannot be empty")
            }
            RpcCommand::SetSessionName { name } => self.done(SessionCommand::SetName { name }),
            RpcCommand::SetModel { provider, model_id } => self.set_model(&provider, &model_id),
            RpcCommand::CycleModel => self.cycle_model(),
            RpcCommand::GetAvailableModels => self.available_models(),
            RpcCommand::SetThinkingLevel { level } => self.set_thinking(&level),
            RpcCommand::CycleThinkingLevel => self.cycle_thinking(),
            RpcCommand::GetAvailableThinkingLevels => {
                let levels = self.state().model.thinking_levels();
                ready(Outcome::data(&json!({ "levels": levels })))
            }
            RpcCommand::SetSteeringMode { mode } => self.change("steeringMode", mode.into()),
            RpcCommand::SetFollowUpMode { mode } => self.change("followUpMode", mode.into()),
            RpcCommand::SetAutoCompaction { enabled } => self.change("compaction.enabled", enabled.into()),
            RpcCommand::SetAutoRetry { enabled } => self.change("retry.enabled", enabled.into()),
            RpcCommand::AbortRetry => {
                if self.state().phase == Phase::Retrying {
                    self.send(SessionCommand::Abort);
                }
                ready(Outcome::Done(None))
            }
            RpcCommand::Compact { custom_instructions, review } => self.compact(custom_instructions, review),
            RpcCommand::GetSummaryDraft => self.summary_draft(),
            RpcCommand::DecideSummary { decision, text } => self.decide_summary(decision, text),
            RpcCommand::Handoff { goal } => self.handoff(goal),
            RpcCommand::ImportSession { path } => self.import_session(&path),
            RpcCommand::ExportSession { output_path, mask_secrets } => {
                self.export_session(&output_path, mask_secrets)
            }
            RpcCommand::Reload => self.done(SessionCommand::Reload),
            RpcCommand::GetSettings => self.settings(),
            RpcCommand::SetSetting { key, value } => self.set_setting(key, value),
            RpcCommand::SetScopedModels { patterns } => self.set_scope(patterns),
            RpcCommand::DeliverQueue => self.done(SessionCommand::DeliverNow),
            RpcCommand::Bash { command, exclude_from_context } => self.bash(command, exclude_from_context),
            RpcCommand::AbortBash => self.done(SessionCommand::CancelBash { id: None }),
            RpcCommand::ExportHtml { output_path } => self.export_html(output_path),
            RpcCommand::GetState => self.of_tree({
                let handle = self.handle.clone();
                move |tree| Ok(data::state(&handle.state(), data::n_messages(tree)).to_string())
            }),
            RpcCommand::GetEntries { since } => {
                self.of_tree(move |tree| data::entries(tree, since.as_deref()))
            }
            RpcCommand::GetTree => self.of_tree(|tree| Ok(data::tree(tree))),
            RpcCommand::GetForkMessages => self.of_tree(|tree| Ok(data::fork_messages(tree).to_string())),
            RpcCommand::GetMessages => self.of_context(|branch| json!({ "messages": conversation(branch) })),
            RpcCommand::GetLastAssistantText => self.of_context(data::last_text),
            RpcCommand::GetSessionStats => self.stats(),
            RpcCommand::GetCommands => {
                let state = self.state();
                let wants = state.settings.values.skill_commands;
                let skills = if wants { &state.skills[..] } else { &[] };
                ready(Outcome::data(&data::commands(&state.templates, skills)))
            }
            RpcCommand::ListSessions { all, search } => self.list_sessions(all, search),
            RpcCommand::GetTrace { session, limit, before } => self.of_trace(session, move |trace| {
                let before = before.map(|before| before.parse::<TraceTime>()).transpose()?;

                Ok(json!(trace.page(limit.unwrap_or(DEFAULT_LIMIT), before)))
            }),
            RpcCommand::GetToolStats { session } => {
                self.of_trace(session, |trace| Ok(json!({ "tools": trace.tool_stats() })))
            }
            RpcCommand::GetContext => self.then(SessionCommand::DescribeContext, |reply| match reply {
                Reply::ContextReport(report) => Outcome::data(&json!(report)),
                _ => Outcome::Done(None),
            }),
            RpcCommand::GetUsage { days } => self.usage(days.unwrap_or(DEFAULT_DAYS).max(1)),
        }
    }

    // Sending.

    /// Sends a command; `outcome` follows from its reply.
    pub(super) fn then(
        &self,
        command: SessionCommand,
        outcome: impl FnOnce(Reply) -> Outcome + Send + 'static,
    ) -> Answered {
        let reply = self.handle.post(command);
        answered(async move { reply.await.map(outcome).map_err(|error| error.to_string()) })
    }

    pub(super) fn done(&self, command: SessionCommand) -> Answered {
        self.then(command, |_| Outcome::Done(None))
    }

    fn change(&self, key: &str, value: Value) -> Answered {
        self.done(SessionCommand::ChangeSetting { key: key.to_owned(), value: Some(value) })
    }

    fn prompt(&self, text: String, images: Vec<Image>, behavior: Option<StreamingBehavior>) -> Answered {
        let when_busy = match behavior {
            Some(StreamingBehavior::Steer) => WhenBusy::Steer,
            Some(StreamingBehavior::FollowUp) => WhenBusy::FollowUp,
            None => WhenBusy::Refuse,
        };
        let reply = self.handle.post(SessionCommand::Prompt { prompt: draft(text, images), when_busy });
        answered(async move {
            match reply.await {
                Ok(Reply::Started) => Ok(disposition("started")),
                Ok(_) => Ok(disposition("queued")),
                Err(SessionError::Refused(Refusal::Working)) => Err(
                    "the agent is working; set streamingBehavior to \"steer\" or \"followUp\" to queue the message"
                        .to_owned(),
                ),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn queue(&self, text: String, images: Vec<Image>, when_busy: WhenBusy) -> Answered {
        let command = SessionCommand::Prompt { prompt: draft(text, images), when_busy };
        self.then(command, |_| disposition("queued"))
    }

    fn new_session(&self, parent: Option<String>) -> Answered {
        let command = match parent {
            Some(parent) => {
                let parent = self.state().cwd.join(parent);
                SessionCommand::NewChild { parent, if_busy: IfBusy::Cancel }
            }
            None => SessionCommand::New { if_busy: IfBusy::Cancel },
        };
        self.then(command, not_cancelled)
    }

    fn bash(&self, command: String, exclude_from_context: bool) -> Answered {
        if command.is_empty() {
            return fails("the command is empty");
        }
        let others = OtherCommands::RunBeside;
        let command = SessionCommand::RunBash { command, exclude_from_context, others };
        self.then(command, |reply| match reply {
            Reply::BashStarted(id) => Outcome::WhenBashEnded(id),
            _ => Outcome::WhenBashEnded(BashId::default()),
        })
    }

    // Models.

    fn set_model(&self, provider: &str, model_id: &str) -> Answered {
        let catalog = self.services.catalog.get();
        let is_usable = self.services.credentials.usable_in(&catalog);
        let Some(model) = catalog.get(provider, model_id).filter(|_| is_usable(provider)).cloned() else {
            return fails(format!("Model not found: {provider}/{model_id}"));
        };
        let command = SessionCommand::SetModel { reference: model.reference(), scope: Scope::Session };
        self.then(command, move |_| Outcome::data(&data::model(&model)))
    }

    fn cycle_model(&self) -> Answered {
        let handle = self.handle.clone();
        self.or_null(SessionCommand::CycleModel { forward: true }, move || {
            let state = handle.state();
            json!({
                "model": data::model(&state.model),
                "thinkingLevel": state.thinking,
                "isScoped": !state.scope.is_empty(),
            })
        })
    }

    fn cycle_thinking(&self) -> Answered {
        let handle = self.handle.clone();
        self.or_null(SessionCommand::CycleThinking, move || json!({ "level": handle.state().thinking }))
    }

    /// The data is null if there is nothing else to select.
    fn or_null(&self, command: SessionCommand, data: impl FnOnce() -> Value + Send + 'static) -> Answered {
        let reply = self.handle.post(command);
        answered(async move {
            match reply.await {
                Ok(_) => Ok(Outcome::data(&data())),
                Err(SessionError::Refused(Refusal::NoOtherModel | Refusal::NoThinkingLevels { .. })) => {
                    Ok(Outcome::data(&Value::Null))
                }
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn available_models(&self) -> Answered {
        let current = &self.state().model.provider;
        let models = self.services.usable_models();
        let models: Vec<Value> = models
            .iter()
            .filter(|model| model.provider != DEMO_PROVIDER || current == DEMO_PROVIDER)
            .map(|model| data::model(model))
            .collect();
        ready(Outcome::data(&json!({ "models": models })))
    }

    fn set_thinking(&self, level: &str) -> Answered {
        let Some(level) = ThinkingLevel::parse(level) else {
            let names: Vec<&str> = ThinkingLevel::ALL.into_iter().map(ThinkingLevel::name).collect();
            return fails(format!("unknown thinking level; choose one of {}", names.join(", ")));
        };
        let level = self.state().model.clamp_thinking(level);
        self.done(SessionCommand::SetThinking { level, scope: Scope::Session })
    }

    // Reading.

    /// Reads the tree on a thread that may wait.
    fn of_tree(&self, read: impl FnOnce(&SessionTree) -> Result<String> + Send + 'static) -> Answered {
        let reply = self.handle.post(SessionCommand::ReadTree);
        answered(async move {
            match reply.await.map_err(|error| error.to_string())? {
                Reply::Tree(tree) => {
                    blocking(move || read(&tree)).await?.map(|data| Outcome::Done(Some(data)))
                }
                _ => Ok(Outcome::Done(None)),
            }
        })
    }

    fn stats(&self) -> Answered {
        let handle = self.handle.clone();
        let tree = self.handle.post(SessionCommand::ReadTree);
        let estimate = self.handle.post(SessionCommand::DescribeContext);
        answered(async move {
            let Reply::Tree(tree) = tree.await.map_err(|error| error.to_string())? else {
                return Ok(Outcome::Done(None));
            };
            let estimate = match estimate.await {
                Ok(Reply::ContextReport(report)) => Some(report.tokens),
                _ => None,
            };
            let data = blocking(move || data::stats(&handle.state(), &tree, estimate));
            Ok(Outcome::data(&data.await?))
        })
    }

    fn of_context(&self, read: impl FnOnce(&[Arc<Entry>]) -> Value + Send + 'static) -> Answered {
        let reply = self.handle.post(SessionCommand::ReadContext);
        answered(async move {
            match reply.await.map_err(|error| error.to_string())? {
                Reply::Context(branch) => {
                    Ok(Outcome::Done(Some(blocking(move || read(&branch).to_string()).await?)))
                }
                _ => Ok(Outcome::Done(None)),
            }
        })
    }

    /// Reads the trace of this session, or of the one with this file or id.
    fn of_trace(
        &self,
        wanted: Option<String>,
        read: impl FnOnce(&Trace) -> Result<Value> + Send + 'static,
    ) -> Answered {
        let (state, folder, root) = (self.state(), self.sessions.clone(), self.sessions_root.clone());
        answered(async move {
            let data = blocking(move || {
                let path = match wanted {
                    Some(wanted) => find(&wanted, &root, &folder, &state.cwd)?,
                    None => {
                        state.path.clone().filter(|_| state.on_disk).ok_or("this session is not saved yet")?
                    }
                };
                let trace = session::read_trace(&path).map_err(|error| error.to_string())?;
                read(&trace).map(|data| data.to_string())
            });
            data.await?.map(|data| Outcome::Done(Some(data)))
        })
    }

    fn list_sessions(&self, all: bool, search: Option<String>) -> Answered {
        let (cwd, folder, root) =
            (self.state().cwd.clone(), self.sessions.clone(), self.sessions_root.clone());
        answered(async move {
            let query = search.as_deref().map(SearchQuery::parse).transpose();
            let query = query.map_err(|error| error.to_string())?.flatten();
            let sessions = blocking(move || {
                let scope =
                    if all { SessionScope::All } else { SessionScope::Folder { folder, cwd: Some(cwd) } };
                let mut index = SessionIndex::load(&root);
                index.refresh(&scope, &|| false, &mut |_| {});
                let found: Vec<ListedSession> = match &query {
                    None => index.sessions(&scope).into_iter().map(ListedSession::from).collect(),
                    Some(query) => {
                        let mut found = Vec::new();
                        index.search(&scope, query, &|| false, &mut |hit| found.push(hit.into()));
                        found
                    }
                };
                // Without it the next list takes longer, which is all.
                drop(index.save());
                found.iter().map(to_json).collect::<Vec<Value>>()
            });
            Ok(Outcome::data(&json!({ "sessions": sessions.await? })))
        })
    }

    fn usage(&self, days: u64) -> Answered {
        let (root, catalog) = (self.sessions_root.clone(), self.services.catalog.get());
        let (now_ms, zone) = (self.services.clock.now_ms(), self.services.clock.zone());
        let since_ms = zone.day_start(now_ms, days - 1);
        answered(async move {
            let report = blocking(move || {
                let records = session::usage_since(&root, since_ms);
                let rates = |record: &UsageRecord| {
                    catalog.get(&record.provider, &record.model).map(|model| model.cost.clone())
                };
                json!(UsageReport::of(&records, &zone, rates))
            });
            Ok(Outcome::data(&report.await?))
        })
    }

    fn export_html(&self, output: Option<String>) -> Answered {
        let state = self.state();
        let reply = self.handle.post(SessionCommand::ReadTree);
        answered(async move {
            let Reply::Tree(tree) = reply.await.map_err(|error| error.to_string())? else {
                return Ok(Outcome::Done(None));
            };
            if tree.is_empty() {
                return Err("there is nothing to export yet".to_owned());
            }
            let path = match output {
                Some(output) => state.cwd.join(output),
                None => default_file(&state.cwd, state.path.as_deref(), &state.id),
            };
            let source = ExportSource { tree, header: (*state.header).clone(), name: state.name.clone() };
            let target = path.clone();
            let write = move || {
                source.write_file(ExportFormat::Html, Secrets::Keep, 0, &target, ExistingFile::Replace)
            };
            blocking(write).await?.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(Outcome::data(&json!({ "path": path.to_string_lossy() })))
        })
    }
}

/// The session with this file, id or start of an id.
fn find(wanted: &str, root: &Path, folder: &Path, cwd: &Path) -> Result<PathBuf> {
    if wanted.trim().is_empty() {
        return Err("the id of the session is empty".to_owned());
    }
    if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
        return Ok(cwd.join(wanted));
    }
    let FoundSessions { here, elsewhere } = session::find(root, folder, cwd, wanted);
    match (here.as_slice(), elsewhere.as_slice()) {
        ([path, ..], _) | ([], [path]) => Ok(path.clone()),
        ([], []) => Err(format!("no session id starts with \"{wanted}\"")),
        ([], _) => Err(format!("several session ids start with \"{wanted}\"")),
    }
}

pub(super) fn answered(outcome: impl Future<Output = Result> + Send + 'static) -> Answered {
    async move { outcome.await.unwrap_or_else(Outcome::Failed) }.boxed()
}

pub(super) fn ready(outcome: Outcome) -> Answered {
    std::future::ready(outcome).boxed()
}

pub(super) fn fails(error: impl Into<String>) -> Answered {
    ready(Outcome::Failed(error.into()))
}

pub(super) fn not_cancelled(_: Reply) -> Outcome {
    Outcome::data(&json!({ "cancelled": false }))
}

fn disposition(name: &str) -> Outcome {
    Outcome::data(&json!({ "disposition": name }))
}

/// A prompt of a client, whose images also name their type, which is no field of an image.
fn draft(text: String, mut images: Vec<Image>) -> PromptDraft {
    for image in &mut images {
        image.extra.shift_remove("type");
    }
    PromptDraft { text, images, ..PromptDraft::default() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    worker::run("rpc", work).await.map_err(|error| error.to_string())
}
