//! The report about a screen.

use ratatui::layout::Position;
use ratatui::style::Style;

use crate::tui::term::ScreenReport;
use crate::tui::text::Row;

use super::super::debug_report::{ScreenFacts, report};
use super::super::msg::ScreenEffect;
use super::*;

fn facts(painted: Size, rows: Vec<Option<Row>>) -> ScreenFacts {
    let reported = ScreenReport { cursor: Some(Position::new(4, 7)), size: Some(Size::new(58, 18)) };
    let (system, name) = (Some(Size::new(59, 19)), "main screen");
    ScreenFacts { name, painted, system, reported, rows, origin: 3, pushed: 2, in_view: 2..9 }
}

#[test]
fn report_has_the_rows_of_the_screen_with_their_widths() {
    let mut stage = Stage::new();
    stage.message(user("what is 世界?"));
    stage.app.transcript.layout(60, &stage.app.theme.clone(), Duration::ZERO);
    let row = |text: &str| Some(Row::styled(text.to_owned(), Style::default()));
    let rows = vec![None, row("short"), row(&"x".repeat(61))];
    let text = report(&stage.app, &facts(Size::new(60, 20), rows), &Default::default());
    for line in [
        "screen: 60x20, main screen",
        "size reported by the system: 59x19",
        "size reported by the terminal: 58x18",
        "cursor reported by the terminal: column 4, row 7",
        "window: from screen row 3, 2 rows in the scrollback",
        "     0    0  \"\"",
        "     1    5  \"short\"",
    ] {
        assert!(text.lines().any(|row| row == line), "{line} is not in\n{text}");
    }
    let too_wide: Vec<&str> = text.lines().filter(|row| row.contains('!')).collect();
    assert_eq!(too_wide, [format!("     2!  61  {:?}", "x".repeat(61))]);
    let (_, transcript) = text.split_once("Transcript").unwrap();
    assert!(transcript.contains("what is 世界?"), "{text}");
}

#[test]
fn canvas_has_the_rows_of_dialogs_and_suggestions() {
    for (keys, shown) in [("/mod", "→ /model"), ("/model<enter>", "Sonata 4 Large")] {
        let mut stage = Stage::new();
        stage.type_keys(keys);
        fullscreen::set(&mut stage.app, true);
        let mut window = FullscreenWindow::new(Vec::new(), Size::new(60, 20));
        draw_fullscreen(&mut stage.app, &mut window).unwrap();
        let rows: Vec<Option<Row>> = window.canvas_mut().rows().map(Option::<&Row>::cloned).collect();
        assert_eq!(rows.len(), 20);
        let text = report(&stage.app, &facts(window.size(), rows), &Default::default());
        assert!(text.contains(shown), "{shown} is not in\n{text}");
    }
}

#[test]
fn command_and_key_report_the_screen_whatever_is_open() {
    for keys in
        ["/debug<enter>", "draft<ctrl+shift+d>", "/model<enter><ctrl+shift+d>", "<alt+o><ctrl+shift+d>"]
    {
        let mut stage = Stage::new();
        stage.type_keys(keys);
        let is_reported = |effect: &Effect| *effect == Effect::Screen(ScreenEffect::ReportScreen);
        assert!(stage.effects.iter().any(is_reported), "{keys}");
    }
}
