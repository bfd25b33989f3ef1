//! The trace of the session, with filters and pages.

use ratatui::style::Style;

use crate::session::Trace;
use crate::tui::keymap::{Context, Keymap};
use crate::tui::term::InputEvent;
use crate::tui::text::{Run, sanitize};
use crate::tui::widgets::{DialogCx, Hints, Pager, PagerOutcome};
use crate::util::clock::Zone;

use super::super::super::trace::{CallFilter, CallKind, screen_page};
use super::{Drawn, Overlay, OverlayStep};

/// A trace that was read, and what of it is shown first.
#[derive(Debug)]
pub(in super::super) struct ReadTrace {
    pub(in super::super) trace: Trace,
    pub(in super::super) filter: CallFilter,
    pub(in super::super) zone: Zone,
}

/// A page of a trace. It stays as it was read.
pub(in super::super) struct TraceDialog {
    read: ReadTrace,
    /// Names of the tools that were called.
    tools: Vec<String>,
    /// 0 is the newest page.
    page: usize,
    has_older: bool,
    pager: Pager,
}

impl TraceDialog {
    pub(in super::super) fn new(read: ReadTrace) -> Self {
        let tools = read.trace.tool_stats().into_iter().map(|tool| tool.name).collect();
        let pager = Pager::new("", Vec::new());
        let mut dialog = Self { read, tools, page: 0, has_older: false, pager };
        dialog.show(0);
        dialog
    }

    fn show(&mut self, page: usize) {
        let ReadTrace { trace, filter, zone } = &self.read;
        let (text, has_older) = screen_page(trace, filter, page, zone);
        let what = if filter.is_empty() { "newest message first".to_owned() } else { filter.describe() };
        let number = if page > 0 || has_older { format!(", page {}", page + 1) } else { String::new() };
        let title = sanitize(&format!("Trace, {what}{number}")).into_owned();
        let line = |line: &str| vec![Run::new(sanitize(line).into_owned(), Style::new())];
        (self.page, self.has_older) = (page, has_older);
        let hints = Hints::new()
            .key("app.trace.failed", "failed")
            .key("app.trace.slow", "slow")
            .key("app.trace.tool", "tool")
            .keys(&["app.trace.older", "app.trace.newer"], "older/newer")
            .cancel("close");
        self.pager = Pager::new(title, text.lines().map(line).collect()).hints(hints);
    }

    fn toggle(&mut self, kind: CallKind) {
        let filter = &mut self.read.filter;
        filter.kind = if filter.kind == kind { CallKind::All } else { kind };
        self.show(0);
    }

    /// The next tool; after the last one all of them.
    fn next_tool(&mut self) {
        let tool = &mut self.read.filter.tool;
        let next = match tool.as_deref() {
            None => 0,
            Some(name) => self.tools.iter().position(|other| other == name).map_or(0, |at| at + 1),
        };
        *tool = self.tools.get(next).cloned();
        self.show(0);
    }
}

impl Overlay for TraceDialog {
    fn handle(&mut self, input: &InputEvent, keymap: &Keymap) -> OverlayStep {
        if let InputEvent::Key(key) = input
            && let Some(id) = keymap.lookup(Context::Trace, key)
        {
            match id {
                "app.trace.failed" => self.toggle(CallKind::Failed),
                "app.trace.slow" => self.toggle(CallKind::Slow),
                "app.trace.tool" => self.next_tool(),
                "app.trace.older" if self.has_older => self.show(self.page + 1),
                "app.trace.newer" if self.page > 0 => self.show(self.page - 1),
                _ => {}
            }
            return OverlayStep::Stay;
        }
        match self.pager.handle(input, keymap) {
            PagerOutcome::Pending | PagerOutcome::Ignored => OverlayStep::Stay,
            PagerOutcome::Closed => OverlayStep::Close,
        }
    }

    fn render(&mut self, cx: &DialogCx<'_>) -> Drawn {
        (self.pager.render(cx), None)
    }
}
