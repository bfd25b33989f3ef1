//! Draws graphs: lays out groups from the inside out, and puts everything on a sheet.

use std::collections::HashMap;

use super::graph::{Edge, End, Flow, Graph, GroupIdx, Head, ROOT};
use super::layered::{self, Item, Layout, LineEnd, Link, Pin, Spacing};
use super::node::NodeBox;
use super::painter::Painter;
use super::sheet::{DrawnRow, Sheet, Stroke};
use super::{MAX_ROWS, Undrawn, label};

/// Widths of texts that are tried, until the drawing is narrow enough.
const TEXT_WIDTHS: [usize; 3] = [32, 20, 12];

/// The graph in `room` columns. If it is too wide, texts wrap sooner, and at last it flows
/// the other way.
pub(super) fn draw(graph: &Graph, room: usize) -> Result<Vec<DrawnRow>, Undrawn> {
    if graph.nodes.is_empty() {
        return Err(Undrawn::Syntax);
    }
    let mut narrowest: Option<usize> = None;
    let mut failure = None;
    for flow in [graph.flow, graph.flow.turned()] {
        for text_width in TEXT_WIDTHS {
            let picture = Picture { graph, flow, text_width };
            let block = match picture.block(ROOT, &[]) {
                Ok(block) => block,
                // The other flow may have fewer lines side by side.
                Err(reason) => {
                    failure = Some(reason);
                    continue;
                }
            };
            let (columns, rows) = picture.on_screen(block.size);
            if rows > MAX_ROWS {
                continue;
            }
            narrowest = Some(narrowest.map_or(columns, |least| least.min(columns)));
            if columns <= room {
                let mut sheet = Sheet::new(columns, rows);
                Painter::new(picture, block.size.1, &mut sheet).block(&block, (0, 0));
                return Ok(sheet.rows());
            }
        }
    }
    Err(failure.filter(|_| narrowest.is_none()).unwrap_or(Undrawn::of_width(narrowest, room)))
}

#[derive(Clone, Copy)]
pub(super) struct Picture<'a> {
    graph: &'a Graph,
    pub(super) flow: Flow,
    text_width: usize,
}

/// A group, laid out.
#[derive(Debug)]
pub(super) struct Block {
    /// With the frame; (cross, depth) like all sizes here.
    pub(super) size: (usize, usize),
    pub(super) pad: (usize, usize),
    /// The lines of the title; `None` for the whole diagram, which has no frame.
    pub(super) title: Option<Vec<String>>,
    pub(super) layout: Layout,
    pub(super) parts: Vec<Part>,
    /// The texts of the links.
    pub(super) labels: Vec<Vec<String>>,
}

#[derive(Debug)]
pub(super) enum Part {
    Node(NodeBox),
    Group(Block),
    /// Where a line passes the frame, and whether it continues inside.
    Port(PortAt),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PortAt {
    pub(super) pin: Pin,
    pub(super) stroke: Stroke,
    pub(super) passes: bool,
}

/// A line that leaves a group, or ends at its frame.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Port {
    pin: Pin,
    /// Where it leads to inside.
    inner: Option<End>,
    head: Head,
    stroke: Stroke,
}

/// A link of a level: an edge whose ends are in different items.
struct LevelEdge<'a> {
    edge: &'a Edge,
    upper: usize,
    lower: usize,
    is_backward: bool,
}

impl LevelEdge<'_> {
    /// The link from the earlier rank to the later one.
    fn ordered(self, is_backward: bool) -> Self {
        match is_backward {
            true => Self { upper: self.lower, lower: self.upper, is_backward, ..self },
            false => self,
        }
    }

    /// The end of the edge, its head and its item.
    fn end(&self, is_upper: bool) -> (End, Head, usize) {
        let at = usize::from(is_upper == self.is_backward);
        (self.edge.ends[at], self.edge.heads[at], if is_upper { self.upper } else { self.lower })
    }
}

/// The links between the items of a group.
struct GroupLinks {
    links: Vec<Link>,
    /// Their texts.
    labels: Vec<Vec<String>>,
    /// Per item: the lines that pass its frame, if it is a group.
    inner_ports: Vec<Vec<Port>>,
}

impl GroupLinks {
    fn new(n_items: usize) -> Self {
        Self { links: Vec::new(), labels: Vec::new(), inner_ports: vec![Vec::new(); n_items] }
    }

    /// Links for edges between different items.
    fn add_edges(&mut self, picture: Picture<'_>, members: &Members, edges: &[LevelEdge<'_>]) {
        for edge in edges {
            let lines = picture.label(edge);
            let (stroke, is_hidden) = (edge.edge.stroke, edge.edge.is_hidden);
            let upper = self.line_end(members, edge.end(true), Pin::Last, stroke);
            let lower = self.line_end(members, edge.end(false), Pin::First, stroke);
            self.links.push(Link { upper, lower, stroke, label: picture.label_size(&lines), is_hidden });
            self.labels.push(lines);
        }
    }

    /// Links from the ports of the group itself, which follow the members as items.
    fn add_ports(&mut self, graph: &Graph, members: &Members, ports: &[Port]) {
        for (port_idx, port) in ports.iter().enumerate() {
            let inside = port.inner.and_then(|end| Some((end, members.item(graph, end)?)));
            let Some((end, at)) = inside else { continue };
            let item = members.items.len() + port_idx;
            let outer = LineEnd { item, port: None, head: Head::None, passes: true };
            let inner = self.line_end(members, (end, port.head, at), port.pin, port.stroke);
            let (upper, lower) = if port.pin == Pin::First { (outer, inner) } else { (inner, outer) };
            self.links.push(Link { upper, lower, stroke: port.stroke, label: None, is_hidden: false });
            self.labels.push(Vec::new());
        }
    }

    /// The end of a link at an item; if that is a group, the line gets a port there.
    fn line_end(
        &mut self,
        members: &Members,
        (end, head, item): (End, Head, usize),
        pin: Pin,
        stroke: Stroke,
    ) -> LineEnd {
        let End::Group(group) = members.items[item] else {
            return LineEnd { item, port: None, head, passes: false };
        };
        let inner = (end != End::Group(group)).then_some(end);
        let port = Port { pin, inner, head, stroke };
        let ports = &mut self.inner_ports[item];
        // Lines that leave a node together have one port, so that they branch outside.
        let known = ports.iter().position(|known| pin == Pin::Last && *known == port);
        let port_idx = known.unwrap_or_else(|| {
            ports.push(port);
            ports.len() - 1
        });
        let (head, passes) = if inner.is_some() { (Head::None, true) } else { (head, false) };
        LineEnd { item, port: Some(port_idx), head, passes }
    }

    /// The links with the places of their ports, now that the groups inside are laid out.
    fn on_frames(&self, parts: &[Part]) -> Vec<Link> {
        let mut links = self.links.clone();
        for line_end in links.iter_mut().flat_map(|link| [&mut link.upper, &mut link.lower]) {
            line_end.port = match parts.get(line_end.item) {
                Some(Part::Group(block)) => line_end.port.map(|port| block.port(port)),
                Some(Part::Port(_)) => Some(0),
                _ => None,
            };
        }
        links
    }
}

impl<'a> Picture<'a> {
    fn spacing(self) -> Spacing {
        if self.flow.is_sideways() {
            Spacing { boxes: 1, lines: 1, ports: 1, tracks: 2, margin: 1 }
        } else {
            Spacing { boxes: 3, lines: 2, ports: 2, tracks: 1, margin: 0 }
        }
    }

    /// Columns and rows of a size, and the other way.
    pub(super) fn on_screen(self, (cross, depth): (usize, usize)) -> (usize, usize) {
        if self.flow.is_sideways() { (depth, cross) } else { (cross, depth) }
    }

    /// A group with everything in it. Lines of `ports` lead out of it.
    fn block(self, group: GroupIdx, ports: &[Port]) -> Result<Block, Undrawn> {
        let members = Members::of(self.graph, group);
        let (level_edges, self_loops) = self.level_edges(&members)?;
        let pairs: Vec<(usize, usize)> = level_edges.iter().map(|link| (link.upper, link.lower)).collect();
        let ranked = layered::ranks(members.items.len(), &pairs);
        let level_edges: Vec<LevelEdge<'_>> = level_edges
            .into_iter()
            .zip(&ranked.is_backward)
            .map(|(link, back)| link.ordered(*back))
            .collect();
        let mut lines = GroupLinks::new(members.items.len());
        lines.add_edges(self, &members, &level_edges);
        lines.add_ports(self.graph, &members, ports);
        let (items, parts) = self.items(&members, &ranked.ranks, &self_loops, &lines.inner_ports, ports)?;
        let links = lines.on_frames(&parts);
        let layout = layered::layout(&items, &links, self.spacing())?;
        Ok(self.framed(group, layout, parts, lines.labels))
    }

    /// The members and ports of a group as the layout needs them, and as they are drawn.
    fn items(
        self,
        members: &Members,
        ranks: &[usize],
        self_loops: &HashMap<usize, String>,
        inner_ports: &[Vec<Port>],
        ports: &[Port],
    ) -> Result<(Vec<Item>, Vec<Part>), Undrawn> {
        let (mut items, mut parts) = (Vec::new(), Vec::new());
        for (item_idx, end) in members.items.iter().enumerate() {
            let (part, (cross, depth), after) = match *end {
                End::Node(node) => {
                    let self_loop = self_loops.get(&item_idx).cloned();
                    let node_box =
                        NodeBox::new(&self.graph.nodes[node], self.text_width, self_loop, self.flow);
                    let (size, after) = (self.on_screen(node_box.size), node_box.after(self.flow));
                    (Part::Node(node_box), size, after)
                }
                End::Group(inner) => {
                    let block = self.block(inner, &inner_ports[item_idx])?;
                    let size = block.size;
                    (Part::Group(block), size, 0)
                }
            };
            let has_ports = matches!(part, Part::Group(_));
            items.push(Item { cross, depth, after, rank: ranks[item_idx], pin: Pin::Free, has_ports });
            parts.push(part);
        }
        for &Port { pin, inner, stroke, .. } in ports {
            items.push(Item { cross: 1, depth: 0, after: 0, rank: 0, pin, has_ports: true });
            parts.push(Part::Port(PortAt { pin, stroke, passes: inner.is_some() }));
        }
        Ok((items, parts))
    }

    fn framed(self, group: GroupIdx, layout: Layout, parts: Vec<Part>, labels: Vec<Vec<String>>) -> Block {
        if group == ROOT {
            return Block { size: layout.size, pad: (0, 0), title: None, layout, parts, labels };
        }
        let title = label::lines(&self.graph.groups[group].title, self.text_width);
        let least = if title.is_empty() { 0 } else { label::widest(&title) + 6 };
        // The first line is in the edge, the others are below it.
        let more = title.len().saturating_sub(1);
        let (mut pad, size) = if self.flow.is_sideways() {
            ((1, 2), (layout.size.0 + 2 + more, (layout.size.1 + 4).max(least)))
        } else {
            ((2, 1), ((layout.size.0 + 4).max(least), layout.size.1 + 2 + more))
        };
        match self.flow {
            Flow::Down => pad.1 += more,
            Flow::Right | Flow::Left => pad.0 += more,
            // The upper edge is the end of the group.
            Flow::Up => {}
        }
        Block { size, pad, title: Some(title), layout, parts, labels }
    }

    /// The edges between items, in the direction of the edge, and the texts of those that
    /// return to their node.
    fn level_edges(self, members: &Members) -> Result<(Vec<LevelEdge<'a>>, HashMap<usize, String>), Undrawn> {
        let mut level_edges = Vec::new();
        let mut self_loops: HashMap<usize, String> = HashMap::new();
        for edge in &self.graph.edges {
            let [from, to] = edge.ends;
            let (Some(upper), Some(lower)) = (members.item(self.graph, from), members.item(self.graph, to))
            else {
                continue;
            };
            if upper != lower {
                level_edges.push(LevelEdge { edge, upper, lower, is_backward: false });
            } else if from == to && matches!(from, End::Node(_)) {
                let text = edge.labels.join(" ").trim().replace('\n', " ");
                let self_loop = self_loops.entry(upper).or_default();
                if !self_loop.is_empty() && !text.is_empty() {
                    self_loop.push_str(", ");
                }
                self_loop.push_str(&text);
            } else if members.items[upper] == from || members.items[upper] == to {
                // Between a group and what is in it.
                return Err(Undrawn::Syntax);
            }
        }
        Ok((level_edges, self_loops))
    }

    /// The lines of a link's text; those near its ends first and last.
    fn label(self, link: &LevelEdge<'_>) -> Vec<String> {
        let mut texts: Vec<&str> = link.edge.labels.iter().map(String::as_str).collect();
        if link.is_backward != matches!(self.flow, Flow::Up | Flow::Left) {
            texts.reverse();
        }
        texts.retain(|text| !text.is_empty());
        if self.flow.is_sideways() {
            return label::lines(&texts.join(" "), self.text_width);
        }
        texts.iter().flat_map(|text| label::lines(text, self.text_width)).collect()
    }

    pub(super) fn label_size(self, lines: &[String]) -> Option<(usize, usize)> {
        let widest = label::widest(lines);
        if lines.is_empty() {
            None
        } else if self.flow.is_sideways() {
            Some((lines.len(), widest + 2))
        } else {
            Some((widest, lines.len()))
        }
    }
}

impl Block {
    /// Where a line leaves the frame.
    fn port(&self, port: usize) -> usize {
        let first = self.parts.iter().position(|part| matches!(part, Part::Port(_))).unwrap_or(0);
        self.layout.items.get(first + port).map_or(0, |((cross, _), _)| cross + self.pad.0)
    }
}

/// The nodes and groups directly in a group.
struct Members {
    group: GroupIdx,
    items: Vec<End>,
    index: HashMap<End, usize>,
}

impl Members {
    fn of(graph: &Graph, group: GroupIdx) -> Self {
        let nodes = (0..graph.nodes.len()).filter(|node| graph.nodes[*node].group == group).map(End::Node);
        let groups = (1..graph.groups.len()).filter(|inner| graph.groups[*inner].parent == group);
        let items: Vec<End> = nodes.chain(groups.map(End::Group)).collect();
        let index = items.iter().enumerate().map(|(at, end)| (*end, at)).collect();
        Self { group, items, index }
    }

    /// The item that is this end, or that contains it.
    fn item(&self, graph: &Graph, end: End) -> Option<usize> {
        if let Some(&item) = self.index.get(&end) {
            return Some(item);
        }
        let inside = match end {
            End::Node(node) => graph.nodes.get(node)?.group,
            End::Group(group) => group,
        };
        let path = graph.path(inside);
        let below = path.iter().find(|part| graph.groups[**part].parent == self.group)?;
        self.index.get(&End::Group(*below)).copied()
    }
}
