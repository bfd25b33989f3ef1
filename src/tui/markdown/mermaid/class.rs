//! Parses class diagrams.

use super::graph::{Edge, End, Flow, Graph, GroupStack, Head, Node, ROOT, Shape, is_name};
use super::sheet::Stroke;
use super::state::add_note;
use super::statement::{find_unquoted, first_word, is_styling, split_text, without_class};
use super::{Undrawn, label};

pub(super) fn parse(statements: &[&str]) -> Result<Graph, Undrawn> {
    let mut parser = ClassParser { graph: Graph::new(Flow::Down), open: GroupStack::new(), class: None };
    for statement in statements {
        parser.statement(statement)?;
    }
    if !parser.open.is_root() || parser.class.is_some() {
        return Err(Undrawn::Syntax);
    }
    Ok(parser.graph)
}

struct ClassParser {
    graph: Graph,
    open: GroupStack,
    /// The class whose members follow.
    class: Option<End>,
}

/// Ends of relations, and what they look like; longer ones first.
const LEFT: [(&str, Head); 5] = [
    ("<|", Head::Triangle),
    ("*", Head::Diamond),
    ("o", Head::Hollow),
    ("<", Head::Arrow),
    ("()", Head::Circle),
];
const RIGHT: [(&str, Head); 5] = [
    ("|>", Head::Triangle),
    ("*", Head::Diamond),
    ("o", Head::Hollow),
    (">", Head::Arrow),
    ("()", Head::Circle),
];

impl ClassParser {
    fn statement(&mut self, statement: &str) -> Result<(), Undrawn> {
        if let Some(class) = self.class {
            if statement == "}" {
                self.class = None;
                return Ok(());
            }
            return self.member(class, statement);
        }
        let (word, rest) = first_word(statement);
        match word {
            "class" => self.class(rest),
            _ if is_styling(word, rest) => Ok(()),
            "direction" => {
                self.graph.flow = Flow::parse(rest).ok_or(Undrawn::Syntax)?;
                Ok(())
            }
            "namespace" => {
                let name = rest.strip_suffix('{').ok_or(Undrawn::Syntax)?.trim();
                // A class may have the same name.
                let key = format!("namespace {name}");
                let group = self.graph.add_group(&key, name, self.open.innermost())?;
                self.open.open(group);
                Ok(())
            }
            "}" => self.open.close(),
            // A class may be called `note`, with a number beside it.
            "note" if rest.starts_with('"') && rest[1..].find('"') == rest.len().checked_sub(2) => {
                let text = label::plain(rest).ok_or(Undrawn::TooLarge)?;
                let group = self.open.innermost();
                self.graph.add_node(Node { sections: vec![text], shape: Shape::Note, group }).map(|_| ())
            }
            "note" => {
                let (name, text) = rest
                    .strip_prefix("for ")
                    .and_then(|rest| rest.trim_start().split_once(char::is_whitespace))
                    .ok_or(Undrawn::Kind)?;
                let end = self.named(name)?;
                add_note(&mut self.graph, end, text)
            }
            _ if word.starts_with("<<") => {
                let (kind, name) = statement.split_once(">>").ok_or(Undrawn::Syntax)?;
                let end = self.named(name)?;
                self.member(end, &format!("{kind}>>"))
            }
            _ => self.relation(statement),
        }
    }

    /// `class Name~T~["Text"] {`, perhaps with its members.
    fn class(&mut self, rest: &str) -> Result<(), Undrawn> {
        let (name, body) = match rest.split_once('{') {
            Some((name, body)) => (name.trim(), Some(body.trim())),
            None => (rest, None),
        };
        let end = self.named(name)?;
        match body {
            None => {}
            Some("") => self.class = Some(end),
            Some(body) => {
                let members = body.strip_suffix('}').ok_or(Undrawn::Syntax)?;
                for member in members.split(';').map(str::trim).filter(|member| !member.is_empty()) {
                    self.member(end, member)?;
                }
            }
        }
        Ok(())
    }

    fn named(&mut self, source: &str) -> Result<End, Undrawn> {
        let source = without_class(source)?;
        let (name, title) = match source.split_once('[') {
            Some((name, title)) => (name.trim(), title.strip_suffix(']').ok_or(Undrawn::Syntax)?),
            None => (source, source),
        };
        let is_titled = title != source;
        let name = name.split('~').next().unwrap_or_default().trim_matches('`');
        if !is_name(name) {
            return Err(Undrawn::Syntax);
        }
        let is_new = self.graph.find(name).is_none();
        let group = self.open.innermost();
        let end = self.graph.node(name, group)?;
        let title = label::plain(title.trim_matches('`')).ok_or(Undrawn::TooLarge)?;
        let title = if is_titled { title } else { generic(&title) };
        if let Some(node) = self.graph.node_mut(end) {
            if node.group == ROOT {
                node.group = group;
            }
            if is_new || title != name {
                // An annotation stays above the name.
                let first = node.sections.first_mut();
                if let Some(first) = first {
                    *first = match first.rsplit_once('\n') {
                        Some((kind, _)) => format!("{kind}\n{title}"),
                        None => title,
                    };
                }
            }
        }
        Ok(end)
    }

    /// A field, a method or an annotation.
    fn member(&mut self, class: End, source: &str) -> Result<(), Undrawn> {
        let is_kind = source.starts_with("<<");
        let text = if is_kind {
            let kind = source.trim_start_matches("<<").trim_end().trim_end_matches(">>");
            format!("«{}»", label::plain(kind).ok_or(Undrawn::TooLarge)?)
        } else {
            // Marks of static and abstract members stay: text has no other way to show them.
            generic(&label::plain(source).ok_or(Undrawn::TooLarge)?)
        };
        let Some(node) = self.graph.node_mut(class) else { return Err(Undrawn::Syntax) };
        if is_kind {
            if let Some(name) = node.sections.first_mut() {
                *name = format!("{text}\n{name}");
            }
            return Ok(());
        }
        node.sections.resize(3, String::new());
        let section = &mut node.sections[if text.contains('(') { 2 } else { 1 }];
        if !section.is_empty() {
            section.push('\n');
        }
        section.push_str(&text);
        Ok(())
    }

    /// `A "1" <|--* "many" B : text`, or a member: `A : text`.
    fn relation(&mut self, statement: &str) -> Result<(), Undrawn> {
        let (ends, text) = split_text(statement).unwrap_or((statement, ""));
        let Some((at, mark)) = find_unquoted(ends, &["--", ".."]) else {
            let end = self.named(ends)?;
            return if text.is_empty() { Ok(()) } else { self.member(end, text.trim()) };
        };
        let (mut left, mut right) = (ends[..at].trim(), ends[at + mark.len()..].trim());
        let mut heads = [Head::None; 2];
        // `o` may be the last letter of a name.
        for (end, head) in LEFT {
            let found = left.strip_suffix(end);
            if let Some(found) = found.filter(|found| end != "o" || found.ends_with([' ', '"'])) {
                (left, heads[0]) = (found.trim_end(), head);
                break;
            }
        }
        for (end, head) in RIGHT {
            let found = right.strip_prefix(end);
            if let Some(found) = found.filter(|found| end != "o" || found.starts_with([' ', '"'])) {
                (right, heads[1]) = (found.trim_start(), head);
                break;
            }
        }
        let (left, first) = match left.strip_suffix('"').and_then(|left| left.rsplit_once('"')) {
            Some((left, text)) => (left, text),
            None => (left, ""),
        };
        let (last, right) = match right.strip_prefix('"').and_then(|right| right.split_once('"')) {
            Some((text, right)) => (text, right),
            None => ("", right),
        };
        let (from, to) = (self.named(left)?, self.named(right)?);
        let plain = |text: &str| label::plain(text).ok_or(Undrawn::TooLarge);
        let labels = [plain(first)?, plain(text)?, plain(last)?];
        let stroke = if mark == ".." { Stroke::Dotted } else { Stroke::Plain };
        self.graph.add_edge(Edge { ends: [from, to], heads, labels, stroke, is_hidden: false })
    }
}

/// Type arguments between tildes become those between angle brackets. A tilde between two names
/// opens them; one without a partner, such as the visibility of a member, stays.
fn generic(source: &str) -> String {
    let is_name = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let mut chars: Vec<char> = source.chars().collect();
    let mut open: Vec<usize> = Vec::new();
    for at in 0..chars.len() {
        if chars[at] != '~' {
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        if is_name(before) && is_name(chars.get(at + 1)) {
            open.push(at);
        } else if let Some(opened) = open.pop() {
            (chars[opened], chars[at]) = ('<', '>');
        }
    }
    chars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tildes_in_pairs_are_type_arguments() {
        for (source, expected) in [
            ("List~int~ ids", "List<int> ids"),
            ("Map~String, List~int~~", "Map<String, List<int>>"),
            ("f(List~List~int~~ a, Set~T~ b) Box~S~", "f(List<List<int>> a, Set<T> b) Box<S>"),
            ("~List~int~ inner()", "~List<int> inner()"),
            ("~close()", "~close()"),
            ("a~b", "a~b"),
        ] {
            assert_eq!(generic(source), expected);
        }
    }
}
