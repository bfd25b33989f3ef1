//! The pager: the whole transcript of the session, or a long text, on the alternate screen.
//!
//! `view` scrolls and searches, `section` has the rows of one prompt and its answer,
//! `effects` reads entries from the session's file. Only sections near the screen are in
//! memory. The last section follows the session: it shows what happens from the moment on in
//! which the pager was opened.

mod effects;
mod section;
mod view;

use std::sync::Arc;
use std::time::Duration;

use crate::session::{Entry, EntryId, Phase, SessionEvent, SessionTree};
use crate::tui::term::InputEvent;

use super::app::App;
use super::msg::{Effect, WorldEffect};
use super::transcript::Anchor;
use view::PagerStep;

pub(super) use effects::search;
pub(super) use section::{Section, SectionCx};
pub(super) use view::PagerView;

/// Something for the world to do.
#[derive(Debug, PartialEq)]
pub(super) enum PagerEffect {
    /// Reads the tree; answers with [`PagerDone::Opened`].
    Open,
    /// Reads entries of sections; answers with [`PagerDone::Read`].
    Read { tree: SessionTree, sections: Vec<(usize, Vec<usize>)> },
    /// Searches the entries at these indices; answers with [`PagerDone::Found`].
    Search { tree: SessionTree, path: Arc<[usize]>, query: String },
}

/// The result of such an effect.
#[derive(Debug)]
pub(super) enum PagerDone {
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

impl From<PagerEffect> for Effect {
    fn from(effect: PagerEffect) -> Self {
        Self::World(WorldEffect::Pager(effect))
    }
}

/// Where the pager begins, from the key that opens it until the session was read.
pub(super) struct PagerStart {
    /// The last entry; what follows comes as events.
    leaf: Option<EntryId>,
    /// Whether the session was working then.
    is_busy: bool,
    /// What was in progress and what has happened since, with its time.
    events: Vec<(SessionEvent, Duration)>,
    /// The first row of the main screen.
    place: Option<Anchor>,
}

/// Opens the pager at the place that the main screen shows.
pub(super) fn open(app: &mut App, out: &mut Vec<Effect>) {
    app.pager_start = Some(PagerStart {
        leaf: app.session.leaf.clone(),
        is_busy: app.session.phase != Phase::Idle,
        events: app.transcript.in_progress(app.now),
        place: app.transcript.anchor(app.top_row),
    });
    out.push(PagerEffect::Open.into());
}

/// Shows an event of the session in the pager.
pub(super) fn follow(app: &mut App, event: &SessionEvent) {
    if let Some(start) = &mut app.pager_start {
        start.events.push((event.clone(), app.now));
    } else if let Some(pager) = &mut app.pager {
        pager.on_session_event(event, app.now);
    }
}

/// Passes an input to the pager, if it is open. Returns whether it was.
pub(super) fn on_input(app: &mut App, input: &InputEvent, out: &mut Vec<Effect>) -> bool {
    let Some(pager) = &mut app.pager else { return false };
    match pager.handle(input, &app.keymap) {
        PagerStep::Stay => {}
        PagerStep::Close => app.pager = None,
        PagerStep::Search(effect) => out.push(effect.into()),
    }
    true
}

/// Shows the result of an effect.
pub(super) fn on_done(app: &mut App, done: PagerDone) {
    match (done, &mut app.pager) {
        (PagerDone::Opened { tree }, pager) => {
            let Some(start) = app.pager_start.take() else { return };
            let name = app.session.name.as_deref().unwrap_or("Transcript");
            let highlighter = app.transcript.highlighter().clone();
            let view = app.transcript.view();
            let mut opened = PagerView::of_session(name, (tree, start), view, highlighter);
            opened.name_keys(&app.keymap);
            *pager = Some(Box::new(opened));
        }
        (PagerDone::Read { tree, sections }, Some(pager)) => pager.on_read(&tree, sections),
        (PagerDone::Found { tree, query, positions }, Some(pager)) => {
            pager.on_found(&tree, &query, &positions);
        }
        (PagerDone::Read { .. } | PagerDone::Found { .. }, None) => {}
    }
}

/// What the pager needs for its next frame.
pub(super) fn take_wanted(app: &mut App) -> Option<WorldEffect> {
    app.pager.as_mut()?.take_wanted().map(WorldEffect::Pager)
}
