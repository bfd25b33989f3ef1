//! Lines in the gaps between ranks.
//!
//! Steps that begin at the same place, or end there, are one net: a trunk with
//! branches. A net is a branching on one side only, so that every way along its lines is
//! a step. Each net has a track of its own in the gap where it overlaps others.

use std::collections::HashMap;

use super::super::Undrawn;
use super::super::graph::Head;
use super::super::sheet::{NetId, Stroke};
use super::routing::{RoutedNet, routed_nets, tracks};
use super::{Kind, Layout, LineEnd, PlacedEnd, Ranks, Segment, Spacing, Step, to_usize};

/// Steps of a gap that are drawn as one, by index.
#[derive(Debug, Clone)]
pub(super) struct Net {
    pub(super) steps: Vec<usize>,
    /// Whether its lines meet at an upper or a lower vertex; a single step has no branches.
    shares_upper: bool,
    shares_lower: bool,
}

pub(super) fn nets(gap: &[Step]) -> Vec<Net> {
    let group = |steps: &[usize], key: fn(&Step) -> (LineEnd, Stroke)| {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut by_key: HashMap<(LineEnd, Stroke), usize> = HashMap::new();
        for &step in steps {
            let at = *by_key.entry(key(&gap[step])).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(step);
        }
        groups
    };
    let drawn: Vec<usize> = (0..gap.len()).filter(|step| !gap[*step].is_hidden).collect();
    let (mut nets, mut single) = (Vec::new(), Vec::new());
    for steps in group(&drawn, |step| (step.upper, step.stroke)) {
        match steps.as_slice() {
            [step] => single.push(*step),
            _ => nets.push(Net { steps, shares_upper: true, shares_lower: false }),
        }
    }
    for steps in group(&single, |step| (step.lower, step.stroke)) {
        let shares_lower = steps.len() > 1;
        nets.push(Net { steps, shares_upper: false, shares_lower });
    }
    nets
}

impl Net {
    /// The vertices above or below, each once unless its lines do not meet there.
    pub(super) fn ends(&self, gap: &[Step], is_upper: bool) -> Vec<LineEnd> {
        let line_ends =
            self.steps.iter().map(|&step| if is_upper { gap[step].upper } else { gap[step].lower });
        let is_shared = if is_upper { self.shares_upper } else { self.shares_lower };
        if is_shared { line_ends.take(1).collect() } else { line_ends.collect() }
    }
}

/// Makes items wide enough for their lines.
pub(super) fn grow(ranks: &mut Ranks, spacing: Spacing) {
    for is_upper in [true, false] {
        for (gap, nets) in ranks.gaps.iter().zip(&ranks.nets) {
            let mut n_ports: HashMap<usize, usize> = HashMap::new();
            for line_end in nets.iter().flat_map(|net| net.ends(gap, is_upper)) {
                *n_ports.entry(line_end.item).or_default() += 1;
            }
            for (vertex, n_ports) in n_ports {
                let vertex = &mut ranks.vertices[vertex];
                if !vertex.has_ports && n_ports > 1 {
                    vertex.cross = vertex.cross.max((n_ports - 1) * spacing.ports + 3);
                }
            }
        }
    }
}

/// Finds the ports, the tracks and with them the depth of everything.
pub(super) fn route(
    ranks: &mut Ranks,
    n_items: usize,
    n_links: usize,
    spacing: Spacing,
) -> Result<Layout, Undrawn> {
    let mut gaps: Vec<Gap> = Vec::new();
    for gap in 0..ranks.gaps.len() {
        // Lines that would lie on each other part when the rank below moves.
        const NUDGES: [i64; 12] = [0, 1, 1, 1, 1, 2, 3, 5, 8, 13, 21, 34];
        let found = NUDGES.iter().find_map(|nudge| {
            for &vertex in &ranks.order[gap + 1] {
                ranks.vertices[vertex].center += nudge;
            }
            let routed = routed_nets(ranks, gap, spacing);
            tracks(&routed).map(|tracks| Gap::new(routed, tracks, spacing))
        });
        gaps.push(found.ok_or(Undrawn::TooLarge)?);
    }
    let mut drawing = Drawing::default();
    drawing.layout.labels = vec![None; n_links];
    drawing.layout.items = vec![((0, 0), (0, 0)); n_items];
    drawing.spans = vec![(0, 0); ranks.vertices.len()];
    let mut top = 0;
    for (rank, order) in ranks.order.iter().enumerate() {
        let depth = order.iter().map(|&vertex| ranks.vertices[vertex].depth).max().unwrap_or(0);
        order.iter().for_each(|&vertex| drawing.vertex(ranks, vertex, top, depth));
        top += depth + gaps.get(rank).map_or(0, |gap| gap.depth);
    }
    drawing.layout.size.1 = top;
    let mut top = 0;
    for (rank, gap) in gaps.iter().enumerate() {
        let depth = ranks.order[rank].iter().map(|&vertex| ranks.vertices[vertex].depth).max();
        top += depth.unwrap_or(0);
        for (routed_net, track) in gap.routed.iter().zip(&gap.tracks) {
            drawing.net(routed_net, top + gap.lead + track * spacing.tracks);
        }
        top += gap.depth;
    }
    Ok(drawing.layout)
}

/// The lines between two ranks.
#[derive(Debug)]
struct Gap {
    routed: Vec<RoutedNet>,
    tracks: Vec<usize>,
    /// Cells before the first track.
    lead: usize,
    depth: usize,
}

impl Gap {
    fn new(routed: Vec<RoutedNet>, tracks: Vec<usize>, spacing: Spacing) -> Self {
        let has_head = |line_ends: fn(&RoutedNet) -> &[(i64, LineEnd)]| {
            routed.iter().flat_map(line_ends).any(|(_, line_end)| line_end.head != Head::None)
        };
        let last = routed
            .iter()
            .zip(&tracks)
            .filter(|(routed_net, _)| !routed_net.is_straight())
            .map(|(_, at)| *at)
            .max();
        let lead = spacing.margin + usize::from(has_head(|routed_net| &routed_net.uppers));
        let trail =
            usize::from(has_head(|routed_net| &routed_net.lowers)) + last.map_or(0, |_| spacing.margin);
        // A head alone does not show the stroke of its line.
        let needs_line = routed.iter().any(|routed_net| routed_net.stroke != Stroke::Plain);
        let lines = last.map_or(usize::from(needs_line), |last| last * spacing.tracks + 1);
        Self { routed, tracks, lead, depth: (lead + lines + trail).max(spacing.margin + 1) }
    }
}

/// The layout that comes into being.
#[derive(Debug, Default)]
struct Drawing {
    layout: Layout,
    net: NetId,
    /// Per vertex: where it begins, and the first cell after it.
    spans: Vec<(usize, usize)>,
}

impl Drawing {
    fn vertex(&mut self, ranks: &Ranks, vertex_idx: usize, rank_top: usize, rank_depth: usize) {
        let vertex = &ranks.vertices[vertex_idx];
        let cross = to_usize(vertex.start());
        let top = rank_top + (rank_depth - vertex.depth) / 2;
        self.spans[vertex_idx] = (top, top + vertex.depth);
        match vertex.kind {
            Kind::Item(item) => self.layout.items[item] = ((cross, top), (vertex.cross, vertex.depth)),
            Kind::Label(link) => self.layout.labels[link] = Some((cross, top)),
            Kind::Dummy(stroke) => {
                self.spans[vertex_idx] = (rank_top, rank_top + rank_depth);
                let (from, to) = ((cross, rank_top), (cross, rank_top + rank_depth.saturating_sub(1)));
                if let Some(stroke) = stroke {
                    self.net += 1;
                    let net = self.net;
                    let (is_deep, continues) = (true, [true; 2]);
                    self.layout.segments.push(Segment { from, to, is_deep, continues, stroke, net });
                }
            }
        }
        self.layout.size.0 = self.layout.size.0.max(cross + vertex.cross + vertex.after);
    }

    fn net(&mut self, routed_net: &RoutedNet, track: usize) {
        self.net += 1;
        let (stroke, net) = (routed_net.stroke, self.net);
        let is_straight = routed_net.is_straight();
        let (first, last) = routed_net.span();
        if !is_straight {
            let (from, to) = ((to_usize(first), track), (to_usize(last), track));
            let (is_deep, continues) = (false, [false; 2]);
            self.layout.segments.push(Segment { from, to, is_deep, continues, stroke, net });
        }
        let upper_end = |line_end: &LineEnd| self.spans[line_end.item].1;
        let lower_end = |line_end: &LineEnd| self.spans[line_end.item].0.saturating_sub(1);
        let mut segments = Vec::new();
        let mut line_ends = Vec::new();
        let placed_end = |at: (usize, usize), line_end: &LineEnd, is_lower: bool| PlacedEnd {
            at,
            head: line_end.head,
            is_lower,
            passes: line_end.passes,
        };
        let mut add = |column: usize, from: usize, to: usize, continues: [bool; 2]| {
            let (from, to) = ((column, from), (column, to));
            segments.push(Segment { from, to, is_deep: true, continues, stroke, net });
        };
        let continues = |line_end: &LineEnd| line_end.head == Head::None;
        for (column, line_end) in &routed_net.uppers {
            let (column, top) = (to_usize(*column), upper_end(line_end));
            line_ends.push(placed_end((column, top), line_end, false));
            let below = routed_net.lowers.first().filter(|_| is_straight);
            let end = below.map_or(track, |(_, lower)| lower_end(lower));
            add(column, top, end, [continues(line_end), below.is_some_and(|(_, lower)| continues(lower))]);
        }
        for (column, line_end) in &routed_net.lowers {
            let (column, end) = (to_usize(*column), lower_end(line_end));
            line_ends.push(placed_end((column, end), line_end, true));
            if !is_straight {
                add(column, track, end, [false, continues(line_end)]);
            }
        }
        self.layout.segments.extend(segments);
        self.layout.line_ends.extend(line_ends);
    }
}
