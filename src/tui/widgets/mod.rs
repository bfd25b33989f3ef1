//! Widgets shared by several screens.
//!
//! Each has its own state, draws rows, and returns an outcome
//! for a key; none knows its purpose.

mod diff;
mod field;
mod fuzzy;
mod hints;
mod list;
mod pager;
mod picker;
mod picture;
mod spinner;

use super::keymap::Keymap;
use super::theme::Theme;

pub use diff::{DiffLine, DiffRows, changes_last_break, diff_between, parse_diff};
pub use field::Field;
pub use fuzzy::fuzzy_rank;
pub use hints::Hints;
pub use list::{ListFrame, ListItems, ListRows, ListState, ListStep};
pub use pager::{
    HiddenText, LineParts, Lines, LinesText, MarkdownText, PagedText, Pager, PagerFrame, PagerOutcome, Place,
    Position, WholeText,
};
pub use picker::{Picker, PickerItem, PickerOutcome};
pub use picture::picture_rows;
pub use spinner::{SPINNER_FRAME, spinner};

/// What a list or dialog is drawn with.
#[derive(Clone, Copy)]
pub struct DialogCx<'a> {
    /// In cells.
    pub width: u16,
    pub max_rows: u16,
    pub theme: &'a Theme,
    /// Names the keys of the hints.
    pub keymap: &'a Keymap,
}
