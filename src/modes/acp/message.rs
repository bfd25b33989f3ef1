//! JSON-RPC messages, one per line.
//!
//! A line is read as far as it can be: whoever sent it gets an error with the request's id
//! where there is one, and the next line is read.

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId, SessionId, SessionUpdate};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::wire::{LineInput, MAX_LINE_BYTES};
use super::methods::{self, AgentNotification, AgentRequest};

/// What the client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    Request {
        id: RequestId,
        request: Box<AgentRequest>,
    },
    Notification(AgentNotification),
    /// The answer to a request of pi.
    Response {
        id: RequestId,
        result: Result<Value, Error>,
    },
    /// A message with an id and nothing else: a response that ends the request of pi with this
    /// id, otherwise rejected.
    Incomplete {
        id: RequestId,
        error: Error,
    },
    /// Answered with the error.
    Rejected {
        id: RequestId,
        error: Error,
    },
    /// A notification that pi does not know or cannot read; nobody expects an answer.
    Ignored {
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Envelope<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// A field that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(super) fn parse(line: LineInput) -> Incoming {
    match line {
        LineInput::Whole(bytes) => parse_line(&bytes),
        LineInput::TooLong => {
            let limit = MAX_LINE_BYTES >> 20;
            rejected(RequestId::Null, ErrorCode::ParseError, format!("the line is longer than {limit} MiB"))
        }
        LineInput::Failed(why) => rejected(RequestId::Null, ErrorCode::InternalError, why),
    }
}

fn parse_line(bytes: &[u8]) -> Incoming {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return rejected(RequestId::Null, ErrorCode::ParseError, "the line is not UTF-8".to_owned());
    };
    let text = text.trim();
    if text.starts_with('[') && serde_json::from_str::<&RawValue>(text).is_ok() {
        let message = "batches are not supported; send one message per line".to_owned();
        return rejected(RequestId::Null, ErrorCode::InvalidRequest, message);
    }
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) => return unreadable(text, &error),
    };
    let id = envelope.id.map(|id| request_id(id.get())).transpose();
    let Ok(id) = id else {
        let message = "the id of a request is a string, an integer or null".to_owned();
        return rejected(RequestId::Null, ErrorCode::InvalidRequest, message);
    };
    let params = envelope.params.map_or("null", RawValue::get);
    match (envelope.method, id) {
        (Some(method), Some(id)) => match methods::parse_request(&method, params) {
            Ok(request) => Incoming::Request { id, request: Box::new(request) },
            Err(error) => Incoming::Rejected { id, error },
        },
        (Some(method), None) => match methods::parse_notification(&method, params) {
            Ok(notification) => Incoming::Notification(notification),
            Err(why) => Incoming::Ignored { why },
        },
        (None, Some(id)) => match (envelope.result, envelope.error) {
            (_, Some(error)) => Incoming::Response { id, result: Err(remote_error(error)) },
            (Some(result), None) => {
                let result = serde_json::from_str(result.get())
                    .map_err(|error| Error::new(ErrorCode::ParseError.into(), error.to_string()));
                Incoming::Response { id, result }
            }
            (None, None) => {
                let message = "a message needs a method, a result or an error".to_owned();
                Incoming::Incomplete { id, error: Error::new(ErrorCode::InvalidRequest.into(), message) }
            }
        },
        (None, None) => {
            let message = "a message needs a method, or an id with a result or an error".to_owned();
            rejected(RequestId::Null, ErrorCode::InvalidRequest, message)
        }
    }
}

/// The id of a request. Some clients write whole numbers with a fraction: `906.0`.
fn request_id(id: &str) -> Result<RequestId, serde_json::Error> {
    // Above, not all integers are different.
    const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
    serde_json::from_str(id).or_else(|error| match id.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < MAX_WHOLE => {
            Ok(RequestId::Number(number as i64))
        }
        Ok(_) | Err(_) => Err(error),
    })
}

/// The error that the client answered with. One in another form is shown as it is.
fn remote_error(error: &RawValue) -> Error {
    serde_json::from_str(error.get())
        .unwrap_or_else(|_| Error::new(ErrorCode::InternalError.into(), error.get().to_owned()))
}

fn unreadable(text: &str, error: &serde_json::Error) -> Incoming {
    // JSON of another shape is a wrong request, anything else is no JSON.
    let code = match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => ErrorCode::InvalidRequest,
        Err(_) => ErrorCode::ParseError,
    };
    rejected(RequestId::Null, code, format!("the line is not a JSON-RPC message: {error}"))
}

fn rejected(id: RequestId, code: ErrorCode, message: String) -> Incoming {
    Incoming::Rejected { id, error: Error::new(code.into(), message) }
}

/// A response as a line.
pub(super) fn response<T: Serialize>(id: &RequestId, result: Result<&T, &Error>) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a T>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Error>,
    }
    to_line(&Line { jsonrpc: "2.0", id, result: result.ok(), error: result.err() })
}

/// A request as a line.
pub(super) fn request<T: Serialize>(id: i64, method: &str, params: &T) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        jsonrpc: &'static str,
        id: i64,
        method: &'a str,
        params: &'a T,
    }
    to_line(&Line { jsonrpc: "2.0", id, method, params })
}

/// Appends a notification as a line, without its break.
pub(super) fn push_notification<T: Serialize>(method: &str, params: &T, out: &mut String) {
    out.push_str(&to_line(&Notification { jsonrpc: "2.0", method, params }));
}

/// The notifications of updates of a session, each with a line break.
pub(super) fn update_lines(session: &SessionId, updates: &[SessionUpdate]) -> String {
    /// As `SessionNotification`, of borrowed parts.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        session_id: &'a SessionId,
        update: &'a SessionUpdate,
    }
    let mut lines = Vec::new();
    for update in updates {
        let params = &Params { session_id: session, update };
        let line = Notification { jsonrpc: "2.0", method: "session/update", params };
        // They have string keys and no failing serializers.
        serde_json::to_writer(&mut lines, &line).unwrap_or_default();
        lines.push(b'\n');
    }
    // JSON is written as UTF-8.
    String::from_utf8(lines).unwrap_or_default()
}

#[derive(Serialize)]
struct Notification<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a T,
}

/// JSON on one line.
pub(super) fn to_line<T: Serialize>(message: &T) -> String {
    // Messages have string keys and no failing serializers.
    serde_json::to_string(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_rejected(line: &str, id: RequestId, code: i32, message: &str) {
        let (Incoming::Rejected { id: found, error } | Incoming::Incomplete { id: found, error }) =
            parse_line(line.as_bytes())
        else {
            panic!("{line} is accepted")
        };
        assert_eq!((found, error.code.into(), error.message.as_str()), (id, code, message), "{line}");
    }

    #[test]
    fn message_with_an_id_alone_may_be_a_response() {
        let Incoming::Incomplete { id, error } = parse_line(br#"{"jsonrpc":"2.0","id":3}"#) else {
            panic!("an incomplete message")
        };
        assert_eq!((id, i32::from(error.code)), (RequestId::Number(3), -32600));
    }

    #[test]
    fn bad_line_gets_an_error_with_the_id_it_has() {
        let null = || RequestId::Null;
        check_rejected(
            "{\"id\":",
            null(),
            -32700,
            "the line is not a JSON-RPC message: EOF while parsing a value at line 1 column 6",
        );
        check_rejected("[]", null(), -32600, "batches are not supported; send one message per line");
        check_rejected(
            "7",
            null(),
            -32600,
            "the line is not a JSON-RPC message: invalid type: integer `7`, expected an object at line 1 column 1",
        );
        check_rejected("{}", null(), -32600, "a message needs a method, or an id with a result or an error");
        check_rejected(
            r#"{"id":1.5,"method":"initialize"}"#,
            null(),
            -32600,
            "the id of a request is a string, an integer or null",
        );
        check_rejected(
            r#"{"id":"a"}"#,
            RequestId::Str("a".to_owned()),
            -32600,
            "a message needs a method, a result or an error",
        );
        check_rejected(
            r#"{"id":null,"method":"session/frobnicate"}"#,
            null(),
            -32601,
            "there is no method session/frobnicate",
        );
        check_rejected(
            r#"{"id":3,"method":"session/cancel"}"#,
            RequestId::Number(3),
            -32601,
            "session/cancel is a notification; send it without an id",
        );
        check_rejected(
            r#"{"id":4,"method":"session/prompt","params":{"prompt":[]}}"#,
            RequestId::Number(4),
            -32602,
            "session/prompt: missing field `sessionId`",
        );
        let Incoming::Rejected { error, .. } = parse_line(b"{\"id\":1,\xff}") else { panic!("accepted") };
        assert_eq!(error.message, "the line is not UTF-8");
        let Incoming::Rejected { error, .. } = parse(LineInput::TooLong) else { panic!("accepted") };
        assert_eq!(error.message, "the line is longer than 64 MiB");
    }

    #[test]
    fn unknown_notifications_are_ignored() {
        for line in [r#"{"method":"_vendor/x"}"#, r#"{"method":"session/cancel","params":{}}"#] {
            assert!(matches!(parse_line(line.as_bytes()), Incoming::Ignored { .. }), "{line}");
        }
    }

    #[test]
    fn responses_are_told_apart_even_if_they_are_null() {
        let Incoming::Response { id, result } = parse_line(br#"{"jsonrpc":"2.0","id":7,"result":null}"#)
        else {
            panic!("no response")
        };
        assert_eq!((id, result), (RequestId::Number(7), Ok(Value::Null)));
        let Incoming::Response { result, .. } =
            parse_line(br#"{"id":8,"error":{"code":-32000,"message":"sign in"}}"#)
        else {
            panic!("no response")
        };
        assert_eq!(result.unwrap_err().message, "sign in");
    }

    #[test]
    fn whole_number_with_a_fraction_is_an_id() {
        let check = |id: &str, expected: Option<i64>| {
            assert_eq!(request_id(id).ok(), expected.map(RequestId::Number), "{id}");
        };
        check("906.0", Some(906));
        check("-3.0", Some(-3));
        check("1e3", Some(1_000));
        check("7", Some(7));
        check("0.5", None);
        check("1e300", None);
        check("true", None);
        let line = "{\"jsonrpc\":\"2.0\",\"id\":906.0,\"method\":\"x\"}";
        let Incoming::Rejected { id, .. } = parse(LineInput::Whole(line.into())) else { panic!() };
        assert_eq!(id, RequestId::Number(906));
    }

    #[test]
    fn responses_repeat_the_id_as_it_came() {
        let check = |id: RequestId, expected: &str| {
            assert_eq!(response(&id, Ok(&1)), format!(r#"{{"jsonrpc":"2.0","id":{expected},"result":1}}"#));
        };
        check(RequestId::Number(-3), "-3");
        check(RequestId::Str("x".to_owned()), "\"x\"");
        check(RequestId::Null, "null");
    }
}
