//! Pictures on the screens of a terminal: each row shows its part wherever it is, and what a
//! screen lacks is sent to it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::borrow::Cow;
use std::io::{self, Write};

use pi::tui::term::{Anchor, Document, Frame, FullscreenWindow, InlineWindow, Overlay, PictureStore};
use pi::tui::text::{PictureFormat, PictureId, PictureKey, PictureSize, Row};
use pi::tui::widgets::picture_rows;
use proptest::prelude::*;
use ratatui::layout::{Position, Size};
use ratatui::style::Style;

use crate::support::virtual_terminal::VirtualTerminal;

/// A terminal that keeps pictures in its cells, as most do: a strip replaces the text under it,
/// scrolls with it, and is erased with it. Its cells show the letter of the strip's row.
struct PictureTerminal {
    inner: VirtualTerminal,
    height: u16,
    /// Everything that was written, since the last look.
    log: String,
}

impl PictureTerminal {
    fn new(size: Size) -> Self {
        Self { inner: VirtualTerminal::new(size), height: size.height, log: String::new() }
    }

    fn take_log(&mut self) -> String {
        std::mem::take(&mut self.log)
    }
}

impl Write for PictureTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).unwrap();
        self.log.push_str(text);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(STRIP) {
            self.inner.feed(before.as_bytes());
            assert!(self.inner.cursor().y + 1 < self.height, "a terminal may scroll after this");
            let (strip, after) = after.split_once('\x07').unwrap();
            self.inner.feed(strip.as_bytes());
            rest = after;
        }
        self.inner.feed(rest.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a strip begins; its cells follow.
const STRIP: &str = "\x1b]1337;File=";

fn key(id: u64, format: PictureFormat, columns: u16, rows: u16) -> PictureKey {
    let size = PictureSize { columns, rows };
    PictureKey { id: PictureId::of_hash(id), size, cell: (10, 20), format }
}

/// What the cells of a picture's row show.
fn cells(key: &PictureKey, row: u16) -> String {
    let letter = char::from(b'A' + u8::try_from(row % 26).unwrap());
    letter.to_string().repeat(usize::from(key.size.columns))
}

fn put(store: &PictureStore, key: PictureKey) {
    let strips: Vec<Vec<u8>> =
        (0..key.size.rows).map(|row| format!("{STRIP}{}\x07", cells(&key, row)).into_bytes()).collect();
    store.put_strips(key, &strips).unwrap();
}

#[derive(Default)]
struct Doc {
    rows: Vec<Row>,
    stable: usize,
}

impl Document for Doc {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        Cow::Borrowed(&self.rows[index])
    }

    fn stable(&self) -> usize {
        self.stable
    }
}

fn text(text: &str) -> Row {
    Row::styled(text, Style::new())
}

/// The rows of a picture, one column from the edge.
fn shown(key: PictureKey) -> Vec<Row> {
    let mut rows = picture_rows(key, "[Image: image/png]", Style::new());
    rows.iter_mut().for_each(|row| row.indent(" ", Style::new()));
    rows
}

/// The rows on the terminal that a row of the document becomes.
fn expected(row: &Row) -> String {
    match row.picture {
        Some(picture) => format!(" {}", cells(&picture.key, picture.row)),
        None => row.text(),
    }
}

struct Stage {
    doc: Doc,
    screen: InlineWindow<PictureTerminal>,
    store: PictureStore,
}

impl Stage {
    fn new(size: Size) -> Self {
        let mut screen = InlineWindow::new(PictureTerminal::new(size), size, Position::new(0, 0));
        let store = PictureStore::default();
        screen.set_pictures(store.clone());
        Self { doc: Doc::default(), screen, store }
    }

    /// One that shows a picture of two rows, which is ready in each format.
    fn with_picture(format: PictureFormat) -> (Self, PictureKey) {
        let mut stage = Self::new(Size::new(20, 8));
        let picture = key(1, format, 8, 2);
        put(&stage.store, picture);
        stage.store.put_image(picture.id, b"png").unwrap();
        stage.append(shown(picture));
        stage.draw(&[]);
        (stage, picture)
    }

    /// Adds settled rows above a dock of one row.
    fn append(&mut self, rows: Vec<Row>) {
        self.doc.rows.pop();
        self.doc.rows.extend(rows);
        self.doc.stable = self.doc.rows.len();
        self.doc.rows.push(text("dock"));
    }

    fn draw(&mut self, overlays: &[Overlay<'_>]) {
        self.screen.draw(&Frame { document: &self.doc, overlays, cursor: None }).unwrap();
    }

    fn everything(&mut self) -> Vec<String> {
        let mut rows = self.screen.sink_mut().inner.everything();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    fn check(&mut self) {
        let expected: Vec<String> = self.doc.rows.iter().map(expected).collect();
        assert_eq!(self.everything(), expected);
    }
}

#[test]
fn a_picture_scrolls_into_the_scrollback_with_its_rows() {
    let mut stage = Stage::new(Size::new(20, 6));
    let picture = key(1, PictureFormat::Sixel, 8, 4);
    put(&stage.store, picture);
    stage.append(vec![text("before")]);
    stage.append(shown(picture));
    stage.draw(&[]);
    stage.check();
    assert_eq!(stage.screen.sink_mut().take_log().matches(STRIP).count(), 4);
    for n in 0..9 {
        stage.append(vec![text(&format!("after {n}"))]);
        stage.draw(&[]);
        stage.check();
    }
    let log = stage.screen.sink_mut().take_log();
    assert!(!log.contains(STRIP), "the terminal moves it by itself");
}

#[test]
fn a_list_over_a_picture_hides_it_and_its_end_shows_it_again() {
    let mut stage = Stage::new(Size::new(20, 8));
    let picture = key(1, PictureFormat::Iterm, 8, 4);
    put(&stage.store, picture);
    stage.append(shown(picture));
    stage.draw(&[]);
    let list = [text("one"), Row::default(), text("x")];
    stage.draw(&[Overlay { rows: &list, anchor: Anchor::Bottom }]);
    assert_eq!(stage.everything(), [" AAAAAAAA", " BBBBBBBB", "one", "", "x"]);
    stage.draw(&[]);
    stage.check();
}

#[test]
fn a_picture_that_comes_late_is_drawn_where_its_rows_are_then() {
    let mut stage = Stage::new(Size::new(30, 10));
    let picture = key(1, PictureFormat::Sixel, 8, 2);
    stage.append(shown(picture));
    // Not settled until it is there.
    stage.doc.stable = 0;
    stage.draw(&[]);
    assert_eq!(stage.everything(), [" [Image:…", "", "dock"]);
    stage.doc.rows.insert(0, text("above"));
    stage.draw(&[]);
    put(&stage.store, picture);
    stage.draw(&[]);
    stage.check();
    stage.screen.sink_mut().take_log();
    stage.draw(&[]);
    assert_eq!(stage.screen.sink_mut().take_log(), "", "nothing is new");
}

#[test]
fn pictures_are_drawn_again_after_another_program_had_the_screen() {
    for format in [PictureFormat::Kitty, PictureFormat::Sixel] {
        let (mut stage, picture) = Stage::with_picture(format);
        let sent = if format.has_placeholders() { "\x1b_Ga=t,f=100,i=2,q=2,m=0;cG5n\x1b\\" } else { STRIP };
        assert!(stage.screen.sink_mut().take_log().contains(sent));
        stage.draw(&[]);
        stage.append(vec![text("more")]);
        stage.draw(&[]);
        assert!(!stage.screen.sink_mut().take_log().contains(sent), "{format:?}: once is enough");
        stage.screen.release(&stage.doc).unwrap();
        let cursor = stage.screen.sink().inner.cursor();
        stage.screen.resume(Size::new(20, 8), cursor);
        stage.append(shown(picture));
        stage.draw(&[]);
        let log = stage.screen.sink_mut().take_log();
        assert!(log.contains(sent), "{format:?}: {log:?}");
    }
}

/// Terminals keep only so many pictures for both screens. Those with a number stay.
#[test]
fn pictures_over_the_text_are_drawn_again_after_another_screen() {
    for format in [PictureFormat::Kitty, PictureFormat::Sixel, PictureFormat::Iterm] {
        let (mut stage, _) = Stage::with_picture(format);
        stage.screen.sink_mut().take_log();
        stage.screen.return_to();
        stage.draw(&[]);
        let log = stage.screen.sink_mut().take_log();
        assert_eq!(log.matches(STRIP).count(), if format.has_placeholders() { 0 } else { 2 }, "{log:?}");
        if !format.has_placeholders() {
            stage.check();
        }
        stage.draw(&[]);
        assert_eq!(stage.screen.sink_mut().take_log(), "", "nothing is new");
    }
}

#[test]
fn the_alternate_screen_gets_pictures_of_its_own() {
    let size = Size::new(20, 8);
    let store = PictureStore::default();
    let picture = key(1, PictureFormat::Kitty, 8, 2);
    store.put_image(picture.id, b"png").unwrap();
    let rows = || shown(picture).into_iter().map(Cow::Owned);
    let sent = "\x1b_Ga=t,f=100,i=2,";
    let mut window = FullscreenWindow::new(PictureTerminal::new(size), size);
    window.set_pictures(store);
    window.draw(rows(), None).unwrap();
    assert_eq!(window.sink_mut().take_log().matches(sent).count(), 1);
    // Scrolling it costs nothing.
    window.draw([Cow::Owned(text("above"))].into_iter().chain(rows()), None).unwrap();
    window.repaint();
    window.draw(rows(), None).unwrap();
    assert!(!window.sink_mut().take_log().contains(sent));
    // The terminal clears the alternate screen when it is entered again.
    window.resume();
    window.draw(rows(), None).unwrap();
    assert_eq!(window.sink_mut().take_log().matches(sent).count(), 1);
}

#[test]
fn pictures_over_rows_that_move_wait_until_they_rest() {
    let size = Size::new(20, 8);
    let store = PictureStore::default();
    let picture = key(1, PictureFormat::Sixel, 8, 4);
    put(&store, picture);
    let mut window = FullscreenWindow::new(PictureTerminal::new(size), size);
    window.set_pictures(store);
    let document: Vec<Row> =
        (0..5).map(|n| text(&n.to_string())).chain(shown(picture)).chain([text("end")]).collect();
    for top in 0..=6 {
        let rows = document[top..].iter().take(6).map(Cow::Borrowed);
        window.draw(rows, None).unwrap();
        assert!(!window.sink_mut().take_log().contains(STRIP));
        assert!(window.canvas_mut().have_pictures_moved() == (top > 0) || top == 0);
    }
    assert!(window.canvas_mut().have_pictures_waiting());
    window.canvas_mut().draw_waiting_pictures().unwrap();
    // The first row of the picture is above the screen.
    assert_eq!(window.sink().inner.screen()[..4], [" BBBBBBBB", " CCCCCCCC", " DDDDDDDD", "end"]);
    assert!(!window.canvas_mut().have_pictures_waiting());
    // What else changes leaves them alone.
    window.sink_mut().take_log();
    let rows = document[6..9].iter().map(Cow::Borrowed).chain([Cow::Owned(text("changed"))]);
    window.draw(rows, None).unwrap();
    assert!(!window.canvas_mut().have_pictures_moved() && !window.canvas_mut().have_pictures_waiting());
    assert_eq!(window.sink().inner.screen()[..4], [" BBBBBBBB", " CCCCCCCC", " DDDDDDDD", "changed"]);
}

#[derive(Debug, Clone)]
enum Step {
    Text(usize),
    Picture { columns: u16, rows: u16 },
    List(usize),
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..12).prop_map(Step::Text),
        3 => (1_u16..9, 1_u16..12).prop_map(|(columns, rows)| Step::Picture { columns, rows }),
        1 => (1_usize..6).prop_map(Step::List),
        1 => Just(Step::Resume),
    ];
    prop::collection::vec(step, 1..12)
}

proptest! {
    #[test]
    fn every_row_of_every_picture_is_there_once_and_in_order(steps in steps(), height in 2_u16..12) {
        let size = Size::new(24, height);
        let mut stage = Stage::new(size);
        let mut n_rows = 0;
        for (id, step) in (1..).zip(steps) {
            match step {
                Step::Text(count) => {
                    stage.append((n_rows..n_rows + count).map(|n| text(&format!("row {n}"))).collect());
                    n_rows += count;
                }
                Step::Picture { columns, rows } => {
                    let picture = key(id, PictureFormat::Iterm, columns, rows);
                    put(&stage.store, picture);
                    stage.append(shown(picture));
                }
                Step::List(count) if !stage.doc.rows.is_empty() => {
                    let list: Vec<Row> = (0..count).map(|_| text("list")).collect();
                    stage.draw(&[Overlay { rows: &list, anchor: Anchor::Bottom }]);
                }
                Step::Resume if !stage.doc.rows.is_empty() => {
                    stage.screen.release(&stage.doc).unwrap();
                    let cursor = stage.screen.sink().inner.cursor();
                    stage.screen.resume(size, cursor);
                }
                Step::List(_) | Step::Resume => continue,
            }
            stage.draw(&[]);
            stage.check();
        }
    }
}
