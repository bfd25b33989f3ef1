//! The user's settings: typed values, in layers, with one writer.
//!
//! `table` has a row per setting, `layers` decides which value wins, `unknown` recognises
//! misspelt keys, `file` writes `settings.json`, `schema` describes it to editors, and [`LiveSettings`] holds the current settings while pi runs.
//! Unknown keys stay in the file and are ignored. Invalid values are reported, and the
//! value of the next weaker layer applies.

mod file;
mod layers;
mod live;
mod schema;
mod screen;
mod table;
mod unknown;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ai::{Sampling, SamplingPolicy, ThinkingLevel};

use super::trust::TrustDefault;

pub use file::{SaveError, SettingsFile};
pub use layers::{EffectiveSettings, Layer, SettingsProblem};
pub use live::{LiveSettings, ProjectSettings, SettingChange, SettingError, SettingsWatch, SettingsWrite};
pub use schema::schema;
pub use screen::{
    DiagramTiming, ExitOutput, FullscreenSettings, LayoutSettings, Scrollbar, StartDisplay, TuiMode,
};
pub use table::{InProject, Kind, ROWS, Row};

/// When a steering message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryTime {
    /// Between two tool calls.
    #[default]
    Tools,
    /// After the tool calls of the turn.
    Turn,
    /// Messages interrupt the agent.
    Now,
}

/// How many queued messages are delivered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchSize {
    /// The oldest message.
    #[default]
    OneAtATime,
    /// All messages that wait.
    All,
}

impl BatchSize {
    /// As in `settings.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::All => "all",
        }
    }
}

/// When requests keep the provider's cache of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheWarmingMode {
    /// Never.
    Off,
    /// While the agent works.
    Streaming,
    /// Also while it waits for the user.
    #[default]
    Idle,
}

impl CacheWarmingMode {
    /// As in `settings.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Streaming => "streaming",
            Self::Idle => "idle",
        }
    }
}

/// Whether the terminal has a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// As detected.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How the terminal shows images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureProtocol {
    /// As detected.
    #[default]
    Auto,
    /// The kitty graphics protocol with placeholders.
    Kitty,
    /// The protocol of iTerm2.
    #[serde(rename = "iterm2")]
    Iterm,
    /// Sixels.
    Sixel,
    /// Not at all: images are lines of text.
    Off,
}

/// The value of every setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The provider of new sessions.
    pub default_provider: Option<String>,
    /// The model of new sessions.
    pub default_model: Option<String>,
    /// The thinking level of new sessions.
    pub default_thinking_level: ThinkingLevel,
    /// By `provider/id`.
    pub model_thinking_levels: BTreeMap<String, ThinkingLevel>,
    /// Patterns of the models to cycle through; none means all.
    pub enabled_models: Vec<String>,
    /// Generation options, in place of those of models.
    pub sampling: SamplingPolicy,
    /// Whether notices say that prompt tokens were billed again.
    pub show_cache_miss_notices: bool,
    /// When requests keep the provider's cache.
    pub cache_warming: CacheWarmingMode,
    /// Whether to warn that Anthropic may bill requests on a subscription as extra usage.
    pub warn_extra_usage: bool,
    /// Whether the screen leaves out thinking.
    pub hide_thinking: bool,
    /// When steering messages are delivered.
    pub steering_delivery: DeliveryTime,
    /// How many steering messages a delivery takes.
    pub steering_mode: BatchSize,
    /// How many follow-ups a delivery takes.
    pub follow_up_mode: BatchSize,
    /// Words at the start of a message that interrupt.
    pub urgent_words: Vec<String>,
    /// The tools of new sessions.
    pub default_tools: Vec<String>,
    /// Places of skills, and filters over those of the user.
    pub skills: Vec<String>,
    /// Whether skills are offered as commands while one is typed.
    pub skill_commands: bool,
    /// Places of prompt templates, and filters over those of the user.
    pub prompts: Vec<String>,
    /// What happens in projects that nobody decided about.
    pub project_trust: TrustDefault,
    /// Where sessions are kept.
    pub session_dir: Option<String>,
    /// GitHub OAuth app that Copilot sign-ins use.
    pub copilot_client_id: Option<String>,
    /// The shell of commands.
    pub shell_path: Option<String>,
    /// A line before every command.
    pub shell_command_prefix: Option<String>,
    /// Limits of the commands of the model.
    pub bash: BashSettings,
    /// The name of the theme.
    pub theme: String,
    /// Whether one line takes the place of what changed in an update.
    pub collapse_changelog: bool,
    /// What the start shows.
    pub start_display: StartDisplay,
    /// Whether prompts are kept for later sessions.
    pub prompt_history: bool,
    /// Whether nothing on the screen moves by itself.
    pub reduced_motion: bool,
    /// Whether the conversation is plain lines for a screen reader.
    pub screen_reader: bool,
    /// Whether the terminal notifies the user while its window is not looked at.
    pub notifications: bool,
    /// Whether the task bar shows that pi works.
    pub terminal_progress: bool,
    /// Whether addresses become links.
    pub hyperlinks: Capability,
    /// Whether images of the conversation are shown.
    pub show_images: bool,
    /// Most columns of an image.
    pub image_width_cells: u16,
    /// How images are sent to the terminal.
    pub picture_protocol: PictureProtocol,
    /// Whether colours have 24 bits.
    pub true_color: Capability,
    /// What follows a change of the terminal's width.
    pub resize: ResizeMode,
    /// The screen pi draws on.
    pub tui_mode: TuiMode,
    /// How fullscreen works.
    pub fullscreen: FullscreenSettings,
    /// Whether images are made to fit.
    pub images_auto_resize: bool,
    /// When conversations are compacted.
    pub compaction: CompactionPolicy,
    /// Whether branches that are left are summarised.
    pub branch_summary: BranchSummaryPolicy,
    /// What two presses of Escape open.
    pub double_escape: DoubleEscape,
    /// Which entries the tree shows first.
    pub tree_filter: TreeFilter,
    /// Limits of cost and answers.
    pub budget: BudgetLimits,
    /// Whether failed requests are repeated.
    pub retry_enabled: bool,
    /// How often at most.
    pub retry_max: u32,
    /// The wait before the first repetition; it doubles.
    pub retry_base_delay: Duration,
    /// The longest wait that a provider may ask for.
    pub retry_max_delay: Duration,
    /// How often a request is repeated before its answer has begun.
    pub provider_max_retries: u32,
    /// Longest silence of a server; zero means no limit.
    pub http_idle_timeout: Duration,
    /// Zero means no limit.
    pub http_content_timeout: Duration,
    /// Longest wait for the beginning of an answer, if it differs from that; zero means no
    /// limit.
    pub provider_timeout: Option<Duration>,
    /// Longest wait between silent retries; zero means no limit.
    pub provider_max_retry_delay: Duration,
    /// How requests travel.
    pub transport: TransportChoice,
    /// Longest wait for a WebSocket; zero means no limit.
    pub web_socket_connect_timeout: Duration,
    /// The proxy of all requests, if it is not that of the environment.
    pub http_proxy: Option<String>,
    /// The command line of the editor, if it is not that of the environment.
    pub external_editor: Option<String>,
    /// Places of themes, and filters over those of the user.
    pub themes: Vec<String>,
    /// How the editor and the transcript are laid out.
    pub layout: LayoutSettings,
}

/// Limits of cost in US dollars, and of answers; 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetLimits {
    /// For one prompt and everything that answers it.
    pub turn_usd: f64,
    /// US dollars per session; 0 for no limit.
    pub session_usd: f64,
    /// Answers to one prompt; 0 means no limit.
    pub turns: u32,
    /// For a day in UTC, all sessions together.
    pub day_usd: f64,
}

/// When conversations are compacted, and how much of them is kept word for word.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionPolicy {
    /// Whether it happens without being asked for.
    pub enabled: bool,
    /// How many tokens stay.
    pub budget: CompactionBudget,
    /// By `provider/id`.
    pub by_model: BTreeMap<String, CompactionOverride>,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummaryPolicy {
    /// Left free of the window by the request for a summary.
    pub reserve_tokens: u64,
    /// Branches are left without a question, and without a summary.
    pub skip_prompt: bool,
}

/// How requests travel to services that have WebSockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportChoice {
    /// As pi prefers: over HTTP.
    #[default]
    Auto,
    /// Over HTTP, as server-sent events.
    Sse,
    /// Over a WebSocket for each request.
    WebSocket,
    /// Over one WebSocket for the requests of a session.
    #[serde(rename = "websocket-cached")]
    WebSocketCached,
}

/// What Escape pressed twice in an empty editor opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubleEscape {
    /// `/tree`.
    #[default]
    Tree,
    /// `/fork`.
    Fork,
    /// Nothing.
    None,
}

/// What becomes of earlier output when the width of the terminal changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResizeMode {
    /// It stays in the scrollback as the terminal wrapped it.
    #[default]
    Keep,
    /// The scrollback is cleared and the transcript written again.
    Replay,
}

/// The entries that the session tree shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeFilter {
    /// All except entries that only keep the books.
    #[default]
    Default,
    /// As the default, without calls and results.
    NoTools,
    /// Messages of the user.
    UserOnly,
    /// Entries with labels.
    LabeledOnly,
    /// Everything.
    All,
}

/// Sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionBudget {
    /// Left free of the window; beyond that the conversation is compacted.
    pub reserve_tokens: u64,
    /// About what is kept of its end.
    pub keep_recent_tokens: u64,
}

/// A budget of one model; what is missing is as for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionOverride {
    /// Tokens kept free for the answer.
    pub reserve_tokens: Option<u64>,
    /// Tokens of recent messages that stay.
    pub keep_recent_tokens: Option<u64>,
}

impl CompactionPolicy {
    /// The budget of the model `reference`, `provider/id`.
    pub fn budget(&self, reference: &str) -> CompactionBudget {
        let model = self.by_model.get(reference).copied().unwrap_or_default();
        CompactionBudget {
            reserve_tokens: model.reserve_tokens.unwrap_or(self.budget.reserve_tokens),
            keep_recent_tokens: model.keep_recent_tokens.unwrap_or(self.budget.keep_recent_tokens),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::read(&Map::new()).0
    }
}

impl Settings {
    /// The settings in `values`, the content of one `settings.json`, and its invalid
    /// values.
    pub fn read(values: &Map<String, Value>) -> (Self, Vec<SettingsProblem>) {
        let (values, problems) = layers::checked(values, Layer::User);
        (Self::of(&values), problems)
    }

    /// The settings in `values`, which are valid; all others have their default.
    fn of(values: &Map<String, Value>) -> Self {
        let reader = Reader { values };
        Self {
            default_provider: reader.get("defaultProvider"),
            default_model: reader.get("defaultModel"),
            default_thinking_level: reader.get("defaultThinkingLevel"),
            model_thinking_levels: reader.get("modelThinkingLevels"),
            enabled_models: reader.get("enabledModels"),
            sampling: reader.sampling(),
            show_cache_miss_notices: reader.get("showCacheMissNotices"),
            cache_warming: reader.get("cacheWarming"),
            warn_extra_usage: reader.get("warnings.anthropicExtraUsage"),
            hide_thinking: reader.get("hideThinkingBlock"),
            steering_delivery: reader.get("steeringDelivery"),
            steering_mode: reader.get("steeringMode"),
            follow_up_mode: reader.get("followUpMode"),
            urgent_words: reader.get("urgentWords"),
            default_tools: reader.get("defaultTools"),
            skills: reader.get("skills"),
            skill_commands: reader.get("enableSkillCommands"),
            prompts: reader.get("prompts"),
            project_trust: reader.get("defaultProjectTrust"),
            session_dir: reader.get("sessionDir"),
            copilot_client_id: reader.get("copilotClientId"),
            shell_path: reader.get("shellPath"),
            shell_command_prefix: reader.get("shellCommandPrefix"),
            bash: BashSettings {
                default_timeout: Duration::from_secs(reader.get("bash.defaultTimeout")),
                memory_limit_mb: reader.get("bash.memoryLimit"),
                process_limit: reader.get("bash.processLimit"),
            },
            theme: reader.get("theme"),
            collapse_changelog: reader.get("collapseChangelog"),
            start_display: reader.start_display(),
            prompt_history: reader.get("promptHistory"),
            reduced_motion: reader.get("reducedMotion"),
            screen_reader: reader.get("screenReader"),
            notifications: reader.get("terminal.notifications"),
            terminal_progress: reader.get("terminal.showTerminalProgress"),
            hyperlinks: reader.get("terminal.hyperlinks"),
            show_images: reader.get("terminal.showImages"),
            image_width_cells: reader.cells("terminal.imageWidthCells"),
            picture_protocol: reader.get("terminal.images"),
            true_color: reader.get("terminal.trueColor"),
            resize: reader.get("resize"),
            tui_mode: reader.get("tuiMode"),
            fullscreen: FullscreenSettings {
                copy_on_select: reader.get("fullscreenCopyOnSelect"),
                exit_output: reader.get("fullscreenExitOutput"),
                scrollbar: reader.get("fullscreenScrollbar"),
                wheel_lines: reader.count_or_auto("fullscreenWheelScrollLines"),
            },
            images_auto_resize: reader.get("images.autoResize"),
            compaction: CompactionPolicy {
                enabled: reader.get("compaction.enabled"),
                budget: CompactionBudget {
                    reserve_tokens: reader.get("compaction.reserveTokens"),
                    keep_recent_tokens: reader.get("compaction.keepRecentTokens"),
                },
                by_model: reader.get("compaction.modelOverrides"),
            },
            branch_summary: BranchSummaryPolicy {
                reserve_tokens: reader.get("branchSummary.reserveTokens"),
                skip_prompt: reader.get("branchSummary.skipPrompt"),
            },
            double_escape: reader.get("doubleEscapeAction"),
            tree_filter: reader.get("treeFilterMode"),
            budget: BudgetLimits {
                turn_usd: reader.get("budget.turnUsd"),
                turns: reader.count("budget.turns"),
                session_usd: reader.get("budget.sessionUsd"),
                day_usd: reader.get("budget.dayUsd"),
            },
            retry_enabled: reader.get("retry.enabled"),
            retry_max: reader.count("retry.maxRetries"),
            retry_base_delay: reader.millis("retry.baseDelayMs"),
            retry_max_delay: reader.millis("retry.maxAgentDelayMs"),
            provider_max_retries: reader.count("retry.provider.maxRetries"),
            http_idle_timeout: reader.millis("httpIdleTimeoutMs"),
            http_content_timeout: reader.millis("httpContentTimeoutMs"),
            provider_timeout: reader
                .get::<Option<u64>>("retry.provider.timeoutMs")
                .map(Duration::from_millis),
            provider_max_retry_delay: reader.millis("retry.provider.maxRetryDelayMs"),
            transport: reader.get("transport"),
            web_socket_connect_timeout: reader.millis("websocketConnectTimeoutMs"),
            http_proxy: reader.get("httpProxy"),
            external_editor: reader.get("externalEditor"),
            themes: reader.get("themes"),
            layout: LayoutSettings {
                completion_rows: reader.cells("autocompleteMaxVisible"),
                editor_padding: reader.cells("editorPaddingX"),
                output_padding: reader.cells("outputPad"),
                code_indent: reader.get("markdown.codeBlockIndent"),
                mermaid: reader.get("markdown.mermaid"),
                hardware_cursor: reader.get("showHardwareCursor"),
                clear_on_shrink: reader.get("terminal.clearOnShrink"),
            },
        }
    }
}

/// Limits of the commands of the model. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BashSettings {
    /// Without a timeout of the call.
    pub default_timeout: Duration,
    /// Address space of each process, in megabytes.
    pub memory_limit_mb: u64,
    /// Processes of the user's account.
    pub process_limit: u64,
}

/// Reads validated values by key, with the row's default as fallback.
struct Reader<'a> {
    values: &'a Map<String, Value>,
}

impl Reader<'_> {
    /// A value that was validated against the kind of its row.
    fn get<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        serde_json::from_value(self.value(key)).unwrap_or_default()
    }

    fn start_display(&self) -> StartDisplay {
        match self.value("quietStartup") {
            Value::Bool(true) => StartDisplay::Nothing,
            Value::String(_) => StartDisplay::Header,
            _ => StartDisplay::Whole,
        }
    }

    /// Rows or columns.
    fn cells(&self, key: &str) -> u16 {
        u16::try_from(self.get::<u64>(key)).unwrap_or(u16::MAX)
    }

    fn count(&self, key: &str) -> u32 {
        u32::try_from(self.get::<u64>(key)).unwrap_or(u32::MAX)
    }

    /// `None` for `"auto"`.
    fn count_or_auto(&self, key: &str) -> Option<u16> {
        self.value(key).as_u64().and_then(|count| u16::try_from(count).ok())
    }

    fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.get(key))
    }

    fn sampling(&self) -> SamplingPolicy {
        let stop_sequences: Vec<String> = self.get("generation.stopSequences");
        let budgets = [
            (ThinkingLevel::Minimal, "thinkingBudgets.minimal"),
            (ThinkingLevel::Low, "thinkingBudgets.low"),
            (ThinkingLevel::Medium, "thinkingBudgets.medium"),
            (ThinkingLevel::High, "thinkingBudgets.high"),
        ];
        // Only what the user set: some models have budgets of their own.
        let set = budgets.into_iter().filter(|(_, key)| layers::lookup(self.values, key).is_some());
        SamplingPolicy {
            all: Sampling {
                temperature: self.get("generation.temperature"),
                top_p: self.get("generation.topP"),
                max_tokens: self.get::<Option<u64>>("generation.maxTokens").filter(|tokens| *tokens > 0),
                stop_sequences: (!stop_sequences.is_empty()).then_some(stop_sequences),
                body: Map::new(),
            },
            by_model: self.get("modelGeneration"),
            long_cache: false,
            block_images: self.get("images.blockImages"),
            thinking_budgets: set.map(|(level, key)| (level, self.get(key))).collect(),
        }
    }

    fn value(&self, key: &str) -> Value {
        let row = Row::find(key).expect("every field has a row (tested)");
        layers::lookup(self.values, key).cloned().unwrap_or_else(|| row.default_value())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn read(values: Value) -> (Settings, Vec<String>) {
        let Value::Object(values) = values else { panic!("not an object") };
        let (settings, problems) = Settings::read(&values);
        (settings, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_row_is_read() {
        // A value of no kind at all must be noticed for each row.
        for row in ROWS.iter().filter(|row| row.kept.is_none()) {
            let mut value = json!({ "wrong": true });
            for part in row.key.rsplit('.') {
                value = json!({ part: value });
            }
            let (_, problems) = read(value);
            assert_eq!(problems.len(), 1, "{}: {problems:?}", row.key);
        }
    }

    #[test]
    fn the_older_form_of_skills_is_understood() {
        let check = |values: Value, skills: &[&str], commands: bool| {
            let (settings, problems) = read(values);
            assert_eq!(
                (settings.skills, settings.skill_commands, problems),
                (skills.iter().map(|&text| text.to_owned()).collect(), commands, Vec::new(),)
            );
        };
        check(json!({ "skills": ["a", "!b"] }), &["a", "!b"], true);
        check(
            json!({ "skills": { "customDirectories": ["a"], "enableSkillCommands": false } }),
            &["a"],
            false,
        );
        let both = json!({ "skills": { "enableSkillCommands": false }, "enableSkillCommands": true });
        check(both, &[], true);
    }

    #[test]
    fn a_section_that_is_no_object_is_named_once() {
        let (settings, problems) = read(json!({ "retry": 3, "terminal": null, "images": [] }));
        assert_eq!(settings.retry_max, 3);
        assert_eq!(
            problems,
            [
                "\"images\" must be an object, such as {\"autoResize\": …}; using the defaults",
                "\"retry\" must be an object, such as {\"enabled\": …}; using the defaults",
            ]
        );
        let (_, problems) = read(json!({ "retry": { "provider": 3 } }));
        let expected =
            "\"retry.provider\" must be an object, such as {\"maxRetries\": …}; using the defaults";
        assert_eq!(problems, [expected]);
    }

    #[test]
    fn every_choice_is_a_value_of_its_type() {
        // Each choice of a setting leads to other settings, but the default.
        for row in ROWS {
            let Kind::Choice(choices) = row.kind else { continue };
            let mut seen: Vec<Settings> = Vec::new();
            for choice in choices {
                let mut value = json!(choice);
                for part in row.key.rsplit('.') {
                    value = json!({ part: value });
                }
                let (settings, problems) = read(value);
                assert!(problems.is_empty() && !seen.contains(&settings), "{}: {choice}", row.key);
                seen.push(settings);
            }
            assert!(seen.contains(&Settings::default()), "{}", row.key);
        }
    }

    #[test]
    fn what_does_not_fit_is_named_and_the_default_used() {
        let (settings, problems) =
            read(json!({ "retry": { "maxRetries": "many", "enabled": false }, "new": 1 }));
        assert_eq!((settings.retry_max, settings.retry_enabled), (3, false));
        assert_eq!(
            problems,
            ["\"retry.maxRetries\" must be a whole number, 0 or more; using the default, 3"]
        );
    }
}
