//! The model of all diagrams that are nodes and lines between them.

use std::collections::HashMap;

use super::sheet::Stroke;
use super::{Undrawn, label};

/// Larger graphs cannot be read in a terminal, and would take long to lay out.
pub(super) const MAX_NODES: usize = 80;
pub(super) const MAX_EDGES: usize = 120;
const MAX_GROUPS: usize = 30;
/// Levels of groups in groups.
const MAX_NESTING: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Down,
    Up,
    Right,
    Left,
}

impl Flow {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "TD" | "TB" => Some(Self::Down),
            "BT" => Some(Self::Up),
            "LR" => Some(Self::Right),
            "RL" => Some(Self::Left),
            _ => None,
        }
    }

    pub(super) fn is_sideways(self) -> bool {
        matches!(self, Self::Right | Self::Left)
    }

    /// The same sense along the other axis.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::Down => Self::Right,
            Self::Up => Self::Left,
            Self::Right => Self::Down,
            Self::Left => Self::Up,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Shape {
    #[default]
    Box,
    Round,
    Stadium,
    Diamond,
    Hexagon,
    Cylinder,
    Subroutine,
    Flag,
    Slanted,
    Double,
    /// The start of a state diagram.
    Start,
    End,
    /// A fork or join.
    Bar,
    Note,
}

/// What a line ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Head {
    #[default]
    None,
    Arrow,
    Circle,
    Cross,
    Triangle,
    Diamond,
    Hollow,
}

pub(super) type NodeIdx = usize;
pub(super) type GroupIdx = usize;
/// The group that contains all others.
pub(super) const ROOT: GroupIdx = 0;

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// Compartments, with lines between them; the first is the name.
    pub(super) sections: Vec<String>,
    pub(super) shape: Shape,
    pub(super) group: GroupIdx,
}

impl Node {
    /// The title of the group that this node becomes: `title`, or the text that the node had
    /// before. An error if they differ, because a group shows one.
    fn title_as_group(&self, name: &str, title: String) -> Result<String, Undrawn> {
        match self.sections.as_slice() {
            [own] if own == name || *own == title => Ok(title),
            [own] if title == name && !own.is_empty() => Ok(own.replace('\n', " ")),
            _ => Err(Undrawn::Syntax),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    Node(NodeIdx),
    Group(GroupIdx),
}

#[derive(Debug, Clone)]
pub(super) struct Edge {
    pub(super) ends: [End; 2],
    pub(super) heads: [Head; 2],
    /// Texts near the first end, in the middle and near the second end.
    pub(super) labels: [String; 3],
    pub(super) stroke: Stroke,
    /// Orders its ends without being drawn.
    pub(super) is_hidden: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) parent: GroupIdx,
    depth: usize,
}

#[derive(Debug)]
pub(super) struct Graph {
    pub(super) flow: Flow,
    pub(super) nodes: Vec<Node>,
    pub(super) groups: Vec<Group>,
    pub(super) edges: Vec<Edge>,
    names: HashMap<String, End>,
}

impl Graph {
    pub(super) fn new(flow: Flow) -> Self {
        let groups = vec![Group::default()];
        Self { flow, nodes: Vec::new(), groups, edges: Vec::new(), names: HashMap::new() }
    }

    pub(super) fn find(&self, name: &str) -> Option<End> {
        self.names.get(name).copied()
    }

    /// The node of this name, which is made in `group` if there is none.
    pub(super) fn node(&mut self, name: &str, group: GroupIdx) -> Result<End, Undrawn> {
        if let Some(end) = self.find(name) {
            return Ok(end);
        }
        let title = label::plain(name).ok_or(Undrawn::TooLarge)?;
        let node = self.add_node(Node { sections: vec![title], shape: Shape::Box, group })?;
        self.names.insert(name.to_owned(), End::Node(node));
        Ok(End::Node(node))
    }

    pub(super) fn add_node(&mut self, node: Node) -> Result<NodeIdx, Undrawn> {
        if self.nodes.len() == MAX_NODES {
            return Err(Undrawn::TooLarge);
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    pub(super) fn node_mut(&mut self, end: End) -> Option<&mut Node> {
        match end {
            End::Node(node) => self.nodes.get_mut(node),
            End::Group(_) => None,
        }
    }

    /// A group in another. A node of that name, which an edge created before, becomes the group.
    pub(super) fn add_group(
        &mut self,
        name: &str,
        title: &str,
        parent: GroupIdx,
    ) -> Result<GroupIdx, Undrawn> {
        let depth = self.groups[parent].depth + 1;
        if self.groups.len() > MAX_GROUPS || depth > MAX_NESTING {
            return Err(Undrawn::TooLarge);
        }
        let title = label::plain(title).ok_or(Undrawn::TooLarge)?.replace('\n', " ");
        let title = match self.names.get(name) {
            Some(End::Node(node)) => self.nodes[*node].title_as_group(name, title)?,
            Some(End::Group(_)) => return Err(Undrawn::Syntax),
            None => title,
        };
        self.groups.push(Group { title, parent, depth });
        let group = self.groups.len() - 1;
        if let Some(End::Node(node)) = self.names.insert(name.to_owned(), End::Group(group)) {
            self.replace(node, group);
        }
        Ok(group)
    }

    /// Removes a node that turned out to be a group; its edges lead to the group.
    fn replace(&mut self, node: NodeIdx, group: GroupIdx) {
        for end in self.edges.iter_mut().flat_map(|edge| &mut edge.ends) {
            match end {
                End::Node(at) if *at == node => *end = End::Group(group),
                End::Node(at) if *at > node => *at -= 1,
                End::Node(_) | End::Group(_) => {}
            }
        }
        for end in self.names.values_mut() {
            match end {
                End::Node(at) if *at > node => *at -= 1,
                End::Node(_) | End::Group(_) => {}
            }
        }
        self.nodes.remove(node);
    }

    pub(super) fn add_edge(&mut self, edge: Edge) -> Result<(), Undrawn> {
        if self.edges.len() == MAX_EDGES {
            return Err(Undrawn::TooLarge);
        }
        self.edges.push(edge);
        Ok(())
    }

    /// The parts of a group's path from below the root to itself.
    pub(super) fn path(&self, mut group: GroupIdx) -> Vec<GroupIdx> {
        let mut path = Vec::new();
        while group != ROOT && path.len() <= MAX_NESTING {
            path.push(group);
            group = self.groups[group].parent;
        }
        path.reverse();
        path
    }
}

/// Whether this can be a name, except in flowcharts, where more can.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c) || !c.is_ascii())
}

/// The groups that a parser is inside of; the last is the innermost.
#[derive(Debug)]
pub(super) struct GroupStack(Vec<GroupIdx>);

impl GroupStack {
    pub(super) fn new() -> Self {
        Self(vec![ROOT])
    }

    pub(super) fn innermost(&self) -> GroupIdx {
        self.0.last().copied().unwrap_or(ROOT)
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    pub(super) fn open(&mut self, group: GroupIdx) {
        self.0.push(group);
    }

    /// Returns to the group around the innermost one; an error if there is none.
    pub(super) fn close(&mut self) -> Result<(), Undrawn> {
        if self.is_root() {
            return Err(Undrawn::Syntax);
        }
        self.0.pop();
        Ok(())
    }
}

/// A line between two nodes without a text.
pub(super) fn plain_edge(from: End, to: End, heads: [Head; 2], stroke: Stroke) -> Edge {
    Edge { ends: [from, to], heads, labels: Default::default(), stroke, is_hidden: false }
}
