//! A document with blank rows after its settled rows, which keep the rows below them at the end of the screen.

use std::borrow::Cow;

use super::super::text::Row;
use super::inline::{Anchor, Cursor, Document};

/// `document` with `n_blank` blank rows before its unsettled ones.
pub(super) struct Spaced<'a> {
    document: &'a dyn Document,
    stable: usize,
    n_blank: usize,
}

impl<'a> Spaced<'a> {
    pub(super) fn new(document: &'a dyn Document, n_blank: usize) -> Self {
        Self { document, stable: document.stable(), n_blank }
    }

    /// The row here of row `index` of the document.
    fn moved(&self, index: usize) -> usize {
        if index < self.stable { index } else { index + self.n_blank }
    }

    pub(super) fn moved_anchor(&self, anchor: Anchor) -> Anchor {
        match anchor {
            Anchor::Bottom => anchor,
            Anchor::Beside { row, room } => Anchor::Beside { row: self.moved(row), room },
        }
    }

    pub(super) fn moved_cursor(&self, cursor: Cursor) -> Cursor {
        match cursor {
            Cursor::Document { row, column } => Cursor::Document { row: self.moved(row), column },
            Cursor::Overlay { .. } => cursor,
        }
    }
}

impl Document for Spaced<'_> {
    fn len(&self) -> usize {
        self.document.len() + self.n_blank
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        match index.checked_sub(self.stable) {
            None => self.document.row(index),
            Some(n) if n < self.n_blank => Cow::Owned(Row::default()),
            Some(_) => self.document.row(index - self.n_blank),
        }
    }

    fn stable(&self) -> usize {
        self.stable
    }
}
