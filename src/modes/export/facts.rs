//! What both formats say about entries: times, tokens, costs, first lines.

use std::collections::BTreeSet;

use crate::ai::{
    self, AssistantMessage, ContentBlock, Message, StopReason, SystemContent, ToolCall, Usage, failure_text,
};
use crate::session::{Entry, EntryBody, SessionMessage};
use crate::util::counted;

const FIRST_LINE_CHARS: usize = 120;
/// Models that are named; more are counted.
const MAX_MODELS: usize = 6;

/// Sums over the entries of an export.
#[derive(Debug, Default)]
pub(super) struct Totals {
    n_prompts: u64,
    n_answers: u64,
    n_results: u64,
    n_failed: usize,
    prompt_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    models: BTreeSet<String>,
    first: Option<String>,
    last: Option<String>,
}

impl Totals {
    pub(super) fn add(&mut self, entry: &Entry) {
        if !entry.timestamp.is_empty() {
            self.first.get_or_insert_with(|| entry.timestamp.clone());
            self.last = Some(entry.timestamp.clone());
        }
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => self.add_message(message),
            EntryBody::Usage(usage) => self.add_usage(&usage.usage),
            EntryBody::Compaction(compaction) => {
                compaction.usage.iter().for_each(|usage| self.add_usage(usage));
            }
            EntryBody::BranchSummary(branch) => branch.usage.iter().for_each(|usage| self.add_usage(usage)),
            _ => {}
        }
    }

    fn add_message(&mut self, message: &Message) {
        match message {
            Message::User(_) => self.n_prompts += 1,
            Message::Assistant(answer) => {
                self.n_answers += 1;
                self.add_usage(&answer.usage);
                if !answer.model.is_empty() && self.models.len() < 100 {
                    self.models.insert(model(answer));
                }
            }
            Message::ToolResult(result) => {
                self.n_results += 1;
                self.n_failed += usize::from(result.is_error);
            }
            Message::System(_) => {}
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.prompt_tokens += usage.prompt_tokens();
        self.cached_tokens += usage.cache_read;
        self.output_tokens += usage.output;
        self.cost_usd += usage.cost.total;
    }

    /// What is known of the whole, a few words each.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            facts.push(format!("{} to {}", time(first), time(last)));
        }
        facts.push(counted(self.n_prompts, "prompt"));
        facts.push(counted(self.n_answers, "answer"));
        let results = counted(self.n_results, "tool result");
        facts.push(match self.n_failed {
            0 => results,
            n_failed => format!("{results}, {n_failed} failed"),
        });
        let (input, cached, output) =
            (tokens(self.prompt_tokens), tokens(self.cached_tokens), tokens(self.output_tokens));
        facts.push(format!("{input} tokens in ({cached} from the cache), {output} out"));
        facts.push(format!("${:.4}", self.cost_usd));
        let names: Vec<&str> = self.models.iter().take(MAX_MODELS).map(String::as_str).collect();
        match self.models.len() - names.len() {
            _ if names.is_empty() => {}
            0 => facts.push(names.join(", ")),
            n_more => {
                facts.push(format!("{} and {}", names.join(", "), counted(n_more as u64, "more model")));
            }
        }
        facts
    }
}

fn model(answer: &AssistantMessage) -> String {
    if answer.provider.is_empty() {
        answer.model.clone()
    } else {
        format!("{}/{}", answer.provider, answer.model)
    }
}

/// Model, tokens, cost and duration of an answer.
pub(super) fn answer(answer: &AssistantMessage) -> Vec<String> {
    let mut facts = vec![model(answer)];
    facts.extend(usage(&answer.usage));
    facts.extend(answer.duration_ms.map(duration));
    if answer.stop_reason == StopReason::Length {
        facts.push("cut off at the output limit".to_owned());
    }
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// Why an answer is not complete.
pub(super) fn failure(answer: &AssistantMessage) -> Option<String> {
    match answer.stop_reason {
        StopReason::Aborted => Some(answer.error_message.clone().unwrap_or_else(|| "cancelled".to_owned())),
        _ => failure_text(answer),
    }
}

pub(super) fn usage(usage: &Usage) -> Vec<String> {
    let mut facts = Vec::new();
    if usage.prompt_tokens() > 0 || usage.output > 0 {
        facts.push(format!("{} in", tokens(usage.prompt_tokens())));
        facts.push(format!("{} out", tokens(usage.output)));
    }
    if usage.cost.total > 0.0 {
        facts.push(format!("${:.4}", usage.cost.total));
    }
    facts
}

pub(super) fn tokens(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

pub(super) fn duration(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1e3) }
}

/// `2026-11-02 09:14` of an ISO time; other text as it is.
pub(super) fn time(timestamp: &str) -> String {
    let is_iso = timestamp.len() >= 16 && timestamp.is_ascii() && timestamp.as_bytes()[10] == b'T';
    if is_iso { timestamp[..16].replace('T', " ") } else { first_line(timestamp) }
}

/// What a call is about: its command, path or pattern.
pub(super) fn call(call: &ToolCall) -> String {
    let names = ["command", "path", "file_path", "pattern", "query", "url"];
    let about = names.iter().find_map(|name| call.arguments.get(*name)?.as_str());
    about.map(first_line).unwrap_or_default()
}

/// The first line that is not blank, shortened.
pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().nth(FIRST_LINE_CHARS).is_none() {
        return line.to_owned();
    }
    line.chars().take(FIRST_LINE_CHARS - 1).chain(['…']).collect()
}

pub(super) fn input_text(blocks: &[ContentBlock]) -> String {
    ai::join_text(blocks)
}

/// The sections, text and tools of a system message.
pub(super) fn system_text(message: &Message) -> String {
    let Message::System(system) = message else { return String::new() };
    let mut parts: Vec<String> = Vec::new();
    for (name, section) in system.sections.iter().flatten() {
        let text = section.as_str().map_or_else(|| section.to_string(), str::to_owned);
        parts.push(format!("{name}:\n{text}"));
    }
    parts.push(match &system.content {
        SystemContent::Text(text) => text.clone(),
        SystemContent::Blocks(blocks) => input_text(blocks),
    });
    for tool in &system.tools_added {
        parts.push(format!("tool {}: {}\n{}", tool.name, tool.description, tool.parameters));
    }
    parts.extend(system.tools_removed.iter().map(|tool| format!("without tool {}", tool.name)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let check = |n: u64, expected: &[&str]| {
            let totals =
                Totals { n_prompts: n, n_answers: n, n_results: n, n_failed: 1, ..Totals::default() };
            assert_eq!(totals.facts()[..3], *expected);
        };
        check(1, &["1 prompt", "1 answer", "1 tool result, 1 failed"]);
        check(2, &["2 prompts", "2 answers", "2 tool results, 1 failed"]);
    }
}
