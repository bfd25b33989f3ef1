//! The fullscreen window against a terminal emulator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::borrow::Cow;

use pi::tui::term::FullscreenWindow;
use pi::tui::text::Row;
use proptest::prelude::*;
use ratatui::layout::{Position, Size};
use ratatui::style::Style;

use crate::support::virtual_terminal::VirtualTerminal;

type Window = FullscreenWindow<VirtualTerminal>;

fn window(size: Size) -> Window {
    let mut terminal = VirtualTerminal::new(size);
    terminal.shell("left by another program\n");
    FullscreenWindow::new(terminal, size)
}

fn draw(window: &mut Window, texts: &[String], cursor: Option<Position>) -> usize {
    let rows = texts.iter().map(|text| Cow::Owned(Row::styled(text.clone(), Style::new())));
    window.draw(rows, cursor).unwrap();
    let writes = window.sink_mut().take_writes();
    assert!(writes.len() <= 1, "{} writes in one frame", writes.len());
    for bytes in &writes {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains('\n') && !text.contains("\x1b[3J"), "rows leave the screen: {text:?}");
    }
    writes.iter().map(Vec::len).sum()
}

fn expected(texts: &[String], size: Size) -> Vec<String> {
    let mut rows: Vec<String> = texts.iter().take(usize::from(size.height)).cloned().collect();
    rows.resize(usize::from(size.height), String::new());
    let width = usize::from(size.width);
    rows.iter().map(|row| row.chars().take(width).collect::<String>().trim_end().to_owned()).collect()
}

proptest! {
    #[test]
    fn each_frame_shows_its_rows_and_nothing_else(
        width in 1_u16..40,
        height in 1_u16..12,
        frames in prop::collection::vec(
            (prop::collection::vec("[a-z ]{0,30}", 0..14), prop::option::of((0_u16..50, 0_u16..14)), prop::bool::weighted(0.1)),
            1..12,
        ),
    ) {
        let size = Size::new(width, height);
        let mut window = window(size);
        for (texts, cursor, repaint) in frames {
            if repaint {
                window.sink_mut().shell("noise of another program");
                window.repaint();
            }
            let scrollback = window.sink_mut().scrollback();
            let cursor = cursor.map(|(x, y)| Position::new(x, y));
            draw(&mut window, &texts, cursor);
            prop_assert_eq!(window.sink().screen(), expected(&texts, size));
            prop_assert_eq!(window.sink().cursor_visible(), cursor.is_some());
            if let Some(cursor) = cursor {
                prop_assert_eq!(window.sink().cursor(), Position::new(cursor.x.min(width - 1), cursor.y.min(height - 1)));
            }
            prop_assert_eq!(draw(&mut window, &texts, cursor), 0, "nothing changed");
            prop_assert_eq!(window.sink_mut().scrollback(), scrollback);
        }
    }

    #[test]
    fn bytes_are_bounded_by_the_change(row in 0_usize..40, text in "[a-z]{1,20}") {
        let mut texts: Vec<String> = (0..40).map(|n| format!("row {n:02} {}", "x".repeat(70))).collect();
        let mut window = window(Size::new(120, 40));
        draw(&mut window, &texts, None);
        texts[row].push_str(&text);
        let n_bytes = draw(&mut window, &texts, None);
        prop_assert!(n_bytes <= text.len() + 100, "{n_bytes}");
    }
}

#[test]
fn a_new_size_draws_everything_on_the_new_screen() {
    let texts: Vec<String> = (0..30).map(|n| format!("row {n}")).collect();
    let mut window = window(Size::new(20, 10));
    draw(&mut window, &texts, None);
    for size in [Size::new(40, 20), Size::new(5, 3), Size::new(20, 10)] {
        window.sink_mut().resize(size);
        window.resize(size);
        draw(&mut window, &texts, None);
        assert_eq!(window.sink().screen(), expected(&texts, size));
    }
}
