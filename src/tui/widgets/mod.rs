//! Widgets shared by several screens.
//!
//! Each has its own state, draws rows, and returns an outcome
//! for a key; none knows its purpose.

mod diff;
mod field;
mod fuzzy;
mod pager;
mod picker;
mod spinner;

pub use diff::{DiffKind, DiffLine, diff_lines, diff_rows, parse_diff};
pub use field::Field;
pub use fuzzy::fuzzy_rank;
pub use pager::{Pager, PagerOutcome};
pub use picker::{Picker, PickerItem, PickerOutcome, PickerRows};
pub use spinner::{SPINNER_FRAME, spinner};
