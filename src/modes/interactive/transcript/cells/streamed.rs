//! Markdown from the model, possibly still arriving.

use ratatui::style::Style;

use crate::tui::markdown::MarkdownStream;
use crate::tui::text::{LinePlace, Row, width};

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
    frozen: Option<Frozen>,
}

/// Rows that left the screen before they were settled. They stay as they were, and what follows them begins a row
/// of its own.
#[derive(Debug)]
struct Frozen {
    end: LinePlace,
    n_rows: usize,
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
        stream.rows(width, cx.theme, cx.highlighter);
        let n_settled = stream.stable_rows();
        let rows = stream.rows(width, cx.theme, cx.highlighter);
        let stable = painted.stable;
        painted.rows.truncate(stable);
        // The row in front of the text is the cell's own.
        if !rows.is_empty() && stable == 0 {
            painted.rows.push(Row::default());
        }
        let show = |painted: &mut Painted, rows: &mut dyn Iterator<Item = &Row>| {
            painted.rows.extend(rows.map(|row| {
                let mut row = row.clone();
                row.indent(lead.as_str(), Style::new());
                row
            }));
        };
        let n_stable = match &mut self.frozen {
            None => {
                show(painted, &mut rows.iter().skip(stable.saturating_sub(1)));
                if n_settled > 0 { n_settled + 1 } else { 0 }
            }
            Some(frozen) => {
                let split = frozen.end.split(rows, width);
                if stable == 0 {
                    show(painted, &mut rows[..split.first].iter().chain(&split.before));
                    frozen.n_rows = painted.rows.len();
                }
                let rest = split.after.iter().chain(&rows[split.end..]);
                show(painted, &mut rest.skip(stable.saturating_sub(frozen.n_rows)));
                let n_settled_after =
                    n_settled.checked_sub(split.end).map(|n_rows| split.after.len() + n_rows);
                frozen.n_rows + n_settled_after.unwrap_or(0)
            }
        };
        painted.stable = stable.max(n_stable.min(painted.rows.len()));
        if self.finished {
            self.stream = None;
            self.fed = 0;
        }
    }

    /// Where row `n_rows` begins, if the rows before it can be final now, whatever text arrives.
    pub(super) fn place(&self, painted: &Painted, n_rows: usize) -> Option<LinePlace> {
        let stream = self.stream.as_ref()?;
        let unsettled = painted.rows.get(painted.stable..n_rows)?;
        let may_change = stream.has_undrawn() || stream.may_be_table();
        if may_change && !unsettled.is_empty()
            || stream.source().is_empty()
            || !unsettled.iter().all(Row::is_line)
        {
            return None;
        }
        let (before, n_before) = match &self.frozen {
            Some(frozen) => (frozen.end.clone(), frozen.n_rows),
            None => (LinePlace::default(), 1),
        };
        // Settled lines do not go on.
        let is_open = n_rows == painted.rows.len() && !unsettled.is_empty();
        Some(before.after(painted.rows.get(n_before..n_rows)?, is_open))
    }

    /// Number of rows that [`Self::freeze`] made final, as last drawn.
    pub(super) fn n_frozen(&self) -> usize {
        self.frozen.as_ref().map_or(0, |frozen| frozen.n_rows)
    }

    /// Makes the rows before `end` final, of which there are `n_rows`.
    pub(super) fn freeze(&mut self, end: LinePlace, n_rows: usize) {
        self.frozen = Some(Frozen { end, n_rows });
    }
}
