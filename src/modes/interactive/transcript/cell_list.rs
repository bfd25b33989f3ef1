//! The cells of the transcript with their rows.
//!
//! Cells before `first_live` are settled and drawn, and stay untouched
//! until width, theme or view change; the cost of a frame therefore depends only on the
//! live cells. Stable rows never change, whatever happens to their cell
//! later, because the terminal already owns them. Cells so far above the end that nothing
//! would draw them again leave memory with their rows, so that a session can go on for any
//! time; the session's file has their content.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use ratatui::style::Style;

use crate::tui::text::{LinePlace, Row, wrap_plain};
use crate::tui::theme::Token;
use crate::util::counted;

use super::cells::{Cell, CellKind};
use super::places::Arriving;
use super::remarks::Remarks;
use super::render::{RenderCx, ViewSettings, indented, side};

/// Maximum number of rows of a replay that the user asked for, approximately.
const REPLAY_ROWS: usize = 5_000;

/// The same for a session that is shown for the first time, and after a change of width or
/// view: several screens, without a delay.
const RECENT_ROWS: usize = 400;

/// Rows of one cell, as last drawn.
#[derive(Debug, Default)]
pub(super) struct Painted {
    pub(super) rows: Vec<Row>,
    /// Number of leading rows that will not change.
    pub(super) stable: usize,
}

impl Painted {
    /// Replaces the rows that may still change.
    pub(super) fn replace(&mut self, rows: Vec<Row>) {
        let stable = self.stable;
        self.rows.truncate(stable);
        self.rows.extend(rows.into_iter().skip(stable));
    }

    fn settle(&mut self) {
        self.stable = self.rows.len();
        self.rows.shrink_to_fit();
    }
}

#[derive(Debug)]
struct Slot {
    cell: Cell,
    painted: Painted,
    dirty: bool,
    /// Number of rows of this cell and all before it.
    end: usize,
    /// Number of messages that had ended before it was added.
    message: usize,
    /// Whether it is open where the view has it closed, or the other way round.
    is_toggled: bool,
}

/// The inputs of settled cells' rows.
#[derive(Debug, PartialEq)]
struct Key {
    width: u16,
    theme: u64,
    view: ViewSettings,
}

impl Key {
    fn new(cx: &RenderCx<'_>) -> Self {
        Self { width: cx.width, theme: cx.theme.generation(), view: cx.view.clone() }
    }

    fn is_of(&self, cx: &RenderCx<'_>) -> bool {
        self.width == cx.width && self.theme == cx.theme.generation() && self.view == *cx.view
    }
}

/// The id of a cell of kind `T` in its list, until the list is reset.
pub(super) struct CellId<T> {
    index: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> CellId<T> {
    fn new(index: usize) -> Self {
        Self { index, kind: PhantomData }
    }

    /// Its position among all cells.
    pub(super) fn index(self) -> usize {
        self.index
    }
}

impl<T> Clone for CellId<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for CellId<T> {}

impl<T> fmt::Debug for CellId<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CellId({})", self.index)
    }
}

/// How many cells are drawn when everything is drawn again.
#[derive(Debug, Clone, Copy, Default)]
enum Extent {
    /// Several screens.
    #[default]
    Recent,
    /// The same, and all cells from this one on.
    Since(usize),
    /// As many as are kept.
    Whole,
}

#[derive(Debug, Default)]
pub(super) struct CellList {
    slots: Vec<Slot>,
    first_live: usize,
    /// Cells before this one have no rows.
    first_shown: usize,
    /// Cells before this one, except the first, are released. It begins a message.
    first_kept: usize,
    /// Number of prompts and answers that have ended.
    n_messages: usize,
    /// Number of entries of the session without a cell; `None` if unknown.
    n_earlier: Option<usize>,
    /// The line about hidden entries, above all cells except the first.
    lead: Vec<Row>,
    key: Option<Key>,
    /// Whether the first cell changed, although it is settled.
    is_first_stale: bool,
    next_replay: Extent,
    keeps_all: bool,
    /// Number of cells in the last layout; those after them have no rows yet.
    n_measured: usize,
    stable: usize,
    renders: u64,
    /// Of released cells, what no entry shows again.
    remarks: Remarks,
}

impl CellList {
    /// Drops all cells from `len` on; the caller clears the screen.
    pub(super) fn reset(&mut self, len: usize, n_earlier: Option<usize>) {
        self.slots.truncate(len);
        self.first_live = self.first_live.min(len);
        self.first_kept = 1;
        self.n_messages = 0;
        self.n_measured = self.n_measured.min(len);
        self.n_earlier = n_earlier;
        self.key = None;
        self.next_replay = Extent::Recent;
        self.remarks = Remarks::default();
    }

    /// What stood between the entries of released cells.
    pub(super) fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// The same of all cells, whether they are in memory or not.
    pub(super) fn all_remarks(&self) -> Remarks {
        let mut remarks = self.remarks.clone();
        let kept = self.slots.iter().skip(self.first_kept.max(1));
        remarks.copy(kept.map(|slot| (slot.message, &slot.cell)));
        remarks
    }

    /// Draws all cells in every layout.
    pub(super) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Draws as many cells as possible at the next layout; the caller clears the screen.
    pub(super) fn replay_whole(&mut self) {
        self.key = None;
        self.next_replay = Extent::Whole;
    }

    /// Keeps drawing the cell of row `index` and those after it.
    pub(super) fn keep_since(&mut self, index: usize) {
        if let Some((found, _)) = self.cell_at(index) {
            self.keep_since_cell(found);
        }
    }

    /// Keeps drawing this cell and those after it.
    pub(super) fn keep_since_cell(&mut self, index: usize) {
        self.next_replay = Extent::Since(index);
    }

    /// Whether a layout for `cx` draws only live cells.
    pub(super) fn is_laid_out(&self, cx: &RenderCx<'_>) -> bool {
        !self.is_first_stale && self.has_key(cx)
    }

    fn has_key(&self, cx: &RenderCx<'_>) -> bool {
        self.key.as_ref().is_some_and(|key| key.is_of(cx))
    }

    /// Draws the first cell again at the next layout. The rows of the others keep their content;
    /// their indices change.
    pub(super) fn redraw_first(&mut self) {
        self.is_first_stale = true;
    }

    /// Draws everything again at the next layout; the caller clears the
    /// screen.
    pub(super) fn invalidate(&mut self) {
        self.key = None;
    }

    /// Called when a prompt or an answer of the session has ended.
    pub(super) fn on_message(&mut self) {
        self.n_messages += 1;
    }

    /// The message with which the cells would begin if those were released that no replay would
    /// draw: whole messages whose rows are before row `limit`. `None` if there are few.
    pub(super) fn releasable(&self, limit: usize) -> Option<usize> {
        let first = self.first_kept.max(1);
        let end = limit.min(self.len().saturating_sub(REPLAY_ROWS));
        // Seldom, and many at once.
        if end < self.end_of(first - 1) + REPLAY_ROWS {
            return None;
        }
        let last = self.slots.partition_point(|slot| slot.end <= end).min(self.first_live);
        let message = self.slots.get(last)?.message;
        (message > self.slots.get(first)?.message).then_some(message)
    }

    /// Releases the cells before a message of [`Self::releasable`]. They are not asked for again
    /// before [`Self::restart`].
    pub(super) fn release(&mut self, message: usize) {
        let first = self.first_kept.max(1);
        let last = self.slots.partition_point(|slot| slot.message < message).min(self.first_live);
        let released = self.slots.get_mut(first..last).unwrap_or_default();
        self.remarks.take(released.iter_mut().map(|slot| (slot.message, &mut slot.cell)));
        released.iter_mut().for_each(|slot| slot.painted = Painted::default());
        self.first_kept = last.max(first);
        self.first_shown = self.first_shown.max(last);
    }

    /// The message with which the kept cells begin: number of prompts and answers before it.
    pub(super) fn first_message(&self) -> usize {
        self.slots.get(self.first_kept).filter(|_| self.has_released()).map_or(0, |slot| slot.message)
    }

    /// Draws everything again at the next layout, from this cell on if it is kept; the caller
    /// clears the screen.
    pub(super) fn redraw_since(&mut self, index: usize) {
        self.key = None;
        self.next_replay = Extent::Since(index);
    }

    /// Called before rows are asked for from the first one on: if some of them are released,
    /// everything is drawn again.
    pub(super) fn restart(&mut self) {
        if self.first_kept > 1 && self.end_of(self.first_kept - 1) > self.end_of(0) {
            self.key = None;
        }
    }

    /// The first row after the header, the line about hidden entries and released cells.
    pub(super) fn body(&self) -> usize {
        self.end_of(self.first_kept.max(1) - 1).min(self.len())
    }

    /// Number of rows of this cell and all before it.
    fn end_of(&self, index: usize) -> usize {
        self.slots.get(index).map_or(0, |slot| slot.end)
    }

    /// Adds a cell below the others.
    pub(super) fn push<T: CellKind>(&mut self, cell: T) -> CellId<T> {
        let cell = cell.into_cell();
        if let Some(last) = self.slots.last_mut() {
            last.dirty |= last.cell.succeeded();
        }
        let message = self.n_messages;
        self.slots.push(Slot {
            cell,
            painted: Painted::default(),
            dirty: true,
            end: 0,
            message,
            is_toggled: false,
        });
        CellId::new(self.slots.len() - 1)
    }

    pub(super) fn get<T: CellKind>(&self, id: CellId<T>) -> Option<&T> {
        T::of(&self.slots.get(id.index)?.cell)
    }

    /// Indices of the cells that show entries of the session, the last one first.
    pub(super) fn of_entries(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).rev().filter(|index| self.slots[*index].cell.is_of_entry())
    }

    /// All cells, to be read or drawn elsewhere, and whether each is toggled: their rows stay as they are.
    pub(super) fn cells_mut(&mut self) -> impl DoubleEndedIterator<Item = (&mut Cell, bool)> {
        self.slots.iter_mut().map(|slot| (&mut slot.cell, slot.is_toggled))
    }

    /// Mutable access to a cell, which is then drawn again.
    pub(super) fn get_mut<T: CellKind>(&mut self, id: CellId<T>) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index)?;
        let cell = T::of_mut(&mut slot.cell)?;
        slot.dirty = true;
        Some(cell)
    }

    /// The first cell, if it is of this kind.
    pub(super) fn first<T: CellKind>(&self) -> Option<CellId<T>> {
        T::of(&self.slots.first()?.cell).map(|_| CellId::new(0))
    }

    /// The last cell, if it is of this kind.
    pub(super) fn last<T: CellKind>(&self) -> Option<(CellId<T>, &T)> {
        let cell = T::of(&self.slots.last()?.cell)?;
        Some((CellId::new(self.slots.len() - 1), cell))
    }

    /// Runs `change` on all unsettled cells of a kind; it returns whether
    /// it changed anything.
    pub(super) fn change_live<T: CellKind>(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        for slot in self.slots.iter_mut().skip(self.first_live) {
            if !slot.cell.is_settled()
                && let Some(cell) = T::of_mut(&mut slot.cell)
            {
                slot.dirty |= change(cell);
            }
        }
    }

    /// Settles cells that wait for the next one to appear.
    pub(super) fn settle(&mut self) {
        for slot in self.slots.iter_mut().skip(self.first_live) {
            if !slot.cell.is_settled() {
                slot.dirty |= slot.cell.succeeded();
            }
        }
    }

    pub(super) fn any_live<T: CellKind>(&self, test: impl Fn(&T) -> bool) -> bool {
        self.slots.iter().skip(self.first_live).filter_map(|slot| T::of(&slot.cell)).any(test)
    }

    /// Draws changed cells. Running cells use the time `cx.now`.
    pub(super) fn layout(&mut self, cx: &RenderCx<'_>) {
        let is_first_stale = std::mem::take(&mut self.is_first_stale);
        if self.has_key(cx) {
            self.draw_live(cx);
            if is_first_stale {
                self.draw_anew(0, cx);
                self.first_live = 0;
            }
        } else {
            self.key = Some(Key::new(cx));
            self.replay(cx);
        }
        self.measure();
    }

    /// Draws all cells, from the last backwards, until there are enough rows.
    fn replay(&mut self, cx: &RenderCx<'_>) {
        let first_live = self.slots.iter().position(|slot| !slot.cell.is_settled());
        let first_live = first_live.unwrap_or(self.slots.len());
        let (most, kept) = match std::mem::take(&mut self.next_replay) {
            _ if self.keeps_all => (usize::MAX, first_live),
            Extent::Recent => (RECENT_ROWS, first_live),
            Extent::Since(index) => (RECENT_ROWS, first_live.min(index)),
            Extent::Whole => (REPLAY_ROWS, first_live),
        };
        let mut n_rows = 0;
        self.first_shown = 0;
        for index in (0..self.slots.len()).rev() {
            if index > 0 && index < self.first_kept {
                self.slots[index].cell.release_pictures();
                self.first_shown = self.first_shown.max(index + 1);
                continue;
            }
            // Always include the cells of the answer in progress, and the header.
            if n_rows >= most && index < kept && index > 0 {
                self.slots[index].painted = Painted::default();
                self.slots[index].cell.release_pictures();
                self.first_shown = self.first_shown.max(index + 1);
                continue;
            }
            n_rows += self.draw_anew(index, cx);
        }
        self.first_live = 0;
        self.lead = self.lead_rows(cx);
    }

    /// The line about cells that are not shown.
    fn lead_rows(&self, cx: &RenderCx<'_>) -> Vec<Row> {
        let left_out = self.first_shown.saturating_sub(1);
        let lead = lead(self.n_earlier, left_out);
        let lead = lead.map(|text| format!("{text} ({} to show)", cx.view.page_key));
        lead.map(|text| lead_rows(&text, cx)).unwrap_or_default()
    }

    /// Draws cells above those that have rows, from the last one backwards, until there are
    /// `n_rows` more. Rows that were there keep their content; their indices change.
    pub(super) fn draw_more(&mut self, n_rows: usize, cx: &RenderCx<'_>) {
        let mut n_drawn = 0;
        while n_drawn < n_rows && self.can_show_more() {
            self.first_shown -= 1;
            n_drawn += self.draw_anew(self.first_shown, cx);
        }
        if self.first_shown <= 1 {
            self.first_shown = 0;
        }
        self.lead = self.lead_rows(cx);
        self.first_live = 0;
        self.measure();
    }

    /// Draws a cell of any age again, and returns its number of rows.
    fn draw_anew(&mut self, index: usize, cx: &RenderCx<'_>) -> usize {
        let Some(slot) = self.slots.get_mut(index) else { return 0 };
        slot.painted = Painted::default();
        draw(slot, cx);
        self.renders += 1;
        slot.painted.rows.len()
    }

    /// Shows all cells as `after` has them, if they were toggled where that is not as it was `before`.
    pub(super) fn follow_view(&mut self, before: &ViewSettings, after: &ViewSettings) {
        for slot in &mut self.slots {
            slot.is_toggled &= slot.cell.is_closed(before) == slot.cell.is_closed(after);
        }
    }

    fn draw_live(&mut self, cx: &RenderCx<'_>) {
        for slot in self.slots.iter_mut().skip(self.first_live) {
            if slot.dirty || slot.cell.is_due(cx.now) {
                draw(slot, cx);
                self.renders += 1;
            }
        }
    }

    fn measure(&mut self) {
        self.n_measured = self.slots.len();
        let mut end = match self.first_live.checked_sub(1) {
            Some(last) => self.slots.get(last).map_or(0, |slot| slot.end),
            None => 0,
        };
        let mut all_settled = true;
        for (index, slot) in self.slots.iter_mut().enumerate().skip(self.first_live) {
            let lead = if index == 0 { self.lead.len() } else { 0 };
            let start = end;
            end += slot.painted.rows.len() + lead;
            slot.end = end;
            if all_settled {
                if slot.cell.is_settled() {
                    slot.painted.settle();
                    self.first_live = index + 1;
                    self.stable = end;
                } else {
                    all_settled = false;
                    self.stable = start + slot.painted.stable;
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.measured().last().map_or(0, |slot| slot.end)
    }

    fn measured(&self) -> &[Slot] {
        self.slots.get(..self.n_measured).unwrap_or(&self.slots)
    }

    pub(super) fn stable(&self) -> usize {
        self.stable
    }

    /// Makes the rows before row `index` final if they can be: they leave the screen. What follows them begins a
    /// row of its own. The last row is not final, even if there is no room for it: text that arrives would be in
    /// a row of its own each time.
    pub(super) fn freeze(&mut self, index: usize) {
        let Some((cell, n_rows)) = self.live_row(index) else { return };
        let Some(Slot { cell, painted, .. }) = self.slots.get_mut(cell) else { return };
        let n_rows = n_rows.min(painted.rows.len().saturating_sub(1));
        if n_rows <= painted.stable {
            return;
        }
        if let Some(end) = cell.place(painted, n_rows) {
            cell.freeze(end, n_rows);
            painted.stable = n_rows;
            self.measure();
        }
    }

    /// The same for rows that were laid out differently: those before `end` in this cell. A layout must follow.
    pub(super) fn freeze_at(&mut self, cell: usize, end: LinePlace) {
        if let Some(slot) = self.slots.get_mut(cell) {
            slot.cell.freeze(end, 0);
            slot.painted = Painted::default();
            slot.dirty = true;
            // It may have been settled since.
            self.first_live = self.first_live.min(cell);
        }
    }

    /// The place after the settled rows of the first unsettled cell, and its index; `None` if it has none, or if that
    /// depends on the width.
    pub(super) fn settled_end(&self) -> Option<(usize, LinePlace)> {
        let cell = self.first_live;
        let Slot { cell: content, painted, .. } = self.measured().get(cell)?;
        Some((cell, content.place(painted, painted.stable)?))
    }

    /// The row after those of this cell that are frozen.
    pub(super) fn frozen_end(&self, index: usize) -> usize {
        self.start_of(index) + self.slots.get(index).map_or(0, |slot| slot.cell.n_frozen())
    }

    /// The places at which rows of the first unsettled cell could be frozen.
    pub(super) fn places_to_freeze(&self, rows: Range<usize>) -> Option<Arriving> {
        let cell = self.first_live;
        let start = self.start_of(cell);
        let Slot { cell: content, painted, .. } = self.measured().get(cell)?;
        let rows = rows.start.max(start + painted.stable + 1)..rows.end.min(start + painted.rows.len() + 1);
        let places = rows.filter_map(|row| Some((row, content.place(painted, row - start)?)));
        Some(Arriving { cell, end: start + painted.rows.len(), rows: places.collect() })
    }

    /// The first unsettled cell, and how many of its rows are before row `index`, if the rows of other cells before
    /// `index` are settled.
    fn live_row(&self, index: usize) -> Option<(usize, usize)> {
        let n_rows = index.checked_sub(self.start_of(self.first_live))?;
        let painted = &self.measured().get(self.first_live)?.painted;
        (painted.stable < n_rows && n_rows <= painted.rows.len()).then_some((self.first_live, n_rows))
    }

    pub(super) fn row(&self, index: usize) -> Cow<'_, Row> {
        let row = self.cell_at(index).and_then(|(found, at)| {
            let rows = &self.slots.get(found)?.painted.rows;
            rows.get(at).or_else(|| self.lead.get(at.checked_sub(rows.len())?))
        });
        row.map_or_else(|| Cow::Owned(Row::default()), Cow::Borrowed)
    }

    /// The cell of row `index`, and the row's index within it.
    pub(super) fn cell_at(&self, index: usize) -> Option<(usize, usize)> {
        let found = self.measured().partition_point(|slot| slot.end <= index);
        let start = self.start_of(found);
        (found < self.n_measured).then(|| (found, index - start))
    }

    /// The Markdown text that this cell shows.
    pub(super) fn markdown(&self, index: usize) -> Option<&str> {
        self.slots.get(index)?.cell.markdown()
    }

    /// The cells that have rows in `range`: index, first row, and rows.
    pub(super) fn cells_in(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize, &[Row])> {
        let first = self.measured().partition_point(|slot| slot.end <= range.start);
        let cells = (first..self.n_measured).map(|index| (index, self.start_of(index)));
        cells
            .take_while(move |(_, start)| *start < range.end)
            .map(|(index, start)| (index, start, self.rows_of(index)))
    }

    /// First row of a cell.
    pub(super) fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.slots.get(before)).map_or(0, |slot| slot.end)
    }

    /// The first rows of the cells of a kind that have rows.
    pub(super) fn starts_of<T: CellKind>(&self) -> impl DoubleEndedIterator<Item = usize> {
        let has_rows = |slot: &Slot| T::of(&slot.cell).is_some() && !slot.painted.rows.is_empty();
        let cells = (self.first_shown..self.n_measured).filter(move |index| has_rows(&self.slots[*index]));
        cells.map(|index| self.start_of(index))
    }

    /// Whether a cell does not change any more.
    pub(super) fn is_settled(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.cell.is_settled())
    }

    pub(super) fn has_live(&self) -> bool {
        self.first_live < self.slots.len()
    }

    pub(super) fn has_released(&self) -> bool {
        self.first_kept > 1
    }

    /// Whether cells in memory have no rows because they are far above the end.
    pub(super) fn can_show_more(&self) -> bool {
        self.first_shown > self.first_kept.max(1)
    }

    pub(super) fn rows_of(&self, index: usize) -> &[Row] {
        self.slots.get(index).map_or(&[], |slot| &slot.painted.rows)
    }

    /// How often a cell was drawn.
    pub(super) fn renders(&self) -> u64 {
        self.renders
    }

    /// Number of cells in memory, and of their rows.
    #[cfg(test)]
    pub(super) fn n_kept(&self) -> (usize, usize) {
        let kept = || self.slots.iter().filter(|slot| !matches!(slot.cell, Cell::Released));
        (kept().count(), kept().map(|slot| slot.painted.rows.len()).sum())
    }
}

/// Opens or closes this cell alone, and draws it. Indices of later rows change. Returns whether it can be closed.
pub(super) fn toggle(cells: &mut CellList, index: usize, cx: &RenderCx<'_>) -> bool {
    let slot = cells.slots.get_mut(index).filter(|slot| slot.cell.is_closed(cx.view).is_some());
    let Some(slot) = slot else { return false };
    slot.is_toggled = !slot.is_toggled;
    cells.draw_anew(index, cx);
    cells.first_live = cells.first_live.min(index);
    cells.measure();
    true
}

fn draw(slot: &mut Slot, cx: &RenderCx<'_>) {
    let drawn_before = slot.painted.stable;
    match slot.is_toggled {
        true => slot.cell.render(&RenderCx { view: &cx.view.toggled(), ..*cx }, &mut slot.painted),
        false => slot.cell.render(cx, &mut slot.painted),
    }
    // Cells wrap their text; this handles what cannot be wrapped.
    for row in slot.painted.rows.iter_mut().skip(drawn_before) {
        if row.width() > usize::from(cx.width) {
            row.clip(cx.width);
        }
    }
    slot.dirty = false;
}

/// Describes the hidden entries above the first cell; `None` if there are none.
fn lead(n_earlier: Option<usize>, left_out: usize) -> Option<String> {
    let left_out = left_out as u64;
    Some(match (n_earlier, left_out) {
        (Some(0), 0) => return None,
        (None, _) => "earlier entries hidden".to_owned(),
        (Some(n), 0) => format!("{} hidden", counted(n as u64, "earlier entry")),
        // An entry may have several cells, and some have none.
        (Some(n), _) => format!("about {} hidden", counted(n as u64 + left_out, "earlier entry")),
    })
}

fn lead_rows(text: &str, cx: &RenderCx<'_>) -> Vec<Row> {
    let style: Style = cx.style(Token::Dim);
    let mut rows = vec![Row::default()];
    let inner = cx.narrower(2 * side(cx.width));
    rows.extend(wrap_plain(text, inner.width, style).into_iter().map(|row| indented(row, cx.width)));
    rows
}

#[cfg(test)]
mod tests {
    use crate::tui::markdown::Highlighter;
    use crate::tui::theme::{Appearance, ColorDepth, Theme};

    use super::super::cells::{HeaderCell, NoticeCell, TextCell, Tone};
    use super::*;

    #[test]
    fn hidden_entries_are_counted_in_one_unit() {
        let check = |n_earlier, left_out, expected: &str| {
            assert_eq!(lead(n_earlier, left_out).unwrap_or_default(), expected, "{n_earlier:?} {left_out}");
        };
        check(Some(0), 0, "");
        check(Some(1), 0, "1 earlier entry hidden");
        check(Some(272), 463, "about 735 earlier entries hidden");
        check(Some(0), 463, "about 463 earlier entries hidden");
        check(None, 463, "earlier entries hidden");
    }

    #[test]
    fn rows_lead_to_their_cells_and_cells_of_any_age_can_be_drawn() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let view = ViewSettings::new(String::new(), "/p".into(), None);
        let highlighter = Highlighter::new();
        let now = std::time::Duration::ZERO;
        let cx = RenderCx { width: 40, theme: &theme, highlighter: &highlighter, view: &view, now };
        let mut cells = CellList::default();
        cells.reset(0, Some(0));
        cells.push(HeaderCell::default());
        for n in 0..RECENT_ROWS {
            cells.push(TextCell::finished(&format!("text {n}")));
        }
        cells.layout(&cx);
        // A blank row precedes each text.
        let n_shown = RECENT_ROWS / 2;
        let last = cells.len() - 1;
        assert_eq!(cells.cell_at(last), Some((RECENT_ROWS, 1)));
        assert_eq!(cells.cell_at(last - 2), Some((RECENT_ROWS - 1, 1)));
        assert_eq!(cells.cell_at(last + 1), None);
        assert_eq!(cells.first_shown, RECENT_ROWS - n_shown + 1);
        assert_eq!(cells.draw_anew(1, &cx), 2, "it was left out before");
        assert_eq!(cells.slots[1].painted.rows[1].text().trim(), "text 0");
    }

    #[test]
    fn cells_far_above_the_end_leave_memory() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let view = ViewSettings::new(String::new(), "/p".into(), None);
        let highlighter = Highlighter::new();
        let cx = |width| RenderCx {
            width,
            theme: &theme,
            highlighter: &highlighter,
            view: &view,
            now: std::time::Duration::ZERO,
        };
        let text = |cells: &CellList, index: usize| cells.row(index).text().trim().to_owned();
        let release = |cells: &mut CellList, limit: usize| {
            if let Some(message) = cells.releasable(limit) {
                cells.release(message);
            }
        };
        let mut cells = CellList::default();
        cells.reset(0, Some(0));
        cells.push(HeaderCell::default());
        cells.layout(&cx(40));
        let (mut most, mut n_cells, mut ids) = (0, 0, Vec::new());
        while n_cells < 12 * REPLAY_ROWS / 2 {
            for _ in 0..500 {
                ids.push(cells.push(TextCell::finished(&format!("text {n_cells}"))));
                cells.on_message();
                n_cells += 1;
            }
            cells.layout(&cx(40));
            let len = cells.len();
            release(&mut cells, len - 30);
            // Positions stay, and the end can be read.
            assert_eq!((cells.len(), text(&cells, len - 1)), (len, format!("text {}", n_cells - 1)));
            assert_eq!(
                text(&cells, len - 1 - 2 * 2_000.min(n_cells - 1)),
                format!("text {}", n_cells - 1 - 2_000.min(n_cells - 1))
            );
            most = most.max(cells.n_kept().1);
        }
        assert!((REPLAY_ROWS..3 * REPLAY_ROWS).contains(&most), "{most}");
        assert!(cells.get_mut(ids[0]).is_none() && cells.get_mut(ids[n_cells - 1]).is_some());
        cells.layout(&cx(40));

        // Rows that have not left the screen are kept, however many there are.
        let (n_released, pushed) = (cells.first_kept, cells.len());
        for n in 0..3 * REPLAY_ROWS {
            cells.push(TextCell::finished(&format!("more {n}")));
            cells.on_message();
        }
        cells.layout(&cx(40));
        release(&mut cells, pushed);
        assert!(cells.end_of(cells.first_kept - 1) <= pushed && cells.first_kept >= n_released);
        let len = cells.len();
        release(&mut cells, len);

        // From the beginning, or at another width, only what is kept is drawn.
        let renders = cells.renders();
        cells.layout(&cx(40));
        assert_eq!(cells.renders(), renders, "nothing is asked for from the beginning");
        cells.restart();
        cells.layout(&cx(40));
        assert!((RECENT_ROWS..RECENT_ROWS + 20).contains(&cells.len()), "{}", cells.len());
        let lead = (0..9).map(|index| text(&cells, index)).find(|row| row.contains("hidden")).unwrap();
        assert!(lead.contains("earlier entries hidden"), "{lead}");
        let renders = cells.renders();
        cells.restart();
        cells.layout(&cx(40));
        assert_eq!(cells.renders(), renders, "that was done already");
        cells.layout(&cx(60));
        assert_eq!(text(&cells, cells.len() - 1), format!("more {}", 3 * REPLAY_ROWS - 1));
    }

    #[test]
    fn cells_of_one_message_leave_memory_together() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let view = ViewSettings::new(String::new(), "/p".into(), None);
        let (highlighter, now) = (Highlighter::new(), std::time::Duration::ZERO);
        let cx = RenderCx { width: 40, theme: &theme, highlighter: &highlighter, view: &view, now };
        let mut cells = CellList::default();
        cells.reset(0, Some(0));
        cells.keep_all();
        cells.push(HeaderCell::default());
        // Two long answers in many cells, and one that is going on.
        for _ in 0..3 {
            for n in 0..REPLAY_ROWS {
                cells.push(TextCell::finished(&format!("text {n}")));
            }
            cells.on_message();
        }
        cells.layout(&cx);
        // The limit is within the second answer.
        assert_eq!(cells.releasable(3 * REPLAY_ROWS), Some(1));
        assert_eq!(cells.releasable(REPLAY_ROWS), None, "that is within the first one");
        cells.release(1);
        assert_eq!(cells.first_message(), 1);
        assert_eq!(cells.row(cells.body() + 1).text().trim(), "text 0");
        assert_eq!(cells.n_kept().0, 1 + 2 * REPLAY_ROWS);
    }

    #[test]
    fn an_id_names_only_cells_of_its_kind() {
        let mut cells = CellList::default();
        let text = cells.push(TextCell::default());
        assert!(cells.get_mut(text).is_some());
        cells.reset(0, Some(0));
        cells.push(NoticeCell::new(Tone::Error, "no"));
        assert!(cells.get_mut(text).is_none());
        assert!(cells.last::<TextCell>().is_none() && cells.last::<NoticeCell>().is_some());
    }
}
