//! The pager: scrolls and searches a text of any length.
//!
//! It knows a text only as [`PagedText`]: parts, which may be read later, and their rows. So one pager
//! shows the transcript of a session, reports, and the output of tools. `texts` has texts that are in
//! memory, `search` finds, `draw` makes rows.

mod draw;
mod search;
#[cfg(test)]
mod tests;
mod texts;

use std::borrow::Cow;

use crossterm::event::{KeyEvent, MouseEventKind};

use super::super::keymap::{Context, Keymap};
use super::super::term::InputEvent;
use super::super::text::Row;
use super::super::theme::Theme;
use super::{Field, Hints};
use search::{Note, Search};

pub use draw::PagerFrame;
pub use texts::{LineParts, Lines, LinesText, MarkdownText, WholeText};

/// Rows of one step of the mouse wheel.
const WHEEL_ROWS: isize = 3;

/// A place in a text: a part, and a row of it.
pub type Place = (usize, usize);

/// The text of a pager.
pub trait PagedText {
    fn n_parts(&self) -> usize;

    /// Makes the rows of a part at this width, which is at least 1, and returns their number. A part
    /// that is not read yet has one row.
    fn layout(&mut self, part: usize, width_cells: u16, theme: &Theme) -> usize;

    /// A row, after a layout of its part.
    fn row(&self, part: usize, row: usize) -> Cow<'_, Row>;

    /// Lays the parts of these places out at another width, and returns where their text is then.
    fn relaid(&mut self, places: &[Place], width_cells: u16, theme: &Theme) -> Vec<Place>;

    /// Whether the rows of a part are known.
    fn is_read(&self, _part: usize) -> bool {
        true
    }

    /// Asks for a part that is not read.
    fn want(&mut self, _part: usize) {}

    /// Whether the keys that go to the previous and the next prompt stop at a part.
    fn is_stop(&self, _part: usize) -> bool {
        false
    }

    /// Which part of the text is on the screen: from `top` to `last`. `None` if that needs no words.
    fn position(&self, top: Place, last: Place) -> Option<Position>;

    /// The parts that may contain `query`, which is in lower case, in order. `None` if the answer comes
    /// later, with [`Pager::on_found`].
    fn search(&mut self, query: &str) -> Option<Vec<usize>>;

    /// What hides a text of a part that contains `query`, which is in lower case and on no row of it.
    /// Called after a layout of the part.
    fn hidden(
        &mut self,
        _part: usize,
        _query: &str,
        _width_cells: u16,
        _theme: &Theme,
    ) -> Option<HiddenText> {
        None
    }
}

/// A text that the owner of a pager has and does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenText {
    /// Where it is, such as `collapsed text`.
    pub place: &'static str,
    /// The action of the owner that shows it, and what it does, such as `expand`.
    pub action: (&'static str, &'static str),
}

/// How far a text is scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// What is counted, such as `line`.
    pub unit: &'static str,
    /// The first one that is shown; counts from 1.
    pub first: usize,
    pub last: usize,
    pub of: usize,
}

impl Position {
    /// At a single one.
    pub fn at(unit: &'static str, at: usize, of: usize) -> Self {
        Self { unit, first: at, last: at, of }
    }

    /// `rows 87–105 of 268`, and `105/268`.
    fn texts(self) -> [String; 2] {
        let Self { unit, first, last, of } = self;
        let long = match first < last {
            true => format!("{unit}s {first}–{last} of {of}"),
            false => format!("{unit} {last} of {of}"),
        };
        [long, format!("{last}/{of}")]
    }
}

/// The outcome of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagerOutcome {
    Pending,
    /// The pager does not use the input; the owner may.
    Ignored,
    Closed,
}

/// What the next frame does first.
#[derive(Debug, Clone, Copy)]
enum Move {
    Rows(isize),
    Pages(isize),
    HalfPages(isize),
    Top,
    Bottom,
    Stop {
        forward: bool,
    },
    Match {
        forward: bool,
    },
    /// To the match that was found last.
    Found,
}

/// A view of a text, with keys to scroll and search it.
#[derive(Default)]
pub struct Pager {
    title: String,
    /// Keys of the owner.
    hints: Hints,
    /// The first visible row.
    top: Place,
    /// Whether `top` was reached from below and is not read yet: its end is to be shown.
    at_end: bool,
    moves: Vec<Move>,
    search: Search,
    /// The last visible row.
    last: Place,
    /// Whether rows that are added at the end scroll the view that shows the end.
    follows: bool,
    /// Whether the last frame showed the end.
    was_at_end: bool,
    /// Whether a dialog waits until the pager is closed.
    is_waiting: bool,
    /// The width of the last frame.
    width_cells: u16,
    /// The most rows that a frame needed, and the width at which that was.
    needed: (u16, usize),
}

impl Pager {
    /// A pager at the start of a text.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A pager at the end of a text, which it follows.
    pub fn at_end(title: impl Into<String>) -> Self {
        Self { title: title.into(), follows: true, moves: vec![Move::Bottom], ..Self::default() }
    }

    /// Sets what keys of the owner do, for the last rows.
    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    pub fn set_title(&mut self, title: impl Into<String>) {
        self.title = title.into();
    }

    /// Whether a dialog waits until the pager is closed; the last row reports that.
    pub fn set_waiting(&mut self, is_waiting: bool) {
        self.is_waiting = is_waiting;
    }

    /// The first visible row.
    pub fn top(&self) -> Place {
        self.top
    }

    /// The row that the search found last.
    pub fn current_match(&self) -> Option<Place> {
        self.search.current
    }

    /// Makes `place` the first visible row, in place of moves that were not drawn yet.
    pub fn go_to(&mut self, place: Place) {
        self.moves.clear();
        (self.top, self.at_end, self.was_at_end) = (place, false, false);
    }

    /// Shows another text from its start; a search ends.
    pub fn start_over(&mut self) {
        self.search = Search::default();
        self.go_to((0, 0));
    }

    /// More or less of the same text is shown than before. What was searched and is hidden is looked for
    /// again.
    pub fn on_view_changed(&mut self) {
        if let Some(Note::Hidden(_)) = self.search.note.take() {
            self.search.waiting = Some(true);
        }
    }

    /// Whether keys are typed into the query.
    pub fn is_typing(&self) -> bool {
        self.search.field.is_some()
    }

    /// Handles a key or the wheel. `text` is searched when a query is complete.
    pub fn handle(&mut self, input: &InputEvent, keymap: &Keymap, text: &mut dyn PagedText) -> PagerOutcome {
        if self.is_typing() {
            self.on_typed(input, keymap, text);
            return PagerOutcome::Pending;
        }
        let step = match input {
            InputEvent::Key(key) => {
                self.search.note = None;
                match step(keymap, key) {
                    Some(Step::Move(step)) => step,
                    Some(Step::Search) => {
                        self.search.field = Some(Field::plain());
                        return PagerOutcome::Pending;
                    }
                    Some(Step::Close) => return PagerOutcome::Closed,
                    None => return PagerOutcome::Ignored,
                }
            }
            InputEvent::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollUp => Move::Rows(-WHEEL_ROWS),
                MouseEventKind::ScrollDown => Move::Rows(WHEEL_ROWS),
                _ => return PagerOutcome::Ignored,
            },
            _ => return PagerOutcome::Ignored,
        };
        self.moves.push(step);
        PagerOutcome::Pending
    }

    /// Shows the same text after a change of the width. Must come before anything is laid out anew.
    fn keep_place(&mut self, text: &mut dyn PagedText, width_cells: u16, theme: &Theme) {
        let before = std::mem::replace(&mut self.width_cells, width_cells);
        if before == 0 || before == width_cells {
            return;
        }
        let found = self.search.current;
        let places: Vec<Place> = std::iter::once(self.top).chain(found).collect();
        let places = text.relaid(&places, width_cells, theme);
        let was_visible = found.is_some_and(|found| (self.top..=self.last).contains(&found));
        self.top = places.first().copied().unwrap_or(self.top);
        self.search.current = found.and(places.get(1).copied());
        if was_visible {
            self.moves.insert(0, Move::Found);
        }
    }

    // Scrolling, when a frame is drawn: only then are width and height known.

    /// Performs what keys asked for since the last frame.
    fn advance(&mut self, text: &mut dyn PagedText, page: usize, width_cells: u16, theme: &Theme) {
        let mut view = Viewport { text, page, width_cells, theme };
        let stays = self.moves.is_empty() && self.search.waiting.is_none();
        if self.follows && self.was_at_end && stays {
            self.perform(Move::Bottom, &mut view);
        }
        for step in std::mem::take(&mut self.moves) {
            self.perform(step, &mut view);
        }
        if let Some(forward) = self.search.waiting {
            self.seek(forward, &mut view);
        }
        self.settle(&mut view);
        self.was_at_end = self.is_at_end(&mut view);
    }

    fn perform(&mut self, step: Move, view: &mut Viewport<'_>) {
        let page = isize::try_from(view.page).unwrap_or(isize::MAX);
        match step {
            Move::Rows(count) => self.scroll(count, view),
            Move::Pages(count) => self.scroll(count * (page - 1).max(1), view),
            Move::HalfPages(count) => self.scroll(count * (page / 2).max(1), view),
            Move::Top => (self.top, self.at_end) = ((0, 0), false),
            Move::Bottom => {
                self.top = (view.text.n_parts().saturating_sub(1), 0);
                self.at_end = true;
            }
            Move::Stop { forward } => {
                let n_parts = view.text.n_parts();
                let is_stop = |part: &usize| view.text.is_stop(*part);
                let (at, row) = self.top;
                let found = if forward {
                    (at + 1..n_parts).find(is_stop)
                } else {
                    let before = if row > 0 { at + 1 } else { at };
                    (0..before.min(n_parts)).rev().find(is_stop)
                };
                if let Some(part) = found {
                    (self.top, self.at_end) = ((part, 0), false);
                }
            }
            Move::Match { forward } => self.seek(forward, view),
            Move::Found => self.show_match(view),
        }
    }

    /// Moves the first row by `count` rows, up to a part that is not read yet.
    fn scroll(&mut self, count: isize, view: &mut Viewport<'_>) {
        let (mut at, mut row) = self.top;
        let mut left = count.unsigned_abs();
        self.at_end = false;
        let n_parts = view.text.n_parts();
        if count < 0 {
            while left > row && at > 0 {
                left -= row;
                at -= 1;
                row = view.layout(at);
                if !view.text.is_read(at) {
                    (self.top, self.at_end) = ((at, 0), true);
                    return;
                }
            }
            row = row.saturating_sub(left);
        } else {
            while at < n_parts {
                let n_rows = view.layout(at);
                if row + left < n_rows || at + 1 == n_parts {
                    row = (row + left).min(n_rows.saturating_sub(1));
                    break;
                }
                left -= n_rows.saturating_sub(row);
                (at, row) = (at + 1, 0);
            }
        }
        self.top = (at, row);
    }

    /// Corrects the first row after parts were read or changed.
    fn settle(&mut self, view: &mut Viewport<'_>) {
        let n_parts = view.text.n_parts();
        if n_parts == 0 {
            return;
        }
        self.top.0 = self.top.0.min(n_parts - 1);
        let n_rows = view.layout(self.top.0);
        if !view.text.is_read(self.top.0) {
            // It is read before the view moves on.
            return;
        }
        self.top.1 = self.top.1.min(n_rows.saturating_sub(1));
        if self.at_end {
            self.at_end = false;
            self.top.1 = n_rows.saturating_sub(1);
        }
        let mut below = 0;
        for part in self.top.0..n_parts {
            let n_rows = view.layout(part);
            below += if part == self.top.0 { n_rows.saturating_sub(self.top.1) } else { n_rows };
            if below >= view.page {
                return;
            }
        }
        let missing = isize::try_from(view.page - below).unwrap_or(0);
        self.scroll(-missing, view);
    }

    /// Whether the last row of the text is on the screen.
    fn is_at_end(&self, view: &mut Viewport<'_>) -> bool {
        let (first, row) = self.top;
        let mut n_rows = 0;
        for part in first..view.text.n_parts() {
            n_rows += view.layout(part);
            if n_rows > row + view.page {
                return false;
            }
        }
        true
    }
}

/// A text and the size of the screen.
struct Viewport<'a> {
    text: &'a mut dyn PagedText,
    /// Rows of text on the screen.
    page: usize,
    width_cells: u16,
    theme: &'a Theme,
}

impl Viewport<'_> {
    fn layout(&mut self, part: usize) -> usize {
        self.text.layout(part, self.width_cells, self.theme)
    }
}

enum Step {
    Move(Move),
    Search,
    Close,
}

/// The meaning of a key. Keys of fullscreen and of lists have theirs here too.
fn step(keymap: &Keymap, key: &KeyEvent) -> Option<Step> {
    let contexts = [Context::Pager, Context::Fullscreen, Context::Select];
    contexts.into_iter().find_map(|context| step_of(keymap.lookup(context, key)?))
}

fn step_of(id: &str) -> Option<Step> {
    Some(Step::Move(match id {
        "tui.select.up" | "tui.altScreen.lineUp" | "tui.pager.lineUp" => Move::Rows(-1),
        "tui.select.down" | "tui.altScreen.lineDown" | "tui.pager.lineDown" => Move::Rows(1),
        "tui.select.pageUp" | "tui.altScreen.pageUp" | "tui.pager.pageUp" => Move::Pages(-1),
        "tui.select.pageDown" | "tui.altScreen.pageDown" | "tui.pager.pageDown" => Move::Pages(1),
        "tui.altScreen.halfPageUp" | "tui.pager.halfPageUp" => Move::HalfPages(-1),
        "tui.altScreen.halfPageDown" | "tui.pager.halfPageDown" => Move::HalfPages(1),
        "tui.altScreen.top" | "tui.pager.top" => Move::Top,
        "tui.altScreen.bottom" | "tui.pager.bottom" => Move::Bottom,
        "tui.altScreen.previousPrompt" => Move::Stop { forward: false },
        "tui.altScreen.nextPrompt" => Move::Stop { forward: true },
        "tui.pager.nextMatch" => Move::Match { forward: true },
        "tui.pager.previousMatch" => Move::Match { forward: false },
        "tui.altScreen.search" | "tui.pager.search" => return Some(Step::Search),
        "tui.select.cancel" | "tui.pager.close" => return Some(Step::Close),
        _ => return None,
    }))
}
