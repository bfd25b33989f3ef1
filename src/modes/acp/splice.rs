//! Lines of a replay that are made of the text of the session file.
//!
//! Most of a long session is the text of prompts, answers and results. Their JSON strings are
//! copied from the file's line to the client's as they stand, without decoding and encoding
//! them again. Entries of any other form are left to [`super::replay`].

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{
    Content, ContentChunk, MessageId, SessionId, SessionUpdate, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ai::{Api, Millis, StopReason, ThinkingLevel, UsageCost};
use crate::session::{EntryId, EntryKind};

use super::long_strings::LongStrings;
use super::message;
use super::tool_calls::text_block;

/// Stand for the id and the text of an update while its form is made.
const ID: &str = "\u{e000}id\u{e000}";
const TEXT: &str = "\u{e000}text\u{e000}";

/// The notifications of one session that have a text, without it.
pub(super) struct Forms {
    user: Form,
    answer: Form,
    thought: Form,
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
pub(super) enum Spliced {
    /// All that the client gets.
    Lines,
    /// The line of a result, if this call is open.
    Result { call_id: String },
}

impl Forms {
    /// `None` if the id of the session cannot be told from a gap.
    pub(super) fn new(session: &SessionId) -> Option<Self> {
        let chunk = || ContentChunk::new(text_block(TEXT)).message_id(MessageId::new(ID));
        let result = |status| {
            let content = vec![ToolCallContent::Content(Content::new(text_block(TEXT)))];
            let fields = ToolCallUpdateFields::new().status(status).content(content);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(ID, fields))
        };
        Some(Self {
            user: Form::of(session, SessionUpdate::UserMessageChunk(chunk()))?,
            answer: Form::of(session, SessionUpdate::AgentMessageChunk(chunk()))?,
            thought: Form::of(session, SessionUpdate::AgentThoughtChunk(chunk()))?,
            completed: Form::of(session, result(ToolCallStatus::Completed))?,
            failed: Form::of(session, result(ToolCallStatus::Failed))?,
        })
    }

    /// Appends what a client gets for the entry `id` of this kind, which is expected in `line`;
    /// `push_call` appends what it gets for a tool call. `None`, with `out` as it was, if that takes
    /// more than copying.
    pub(super) fn push(
        &self,
        (id, kind): (&EntryId, EntryKind),
        line: &str,
        out: &mut String,
        push_call: impl FnMut(ReadCall, &mut String),
    ) -> Option<Spliced> {
        match kind {
            EntryKind::User | EntryKind::ToolResult => self.push_texts(id, &LongStrings::take_out(line), out),
            EntryKind::Assistant => self.push_answer(id, &LongStrings::take_out(line), out, push_call),
            _ => None,
        }
    }

    fn push_texts(&self, id: &EntryId, line: &LongStrings<'_>, out: &mut String) -> Option<Spliced> {
        let Line { message, .. } = Line::<Message<'_>>::read(id, line.json())?;
        if !message.content.iter().all(Text::can_be_copied) || line.stands_for_long(&message.tool_call_id) {
            return None;
        }
        match (&*message.role, message.content.as_slice()) {
            ("user", texts) => {
                for text in texts {
                    self.user.push(id.as_str(), line.original(text.text.get()), out);
                }
                Some(Spliced::Lines)
            }
            ("toolResult", [text]) => {
                let form = if message.is_error { &self.failed } else { &self.completed };
                form.push(&message.tool_call_id, line.original(text.text.get()), out);
                Some(Spliced::Result { call_id: message.tool_call_id.into_owned() })
            }
            _ => None,
        }
    }

    fn push_answer(
        &self,
        id: &EntryId,
        line: &LongStrings<'_>,
        out: &mut String,
        mut push_call: impl FnMut(ReadCall, &mut String),
    ) -> Option<Spliced> {
        let Line { message, .. } = Line::<Answer<'_>>::read(id, line.json())?;
        if message.role != "assistant" {
            return None;
        }
        let blocks: Vec<AnswerPart<'_>> =
            message.content.into_iter().map(|block| block.into_part(line)).collect::<Option<_>>()?;
        for block in blocks {
            match block {
                AnswerPart::Text(text) => self.answer.push(id.as_str(), line.original(text.get()), out),
                AnswerPart::Thinking(text) => {
                    self.thought.push(id.as_str(), line.original(text.get()), out);
                }
                AnswerPart::Call(call) => push_call(call, out),
                AnswerPart::Nothing => {}
            }
        }
        Some(Spliced::Lines)
    }
}

/// A tool call of an answer.
pub(super) struct ReadCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// What a client gets for a block of an answer.
enum AnswerPart<'a> {
    Text(&'a RawValue),
    Thinking(&'a RawValue),
    Call(ReadCall),
    Nothing,
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

    /// Appends the line; `text` is the JSON of a string.
    fn push(&self, id: &str, text: &str, out: &mut String) {
        let id = message::to_line(&id);
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
struct Line<'a, M> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "parentId", default, borrow)]
    _parent: Option<Cow<'a, str>>,
    #[serde(rename = "timestamp", default, borrow)]
    _timestamp: Option<Cow<'a, str>>,
    message: M,
}

impl<'a, M: Deserialize<'a>> Line<'a, M> {
    /// The message of the entry `id`, if that is in `line`.
    fn read(id: &EntryId, line: &'a str) -> Option<Self> {
        let line: Self = serde_json::from_str(line).ok()?;
        (line.kind == "message" && line.id == id.as_str()).then_some(line)
    }
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
    fn can_be_copied(&self) -> bool {
        self.kind == "text" && is_plain(self.text)
    }
}

/// An answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a line with another type in one of these fields is no answer")]
struct Answer<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(default)]
    api: Api,
    #[serde(default, borrow)]
    provider: Cow<'a, str>,
    #[serde(default, borrow)]
    model: Cow<'a, str>,
    #[serde(default)]
    usage: Usage,
    stop_reason: StopReason,
    #[serde(default)]
    timestamp: Millis,
    #[serde(default, borrow)]
    error_message: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    response_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    response_model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    raw_stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    duration_ms: Option<u64>,
    #[serde(default, borrow)]
    provider_thinking_level: Option<Cow<'a, str>>,
    #[serde(default)]
    thinking_level: Option<ThinkingLevel>,
}

/// A block of an answer, with the fields of every kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Option<&'a RawValue>,
    #[serde(default, borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "textSignature", default, borrow)]
    _text_signature: Option<Cow<'a, str>>,
    #[serde(rename = "thinkingSignature", default, borrow)]
    _thinking_signature: Option<Cow<'a, str>>,
    #[serde(rename = "redacted", default)]
    _redacted: bool,
    #[serde(rename = "thoughtSignature", default, borrow)]
    _thought_signature: Option<Cow<'a, str>>,
    #[serde(rename = "argumentsError", default, borrow)]
    _arguments_error: Option<Cow<'a, str>>,
}

impl<'a> Block<'a> {
    /// `None` if the block, which is of `line`, is not as pi writes it.
    fn into_part(self, line: &LongStrings<'_>) -> Option<AnswerPart<'a>> {
        match &*self.kind {
            "text" => shown(self.text?).map(|text| text.map_or(AnswerPart::Nothing, AnswerPart::Text)),
            "thinking" => {
                shown(self.thinking?).map(|text| text.map_or(AnswerPart::Nothing, AnswerPart::Thinking))
            }
            "toolCall" => {
                let arguments = serde_json::from_str(&line.restored(self.arguments?.get())).ok()?;
                let (id, tool) = (self.id?, self.name?);
                if line.stands_for_long(&id) || line.stands_for_long(&tool) {
                    return None;
                }
                Some(AnswerPart::Call(ReadCall { id: id.into_owned(), tool: tool.into_owned(), arguments }))
            }
            _ => None,
        }
    }
}

/// Tokens and dollars.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Usage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    #[serde(rename = "cacheWrite1h")]
    cache_write_1h: Option<u64>,
    reasoning: Option<u64>,
    total_tokens: u64,
    cost: UsageCost,
}

/// A text of an answer, or nothing if it is empty; `None` if it cannot be copied.
fn shown(text: &RawValue) -> Option<Option<&RawValue>> {
    is_plain(text).then(|| Some(text).filter(|text| text.get() != "\"\""))
}

/// Whether the value is a string that every client can read. Half a surrogate pair is none;
/// pi replaces it.
fn is_plain(text: &RawValue) -> bool {
    let json = text.get().as_bytes();
    let mut escapes = memmem::find_iter(json, b"\\u");
    json.first() == Some(&b'"') && !escapes.any(|at| matches!(json.get(at + 2), Some(b'd' | b'D')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LINE: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":[{"type":"text","text":"tab\t \u001b ö"}],"timestamp":1}}"#;

    fn push(id: &str, kind: EntryKind, line: &str, out: &mut String) -> Option<Spliced> {
        let forms = Forms::new(&SessionId::new("s")).unwrap();
        let push_call = |call: ReadCall, out: &mut String| {
            out.extend([&*call.id, " ", &call.tool, " ", &call.arguments.to_string()]);
        };
        forms.push((&EntryId::new(id), kind), line, out, push_call)
    }

    #[test]
    fn text_of_a_prompt_is_copied_as_it_stands() {
        let mut out = String::from("before\n");
        assert_eq!(push("a", EntryKind::User, LINE, &mut out), Some(Spliced::Lines));
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
            assert_eq!((push(id, EntryKind::User, line, &mut out), out.as_str()), (None, "x"), "{line}");
        };
        check("b", LINE);
        check("a", &LINE[..LINE.len() - 1]);
        check("a", &LINE.replace("\\u001b", "\\ud83d"));
        check("a", &LINE.replace("\"type\":\"text\",", "\"type\":\"text\",\"imageUrl\":\"x\","));
        check("a", &LINE.replace("\"tab", "7,\"x\":\""));
        check("a", &LINE.replace("\"user\"", "\"assistant\""));
    }

    #[test]
    fn blocks_of_an_answer_stay_in_order() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm\n"},{"type":"text","text":""},{"type":"toolCall","id":"c","name":"ls","arguments":{"path":"."}},{"type":"text","text":"done"}],"stopReason":"toolUse","usage":{"input":1,"cost":{"total":0.5}},"timestamp":1}}"#;
        let mut out = String::new();
        assert_eq!(push("a", EntryKind::Assistant, line, &mut out), Some(Spliced::Lines));
        let kinds =
            ["agent_thought_chunk", r#""hm\n""#, r#"c ls {"path":"."}"#, "agent_message_chunk", "done"];
        let places: Vec<Option<usize>> = kinds.iter().map(|kind| out.find(kind)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {out}");
        for (good, bad) in [("\"input\":1", "\"input\":\"1\""), ("toolUse", "no reason"), ("\"hm\\n\"", "7")]
        {
            let (line, mut out) = (line.replace(good, bad), String::new());
            assert_eq!((push("a", EntryKind::Assistant, &line, &mut out), out.as_str()), (None, ""), "{bad}");
        }
    }

    #[test]
    fn session_whose_id_looks_like_a_gap_has_no_forms() {
        assert!(Forms::new(&SessionId::new(ID)).is_none());
        assert!(Forms::new(&SessionId::new("\" quoted \\ ")).is_some());
    }
}
