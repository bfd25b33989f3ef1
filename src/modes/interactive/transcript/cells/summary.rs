//! Summaries that replace part of the conversation: compactions and abandoned branches.

use crate::session::{BranchSummary, Compaction};
use crate::tui::markdown;
use crate::tui::text::{Row, Run, Wrap};
use crate::tui::theme::Token;
use crate::util::grouped;

use super::super::render::{BoxMark, RenderCx, box_inset, boxed};

#[derive(Debug)]
pub(in super::super) struct SummaryCell {
    label: &'static str,
    headline: String,
    summary: String,
}

impl SummaryCell {
    pub(in super::super) fn compaction(compaction: &Compaction) -> Self {
        let tokens = grouped(compaction.tokens_before);
        Self {
            label: "[compaction]",
            headline: format!("Compacted from {tokens} tokens"),
            summary: compaction.summary.clone(),
        }
    }

    pub(in super::super) fn branch(branch: &BranchSummary) -> Self {
        Self {
            label: "[branch]",
            headline: "Summary of an abandoned branch".to_owned(),
            summary: branch.summary.clone(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.summary
    }

    pub(super) fn rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let background = cx.style(Token::CustomMessageBg);
        let inner = cx.narrower(box_inset(cx.width, background));
        let text = cx.style(Token::CustomMessageText);
        let has_more = !self.summary.trim().is_empty();
        let mut title = vec![
            Run::new(self.label, cx.bold(Token::CustomMessageLabel)),
            Run::new(format!(" {}", self.headline), text),
        ];
        if has_more && !cx.view.expanded && !cx.view.expand_key.is_empty() {
            title.push(Run::new(format!(" ({} to expand)", cx.view.expand_key), cx.style(Token::Muted)));
        }
        let mut content = Wrap::new(inner.width).runs(&title);
        if has_more && cx.view.expanded {
            content.push(Row::default());
            let options = cx.markdown(text);
            content.extend(markdown::render(&self.summary, inner.width, cx.theme, cx.highlighter, &options));
        }
        boxed(content, cx.width, background, BoxMark::Labelled)
    }
}
