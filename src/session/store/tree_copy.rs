//! Copies of sessions: a branch of one, or all of it, under another header.
//!
//! Entries keep their ids, times and bytes. A copy is written beside its place and
//! appears there as a whole; it never replaces a file.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use crate::ai::Extra;
use crate::util::disk::{Disk, SystemDisk};
use crate::util::{atomic_file, clock, os};

use super::entry::{Entry, EntryBody, EntryId, Header, Label};
use super::scan::{self, OpenError};
use super::session_tree::{SessionTree, TreeEntry};
use super::tree::EntryKind;
use super::{fresh_id, journal, migrate};

/// The entries from a root to one of them, each the parent of the next.
pub(in crate::session) struct BranchCopy<'t> {
    tree: &'t SessionTree,
    path: Vec<usize>,
    /// Whether entries that label stand at the end, once for each label that holds.
    gathers_labels: bool,
    /// Changes a line before it is written; `None` leaves it as it is.
    change: Option<fn(&str) -> Option<String>>,
}

impl<'t> BranchCopy<'t> {
    /// For a session of its own.
    pub(in crate::session) fn new(tree: &'t SessionTree, end: Option<usize>) -> Self {
        Self { tree, path: tree.path(end), gathers_labels: true, change: None }
    }

    /// Of a session as it is, without its other branches.
    pub(in crate::session) fn export(tree: &'t SessionTree) -> Self {
        Self { tree, path: tree.path(tree.leaf()), gathers_labels: false, change: None }
    }

    /// Passes every line through `change`, the header too.
    pub(in crate::session) fn changed_by(self, change: fn(&str) -> Option<String>) -> Self {
        Self { change: Some(change), ..self }
    }

    fn change(&self, line: String) -> String {
        self.change.and_then(|change| change(&line)).unwrap_or(line)
    }

    fn entry(&self, idx: usize) -> TreeEntry<'_> {
        self.tree.entry(idx)
    }

    /// Whether somebody says something in it.
    pub(in crate::session) fn has_conversation(&self) -> bool {
        self.path.iter().any(|idx| self.entry(*idx).kind.is_conversation())
    }

    /// Writes header and entries, and returns how many entries could not be read.
    pub(in crate::session) fn write(&self, header: &Header, mut out: impl Write) -> io::Result<usize> {
        writeln!(out, "{}", self.change(journal::header_line(header)))?;
        let mut n_lost = 0;
        for line in self.lines() {
            match line {
                Some(line) => writeln!(out, "{}", self.change(line))?,
                None => n_lost += 1,
            }
        }
        out.flush()?;
        Ok(n_lost)
    }

    /// The lines below the header; `None` for an entry that cannot be read. Each is read
    /// when its turn comes.
    pub(in crate::session) fn lines(&self) -> impl Iterator<Item = Option<String>> {
        let is_kept = |idx: &usize| !(self.gathers_labels && self.entry(*idx).kind == EntryKind::Label);
        let mut parent: Option<EntryId> = None;
        let kept: Vec<usize> = self.path.iter().copied().filter(is_kept).collect();
        let labels = if self.gathers_labels { self.label_entries(&kept) } else { Vec::new() };
        let copied = kept.into_iter().map(|idx| (Some(idx), None));
        copied.chain(labels.into_iter().map(|entry| (None, Some(entry)))).map(move |(idx, label)| {
            let (id, line) = match (idx, label) {
                (Some(idx), _) => (self.entry(idx).id.clone(), self.linked(idx, parent.as_ref())?),
                (None, Some(label)) => {
                    let entry = Entry { parent_id: parent.clone(), ..label };
                    (entry.id.clone(), entry.to_line())
                }
                (None, None) => return None,
            };
            parent = Some(id);
            Some(line)
        })
    }

    /// The line of an entry that follows `parent`.
    fn linked(&self, idx: usize, parent: Option<&EntryId>) -> Option<String> {
        let entry = self.entry(idx);
        let line = self.tree.line(idx)?;
        let follows = entry.parent.map(|idx| self.entry(idx).id);
        if self.tree.is_linked(idx) && follows == parent && entry.kind != EntryKind::Compaction {
            return Some(line.into_owned());
        }
        let mut read = Entry::parse(&line).ok()?;
        read.parent_id = parent.cloned();
        if let EntryBody::Compaction(compaction) = &mut read.body {
            compaction.first_kept_entry_id = self.kept_from(&compaction.first_kept_entry_id);
        }
        Some(read.to_line())
    }

    /// The entry that stands for `id` in the copy: itself, or the next one behind a label
    /// that is not copied.
    fn kept_from(&self, id: &str) -> String {
        let at = self.path.iter().position(|idx| self.entry(*idx).id.as_str() == id);
        let is_dropped = |idx: &usize| self.gathers_labels && self.entry(*idx).kind == EntryKind::Label;
        let next = at.and_then(|at| self.path[at..].iter().find(|idx| !is_dropped(idx)));
        next.map_or_else(|| id.to_owned(), |idx| self.entry(*idx).id.to_string())
    }

    /// A new entry for the label of each entry that has one.
    fn label_entries(&self, kept: &[usize]) -> Vec<Entry> {
        let labels = self.tree.labels();
        let mut taken: HashSet<EntryId> = kept.iter().map(|idx| self.entry(*idx).id.clone()).collect();
        let mut entries = Vec::new();
        for idx in kept {
            let Some(label) = labels.get(idx) else { continue };
            let id = fresh_id(|id| taken.contains(id));
            taken.insert(id.clone());
            let (target_id, label_text) = (self.entry(*idx).id.clone(), Some(label.text.clone()));
            entries.push(Entry {
                id,
                parent_id: None,
                timestamp: clock::iso8601(label.at_ms),
                body: EntryBody::Label(Label { target_id, label: label_text, extra: Extra::new() }),
            });
        }
        entries
    }

    /// Writes the copy to `path`, which must not exist yet.
    pub(in crate::session) fn create(
        &self,
        disk: &dyn Disk,
        header: &Header,
        path: &Path,
    ) -> io::Result<usize> {
        let created = atomic_file::create_new(disk, [path.to_owned()], |out| self.write(header, out));
        created.map(|(_, n_lost)| n_lost)
    }
}

/// Writes all entries of the session in `source`, of all branches, below `header` to
/// `path`, which must not exist yet. What is no entry is left out.
pub(in crate::session) fn copy_file(
    disk: &dyn Disk,
    source: &Path,
    header: &Header,
    path: &Path,
) -> Result<(), OpenError> {
    let read_error = |error| OpenError::Read { path: source.to_owned(), error };
    let migrated = tempfile::NamedTempFile::new().map_err(read_error)?;
    let mut read_from = source;
    let mut scan = scan::scan(source)?.ok_or_else(|| OpenError::NotASession { path: source.to_owned() })?;
    if scan.header.version < migrate::CURRENT_VERSION {
        migrate::migrate_to(&SystemDisk, source, migrated.path()).map_err(read_error)?;
        read_from = migrated.path();
        scan = scan::scan(read_from)?.ok_or_else(|| OpenError::NotASession { path: source.to_owned() })?;
    }
    let file = os::open_regular(read_from).map_err(read_error)?;
    let tree = SessionTree::new(&scan.header.id, &scan.tree, Some(file));
    let written = atomic_file::create_new(disk, [path.to_owned()], |out| {
        writeln!(out, "{}", journal::header_line(header))?;
        for idx in 0..tree.len() {
            let line = tree.line(idx).ok_or_else(|| io::Error::other("an entry can no longer be read"))?;
            writeln!(out, "{line}")?;
        }
        Ok(())
    });
    written.map(drop).map_err(|error| OpenError::Copy { path: path.to_owned(), error })
}
