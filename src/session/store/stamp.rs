//! Recognises a version of a session file, and the lines that were read before.

use std::fs::{File, Metadata};

use serde::{Deserialize, Serialize};

use crate::util::os;

/// Identifies a version of a file: no other content has all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Stamp {
    pub(in crate::session) size: u64,
    pub(in crate::session) mtime_ns: i64,
    inode: u64,
}

impl Stamp {
    pub(in crate::session) fn of(metadata: &Metadata) -> Self {
        let (seconds, nanoseconds) = os::modified(metadata);
        let mtime_ns = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        Self { size: metadata.len(), mtime_ns, inode: os::file_id(metadata).1 }
    }

    /// Milliseconds since the Unix epoch.
    pub(in crate::session) fn modified_ms(&self) -> u64 {
        u64::try_from(self.mtime_ns / 1_000_000).unwrap_or_default()
    }

    /// Makes it the version of no file.
    pub(in crate::session) fn outdate(&mut self) {
        self.inode = 0;
    }

    /// Whether the file is the one of `earlier`, unchanged or with lines added. A change
    /// of the time alone means that bytes may have been replaced.
    pub(super) fn is_or_extends(&self, earlier: &Self) -> bool {
        self == earlier || self.inode == earlier.inode && self.size > earlier.size
    }

    /// Whether the file can be the one of `earlier` with lines added.
    pub(in crate::session) fn can_extend(&self, earlier: &Self) -> bool {
        self.inode == earlier.inode && self.size >= earlier.size
    }
}

/// The position after the last line that was read, and a checksum of the bytes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct End {
    pub(in crate::session) offset: u64,
    crc: u32,
}

/// How many bytes before the end are compared before reading resumes there.
const CHECKED_BYTES: u64 = 256;

impl End {
    pub(in crate::session) fn new(file: &File, offset: u64) -> Option<Self> {
        Some(Self { offset, crc: checksum_before(file, offset)? })
    }

    pub(in crate::session) fn is_in(&self, file: &File) -> bool {
        checksum_before(file, self.offset) == Some(self.crc)
    }
}

fn checksum_before(file: &File, offset: u64) -> Option<u32> {
    let n_bytes = offset.min(CHECKED_BYTES);
    let mut bytes = vec![0; usize::try_from(n_bytes).ok()?];
    os::read_exact_at(file, &mut bytes, offset - n_bytes).ok()?;
    Some(crc32fast::hash(&bytes))
}
