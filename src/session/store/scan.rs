//! Reads session files without reading their bodies.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::ai::Usage;
use crate::util::clock;

use super::super::state::Totals;
use super::damage::{self, DamagedLine};
use super::entry::{Entry, EntryId, Header};
use super::message_facts::MessageFacts;
use super::tree::{Body, EntryKind, Location, Node, Tree};

/// The result of one pass over a session file.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) header: Header,
    pub(super) tree: Tree,
    pub(super) facts: Facts,
    /// Lines without an entry, or with one that is only partly readable.
    pub(super) damage: Vec<DamagedLine>,
    /// Whether the last line lacks its line break.
    pub(super) unterminated: bool,
}

/// Facts from the scan for which bodies would otherwise have to be loaded.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) totals: Totals,
    pub(super) name: Option<String>,
}

/// Why a file cannot be opened as a session. The text contains the full reason, so
/// no variant has a source.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: std::path::PathBuf, error: io::Error },
    #[error(
        "cannot read {}: the session file does not exist; check the path, or choose a session with --resume",
        path.display()
    )]
    Missing { path: std::path::PathBuf },
    #[error(
        "cannot convert the session {} to the current format: {error}; the file was not changed",
        path.display()
    )]
    Migrate { path: std::path::PathBuf, error: io::Error },
    #[error("{} is not a pi session: its first line is not a session header; the file was not changed", path.display())]
    NotASession { path: std::path::PathBuf },
    #[error(
        "the directory of this session, {cwd}, no longer exists; recreate it, or continue a copy of the session here with pi --fork"
    )]
    NoDirectory { cwd: String },
    #[error("cannot copy the session to {}: {error}", path.display())]
    Copy { path: std::path::PathBuf, error: io::Error },
}

/// Scans the whole file. `None` if it is empty.
pub(super) fn scan(path: &Path) -> Result<Option<Scan>, OpenError> {
    let read_error = |error| OpenError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(read_error)?;
    let len = file.metadata().map_err(read_error)?.len();
    let mut reader = BufReader::with_capacity(1 << 20, past_bad_blocks(file, 0, len));
    let mut line = Vec::new();
    let mut offset = 0_u64;
    let mut line_no = 0;
    let mut header = None;
    let mut lines = Lines::default();
    let mut unterminated = false;
    loop {
        line.clear();
        let n = reader.read_until(b'\n', &mut line).map_err(read_error)?;
        if n == 0 {
            break;
        }
        line_no += 1;
        unterminated = line.last() != Some(&b'\n');
        let body = trim(&line);
        let start = line.len() - line.trim_ascii_start().len();
        let location = Location { offset: offset + start as u64, len: body.len() };
        offset += n as u64;
        if body.is_empty() {
            continue;
        }
        if header.is_some() {
            lines.add(body, location, line_no);
            continue;
        }
        header = parse_header(body);
        if header.is_none() {
            if serde_json::from_slice::<IgnoredAny>(body).is_ok() {
                return Err(OpenError::NotASession { path: path.to_owned() });
            }
            lines.damage.push(DamagedLine { line: line_no, what: None });
        }
    }
    let Lines { tree, facts, damage } = lines;
    match header {
        Some(header) => Ok(Some(Scan { header, tree, facts, damage, unterminated })),
        None if offset == 0 => Ok(None),
        None => Err(OpenError::NotASession { path: path.to_owned() }),
    }
}

/// Reads `file`, whose position is `at`, and skips blocks before `len` that the disk cannot
/// read; zeros replace them.
pub(in crate::session) fn past_bad_blocks(file: File, at: u64, len: u64) -> impl Read {
    PastBadBlocks { inner: file, at, len }
}

/// Skips blocks that the disk cannot read; zeros replace them and
/// damage the affected lines.
struct PastBadBlocks<R> {
    inner: R,
    at: u64,
    /// Length of the file, where skipping ends.
    len: u64,
}

/// Size of a block that is skipped after a read error.
const BLOCK_BYTES: u64 = 4096;

impl<R: Read + Seek> Read for PastBadBlocks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match self.inner.read(buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && self.at < self.len => {
                let rest = (BLOCK_BYTES - self.at % BLOCK_BYTES).min(self.len - self.at);
                let n = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
                self.inner.seek(SeekFrom::Start(self.at + n as u64)).map_err(|_| error)?;
                buffer[..n].fill(0);
                n
            }
            result => result?,
        };
        self.at += n as u64;
        Ok(n)
    }
}

/// The contents of the lines after the header.
#[derive(Debug, Default)]
struct Lines {
    tree: Tree,
    facts: Facts,
    damage: Vec<DamagedLine>,
}

impl Lines {
    fn add(&mut self, body: &[u8], location: Location, line: usize) {
        if let Ok(head) = serde_json::from_slice::<EntryHead<'_>>(body) {
            if std::str::from_utf8(body).is_err() {
                // Read with replacement characters, like the original.
                self.damage.push(DamagedLine { line, what: head.describe() });
            }
            return self.add_entry(&head, location, line);
        }
        // Entries below an entry with invalid content must stay reachable.
        if let Ok(bare) = serde_json::from_slice::<Bare<'_>>(body) {
            self.damage.push(DamagedLine { line, what: None });
            self.tree.push(bare.node(location, line));
            return;
        }
        let (what, gap) = damage::examine(body);
        self.damage.push(DamagedLine { line, what });
        self.tree.push_gap(gap);
        // A truncated line, followed by the next one without a line break.
        if let Some((start, head)) = entry_at_the_end(body) {
            let location = Location { offset: location.offset + start as u64, len: body.len() - start };
            self.add_entry(&head, location, line);
        }
    }

    fn add_entry(&mut self, head: &EntryHead<'_>, location: Location, line: usize) {
        self.facts.note(head);
        self.tree.push(head.node(location, line));
    }
}

/// The offset of an entry that begins within a damaged line and extends to its end.
pub(in crate::session) fn start_of_entry_at_the_end(body: &[u8]) -> Option<usize> {
    entry_at_the_end(body).map(|(start, _)| start)
}

/// An entry that begins within a damaged line and extends to its end, and its offset.
fn entry_at_the_end(body: &[u8]) -> Option<(usize, EntryHead<'_>)> {
    const START: &[u8] = br#"{"type":""#;
    let starts =
        (1..body.len().saturating_sub(START.len())).rev().filter(|at| body[*at..].starts_with(START));
    starts.take(64).find_map(|at| {
        let head: EntryHead<'_> = serde_json::from_slice(&body[at..]).ok()?;
        // A tool call has type and id, too.
        head.describe().is_some().then_some((at, head))
    })
}

/// The last entries of a session, read from the last [`TAIL_BYTES`] of the
/// file: for the first frame of a large session, while the scan continues.
pub(super) fn tail(path: &Path) -> Option<Vec<Arc<Entry>>> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    let start = len.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    // The first line is incomplete, or is the header.
    let entries: Vec<Entry> = bytes
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| Entry::parse(std::str::from_utf8(line).ok()?).ok())
        .collect();
    let mut branch: Vec<Arc<Entry>> = Vec::new();
    let mut wanted: Option<EntryId> = None;
    for entry in entries.into_iter().rev() {
        if branch.is_empty() || wanted.as_ref() == Some(&entry.id) {
            wanted = entry.parent_id.clone();
            branch.push(Arc::new(entry));
        }
    }
    branch.reverse();
    Some(branch)
}

/// The entry at `location`; `None` if it cannot be read.
pub(super) fn read_entry(file: &File, location: Location) -> Option<Entry> {
    let mut line = vec![0; location.len];
    file.read_exact_at(&mut line, location.offset).ok()?;
    Entry::parse(&String::from_utf8_lossy(&line)).ok()
}

/// How much of a file [`tail`] reads.
pub(super) const TAIL_BYTES: u64 = 512 * 1024;

/// The header of a session file, reading at most the first mebibyte.
pub(in crate::session) fn read_header(path: &Path) -> Option<Header> {
    let mut reader = BufReader::with_capacity(4096, File::open(path).ok()?.take(1 << 20));
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let body = trim(&line);
        if serde_json::from_slice::<IgnoredAny>(body).is_ok() {
            return parse_header(body);
        }
    }
}

/// The header in `line`, if it is one.
pub(in crate::session) fn parse_header(line: &[u8]) -> Option<Header> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let typed: Typed<'_> = serde_json::from_slice(line).ok()?;
    if typed.kind != "session" {
        return None;
    }
    let mut header: Header = serde_json::from_slice(line).ok()?;
    header.extra.shift_remove("type");
    Some(header)
}

/// `line` without line break and surrounding white space, including `\r`.
fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

/// An entry without its content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    /// ISO 8601.
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<MessageFacts<'a>>,
    /// Present on compactions, branch summaries and usage entries.
    #[serde(default)]
    usage: Option<Usage>,
    /// Present on `session_info`.
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

/// An entry of which only the position in the tree can be read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bare<'a> {
    #[serde(rename = "type", borrow)]
    _kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
}

impl EntryHead<'_> {
    /// The kind of its content, in the user's words.
    fn describe(&self) -> Option<String> {
        damage::describe(&self.kind, self.message.as_ref().map(|message| message.role.as_ref()))
    }

    fn node(&self, location: Location, line: usize) -> Node {
        let role = self.message.as_ref().map(|message| message.role.as_ref());
        Node {
            id: EntryId::new(&self.id),
            parent_id: self.parent_id.as_deref().map(EntryId::new),
            kind: EntryKind::named(&self.kind, role),
            is_silent: self.message.as_ref().is_some_and(MessageFacts::is_silent),
            at_ms: self.timestamp.as_deref().and_then(clock::parse_iso8601).unwrap_or_default(),
            body: Body::OnDisk(location),
            line,
        }
    }
}

impl Bare<'_> {
    fn node(&self, location: Location, line: usize) -> Node {
        Node {
            id: EntryId::new(&self.id),
            parent_id: self.parent_id.as_deref().map(EntryId::new),
            kind: EntryKind::Other,
            is_silent: false,
            at_ms: 0,
            body: Body::OnDisk(location),
            line,
        }
    }
}

impl Facts {
    fn note(&mut self, head: &EntryHead<'_>) {
        if let Some(usage) = &head.usage {
            self.totals.add_usage(usage);
        }
        if let Some(message) = &head.message {
            if let Some(usage) = &message.usage {
                self.totals.add_usage(usage);
            }
            match message.role.as_ref() {
                "user" => self.totals.n_user += 1,
                "assistant" => self.totals.n_assistant += 1,
                "toolResult" => self.totals.n_tool_results += 1,
                _ => {}
            }
        }
        if head.kind == "session_info" {
            self.name = head.name.as_deref().and_then(clean_name);
        }
    }
}

/// A session name on one line; `None` if it is blank.
pub(in crate::session) fn clean_name(name: &str) -> Option<String> {
    let name = name.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A disk whose second block cannot be read.
    struct BadBlock(Cursor<Vec<u8>>);

    impl Read for BadBlock {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let at = self.0.position();
            if (BLOCK_BYTES..2 * BLOCK_BYTES).contains(&at) {
                return Err(io::Error::other("bad block"));
            }
            // Like a real disk, reads up to the bad block.
            let n = if at < BLOCK_BYTES { usize::try_from(BLOCK_BYTES - at).unwrap() } else { buffer.len() };
            let n = n.min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    impl Seek for BadBlock {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_block_that_cannot_be_read_costs_that_block_alone() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES).map(|at| u8::try_from(at % 200 + 1).unwrap()).collect();
        let len = bytes.len() as u64;
        let mut read = Vec::new();
        let inner = BadBlock(Cursor::new(bytes.clone()));
        PastBadBlocks { inner, at: 0, len }.read_to_end(&mut read).unwrap();
        let mut expected = bytes;
        expected[4096..8192].fill(0);
        assert_eq!(read, expected);
    }
}
