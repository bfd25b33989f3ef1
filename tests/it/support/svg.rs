//! Draws the screen of the emulator as an SVG picture.
//!
//! Every piece of text has its own position and length in cells, so that columns line up
//! whatever font a reader has. Lines and corners are drawn as paths: as characters they
//! would have gaps between rows.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// Size of a cell, and of the text in it, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT_PX: f64 = 14.0;
/// From the top of a cell to the line that text stands on.
const BASELINE: f64 = 13.5;
/// Around the screen.
const MARGIN: f64 = 12.0;

/// The colours of a terminal.
pub(crate) struct Palette {
    pub(crate) background: &'static str,
    pub(crate) foreground: &'static str,
    pub(crate) border: &'static str,
    /// The 16 colours that have names.
    pub(crate) named: [&'static str; 16],
}

pub(crate) const DARK: Palette = Palette {
    background: "#16181d",
    foreground: "#d4d7dd",
    border: "#343840",
    named: [
        "#2a2d34", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d7dd", "#6b717d",
        "#ef8a92", "#b3d79a", "#f0d49a", "#86c4f5", "#d79be8", "#7fcdd6", "#ffffff",
    ],
};

pub(crate) const LIGHT: Palette = Palette {
    background: "#ffffff",
    foreground: "#24292f",
    border: "#d0d7de",
    named: [
        "#24292f", "#cf222e", "#116329", "#7d4e00", "#0969da", "#8250df", "#1b7c83", "#6e7781", "#57606a",
        "#a40e26", "#1a7f37", "#633c01", "#218bff", "#a475f9", "#3192aa", "#8c959f",
    ],
};

/// A picture of `rows` of the screen; `label` is for those who cannot see it.
pub(crate) fn svg(screen: &Screen, rows: std::ops::Range<u16>, palette: &Palette, label: &str) -> String {
    let (_, columns) = screen.size();
    let (width, height) = (
        2.0 * MARGIN + CELL.0 * f64::from(columns.get()),
        2.0 * MARGIN + CELL.1 * f64::from(rows.end - rows.start),
    );
    let mut out = String::new();
    let Palette { background, foreground, border, .. } = palette;
    let label = escaped(label);
    let _infallible = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.1}\" height=\"{height:.1}\" viewBox=\"0 0 {width:.1} \
         {height:.1}\" role=\"img\" aria-label=\"{label}\">\n<title>{label}</title>\n<style>text{{white-space:pre}}\
         .b{{font-weight:bold}}.i{{font-style:italic}}.u{{text-decoration:underline}}</style>\n<rect x=\"0.5\" \
         y=\"0.5\" width=\"{:.1}\" height=\"{:.1}\" rx=\"8\" fill=\"{background}\" stroke=\"{border}\"/>\n<g \
         transform=\"translate({MARGIN} {MARGIN})\" fill=\"{foreground}\" font-size=\"{FONT_PX}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation \
         Mono',monospace\">\n",
        width - 1.0,
        height - 1.0,
    );
    for (at, row) in rows.enumerate() {
        let pieces = pieces(screen, row, palette);
        backgrounds(&pieces, &mut out, at);
        for piece in &pieces {
            piece.foreground(&mut out, at, foreground);
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Cells of a row that look alike.
#[derive(Debug, PartialEq)]
struct Piece {
    x: u16,
    n_cells: u16,
    text: String,
    look: Look,
}

#[derive(Debug, Clone, PartialEq)]
struct Look {
    foreground: String,
    background: Option<String>,
    /// The classes of the style sheet.
    class: String,
    faint: bool,
    /// Whether it is lines, which are drawn as a path.
    lines: bool,
    /// Whether it stands alone: a wide character, whose width fonts disagree about.
    alone: bool,
}

fn pieces(screen: &Screen, row: u16, palette: &Palette) -> Vec<Piece> {
    let (_, columns) = screen.size();
    let mut pieces: Vec<Piece> = Vec::new();
    for x in 0..columns.get() {
        let Some(cell) = screen.cell(row, x).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let look = look(cell, palette);
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let n_cells = if cell.is_wide() { 2 } else { 1 };
        match pieces.last_mut().filter(|last| last.look == look && !look.alone) {
            Some(last) => {
                last.text.push_str(text);
                last.n_cells += n_cells;
            }
            None => pieces.push(Piece { x, n_cells, text: text.to_owned(), look }),
        }
    }
    pieces
}

fn look(cell: &Cell, palette: &Palette) -> Look {
    let (mut front, mut back) = (hex(cell.fgcolor(), palette), hex(cell.bgcolor(), palette));
    if cell.inverse() {
        let (old_front, old_back) = (front, back);
        front = Some(old_back.unwrap_or_else(|| palette.background.to_owned()));
        back = Some(old_front.unwrap_or_else(|| palette.foreground.to_owned()));
    }
    let classes = [("b", cell.bold()), ("i", cell.italic()), ("u", cell.underline())];
    let classes: Vec<&str> = classes.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let contents = cell.contents();
    Look {
        foreground: front.unwrap_or_else(|| palette.foreground.to_owned()),
        background: back,
        class: classes.join(" "),
        faint: cell.dim(),
        lines: !contents.is_empty() && contents.chars().all(|c| arms(c).is_some()),
        alone: cell.is_wide() || !contents.is_ascii() && contents.chars().all(|c| arms(c).is_none()),
    }
}

fn hex(color: Color, palette: &Palette) -> Option<String> {
    Some(match color {
        Color::Default => return None,
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Idx(index) => match palette.named.get(usize::from(index)) {
            Some(named) => (*named).to_owned(),
            None if index >= 232 => {
                let grey = 8 + 10 * (index - 232);
                format!("#{grey:02x}{grey:02x}{grey:02x}")
            }
            None => {
                let index = index - 16;
                let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
                format!("#{:02x}{:02x}{:02x}", level(index / 36), level(index / 6 % 6), level(index % 6))
            }
        },
    })
}

/// Draws what is behind the pieces, neighbours of one colour as one: edges within a cell
/// would show as seams.
fn backgrounds(pieces: &[Piece], out: &mut String, row: usize) {
    let top = row as f64 * CELL.1;
    for run in pieces.chunk_by(|a, b| a.look.background == b.look.background) {
        let (Some(first), Some(color)) = (run.first(), &run[0].look.background) else { continue };
        let width: f64 = run.iter().map(Piece::width).sum();
        // A little more, so that rows touch.
        let _infallible = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{}\" fill=\"{color}\"/>",
            first.left(),
            CELL.1 + 0.3
        );
    }
}

/// Where the lines of a character go from its middle: up, right, down, left.
fn arms(c: char) -> Option<[bool; 4]> {
    let arms = match c {
        '─' => "rl",
        '│' => "ud",
        '┌' | '╭' => "rd",
        '┐' | '╮' => "dl",
        '└' | '╰' => "ur",
        '┘' | '╯' => "ul",
        '├' => "urd",
        '┤' => "udl",
        '┬' => "rdl",
        '┴' => "url",
        '┼' => "urdl",
        _ => return None,
    };
    Some(['u', 'r', 'd', 'l'].map(|arm| arms.contains(arm)))
}

impl Piece {
    fn left(&self) -> f64 {
        f64::from(self.x) * CELL.0
    }

    fn width(&self) -> f64 {
        f64::from(self.n_cells) * CELL.0
    }

    fn foreground(&self, out: &mut String, row: usize, default: &str) {
        let top = row as f64 * CELL.1;
        let look = &self.look;
        let mut style = String::new();
        if look.foreground != default {
            let name = if look.lines { "stroke" } else { "fill" };
            let _infallible = write!(style, " {name}=\"{}\"", look.foreground);
        } else if look.lines {
            let _infallible = write!(style, " stroke=\"{default}\"");
        }
        if look.faint {
            style.push_str(" opacity=\"0.65\"");
        }
        if look.lines {
            let _infallible =
                writeln!(out, "<path d=\"{}\" fill=\"none\"{style}/>", path(&self.text, self.left(), top));
            return;
        }
        let text = self.text.trim_end();
        if text.is_empty() {
            return;
        }
        let blanks = text.len() - text.trim_start().len();
        let (text, n_blanks) = (text.trim_start(), blanks as f64);
        let trailing = self.text.len() - self.text.trim_end().len();
        let width = self.width() - (n_blanks + trailing as f64) * CELL.0;
        if !look.class.is_empty() {
            let _infallible = write!(style, " class=\"{}\"", look.class);
        }
        let x = self.left() + n_blanks * CELL.0;
        // Stretched by the spaces between characters only, except where one stands alone.
        let _infallible = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\"{}{style}>{}</text>",
            top + BASELINE,
            if look.alone { " lengthAdjust=\"spacingAndGlyphs\"" } else { "" },
            escaped(text)
        );
    }
}

/// The lines of these characters, which begin at `left`.
fn path(text: &str, left: f64, top: f64) -> String {
    let (half_x, half_y) = (CELL.0 / 2.0, CELL.1 / 2.0);
    let middle = top + half_y;
    let mut path = String::new();
    let mut from: Option<f64> = None;
    for (at, c) in text.chars().enumerate() {
        let [up, right, down, to_left] = arms(c).unwrap_or_default();
        let (start, x) = (left + at as f64 * CELL.0, left + at as f64 * CELL.0 + half_x);
        if up || down {
            let (y1, y2) = (if up { top } else { middle }, if down { top + CELL.1 } else { middle });
            let _infallible = write!(path, "M{x:.1} {y1}V{y2}");
        }
        let begin = if to_left { start } else { x };
        if to_left || right {
            from.get_or_insert(begin);
        }
        let end = if right { start + CELL.0 } else { x };
        let goes_on = right && at + 1 < text.chars().count();
        if let Some(begin) = from.filter(|_| !goes_on) {
            let _infallible = write!(path, "M{begin:.1} {middle}H{end:.1}");
            from = None;
        }
    }
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
