//! What the next request contains, by part, with estimated tokens.
//!
//! Pure. The parts are estimates from the lengths of texts, except the total of the last
//! request, which the provider counted.

use std::sync::Arc;

use serde::Serialize;

use crate::ai::{AssistantBlock, ContentBlock, Message, SystemMessage, UserContent};

use super::compaction::{IMAGE_CHARS, tokens_of_chars};
use super::projection;
use super::resources::{ContextFile, PromptTemplate, Skill};
use super::store::Entry;

/// The parts of the next request, before the next message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextReport {
    /// In the order of the request; parts without tokens are left out.
    pub parts: Vec<ContextPart>,
    /// The sum of the parts.
    pub tokens: u64,
    /// Tokens of the last request and its answer as the provider counted them; `None` before
    /// the first answer and after a compaction.
    pub counted: Option<u64>,
    /// The context window of the model, in tokens.
    pub window: u64,
    /// Tokens that an automatic compaction keeps free; `None` if it is off.
    pub reserve: Option<u64>,
    /// Prompt templates, which cost nothing until they are called.
    pub n_templates: usize,
    /// Messages that a compaction keeps word for word.
    pub n_pinned: usize,
}

/// A part of the request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextPart {
    /// What the part is.
    pub name: String,
    /// Estimated.
    pub tokens: u64,
    /// What it consists of; empty if that is one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Self>,
    /// What the model reads; `None` for messages, and if the part consists of others.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
}

impl ContextPart {
    fn of_chars(name: impl Into<String>, n_chars: usize) -> Self {
        Self { name: name.into(), tokens: tokens_of_chars(n_chars as u64), ..Self::default() }
    }

    fn of_text(name: impl Into<String>, text: &str) -> Self {
        Self { text: Some(text.into()), ..Self::of_chars(name, text.chars().count()) }
    }

    fn of_items(name: &str, items: Vec<Self>) -> Self {
        let items: Vec<Self> = items.into_iter().filter(|item| item.tokens > 0).collect();
        let tokens = items.iter().map(|item| item.tokens).sum();
        Self { name: name.to_owned(), tokens, items, text: None }
    }
}

/// The inputs of a report.
pub(super) struct ContextInput<'a> {
    /// The whole system prompt with all tools, as a new session would begin.
    pub(super) system: Option<&'a SystemMessage>,
    pub(super) context_files: &'a [ContextFile],
    pub(super) skills: &'a [Skill],
    pub(super) templates: &'a [PromptTemplate],
    /// The entries that the next request depends on.
    pub(super) branch: &'a [Arc<Entry>],
    pub(super) counted: Option<u64>,
    pub(super) window: u64,
    pub(super) reserve: Option<u64>,
    pub(super) n_pinned: usize,
}

impl ContextReport {
    pub(super) fn of(input: &ContextInput<'_>) -> Self {
        let mut parts = prompt_parts(input);
        parts.push(message_part(&projection::messages(input.branch)));
        parts.retain(|part| part.tokens > 0);
        Self {
            tokens: parts.iter().map(|part| part.tokens).sum(),
            parts,
            counted: input.counted,
            window: input.window,
            reserve: input.reserve,
            n_templates: input.templates.len(),
            n_pinned: input.n_pinned,
        }
    }
}

/// System prompt, instruction files, skills and tools.
fn prompt_parts(input: &ContextInput<'_>) -> Vec<ContextPart> {
    let Some(system) = input.system else { return Vec::new() };
    let mut own = Vec::new();
    let mut instructions = Vec::new();
    let mut skills = Vec::new();
    for (name, text) in system.sections.iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        match name.as_str() {
            "project_context" => {
                instructions = files(input.context_files, text.chars().count());
            }
            "skills" => {
                let n_listed = input.skills.iter().filter(|skill| skill.is_listed).count();
                skills.push(ContextPart::of_text(format!("{n_listed} listed"), text));
            }
            _ => own.push(ContextPart::of_text(name.clone(), text)),
        }
    }
    let tools = system.tools_added.iter().map(|tool| {
        let n_chars = serde_json::to_string(tool).map_or(0, |json| json.chars().count());
        let text = serde_json::to_string_pretty(tool).unwrap_or_default();
        ContextPart { text: Some(text.into()), ..ContextPart::of_chars(tool.name.clone(), n_chars) }
    });
    vec![
        ContextPart::of_items("System prompt", own),
        ContextPart::of_items("Tools", tools.collect()),
        ContextPart::of_items("Instruction files", instructions),
        ContextPart::of_items("Skills", skills),
    ]
}

/// A part per file; what surrounds them is counted with the first.
fn files(files: &[ContextFile], n_chars: usize) -> Vec<ContextPart> {
    let lengths: Vec<usize> = files.iter().map(|file| file.text.chars().count()).collect();
    let mut around = n_chars.saturating_sub(lengths.iter().sum());
    files
        .iter()
        .zip(lengths)
        .map(|(file, length)| {
            let (name, n_chars) = (file.path.display().to_string(), length + std::mem::take(&mut around));
            ContextPart { text: Some(file.text.as_str().into()), ..ContextPart::of_chars(name, n_chars) }
        })
        .collect()
}

/// Characters of the conversation, by kind.
#[derive(Default)]
struct MessageChars {
    yours: usize,
    summaries: usize,
    answers: usize,
    thinking: usize,
    calls: usize,
    results: usize,
    n_images: usize,
}

fn message_part(messages: &[Arc<Message>]) -> ContextPart {
    let mut sums = MessageChars::default();
    for message in messages {
        sums.add(message);
    }
    let images = sums.n_images * usize::try_from(IMAGE_CHARS).unwrap_or(usize::MAX);
    let rows = [
        ("summaries", sums.summaries),
        ("your messages", sums.yours),
        ("answers", sums.answers),
        ("thinking", sums.thinking),
        ("tool calls", sums.calls),
        ("tool results", sums.results),
        ("images", images),
    ];
    ContextPart::of_items(
        "Messages",
        rows.into_iter().map(|(name, n_chars)| ContextPart::of_chars(name, n_chars)).collect(),
    )
}

impl MessageChars {
    fn add(&mut self, message: &Message) {
        match message {
            // Counted as the prompt.
            Message::System(_) => {}
            Message::User(user) => {
                let n_chars = match &user.content {
                    UserContent::Text(text) => text.chars().count(),
                    UserContent::Blocks(blocks) => self.blocks(blocks),
                };
                let text = user.content.text();
                *(if projection::is_summary(&text) { &mut self.summaries } else { &mut self.yours }) +=
                    n_chars;
            }
            Message::Assistant(answer) => {
                for block in &answer.content {
                    match block {
                        AssistantBlock::Text(text) => self.answers += text.text.chars().count(),
                        AssistantBlock::Thinking(block) => self.thinking += block.thinking.chars().count(),
                        AssistantBlock::ToolCall(call) => {
                            self.calls += call.name.len() + call.sent_arguments().to_string().chars().count();
                        }
                        AssistantBlock::Unknown(_) => {}
                    }
                }
            }
            Message::ToolResult(result) => self.results += self.blocks(&result.content),
        }
    }

    /// Characters of the texts; images are counted apart.
    fn blocks(&mut self, blocks: &[ContentBlock]) -> usize {
        let mut n_chars = 0;
        for block in blocks {
            match block.as_text() {
                Some(text) => n_chars += text.chars().count(),
                None => self.n_images += 1,
            }
        }
        n_chars
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use crate::ai::{AssistantMessage, Extra, Millis, SystemContent, ToolDeclaration, UserMessage};
    use crate::session::store::{EntryBody, EntryId};

    use super::*;

    fn entry(message: Message) -> Arc<Entry> {
        let body = EntryBody::message(Arc::new(message));
        Arc::new(Entry { id: EntryId::new("e"), parent_id: None, timestamp: String::new(), body })
    }

    fn system(sections: &[(&str, usize)], tools: &[&str]) -> SystemMessage {
        let sections: Map<String, Value> =
            sections.iter().map(|(name, n)| ((*name).to_owned(), Value::from("x".repeat(*n)))).collect();
        let tool = |name: &&str| ToolDeclaration {
            name: (*name).to_owned(),
            description: "d".repeat(400),
            parameters: json!({}),
            constrained_sampling: None,
            extra: Extra::new(),
        };
        SystemMessage {
            content: SystemContent::default(),
            sections: Some(sections),
            timestamp: Millis(0),
            tools_added: tools.iter().map(tool).collect(),
            tools_removed: Vec::new(),
            extra: Extra::new(),
        }
    }

    #[test]
    fn every_part_of_a_request_is_counted_once() {
        let system = system(&[("preamble", 400), ("project_context", 1000), ("cwd", 40)], &["read"]);
        let file = |path: &str, n: usize| ContextFile { path: path.into(), text: "y".repeat(n) };
        let files = [file("/a/AGENTS.md", 400), file("/b/AGENTS.md", 400)];
        let answer = json!({ "content": [{ "type": "text", "text": "z".repeat(80) }] });
        let answer: AssistantMessage = serde_json::from_value(answer).unwrap();
        let branch = [
            entry(Message::User(UserMessage::new("u".repeat(40), Vec::new(), Millis(0)))),
            entry(Message::from(answer)),
        ];
        let report = ContextReport::of(&ContextInput {
            system: Some(&system),
            context_files: &files,
            skills: &[],
            templates: &[],
            branch: &branch,
            counted: Some(7),
            window: 1000,
            reserve: None,
            n_pinned: 0,
        });
        let names: Vec<(&str, u64)> =
            report.parts.iter().map(|part| (part.name.as_str(), part.tokens)).collect();
        let tools = report.parts[1].tokens;
        assert_eq!(
            names,
            [("System prompt", 110), ("Tools", tools), ("Instruction files", 250), ("Messages", 30)]
        );
        assert!(tools > 100, "{tools}");
        let items: Vec<(&str, u64)> =
            report.parts[2].items.iter().map(|item| (item.name.as_str(), item.tokens)).collect();
        assert_eq!(items, [("/a/AGENTS.md", 150), ("/b/AGENTS.md", 100)]);
        assert_eq!(report.tokens, 390 + tools);
    }

    #[test]
    fn an_empty_session_has_no_parts() {
        let report = ContextReport::of(&ContextInput {
            system: None,
            context_files: &[],
            skills: &[],
            templates: &[],
            branch: &[],
            counted: None,
            window: 0,
            reserve: None,
            n_pinned: 0,
        });
        assert_eq!((report.parts.len(), report.tokens), (0, 0));
    }
}
