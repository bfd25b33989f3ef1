//! Images by URL.
//!
//! The service fetches them; pi never does. `image_limits` knows which service
//! fetches which addresses. A `data:` URL is not an address: it contains the image,
//! and [`ContentBlock::image_at`] converts it to an [`Image`]. In files, an image by
//! URL is a text block with an extra field, because the original pi knows only
//! embedded images: it shows and sends the text, while this version reads the
//! image. The invariant: an [`ImageUrl`] contains an address that some service
//! fetches, and its text contains the same address.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::message::{ContentBlock, Extra, Image, Text};

/// An image that the service fetches from its address.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageUrl {
    url: String,
    /// The media type, if it is known.
    pub mime_type: Option<String>,
    /// Fields that are not interpreted, and `detail`: the resolution at which OpenAI's
    /// models read the image.
    pub extra: Extra,
}

/// Why something is not a usable image. The display text replaces the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NoImage {
    /// The address does not begin with `https:`, `http:`, `gs:`, `s3:` or `data:`, or
    /// contains white space.
    #[error("image at a URL no provider fetches")]
    Address,
    #[error("image not encoded in base64")]
    Encoding,
    #[error("image without data")]
    Empty,
    #[error("file that is not an image")]
    Kind,
    #[error("image whose data is not base64")]
    Data,
}

/// Schemes that at least one service fetches.
const SCHEMES: [&str; 4] = ["https", "http", "gs", "s3"];

/// Media types by file extension.
const ENDINGS: [(&str, &str); 11] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("bmp", "image/bmp"),
    ("tiff", "image/tiff"),
    ("avif", "image/avif"),
    ("svg", "image/svg+xml"),
];

impl ImageUrl {
    /// The image at `url`.
    ///
    /// # Errors
    /// [`NoImage::Address`] if no service fetches such an address. For a `data:` URL,
    /// use [`ContentBlock::image_at`].
    pub fn new(url: impl Into<String>) -> Result<Self, NoImage> {
        let url = url.into();
        let is_bad = |c: char| c.is_whitespace() || c.is_control();
        match url.split_once("://") {
            Some((scheme, rest))
                if SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
                    && !rest.is_empty()
                    && !url.contains(is_bad) =>
            {
                Ok(Self { url, mime_type: None, extra: Extra::new() })
            }
            _ => Err(NoImage::Address),
        }
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether the address begins with `scheme` and `://`.
    pub fn has_scheme(&self, scheme: &str) -> bool {
        self.url.split_once("://").is_some_and(|(own, _)| own.eq_ignore_ascii_case(scheme))
    }

    /// The text that replaces the image where only text is possible: `[image: URL]`.
    pub fn label(&self) -> String {
        label(&self.url)
    }

    /// The media type, given or derived from the extension in the address.
    pub fn media_type(&self) -> Option<&str> {
        if let Some(known) = self.mime_type.as_deref().filter(|known| !known.is_empty()) {
            return Some(known);
        }
        let (_, rest) = self.url.split_once("://")?;
        let path = rest.split(['?', '#']).next()?;
        let (_, ending) = path.rsplit_once('/')?.1.rsplit_once('.')?;
        ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, mime)| *mime)
    }

    /// The resolution to read the image at, in OpenAI's words; `None` for the default.
    pub fn detail(&self) -> Option<&str> {
        let detail = self.extra.get(DETAIL).and_then(Value::as_str)?;
        DETAILS.contains(&detail).then_some(detail)
    }

    /// Sets the resolution. Values that OpenAI does not define are ignored.
    pub(in crate::ai) fn with_detail(mut self, detail: Option<&str>) -> Self {
        if let Some(detail) = detail.filter(|detail| DETAILS.contains(detail)) {
            self.extra.insert(DETAIL.to_owned(), Value::from(detail));
        }
        self
    }

    /// Parses the form used in files.
    ///
    /// # Errors
    /// Returns the text itself if it is plain text: the field is missing or not an
    /// address, or text and field disagree.
    pub(in crate::ai) fn of_text(mut text: Text) -> Result<Self, Text> {
        let address = text.extra.get(FIELD).and_then(Value::as_str);
        let Some(Ok(mut image)) = address.map(Self::new) else { return Err(text) };
        if text.text_signature.is_some() || text.text != image.label() {
            return Err(text);
        }
        image.mime_type = match text.extra.get(MIME_TYPE) {
            None => None,
            Some(Value::String(mime_type)) => Some(mime_type.clone()),
            Some(_) => return Err(text),
        };
        text.extra.shift_remove(FIELD);
        text.extra.shift_remove(MIME_TYPE);
        image.extra = text.extra;
        Ok(image)
    }
}

const FIELD: &str = "imageUrl";
const MIME_TYPE: &str = "mimeType";
const DETAIL: &str = "detail";
const DETAILS: [&str; 3] = ["low", "high", "original"];

impl Serialize for ImageUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Stored<'a> {
            r#type: &'static str,
            text: String,
            image_url: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            mime_type: Option<&'a str>,
            #[serde(flatten)]
            extra: &'a Extra,
        }
        let Self { url, mime_type, extra } = self;
        Stored { r#type: "text", text: self.label(), image_url: url, mime_type: mime_type.as_deref(), extra }
            .serialize(serializer)
    }
}

/// The text that replaces the image at `url` where only text is possible.
pub(in crate::ai) fn label(url: &str) -> String {
    format!("[image: {url}]")
}

impl ContentBlock {
    /// The image at `address`, which can be a `data:` URL.
    ///
    /// ```
    /// use pi::ai::{ContentBlock, Image, ImageUrl};
    ///
    /// let block = ContentBlock::image_at("https://example.com/cat.png")?;
    /// assert_eq!(block, ContentBlock::ImageUrl(ImageUrl::new("https://example.com/cat.png")?));
    ///
    /// let block = ContentBlock::image_at("data:image/png;base64,iVBORw0KGgo=")?;
    /// assert_eq!(block, ContentBlock::Image(Image::new("iVBORw0KGgo=", "image/png")));
    ///
    /// assert!(ContentBlock::image_at("/home/ada/cat.png").is_err());
    /// # Ok::<(), pi::ai::NoImage>(())
    /// ```
    ///
    /// # Errors
    /// If no service fetches the address and it is not an image in base64.
    pub fn image_at(address: &str) -> Result<Self, NoImage> {
        let address = address.trim();
        match address.split_once(':') {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("data") => {
                let (head, data) = rest.split_once(',').ok_or(NoImage::Empty)?;
                let mut head = head.split(';');
                let mime_type = head.next().unwrap_or_default();
                if head.any(|parameter| parameter.trim().eq_ignore_ascii_case("base64")) {
                    Image::checked(mime_type, data).map(Self::Image)
                } else {
                    Err(NoImage::Encoding)
                }
            }
            _ => ImageUrl::new(address).map(Self::ImageUrl),
        }
    }
}

impl Image {
    /// An image whose form a service can read. One malformed image makes a service
    /// reject every request that contains it.
    ///
    /// # Errors
    /// If the media type is not that of an image, or the data is not base64.
    pub(in crate::ai) fn checked(mime_type: &str, data: &str) -> Result<Self, NoImage> {
        let data: String = data.chars().filter(|char| !char.is_ascii_whitespace()).collect();
        let mime_type = mime_type.trim().to_ascii_lowercase();
        let mime_type = if mime_type == "image/jpg" { "image/jpeg".to_owned() } else { mime_type };
        if !mime_type.starts_with("image/") {
            return Err(NoImage::Kind);
        }
        if data.is_empty() || STANDARD.decode(&data).is_err() {
            return Err(NoImage::Data);
        }
        Ok(Self::new(data, mime_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_some_service_fetches() {
        let check = |address: &str, expected: Result<&str, NoImage>| {
            let found = ContentBlock::image_at(address).map(|block| match block {
                ContentBlock::Image(image) => format!("{} {}", image.mime_type, image.data),
                ContentBlock::ImageUrl(image) => image.url().to_owned(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found.as_deref(), expected.as_ref().map(|found| *found), "{address}");
        };
        for fine in ["https://x.y/z.png", "HTTP://x", "gs://b/i", "s3://b/i", "https://x/ä?a=b#c"] {
            check(fine, Ok(fine));
        }
        check(" https://x/y \n", Ok("https://x/y"));
        for bad in
            ["", "https://", "https:x", "file:///x.png", "ftp://x", "/x.png", "https://x y", "https://x\u{7}"]
        {
            check(bad, Err(NoImage::Address));
        }
        check("data:image/PNG;base64,iV BO", Ok("image/png iVBO"));
        check("DATA:image/jpg;x=1;Base64,AAAA", Ok("image/jpeg AAAA"));
        check("data:image/png,x", Err(NoImage::Encoding));
        check("data:", Err(NoImage::Empty));
        check("data:text/plain;base64,AAAA", Err(NoImage::Kind));
        check("data:image/png;base64,%%", Err(NoImage::Data));
        check("data:image/png;base64,", Err(NoImage::Data));
    }

    #[test]
    fn the_media_type_is_what_is_said_or_what_the_address_speaks_for() {
        let check = |url: &str, known: Option<&str>, expected: Option<&str>| {
            let mime_type = known.map(str::to_owned);
            let image = ImageUrl { mime_type, ..ImageUrl::new(url).unwrap() };
            assert_eq!(image.media_type(), expected, "{url}");
        };
        check("https://x/a.PNG?size=1.gif#p.bmp", None, Some("image/png"));
        check("https://x/a.png", Some("image/webp"), Some("image/webp"));
        check("https://x/a.png", Some(""), Some("image/png"));
        check("gs://b/c/d.jpeg", None, Some("image/jpeg"));
        for unknown in ["https://x.png", "https://x/a.php", "https://x.png/a", "https://x/a."] {
            check(unknown, None, None);
        }
    }

    /// Parses a line, compares the block, and checks that it is written unchanged.
    #[track_caller]
    fn check_stored(json: &str, expected: Option<&str>) {
        let block: ContentBlock = serde_json::from_str(json).unwrap();
        let address = match &block {
            ContentBlock::ImageUrl(image) => Some(image.url()),
            ContentBlock::Text(_) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(address, expected, "{json}");
        assert_eq!(serde_json::to_string(&block).unwrap(), json);
    }

    #[test]
    fn in_files_it_is_a_text_that_says_where_the_picture_is() {
        let url = Some("https://x/y.png");
        for more in [
            "",
            r#","mimeType":"image/png""#,
            r#","mimeType":"image/png","detail":"high""#,
            r#","new":{"a":[null]},"newer":1.5"#,
        ] {
            check_stored(
                &format!(
                    r#"{{"type":"text","text":"[image: https://x/y.png]","imageUrl":"https://x/y.png"{more}}}"#
                ),
                url,
            );
        }
    }

    #[test]
    fn a_text_that_does_not_say_so_stays_a_text() {
        for field in
            ["", r#","imageUrl":"""#, r#","imageUrl":7"#, r#","imageUrl":null"#, r#","imageUrl":["x"]"#]
        {
            check_stored(&format!(r#"{{"type":"text","text":"[image: https://x]"{field}}}"#), None);
        }
        for url in ["file:///x", "data:image/png;base64,AAAA", "https://x y"] {
            check_stored(&format!(r#"{{"type":"text","text":"[image: {url}]","imageUrl":"{url}"}}"#), None);
        }
        // The model in the original reads the same text as the model here.
        check_stored(r#"{"type":"text","text":"hello","imageUrl":"https://x"}"#, None);
        check_stored(r#"{"type":"text","text":"[image: https://y]","imageUrl":"https://x"}"#, None);
        check_stored(
            r#"{"type":"text","text":"[image: https://x]","textSignature":"s","imageUrl":"https://x"}"#,
            None,
        );
        check_stored(
            r#"{"type":"text","text":"[image: https://x]","imageUrl":"https://x","mimeType":1}"#,
            None,
        );
    }

    #[test]
    fn detail_is_kept_in_the_words_of_openai() {
        let image = |detail| ImageUrl::new("https://x").unwrap().with_detail(detail);
        assert_eq!(image(Some("high")).detail(), Some("high"));
        for nothing in [None, Some("auto"), Some("of the moon")] {
            assert_eq!(image(nothing), ImageUrl::new("https://x").unwrap());
        }
        let mut odd = ImageUrl::new("https://x").unwrap();
        odd.extra.insert("detail".to_owned(), Value::from(7));
        assert_eq!(odd.detail(), None);
    }
}
