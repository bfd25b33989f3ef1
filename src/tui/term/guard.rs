//! Takes over the terminal and restores it on every exit path.
//!
//! [`TerminalGuard::enter`] enables raw mode and the input protocols. Restoring
//! disables all of them and is idempotent: by call, by `Drop`, or by the
//! panic hook, whichever comes first. The hook acts only for the thread that took over the
//! terminal, and then calls the hook before it; that one must not print panics of other threads
//! over the screen. The event loop handles signals: it ends and drops the guard.

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId};

use crossterm::terminal;
use thiserror::Error;

use super::output::{self, write_out};
use crate::util::os::{self, DriverModes};
use crate::util::runtime;

/// Why the terminal could not be taken over.
#[derive(Debug, Error)]
pub enum GuardError {
    #[error("standard input and output must be a terminal")]
    NotATerminal,
    #[error("the terminal is already in use by this process")]
    Busy,
    #[error("switching the terminal to raw mode: {0}")]
    Terminal(#[from] io::Error),
}

/// Modes in addition to raw mode and bracketed paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalModes {
    /// Use the alternate screen and report mouse buttons, drags and the wheel.
    pub fullscreen: bool,
    /// Report when the window gains or loses focus.
    pub focus: bool,
    /// Requests xterm's modifyOtherKeys. For xterm and tmux, which ignore the kitty protocol.
    pub modify_other_keys: bool,
}

/// Keeps the terminal in raw mode; restores it when dropped.
#[derive(Debug)]
pub struct TerminalGuard {
    modes: TerminalModes,
}

/// Whether the terminal is in our modes. Static, because the panic hook has
/// no other access.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether the terminal is being restored, which waits for a terminal that does not read.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Whether the alternate screen is active. Leaving it restores a saved cursor even
/// if it was never entered, so it must be left only if it is active.
static ALTERNATE: AtomicBool = AtomicBool::new(false);

impl TerminalGuard {
    /// Takes over the terminal of this process for the calling thread.
    ///
    /// # Errors
    /// If standard input or output is not a terminal, another guard exists, or raw
    /// mode fails; the terminal is then unchanged.
    pub fn enter(modes: TerminalModes) -> Result<Self, GuardError> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(GuardError::NotATerminal);
        }
        install_panic_hook();
        if ENTERED.swap(true, Ordering::SeqCst) {
            return Err(GuardError::Busy);
        }
        *owner() = Some(thread::current().id());
        let guard = Self { modes };
        guard.switch_on(SAVE_TITLE)?;
        Ok(guard)
    }

    pub fn modes(&self) -> TerminalModes {
        self.modes
    }

    /// Changes the modes, such as between the main and the alternate screen.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn set_modes(&mut self, modes: TerminalModes) -> io::Result<()> {
        if modes == self.modes {
            return Ok(());
        }
        self.modes = modes;
        if ENTERED.load(Ordering::SeqCst) {
            write_out(&leave_sequence(ALTERNATE.swap(modes.fullscreen, Ordering::SeqCst)))?;
            write_out(&[SAVE_TITLE, &enter_sequence(modes)].concat())?;
        }
        Ok(())
    }

    /// Switches to the alternate screen for a while, or back, with the same keyboard flags on
    /// both. The terminal keeps the main screen and its cursor.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn show_alternate_screen(&mut self, shown: bool) -> io::Result<()> {
        if !ENTERED.load(Ordering::SeqCst) || ALTERNATE.swap(shown, Ordering::SeqCst) == shown {
            return Ok(());
        }
        write_out(if shown { ALTERNATE_SCREEN } else { MAIN_SCREEN })
    }

    /// Switches between the main screen and fullscreen: the alternate screen with reports of the
    /// mouse. The terminal keeps the main screen and its cursor.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn set_fullscreen(&mut self, fullscreen: bool) -> io::Result<()> {
        self.modes.fullscreen = fullscreen;
        if !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        if fullscreen {
            self.show_alternate_screen(true)?;
            write_out(MOUSE_ON)
        } else {
            write_out(MOUSE_OFF)?;
            self.show_alternate_screen(false)
        }
    }

    /// Requests xterm's modifyOtherKeys from now on, because the terminal turned out to be an xterm.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn modify_other_keys(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.modes.modify_other_keys, true) || !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        write_out(MODIFY_OTHER_KEYS)
    }

    /// Restores the terminal for another program, until [`Self::take_again`]: an external editor, or
    /// the shell. The input stream must be stopped before, because it would read the other
    /// program's keys.
    pub fn give_back(&mut self) {
        leave();
        // Saved again now: other programs may leave titles of their own.
        drop(write_out(SAVE_TITLE));
    }

    /// After [`Self::give_back`], remembers the terminal as it is, with its cursor.
    pub fn remember(&self) -> RememberedTerminal {
        drop(write_out(SAVE_CURSOR));
        RememberedTerminal(DriverModes::read())
    }

    /// Takes over the terminal again.
    ///
    /// # Errors
    /// If the terminal's modes cannot be changed; it is then left restored.
    pub fn take_again(&mut self) -> io::Result<()> {
        ENTERED.store(true, Ordering::SeqCst);
        self.switch_on("")
    }

    /// Restores permanently what the terminal itself can, and leaves its driver alone: it belongs to the
    /// shell now, and changing it would stop this process.
    pub fn leave_to_shell(self) {
        if ENTERED.swap(false, Ordering::SeqCst) {
            // The terminal may be gone.
            drop(write_out(&leave_sequence(ALTERNATE.swap(false, Ordering::SeqCst))));
        }
    }

    /// Restores the terminal permanently, like dropping, but with a name.
    pub fn leave(self) {
        drop(self);
    }

    fn switch_on(&self, before: &str) -> io::Result<()> {
        ALTERNATE.store(self.modes.fullscreen, Ordering::SeqCst);
        let entered = terminal::enable_raw_mode()
            .and_then(|()| os::follow_sequences())
            .and_then(|()| write_out(&[before, &enter_sequence(self.modes)].concat()));
        if entered.is_err() {
            leave();
        }
        entered
    }
}

/// The terminal as another program got it.
#[derive(Debug)]
pub struct RememberedTerminal(Option<DriverModes>);

impl RememberedTerminal {
    /// Undoes what a program left that could not clean up, because it was killed: its modes, the alternate
    /// screen, the mouse. The cursor is where it was remembered.
    pub fn restore(&self) {
        self.restore_driver();
        drop(write_out(&undo_sequence()));
    }

    /// Undoes the modes that a program left which ended by itself. Screen and cursor are as it left them.
    pub fn restore_modes(&self) {
        self.restore_driver();
        // The cursor goes to the first row with the margins.
        drop(write_out(&[SAVE_CURSOR, NO_MARGINS, RESTORE_CURSOR, &reset_modes()].concat()));
    }

    fn restore_driver(&self) {
        if let Some(modes) = &self.0 {
            modes.restore();
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        leave();
        *owner() = None;
    }
}

/// The thread that took over the terminal, as long as it has a guard. Static for the same reason. Never locked
/// during other work.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);

fn owner() -> MutexGuard<'static, Option<ThreadId>> {
    OWNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal from any thread, without waiting for one that does not read: it gets nothing of what it has
/// not read yet. The process ends.
pub fn give_back_at_once() {
    // The last sequence that it has read may be half of one.
    const END_OF_SEQUENCE: &str = "\x18\x1b\\";
    output::close();
    let was_entered = ENTERED.swap(false, Ordering::SeqCst);
    if was_entered || LEAVING.load(Ordering::SeqCst) {
        let leave = leave_sequence(ALTERNATE.load(Ordering::SeqCst));
        let all = [END_OF_SEQUENCE, &leave, BELOW_THE_CURSOR].concat();
        os::write_instead_of_unread(all.as_bytes());
        drop(terminal::disable_raw_mode());
    }
}

/// Restores the terminal if it is in our modes. Failures are ignored, because there is
/// no way to report them.
fn leave() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        LEAVING.store(true, Ordering::SeqCst);
        drop(write_out(&leave_sequence(ALTERNATE.load(Ordering::SeqCst))));
        ALTERNATE.store(false, Ordering::SeqCst);
        drop(terminal::disable_raw_mode());
        LEAVING.store(false, Ordering::SeqCst);
    }
}

/// Starts a row below the cursor and erases what is drawn from there on.
const BELOW_THE_CURSOR: &str = "\x1b[0m\r\n\x1b[J";

fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // Restore the terminal first, so that the message is readable: on the main screen, below
            // its cursor.
            if is_owner() && ENTERED.load(Ordering::SeqCst) && !runtime::is_starting() {
                leave();
                drop(write_out(BELOW_THE_CURSOR));
            }
            previous(panic);
        }));
    });
}

/// Whether the terminal is this thread's, or nobody's.
fn is_owner() -> bool {
    owner().is_none_or(|owner| owner == thread::current().id())
}

/// Buttons, drags and the wheel, with coordinates of any size. Only 1002 and 1006: all-motion
/// reports (1003) flood slow connections. Terminals keep their own selection for drags with
/// shift.
const MOUSE_ON: &str = "\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1002l\x1b[?1006l";
const MODIFY_OTHER_KEYS: &str = "\x1b[>4;2m";

/// The keyboard flags belong to a screen, and each has a stack of them.
const ALTERNATE_SCREEN: &str = "\x1b[?1049h\x1b[>5u";
/// Cleared first: tmux gives the alternate screen the width of the main one again before it drops it, and rows
/// that are wider then break, and push others of them into the scrollback.
const MAIN_SCREEN: &str = "\x1b[0m\x1b[H\x1b[J\x1b[<1u\x1b[?1049l";

/// The title is that of the program around pi.
const SAVE_TITLE: &str = "\x1b[22;0t";
const RESTORE_TITLE: &str = "\x1b[23;0t";

/// Bracketed paste, reports of changes between light and dark (2031), kitty
/// keyboard flags 1 (disambiguate escape codes)
/// and 4 (report alternate keys). The flags are pushed without a query: terminals
/// without support ignore them. Not flag 2, key releases, because the last release
/// would reach the shell's input.
/// See <https://sw.kovidgoyal.net/kitty/keyboard-protocol/>.
fn enter_sequence(modes: TerminalModes) -> String {
    let mut sequence = String::from("\x1b[?2004h\x1b[?2031h\x1b[>5u");
    if modes.fullscreen {
        sequence.push_str(ALTERNATE_SCREEN);
        sequence.push_str(MOUSE_ON);
    }
    if modes.modify_other_keys {
        sequence.push_str(MODIFY_OTHER_KEYS);
    }
    if modes.focus {
        sequence.push_str("\x1b[?1004h");
    }
    sequence
}

/// Disables everything that any mode may have enabled. Pops as many keyboard flags as were pushed,
/// because the others belong to the program around pi. Konsole 22.12 takes `CSI < u` without a
/// number for a restored cursor.
fn leave_sequence(alternate: bool) -> String {
    [
        "\x1b[?2026l",
        "\x1b[0m",
        "\x1b]8;;\x1b\\",
        "\x1b[0 q\x1b[?25h",
        MOUSE_OFF,
        "\x1b[?1004l",
        "\x1b[?2004l\x1b[?2031l",
        "\x1b[>4;0m",
        if alternate { MAIN_SCREEN } else { "" },
        "\x1b[<1u",
        RESTORE_TITLE,
    ]
    .concat()
}

const SAVE_CURSOR: &str = "\x1b7";
const RESTORE_CURSOR: &str = "\x1b8";
const NO_MARGINS: &str = "\x1b[r";

/// Disables what programs on the alternate screen enable: mouse reports of all kinds, application keys, another
/// character set, and what pi itself disables.
fn reset_modes() -> String {
    let mouse = "\x1b[?9l\x1b[?1000l\x1b[?1003l\x1b[?1005l\x1b[?1015l\x1b[?1016l";
    let keys = "\x1b[?1l\x1b>\x1b[?66l\x1b[=0u";
    let text = "\x1b[4l\x1b[?7h\x1b(B\x0f";
    let reset = "\x1b[0m\x1b[0 q\x1b[?25h\x1b[?1004l\x1b[?2004l\x1b[>4;0m";
    [mouse, MOUSE_OFF, keys, text, reset].concat()
}

/// The same, and the alternate screen with what moves the cursor: only some terminals restore it when a program leaves
/// that screen without having entered it.
fn undo_sequence() -> String {
    [NO_MARGINS, "\x1b[?6l", &reset_modes(), RESTORE_CURSOR, "\x1b[?1049l"].concat()
}

#[cfg(test)]
mod tests {
    use crate::util::panics::lock_hook;

    use super::*;

    #[test]
    fn alternate_screen_is_empty_when_it_is_left() {
        let ends = [MAIN_SCREEN.to_owned(), leave_sequence(true)];
        for end in ends {
            let (before, _) = end.split_once("\x1b[?1049l").unwrap();
            assert!(before.contains("\x1b[0m\x1b[H\x1b[J"), "{end:?}");
        }
        assert!(!leave_sequence(false).contains("\x1b[J"));
    }

    #[test]
    fn cursor_is_restored_after_what_moves_it() {
        let undo = undo_sequence();
        let (before, after) = undo.split_once(RESTORE_CURSOR).unwrap();
        assert!(before.contains("\x1b[r\x1b[?6l"));
        assert_eq!(after, "\x1b[?1049l");
    }

    #[test]
    fn leaving_resets_every_private_mode_that_entering_sets() {
        let all = TerminalModes { fullscreen: true, focus: true, modify_other_keys: true };
        let (enter, leave) = (enter_sequence(all), leave_sequence(true));
        for set in enter.split('\x1b').filter_map(|part| part.strip_suffix('h')) {
            assert!(leave.contains(&format!("\x1b{set}l")), "{set} stays on");
        }
        for (on, off) in [("\x1b[>5u", "\x1b[<1u"), ("\x1b[>4;2m", "\x1b[>4;0m")] {
            assert!(enter.contains(on) && leave.contains(off));
        }
    }

    #[test]
    fn keyboard_flags_are_popped_as_often_as_they_were_pushed_on_each_screen() {
        let stacks = |sequences: &[&str]| {
            let (mut depths, mut screen) = ([0, 0], 0);
            for sequence in
                sequences.iter().flat_map(|text| text.split_inclusive(['h', 'l', 'u', 't', 'm', 'J']))
            {
                match sequence {
                    "\x1b[?1049h" => screen = 1,
                    "\x1b[?1049l" => screen = 0,
                    "\x1b[>5u" => depths[screen] += 1,
                    "\x1b[<1u" => depths[screen] -= 1,
                    _ => {}
                }
            }
            (depths, screen)
        };
        let inline = enter_sequence(TerminalModes::default());
        let full = enter_sequence(TerminalModes { fullscreen: true, ..TerminalModes::default() });
        let (leave_inline, leave_full) = (leave_sequence(false), leave_sequence(true));
        assert_eq!(stacks(&[&inline, ALTERNATE_SCREEN]), ([1, 1], 1));
        for session in [
            vec![&*inline, &*leave_inline],
            vec![&*inline, ALTERNATE_SCREEN, MAIN_SCREEN, &*leave_inline],
            vec![&*inline, ALTERNATE_SCREEN, &*leave_full],
            vec![&*full, &*leave_full],
            vec![&*full, MAIN_SCREEN, &*leave_inline],
        ] {
            assert_eq!(stacks(&session), ([0, 0], 0), "{session:?}");
        }
    }

    #[test]
    fn mouse_and_focus_stay_native_unless_asked_for() {
        assert_eq!(enter_sequence(TerminalModes::default()), "\x1b[?2004h\x1b[?2031h\x1b[>5u");
    }

    #[test]
    fn panic_outside_the_interface_leaves_the_terminal_alone() {
        let _hook = lock_hook();
        install_panic_hook();
        *owner() = Some(thread::current().id());
        ENTERED.store(true, Ordering::SeqCst);
        let task = thread::spawn(|| panic!("broken task"));
        assert!(task.join().is_err());
        let was_entered = ENTERED.swap(false, Ordering::SeqCst);
        drop(TerminalGuard { modes: TerminalModes::default() });
        assert!(was_entered, "the hook gave the terminal back");
        assert!(owner().is_none());
    }

    #[test]
    fn refuses_what_is_no_terminal() {
        // The test harness captures output, or a pipe replaces it.
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            let entered = TerminalGuard::enter(TerminalModes::default());
            assert!(matches!(entered, Err(GuardError::NotATerminal)));
        }
    }
}
