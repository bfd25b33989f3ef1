//! Large files that are part of the program.

/// The text of a file, as `include_str!` gives it. Its bytes are linked beside those of the other
/// such files (`link/order.rs`), because most are not read in most sessions: a page fault in
/// a constant loads 64 kB around it.
macro_rules! embedded_text {
    ($path:expr) => {{
        const BYTES: &[u8] = $crate::util::embedded::embedded_bytes!($path);
        const {
            match ::core::str::from_utf8(BYTES) {
                Ok(text) => text,
                Err(_) => panic!("the file is not UTF-8"),
            }
        }
    }};
}

/// The bytes of a file, as `include_bytes!` gives them; see [`embedded_text`].
macro_rules! embedded_bytes {
    ($path:expr) => {{
        // The linker knows the bytes by this name.
        static EMBEDDED_FILE: [u8; include_bytes!($path).len()] = *include_bytes!($path);
        &EMBEDDED_FILE
    }};
}

pub(crate) use {embedded_bytes, embedded_text};
