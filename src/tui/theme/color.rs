//! Colour values of theme files, and the colours of terminals.

use std::iter;

use ratatui::style::{Color, Style};

use super::Appearance;
use super::tokens::Kind;

/// The number of colours a terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// 24 bits per colour.
    True,
    /// The 256 colours of xterm: 16 that users redefine, a cube of 216, 24 greys.
    Indexed,
    /// The 16 colours that users redefine. Themes have no backgrounds then, because nothing is
    /// known of how text looks on these.
    Ansi,
    /// None: text differs only in weight and marks.
    None,
}

/// A colour in a theme file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThemeColor {
    /// The terminal's default.
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl ThemeColor {
    /// Parses `""`, `#rgb`, `#rrggbb`, `oklch(L% C H)` or `okhsl(H S% L%)`. `None` for anything
    /// else, which may be the name of a variable.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Default);
        }
        if let Some(hex) = text.strip_prefix('#') {
            return parse_hex(hex);
        }
        let (function, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let numbers: Vec<&str> = arguments.split([' ', ',']).filter(|number| !number.is_empty()).collect();
        let [first, second, third] = numbers.as_slice() else { return None };
        let (r, g, b) = match function {
            "oklch" => oklch_to_rgb(fraction(first)?, number(second)?, degrees(third)?),
            "okhsl" => okhsl_to_rgb(degrees(first)?, fraction(second)?, fraction(third)?),
            _ => return None,
        };
        Some(Self::Rgb(r, g, b))
    }

    /// The colour where it does not depend on the terminal.
    pub(super) fn rgb(self) -> Option<[u8; 3]> {
        match self {
            Self::Default => None,
            Self::Indexed(index) => (index >= 16).then(|| indexed_rgb(index)),
            Self::Rgb(r, g, b) => Some([r, g, b]),
        }
    }

    /// The colour on a terminal of `depth`, in a theme for `appearance`; `None` is the
    /// terminal's default.
    pub(super) fn to_terminal(self, depth: ColorDepth, kind: Kind, appearance: Appearance) -> Option<Color> {
        let rgb = match self {
            Self::Default => return None,
            Self::Rgb(r, g, b) => [r, g, b],
            Self::Indexed(index) => match (depth, index) {
                (ColorDepth::True | ColorDepth::Indexed, _) => return Some(Color::Indexed(index)),
                (ColorDepth::Ansi, 0..16) if kind == Kind::Foreground => return Some(Color::Indexed(index)),
                (ColorDepth::Ansi | ColorDepth::None, _) => indexed_rgb(index),
            },
        };
        match (depth, kind) {
            (ColorDepth::True, _) => Some(Color::Rgb(rgb[0], rgb[1], rgb[2])),
            (ColorDepth::Indexed, _) => Some(Color::Indexed(nearest_indexed(rgb))),
            (ColorDepth::Ansi, Kind::Foreground) => nearest_ansi(rgb, appearance),
            (ColorDepth::Ansi, Kind::Background) | (ColorDepth::None, _) => None,
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// `50%` or `0.5`.
fn fraction(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    }
}

fn degrees(text: &str) -> Option<f64> {
    number(text.strip_suffix("deg").unwrap_or(text))
}

fn parse_hex(hex: &str) -> Option<ThemeColor> {
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(hex, 16).ok()?;
    let [_, r, g, b] = match hex.len() {
        // Each digit is doubled: f80 is ff8800.
        3 => {
            let digit = |shift: u32| (value >> shift & 0xf) * 0x11;
            (digit(8) << 16 | digit(4) << 8 | digit(0)).to_be_bytes()
        }
        6 => value.to_be_bytes(),
        _ => return None,
    };
    Some(ThemeColor::Rgb(r, g, b))
}

/// Oklch to sRGB after <https://bottosson.github.io/posts/oklab/>; colours outside
/// sRGB are clipped per channel.
fn oklch_to_rgb(lightness: f64, chroma: f64, hue_degrees: f64) -> (u8, u8, u8) {
    let hue = hue_degrees.to_radians();
    let [r, g, b] = oklab_to_linear(lightness, chroma * hue.cos(), chroma * hue.sin());
    (encode_srgb(r), encode_srgb(g), encode_srgb(b))
}

fn oklab_to_linear(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

/// Okhsl to sRGB after <https://bottosson.github.io/posts/colorpicker/>: saturation
/// is scaled so that 100 % is the edge of sRGB at that hue and lightness. The edge
/// is searched for instead of approximated by polynomials; themes are loaded rarely.
fn okhsl_to_rgb(hue_degrees: f64, saturation: f64, lightness: f64) -> (u8, u8, u8) {
    const MIDDLE: f64 = 0.8;
    if lightness <= 0.0 || lightness >= 1.0 {
        return oklch_to_rgb(lightness.clamp(0.0, 1.0), 0.0, 0.0);
    }
    let saturation = saturation.clamp(0.0, 1.0);
    let (b, a) = hue_degrees.to_radians().sin_cos();
    let inner = toe_inverse(lightness);

    let cusp = cusp_lightness(a, b);
    let cusp_chroma = edge_chroma(cusp, a, b);
    let edge = edge_chroma(inner, a, b);
    let triangle = (inner * cusp_chroma / cusp).min((1.0 - inner) * cusp_chroma / (1.0 - cusp));
    let (s_mid, t_mid) = middle_slopes(a, b);
    let middle = 0.9 * (edge / triangle) * soft_min(inner * s_mid, (1.0 - inner) * t_mid, 4);
    let start = soft_min(inner * 0.4, (1.0 - inner) * 0.8, 2);

    let chroma = if saturation < MIDDLE {
        let t = saturation / MIDDLE;
        let slope = MIDDLE * start;
        t * slope / (1.0 - (1.0 - slope / middle) * t)
    } else {
        let t = (saturation - MIDDLE) / (1.0 - MIDDLE);
        let slope = (1.0 - MIDDLE) * (middle / MIDDLE).powi(2) / start;
        middle + t * slope / (1.0 - (1.0 - slope / (edge - middle)) * t)
    };
    oklch_to_rgb(inner, chroma, hue_degrees)
}

/// Converts a lightness with middle grey in the middle to Oklab's.
fn toe_inverse(lightness: f64) -> f64 {
    const K1: f64 = 0.206;
    const K2: f64 = 0.03;
    const K3: f64 = (1.0 + K1) / (1.0 + K2);
    (lightness * lightness + K1 * lightness) / (K3 * (lightness + K2))
}

/// The smaller of two numbers, smoothed where they meet.
fn soft_min(x: f64, y: f64, power: i32) -> f64 {
    (x.powi(-power) + y.powi(-power)).powf(-1.0 / f64::from(power))
}

/// The maximum chroma in sRGB at a lightness and a hue.
fn edge_chroma(lightness: f64, a: f64, b: f64) -> f64 {
    // The edge of sRGB is slightly concave at blue; without this, the search stops there.
    const TOLERANCE: f64 = 0.001;
    let (mut inside, mut outside) = (0.0, 0.5);
    for _ in 0..40 {
        let chroma = (inside + outside) / 2.0;
        let fits = oklab_to_linear(lightness, chroma * a, chroma * b)
            .iter()
            .all(|channel| (-TOLERANCE..=1.0 + TOLERANCE).contains(channel));
        if fits {
            inside = chroma;
        } else {
            outside = chroma;
        }
    }
    inside
}

/// The lightness with the maximum chroma of a hue.
fn cusp_lightness(a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let third = (high - low) / 3.0;
        if edge_chroma(low + third, a, b) < edge_chroma(high - third, a, b) {
            low += third;
        } else {
            high -= third;
        }
    }
    (low + high) / 2.0
}

/// Slopes of a smooth triangle inside sRGB; polynomials of the page above.
fn middle_slopes(a: f64, b: f64) -> (f64, f64) {
    let s = 0.115_169_93
        + 1.0
            / (7.447_789_70
                + 4.159_012_40 * b
                + a * (-2.195_573_47
                    + 1.751_984_01 * b
                    + a * (-2.137_049_48 - 10.023_010_43 * b
                        + a * (-4.248_945_61 + 5.387_708_19 * b + 4.698_910_13 * a))));
    let t = 0.112_396_42
        + 1.0
            / (1.613_203_20 - 0.681_243_79 * b
                + a * (0.403_706_12
                    + 0.901_481_23 * b
                    + a * (-0.270_879_43
                        + 0.612_239_90 * b
                        + a * (0.002_992_15 - 0.453_995_68 * b - 0.146_618_72 * a))));
    (s, t)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255 before")]
fn encode_srgb(linear: f64) -> u8 {
    let value = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the colours 16..=255; users redefine the first sixteen.
fn nearest_indexed(rgb: [u8; 3]) -> u8 {
    // Channels add up in the distance, so the nearest colour of the cube has the nearest level of each.
    let level = |channel: u8| (0..6).zip(CUBE_LEVELS).min_by_key(|(_, level)| level.abs_diff(channel));
    let [r, g, b] = rgb.map(|channel| level(channel).map_or(0, |(at, _)| at));
    let candidates = iter::once(16 + 36 * r + 6 * g + b).chain(232..=255);
    candidates.min_by_key(|index| distance(rgb, indexed_rgb(*index))).unwrap_or(16)
}

/// The nearest of these colours that `fits`; `None` if none does.
pub(super) fn index_of_256(rgb: [u8; 3], fits: impl Fn([u8; 3]) -> bool) -> Option<u8> {
    let fitting = (16..=255_u8).filter(|index| fits(indexed_rgb(*index)));
    fitting.min_by_key(|index| (distance(rgb, indexed_rgb(*index)), *index))
}

/// Whether a colour is seen as a grey.
pub(super) fn is_greyish([r, g, b]: [u8; 3]) -> bool {
    const LEAST_CHROMA: u8 = 40;
    r.max(g).max(b) - r.min(g).min(b) < LEAST_CHROMA
}

/// The one of the 16 colours with the hue of a text colour, in the half that is told apart from
/// the background; `None`, the default, for greys that are not faint.
fn nearest_ansi(rgb: [u8; 3], appearance: Appearance) -> Option<Color> {
    let [r, g, b] = rgb.map(i32::from);
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    if is_greyish(rgb) {
        let lightness = i32::midpoint(most, least);
        let is_faint = match appearance {
            Appearance::Dark => lightness < 0x98,
            Appearance::Light => lightness > 0x68,
        };
        return is_faint.then_some(Color::Indexed(8));
    }
    let degrees = match most {
        most if most == r => (60 * (g - b) / chroma).rem_euclid(360),
        most if most == g => 60 * (b - r) / chroma + 120,
        _ => 60 * (r - g) / chroma + 240,
    };
    let hue = match degrees {
        21..=70 => 3,
        71..=165 => 2,
        166..=200 => 6,
        201..=255 => 4,
        256..=335 => 5,
        _ => 1,
    };
    Some(Color::Indexed(if appearance == Appearance::Dark { hue + 8 } else { hue }))
}

pub(super) fn indexed_rgb(index: u8) -> [u8; 3] {
    match index {
        232..=255 => [8 + 10 * (index - 232); 3],
        16..=231 => {
            let index = index - 16;
            [index / 36, index / 6 % 6, index % 6].map(|level| CUBE_LEVELS[usize::from(level)])
        }
        _ => [0; 3],
    }
}

/// The colours of xterm, of which users redefine many.
pub(super) const FIRST_16: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// The style of a program's output on a terminal of `depth`. A program that sets both colours means how they differ,
/// so both become the nearest ones.
pub(super) fn style_of_output(style: Style, depth: ColorDepth, appearance: Appearance) -> Style {
    let Style { fg, bg, .. } = style;
    let shown = |color: Color, kind: Kind| {
        let own = match color {
            Color::Rgb(r, g, b) => ThemeColor::Rgb(r, g, b),
            Color::Indexed(index @ 16..) => ThemeColor::Indexed(index),
            named => return (depth != ColorDepth::None).then_some(named),
        };
        let is_with_both = fg.is_some() && bg.is_some();
        match (depth, own.rgb()) {
            (ColorDepth::Ansi, Some(rgb)) if is_with_both || kind == Kind::Background => {
                (0..16).min_by_key(|index| distance(rgb, FIRST_16[usize::from(*index)])).map(Color::Indexed)
            }
            _ => own.to_terminal(depth, kind, appearance),
        }
    };
    Style {
        fg: fg.and_then(|color| shown(color, Kind::Foreground)),
        bg: bg.and_then(|color| shown(color, Kind::Background)),
        ..style
    }
}

/// Squared distance, weighted by the eye's sensitivity per channel.
fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    let squared = |channel: usize| u32::from(a[channel].abs_diff(b[channel])).pow(2);
    3 * squared(0) + 6 * squared(1) + squared(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_only_colors_that_the_terminal_has() {
        let check = |style: Style, depth: ColorDepth, expected: Style| {
            assert_eq!(style_of_output(style, depth, Appearance::Dark), expected, "{style:?} {depth:?}");
        };
        let plain = Style::new();
        let green = plain.fg(Color::Rgb(9, 200, 20)).bold();
        check(green, ColorDepth::True, green);
        check(green, ColorDepth::Indexed, plain.fg(Color::Indexed(40)).bold());
        check(green, ColorDepth::Ansi, plain.fg(Color::Indexed(10)).bold());
        check(green, ColorDepth::None, plain.bold());
        let orange = plain.fg(Color::Indexed(208));
        check(orange, ColorDepth::Indexed, orange);
        check(orange, ColorDepth::Ansi, plain.fg(Color::Indexed(11)));
        let both = plain.fg(Color::Rgb(0, 0, 0)).bg(Color::Rgb(250, 250, 250));
        check(both, ColorDepth::Ansi, plain.fg(Color::Indexed(0)).bg(Color::Indexed(15)));
        for named in [plain.red().on_white(), plain.fg(Color::Indexed(3))] {
            for depth in [ColorDepth::True, ColorDepth::Indexed, ColorDepth::Ansi] {
                check(named, depth, named);
            }
            check(named, ColorDepth::None, plain);
        }
    }

    #[test]
    fn no_indexed_color_is_nearer() {
        let levels = || (0..=255_u8).step_by(11);
        let pairs = levels().flat_map(|r| levels().map(move |g| (r, g)));
        for rgb in pairs.flat_map(|(r, g)| levels().map(move |b| [r, g, b])) {
            assert_eq!(Some(nearest_indexed(rgb)), index_of_256(rgb, |_| true), "{rgb:?}");
        }
    }

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
            ("okhsl(29.234 100% 56.808%)", Some(ThemeColor::Rgb(255, 0, 0))),
            ("okhsl(264.05 100% 36.656%)", Some(ThemeColor::Rgb(0, 0, 255))),
            ("okhsl(120 0% 100%)", Some(ThemeColor::Rgb(255, 255, 255))),
            ("okhsl(120 0% 50%)", Some(ThemeColor::Rgb(119, 119, 119))),
            ("hsl(1 2% 3%)", None),
            ("accent", None),
        ] {
            assert_eq!(ThemeColor::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn text_keeps_its_hue_in_16_colours_and_backgrounds_are_left_out() {
        let check = |rgb: (u8, u8, u8), appearance, expected: Option<u8>| {
            let color = ThemeColor::Rgb(rgb.0, rgb.1, rgb.2);
            let text = color.to_terminal(ColorDepth::Ansi, Kind::Foreground, appearance);
            assert_eq!(text, expected.map(Color::Indexed), "{rgb:?}");
            assert_eq!(color.to_terminal(ColorDepth::Ansi, Kind::Background, appearance), None);
            assert_eq!(color.to_terminal(ColorDepth::None, Kind::Foreground, appearance), None);
        };
        check((0xcc, 0x44, 0x44), Appearance::Dark, Some(9));
        check((0xcc, 0x44, 0x44), Appearance::Light, Some(1));
        check((0x70, 0xc0, 0x70), Appearance::Dark, Some(10));
        check((0xd7, 0xaf, 0x40), Appearance::Dark, Some(11));
        check((0x60, 0x80, 0xd0), Appearance::Dark, Some(12));
        check((0xb0, 0x70, 0xc0), Appearance::Dark, Some(13));
        check((0x40, 0xb0, 0xb8), Appearance::Dark, Some(14));
        check((0xe0, 0xe0, 0xe0), Appearance::Dark, None);
        check((0x70, 0x70, 0x70), Appearance::Dark, Some(8));
        check((0x20, 0x20, 0x20), Appearance::Light, None);
        let own = ThemeColor::Indexed(3);
        let of = |kind| own.to_terminal(ColorDepth::Ansi, kind, Appearance::Dark);
        assert_eq!((of(Kind::Foreground), of(Kind::Background)), (Some(Color::Indexed(3)), None));
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
