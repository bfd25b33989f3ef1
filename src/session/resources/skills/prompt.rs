//! The list of skills in the system prompt.

use std::borrow::Cow;

use super::Skill;
use super::fields::MAX_DESCRIPTION;

/// Maximum size of the section that lists skills, which is in every request.
const MAX_BYTES: usize = 64 << 10;

/// The text of the section, in the order of `skills`; `None` if no skill is
/// listed. The model reads skills with the `read` tool, or with commands. Long
/// descriptions are truncated, and the last of too many skills are left out.
pub(in super::super) fn section(skills: &[Skill], with_read: bool) -> Option<String> {
    let mut room = MAX_BYTES;
    let all: Vec<&Skill> = skills.iter().filter(|skill| skill.is_listed).collect();
    let mut listed: Vec<String> = all
        .iter()
        .map(|skill| item(skill))
        .take_while(|item| {
            let fits = item.len() <= room;
            room = room.saturating_sub(item.len());
            fits
        })
        .collect();
    if all.is_empty() {
        return None;
    }
    let n_left_out = all.len() - listed.len();
    if n_left_out > 0 {
        listed.push(format!("  {n_left_out} more are not listed."));
    }
    let how = if with_read { "with the read tool" } else { "with a bash command" };
    let lines = [
        "Skills are instructions for particular kinds of work.".to_owned(),
        format!(
            "When a task fits the description of one, load the file at its location {how} before you begin."
        ),
        "Relative paths in such a file start from the folder the file is in.".to_owned(),
        String::new(),
        "<available_skills>".to_owned(),
        listed.join("\n"),
        "</available_skills>".to_owned(),
    ];
    Some(lines.join("\n"))
}

fn item(skill: &Skill) -> String {
    let location = skill.path.to_string_lossy();
    let description = match skill.description.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => &skill.description[..end],
        None => &skill.description,
    };
    let [name, description, location] = [skill.name.as_str(), description, &location].map(escape);
    format!(
        "  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n    \
         <location>{location}</location>\n  </skill>"
    )
}

/// `text` with XML's special characters escaped, and without
/// line breaks.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The reverse of [`escape`].
pub(super) fn unescape(text: &str) -> String {
    // `&amp;` last, because it could create others.
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, plain)| text.replace(mark, plain))
}

#[cfg(test)]
mod tests {
    use super::super::super::ResourceOrigin;
    use super::*;

    fn skill(name: &str, is_listed: bool) -> Skill {
        let path = format!("/s/{name}/SKILL.md").into();
        Skill {
            name: name.to_owned(),
            description: "A & <B>".to_owned(),
            path,
            origin: ResourceOrigin::User,
            is_listed,
        }
    }

    #[test]
    fn listed_skills_are_named_with_their_files() {
        let text = section(&[skill("a\"b", true), skill("hidden", false)], true).unwrap();
        insta::assert_snapshot!(text, @r"
        Skills are instructions for particular kinds of work.
        When a task fits the description of one, load the file at its location with the read tool before you begin.
        Relative paths in such a file start from the folder the file is in.

        <available_skills>
          <skill>
            <name>a&quot;b</name>
            <description>A &amp; &lt;B&gt;</description>
            <location>/s/a&quot;b/SKILL.md</location>
          </skill>
        </available_skills>
        ");
        assert!(section(&[skill("a", true)], false).unwrap().contains("with a bash command"));
        assert_eq!(section(&[skill("hidden", false)], true), None);
    }

    #[test]
    fn what_was_escaped_comes_back() {
        for text in ["", "plain", "a<b>&\"'", "&lt;", "&amp;lt;"] {
            assert_eq!(unescape(&escape(text)), text);
        }
    }
}
