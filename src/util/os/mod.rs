//! What differs between operating systems: attributes of files, processes, signals, the terminal.
//!
//! Nothing else names `std::os`, system calls or signals, except tests and modules that are there
//! on one side only. Both sides have the same functions; `cargo check --target
//! x86_64-pc-windows-gnu` compares them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// A file, whatever its name: two files that exist at the same time have different ones.
pub type FileId = (u64, u64);
