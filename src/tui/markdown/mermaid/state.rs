//! Parses state diagrams.

use super::graph::{Edge, End, Flow, Graph, GroupStack, Head, Node, ROOT, Shape, is_name, plain_edge};
use super::sheet::Stroke;
use super::statement::{first_word, is_styling, split_text, without_class};
use super::{Undrawn, label};

pub(super) fn parse(statements: &[&str]) -> Result<Graph, Undrawn> {
    let mut parser = StateParser { graph: Graph::new(Flow::Down), open: GroupStack::new(), note: None };
    for statement in statements {
        parser.statement(statement)?;
    }
    if !parser.open.is_root() || parser.note.is_some() { Err(Undrawn::Syntax) } else { Ok(parser.graph) }
}

struct StateParser {
    graph: Graph,
    open: GroupStack,
    /// The state of a note of several lines, and its lines.
    note: Option<(End, Vec<String>)>,
}

impl StateParser {
    fn statement(&mut self, statement: &str) -> Result<(), Undrawn> {
        if let Some((end, mut lines)) = self.note.take() {
            if statement == "end note" {
                return self.add_note(end, &lines.join("\n"));
            }
            lines.push(statement.to_owned());
            self.note = Some((end, lines));
            return Ok(());
        }
        let (word, rest) = first_word(statement);
        match word {
            _ if is_styling(word, rest) => Ok(()),
            "hide" if rest == "empty description" => Ok(()),
            "scale" if rest.starts_with(|c: char| c.is_ascii_digit()) => Ok(()),
            "direction" => {
                let flow = Flow::parse(rest).ok_or(Undrawn::Syntax)?;
                if self.open.is_root() {
                    self.graph.flow = flow;
                }
                Ok(())
            }
            "state" => self.state(rest),
            "note" => self.note(rest),
            "}" => self.open.close(),
            // Regions that run at the same time have no place in a layout by ranks.
            "--" => Err(Undrawn::Kind),
            _ => self.transition(statement),
        }
    }

    /// `state "Text" as name`, `state name <<choice>>`, `state name {`.
    fn state(&mut self, rest: &str) -> Result<(), Undrawn> {
        let (rest, is_group) = match rest.strip_suffix('{') {
            Some(rest) => (rest.trim_end(), true),
            None => (rest, false),
        };
        let (title, name) = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((title, name)) => (title, name.trim().strip_prefix("as ").ok_or(Undrawn::Syntax)?.trim()),
            None => (rest, rest),
        };
        if is_group {
            let group = self.graph.add_group(check(name)?, title, self.open.innermost())?;
            self.open.open(group);
            return Ok(());
        }
        if let Some((name, kind)) = name.split_once("<<").or_else(|| name.split_once("[[")) {
            let shape = match kind.trim_end_matches(['>', ']']) {
                "choice" => Shape::Diamond,
                "fork" | "join" => Shape::Bar,
                _ => return Err(Undrawn::Syntax),
            };
            let end = self.named(name)?;
            let node = self.graph.node_mut(end).ok_or(Undrawn::Syntax)?;
            node.shape = shape;
            node.sections = vec![String::new()];
            return Ok(());
        }
        let end = self.named(name)?;
        if title == name { Ok(()) } else { self.describe(end, name, title) }
    }

    /// A text for a state. The first replaces its name, others follow it; a group has only one.
    fn describe(&mut self, end: End, name: &str, text: &str) -> Result<(), Undrawn> {
        let name = without_class(name)?;
        let text = label::plain(text).ok_or(Undrawn::TooLarge)?;
        let shown = match end {
            End::Node(node) => &mut self.graph.nodes[node].sections[0],
            End::Group(group) => &mut self.graph.groups[group].title,
        };
        if shown == name || shown.is_empty() {
            *shown = text;
        } else if matches!(end, End::Node(_)) {
            *shown = format!("{shown}\n{text}");
        } else {
            return Err(Undrawn::Syntax);
        }
        Ok(())
    }

    fn named(&mut self, name: &str) -> Result<End, Undrawn> {
        let name = without_class(name)?;
        let group = self.open.innermost();
        let is_new = self.graph.find(name).is_none();
        let end = self.graph.node(check(name)?, group)?;
        if let Some(node) = self.graph.node_mut(end).filter(|_| is_new) {
            node.shape = Shape::Round;
        }
        Ok(end)
    }

    /// The start or the end of a group; each has at most one of both.
    fn terminal(&mut self, shape: Shape) -> Result<End, Undrawn> {
        let group = self.open.innermost();
        let known = self.graph.nodes.iter().position(|node| node.shape == shape && node.group == group);
        match known {
            Some(node) => Ok(End::Node(node)),
            None => {
                let node = Node { sections: vec![String::new()], shape, group };
                self.graph.add_node(node).map(End::Node)
            }
        }
    }

    /// `a --> b : text`, or a text for a state: `a : text`.
    fn transition(&mut self, statement: &str) -> Result<(), Undrawn> {
        let Some((from, rest)) = statement.split_once("-->") else {
            let Some((name, text)) = split_text(statement) else {
                return self.named(statement).map(|_| ());
            };
            let end = self.named(name)?;
            return self.describe(end, name, text);
        };
        let (to, text) = split_text(rest).unwrap_or((rest, ""));
        let from = match from.trim() {
            "[*]" => self.terminal(Shape::Start)?,
            name => self.named(name)?,
        };
        let to = match to.trim() {
            "[*]" => self.terminal(Shape::End)?,
            name => self.named(name)?,
        };
        let mut edge = plain_edge(from, to, [Head::None, Head::Arrow], Stroke::Plain);
        edge.labels[1] = label::plain(text).ok_or(Undrawn::TooLarge)?;
        self.graph.add_edge(edge)
    }

    /// `note right of a : text`, or lines up to `end note`.
    fn note(&mut self, rest: &str) -> Result<(), Undrawn> {
        let rest = rest.strip_prefix("right of").or_else(|| rest.strip_prefix("left of"));
        let rest = rest.ok_or(Undrawn::Syntax)?;
        match split_text(rest) {
            Some((name, text)) => {
                let end = self.named(name)?;
                self.add_note(end, text)
            }
            None => {
                self.note = Some((self.named(rest)?, Vec::new()));
                Ok(())
            }
        }
    }

    fn add_note(&mut self, end: End, text: &str) -> Result<(), Undrawn> {
        add_note(&mut self.graph, end, text)
    }
}

/// A note beside a node, with a dotted line to it.
pub(super) fn add_note(graph: &mut Graph, end: End, text: &str) -> Result<(), Undrawn> {
    let text = label::plain(text).ok_or(Undrawn::TooLarge)?;
    let group = graph.node_mut(end).map_or(ROOT, |node| node.group);
    let note = graph.add_node(Node { sections: vec![text], shape: Shape::Note, group })?;
    let edge: Edge = plain_edge(end, End::Node(note), [Head::None; 2], Stroke::Dotted);
    graph.add_edge(edge)
}

/// A name of a state: other statements are not known here.
fn check(name: &str) -> Result<&str, Undrawn> {
    if is_name(name) { Ok(name) } else { Err(Undrawn::Syntax) }
}
