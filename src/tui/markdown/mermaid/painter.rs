//! Puts a graph that is laid out on a sheet.

use std::collections::HashMap;

use super::super::super::text::width;
use super::graph::{Flow, Head};
use super::layered::{Pin, Segment};
use super::picture::{Block, Part, Picture, PortAt};
use super::sheet::{BORDER, Dir, Ink, NetId, Sheet, Stroke};

/// Draws blocks at their places.
pub(super) struct Painter<'a> {
    picture: Picture<'a>,
    /// The depth of the whole drawing, which may be mirrored.
    total: usize,
    net: NetId,
    sheet: &'a mut Sheet,
}

impl<'a> Painter<'a> {
    pub(super) fn new(picture: Picture<'a>, total: usize, sheet: &'a mut Sheet) -> Self {
        Self { picture, total, net: BORDER, sheet }
    }

    fn is_mirrored(&self) -> bool {
        matches!(self.picture.flow, Flow::Up | Flow::Left)
    }

    /// Column and row of what is at `at` with this size.
    fn spot(&self, (cross, depth): (usize, usize), size: (usize, usize)) -> (usize, usize) {
        let depth = if self.is_mirrored() { self.total.saturating_sub(depth + size.1) } else { depth };
        self.picture.on_screen((cross, depth))
    }

    /// A line from one place to another.
    fn segment(&mut self, segment: &Segment, net: NetId) {
        let is_horizontal = segment.is_deep == self.picture.flow.is_sideways();
        let (from, to) = (self.spot(segment.from, (1, 1)), self.spot(segment.to, (1, 1)));
        let (first, last) = (from.min(to), from.max(to));
        let steps = if is_horizontal { last.0 - first.0 } else { last.1 - first.1 };
        let [before, after] = segment.continues;
        let is_turned = segment.is_deep && self.is_mirrored();
        let continues = if is_turned { [after, before] } else { [before, after] };
        self.sheet.line(first, steps, is_horizontal, continues, segment.stroke, net);
    }

    /// The direction to the next rank, or back.
    fn dir(&self, is_onward: bool) -> Dir {
        match (self.picture.flow, is_onward) {
            (Flow::Down, true) | (Flow::Up, false) => Dir::Down,
            (Flow::Down, false) | (Flow::Up, true) => Dir::Up,
            (Flow::Right, true) | (Flow::Left, false) => Dir::Right,
            (Flow::Right, false) | (Flow::Left, true) => Dir::Left,
        }
    }

    fn next_net(&mut self) -> NetId {
        self.net += 1;
        self.net
    }

    pub(super) fn block(&mut self, block: &Block, at: (usize, usize)) {
        let origin = Origin { frame: at, inner: (at.0 + block.pad.0, at.1 + block.pad.1) };
        self.frame(block, origin);
        self.segments(block, origin);
        self.parts(block, origin);
        self.labels(block, origin);
        self.line_ends(block, origin);
    }

    fn frame(&mut self, block: &Block, origin: Origin) {
        let Some(title) = &block.title else { return };
        let (x, y) = self.spot(origin.frame, block.size);
        self.sheet.frame((x, y), self.picture.on_screen(block.size), Stroke::Plain);
        for (line_idx, line) in title.iter().enumerate() {
            self.sheet.text(x + 2, y + line_idx, &format!(" {line} "), Ink::Label);
        }
    }

    fn segments(&mut self, block: &Block, origin: Origin) {
        let mut nets: HashMap<NetId, NetId> = HashMap::new();
        for segment in &block.layout.segments {
            let net = *nets.entry(segment.net).or_insert_with(|| self.next_net());
            let placed = Segment { from: origin.of(segment.from), to: origin.of(segment.to), ..*segment };
            self.segment(&placed, net);
        }
    }

    fn parts(&mut self, block: &Block, origin: Origin) {
        for (part, &(place, size)) in block.parts.iter().zip(&block.layout.items) {
            match part {
                Part::Node(node_box) => {
                    let (spot, size) = (self.spot(origin.of(place), size), self.picture.on_screen(size));
                    let net = self.next_net();
                    node_box.paint(self.sheet, spot, size);
                    node_box.paint_self_loop(self.sheet, spot, size, self.picture.flow, net);
                }
                Part::Group(inner) => self.block(inner, origin.of(place)),
                Part::Port(port) => self.port(*port, origin, place, block.size.1),
            }
        }
    }

    /// A line through the frame: from the cell outside of it to the first one inside.
    fn port(&mut self, port: PortAt, origin: Origin, place: (usize, usize), frame_depth: usize) {
        if !port.passes {
            return;
        }
        let (cross, depth) = origin.of(place);
        let (from, to) = match port.pin {
            Pin::Last => (depth.saturating_sub(1), origin.frame.1 + frame_depth),
            Pin::First | Pin::Free => (origin.frame.1.saturating_sub(1), depth),
        };
        let (from, to, net) = ((cross, from), (cross, to), self.next_net());
        let (is_deep, continues, stroke) = (true, [false; 2], port.stroke);
        self.segment(&Segment { from, to, is_deep, continues, stroke, net }, net);
    }

    fn labels(&mut self, block: &Block, origin: Origin) {
        let is_sideways = self.picture.flow.is_sideways();
        for (lines, place) in block.labels.iter().zip(&block.layout.labels) {
            let Some((place, size)) = place.zip(self.picture.label_size(lines)) else { continue };
            let (x, y) = self.spot(origin.of(place), size);
            let (w, _) = self.picture.on_screen(size);
            for (line_idx, line) in lines.iter().enumerate() {
                let line = if is_sideways { format!(" {line} ") } else { line.clone() };
                // Each line covers the cell of the line that it interrupts.
                let indent = w.saturating_sub(width(&line)).div_ceil(2);
                self.sheet.text(x + indent, y + line_idx, &line, Ink::Label);
            }
        }
    }

    fn line_ends(&mut self, block: &Block, origin: Origin) {
        for line_end in &block.layout.line_ends {
            let (x, y) = self.spot(origin.of(line_end.at), (1, 1));
            let to_item = self.dir(line_end.is_lower);
            if let Some(glyph) = glyph(line_end.head, to_item) {
                self.sheet.text(x, y, glyph, Ink::Line);
            } else if !line_end.passes {
                let (dx, dy) = to_item.step();
                let (x, y) = (x.saturating_add_signed(dx), y.saturating_add_signed(dy));
                self.sheet.join(x, y, self.dir(!line_end.is_lower), Stroke::Plain, BORDER);
            }
        }
    }
}

/// Where a block is drawn.
#[derive(Debug, Clone, Copy)]
struct Origin {
    /// Its frame, if it has one.
    frame: (usize, usize),
    /// Its layout.
    inner: (usize, usize),
}

impl Origin {
    /// A position in the layout.
    fn of(self, (cross, depth): (usize, usize)) -> (usize, usize) {
        (self.inner.0 + cross, self.inner.1 + depth)
    }
}

/// The head of a line; `None` if it has none.
fn glyph(head: Head, dir: Dir) -> Option<&'static str> {
    let [up, down, left, right] = match head {
        Head::None => return None,
        Head::Arrow => ["▲", "▼", "◄", "►"],
        Head::Triangle => ["△", "▽", "◁", "▷"],
        Head::Circle => ["o"; 4],
        Head::Cross => ["×"; 4],
        Head::Diamond => ["◆"; 4],
        Head::Hollow => ["◇"; 4],
    };
    Some(match dir {
        Dir::Up => up,
        Dir::Down => down,
        Dir::Left => left,
        Dir::Right => right,
    })
}
