//! Parses sequence diagrams.

use std::collections::HashMap;

use super::super::sheet::Stroke;
use super::super::statement::{first_word, is_styling};
use super::super::{Undrawn, label};
use super::{Event, MAX_EVENTS, MAX_NESTING, MAX_PARTICIPANTS, NotePlace, Point, Sequence};

const BLOCKS: [&str; 6] = ["loop", "alt", "opt", "par", "critical", "break"];
/// What starts another part of a block.
const PARTS: [&str; 3] = ["else", "and", "option"];

/// Arrows between two names, longer ones first.
const ARROWS: [(&str, Stroke, [Point; 2]); 10] = [
    ("<<-->>", Stroke::Dotted, [Point::Arrow, Point::Arrow]),
    ("<<->>", Stroke::Plain, [Point::Arrow, Point::Arrow]),
    ("-->>", Stroke::Dotted, [Point::None, Point::Arrow]),
    ("->>", Stroke::Plain, [Point::None, Point::Arrow]),
    ("--x", Stroke::Dotted, [Point::None, Point::Cross]),
    ("-x", Stroke::Plain, [Point::None, Point::Cross]),
    ("--)", Stroke::Dotted, [Point::None, Point::Open]),
    ("-)", Stroke::Plain, [Point::None, Point::Open]),
    ("-->", Stroke::Dotted, [Point::None, Point::None]),
    ("->", Stroke::Plain, [Point::None, Point::None]),
];

pub(in super::super) fn parse(statements: &[&str]) -> Result<Sequence, Undrawn> {
    let mut parser = SequenceParser::default();
    for statement in statements {
        parser.statement(statement)?;
    }
    if parser.open.is_empty() { Ok(parser.sequence) } else { Err(Undrawn::Syntax) }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    Drawn,
    /// `box` and `rect` only colour what they contain.
    Colour,
}

#[derive(Debug, Default)]
struct SequenceParser {
    sequence: Sequence,
    names: HashMap<String, usize>,
    open: Vec<Block>,
    /// The number of the next message, and the step to the one after it.
    numbers: Option<(usize, usize)>,
}

impl SequenceParser {
    fn statement(&mut self, statement: &str) -> Result<(), Undrawn> {
        let (word, rest) = first_word(statement);
        match word {
            // A participant may be called like any of the words below.
            _ if ARROWS.iter().any(|arrow| rest.starts_with(arrow.0)) => self.message(statement),
            _ if is_styling(word, rest) => Ok(()),
            "link" | "links" | "properties" | "details" if rest.contains(':') => Ok(()),
            "participant" | "actor" => self.participant(rest),
            "create" => self.statement(rest),
            "activate" | "deactivate" | "destroy" => self.named(rest).map(|_| ()),
            "autonumber" => self.autonumber(rest),
            "title" | "title:" => {
                self.sequence.title = Some(text(rest.trim_start_matches(':'))?);
                Ok(())
            }
            "Note" | "note" => self.note(rest),
            // The text of a box has no place in a drawing.
            "box" if !is_colour(rest) => Err(Undrawn::Kind),
            "box" | "rect" => {
                self.open.push(Block::Colour);
                Ok(())
            }
            "end" if rest.is_empty() => match self.open.pop() {
                Some(Block::Drawn) => self.event(Event::Close),
                Some(Block::Colour) => Ok(()),
                None => Err(Undrawn::Syntax),
            },
            kind if BLOCKS.contains(&kind) => {
                self.open.push(Block::Drawn);
                if self.open.len() > MAX_NESTING {
                    return Err(Undrawn::TooLarge);
                }
                self.event(Event::Open { kind: kind.to_owned(), text: text(rest)? })
            }
            kind if PARTS.contains(&kind) => {
                if self.open.last() != Some(&Block::Drawn) {
                    return Err(Undrawn::Syntax);
                }
                self.event(Event::Next { text: text(rest)? })
            }
            _ => self.message(statement),
        }
    }

    /// `autonumber`, `autonumber 10 5` (the first number and the step) or `autonumber off`.
    fn autonumber(&mut self, rest: &str) -> Result<(), Undrawn> {
        if rest == "off" {
            self.numbers = None;
            return Ok(());
        }
        let numbers: Result<Vec<usize>, _> = rest.split_whitespace().map(str::parse).collect();
        self.numbers = match numbers.map_err(|_| Undrawn::Syntax)?.as_slice() {
            [] => Some((1, 1)),
            [first] => Some((*first, 1)),
            [first, step] => Some((*first, *step)),
            _ => return Err(Undrawn::Syntax),
        };
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), Undrawn> {
        if self.sequence.events.len() == MAX_EVENTS {
            return Err(Undrawn::TooLarge);
        }
        self.sequence.events.push(event);
        Ok(())
    }

    /// `name as Text`.
    fn participant(&mut self, rest: &str) -> Result<(), Undrawn> {
        // `name@{ "type": "database" }` only chooses a picture.
        let (name, title) = rest.split_once(" as ").unwrap_or((rest, ""));
        let name = name.split_once("@{").map_or(name, |(name, _)| name);
        let participant = self.named(name)?;
        if !title.trim().is_empty() {
            self.sequence.participants[participant] = text(title)?;
        }
        Ok(())
    }

    fn named(&mut self, name: &str) -> Result<usize, Undrawn> {
        let name = name.trim();
        if name.is_empty() {
            return Err(Undrawn::Syntax);
        }
        if let Some(&known) = self.names.get(name) {
            return Ok(known);
        }
        if self.names.len() == MAX_PARTICIPANTS {
            return Err(Undrawn::TooLarge);
        }
        self.sequence.participants.push(text(name)?);
        self.names.insert(name.to_owned(), self.names.len());
        Ok(self.names.len() - 1)
    }

    /// A participant that a message or note names. An arrow or a comma in a name that is not declared
    /// means that the statement has another form.
    fn used(&mut self, name: &str) -> Result<usize, Undrawn> {
        let is_name = |name: &str| !name.contains(',') && ARROWS.iter().all(|arrow| !name.contains(arrow.0));
        if !self.names.contains_key(name.trim()) && !is_name(name) {
            return Err(Undrawn::Syntax);
        }
        self.named(name)
    }

    /// `a->>b: text`.
    fn message(&mut self, statement: &str) -> Result<(), Undrawn> {
        let (ends, message) = statement.split_once(':').unwrap_or((statement, ""));
        // A declared name may contain what looks like an arrow.
        let found =
            ARROWS.iter().filter_map(|arrow| Some((ends.find(arrow.0)?, arrow))).min_by_key(|(at, arrow)| {
                (!self.names.contains_key(ends[..*at].trim()), *at, std::cmp::Reverse(arrow.0.len()))
            });
        let (at, &(arrow, stroke, points)) = found.ok_or(Undrawn::Syntax)?;
        let from = self.used(&ends[..at])?;
        // `+` and `-` start and end an activation.
        let to = self.used(ends[at + arrow.len()..].trim().trim_start_matches(['+', '-']))?;
        let mut message = text(message)?;
        if let Some((number, step)) = &mut self.numbers {
            message = format!("{number}. {message}");
            *number = number.saturating_add(*step);
        }
        self.event(Event::Message { from, to, stroke, points, text: message })
    }

    /// `over a,b: text`, `right of a: text`.
    fn note(&mut self, rest: &str) -> Result<(), Undrawn> {
        let (place, message) = rest.split_once(':').ok_or(Undrawn::Syntax)?;
        let places =
            [("over ", NotePlace::Over), ("left of ", NotePlace::Left), ("right of ", NotePlace::Right)];
        let (names, place) = places
            .iter()
            .find_map(|(word, found)| Some((place.strip_prefix(word)?, *found)))
            .ok_or(Undrawn::Syntax)?;
        let (first, last) = names.split_once(',').unwrap_or((names, names));
        let (first, last) = (self.used(first)?, self.used(last)?);
        if first != last && place != NotePlace::Over {
            return Err(Undrawn::Syntax);
        }
        let text = text(message)?;
        self.event(Event::Note { place, first: first.min(last), last: first.max(last), text })
    }
}

/// Whether this is nothing, or a colour of CSS that models use for boxes.
fn is_colour(text: &str) -> bool {
    const NAMES: [&str; 26] = [
        "",
        "transparent",
        "aqua",
        "beige",
        "black",
        "blue",
        "brown",
        "coral",
        "cyan",
        "gold",
        "gray",
        "green",
        "grey",
        "lavender",
        "lightblue",
        "lightgray",
        "lightgreen",
        "lightgrey",
        "lightyellow",
        "orange",
        "pink",
        "purple",
        "red",
        "teal",
        "white",
        "yellow",
    ];
    let is_function = ["rgb(", "rgba(", "hsl(", "hsla("].iter().any(|name| text.starts_with(name));
    NAMES.contains(&text.to_ascii_lowercase().as_str())
        || is_function && text.find(')') == Some(text.len() - 1)
        || text.starts_with('#') && !text.contains(' ')
}

fn text(source: &str) -> Result<String, Undrawn> {
    label::plain(source).ok_or(Undrawn::TooLarge)
}
