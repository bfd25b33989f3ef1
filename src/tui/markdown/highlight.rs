//! Syntax highlighting.
//!
//! Scopes map to theme tokens, so a theme colours code of
//! any language and needs no second theme file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use syntect::parsing::{Scope, ScopeStack};

use super::super::text::Run;
use super::super::theme::{Theme, Token};
use crate::util::grammars::{CodeParser, Grammars};

/// Longer lines, in bytes, stay plain, because grammars can be slow on minified
/// files.
const MAX_LINE_BYTES: usize = 2_000;
/// Beyond this size, the rest of a block stays plain.
const MAX_BLOCK_BYTES: usize = 512 * 1024;
const MAX_BLOCK_LINES: usize = 10_000;

/// The grammars, of which each is loaded when code in its language appears. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Highlighter {
    /// What the first code needs.
    loaded: Arc<OnceLock<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    grammars: Mutex<Grammars>,
    /// Number of pieces of code that were begun.
    n_uses: AtomicU64,
    scopes: Arc<[(Scope, Token)]>,
}

impl Highlighter {
    /// A highlighter without grammars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Highlights the lines of one piece of code. `lang` is a language name or a file
    /// extension; code of unknown languages is plain.
    pub fn lines(&self, lang: &str) -> CodeLines {
        let loaded = self.loaded.get_or_init(Loaded::new);
        let state = loaded.lock().parser(lang).map(|parser| {
            loaded.n_uses.fetch_add(1, Ordering::Relaxed);
            State { parser, scopes: ScopeStack::new(), tokens: Arc::clone(&loaded.scopes) }
        });
        CodeLines { first: state.clone(), state, lines: 0, bytes: 0 }
    }

    /// Number of pieces of code that were begun, in a language that is known.
    pub fn n_uses(&self) -> u64 {
        self.loaded.get().map_or(0, |loaded| loaded.n_uses.load(Ordering::Relaxed))
    }

    /// Forgets grammars and what was compiled of them, which takes megabytes; [`Self::lines`] loads them
    /// again. Code that is being highlighted keeps those that it needs.
    pub fn forget(&self) {
        if let Some(loaded) = self.loaded.get() {
            loaded.lock().forget();
        }
    }
}

impl Loaded {
    /// The index of the grammars, which takes microseconds.
    fn new() -> Self {
        Self { grammars: Mutex::default(), n_uses: AtomicU64::new(0), scopes: scope_table() }
    }

    /// Locks the grammars, which are valid even after a panic.
    fn lock(&self) -> MutexGuard<'_, Grammars> {
        self.grammars.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Highlights code line by line; clone it to look ahead.
#[derive(Debug, Clone)]
pub struct CodeLines {
    /// At the beginning of the code.
    first: Option<State>,
    state: Option<State>,
    lines: usize,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct State {
    parser: CodeParser,
    scopes: ScopeStack,
    /// The tokens of scopes.
    tokens: Arc<[(Scope, Token)]>,
}

impl CodeLines {
    /// The next line, without its line break, as runs.
    pub fn next_line(&mut self, line: &str, theme: &Theme) -> Vec<Run> {
        let Some(tokens) = self.next_tokens(line) else {
            return vec![Run::new(line, theme.style(Token::MdCodeBlock))];
        };
        // Code that no rule of the grammar colors.
        let plain = theme.style(Token::Text);
        let mut runs: Vec<Run> = Vec::new();
        let mut start = 0;
        for (end, token) in tokens {
            let text = line.get(start..end).unwrap_or_default();
            let style = token.map_or(plain, |token| plain.patch(theme.style(token)));
            match runs.last_mut() {
                Some(last) if last.style == style => last.text.push_str(text),
                _ => runs.push(Run::new(text, style)),
            }
            start = end;
        }
        runs
    }

    /// The next line, without its line break: where each token ends, and its colour unless it has
    /// that of plain code. `None` if the line is not highlighted.
    pub fn next_tokens(&mut self, line: &str) -> Option<Vec<(usize, Option<Token>)>> {
        self.lines += 1;
        self.bytes += line.len();
        if self.lines > MAX_BLOCK_LINES || self.bytes > MAX_BLOCK_BYTES {
            self.first = None;
            self.state = None;
        }
        if line.len() > MAX_LINE_BYTES {
            self.state = None;
        }
        let tokens = self.state.as_mut()?.line(line);
        if tokens.is_none() {
            self.state = None;
        }
        tokens
    }

    /// Continues with other code in the same language. The limits apply to all of it.
    pub fn start_over(&mut self) {
        self.state.clone_from(&self.first);
    }

    /// Whether what follows is highlighted as by `other`.
    pub fn goes_on_like(&self, other: &Self) -> bool {
        match (&self.state, &other.state) {
            (Some(ours), Some(theirs)) => ours.scopes == theirs.scopes && ours.parser == theirs.parser,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl State {
    /// `None` if the grammar fails on the line.
    fn line(&mut self, line: &str) -> Option<Vec<(usize, Option<Token>)>> {
        let with_end = format!("{line}\n");
        let operations = self.parser.line(&with_end)?;
        let mut tokens: Vec<(usize, Option<Token>)> = Vec::new();
        let mut add = |end: usize, token: Option<Token>| match tokens.last_mut() {
            Some((last, _)) if *last >= end => {}
            Some((last, same)) if *same == token => *last = end,
            None if end == 0 => {}
            _ => tokens.push((end, token)),
        };
        for (at, operation) in operations {
            add(at.min(line.len()), self.token());
            self.scopes.apply(&operation).ok()?;
        }
        add(line.len(), self.token());
        Some(tokens)
    }

    /// The token of the innermost scope that maps to one.
    fn token(&self) -> Option<Token> {
        self.scopes.as_slice().iter().rev().find_map(|scope| {
            self.tokens.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, token)| *token)
        })
    }
}

/// Scopes by prefix; the first match wins, so longer prefixes come first.
/// Names follow <https://www.sublimetext.com/docs/scope_naming.html>.
fn scope_table() -> Arc<[(Scope, Token)]> {
    [
        ("comment", Token::SyntaxComment),
        ("punctuation.definition.comment", Token::SyntaxComment),
        ("punctuation.definition.string", Token::SyntaxString),
        ("string", Token::SyntaxString),
        ("constant.character.escape", Token::SyntaxNumber),
        ("constant", Token::SyntaxNumber),
        ("keyword.operator", Token::SyntaxOperator),
        ("keyword", Token::SyntaxKeyword),
        ("storage.type.function", Token::SyntaxKeyword),
        ("storage", Token::SyntaxKeyword),
        ("entity.name.function", Token::SyntaxFunction),
        ("support.function", Token::SyntaxFunction),
        ("support.macro", Token::SyntaxFunction),
        ("variable.function", Token::SyntaxFunction),
        ("meta.function-call.identifier", Token::SyntaxFunction),
        ("entity.name.tag", Token::SyntaxKeyword),
        ("entity.other.attribute-name", Token::SyntaxVariable),
        ("entity.name", Token::SyntaxType),
        ("entity.other.inherited-class", Token::SyntaxType),
        ("support.type", Token::SyntaxType),
        ("support.class", Token::SyntaxType),
        ("variable", Token::SyntaxVariable),
        ("punctuation", Token::SyntaxPunctuation),
        ("markup.inserted", Token::ToolDiffAdded),
        ("markup.deleted", Token::ToolDiffRemoved),
        ("markup.heading", Token::MdHeading),
    ]
    .into_iter()
    .filter_map(|(name, token)| Some((Scope::new(name).ok()?, token)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::{Appearance, ColorDepth};
    use super::*;

    #[test]
    fn code_has_the_colours_of_the_theme() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let runs = Highlighter::new().lines("rust").next_line("let s = \"a\"; // b", &theme);
        let style_of = |text: &str| runs.iter().find(|run| run.text.contains(text)).unwrap().style;
        let expected = |token: Token| theme.style(Token::Text).patch(theme.style(token));
        // What has no scope has the colour of text.
        assert!(runs.iter().any(|run| run.style == theme.style(Token::Text)), "{runs:?}");
        assert_eq!(style_of("\"a\""), expected(Token::SyntaxString));
        assert_eq!(style_of("// b"), expected(Token::SyntaxComment));
        let text: String = runs.iter().map(|run| run.text.as_str()).collect();
        assert_eq!(text, "let s = \"a\"; // b");
    }

    #[test]
    fn forgotten_grammars_are_loaded_again_and_code_that_was_begun_goes_on() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let highlighter = Highlighter::new();
        highlighter.forget();
        let mut lines = highlighter.lines("rust");
        let mut begun = lines.clone();
        let expected = [lines.next_line("/* a", &theme), lines.next_line("b */ let x = 1;", &theme)];
        assert_eq!(begun.next_line("/* a", &theme), expected[0]);
        highlighter.forget();
        assert_eq!(begun.next_line("b */ let x = 1;", &theme), expected[1]);
        assert_eq!(highlighter.n_uses(), 1);
        assert_eq!(highlighter.lines("rust").next_line("/* a", &theme), expected[0]);
        assert_eq!(highlighter.n_uses(), 2);
        highlighter.lines("no-such-language").next_line("a", &theme);
        assert_eq!(highlighter.n_uses(), 2);
    }

    #[test]
    fn common_languages_are_known() {
        let highlighter = Highlighter::new();
        for lang in [
            "rust", "rs", "ts", "tsx", "python", "bash", "shell", "json", "toml", "yaml", "go", "c++", "diff",
        ] {
            assert!(highlighter.lines(lang).state.is_some(), "{lang}");
        }
        assert!(highlighter.lines("no-such-language").state.is_none());
    }

    #[test]
    fn endless_lines_stay_plain() {
        let theme = Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap();
        let highlighter = Highlighter::new();
        let mut lines = highlighter.lines("js");
        assert_eq!(lines.next_line(&"x=1;".repeat(1_000), &theme).len(), 1);
    }
}
