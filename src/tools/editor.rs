//! The texts that an editor has open, with changes that are not saved.
//!
//! pi may work for an editor; then unsaved changes count, and what tools write appears in
//! the editor's own buffers. Everything else, such as `bash` and `grep`, sees the disk.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::util::atomic_file;

/// An editor that serves its files. All methods may block for as long as it takes.
pub trait Editor: fmt::Debug + Send + Sync {
    /// The text of a file as the editor has it; `None` if it cannot tell.
    fn read(&self, path: &Path) -> Option<String>;

    /// Writes a file and saves it. `false` if the editor did not, for whatever reason.
    fn write(&self, path: &Path, text: &str) -> bool;

    /// A file is about to be replaced as a whole; `text` is what it contains.
    fn on_overwrite(&self, path: &Path, text: &str);
}

/// Larger files are read and written on the disk alone: editors need them whole.
const MAX_BYTES: u64 = 10 << 20;

/// What the editor has in place of the text on the disk; `None` if there is no editor, or
/// they differ in nothing but line breaks and a byte order mark, which editors leave out.
pub(super) fn unsaved(editor: Option<&dyn Editor>, path: &Path, on_disk: &str) -> Option<String> {
    let text = editor.filter(|_| on_disk.len() as u64 <= MAX_BYTES)?.read(path)?;
    (!same_lines(&text, on_disk)).then_some(text)
}

/// As [`unsaved`], for a file that is read elsewhere in pieces. `n_bytes` is its length.
pub(super) fn unsaved_at(editor: Option<&dyn Editor>, path: &Path, n_bytes: u64) -> Option<String> {
    if editor.is_none() || n_bytes > MAX_BYTES {
        return None;
    }
    let on_disk = fs::read(path).ok()?;
    unsaved(editor, path, &String::from_utf8_lossy(&on_disk))
}

fn same_lines(a: &str, b: &str) -> bool {
    fn lines(text: &str) -> impl Iterator<Item = &str> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
    }
    lines(a).eq(lines(b))
}

/// Writes `text` through the editor, or to the disk if there is none or it does not.
///
/// # Errors
/// If the disk does not take it.
pub(super) fn write(editor: Option<&dyn Editor>, path: &Path, text: &str) -> io::Result<()> {
    if editor.is_some_and(|editor| text.len() as u64 <= MAX_BYTES && editor.write(path, text)) {
        return Ok(());
    }
    atomic_file::write(path, text.as_bytes()).map(drop)
}

/// Tells the editor what a file contains before it is replaced.
pub(super) fn note_overwrite(editor: Option<&dyn Editor>, path: &Path) {
    let Some(editor) = editor else { return };
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES);
    if let Some(text) = is_small.then(|| fs::read_to_string(path).ok()).flatten() {
        editor.on_overwrite(path, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_breaks_alone_are_the_same() {
        let check = |a: &str, b: &str, expected: bool| assert_eq!(same_lines(a, b), expected, "{a:?} {b:?}");
        check("a\nb\n", "\u{feff}a\r\nb\r\n", true);
        check("a\nb", "a\nb\n", false);
        check("", "", true);
        check("a", "b", false);
    }
}
