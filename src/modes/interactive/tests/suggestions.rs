//! Suggestions on screens of any height: they never cover what is being typed.

use ratatui::layout::Position;

use crate::tui::term::InlineWindow;

use super::super::ui::{Ui, compose_dock};
use super::*;

const WIDTH: u16 = 80;

/// The rows of an inline screen on which a shell has written `n_shell` lines, after `n_blocks` answers and
/// `typed`.
fn inline(stage: &mut Stage, height: u16, n_shell: u16, typed: &str) -> Vec<String> {
    let narrow = |size| std::num::NonZeroU16::new(size).unwrap();
    let mut terminal = vt100::Parser::new(narrow(height), narrow(WIDTH), 0);
    for _ in 0..n_shell {
        terminal.process(b"$ shell\r\n");
    }
    let (row, column) = terminal.screen().cursor_position();
    let (size, cursor) = (Size::new(WIDTH, height), Position::new(column, row));
    let mut ui = Ui::new(InlineWindow::new(Vec::new(), size, cursor));
    ui.draw(&mut stage.app).unwrap();
    stage.type_keys(typed);
    ui.draw(&mut stage.app).unwrap();
    terminal.process(ui.screen.sink());
    terminal.screen().rows(0, WIDTH).map(|row| row.trim_end().to_owned()).collect()
}

#[track_caller]
fn check(rows: &[String], stage: &mut Stage, height: u16, what: &str) {
    let dock = compose_dock(&mut stage.app, WIDTH, height);
    let composer: Vec<String> =
        dock.rows[dock.editor..].iter().map(|row| row.text().trim_end().to_owned()).collect();
    let is_whole = rows.windows(composer.len()).any(|rows| rows == composer);
    assert!(is_whole, "{what}, height {height}:\n{}", rows.join("\n"));
    assert!(stage.app.input.completion.is_open());
    let n_suggestions =
        rows.iter().filter(|row| row.contains("  Switch") || row.contains("  Choose")).count();
    assert!(height < 8 || n_suggestions > 0, "{what}, height {height}:\n{}", rows.join("\n"));
}

#[test]
fn suggestions_never_cover_the_composer_at_any_height() {
    for height in 3..30 {
        for n_blocks in [0, 1, 20] {
            for n_shell in [0, 3, 40] {
                let what = format!("{n_blocks} answers below {n_shell} lines of a shell");
                let mut stage = Stage::new();
                for block in 0..n_blocks {
                    stage.message(block_of_words(block, 40));
                }
                let rows = inline(&mut stage, height, n_shell, "/");
                check(&rows, &mut stage, height, &what);
            }
            let mut stage = Stage::new();
            for block in 0..n_blocks {
                stage.message(block_of_words(block, 40));
            }
            stage.type_keys("/");
            let rows = stage.screen(WIDTH, height);
            check(&rows, &mut stage, height, &format!("{n_blocks} answers in fullscreen"));
        }
    }
}

#[test]
fn page_keys_turn_the_pages_of_suggestions() {
    for fullscreen in [false, true] {
        let mut stage = Stage::new();
        crate::modes::interactive::fullscreen::set(&mut stage.app, fullscreen);
        let mut selected = |keys: &str| {
            stage.type_keys(keys);
            let rows = stage.screen(WIDTH, 24);
            rows.iter().find(|row| row.contains("  (")).map(|row| row.trim().to_owned()).unwrap_or_default()
        };
        let first = selected("/");
        assert!(first.starts_with("(1/"), "{first}");
        let second = selected("<pageDown>");
        assert!(!second.starts_with("(1/"), "{second}");
        assert_eq!(selected("<pageUp>"), first);
        let last = selected(&"<pageDown>".repeat(20));
        let [at, of] = last.trim_matches(['(', ')']).split('/').collect::<Vec<_>>()[..] else {
            panic!("{last}")
        };
        assert_eq!(at, of);
    }
}
