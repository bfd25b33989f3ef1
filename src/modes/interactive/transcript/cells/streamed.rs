//! Markdown from the model, possibly still arriving.

use ratatui::style::Style;

use crate::tui::markdown::MarkdownStream;
use crate::tui::text::{Row, width};

use super::super::cell_list::Painted;
use super::super::render::{RenderCx, side};

/// A text that grows until it is finished, drawn incrementally.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    text: String,
    finished: bool,
    stream: Option<MarkdownStream>,
    /// Number of bytes of `text` that `stream` has received.
    fed: usize,
}

impl StreamedText {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn push(&mut self, delta: &str) {
        self.text.push_str(delta);
    }

    /// Replaces the received text by `text`, which usually extends it.
    pub(super) fn set(&mut self, text: &str) {
        match text.strip_prefix(self.text.as_str()) {
            Some(more) => self.text.push_str(more),
            None => {
                text.clone_into(&mut self.text);
                self.stream = None;
                self.fed = 0;
            }
        }
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Appends new rows to `painted`, each after `mark` if there is room. Settled rows are neither drawn
    /// nor copied again.
    pub(super) fn render(&mut self, cx: &RenderCx<'_>, base: Style, mark: &str, painted: &mut Painted) {
        let options = cx.markdown(base);
        let stream = self.stream.get_or_insert_with(|| MarkdownStream::new(options.clone()));
        stream.set_options(options);
        stream.push(self.text.get(self.fed..).unwrap_or_default());
        self.fed = self.text.len();
        if self.finished {
            stream.finish();
        }
        // No room for more where there is none for padding.
        let mark = if side(cx.width) == 0 { "" } else { mark };
        let lead = [&" ".repeat(usize::from(cx.answer_side())), mark].concat();
        let left = u16::try_from(width(&lead)).unwrap_or(u16::MAX);
        let width = cx.narrower(left.saturating_add(cx.answer_side())).width;
        let n_rows = stream.rows(width, cx.theme, cx.highlighter).len();
        let n_settled = stream.stable_rows();
        let stable = painted.stable;
        painted.rows.truncate(stable);
        if n_rows > 0 {
            if stable == 0 {
                painted.rows.push(Row::default());
            }
            // The row in front of the text is the cell's own.
            let rows = stream.rows(width, cx.theme, cx.highlighter).iter().skip(stable.saturating_sub(1));
            painted.rows.extend(rows.map(|row| {
                let mut row = row.clone();
                row.indent(lead.as_str(), Style::new());
                row
            }));
        }
        if n_settled > 0 {
            painted.stable = stable.max((n_settled + 1).min(painted.rows.len()));
        }
        if self.finished {
            self.stream = None;
            self.fed = 0;
        }
    }
}
