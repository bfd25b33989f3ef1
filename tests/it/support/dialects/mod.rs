//! How each wire API writes the same answer, and where its requests have their fields.
//!
//! A [`Script`] is an answer independent of any API. A [`Dialect`] writes it like the
//! servers of one API, and reads the fields that tests need from a request of that
//! API. [`ROWS`] lists them; a new API is a file here and a row there, and all
//! tests of the contract run for it. Only [`Dialect::lacks`] lists content for which
//! an API has no form.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

mod anthropic;
mod bedrock;
mod chat;
mod google;
mod mistral;
mod responses;

use std::sync::Arc;

use pi::ai::{Credential, Message, Request, StreamEvent, StreamOptions, Thinking, decode_recorded};
use serde_json::{Value, json};

/// Every wire API.
pub(crate) const ROWS: &[&dyn Dialect] = &[
    &anthropic::Anthropic { api: "anthropic-messages" },
    &anthropic::Anthropic { api: "anthropic-vertex" },
    &bedrock::Bedrock,
    &chat::Chat,
    &google::Google { api: "google-generative-ai" },
    &google::Google { api: "google-vertex" },
    &mistral::Mistral,
    &responses::Responses { api: "openai-responses" },
    &responses::Responses { api: "openai-codex-responses" },
    &responses::Responses { api: "azure-openai-responses" },
];

/// One wire API, as its servers speak and hear it.
pub(crate) trait Dialect: Sync {
    /// Its name in `models.json`.
    fn api(&self) -> &'static str;

    /// Ids of two models of one kind; the first is the one that is asked.
    fn model_ids(&self) -> [&'static str; 2] {
        ["m-1", "m-2"]
    }

    /// Content without a form in the API; scripts that contain it cannot be written.
    fn lacks(&self) -> &'static [Lack];

    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// The answer, cut as a server would send it. Concatenated it is the body.
    fn frames(&self, script: &Script) -> Vec<Vec<u8>>;

    /// How the API reports a refusal.
    fn refusal(&self) -> Refusal;

    /// The signature of `thinking` as the server gave it.
    fn signature(&self, thinking: &Thinking) -> Option<String>;

    /// Where the images of a request are.
    fn images(&self, body: &Value) -> Vec<ImagePlace>;

    /// The parts of a request by which servers find it in their caches.
    fn prefix(&self, body: &Value) -> Prefix;

    /// Whether requests contain cache markers, for servers that need them.
    fn marks(&self) -> bool {
        false
    }
}

/// Features that not every API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// Thinking cannot be signed.
    Signatures,
    /// Arguments come whole.
    ArgumentPieces,
    /// Arguments are part of the frame's JSON, so they cannot be broken apart from it.
    BrokenArguments,
    /// The API does not report tokens written to the cache.
    CacheWrites,
    /// The API does not report thinking tokens.
    ReasoningTokens,
    /// Neither answers nor the models that give them are named.
    Identity,
    /// A refusal has no words.
    RefusalWords,
}

/// How an API reports a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The answer fails, and its text gives the reason.
    Failed,
    /// The answer is the refusal.
    Said,
}

/// Where a request has an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImagePlace {
    Prompt,
    Result,
    /// Said after the results, as if by the user.
    AfterResults,
}

/// The content that a cache compares. Markers are removed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prefix {
    pub(crate) system: String,
    pub(crate) tools: Vec<String>,
    /// In the smallest pieces that stay as they are when something is added.
    pub(crate) messages: Vec<String>,
}

/// An answer to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) usage: Tokens,
    pub(crate) end: End,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// In pieces; an empty one is an event without content.
    Text(Vec<&'static str>),
    Thinking {
        pieces: Vec<&'static str>,
        signature: Option<&'static str>,
    },
    /// Made together; where the API can, their pieces come by turns.
    Calls(Vec<Call>),
    /// Unknown events and fields.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Nine letters, which every API takes.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// JSON text.
    pub(crate) pieces: Vec<&'static str>,
}

/// Tokens as the program counts them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tokens {
    /// Those that no cache had.
    pub(crate) input: u64,
    /// With those of the thinking.
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
}

impl Tokens {
    fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// For the calls, if there are any.
    #[default]
    Natural,
    Length,
    /// With these words.
    Refused(&'static str),
    /// The server breaks off with an error: overloaded, in these words.
    Failed(&'static str),
    /// The stream just ends.
    Missing,
}

/// The model that answers, which is another than was asked.
pub(crate) const SERVED: &str = "served-2026";
pub(crate) const RESPONSE_ID: &str = "answer-1";

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn end(self, end: End) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn usage(self, usage: Tokens) -> Self {
        Self { usage, ..self }
    }

    fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Calls(_)))
    }
}

/// The calls of a step, with one piece of each by turns: which call, and the piece.
fn by_turns(calls: &[Call]) -> Vec<(usize, &'static str)> {
    let longest = calls.iter().map(|call| call.pieces.len()).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| {
        calls.iter().enumerate().filter_map(move |(at, call)| Some((at, *call.pieces.get(turn)?)))
    });
    turns.collect()
}

/// A frame of server-sent events.
fn sse(event: Option<&str>, data: &Value) -> Vec<u8> {
    let event = event.map_or_else(String::new, |event| format!("event: {event}\n"));
    format!("{event}data: {data}\n\n").into_bytes()
}

/// The model of a row, at `base_url`.
pub(crate) fn model(row: &dyn Dialect, base_url: &str) -> Value {
    json!({"id": row.model_ids()[0], "api": row.api(), "provider": "acme", "baseUrl": base_url, "reasoning": true,
        "input": ["text", "image"]})
}

/// A request to the model of a row.
pub(crate) fn request(model: Value, messages: &[Value]) -> Request {
    let messages =
        messages.iter().map(|message| serde_json::from_value::<Message>(message.clone()).map(Arc::new));
    Request {
        model: Arc::new(serde_json::from_value(model).unwrap()),
        credential: Credential::Bearer("token".to_owned()),
        messages: messages.map(Result::unwrap).collect(),
        options: StreamOptions { started_ms: 7, ..StreamOptions::default() },
    }
}

/// The events of a script, through framing and decoder.
pub(crate) fn decode(row: &dyn Dialect, script: &Script) -> Vec<StreamEvent> {
    let frames = row.frames(script);
    decode_recorded(&request(model(row, "http://x"), &[]), frames.iter().map(Vec::as_slice))
}

/// `value` without cache markers.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), unmarked(value))).collect())
        }
        other => other.clone(),
    }
}

/// The items of a list as they are sent; none if there is no list.
fn items(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| unmarked(item).to_string()).collect()
}
