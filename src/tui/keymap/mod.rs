//! Keys and their bindings.
//!
//! A [`Chord`] is one key with modifiers, a [`Binding`] a row of a table: an id that
//! users may rebind, where it applies, its default keys and its help. The rows of
//! the editor and of lists are here; the application adds its own. Callers implement
//! the ids.

mod chord;
mod lookup;
mod table;

pub use chord::{Chord, ChordError};
pub use lookup::{Conflict, Keymap, OverrideError};
pub use table::{BINDINGS, Binding, Context, Platform, renamed_id};
