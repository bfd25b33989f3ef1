//! The last row, where it has something else than the transcript, and the cursor.

use std::ops::Range;

use ratatui::style::{Modifier, Style};

use crate::tui::keymap::Keymap;
use crate::tui::text::{Row, Run, graphemes, width};
use crate::tui::theme::{Theme, Token};
use crate::util::counted;

use super::super::app::App;
use super::super::transcript::{Hidden, action_showing};
use super::scrollback::Spot;
use super::search::{Count, Note, Search};
use super::view::Fullscreen;

const SEARCH_LABEL: &str = " Search: ";
/// Narrower screens have less between the query and the result, and counts without words.
const MIN_WIDTH_WITH_WORDS: u16 = 40;

/// Draws the last row, if it has something else than the transcript: the search, the keys of a
/// selection, or the way to the end. Returns the columns of the latter.
pub(super) fn draw(state: &Fullscreen, app: &App, rows: &mut [Row], width_cells: u16) -> Option<Range<u16>> {
    let (theme, keymap) = (&app.theme, &app.keymap);
    let last = rows.last_mut()?;
    if let Some(search) = &state.search {
        *last = search_row(search, width_cells, theme, keymap);
        return None;
    }
    if state.caret.is_some() {
        *last = caret_row(state.selection.is_some(), width_cells, theme, keymap);
        return None;
    }
    state.top?;
    draw_label(state, app, last, width_cells)
}

/// Draws the way to the end. Returns its columns; `None` if there is no room.
fn draw_label(state: &Fullscreen, app: &App, last: &mut Row, width_cells: u16) -> Option<Range<u16>> {
    let n_new = state.n_new(&app.transcript);
    let key = app.keymap.hint("tui.altScreen.bottom");
    let news = news(n_new);
    let hint = if key.is_empty() { String::new() } else { format!(" · {key}") };
    let text = [format!(" ↓ {news}{hint} "), format!(" ↓ {news} "), " ↓ ".to_owned()]
        .into_iter()
        .find(|text| width(text) + 2 <= usize::from(width_cells))?;
    let cells = u16::try_from(width(&text)).unwrap_or(u16::MAX);
    let start = (width_cells - cells) / 2;
    let tail = cut_front(last, start + cells);
    last.clip(start);
    last.pad(start, Style::new());
    last.push(Run::new(text, app.theme.style(Token::Accent).add_modifier(Modifier::REVERSED)));
    last.append(tail);
    Some(start..start + cells)
}

fn news(n_new_rows: usize) -> String {
    if n_new_rows > 0 { counted(n_new_rows as u64, "new row") } else { "latest".to_owned() }
}

/// The part of a row from `column` on.
fn cut_front(row: &Row, column: u16) -> Row {
    let mut rest = Row::default();
    let mut at = 0_u16;
    for span in &row.line.spans {
        for (grapheme, cells) in graphemes(&span.content) {
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

fn search_row(search: &Search, width_cells: u16, theme: &Theme, keymap: &Keymap) -> Row {
    let result = search_result(search, width_cells, keymap);
    let (mut row, _) = search_field(search, width_cells, (theme, keymap));
    let keys: &[(&str, &str)] = match search.note {
        Some(Note::NotFound | Note::Hidden(_)) => &[],
        Some(Note::NotHere) => &[("tui.altScreen.searchNext", "search all")],
        None if search.waiting.is_some() => &[],
        None => &[
            ("tui.altScreen.searchNext", "next"),
            ("tui.altScreen.searchClose", "close"),
            ("tui.altScreen.searchPrevious", "previous"),
        ],
    };
    let hints = keys.iter().filter_map(|(id, what)| {
        let key = keymap.hint(id);
        (!key.is_empty()).then(|| (format!("{key}: {what}"), Token::Dim))
    });
    let mut separator = result_gap(width_cells);
    for (hint, token) in result.into_iter().chain(hints) {
        if row.width() + width(separator) + width(&hint) < usize::from(width_cells) {
            row.push(Run::new(format!("{separator}{hint}"), theme.style(token)));
            separator = " · ";
        }
    }
    row
}

/// What the search led to; `None` as long as nothing was typed.
fn search_result(search: &Search, width_cells: u16, keymap: &Keymap) -> Option<(String, Token)> {
    match (search.note, search.waiting, search.count) {
        (Some(Note::Hidden(hidden)), ..) => Some((hidden_text(hidden, width_cells, keymap), Token::Warning)),
        (Some(Note::NotFound), ..) => Some(("not found".to_owned(), Token::Warning)),
        (Some(Note::NotHere), ..) => Some(("not here".to_owned(), Token::Warning)),
        (None, Some(_), _) => Some(("searching…".to_owned(), Token::Dim)),
        (None, None, Some(count)) => Some((count_text(count, width_cells), Token::Muted)),
        (None, None, None) => None,
    }
}

/// What hides the query, and the key that shows it, as far as there is room beside the query.
fn hidden_text(hidden: Hidden, width_cells: u16, keymap: &Keymap) -> String {
    const LEAST_QUERY: usize = 6;
    let (long, short) = match hidden {
        Hidden::Collapsed => ("only in collapsed text", "collapsed"),
        Hidden::Thinking => ("only in hidden thinking", "hidden"),
    };
    let key = match (keymap.hint(action_showing(hidden)), hidden) {
        (key, _) if key.is_empty() => {
            return if width_cells < MIN_WIDTH_WITH_WORDS { short } else { long }.to_owned();
        }
        (key, Hidden::Collapsed) => format!("{key}: expand"),
        (key, Hidden::Thinking) => format!("{key}: show"),
    };
    let gap = width(result_gap(width_cells));
    let room = usize::from(width_cells).saturating_sub(width(SEARCH_LABEL) + LEAST_QUERY + gap);
    let texts = [format!("{long} · {key}"), format!("{short} · {key}"), key];
    texts.into_iter().find(|text| width(text) <= room).unwrap_or_else(|| short.to_owned())
}

fn count_text(Count { nth, of, is_least }: Count, width_cells: u16) -> String {
    let has_words = width_cells >= MIN_WIDTH_WITH_WORDS;
    let more = if is_least { "+" } else { "" };
    match nth {
        Some(nth) => format!("{nth}{}{of}{more}", if has_words { " of " } else { "/" }),
        None if !has_words => format!("{of}{more}"),
        None => format!("{of}{more} {}", if of == 1 && !is_least { "match" } else { "matches" }),
    }
}

fn result_gap(width_cells: u16) -> &'static str {
    if width_cells < MIN_WIDTH_WITH_WORDS { " " } else { "   " }
}

/// The end of the query that leaves room for the result, and the column of the cursor.
fn search_field(search: &Search, width_cells: u16, (theme, keymap): (&Theme, &Keymap)) -> (Row, u16) {
    let result = search_result(search, width_cells, keymap);
    let result = result.map_or(0, |(text, _)| width(result_gap(width_cells)) + width(&text));
    let room = usize::from(width_cells).saturating_sub(result);
    let columns = if room > width(SEARCH_LABEL) { room } else { usize::from(width_cells) };
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    let (mut row, column) = search.field.render_after(SEARCH_LABEL, columns, theme);
    if let Some(label) = row.line.spans.first_mut() {
        label.style = theme.style(Token::Accent).add_modifier(Modifier::BOLD);
    }
    (row, column)
}

fn caret_row(is_selecting: bool, width_cells: u16, theme: &Theme, keymap: &Keymap) -> Row {
    let mut row = Row::default();
    let title = if is_selecting { " Selecting " } else { " Select " };
    row.push(Run::new(title, theme.style(Token::Accent).add_modifier(Modifier::BOLD | Modifier::REVERSED)));
    let hint = |ids: &[&str], what: &str| {
        let keys: Vec<String> = ids.iter().map(|id| keymap.hint(id)).filter(|key| !key.is_empty()).collect();
        (!keys.is_empty()).then(|| format!("{}: {what}", keys.join("/")))
    };
    let words = hint(&["tui.selection.wordRight", "tui.selection.wordLeft"], "by words");
    let hints = if is_selecting {
        [hint(&["tui.selection.copy"], "copy"), hint(&["tui.selection.cancel"], "cancel"), words, None]
    } else {
        [
            hint(&["tui.selection.start"], "start here"),
            hint(&["tui.selection.cancel"], "close"),
            hint(&["tui.selection.lines"], "whole lines"),
            words,
        ]
    };
    // Those that do not fit are left out.
    let mut separator = " ";
    for hint in hints.into_iter().flatten() {
        if row.width() + width(separator) + width(&hint) <= usize::from(width_cells) {
            row.push(Run::new(format!("{separator}{hint}"), theme.style(Token::Dim)));
            separator = " · ";
        }
    }
    row
}

/// The cursor, in the search or where the keyboard selects.
pub(super) fn cursor(
    state: &Fullscreen,
    spots: &[Spot],
    page: usize,
    width_cells: u16,
    names: (&Theme, &Keymap),
) -> Option<(u16, u16)> {
    let row = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
    if let Some(search) = &state.search {
        let (_, column) = search_field(search, width_cells, names);
        return Some((row(page.checked_sub(1)?), column));
    }
    let caret = state.caret?;
    let index = spots.iter().position(|spot| *spot == caret.spot)?;
    Some((row(index), caret.column.min(width_cells.saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::news;

    #[test]
    fn one_new_row_is_no_rows() {
        assert_eq!([0, 1, 2].map(news), ["latest", "1 new row", "2 new rows"]);
    }
}
