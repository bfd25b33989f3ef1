//! A place in the conversation that another transcript of the same session finds.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::AgentEvent;
use crate::session::{Entry, SessionEvent};
use crate::tui::markdown::Highlighter;
use crate::tui::term::RowMark;

use super::answer::StreamingAnswer;
use super::cells::StartedCall;
use super::remarks::RemarksBetween;
use super::render::ViewSettings;
use super::{CellList, Transcript};

/// A row, by what follows it: lines about the program differ between transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Anchor {
    /// Number of cells of entries below that of the row.
    below: usize,
    /// The row within its cell.
    mark: RowMark,
}

/// The result of looking for an [`Anchor`].
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Anchored {
    /// At this row.
    Row(usize),
    /// It is in the transcript before this one.
    Before(Anchor),
}

impl Transcript {
    /// The place of row `row`, or of the next entry; `None` below the last entry.
    pub(in super::super) fn anchor(&self, row: usize) -> Option<Anchor> {
        let cells: &CellList = &self.cells;
        let mut found = None;
        for (below, index) in cells.of_entries().enumerate() {
            let start = cells.start_of(index);
            if start + cells.rows_of(index).len() <= row {
                break;
            }
            let nth = row.saturating_sub(start);
            let mark = RowMark::of(cells.rows_of(index)).nth(nth).unwrap_or_default();
            found = Some(Anchor { below, mark });
        }
        found
    }

    /// Where `anchor` is, after a layout.
    pub(in super::super) fn find(&self, anchor: Anchor) -> Anchored {
        let cells: &CellList = &self.cells;
        match cells.of_entries().nth(anchor.below) {
            Some(index) => {
                let rows = cells.rows_of(index);
                let within = anchor.mark.find(rows).unwrap_or_else(|| anchor.mark.find_before(rows));
                let within = within.min(rows.len().saturating_sub(1));
                Anchored::Row(cells.start_of(index) + within)
            }
            None => Anchored::Before(Anchor { below: anchor.below - cells.of_entries().count(), ..anchor }),
        }
    }

    /// A transcript of the last entries of a session that is working, with remarks between them:
    /// calls without a result stay open, and events continue it.
    pub(in super::super) fn live(
        highlighter: Highlighter,
        view: ViewSettings,
        entries: &[Arc<Entry>],
        remarks: &mut RemarksBetween<'_>,
    ) -> Self {
        let mut transcript = Self::whole(highlighter, view);
        for entry in entries {
            remarks.before(entry, &mut transcript.cells);
            transcript.show_entry(entry);
        }
        remarks.rest(&mut transcript.cells);
        transcript
    }

    /// Events that show what is in progress in [`Self::live`] of the same entries, each with
    /// its time.
    pub(in super::super) fn in_progress(&self, now: Duration) -> Vec<(SessionEvent, Duration)> {
        let mut calls: Vec<_> = self.live.calls.cells().collect();
        calls.sort_by_key(|(_, cell)| cell.index());
        let mut events = Vec::new();
        for (id, cell) in calls {
            let Some(StartedCall { call, since, partial }) =
                self.cells.get(cell).and_then(|cell| cell.started(id))
            else {
                continue;
            };
            events.push((AgentEvent::ToolStart { call: Arc::new(call) }, now));
            let Some(since) = since else { continue };
            events.push((AgentEvent::ToolRunning { call_id: id.to_owned() }, since));
            if let Some(partial) = partial {
                let update = AgentEvent::ToolUpdate { call_id: id.to_owned(), partial: Arc::clone(partial) };
                events.push((update, since));
            }
        }
        let answer = self.live.answer.iter().flat_map(StreamingAnswer::events);
        events.extend(answer.map(|event| (event, now)));
        events.into_iter().map(|(event, at)| (SessionEvent::Agent(event), at)).collect()
    }
}
