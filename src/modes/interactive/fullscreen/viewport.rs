//! The state of fullscreen together with what it shows: layout, and what must be in memory.

use crate::config::Scrollbar;

use super::super::app::App;
use super::super::sections::{ReadEffect, SectionCx};
use super::super::transcript::{self, TooMuch, find_hidden};
use super::scrollback::{RECENT, Scrollback, Spot};
use super::search::{Note, Search, Sought, Step};
use super::view::{Fullscreen, Returning};

/// Rows of the transcript that are drawn at once when earlier ones are needed.
pub(super) const MORE_ROWS: usize = 400;

/// The screen during a frame or an input. The app is without the state meanwhile.
pub(super) struct Viewport<'a> {
    pub(super) state: &'a mut Fullscreen,
    pub(super) app: &'a mut App,
    /// Rows above the dock.
    pub(super) page: usize,
    /// Columns of the rows.
    pub(super) width: u16,
}

/// Columns of the rows: the last column is that of the scrollbar, also while there is none, so
/// that text is not wrapped anew when it appears.
pub(super) fn text_width(app: &App, screen_width: u16) -> u16 {
    const LEAST: u16 = 10;
    let has_bar = app.session.settings.values.fullscreen.scrollbar != Scrollbar::Hidden;
    screen_width - u16::from(has_bar && screen_width >= LEAST)
}

pub(super) fn section_cx(app: &App, width: u16) -> SectionCx<'_> {
    SectionCx { width: width.max(1), theme: &app.theme, now: app.now }
}

impl Viewport<'_> {
    pub(super) fn rows(&mut self) -> Scrollback<'_> {
        self.state.scrollback(&self.app.transcript, section_cx(self.app, self.width))
    }

    /// The first visible row.
    pub(super) fn top(&mut self) -> Spot {
        self.state.top.unwrap_or_else(|| self.last_top())
    }

    /// The first row of the last page.
    pub(super) fn last_top(&mut self) -> Spot {
        let page = self.page;
        let mut rows = self.rows();
        let last = rows.last();
        rows.up(last, page.saturating_sub(1)).0
    }

    /// Lays the transcript out; what is visible stays where it is.
    pub(super) fn lay_out(&mut self) {
        if let Some(returning) = self.state.returning.take() {
            return return_after_main_screen(self, returning);
        }
        let (theme, now, width) = (&self.app.theme, self.app.now, self.width);
        let (state, transcript) = (&mut *self.state, &mut self.app.transcript);
        if state.earlier.follow_view(transcript.view())
            && let Some(search) = &mut state.search
        {
            search.on_view_changed();
        }
        if transcript.is_laid_out(width, theme) {
            return state.keeping_places(transcript, |transcript| transcript.layout(width, theme, now));
        }
        // Columns mean something else afterwards.
        (state.selection, state.caret, state.clicks.toggled) = (None, None, None);
        let anchor = state.anchor_of_top(transcript);
        let has_news = state.n_new(transcript) > 0;
        let first = state.spots_mut().iter().map(|spot| spot.row).min();
        if let Some(first) = first {
            transcript::keep_since(transcript, first);
        }
        state.keeping_places(transcript, |transcript| transcript.layout(width, theme, now));
        if !has_news && state.seen.is_some() {
            state.see_all(transcript);
        }
        if let Some(search) = &mut state.search {
            search.forget_current();
        }
        if let Some(anchor) = anchor {
            let cx = SectionCx { width: width.max(1), theme, now };
            state.return_to(anchor, transcript, cx);
        }
    }

    /// Makes sure that there are rows above `top` in memory: cells of the transcript now, earlier
    /// entries with an effect.
    pub(super) fn load_above(&mut self, n_rows: usize) {
        let Some(top) = self.state.top else { return };
        if top.part != RECENT {
            return;
        }
        let (theme, now, width) = (&self.app.theme, self.app.now, self.width);
        let transcript = &mut self.app.transcript;
        let above = top.row.saturating_sub(transcript.body());
        if above < n_rows && transcript.hides_cells() {
            let more = n_rows.saturating_add(MORE_ROWS);
            if let Some(search) = &mut self.state.search {
                search.forget_recent();
            }
            self.state.keeping_places(transcript, |transcript| {
                transcript::draw_earlier(transcript, more, width, theme, now);
            });
        }
        if !self.app.transcript.hides_cells() {
            self.state.want_tree(&self.app.transcript);
        }
    }

    /// Asks for the tree if many rows of the transcript are far from the screen. They are released
    /// when it has come: then their entries can be read again.
    pub(super) fn release_far(&mut self) {
        let needed = self.state.first_needed();
        if self.state.releasing.is_none()
            && let Some(n_messages) = self.app.transcript.releasable(needed)
        {
            self.state.releasing = Some(n_messages);
            self.state.wanted.push(ReadEffect::Tree);
        }
    }

    /// Corrects the first row after sections were read or rows are gone.
    pub(super) fn settle_top(&mut self) {
        let Some(top) = self.state.top else { return };
        let end = self.last_top();
        let at_end = self.state.at_end;
        let mut rows = self.rows();
        let mut top = rows.clamp(top);
        if at_end && rows.is_read(top.part) {
            if let Some((_, last)) = rows.bounds(top.part) {
                top = last;
            }
            self.state.at_end = false;
        }
        self.state.top = (top < end || self.state.held == Some(top)).then_some(top);
    }

    /// Why the search has no match in what is shown. All text that is not shown is searched when the user
    /// asks for it, and a limited amount of it while the query is typed.
    fn why_nothing(&mut self, search: &Search, step: Step) -> Note {
        const TYPED_BYTES: usize = 4 * 1024 * 1024;
        let max_bytes = if step.is_deep { usize::MAX } else { TYPED_BYTES };
        let query: String = search.query.iter().collect();
        let cx = (self.width, &self.app.theme, self.app.now);
        match find_hidden(&mut self.app.transcript, &query, max_bytes, cx) {
            Ok(hidden) => hidden.or(search.hidden).map_or(Note::NotFound, Note::Hidden),
            Err(TooMuch) => Note::NotHere,
        }
    }

    /// Goes on with the search.
    pub(super) fn seek(&mut self) {
        let Some(step) = self.state.search.as_ref().and_then(|search| search.waiting) else { return };
        let top = self.top();
        if self.app.transcript.hides_cells() {
            let following = self.state.top.is_none();
            self.state.top = Some(top);
            if top.part == RECENT {
                self.load_above(usize::MAX);
            }
            if following {
                self.state.top = None;
            }
        }
        let Some(mut search) = self.state.search.take() else { return };
        let sought = search.seek(step, &mut self.rows());
        search.waiting = None;
        match sought {
            Sought::Found(found) => {
                search.go_to(found, &mut self.rows());
                self.show_spot(found.from.spot);
            }
            Sought::NeedsEarlier => {
                search.waiting = Some(step);
                self.state.want_tree(&self.app.transcript);
                if let Some(tree) = self.state.earlier.list.tree.clone()
                    && !search.is_asked
                {
                    search.is_asked = true;
                    let (path, query) = (self.state.earlier.list.path.clone(), search.query.iter().collect());
                    self.state.wanted.push(ReadEffect::Search { tree, path, query });
                }
            }
            Sought::NeedsSection(section) => {
                search.waiting = Some(step);
                self.state.earlier.list.want(section);
            }
            Sought::Nothing if search.query.is_empty() => search.note = None,
            Sought::Nothing if !step.is_deep && self.app.transcript.has_earlier() => {
                search.note = Some(Note::NotHere);
            }
            Sought::Nothing => search.note = Some(self.why_nothing(&search, step)),
        }
        self.state.search = Some(search);
    }
}

/// Shows what was shown before the main screen, which laid the transcript out in its own way.
fn return_after_main_screen(viewport: &mut Viewport<'_>, Returning { anchor, n_released }: Returning) {
    let (theme, now, width) = (&viewport.app.theme, viewport.app.now, viewport.width);
    let (state, transcript) = (&mut *viewport.state, &mut viewport.app.transcript);
    state.earlier.follow_view(transcript.view());
    transcript.layout(width, theme, now);
    while anchor.top.part == RECENT && !transcript.shows(&anchor.place) && transcript.hides_cells() {
        transcript::draw_earlier(transcript, MORE_ROWS, width, theme, now);
    }
    if anchor.top.part == RECENT && !transcript.shows(&anchor.place) {
        // It has left memory.
        state.top = None;
        return;
    }
    state.return_to(anchor, transcript, SectionCx { width: width.max(1), theme, now });
    if transcript.n_released() > n_released {
        // The entries between the earlier ones and those in memory.
        state.earlier.is_asked = false;
        state.want_tree(transcript);
    }
}
