//! The file of rows: a header line, then one JSON line per session.
//!
//! It is a cache: a file that is missing, damaged, of another version or unreadable counts
//! as empty.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::util::{atomic_file, parts};

use super::super::store::{End, Stamp};
use super::contents::{Earlier, Facts};
use super::packs::Segment;

/// What is known about a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) stamp: Stamp,
    pub(super) end: Option<End>,
    pub(super) facts: Facts,
    /// `None` if they could not be stored.
    pub(super) texts: Option<Vec<Segment>>,
}

impl Row {
    pub(super) fn as_earlier(&self) -> Earlier<'_> {
        Earlier { stamp: &self.stamp, facts: &self.facts, end: self.end }
    }
}

/// The rows by the path of the session.
pub(super) type Rows = HashMap<PathBuf, Row>;

/// Identifies the file and the format of its rows.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct FileHead {
    r#type: String,
    version: u32,
    /// Checksum of everything after this line.
    crc: u32,
}

const TYPE: &str = "pi-session-index";
/// Changes with the meaning of rows or packs.
const VERSION: u32 = 1;

/// A line: the path relative to the root, and the row.
#[derive(Serialize)]
struct LineOut<'a>(&'a str, &'a Row);

#[derive(Deserialize)]
struct LineIn(String, Row);

/// Reads the rows in `file`; paths are relative to `root`.
pub(super) fn load(file: &Path, root: &Path) -> Rows {
    fs::read(file).ok().and_then(|bytes| parse(&bytes, root)).unwrap_or_default()
}

fn parse(bytes: &[u8], root: &Path) -> Option<Rows> {
    let (head, lines) = bytes.split_at_checked(bytes.iter().position(|byte| *byte == b'\n')? + 1)?;
    let head: FileHead = serde_json::from_slice(head).ok()?;
    let expected = FileHead { r#type: TYPE.to_owned(), version: VERSION, crc: crc32fast::hash(lines) };
    if head != expected {
        return None;
    }
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let n_threads = parts::threads_for(lines.len(), ROWS_PER_THREAD);
    let rows = parts::in_parts(&lines, n_threads, &|line| line.len(), &|lines| {
        let read = |line: &&[u8]| {
            let LineIn(path, row) = serde_json::from_slice(line).ok()?;
            Some((root.join(path), row))
        };
        lines.iter().map(read).collect()
    });
    rows.into_iter().collect()
}

/// Rows that are worth a thread of their own.
const ROWS_PER_THREAD: usize = 500;

/// Replaces the rows in `file`.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn save(file: &Path, root: &Path, rows: &Rows) -> io::Result<()> {
    let mut lines = Vec::new();
    for (path, row) in rows {
        // Another path cannot be written as JSON; that session is read each time.
        let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        serde_json::to_writer(&mut lines, &LineOut(path, row))?;
        lines.push(b'\n');
    }
    let head = FileHead { r#type: TYPE.to_owned(), version: VERSION, crc: crc32fast::hash(&lines) };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&lines);
    atomic_file::write_private(file, &bytes)
}
