//! The order of agent events, as documented at `AgentEvent`.

use std::sync::Arc;

use pi::agent::AgentEvent;
use pi::ai::{AssistantMessage, Message, StreamEvent, StreamOrder};

/// Takes the events of one run after the other and reports violations of the order.
/// Besides the grammar it checks what the events say of each other: results
/// answer calls in their order, and `TurnEnd` and `AgentEnd` list exactly the
/// messages that were announced.
#[derive(Debug, Default)]
pub(crate) struct AgentOrder {
    place: Place,
    /// A message that has started and not ended.
    open: Option<Arc<Message>>,
    updates: StreamOrder,
    turn: Turn,
    /// Messages of the run so far.
    messages: Vec<Arc<Message>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    BetweenTurns,
    BeforeAnswer,
    InAnswer,
    AfterAnswer,
}

#[derive(Debug, Default)]
struct Turn {
    answer: Option<Arc<Message>>,
    /// Ids of the calls, in order of the answer.
    calls: Vec<String>,
    n_started: usize,
    running: Vec<String>,
    ended: Vec<String>,
    results: Vec<Arc<Message>>,
}

impl AgentOrder {
    /// Takes the next event.
    pub(crate) fn accept(&mut self, event: &AgentEvent) -> Result<(), String> {
        self.step(event).map_err(|problem| format!("{problem}: {event:?} in {self:?}"))
    }

    /// Whether the last run is over.
    pub(crate) fn is_complete(&self) -> bool {
        self.place == Place::Outside
    }

    fn step(&mut self, event: &AgentEvent) -> Result<(), &'static str> {
        if self.open.is_some() && !matches!(event, AgentEvent::MessageEnd(_)) {
            return Err("a message has not ended");
        }
        match event {
            AgentEvent::AgentStart => {
                self.at(Place::Outside)?;
                self.messages.clear();
                self.place = Place::BetweenTurns;
            }
            AgentEvent::TurnStart => {
                self.at(Place::BetweenTurns)?;
                self.turn = Turn::default();
                self.place = Place::BeforeAnswer;
            }
            AgentEvent::MessageStart(message) => {
                let place = match **message {
                    Message::System(_) | Message::User(_) => Place::BeforeAnswer,
                    Message::ToolResult(_) => Place::AfterAnswer,
                    Message::Assistant(_) => return Err("answers start with AssistantStart"),
                };
                self.at(place)?;
                self.open = Some(Arc::clone(message));
            }
            AgentEvent::AssistantStart(answer) => {
                self.at(Place::BeforeAnswer)?;
                check(answer.content.is_empty(), "an answer starts without content")?;
                self.updates = StreamOrder::default();
                self.updates.accept(&StreamEvent::Start).map_err(|_| "a fresh order takes Start")?;
                self.place = Place::InAnswer;
            }
            AgentEvent::MessageUpdate(update) => {
                self.at(Place::InAnswer)?;
                check(!matches!(update, StreamEvent::Done(_)), "the end of an answer is its MessageEnd")?;
                self.updates.accept(update).map_err(|_| "an update out of order")?;
            }
            AgentEvent::MessageEnd(message) => self.message_ended(message)?,
            AgentEvent::ToolStart { call } => {
                self.at(Place::AfterAnswer)?;
                let next = self.turn.calls.get(self.turn.n_started);
                check(next == Some(&call.id), "calls start in the order of the answer")?;
                self.turn.n_started += 1;
                self.turn.running.push(call.id.clone());
            }
            AgentEvent::ToolRunning { call_id } => {
                check(self.turn.running.contains(call_id), "a call runs that was not taken up")?;
            }
            AgentEvent::ToolUpdate { call_id, .. } => {
                check(self.turn.running.contains(call_id), "an update of a call that is not running")?;
            }
            AgentEvent::ToolEnd { call_id, result } => {
                check(result.tool_call_id == *call_id, "the result of another call")?;
                let at = self.turn.running.iter().position(|id| id == call_id);
                let at = at.ok_or("the end of a call that is not running")?;
                self.turn.running.remove(at);
                self.turn.ended.push(call_id.clone());
            }
            AgentEvent::TurnEnd { message, results } => {
                self.at(Place::AfterAnswer)?;
                check(self.turn.running.is_empty(), "a call is still running")?;
                check(self.turn.ended.len() == self.turn.results.len(), "a call without result message")?;
                check(Some(message) == self.turn.answer.as_ref(), "not the answer of this turn")?;
                check(*results == self.turn.results, "not the results of this turn")?;
                self.place = Place::BetweenTurns;
            }
            AgentEvent::AgentEnd { messages } => {
                self.at(Place::BetweenTurns)?;
                check(*messages == self.messages, "not the messages of this run")?;
                self.place = Place::Outside;
            }
        }
        Ok(())
    }

    fn message_ended(&mut self, message: &Arc<Message>) -> Result<(), &'static str> {
        match &**message {
            Message::Assistant(answer) => {
                self.at(Place::InAnswer)?;
                self.turn.calls = calls(answer);
                self.turn.answer = Some(Arc::clone(message));
                self.place = Place::AfterAnswer;
            }
            Message::ToolResult(result) => {
                check(self.open.take().as_ref() == Some(message), "not the message that started")?;
                let calls = self.turn.calls.iter();
                let expected = calls.filter(|id| self.turn.ended.contains(id)).nth(self.turn.results.len());
                check(expected == Some(&result.tool_call_id), "results come in the order of their calls")?;
                self.turn.results.push(Arc::clone(message));
            }
            Message::System(_) | Message::User(_) => {
                check(self.open.take().as_ref() == Some(message), "not the message that started")?;
            }
        }
        self.messages.push(Arc::clone(message));
        Ok(())
    }

    fn at(&self, place: Place) -> Result<(), &'static str> {
        check(self.place == place, "out of place")
    }
}

/// Failed answers run no tools, whatever they asked for.
fn calls(answer: &AssistantMessage) -> Vec<String> {
    if answer.is_failed() { Vec::new() } else { answer.tool_calls().map(|call| call.id.clone()).collect() }
}

fn check(holds: bool, problem: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(problem) }
}
