//! The terminal itself: its modes, its input, and the painter of the screen, which is
//! a [`Canvas`] of cells and a window on top of it.
//!
//! Nothing else in the program writes escape sequences. What stands on the
//! screen is a [`Document`] and [`Overlay`]s that the caller composes; what keys
//! mean is the keymap's business.
//!
//! In the running program one task owns [`TerminalGuard`], [`InlineWindow`] and
//! [`InputBroker`]: the terminal answers queries on the same channel it sends
//! keys on, so the three have to take turns.

mod canvas;
mod cell_grid;
mod control;
mod guard;
mod inline;
mod input;

pub use canvas::Canvas;
pub use control::Control;
pub use guard::{GuardError, TerminalGuard, TerminalModes};
pub use inline::{Anchor, Cursor, Document, Frame, InlineWindow, Overlay};
pub use input::{InputBroker, InputEvent, normalize_paste};
