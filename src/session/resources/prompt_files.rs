//! `SYSTEM.md` and `APPEND_SYSTEM.md`: files that replace the beginning of the system prompt,
//! and that add to it.
//!
//! The file of a trusted project replaces the user's; they are never combined.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::util::os;

use super::text::{InvalidText, decode};

/// Maximum size of a file, in bytes; it is part of every request.
const MAX_BYTES: u64 = 256 << 10;

const SYSTEM: &str = "SYSTEM.md";
const APPEND: &str = "APPEND_SYSTEM.md";

/// The texts of both files, trimmed; `None` for a missing or empty file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptFiles {
    /// Replaces preamble, tool list and rules.
    pub(crate) system: Option<String>,
    /// Added after the rules.
    pub(crate) append: Option<String>,
}

/// Where both files are for `cwd`, as far as they exist. Blocks.
pub(crate) fn prompt_paths(agent: &Path, cwd: &Path, is_trusted: bool) -> Vec<PathBuf> {
    let folders = folders(agent, cwd, is_trusted);
    let first = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.exists());
    [SYSTEM, APPEND].into_iter().filter_map(first).collect()
}

/// The folders that may contain the files; the first one that does counts.
fn folders(agent: &Path, cwd: &Path, is_trusted: bool) -> Vec<PathBuf> {
    is_trusted.then(|| cwd.join(".pi")).into_iter().chain([agent.to_owned()]).collect()
}

/// Reads the files for `cwd`; also returns problems, one line each. Blocks.
pub(crate) fn prompt_files(agent: &Path, cwd: &Path, is_trusted: bool) -> (PromptFiles, Vec<String>) {
    let folders = folders(agent, cwd, is_trusted);
    let mut problems = Vec::new();
    let mut first = |name: &str| {
        for path in folders.iter().map(|folder| folder.join(name)) {
            match read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    problems.push(format!("{} is not loaded: {error}", path.display()));
                    return None;
                }
                Ok((text, invalid)) => {
                    let problem = invalid.map(|found| format!("{}:{}: {found}", path.display(), found.line));
                    problems.extend(problem);
                    return (!text.is_empty()).then_some(text);
                }
            }
        }
        None
    };
    let files = PromptFiles { system: first(SYSTEM), append: first(APPEND) };
    (files, problems)
}

/// The text, and where it is not UTF-8.
fn read(path: &Path) -> io::Result<(String, Option<InvalidText>)> {
    let file = os::open_regular(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is longer than {} KiB", MAX_BYTES >> 10)));
    }
    let (text, invalid) = decode(&bytes, false);
    Ok((text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned(), invalid))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(
        files: &[(&str, &str)],
        is_trusted: bool,
        system: Option<&str>,
        append: Option<&str>,
    ) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (files, problems) =
            prompt_files(&root.path().join("agent"), &root.path().join("work"), is_trusted);
        assert_eq!((files.system.as_deref(), files.append.as_deref()), (system, append));
        problems
    }

    #[test]
    fn file_of_a_trusted_project_replaces_the_users() {
        let files = [
            ("agent/SYSTEM.md", "\u{feff}mine\n"),
            ("agent/APPEND_SYSTEM.md", "more"),
            ("work/.pi/SYSTEM.md", " theirs "),
        ];
        assert_eq!(check(&files, true, Some("theirs"), Some("more")), [""; 0]);
        assert_eq!(check(&files, false, Some("mine"), Some("more")), [""; 0]);
        assert_eq!(check(&[], true, None, None), [""; 0]);
        // An empty file says that nothing replaces the default.
        let emptied = [("agent/SYSTEM.md", "mine"), ("work/.pi/SYSTEM.md", "\n")];
        assert_eq!(check(&emptied, true, None, None), [""; 0]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_named_and_the_rest_counts() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("APPEND_SYSTEM.md");
        fs::write(&path, b"a\n\xffb").unwrap();
        let (files, problems) = prompt_files(root.path(), root.path(), false);
        assert_eq!(files.append.as_deref(), Some("a\n\u{fffd}b"));
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert!(
            problem.starts_with(&format!("{}:2: byte 2 (0xff) is not UTF-8", path.display())),
            "{problem}"
        );
    }

    #[test]
    fn file_that_cannot_be_used_is_named_with_its_path() {
        let long = "x".repeat(300 << 10);
        let problems =
            check(&[("agent/SYSTEM.md", &long), ("agent/APPEND_SYSTEM.md/x", "")], true, None, None);
        let [long, folder] = &problems[..] else { panic!("{problems:?}") };
        assert!(long.ends_with("agent/SYSTEM.md is not loaded: it is longer than 256 KiB"), "{long}");
        assert!(folder.contains("agent/APPEND_SYSTEM.md is not loaded: "), "{folder}");
    }
}
