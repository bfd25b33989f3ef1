//! Turns the events of a session into updates of the protocol.
//!
//! Runs on the thread that writes. Prompts are not echoed: the client shows them already.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandsUpdate, CompactionStatus, CompactionUpdate, ConfigOptionUpdate,
    ContentChunk, Cost, MessageId, Meta, Notice, NoticeSeverity, SessionConfigOption, SessionInfoUpdate,
    SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    UsageUpdate,
};
use serde_json::{Value, json};

use crate::agent::{AgentEvent, ToolOutput};
use crate::ai::{
    self, AssistantBlock, AssistantMessage, BlockKind, Message, StreamEvent, ToolCall as Call,
    ToolResultMessage,
};
use crate::session::{
    NoticeLevel, Services, SessionEvent, SessionState, SessionUpdate as SessionChange, SkillBlock,
};

use super::features::ClientFeatures;
use super::outgoing::OpenedSession;
use super::tool_calls::{self, Folders, text_block};
use super::{commands, config_options};

/// Longest title made from a prompt, in characters.
const TITLE_CHARS: usize = 80;

/// The fold of one session's events.
pub(super) struct SessionUpdates {
    services: Arc<Services>,
    features: ClientFeatures,
    folders: Folders,
    state: Arc<SessionState>,
    answer: OpenAnswer,
    /// Messages of the model so far; the number is part of their ids.
    n_answers: u64,
    calls: HashMap<String, OpenCall>,
    /// Texts of files before a `write`, until its result arrives.
    overwritten: HashMap<PathBuf, String>,
    n_compactions: u64,
    shown: Shown,
}

/// What the client was told last.
#[derive(Default)]
struct Shown {
    options: Vec<SessionConfigOption>,
    title: Option<String>,
    usage: Option<UsageUpdate>,
    commands: Vec<AvailableCommand>,
}

/// The answer that streams.
#[derive(Default)]
struct OpenAnswer {
    blocks: Vec<OpenBlock>,
}

struct OpenBlock {
    kind: BlockKind,
    /// Bytes of its text that were sent.
    n_sent: usize,
}

/// A call that the client knows and that has not ended.
struct OpenCall {
    tool: String,
    arguments: Value,
    /// Output in its terminal so far; `None` if it has no terminal.
    terminal: Option<String>,
}

impl SessionUpdates {
    pub(super) fn new(opened: OpenedSession) -> Self {
        let OpenedSession { services, features, state } = opened;
        let folders = Folders { cwd: state.cwd.clone(), home: services.dirs.home.clone() };
        let options = config_options::of(&services, &state);
        Self {
            services,
            features,
            folders,
            answer: OpenAnswer::default(),
            n_answers: 0,
            calls: HashMap::new(),
            overwritten: HashMap::new(),
            n_compactions: 0,
            // The response that opened the session contained them.
            shown: Shown { options, ..Shown::default() },
            state,
        }
    }

    /// Commands, title and usage of a session that the client knows now.
    pub(super) fn announce(&mut self) -> Vec<SessionUpdate> {
        let mut out: Vec<SessionUpdate> = self.commands().into_iter().collect();
        if let Some(name) = self.state.name.clone() {
            out.extend(self.title(&name));
        }
        out.extend(self.usage());
        out
    }

    pub(super) fn on_overwrite(&mut self, path: PathBuf, text: String) {
        self.overwritten.insert(path, text);
    }

    pub(super) fn on_change(&mut self, change: &SessionChange) -> Vec<SessionUpdate> {
        self.state = Arc::clone(&change.state);
        match &change.event {
            SessionEvent::Agent(event) => self.on_agent_event(event),
            SessionEvent::SelectionChanged | SessionEvent::SettingsChanged { .. } => self.on_selection(),
            SessionEvent::ProjectChanged | SessionEvent::Opened(_) => self.on_project(),
            SessionEvent::RetryScheduled { attempt, max_attempts, delay, error } => {
                vec![self.retry(*attempt, *max_attempts, *delay, error)]
            }
            SessionEvent::CompactionStarted { .. } => self.on_compaction_start().into_iter().collect(),
            SessionEvent::CompactionEnded { aborted, error, .. } => {
                self.on_compaction_end(*aborted, error.as_deref())
            }
            SessionEvent::Notice { level, text } => vec![self.notice(*level, text)],
            SessionEvent::Settled { .. } => self.on_settled(),
            _ => Vec::new(),
        }
    }

    fn on_agent_event(&mut self, event: &AgentEvent) -> Vec<SessionUpdate> {
        match event {
            AgentEvent::AssistantStart(_) => {
                self.answer = OpenAnswer::default();
                self.n_answers += 1;
                Vec::new()
            }
            AgentEvent::MessageUpdate(update) => self.on_stream_event(update),
            AgentEvent::MessageEnd(message) => match &**message {
                Message::Assistant(answer) => self.on_answer(answer),
                Message::User(user) => self.title_of(&user.content.text()).into_iter().collect(),
                Message::System(_) | Message::ToolResult(_) => Vec::new(),
            },
            AgentEvent::ToolStart { call } => self.on_call_start(call),
            AgentEvent::ToolUpdate { call_id, partial } => {
                self.on_call_output(call_id, partial).into_iter().collect()
            }
            AgentEvent::ToolEnd { call_id, result } => self.on_call_end(call_id, result),
            AgentEvent::AgentStart
            | AgentEvent::ToolRunning { .. }
            | AgentEvent::TurnStart
            | AgentEvent::MessageStart(_)
            | AgentEvent::TurnEnd { .. }
            | AgentEvent::AgentEnd { .. } => Vec::new(),
        }
    }

    // Answers.

    fn on_stream_event(&mut self, event: &StreamEvent) -> Vec<SessionUpdate> {
        match event {
            StreamEvent::Start | StreamEvent::Done(_) => Vec::new(),
            StreamEvent::BlockStart { index, kind } => {
                if *index != self.answer.blocks.len() {
                    return Vec::new();
                }
                self.answer.blocks.push(OpenBlock { kind: kind.clone(), n_sent: 0 });
                match kind {
                    BlockKind::ToolCall { id, name } => vec![self.call_announced(id, name)],
                    BlockKind::Text | BlockKind::Thinking => Vec::new(),
                }
            }
            StreamEvent::Delta { index, text } => {
                let Some(block) = self.answer.blocks.get_mut(*index) else { return Vec::new() };
                block.n_sent += text.len();
                let kind = block.kind.clone();
                self.chunk(&kind, text).into_iter().collect()
            }
            StreamEvent::BlockEnd { index, block } => self.on_block(*index, block),
        }
    }

    /// Sends what is left of a finished block.
    fn on_block(&mut self, index: usize, block: &AssistantBlock) -> Vec<SessionUpdate> {
        let (kind, text) = match block {
            AssistantBlock::Text(text) => (BlockKind::Text, &text.text),
            AssistantBlock::Thinking(thinking) => (BlockKind::Thinking, &thinking.thinking),
            AssistantBlock::ToolCall(call) => return self.call_complete(call),
            AssistantBlock::Unknown(_) => return Vec::new(),
        };
        while self.answer.blocks.len() <= index {
            self.answer.blocks.push(OpenBlock { kind: kind.clone(), n_sent: 0 });
        }
        let sent = std::mem::replace(&mut self.answer.blocks[index].n_sent, text.len());
        // The finished block replaces the pieces; one that became shorter has no rest.
        let rest = text.get(sent..).unwrap_or_default();
        self.chunk(&kind, rest).into_iter().collect()
    }

    fn chunk(&self, kind: &BlockKind, text: &str) -> Option<SessionUpdate> {
        if text.is_empty() {
            return None;
        }
        let chunk = ContentChunk::new(text_block(text))
            .message_id(MessageId::new(format!("answer-{}", self.n_answers)));
        match kind {
            BlockKind::Text => Some(SessionUpdate::AgentMessageChunk(chunk)),
            BlockKind::Thinking => Some(SessionUpdate::AgentThoughtChunk(chunk)),
            BlockKind::ToolCall { .. } => None,
        }
    }

    /// The whole answer: what was not streamed follows now.
    fn on_answer(&mut self, answer: &AssistantMessage) -> Vec<SessionUpdate> {
        let mut out = Vec::new();
        for (index, block) in answer.content.iter().enumerate() {
            let is_call = matches!(block, AssistantBlock::ToolCall(_));
            if !is_call || !answer.is_failed() {
                out.extend(self.on_block(index, block));
            }
        }
        self.answer = OpenAnswer::default();
        out.extend(self.usage());
        out
    }

    // Tool calls.

    fn call_announced(&mut self, id: &str, tool: &str) -> SessionUpdate {
        let call = OpenCall { tool: tool.to_owned(), arguments: Value::Null, terminal: None };
        self.calls.insert(id.to_owned(), call);
        let call = ToolCall::new(id.to_owned(), tool).name(tool.to_owned()).kind(tool_calls::kind(tool));
        SessionUpdate::ToolCall(call)
    }

    /// The arguments of a call are complete.
    fn call_complete(&mut self, call: &Call) -> Vec<SessionUpdate> {
        let known = self.calls.get(&call.id);
        if known.is_some_and(|known| known.arguments == call.arguments) {
            return Vec::new();
        }
        let announced = if known.is_none() { Some(self.call_announced(&call.id, &call.name)) } else { None };
        if let Some(known) = self.calls.get_mut(&call.id) {
            known.arguments.clone_from(&call.arguments);
        }
        let view = tool_calls::describe(&call.name, &call.arguments, &self.folders);
        let mut fields = ToolCallUpdateFields::new()
            .title(view.title)
            .locations(view.locations)
            .raw_input(call.arguments.clone());
        if !view.content.is_empty() {
            fields = fields.content(view.content);
        }
        announced.into_iter().chain([update(&call.id, fields, None)]).collect()
    }

    fn on_call_start(&mut self, call: &Call) -> Vec<SessionUpdate> {
        let mut out = self.call_complete(call);
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        let mut meta = None;
        if call.name == "bash" && self.features.terminal_output {
            if let Some(known) = self.calls.get_mut(&call.id) {
                known.terminal = Some(String::new());
            }
            fields = fields.content(vec![ToolCallContent::Terminal(Terminal::new(call.id.clone()))]);
            let info = json!({ "terminal_id": call.id, "cwd": self.folders.cwd });
            meta = Some(Meta::from_iter([("terminal_info".to_owned(), info)]));
        }
        out.push(update(&call.id, fields, meta));
        out
    }

    fn on_call_output(&mut self, id: &str, partial: &ToolOutput) -> Option<SessionUpdate> {
        let call = self.calls.get_mut(id)?;
        if call.terminal.is_some() {
            let meta = terminal_output(call, id, &ai::join_text(&partial.content))?;
            return Some(update(id, ToolCallUpdateFields::new(), Some(meta)));
        }
        if partial.content.is_empty() {
            return None;
        }
        let fields = ToolCallUpdateFields::new().content(tool_calls::output(&partial.content));
        Some(update(id, fields, None))
    }

    fn on_call_end(&mut self, id: &str, result: &ToolResultMessage) -> Vec<SessionUpdate> {
        let Some(mut call) = self.calls.remove(id) else { return Vec::new() };
        let overwritten = match call.arguments.get("path").and_then(Value::as_str) {
            Some(path) if call.tool == "write" => self.overwritten.remove(&self.folders.resolve(path)),
            _ => None,
        };
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let mut fields = ToolCallUpdateFields::new().status(status);
        if call.terminal.is_some() {
            let text = ai::join_text(&result.content);
            let mut meta = terminal_output(&mut call, id, &text).unwrap_or_default();
            let exit_code = tool_calls::exit_code(&text, result.is_error);
            let exit = json!({ "terminal_id": id, "exit_code": exit_code, "signal": null });
            meta.insert("terminal_exit".to_owned(), exit);
            return vec![update(id, fields, Some(meta))];
        }
        let details = result.details.as_ref();
        let changed = if result.is_error {
            None
        } else {
            tool_calls::changed(&call.tool, &call.arguments, details, overwritten, &self.folders)
        };
        let location = tool_calls::changed_location(&call.arguments, details, &self.folders);
        fields = fields.content(changed.unwrap_or_else(|| tool_calls::output(&result.content)));
        if let Some(location) = location.filter(|_| !result.is_error) {
            fields = fields.locations(vec![location]);
        }
        vec![update(id, fields, None)]
    }

    /// Calls that never ended: their answer was cancelled or failed.
    fn on_settled(&mut self) -> Vec<SessionUpdate> {
        self.overwritten.clear();
        let mut ids: Vec<String> = self.calls.drain().map(|(id, _)| id).collect();
        ids.sort_unstable();
        let failed = || ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
        let mut out: Vec<SessionUpdate> = ids.iter().map(|id| update(id, failed(), None)).collect();
        out.extend(self.usage());
        out
    }

    // The session.

    fn on_selection(&mut self) -> Vec<SessionUpdate> {
        let mut out = Vec::new();
        let options = config_options::of(&self.services, &self.state);
        if options != self.shown.options {
            self.shown.options.clone_from(&options);
            out.push(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
        }
        if let Some(name) = self.state.name.clone() {
            out.extend(self.title(&name));
        }
        out.extend(self.usage());
        out
    }

    fn on_project(&mut self) -> Vec<SessionUpdate> {
        let mut out = self.on_selection();
        out.extend(self.commands());
        out
    }

    /// `None` if the client knows them.
    fn commands(&mut self) -> Option<SessionUpdate> {
        let commands = commands::available(&self.state);
        if commands == self.shown.commands {
            return None;
        }
        self.shown.commands.clone_from(&commands);
        Some(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)))
    }

    /// A session without a name is called by its first prompt.
    fn title_of(&mut self, prompt: &str) -> Option<SessionUpdate> {
        if self.shown.title.is_some() {
            return None;
        }
        let block = SkillBlock::parse(prompt).map(|block| block.command());
        let prompt = block.as_deref().unwrap_or(prompt);
        let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
        let mut title: String = line.chars().take(TITLE_CHARS).collect();
        if title.len() < line.len() {
            title.push('…');
        }
        self.title(&title)
    }

    fn title(&mut self, title: &str) -> Option<SessionUpdate> {
        if self.shown.title.as_deref() == Some(title) {
            return None;
        }
        self.shown.title = Some(title.to_owned());
        Some(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title)))
    }

    /// How full the window is, and the cost so far; `None` if that is known already.
    fn usage(&mut self) -> Option<SessionUpdate> {
        let context = &self.state.context;
        let cost = Cost::new(self.state.totals.cost_usd, "USD");
        let usage = UsageUpdate::new(context.tokens.unwrap_or_default(), context.window).cost(cost);
        if self.shown.usage.as_ref() == Some(&usage) {
            return None;
        }
        self.shown.usage = Some(usage.clone());
        Some(SessionUpdate::UsageUpdate(usage))
    }

    fn on_compaction_start(&mut self) -> Option<SessionUpdate> {
        self.n_compactions += 1;
        if !self.features.compactions {
            return Some(self.notice(NoticeLevel::Info, "Compacting the conversation."));
        }
        Some(self.compaction(CompactionStatus::InProgress, None))
    }

    fn on_compaction_end(&mut self, aborted: bool, error: Option<&str>) -> Vec<SessionUpdate> {
        let status = match (aborted, error) {
            (true, _) => CompactionStatus::Cancelled,
            (false, Some(_)) => CompactionStatus::Failed,
            (false, None) => CompactionStatus::Completed,
        };
        let mut out = Vec::new();
        if self.features.compactions {
            out.push(self.compaction(status, error));
        }
        out.extend(self.usage());
        out
    }

    fn compaction(&self, status: CompactionStatus, error: Option<&str>) -> SessionUpdate {
        let id = format!("compaction-{}", self.n_compactions);
        let mut update = CompactionUpdate::new(id, status);
        if let Some(error) = error {
            update = update.error(error);
        }
        SessionUpdate::CompactionUpdate(update)
    }

    fn retry(&self, attempt: u32, max_attempts: u32, delay: Duration, error: &str) -> SessionUpdate {
        let seconds = delay.as_secs_f64();
        let text = format!("{error}; retrying in {seconds:.0} s ({attempt} of {max_attempts})");
        self.notice(NoticeLevel::Warning, &text)
    }

    fn notice(&self, level: NoticeLevel, text: &str) -> SessionUpdate {
        notice(self.features, level, text)
    }
}

/// A text for the user that is no part of the conversation. Clients that cannot show one get
/// it as a thought, which they set apart from answers.
pub(super) fn notice(features: ClientFeatures, level: NoticeLevel, text: &str) -> SessionUpdate {
    if !features.notices {
        let text = format!("{}\n\n", text.trim_end());
        return SessionUpdate::AgentThoughtChunk(ContentChunk::new(text_block(text)));
    }
    let severity = match level {
        NoticeLevel::Info => NoticeSeverity::Info,
        NoticeLevel::Warning => NoticeSeverity::Warning,
        NoticeLevel::Error => NoticeSeverity::Error,
    };
    SessionUpdate::Notice(Notice::new(severity, text))
}

fn update(id: &str, fields: ToolCallUpdateFields, meta: Option<Meta>) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields).meta(meta))
}

/// What `text` adds to the output of a terminal; `None` if that is nothing.
fn terminal_output(call: &mut OpenCall, id: &str, text: &str) -> Option<Meta> {
    let shown = call.terminal.as_mut()?;
    let data = tool_calls::added(shown, text);
    if data.is_empty() {
        return None;
    }
    let output = json!({ "terminal_id": id, "data": data });
    text.clone_into(shown);
    Some(Meta::from_iter([("terminal_output".to_owned(), output)]))
}
