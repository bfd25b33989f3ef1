//! What differs between operating systems: attributes of files, processes, signals, the terminal.
//!
//! Nothing else names `std::os`, system calls or signals, except tests and modules that are there
//! on one side only. Both sides have the same functions; `cargo check --target
//! x86_64-pc-windows-gnu` compares them.

use std::io::{self, Read as _};
use std::path::Path;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// Reads a regular file, through links, of at most `limit_bytes`.
///
/// # Errors
/// As [`open_regular`], and for a longer file.
pub fn read_regular(path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(io::Error::other(format!("the file is larger than {} MiB", limit_bytes >> 20)));
    }
    Ok(bytes)
}

/// A file, whatever its name: two files that exist at the same time have different ones.
pub type FileId = (u64, u64);
