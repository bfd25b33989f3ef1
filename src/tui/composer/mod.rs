//! The editor for prompts: several lines, soft wrap, atomic paste markers, kill
//! ring, undo and history.
//!
//! The text lives in `tui-textarea`'s model, which keeps lines, cursor and the
//! undo log. Layout, drawing and the cursor are our own: the model's own view
//! counts code points, and its cursor is wrong beside joined emoji. What Enter
//! means, completion, and where history comes from are the caller's business.

mod editor;
mod history;
mod kill_ring;
mod layout;
mod markers;
mod model;
mod view;
mod words;

pub use editor::{Composer, EditorAction};
pub use view::{ComposerRows, ComposerView};
