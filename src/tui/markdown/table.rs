//! Tables with box lines that fit the width.

use pulldown_cmark::Alignment;
use ratatui::style::{Modifier, Style};

use super::super::text::{Row, Run, width};
use super::super::theme::Token;
use super::blocks::Table;
use super::render::Cx;

/// Minimum width of a column in a table with lines.
const MIN_COLUMN: usize = 3;

/// A table whose columns shrink until it fits; cells wrap. If even the narrowest
/// columns do not fit, each row becomes lines of `cell | cell`.
pub(super) fn render(cx: &Cx<'_>, table: &Table, total: u16, base: Style) -> Vec<Row> {
    let n_columns = table.alignments.len();
    let cells: Vec<Vec<Vec<Run>>> = table
        .rows
        .iter()
        .enumerate()
        .map(|(row_idx, row)| {
            let style = if row_idx == 0 { base.add_modifier(Modifier::BOLD) } else { base };
            let inlines = |column: usize| row.get(column).map_or(&[][..], Vec::as_slice);
            (0..n_columns).map(|column| cx.runs(inlines(column), style)).collect()
        })
        .collect();
    let Some(widths) = column_widths(&cells, n_columns, usize::from(total)) else {
        return without_box(&cells, total, base);
    };

    let border = base.patch(cx.theme.style(Token::MdCodeBlockBorder));
    let mut rows = vec![rule("┌", "┬", "┐", &widths, border).as_frame()];
    for (row_idx, row) in cells.iter().enumerate() {
        // Only the head is ruled off: lines between all rows are harder to read.
        if row_idx == 1 {
            rows.push(rule("├", "┼", "┤", &widths, border).copied_as(source_rule(&table.alignments)));
        }
        rows.extend(table_row(row, &widths, &table.alignments, border));
    }
    rows.push(rule("└", "┴", "┘", &widths, border).as_frame());
    rows
}

/// Natural widths, the widest columns reduced evenly until borders and cells fit.
fn column_widths(cells: &[Vec<Vec<Run>>], n_columns: usize, total: usize) -> Option<Vec<usize>> {
    let room = total.checked_sub(3 * n_columns + 1)?;
    if n_columns == 0 || room < n_columns * MIN_COLUMN {
        return None;
    }
    let natural: Vec<usize> = (0..n_columns)
        .map(|column| cells.iter().map(|row| cell_width(&row[column])).max().unwrap_or(0).max(MIN_COLUMN))
        .collect();
    // The largest maximum width with which all columns fit.
    let fits = |cap: usize| natural.iter().map(|&width| width.min(cap)).sum::<usize>() <= room;
    let cap = (MIN_COLUMN..=room).rev().find(|&cap| fits(cap))?;
    let mut widths: Vec<usize> = natural.iter().map(|&width| width.min(cap)).collect();
    let mut spare = room - widths.iter().sum::<usize>();
    for (width, &wanted) in widths.iter_mut().zip(&natural) {
        if spare > 0 && *width < wanted {
            *width += 1;
            spare -= 1;
        }
    }
    Some(widths)
}

fn cell_width(runs: &[Run]) -> usize {
    let text: String = runs.iter().map(|run| run.text.as_str()).collect();
    text.split('\n').map(width).max().unwrap_or(0)
}

fn table_row(row: &[Vec<Run>], widths: &[usize], alignments: &[Alignment], border: Style) -> Vec<Row> {
    let wrapped: Vec<Vec<Row>> = row
        .iter()
        .zip(widths)
        .map(|(runs, &width)| super::render::wrap_runs(runs, u16::try_from(width).unwrap_or(u16::MAX)))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    (0..height)
        .map(|line_idx| {
            let mut out = Row::styled("│", border);
            for ((lines, &width), alignment) in wrapped.iter().zip(widths).zip(alignments) {
                let line = lines.get(line_idx).cloned().unwrap_or_default();
                let free = width.saturating_sub(line.width());
                let left = match alignment {
                    Alignment::Right => free,
                    Alignment::Center => free / 2,
                    Alignment::Left | Alignment::None => 0,
                };
                out.push(Run::new(" ".repeat(left + 1), Style::new()));
                out.append(line);
                out.push(Run::new(" ".repeat(free - left + 1), Style::new()));
                out.push(Run::new("│", border));
            }
            out.copied_as(if line_idx == 0 { source_line(row) } else { String::new() })
        })
        .collect()
}

/// The row as Markdown.
fn source_line(row: &[Vec<Run>]) -> String {
    let text = |cell: &Vec<Run>| cell.iter().map(|run| run.text.as_str()).collect::<String>();
    let cells: Vec<String> =
        row.iter().map(|cell| text(cell).replace('|', "\\|").replace('\n', "<br>")).collect();
    format!("| {} |", cells.join(" | "))
}

/// The line below the head as Markdown.
fn source_rule(alignments: &[Alignment]) -> String {
    let rule = |alignment: &Alignment| match alignment {
        Alignment::None => "---",
        Alignment::Left => ":--",
        Alignment::Center => ":-:",
        Alignment::Right => "--:",
    };
    format!("| {} |", alignments.iter().map(rule).collect::<Vec<_>>().join(" | "))
}

fn rule(left: &str, middle: &str, right: &str, widths: &[usize], style: Style) -> Row {
    let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    Row::styled(format!("{left}{}{right}", dashes.join(middle)), style)
}

fn without_box(cells: &[Vec<Vec<Run>>], total: u16, base: Style) -> Vec<Row> {
    let mut rows = Vec::new();
    for row in cells {
        let mut runs = Vec::new();
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                runs.push(Run::new(" | ", base));
            }
            runs.extend(cell.iter().cloned());
        }
        rows.extend(super::render::wrap_runs(&runs, total));
    }
    rows
}
