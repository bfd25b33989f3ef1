//! The text and its cursor in byte positions, over `tui-textarea`.
//!
//! The only edits are insert and remove, and each is one step of the text area's
//! undo log, which lets [`Model::undo`] and [`Model::redo`] travel in groups of them.

use tui_textarea::{CursorMove, TextArea, WrapMode};

/// A place in the text: line, and byte within the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) byte: usize,
}

impl Place {
    pub(super) fn new(line: usize, byte: usize) -> Self {
        Self { line, byte }
    }
}

/// Maximum number of undo steps of the text area.
const MAX_EDITS: usize = 20_000;

#[derive(Debug)]
pub(super) struct Model {
    area: TextArea<'static>,
    groups: Vec<Group>,
    undone: Vec<UndoneGroup>,
    revision: u64,
}

/// Edits that are undone together.
#[derive(Debug)]
struct Group {
    edits: usize,
    before: Place,
}

/// A group that can be redone, and where the cursor was before it was undone.
#[derive(Debug)]
struct UndoneGroup {
    group: Group,
    after: Place,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { area: new_area(), groups: Vec::new(), undone: Vec::new(), revision: 0 }
    }

    pub(super) fn lines(&self) -> &[String] {
        self.area.lines()
    }

    pub(super) fn line(&self, line: usize) -> &str {
        self.lines().get(line).map_or("", String::as_str)
    }

    pub(super) fn text(&self) -> String {
        self.lines().join("\n")
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.lines(), [] | [_]) && self.line(0).is_empty()
    }

    /// Changes with every edit.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn cursor(&self) -> Place {
        let cursor = self.area.cursor();
        let line = self.line(cursor.0);
        Place::new(cursor.0, line.char_indices().nth(cursor.1).map_or(line.len(), |(at, _)| at))
    }

    pub(super) fn end(&self) -> Place {
        let last = self.lines().len().saturating_sub(1);
        Place::new(last, self.line(last).len())
    }

    /// Moves the cursor; a place outside the text is clamped.
    pub(super) fn go_to(&mut self, place: Place) {
        let row = place.line.min(self.lines().len().saturating_sub(1));
        let line = self.line(row);
        let column = line.get(..place.byte).unwrap_or(line).chars().count();
        let (near_row, near_column) = (clamp(row), clamp(column));
        self.area.move_cursor(CursorMove::Jump(near_row, near_column));
        // Jumps are limited to 65,535.
        for _ in usize::from(near_row)..row {
            self.area.move_cursor(CursorMove::Down);
        }
        if usize::from(near_row) < row {
            self.area.move_cursor(CursorMove::Head);
        }
        let from = if usize::from(near_row) < row { 0 } else { usize::from(near_column) };
        for _ in from..column {
            self.area.move_cursor(CursorMove::Forward);
        }
    }

    /// Starts a group: the following edits are undone together.
    pub(super) fn begin(&mut self) {
        let before = self.cursor();
        self.groups.pop_if(|group| group.edits == 0);
        self.groups.push(Group { edits: 0, before });
    }

    /// Inserts at the cursor, which moves to the end of the inserted text.
    pub(super) fn insert(&mut self, text: &str) {
        if !text.is_empty() && self.area.insert_str(text) {
            self.edited();
        }
    }

    /// Removes and returns the text between two places; the cursor moves there.
    pub(super) fn remove(&mut self, from: Place, to: Place) -> String {
        let (from, to) = (from.min(to), from.max(to));
        let removed = self.between(from, to);
        self.go_to(from);
        if !removed.is_empty() && self.area.delete_str(removed.chars().count()) {
            self.edited();
        }
        removed
    }

    fn between(&self, from: Place, to: Place) -> String {
        let start = |line: usize| if line == from.line { from.byte } else { 0 };
        let mut text = String::new();
        for line in from.line..=to.line {
            let all = self.line(line);
            let end = if line == to.line { to.byte } else { all.len() };
            text.push_str(all.get(start(line)..end).unwrap_or_default());
            if line < to.line {
                text.push('\n');
            }
        }
        text
    }

    fn edited(&mut self) {
        self.revision += 1;
        self.undone.clear();
        if self.groups.is_empty() {
            self.begin();
        }
        if let Some(group) = self.groups.last_mut() {
            group.edits += 1;
        }
    }

    /// Undoes the last group; `false` if there is none.
    pub(super) fn undo(&mut self) -> bool {
        while let Some(group) = self.groups.pop() {
            if group.edits > 0 {
                let after = self.cursor();
                for _ in 0..group.edits {
                    self.area.undo();
                }
                self.revision += 1;
                self.go_to(group.before);
                self.undone.push(UndoneGroup { group, after });
                return true;
            }
        }
        false
    }

    /// Redoes the group undone last; `false` if there is none, as after an edit.
    pub(super) fn redo(&mut self) -> bool {
        let Some(UndoneGroup { group, after }) = self.undone.pop() else { return false };
        for _ in 0..group.edits {
            self.area.redo();
        }
        self.revision += 1;
        self.go_to(after);
        self.groups.push(group);
        true
    }

    /// Keeps the text for good: nothing that led to it is undone.
    pub(super) fn forget_undo(&mut self) {
        self.groups.clear();
        self.undone.clear();
    }

    /// Removes the text and the undo log.
    pub(super) fn clear(&mut self) {
        self.area = new_area();
        self.groups.clear();
        self.undone.clear();
        self.revision += 1;
    }
}

fn new_area() -> TextArea<'static> {
    let mut area = TextArea::default();
    area.set_max_histories(MAX_EDITS);
    area.set_wrap_mode(WrapMode::None);
    area
}

fn clamp(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
