//! Converts the bytes of a response to the events of an answer.
//!
//! Pure: receives bytes and how they ended, returns events, the last of them
//! `Done`. `http_provider` reads the bytes and decides when to stop waiting. A body
//! that is not an event stream (a web page, a JSON document, nothing) becomes a
//! failure that describes it.

use std::borrow::Cow;

use serde_json::Value;

use crate::ai::api::{self, Decode, DecodeError, End, WireApi};
use crate::ai::failure::{ErrorBody, FailureClass, RequestError, clip};
use crate::ai::messages::{AssistantMessage, BlockKind, Millis, StopReason, StreamEvent};
use crate::ai::models::{Model, fallback_cost};
use crate::ai::requests::Request;
use crate::ai::transport::{FRAME_LIMIT_BYTES, Frames, Framing, SseFrame, SseItem, html_text};

/// The part kept of a body that turns out not to be a stream.
const HEAD_LIMIT_BYTES: usize = 2_000;
const PAGE_LIMIT_BYTES: usize = 64 << 10;
/// Maximum length of a body without a frame: twice the maximum length of a frame.
const UNREAD_LIMIT_BYTES: usize = 2 * FRAME_LIMIT_BYTES;

/// Most bytes of text, thinking and arguments in an answer.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;
/// Most bytes in events that show nothing, such as signatures.
const QUIET_LIMIT_BYTES: usize = 256 << 20;
/// Events that show nothing and are shorter keep the connection alive.
const KEEP_ALIVE_BYTES: usize = 1 << 10;
/// Most tool calls in an answer.
const MAX_CALLS: usize = 1_000;

/// How much of an answer has arrived, so that one without end is cut.
#[derive(Debug, Default)]
struct AnswerSize {
    text_bytes: usize,
    quiet_bytes: usize,
    n_calls: usize,
}

impl AnswerSize {
    /// Counts the `events` of a frame with this many bytes.
    fn add(&mut self, events: &[StreamEvent], frame_bytes: usize) -> Result<(), RequestError> {
        for event in events {
            match event {
                StreamEvent::Delta { text, .. } => self.text_bytes += text.len(),
                StreamEvent::BlockStart { kind: BlockKind::ToolCall { .. }, .. } => self.n_calls += 1,
                StreamEvent::Start
                | StreamEvent::BlockStart { .. }
                | StreamEvent::BlockEnd { .. }
                | StreamEvent::Done(_) => {}
            }
        }
        if events.is_empty() && frame_bytes > KEEP_ALIVE_BYTES {
            self.quiet_bytes += frame_bytes;
        }
        let text = if self.text_bytes > ANSWER_LIMIT_BYTES || self.quiet_bytes > QUIET_LIMIT_BYTES {
            format!("the answer is longer than {ANSWER_LIMIT_BYTES} bytes")
        } else if self.n_calls > MAX_CALLS {
            format!("the answer has more than {MAX_CALLS} tool calls")
        } else {
            return Ok(());
        };
        Err(RequestError::of_class(text, FailureClass::Unknown))
    }
}

/// How the bytes of an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ai) enum Ending {
    /// The server closed the stream.
    Closed,
    /// The connection was lost, perhaps after the last event.
    Lost(String),
    /// Malformed, rejected or timed out.
    Failed(RequestError),
    /// Cancelled by the caller.
    Aborted,
}

/// An answer being read.
pub(in crate::ai) struct Answer {
    service: String,
    content_type: Option<String>,
    framing: Framing,
    parser: Frames,
    decoder: Box<dyn Decode>,
    size: AnswerSize,
    n_frames: u64,
    /// The start of the body, until the first frame.
    head: Vec<u8>,
    /// Number of bytes before the first frame.
    n_unread_bytes: usize,
    told_effort: Option<String>,
}

impl Answer {
    /// `content_type` is the response's header of that name.
    pub(in crate::ai) fn new(codec: &dyn WireApi, request: &Request, content_type: Option<&str>) -> Self {
        Self {
            service: service(&request.model).to_owned(),
            content_type: content_type.map(str::to_owned),
            framing: codec.framing(),
            parser: Frames::new(codec.framing()),
            decoder: codec.decoder(request),
            size: AnswerSize::default(),
            n_frames: 0,
            head: Vec::new(),
            n_unread_bytes: 0,
            told_effort: codec.told_effort(request),
        }
    }

    /// Reads bytes and appends the events they complete.
    ///
    /// # Errors
    /// The failure that ends the answer.
    pub(in crate::ai) fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), RequestError> {
        if self.n_frames == 0 {
            let limit = if self.is_page() { PAGE_LIMIT_BYTES } else { HEAD_LIMIT_BYTES };
            let room = limit.saturating_sub(self.head.len());
            self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
            self.n_unread_bytes = self.n_unread_bytes.saturating_add(bytes.len());
            let is_page = self.is_page();
            if self.n_unread_bytes > if is_page { PAGE_LIMIT_BYTES } else { UNREAD_LIMIT_BYTES } {
                return Err(self.not_a_stream().into());
            }
            if is_page {
                return Ok(());
            }
        }
        self.parser.push(bytes);
        self.frames(out).map_err(RequestError::from)
    }

    /// Reads the data of one event that arrived without framing, and appends the events it
    /// completes.
    ///
    /// # Errors
    /// The failure that ends the answer.
    pub(in crate::ai) fn read(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), RequestError> {
        self.n_frames += 1;
        let frame = SseFrame { event: Cow::Borrowed(""), data: Cow::Borrowed(data) };
        let n_known = out.len();
        self.decoder.frame(&frame, out).map_err(RequestError::from)?;
        self.size.add(&out[n_known..], data.len())
    }

    /// Whether the answer is complete, although the connection may stay open.
    pub(in crate::ai) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// The content to send back if the service has paused the answer; what answers that
    /// continues this one.
    pub(in crate::ai) fn resume(&mut self) -> Option<Vec<Value>> {
        let content = self.decoder.resume()?;
        self.parser = Frames::new(self.framing);
        (self.n_frames, self.n_unread_bytes) = (0, 0);
        self.head.clear();
        Some(content)
    }

    /// Ends the answer and writes the result into `message`, priced like
    /// `model` or like the model that answered instead. The caller adds times and the
    /// final event.
    pub(in crate::ai) fn finish(
        mut self,
        ending: Ending,
        model: &Model,
        message: &mut AssistantMessage,
        out: &mut Vec<StreamEvent>,
    ) {
        let ending = match ending {
            Ending::Closed if self.is_complete() => Ending::Closed,
            Ending::Closed => self.closed(out),
            Ending::Lost(_) if self.is_page() => Ending::Failed(self.not_a_stream().into()),
            other => other,
        };
        let end = match ending {
            Ending::Closed => End::Closed,
            Ending::Lost(_) => End::Lost,
            Ending::Failed(_) | Ending::Aborted => End::Cut,
        };
        let price_factor = self.decoder.price_factor();
        let finish = self.decoder.finish(end, out);
        message.content = finish.content;
        message.usage = finish.usage;
        let answering = finish.response_model.as_deref();
        match answering.and_then(|answering| fallback_cost(model, answering)) {
            Some(cost) => cost.price_at(&mut message.usage, price_factor),
            None => model.price_at(&mut message.usage, price_factor),
        }
        message.response_id = finish.response_id;
        message.response_model = finish.response_model;
        message.raw_stop_reason = finish.raw_stop_reason;
        message.provider_thinking_level = self.told_effort;
        add_diagnostics(message, finish.diagnostics);
        match (ending, finish.outcome) {
            (Ending::Closed | Ending::Lost(_), Ok(reason)) => message.stop_reason = reason,
            (Ending::Closed, Err(error)) => fail(message, Ending::Failed(error)),
            (ending, _) => fail(message, ending),
        }
    }

    /// Reads the rest of the body after its end; returns how the answer ended.
    fn closed(&mut self, out: &mut Vec<StreamEvent>) -> Ending {
        self.parser.finish();
        match self.frames(out) {
            // The last frame was truncated; the decoder knows which part is missing.
            Ok(()) | Err(DecodeError::Malformed(_)) if self.n_frames > 0 => Ending::Closed,
            Err(error @ DecodeError::Failed(_)) => Ending::Failed(error.into()),
            Ok(()) | Err(DecodeError::Malformed(_)) => Ending::Failed(self.not_a_stream().into()),
        }
    }

    fn frames(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), DecodeError> {
        loop {
            let item = match self.parser.next() {
                Ok(item) => item,
                // Gateways append arbitrary content to a complete answer.
                Err(_) if self.decoder.is_complete() => return Ok(()),
                Err(error) => return Err(RequestError::from(error).into()),
            };
            match item {
                // A keep-alive.
                Some(SseItem::Frame(frame)) if frame.data.trim().is_empty() => {}
                Some(SseItem::Frame(frame)) => {
                    self.n_frames += 1;
                    let n_known = out.len();
                    self.decoder.frame(&frame, out)?;
                    self.size.add(&out[n_known..], frame.data.len())?;
                }
                Some(SseItem::Bare(document)) if document.trim() == "[DONE]" => {}
                Some(SseItem::Bare(document)) => {
                    let items = match serde_json::from_str(&document)? {
                        // Some servers send the stream as one list.
                        Value::Array(items) => items,
                        other => vec![other],
                    };
                    for item in &items {
                        if let Some(error) = ErrorBody::from_json(item) {
                            return Err(error.into_error(None).into());
                        }
                        if !self.decoder.reads_document(item) {
                            let start = clip(document.trim());
                            let service = &self.service;
                            let text =
                                format!("{service} answered with JSON instead of an event stream: {start}");
                            return Err(RequestError::from(text).into());
                        }
                        self.n_frames += 1;
                        let data = Cow::Owned(item.to_string());
                        let frame = SseFrame { event: Cow::Borrowed(""), data };
                        let n_known = out.len();
                        self.decoder.frame(&frame, out)?;
                        self.size.add(&out[n_known..], frame.data.len())?;
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// Whether the body is a web page, judging by its type or first byte.
    fn is_page(&self) -> bool {
        let first = self.head.iter().find(|byte| !byte.is_ascii_whitespace());
        self.n_frames == 0
            && (first == Some(&b'<')
                || self.content_type.as_ref().is_some_and(|kind| kind.contains("text/html")))
    }

    fn not_a_stream(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let head = head.trim();
        if head.is_empty() {
            return format!("{} sent an empty answer: stream ended before any data", self.service);
        }
        if self.parser.is_binary() {
            return format!("stream ended before any event of {} was whole", self.service);
        }
        if let Some(page) = html_text(head, &self.service) {
            return page;
        }
        match self.content_type.as_deref() {
            Some(kind) if kind.contains("event-stream") => {
                format!("stream ended before any event: {} sent only {head:?}", self.service)
            }
            kind => {
                let kind = kind.unwrap_or("no content type");
                format!("{} did not answer with an event stream ({kind}): {head}", self.service)
            }
        }
    }
}

/// Adds notes of the provider about an answer, in the form of session files.
pub(in crate::ai) fn add_diagnostics(message: &mut AssistantMessage, notes: Vec<Value>) {
    if notes.is_empty() {
        return;
    }
    match message.extra.entry("diagnostics").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(known) => known.extend(notes),
        other => *other = Value::Array(notes),
    }
}

/// Turns `message` into a failed answer.
pub(in crate::ai) fn fail(message: &mut AssistantMessage, ending: Ending) {
    let RequestError { text, failure } = match ending {
        Ending::Aborted => {
            message.stop_reason = StopReason::Aborted;
            message.error_message = Some("Request was aborted".to_owned());
            return;
        }
        Ending::Failed(error) => error,
        Ending::Lost(text) => RequestError::of_class(text, FailureClass::Network),
        Ending::Closed => {
            RequestError::of_class("stream ended before any data".to_owned(), FailureClass::Network)
        }
    };
    message.stop_reason = StopReason::Error;
    message.error_message = Some(text);
    message.failure = Some(Box::new(failure));
}

/// The name of the service in error texts.
pub(in crate::ai) fn service(model: &Model) -> &str {
    if model.provider.is_empty() { "the service" } else { &model.provider }
}

/// The events of a recorded response body to `request`, which arrives in the given
/// `chunks`. For tests and benchmarks: no network, no clock.
pub fn decode_recorded<'a>(
    request: &Request,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<StreamEvent> {
    let model = &request.model;
    let timestamp = Millis(request.options.started_ms);
    let mut message = AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, timestamp);
    let mut events = vec![StreamEvent::Start];
    match api::find(&model.api) {
        Some(codec) => {
            let mut answer = Answer::new(codec, request, Some("text/event-stream"));
            let fed = chunks.into_iter().try_for_each(|chunk| answer.feed(chunk, &mut events));
            let ending = fed.map_or_else(Ending::Failed, |()| Ending::Closed);
            answer.finish(ending, model, &mut message, &mut events);
        }
        None => fail(&mut message, Ending::Failed(api::unsupported(&model.api).into())),
    }
    events.push(StreamEvent::Done(Box::new(message)));
    events
}
