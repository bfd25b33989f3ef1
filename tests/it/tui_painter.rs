//! The painter against a terminal emulator: what is settled reaches scrollback
//! once and in order, and nothing else ever does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::borrow::Cow;
use std::cell::Cell;

use pi::tui::term::{Abilities, Anchor, Canvas, Cursor, Document, Frame, InlineWindow, Overlay, Relayout};
use pi::tui::text::{LinkTarget, PromptMark, Row, Run};
use proptest::prelude::*;
use ratatui::layout::{Position, Size};
use ratatui::style::Style;

use crate::support::virtual_terminal::VirtualTerminal;

#[derive(Default)]
struct Doc {
    settled: Vec<Row>,
    live: Vec<Row>,
    dock: Vec<Row>,
}

impl Document for Doc {
    fn len(&self) -> usize {
        self.settled.len() + self.live.len() + self.dock.len()
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        let rows = self.settled.iter().chain(&self.live).chain(&self.dock);
        Cow::Borrowed(rows.into_iter().nth(index).unwrap())
    }

    fn stable(&self) -> usize {
        self.settled.len()
    }
}

fn rows(name: &str, range: std::ops::Range<usize>) -> Vec<Row> {
    range.map(|n| Row::styled(format!("{name}{n:05}"), Style::new())).collect()
}

/// Rows that stayed as they were.
struct Unchanged;

impl Relayout for Unchanged {
    fn row(&self, old: usize) -> Option<usize> {
        Some(old)
    }

    fn near(&self, old: usize) -> usize {
        old
    }
}

/// A document, its screen and the terminal, with the invariants as methods.
struct Stage {
    doc: Doc,
    screen: InlineWindow<VirtualTerminal>,
    settled: usize,
    shell: usize,
    may_reset: bool,
    replayed: bool,
    /// The cursor's row before a frame that follows a change of the size.
    cursor_row: u16,
}

impl Stage {
    fn new(size: Size, shell_rows: u16) -> Self {
        let mut terminal = VirtualTerminal::new(size);
        for n in 0..shell_rows {
            terminal.shell(&format!("S{n:05}\n"));
        }
        let cursor = terminal.cursor();
        let screen = InlineWindow::new(terminal, size, cursor);
        let doc = Doc { dock: rows("dock", 0..1), ..Doc::default() };
        let shell = usize::from(shell_rows);
        Self { doc, screen, settled: 0, shell, may_reset: false, replayed: false, cursor_row: 0 }
    }

    fn append(&mut self, count: usize) {
        self.doc.settled.extend(rows("H", self.settled..self.settled + count));
        self.settled += count;
    }

    fn draw(&mut self, overlays: &[Overlay<'_>]) {
        let dock_row = self.doc.len() - 1;
        let cursor = Some(Cursor::Document { row: dock_row, column: 2 });
        self.screen.draw(&Frame { document: &self.doc, overlays, cursor }).unwrap();
        self.check_frame();
        if overlays.is_empty() {
            self.check_screen();
        }
    }

    fn check_frame(&mut self) {
        let writes = self.screen.sink_mut().take_writes();
        assert!(writes.len() <= 1, "{} writes in one frame", writes.len());
        let reset = std::mem::take(&mut self.may_reset);
        for bytes in writes {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.starts_with("\x1b[?2026h") && text.ends_with("\x1b[?2026l"));
            for (at, _) in text.match_indices("\x1b[") {
                let sequence = &text[at + 2..];
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                match &sequence[end..=end] {
                    "J" => {
                        let is_allowed = reset || is_below(&text[..at], self.cursor_row);
                        assert!(is_allowed, "erases the display: {sequence:?}");
                    }
                    "r" => assert!(reset && end == 0, "scroll region: {sequence:?}"),
                    // Inserted rows push others off the end of the screen, never to the scrollback.
                    "S" | "T" | "M" => panic!("scrolls a region: {sequence:?}"),
                    _ => {}
                }
            }
        }
    }

    /// The screen ends with the end of the document, and the cursor is in the dock.
    fn check_screen(&mut self) {
        let screen = self.screen.sink().screen();
        let len = self.doc.len();
        let visible: Vec<String> =
            screen.into_iter().filter(|row| !row.is_empty() && !row.starts_with('S')).collect();
        let tail: Vec<String> = (len - visible.len()..len).map(|index| self.doc.row(index).text()).collect();
        let width = usize::from(self.screen.size().width);
        let tail: Vec<String> = tail.iter().map(|row| row.chars().take(width).collect()).collect();
        assert_eq!(visible, tail);
        assert!(self.screen.sink().cursor_visible());
        let cursor = self.screen.sink().cursor();
        let under = &self.screen.sink().screen()[usize::from(cursor.y)];
        assert!("dock00000".starts_with(under.trim_end_matches(|c: char| c.is_ascii_digit())), "{under:?}");
        assert_eq!(cursor.x, 2.min(self.screen.size().width - 1));
    }

    /// Settled rows once and in order; no other text of ours above the screen.
    fn check_scrollback(&mut self) {
        let width = usize::from(self.screen.size().width);
        let scrollback = self.screen.sink_mut().scrollback();
        let foreign: Vec<&String> = scrollback
            .iter()
            .filter(|row| !row.is_empty() && !row.starts_with('S') && !row.starts_with('H'))
            .collect();
        assert!(foreign.is_empty(), "in scrollback: {foreign:?}");
        let everything = self.screen.sink_mut().everything();
        let found: Vec<&String> = everything.iter().filter(|row| row.starts_with('H')).collect();
        let expected: Vec<String> =
            self.doc.settled.iter().map(|row| row.text().chars().take(width).collect()).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
        if !self.replayed {
            assert_eq!(everything.iter().filter(|row| row.starts_with('S')).count(), self.shell);
        }
    }

    fn suspend(&mut self, shell_rows: usize) {
        self.screen.release(&self.doc).unwrap();
        self.check_frame();
        let terminal = self.screen.sink_mut();
        for n in 0..shell_rows {
            terminal.shell(&format!("S{:05}\n", self.shell + n));
        }
        self.shell += shell_rows;
        let (size, cursor) = (self.screen.size(), self.screen.sink().cursor());
        self.screen.resume(size, cursor);
    }
}

/// Whether the cursor was just moved to a row below the first: by its number, to the next one, or from
/// `cursor_row`.
fn is_below(text: &str, cursor_row: u16) -> bool {
    let up = text.strip_suffix("A\r").and_then(|text| text.rsplit_once("\x1b[")?.1.parse::<u16>().ok());
    let stays = text.ends_with("\x1b[0m\r") && cursor_row > 0;
    if stays || text.ends_with("\n\r") || up.is_some_and(|up| up < cursor_row) {
        return true;
    }
    let moved = text.rsplit_once("\x1b[").and_then(|(_, last)| last.strip_suffix(";1H"));
    moved.and_then(|row| row.parse().ok()).is_some_and(|row: u16| row > 1)
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Live(usize),
    Dock(usize),
    Settle,
    Overlay { rows: usize, above: bool },
    Suspend(usize),
    Height(u16),
    Replay,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_usize..5).prop_map(Step::Append),
        1 => (0_usize..80).prop_map(Step::Append),
        2 => (0_usize..40).prop_map(Step::Live),
        2 => (1_usize..8).prop_map(Step::Dock),
        1 => Just(Step::Settle),
        2 => (0_usize..30, any::<bool>()).prop_map(|(rows, above)| Step::Overlay { rows, above }),
        1 => (0_usize..4).prop_map(Step::Suspend),
        1 => (3_u16..30).prop_map(Step::Height),
        1 => Just(Step::Replay),
    ];
    prop::collection::vec(step, 0..50)
}

fn run(size: Size, shell_rows: u16, steps: &[Step], native_height: bool) {
    let mut stage = Stage::new(size, shell_rows.min(size.height - 1));
    for step in steps {
        match *step {
            Step::Append(count) => stage.append(count),
            Step::Live(count) => stage.doc.live = rows("live", 0..count),
            Step::Dock(count) => stage.doc.dock = vec![Row::styled("dock00000", Style::new()); count],
            Step::Settle => {
                let count = stage.doc.live.len();
                stage.doc.live.clear();
                stage.append(count);
            }
            Step::Overlay { rows: count, above } => {
                let popup = rows("POPUP", 0..count);
                let dock_row = stage.doc.settled.len() + stage.doc.live.len();
                let anchor = if above { Anchor::Beside { row: dock_row, room: 4 } } else { Anchor::Bottom };
                stage.draw(&[Overlay { rows: &popup, anchor }]);
            }
            Step::Suspend(count) => {
                // Live rows are lost by design when the shell takes over, so settle first.
                stage.doc.live.clear();
                stage.draw(&[]);
                stage.suspend(count);
            }
            // Live rows that leave a small screen are out of the painter's reach.
            Step::Height(height)
                if native_height && stage.doc.len() - stage.doc.stable() <= usize::from(height) =>
            {
                let size = Size::new(stage.screen.size().width, height);
                stage.screen.sink_mut().resize(size);
                let cursor = stage.screen.sink().cursor();
                stage.cursor_row = cursor.y;
                stage.screen.resized(size, Some(cursor), &Unchanged);
            }
            Step::Height(_) => {}
            Step::Replay => {
                let size = stage.screen.size();
                stage.screen.reset(size);
                stage.may_reset = true;
                stage.replayed = true;
            }
        }
        stage.draw(&[]);
        stage.check_scrollback();
        stage.draw(&[]);
        assert!(stage.screen.sink_mut().take_writes().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn settled_rows_reach_scrollback_once_and_nothing_else_does(
        width in 12_u16..60, height in 3_u16..28, shell in 0_u16..28, steps in steps(),
    ) {
        run(Size::new(width, height), shell, &steps, false);
    }

    #[test]
    fn a_changing_height_loses_and_doubles_nothing(
        width in 12_u16..60, height in 3_u16..28, shell in 0_u16..28, steps in steps(),
    ) {
        run(Size::new(width, height), shell, &steps, true);
    }

    #[test]
    fn tiny_terminals_are_survived(
        width in 1_u16..11, height in 1_u16..4, shell in 0_u16..3, steps in steps(),
    ) {
        let mut stage = Stage::new(Size::new(width, height), shell.min(height - 1));
        for step in steps {
            match step {
                Step::Append(count) => stage.append(count),
                Step::Live(count) => stage.doc.live = rows("live", 0..count),
                Step::Dock(count) => stage.doc.dock = rows("dock", 0..count),
                Step::Suspend(count) => stage.suspend(count),
                Step::Settle | Step::Replay | Step::Height(_) => stage.doc.live.clear(),
                Step::Overlay { rows: count, .. } => {
                    let popup = rows("POPUP", 0..count);
                    let frame = Frame {
                        document: &stage.doc,
                        overlays: &[Overlay { rows: &popup, anchor: Anchor::Bottom }],
                        cursor: Some(Cursor::Overlay { overlay: 0, row: 0, column: 99 }),
                    };
                    stage.screen.draw(&frame).unwrap();
                    drop(stage.screen.sink_mut().take_writes());
                }
            }
            stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
            drop(stage.screen.sink_mut().take_writes());
        }
    }
}

#[test]
fn a_screen_of_one_cell_and_of_none_is_survived() {
    for size in [Size::new(1, 1), Size::new(10, 3)] {
        let mut stage = Stage::new(size, 0);
        stage.append(20);
        stage.draw(&[]);
        stage.check_scrollback();
    }
    let mut screen = InlineWindow::new(Vec::new(), Size::new(0, 0), Position::new(3, 7));
    let doc = Doc { settled: rows("H", 0..3), ..Doc::default() };
    screen.draw(&Frame::new(&doc)).unwrap();
    screen.resized(Size::new(0, 9), Some(Position::new(0, 8)), &Unchanged);
    screen.draw(&Frame::new(&doc)).unwrap();
}

/// The emulator, like tmux, moves rows to and from its scrollback.
#[test]
fn a_new_height_keeps_every_row() {
    let mut stage = Stage::new(Size::new(40, 24), 3);
    stage.append(100);
    stage.draw(&[]);
    for height in [15, 40, 12, 24, 50, 10, 24] {
        let size = Size::new(40, height);
        stage.screen.sink_mut().resize(size);
        let cursor = stage.screen.sink().cursor();
        stage.cursor_row = cursor.y;
        stage.screen.resized(size, Some(cursor), &Unchanged);
        stage.draw(&[]);
        stage.append(2);
        stage.draw(&[]);
        stage.check_scrollback();
    }
}

#[test]
fn a_reset_replays_in_one_write() {
    let mut stage = Stage::new(Size::new(40, 10), 2);
    stage.append(50);
    stage.draw(&[]);
    let size = Size::new(30, 12);
    stage.screen.sink_mut().resize(size);
    stage.screen.reset(size);
    (stage.may_reset, stage.replayed) = (true, true);
    stage.draw(&[]);
    stage.check_scrollback();
}

#[test]
fn a_frame_writes_only_what_changed() {
    let mut stage = Stage::new(Size::new(80, 24), 0);
    stage.append(500);
    stage.doc.live = rows("live", 0..5);
    stage.draw(&[]);

    let mut most = 0;
    for n in 0..200 {
        stage.doc.live[4] = Row::styled(format!("live {}", "x".repeat(n % 70)), Style::new());
        stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
        let writes = stage.screen.sink_mut().take_writes();
        most = most.max(writes.iter().map(Vec::len).sum());
    }
    assert!(most < 200, "{most} bytes for one changed row");

    stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
    assert!(stage.screen.sink_mut().take_writes().is_empty());
}

#[test]
fn rows_that_arrive_leave_the_end_of_the_screen_where_it_is() {
    let mut stage = Stage::new(Size::new(80, 24), 3);
    stage.doc.dock = rows(&"editor ".repeat(10), 0..6);
    for n in 0..40 {
        stage.append(1);
        stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
        stage.doc.live = vec![Row::styled(format!("live {n}"), Style::new())];
        stage.screen.sink_mut().take_writes();
        stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
        let writes = stage.screen.sink_mut().take_writes();
        let n_bytes: usize = writes.iter().map(Vec::len).sum();
        assert!(n_bytes < 200, "{n_bytes} bytes: the dock has six rows of 75 cells");
        stage.doc.live.clear();
    }
}

#[test]
fn blanks_between_changed_words_take_a_byte_each() {
    let mut stage = Stage::new(Size::new(80, 24), 0);
    stage.doc.live = rows("live", 0..1);
    stage.draw(&[]);
    let words = "one two three four five six seven eight nine ten";
    stage.doc.live = vec![Row::styled(words, Style::new())];
    stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
    let written = String::from_utf8(stage.screen.sink_mut().take_writes().concat()).unwrap();
    assert!(written.contains(words), "{written:?}");
    assert!(written.len() < words.len() + 60, "{} bytes", written.len());
}

/// Counts how often it is asked for a row.
struct Counting {
    len: usize,
    asked: Cell<usize>,
}

impl Document for Counting {
    fn len(&self) -> usize {
        self.len
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        self.asked.set(self.asked.get() + 1);
        Cow::Owned(Row::styled(format!("row {index}"), Style::new()))
    }

    fn stable(&self) -> usize {
        self.len - 1
    }
}

#[test]
fn a_frame_looks_at_the_screen_and_not_at_the_transcript() {
    let size = Size::new(80, 24);
    let mut screen = InlineWindow::new(Vec::new(), size, Position::new(0, 0));
    let mut document = Counting { len: 20_000, asked: Cell::new(0) };
    screen.draw(&Frame::new(&document)).unwrap();
    for _ in 0..10 {
        document.len += 1;
        document.asked.set(0);
        screen.draw(&Frame::new(&document)).unwrap();
        let asked = document.asked.get();
        // It, the row above, which may have changed, and the one that leaves the screen.
        assert!(asked <= 3, "{asked} rows for one that is new");
    }
}

#[test]
fn a_full_screen_leaves_room_for_the_prompt_when_released() {
    let mut stage = Stage::new(Size::new(20, 5), 0);
    stage.append(20);
    stage.doc.dock.clear();
    stage.screen.draw(&Frame::new(&stage.doc)).unwrap();
    stage.screen.release(&stage.doc).unwrap();
    stage.check_scrollback();
    assert_eq!(stage.screen.sink().cursor(), Position::new(0, 4));
    assert_eq!(stage.screen.sink().screen()[3], "H00019");
}

#[test]
fn painting_resumes_below_text_the_shell_left() {
    let mut terminal = VirtualTerminal::new(Size::new(20, 4));
    terminal.shell("one\ntwo\nthree\nno line end");
    let cursor = terminal.cursor();
    let mut screen = InlineWindow::new(terminal, Size::new(20, 4), cursor);
    let doc = Doc { settled: rows("H", 0..1), ..Doc::default() };
    screen.draw(&Frame::new(&doc)).unwrap();
    assert_eq!(screen.sink().screen(), ["two", "three", "no line end", "H00000"]);
}

#[test]
fn links_are_opened_and_closed_around_their_cells() {
    let link = |url| LinkTarget::new(url).unwrap();
    let row =
        |target| Row::from_runs([Run::new("a ", Style::new()), Run::linked("bc", Style::new(), target)]);
    let mut screen = InlineWindow::new(Vec::new(), Size::new(10, 2), Position::new(0, 0));
    screen.set_abilities(Abilities { links: true, ..Abilities::default() });
    let doc = |target| Doc { live: vec![row(link(target))], ..Doc::default() };

    screen.draw(&Frame::new(&doc("https://x.y"))).unwrap();
    let bytes = String::from_utf8(std::mem::take(screen.sink_mut())).unwrap();
    let opener = bytes.find(";https://x.y\x1b\\").unwrap();
    let closer = bytes.find("\x1b]8;;\x1b\\").unwrap();
    assert!(opener < bytes.find("bc").unwrap() && bytes.find("bc").unwrap() < closer);

    screen.draw(&Frame::new(&doc("https://x.y"))).unwrap();
    assert!(screen.sink().is_empty());

    screen.draw(&Frame::new(&doc("https://z.z"))).unwrap();
    let bytes = String::from_utf8(std::mem::take(screen.sink_mut())).unwrap();
    assert!(bytes.contains("https://z.z") && bytes.contains("bc"), "{bytes:?}");
}

#[test]
fn prompts_are_marked_where_they_begin_and_end_when_they_are_drawn() {
    let row = |text: &str, mark| {
        let mut row = Row::styled(text.to_owned(), Style::new());
        row.mark = mark;
        row
    };
    let prompt =
        || vec![row("", Some(PromptMark::Begin)), row("look", None), row("here", Some(PromptMark::End))];
    let mut screen = InlineWindow::new(Vec::new(), Size::new(10, 6), Position::new(0, 0));
    let mut doc = Doc { settled: prompt(), ..Doc::default() };
    screen.draw(&Frame::new(&doc)).unwrap();
    let bytes = String::from_utf8(std::mem::take(screen.sink_mut())).unwrap();
    let begin = bytes.find("\x1b[1;1H\x1b]133;A;redraw=0\x1b\\").unwrap();
    let end = bytes.find("\x1b[3;1H\x1b]133;B\x1b\\\x1b]133;C\x1b\\").unwrap();
    assert!(bytes.find("here").unwrap() < begin && begin < end, "{bytes:?}");
    screen.draw(&Frame::new(&doc)).unwrap();
    assert!(screen.sink().is_empty());
    // An answer below does not repeat the marks; a second prompt has its own.
    doc.settled.push(row("answer", None));
    screen.draw(&Frame::new(&doc)).unwrap();
    let bytes = String::from_utf8(std::mem::take(screen.sink_mut())).unwrap();
    assert!(!bytes.contains("]133;"), "{bytes:?}");
    doc.settled.extend(prompt());
    screen.draw(&Frame::new(&doc)).unwrap();
    let bytes = String::from_utf8(std::mem::take(screen.sink_mut())).unwrap();
    assert_eq!((bytes.matches("]133;A").count(), bytes.matches("]133;C").count()), (1, 1), "{bytes:?}");
}

/// The emulator draws flags, families and skin tones one code point after the
/// other, as some terminals do: each takes more cells than the painter thinks.
#[test]
fn text_behind_emoji_stays_in_its_columns_and_nothing_of_them_is_left() {
    let size = Size::new(24, 3);
    let mut screen = InlineWindow::new(VirtualTerminal::new(size), size, Position::new(0, 0));
    let mut draw = |text: &str| {
        let live = vec![Row::styled(text, Style::new()), Row::styled("below", Style::new())];
        screen.draw(&Frame::new(&Doc { live, ..Doc::default() })).unwrap();
        assert_eq!(screen.sink().screen()[1], "below", "after {text:?}");
        let plain = text.is_ascii().then(|| screen.sink().screen()[0].clone());
        assert!(plain.is_none_or(|row| row == text.trim_end()), "{text:?}: {:?}", screen.sink().screen());
        for glyph in ["|", "x", "y"] {
            let Some((before, _)) = text.split_once(glyph) else { continue };
            let x = u16::try_from(pi::tui::text::width(before)).unwrap();
            assert_eq!(screen.sink().cell(x, 0), glyph, "{glyph} in {text:?}");
        }
    };
    draw("ab👨‍👩‍👧‍👦|x");
    draw("ab👨‍👩‍👧‍👦|xy");
    draw("ab👨‍👩‍👧‍👦c|xy");
    draw("abc|xy");
    draw("🇯🇵🇩🇪|x");
    draw("🇯🇵|x");
    draw("👍🏽👍🏽👍🏽|");
    draw("|");
    draw("1️⃣ ❤️ |y");
    draw("plain");
}

#[test]
fn a_row_with_emoji_is_repainted_as_a_whole_and_others_by_the_cell() {
    let size = Size::new(40, 2);
    let mut screen = InlineWindow::new(VirtualTerminal::new(size), size, Position::new(0, 0));
    let mut draw = |text: &str| {
        let live = vec![Row::styled(text, Style::new())];
        screen.draw(&Frame::new(&Doc { live, ..Doc::default() })).unwrap();
        String::from_utf8(screen.sink_mut().take_writes().concat()).unwrap()
    };
    draw("long text before 🇯🇵 a");
    let written = draw("long text before 🇯🇵 b");
    assert!(
        written.contains("\x1b[1;1H\x1b[0m\x1b[K") && written.contains("long") && written.contains("before"),
        "{written:?}"
    );
    // A cluster drawn wider than measured must not wrap into the next row.
    let (off, on) = (written.find("\x1b[?7l").unwrap(), written.find("\x1b[?7h").unwrap());
    assert!(off < written.find("🇯🇵").unwrap() && written.find("🇯🇵").unwrap() < on, "{written:?}");
    draw("long text before b");
    let written = draw("long text before c");
    assert!(!written.contains("\x1b[2K") && !written.contains("long"), "{written:?}");
}

proptest! {
    /// Rows of any text painted over each other look the same as painted alone.
    #[test]
    fn wide_and_odd_glyphs_are_replaced_cleanly(
        before in "[a-z世🌞é ]{0,12}", after in "[a-z世🌞é ]{0,12}",
    ) {
        let paint = |texts: &[&str]| {
            let size = Size::new(16, 2);
            let mut screen = InlineWindow::new(VirtualTerminal::new(size), size, Position::new(0, 0));
            for text in texts {
                let doc = Doc { live: vec![Row::styled(*text, Style::new())], ..Doc::default() };
                screen.draw(&Frame::new(&doc)).unwrap();
            }
            screen.sink().screen()
        };
        prop_assert_eq!(paint(&[before.as_str(), after.as_str()]), paint(&[after.as_str()]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As a window with a scroll offset does, which shares the canvas and nothing else.
    #[test]
    fn a_canvas_shows_any_part_of_a_document_and_scrolls_nothing(
        size in (1_u16..30, 1_u16..12),
        offsets in prop::collection::vec(0_usize..60, 1..20),
    ) {
        let size = Size::new(size.0, size.1);
        let mut canvas = Canvas::new(VirtualTerminal::new(size), size, Position::new(0, 0));
        let document = rows("H", 0..50);
        for offset in offsets {
            let shown = document.iter().skip(offset).map(Cow::Borrowed);
            let shown = shown.chain(std::iter::repeat_with(Cow::default));
            canvas.show((0..size.height).zip(shown)).unwrap();
            canvas.place_cursor(Position::new(0, 0), false).unwrap();
            canvas.flush().unwrap();
            prop_assert!(canvas.sink_mut().take_writes().len() <= 1);
            let expected = (offset..offset + usize::from(size.height)).map(|index| {
                let text = document.get(index).map(Row::text).unwrap_or_default();
                text.chars().take(usize::from(size.width)).collect::<String>()
            });
            prop_assert_eq!(canvas.sink().screen(), expected.collect::<Vec<_>>());
        }
        prop_assert_eq!(canvas.sink_mut().scrollback(), Vec::<String>::new());
    }
}
