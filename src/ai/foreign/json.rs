//! Helpers for JSON of unknown shape.

use serde_json::{Map, Value};

use super::document::ImportError;
use crate::ai::messages::{ContentBlock, Image, NoImage, label};

pub(super) type Object = Map<String, Value>;

/// The member `key` of `object`, if it is a string.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// The member `key`, if it is a non-empty string.
pub(super) fn filled<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    text(object, key).filter(|text| !text.is_empty())
}

/// Describes `value` in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// One piece of a message's content.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Part(&'a Object),
}

/// The pieces of a content, each with its path: a string, a list of parts
/// and strings, a single part, or nothing.
///
/// # Errors
/// If the content is anything else.
pub(super) fn pieces<'a>(
    place: &str,
    content: Option<&'a Value>,
) -> Result<Vec<(String, Piece<'a>)>, ImportError> {
    let wrong = |place: &str, value: &Value| ImportError::Shape {
        place: place.to_owned(),
        expected: "text or a list of parts",
        found: kind(value),
    };
    let list = match content {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => return Ok(vec![(place.to_owned(), Piece::Text(text))]),
        Some(Value::Object(part)) => return Ok(vec![(place.to_owned(), Piece::Part(part))]),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(place, other)),
    };
    let pieces = list.iter().enumerate().filter(|(_, value)| !value.is_null()).map(|(at, value)| {
        let place = format!("{place}[{at}]");
        match value {
            Value::String(text) => Ok((place, Piece::Text(text))),
            Value::Object(part) => Ok((place, Piece::Part(part))),
            other => Err(wrong(&place, other)),
        }
    });
    pieces.collect()
}

/// A text block, unless it is blank: no API accepts blank text.
pub(super) fn text_block(text: &str) -> Option<ContentBlock> {
    (!text.trim().is_empty()).then(|| ContentBlock::text(text))
}

/// The texts of `blocks` as one block, then all other blocks.
pub(super) fn texts_first(blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let (texts, mut rest): (Vec<ContentBlock>, Vec<ContentBlock>) =
        blocks.into_iter().partition(|block| block.as_text().is_some());
    rest.splice(0..0, text_block(&crate::ai::messages::join_text(&texts)));
    rest
}

/// A block, and a note if it changed or was dropped.
pub(super) type Noted = (Option<ContentBlock>, Option<String>);

/// The note about a URL that is kept as text.
pub(super) const ONLY_ADDRESS: &str = "image by URL; kept as text";

/// The block for an embedded image or an image by URL. `detail` is the resolution at
/// which the model reads it.
pub(super) fn image_at(url: &str, detail: Option<&str>) -> Noted {
    match ContentBlock::image_at(url) {
        Ok(ContentBlock::ImageUrl(image)) => (Some(ContentBlock::ImageUrl(image.with_detail(detail))), None),
        Ok(block) => (Some(block), None),
        Err(NoImage::Address) => (text_block(&label(url)), Some(ONLY_ADDRESS.to_owned())),
        Err(other) => (None, Some(other.to_string())),
    }
}

/// The image of a part in OpenAI's formats: a URL, or an object with one.
pub(super) fn image_of(part: &Object) -> Option<Noted> {
    match part.get("image_url")? {
        Value::String(url) => Some(image_at(url, text(part, "detail"))),
        Value::Object(image) => Some(image_at(text(image, "url").unwrap_or("data:"), text(image, "detail"))),
        _ => None,
    }
}

/// The block for an image in base64; `None` with a note if it is invalid.
pub(super) fn image(mime: &str, data: &str) -> Noted {
    match Image::checked(mime, data) {
        Ok(image) => (Some(ContentBlock::Image(image)), None),
        Err(problem) => (None, Some(problem.to_string())),
    }
}

/// `image` as a data URL.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}
