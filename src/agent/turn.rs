//! One answer: streams a request into the finished assistant message.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::ai::{AssistantMessage, MessageBuilder, Provider, Request, StopReason, StreamEvent};
use crate::util::panics::panic_text;

use super::crash::crash_error;
use super::event::AgentEvent;
use super::hooks::Hooks;

/// Streams one answer, emitting `AssistantStart` and its updates; the caller
/// emits the end. Never fails: the message contains any failure, including a panic
/// of the provider.
pub(super) async fn stream_answer(
    provider: &dyn Provider,
    request: &Request,
    cancel: &CancellationToken,
    hooks: &mut dyn Hooks,
) -> Answered {
    let pending = pending(request);
    hooks.emit(AgentEvent::AssistantStart(Arc::new(pending.clone()))).await;
    if cancel.is_cancelled() {
        return Answered::of(failed(pending, StopReason::Aborted, "Request was aborted"));
    }
    let mut builder = MessageBuilder::new(pending);
    let request = Arc::new(request.clone());
    hooks.on_request(&request);
    let asked = catch_unwind(AssertUnwindSafe(|| provider.stream(request, cancel.clone())));
    let mut stream = match asked {
        Ok(stream) => stream,
        Err(panic) => return Answered::crashed(builder, &*panic),
    };
    loop {
        let event = match AssertUnwindSafe(stream.next()).catch_unwind().await {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(panic) => return Answered::crashed(builder, &*panic),
        };
        match event {
            StreamEvent::Start => {}
            StreamEvent::Done(message) => return Answered::of(*message),
            StreamEvent::BlockStart { .. } | StreamEvent::Delta { .. } | StreamEvent::BlockEnd { .. } => {
                builder.push(&event);
                hooks.update(&event);
            }
        }
    }
    // It violates the provider contract, but the content shown so far is kept.
    Answered::of(failed(builder.into_message(), StopReason::Error, "stream ended without a final event"))
}

/// The result of a request.
pub(super) struct Answered {
    pub(super) answer: AssistantMessage,
    /// The message of a panic in the provider; `answer` contains it too.
    pub(super) panic: Option<String>,
}

impl Answered {
    fn of(answer: AssistantMessage) -> Self {
        Self { answer, panic: None }
    }

    /// Keeps the content that had arrived.
    fn crashed(builder: MessageBuilder, panic: &(dyn Any + Send)) -> Self {
        let panic = panic_text(panic);
        let error = crash_error(&panic);
        Self { answer: failed(builder.into_message(), StopReason::Error, &error), panic: Some(panic) }
    }
}

fn pending(request: &Request) -> AssistantMessage {
    let model = &request.model;
    let mut message = AssistantMessage::pending(
        model.api.clone(),
        &model.provider,
        &model.id,
        crate::ai::Millis(request.options.started_ms),
    );
    message.thinking_level = Some(request.options.thinking);
    message
}

fn failed(mut message: AssistantMessage, reason: StopReason, error: &str) -> AssistantMessage {
    message.stop_reason = reason;
    message.error_message = Some(error.to_owned());
    message
}
