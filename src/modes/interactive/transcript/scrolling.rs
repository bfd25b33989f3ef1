//! What a view that scrolls over the transcript asks for: places of rows that survive a layout,
//! earlier cells, prompts.

use std::time::Duration;

use crate::session::{EntryId, Opened};
use crate::tui::term::RowMark;
use crate::tui::text::LinePlace;
use crate::tui::theme::Theme;

use super::Transcript;
use super::apply::show_between;
use super::cell_list;
use super::cells::UserCell;
use super::remarks::{EntryPlace, Remarks, RemarksBetween};
use super::render::RenderCx;
use super::{MovedRows, Places};

/// The place of a row: its cell, and where it is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct RowPlace {
    cell: usize,
    row: usize,
    /// The text before it, for a layout that wraps differently.
    mark: Option<RowMark>,
}

impl Transcript {
    /// Where row `index` is, for a layout that keeps the rows of its cell; `None` if there is no
    /// such row.
    pub(in super::super) fn place(&self, index: usize) -> Option<RowPlace> {
        let (cell, row) = self.cells.cell_at(index)?;
        Some(RowPlace { cell, row, mark: None })
    }

    /// The same for a layout that may wrap the cell differently, which takes time in proportion to
    /// the text of the cell.
    pub(in super::super) fn place_in_text(&self, index: usize) -> Option<RowPlace> {
        let place = self.place(index)?;
        let mark = RowMark::of(self.cells.rows_of(place.cell)).nth(place.row);
        Some(RowPlace { mark, ..place })
    }

    /// The row of a place after another layout; the last row of its cell if the cell has
    /// become shorter.
    pub(in super::super) fn row_of(&self, place: &RowPlace) -> usize {
        let rows = self.cells.rows_of(place.cell);
        let start = self.cells.start_of(place.cell);
        let row = match place.mark {
            Some(mark) => mark.find(rows).unwrap_or_else(|| mark.find_before(rows)),
            None => place.row,
        };
        start + row.min(rows.len().saturating_sub(1))
    }

    /// The Markdown text that row `index` shows a part of, and its number among those of the transcript.
    pub(in super::super) fn markdown(&self, index: usize) -> Option<(usize, &str)> {
        let (cell, _) = self.cells.cell_at(index)?;
        Some((cell, self.cells.markdown(cell)?))
    }

    /// Whether the cell of a place has rows.
    pub(in super::super) fn shows(&self, place: &RowPlace) -> bool {
        !self.cells.rows_of(place.cell).is_empty()
    }

    /// The first row after the header, the line about hidden entries and released cells.
    pub(in super::super) fn body(&self) -> usize {
        self.cells.body()
    }

    /// Whether there are cells without rows above the others.
    pub(in super::super) fn hides_cells(&self) -> bool {
        self.cells.can_show_more()
    }

    /// Whether entries of the session come before the cells in memory.
    pub(in super::super) fn has_earlier(&self) -> bool {
        self.first_entry.is_some() || self.cells.has_released()
    }

    /// The first entry that was shown when the session was opened, if earlier ones were not.
    pub(in super::super) fn first_entry(&self) -> Option<&EntryId> {
        self.first_entry.as_ref()
    }

    /// Number of prompts and answers from [`Self::first_entry`] on, or from the beginning, whose
    /// cells have left memory.
    pub(in super::super) fn n_released(&self) -> usize {
        self.cells.first_message()
    }

    /// Where notices are that contain `query` and whose cells have left memory, counted
    /// from [`Self::first_entry`].
    pub(in super::super) fn released_remarks(&self, query: &str) -> Vec<EntryPlace> {
        self.cells.remarks().containing(query)
    }

    /// All notices, with their places counted from [`Self::first_entry`].
    pub(in super::super) fn remarks(&self) -> Remarks {
        self.cells.all_remarks()
    }

    /// The number of prompts and answers whose cells can leave memory because they are before row
    /// `limit` and far from the end; `None` if those are few.
    pub(in super::super) fn releasable(&self, limit: usize) -> Option<usize> {
        self.cells.releasable(limit)
    }

    /// The first row of the last prompt that begins before row `index`.
    pub(in super::super) fn prompt_before(&self, index: usize) -> Option<usize> {
        let starts = self.cells.starts_of::<UserCell>();
        starts.rev().find(|start| *start < index)
    }

    /// The first row of the next prompt that begins after row `index`.
    pub(in super::super) fn prompt_after(&self, index: usize) -> Option<usize> {
        let starts = self.cells.starts_of::<UserCell>();
        starts.rev().take_while(|start| *start > index).last()
    }
}

/// Draws cells above those that have rows, about `n_rows` of them. Returns how many rows there
/// are more; indices of all later rows grow by that.
pub(in super::super) fn draw_earlier(
    transcript: &mut Transcript,
    n_rows: usize,
    width: u16,
    theme: &Theme,
    now: Duration,
) -> usize {
    let before = transcript.len();
    let cx = RenderCx {
        width: width.max(1),
        theme,
        highlighter: &transcript.highlighter,
        view: &transcript.view,
        now,
    };
    transcript.cells.draw_more(n_rows, &cx);
    transcript.len().saturating_sub(before)
}

/// Opens or closes the block of row `index` alone. Returns its first row; `None` if it cannot be closed. The blank
/// row before a block is none of its rows. Indices of later rows change.
pub(in super::super) fn toggle_block(
    transcript: &mut Transcript,
    index: usize,
    (width, theme, now): (u16, &Theme, Duration),
) -> Option<usize> {
    let (cell, row) = transcript.cells.cell_at(index)?;
    if row == 0 || row >= transcript.cells.rows_of(cell).len() {
        return None;
    }
    let Transcript { cells, view, highlighter, .. } = transcript;
    let cx = RenderCx { width: width.max(1), theme, highlighter, view, now };
    cell_list::toggle(cells, cell, &cx).then(|| cells.start_of(cell) + 1)
}

/// Releases cells far before row `limit`.
pub(super) fn release_before(transcript: &mut Transcript, limit: usize) {
    if let Some(n_messages) = transcript.cells.releasable(limit) {
        transcript.cells.release(n_messages);
    }
}

/// Releases the cells of as many prompts and answers as [`Transcript::releasable`] returned.
pub(in super::super) fn release(transcript: &mut Transcript, n_messages: usize) {
    transcript.cells.release(n_messages);
}

/// What is on the main screen while pi draws on another one.
#[derive(Debug, Default)]
pub(in super::super) struct LeftRows {
    /// The end of its settled rows; `None` if there are none.
    end: Option<SettledEnd>,
    /// The rows in view.
    places: Places,
}

impl LeftRows {
    pub(in super::super) fn new(transcript: &Transcript, places: Places) -> Self {
        Self { end: SettledEnd::of(transcript), places }
    }
}

/// The end of the settled rows, whatever the width.
#[derive(Debug, Clone, PartialEq)]
struct SettledEnd {
    cell: usize,
    place: EndPlace,
}

#[derive(Debug, Clone, PartialEq)]
enum EndPlace {
    EndOfCell,
    /// Here in a text that is arriving: at another width no row may begin there.
    Within(LinePlace),
    After(RowPlace),
}

impl SettledEnd {
    /// `None` if no row is settled.
    fn of(transcript: &Transcript) -> Option<Self> {
        let last = transcript.stable().checked_sub(1)?;
        let (cell, _) = transcript.cells.cell_at(last)?;
        let place = if transcript.cells.is_settled(cell) {
            EndPlace::EndOfCell
        } else {
            match transcript.cells.settled_end() {
                Some((found, place)) if found == cell => EndPlace::Within(place),
                _ => EndPlace::After(transcript.place_in_text(last)?),
            }
        };
        Some(Self { cell, place })
    }
}

/// The new rows of what is on the main screen, after [`continue_after`].
pub(in super::super) fn left_rows<'a>(transcript: &'a Transcript, left: &'a LeftRows) -> MovedRows<'a> {
    transcript.moved(&left.places)
}

/// Lays the transcript out for a screen that has the rows of `left`, and returns the first row
/// that it does not have. The line about hidden entries stands for those that are not in memory.
pub(in super::super) fn continue_after(
    transcript: &mut Transcript,
    left: &LeftRows,
    width: u16,
    theme: &Theme,
    now: Duration,
) -> usize {
    let cell = left.end.as_ref().map_or(0, |end| end.cell);
    let has_rows = |transcript: &Transcript| !transcript.cells.rows_of(cell).is_empty();
    if transcript.cells.has_released() || !has_rows(transcript) {
        let first = left.places.first_cell().unwrap_or(cell);
        transcript.cells.redraw_since(cell.min(first));
    }
    transcript.layout(width, theme, now);
    match &left.end {
        Some(end) if has_rows(transcript) => match &end.place {
            EndPlace::EndOfCell => transcript.cells.start_of(cell + 1),
            EndPlace::Within(place) => {
                transcript.cells.freeze_at(cell, place.clone());
                transcript.layout(width, theme, now);
                transcript.cells.frozen_end(cell)
            }
            EndPlace::After(last) => transcript.row_of(last) + 1,
        },
        Some(_) => transcript.cells.rows_of(0).len(),
        None => 0,
    }
}

/// Shows entries of a session in `transcript`, and between them the remarks that `recent`, the
/// transcript of the same session, has kept: the entries begin at `start` of its entries.
pub(in super::super) fn open_part(
    transcript: &mut Transcript,
    opened: &Opened,
    recent: &Transcript,
    start: EntryPlace,
) {
    show_between(transcript, opened, &mut recent.cells.remarks().from(start));
}

/// Shows entries of a session in `transcript`, with remarks between them, and behind them if they are
/// the last ones.
pub(in super::super) fn open_whole(
    transcript: &mut Transcript,
    opened: &Opened,
    remarks: &mut RemarksBetween<'_>,
    is_last: bool,
) {
    show_between(transcript, opened, remarks);
    if is_last {
        remarks.rest(&mut transcript.cells);
    }
}

/// The next layout keeps the cells of `places`, whatever was laid out since then.
pub(in super::super) fn keep_places(transcript: &mut Transcript, places: &Places) {
    if let Some(first) = places.first_cell() {
        transcript.cells.keep_since_cell(first);
    }
}

/// The next layout keeps the cell of row `index` and all after it.
pub(in super::super) fn keep_since(transcript: &mut Transcript, index: usize) {
    transcript.cells.keep_since(index);
}
