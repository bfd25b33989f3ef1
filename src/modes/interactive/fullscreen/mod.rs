//! Fullscreen: the transcript on the alternate screen, scrolled, selected and searched by pi,
//! above the editor, which stays where it is.
//!
//! `scrollback` has the rows, of which those of earlier entries are read from the session's file
//! as they are needed. `view` is the state of the screen. `viewport` is that state with the app
//! and the size of the screen: `scrolling` and `caret` move it, `compose` draws it with
//! `scrollbar` and `last_row`. `selection` and `search` work on rows, and
//! `recent_matches` counts what the search finds as rows arrive; `blocks` opens and closes
//! what is clicked; `input` has keys and mouse.
//! The terminal follows [`App::fullscreen`](super::app::App::fullscreen): there is one state
//! exactly if the screen is fullscreen.
//! Invariant: what a frame costs depends on the size of the screen, not on the rows behind it.

mod blocks;
mod caret;
mod compose;
mod input;
mod last_row;
mod recent_matches;
mod scrollback;
mod scrollbar;
mod scrolling;
mod search;
mod selection;
mod view;
mod viewport;
mod wheel;

use super::app::App;
use super::msg::{Effect, ScreenEffect, WorldEffect};
use super::sections::{ReadDone, Reader};

pub(super) use input::{copy_selection, on_input};
pub(super) use selection::with_style;
pub(super) use view::{Fullscreen, LeftPlace, render};

/// Shows the result of an effect.
pub(super) fn on_done(app: &mut App, done: ReadDone, out: &mut Vec<Effect>) {
    let Some(view) = &mut app.fullscreen else { return };
    match done {
        ReadDone::Tree(tree) => view.on_tree(tree, &mut app.transcript),
        ReadDone::Sections { tree, sections } => {
            view.earlier.on_read(&tree, sections, &app.transcript);
            out.extend(input::take_copied(app).map(|text| ScreenEffect::Copy(text).into()));
        }
        ReadDone::Found { tree, query, positions } => {
            view.on_found(&tree, &query, &positions, &app.transcript);
        }
    }
}

/// What the last frame missed.
pub(super) fn take_wanted(app: &mut App) -> Vec<WorldEffect> {
    let wanted = app.fullscreen.as_mut().map(|view| view.take_wanted()).unwrap_or_default();
    wanted.into_iter().map(|effect| WorldEffect::Read(Reader::Fullscreen, effect)).collect()
}

/// Enters or leaves fullscreen; the terminal follows with the next frame. What is entered again shows what it
/// showed when it was left.
pub(super) fn set(app: &mut App, is_on: bool) {
    match app.fullscreen.take() {
        Some(view) if !is_on => app.fullscreen_left = view.leave(&app.transcript).map(Box::new),
        None if is_on => {
            let view = app.fullscreen_left.take().map_or_else(Fullscreen::default, |left| left.enter());
            app.fullscreen = Some(Box::new(view));
        }
        unchanged => app.fullscreen = unchanged,
    }
}

/// Scrolls to the end, and goes on with what arrives there.
pub(super) fn follow_end(app: &mut App) {
    if let Some(view) = &mut app.fullscreen {
        view.moves.push(view::Move::Bottom);
    }
}

#[cfg(test)]
mod tests;
