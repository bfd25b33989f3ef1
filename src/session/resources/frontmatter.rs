//! Markdown files that begin with YAML between two lines of `---`.
//!
//! Splits the two parts, and reads the YAML as the fields of a caller. Works for any text.

use std::io::{self, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::util::os;

use super::text::{InvalidText, decode};

/// Files whose heads are worth a thread of their own.
pub(super) const FILES_PER_THREAD: usize = 25;
/// Bytes that are read of every file.
const FIRST_READ_BYTES: usize = 4 << 10;
/// Maximum number of bytes read for the frontmatter.
const MAX_HEAD_BYTES: u64 = 32 << 10;

/// A text without a byte order mark, split into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frontmatter<'a> {
    /// No frontmatter; contains the whole text.
    None(&'a str),
    /// The frontmatter has no end.
    Unclosed,
    Some {
        yaml: &'a str,
        /// The text after the frontmatter.
        body: &'a str,
    },
}

/// Splits `text`. Lines may end in CRLF.
pub(super) fn split(text: &str) -> Frontmatter<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return Frontmatter::None(text) };
    let start = first.len();
    let mut at = start;
    for line in lines {
        let end = at + line.len();
        if is_fence(line) {
            return Frontmatter::Some {
                yaml: text.get(start..at).unwrap_or_default(),
                body: text.get(end..).unwrap_or_default(),
            };
        }
        at = end;
    }
    Frontmatter::Unclosed
}

/// The beginning of a file, long enough for any reasonable frontmatter and a line after it. Blocks.
/// Also returns where it is not UTF-8.
pub(super) fn read_head(path: &Path) -> io::Result<(String, Option<InvalidText>)> {
    let mut file = os::open_regular(path)?;
    let mut bytes = vec![0; FIRST_READ_BYTES];
    let n_read = loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    bytes.truncate(n_read);
    // Less than was asked for is all there is.
    if n_read == FIRST_READ_BYTES && !has_enough(&bytes) {
        file.take(MAX_HEAD_BYTES - n_read as u64).read_to_end(&mut bytes)?;
    }
    let (text, invalid) = decode(&bytes, true);
    Ok((text.into_owned(), invalid))
}

/// Whether the whole lines of `bytes` contain a frontmatter and a line that is not empty.
fn has_enough(bytes: &[u8]) -> bool {
    let n_whole = memchr::memrchr(b'\n', bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..n_whole]);
    matches!(split(&text), Frontmatter::Some { body, .. } if !body.trim().is_empty())
}

/// Reads the YAML of a frontmatter; `None` if it has no fields. Texts that should be quoted may
/// lack their quotes.
///
/// # Errors
/// Describes the problem, with its line in the file.
pub(super) fn fields<F: DeserializeOwned>(yaml: &str) -> Result<Option<F>, FrontmatterProblem> {
    // With an empty line in place of the fence, the parser counts the lines of the file.
    yaml_serde::from_str(&["\n", yaml].concat()).or_else(|error| {
        let quoted = with_quotes(yaml).and_then(|quoted| yaml_serde::from_str(&quoted).ok());
        quoted.ok_or_else(|| FrontmatterProblem::new(&error, yaml))
    })
}

/// `yaml` with quotes around the texts of fields that YAML cannot read without, as in
/// `description: Use when: …`; `None` if there are none.
fn with_quotes(yaml: &str) -> Option<String> {
    let mut quoted = String::with_capacity(yaml.len() + 16);
    let mut has_changed = false;
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let mut field = line.to_owned();
        if let Some((name, text)) = plain_text_field(line) {
            let mut text = text.to_owned();
            // YAML joins a text of several lines with spaces.
            while let Some(more) = lines.next_if(|line| continues_text(line)) {
                field.push('\n');
                field.push_str(more);
                text.push(' ');
                text.push_str(more.trim());
            }
            if yaml_serde::from_str::<yaml_serde::Value>(&field).is_err() {
                has_changed = true;
                let text = without_outer_quotes(&text).replace('\'', "''");
                field = [name, ": '", &text, "'"].concat();
            }
        }
        quoted.push_str(&field);
        quoted.push('\n');
    }
    has_changed.then_some(quoted)
}

/// Whether a line continues the text of the field above it, and is no field at the wrong column.
fn continues_text(line: &str) -> bool {
    let text = line.trim_start();
    text.len() < line.len() && !text.is_empty() && plain_text_field(text).is_none()
}

/// Splits a line that begins a field with a text on the same line.
fn plain_text_field(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let text = text.strip_prefix([' ', '\t'])?.trim();
    // A block has lines below it; an open quote, list or object may end anywhere.
    let is_block = text.starts_with(['|', '>']) && text.len() <= 3 && !text.contains(char::is_alphabetic);
    let is_open_quote =
        ['\'', '"'].iter().any(|quote| text.starts_with(*quote) && text.matches(*quote).count() == 1);
    let is_open_list =
        (text.starts_with('[') && !text.contains(']')) || (text.starts_with('{') && !text.contains('}'));
    let is_text =
        !text.is_empty() && !is_block && !is_open_quote && !is_open_list && !is_anchor_or_alias(text);
    (is_name && is_text).then_some((name, text))
}

/// Whether `text` names a value of the same file, or is named by others.
fn is_anchor_or_alias(text: &str) -> bool {
    let is_word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    text.strip_prefix('*').is_some_and(is_word)
        || text.strip_prefix('&').is_some_and(|name| name.starts_with(char::is_alphanumeric))
}

/// `text` without the quotes around it, which a quote inside of it broke.
fn without_outer_quotes(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(text)
}

/// Why the frontmatter of a file is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontmatterProblem {
    /// The line of the file, counted from 1; `None` if no single line is wrong.
    pub(super) line: Option<usize>,
    /// One line of text, without the path.
    pub(super) cause: String,
}

impl FrontmatterProblem {
    fn new(error: &yaml_serde::Error, yaml: &str) -> Self {
        let text = one_line(&error.to_string());
        let duplicate = text.strip_prefix("duplicate field `").and_then(|rest| rest.split_once('`'));
        if let Some((name, _)) = duplicate {
            // The parser's place is that of all fields together.
            return Self { line: lines_of(yaml, name).nth(1), cause: format!("duplicate field `{name}`") };
        }
        let Some(place) = error.location() else { return Self { line: None, cause: text } };
        let (line, column) = (place.line(), place.column());
        let place = format!(" at line {line} column {column}");
        // The same for fields that may be of several types; the text begins with their names.
        let field = text.split([' ', ':']).next().unwrap_or_default();
        match lines_of(yaml, field).next() {
            Some(line) if column == 1 => Self { line: Some(line), cause: text.replacen(&place, "", 1) },
            _ => Self { line: Some(line), cause: text.replacen(&place, &format!(" at column {column}"), 1) },
        }
    }

    /// The frontmatter has no end in the part of the file that is read.
    pub(super) fn unclosed() -> Self {
        let n_kib = MAX_HEAD_BYTES >> 10;
        Self::of_file(&format!("its frontmatter has no closing --- line in the first {n_kib} KiB"))
    }

    /// A problem of the whole file.
    pub(super) fn of_file(cause: &str) -> Self {
        Self { line: None, cause: cause.to_owned() }
    }

    /// `PATH:LINE`, or the path alone.
    pub(super) fn place(&self, path: &Path) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", path.display()),
            None => path.display().to_string(),
        }
    }
}

/// A field that is surely a misspelling of one that pi reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MisspeltField {
    /// The line of the file, counted from 1.
    pub(super) line: usize,
    pub(super) field: String,
    pub(super) meant: &'static str,
}

/// Number of wrong letters in a field that is reported; fields of other programs differ in more.
const MAX_WRONG: usize = 2;

/// The misspelt fields of `yaml`; `known` are those that pi reads, and `others` are fields of other programs
/// that are spelt alike.
pub(super) fn misspelt(yaml: &str, known: &[&'static str], others: &[&str]) -> Vec<MisspeltField> {
    let is_plain = |field: &str| {
        !field.is_empty() && field.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let fields = yaml.lines().enumerate().filter_map(|(idx, line)| {
        let (field, _) = line.split_once(':')?;
        let field = field.trim_end();
        is_plain(field).then_some((idx + 2, field))
    });
    let meant = |field: &str| {
        if known.contains(&field) || others.contains(&field) {
            return None;
        }
        // An upper case letter or an underscore in place of a dash is no wrong letter.
        let letters = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
        let n_wrong = |name: &&&str| strsim::damerau_levenshtein(&letters(field), &letters(name));
        known
            .iter()
            .filter(|name| n_wrong(name) <= MAX_WRONG && n_wrong(name) * 4 < name.len())
            .min_by_key(n_wrong)
    };
    let found = fields.filter_map(|(line, field)| {
        Some(MisspeltField { line, field: field.to_owned(), meant: meant(field)? })
    });
    found.collect()
}

/// The lines of the file that begin with the field `name`.
fn lines_of(yaml: &str, name: &str) -> impl Iterator<Item = usize> {
    let is_field = move |line: &str| line.split_once(':').is_some_and(|(field, _)| field.trim_end() == name);
    // The fence is line 1.
    yaml.lines().enumerate().filter(move |(_, line)| is_field(line)).map(|(idx, _)| idx + 2)
}

/// `text` with single spaces in place of line breaks and other control characters.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn yaml_and_body_are_taken_apart() {
        let check = |text: &str, expected: Frontmatter<'_>| assert_eq!(split(text), expected, "{text:?}");
        let both = |yaml, body| Frontmatter::Some { yaml, body };
        check("---\na: 1\n---\nbody\n", both("a: 1\n", "body\n"));
        check("\u{feff}--- \r\na: 1\r\n---\r\n\r\nbody", both("a: 1\r\n", "\r\nbody"));
        check("---\n---", both("", ""));
        check("---\na: |\n  ----\n---\n", both("a: |\n  ----\n", ""));
        check("body\n---\n", Frontmatter::None("body\n---\n"));
        check("----\na\n---\n", Frontmatter::None("----\na\n---\n"));
        check("\u{feff}", Frontmatter::None(""));
        check("---\na: 1\n", Frontmatter::Unclosed);
        check("---", Frontmatter::Unclosed);
    }

    #[test]
    fn head_has_the_frontmatter_and_a_line_wherever_the_first_read_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_head(&path).unwrap().0
        };
        let rest = "x\n".repeat(4 << 10);
        for n in FIRST_READ_BYTES - 40..FIRST_READ_BYTES + 10 {
            let yaml = format!("a: {}\n", "y".repeat(n));
            // The second fence is none.
            for text in
                [format!("---\n{yaml}---\n\nfirst\n{rest}"), format!("---\n{yaml}----\n---\nfirst\n{rest}")]
            {
                let head = read(&text);
                let (Frontmatter::Some { yaml, body }, Frontmatter::Some { yaml: whole, .. }) =
                    (split(&head), split(&text))
                else {
                    panic!("{n}");
                };
                assert_eq!((yaml, body.trim_start().lines().next()), (whole, Some("first")), "{n}");
            }
        }
        assert_eq!(
            read(&format!("---\na: 1\n---\nfirst\n{rest}")).len(),
            FIRST_READ_BYTES,
            "no more is read"
        );
        assert_eq!(read(&rest), rest, "a text without a frontmatter");
        assert_eq!(read(""), "");
    }

    #[test]
    fn a_problem_has_its_line_in_the_file() {
        #[derive(Debug, serde::Deserialize)]
        struct Written {
            #[expect(dead_code, reason = "only the problem counts")]
            name: Option<String>,
        }
        let check = |text: &str, line: Option<usize>, cause: &str| {
            let Frontmatter::Some { yaml, .. } = split(text) else { panic!("{text}") };
            let problem = fields::<Written>(yaml).unwrap_err();
            assert_eq!(problem.line, line, "{text}: {problem:?}");
            assert!(problem.cause.contains(cause) && !problem.cause.contains(" at line "), "{problem:?}");
        };
        check("---\nother: 1\n name: a\n---\n", Some(3), "at column 6");
        check("---\r\n# c\r\nother: 1\r\nname: [a]\r\n---\r\n", Some(4), "name: invalid type");
        check("---\n- a\n---\n", Some(2), "expected struct");
        check("---\nname: a\nother: 1\nother: 2\nname : b\n---\n", Some(5), "duplicate field `name`");
        check("---\n{name: a, name: b}\n---\n", None, "duplicate field `name`");
    }

    #[test]
    fn text_without_its_quotes_is_read_as_it_is() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Written {
            name: Option<String>,
            description: Option<String>,
            flag: Option<bool>,
        }
        let check = |description: &str, expected: &str| {
            let yaml = format!("name: a\ndescription: {description}\nflag: true\n");
            let written: Written = fields(&yaml).unwrap().unwrap();
            assert_eq!(written.description.as_deref(), Some(expected), "{yaml}");
            assert_eq!((written.name.as_deref(), written.flag), (Some("a"), Some(true)), "{yaml}");
        };
        check("Use when: a file is read", "Use when: a file is read");
        check("'it's'", "it's");
        check("\"say \"hi\"\"", "say \"hi\"");
        check("@reviewer checks it", "@reviewer checks it");
        check("%d placeholders", "%d placeholders");
        check("`code` first", "`code` first");
        check("Use when: a file\n  is read: often", "Use when: a file is read: often");
        check("* all files: yes", "* all files: yes");
        check("[brackets] first", "[brackets] first");
        check("{curly} first", "{curly} first");
        check("*most* files", "*most* files");
        check("*all*", "*all*");
        check("\"quoted\" then more: x", "\"quoted\" then more: x");
        check("plain", "plain");
        assert!(fields::<Written>("description: [a\n").is_err());
        assert!(fields::<Written>("name: a: b\nflag: [\n").is_err());
    }

    #[test]
    fn misspelt_fields_are_told_apart_from_those_of_other_programs() {
        let known = ["description", "argument-hint", "name"];
        let yaml = "descripton: a\nargument_hint: x\nmodel: m\n  nmae: nested\nallowed-tools: [a]\nName: n\nnmae: n\n";
        let found = misspelt(yaml, &known, &["allowed-tools"]);
        let found: Vec<(usize, &str, &str)> =
            found.iter().map(|one| (one.line, one.field.as_str(), one.meant)).collect();
        assert_eq!(
            found,
            [(2, "descripton", "description"), (3, "argument_hint", "argument-hint"), (7, "Name", "name")]
        );
        assert_eq!(misspelt("version: 1\nagent: a\ntools: x\nhooks: y\ntags: z\n", &known, &[]), []);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(---|\\r|\\n|[a-z é:]|\u{feff}){0,30}") {
            if let Frontmatter::Some { yaml, body } = split(&text) {
                prop_assert!(text.contains(yaml) && text.ends_with(body));
            }
        }
    }
}
