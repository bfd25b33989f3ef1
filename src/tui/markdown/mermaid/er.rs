//! Parses entity relationship diagrams.

use super::graph::{Edge, End, Flow, Graph, Head, ROOT, is_name};
use super::sheet::Stroke;
use super::statement::{first_word, is_styling, split_text, without_class};
use super::{Undrawn, label};

pub(super) fn parse(statements: &[&str]) -> Result<Graph, Undrawn> {
    let mut graph = Graph::new(Flow::Down);
    let mut open: Option<End> = None;
    for statement in statements {
        let (word, rest) = first_word(statement);
        match open {
            Some(_) if *statement == "}" => open = None,
            Some(entity) => attribute(&mut graph, entity, statement)?,
            None if is_styling(word, rest) => {}
            None if word == "direction" => graph.flow = Flow::parse(rest).ok_or(Undrawn::Syntax)?,
            None => match relation(&mut graph, statement)? {
                true => {}
                false => match statement.strip_suffix('{') {
                    Some(name) => open = Some(entity(&mut graph, name)?),
                    None => {
                        entity(&mut graph, statement)?;
                    }
                },
            },
        }
    }
    if open.is_some() { Err(Undrawn::Syntax) } else { Ok(graph) }
}

/// `NAME`, `"A name"` or `name["Text"]`.
fn entity(graph: &mut Graph, source: &str) -> Result<End, Undrawn> {
    let source = without_class(source)?;
    let (name, title) = match source.split_once('[') {
        Some((name, title)) => (name.trim(), title.strip_suffix(']').ok_or(Undrawn::Syntax)?),
        None => (source, source),
    };
    let is_quoted = name.len() > 2 && name.starts_with('"') && name.ends_with('"');
    if !(is_quoted || is_name(name)) {
        return Err(Undrawn::Syntax);
    }
    let end = graph.node(name, ROOT)?;
    if title != name {
        let title = label::plain(title).ok_or(Undrawn::TooLarge)?;
        if let Some(first) = graph.node_mut(end).and_then(|node| node.sections.first_mut()) {
            *first = title;
        }
    }
    Ok(end)
}

/// `type name PK "comment"`.
fn attribute(graph: &mut Graph, entity: End, statement: &str) -> Result<(), Undrawn> {
    let text = label::plain(&statement.replace('"', "")).ok_or(Undrawn::TooLarge)?;
    let Some(node) = graph.node_mut(entity) else { return Err(Undrawn::Syntax) };
    node.sections.resize(2, String::new());
    let attributes = &mut node.sections[1];
    if !attributes.is_empty() {
        attributes.push('\n');
    }
    attributes.push_str(&text);
    Ok(())
}

/// How many entities are at an end of a relation: the mark as it is on the left and on the right.
const MARKS: [(&str, &str, &str); 4] =
    [("||", "||", "1"), ("|o", "o|", "0..1"), ("}|", "|{", "1..n"), ("}o", "o{", "0..n")];

/// `A ||--o{ B : text`. False if the statement is none.
fn relation(graph: &mut Graph, statement: &str) -> Result<bool, Undrawn> {
    let marks = |at: usize| Some((statement.get(at.checked_sub(2)?..at)?, statement.get(at + 2..at + 4)?));
    let line = ["--", ".."].iter().find_map(|mark| {
        let at = statement.find(mark)?;
        let (left, right) = marks(at)?;
        let first = MARKS.iter().find(|row| row.0 == left)?.2;
        let last = MARKS.iter().find(|row| row.1 == right)?.2;
        Some((at, *mark, first, last))
    });
    let Some((at, mark, first, last)) = line else {
        return if statement.contains("--") || statement.contains("..") {
            Err(Undrawn::Syntax)
        } else {
            Ok(false)
        };
    };
    let (right, text) = split_text(&statement[at + 4..]).unwrap_or((&statement[at + 4..], ""));
    let (from, to) = (entity(graph, &statement[..at - 2])?, entity(graph, right)?);
    let text = label::plain(text).ok_or(Undrawn::TooLarge)?;
    graph.add_edge(Edge {
        ends: [from, to],
        heads: [Head::None; 2],
        labels: [first.to_owned(), text, last.to_owned()],
        stroke: if mark == ".." { Stroke::Dotted } else { Stroke::Plain },
        is_hidden: false,
    })?;
    Ok(true)
}
