//! A terminal whose size changes before the system knows of it, as in tmux, or while a frame is on its
//! way: no row of shell and transcript is lost, and each is there once.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::tui::term::{FrameGuard, InlineWindow, ReflowTraits, ScreenReport};

use super::super::size::{SIZE_RETRIES, ScreenSensor, adopt_size, was_shown};
use super::super::ui::Ui;
use super::emulators::reflowing_terminal::{Emulator, ReflowingTerminal};
use super::emulators::virtual_terminal::VirtualTerminal;
use super::over_screen::Shared;
use super::*;

const SHELL_LINES: usize = 40;

/// What the program can ask.
pub(super) struct LateTerminal<T> {
    pub(super) terminal: Shared<T>,
    /// The size that the terminal has, and the one that the system knows.
    pub(super) size: Size,
    pub(super) known: Size,
}

impl<T: Emulator> LateTerminal<T> {
    pub(super) fn resize(&mut self, size: Size) {
        self.terminal.0.borrow_mut().resize(size);
        self.size = size;
    }
}

impl<T: Emulator> ScreenSensor for LateTerminal<T> {
    fn known_size(&self) -> Option<Size> {
        Some(self.known)
    }

    fn ask_screen(&mut self) -> ScreenReport {
        ScreenReport { cursor: Some(self.terminal.0.borrow().cursor()), size: Some(self.size) }
    }
}

/// The app on such a terminal, driven like by the loop of interactive mode.
pub(super) struct LateScreen<T: Emulator> {
    pub(super) stage: Stage,
    pub(super) terminal: LateTerminal<T>,
    pub(super) ui: Ui<Shared<T>>,
    n_blocks: usize,
    /// Heights that the terminal takes while frames are on their way.
    surprises: VecDeque<u16>,
}

impl<T: Emulator> LateScreen<T> {
    pub(super) fn new(size: Size, traits: ReflowTraits) -> Self {
        let mut terminal = T::new(size);
        for n in 0..SHELL_LINES {
            terminal.shell(&format!("$ shell {n:03}\n"));
        }
        let cursor = terminal.cursor();
        let terminal = Shared::new(terminal);
        let mut ui = Ui::new(InlineWindow::new(terminal.clone(), size, cursor));
        ui.screen.set_traits(traits);
        let terminal = LateTerminal { terminal, size, known: size };
        let surprises = VecDeque::new();
        let mut screen = Self { stage: Stage::new(), terminal, ui, n_blocks: 0, surprises };
        screen.draw();
        screen
    }

    /// A frame, soon after a change of the size.
    pub(super) fn draw(&mut self) {
        if self.terminal.ask_screen().size != Some(self.ui.screen.size()) {
            return self.follow_size();
        }
        self.ui.screen.guard_next_frame(FrameGuard::StartAtCursor);
        self.ui.draw(&mut self.stage.app).unwrap();
    }

    pub(super) fn follow_size(&mut self) {
        for _ in 0..SIZE_RETRIES {
            adopt_size(&mut self.ui, &mut self.stage.app, &mut self.terminal, None);
            if let Some(height) = self.surprises.pop_front() {
                self.terminal.resize(Size::new(self.terminal.size.width, height));
            }
            let before = self.terminal.size;
            self.ui.draw(&mut self.stage.app).unwrap();
            if was_shown(&mut self.ui, Some((before, self.terminal.size))) {
                return;
            }
        }
    }

    pub(super) fn append(&mut self, n_words: usize) {
        let block = self.n_blocks;
        self.n_blocks += 1;
        self.stage.message(block_of_words(block, n_words));
        self.draw();
    }

    /// How often each row of the shell and the first word of each block are there.
    fn counts(&mut self) -> Vec<(String, usize)> {
        let (scrollback, screen) = self.terminal.terminal.0.borrow_mut().lines();
        let text = [scrollback, screen].concat().join("\n");
        let shell = (0..SHELL_LINES).map(|n| format!("$ shell {n:03}"));
        let blocks = (0..self.n_blocks).map(|block| format!("w{block:03}.00"));
        let count = |row: String| {
            let n_found = text.matches(&row).count();
            (row, n_found)
        };
        shell.chain(blocks).map(count).collect()
    }

    pub(super) fn check(&mut self, is_right: impl Fn(usize) -> bool) {
        let wrong: Vec<_> = self.counts().into_iter().filter(|(_, count)| !is_right(*count)).collect();
        let (scrollback, screen) = self.terminal.terminal.0.borrow_mut().lines();
        assert!(wrong.is_empty(), "how often rows are there: {wrong:?} in {scrollback:#?} and {screen:#?}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Resize(u16, u16),
    /// The height changes while the next frame that follows the size is on its way.
    Surprise(u16),
    Tell,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (1_usize..90).prop_map(Step::Append),
        4 => (60_u16..110, 16_u16..46).prop_map(|(width, height)| Step::Resize(width, height)),
        2 => Just(Step::Tell),
    ];
    prop::collection::vec(step, 1..25)
}

fn steps_with_surprises() -> impl Strategy<Value = Vec<Step>> {
    let surprise = prop::option::weighted(0.5, (16_u16..46).prop_map(Step::Surprise));
    let step = (surprise, steps()).prop_map(|(surprise, steps)| surprise.into_iter().chain(steps));
    prop::collection::vec(step, 1..6).prop_map(|parts| parts.into_iter().flatten().collect())
}

fn run<T: Emulator>(traits: ReflowTraits, steps: &[Step], is_right: impl Fn(usize) -> bool) {
    let mut screen = LateScreen::<T>::new(Size::new(90, 30), traits);
    for step in steps {
        match *step {
            Step::Append(n_words) => screen.append(n_words),
            Step::Resize(width, height) => screen.terminal.resize(Size::new(width, height)),
            Step::Surprise(height) => screen.surprises.push_back(height),
            Step::Tell => {
                screen.terminal.known = screen.terminal.size;
                screen.follow_size();
                screen.check(&is_right);
            }
        }
    }
    screen.surprises.clear();
    screen.terminal.known = screen.terminal.size;
    screen.follow_size();
    screen.check(is_right);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn size_that_the_system_knows_late_costs_and_doubles_no_row(steps in steps()) {
        run::<ReflowingTerminal>(ReflowTraits::of("tmux"), &steps, |count| count == 1);
    }

    #[test]
    fn size_that_the_system_knows_late_costs_no_row_where_the_terminal_cuts(steps in steps()) {
        run::<VirtualTerminal>(ReflowTraits::of("xterm"), &steps, |count| (1..=2).contains(&count));
    }

    #[test]
    fn height_that_changes_before_a_frame_arrives_costs_no_row(steps in steps_with_surprises()) {
        run::<ReflowingTerminal>(ReflowTraits::of("tmux"), &steps, |count| count > 0);
    }
}

/// Forty rows, then twelve, then forty, of which the program is told the second one last: what tmux does.
#[test]
fn rows_that_return_from_the_scrollback_before_the_program_knows_are_not_erased() {
    let mut screen = LateScreen::<ReflowingTerminal>::new(Size::new(100, 30), ReflowTraits::of("tmux"));
    let sizes = [40, 12, 40].map(|height| Size::new(100, height));
    screen.terminal.resize(sizes[0]);
    screen.terminal.known = sizes[0];
    screen.follow_size();
    for (size, known) in [(sizes[1], sizes[0]), (sizes[2], sizes[1]), (sizes[2], sizes[2])] {
        screen.terminal.resize(size);
        screen.terminal.known = known;
        screen.follow_size();
        screen.check(|count| count == 1);
    }
}
