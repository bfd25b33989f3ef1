//! A part of a session: a prompt and what followed, as rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::session::{Entry, EntryKind, Opened, SessionEvent, SessionTree};
use crate::tui::markdown::Highlighter;
use crate::tui::text::Row;
use crate::tui::theme::Theme;

use super::super::transcript::{
    self, Anchor, Anchored, EntryPlace, Hidden, RemarksBetween, RowPlace, Transcript, ViewSettings,
    find_hidden,
};

/// Entries of a section at most, approximately.
const MAX_ENTRIES: usize = 60;

/// The inputs of a section's rows.
#[derive(Clone, Copy)]
pub(in super::super) struct SectionCx<'a> {
    pub(in super::super) width: u16,
    pub(in super::super) theme: &'a Theme,
    pub(in super::super) now: Duration,
}

pub(in super::super) struct Section {
    /// Positions of its entries on the path.
    pub(in super::super) entries: Range<usize>,
    /// Where it begins among all entries of the path.
    pub(in super::super) start: EntryPlace,
    /// Whether it begins with a message of the user.
    pub(in super::super) is_prompt: bool,
    /// Whether events of the session continue it.
    pub(in super::super) is_live: bool,
    body: Body,
}

enum Body {
    /// Not in memory; shown as one row.
    Unread,
    Entries(Box<Transcript>),
}

impl Section {
    /// The sections of a path from a position on, none of them read.
    pub(in super::super) fn of_path(tree: &SessionTree, path: &[usize], start: usize) -> Vec<Self> {
        let kind = |position: usize| path.get(position).map(|idx| tree.entry(*idx).kind);
        let mut starts: Vec<usize> = Vec::new();
        for position in start..path.len() {
            let n_entries = starts.last().map_or(usize::MAX, |start| position - start);
            // A result belongs to its call.
            let is_full = n_entries >= MAX_ENTRIES && kind(position) != Some(EntryKind::ToolResult);
            if is_full || kind(position) == Some(EntryKind::User) {
                starts.push(position);
            }
        }
        let ends = starts.iter().skip(1).copied().chain([path.len()]);
        let mut place = EntryPlace::after((0..start).filter_map(kind));
        let section = |(start, end): (&usize, usize)| {
            let before = place;
            place =
                (*start..end).filter_map(kind).fold(place, |place, kind| place.next(kind).unwrap_or(place));
            Self {
                entries: *start..end,
                start: before,
                is_prompt: kind(*start) == Some(EntryKind::User),
                is_live: false,
                body: Body::Unread,
            }
        };
        starts.iter().zip(ends).map(section).collect()
    }

    /// The section of a session without entries, after position `end` of the path.
    pub(in super::super) fn empty(end: usize) -> Self {
        let start = EntryPlace::default();
        Self { entries: end..end, start, is_prompt: false, is_live: false, body: Body::Unread }
    }

    pub(in super::super) fn is_read(&self) -> bool {
        !matches!(self.body, Body::Unread)
    }

    /// Shows entries with remarks between them, which begin at the section.
    pub(in super::super) fn show(
        &mut self,
        entries: Vec<Arc<Entry>>,
        (view, highlighter): (ViewSettings, Highlighter),
        remarks: &mut RemarksBetween<'_>,
    ) {
        let mut transcript = Transcript::whole(highlighter, view);
        let opened = Opened { tail: entries, n_earlier: Some(0), ..Opened::default() };
        transcript::open_whole(&mut transcript, &opened, remarks, self.is_live);
        self.body = Body::Entries(Box::new(transcript));
    }

    /// Shows entries of the session of `recent` with the remarks between them. `first` is the place
    /// from which it counts.
    pub(in super::super) fn show_part(
        &mut self,
        entries: Vec<Arc<Entry>>,
        recent: &Transcript,
        first: EntryPlace,
    ) {
        let mut part = Transcript::whole(recent.highlighter().clone(), recent.view().clone());
        let opened = Opened { tail: entries, n_earlier: Some(0), ..Opened::default() };
        transcript::open_part(&mut part, &opened, recent, self.start.since(first));
        self.body = Body::Entries(Box::new(part));
    }

    /// Shows the entries before events that continue them.
    pub(in super::super) fn show_live(
        &mut self,
        entries: &[Arc<Entry>],
        (view, highlighter): (ViewSettings, Highlighter),
        remarks: &mut RemarksBetween<'_>,
    ) {
        self.body = Body::Entries(Box::new(Transcript::live(highlighter, view, entries, remarks)));
    }

    pub(in super::super) fn apply(&mut self, event: &SessionEvent, at: Duration) {
        if let Body::Entries(transcript) = &mut self.body {
            transcript.apply(event, at);
        }
    }

    /// Looks for a place, after a layout; `None` if the section is not read.
    pub(in super::super) fn find(&self, anchor: Anchor) -> Option<Anchored> {
        match &self.body {
            Body::Unread => None,
            Body::Entries(transcript) => Some(transcript.find(anchor)),
        }
    }

    /// Releases the memory of entries.
    pub(in super::super) fn forget(&mut self) {
        if let Body::Entries(_) = self.body {
            self.body = Body::Unread;
        }
    }

    pub(in super::super) fn set_view(&mut self, view: &ViewSettings) {
        if let Body::Entries(transcript) = &mut self.body {
            transcript.set_view(view.clone());
        }
    }

    /// Opens or closes the block of a row alone, and returns its first row; `None` if it cannot be closed.
    pub(in super::super) fn toggle_block(&mut self, index: usize, cx: SectionCx<'_>) -> Option<usize> {
        match &mut self.body {
            Body::Unread => None,
            Body::Entries(transcript) => {
                transcript::toggle_block(transcript, index, (cx.width, cx.theme, cx.now))
            }
        }
    }

    /// What hides a text that contains `query`, which is in lower case and is not shown.
    pub(in super::super) fn find_hidden(&mut self, query: &str, cx: SectionCx<'_>) -> Option<Hidden> {
        match &mut self.body {
            Body::Unread => None,
            Body::Entries(transcript) => {
                find_hidden(transcript, query, usize::MAX, (cx.width, cx.theme, cx.now)).ok().flatten()
            }
        }
    }

    /// Number of rows.
    pub(in super::super) fn layout(&mut self, cx: SectionCx<'_>) -> usize {
        match &mut self.body {
            Body::Unread => 1,
            Body::Entries(transcript) => {
                // Pictures may come later.
                if self.is_live || transcript.has_live() || !transcript.is_laid_out(cx.width, cx.theme) {
                    transcript.layout(cx.width, cx.theme, cx.now);
                }
                transcript.len()
            }
        }
    }

    /// Number of rows of the last layout.
    pub(in super::super) fn n_rows(&self) -> usize {
        match &self.body {
            Body::Unread => 1,
            Body::Entries(transcript) => transcript.len(),
        }
    }

    /// Where a row is, for [`Self::row_of`] after another layout.
    pub(in super::super) fn place(&self, index: usize) -> Option<RowPlace> {
        match &self.body {
            Body::Unread => None,
            Body::Entries(transcript) => transcript.place_in_text(index),
        }
    }

    /// The row of a place.
    pub(in super::super) fn row_of(&self, place: &RowPlace) -> Option<usize> {
        match &self.body {
            Body::Unread => None,
            Body::Entries(transcript) => Some(transcript.row_of(place)),
        }
    }

    /// The Markdown text that a row shows a part of, and its number among those of the section.
    pub(in super::super) fn markdown(&self, index: usize) -> Option<(usize, &str)> {
        match &self.body {
            Body::Unread => None,
            Body::Entries(transcript) => transcript.markdown(index),
        }
    }

    /// A row, after a layout.
    pub(in super::super) fn row(&self, index: usize) -> Cow<'_, Row> {
        match &self.body {
            Body::Unread => Cow::Owned(Row::default()),
            Body::Entries(transcript) => transcript.row(index),
        }
    }
}
