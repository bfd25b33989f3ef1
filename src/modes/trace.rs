//! The output of `pi trace`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::session::{CallOf, ToolStats, Trace, TracePage, TraceStep, TracedCall, TracedMessage};
use crate::util::clock::Zone;
use crate::util::counted;
use crate::util::escapes::without_escapes;

use super::output::write_out;
use super::table::table;

/// Maximum number of characters of a text on one line.
const PREVIEW_CHARS: usize = 100;

/// What `pi trace` shows.
#[derive(Debug)]
pub enum TraceView<'a> {
    Messages(TracePage<'a>),
    Calls { calls: Vec<CallOf<'a>>, n_more: usize, filter: CallFilter },
    Tools(Vec<ToolStats>),
}

/// Which calls are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallFilter {
    /// Only calls of this tool.
    pub tool: Option<String>,
    pub kind: CallKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallKind {
    #[default]
    All,
    /// Newest first.
    Failed,
    /// Slowest first.
    Slow,
}

impl CallFilter {
    /// Whether it is the filter that lets everything pass, so that messages are shown.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The calls of `trace` that pass, in the order in which they are shown.
    pub fn calls<'a>(&self, trace: &'a Trace) -> Vec<CallOf<'a>> {
        let mut calls = match self.kind {
            CallKind::Failed => trace.failed_calls(),
            CallKind::Slow => trace.slowest_calls(),
            CallKind::All => {
                let mut calls: Vec<_> = trace.calls().collect();
                calls.reverse();
                calls
            }
        };
        if let Some(name) = &self.tool {
            calls.retain(|found| found.call.name == *name);
        }
        calls
    }

    /// `failed calls of bash`
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            CallKind::All => "calls",
            CallKind::Failed => "failed calls",
            CallKind::Slow => "slowest calls",
        };
        let of = self.tool.as_deref().map(|name| format!(" of {}", without_escapes(name)));
        kind.to_owned() + &of.unwrap_or_default()
    }
}

/// Prints part of a trace, with times in `zone`.
pub fn show_trace(view: &TraceView<'_>, zone: &Zone, json: bool) -> ExitCode {
    let text = if json { as_json(view).to_string() + "\n" } else { as_text(view, zone) };
    write_out(&text);
    ExitCode::SUCCESS
}

fn as_json(view: &TraceView<'_>) -> Value {
    match view {
        TraceView::Messages(page) => json!(page),
        TraceView::Calls { calls, n_more, .. } => json!({ "calls": calls, "more": n_more }),
        TraceView::Tools(tools) => json!({ "tools": tools }),
    }
}

/// Messages or calls on a page of interactive mode.
const PAGE_SIZE: usize = 50;

/// Number of pages that the messages or calls of a trace have on a screen, at least 1.
pub(super) fn n_screen_pages(trace: &Trace, filter: &CallFilter) -> usize {
    let n_rows = if filter.is_empty() { trace.n_messages() } else { filter.calls(trace).len() };
    n_rows.div_ceil(PAGE_SIZE).max(1)
}

/// A page of a trace for a screen. Page 0 is the newest, and begins with the statistics of the
/// tools.
pub(super) fn screen_page(trace: &Trace, filter: &CallFilter, page: usize, zone: &Zone) -> String {
    if !filter.is_empty() {
        let calls = filter.calls(trace);
        let start = page.saturating_mul(PAGE_SIZE).min(calls.len());
        let end = (start + PAGE_SIZE).min(calls.len());
        return list(&calls[start..end], 0, filter);
    }
    let mut before = None;
    for _ in 0..page {
        before = trace.page(PAGE_SIZE, before).next_before.or(before);
    }
    let stats = if page == 0 { stats(&trace.tool_stats()) + "\n" } else { String::new() };
    stats + &messages_of(&trace.page(PAGE_SIZE, before), zone)
}

/// The lines of part of a trace, for a terminal.
fn as_text(view: &TraceView<'_>, zone: &Zone) -> String {
    match view {
        TraceView::Messages(page) => messages(page, zone),
        TraceView::Calls { calls, n_more, filter } => list(calls, *n_more, filter),
        TraceView::Tools(tools) => stats(tools),
    }
}

fn messages(page: &TracePage<'_>, zone: &Zone) -> String {
    if page.messages.is_empty() {
        return "No messages.\n".to_owned();
    }
    let older = page.next_before.map(|before| format!("Older messages: --before {before}\n"));
    messages_of(page, zone) + &older.unwrap_or_default()
}

fn messages_of(page: &TracePage<'_>, zone: &Zone) -> String {
    page.messages.iter().map(|message| describe(message, zone)).collect()
}

fn describe(message: &TracedMessage, zone: &Zone) -> String {
    let status = if message.completed { "completed" } else { "not completed" };
    let steps = counted(message.steps.len() as u64, "step");
    let mut text = format!(
        "{}  {}  version {}  {steps}  {status}\n  {}\n",
        zone.time(message.time.0 / 1_000_000),
        message.id,
        message.version,
        preview(&message.text)
    );
    for step in &message.steps {
        text.push_str(&describe_step(step));
    }
    text.push('\n');
    text
}

fn describe_step(step: &TraceStep) -> String {
    let error = step.error.as_ref();
    let error = error.map(|error| format!("  {}: {}", step.stop_reason, preview(error))).unwrap_or_default();
    let duration = duration(step.duration_ms, false);
    let mut lines = vec![format!("  {} {}{duration}{error}\n", step.iteration, step.model)];
    for (label, said) in [("thought", &step.thought), ("text", &step.text)] {
        if !said.trim().is_empty() {
            lines.push(format!("    {label}: {}\n", preview(said)));
        }
    }
    lines.extend(step.calls.iter().map(|call| format!("    {}\n", describe_call(call))));
    lines.concat()
}

fn describe_call(call: &TracedCall) -> String {
    let result = match &call.result {
        None => "no result".to_owned(),
        Some(result) if result.success => format!("ok, {} bytes", result.n_bytes),
        Some(result) => format!("failed: {}", preview(&result.output)),
    };
    let duration = duration(call.duration_ms, call.duration_estimated);
    format!("{} {}{duration}  {result}", call.name, preview(&call.args.to_string()))
}

fn list(calls: &[CallOf<'_>], n_more: usize, filter: &CallFilter) -> String {
    if calls.is_empty() {
        return format!("No {}.\n", filter.describe());
    }
    let mut lines: Vec<String> = calls
        .iter()
        .map(|found| format!("{} {}  {}\n", found.message_id, found.iteration, describe_call(found.call)))
        .collect();
    if n_more > 0 {
        lines.push(format!("{n_more} more; show them with --limit\n"));
    }
    lines.concat()
}

fn stats(tools: &[ToolStats]) -> String {
    if tools.is_empty() {
        return "No tool calls.\n".to_owned();
    }
    let header = ["tool", "calls", "failed", "open", "mean", "p50", "p95", "max", "bytes"];
    let ms = |duration: Option<u64>| duration.map_or_else(|| "-".to_owned(), shown_ms);
    let rows = tools.iter().map(|tool| {
        vec![
            tool.name.clone(),
            tool.calls.to_string(),
            tool.failures.to_string(),
            tool.unfinished.to_string(),
            ms(tool.mean_ms),
            ms(tool.p50_ms),
            ms(tool.p95_ms),
            ms(tool.max_ms),
            tool.n_bytes.to_string(),
        ]
    });
    table(&std::iter::once(header.map(str::to_owned).to_vec()).chain(rows).collect::<Vec<_>>())
}

fn duration(ms: Option<u64>, estimated: bool) -> String {
    let mark = if estimated { "~" } else { "" };
    ms.map(|ms| format!("  {mark}{}", shown_ms(ms))).unwrap_or_default()
}

fn shown_ms(ms: u64) -> String {
    if ms < 10_000 { format!("{ms}ms") } else { format!("{:.1}s", ms as f64 / 1e3) }
}

/// The start of `text` on one line, without control characters.
fn preview(text: &str) -> String {
    let head: String = text.chars().take(20 * PREVIEW_CHARS).collect();
    let line = without_escapes(&head).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= PREVIEW_CHARS {
        return line;
    }
    line.chars().take(PREVIEW_CHARS).collect::<String>() + "…"
}
