//! The index of the grammars, which the build script writes (`grammars.idx`) and the program reads.

use serde::{Deserialize, Serialize};

/// What finds one language and its grammar.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Language<'a> {
    pub(super) name: &'a str,
    /// Extensions and names of files, one a line.
    pub(super) extensions: &'a str,
    /// The places in the index of all languages whose grammars its own one needs, itself included,
    /// ascending.
    pub(super) needs: &'a [u8],
    /// Where its grammar is in `grammars.bin`.
    pub(super) start: u32,
    pub(super) end: u32,
}
