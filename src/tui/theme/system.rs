//! The theme `system`: derived from the colours of the terminal.
//!
//! Text keeps the terminal's colours; each token takes its hue from one of the 16 that users
//! choose and moves towards white or black until it can be read on the page and in every box.
//! Boxes are the background with a tint, as much as text on them allows.

use ratatui::style::Color;

use super::Appearance;
use super::color::ThemeColor;
use super::tokens::{Kind, TABLE, Token};

/// A colour: red, green and blue.
pub type Rgb = [u8; 3];

/// The colours of a terminal, as far as it told them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalColors {
    pub foreground: Option<Rgb>,
    pub background: Option<Rgb>,
    /// The 16 colours that users choose.
    pub palette: [Option<Rgb>; 16],
}

impl TerminalColors {
    /// Whether text is lighter than the background; `None` if the background is unknown.
    pub fn appearance(&self) -> Option<Appearance> {
        let background = self.background?;
        let is_dark = match self.foreground {
            Some(text) if contrast(text, background) > 1.5 => luminance(text) > luminance(background),
            _ => contrast(WHITE, background) >= contrast(BLACK, background),
        };
        Some(if is_dark { Appearance::Dark } else { Appearance::Light })
    }
}

const WHITE: Rgb = [255; 3];
const BLACK: Rgb = [0; 3];

/// Least contrast of text (WCAG 2, AA), of hints, and of lines.
pub(super) const TEXT: f64 = 4.5;
const HINT: f64 = 3.0;
const LINE: f64 = 1.3;

/// Where a token's colour comes from.
enum Source {
    /// The terminal's own text colour.
    Default,
    /// One of the 16 colours.
    Hue(usize),
    /// Text, so much nearer to the background, in percent.
    Faded(u16),
    /// The background with so much of one of the 16 colours, in percent.
    Tint(usize, u16),
    /// The background with so much of the text colour, in percent.
    Raised(u16),
}

const RED: usize = 1;
const GREEN: usize = 2;
const YELLOW: usize = 3;
const BLUE: usize = 4;
const MAGENTA: usize = 5;
const CYAN: usize = 6;
const BRIGHT: usize = 8;

fn source(token: Token) -> (Source, f64) {
    use Source::{Default, Faded, Hue, Raised, Tint};
    use Token as T;
    match token {
        T::Text | T::UserMessageText | T::CustomMessageText | T::ToolTitle | T::SearchMatchText => {
            (Default, TEXT)
        }
        T::SyntaxVariable => (Default, TEXT),
        T::ToolOutput | T::MdCodeBlock | T::MdQuote | T::SyntaxOperator => (Faded(15), TEXT),
        T::Muted | T::ThinkingText | T::MdLinkUrl | T::ToolDiffContext | T::SyntaxPunctuation => {
            (Faded(35), TEXT)
        }
        T::ScrollbarThumb => (Faded(35), HINT),
        T::SyntaxComment => (Faded(45), HINT),
        T::Dim | T::ThinkingMinimal => (Faded(50), HINT),
        T::Border | T::MdCodeBlockBorder | T::MdQuoteBorder | T::MdHr | T::ThinkingOff => (Faded(70), LINE),
        T::BorderMuted | T::ScrollbarTrack => (Faded(78), LINE),
        T::Error | T::ToolDiffRemoved | T::ThinkingMax => (Hue(RED), TEXT),
        T::Success | T::ToolDiffAdded | T::SyntaxString | T::BashMode => (Hue(GREEN), TEXT),
        T::Warning | T::MdHeading | T::SyntaxNumber => (Hue(YELLOW), TEXT),
        T::MdLink | T::SyntaxFunction | T::ThinkingLow => (Hue(BLUE), TEXT),
        T::CustomMessageLabel | T::SyntaxKeyword | T::ThinkingHigh => (Hue(MAGENTA), TEXT),
        T::ThinkingXhigh => (Hue(MAGENTA + BRIGHT), TEXT),
        T::Accent | T::BorderAccent | T::MdCode | T::MdListBullet => (Hue(CYAN), TEXT),
        T::SyntaxType | T::ThinkingMedium => (Hue(CYAN), TEXT),
        T::SelectedBg => (Tint(BLUE, 22), TEXT),
        T::SearchMatchBg => (Tint(YELLOW, 25), TEXT),
        T::UserMessageBg => (Raised(9), TEXT),
        T::CustomMessageBg => (Tint(MAGENTA, 12), TEXT),
        T::ToolPendingBg => (Raised(5), TEXT),
        T::ToolSuccessBg => (Tint(GREEN, 9), TEXT),
        T::ToolErrorBg => (Tint(RED, 12), TEXT),
    }
}

/// The colours of all tokens. `own` are those of the built-in theme for such a background, for
/// hues that the terminal did not tell. `None` if the background is unknown.
pub(super) fn derive(
    terminal: &TerminalColors,
    own: &[ThemeColor; TABLE.len()],
) -> Option<[ThemeColor; TABLE.len()]> {
    let background = terminal.background?;
    let page = Page::new(terminal, background);
    let hue = |index: usize, token: Token| {
        let known = terminal.palette.get(index).copied().flatten();
        known.or(own[token.index()].rgb()).unwrap_or(page.text)
    };
    let boxes: Vec<Rgb> = TABLE
        .iter()
        .filter(|row| row.kind == Kind::Background)
        .map(|row| page.color_of_box(row.token, &hue))
        .collect();
    let all: Vec<Rgb> = boxes.iter().copied().chain([background]).collect();
    let color = |index: usize| {
        let token = TABLE[index].token;
        let (source, least) = source(token);
        let on: &[Rgb] = if least > LINE { &all } else { &[background] };
        let [red, green, blue] = match source {
            Source::Default if page.is_own_text => return ThemeColor::Default,
            Source::Default => page.text,
            Source::Hue(index) => page.readable(hue(index, token), on, least),
            Source::Faded(percent) => page.readable(mix(page.text, background, percent), on, least),
            Source::Tint(..) | Source::Raised(_) => page.color_of_box(token, &hue),
        };
        ThemeColor::Rgb(red, green, blue)
    };
    Some(std::array::from_fn(color))
}

/// `color`, the one of the 16 colours that `token` has, if it can be read on the terminal's
/// background; otherwise its other half, bright or not, or blue for cyan; `None`, the terminal's
/// own text, if these cannot be read either. Colours that the terminal did not report stay.
pub(super) fn readable_of_16(color: Option<Color>, terminal: &TerminalColors, token: Token) -> Option<Color> {
    let Some(Color::Indexed(wanted @ 0..16)) = color else { return color };
    let Some(background) = terminal.background else { return color };
    let (_, least) = source(token);
    let rgb = |index: u8| terminal.palette.get(usize::from(index)).copied().flatten();
    let contrast_of = |index: u8| rgb(index).map(|rgb| contrast(rgb, background));
    let Some(own) = contrast_of(wanted) else { return color };
    let with_other_half = |index: u8| [index, index ^ 8];
    let candidates = match usize::from(wanted % 8) {
        // Black and bright black are greys, and lead to no hue.
        0 => vec![wanted],
        CYAN => [with_other_half(wanted), with_other_half(wanted - 2)].concat(),
        _ => with_other_half(wanted).to_vec(),
    };
    if own >= least {
        return color;
    }
    // The user chose these colours, so less contrast than in other themes will do.
    let enough = least.min(HINT);
    let readable = |least: f64| {
        candidates.iter().copied().find(|index| contrast_of(*index).is_some_and(|contrast| contrast >= least))
    };
    readable(least).or_else(|| readable(enough)).map(Color::Indexed)
}

/// The background, and text on it.
struct Page {
    background: Rgb,
    text: Rgb,
    /// Whether `text` is the terminal's own.
    is_own_text: bool,
    /// White or black: what has more contrast in the direction of the text.
    end: Rgb,
}

impl Page {
    fn new(terminal: &TerminalColors, background: Rgb) -> Self {
        let wanted = if terminal.appearance() == Some(Appearance::Light) { BLACK } else { WHITE };
        let other = if wanted == WHITE { BLACK } else { WHITE };
        // On middle greys only one of the two can be read.
        let end = if contrast(wanted, background) >= TEXT { wanted } else { other };
        let own = terminal.foreground.filter(|text| contrast(*text, background) >= TEXT);
        let usual = mix(end, background, 10);
        let page = Self { background, text: end, is_own_text: own.is_some(), end };
        let text =
            own.unwrap_or_else(|| page.readable(terminal.foreground.unwrap_or(usual), &[background], TEXT));
        Self { text, ..page }
    }

    /// `color`, as near to white or black as its contrast needs.
    fn readable(&self, color: Rgb, on: &[Rgb], least: f64) -> Rgb {
        readable(color, self.end, on, least)
    }

    /// The colour of a box: as much of its tint as leaves text readable.
    fn color_of_box(&self, token: Token, hue: &impl Fn(usize, Token) -> Rgb) -> Rgb {
        let (tint, most) = match source(token).0 {
            Source::Tint(index, percent) => (hue(index, token), percent),
            Source::Raised(percent) => (self.text, percent),
            Source::Default | Source::Hue(_) | Source::Faded(_) => return self.background,
        };
        let tints = (0..=most).rev().map(|percent| mix(self.background, tint, percent));
        let mut readable = tints.filter(|below| contrast(self.text, *below) >= TEXT);
        readable.next().unwrap_or(self.background)
    }
}

/// `color`, as near to `end` as its contrast with all backgrounds needs.
pub(super) fn readable(color: Rgb, end: Rgb, on: &[Rgb], least: f64) -> Rgb {
    const STEPS: u16 = 50;
    let is_enough = |color: &Rgb| on.iter().all(|below| contrast(*color, *below) >= least);
    let mut tries = (0..STEPS).map(|step| mix(color, end, step * 100 / STEPS));
    tries.find(is_enough).unwrap_or(end)
}

/// The contrast that text of a token needs.
pub(super) fn least_contrast(token: Token) -> f64 {
    source(token).1
}

/// `a` with so much of `b`, in percent.
pub(super) fn mix(a: Rgb, b: Rgb, percent: u16) -> Rgb {
    let percent = percent.min(100);
    let channel = |at: usize| (u16::from(a[at]) * (100 - percent) + u16::from(b[at]) * percent + 50) / 100;
    std::array::from_fn(|at| u8::try_from(channel(at)).unwrap_or(u8::MAX))
}

/// Contrast ratio of WCAG 2 between two sRGB colours, from 1 to 21.
pub(super) fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    if a > b { a / b } else { b / a }
}

fn luminance(rgb: Rgb) -> f64 {
    let [r, g, b] = rgb.map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::super::color::FIRST_16;
    use super::super::{ColorDepth, Theme};
    use super::*;
    use proptest::prelude::*;

    fn theme(colors: &TerminalColors) -> Theme {
        Theme::system(colors, Appearance::Dark, ColorDepth::True)
    }

    fn rgb(theme: &Theme, token: Token, default: Rgb) -> Rgb {
        match theme.color(token) {
            Some(Color::Rgb(r, g, b)) => [r, g, b],
            _ => default,
        }
    }

    /// A light theme of many terminals (Solarized).
    fn solarized_light() -> TerminalColors {
        let mut colors = TerminalColors {
            foreground: Some([0x58, 0x6e, 0x75]),
            background: Some([0xfd, 0xf6, 0xe3]),
            ..TerminalColors::default()
        };
        let hues = [[0xdc, 0x32, 0x2f], [0x85, 0x99, 0], [0xb5, 0x89, 0], [0x26, 0x8b, 0xd2]];
        for (slot, hue) in colors.palette[1..].iter_mut().zip(hues) {
            *slot = Some(hue);
        }
        colors
    }

    #[test]
    fn tokens_take_their_hues_from_the_terminal() {
        let colors = solarized_light();
        let theme = theme(&colors);
        assert_eq!((theme.name(), theme.appearance()), ("system", Appearance::Light));
        assert_eq!(theme.color(Token::Text), None, "the terminal's own text can be read");
        let [red, green, blue] = rgb(&theme, Token::Error, [0; 3]);
        assert!(red > 2 * green && red > 2 * blue, "errors are red");
        let [red, green, blue] = rgb(&theme, Token::MdLink, [0; 3]);
        assert!(blue > green && green > red, "links are blue");
        assert!(contrast([red, green, blue], colors.background.unwrap()) >= TEXT);
        // Not told: the hue of the built-in theme.
        assert!(matches!(theme.color(Token::SyntaxKeyword), Some(Color::Rgb(..))));
    }

    #[test]
    fn without_a_background_the_theme_is_built_in() {
        for appearance in [Appearance::Dark, Appearance::Light] {
            let own = Theme::builtin("system", appearance, ColorDepth::True).unwrap();
            let theme = Theme::system(&TerminalColors::default(), appearance, ColorDepth::True);
            assert!(TABLE.iter().all(|row| theme.color(row.token) == own.color(row.token)));
            assert_eq!(theme.appearance(), appearance);
        }
    }

    fn colors() -> impl Strategy<Value = TerminalColors> {
        let color = || prop::option::weighted(0.8, any::<Rgb>());
        let palette = prop::collection::vec(color(), 16);
        (color(), any::<Rgb>(), palette).prop_map(|(foreground, background, palette)| TerminalColors {
            foreground,
            background: Some(background),
            palette: palette.try_into().unwrap(),
        })
    }

    /// The palette of xterm on this background.
    fn xterm(foreground: Rgb, background: Rgb) -> TerminalColors {
        TerminalColors {
            foreground: Some(foreground),
            background: Some(background),
            palette: FIRST_16.map(Some),
        }
    }

    #[test]
    fn pale_ones_of_16_colours_give_way_to_others_or_to_the_text_colour() {
        let check = |colors: &TerminalColors, expected: [(Token, Option<u8>); 6]| {
            let theme = Theme::system(colors, Appearance::Dark, ColorDepth::Ansi);
            for (token, index) in expected {
                assert_eq!(theme.color(token), index.map(Color::Indexed), "{token:?}");
            }
        };
        check(
            &xterm(BLACK, WHITE),
            [
                (Token::MdHeading, None),
                (Token::Accent, Some(4)),
                (Token::Success, None),
                (Token::Error, Some(1)),
                (Token::MdLink, Some(4)),
                (Token::Dim, Some(8)),
            ],
        );
        check(
            &xterm(WHITE, BLACK),
            [
                (Token::MdHeading, Some(11)),
                (Token::Accent, Some(14)),
                (Token::Success, Some(10)),
                (Token::Error, Some(9)),
                (Token::MdLink, Some(12)),
                (Token::Dim, Some(8)),
            ],
        );
        // Solarized: its eighth colour is the background of the dark variant.
        let mut solarized = xterm(WHITE, [0, 0x2b, 0x36]);
        solarized.palette[8] = Some([0, 0x2b, 0x36]);
        let theme = Theme::system(&solarized, Appearance::Dark, ColorDepth::Ansi);
        assert_eq!((theme.color(Token::Dim), theme.color(Token::Border)), (None, None));
    }

    #[test]
    fn colours_that_the_terminal_did_not_tell_stay() {
        let white = TerminalColors { background: Some(WHITE), ..TerminalColors::default() };
        let theme = Theme::system(&white, Appearance::Dark, ColorDepth::Ansi);
        assert_eq!(theme.color(Token::MdHeading), Some(Color::Indexed(3)));
    }

    proptest! {
        #[test]
        fn what_is_used_of_16_colours_can_be_read(colors in colors()) {
            let theme = Theme::system(&colors, Appearance::Dark, ColorDepth::Ansi);
            let page = colors.background.unwrap();
            for row in TABLE.iter().filter(|row| row.kind == Kind::Foreground) {
                let Some(Color::Indexed(index)) = theme.color(row.token) else { continue };
                let Some(shown) = colors.palette[usize::from(index)] else { continue };
                let least = source(row.token).1.min(HINT);
                prop_assert!(contrast(shown, page) >= least, "{} is {index}", row.name);
            }
        }

        #[test]
        fn text_can_be_read_on_any_palette(colors in colors()) {
            let theme = theme(&colors);
            let page = colors.background.unwrap();
            let text = rgb(&theme, Token::Text, colors.foreground.unwrap_or(page));
            let boxes = TABLE.iter().filter(|row| row.kind == Kind::Background);
            let all: Vec<Rgb> = boxes.map(|row| rgb(&theme, row.token, page)).chain([page]).collect();
            for row in TABLE.iter().filter(|row| row.kind == Kind::Foreground) {
                let (_, least) = source(row.token);
                let on: &[Rgb] = if least > LINE { &all } else { &[page] };
                for below in on {
                    let found = contrast(rgb(&theme, row.token, text), *below);
                    prop_assert!(found >= least, "{} on {below:?}: {found:.2}", row.name);
                }
            }
        }
    }
}
