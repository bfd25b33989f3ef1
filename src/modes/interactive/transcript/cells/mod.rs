//! The kinds of cells, one file each.
//!
//! A cell contains its data, not its rows: rows are drawn for a width and a theme
//! on demand. Every visible cell begins with the
//! blank row that separates it from the previous one.

mod bash;
mod custom;
mod header;
mod notice;
mod picture;
mod streamed;
mod summary;
mod text;
mod thinking;
mod tool;
mod user;

use std::time::Duration;

use crate::tui::text::{LinePlace, PromptMark, Row};

use super::cell_list::Painted;
use super::hidden::Hidden;
use super::render::{RenderCx, ViewSettings};

pub(super) use bash::BashCell;
pub(super) use custom::CustomCell;
pub(super) use header::HeaderCell;
pub(super) use notice::{NoticeCell, Tone};
use picture::Picture;
use streamed::StreamedText;
pub(super) use summary::SummaryCell;
pub(super) use text::TextCell;
pub(super) use thinking::ThinkingCell;
pub(super) use tool::{StartedCall, ToolCell};
pub(super) use user::UserCell;

/// One block of the transcript.
#[derive(Debug)]
pub(super) enum Cell {
    Header(HeaderCell),
    User(UserCell),
    Text(TextCell),
    Thinking(ThinkingCell),
    Tool(Box<ToolCell>),
    Bash(BashCell),
    Summary(SummaryCell),
    Custom(CustomCell),
    Notice(NoticeCell),
    /// It left memory after its rows had left the screen.
    Released,
}

/// A type of cell, by which a list names its cells.
pub(super) trait CellKind: Sized {
    fn into_cell(self) -> Cell;

    /// The cell as this kind; `None` if it is of another.
    fn of(cell: &Cell) -> Option<&Self>;

    fn of_mut(cell: &mut Cell) -> Option<&mut Self>;
}

macro_rules! cell_kinds {
    ($($variant:ident: $kind:ty),* $(,)?) => {$(
        impl CellKind for $kind {
            fn into_cell(self) -> Cell {
                Cell::$variant(self.into())
            }

            fn of(cell: &Cell) -> Option<&Self> {
                if let Cell::$variant(cell) = cell { Some(cell) } else { None }
            }

            fn of_mut(cell: &mut Cell) -> Option<&mut Self> {
                if let Cell::$variant(cell) = cell { Some(cell) } else { None }
            }
        }
    )*};
}

cell_kinds! {
    Header: HeaderCell,
    User: UserCell,
    Text: TextCell,
    Thinking: ThinkingCell,
    Tool: ToolCell,
    Bash: BashCell,
    Summary: SummaryCell,
    Custom: CustomCell,
    Notice: NoticeCell,
}

impl Cell {
    /// Whether it can no longer change.
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::Header(_) | Self::Summary(_) | Self::Custom(_) | Self::Released => true,
            Self::Text(cell) => cell.is_finished(),
            Self::Thinking(cell) => cell.is_finished(),
            Self::User(cell) => !cell.pictures.iter().any(Picture::is_awaited),
            Self::Tool(cell) => cell.is_done() && !cell.pictures.iter().any(Picture::is_awaited),
            Self::Bash(cell) => cell.is_done(),
            Self::Notice(cell) => cell.is_settled(),
        }
    }

    /// Whether it shows an entry of the session, or a part of one, wherever that is shown.
    pub(super) fn is_of_entry(&self) -> bool {
        match self {
            Self::User(_)
            | Self::Text(_)
            | Self::Thinking(_)
            | Self::Tool(_)
            | Self::Bash(_)
            | Self::Summary(_)
            | Self::Custom(_)
            | Self::Released => true,
            Self::Header(_) | Self::Notice(_) => false,
        }
    }

    /// What may keep a part of its text from being shown.
    fn hideable(&self) -> Option<Hidden> {
        match self {
            Self::Thinking(_) => Some(Hidden::Thinking),
            Self::User(_)
            | Self::Tool(_)
            | Self::Bash(_)
            | Self::Summary(_)
            | Self::Custom(_)
            | Self::Notice(_) => Some(Hidden::Collapsed),
            Self::Header(_) | Self::Text(_) | Self::Released => None,
        }
    }

    /// Whether this view may keep a part of its text from being shown; `None` if no view does.
    pub(super) fn is_closed(&self, view: &ViewSettings) -> Option<bool> {
        self.hideable().map(|hidden| match hidden {
            Hidden::Thinking => view.hide_thinking,
            Hidden::Collapsed => !view.expanded,
        })
    }

    /// What may keep a part of its text from being shown in this view.
    pub(super) fn hidden_by(&self, view: &ViewSettings) -> Option<Hidden> {
        self.hideable().filter(|_| self.is_closed(view) == Some(true))
    }

    /// Passes on all texts of which it may not show everything.
    pub(super) fn each_text(&self, each: &mut dyn FnMut(&str)) {
        match self {
            Self::User(cell) => cell.each_text(each),
            Self::Thinking(cell) => each(cell.text()),
            Self::Tool(cell) => cell.each_text(each),
            Self::Bash(cell) => cell.each_text(each),
            Self::Summary(cell) => each(cell.text()),
            Self::Custom(cell) => each(cell.text()),
            Self::Notice(cell) => each(&cell.text),
            Self::Header(_) | Self::Text(_) | Self::Released => {}
        }
    }

    /// Called when another cell was added after it. Returns whether that affects it.
    pub(super) fn succeeded(&mut self) -> bool {
        match self {
            Self::Notice(cell) => cell.settle(),
            Self::Header(_)
            | Self::User(_)
            | Self::Text(_)
            | Self::Thinking(_)
            | Self::Tool(_)
            | Self::Bash(_)
            | Self::Summary(_)
            | Self::Custom(_)
            | Self::Released => false,
        }
    }

    /// Whether it changes with time, or because a picture has come.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        match self {
            Self::Tool(cell) => cell.is_due(now) || cell.pictures.iter().any(Picture::has_come),
            Self::User(cell) => cell.pictures.iter().any(Picture::has_come),
            Self::Header(_)
            | Self::Text(_)
            | Self::Thinking(_)
            | Self::Bash(_)
            | Self::Summary(_)
            | Self::Custom(_)
            | Self::Notice(_)
            | Self::Released => false,
        }
    }

    /// Releases images that were never drawn.
    pub(super) fn release_pictures(&mut self) {
        let pictures = match self {
            Self::User(cell) => &mut cell.pictures,
            Self::Tool(cell) => &mut cell.pictures,
            Self::Header(_)
            | Self::Text(_)
            | Self::Thinking(_)
            | Self::Bash(_)
            | Self::Summary(_)
            | Self::Custom(_)
            | Self::Notice(_)
            | Self::Released => return,
        };
        pictures.iter_mut().for_each(Picture::release);
    }

    /// The Markdown text that it shows.
    pub(super) fn markdown(&self) -> Option<&str> {
        match self {
            Self::Summary(cell) => Some(cell.text()),
            Self::Custom(cell) => Some(cell.text()),
            _ => Some(self.streamed()?.text()),
        }
    }

    /// The text that may be arriving in it.
    fn streamed(&self) -> Option<&StreamedText> {
        match self {
            Self::Text(TextCell { streamed }) | Self::Thinking(ThinkingCell { streamed, .. }) => {
                Some(streamed)
            }
            _ => None,
        }
    }

    /// Where row `n_rows` begins, if the rows before it can be final now, whatever follows.
    pub(super) fn place(&self, painted: &Painted, n_rows: usize) -> Option<LinePlace> {
        self.streamed()?.place(painted, n_rows)
    }

    /// Number of rows that [`Self::freeze`] made final, as last drawn.
    pub(super) fn n_frozen(&self) -> usize {
        self.streamed().map_or(0, StreamedText::n_frozen)
    }

    /// Makes the rows before `end` final, of which there are `n_rows`. What follows begins a row of its own.
    pub(super) fn freeze(&mut self, end: LinePlace, n_rows: usize) {
        if let Self::Text(TextCell { streamed }) | Self::Thinking(ThinkingCell { streamed, .. }) = self {
            streamed.freeze(end, n_rows);
        }
    }

    /// Brings `painted` up to date.
    pub(super) fn render(&mut self, cx: &RenderCx<'_>, painted: &mut Painted) {
        let rows = match self {
            Self::Text(cell) => return cell.render(cx, painted),
            Self::Thinking(cell) => return cell.render(cx, painted),
            Self::Header(cell) => cell.rows(cx),
            Self::User(cell) => cell.rows(cx),
            Self::Tool(cell) => cell.rows(cx),
            Self::Bash(cell) => cell.rows(cx),
            Self::Summary(cell) => cell.rows(cx),
            Self::Custom(cell) => cell.rows(cx),
            Self::Notice(cell) => cell.rows(cx),
            Self::Released => Vec::new(),
        };
        let mut rows = set_off(rows);
        if let (Self::User(_), [first, .., last]) = (&*self, rows.as_mut_slice()) {
            // The blank row belongs to the prompt, so that its two marks never share a row.
            (first.mark, last.mark) = (Some(PromptMark::Begin), Some(PromptMark::End));
        }
        painted.replace(rows);
    }
}

/// Adds the blank row in front, unless there are no rows.
fn set_off(mut rows: Vec<Row>) -> Vec<Row> {
    if !rows.is_empty() {
        rows.insert(0, Row::default());
    }
    rows
}
