//! Prepares images for a model: a format all providers accept, within the size limits,
//! upright.
//!
//! All images pass through [`prepare_image`]: those that `read` shows, attached ones,
//! and those of old sessions in a request. It computes for a long time;
//! async callers run it on a blocking thread. [`probe`] reads only headers.
//! Invariant: the process unpacks one image at a time, using
//! little more than `UNPACKED_BYTES`.

use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, Engine as _};
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits, Rgb, RgbImage, RgbaImage};

/// Limits for an image in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageLimits {
    /// Whether images beyond the limits are reduced; otherwise they are sent
    /// unchanged.
    pub auto_resize: bool,
    pub max_width: u32,
    pub max_height: u32,
    /// Maximum length of the base64 text.
    pub max_base64_bytes: usize,
    /// Quality of written JPEG files, 1 to 100; lower ones are tried if the result is too large.
    pub jpeg_quality: u8,
    /// Media types that are sent unchanged; others become PNG or JPEG.
    pub formats: &'static [&'static str],
}

impl Default for ImageLimits {
    /// The limits of the strictest large provider.
    fn default() -> Self {
        Self {
            auto_resize: true,
            max_width: 2000,
            max_height: 2000,
            max_base64_bytes: 4_718_592,
            jpeg_quality: JPEG_QUALITY,
            formats: &[PNG, JPEG, GIF, WEBP],
        }
    }
}

impl ImageLimits {
    /// Whether an image needs no preparation. It may still be damaged.
    pub fn admit(&self, probe: &Probe, base64_bytes: usize) -> bool {
        let fits = probe.width <= self.max_width
            && probe.height <= self.max_height
            && base64_bytes < self.max_base64_bytes;
        self.formats.contains(&probe.mime) && (fits || !self.auto_resize)
    }
}

/// The properties in the headers of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    pub mime: &'static str,
    pub width: u32,
    pub height: u32,
}

/// An image ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedImage {
    /// Base64.
    pub data: String,
    pub mime: &'static str,
    /// Bracketed lines that describe to the model how this differs from the original.
    pub hints: Vec<String>,
}

/// Why an image is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageProblem {
    /// Not an image, or a damaged one.
    #[error("could not be converted to a supported inline image format")]
    Unreadable,
    /// Its pixels would exceed the memory limit for one image.
    #[error("its {width}x{height} pixels exceed the limit; make a smaller copy first")]
    TooManyPixels { width: u32, height: u32 },
    #[error("could not be resized below the inline image size limit")]
    TooLarge,
}

/// Held while an image is unpacked.
static TURN: Mutex<()> = Mutex::new(());

/// Makes `bytes`, an image file, fit `limits`.
///
/// If the original bytes fit, they are kept with their animation and metadata.
/// Otherwise the image is rotated according to its EXIF data, reduced, and encoded
/// as PNG or JPEG, whichever is smaller.
///
/// # Errors
/// If it cannot be decoded, or cannot be reduced enough.
pub fn prepare_image(bytes: &[u8], limits: &ImageLimits) -> Result<PreparedImage, ImageProblem> {
    let mime = sniff_mime(bytes).ok_or(ImageProblem::Unreadable)?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // The provider would reject a damaged image, and every later request with it.
    let Decoded { picture, width, height } = decode(bytes, mime, limits)?;
    if limits.admit(&Probe { mime, width, height }, base64_len(bytes.len())) {
        return Ok(PreparedImage { data: STANDARD.encode(bytes), mime, hints: Vec::new() });
    }

    let encoded = if limits.auto_resize {
        shrink(picture, (width, height), limits).ok_or(ImageProblem::TooLarge)?
    } else {
        Encoded { bytes: png(&picture).ok_or(ImageProblem::Unreadable)?, mime: PNG, width, height }
    };
    let mut hints = Vec::new();
    if encoded.mime != mime && !limits.formats.contains(&mime) {
        let rest = if mime == APNG { "; only its first picture is shown" } else { "" };
        hints.push(format!("[Image converted from {mime} to {}{rest}.]", encoded.mime));
    }
    if (encoded.width, encoded.height) != (width, height) {
        let factors = scale_factors((width, height), (encoded.width, encoded.height));
        hints.push(format!(
            "[Image: original {width}x{height}, displayed at {}x{}. \
             Multiply {factors} to map to original image.]",
            encoded.width, encoded.height,
        ));
    }
    Ok(PreparedImage { data: STANDARD.encode(&encoded.bytes), mime: encoded.mime, hints })
}

/// The factors from coordinates of a reduced image to those of the original. The sides of a very
/// narrow image are not reduced alike, because none has less than one pixel.
fn scale_factors(original: (u32, u32), shown: (u32, u32)) -> String {
    let x = f64::from(original.0) / f64::from(shown.0);
    let y = f64::from(original.1) / f64::from(shown.1);
    if (x - y).abs() <= x.min(y) / 100.0 {
        format!("coordinates by {x:.2}")
    } else {
        format!("x by {x:.2} and y by {y:.2}")
    }
}

/// A PNG file of pixels with red, green, blue and alpha; `None` if their number is not that of
/// the size.
pub fn png_of_rgba(width: u32, height: u32, pixels: Vec<u8>) -> Option<Vec<u8>> {
    png(&DynamicImage::ImageRgba8(RgbaImage::from_raw(width, height, pixels)?))
}

/// A PNG file of a base64 image, made smaller to fit `most` pixels (width, height) if it is
/// larger; `None` if it cannot be read. Computes for a long time, like [`prepare_image`].
pub fn thumbnail_png(data: &str, most: (u32, u32)) -> Option<Vec<u8>> {
    let bytes = LENIENT.decode(data.trim()).ok()?;
    let mime = sniff_mime(&bytes)?;
    let limits =
        ImageLimits { max_width: most.0.max(1), max_height: most.1.max(1), ..ImageLimits::default() };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Decoded { picture, width, height } = decode(&bytes, mime, &limits).ok()?;
    let (width, height) = fit(width, height, &limits);
    if (picture.width(), picture.height()) == (width, height) {
        return png(&picture);
    }
    png(&picture.resize_exact(width, height, FilterType::Triangle))
}

/// The pixels of a PNG file, made smaller to fit `most` pixels (width, height) if it is larger;
/// `None` if it cannot be read.
pub fn pixels_of_png(png: &[u8], most: (u32, u32)) -> Option<RgbaImage> {
    let limits =
        ImageLimits { max_width: most.0.max(1), max_height: most.1.max(1), ..ImageLimits::default() };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Decoded { picture, width, height } = decode(png, PNG, &limits).ok()?;
    let (width, height) = fit(width, height, &limits);
    if (picture.width(), picture.height()) == (width, height) {
        return Some(picture.into_rgba8());
    }
    Some(picture.resize_exact(width, height, FilterType::Triangle).into_rgba8())
}

/// [`prepare_image`] for an image in base64.
///
/// # Errors
/// Like there; text that is not base64 is unreadable.
pub fn prepare_base64(data: &str, limits: &ImageLimits) -> Result<PreparedImage, ImageProblem> {
    let bytes = LENIENT.decode(data.trim()).map_err(|_| ImageProblem::Unreadable)?;
    prepare_image(&bytes, limits)
}

/// The properties of a base64 image, read from its headers without decoding
/// everything; `None` if it is not an image, or its header is unknown.
pub fn probe(data: &str) -> Option<Probe> {
    let start = bytes_at(data, 0, PROBE_BYTES)?;
    let mime = sniff_mime(&start)?;
    let le16 = |at: usize| Some(u32::from(u16::from_le_bytes(*start.get(at..)?.first_chunk()?)));
    let le24 = |at: usize| Some(le16(at)? | u32::from(*start.get(at + 2)?) << 16);
    let be32 = |at: usize| Some(u32::from_be_bytes(*start.get(at..)?.first_chunk()?));
    let (width, height) = match mime {
        PNG | APNG => (be32(16)?, be32(20)?),
        GIF => (le16(6)?, le16(8)?),
        // RFC 9649: lossy, lossless and extended files have their own headers.
        WEBP => match start.get(12..16)? {
            b"VP8 " => (le16(26)? & 0x3fff, le16(28)? & 0x3fff),
            b"VP8L" => {
                let bits = le24(21)? | u32::from(*start.get(24)?) << 24;
                ((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
            }
            b"VP8X" => (le24(24)?.saturating_add(1), le24(27)?.saturating_add(1)),
            _ => return None,
        },
        JPEG => jpeg_size(data)?,
        // Bitmaps are always converted, so their size does not matter.
        _ => (1, 1),
    };
    (width > 0 && height > 0).then_some(Probe { mime, width, height })
}

/// Walks the segments of a JPEG file up to the one with its size
/// (ITU-T T.81, B.1.1.4 and B.2.2).
fn jpeg_size(data: &str) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let header = bytes_at(data, at, 9)?;
        let [0xff, marker, ..] = header[..] else { return None };
        match marker {
            // Padding, and markers without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // A frame header; the other three of the range are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let side = |at: usize| Some(u32::from(u16::from_be_bytes(*header.get(at..)?.first_chunk()?)));
                return Some((side(7)?, side(5)?));
            }
            0xd9 | 0xda => return None,
            _ => {
                let length = u16::from_be_bytes(*header.get(2..)?.first_chunk()?);
                at = at.checked_add(2 + usize::from(length.max(2)))?;
            }
        }
    }
}

/// Up to `n_bytes` decoded bytes of `data` from `at` on; `None` if it is not
/// base64 there, or ends before.
fn bytes_at(data: &str, at: usize, n_bytes: usize) -> Option<Vec<u8>> {
    // Three bytes are four characters.
    let first = (at / 3).checked_mul(4)?;
    let end = at.checked_add(n_bytes)?.div_ceil(3).checked_mul(4)?.min(data.len());
    let mut bytes = LENIENT.decode(data.get(first..end)?).ok()?;
    bytes.drain(..(at % 3).min(bytes.len()));
    (!bytes.is_empty()).then_some(bytes)
}

/// Accepts base64 with and without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Number of bytes that determine the type, and except for a JPEG the size.
const PROBE_BYTES: usize = 4_100;

/// The media type of an image, by its first bytes; `None` for anything else. An animated PNG has
/// a type that no provider accepts, so its first picture is sent as another file.
pub fn sniff_mime(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"\xff\xd8\xff") && start.get(3) != Some(&0xf7) {
        // 0xF7 starts JPEG-LS, a different format.
        Some(JPEG)
    } else if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        png_kind(start)
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some(GIF)
    } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        Some(WEBP)
    } else if is_bmp(start) {
        Some(BMP)
    } else {
        None
    }
}

const APNG: &str = "image/apng";
const BMP: &str = "image/bmp";
const GIF: &str = "image/gif";
const JPEG: &str = "image/jpeg";
const PNG: &str = "image/png";
const WEBP: &str = "image/webp";

/// Maximum memory for an unpacked image.
const UNPACKED_BYTES: u64 = 512 << 20;

/// The first quality is tried together with PNG unless the limits specify another, the
/// others if the result is not small enough.
const JPEG_QUALITY: u8 = 80;
const LOWER_JPEG_QUALITIES: [u8; 3] = [70, 55, 40];

/// PNG specification, 5.3 and 11.2.1; `acTL` before the first `IDAT` makes it animated.
fn png_kind(start: &[u8]) -> Option<&'static str> {
    if start.get(8..16) != Some(b"\0\0\0\x0dIHDR") {
        return None;
    }
    let mut at = 8;
    while let Some(header) = start.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let [a, b, c, d, kind @ ..] = *header;
        match &kind {
            b"IDAT" => return Some(PNG),
            b"acTL" => return Some(APNG),
            _ => {}
        }
        // Length, kind, data, checksum.
        let data = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        at = at.saturating_add(12).saturating_add(data);
    }
    Some(PNG)
}

/// "BM" also begins many texts, so the following header must be plausible.
fn is_bmp(start: &[u8]) -> bool {
    let Some(header) = start.first_chunk::<30>() else { return false };
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let header_bytes = u32::from_le_bytes([header[14], header[15], header[16], header[17]]);
    let (planes, depth) = match header_bytes {
        12 => (u16_at(22), u16_at(24)),
        16 | 40 | 52 | 56 | 64 | 108 | 124 => (u16_at(26), u16_at(28)),
        _ => return false,
    };
    header.starts_with(b"BM") && planes == 1 && matches!(depth, 1 | 4 | 8 | 16 | 24 | 32)
}

/// An upright image.
struct Decoded {
    /// May have fewer pixels than the original if it will be reduced anyway.
    picture: DynamicImage,
    width: u32,
    height: u32,
}

fn decode(bytes: &[u8], mime: &str, limits: &ImageLimits) -> Result<Decoded, ImageProblem> {
    let format = match mime {
        APNG => ImageFormat::Png,
        _ => ImageFormat::from_mime_type(mime).ok_or(ImageProblem::Unreadable)?,
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut memory = Limits::default();
    memory.max_alloc = Some(UNPACKED_BYTES);
    reader.limits(memory);
    let mut decoder = reader.into_decoder().map_err(|_| ImageProblem::Unreadable)?;
    // The size is an unverified claim of the header, and it is allocated before reading
    // any pixels.
    let (width, height) = decoder.dimensions();
    if decoder.total_bytes() > UNPACKED_BYTES {
        return Err(ImageProblem::TooManyPixels { width, height });
    }
    // The metadata may be damaged even though the image is not.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(|_| ImageProblem::Unreadable)?;
    let (width, height) = (picture.width(), picture.height());
    if width == 0 || height == 0 {
        return Err(ImageProblem::Unreadable);
    }
    let mut picture = thin_out(picture, limits);
    picture.apply_orientation(orientation);
    let is_turned = matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    );
    let (width, height) = if is_turned { (height, width) } else { (width, height) };
    Ok(Decoded { picture, width, height })
}

/// Reduces an image far above the limits to a part of its pixels, still
/// twice as many per side as needed. Rotating and filtering an image takes several times
/// its memory; averaging neighbours needs none except for its result.
fn thin_out(picture: DynamicImage, limits: &ImageLimits) -> DynamicImage {
    let enough = limits.max_width.max(limits.max_height).saturating_mul(2);
    let longest = picture.width().max(picture.height());
    if !limits.auto_resize || longest <= enough {
        return picture;
    }
    let factor = f64::from(enough) / f64::from(longest);
    let scale = |side: u32| ((f64::from(side) * factor).round() as u32).max(1);
    picture.thumbnail_exact(scale(picture.width()), scale(picture.height()))
}

struct Encoded {
    bytes: Vec<u8>,
    mime: &'static str,
    width: u32,
    height: u32,
}

/// The largest version within the limits of an image of the size `original`;
/// `None` if not even one pixel fits.
fn shrink(picture: DynamicImage, original: (u32, u32), limits: &ImageLimits) -> Option<Encoded> {
    // Palettes and 16-bit samples have no benefit here and cost time.
    let picture = if picture.color().has_alpha() {
        DynamicImage::ImageRgba8(picture.into_rgba8())
    } else {
        DynamicImage::ImageRgb8(picture.into_rgb8())
    };
    let (mut width, mut height) = fit(original.0, original.1, limits);
    loop {
        let is_same = (width, height) == (picture.width(), picture.height());
        let encoded = if is_same {
            encode(&picture, limits)
        } else {
            encode(&picture.resize_exact(width, height, FilterType::Lanczos3), limits)
        };
        if let Some((bytes, mime)) = encoded {
            return Some(Encoded { bytes, mime, width, height });
        }
        if (width, height) == (1, 1) {
            return None;
        }
        width = three_quarters(width);
        height = three_quarters(height);
    }
}

/// The largest size within the limits, at most the original
/// size.
fn fit(width: u32, height: u32, limits: &ImageLimits) -> (u32, u32) {
    let (width_px, height_px) = (f64::from(width), f64::from(height));
    let factor =
        (f64::from(limits.max_width) / width_px).min(f64::from(limits.max_height) / height_px).min(1.0);
    let scale = |side: f64, max: u32| ((side * factor).round() as u32).min(max).max(1);
    (scale(width_px, limits.max_width), scale(height_px, limits.max_height))
}

/// Less than `side`, so that repetition ends; at least 1.
fn three_quarters(side: u32) -> u32 {
    (side - side.div_ceil(4)).max(1)
}

/// The smaller one of PNG and good JPEG if it fits, otherwise the best JPEG that fits.
fn encode(picture: &DynamicImage, limits: &ImageLimits) -> Option<(Vec<u8>, &'static str)> {
    let fits = |bytes: &Vec<u8>| base64_len(bytes.len()) < limits.max_base64_bytes;
    let best_quality = limits.jpeg_quality.clamp(1, 100);
    let opaque = flatten(picture);
    let lossless = png(picture).map(|bytes| (bytes, PNG));
    let lossy = jpeg(&opaque, best_quality).map(|bytes| (bytes, JPEG));
    let best = [lossless, lossy].into_iter().flatten().filter(|(bytes, _)| fits(bytes));
    best.min_by_key(|(bytes, _)| bytes.len()).or_else(|| {
        LOWER_JPEG_QUALITIES
            .into_iter()
            .filter(|quality| *quality < best_quality)
            .filter_map(|quality| jpeg(&opaque, quality))
            .find(fits)
            .map(|bytes| (bytes, JPEG))
    })
}

fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).ok()?;
    Some(bytes.into_inner())
}

fn jpeg(picture: &RgbImage, quality: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(picture).ok()?;
    Some(bytes)
}

/// `picture` on a white background, for formats without transparency.
fn flatten(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let source = picture.to_rgba8();
    RgbImage::from_fn(source.width(), source.height(), |x, y| {
        let [red, green, blue, alpha] = source.get_pixel(x, y).0;
        let blend = |channel: u8| {
            let (channel, alpha) = (u16::from(channel), u16::from(alpha));
            u8::try_from((channel * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
        };
        Rgb([blend(red), blend(green), blend(blue)])
    })
}

fn base64_len(n_bytes: usize) -> usize {
    n_bytes.div_ceil(3).saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ImageLimits = ImageLimits {
        auto_resize: true,
        max_width: 40,
        max_height: 20,
        max_base64_bytes: 1_000_000,
        formats: &[PNG, JPEG, GIF, WEBP],
        jpeg_quality: JPEG_QUALITY,
    };

    fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let pixels = RgbImage::from_fn(width, height, |x, y| Rgb([(x * 3) as u8, (y * 5) as u8, 90]));
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(pixels).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// Incompressible pixels.
    fn noise(side: u32) -> Vec<u8> {
        let mut state: u32 = 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let pixels = RgbImage::from_fn(side, side, |_, _| Rgb([next(), next(), next()]));
        png(&DynamicImage::ImageRgb8(pixels)).unwrap()
    }

    fn size(image: &PreparedImage) -> (u32, u32) {
        let limits = ImageLimits { auto_resize: false, ..LIMITS };
        let decoded = decode(&STANDARD.decode(&image.data).unwrap(), image.mime, &limits).unwrap();
        (decoded.picture.width(), decoded.picture.height())
    }

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let check = |bytes: &[u8], expected: Option<&str>| assert_eq!(sniff_mime(bytes), expected);
        check(&picture(2, 2, ImageFormat::Png), Some(PNG));
        check(&picture(2, 2, ImageFormat::Jpeg), Some(JPEG));
        check(&picture(2, 2, ImageFormat::Gif), Some(GIF));
        check(&picture(2, 2, ImageFormat::WebP), Some(WEBP));
        check(&picture(2, 2, ImageFormat::Bmp), Some(BMP));
        check(b"\xff\xd8\xff\xf7", None);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\x0cIHDR", None);
        check(b"BMW drives on and on and on and on", None);
        check(b"", None);
    }

    #[test]
    fn first_picture_of_an_animated_png_is_sent() {
        let mut bytes = picture(30, 20, ImageFormat::Png);
        // After the signature (8) and IHDR (25): one frame, for ever.
        bytes.splice(33..33, *b"\0\0\0\x08acTL\0\0\0\x01\0\0\0\0\xb4-\xe9\xa0");
        assert_eq!(sniff_mime(&bytes), Some(APNG));
        assert_eq!(probe(&STANDARD.encode(&bytes)).map(|probe| probe.mime), Some(APNG));
        for limits in [LIMITS, ImageLimits { auto_resize: false, ..LIMITS }] {
            let image = prepare_image(&bytes, &limits).unwrap();
            assert_eq!(
                (size(&image), sniff_mime(&STANDARD.decode(&image.data).unwrap())),
                ((30, 20), Some(image.mime))
            );
            let hint = format!(
                "[Image converted from image/apng to {}; only its first picture is shown.]",
                image.mime
            );
            assert_eq!(image.hints, [hint]);
        }
    }

    #[test]
    fn a_picture_within_the_limits_is_sent_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let bytes = picture(40, 20, format);
            let image = prepare_image(&bytes, &LIMITS).unwrap();
            assert_eq!(STANDARD.decode(&image.data).unwrap(), bytes);
            assert_eq!(image.hints, Vec::<String>::new());
        }
    }

    #[test]
    fn a_larger_one_is_scaled_and_the_model_told() {
        let image = prepare_image(&picture(100, 30, ImageFormat::Png), &LIMITS).unwrap();
        assert_eq!(size(&image), (40, 12));
        let hint = "[Image: original 100x30, displayed at 40x12. \
                    Multiply coordinates by 2.50 to map to original image.]";
        assert_eq!(image.hints, [hint]);
        let image = prepare_image(&picture(1, 3000, ImageFormat::Png), &LIMITS).unwrap();
        assert_eq!(size(&image), (1, 20));
        let hint = "[Image: original 1x3000, displayed at 1x20. \
                    Multiply x by 1.00 and y by 150.00 to map to original image.]";
        assert_eq!(image.hints, [hint]);
    }

    #[test]
    fn without_auto_resize_the_size_stays() {
        let limits = ImageLimits { auto_resize: false, ..LIMITS };
        let bytes = picture(100, 30, ImageFormat::Jpeg);
        assert_eq!(STANDARD.decode(prepare_image(&bytes, &limits).unwrap().data).unwrap(), bytes);
        let image = prepare_image(&picture(100, 30, ImageFormat::Bmp), &limits).unwrap();
        assert_eq!((size(&image), image.mime), ((100, 30), PNG));
    }

    #[test]
    fn a_bitmap_is_converted() {
        let image = prepare_image(&picture(10, 10, ImageFormat::Bmp), &LIMITS).unwrap();
        assert_eq!(size(&image), (10, 10));
        assert_eq!(image.hints, [format!("[Image converted from image/bmp to {}.]", image.mime)]);
    }

    #[test]
    fn a_heavy_one_is_shrunk_until_it_fits() {
        let limits = ImageLimits { max_width: 2000, max_height: 2000, max_base64_bytes: 8000, ..LIMITS };
        let image = prepare_image(&noise(200), &limits).unwrap();
        assert!(image.data.len() < 8000);
        assert!(size(&image).0 < 200);
        let none = ImageLimits { max_base64_bytes: 10, ..limits };
        assert_eq!(prepare_image(&noise(200), &none), Err(ImageProblem::TooLarge));
    }

    #[test]
    fn exif_orientation_is_applied_when_scaling() {
        let mut bytes = picture(100, 30, ImageFormat::Jpeg);
        // An APP1 segment with one entry: orientation 6, rotate by 90 degrees.
        let exif = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        bytes.splice(2..2, *exif);
        let image = prepare_image(&bytes, &LIMITS).unwrap();
        assert_eq!(size(&image), (6, 20));
    }

    #[test]
    fn headers_tell_what_decoding_would() {
        let formats =
            [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp];
        for format in formats {
            let bytes = picture(37, 11, format);
            let found = probe(&STANDARD.encode(&bytes)).unwrap();
            assert_eq!(Some(found.mime), sniff_mime(&bytes));
            if format != ImageFormat::Bmp {
                assert_eq!((found.width, found.height), (37, 11), "{format:?}");
            }
            for end in 0..bytes.len().min(80) {
                // A truncated file may have no properties, but never causes a panic.
                let _cut = probe(&STANDARD.encode(&bytes[..end]));
            }
        }
        // A frame header after several segments of metadata.
        let mut bytes = picture(100, 30, ImageFormat::Jpeg);
        let segment = [b"\xff\xe1\xff\xff".as_slice(), &[7; 65_533]].concat();
        bytes.splice(2..2, segment.repeat(2));
        let found = probe(&STANDARD.encode(&bytes)).unwrap();
        assert_eq!((found.width, found.height), (100, 30));
        assert_eq!(probe("not base64 at all"), None);
        assert_eq!(probe(""), None);
    }

    #[test]
    fn a_format_that_is_not_taken_is_converted() {
        let limits = ImageLimits { formats: &[PNG, JPEG], ..LIMITS };
        let image = prepare_base64(&STANDARD.encode(picture(8, 8, ImageFormat::Gif)), &limits).unwrap();
        assert!([PNG, JPEG].contains(&image.mime));
        assert_eq!(image.hints, [format!("[Image converted from image/gif to {}.]", image.mime)]);
        assert_eq!(prepare_base64("§", &limits), Err(ImageProblem::Unreadable));
    }

    #[test]
    fn a_damaged_picture_is_a_problem_not_a_panic() {
        for format in
            [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp]
        {
            let bytes = picture(30, 30, format);
            assert_eq!(prepare_image(&bytes[..40], &LIMITS), Err(ImageProblem::Unreadable), "{format:?}");
        }
    }

    #[test]
    fn transparency_becomes_white() {
        let pixels = image::RgbaImage::from_pixel(1, 1, image::Rgba([10, 20, 30, 0]));
        assert_eq!(flatten(&DynamicImage::ImageRgba8(pixels)).get_pixel(0, 0), &Rgb([255, 255, 255]));
    }

    #[test]
    fn a_picture_that_claims_to_be_enormous_is_not_unpacked() {
        let mut gif = picture(1, 1, ImageFormat::Gif);
        assert!(prepare_image(&gif, &LIMITS).is_ok());
        // The canvas, around a frame of one pixel.
        gif[6..10].copy_from_slice(&[0xff; 4]);
        let problem = ImageProblem::TooManyPixels { width: 65_535, height: 65_535 };
        assert_eq!(prepare_image(&gif, &LIMITS), Err(problem));
        let said = "its 65535x65535 pixels exceed the limit; make a smaller copy first";
        assert_eq!(problem.to_string(), said);
    }

    #[test]
    fn one_picture_is_unpacked_at_a_time() {
        let (done, finished) = std::sync::mpsc::channel();
        let turn = TURN.lock().unwrap();
        let bytes = picture(100, 30, ImageFormat::Png);
        let worker = std::thread::spawn(move || done.send(prepare_image(&bytes, &LIMITS).is_ok()).unwrap());
        let early = finished.recv_timeout(std::time::Duration::from_millis(100));
        assert!(early.is_err(), "it does not wait for its turn");
        drop(turn);
        assert_eq!(finished.recv(), Ok(true));
        worker.join().unwrap();
    }

    #[test]
    fn a_far_larger_picture_is_thinned_out_before_it_is_turned_and_filtered() {
        let limits = ImageLimits { max_width: 40, max_height: 10, ..LIMITS };
        let large = DynamicImage::ImageRgb8(RgbImage::from_pixel(4_000, 1_000, Rgb([9, 99, 200])));
        let thinned = thin_out(large.clone(), &limits);
        assert_eq!((thinned.width(), thinned.height()), (80, 20));
        assert_eq!(thinned.to_rgb8().get_pixel(40, 10), &Rgb([9, 99, 200]));
        let image = prepare_image(&png(&large).unwrap(), &limits).unwrap();
        assert_eq!(size(&image), (40, 10));
        assert!(image.hints[0].starts_with("[Image: original 4000x1000, displayed at 40x10."));
        let as_it_is = ImageLimits { auto_resize: false, ..limits };
        assert_eq!(thin_out(large, &as_it_is).width(), 4_000);
    }
}
