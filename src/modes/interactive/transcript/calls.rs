//! Tool calls without a result, and the cells that show them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::ToolOutput;
use crate::ai::{ToolCall, ToolResultMessage};

use super::cell_list::{CellId, CellList};
use super::cells::ToolCell;

/// Open calls, by their id. Events about other calls change nothing.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(HashMap<String, CellId<ToolCell>>);

impl OpenCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, call_id: &str) -> bool {
        self.0.contains_key(call_id)
    }

    /// Shows a call whose arguments are still arriving.
    pub(super) fn open_arriving(
        &mut self,
        call_id: &str,
        name: &str,
        cells: &mut CellList,
    ) -> CellId<ToolCell> {
        let cell = cells.push(ToolCell::arriving(name));
        self.0.insert(call_id.to_owned(), cell);
        cell
    }

    /// Shows a call whose arguments are complete, in its cell if it has one.
    pub(super) fn open(&mut self, call: &ToolCall, cells: &mut CellList) -> CellId<ToolCell> {
        match self.0.get(&call.id) {
            Some(&cell) => {
                self.complete(cell, call, cells);
                cell
            }
            None => {
                let cell = cells.push(ToolCell::new(call));
                self.0.insert(call.id.clone(), cell);
                cell
            }
        }
    }

    /// Records that the call in `cell` has all of its arguments.
    pub(super) fn complete(&mut self, cell: CellId<ToolCell>, call: &ToolCall, cells: &mut CellList) {
        if let Some(shown) = cells.get_mut(cell) {
            shown.set_call(call);
            self.0.insert(call.id.clone(), cell);
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
        if let Some(cell) = self.0.get(call_id).and_then(|&cell| cells.get_mut(cell)) {
            cell.run(now);
        }
    }

    pub(super) fn update(&self, call_id: &str, partial: &Arc<ToolOutput>, cells: &mut CellList) {
        if let Some(cell) = self.0.get(call_id).and_then(|&cell| cells.get_mut(cell)) {
            cell.update(partial);
        }
    }

    /// Shows the result of a call.
    pub(super) fn end(&mut self, result: &Arc<ToolResultMessage>, cells: &mut CellList) {
        if let Some(cell) = self.0.remove(&result.tool_call_id).and_then(|cell| cells.get_mut(cell)) {
            cell.end(result);
        }
    }

    /// The cells of the calls.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, CellId<ToolCell>)> {
        self.0.iter().map(|(call_id, cell)| (call_id.as_str(), *cell))
    }

    /// Ends calls that will get no result.
    pub(super) fn abandon(&mut self, reason: &str, cells: &mut CellList) {
        self.0.clear();
        cells.change_live(|call: &mut ToolCell| call.fail(reason));
    }
}
