//! TABLE: the settings there are, and their values.
//!
//! A setting is a field of [`Settings`] with its doc, and a row in [`ROWS`] with
//! its key, kind, default and help, from which docs are generated. Keys are
//! pi's; unknown ones are kept in the file and ignored here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ai::{Sampling, SamplingPolicy, ThinkingLevel};

use super::trust::TrustDefault;

/// The user's settings, or the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking_level: ThinkingLevel,
    /// By `provider/id`.
    pub model_thinking_levels: BTreeMap<String, ThinkingLevel>,
    /// Patterns of the models to cycle through; empty means all.
    pub enabled_models: Vec<String>,
    pub sampling: SamplingPolicy,
    pub show_cache_miss_notices: bool,
    pub hide_thinking: bool,
    /// `tools`, `turn` or `now`.
    pub steering_delivery: String,
    /// `one-at-a-time` or `all`.
    pub steering_mode: String,
    pub follow_up_mode: String,
    pub urgent_words: Vec<String>,
    pub default_tools: Vec<String>,
    /// Locations of skills, and filters for the user's skills.
    pub skills: Vec<String>,
    /// Whether completion offers skills as commands.
    pub skill_commands: bool,
    pub project_trust: TrustDefault,
    pub session_dir: Option<String>,
    /// GitHub OAuth app that Copilot sign-ins use.
    pub copilot_client_id: Option<String>,
    pub shell_path: Option<String>,
    pub shell_command_prefix: Option<String>,
    pub theme: String,
    pub quiet_startup: bool,
    pub hyperlinks: String,
    pub true_color: String,
    pub images_auto_resize: bool,
    pub compaction: CompactionPolicy,
    pub branch_summary: BranchSummaryPolicy,
    /// `tree`, `fork` or `none`.
    pub double_escape: String,
    /// `default`, `no-tools`, `user-only`, `labeled-only` or `all`.
    pub tree_filter: String,
    pub retry_enabled: bool,
    pub retry_max: u32,
    pub retry_base_delay: Duration,
    pub retry_max_delay: Duration,
    pub provider_max_retries: u32,
    /// Longest silence of a server; zero means no limit.
    pub http_idle_timeout: Duration,
}

/// When conversations are compacted, and how much is kept word for word.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionPolicy {
    /// Whether compaction is automatic.
    pub enabled: bool,
    pub budget: CompactionBudget,
    /// By `provider/id`.
    pub by_model: BTreeMap<String, CompactionOverride>,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummaryPolicy {
    /// Left free of the window by the request for a summary.
    pub reserve_tokens: u64,
    /// Branches are left without asking, and without a summary.
    pub skip_prompt: bool,
}

/// Sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionBudget {
    /// Free part of the window; with less, the conversation is compacted.
    pub reserve_tokens: u64,
    /// Approximate size of the part that is kept.
    pub keep_recent_tokens: u64,
}

/// A budget of one model; missing values use the general setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionOverride {
    pub reserve_tokens: Option<u64>,
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

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name in `settings.json`; dots are nested objects.
    pub key: &'static str,
    pub kind: Kind,
    /// JSON text of the default.
    pub default: &'static str,
    pub help: &'static str,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Bool,
    /// A whole number, 0 or more.
    Number,
    /// Any number within these limits.
    Decimal {
        least: f64,
        most: f64,
    },
    Text,
    Choice(&'static [&'static str]),
    TextList,
    /// Thinking levels by `provider/id`.
    LevelByModel,
    /// Generation options by `provider/id`.
    SamplingByModel,
    /// Compaction budgets by `provider/id`.
    CompactionByModel,
}

/// An invalid value of a setting; the default is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{key}\" must be {expected}; using {default}")]
pub struct SettingsProblem {
    pub key: &'static str,
    pub expected: String,
    /// The value used instead.
    pub default: String,
}

const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const QUEUE_MODES: &[&str] = &["one-at-a-time", "all"];
const AUTO: &[&str] = &["auto", "on", "off"];

pub const ROWS: &[Row] = &[
    Row { key: "defaultProvider", kind: Kind::Text, default: "null", help: "Provider for new sessions" },
    Row {
        key: "defaultModel",
        kind: Kind::Text,
        default: "null",
        help: "Model for new sessions: an id or provider/id",
    },
    Row {
        key: "defaultThinkingLevel",
        kind: Kind::Choice(LEVELS),
        default: "\"medium\"",
        help: "Thinking level of new sessions",
    },
    Row {
        key: "modelThinkingLevels",
        kind: Kind::LevelByModel,
        default: "{}",
        help: "Thinking level of a model when you switch to it",
    },
    Row {
        key: "thinkingBudgets.minimal",
        kind: Kind::Number,
        default: "1024",
        help: "Thinking tokens at this level, for models with a token budget",
    },
    Row {
        key: "thinkingBudgets.low",
        kind: Kind::Number,
        default: "2048",
        help: "Thinking tokens of this level",
    },
    Row {
        key: "thinkingBudgets.medium",
        kind: Kind::Number,
        default: "8192",
        help: "Thinking tokens of this level",
    },
    Row {
        key: "thinkingBudgets.high",
        kind: Kind::Number,
        default: "16384",
        help: "Thinking tokens at this level and above",
    },
    Row {
        key: "enabledModels",
        kind: Kind::TextList,
        default: "[]",
        help: "Models to cycle through: ids or globs, each with an optional :level; empty means all",
    },
    Row {
        key: "generation.temperature",
        kind: Kind::Decimal { least: 0.0, most: 2.0 },
        default: "null",
        help: "Sampling temperature, for models that accept one",
    },
    Row {
        key: "generation.topP",
        kind: Kind::Decimal { least: 0.0, most: 1.0 },
        default: "null",
        help: "Nucleus sampling (top-p), for models that accept it",
    },
    Row {
        key: "generation.maxTokens",
        kind: Kind::Number,
        default: "null",
        help: "Maximum tokens per answer, up to the model's limit",
    },
    Row {
        key: "generation.stopSequences",
        kind: Kind::TextList,
        default: "[]",
        help: "Strings that end an answer",
    },
    Row {
        key: "modelGeneration",
        kind: Kind::SamplingByModel,
        default: "{}",
        help: "Generation options per model; they override models.json and generation",
    },
    Row {
        key: "showCacheMissNotices",
        kind: Kind::Bool,
        default: "true",
        help: "Report when a cached prompt was billed again, and why",
    },
    Row {
        key: "hideThinkingBlock",
        kind: Kind::Bool,
        default: "false",
        help: "Show a single line in place of the model's thinking",
    },
    Row {
        key: "steeringDelivery",
        kind: Kind::Choice(&["tools", "turn", "now"]),
        default: "\"tools\"",
        help: "When a message sent while the agent works is delivered: between tools, after the turn's tools, or immediately",
    },
    Row {
        key: "steeringMode",
        kind: Kind::Choice(QUEUE_MODES),
        default: "\"one-at-a-time\"",
        help: "How many steering messages are delivered together",
    },
    Row {
        key: "followUpMode",
        kind: Kind::Choice(QUEUE_MODES),
        default: "\"one-at-a-time\"",
        help: "How many follow-up messages are delivered together",
    },
    Row {
        key: "urgentWords",
        kind: Kind::TextList,
        default: "[\"wait\",\"stop\",\"no,\",\"instead\",\"actually\",\"等等\",\"停\",\"先不\",\"改成\",\"不对\"]",
        help: "Steering messages that start with one of these interrupt the agent; [] turns this off",
    },
    Row {
        key: "defaultTools",
        kind: Kind::TextList,
        default: "[\"read\",\"bash\",\"edit\",\"write\"]",
        help: "Tools the model may call",
    },
    Row {
        key: "skills",
        kind: Kind::TextList,
        default: "[]",
        help: "Additional skill files or directories; !GLOB and -PATH exclude skills of yours, +PATH includes one anyway",
    },
    Row {
        key: "enableSkillCommands",
        kind: Kind::Bool,
        default: "true",
        help: "Suggest skills as /skill:NAME while you type a command",
    },
    Row {
        key: "defaultProjectTrust",
        kind: Kind::Choice(&["ask", "always", "never"]),
        default: "\"ask\"",
        help: "Whether to load skills of projects you have not decided about",
    },
    Row { key: "sessionDir", kind: Kind::Text, default: "null", help: "Directory for all session files" },
    Row {
        key: "copilotClientId",
        kind: Kind::Text,
        default: "null",
        help: "Client id of the GitHub OAuth app used for Copilot sign-ins",
    },
    Row {
        key: "shellPath",
        kind: Kind::Text,
        default: "null",
        help: "Shell that runs commands [default: bash]",
    },
    Row {
        key: "shellCommandPrefix",
        kind: Kind::Text,
        default: "null",
        help: "Line inserted before every command",
    },
    Row {
        key: "theme",
        kind: Kind::Text,
        default: "\"system\"",
        help: "dark, light, system (follows the terminal) or the name of a file in ~/.pi/agent/themes",
    },
    Row { key: "quietStartup", kind: Kind::Bool, default: "false", help: "Start without the header" },
    Row {
        key: "terminal.hyperlinks",
        kind: Kind::Choice(AUTO),
        default: "\"auto\"",
        help: "Whether links are clickable",
    },
    Row {
        key: "terminal.trueColor",
        kind: Kind::Choice(AUTO),
        default: "\"auto\"",
        help: "Whether the terminal supports 24-bit colour",
    },
    Row {
        key: "images.autoResize",
        kind: Kind::Bool,
        default: "true",
        help: "Scale images down to what providers accept",
    },
    Row {
        key: "compaction.enabled",
        kind: Kind::Bool,
        default: "true",
        help: "Summarise the beginning of the conversation when the context window is nearly full",
    },
    Row {
        key: "compaction.reserveTokens",
        kind: Kind::Number,
        default: "16384",
        help: "Tokens of the context window to keep free",
    },
    Row {
        key: "compaction.keepRecentTokens",
        kind: Kind::Number,
        default: "20000",
        help: "Tokens at the end of the conversation to keep word for word",
    },
    Row {
        key: "compaction.modelOverrides",
        kind: Kind::CompactionByModel,
        default: "{}",
        help: "reserveTokens and keepRecentTokens per model",
    },
    Row {
        key: "branchSummary.reserveTokens",
        kind: Kind::Number,
        default: "16384",
        help: "Tokens of the context window to keep free when a branch is summarised",
    },
    Row {
        key: "branchSummary.skipPrompt",
        kind: Kind::Bool,
        default: "false",
        help: "Leave a branch without asking whether to summarise it",
    },
    Row {
        key: "doubleEscapeAction",
        kind: Kind::Choice(&["tree", "fork", "none"]),
        default: "\"tree\"",
        help: "What Escape pressed twice in an empty editor opens",
    },
    Row {
        key: "treeFilterMode",
        kind: Kind::Choice(&["default", "no-tools", "user-only", "labeled-only", "all"]),
        default: "\"default\"",
        help: "Entries that the session tree shows at first",
    },
    Row {
        key: "retry.enabled",
        kind: Kind::Bool,
        default: "true",
        help: "Retry requests after transient failures",
    },
    Row { key: "retry.maxRetries", kind: Kind::Number, default: "3", help: "Maximum number of retries" },
    Row {
        key: "retry.baseDelayMs",
        kind: Kind::Number,
        default: "2000",
        help: "Delay before the first retry in milliseconds; doubles each time",
    },
    Row {
        key: "retry.maxAgentDelayMs",
        kind: Kind::Number,
        default: "60000",
        help: "Longest delay between retries in milliseconds",
    },
    Row {
        key: "retry.provider.maxRetries",
        kind: Kind::Number,
        default: "0",
        help: "Silent retries within one request",
    },
    Row {
        key: "httpIdleTimeoutMs",
        kind: Kind::Number,
        default: "300000",
        help: "Longest time without data from a server in milliseconds; 0 means no limit",
    },
];

impl Default for Settings {
    fn default() -> Self {
        Self::read(&Map::new()).0
    }
}

impl Settings {
    /// The settings in `values`, the content of `settings.json`, and its
    /// problems.
    pub fn read(values: &Map<String, Value>) -> (Self, Vec<SettingsProblem>) {
        let values = &modern(values);
        let mut reader = Reader { values, problems: section_problems(values) };
        let settings = Self {
            default_provider: reader.text("defaultProvider"),
            default_model: reader.text("defaultModel"),
            default_thinking_level: reader
                .text("defaultThinkingLevel")
                .and_then(|name| ThinkingLevel::parse(&name))
                .unwrap_or_default(),
            model_thinking_levels: reader.parsed("modelThinkingLevels"),
            enabled_models: reader.list("enabledModels"),
            sampling: reader.sampling(),
            show_cache_miss_notices: reader.bool("showCacheMissNotices"),
            hide_thinking: reader.bool("hideThinkingBlock"),
            steering_delivery: reader.text("steeringDelivery").unwrap_or_default(),
            steering_mode: reader.text("steeringMode").unwrap_or_default(),
            follow_up_mode: reader.text("followUpMode").unwrap_or_default(),
            urgent_words: reader.list("urgentWords"),
            default_tools: reader.list("defaultTools"),
            skills: reader.list("skills"),
            skill_commands: reader.bool("enableSkillCommands"),
            project_trust: match reader.text("defaultProjectTrust").as_deref() {
                Some("always") => TrustDefault::Always,
                Some("never") => TrustDefault::Never,
                _ => TrustDefault::Ask,
            },
            session_dir: reader.text("sessionDir"),
            copilot_client_id: reader.text("copilotClientId"),
            shell_path: reader.text("shellPath"),
            shell_command_prefix: reader.text("shellCommandPrefix"),
            theme: reader.text("theme").unwrap_or_default(),
            quiet_startup: reader.bool("quietStartup"),
            hyperlinks: reader.text("terminal.hyperlinks").unwrap_or_default(),
            true_color: reader.text("terminal.trueColor").unwrap_or_default(),
            images_auto_resize: reader.bool("images.autoResize"),
            compaction: CompactionPolicy {
                enabled: reader.bool("compaction.enabled"),
                budget: CompactionBudget {
                    reserve_tokens: reader.number("compaction.reserveTokens"),
                    keep_recent_tokens: reader.number("compaction.keepRecentTokens"),
                },
                by_model: reader.parsed("compaction.modelOverrides"),
            },
            branch_summary: BranchSummaryPolicy {
                reserve_tokens: reader.number("branchSummary.reserveTokens"),
                skip_prompt: reader.bool("branchSummary.skipPrompt"),
            },
            double_escape: reader.text("doubleEscapeAction").unwrap_or_default(),
            tree_filter: reader.text("treeFilterMode").unwrap_or_default(),
            retry_enabled: reader.bool("retry.enabled"),
            retry_max: u32::try_from(reader.number("retry.maxRetries")).unwrap_or(u32::MAX),
            retry_base_delay: Duration::from_millis(reader.number("retry.baseDelayMs")),
            retry_max_delay: Duration::from_millis(reader.number("retry.maxAgentDelayMs")),
            provider_max_retries: u32::try_from(reader.number("retry.provider.maxRetries"))
                .unwrap_or(u32::MAX),
            http_idle_timeout: Duration::from_millis(reader.number("httpIdleTimeoutMs")),
        };
        (settings, reader.problems)
    }
}

/// Looks values up by key, falling back to the row's default.
struct Reader<'a> {
    values: &'a Map<String, Value>,
    problems: Vec<SettingsProblem>,
}

impl Reader<'_> {
    fn bool(&mut self, key: &str) -> bool {
        self.value(key).as_bool().unwrap_or_default()
    }

    fn number(&mut self, key: &str) -> u64 {
        self.value(key).as_u64().unwrap_or_default()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.value(key).as_str().map(str::to_owned)
    }

    fn list(&mut self, key: &str) -> Vec<String> {
        let items = self.value(key);
        items.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A value whose shape was checked by the row's kind.
    fn parsed<T: DeserializeOwned + Default>(&mut self, key: &str) -> T {
        serde_json::from_value(self.value(key)).unwrap_or_default()
    }

    fn sampling(&mut self) -> SamplingPolicy {
        let stop_sequences = self.list("generation.stopSequences");
        let budgets = [
            (ThinkingLevel::Minimal, "thinkingBudgets.minimal"),
            (ThinkingLevel::Low, "thinkingBudgets.low"),
            (ThinkingLevel::Medium, "thinkingBudgets.medium"),
            (ThinkingLevel::High, "thinkingBudgets.high"),
        ];
        // Only the user's values, because some models have budgets of their own.
        let set = budgets.into_iter().filter(|(_, key)| lookup(self.values, key).is_some());
        let set: Vec<_> = set.collect();
        SamplingPolicy {
            all: Sampling {
                temperature: self.value("generation.temperature").as_f64(),
                top_p: self.value("generation.topP").as_f64(),
                max_tokens: self.value("generation.maxTokens").as_u64().filter(|tokens| *tokens > 0),
                stop_sequences: (!stop_sequences.is_empty()).then_some(stop_sequences),
                body: Map::new(),
            },
            by_model: self.parsed("modelGeneration"),
            long_cache: false,
            thinking_budgets: set.into_iter().map(|(level, key)| (level, self.number(key))).collect(),
        }
    }

    /// The valid value for the row of `key`.
    fn value(&mut self, key: &str) -> Value {
        let row = ROWS.iter().find(|row| row.key == key).expect("every field has a row (tested)");
        let default = || serde_json::from_str(row.default).expect("defaults are JSON (tested)");
        let Some(value) = lookup(self.values, key).filter(|value| !value.is_null()) else { return default() };
        if row.kind.accepts(value) {
            return value.clone();
        }
        self.problems.push(SettingsProblem {
            key: row.key,
            expected: row.kind.describe(),
            default: format!("the default, {}", row.default),
        });
        default()
    }
}

impl Kind {
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::Number => value.is_u64(),
            Self::Decimal { least, most } => value.as_f64().is_some_and(|n| (least..=most).contains(&n)),
            Self::LevelByModel => BTreeMap::<String, ThinkingLevel>::deserialize(value).is_ok(),
            Self::SamplingByModel => BTreeMap::<String, Sampling>::deserialize(value)
                .is_ok_and(|by_model| by_model.values().all(|sampling| sampling.problem().is_none())),
            Self::CompactionByModel => BTreeMap::<String, CompactionOverride>::deserialize(value).is_ok(),
            Self::Text => value.is_string(),
            Self::Choice(choices) => value.as_str().is_some_and(|text| choices.contains(&text)),
            Self::TextList => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        }
    }

    /// The accepted values, for the user.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Number => "a whole number, 0 or more".to_owned(),
            Self::Decimal { least, most } => format!("a number from {least} to {most}"),
            Self::LevelByModel => {
                format!("an object with one of {} per model (provider/id)", LEVELS.join(", "))
            }
            Self::SamplingByModel => {
                "an object with temperature (0 to 2), topP (0 to 1), maxTokens, stopSequences or \
                 request fields per model (provider/id)"
                    .to_owned()
            }
            Self::CompactionByModel => {
                "an object that gives models (provider/id) reserveTokens and keepRecentTokens, whole numbers"
                    .to_owned()
            }
            Self::Text => "a text".to_owned(),
            Self::Choice(choices) => format!("one of {}", choices.join(", ")),
            Self::TextList => "a list of strings".to_owned(),
        }
    }
}

/// The values with older forms of settings converted to the current one. The file
/// itself does not change.
fn modern(values: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let Some(Value::Object(skills)) = values.get("skills") else { return Cow::Borrowed(values) };
    let (folders, commands) = (skills.get("customDirectories"), skills.get("enableSkillCommands"));
    if folders.is_none() && commands.is_none() {
        return Cow::Borrowed(values);
    }
    let mut modern = values.clone();
    modern.insert("skills".to_owned(), folders.cloned().unwrap_or_default());
    if let Some(commands) = commands {
        modern.entry("enableSkillCommands").or_insert_with(|| commands.clone());
    }
    Cow::Owned(modern)
}

/// Sections that are not objects, such as `"retry": 3`. Their settings are ignored.
fn section_problems(values: &Map<String, Value>) -> Vec<SettingsProblem> {
    let mut problems: Vec<SettingsProblem> = Vec::new();
    for row in ROWS {
        for (dot, _) in row.key.match_indices('.') {
            let (section, first) = (&row.key[..dot], &row.key[dot + 1..]);
            let is_wrong =
                lookup(values, section).is_some_and(|value| !value.is_object() && !value.is_null());
            if is_wrong && problems.iter().all(|problem| problem.key != section) {
                let expected =
                    format!("an object, such as {{\"{}\": …}}", first.split('.').next().unwrap_or(first));
                problems.push(SettingsProblem { key: section, expected, default: "the defaults".to_owned() });
            }
        }
    }
    problems
}

/// The value at a dotted key.
fn lookup<'a>(values: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => values.get(key),
        Some((head, rest)) => lookup(values.get(head)?.as_object()?, rest),
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
    fn every_row_has_a_default_that_fits_and_help() {
        for row in ROWS {
            let default: Value = serde_json::from_str(row.default).unwrap();
            assert!(default.is_null() || row.kind.accepts(&default), "{}", row.key);
            assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.key);
        }
    }

    #[test]
    fn every_row_is_read() {
        // A value of an impossible kind must be reported for each row.
        for row in ROWS {
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
