//! The files, processes and network that a tool call accesses.

use std::path::{Path, PathBuf};

use crate::util::spelling::plain_path;

/// What a call accesses, computed from its validated arguments before it runs.
///
/// Paths are absolute and free of `.` and `..`. Links are not resolved: that would need
/// the disk. For the same reason a path counts for every file whose name looks like it.
/// A directory stands for everything in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touches {
    /// Paths that are read.
    pub reads: Vec<PathBuf>,
    /// Paths that are written, created or removed.
    pub writes: Vec<PathBuf>,
    /// A command line. Its process may access anything, whatever else is declared.
    pub runs: Option<String>,
    /// Whether the call sends requests.
    pub network: bool,
    /// The tool declares nothing, so the call may access anything.
    pub undeclared: bool,
}

impl Touches {
    /// A call that may access anything.
    pub fn undeclared() -> Self {
        Self { undeclared: true, ..Self::default() }
    }

    /// A call that reads one path.
    pub fn reads(path: PathBuf) -> Self {
        Self { reads: vec![path], ..Self::default() }
    }

    /// A call that writes one path.
    pub fn writes(path: PathBuf) -> Self {
        Self { writes: vec![path], ..Self::default() }
    }

    /// A call that runs a command line.
    pub fn runs(command: impl Into<String>) -> Self {
        Self { runs: Some(command.into()), ..Self::default() }
    }

    /// Whether the order of two calls matters: one writes a path that the other reads or
    /// writes, or one runs a command and the other accesses files, because a command may
    /// access any file. Accesses that are not declared do not count.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let with_command = self.runs.is_some() || other.runs.is_some();
        (with_command && self.accesses_files() && other.accesses_files())
            || self.writes_what(other)
            || other.writes_what(self)
    }

    fn accesses_files(&self) -> bool {
        self.runs.is_some() || !self.reads.is_empty() || !self.writes.is_empty()
    }

    fn writes_what(&self, other: &Self) -> bool {
        let overlaps = |a: &Path, b: &Path| {
            let a = plain_path(a);
            let b = plain_path(b);
            a.starts_with(&b) || b.starts_with(&a)
        };
        let mut accessed = other.reads.iter().chain(&other.writes);
        accessed.any(|path| self.writes.iter().any(|written| overlaps(written, path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_conflict_when_one_writes_what_the_other_accesses() {
        let (read, write) = (
            |path: &str| Touches::reads(PathBuf::from(path)),
            |path: &str| Touches::writes(PathBuf::from(path)),
        );
        let check = |a: &Touches, b: &Touches, expected: bool| {
            assert_eq!(a.conflicts_with(b), expected, "{a:?} {b:?}");
            assert_eq!(b.conflicts_with(a), expected, "{b:?} {a:?}");
        };
        check(&write("/p/a"), &write("/p/a"), true);
        check(&write("/p/a"), &read("/p/a"), true);
        check(&write("/p/a"), &read("/p"), true);
        check(&write("/p"), &read("/p/a"), true);
        check(&write("/p/a"), &read("/p/ab"), false);
        // The tools may find one file by both names.
        check(&write("/p/a\u{a0}b"), &read("/p/a b"), true);
        check(&write("/p/cafe\u{301}"), &write("/p/café"), true);
        check(&write("/p/a"), &write("/p/b"), false);
        check(&read("/p/a"), &read("/p/a"), false);
        check(&write("/p/a"), &Touches::runs("cat a"), true);
        check(&read("/p/a"), &Touches::runs("rm a"), true);
        check(&Touches::runs("touch a"), &Touches::runs("cat a"), true);
        check(&Touches::runs("touch a"), &Touches { network: true, ..Touches::default() }, false);
        check(&Touches::runs("touch a"), &Touches::undeclared(), false);
        check(&write("/p/a"), &Touches::undeclared(), false);
    }
}
