//! Rows that show a picture.
//!
//! With the kitty graphics protocol, the terminal gets a picture once and by number; rows of
//! placeholder characters, whose colour is the number and whose combining marks are row and
//! column, show it. They move with the text, into the scrollback too. Elsewhere the painter
//! draws each row of the picture over a row that is reserved for it.
//! See <https://sw.kovidgoyal.net/kitty/graphics-protocol/#unicode-placeholders>.

use std::mem;

use ratatui::style::{Color, Style};

use super::super::text::{Ellipsis, PictureKey, Row, RowPicture, Run, truncate};

/// The character that a terminal replaces by a part of a picture.
const PLACEHOLDER: char = '\u{10eeee}';

/// The rows that show a picture. Where the terminal draws pictures over the text, they have
/// `label` below it, for as long as it is not drawn.
pub fn picture_rows(key: PictureKey, label: &str, style: Style) -> Vec<Row> {
    let mut rows = if key.format.has_placeholders() {
        placeholders(key)
    } else {
        let mut rows = vec![Row::default(); usize::from(key.size.rows)];
        let label = truncate(label, usize::from(key.size.columns), Ellipsis::One);
        if let Some(first) = rows.first_mut() {
            *first = Row::styled(label, style);
        }
        rows
    };
    for (row, nth) in rows.iter_mut().zip(0..) {
        row.picture = Some(RowPicture { key, row: nth, column: 0 });
        let drawn = mem::take(row);
        *row = if nth == 0 { drawn.copied_as(label) } else { drawn.as_frame() };
    }
    rows
}

fn placeholders(key: PictureKey) -> Vec<Row> {
    let marks: Vec<char> = MARKS.iter().flat_map(|(first, last)| *first..=*last).collect();
    let [_, red, green, blue] = key.id.get().to_be_bytes();
    let style = Style::new().fg(Color::Rgb(red, green, blue));
    let row = |row: &char| {
        let cells = marks.iter().take(usize::from(key.size.columns));
        let text: String = cells.flat_map(|column| [PLACEHOLDER, *row, *column]).collect();
        Row::from_runs([Run::new(text, style)])
    };
    marks.iter().take(usize::from(key.size.rows)).map(row).collect()
}

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
    use super::super::super::text::{
        PictureFormat, PictureId, PictureSize, copied_text, graphemes, is_uncertain,
    };
    use super::*;

    fn key(format: PictureFormat, columns: u16, rows: u16) -> PictureKey {
        let size = PictureSize { columns, rows };
        PictureKey { id: PictureId::of_hash(0x12_3455), size, cell: (10, 20), format }
    }

    #[test]
    fn table_has_a_mark_for_each_number() {
        let n_marks: usize = MARKS.iter().map(|(first, last)| (*first..=*last).count()).sum();
        assert_eq!(n_marks, 297, "the longest side of a picture");
        assert_eq!(MARKS.iter().flat_map(|(first, last)| *first..=*last).nth(5), Some('\u{33d}'));
    }

    #[test]
    fn every_cell_is_one_cluster_of_one_cell_with_row_and_column() {
        let rows = picture_rows(key(PictureFormat::Kitty, 297, 297), "", Style::new());
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
    fn rows_for_a_picture_that_is_drawn_are_blank_below_their_label() {
        let rows = picture_rows(key(PictureFormat::Sixel, 8, 3), "[Image: image/png 9×9]", Style::new());
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["[Image:…", "", ""]);
        let parts: Vec<u16> = rows.iter().filter_map(|row| Some(row.picture?.row)).collect();
        assert_eq!(parts, [0, 1, 2]);
    }

    #[test]
    fn picture_is_copied_as_its_label() {
        let label = "[Image: image/png 9×9]";
        for format in [PictureFormat::Kitty, PictureFormat::Sixel] {
            let mut rows = picture_rows(key(format, 8, 3), label, Style::new());
            rows.iter_mut().for_each(|row| row.indent(" ", Style::new()));
            let above = Row::styled("above", Style::new());
            let all = [&above].into_iter().chain(&rows).chain([&above]);
            assert_eq!(copied_text(all.map(|row| (row, 0..u16::MAX))), format!("above\n{label}\nabove"));
        }
    }
}
