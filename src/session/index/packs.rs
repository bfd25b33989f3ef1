//! The searchable texts of sessions, in files that are written once.
//!
//! A pack is a sequence of segments, a segment a sequence of records: one text of one
//! session. Rows of the index refer to segments by pack, offset, length and checksum, so
//! a pack needs no header: bytes that no row refers to do not matter, and a segment that
//! does not match its checksum is not read.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::util::atomic_file;
use crate::util::composed::composed;
use crate::util::os;

use super::contents::Author;

/// Texts of one session in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) pack: u64,
    at: u64,
    pub(super) len: u32,
    crc: u32,
}

/// Segments are closed once they are longer; they bound the memory of a search.
const SEGMENT_BYTES: usize = 512 << 10;
/// Longer texts are split into records that overlap.
const RECORD_BYTES: usize = 256 << 10;
/// Longer than a word, so that splitting a text hides none.
const OVERLAP_BYTES: usize = 256;

/// One text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) id: &'a str,
    pub(super) author: Author,
    pub(super) text: &'a str,
}

/// Appends a record: the length of the text (four bytes, little endian), the kind, the
/// length of the id (two bytes), the id, the text.
fn push_record(bytes: &mut Vec<u8>, record: Record<'_>) {
    let id_len = u16::try_from(record.id.len()).unwrap_or_default();
    let id = if id_len == 0 { "" } else { record.id };
    bytes.extend_from_slice(&u32::try_from(record.text.len()).expect("pieces are short").to_le_bytes());
    bytes.push(record.author.code());
    bytes.extend_from_slice(&id_len.to_le_bytes());
    bytes.extend_from_slice(id.as_bytes());
    bytes.extend_from_slice(record.text.as_bytes());
}

/// `text` in pieces that overlap.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut start = Some(0).filter(|_| !text.is_empty());
    std::iter::from_fn(move || {
        let from = start?;
        let end = text.floor_char_boundary(from + RECORD_BYTES);
        start = (end < text.len()).then(|| text.floor_char_boundary(end - OVERLAP_BYTES));
        Some(&text[from..end])
    })
}

/// The records of a segment.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (author, after) = after.split_first()?;
        let (id_len, after) = after.split_first_chunk::<2>()?;
        let (id, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*id_len)))?;
        let (text, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = after;
        let author = Author::from_code(*author)?;
        Some(Record { id: std::str::from_utf8(id).ok()?, author, text: std::str::from_utf8(text).ok()? })
    })
}

/// The packs in a folder. Writing may fail: the texts are then read from the sessions.
#[derive(Debug)]
pub(super) struct Packs {
    folder: PathBuf,
    writer: Option<Writer>,
    is_unwritable: bool,
    open: HashMap<u64, File>,
}

#[derive(Debug)]
struct Writer {
    pack: u64,
    file: BufWriter<File>,
    at: u64,
}

/// The texts of a session that is being read.
#[derive(Debug)]
pub(super) struct TextWriter<'p> {
    packs: &'p mut Packs,
    bytes: Vec<u8>,
    /// `None` once writing has failed.
    segments: Option<Vec<Segment>>,
}

impl TextWriter<'_> {
    pub(super) fn push(&mut self, id: &str, author: Author, text: &str) {
        if self.segments.is_none() {
            return;
        }
        let composed = composed(text);
        for text in pieces(composed.trim()) {
            push_record(&mut self.bytes, Record { id, author, text });
            if self.bytes.len() >= SEGMENT_BYTES {
                self.flush();
            }
        }
    }

    /// The segments of all texts, `earlier` first; `None` if they could not be written.
    pub(super) fn finish(mut self, earlier: Option<Vec<Segment>>) -> Option<Vec<Segment>> {
        self.flush();
        let mut segments = earlier?;
        segments.extend(self.segments?);
        Some(segments)
    }

    fn flush(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let written = self.packs.append(&self.bytes);
        self.segments = self.segments.take().and_then(|mut segments| {
            segments.push(written?);
            Some(segments)
        });
        self.bytes.clear();
    }
}

impl Packs {
    pub(super) fn new(folder: PathBuf) -> Self {
        // A link may lead to a folder of somebody else.
        let is_unwritable = fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_symlink());
        Self { folder, writer: None, is_unwritable, open: HashMap::new() }
    }

    /// Stores nothing.
    pub(super) fn unwritable() -> Self {
        Self { is_unwritable: true, ..Self::new(PathBuf::new()) }
    }

    pub(super) fn is_unwritable(&self) -> bool {
        self.is_unwritable
    }

    /// Starts to write the texts of a session.
    pub(super) fn texts(&mut self) -> TextWriter<'_> {
        let segments = (!self.is_unwritable).then(Vec::new);
        TextWriter { packs: self, bytes: Vec::new(), segments }
    }

    /// The ids of the packs in the folder.
    pub(super) fn ids(&self) -> HashSet<u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| pack_id(&entry.path())).collect()
    }

    fn path(&self, pack: u64) -> PathBuf {
        self.folder.join(format!("{PACK_PREFIX}{pack:016x}"))
    }

    /// `None` if the folder cannot be written to.
    fn append(&mut self, bytes: &[u8]) -> Option<Segment> {
        if self.is_unwritable {
            return None;
        }
        let written = self.try_append(bytes);
        self.is_unwritable = written.is_err();
        written.ok()
    }

    fn try_append(&mut self, bytes: &[u8]) -> io::Result<Segment> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                atomic_file::create_private_folder(&self.folder)?;
                let (pack, _) = uuid::Uuid::new_v4().as_u64_pair();
                let file =
                    atomic_file::private_options().write(true).create_new(true).open(self.path(pack))?;
                self.writer.insert(Writer { pack, file: BufWriter::with_capacity(64 << 10, file), at: 0 })
            }
        };
        writer.file.write_all(bytes)?;
        let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let segment = Segment { pack: writer.pack, at: writer.at, len, crc: crc32fast::hash(bytes) };
        writer.at += u64::from(len);
        Ok(segment)
    }

    /// Makes written texts readable.
    pub(super) fn flush(&mut self) {
        let flushed = self.writer.as_mut().map_or(Ok(()), |writer| writer.file.flush());
        self.is_unwritable |= flushed.is_err();
    }

    /// Ends the pack that is being written.
    pub(super) fn close(&mut self) {
        self.flush();
        self.writer = None;
    }

    /// Reads a segment into `bytes`. `None` if it is not what was written.
    pub(super) fn read(&mut self, segment: &Segment, bytes: &mut Vec<u8>) -> Option<()> {
        if !self.open.contains_key(&segment.pack) {
            self.open.insert(segment.pack, File::open(self.path(segment.pack)).ok()?);
        }
        let file = self.open.get(&segment.pack)?;
        if segment.len as usize > MAX_SEGMENT_BYTES {
            return None;
        }
        bytes.resize(segment.len as usize, 0);
        os::read_exact_at(file, bytes, segment.at).ok()?;
        (crc32fast::hash(bytes) == segment.crc).then_some(())
    }

    /// Which of the packs with these sizes of used bytes are worth merging.
    pub(super) fn to_merge(&self, used_bytes: &HashMap<u64, u64>) -> HashSet<u64> {
        let size = |pack: u64| fs::metadata(self.path(pack)).map_or(0, |metadata| metadata.len());
        let wasted =
            used_bytes.iter().filter(|(pack, used)| **used < size(**pack) / 2).map(|(pack, _)| *pack);
        let mut chosen: HashSet<u64> = wasted.collect();
        if used_bytes.len() > MAX_PACKS {
            let small = used_bytes.iter().filter(|(_, used)| **used < SMALL_PACK_BYTES);
            chosen.extend(small.map(|(pack, _)| *pack));
        }
        chosen
    }

    /// Copies the segments of one session that are in the packs `merged` to the current
    /// pack, as few as possible. `None` if one is damaged or nothing can be written.
    pub(super) fn copy(&mut self, segments: &[Segment], merged: &HashSet<u64>) -> Option<Vec<Segment>> {
        let mut copied = Vec::new();
        let (mut pending, mut bytes) = (Vec::new(), Vec::new());
        for segment in segments {
            let is_merged = merged.contains(&segment.pack);
            if !is_merged || pending.len() + segment.len as usize > SEGMENT_BYTES {
                copied.extend(self.append_pending(&mut pending)?);
            }
            if is_merged {
                self.read(segment, &mut bytes)?;
                pending.extend_from_slice(&bytes);
            } else {
                copied.push(*segment);
            }
        }
        copied.extend(self.append_pending(&mut pending)?);
        Some(copied)
    }

    /// `Some(None)` if there is nothing to append.
    fn append_pending(&mut self, pending: &mut Vec<u8>) -> Option<Option<Segment>> {
        if pending.is_empty() {
            return Some(None);
        }
        let segment = self.append(pending)?;
        pending.clear();
        Some(Some(segment))
    }

    /// Removes packs that are not in `used` and an hour older than `newest`, the file of
    /// rows: another process may be about to refer to younger ones.
    pub(super) fn remove_unused(&mut self, used: &HashSet<u64>, newest: &Path) {
        let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let Some(now) = modified(newest) else { return };
        for pack in self.ids().difference(used) {
            let path = self.path(*pack);
            let age = modified(&path).and_then(|then| now.duration_since(then).ok());
            if age.is_some_and(|age| age > UNUSED_AGE) {
                self.open.remove(pack);
                drop(fs::remove_file(path));
            }
        }
    }
}

const PACK_PREFIX: &str = "text-";
/// The longest segment: a full one, and a record that was added to it.
const MAX_SEGMENT_BYTES: usize = SEGMENT_BYTES + RECORD_BYTES + (128 << 10);
/// With more packs, small ones are merged.
const MAX_PACKS: usize = 12;
const SMALL_PACK_BYTES: u64 = 16 << 20;
const UNUSED_AGE: Duration = Duration::from_secs(60 * 60);

fn pack_id(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    u64::from_str_radix(name.strip_prefix(PACK_PREFIX)?, 16).ok()
}
