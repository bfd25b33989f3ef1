//! The file of prompts: `prompt-history.jsonl` beside the settings, a line per prompt.
//!
//! Several processes append to it at once. Each holds the file's lock while it writes; the one
//! that makes the file too long also replaces it by a shorter one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::util::atomic_file;
use crate::util::os;

/// A longer file is replaced by its newest half.
const LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// Longer prompts are not kept; the session has them.
const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// How often a writer looks for the file again after another process replaced it.
const MAX_REOPENED: usize = 10;

/// A prompt of this or an earlier session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct PastPrompt {
    /// Milliseconds since the Unix epoch.
    pub(in super::super) at_ms: u64,
    /// Where the session worked.
    pub(in super::super) cwd: PathBuf,
    pub(in super::super) text: String,
}

/// Appends a prompt. Blocks, also while another process writes.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn append(path: &Path, prompt: &PastPrompt) -> io::Result<()> {
    append_within(path, prompt, LIMIT_BYTES)
}

fn append_within(path: &Path, prompt: &PastPrompt, limit_bytes: u64) -> io::Result<()> {
    if prompt.text.len() > MAX_PROMPT_BYTES {
        return Ok(());
    }
    let mut line = serde_json::to_vec(prompt)?;
    line.push(b'\n');
    let mut file = open_locked(path)?;
    atomic_file::restrict_own(&file);
    // The rest of a line that was not completed must not swallow this one.
    if !ends_with_line_end(&mut file)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line)?;
    if file.metadata()?.len() > limit_bytes {
        shorten(path, limit_bytes / 2)?;
    }
    Ok(())
}

/// The file at `path`, created if necessary, with its lock held until it is dropped.
fn open_locked(path: &Path) -> io::Result<File> {
    for _ in 0..MAX_REOPENED {
        if let Some(folder) = path.parent() {
            atomic_file::create_private_folder(folder)?;
        }
        let file = atomic_file::private_options().read(true).append(true).create(true).open(path)?;
        file.lock()?;
        // Another process may have replaced the file while this one waited.
        let (held, current) = (file.metadata()?, path.metadata());
        if current.is_ok_and(|current| os::file_id(&current) == os::file_id(&held)) {
            return Ok(file);
        }
    }
    Err(io::Error::other("it is replaced again and again"))
}

fn ends_with_line_end(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Replaces the file by its newest prompts, each once per directory. The caller holds the lock.
fn shorten(path: &Path, limit_bytes: u64) -> io::Result<()> {
    let mut prompts: Vec<PastPrompt> = lines(path)?.collect();
    let (mut seen, mut n_bytes) = (HashSet::new(), 0);
    prompts.reverse();
    prompts.retain(|prompt| {
        let is_new = seen.insert((prompt.cwd.clone(), prompt.text.clone()));
        n_bytes += if is_new { prompt.text.len() as u64 } else { 0 };
        is_new && n_bytes <= limit_bytes
    });
    let mut bytes = Vec::new();
    for prompt in prompts.iter().rev() {
        serde_json::to_writer(&mut bytes, prompt)?;
        bytes.push(b'\n');
    }
    atomic_file::write_private(path, &bytes)
}

/// Up to `limit` prompts, newest first, each text once; only those of `cwd`, if it is given.
/// A missing file has none. Blocks.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(path: &Path, cwd: Option<&Path>, limit: usize) -> io::Result<Vec<PastPrompt>> {
    let lines = match lines(path) {
        Ok(lines) => lines.filter(|prompt| cwd.is_none_or(|cwd| prompt.cwd == cwd)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut prompts = Vec::new();
    for prompt in lines {
        prompts.push(prompt);
        // Memory holds little more than what is wanted.
        if prompts.len() > 2 * limit.max(1) {
            keep_newest(&mut prompts, limit);
        }
    }
    keep_newest(&mut prompts, limit);
    prompts.reverse();
    Ok(prompts)
}

/// Keeps the last `limit` texts, each once.
fn keep_newest(prompts: &mut Vec<PastPrompt>, limit: usize) {
    prompts.reverse();
    let mut seen = HashSet::new();
    prompts.retain(|prompt| seen.len() < limit && seen.insert(prompt.text.clone()));
    prompts.reverse();
}

/// The prompts of the file, oldest first. Lines that cannot be read are left out: what they
/// held cannot be known.
fn lines(path: &Path) -> io::Result<impl Iterator<Item = PastPrompt>> {
    let lines = BufReader::new(os::open_regular(path)?).split(b'\n').map_while(Result::ok);
    Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    use super::*;

    fn prompt(at_ms: u64, cwd: &str, text: &str) -> PastPrompt {
        PastPrompt { at_ms, cwd: cwd.into(), text: text.to_owned() }
    }

    fn texts(path: &Path, cwd: Option<&str>, limit: usize) -> Vec<String> {
        let read = read(path, cwd.map(Path::new), limit).unwrap();
        read.into_iter().map(|prompt| prompt.text).collect()
    }

    #[test]
    fn newest_prompts_come_first_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent/prompt-history.jsonl");
        assert_eq!(texts(&path, None, 9), [""; 0]);
        for (cwd, text) in [("/a", "one"), ("/b", "two\nlines"), ("/a", "three"), ("/a", "one")] {
            append(&path, &prompt(1, cwd, text)).unwrap();
        }
        assert_eq!(texts(&path, None, 9), ["one", "three", "two\nlines"]);
        assert_eq!(texts(&path, None, 2), ["one", "three"]);
        assert_eq!(texts(&path, Some("/b"), 9), ["two\nlines"]);
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        // Copied from a backup, for example.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        append(&path, &prompt(2, "/a", "four")).unwrap();
        assert_eq!((mode(), texts(&path, None, 1)), (0o600, vec!["four".to_owned()]));
    }

    #[test]
    fn damaged_line_costs_that_line_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.jsonl");
        append(&path, &prompt(1, "/a", "one")).unwrap();
        let mut torn = fs::read(&path).unwrap();
        torn.extend(b"{\"at_ms\":2,\"cwd\":\"/a\",\"te\xff");
        fs::write(&path, torn).unwrap();
        append(&path, &prompt(3, "/a", "three")).unwrap();
        assert_eq!(texts(&path, None, 9), ["three", "one"]);
    }

    #[test]
    fn prompt_that_is_too_long_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.jsonl");
        append(&path, &prompt(1, "/a", &"x".repeat(MAX_PROMPT_BYTES + 1))).unwrap();
        assert_eq!(texts(&path, None, 9), [""; 0]);
    }

    #[test]
    fn processes_that_write_at_once_lose_nothing_while_the_file_is_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.jsonl");
        let limit = 8_000;
        // Each writer repeats one prompt, so that every shortened file can hold one of each.
        thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for at_ms in 0..100 {
                        let text = format!("prompt of writer {writer}");
                        append_within(path, &prompt(at_ms, "/a", &text), limit).unwrap();
                    }
                });
            }
        });
        let mut found = texts(&path, None, 9);
        found.sort();
        let expected: Vec<String> = (0..4).map(|writer| format!("prompt of writer {writer}")).collect();
        assert_eq!(found, expected);
        assert!(fs::metadata(&path).unwrap().len() <= limit);
    }
}
