//! Lists the files for `grep` and `find`.

use std::ffi::OsStr;
use std::path::Path;

use ignore::WalkBuilder;
use ignore::overrides::Override;

/// Walks `root` in the order of names: includes hidden files, excludes ignored
/// files and `.git`.
///
/// `ignore_files` have the syntax of `.ignore`. `.gitignore` applies inside a
/// repository, and outside too unless `require_git`.
pub(super) fn walk(
    root: &Path,
    ignore_files: &[&str],
    require_git: bool,
    overrides: Override,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .require_git(require_git)
        .overrides(overrides)
        .current_dir(root)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    for name in ignore_files {
        builder.add_custom_ignore_filename(name);
    }
    builder
}

/// `path` below `root`, with `/` between its parts.
pub(super) fn relative_name(path: &Path, root: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' {
        relative.into_owned()
    } else {
        relative.replace(std::path::MAIN_SEPARATOR, "/")
    }
}
