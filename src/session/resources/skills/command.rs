//! `/skill:NAME ARGS`: inserts the skill's instructions into a user message.
//!
//! The format is the original's; both programs recognise it when they show a
//! session.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::util::os;

use super::super::frontmatter::{self, Frontmatter};
use super::super::text::{InvalidText, decode};
use super::prompt::{escape, unescape};
use super::{Skill, SkillProblem};

/// The prefix of such a message.
const COMMAND: &str = "/skill:";
/// Maximum size of a skill in a message, in bytes.
const MAX_BYTES: u64 = 512 << 10;
/// Maximum number of names suggested for an unknown name.
const MAX_NEAR: usize = 3;
/// Minimum similarity of a suggested name; 1 is equal.
const LEAST_LIKENESS: f64 = 0.7;

/// Why a skill could not be put into a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkillError {
    #[error("there is no skill \"{name}\"; {near}")]
    Unknown { name: String, near: String },
    #[error("cannot read the skill \"{name}\": {}: {source}", path.display())]
    Unreadable { name: String, path: PathBuf, source: io::Error },
    #[error("the skill \"{name}\" is longer than {} KiB: {}", MAX_BYTES >> 10, path.display())]
    TooLong { name: String, path: PathBuf },
}

/// The name and the rest of a text that invokes a skill; `None` for any other text.
pub(crate) fn call(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix(COMMAND)?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name, args.trim()))
}

/// The message for the skill `name` with `args`, and a problem with its file. Reads the file; blocks.
///
/// # Errors
/// If there is no such skill, or its file can no longer be used.
pub(crate) fn expand(
    name: &str,
    args: &str,
    skills: &[Skill],
) -> Result<(String, Option<SkillProblem>), SkillError> {
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        return Err(SkillError::Unknown { name: name.to_owned(), near: near(name, skills) });
    };
    let (text, invalid) = read(skill)?;
    let invalid = invalid.map(|invalid| SkillProblem::NotUtf8 { path: skill.path.clone(), invalid });
    let body = match frontmatter::split(&text) {
        Frontmatter::Some { body, .. } | Frontmatter::None(body) => body,
        Frontmatter::Unclosed => &text,
    };
    let folder = skill.path.parent().unwrap_or(Path::new("/")).display();
    let path = skill.path.to_string_lossy();
    let (name, location) = (escape(&skill.name), escape(&path));
    let body = body.trim().replace("\r\n", "\n");
    let block = format!(
        "<skill name=\"{name}\" location=\"{location}\">\nReferences are relative to {folder}.\n\n{body}\n</skill>"
    );
    Ok((if args.is_empty() { block } else { format!("{block}\n\n{args}") }, invalid))
}

/// The text of the file, and where it is not UTF-8.
fn read(skill: &Skill) -> Result<(String, Option<InvalidText>), SkillError> {
    let unreadable =
        |source| SkillError::Unreadable { name: skill.name.clone(), path: skill.path.clone(), source };
    let file = os::open_regular(&skill.path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let n_bytes = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if n_bytes as u64 > MAX_BYTES {
        return Err(SkillError::TooLong { name: skill.name.clone(), path: skill.path.clone() });
    }
    let (text, invalid) = decode(&bytes, false);
    Ok((text.into_owned(), invalid))
}

/// The suggestion for an unknown name.
fn near(name: &str, skills: &[Skill]) -> String {
    let likeness = |skill: &Skill| strsim::jaro_winkler(name, &skill.name);
    let mut near: Vec<(f64, &str)> = skills
        .iter()
        .map(|skill| (likeness(skill), skill.name.as_str()))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<&str> = near.into_iter().take(MAX_NEAR).map(|(_, name)| name).collect();
    if !near.is_empty() {
        return format!("nearest: {}", near.join(", "));
    }
    let known: Vec<&str> = skills.iter().take(2 * MAX_NEAR).map(|skill| skill.name.as_str()).collect();
    let more = if skills.len() > known.len() { " and more" } else { "" };
    if known.is_empty() {
        "no skills are loaded".to_owned()
    } else {
        format!("available: {}{more}", known.join(", "))
    }
}

/// A message with an inserted skill, split into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillBlock<'a> {
    /// The skill's name.
    pub name: String,
    /// The skill's file.
    pub location: String,
    /// The skill's text, with the line about its folder.
    pub body: &'a str,
    /// The user's own text.
    pub args: &'a str,
}

impl<'a> SkillBlock<'a> {
    /// Splits `text`, if it is such a message.
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("<skill name=\"")?;
        let (name, rest) = rest.split_once("\" location=\"")?;
        let (location, rest) = rest.split_once("\">\n")?;
        if [name, location].iter().any(|value| value.is_empty() || value.contains(['"', '\n'])) {
            return None;
        }
        // The skill's text may contain the end tag; the real one is followed by a blank line or nothing.
        let ends = rest.match_indices("\n</skill>").filter_map(|(at, end)| {
            let after = rest.get(at + end.len()..)?;
            let args = if after.is_empty() { after } else { after.strip_prefix("\n\n")? };
            Some((rest.get(..at)?, args))
        });
        let (body, args) = ends.into_iter().next()?;
        Some(Self { name: unescape(name), location: unescape(location), body, args })
    }

    /// The command that the user typed.
    pub fn command(&self) -> String {
        format!("{COMMAND}{} {}", self.name, self.args).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::super::ResourceOrigin;
    use super::*;

    fn skill(name: &str, path: PathBuf) -> Skill {
        Skill {
            name: name.to_owned(),
            description: "d".to_owned(),
            path,
            origin: ResourceOrigin::User,
            is_listed: true,
        }
    }

    fn skills(names: &[&str]) -> Vec<Skill> {
        names.iter().map(|name| skill(name, PathBuf::from("/nowhere"))).collect()
    }

    #[test]
    fn a_name_ends_at_the_first_blank() {
        let check = |text: &str, expected| assert_eq!(call(text), expected, "{text}");
        check("/skill:a", Some(("a", "")));
        check("  /skill:a  b c ", Some(("a", "b c")));
        check("/skill:a\nb\nc", Some(("a", "b\nc")));
        check("/skill:", Some(("", "")));
        check("/skills", None);
        check("say /skill:a", None);
    }

    #[test]
    fn a_skill_is_put_before_what_the_user_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("SKILL.md");
        fs::write(&path, "\u{feff}---\r\ndescription: d\r\n---\r\n\r\n# Do\r\nit\r\n\r\n").unwrap();
        let known = [skill("a&b", path.clone())];
        let (path, dir) = (path.display(), folder.path().display());
        let block = format!(
            "<skill name=\"a&amp;b\" location=\"{path}\">\nReferences are relative to {dir}.\n\n# Do\nit\n</skill>"
        );
        assert_eq!(expand("a&b", "", &known).unwrap().0, block);
        let with_args = expand("a&b", "for me", &known).unwrap().0;
        assert_eq!(with_args, format!("{block}\n\nfor me"));
        let parsed = SkillBlock::parse(&with_args).unwrap();
        assert_eq!((parsed.name.as_str(), parsed.args), ("a&b", "for me"));
        assert_eq!(parsed.body, format!("References are relative to {dir}.\n\n# Do\nit"));
        assert_eq!(parsed.command(), "/skill:a&b for me");
    }

    #[test]
    fn a_name_that_does_not_exist_leads_to_the_nearest() {
        let check = |name: &str, known: &[&str], expected: &str| {
            let error = expand(name, "", &skills(known)).unwrap_err().to_string();
            assert_eq!(error, format!("there is no skill \"{name}\"; {expected}"));
        };
        check("deplyo", &["deploy", "pdf", "deploy-all"], "nearest: deploy, deploy-all");
        check("x", &["deploy", "pdf"], "available: deploy, pdf");
        check("", &["a", "b", "c", "d", "e", "f", "g"], "available: a, b, c, d, e, f and more");
        check("x", &[], "no skills are loaded");
    }

    #[test]
    fn a_file_that_is_gone_or_endless_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let gone = expand("a", "", &[skill("a", folder.path().join("gone"))]).unwrap_err().to_string();
        assert!(gone.starts_with("cannot read the skill \"a\""), "{gone}");
        let path = folder.path().join("long");
        fs::write(&path, "x".repeat((512 << 10) + 1)).unwrap();
        let long = expand("a", "", &[skill("a", path)]).unwrap_err().to_string();
        assert!(long.starts_with("the skill \"a\" is longer than 512 KiB"), "{long}");
    }

    #[test]
    fn only_whole_blocks_are_recognised() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let parsed = SkillBlock::parse(text);
            assert_eq!(parsed.as_ref().map(|block| (block.body, block.args)), expected, "{text}");
        };
        let start = "<skill name=\"a\" location=\"/a\">\n";
        check(&format!("{start}b\n</skill>"), Some(("b", "")));
        check(&format!("{start}b\n</skill>\n\nc\n\nd"), Some(("b", "c\n\nd")));
        check(&format!("{start}b\n</skill>\nmore\n</skill>\n\nc"), Some(("b\n</skill>\nmore", "c")));
        check(&format!("{start}b"), None);
        check(&format!(" {start}b\n</skill>"), None);
        check("<skill name=\"\" location=\"/a\">\nb\n</skill>", None);
        check("<skill name=\"a\">\nb\n</skill>", None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(<skill name=\"|\" location=\"|\">|</skill>|\\n|[a-z&\"é]){0,20}") {
            if let Some(block) = SkillBlock::parse(&text) {
                prop_assert!(text.ends_with(block.args) && text.contains(block.body));
            }
        }
    }
}
