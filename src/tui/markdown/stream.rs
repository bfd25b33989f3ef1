//! Renders Markdown that is still arriving.
//!
//! Settled parts of the text keep their rows: blocks, and the items of lists. Only the last
//! part is parsed again when text arrives, and an open code fence settles line by line. A part
//! is settled once another begins after it on a complete line, because later text cannot
//! change the parts before the last one. A paragraph is settled with the blank line below it. The
//! same holds for blocks in the last part, if it is a quote or an item: it is parsed as a whole,
//! but the rows of its finished blocks are final.
//!
//! Links may refer to definitions that come later. From the first part on that has one as `[text][label]` or `[label][]`
//! nothing is final before the text is complete, or for [`WAIT_BYTES`]: then it is laid out once more with the
//! definitions up to there. A label
//! alone in brackets does not keep its part from settling, as most brackets are no links.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;

use super::super::text::Row;
use super::super::theme::Theme;
use super::blocks::{self, Block, Definitions, Inline};
use super::code::{CodeBlock, Fence};
use super::diagram::{self, Diagram, DiagramTiming, Drawings};
use super::highlight::Highlighter;
use super::parts::{Definition, ItemPlace, Part, outline};
use super::render::{Cx, Drawn, MarkdownOptions, Open};

/// A larger last part is parsed again only after it has grown by a
/// fraction, so that a single huge block needs only linear work.
const LARGE_TAIL_BYTES: usize = 16 * 1024;
const LARGE_TAIL_GROWTH: usize = 32;

/// How much text waits for the definition of a link. It stays on the screen, and `[1][2]` may be no link at all.
const WAIT_BYTES: usize = 16 * 1024;

/// A Markdown text that grows at its end, and its rows.
#[derive(Debug)]
pub struct MarkdownStream {
    options: MarkdownOptions,
    source: String,
    /// Whether the text so far ended in `\r`, which a following `\n` belongs to.
    after_cr: bool,
    finished: bool,
    layout: Layout,
    parsed_bytes: u64,
    diagrams_laid_out: u64,
}

/// Rows for one width and theme.
#[derive(Debug, Default)]
struct Layout {
    key: Option<(u16, u64)>,
    rows: Vec<Row>,
    /// Number of `rows` that are not made again.
    settled_rows: usize,
    /// Number of `rows` that are made again and stay the same.
    final_rows: usize,
    /// The first row of a diagram that is not drawn yet: its source may be replaced.
    undrawn: Option<usize>,
    /// Number of source bytes shown by the settled rows.
    settled_bytes: usize,
    /// Number of source bytes shown by all rows.
    shown_bytes: usize,
    /// Whether the finished text has been shown.
    complete: bool,
    definitions: Definitions,
    /// Labels in settled parts that nothing defines up to there.
    missing: HashSet<String>,
    /// What waits for later definitions.
    waiting: Option<Waiting>,
    /// The definitions that something waited for.
    late: Option<Late>,
    /// Where definitions begin that are shown, because their label is among these.
    shown_definitions: Vec<usize>,
    fence: Option<OpenFence>,
    /// The item that begins after the settled bytes, if it continues a list.
    item: Option<ItemPlace>,
    /// The start of the last part, and where text may still be added to it.
    open: Option<(usize, Vec<usize>)>,
    drawings: Drawings,
}

/// Settled parts that may still change.
#[derive(Debug)]
struct Waiting {
    /// Where the first of them begins in the text.
    start: usize,
    first_row: usize,
    /// The labels in them that nothing defines up to there.
    labels: HashSet<String>,
    /// Those before them and in them.
    definitions: Definitions,
}

impl Waiting {
    /// Whether what begins at `place` is among them.
    fn covers(&self, place: usize) -> bool {
        waits_since(self.start, place)
    }
}

/// Definitions for parts that waited for them.
#[derive(Debug)]
struct Late {
    start: usize,
    definitions: Definitions,
}

/// Whether what begins at `place` waits if something at `start` does.
fn waits_since(start: usize, place: usize) -> bool {
    (start..=start.saturating_add(WAIT_BYTES)).contains(&place)
}

#[derive(Debug)]
struct OpenFence {
    fence: Fence,
    /// Where it begins in the text.
    start: usize,
    block: CodeBlock,
    diagram: Option<OpenDiagram>,
}

/// A diagram whose source is arriving.
#[derive(Debug)]
struct OpenDiagram {
    first_row: usize,
    /// Where its source begins in the text.
    start: usize,
}

impl MarkdownStream {
    pub fn new(options: MarkdownOptions) -> Self {
        Self {
            options,
            source: String::new(),
            after_cr: false,
            finished: false,
            layout: Layout::default(),
            parsed_bytes: 0,
            diagrams_laid_out: 0,
        }
    }

    /// Appends text, converting line breaks to `\n`. Nothing is laid out until
    /// [`Self::rows`] is called.
    pub fn push(&mut self, delta: &str) {
        with_line_feeds(delta, &mut self.after_cr, &mut self.source);
    }

    /// Marks the text as complete, which settles all rows.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Changes the options; the next [`Self::rows`] renders everything again.
    pub fn set_options(&mut self, options: MarkdownOptions) {
        if options != self.options {
            self.options = options;
            self.layout = Layout::default();
        }
    }

    /// The rows of the text so far; none is wider than `width`. Calling it again without
    /// new text costs nothing; a new width or theme renders
    /// everything again.
    pub fn rows(&mut self, width: u16, theme: &Theme, highlighter: &Highlighter) -> &[Row] {
        let width = width.max(1);
        let key = Some((width, theme.generation()));
        if self.layout.key != key {
            self.layout = Layout { key, ..Layout::default() };
        }
        if self.is_due() {
            if self.finished
                && self.layout.undrawn.is_some()
                && self.options.mermaid == DiagramTiming::WhenAnswerEnds
            {
                // Diagrams that waited for the end are drawn, with all that follows them.
                self.layout = Layout { key, ..Layout::default() };
            }
            let options = &self.options.clone();
            let is_finished = self.finished;
            let drawings = RefCell::new(std::mem::take(&mut self.layout.drawings));
            let cx = Cx { theme, highlighter, options, is_finished, drawings };
            self.update(width, &cx);
            let settled_bytes = self.layout.settled_bytes;
            let is_over = |waiting: &mut Waiting| is_finished || !waiting.covers(settled_bytes);
            if let Some(waiting) = self.layout.waiting.take_if(is_over) {
                let Waiting { start, labels, definitions, .. } = waiting;
                if labels.iter().any(|label| definitions.contains_key(label)) {
                    self.layout =
                        Layout { key, late: Some(Late { start, definitions }), ..Layout::default() };
                    self.update(width, &cx);
                } else {
                    self.layout.missing.extend(labels);
                }
            }
            self.layout.drawings = cx.drawings.into_inner();
            self.diagrams_laid_out += self.layout.drawings.end_frame();
        }
        &self.layout.rows
    }

    /// Number of leading rows of the last [`Self::rows`] that no later text can change at that
    /// width.
    pub fn stable_rows(&self) -> usize {
        let Layout { undrawn, settled_rows, final_rows, .. } = self.layout;
        let n_waiting = self.layout.waiting.as_ref().map_or(usize::MAX, |waiting| waiting.first_row);
        undrawn.unwrap_or(settled_rows.max(final_rows)).min(n_waiting)
    }

    /// Whether other rows may replace those of a diagram whose source is arriving.
    pub fn has_undrawn(&self) -> bool {
        self.layout.undrawn.is_some()
    }

    /// Whether the last line may turn out to be the head of a table, or the line below it.
    pub fn may_be_table(&self) -> bool {
        let tail = self.source.get(self.layout.settled_bytes..).unwrap_or_default();
        self.layout.fence.is_none() && !self.finished && may_be_head(tail)
    }

    /// Number of bytes parsed so far, as a measure of work.
    pub fn parsed_bytes(&self) -> u64 {
        self.parsed_bytes
    }

    /// Number of diagrams laid out so far, as a measure of work.
    pub fn diagrams_laid_out(&self) -> u64 {
        self.diagrams_laid_out
    }

    fn is_due(&self) -> bool {
        let layout = &self.layout;
        if self.finished {
            return !layout.complete;
        }
        let grown = self.source.len() - layout.shown_bytes;
        let tail = self.source.len() - layout.settled_bytes;
        grown > 0 && (layout.fence.is_some() || tail < LARGE_TAIL_BYTES || grown > tail / LARGE_TAIL_GROWTH)
    }

    fn update(&mut self, width: u16, cx: &Cx<'_>) {
        let layout = &mut self.layout;
        layout.rows.truncate(layout.settled_rows);
        loop {
            if layout.fence.is_some() {
                if !layout.fence_lines(&self.source, self.finished, width, cx) {
                    break;
                }
                continue;
            }
            let complete = if self.finished {
                self.source.len()
            } else {
                self.source.rfind('\n').map_or(0, |at| at + 1).max(layout.settled_bytes)
            };
            let tail = self.source.get(layout.settled_bytes..complete).unwrap_or_default();
            self.parsed_bytes += tail.len() as u64;
            if !tail.is_empty() && layout.settle(tail, self.finished, width, cx) {
                continue;
            }
            if !self.finished {
                self.parsed_bytes += layout.find_open(&self.source, complete);
            }
            // The last part, including the line that is still arriving.
            let tail = self.source.get(layout.settled_bytes..).unwrap_or_default();
            self.parsed_bytes += layout.preview(tail, width, cx);
            break;
        }
        layout.shown_bytes = self.source.len();
        if self.finished {
            layout.settled_rows = layout.rows.len();
            layout.settled_bytes = self.source.len();
            layout.undrawn = None;
            layout.complete = true;
        }
    }
}

impl Layout {
    /// Renders the final parts of `tail`, all of them if the text is
    /// `finished`. Returns whether a fence was opened, so that the caller continues.
    fn settle(&mut self, tail: &str, finished: bool, width: u16, cx: &Cx<'_>) -> bool {
        let outline = outline(tail, self.item);
        let definition_starts: Vec<usize> = outline.definitions.iter().map(|found| found.start).collect();
        let mut definitions = outline.definitions.into_iter().peekable();
        let base = self.settled_bytes;
        // Whether the last part is a paragraph that no later text continues.
        let mut is_over = false;
        for (part_idx, part) in outline.parts.iter().enumerate() {
            let range = &part.range;
            let is_last = part_idx + 1 == outline.parts.len();
            while let Some(definition) = definitions.next_if(|definition| definition.start < range.start) {
                self.define(definition, (base, tail), width, cx);
            }
            if is_last {
                self.settled_bytes = base + range.start;
                self.item = part.item.filter(|item| !item.is_first);
                let first_line = tail[range.start..].split_once('\n').map(|(line, _)| line);
                if let Some((line, fence)) = first_line.and_then(|line| Some((line, Fence::open(line)?))) {
                    self.open_fence(fence, line.len() + 1, width, cx);
                    return true;
                }
                if self.item.is_none() {
                    // Definitions directly above belong to its paragraph; without them the
                    // rest could be parsed as another kind of block.
                    let before = part_idx.checked_sub(1).map(|before| outline.parts[before].range.end);
                    let after_it = |start: &usize| before.is_none_or(|before| *start >= before);
                    let starts = definition_starts.iter().copied().filter(after_it);
                    self.settled_bytes = base + paragraph_start(tail, range.start, starts);
                }
                // Definitions below it are not read yet.
                is_over = part.is_paragraph && definitions.peek().is_none() && ends_in_blank_line(tail);
                if !finished && !is_over {
                    let start = base + range.start;
                    self.open = self.open.take().filter(|open| open.0 == start).or(Some((start, Vec::new())));
                    return false;
                }
                self.open = None;
            }
            let n_final = self.append_part((base, part), tail, width, cx, Open::Nothing);
            self.settled_rows = self.rows.len();
            if n_final < self.settled_rows {
                self.undrawn.get_or_insert(n_final);
            }
        }
        for definition in definitions.filter(|_| finished) {
            self.define(definition, (base, tail), width, cx);
        }
        if finished || is_over {
            self.settled_bytes = base + tail.len();
        }
        false
    }

    /// Takes note of a definition in `tail`, which begins at `base`. It is shown if a link before it needed it: the
    /// link is settled, as it was written.
    fn define(&mut self, definition: Definition, (base, tail): (usize, &str), width: u16, cx: &Cx<'_>) {
        let start = base + definition.start;
        let is_first = !self.definitions.contains_key(&definition.label);
        let comes_too_late =
            |waiting: &Waiting| waiting.labels.contains(&definition.label) && !waiting.covers(start);
        let is_missing =
            self.missing.contains(&definition.label) || self.waiting.as_ref().is_some_and(comes_too_late);
        if is_first && is_missing {
            let line = tail[definition.start..].lines().next().unwrap_or_default().trim();
            let text = Inline { text: line.to_owned(), ..Inline::default() };
            let mut rows = cx.wrap_inlines(&[text], width, cx.options.base);
            rows.iter_mut().for_each(|row| row.set_part(start));
            let above = self.rows.last().and_then(Row::part);
            self.append_rows(rows, above.is_none_or(|above| !self.shown_definitions.contains(&above)));
            self.settled_rows = self.rows.len();
            self.shown_definitions.push(start);
        }
        if is_first {
            if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.covers(start)) {
                waiting.definitions.insert(definition.label.clone(), definition.target.clone());
            }
            self.definitions.insert(definition.label, definition.target);
        }
    }

    /// Finds out where the last part, up to `complete` in `source`, is still open. Returns the number of
    /// parsed bytes.
    fn find_open(&mut self, source: &str, complete: usize) -> u64 {
        let Some((start, path)) = &mut self.open else { return 0 };
        let part = source.get(*start..complete).unwrap_or_default();
        let begins_container = |c: char| matches!(c, '>' | '-' | '*' | '+') || c.is_ascii_digit();
        if !part.trim_start().starts_with(begins_container) {
            return 0;
        }
        // Where that is not certain, what was found before still holds.
        if let Some(found) = blocks::open_path(part) {
            *path = found;
        }
        part.len() as u64
    }

    /// Renders `tail`, which may change, after the settled rows. Returns the number of bytes that were parsed
    /// to find its parts.
    fn preview(&mut self, tail: &str, width: u16, cx: &Cx<'_>) -> u64 {
        if tail.is_empty() {
            return 0;
        }
        let base = self.settled_bytes;
        let open = self.open.take();
        // Most of an answer arrives as lines of prose, each of them drawn many times.
        let is_one_paragraph = self.item.is_none() && is_line_of_prose(tail);
        let parts = if is_one_paragraph {
            vec![Part { range: 0..tail.len(), item: None, is_paragraph: true }]
        } else {
            outline(tail, self.item).parts
        };
        for part in &parts {
            let start = base + part.range.start;
            let path = open.as_ref().filter(|open| open.0 == start).map(|(_, path)| path.as_slice());
            let open = Open::From(path.unwrap_or_default());
            let n_final = self.append_part((base, part), tail, width, cx, open);
            if path.is_some() {
                self.final_rows = self.final_rows.max(n_final);
            }
        }
        self.open = open;
        if is_one_paragraph { 0 } else { tail.len() as u64 }
    }

    /// Renders a part of `tail`, which begins at `base`. Returns the number of rows up to the last final one of it.
    fn append_part(
        &mut self,
        (base, part): (usize, &Part),
        tail: &str,
        width: u16,
        cx: &Cx<'_>,
        open: Open<'_>,
    ) -> usize {
        let item = part.item;
        let missing = RefCell::new(Vec::new());
        let note = |label: &str, is_short| missing.borrow_mut().push((label.to_owned(), is_short));
        let start = base + part.range.start;
        let late = self.late.as_ref().filter(|late| waits_since(late.start, start));
        let definitions = late.map_or(&self.definitions, |late| &late.definitions);
        let mut blocks = blocks::parse(&tail[part.range.clone()], definitions, note);
        if matches!(open, Open::Nothing) {
            self.note_missing(start, missing.take());
        }
        if let (Some(item), Some(Block::List(list))) = (item, blocks.first_mut()) {
            list.start = item.number;
        }
        let Drawn { mut rows, n_final, .. } = cx.blocks(&blocks, width, open);
        rows.iter_mut().for_each(|row| row.set_part(base + part.range.start));
        let (before, n_rows) = (self.rows.len(), rows.len());
        self.append_rows(rows, item.is_none_or(|item| item.is_first || item.is_spaced));
        if n_final == 0 { before } else { self.rows.len() - n_rows + n_final }
    }

    /// Takes note of the labels that nothing defines up to the part at `start`, and of which there is only the label.
    fn note_missing(&mut self, start: usize, labels: Vec<(String, bool)>) {
        let is_certain = self.late.is_none() && labels.iter().any(|(_, is_short)| !is_short);
        if is_certain && self.waiting.is_none() {
            // Rows of the part that are final have no references.
            let first_row = self.final_rows.max(self.rows.len());
            let definitions = self.definitions.clone();
            self.waiting = Some(Waiting { start, first_row, labels: HashSet::new(), definitions });
        }
        let labels = labels.into_iter().map(|(label, _)| label);
        match self.waiting.as_mut().filter(|waiting| waiting.covers(start)) {
            Some(waiting) => waiting.labels.extend(labels),
            None => self.missing.extend(labels),
        }
    }

    fn append_rows(&mut self, rows: Vec<Row>, is_spaced: bool) {
        if is_spaced && !rows.is_empty() && !self.rows.is_empty() {
            self.rows.push(Row::default());
        }
        self.rows.extend(rows);
    }

    fn open_fence(&mut self, fence: Fence, line_bytes: usize, width: u16, cx: &Cx<'_>) {
        let block = CodeBlock::new((&fence.marks(), &fence.lang), width, cx.highlighter, cx.options);
        let mut rows = Vec::new();
        block.open(cx.theme, &mut rows);
        let start = self.settled_bytes;
        rows.iter_mut().for_each(|row| row.set_part(start));
        self.append_rows(rows, true);
        self.settled_rows = self.rows.len();
        self.settled_bytes += line_bytes;
        let diagram = diagram::is_drawn(&fence.lang, cx.options).then(|| {
            let first_row = self.rows.len() - 1;
            self.undrawn.get_or_insert(first_row);
            OpenDiagram { first_row, start: self.settled_bytes }
        });
        self.fence = Some(OpenFence { fence, start, block, diagram });
    }

    /// Settles the complete lines of the open fence. Returns whether it was closed,
    /// so that the caller continues.
    fn fence_lines(&mut self, source: &str, finished: bool, width: u16, cx: &Cx<'_>) -> bool {
        let Some(mut open) = self.fence.take() else { return false };
        let (part, mut first_new) = (open.start, self.rows.len());
        while let Some(Range { start, end }) = next_line(source, self.settled_bytes, finished) {
            let line = source[start..end].trim_end_matches('\n');
            self.settled_bytes = end;
            if open.fence.closes(line) {
                if let Some(OpenDiagram { first_row, .. }) = open.diagram {
                    first_new = first_new.min(first_row);
                }
                self.close_fence(open, &source[..start], width, cx);
                self.rows[first_new..].iter_mut().for_each(|row| row.set_part(part));
                return true;
            }
            open.block.line(&open.fence.content(line), cx.theme, &mut self.rows);
            let is_too_large = |diagram: &mut OpenDiagram| diagram::is_too_large(&source[diagram.start..end]);
            if let Some(OpenDiagram { first_row, .. }) = open.diagram.take_if(is_too_large) {
                self.release_source(first_row);
            }
            self.settled_rows = self.rows.len();
        }
        let rest = source.get(self.settled_bytes..).unwrap_or_default();
        if !rest.is_empty() && !open.fence.may_close(rest) {
            open.block.preview(&open.fence.content(rest), cx.theme, &mut self.rows);
        }
        open.block.close(cx.theme, &mut self.rows);
        self.rows[first_new..].iter_mut().for_each(|row| row.set_part(part));
        self.fence = Some(open);
        false
    }

    /// Lets the rows of a diagram settle. A diagram before it may still wait for the end of the text.
    fn release_source(&mut self, first_row: usize) {
        self.undrawn = self.undrawn.filter(|undrawn| *undrawn < first_row);
    }

    /// Ends a fence whose content ends `before` its last line.
    fn close_fence(&mut self, open: OpenFence, before: &str, width: u16, cx: &Cx<'_>) {
        let drawn = open.diagram.filter(|_| cx.draws_now()).map(|OpenDiagram { first_row, start }| {
            self.release_source(first_row);
            let lines = before[start..].lines().map(|line| open.fence.content(line) + "\n");
            (first_row, cx.diagram(&lines.collect::<String>(), width))
        });
        match drawn {
            Some((first_row, Diagram::Drawn(rows))) => {
                self.rows.truncate(first_row);
                self.rows.extend(rows);
            }
            Some((first_row, Diagram::Source(hint))) => {
                open.block.close(cx.theme, &mut self.rows);
                self.rows[first_row..].iter_mut().for_each(Row::stand_in);
                self.rows.extend(hint);
            }
            None => open.block.close(cx.theme, &mut self.rows),
        }
        self.settled_rows = self.rows.len();
    }
}

/// Appends `text` to `out`, with other line breaks as line feeds. `after_cr` is whether the text before it ends in
/// `\r`.
pub(super) fn with_line_feeds(text: &str, after_cr: &mut bool, out: &mut String) {
    for c in text.chars() {
        let joined = std::mem::replace(after_cr, c == '\r') && c == '\n';
        match c {
            '\n' if joined => {}
            '\r' => out.push('\n'),
            c => out.push(c),
        }
    }
}

/// Whether the last of these complete lines is blank.
fn ends_in_blank_line(text: &str) -> bool {
    let above = text.strip_suffix('\n').unwrap_or_default();
    above.trim_end_matches([' ', '\t']).ends_with('\n')
}

/// Whether `text` is a paragraph, without parsing it: one line that begins with a letter.
fn is_line_of_prose(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_alphabetic) && !text.contains('\n')
}

/// Whether the end of `text` is a row of a table, with or without a part of the line that makes it the head.
fn may_be_head(text: &str) -> bool {
    let mut lines = text
        .rsplit('\n')
        .map(|line| line.trim_start_matches(|c: char| " >-*+.)".contains(c) || c.is_ascii_digit()));
    let last = lines.next().unwrap_or_default();
    let is_rule = last.chars().all(|c| matches!(c, '|' | ':' | '-' | ' ' | '\t' | '\r'));
    last.starts_with('|') || is_rule && lines.next().is_some_and(|above| above.starts_with('|'))
}

/// The next complete line with its end; an incomplete last line counts if the text is finished.
fn next_line(source: &str, from: usize, finished: bool) -> Option<Range<usize>> {
    let rest = source.get(from..)?;
    match rest.find('\n') {
        Some(at) => Some(from..from + at + 1),
        None if finished && !rest.is_empty() => Some(from..source.len()),
        None => None,
    }
}

/// The start of a block's paragraph: the first of the definitions directly
/// above it, without a blank line between.
fn paragraph_start(text: &str, block_start: usize, definition_starts: impl Iterator<Item = usize>) -> usize {
    let is_right_above = |start: &usize| {
        let between = text.get(*start..block_start);
        between
            .is_some_and(|between| !between.is_empty() && between.lines().all(|line| !line.trim().is_empty()))
    };
    definition_starts.filter(is_right_above).min().unwrap_or(block_start)
}
