//! Backgrounds of changed lines and of the changed words in them.
//!
//! Theme files have one colour for added and one for removed lines. Their backgrounds are mixed of
//! it and the background of tool calls; text on them moves towards white or black until it can be
//! read.

use ratatui::style::{Color, Style};

use super::Theme;
use super::color::{ThemeColor, index_of_256, indexed_rgb, is_greyish};
use super::system::{self, Rgb, contrast, mix};
use super::tokens::Token;

/// How much a background stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TintStrength {
    /// Behind a whole line.
    Line,
    /// Behind a word of such a line.
    Word,
}

/// A background in the colour of a token, and text on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tint {
    background: Rgb,
    /// Its index, if the terminal has 256 colours.
    index: Option<u8>,
    /// White or black: where readable colours are.
    end: Rgb,
}

const WHITE: Rgb = [255; 3];
const BLACK: Rgb = [0; 3];

/// How much of the difference to white or black is taken from a colour, so that little of it is
/// seen as a colour and not as a grey.
const VIVID_PERCENT: u16 = 75;

impl Theme {
    /// A background in the colour of a text token. `None` where the colours of the screen are not
    /// known: with 16 colours, and with themes that use the terminal's own; and where none of 256 has
    /// its hue and lets text be read.
    pub fn tint(&self, token: Token, strength: TintStrength) -> Option<Tint> {
        let (base, hue) = (self.rgb(Token::ToolPendingBg)?, self.rgb(token)?);
        let is_dark = contrast(WHITE, base) >= contrast(BLACK, base);
        let (least, most) = (hue.into_iter().min()?, hue.into_iter().max()?);
        let share = |room: u8| u8::try_from(u16::from(room) * VIVID_PERCENT / 100).unwrap_or(room);
        let vivid = if is_dark {
            hue.map(|channel| channel.saturating_sub(share(least)))
        } else {
            hue.map(|channel| channel.saturating_add(share(255 - most)))
        };
        // Dark colours seem weaker.
        let percent = match (strength, is_dark) {
            (TintStrength::Line, true) => 30,
            (TintStrength::Line, false) => 20,
            (TintStrength::Word, true) => 75,
            (TintStrength::Word, false) => 45,
        };
        let end = if is_dark { WHITE } else { BLACK };
        // On middle colours nothing could be read.
        let mut mixed = (0..=percent).rev().map(|percent| mix(base, vivid, percent));
        let background = mixed.find(|below| contrast(end, *below) >= system::TEXT).unwrap_or(base);
        if let Some(Color::Rgb(..)) = self.color(Token::ToolPendingBg) {
            return Some(Tint { background, index: None, end });
        }
        // The nearest one is often a grey.
        let strongest = (0..3).max_by_key(|channel| background[*channel])?;
        let has_its_hue =
            |color: Rgb| (0..3).all(|other| other == strongest || color[other] < color[strongest]);
        let is_readable = |color: Rgb| contrast(end, color) >= system::TEXT;
        let around = match strength {
            TintStrength::Word => Some(self.tint(token, TintStrength::Line)?.background),
            TintStrength::Line => None,
        };
        let fits = |color: Rgb| has_its_hue(color) && is_readable(color) && Some(color) != around;
        let index = index_of_256(background, fits)?;
        Some(Tint { background: indexed_rgb(index), index: Some(index), end })
    }

    fn rgb(&self, token: Token) -> Option<Rgb> {
        rgb(self.color(token)?)
    }
}

/// `None` for colours that users choose in their terminal.
fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Indexed(index) => ThemeColor::Indexed(index).rgb(),
        _ => None,
    }
}

impl Tint {
    /// The background alone.
    pub fn style(self) -> Style {
        Style::new().bg(color(self.background, self.index))
    }

    /// Text of a token on it.
    pub fn text(self, token: Token, theme: &Theme) -> Style {
        let Some(color) = theme.rgb(token) else { return self.style().patch(theme.style(token)) };
        let least = system::least_contrast(token);
        let readable = system::readable(color, self.end, &[self.background], least);
        let is_readable = |color: Rgb| contrast(color, self.background) >= least;
        // The nearest one is often a grey here too.
        let has_its_hue = |found: Rgb| order(color).is_none_or(|(least, most)| found[least] < found[most]);
        let index = self.index.and_then(|_| {
            index_of_256(readable, |color| is_readable(color) && has_its_hue(color))
                .or_else(|| index_of_256(readable, is_readable))
        });
        self.style().fg(self::color(readable, index))
    }
}

/// The weakest and the strongest channel of a colour; `None` for one that is seen as a grey.
fn order(color: Rgb) -> Option<(usize, usize)> {
    let least = (0..3).min_by_key(|channel| color[*channel])?;
    let most = (0..3).max_by_key(|channel| color[*channel])?;
    (!is_greyish(color)).then_some((least, most))
}

fn color(rgb: Rgb, index: Option<u8>) -> Color {
    let [red, green, blue] = rgb;
    index.map_or(Color::Rgb(red, green, blue), Color::Indexed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Appearance, ColorDepth, Kind, TABLE, TerminalColors};
    use super::*;

    /// All text tokens can be read on both tints of both colours.
    #[track_caller]
    fn check(theme: &Theme) {
        for token in [Token::ToolDiffAdded, Token::ToolDiffRemoved] {
            let [line, word] =
                [TintStrength::Line, TintStrength::Word].map(|strength| theme.tint(token, strength).unwrap());
            for tint in [line, word] {
                for row in TABLE.iter().filter(|row| row.kind == Kind::Foreground) {
                    let style = tint.text(row.token, theme);
                    assert_eq!(style.bg.and_then(rgb), Some(tint.background));
                    let Some(text) = style.fg.and_then(rgb) else { continue };
                    let found = contrast(text, tint.background);
                    let least = system::least_contrast(row.token);
                    assert!(found >= least, "{} on {tint:?}: {found:.2}", row.name);
                }
            }
        }
    }

    #[test]
    fn built_in_themes_have_tints_that_can_be_told_apart() {
        let depths = [ColorDepth::True, ColorDepth::Indexed];
        for (appearance, depth) in
            [Appearance::Dark, Appearance::Light].into_iter().flat_map(|one| depths.map(|depth| (one, depth)))
        {
            let theme = Theme::builtin("system", appearance, depth).unwrap();
            check(&theme);
            let mut backgrounds: Vec<Rgb> = Vec::new();
            for token in [Token::ToolDiffAdded, Token::ToolDiffRemoved] {
                for strength in [TintStrength::Line, TintStrength::Word] {
                    let tint = theme.tint(token, strength).unwrap();
                    // What it is mixed of has the hue of the token.
                    let [red, green, blue] = tint.background;
                    let is_removed = token == Token::ToolDiffRemoved;
                    let (own, other) = if is_removed { (red, green) } else { (green, red) };
                    assert!(own > other && own > blue, "{tint:?}");
                    backgrounds.push(tint.background);
                }
            }
            backgrounds.push(theme.rgb(Token::ToolSuccessBg).unwrap());
            backgrounds.push(theme.rgb(Token::ToolPendingBg).unwrap());
            let distance =
                |a: &Rgb, b: &Rgb| a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>();
            for (at, one) in backgrounds.iter().enumerate().take(4) {
                for other in &backgrounds[at + 1..] {
                    assert!(distance(one, other) >= 14, "{one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn text_on_tints_keeps_its_hue_with_256_colours() {
        for appearance in [Appearance::Dark, Appearance::Light] {
            let theme = Theme::builtin("system", appearance, ColorDepth::Indexed).unwrap();
            for token in [Token::ToolDiffAdded, Token::ToolDiffRemoved] {
                let tint = theme.tint(token, TintStrength::Line).unwrap();
                for row in TABLE.iter().filter(|row| row.kind == Kind::Foreground) {
                    let Some((least, most)) = theme.rgb(row.token).and_then(order) else { continue };
                    let text = tint.text(row.token, &theme).fg.and_then(rgb).unwrap();
                    assert!(text[least] < text[most], "{} is {text:?} on {tint:?}", row.name);
                }
            }
        }
    }

    #[test]
    fn terminals_with_fewer_colours_have_none() {
        for depth in [ColorDepth::Ansi, ColorDepth::None] {
            let theme = Theme::builtin("dark", Appearance::Dark, depth).unwrap();
            assert_eq!(theme.tint(Token::ToolDiffAdded, TintStrength::Line), None);
        }
    }

    proptest! {
        #[test]
        fn text_on_tints_can_be_read_on_any_palette(
            foreground: Rgb,
            background: Rgb,
            palette: [Option<Rgb>; 16],
        ) {
            let colors =
                TerminalColors { foreground: Some(foreground), background: Some(background), palette };
            check(&Theme::system(&colors, Appearance::Dark, ColorDepth::True));
        }
    }
}
