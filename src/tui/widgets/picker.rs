//! A list of items with a filter.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::keymap::Keymap;
use super::super::term::InputEvent;
use super::super::text::{
    Ellipsis, Row, Run, sanitize_line, truncate, truncate_middle, width, wrap_plain_at_most,
};
use super::super::theme::{Theme, Token};
use super::fuzzy::fuzzy_rank;
use super::{DialogCx, Field, Hints, ListFrame, ListItems, ListRows, ListState, ListStep};

/// An item of the list.
#[derive(Debug, Clone)]
pub struct PickerItem<T> {
    pub value: T,
    pub label: String,
    /// Dim text in a column after the labels; may be empty. A long label is truncated before it.
    pub note: String,
    /// Below the list while the item is selected; may be empty.
    pub detail: String,
    /// Additional names that the filter searches.
    pub keywords: String,
    /// Sentences that the filter searches, with the names, for whole words of the query: in them, letters
    /// with others between them would fit anything.
    pub prose: String,
}

impl<T> PickerItem<T> {
    pub fn new(value: T, label: impl Into<String>) -> Self {
        let label = on_one_line(label);
        let [note, detail, keywords, prose] = Default::default();
        Self { value, label, note, detail, keywords, prose }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = on_one_line(note);
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = on_one_line(detail);
        self
    }

    #[must_use]
    pub fn keywords(mut self, keywords: impl Into<String>) -> Self {
        self.keywords = keywords.into();
        self
    }

    #[must_use]
    pub fn prose(mut self, prose: impl Into<String>) -> Self {
        self.prose = on_one_line(prose);
        self
    }
}

/// Texts of others may be among the items: names of models, sessions and files.
fn on_one_line(text: impl Into<String>) -> String {
    let text = text.into();
    match sanitize_line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
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

/// A list with a title, a filter field, and hints.
pub struct Picker<T> {
    title: String,
    hints: Hints,
    filterable: bool,
    /// Characters of a query that separate words as blanks do.
    separators: &'static [char],
    /// Whether both ends of a label are kept where it has no room.
    keeps_ends: bool,
    items: Vec<PickerItem<T>>,
    query: Field,
    /// Indices of the matching items, in display order.
    shown: Vec<usize>,
    /// Cells of the longest label and of the longest note among them.
    widest: (usize, usize),
    /// Positions in `shown`.
    list: ListState,
}

/// Blanks between label and note.
const GAP: usize = 2;

/// Where labels end and notes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// Notes begin in one column, after this many cells for labels.
    Aligned { label: usize },
    /// There is no room for that: each note ends at the right edge and has this many cells at most;
    /// the label gets the rest of its row.
    Right { note: usize },
}

impl Columns {
    /// Divides `room` cells among labels and notes that need this many. A note keeps up to three
    /// fifths of a row: it says what items differ in, and a label is recognised by its beginning. On
    /// rows so narrow that this beginning would be a few letters, labels that fit are whole.
    fn new(room: usize, (label, note): (usize, usize)) -> Self {
        const NARROW: usize = 24;
        let left = room.saturating_sub(GAP);
        let most = if room < NARROW { left } else { left / 2 };
        if label + note <= left || label <= most {
            Self::Aligned { label }
        } else {
            Self::Right { note: left * 3 / 5 }
        }
    }

    /// Cells for a label beside a note, before the note, and for the note.
    fn of_row(self, room: usize, note: usize) -> (usize, usize) {
        let left = room.saturating_sub(GAP);
        match self {
            Self::Aligned { label } => (label.min(left), note.min(left.saturating_sub(label))),
            Self::Right { note: most } => (left - note.min(most), note.min(most)),
        }
    }
}

impl<T: Clone> Picker<T> {
    pub fn new(title: impl Into<String>, items: Vec<PickerItem<T>>) -> Self {
        let mut picker = Self {
            title: on_one_line(title),
            hints: Hints::new(),
            filterable: true,
            separators: &[],
            keeps_ends: false,
            items,
            query: Field::plain(),
            shown: Vec::new(),
            widest: (0, 0),
            list: ListState::default(),
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

    /// Divides words of the query at these characters too.
    #[must_use]
    pub fn separating_words_at(mut self, separators: &'static [char]) -> Self {
        self.separators = separators;
        self
    }

    /// Shortens labels in the middle, for names of which many begin alike.
    #[must_use]
    pub fn keeping_ends(mut self) -> Self {
        self.keeps_ends = true;
        self
    }

    /// Replaces the items and keeps the filter; the selection stays at its position.
    pub fn set_items(&mut self, items: Vec<PickerItem<T>>) {
        let position = self.list.selected();
        self.items = items;
        self.filter();
        self.list.select(position);
        self.list.limit(self.shown.len());
    }

    pub fn set_title(&mut self, title: impl Into<String>) {
        self.title = on_one_line(title);
    }

    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// Selects the next item, or the first one after the last.
    pub fn select_next(&mut self) {
        self.list.select_next(self.shown.len());
    }

    pub fn set_query(&mut self, query: &str) {
        self.query = Field::with_text(query);
        self.filter();
    }

    pub fn query(&self) -> &str {
        self.query.text()
    }

    /// Selects the first shown item for which `wanted` holds.
    pub fn select(&mut self, wanted: impl Fn(&T) -> bool) {
        let found = self.shown.iter().position(|&item_idx| wanted(&self.items[item_idx].value));
        self.list.select(found.unwrap_or(self.list.selected()));
    }

    /// The values that the filter shows, in their order.
    pub fn shown(&self) -> impl Iterator<Item = &T> {
        self.shown.iter().map(|&item_idx| &self.items[item_idx].value)
    }

    pub fn selected(&self) -> Option<&T> {
        self.selected_item().map(|item| &item.value)
    }

    fn selected_item(&self) -> Option<&PickerItem<T>> {
        self.items.get(*self.shown.get(self.list.selected())?)
    }

    fn filter(&mut self) {
        let texts: Vec<String> =
            self.items.iter().map(|item| format!("{} {}", item.label, item.keywords)).collect();
        let query = self.query.text().replace(self.separators, " ");
        self.shown = fuzzy_rank(&query, texts.iter().map(String::as_str));
        let query = query.to_lowercase();
        let is_in_prose = |at: &usize| {
            let prose = &self.items[*at].prose;
            let text = format!("{} {prose}", texts[*at]).to_lowercase();
            !prose.is_empty() && query.split_whitespace().all(|word| text.contains(word))
        };
        let named: HashSet<usize> = self.shown.iter().copied().collect();
        let others = (0..self.items.len()).filter(|at| !named.contains(at));
        self.shown.extend(others.filter(is_in_prose));
        self.list.start_over();
        let items = self.shown.iter().map(|&item_idx| &self.items[item_idx]);
        self.widest = items.fold((0, 0), |(label, note), item| {
            (label.max(width(&sanitize_line(&item.label))), note.max(width(&sanitize_line(&item.note))))
        });
    }

    pub fn handle(&mut self, event: &InputEvent, keymap: &Keymap) -> PickerOutcome<T> {
        let key = match event {
            InputEvent::Key(key) => key,
            InputEvent::Paste(_) if self.filterable => return self.on_typed(event, keymap),
            _ => return PickerOutcome::Ignored,
        };
        match self.list.on_key(key, keymap, self.shown.len()) {
            ListStep::Moved => {}
            ListStep::Confirmed => {
                return self.selected().cloned().map_or(PickerOutcome::Pending, PickerOutcome::Chosen);
            }
            ListStep::Cancelled => return PickerOutcome::Cancelled,
            ListStep::Ignored if !self.filterable => return PickerOutcome::Ignored,
            ListStep::Ignored => return self.on_typed(event, keymap),
        }
        PickerOutcome::Pending
    }

    fn on_typed(&mut self, event: &InputEvent, keymap: &Keymap) -> PickerOutcome<T> {
        let before = self.query.text().to_owned();
        if !self.query.handle(event, keymap) {
            return PickerOutcome::Ignored;
        }
        if self.query.text() != before {
            self.filter();
        }
        PickerOutcome::Pending
    }

    /// The picker in at most `max_rows` rows: as many items as fit between the fixed
    /// rows, at least one.
    pub fn render(&mut self, cx: &DialogCx<'_>) -> ListRows {
        let (width_cells, theme) = (cx.width.max(1), cx.theme);
        let field = self.filterable.then(|| self.query.render(width_cells, theme));
        let below = self.rows_below(cx);
        let room = usize::from(width_cells).saturating_sub(2);
        let columns = Columns::new(room, self.widest);
        let Self { list, items, shown, title, keeps_ends, .. } = self;
        let items = ShownItems { items, shown, room, columns, keeps_ends: *keeps_ends, theme };
        let empty = Some("  No matches");
        list.draw(&items, ListFrame { title, field, empty, status: None, below }, cx)
    }

    fn rows_below(&self, cx: &DialogCx<'_>) -> Vec<Row> {
        let mut rows = self.detail_rows(cx);
        let hints = if self.shown.is_empty() { &self.hints.without_item() } else { &self.hints };
        rows.extend(hints.rows(cx));
        rows
    }

    /// What is said about the selected item, in as many rows as any of the items needs, so that the
    /// list stays where it is.
    fn detail_rows(&self, cx: &DialogCx<'_>) -> Vec<Row> {
        let width_cells = cx.width.max(1);
        let most = usize::from(cx.max_rows / 8).clamp(1, 3);
        let style = cx.theme.style(Token::Muted);
        let rows_of = |item: &PickerItem<T>, most: usize| -> Vec<Row> {
            if item.detail.is_empty() {
                return Vec::new();
            }
            let mut rows = wrap_plain_at_most(
                &sanitize_line(&item.detail),
                width_cells.saturating_sub(2).max(1),
                most,
                style,
            );
            rows.iter_mut().for_each(|row| row.indent("  ", style));
            rows
        };
        let is_long = |item: &&PickerItem<T>| width(&item.detail) + 2 > usize::from(width_cells);
        let items = self.shown.iter().map(|&item_idx| &self.items[item_idx]);
        let needed = items.filter(is_long).map(|item| rows_of(item, most).len()).max().unwrap_or_default();
        let mut rows = self.selected_item().map(|item| rows_of(item, most)).unwrap_or_default();
        rows.resize(rows.len().max(needed), Row::default());
        rows
    }
}

/// The items that match, as rows.
struct ShownItems<'a, T> {
    items: &'a [PickerItem<T>],
    shown: &'a [usize],
    /// Cells of a row.
    room: usize,
    columns: Columns,
    keeps_ends: bool,
    theme: &'a Theme,
}

impl<T> ListItems for ShownItems<'_, T> {
    fn len(&self) -> usize {
        self.shown.len()
    }

    /// The label and, in its column, the note.
    fn rows(&self, at: usize, is_selected: bool) -> Vec<Row> {
        let item = &self.items[self.shown[at]];
        let style = self.theme.style(if is_selected { Token::Accent } else { Token::Text });
        let (label, note) = (sanitize_line(&item.label), sanitize_line(&item.note));
        let (before, note_cells) =
            if note.is_empty() { (self.room, 0) } else { self.columns.of_row(self.room, width(&note)) };
        let label = match self.keeps_ends {
            true => truncate_middle(&label, before),
            false => truncate(&label, before, Ellipsis::One),
        };
        let mut row = Row::from_runs([
            Run::new(if is_selected { "→ " } else { "  " }, style),
            Run::new(label.as_ref(), style),
        ]);
        if note_cells > 0 {
            let note = truncate(&note, note_cells, Ellipsis::One);
            row.push(Run::new(" ".repeat(before.saturating_sub(width(&label)) + GAP), style));
            row.push(Run::new(note.as_ref(), self.theme.style(Token::Muted)));
        }
        vec![row]
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

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

    fn rendered(picker: &mut Picker<usize>, width: u16, max_rows: u16) -> ListRows {
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
        assert!(!drawn(&mut list, 80, 20).concat().contains("choose"), "there is nothing to choose");
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
        assert_eq!(found("timeout waits"), ["timeout"], "names and prose together");
        assert_eq!(found("hwlong"), [""; 0]);
    }

    #[test]
    fn notes_stay_in_their_column_however_long_labels_are() {
        let item = |label: &str, note: &str| PickerItem::new(0, label).note(note);
        let items =
            || vec![item("use tabs instead of spaces in all files", "steering"), item("stop", "follow-up")];
        let check = |width: u16, expected: [&str; 2]| {
            let mut list = Picker::new("Queue", items()).without_filter();
            assert_eq!(drawn(&mut list, width, 20)[2..4], expected, "{width}");
        };
        check(20, ["→ use tab…  steering", "  stop     follow-up"]);
        check(40, ["→ use tabs instead of spaces …  steering", "  stop                         follow-up"]);
        check(
            80,
            [
                "→ use tabs instead of spaces in all files  steering",
                "  stop                                     follow-up",
            ],
        );
    }

    #[test]
    fn label_and_note_share_the_room() {
        let check = |room, widest, note, expected| {
            assert_eq!(Columns::new(room, widest).of_row(room, note), expected, "{room} {widest:?} {note}");
        };
        // Everything fits.
        check(18, (4, 6), 6, (4, 6));
        // Short labels stay whole.
        check(18, (3, 40), 40, (3, 13));
        // Long ones leave to each note what it needs, within limits.
        check(18, (40, 9), 2, (14, 2));
        check(18, (40, 9), 9, (7, 9));
        check(18, (40, 40), 40, (7, 9));
        check(1, (3, 40), 40, (0, 0));
        check(0, (3, 40), 40, (0, 0));
    }

    #[test]
    fn long_details_wrap_and_the_list_stays_where_it_is() {
        let item = |label: &str, detail: &str| PickerItem::new(0, label).detail(detail);
        let items = vec![item("a", "two words each row"), item("b", "short")];
        let mut list = Picker::new("A long title", items).without_filter();
        let first = drawn(&mut list, 12, 24);
        assert_eq!(first[1..], ["A long title", "→ a", "  b", "  two words", "  each row"]);
        press(&mut list, &[KeyCode::Down]);
        assert_eq!(drawn(&mut list, 12, 24)[1..], ["A long title", "  a", "→ b", "  short", ""]);
        assert_eq!(drawn(&mut list, 8, 9)[1..4], ["A long", "title", "  a"]);
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
    fn selected_item_is_shown_first_where_rows_are_few() {
        let mut list = picker();
        press(&mut list, &[KeyCode::Down]);
        let (border, title, item, hint) = ("─".repeat(20), "Pick one", "→ beta   note", "enter: choose");
        let expected = [&border, title, ">", item, hint];
        assert_eq!(drawn(&mut list, 20, 5), expected);
        assert_eq!(drawn(&mut list, 20, 4), expected[1..]);
        assert_eq!(drawn(&mut list, 20, 3), expected[2..]);
        assert_eq!(drawn(&mut list, 20, 2), expected[2..4]);
        assert_eq!(drawn(&mut list, 20, 1), [item]);
        let mut list = picker().without_filter();
        assert_eq!(drawn(&mut list, 20, 3), [title, "→ alpha  note", hint]);
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
