//! TABLE: the settings there are.
//!
//! A setting is a row in [`ROWS`] with its key, kind, default and help, from which
//! docs are generated, and a field of [`Settings`](super::Settings). Keys are pi's.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use serde::Deserialize as _;
use serde_json::Value;

use crate::ai::{Sampling, ThinkingLevel};

use super::live::SettingError;
use super::{CompactionOverride, unknown};

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name in `settings.json`; dots are nested objects.
    pub key: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// JSON text of the default.
    pub default: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    /// Whether a project may set it.
    pub in_project: InProject,
    /// Read at startup only: a change applies after a restart.
    pub at_start: bool,
    /// A list whose entries all begin with `+` or `-` changes the list of weaker layers in
    /// place of replacing it.
    pub is_edited: bool,
    /// For a setting of the original that stays in the file and does nothing here: "no effect
    /// yet" or "no effect", perhaps with the reason. The help ends with it.
    pub kept: Option<&'static str>,
}

/// How the settings file of a trusted project applies to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InProject {
    /// The project's value overrides the user's.
    Overrides,
    /// The project's value applies in addition to the user's.
    Beside,
    /// Only the user's file may contain the setting.
    Ignored,
}

impl Row {
    const fn new(key: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Self {
        Self {
            key,
            kind,
            default,
            help,
            in_project: InProject::Overrides,
            at_start: false,
            is_edited: false,
            kept: None,
        }
    }

    /// A setting without effect; made by the macro of this name.
    const fn kept(key: &'static str, help: &'static str, kept: &'static str) -> Self {
        Self { kept: Some(kept), ..Self::new(key, Kind::Any, "null", help) }
    }

    const fn user_only(self) -> Self {
        Self { in_project: InProject::Ignored, ..self }
    }

    const fn beside_project(self) -> Self {
        Self { in_project: InProject::Beside, ..self }
    }

    const fn at_start(self) -> Self {
        Self { at_start: true, ..self }
    }

    const fn edited(self) -> Self {
        Self { is_edited: true, ..self }
    }

    /// The setting of that key.
    pub fn find(key: &str) -> Option<&'static Self> {
        /// Every start looks for each of them.
        static BY_KEY: LazyLock<FxHashMap<&str, &Row>> =
            LazyLock::new(|| ROWS.iter().map(|row| (row.key, row)).collect());
        BY_KEY.get(key).copied()
    }

    /// The setting of that key.
    ///
    /// # Errors
    /// If there is none; names the one that was probably meant.
    pub fn named(key: &str) -> Result<&'static Self, SettingError> {
        Self::find(key)
            .ok_or_else(|| SettingError::Unknown { key: key.to_owned(), meant: unknown::meant(key) })
    }

    /// Whether the settings file of a project may contain it.
    pub fn may_be_in_project(&self) -> bool {
        self.in_project != InProject::Ignored
    }

    /// The built-in value.
    pub fn default_value(&self) -> Value {
        serde_json::from_str(self.default).expect("defaults are JSON (tested)")
    }
}

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// `true`, `false` or this text.
    BoolOr(&'static str),
    /// A whole number, 0 or more.
    Number,
    /// A whole number within these bounds.
    Count {
        /// The least value.
        least: u64,
        /// The greatest value.
        most: u64,
    },
    /// Any number within these bounds.
    Decimal {
        /// The least value.
        least: f64,
        /// The greatest value.
        most: f64,
    },
    /// A whole number within these bounds, or `"auto"`.
    CountOrAuto {
        /// The least value.
        least: u64,
        /// The greatest value.
        most: u64,
    },
    /// Any text.
    Text,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of texts.
    TextList,
    /// Thinking levels by `provider/id`.
    LevelByModel,
    /// Generation options by `provider/id`.
    SamplingByModel,
    /// Compaction budgets by `provider/id`.
    CompactionByModel,
    /// Any JSON value.
    Any,
}

pub(super) const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const QUEUE_MODES: &[&str] = &["one-at-a-time", "all"];
const AUTO: &[&str] = &["auto", "on", "off"];

/// An amount of money.
const USD: Kind = Kind::Decimal { least: 0.0, most: 1e6 };

/// A setting without effect: its key and what it does in the original, and why it does nothing
/// so far or will never do anything.
macro_rules! kept {
    ($key:literal, $about:literal) => {
        kept!(@ $key, $about, "no effect yet")
    };
    ($key:literal, $about:literal, yet: $why:literal) => {
        kept!(@ $key, $about, concat!("no effect yet: ", $why))
    };
    ($key:literal, $about:literal, ever: $why:literal) => {
        kept!(@ $key, $about, concat!("no effect: ", $why))
    };
    (@ $key:literal, $about:literal, $kept:expr) => {
        Row::kept($key, concat!($about, "; kept, has ", $kept), $kept)
    };
}

/// Every setting, in the order in which they are listed.
pub const ROWS: &[Row] = &[
    Row::new("defaultProvider", Kind::Text, "null", "Provider for new sessions"),
    Row::new("defaultModel", Kind::Text, "null", "Model for new sessions: an id or provider/id"),
    Row::new("defaultThinkingLevel", Kind::Choice(LEVELS), "\"medium\"", "Thinking level of new sessions"),
    Row::new("modelThinkingLevels", Kind::LevelByModel, "{}", "Thinking level of a model when you switch to it"),
    Row::new("thinkingBudgets.minimal", Kind::Number, "1024", "Thinking tokens at this level, for models with a token budget"),
    Row::new("thinkingBudgets.low", Kind::Number, "2048", "Thinking tokens at this level, for models with a token budget"),
    Row::new("thinkingBudgets.medium", Kind::Number, "8192", "Thinking tokens at this level, for models with a token budget"),
    Row::new("thinkingBudgets.high", Kind::Number, "16384", "Thinking tokens at this level and above, for models with a token budget"),
    Row::new("enabledModels", Kind::TextList, "[]", "Models to cycle through: ids or globs, each with an optional :level; empty means all"),
    Row::new("generation.temperature", Kind::Decimal { least: 0.0, most: 2.0 }, "null", "Sampling temperature, for models that accept one"),
    Row::new("generation.topP", Kind::Decimal { least: 0.0, most: 1.0 }, "null", "Nucleus sampling (top-p), for models that accept it"),
    Row::new("generation.maxTokens", Kind::Number, "null", "Maximum tokens per answer, up to the model's limit"),
    Row::new("generation.stopSequences", Kind::TextList, "[]", "Strings that end an answer"),
    Row::new("modelGeneration", Kind::SamplingByModel, "{}", "Generation options per model; they override models.json and generation"),
    Row::new("showCacheMissNotices", Kind::Bool, "true", "Report when a cached prompt was billed again, and why"),
    Row::new("cacheWarming", Kind::Choice(&["off", "streaming", "idle"]), "\"idle\"", "When to repeat the last request with a short answer, so that the provider keeps its cache, if that is expected to save money: never, while the agent works, or also while it waits for you").user_only(),
    Row::new("hideThinkingBlock", Kind::Bool, "false", "Show a single line in place of the model's thinking"),
    Row::new("steeringDelivery", Kind::Choice(&["tools", "turn", "now"]), "\"tools\"", "When a message sent while the agent works is delivered: between tools, after the turn's tools, or immediately"),
    Row::new("steeringMode", Kind::Choice(QUEUE_MODES), "\"one-at-a-time\"", "How many steering messages are delivered together"),
    Row::new("followUpMode", Kind::Choice(QUEUE_MODES), "\"one-at-a-time\"", "How many follow-up messages are delivered together"),
    Row::new("urgentWords", Kind::TextList, "[\"wait\",\"stop\",\"no,\",\"instead\",\"actually\",\"等等\",\"停\",\"先不\",\"改成\",\"不对\"]", "Steering messages that start with one of these interrupt the agent; [] turns this off"),
    Row::new("defaultTools", Kind::TextList, "[\"read\",\"bash\",\"edit\",\"write\"]", "Tools the model may call: names, patterns with *, or changes such as +grep and -bash").at_start().edited(),
    Row::new("skills", Kind::TextList, "[]", "Additional skill files or directories; !GLOB and -PATH exclude skills of yours, +PATH includes one anyway").beside_project(),
    Row::new("enableSkillCommands", Kind::Bool, "true", "Suggest skills as /skill:NAME while you type a command"),
    Row::new("prompts", Kind::TextList, "[]", "Additional prompt templates or directories of them; !GLOB and -PATH exclude templates of yours, +PATH includes one anyway").beside_project(),
    Row::new("defaultProjectTrust", Kind::Choice(&["ask", "always", "never"]), "\"ask\"", "Whether to load skills, templates, settings and system prompts of projects you have not decided about").user_only(),
    Row::new("sessionDir", Kind::Text, "null", "Directory for all session files").at_start(),
    Row::new("copilotClientId", Kind::Text, "null", "Client id of the GitHub OAuth app used for Copilot sign-ins").user_only().at_start(),
    Row::new("shellPath", Kind::Text, "null", "Shell that runs commands [default: bash]").at_start(),
    Row::new("shellCommandPrefix", Kind::Text, "null", "Line inserted before every command").at_start(),
    Row::new("bash.defaultTimeout", Kind::Number, "600", "Seconds after which a command of the model is killed unless the call sets a timeout; 0 means never").at_start(),
    Row::new("bash.memoryLimit", Kind::Number, "0", "Address space of each process of a command in MB (ulimit -v); 0 means no limit").at_start(),
    Row::new("bash.processLimit", Kind::Number, "0", "Processes of your account while a command starts new ones (ulimit -u); 0 means no limit").at_start(),
    Row::new("externalEditor", Kind::Text, "null", "Editor for prompts outside pi, with its arguments [default: $VISUAL, $EDITOR, or the first of nano, vim and vi that is installed]"),
    Row::new("autocompleteMaxVisible", Kind::Count { least: 3, most: 20 }, "6", "Suggestions shown at once while you type a command or path"),
    Row::new("editorPaddingX", Kind::Count { least: 0, most: 3 }, "0", "Blank columns left and right of the text in the editor"),
    Row::new("outputPad", Kind::Count { least: 0, most: 1 }, "1", "Blank columns left and right of answers and thinking"),
    Row::new("showHardwareCursor", Kind::Bool, "true", "Show the cursor of the terminal; false draws a block in its place, and only input methods see the cursor"),
    Row::new("markdown.codeBlockIndent", Kind::Text, "\"  \"", "Text in front of each line of a code block in answers"),
    Row::new("markdown.mermaid", Kind::Choice(&["off", "final", "streaming"]), "\"streaming\"", "When Mermaid diagrams are drawn: never (off), when an answer is complete (final), or when a diagram is complete (streaming)"),
    Row::new("theme", Kind::Text, "\"system\"", "dark, light, system (follows the terminal), the name of one of your themes, or LIGHT/DARK for a pair"),
    Row::new("themes", Kind::TextList, "[]", "Additional theme files or directories of them; !GLOB and -PATH exclude themes of yours, +PATH includes one anyway").beside_project(),
    Row::new("quietStartup", Kind::BoolOr("header"), "false", "Start without the header and the list of what was loaded; header means with the header alone").at_start(),
    Row::new("collapseChangelog", Kind::Bool, "false", "Show one line after an update, in place of what changed").at_start(),
    Row::new("promptHistory", Kind::Bool, "true", "Keep prompts for the arrow keys and the search of later sessions, in ~/.pi/agent/prompt-history.jsonl; secrets that are recognised are masked").user_only(),
    Row::new("reducedMotion", Kind::Bool, "false", "Show no spinner; times are counted once per second"),
    Row::new("screenReader", Kind::Bool, "false", "Write the conversation as plain lines, for screen readers").user_only().at_start(),
    Row::new("terminal.notifications", Kind::Bool, "true", "Notify you through the terminal when pi is done or asks something while another window has the focus").at_start(),
    Row::new("terminal.showTerminalProgress", Kind::Bool, "false", "Show in the task bar that pi works, in terminals that can"),
    Row::new("terminal.hyperlinks", Kind::Choice(AUTO), "\"auto\"", "Whether links are clickable"),
    Row::new("terminal.trueColor", Kind::Choice(AUTO), "\"auto\"", "Whether the terminal supports 24-bit colour"),
    Row::new("terminal.showImages", Kind::Bool, "true", "Show images of the conversation, in terminals that can"),
    Row::new("terminal.imageWidthCells", Kind::Number, "60", "Maximum width of an image, in columns"),
    Row::new("terminal.images", Kind::Choice(&["auto", "kitty", "iterm2", "sixel", "off"]), "\"auto\"", "How the terminal shows images: as detected, by the kitty protocol with placeholders, by that of iTerm2, as sixels, or not at all"),
    Row::new("resize", Kind::Choice(&["keep", "replay"]), "\"keep\"", "When the terminal's width changes: keep the scrollback as it is, or clear it and write the transcript again"),
    Row::new("terminal.clearOnShrink", Kind::Bool, "false", "When the screen needs fewer rows than before, clear the scrollback and write the transcript again, in place of showing earlier rows twice"),
    Row::new("tuiMode", Kind::Choice(&["regular", "fullscreen"]), "\"regular\"", "The main screen with the terminal's scrollback, or the alternate screen with scrolling, selection and search of pi"),
    Row::new("fullscreenCopyOnSelect", Kind::Bool, "true", "In fullscreen: copy what you select when you release the mouse"),
    Row::new("fullscreenExitOutput", Kind::Choice(&["transcript", "resume-hint"]), "\"transcript\"", "What fullscreen leaves on the main screen: the transcript, or only how to resume"),
    Row::new("fullscreenScrollbar", Kind::Choice(&["auto", "always", "hidden"]), "\"auto\"", "When fullscreen shows a scrollbar; auto means while earlier rows are shown"),
    Row::new("fullscreenWheelScrollLines", Kind::CountOrAuto { least: 1, most: 100 }, "\"auto\"", "Rows that one step of the wheel scrolls in fullscreen; auto means 1 to 6, by its speed"),
    Row::new("images.autoResize", Kind::Bool, "true", "Scale images down to what providers accept").at_start(),
    Row::new("images.blockImages", Kind::Bool, "false", "Send no image to a model; it reads a line of text in its place"),
    Row::new("compaction.enabled", Kind::Bool, "true", "Summarise the beginning of the conversation when the context window is nearly full"),
    Row::new("compaction.reserveTokens", Kind::Number, "16384", "Tokens of the context window to keep free"),
    Row::new("compaction.keepRecentTokens", Kind::Number, "20000", "Tokens at the end of the conversation to keep word for word"),
    Row::new("compaction.modelOverrides", Kind::CompactionByModel, "{}", "reserveTokens and keepRecentTokens per model"),
    Row::new("branchSummary.reserveTokens", Kind::Number, "16384", "Tokens of the context window to keep free when a branch is summarised"),
    Row::new("branchSummary.skipPrompt", Kind::Bool, "false", "Leave a branch without asking whether to summarise it"),
    Row::new("doubleEscapeAction", Kind::Choice(&["tree", "fork", "none"]), "\"tree\"", "What Escape pressed twice in an empty editor opens"),
    Row::new("treeFilterMode", Kind::Choice(&["default", "no-tools", "user-only", "labeled-only", "all"]), "\"default\"", "Entries that the session tree shows at first"),
    Row::new("budget.turnUsd", USD, "0", "Stop when a prompt has cost more than this, in US dollars, and ask whether to continue; 0 means no limit").user_only(),
    Row::new("budget.turns", Kind::Number, "0", "Stop after this many answers to a prompt and ask whether to continue; 0 means no limit").user_only(),
    Row::new("budget.sessionUsd", USD, "0", "Stop when a session has cost more than this, in US dollars, and ask whether to continue; 0 means no limit").user_only(),
    Row::new("budget.dayUsd", USD, "0", "Stop when all sessions of a day have cost more than this, in US dollars, and ask whether to continue; 0 means no limit").user_only(),
    Row::new("retry.enabled", Kind::Bool, "true", "Retry requests after transient failures"),
    Row::new("retry.maxRetries", Kind::Number, "3", "Maximum number of retries"),
    Row::new("retry.baseDelayMs", Kind::Number, "2000", "Delay before the first retry in milliseconds; doubles each time"),
    Row::new("retry.maxAgentDelayMs", Kind::Number, "60000", "Longest delay between retries in milliseconds"),
    Row::new("retry.provider.maxRetries", Kind::Number, "0", "Silent retries within one request").at_start(),
    Row::new("retry.provider.timeoutMs", Kind::Number, "null", "Longest wait for an answer to begin in milliseconds; 0 means no limit [default: httpIdleTimeoutMs]").at_start(),
    Row::new("retry.provider.maxRetryDelayMs", Kind::Number, "60000", "Longest wait between silent retries that a server may ask for, in milliseconds; 0 means no limit").at_start(),
    Row::new("httpProxy", Kind::Text, "null", "Proxy for all requests to providers, such as http://proxy:3128 [default: HTTPS_PROXY and HTTP_PROXY]").user_only().at_start(),
    Row::new("httpIdleTimeoutMs", Kind::Number, "300000", "Longest time without data from a server in milliseconds; 0 means no limit").at_start(),
    Row::new("httpContentTimeoutMs", Kind::Number, "600000", "Longest time without a part of the answer from a server that only keeps the connection alive, in milliseconds; 0 means no limit").at_start(),
    Row::new("transport", Kind::Choice(&["auto", "sse", "websocket", "websocket-cached"]), "\"auto\"", "How requests to OpenAI and ChatGPT travel: over HTTP (auto, sse), or over a WebSocket for each request or for a session. Others always go over HTTP").at_start(),
    Row::new("websocketConnectTimeoutMs", Kind::Number, "15000", "Longest wait for a WebSocket in milliseconds; 0 means no limit").at_start(),
    kept!("packages", "Packages of extensions, skills, prompts and themes"),
    kept!("extensions", "Extensions to load"),
    kept!("codemode.mode", "Whether the model calls tools from code"),
    kept!("codemode.inlineBudget", "Tokens of tool descriptions in the prompt"),
    kept!("npmCommand", "Command that installs packages"),
    kept!("selfUpdateCommand", "Command that updates the program").user_only(),
    kept!("sessionShareDestination", "Where shared sessions go"),
    Row::new("warnings.anthropicExtraUsage", Kind::Bool, "true", "Warn when an Anthropic subscription pays for requests: Anthropic may bill those of other programs as extra usage"),
    kept!("enableInstallTelemetry", "Report installations", ever: "pi reports nothing"),
    kept!("enableAnalytics", "Report usage", ever: "pi reports nothing"),
];

impl Kind {
    /// Whether the setting takes this value.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::BoolOr(word) => value.is_boolean() || value == word,
            Self::Number => value.is_u64(),
            Self::Count { least, most } => value.as_u64().is_some_and(|n| (least..=most).contains(&n)),
            Self::Decimal { least, most } => value.as_f64().is_some_and(|n| (least..=most).contains(&n)),
            Self::CountOrAuto { least, most } => {
                value == "auto" || value.as_u64().is_some_and(|n| (least..=most).contains(&n))
            }
            Self::LevelByModel => BTreeMap::<String, ThinkingLevel>::deserialize(value).is_ok(),
            Self::SamplingByModel => BTreeMap::<String, Sampling>::deserialize(value)
                .is_ok_and(|by_model| by_model.values().all(|sampling| sampling.problem().is_none())),
            Self::CompactionByModel => BTreeMap::<String, CompactionOverride>::deserialize(value).is_ok(),
            Self::Text => value.is_string(),
            Self::Choice(choices) => value.as_str().is_some_and(|text| choices.contains(&text)),
            Self::TextList => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::Any => true,
        }
    }

    /// The value that a user typed: JSON, or a text without quotes, or words of a list
    /// separated by commas. Empty is `null`, which resets. May not be valid.
    pub fn parse(self, text: &str) -> Value {
        let text = text.trim();
        if text.is_empty() {
            return Value::Null;
        }
        match (serde_json::from_str::<Value>(text), self) {
            (Ok(value), _) if self.accepts(&value) || value.is_null() => value,
            (Err(_), Self::CountOrAuto { .. }) | (_, Self::Text | Self::Choice(_)) => text.into(),
            (Ok(Value::String(word)), Self::TextList) => vec![word].into(),
            (Ok(value), _) => value,
            // JSON that is not complete.
            (Err(_), Self::TextList) if text.starts_with(['[', '{']) => text.into(),
            (Err(_), Self::TextList) => {
                text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
            }
            (Err(_), _) => text.into(),
        }
    }

    /// What a value has to be, for people.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::BoolOr(word) => format!("true, false or {word}"),
            Self::Number => "a whole number, 0 or more".to_owned(),
            Self::Count { least, most } => format!("a whole number from {least} to {most}"),
            Self::Decimal { least, most } => format!("a number from {least} to {most}"),
            Self::CountOrAuto { least, most } => format!("auto or a whole number from {least} to {most}"),
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
            Self::Text => "a string".to_owned(),
            Self::Choice(choices) => format!("one of {}", choices.join(", ")),
            Self::TextList => "a list of strings".to_owned(),
            Self::Any => "any JSON value".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typed_values_need_no_quotes() {
        let check =
            |kind: Kind, text: &str, expected: Value| assert_eq!(kind.parse(text), expected, "{text}");
        check(Kind::Text, " a b ", json!("a b"));
        check(Kind::Text, "\"a\"", json!("a"));
        check(Kind::Text, "7", json!("7"));
        check(Kind::Text, "", Value::Null);
        check(Kind::Choice(&["on"]), "on", json!("on"));
        check(Kind::Number, "7", json!(7));
        check(Kind::Number, "-7", json!(-7));
        check(Kind::Bool, "true", json!(true));
        check(Kind::Bool, "yes", json!("yes"));
        check(Kind::BoolOr("some"), "some", json!("some"));
        check(Kind::BoolOr("some"), "false", json!(false));
        check(Kind::CountOrAuto { least: 1, most: 9 }, "auto", json!("auto"));
        check(Kind::CountOrAuto { least: 1, most: 9 }, "7", json!(7));
        check(Kind::TextList, "a, b,", json!(["a", "b"]));
        check(Kind::Count { least: 1, most: 9 }, "7", json!(7));
        check(Kind::Any, "{\"a\": [1]}", json!({"a": [1]}));
        check(Kind::Any, "npm", json!("npm"));
        check(Kind::TextList, "[\"a,b\"]", json!(["a,b"]));
        check(Kind::TextList, "[]", json!([]));
        check(Kind::TextList, "[\"a\"", json!("[\"a\""));
        check(Kind::TextList, "[1]", json!([1]));
        check(Kind::TextList, "{\"a\": 1}", json!({"a": 1}));
        check(Kind::TextList, "7", json!(7));
        check(Kind::TextList, "7, true", json!(["7", "true"]));
        check(Kind::LevelByModel, "{\"p/m\": \"low\"}", json!({"p/m": "low"}));
        check(Kind::LevelByModel, "{oops", json!("{oops"));
    }

    #[test]
    fn every_row_has_a_default_that_fits_and_help() {
        for row in ROWS {
            let default = row.default_value();
            assert!(default.is_null() || row.kind.accepts(&default), "{}", row.key);
            assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.key);
            let is_kept = row.kept.is_some_and(|kept| row.help.ends_with(&format!("; kept, has {kept}")));
            assert_eq!(is_kept, row.help.contains("no effect"), "{}", row.key);
        }
    }
}
