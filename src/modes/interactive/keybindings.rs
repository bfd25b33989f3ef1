//! Reads the user's `keybindings.json`, which overrides the keys of the tables.

use std::fmt;

use serde_json::Value;

use crate::config::Dirs;
use crate::tui::keymap::{BINDINGS, Keymap, Platform};

use super::actions;

/// The keys with the overrides of the file, and problems with these, one line each.
/// Blocks.
///
/// # Errors
/// If the file cannot be parsed.
pub(super) fn load(dirs: &Dirs) -> Result<(Keymap, Vec<String>), String> {
    let path = dirs.keybindings_file();
    let named = |problem: &dyn fmt::Display| format!("{}: {problem}", dirs.display(&path));
    let mut keymap = default_keymap();
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok((keymap, Vec::new())) };
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(overrides)) => {
            let problems = keymap.apply(&overrides).iter().map(|problem| named(problem)).collect();
            Ok((keymap, problems))
        }
        Ok(_) => Err(named(&"expected an object")),
        Err(error) => Err(named(&error)),
    }
}

/// The keys of the tables.
pub(super) fn default_keymap() -> Keymap {
    Keymap::new(&[BINDINGS, &actions::bindings()], Platform::Unix)
}
