//! Splits bytes into frames, for both framings of answers.
//!
//! An API declares its framing. Proxies in front of a service answer errors as text
//! (a web page, a JSON document) even where the API is binary, so the parser checks
//! the first bytes of a binary answer before it chooses.

use super::event_stream::{EventStreamError, EventStreamParser, MESSAGE_LIMIT_BYTES, Message};
use super::sse::{FRAME_LIMIT_BYTES, SseError, SseFrame, SseItem, SseParser};
use crate::ai::failure::{ErrorBody, RequestError};

/// How an API frames its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ai) enum Framing {
    /// Server-sent events.
    Text,
    /// `application/vnd.amazon.eventstream`.
    AmazonEventStream,
}

#[derive(Debug, thiserror::Error)]
pub(in crate::ai) enum FramingError {
    #[error(transparent)]
    Sse(#[from] SseError),
    #[error(transparent)]
    EventStream(#[from] EventStreamError),
    /// The server ended the stream with an error, which the framing itself
    /// distinguishes from an event.
    #[error("{0}")]
    Reported(Box<RequestError>),
}

impl From<FramingError> for RequestError {
    fn from(error: FramingError) -> Self {
        match error {
            FramingError::Reported(error) => *error,
            damaged => damaged.to_string().into(),
        }
    }
}

/// Splits an answer into frames, with the same interface as the parsers inside.
#[derive(Debug)]
pub(in crate::ai) enum Frames {
    Text(SseParser),
    Binary(EventStreamParser),
    /// Keeps the first bytes until they determine the framing.
    Undecided(Vec<u8>),
}

/// The headers of a message are shorter than 16 MiB, so the fifth byte of a binary
/// stream is zero. No text contains a zero byte.
const TELLING_BYTES: usize = 5;

impl Frames {
    pub(in crate::ai) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Text => Self::text(),
            Framing::AmazonEventStream => Self::Undecided(Vec::new()),
        }
    }

    fn text() -> Self {
        Self::Text(SseParser::new(FRAME_LIMIT_BYTES))
    }

    pub(in crate::ai) fn is_binary(&self) -> bool {
        matches!(self, Self::Binary(_))
    }

    /// Adds the next bytes of the answer.
    pub(in crate::ai) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Text(parser) => parser.push(bytes),
            Self::Binary(parser) => parser.push(bytes),
            Self::Undecided(held) => {
                held.extend_from_slice(bytes);
                if held.len() >= TELLING_BYTES {
                    self.decide();
                }
            }
        }
    }

    /// Marks the end of the bytes.
    pub(in crate::ai) fn finish(&mut self) {
        self.decide();
        if let Self::Text(parser) = self {
            parser.finish();
        }
    }

    fn decide(&mut self) {
        let Self::Undecided(held) = self else { return };
        let held = std::mem::take(held);
        *self = if held.iter().take(TELLING_BYTES).any(|byte| *byte == 0) {
            Self::Binary(EventStreamParser::new(MESSAGE_LIMIT_BYTES))
        } else {
            Self::text()
        };
        self.push(&held);
    }

    /// The next frame in the bytes pushed so far. Events of a binary stream
    /// are frames with the type and the payload of the event.
    ///
    /// # Errors
    /// If the bytes are damaged, a frame is too long, or the server reports an
    /// error. The caller must stop then.
    pub(in crate::ai) fn next(&mut self) -> Result<Option<SseItem<'_>>, FramingError> {
        match self {
            Self::Text(parser) => Ok(parser.next()?),
            Self::Binary(parser) => parser.next()?.map(event).transpose(),
            Self::Undecided(_) => Ok(None),
        }
    }
}

fn event(message: Message<'_>) -> Result<SseItem<'_>, FramingError> {
    let Message { headers, payload } = message;
    let data = String::from_utf8_lossy(payload);
    match &*headers.message_type {
        "exception" => Err(FramingError::Reported(Box::new(exception(&headers.exception_type, &data)))),
        "error" => {
            let message = headers.error_message.into_owned();
            let code = Some(headers.error_code.into_owned()).filter(|code| !code.is_empty());
            let body = ErrorBody { code, message, ..ErrorBody::default() };
            Err(FramingError::Reported(Box::new(body.into_error(None))))
        }
        _ => Ok(SseItem::Frame(SseFrame { event: headers.event_type, data })),
    }
}

/// The text of an exception of this type; `payload` contains its details.
pub(in crate::ai) fn exception(kind: &str, payload: &str) -> RequestError {
    let mut body = ErrorBody::from_text(payload);
    if body.message.is_empty() || body.message == "{}" {
        body.message = "the service does not say why".to_owned();
    }
    body.code = Some(kind.to_owned()).filter(|kind| !kind.is_empty()).or(body.code);
    body.into_error(None)
}
