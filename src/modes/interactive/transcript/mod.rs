//! The transcript: messages and tool calls as rows.
//!
//! [`Transcript`] converts session events to cells (`apply`, with `answer` for the
//! answer in progress and `calls` for open tool calls), keeps the cells with
//! their rows (`cell_list`), and lets each kind draw itself (`cells`). The caller
//! places the rows on screen. Nothing here reads a clock or a disk.
//! Invariant: a row below [`Transcript::stable`] changes only in a layout that
//! [`Transcript::is_laid_out`] announces, and when the user opens or closes its block ([`toggle_block`]).

mod anchor;
mod answer;
mod apply;
mod calls;
mod cell_list;
mod cells;
mod freezing;
mod hidden;
mod notices;
mod places;
mod remarks;
mod render;
mod resources;
mod scrolling;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::ai::Message;
use crate::session::{EntryId, NoticeLevel, Opened};
use crate::tui::markdown::Highlighter;
use crate::tui::text::Row;
use crate::tui::theme::Theme;

use apply::Live;
use cell_list::CellList;
use cells::{HeaderCell, NoticeCell, TextCell, ToolCell};

pub(super) use anchor::{Anchor, Anchored};
pub(super) use freezing::{freeze, freeze_at};
pub(super) use hidden::{Hidden, TooMuch, action_showing, find_hidden};
pub(super) use places::{MovedRows, Places};
pub(super) use remarks::{EntryPlace, Remarks, RemarksBetween};
pub(super) use render::{RenderCx, ViewSettings};
pub(super) use resources::{Resource, ResourceSection};
pub(super) use scrolling::{
    LeftRows, RowPlace, continue_after, draw_earlier, keep_places, keep_since, left_rows, open_part,
    open_whole, release, toggle_block,
};

/// The conversation of a session, ready to be shown.
///
/// Changes cost nothing until [`Self::layout`], which draws them; only
/// then do [`Self::len`], [`Self::row`] and [`Self::stable`] include them.
pub(super) struct Transcript {
    cells: CellList,
    live: Live,
    highlighter: Highlighter,
    view: ViewSettings,
    /// The last answer that has text.
    last_answer: Option<Arc<Message>>,
    /// The first entry of those that were shown when the session was opened.
    first_entry: Option<EntryId>,
    /// Whether the user has done something since the last notice.
    pub(super) was_read: bool,
}

impl Transcript {
    /// An empty transcript.
    pub(super) fn new(highlighter: Highlighter, view: ViewSettings) -> Self {
        let mut cells = CellList::default();
        cells.reset(0, Some(0));
        cells.push(HeaderCell::default());
        Self {
            cells,
            live: Live::default(),
            highlighter,
            view,
            last_answer: None,
            first_entry: None,
            was_read: true,
        }
    }

    /// A transcript without a header that draws every cell in each layout; for one that is not
    /// long.
    pub(super) fn whole(highlighter: Highlighter, view: ViewSettings) -> Self {
        let mut transcript = Self::new(highlighter, view);
        transcript.cells.keep_all();
        transcript
    }

    /// Removes everything except the header and shows the entries of a session that
    /// works in `cwd`. The caller starts over on the screen.
    pub(super) fn open(&mut self, opened: &Opened, cwd: &Path) {
        cwd.clone_into(&mut self.view.cwd);
        self.show(opened);
    }

    /// Sets the header: name and version of the program, and
    /// lines about its keys. Call it before the first frame; later the caller
    /// must clear the screen.
    pub(super) fn header(&mut self, name: &str, version: &str, hints: &[&str]) {
        if let Some(header) = self.cells.first::<HeaderCell>().and_then(|id| self.cells.get_mut(id)) {
            name.clone_into(&mut header.name);
            version.clone_into(&mut header.version);
            header.hints = hints.iter().map(|&hint| hint.to_owned()).collect();
        }
        self.cells.invalidate();
    }

    /// Shows a line about the program. A line of level info replaces the previous one, if nothing else came
    /// between and the user has done something since, or if both begin with the same word; of others that are the same, one is shown with their number.
    pub(super) fn notice(&mut self, level: NoticeLevel, text: &str) {
        let was_read = std::mem::take(&mut self.was_read);
        notices::show((level, text), was_read, &mut self.cells);
    }

    /// Shows a text of the program, in Markdown.
    pub(super) fn text(&mut self, markdown: &str) {
        self.cells.push(TextCell::finished(markdown));
    }

    /// Changes how everything is shown.
    pub(super) fn set_view(&mut self, view: ViewSettings) {
        self.cells.follow_view(&self.view, &view);
        self.view = view;
    }

    pub(super) fn view(&self) -> &ViewSettings {
        &self.view
    }

    /// Ends all activities, so that all rows become stable, before pi leaves
    /// the screen.
    pub(super) fn settle(&mut self) {
        if let Some(pictures) = &self.view.pictures {
            pictures.gallery.store.fail_awaited();
        }
        self.abandon("Operation aborted");
    }

    /// Draws changes for a screen of `width` cells. A new width, theme or view
    /// draws the last few hundred rows again, and settled rows change with it.
    pub(super) fn layout(&mut self, width: u16, theme: &Theme, now: Duration) {
        // The arguments received since the last frame.
        if let Some(answer) = &mut self.live.answer {
            answer.read_partial_arguments(&mut self.cells);
        }
        let cx =
            RenderCx { width: width.max(1), theme, highlighter: &self.highlighter, view: &self.view, now };
        self.cells.layout(&cx);
    }

    /// Called before a layout: the first `pushed` rows have left the screen, and those far
    /// above may leave memory. The screen has none of the rows if that is 0.
    pub(super) fn on_pushed(&mut self, pushed: usize) {
        if pushed == 0 {
            self.cells.restart();
        } else {
            scrolling::release_before(self, pushed);
        }
    }

    /// Whether the next layout for this width and theme keeps settled rows.
    pub(super) fn is_laid_out(&self, width: u16, theme: &Theme) -> bool {
        let now = Duration::ZERO;
        let cx =
            RenderCx { width: width.max(1), theme, highlighter: &self.highlighter, view: &self.view, now };
        self.cells.is_laid_out(&cx)
    }

    /// Remembers the places of these rows. The next layout keeps their cells.
    pub(super) fn places(&mut self, rows: Range<usize>) -> Places {
        self.cells.keep_since(rows.start);
        Places::of(&self.cells, rows)
    }

    /// The new rows of `places`, after a layout.
    pub(super) fn moved<'a>(&'a self, places: &'a Places) -> MovedRows<'a> {
        MovedRows { places, cells: &self.cells, n_frozen: 0 }
    }

    pub(super) fn highlighter(&self) -> &Highlighter {
        &self.highlighter
    }

    /// Draws thousands of rows at the next layout, for a screen that is cleared.
    pub(super) fn replay_whole(&mut self) {
        self.cells.replay_whole();
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The row at `index`; a blank one if there is none.
    pub(super) fn row(&self, index: usize) -> Cow<'_, Row> {
        self.cells.row(index)
    }

    /// Number of leading rows that will not change.
    pub(super) fn stable(&self) -> usize {
        self.cells.stable()
    }

    /// Whether a cell may still change.
    pub(super) fn has_live(&self) -> bool {
        self.cells.has_live()
    }

    /// Whether a cell shows its elapsed time, which needs
    /// a frame every second.
    pub(super) fn wants_tick(&self) -> bool {
        self.cells.any_live(ToolCell::shows_elapsed)
    }

    /// The text of the last answer that contains text.
    pub(super) fn last_answer(&self) -> Option<String> {
        match self.last_answer.as_deref()? {
            Message::Assistant(answer) => {
                let texts: Vec<&str> =
                    answer.texts().map(str::trim).filter(|text| !text.is_empty()).collect();
                Some(texts.join("\n\n"))
            }
            Message::System(_) | Message::User(_) | Message::ToolResult(_) => None,
        }
    }

    /// Number of cells in memory, and of their rows.
    #[cfg(test)]
    pub(super) fn n_kept(&self) -> (usize, usize) {
        self.cells.n_kept()
    }

    /// How often a cell was drawn: rows are the same as long as this is, and it measures the work done.
    pub(super) fn renders(&self) -> u64 {
        self.cells.renders()
    }
}

/// Shows other hints in the header, if it is shown; `keys` take the place of the first one
/// when everything is expanded.
pub(super) fn set_header_hints(transcript: &mut Transcript, hints: Vec<String>, keys: Vec<String>) {
    change_header(transcript, |header| (header.hints, header.keys) = (hints, keys));
}

/// Lists what was loaded, and the models to cycle through, in the header, if it is shown.
pub(super) fn set_header_resources(
    transcript: &mut Transcript,
    resources: Vec<ResourceSection>,
    scope: Option<String>,
) {
    change_header(transcript, |header| (header.resources, header.scope) = (resources, scope));
}

/// Changes the header, if it is shown; what is below it moves.
fn change_header(transcript: &mut Transcript, change: impl FnOnce(&mut HeaderCell)) {
    let cells = &mut transcript.cells;
    let Some(header) = cells.first::<HeaderCell>().and_then(|id| cells.get_mut(id)) else { return };
    if header.name.is_empty() {
        return;
    }
    let before = header.clone();
    change(header);
    if *header != before {
        cells.redraw_first();
    }
}

/// Lists what was loaded, below everything else.
pub(super) fn show_resources(transcript: &mut Transcript, resources: Vec<ResourceSection>) {
    if !resources.is_empty() {
        transcript.cells.push(NoticeCell::listing(resources));
    }
}

/// Whether anything of a conversation is shown.
pub(super) fn has_entries(transcript: &Transcript) -> bool {
    transcript.cells.of_entries().next().is_some()
}

#[cfg(test)]
mod tests;
