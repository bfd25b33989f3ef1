//! How far participants are apart: as far as the texts between and beside them need.

use super::super::label::widest;
use super::{Event, NotePlace, Sequence};

/// Columns of a message to oneself before its text.
pub(super) const SELF_LOOP_COLUMNS: i64 = 5;

/// Columns that two lifelines are apart at least.
struct Distance {
    first: usize,
    last: usize,
    cells: i64,
}

/// The columns of the lifelines, the first at 0.
pub(super) fn columns(sequence: &Sequence, heads: &[Vec<String>], texts: &[Vec<String>]) -> Vec<i64> {
    let depth = depth(sequence);
    let least = if depth == 0 { 5 } else { 6 + 2 * depth };
    let mut distances = Vec::new();
    let mut keep = |first: usize, last: usize, cells: i64| {
        if first < last && last < heads.len() {
            distances.push(Distance { first, last, cells });
        }
    };
    for (event, lines) in sequence.events.iter().zip(texts) {
        let wide = i64::try_from(widest(lines)).unwrap_or(0);
        match event {
            Event::Message { from, to, .. } if from == to => {
                keep(*from, from + 1, wide + SELF_LOOP_COLUMNS + 3 + 2 * depth);
            }
            Event::Message { from, to, .. } => keep(*from.min(to), *from.max(to), wide + 3),
            Event::Note { place, first, last, .. } => match place {
                NotePlace::Over if first == last => {
                    let half = wide / 2 + 5 + 2 * depth;
                    keep(*first, first + 1, half);
                    if let Some(before) = first.checked_sub(1) {
                        keep(before, *first, half);
                    }
                }
                NotePlace::Over => keep(*first, *last, wide - 1),
                NotePlace::Right => keep(*last, last + 1, wide + 8 + 2 * depth),
                NotePlace::Left => {
                    if let Some(before) = first.checked_sub(1) {
                        keep(before, *first, wide + 8 + 2 * depth);
                    }
                }
            },
            Event::Open { .. } | Event::Next { .. } | Event::Close => {}
        }
    }
    let mut columns: Vec<i64> = Vec::with_capacity(heads.len());
    for (participant, head) in heads.iter().enumerate() {
        let half = |head: &[String]| i64::try_from(widest(head)).unwrap_or(0) / 2 + 2;
        let beside = columns
            .last()
            .zip(participant.checked_sub(1))
            .map_or(0, |(column, before)| column + least.max(half(&heads[before]) + half(head) + 2));
        let apart = distances
            .iter()
            .filter(|distance| distance.last == participant)
            .filter_map(|distance| Some(columns.get(distance.first)? + distance.cells));
        columns.push(apart.fold(beside, i64::max));
    }
    columns
}

/// The deepest nesting of blocks.
fn depth(sequence: &Sequence) -> i64 {
    let (mut depth, mut deepest) = (0, 0);
    for event in &sequence.events {
        match event {
            Event::Open { .. } => depth += 1,
            Event::Close => depth -= 1,
            Event::Message { .. } | Event::Note { .. } | Event::Next { .. } => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
