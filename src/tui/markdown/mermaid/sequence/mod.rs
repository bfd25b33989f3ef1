//! Sequence diagrams: who tells whom what, from top to bottom.

mod columns;
mod draw;
mod parse;

pub(super) use draw::draw;
pub(super) use parse::parse;

use super::sheet::Stroke;

/// More participants are not readable side by side.
const MAX_PARTICIPANTS: usize = 24;
const MAX_EVENTS: usize = 200;
/// Levels of blocks in blocks.
const MAX_NESTING: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    None,
    Arrow,
    Open,
    Cross,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotePlace {
    Over,
    Left,
    Right,
}

#[derive(Debug, Clone)]
enum Event {
    Message {
        from: usize,
        to: usize,
        stroke: Stroke,
        points: [Point; 2],
        text: String,
    },
    Note {
        place: NotePlace,
        first: usize,
        last: usize,
        text: String,
    },
    /// A block such as `alt`, with its condition.
    Open {
        kind: String,
        text: String,
    },
    /// The next part of a block, such as `else`.
    Next {
        text: String,
    },
    Close,
}

#[derive(Debug, Default)]
pub(super) struct Sequence {
    title: Option<String>,
    participants: Vec<String>,
    events: Vec<Event>,
}
