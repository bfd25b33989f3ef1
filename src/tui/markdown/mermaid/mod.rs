//! Draws Mermaid diagrams as text.
//!
//! Pure: a source and a width become rows of pieces, or the reason why there is no
//! drawing; then the caller shows the source. The sources are those of a model, so
//! their size, and with it the time and memory of a drawing, is limited before
//! anything is laid out. A diagram is drawn completely or not at all.

mod class;
mod er;
mod flowchart;
mod graph;
mod label;
mod layered;
mod node;
mod painter;
mod picture;
mod pie;
mod sequence;
mod sheet;
mod state;
mod statement;
#[cfg(test)]
mod tests;

use graph::Graph;
pub(super) use sheet::{DrawnRow, Ink};

/// Larger sources are not read.
const MAX_BYTES: usize = 16 * 1024;
const MAX_LINES: usize = 400;
/// No drawing is wider or higher.
const MAX_COLUMNS: usize = 400;
const MAX_ROWS: usize = 240;

/// Why a diagram is not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undrawn {
    /// A kind of diagram that is not known here.
    Kind,
    /// A statement that is not known here, or is not complete.
    Syntax,
    TooLarge,
    /// The narrowest drawing has this many columns too many.
    TooWide(usize),
}

impl Undrawn {
    /// The reason if the narrowest of all drawings that are low enough has so many columns;
    /// `None` if there is no such drawing.
    fn of_width(narrowest: Option<usize>, room: usize) -> Self {
        match narrowest.filter(|columns| *columns <= MAX_COLUMNS) {
            Some(columns) => Self::TooWide(columns.saturating_sub(room)),
            None => Self::TooLarge,
        }
    }
}

/// Whether a source has too many bytes or lines to be drawn. More text does not change that.
pub(super) fn is_too_large(source: &str) -> bool {
    source.len() > MAX_BYTES || source.lines().nth(MAX_LINES).is_some()
}

/// The rows of a diagram, at least one, none wider than `width`.
pub(super) fn draw(source: &str, width: u16) -> Result<Vec<DrawnRow>, Undrawn> {
    if is_too_large(source) {
        return Err(Undrawn::TooLarge);
    }
    let room = usize::from(width).min(MAX_COLUMNS);
    let mut statements = statement::statements(source)?;
    let header = *statements.first().ok_or(Undrawn::Kind)?;
    let (kind, settings) = header.split_once([' ', '\t', ':']).unwrap_or((header, ""));
    let settings = settings.trim();
    statements[0] = settings;
    let rest = &statements[1..];
    // In most kinds, the first statement may be on the line of the kind.
    let all = if settings.is_empty() { rest } else { &statements };
    let rows = match statement::title(source) {
        Some(title) => title_rows(title, room)?,
        None => Vec::new(),
    };
    let of_graph = |graph: Result<Graph, Undrawn>| picture::draw(&graph?, room);
    let drawing = match kind {
        "graph" | "flowchart" | "flowchart-elk" => of_graph(flowchart::parse(settings, rest)),
        "stateDiagram" | "stateDiagram-v2" => of_graph(state::parse(all)),
        "classDiagram" | "classDiagram-v2" => of_graph(class::parse(all)),
        "erDiagram" => of_graph(er::parse(all)),
        "sequenceDiagram" => sequence::draw(&sequence::parse(all)?, room),
        "pie" => pie::draw(settings, rest, room),
        _ => Err(Undrawn::Kind),
    }?;
    if rows.len() + drawing.len() > MAX_ROWS {
        return Err(Undrawn::TooLarge);
    }
    Ok([rows, drawing].concat())
}

/// A title above a drawing, with a blank row after it.
fn title_rows(title: &str, room: usize) -> Result<Vec<DrawnRow>, Undrawn> {
    let title = label::plain(title.trim_matches('\'')).ok_or(Undrawn::TooLarge)?;
    let mut rows: Vec<DrawnRow> =
        label::lines(&title, room).into_iter().map(|line| vec![(Ink::Text, line)]).collect();
    if !rows.is_empty() {
        rows.push(Vec::new());
    }
    Ok(rows)
}
