//! Fullscreen: the transcript on the alternate screen, scrolled, selected and searched by pi,
//! above the editor, which stays where it is.
//!
//! `scrollback` has the rows, of which those of earlier entries are read from the session's file
//! as they are needed; `view` is the state of the screen and composes its rows; `selection` and `search` work
//! on rows; `input` has keys and mouse; `effects` reads. The terminal follows
//! [`App::fullscreen`](super::app::App::fullscreen): there is one state exactly if the screen is
//! fullscreen.
//! Invariant: what a frame costs depends on the size of the screen, not on the rows behind it.

mod effects;
mod input;
mod scrollback;
mod search;
mod selection;
mod view;
mod wheel;

use std::sync::Arc;

use crate::session::{Entry, SessionTree};

use super::app::App;
use super::msg::{Effect, ScreenEffect, WorldEffect};

pub(super) use input::{copy_selection, on_input};
pub(super) use view::{Fullscreen, render};

/// Something for the world to do.
#[derive(Debug, PartialEq)]
pub(super) enum FullscreenEffect {
    /// Reads the tree; answers with [`FullscreenDone::Opened`].
    ReadTree,
    /// Reads entries of sections; answers with [`FullscreenDone::Read`].
    Read { tree: SessionTree, sections: Vec<(usize, Vec<usize>)> },
    /// Searches the entries at these indices; answers with [`FullscreenDone::Found`].
    Search { tree: SessionTree, path: Arc<[usize]>, query: String },
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum FullscreenDone {
    Opened {
        tree: SessionTree,
    },
    Read {
        tree: SessionTree,
        sections: Vec<(usize, Vec<Arc<Entry>>)>,
    },
    Found {
        tree: SessionTree,
        query: String,
        /// Positions on the path.
        positions: Vec<usize>,
    },
}

impl From<FullscreenEffect> for Effect {
    fn from(effect: FullscreenEffect) -> Self {
        Self::World(WorldEffect::Fullscreen(effect))
    }
}

/// Shows the result of an effect.
pub(super) fn on_done(app: &mut App, done: FullscreenDone, out: &mut Vec<Effect>) {
    let Some(view) = &mut app.fullscreen else { return };
    match done {
        FullscreenDone::Opened { tree } => view.on_tree(tree, &app.transcript),
        FullscreenDone::Read { tree, sections } => {
            let (shown_as, highlighter) = (app.transcript.view(), app.transcript.highlighter());
            view.earlier.on_read(&tree, sections, shown_as, highlighter);
            out.extend(input::take_copied(app).map(|text| ScreenEffect::Copy(text).into()));
        }
        FullscreenDone::Found { tree, query, positions } => view.on_found(&tree, &query, &positions),
    }
}

/// What the last frame missed.
pub(super) fn take_wanted(app: &mut App) -> Vec<WorldEffect> {
    let wanted = app.fullscreen.as_mut().map(|view| view.take_wanted()).unwrap_or_default();
    wanted.into_iter().map(WorldEffect::Fullscreen).collect()
}

/// Enters or leaves fullscreen; the terminal follows with the next frame.
pub(super) fn set(app: &mut App, is_on: bool) {
    if is_on != app.fullscreen.is_some() {
        app.fullscreen = is_on.then(Box::default);
    }
}

#[cfg(test)]
mod tests;
