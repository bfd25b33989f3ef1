//! Draws sequence diagrams: a column per participant, and the events below each other.

use super::super::label::{lines, widest};
use super::super::sheet::{BORDER, Dir, DrawnRow, Ink, NetId, Sheet, Stroke};
use super::super::{MAX_ROWS, Undrawn};
use super::columns::{SELF_LOOP_COLUMNS, columns};
use super::{Event, NotePlace, Point, Sequence};

/// Widths of texts that are tried, until the drawing is narrow enough.
const TEXT_WIDTHS: [usize; 3] = [40, 24, 14];

pub(in super::super) fn draw(sequence: &Sequence, room: usize) -> Result<Vec<DrawnRow>, Undrawn> {
    if sequence.participants.is_empty() {
        return Err(Undrawn::Syntax);
    }
    let mut narrowest: Option<usize> = None;
    for text_width in TEXT_WIDTHS {
        let plan = Plan::new(sequence, text_width);
        if plan.n_rows > MAX_ROWS {
            continue;
        }
        if plan.n_columns <= room {
            return Ok(plan.paint());
        }
        narrowest = Some(narrowest.map_or(plan.n_columns, |least| least.min(plan.n_columns)));
    }
    Err(Undrawn::of_width(narrowest, room))
}

/// Where everything is drawn.
struct Plan<'a> {
    title: Vec<String>,
    heads: Vec<Vec<String>>,
    /// The columns of the lifelines.
    columns: Vec<usize>,
    /// Rows above the first event.
    head_rows: usize,
    n_columns: usize,
    n_rows: usize,
    steps: Vec<Step<'a>>,
    frames: Vec<Frame>,
}

/// A message or a note.
struct Step<'a> {
    event: &'a Event,
    lines: Vec<String>,
    row: usize,
    /// The columns of a note.
    span: (i64, i64),
}

/// A block around messages.
struct Frame {
    span: (i64, i64),
    rows: (usize, usize),
    /// Texts that begin in its lines, the first in the upper edge.
    texts: Vec<(usize, Vec<String>)>,
}

impl<'a> Plan<'a> {
    fn new(sequence: &'a Sequence, text_width: usize) -> Self {
        let heads: Vec<Vec<String>> =
            sequence.participants.iter().map(|name| lines(name, text_width.min(24))).collect();
        let texts: Vec<Vec<String>> = sequence
            .events
            .iter()
            .map(|event| match event {
                Event::Message { text, .. } | Event::Note { text, .. } => lines(text, text_width),
                Event::Open { kind, text } if text.is_empty() => vec![kind.clone()],
                Event::Open { kind, text } => lines(&format!("{kind} [{text}]"), text_width),
                Event::Next { text } if text.is_empty() => Vec::new(),
                Event::Next { text } => lines(&format!("[{text}]"), text_width),
                Event::Close => Vec::new(),
            })
            .collect();
        let columns = columns(sequence, &heads, &texts);
        let title = sequence.title.as_deref().map_or_else(Vec::new, |title| lines(title, text_width));
        let head_rows = heads.iter().map(Vec::len).max().unwrap_or(0) + 2;
        let mut plan = Plan {
            head_rows: head_rows + title.len(),
            title,
            heads,
            columns: Vec::new(),
            n_columns: 0,
            n_rows: 0,
            steps: Vec::new(),
            frames: Vec::new(),
        };
        plan.place(sequence, texts, &columns);
        let mut spans: Vec<(i64, i64)> = plan.frames.iter().map(|frame| frame.span).collect();
        spans.extend(plan.steps.iter().map(|step| step.span));
        spans.extend(plan.heads.iter().zip(&columns).map(|(head, &column)| around(column, widest(head) + 4)));
        let first = spans.iter().map(|span| span.0).min().unwrap_or(0);
        let last = spans.iter().map(|span| span.1).max().unwrap_or(0);
        plan.columns = columns.iter().map(|column| cell(column - first)).collect();
        for span in plan
            .frames
            .iter_mut()
            .map(|frame| &mut frame.span)
            .chain(plan.steps.iter_mut().map(|step| &mut step.span))
        {
            *span = (span.0 - first, span.1 - first);
        }
        plan.n_columns = cell(last - first + 1).max(widest(&plan.title));
        plan
    }

    /// Gives each event its rows and columns.
    fn place(&mut self, sequence: &'a Sequence, texts: Vec<Vec<String>>, columns: &[i64]) {
        // Per open block: its frame, and the columns of what is in it.
        let mut open: Vec<(usize, (i64, i64))> = Vec::new();
        let mut row = self.head_rows;
        for (event, lines) in sequence.events.iter().zip(texts) {
            let wide = i64::try_from(widest(&lines)).unwrap_or(0);
            let (n_rows, span) = match event {
                Event::Message { from, to, .. } if from == to => {
                    let column = columns[*from];
                    (lines.len().max(2), (column - 1, column + SELF_LOOP_COLUMNS + wide))
                }
                Event::Message { from, to, .. } => {
                    let (from, to) = (columns[*from], columns[*to]);
                    (lines.len() + 1, (from.min(to) - 1, from.max(to) + 1))
                }
                Event::Note { place, first, last, .. } => {
                    let span = match place {
                        NotePlace::Over if first == last => around(columns[*first], widest(&lines) + 4),
                        NotePlace::Over => (columns[*first] - 2, columns[*last] + 2),
                        NotePlace::Right => (columns[*last] + 2, columns[*last] + wide + 5),
                        NotePlace::Left => (columns[*first] - wide - 5, columns[*first] - 2),
                    };
                    (lines.len() + 2, span)
                }
                Event::Open { .. } => {
                    open.push((self.frames.len(), (i64::MAX, i64::MIN)));
                    let n_rows = lines.len();
                    self.frames.push(Frame { span: (0, 0), rows: (row, row), texts: vec![(row, lines)] });
                    row += n_rows;
                    continue;
                }
                Event::Next { .. } => {
                    let n_rows = lines.len().max(1);
                    if let Some((frame, _)) = open.last() {
                        self.frames[*frame].texts.push((row, lines));
                    }
                    row += n_rows;
                    continue;
                }
                Event::Close => {
                    if let Some((frame, inside)) = open.pop() {
                        let span = self.frames[frame].close(inside, row, columns);
                        extend(&mut open, (span.0 - 1, span.1 + 1));
                    }
                    row += 1;
                    continue;
                }
            };
            extend(&mut open, (span.0 - 1, span.1 + 1));
            self.steps.push(Step { event, lines, row, span });
            row += n_rows;
        }
        self.n_rows = row + 1;
    }

    fn paint(&self) -> Vec<DrawnRow> {
        let mut sheet = Sheet::new(self.n_columns, self.n_rows);
        sheet.centered(0, 0, self.n_columns, &self.title, Ink::Text);
        for frame in &self.frames {
            frame.paint(&mut sheet);
        }
        for (participant, (head, &column)) in self.heads.iter().zip(&self.columns).enumerate() {
            let (w, h) = (widest(head) + 4, head.len() + 2);
            let (x, y) = (column.saturating_sub(w / 2), self.head_rows - h);
            sheet.rect((x, y), (w, h), Stroke::Plain, false);
            sheet.centered(x, y + 1, w, head, Ink::Text);
            sheet.join(column, self.head_rows - 1, Dir::Down, Stroke::Plain, BORDER);
            let steps = self.n_rows.saturating_sub(self.head_rows + 1);
            sheet.line(
                (column, self.head_rows),
                steps,
                false,
                [true; 2],
                Stroke::Plain,
                lifeline(participant),
            );
        }
        for frame in &self.frames {
            frame.paint_texts(&mut sheet);
        }
        for (step_idx, step) in self.steps.iter().enumerate() {
            self.paint_step(&mut sheet, step, lifeline(self.heads.len() + step_idx));
        }
        sheet.rows()
    }

    fn paint_step(&self, sheet: &mut Sheet, step: &Step<'_>, net: NetId) {
        match step.event {
            Event::Message { from, to, stroke, points, .. } if from == to => {
                let (column, row) = (self.columns[*from], step.row);
                sheet.line((column + 1, row), 2, true, [true, false], *stroke, net);
                self.point(sheet, (column + 1, row), points[0], Dir::Left, *from);
                sheet.vertical(column + 3, row, row + 1, *stroke, net);
                sheet.line((column + 1, row + 1), 2, true, [true, false], *stroke, net);
                self.point(sheet, (column + 1, row + 1), points[1], Dir::Left, *from);
                for (line_idx, line) in step.lines.iter().enumerate() {
                    sheet.text(column + cell(SELF_LOOP_COLUMNS), row + line_idx, line, Ink::Label);
                }
            }
            Event::Message { from, to, stroke, points, .. } => {
                let row = step.row + step.lines.len();
                let (start, end) = (self.columns[*from], self.columns[*to]);
                let (first, last) = (start.min(end), start.max(end));
                let (onward, back) =
                    if start < end { (Dir::Right, Dir::Left) } else { (Dir::Left, Dir::Right) };
                sheet.line((first + 1, row), last - first - 2, true, [true; 2], *stroke, net);
                let (next, before) = if start < end { (start + 1, end - 1) } else { (start - 1, end + 1) };
                self.point(sheet, (next, row), points[0], back, *from);
                self.point(sheet, (before, row), points[1], onward, *to);
                sheet.centered(first + 1, step.row, last - first - 1, &step.lines, Ink::Label);
            }
            Event::Note { .. } => {
                let (x, last) = (cell(step.span.0), cell(step.span.1));
                let w = last + 1 - x;
                sheet.rect((x, step.row), (w, step.lines.len() + 2), Stroke::Plain, false);
                sheet.centered(x, step.row + 1, w, &step.lines, Ink::Text);
            }
            Event::Open { .. } | Event::Next { .. } | Event::Close => {}
        }
    }

    /// What a line ends with next to the lifeline of a participant.
    fn point(&self, sheet: &mut Sheet, (x, y): (usize, usize), point: Point, dir: Dir, participant: usize) {
        let glyph = match (point, dir) {
            (Point::Arrow, Dir::Right) => "►",
            (Point::Arrow, _) => "◄",
            (Point::Open, Dir::Right) => ">",
            (Point::Open, _) => "<",
            (Point::Cross, _) => "×",
            (Point::None, _) => {
                let away = if dir == Dir::Right { Dir::Left } else { Dir::Right };
                let column = self.columns[participant];
                return sheet.join(column, y, away, Stroke::Plain, lifeline(participant));
            }
        };
        sheet.text(x, y, glyph, Ink::Line);
    }
}

impl Frame {
    /// Ends below what is inside. Its sides are beside the lifelines, and its texts have room.
    fn close(&mut self, inside: (i64, i64), last_row: usize, columns: &[i64]) -> (i64, i64) {
        let (mut first, mut last) = inside;
        if first > last {
            // Nothing is inside.
            let column = columns.first().copied().unwrap_or(0);
            (first, last) = (column - 2, column + 2);
        }
        first -= 1;
        let text = self.texts.iter().map(|(_, lines)| widest(lines)).max().unwrap_or(0);
        last = (last + 1).max(first + i64::try_from(text).unwrap_or(0) + 5);
        while columns.contains(&first) {
            first -= 1;
        }
        while columns.contains(&last) {
            last += 1;
        }
        self.span = (first, last);
        self.rows.1 = last_row;
        self.span
    }

    fn paint(&self, sheet: &mut Sheet) {
        let (first, last) = (cell(self.span.0), cell(self.span.1));
        let (top, bottom) = self.rows;
        sheet.frame((first, top), (last + 1 - first, bottom + 1 - top), Stroke::Plain);
        for (text_idx, (row, _)) in self.texts.iter().enumerate() {
            if text_idx > 0 {
                sheet.join(first, *row, Dir::Right, Stroke::Plain, BORDER);
                sheet.line((first + 1, *row), last - first - 2, true, [true; 2], Stroke::Dotted, BORDER);
                sheet.join(last, *row, Dir::Left, Stroke::Plain, BORDER);
            }
        }
    }

    /// The texts lie over the lifelines.
    fn paint_texts(&self, sheet: &mut Sheet) {
        for (row, lines) in &self.texts {
            for (line_idx, line) in lines.iter().enumerate() {
                sheet.text(cell(self.span.0) + 2, row + line_idx, &format!(" {line} "), Ink::Label);
            }
        }
    }
}

fn extend(open: &mut [(usize, (i64, i64))], span: (i64, i64)) {
    if let Some((_, inside)) = open.last_mut() {
        *inside = (inside.0.min(span.0), inside.1.max(span.1));
    }
}

/// Columns of something `cells` wide in the middle of `column`.
fn around(column: i64, cells: usize) -> (i64, i64) {
    let cells = i64::try_from(cells).unwrap_or(0);
    (column - cells / 2, column - cells / 2 + cells - 1)
}

fn cell(column: i64) -> usize {
    usize::try_from(column).unwrap_or(0)
}

fn lifeline(participant: usize) -> NetId {
    BORDER + 1 + NetId::try_from(participant).unwrap_or(0)
}
