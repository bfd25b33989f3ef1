//! What is being typed before the cursor, as far as completion is concerned.

use super::shell::ShellWord;

/// The text that a suggestion replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// The name after the slash of a command.
    Command(&'a str),
    /// The arguments of a command.
    Argument { command: &'a str, text: &'a str },
    /// A path after `@`, which stays part of the prompt.
    File(Token<'a>),
    /// A path that begins like one.
    Path(Token<'a>),
    /// The same in a command for the shell.
    ShellPath(ShellWord),
}

/// A word that may be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// Without `@` and quotes.
    pub(super) text: &'a str,
    /// Bytes before the cursor that belong to it, with `@` and the quote.
    pub(super) n_bytes: usize,
    /// The quote that is still open.
    pub(super) quote: Option<char>,
}

/// Beginnings of words that are paths, whatever follows.
const PATH_STARTS: [&str; 4] = ["/", "~/", "./", "../"];

impl<'a> Typed<'a> {
    /// What is typed at the end of `before`, the line up to the cursor. `is_first` is whether
    /// that is the first line of the text, and `in_shell` whether the text is a command for the shell.
    pub(super) fn find(before: &'a str, is_first: bool, in_shell: bool) -> Option<Self> {
        let is_path = |text: &str| PATH_STARTS.iter().any(|start| text.starts_with(start));
        if in_shell {
            let word = ShellWord::last(before);
            return is_path(&word.text).then_some(Self::ShellPath(word));
        }
        // A slash at the start of the text begins a command, until another one makes it a path.
        if is_first
            && let Some(line) = before.strip_prefix('/')
            && !line.split(char::is_whitespace).next().unwrap_or_default().contains('/')
        {
            return Some(match line.split_once(char::is_whitespace) {
                None => Self::Command(line),
                Some((command, text)) => Self::Argument { command, text: text.trim_start() },
            });
        }
        let token = Token::last(before);
        let whole = &before[before.len() - token.n_bytes..];
        if whole.starts_with('@') {
            return Some(Self::File(token));
        }
        is_path(token.text).then_some(Self::Path(token))
    }
}

impl<'a> Token<'a> {
    /// The last word of `before`, which may be empty. A word begins after a blank, a quote
    /// or punctuation of Chinese, Japanese and Korean, after `=` or a bracket that is in no path, and at `@` after a
    /// letter of a script without blanks; within quotes, blanks belong to it.
    pub(super) fn last(before: &'a str) -> Self {
        let word = Self::unquoted(before);
        let is_file = |token: &Self| before[before.len() - token.n_bytes..].starts_with('@');
        match Self::quoted(before) {
            // A quote in prose ends later: `@` within it begins a file as anywhere else.
            Some(token) if is_file(&token) || !is_file(&word) => token,
            _ => word,
        }
    }

    fn unquoted(before: &'a str) -> Self {
        let after = |at: usize| at + before[at..].chars().next().map_or(0, char::len_utf8);
        let mut boundaries = before.rmatch_indices(|c| is_boundary(c) && !is_bracket(c));
        let start = boundaries.find(|(at, _)| !is_apostrophe(before, *at)).map_or(0, |(at, _)| after(at));
        // Names may have brackets too: `app/(group)/[id]`.
        let brackets = before[start..].match_indices(is_bracket).map(|(at, _)| after(start + at));
        let starts: Vec<usize> = std::iter::once(start).chain(brackets).collect();
        let first_part = |at: usize| before[at..].split(is_bracket).next().unwrap_or_default();
        let in_path = starts.iter().copied().find(|at| first_part(*at).contains('/'));
        let is_file = |(at, _): &(usize, &str)| {
            starts.contains(at) || before[..*at].chars().next_back().is_some_and(is_unspaced)
        };
        let file = before[start..].match_indices('@').map(|(at, found)| (start + at, found)).rfind(is_file);
        let word = &before[file.map(|(at, _)| at).or(in_path).or(starts.last().copied()).unwrap_or(start)..];
        Self { text: word.strip_prefix('@').unwrap_or(word), n_bytes: word.len(), quote: None }
    }

    /// The word after a quote that is still open and begins a word.
    fn quoted(before: &'a str) -> Option<Self> {
        let (mut open, mut previous) = (None, None);
        for (at, c) in before.char_indices() {
            match open {
                Some((_, quote)) if c == quote => open = None,
                None if matches!(c, '"' | '\'') && previous.is_none_or(begins_quote) => open = Some((at, c)),
                _ => {}
            }
            previous = Some(c);
        }
        let (at, quote) = open?;
        let has_at = before[..at].ends_with('@');
        let start = if has_at { at - 1 } else { at };
        Some(Self { text: &before[at + 1..], n_bytes: before.len() - start, quote: Some(quote) })
    }
}

/// Whether a quote after this character opens one; an apostrophe within a word does not.
fn begins_quote(previous: char) -> bool {
    previous == '@' || is_boundary(previous)
}

/// Whether the boundary at this place of `before` is within a word, or may be once the next letter is typed.
fn is_apostrophe(before: &str, at: usize) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    let rest = before[at..].strip_prefix('\'').map(|rest| rest.chars().next().is_none_or(is_letter));
    rest == Some(true) && before[..at].ends_with(is_letter)
}

/// Letters of scripts that are written without blanks between words: Chinese, Japanese and Thai.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
        || matches!(c, '\u{20000}'..='\u{3ffff}' | '\u{0e01}'..='\u{0e4e}')
}

/// A boundary that may also be part of a name.
fn is_bracket(c: char) -> bool {
    matches!(c, '=' | '(' | '[' | '{')
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace()
        || is_bracket(c)
        || matches!(c, '"' | '\'' | '`' | '<')
        || matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, expected: Option<Typed<'_>>) {
        assert_eq!(Typed::find(before, true, before.trim_start().starts_with('!')), expected, "{before:?}");
    }

    fn token(text: &str, n_bytes: usize, quote: Option<char>) -> Token<'_> {
        Token { text, n_bytes, quote }
    }

    #[test]
    fn line_is_a_command_with_arguments_or_ends_in_a_file() {
        check("/", Some(Typed::Command("")));
        check("/mo", Some(Typed::Command("mo")));
        check("/model  fa st", Some(Typed::Argument { command: "model", text: "fa st" }));
        check("/export ~/a/b c", Some(Typed::Argument { command: "export", text: "~/a/b c" }));
        check("/etc/host", Some(Typed::Path(token("/etc/host", 9, None))));
        check("/tmp/", Some(Typed::Path(token("/tmp/", 5, None))));
        check("/tmp", Some(Typed::Command("tmp")));
        for start in ["./", "../", "~/"] {
            check(start, Some(Typed::Path(token(start, start.len(), None))));
        }
        check("hello", None);
        check("", None);
        check("see @", Some(Typed::File(token("", 1, None))));
        check("@src/ma", Some(Typed::File(token("src/ma", 7, None))));
        check("看，@源", Some(Typed::File(token("源", 4, None))));
        check("看@源", Some(Typed::File(token("源", 4, None))));
        check("看一下@src/看a", Some(Typed::File(token("src/看a", 9, None))));
        check("你好me@host.org", None);
        check("me@host.org", None);
        check("x=@a", Some(Typed::File(token("a", 2, None))));
        for path in ["app/(auth", "app/(auth)/[id", "(auth", "[id", "a(b", "c=d", "app/(x)/@modal/p"] {
            check(&format!("see @{path}"), Some(Typed::File(token(path, path.len() + 1, None))));
        }
        check("f(@a, [@b", Some(Typed::File(token("b", 2, None))));
        check("see ./app/(au", Some(Typed::Path(token("./app/(au", 9, None))));
        check("(./app/(au", Some(Typed::Path(token("./app/(au", 9, None))));
        check("--out=./ap", Some(Typed::Path(token("./ap", 4, None))));
        check("see @\"my fi", Some(Typed::File(token("my fi", 7, Some('"')))));
        check("see @\"my file\" and", None);
        check("he wrote \"look at @sr", Some(Typed::File(token("sr", 3, None))));
        check("\"@sr", Some(Typed::File(token("sr", 3, None))));
        check("see @\"my @fi", Some(Typed::File(token("my @fi", 8, Some('"')))));
        check("!git clone git@host", None);
        check("!ls @x", None);
        check(" !ls @x", None);
        check("ls ./sr", Some(Typed::Path(token("./sr", 4, None))));
        check("!cat ~/no", Some(Typed::ShellPath(ShellWord::last("!cat ~/no"))));
        check("cat '/my fi", Some(Typed::Path(token("/my fi", 7, Some('\'')))));
        check("and/or", None);
        check("see @it's", Some(Typed::File(token("it's", 5, None))));
        check("@it'", Some(Typed::File(token("it'", 4, None))));
        check("@it's q", None);
        check("@\"it's q", Some(Typed::File(token("it's q", 8, Some('"')))));
        check("'a'@x", Some(Typed::File(token("x", 2, None))));
        check("看'@x", Some(Typed::File(token("x", 2, None))));
        check("./it's", Some(Typed::Path(token("./it's", 6, None))));
        check("don't @x", Some(Typed::File(token("x", 2, None))));
        assert_eq!(Typed::find("/mo", false, false), Some(Typed::Path(token("/mo", 3, None))));
        assert_eq!(Typed::find("/", false, false), Some(Typed::Path(token("/", 1, None))));
    }

    #[test]
    fn last_word_is_what_a_key_completes() {
        let check = |before: &str, expected: Token<'_>| {
            assert_eq!(Token::last(before), expected, "{before:?}");
        };
        check("!ls sr", token("sr", 2, None));
        check("!ls ", token("", 0, None));
        check("cd app/(auth)/[i", token("app/(auth)/[i", 13, None));
        check("call(src/ma", token("src/ma", 6, None));
        check("call(ma", token("ma", 2, None));
        check("a \"b c", token("b c", 4, Some('"')));
        check("", token("", 0, None));
    }
}
