//! Requests over a WebSocket:
//! <https://developers.openai.com/api/docs/guides/websocket-mode>.
//!
//! A request is the body of an HTTP request as one message, and the messages of the service
//! are the events of its stream. On one connection the service remembers its last answer: a
//! request that names it sends only what is new. [`Chain`] does so if the conversation
//! begins with the last request and the answer to it, and nothing else of the
//! request differs; otherwise it sends the whole request. Pure: the caller has the connection.

use ring::digest::{Context, SHA256};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::decode::stream_error;
use crate::ai::failure::{ErrorBody, FailureClass, RequestError};

/// Members of a body that belong to HTTP.
const NOT_SENT: [&str; 2] = ["stream", "background"];
const INPUT: &str = "input";
const PREVIOUS: &str = "previous_response_id";

/// What the service remembers of a connection.
#[derive(Debug, Default)]
pub(in crate::ai) struct Chain {
    /// The last answer, if it was complete.
    last: Option<Link>,
    /// The request that is being answered.
    sent: Option<Fingerprint>,
    /// The finished items of the answer to it.
    output: Vec<Value>,
    is_answered: bool,
}

#[derive(Debug)]
struct Link {
    response_id: String,
    sent: Fingerprint,
    output: Vec<Value>,
}

/// Tells whether a request is the same or begins with it, in little memory.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint {
    n_items: usize,
    input: [u8; 32],
    /// Everything but the input.
    rest: [u8; 32],
}

/// A request as a message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::ai) struct Frame {
    pub(in crate::ai) text: String,
    /// Whether it has only what is new.
    pub(in crate::ai) is_continued: bool,
}

impl Chain {
    /// The message for the request with this body.
    ///
    /// # Errors
    /// If the body is no JSON object.
    pub(in crate::ai) fn frame(&mut self, body: &[u8]) -> serde_json::Result<Frame> {
        let body = Body::parse(body)?;
        let last = self.last.take();
        self.output.clear();
        self.is_answered = false;
        self.sent = body.fingerprint();
        let continued = last.and_then(|link| Some((link.new_items(&body)?, link.response_id)));
        let (input, previous) = match &continued {
            Some((input, id)) => (Some(*input), Some(id.as_str())),
            None => (body.input.as_deref(), None),
        };
        Ok(Frame { text: body.written(input, previous)?, is_continued: previous.is_some() })
    }

    /// Notes what an event of the answer says about it.
    pub(in crate::ai) fn note(&mut self, event: &str) {
        // Nearly all events are small pieces of text, which need not be parsed twice.
        let ends =
            ["response.output_item.done", "response.completed", "response.done", "response.incomplete"];
        if !ends.iter().any(|kind| event.contains(kind)) {
            return;
        }
        let Ok(Value::Object(mut event)) = serde_json::from_str::<Value>(event) else { return };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.output_item.done" => self.output.extend(event.remove("item")),
            "response.completed" | "response.done" => {
                self.is_answered = true;
                let response = event.get("response");
                let text = |key: &str| response?.get(key)?.as_str();
                let is_whole = text("status").is_none_or(|status| status == "completed");
                if let (Some(id), Some(sent), true) = (text("id"), self.sent.take(), is_whole) {
                    let output = std::mem::take(&mut self.output);
                    self.last = Some(Link { response_id: id.to_owned(), sent, output });
                }
            }
            "response.incomplete" => self.is_answered = true,
            _ => {}
        }
    }

    /// Whether the last request has been answered, so that the connection can take another.
    pub(in crate::ai) fn is_answered(&self) -> bool {
        self.is_answered
    }
}

impl Link {
    /// What `body` has beyond the request and its answer; `None` if it is another request.
    fn new_items<'a, 'b>(&self, body: &'b Body<'a>) -> Option<&'b [&'a RawValue]> {
        let input = body.input.as_deref()?;
        let (before, after) = input.split_at_checked(self.sent.n_items)?;
        let (answer, new) = after.split_at_checked(self.output.len())?;
        let is_next = !new.is_empty()
            && !body.has(PREVIOUS)
            && body.digest_of_rest() == self.sent.rest
            && digest_of(before.iter().map(|item| item.get())) == self.sent.input
            && answer.iter().zip(&self.output).all(|(ours, theirs)| is_same_item(ours, theirs));
        is_next.then_some(new)
    }
}

/// The members of a request in their order.
struct Body<'a> {
    members: Vec<(String, &'a RawValue)>,
    /// `None` if it is no list.
    input: Option<Vec<&'a RawValue>>,
}

impl<'a> Body<'a> {
    fn parse(body: &'a [u8]) -> serde_json::Result<Self> {
        let Members(mut members) = serde_json::from_slice(body)?;
        members.retain(|(name, _)| !NOT_SENT.contains(&name.as_str()));
        let input = members.iter().find(|(name, _)| name == INPUT);
        let input = input.and_then(|(_, list)| serde_json::from_str(list.get()).ok());
        Ok(Self { members, input })
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(known, _)| known == name)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        let input = self.input.as_deref()?;
        let digest = digest_of(input.iter().map(|item| item.get()));
        Some(Fingerprint { n_items: input.len(), input: digest, rest: self.digest_of_rest() })
    }

    fn digest_of_rest(&self) -> [u8; 32] {
        let rest = self.members.iter().filter(|(name, _)| name != INPUT);
        digest_of(rest.flat_map(|(name, value)| [name.as_str(), value.get()]))
    }

    /// The message with this input; `None` is the body's own, of whatever kind.
    fn written(&self, input: Option<&[&RawValue]>, previous: Option<&str>) -> serde_json::Result<String> {
        let mut text = "{\"type\":\"response.create\"".to_owned();
        let mut member = |name: &str, value: &str| -> serde_json::Result<()> {
            text.push(',');
            text.push_str(&serde_json::to_string(name)?);
            text.push(':');
            text.push_str(value);
            Ok(())
        };
        if let Some(id) = previous {
            member(PREVIOUS, &serde_json::to_string(id)?)?;
        }
        for (name, value) in self.members.iter().filter(|(name, _)| name != "type") {
            match input {
                Some(input) if name == INPUT => member(name, &serde_json::to_string(input)?)?,
                _ => member(name, value.get())?,
            }
        }
        text.push('}');
        Ok(text)
    }
}

/// `serde_json::Map` would parse the values.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Distinguishes every list of texts from every other.
fn digest_of<'a>(texts: impl Iterator<Item = &'a str>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&text.len().to_le_bytes());
        context.update(text.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Whether an item that pi would send back is the item that the service made. What pi does not
/// keep of it does not count; what it keeps must be unchanged.
fn is_same_item(ours: &RawValue, theirs: &Value) -> bool {
    let Ok(ours) = serde_json::from_str::<Map<String, Value>>(ours.get()) else { return false };
    let Some(theirs) = theirs.as_object() else { return false };
    let (our_type, kind) = (text(&ours, "type"), text(theirs, "type"));
    if our_type != kind {
        return false;
    }
    let same = |key: &str| text(&ours, key) == text(theirs, key);
    // An id that cannot be sent is left out.
    let same_id = || text(&ours, "id").is_none() || same("id");
    match kind {
        Some("reasoning") => {
            let mut kept = theirs.iter().filter(|(_, value)| !value.is_null());
            kept.all(|(key, value)| ours.get(key) == Some(value))
        }
        Some("message") => {
            same("role")
                && same("phase")
                && same_id()
                && matches!((said(&ours), said(theirs)), (Some(ours), Some(theirs)) if ours == theirs)
        }
        Some("function_call") => {
            same("call_id") && same("name") && same_id() && arguments(&ours) == arguments(theirs)
        }
        Some("custom_tool_call") => same("call_id") && same("name") && same_id() && same("input"),
        _ => false,
    }
}

fn text<'a>(item: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str)
}

/// The text of a message that is nothing but text.
fn said(item: &Map<String, Value>) -> Option<String> {
    let parts = item.get("content")?.as_array()?;
    let text = |part: &Value| match part.get("type")?.as_str()? {
        "output_text" => part.get("text")?.as_str().map(str::to_owned),
        _ => None,
    };
    parts.iter().map(text).collect()
}

/// `None` if they are no JSON, which no call is sent back with.
fn arguments(item: &Map<String, Value>) -> Option<Value> {
    match item.get("arguments")? {
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    }
}

/// Whether `event` is about something else than an answer, such as the limits of the account.
pub(in crate::ai) fn is_aside(event: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Event {
        r#type: String,
    }
    // Nearly all events, which need not be parsed for this.
    let may_be_of_answer = event.starts_with("{\"type\":\"response.");
    !may_be_of_answer
        && serde_json::from_str::<Event>(event)
            .is_ok_and(|event| event.r#type != "error" && !event.r#type.starts_with("response."))
}

/// The first message in answer to a request, if it is an error.
#[derive(Debug)]
pub(in crate::ai) struct SocketError {
    pub(in crate::ai) error: RequestError,
    code: Option<String>,
}

impl SocketError {
    /// The error in `event`; `None` for every other event.
    pub(in crate::ai) fn of(event: &str) -> Option<Self> {
        // The first event of an answer repeats the request, with all its instructions.
        if !event.contains("\"error\"") {
            return None;
        }
        let value: Value = serde_json::from_str(event).ok()?;
        let is_error = match value.get("type").and_then(Value::as_str) {
            Some(kind) => kind == "error",
            None => value.get("error").is_some_and(|error| !error.is_null()),
        };
        if !is_error {
            return None;
        }
        let status = ["status", "status_code"].iter().find_map(|key| value.get(*key)?.as_u64());
        let status = status.and_then(|status| u16::try_from(status).ok());
        let body = ErrorBody::from_json(&value);
        let code = body.as_ref().and_then(|body| body.code.clone());
        let error = match (body, status) {
            (Some(body), Some(status)) => body.into_error(Some(status)),
            _ => stream_error(event),
        };
        Some(Self { error, code })
    }

    /// The connection is too old; a new one may have the answer.
    pub(in crate::ai) fn is_connection_limit(&self) -> bool {
        self.code.as_deref() == Some("websocket_connection_limit_reached")
    }

    /// A request that named an earlier answer may succeed as a whole.
    pub(in crate::ai) fn is_about_the_request(&self) -> bool {
        matches!(
            self.error.failure.class,
            FailureClass::InvalidRequest | FailureClass::NotFound | FailureClass::Unknown
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(input: Value) -> Value {
        json!({ "model": "m", "instructions": "Be brief.", "input": input, "stream": true, "store": false })
    }

    fn frame(chain: &mut Chain, body: &Value) -> (Value, bool) {
        let frame = chain.frame(body.to_string().as_bytes()).unwrap();
        (serde_json::from_str(&frame.text).unwrap(), frame.is_continued)
    }

    fn said(text: &str) -> Value {
        json!({ "role": "user", "content": [{ "type": "input_text", "text": text }] })
    }

    /// The items of an answer as the service sends them, and as pi sends them back.
    fn answer() -> [(Value, Value); 3] {
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        let mut theirs = reasoning.clone();
        theirs["status"] = Value::Null;
        let text = |extra: bool| {
            let mut part = json!({ "type": "output_text", "text": "I look.", "annotations": [] });
            if extra {
                part["logprobs"] = json!([]);
            }
            json!({ "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                "content": [part] })
        };
        let call = |arguments: &str| {
            json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read",
                "arguments": arguments })
        };
        [
            (theirs, reasoning),
            (text(true), text(false)),
            (call("{ \"path\": \"a\" }"), call("{\"path\":\"a\"}")),
        ]
    }

    fn answered(chain: &mut Chain, id: &str, items: impl IntoIterator<Item = Value>) {
        for item in items {
            chain.note(&json!({ "type": "response.output_item.done", "item": item }).to_string());
        }
        let response = json!({ "id": id, "status": "completed", "output": [] });
        chain.note(&json!({ "type": "response.completed", "response": response }).to_string());
    }

    /// The second request after the first one was answered.
    #[track_caller]
    fn check(change: impl Fn(&mut Value), is_continued: bool) {
        let mut chain = Chain::default();
        frame(&mut chain, &body(json!([said("hi")])));
        answered(&mut chain, "resp_1", answer().map(|(theirs, _)| theirs));
        let [reasoning, text, call] = answer().map(|(_, ours)| ours);
        let result = json!({ "type": "function_call_output", "call_id": "call_1", "output": "A" });
        let mut next = body(json!([said("hi"), reasoning, text, call, result]));
        change(&mut next);
        let (frame, continued) = frame(&mut chain, &next);
        assert_eq!(continued, is_continued);
        if continued {
            assert_eq!(
                (&frame["previous_response_id"], &frame["input"]),
                (&json!("resp_1"), &json!([result]))
            );
        } else {
            assert_eq!((frame.get("previous_response_id"), &frame["input"]), (None, &next["input"]));
        }
    }

    #[test]
    fn request_is_the_body_without_what_belongs_to_http() {
        let (first, is_continued) = frame(&mut Chain::default(), &body(json!([said("hi")])));
        let expected = json!({ "type": "response.create", "model": "m", "instructions": "Be brief.",
            "input": [said("hi")], "store": false });
        assert_eq!((first, is_continued), (expected, false));
    }

    #[test]
    fn next_request_has_only_what_is_new() {
        check(|_| {}, true);
    }

    #[test]
    fn any_other_change_sends_the_whole_request() {
        check(|next| next["instructions"] = json!("Be verbose."), false);
        check(|next| next["tools"] = json!([]), false);
        check(|next| next["input"][0] = said("hello"), false);
        check(|next| next["input"][1]["encrypted_content"] = json!("y"), false);
        check(|next| next["input"][2]["content"][0]["text"] = json!("I do not."), false);
        check(|next| next["input"][2]["phase"] = json!("commentary"), false);
        check(|next| next["input"][2]["id"] = json!("msg_2"), false);
        check(|next| next["input"][3]["arguments"] = json!("{\"path\":\"b\"}"), false);
        check(|next| drop(next["input"].as_array_mut().unwrap().remove(1)), false);
        check(|next| drop(next["input"].as_array_mut().unwrap().pop()), false);
        check(|next| next["input"] = json!("hi"), false);
    }

    #[test]
    fn id_that_cannot_be_sent_changes_nothing() {
        let without_id = |next: &mut Value| drop(next["input"][2].as_object_mut().unwrap().remove("id"));
        check(without_id, true);
    }

    #[test]
    fn answer_that_failed_or_stopped_early_is_not_continued() {
        let end = |event: Value, is_answered: bool| {
            let mut chain = Chain::default();
            frame(&mut chain, &body(json!([said("hi")])));
            chain.note(&event.to_string());
            assert_eq!(chain.is_answered(), is_answered, "{event}");
            let (_, is_continued) = frame(&mut chain, &body(json!([said("hi"), said("go on")])));
            assert!(!is_continued && !chain.is_answered(), "{event}");
        };
        end(json!({ "type": "response.incomplete", "response": { "id": "r" } }), true);
        end(json!({ "type": "response.done", "response": { "id": "r", "status": "failed" } }), true);
        end(json!({ "type": "response.failed", "response": { "id": "r" } }), false);
        end(json!({ "type": "response.output_text.delta", "delta": "response.completed" }), false);
    }

    #[test]
    fn asides_are_told_from_answers_and_errors() {
        assert!(is_aside(r#"{"type":"codex.rate_limits","plan_type":"plus"}"#));
        assert!(!is_aside(r#"{"type":"response.created"}"#));
        assert!(!is_aside(r#"{"sequence_number":0,"type":"response.created"}"#));
        assert!(!is_aside(&error_event(400, "x").to_string()));
        assert!(!is_aside(r#"{"error":{"message":"m"}}"#));
        assert!(!is_aside("no JSON"));
    }

    fn error_event(status: u16, code: &str) -> Value {
        json!({ "type": "error", "status": status, "error": { "code": code, "message": "m" } })
    }

    #[test]
    fn errors_have_the_class_that_they_have_over_http() {
        let check = |event: Value, expected: Option<(FailureClass, bool, bool)>| {
            let found = SocketError::of(&event.to_string()).map(|error| {
                let class = error.error.failure.class;
                (class, error.is_connection_limit(), error.is_about_the_request())
            });
            assert_eq!(found, expected, "{event}");
        };
        let error = error_event;
        let not_found = error(400, "previous_response_not_found");
        check(not_found, Some((FailureClass::NotFound, false, true)));
        let limit = error(400, "websocket_connection_limit_reached");
        check(limit, Some((FailureClass::Network, true, false)));
        check(error(429, "rate_limit_exceeded"), Some((FailureClass::RateLimit, false, false)));
        check(error(401, "invalid_api_key"), Some((FailureClass::Auth, false, false)));
        let created = json!({ "type": "response.created", "response": { "id": "r", "error": null } });
        check(created, None);
    }
}
