//! Colour values of theme files, and the colours a terminal can show.

use ratatui::style::Color;

/// How many colours the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// 24 bits per colour.
    True,
    /// The 256 colours of xterm: 16 that users redefine, a cube of 216, 24 greys.
    Indexed,
}

/// A colour as a theme file gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThemeColor {
    /// The terminal's default.
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl ThemeColor {
    /// Reads `""`, `#rgb`, `#rrggbb` or `oklch(L% C H)`. `None` for anything else,
    /// which may be the name of a variable.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Default);
        }
        if let Some(hex) = text.strip_prefix('#') {
            return parse_hex(hex);
        }
        let arguments = text.strip_prefix("oklch(")?.strip_suffix(')')?;
        let numbers: Vec<&str> = arguments.split([' ', ',']).filter(|number| !number.is_empty()).collect();
        let [lightness, chroma, hue] = numbers.as_slice() else { return None };
        let lightness = match lightness.strip_suffix('%') {
            Some(percent) => number(percent)? / 100.0,
            None => number(lightness)?,
        };
        let hue = number(hue.strip_suffix("deg").unwrap_or(hue))?;
        let (r, g, b) = oklch_to_rgb(lightness, number(chroma)?, hue);
        Some(Self::Rgb(r, g, b))
    }

    pub(super) fn to_terminal(self, depth: ColorDepth) -> Option<Color> {
        match (self, depth) {
            (Self::Default, _) => None,
            (Self::Indexed(index), _) => Some(Color::Indexed(index)),
            (Self::Rgb(r, g, b), ColorDepth::True) => Some(Color::Rgb(r, g, b)),
            (Self::Rgb(r, g, b), ColorDepth::Indexed) => Some(Color::Indexed(nearest_indexed([r, g, b]))),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

fn parse_hex(hex: &str) -> Option<ThemeColor> {
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(hex, 16).ok()?;
    let [_, r, g, b] = match hex.len() {
        // Each digit stands for itself twice: f80 is ff8800.
        3 => {
            let digit = |shift: u32| (value >> shift & 0xf) * 0x11;
            (digit(8) << 16 | digit(4) << 8 | digit(0)).to_be_bytes()
        }
        6 => value.to_be_bytes(),
        _ => return None,
    };
    Some(ThemeColor::Rgb(r, g, b))
}

/// Oklab to sRGB after <https://bottosson.github.io/posts/oklab/>; colours outside
/// of sRGB are clipped per channel.
fn oklch_to_rgb(lightness: f64, chroma: f64, hue_degrees: f64) -> (u8, u8, u8) {
    let (a, b) = (chroma * hue_degrees.to_radians().cos(), chroma * hue_degrees.to_radians().sin());
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    (
        encode_srgb(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        encode_srgb(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        encode_srgb(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s),
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255 before")]
fn encode_srgb(linear: f64) -> u8 {
    let value = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the colours 16..=255; users redefine the first sixteen.
fn nearest_indexed(rgb: [u8; 3]) -> u8 {
    let candidates = (16..=255_u8).map(|index| (distance(rgb, indexed_rgb(index)), index));
    candidates.min().map_or(16, |(_, index)| index)
}

fn indexed_rgb(index: u8) -> [u8; 3] {
    match index {
        232..=255 => [8 + 10 * (index - 232); 3],
        16..=231 => {
            let index = index - 16;
            [index / 36, index / 6 % 6, index % 6].map(|level| CUBE_LEVELS[usize::from(level)])
        }
        _ => [0; 3],
    }
}

/// Squared distance, weighted by how well the eye tells the channels apart.
fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    let squared = |channel: usize| u32::from(a[channel].abs_diff(b[channel])).pow(2);
    3 * squared(0) + 6 * squared(1) + squared(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_of_theme_files() {
        for (text, expected) in [
            ("", Some(ThemeColor::Default)),
            ("#f80", Some(ThemeColor::Rgb(0xff, 0x88, 0))),
            ("#12aBcd", Some(ThemeColor::Rgb(0x12, 0xab, 0xcd))),
            ("#12345", None),
            ("#+12345", None),
            ("#日本", None),
            ("oklch(100% 0 0)", Some(ThemeColor::Rgb(255, 255, 255))),
            ("oklch(62.8% 0.2577 29.23)", Some(ThemeColor::Rgb(255, 0, 0))),
            ("oklch(nan 0 0)", None),
            ("oklch(1)", None),
            ("accent", None),
        ] {
            assert_eq!(ThemeColor::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn falls_back_to_the_nearest_of_256() {
        for (rgb, expected) in [
            ([0, 0, 0], 16),
            ([255, 255, 255], 231),
            ([8, 8, 8], 232),
            ([95, 135, 175], 67),
            ([128, 128, 128], 244),
        ] {
            assert_eq!(nearest_indexed(rgb), expected, "{rgb:?}");
        }
    }
}
