//! The parts of a conversation that a conversion could not carry over.

use std::collections::HashMap;
use std::fmt;

/// One part that changed or was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its position, such as `messages[3].content[1]`.
    pub place: String,
    /// The part, and its replacement unless it was dropped.
    pub what: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All parts that a conversion could not carry over, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    notes: Vec<Note>,
}

/// The number of notes of one kind that are listed; more become one line.
const SHOWN: usize = 3;

impl Report {
    /// Notes that `what` at `place` was not carried over.
    pub fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.notes.push(Note { place: place.into(), what: what.into() });
    }

    /// Adds the notes of another report.
    pub fn append(&mut self, mut other: Self) {
        self.notes.append(&mut other.notes);
    }

    /// The notes, in the order of the conversation.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Whether everything was carried over unchanged.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// One line per note; more than three of one kind become one line with their number.
    pub fn lines(&self) -> Vec<String> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for note in &self.notes {
            *counts.entry(&note.what).or_default() += 1;
        }
        let mut lines = Vec::new();
        for note in &self.notes {
            match counts.get_mut(note.what.as_str()) {
                Some(0) | None => {}
                Some(n) if *n > SHOWN => {
                    lines.push(format!("{} and {} more places: {}", note.place, *n - 1, note.what));
                    *n = 0;
                }
                Some(_) => lines.push(note.to_string()),
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_notes_of_a_kind_are_counted() {
        let mut report = Report::default();
        for at in 0..5 {
            report.add(format!("messages[{at}]"), "audio input");
            if at < 3 {
                report.add(format!("messages[{at}].name"), "name");
            }
        }
        assert_eq!(
            report.lines(),
            [
                "messages[0] and 4 more places: audio input",
                "messages[0].name: name",
                "messages[1].name: name",
                "messages[2].name: name",
            ]
        );
    }
}
