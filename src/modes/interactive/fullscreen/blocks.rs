//! Opening and closing one block with a click.

use super::super::app::App;
use super::super::sections::SectionCx;
use super::super::transcript;
use super::scrollback::Spot;
use super::selection::Point;
use super::viewport::Viewport;

/// A block that the last click opened or closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToggledBlock {
    /// What was clicked, as the rows were before.
    pub(super) at: Point,
    /// The first row of the block.
    pub(super) first: Spot,
    /// Column and row of the click on the screen.
    pub(super) place: (u16, u16),
}

/// Opens or closes the block at a point, if there is one: a tool call, thinking, a summary or another text
/// of which a part may be hidden.
pub(super) fn toggle(app: &mut App, at: Point, place: (u16, u16)) {
    let first = change(app, at.spot);
    let Some(view) = &mut app.fullscreen else { return };
    view.clicks.toggled = first.map(|first| ToggledBlock { at, first, place });
}

/// The second click at one place belongs to the word there: the block becomes what it was before the first one.
pub(super) fn take_toggle_back(app: &mut App, place: (u16, u16)) -> Option<Point> {
    let toggled = app.fullscreen.as_mut()?.clicks.toggled.take()?;
    if toggled.place != place {
        return None;
    }
    change(app, toggled.first)?;
    Some(toggled.at)
}

/// Opens or closes the block of a row, and returns its first row.
fn change(app: &mut App, spot: Spot) -> Option<Spot> {
    let mut state = app.fullscreen.take()?;
    let (page, width) = (state.shown.page, state.shown.width);
    let first = toggle_block(&mut Viewport { state: &mut state, app, page, width }, spot);
    app.fullscreen = Some(state);
    first
}

/// The same; the first row of the screen stays.
fn toggle_block(viewport: &mut Viewport<'_>, spot: Spot) -> Option<Spot> {
    let before = viewport.state.top;
    // While the end was followed, the block would move up by what it shows.
    viewport.state.top = Some(viewport.top());
    let (theme, now, width) = (&viewport.app.theme, viewport.app.now, viewport.width);
    let (state, transcript) = (&mut *viewport.state, &mut viewport.app.transcript);
    let cx = SectionCx { width: width.max(1), theme, now };
    let anchor = state.anchor_of_top(transcript);
    let has_news = state.n_new(transcript) > 0;
    let mut first = None;
    match state.earlier.list.sections.get_mut(spot.part) {
        Some(section) => first = section.toggle_block(spot.row, cx),
        None => state.keeping_places(transcript, |transcript| {
            first = transcript::toggle_block(transcript, spot.row, (width, theme, now));
        }),
    }
    if first.is_none() {
        state.top = before;
        return None;
    }
    if !has_news && state.seen.is_some() {
        state.see_all(transcript);
    }
    if let Some(anchor) = anchor {
        state.return_to(anchor, transcript, cx);
    }
    if let Some(search) = &mut state.search {
        search.on_view_changed();
        search.forget_recent();
    }
    viewport.settle_top();
    // For a click before the next frame.
    let (top, page) = (viewport.top(), viewport.page);
    let mut rows = viewport.rows();
    let last = rows.last();
    viewport.state.shown.spots = rows.spots(top, last, page);
    first.map(|row| Spot { row, ..spot })
}
