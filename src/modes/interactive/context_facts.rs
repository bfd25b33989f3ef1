//! `/context`: what the model gets with the next request, by part.

use std::iter;
use std::path::Path;
use std::sync::Arc;

use crate::session::{ContextPart, ContextReport, Reply, SessionCommand};
use crate::util::paths;
use crate::util::visible::spell_out;

use super::effects::Effects;
use super::footer::tokens_short;
use super::msg::EffectDone;
use super::reports::{Chapter, ChapterText, ReportDone, ReportKind};

impl Effects {
    /// Estimates the parts of the next request; answers with [`EffectDone::Report`].
    pub(super) fn describe_context(&self) {
        let (answer, done) = (self.link.handle().post(SessionCommand::DescribeContext), self.done.clone());
        let home = self.services.dirs.home.clone();
        tokio::spawn(async move {
            let done_with = match answer.await {
                Ok(Reply::ContextReport(report)) => reported(&report, home.as_deref()),
                Ok(_) => return,
                Err(error) => {
                    let markdown = format!("The request cannot be described: {error}");
                    ReportDone::Report { kind: ReportKind::Context, markdown, chapters: Vec::new() }
                }
            };
            drop(done.send(EffectDone::Report(done_with)));
        });
    }
}

/// The report with the texts of its parts; paths are shown with `~` for `home`.
pub(super) fn reported(report: &ContextReport, home: Option<&Path>) -> ReportDone {
    let (markdown, chapters) = (context_markdown(report, home), chapters(report, home));
    ReportDone::Report { kind: ReportKind::Context, markdown, chapters }
}

/// The parts whose texts the report has. Messages are in the transcript.
fn chapters(report: &ContextReport, home: Option<&Path>) -> Vec<Chapter> {
    let chapter = |part: &ContextPart, item: &ContextPart| {
        let name = format!("{}: {}", part.name, paths::with_tilde(&item.name, home));
        let text = ChapterText::Here(Arc::clone(item.text.as_ref()?));
        Some(Chapter { name, note: tokens_short(item.tokens), text })
    };
    let parts = report.parts.iter();
    parts.flat_map(|part| part.items.iter().filter_map(move |item| chapter(part, item))).collect()
}

/// The report as markdown.
fn context_markdown(report: &ContextReport, home: Option<&Path>) -> String {
    let mut rows = Vec::new();
    for part in &report.parts {
        rows.push(row(report, &format!("**{}**", part.name), part));
        // A single item says nothing new, unless it is a file.
        let is_one = part.items.len() == 1 && !part.items[0].name.starts_with('/');
        for item in part.items.iter().filter(|_| !is_one) {
            let name = paths::with_tilde(&item.name, home);
            rows.push(row(report, &format!("· {}", code_if_path(&name)), item));
        }
    }
    let total = ContextPart { tokens: report.tokens, ..ContextPart::default() };
    rows.push(row(report, "**Together**", &total));
    let window = tokens_short(report.window);
    format!(
        "| Part | Tokens | Share of {window} |\n|---|--:|--:|\n{}\n\n{}",
        rows.join("\n"),
        notes(report).join(" ")
    )
    .trim_end()
    .to_owned()
}

/// The report in lines without a table, as they are read aloud.
pub(in super::super) fn context_lines(report: &ContextReport, home: Option<&Path>) -> Vec<String> {
    let line = |part: &ContextPart| {
        let share = share(part.tokens, report.window).map(|share| format!(", {share}")).unwrap_or_default();
        let name = spell_out(&paths::with_tilde(&part.name, home), None).0;
        format!("{name}: {} tokens{share}", tokens_short(part.tokens))
    };
    let together =
        ContextPart { name: "Together".to_owned(), tokens: report.tokens, ..ContextPart::default() };
    let parts = report.parts.iter().flat_map(|part| iter::once(part).chain(&part.items));
    parts.chain([&together]).map(line).chain(notes(report)).collect()
}

fn notes(report: &ContextReport) -> Vec<String> {
    let mut notes = vec!["The tokens of the parts are estimates.".to_owned()];
    if let Some(counted) = report.counted {
        let share = share(counted, report.window).map(|share| format!(", {share} of the window"));
        let share = share.unwrap_or_default();
        notes.push(format!(
            "The provider counted {} tokens with the last answer{share}.",
            tokens_short(counted)
        ));
    }
    if let Some(reserve) = report.reserve.filter(|reserve| report.window > *reserve) {
        let limit = tokens_short(report.window - reserve);
        notes.push(format!("pi compacts the conversation above {limit} tokens."));
    }
    if report.n_pinned > 0 {
        let verb = if report.n_pinned == 1 { "is" } else { "are" };
        notes.push(format!("{} of your messages {verb} pinned.", report.n_pinned));
    }
    if report.n_templates > 0 {
        let n = report.n_templates;
        let what = if n == 1 { "prompt template costs" } else { "prompt templates cost" };
        notes.push(format!("{n} {what} nothing until you call one."));
    }
    notes
}

fn row(report: &ContextReport, name: &str, part: &ContextPart) -> String {
    let share = share(part.tokens, report.window).unwrap_or_default();
    format!("| {name} | {} | {share} |", tokens_short(part.tokens))
}

/// A path may contain what markdown would format.
fn code_if_path(name: &str) -> String {
    let is_path = name.contains(['/', '_', '*']);
    if is_path { format!("`{}`", name.replace(['`', '|'], "?")) } else { name.to_owned() }
}

/// A share in percent; `None` if the window is unknown.
fn share(tokens: u64, window: u64) -> Option<String> {
    let percent = (window > 0).then(|| tokens as f64 / window as f64 * 100.0)?;
    Some(if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, tokens: u64, items: Vec<ContextPart>) -> ContextPart {
        ContextPart { name: name.to_owned(), tokens, items, text: None }
    }

    #[test]
    fn parts_are_listed_with_tokens_and_shares() {
        let report = ContextReport {
            parts: vec![
                part(
                    "System prompt",
                    300,
                    vec![part("preamble", 200, Vec::new()), part("cwd", 100, Vec::new())],
                ),
                part("Instruction files", 1500, vec![part("/h/p/AGENTS.md", 1500, Vec::new())]),
                part("Messages", 200, vec![part("your messages", 200, Vec::new())]),
            ],
            tokens: 2000,
            counted: Some(2345),
            window: 20_000,
            reserve: Some(4000),
            n_templates: 1,
            n_pinned: 0,
        };
        insta::assert_snapshot!(context_markdown(&report, Some(Path::new("/h"))), @"
        | Part | Tokens | Share of 20k |
        |---|--:|--:|
        | **System prompt** | 300 | 1.5 % |
        | · preamble | 200 | 1.0 % |
        | · cwd | 100 | 0.5 % |
        | **Instruction files** | 1.5k | 7.5 % |
        | · `~/p/AGENTS.md` | 1.5k | 7.5 % |
        | **Messages** | 200 | 1.0 % |
        | **Together** | 2.0k | 10 % |

        The tokens of the parts are estimates. The provider counted 2.3k tokens with the last answer, 12 % of the window. pi compacts the conversation above 16k tokens. 1 prompt template costs nothing until you call one.
        ");
    }

    #[test]
    fn unknown_window_has_no_shares() {
        assert_eq!(share(5, 0), None);
        assert_eq!(share(0, 10).as_deref(), Some("0.0 %"));
        assert_eq!(share(5, 10).as_deref(), Some("50 %"));
    }
}
