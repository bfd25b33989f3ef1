//! The list under every overlay: selection, scrolling, keys, and where its rows are.
//!
//! The owner has the items and draws those that are visible. Work per frame depends on the size of
//! the screen, not on the number of items.

use std::ops::Range;

use crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::style::Modifier;

use super::super::keymap::{Context, Keymap};
use super::super::text::{Ellipsis, Row, truncate_row, wrap_plain_at_most};
use super::super::theme::{Theme, Token};
use super::DialogCx;

/// Rows of a title at most.
const TITLE_ROWS: usize = 2;

/// What is selected, and what is visible.
#[derive(Debug, Clone)]
pub struct ListState {
    selected: usize,
    /// The first visible item.
    scroll: usize,
    /// Number of items in the last frame.
    page: usize,
}

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListStep {
    /// Another item may be selected.
    Moved,
    Confirmed,
    Cancelled,
    /// The list does not use the key.
    Ignored,
}

/// The items of a list.
pub trait ListItems {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of rows of an item.
    fn height(&self, _at: usize) -> usize {
        1
    }

    /// The rows of a visible item. The first one is set off if the item is selected.
    fn rows(&self, at: usize, is_selected: bool) -> Vec<Row>;
}

/// What is around the items.
pub struct ListFrame<'a> {
    pub title: &'a str,
    /// The row of a filter, and the column of its cursor.
    pub field: Option<(Row, u16)>,
    /// In place of items, if there are none.
    pub empty: Option<&'a str>,
    /// Below the items; `None` shows the position if not all of them are visible.
    pub status: Option<Row>,
    /// The last rows, such as hints.
    pub below: Vec<Row>,
}

/// A drawn list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListRows {
    pub rows: Vec<Row>,
    /// Row and column of the cursor in the filter; `None` without a filter.
    pub cursor: Option<(u16, u16)>,
}

impl Default for ListState {
    fn default() -> Self {
        Self::at(0)
    }
}

impl ListState {
    /// A list with this item selected.
    pub fn at(selected: usize) -> Self {
        Self { selected, scroll: 0, page: 10 }
    }

    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Number of items in the last frame.
    pub fn page(&self) -> usize {
        self.page
    }

    pub fn select(&mut self, at: usize) {
        self.selected = at;
    }

    /// The selected item is `at` now: items came or went above it. It stays in the row of the screen where
    /// it is.
    pub fn moved_to(&mut self, at: usize) {
        self.scroll = (self.scroll + at).saturating_sub(self.selected);
        self.selected = at;
    }

    /// Selects and shows the first item.
    pub fn start_over(&mut self) {
        (self.selected, self.scroll) = (0, 0);
    }

    /// Selects an item that exists, if there are `len` of them.
    pub fn limit(&mut self, len: usize) {
        self.selected = self.selected.min(len.saturating_sub(1));
    }

    /// Selects the next one of `len` items, or the first one after the last.
    pub fn select_next(&mut self, len: usize) {
        self.selected = if self.selected + 1 < len { self.selected + 1 } else { 0 };
    }

    /// Selects the one before, or the last one before the first.
    pub fn select_previous(&mut self, len: usize) {
        self.selected = self.selected.checked_sub(1).unwrap_or(len.saturating_sub(1));
    }

    /// Selects the item a page before, or after.
    pub fn turn_page(&mut self, forward: bool, len: usize) {
        self.selected = if forward {
            (self.selected + self.page).min(len.saturating_sub(1))
        } else {
            self.selected.saturating_sub(self.page)
        };
    }

    /// Moves among `len` items, around both ends unless the key is held.
    pub fn on_key(&mut self, key: &KeyEvent, keymap: &Keymap, len: usize) -> ListStep {
        let is_held = key.kind == KeyEventKind::Repeat;
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.up") if is_held && self.selected == 0 => {}
            Some("tui.select.down") if is_held && self.selected + 1 >= len => {}
            Some("tui.select.up") => self.select_previous(len),
            Some("tui.select.down") => self.select_next(len),
            Some("tui.select.pageUp") => self.turn_page(false, len),
            Some("tui.select.pageDown") => self.turn_page(true, len),
            Some("tui.select.confirm") => return ListStep::Confirmed,
            Some("tui.select.cancel") => return ListStep::Cancelled,
            _ => return ListStep::Ignored,
        }
        ListStep::Moved
    }

    /// The items that fit into `room` rows, the selected one among them: at least one, and as many as
    /// possible.
    fn window(&mut self, items: &dyn ListItems, room: usize) -> Range<usize> {
        let len = items.len();
        self.limit(len);
        if len == 0 {
            self.scroll = 0;
            return 0..0;
        }
        let mut first = self.selected;
        let mut used = items.height(first);
        let back = |first: &mut usize, used: &mut usize, limit: usize| {
            while *first > limit && *used + items.height(*first - 1) <= room {
                *first -= 1;
                *used += items.height(*first);
            }
        };
        back(&mut first, &mut used, self.scroll.min(self.selected));
        let mut end = self.selected + 1;
        while end < len && used + items.height(end) <= room {
            used += items.height(end);
            end += 1;
        }
        back(&mut first, &mut used, 0);
        (self.scroll, self.page) = (first, end - first);
        first..end
    }

    /// The visible items in at most `room` rows.
    pub fn rows(&mut self, items: &dyn ListItems, room: usize, (width, theme): (u16, &Theme)) -> Vec<Row> {
        let window = self.window(items, room.max(1));
        let mut rows = Vec::new();
        for at in window {
            let is_selected = at == self.selected;
            let mut item = items.rows(at, is_selected);
            if let Some(row) = item.first_mut().filter(|_| is_selected) {
                row.pad(width.max(1), theme.style(Token::Accent));
                row.underlay(theme.style(Token::SelectedBg));
            }
            rows.extend(item);
        }
        rows.truncate(room.max(1));
        rows
    }

    /// The list with its frame, in at most `max_rows` rows. Where they are few, the selected item comes
    /// first, then the filter, a row of hints, the title and the border.
    pub fn draw(&mut self, items: &dyn ListItems, frame: ListFrame<'_>, cx: &DialogCx<'_>) -> ListRows {
        let (width, theme) = (cx.width.max(1), cx.theme);
        let field = frame.field.filter(|_| cx.max_rows > 1);
        let n_needed = 1 + usize::from(field.is_some()) + usize::from(!frame.below.is_empty());
        let mut rows = head(frame.title, usize::from(cx.max_rows).saturating_sub(n_needed), cx);
        let mut cursor = None;
        if let Some((row, column)) = field {
            cursor = u16::try_from(rows.len()).ok().map(|row| (row, column));
            rows.push(row);
        }
        let around = rows.len() + frame.below.len() + 1;
        let room = usize::from(cx.max_rows).saturating_sub(around).max(1);
        if let Some(text) = frame.empty.filter(|_| items.is_empty()) {
            let dim = theme.style(Token::Dim);
            let mut wrapped =
                wrap_plain_at_most(text.trim_start(), width.saturating_sub(2).max(1), room, dim);
            wrapped.iter_mut().for_each(|row| row.indent("  ", dim));
            rows.extend(wrapped);
        }
        rows.extend(self.rows(items, room, (width, theme)));
        let is_whole = self.scroll == 0 && self.page >= items.len();
        let status = frame.status.or_else(|| {
            let position = || format!("  ({}/{})", self.selected + 1, items.len());
            (!is_whole && !items.is_empty()).then(|| Row::styled(position(), theme.style(Token::Dim)))
        });
        // Where there is no room for all of it, the last rows stay: they name the way out.
        let below: Vec<Row> = status.into_iter().chain(frame.below).collect();
        let free = usize::from(cx.max_rows).saturating_sub(rows.len());
        rows.extend(below.into_iter().rev().take(free).rev());
        for row in &mut rows {
            truncate_row(row, width, Ellipsis::One);
        }
        rows.truncate(usize::from(cx.max_rows.max(1)));
        let cursor = cursor.filter(|(row, _)| usize::from(*row) < rows.len());
        ListRows { rows, cursor }
    }
}

/// The border and the title in at most `max_rows` rows: the border is left out first.
fn head(title: &str, max_rows: usize, cx: &DialogCx<'_>) -> Vec<Row> {
    let (width, theme) = (cx.width.max(1), cx.theme);
    let border = || Row::styled("─".repeat(usize::from(width)), theme.style(Token::Border));
    let mut rows: Vec<Row> = (max_rows > 1).then(border).into_iter().collect();
    let n_title = (max_rows - rows.len()).min(TITLE_ROWS);
    if n_title > 0 {
        let bold = theme.style(Token::Accent).add_modifier(Modifier::BOLD);
        rows.extend(wrap_plain_at_most(title, width, n_title, bold));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crossterm::event::{KeyCode, KeyModifiers};
    use proptest::prelude::*;
    use ratatui::style::Style;

    use super::super::super::keymap::{BINDINGS, Platform};
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    struct Numbers {
        heights: Vec<usize>,
        n_drawn: Cell<usize>,
    }

    impl Numbers {
        fn new(heights: Vec<usize>) -> Self {
            Self { heights, n_drawn: Cell::new(0) }
        }
    }

    impl ListItems for Numbers {
        fn len(&self) -> usize {
            self.heights.len()
        }

        fn height(&self, at: usize) -> usize {
            self.heights[at]
        }

        fn rows(&self, at: usize, _: bool) -> Vec<Row> {
            self.n_drawn.set(self.n_drawn.get() + 1);
            (0..self.heights[at]).map(|nth| Row::styled(format!("{at}.{nth}"), Style::new())).collect()
        }
    }

    fn draw(list: &mut ListState, items: &Numbers, max_rows: u16) -> Vec<String> {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let cx = DialogCx { width: 20, max_rows, theme: &theme, keymap: &keymap };
        let frame = ListFrame {
            title: "Numbers",
            field: None,
            empty: Some("  none"),
            status: None,
            below: Vec::new(),
        };
        let drawn = list.draw(items, frame, &cx);
        let rows = drawn.rows.iter().map(|row| row.text().trim_end().to_owned());
        rows.skip_while(|row| row.starts_with('─') || row == "Numbers").collect()
    }

    #[test]
    fn items_of_several_rows_scroll_as_a_whole() {
        let items = Numbers::new(vec![2, 2, 1, 2]);
        let mut list = ListState::default();
        assert_eq!(draw(&mut list, &items, 8), ["0.0", "0.1", "1.0", "1.1", "2.0", "  (1/4)"]);
        list.select(3);
        assert_eq!(draw(&mut list, &items, 8), ["1.0", "1.1", "2.0", "3.0", "3.1", "  (4/4)"]);
        list.select(1);
        assert_eq!(draw(&mut list, &items, 8)[0], "1.0", "what is visible stays where it is");
        assert_eq!(draw(&mut list, &items, 20).len(), 7, "with room for all, there is no position");
        assert_eq!(draw(&mut list, &Numbers::new(Vec::new()), 8), ["  none"]);
    }

    #[test]
    fn only_visible_items_are_drawn_however_many_there_are() {
        let items = Numbers::new(vec![1; 100_000]);
        let mut list = ListState::default();
        for at in [0, 50_000, 99_999, 3] {
            list.select(at);
            items.n_drawn.set(0);
            let drawn = draw(&mut list, &items, 24);
            assert!(drawn.contains(&format!("{at}.0")), "{drawn:?}");
            assert_eq!(items.n_drawn.get(), 21);
        }
    }

    proptest! {
        #[test]
        fn selected_item_is_visible_after_any_keys_at_any_height(
            heights in prop::collection::vec(1_usize..4, 0..40),
            steps in prop::collection::vec((0_usize..4, 0_u16..20), 1..40),
        ) {
            let items = Numbers::new(heights);
            let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
            let mut list = ListState::default();
            for (key, max_rows) in steps {
                let code = [KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown][key];
                list.on_key(&KeyEvent::new(code, KeyModifiers::NONE), &keymap, items.len());
                let drawn = draw(&mut list, &items, max_rows);
                prop_assert!(drawn.len() <= usize::from(max_rows.max(1)));
                let selected = format!("{}.0", list.selected());
                prop_assert!(items.is_empty() || max_rows < 1 || drawn.contains(&selected), "{drawn:?}");
            }
        }
    }
}
