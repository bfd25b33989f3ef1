//! The first prompts: command line arguments, attached files and piped input.

use std::path::Path;

use crate::modes::{self, Prompt};
use crate::tools::ImageLimits;

use super::attached::{Attached, attach};
use super::piped::Piped;

/// The first prompts.
#[derive(Debug, Default)]
pub(super) struct InitialPrompts {
    pub(super) prompts: Vec<Prompt>,
    /// What the user should know about them.
    pub(super) notes: Vec<String>,
}

/// Builds the prompts. The first one consists of the piped text, the attached files and
/// the first message; each further message is a prompt of its own. A message that calls a
/// skill or template comes before its input, because the command must be at the start.
///
/// # Errors
/// If an attached file is missing or cannot be read.
pub(super) fn prompts(
    piped: Option<Piped>,
    words: &[String],
    cwd: &Path,
    home: Option<&Path>,
    limits: &ImageLimits,
) -> anyhow::Result<InitialPrompts> {
    let (files, messages): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with('@') && word.len() > 1);
    let mut first = Prompt::default();
    let mut notes = Vec::new();
    if let Some(piped) = piped.filter(|piped| !piped.text.trim().is_empty()) {
        first.text.push_str(piped.text.trim());
        if let Some(problem) = piped.problem {
            first.text.push_str(&["\n[Standard input is ", &problem, ".]"].concat());
            notes.push(format!("standard input is {problem}"));
        }
        if !(files.is_empty() && messages.is_empty()) {
            first.text.push('\n');
        }
    }
    for file in files {
        let Attached { text, image, note } = attach(file, cwd, home, limits)?;
        first.text.push_str(&text);
        first.images.extend(image);
        notes.extend(note);
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
    Ok(InitialPrompts { prompts, notes })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(piped: Option<&str>, words: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "alpha").unwrap();
        fs::write(folder.path().join("empty"), "").unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let piped = piped.map(|text| Piped::of(text.as_bytes()));
        let initial = prompts(piped, &words, folder.path(), None, &ImageLimits::default()).unwrap();
        let shown: Vec<String> = initial
            .prompts
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
            &[
                "in\n<file name=\"DIR/a.txt\">\nalpha\n</file>\n\
                 <file name=\"DIR/empty\">[The file is empty.]</file>\nask",
                "then",
            ],
        );
        check(Some("in"), &["/skill:review it"], &["/skill:review it\n\nin\n"]);
        check(Some("in"), &["/review it"], &["/review it\n\nin\n"]);
        check(Some("in"), &["/etc/hosts is odd"], &["in\n/etc/hosts is odd"]);
        check(Some("/skill:review it\n"), &[], &["/skill:review it"]);
    }

    #[test]
    fn input_that_is_not_utf_8_is_noted_for_the_model_and_the_user() {
        let piped = Some(Piped::of(b"caf\xe9\n"));
        let initial = prompts(piped, &[], Path::new("/"), None, &ImageLimits::default()).unwrap();
        let problem = "not valid UTF-8: byte 3 (0xe9, line 1) and maybe others are shown as U+FFFD";
        assert_eq!(initial.prompts[0].text, format!("caf\u{fffd}\n[Standard input is {problem}.]"));
        assert_eq!(initial.notes, [format!("standard input is {problem}")]);
        let utf16: Vec<u8> = "\u{feff}grün".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(Piped::of(&utf16).text, "grün");
    }
}
