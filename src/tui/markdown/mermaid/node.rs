//! The nodes of graphs as boxes of several shapes.

use super::super::super::text::width;
use super::graph::{Flow, Node, Shape};
use super::label::{self, widest};
use super::sheet::{BORDER, Dir, Ink, NetId, Sheet, Stroke};

/// A node with its size in columns and rows, as if nothing led to it.
#[derive(Debug)]
pub(super) struct NodeBox {
    shape: Shape,
    flow: Flow,
    sections: Vec<Vec<String>>,
    /// The text of a line from the node to itself.
    self_loop: Option<String>,
    pub(super) size: (usize, usize),
}

/// Columns of a line that returns to its node, and of a blank.
const SELF_LOOP_COLUMNS: usize = 3;
/// Rows of the same below a node.
const SELF_LOOP_ROWS: usize = 2;

impl NodeBox {
    pub(super) fn new(node: &Node, text_width: usize, self_loop: Option<String>, flow: Flow) -> Self {
        let mut sections: Vec<Vec<String>> =
            node.sections.iter().map(|section| label::lines(section, text_width)).collect();
        sections.retain(|lines| !lines.is_empty());
        if sections.is_empty() {
            sections.push(vec![String::new()]);
        }
        let n_lines: usize = sections.iter().map(Vec::len).sum();
        let text = sections.iter().map(|lines| widest(lines)).max().unwrap_or(0);
        let mut size = (text.max(1) + 4, n_lines + sections.len() + 1);
        match node.shape {
            Shape::Start | Shape::End => size = (1, 1),
            Shape::Bar => size = if flow.is_sideways() { (1, 3) } else { (7, 1) },
            Shape::Cylinder => size.1 += 1,
            Shape::Double | Shape::Subroutine => size.0 += 2,
            _ => {}
        }
        if let Some(self_loop) = &self_loop {
            size = match flow.is_sideways() {
                true => (size.0.max(7 + width(self_loop)), size.1),
                false => (size.0, size.1.max(4)),
            };
        }
        Self { shape: node.shape, flow, sections, self_loop, size }
    }

    /// Cells behind the node for the line to itself.
    pub(super) fn after(&self, flow: Flow) -> usize {
        let Some(self_loop) = &self.self_loop else { return 0 };
        let label = width(self_loop);
        if flow.is_sideways() { SELF_LOOP_ROWS } else { SELF_LOOP_COLUMNS + label + usize::from(label > 0) }
    }

    pub(super) fn paint(&self, sheet: &mut Sheet, (x, y): (usize, usize), (w, h): (usize, usize)) {
        let (right, bottom) = (x + w.saturating_sub(1), y + h.saturating_sub(1));
        match self.shape {
            Shape::Start => return sheet.text(x + w / 2, y + h / 2, "●", Ink::Line),
            Shape::End => return sheet.text(x + w / 2, y + h / 2, "◉", Ink::Line),
            // With a line to itself it is wide and high, and other lines lead to all its sides.
            Shape::Bar if self.self_loop.is_some() => {
                return sheet.rect((x, y), (w, h), Stroke::Thick, false);
            }
            Shape::Bar if self.flow.is_sideways() => {
                return (y..=bottom).for_each(|row| sheet.text(x, row, "┃", Ink::Line));
            }
            Shape::Bar => return sheet.text(x, y, &"━".repeat(w), Ink::Line),
            _ => {}
        }
        let is_round = matches!(self.shape, Shape::Round | Shape::Stadium | Shape::Cylinder | Shape::Double);
        sheet.rect((x, y), (w, h), Stroke::Plain, is_round);
        let is_cylinder = self.shape == Shape::Cylinder;
        if is_cylinder {
            self.rule(sheet, x, y + 1, right);
        }
        let corners = match self.shape {
            Shape::Diamond | Shape::Hexagon => ["╱", "╲", "╲", "╱"],
            Shape::Slanted => ["╱", "╱", "╱", "╱"],
            _ => [""; 4],
        };
        for (at, corner) in [(x, y), (right, y), (x, bottom), (right, bottom)].into_iter().zip(corners) {
            sheet.text(at.0, at.1, corner, Ink::Line);
        }
        let (left_side, right_side) = match self.shape {
            Shape::Diamond => ("<", ">"),
            Shape::Stadium => ("(", ")"),
            Shape::Flag => (">", ""),
            _ => ("", ""),
        };
        if h == 3 {
            sheet.text(x, y + 1, left_side, Ink::Line);
            sheet.text(right, y + 1, right_side, Ink::Line);
        }
        if matches!(self.shape, Shape::Double | Shape::Subroutine) {
            for row in y + 1..bottom {
                sheet.text(x + 1, row, "│", Ink::Line);
                sheet.text(right - 1, row, "│", Ink::Line);
            }
        }
        // A node that grew has its text in the middle.
        let n_rows = self.sections.iter().map(|lines| lines.len() + 1).sum::<usize>() + 1;
        let mut row =
            y + 1 + usize::from(is_cylinder) + h.saturating_sub(n_rows + usize::from(is_cylinder)) / 2;
        for (section_idx, lines) in self.sections.iter().enumerate() {
            if section_idx > 0 {
                self.rule(sheet, x, row, right);
                row += 1;
            }
            if section_idx == 0 {
                sheet.centered(x, row, w, lines, Ink::Text);
            } else {
                lines.iter().enumerate().for_each(|(n, line)| sheet.text(x + 2, row + n, line, Ink::Text));
            }
            row += lines.len();
        }
    }

    /// A line across the box.
    fn rule(&self, sheet: &mut Sheet, x: usize, y: usize, right: usize) {
        sheet.horizontal(y, x, right, Stroke::Plain, BORDER);
    }

    /// The line from the node to itself: at its right, or below it.
    pub(super) fn paint_self_loop(
        &self,
        sheet: &mut Sheet,
        (x, y): (usize, usize),
        (w, h): (usize, usize),
        flow: Flow,
        net: NetId,
    ) {
        let Some(self_loop) = &self.self_loop else { return };
        let (right, bottom) = (x + w, y + h);
        if flow.is_sideways() {
            sheet.join(x + 1, bottom - 1, Dir::Down, Stroke::Plain, BORDER);
            sheet.vertical(x + 1, bottom, bottom + 1, Stroke::Plain, net);
            sheet.join(x + 1, bottom, Dir::Up, Stroke::Plain, net);
            sheet.horizontal(bottom + 1, x + 1, x + 4, Stroke::Plain, net);
            sheet.vertical(x + 4, bottom, bottom + 1, Stroke::Plain, net);
            sheet.text(x + 4, bottom, "▲", Ink::Line);
            sheet.text(x + 6, bottom + 1, self_loop, Ink::Label);
        } else {
            let row = y + (h - 2) / 2;
            sheet.join(right - 1, row, Dir::Right, Stroke::Plain, BORDER);
            sheet.horizontal(row, right - 1, right + 1, Stroke::Plain, BORDER);
            sheet.vertical(right + 1, row, row + 1, Stroke::Plain, BORDER);
            sheet.horizontal(row + 1, right, right + 1, Stroke::Plain, BORDER);
            sheet.text(right, row + 1, "◄", Ink::Line);
            sheet.text(right + 3, row, self_loop, Ink::Label);
        }
    }
}
