//! Coloured output of processes as styled lines.
//!
//! Of what a terminal does, colours and edits of the current line are applied: carriage return,
//! backspace, erasing and moving within the line. All other sequences are dropped.

use ansi_to_tui::IntoText as _;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::util::escapes::{LineEdit, Piece, is_dropped, pieces, sgr_parameters};
use crate::util::terminal_line::TerminalLine;

use super::sanitize::TAB_WIDTH;

/// The lines of `text` as a terminal would show them in colour. A final line break
/// creates no empty last line.
pub fn terminal_output(text: &str) -> Vec<Line<'static>> {
    output_lines(text).into_iter().map(|line| line.shown).collect()
}

/// A line as a terminal shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputLine {
    pub shown: Line<'static>,
    /// The text of a line with tabs, which are blanks in what is shown.
    pub with_tabs: Option<String>,
}

/// The same, with the tabs that lines had.
pub fn output_lines(text: &str) -> Vec<OutputLine> {
    let mut lines = Vec::new();
    let mut line = TerminalLine::default();
    let mut style = Style::new();
    let mut pending = false;
    for piece in pieces(text) {
        pending = true;
        match piece {
            Piece::Char('\n') => {
                lines.push(styled(line.take_runs()));
                pending = false;
            }
            Piece::Char('\t') => line.put('\t', &style),
            Piece::Char(c) if is_dropped(c) => {
                LineEdit::of_char(c).into_iter().for_each(|edit| line.edit(edit));
            }
            Piece::Char(c) => line.put(c, &style),
            Piece::Edit(edit) => line.edit(edit),
            Piece::Sgr(sequence) if is_plain_sgr(sequence) => style = with_sgr(style, sequence),
            Piece::Sgr(_) => {}
        }
    }
    if pending {
        lines.push(styled(line.take_runs()));
    }
    lines
}

fn styled(runs: Vec<(String, Style)>) -> OutputLine {
    let text = || runs.iter().map(|(text, _)| text.as_str()).collect();
    let with_tabs = runs.iter().any(|(text, _)| text.contains('\t')).then(text);
    let tab = " ".repeat(TAB_WIDTH);
    let span = |(text, style): (String, Style)| {
        let text = if text.contains('\t') { text.replace('\t', &tab) } else { text };
        Span::styled(text, inherit_defaults(style))
    };
    OutputLine { shown: Line::from_iter(runs.into_iter().map(span)), with_tabs }
}

/// The style behind a sequence. The parser returns styles of text, so it gets some.
fn with_sgr(style: Style, sequence: &str) -> Style {
    let parsed = format!("{sequence}x").into_text();
    let span = parsed.ok().and_then(|text| text.lines.into_iter().next()?.spans.into_iter().next());
    span.map_or(style, |span| style.patch(span.style))
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
fn inherit_defaults(mut style: Style) -> Style {
    style.fg = style.fg.filter(|&color| color != Color::Reset);
    style.bg = style.bg.filter(|&color| color != Color::Reset);
    style.underline_color = None;
    style.sub_modifier = Modifier::empty();
    style
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn lines_are_written_over_in_the_colours_of_what_is_written_last() {
        let plain = Style::new();
        check("10%\r50%\r100%\r\ndone\r", &[&[("100%", plain)], &[("done", plain)]]);
        check("b\u{8}bold", &[&[("bold", plain)]]);
        check("\u{1b}[31mabc\r\u{1b}[32mx\u{1b}[mde\n", &[&[("x", plain.green()), ("de", plain)]]);
        check(
            "\u{1b}[31mabc\rx\u{1b}[32my",
            &[&[("x", plain.red()), ("y", plain.green()), ("c", plain.red())]],
        );
        check("\u{1b}[31mlong\r\u{1b}[Kok\n", &[&[("ok", plain.red())]]);
        check("a\tb\r\tc", &[&[("a   c", plain)]]);
    }

    #[test]
    fn odd_colour_sequences_are_dropped() {
        let plain = Style::new();
        check("\u{1b}[38;5;999mx\u{1b}[38:2::1:2:3my", &[&[("xy", plain)]]);
        check("\u{1b}[38;2;1;2;3mx", &[&[("x", plain.fg(Color::Rgb(1, 2, 3)))]]);
    }

    proptest! {
        #[test]
        fn any_output_is_survived(text in "[\u{1b}\u{9b}\\[mKGCD;0-9a-c\r\n\u{8}\t世\u{301}]{0,80}") {
            for line in terminal_output(&text) {
                prop_assert!(line.spans.iter().all(|span| !span.content.chars().any(char::is_control)));
            }
        }
    }
}
