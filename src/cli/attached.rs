//! Files that the command line attaches with `@path`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use crate::ai::{Extra, Image};
use crate::tools::{ImageLimits, prepare_image, resolve_mention, sniff_mime};
use crate::util::text_decoder::{TextEncoding, decode_text};

/// Longer texts are not sent: no model reads them.
pub(super) const MAX_TEXT_BYTES: u64 = 10 << 20;

/// The same for people.
pub(super) const MAX_TEXT_SHOWN: &str = "10 MB";

/// Larger files are not loaded as images.
const MAX_IMAGE_FILE_BYTES: u64 = 64 << 20;

/// Number of bytes that determine what a file is.
const CHECK_BYTES: u64 = 8 * 1024;

/// A file as the model gets it.
#[derive(Debug)]
pub(super) struct Attached {
    /// Its text, or why there is none.
    pub(super) text: String,
    pub(super) image: Option<Image>,
    /// What the user should know.
    pub(super) note: Option<String>,
}

/// Presents the file of the mention `word` to the model: text in the prompt, an image beside it.
///
/// # Errors
/// If the file cannot be read, or is neither text nor an image.
pub(super) fn attach(
    word: &str,
    cwd: &Path,
    home: Option<&Path>,
    limits: &ImageLimits,
) -> anyhow::Result<Attached> {
    let path = resolve_mention(word, cwd, home);
    let content = FileContent::read(&path).with_context(|| format!("cannot attach {}", path.display()))?;
    let name = path.display();
    let is_named_as_picture = is_named_as_picture(&path);
    let omitted = |reason: &str| format!("<file name=\"{name}\">[Image omitted: {reason}.]</file>\n");
    let bytes = match content {
        FileContent::Empty if is_named_as_picture => return Ok(Attached::of(omitted("the file is empty"))),
        FileContent::Empty => {
            return Ok(Attached {
                note: Some(format!("the attached file {name} is empty")),
                ..Attached::of(format!("<file name=\"{name}\">[The file is empty.]</file>\n"))
            });
        }
        FileContent::TooLong if !is_named_as_picture => anyhow::bail!(
            "cannot attach {name}: it is longer than {MAX_TEXT_SHOWN}, more than a model reads; \
             name it in the prompt without @, and the model reads parts of it"
        ),
        FileContent::Binary | FileContent::TooLong => {
            anyhow::bail!("cannot attach {name}: it is neither text nor a supported image")
        }
        FileContent::Image(bytes) => {
            return Ok(match prepare_image(&bytes, limits) {
                Ok(image) => {
                    let text = format!("<file name=\"{name}\">{}</file>\n", image.hints.join("\n"));
                    let mime_type = image.mime.to_owned();
                    let image = Image { data: image.data, mime_type, extra: Extra::new() };
                    Attached { image: Some(image), ..Attached::of(text) }
                }
                Err(problem) => Attached::of(omitted(&problem.to_string())),
            });
        }
        FileContent::Text(bytes) => bytes,
    };
    let (text, problem) = decode_text(&bytes);
    // Text in an old encoding is still text, unless its name is that of an image.
    if is_named_as_picture && problem.is_some() {
        anyhow::bail!("cannot attach {name}: it is neither text nor a supported image");
    }
    let line = problem.as_ref().map(|problem| format!("[This file is {problem}.]\n")).unwrap_or_default();
    Ok(Attached {
        note: problem.map(|problem| format!("the attached file {name} is {problem}")),
        ..Attached::of(format!("<file name=\"{name}\">\n{text}\n{line}</file>\n"))
    })
}

impl Attached {
    fn of(text: String) -> Self {
        Self { text, image: None, note: None }
    }
}

/// What a file has.
enum FileContent {
    Empty,
    Text(Vec<u8>),
    Image(Vec<u8>),
    Binary,
    /// It may have no end, as a device.
    TooLong,
}

impl FileContent {
    /// Reads no more than is of use. A pipe is read to its end, because a shell may have made it
    /// from a command.
    fn read(path: &Path) -> io::Result<Self> {
        if fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        (&mut file).take(CHECK_BYTES).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(Self::Empty);
        }
        let is_image = sniff_mime(&bytes).is_some();
        let is_utf16 = TextEncoding::of(&bytes) != TextEncoding::Utf8;
        if !is_image && !is_utf16 && bytes.contains(&0) {
            return Ok(Self::Binary);
        }
        let most = if is_image { MAX_IMAGE_FILE_BYTES } else { MAX_TEXT_BYTES };
        file.take(most + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
        Ok(match (is_image, bytes.len() as u64 > most) {
            (_, true) => Self::TooLong,
            (true, false) => Self::Image(bytes),
            (false, false) => Self::Text(bytes),
        })
    }
}

/// Whether the name of a file is that of an image; its bytes decide what it really is.
fn is_named_as_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp", "bmp"].iter().any(|known| known.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat, RgbImage};

    use super::*;

    /// Attaches a file of this name and content; returns the text and the type of
    /// its image.
    #[track_caller]
    fn check_file(name: &str, bytes: &[u8], expected: Result<(&str, Option<&str>), &str>) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let attached = attach(&format!("@{name}"), folder.path(), None, &ImageLimits::default());
        let shown = |text: &str| text.replace(&folder.path().display().to_string(), "DIR");
        let found = match &attached {
            Ok(attached) => {
                let mime = attached.image.as_ref().map(|image| image.mime_type.as_str());
                Ok((shown(&attached.text), mime))
            }
            Err(error) => Err(shown(&format!("{error:#}"))),
        };
        let expected = match expected {
            Ok((text, mime)) => Ok((format!("<file name=\"DIR/{name}\">{text}</file>\n"), mime)),
            Err(error) => Err(error.to_owned()),
        };
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn an_attached_picture_is_one_that_can_be_sent_or_says_why_it_is_not() {
        let picture = |format: ImageFormat| {
            let mut bytes = Cursor::new(Vec::new());
            RgbImage::new(30, 20).write_to(&mut bytes, format).unwrap();
            bytes.into_inner()
        };
        let png = picture(ImageFormat::Png);
        check_file("a.png", &png, Ok(("", Some("image/png"))));
        // The bytes decide, not the name.
        check_file("a.jpg", &png, Ok(("", Some("image/png"))));
        check_file("a.txt", &png, Ok(("", Some("image/png"))));
        check_file("a.png", b"just words", Ok(("\njust words\n", None)));
        let neither = "cannot attach DIR/a.png: it is neither text nor a supported image";
        check_file("a.png", b"\0\x01\x02", Err(neither));
        check_file("a.png", b"", Ok(("[Image omitted: the file is empty.]", None)));
        let omitted = "[Image omitted: could not be converted to a supported inline image format.]";
        for cut in [png.len() - 20, 60, 20] {
            check_file("a.png", &png[..cut], Ok((omitted, None)));
        }
        check_file("a.png", &png[..8], Err(neither));
        let jpeg = picture(ImageFormat::Jpeg);
        check_file("a.jpg", &jpeg[..jpeg.len() / 4], Ok((omitted, None)));
        // A 60 MB file is reduced, whether by its pixels or by data after them.
        let mut heavy = png;
        heavy.resize(60_000_000, 7);
        check_file("a.png", &heavy, Ok(("", Some("image/png"))));
        let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
        large.resize(60_000_000, b'x');
        check_file("a.png", &large, Err(neither));
    }

    #[test]
    fn text_in_another_encoding_is_noted_for_the_model_and_the_user() {
        let problem = "not valid UTF-8: byte 3 (0xe9, line 1) and maybe others are shown as U+FFFD; writing \
                       the text back would destroy them";
        let expected = format!("\ncaf\u{fffd}\n[This file is {problem}.]\n");
        check_file("latin1.txt", b"caf\xe9", Ok((&expected, None)));
        let utf16: Vec<u8> = "\u{feff}grün".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let problem = "UTF-16LE text, shown as UTF-8; edit cannot change it, and write would store UTF-8";
        check_file("utf16.txt", &utf16, Ok((&format!("\ngrün\n[This file is {problem}.]\n"), None)));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), b"caf\xe9").unwrap();
        let note = attach("@f", folder.path(), None, &ImageLimits::default()).unwrap().note.unwrap();
        assert!(note.starts_with("the attached file ") && note.contains("f is not valid UTF-8"), "{note}");
    }

    #[test]
    fn text_without_end_and_devices_are_refused() {
        let long = vec![b'x'; (10 << 20) + 1];
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), long).unwrap();
        for (word, expected) in [
            ("@f", "f: it is longer than 10 MB, more than a model reads"),
            ("@/dev/zero", "cannot attach /dev/zero: it is neither text nor a supported image"),
            ("@.", "cannot attach"),
        ] {
            let error = attach(word, folder.path(), None, &ImageLimits::default()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        }
        check_file("empty", b"", Ok(("[The file is empty.]", None)));
    }
}
