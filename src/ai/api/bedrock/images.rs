//! The images Bedrock accepts:
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>.
//!
//! One image too many or too large fails the whole request, and every later one
//! with the same conversation. A text that gives the reason replaces such images.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::wire::{Block, Image, ImageSource};
use crate::ai::messages::message;
use crate::ai::requests::Picture;

const IMAGES_PER_MESSAGE: usize = 20;
/// Maximum size of the decoded image: 3.75 MB.
const IMAGE_LIMIT_BYTES: usize = 3_932_160;

/// Counts the images of one message.
#[derive(Debug, Default)]
pub(super) struct Images(usize);

impl Images {
    /// The next image of the message, or the text that replaces it.
    pub(super) fn block<'a>(&mut self, picture: Picture<'a>) -> Block<'a> {
        let omitted = |why: &'static str| Block::Text(Cow::Borrowed(why));
        let (format, source) = match picture {
            Picture::Data(image) => (format(image), ImageSource::Bytes(&image.data)),
            Picture::At(image) => {
                (image.media_type().and_then(format_of), ImageSource::S3Location { uri: image.url() })
            }
        };
        let Some(format) = format else {
            return omitted("(image omitted: it is not PNG, JPEG, GIF or WebP)");
        };
        if let ImageSource::Bytes(data) = source
            && data.len() / 4 * 3 > IMAGE_LIMIT_BYTES
        {
            return omitted("(image omitted: it is larger than 3.75 MB)");
        }
        if self.0 == IMAGES_PER_MESSAGE {
            return omitted("(image omitted: a message holds 20 at most)");
        }
        self.0 += 1;
        Block::Image(Image { format, source })
    }
}

/// The format by the first bytes, which the service checks, otherwise by the media type.
fn format(image: &message::Image) -> Option<&'static str> {
    let start = image.data.get(..16).and_then(|start| STANDARD.decode(start).ok()).unwrap_or_default();
    match start.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("webp"),
        _ => format_of(&image.mime_type),
    }
}

fn format_of(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "image/png" => Some("png"),
        "image/jpeg" | "image/jpg" => Some("jpeg"),
        "image/gif" => Some("gif"),
        "image/webp" => Some("webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn image(mime_type: &str, data: &str) -> message::Image {
        serde_json::from_value(json!({"mimeType": mime_type, "data": data})).unwrap()
    }

    #[test]
    fn the_bytes_decide_about_the_format() {
        let check = |mime_type: &str, bytes: &[u8], expected: Option<&str>| {
            assert_eq!(format(&image(mime_type, &STANDARD.encode(bytes))), expected);
        };
        check("image/png", b"\xff\xd8\xff\xe0 and so on", Some("jpeg"));
        check("image/png", b"RIFF1234WEBPVP8 ", Some("webp"));
        check("image/jpeg", b"GIF89a, and so on", Some("gif"));
        check("image/jpg", b"?", Some("jpeg"));
        check("image/tiff", b"\x89PNG\r\n\x1a\n and so on", Some("png"));
        check("image/tiff", b"II*, and so on", None);
    }

    #[test]
    fn what_is_not_taken_becomes_a_text() {
        let mut images = Images::default();
        let mut block =
            |image: &message::Image| serde_json::to_value(images.block(Picture::Data(image))).unwrap();
        let omitted = |block: &Value| block["text"].as_str().is_some_and(|text| text.contains("omitted"));
        assert!(omitted(&block(&image("image/tiff", "AAAA"))));
        assert!(omitted(&block(&image("image/png", &"A".repeat(5_242_884)))));
        let fine = image("image/png", "AAAA");
        assert!(!omitted(&block(&image("image/png", &"A".repeat(5_242_880)))));
        for _ in 1..IMAGES_PER_MESSAGE {
            assert_eq!(block(&fine), json!({"image": {"format": "png", "source": {"bytes": "AAAA"}}}));
        }
        assert!(omitted(&block(&fine)));
    }
}
