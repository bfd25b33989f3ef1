//! The state of fullscreen, and the rows above the editor.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use ratatui::style::{Modifier, Style};

use crate::config::Scrollbar;
use crate::session::SessionTree;
use crate::tui::keymap::Keymap;
use crate::tui::text::{Ellipsis, Row, Run, truncate_row, width};
use crate::tui::theme::{Theme, Token};

use super::super::app::App;
use super::super::pager::SectionCx;
use super::super::transcript::{self, RowPlace, Transcript};
use super::FullscreenEffect;
use super::scrollback::{Earlier, RECENT, Scrollback, Spot};
use super::search::{Note, Search, Sought, Step};
use super::selection::{Extent, Point, Selection, with_style};
use super::wheel::Wheel;

/// Rows of the transcript that are drawn at once when earlier ones are needed.
const MORE_ROWS: usize = 400;

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

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CaretMove {
    Columns(i32),
    Rows(i32),
    Words(i32),
    LineStart,
    LineEnd,
}

/// The state of fullscreen.
#[derive(Default)]
pub(in super::super) struct Fullscreen {
    pub(super) earlier: Earlier,
    /// The first visible row; `None` follows the end.
    pub(super) top: Option<Spot>,
    /// Whether `top` is a section that was reached from below and is not read yet: its end is to
    /// be shown.
    at_end: bool,
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
    /// What the last frame showed.
    pub(super) shown: Shown,
    /// Effects for the world.
    wanted: Vec<FullscreenEffect>,
    /// The last row while the end was followed.
    seen: Option<RowPlace>,
    /// Where the first row was before the width changed, while the user has not scrolled since.
    anchor: Option<Anchor>,
}

/// The place of a first row, which several changes of the width do not move.
#[derive(Clone, Copy)]
struct Anchor {
    top: Spot,
    place: RowPlace,
}

/// Presses of a button at one place shortly after each other.
#[derive(Default)]
pub(super) struct Clicks {
    pub(super) last: Option<(Duration, Point)>,
    pub(super) count: usize,
}

/// The last frame.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) spots: Vec<Spot>,
    pub(super) page: usize,
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

    /// Whether the next frame changes something without an event.
    pub(in super::super) fn is_moving(&self) -> bool {
        self.autoscroll.is_some()
    }

    /// Takes the entries before the transcript out of `tree`.
    pub(super) fn on_tree(&mut self, tree: SessionTree, transcript: &Transcript) {
        self.earlier = Earlier::of(tree, transcript);
    }

    pub(super) fn on_found(&mut self, tree: &SessionTree, query: &str, positions: &[usize]) {
        let Some(search) = self.search.as_mut().filter(|_| self.earlier.tree.as_ref() == Some(tree)) else {
            return;
        };
        if search.query.iter().collect::<String>() != query {
            return;
        }
        let sections = &self.earlier.sections;
        let section_of =
            |position: &usize| sections.partition_point(|section| section.entries.end <= *position);
        let mut found: Vec<usize> = positions.iter().map(section_of).collect();
        found.dedup();
        search.sections = Some(found);
    }

    /// Effects that the last frame asks for.
    pub(super) fn take_wanted(&mut self) -> Vec<FullscreenEffect> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.extend(self.earlier.take_wanted());
        wanted
    }

    /// Asks for the tree, unless everything is in the transcript.
    fn want_tree(&mut self, transcript: &Transcript) {
        if transcript.first_entry().is_some() && !self.earlier.is_asked {
            self.earlier.is_asked = true;
            self.wanted.push(FullscreenEffect::ReadTree);
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
    fn spots_mut(&mut self) -> Vec<&mut Spot> {
        let mut spots: Vec<&mut Spot> = self.top.iter_mut().collect();
        if let Some(selection) = &mut self.selection {
            spots.extend([&mut selection.anchor.spot, &mut selection.head.spot]);
        }
        spots.extend(self.caret.as_mut().map(|caret| &mut caret.spot));
        spots.extend(self.clicks.last.as_mut().map(|(_, point)| &mut point.spot));
        if let Some(search) = &mut self.search {
            spots.extend(search.origin.as_mut());
            if let Some(current) = &mut search.current {
                spots.extend([&mut current.from.spot, &mut current.to.spot]);
            }
        }
        spots.retain(|spot| spot.part == RECENT);
        spots
    }

    /// Runs `change`, which moves rows of the transcript, and follows them.
    fn keeping_places(&mut self, transcript: &mut Transcript, change: impl FnOnce(&mut Transcript)) {
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
/// among them, if it is there.
pub(in super::super) fn render(
    app: &mut App,
    screen_width: u16,
    page: usize,
) -> (Vec<Row>, Option<(u16, u16)>) {
    let width = text_width(app, screen_width);
    let Some(mut view) = app.fullscreen.take() else { return (Vec::new(), None) };
    lay_out(&mut view, app, width);
    view.shown.page = page;
    perform_all(&mut view, app, page, width);
    autoscroll(&mut view, app, page, width);
    seek(&mut view, app, page, width);
    let drawn = compose(&mut view, app, screen_width, page);
    app.fullscreen = Some(view);
    drawn
}

/// Does what earlier inputs asked for, so that another one sees its result.
pub(super) fn catch_up(app: &mut App) {
    let Some(mut view) = app.fullscreen.take() else { return };
    let (page, width) = (view.shown.page, view.shown.width);
    perform_all(&mut view, app, page, width);
    app.fullscreen = Some(view);
}

fn perform_all(view: &mut Fullscreen, app: &mut App, page: usize, width: u16) {
    for step in std::mem::take(&mut view.moves) {
        perform(view, app, step, page, width);
    }
}

/// Columns of the rows: the last column is that of the scrollbar, also while there is none, so
/// that text is not wrapped anew when it appears.
fn text_width(app: &App, screen_width: u16) -> u16 {
    const LEAST: u16 = 10;
    let has_bar = app.session.settings.values.fullscreen.scrollbar != Scrollbar::Hidden;
    screen_width - u16::from(has_bar && screen_width >= LEAST)
}

fn section_cx<'a>(app: &'a App, width: u16) -> SectionCx<'a> {
    SectionCx { width: width.max(1), theme: &app.theme, now: app.now }
}

fn lay_out(view: &mut Fullscreen, app: &mut App, width: u16) {
    let (theme, now) = (&app.theme, app.now);
    let transcript = &mut app.transcript;
    view.earlier.follow_view(transcript.view());
    if transcript.is_laid_out(width, theme) {
        return view.keeping_places(transcript, |transcript| transcript.layout(width, theme, now));
    }
    // Columns mean something else afterwards.
    (view.selection, view.caret) = (None, None);
    let anchor = view.top.and_then(|top| view.anchor.filter(|anchor| anchor.top == top));
    let anchor = anchor.or_else(|| {
        let top = view.top?;
        Some(Anchor { top, place: view.earlier.place(top).or_else(|| transcript.place_in_text(top.row))? })
    });
    let first = view.spots_mut().iter().map(|spot| spot.row).min();
    if let Some(first) = first {
        transcript::keep_since(transcript, first);
    }
    view.keeping_places(transcript, |transcript| transcript.layout(width, theme, now));
    if let Some(search) = &mut view.search {
        search.current = None;
    }
    if let (Some(top), Some(mut anchor)) = (&mut view.top, anchor) {
        let cx = SectionCx { width: width.max(1), theme, now };
        top.row = match view.earlier.sections.get_mut(top.part) {
            Some(section) => {
                section.layout(cx);
                section.row_of(&anchor.place).unwrap_or(top.row)
            }
            None => transcript.row_of(&anchor.place),
        };
        anchor.top = *top;
        view.anchor = Some(anchor);
    }
}

/// Makes sure that there are rows above `top` in memory: cells of the transcript now, earlier
/// entries with an effect.
fn load_above(view: &mut Fullscreen, app: &mut App, n_rows: usize, width: u16) {
    let Some(top) = view.top else { return };
    if top.part != RECENT {
        return;
    }
    let (theme, now) = (&app.theme, app.now);
    let transcript = &mut app.transcript;
    let above = top.row.saturating_sub(transcript.body());
    if above < n_rows && transcript.hides_cells() {
        let more = n_rows.saturating_add(MORE_ROWS);
        view.keeping_places(transcript, |transcript| {
            transcript::draw_earlier(transcript, more, width, theme, now);
        });
    }
    if !app.transcript.hides_cells() {
        view.want_tree(&app.transcript);
    }
}

/// The first row of the last page.
fn last_top(view: &mut Fullscreen, app: &App, page: usize, width: u16) -> Spot {
    let cx = section_cx(app, width);
    let mut rows = view.scrollback(&app.transcript, cx);
    let last = rows.last();
    rows.up(last, page.saturating_sub(1)).0
}

fn perform(view: &mut Fullscreen, app: &mut App, step: Move, page: usize, width: u16) {
    let page_rows = isize::try_from(page).unwrap_or(isize::MAX);
    match step {
        Move::Rows(count) => scroll(view, app, count, page, width),
        Move::Pages(count) => scroll(view, app, count * (page_rows - 1).max(1), page, width),
        Move::HalfPages(count) => scroll(view, app, count * (page_rows / 2).max(1), page, width),
        Move::Bottom => (view.top, view.at_end) = (None, false),
        Move::Top => {
            view.top = Some(last_top(view, app, page, width));
            load_above(view, app, usize::MAX, width);
            let rows = view.scrollback(&app.transcript, section_cx(app, width));
            let is_whole = rows.transcript.first_entry().is_none() || rows.earlier.tree.is_some();
            (view.top, view.at_end) = (Some(rows.first()), false);
            if !is_whole {
                // Again, once the tree is there.
                view.moves.push(Move::Top);
            }
        }
        Move::Prompt { forward } => to_prompt(view, app, forward, page, width),
        Move::Part(thousandths) => to_part(view, app, thousandths, page, width),
        Move::Caret(step) => move_caret(view, app, step, page, width),
    }
    if let Some(caret) = view.caret
        && !matches!(step, Move::Caret(_))
    {
        keep_caret_visible(view, app, caret, page, width);
    }
}

/// Moves the first row by `count` rows.
fn scroll(view: &mut Fullscreen, app: &mut App, count: isize, page: usize, width: u16) {
    let from = match view.top {
        Some(top) => top,
        None if count >= 0 => return,
        None => last_top(view, app, page, width),
    };
    view.top = Some(from);
    if count < 0 {
        load_above(view, app, count.unsigned_abs() + 2 * page, width);
    }
    let from = view.top.unwrap_or(from);
    let end = last_top(view, app, page, width);
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let to = match count < 0 {
        true => rows.up(from, count.unsigned_abs()).0,
        false => rows.down(from, count.unsigned_abs()).0,
    };
    let is_read = rows.is_read(to.part);
    view.at_end = count < 0 && !is_read;
    view.top = (to < end).then_some(to);
}

fn to_prompt(view: &mut Fullscreen, app: &mut App, forward: bool, page: usize, width: u16) {
    let from = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    view.top = Some(from);
    if !forward {
        // Prompts of cells without rows are found too.
        load_above(view, app, 4 * page, width);
        while app.transcript.hides_cells()
            && view
                .top
                .is_some_and(|top| top.part == RECENT && app.transcript.prompt_before(top.row).is_none())
        {
            load_above(view, app, view.top.map_or(0, |top| top.row) + MORE_ROWS, width);
        }
    }
    let from = view.top.unwrap_or(from);
    let end = last_top(view, app, page, width);
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    // A prompt begins with a blank row, which is the first one on the screen.
    match rows.prompt(from, forward) {
        Some(found) => (view.top, view.at_end) = ((found < end).then_some(found), false),
        None if forward => view.top = None,
        None => {
            let is_first = rows.first();
            let is_whole = rows.transcript.first_entry().is_none() || rows.earlier.tree.is_some();
            if is_whole {
                view.top = (is_first < end).then_some(is_first);
            } else {
                // Again, once the tree is there.
                view.moves.push(Move::Prompt { forward });
            }
        }
    }
}

/// Goes to a part of the whole height.
fn to_part(view: &mut Fullscreen, app: &mut App, thousandths: usize, page: usize, width: u16) {
    view.top = Some(last_top(view, app, page, width));
    load_above(view, app, usize::MAX, width);
    if app.transcript.first_entry().is_some() && view.earlier.tree.is_none() {
        // Again, once the tree is there.
        return view.moves.push(Move::Part(thousandths));
    }
    let end = last_top(view, app, page, width);
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let (_, total) = rows.position(end);
    let wanted = total.saturating_mul(thousandths) / 1_000;
    let n_parts = rows.earlier.sections.len();
    let part = rows.first_part_at(wanted);
    let start = if part < n_parts { Spot { part, row: 0 } } else { rows.recent_first() };
    let (before, _) = rows.position(start);
    let spot = rows.down(start, wanted.saturating_sub(before)).0;
    let spot = rows.clamp(spot);
    (view.top, view.at_end) = ((spot < end).then_some(spot), false);
}

fn autoscroll(view: &mut Fullscreen, app: &mut App, page: usize, width: u16) {
    let Some(direction) = view.autoscroll else { return };
    scroll(view, app, direction, page, width);
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let edge = if direction < 0 { top } else { rows.down(top, page.saturating_sub(1)).0 };
    let column = if direction < 0 { 0 } else { width };
    if let Some(selection) = &mut view.selection {
        selection.extend(Point { spot: edge, column });
    }
}

fn move_caret(view: &mut Fullscreen, app: &mut App, step: CaretMove, page: usize, width: u16) {
    let Some(caret) = view.caret else { return };
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let row = rows.row(caret.spot).into_owned();
    let inside = row.text_columns();
    let last = inside.end.saturating_sub(1).max(inside.start);
    let moved = match step {
        CaretMove::LineStart => Point { column: inside.start, ..caret },
        CaretMove::LineEnd => Point { column: last, ..caret },
        CaretMove::Columns(count) => {
            let stops = stops(&row);
            let at = stops.partition_point(|stop| *stop < caret.column);
            let to = i32::try_from(at).unwrap_or(0) + count;
            match usize::try_from(to).ok().and_then(|to| stops.get(to)) {
                Some(column) => Point { column: *column, ..caret },
                None => {
                    let (spot, _) = if count < 0 { rows.up(caret.spot, 1) } else { rows.down(caret.spot, 1) };
                    let columns = rows.row(spot).text_columns();
                    let end = columns.end.saturating_sub(1).max(columns.start);
                    let column = if count < 0 { end } else { columns.start };
                    if spot == caret.spot { caret } else { Point { spot, column } }
                }
            }
        }
        CaretMove::Rows(count) => {
            let (spot, _) = if count < 0 { rows.up(caret.spot, 1) } else { rows.down(caret.spot, 1) };
            Point { spot, ..caret }
        }
        CaretMove::Words(count) => {
            let starts = word_starts(&row);
            let next = if count < 0 {
                starts.iter().rev().find(|start| **start < caret.column)
            } else {
                starts.iter().find(|start| **start > caret.column)
            };
            match next {
                Some(column) => Point { column: *column, ..caret },
                None => {
                    let (spot, _) = if count < 0 { rows.up(caret.spot, 1) } else { rows.down(caret.spot, 1) };
                    let next = word_starts(&rows.row(spot));
                    let column = if count < 0 { next.last() } else { next.first() };
                    if spot == caret.spot {
                        caret
                    } else {
                        Point { spot, column: column.copied().unwrap_or(0) }
                    }
                }
            }
        }
    };
    set_caret(view, app, moved, page, width);
}

/// The columns at which the clusters of a row begin.
fn stops(row: &Row) -> Vec<u16> {
    let inside = row.text_columns();
    let mut at = 0_u16;
    let mut stops = Vec::new();
    for (_, cells) in crate::tui::text::graphemes(&row.text()) {
        if cells > 0 && inside.contains(&at) {
            stops.push(at);
        }
        at = at.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
    }
    stops
}

fn word_starts(row: &Row) -> Vec<u16> {
    let mut starts: Vec<u16> = Vec::new();
    let mut at = row.text_columns().start;
    let end = row.text_columns().end;
    let text = row.text();
    let is_blank = |column: u16| {
        let mut from = 0_u16;
        crate::tui::text::graphemes(&text).any(|(grapheme, cells)| {
            let start = from;
            from = from.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
            start == column && grapheme.trim().is_empty()
        })
    };
    while at < end {
        let word = super::selection::word(row, at);
        if !is_blank(at) {
            starts.push(at);
        }
        at = word.end.max(at + 1);
    }
    starts
}

/// Moves the caret and what it selects, and scrolls to it.
fn set_caret(view: &mut Fullscreen, app: &mut App, caret: Point, page: usize, width: u16) {
    view.caret = Some(caret);
    if let Some(selection) = &mut view.selection {
        selection.extend(caret);
        selection.is_extended = true;
    }
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let bottom = rows.down(top, page.saturating_sub(2)).0;
    if caret.spot < top {
        view.top = Some(caret.spot);
        load_above(view, app, 2 * page, width);
    } else if caret.spot > bottom {
        let to = rows.up(caret.spot, page.saturating_sub(2)).0;
        view.top = Some(to);
        scroll(view, app, 0, page, width);
    }
}

/// Brings the caret onto the screen after it scrolled.
fn keep_caret_visible(view: &mut Fullscreen, app: &mut App, caret: Point, page: usize, width: u16) {
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let bottom = rows.down(top, page.saturating_sub(2)).0;
    let spot = caret.spot.clamp(top, bottom.max(top));
    let columns = rows.row(spot).text_columns();
    let column = caret.column.clamp(columns.start, columns.end.max(columns.start));
    if spot != caret.spot {
        set_caret(view, app, Point { spot, column }, page, width);
    }
}

/// Goes on with the search.
fn seek(view: &mut Fullscreen, app: &mut App, page: usize, width: u16) {
    let Some(step) = view.search.as_ref().and_then(|search| search.waiting) else { return };
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    if app.transcript.hides_cells() {
        let following = view.top.is_none();
        view.top = Some(top);
        if top.part == RECENT {
            load_above(view, app, usize::MAX, width);
        }
        if following {
            view.top = None;
        }
    }
    let Some(mut search) = view.search.take() else { return };
    let sought = search.seek(step, &mut view.scrollback(&app.transcript, section_cx(app, width)));
    search.waiting = None;
    match sought {
        Sought::Found(found) => {
            search.current = Some(found);
            search.note = None;
            show_spot(view, app, found.from.spot, page, width);
        }
        Sought::NeedsEarlier => {
            search.waiting = Some(step);
            view.want_tree(&app.transcript);
            if let Some(tree) = view.earlier.tree.clone()
                && !search.is_asked
            {
                search.is_asked = true;
                let (path, query) = (view.earlier.path.clone(), search.query.iter().collect());
                view.wanted.push(FullscreenEffect::Search { tree, path, query });
            }
        }
        Sought::NeedsSection(section) => {
            search.waiting = Some(step);
            view.earlier.want(section);
        }
        Sought::Nothing if search.query.is_empty() => search.note = None,
        Sought::Nothing if !step.is_deep && app.transcript.first_entry().is_some() => {
            search.note = Some(Note::NotHere);
        }
        Sought::Nothing => search.note = Some(Note::NotFound),
    }
    view.search = Some(search);
}

/// Scrolls to a row, unless it is visible.
fn show_spot(view: &mut Fullscreen, app: &mut App, spot: Spot, page: usize, width: u16) {
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    let end = last_top(view, app, page, width);
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    // The last row is under the field of the search.
    let bottom = rows.down(top, page.saturating_sub(2)).0;
    if spot < top || spot > bottom {
        let to = rows.up(spot, page / 3).0;
        view.top = (to < end).then_some(to);
        view.at_end = false;
    }
}

// Composing.

fn compose(
    view: &mut Fullscreen,
    app: &mut App,
    screen_width: u16,
    page: usize,
) -> (Vec<Row>, Option<(u16, u16)>) {
    let width = text_width(app, screen_width);
    settle_top(view, app, page, width);
    load_above(view, app, 2 * page, width);
    let kept = kept_parts(view);
    if let Some(top) = view.top {
        view.earlier.follow(top.part, &kept);
    }
    let top = view.top.unwrap_or_else(|| last_top(view, app, page, width));
    let (theme, settings) = (&app.theme, &app.session.settings.values.fullscreen);
    let has_new = view.top.is_some();
    let search = view.search.take();
    let selection = view.selection;
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let last = rows.last();
    let spots = rows.spots(top, last, page);
    let selected: Option<Extent> = selection.and_then(|selection| selection.extent(&mut rows));
    let matches = search.as_ref().map(|search| search.visible(&spots, &mut rows)).unwrap_or_default();
    let current = search.as_ref().and_then(|search| search.current);
    let mut drawn = Vec::with_capacity(page);
    for spot in &spots {
        if !rows.is_read(spot.part) {
            drawn.push(Row::styled(" reading…", theme.style(Token::Dim)));
            continue;
        }
        let mut row = rows.row(*spot).into_owned();
        // Marks are for a scrollback of the terminal.
        row.mark = None;
        let inside = row.text_columns();
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        for found in &matches {
            let mark = if Some(*found) == current {
                theme.style(Token::Accent).add_modifier(Modifier::REVERSED | Modifier::BOLD)
            } else {
                reversed
            };
            if let Some(columns) = found.columns(*spot) {
                row = with_style(row, &within(&columns, &inside), mark);
            }
        }
        if let Some(columns) = selected.and_then(|selected| selected.columns(*spot))
            && !row.is_frame()
        {
            row = with_style(row, &within(&columns, &inside), reversed);
        }
        drawn.push(row);
    }
    let (above, total) = rows.position(top);
    drawn.resize(page, Row::default());

    let wants_bar = match settings.scrollbar {
        Scrollbar::Auto => has_new,
        Scrollbar::Always => true,
        Scrollbar::Hidden => false,
    };
    let bar = wants_bar.then(|| Bar::of(above, total, page)).flatten();
    if let Some(bar) = &bar {
        bar.draw(&mut drawn, screen_width, theme);
    }
    view.search = search;
    let label = draw_label(view, app, &mut drawn, screen_width);
    let cursor = cursor(view, &spots, page, screen_width);
    let first_recent = spots.iter().find(|spot| spot.part == RECENT);
    app.top_row = first_recent.map_or(0, |spot| spot.row);
    view.shown = Shown { spots, page, width, screen_width, has_scrollbar: bar.is_some(), label };
    if view.top.is_none() {
        view.seen = app.transcript.len().checked_sub(1).and_then(|last| app.transcript.place(last));
    }
    for row in &mut drawn {
        truncate_row(row, screen_width.max(1), Ellipsis::One);
    }
    (drawn, cursor)
}

fn within(columns: &Range<u16>, inside: &Range<u16>) -> Range<u16> {
    columns.start.max(inside.start)..columns.end.min(inside.end)
}

/// Corrects the first row after sections were read or rows are gone.
fn settle_top(view: &mut Fullscreen, app: &mut App, page: usize, width: u16) {
    let Some(top) = view.top else { return };
    let end = last_top(view, app, page, width);
    let at_end = view.at_end;
    let mut rows = view.scrollback(&app.transcript, section_cx(app, width));
    let mut top = rows.clamp(top);
    if at_end && rows.is_read(top.part) {
        if let Some((_, last)) = rows.bounds(top.part) {
            top = last;
        }
        view.at_end = false;
    }
    view.top = (top < end).then_some(top);
}

/// The sections that a selection needs.
fn kept_parts(view: &Fullscreen) -> RangeInclusive<usize> {
    match &view.selection {
        Some(selection) => {
            let (first, last) = (selection.anchor.min(selection.head), selection.anchor.max(selection.head));
            first.spot.part..=last.spot.part
        }
        None => RangeInclusive::new(1, 0),
    }
}

/// The scrollbar: its handle, in rows of the screen.
struct Bar {
    handle: Range<usize>,
}

impl Bar {
    /// `None` if everything is visible.
    fn of(above: usize, total: usize, page: usize) -> Option<Self> {
        if total <= page || page == 0 {
            return None;
        }
        let size = (page * page / total).clamp(1, page);
        let room = page - size;
        let start = (above * room).div_ceil(total - page).min(room);
        Some(Self { handle: start..start + size })
    }

    fn draw(&self, rows: &mut [Row], width: u16, theme: &Theme) {
        let Some(column) = width.checked_sub(1) else { return };
        for (index, row) in rows.iter_mut().enumerate() {
            let is_handle = self.handle.contains(&index);
            row.clip(column);
            row.pad(column, Style::new());
            let (symbol, token) =
                if is_handle { ("█", Token::ScrollbarThumb) } else { ("│", Token::ScrollbarTrack) };
            row.push(Run::new(symbol, theme.style(token)));
        }
    }
}

/// The last row, if it has something else than the transcript: the search, the keys of a
/// selection, or the way to the end. Returns the columns of the latter.
fn draw_label(view: &Fullscreen, app: &App, rows: &mut [Row], width_cells: u16) -> Option<Range<u16>> {
    let (theme, keymap) = (&app.theme, &app.keymap);
    let last = rows.last_mut()?;
    if let Some(search) = &view.search {
        *last = search_row(search, width_cells, theme, keymap);
        return None;
    }
    if view.caret.is_some() {
        *last = caret_row(view.selection.is_some(), width_cells, theme);
        return None;
    }
    view.top?;
    let n_seen = view.seen.map_or(usize::MAX, |place| app.transcript.row_of(&place) + 1);
    let n_new = app.transcript.len().saturating_sub(n_seen);
    let key = keymap.hint("tui.altScreen.bottom");
    let news = if n_new > 0 { format!("{n_new} new rows") } else { "latest".to_owned() };
    let hint = if key.is_empty() { String::new() } else { format!(" · {key}") };
    let text = [format!(" ↓ {news}{hint} "), format!(" ↓ {news} "), " ↓ ".to_owned()]
        .into_iter()
        .find(|text| width(text) + 2 <= usize::from(width_cells))?;
    let cells = u16::try_from(width(&text)).unwrap_or(u16::MAX);
    let start = (width_cells - cells) / 2;
    let tail = cut_front(last, start + cells);
    last.clip(start);
    last.pad(start, Style::new());
    last.push(Run::new(text, theme.style(Token::Accent).add_modifier(Modifier::REVERSED)));
    last.append(tail);
    Some(start..start + cells)
}

/// The part of a row from `column` on.
fn cut_front(row: &Row, column: u16) -> Row {
    let mut rest = Row::default();
    let mut at = 0_u16;
    for span in &row.line.spans {
        for (grapheme, cells) in crate::tui::text::graphemes(&span.content) {
            let end = at.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX));
            if at >= column {
                rest.push(Run::new(grapheme, span.style));
            } else if end > column {
                rest.push(Run::new(" ".repeat(usize::from(end - column)), span.style));
            }
            at = end;
        }
    }
    rest
}

const SEARCH_LABEL: &str = " Search: ";

fn search_row(search: &Search, width_cells: u16, theme: &Theme, keymap: &Keymap) -> Row {
    let mut row = Row::default();
    row.push(Run::new(SEARCH_LABEL, theme.style(Token::Accent).add_modifier(Modifier::BOLD)));
    row.push(Run::new(search.field.text(), theme.style(Token::Text)));
    let hints = match (search.note, search.waiting) {
        (Some(Note::NotFound), _) => vec![("not found".to_owned(), Token::Warning)],
        (Some(Note::NotHere), _) => {
            let key = keymap.hint("tui.altScreen.searchNext");
            vec![("not here".to_owned(), Token::Warning), (format!("{key}: search all"), Token::Dim)]
        }
        (None, Some(_)) => vec![("searching…".to_owned(), Token::Dim)],
        (None, None) => [
            ("tui.altScreen.searchNext", "next"),
            ("tui.altScreen.searchPrevious", "previous"),
            ("tui.altScreen.searchClose", "close"),
        ]
        .into_iter()
        .filter_map(|(id, what)| {
            let key = keymap.hint(id);
            (!key.is_empty()).then(|| (format!("{key}: {what}"), Token::Dim))
        })
        .collect(),
    };
    let mut separator = "   ";
    for (hint, token) in hints {
        if row.width() + width(separator) + width(&hint) < usize::from(width_cells) {
            row.push(Run::new(format!("{separator}{hint}"), theme.style(token)));
            separator = " · ";
        }
    }
    row
}

fn caret_row(is_selecting: bool, width_cells: u16, theme: &Theme) -> Row {
    let mut row = Row::default();
    let title = if is_selecting { " Selecting " } else { " Select " };
    row.push(Run::new(title, theme.style(Token::Accent).add_modifier(Modifier::BOLD | Modifier::REVERSED)));
    let hints: &[&str] = if is_selecting {
        &["enter: copy", "arrows, w, b, page keys: extend", "escape: cancel"]
    } else {
        &["space: start here", "v: whole lines", "arrows, w, b, page keys: move", "escape: close"]
    };
    let mut separator = " ";
    for hint in hints {
        if row.width() + width(separator) + width(hint) <= usize::from(width_cells) {
            row.push(Run::new(format!("{separator}{hint}"), theme.style(Token::Dim)));
            separator = " · ";
        }
    }
    row
}

fn cursor(view: &Fullscreen, spots: &[Spot], page: usize, width_cells: u16) -> Option<(u16, u16)> {
    let row = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
    if let Some(search) = &view.search {
        let column = width(SEARCH_LABEL) + width(search.field.text());
        let column = u16::try_from(column).unwrap_or(u16::MAX).min(width_cells.saturating_sub(1));
        return Some((row(page.checked_sub(1)?), column));
    }
    let caret = view.caret?;
    let index = spots.iter().position(|spot| *spot == caret.spot)?;
    Some((row(index), caret.column.min(width_cells.saturating_sub(1))))
}

/// A step of the search.
pub(super) fn step(view: &mut Fullscreen, forward: bool) {
    if let Some(search) = &mut view.search {
        search.waiting = Some(Step { forward, is_deep: true });
    }
}
