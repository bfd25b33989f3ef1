//! Widgets shared by several screens.
//!
//! Each keeps its own state, turns it into rows, and answers keys with an outcome
//! of its own; none knows what it is used for.

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
