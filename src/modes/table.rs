//! Tables of plain text.

use std::borrow::Cow;

/// Longer cells are clipped: they would make the other columns unreadable, and the names in
/// them may come from a server or a file.
const MAX_CELL_CHARS: usize = 200;

/// The side of its column at which a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// The rows with their columns aligned: the first one left, the others right. The first row
/// is the header.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let align = |column: usize| if column == 0 { Align::Left } else { Align::Right };
    let lines = aligned(rows, align).into_iter().map(|line| line + "\n");
    lines.collect()
}

/// A line per row, without its break, with the columns aligned.
pub(super) fn aligned(rows: &[Vec<String>], align: impl Fn(usize) -> Align) -> Vec<String> {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| clipped(cell)).collect()).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| padded(cell, *width, align(column)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn clipped(cell: &str) -> Cow<'_, str> {
    match cell.char_indices().nth(MAX_CELL_CHARS) {
        None => Cow::Borrowed(cell),
        Some(_) => Cow::Owned(cell.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()),
    }
}

fn padded(cell: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{cell:<width$}"),
        Align::Right => format!("{cell:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 2]) -> Vec<String> {
        cells.map(str::to_owned).into()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(table(&[row(["tool", "calls"]), row(["bash", "7"])]), "tool  calls\nbash      7\n");
        let rows = [row(["id", "from"]), row(["openai", "file"])];
        assert_eq!(aligned(&rows, |_| Align::Left), ["id      from", "openai  file"]);
    }

    #[test]
    fn cells_of_any_length_are_clipped() {
        let name = "é".repeat(70_000);
        let text = table(&[row(["tool", "calls"]), row([&name, "7"])]);
        let last = text.lines().last().unwrap();
        assert_eq!((last.chars().count(), last.ends_with("…      7")), (MAX_CELL_CHARS + 7, true));
    }
}
