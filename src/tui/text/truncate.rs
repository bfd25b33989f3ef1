//! Truncates text to a width, always between grapheme clusters.

use std::borrow::Cow;

use super::row::Row;
use super::width::{graphemes, width};

/// The mark of truncated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ellipsis {
    None,
    /// `…`
    One,
}

impl Ellipsis {
    fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::One => "…",
        }
    }
}

/// At most `max_width` cells of `text`, including the ellipsis. If not even the
/// ellipsis fits, the text is truncated without one.
pub fn truncate(text: &str, max_width: usize, ellipsis: Ellipsis) -> Cow<'_, str> {
    if width(text) <= max_width {
        return Cow::Borrowed(text);
    }
    let mark = ellipsis.text();
    let mark_width = width(mark);
    if mark_width >= max_width {
        return Cow::Borrowed(head(text, max_width));
    }
    Cow::Owned(format!("{}{mark}", head(text, max_width - mark_width)))
}

/// At most `max_width` cells: both ends of `text` around `…`. For paths, whose
/// ends are the most informative.
pub fn truncate_middle(text: &str, max_width: usize) -> Cow<'_, str> {
    if width(text) <= max_width {
        return Cow::Borrowed(text);
    }
    if max_width < 3 {
        return Cow::Borrowed(head(text, max_width));
    }
    let left = (max_width - 1) / 2;
    let right = max_width - 1 - left;
    Cow::Owned(format!("{}…{}", head(text, left), tail(text, right)))
}

/// Truncates a row to `max_width` cells; the ellipsis has the style of the text before
/// it.
pub fn truncate_row(row: &mut Row, max_width: u16, ellipsis: Ellipsis) {
    if row.width() <= usize::from(max_width) {
        return;
    }
    let mark = ellipsis.text();
    let mark_width = u16::try_from(width(mark)).unwrap_or(u16::MAX);
    if mark_width >= max_width || mark.is_empty() {
        row.clip(max_width);
        return;
    }
    row.clip(max_width - mark_width);
    match row.line.spans.last_mut() {
        Some(last) => last.content.to_mut().push_str(mark),
        None => row.line.spans.push(mark.into()),
    }
}

fn head(text: &str, max_width: usize) -> &str {
    let mut left = max_width;
    let mut end = 0;
    for (grapheme, cells) in graphemes(text) {
        if cells > left {
            break;
        }
        left -= cells;
        end += grapheme.len();
    }
    text.get(..end).unwrap_or_default()
}

fn tail(text: &str, max_width: usize) -> &str {
    let mut left = max_width;
    let mut start = text.len();
    for (grapheme, cells) in graphemes(text).rev() {
        if cells > left {
            break;
        }
        left -= cells;
        start -= grapheme.len();
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cuts_between_clusters() {
        for (text, max_width, ellipsis, expected) in [
            ("hello", 5, Ellipsis::One, "hello"),
            ("hello!", 5, Ellipsis::One, "hell…"),
            ("hello!", 1, Ellipsis::One, "h"),
            ("世界世界", 5, Ellipsis::One, "世界…"),
            ("世界世界", 4, Ellipsis::One, "世…"),
            ("👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 3, Ellipsis::None, "👨‍👩‍👧‍👦"),
            ("abc", 0, Ellipsis::One, ""),
        ] {
            assert_eq!(truncate(text, max_width, ellipsis), expected, "{text:?} {max_width}");
        }
        assert_eq!(truncate_middle("/usr/share/file.txt", 11), "/usr/…e.txt");
    }

    proptest! {
        #[test]
        fn never_wider_than_asked(text in any::<String>(), max_width in 0_usize..12) {
            prop_assert!(width(&truncate(&text, max_width, Ellipsis::One)) <= max_width);
            prop_assert!(width(&truncate_middle(&text, max_width)) <= max_width);
            let mut row = Row::styled(text, ratatui::style::Style::new());
            truncate_row(&mut row, u16::try_from(max_width).unwrap(), Ellipsis::One);
            prop_assert!(row.width() <= max_width);
        }
    }
}
