//! Keys and the mouse in fullscreen.

use std::time::Duration;

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use crate::tui::keymap::{Chord, Context, Keymap};
use crate::tui::term::InputEvent;

use super::super::app::App;
use super::super::clipboard::AttachEffect;
use super::super::msg::{Effect, ScreenEffect};
use super::super::sections::SectionCx;
use super::super::transcript::{Hidden, action_showing};
use super::blocks;
use super::caret::CaretMove;
use super::search::Search;
use super::selection::{Point, Selection, Unit};
use super::view::{Fullscreen, Move, catch_up, step};

/// Time within which another click at the same place belongs to the first.
const CLICK_TIME: Duration = Duration::from_millis(400);

/// Handles an input that concerns the screen. Returns whether it did; otherwise the editor or a
/// dialog has it.
pub(in super::super) fn on_input(app: &mut App, input: &InputEvent, out: &mut Vec<Effect>) -> bool {
    let Some(view) = &mut app.fullscreen else { return false };
    let has_dialog = app.dialogs.is_open();
    match input {
        InputEvent::Mouse(mouse) if is_wheel(mouse) && app.dialogs.takes_wheel() => false,
        InputEvent::Mouse(mouse) => {
            on_mouse(app, mouse, has_dialog, out);
            true
        }
        _ if has_dialog => false,
        InputEvent::Key(key) if view.search.is_some() => on_search_key(app, input, key),
        InputEvent::Paste(_) if view.search.is_some() => on_typed(view, input, &app.keymap),
        InputEvent::Key(key) if view.caret.is_some() => on_caret_key(app, key, out),
        InputEvent::Key(key) if app.input.pages_suggestions(key, &app.keymap) => false,
        InputEvent::Key(key) => on_key(app, key, out),
        InputEvent::Paste(_)
        | InputEvent::Resize(_)
        | InputEvent::Focus(_)
        | InputEvent::Answered
        | InputEvent::PasteWaits => false,
    }
}

// Keys.

fn on_key(app: &mut App, key: &KeyEvent, out: &mut Vec<Effect>) -> bool {
    let copies_itself = app.session.settings.values.fullscreen.copy_on_select;
    let Some(view) = &mut app.fullscreen else { return false };
    let is_of_the_screen = app.keymap.lookup(Context::Fullscreen, key).is_some();
    if view.selection.is_some() && !is_of_the_screen {
        let copies = app.keymap.is("tui.input.copy", key) || app.keymap.is("app.message.copy", key);
        if copies && !copies_itself {
            out.extend(copy_selection(app).map(|text| ScreenEffect::Copy(text).into()));
            return true;
        }
        if app.keymap.is("app.interrupt", key) {
            view.selection = None;
            return true;
        }
    }
    match scrolling(&app.keymap, key) {
        Some(found) => view.moves.push(found),
        None => match app.keymap.lookup(Context::Fullscreen, key) {
            Some("tui.altScreen.search") => open_search(view),
            Some("tui.altScreen.select") => begin_caret(view),
            _ => return false,
        },
    }
    true
}

fn scrolling(keymap: &Keymap, key: &KeyEvent) -> Option<Move> {
    Some(match keymap.lookup(Context::Fullscreen, key)? {
        "tui.altScreen.lineUp" => Move::Rows(-1),
        "tui.altScreen.lineDown" => Move::Rows(1),
        "tui.altScreen.pageUp" => Move::Pages(-1),
        "tui.altScreen.pageDown" => Move::Pages(1),
        "tui.altScreen.halfPageUp" => Move::HalfPages(-1),
        "tui.altScreen.halfPageDown" => Move::HalfPages(1),
        "tui.altScreen.top" => Move::Top,
        "tui.altScreen.bottom" => Move::Bottom,
        "tui.altScreen.previousPrompt" => Move::Prompt { forward: false },
        "tui.altScreen.nextPrompt" => Move::Prompt { forward: true },
        _ => return None,
    })
}

// Searching.

fn open_search(view: &mut Fullscreen) {
    let origin = view.shown.spots.first().copied();
    view.search = Some(Search { origin, ..Search::default() });
    view.selection = None;
}

fn on_typed(view: &mut Fullscreen, input: &InputEvent, keymap: &Keymap) -> bool {
    let Some(search) = &mut view.search else { return false };
    let before = search.field.text().to_owned();
    let is_typed = search.field.handle(input, keymap);
    if search.field.text() != before {
        search.on_typed();
    }
    is_typed
}

fn on_search_key(app: &mut App, input: &InputEvent, key: &KeyEvent) -> bool {
    let Some(view) = &mut app.fullscreen else { return false };
    let shows = |hidden: &Hidden| app.keymap.is(action_showing(*hidden), key);
    if [Hidden::Collapsed, Hidden::Thinking].iter().any(shows) {
        // It belongs to the app, and the search goes on with what is shown then.
        return false;
    }
    match app.keymap.lookup(Context::Search, key) {
        Some("tui.altScreen.searchNext") => step(view, true),
        Some("tui.altScreen.searchPrevious") => step(view, false),
        Some("tui.altScreen.searchClose") => view.search = None,
        // The same key as the one that opened it.
        _ if app.keymap.is("tui.altScreen.search", key) && Chord::typed(key).is_none() => step(view, true),
        _ => {
            if on_typed(view, input, &app.keymap) {
                return true;
            }
            match scrolling(&app.keymap, key) {
                Some(found) => view.moves.push(found),
                None if key.code == KeyCode::Up => step(view, false),
                None if key.code == KeyCode::Down => step(view, true),
                None => return closes_search(view, key),
            }
        }
    }
    true
}

/// Keys with ctrl or alt belong to the app.
fn closes_search(view: &mut Fullscreen, key: &KeyEvent) -> bool {
    let is_command = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    if is_command {
        view.search = None;
    }
    !is_command
}

// Selecting with keys.

fn begin_caret(view: &mut Fullscreen) {
    // The last visible row but one: the last one has the keys.
    let n_spots = view.shown.spots.len();
    let index = n_spots.saturating_sub(1).min(view.shown.page.saturating_sub(2));
    let Some(spot) = view.shown.spots.get(index).copied() else { return };
    view.selection = None;
    view.caret = Some(Point { spot, column: 0 });
    view.moves.push(Move::Caret(CaretMove::LineStart));
}

fn on_caret_key(app: &mut App, key: &KeyEvent, out: &mut Vec<Effect>) -> bool {
    // Several keys may arrive between two frames.
    catch_up(app);
    let Some(view) = &mut app.fullscreen else { return false };
    let Some(caret) = view.caret else { return false };
    if app.keymap.is("tui.altScreen.select", key) {
        (view.caret, view.selection) = (None, None);
        return true;
    }
    let found = match app.keymap.lookup(Context::Selection, key) {
        Some("tui.selection.cancel") => {
            (view.caret, view.selection) = (None, None);
            return true;
        }
        Some("tui.selection.start") => {
            view.selection = Some(Selection { is_extended: true, ..Selection::new(caret, Unit::Character) });
            return true;
        }
        Some("tui.selection.lines") => {
            view.selection = Some(Selection::new(caret, Unit::Line));
            return true;
        }
        Some("tui.selection.copy") => {
            out.extend(copy_selection(app).map(|text| ScreenEffect::Copy(text).into()));
            return true;
        }
        Some("tui.selection.left") => CaretMove::Columns(-1),
        Some("tui.selection.right") => CaretMove::Columns(1),
        Some("tui.selection.up") => CaretMove::Rows(-1),
        Some("tui.selection.down") => CaretMove::Rows(1),
        Some("tui.selection.wordLeft") => CaretMove::Words(-1),
        Some("tui.selection.wordRight") => CaretMove::Words(1),
        Some("tui.selection.lineStart") => CaretMove::LineStart,
        Some("tui.selection.lineEnd") => CaretMove::LineEnd,
        _ => {
            if let Some(found) = scrolling(&app.keymap, key) {
                view.moves.push(found);
                return true;
            }
            // Nothing is typed while text is selected.
            return !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        }
    };
    view.moves.push(Move::Caret(found));
    true
}

// Copying.

/// Ends the selection and returns its text; `None` if nothing is selected, or if parts of it must be
/// read first: then it is copied later.
pub(in super::super) fn copy_selection(app: &mut App) -> Option<String> {
    let text = selected_text(app)?;
    let view = app.fullscreen.as_mut()?;
    (view.caret, view.selection) = (None, None);
    Some(text)
}

/// The text of a copy that waited for something to be read.
pub(super) fn take_copied(app: &mut App) -> Option<String> {
    if !app.fullscreen.as_ref()?.waiting_copy {
        return None;
    }
    let text = selected_text(app)?;
    app.fullscreen.as_mut()?.waiting_copy = false;
    Some(text)
}

fn selected_text(app: &mut App) -> Option<String> {
    let (theme, now, transcript) = (&app.theme, app.now, &app.transcript);
    let view = app.fullscreen.as_mut()?;
    let cx = SectionCx { width: view.shown.width.max(1), theme, now };
    let selection = view.selection?;
    let mut rows = view.scrollback(transcript, cx);
    let text = selection.extent(&mut rows)?.text(&mut rows);
    match text {
        Ok(text) => (!text.is_empty()).then_some(text),
        Err(unread) => {
            for section in unread {
                view.earlier.list.want(section);
            }
            view.waiting_copy = true;
            None
        }
    }
}

// The mouse.

fn is_wheel(mouse: &MouseEvent) -> bool {
    matches!(mouse.kind, MouseEventKind::ScrollUp | MouseEventKind::ScrollDown)
}

fn on_mouse(app: &mut App, mouse: &MouseEvent, has_dialog: bool, out: &mut Vec<Effect>) {
    let settings = app.session.settings.values.fullscreen;
    let now = app.now;
    let Some(view) = &mut app.fullscreen else { return };
    match mouse.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let down = mouse.kind == MouseEventKind::ScrollDown;
            let with_alt = mouse.modifiers.contains(KeyModifiers::ALT);
            let rows = view.wheel.rows(now, down, with_alt, settings.wheel_lines);
            if app.dialogs.has_chosen() {
                return move_in_list(app, rows, down, out);
            }
            let rows = isize::try_from(rows).unwrap_or(1);
            view.moves.push(Move::Rows(if down { rows } else { -rows }));
        }
        MouseEventKind::Up(MouseButton::Left) => on_release(app, mouse, settings.copy_on_select, out),
        _ if has_dialog => {}
        MouseEventKind::Down(MouseButton::Left) => on_press(app, mouse, now),
        MouseEventKind::Drag(MouseButton::Left) => on_drag(view, mouse),
        MouseEventKind::Down(MouseButton::Right) => out.push(AttachEffect::Clipboard.into()),
        MouseEventKind::Down(_)
        | MouseEventKind::Up(_)
        | MouseEventKind::Drag(_)
        | MouseEventKind::Moved
        | MouseEventKind::ScrollLeft
        | MouseEventKind::ScrollRight => {}
    }
}

/// Moves in a list like a key that is held; so the wheel works in lists on the main screen, where terminals send that.
fn move_in_list(app: &mut App, rows: usize, down: bool, out: &mut Vec<Effect>) {
    let code = if down { KeyCode::Down } else { KeyCode::Up };
    let key = KeyEvent::new_with_kind(code, KeyModifiers::NONE, KeyEventKind::Repeat);
    for _ in 0..rows {
        if let Some(outcome) = app.dialogs.on_input(&InputEvent::Key(key), &app.keymap) {
            app.on_dialog(outcome, out);
        }
    }
}

fn on_press(app: &mut App, mouse: &MouseEvent, now: Duration) {
    let row = usize::from(mouse.row);
    let is_soon = |(time, _): (Duration, Point)| now.saturating_sub(time) <= CLICK_TIME;
    let has_clicked = app.fullscreen.as_ref().is_some_and(|view| view.clicks.last.is_some_and(is_soon));
    let again = has_clicked.then(|| blocks::take_toggle_back(app, (mouse.column, mouse.row))).flatten();
    let Some(view) = &mut app.fullscreen else { return };
    view.clicks.toggled = None;
    view.caret = None;
    let is_last = row + 1 == view.shown.page;
    if is_last && view.shown.label.as_ref().is_some_and(|columns| columns.contains(&mouse.column)) {
        return view.moves.push(Move::Bottom);
    }
    if view.shown.has_scrollbar && mouse.column + 1 == view.shown.screen_width && row < view.shown.page {
        view.is_scrollbar_held = true;
        return view.moves.push(part_of_height(view, row));
    }
    let Some(at) = again.or_else(|| point_or_end(view, mouse.column, row)) else {
        view.selection = None;
        return;
    };
    // Below the text there are no words and lines.
    let is_same = |last: (Duration, Point)| is_soon(last) && last.1 == at;
    let is_again = again.is_some() || at.column < u16::MAX && view.clicks.last.is_some_and(is_same);
    view.clicks.count = if is_again { view.clicks.count + 1 } else { 1 };
    view.clicks.last = Some((now, at));
    match &mut view.selection {
        // As in terminals, shift extends; most of them keep it for themselves.
        Some(selection) if mouse.modifiers.contains(KeyModifiers::SHIFT) => selection.extend(at),
        _ => view.selection = Some(Selection::new(at, Unit::of_clicks(view.clicks.count))),
    }
    // What arrives meanwhile must not move the text away from under the mouse.
    if view.top.is_none() {
        view.held = view.shown.spots.first().copied();
        view.top = view.held;
    }
}

fn part_of_height(view: &Fullscreen, row: usize) -> Move {
    Move::Part(row * 1_000 / view.shown.page.saturating_sub(1).max(1))
}

fn on_drag(view: &mut Fullscreen, mouse: &MouseEvent) {
    let row = usize::from(mouse.row);
    if view.is_scrollbar_held {
        let row = row.min(view.shown.page.saturating_sub(1));
        return view.moves.push(part_of_height(view, row));
    }
    if view.selection.is_none() {
        return;
    }
    view.autoscroll = match row {
        0 => Some(-1),
        row if row >= view.shown.page => Some(1),
        _ => None,
    };
    let last = view.shown.page.saturating_sub(1);
    if let Some(at) = point_or_end(view, mouse.column, row.min(last))
        && let Some(selection) = &mut view.selection
    {
        selection.extend(at);
    }
}

fn on_release(app: &mut App, mouse: &MouseEvent, copies: bool, out: &mut Vec<Effect>) {
    let Some(view) = &mut app.fullscreen else { return };
    let was_scrollbar = std::mem::take(&mut view.is_scrollbar_held);
    view.autoscroll = None;
    // Unless the user has scrolled, the end is followed again.
    if let Some(held) = view.held.take()
        && view.top == Some(held)
    {
        view.top = None;
    }
    if was_scrollbar {
        return;
    }
    if let Some(Selection { anchor, .. }) = view.selection.take_if(|selection| !selection.is_extended) {
        let is_covered = view.search.is_some() && usize::from(mouse.row) + 1 == view.shown.page;
        if anchor.column < u16::MAX && !is_covered {
            blocks::toggle(app, anchor, (mouse.column, mouse.row));
        }
        return;
    }
    if copies {
        // It stays visible until the next click or Escape.
        out.extend(selected_text(app).map(|text| ScreenEffect::Copy(text).into()));
    }
}

/// The cell of the document at a cell of the screen.
fn point(view: &Fullscreen, column: u16, row: usize) -> Option<Point> {
    let spot = view.shown.spots.get(row).copied()?;
    Some(Point { spot, column })
}

/// The same; the end of the text for the rows of the screen below it.
fn point_or_end(view: &Fullscreen, column: u16, row: usize) -> Option<Point> {
    let end = || Some(Point { spot: *view.shown.spots.last()?, column: u16::MAX });
    let rows = view.shown.page + view.shown.n_blank_below;
    point(view, column, row).or_else(|| end().filter(|_| row < rows))
}
