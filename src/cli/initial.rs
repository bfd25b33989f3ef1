//! The first prompts: command line arguments, attached files and piped input.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::ai::{Extra, Image};
use crate::modes::{self, Prompt};
use crate::tools::{ImageLimits, prepare_image, resolve_existing, sniff_mime};

/// Builds the prompts. The first one consists of the piped text, the attached files and
/// the first message; each further message is a prompt of its own. A message that calls a
/// skill or template comes before its input, because the command must be at the start.
///
/// # Errors
/// If an attached file is missing or cannot be read.
pub(super) fn prompts(
    piped: Option<String>,
    words: &[String],
    cwd: &Path,
    home: Option<&Path>,
    limits: &ImageLimits,
) -> anyhow::Result<Vec<Prompt>> {
    let (files, messages): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with('@') && word.len() > 1);
    let mut first = Prompt::default();
    if let Some(piped) = piped.as_deref().map(str::trim).filter(|piped| !piped.is_empty()) {
        first.text.push_str(piped);
        if !(files.is_empty() && messages.is_empty()) {
            first.text.push('\n');
        }
    }
    for file in files {
        let (text, image) = attached(file, cwd, home, limits)?;
        first.text.push_str(&text);
        first.images.extend(image);
    }
    let mut messages = messages.into_iter();
    if let Some(message) = messages.next() {
        let is_call = message.starts_with("/skill:") || modes::command_name(message).is_some();
        if is_call && !first.text.is_empty() {
            first.text.insert_str(0, &format!("{message}\n\n"));
        } else {
            first.text.push_str(message);
        }
    }
    let mut prompts = vec![first];
    prompts.extend(messages.map(|message| Prompt { text: message.clone(), images: Vec::new() }));
    prompts.retain(|prompt| !prompt.text.trim().is_empty());
    Ok(prompts)
}

/// Presents a file to the model: text in the prompt, an image beside it.
fn attached(
    word: &str,
    cwd: &Path,
    home: Option<&Path>,
    limits: &ImageLimits,
) -> anyhow::Result<(String, Option<Image>)> {
    let path: PathBuf = resolve_existing(word, cwd, home);
    let bytes = fs::read(&path).with_context(|| format!("cannot attach {}", path.display()))?;
    let name = path.display();
    if bytes.is_empty() {
        let text = if is_named_as_picture(&path) {
            format!("<file name=\"{name}\">[Image omitted: the file is empty.]</file>\n")
        } else {
            String::new()
        };
        return Ok((text, None));
    }
    if sniff_mime(&bytes).is_some() {
        return Ok(match prepare_image(&bytes, limits) {
            Ok(image) => {
                let hints = image.hints.join("\n");
                let mime_type = image.mime.to_owned();
                let image = Image { data: image.data, mime_type, extra: Extra::new() };
                (format!("<file name=\"{name}\">{hints}</file>\n"), Some(image))
            }
            Err(problem) => (format!("<file name=\"{name}\">[Image omitted: {problem}.]</file>\n"), None),
        });
    }
    // Text in an old encoding is still text, unless its name is that of an image.
    let is_damaged_picture = is_named_as_picture(&path) && std::str::from_utf8(&bytes).is_err();
    if is_damaged_picture || bytes.iter().take(8192).any(|byte| *byte == 0) {
        anyhow::bail!("cannot attach {name}: it is neither text nor a supported image");
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok((format!("<file name=\"{name}\">\n{text}\n</file>\n"), None))
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

    #[track_caller]
    fn check(piped: Option<&str>, words: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "alpha").unwrap();
        fs::write(folder.path().join("empty"), "").unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let prompts =
            prompts(piped.map(str::to_owned), &words, folder.path(), None, &ImageLimits::default()).unwrap();
        let shown: Vec<String> = prompts
            .into_iter()
            .map(|prompt| prompt.text.replace(&folder.path().display().to_string(), "DIR"))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn piped_text_files_and_the_first_message_are_one_prompt() {
        check(None, &[], &[]);
        check(Some(" in\n"), &[], &["in"]);
        check(None, &["one", "two"], &["one", "two"]);
        check(
            Some("in"),
            &["@a.txt", "@empty", "ask", "then"],
            &["in\n<file name=\"DIR/a.txt\">\nalpha\n</file>\nask", "then"],
        );
        check(Some("in"), &["/skill:review it"], &["/skill:review it\n\nin\n"]);
        check(Some("in"), &["/review it"], &["/review it\n\nin\n"]);
        check(Some("in"), &["/etc/hosts is odd"], &["in\n/etc/hosts is odd"]);
        check(Some("/skill:review it\n"), &[], &["/skill:review it"]);
    }

    /// Attaches a file of this name and content; returns the text and the type of
    /// its image.
    #[track_caller]
    fn check_file(name: &str, bytes: &[u8], expected: Result<(&str, Option<&str>), &str>) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let words = [format!("@{name}"), "look".to_owned()];
        let prompts = prompts(None, &words, folder.path(), None, &ImageLimits::default());
        let shown = |text: &str| text.replace(&folder.path().display().to_string(), "DIR");
        let found = match &prompts {
            Ok(prompts) => {
                let types: Vec<&str> =
                    prompts[0].images.iter().map(|image| image.mime_type.as_str()).collect();
                Ok((shown(&prompts[0].text), types))
            }
            Err(error) => Err(shown(&format!("{error:#}"))),
        };
        let expected = match expected {
            Ok((text, mime)) => {
                Ok((format!("<file name=\"DIR/{name}\">{text}</file>\nlook"), mime.into_iter().collect()))
            }
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
}
