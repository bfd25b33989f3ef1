//! A list of items with a filter.

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::style::Modifier;

use super::super::keymap::{Chord, Context, Keymap};
use super::super::term::InputEvent;
use super::super::text::{Ellipsis, Row, Run, sanitize_line, truncate, truncate_row, width};
use super::super::theme::{Theme, Token};
use super::fuzzy::fuzzy_rank;
use super::{DialogCx, Hints};

/// An item of the list.
#[derive(Debug, Clone)]
pub struct PickerItem<T> {
    pub value: T,
    pub label: String,
    /// Dim text after the label; may be empty.
    pub note: String,
    /// Below the list while the item is selected; may be empty.
    pub detail: String,
    /// Additional names that the filter searches.
    pub keywords: String,
    /// Sentences that the filter searches for whole words of the query: in them, letters with
    /// others between them would fit anything.
    pub prose: String,
}

impl<T> PickerItem<T> {
    pub fn new(value: T, label: impl Into<String>) -> Self {
        let label = label.into();
        let [note, detail, keywords, prose] = Default::default();
        Self { value, label, note, detail, keywords, prose }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    #[must_use]
    pub fn keywords(mut self, keywords: impl Into<String>) -> Self {
        self.keywords = keywords.into();
        self
    }

    #[must_use]
    pub fn prose(mut self, prose: impl Into<String>) -> Self {
        self.prose = prose.into();
        self
    }
}

/// The outcome of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerOutcome<T> {
    /// No decision yet.
    Pending,
    /// The picker does not use the key; the owner may.
    Ignored,
    Chosen(T),
    Cancelled,
}

/// A drawn picker.
#[derive(Debug, Clone, PartialEq)]
pub struct PickerRows {
    pub rows: Vec<Row>,
    /// Row and column of the cursor in the filter; `None` without a filter.
    pub cursor: Option<(u16, u16)>,
}

/// A list with a title, a filter field, and hints.
#[derive(Debug)]
pub struct Picker<T> {
    title: String,
    hints: Hints,
    filterable: bool,
    items: Vec<PickerItem<T>>,
    query: String,
    /// Indices of the matching items, in display order.
    shown: Vec<usize>,
    /// Position in `shown`.
    selected: usize,
    scroll: usize,
    page: usize,
}

impl<T: Clone> Picker<T> {
    pub fn new(title: impl Into<String>, items: Vec<PickerItem<T>>) -> Self {
        let mut picker = Self {
            title: title.into(),
            hints: Hints::new(),
            filterable: true,
            items,
            query: String::new(),
            shown: Vec::new(),
            selected: 0,
            scroll: 0,
            page: 10,
        };
        picker.filter();
        picker
    }

    /// Sets the last rows: the meaning of keys.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// A plain list, for a few items, without a filter.
    #[must_use]
    pub fn without_filter(mut self) -> Self {
        self.filterable = false;
        self
    }

    /// Replaces the items and keeps the filter; the selection stays at its position.
    pub fn set_items(&mut self, items: Vec<PickerItem<T>>) {
        let position = self.selected;
        self.items = items;
        self.filter();
        self.selected = position.min(self.shown.len().saturating_sub(1));
    }

    pub fn set_title(&mut self, title: impl Into<String>) {
        self.title = title.into();
    }

    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// Selects the next item, or the first one after the last.
    pub fn select_next(&mut self) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = if self.selected < last { self.selected + 1 } else { 0 };
    }

    pub fn set_query(&mut self, query: &str) {
        query.clone_into(&mut self.query);
        self.filter();
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    /// Selects the first shown item for which `wanted` holds.
    pub fn select(&mut self, wanted: impl Fn(&T) -> bool) {
        let found = self.shown.iter().position(|&item_idx| wanted(&self.items[item_idx].value));
        self.selected = found.unwrap_or(self.selected);
    }

    /// The values that the filter shows, in their order.
    pub fn shown(&self) -> impl Iterator<Item = &T> {
        self.shown.iter().map(|&item_idx| &self.items[item_idx].value)
    }

    pub fn selected(&self) -> Option<&T> {
        self.selected_item().map(|item| &item.value)
    }

    fn selected_item(&self) -> Option<&PickerItem<T>> {
        self.items.get(*self.shown.get(self.selected)?)
    }

    fn filter(&mut self) {
        let texts: Vec<String> =
            self.items.iter().map(|item| format!("{} {}", item.label, item.keywords)).collect();
        self.shown = fuzzy_rank(&self.query, texts.iter().map(String::as_str));
        let query = self.query.to_lowercase();
        let is_in_prose = |item: &PickerItem<T>| {
            let prose = item.prose.to_lowercase();
            !prose.is_empty() && query.split_whitespace().all(|word| prose.contains(word))
        };
        let named: HashSet<usize> = self.shown.iter().copied().collect();
        let others = (0..self.items.len()).filter(|at| !named.contains(at));
        self.shown.extend(others.filter(|at| is_in_prose(&self.items[*at])));
        (self.selected, self.scroll) = (0, 0);
    }

    pub fn handle(&mut self, event: &InputEvent, keymap: &Keymap) -> PickerOutcome<T> {
        let key = match event {
            InputEvent::Key(key) => key,
            InputEvent::Paste(text) if self.filterable => {
                self.query.push_str(&sanitize_line(text));
                self.filter();
                return PickerOutcome::Pending;
            }
            _ => return PickerOutcome::Ignored,
        };
        let last = self.shown.len().saturating_sub(1);
        match keymap.lookup(Context::Select, key) {
            // Wraps around at both ends.
            Some("tui.select.up") => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            Some("tui.select.down") => self.select_next(),
            Some("tui.select.pageUp") => self.selected = self.selected.saturating_sub(self.page),
            Some("tui.select.pageDown") => self.selected = (self.selected + self.page).min(last),
            Some("tui.select.confirm") => {
                return self.selected().cloned().map_or(PickerOutcome::Pending, PickerOutcome::Chosen);
            }
            Some("tui.select.cancel") => return PickerOutcome::Cancelled,
            _ if !self.filterable => return PickerOutcome::Ignored,
            _ => {
                let held = key.modifiers;
                match (key.code, Chord::typed(key)) {
                    (_, Some(c)) => self.query.push(c),
                    (KeyCode::Backspace, _) if held.is_empty() => drop(self.query.pop()),
                    (KeyCode::Char('u'), _) if held == KeyModifiers::CONTROL => self.query.clear(),
                    (KeyCode::Char('w'), _) if held == KeyModifiers::CONTROL => {
                        let kept = self.query.trim_end().rfind(' ').map_or(0, |at| at + 1);
                        self.query.truncate(kept);
                    }
                    _ => return PickerOutcome::Ignored,
                }
                self.filter();
            }
        }
        PickerOutcome::Pending
    }

    /// The picker in at most `max_rows` rows: as many items as fit between the fixed
    /// rows, at least one.
    pub fn render(&mut self, cx: &DialogCx<'_>) -> PickerRows {
        let DialogCx { width, max_rows, theme, .. } = *cx;
        let width_cells = width.max(1);
        let mut rows = vec![
            Row::styled("─".repeat(usize::from(width_cells)), theme.style(Token::Border)),
            Row::styled(self.title.clone(), theme.style(Token::Accent).add_modifier(Modifier::BOLD)),
        ];
        let mut cursor = None;
        if self.filterable {
            let row = Row::from_runs([
                Run::new("> ", theme.style(Token::Muted)),
                Run::new(self.query.clone(), theme.style(Token::Text)),
            ]);
            let column = row.width().min(usize::from(width_cells - 1));
            cursor = Some((u16::try_from(rows.len()).unwrap_or(0), u16::try_from(column).unwrap_or(0)));
            rows.push(row);
        }

        let below = self.rows_below(cx);
        let room = usize::from(max_rows).saturating_sub(rows.len() + below.len() + 1).max(1);
        self.page = room;
        self.scroll = self.scroll.min(self.shown.len().saturating_sub(room));
        self.scroll = self.scroll.clamp((self.selected + 1).saturating_sub(room), self.selected);
        if self.shown.is_empty() {
            rows.push(Row::styled("  No matches", theme.style(Token::Dim)));
        }
        let visible = self.shown.iter().enumerate().skip(self.scroll).take(room);
        rows.extend(
            visible.map(|(position, &item_idx)| self.item_row(position, item_idx, width_cells, theme)),
        );
        if self.shown.len() > room {
            let count = format!("  ({}/{})", self.selected + 1, self.shown.len());
            rows.push(Row::styled(count, theme.style(Token::Dim)));
        }
        rows.extend(below);
        for row in &mut rows {
            truncate_row(row, width_cells, Ellipsis::One);
        }
        rows.truncate(usize::from(max_rows.max(1)));
        PickerRows { rows, cursor }
    }

    fn rows_below(&self, cx: &DialogCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        let mut rows = Vec::new();
        let detail = self.selected_item().map(|item| item.detail.as_str()).unwrap_or_default();
        if !detail.is_empty() {
            rows.push(Row::styled(format!("  {}", sanitize_line(detail)), theme.style(Token::Muted)));
        }
        rows.extend(self.hints.rows(cx));
        rows
    }

    fn item_row(&self, position: usize, item_idx: usize, width_cells: u16, theme: &Theme) -> Row {
        let item = &self.items[item_idx];
        let is_selected = position == self.selected;
        let style = theme.style(if is_selected { Token::Accent } else { Token::Text });
        let room = usize::from(width_cells).saturating_sub(2);
        let label = sanitize_line(&item.label);
        let label = truncate(&label, room, Ellipsis::One);
        let mut row = Row::from_runs([
            Run::new(if is_selected { "→ " } else { "  " }, style),
            Run::new(label.as_ref(), style),
        ]);
        let left = room.saturating_sub(width(&label) + 2);
        if !item.note.is_empty() && left > 3 {
            let note = sanitize_line(&item.note);
            let note = truncate(&note, left, Ellipsis::One);
            row.push(Run::new(format!("  {note}"), theme.style(Token::Muted)));
        }
        if is_selected {
            row.pad(width_cells, style);
            row.underlay(theme.style(Token::SelectedBg));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::super::super::keymap::{BINDINGS, Platform};
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    fn theme() -> Theme {
        Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap()
    }

    fn picker() -> Picker<usize> {
        let names = ["alpha", "beta", "gamma", "delta"];
        let items = names.iter().enumerate();
        let items =
            items.map(|(n, name)| PickerItem::new(n, *name).note("note").detail(format!("About {name}")));
        Picker::new("Pick one", items.collect()).hints(Hints::confirm("choose"))
    }

    fn press(picker: &mut Picker<usize>, codes: &[KeyCode]) -> PickerOutcome<usize> {
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        let mut outcome = PickerOutcome::Pending;
        for &code in codes {
            outcome = picker.handle(&InputEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)), &keymap);
        }
        outcome
    }

    fn rendered(picker: &mut Picker<usize>, width: u16, max_rows: u16) -> PickerRows {
        let keymap = Keymap::new(&[BINDINGS], Platform::Unix);
        picker.render(&DialogCx { width, max_rows, theme: &theme(), keymap: &keymap })
    }

    fn drawn(picker: &mut Picker<usize>, width: u16, max_rows: u16) -> Vec<String> {
        let drawn = rendered(picker, width, max_rows);
        drawn.rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn keys_move_filter_choose_and_cancel() {
        let mut list = picker();
        assert_eq!(press(&mut list, &[KeyCode::Up]), PickerOutcome::Pending);
        assert_eq!(list.selected(), Some(&3));
        assert_eq!(
            press(&mut list, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]),
            PickerOutcome::Chosen(1)
        );
        assert_eq!(press(&mut list, &[KeyCode::Char('g'), KeyCode::Enter]), PickerOutcome::Chosen(2));
        assert_eq!(press(&mut list, &[KeyCode::Char('z'), KeyCode::Enter]), PickerOutcome::Pending);
        assert_eq!(press(&mut list, &[KeyCode::Backspace, KeyCode::Enter]), PickerOutcome::Chosen(2));
        assert_eq!(press(&mut list, &[KeyCode::F(5)]), PickerOutcome::Ignored);
        assert_eq!(press(&mut list, &[KeyCode::Esc]), PickerOutcome::Cancelled);
    }

    #[test]
    fn prose_is_found_by_whole_parts_and_below_names() {
        let item = |name: &str, prose: &str| PickerItem::new(name.to_owned(), name).prose(prose);
        let found = |query: &str| {
            let items = vec![item("timeout", "How long a retry waits"), item("retry", "Repeat what failed")];
            let mut list = Picker::new("Pick one", items);
            list.set_query(query);
            list.shown().cloned().collect::<Vec<_>>()
        };
        assert_eq!(found("retry"), ["retry", "timeout"]);
        assert_eq!(found("Waits long"), ["timeout"]);
        assert_eq!(found("hwlong"), [""; 0]);
    }

    #[test]
    fn rows_scroll_with_the_selection() {
        let mut list = picker();
        press(&mut list, &[KeyCode::Up]);
        let expected = [
            "────────────────────",
            "Pick one",
            ">",
            "  gamma  note",
            "→ delta  note",
            "  (4/4)",
            "  About delta",
            "enter: choose",
        ];
        assert_eq!(drawn(&mut list, 20, 8), expected);
        assert_eq!(rendered(&mut list, 20, 8).cursor, Some((2, 2)));
    }

    #[test]
    fn any_size_is_survived() {
        let mut list = picker();
        for width in 0..8 {
            for max_rows in 0..9 {
                let drawn = rendered(&mut list, width, max_rows);
                assert!(drawn.rows.len() <= usize::from(max_rows.max(1)));
                assert!(drawn.rows.iter().all(|row| row.width() <= usize::from(width.max(1))));
            }
        }
    }
}
