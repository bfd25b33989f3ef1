//! Reads bodies of entries whose places are known: one, or many at once.

use std::fs::File;
use std::sync::Arc;

use crate::util::os;
use crate::util::parts;

use super::entry::Entry;
use super::tree::Location;

/// Bytes of entries that are worth a thread of their own.
const BYTES_PER_THREAD: usize = 512 << 10;

/// The entries at `locations`; `None` for those that cannot be read. Most of a resumed
/// session's time goes into parsing, so long lists are divided among threads.
pub(super) fn read_entries(file: &File, locations: &[Location]) -> Vec<Option<Arc<Entry>>> {
    let n_bytes = locations.iter().map(|location| location.len as usize).sum();
    let n_threads = parts::threads_for(n_bytes, BYTES_PER_THREAD);
    parts::in_parts(locations, n_threads, &|location| location.len as usize, &|locations| {
        let mut lines = LineReader::default();
        locations.iter().map(|location| lines.read_entry(file, *location).map(Arc::new)).collect()
    })
}

/// The entry at `location`; `None` if it cannot be read.
pub(super) fn read_entry(file: &File, location: Location) -> Option<Entry> {
    parse_entry(&read_line(file, location)?)
}

fn parse_entry(line: &[u8]) -> Option<Entry> {
    match std::str::from_utf8(line) {
        Ok(line) => Entry::parse(line).ok(),
        Err(_) => Entry::parse(&String::from_utf8_lossy(line)).ok(),
    }
}

/// Reads lines that follow each other, many with each access to the file.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    bytes: Vec<u8>,
    /// Where `bytes` begins in the file.
    start: u64,
    /// The end of the line that was read last.
    end: u64,
    /// A line that is long, or far from the others.
    single: Vec<u8>,
}

/// How much [`LineReader`] reads at once, if lines are close to each other.
const WINDOW_BYTES: u64 = 256 << 10;

impl LineReader {
    /// The entry at `location`; `None` if it cannot be read.
    fn read_entry(&mut self, file: &File, location: Location) -> Option<Entry> {
        parse_entry(self.line(file, location)?)
    }

    /// The bytes at `location`; `None` if they cannot be read.
    pub(super) fn line(&mut self, file: &File, location: Location) -> Option<&[u8]> {
        let (offset, len) = (location.offset(), u64::from(location.len));
        let is_near = self.end > 0 && offset >= self.end && offset - self.end < WINDOW_BYTES / 4;
        self.end = offset + len;
        if is_near && len <= WINDOW_BYTES && !self.has(offset, len) {
            self.fill(file, offset);
        }
        if self.has(offset, len) {
            let at = usize::try_from(offset - self.start).ok()?;
            return Some(&self.bytes[at..at + location.len as usize]);
        }
        self.single = read_line(file, location)?;
        Some(&self.single)
    }

    fn has(&self, offset: u64, len: u64) -> bool {
        offset >= self.start && offset + len <= self.start + self.bytes.len() as u64
    }

    /// Reads from `offset` on as much as there is.
    fn fill(&mut self, file: &File, offset: u64) {
        self.start = offset;
        self.bytes.resize(WINDOW_BYTES as usize, 0);
        let mut n_read = 0;
        while n_read < self.bytes.len() {
            match os::read_at(file, &mut self.bytes[n_read..], offset + n_read as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => n_read += n,
            }
        }
        self.bytes.truncate(n_read);
    }
}

/// The bytes at `location`; `None` if they cannot be read.
pub(super) fn read_line(file: &File, location: Location) -> Option<Vec<u8>> {
    let mut line = vec![0; location.len as usize];
    os::read_exact_at(file, &mut line, location.offset()).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn entries_are_those_of_their_places() {
        let mut file = tempfile::tempfile().unwrap();
        let mut locations = Vec::new();
        let mut offset = 0;
        // More than one thread reads.
        let n = BYTES_PER_THREAD / 200;
        for at in 0..n {
            let text = "x".repeat(at * at % 700);
            let line = match at {
                7 => "damaged".to_owned(),
                _ => format!(
                    r#"{{"type":"label","id":"{at}","parentId":null,"timestamp":"","label":"{text}"}}"#
                ),
            };
            writeln!(file, "{line}").unwrap();
            locations.push(Location::new(offset, line.len()).unwrap());
            offset += line.len() as u64 + 1;
        }
        locations.reverse();
        let read = read_entries(&file, &locations);
        let ids = read.iter().map(|entry| entry.as_ref().map(|entry| entry.id.as_str().to_owned()));
        let expected = (0..n).rev().map(|at| (at != 7).then(|| at.to_string()));
        assert!(ids.eq(expected));
    }
}
