//! Text in terminal cells: widths, rows, wrapping, truncation, and the
//! sanitising of text from a model, a file or a process.
//!
//! All code that measures text in cells uses `width`; the painter draws
//! with the same measure, so a row that fits here fits on the screen. Callers choose
//! colours.

mod ansi;
mod bounds;
mod copy;
mod line_place;
mod picture;
mod row;
mod sanitize;
mod table_copy;
mod truncate;
mod width;
mod wrap;

pub use ansi::{OutputLine, output_lines, terminal_output};
pub use bounds::{has_no_blanks, word_parts};
pub use copy::{CopyPiece, CopyRule, copied_pieces, copied_text, copied_together, keep_replaced, keep_tabs};
pub use line_place::{LinePlace, SplitRows};
pub use picture::{PictureFormat, PictureId, PictureKey, PictureSize, RowPicture};
pub use row::{LinkTarget, PromptMark, Row, Run, visible_runs};
pub use sanitize::{
    TAB_WIDTH, sanitize, sanitize_line, visible, visible_line, visible_marks, visible_name, visible_replaced,
    visible_source, without_controls,
};
pub use truncate::{Ellipsis, truncate, truncate_middle, truncate_row};
pub use width::{grapheme_width, graphemes, is_uncertain, width};
pub use wrap::{WRAPPED_MARK, Wrap, linked_runs, wrap_plain, wrap_plain_at_most};
pub(in crate::tui) use wrap::{chunks, url_ranges};
