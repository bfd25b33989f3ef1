//! Adds the currently valid key to each request.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::ai::{
    AssistantMessage, Credential, EventStream, Failure, FailureClass, LiveCatalog, Millis, Model, Provider,
    Request, StopReason, StreamEvent,
};

use super::credentials::Credentials;

/// A provider that finds the key of each request itself, unless the request
/// contains one: a run lasts for hours, a token for minutes. If the service rejects a
/// token or an AWS key, it is renewed, and the request is repeated once if the
/// renewed one differs.
#[derive(Clone)]
pub struct Authorised {
    inner: Arc<dyn Provider>,
    credentials: Credentials,
    catalog: Arc<LiveCatalog>,
}

impl Authorised {
    /// Finds keys with `credentials`, and lets `inner` answer.
    pub fn new(inner: Arc<dyn Provider>, credentials: Credentials, catalog: Arc<LiveCatalog>) -> Self {
        Self { inner, credentials, catalog }
    }

    async fn open(self, mut request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let headers = cancel.run_until_cancelled(self.credentials.headers(&request.model)).await;
        match headers {
            None => return aborted(&request),
            Some(Ok(None)) => {}
            Some(Ok(Some(headers))) => {
                let model = Model { headers, ..Model::clone(&request.model) };
                request = Arc::new(Request { model: Arc::new(model), ..Arc::unwrap_or_clone(request) });
            }
            Some(Err(error)) => return ended(&request, StopReason::Error, error.to_string(), None),
        }
        let request = if request.credential == Credential::None {
            let catalog = self.catalog.get();
            let resolved =
                cancel.run_until_cancelled(self.credentials.resolve(&request.model, &catalog)).await;
            match resolved {
                None => return aborted(&request),
                Some(Ok(credential)) => with(request, credential),
                Some(Err(error)) => return ended(&request, StopReason::Error, error.to_string(), None),
            }
        } else {
            request
        };
        let Some(proof) = renewable(&request.credential).map(str::to_owned) else {
            return self.inner.stream(request, cancel);
        };
        let mut events = self.inner.stream(Arc::clone(&request), cancel.clone());
        let first = events.next().await;
        let Some(StreamEvent::Done(message)) = first else {
            return stream::iter(first).chain(events).boxed();
        };
        if !is_refused(&request.credential, &message) {
            return once(StreamEvent::Done(message));
        }
        let catalog = self.catalog.get();
        let renewing = self.credentials.renew(&request.model, &catalog, &proof);
        let renewed = cancel.run_until_cancelled(renewing).await;
        match renewed {
            None => aborted(&request),
            Some(Ok(credential)) if credential == request.credential => once(StreamEvent::Done(message)),
            Some(Ok(credential)) => self.inner.stream(with(request, credential), cancel),
            Some(Err(error)) => {
                let said = message.error_message.as_deref().unwrap_or_default();
                let failure = message.failure.clone();
                ended(&request, StopReason::Error, format!("{said}; {error}"), failure)
            }
        }
    }
}

impl Authorised {
    /// Adds the origin of the key to a failure about it.
    fn explained(&self, model: Arc<Model>, events: EventStream) -> EventStream {
        let (credentials, catalog) = (self.credentials.clone(), Arc::clone(&self.catalog));
        let explain = move |event| match event {
            StreamEvent::Done(mut message) if message.stop_reason == StopReason::Error => {
                if is_about_the_key(&message)
                    && let Some(error) = &mut message.error_message
                    && let Some(origin) = credentials.key_origin(&model, &catalog.get())
                {
                    error.push('\n');
                    error.push_str(&origin);
                }
                StreamEvent::Done(message)
            }
            event => event,
        };
        events.map(explain).boxed()
    }
}

/// Whether a service rejected the key. Not every such error is about the key: some
/// concern the model.
fn is_about_the_key(message: &AssistantMessage) -> bool {
    let Some(failure) = Failure::of_answer(message) else { return false };
    let says_key =
        || message.error_message.as_deref().is_some_and(|text| text.to_lowercase().contains("api key"));
    failure.status == Some(401)
        || failure.class == FailureClass::Auth && failure.status.is_some() && says_key()
}

impl Provider for Authorised {
    fn warm_up(&self, model: &Model) {
        self.inner.warm_up(model);
    }

    fn end_session(&self, session_id: &str) {
        self.inner.end_session(session_id);
    }

    fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        let is_complete = matches!(request.credential, Credential::ApiKey(_) | Credential::Bearer(_));
        let model = Arc::clone(&request.model);
        let events = if is_complete && request.model.headers.is_empty() {
            self.inner.stream(request, cancel)
        } else {
            stream::once(self.clone().open(request, cancel)).flatten().boxed()
        };
        self.explained(model, events)
    }
}

fn with(request: Arc<Request>, credential: Credential) -> Arc<Request> {
    Arc::new(Request { credential, ..Arc::unwrap_or_clone(request) })
}

/// The part of a credential that distinguishes it from its renewal.
fn renewable(credential: &Credential) -> Option<&str> {
    match credential {
        Credential::SignedIn(account) => Some(&account.token),
        Credential::Aws(keys) => Some(keys.session_token.as_deref().unwrap_or(&keys.access_key_id)),
        Credential::None | Credential::ApiKey(_) | Credential::Bearer(_) => None,
    }
}

/// Parts of the codes with which Amazon rejects keys, mostly with status 403:
/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html>.
const AWS_REFUSALS: [&str; 5] = [
    "ExpiredToken",
    "UnrecognizedClient",
    "InvalidClientTokenId",
    "InvalidSignature",
    "SignatureDoesNotMatch",
];

/// Whether the service rejected the credential before any content.
fn is_refused(credential: &Credential, message: &AssistantMessage) -> bool {
    let Some(error) = message.error_message.as_deref().filter(|_| message.stop_reason == StopReason::Error)
    else {
        return false;
    };
    let is_unauthorised = Failure::of_answer(message).is_some_and(|failure| failure.status == Some(401));
    match credential {
        Credential::Aws(_) => is_unauthorised || AWS_REFUSALS.iter().any(|code| error.contains(code)),
        _ => is_unauthorised,
    }
}

fn once(event: StreamEvent) -> EventStream {
    stream::iter([event]).boxed()
}

fn aborted(request: &Request) -> EventStream {
    ended(request, StopReason::Aborted, "Request was aborted".to_owned(), None)
}

/// An answer that ended before the request was sent.
fn ended(
    request: &Request,
    stop_reason: StopReason,
    error: String,
    failure: Option<Box<Failure>>,
) -> EventStream {
    let Request { model, options, .. } = request;
    let started = Millis(options.started_ms);
    let mut message = AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, started);
    message.stop_reason = stop_reason;
    message.error_message = Some(error);
    message.failure = failure;
    message.thinking_level = Some(options.thinking);
    once(StreamEvent::Done(Box::new(message)))
}
