//! Lists the files for `grep` and `find`.

use std::ffi::OsStr;
use std::path::Path;

use ignore::overrides::Override;
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

use crate::agent::ToolError;

/// Which files a walk leaves out.
#[derive(Debug, Clone, Copy)]
pub(super) enum IgnoreRules<'a> {
    /// Those that `.gitignore`, `.ignore` and the named files exclude. The first applies inside
    /// a repository, and outside too unless `require_git`.
    Follow { files: &'a [&'a str], require_git: bool },
    /// None.
    Disregard,
}

/// Walks `root` in the order of names: includes hidden files, excludes `.git`.
pub(super) fn walk(root: &Path, rules: IgnoreRules<'_>, overrides: Override) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .overrides(overrides)
        .current_dir(root)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    match rules {
        IgnoreRules::Follow { files, require_git } => {
            builder.require_git(require_git);
            for name in files {
                builder.add_custom_ignore_filename(name);
            }
        }
        IgnoreRules::Disregard => {
            builder.standard_filters(false);
        }
    }
    builder
}

/// Counts what a walk of `root` left out because of ignore rules, given what it visited.
/// Counts at most [`MAX_COUNTED`] entries.
pub(super) fn n_ignored(
    root: &Path,
    overrides: Override,
    n_visited: usize,
    is_counted: impl Fn(&DirEntry) -> bool,
    cancel: &CancellationToken,
) -> Result<usize, ToolError> {
    let mut n_all = 0;
    for entry in walk(root, IgnoreRules::Disregard, overrides).build() {
        super::check_cancelled(cancel)?;
        n_all += usize::from(entry.is_ok_and(|entry| entry.depth() > 0 && is_counted(&entry)));
        if n_all - n_visited.min(n_all) == MAX_COUNTED {
            break;
        }
    }
    Ok(n_all.saturating_sub(n_visited))
}

/// Ignored entries that are counted, so that the count takes little time.
pub(super) const MAX_COUNTED: usize = 10_000;

/// The note about what a search without results left out; `None` if it was nothing.
pub(super) fn ignored_note(n_ignored: usize, what: &str) -> Option<String> {
    let n = match n_ignored {
        0 => return None,
        n if n < MAX_COUNTED => n.to_string(),
        n => format!("at least {n}"),
    };
    let (what, were) = if n_ignored == 1 { (what.to_owned(), "was") } else { (format!("{what}s"), "were") };
    Some(format!(
        "{n} {what} {were} left out because of ignore rules (.gitignore). \
         To search there, pass the directory or file itself as path"
    ))
}

/// The note about a search of ignored files alone.
pub(super) const SEARCHED_IGNORED: &str =
    "Ignore rules (.gitignore) exclude everything here; it was searched because path names it";

/// A glob without what no relative path begins with: every `./`, and the path of `root`.
pub(super) fn relative_glob<'a>(glob: &'a str, root: &Path) -> &'a str {
    let below_root = root.to_str().and_then(|root| glob.strip_prefix(root)?.strip_prefix('/'));
    let mut relative = below_root.unwrap_or(glob);
    while let Some(rest) = relative.strip_prefix("./") {
        relative = rest.trim_start_matches('/');
    }
    relative
}

/// `glob` for names that contain its brackets, as routes of web frameworks do; `None` if it has
/// none, or escapes them itself.
pub(super) fn with_literal_brackets(glob: &str) -> Option<String> {
    let is_candidate = glob.contains('[') && glob.contains(']') && !glob.contains('\\');
    is_candidate.then(|| glob.replace('[', "\\[").replace(']', "\\]"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_start_in_the_directory_that_is_searched() {
        let check = |glob: &str, expected: &str| {
            assert_eq!(relative_glob(glob, Path::new("/w")), expected, "{glob}");
        };
        check("src/*.ts", "src/*.ts");
        check("././src/*.ts", "src/*.ts");
        check(".//src", "src");
        check("/w/src/*.ts", "src/*.ts");
        check("/w2/src", "/w2/src");
        check(".*", ".*");
    }

    #[test]
    fn brackets_are_names_too_unless_escaped() {
        assert_eq!(with_literal_brackets("app/[id]/*.ts").as_deref(), Some("app/\\[id\\]/*.ts"));
        assert_eq!(with_literal_brackets("\\[id\\].ts"), None);
        assert_eq!(with_literal_brackets("*.ts"), None);
        assert_eq!(with_literal_brackets("a["), None);
    }

    #[test]
    fn note_counts_what_was_left_out() {
        assert_eq!(ignored_note(0, "file"), None);
        assert!(ignored_note(1, "file").unwrap().starts_with("1 file was left out"));
        assert!(ignored_note(12, "file").unwrap().starts_with("12 files were left out"));
        assert!(ignored_note(MAX_COUNTED, "file").unwrap().starts_with("at least 10000 files"));
    }
}
