//! Puts a graph that is laid out on a sheet.

use super::super::super::text::width;
use super::graph::{Flow, Head};
use super::layered::{Pin, Segment};
use super::picture::{Block, Part, Picture};
use super::sheet::{BORDER, Dir, Ink, Net, Sheet, Stroke};

/// Draws blocks at their places.
pub(super) struct Painter<'a> {
    picture: Picture<'a>,
    /// The depth of the whole drawing, which may be mirrored.
    total: usize,
    net: Net,
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
    fn segment(&mut self, segment: &Segment, net: Net) {
        let is_horizontal = segment.is_deep == self.picture.flow.is_sideways();
        let (from, to) = (self.spot(segment.from, (1, 1)), self.spot(segment.to, (1, 1)));
        let (first, last) = (from.min(to), from.max(to));
        let steps = if is_horizontal { last.0 - first.0 } else { last.1 - first.1 };
        let [before, after] = segment.goes_on;
        let is_turned = segment.is_deep && self.is_mirrored();
        let goes_on = if is_turned { [after, before] } else { [before, after] };
        self.sheet.line(first, steps, is_horizontal, goes_on, segment.stroke, net);
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

    pub(super) fn block(&mut self, block: &Block, at: (usize, usize)) {
        if let Some(title) = &block.title {
            let (x, y) = self.spot(at, block.size);
            self.sheet.frame((x, y), self.picture.on_screen(block.size), Stroke::Plain);
            if !title.is_empty() {
                self.sheet.text(x + 2, y, &format!(" {title} "), Ink::Label);
            }
        }
        let inner = (at.0 + block.pad.0, at.1 + block.pad.1);
        let moved = |(cross, depth): (usize, usize)| (inner.0 + cross, inner.1 + depth);
        let first_net = self.net + 1;
        for segment in &block.layout.segments {
            let net = first_net + segment.net;
            self.net = self.net.max(net);
            let placed = Segment { from: moved(segment.from), to: moved(segment.to), ..*segment };
            self.segment(&placed, net);
        }
        for (part, &(place, size)) in block.parts.iter().zip(&block.layout.items) {
            match part {
                Part::Node(drawn) => {
                    let (spot, size) = (self.spot(moved(place), size), self.picture.on_screen(size));
                    drawn.paint(self.sheet, spot, size);
                    self.net += 1;
                    drawn.paint_turn(self.sheet, spot, size, self.picture.flow, self.net);
                }
                Part::Group(inner) => self.block(inner, moved(place)),
                Part::Port(port) if port.passes => {
                    // From the cell outside of the frame to the first one inside.
                    let cross = inner.0 + place.0;
                    let (from, to) = match port.pin {
                        Pin::Last => (inner.1 + place.1.saturating_sub(1), at.1 + block.size.1),
                        _ => (at.1.saturating_sub(1), inner.1 + place.1),
                    };
                    self.net += 1;
                    let (from, to) = ((cross, from), (cross, to));
                    let (is_deep, goes_on, stroke, net) = (true, [false; 2], port.stroke, self.net);
                    self.segment(&Segment { from, to, is_deep, goes_on, stroke, net }, net);
                }
                Part::Port(_) => {}
            }
        }
        for (lines, place) in block.labels.iter().zip(&block.layout.labels) {
            if let (Some(place), Some(size)) = (place, self.picture.label_size(lines)) {
                let (x, y) = self.spot(moved(*place), size);
                let (w, _) = self.picture.on_screen(size);
                let padded = |line: &String| match self.picture.flow.is_sideways() {
                    true => format!(" {line} "),
                    false => line.clone(),
                };
                for (line_idx, line) in lines.iter().map(padded).enumerate() {
                    // Each line covers the cell of the line that it interrupts.
                    let indent = w.saturating_sub(width(&line)).div_ceil(2);
                    self.sheet.text(x + indent, y + line_idx, &line, Ink::Label);
                }
            }
        }
        for tip in &block.layout.tips {
            let (x, y) = self.spot(moved(tip.at), (1, 1));
            let to_item = self.dir(tip.is_lower);
            if tip.head != Head::None {
                self.sheet.text(x, y, glyph(tip.head, to_item), Ink::Line);
                continue;
            }
            if !tip.passes {
                let (dx, dy) = to_item.step();
                let (x, y) = (x.saturating_add_signed(dx), y.saturating_add_signed(dy));
                self.sheet.join(x, y, self.dir(!tip.is_lower), Stroke::Plain, BORDER);
            }
        }
    }
}

fn glyph(head: Head, dir: Dir) -> &'static str {
    let [up, down, left, right] = match head {
        Head::None => ["│", "│", "─", "─"],
        Head::Arrow => ["▲", "▼", "◄", "►"],
        Head::Triangle => ["△", "▽", "◁", "▷"],
        Head::Circle => ["o"; 4],
        Head::Cross => ["×"; 4],
        Head::Diamond => ["◆"; 4],
        Head::Hollow => ["◇"; 4],
    };
    match dir {
        Dir::Up => up,
        Dir::Down => down,
        Dir::Left => left,
        Dir::Right => right,
    }
}
