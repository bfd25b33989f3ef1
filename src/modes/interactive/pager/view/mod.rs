//! Scrolling and searching in the pager.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Size;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use crate::session::{Entry, SessionEvent, SessionTree};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::markdown::Highlighter;
use crate::tui::term::InputEvent;
use crate::tui::text::{Ellipsis, Row, Run, sanitize, truncate_row, width};
use crate::tui::theme::{Theme, Token};
use crate::tui::widgets::Field;

use super::super::sections::{ReadEffect, Section, SectionCx, SectionList};
use super::super::transcript::{Anchor, Anchored, ViewSettings};
use super::PagerStart;

/// Sections that may be visible at once, besides long ones; those after them are read too.
const VISIBLE: usize = 6;

/// The outcome of an input.
#[derive(Debug)]
pub(super) enum PagerStep {
    Stay,
    Close,
    Search(ReadEffect),
}

/// A place in the text: a section, and a row of it.
type Place = (usize, usize);

/// What the next frame does first.
#[derive(Debug, Clone, Copy)]
enum Move {
    Rows(isize),
    Pages(isize),
    HalfPages(isize),
    Top,
    Bottom,
    Prompt { forward: bool },
    Match { forward: bool },
}

/// The search.
#[derive(Default)]
struct Search {
    /// The query while it is typed.
    field: Option<Field>,
    /// In lower case; empty if there is none.
    query: String,
    /// Sections that may contain it; `None` while that is not known.
    sections: Option<Vec<usize>>,
    current: Option<Place>,
    /// The direction in which to go on when the next section has been read.
    waiting: Option<bool>,
    note: Option<String>,
}

pub(in super::super) struct PagerView {
    title: String,
    list: SectionList,
    /// The first visible row.
    top: Place,
    /// Whether `top` was reached from below and is not read yet: its end is to be shown.
    at_end: bool,
    moves: Vec<Move>,
    view: ViewSettings,
    highlighter: Highlighter,
    search: Search,
    hints: Hints,
    /// The place to show first, until its section was read.
    sought: Option<Anchor>,
    /// Events that the last section shows once it was read.
    events: Vec<(SessionEvent, Duration)>,
    /// Whether the session was working when the pager was opened.
    is_busy: bool,
    /// Whether the last frame showed the end.
    was_at_end: bool,
    /// Whether a dialog waits behind the pager.
    is_waiting: bool,
}

/// Keys as hints.
#[derive(Default)]
struct Hints {
    expand: String,
    prompts: String,
}

impl PagerView {
    pub(super) fn of_session(
        title: &str,
        (tree, start): (SessionTree, PagerStart),
        view: &ViewSettings,
        highlighter: Highlighter,
    ) -> Self {
        let PagerStart { leaf, is_busy, events, place } = start;
        // Entries that were added since then come as events too.
        let leaf = leaf.and_then(|id| tree.index_of(&id));
        let path = tree.path(leaf);
        let mut list = SectionList::of_path(tree, path);
        if list.sections.is_empty() {
            list.sections.push(Section::empty(list.path.len()));
        }
        if let Some(last) = list.sections.last_mut() {
            last.is_live = true;
        }
        Self {
            title: sanitize(title).into_owned(),
            list,
            top: (0, 0),
            at_end: false,
            moves: vec![Move::Bottom],
            view: ViewSettings { expanded: true, hide_thinking: false, ..view.clone() },
            highlighter,
            search: Search::default(),
            hints: Hints::default(),
            sought: place,
            events,
            is_busy,
            was_at_end: false,
            is_waiting: false,
        }
    }

    /// Shows what the session does, at its end.
    pub(super) fn on_session_event(&mut self, event: &SessionEvent, now: Duration) {
        let Some(last) = self.list.sections.last_mut().filter(|last| last.is_live) else { return };
        match event {
            // Another conversation; this one ends here.
            SessionEvent::Opened(_) | SessionEvent::Navigated(_) => last.is_live = false,
            _ if last.is_read() => last.apply(event, now),
            _ => self.events.push((event.clone(), now)),
        }
    }

    /// Takes the names of the keys for the hints.
    pub(super) fn name_keys(&mut self, keymap: &Keymap) {
        self.hints = Hints {
            expand: keymap.hint("app.tools.expand"),
            prompts: keymap.hint("tui.altScreen.previousPrompt"),
        };
    }

    /// Whether a dialog waits on the main screen.
    pub(in super::super) fn set_waiting(&mut self, is_waiting: bool) {
        self.is_waiting = is_waiting;
    }

    // Input.

    pub(super) fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> PagerStep {
        if self.search.field.is_some() {
            return self.handle_query(input, keymap);
        }
        let InputEvent::Key(key) = input else { return PagerStep::Stay };
        self.search.note = None;
        let plain = key.modifiers == KeyModifiers::NONE || key.modifiers == KeyModifiers::SHIFT;
        let step = match keymap.lookup(Context::Fullscreen, key).or(keymap.lookup(Context::Select, key)) {
            Some("tui.select.up" | "tui.altScreen.lineUp") => Move::Rows(-1),
            Some("tui.select.down" | "tui.altScreen.lineDown" | "tui.select.confirm") => Move::Rows(1),
            Some("tui.select.pageUp" | "tui.altScreen.pageUp") => Move::Pages(-1),
            Some("tui.select.pageDown" | "tui.altScreen.pageDown") => Move::Pages(1),
            Some("tui.altScreen.halfPageUp") => Move::HalfPages(-1),
            Some("tui.altScreen.halfPageDown") => Move::HalfPages(1),
            Some("tui.altScreen.top") => Move::Top,
            Some("tui.altScreen.bottom") => Move::Bottom,
            Some("tui.altScreen.previousPrompt") => Move::Prompt { forward: false },
            Some("tui.altScreen.nextPrompt") => Move::Prompt { forward: true },
            Some("tui.altScreen.search") => return self.begin_query(),
            Some("tui.select.cancel") => return PagerStep::Close,
            _ if keymap.is("app.transcript.page", key) => return PagerStep::Close,
            _ if keymap.is("app.tools.expand", key) => return self.toggle(|view| view.expanded ^= true),
            _ if keymap.is("app.thinking.toggle", key) => {
                return self.toggle(|view| view.hide_thinking ^= true);
            }
            _ => match key.code {
                KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => Move::HalfPages(-1),
                KeyCode::Char('d') if key.modifiers == KeyModifiers::CONTROL => Move::HalfPages(1),
                KeyCode::Char('f') if key.modifiers == KeyModifiers::CONTROL => return self.begin_query(),
                KeyCode::Char('q') if plain => return PagerStep::Close,
                KeyCode::Char('/') if plain => return self.begin_query(),
                KeyCode::Char('k') if plain => Move::Rows(-1),
                KeyCode::Char('j') if plain => Move::Rows(1),
                KeyCode::Char(' ') if plain => Move::Pages(1),
                KeyCode::Char('b') if plain => Move::Pages(-1),
                KeyCode::Char('g') if plain => Move::Top,
                KeyCode::Home => Move::Top,
                KeyCode::Char('G') if plain => Move::Bottom,
                KeyCode::End => Move::Bottom,
                KeyCode::Char('n') if plain => Move::Match { forward: true },
                KeyCode::Char('N') if plain => Move::Match { forward: false },
                _ => return PagerStep::Stay,
            },
        };
        self.moves.push(step);
        PagerStep::Stay
    }

    fn toggle(&mut self, change: impl FnOnce(&mut ViewSettings)) -> PagerStep {
        change(&mut self.view);
        for section in &mut self.list.sections {
            section.set_view(&self.view);
        }
        // The section at the top stays.
        self.top.1 = 0;
        PagerStep::Stay
    }

    fn begin_query(&mut self) -> PagerStep {
        self.search.field = Some(Field::plain());
        PagerStep::Stay
    }

    fn handle_query(&mut self, input: &InputEvent, keymap: &Keymap) -> PagerStep {
        let Some(field) = &mut self.search.field else { return PagerStep::Stay };
        if field.handle(input) {
            return PagerStep::Stay;
        }
        let InputEvent::Key(key) = input else { return PagerStep::Stay };
        match keymap.lookup(Context::Select, key) {
            Some("tui.select.confirm") => {
                let query = field.text().trim().to_lowercase();
                self.search = Search::default();
                self.find(query)
            }
            Some("tui.select.cancel") => {
                self.search = Search::default();
                PagerStep::Stay
            }
            _ => PagerStep::Stay,
        }
    }

    fn find(&mut self, query: String) -> PagerStep {
        if query.is_empty() {
            return PagerStep::Stay;
        }
        self.search.query.clone_from(&query);
        self.search.waiting = Some(true);
        let Some(tree) = self.list.tree.clone() else { return PagerStep::Stay };
        PagerStep::Search(ReadEffect::Search { tree, path: Arc::clone(&self.list.path), query })
    }

    // Results of effects.

    pub(super) fn on_read(&mut self, tree: &SessionTree, sections: Vec<(usize, Vec<Arc<Entry>>)>) {
        if !self.list.is_of(tree) {
            return;
        }
        for (index, entries) in sections {
            let Some(section) = self.list.on_read(index) else { continue };
            let (view, highlighter) = (self.view.clone(), self.highlighter.clone());
            if !(section.is_live && (self.is_busy || !self.events.is_empty())) {
                section.show(entries, view, highlighter);
                continue;
            }
            section.show_live(&entries, view, highlighter);
            for (event, at) in std::mem::take(&mut self.events) {
                section.apply(&event, at);
            }
        }
    }

    pub(super) fn on_found(&mut self, tree: &SessionTree, query: &str, positions: &[usize]) {
        if self.list.is_of(tree) && self.search.query == query {
            self.search.sections = Some(self.list.sections_of(positions));
        }
    }

    /// The sections that the last frame missed.
    pub(super) fn take_wanted(&mut self) -> Option<ReadEffect> {
        self.list.take_wanted()
    }

    // Drawing.

    /// As many rows as the screen has.
    pub(in super::super) fn render(&mut self, size: Size, theme: &Theme, now: Duration) -> Vec<Row> {
        let cx = SectionCx { width: size.width.max(1), theme, now };
        let page = usize::from(size.height).saturating_sub(2).max(1);
        let follows = self.was_at_end && self.moves.is_empty() && self.search.waiting.is_none();
        if follows {
            self.perform(Move::Bottom, page, cx);
        }
        for step in std::mem::take(&mut self.moves) {
            self.perform(step, page, cx);
        }
        if let Some(forward) = self.search.waiting {
            self.seek(forward, page, cx);
        }
        self.seek_place(cx);
        self.settle(page, cx);
        self.was_at_end = self.is_at_end(page, cx);
        self.follow();

        let mut rows = vec![self.title_row(theme)];
        rows.extend(self.visible(page, cx));
        rows.resize(page + 1, Row::default());
        rows.push(self.footer_row(size.width, theme));
        for row in &mut rows {
            truncate_row(row, cx.width, Ellipsis::One);
        }
        rows.truncate(usize::from(size.height));
        rows
    }

    /// Where the query is typed, among the rows of [`Self::render`].
    pub(in super::super) fn cursor(&self, size: Size) -> Option<(u16, u16)> {
        let field = self.search.field.as_ref()?;
        let column = u16::try_from(width(field.text()) + 1).unwrap_or(u16::MAX);
        Some((size.height.saturating_sub(1), column.min(size.width.saturating_sub(1))))
    }

    /// Goes to the place that is shown first, once it is known.
    fn seek_place(&mut self, cx: SectionCx<'_>) {
        let Some(mut anchor) = self.sought else { return };
        for (index, section) in self.list.sections.iter_mut().enumerate().rev() {
            section.layout(cx);
            match section.find(anchor) {
                // It is read because it is near the end.
                None => return,
                Some(Anchored::Before(rest)) => anchor = rest,
                Some(Anchored::Row(row)) => {
                    (self.top, self.at_end, self.sought) = ((index, row), false, None);
                    return;
                }
            }
        }
        self.sought = None;
    }

    fn perform(&mut self, step: Move, page: usize, cx: SectionCx<'_>) {
        let page_rows = isize::try_from(page).unwrap_or(isize::MAX);
        match step {
            Move::Rows(count) => self.scroll(count, cx),
            Move::Pages(count) => self.scroll(count * (page_rows - 1).max(1), cx),
            Move::HalfPages(count) => self.scroll(count * (page_rows / 2).max(1), cx),
            Move::Top => (self.top, self.at_end) = ((0, 0), false),
            Move::Bottom => {
                self.top = (self.list.sections.len().saturating_sub(1), 0);
                self.at_end = true;
            }
            Move::Prompt { forward } => {
                let is_prompt = |index: &usize| self.list.sections[*index].is_prompt;
                let (at, row) = self.top;
                let found = if forward {
                    (at + 1..self.list.sections.len()).find(is_prompt)
                } else {
                    let before = if row > 0 { at + 1 } else { at };
                    (0..before.min(self.list.sections.len())).rev().find(is_prompt)
                };
                if let Some(index) = found {
                    (self.top, self.at_end) = ((index, 0), false);
                }
            }
            Move::Match { forward } => self.seek(forward, page, cx),
        }
    }

    /// Moves the first row by `count` rows, up to a section that is not read yet.
    fn scroll(&mut self, count: isize, cx: SectionCx<'_>) {
        let (mut at, mut row) = self.top;
        let mut left = count.unsigned_abs();
        self.at_end = false;
        if count < 0 {
            while left > row && at > 0 {
                left -= row;
                at -= 1;
                row = self.list.sections[at].layout(cx);
                if !self.list.sections[at].is_read() {
                    (self.top, self.at_end) = ((at, 0), true);
                    return;
                }
            }
            row = row.saturating_sub(left);
        } else {
            while let Some(section) = self.list.sections.get_mut(at) {
                let n_rows = section.layout(cx);
                if row + left < n_rows || at + 1 == self.list.sections.len() {
                    row = (row + left).min(n_rows.saturating_sub(1));
                    break;
                }
                left -= n_rows.saturating_sub(row);
                (at, row) = (at + 1, 0);
            }
        }
        self.top = (at, row);
    }

    /// Corrects the first row after sections were read or changed.
    fn settle(&mut self, page: usize, cx: SectionCx<'_>) {
        let Some(section) = self.list.sections.get_mut(self.top.0) else { return };
        let n_rows = section.layout(cx);
        if !section.is_read() {
            // It is read before the view moves on.
            return;
        }
        self.top.1 = self.top.1.min(n_rows.saturating_sub(1));
        if self.at_end {
            self.at_end = false;
            self.top.1 = n_rows.saturating_sub(1);
        }
        let mut below = 0;
        for (index, section) in self.list.sections.iter_mut().enumerate().skip(self.top.0) {
            let n_rows = section.layout(cx);
            below += if index == self.top.0 { n_rows.saturating_sub(self.top.1) } else { n_rows };
            if below >= page {
                return;
            }
        }
        let missing = isize::try_from(page - below).unwrap_or(0);
        self.scroll(-missing, cx);
    }

    /// Whether the last row of the text is on the screen.
    fn is_at_end(&mut self, page: usize, cx: SectionCx<'_>) -> bool {
        let (first, row) = self.top;
        let mut n_rows = 0;
        for section in self.list.sections.iter_mut().skip(first) {
            n_rows += section.layout(cx);
            if n_rows > row + page {
                return false;
            }
        }
        true
    }

    /// Asks for sections near the screen and releases those far away.
    fn follow(&mut self) {
        let current = self.search.current.map(|(index, _)| index);
        let at = self.top.0;
        self.list.follow(at..at + VISIBLE, |index| current == Some(index));
    }

    fn visible(&mut self, page: usize, cx: SectionCx<'_>) -> Vec<Row> {
        let mut rows = Vec::with_capacity(page);
        let (first, mut skip) = self.top;
        let mark = cx.theme.style(Token::Accent).add_modifier(Modifier::REVERSED);
        for (index, section) in self.list.sections.iter_mut().enumerate().skip(first) {
            let n_rows = section.layout(cx);
            if !section.is_read() {
                rows.push(Row::styled(" reading…", cx.theme.style(Token::Dim)));
            } else {
                for row_idx in skip..n_rows {
                    let row = section.row(row_idx);
                    let is_current = self.search.current == Some((index, row_idx));
                    let mark = if is_current { mark } else { Style::new().add_modifier(Modifier::REVERSED) };
                    rows.push(highlighted(row, &self.search.query, mark));
                    if rows.len() >= page {
                        return rows;
                    }
                }
            }
            skip = 0;
            if rows.len() >= page {
                break;
            }
        }
        rows
    }

    fn title_row(&self, theme: &Theme) -> Row {
        let mut row = Row::styled(&*self.title, theme.style(Token::Accent).add_modifier(Modifier::BOLD));
        if let Some(section) = self.list.sections.get(self.top.0) {
            let place = format!(" · entry {} of {}", section.entries.start + 1, self.list.path.len());
            row.push(Run::new(place, theme.style(Token::Dim)));
        }
        row
    }

    /// The query, a note, or as many keys as fit.
    fn footer_row(&self, width_cells: u16, theme: &Theme) -> Row {
        let dim = theme.style(Token::Dim);
        if let Some(field) = &self.search.field {
            return Row::styled(format!("/{}", field.text()), Style::new());
        }
        if let Some(note) = &self.search.note {
            return Row::styled(note.clone(), theme.style(Token::Warning));
        }
        if self.is_waiting {
            return Row::styled("pi is waiting for an answer · q: close", theme.style(Token::Warning));
        }
        let mut hints = vec!["q: close".to_owned(), "/: search".to_owned()];
        if !self.search.query.is_empty() {
            hints.push("n/N: next/previous match".to_owned());
        }
        let expand = if self.view.expanded { "collapse" } else { "expand" };
        if !self.hints.expand.is_empty() {
            hints.push(format!("{}: {expand}", self.hints.expand));
        }
        if !self.hints.prompts.is_empty() {
            hints.push(format!("{}: previous prompt", self.hints.prompts));
        }
        hints.push("g/G: start/end".to_owned());
        let mut text = String::new();
        for hint in hints {
            let separator = if text.is_empty() { "" } else { " · " };
            if width(&text) + width(separator) + width(&hint) <= usize::from(width_cells) {
                text.push_str(separator);
                text.push_str(&hint);
            }
        }
        Row::styled(text, dim)
    }

    // Searching.

    /// Goes to the next match; waits if its section must be read first.
    fn seek(&mut self, forward: bool, page: usize, cx: SectionCx<'_>) {
        self.search.waiting = Some(forward);
        let Some(candidates) = self.search.sections.clone().filter(|_| !self.search.query.is_empty()) else {
            if self.search.query.is_empty() {
                self.search.waiting = None;
            }
            return;
        };
        let (at, row) = self.search.current.unwrap_or(self.top);
        let is_first = self.search.current.is_none();
        let mut order: Vec<usize> = candidates.iter().copied().filter(|index| *index > at).collect();
        order.extend(candidates.iter().copied().filter(|index| *index <= at));
        if !forward {
            order = candidates.iter().rev().copied().filter(|index| *index < at).collect();
            order.extend(candidates.iter().rev().copied().filter(|index| *index >= at));
        }
        if candidates.contains(&at) {
            order.insert(0, at);
        }
        for (n, index) in order.into_iter().enumerate() {
            if !self.list.sections[index].is_read() {
                return self.list.want(index);
            }
            let n_rows = self.list.sections[index].layout(cx);
            let is_here = n == 0 && index == at;
            let is_beyond = |other: usize| match (is_here, forward) {
                (false, _) => true,
                (true, true) => other > row || is_first && other == row,
                (true, false) => other < row,
            };
            let matches = |other: &usize| is_beyond(*other) && self.is_match(index, *other, n_rows);
            let found = if forward { (0..n_rows).find(matches) } else { (0..n_rows).rev().find(matches) };
            if let Some(found) = found {
                self.search.waiting = None;
                self.search.current = Some((index, found));
                self.top = (index, found);
                let above = isize::try_from(page / 3).unwrap_or(0);
                return self.scroll(-above, cx);
            }
        }
        self.search.waiting = None;
        self.search.note = Some(format!("\"{}\" was not found", self.search.query));
    }

    /// Whether the query begins on a row; it may continue on the next one.
    fn is_match(&self, section: usize, row: usize, n_rows: usize) -> bool {
        let text = |index: usize| self.list.sections[section].row(index).text().to_lowercase();
        let first = text(row);
        if first.contains(&self.search.query) {
            return true;
        }
        if !self.search.query.contains(' ') || row + 1 >= n_rows {
            return false;
        }
        let second = text(row + 1);
        !second.contains(&self.search.query)
            && format!("{} {}", first.trim(), second.trim()).contains(&self.search.query)
    }
}

/// The row with all occurrences of `query`, which is in lower case, in another style.
fn highlighted(row: Cow<'_, Row>, query: &str, style: Style) -> Row {
    let mut row = row.into_owned();
    let text = row.text();
    let lower = text.to_lowercase();
    // Offsets in the two differ for the few characters that change their length.
    if query.is_empty() || lower.len() != text.len() || !lower.contains(query) {
        return row;
    }
    let ranges: Vec<_> = lower.match_indices(query).map(|(at, found)| at..at + found.len()).collect();
    let mut offset = 0;
    let mut spans: Vec<Span<'static>> = Vec::new();
    for span in std::mem::take(&mut row.line.spans) {
        let mut plain = String::new();
        for (at, c) in span.content.char_indices() {
            let is_marked = ranges.iter().any(|range| range.contains(&(offset + at)));
            if is_marked {
                if !plain.is_empty() {
                    spans.push(Span::styled(std::mem::take(&mut plain), span.style));
                }
                let marked = span.style.patch(style);
                match spans.last_mut().filter(|last| last.style == marked) {
                    Some(last) => last.content.to_mut().push(c),
                    None => spans.push(Span::styled(c.to_string(), marked)),
                }
            } else {
                plain.push(c);
            }
        }
        offset += span.content.len();
        if !plain.is_empty() {
            spans.push(Span::styled(plain, span.style));
        }
    }
    row.line.spans = spans;
    row
}

#[cfg(test)]
mod tests;
