//! Reads session files without reading their bodies.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::ai::{Extra, Usage};
use crate::util::{clock, os, parts};

use super::super::state::Totals;
use super::damage::{self, DamagedLine};
use super::entry::{Entry, EntryId, Header};
use super::line::Head;
use super::message_facts::MessageFacts;
use super::migrate;
use super::outline::{self, PendingOutline};
use super::stamp::{End, Stamp};
use super::tree::{BrokenLinks, EntryKind, Gap, Location, Node, Tree};

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
    /// The file that was read, for its bodies.
    pub(super) file: File,
    /// The number of bytes that were read; the outline replaced the others.
    pub(super) n_bytes: u64,
    /// An outline to write, if reading the file again would take long.
    pub(super) outline: Option<PendingOutline>,
    /// Lines that repeat an earlier one and were ignored.
    pub(super) repeated: Vec<usize>,
    pub(super) links: BrokenLinks,
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
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum OpenError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: std::path::PathBuf, error: io::Error },
    #[error(
        "cannot read {}: the session file does not exist; check the path; pi sessions lists sessions",
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
    #[error(
        "the directory of this session, {cwd}, cannot be entered; its permissions or those of a folder above forbid it"
    )]
    NoAccess { cwd: String },
    #[error("cannot copy the session to {}: {error}", path.display())]
    Copy { path: std::path::PathBuf, error: io::Error },
}

/// A scan that reads at least this many bytes is worth an outline.
const OUTLINE_BYTES: u64 = 1 << 20;

/// What is known after reading some lines.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// `None` before the first line.
    pub(super) header: Option<Header>,
    /// The first line, if it is not readable.
    pub(super) damaged_header: Option<Vec<u8>>,
    pub(super) lines: Lines,
    pub(super) n_lines: u32,
    /// The end of the last line that was read.
    pub(super) offset: u64,
}

/// Reads what is to be known of every line. `None` if the file is empty. If there is an
/// outline of the file, only lines that it does not know are read.
pub(super) fn scan(path: &Path) -> Result<Option<Scan>, OpenError> {
    let read_error = |error| OpenError::Read { path: path.to_owned(), error };
    let mut file = os::open_regular(path).map_err(read_error)?;
    let stamp = Stamp::of(&file.metadata().map_err(read_error)?);
    let mut read = outline::load(path, &file, &stamp).unwrap_or_default();
    let start = read.offset;
    file.seek(SeekFrom::Start(start)).map_err(read_error)?;
    let rest = past_bad_blocks(file.try_clone().map_err(read_error)?, start, stamp.size);
    let mut lines = FileLines::new(rest, block_bytes(stamp.size));
    let outline_of = |read: &Progress| {
        let header = read.header.as_ref().filter(|header| header.version == migrate::CURRENT_VERSION)?;
        // An outline knows nothing of lines that were ignored, nor of a branch that ends elsewhere.
        let Lines { tree, repeated, .. } = &read.lines;
        let ends_at_last = tree.leaf() == tree.len().checked_sub(1);
        let is_worth = read.offset - start >= OUTLINE_BYTES && repeated.is_empty() && ends_at_last;
        let end = is_worth.then(|| End::new(&file, read.offset)).flatten()?;
        PendingOutline::new(path, stamp, end, header, read)
    };
    let mut outline = None;
    let mut unterminated = false;
    let n_known = read.lines.tree.len();
    let mut has_room = false;
    while let Some(block) = lines.next_block().map_err(read_error)? {
        for line in read_lines(block) {
            unterminated = line.text.last() != Some(&b'\n');
            if unterminated {
                // A line without its end may still grow.
                outline = outline_of(&read);
            }
            if !read.add_line(line) {
                return Err(OpenError::NotASession { path: path.to_owned() });
            }
        }
        if !std::mem::replace(&mut has_room, true) {
            read.make_room(n_known, start, stamp.size);
        }
    }
    if !unterminated {
        outline = outline_of(&read);
    }
    if read.offset == 0 {
        return Ok(None);
    }
    let Progress { header, damaged_header, lines, offset, .. } = read;
    let Lines { mut tree, facts, mut damage, repeated } = lines;
    let header = match header {
        Some(header) => header,
        None if tree.len() == 0 => return Err(OpenError::NotASession { path: path.to_owned() }),
        None => {
            let what = Some("the header".to_owned());
            match damage.first_mut().filter(|first| first.line == 1) {
                Some(first) => first.what = what,
                None => damage.insert(0, DamagedLine { line: 1, what }),
            }
            rebuilt_header(path, &damaged_header.unwrap_or_default())
        }
    };
    let links = tree.finish();
    let n_bytes = offset - start;
    Ok(Some(Scan { header, tree, facts, damage, unterminated, file, n_bytes, outline, repeated, links }))
}

/// Whether a line is an entry as this program and the original write it, not one of another
/// program's files.
pub(in crate::session) fn is_entry(body: &[u8]) -> bool {
    serde_json::from_slice::<EntryHead<'_>>(body)
        .is_ok_and(|head| head.describe().is_some() && !matches!(head.parent_id, ParentField::Absent))
}

/// The header of a session whose first line is damaged: its readable fields, and for the id
/// the name of the file.
fn rebuilt_header(path: &Path, damaged: &[u8]) -> Header {
    let text = String::from_utf8_lossy(damaged);
    let field = |name: &str| damage::field(&text, name).unwrap_or_default().to_owned();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = stem.rsplit('_').next().unwrap_or_default();
    Header {
        version: super::migrate::CURRENT_VERSION,
        id: damage::field(&text, "id").unwrap_or(id).to_owned(),
        timestamp: field("timestamp"),
        // A directory that does not exist would keep the session from being opened.
        cwd: Some(field("cwd")).filter(|cwd| Path::new(cwd).is_dir()).unwrap_or_default(),
        parent_session: None,
        extra: serde_json::Map::new(),
    }
}

/// The lines of a file, in blocks, where they were read: most of a gigabyte is not copied
/// again.
struct FileLines<R> {
    file: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is not returned yet.
    rest: Range<usize>,
}

/// Length of a block of a file of this size, unless a line is longer. What is read of a block takes as
/// much room as the block, and only a giant file is read faster in large ones.
fn block_bytes(file_bytes: u64) -> usize {
    const SMALL: usize = 512 << 10;
    const LARGE: usize = 2 << 20;
    usize::try_from(file_bytes / 64).unwrap_or(LARGE).clamp(SMALL, LARGE)
}

impl<R: Read> FileLines<R> {
    fn new(file: R, block_bytes: usize) -> Self {
        Self { file, buffer: vec![0; block_bytes], rest: 0..0 }
    }

    /// Whole lines with their line breaks; the last line of the file may lack it. `None` at
    /// the end.
    fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        let mut n_searched = 0;
        loop {
            let is_end = self.fill()? == 0;
            let rest = &self.buffer[self.rest.clone()];
            let end = memchr::memrchr(b'\n', &rest[n_searched..]).map(|at| n_searched + at + 1);
            let is_full = self.rest.end == self.buffer.len();
            match end {
                Some(end) if is_full || is_end => return Ok(Some(self.take(end))),
                None if is_end && self.rest.is_empty() => return Ok(None),
                None if is_end => return Ok(Some(self.take(self.rest.len()))),
                None => n_searched = rest.len(),
                Some(_) => {}
            }
        }
    }

    fn take(&mut self, n: usize) -> &[u8] {
        let start = self.rest.start;
        self.rest.start += n;
        &self.buffer[start..start + n]
    }

    /// Reads more; 0 at the end.
    fn fill(&mut self) -> io::Result<usize> {
        if self.rest.start > 0 {
            self.buffer.copy_within(self.rest.clone(), 0);
            self.rest = 0..self.rest.len();
        }
        if self.rest.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.file.read(&mut self.buffer[self.rest.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.inspect(|n| self.rest.end += n),
            }
        }
    }
}

/// A line, and what is read of it without knowing the lines before it.
struct ReadLine<'a> {
    /// With its line break.
    text: &'a [u8],
    head: Option<EntryHead<'a>>,
    is_utf8: bool,
}

impl<'a> ReadLine<'a> {
    fn new(text: &'a [u8]) -> Self {
        let body = trim(text);
        let head = if body.is_empty() { None } else { serde_json::from_slice(body).ok() };
        Self { text, head, is_utf8: std::str::from_utf8(body).is_ok() }
    }
}

/// Bytes that are worth a thread of their own.
const BYTES_PER_THREAD: usize = 256 << 10;

/// The lines of a block, read by several threads if there is much to read.
fn read_lines(block: &[u8]) -> Vec<ReadLine<'_>> {
    let mut rest = block;
    let lines: Vec<&[u8]> = std::iter::from_fn(|| {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        Some(line).filter(|line| !line.is_empty())
    })
    .collect();
    let n_threads = parts::threads_for(block.len(), BYTES_PER_THREAD);
    parts::in_parts(&lines, n_threads, &|line| line.len(), &|lines| {
        lines.iter().map(|line| ReadLine::new(line)).collect()
    })
}

impl Progress {
    /// Makes room for the entries of the rest of a file of `len` bytes, if its lines are like those since
    /// `start`, before which there were `n_known` entries.
    fn make_room(&mut self, n_known: usize, start: u64, len: u64) {
        let tree = &mut self.lines.tree;
        let n_read = (tree.len() - n_known) as u128;
        let (read, rest) = (self.offset.saturating_sub(start), len.saturating_sub(self.offset));
        let n_expected = n_read * u128::from(rest) / u128::from(read.max(1));
        tree.make_room(usize::try_from(n_expected).unwrap_or_default());
    }

    /// Adds the next line. `false` if the file turns out not to be a session.
    fn add_line(&mut self, line: ReadLine<'_>) -> bool {
        let text = line.text;
        let body = trim(text);
        let start = text.len() - text.trim_ascii_start().len();
        let offset = self.offset + start as u64;
        self.offset += text.len() as u64;
        self.n_lines = self.n_lines.saturating_add(1);
        if body.is_empty() {
            // All that may be left of an entry.
            self.lines.tree.push_gap(Gap::default());
            return true;
        }
        if self.header.is_some() {
            self.lines.add(line, offset, self.n_lines);
            return true;
        }
        self.header = parse_header(body);
        if self.header.is_some() {
            return true;
        }
        if let Some((header, end)) = header_before_more(body) {
            self.header = Some(header);
            self.lines.add_damaged(&body[end..], offset + end as u64, self.n_lines);
            return true;
        }
        if is_entry(body) {
            // The header is damaged, missing, or further down.
            self.lines.add(line, offset, self.n_lines);
        } else if serde_json::from_slice::<IgnoredAny>(body).is_ok()
            && !(self.n_lines == 1 && resembles_header(body))
        {
            return false;
        } else {
            self.lines.damage.push(DamagedLine { line: self.n_lines as usize, what: None });
            self.damaged_header.get_or_insert_with(|| body.to_vec());
            for (range, head) in entries_within(body) {
                let location = Location::new(offset + range.start as u64, range.len());
                self.lines.add_entry(&head, location, self.n_lines);
            }
        }
        true
    }
}

/// Whether an object has the fields of a header, of which one may be damaged.
fn resembles_header(body: &[u8]) -> bool {
    let Ok(fields) = serde_json::from_str::<Extra>(&String::from_utf8_lossy(body)) else { return false };
    let has = |name: &&str| fields.get(*name).is_some_and(Value::is_string);
    ["type", "id", "timestamp", "cwd"].iter().filter(|name| has(name)).count() >= 3
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
pub(super) struct Lines {
    pub(super) tree: Tree,
    pub(super) facts: Facts,
    pub(super) damage: Vec<DamagedLine>,
    /// Lines that repeat an earlier one and were ignored.
    pub(super) repeated: Vec<usize>,
}

impl Lines {
    /// Adds line number `line`, whose body begins at `offset`.
    fn add(&mut self, read: ReadLine<'_>, offset: u64, line: u32) {
        let line_no = line as usize;
        let body = trim(read.text);
        if let Some(head) = read.head {
            if !read.is_utf8 {
                // Read with replacement characters, like the original.
                self.damage.push(DamagedLine { line: line_no, what: head.describe() });
            }
            return self.add_entry(&head, Location::new(offset, body.len()), line);
        }
        // Entries below an entry with invalid content must stay reachable.
        if let Ok(bare) = serde_json::from_slice::<Bare<'_>>(body) {
            self.damage.push(DamagedLine { line: line_no, what: None });
            self.tree.push(bare.node(Location::new(offset, body.len()), line));
            return;
        }
        self.add_damaged(body, offset, line);
    }

    /// Adds the entries of a line that is not one entry, and records what of it is lost.
    fn add_damaged(&mut self, body: &[u8], offset: u64, line: u32) {
        let found = entries_within(body);
        let ids: Vec<EntryId> = found.iter().map(|(_, head)| EntryId::new(&head.id)).collect();
        let mut lost: Option<Option<String>> = None;
        let mut at = 0;
        for (range, head) in &found {
            self.add_lost(&body[at..range.start], &ids, &mut lost);
            self.add_entry(head, Location::new(offset + range.start as u64, range.len()), line);
            at = range.end;
        }
        if found.is_empty() {
            self.note_lost(body, &mut lost);
        } else {
            self.add_lost(&body[at..], &ids, &mut lost);
        }
        if let Some(what) = lost {
            self.damage.push(DamagedLine { line: line as usize, what });
        }
    }

    /// Records a part of a line between entries, unless nothing is lost: it has only zeros, which a crash
    /// leaves, or is the beginning of an entry that was read elsewhere.
    fn add_lost(&mut self, part: &[u8], ids: &[EntryId], lost: &mut Option<Option<String>>) {
        let is_blank = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
        if part.iter().all(is_blank) {
            return;
        }
        let (_, gap) = damage::examine(part);
        let is_there = gap.id.as_ref().is_some_and(|id| ids.contains(id) || self.tree.contains(id));
        if !is_there {
            self.note_lost(part, lost);
        }
    }

    fn note_lost(&mut self, part: &[u8], lost: &mut Option<Option<String>>) {
        let (what, gap) = damage::examine(part);
        // What was torn while it was written has not happened.
        let end = gap.id.clone().filter(|_| damage::is_whole(part));
        self.tree.push_gap(gap);
        if let Some(id) = end {
            self.tree.end_at_gap(&id);
        }
        // One notice names a line; the first kind that is known is the best name.
        let named = lost.get_or_insert(None);
        *named = named.take().or(what);
    }

    fn add_entry(&mut self, head: &EntryHead<'_>, location: Option<Location>, line: u32) {
        let node = head.node(location, line);
        if self.tree.repeats(&node) {
            self.repeated.push(line as usize);
            return;
        }
        if matches!(head.parent_id, ParentField::Absent) && self.tree.len() > 0 {
            self.damage.push(DamagedLine { line: line as usize, what: head.describe() });
        }
        self.facts.note(head);
        self.tree.push(node);
    }
}

/// Where entries are within a damaged line, first to last.
pub(in crate::session) fn ranges_of_entries(body: &[u8]) -> Vec<Range<usize>> {
    entries_within(body).into_iter().map(|(range, _)| range).collect()
}

/// Attempts to read an entry within a damaged line, so that a hostile line does not take long.
const MAX_ATTEMPTS: usize = 64;

/// The entries within a damaged line, and where they are: several on one line, one behind the remains of
/// another, or one with something behind it.
fn entries_within(body: &[u8]) -> Vec<(Range<usize>, EntryHead<'_>)> {
    const START: &[u8] = br#"{"type":""#;
    let (mut found, mut at, mut n_failed) = (Vec::new(), 0, 0);
    while let Some(next) = body[at..].windows(START.len()).position(|window| window == START) {
        let start = at + next;
        let kind = body[start + START.len()..].split(|byte| *byte == b'"').next().unwrap_or_default();
        // A tool call has type and id, too.
        let is_kind = std::str::from_utf8(kind).is_ok_and(|kind| damage::describe(kind, None).is_some());
        let mut values = serde_json::Deserializer::from_slice(&body[start..]).into_iter();
        let head = if is_kind { values.next().and_then(Result::ok) } else { None };
        at = start + 1;
        if let Some(head) = head {
            at = start + values.byte_offset();
            found.push((start..at, head));
        } else if is_kind {
            n_failed += 1;
        }
        if n_failed == MAX_ATTEMPTS {
            break;
        }
    }
    found
}

/// A header that something else follows on its line, and where it ends.
fn header_before_more(body: &[u8]) -> Option<(Header, usize)> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let end = values.byte_offset();
    Some((parse_header(&body[..end])?, end))
}

/// The last entries of a session, read from the last [`TAIL_BYTES`] of the
/// file: for the first frame of a large session, while the scan continues.
pub(super) fn tail(path: &Path) -> Option<Vec<Arc<Entry>>> {
    let mut file = os::open_regular(path).ok()?;
    let len = file.metadata().ok()?.len();
    let start = len.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    // The first line is incomplete, or is the header.
    let first_end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let mut branch: Vec<Arc<Entry>> = Vec::new();
    let mut wanted: Option<EntryId> = None;
    for line in bytes[first_end..].rsplit(|byte| *byte == b'\n') {
        if branch.len() == TAIL_ENTRIES || wanted.is_none() && !branch.is_empty() {
            break;
        }
        let Ok(line) = std::str::from_utf8(line) else { continue };
        // Most of another branch's lines need not be read.
        let is_wanted = |head: &Head<'_>| wanted.as_ref().is_none_or(|wanted| wanted.as_str() == head.id);
        if !Head::read(line).is_ok_and(|head| is_wanted(&head)) {
            continue;
        }
        if let Ok(entry) = Entry::parse(line) {
            wanted = entry.parent_id.clone();
            branch.push(Arc::new(entry));
        }
    }
    branch.reverse();
    Some(branch)
}

/// How much of a file [`tail`] reads.
pub(super) const TAIL_BYTES: u64 = 512 * 1024;
/// How many entries it returns: more than the first frame shows.
const TAIL_ENTRIES: usize = 200;

/// The header of a session file, reading at most the first mebibyte.
pub fn read_header(path: &Path) -> Option<Header> {
    let mut reader = BufReader::with_capacity(4096, os::open_regular(path).ok()?.take(1 << 20));
    let mut line = Vec::new();
    let mut damaged = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let body = trim(&line);
        if serde_json::from_slice::<IgnoredAny>(body).is_ok() {
            return parse_header(body).or_else(|| is_entry(body).then(|| rebuilt_header(path, &damaged)));
        }
        if let Some((header, _)) = header_before_more(body) {
            return Some(header);
        }
        if damaged.is_empty() {
            damaged.extend_from_slice(body);
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
    parent_id: ParentField<'a>,
    /// ISO 8601.
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<MessageFacts<'a>>,
    /// Present on compactions, branch summaries and usage entries.
    #[serde(default)]
    usage: Option<Usage>,
    /// Present on usage entries and changes of the model.
    #[serde(borrow, default)]
    provider: Option<Cow<'a, str>>,
    /// Present on `session_info`.
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

/// The parent of an entry; every entry names one, and be it `null`.
#[derive(Debug, Default)]
enum ParentField<'a> {
    #[default]
    Absent,
    Null,
    Id(Cow<'a, str>),
}

impl<'de: 'a, 'a> Deserialize<'de> for ParentField<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        let text = Option::<Text<'de>>::deserialize(deserializer)?;
        Ok(text.map_or(Self::Null, |Text(text)| Self::Id(text)))
    }
}

impl ParentField<'_> {
    /// An empty id where the line does not tell.
    fn id(&self) -> Option<EntryId> {
        match self {
            Self::Absent => Some(EntryId::new("")),
            Self::Null => None,
            Self::Id(id) => Some(EntryId::new(id)),
        }
    }
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

    fn node(&self, location: Option<Location>, line: u32) -> Node {
        let role = self.message.as_ref().map(|message| message.role.as_ref());
        Node {
            id: EntryId::new(&self.id),
            parent_id: self.parent_id.id(),
            kind: EntryKind::named(&self.kind, role),
            is_silent: self.message.as_ref().is_some_and(MessageFacts::is_silent),
            at_ms: self.timestamp.as_deref().and_then(clock::parse_iso8601).unwrap_or_default(),
            location,
            line,
        }
    }
}

impl Bare<'_> {
    fn node(&self, location: Option<Location>, line: u32) -> Node {
        Node {
            id: EntryId::new(&self.id),
            parent_id: self.parent_id.as_deref().map(EntryId::new),
            kind: EntryKind::Other,
            is_silent: false,
            at_ms: 0,
            location,
            line,
        }
    }
}

impl Facts {
    fn note(&mut self, head: &EntryHead<'_>) {
        if let Some(usage) = &head.usage {
            self.totals.add_usage(head.provider.as_deref().unwrap_or_default(), usage);
        }
        if let Some(message) = &head.message {
            if let Some(usage) = &message.usage {
                self.totals.add_usage(&message.provider, usage);
            }
            match message.role.as_ref() {
                "user" => self.totals.n_user += 1,
                "assistant" => {
                    self.totals.n_assistant += 1;
                    self.totals.n_tool_calls += message.n_calls;
                }
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

    /// Returns at most three bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(3);
            self.0.read(&mut buffer[..n])
        }
    }

    #[test]
    fn room_is_made_once_for_all_entries_of_a_long_file() {
        const N_ENTRIES: usize = 9_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.jsonl");
        let entry = |n: usize| {
            let parent = if n == 0 { "null".to_owned() } else { format!("\"e{}\"", n - 1) };
            let text = "words ".repeat(40);
            format!(
                r#"{{"type":"message","id":"e{n}","parentId":{parent},"timestamp":"2026-11-21T09:23:47.000Z","message":{{"role":"user","content":"{text}","timestamp":1}}}}"#
            ) + "\n"
        };
        let header =
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T09:23:47.000Z","cwd":"/"}"#;
        let entries: String = (0..N_ENTRIES).map(entry).collect();
        std::fs::write(&path, format!("{header}\n{entries}")).unwrap();
        let scan = scan(&path).unwrap().unwrap();
        assert_eq!(scan.tree.len(), N_ENTRIES);
        // Doubled again and again, it would be 16,384.
        assert!((N_ENTRIES..N_ENTRIES * 5 / 4).contains(&scan.tree.room()), "{}", scan.tree.room());
    }

    #[test]
    fn blocks_have_whole_lines_of_any_length() {
        let long = "x".repeat(40);
        for text in ["", "\n", "a", "a\n", "\n\nb\nccccccccccc\n\nd", &format!("{long}\n{long}\n")] {
            let mut lines = FileLines::new(Slow(text.as_bytes()), 4);
            let mut read = Vec::new();
            while let Some(block) = lines.next_block().unwrap() {
                let block = std::str::from_utf8(block).unwrap();
                assert!(block.ends_with('\n') || text.ends_with(block), "{block:?} of {text:?}");
                read.extend(block.split_inclusive('\n').map(str::to_owned));
            }
            assert_eq!(read, text.split_inclusive('\n').collect::<Vec<_>>(), "{text:?}");
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

    #[test]
    fn any_bit_of_the_header_may_be_wrong() {
        let header = r#"{"type":"session","version":3,"id":"i","timestamp":"T","cwd":"/p"}"#;
        let entries = concat!(
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"user","content":"x"}}"#,
            "\n",
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"user","content":"y"}}"#,
            "\n",
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        for bit in 0..header.len() * 8 {
            let mut bytes = header.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes.push(b'\n');
            bytes.extend(entries.as_bytes());
            std::fs::write(&path, &bytes).unwrap();
            let scan = scan(&path).unwrap_or_else(|error| panic!("bit {bit}: {error}")).unwrap();
            assert_eq!(scan.tree.len(), 2, "bit {bit}");
        }
    }
}
