//! Tables: box lines around columns, or one line per cell where columns would be too narrow.

use pulldown_cmark::Alignment;
use ratatui::style::{Modifier, Style};

use super::super::text::{Row, Run, Wrap, chunks, copied_together, url_ranges, width};
use super::super::theme::Token;
use super::blocks::Table;
use super::render::{Cx, wrap_lines};

/// Minimum width of a column in a table with lines.
const MIN_COLUMN: usize = 3;

/// Longer words, such as paths and hashes, may be broken in a table with lines.
const LONG_WORD: usize = 20;

/// A cell of more rows in a narrower column is unreadable.
const MAX_NARROW_ROWS: usize = 8;
const NARROW_COLUMN: usize = 16;

/// Indent of the rows that continue a cell without lines around it.
const INDENT: &str = "  ";

/// A table whose columns shrink until it fits; cells wrap at words. If words would have to be
/// broken for that, or cells would become towers, the table is stacked: each cell is a line that
/// begins with the name of its column.
pub(super) fn render(cx: &Cx<'_>, table: &Table, total: u16, base: Style) -> Vec<Row> {
    let n_columns = table.alignments.len();
    let cells: Vec<Vec<Vec<Run>>> = table
        .rows
        .iter()
        .enumerate()
        .map(|(row_idx, row)| {
            let style = if row_idx == 0 { base.add_modifier(Modifier::BOLD) } else { base };
            let inlines = |column: usize| row.cells.get(column).map_or(&[][..], Vec::as_slice);
            (0..n_columns).map(|column| cx.runs(inlines(column), style)).collect()
        })
        .collect();
    let widths = column_widths(&cells, n_columns, usize::from(total));
    let wrapped: Option<Vec<WrappedCells>> =
        widths.as_ref().map(|widths| cells.iter().map(|row| wrap_cells(row, widths)).collect());
    let (Some(widths), Some(wrapped)) = (widths, wrapped.filter(|rows| !has_towers(rows))) else {
        return stacked(&cells, table, total, base);
    };

    let border = base.patch(cx.theme.style(Token::MdCodeBlockBorder));
    let mut rows = vec![rule("┌", "┬", "┐", &widths, border).as_frame()];
    for (row_idx, (row, wrapped)) in table.rows.iter().zip(&wrapped).enumerate() {
        // Only the head is ruled off: lines between all rows are harder to read.
        if row_idx == 1 {
            let line = rule("├", "┼", "┤", &widths, border).copied_as(table.rule.as_str());
            rows.push(line.as_table_rule());
        }
        rows.extend(table_row(&row.source, wrapped, &widths, &table.alignments, border));
    }
    rows.push(rule("└", "┴", "┘", &widths, border).as_frame());
    rows
}

/// The cells of one row, wrapped.
type WrappedCells = Vec<Vec<Row>>;

fn wrap_cells(row: &[Vec<Run>], widths: &[usize]) -> WrappedCells {
    let wrap = |width: usize| Wrap::new(u16::try_from(width).unwrap_or(u16::MAX));
    row.iter().zip(widths).map(|(runs, &width)| wrap_lines(runs, &wrap(width))).collect()
}

fn has_towers(rows: &[WrappedCells]) -> bool {
    let is_tower =
        |cell: &Vec<Row>| cell.len() > MAX_NARROW_ROWS && cell.iter().all(|row| row.width() < NARROW_COLUMN);
    rows.iter().any(|cells| cells.len() > 1 && cells.iter().any(is_tower))
}

/// Natural widths, the widest columns reduced evenly until borders and cells fit, but not below
/// their longest words. `None` if they do not fit.
fn column_widths(cells: &[Vec<Vec<Run>>], n_columns: usize, total: usize) -> Option<Vec<usize>> {
    let room = total.checked_sub(3 * n_columns + 1)?;
    if n_columns == 0 {
        return None;
    }
    let most = |measure: fn(&[Run]) -> usize| -> Vec<usize> {
        let most = |column: usize| cells.iter().map(|row| measure(&row[column])).max().unwrap_or(0);
        (0..n_columns).map(|column| most(column).max(MIN_COLUMN)).collect()
    };
    let natural = most(cell_width);
    let words = most(word_width);
    let is_alone = n_columns == 1;
    let limit = |limit: usize| words.iter().map(|&word| word.min(limit)).collect::<Vec<_>>();
    let limits = [usize::MAX, LONG_WORD, if is_alone { MIN_COLUMN } else { LONG_WORD }].map(limit);
    let least = limits.into_iter().find(|least| least.iter().sum::<usize>() <= room)?;
    // The largest maximum width with which all columns fit.
    let capped = |cap: usize| natural.iter().zip(&least).map(move |(&most, &least)| most.min(cap.max(least)));
    let cap = (MIN_COLUMN..=room).rev().find(|&cap| capped(cap).sum::<usize>() <= room)?;
    let mut widths: Vec<usize> = capped(cap).collect();
    let mut spare = room - widths.iter().sum::<usize>();
    for (width, &wanted) in widths.iter_mut().zip(&natural) {
        if spare > 0 && *width < wanted {
            *width += 1;
            spare -= 1;
        }
    }
    Some(widths)
}

fn text_of(runs: &[Run]) -> String {
    runs.iter().map(|run| run.text.as_str()).collect()
}

fn cell_width(runs: &[Run]) -> usize {
    text_of(runs).split('\n').map(width).max().unwrap_or(0)
}

/// Cells of the longest piece that a wrap keeps whole.
fn word_width(runs: &[Run]) -> usize {
    let text = text_of(runs);
    let words = text.split('\n').flat_map(|line| {
        let chunks = chunks(line, &url_ranges(line));
        chunks.into_iter().map(move |chunk| width(&line[chunk.start..chunk.word_end]))
    });
    words.max().unwrap_or(0)
}

fn table_row(
    source: &str,
    wrapped: &WrappedCells,
    widths: &[usize],
    alignments: &[Alignment],
    border: Style,
) -> Vec<Row> {
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    let rows = (0..height)
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
                out.append_cell(line);
                out.push(Run::new(" ".repeat(free - left + 1), Style::new()));
                out.push(Run::new("│", border));
            }
            out
        })
        .collect();
    copied_together(rows, source)
}

fn rule(left: &str, middle: &str, right: &str, widths: &[usize], style: Style) -> Row {
    let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    Row::styled(format!("{left}{}{right}", dashes.join(middle)), style)
}

/// Each row as lines of `column: cell`, with a blank row between them.
fn stacked(cells: &[Vec<Vec<Run>>], table: &Table, total: u16, base: Style) -> Vec<Row> {
    let Some((head, body)) = cells.split_first() else { return Vec::new() };
    let mut sources = table.rows.iter().map(|row| row.source.as_str());
    let source_head = format!("{}\n{}", sources.next().unwrap_or_default(), table.rule);
    if body.is_empty() {
        let names = head.iter().map(|runs| text_of(runs)).collect::<Vec<_>>().join(" | ");
        let rows = Wrap::new(total).text(&names, base.add_modifier(Modifier::BOLD));
        return lines_together(rows, &source_head);
    }
    let mut rows: Vec<Row> = Vec::new();
    for (row_idx, (row, source)) in body.iter().zip(sources).enumerate() {
        if row_idx > 0 {
            rows.push(Row::default().as_frame());
        }
        let source = if row_idx == 0 { format!("{source_head}\n{source}") } else { source.to_owned() };
        let lines = head.iter().zip(row).flat_map(|(name, cell)| named_cell(name, cell, total, base));
        rows.extend(lines_together(lines.collect(), &source));
    }
    rows
}

fn named_cell(name: &[Run], cell: &[Run], total: u16, base: Style) -> Vec<Row> {
    let mut runs: Vec<Run> = name.to_vec();
    // The name is on one line.
    runs.iter_mut().for_each(|run| run.text = run.text.replace('\n', " "));
    let text = text_of(&runs);
    if !text.is_empty() {
        let colon = if text.ends_with([':', '?']) { " " } else { ": " };
        runs.push(Run::new(colon, base.add_modifier(Modifier::BOLD)));
    }
    runs.extend_from_slice(cell);
    let is_wide_enough = usize::from(total) > 4 * INDENT.len();
    let wrap = Wrap::new(total).rest(if is_wide_enough { INDENT } else { "" }, base);
    wrap_lines(&runs, &wrap)
}

/// Lines of cells that are copied as `source` if all of them are copied.
fn lines_together(rows: Vec<Row>, source: &str) -> Vec<Row> {
    copied_together(rows.into_iter().map(Row::as_table_line).collect(), source)
}
