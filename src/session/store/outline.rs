//! The positions of all entries of a long session, cached in a file beside it.
//!
//! With it, opening a session reads only the lines that were added since. It is a cache
//! and may be deleted at any time: one that is missing, damaged, of another version or of
//! another file counts as absent, and the session is read instead. It is never trusted with
//! content: whoever reads a body compares its id.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::util::os;

use super::super::sidecar;
use super::super::state::Totals;
use super::damage::DamagedLine;
use super::entry::{EntryId, Header};
use super::scan::{Facts, Lines, Progress};
use super::stamp::{End, Stamp};
use super::tree::{EntryKind, Gap, Location, Node, Tree};

/// The end of the name of an outline, which otherwise is that of the session.
pub(in crate::session) const SUFFIX: &str = ".outline";

/// Begins every outline; the number changes with the meaning of the rest.
const MAGIC: &str = "pi-session-outline 2 ";
/// Larger files are not pi's.
const MAX_BYTES: u64 = 1 << 30;

/// Everything but the entries.
#[derive(Serialize, Deserialize)]
struct Head {
    stamp: Stamp,
    end: End,
    n_lines: u32,
    n_entries: usize,
    header: Header,
    name: Option<String>,
    totals: StoredTotals,
    damage: Vec<(usize, Option<String>)>,
    gaps: Vec<(usize, Gap)>,
}

/// Totals, with the exact cost.
#[derive(Serialize, Deserialize)]
struct StoredTotals {
    tokens: [u64; 4],
    cost_usd_bits: u64,
    messages: [usize; 4],
    on_plan: bool,
}

impl From<&Totals> for StoredTotals {
    fn from(totals: &Totals) -> Self {
        let Totals { input, output, cache_read, cache_write, cost_usd, on_plan, .. } = *totals;
        Self {
            tokens: [input, output, cache_read, cache_write],
            cost_usd_bits: cost_usd.to_bits(),
            messages: [totals.n_user, totals.n_assistant, totals.n_tool_calls, totals.n_tool_results],
            on_plan,
        }
    }
}

impl From<StoredTotals> for Totals {
    fn from(stored: StoredTotals) -> Self {
        let [input, output, cache_read, cache_write] = stored.tokens;
        let [n_user, n_assistant, n_tool_calls, n_tool_results] = stored.messages;
        let cost_usd = f64::from_bits(stored.cost_usd_bits);
        let on_plan = stored.on_plan;
        Self {
            input,
            output,
            cache_read,
            cache_write,
            cost_usd,
            n_user,
            n_assistant,
            n_tool_calls,
            n_tool_results,
            on_plan,
        }
    }
}

/// An outline that is not written yet.
#[derive(Debug)]
pub(in crate::session) struct PendingOutline {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl PendingOutline {
    /// The outline of the first lines of the session at `session`, up to `end`. `None` if it
    /// has no place.
    pub(super) fn new(
        session: &Path,
        stamp: Stamp,
        end: End,
        header: &Header,
        read: &Progress,
    ) -> Option<Self> {
        let path = sidecar::path(Some(session), SUFFIX)?;
        Some(Self { path, bytes: encode(stamp, end, header, read).ok()? })
    }

    /// Replaces the outline. Blocks. A failure may be ignored: the session is then read again.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(in crate::session) fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // Only its owner can read it, and a link in its place is replaced, not followed.
        let mut file = tempfile::Builder::new().prefix(".pi-outline-").tempfile_in(folder)?;
        file.write_all(&self.bytes)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// What the outline beside `session` knows of the lines of `file`, whose version is `stamp`.
pub(super) fn load(session: &Path, file: &File, stamp: &Stamp) -> Option<Progress> {
    let path = sidecar::path(Some(session), SUFFIX)?;
    let mut options = fs::OpenOptions::new();
    os::refuse_links_and_waiting(options.read(true));
    let outline = options.open(path).ok()?;
    let metadata = outline.metadata().ok().filter(fs::Metadata::is_file)?;
    let len = Some(metadata.len()).filter(|len| *len <= MAX_BYTES)?;
    let mut bytes = Vec::with_capacity(usize::try_from(len).ok()?);
    outline.take(len).read_to_end(&mut bytes).ok()?;
    decode(&bytes, |head| stamp.is_or_extends(&head.stamp) && head.end.is_in(file))
}

fn encode(stamp: Stamp, end: End, header: &Header, read: &Progress) -> serde_json::Result<Vec<u8>> {
    let Lines { tree, facts, damage, .. } = &read.lines;
    let head = Head {
        stamp,
        end,
        n_lines: read.n_lines,
        n_entries: tree.len(),
        header: header.clone(),
        name: facts.name.clone(),
        totals: (&facts.totals).into(),
        damage: damage.iter().map(|damaged| (damaged.line, damaged.what.clone())).collect(),
        gaps: tree.gaps().collect(),
    };
    let mut content = serde_json::to_vec(&head)?;
    content.push(b'\n');
    content.reserve(tree.len() * 24);
    let mut rows = RowWriter { bytes: content, before: Before::default() };
    for node in tree.nodes().iter() {
        rows.push(node);
    }
    let content = rows.bytes;
    let mut bytes = format!("{MAGIC}{:08x}\n", crc32fast::hash(&content)).into_bytes();
    bytes.extend_from_slice(&content);
    Ok(bytes)
}

/// `None` if this is no outline of this version, or `is_wanted` rejects it.
fn decode(bytes: &[u8], is_wanted: impl FnOnce(&Head) -> bool) -> Option<Progress> {
    let (crc, content) = bytes.strip_prefix(MAGIC.as_bytes())?.split_first_chunk::<8>()?;
    let content = content.strip_prefix(b"\n")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    if crc32fast::hash(content) != crc {
        return None;
    }
    let (head, rows) = content.split_at_checked(content.iter().position(|byte| *byte == b'\n')?)?;
    let head: Head = serde_json::from_slice(head).ok().filter(is_wanted)?;
    // Every entry takes more than one byte.
    let mut tree = Tree::with_capacity(head.n_entries.min(rows.len()));
    let mut rows = RowReader { bytes: &rows[1..], before: Before::default() };
    for _ in 0..head.n_entries {
        tree.push(rows.next()?);
    }
    for (n_before, gap) in head.gaps {
        tree.push_gap_at(n_before, gap);
    }
    let facts = Facts { totals: head.totals.into(), name: head.name };
    let damage = head.damage.into_iter().map(|(line, what)| DamagedLine { line, what }).collect();
    Some(Progress {
        header: Some(head.header),
        lines: Lines { tree, facts, damage, repeated: Vec::new() },
        damaged_header: None,
        n_lines: head.n_lines,
        offset: head.end.offset,
    })
}

/// What a row leaves out because the row before it has it.
#[derive(Default)]
struct Before {
    id: Option<EntryId>,
    /// The end of the line, in bytes from the start of the file.
    end: u64,
    line: u32,
}

impl Before {
    fn advance(&mut self, node: &Node) {
        self.id = Some(node.id.clone());
        self.line = node.line;
        if let Some(location) = node.location {
            self.end = location.offset() + u64::from(location.len);
        }
    }
}

/// The bits of a row's first byte above its kind.
const IS_SILENT: u8 = 1 << 5;
const HAS_PARENT: u8 = 1 << 6;
/// Its parent is the entry before it.
const FOLLOWS: u8 = 1 << 7;

struct RowWriter {
    bytes: Vec<u8>,
    before: Before,
}

impl RowWriter {
    fn push(&mut self, node: &Node) {
        let follows = node.parent_id.is_some() && node.parent_id == self.before.id;
        let parent = node.parent_id.as_ref().filter(|_| !follows);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(node.is_silent, IS_SILENT) | flag(follows, FOLLOWS);
        self.bytes.push(node.kind.code() | flags | flag(parent.is_some(), HAS_PARENT));
        self.text(node.id.as_str());
        if let Some(parent) = parent {
            self.text(parent.as_str());
        }
        self.number(node.at_ms);
        self.number(u64::from(node.line.saturating_sub(self.before.line)));
        // A length of 0 is no location.
        self.number(node.location.map_or(0, |location| u64::from(location.len)));
        if let Some(location) = node.location {
            self.number(location.offset().saturating_sub(self.before.end));
        }
        self.before.advance(node);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Seven bits in each byte, the lowest first; all bytes but the last have the highest bit.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }
}

struct RowReader<'b> {
    bytes: &'b [u8],
    before: Before,
}

impl RowReader<'_> {
    fn next(&mut self) -> Option<Node> {
        let first = self.byte()?;
        let kind = EntryKind::from_code(first & (IS_SILENT - 1))?;
        let id = self.id()?;
        let parent_id = match first & (HAS_PARENT | FOLLOWS) {
            0 => None,
            HAS_PARENT => Some(self.id()?),
            FOLLOWS => Some(self.before.id.clone()?),
            _ => return None,
        };
        let at_ms = self.number()?;
        let line = self.before.line.checked_add(u32::try_from(self.number()?).ok()?)?;
        let len = usize::try_from(self.number()?).ok()?;
        let location = match len {
            0 => None,
            len => Some(Location::new(self.before.end.checked_add(self.number()?)?, len)?),
        };
        let node = Node { id, parent_id, kind, is_silent: first & IS_SILENT != 0, at_ms, location, line };
        self.before.advance(&node);
        Some(node)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn id(&mut self) -> Option<EntryId> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        std::str::from_utf8(text).ok().map(EntryId::new)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tree::GapParent;
    use super::*;

    fn any_id() -> impl Strategy<Value = EntryId> {
        // Few, so that entries follow each other, and of all lengths.
        prop_oneof![4 => "[a-e]", 1 => "[0-9a-f]{8}", 1 => ".{0,40}"].prop_map(|id| EntryId::new(&id))
    }

    fn any_node() -> impl Strategy<Value = Node> {
        let kind = (0..17_u8).prop_map(|code| EntryKind::from_code(code).unwrap());
        let place = prop::option::of((0..1_u64 << 40, 1..u32::MAX));
        (any_id(), prop::option::of(any_id()), kind, any::<bool>(), any::<u64>(), place, 0..9_u32).prop_map(
            |(id, parent_id, kind, is_silent, at_ms, place, line)| {
                let location = place.and_then(|(offset, len)| Location::new(offset, len as usize));
                Node { id, parent_id, kind, is_silent, at_ms, location, line }
            },
        )
    }

    fn any_gap() -> impl Strategy<Value = Gap> {
        let parent =
            prop_oneof![Just(GapParent::Unknown), Just(GapParent::None), any_id().prop_map(GapParent::Id)];
        (prop::option::of(any_id()), parent).prop_map(|(id, parent)| match id {
            Some(id) => Gap { id: Some(id), parent },
            None => Gap::default(),
        })
    }

    /// A file with `lines`, whose locations and line numbers ascend as they do in files.
    fn read(lines: Vec<Result<Node, Gap>>) -> Progress {
        let header = serde_json::from_str(r#"{"id":"s","version":3,"novel":[1]}"#).ok();
        let mut read = Progress { header, ..Progress::default() };
        for line in lines {
            match line {
                Ok(mut node) => {
                    read.n_lines += node.line;
                    node.line = read.n_lines;
                    if let Some(location) = &mut node.location {
                        let offset = read.offset + location.offset() % 1_000 + 1;
                        *location = Location::new(offset, location.len as usize).unwrap();
                        read.offset = offset + u64::from(location.len);
                    }
                    read.lines.tree.push(node);
                }
                Err(gap) => {
                    read.lines.damage.push(DamagedLine { line: read.n_lines as usize, what: None });
                    read.lines.tree.push_gap(gap);
                }
            }
        }
        read.lines.facts.totals.cost_usd = 0.1 + 0.2;
        read.lines.facts.totals.n_user = 3;
        read.lines.facts.name = Some("n".to_owned());
        read
    }

    fn stamps() -> (tempfile::NamedTempFile, Stamp) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = Stamp::of(&file.as_file().metadata().unwrap());
        (file, stamp)
    }

    fn encoded(read: &Progress) -> Vec<u8> {
        let (file, stamp) = stamps();
        let mut end = End::new(file.as_file(), 0).unwrap();
        end.offset = read.offset;
        encode(stamp, end, read.header.as_ref().unwrap(), read).unwrap()
    }

    fn shown(read: &Progress) -> String {
        let Lines { tree, facts, damage, .. } = &read.lines;
        let mut gaps: Vec<(usize, Gap)> = tree.gaps().collect();
        gaps.sort_by_key(|gap| format!("{gap:?}"));
        let rest = (&read.header, facts, damage, read.n_lines, read.offset);
        format!("{:?} {:?} {gaps:?} {rest:?}", tree.nodes(), tree.branch())
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(lines in prop::collection::vec(
            prop_oneof![5 => any_node().prop_map(Ok), 1 => any_gap().prop_map(Err)], 0..20,
        )) {
            let read = read(lines);
            let decoded = decode(&encoded(&read), |_| true).unwrap();
            prop_assert_eq!(shown(&decoded), shown(&read));
        }

        #[test]
        fn rows_of_any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut rows = RowReader { bytes: &bytes, before: Before::default() };
            while rows.next().is_some() {}
        }
    }

    #[test]
    fn one_wrong_byte_makes_an_outline_useless() {
        let node = |id: &str, parent: Option<&str>| Node {
            id: EntryId::new(id),
            parent_id: parent.map(EntryId::new),
            kind: EntryKind::User,
            is_silent: false,
            at_ms: 1_795_253_027_489,
            location: Location::new(7, 300),
            line: 1,
        };
        let bytes =
            encoded(&read(vec![Ok(node("a", None)), Ok(node("b", Some("a"))), Ok(node("c", Some("a")))]));
        assert!(decode(&bytes, |_| true).is_some());
        assert!(decode(&bytes, |_| false).is_none());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            assert!(decode(&flipped, |_| true).is_none(), "byte {at}");
            assert!(decode(&bytes[..at], |_| true).is_none(), "first {at} bytes");
        }
    }
}
