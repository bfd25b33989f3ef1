//! The rows of a pager: title and position, the text, the query, the keys.

use std::iter;

use ratatui::style::{Modifier, Style};

use super::super::super::text::{Ellipsis, Row, Run, truncate, truncate_row, width};
use super::super::super::theme::{Theme, Token};
use super::super::{DialogCx, Hints};
use super::search::{Note, highlighted};
use super::{HiddenText, PagedText, Pager, Place, Position, Viewport};

/// Blanks between the title and the position.
const GAP: usize = 2;

/// Rows of a screen for each row of keys.
const ROWS_PER_HINT: u16 = 5;

/// What is around the rows of a pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagerFrame {
    /// It has the whole screen.
    Screen,
    /// It covers the rows it needs, below a rule.
    Overlay,
}

/// The rows around the text in one frame.
struct Fixed {
    has_rule: bool,
    below: Vec<Row>,
    /// The column of the cursor in the first row below the text.
    cursor: Option<u16>,
}

impl Pager {
    /// The rows of a frame, at most those there is room for, and the cursor's row and column among
    /// them while a query is typed.
    pub fn render(
        &mut self,
        text: &mut dyn PagedText,
        frame: PagerFrame,
        cx: &DialogCx<'_>,
    ) -> (Vec<Row>, Option<(u16, u16)>) {
        let DialogCx { max_rows, theme, .. } = *cx;
        let width_cells = cx.width.max(1);
        let fixed = self.fixed(frame, cx);
        let n_fixed = usize::from(fixed.has_rule) + 1 + fixed.below.len();
        let mut page = usize::from(max_rows).saturating_sub(n_fixed).max(1);
        self.keep_place(text, width_cells, theme);
        if frame == PagerFrame::Overlay {
            page = self.page_needed(text, page, width_cells, theme);
        }
        self.advance(text, page, width_cells, theme);
        let (shown, last) = self.visible(text, page, width_cells, theme);
        self.last = last;
        // A search may have ended, whose note takes the place of keys.
        let mut below = self.below(fixed.below.len(), cx).0;
        below.resize(fixed.below.len(), Row::default());
        let mut rows = Vec::with_capacity(page + n_fixed);
        if fixed.has_rule {
            rows.push(Row::styled("─".repeat(usize::from(width_cells)), theme.style(Token::Border)));
        }
        rows.push(self.title_row(text.position(self.top, last), width_cells, theme));
        let n_rows = rows.len() + page;
        let is_blank = |row: &Row| row.picture.is_none() && row.text().trim().is_empty();
        let is_nothing = self.top == (0, 0) && shown.iter().all(is_blank);
        if is_nothing && (0..text.n_parts()).all(|part| text.is_read(part)) {
            rows.push(Row::styled("  Nothing to show yet", theme.style(Token::Dim)));
        } else {
            rows.extend(shown);
        }
        rows.resize(n_rows, Row::default());
        let cursor = fixed.cursor.map(|column| (u16::try_from(n_rows).unwrap_or(u16::MAX), column));
        rows.extend(below);
        for row in &mut rows {
            truncate_row(row, width_cells, Ellipsis::One);
        }
        rows.truncate(usize::from(max_rows));
        (rows, cursor.filter(|(row, _)| *row < max_rows))
    }

    /// On small screens rule and keys make room for the text.
    fn fixed(&self, frame: PagerFrame, cx: &DialogCx<'_>) -> Fixed {
        let room = usize::from(cx.max_rows).saturating_sub(2);
        let has_rule = frame == PagerFrame::Overlay && room > 2;
        let room = room.saturating_sub(usize::from(has_rule));
        let (below, cursor) = self.below(room, cx);
        Fixed { has_rule, below, cursor }
    }

    /// The query, a note, or keys, in at most `room` rows, but with the query in any case. The way
    /// out is named as soon as there is room for it.
    fn below(&self, room: usize, cx: &DialogCx<'_>) -> (Vec<Row>, Option<u16>) {
        let theme = cx.theme;
        let most = usize::from(cx.max_rows / ROWS_PER_HINT).max(1);
        let warning = |text: &str| Row::styled(text, theme.style(Token::Warning));
        // Another row with keys below it.
        let with_keys = |row: Row, hints: &Hints| {
            let n_hints = room.saturating_sub(1).min(most.saturating_sub(1).max(1));
            let hints = if n_hints > 0 { hints.rows_at_most(n_hints, cx) } else { Vec::new() };
            iter::once(row).chain(hints).collect()
        };
        if let Some(field) = &self.search.field {
            let (row, column) = field.render_after("/", cx.width.max(1), theme);
            return (with_keys(row, &Hints::confirm("search").cancel("cancel")), Some(column));
        }
        if room == 0 {
            return (Vec::new(), None);
        }
        match self.search.note {
            Some(Note::NotFound) => {
                return (vec![warning(&format!("\"{}\" was not found", self.search.typed))], None);
            }
            Some(Note::Hidden(HiddenText { place, action: (action, effect) })) => {
                let note = warning(&format!("\"{}\" is only in {place}", self.search.typed));
                return (with_keys(note, &Hints::new().key(action, effect)), None);
            }
            None => {}
        }
        let close = Hints::new().keys(&["tui.select.cancel", "tui.pager.close"], "close");
        if self.is_waiting {
            return (with_keys(warning("pi is waiting for an answer"), &close), None);
        }
        let mut hints = close.key("tui.pager.search", "search");
        if !self.search.query.is_empty() {
            hints = hints.keys(&["tui.pager.nextMatch", "tui.pager.previousMatch"], "next/previous match");
        }
        let hints = hints.keys(&["tui.pager.top", "tui.pager.bottom"], "start/end").and(&self.hints);
        (hints.rows_at_most(room.min(most), cx), None)
    }

    /// Rows for the text of an overlay: as many as it has, if there is room. An overlay does not get
    /// smaller while it is open, unless the width changes.
    fn page_needed(
        &mut self,
        text: &mut dyn PagedText,
        most: usize,
        width_cells: u16,
        theme: &Theme,
    ) -> usize {
        let mut n_rows = 0;
        for part in 0..text.n_parts() {
            n_rows += text.layout(part, width_cells, theme);
            if n_rows >= most {
                break;
            }
        }
        let before = if self.needed.0 == width_cells { self.needed.1 } else { 0 };
        self.needed = (width_cells, n_rows.max(before));
        self.needed.1.clamp(1, most)
    }

    /// The visible rows, and the place of the last one.
    fn visible(
        &self,
        text: &mut dyn PagedText,
        page: usize,
        width_cells: u16,
        theme: &Theme,
    ) -> (Vec<Row>, Place) {
        let mut view = Viewport { text, page, width_cells, theme };
        let mut rows = Vec::with_capacity(page);
        let (first, mut skip) = self.top;
        let mut last = self.top;
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        let current = theme.style(Token::Accent).add_modifier(Modifier::REVERSED);
        for part in first..view.text.n_parts() {
            let n_rows = view.layout(part);
            if view.text.is_read(part) {
                for row_idx in skip..n_rows {
                    if rows.len() >= page {
                        return (rows, last);
                    }
                    last = (part, row_idx);
                    let mark = if self.search.current == Some(last) { current } else { reversed };
                    rows.push(highlighted(view.text.row(part, row_idx), &self.search.query, mark));
                }
            } else {
                last = (part, 0);
                rows.push(Row::styled(" reading…", theme.style(Token::Dim)));
            }
            skip = 0;
            if rows.len() >= page {
                break;
            }
        }
        (rows, last)
    }

    /// The title and the position, which has no words where they would truncate the title.
    fn title_row(&self, position: Option<Position>, width_cells: u16, theme: &Theme) -> Row {
        let bold = theme.style(Token::Accent).add_modifier(Modifier::BOLD);
        let total = usize::from(width_cells);
        let Some(position) = position else {
            return Row::styled(truncate(&self.title, total, Ellipsis::One).into_owned(), bold);
        };
        let [long, short] = position.texts();
        let fits = width(&self.title) + GAP + width(&long) <= total;
        let right = if fits { long } else { short };
        let title = truncate(&self.title, total.saturating_sub(width(&right) + GAP), Ellipsis::One);
        let gap = total.saturating_sub(width(&title) + width(&right));
        Row::from_runs([
            Run::new(title.as_ref(), bold),
            Run::new(" ".repeat(gap), Style::new()),
            Run::new(right, theme.style(Token::Dim)),
        ])
    }
}
