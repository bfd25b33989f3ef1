//! Rows of a text that still arrives, and that leave the screen: they are final from then on, and what follows them
//! begins a row of its own, whatever the width.

use super::{Places, Transcript};

/// Makes unsettled rows before row `row` final if they can be.
pub(in super::super) fn freeze(transcript: &mut Transcript, row: usize) {
    transcript.cells.freeze(row);
}

/// The same for row `old` of `places`, or for all rows then if it was after them. Returns the row. A layout must
/// follow.
pub(in super::super) fn freeze_at(transcript: &mut Transcript, places: &Places, old: usize) -> Option<usize> {
    let (cell, row, end) = places.to_freeze(old)?;
    transcript.cells.freeze_at(cell, end.clone());
    Some(row)
}
