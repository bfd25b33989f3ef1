//! Words of a shell command: what is typed of one, and how a path is written as one.

/// The word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// What the shell makes of it, except for variables.
    pub(super) text: String,
    /// Bytes before the cursor that belong to it.
    pub(super) n_bytes: usize,
    /// The quote that begins it, if it is still open.
    pub(super) quote: Option<char>,
}

impl ShellWord {
    /// The last word of `before`, which may be empty: a line up to the cursor, with the marks of the command.
    pub(super) fn last(before: &str) -> Self {
        let marks = before.len() - before.trim_start_matches([' ', '\t', '!']).len();
        let (mut start, mut text) = (marks, String::new());
        let mut open: Option<(usize, char)> = None;
        let mut chars = before[marks..].char_indices();
        while let Some((at, c)) = chars.next() {
            let at = marks + at;
            match (open, c) {
                (Some((_, quote)), c) if c == quote => open = None,
                (Some((_, '"')), '\\') if before[at + 1..].starts_with(['"', '\\', '$', '`']) => {
                    text.extend(chars.next().map(|(_, escaped)| escaped));
                }
                (Some(_), c) => text.push(c),
                (None, '\\') => text.extend(chars.next().map(|(_, escaped)| escaped)),
                (None, '"' | '\'') => open = Some((at, c)),
                (None, c) if ends_word(c) => {
                    start = at + c.len_utf8();
                    text.clear();
                }
                (None, c) => text.push(c),
            }
        }
        let quote = open.filter(|(at, _)| *at == start).map(|(_, quote)| quote);
        Self { text, n_bytes: before.len() - start, quote }
    }
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '=')
}

/// The path as a word of which the shell expands nothing but `~/` at its beginning. After `quote` it is quoted and the
/// quote stays open.
pub(super) fn word_of(path: &str, quote: Option<char>) -> String {
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("~/", rest));
    let escape = |is_special: fn(char) -> bool| {
        rest.chars().fold(home.to_owned(), |mut word, c| {
            word.extend(is_special(c).then_some('\\'));
            word.push(c);
            word
        })
    };
    match quote.filter(|_| home.is_empty()) {
        Some('"') => format!("\"{}", escape(|c| matches!(c, '"' | '\\' | '$' | '`'))),
        Some(quote) => format!("{quote}{}", rest.replace('\'', r"'\''")),
        None => escape(is_special),
    }
}

/// Whether the character may mean something to the shell outside of quotes.
fn is_special(c: char) -> bool {
    c.is_whitespace() || c.is_ascii() && !c.is_ascii_alphanumeric() && !"%+,-./:@_".contains(c)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn last_word_is_read_like_the_shell_does() {
        let check = |before: &str, text: &str, n_bytes: usize, quote: Option<char>| {
            assert_eq!(
                ShellWord::last(before),
                ShellWord { text: text.to_owned(), n_bytes, quote },
                "{before}"
            );
        };
        check("!cat", "cat", 3, None);
        check("!! cat no", "no", 2, None);
        check("!cat ", "", 0, None);
        check(r"!cat dir\ w", "dir w", 6, None);
        check(r#"!cat "dir w"#, "dir w", 6, Some('"'));
        check(r"!cat 'a b\ c", r"a b\ c", 7, Some('\''));
        check(r#"!cat "a \$b\c"#, r"a $b\c", 8, Some('"'));
        check(r#"!cat x"y z"#, "xy z", 5, None);
        check(r"!cat 'it'\''s", "it's", 8, None);
        check("!a;b|c&&sr", "sr", 2, None);
        check("!x --out=di", "di", 2, None);
        check("!cat 'x' ~/a", "~/a", 3, None);
        check(r"!cat a\", "a", 2, None);
        check("!ls 深い/フ", "深い/フ", 10, None);
    }

    #[test]
    fn path_is_one_word_without_expansions() {
        assert_eq!(word_of("src/main-1.rs", None), "src/main-1.rs");
        assert_eq!(word_of("a b;$(x)/", None), r"a\ b\;\$\(x\)/");
        assert_eq!(word_of("~/my x", None), r"~/my\ x");
        assert_eq!(word_of("~x", None), r"\~x");
        assert_eq!(word_of("~/my x", Some('"')), r"~/my\ x");
        assert_eq!(word_of("a $b`c", Some('"')), r#""a \$b\`c"#);
        assert_eq!(word_of("it's", Some('\'')), r"'it'\''s");
    }

    proptest! {
        /// What is inserted is read as the same path again, so completion can go on in a folder.
        #[test]
        fn word_of_a_path_is_read_as_this_path(path in "[ -~é深 \u{3000}]{1,12}", quote in 0..3_usize) {
            let quote = [None, Some('"'), Some('\'')][quote];
            let word = ShellWord::last(&format!("!cat {}", word_of(&path, quote)));
            prop_assert_eq!(word.text, path);
        }
    }

    #[cfg(unix)]
    #[test]
    fn shell_reads_the_word_as_the_path() {
        let all: String = (' '..='~').chain(['é', '深', '\u{3000}']).collect();
        for quote in [None, Some('"'), Some('\'')] {
            let end = quote.map(String::from).unwrap_or_default();
            let script = format!("printf %s {}{end}", word_of(&all, quote));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), all, "{script}");
        }
    }
}
