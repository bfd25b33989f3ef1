//! Finds the file that a path written by a model means.
//!
//! The path as written comes first. Only if nothing is there, other spellings count: without
//! the `@` of a file mention, and names that look alike (see [`spelling`]). All tools use the
//! same list, and their results name the path they used.

use std::fs;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::util::{paths, spelling};

/// A path as a model or a user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenPath {
    text: String,
    cwd: PathBuf,
    /// Absolute; may contain `..`.
    literal: PathBuf,
    /// The same without the `@` of a file mention, and without quotes around it.
    unmarked: Option<PathBuf>,
    /// Where the first name of a relative path would be.
    first: Option<PathBuf>,
}

/// The path that a tool uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundPath {
    pub(super) path: PathBuf,
    /// For the model: as it was written, or as it is spelled on the disk.
    pub(super) name: String,
    /// Whether the written path leads elsewhere.
    pub(super) is_other: bool,
}

impl FoundPath {
    /// A line for the model if the written path leads elsewhere.
    pub(super) fn note(&self) -> Option<String> {
        self.is_other.then(|| format!("[Nothing has that exact path; this is {}]", self.name))
    }
}

/// The path that `input` means, relative to `cwd`. `~` is the home directory, and `file://`
/// URLs are understood.
///
/// Reads the disk only if the path begins with `@`, which may be a mention or a name.
pub fn resolve(input: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let written = WrittenPath::new(input, cwd, home);
    if written.unmarked.is_some() { written.find().path } else { paths::normalise(&written.literal) }
}

/// The file that the mention `@path` of a command line means. Reads the disk.
pub fn resolve_mention(mention: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = mention.strip_prefix('@').unwrap_or(mention);
    let found = WrittenPath::new(path, cwd, home).find().path;
    if exists(&found) {
        return found;
    }
    // A shell completes `@types/x` as the name of a file.
    let literal = follow(&WrittenPath::new(mention, cwd, home).literal);
    if exists(&literal) { literal } else { found }
}

/// The argument `path` of a call, or the working directory.
pub(super) fn path_argument(arguments: &Value) -> &str {
    arguments["path"].as_str().unwrap_or(".")
}

impl WrittenPath {
    pub(super) fn new(input: &str, cwd: &Path, home: Option<&Path>) -> Self {
        let absolute = |text: &str| {
            let local = from_file_url(text);
            cwd.join(paths::expand_home(local.as_deref().unwrap_or(text), home))
        };
        let bare = input.strip_prefix('@').unwrap_or(input);
        let unmarked = bare.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(bare);
        Self {
            text: input.to_owned(),
            cwd: cwd.to_owned(),
            literal: absolute(input),
            unmarked: (unmarked != input).then(|| absolute(unmarked)),
            first: input.split('/').next().filter(|first| !first.is_empty()).map(|first| cwd.join(first)),
        }
    }

    /// The absolute path as written, for messages.
    pub(super) fn shown(&self) -> String {
        paths::normalise(&self.literal).display().to_string()
    }

    /// Whether `path` is another directory than the working directory.
    pub(super) fn is_not_cwd(&self, path: &Path) -> bool {
        path != paths::normalise(&self.cwd)
    }

    /// Every path that a call may access, without asking the disk.
    pub(super) fn declared(&self) -> Vec<PathBuf> {
        let mut declared: Vec<PathBuf> = [Some(&self.literal), self.unmarked.as_ref()]
            .into_iter()
            .flatten()
            .map(|path| paths::normalise(path))
            .collect();
        declared.dedup();
        declared
    }

    /// The file or directory to read. If there is none, the path as written. Reads the disk.
    pub(super) fn find(&self) -> FoundPath {
        let written = [Some(&self.literal), self.unmarked.as_ref()].into_iter().flatten();
        let exact: Vec<PathBuf> = written.map(|path| follow(path)).collect();
        let mut found = exact.iter().find(|path| exists(path)).cloned();
        if found.is_none() {
            found = exact.iter().find_map(|path| find_alike(path));
        }
        self.found(found.unwrap_or_else(|| self.without_mark(&exact)))
    }

    /// The file to write or edit: as for reading, but what begins with an existing `@name` is
    /// no mention, and in an existing directory a missing file gets the name as written. Reads
    /// the disk.
    pub(super) fn find_target(&self) -> FoundPath {
        let literal = follow(&self.literal);
        if exists(&literal) {
            return self.found(literal);
        }
        let unmarked = self.unmarked.as_deref().filter(|_| !self.begins_with_a_name()).map(follow);
        let target = match unmarked {
            Some(unmarked) if exists(&unmarked) => unmarked,
            Some(unmarked) => find_alike(&literal).unwrap_or_else(|| as_far_as_it_exists(&unmarked)),
            None => as_far_as_it_exists(&literal),
        };
        self.found(target)
    }

    /// Whether the first name, with its `@`, exists.
    fn begins_with_a_name(&self) -> bool {
        self.first.as_deref().is_some_and(exists)
    }

    fn without_mark(&self, exact: &[PathBuf]) -> PathBuf {
        let idx = usize::from(self.unmarked.is_some() && !self.begins_with_a_name());
        exact.get(idx).cloned().unwrap_or_else(|| paths::normalise(&self.literal))
    }

    fn found(&self, path: PathBuf) -> FoundPath {
        if path == follow(&self.literal) {
            return FoundPath { path, name: self.text.clone(), is_other: false };
        }
        let name = paths::relative(&path, &self.cwd).display().to_string();
        FoundPath { path, name, is_other: true }
    }
}

/// Whether something, maybe a broken link, has this path.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// `path` without `.` and `..`. Like the kernel, `..` after a link leaves the link's target;
/// after a name that does not exist it removes the name.
fn follow(path: &Path) -> PathBuf {
    if !path.components().any(|component| component == Component::ParentDir) {
        return paths::normalise(path);
    }
    let mut followed = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if followed.is_symlink()
                    && let Ok(target) = fs::canonicalize(&followed)
                {
                    followed = target;
                }
                followed.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => followed.push(component),
        }
    }
    followed
}

/// The existing path of which every name is, or looks like, that of `path`. Exact names are
/// tried first.
fn find_alike(path: &Path) -> Option<PathBuf> {
    let names: Vec<Component<'_>> = path.components().collect();
    let mut n_left = MAX_LISTED;
    find_below(PathBuf::new(), &names, &mut n_left)
}

/// Maximum number of directories that are listed for one path.
const MAX_LISTED: usize = 64;

fn find_below(folder: PathBuf, names: &[Component<'_>], n_left: &mut usize) -> Option<PathBuf> {
    let Some((name, rest)) = names.split_first() else { return Some(folder) };
    let exact = folder.join(name);
    if exists(&exact)
        && let Some(found) = find_below(exact, rest, n_left)
    {
        return Some(found);
    }
    entries_alike(&folder, name, n_left).into_iter().find_map(|entry| find_below(entry, rest, n_left))
}

/// `path` with names as they are spelled on the disk, up to the first one that does not exist.
fn as_far_as_it_exists(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    let mut names = path.components();
    let mut n_left = MAX_LISTED;
    for name in names.by_ref() {
        let exact = found.join(name);
        if exists(&exact) {
            found = exact;
            continue;
        }
        match entries_alike(&found, &name, &mut n_left).into_iter().next() {
            Some(entry) => found = entry,
            None => {
                found = exact;
                break;
            }
        }
    }
    let rest = names.as_path();
    // Joining nothing would add a slash, as if the file were a directory.
    if rest.as_os_str().is_empty() { found } else { found.join(rest) }
}

/// Entries of `folder` that look like `name`, the one in the common spelling first. Without
/// `name` itself.
fn entries_alike(folder: &Path, name: &Component<'_>, n_left: &mut usize) -> Vec<PathBuf> {
    let Component::Normal(name) = name else { return Vec::new() };
    let Some(name) = name.to_str().filter(|name| spelling::has_others(name)) else { return Vec::new() };
    if *n_left == 0 {
        return Vec::new();
    }
    *n_left -= 1;
    let plain = spelling::plain(name);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut alike: Vec<String> =
        names.filter(|entry| entry != name && spelling::plain(entry) == plain).collect();
    alike.sort_by_key(|entry| (*entry != plain, entry.clone()));
    alike.into_iter().map(|entry| folder.join(entry)).collect()
}

/// The path of a `file:` URL on this machine (RFC 8089).
fn from_file_url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    Some(percent_decode_str(path).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(resolve(input, Path::new("/work"), Some(Path::new("/home/me"))), Path::new(expected));
    }

    #[test]
    fn paths_start_in_the_session_directory() {
        check("src/../a.rs", "/work/a.rs");
        check("/etc/hosts", "/etc/hosts");
        check(".", "/work");
        check("", "/work");
        check("~/x", "/home/me/x");
        check("@src/a.rs", "/work/src/a.rs");
        check("@@scope/a", "/work/@scope/a");
        check("a\u{a0}b\u{202f}c", "/work/a\u{a0}b\u{202f}c");
    }

    #[test]
    fn file_urls_are_paths() {
        check("file:///a%20b/%C3%BC", "/a b/ü");
        check("file://localhost/a", "/a");
        check("file:///100%", "/100%");
        check("file://host/a", "/work/file:/host/a");
    }

    /// A directory with files of these names.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    /// Checks the name found for reading and the one found for writing.
    #[track_caller]
    fn check_found(names: &[&str], asked: &str, read: &str, written: &str) {
        let folder = folder(names);
        let path = WrittenPath::new(asked, folder.path(), None);
        for (found, expected) in [(path.find(), read), (path.find_target(), written)] {
            assert_eq!(found.path, folder.path().join(expected), "{asked:?} among {names:?}");
            assert_eq!(found.is_other, asked != expected);
            assert_eq!(found.name, expected);
        }
    }

    #[test]
    fn literal_path_wins_over_similar_one() {
        check_found(&["a\u{3000}b", "a b"], "a\u{3000}b", "a\u{3000}b", "a\u{3000}b");
        check_found(&["a\u{3000}b", "a b"], "a b", "a b", "a b");
        check_found(&["@types/x", "types/x"], "@types/x", "@types/x", "@types/x");
        check_found(&["@a", "a"], "@a", "@a", "@a");
    }

    #[test]
    fn every_spelling_finds_the_only_file_that_looks_like_it() {
        let spaces = [" ", "\u{a0}", "\u{2009}", "\u{202f}", "\u{205f}", "\u{3000}"];
        for on_disk in spaces {
            for asked in spaces {
                let on_disk = format!("v{on_disk}13.05.txt");
                check_found(&[&on_disk], &format!("v{asked}13.05.txt"), &on_disk, &on_disk);
            }
        }
        for (a, b) in [("cafe\u{301}", "café"), ("it\u{2019}s", "it's"), ("\u{201c}a\u{201d}", "\"a\"")] {
            check_found(&[a], b, a, a);
            check_found(&[b], a, b, b);
        }
        let mixed = "l\u{2019}e\u{301}te\u{301} 9.41\u{202f}AM.png";
        check_found(&[mixed], "l'été 9.41 AM.png", mixed, mixed);
        check_found(
            &["my\u{a0}dir/a\u{3000}b"],
            "my dir/a b",
            "my\u{a0}dir/a\u{3000}b",
            "my\u{a0}dir/a\u{3000}b",
        );
    }

    #[test]
    fn mark_of_a_mention_is_dropped_only_if_no_such_name_exists() {
        check_found(&["src/a"], "@src/a", "src/a", "src/a");
        check_found(&["src/a"], "@src/new", "src/new", "src/new");
        check_found(&[], "@new", "new", "new");
        check_found(&["a b"], "@\"a b\"", "a b", "a b");
        check_found(&["a b"], "\"a b\"", "a b", "a b");
        check_found(&["\"a\"", "a"], "\"a\"", "\"a\"", "\"a\"");
        check_found(&["types/x", "@types/y"], "@types/x", "types/x", "@types/x");
        check_found(&["@types/y"], "@types/new", "@types/new", "@types/new");
    }

    #[test]
    fn new_file_keeps_its_name_and_goes_into_the_directory_that_exists() {
        check_found(&[], "a\u{3000}b", "a\u{3000}b", "a\u{3000}b");
        let folder = folder(&["my\u{a0}dir/x"]);
        let target = WrittenPath::new("my dir/a/b c", folder.path(), None).find_target();
        assert_eq!(target.path, folder.path().join("my\u{a0}dir/a/b c"));
        assert_eq!(target.name, "my\u{a0}dir/a/b c");
    }

    #[cfg(unix)]
    #[test]
    fn parent_of_a_link_is_that_of_its_target() {
        let folder = folder(&["deep/target/x", "deep/f", "f"]);
        std::os::unix::fs::symlink("deep/target", folder.path().join("link")).unwrap();
        let written = WrittenPath::new("link/../f", folder.path(), None);
        let expected = fs::canonicalize(folder.path().join("deep/f")).unwrap();
        assert_eq!(written.find().path, expected);
        assert_eq!(written.find_target().path, expected);
        assert!(!written.find().is_other);
        let plain = WrittenPath::new("none/../f", folder.path(), None).find();
        assert_eq!(plain.path, folder.path().join("f"));
    }

    #[test]
    fn mention_of_the_command_line_is_a_path_after_its_mark() {
        let folder = folder(&["types/x", "@types/x", "@types/y", "資料\u{3000}一覧.md"]);
        let check = |mention: &str, expected: &str| {
            assert_eq!(resolve_mention(mention, folder.path(), None), folder.path().join(expected));
        };
        check("@types/x", "types/x");
        check("@@types/x", "@types/x");
        check("@types/y", "@types/y");
        check("@資料\u{3000}一覧.md", "資料\u{3000}一覧.md");
        check("@資料 一覧.md", "資料\u{3000}一覧.md");
        check("@none", "none");
    }
}
