//! Converts paths between their displayed and absolute forms. Never touches the disk.

use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};

/// Replaces `~` and `~/…` by `home`; leaves any other path unchanged.
pub fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    let Some(home) = home else { return PathBuf::from(path) };
    if path == "~" {
        return home.to_owned();
    }
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => PathBuf::from(path),
    }
}

/// `path` for display: with `~` for the home directory.
pub fn display(path: &Path, home: Option<&Path>) -> String {
    let below_home =
        home.filter(|home| home.parent().is_some()).and_then(|home| path.strip_prefix(home).ok());
    match below_home {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~{MAIN_SEPARATOR}{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// Replaces the home directory by `~` wherever a path below it occurs in `text`, for
/// messages of code that does not know the home directory.
pub fn with_tilde(text: &str, home: Option<&Path>) -> String {
    let home = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
    let Some(home) = home.filter(|home| !home.is_empty()) else { return text.to_owned() };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(home) {
        let is_start =
            before.chars().next_back().or(shown.chars().next_back()).is_none_or(|c| !is_of_path(c));
        shown.push_str(before);
        shown.push_str(if is_start && after.starts_with('/') { "~" } else { home });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Whether a character before a path makes it part of a longer one.
fn is_of_path(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '/' | '.' | '_' | '-' | '~')
}

/// `path` relative to `base`, if it lies below it; `.` for `base` itself.
pub fn relative(path: &Path, base: &Path) -> PathBuf {
    match path.strip_prefix(base) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) => rest.to_owned(),
        Err(_) => path.to_owned(),
    }
}

/// Resolves `.` and `..` without asking the disk, so a `..` after a symbolic
/// link leaves the link, not its target. `..` at the root stays at the root.
pub fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match normal.components().next_back() {
                Some(Component::Normal(_)) => {
                    normal.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::CurDir | Component::ParentDir) | None => normal.push(".."),
            },
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    if normal.as_os_str().is_empty() { PathBuf::from(".") } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_the_home_directory_as_a_tilde() {
        let check = |text: &str, expected: &str| {
            assert_eq!(with_tilde(text, Some(Path::new("/home/a"))), expected);
        };
        check("/home/a/x.json: no", "~/x.json: no");
        check("cannot read \"/home/a/x\" and /home/a/y", "cannot read \"~/x\" and ~/y");
        check("/home/ab/x", "/home/ab/x");
        check("/mnt/home/a/x", "/mnt/home/a/x");
        assert_eq!(with_tilde("/x", Some(Path::new("/"))), "/x");
    }

    #[test]
    fn the_tilde_stands_for_the_home_directory() {
        let check = |path: &str, expected: &str| {
            assert_eq!(expand_home(path, Some(Path::new("/home/me"))), Path::new(expected), "{path}");
        };
        check("~", "/home/me");
        check("~/a", "/home/me/a");
        check("~//a", "/home/me/a");
        check("~you/a", "~you/a");
        check("a/~", "a/~");
        assert_eq!(expand_home("~/a", None), Path::new("~/a"));
    }

    #[test]
    fn display_shortens_only_below_home() {
        let check = |path: &str, home: &str, expected: &str| {
            assert_eq!(display(Path::new(path), Some(Path::new(home))), expected);
        };
        check("/home/me", "/home/me", "~");
        check("/home/me/a/b", "/home/me", "~/a/b");
        check("/home/meadow", "/home/me", "/home/meadow");
        check("/etc", "/", "/etc");
    }

    #[test]
    fn relative_only_below_the_base() {
        let check = |path: &str, expected: &str| {
            assert_eq!(relative(Path::new(path), Path::new("/a/b")), Path::new(expected));
        };
        check("/a/b", ".");
        check("/a/b/c/d", "c/d");
        check("/a/bc", "/a/bc");
    }

    #[test]
    fn normalise_resolves_dots() {
        let check = |path: &str, expected: &str| {
            assert_eq!(normalise(Path::new(path)), Path::new(expected), "{path}");
        };
        check("/a/./b/../c/", "/a/c");
        check("/../..", "/");
        check("a/..", ".");
        check("../a/../../b", "../../b");
        check("", ".");
    }
}
