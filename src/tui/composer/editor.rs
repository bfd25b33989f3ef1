//! The behaviour of the editor's actions.

use super::super::term::normalize_paste;
use super::history::History;
use super::kill_ring::{KillRing, Side};
use super::layout::Layout;
use super::markers::Markers;
use super::model::{Model, Place};
use super::placeholders;
use super::words::{atoms, words};

/// The editor's actions. The ids of the keymap's editor context refer to these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorAction {
    CursorUp,
    CursorDown,
    CursorLeft,
    CursorRight,
    CursorWordLeft,
    CursorWordRight,
    CursorLineStart,
    CursorLineEnd,
    /// Moves forward to the next occurrence of the character typed next.
    JumpForward,
    JumpBackward,
    PageUp,
    PageDown,
    HistoryPrevious,
    HistoryNext,
    DeleteCharBackward,
    DeleteCharForward,
    DeleteWordBackward,
    DeleteWordForward,
    DeleteToLineStart,
    DeleteToLineEnd,
    Yank,
    YankPop,
    Undo,
    Redo,
    /// Replaces the marker at or before the cursor with its pasted text.
    ExpandPaste,
    NewLine,
}

impl EditorAction {
    /// The action with this id of the keymap.
    pub fn from_id(id: &str) -> Option<Self> {
        Some(match id {
            "tui.editor.cursorUp" => Self::CursorUp,
            "tui.editor.cursorDown" => Self::CursorDown,
            "tui.editor.cursorLeft" => Self::CursorLeft,
            "tui.editor.cursorRight" => Self::CursorRight,
            "tui.editor.cursorWordLeft" => Self::CursorWordLeft,
            "tui.editor.cursorWordRight" => Self::CursorWordRight,
            "tui.editor.cursorLineStart" => Self::CursorLineStart,
            "tui.editor.cursorLineEnd" => Self::CursorLineEnd,
            "tui.editor.jumpForward" => Self::JumpForward,
            "tui.editor.jumpBackward" => Self::JumpBackward,
            "tui.editor.pageUp" => Self::PageUp,
            "tui.editor.pageDown" => Self::PageDown,
            "tui.editor.historyPrevious" => Self::HistoryPrevious,
            "tui.editor.historyNext" => Self::HistoryNext,
            "tui.editor.deleteCharBackward" => Self::DeleteCharBackward,
            "tui.editor.deleteCharForward" => Self::DeleteCharForward,
            "tui.editor.deleteWordBackward" => Self::DeleteWordBackward,
            "tui.editor.deleteWordForward" => Self::DeleteWordForward,
            "tui.editor.deleteToLineStart" => Self::DeleteToLineStart,
            "tui.editor.deleteToLineEnd" => Self::DeleteToLineEnd,
            "tui.editor.yank" => Self::Yank,
            "tui.editor.yankPop" => Self::YankPop,
            "tui.editor.undo" => Self::Undo,
            "tui.editor.redo" => Self::Redo,
            "tui.editor.expandPaste" => Self::ExpandPaste,
            "tui.input.newLine" => Self::NewLine,
            _ => return None,
        })
    }
}

/// A multi-line text editor.
#[derive(Debug)]
pub struct Composer {
    pub(super) model: Model,
    pub(super) markers: Markers,
    pub(super) layout: Layout,
    /// Cells per row when last drawn; vertical moves depend on it.
    pub(super) width: usize,
    /// Text rows when last drawn; the size of a page.
    pub(super) height: usize,
    /// First visual row shown.
    pub(super) scroll: usize,
    history: History,
    kills: KillRing,
    last: Last,
    /// The column that vertical moves try to keep.
    column: Option<usize>,
    jump: Option<Jump>,
}

/// The kind of the previous action, if the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Other,
    Typing { blank: bool },
    Kill,
    Yank { from: Place },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
    Forward,
    Backward,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Browse {
    Older,
    Newer,
}

impl Default for Composer {
    fn default() -> Self {
        Self::new()
    }
}

impl Composer {
    pub fn new() -> Self {
        Self {
            model: Model::new(),
            markers: Markers::default(),
            layout: Layout::default(),
            width: 80,
            height: 1,
            scroll: 0,
            history: History::default(),
            kills: KillRing::default(),
            last: Last::Other,
            column: None,
            jump: None,
        }
    }

    /// The text as shown, with markers for large pastes.
    pub fn text(&self) -> String {
        self.model.text()
    }

    /// The text with every marker replaced by its pasted text.
    pub fn expanded_text(&self) -> String {
        self.markers.expand(&self.model.text())
    }

    /// The first `limit` bytes of [`Self::expanded_text`] or somewhat more, at the cost of only these.
    pub fn expanded_start(&self, limit: usize) -> String {
        self.markers.expand_start(&self.model.text(), limit)
    }

    pub fn is_empty(&self) -> bool {
        self.model.is_empty()
    }

    /// Replaces the text, as one undo step; the cursor moves to its end.
    pub fn set_text(&mut self, text: &str) {
        self.history.stop();
        self.replace_all(text);
        self.settle(Last::Other);
    }

    /// Removes and returns the expanded text. The editor is then empty, without undo, and
    /// marker numbers start at 1 again. The history is unchanged; see
    /// [`Self::add_to_history`].
    pub fn take(&mut self) -> String {
        let text = self.expanded_text();
        self.model.clear();
        self.markers.clear();
        self.history.stop();
        self.scroll = 0;
        self.settle(Last::Other);
        text
    }

    /// Makes `text` the newest entry for [`EditorAction::HistoryPrevious`].
    pub fn add_to_history(&mut self, text: &str) {
        self.history.add(text);
    }

    /// Whether the text is an unchanged entry of the history.
    pub fn is_browsing_history(&self) -> bool {
        self.history.is_browsing()
    }

    /// Replaces the history; the last text is the newest.
    pub fn set_history<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        self.history.clear();
        texts.into_iter().for_each(|text| self.history.add(text));
    }

    /// Inserts typed text, or after a jump action searches for it. Control characters
    /// are dropped.
    pub fn insert(&mut self, text: &str) {
        let text = &normalize_paste(text);
        if let Some(jump) = self.jump.take() {
            if let Some(place) = self.jump_target(text, jump) {
                self.model.go_to(place);
            }
            return self.settle(Last::Other);
        }
        let blank = text.chars().all(char::is_whitespace);
        let same_word = match self.last {
            Last::Typing { blank: before } => before || !blank,
            Last::Other | Last::Kill | Last::Yank { .. } => false,
        };
        if !same_word {
            self.model.begin();
        }
        self.model.insert(text);
        self.history.stop();
        self.settle(Last::Typing { blank });
    }

    /// Inserts pasted text, cleaned by [`normalize_paste`]. A large one becomes a
    /// marker; a path, or the address of a file, directly after a word gets a space in front.
    pub fn paste(&mut self, text: &str) {
        let text = &normalize_paste(text);
        self.jump = None;
        self.model.begin();
        let before = self.before_cursor().chars().next_back();
        // Terminals quote the paths of dropped files whose names contain spaces.
        let unquoted = text.strip_prefix(['\'', '"']).unwrap_or(text);
        let path_like = ["/", "~", "./", "file://"].iter().any(|start| unquoted.starts_with(start));
        if path_like && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.model.insert(" ");
        }
        let marker = self.markers.add(text).map(str::to_owned);
        self.model.insert(marker.as_deref().unwrap_or(text));
        self.edited();
    }

    /// The current line up to the cursor, for completion.
    pub fn before_cursor(&self) -> &str {
        let cursor = self.model.cursor();
        self.model.line(cursor.line).get(..cursor.byte).unwrap_or_default()
    }

    /// The current line from the cursor on.
    pub fn after_cursor(&self) -> &str {
        let cursor = self.model.cursor();
        self.model.line(cursor.line).get(cursor.byte..).unwrap_or_default()
    }

    /// Whether this is the first character of the text that is no blank.
    pub fn begins_with(&self, mark: char) -> bool {
        let lines = self.model.lines().iter().map(|line| line.trim_start());
        lines.into_iter().find(|line| !line.is_empty()).is_some_and(|line| line.starts_with(mark))
    }

    /// Whether the cursor is on the first line of the text.
    pub fn is_on_first_line(&self) -> bool {
        self.model.cursor().line == 0
    }

    /// Replaces the last `n_bytes` of [`Self::before_cursor`], as one undo step,
    /// for completion. If the count would split a character, nothing is removed.
    pub fn replace_before_cursor(&mut self, n_bytes: usize, with: &str) {
        let cursor = self.model.cursor();
        self.model.begin();
        let start = self.before_cursor().len().checked_sub(n_bytes);
        if let Some(start) = start.filter(|&start| self.before_cursor().is_char_boundary(start)) {
            self.model.remove(Place::new(cursor.line, start), cursor);
        }
        self.model.insert(with);
        self.edited();
    }

    /// Whether the editor will search for the next typed character instead of inserting it.
    pub fn is_jumping(&self) -> bool {
        self.jump.is_some()
    }

    pub fn cancel_jump(&mut self) {
        self.jump = None;
    }

    /// Performs an action. Returns whether it had an effect.
    pub fn handle(&mut self, action: EditorAction) -> bool {
        self.jump = None;
        let cursor = self.model.cursor();
        match action {
            EditorAction::CursorUp => self.up(),
            EditorAction::CursorDown => self.down(),
            EditorAction::PageUp => self.vertical(-self.page()),
            EditorAction::PageDown => self.vertical(self.page()),
            EditorAction::CursorLeft => self.move_to(self.before(cursor)),
            EditorAction::CursorRight => self.move_to(self.after(cursor)),
            EditorAction::CursorWordLeft => self.move_to(self.word_before(cursor)),
            EditorAction::CursorWordRight => self.move_to(self.word_after(cursor)),
            EditorAction::CursorLineStart => self.move_to(Place::new(cursor.line, 0)),
            EditorAction::CursorLineEnd => self.move_to(self.line_end(cursor)),
            EditorAction::JumpForward | EditorAction::JumpBackward => self.start_jump(action),
            EditorAction::HistoryPrevious => self.browse(Browse::Older),
            EditorAction::HistoryNext => self.browse(Browse::Newer),
            EditorAction::DeleteCharBackward => self.delete(self.before(cursor), Last::Other),
            EditorAction::DeleteCharForward => self.delete(self.after(cursor), Last::Other),
            EditorAction::DeleteWordBackward => self.delete(self.word_before(cursor), Last::Kill),
            EditorAction::DeleteWordForward => self.delete(self.word_after(cursor), Last::Kill),
            EditorAction::DeleteToLineStart => {
                // At the start of a line, delete the line break before it, so that the key can be repeated.
                let start = Place::new(cursor.line, 0);
                self.delete(if cursor > start { start } else { self.before(cursor) }, Last::Kill)
            }
            EditorAction::DeleteToLineEnd => {
                let end = self.line_end(cursor);
                self.delete(if cursor < end { end } else { self.after(cursor) }, Last::Kill)
            }
            EditorAction::Yank => self.yank(),
            EditorAction::YankPop => self.yank_pop(),
            EditorAction::Undo => self.travel(Model::undo),
            EditorAction::Redo => self.travel(Model::redo),
            EditorAction::ExpandPaste => placeholders::expand_paste(self),
            EditorAction::NewLine => self.new_line(),
        }
    }

    /// Ends what depends on the previous action, after an edit.
    pub(super) fn edited(&mut self) {
        self.history.stop();
        self.settle(Last::Other);
    }

    fn settle(&mut self, last: Last) {
        self.last = last;
        self.column = None;
    }

    fn move_to(&mut self, place: Place) -> bool {
        let moved = place != self.model.cursor();
        self.model.go_to(place);
        self.settle(Last::Other);
        moved
    }

    fn new_line(&mut self) -> bool {
        self.model.begin();
        self.model.insert("\n");
        self.edited();
        true
    }

    /// Removes the text between the cursor and `to`; a [`Last::Kill`] can be yanked.
    fn delete(&mut self, to: Place, last: Last) -> bool {
        let cursor = self.model.cursor();
        if to == cursor {
            return false;
        }
        self.model.begin();
        let removed = self.model.remove(cursor, to);
        if last == Last::Kill {
            let side = if to < cursor { Side::Before } else { Side::After };
            self.kills.kill(&removed, side, self.last == Last::Kill);
        }
        self.history.stop();
        self.settle(last);
        true
    }

    fn yank(&mut self) -> bool {
        let Some(text) = self.kills.yank() else { return false };
        let from = self.model.cursor();
        self.model.begin();
        self.model.insert(text);
        self.history.stop();
        self.settle(Last::Yank { from });
        true
    }

    fn yank_pop(&mut self) -> bool {
        let Last::Yank { from } = self.last else { return false };
        let Some(text) = self.kills.yank_earlier() else { return false };
        self.model.begin();
        let cursor = self.model.cursor();
        self.model.remove(from, cursor);
        self.model.insert(text);
        self.settle(Last::Yank { from });
        true
    }

    /// Undoes or redoes one step.
    fn travel(&mut self, step: fn(&mut Model) -> bool) -> bool {
        let has_changed = step(&mut self.model);
        self.edited();
        has_changed
    }

    fn replace_all(&mut self, text: &str) {
        self.model.begin();
        let end = self.model.end();
        self.model.remove(Place::default(), end);
        self.model.insert(&normalize_paste(text));
    }

    fn start_jump(&mut self, action: EditorAction) -> bool {
        self.settle(Last::Other);
        let is_forward = action == EditorAction::JumpForward;
        self.jump = Some(if is_forward { Jump::Forward } else { Jump::Backward });
        true
    }

    /// The next occurrence of `wanted` in the direction of the jump.
    fn jump_target(&self, wanted: &str, jump: Jump) -> Option<Place> {
        let cursor = self.model.cursor();
        let lines = self.model.lines();
        match jump {
            Jump::Forward => (cursor.line..lines.len()).find_map(|line| {
                let from = if line == cursor.line { self.after(cursor) } else { Place::new(line, 0) };
                let rest = (from.line == line).then(|| lines[line].get(from.byte..)).flatten()?;
                rest.find(wanted).map(|at| Place::new(line, from.byte + at))
            }),
            Jump::Backward => (0..=cursor.line).rev().find_map(|line| {
                let to = if line == cursor.line { cursor.byte } else { lines[line].len() };
                lines[line].get(..to)?.rfind(wanted).map(|at| Place::new(line, at))
            }),
        }
    }

    fn up(&mut self) -> bool {
        let (row, column) = self.cell();
        if row > 0 {
            return self.vertical(-1);
        }
        if column == 0 || self.history.is_browsing() || self.is_empty() {
            return self.browse(Browse::Older);
        }
        self.move_to(Place::default())
    }

    fn down(&mut self) -> bool {
        let (row, _) = self.cell();
        if row + 1 < self.layout.rows.len() {
            return self.vertical(1);
        }
        if self.history.is_browsing() {
            return self.browse(Browse::Newer);
        }
        let end = self.model.end();
        self.move_to(end)
    }

    /// Shows the next entry of the history and places the cursor so that one key reaches
    /// the entry after it.
    fn browse(&mut self, direction: Browse) -> bool {
        let entry = match direction {
            Browse::Older => self.history.older(&self.model.text()),
            Browse::Newer => self.history.newer(),
        };
        let Some(entry) = entry else { return false };
        self.replace_all(&entry);
        if direction == Browse::Older {
            self.model.go_to(Place::default());
        }
        self.settle(Last::Other);
        true
    }

    fn page(&self) -> isize {
        isize::try_from(self.height.max(1)).unwrap_or(isize::MAX)
    }

    /// Visual row and column of the cursor.
    pub(super) fn cell(&mut self) -> (usize, usize) {
        self.layout.update(&self.model, &self.markers, self.width);
        self.layout.cell_of(&self.model, self.model.cursor())
    }

    fn vertical(&mut self, rows: isize) -> bool {
        let (row, column) = self.cell();
        let target = row.saturating_add_signed(rows).min(self.layout.rows.len().saturating_sub(1));
        let wanted = self.column.unwrap_or(column);
        let place = self.layout.place_at(&self.model, &self.markers, target, wanted);
        let moved = self.move_to(place);
        self.column = Some(wanted);
        moved
    }

    fn line_end(&self, place: Place) -> Place {
        Place::new(place.line, self.model.line(place.line).len())
    }

    /// The place one atom before; at the start of a line, the end of the previous line.
    fn before(&self, place: Place) -> Place {
        if place.byte == 0 {
            return place.line.checked_sub(1).map_or(place, |line| self.line_end(Place::new(line, 0)));
        }
        let line = self.model.line(place.line);
        let atoms = atoms(line, &self.markers.ranges(line));
        let start = atoms.iter().rev().map(|atom| atom.start).find(|&start| start < place.byte);
        Place::new(place.line, start.unwrap_or(0))
    }

    /// The place one atom after; at the end of a line, the start of the next line.
    fn after(&self, place: Place) -> Place {
        let line = self.model.line(place.line);
        if place.byte >= line.len() {
            let has_next = place.line + 1 < self.model.lines().len();
            return if has_next { Place::new(place.line + 1, 0) } else { place };
        }
        let atoms = atoms(line, &self.markers.ranges(line));
        let end = atoms.iter().map(|atom| atom.end).find(|&end| end > place.byte);
        Place::new(place.line, end.unwrap_or(line.len()))
    }

    fn word_before(&self, place: Place) -> Place {
        if place.byte == 0 {
            return self.before(place);
        }
        let line = self.model.line(place.line);
        let words = words(line, &self.markers.ranges(line));
        let start = words.iter().rev().map(|word| word.start).find(|&start| start < place.byte);
        Place::new(place.line, start.unwrap_or(0))
    }

    fn word_after(&self, place: Place) -> Place {
        let line = self.model.line(place.line);
        if place.byte >= line.len() {
            return self.after(place);
        }
        let words = words(line, &self.markers.ranges(line));
        let end = words.iter().map(|word| word.end).find(|&end| end > place.byte);
        Place::new(place.line, end.unwrap_or(line.len()))
    }
}
