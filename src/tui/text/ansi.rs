//! Coloured output of processes as styled lines.
//!
//! Only colours and attributes are kept. Cursor movement is not: a carriage
//! return replaces the line, a backspace removes one character, and all
//! other sequences are dropped.

use ansi_to_tui::IntoText as _;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};

use crate::util::escapes::{Piece, is_dropped, pieces, sgr_parameters};

use super::sanitize::TAB_WIDTH;

/// The lines of `text` as a terminal would show them in colour. A final line break
/// creates no empty last line.
pub fn terminal_output(text: &str) -> Vec<Line<'static>> {
    let mut filtered = String::with_capacity(text.len());
    let mut line = LineBuffer::default();
    let mut pending = false;
    for piece in pieces(text) {
        pending = true;
        match piece {
            Piece::Char('\n') => {
                line.finish(&mut filtered);
                filtered.push('\n');
                pending = false;
            }
            Piece::Char('\r') => line.carriage_return(),
            Piece::Char('\u{8}') => line.backspace(),
            Piece::Char('\t') => line.text.extend(std::iter::repeat_n(' ', TAB_WIDTH)),
            Piece::Char(c) if is_dropped(c) => {}
            Piece::Char(c) => line.put(c),
            Piece::Sgr(sequence) if is_plain_sgr(sequence) => line.style(sequence),
            Piece::Sgr(_) => {}
        }
    }
    if pending {
        line.finish(&mut filtered);
        filtered.push('\n');
    }
    if filtered.is_empty() {
        return Vec::new();
    }
    let mut lines = match filtered.as_bytes().into_text() {
        Ok(styled) => styled.lines,
        Err(_) => super::sanitize(text).lines().map(|line| Line::from(line.to_owned())).collect(),
    };
    for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
        inherit_defaults(span);
    }
    lines
}

/// The line being assembled. Styles outlive the text they were set for,
/// because they apply until the next one.
#[derive(Default)]
struct LineBuffer {
    styles_before: String,
    text: String,
    /// Where the last style in `text` ends.
    style_end: usize,
    /// Set by a carriage return: the next character starts the line over.
    restart: bool,
}

impl LineBuffer {
    fn put(&mut self, c: char) {
        self.restart_if_due();
        self.text.push(c);
    }

    fn style(&mut self, sequence: &str) {
        self.restart_if_due();
        self.text.push_str(sequence);
        self.style_end = self.text.len();
    }

    fn carriage_return(&mut self) {
        self.restart = !self.text.is_empty();
    }

    fn restart_if_due(&mut self) {
        if std::mem::take(&mut self.restart) {
            let overwritten = std::mem::take(&mut self.text);
            self.style_end = 0;
            for piece in pieces(&overwritten) {
                if let Piece::Sgr(sequence) = piece {
                    self.styles_before.push_str(sequence);
                }
            }
        }
    }

    /// Overstriking (`a BS a`) is how old tools print bold.
    fn backspace(&mut self) {
        if self.text.len() > self.style_end {
            self.text.pop();
        }
    }

    fn finish(&mut self, out: &mut String) {
        out.push_str(&self.styles_before);
        out.push_str(&self.text);
        *self = Self::default();
    }
}

/// Whether every parameter is a number that the colour parser supports.
fn is_plain_sgr(sequence: &str) -> bool {
    const MAX_BYTES: usize = 64;
    sequence.len() <= MAX_BYTES
        && sgr_parameters(sequence).is_some_and(|parameters| {
            parameters.split(';').all(|number| number.is_empty() || number.parse::<u8>().is_ok())
        })
}

/// Makes "default colour" the colour below the line, so that a
/// box's background has no holes.
fn inherit_defaults(span: &mut Span<'static>) {
    let style = &mut span.style;
    style.fg = style.fg.filter(|&color| color != Color::Reset);
    style.bg = style.bg.filter(|&color| color != Color::Reset);
    style.underline_color = None;
    style.sub_modifier = Modifier::empty();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::Style;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&[(&str, Style)]]) {
        let lines = terminal_output(text);
        let lines: Vec<Vec<(&str, Style)>> = lines
            .iter()
            .map(|line| line.spans.iter().map(|span| (span.content.as_ref(), span.style)).collect())
            .collect();
        assert_eq!(lines, expected, "{text:?}");
    }

    #[test]
    fn keeps_colours_over_line_ends_and_drops_the_rest() {
        let plain = Style::new();
        check(
            "a\u{1b}[31mb\nc\u{1b}[0md\n",
            &[&[("a", plain), ("b", plain.red())], &[("c", plain.red()), ("d", plain)]],
        );
        check("\u{1b}[2K\u{1b}[1;1Hx\u{1b}]0;t\u{7}y", &[&[("xy", plain)]]);
        check("", &[]);
        check("\n\nx", &[&[], &[], &[("x", plain)]]);
    }

    #[test]
    fn a_carriage_return_replaces_the_line() {
        let plain = Style::new();
        check("10%\r50%\r100%\r\ndone\r", &[&[("100%", plain)], &[("done", plain)]]);
        check("b\u{8}bold", &[&[("bold", plain)]]);
    }

    #[test]
    fn odd_colour_sequences_are_dropped() {
        let plain = Style::new();
        check("\u{1b}[38;5;999mx\u{1b}[38:2::1:2:3my", &[&[("xy", plain)]]);
        check("\u{1b}[38;2;1;2;3mx", &[&[("x", plain.fg(Color::Rgb(1, 2, 3)))]]);
    }

    proptest! {
        #[test]
        fn any_output_is_survived(text in "[\u{1b}\\[m;0-9a-c\r\n\u{8}\t世]{0,80}") {
            for line in terminal_output(&text) {
                prop_assert!(line.spans.iter().all(|span| !span.content.chars().any(char::is_control)));
            }
        }
    }
}
