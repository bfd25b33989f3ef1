//! Everything between encoding a request and decoding its answer.
//!
//! A stream is one small state machine that runs where it is polled: it has no task
//! of its own, so dropping the stream closes the connection. In every case,
//! it ends in exactly one `Done`, which contains everything that had arrived.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Ending, add_diagnostics, fail, service};
use super::reading::{Opened, ReadLimits, Reading, Source, drain, silent};
use super::sockets::{Address, NotOpened, SocketRequest, Sockets, Waits, WebSocketUse};
use crate::ai::api::{self, BodyTo, EncodeError, WireApi};
use crate::ai::failure::{FailureClass, RequestError};
use crate::ai::messages::{AssistantMessage, EventStream, Millis, StreamEvent};
use crate::ai::models::{Model, Server, is_on_plan};
use crate::ai::providers::Provider;
use crate::ai::requests::{ImageFitter, Joiner, Refusals, Request, continuation};
use crate::ai::transport::{
    AFTER_A_STOP, AnswerThread, HttpBody, HttpRequest, Rest, Transport, redact, silence,
};
use crate::util::clock::Clock;

/// Timeouts and retries of a provider.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Longest silence, before the headers and between bytes; `None` means no limit.
    pub idle_timeout: Option<Duration>,
    /// Longest time without a part of the answer while the connection is kept alive; `None` means
    /// no limit.
    pub content_timeout: Option<Duration>,
    /// Longest wait for the headers, if it differs from that; zero means no limit.
    pub header_timeout: Option<Duration>,
    /// How often one request is repeated before it fails. The session has its
    /// own, visible retry policy, so the default is 0.
    pub max_retries: u32,
    /// Longest wait a server may request between attempts; `None` means no limit.
    pub max_retry_delay: Option<Duration>,
    /// Which requests travel over WebSockets.
    pub web_sockets: WebSocketUse,
    /// Longest wait for a WebSocket; `None` means no limit.
    pub web_socket_connect_timeout: Option<Duration>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Some(Duration::from_secs(300)),
            content_timeout: Some(Duration::from_secs(600)),
            header_timeout: None,
            max_retries: 0,
            max_retry_delay: Some(Duration::from_secs(60)),
            web_sockets: WebSocketUse::Never,
            web_socket_connect_timeout: Some(Duration::from_secs(15)),
        }
    }
}

/// Answers requests over HTTP, with the API of the model.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    transport: Transport,
    clock: Clock,
    options: HttpOptions,
    images: ImageFitter,
    refusals: Refusals,
    sockets: Sockets,
    /// Reads the answers; `None` for whoever polls them.
    thread: Option<AnswerThread>,
}

impl HttpProvider {
    /// Sends requests through `transport`.
    pub fn new(transport: Transport, clock: Clock, options: HttpOptions) -> Self {
        let (images, refusals, sockets) = (ImageFitter::default(), Refusals::default(), Sockets::default());
        Self { transport, clock, options, images, refusals, sockets, thread: None }
    }

    /// Reads answers on a thread of their own, which wakes less often while they trickle.
    #[must_use]
    pub fn on_own_thread(mut self) -> Self {
        self.thread = Some(AnswerThread::default());
        self
    }
}

impl Provider for HttpProvider {
    fn warm_up(&self, model: &Model) {
        if model.base_url.starts_with("https:") {
            self.transport.warm_up();
            if self.options.web_sockets != WebSocketUse::Never {
                self.transport.warm_up_sockets();
            }
        }
    }

    fn end_session(&self, session_id: &str) {
        self.sockets.end_session(session_id);
    }

    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let started = self.clock.monotonic();
        let joiner = continuation::beginning(&request).map(Joiner::new);
        let provider = self.clone();
        let events = match self.thread.clone() {
            None => batches(provider, request, started, Rest::anywhere(), cancel).left_stream(),
            Some(thread) => {
                let begin = move |rest, cancel| batches(provider, request, started, rest, cancel);
                thread.read(begin, cancel).right_stream()
            }
        };
        let events = events.flat_map(stream::iter);
        match joiner {
            None => events.boxed(),
            Some(mut joiner) => events
                .flat_map(move |event| {
                    let mut out = Vec::new();
                    joiner.push(event, &mut out);
                    stream::iter(out)
                })
                .boxed(),
        }
    }
}

/// The events of an answer, those together that arrived together.
fn batches(
    provider: HttpProvider,
    request: Arc<Request>,
    started: Duration,
    rest: Rest,
    cancel: CancellationToken,
) -> impl Stream<Item = VecDeque<StreamEvent>> + Send + 'static {
    let queue = VecDeque::new();
    let driver = Driver {
        provider,
        request,
        cancel,
        started,
        rest,
        phase: Phase::Ready,
        n_resumed: 0,
        queue,
        events: Vec::new(),
    };
    stream::unfold(Box::new(driver), async |mut driver| {
        while driver.queue.is_empty() && !matches!(driver.phase, Phase::Over) {
            driver.step().await;
        }
        (!driver.queue.is_empty()).then(|| (mem::take(&mut driver.queue), driver))
    })
}

/// How often an answer is resumed that the service pauses.
const MAX_RESUMED: u32 = 10;

/// A request as it would be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPreview {
    /// Where the request goes.
    pub url: String,
    /// Names and values; secrets are hidden.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Value,
}

/// Encodes `request` without sending it, signed for its start time.
///
/// # Errors
/// Why it cannot be sent.
pub fn preview_request(request: &Request) -> Result<RequestPreview, String> {
    let api = &request.model.api;
    let codec = api::find(api).ok_or_else(|| api::unsupported(api))?;
    let (headers, body) = whole_body(codec, request).map_err(|error| error.to_string())?;
    let body = Bytes::from(body);
    let mut encoded = addressed(codec, request, headers, HttpBody::Whole(body.clone()))
        .map_err(|error| error.to_string())?;
    codec.sign(request, &mut encoded, request.options.started_ms).map_err(|error| error.to_string())?;
    let headers = encoded.headers.iter().map(|(name, value)| {
        let shown =
            if value.is_sensitive() { "…".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        (name.to_string(), shown.into_owned())
    });
    Ok(RequestPreview {
        headers: headers.collect(),
        body: serde_json::from_slice(&body).map_err(|error| error.to_string())?,
        url: encoded.url,
    })
}

/// A conversation with more text than this is written while it is sent, so that it
/// is not in memory twice. Hardly any model reads so much, but images count as well.
const LONG_TEXT_BYTES: usize = 4 << 20;

fn to_send(codec: &'static dyn WireApi, request: &Arc<Request>) -> Result<HttpRequest, EncodeError> {
    if codec.signs_body() || request.n_text_bytes() <= LONG_TEXT_BYTES {
        let (headers, body) = whole_body(codec, request)?;
        return addressed(codec, request, headers, HttpBody::Whole(body.into()));
    }
    let mut n_bytes = 0;
    let headers = codec.write(request, BodyTo::Length(&mut n_bytes))?;
    let later = Arc::clone(request);
    let write = move |out: &mut dyn io::Write| {
        codec.write(&later, BodyTo::Writer(out)).map(drop).map_err(io::Error::other)
    };
    addressed(codec, request, headers, HttpBody::Written { n_bytes, write: Arc::new(write) })
}

fn addressed(
    codec: &dyn WireApi,
    request: &Request,
    headers: HeaderMap,
    body: HttpBody,
) -> Result<HttpRequest, EncodeError> {
    let empty_error_is_overflow = Server::is_any(&request.model, |server| server.empty_error_is_overflow);
    let provider = request.model.provider.clone();
    Ok(HttpRequest { url: codec.url(request)?, headers, body, empty_error_is_overflow, provider })
}

/// The body of `request` as it would be sent to any address.
///
/// # Errors
/// Why it cannot be sent.
pub fn request_body(request: &Request) -> Result<Vec<u8>, String> {
    let api = &request.model.api;
    let codec = api::find(api).ok_or_else(|| api::unsupported(api))?;
    whole_body(codec, request).map(|(_, body)| body).map_err(|error| error.to_string())
}

fn whole_body(codec: &dyn WireApi, request: &Request) -> Result<(HeaderMap, Vec<u8>), EncodeError> {
    let mut body = Vec::new();
    let headers = codec.write(request, BodyTo::Memory(&mut body))?;
    Ok((headers, body))
}

struct Driver {
    provider: HttpProvider,
    request: Arc<Request>,
    cancel: CancellationToken,
    started: Duration,
    rest: Rest,
    phase: Phase,
    /// How often the service has paused the answer.
    n_resumed: u32,
    /// Events ready to return.
    queue: VecDeque<StreamEvent>,
    /// Events of the current chunk; kept to reuse its memory.
    events: Vec<StreamEvent>,
}

enum Phase {
    Ready,
    Reading(Box<Reading>),
    Over,
}

impl Driver {
    /// Performs one step that may wait, and queues the resulting events.
    async fn step(&mut self) {
        match mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ready => {
                let opened = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => Err(Ending::Aborted),
                    opened = open(&self.provider, &self.request) => opened.map_err(Ending::Failed),
                };
                match opened {
                    Ok(opened) => {
                        self.queue.push_back(StreamEvent::Start);
                        self.phase = Phase::Reading(Box::new(Reading::new(opened)));
                    }
                    Err(ending) => self.end(None, ending),
                }
            }
            Phase::Reading(mut reading) => {
                let HttpProvider { clock, options, .. } = &self.provider;
                let limits = ReadLimits { data: options.idle_timeout, content: options.content_timeout };
                let read = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => Err(Ending::Aborted),
                    read = reading.read(&self.request, limits, clock, &self.rest, &mut self.events) => read,
                };
                match read {
                    Ok(()) if !reading.opened.answer.is_complete() => {
                        self.enqueue();
                        self.phase = Phase::Reading(reading);
                    }
                    Ok(()) => {
                        let Opened { source, mut answer, no_socket } = reading.opened;
                        match source {
                            Source::Http(response) => drain(response).await,
                            Source::Socket(socket) => socket.finish(&self.provider.clock),
                        }
                        match answer.resume() {
                            Some(content) => self.resume(content, answer, no_socket).await,
                            None => self.end(Some((answer, no_socket)), Ending::Closed),
                        }
                    }
                    // The source is dropped here, and the connection with it.
                    Err(ending) => {
                        let Opened { answer, no_socket, .. } = reading.opened;
                        self.end(Some((answer, no_socket)), ending);
                    }
                }
            }
            Phase::Over => {}
        }
    }

    /// Asks the service to continue an answer that it has paused.
    async fn resume(&mut self, content: Vec<Value>, answer: Answer, no_socket: Option<String>) {
        self.enqueue();
        self.n_resumed += 1;
        let ending = if self.n_resumed > MAX_RESUMED || content.is_empty() {
            Ending::Failed(RequestError::paused("stop_reason", "pause_turn"))
        } else {
            let mut request = Request::clone(&self.request);
            request.options.paused_content = content;
            let request = Arc::new(request);
            let opened = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(Ending::Aborted),
                opened = open(&self.provider, &request) => opened.map_err(Ending::Failed),
            };
            match opened {
                Ok(opened) => {
                    let opened = Opened { answer, no_socket, ..opened };
                    self.phase = Phase::Reading(Box::new(Reading::new(opened)));
                    return;
                }
                Err(ending) => ending,
            }
        };
        self.end(Some((answer, no_socket)), ending);
    }

    /// Queues what was read. Pieces of a block that arrived together become one: each costs its way through
    /// the tasks of loop, session and front ends.
    fn enqueue(&mut self) {
        for event in self.events.drain(..) {
            match (self.queue.back_mut(), event) {
                (
                    Some(StreamEvent::Delta { index: last, text }),
                    StreamEvent::Delta { index, text: more },
                ) if *last == index => text.push_str(&more),
                (_, event) => self.queue.push_back(event),
            }
        }
    }

    fn end(&mut self, answer: Option<(Answer, Option<String>)>, ending: Ending) {
        let Request { model, options, .. } = &*self.request;
        let clock = &self.provider.clock;
        let started_ms = match options.started_ms {
            0 => clock.now_ms(),
            ms => ms,
        };
        let mut message =
            AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, Millis(started_ms));
        match answer {
            Some((answer, no_socket)) => {
                answer.finish(ending, model, &mut message, &mut self.events);
                if let Some(why) = no_socket {
                    let why = redact::without_secrets(&why, &self.request.credential, &model.headers);
                    add_diagnostics(&mut message, vec![no_socket_note(&why)]);
                }
            }
            None => fail(&mut message, ending),
        }
        date_diagnostics(&mut message, clock.now_ms());
        let elapsed = clock.monotonic().saturating_sub(self.started);
        if is_on_plan(model, self.request.credential.is_account()) {
            message.usage.set_on_plan();
        }
        message.duration_ms = Some(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        message.thinking_level = Some(options.thinking);
        if let Some(error) = &mut message.error_message {
            *error = redact::without_secrets(error, &self.request.credential, &self.request.model.headers);
        }
        self.enqueue();
        self.queue.push_back(StreamEvent::Done(Box::new(message)));
    }
}

/// Adds the time to notes about an answer, after their type.
fn date_diagnostics(message: &mut AssistantMessage, now_ms: u64) {
    let notes = message.extra.get_mut("diagnostics").and_then(Value::as_array_mut);
    for note in notes.into_iter().flatten().filter_map(Value::as_object_mut) {
        note.shift_insert(1.min(note.len()), "timestamp".to_owned(), now_ms.into());
    }
}

/// The original's note of a request that went over HTTP, for the session file.
fn no_socket_note(why: &str) -> Value {
    json!({
        "type": "provider_transport_failure",
        "error": { "message": why },
        "details": { "fallbackTransport": "sse", "phase": "before_message_stream_start" },
    })
}

async fn open(provider: &HttpProvider, request: &Arc<Request>) -> Result<Opened, RequestError> {
    let request = provider.refusals.apply(provider.images.fit(request).await);
    let api = &request.model.api;
    let codec = api::find(api).ok_or_else(|| api::unsupported(api))?;
    let mut request = request;
    let mut repeats = Vec::new();
    loop {
        let error = match open_with(codec, provider, &request).await {
            Ok(opened) => {
                repeats.iter().for_each(|repeat| provider.refusals.learn(repeat));
                return Ok(opened);
            }
            Err(error) => error,
        };
        // Each repeat leaves out or adds something else, so there are few.
        let Some(repeat) = Refusals::repeat(&request, &error, |request| whole_body(codec, request).ok())
        else {
            return Err(error);
        };
        request = Arc::clone(&repeat.request);
        repeats.push(repeat);
    }
}

/// Encodes the request once and sends it, repeatedly if that may help, until there is
/// an answer to read.
async fn open_with(
    codec: &'static dyn WireApi,
    provider: &HttpProvider,
    request: &Arc<Request>,
) -> Result<Opened, RequestError> {
    let mut encoded = to_send(codec, request).map_err(|error| match error {
        // Usually caused by the key, which belongs to the provider.
        EncodeError::Header(_) => format!("{}: {error}", service(&request.model)),
        other => other.to_string(),
    })?;
    let HttpProvider { clock, options, .. } = provider;
    let mut over_socket = socket_request(codec, provider, request, &encoded);
    let mut no_socket = None;
    let mut retries = 0;
    loop {
        let sent = match &over_socket {
            Some(wanted) => match send_over_socket(codec, provider, request, wanted).await {
                Err(NotOpened::Unavailable(why)) => {
                    (over_socket, no_socket) = (None, Some(why));
                    continue;
                }
                Err(NotOpened::Refused(error)) => Err(error),
                Err(NotOpened::Silent) => Err(silent("answer", request, patience(options))),
                Ok(opened) => Ok(opened),
            },
            None => send_over_http(codec, provider, request, &mut encoded).await,
        };
        let failure = match sent {
            Ok((source, answer)) => return Ok(Opened { source, answer, no_socket }),
            Err(error) if may_repeat(&error) && retries < options.max_retries => error,
            Err(mut error) => {
                if let Some(hint) = codec.hint(request, &error.text) {
                    error.text = format!("{}; {hint}", error.text);
                }
                return Err(error);
            }
        };
        tokio::time::sleep(retry_wait(&failure, retries, options, clock)?).await;
        retries += 1;
    }
}

/// The request for a WebSocket, if it shall travel over one and the service has them.
fn socket_request(
    codec: &dyn WireApi,
    provider: &HttpProvider,
    request: &Request,
    encoded: &HttpRequest,
) -> Option<SocketRequest> {
    let session = match provider.options.web_sockets {
        WebSocketUse::Never => return None,
        WebSocketUse::PerRequest => None,
        WebSocketUse::Kept => request.options.session_id.clone(),
    };
    // A long conversation is sent while it is written, which a message cannot be.
    let HttpBody::Whole(body) = &encoded.body else { return None };
    let headers = codec.web_socket_headers(request, &encoded.headers)?;
    let (url, provider_id) = (encoded.url.clone(), encoded.provider.clone());
    let address = Address { url, headers, provider: provider_id };
    (!provider.sockets.is_unavailable(&address.url)).then(|| SocketRequest {
        address,
        body: body.clone(),
        session,
    })
}

async fn send_over_socket(
    codec: &dyn WireApi,
    provider: &HttpProvider,
    request: &Request,
    wanted: &SocketRequest,
) -> Result<(Source, Answer), NotOpened> {
    let HttpProvider { transport, clock, options, sockets, .. } = provider;
    let waits = Waits { connect: options.web_socket_connect_timeout, first_event: patience(options) };
    let opened = sockets.open(wanted, transport, waits, clock).await?;
    Ok((Source::Socket(Box::new(opened)), Answer::new(codec, request, None)))
}

async fn send_over_http(
    codec: &dyn WireApi,
    provider: &HttpProvider,
    request: &Request,
    encoded: &mut HttpRequest,
) -> Result<(Source, Answer), RequestError> {
    let HttpProvider { transport, clock, options, .. } = provider;
    let patience = patience(options);
    // A signature is valid for minutes, and waits between attempts may be longer.
    let now_ms = clock.now_ms();
    codec.sign(request, encoded, now_ms).map_err(|error| error.to_string())?;
    let mut sending = pin!(transport.send(encoded, service(&request.model), patience, now_ms));
    let sent = tokio::select! {
        biased;
        sent = &mut sending => Some(sent),
        () = silence(patience, clock) => None,
    };
    let response = match sent {
        Some(sent) => sent?,
        // The head may have arrived while pi was stopped.
        None => match tokio::time::timeout(AFTER_A_STOP, sending).await {
            Ok(sent) => sent?,
            Err(_) => return Err(silent("answer", request, patience)),
        },
    };
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let answer = Answer::new(codec, request, content_type);
    Ok((Source::Http(response), answer))
}

/// How long an answer may take to begin.
fn patience(options: &HttpOptions) -> Option<Duration> {
    match options.header_timeout {
        Some(limit) => Some(limit).filter(|limit| !limit.is_zero()),
        None => options.idle_timeout,
    }
}

/// Whether an immediate retry of the same request may succeed. If the server could not
/// parse a tool call, the session retries, with its current conversation.
fn may_repeat(error: &RequestError) -> bool {
    let class = error.failure.class;
    class.is_retryable() && class != FailureClass::ToolUseFailed
}

/// The wait before retry number `retries + 1`.
fn retry_wait(
    error: &RequestError,
    retries: u32,
    options: &HttpOptions,
    clock: &Clock,
) -> Result<Duration, RequestError> {
    match (error.failure.retry_after, options.max_retry_delay) {
        (Some(demanded), Some(most)) if demanded > most => {
            let text = format!(
                "{}; the demanded retry delay of {}s is above the limit of {}s",
                error.text,
                demanded.as_secs_f64(),
                most.as_secs_f64(),
            );
            Err(RequestError { text, failure: error.failure.clone() })
        }
        (Some(demanded), _) => Ok(demanded),
        (None, _) => {
            let doubled = Duration::from_millis(500).saturating_mul(2_u32.saturating_pow(retries));
            // Up to a quarter less, so that many clients do not retry at the same time.
            let spread = f64::from(clock.monotonic().subsec_nanos() % 1_000) / 4_000.0;
            Ok(doubled.min(Duration::from_secs(8)).mul_f64(1.0 - spread))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use reqwest::Response;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::ai::api::Decode;
    use crate::ai::messages::Api;
    use crate::ai::requests::StreamOptions;
    use crate::ai::transport::Credential;

    /// Counts how often requests are encoded; they are sent to `url`.
    struct Counting {
        url: String,
        n_encoded: AtomicUsize,
    }

    impl WireApi for Counting {
        fn url(&self, _request: &Request) -> Result<String, EncodeError> {
            Ok(self.url.clone())
        }

        fn write(&self, _request: &Request, to: BodyTo<'_>) -> Result<HeaderMap, EncodeError> {
            self.n_encoded.fetch_add(1, Ordering::Relaxed);
            if let BodyTo::Memory(bytes) = to {
                bytes.extend(b"{}");
            }
            Ok(HeaderMap::new())
        }

        fn decoder(&self, _request: &Request) -> Box<dyn Decode> {
            unreachable!("no answer comes")
        }
    }

    /// An answer that has arrived.
    struct Arrived {
        /// When its parts were passed on.
        times: Vec<Duration>,
        text: String,
        n_deltas: usize,
    }

    /// The chunk of a token, of which `left` follow.
    fn chunk(left: usize) -> String {
        match left {
            0 => "data: [DONE]\n\n".to_owned(),
            n => format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{n} \"}}}}]}}\n\n"),
        }
    }

    /// Reads an answer of `n` tokens, of which one arrives `every` time in a chunk of its own, whether or not
    /// anybody reads.
    async fn arrive(n: usize, every: Duration) -> Arrived {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for left in (0..n).rev() {
                if !every.is_zero() {
                    tokio::time::sleep(every).await;
                }
                sender.send(chunk(left)).unwrap();
            }
        });
        let chunks = stream::unfold(receiver, async |mut receiver| {
            let chunk = receiver.recv().await?;
            Some((Ok::<_, io::Error>(chunk), receiver))
        });
        read_all(Response::from(http::Response::new(reqwest::Body::wrap_stream(chunks)))).await
    }

    async fn read_all(response: Response) -> Arrived {
        let (arrived, done) =
            read_with(HttpOptions { idle_timeout: None, ..HttpOptions::default() }, response).await;
        drop(done);
        arrived
    }

    /// Reads a body that is made of `chunks`, and returns the failure and when it came.
    async fn failure_of(
        options: HttpOptions,
        chunks: impl Stream<Item = String> + Send + 'static,
    ) -> (Option<String>, Duration) {
        let body = reqwest::Body::wrap_stream(chunks.map(Ok::<_, io::Error>));
        let (arrived, done) = read_with(options, Response::from(http::Response::new(body))).await;
        (done.and_then(|done| done.error_message), arrived.times.last().copied().unwrap_or_default())
    }

    /// One chunk after each of these times, in seconds.
    fn timed(chunks: Vec<(u64, String)>) -> impl Stream<Item = String> + Send + 'static {
        let end = stream::pending();
        let chunks = stream::iter(chunks).then(async |(seconds, chunk)| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            chunk
        });
        Box::pin(chunks.chain(end))
    }

    async fn read_with(options: HttpOptions, response: Response) -> (Arrived, Option<AssistantMessage>) {
        let request = Request {
            model: Arc::new(Model { api: Api::OPENAI_COMPLETIONS, ..Model::default() }),
            credential: Credential::None,
            messages: Vec::new(),
            options: StreamOptions::default(),
        };
        let codec = api::find(&request.model.api).unwrap();
        let answer = Answer::new(codec, &request, Some("text/event-stream"));
        let source = Source::Http(response);
        let reading = Reading::new(Opened { source, answer, no_socket: None });
        let mut driver = Driver {
            provider: HttpProvider::new(Transport::new(), Clock::manual(0), options),
            request: Arc::new(request),
            cancel: CancellationToken::new(),
            started: Duration::ZERO,
            rest: Rest::anywhere(),
            phase: Phase::Reading(Box::new(reading)),
            n_resumed: 0,
            queue: VecDeque::new(),
            events: Vec::new(),
        };
        let begun = Instant::now();
        let mut arrived = Arrived { times: Vec::new(), text: String::new(), n_deltas: 0 };
        let mut done = None;
        while !matches!(driver.phase, Phase::Over) {
            driver.step().await;
            arrived.times.push(begun.elapsed());
            for event in driver.queue.drain(..) {
                match event {
                    StreamEvent::Delta { text, .. } => {
                        arrived.text.push_str(&text);
                        arrived.n_deltas += 1;
                    }
                    StreamEvent::Done(message) => done = Some(*message),
                    StreamEvent::Start | StreamEvent::BlockStart { .. } | StreamEvent::BlockEnd { .. } => {}
                }
            }
        }
        (arrived, done)
    }

    const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    const EMPTY: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n";

    #[tokio::test(start_paused = true)]
    async fn connection_that_is_only_kept_alive_fails_after_the_limit_for_content() {
        for keep_alive in [": ping\n\n", EMPTY, "data: {\"choices\":[]}\n\n"] {
            let pings = iter::repeat_n((5, keep_alive.to_owned()), 1_000);
            let chunks = timed(iter::once((1, TOKEN.to_owned())).chain(pings).collect());
            let (error, after) = failure_of(HttpOptions::default(), chunks).await;
            assert_eq!(error.as_deref(), Some("timed out: no content from the service for 600 s"));
            assert_eq!(after.as_secs(), 601);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_content_is_no_silence() {
        let tokens = iter::repeat_n((290, TOKEN.to_owned()), 10);
        let chunks = timed(tokens.chain([(290, "data: [DONE]\n\n".to_owned())]).collect());
        let (_, after) = failure_of(HttpOptions::default(), chunks).await;
        assert_eq!(after.as_secs(), 3_190);
        let pings = iter::repeat_n((5, EMPTY.to_owned()), 1_000);
        let chunks = timed(pings.chain([(0, "data: [DONE]\n\n".to_owned())]).collect());
        let unlimited = HttpOptions { content_timeout: None, ..HttpOptions::default() };
        assert_eq!(failure_of(unlimited, chunks).await.1.as_secs(), 5_000);
    }

    /// A stopped program finds its timers over before its connections have run.
    #[tokio::test(start_paused = true)]
    async fn chunk_that_arrives_right_after_the_limit_counts() {
        let late = |ms: u64| {
            let chunks = stream::once(async move {
                tokio::time::sleep(Duration::from_millis(300_000 + ms)).await;
                format!("{TOKEN}data: [DONE]\n\n")
            });
            Box::pin(chunks.chain(stream::pending()))
        };
        let options = || HttpOptions { content_timeout: None, ..HttpOptions::default() };
        let (error, _) = failure_of(options(), late(1)).await;
        assert_eq!(error.as_deref(), Some("stream ended before a finish_reason"), "the answer was read");
        let (error, _) = failure_of(options(), late(1_000)).await;
        assert_eq!(error.as_deref(), Some("timed out: no data from the service for 300 s"));
    }

    fn countdown(n: usize) -> String {
        (1..n).rev().map(|n| format!("{n} ")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn chunks_that_arrived_together_are_read_together() {
        let Arrived { times, text, n_deltas } = arrive(2_000, Duration::ZERO).await;
        assert_eq!(text, countdown(2_000));
        assert_eq!(times.last(), Some(&Duration::ZERO));
        assert!(times.len() < 30, "{}", times.len());
        assert!(n_deltas <= times.len(), "{n_deltas}");
    }

    #[tokio::test]
    async fn chunks_that_a_connection_holds_are_read_together() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1_024];
            let _n_bytes = socket.read(&mut request).await.unwrap();
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
            let chunks = (0..1_000).rev().map(chunk);
            let chunks = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
            let answer: String = iter::once(head).chain(chunks).chain(["0\r\n\r\n".to_owned()]).collect();
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let Arrived { times, text, .. } = read_all(reqwest::get(url).await.unwrap()).await;
        assert_eq!(text, countdown(1_000));
        assert!(times.len() < 60, "{}", times.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_is_read_and_passed_on_in_batches() {
        /// See `transport::pace`.
        const BATCH: Duration = Duration::from_millis(61);
        let every = Duration::from_millis(7);
        let Arrived { times, text, n_deltas } = arrive(1_500, every).await;
        assert_eq!(text, countdown(1_500));
        let ended = *times.last().unwrap();
        assert!((every * 1_500..=every * 1_500 + BATCH).contains(&ended), "{ended:?}");
        assert!((175..200).contains(&times.len()), "{}", times.len());
        assert!(n_deltas <= times.len(), "{n_deltas}");
    }

    /// Encoding a long session takes milliseconds, and the result is always the same.
    #[tokio::test(start_paused = true)]
    async fn a_request_is_written_once_however_often_it_is_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let n_sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_sent);
        let server = tokio::spawn(async move {
            // Closes every connection.
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                drop(socket);
            }
        });
        let codec: &Counting = Box::leak(Box::new(Counting { url, n_encoded: AtomicUsize::new(0) }));
        let options = HttpOptions { max_retries: 3, idle_timeout: None, ..HttpOptions::default() };
        let provider = HttpProvider::new(Transport::new(), Clock::manual(1), options);
        let request = Request {
            model: Arc::default(),
            credential: Credential::None,
            messages: Vec::new(),
            options: StreamOptions::default(),
        };
        assert!(open_with(codec, &provider, &Arc::new(request)).await.is_err());
        server.abort();
        assert_eq!(codec.n_encoded.load(Ordering::Relaxed), 1);
        assert!(n_sent.load(Ordering::Relaxed) >= 4);
    }
}
