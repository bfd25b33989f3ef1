//! Ends a run after a panic, with its events still in valid order.
//!
//! [`Watched`] stands between the loop and its owner and records events that have begun.
//! After a panic, [`Watched::close`] ends them: calls in progress fail, and an answer
//! contains the error. It never panics itself.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::ai::{
    AssistantMessage, ContentBlock, Extra, Message, Millis, Request, StopReason, StreamEvent, ToolCall,
    ToolResultMessage,
};

use super::event::AgentEvent;
use super::hooks::{CheckedCall, Gate, Hooks, NextRequest};
use super::tool::{Environment, ToolOutput};

/// The error of an answer or a call that a panic ended.
pub(super) fn crash_error(panic: &str) -> String {
    format!("internal error in pi: {panic}")
}

/// Forwards everything and records what has begun and not ended.
pub(super) struct Watched<'h> {
    hooks: &'h mut dyn Hooks,
    /// `AgentEnd` was emitted.
    has_ended: bool,
    in_turn: bool,
    /// A message that has started and not ended.
    open: Option<Arc<Message>>,
    /// The answer that is arriving.
    arriving: Option<Arc<AssistantMessage>>,
    /// The answer of the turn.
    answer: Option<Arc<Message>>,
    /// Calls that have started and not ended.
    running: Vec<Arc<ToolCall>>,
    /// Results of the turn, and whether each was announced as a message.
    results: Vec<(Arc<ToolResultMessage>, bool)>,
    /// Every message of the run that has ended.
    messages: Vec<Arc<Message>>,
}

impl<'h> Watched<'h> {
    pub(super) fn new(hooks: &'h mut dyn Hooks) -> Self {
        Self {
            hooks,
            has_ended: false,
            in_turn: false,
            open: None,
            arriving: None,
            answer: None,
            running: Vec::new(),
            results: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Ends the run after a panic. Returns the answer with `error`; `None` if the
    /// run was already over.
    pub(super) async fn close(
        &mut self,
        request: &Request,
        error: &str,
        now: Millis,
    ) -> Option<Arc<Message>> {
        if self.has_ended {
            return None;
        }
        if let Some(message) = self.open.take() {
            self.emit(AgentEvent::MessageEnd(message)).await;
        }
        if self.answer.is_some() {
            self.close_calls(error, now).await;
            self.close_turn().await;
        }
        if !self.in_turn {
            self.emit(AgentEvent::TurnStart).await;
        }
        let pending = match self.arriving.take() {
            Some(pending) => pending,
            None => {
                let model = &request.model;
                let pending = AssistantMessage::pending(model.api.clone(), &model.provider, &model.id, now);
                let pending = Arc::new(pending);
                self.emit(AgentEvent::AssistantStart(Arc::clone(&pending))).await;
                pending
            }
        };
        let answer = AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(error.to_owned()),
            ..(*pending).clone()
        };
        let answer = Arc::new(Message::from(answer));
        self.emit(AgentEvent::MessageEnd(Arc::clone(&answer))).await;
        self.close_turn().await;
        let messages = std::mem::take(&mut self.messages);
        self.emit(AgentEvent::AgentEnd { messages }).await;
        Some(answer)
    }

    async fn close_calls(&mut self, error: &str, now: Millis) {
        for call in std::mem::take(&mut self.running) {
            let result = Arc::new(failed_result(&call, error, now));
            self.emit(AgentEvent::ToolEnd { call_id: call.id.clone(), result }).await;
        }
        let calls: Vec<String> = match self.answer.as_deref() {
            Some(Message::Assistant(answer)) => answer.tool_calls().map(|call| call.id.clone()).collect(),
            Some(Message::System(_) | Message::User(_) | Message::ToolResult(_)) | None => Vec::new(),
        };
        let place = |result: &ToolResultMessage| calls.iter().position(|id| *id == result.tool_call_id);
        self.results.sort_by_key(|(result, _)| place(result));
        let waiting: Vec<_> =
            self.results.iter().filter(|(_, told)| !told).map(|(result, _)| Arc::clone(result)).collect();
        for result in waiting {
            let message = Arc::new(Message::ToolResult(result));
            self.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
            self.emit(AgentEvent::MessageEnd(message)).await;
        }
    }

    async fn close_turn(&mut self) {
        let Some(message) = self.answer.clone() else { return };
        let results = self.messages.iter().rev().take_while(|other| !Arc::ptr_eq(other, &message));
        let mut results: Vec<Arc<Message>> = results.cloned().collect();
        results.reverse();
        self.emit(AgentEvent::TurnEnd { message, results }).await;
    }

    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart
            | AgentEvent::MessageUpdate(_)
            | AgentEvent::ToolRunning { .. }
            | AgentEvent::ToolUpdate { .. } => {}
            AgentEvent::AgentEnd { .. } => self.has_ended = true,
            AgentEvent::TurnStart => {
                self.in_turn = true;
                self.answer = None;
                self.running.clear();
                self.results.clear();
            }
            AgentEvent::TurnEnd { .. } => {
                self.in_turn = false;
                self.answer = None;
            }
            AgentEvent::MessageStart(message) => self.open = Some(Arc::clone(message)),
            AgentEvent::AssistantStart(answer) => self.arriving = Some(Arc::clone(answer)),
            AgentEvent::MessageEnd(message) => self.message_ended(message),
            AgentEvent::ToolStart { call } => self.running.push(Arc::clone(call)),
            AgentEvent::ToolEnd { call_id, result } => {
                self.running.retain(|call| call.id != *call_id);
                self.results.push((Arc::clone(result), false));
            }
        }
    }

    fn message_ended(&mut self, message: &Arc<Message>) {
        self.open = None;
        match &**message {
            Message::Assistant(_) => {
                self.arriving = None;
                self.answer = Some(Arc::clone(message));
            }
            Message::ToolResult(result) => {
                let it = self.results.iter_mut().find(|(other, _)| other.tool_call_id == result.tool_call_id);
                if let Some((_, told)) = it {
                    *told = true;
                }
            }
            Message::System(_) | Message::User(_) => {}
        }
        self.messages.push(Arc::clone(message));
    }
}

impl Hooks for Watched<'_> {
    fn emit(&mut self, event: AgentEvent) -> BoxFuture<'_, ()> {
        self.note(&event);
        self.hooks.emit(event)
    }

    fn update(&mut self, event: &StreamEvent) {
        self.hooks.update(event);
    }

    fn prepare_request<'a>(&'a mut self, next: &'a mut NextRequest) -> BoxFuture<'a, ()> {
        self.hooks.prepare_request(next)
    }

    fn on_request(&mut self, request: &Arc<Request>) {
        self.hooks.on_request(request);
    }

    fn settle_result<'a>(&'a mut self, call: &'a ToolCall, output: &'a mut ToolOutput) -> BoxFuture<'a, ()> {
        self.hooks.settle_result(call, output)
    }

    fn environment(&self) -> Environment {
        self.hooks.environment()
    }

    fn gate_tool<'a>(&'a mut self, call: CheckedCall<'a>) -> BoxFuture<'a, Gate> {
        self.hooks.gate_tool(call)
    }
}

fn failed_result(call: &ToolCall, error: &str, now: Millis) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(error)],
        details: None,
        is_error: true,
        duration_ms: None,
        timestamp: now,
        extra: Extra::new(),
    }
}
