//! The cost of a frame while an answer streams into a long transcript.

use std::borrow::Cow;
use std::io;

use pi::tui::markdown::{Highlighter, MarkdownOptions, MarkdownStream};
use pi::tui::term::{Document, Frame, InlineWindow};
use pi::tui::text::{Row, wrap_plain};
use pi::tui::theme::{Appearance, ColorDepth, Theme};
use ratatui::layout::{Position, Size};
use ratatui::style::Style;

fn main() {
    divan::main();
}

const SIZE: Size = Size { width: 200, height: 60 };

struct Transcript<'a> {
    settled: &'a [Row],
    live: &'a [Row],
    live_stable: usize,
}

impl Document for Transcript<'_> {
    fn len(&self) -> usize {
        self.settled.len() + self.live.len()
    }

    fn row(&self, index: usize) -> Cow<'_, Row> {
        let live = || &self.live[index - self.settled.len()];
        Cow::Borrowed(self.settled.get(index).unwrap_or_else(live))
    }

    fn stable(&self) -> usize {
        self.settled.len() + self.live_stable
    }
}

/// A frame per delta of 60 bytes below this many settled rows. The times of all
/// sizes have to be alike.
#[divan::bench(args = [100, 1_000, 10_000, 100_000])]
fn streamed_delta(bencher: divan::Bencher<'_, '_>, n_settled: usize) {
    let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).expect("dark is built in");
    let highlighter = Highlighter::new();
    let settled: Vec<Row> = (0..n_settled)
        .flat_map(|n| wrap_plain(&format!("row {n} of the transcript"), SIZE.width, Style::new()))
        .collect();
    let mut screen = InlineWindow::new(io::sink(), SIZE, Position::new(0, 0));
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    // Longer answers than this are rare, and the rows of one are kept by the caller.
    const MAX_ANSWER_BYTES: usize = 20_000;
    let mut deltas =
        ["Some words of an answer with `code` and **more** of it, so on ", "to the end.\n\n- an item\n"]
            .into_iter()
            .cycle();
    screen
        .draw(&Frame::new(&Transcript { settled: &settled, live: &[], live_stable: 0 }))
        .expect("a sink takes all bytes");
    bencher.bench_local(|| {
        if stream.source().len() > MAX_ANSWER_BYTES {
            stream = MarkdownStream::new(MarkdownOptions::default());
            screen.resume(SIZE, Position::new(0, 0));
        }
        stream.push(deltas.next().unwrap_or_default());
        stream.rows(SIZE.width, &theme, &highlighter);
        let live_stable = stream.stable_rows();
        let live = stream.rows(SIZE.width, &theme, &highlighter);
        let document = Transcript { settled: &settled, live, live_stable };
        screen.draw(&Frame::new(&document)).expect("a sink takes all bytes");
    });
}

/// Showing a resumed session: everything is replayed once.
#[divan::bench(args = [1_000, 5_000])]
fn replay(bencher: divan::Bencher<'_, '_>, n_settled: usize) {
    let settled: Vec<Row> =
        (0..n_settled).map(|n| Row::styled(format!("row {n} of the transcript"), Style::new())).collect();
    let document = Transcript { settled: &settled, live: &[], live_stable: 0 };
    let mut screen = InlineWindow::new(io::sink(), SIZE, Position::new(0, 0));
    bencher.bench_local(|| {
        screen.reset(SIZE);
        screen.draw(&Frame::new(&document)).expect("a sink takes all bytes");
    });
}
