//! The terminal itself: its modes, its input, and the painter of the screen, which is
//! a [`Canvas`] of cells and a window on top of it.
//!
//! Nothing else in the program writes escape sequences. Callers compose the contents of
//! the screen as a [`Document`] and [`Overlay`]s; the keymap interprets keys.
//!
//! In the running program one task owns [`TerminalGuard`], [`InlineWindow`] and
//! [`InputBroker`]: the terminal answers queries on the channel it sends
//! keys on, so the three must take turns.

mod answers;
mod canvas;
mod cell_grid;
mod control;
mod frame_bytes;
mod fullscreen;
mod guard;
mod inline;
mod input;
mod output;
mod picture_codec;
mod picture_store;
mod pictures;
mod probe;
mod reflow;
mod row_mark;
mod spaced;

pub use answers::{Questions, TerminalAnswers};
pub use canvas::{Abilities, Canvas};
pub use control::{Control, ProgramState};
pub use fullscreen::FullscreenWindow;
pub use guard::{GuardError, RememberedTerminal, TerminalGuard, TerminalModes, give_back_at_once};
pub use inline::{
    Anchor, Cursor, Document, Frame, FrameGuard, InlineWindow, Overlay, Relayout, SizeSeen, StartOver,
};
#[cfg(unix)]
pub use input::recorded_input;
pub use input::{InputBroker, InputEvent, ScreenReport, normalize_paste};
pub use output::{TerminalOutput, record_erasure, record_output, record_size, write_in_progress};
pub use picture_codec::picture_strips;
pub use picture_store::{PictureState, PictureStore};
pub use probe::{TerminalReply, ask_terminal};
pub use reflow::{CursorRule, ReflowTraits};
pub use row_mark::RowMark;
