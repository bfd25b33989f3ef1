//! Fields of a skill's frontmatter, with the rules of
//! <https://agentskills.io/specification>.

use serde::Deserialize;

use super::super::frontmatter::{self, FrontmatterProblem, one_line};

/// Maximum length of a description, in characters.
pub(super) const MAX_DESCRIPTION: usize = 1024;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;

/// The names of the fields that pi reads.
pub(super) const NAMES: &[&str] = &["name", "description", "disable-model-invocation"];
/// Fields that other programs read, and that are spelt alike.
pub(super) const OTHER_NAMES: &[&str] = &["names"];

/// The fields that pi uses. Texts are one line, and `None` if
/// empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) is_listed: bool,
}

/// The fields as written; unknown fields are skipped.
#[derive(Default, Deserialize)]
#[serde(expecting = "fields such as description: TEXT")]
struct Written {
    name: Option<String>,
    description: Option<String>,
    #[serde(rename = "disable-model-invocation")]
    disable_model_invocation: Option<String>,
}

impl Fields {
    /// Reads the YAML of a frontmatter.
    ///
    /// # Errors
    /// Describes the problem and its line.
    pub(super) fn parse(yaml: &str) -> Result<Self, FrontmatterProblem> {
        let written: Written = frontmatter::fields(yaml)?.unwrap_or_default();
        let text = |field: Option<String>| field.map(|text| one_line(&text)).filter(|text| !text.is_empty());
        let disabled = written.disable_model_invocation.unwrap_or_default().to_ascii_lowercase();
        Ok(Self {
            name: text(written.name),
            description: text(written.description),
            // Older YAML also writes booleans like this.
            is_listed: !["true", "yes", "on"].contains(&disabled.as_str()),
        })
    }
}

/// The problem with a name; the skill can be used nevertheless.
pub(super) fn name_problem(name: &str) -> Option<&'static str> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().count() > MAX_NAME {
        return Some("is longer than 64 characters");
    }
    if !name.chars().all(is_allowed) {
        return Some("contains characters other than a-z, 0-9 and -");
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("begins or ends with -");
    }
    name.contains("--").then_some("contains two consecutive -")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(yaml: &str, name: Option<&str>, description: Option<&str>, is_listed: bool) {
        let fields = Fields::parse(yaml).unwrap();
        let found = (fields.name.as_deref(), fields.description.as_deref(), fields.is_listed);
        assert_eq!(found, (name, description, is_listed), "{yaml}");
    }

    #[test]
    fn known_fields_are_read_and_others_skipped() {
        check("name: pdf\ndescription: Reads PDFs\n", Some("pdf"), Some("Reads PDFs"), true);
        check(
            "license: MIT\nallowed-tools: [read]\nmetadata: {a: {b: 1}}\ndescription: >\n  Two\n  lines\n\n",
            None,
            Some("Two lines"),
            true,
        );
        check("description: d\r\ndisable-model-invocation: true\r\n", None, Some("d"), false);
        check("description: d\ndisable-model-invocation: false", None, Some("d"), true);
        check("description: d\ndisable-model-invocation: yes", None, Some("d"), false);
        check("name: 2024\ndescription: true\n", Some("2024"), Some("true"), true);
    }

    #[test]
    fn nothing_in_a_field_is_no_field() {
        for yaml in ["", "\n", "# a comment\n", "~", "name:\ndescription: ''\n", "description: \"\\e \\0\"\n"]
        {
            check(yaml, None, None, true);
        }
    }

    #[test]
    fn what_is_no_yaml_says_why() {
        let check = |yaml: &str, part: &str| {
            let error = Fields::parse(yaml).unwrap_err().cause;
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        };
        check("name: a\n description: b\n", "mapping values");
        check("- a\n- b\n", "expected");
        check("description: [a, b]\n", "description");
        check("name: a\nname: b\n", "duplicate");
        check("description: \"open\n", "quoted");
        check("description: a\n---\ndescription: b\n", "more than one document");
        check(&"[".repeat(3_000), "");
    }

    #[test]
    fn a_bomb_of_aliases_is_skipped_or_refused() {
        let mut yaml = "description: d\na0: &a0 [x, x]\n".to_owned();
        for n in 1..60 {
            let last = n - 1;
            yaml.push_str(
                &["a", &n.to_string(), ": &a", &n.to_string(), " [", &format!("*a{last}, *a{last}"), "]\n"]
                    .concat(),
            );
        }
        // Valid or not, parsing must end.
        let known = Fields::parse(&yaml);
        assert!(known.is_err() || known.is_ok_and(|fields| fields.description.as_deref() == Some("d")));
        assert!(Fields::parse(&[&yaml, "name: *a59\n"].concat()).is_err());
    }

    #[test]
    fn names_are_short_and_plain() {
        let check = |name: &str, ok: bool| assert_eq!(name_problem(name).is_none(), ok, "{name}");
        check("pdf-tools-2", true);
        check("a", true);
        for name in ["PDF", "a b", "é", "-a", "a-", "a--b", &"a".repeat(65)] {
            check(name, false);
        }
    }

    proptest! {
        #[test]
        fn any_yaml_is_survived(yaml in "([a-z]{1,3}|name|description|[:\\-\\[\\]{}&*!|>'\"#%@`,?\\\\ \\n\\t]|\\PC){0,60}") {
            if let Ok(fields) = Fields::parse(&yaml) {
                prop_assert!(fields.description.is_none_or(|text| !text.contains('\n')));
            }
        }
    }
}
