//! The snapshot of a session for footers and other readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::SteeringDelivery;
use crate::ai::{
    AssistantMessage, Message, Model, Quota, ScopedModel, ThinkingLevel, UnmatchedPattern, Usage,
    is_flat_rate,
};
use crate::config::{EffectiveSettings, Trust};

use super::cache_warming::CacheWarmth;
use super::question::Question;
use super::resources::{InstructionFile, OutsideLink, PromptTemplate, Skill, skill_call};
use super::store::{EntryId, Header};
use super::summary_draft::SummaryDraft;

/// Snapshot of a session.
#[derive(Debug, Clone)]
pub struct SessionState {
    /// A UUID, the same for the whole life of the session.
    pub id: String,
    /// The first line of its file.
    pub header: Arc<Header>,
    /// `None` for a session that is not saved. The file appears with the first prompt.
    pub path: Option<PathBuf>,
    /// Whether the file exists already.
    pub on_disk: bool,
    /// Whether another process has the session open, or had it when this one opened it. Nothing can be
    /// added until it is opened again.
    pub is_read_only: bool,
    /// The directory in which the agent works.
    pub cwd: PathBuf,
    /// What the user named it.
    pub name: Option<String>,
    /// The model of the next request.
    pub model: Arc<Model>,
    /// The thinking level of the next request.
    pub thinking: ThinkingLevel,
    /// What the session is doing.
    pub phase: Phase,
    /// The user's command that is running, if any, possibly during a run.
    pub user_command: Option<Arc<UserCommand>>,
    /// The messages that wait.
    pub queue: Arc<QueueView>,
    /// What the session has used so far.
    pub totals: Totals,
    /// How full the model's window is.
    pub context: ContextUsage,
    /// Line numbers of the file, from 1, that could not be read.
    pub damaged_lines: Vec<usize>,
    /// Why part of the session is not durable.
    pub unsaved: Option<Arc<str>>,
    /// When steering messages are delivered.
    pub steering_delivery: SteeringDelivery,
    /// Words that interrupt at the start of a message.
    pub urgent_words: Arc<[String]>,
    /// Whether models of several providers are usable.
    pub several_providers: bool,
    /// While the demo model is selected: a provider to use instead.
    pub instead_of_demo: Option<String>,
    /// The models to cycle through; an empty list means all.
    pub scope: Arc<[ScopedModel]>,
    /// The patterns of the scope that match no model.
    pub unmatched_scope: Arc<[UnmatchedPattern]>,
    /// The instruction files that the model gets, in their order.
    pub instructions: Arc<[InstructionFile]>,
    /// Sorted by name.
    pub skills: Arc<[Skill]>,
    /// Sorted by name.
    pub templates: Arc<[PromptTemplate]>,
    /// The directory's trust, and what depends on it.
    pub project: ProjectState,
    /// Names of the tools the model may call.
    pub tools: Arc<[String]>,
    /// The settings of this session.
    pub settings: Arc<EffectiveSettings>,
    /// Those that wait for an answer, oldest first.
    pub questions: Arc<[Arc<Question>]>,
    /// The entry that the next one follows; `None` if the session is empty.
    pub leaf: Option<EntryId>,
    /// Messages that a compaction keeps word for word, in the order in which they were
    /// pinned.
    pub pinned: Arc<[EntryId]>,
    /// A summary that takes effect when the user accepts it.
    pub summary_draft: Option<Arc<SummaryDraft>>,
    /// Whether the last run ended at a limit of cost or of answers.
    pub stopped_by_limit: bool,
    /// The limits that the model's provider reported last.
    pub quota: Option<Arc<Quota>>,
    /// How the provider's cache of the conversation is kept.
    pub cache_warmth: CacheWarmth,
}

impl SessionState {
    /// A session of which only model and directory are known.
    pub fn of(model: &Arc<Model>, cwd: &Path) -> Self {
        Self {
            id: String::new(),
            header: Arc::default(),
            path: None,
            on_disk: false,
            is_read_only: false,
            cwd: cwd.to_owned(),
            name: None,
            model: Arc::clone(model),
            thinking: ThinkingLevel::Off,
            phase: Phase::Idle,
            user_command: None,
            queue: Arc::default(),
            totals: Totals::default(),
            context: ContextUsage { window: model.context_window, ..ContextUsage::default() },
            damaged_lines: Vec::new(),
            unsaved: None,
            steering_delivery: SteeringDelivery::default(),
            urgent_words: Arc::from([]),
            several_providers: false,
            instead_of_demo: None,
            scope: Arc::from([]),
            unmatched_scope: Arc::from([]),
            instructions: Arc::from([]),
            skills: Arc::from([]),
            templates: Arc::from([]),
            project: ProjectState::default(),
            tools: Arc::from([]),
            settings: Arc::default(),
            questions: Arc::from([]),
            leaf: None,
            pinned: Arc::from([]),
            summary_draft: None,
            stopped_by_limit: false,
            quota: None,
            cache_warmth: CacheWarmth::default(),
        }
    }
}

/// The context of a session's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectState {
    /// What was decided.
    pub trust: Trust,
    /// Paths that need trust.
    pub protected: Arc<[PathBuf]>,
    /// Instruction files that link out of the project, which need trust too.
    pub links: Arc<[OutsideLink]>,
    /// Files that changed since the user trusted the project.
    pub changed: Arc<[String]>,
}

impl Default for ProjectState {
    fn default() -> Self {
        Self { trust: Trust::Unasked, protected: Arc::from([]), links: Arc::from([]), changed: Arc::from([]) }
    }
}

impl ProjectState {
    /// The settings file among the protected paths.
    pub fn settings_file(&self) -> Option<&Path> {
        self.protected.iter().map(PathBuf::as_path).find(|path| path.ends_with(".pi/settings.json"))
    }

    /// Those of the protected paths that contain skills.
    pub fn skill_folders(&self) -> impl Iterator<Item = &Path> {
        self.protected.iter().map(PathBuf::as_path).filter(|path| path.ends_with("skills"))
    }

    /// The files among the protected paths that change the system prompt.
    pub fn prompt_files(&self) -> impl Iterator<Item = &Path> {
        let is_one = |path: &&Path| path.ends_with(".pi/SYSTEM.md") || path.ends_with(".pi/APPEND_SYSTEM.md");
        self.protected.iter().map(PathBuf::as_path).filter(is_one)
    }

    /// The folder of themes among the protected paths.
    pub fn theme_folder(&self) -> Option<&Path> {
        self.protected.iter().map(PathBuf::as_path).find(|path| path.ends_with(".pi/themes"))
    }

    /// The folder of prompt templates among the protected paths.
    pub fn template_folder(&self) -> Option<&Path> {
        self.protected.iter().map(PathBuf::as_path).find(|path| path.ends_with(".pi/prompts"))
    }
}

/// Activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// It waits for the user.
    #[default]
    Idle,
    /// The agent works.
    Running,
    /// Waiting to repeat a failed request.
    Retrying,
    /// Writing a summary: of the conversation, or of a branch that is left.
    Compacting,
}

impl SessionState {
    /// The name of the skill that `text` calls, if there is none of this name; such a prompt is refused.
    pub fn missing_skill<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (name, _) = skill_call(text)?;
        self.skills.iter().all(|skill| skill.name != name).then_some(name)
    }

    /// Whether the agent works or a command of the user runs.
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle || self.user_command.is_some()
    }
}

/// A command of the user that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommand {
    /// The command line.
    pub command: String,
    /// Whether the model never learns of it.
    pub exclude_from_context: bool,
}

/// The texts of queued messages, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueView {
    /// Delivered while the agent works.
    pub steering: Vec<String>,
    /// Delivered when it is done.
    pub follow_up: Vec<String>,
}

impl QueueView {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }
}

/// Sums over all entries of the file, all branches included.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// Input tokens that were not in a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Without the requests that a flat-rate plan covers.
    pub cost_usd: f64,
    /// Whether a flat-rate plan covered some of the requests.
    pub on_plan: bool,
    /// Messages of the user.
    pub n_user: usize,
    /// Answers.
    pub n_assistant: usize,
    /// Calls of tools, in answers.
    pub n_tool_calls: usize,
    /// Results of tools.
    pub n_tool_results: usize,
}

impl Totals {
    /// Counts a message of the conversation.
    pub fn note(&mut self, message: &Message) {
        match message {
            Message::User(_) => self.n_user += 1,
            Message::Assistant(message) => {
                self.n_assistant += 1;
                self.n_tool_calls += message.tool_calls().count();
                self.add_usage(&message.provider, &message.usage);
            }
            Message::ToolResult(_) => self.n_tool_results += 1,
            Message::System(_) => {}
        }
    }

    /// Counts a request to `provider`. Requests of a flat-rate plan cost no dollars.
    pub fn add_usage(&mut self, provider: &str, usage: &Usage) {
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cache_read = self.cache_read.saturating_add(usage.cache_read);
        self.cache_write = self.cache_write.saturating_add(usage.cache_write);
        if is_flat_rate(provider, usage) {
            self.on_plan = true;
        } else {
            self.cost_usd += usage.cost.total;
        }
    }
}

/// The use of the model's context window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ContextUsage {
    /// Tokens of the latest request and its answer; `None` when unknown.
    pub tokens: Option<u64>,
    /// Whether they are estimated, because the provider did not count them.
    pub is_estimate: bool,
    /// The model's window, in tokens.
    pub window: u64,
    /// Fraction of the latest prompt that was read from the cache, 0 to 1; `None`
    /// if the provider reported no cache tokens.
    pub cache_hit: Option<f64>,
}

impl ContextUsage {
    /// The tokens that the provider counted with the latest answer.
    pub fn counted(&self) -> Option<u64> {
        self.tokens.filter(|_| !self.is_estimate)
    }

    /// Updates from an answer; failed answers change nothing.
    pub(super) fn note(&mut self, answer: &AssistantMessage) {
        let usage = &answer.usage;
        if answer.is_failed() || usage.total_tokens == 0 {
            return;
        }
        let prompt = usage.prompt_tokens();
        let cached = usage.cache_read + usage.cache_write > 0 && prompt > 0;
        self.tokens = Some(prompt.saturating_add(usage.output));
        self.is_estimate = false;
        self.cache_hit = cached.then(|| usage.cache_read as f64 / prompt as f64);
    }
}
