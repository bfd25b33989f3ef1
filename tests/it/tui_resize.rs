//! The inline window while its terminal changes its size: against an emulator that wraps rows
//! again and against one that cuts them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use pi::tui::markdown::{Highlighter, MarkdownOptions, MarkdownStream};
use pi::tui::term::{
    Anchor, Cursor, Document, Frame, InlineWindow, Overlay, ReflowTraits, Relayout, RowMark, StartOver,
};
use pi::tui::text::Row;
use pi::tui::theme::{Appearance, ColorDepth, Theme};
use proptest::prelude::*;
use ratatui::layout::Size;
use ratatui::style::{Color, Style};

use crate::support::reflowing_terminal::{Emulator, GhosttyTerminal, ReflowingTerminal, WezTermTerminal};
use crate::support::virtual_terminal::VirtualTerminal;

const SHELL_LINES: usize = 25;

static THEME: LazyLock<Theme> =
    LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap());

/// How a block of the transcript is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prose,
    /// Without blanks.
    Code,
    /// A box whose background fills the width.
    Boxed,
    /// Double-width characters between the words.
    Wide,
    /// A list with an item for each line, as Markdown renders it.
    List,
    /// A Markdown table with a row for each line, which narrow windows show as records.
    Table,
    /// A Mermaid diagram with a chain for each line, which narrow windows show as its source.
    Diagram,
}

/// Text of which each word appears once in the transcript.
#[derive(Debug, Clone)]
struct Block {
    id: usize,
    kind: Kind,
    /// Number of words of each line.
    lines: Vec<usize>,
    settled: bool,
    rows: Vec<Row>,
    stable: usize,
}

fn word(block: usize, line: usize, n: usize) -> String {
    format!("w{block:03}.{line:02}.{n:02}")
}

impl Block {
    fn layout(&mut self, width: u16) {
        if matches!(self.kind, Kind::List | Kind::Table | Kind::Diagram) {
            return self.layout_markdown(width);
        }
        let (mut rows, mut stable) = (Vec::new(), 0);
        let fill = Style::new().bg(Color::Blue);
        let boxed = self.kind == Kind::Boxed;
        let inner = usize::from(if boxed { width - 4 } else { width });
        for (line, count) in self.lines.iter().enumerate() {
            if line + 1 == self.lines.len() && !self.settled {
                stable = rows.len();
            }
            let words: Vec<String> = (0..*count).map(|n| word(self.id, line, n)).collect();
            let texts: Vec<String> = match self.kind {
                Kind::Code => words.chunks((inner + 1) / 11).map(|piece| piece.join("─")).collect(),
                Kind::Wide => wrapped(&words.join(" 世界 "), inner),
                _ => wrapped(&words.join(" "), inner),
            };
            rows.extend(texts.into_iter().map(|text| {
                if !boxed {
                    return Row::styled(text, Style::new());
                }
                let mut row = Row::styled(format!("  {text}"), fill);
                row.pad(width, fill);
                row
            }));
        }
        if boxed {
            let mut edge = Row::default();
            edge.pad(width, fill);
            rows.insert(0, edge.clone());
            rows.push(edge);
        }
        rows.push(Row::default());
        self.stable = if self.settled { rows.len() } else { stable };
        self.rows = rows;
    }

    fn layout_markdown(&mut self, width: u16) {
        let line = |(line, count): (usize, &usize)| {
            let words: Vec<String> = (0..*count).map(|n| word(self.id, line, n)).collect();
            let number = line + 1;
            match self.kind {
                Kind::Table => format!("| {number} | {} |", words.join(" ")),
                Kind::Diagram => {
                    let node = |(n, word): (usize, &String)| format!("n{line}_{n}[{word}]");
                    words.iter().enumerate().map(node).collect::<Vec<_>>().join(&format!("\nn{line}_0 --> "))
                }
                _ => format!("{number}. {}", words.join(" ")),
            }
        };
        let (head, end) = match self.kind {
            Kind::Table => ("| no | words |\n|---|---|\n", ""),
            Kind::Diagram => ("```mermaid\ngraph TD\n", "\n```\n"),
            _ => ("", ""),
        };
        let lines: Vec<String> = self.lines.iter().enumerate().map(line).collect();
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        stream.push(&(head.to_owned() + &lines.join("\n") + end));
        if self.settled {
            stream.finish();
        }
        self.rows = stream.rows(width, &THEME, &Highlighter::new()).to_vec();
        self.stable = stream.stable_rows();
        self.rows.push(Row::default());
        self.stable += usize::from(self.settled);
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    textwrap::wrap(text, width).into_iter().map(Cow::into_owned).collect()
}

/// A transcript with a dock below it, as interactive mode has.
#[derive(Default)]
struct Doc {
    blocks: Vec<Block>,
    dock: Vec<Row>,
    cursor: (usize, u16),
    typed: usize,
    width: u16,
}

impl Doc {
    fn layout(&mut self, width: u16) {
        self.width = width;
        for block in &mut self.blocks {
            block.layout(width);
        }
        let text = |text: &str| {
            let mut row = Row::styled(text, Style::new());
            row.clip(width);
            row
        };
        let typed: Vec<char> = "t".repeat(self.typed).chars().collect();
        let mut input: Vec<Row> =
            typed.chunks(usize::from(width)).map(|piece| text(&piece.iter().collect::<String>())).collect();
        if self.typed.is_multiple_of(usize::from(width)) {
            input.push(Row::default());
        }
        self.cursor = (1 + input.len(), u16::try_from(self.typed % usize::from(width)).unwrap());
        let border = text(&"═".repeat(usize::from(width)));
        self.dock = vec![text("DOCK status"), border.clone()];
        self.dock.extend(input);
        self.dock.extend([
            border,
            text("DOCK folder"),
            text(&format!("{:>width$}", "DOCK model", width = usize::from(width))),
        ]);
    }

    fn transcript_len(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    fn unsettled(&self) -> usize {
        self.len() - self.stable()
    }

    /// The mark of each row, with its block.
    fn marks(&self) -> Vec<(usize, RowMark)> {
        let of = |(index, block): (usize, &Block)| {
            RowMark::of(&block.rows).map(move |mark| (index, mark)).collect::<Vec<_>>()
        };
        self.blocks.iter().enumerate().flat_map(of).collect()
    }
}

impl Document for Doc {
    fn len(&self) -> usize {
        self.transcript_len() + self.dock.len()
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        let mut rows = self.blocks.iter().flat_map(|block| &block.rows).chain(&self.dock);
        Cow::Borrowed(rows.nth(index).unwrap())
    }

    fn stable(&self) -> usize {
        let open = self.blocks.iter().position(|block| !block.settled);
        let settled = self.blocks.iter().take(open.unwrap_or(usize::MAX)).map(|block| block.rows.len());
        settled.sum::<usize>() + open.map_or(0, |open| self.blocks[open].stable)
    }
}

struct Moved<'a> {
    marks: Vec<(usize, RowMark)>,
    doc: &'a Doc,
}

impl Moved<'_> {
    fn find(&self, old: usize, find: impl Fn(&RowMark, &Block) -> Option<usize>) -> Option<usize> {
        let Some((block, mark)) = self.marks.get(old) else { return Some(self.doc.transcript_len()) };
        let before: usize = self.doc.blocks.iter().take(*block).map(|block| block.rows.len()).sum();
        Some(before + find(mark, &self.doc.blocks[*block])?)
    }
}

impl Relayout for Moved<'_> {
    fn row(&self, old: usize) -> Option<usize> {
        self.find(old, |mark, block| mark.find(&block.rows))
    }

    fn near(&self, old: usize) -> usize {
        self.find(old, |mark, block| Some(mark.find_before(&block.rows))).unwrap()
    }
}

/// A session in a terminal, after a shell printed some lines.
struct Stage<T> {
    doc: Doc,
    window: InlineWindow<T>,
    popup: usize,
    /// Whether the terminal could keep all unsettled rows on the screen so far.
    in_reach: bool,
    /// Number of words that may appear twice.
    n_repeatable: usize,
}

impl<T: Emulator> Stage<T> {
    fn new(size: Size, traits: ReflowTraits) -> Self {
        Self::after(SHELL_LINES, size, traits)
    }

    /// One after that many lines of a shell.
    fn after(n_lines: usize, size: Size, traits: ReflowTraits) -> Self {
        let mut terminal = T::new(size);
        for n in 0..n_lines {
            terminal.shell(&format!("$ shell {n:03} of the user\n"));
        }
        let cursor = terminal.cursor();
        let mut window = InlineWindow::new(terminal, size, cursor);
        window.set_traits(traits);
        let mut stage = Self { doc: Doc::default(), window, popup: 0, in_reach: true, n_repeatable: 0 };
        stage.doc.layout(size.width);
        stage.draw();
        stage
    }

    fn append(&mut self, kind: Kind, lines: Vec<usize>) {
        self.end_stream();
        self.push(kind, lines, true);
        self.draw();
    }

    fn push(&mut self, kind: Kind, lines: Vec<usize>, settled: bool) {
        let id = self.doc.blocks.len();
        self.doc.blocks.push(Block { id, kind, lines, settled, rows: Vec::new(), stable: 0 });
    }

    /// Adds words to a block that is being written.
    fn stream(&mut self, n_words: usize) {
        if self.doc.blocks.last().is_none_or(|block| block.settled) {
            self.push(Kind::Prose, vec![0], false);
        }
        let block = self.doc.blocks.last_mut().unwrap();
        for _ in 0..n_words {
            if *block.lines.last().unwrap() >= 20 {
                block.lines.push(0);
            }
            *block.lines.last_mut().unwrap() += 1;
        }
        self.draw();
    }

    /// Changes all blocks at the same width. Returns scrollback and screen.
    fn change_blocks(&mut self, change: impl Fn(&mut Block)) -> (Vec<String>, Vec<String>) {
        let marks = self.doc.marks();
        self.doc.blocks.iter_mut().for_each(change);
        self.doc.layout(self.doc.width);
        self.window.relaid(&Moved { marks, doc: &self.doc });
        self.draw();
        let (scrollback, screen) = self.window.sink_mut().lines();
        self.check_dock(&screen);
        (scrollback, screen)
    }

    fn end_stream(&mut self) {
        if let Some(block) = self.doc.blocks.last_mut() {
            block.settled = true;
        }
    }

    fn draw(&mut self) {
        self.doc.layout(self.doc.width);
        let popup: Vec<Row> =
            (0..self.popup).map(|n| Row::styled(format!("POPUP {n}"), Style::new())).collect();
        let above = Anchor::Beside { row: self.doc.transcript_len() + 1, room: 4 };
        let overlays = [Overlay { rows: &popup, anchor: above }];
        let (row, column) = self.doc.cursor;
        let cursor = Some(Cursor::Document { row: self.doc.transcript_len() + row, column });
        let overlays = if self.popup == 0 { &[] } else { overlays.as_slice() };
        self.window.draw(&Frame { document: &self.doc, overlays, cursor }).unwrap();
    }

    /// Changes the size of the terminal and returns the bytes that followed.
    fn resize(&mut self, size: Size) -> usize {
        let unsettled = self.doc.unsettled();
        let wrapped: usize = (0..unsettled)
            .map(|n| self.doc.row(self.doc.stable() + n).width().div_ceil(usize::from(size.width)).max(1))
            .sum();
        // Rows that the terminal wraps push out those above, even if the end of the screen is
        // blank.
        let below_cursor = self.doc.dock.len() - 1 - self.doc.cursor.0;
        let end = usize::from(self.window.sink().cursor().y) + 1 + below_cursor;
        let lost = usize::from(self.window.size().height.saturating_sub(size.height));
        self.in_reach &= wrapped + self.popup + lost < end && wrapped + self.popup < usize::from(size.height);
        let ReflowTraits { reflows, keeps_styled_blanks, .. } = self.window.traits();
        let is_known = reflows == Some(false) || reflows.is_some() && keeps_styled_blanks.is_some();
        if size.width < self.window.size().width && !is_known {
            // The first narrower width is when a terminal is found out.
            self.n_repeatable = usize::MAX;
        }
        if self.popup > 0 {
            // The row whose beginning left the screen while the rest was covered is painted whole.
            self.n_repeatable = self.n_repeatable.saturating_add(usize::from(size.width) / 11 + 1);
        }
        self.window.sink_mut().take_bytes();
        self.window.sink_mut().resize(size);
        let reply = self.window.sink().cursor();
        let marks = self.doc.marks();
        self.doc.layout(size.width);
        self.window.resized(size, Some(reply), &Moved { marks, doc: &self.doc });
        self.draw();
        self.window.sink_mut().take_bytes().len()
    }

    /// Words of live text, and of a dock, must not be in the scrollback.
    fn check_residue(&mut self, scrollback: &[String]) {
        let mut live = Vec::new();
        if let Some(block) = self.doc.blocks.last().filter(|block| !block.settled) {
            let line = block.lines.len() - 1;
            live.extend((0..block.lines[line]).map(|n| word(block.id, line, n)));
        }
        let foreign: Vec<&String> = scrollback
            .iter()
            .filter(|line| {
                ["DOCK", "═", "POPUP", "ttt"].iter().any(|dock| line.contains(dock))
                    || live.iter().any(|word| line.contains(word.as_str()))
            })
            .collect();
        assert!(foreign.is_empty(), "in the scrollback: {foreign:#?}");
    }

    fn check_shell(lines: &[String]) {
        for n in 0..SHELL_LINES {
            // A cut terminal keeps the beginning of the line.
            let line = format!("$ shell {n:03}");
            let found = lines.iter().filter(|other| other.starts_with(&line)).count();
            assert_eq!(found, 1, "{line:?} appears {found} times in {lines:#?}");
        }
    }

    /// The screen ends with the dock.
    fn check_dock(&self, screen: &[String]) {
        let rows: Vec<&String> = screen.iter().filter(|row| !row.is_empty()).collect();
        let dock: Vec<String> = self.doc.dock.iter().map(|row| row.text().trim_end().to_owned()).collect();
        let dock: Vec<&String> = dock.iter().filter(|row| !row.is_empty()).collect();
        assert!(rows.ends_with(&dock), "{screen:#?} ends with {dock:#?}");
    }

    /// How often each word of settled text appears.
    fn words(&self, lines: &[String]) -> HashMap<String, usize> {
        let text = lines.join("\n");
        let mut found = HashMap::new();
        for block in &self.doc.blocks {
            let n_lines = if block.settled { block.lines.len() } else { block.lines.len() - 1 };
            for line in 0..n_lines {
                for n in 0..block.lines[line] {
                    let word = word(block.id, line, n);
                    let count = text.matches(&word).count();
                    found.insert(word, count);
                }
            }
        }
        found
    }

    /// Of a terminal that wraps rows again.
    fn check(&mut self) {
        let (scrollback, screen) = self.window.sink_mut().lines();
        let lines: Vec<String> = scrollback.iter().chain(&screen).cloned().collect();
        Self::check_shell(&lines);
        self.check_dock(&screen);
        self.check_residue(&scrollback);
        let mut wrong: Vec<_> = self.words(&lines).into_iter().filter(|(_, count)| *count != 1).collect();
        wrong.sort();
        let is_right = wrong.len() <= self.n_repeatable && wrong.iter().all(|(_, count)| *count > 1);
        assert!(is_right, "words and how often they appear: {wrong:?} in {lines:#?}");
        if !wrong.is_empty() {
            return;
        }
        let order: Vec<&str> = lines
            .iter()
            .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '.'))
            .filter(|word| word.starts_with('w') && word.len() == 10)
            .collect();
        assert!(order.is_sorted(), "out of order: {order:?}");
    }

    /// Of a terminal that cuts rows: what was cut is gone, so only the first word of each line counts.
    fn check_cut(&mut self) {
        let (scrollback, screen) = self.window.sink_mut().lines();
        let lines: Vec<String> = scrollback.iter().chain(&screen).cloned().collect();
        Self::check_shell(&lines);
        self.check_dock(&screen);
        self.check_residue(&scrollback);
        let words = self.words(&lines);
        let first_words = words.iter().filter(|(word, _)| word.ends_with(".00"));
        let wrong: Vec<_> = first_words.filter(|(_, count)| !(1..=2).contains(*count)).collect();
        assert!(wrong.is_empty(), "words and how often they appear: {wrong:?} in {lines:#?}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(Kind, Vec<usize>),
    Stream(usize),
    EndStream,
    Type(usize),
    Popup(usize),
    Resize(u16, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        Just(Kind::Prose),
        Just(Kind::Code),
        Just(Kind::Boxed),
        Just(Kind::Wide),
        Just(Kind::Table)
    ];
    let step = prop_oneof![
        3 => (kind, prop::collection::vec(1_usize..25, 1..5)).prop_map(|(kind, lines)| Step::Append(kind, lines)),
        2 => (1_usize..30).prop_map(Step::Stream),
        1 => Just(Step::EndStream),
        1 => (0_usize..100).prop_map(Step::Type),
        1 => (0_usize..6).prop_map(Step::Popup),
        4 => (30_u16..130, 14_u16..45).prop_map(|(width, height)| Step::Resize(width, height)),
    ];
    prop::collection::vec(step, 1..30)
}

fn run<T: Emulator>(traits: ReflowTraits, steps: &[Step], check: impl Fn(&mut Stage<T>)) {
    let mut stage = Stage::<T>::new(Size::new(90, 30), traits);
    // What is not known yet is learned here.
    stage.resize(Size::new(80, 30));
    for step in steps {
        match step.clone() {
            Step::Append(kind, lines) => stage.append(kind, lines),
            Step::Stream(n_words) => stage.stream(n_words),
            Step::EndStream => stage.end_stream(),
            Step::Type(typed) => stage.doc.typed = typed,
            Step::Popup(rows) => stage.popup = rows,
            Step::Resize(width, height) => {
                if !T::KNOWS_EDGE {
                    stage.doc.typed += usize::from(stage.doc.typed.is_multiple_of(usize::from(width)));
                    stage.draw();
                }
                let was = stage.window.size();
                let bytes = stage.resize(Size::new(width, height));
                let screenful = usize::from(width.max(was.width)) * usize::from(height.max(was.height));
                assert!(bytes <= 2 * screenful + 1_000, "{bytes} bytes for a screen of {screenful} cells");
            }
        }
        stage.draw();
        if !stage.in_reach {
            // Live rows are in the scrollback already, whatever the painter does.
            return;
        }
        let popup = std::mem::take(&mut stage.popup);
        stage.draw();
        check(&mut stage);
        stage.popup = popup;
        stage.draw();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_settled_row_stays_readable_once_where_the_terminal_reflows(steps in steps()) {
        run::<ReflowingTerminal>(ReflowTraits::of("alacritty"), &steps, Stage::check);
    }

    #[test]
    fn every_settled_row_stays_readable_once_where_the_cursor_leaves_its_text(steps in steps()) {
        run::<GhosttyTerminal>(ReflowTraits::of("ghostty"), &steps, Stage::check);
    }

    #[test]
    fn every_settled_row_stays_readable_once_where_the_cursor_goes_to_the_row_above(steps in steps()) {
        let traits = ReflowTraits { keeps_styled_blanks: Some(true), ..ReflowTraits::of("wezterm") };
        run::<WezTermTerminal>(traits, &steps, Stage::check);
    }

    #[test]
    fn a_reflowing_terminal_is_recognised_by_its_cursor(steps in steps()) {
        run::<ReflowingTerminal>(ReflowTraits::default(), &steps, Stage::check);
    }

    #[test]
    fn nothing_but_cut_columns_is_lost_where_the_terminal_cuts(steps in steps()) {
        run::<VirtualTerminal>(ReflowTraits::of("xterm"), &steps, Stage::check_cut);
    }

    #[test]
    fn a_cutting_terminal_is_recognised_by_its_cursor(steps in steps()) {
        run::<VirtualTerminal>(ReflowTraits::default(), &steps, Stage::check_cut);
    }
}

/// A session of 60 blocks.
fn long_session<T: Emulator>(size: Size, traits: ReflowTraits) -> Stage<T> {
    let mut stage = Stage::new(size, traits);
    for n in 0..60 {
        match n % 4 {
            0 => stage.append(Kind::Boxed, vec![3 + n % 9]),
            1 => stage.append(Kind::Prose, vec![19, 7, 18]),
            2 => stage.append(Kind::Code, vec![4, 1, 2, 4]),
            _ => stage.append(Kind::Wide, vec![2, 19]),
        }
    }
    stage
}

#[test]
fn a_drag_through_ten_widths_costs_a_frame_each_and_keeps_the_scrollback() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(120, 30), ReflowTraits::of("tmux"));
    let mut bytes = Vec::new();
    for width in (70..120).rev().step_by(5).chain([120, 160, 90, 120]) {
        bytes.push(stage.resize(Size::new(width, 30)));
        stage.check();
    }
    let most = bytes.iter().max().unwrap();
    assert!(*most <= 2 * 160 * 30, "{bytes:?}");
    let drag: usize = bytes[..10].iter().sum();
    assert!(drag <= 20_000, "{drag} bytes for ten widths: {bytes:?}");
}

/// foot 1.13 scrolls back when rows are inserted, and erases what was there.
#[test]
fn no_rows_are_inserted_where_that_costs_rows_of_the_scrollback() {
    let inserts = |terminal: &str| {
        let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of(terminal));
        for _ in 0..20 {
            stage.stream(9);
        }
        stage.check();
        let bytes = stage.window.sink_mut().take_bytes();
        let mut controls = bytes.split(|byte| *byte == 0x1b).filter_map(|part| part.strip_prefix(b"["));
        controls.any(|body| body.iter().find(|byte| !byte.is_ascii_digit()) == Some(&b'L'))
    };
    assert!(inserts("tmux"));
    assert!(!inserts("foot"));
}

/// In zellij 0.45 and GNU screen 4.9, an erased row still continues the line of the row above, and joins it when the
/// window becomes wider.
#[test]
fn rows_are_replaced_where_erased_ones_continue_a_line() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of("zellij"));
    for width in [60, 110, 50, 90] {
        stage.window.sink_mut().resize(Size::new(width, 24));
        let reply = stage.window.sink().cursor();
        let marks = stage.doc.marks();
        stage.doc.layout(width);
        stage.window.sink_mut().take_bytes();
        stage.window.resized(Size::new(width, 24), Some(reply), &Moved { marks, doc: &stage.doc });
        stage.draw();
        let written = String::from_utf8(stage.window.sink_mut().take_bytes()).unwrap();
        assert!(!written.contains("\x1b[J"), "{written:?}");
        // All rows to the last one: from the row that `ESC [ count A` leads to, or from the one below it.
        let up = |n: u16| (reply.y + 1).checked_sub(n).filter(|row| *row > 0);
        let deleted = (1..24).any(|n| {
            let whole = up(n).map(|row| format!("\x1b[{n}A\r\x1b[{}M", 25 - row));
            let below = format!("\x1b[{n}A\r\x1b[L\x1b[0m\n\r\x1b[23M");
            whole.is_some_and(|whole| written.contains(&whole)) || written.contains(&below)
        });
        assert!(deleted, "{written:?}");
        stage.check();
    }
}

#[test]
fn an_answer_that_streams_during_a_drag_is_neither_doubled_nor_left_behind() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(120, 40), ReflowTraits::of("tmux"));
    for (n, width) in (60..120).rev().step_by(3).enumerate() {
        stage.stream(3 + n % 4);
        stage.resize(Size::new(width, 40));
        assert!(stage.in_reach, "at {width}");
        stage.check();
    }
    stage.end_stream();
    stage.draw();
    stage.check();
}

/// The list is much longer than the screen, so its first rows are in the scrollback while it arrives.
#[test]
fn a_list_that_streams_during_a_drag_shows_each_item_once() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(120, 30), ReflowTraits::of("tmux"));
    let id = stage.doc.blocks.len();
    let list = |lines| Block { id, kind: Kind::List, lines, settled: false, rows: Vec::new(), stable: 0 };
    stage.doc.blocks.push(list(vec![1]));
    let widths: Vec<u16> = (60..120).rev().step_by(5).chain((60..120).step_by(7)).collect();
    for n in 1..100 {
        // An item is two rows long in a narrow window.
        stage.doc.blocks[id].lines.push(1 + n % 7);
        stage.draw();
        stage.resize(Size::new(widths[n % widths.len()], 30));
        stage.check();
    }
    stage.end_stream();
    stage.draw();
    stage.check();
    let (scrollback, screen) = stage.window.sink_mut().lines();
    let items = scrollback
        .iter()
        .chain(&screen)
        .filter(|line| line.contains(&format!("w{id:03}.")) && line.contains(".00"));
    let numbers: Vec<String> = items.filter_map(|line| Some(line.split_once(". ")?.0.to_owned())).collect();
    assert_eq!(numbers, (1..=100).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// A wider window needs fewer rows, and the terminal pushes out rows at the top of the screen when the next one is
/// narrow, although its end is blank.
#[test]
fn narrow_window_after_a_wide_one_leaves_no_dock_in_the_scrollback() {
    for widths in [&[30, 100, 20][..], &[60, 30, 100, 80, 20], &[30, 100, 80, 20], &[40, 120, 20, 120, 20]] {
        let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of("tmux"));
        for width in widths {
            stage.resize(Size::new(*width, 24));
            assert!(stage.in_reach, "{width} of {widths:?}");
            stage.check();
        }
    }
}

/// The terminal makes room at the top of the screen, although its end is blank, and nothing can be taken out of the
/// scrollback: a limit that `docs/terminals.md` names.
#[test]
fn short_conversation_at_a_quarter_of_the_width_leaves_rows_of_the_dock() {
    let mut stage = Stage::<ReflowingTerminal>::after(0, Size::new(80, 24), ReflowTraits::of("tmux"));
    stage.append(Kind::Prose, vec![2]);
    stage.resize(Size::new(20, 24));
    let (scrollback, screen) = stage.window.sink_mut().lines();
    assert!(!stage.in_reach && scrollback.iter().any(|line| line.contains('═')), "{scrollback:#?}");
    stage.check_dock(&screen);
    assert!(stage.words(&[scrollback, screen].concat()).into_values().all(|count| count == 1));
}

#[test]
fn text_after_a_narrow_window_follows_without_more_blank_rows() {
    let mut stage = Stage::<ReflowingTerminal>::new(Size::new(80, 16), ReflowTraits::of("tmux"));
    for _ in 0..10 {
        stage.append(Kind::Prose, vec![2]);
    }
    stage.resize(Size::new(20, 16));
    stage.resize(Size::new(80, 16));
    stage.append(Kind::Prose, vec![2]);
    stage.check();
    let (scrollback, screen) = stage.window.sink_mut().lines();
    let lines = [scrollback, screen].concat();
    let end = lines.iter().position(|line| line.contains(&word(10, 0, 0))).unwrap();
    let start = lines.iter().position(|line| line.contains(&word(0, 0, 0))).unwrap();
    let two_blank = lines[start..end].windows(2).find(|pair| pair.iter().all(String::is_empty));
    assert_eq!(two_blank, None, "in {lines:#?}");
}

#[test]
fn text_below_a_diagram_that_does_not_fit_a_narrow_window_is_there_once() {
    for n_after in 1..4 {
        for n_words in 2..4 {
            let mut stage = Stage::<ReflowingTerminal>::new(Size::new(80, 24), ReflowTraits::of("tmux"));
            for _ in 0..30 {
                stage.append(Kind::Prose, vec![2]);
            }
            stage.append(Kind::Diagram, vec![n_words]);
            for _ in 0..n_after {
                stage.append(Kind::Prose, vec![1]);
            }
            for width in [20, 80, 20, 80, 30, 80, 30] {
                stage.resize(Size::new(width, 24));
                stage.check();
            }
        }
    }
}

#[test]
fn an_unanswered_cursor_query_loses_no_shell_row_and_leaves_one_dock() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(120, 30), ReflowTraits::of("tmux"));
    let size = Size::new(70, 30);
    stage.window.sink_mut().resize(size);
    let marks = stage.doc.marks();
    stage.doc.layout(size.width);
    stage.window.resized(size, None, &Moved { marks, doc: &stage.doc });
    stage.draw();
    stage.check();
}

#[test]
fn a_resize_before_a_repaint_that_is_due_finds_the_window() {
    for size in [Size::new(70, 30), Size::new(120, 20), Size::new(90, 40)] {
        let mut stage = long_session::<ReflowingTerminal>(Size::new(120, 30), ReflowTraits::of("tmux"));
        stage.window.repaint();
        stage.resize(size);
        stage.check();
    }
}

#[test]
fn another_document_begins_below_the_settled_rows_of_the_old_one() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of("tmux"));
    stage.stream(5);
    stage.popup = 8;
    stage.draw();
    let live = word(60, 0, 0);
    let before = stage.words(&stage.doc.blocks.iter().map(|_| String::new()).collect::<Vec<_>>()).len();
    assert!(before > 0);
    let old: Vec<Block> = std::mem::take(&mut stage.doc.blocks);
    stage.window.start_over(StartOver::All);
    stage.popup = 0;
    stage.doc.blocks = vec![Block { id: 900, ..old[1].clone() }];
    stage.draw();
    stage.draw();
    // They can be shown behind a list.
    let above: Vec<String> = stage.window.rows_above().map(Row::text).collect();
    let (_, screen) = stage.window.sink_mut().lines();
    assert!(above.len() > 5 && above.iter().any(|row| row.starts_with("w05")), "{above:#?}");
    assert!(above.iter().zip(&screen).all(|(row, shown)| row.trim_end() == shown), "{above:#?}\n{screen:#?}");
    let (scrollback, screen) = stage.window.sink_mut().lines();
    let lines: Vec<String> = scrollback.iter().chain(&screen).cloned().collect();
    Stage::<ReflowingTerminal>::check_shell(&lines);
    stage.check_dock(&screen);
    let text = lines.join("\n");
    for block in &old[..60] {
        for (line, count) in block.lines.iter().enumerate() {
            for n in 0..*count {
                assert_eq!(
                    text.matches(&word(block.id, line, n)).count(),
                    1,
                    "{:?}",
                    word(block.id, line, n)
                );
            }
        }
    }
    assert_eq!(text.matches(&word(900, 0, 0)).count(), 1);
    assert_eq!(text.matches(&live).count(), 0, "live text of the old document");
    assert_eq!(text.matches("DOCK status").count(), 1);
}

#[test]
fn rows_laid_out_anew_leave_as_much_of_the_screen_blank_as_there_was() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of("tmux"));
    for width in [30, 80] {
        stage.resize(Size::new(width, 24));
    }
    let (scrollback, before) = stage.window.sink_mut().lines();
    // Above the dock, with the one below the last block.
    let n_blank = |screen: &[String]| {
        let dock = screen.iter().position(|row| row.contains("DOCK status")).unwrap();
        screen[..dock].iter().rev().take_while(|row| row.is_empty()).count()
    };
    assert!(n_blank(&before) > 10 && stage.window.origin() == 0, "{before:#?}");
    // As with another theme.
    assert_eq!(stage.change_blocks(|_| {}), (scrollback.clone(), before));
    stage.check();
    for n in 0..4 {
        stage.append(Kind::Prose, vec![3, n]);
    }
    let (_, before) = stage.window.sink_mut().lines();
    let (after, shorter) = stage.change_blocks(|block| block.lines.truncate(1));
    assert_eq!(after, scrollback);
    assert_eq!(n_blank(&shorter), n_blank(&before), "rows from above take the place: {shorter:#?}");
}

#[test]
fn changed_rows_replace_those_on_the_screen_and_leave_the_scrollback() {
    let mut stage = long_session::<ReflowingTerminal>(Size::new(80, 24), ReflowTraits::of("tmux"));
    let (scrollback, _) = stage.window.sink_mut().lines();
    // All blocks become shorter, as when tool output is collapsed.
    let (after, screen) = stage.change_blocks(|block| block.lines = vec![1]);
    assert_eq!(after, scrollback);
    assert!(screen.last().unwrap().ends_with("DOCK model"), "the screen is full: {screen:#?}");
    // New rows fill the screen before they push anything.
    for n in 0..30 {
        stage.append(Kind::Prose, vec![1 + n % 3]);
    }
    let (after, screen) = stage.window.sink_mut().lines();
    assert_eq!(after[..scrollback.len()], scrollback);
    stage.check_dock(&screen);
    let text = after.iter().chain(&screen).cloned().collect::<Vec<_>>().join("\n");
    for block in &stage.doc.blocks[60..] {
        assert_eq!(text.matches(&word(block.id, 0, 0)).count(), 1);
    }
}
