//! The first prompts: what stands on the command line, attached files, piped input.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::ai::{Extra, Image};
use crate::modes::Prompt;
use crate::tools::{ImageLimits, prepare_image, resolve_existing, sniff_mime};

/// Builds the prompts. The first one is the piped text, the attached files and
/// the first message; each further message is one of its own. A message that calls
/// a skill comes before what it is to work on, or it would call nothing.
///
/// # Errors
/// When an attached file is missing or cannot be read.
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
        if message.starts_with("/skill:") && !first.text.is_empty() {
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

/// How a file is put in front of the model: text in the prompt, an image beside it.
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
        return Ok((String::new(), None));
    }
    if sniff_mime(&bytes).is_some() {
        return Ok(match prepare_image(&bytes, limits) {
            Ok(image) => {
                let hints = image.hints.join("\n");
                let mime_type = image.mime.to_owned();
                let image = Image { data: image.data, mime_type, extra: Extra::new() };
                (format!("<file name=\"{name}\">{hints}</file>\n"), Some(image))
            }
            Err(problem) => (format!("<file name=\"{name}\">{problem}</file>\n"), None),
        });
    }
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        anyhow::bail!("cannot attach {name}: it is neither text nor an image pi can show to a model");
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok((format!("<file name=\"{name}\">\n{text}\n</file>\n"), None))
}

#[cfg(test)]
mod tests {
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
        check(Some("/skill:review it\n"), &[], &["/skill:review it"]);
    }
}
