//! The way to the client: responses, updates and requests, as lines in one order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, Error, ErrorCode, RequestId, SessionId, SessionUpdate,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::wire::LineOutput;
use super::message;
use super::outgoing::{Outgoing, ReplayResponse, update_line};
use super::replay::Replay;

/// Requests of the client that may be open at a time. Prompts wait in a queue.
const MAX_UNANSWERED: usize = 1000;

/// Shared by the connection, its sessions and their tools. Never blocks.
pub(super) struct Client {
    output: LineOutput<Outgoing>,
    requests: Mutex<OpenRequests>,
    /// Requests of the client that have no response yet, with the session that is to answer them.
    unanswered: Mutex<HashMap<RequestId, Option<SessionId>>>,
}

#[derive(Default)]
struct OpenRequests {
    last_id: i64,
    /// `None` once the client is gone.
    replies: Option<HashMap<i64, oneshot::Sender<Result<Value, Error>>>>,
}

impl Client {
    pub(super) fn new(output: LineOutput<Outgoing>) -> Self {
        let requests = OpenRequests { last_id: 0, replies: Some(HashMap::new()) };
        Self { output, requests: Mutex::new(requests), unanswered: Mutex::default() }
    }

    pub(super) fn output(&self) -> &LineOutput<Outgoing> {
        &self.output
    }

    pub(super) fn send(&self, next: Outgoing) {
        self.output.send(next);
    }

    /// Notes a request of the client.
    ///
    /// # Errors
    /// If another with its id is open, or very many are. Requests cannot wait unread until others
    /// have their responses: a cancellation or an answer that these need comes after them.
    pub(super) fn accept(&self, id: &RequestId) -> Result<(), Error> {
        let mut unanswered = self.unanswered();
        let problem = if *id != RequestId::Null && unanswered.contains_key(id) {
            format!("a request with the id {id} is open already")
        } else if unanswered.len() >= MAX_UNANSWERED {
            format!("{MAX_UNANSWERED} requests are open already; send it again when one has its response")
        } else {
            unanswered.insert(id.clone(), None);
            return Ok(());
        };
        Err(Error::new(ErrorCode::InvalidRequest.into(), problem))
    }

    /// Notes that `session` is to answer the request.
    pub(super) fn assign(&self, id: &RequestId, session: &SessionId) {
        if let Some(assigned) = self.unanswered().get_mut(id) {
            *assigned = Some(session.clone());
        }
    }

    /// Answers what `session` can answer no more.
    pub(super) fn on_session_lost(&self, session: &SessionId, why: &str) {
        let unanswered = self.unanswered();
        let of_session =
            |(id, by): (&RequestId, &Option<SessionId>)| (by.as_ref() == Some(session)).then(|| id.clone());
        let lost: Vec<RequestId> = unanswered.iter().filter_map(of_session).collect();
        drop(unanswered);
        for id in lost {
            self.fail(&id, Error::new(ErrorCode::InternalError.into(), why));
        }
        self.send(Outgoing::Closed(session.clone()));
    }

    pub(super) fn respond<T: Serialize>(&self, id: &RequestId, result: Result<T, Error>) {
        self.unanswered().remove(id);
        let line = message::response(id, result.as_ref());
        self.output.send(Outgoing::Line(line));
    }

    /// Responds with `response` after `replay`, or with an error if a panic ends that.
    pub(super) fn respond_after<T: Serialize>(&self, replay: Replay, id: RequestId, response: &T) {
        self.unanswered().remove(&id);
        let ok = message::response(&id, Ok(response));
        self.output.send(Outgoing::Replay(replay, ReplayResponse { id, ok }));
    }

    pub(super) fn fail(&self, id: &RequestId, error: Error) {
        self.respond::<Value>(id, Err(error));
    }

    /// Answers a message that was not accepted; it may have the id of an open request.
    pub(super) fn reject(&self, id: &RequestId, error: &Error) {
        let line = message::response::<Value>(id, Err(error));
        self.output.send(Outgoing::Line(line));
    }

    pub(super) fn update(&self, session: &SessionId, update: SessionUpdate) {
        self.output.send(Outgoing::Line(update_line(session, update)));
    }

    /// Sends a request. Dropping the result cancels it.
    pub(super) fn request<T: Serialize>(self: &Arc<Self>, method: &str, params: &T) -> ClientReply {
        let (sender, reply) = oneshot::channel();
        let mut requests = self.lock();
        requests.last_id += 1;
        let id = requests.last_id;
        if let Some(replies) = &mut requests.replies {
            replies.insert(id, sender);
        }
        drop(requests);
        self.output.send(Outgoing::Line(message::request(id, method, params)));
        ClientReply { client: Arc::clone(self), id, reply }
    }

    /// Passes on the response to a request; `false` if pi made no such request, or it was
    /// answered already.
    pub(super) fn on_response(&self, id: &RequestId, result: Result<Value, Error>) -> bool {
        let RequestId::Number(id) = id else { return false };
        let reply = self.lock().replies.as_mut().and_then(|replies| replies.remove(id));
        // Whoever waited may have stopped.
        reply.map(|reply| drop(reply.send(result))).is_some()
    }

    /// The client will answer nothing any more: what waits for it fails.
    pub(super) fn on_gone(&self) {
        self.lock().replies = None;
    }

    fn unanswered(&self) -> MutexGuard<'_, HashMap<RequestId, Option<SessionId>>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reply to a request of pi. A request that is given up is cancelled.
pub(super) struct ClientReply {
    client: Arc<Client>,
    id: i64,
    reply: oneshot::Receiver<Result<Value, Error>>,
}

impl ClientReply {
    /// # Errors
    /// The client's own error, or that it is gone.
    pub(super) async fn wait(mut self) -> Result<Value, Error> {
        (&mut self.reply).await.unwrap_or_else(|_| Err(gone()))
    }

    /// As [`Self::wait`], for threads that may block.
    ///
    /// # Errors
    /// The client's own error, or that it is gone.
    pub(super) fn wait_blocking(mut self) -> Result<Value, Error> {
        let (_, unused) = oneshot::channel();
        let reply = std::mem::replace(&mut self.reply, unused);
        reply.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for ClientReply {
    fn drop(&mut self) {
        let is_open =
            self.client.lock().replies.as_mut().is_some_and(|replies| replies.remove(&self.id).is_some());
        if is_open {
            let mut line = String::new();
            let params = CancelRequestNotification::new(RequestId::Number(self.id));
            message::push_notification("$/cancel_request", &params, &mut line);
            self.client.send(Outgoing::Line(line));
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorCode::InternalError.into(), "the client has closed the connection")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::outgoing::AcpLines;
    use super::*;

    #[tokio::test]
    async fn requests_are_rejected_while_very_many_are_open_or_one_has_their_id() {
        let client = Client::new(LineOutput::start(AcpLines::default(), io::sink()).unwrap());
        let id = |nth: usize| RequestId::Number(nth as i64);
        let accepted = |nth: usize| client.accept(&id(nth)).map_err(|error| error.message);
        assert!((0..MAX_UNANSWERED).all(|nth| accepted(nth).is_ok()));
        let too_many = "1000 requests are open already; send it again when one has its response";
        assert_eq!(accepted(MAX_UNANSWERED), Err(too_many.to_owned()));
        assert_eq!(accepted(7), Err("a request with the id 7 is open already".to_owned()));
        client.respond(&id(3), Ok(Value::Null));
        assert_eq!(accepted(MAX_UNANSWERED), Ok(()));
    }

    #[tokio::test]
    async fn requests_that_a_lost_session_was_to_answer_fail_and_no_others() {
        let client = Client::new(LineOutput::start(AcpLines::default(), io::sink()).unwrap());
        let (lost, other) = (SessionId::new("lost"), SessionId::new("other"));
        for (id, session) in [(1, Some(&lost)), (2, Some(&other)), (3, None), (4, Some(&lost))] {
            client.accept(&RequestId::Number(id)).unwrap();
            if let Some(session) = session {
                client.assign(&RequestId::Number(id), session);
            }
        }
        client.on_session_lost(&lost, "it broke");
        let mut left: Vec<String> = client.unanswered().keys().map(ToString::to_string).collect();
        left.sort();
        assert_eq!(left, ["2", "3"]);
    }
}
