//! Entries as JSON for the page: a line of the index, and a body made of blocks.
//!
//! `page.js` has a case for each kind of block. Strings are text, whatever they contain.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::ai::{
    AssistantBlock, AssistantMessage, ContentBlock, Image, Message, ToolCall, ToolResultMessage, UserContent,
};
use crate::session::{BashExecution, Entry, EntryBody, SessionMessage};

use super::super::facts;
use super::document::{nodes, safe_address};
use super::highlight::Highlighter;

/// Longer texts, in bytes, are not read as Markdown.
const MAX_MARKDOWN_BYTES: usize = 256 * 1024;
/// Calls that are remembered until their results come.
const MAX_CALLS: usize = 1_000;
const PREVIEW_CHARS: usize = 90;

/// Makes rows of entries, in file order.
pub(super) struct Rows {
    highlighter: Highlighter,
    /// Id of a call, and the language of the file it is about.
    calls: VecDeque<(String, String)>,
}

/// A part of the page, for one entry.
pub(super) struct Row {
    /// A key of `KINDS` in `page.js`.
    pub(super) kind: &'static str,
    pub(super) preview: String,
    pub(super) body: Value,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { highlighter: Highlighter::new(), calls: VecDeque::new() }
    }

    /// An entry that cannot be read.
    pub(super) fn unreadable() -> Row {
        let text = "This entry could not be read.";
        Row { kind: "note", preview: text.to_owned(), body: json!({ "b": [["err", text]] }) }
    }

    pub(super) fn row(&mut self, entry: &Entry) -> Row {
        let (kind, role, mut about, blocks) = self.parts(&entry.body);
        let preview = match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => {
                preview(message, &entry.body)
            }
            body => {
                let text = body.preview(PREVIEW_CHARS);
                if text.is_empty() { role.clone() } else { text }
            }
        };
        about.insert(0, facts::time(&entry.timestamp));
        about.retain(|fact| !fact.is_empty());
        let body = json!({ "r": role, "f": about.join(" · "), "b": blocks });
        Row { kind, preview, body }
    }

    fn parts(&mut self, body: &EntryBody) -> (&'static str, String, Vec<String>, Vec<Value>) {
        let note = |role: &str, text: String| ("note", role.to_owned(), vec![], vec![json!(["p", text])]);
        match body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => self.message(message),
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. } => bash(execution),
            EntryBody::Message { message: SessionMessage::Unknown(message), .. } => {
                ("custom", "Message".to_owned(), vec![], vec![raw("message", message)])
            }
            EntryBody::ModelChange(change) => {
                note("Model", format!("{}/{}", change.provider, change.model_id))
            }
            EntryBody::ThinkingLevelChange(change) => note("Thinking level", change.thinking_level.clone()),
            EntryBody::Usage(usage) => note("Usage", facts::usage(&usage.usage).join(" · ")),
            EntryBody::Compaction(compaction) => {
                let about = format!("replaces {} tokens", facts::tokens(compaction.tokens_before));
                let cost = compaction.usage.as_ref().map(facts::usage).unwrap_or_default();
                let about = [vec![about], cost].concat();
                ("summary", "Compaction".to_owned(), about, self.markdown(&compaction.summary))
            }
            EntryBody::BranchSummary(branch) => {
                let cost = branch.usage.as_ref().map(facts::usage).unwrap_or_default();
                ("summary", "Summary of a branch".to_owned(), cost, self.markdown(&branch.summary))
            }
            EntryBody::ContextEdit(edit) => {
                let what = if edit.replacement.is_some() { "replaced" } else { "hidden" };
                note("Context", format!("entry {} is {what} for the model", edit.target_id))
            }
            EntryBody::Custom(state) => {
                let role = format!("State of {}", state.custom_type);
                ("note", role, vec![], vec![raw("state", &state.data)])
            }
            EntryBody::CustomMessage(message) => {
                let blocks = message.content.as_ref().map(|content| self.input(content)).unwrap_or_default();
                ("custom", message.custom_type.clone(), vec![], blocks)
            }
            EntryBody::Label(label) => {
                note("Label", format!("{} for {}", label.label.as_deref().unwrap_or("none"), label.target_id))
            }
            EntryBody::SessionInfo(info) => note("Name", info.name.clone()),
            EntryBody::Unknown { kind, fields } => {
                ("note", kind.clone(), vec![], vec![raw("fields", &Value::Object(fields.clone()))])
            }
        }
    }

    fn message(&mut self, message: &Message) -> (&'static str, String, Vec<String>, Vec<Value>) {
        match message {
            Message::User(user) => ("user", "You".to_owned(), vec![], self.input(&user.content)),
            Message::Assistant(answer) => {
                ("assistant", "Answer".to_owned(), facts::answer(answer), self.answer(answer))
            }
            Message::ToolResult(result) => {
                let duration = result.duration_ms.map(facts::duration).into_iter().collect();
                ("tool", "Result".to_owned(), duration, self.result(result))
            }
            Message::System(_) => {
                let text = facts::system_text(message);
                let blocks = vec![json!(["text", text])];
                let size = format!("{} characters", text.chars().count());
                let system = fold("system", "System prompt and tools", &size, blocks, false);
                ("system", "System".to_owned(), vec![], vec![system])
            }
        }
    }

    fn input(&mut self, content: &UserContent) -> Vec<Value> {
        match content {
            UserContent::Text(text) => vec![json!(["text", text])],
            UserContent::Blocks(blocks) => blocks.iter().map(input_block).collect(),
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) -> Vec<Value> {
        let mut blocks = Vec::new();
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => blocks.extend(self.markdown(&text.text)),
                AssistantBlock::Thinking(thinking) if thinking.redacted || thinking.thinking.is_empty() => {}
                AssistantBlock::Thinking(thinking) => {
                    let about = facts::first_line(&thinking.thinking);
                    let text = json!(["text", thinking.thinking]);
                    blocks.push(fold("thinking", "Thinking", &about, vec![text], false));
                }
                AssistantBlock::ToolCall(call) => blocks.push(self.call(call)),
                AssistantBlock::Unknown(value) => blocks.push(raw("block", value)),
            }
        }
        if let Some(error) = facts::failure(answer) {
            blocks.push(json!(["err", error]));
        }
        blocks
    }

    fn call(&mut self, call: &ToolCall) -> Value {
        let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
        let path = argument("path").unwrap_or_default();
        let language = language_of(path).to_owned();
        let mut blocks = Vec::new();
        if let Some(command) = argument("command") {
            blocks.push(self.code("sh", command));
        } else if let (Some(content), false) = (argument("content"), path.is_empty()) {
            blocks.push(json!(["p", path]));
            blocks.push(self.code(&language, content));
        } else {
            let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
            blocks.push(self.code("json", &arguments));
        }
        if let Some(error) = &call.arguments_error {
            blocks.push(json!(["err", error]));
        }
        if self.calls.len() == MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back((call.id.clone(), language));
        fold("tool", &call.name, &facts::call(call), blocks, call.arguments_error.is_some())
    }

    fn result(&mut self, result: &ToolResultMessage) -> Vec<Value> {
        let at = self.calls.iter().rposition(|(id, _)| *id == result.tool_call_id);
        let language = at.and_then(|at| self.calls.remove(at)).map(|(_, language)| language);
        let diff = result.details.as_ref().and_then(|details| details.get("diff")?.as_str());
        let mut blocks: Vec<Value> = diff.map(|diff| json!(["diff", diff])).into_iter().collect();
        for block in &result.content {
            match block {
                ContentBlock::Text(text) if result.is_error => blocks.push(json!(["err", text.text])),
                ContentBlock::Text(text) => {
                    let is_file = result.tool_name == "read";
                    let language = language.as_deref().filter(|_| is_file).unwrap_or_default();
                    blocks.push(self.code(language, &text.text));
                }
                ContentBlock::Image(_) | ContentBlock::ImageUrl(_) | ContentBlock::Unknown(_) => {
                    blocks.push(input_block(block));
                }
            }
        }
        let about = facts::first_line(&facts::input_text(&result.content));
        vec![fold("tool", &result.tool_name, &about, blocks, result.is_error)]
    }

    fn markdown(&mut self, text: &str) -> Vec<Value> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        if text.len() > MAX_MARKDOWN_BYTES {
            return vec![json!(["text", text])];
        }
        let mut block = vec![json!("md")];
        block.extend(nodes(text, &mut self.highlighter));
        vec![Value::Array(block)]
    }

    fn code(&mut self, language: &str, text: &str) -> Value {
        let spans = self.highlighter.spans(language, text);
        json!(["code", "", text, spans])
    }
}

fn bash(execution: &BashExecution) -> (&'static str, String, Vec<String>, Vec<Value>) {
    let mut about = Vec::new();
    if execution.exclude_from_context == Some(true) {
        about.push("hidden from the model".to_owned());
    }
    if execution.cancelled {
        about.push("cancelled".to_owned());
    } else if let Some(code) = execution.exit_code.filter(|code| *code != 0) {
        about.push(format!("exit code {code}"));
    }
    let command = json!(["code", "", format!("$ {}", execution.command), null]);
    ("bash", "Your command".to_owned(), about, vec![command, json!(["code", "", execution.output, null])])
}

fn input_block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!(["text", text.text]),
        ContentBlock::Image(image) => picture(image),
        ContentBlock::ImageUrl(image) => json!(["link", safe_address(image.url()), image.label()]),
        ContentBlock::Unknown(value) => raw("block", value),
    }
}

/// An image of a type that browsers show and that cannot contain a script.
fn picture(image: &Image) -> Value {
    const TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    match TYPES.iter().find(|name| **name == image.mime_type) {
        Some(name) if image.data.bytes().all(is_base64) => json!(["img", name, image.data]),
        _ => json!(["p", format!("[image of type {} that cannot be shown]", image.mime_type)]),
    }
}

/// Something this version does not know.
fn raw(what: &str, value: &Value) -> Value {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    fold("system", what, &facts::first_line(&text), vec![json!(["text", text])], false)
}

fn fold(group: &'static str, title: &str, about: &str, blocks: Vec<Value>, is_error: bool) -> Value {
    json!(["fold", group, title, about, blocks, is_error])
}

fn preview(message: &Message, body: &EntryBody) -> String {
    let text = body.preview(PREVIEW_CHARS);
    match message {
        Message::Assistant(answer) if text.is_empty() => {
            let calls: Vec<String> = answer
                .tool_calls()
                .take(4)
                .map(|call| format!("→ {} {}", call.name, facts::call(call)))
                .collect();
            facts::first_line(&if calls.is_empty() {
                facts::failure(answer).unwrap_or_default()
            } else {
                calls.join(" ")
            })
        }
        Message::ToolResult(result) => format!("{}: {text}", facts::first_line(&result.tool_name)),
        Message::User(_) | Message::Assistant(_) | Message::System(_) => text,
    }
}

fn language_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}
