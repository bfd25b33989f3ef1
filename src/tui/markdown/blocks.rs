//! Parses Markdown text into blocks and inlines.
//!
//! Wraps the event stream of `pulldown-cmark` (`CommonMark` with tables, task
//! lists and strikethrough) into a tree that rendering can measure. Containers
//! nested deeper than [`MAX_DEPTH`] are flattened, so no text can exhaust the
//! stack.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{
    Alignment, BrokenLink, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};
use reqwest::Url;

use super::super::text::without_controls;
use super::formulas::{Formula, Formulas, Piece};
use crate::util::flanks::{Marked, without_marks};

const MAX_DEPTH: usize = 16;

/// Targets of link references by label, folded to lower case.
pub(super) type Definitions = HashMap<String, String>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    Heading {
        level: u8,
        inlines: Vec<Inline>,
    },
    Paragraph(Vec<Inline>),
    Code {
        /// The marks of its fence.
        marks: String,
        lang: String,
        text: String,
        /// Whether a fence ends it, not just the end of what it is in.
        is_closed: bool,
    },
    Quote(Vec<Self>),
    /// The text of a note that is referred to by its label.
    Footnote {
        label: String,
        blocks: Vec<Self>,
    },
    List(List),
    Table(Table),
    Rule,
    Html(String),
}

impl Block {
    /// Adds where the block, the last one, is open to the path to it.
    fn open_path(&self, path: &mut Vec<usize>) {
        match self {
            Self::Quote(blocks) => {
                if let Some(last) = blocks.last() {
                    path.push(blocks.len() - 1);
                    last.open_path(path);
                }
            }
            Self::List(List { items, .. }) => {
                let Some(item) = items.last() else { return };
                path.push(items.len() - 1);
                if let Some(last) = item.blocks.last() {
                    path.push(item.blocks.len() - 1);
                    last.block.open_path(path);
                }
            }
            // Blank lines at the end may turn out to be behind the block.
            Self::Code { text, .. } => path.push(text.trim_end().lines().count()),
            Self::Heading { .. }
            | Self::Paragraph(_)
            | Self::Footnote { .. }
            | Self::Table(_)
            | Self::Rule
            | Self::Html(_) => {}
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    /// The first number of an ordered list.
    pub(super) start: Option<u64>,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Item {
    /// The bullet or number as it was written, with the blanks after it.
    pub(super) mark: String,
    /// Whether a task is done; `None` if the item is not a task.
    pub(super) done: Option<bool>,
    /// Whether a blank line is between it and the item before it.
    pub(super) is_spaced: bool,
    pub(super) blocks: Vec<ItemBlock>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ItemBlock {
    /// Whether a blank line is between it and the block before it.
    pub(super) is_spaced: bool,
    pub(super) block: Block,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The line below the head, as it was written.
    pub(super) rule: String,
    /// The first row is the header.
    pub(super) rows: Vec<TableRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableRow {
    /// The line, as it was written.
    pub(super) source: String,
    pub(super) cells: Vec<Vec<Inline>>,
}

/// Text with one style. A line break is the text `"\n"`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Inline {
    pub(super) text: String,
    pub(super) look: Look,
    pub(super) link: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) code: bool,
    /// The ` (address)` after a link, for terminals without links.
    pub(super) address: bool,
    /// Whether that is for all terminals.
    pub(super) is_needed: bool,
}

/// The blocks of `text`; `on_missing` gets the labels that nothing defines, and whether it is all in brackets that
/// there is. Such text may just be in brackets.
pub(super) fn parse(text: &str, definitions: &Definitions, on_missing: impl Fn(&str, bool)) -> Vec<Block> {
    parse_with(text, |label, is_short| {
        let target = definitions.get(label).cloned();
        if target.is_none() {
            on_missing(label, is_short);
        }
        target
    })
}

/// Where `text`, which consists of complete lines and is one part, is still open: the index of the
/// last block, then, as long as it contains blocks, the index of the last one in it. Items count
/// as blocks, and lines of code. Later text changes nothing before that place. `None` if that is
/// not certain, because a definition in later text could be what brackets refer to.
pub(super) fn open_path(text: &str) -> Option<Vec<usize>> {
    let has_references = Cell::new(false);
    let note = |_: &str, _: bool| {
        has_references.set(true);
        None
    };
    let blocks = parse_with(text, note);
    let mut path = Vec::new();
    if let Some(last) = blocks.last() {
        path.push(blocks.len() - 1);
        last.open_path(&mut path);
    }
    (!has_references.get()).then_some(path)
}

/// `target` returns what a label refers to that the text does not define, and gets whether there is only the label.
fn parse_with(text: &str, target: impl Fn(&str, bool) -> Option<String>) -> Vec<Block> {
    let resolve = |link: BrokenLink<'_>| {
        let is_short = matches!(link.link_type, LinkType::Shortcut | LinkType::ShortcutUnknown);
        Some((CowStr::from(target(&fold(&link.reference), is_short)?), CowStr::from("")))
    };
    let mut builder = Builder::default();
    let formulas = Formulas::new(text, options(text));
    let marked = Marked::new(&formulas.text);
    let text = &*marked.text;
    let parser = Parser::new_with_broken_link_callback(text, options(text), Some(resolve));
    for (event, range) in parser.into_offset_iter() {
        if begins_block(&event) {
            let is_list = matches!(event, Event::Start(Tag::List(_) | Tag::Item));
            let at = if is_list { mark_at(text, range.start) } else { range.start };
            builder.block_begins(text, at);
            if matches!(event, Event::Start(Tag::Item)) {
                builder.item_mark = item_mark(text.get(at..).unwrap_or_default());
            }
        }
        if let Event::Start(Tag::CodeBlock(_)) = event {
            let source = text.get(range).unwrap_or_default();
            (builder.marks, builder.is_closed) = (super::code::marks(source), super::code::is_closed(source));
        } else if let Event::Start(Tag::Table(_) | Tag::TableHead | Tag::TableRow) = event {
            let line = table_line(&event, text, range, builder.open.is_empty());
            builder.table_line = formulas.written(&line).into_owned();
        }
        match event {
            Event::Text(text) => builder.pieces(formulas.pieces(&text)),
            event => builder.event(event),
        }
    }
    builder.finish()
}

/// The line of a row of a table, or, where the table begins, the one below its head. Blanks before it are part
/// of it, unless a list or quote is around it, whose own they may be.
fn table_line(event: &Event<'_>, text: &str, range: Range<usize>, is_alone: bool) -> String {
    let (before, source) = (text.get(..range.start).unwrap_or_default(), text.get(range).unwrap_or_default());
    let mut lines = source.lines();
    let line = match event {
        Event::Start(Tag::Table(_)) => lines.nth(1).unwrap_or_default(),
        _ => lines.next().unwrap_or_default(),
    };
    let line = match event {
        Event::Start(Tag::Table(_)) if is_alone => line.to_owned(),
        Event::Start(Tag::Table(_)) => line.trim_start_matches(['>', ' ', '\t']).to_owned(),
        _ if is_alone => [&before[before.trim_end_matches([' ', '\t']).len()..], line].concat(),
        _ => line.to_owned(),
    };
    without_controls(&without_marks(&line))
}

/// Whether a block or an item begins. Paragraphs of lists without blank lines have no event.
fn begins_block(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Rule
            | Event::Start(
                Tag::Paragraph
                    | Tag::Heading { .. }
                    | Tag::BlockQuote(_)
                    | Tag::CodeBlock(_)
                    | Tag::HtmlBlock
                    | Tag::FootnoteDefinition(_)
                    | Tag::List(_)
                    | Tag::Item
                    | Tag::Table(_)
            )
    )
}

/// Where the mark of a list or item is. The parser counts a tab before it as columns, so its start may be in the
/// line above.
fn mark_at(text: &str, start: usize) -> usize {
    let is_mark = |c: char| matches!(c, '-' | '+' | '*') || c.is_ascii_digit();
    let is_before_mark = |at: &usize| {
        text.get(*at..).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(is_mark))
    };
    (start..=start + 3).find(is_before_mark).unwrap_or(start)
}

/// The bullet or number that `text` begins with, and the blanks between it and the text of its item.
fn item_mark(text: &str) -> String {
    /// More of them begin code.
    const MAX_BLANKS: usize = 4;
    let line = text.lines().next().unwrap_or_default().trim_start_matches([' ', '\t']);
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = number.strip_prefix(['-', '+', '*', '.', ')']).unwrap_or(number);
    let n_blanks = rest.len() - rest.trim_start_matches(' ').len();
    let is_usual = n_blanks <= MAX_BLANKS && n_blanks < rest.len();
    let n_blanks = if is_usual { n_blanks.max(1) } else { 1 };
    [&line[..line.len() - rest.len()], &" ".repeat(n_blanks)].concat()
}

/// Whether the line above the one at `at` is blank, apart from marks of quotes.
pub(super) fn is_below_blank(text: &str, at: usize) -> bool {
    let above = text.get(..at).and_then(|before| before.rsplit_once('\n')).map(|(above, _)| above);
    let line = above.map(|above| above.rsplit('\n').next().unwrap_or_default());
    line.is_some_and(|line| line.trim_start_matches([' ', '\t', '>']).is_empty())
}

/// What refers to a footnote. The parser takes any `[^…]` for one, because its note may follow; if it is no
/// number, it may negate a class of characters, as `[^aeiou]` does, so it is shown as it is written.
pub(super) fn reference(label: &str) -> String {
    let is_number = !label.is_empty() && label.chars().all(|c| c.is_ascii_digit());
    format!("[{}{label}]", if is_number { "" } else { "^" })
}

pub(super) fn fold(label: &str) -> String {
    without_marks(label).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

pub(super) fn options(text: &str) -> Options {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    // With the other kind of footnotes, a reference is one only if its definition follows: a text that
    // arrives would change where it has settled.
    if nests_footnotes(text) { options } else { options | Options::ENABLE_OLD_FOOTNOTES }
}

/// Whether footnotes are defined in footnotes deeper than they are drawn. The parser needs memory for each of them
/// in all others: gigabytes for ten kilobytes of text.
fn nests_footnotes(text: &str) -> bool {
    let is_deep = |line: &str| line.matches("]:").nth(MAX_DEPTH).is_some();
    text.contains("[^") && text.lines().any(is_deep)
}

#[derive(Debug)]
struct Open {
    container: Container,
    /// Whether a blank line is above its next block or item.
    is_spaced: bool,
}

#[derive(Debug)]
enum Container {
    Quote(Vec<Block>),
    Footnote(String, Vec<Block>),
    List(List),
    Item(Item),
}

#[derive(Debug)]
enum Leaf {
    Heading(u8),
    Paragraph,
    Cell,
}

#[derive(Debug, Default)]
struct Builder {
    root: Vec<Block>,
    open: Vec<Open>,
    /// Per container in the text: whether it is in `open` or was flattened.
    kept: Vec<bool>,
    leaf: Option<Leaf>,
    inlines: Vec<Inline>,
    code: Option<(String, String)>,
    /// The marks of the fence of the code block that is read.
    marks: String,
    /// Whether the code block that was opened last has an end.
    is_closed: bool,
    html: Option<String>,
    table: Option<Table>,
    /// The mark of the item that begins.
    item_mark: String,
    /// The line of the table or the row that begins.
    table_line: String,
    bold: usize,
    italic: usize,
    strike: usize,
    /// The target of each open link, and where its text begins.
    links: Vec<(String, usize)>,
    /// Open links in more than [`MAX_DEPTH`] others. Only their text is shown: each of them would
    /// repeat the addresses of all within it.
    n_deep_links: usize,
    /// Whether the line ends before the next inline.
    ends_line: bool,
}

impl Builder {
    /// Notes whether a blank line is above the block or item that begins at `at` in `text`.
    fn block_begins(&mut self, text: &str, at: usize) {
        self.close_leaf();
        let Some(open) = self.open.last_mut() else { return };
        // Only the first one can be on the line of its container's mark, so lines are short here.
        let is_first = match &open.container {
            Container::Quote(_) | Container::Footnote(..) => return,
            Container::List(list) => list.items.is_empty(),
            Container::Item(item) => item.blocks.is_empty(),
        };
        open.is_spaced |= !is_first && is_below_blank(text, at);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // Formulas are found before the text is parsed.
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&without_marks(&text));
            }
            Event::Code(text) => self.push_inline(&without_marks(&text), true),
            Event::Html(html) => match &mut self.html {
                Some(block) => block.push_str(&without_marks(&html)),
                None => self.push_inline(&without_marks(&html), false),
            },
            Event::InlineHtml(html) => self.inline_html(&without_marks(&html)),
            // A line of its own, as it was written: models break lines of addresses, steps and states without the two
            // blanks that Markdown wants for that.
            Event::SoftBreak | Event::HardBreak => self.push_inline("\n", false),
            Event::Rule => self.add(Block::Rule),
            Event::TaskListMarker(done) => {
                if let Some(Open { container: Container::Item(item), .. }) = self.open.last_mut() {
                    item.done = Some(done);
                }
            }
            Event::FootnoteReference(label) => {
                self.push_inline(&reference(&without_marks(&label)), false);
            }
        }
    }

    fn pieces(&mut self, pieces: Vec<Piece<'_>>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(&without_marks(text)),
                Piece::Formula(formula) if formula.is_display => self.display_formula(formula),
                Piece::Formula(formula) => self.push_inline(&without_marks(&formula.shown), false),
            }
        }
    }

    /// A formula on lines of its own.
    fn display_formula(&mut self, formula: &Formula) {
        let text = without_marks(&formula.shown);
        let is_first = self.inlines.last().is_none_or(|last| last.text.ends_with('\n'));
        self.push_inline(&format!("{}{text}", if is_first { "" } else { "\n" }), false);
        self.ends_line = true;
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.close_leaf();
                self.leaf = Some(Leaf::Paragraph);
            }
            Tag::Heading { level, .. } => {
                self.close_leaf();
                self.leaf = Some(Leaf::Heading(level_number(level)));
            }
            Tag::BlockQuote(_) => self.open(Container::Quote(Vec::new())),
            Tag::FootnoteDefinition(label) => {
                self.open(Container::Footnote(without_marks(&label).into_owned(), Vec::new()));
            }
            Tag::List(start) => self.open(Container::List(List { start, items: Vec::new() })),
            Tag::Item => {
                let mark = std::mem::take(&mut self.item_mark);
                self.open(Container::Item(Item { mark, ..Item::default() }));
            }
            Tag::CodeBlock(kind) => {
                self.close_leaf();
                let lang = match kind {
                    CodeBlockKind::Fenced(info) => super::code::language(&without_marks(&info)).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((lang, String::new()));
            }
            Tag::HtmlBlock => {
                self.close_leaf();
                self.html = Some(String::new());
            }
            Tag::Table(alignments) => {
                self.close_leaf();
                let rule = std::mem::take(&mut self.table_line);
                self.table = Some(Table { alignments, rule, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                let source = std::mem::take(&mut self.table_line);
                if let Some(table) = &mut self.table {
                    table.rows.push(TableRow { source, cells: Vec::new() });
                }
            }
            Tag::TableCell => self.leaf = Some(Leaf::Cell),
            Tag::Emphasis => self.italic += 1,
            Tag::Strong => self.bold += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { .. } | Tag::Image { .. } if self.links.len() == MAX_DEPTH => self.n_deep_links += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((without_marks(&dest_url).into_owned(), self.inlines.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => self.close_leaf(),
            TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition | TagEnd::List(_) | TagEnd::Item => {
                self.close();
            }
            TagEnd::CodeBlock => {
                if let Some((lang, text)) = self.code.take() {
                    let marks = std::mem::take(&mut self.marks);
                    self.add(Block::Code { marks, lang, text, is_closed: self.is_closed });
                }
            }
            TagEnd::HtmlBlock => {
                if let Some(html) = self.html.take() {
                    self.add(Block::Html(html));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.add(Block::Table(table));
                }
            }
            TagEnd::TableCell => {
                (self.leaf, self.ends_line) = (None, false);
                let inlines = std::mem::take(&mut self.inlines);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.cells.push(inlines);
                }
            }
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image if self.n_deep_links > 0 => self.n_deep_links -= 1,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else {
            self.push_inline(text, false);
        }
    }

    fn push_inline(&mut self, text: &str, code: bool) {
        let ends_line = std::mem::take(&mut self.ends_line);
        let text = if ends_line { text.trim_start() } else { text };
        if ends_line && text.is_empty() {
            // What follows a formula on lines of its own begins another line.
            self.ends_line = true;
            return;
        }
        if ends_line {
            self.push_inline("\n", false);
        }
        if self.leaf.is_none() {
            self.leaf = Some(Leaf::Paragraph);
        }
        let look = Look {
            bold: self.bold > 0,
            italic: self.italic > 0,
            strike: self.strike > 0,
            code,
            ..Look::default()
        };
        let link = self.links.last().map(|(target, _)| target.clone());
        match self.inlines.last_mut() {
            Some(last) if last.look == look && last.link == link => last.text.push_str(text),
            _ => self.inlines.push(Inline { text: text.to_owned(), look, link }),
        }
    }

    fn inline_html(&mut self, html: &str) {
        let tag = html.trim_matches(['<', '>', '/', ' ']);
        if tag.eq_ignore_ascii_case("br") {
            self.push_inline("\n", false);
        } else if !html.starts_with("<!--") {
            self.push_inline(html, false);
        }
    }

    fn end_link(&mut self) {
        let Some((target, first)) = self.links.pop() else { return };
        let shown: String = self.inlines.iter().skip(first).map(|inline| inline.text.as_str()).collect();
        if target.is_empty() || shown == target || target.strip_prefix("mailto:") == Some(shown.as_str()) {
            return;
        }
        let text = if shown.is_empty() { target.clone() } else { format!(" ({target})") };
        let is_needed = is_other_address(&shown, &target);
        let look = Look { address: !shown.is_empty(), is_needed, ..Look::default() };
        self.inlines.push(Inline { text, look, link: Some(target) });
    }

    fn open(&mut self, container: Container) {
        self.close_leaf();
        let is_item = |container: &Container| matches!(container, Container::Item(_));
        let n_open = self.open.iter().filter(|open| !is_item(&open.container)).count();
        let keep = n_open < MAX_DEPTH || is_item(&container);
        // An item needs its list: both are kept or neither.
        let is_in_list = matches!(self.open.last(), Some(Open { container: Container::List(_), .. }));
        let keep = keep && (!is_item(&container) || is_in_list);
        self.kept.push(keep);
        if keep {
            self.open.push(Open { container, is_spaced: false });
        }
    }

    fn close(&mut self) {
        self.close_leaf();
        if self.kept.pop() != Some(true) {
            return;
        }
        match self.open.pop().map(|open| open.container) {
            Some(Container::Quote(blocks)) => self.add(Block::Quote(blocks)),
            Some(Container::Footnote(label, blocks)) => self.add(Block::Footnote { label, blocks }),
            Some(Container::List(list)) => self.add(Block::List(list)),
            Some(Container::Item(item)) => self.add_item(item),
            None => {}
        }
    }

    fn close_leaf(&mut self) {
        self.ends_line = false;
        let Some(leaf) = self.leaf.take() else { return };
        let inlines = std::mem::take(&mut self.inlines);
        match leaf {
            Leaf::Heading(level) => self.add(Block::Heading { level, inlines }),
            Leaf::Paragraph if inlines.is_empty() => {}
            Leaf::Paragraph => self.add(Block::Paragraph(inlines)),
            Leaf::Cell => {}
        }
    }

    fn add(&mut self, block: Block) {
        self.close_leaf();
        let Some(Open { container, is_spaced }) = self.open.last_mut() else { return self.root.push(block) };
        match container {
            Container::Quote(blocks) | Container::Footnote(_, blocks) => blocks.push(block),
            Container::Item(item) => {
                item.blocks.push(ItemBlock { is_spaced: std::mem::take(is_spaced), block });
            }
            Container::List(_) => {
                let blocks = vec![ItemBlock { is_spaced: false, block }];
                self.add_item(Item { blocks, ..Item::default() });
            }
        }
    }

    fn add_item(&mut self, item: Item) {
        if let Some(Open { container: Container::List(list), is_spaced }) = self.open.last_mut() {
            list.items.push(Item { is_spaced: std::mem::take(is_spaced), ..item });
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.close_leaf();
        while !self.kept.is_empty() {
            self.close();
        }
        self.root
    }
}

/// Whether the text of a link reads like the address of another host than the one it leads to.
fn is_other_address(shown: &str, target: &str) -> bool {
    /// Names that end otherwise are more often those of files, such as `main.rs`.
    const DOMAINS: [&str; 10] = ["com", "org", "net", "edu", "gov", "io", "dev", "app", "co", "ai"];
    let shown = shown.trim();
    let name = shown.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let is_name = name.rsplit_once('.').is_some_and(|(_, domain)| DOMAINS.contains(&domain));
    let address = if shown.contains("://") {
        shown.to_owned()
    } else if is_name || name.starts_with("www.") {
        format!("https://{shown}")
    } else {
        return false;
    };
    let host = |address: &str| {
        let url = Url::parse(address).ok()?;
        Some(url.host_str()?.trim_start_matches("www.").to_owned())
    };
    host(&address).is_some_and(|shown| host(target).as_ref() != Some(&shown))
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables among blocks and in them.
    fn tables(blocks: &[Block]) -> Vec<&Table> {
        fn inside(block: &Block) -> Vec<&Table> {
            match block {
                Block::Table(table) => vec![table],
                Block::Quote(blocks) => tables(blocks),
                Block::List(list) => {
                    let blocks = list.items.iter().flat_map(|item| &item.blocks);
                    blocks.flat_map(|item| tables(std::slice::from_ref(&item.block))).collect()
                }
                _ => Vec::new(),
            }
        }
        blocks.iter().flat_map(inside).collect()
    }

    #[test]
    fn links_in_links_are_shown_without_repeating_their_addresses() {
        for n_links in [1_000, 2_000] {
            let text = "[![".repeat(n_links) + "x" + &"](a)](b)".repeat(n_links);
            let blocks = parse(&text, &Definitions::default(), |_, _| ());
            let [Block::Paragraph(inlines)] = &blocks[..] else { panic!("one paragraph") };
            let shown: usize = inlines.iter().map(|inline| inline.text.len()).sum();
            assert!(inlines.len() <= 3 * MAX_DEPTH && shown < text.len(), "{} {shown}", inlines.len());
        }
    }

    #[test]
    fn rows_of_tables_keep_their_lines() {
        let lines = ["|a|  b |  ", "|:--|:-----:| ", "| **1** | `x\\|y` |", " 宽 | **中。**后", "| 1 |\t"];
        for (first, rest) in [("", ""), ("> ", "> "), ("- ", "  "), ("1. > ", "   > "), ("> - ", ">   ")] {
            let written = lines.map(|line| format!("\n{rest}{line}")).concat();
            let written = written.replacen(&format!("\n{rest}"), first, 1);
            let blocks = parse(&written, &Definitions::new(), |_, _| ());
            let [table] = tables(&blocks)[..] else { panic!("{written}: {blocks:?}") };
            let mut kept: Vec<&str> = table.rows.iter().map(|row| row.source.as_str()).collect();
            kept.insert(1, &table.rule);
            let expected = lines.map(|line| if first.is_empty() { line } else { line.trim_start() });
            assert_eq!(kept, expected, "{written}");
        }
    }

    /// Each of 1,600 in one line took a megabyte and more.
    #[test]
    fn footnotes_are_not_nested_deeper_than_they_are_drawn() {
        let n_notes = |text: &str| {
            let blocks = parse(text, &Definitions::new(), |_, _| ());
            format!("{blocks:?}").matches("Footnote {").count()
        };
        assert_eq!(n_notes(&("[^1]: ".repeat(3) + "x")), 3);
        assert_eq!(n_notes(&("[^1]: ".repeat(20_000) + "x")), 0);
        assert_eq!(n_notes(&("> [^1]: ".repeat(20_000) + "x")), 0);
        assert_eq!(n_notes(&"[^1]: x\n\n".repeat(2_000)), 2_000);
    }

    #[test]
    fn only_numbers_are_labels_of_footnotes() {
        let check = |text: &str, expected: &str| {
            let blocks = parse(text, &Definitions::new(), |_, _| ());
            let [Block::Paragraph(inlines)] = &blocks[..] else { panic!("{blocks:?}") };
            let shown: String = inlines.iter().map(|inline| inline.text.as_str()).collect();
            assert_eq!(shown, expected, "{text:?}");
        };
        check("one[^1], two[^12] and why[^why]", "one[1], two[12] and why[^why]");
        for class in [
            "[^0-9]",
            "[^a-z]",
            "[^aeiou]",
            "[^\\]]",
            "[^,;]+",
            "[^\\s\\w]*",
            "[^0-9a-f]",
            "[^a b]",
            "[^_]",
            "[^`x`]",
        ] {
            let text = format!("matches {class} once");
            check(&text, &text);
        }
    }
}
