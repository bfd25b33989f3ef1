//! The arguments of a template, and the placeholders they replace.
//!
//! The syntax is the original's. Pure: one pass, so that arguments are never read as
//! placeholders.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Maximum size of an expanded template, in bytes.
pub(super) const MAX_EXPANDED_BYTES: usize = 4 << 20;

/// `${1:-default}`, `${@:2}`, `${@:2:3}`, `$ARGUMENTS`, `$@`, `$1`.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\$\{(?<name>[0-9]+|@|ARGUMENTS):-(?<default>[^}]*)\}|\$\{@:(?<start>[0-9]+)(?::(?<length>[0-9]+))?\}|\$(?<plain>ARGUMENTS|@|[0-9]+)";
    Regex::new(pattern).expect("the pattern is valid (tested)")
});

/// What looks like a placeholder in braces.
static BRACED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{(?:[0-9]+|@|ARGUMENTS)\b?[^}\n]{0,40}\}?").expect("the pattern is valid (tested)")
});

/// The first text in braces that a user may take for a placeholder, and that is none.
pub(super) fn mistaken(body: &str) -> Option<&str> {
    let is_placeholder = |at: usize| PLACEHOLDER.find_at(body, at).is_some_and(|found| found.start() == at);
    BRACED.find_iter(body).find(|found| !is_placeholder(found.start())).map(|found| found.as_str())
}

/// `body` with its placeholders replaced by the arguments in `text`; `None` if the result is
/// longer than [`MAX_EXPANDED_BYTES`].
///
/// Text after an empty line is no argument but follows the template: it is piped input or a
/// paragraph, whose lines must stay as they are. Arguments of a template without
/// placeholders follow it too.
pub(super) fn apply(body: &str, text: &str) -> Option<String> {
    let (args, rest) = split_rest(text);
    let words = split(args);
    let mut expanded = String::new();
    let mut end = 0;
    for captures in PLACEHOLDER.captures_iter(body) {
        let Some(placeholder) = captures.get(0) else { continue };
        expanded.push_str(&body[end..placeholder.start()]);
        expanded.push_str(&value(&captures, &words));
        end = placeholder.end();
        if expanded.len() > MAX_EXPANDED_BYTES {
            return None;
        }
    }
    expanded.push_str(&body[end..]);
    let is_unused = end == 0 && !args.is_empty();
    for part in [is_unused.then_some(args), (!rest.is_empty()).then_some(rest)].into_iter().flatten() {
        expanded.push_str("\n\n");
        expanded.push_str(part);
    }
    (expanded.len() <= MAX_EXPANDED_BYTES).then_some(expanded)
}

/// The arguments, and the text after the first empty line.
fn split_rest(text: &str) -> (&str, &str) {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if start > 0 && line.trim().is_empty() {
            return (text[..start].trim(), text[end..].trim_matches('\n').trim_end());
        }
    }
    (text.trim(), "")
}

/// Splits arguments as a shell would. A quote counts only at the start of an argument and
/// only if it is closed; `\"` inside is a quote itself.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = if matches!(first, '"' | '\'') { quoted(&rest[1..], first) } else { None };
        let (mut word, after) = match quoted {
            Some((word, after)) => (word, after),
            None => (String::new(), rest),
        };
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        word.push_str(&after[..end]);
        words.push(word);
        rest = after[end..].trim_start();
    }
    words
}

/// The text up to the closing `quote`, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let after = &text[at + c.len_utf8()..];
        if c == quote {
            return Some((word, after));
        }
        if c == '\\' && after.starts_with(quote) {
            chars.next();
            word.push(quote);
        } else {
            word.push(c);
        }
    }
    None
}

fn value(captures: &Captures<'_>, words: &[String]) -> String {
    let text = |name| captures.name(name).map(|found| found.as_str());
    let number = |digits: &str| digits.parse::<usize>().unwrap_or(usize::MAX);
    if let Some(start) = text("start") {
        let start = number(start).saturating_sub(1).min(words.len());
        let length = text("length").map_or(usize::MAX, number);
        let end = start.saturating_add(length).min(words.len());
        return words[start..end].join(" ");
    }
    let name = text("plain").or_else(|| text("name")).unwrap_or_default();
    let value = match name {
        "@" | "ARGUMENTS" => words.join(" "),
        digits => number(digits).checked_sub(1).and_then(|idx| words.get(idx)).cloned().unwrap_or_default(),
    };
    match text("default") {
        Some(default) if value.is_empty() => default.to_owned(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn placeholders_are_replaced_by_their_arguments() {
        let check = |body: &str, args: &str, expected: &str| {
            assert_eq!(apply(body, args).as_deref(), Some(expected), "{body} {args}");
        };
        check("Fix $1 in $2.", "bug a.rs", "Fix bug in a.rs.");
        check("Fix $1 in $2!", "bug", "Fix bug in !");
        check("$0|$11|$1", "a b c d e f g h i j k", "|k|a");
        check("All: $@; again: $ARGUMENTS.", "a  b", "All: a b; again: a b.");
        check("${1:-main} ${2:-x y}", "dev", "dev x y");
        check("${@:-none} ${ARGUMENTS:-none}", "", "none none");
        check("${1:-default}", "''", "default");
        check("${@:2} ${@:0} ${@:2:1} ${@:9}|", "a b c", "b c a b c b |");
        check("$1", "99999999999999999999999", "99999999999999999999999");
        check("${@:99999999999999999999999}|$99999999999999999999999|", "a", "||");
        // One pass: what an argument contains is no placeholder.
        check("$1 $2", "$2 $1", "$2 $1");
        check("${1:-$2}", "", "$2");
        // Not placeholders.
        check("${1} $x $$ ${@} $ ${1:+a} $1", "v", "${1} $x $$ ${@} $ ${1:+a} v");
    }

    #[test]
    fn quotes_group_words_and_open_ones_are_text() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text), expected, "{text}");
        check("", &[]);
        check(" a\tb\nc ", &["a", "b", "c"]);
        check("\"a b\" 'c d'", &["a b", "c d"]);
        check(r#""say \"hi\" 'x'" '\'' "#, &[r#"say "hi" 'x'"#, "'"]);
        check("it's \"open quote", &["it's", "\"open", "quote"]);
        check("'' \"\"", &["", ""]);
        check("'a'b\"c\"", &["ab\"c\""]);
        check(r"a\ b \n", &[r"a\", "b", r"\n"]);
    }

    #[test]
    fn text_that_no_placeholder_takes_follows_the_template() {
        let check = |body: &str, args: &str, expected: &str| {
            assert_eq!(apply(body, args).as_deref(), Some(expected), "{body} {args}");
        };
        check("Review this.", "the \"error\" paths", "Review this.\n\nthe \"error\" paths");
        check("Review this.", "", "Review this.");
        check("Review $1.", "it\n\n  line one\n  line two\n", "Review it.\n\n  line one\n  line two");
        check("Review.", "it\n\nx", "Review.\n\nit\n\nx");
        check("Review $@.", "a\nb", "Review a b.");
    }

    #[test]
    fn an_expansion_without_bounds_is_refused() {
        let body = "$@".repeat(1 << 16);
        assert_eq!(apply(&body, &"x".repeat(1 << 12)), None);
        assert_eq!(apply("$@", &"x".repeat(MAX_EXPANDED_BYTES)).map(|text| text.len()), Some(4 << 20));
        assert_eq!(apply("no", &"x".repeat(MAX_EXPANDED_BYTES)), None);
    }

    proptest! {
        #[test]
        fn any_template_and_any_arguments_are_survived(
            body in "(\\$|\\{|\\}|:|-|@|ARGUMENTS|[0-9]{1,3}|\\PC|\\n){0,30}",
            args in "(\"|'|\\\\| |\\n|\\$1|\\PC){0,30}",
        ) {
            prop_assert!(apply(&body, &args).is_some());
        }
    }
}
