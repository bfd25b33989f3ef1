//! Lines about the program and about failed requests, at the end of the list.

use crate::session::NoticeLevel;

use super::cell_list::CellList;
use super::cells::{NoticeCell, Tone};

/// Shows a line about the program. A line of level info replaces the previous
/// one, if nothing else came between; other lines are counted if they are the same.
pub(super) fn show(level: NoticeLevel, text: &str, cells: &mut CellList) {
    let tone = match level {
        NoticeLevel::Warning => Tone::Warning,
        NoticeLevel::Error => Tone::Error,
        NoticeLevel::Info => return show_passing(text, cells),
    };
    push_or_count(NoticeCell::repeatable(tone, text), cells);
}

fn show_passing(text: &str, cells: &mut CellList) {
    if let Some((last, notice)) = cells.last::<NoticeCell>()
        && notice.is_passing()
        && let Some(notice) = cells.get_mut(last)
    {
        *notice = NoticeCell::passing(text);
    } else {
        cells.push(NoticeCell::passing(text));
    }
}

/// Shows why an answer failed. Consecutive repetitions of the same reason are
/// counted.
pub(super) fn show_failure(text: &str, cells: &mut CellList) {
    push_or_count(NoticeCell::repeatable(Tone::Error, text).of_entry(), cells);
}

fn push_or_count(notice: NoticeCell, cells: &mut CellList) {
    if let Some((last, shown)) = cells.last::<NoticeCell>()
        && shown.is_repeated_by(&notice)
    {
        if let Some(shown) = cells.get_mut(last) {
            shown.repeat();
        }
    } else {
        cells.push(notice);
    }
}
