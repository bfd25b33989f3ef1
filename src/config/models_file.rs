//! The catalogue with the user's `models.json`.

use std::fs;
use std::io;
use std::path::Path;

use crate::ai::Catalog;

/// The built-in models and those of the file at `path`, which need not exist;
/// and what is wrong with it, one line each.
pub fn load_catalog(path: &Path) -> (Catalog, Vec<String>) {
    let mut catalog = Catalog::builtin();
    let problems = match fs::read_to_string(path) {
        Ok(text) => catalog.add_user_models(&text).err().unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    let problems = problems.into_iter().map(|problem| format!("{}: {problem}", path.display())).collect();
    (catalog, problems)
}
