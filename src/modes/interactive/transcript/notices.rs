//! Lines about the program and about failed requests, at the end of the list.

use std::borrow::Cow;

use crate::session::NoticeLevel;

use super::cell_list::CellList;
use super::cells::{NoticeCell, Tone};

/// Shows a line about the program. A line of level info replaces the previous one, if nothing else came between
/// and that `was_read`, or is about the same; other lines are counted if they are the same.
pub(super) fn show((level, text): (NoticeLevel, &str), was_read: bool, cells: &mut CellList) {
    let text = &*without_codes(text);
    let tone = match level {
        NoticeLevel::Warning => Tone::Warning,
        NoticeLevel::Error => Tone::Error,
        NoticeLevel::Info => return show_passing(text, was_read, cells),
    };
    push_or_count(NoticeCell::repeatable(tone, text), cells);
}

/// The text without the numbers of the system's errors, which stand behind their words.
fn without_codes(text: &str) -> Cow<'_, str> {
    const CODE: &str = " (os error ";
    if !text.contains(CODE) {
        return text.into();
    }
    let mut parts = text.split(CODE);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match end.strip_prefix(')') {
            Some(end) if end.len() + 1 < part.len() => rest.push_str(end),
            _ => rest.extend([CODE, part]),
        }
    }
    rest.into()
}

fn show_passing(text: &str, was_read: bool, cells: &mut CellList) {
    let subject = |text: &str| text.split_whitespace().next().map(str::to_owned);
    if let Some((last, notice)) = cells.last::<NoticeCell>()
        && notice.is_passing()
        && (was_read || subject(&notice.text) == subject(text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out_of_notices() {
        let check = |text: &str, expected: &str| assert_eq!(without_codes(text), expected);
        check("cannot read x: Not found (os error 2); look", "cannot read x: Not found; look");
        check("a (os error 13) b (os error 2)", "a b");
        check(
            "an (os error x) and (os error ) and (os error 5",
            "an (os error x) and (os error ) and (os error 5",
        );
    }
}
