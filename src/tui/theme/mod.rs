//! Colours by purpose.
//!
//! A theme assigns a colour to every token of [`TABLE`]; components use
//! [`Token`]s and never name a colour. Callers read and watch theme
//! files and pass their text.

mod color;
mod load;
mod system;
mod tint;
mod tokens;

use std::sync::atomic::{AtomicU64, Ordering};

use ratatui::style::{Color, Style};
use ratatui::text::Line;

pub use color::ColorDepth;
pub use load::ThemeError;
pub use system::{Rgb, TerminalColors};
pub use tint::{Tint, TintStrength};
pub use tokens::{Kind, TABLE, Token, TokenRow};

/// Whether a theme is meant for a dark or a light terminal background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appearance {
    Dark,
    Light,
}

/// The names of [`Theme::builtin`]. `system` selects one of the others
/// by the terminal's background.
pub const BUILTIN_NAMES: [&str; 3] = ["system", "dark", "light"];

const DARK: &str = include_str!("../../../themes/dark.json");
const LIGHT: &str = include_str!("../../../themes/light.json");

/// A loaded theme: a style for every token.
#[derive(Debug, Clone)]
pub struct Theme {
    name: String,
    appearance: Appearance,
    depth: ColorDepth,
    colors: [Option<Color>; TABLE.len()],
    generation: u64,
}

impl Theme {
    /// Parses a theme, with colours for a terminal of `depth`.
    ///
    /// # Errors
    /// If the text is not a theme; the error names the key.
    pub fn parse(json: &str, depth: ColorDepth) -> Result<Self, ThemeError> {
        let loaded = load::load(json)?;
        Ok(Self {
            name: loaded.name,
            appearance: loaded.appearance,
            depth,
            colors: std::array::from_fn(|index| {
                loaded.colors[index].to_terminal(depth, TABLE[index].kind, loaded.appearance)
            }),
            generation: next_generation(),
        })
    }

    /// A built-in theme; `background` determines `system`. `None` for a
    /// name that is not in [`BUILTIN_NAMES`].
    pub fn builtin(name: &str, background: Appearance, depth: ColorDepth) -> Option<Self> {
        let json = match (name, background) {
            ("dark", _) | ("system", Appearance::Dark) => DARK,
            ("light", _) | ("system", Appearance::Light) => LIGHT,
            _ => return None,
        };
        Some(Self::parse(json, depth).expect("the compiled-in themes are valid; a test loads them"))
    }

    /// The theme `system` for a terminal with these colours. Where the background is unknown, or
    /// there are fewer colours than 24 bits, it is the built-in theme for `background`; of 16
    /// colours, those that cannot be read on the background are left out.
    pub fn system(colors: &TerminalColors, background: Appearance, depth: ColorDepth) -> Self {
        let appearance = colors.appearance().unwrap_or(background);
        let json = if appearance == Appearance::Dark { DARK } else { LIGHT };
        let own = load::load(json).expect("the compiled-in themes are valid; a test loads them");
        let derived = system::derive(colors, &own.colors).filter(|_| depth == ColorDepth::True);
        let tokens = derived.unwrap_or(own.colors);
        Self {
            name: "system".to_owned(),
            appearance,
            depth,
            colors: std::array::from_fn(|index| {
                let color = tokens[index].to_terminal(depth, TABLE[index].kind, appearance);
                if depth == ColorDepth::Ansi {
                    system::readable_of_16(color, colors, TABLE[index].token)
                } else {
                    color
                }
            }),
            generation: next_generation(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn appearance(&self) -> Appearance {
        self.appearance
    }

    /// Differs between any two themes loaded in this process; part of the cache key
    /// of styled rows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The token as a style: its colour as foreground or background, according to its
    /// purpose. A token with the terminal's default colour sets nothing.
    pub fn style(&self, token: Token) -> Style {
        let mut style = Style::new();
        let color = self.color(token);
        match token.row().kind {
            Kind::Foreground => style.fg = color,
            Kind::Background => style.bg = color,
        }
        style
    }

    /// A line of a program's output with the colours that the terminal has.
    pub fn output(&self, mut line: Line<'static>) -> Line<'static> {
        for span in &mut line.spans {
            span.style = color::style_of_output(span.style, self.depth, self.appearance);
        }
        line
    }

    /// The token's colour; `None` means the terminal's default.
    pub fn color(&self, token: Token) -> Option<Color> {
        self.colors[token.index()]
    }
}

fn next_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::system::contrast;
    use super::*;

    #[test]
    fn built_in_themes_are_valid() {
        for name in BUILTIN_NAMES {
            for background in [Appearance::Dark, Appearance::Light] {
                assert!(Theme::builtin(name, background, ColorDepth::True).is_some(), "{name}");
            }
        }
        let light = Theme::builtin("system", Appearance::Light, ColorDepth::True).unwrap();
        assert_eq!((light.name(), light.appearance()), ("light", Appearance::Light));
        assert!(Theme::builtin("neon", Appearance::Dark, ColorDepth::True).is_none());
    }

    #[test]
    fn every_load_has_its_own_generation() {
        let theme = || Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap().generation();
        assert_ne!(theme(), theme());
    }

    #[test]
    fn built_in_text_can_be_read_on_its_backgrounds() {
        for (background, page) in [(Appearance::Dark, [0x1a, 0x1b, 0x20]), (Appearance::Light, [0xff; 3])] {
            let theme = Theme::builtin("system", background, ColorDepth::True).unwrap();
            let rgb = |token: Token, default: [u8; 3]| match theme.color(token) {
                Some(Color::Rgb(r, g, b)) => [r, g, b],
                _ => default,
            };
            let ink = if background == Appearance::Dark { [0xe0; 3] } else { [0x20; 3] };
            let boxes = [
                Token::UserMessageBg,
                Token::ToolPendingBg,
                Token::ToolSuccessBg,
                Token::ToolErrorBg,
                Token::SelectedBg,
                Token::CustomMessageBg,
            ];
            for row in TABLE.iter().filter(|row| row.kind == Kind::Foreground) {
                let least = match row.token {
                    Token::Border | Token::BorderMuted | Token::MdHr | Token::MdCodeBlockBorder => 1.3,
                    Token::MdQuoteBorder | Token::ScrollbarTrack | Token::ThinkingOff => 1.3,
                    Token::Dim | Token::ThinkingMinimal | Token::SyntaxComment => 3.0,
                    _ => 4.0,
                };
                let found = contrast(rgb(row.token, ink), page);
                assert!(found >= least, "{}: {} on the page: {found:.2}", theme.name(), row.name);
            }
            for on in boxes {
                for token in [Token::Text, Token::ToolTitle, Token::ToolOutput, Token::Muted, Token::Error] {
                    let found = contrast(rgb(token, ink), rgb(on, page));
                    assert!(found >= 3.5, "{}: {token:?} on {on:?}: {found:.2}", theme.name());
                }
                let subtle = contrast(rgb(on, page), page);
                assert!(subtle < 1.9, "{}: {on:?} is not subtle: {subtle:.2}", theme.name());
            }
        }
    }
}
