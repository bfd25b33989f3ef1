//! Everything between encoding a request and decoding its answer.
//!
//! One stream is one small state machine that runs where it is polled: no task
//! of its own, so dropping the stream closes the connection. Whatever happens,
//! it ends in exactly one `Done`, which holds what had arrived.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio_util::sync::CancellationToken;

use super::api::{self, Decode, DecodeError, End, Finish};
use super::failure::{ErrorBody, clip};
use super::http::{HttpFailure, Transport, html_text, root_cause};
use super::message::{AssistantMessage, Millis, StopReason};
use super::model::Model;
use super::provider::{Provider, Request};
use super::sse::{FRAME_LIMIT_BYTES, SseItem, SseParser};
use super::stream::{EventStream, StreamEvent};
use crate::util::clock::Clock;

/// How patient a provider is.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Longest silence, before the headers and between bytes; `None` waits forever.
    pub idle_timeout: Option<Duration>,
    /// How often one request is repeated before it fails. The session has its
    /// own, visible policy, so this is 0 unless the user wants otherwise.
    pub max_retries: u32,
    /// Longest wait a server may demand between those; `None` obeys any.
    pub max_retry_delay: Option<Duration>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Some(Duration::from_secs(300)),
            max_retries: 0,
            max_retry_delay: Some(Duration::from_secs(60)),
        }
    }
}

/// Answers requests over HTTP, in the API that the model names.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    transport: Transport,
    clock: Clock,
    options: HttpOptions,
}

impl HttpProvider {
    pub fn new(transport: Transport, clock: Clock, options: HttpOptions) -> Self {
        Self { transport, clock, options }
    }
}

impl Provider for HttpProvider {
    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let started = self.clock.monotonic();
        let driver = Box::new(Driver {
            provider: self.clone(),
            request,
            cancel,
            started,
            phase: Phase::Ready,
            queue: VecDeque::new(),
        });
        stream::unfold(driver, |mut driver| async {
            loop {
                if let Some(event) = driver.queue.pop_front() {
                    return Some((event, driver));
                }
                if matches!(driver.phase, Phase::Over) {
                    return None;
                }
                driver.step().await;
            }
        })
        .boxed()
    }
}

/// How long a finished stream may take to end, so that its connection can
/// serve the next request.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
/// How much is kept of a body that turns out not to be a stream.
const HEAD_LIMIT_BYTES: usize = 2_000;
const PAGE_LIMIT_BYTES: usize = 64 << 10;

struct Driver {
    provider: HttpProvider,
    request: Arc<Request>,
    cancel: CancellationToken,
    started: Duration,
    phase: Phase,
    /// Events ready to be handed out.
    queue: VecDeque<StreamEvent>,
}

enum Phase {
    Ready,
    Reading(Box<Reading>),
    Over,
}

struct Reading {
    response: Response,
    /// The `content-type` header, if there is one.
    content_type: Option<String>,
    parser: SseParser,
    decoder: Box<dyn Decode>,
    /// Events of the frames being read; kept to reuse its memory.
    events: Vec<StreamEvent>,
    n_frames: u64,
    /// Start of the body, until the first frame.
    head: Vec<u8>,
}

/// Why an answer ends before its time.
enum Stop {
    Aborted,
    Failed(String),
    /// The connection broke, perhaps after the last word.
    Lost(String),
}

impl Driver {
    /// Does one thing that can wait, and queues what comes of it.
    async fn step(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ready => {
                let opened = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => Err(Stop::Aborted),
                    opened = open(&self.provider, &self.request) => opened.map_err(Stop::Failed),
                };
                match opened {
                    Ok(reading) => {
                        self.queue.push_back(StreamEvent::Start);
                        self.phase = Phase::Reading(Box::new(reading));
                    }
                    Err(stop) => self.fail(stop),
                }
            }
            Phase::Reading(mut reading) => {
                let silence = self.provider.options.idle_timeout;
                let chunk = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return self.end(*reading, Some(Stop::Aborted)),
                    chunk = next_chunk(&mut reading.response, silence) => chunk,
                };
                match reading.take(chunk, service(&self.request.model)).await {
                    Ok(true) => {
                        self.queue.extend(reading.events.drain(..));
                        self.phase = Phase::Reading(reading);
                    }
                    Ok(false) => self.end(*reading, None),
                    Err(stop) => self.end(*reading, Some(stop)),
                }
            }
            Phase::Over => {}
        }
    }

    fn fail(&mut self, stop: Stop) {
        let message = self.message(None, Some(stop));
        self.queue.push_back(StreamEvent::Done(Box::new(message)));
    }

    /// Ends the answer; dropping the response closes its connection.
    fn end(&mut self, reading: Reading, stop: Option<Stop>) {
        let Reading { decoder, mut events, .. } = reading;
        let end = match stop {
            None => End::Closed,
            Some(Stop::Lost(_)) => End::Lost,
            Some(Stop::Aborted | Stop::Failed(_)) => End::Cut,
        };
        let finish = decoder.finish(end, &mut events);
        self.queue.extend(events);
        let message = self.message(Some(finish), stop);
        self.queue.push_back(StreamEvent::Done(Box::new(message)));
    }

    fn message(&self, finish: Option<Finish>, stop: Option<Stop>) -> AssistantMessage {
        let Request { model, options, .. } = &*self.request;
        let clock = &self.provider.clock;
        let started_ms = match options.started_ms {
            0 => clock.now_ms(),
            ms => ms,
        };
        let mut message =
            AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, Millis(started_ms));
        let mut outcome = Ok(StopReason::Stop);
        if let Some(finish) = finish {
            message.content = finish.content;
            message.usage = finish.usage;
            message.response_id = finish.response_id;
            message.response_model = finish.response_model;
            message.raw_stop_reason = finish.raw_stop_reason;
            outcome = finish.outcome;
        }
        model.price(&mut message.usage);
        (message.stop_reason, message.error_message) = match (stop, outcome) {
            (Some(Stop::Aborted), _) => (StopReason::Aborted, Some("Request was aborted".to_owned())),
            (Some(Stop::Failed(text)), _) | (Some(Stop::Lost(text)), Err(_)) | (None, Err(text)) => {
                (StopReason::Error, Some(text))
            }
            (None | Some(Stop::Lost(_)), Ok(reason)) => (reason, None),
        };
        let elapsed = clock.monotonic().saturating_sub(self.started);
        message.duration_ms = Some(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        message.thinking_level = Some(options.thinking);
        message
    }
}

/// Sends the request, again if that may help, until there is a response to read.
async fn open(provider: &HttpProvider, request: &Request) -> Result<Reading, String> {
    let api = &request.model.api;
    let Some(codec) = api::find(api) else {
        return Err(format!("the API {:?} is not supported; supported are {}", api.as_str(), api::names()));
    };
    let encoded = codec.encode(request).map_err(|error| error.to_string())?;
    let HttpProvider { transport, clock, options } = provider;
    let mut retries = 0;
    let response = loop {
        let now_ms = clock.now_ms();
        let sent = transport.send(&encoded, service(&request.model), options.idle_timeout, now_ms).await;
        let failure = match sent {
            Ok(response) => break response,
            Err(failure) if failure.is_retryable && retries < options.max_retries => failure,
            Err(failure) => return Err(failure.text),
        };
        let delay = retry_wait(&failure, retries, options, clock)?;
        tokio::time::sleep(delay).await;
        retries += 1;
    };
    let content_type = response.headers().get(CONTENT_TYPE);
    Ok(Reading {
        content_type: content_type.and_then(|value| value.to_str().ok()).map(str::to_owned),
        response,
        parser: SseParser::new(FRAME_LIMIT_BYTES),
        decoder: codec.decoder(request),
        events: Vec::new(),
        n_frames: 0,
        head: Vec::new(),
    })
}

/// Who is spoken to, for error texts.
fn service(model: &Model) -> &str {
    let is_cerebras = model.base_url.contains("api.cerebras.ai");
    match model.provider.as_str() {
        _ if is_cerebras => "cerebras",
        "" => "the service",
        provider => provider,
    }
}

/// How long to wait before retry number `retries + 1`.
fn retry_wait(
    failure: &HttpFailure,
    retries: u32,
    options: &HttpOptions,
    clock: &Clock,
) -> Result<Duration, String> {
    match (failure.retry_after, options.max_retry_delay) {
        (Some(demanded), Some(most)) if demanded > most => Err(format!(
            "{}; the demanded retry delay of {}s is above the limit of {}s",
            failure.text,
            demanded.as_secs_f64(),
            most.as_secs_f64(),
        )),
        (Some(demanded), _) => Ok(demanded),
        (None, _) => {
            let doubled = Duration::from_millis(500).saturating_mul(2_u32.saturating_pow(retries));
            // Up to a quarter less, so that many clients do not come back at once.
            let spread = f64::from(clock.monotonic().subsec_nanos() % 1_000) / 4_000.0;
            Ok(doubled.min(Duration::from_secs(8)).mul_f64(1.0 - spread))
        }
    }
}

/// What the connection yields next.
enum Chunk<B> {
    Bytes(B),
    Ended,
    Lost(String),
    Silent(Duration),
}

async fn next_chunk(
    response: &mut Response,
    silence: Option<Duration>,
) -> Chunk<impl AsRef<[u8]> + Send + use<>> {
    let reading = response.chunk();
    let read = match silence {
        Some(silence) => match tokio::time::timeout(silence, reading).await {
            Ok(read) => read,
            Err(_) => return Chunk::Silent(silence),
        },
        None => reading.await,
    };
    match read {
        Ok(Some(bytes)) => Chunk::Bytes(bytes),
        Ok(None) => Chunk::Ended,
        Err(error) => Chunk::Lost(root_cause(&error)),
    }
}

impl Reading {
    /// Reads all frames of a chunk; whether more are to come.
    async fn take(&mut self, chunk: Chunk<impl AsRef<[u8]>>, service: &str) -> Result<bool, Stop> {
        match chunk {
            Chunk::Bytes(bytes) => {
                let bytes = bytes.as_ref();
                if self.n_frames == 0 {
                    let room = HEAD_LIMIT_BYTES.saturating_sub(self.head.len());
                    self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    if self.is_page() {
                        return Err(Stop::Failed(self.page(service).await));
                    }
                }
                self.parser.push(bytes);
                self.frames(service).map_err(|error| Stop::Failed(error.to_string()))?;
                if !self.decoder.is_complete() {
                    return Ok(true);
                }
                self.drain().await;
                Ok(false)
            }
            Chunk::Ended => {
                self.parser.finish();
                match self.frames(service) {
                    // The last frame was cut off; the decoder knows what is missing.
                    Ok(()) | Err(DecodeError::Malformed(_)) => {}
                    Err(error) => return Err(Stop::Failed(error.to_string())),
                }
                if self.n_frames > 0 {
                    return Ok(false);
                }
                Err(Stop::Failed(self.not_a_stream(service)))
            }
            Chunk::Lost(cause) => Err(Stop::Lost(format!("stream interrupted: connection lost ({cause})"))),
            Chunk::Silent(silence) => {
                let seconds = silence.as_secs_f64();
                Err(Stop::Failed(format!("timed out: no data from {service} for {seconds} s")))
            }
        }
    }

    fn frames(&mut self, service: &str) -> Result<(), DecodeError> {
        loop {
            let item = self.parser.next().map_err(|error| DecodeError::Failed(error.to_string()))?;
            match item {
                Some(SseItem::Frame(frame)) => {
                    self.n_frames += 1;
                    self.decoder.frame(&frame, &mut self.events)?;
                }
                Some(SseItem::Bare(document)) => {
                    if document.trim() == "[DONE]" {
                        continue;
                    }
                    let value: serde_json::Value = serde_json::from_str(&document)?;
                    let text = ErrorBody::from_json(&value).map(ErrorBody::in_stream);
                    return Err(DecodeError::Failed(text.unwrap_or_else(|| {
                        let start = clip(document.trim());
                        format!("{service} answered with JSON instead of an event stream: {start}")
                    })));
                }
                None => return Ok(()),
            }
        }
    }

    /// Whether the body is an HTML page, by its first byte or its type.
    fn is_page(&self) -> bool {
        let first = self.head.iter().find(|byte| !byte.is_ascii_whitespace());
        first == Some(&b'<') || self.content_type.as_ref().is_some_and(|kind| kind.contains("text/html"))
    }

    async fn page(&mut self, service: &str) -> String {
        let mut body = self.head.clone();
        while body.len() < PAGE_LIMIT_BYTES
            && let Chunk::Bytes(bytes) = next_chunk(&mut self.response, Some(DRAIN_TIMEOUT)).await
        {
            body.extend_from_slice(bytes.as_ref());
        }
        let body = String::from_utf8_lossy(&body);
        let status = self.response.status().as_u16();
        match html_text(&body, service) {
            Some(text) => format!("{status}: {text}"),
            None => self.not_a_stream(service),
        }
    }

    fn not_a_stream(&self, service: &str) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let head = head.trim();
        if head.is_empty() {
            return format!("{service} sent an empty answer: stream ended before any data");
        }
        match self.content_type.as_deref() {
            Some(kind) if kind.contains("event-stream") => {
                format!("stream ended before any event: {service} sent only {head:?}")
            }
            kind => {
                let kind = kind.unwrap_or("no content type");
                format!("{service} did not answer with an event stream ({kind}): {head}")
            }
        }
    }

    /// Reads to the end of a finished body, if it comes soon.
    async fn drain(&mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        tokio::time::timeout(DRAIN_TIMEOUT, rest).await.unwrap_or_default();
    }
}
