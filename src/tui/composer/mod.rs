//! The editor for prompts: several lines, soft wrap, atomic paste markers, kill
//! ring, undo and history.
//!
//! The text is stored in `tui-textarea`'s model, which has lines, cursor and the
//! undo log. Layout, drawing and the cursor are our own: the model's own view
//! counts code points, and its cursor is wrong beside joined emoji. Callers define
//! Enter and completion, and supply the history.

mod editor;
mod history;
mod kill_ring;
mod layout;
mod markers;
mod model;
mod placeholders;
mod view;
mod words;

pub use editor::{Composer, EditorAction};
pub use markers::{IMAGE_LABEL_START, image_label};
pub use placeholders::{
    backslash_to_new_line, forget_undo, insert_image, paste_ranges, replace_by_image, set_text_with,
};
pub use view::{ComposerRows, ComposerView};
pub(super) use words::words;
