//! The active branch as a trajectory in the Agent Trajectory Interchange Format, which
//! harnesses of benchmarks and training read.
//!
//! The fields are those that Harbor's adapter for the original derives from a session, so
//! that readers of its trajectories need not change. Unknown fields are forbidden by the
//! format; what pi adds is in the `extra` of each part. The invariant: `source_call_id`
//! names a call of the same step, or is missing.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::ai::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason, ToolResultMessage, Usage,
    UserContent, system_state,
};
use crate::session::{BashExecution, Entry, EntryBody, SessionMessage};

use super::{ExportSource, Read};

const SCHEMA_VERSION: &str = "ATIF-v1.7";

/// Writes the branch. Returns how many entries could not be read. Totals include other
/// branches, as costs do.
///
/// # Errors
/// If writing fails.
pub(super) fn write(source: &ExportSource, read: Read, out: &mut dyn Write) -> io::Result<usize> {
    let mut trajectory = Trajectory::default();
    let mut system = Vec::new();
    let mut n_lost = 0;
    for idx in source.tree.path(source.tree.leaf()) {
        let Some(entry) = read.entry(&source.tree, idx) else {
            n_lost += 1;
            continue;
        };
        if let EntryBody::Message { message: SessionMessage::Model(message), .. } = &entry.body
            && let Message::System(_) = &**message
        {
            system.push(std::sync::Arc::clone(message));
        }
        trajectory.add(&entry);
    }
    let mut totals = Totals::default();
    for idx in 0..source.tree.len() {
        read.entry(&source.tree, idx).iter().for_each(|entry| totals.add(entry));
    }
    let tools = system_state(&system).tools.into_iter().map(|tool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        }})
    });
    let mut agent = Map::from_iter([
        ("name".to_owned(), json!("pi")),
        ("version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
    ]);
    put(&mut agent, "model_name", trajectory.first_model.map(Value::from));
    let tools: Vec<Value> = tools.collect();
    put(&mut agent, "tool_definitions", (!tools.is_empty()).then(|| tools.into()));
    let n_steps = trajectory.steps.len();
    let mut document = Map::from_iter([
        ("schema_version".to_owned(), json!(SCHEMA_VERSION)),
        ("session_id".to_owned(), json!(read.text(&source.header.id))),
        ("agent".to_owned(), agent.into()),
        ("steps".to_owned(), trajectory.steps.into()),
    ]);
    put(&mut document, "notes", source.name.as_deref().map(|name| read.text(name).into()));
    document.insert("final_metrics".to_owned(), totals.metrics(n_steps));
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)?;
    out.flush()?;
    Ok(n_lost)
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        object.insert(name.to_owned(), value);
    }
}

/// The steps so far.
#[derive(Default)]
struct Trajectory {
    steps: Vec<Value>,
    /// `provider/id` of the model that is selected.
    model: Option<String>,
    first_model: Option<String>,
    /// The thinking level that is selected.
    effort: Option<String>,
}

impl Trajectory {
    fn add(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::User(user) => {
                    self.step(entry, "user", &user_text(&user.content), Map::new());
                }
                Message::Assistant(answer) => self.answer(entry, answer),
                Message::ToolResult(result) => self.result(entry, result),
                // Tools are in `agent.tool_definitions`; harnesses know the prompt.
                Message::System(_) => {}
            },
            EntryBody::Message { message: SessionMessage::BashExecution(execution), .. }
                if execution.exclude_from_context != Some(true) =>
            {
                self.step(entry, "user", &command_text(execution), Map::new());
            }
            EntryBody::CustomMessage(message) => {
                let text = message.content.as_ref().map(user_text).unwrap_or_default();
                self.step(entry, "system", &text, Map::new());
            }
            EntryBody::Compaction(compaction) => {
                self.summary(entry, &compaction.summary, compaction.usage.as_ref());
            }
            EntryBody::BranchSummary(branch) => {
                self.summary(entry, &branch.summary, branch.usage.as_ref());
            }
            EntryBody::ModelChange(change) => {
                self.model = Some(format!("{}/{}", change.provider, change.model_id));
            }
            EntryBody::ThinkingLevelChange(change) => self.effort = Some(change.thinking_level.clone()),
            _ => {}
        }
    }

    /// Adds a step; `fields` come after the message.
    fn step(&mut self, entry: &Entry, source: &str, message: &str, fields: Map<String, Value>) {
        let mut step = Map::from_iter([("step_id".to_owned(), json!(self.steps.len() + 1))]);
        put(&mut step, "timestamp", (!entry.timestamp.is_empty()).then(|| json!(entry.timestamp)));
        step.insert("source".to_owned(), json!(source));
        step.insert("message".to_owned(), json!(message));
        step.extend(fields);
        let extra = step.entry("extra").or_insert_with(|| json!({}));
        if let Value::Object(extra) = extra {
            extra.insert("pi_event_id".to_owned(), json!(entry.id.as_str()));
            put(extra, "pi_parent_id", entry.parent_id.as_ref().map(|id| json!(id.as_str())));
        }
        self.steps.push(step.into());
    }

    fn answer(&mut self, entry: &Entry, answer: &AssistantMessage) {
        if is_interrupted(answer) {
            return;
        }
        let model = if answer.provider.is_empty() {
            self.model.clone()
        } else {
            Some(format!("{}/{}", answer.provider, answer.model))
        };
        if self.first_model.is_none() {
            self.first_model.clone_from(&model);
        }
        let mut fields = Map::new();
        put(&mut fields, "model_name", model.map(Value::from));
        let effort =
            answer.thinking_level.map(|level| level.name().to_owned()).or_else(|| self.effort.clone());
        put(&mut fields, "reasoning_effort", effort.map(Value::from));
        let thinking: Vec<&str> = answer
            .content
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::Thinking(thinking) if !thinking.thinking.is_empty() => {
                    Some(thinking.thinking.as_str())
                }
                _ => None,
            })
            .collect();
        put(&mut fields, "reasoning_content", (!thinking.is_empty()).then(|| thinking.join("\n").into()));
        let calls: Vec<Value> = answer
            .tool_calls()
            .map(|call| {
                // The format wants an object.
                let arguments = match &call.arguments {
                    Value::Object(arguments) => Value::Object(arguments.clone()),
                    other => json!({ "value": other }),
                };
                json!({"tool_call_id": call.id, "function_name": call.name, "arguments": arguments})
            })
            .collect();
        put(&mut fields, "tool_calls", (!calls.is_empty()).then(|| calls.into()));
        fields.insert("metrics".to_owned(), metrics(&answer.usage));
        fields.insert("llm_call_count".to_owned(), json!(1));
        let mut extra = Map::new();
        put(&mut extra, "provider", (!answer.provider.is_empty()).then(|| json!(answer.provider)));
        put(&mut extra, "api", Some(json!(answer.api.as_str())));
        put(&mut extra, "response_id", answer.response_id.as_ref().map(|id| json!(id)));
        put(&mut extra, "response_model", answer.response_model.as_ref().map(|model| json!(model)));
        put(&mut extra, "stop_reason", serde_json::to_value(answer.stop_reason).ok());
        put(&mut extra, "raw_stop_reason", answer.raw_stop_reason.as_ref().map(|reason| json!(reason)));
        put(&mut extra, "error", answer.error_message.as_ref().map(|error| json!(error)));
        fields.insert("extra".to_owned(), extra.into());
        self.step(entry, "agent", &answer.text(), fields);
    }

    /// Adds a result to the step of its call, or to the last step of the agent.
    fn result(&mut self, entry: &Entry, result: &ToolResultMessage) {
        let has_call = |step: &Value| {
            let calls = step["tool_calls"].as_array().into_iter().flatten();
            calls.into_iter().any(|call| call["tool_call_id"] == result.tool_call_id.as_str())
        };
        let of_call = self.steps.iter().rposition(has_call);
        let at = of_call.or_else(|| self.steps.iter().rposition(|step| step["source"] == "agent"));
        let mut fields = Map::new();
        put(&mut fields, "source_call_id", of_call.map(|_| json!(result.tool_call_id)));
        fields.insert("content".to_owned(), json!(blocks_text(&result.content)));
        fields.insert(
            "extra".to_owned(),
            json!({"tool_name": result.tool_name, "is_error": result.is_error, "pi_event_id": entry.id.as_str()}),
        );
        let Some(Value::Object(step)) = at.and_then(|at| self.steps.get_mut(at)) else {
            // A result of nothing: the session is damaged, and nothing is lost here.
            return self.step(entry, "system", &blocks_text(&result.content), Map::new());
        };
        let observation = step.entry("observation").or_insert_with(|| json!({ "results": [] }));
        if let Some(results) = observation["results"].as_array_mut() {
            results.push(fields.into());
        }
    }

    fn summary(&mut self, entry: &Entry, text: &str, usage: Option<&Usage>) {
        let mut fields = Map::new();
        put(&mut fields, "model_name", self.model.clone().map(Value::from));
        put(&mut fields, "metrics", usage.map(metrics));
        fields.insert("llm_call_count".to_owned(), json!(u8::from(usage.is_some())));
        self.step(entry, "agent", text, fields);
    }
}

/// An answer that was cancelled before it said anything.
fn is_interrupted(answer: &AssistantMessage) -> bool {
    let is_cancelled = answer.stop_reason == StopReason::Aborted
        || answer.stop_reason == StopReason::Error
            && answer.error_message.as_deref() == Some("This operation was aborted");
    is_cancelled && answer.content.is_empty()
}

fn user_text(content: &UserContent) -> String {
    blocks_text(&content.blocks())
}

/// The texts, with a note in place of each image: the format refers to images by files.
fn blocks_text(blocks: &[ContentBlock]) -> String {
    let parts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::Image(image) => Some(format!("[image: {}]", image.mime_type)),
        ContentBlock::ImageUrl(image) => Some(format!("[image: {}]", image.url())),
        ContentBlock::Unknown(_) => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn command_text(execution: &BashExecution) -> String {
    format!("Ran `{}`\n{}", execution.command, execution.output).trim_end().to_owned()
}

fn metrics(usage: &Usage) -> Value {
    let mut metrics = Map::from_iter([
        ("prompt_tokens".to_owned(), json!(usage.prompt_tokens())),
        ("completion_tokens".to_owned(), json!(usage.output)),
        ("cached_tokens".to_owned(), json!(usage.cache_read)),
    ]);
    put(&mut metrics, "cost_usd", (usage.cost.total > 0.0).then(|| json!(usage.cost.total)));
    let mut extra = Map::from_iter([("cache_write_tokens".to_owned(), json!(usage.cache_write))]);
    put(&mut extra, "reasoning_tokens", usage.reasoning.map(Value::from));
    extra.insert("pi_total_tokens".to_owned(), json!(usage.total_tokens));
    metrics.insert("extra".to_owned(), extra.into());
    metrics.into()
}

/// Sums over all entries.
#[derive(Default)]
struct Totals {
    prompt_tokens: u64,
    completion_tokens: u64,
    cached_tokens: u64,
    cost_usd: f64,
}

impl Totals {
    fn add(&mut self, entry: &Entry) {
        let usage = match &entry.body {
            EntryBody::Message { message: SessionMessage::Model(message), .. } => match &**message {
                Message::Assistant(answer) => Some(&answer.usage),
                _ => None,
            },
            EntryBody::Usage(usage) => Some(&usage.usage),
            EntryBody::Compaction(compaction) => compaction.usage.as_ref(),
            EntryBody::BranchSummary(branch) => branch.usage.as_ref(),
            _ => None,
        };
        let Some(usage) = usage else { return };
        self.prompt_tokens = self.prompt_tokens.saturating_add(usage.prompt_tokens());
        self.completion_tokens = self.completion_tokens.saturating_add(usage.output);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cache_read);
        self.cost_usd += usage.cost.total;
    }

    fn metrics(&self, n_steps: usize) -> Value {
        let mut metrics = Map::from_iter([
            ("total_prompt_tokens".to_owned(), json!(self.prompt_tokens)),
            ("total_completion_tokens".to_owned(), json!(self.completion_tokens)),
            ("total_cached_tokens".to_owned(), json!(self.cached_tokens)),
        ]);
        put(&mut metrics, "total_cost_usd", (self.cost_usd > 0.0).then(|| json!(self.cost_usd)));
        metrics.insert("total_steps".to_owned(), json!(n_steps));
        metrics.into()
    }
}
