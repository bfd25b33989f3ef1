//! The paths of a project, and the search among them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use rustc_hash::FxHashMap;

use crate::util::composed::composed;

/// Paths that are scored before the search looks whether it is still wanted.
const CHUNK: usize = 4_096;

/// A name that contains the query outranks a path that contains its letters.
const NAME_BONUS: u32 = 60;
/// A name that begins with it, in addition.
const PREFIX_BONUS: u32 = 40;

/// Relative paths; folders end with a slash. All paths are in one text, because a project may
/// have 100,000 of them.
#[derive(Debug, Default)]
pub(super) struct FileIndex {
    text: String,
    /// Where each path ends in `text`.
    ends: Vec<usize>,
    /// What is searched in place of paths that have decomposed characters, by their places.
    composed: FxHashMap<usize, String>,
    /// The last query and the paths that matched it: a longer query matches no others.
    narrowed: Option<(String, Vec<usize>)>,
    /// Paths scored so far, for tests of the work done.
    n_scored: usize,
}

/// A path with its rank and its place in the index; the greatest is the best. Of equal ones, the first in the
/// alphabet.
type Ranked<'a> = (u32, Reverse<usize>, Reverse<&'a str>, usize);

impl FileIndex {
    pub(super) fn push(&mut self, path: &str) {
        if let Cow::Owned(composed) = composed(path) {
            self.composed.insert(self.ends.len(), composed);
        }
        self.text.push_str(path);
        self.ends.push(self.text.len());
        self.narrowed = None;
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn path(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    /// The path with composed characters.
    fn searched(&self, index: usize) -> &str {
        self.composed.get(&index).map_or_else(|| self.path(index), String::as_str)
    }

    /// The best paths for a query, best first; `None` if `is_cancelled` became true. A query
    /// that begins with a folder of the index searches below that folder.
    pub(super) fn search(
        &mut self,
        query: &str,
        limit: usize,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Option<Vec<String>> {
        let query = &*composed(query);
        let folder = self.folder_of(query);
        let name = &query[folder.len()..];
        let pattern = Pattern::new(name, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let (mut buffer, mut best, mut matching) = (Vec::new(), BinaryHeap::new(), Vec::new());
        let candidates = self.candidates(query);
        for (position, &index) in candidates.iter().enumerate() {
            if position % CHUNK == 0 && is_cancelled() {
                return None;
            }
            let path = self.searched(index);
            let Some(rest) = path.strip_prefix(folder).filter(|rest| !rest.is_empty()) else { continue };
            let Some(score) = pattern.score(Utf32Str::new(rest, &mut buffer), &mut matcher) else { continue };
            matching.push(index);
            let rank: Ranked<'_> = (score + bonus(rest, name), Reverse(rest.len()), Reverse(path), index);
            best.push(Reverse(rank));
            if best.len() > limit {
                best.pop();
            }
        }
        let best = best.into_sorted_vec().into_iter();
        let best = best.map(|Reverse((.., index))| self.path(index).to_owned()).collect();
        self.n_scored += candidates.len();
        self.narrowed = Some((query.to_owned(), matching));
        Some(best)
    }

    /// The longest beginning of `query` that is a folder of the index, with its slash.
    fn folder_of<'a>(&self, query: &'a str) -> &'a str {
        let end = query.rfind('/').map_or(0, |at| at + 1);
        let folder = &query[..end];
        let is_known = end > 0 && (0..self.len()).any(|index| self.searched(index) == folder);
        if is_known { folder } else { "" }
    }

    /// The paths that can match.
    fn candidates(&mut self, query: &str) -> Vec<usize> {
        match self.narrowed.take() {
            Some((before, matching)) if is_narrower(query, &before) => matching,
            _ => (0..self.len()).collect(),
        }
    }
}

/// Whether every path that matches `query` also matched `before`.
fn is_narrower(query: &str, before: &str) -> bool {
    // Another slash may make a folder of what was a word.
    query.strip_prefix(before).is_some_and(|added| !added.contains('/'))
}

/// What makes a match better than its letters: that the name contains or begins with them.
fn bonus(path: &str, query: &str) -> u32 {
    let path = path.strip_suffix('/').unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let query = query.to_lowercase();
    match name.find(&query) {
        Some(0) => NAME_BONUS + PREFIX_BONUS,
        Some(_) => NAME_BONUS,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn index(paths: &[&str]) -> FileIndex {
        let mut index = FileIndex::default();
        paths.iter().for_each(|path| index.push(path));
        index
    }

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let paths = [
            "Cargo.toml",
            "docs/",
            "docs/model.md",
            "src/",
            "src/main.rs",
            "src/models/",
            "src/models/mod.rs",
            "src/my file.rs",
            "src/模型.rs",
            "tests/main_model.rs",
        ];
        assert_eq!(index(&paths).search(query, 3, &|| false).unwrap(), expected, "{query:?}");
    }

    #[test]
    fn names_rank_before_paths_and_folders_narrow_the_search() {
        check("main", &["src/main.rs", "tests/main_model.rs"]);
        check("model", &["src/models/", "docs/model.md", "tests/main_model.rs"]);
        check("src/mo", &["src/models/", "src/models/mod.rs"]);
        check("src/models/", &["src/models/mod.rs"]);
        check("模", &["src/模型.rs"]);
        check("srcmain", &["src/main.rs"]);
        check("zzz", &[]);
    }

    #[test]
    fn names_are_found_in_either_case() {
        let mut index = index(&["AGENTS.md", "src/", "src/Agents.rs"]);
        for query in ["agents", "Agents", "AGENTS"] {
            assert_eq!(index.search(query, 3, &|| false).unwrap(), ["AGENTS.md", "src/Agents.rs"], "{query}");
        }
        assert_eq!(index.search("src/aG", 3, &|| false).unwrap(), ["src/Agents.rs"]);
        assert_eq!(index.search("SRC/AG", 3, &|| false).unwrap(), ["src/Agents.rs"]);
    }

    #[test]
    fn names_with_decomposed_characters_are_found_and_stay_as_they_are() {
        let paths = [
            "cafe\u{301}/",
            "cafe\u{301}/Hu\u{308}tte.md",
            "\u{1112}\u{1161}\u{11ab}.txt",
            "フ\u{309a}ロ.txt",
        ];
        let mut index = index(&paths);
        let mut check = |query: &str, expected: &[&str]| {
            assert_eq!(index.search(query, 3, &|| false).unwrap(), expected, "{query:?}");
        };
        check("café", &paths[..2]);
        check("cafe\u{301}", &paths[..2]);
        check("café/hü", &paths[1..2]);
        check("hut", &paths[1..2]);
        check("한", &paths[2..3]);
        check("プロ", &paths[3..]);
    }

    #[test]
    fn equal_paths_are_in_the_order_of_the_alphabet() {
        let mut index = index(&["d/", "d/f_6", "d/f_2", "d/f_9", "d/f_1"]);
        let mut found = |query: &str| index.search(query, 3, &|| false).unwrap();
        assert_eq!(found("d/"), ["d/f_1", "d/f_2", "d/f_6"]);
        assert_eq!(found("d/f"), ["d/f_1", "d/f_2", "d/f_6"]);
    }

    #[test]
    fn each_key_scores_only_what_the_last_one_left() {
        let mut index = FileIndex::default();
        for n in 0..100_000 {
            index.push(&format!("crate{}/module{}/file{n}.rs", n % 100, n % 1_000));
        }
        index.push("the/needle.txt");
        let mut per_key = Vec::new();
        for query in ["n", "ne", "nee", "need", "needl", "needle"] {
            let before = index.n_scored;
            let found = index.search(query, 20, &|| false).unwrap();
            assert!(query.len() < 3 || found[0] == "the/needle.txt", "{query}: {found:?}");
            per_key.push(index.n_scored - before);
        }
        assert_eq!(per_key[0], 100_001, "the first key scores each path once");
        assert!(per_key[3..].iter().all(|&n| n < 200), "{per_key:?}");
        index.search("x", 20, &|| false).unwrap();
        assert!(index.search("", 5, &|| false).is_some());
    }

    #[test]
    fn search_that_is_no_longer_wanted_stops_soon() {
        let mut index = FileIndex::default();
        (0..100_000).for_each(|n| index.push(&format!("file{n}")));
        let asked = Cell::new(0);
        let is_cancelled = || asked.replace(asked.get() + 1) == 2;
        assert_eq!(index.search("file", 20, &is_cancelled), None);
        assert_eq!(asked.get(), 3);
        assert_eq!(index.n_scored, 0);
    }
}
