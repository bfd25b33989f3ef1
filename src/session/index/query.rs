//! The words of a search.

use std::ops::Range;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::util::composed::composed;

/// A search for texts that contain all of several words, in any case.
///
/// `"two words"` is a phrase, with any white space between its words; `re:PATTERN` is a
/// regular expression.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    words: Vec<RegexMatcher>,
    is_pattern: bool,
}

/// Why a search is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The pattern after `re:` cannot be used.
    #[error("invalid regular expression: {reason}")]
    Pattern {
        /// What is wrong with it.
        reason: String,
    },
    /// A word or phrase is longer than 1,000 characters.
    #[error(
        "a word or phrase of {n_chars} characters is too long to search for; use at most {MAX_WORD_CHARS}"
    )]
    TooLong {
        /// Its length in characters.
        n_chars: usize,
    },
}

/// Longer words and phrases are not searched for.
const MAX_WORD_CHARS: usize = 1_000;

/// A set of words, by position.
pub(super) type WordSet = u32;

/// Words beyond this number are ignored.
const MAX_WORDS: usize = WordSet::BITS as usize;
/// Limits the memory of a compiled expression.
const PATTERN_BYTES: usize = 4 << 20;

impl SearchQuery {
    /// `None` if `text` contains no word.
    ///
    /// # Errors
    /// If the regular expression after `re:` is invalid, or a word is too long.
    pub fn parse(text: &str) -> Result<Option<Self>, QueryError> {
        let text = composed(text.trim());
        let is_pattern = text.starts_with("re:");
        let patterns: Vec<String> = match text.strip_prefix("re:") {
            Some(pattern) => vec![pattern.trim().to_owned()],
            None => terms(&text).iter().map(|term| pattern(term)).collect::<Result<_, _>>()?,
        };
        let words: Result<Vec<_>, _> = patterns
            .iter()
            .filter(|pattern| !pattern.is_empty())
            .take(MAX_WORDS)
            .map(|pattern| matcher(pattern))
            .collect();
        Ok(Some(Self { words: words?, is_pattern }).filter(|query| !query.words.is_empty()))
    }

    /// Whether matches depend on where a text begins and ends.
    pub(super) fn is_pattern(&self) -> bool {
        self.is_pattern
    }

    /// All of its words.
    pub(super) fn all(&self) -> WordSet {
        WordSet::MAX >> (MAX_WORDS - self.words.len())
    }

    /// Those of the words in `wanted` that `text` contains.
    pub(super) fn found_in(&self, text: &[u8], wanted: WordSet) -> WordSet {
        let mut found = 0;
        for (at, word) in self.words.iter().enumerate() {
            let bit = 1 << at;
            if wanted & bit != 0 && word.is_match(text).unwrap_or(false) {
                found |= bit;
            }
        }
        found
    }

    /// The first occurrence of any word.
    pub(super) fn first_in(&self, text: &str) -> Option<Range<usize>> {
        let found = self.words.iter().filter_map(|word| word.find(text.as_bytes()).ok().flatten());
        found.map(|found| found.start()..found.end()).min_by_key(|range| range.start)
    }

    /// All occurrences of its words, ascending, not overlapping, at character boundaries.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let mut marks: Vec<Range<usize>> = Vec::new();
        for word in &self.words {
            let each = word.find_iter(text.as_bytes(), |found| {
                marks.push(found.start()..found.end());
                true
            });
            drop(each);
        }
        let is_shown = |range: &Range<usize>| !range.is_empty() && text.get(range.clone()).is_some();
        marks.retain(is_shown);
        marks.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for mark in marks {
            match merged.last_mut() {
                Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
                _ => merged.push(mark),
            }
        }
        merged
    }
}

/// The words and phrases of `text`; a quote that is not closed extends to the end.
fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            terms.push(part.to_owned());
        } else {
            terms.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    terms
}

/// The expression that matches `term` literally, except for its white space.
fn pattern(term: &str) -> Result<String, QueryError> {
    let n_chars = term.chars().count();
    if n_chars > MAX_WORD_CHARS {
        return Err(QueryError::TooLong { n_chars });
    }
    let words: Vec<String> = term.split_whitespace().map(escaped).collect();
    Ok(words.join(r"\s+"))
}

fn escaped(word: &str) -> String {
    let mut pattern = String::with_capacity(word.len());
    for c in word.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn matcher(pattern: &str) -> Result<RegexMatcher, QueryError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(true).multi_line(true).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    builder.build(pattern).map_err(|error| {
        let text = error.to_string();
        // Only the last line of the parser's message says what is wrong.
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        QueryError::Pattern { reason }
    })
}
