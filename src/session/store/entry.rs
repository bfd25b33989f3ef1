//! The lines of a session file.
//!
//! The JSON is pi's format, written in the field order the original writes.
//! Entries and fields this version does not know survive a round trip.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ai::{
    AssistantMessage, Extra, Message, Millis, SystemMessage, ToolResultMessage, Usage, UserContent,
    UserMessage,
};

/// Names an entry within its file; any string is legal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(Arc<str>);

impl EntryId {
    pub fn new(id: &str) -> Self {
        Self(Arc::from(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Missing in the oldest files, which are version 1.
    #[serde(default = "version_one")]
    pub version: u64,
    pub id: String,
    /// ISO 8601, UTC, milliseconds.
    #[serde(default)]
    pub timestamp: String,
    /// The directory the session works in.
    #[serde(default)]
    pub cwd: String,
    /// Path of the file this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

fn version_one() -> u64 {
    1
}

/// Any line but the first: a node of the session tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: EntryId,
    /// `None` for a root.
    pub parent_id: Option<EntryId>,
    /// ISO 8601, UTC, milliseconds.
    pub timestamp: String,
    pub body: EntryBody,
}

/// What an entry says. `docs/sessions.md` describes each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryBody {
    Message(MessageBody),
    ModelChange(ModelChange),
    ThinkingLevelChange(ThinkingLevelChange),
    Usage(UsageEntry),
    Compaction(Compaction),
    BranchSummary(BranchSummary),
    ContextEdit(ContextEdit),
    Custom(CustomState),
    CustomMessage(CustomMessage),
    Label(Label),
    SessionInfo(SessionInfo),
    /// A kind this version does not know: part of the tree, not of the context.
    #[serde(untagged)]
    Unknown(Value),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageBody {
    pub message: SessionMessage,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message as sessions store it: those of the model, and `!` commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum SessionMessage {
    System(SystemMessage),
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    BashExecution(BashExecution),
    /// A role this version does not know; kept, never sent.
    #[serde(untagged)]
    Unknown(Value),
}

impl From<Message> for SessionMessage {
    fn from(message: Message) -> Self {
        match message {
            Message::System(message) => Self::System(message),
            Message::User(message) => Self::User(message),
            Message::Assistant(message) => Self::Assistant(message),
            Message::ToolResult(message) => Self::ToolResult(message),
        }
    }
}

/// A command the user ran with `!` or `!!`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashExecution {
    pub command: String,
    #[serde(default)]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default)]
    pub truncated: bool,
    /// File with the whole output, when `output` is only its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    #[serde(default)]
    pub timestamp: Millis,
    /// Run with `!!`: the model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    pub provider: String,
    pub model_id: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    pub thinking_level: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tokens spent outside of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageEntry {
    #[serde(default)]
    pub usage: Usage,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary that stands for everything before `first_kept_entry_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    #[serde(default)]
    pub summary: String,
    /// Its own id when nothing before it is kept.
    #[serde(default)]
    pub first_kept_entry_id: String,
    #[serde(default)]
    pub tokens_before: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// The prompt and tools in force, replayed at the time of compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<SystemMessage>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// What happened on a branch that was left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// The abandoned leaf, or `root`.
    #[serde(default)]
    pub from_id: String,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Hides or replaces the content of another entry, for the model only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    pub target_id: EntryId,
    /// `None` hides the target.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    /// A string or content blocks.
    pub content: Value,
    #[serde(flatten)]
    pub extra: Extra,
}

/// State of an extension; neither shown nor sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomState {
    #[serde(default)]
    pub custom_type: String,
    #[serde(default)]
    pub data: Value,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message an application put into the conversation; the model reads it as
/// the user's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    #[serde(default)]
    pub custom_type: String,
    #[serde(default)]
    pub content: Option<UserContent>,
    #[serde(default)]
    pub display: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    pub target_id: EntryId,
    /// `None` clears the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Empty clears the name.
    #[serde(default)]
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}
