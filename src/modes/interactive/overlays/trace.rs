//! The trace of the session, with filters.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::session::Trace;
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::sanitize;
use crate::tui::widgets::{
    DialogCx, Hints, LineParts, Lines, LinesText, Pager, PagerFrame, PagerOutcome, Position,
};
use crate::util::clock::Zone;

use super::super::super::trace::{CallFilter, CallKind, n_screen_pages, screen_page};
use super::{Drawn, Overlay, OverlayStep};

/// A trace that was read, and what of it is shown first.
#[derive(Debug)]
pub(in super::super) struct ReadTrace {
    /// The file of the session.
    pub(in super::super) path: PathBuf,
    pub(in super::super) trace: Trace,
    pub(in super::super) filter: CallFilter,
    pub(in super::super) zone: Zone,
}

/// A part of the text per page of the trace.
struct TracePages {
    read: ReadTrace,
    n_pages: usize,
}

impl LineParts for TracePages {
    fn n_parts(&self) -> usize {
        self.n_pages
    }

    fn lines(&self, part: usize) -> Cow<'_, str> {
        let ReadTrace { trace, filter, zone, .. } = &self.read;
        let mut text = screen_page(trace, filter, part, zone);
        // A blank line is between pages, as it is between messages.
        text.pop();
        Cow::Owned(text)
    }

    fn position(&self, part: usize, line: usize) -> Position {
        if self.n_pages == 1 {
            return Position::at("line", line + 1, self.lines(part).split('\n').count());
        }
        Position::at("page", part + 1, self.n_pages)
    }
}

/// A trace as it was read.
pub(in super::super) struct TraceDialog {
    text: LinesText<TracePages>,
    /// Names of the tools that were called.
    tools: Vec<String>,
    pager: Pager,
}

impl TraceDialog {
    pub(in super::super) fn new(read: ReadTrace) -> Self {
        let tools = read.trace.tool_stats().into_iter().map(|tool| tool.name).collect();
        let text = LinesText::new(TracePages { read, n_pages: 1 }, Lines::Plain);
        let mut pager = Pager::default();
        pager.set_hints(
            Hints::new()
                .key("app.trace.failed", "failed")
                .key("app.trace.slow", "slow")
                .key("app.trace.tool", "tool"),
        );
        let mut dialog = Self { text, tools, pager };
        dialog.show(|_| {});
        dialog
    }

    /// Changes the filter and shows the trace from its start.
    fn show(&mut self, change: impl FnOnce(&mut CallFilter)) {
        let filter = self.text.change(|pages| {
            change(&mut pages.read.filter);
            pages.n_pages = n_screen_pages(&pages.read.trace, &pages.read.filter);
            pages.read.filter.clone()
        });
        let what = if filter.is_empty() { "newest message first".to_owned() } else { filter.describe() };
        self.pager.set_title(sanitize(&format!("Trace, {what}")));
        self.pager.start_over();
    }

    fn toggle(&mut self, kind: CallKind) {
        self.show(|filter| filter.kind = if filter.kind == kind { CallKind::All } else { kind });
    }

    /// The next tool; after the last one all of them.
    fn next_tool(&mut self) {
        let tools = self.tools.clone();
        self.show(|filter| {
            let next = match filter.tool.as_deref() {
                None => 0,
                Some(name) => tools.iter().position(|other| other == name).map_or(0, |at| at + 1),
            };
            filter.tool = tools.get(next).cloned();
        });
    }
}

impl Overlay for TraceDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input
            && !self.pager.is_typing()
            && let Some(id) = keymap.lookup(Context::Trace, key)
        {
            match id {
                "app.trace.failed" => self.toggle(CallKind::Failed),
                "app.trace.slow" => self.toggle(CallKind::Slow),
                "app.trace.tool" => self.next_tool(),
                _ => {}
            }
            return OverlayStep::Stay;
        }
        match self.pager.handle(input, keymap, &mut self.text) {
            PagerOutcome::Pending | PagerOutcome::Ignored => OverlayStep::Stay,
            PagerOutcome::Closed => OverlayStep::Close,
        }
    }

    fn pager(&mut self) -> Option<&mut Pager> {
        Some(&mut self.pager)
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        self.pager.render(&mut self.text, PagerFrame::Overlay, cx)
    }
}
