//! Pictures as cells of text, for terminals with the kitty graphics protocol.
//!
//! The terminal gets a picture once and by number; rows of placeholder characters, whose
//! colour is the number and whose combining marks are row and column, show it. They move with
//! the text, into the scrollback too.
//! See <https://sw.kovidgoyal.net/kitty/graphics-protocol/#unicode-placeholders>.

use ratatui::style::{Color, Style};

use super::super::text::{Row, Run};

/// The character that a terminal replaces by a part of a picture.
const PLACEHOLDER: char = '\u{10eeee}';

/// The number of a picture in the terminal, from 1 to 2²⁴ - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureId(u32);

impl PictureId {
    /// The number for a picture with this hash: the same picture has the same number in a later
    /// run too, whose rows may be in the same scrollback.
    pub fn of_hash(hash: u64) -> Self {
        // The remainder is below 2²⁴ - 1.
        Self(u32::try_from(hash % 0xff_ffff).unwrap_or_default() + 1)
    }

    pub fn get(self) -> u32 {
        self.0
    }

    fn color(self) -> Color {
        let [_, red, green, blue] = self.0.to_be_bytes();
        Color::Rgb(red, green, blue)
    }
}

/// The size of a picture on the screen, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureSize {
    pub columns: u16,
    pub rows: u16,
}

impl PictureSize {
    /// The size of a picture of `pixels` on cells of `cell` pixels (width, height), at most
    /// `most`. It keeps its proportions and is not enlarged.
    pub fn fit(pixels: (u32, u32), cell: (u16, u16), most: Self) -> Self {
        let columns = f64::from(pixels.0.max(1)) / f64::from(cell.0.max(1));
        let rows = f64::from(pixels.1.max(1)) / f64::from(cell.1.max(1));
        let most = Self { columns: most.columns.clamp(1, MOST_CELLS), rows: most.rows.clamp(1, MOST_CELLS) };
        let scale = (f64::from(most.columns) / columns).min(f64::from(most.rows) / rows).min(1.0);
        // The casts saturate.
        let cells = |natural: f64, most: u16| ((natural * scale).ceil() as u16).clamp(1, most);
        Self { columns: cells(columns, most.columns), rows: cells(rows, most.rows) }
    }
}

/// The rows that show a picture.
pub fn picture_rows(id: PictureId, size: PictureSize) -> Vec<Row> {
    let marks: Vec<char> = MARKS.iter().flat_map(|(first, last)| *first..=*last).collect();
    let style = Style::new().fg(id.color());
    let row = |row: &char| {
        let cells = marks.iter().take(usize::from(size.columns));
        let text: String = cells.flat_map(|column| [PLACEHOLDER, *row, *column]).collect();
        Row::from_runs([Run::new(text, style)])
    };
    marks.iter().take(usize::from(size.rows)).map(row).collect()
}

/// There is no mark for more rows or columns.
const MOST_CELLS: u16 = 297;

/// TABLE: the marks that stand for the numbers from 0 on, as ranges: combining characters above
/// their base (class 230) of Unicode 6.0 that no normalisation fuses with their base.
const MARKS: &[(char, char)] = &[
    ('\u{305}', '\u{305}'),
    ('\u{30d}', '\u{30e}'),
    ('\u{310}', '\u{310}'),
    ('\u{312}', '\u{312}'),
    ('\u{33d}', '\u{33f}'),
    ('\u{346}', '\u{346}'),
    ('\u{34a}', '\u{34c}'),
    ('\u{350}', '\u{352}'),
    ('\u{357}', '\u{357}'),
    ('\u{35b}', '\u{35b}'),
    ('\u{363}', '\u{36f}'),
    ('\u{483}', '\u{487}'),
    ('\u{592}', '\u{595}'),
    ('\u{597}', '\u{599}'),
    ('\u{59c}', '\u{5a1}'),
    ('\u{5a8}', '\u{5a9}'),
    ('\u{5ab}', '\u{5ac}'),
    ('\u{5af}', '\u{5af}'),
    ('\u{5c4}', '\u{5c4}'),
    ('\u{610}', '\u{617}'),
    ('\u{657}', '\u{65b}'),
    ('\u{65d}', '\u{65e}'),
    ('\u{6d6}', '\u{6dc}'),
    ('\u{6df}', '\u{6e2}'),
    ('\u{6e4}', '\u{6e4}'),
    ('\u{6e7}', '\u{6e8}'),
    ('\u{6eb}', '\u{6ec}'),
    ('\u{730}', '\u{730}'),
    ('\u{732}', '\u{733}'),
    ('\u{735}', '\u{736}'),
    ('\u{73a}', '\u{73a}'),
    ('\u{73d}', '\u{73d}'),
    ('\u{73f}', '\u{741}'),
    ('\u{743}', '\u{743}'),
    ('\u{745}', '\u{745}'),
    ('\u{747}', '\u{747}'),
    ('\u{749}', '\u{74a}'),
    ('\u{7eb}', '\u{7f1}'),
    ('\u{7f3}', '\u{7f3}'),
    ('\u{816}', '\u{819}'),
    ('\u{81b}', '\u{823}'),
    ('\u{825}', '\u{827}'),
    ('\u{829}', '\u{82d}'),
    ('\u{951}', '\u{951}'),
    ('\u{953}', '\u{954}'),
    ('\u{f82}', '\u{f83}'),
    ('\u{f86}', '\u{f87}'),
    ('\u{135d}', '\u{135f}'),
    ('\u{17dd}', '\u{17dd}'),
    ('\u{193a}', '\u{193a}'),
    ('\u{1a17}', '\u{1a17}'),
    ('\u{1a75}', '\u{1a7c}'),
    ('\u{1b6b}', '\u{1b6b}'),
    ('\u{1b6d}', '\u{1b73}'),
    ('\u{1cd0}', '\u{1cd2}'),
    ('\u{1cda}', '\u{1cdb}'),
    ('\u{1ce0}', '\u{1ce0}'),
    ('\u{1dc0}', '\u{1dc1}'),
    ('\u{1dc3}', '\u{1dc9}'),
    ('\u{1dcb}', '\u{1dcc}'),
    ('\u{1dd1}', '\u{1de6}'),
    ('\u{1dfe}', '\u{1dfe}'),
    ('\u{20d0}', '\u{20d1}'),
    ('\u{20d4}', '\u{20d7}'),
    ('\u{20db}', '\u{20dc}'),
    ('\u{20e1}', '\u{20e1}'),
    ('\u{20e7}', '\u{20e7}'),
    ('\u{20e9}', '\u{20e9}'),
    ('\u{20f0}', '\u{20f0}'),
    ('\u{2cef}', '\u{2cf1}'),
    ('\u{2de0}', '\u{2dff}'),
    ('\u{a66f}', '\u{a66f}'),
    ('\u{a67c}', '\u{a67d}'),
    ('\u{a6f0}', '\u{a6f1}'),
    ('\u{a8e0}', '\u{a8f1}'),
    ('\u{aab0}', '\u{aab0}'),
    ('\u{aab2}', '\u{aab3}'),
    ('\u{aab7}', '\u{aab8}'),
    ('\u{aabe}', '\u{aabf}'),
    ('\u{aac1}', '\u{aac1}'),
    ('\u{fe20}', '\u{fe26}'),
    ('\u{10a0f}', '\u{10a0f}'),
    ('\u{10a38}', '\u{10a38}'),
    ('\u{1d185}', '\u{1d189}'),
    ('\u{1d1aa}', '\u{1d1ad}'),
    ('\u{1d242}', '\u{1d244}'),
];

#[cfg(test)]
mod tests {
    use super::super::super::text::{graphemes, is_uncertain};
    use super::*;

    #[test]
    fn table_has_a_mark_for_each_number() {
        let n_marks: usize = MARKS.iter().map(|(first, last)| (*first..=*last).count()).sum();
        assert_eq!(n_marks, usize::from(MOST_CELLS));
        assert_eq!(MARKS.iter().flat_map(|(first, last)| *first..=*last).nth(5), Some('\u{33d}'));
    }

    #[test]
    fn every_cell_is_one_cluster_of_one_cell_with_row_and_column() {
        let id = PictureId::of_hash(0x12_3455);
        let size = PictureSize { columns: 297, rows: 297 };
        let rows = picture_rows(id, size);
        assert_eq!(rows.len(), 297);
        let mut seen = std::collections::HashSet::new();
        for row in &rows {
            let text = row.text();
            assert_eq!((row.width(), graphemes(&text).count()), (297, 297));
            assert!(graphemes(&text).all(|(cluster, cells)| cells == 1 && !is_uncertain(cluster)));
            seen.extend(graphemes(&text).map(|(cluster, _)| cluster.to_owned()));
            assert_eq!(row.line.spans[0].style.fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
        }
        assert_eq!(seen.len(), 297 * 297);
    }

    #[test]
    fn pictures_keep_their_proportions_within_the_limits() {
        let check = |pixels, most: (u16, u16), expected: (u16, u16)| {
            let size = PictureSize::fit(pixels, (10, 20), PictureSize { columns: most.0, rows: most.1 });
            assert_eq!((size.columns, size.rows), expected, "{pixels:?}");
        };
        check((100, 100), (60, 24), (10, 5));
        check((101, 101), (60, 24), (11, 6));
        check((6_000, 2_000), (60, 24), (60, 10));
        check((1_170, 2_532), (60, 24), (23, 24));
        check((1, 1), (60, 24), (1, 1));
        check((0, 0), (0, 0), (1, 1));
        check((u32::MAX, 1), (60, 24), (60, 1));
        check((u32::MAX, u32::MAX), (u16::MAX, u16::MAX), (297, 149));
    }
}
