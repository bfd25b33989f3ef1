//! Lines of a replay that are made of the text of the session file.
//!
//! Most of a long session is the text of prompts and of results. Their JSON strings are
//! copied from the file's line to the client's as they stand, without decoding and encoding
//! them again. Entries of any other form are left to [`super::replay`].

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{
    Content, ContentChunk, MessageId, SessionId, SessionUpdate, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ai::Millis;
use crate::session::EntryId;

use super::message;
use super::tool_calls::text_block;

/// Stand for the id and the text of an update while its form is made.
const ID: &str = "\u{e000}id\u{e000}";
const TEXT: &str = "\u{e000}text\u{e000}";

/// The notifications of one session that have a text, without it.
pub(super) struct Forms {
    user: Form,
    completed: Form,
    failed: Form,
}

/// A notification with gaps for an id and a text.
struct Form {
    before: String,
    between: String,
    after: String,
    is_id_first: bool,
}

/// What was made of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spliced<'a> {
    /// All that the client gets.
    Lines,
    /// The line of a result, if this call is open.
    Result { call_id: Cow<'a, str> },
}

impl Forms {
    /// `None` if the id of the session cannot be told from a gap.
    pub(super) fn new(session: &SessionId) -> Option<Self> {
        let chunk = ContentChunk::new(text_block(TEXT)).message_id(MessageId::new(ID));
        let result = |status| {
            let content = vec![ToolCallContent::Content(Content::new(text_block(TEXT)))];
            let fields = ToolCallUpdateFields::new().status(status).content(content);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(ID, fields))
        };
        Some(Self {
            user: Form::of(session, SessionUpdate::UserMessageChunk(chunk))?,
            completed: Form::of(session, result(ToolCallStatus::Completed))?,
            failed: Form::of(session, result(ToolCallStatus::Failed))?,
        })
    }

    /// Appends what a client gets for the entry `id`, which is expected in `line`. `None`, with `out` as
    /// it was, if that takes more than copying.
    pub(super) fn push<'a>(&self, id: &EntryId, line: &'a str, out: &mut String) -> Option<Spliced<'a>> {
        let line: Line<'a> = serde_json::from_str(line).ok()?;
        let message = line.message;
        if line.kind != "message"
            || line.id != id.as_str()
            || !message.content.iter().all(Text::can_be_copied)
        {
            return None;
        }
        match (&*message.role, message.content.as_slice()) {
            ("user", texts) => {
                for text in texts {
                    self.user.push(&line.id, text.text, out);
                }
                Some(Spliced::Lines)
            }
            ("toolResult", [text]) => {
                let form = if message.is_error { &self.failed } else { &self.completed };
                form.push(&message.tool_call_id, text.text, out);
                Some(Spliced::Result { call_id: message.tool_call_id })
            }
            _ => None,
        }
    }
}

impl Form {
    fn of(session: &SessionId, update: SessionUpdate) -> Option<Self> {
        let line = message::update_lines(session, &[update]);
        let (id, text) = (only(&line, ID)?, only(&line, TEXT)?);
        let is_id_first = id.0 < text.0;
        let ((_, first_end), (second, second_end)) = if is_id_first { (id, text) } else { (text, id) };
        let first = id.0.min(text.0);
        Some(Self {
            before: line[..first].to_owned(),
            between: line[first_end..second].to_owned(),
            after: line[second_end..].to_owned(),
            is_id_first,
        })
    }

    fn push(&self, id: &str, text: &RawValue, out: &mut String) {
        let (id, text) = (message::to_line(&id), text.get());
        let (first, second) = if self.is_id_first { (id.as_str(), text) } else { (text, id.as_str()) };
        out.reserve(self.before.len() + first.len() + self.between.len() + second.len() + self.after.len());
        for part in [&self.before, first, &self.between, second, &self.after] {
            out.push_str(part);
        }
    }
}

/// Where `gap` is in `line` as a string of JSON; `None` unless it is there once.
fn only(line: &str, gap: &str) -> Option<(usize, usize)> {
    let gap = message::to_line(&gap);
    let at = line.find(&gap)?;
    (line.rfind(&gap) == Some(at)).then_some((at, at + gap.len()))
}

/// A line of the session file. Fields are as strict as those of the entry that would be
/// made of it, so that nothing is shown here that is not shown elsewhere.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "parentId", default, borrow)]
    _parent: Option<Cow<'a, str>>,
    #[serde(rename = "timestamp", default, borrow)]
    _timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Message<'a>,
}

/// A prompt or a result that has nothing but texts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Vec<Text<'a>>,
    #[serde(default, borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(rename = "toolName", default, borrow)]
    _tool_name: Cow<'a, str>,
    #[serde(default)]
    is_error: bool,
    #[serde(rename = "durationMs", default)]
    _duration_ms: Option<u64>,
    #[serde(rename = "timestamp", default)]
    _timestamp: Millis,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: &'a RawValue,
    #[serde(rename = "textSignature", default, borrow)]
    _signature: Option<Cow<'a, str>>,
}

impl Text<'_> {
    /// Whether the text is a string that every client can read. Half a surrogate pair is
    /// none; pi replaces it.
    fn can_be_copied(&self) -> bool {
        let json = self.text.get().as_bytes();
        let mut escapes = memmem::find_iter(json, b"\\u");
        self.kind == "text"
            && json.first() == Some(&b'"')
            && !escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LINE: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":[{"type":"text","text":"tab\t \u001b ö"}],"timestamp":1}}"#;

    fn forms() -> Forms {
        Forms::new(&SessionId::new("s")).unwrap()
    }

    #[test]
    fn text_of_a_prompt_is_copied_as_it_stands() {
        let mut out = String::from("before\n");
        assert_eq!(forms().push(&EntryId::new("a"), LINE, &mut out), Some(Spliced::Lines));
        let line = out.strip_prefix("before\n").unwrap();
        assert!(line.contains(r#""tab\t \u001b ö""#) && line.ends_with("}\n"), "{line}");
        let update = &serde_json::from_str::<Value>(line).unwrap()["params"]["update"];
        let expected = json!({
            "sessionUpdate": "user_message_chunk",
            "content": {"type": "text", "text": "tab\t \u{1b} ö"},
            "messageId": "a",
        });
        assert_eq!(*update, expected);
    }

    #[test]
    fn line_that_is_not_the_entry_or_not_plain_text_is_left_alone() {
        let check = |id: &str, line: &str| {
            let mut out = String::from("x");
            assert_eq!(
                (forms().push(&EntryId::new(id), line, &mut out), out.as_str()),
                (None, "x"),
                "{line}"
            );
        };
        check("b", LINE);
        check("a", &LINE[..LINE.len() - 1]);
        check("a", &LINE.replace("\\u001b", "\\ud83d"));
        check("a", &LINE.replace("\"type\":\"text\",", "\"type\":\"text\",\"imageUrl\":\"x\","));
        check("a", &LINE.replace("\"tab", "7,\"x\":\""));
        check("a", &LINE.replace("\"user\"", "\"assistant\""));
    }

    #[test]
    fn session_whose_id_looks_like_a_gap_has_no_forms() {
        assert!(Forms::new(&SessionId::new(ID)).is_none());
        assert!(Forms::new(&SessionId::new("\" quoted \\ ")).is_some());
    }
}
