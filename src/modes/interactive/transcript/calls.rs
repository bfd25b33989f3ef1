//! Tool calls without a result, and the cells that show them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::ToolOutput;
use crate::ai::{ToolCall, ToolResultMessage};

use super::cell_list::{CellId, CellList};
use super::cells::ToolCell;

/// The error of a stored call without a result.
pub(super) const NO_RESULT: &str = "No result was recorded";

/// Open calls, by their id. Events about other calls change nothing.
///
/// Some servers give the calls of every answer the same ids, so an id names the call of the last
/// answer that has it.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: HashMap<String, OpenCall>,
    /// Number of answers so far.
    n_answers: usize,
}

#[derive(Debug, Clone, Copy)]
struct OpenCall {
    cell: CellId<ToolCell>,
    /// Number of the answer it came with.
    answer: usize,
}

impl OpenCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn contains(&self, call_id: &str) -> bool {
        self.calls.contains_key(call_id)
    }

    /// The calls that follow belong to another answer than those before.
    pub(super) fn begin_answer(&mut self) {
        self.n_answers += 1;
    }

    /// Shows a call whose arguments are still arriving.
    pub(super) fn open_arriving(
        &mut self,
        call_id: &str,
        name: &str,
        cells: &mut CellList,
    ) -> CellId<ToolCell> {
        self.end_earlier(call_id, cells);
        let cell = cells.push(ToolCell::arriving(name));
        self.insert(call_id, cell);
        cell
    }

    /// Shows a call whose arguments are complete, in its cell if it has one.
    pub(super) fn open(&mut self, call: &ToolCall, cells: &mut CellList) -> CellId<ToolCell> {
        self.end_earlier(&call.id, cells);
        match self.cell(&call.id) {
            Some(cell) => {
                self.complete(cell, call, cells);
                cell
            }
            None => {
                let cell = cells.push(ToolCell::new(call));
                self.insert(&call.id, cell);
                cell
            }
        }
    }

    /// Records that the call in `cell` has all of its arguments.
    pub(super) fn complete(&mut self, cell: CellId<ToolCell>, call: &ToolCall, cells: &mut CellList) {
        if let Some(shown) = cells.get_mut(cell) {
            shown.set_call(call);
            self.insert(&call.id, cell);
        }
    }

    /// Shows that a call waits until it can run.
    pub(super) fn start(&mut self, call: &ToolCall, cells: &mut CellList) {
        let cell = self.open(call, cells);
        if let Some(cell) = cells.get_mut(cell) {
            cell.start(call);
        }
    }

    pub(super) fn run(&self, call_id: &str, now: Duration, cells: &mut CellList) {
        if let Some(cell) = self.cell(call_id).and_then(|cell| cells.get_mut(cell)) {
            cell.run(now);
        }
    }

    pub(super) fn update(&self, call_id: &str, partial: &Arc<ToolOutput>, cells: &mut CellList) {
        if let Some(cell) = self.cell(call_id).and_then(|cell| cells.get_mut(cell)) {
            cell.update(partial);
        }
    }

    /// Shows the result of a call.
    pub(super) fn end(&mut self, result: &Arc<ToolResultMessage>, cells: &mut CellList) {
        if let Some(cell) = self.calls.remove(&result.tool_call_id).and_then(|call| cells.get_mut(call.cell))
        {
            cell.end(result);
        }
    }

    /// The cells of the calls.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, CellId<ToolCell>)> {
        self.calls.iter().map(|(call_id, call)| (call_id.as_str(), call.cell))
    }

    /// Ends calls that will get no result.
    pub(super) fn abandon(&mut self, reason: &str, cells: &mut CellList) {
        self.calls.clear();
        cells.change_live(|call: &mut ToolCell| call.fail(reason));
    }

    fn cell(&self, call_id: &str) -> Option<CellId<ToolCell>> {
        self.calls.get(call_id).map(|call| call.cell)
    }

    fn insert(&mut self, call_id: &str, cell: CellId<ToolCell>) {
        self.calls.insert(call_id.to_owned(), OpenCall { cell, answer: self.n_answers });
    }

    /// Ends the call of an earlier answer that has this id: a result that follows is not its own.
    fn end_earlier(&mut self, call_id: &str, cells: &mut CellList) {
        let Some(&call) = self.calls.get(call_id).filter(|call| call.answer < self.n_answers) else { return };
        self.calls.remove(call_id);
        if let Some(cell) = cells.get_mut(call.cell) {
            cell.fail(NO_RESULT);
        }
    }
}
