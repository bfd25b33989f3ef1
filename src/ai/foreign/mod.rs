//! Conversations in the request formats of other programs.
//!
//! [`import`] reads a request body of OpenAI, Anthropic or Google, or only its
//! list of messages, as one JSON document or as JSON lines; [`export`] writes
//! one. Both list in a [`Report`] what the target format cannot represent. Each
//! format is a file with both directions; `draft` collects parsed messages and
//! attaches results to their calls, `plan` selects the parts to write. This module knows
//! no files or sessions. The invariants: nothing that a model would read
//! is lost without a note, and an imported conversation stays unchanged when it is
//! exported to the same format and imported again.
//!
//! ```
//! use pi::ai::foreign::{Format, export, import};
//!
//! let chat = r#"[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]"#;
//! let imported = import(Format::OpenAiChat, chat)?;
//! assert!(imported.report.is_empty());
//!
//! let exported = export(Format::Google, &imported.into_messages());
//! assert_eq!(exported.body["systemInstruction"]["parts"][0]["text"], "Be brief.");
//! assert_eq!(exported.body["contents"][0]["parts"][0]["text"], "hi");
//! # Ok::<(), pi::ai::foreign::ImportError>(())
//! ```
//!
//! # What a conversation loses on the way there and back
//!
//! In every format: times, usage, cost, the provider's name, details of tool
//! results, blank texts, failed answers, the difference between several
//! leading system messages, and which system message declared a tool.
//! Results follow their answer, in the order of its calls. Thinking, and
//! signatures of texts and calls, are exported only to the format of the
//! models that made them. Ids of another API's calls are
//! changed if the format would reject them.
//!
//! Images are embedded or given by URL; a `data:` URL is an embedded image.
//! URLs are exported unchanged, and reported if the services of the format
//! do not fetch them.
//!
//! | format | also |
//! |---|---|
//! | `openai` | the media type of an image by URL; that a result is an error; the order of text and calls within an answer; the borders between an answer's thinking blocks; the order of a result's texts and images |
//! | `openai-responses` | the media type of an image by URL; that a result is an error; the border between two consecutive answers; names |
//! | `anthropic` | media type and detail of an image by URL; names; arguments that are not an object are wrapped in one; images of an error come after its texts |
//! | `google` | detail of an image by URL; such an image becomes a text if its media type is unknown; names; arguments that are not an object are wrapped in one; the order of a result's texts and images; the border between two messages of one side; the position of later system messages |

mod anthropic;
mod chat;
mod document;
mod draft;
mod google;
mod json;
mod plan;
mod report;
mod responses;

use std::borrow::Borrow;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::ai::messages::{Api, Message, SystemMessage};
use crate::ai::requests::IdRule;

pub use document::ImportError;
pub use report::{Note, Report};

/// A request format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.
    OpenAiChat,
    /// Responses: <https://platform.openai.com/docs/api-reference/responses>.
    OpenAiResponses,
    /// Messages: <https://docs.anthropic.com/en/api/messages>.
    Anthropic,
    /// `generateContent`: <https://ai.google.dev/api/generate-content>.
    Google,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Google];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
        }
    }

    /// The format with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The name of the message list in the body.
    fn list(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::Anthropic => "messages",
            Self::OpenAiResponses => "input",
            Self::Google => "contents",
        }
    }

    /// The API and provider recorded for imported answers.
    fn origin(self) -> (Api, &'static str) {
        match self {
            Self::OpenAiChat => (Api::OPENAI_COMPLETIONS, "openai"),
            Self::OpenAiResponses => (Api::OPENAI_RESPONSES, "openai"),
            Self::Anthropic => (Api::ANTHROPIC_MESSAGES, "anthropic"),
            Self::Google => (Api::GOOGLE_GENERATIVE_AI, "google"),
        }
    }

    /// Whether answers of `api` come in this format, so that it can contain
    /// their thinking and signatures.
    fn speaks(self, api: &Api) -> bool {
        let apis: &[Api] = match self {
            Self::OpenAiChat => &[Api::OPENAI_COMPLETIONS, Api::MISTRAL_CONVERSATIONS],
            Self::OpenAiResponses => {
                &[Api::OPENAI_RESPONSES, Api::OPENAI_CODEX_RESPONSES, Api::AZURE_OPENAI_RESPONSES]
            }
            Self::Anthropic => &[Api::ANTHROPIC_MESSAGES, Api::ANTHROPIC_VERTEX],
            Self::Google => &[Api::GOOGLE_GENERATIVE_AI, Api::GOOGLE_VERTEX],
        };
        apis.contains(api)
    }

    fn id_rule(self) -> IdRule {
        match self {
            Self::OpenAiChat => IdRule::Word { max: 40 },
            Self::OpenAiResponses => IdRule::CallAndItem { max: 64 },
            Self::Anthropic | Self::Google => IdRule::Word { max: 64 },
        }
    }

    /// Whether consecutive messages of one side are read as one.
    fn joins_answers(self) -> bool {
        matches!(self, Self::OpenAiResponses | Self::Google)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An imported conversation. Its times are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The detected format; for OpenAI's two it may differ from the requested one.
    pub format: Format,
    /// The system message before the first message.
    pub system: Option<SystemMessage>,
    /// Contains at least one message of a user or a model.
    pub messages: Vec<Message>,
    /// What could not be carried over.
    pub report: Report,
}

impl Imported {
    /// The whole conversation, the system prompt first.
    pub fn into_messages(self) -> Vec<Message> {
        self.system.into_iter().map(Message::from).chain(self.messages).collect()
    }
}

/// Reads a conversation. A request for one of OpenAI's two formats accepts both.
///
/// JSON lines are messages, one per line; or whole requests, of which the last
/// one is used, because each request of a log repeats the earlier messages. Requests
/// may be wrapped as in the batch files of the three services.
///
/// # Errors
/// If `text` is not such a conversation: the position of the error and the expected
/// content, and the format that the text seems to have instead.
pub fn import(format: Format, text: &str) -> Result<Imported, ImportError> {
    let mut report = Report::default();
    let document = document::read(format, text, &mut report)?;
    let mut draft = draft::Draft::new(document.format, document.model(), report);
    document.note_fields(&mut draft.report);
    match document.format {
        Format::OpenAiChat => chat::read(&document, &mut draft)?,
        Format::OpenAiResponses => responses::read(&document, &mut draft)?,
        Format::Anthropic => anthropic::read(&document, &mut draft)?,
        Format::Google => google::read(&document, &mut draft)?,
    }
    draft.finish()
}

/// A conversation in a request format.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The format of the document.
    pub format: Format,
    /// The request body: system prompt, messages and tools, and the model if the
    /// last answer came from a model with this format. Generation options (`stream`,
    /// `max_tokens`, …) are left to the sender.
    pub body: Value,
    /// What could not be carried over.
    pub report: Report,
}

impl Exported {
    /// The body as lines: one message each, the system prompt first. The
    /// report then also lists what lines cannot contain.
    pub fn into_lines(mut self) -> (Vec<Value>, Report) {
        let mut lines = Vec::new();
        let mut body = match self.body {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        let system = match self.format {
            // It is already the first message.
            Format::OpenAiChat => None,
            Format::OpenAiResponses => body.shift_remove("instructions"),
            Format::Anthropic => body.shift_remove("system"),
            Format::Google => body.shift_remove("systemInstruction"),
        };
        lines.extend(system.map(|system| match system {
            Value::Object(mut content) => {
                content.insert("role".to_owned(), Value::from("system"));
                Value::Object(content)
            }
            text => json!({"role": "system", "content": text}),
        }));
        if let Some(Value::Array(messages)) = body.shift_remove(self.format.list()) {
            lines.extend(messages);
        }
        for field in body.keys() {
            self.report.add(field.as_str(), "not supported in JSON lines");
        }
        (lines, self.report)
    }
}

/// Writes the conversation as a request of `format`: the content a model would
/// receive, without failed answers. Calls without results get no invented ones.
pub fn export<M: Borrow<Message>>(format: Format, messages: &[M]) -> Exported {
    let mut plan = plan::Plan::new(format, messages);
    let (mut body, messages) = match format {
        Format::OpenAiChat => chat::write(&mut plan),
        Format::OpenAiResponses => responses::write(&mut plan),
        Format::Anthropic => anthropic::write(&mut plan),
        Format::Google => google::write(&mut plan),
    };
    if let Some(model) = plan.model.filter(|_| format != Format::Google) {
        body.shift_insert(0, "model".to_owned(), Value::from(model));
    }
    body.insert(format.list().to_owned(), Value::Array(messages));
    if let Some(tools) = plan.tools() {
        body.insert("tools".to_owned(), tools);
    }
    Exported { format, body: Value::Object(body), report: plan.report }
}

#[cfg(test)]
mod tests;
