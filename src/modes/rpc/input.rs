//! Commands from standard input: one JSON object per line.

use std::io::Read;

use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::util::nearest::nearest;

use super::super::wire::{LineInput, MAX_LINE_BYTES, read_lines};
use super::table::{RPC_COMMANDS, RpcCommand};

/// What the client sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Command(Request, RpcCommand),
    /// An answer to a question.
    Answer(Answer),
    /// Something else; the text is for the client.
    Rejected(Request, String),
}

/// What a response repeats of its command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) command: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) id: String,
    /// `None` if the user declined to answer.
    pub(super) value: Option<String>,
}

/// Reads commands from `source` on a thread of its own. The channel closes at the end of the
/// input.
///
/// # Errors
/// If the system cannot start a thread.
pub(super) fn read(source: impl Read + Send + 'static) -> std::io::Result<mpsc::Receiver<Input>> {
    read_lines(source, |line| match line {
        LineInput::Whole(bytes) => parse(&bytes),
        LineInput::TooLong => unreadable(format!("the line is longer than {} MiB", MAX_LINE_BYTES >> 20)),
        LineInput::Failed(why) => unreadable(why),
    })
}

fn parse(line: &[u8]) -> Input {
    let fields: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(fields) => fields,
        Err(error) => return unreadable(error.to_string()),
    };
    let id = fields.get("id").filter(|id| !id.is_null()).cloned();
    let Some(command) = fields.get("type").and_then(Value::as_str).map(str::to_owned) else {
        let request = Request { id, command: "parse".to_owned() };
        return Input::Rejected(request, "Failed to parse command: missing field `type`".to_owned());
    };
    if command == "extension_ui_response" {
        return answer(Request { id, command }, &fields);
    }
    let is_known = RPC_COMMANDS.iter().any(|row| row.name == command);
    let request = Request { id, command };
    if !is_known {
        let names: Vec<&str> = RPC_COMMANDS.iter().map(|row| row.name).collect();
        let meant = nearest(&request.command, &names);
        let tip = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let error = format!("Unknown command: {}{tip}", request.command);
        return Input::Rejected(request, error);
    }
    match RpcCommand::deserialize(Value::Object(fields)) {
        Ok(command) => Input::Command(request, command),
        Err(error) => {
            let row = RPC_COMMANDS.iter().find(|row| row.name == request.command);
            let fields = row.map(|row| row.fields).filter(|fields| !fields.is_empty()).unwrap_or("none");
            Input::Rejected(request, format!("{error}; its fields are: {fields}"))
        }
    }
}

/// `value` of a selection or an input, `confirmed` of a confirmation, or `cancelled`.
fn answer(request: Request, fields: &Map<String, Value>) -> Input {
    let Some(id) = fields.get("id").and_then(Value::as_str).map(str::to_owned) else {
        return Input::Rejected(request, "missing field `id` of the question".to_owned());
    };
    let cancelled = fields.get("cancelled").and_then(Value::as_bool).unwrap_or_default();
    let value = fields.get("value").and_then(Value::as_str).map(str::to_owned);
    if value.is_none() && !cancelled {
        return Input::Rejected(request, "missing field `value` or `cancelled`".to_owned());
    }
    Input::Answer(Answer { id, value: value.filter(|_| !cancelled) })
}

fn unreadable(problem: String) -> Input {
    let request = Request { id: None, command: "parse".to_owned() };
    Input::Rejected(request, format!("Failed to parse command: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(bytes: &[u8]) -> Vec<Input> {
        let mut inputs = read(std::io::Cursor::new(bytes.to_vec())).unwrap();
        std::iter::from_fn(move || inputs.blocking_recv()).collect()
    }

    #[track_caller]
    fn check_rejected(line: &str, command: &str, expected: &str) {
        let [Input::Rejected(request, error)] = &inputs(line.as_bytes())[..] else { panic!("{line}") };
        assert_eq!((request.command.as_str(), error.as_str()), (command, expected), "{line}");
    }

    #[test]
    fn lines_end_with_a_line_feed_alone() {
        let text = "{\"id\":\"1\",\"type\":\"prompt\",\"message\":\"a\u{2028}b\"}\r\n\n{\"type\":\"abort\"}";
        let request = |id: Option<&str>, command: &str| Request {
            id: id.map(Value::from),
            command: command.to_owned(),
        };
        let prompt = RpcCommand::Prompt {
            message: "a\u{2028}b".to_owned(),
            images: Vec::new(),
            streaming_behavior: None,
        };
        let expected = [
            Input::Command(request(Some("1"), "prompt"), prompt),
            Input::Command(request(None, "abort"), RpcCommand::Abort),
        ];
        assert_eq!(inputs(text.as_bytes()), expected);
    }

    #[test]
    fn bad_input_is_named_and_the_rest_goes_on() {
        check_rejected(
            "{\"type\":",
            "parse",
            "Failed to parse command: EOF while parsing a value at line 1 column 8",
        );
        check_rejected("\u{1}", "parse", "Failed to parse command: expected value at line 1 column 1");
        check_rejected(
            "[1]",
            "parse",
            "Failed to parse command: invalid type: sequence, expected a map at line 1 column 0",
        );
        check_rejected("{}", "parse", "Failed to parse command: missing field `type`");
        check_rejected(r#"{"type":"frobnicate"}"#, "frobnicate", "Unknown command: frobnicate");
        check_rejected(r#"{"type":"promt"}"#, "promt", "Unknown command: promt; did you mean prompt?");
        check_rejected(
            r#"{"type":"prompt"}"#,
            "prompt",
            "missing field `message`; its fields are: message, images?, streamingBehavior?",
        );
        check_rejected(
            r#"{"type":"extension_ui_response","id":"q1"}"#,
            "extension_ui_response",
            "missing field `value` or `cancelled`",
        );
        let mut long = vec![b'x'; (MAX_LINE_BYTES + 5) as usize];
        long.extend(b"\n{\"type\":\"abort\"}\n");
        let found = inputs(&long);
        assert_eq!(found[0], unreadable("the line is longer than 64 MiB".to_owned()));
        assert!(matches!(found[1..], [Input::Command(_, RpcCommand::Abort)]), "{found:?}");
    }

    #[test]
    fn every_row_of_the_table_is_a_command_with_its_fields() {
        for row in RPC_COMMANDS {
            let mut command = Map::from_iter([("type".to_owned(), row.name.into())]);
            for field in row.fields.split(", ").filter(|field| !field.is_empty() && !field.ends_with('?')) {
                let value = match field {
                    "enabled" => true.into(),
                    "patterns" => vec!["x"].into(),
                    "decision" => "accept".into(),
                    _ => "x".into(),
                };
                command.insert(field.to_owned(), value);
            }
            let line = Value::Object(command.clone()).to_string();
            let [Input::Command(request, _)] = &inputs(line.as_bytes())[..] else { panic!("{line}") };
            assert_eq!(request.command, row.name);
            for field in command.keys().filter(|field| *field != "type") {
                let mut without = command.clone();
                without.shift_remove(field);
                let line = Value::Object(without).to_string();
                assert!(matches!(&inputs(line.as_bytes())[..], [Input::Rejected(..)]), "{line}");
            }
        }
    }
}
