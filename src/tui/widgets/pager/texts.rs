//! Texts in memory, for a pager.

use std::borrow::Cow;

use ratatui::style::Style;

use crate::util::escapes::without_escapes;

use super::super::super::markdown::{self, Highlighter, MarkdownOptions};
use super::super::super::text::{Row, Wrap, terminal_output, visible, visible_marks, wrap_plain};
use super::super::super::theme::{Theme, Token};
use super::{PagedText, Place, Position};

/// Lines of a part.
const PART_LINES: usize = 200;
/// Parts whose rows stay in memory.
const MAX_LAID_OUT: usize = 16;
/// Narrower texts have no blank column at their sides.
const MIN_WIDTH_WITH_SIDES: u16 = 8;

/// Blank columns at each side.
fn side(width_cells: u16) -> u16 {
    u16::from(width_cells >= MIN_WIDTH_WITH_SIDES)
}

fn indent(rows: &mut [Row], width_cells: u16) {
    for row in rows {
        row.indent(" ".repeat(usize::from(side(width_cells))), Style::new());
    }
}

/// What rows were made for: width, and generation of the theme.
type Key = (u16, u64);

/// Markdown, with a part per heading.
pub struct MarkdownText {
    sections: Vec<String>,
    rows: Vec<Vec<Row>>,
    laid_out: Option<Key>,
    highlighter: Highlighter,
    shows_links: bool,
}

impl MarkdownText {
    pub fn new(markdown: &str, highlighter: Highlighter, shows_links: bool) -> Self {
        let sections = sections(markdown);
        Self { rows: Vec::new(), sections, laid_out: None, highlighter, shows_links }
    }

    fn lay_out(&mut self, width_cells: u16, theme: &Theme) {
        let key = (width_cells, theme.generation());
        if self.laid_out == Some(key) {
            return;
        }
        let options =
            MarkdownOptions { base: Style::new(), links: self.shows_links, ..MarkdownOptions::default() };
        let inner = width_cells.saturating_sub(2 * side(width_cells)).max(1);
        let last = self.sections.len().saturating_sub(1);
        let rows = self.sections.iter().enumerate().map(|(n, section)| {
            let mut rows = markdown::render(section, inner, theme, &self.highlighter, &options);
            indent(&mut rows, width_cells);
            if n < last {
                rows.push(Row::default());
            }
            rows
        });
        self.rows = rows.collect();
        self.laid_out = Some(key);
    }
}

/// The text, divided before each heading outside of code.
fn sections(markdown: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    let mut is_code = false;
    for line in markdown.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let is_heading = !is_code && line.starts_with('#');
        match sections.last_mut() {
            Some(last) if !is_heading || last.trim().is_empty() => {
                last.push_str(line);
                last.push('\n');
            }
            _ => sections.push([line, "\n"].concat()),
        }
    }
    sections
}

impl PagedText for MarkdownText {
    fn n_parts(&self) -> usize {
        self.sections.len()
    }

    fn layout(&mut self, part: usize, width_cells: u16, theme: &Theme) -> usize {
        self.lay_out(width_cells, theme);
        self.rows.get(part).map_or(0, Vec::len)
    }

    fn row(&self, part: usize, row: usize) -> Cow<'_, Row> {
        let row = self.rows.get(part).and_then(|rows| rows.get(row));
        row.map_or_else(|| Cow::Owned(Row::default()), Cow::Borrowed)
    }

    fn relaid(&mut self, places: &[Place], width_cells: u16, theme: &Theme) -> Vec<Place> {
        let n_rows: Vec<usize> = self.rows.iter().map(Vec::len).collect();
        // What a row of markdown came from is not known; sections are short.
        let moved = |(part, row): Place, text: &mut Self| {
            let now = text.layout(part, width_cells, theme);
            (part, row * now / n_rows.get(part).copied().unwrap_or_default().max(1))
        };
        places.iter().map(|place| moved(*place, self)).collect()
    }

    fn is_stop(&self, _: usize) -> bool {
        true
    }

    fn position(&self, top: Place, last: Place) -> Option<Position> {
        let before = |(part, row): Place| self.rows.iter().take(part).map(Vec::len).sum::<usize>() + row;
        let of = self.rows.iter().map(Vec::len).sum();
        let (first, last) = (before(top) + 1, before(last) + 1);
        (first > 1 || last < of).then_some(Position { unit: "row", first, last, of })
    }

    /// All parts: what is shown differs from its source, and there is little of it.
    fn search(&mut self, _: &str) -> Option<Vec<usize>> {
        Some((0..self.sections.len()).collect())
    }
}

/// How lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Without control characters.
    Plain,
    /// Output of a command, with its colours.
    Output,
}

/// Lines in parts, each of which is made when it is needed.
pub trait LineParts {
    fn n_parts(&self) -> usize;

    /// The lines of a part, without a line break at the end.
    fn lines(&self, part: usize) -> Cow<'_, str>;

    /// What is told about a line, counted from 0 in its part.
    fn position(&self, part: usize, line: usize) -> Position;
}

/// Lines of text that wrap. Rows exist only for parts near those that are shown.
pub struct LinesText<P> {
    parts: P,
    kind: Lines,
    key: Option<Key>,
    laid_out: Vec<LaidOut>,
}

/// The rows of a part.
struct LaidOut {
    part: usize,
    rows: Vec<Row>,
    /// The first row of each line.
    starts: Vec<usize>,
}

impl LaidOut {
    fn line_of(&self, row: usize) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }
}

impl<P: LineParts> LinesText<P> {
    pub fn new(parts: P, kind: Lines) -> Self {
        Self { parts, kind, key: None, laid_out: Vec::new() }
    }

    /// Changes what the lines are made of.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut P) -> T) -> T {
        self.laid_out.clear();
        change(&mut self.parts)
    }

    fn rows_of(&self, part: usize, width_cells: u16, theme: &Theme) -> LaidOut {
        let inner = width_cells.saturating_sub(2 * side(width_cells)).max(1);
        let style = theme.style(Token::Text);
        let (mut rows, mut starts) = (Vec::new(), Vec::new());
        let mut add = |of_line: Vec<Row>| {
            starts.push(rows.len());
            rows.extend(of_line);
        };
        let text = self.parts.lines(part);
        match self.kind {
            Lines::Plain => text.split('\n').for_each(|line| add(wrap_plain(&visible(line), inner, style))),
            Lines::Output => {
                let wrap = Wrap::new(inner);
                for line in terminal_output(&visible_marks(&text)) {
                    let mut line = theme.output(line);
                    line.style = style.patch(line.style);
                    add(wrap.line(&line));
                }
            }
        }
        indent(&mut rows, width_cells);
        LaidOut { part, rows, starts }
    }

    /// Parts whose rows are in memory.
    #[cfg(test)]
    pub(super) fn n_laid_out(&self) -> usize {
        self.laid_out.len()
    }

    fn find(&self, part: usize) -> Option<&LaidOut> {
        self.laid_out.iter().find(|laid_out| laid_out.part == part)
    }
}

impl<P: LineParts> PagedText for LinesText<P> {
    fn n_parts(&self) -> usize {
        self.parts.n_parts()
    }

    fn layout(&mut self, part: usize, width_cells: u16, theme: &Theme) -> usize {
        let key = (width_cells, theme.generation());
        if self.key != Some(key) {
            self.laid_out.clear();
            self.key = Some(key);
        }
        if let Some(laid_out) = self.find(part) {
            return laid_out.rows.len();
        }
        if self.laid_out.len() >= MAX_LAID_OUT {
            let farthest = (0..self.laid_out.len()).max_by_key(|at| self.laid_out[*at].part.abs_diff(part));
            farthest.map(|at| self.laid_out.swap_remove(at));
        }
        let laid_out = self.rows_of(part, width_cells, theme);
        let n_rows = laid_out.rows.len();
        self.laid_out.push(laid_out);
        n_rows
    }

    fn row(&self, part: usize, row: usize) -> Cow<'_, Row> {
        let row = self.find(part).and_then(|laid_out| laid_out.rows.get(row));
        row.map_or_else(|| Cow::Owned(Row::default()), Cow::Borrowed)
    }

    fn relaid(&mut self, places: &[Place], width_cells: u16, theme: &Theme) -> Vec<Place> {
        let line =
            |(part, row): &Place| (*part, self.find(*part).map_or(0, |laid_out| laid_out.line_of(*row)));
        let lines: Vec<(usize, usize)> = places.iter().map(line).collect();
        let row_of = |(part, line): (usize, usize)| {
            self.layout(part, width_cells, theme);
            let starts = self.find(part).map_or(&[][..], |laid_out| &laid_out.starts);
            (part, starts.get(line).copied().unwrap_or(0))
        };
        lines.into_iter().map(row_of).collect()
    }

    fn position(&self, top: Place, (part, row): Place) -> Option<Position> {
        let laid_out = self.find(part)?;
        let is_end = part + 1 == self.parts.n_parts() && row + 1 >= laid_out.rows.len();
        let last = self.parts.position(part, laid_out.line_of(row));
        let first_line = self.find(top.0).map_or(0, |laid_out| laid_out.line_of(top.1));
        let first = self.parts.position(top.0, first_line).first;
        (top != (0, 0) || !is_end).then_some(Position { first, ..last })
    }

    fn search(&mut self, query: &str) -> Option<Vec<usize>> {
        let contains =
            |part: &usize| without_escapes(&self.parts.lines(*part)).to_lowercase().contains(query);
        Some((0..self.parts.n_parts()).filter(contains).collect())
    }
}

/// A text in memory, in parts of `PART_LINES`.
pub struct WholeText {
    text: String,
    /// Where parts begin.
    starts: Vec<usize>,
    n_lines: usize,
}

impl WholeText {
    pub fn new(text: impl Into<String>) -> Self {
        let mut text: String = text.into();
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        let mut starts = vec![0];
        let mut n_lines = 1;
        for (at, _) in text.match_indices('\n') {
            if n_lines % PART_LINES == 0 {
                starts.push(at + 1);
            }
            n_lines += 1;
        }
        Self { text, starts, n_lines }
    }
}

impl LineParts for WholeText {
    fn n_parts(&self) -> usize {
        self.starts.len()
    }

    fn lines(&self, part: usize) -> Cow<'_, str> {
        let start = self.starts.get(part).copied().unwrap_or(self.text.len());
        let end = self.starts.get(part + 1).map_or(self.text.len(), |end| end - 1);
        Cow::Borrowed(self.text.get(start..end).unwrap_or_default())
    }

    fn position(&self, part: usize, line: usize) -> Position {
        Position::at("line", part * PART_LINES + line + 1, self.n_lines)
    }
}
