//! TABLE: the commands of RPC mode. `docs/rpc.md` is generated from it.

use serde::Deserialize;
use serde_json::Value;

use crate::ai::Image;

use super::controls::Decision;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct RpcCommandRow {
    pub name: &'static str,
    /// Fields beside `id` and `type`; those with `?` are optional.
    pub fields: &'static str,
    /// The `data` of a successful response; empty for none.
    pub data: &'static str,
    pub help: &'static str,
}

const fn row(
    name: &'static str,
    fields: &'static str,
    data: &'static str,
    help: &'static str,
) -> RpcCommandRow {
    RpcCommandRow { name, fields, data, help }
}

pub const RPC_COMMANDS: &[RpcCommandRow] = &[
    row(
        "prompt",
        "message, images?, streamingBehavior?",
        "disposition",
        "Send a prompt. While the agent works, streamingBehavior decides: steer or followUp",
    ),
    row(
        "steer",
        "message, images?",
        "disposition",
        "Send a message that the model reads as soon as possible",
    ),
    row("follow_up", "message, images?", "disposition", "Send a message for when the agent has finished"),
    row("abort", "", "", "Cancel the run; responds when the session has settled"),
    row("clear_queue", "", "steering, followUp", "Take back all queued messages"),
    row("new_session", "parentSession?", "cancelled", "Start a new session"),
    row("switch_session", "sessionPath", "cancelled", "Continue another session"),
    row(
        "fork",
        "entryId",
        "text, cancelled",
        "Continue in a new session with what came before a message of the user",
    ),
    row("clone", "", "cancelled", "Continue in a new session with the whole branch"),
    row("get_fork_messages", "", "messages", "The messages of the user that fork accepts"),
    row(
        "get_state",
        "",
        "model, thinkingLevel, isStreaming, isCompacting, steeringMode, followUpMode, sessionFile, sessionId, sessionName, autoCompactionEnabled, messageCount, pendingMessageCount",
        "The state of the session",
    ),
    row("get_messages", "", "messages", "The messages of the conversation"),
    row("get_entries", "since?", "entries, leafId", "The entries of the session file, or those after one"),
    row("get_tree", "", "tree, leafId", "The entries as a tree"),
    row("get_last_assistant_text", "", "text", "The text of the latest answer"),
    row(
        "get_session_stats",
        "",
        "sessionFile, sessionId, userMessages, assistantMessages, toolCalls, toolResults, totalMessages, tokens, cost, contextUsage",
        "Counts, tokens and cost",
    ),
    row(
        "get_context",
        "",
        "parts, tokens, counted, window, reserve, nTemplates, nPinned",
        "The parts of the next request, with estimated tokens",
    ),
    row("set_session_name", "name", "", "Name the session"),
    row("set_model", "provider, modelId", "the model", "Select a model"),
    row(
        "cycle_model",
        "",
        "model, thinkingLevel, isScoped",
        "Select the next model; data is null if there is no other",
    ),
    row("get_available_models", "", "models", "The models with a key"),
    row("set_thinking_level", "level", "", "Select a thinking level, or the nearest the model supports"),
    row("cycle_thinking_level", "", "level", "Select the next thinking level; data is null if there is none"),
    row("get_available_thinking_levels", "", "levels", "The thinking levels of the model"),
    row("set_steering_mode", "mode", "", "Deliver steering messages all together or one-at-a-time"),
    row("set_follow_up_mode", "mode", "", "Deliver follow-up messages all together or one-at-a-time"),
    row(
        "compact",
        "customInstructions?, review?",
        "summary, firstKeptEntryId, tokensBefore, estimatedTokensAfter, usage, details",
        "Replace the beginning of the conversation with a summary; responds when it is written. With review it waits, and data is draft",
    ),
    row("get_summary_draft", "", "draft", "The summary that waits for a decision, or null"),
    row(
        "decide_summary",
        "decision, text?",
        "",
        "accept the summary that waits, perhaps with another text, or save the text, or drop it",
    ),
    row(
        "handoff",
        "goal",
        "text, cancelled",
        "Open a new session for a goal; responds with its drafted prompt, which is not sent",
    ),
    row("reload", "", "", "Read settings, skills, templates and instructions again"),
    row("get_settings", "", "settings", "All settings, with the origin of their values"),
    row("set_setting", "key, value?", "", "Change a setting of the user, or remove the user's value"),
    row("set_scoped_models", "patterns", "", "The models that cycle_model selects from; none for all"),
    row("deliver_queue", "", "", "Deliver queued steering messages at once"),
    row("set_auto_compaction", "enabled", "", "Compact when the window is nearly full"),
    row("set_auto_retry", "enabled", "", "Repeat requests that failed for a passing reason"),
    row("abort_retry", "", "", "Cancel the wait for a repeated request"),
    row(
        "bash",
        "command, excludeFromContext?",
        "output, exitCode, cancelled, truncated, fullOutputPath, leftOutBytes",
        "Run a command as the user; responds when it has ended. Several may run",
    ),
    row("abort_bash", "", "", "Cancel the commands of the user"),
    row("export_html", "outputPath?", "path", "Write the session as a web page"),
    row(
        "export_session",
        "outputPath, maskSecrets?",
        "path",
        "Write the active branch to a new session file",
    ),
    row("import_session", "path", "cancelled", "Copy a session file to the others and continue with it"),
    row("get_commands", "", "commands", "The commands that a prompt may begin with"),
    row(
        "navigate_tree",
        "entryId, summarize?, customInstructions?",
        "cancelled",
        "Continue at another entry of the session, with a summary of the branch that is left if asked for",
    ),
    row("set_label", "entryId, label?", "", "Name an entry, or take its name away"),
    row("pin", "entryId?, pinned?", "", "Keep a message word for word when the conversation is compacted"),
    row(
        "list_sessions",
        "all?, search?",
        "sessions",
        "The sessions of this directory or of all, or those that contain words",
    ),
    row(
        "get_trace",
        "session?, limit?, before?",
        "messages, nextBefore",
        "Prompts, steps and tool calls, newest first",
    ),
    row("get_tool_stats", "session?", "tools", "Statistics of tool calls"),
    row("get_usage", "days?", "byDay, byModel, byProject, total", "Tokens and cost of all sessions"),
];

/// A command, parsed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum RpcCommand {
    Prompt {
        message: String,
        #[serde(default)]
        images: Vec<Image>,
        streaming_behavior: Option<StreamingBehavior>,
    },
    Steer {
        message: String,
        #[serde(default)]
        images: Vec<Image>,
    },
    FollowUp {
        message: String,
        #[serde(default)]
        images: Vec<Image>,
    },
    Abort,
    ClearQueue,
    NewSession {
        parent_session: Option<String>,
    },
    SwitchSession {
        session_path: String,
    },
    Fork {
        entry_id: String,
    },
    Clone,
    GetForkMessages,
    GetState,
    GetMessages,
    GetEntries {
        since: Option<String>,
    },
    GetTree,
    GetLastAssistantText,
    GetSessionStats,
    SetSessionName {
        name: String,
    },
    SetModel {
        provider: String,
        model_id: String,
    },
    CycleModel,
    GetAvailableModels,
    SetThinkingLevel {
        level: String,
    },
    CycleThinkingLevel,
    GetAvailableThinkingLevels,
    SetSteeringMode {
        mode: String,
    },
    SetFollowUpMode {
        mode: String,
    },
    Compact {
        custom_instructions: Option<String>,
        #[serde(default)]
        review: bool,
    },
    GetSummaryDraft,
    DecideSummary {
        decision: Decision,
        text: Option<String>,
    },
    Handoff {
        goal: String,
    },
    Reload,
    GetSettings,
    SetSetting {
        key: String,
        value: Option<Value>,
    },
    SetScopedModels {
        patterns: Vec<String>,
    },
    DeliverQueue,
    SetAutoCompaction {
        enabled: bool,
    },
    SetAutoRetry {
        enabled: bool,
    },
    AbortRetry,
    Bash {
        command: String,
        #[serde(default)]
        exclude_from_context: bool,
    },
    AbortBash,
    ExportHtml {
        output_path: Option<String>,
    },
    ExportSession {
        output_path: String,
        #[serde(default)]
        mask_secrets: bool,
    },
    ImportSession {
        path: String,
    },
    GetCommands,
    NavigateTree {
        entry_id: String,
        #[serde(default)]
        summarize: bool,
        custom_instructions: Option<String>,
    },
    SetLabel {
        entry_id: String,
        label: Option<String>,
    },
    Pin {
        entry_id: Option<String>,
        #[serde(default = "yes")]
        pinned: bool,
    },
    ListSessions {
        #[serde(default)]
        all: bool,
        search: Option<String>,
    },
    GetTrace {
        session: Option<String>,
        limit: Option<usize>,
        before: Option<String>,
    },
    GetToolStats {
        session: Option<String>,
    },
    GetContext,
    GetUsage {
        days: Option<u64>,
    },
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StreamingBehavior {
    Steer,
    FollowUp,
}
