//! The matches of a search in the rows of the transcript.
//!
//! Rows that cannot change any more are read once; with each frame that draws something, only the rows
//! after them.

use super::scrollback::{RECENT, Scrollback, Spot};
use super::search::Line;
use super::selection::Extent;

/// The matches in the rows of the transcript in memory, in order.
#[derive(Default)]
pub(super) struct RecentMatches {
    found: Vec<Extent>,
    /// The first row that was read.
    first: usize,
    /// The rows from `first` up to this one were read and cannot change.
    settled: usize,
    /// What was read.
    seen: Option<Seen>,
    /// Number of lines that were read; a measure of the work done.
    n_lines_read: u64,
}

/// Rows are the same as long as this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    first: usize,
    n_rows: usize,
    /// How often cells had been drawn.
    renders: u64,
}

impl RecentMatches {
    pub(super) fn found(&self) -> &[Extent] {
        &self.found
    }

    /// The place of a match among the others.
    pub(super) fn position(&self, found: Extent) -> Option<usize> {
        self.found.binary_search_by_key(&found.from, |other| other.from).ok()
    }

    /// Follows the rows, whose indices have not changed since the last call, except that rows may have left
    /// memory. `query` is the same each time.
    pub(super) fn update(&mut self, query: &[char], rows: &mut Scrollback<'_>) {
        let transcript = rows.transcript;
        let (first, n_rows) = (rows.recent_start(), transcript.len());
        let seen = Seen { first, n_rows, renders: transcript.renders() };
        if self.seen == Some(seen) {
            return;
        }
        if first < self.first || n_rows < self.settled {
            *self = Self { n_lines_read: self.n_lines_read, ..Self::default() };
        }
        (self.first, self.settled, self.seen) = (first, self.settled.max(first), Some(seen));
        self.found.retain(|found| (first..self.settled).contains(&found.from.spot.row));
        let stable = transcript.stable();
        let mut row = self.settled;
        while row < n_rows {
            let line = Line::at(Spot { part: RECENT, row }, rows);
            self.n_lines_read += 1;
            self.found.extend(line.matches(query));
            row = line.last.row + 1;
            if row <= stable {
                self.settled = row;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn n_lines_read(&self) -> u64 {
        self.n_lines_read
    }
}
