//! Fuzzy search, as in editors.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use unicode_segmentation::UnicodeSegmentation as _;

/// Indices of the items that match all words of `query` in either case, best first: those that contain more of the words
/// whole go before others, of equal ones those that contain them in the same case; equal matches keep their order. An empty query matches everything. Words support fzf's syntax
/// (`'exact`, `^prefix`, `suffix$`, `!not`).
pub fn fuzzy_rank<'a>(query: &str, items: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    // A cluster counts by its first character, as in the items.
    let query: String = query.graphemes(true).filter_map(|cluster| cluster.chars().next()).collect();
    let pattern = Pattern::parse(&query, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let words: Vec<(&str, String)> =
        query.split_whitespace().map(|word| (word, word.to_lowercase())).collect();
    let mut matches: Vec<((usize, u32, usize), usize)> = items
        .into_iter()
        .enumerate()
        .filter_map(|(item_idx, item)| {
            let score = pattern.score(Utf32Str::new(item, &mut buffer), &mut matcher)?;
            let lower = item.to_lowercase();
            let n_whole = words.iter().filter(|(_, word)| lower.contains(word.as_str())).count();
            let n_same_case = words.iter().filter(|(word, _)| item.contains(*word)).count();
            Some(((n_whole, score, n_same_case), item_idx))
        })
        .collect();
    matches.sort_by_key(|&(score, item_idx)| (std::cmp::Reverse(score), item_idx));
    matches.into_iter().map(|(_, item_idx)| item_idx).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_matches_come_first() {
        let items = ["claude-opus", "gpt-4o", "opus", "gemini"];
        assert_eq!(fuzzy_rank("opus", items)[..], [2, 0]);
        assert_eq!(fuzzy_rank("", items), [0, 1, 2, 3]);
        assert_eq!(fuzzy_rank("claude op", items), [0]);
        assert_eq!(fuzzy_rank("zzz", items), [0_usize; 0]);
        let settings = ["thinkingBudgets.low", "defaultThinkingLevel"];
        assert_eq!(fuzzy_rank("thinkingl", settings), [1, 0]);
        assert_eq!(fuzzy_rank("thinkingL", settings), [1, 0]);
    }

    #[test]
    fn capitals_match_in_either_case_and_the_same_case_comes_first() {
        let items = ["agents.md", "AGENTS.md", "Übung", "transport"];
        assert_eq!(fuzzy_rank("AGENTS", items), [1, 0]);
        assert_eq!(fuzzy_rank("agents", items), [0, 1]);
        assert_eq!(fuzzy_rank("Agents", items), [0, 1]);
        assert_eq!(fuzzy_rank("Transport", items), [3]);
        assert_eq!(fuzzy_rank("ÜB", items), [2]);
    }

    #[test]
    fn text_with_marks_finds_itself() {
        for text in ["Z\u{351}\u{36b}a\u{321}", "e\u{301}te\u{301}", "\u{301}x", "👨‍👩‍👧‍👦", "กำ"]
        {
            assert_eq!(fuzzy_rank(text, ["other", text]), [1], "{text:?}");
        }
    }
}
