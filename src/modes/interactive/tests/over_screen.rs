//! Lists, reports and the pager over the main screen of a terminal that changes its size: nothing of
//! them is ever in the scrollback, and the transcript comes back with what was added.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use proptest::prelude::*;
use ratatui::layout::Position;

use crate::tui::term::InlineWindow;
use crate::tui::term::SizeSeen;

use super::super::commands;
use super::super::dialogs::AskedBy;
use super::super::msg::ScreenEffect;
use super::super::over_screen::{self, MainScreen, OverScreen};
use super::super::ui::Ui;
use super::emulators::reflowing_terminal::{Emulator, ReflowingTerminal};
use super::emulators::virtual_terminal::VirtualTerminal;
use super::*;

const SHELL_LINES: usize = 25;

/// A terminal that two windows write to.
pub(super) struct Shared<T>(pub(super) Rc<RefCell<T>>);

impl<T> Shared<T> {
    pub(super) fn new(terminal: T) -> Self {
        Self(Rc::new(RefCell::new(terminal)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Emulator> Write for Shared<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// The app on a terminal, with its screens as `Terminal` switches them.
struct Screens<T: Emulator> {
    stage: Stage,
    terminal: Shared<T>,
    size: Size,
    ui: Ui<Shared<T>>,
    over: Option<OverScreen<Shared<T>>>,
    n_blocks: usize,
    /// Rows that were shown on the alternate screen.
    seen: Vec<String>,
}

impl<T: Emulator> Screens<T> {
    fn new(size: Size) -> Self {
        let mut terminal = T::new(size);
        for n in 0..SHELL_LINES {
            terminal.shell(&format!("$ shell {n:03}\n"));
        }
        let cursor = terminal.cursor();
        let terminal = Shared::new(terminal);
        let ui = Ui::new(InlineWindow::new(terminal.clone(), size, cursor));
        let (stage, over, seen) = (Stage::new(), None, Vec::new());
        let mut screens = Self { stage, terminal, size, ui, over, n_blocks: 0, seen };
        screens.draw();
        screens
    }

    fn write(&mut self, bytes: &str) {
        self.terminal.write_all(bytes.as_bytes()).unwrap();
    }

    fn cursor(&self) -> Position {
        self.terminal.0.borrow().cursor()
    }

    fn draw(&mut self) {
        let app = &mut self.stage.app;
        if !over_screen::is_wanted(app, self.size) {
            if let Some(over) = self.over.take() {
                self.write("\x1b[?1049l");
                let below = over.close(&mut self.ui.screen);
                self.return_to_main(below);
            }
            return self.ui.draw(&mut self.stage.app).unwrap();
        }
        if self.over.is_none() {
            self.ui.draw_undisturbed(app).unwrap();
            let below = MainScreen::new(app, &self.ui.screen);
            let window = FullscreenWindow::new(self.terminal.clone(), self.size);
            self.write("\x1b[?1049h");
            self.over = Some(OverScreen::new(window, below));
        }
        self.over.as_mut().unwrap().draw(&mut self.stage.app).unwrap();
        let (_, screen) = self.terminal.0.borrow_mut().lines();
        self.seen = screen;
    }

    fn return_to_main(&mut self, below: MainScreen) {
        let cursor = self.cursor();
        let app = &mut self.stage.app;
        if below.is_resized {
            self.ui.follow_size(app, self.size, Some(cursor), &below.places);
        } else if below.is_relaid {
            self.ui.lay_out_since(app, &below.places);
        }
    }

    fn resize(&mut self, size: Size) {
        self.terminal.0.borrow_mut().resize(size);
        self.size = size;
        match &mut self.over {
            Some(over) => {
                self.ui.screen.had_size(SizeSeen::Between(size));
                over.resize(size);
            }
            None => {
                let cursor = self.cursor();
                let app = &mut self.stage.app;
                let places = app.transcript.places(self.ui.screen.rows_in_view());
                self.ui.follow_size(app, size, Some(cursor), &places);
            }
        }
        self.draw();
    }

    fn append(&mut self, n_words: usize) {
        let block = self.n_blocks;
        self.n_blocks += 1;
        self.stage.message(block_of_words(block, n_words));
        self.draw();
    }

    fn keys(&mut self, keys: &str) {
        self.stage.type_keys(keys);
        self.draw();
    }

    /// Closes what is open, and returns the lines of scrollback and screen.
    fn lines(&mut self) -> (Vec<String>, Vec<String>) {
        self.stage.app.pager = None;
        self.stage.app.dialogs.clear();
        self.draw();
        self.terminal.0.borrow_mut().lines()
    }

    /// The scrollback has rows of shell and transcript only, and each of them once.
    fn check(&mut self, must_be_whole: bool) {
        let (scrollback, screen) = self.lines();
        let is_known = |row: &String| {
            let row = row.trim();
            row.is_empty()
                || row.starts_with("$ shell")
                || row.starts_with('w')
                || row.starts_with("pi v0")
                || row.starts_with("escape interrupt")
        };
        let foreign: Vec<&String> = scrollback.iter().filter(|row| !is_known(row)).collect();
        assert!(foreign.is_empty(), "in the scrollback: {foreign:#?}");
        let text = [scrollback, screen].concat().join("\n");
        for n in 0..SHELL_LINES {
            assert_eq!(text.matches(&format!("$ shell {n:03}")).count(), 1, "shell row {n} in {text}");
        }
        for block in 0..self.n_blocks {
            let n_found = text.matches(&format!("w{block:03}.00")).count();
            let is_right = if must_be_whole { n_found == 1 } else { (1..=2).contains(&n_found) };
            assert!(is_right, "block {block} is there {n_found} times: {text}");
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Open(&'static str),
    Close,
    Resize(u16, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let opened =
        ["/hotkeys<enter>", "/settings<enter>", "<ctrl+l>", "/scoped-models<enter>", "/trust<enter>"];
    let step = prop_oneof![
        2 => (1_usize..90).prop_map(Step::Append),
        3 => prop::sample::select(opened.to_vec()).prop_map(Step::Open),
        1 => Just(Step::Close),
        // Wide and high enough that the dock of the main screen stays on it.
        5 => (60_u16..110, 16_u16..40).prop_map(|(width, height)| Step::Resize(width, height)),
    ];
    prop::collection::vec(step, 1..25)
}

fn run<T: Emulator>(steps: &[Step], must_be_whole: bool) {
    let mut screens = Screens::<T>::new(Size::new(90, 30));
    screens.resize(Size::new(80, 30));
    for step in steps {
        match *step {
            Step::Append(n_words) => screens.append(n_words),
            Step::Open(keys) if screens.over.is_none() => screens.keys(keys),
            Step::Open(_) => {}
            Step::Close => screens.check(must_be_whole),
            Step::Resize(width, height) => screens.resize(Size::new(width, height)),
        }
    }
    screens.check(must_be_whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn nothing_over_the_main_screen_reaches_the_scrollback_where_the_terminal_reflows(steps in steps()) {
        run::<ReflowingTerminal>(&steps, true);
    }

    #[test]
    fn nothing_over_the_main_screen_reaches_the_scrollback_where_the_terminal_cuts(steps in steps()) {
        run::<VirtualTerminal>(&steps, false);
    }
}

/// Down to a few rows and back, with every kind of dialog.
#[test]
fn terminal_of_any_height_keeps_dialogs_out_of_its_scrollback() {
    let opened = ["/hotkeys<enter>", "/settings<enter>", "<ctrl+l>", "/thinking<enter>"];
    for keys in opened {
        let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
        (0..12).for_each(|_| screens.append(40));
        screens.keys(keys);
        assert!(screens.over.is_some(), "{keys}");
        for height in [12, 5, 2, 40, 3, 24] {
            screens.resize(Size::new(80, height));
        }
        screens.append(40);
        screens.check(true);
    }
}

/// Also those without a text cursor, such as the one about trust.
#[test]
fn every_dialog_of_a_command_leaves_the_transcript_as_it_was_at_any_width() {
    let mut n_opened = 0;
    for command in commands::all() {
        let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
        (0..6).for_each(|_| screens.append(30));
        (command.run)(&mut screens.stage.app, "", &mut Vec::new());
        screens.draw();
        if !(screens.stage.app.dialogs.is_open() || screens.stage.app.pager.is_some()) {
            continue;
        }
        n_opened += 1;
        assert!(screens.over.is_some(), "/{}", command.name);
        for width in [30, 80, 20, 80] {
            screens.resize(Size::new(width, 24));
        }
        screens.append(30);
        screens.check(true);
    }
    assert!(n_opened > 8, "{n_opened}");
}

/// One that nobody asked for is on the main screen, where its rows wrap.
#[test]
fn question_on_the_main_screen_leaves_the_transcript_as_it_was_at_other_widths() {
    for widths in [[60, 80], [45, 80], [100, 50]] {
        let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
        (0..6).for_each(|_| screens.append(30));
        screens.stage.app.open_trust(AskedBy::Session);
        screens.draw();
        assert!(screens.over.is_none());
        for width in widths {
            screens.resize(Size::new(width, 24));
        }
        screens.append(30);
        screens.check(true);
    }
}

#[test]
fn cursor_is_shown_again_when_what_was_open_closes() {
    let mut screens = Screens::<VirtualTerminal>::new(Size::new(80, 24));
    let shows = |screens: &Screens<VirtualTerminal>| screens.terminal.0.borrow().cursor_visible();
    assert!(shows(&screens));
    screens.keys("/hotkeys<enter>");
    assert!(!shows(&screens), "the pager has no cursor");
    screens.keys("q");
    assert!(screens.over.is_none() && shows(&screens));
}

#[test]
fn pi_can_be_suspended_whatever_is_open() {
    for keys in ["", "/hotkeys<enter>", "/settings<enter>", "<alt+o>"] {
        let mut stage = Stage::new();
        stage.type_keys(keys);
        stage.effects.clear();
        stage.type_keys("<ctrl+z>");
        assert!(matches!(stage.effects[..], [Effect::Screen(ScreenEffect::Suspend)]), "{keys}");
    }
}

/// What settles while a list is open is written when it closes; until then the main screen rests.
#[test]
fn rows_that_settle_behind_a_list_are_written_when_it_closes() {
    let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
    (0..5).for_each(|_| screens.append(40));
    screens.keys("/thinking<enter>");
    assert!(screens.seen.iter().any(|row| row.contains("w00")), "the transcript stays above the list");
    (0..30).for_each(|_| screens.append(40));
    let (scrollback, _) = screens.terminal.0.borrow_mut().lines();
    assert!(scrollback.is_empty(), "the alternate screen has none: {scrollback:#?}");
    screens.check(true);
}

/// Another program, such as an editor, had the screen: the rows above pi's are those of the transcript.
#[test]
fn transcript_stays_visible_above_a_list_after_another_program_had_the_screen() {
    let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 30));
    (0..12).for_each(|_| screens.append(40));
    let n_shown = |screens: &mut Screens<ReflowingTerminal>| {
        screens.keys("/thinking<enter>");
        let n_shown = screens.seen.iter().filter(|row| row.trim_start().starts_with('w')).count();
        screens.stage.app.dialogs.clear();
        screens.draw();
        n_shown
    };
    let before = n_shown(&mut screens);
    assert!(before > 5);
    screens.ui.release(&screens.stage.app).unwrap();
    let cursor = screens.cursor();
    screens.ui.screen.resume(screens.size, cursor);
    screens.draw();
    assert_eq!(n_shown(&mut screens), before);
    screens.check(true);
}

/// A question that nobody asked for stays where its context can be scrolled to, unless it is tall.
#[test]
fn question_stays_on_the_main_screen_while_it_takes_less_than_half_of_it() {
    let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
    (0..12).for_each(|_| screens.append(40));
    screens.stage.ask_question();
    screens.draw();
    assert!(screens.over.is_none());
    // One step to a screen that is as high as the question.
    screens.resize(Size::new(80, 7));
    screens.check(true);
    screens.stage.ask_question();
    screens.draw();
    assert!(screens.over.is_some(), "it takes most of seven rows");
    screens.check(true);
}

/// A list shows the transcript at the width that the terminal has now, and the main screen finds its
/// rows again.
#[test]
fn theme_and_width_that_change_behind_a_list_keep_the_rows_of_the_main_screen() {
    let mut screens = Screens::<ReflowingTerminal>::new(Size::new(80, 24));
    (0..12).for_each(|_| screens.append(40));
    screens.keys("<ctrl+l>");
    screens.resize(Size::new(60, 24));
    screens.resize(Size::new(80, 24));
    let theme = Theme::builtin("light", Appearance::Light, ColorDepth::True).unwrap();
    let pictures = None;
    screens.stage.app.set_looks(theme, false, pictures);
    screens.draw();
    screens.append(40);
    screens.check(true);
}
