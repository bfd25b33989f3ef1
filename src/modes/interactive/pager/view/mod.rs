//! The transcript of a session in the pager.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::KeyEvent;
use ratatui::layout::Size;

use crate::session::{Entry, SessionEvent, SessionTree};
use crate::tui::keymap::{Context, Keymap};
use crate::tui::markdown::Highlighter;
use crate::tui::term::InputEvent;
use crate::tui::text::{Row, sanitize};
use crate::tui::theme::Theme;
use crate::tui::widgets::{
    DialogCx, HiddenText, Hints, PagedText, Pager, PagerFrame, PagerOutcome, Place, Position,
};

use super::super::sections::{ReadEffect, Section, SectionCx, SectionList};
use super::super::transcript::{
    Anchor, Anchored, EntryPlace, Hidden, Remarks, RowPlace, ViewSettings, action_showing,
};
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

pub(in super::super) struct PagerView {
    pager: Pager,
    text: SessionText,
    view: ViewSettings,
    highlighter: Highlighter,
    /// The place to show first, until its section was read.
    sought: Option<Anchor>,
    /// The row to keep at the top of the next frame, with its section.
    kept: Option<(usize, RowPlace)>,
    /// Events that the last section shows once it was read.
    events: Vec<(SessionEvent, Duration)>,
    /// Notices of the program, and the place from which theirs count.
    remarks: (Remarks, EntryPlace),
    /// Whether the session was working when the pager was opened.
    is_busy: bool,
}

/// The sections of a session as a text.
struct SessionText {
    list: SectionList,
    /// Entries that followed since the pager was opened.
    n_added: usize,
    /// The time of the frame.
    now: Duration,
    /// A search that was asked for.
    asked: Option<ReadEffect>,
}

impl PagedText for SessionText {
    fn n_parts(&self) -> usize {
        self.list.sections.len()
    }

    fn layout(&mut self, part: usize, width_cells: u16, theme: &Theme) -> usize {
        let cx = SectionCx { width: width_cells, theme, now: self.now };
        self.list.sections.get_mut(part).map_or(0, |section| section.layout(cx))
    }

    fn row(&self, part: usize, row: usize) -> Cow<'_, Row> {
        let section = self.list.sections.get(part);
        section.map_or_else(|| Cow::Owned(Row::default()), |section| section.row(row))
    }

    fn relaid(&mut self, places: &[Place], width_cells: u16, theme: &Theme) -> Vec<Place> {
        let place_of = |(part, row): &Place| {
            (*part, self.list.sections.get(*part).and_then(|section| section.place(*row)))
        };
        let known: Vec<_> = places.iter().map(place_of).collect();
        let row_of = |(part, place): (usize, Option<RowPlace>)| {
            self.layout(part, width_cells, theme);
            let section = self.list.sections.get(part);
            (part, place.and_then(|place| section?.row_of(&place)).unwrap_or(0))
        };
        known.into_iter().map(row_of).collect()
    }

    fn is_read(&self, part: usize) -> bool {
        self.list.sections.get(part).is_some_and(Section::is_read)
    }

    fn want(&mut self, part: usize) {
        self.list.want(part);
    }

    fn is_stop(&self, part: usize) -> bool {
        self.list.sections.get(part).is_some_and(|section| section.is_prompt)
    }

    fn position(&self, top: Place, last: Place) -> Option<Position> {
        let section = self.list.sections.get(top.0)?;
        let of = self.list.path.len() + self.n_added;
        let end = self.list.sections.last()?;
        if last.0 + 1 == self.list.sections.len() && end.is_read() && last.1 + 1 >= end.n_rows() {
            return Some(Position::at("entry", of, of));
        }
        Some(Position::at("entry", (section.entries.start + 1).min(of), of))
    }

    fn search(&mut self, query: &str) -> Option<Vec<usize>> {
        let Some(tree) = self.list.tree.clone() else { return Some(Vec::new()) };
        let (path, query) = (Arc::clone(&self.list.path), query.to_owned());
        self.asked = Some(ReadEffect::Search { tree, path, query });
        None
    }

    fn hidden(&mut self, part: usize, query: &str, width_cells: u16, theme: &Theme) -> Option<HiddenText> {
        let cx = SectionCx { width: width_cells, theme, now: self.now };
        let hidden = self.list.sections.get_mut(part)?.find_hidden(query, cx)?;
        let action = action_showing(hidden);
        Some(match hidden {
            Hidden::Collapsed => HiddenText { place: "collapsed text", action: (action, "expand") },
            Hidden::Thinking => HiddenText { place: "hidden thinking", action: (action, "show") },
        })
    }
}

impl PagerView {
    pub(super) fn of_session(
        title: &str,
        (tree, start): (SessionTree, PagerStart),
        view: &ViewSettings,
        highlighter: Highlighter,
    ) -> Self {
        let PagerStart { leaf, is_busy, events, place, remarks, first_entry } = start;
        // Entries that were added since then come as events too.
        let leaf = leaf.and_then(|id| tree.index_of(&id));
        let path = tree.path(leaf);
        let is_first = |idx: &usize| first_entry.as_ref() == Some(tree.entry(*idx).id);
        let n_before = path.iter().position(is_first).unwrap_or(0);
        let remarks_start = EntryPlace::after(path.iter().take(n_before).map(|idx| tree.entry(*idx).kind));
        let mut list = SectionList::of_path(tree, path);
        if list.sections.is_empty() {
            list.sections.push(Section::empty(list.path.len()));
        }
        if let Some(last) = list.sections.last_mut() {
            last.is_live = true;
        }
        let n_added = events.iter().filter(|(event, _)| is_entry(event)).count();
        let mut opened = Self {
            pager: Pager::at_end(sanitize(title)),
            text: SessionText { list, n_added, now: Duration::ZERO, asked: None },
            view: ViewSettings { expanded: true, live_rows: None, hide_thinking: false, ..view.clone() },
            highlighter,
            sought: place,
            kept: None,
            events,
            remarks: (remarks, remarks_start),
            is_busy,
        };
        opened.name_keys();
        opened
    }

    /// Shows what the session does, at its end.
    pub(super) fn on_session_event(&mut self, event: &SessionEvent, now: Duration) {
        let sections = &mut self.text.list.sections;
        let Some(last) = sections.last_mut().filter(|last| last.is_live) else { return };
        self.text.n_added += usize::from(is_entry(event));
        match event {
            // Another conversation; this one ends here.
            SessionEvent::Opened(_) | SessionEvent::Navigated(_) => last.is_live = false,
            _ if last.is_read() => last.apply(event, now),
            _ => self.events.push((event.clone(), now)),
        }
    }

    fn name_keys(&mut self) {
        let expand = if self.view.expanded { "collapse" } else { "expand" };
        let thinking = if self.view.hide_thinking { "show thinking" } else { "hide thinking" };
        let hints = Hints::new()
            .key("app.tools.expand", expand)
            .key("app.thinking.toggle", thinking)
            .keys(&["tui.altScreen.previousPrompt", "tui.altScreen.nextPrompt"], "previous/next prompt");
        self.pager.set_hints(hints);
    }

    /// Whether a dialog waits on the main screen.
    pub(in super::super) fn set_waiting(&mut self, is_waiting: bool) {
        self.pager.set_waiting(is_waiting);
    }

    pub(super) fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> PagerStep {
        // After the keys of the pager, and before those of lists, some of which move it.
        if let InputEvent::Key(key) = input
            && !self.pager.is_typing()
            && [Context::Pager, Context::Fullscreen].iter().all(|&own| keymap.lookup(own, key).is_none())
            && let Some(step) = self.on_key(key, keymap)
        {
            return step;
        }
        if self.pager.handle(input, keymap, &mut self.text) == PagerOutcome::Closed {
            return PagerStep::Close;
        }
        self.text.asked.take().map_or(PagerStep::Stay, PagerStep::Search)
    }

    /// `None` if the key has no meaning here.
    fn on_key(&mut self, key: &KeyEvent, keymap: &Keymap) -> Option<PagerStep> {
        match keymap.lookup(Context::App, key)? {
            "app.transcript.page" => return Some(PagerStep::Close),
            "app.tools.expand" => self.toggle(|view| view.expanded ^= true),
            "app.thinking.toggle" => self.toggle(|view| view.hide_thinking ^= true),
            _ => return None,
        }
        Some(PagerStep::Stay)
    }

    fn toggle(&mut self, change: impl FnOnce(&mut ViewSettings)) {
        let (part, row) = self.pager.top();
        let place = self.text.list.sections.get(part).and_then(|section| section.place(row));
        self.kept = place.map(|place| (part, place));
        change(&mut self.view);
        for section in &mut self.text.list.sections {
            section.set_view(&self.view);
        }
        self.pager.on_view_changed();
        self.name_keys();
    }

    // Results of effects.

    pub(super) fn on_read(&mut self, tree: &SessionTree, sections: Vec<(usize, Vec<Arc<Entry>>)>) {
        if !self.text.list.is_of(tree) {
            return;
        }
        for (index, entries) in sections {
            let Some(section) = self.text.list.on_read(index) else { continue };
            let shown = (self.view.clone(), self.highlighter.clone());
            let (remarks, start) = &self.remarks;
            let mut remarks = remarks.from(section.start.since(*start));
            if !(section.is_live && (self.is_busy || !self.events.is_empty())) {
                section.show(entries, shown, &mut remarks);
                continue;
            }
            section.show_live(&entries, shown, &mut remarks);
            for (event, at) in std::mem::take(&mut self.events) {
                section.apply(&event, at);
            }
        }
    }

    pub(super) fn on_found(&mut self, tree: &SessionTree, query: &str, positions: &[usize]) {
        let list = &self.text.list;
        if !list.is_of(tree) {
            return;
        }
        let (remarks, start) = &self.remarks;
        let section_of =
            |place| list.sections.partition_point(|section| section.start.since(*start) <= place);
        let noticed =
            remarks.containing(query).into_iter().filter_map(|place| section_of(place).checked_sub(1));
        let mut found = list.sections_of(positions);
        found.extend(noticed);
        // The file is searched as it was when the pager was opened; the last section has more.
        found.extend(list.sections.len().checked_sub(1).filter(|last| list.sections[*last].is_live));
        found.sort_unstable();
        found.dedup();
        self.pager.on_found(query, found);
    }

    /// The sections that the last frame missed.
    pub(super) fn take_wanted(&mut self) -> Option<ReadEffect> {
        self.text.list.take_wanted()
    }

    // Drawing.

    /// As many rows as the screen has, and the cursor's row and column among them while a query is
    /// typed.
    pub(in super::super) fn render(
        &mut self,
        size: Size,
        (theme, keymap): (&Theme, &Keymap),
        now: Duration,
    ) -> (Vec<Row>, Option<(u16, u16)>) {
        self.text.now = now;
        let section_cx = SectionCx { width: size.width.max(1), theme, now };
        self.seek_place(section_cx);
        self.return_to_kept(section_cx);
        let cx = DialogCx { width: size.width, max_rows: size.height, theme, keymap };
        let drawn = self.pager.render(&mut self.text, PagerFrame::Screen, &cx);
        let (at, current) = (self.pager.top().0, self.pager.current_match().map(|(section, _)| section));
        // Sections near the screen are read, those far away released.
        self.text.list.follow(at..at + VISIBLE, |section| current == Some(section));
        drawn
    }

    /// Keeps the row at the top, if other rows have been shown or hidden.
    fn return_to_kept(&mut self, cx: SectionCx<'_>) {
        let Some((part, place)) = self.kept.take() else { return };
        let Some(section) = self.text.list.sections.get_mut(part) else { return };
        section.layout(cx);
        self.pager.go_to((part, section.row_of(&place).unwrap_or(0)));
    }

    /// Goes to the place that is shown first, once it is known.
    fn seek_place(&mut self, cx: SectionCx<'_>) {
        let Some(mut anchor) = self.sought else { return };
        for (index, section) in self.text.list.sections.iter_mut().enumerate().rev() {
            section.layout(cx);
            match section.find(anchor) {
                // It is read because it is near the end.
                None => return,
                Some(Anchored::Before(rest)) => anchor = rest,
                Some(Anchored::Row(row)) => {
                    self.sought = None;
                    return self.pager.go_to((index, row));
                }
            }
        }
        self.sought = None;
    }
}

fn is_entry(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::EntryAppended(_))
}

#[cfg(test)]
mod tests;
