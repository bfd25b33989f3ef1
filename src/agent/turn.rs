//! One answer: from a request to the finished assistant message.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::ai::{AssistantMessage, MessageBuilder, Provider, Request, StopReason, StreamEvent};

use super::event::AgentEvent;
use super::hooks::Hooks;

/// Streams one answer, emitting `AssistantStart` and its updates; the caller
/// emits the end. Never fails: a failure is in the message.
pub(super) async fn stream_answer(
    provider: &dyn Provider,
    request: &Request,
    cancel: &CancellationToken,
    hooks: &mut dyn Hooks,
) -> AssistantMessage {
    let pending = pending(request);
    hooks.emit(AgentEvent::AssistantStart(Arc::new(pending.clone()))).await;
    if cancel.is_cancelled() {
        return failed(pending, StopReason::Aborted, "Request was aborted");
    }
    let mut builder = MessageBuilder::new(pending);
    let mut stream = provider.stream(Arc::new(request.clone()), cancel.clone());
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Start => {}
            StreamEvent::Done(message) => return *message,
            StreamEvent::BlockStart { .. } | StreamEvent::Delta { .. } | StreamEvent::BlockEnd { .. } => {
                builder.push(&event);
                hooks.update(&event);
            }
        }
    }
    // Against the provider contract, yet no reason to lose what was shown.
    failed(builder.into_message(), StopReason::Error, "stream ended without a final event")
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
