//! The lines of a session file.
//!
//! The JSON is pi's format, written in the field order the original writes.
//! Entries and fields this version does not know survive a round trip.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::ai::{
    self, AssistantMessage, ContentBlock, Extra, Message, Millis, SystemMessage, ToolResultMessage, Usage,
    UserContent, UserMessage,
};

use super::line::{Head, MessageLine};

/// The id of an entry, unique within its file; any string is valid. Ids of up to 24 bytes,
/// which all are that pi creates, need no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(CompactString);

impl EntryId {
    /// The id that a file has.
    pub fn new(id: &str) -> Self {
        Self(CompactString::new(id))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|id| Self(id.into()))
    }
}

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Missing in the oldest files, which are version 1.
    #[serde(default = "version_one")]
    pub version: u64,
    /// A UUID.
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
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

fn version_one() -> u64 {
    1
}

/// Any line but the first: a node of the session tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Unique in the file.
    pub id: EntryId,
    /// `None` for a root.
    pub parent_id: Option<EntryId>,
    /// ISO 8601, UTC, milliseconds.
    pub timestamp: String,
    /// What it says.
    pub body: EntryBody,
}

/// The content of an entry. `docs/sessions.md` describes each kind.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryBody {
    /// A message of the conversation.
    Message {
        /// The message.
        message: SessionMessage,
        /// Fields that pi does not know, kept.
        extra: Extra,
    },
    /// Another model from here on.
    ModelChange(ModelChange),
    /// Another thinking level from here on.
    ThinkingLevelChange(ThinkingLevelChange),
    /// Tokens of a request that is no message.
    Usage(Box<UsageEntry>),
    /// A summary in place of what came before.
    Compaction(Box<Compaction>),
    /// A summary of a branch that was left.
    BranchSummary(Box<BranchSummary>),
    /// A change of what the model sees of an entry.
    ContextEdit(Box<ContextEdit>),
    /// State of an extension.
    Custom(CustomState),
    /// A message of an extension.
    CustomMessage(Box<CustomMessage>),
    /// A name for an entry.
    Label(Label),
    /// A name for the session.
    SessionInfo(SessionInfo),
    /// A kind this version does not know: part of the tree, not of the context.
    Unknown {
        /// Its `type`.
        kind: String,
        /// Its other fields.
        fields: Extra,
    },
}

impl EntryBody {
    /// A one-line preview of at most `max_chars` characters.
    pub fn preview(&self, max_chars: usize) -> String {
        let text = match self {
            Self::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::User(user) => user.content.text(),
                Message::Assistant(answer) => answer.texts().collect(),
                Message::ToolResult(result) => ai::join_text(&result.content),
                Message::System(_) => "system prompt".to_owned(),
            },
            Self::Message { message: SessionMessage::BashExecution(execution), .. } => {
                format!("!{}", execution.command)
            }
            Self::ModelChange(change) => format!("{}/{}", change.provider, change.model_id),
            Self::ThinkingLevelChange(change) => change.thinking_level.clone(),
            Self::Compaction(compaction) => compaction.summary.clone(),
            Self::BranchSummary(branch) => branch.summary.clone(),
            Self::Label(label) => label.label.clone().unwrap_or_default(),
            Self::SessionInfo(info) => info.name.clone(),
            Self::CustomMessage(message) => {
                message.content.as_ref().map(UserContent::text).unwrap_or_default()
            }
            Self::Message { .. }
            | Self::Usage(_)
            | Self::ContextEdit(_)
            | Self::Custom(_)
            | Self::Unknown { .. } => String::new(),
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() <= max_chars {
            return line;
        }
        let cut: String = line.chars().take(max_chars.saturating_sub(1)).collect();
        if max_chars == 0 { cut } else { format!("{}…", cut.trim_end()) }
    }

    /// The body for a message of the conversation.
    pub fn message(message: Arc<Message>) -> Self {
        Self::Message { message: SessionMessage::Model(message), extra: Extra::new() }
    }

    /// A user's `!` command.
    pub fn bash(execution: BashExecution) -> Self {
        Self::Message { message: SessionMessage::BashExecution(Box::new(execution)), extra: Extra::new() }
    }

    /// Whether it contains the bytes of an image.
    pub(super) fn has_image(&self) -> bool {
        let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
        match self {
            Self::Message { message: SessionMessage::Model(message), .. } => {
                message.input_blocks().iter().any(is_image)
            }
            Self::CustomMessage(custom) => match &custom.content {
                Some(UserContent::Blocks(blocks)) => blocks.iter().any(is_image),
                Some(UserContent::Text(_)) | None => false,
            },
            _ => false,
        }
    }

    /// Whether this entry creates the file, as user messages and answers do.
    pub(super) fn is_conversation(&self) -> bool {
        match self {
            Self::Message { message: SessionMessage::Model(message), .. } => {
                matches!(**message, Message::User(_) | Message::Assistant(_))
            }
            Self::Message { message: SessionMessage::BashExecution(_), .. } => true,
            _ => false,
        }
    }
}

/// A message as sessions store it: one of the conversation, or a `!` command.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SessionMessage {
    /// What a model reads or wrote.
    Model(Arc<Message>),
    /// A command of the user.
    BashExecution(Box<BashExecution>),
    /// A role this version does not know; kept, never sent.
    Unknown(Value),
}

impl Entry {
    /// Parses one line of a session file. Content that does not match its kind is
    /// kept as [`EntryBody::Unknown`]; a lone surrogate becomes a replacement
    /// character, because no request can contain it.
    ///
    /// # Errors
    /// If the line is not an entry: not JSON, or without type or id.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        Self::parse_any(line).or_else(|error| match ai::replace_lone_surrogates(line) {
            // JavaScript can cut a surrogate pair and writes the remaining half.
            Cow::Owned(whole) => Self::parse_any(&whole),
            Cow::Borrowed(_) => Err(error),
        })
    }

    fn parse_any(line: &str) -> Result<Self, serde_json::Error> {
        Self::parse_known(line).or_else(|_| {
            let head: Bare<'_> = serde_json::from_str(line)?;
            let fields = without_base(serde_json::from_str(line)?);
            Ok(Self {
                id: EntryId::new(&head.id),
                parent_id: head.parent_id.as_deref().map(EntryId::new),
                timestamp: head.timestamp.map(Cow::into_owned).unwrap_or_default(),
                body: EntryBody::Unknown { kind: head.kind.into_owned(), fields },
            })
        })
    }

    fn parse_known(line: &str) -> Result<Self, serde_json::Error> {
        let head = Head::read(line)?;
        let body = match (head.kind.as_ref(), head.role.as_deref()) {
            ("message", Some("user")) => message::<UserMessage>(line)?,
            ("message", Some("assistant")) => message::<AssistantMessage>(line)?,
            ("message", Some("toolResult")) => message::<ToolResultMessage>(line)?,
            ("message", Some("system")) => message::<SystemMessage>(line)?,
            ("message", Some("bashExecution")) => {
                let MessageLine::<Box<BashExecution>> { mut message, extra } = serde_json::from_str(line)?;
                message.extra.shift_remove("role");
                EntryBody::Message { message: SessionMessage::BashExecution(message), extra }
            }
            ("message", Some(_)) => {
                let MessageLine::<Value> { message, extra } = serde_json::from_str(line)?;
                EntryBody::Message { message: SessionMessage::Unknown(message), extra }
            }
            (kind, _) => other(kind, without_base(serde_json::from_str(line)?)),
        };
        Ok(Self {
            id: EntryId::new(&head.id),
            parent_id: head.parent_id.as_deref().map(EntryId::new),
            timestamp: head.timestamp.map(Cow::into_owned).unwrap_or_default(),
            body,
        })
    }

    /// The line of the session file, without its line break.
    pub fn to_line(&self) -> String {
        match &self.body {
            // Messages can be megabytes, so they are serialized directly.
            EntryBody::Message { message, extra } => {
                serde_json::to_string(&self.message_line(message, extra)).expect(SERIALIZES)
            }
            _ => self.to_value().to_string(),
        }
    }

    /// The line as a value.
    pub fn to_value(&self) -> Value {
        let (kind, fields, custom_order) = match &self.body {
            EntryBody::Message { message, extra } => {
                return serde_json::to_value(self.message_line(message, extra)).expect(SERIALIZES);
            }
            EntryBody::ModelChange(body) => ("model_change", to_fields(body), false),
            EntryBody::ThinkingLevelChange(body) => ("thinking_level_change", to_fields(body), false),
            EntryBody::Usage(body) => ("usage", to_fields(body), false),
            EntryBody::Compaction(body) => ("compaction", to_fields(body), false),
            EntryBody::BranchSummary(body) => ("branch_summary", to_fields(body), false),
            EntryBody::ContextEdit(body) => ("context_edit", to_fields(body), false),
            EntryBody::Custom(body) => ("custom", to_fields(body), true),
            EntryBody::CustomMessage(body) => ("custom_message", to_fields(body), true),
            EntryBody::Label(body) => ("label", to_fields(body), false),
            EntryBody::SessionInfo(body) => ("session_info", to_fields(body), false),
            EntryBody::Unknown { kind, fields } => (kind.as_str(), fields.clone(), false),
        };
        let mut line = Extra::new();
        line.insert("type".to_owned(), Value::from(kind));
        if custom_order {
            line.extend(fields);
            self.add_base(&mut line);
        } else {
            self.add_base(&mut line);
            line.extend(fields);
        }
        Value::Object(line)
    }

    fn message_line<'a>(&'a self, message: &'a SessionMessage, extra: &'a Extra) -> LineOfMessage<'a> {
        LineOfMessage {
            kind: "message",
            id: &self.id,
            parent_id: &self.parent_id,
            timestamp: &self.timestamp,
            message: match message {
                SessionMessage::BashExecution(execution) => {
                    Role::Bash(BashRole { role: "bashExecution", execution })
                }
                SessionMessage::Model(_) | SessionMessage::Unknown(_) => Role::Other(message),
            },
            extra,
        }
    }

    fn add_base(&self, line: &mut Extra) {
        line.insert("id".to_owned(), Value::from(self.id.as_str()));
        line.insert(
            "parentId".to_owned(),
            self.parent_id.as_ref().map_or(Value::Null, |id| id.as_str().into()),
        );
        line.insert("timestamp".to_owned(), Value::from(self.timestamp.as_str()));
    }
}

const SERIALIZES: &str = "messages have string keys and no failing serializers";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineOfMessage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a EntryId,
    parent_id: &'a Option<EntryId>,
    timestamp: &'a str,
    message: Role<'a>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Role<'a> {
    Bash(BashRole<'a>),
    Other(&'a SessionMessage),
}

#[derive(Serialize)]
struct BashRole<'a> {
    role: &'static str,
    #[serde(flatten)]
    execution: &'a BashExecution,
}

/// The fields that every entry has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bare<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
}

fn message<'a, M>(line: &'a str) -> Result<EntryBody, serde_json::Error>
where
    M: Deserialize<'a> + Tidy + Into<Message>,
{
    let MessageLine::<M> { mut message, extra } = serde_json::from_str(line)?;
    message.tidy();
    let message = SessionMessage::Model(Arc::new(message.into()));
    Ok(EntryBody::Message { message, extra })
}

/// A message that was just read.
trait Tidy {
    /// Removes what serde leaves: the role among the unknown fields, and room for more in
    /// tables and lists, which for a long session would be a third of its memory.
    fn tidy(&mut self);
}

fn remove_role(extra: &mut Extra) {
    extra.shift_remove("role");
    if extra.is_empty() {
        *extra = Extra::new();
    }
}

impl Tidy for UserMessage {
    fn tidy(&mut self) {
        remove_role(&mut self.extra);
        if let UserContent::Blocks(blocks) = &mut self.content {
            blocks.shrink_to_fit();
        }
    }
}

impl Tidy for AssistantMessage {
    fn tidy(&mut self) {
        remove_role(&mut self.extra);
        self.content.shrink_to_fit();
    }
}

impl Tidy for ToolResultMessage {
    fn tidy(&mut self) {
        remove_role(&mut self.extra);
        self.content.shrink_to_fit();
    }
}

impl Tidy for SystemMessage {
    fn tidy(&mut self) {
        remove_role(&mut self.extra);
    }
}

/// A body that is not a message; content that does not match its kind is kept as unknown.
fn other(kind: &str, fields: Extra) -> EntryBody {
    fn read<T: for<'de> Deserialize<'de>>(
        fields: &Extra,
        wrap: impl Fn(T) -> EntryBody,
    ) -> Option<EntryBody> {
        serde_json::from_value(Value::Object(fields.clone())).ok().map(wrap)
    }
    let known = match kind {
        "model_change" => read(&fields, EntryBody::ModelChange),
        "thinking_level_change" => read(&fields, EntryBody::ThinkingLevelChange),
        "usage" => read(&fields, EntryBody::Usage),
        "compaction" => read(&fields, EntryBody::Compaction),
        "branch_summary" => read(&fields, EntryBody::BranchSummary),
        "context_edit" => read(&fields, EntryBody::ContextEdit),
        "custom" => read(&fields, EntryBody::Custom),
        "custom_message" => read(&fields, EntryBody::CustomMessage),
        "label" => read(&fields, EntryBody::Label),
        "session_info" => read(&fields, EntryBody::SessionInfo),
        _ => None,
    };
    known.unwrap_or_else(|| EntryBody::Unknown { kind: kind.to_owned(), fields })
}

fn to_fields<T: Serialize>(body: &T) -> Extra {
    match serde_json::to_value(body) {
        Ok(Value::Object(fields)) => fields,
        _ => Extra::new(),
    }
}

fn without_base(mut fields: Extra) -> Extra {
    for name in ["type", "id", "parentId", "timestamp"] {
        fields.shift_remove(name);
    }
    fields
}

/// A command the user ran with `!` or `!!`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashExecution {
    /// The command line.
    pub command: String,
    /// What it printed, cut if it was long.
    #[serde(default)]
    pub output: String,
    /// `None` if it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Whether the user ended it.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether the output was cut.
    #[serde(default)]
    pub truncated: bool,
    /// File with the complete output, if `output` is only its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Number of bytes of the middle that the file lacks, if any; an addition to the original's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_bytes: Option<u64>,
    /// How long it ran; an addition to the original's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When it ended.
    #[serde(default)]
    pub timestamp: Millis,
    /// Run with `!!`: the model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Another model from here on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    /// The id of the provider.
    pub provider: String,
    /// The id of the model.
    pub model_id: String,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Another thinking level from here on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    /// The name of the level.
    pub thinking_level: String,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tokens spent outside the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageEntry {
    /// Tokens and dollars.
    #[serde(default)]
    pub usage: Usage,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary that replaces everything before `first_kept_entry_id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// What the model reads in place of earlier messages.
    #[serde(default)]
    pub summary: String,
    /// The compaction's own id if nothing before it is kept.
    #[serde(default)]
    pub first_kept_entry_id: String,
    /// Tokens of the request before the compaction.
    #[serde(default)]
    pub tokens_before: u64,
    /// Files that were read and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary itself cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether an extension wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// The prompt and tools at the time of the compaction.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "with_role")]
    pub system_message: Option<SystemMessage>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A system message with its role, as messages of a session have one.
mod with_role {
    use super::{Deserialize, Deserializer, Message, Serialize, Serializer, SystemMessage};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        message: &Option<SystemMessage>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        message.clone().map(Message::from).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemMessage>, D::Error> {
        let mut message = Option::<SystemMessage>::deserialize(deserializer)?;
        if let Some(message) = &mut message {
            message.extra.shift_remove("role");
        }
        Ok(message)
    }
}

/// The summary of an abandoned branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// The abandoned leaf, or `root`.
    #[serde(default)]
    pub from_id: String,
    /// What the model reads of the branch.
    #[serde(default)]
    pub summary: String,
    /// Files that were read and changed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary itself cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether an extension wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Hides or replaces the content of another entry, for the model only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    /// The entry that looks different from here on.
    pub target_id: EntryId,
    /// `None` hides the target.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What takes the place of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    /// A string or content blocks.
    pub content: Value,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// State of an extension; neither shown nor sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomState {
    /// The extension's name for it.
    #[serde(default)]
    pub custom_type: String,
    /// What it stores.
    #[serde(default)]
    pub data: Value,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message inserted by an application; the model reads it as
/// a message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for it.
    #[serde(default)]
    pub custom_type: String,
    /// What the model reads.
    #[serde(default)]
    pub content: Option<UserContent>,
    /// Whether the user sees it.
    #[serde(default)]
    pub display: bool,
    /// Data for screens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A name for an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// The entry.
    pub target_id: EntryId,
    /// `None` clears the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A name for the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Empty clears the name.
    #[serde(default)]
    pub name: String,
    /// Fields that pi does not know, kept.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_message_of_a_compaction_has_its_role() {
        let line = |role: &str| {
            format!(
                r#"{{"type":"compaction","id":"c","parentId":null,"timestamp":"T","summary":"S","firstKeptEntryId":"c","tokensBefore":1,"systemMessage":{{{role}"content":"p","timestamp":1}}}}"#
            )
        };
        let with_role = line(r#""role":"system","#);
        // Also where an older version left it out.
        for line in [with_role.clone(), line("")] {
            assert_eq!(Entry::parse(&line).unwrap().to_line(), with_role);
        }
    }

    /// One line of each kind, as the original writes them, plus unknown kinds.
    const LINES: &[&str] = &[
        r#"{"type":"model_change","id":"a1","parentId":null,"timestamp":"T","provider":"acme","modelId":"m-1"}"#,
        r#"{"type":"thinking_level_change","id":"a2","parentId":"a1","timestamp":"T","thinkingLevel":"medium"}"#,
        r#"{"type":"message","id":"a3","parentId":"a2","timestamp":"T","message":{"role":"system","content":"","sections":{"preamble":"P"},"timestamp":1,"toolsAdded":[{"name":"read","description":"d","parameters":{"type":"object"}}]}}"#,
        r#"{"type":"message","id":"a4","parentId":"a3","timestamp":"T","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}}"#,
        r#"{"type":"message","id":"a4","parentId":"a3","timestamp":"T","message":{"role":"user","content":"plain","timestamp":1,"mood":"good"}}"#,
        r#"{"type":"message","id":"a4","parentId":"a3","timestamp":"T","message":{"role":"user","content":[{"type":"text","text":"[image: https://x/y]","imageUrl":"https://x/y","mimeType":"image/png","novel":{"z":1,"a":null}}],"timestamp":1}}"#,
        r#"{"type":"message","id":"a4","parentId":"a3","timestamp":"T","message":{"role":"user","content":[{"type":"text","text":"[image: https://x/y]","imageUrl":""},{"type":"text","text":"hi","imageUrl":["https://x/y"]}],"timestamp":1}}"#,
        r#"{"type":"message","id":"a5","parentId":"a4","timestamp":"T","message":{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}},{"type":"novel","x":1}],"api":"openai-completions","provider":"acme","model":"m-1","usage":{"input":10,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":12,"cost":{"input":0.004044,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.004044}},"stopReason":"toolUse","timestamp":1,"responseId":"r","durationMs":38,"thinkingLevel":"medium","novel":true}}"#,
        r#"{"type":"message","id":"a6","parentId":"a5","timestamp":"T","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"x"}],"isError":false,"durationMs":1,"timestamp":1}}"#,
        r#"{"type":"message","id":"a7","parentId":"a6","timestamp":"T","message":{"role":"bashExecution","command":"exit 3","output":"","exitCode":3,"cancelled":false,"truncated":false,"timestamp":1,"excludeFromContext":true}}"#,
        r#"{"type":"message","id":"a8","parentId":"a7","timestamp":"T","message":{"role":"oracle","content":"?"}}"#,
        r#"{"type":"compaction","id":"a9","parentId":"a8","timestamp":"T","summary":"S","firstKeptEntryId":"a4","tokensBefore":111616,"details":{"readFiles":["a"],"modifiedFiles":[]},"fromHook":false}"#,
        r#"{"type":"branch_summary","id":"b1","parentId":"a4","timestamp":"T","fromId":"a9","summary":"B","details":{"readFiles":[]},"fromHook":false}"#,
        r#"{"type":"label","id":"b2","parentId":"b1","timestamp":"T","targetId":"a4","label":"start"}"#,
        r#"{"type":"session_info","id":"b3","parentId":"b2","timestamp":"T","name":"Demo"}"#,
        r#"{"type":"context_edit","id":"b4","parentId":"b3","timestamp":"T","targetId":"a5","replacement":null}"#,
        r#"{"type":"usage","id":"b5","parentId":"b4","timestamp":"T","usage":{"input":0,"output":0,"cacheRead":5,"cacheWrite":0,"totalTokens":5,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"kind":"cache_warm"}"#,
        r#"{"type":"custom","customType":"ext","data":{"n":1},"id":"b6","parentId":"b5","timestamp":"T"}"#,
        r#"{"type":"custom_message","customType":"ext","content":"note","display":true,"id":"b7","parentId":"b6","timestamp":"T"}"#,
        r#"{"type":"from_the_future","id":"b8","parentId":"b7","timestamp":"T","z":1,"a":[null]}"#,
    ];

    #[test]
    fn every_line_survives_a_round_trip_byte_for_byte() {
        for line in LINES {
            let entry = Entry::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(entry.to_line(), *line);
        }
    }

    #[test]
    fn null_content_is_empty_content() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"assistant","content":null,"stopReason":"stop"}}"#;
        let EntryBody::Message { message: SessionMessage::Model(message), .. } =
            Entry::parse(line).unwrap().body
        else {
            panic!("not a message")
        };
        assert!(matches!(&*message, Message::Assistant(message) if message.content.is_empty()));
    }

    #[test]
    fn half_a_surrogate_pair_does_not_cost_the_line() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"user","content":"cut \ud83d here \ud83e\udd80"}}"#;
        let EntryBody::Message { message: SessionMessage::Model(message), .. } =
            Entry::parse(line).unwrap().body
        else {
            panic!("not a message")
        };
        let Message::User(user) = &*message else { panic!("{message:?}") };
        assert_eq!(user.content.text(), "cut \u{fffd} here 🦀");
    }

    #[test]
    fn a_line_without_type_or_id_is_no_entry() {
        for line in ["", "[]", "{}", r#"{"type":"label"}"#, r#"{"id":"a"}"#, r#"{"type":"mess"#] {
            assert!(Entry::parse(line).is_err(), "{line}");
        }
    }
}
