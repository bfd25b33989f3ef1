//! Converts a path that a model wrote into one that can be opened.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::util::paths;

/// The absolute path of `input` relative to `cwd`.
///
/// Models copy paths from prose: unusual spaces become plain ones, one leading
/// `@` of a file mention is dropped, `~` and `file://` are understood.
pub fn resolve(input: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let spaced: String = input.chars().map(|c| if is_unusual_space(c) { ' ' } else { c }).collect();
    let bare = spaced.strip_prefix('@').unwrap_or(&spaced);
    let local = from_file_url(bare);
    paths::normalise(&cwd.join(paths::expand_home(local.as_deref().unwrap_or(bare), home)))
}

/// The argument `path` of a call, or the working directory.
pub(super) fn path_argument(arguments: &Value) -> &str {
    arguments["path"].as_str().unwrap_or(".")
}

/// Like [`resolve`], for a file that should exist: if it does not, the spellings
/// that macOS uses for file names are tried.
///
/// Reads the disk.
pub fn resolve_existing(input: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let plain = resolve(input, cwd, home);
    if plain.symlink_metadata().is_ok() {
        return plain;
    }
    let Some(text) = plain.to_str() else { return plain };
    spellings(text)
        .into_iter()
        .map(PathBuf::from)
        .find(|spelling| spelling.symlink_metadata().is_ok())
        .unwrap_or(plain)
}

/// macOS puts U+202F before AM and PM in the names of screenshots, decomposes
/// accents, and writes U+2019 for the apostrophe.
fn spellings(path: &str) -> [String; 4] {
    let decomposed: String = path.nfd().collect();
    [
        path.replace(" AM.", "\u{202f}AM.").replace(" PM.", "\u{202f}PM."),
        decomposed.clone(),
        path.replace('\'', "\u{2019}"),
        decomposed.replace('\'', "\u{2019}"),
    ]
}

/// The spaces that are not U+0020 but look like it.
pub(super) fn is_unusual_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
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
        check("a\u{a0}b\u{202f}c", "/work/a b c");
    }

    #[test]
    fn file_urls_are_paths() {
        check("file:///a%20b/%C3%BC", "/a b/ü");
        check("file://localhost/a", "/a");
        check("file:///100%", "/100%");
        check("file://host/a", "/work/file:/host/a");
    }

    #[test]
    fn names_as_macos_writes_them_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let check = |on_disk: &str, asked: &str| {
            let path = folder.path().join(on_disk);
            std::fs::write(&path, "").unwrap();
            assert_eq!(resolve_existing(asked, folder.path(), None), path);
        };
        check("shot at 9.41.00\u{202f}AM.png", "shot at 9.41.00 AM.png");
        check("cafe\u{301}.txt", "café.txt");
        check("it\u{2019}s.txt", "it's.txt");
        check("l\u{2019}e\u{301}te\u{301}.txt", "l'été.txt");
        assert_eq!(resolve_existing("none", folder.path(), None), folder.path().join("none"));
    }
}
