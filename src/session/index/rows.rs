//! The file of rows: a header line, then all rows in a binary form, which is read several
//! times faster than JSON would be.
//!
//! It is a cache: a file that is missing, damaged, of another version or unreadable counts
//! as empty.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::util::{atomic_file, os};

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

    /// What [`SessionSummary::modified_ms`](super::SessionSummary::modified_ms) is.
    pub(super) fn modified_ms(&self) -> u64 {
        let created_ms = self.facts.head.as_ref().and_then(|head| head.created_ms);
        self.facts.last_message_ms.or(created_ms).unwrap_or_else(|| self.stamp.modified_ms())
    }
}

/// The rows by the path of the session: as bytes, because the hash of a [`Path`] takes its
/// components apart.
pub(super) type Rows = FxHashMap<OsString, Row>;

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
const VERSION: u32 = 4;

const LIMIT_BYTES: u64 = 256 << 20;

/// Reads the rows in `file`; paths are relative to `root`.
pub(super) fn load(file: &Path, root: &Path) -> Rows {
    os::read_regular(file, LIMIT_BYTES).ok().and_then(|bytes| parse(&bytes, root)).unwrap_or_default()
}

fn parse(bytes: &[u8], root: &Path) -> Option<Rows> {
    let (head, rows) = bytes.split_at_checked(bytes.iter().position(|byte| *byte == b'\n')? + 1)?;
    let head: FileHead = serde_json::from_slice(head).ok()?;
    let expected = FileHead { r#type: TYPE.to_owned(), version: VERSION, crc: crc32fast::hash(rows) };
    if head != expected {
        return None;
    }
    let rows: Vec<(&str, Row)> = postcard::from_bytes(rows).ok()?;
    Some(rows.into_iter().map(|(path, row)| (root.join(path).into_os_string(), row)).collect())
}

/// Replaces the rows in `file`.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn save(file: &Path, root: &Path, rows: &Rows) -> io::Result<()> {
    // A path that is no text cannot be written; that session is read each time.
    let relative = |path: &Path| path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
    let rows: Vec<(String, &Row)> =
        rows.iter().filter_map(|(path, row)| Some((relative(path.as_ref())?, row))).collect();
    let rows = postcard::to_allocvec(&rows).map_err(io::Error::other)?;
    let head = FileHead { r#type: TYPE.to_owned(), version: VERSION, crc: crc32fast::hash(&rows) };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&rows);
    atomic_file::write_restricted(file, &bytes)
}
