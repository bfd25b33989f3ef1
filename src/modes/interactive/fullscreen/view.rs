//! The state of fullscreen, and a frame of it.

use std::ops::Range;
use std::time::Duration;

use crate::session::SessionTree;
use crate::tui::text::Row;

use super::super::app::App;
use super::super::sections::{ReadEffect, SectionCx};
use super::super::transcript::{self, RowPlace, Transcript};
use super::blocks::ToggledBlock;
use super::caret::CaretMove;
use super::scrollback::{Earlier, RECENT, Scrollback, Spot};
use super::search::{Search, Step};
use super::selection::{Point, Selection};
use super::viewport::{Viewport, text_width};
use super::wheel::Wheel;

/// What the next frame does first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Move {
    Rows(isize),
    Pages(isize),
    HalfPages(isize),
    Top,
    Bottom,
    Prompt {
        forward: bool,
    },
    /// To the row at this part of the scrollbar's height, in thousandths.
    Part(usize),
    /// Moves the caret of the keyboard's selection.
    Caret(CaretMove),
}

/// The state of fullscreen.
#[derive(Default)]
pub(in super::super) struct Fullscreen {
    pub(super) earlier: Earlier,
    /// Number of prompts and answers whose cells leave memory when the tree is there.
    pub(super) releasing: Option<usize>,
    /// The first visible row; `None` follows the end.
    pub(super) top: Option<Spot>,
    /// Whether `top` is a section that was reached from below and is not read yet: its end is to
    /// be shown.
    pub(super) at_end: bool,
    pub(super) moves: Vec<Move>,
    pub(super) selection: Option<Selection>,
    /// The caret of the keyboard's selection, while that is active.
    pub(super) caret: Option<Point>,
    /// Direction in which the screen scrolls because the mouse is held beyond the rows.
    pub(super) autoscroll: Option<isize>,
    /// A copy that waits for sections to be read.
    pub(super) waiting_copy: bool,
    pub(super) search: Option<Search>,
    pub(super) wheel: Wheel,
    pub(super) clicks: Clicks,
    pub(super) is_scrollbar_held: bool,
    /// Where `top` stays although the end was followed, because the button is down.
    pub(super) held: Option<Spot>,
    /// What the last frame showed.
    pub(super) shown: Shown,
    /// Effects for the world.
    pub(super) wanted: Vec<ReadEffect>,
    /// The last row while the end was followed.
    pub(super) seen: Option<RowPlace>,
    /// Where the first row was before the width changed, while the user has not scrolled since.
    anchor: Option<Anchor>,
    /// The place to return to with the next frame, after the main screen was shown.
    pub(super) returning: Option<Returning>,
}

/// What fullscreen showed when it was left.
pub(in super::super) struct LeftPlace {
    earlier: Earlier,
    returning: Returning,
}

/// Where to return to.
#[derive(Clone, Copy)]
pub(super) struct Returning {
    pub(super) anchor: Anchor,
    /// Prompts and answers that had left memory.
    pub(super) n_released: usize,
}

/// The place of a first row, which several changes of the width do not move.
#[derive(Clone, Copy)]
pub(super) struct Anchor {
    pub(super) top: Spot,
    pub(super) place: RowPlace,
}

impl LeftPlace {
    pub(super) fn enter(self) -> Fullscreen {
        let Self { earlier, returning } = self;
        let top = Some(returning.anchor.top);
        Fullscreen { earlier, top, returning: Some(returning), ..Fullscreen::default() }
    }
}

/// Presses of a button at one place shortly after each other.
#[derive(Default)]
pub(super) struct Clicks {
    pub(super) last: Option<(Duration, Point)>,
    pub(super) count: usize,
    /// What the last of them opened or closed.
    pub(super) toggled: Option<ToggledBlock>,
}

/// The last frame.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) spots: Vec<Spot>,
    pub(super) page: usize,
    /// Blank rows below them.
    pub(super) n_blank_below: usize,
    /// Columns of the rows, and of the screen.
    pub(super) width: u16,
    pub(super) screen_width: u16,
    pub(super) has_scrollbar: bool,
    /// The columns of the label that leads to the end, on the last row.
    pub(super) label: Option<Range<u16>>,
}

impl Fullscreen {
    /// Shows another session or branch from its end.
    pub(in super::super) fn start_over(&mut self) {
        *self = Self { clicks: std::mem::take(&mut self.clicks), ..Self::default() };
    }

    /// What it shows, unless that is the end.
    pub(super) fn leave(self, transcript: &Transcript) -> Option<LeftPlace> {
        let anchor = self.returning.map(|returning| returning.anchor);
        let anchor = anchor.or_else(|| self.anchor_of_top(transcript))?;
        let returning = Returning { anchor, n_released: transcript.n_released() };
        Some(LeftPlace { earlier: self.earlier, returning })
    }

    /// Whether the next frame changes something without an event.
    pub(in super::super) fn is_moving(&self) -> bool {
        self.autoscroll.is_some()
    }

    /// Takes the entries before the transcript out of `tree`, and releases cells that waited for
    /// that.
    pub(super) fn on_tree(&mut self, tree: SessionTree, transcript: &mut Transcript) {
        let releasing = self.releasing.take().unwrap_or(0);
        let n_released = releasing.max(transcript.n_released());
        if self.earlier.on_tree(tree, transcript, n_released) {
            transcript::release(transcript, n_released);
        }
        if let Some(search) = &mut self.search {
            // What was found is known by an older tree.
            search.forget_sections();
        }
    }

    pub(super) fn on_found(
        &mut self,
        tree: &SessionTree,
        query: &str,
        positions: &[usize],
        transcript: &Transcript,
    ) {
        let Some(search) = self.search.as_mut().filter(|_| self.earlier.list.is_of(tree)) else {
            return;
        };
        if search.query.iter().collect::<String>() != query {
            return;
        }
        let mut sections = self.earlier.list.sections_of(positions);
        sections
            .extend(transcript.released_remarks(query).into_iter().filter_map(|at| self.earlier.part_at(at)));
        sections.sort_unstable();
        sections.dedup();
        search.sections = Some(sections);
    }

    /// Effects that the last frame asks for.
    pub(super) fn take_wanted(&mut self) -> Vec<ReadEffect> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.extend(self.earlier.list.take_wanted());
        wanted
    }

    /// Asks for the tree, unless everything is in the transcript.
    pub(super) fn want_tree(&mut self, transcript: &Transcript) {
        if transcript.has_earlier() && !self.earlier.is_asked {
            self.earlier.is_asked = true;
            self.wanted.push(ReadEffect::Tree);
        }
    }

    pub(super) fn scrollback<'a>(
        &'a mut self,
        transcript: &'a Transcript,
        cx: SectionCx<'a>,
    ) -> Scrollback<'a> {
        Scrollback { earlier: &mut self.earlier, transcript, cx }
    }

    /// The spots that must stay where they are while the transcript is laid out.
    pub(super) fn spots_mut(&mut self) -> Vec<&mut Spot> {
        let mut spots: Vec<&mut Spot> = self.top.iter_mut().collect();
        if let Some(selection) = &mut self.selection {
            spots.extend([&mut selection.anchor.spot, &mut selection.head.spot]);
        }
        spots.extend(self.caret.as_mut().map(|caret| &mut caret.spot));
        spots.extend(self.clicks.last.as_mut().map(|(_, point)| &mut point.spot));
        if let Some(toggled) = &mut self.clicks.toggled {
            spots.extend([&mut toggled.at.spot, &mut toggled.first]);
        }
        if let Some(search) = &mut self.search {
            spots.extend(search.origin.as_mut());
            if let Some(current) = &mut search.current {
                spots.extend([&mut current.from.spot, &mut current.to.spot]);
            }
        }
        spots.retain(|spot| spot.part == RECENT);
        spots
    }

    /// Remembers that the last row of the transcript was visible.
    pub(super) fn see_all(&mut self, transcript: &Transcript) {
        self.seen = transcript.len().checked_sub(1).and_then(|last| transcript.place(last));
    }

    /// Number of rows that came since then.
    pub(super) fn n_new(&self, transcript: &Transcript) -> usize {
        let n_seen = self.seen.map_or(usize::MAX, |place| transcript.row_of(&place) + 1);
        transcript.len().saturating_sub(n_seen)
    }

    /// Where the first row is, for [`Self::return_to`] after another layout.
    pub(super) fn anchor_of_top(&self, transcript: &Transcript) -> Option<Anchor> {
        let top = self.top?;
        if let Some(anchor) = self.anchor.filter(|anchor| anchor.top == top) {
            return Some(anchor);
        }
        let place = self.earlier.place(top).or_else(|| transcript.place_in_text(top.row))?;
        Some(Anchor { top, place })
    }

    /// Makes the row of `anchor` the first one, after a layout.
    pub(super) fn return_to(&mut self, mut anchor: Anchor, transcript: &Transcript, cx: SectionCx<'_>) {
        let Some(top) = &mut self.top else { return };
        top.row = match self.earlier.list.sections.get_mut(top.part) {
            Some(section) => {
                section.layout(cx);
                section.row_of(&anchor.place).unwrap_or(top.row)
            }
            None => transcript.row_of(&anchor.place),
        };
        anchor.top = *top;
        self.anchor = Some(anchor);
    }

    /// The first row of the transcript that is visible, selected or found; `usize::MAX` if only
    /// the end is visible.
    pub(super) fn first_needed(&mut self) -> usize {
        let clicks = std::mem::take(&mut self.clicks);
        let first = self.spots_mut().iter().map(|spot| spot.row).min();
        self.clicks = clicks;
        first.unwrap_or(usize::MAX)
    }

    /// Runs `change`, which moves rows of the transcript, and follows them.
    pub(super) fn keeping_places(
        &mut self,
        transcript: &mut Transcript,
        change: impl FnOnce(&mut Transcript),
    ) {
        let places: Vec<Option<RowPlace>> =
            self.spots_mut().iter().map(|spot| transcript.place(spot.row)).collect();
        change(transcript);
        for (spot, place) in self.spots_mut().into_iter().zip(places) {
            if let Some(place) = place {
                spot.row = transcript.row_of(&place);
            }
        }
    }
}

/// Lays the transcript out and returns the rows above the dock, `page` of them, and the cursor
/// among them, if it is there. The dock begins with `n_blank` blank rows.
pub(in super::super) fn render(
    app: &mut App,
    screen_width: u16,
    page: usize,
    n_blank: usize,
) -> (Vec<Row>, Option<(u16, u16)>) {
    let width = text_width(app, screen_width);
    let Some(mut state) = app.fullscreen.take() else { return (Vec::new(), None) };
    let mut viewport = Viewport { state: &mut state, app, page, width };
    viewport.lay_out();
    viewport.state.shown.page = page;
    viewport.state.shown.n_blank_below = n_blank;
    viewport.perform_all();
    viewport.autoscroll();
    viewport.seek();
    let drawn = viewport.compose(screen_width);
    app.fullscreen = Some(state);
    drawn
}

/// Does what earlier inputs asked for, so that another one sees its result.
pub(super) fn catch_up(app: &mut App) {
    let Some(mut state) = app.fullscreen.take() else { return };
    let (page, width) = (state.shown.page, state.shown.width);
    Viewport { state: &mut state, app, page, width }.perform_all();
    app.fullscreen = Some(state);
}

/// A step of the search.
pub(super) fn step(view: &mut Fullscreen, forward: bool) {
    if let Some(search) = &mut view.search {
        search.waiting = Some(Step { forward, is_deep: true });
    }
}
