//! Parses flowcharts: `graph` and `flowchart`.

use super::graph::{Edge, End, Flow, Graph, GroupStack, Head, ROOT, Shape};
use super::sheet::Stroke;
use super::statement::{first_word, is_styling};
use super::{Undrawn, label};

pub(super) fn parse(direction: &str, statements: &[&str]) -> Result<Graph, Undrawn> {
    let flow = if direction.is_empty() { Some(Flow::Down) } else { Flow::parse(direction) };
    let flow = flow.ok_or(Undrawn::Syntax)?;
    let mut parser = FlowchartParser { graph: Graph::new(flow), open: GroupStack::new() };
    for statement in statements {
        parser.statement(statement)?;
    }
    // Without its end, a part of the diagram is missing.
    if !parser.open.is_root() { Err(Undrawn::Syntax) } else { Ok(parser.graph) }
}

struct FlowchartParser {
    graph: Graph,
    open: GroupStack,
}

/// Brackets around the text of a node; longer ones first.
const BRACKETS: [(&str, &str, Shape); 14] = [
    ("(((", ")))", Shape::Double),
    ("((", "))", Shape::Stadium),
    ("([", "])", Shape::Stadium),
    ("(", ")", Shape::Round),
    ("[[", "]]", Shape::Subroutine),
    ("[(", ")]", Shape::Cylinder),
    ("[/", "/]", Shape::Slanted),
    ("[/", "\\]", Shape::Slanted),
    ("[\\", "\\]", Shape::Slanted),
    ("[\\", "/]", Shape::Slanted),
    ("[", "]", Shape::Box),
    ("{{", "}}", Shape::Hexagon),
    ("{", "}", Shape::Diamond),
    (">", "]", Shape::Flag),
];

impl FlowchartParser {
    fn statement(&mut self, statement: &str) -> Result<(), Undrawn> {
        let (word, rest) = first_word(statement);
        match word {
            _ if is_styling(word, rest) => Ok(()),
            // All groups flow like the diagram.
            "direction" if Flow::parse(rest).is_some() => Ok(()),
            "subgraph" if !starts_with_line(rest) => self.open_group(rest),
            "end" if rest.is_empty() => self.open.close(),
            _ => self.chain(statement),
        }
    }

    fn open_group(&mut self, rest: &str) -> Result<(), Undrawn> {
        let (name, title) = match rest.split_once('[') {
            Some((name, title)) if !name.contains('"') => {
                (name.trim(), title.trim_end().strip_suffix(']').ok_or(Undrawn::Syntax)?)
            }
            _ => (rest.trim_matches('"'), rest),
        };
        let group = self.graph.add_group(name, title, self.open.innermost())?;
        self.open.open(group);
        Ok(())
    }

    /// Nodes with lines between them: `A & B --> C --> D`.
    fn chain(&mut self, statement: &str) -> Result<(), Undrawn> {
        let mut text = Statement { rest: statement };
        let mut before = self.nodes(&mut text)?;
        while !text.rest.is_empty() {
            let link = text.link()?;
            let after = self.nodes(&mut text)?;
            for from in &before {
                for to in &after {
                    self.graph.add_edge(Edge {
                        ends: [*from, *to],
                        heads: link.heads,
                        labels: [String::new(), link.label.clone(), String::new()],
                        stroke: link.stroke,
                        is_hidden: link.is_hidden,
                    })?;
                }
            }
            before = after;
        }
        Ok(())
    }

    fn nodes(&mut self, text: &mut Statement<'_>) -> Result<Vec<End>, Undrawn> {
        let mut nodes = vec![self.node(text)?];
        while text.skip("&") {
            nodes.push(self.node(text)?);
        }
        Ok(nodes)
    }

    fn node(&mut self, text: &mut Statement<'_>) -> Result<End, Undrawn> {
        let name = text.name()?;
        let group = self.open.innermost();
        let end = self.graph.node(name, group)?;
        let shaped = text.shape()?;
        if text.rest.starts_with(":::") {
            text.rest = &text.rest[3..];
            text.name()?;
        }
        text.blank();
        let Some(node) = self.graph.node_mut(end) else {
            // A group has its text where it begins.
            return if shaped.is_some() { Err(Undrawn::Syntax) } else { Ok(end) };
        };
        if node.group == ROOT {
            node.group = group;
        }
        if let Some((shape, title)) = shaped {
            node.shape = shape;
            node.sections = vec![title];
        }
        Ok(end)
    }
}

fn starts_with_line(text: &str) -> bool {
    ["--", "==", "-.", "~~~", "<", "&"].iter().any(|mark| text.starts_with(mark))
}

struct Link {
    stroke: Stroke,
    heads: [Head; 2],
    label: String,
    is_hidden: bool,
}

/// What is left of a statement.
struct Statement<'a> {
    rest: &'a str,
}

impl<'a> Statement<'a> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip(&mut self, token: &str) -> bool {
        self.blank();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        self.blank();
        found.is_some()
    }

    /// The name of a node. `-` and `.` are part of it between letters.
    fn name(&mut self) -> Result<&'a str, Undrawn> {
        self.blank();
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '*' | '/' | '+' | '$' | '\'');
        let mut end = 0;
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let continues = chars.peek().is_some_and(|(_, next)| is_letter(*next));
            // Letters of other scripts have marks that are no letters.
            let is_mark = !c.is_ascii() && !c.is_whitespace();
            if !(is_letter(c) || is_mark || at > 0 && matches!(c, '-' | '.' | ':') && continues) {
                break;
            }
            end = at + c.len_utf8();
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name.is_empty() { Err(Undrawn::Syntax) } else { Ok(name) }
    }

    /// The text in brackets after a name, with its shape.
    fn shape(&mut self) -> Result<Option<(Shape, String)>, Undrawn> {
        for (open, close, shape) in BRACKETS {
            let Some(inside) = self.rest.strip_prefix(open) else { continue };
            let quoted = inside.trim_start().strip_prefix('"').and_then(|quoted| quoted.split_once('"'));
            let found = match quoted {
                Some((title, after)) => {
                    after.trim_start().strip_prefix(close).map(|after| (format!("\"{title}\""), after))
                }
                None => inside.split_once(close).map(|(title, after)| (title.to_owned(), after)),
            };
            // `[/a\]` and `[/a/]` begin alike.
            let Some((title, after)) = found else { continue };
            self.rest = after;
            return Ok(Some((shape, label::plain(&title).ok_or(Undrawn::TooLarge)?)));
        }
        Ok(None)
    }

    fn head(&mut self, heads: &[(char, Head)]) -> Head {
        let found = heads.iter().find(|(mark, _)| self.rest.starts_with(*mark));
        found.map_or(Head::None, |(mark, head)| {
            self.rest = &self.rest[mark.len_utf8()..];
            *head
        })
    }

    fn run_of(&mut self, mark: char) -> usize {
        let after = self.rest.trim_start_matches(mark);
        let count = self.rest.len() - after.len();
        self.rest = after;
        count
    }

    /// A line such as `-->`, `-.->|text|` or `== text ==>`.
    fn link(&mut self) -> Result<Link, Undrawn> {
        const MARKS: [(char, Head); 3] = [('>', Head::Arrow), ('x', Head::Cross), ('o', Head::Circle)];
        self.blank();
        if self.rest.starts_with("~~~") {
            self.run_of('~');
            self.blank();
            let heads = [Head::None; 2];
            return Ok(Link { stroke: Stroke::Plain, heads, label: String::new(), is_hidden: true });
        }
        let first = self.head(&[('<', Head::Arrow), ('x', Head::Cross), ('o', Head::Circle)]);
        let (stroke, mark) = match self.rest.as_bytes() {
            [b'-', b'.', ..] => (Stroke::Dotted, '.'),
            [b'-', b'-', ..] => (Stroke::Plain, '-'),
            [b'=', b'=', ..] => (Stroke::Thick, '='),
            _ => return Err(Undrawn::Syntax),
        };
        let mut inside = "";
        let count = self.line(mark);
        let mut last = if mark == '.' && count == 0 { Head::None } else { self.head(&MARKS) };
        let is_open = if mark == '.' { count == 0 } else { count == 2 && last == Head::None };
        if is_open {
            // `-- text -->`: the line continues behind its text.
            let token = match mark {
                '.' => ".-",
                '=' => "==",
                _ => "--",
            };
            let at = self.rest.find(token).ok_or(Undrawn::Syntax)?;
            (inside, self.rest) = self.rest.split_at(at);
            if self.line(mark) == 0 {
                return Err(Undrawn::Syntax);
            }
            last = self.head(&MARKS);
        }
        if self.skip("|") {
            (inside, self.rest) = match self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                Some((quoted, after)) => {
                    (quoted, after.trim_start().strip_prefix('|').ok_or(Undrawn::Syntax)?)
                }
                None => self.rest.split_once('|').ok_or(Undrawn::Syntax)?,
            };
        }
        self.blank();
        let label = label::plain(inside).ok_or(Undrawn::TooLarge)?;
        Ok(Link { stroke, heads: [first, last], label, is_hidden: false })
    }

    /// Reads the marks of a line and returns their number; for a dotted line, 0 means that it is not
    /// complete yet.
    fn line(&mut self, mark: char) -> usize {
        if mark != '.' {
            return self.run_of(mark);
        }
        self.rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let count = self.run_of('.');
        let end = self.rest.strip_prefix('-');
        self.rest = end.unwrap_or(self.rest);
        if end.is_some() { count } else { 0 }
    }
}
