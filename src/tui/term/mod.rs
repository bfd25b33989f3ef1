//! The terminal itself: its modes, its input, and the painter of the screen.
//!
//! Nothing else in the program writes escape sequences. What stands on the
//! screen is a [`Document`] and [`Overlay`]s that the caller composes; what keys
//! mean is the keymap's business.
//!
//! In the running program one task owns [`TerminalGuard`], [`Screen`] and
//! [`InputBroker`]: the terminal answers queries on the same channel it sends
//! keys on, so the three have to take turns.

mod control;
mod guard;
mod input;
mod screen;

pub use control::Control;
pub use guard::{GuardError, TerminalGuard, TerminalModes};
pub use input::{InputBroker, InputEvent, normalize_paste};
pub use screen::{Anchor, Cursor, Document, Frame, Overlay, Screen};
