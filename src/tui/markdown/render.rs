//! Renders blocks as rows.

use std::cell::RefCell;

use ratatui::style::{Modifier, Style};

use super::super::text::{LinkTarget, Row, Run, Wrap, linked_runs, sanitize, visible_name, width};
use super::super::theme::{Theme, Token};
use super::blocks::{self, Block, Inline, Item, ItemBlock, List};
use super::code::CodeBlock;
use super::diagram::{self, Diagram, DiagramTiming, Drawings};
use super::highlight::Highlighter;
use super::table;

/// Options for rendering Markdown.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkdownOptions {
    /// The base style: the colour of the text, its background, italics.
    pub base: Style,
    /// Whether links are clickable; otherwise their address follows in brackets.
    pub links: bool,
    /// Prefix of each line of code.
    pub code_indent: String,
    /// When Mermaid diagrams are drawn.
    pub mermaid: DiagramTiming,
}

impl Default for MarkdownOptions {
    fn default() -> Self {
        Self {
            base: Style::new(),
            links: false,
            code_indent: "  ".to_owned(),
            mermaid: DiagramTiming::default(),
        }
    }
}

/// The inputs of rendering other than the text.
pub(super) struct Cx<'a> {
    pub(super) theme: &'a Theme,
    pub(super) highlighter: &'a Highlighter,
    pub(super) options: &'a MarkdownOptions,
    /// Whether no more text arrives.
    pub(super) is_finished: bool,
    pub(super) drawings: RefCell<Drawings>,
}

/// Which of some blocks text may still be added to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Open<'a> {
    Nothing,
    /// Those from the place on that [`super::blocks::open_path`] returned; all if it is empty.
    From(&'a [usize]),
}

impl Open<'_> {
    /// The same within the block at `block_idx`.
    fn within(self, block_idx: usize) -> Self {
        match self {
            Self::From([open, ..]) if block_idx < *open => Self::Nothing,
            Self::From([open, rest @ ..]) if block_idx == *open => Self::From(rest),
            Self::From(_) => Self::From(&[]),
            Self::Nothing => Self::Nothing,
        }
    }
}

/// Rows, of which the first may be final.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) rows: Vec<Row>,
    /// Number of leading rows that nothing can change.
    pub(super) n_final: usize,
    /// Whether rows after them may change, or may be added.
    is_open: bool,
}

impl Drawn {
    /// Rows that are final together.
    fn whole(rows: Vec<Row>, open: Open<'_>) -> Self {
        match open {
            Open::Nothing => Self { n_final: rows.len(), rows, is_open: false },
            Open::From(_) => Self { n_final: 0, rows, is_open: true },
        }
    }

    /// Appends rows, after a blank one if both have rows and `is_spaced`.
    fn append(&mut self, more: Self, is_spaced: bool) {
        if is_spaced && !self.rows.is_empty() && !more.rows.is_empty() {
            self.rows.push(Row::default());
        }
        if !self.is_open {
            if more.n_final > 0 {
                self.n_final = self.rows.len() + more.n_final;
            }
            self.is_open = more.is_open;
        }
        self.rows.extend(more.rows);
    }
}

/// Prefixes are left out if they would leave less room for text.
const MIN_TEXT: u16 = 6;

impl Cx<'_> {
    fn style(&self, token: Token) -> Style {
        self.options.base.patch(self.theme.style(token))
    }

    /// Blocks separated by blank rows. Blocks without rows, such as
    /// comments, leave no gap.
    pub(super) fn blocks(&self, blocks: &[Block], width: u16, open: Open<'_>) -> Drawn {
        self.blocks_on(blocks, width, self.options.base, open)
    }

    fn blocks_on(&self, blocks: &[Block], width: u16, base: Style, open: Open<'_>) -> Drawn {
        let mut drawn = Drawn::default();
        for (block_idx, block) in blocks.iter().enumerate() {
            drawn.append(self.block(block, width, base, open.within(block_idx)), true);
        }
        drawn
    }

    fn block(&self, block: &Block, width: u16, base: Style, open: Open<'_>) -> Drawn {
        let rows = match block {
            Block::Heading { level, inlines } => self.heading(*level, inlines, width),
            Block::Paragraph(inlines) => self.wrap_inlines(inlines, width, base),
            Block::Code { marks, lang, text, is_closed } => {
                return self.code((marks, lang), (text, *is_closed), width, open);
            }
            Block::Quote(blocks) => return self.quote(blocks, width, open),
            Block::Footnote { label, blocks } => return self.footnote(label, blocks, width, base, open),
            Block::List(list) => return self.list(list, width, base, open),
            Block::Table(table) => table::render(self, table, width, base),
            Block::Rule => vec![Row::styled("─".repeat(usize::from(width.min(80))), self.style(Token::MdHr))],
            Block::Html(html) => self.html(html, width, base),
        };
        Drawn::whole(rows, open)
    }

    fn heading(&self, level: u8, inlines: &[Inline], width: u16) -> Vec<Row> {
        let mut style = self.style(Token::MdHeading).add_modifier(Modifier::BOLD);
        if level == 1 {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        let mut runs = Vec::new();
        if level >= 3 {
            runs.push(Run::new(format!("{} ", "#".repeat(usize::from(level))), style));
        }
        runs.extend(self.runs(inlines, style));
        wrap_runs(&runs, width)
    }

    fn code(
        &self,
        (marks, lang): (&str, &str),
        (text, is_closed): (&str, bool),
        width: u16,
        open: Open<'_>,
    ) -> Drawn {
        let is_diagram = diagram::is_drawn(lang, self.options);
        let drawn = (is_diagram && is_closed && self.draws_now()).then(|| self.diagram(text, width));
        if let Some(Diagram::Drawn(rows)) = drawn {
            return Drawn::whole(rows, open);
        }
        let mut rows = Vec::new();
        let mut block = CodeBlock::new((marks, lang), width, self.highlighter, self.options);
        block.open(self.theme, &mut rows);
        let n_final_lines = match open {
            Open::From([n_lines, ..]) if !is_diagram => Some(*n_lines),
            _ => None,
        };
        let mut n_final = n_final_lines.map_or(0, |_| rows.len());
        for (line_idx, line) in text.lines().enumerate() {
            block.line(line, self.theme, &mut rows);
            if n_final_lines.is_some_and(|n_lines| line_idx < n_lines) {
                n_final = rows.len();
            }
        }
        block.close(self.theme, &mut rows);
        if is_diagram && !diagram::is_too_large(text) {
            rows.iter_mut().for_each(Row::stand_in);
        }
        if let Some(Diagram::Source(hint)) = drawn {
            rows.extend(hint);
        }
        // A diagram that is drawn at the end replaces its source.
        let is_postponed = is_diagram && is_closed && !self.draws_now();
        if matches!(open, Open::Nothing) && !is_postponed {
            return Drawn::whole(rows, open);
        }
        Drawn { rows, n_final, is_open: true }
    }

    /// Whether a diagram whose source is complete is drawn already.
    pub(super) fn draws_now(&self) -> bool {
        self.is_finished || self.options.mermaid == DiagramTiming::WhenFenceCloses
    }

    pub(super) fn diagram(&self, source: &str, width: u16) -> Diagram {
        self.drawings.borrow_mut().draw(source, width, self.theme, self.options)
    }

    fn quote(&self, blocks: &[Block], width: u16, open: Open<'_>) -> Drawn {
        let (prefix, inner) = prefix_room("│ ", width);
        let mut drawn = self.blocks_on(blocks, inner, self.style(Token::MdQuote), open);
        for row in &mut drawn.rows {
            row.prefix(prefix, self.style(Token::MdQuoteBorder), "> ");
            row.prefix_copied_lines("> ");
        }
        drawn
    }

    /// The note beside its label, which looks like the references to it.
    fn footnote(&self, label: &str, blocks: &[Block], width: u16, base: Style, open: Open<'_>) -> Drawn {
        let label = sanitize(label).replace('\n', " ");
        let reference = blocks::reference(&label);
        let colon = if reference.starts_with("[^") { ":" } else { "" };
        let mark = format!("{reference}{colon} ");
        let (mark, inner) = prefix_room(&mark, width);
        let mut drawn = self.blocks_on(blocks, inner, base, Open::Nothing);
        if drawn.rows.is_empty() {
            drawn = Drawn::whole(vec![Row::default()], open);
        }
        if let Open::From(_) = open {
            (drawn.n_final, drawn.is_open) = (0, true);
        }
        let blank = " ".repeat(super::super::text::width(mark));
        let first_copied = first_copied(&drawn.rows);
        for (row_idx, row) in drawn.rows.iter_mut().enumerate() {
            let is_first = row_idx == 0 || row_idx == first_copied;
            let copied = if is_first { format!("[^{label}]: ") } else { "    ".to_owned() };
            if row_idx == 0 {
                row.prefix(mark, self.style(Token::MdListBullet), &copied);
            } else if !row.line.spans.is_empty() {
                row.prefix(blank.clone(), Style::new(), &copied);
            }
            row.prefix_copied_lines("    ");
        }
        drawn
    }

    /// Blank rows are where the source has blank lines, and numbers are not aligned: neither
    /// depends on later items, so a list that arrives looks as when it is complete.
    fn list(&self, list: &List, width: u16, base: Style, open: Open<'_>) -> Drawn {
        let mut drawn = Drawn::default();
        for (item_idx, item) in list.items.iter().enumerate() {
            let bullet = match list.start {
                Some(start) => format!("{}. ", start.saturating_add(item_idx as u64)),
                None => "- ".to_owned(),
            };
            let rows = self.item(item, &bullet, width, base, open.within(item_idx));
            drawn.append(rows, item.is_spaced);
        }
        drawn
    }

    fn item(&self, item: &Item, bullet: &str, width: u16, base: Style, open: Open<'_>) -> Drawn {
        let task = item.done.map_or("", |done| if done { "[x] " } else { "[ ] " });
        let marked = [bullet, task].concat();
        // What follows the text of a task is below its bullet: further right it would not belong to it.
        let ((mark, text_width), (bullet, inner)) = (prefix_room(&marked, width), prefix_room(bullet, width));
        let mut drawn = Drawn::default();
        let mut n_text_rows = 0;
        let mut is_spaced = false;
        for (block_idx, ItemBlock { is_spaced: is_below_blank, block }) in item.blocks.iter().enumerate() {
            let is_first = drawn.rows.is_empty();
            let width = if is_first { text_width } else { inner };
            let more = self.block(block, width, base, open.within(block_idx));
            // A list is next to the text it belongs to.
            is_spaced |= *is_below_blank && !matches!(block, Block::List(_));
            let is_spaced = !more.rows.is_empty() && std::mem::take(&mut is_spaced);
            drawn.append(more, is_spaced);
            if is_first {
                n_text_rows = drawn.rows.len();
            }
        }
        if drawn.rows.is_empty() {
            drawn = Drawn::whole(vec![Row::default()], open);
        }
        // An item without a mark of its own is what remains of deeper ones.
        let written = if item.mark.is_empty() { marked.clone() } else { [&*item.mark, task].concat() };
        let below = |text: &str| " ".repeat(super::super::text::width(text));
        let below_written = below(&item.mark);
        let first_copied = first_copied(&drawn.rows);
        for (row_idx, row) in drawn.rows.iter_mut().enumerate() {
            let copied = if row_idx == 0 || row_idx == first_copied { &written } else { &below_written };
            if row_idx == 0 {
                row.prefix(mark, self.style(Token::MdListBullet), copied);
            } else if !row.line.spans.is_empty() {
                row.prefix(below(if row_idx < n_text_rows { mark } else { bullet }), Style::new(), copied);
            }
            row.prefix_copied_lines(&below_written);
        }
        drawn
    }

    fn html(&self, html: &str, width: u16, base: Style) -> Vec<Row> {
        let text = without_comments(html);
        let text = sanitize(text.trim_end());
        if text.trim().is_empty() {
            return Vec::new();
        }
        Wrap::new(width).text(&text, base)
    }

    pub(super) fn wrap_inlines(&self, inlines: &[Inline], width: u16, base: Style) -> Vec<Row> {
        wrap_runs(&self.runs(inlines, base), width)
    }

    /// Inlines as runs with their final styles.
    pub(super) fn runs(&self, inlines: &[Inline], base: Style) -> Vec<Run> {
        // Code without a colour of its own keeps its marks.
        let is_plain = self.theme.color(Token::MdCode).is_none();
        let mut runs = Vec::new();
        for inline in inlines {
            let target = inline.link.as_deref().filter(|_| self.options.links).and_then(LinkTarget::new);
            if inline.look.address && !inline.look.is_needed && target.is_some() {
                continue;
            }
            let mut style = base;
            if inline.look.code {
                style = style.patch(self.theme.style(Token::MdCode));
            }
            if inline.look.address {
                style = style.patch(self.theme.style(Token::MdLinkUrl));
            } else if inline.link.is_some() {
                style = style.patch(self.theme.style(Token::MdLink)).add_modifier(Modifier::UNDERLINED);
            }
            if inline.look.bold {
                style = style.add_modifier(Modifier::BOLD);
            }
            if inline.look.italic {
                style = style.add_modifier(Modifier::ITALIC);
            }
            if inline.look.strike {
                style = style.add_modifier(Modifier::CROSSED_OUT);
            }
            let is_address = inline.look.address || inline.link.as_ref() == Some(&inline.text);
            let text = if is_address { visible_name(&inline.text) } else { sanitize(&inline.text) };
            let text = if inline.look.code && is_plain { format!("`{text}`") } else { text.into_owned() };
            if inline.link.is_none() && self.options.links && !inline.look.code {
                runs.extend(linked_runs(&text, style, style.patch(self.theme.style(Token::MdLink))));
            } else {
                runs.push(Run { text, style, link: target, source: None });
            }
        }
        runs
    }
}

/// The prefix and the remaining width, or no prefix if too little would remain.
fn prefix_room(prefix: &str, total: u16) -> (&str, u16) {
    let cells = u16::try_from(width(prefix)).unwrap_or(u16::MAX);
    match total.checked_sub(cells) {
        Some(left) if left >= MIN_TEXT => (prefix, left),
        _ => ("", total),
    }
}

/// The first row that is copied: a table begins with its frame.
fn first_copied(rows: &[Row]) -> usize {
    rows.iter().position(|row| !row.is_frame()).unwrap_or(0)
}

/// Wraps runs whose text may contain line breaks.
pub(super) fn wrap_runs(runs: &[Run], width: u16) -> Vec<Row> {
    wrap_lines(runs, &Wrap::new(width))
}

/// The same with indents; a line break goes on with that of the rest.
pub(super) fn wrap_lines(runs: &[Run], first: &Wrap) -> Vec<Row> {
    let rest = Wrap { width: first.width, first: first.rest.clone(), rest: first.rest.clone() };
    let mut rows = Vec::new();
    let mut line: Vec<Run> = Vec::new();
    let mut wrap = first;
    for run in runs {
        for (part_idx, part) in run.text.split('\n').enumerate() {
            if part_idx > 0 {
                rows.extend(wrap.runs(&line));
                line.clear();
                wrap = &rest;
            }
            let part = if line.is_empty() { part.trim_start() } else { part };
            if !part.is_empty() {
                line.push(Run { text: part.to_owned(), ..run.clone() });
            }
        }
    }
    if !line.is_empty() || rows.is_empty() {
        rows.extend(wrap.runs(&line));
    }
    rows
}

fn without_comments(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, comment)) = rest.split_once("<!--") {
        text.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}
