//! The report about a screen.

use super::super::debug_report::{ScreenFacts, report};
use super::super::msg::ScreenEffect;
use super::*;

#[test]
fn report_has_the_rows_of_the_screen_with_their_widths() {
    for fullscreen in [false, true] {
        let mut stage = Stage::new();
        stage.message(user("what is 世界?"));
        fullscreen::set(&mut stage.app, fullscreen);
        stage.type_keys("draft");
        if fullscreen {
            stage.screen(60, 20);
        } else {
            stage.app.transcript.layout(60, &stage.app.theme.clone(), Duration::ZERO);
        }
        let facts = ScreenFacts { size: Size::new(60, 20), origin: 3, pushed: 2, in_view: 2..9 };
        let text = report(&mut stage.app, &facts, &Default::default());
        let row = |part: &str| {
            let row = text.lines().find(|row| row.contains(part));
            row.unwrap_or_else(|| panic!("{part} is not in\n{text}")).to_owned()
        };
        let screen = if fullscreen { "screen: 60x20, fullscreen" } else { "screen: 60x20, main screen" };
        row(screen);
        row("window: from screen row 3, 2 rows in the scrollback");
        row("what is 世界?");
        row("draft");
        let border = row("────");
        assert_eq!(border.split_whitespace().nth(1), Some("60"), "{border}");
        assert!(!text.contains('!'), "no row is too wide:\n{text}");
    }
}

#[test]
fn command_and_key_report_the_screen() {
    for keys in ["/debug<enter>", "draft<ctrl+shift+d>"] {
        let mut stage = Stage::new();
        stage.type_keys(keys);
        let is_reported = |effect: &Effect| *effect == Effect::Screen(ScreenEffect::ReportScreen);
        assert!(stage.effects.iter().any(is_reported), "{keys}");
    }
}
