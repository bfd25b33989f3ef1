//! Conversations in the request formats of others.
//!
//! [`import`] reads a request body of OpenAI, Anthropic or Google, or just its
//! list of messages, as one JSON document or as JSON lines; [`export`] writes
//! one. Both say in a [`Report`] what the other side has no place for. Each
//! format is a file with both directions; `draft` collects what is read and ties
//! results to their calls, `plan` decides what is written. Files and sessions
//! are the business of others. The invariants: nothing that a model would read
//! is lost without a note, and what was imported comes back unchanged when it is
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
//! results, blank texts, answers that failed, the difference between several
//! leading system messages, and which message of the system declared a tool.
//! Results stand behind their answer, in the order of its calls. Thinking, and
//! signatures of texts and calls, are for the models that made them: they go to
//! the format of those models and to no other. Ids of another API's calls are
//! changed where the format would refuse them.
//!
//! Images come by their bytes or by their address; a `data:` URL is bytes.
//! Addresses are carried as they are, and noted where the services of the format
//! do not fetch such ones.
//!
//! | format | also |
//! |---|---|
//! | `openai` | the media type of an image by address; that a result is an error; the order of text and calls within an answer; all thinking of an answer is one; a result is one text, then its images |
//! | `openai-responses` | the media type of an image by address; that a result is an error; the border between two answers with nothing between them; names |
//! | `anthropic` | media type and detail of an image by address; names; arguments that are no object are wrapped in one; images of an error come after its texts |
//! | `google` | detail of an image by address; such an image becomes a text if its media type is not known; names; arguments that are no object are wrapped in one; a result is one text, then its images; the border between two messages of one side; the place of later system messages |

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

    /// The format of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// What the body calls its list of messages.
    fn list(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::Anthropic => "messages",
            Self::OpenAiResponses => "input",
            Self::Google => "contents",
        }
    }

    /// The API and the provider that imported answers are taken to come from.
    fn origin(self) -> (Api, &'static str) {
        match self {
            Self::OpenAiChat => (Api::OPENAI_COMPLETIONS, "openai"),
            Self::OpenAiResponses => (Api::OPENAI_RESPONSES, "openai"),
            Self::Anthropic => (Api::ANTHROPIC_MESSAGES, "anthropic"),
            Self::Google => (Api::GOOGLE_GENERATIVE_AI, "google"),
        }
    }

    /// Whether answers of `api` come in this format, so that it has a place for
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

    /// Whether two messages of one side in a row are read as one.
    fn joins_answers(self) -> bool {
        matches!(self, Self::OpenAiResponses | Self::Google)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A conversation that came from elsewhere. Its times are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The format found; of OpenAI's two this can be another than was asked for.
    pub format: Format,
    /// What stood before the first message.
    pub system: Option<SystemMessage>,
    /// At least one of them is a user's or a model's.
    pub messages: Vec<Message>,
    pub report: Report,
}

impl Imported {
    /// The whole conversation, the system prompt first.
    pub fn into_messages(self) -> Vec<Message> {
        self.system.into_iter().map(Message::System).chain(self.messages).collect()
    }
}

/// Reads a conversation. Of OpenAI's two formats either is read, whichever is
/// asked for.
///
/// JSON lines are messages, one per line; or whole requests, of which the last
/// one counts, because each request of a log repeats what came before. Requests
/// may be wrapped as in the batch files of the three services.
///
/// # Errors
/// When `text` is not such a conversation: where it goes wrong and what was
/// expected there, and which format it seems to be instead.
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

/// A conversation in somebody's request format.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    pub format: Format,
    /// The request body: system prompt, messages and tools, and the model if the
    /// last answer came from one that this format is for. How to answer (`stream`,
    /// `max_tokens`, …) is left to whoever sends it.
    pub body: Value,
    pub report: Report,
}

impl Exported {
    /// The body as lines: one message each, the system prompt as the first. The
    /// report then also names what lines have no place for.
    pub fn into_lines(mut self) -> (Vec<Value>, Report) {
        let mut lines = Vec::new();
        let mut body = match self.body {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        let system = match self.format {
            // Already the first message.
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

/// Writes the conversation as a request of `format`: what a model would be sent,
/// without the answers that failed. Nothing is made up for calls without results.
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
