//! The whole transcript of the session in the pager, on the alternate screen.
//!
//! `view` is the session as a text of the pager. Only sections near the screen are in memory. The last section
//! follows the session: it shows what happens from the moment on in which the pager was opened.

mod view;

use std::time::Duration;

use crate::session::{EntryId, Phase, SessionEvent};
use crate::tui::term::InputEvent;

use super::app::App;
use super::msg::{Effect, WorldEffect};
use super::sections::{ReadDone, ReadEffect, Reader};
use super::transcript::{Anchor, Remarks};
use view::PagerStep;

pub(super) use view::PagerView;

/// What the pager begins with, from the key that opens it until the session was read.
#[derive(Default)]
pub(super) struct PagerStart {
    /// The last entry; what follows comes as events.
    leaf: Option<EntryId>,
    /// Whether the session was working then.
    is_busy: bool,
    /// What was in progress and what has happened since, with its time.
    events: Vec<(SessionEvent, Duration)>,
    /// The first row of the main screen.
    place: Option<Anchor>,
    /// Notices of the program, which the session's file does not have.
    remarks: Remarks,
    /// The entry from which their places count; `None` for the first one.
    first_entry: Option<EntryId>,
}

/// Opens the pager at the place that the main screen shows.
pub(super) fn open(app: &mut App, out: &mut Vec<Effect>) {
    app.pager_start = Some(PagerStart {
        leaf: app.session.leaf.clone(),
        is_busy: app.session.phase != Phase::Idle,
        events: app.transcript.in_progress(app.now),
        place: app.transcript.anchor(app.top_row),
        remarks: app.transcript.remarks(),
        first_entry: app.transcript.first_entry().cloned(),
    });
    out.push(read(ReadEffect::Tree).into());
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
        PagerStep::Search(effect) => out.push(read(effect).into()),
    }
    true
}

/// Shows the result of an effect.
pub(super) fn on_done(app: &mut App, done: ReadDone) {
    match (done, &mut app.pager) {
        (ReadDone::Tree(tree), pager) => {
            let Some(start) = app.pager_start.take() else { return };
            let name = app.session.name.as_deref().unwrap_or("Transcript");
            let highlighter = app.transcript.highlighter().clone();
            let view = app.transcript.view();
            *pager = Some(Box::new(PagerView::of_session(name, (tree, start), view, highlighter)));
        }
        (ReadDone::Sections { tree, sections }, Some(pager)) => pager.on_read(&tree, sections),
        (ReadDone::Found { tree, query, positions }, Some(pager)) => {
            pager.on_found(&tree, &query, &positions);
        }
        (ReadDone::Sections { .. } | ReadDone::Found { .. }, None) => {}
    }
}

/// What the pager needs for its next frame.
pub(super) fn take_wanted(app: &mut App) -> Option<WorldEffect> {
    app.pager.as_mut()?.take_wanted().map(read)
}

fn read(effect: ReadEffect) -> WorldEffect {
    WorldEffect::Read(Reader::Pager, effect)
}
