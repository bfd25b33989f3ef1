//! Pictures in the formats of terminals.
//!
//! A picture that is drawn over the text is divided into strips, one for each of its rows, of
//! exactly the height of a cell: a row is then drawn wherever it is on the screen, whatever else
//! of the picture is there, and no strip makes the terminal scroll. All strips of a sixel picture
//! share their colours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use color_quant::NeuQuant;
use image::imageops;
use image::{Rgba, RgbaImage};

use super::super::text::{PictureFormat, PictureKey};
use crate::util::image::png_of_rgba;

/// Most colours of a sixel picture: what most terminals have.
const N_COLORS: usize = 256;
/// One pixel of so many decides about the colours: a balance of time and quality.
const SAMPLED: i32 = 10;
/// Pixels that are less opaque are not drawn.
const LEAST_ALPHA: u8 = 128;
/// Rows of pixels of a sixel.
const BAND: u32 = 6;

/// The sequences that draw each row of a picture at the cursor. `pixels` is the picture, at most
/// as large as its cells. `None` if the format has no strips.
pub fn picture_strips(key: PictureKey, pixels: &RgbaImage) -> Option<Vec<Vec<u8>>> {
    let (width, height) = (u32::from(key.cell.0.max(1)), u32::from(key.cell.1.max(1)));
    let size = (u32::from(key.size.columns) * width, u32::from(key.size.rows) * height);
    // The rest of the last cells stays transparent.
    let mut whole = RgbaImage::new(size.0, size.1);
    imageops::replace(&mut whole, pixels, 0, 0);
    let strips = (0..u32::from(key.size.rows)).map(|row| row * height);
    match key.format {
        PictureFormat::Kitty | PictureFormat::KittyInTmux => None,
        PictureFormat::Iterm => strips
            .map(|top| {
                let strip = imageops::crop_imm(&whole, 0, top, size.0, height).to_image();
                iterm(key.size.columns, &png_of_rgba(size.0, height, strip.into_raw())?)
            })
            .collect(),
        PictureFormat::Sixel => {
            let indexed = Indexed::new(whole);
            Some(strips.map(|top| indexed.sixel(top, height)).collect())
        }
    }
}

/// See <https://iterm2.com/documentation-images.html>. `WezTerm` would move the cursor to the
/// next row; others ignore the key.
fn iterm(columns: u16, png: &[u8]) -> Option<Vec<u8>> {
    let keys = format!("inline=1;size={};width={columns};height=1", png.len());
    let image = STANDARD.encode(png);
    let sequence = format!("\x1b]1337;File={keys};preserveAspectRatio=0;doNotMoveCursor=1:{image}\x07");
    Some(sequence.into_bytes())
}

/// A picture with few colours.
struct Indexed {
    width: u32,
    /// Red, green and blue in percent.
    colors: Vec<[u32; 3]>,
    /// The colour of each pixel; `None` is transparent.
    pixels: Vec<Option<u8>>,
}

impl Indexed {
    fn new(mut picture: RgbaImage) -> Self {
        let is_opaque: Vec<bool> = picture.pixels().map(|pixel| pixel.0[3] >= LEAST_ALPHA).collect();
        for (pixel, is_opaque) in picture.pixels_mut().zip(&is_opaque) {
            // Transparent pixels must not take colours from the others.
            *pixel =
                if *is_opaque { Rgba([pixel.0[0], pixel.0[1], pixel.0[2], u8::MAX]) } else { Rgba([0; 4]) };
        }
        let map = NeuQuant::new(SAMPLED, N_COLORS, &picture);
        // Dithering looks at the next pixel and row.
        if picture.width() > 1 && picture.height() > 1 {
            imageops::dither(&mut picture, &map);
        }
        let percent = |channel: u8| (u32::from(channel) * 100 + 127) / 255;
        let colors = map.color_map_rgb();
        let colors = colors.as_chunks::<3>().0.iter().map(|color| color.map(percent));
        let index = |pixel: &Rgba<u8>| u8::try_from(map.index_of(&pixel.0)).unwrap_or(u8::MAX);
        let pixels =
            picture.pixels().zip(is_opaque).map(|(pixel, is_opaque)| is_opaque.then(|| index(pixel)));
        Self { width: picture.width(), colors: colors.collect(), pixels: pixels.collect() }
    }

    /// The rows of pixels from `top` on. No line feed follows the last band: the terminal would
    /// count it as another row.
    /// See <https://vt100.net/docs/vt3xx-gp/chapter14.html>.
    fn sixel(&self, top: u32, height: u32) -> Vec<u8> {
        let width = self.width.max(1) as usize;
        let from = (top as usize * width).min(self.pixels.len());
        let until = ((top + height) as usize * width).min(self.pixels.len());
        let pixels = &self.pixels[from..until];
        let mut used: Vec<u8> = pixels.iter().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        // Pixels that are not drawn keep what is there; pixels are square.
        let mut out = format!("\x1bP0;1;0q\"1;1;{width};{height}").into_bytes();
        for color in &used {
            let [red, green, blue] = self.colors.get(usize::from(*color)).copied().unwrap_or_default();
            out.extend(format!("#{color};2;{red};{green};{blue}").bytes());
        }
        for (nth, band) in pixels.chunks(width * BAND as usize).enumerate() {
            if nth > 0 {
                out.push(b'-');
            }
            write_band(band, width, &used, &mut out);
        }
        out.extend(b"\x1b\\");
        out
    }
}

/// Writes up to six rows of pixels, one colour after the other.
fn write_band(band: &[Option<u8>], width: usize, used: &[u8], out: &mut Vec<u8>) {
    // The bits of each colour and column.
    let mut bits = vec![0_u8; used.len() * width];
    for (at, pixel) in band.iter().enumerate() {
        if let Some(color) = pixel.and_then(|color| used.binary_search(&color).ok()) {
            bits[color * width + at % width] |= 1 << (at / width);
        }
    }
    let mut is_first = true;
    for (color, bits) in used.iter().zip(bits.chunks(width)) {
        let Some(last) = bits.iter().rposition(|bits| *bits > 0) else { continue };
        if !std::mem::replace(&mut is_first, false) {
            out.push(b'$');
        }
        out.extend(format!("#{color}").bytes());
        for run in bits[..=last].chunk_by(|a, b| a == b) {
            let sixel = b'?' + run[0];
            match run.len() {
                n @ ..=3 => out.extend(std::iter::repeat_n(sixel, n)),
                n => out.extend(format!("!{n}{}", char::from(sixel)).bytes()),
            }
        }
    }
}

/// The sequences that hand a PNG file to a terminal with the kitty graphics protocol, which does
/// not answer, and that give it its size.
pub(super) fn kitty(key: PictureKey, png: Option<&[u8]>) -> Vec<u8> {
    let (id, size) = (key.id.get(), key.size);
    let mut commands = png.map(|png| transmitted(id, png)).unwrap_or_default();
    commands.push(format!("\x1b_Ga=p,U=1,i={id},p=1,c={},r={},q=2\x1b\\", size.columns, size.rows));
    if key.format == PictureFormat::KittyInTmux {
        commands.iter_mut().for_each(|command| *command = passed_through(command));
    }
    commands.concat().into_bytes()
}

fn transmitted(id: u32, png: &[u8]) -> Vec<String> {
    // A chunk has at most 4096 bytes, see
    // <https://sw.kovidgoyal.net/kitty/graphics-protocol/#remote-client>.
    let chunks = png.chunks(4096 / 4 * 3);
    let last = chunks.len().saturating_sub(1);
    let command = |(nth, chunk): (usize, &[u8])| {
        let keys = if nth == 0 { format!("a=t,f=100,i={id},q=2,") } else { String::new() };
        let more = u8::from(nth < last);
        format!("\x1b_G{keys}m={more};{}\x1b\\", STANDARD.encode(chunk))
    };
    chunks.enumerate().map(command).collect()
}

/// A sequence that tmux hands to its terminal, if `allow-passthrough` is on.
fn passed_through(sequence: &str) -> String {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::text::{PictureId, PictureSize};
    use super::*;

    fn key(format: PictureFormat, columns: u16, rows: u16, cell: (u16, u16)) -> PictureKey {
        PictureKey { id: PictureId::of_hash(6), size: PictureSize { columns, rows }, cell, format }
    }

    #[test]
    fn pictures_for_placeholders_are_sent_in_chunks_and_placed() {
        let picture =
            |png: Option<&[u8]>, format| String::from_utf8(kitty(key(format, 20, 9, (10, 20)), png)).unwrap();
        let place = "\x1b_Ga=p,U=1,i=7,p=1,c=20,r=9,q=2\x1b\\";
        assert_eq!(picture(None, PictureFormat::Kitty), place);
        let short = format!("\x1b_Ga=t,f=100,i=7,q=2,m=0;YWJj\x1b\\{place}");
        assert_eq!(picture(Some(b"abc"), PictureFormat::Kitty), short);
        let long = picture(Some(&[0; 3072 * 2 + 1]), PictureFormat::Kitty);
        let chunks: Vec<&str> = long.split_inclusive("\x1b\\").collect();
        let starts = ["\x1b_Ga=t,f=100,i=7,q=2,m=1;AAAA", "\x1b_Gm=1;AAAA", "\x1b_Gm=0;AA==", place];
        assert!(
            chunks.len() == 4 && chunks.iter().zip(starts).all(|(chunk, start)| chunk.starts_with(start))
        );
        let in_tmux = picture(None, PictureFormat::KittyInTmux);
        assert_eq!(in_tmux, "\x1bPtmux;\x1b\x1b_Ga=p,U=1,i=7,p=1,c=20,r=9,q=2\x1b\x1b\\\x1b\\");
    }

    /// A row of pixels; `None` is not drawn.
    type Pixels = Vec<Option<[u8; 3]>>;

    /// The pixels that a sixel sequence draws, and the size that it claims.
    fn decode(sixel: &[u8]) -> (Vec<Pixels>, (usize, usize)) {
        let text = std::str::from_utf8(sixel).unwrap();
        let body = text.strip_prefix("\x1bP0;1;0q\"1;1;").unwrap().strip_suffix("\x1b\\").unwrap();
        let numbers = |text: &str| -> (Vec<u32>, usize) {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(text.len());
            (text[..end].split(';').map(|number| number.parse().unwrap()).collect(), end)
        };
        let (size, mut at) = numbers(body);
        let (width, height) = (size[0] as usize, size[1] as usize);
        let mut rows = vec![vec![None; width]; height];
        let mut colors = std::collections::HashMap::new();
        let (mut x, mut top, mut color, mut repeat) = (0, 0, [0; 3], 1);
        while let Some(c) = body[at..].chars().next() {
            at += 1;
            match c {
                '#' => {
                    let (color_numbers, n) = numbers(&body[at..]);
                    at += n;
                    if let [number, 2, r, g, b] = color_numbers[..] {
                        colors.insert(number, [r, g, b].map(|p| u8::try_from((p * 255 + 50) / 100).unwrap()));
                    } else {
                        color = colors[&color_numbers[0]];
                    }
                }
                '!' => {
                    let (count, n) = numbers(&body[at..]);
                    at += n;
                    repeat = count[0] as usize;
                }
                '$' => x = 0,
                '-' => (x, top) = (0, top + 6),
                '?'..='~' => {
                    let bits = c as u8 - b'?';
                    for _ in 0..std::mem::replace(&mut repeat, 1) {
                        for y in (0..6).filter(|y| bits & (1 << y) > 0) {
                            rows[top + y][x] = Some(color);
                        }
                        x += 1;
                    }
                }
                other => panic!("{other:?} is no part of a sixel"),
            }
        }
        (rows, (width, height))
    }

    fn gradient(width: u32, height: u32) -> RgbaImage {
        RgbaImage::from_fn(width, height, |x, y| {
            let alpha = if x < 3 { 0 } else { 255 };
            Rgba([(x * 255 / width) as u8, (y * 255 / height) as u8, 90, alpha])
        })
    }

    #[test]
    fn strips_of_a_sixel_picture_show_its_pixels_row_by_row() {
        // A height that no sixel divides, and a picture that does not fill its last cells.
        let picture = gradient(75, 50);
        let strips = picture_strips(key(PictureFormat::Sixel, 8, 3, (10, 20)), &picture).unwrap();
        assert_eq!(strips.len(), 3);
        let (mut n_drawn, mut difference) = (0, 0);
        for (nth, strip) in strips.iter().enumerate() {
            let (rows, size) = decode(strip);
            assert_eq!(size, (80, 20));
            for (y, row) in rows.iter().enumerate() {
                for (x, pixel) in row.iter().enumerate() {
                    let (x, y) = (u32::try_from(x).unwrap(), u32::try_from(nth * 20 + y).unwrap());
                    let original = picture.get_pixel_checked(x, y).filter(|pixel| pixel.0[3] > 0);
                    assert_eq!(pixel.is_some(), original.is_some(), "({x}, {y})");
                    let (Some(pixel), Some(original)) = (pixel, original) else { continue };
                    n_drawn += 3;
                    difference += (0..3).map(|c| u32::from(pixel[c].abs_diff(original.0[c]))).sum::<u32>();
                }
            }
        }
        // Few colours, dithered.
        assert!(n_drawn == 72 * 50 * 3 && difference / n_drawn < 16, "{difference} in {n_drawn}");
    }

    #[test]
    fn strips_of_iterm_are_images_of_one_row_that_leave_the_cursor() {
        let picture = gradient(75, 50);
        let strips = picture_strips(key(PictureFormat::Iterm, 8, 3, (10, 20)), &picture).unwrap();
        let first = String::from_utf8(strips[0].clone()).unwrap();
        let (keys, image) = first.split_once(':').unwrap();
        assert!(keys.starts_with("\x1b]1337;File=inline=1;size=") && keys.contains(";width=8;height=1;"));
        assert!(keys.ends_with(";preserveAspectRatio=0;doNotMoveCursor=1"), "{keys}");
        let png = STANDARD.decode(image.strip_suffix('\x07').unwrap()).unwrap();
        let strip = image::load_from_memory(&png).unwrap().into_rgba8();
        assert_eq!((strip.width(), strip.height(), strips.len()), (80, 20, 3));
        assert_eq!(strip.get_pixel(40, 19), picture.get_pixel(40, 19));
        assert!(picture_strips(key(PictureFormat::Kitty, 8, 3, (10, 20)), &picture).is_none());
    }

    proptest! {
        #[test]
        fn any_size_is_encoded_without_a_control_in_the_picture(
            (columns, rows) in (1_u16..6, 1_u16..4), cell in (1_u16..9, 1_u16..15),
            (width, height) in (1_u32..40, 1_u32..40))
        {
            let picture = gradient(width, height);
            let strips = picture_strips(key(PictureFormat::Sixel, columns, rows, cell), &picture).unwrap();
            prop_assert_eq!(strips.len(), usize::from(rows));
            for strip in strips {
                let (_, size) = decode(&strip);
                prop_assert_eq!(size, (usize::from(columns * cell.0), usize::from(cell.1)));
                let inner = &strip[2..strip.len() - 2];
                prop_assert!(inner.iter().all(|byte| (0x20..0x7f).contains(byte)));
            }
        }
    }
}
