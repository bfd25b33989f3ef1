//! Lays out a graph in ranks, one after the other in the direction of its lines.
//!
//! The steps are those of Sugiyama and others: [`rank`] orders the items, lines that
//! pass a rank get a place in it, [`order`] avoids crossings, [`place`] puts lines
//! straight, and [`route`] gives each line a way through the gaps between ranks.
//!
//! Positions are pairs of `cross`, along a rank, and `depth`, from rank to rank. Which of
//! them is a column is the caller's choice.

mod order;
mod place;
mod rank;
mod route;
mod routing;

pub(super) use rank::ranks;

use super::Undrawn;
use super::graph::Head;
use super::sheet::{NetId, Stroke};

/// Items and the places of lines in all ranks.
const MAX_VERTICES: usize = 400;

/// Cells between what is side by side, and the room for lines between ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    /// Between boxes, and between a line and anything else.
    pub(super) boxes: usize,
    pub(super) lines: usize,
    /// From one line to the next at the edge of a box.
    pub(super) ports: usize,
    /// From one line to the next in the gap between ranks.
    pub(super) tracks: usize,
    /// Before and after the lines in a gap.
    pub(super) margin: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pin {
    Free,
    First,
    Last,
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) cross: usize,
    pub(super) depth: usize,
    /// Cells kept free behind it in its rank.
    pub(super) after: usize,
    pub(super) rank: usize,
    pub(super) pin: Pin,
    /// Whether its links have ports; others get theirs here, and the item grows for them.
    pub(super) has_ports: bool,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LineEnd {
    pub(super) item: usize,
    /// Where a line leaves an item that has ports.
    pub(super) port: Option<usize>,
    pub(super) head: Head,
    /// Whether the line continues inside of the item.
    pub(super) passes: bool,
}

/// A link from an item to one of a later rank.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) upper: LineEnd,
    pub(super) lower: LineEnd,
    pub(super) stroke: Stroke,
    /// The size of its text.
    pub(super) label: Option<(usize, usize)>,
    pub(super) is_hidden: bool,
}

/// A straight line; `from` is not behind `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    /// Whether it leads from rank to rank.
    pub(super) is_deep: bool,
    /// Whether it continues before its first cell and after its last.
    pub(super) continues: [bool; 2],
    pub(super) stroke: Stroke,
    pub(super) net: NetId,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedEnd {
    pub(super) at: (usize, usize),
    pub(super) head: Head,
    /// Whether it points to the next rank.
    pub(super) is_lower: bool,
    /// See [`LineEnd::passes`].
    pub(super) passes: bool,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) size: (usize, usize),
    /// Position and size of the items.
    pub(super) items: Vec<((usize, usize), (usize, usize))>,
    /// Positions of the texts of links.
    pub(super) labels: Vec<Option<(usize, usize)>>,
    pub(super) segments: Vec<Segment>,
    /// Where lines end at an item; the cell beyond belongs to the item.
    pub(super) line_ends: Vec<PlacedEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Item(usize),
    /// Where a link passes a rank, with its stroke; `None` if it is hidden.
    Dummy(Option<Stroke>),
    Label(usize),
}

/// What has a place in a rank.
#[derive(Debug, Clone)]
struct Vertex {
    kind: Kind,
    cross: usize,
    depth: usize,
    after: usize,
    has_ports: bool,
    rank: usize,
    /// The cell of its middle, once it is placed.
    center: i64,
}

impl Vertex {
    fn before_center(&self) -> i64 {
        to_i64(self.cross / 2)
    }

    fn start(&self) -> i64 {
        self.center - self.before_center()
    }

    fn is_line(&self) -> bool {
        !matches!(self.kind, Kind::Item(_))
    }
}

/// The part of a link between two ranks that follow each other.
#[derive(Debug, Clone, Copy)]
struct Step {
    upper: LineEnd,
    lower: LineEnd,
    stroke: Stroke,
    is_hidden: bool,
}

/// All ranks with their vertices in order, and the steps below each rank.
#[derive(Debug, Default)]
struct Ranks {
    vertices: Vec<Vertex>,
    order: Vec<Vec<usize>>,
    /// Line ends of steps name vertices.
    gaps: Vec<Vec<Step>>,
    /// Per gap: the steps that are drawn as one.
    nets: Vec<Vec<route::Net>>,
}

pub(super) fn layout(items: &[Item], links: &[Link], spacing: Spacing) -> Result<Layout, Undrawn> {
    let mut ranks = build(items, links)?;
    ranks.order = order::order(&ranks);
    ranks.nets = ranks.gaps.iter().map(|gap| route::nets(gap)).collect();
    route::grow(&mut ranks, spacing);
    place::place(&mut ranks, spacing);
    route::route(&mut ranks, items.len(), links.len(), spacing)
}

fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn to_usize(n: i64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// Makes room between ranks for texts, and a vertex for each rank that a link passes.
fn build(items: &[Item], links: &[Link]) -> Result<Ranks, Undrawn> {
    let last = items.iter().filter(|item| item.pin == Pin::Free).map(|item| item.rank).max().unwrap_or(0);
    // Even numbers are ranks of items, odd ones those of texts below them.
    let slot = |item: &Item| match item.pin {
        Pin::First => 0,
        Pin::Free => 2 * item.rank + 2,
        Pin::Last => 2 * last + 4,
    };
    let label_slot = |link: &Link| slot(&items[link.upper.item]) + 1;
    let mut used: Vec<usize> = items.iter().map(slot).collect();
    used.extend(links.iter().filter(|link| link.label.is_some()).map(label_slot));
    used.sort_unstable();
    used.dedup();
    let rank_of = |slot: usize| used.binary_search(&slot).unwrap_or(0);

    let mut ranks = Ranks { gaps: vec![Vec::new(); used.len().saturating_sub(1)], ..Ranks::default() };
    for (item_idx, item) in items.iter().enumerate() {
        ranks.vertices.push(Vertex {
            kind: Kind::Item(item_idx),
            cross: item.cross,
            depth: item.depth,
            after: item.after,
            has_ports: item.has_ports,
            rank: rank_of(slot(item)),
            center: 0,
        });
    }
    for (link_idx, link) in links.iter().enumerate() {
        let (first, last) = (ranks.vertices[link.upper.item].rank, ranks.vertices[link.lower.item].rank);
        let label = link.label.map(|size| (rank_of(label_slot(link)), size));
        let mut upper = link.upper;
        for rank in first + 1..last {
            let (kind, (cross, depth)) = match label {
                Some((at, size)) if at == rank => (Kind::Label(link_idx), size),
                _ => (Kind::Dummy((!link.is_hidden).then_some(link.stroke)), (1, 1)),
            };
            let (after, has_ports, center) = (0, false, 0);
            ranks.vertices.push(Vertex { kind, cross, depth, after, has_ports, rank, center });
            let passed =
                LineEnd { item: ranks.vertices.len() - 1, port: None, head: Head::None, passes: true };
            let Link { stroke, is_hidden, .. } = *link;
            ranks.gaps[rank - 1].push(Step { upper, lower: passed, stroke, is_hidden });
            upper = passed;
        }
        if let Some(gap) = last.checked_sub(1).and_then(|gap| ranks.gaps.get_mut(gap)) {
            let Link { lower, stroke, is_hidden, .. } = *link;
            gap.push(Step { upper, lower, stroke, is_hidden });
        }
        if ranks.vertices.len() > MAX_VERTICES {
            return Err(Undrawn::TooLarge);
        }
    }
    Ok(ranks)
}
