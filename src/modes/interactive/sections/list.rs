//! Sections near the screen are in memory, all others are not.

use std::ops::Range;
use std::sync::Arc;

use crate::session::SessionTree;

use super::{ReadEffect, Section};

/// Sections that are read before they are visible.
pub(in super::super) const NEAR: usize = 6;
/// Sections farther away than this are released.
pub(in super::super) const FAR: usize = 24;

/// The sections of a path through a session.
#[derive(Default)]
pub(in super::super) struct SectionList {
    /// `None` while it is not known, and for text that belongs to no session.
    pub(in super::super) tree: Option<SessionTree>,
    /// Indices of entries in the tree.
    pub(in super::super) path: Arc<[usize]>,
    pub(in super::super) sections: Vec<Section>,
    /// Sections that were read and not released since.
    loaded: Vec<usize>,
    /// Sections to be read, and those that are being read.
    wanted: Vec<usize>,
    reading: Vec<usize>,
}

impl SectionList {
    /// The sections of `path`, none of them read.
    pub(in super::super) fn of_path(tree: SessionTree, path: Vec<usize>) -> Self {
        let mut list = Self::default();
        list.continue_to(tree, path);
        list
    }

    /// Adds what `path`, of a later tree of the session, has in addition. Sections that were read
    /// stay.
    pub(in super::super) fn continue_to(&mut self, tree: SessionTree, path: Vec<usize>) {
        if !path.starts_with(&self.path) {
            *self = Self::default();
        }
        self.sections.extend(Section::of_path(&tree, &path, self.path.len()));
        (self.tree, self.path) = (Some(tree), path.into());
        // Answers to what was asked of the old tree are not accepted.
        self.wanted.append(&mut self.reading);
    }

    pub(in super::super) fn is_of(&self, tree: &SessionTree) -> bool {
        self.tree.as_ref() == Some(tree)
    }

    /// The sections of these positions on the path, which are in order.
    pub(in super::super) fn sections_of(&self, positions: &[usize]) -> Vec<usize> {
        let section_of =
            |position: &usize| self.sections.partition_point(|section| section.entries.end <= *position);
        let mut found: Vec<usize> = positions.iter().map(section_of).collect();
        found.dedup();
        found
    }

    /// A section that was read; the caller shows its entries.
    pub(in super::super) fn on_read(&mut self, index: usize) -> Option<&mut Section> {
        self.reading.retain(|reading| *reading != index);
        let section = self.sections.get_mut(index)?;
        if !self.loaded.contains(&index) {
            self.loaded.push(index);
        }
        Some(section)
    }

    /// Asks for the sections around those that are visible, and releases sections far from the
    /// first of them, unless they follow the session or `is_kept`.
    pub(in super::super) fn follow(&mut self, visible: Range<usize>, is_kept: impl Fn(usize) -> bool) {
        let at = visible.start.min(self.sections.len());
        let sections = &mut self.sections;
        self.loaded.retain(|index| {
            let Some(section) = sections.get_mut(*index) else { return false };
            let stays = index.abs_diff(at) <= FAR || section.is_live || is_kept(*index);
            if !stays {
                section.forget();
            }
            stays
        });
        let end = visible.end.saturating_add(NEAR).min(self.sections.len());
        for index in at.saturating_sub(NEAR)..end {
            self.want(index);
        }
    }

    /// Asks for a section, unless it is in memory or on its way.
    pub(in super::super) fn want(&mut self, index: usize) {
        let is_missing = self.sections.get(index).is_some_and(|section| !section.is_read());
        if is_missing && !self.wanted.contains(&index) && !self.reading.contains(&index) {
            self.wanted.push(index);
        }
    }

    /// Reads what was asked for since the last call.
    pub(in super::super) fn take_wanted(&mut self) -> Option<ReadEffect> {
        let tree = self.tree.clone()?;
        let wanted = std::mem::take(&mut self.wanted);
        self.reading.extend(&wanted);
        let entries = |index: usize| {
            let range = self.sections.get(index).map_or(0..0, |section| section.entries.clone());
            (index, self.path.get(range).unwrap_or_default().to_vec())
        };
        let sections: Vec<_> = wanted.into_iter().map(entries).collect();
        (!sections.is_empty()).then_some(ReadEffect::Sections { tree, sections })
    }
}
