//! Which parts of changed lines are marked.
//!
//! A change is a run of removed lines and the run of added lines after it. Its most similar lines
//! form pairs, in order, and the marks of a pair cover the words that differ. Between pairs, lines
//! that were replaced by others are marked as a whole. Lines that were only added or only removed
//! have no marks, because their sign says that all of them is new or gone.
//!
//! Invariant: what is left of both sides without the marks is the same, and indentation that both
//! sides have is never marked.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use unicode_segmentation::UnicodeSegmentation as _;

/// Of lines that are longer together, only the common beginning and end are found.
const MAX_PAIR_BYTES: usize = 2_000;

/// Longer lines are similar to no line.
const MAX_LINE_BYTES: usize = 2_000;

/// In a change with more pairs of lines to choose from, only lines at the same place are compared,
/// if there are as many on both sides, and only around lines whose marks are asked for.
const MAX_PAIRS: usize = 1_024;

/// Larger groups of lines that have nothing in common are not marked: marks everywhere mean nothing.
const MAX_REPLACED_LINES: usize = 8;

/// Share of common words from which on lines are a pair.
const MIN_SIMILARITY: f32 = 0.3;

/// A longer word counts no more than one of so many characters, so that a new name leaves lines
/// similar.
const MAX_WEIGHT: usize = 4;

/// Byte ranges of a line, ascending and apart; `None` if the line has no counterpart.
pub(super) type Marks = Option<Vec<Range<usize>>>;

/// The marks of a change, found for lines as they are asked for: in a small change all at once, in a
/// large one from the lines around.
#[derive(Debug)]
pub(super) struct Change<'a> {
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
    old_marks: Vec<Known>,
    new_marks: Vec<Known>,
    pairing: Pairing,
    /// Pairs of lines that were compared word by word, as a measure of work.
    n_compared: usize,
}

/// The marks of a line; `None` while they are not known.
type Known = Option<Marks>;

/// How lines are compared.
#[derive(Debug)]
enum Pairing {
    /// Each line with each, before the first marks are needed.
    All,
    /// Those at the same place. Whether they are similar is known of lines that were looked at.
    SamePlace(Vec<Option<bool>>),
    /// None: the lines have no marks.
    Nothing,
}

impl<'a> Change<'a> {
    /// The change of removed lines and the added lines after them.
    pub(super) fn new(removed: Vec<&'a str>, added: Vec<&'a str>) -> Self {
        let (n_old, n_new) = (removed.len(), added.len());
        let is_large = n_old.saturating_mul(n_new) > MAX_PAIRS;
        let pairing = match is_large {
            _ if n_old == 0 || n_new == 0 => Pairing::Nothing,
            false => Pairing::All,
            true if n_old == n_new => Pairing::SamePlace(vec![None; n_old]),
            true => Pairing::Nothing,
        };
        let (old_marks, new_marks) = match pairing {
            Pairing::Nothing => (Vec::new(), Vec::new()),
            Pairing::All | Pairing::SamePlace(_) => (vec![None; n_old], vec![None; n_new]),
        };
        Self { removed, added, old_marks, new_marks, pairing, n_compared: 0 }
    }

    /// Number of its lines.
    pub(super) fn len(&self) -> usize {
        self.removed.len() + self.added.len()
    }

    /// Pairs of lines that were compared so far.
    pub(super) fn n_compared(&self) -> usize {
        self.n_compared
    }

    /// The marks of a line, which is asked for once; the removed lines come first.
    pub(super) fn take(&mut self, line: usize) -> Marks {
        let n_old = self.removed.len();
        let place = |change: &mut Self| match line.checked_sub(n_old) {
            Some(new) => change.new_marks.get_mut(new).map(Option::take),
            None => change.old_marks.get_mut(line).map(Option::take),
        };
        if let Some(marks) = place(self)? {
            return marks;
        }
        match &self.pairing {
            Pairing::All => {
                self.n_compared += n_old * self.added.len();
                let pairs = pairs(&self.removed, &self.added);
                self.mark((0, 0), &pairs, (n_old, self.added.len()));
                self.pairing = Pairing::Nothing;
            }
            Pairing::SamePlace(_) => self.mark_around(if line < n_old { line } else { line - n_old }),
            Pairing::Nothing => return None,
        }
        place(self)?.flatten()
    }

    /// Finds the marks of the lines at a place, and of those that were replaced together with them.
    fn mark_around(&mut self, at: usize) {
        if self.is_pair(at) {
            return self.mark((at, at), &[(at, at)], (at + 1, at + 1));
        }
        // Beyond this many lines the number of others makes no difference.
        let most = MAX_REPLACED_LINES / 2;
        let first = (at.saturating_sub(most)..at).rev().take_while(|idx| !self.is_pair(*idx)).last();
        let last =
            (at + 1..self.removed.len().min(at + most + 1)).take_while(|idx| !self.is_pair(*idx)).last();
        let (first, end) = (first.unwrap_or(at), last.unwrap_or(at) + 1);
        if end - first <= most {
            self.mark((first, first), &[], (end, end));
        }
    }

    /// Whether the lines at a place are similar.
    fn is_pair(&mut self, at: usize) -> bool {
        let Pairing::SamePlace(known) = &mut self.pairing else { return false };
        let (Some(known), Some(old), Some(new)) =
            (known.get_mut(at), self.removed.get(at), self.added.get(at))
        else {
            return false;
        };
        *known.get_or_insert_with(|| {
            self.n_compared += 1;
            Words::of(old).similarity(&Words::of(new)) >= MIN_SIMILARITY
        })
    }

    /// Finds the marks of the lines from `start` to `end`, among which these form pairs.
    fn mark(&mut self, start: (usize, usize), pairs: &[(usize, usize)], end: (usize, usize)) {
        let (removed, added) = (&self.removed, &self.added);
        let (old_marks, new_marks) = (&mut self.old_marks, &mut self.new_marks);
        let (mut old_idx, mut new_idx) = start;
        for &(old, new) in pairs.iter().chain([&end]) {
            let (old_lines, new_lines) = (&removed[old_idx..old], &added[new_idx..new]);
            if let ([old_line], [new_line]) = (old_lines, new_lines) {
                let (old, new) = replaced_line(old_line, new_line);
                (old_marks[old_idx], new_marks[new_idx]) = (Some(Some(old)), Some(Some(new)));
            } else if !old_lines.is_empty()
                && !new_lines.is_empty()
                && old_lines.len() + new_lines.len() <= MAX_REPLACED_LINES
            {
                let indent = shared_indent(old_lines.iter().chain(new_lines).filter(|line| !is_blank(line)));
                let whole = |(marks, line): (&mut Known, &&str)| *marks = Some(Some(from(indent, line)));
                old_marks[old_idx..old].iter_mut().zip(old_lines).for_each(whole);
                new_marks[new_idx..new].iter_mut().zip(new_lines).for_each(whole);
            }
            if (old, new) != end {
                let (old_ranges, new_ranges) = changed_words(removed[old], added[new]);
                (old_marks[old], new_marks[new]) = (Some(Some(old_ranges)), Some(Some(new_ranges)));
            }
            (old_idx, new_idx) = (old + 1, new + 1);
        }
    }
}

/// The pairs of similar lines with the greatest similarity in sum; both sides ascend.
fn pairs(removed: &[&str], added: &[&str]) -> Vec<(usize, usize)> {
    let (n_old, n_new) = (removed.len(), added.len());
    let old_words: Vec<Words<'_>> = removed.iter().map(|line| Words::of(line)).collect();
    let new_words: Vec<Words<'_>> = added.iter().map(|line| Words::of(line)).collect();
    let similarity = |old: usize, new: usize| old_words[old].similarity(&new_words[new]);
    // `best[old][new]` is the greatest sum for the lines from these on.
    let mut best = vec![vec![0.0_f32; n_new + 1]; n_old + 1];
    let mut with = vec![vec![0.0_f32; n_new]; n_old];
    for old in (0..n_old).rev() {
        for new in (0..n_new).rev() {
            let similar = similarity(old, new);
            if similar >= MIN_SIMILARITY {
                with[old][new] = similar + best[old + 1][new + 1];
            }
            best[old][new] = best[old + 1][new].max(best[old][new + 1]).max(with[old][new]);
        }
    }
    let mut pairs = Vec::new();
    let (mut old, mut new) = (0, 0);
    while old < n_old && new < n_new {
        let here = best[old][new];
        if with[old][new] > 0.0 && with[old][new] >= here {
            pairs.push((old, new));
            (old, new) = (old + 1, new + 1);
        } else if best[old + 1][new] >= here {
            old += 1;
        } else {
            new += 1;
        }
    }
    pairs
}

/// The words of a line in order of the alphabet, without blanks.
struct Words<'a> {
    sorted: Vec<&'a str>,
    weight: usize,
}

impl<'a> Words<'a> {
    /// Those of long lines are not looked for.
    fn of(line: &'a str) -> Self {
        let line = if line.len() > MAX_LINE_BYTES { "" } else { line };
        let mut sorted: Vec<&str> = words(line).into_iter().filter(|word| !is_blank(word)).collect();
        sorted.sort_unstable();
        Self { weight: sorted.iter().map(|word| weight(word)).sum(), sorted }
    }

    /// From 0 to 1.
    fn similarity(&self, other: &Self) -> f32 {
        let total = self.weight + other.weight;
        if total == 0 {
            return 0.0;
        }
        let (mut ours, mut theirs) = (self.sorted.iter().peekable(), other.sorted.iter().peekable());
        let mut common = 0;
        while let (Some(our), Some(their)) = (ours.peek(), theirs.peek()) {
            match our.cmp(their) {
                std::cmp::Ordering::Less => drop(ours.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    common += weight(our);
                    ours.next();
                    theirs.next();
                }
            }
        }
        // Lines are short enough for the precision of the type.
        (2 * common) as f32 / total as f32
    }
}

fn weight(word: &str) -> usize {
    word.chars().take(MAX_WEIGHT).count()
}

/// A line and another one in its place, which have little in common.
fn replaced_line(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len() + new.len() > MAX_PAIR_BYTES {
        return changed_words(old, new);
    }
    let indent = shared_indent([old, new].iter());
    (from(indent, old), from(indent, new))
}

/// The words that only one of the two lines has in its place.
fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let indent = shared_indent([old, new].iter());
    let (old_words, new_words) = (words(&old[indent..]), words(&new[indent..]));
    let ops = if old.len() + new.len() > MAX_PAIR_BYTES {
        middle(&old_words, &new_words)
    } else {
        capture_diff_slices(Algorithm::Myers, &old_words, &new_words)
    };
    let is_replacement = |op: Option<&DiffOp>| matches!(op, Some(DiffOp::Replace { .. }));
    let is_kept = |op_idx: usize| match ops[op_idx] {
        // A blank between two words that were replaced belongs to what was replaced.
        DiffOp::Equal { old_index, len, .. } => {
            let before = op_idx.checked_sub(1).and_then(|before| ops.get(before));
            !(is_replacement(before)
                && is_replacement(ops.get(op_idx + 1))
                && old_words[old_index..old_index + len].iter().all(|word| is_blank(word)))
        }
        DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => false,
    };
    let (mut old_marks, mut new_marks) = (Marked::at(indent), Marked::at(indent));
    for (op_idx, op) in ops.iter().enumerate() {
        let is_kept = is_kept(op_idx);
        old_marks.add(&old_words[op.old_range()], !is_kept);
        new_marks.add(&new_words[op.new_range()], !is_kept);
    }
    (old_marks.ranges, new_marks.ranges)
}

/// Everything between the common beginning and the common end as replaced.
fn middle(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let n_before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[n_before..], &new[n_before..]);
    let n_after =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_len, new_len) = (old_rest.len() - n_after, new_rest.len() - n_after);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: n_before },
        DiffOp::Replace { old_index: n_before, old_len, new_index: n_before, new_len },
        DiffOp::Equal { old_index: n_before + old_len, new_index: n_before + new_len, len: n_after },
    ]
}

/// The marked ranges up to a place in a line.
struct Marked {
    at: usize,
    ranges: Vec<Range<usize>>,
}

impl Marked {
    fn at(at: usize) -> Self {
        Self { at, ranges: Vec::new() }
    }

    fn add(&mut self, words: &[&str], is_marked: bool) {
        let start = self.at;
        self.at += words.iter().map(|word| word.len()).sum::<usize>();
        if !is_marked || self.at == start {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if last.end == start => last.end = self.at,
            _ => self.ranges.push(start..self.at),
        }
    }
}

/// The line from `indent` on, if there is anything.
fn from(indent: usize, line: &str) -> Vec<Range<usize>> {
    if is_blank(line) || indent >= line.len() {
        Vec::new()
    } else {
        std::iter::once(indent..line.len()).collect()
    }
}

/// Bytes of the blanks that all lines begin with.
fn shared_indent<'a>(lines: impl Iterator<Item = &'a &'a str>) -> usize {
    let indents = lines.map(|line| &line[..line.len() - line.trim_start().len()]);
    let shared = indents.reduce(|shared, indent| {
        let same = shared.char_indices().zip(indent.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(shared.len().min(indent.len()), |((at, _), _)| at);
        &shared[..end]
    });
    shared.map_or(0, str::len)
}

fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// Words, blanks and single signs. Words end where a programmer would end them: at a point, not at
/// an underscore.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for piece in line.split_word_bounds() {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !piece.is_ascii() || piece.bytes().all(is_word) || is_blank(piece) {
            words.push(piece);
            continue;
        }
        let mut rest = piece;
        while let Some(first) = rest.bytes().next() {
            let end = if is_word(first) { rest.bytes().take_while(|byte| is_word(*byte)).count() } else { 1 };
            let (word, after) = rest.split_at(end);
            words.push(word);
            rest = after;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The marks of removed lines and of the added lines after them.
    fn marks(removed: &[&str], added: &[&str]) -> (Vec<Marks>, Vec<Marks>) {
        let mut change = Change::new(removed.to_vec(), added.to_vec());
        let mut marks: Vec<Marks> = (0..change.len()).map(|line| change.take(line)).collect();
        let added = marks.split_off(removed.len());
        (marks, added)
    }

    /// Lines with their marks in brackets; lines without counterpart begin with a bar.
    #[track_caller]
    fn check(removed: &[&str], added: &[&str], expected: &[&str]) {
        let (old, new) = marks(removed, added);
        let lines = removed.iter().chain(added).zip(old.iter().chain(&new));
        let shown: Vec<String> = lines.map(|(line, marks)| show(line, marks)).collect();
        assert_eq!(shown, expected);
    }

    fn show(line: &str, marks: &Marks) -> String {
        let Some(marks) = marks else { return format!("|{line}") };
        let mut shown = line.to_owned();
        for range in marks.iter().rev() {
            shown.insert(range.end, ']');
            shown.insert(range.start, '[');
        }
        shown
    }

    #[test]
    fn changed_words_are_marked() {
        check(&["let a = one(b);"], &["let a = two(b);"], &["let a = [one](b);", "let a = [two](b);"]);
        check(&["self.one.two"], &["self.one.three"], &["self.one.[two]", "self.one.[three]"]);
        check(&["snake_case = 1"], &["snake_cases = 1"], &["[snake_case] = 1", "[snake_cases] = 1"]);
        check(&["a b c d"], &["a x y d"], &["a [b c] d", "a [x y] d"]);
        check(&["f(x)"], &["f(x, y)"], &["f(x)", "f(x[, y])"]);
        check(&["你好世界"], &["你好中国"], &["你好[世界]", "你好[中国]"]);
    }

    #[test]
    fn replaced_lines_are_marked_up_to_their_common_indentation() {
        check(
            &["    done();"],
            &["    let z = finish(1, 2)?; // comment"],
            &["    [done();]", "    [let z = finish(1, 2)?; // comment]"],
        );
        check(&["    a()"], &["  something else"], &["  [  a()]", "  [something else]"]);
        check(
            &["  alpha()", "  beta()"],
            &["  if x { y }", "", "  return"],
            &["  [alpha()]", "  [beta()]", "  [if x { y }]", "", "  [return]"],
        );
        let rewritten: Vec<String> = (0..9).map(|n| format!("{n}{n}")).collect();
        let rewritten: Vec<&str> = rewritten.iter().map(String::as_str).collect();
        let (old, new) = marks(&["one", "two"], &rewritten);
        assert!(old.iter().chain(&new).all(Option::is_none), "marks everywhere mean nothing");
    }

    #[test]
    fn lines_of_a_large_change_have_the_marks_of_what_is_around_them() {
        // Pairs, with lines between that were replaced: one, four, and five.
        let is_replaced = |n: usize| n == 20 || (40..44).contains(&n) || (60..65).contains(&n) || n == 99;
        let line = |side: &str, n: usize| match is_replaced(n) {
            true => format!("{side}{n}"),
            false => format!("let same = f({side}, 1, 2, 3);"),
        };
        let [old, new] = ["a", "b"].map(|side| (0..100).map(|n| line(side, n)).collect::<Vec<_>>());
        let [old, new]: [Vec<&str>; 2] = [&old, &new].map(|lines| lines.iter().map(String::as_str).collect());
        let (old_marks, new_marks) = marks(&old, &new);
        for n in 0..100 {
            let range = if is_replaced(n) { 0..old[n].len() } else { 13..14 };
            let expected = (!(60..65).contains(&n)).then(|| vec![range]);
            assert_eq!((&old_marks[n], &new_marks[n]), (&expected, &expected), "{n}");
            for (line, marks) in [(n, &old_marks[n]), (100 + n, &new_marks[n])] {
                let mut change = Change::new(old.clone(), new.clone());
                assert_eq!(change.take(line), *marks, "{n} alone");
                assert!(change.n_compared() <= 1 + MAX_REPLACED_LINES, "{}", change.n_compared());
            }
        }
        let others: Vec<&str> = new.iter().copied().chain(["more"]).collect();
        let (old_marks, new_marks) = marks(&old, &others);
        assert!(old_marks.iter().chain(&new_marks).all(Option::is_none));
    }

    #[test]
    fn most_similar_lines_form_pairs_in_order() {
        check(
            &["result = width * height", "return result"],
            &["return width * depth"],
            &["|result = width * height", "return [result]", "return [width * depth]"],
        );
        check(
            &["let a = one(b);"],
            &["let a = two(b);", "more"],
            &["let a = [one](b);", "let a = [two](b);", "|more"],
        );
        check(
            &["use a::b;", "use c::d;"],
            &["use a::x;", "new line here", "use c::y;"],
            &["use a::[b];", "use c::[d];", "use a::[x];", "|new line here", "use c::[y];"],
        );
        check(&["gone"], &[], &["|gone"]);
    }

    #[test]
    fn deeper_indentation_is_marked_by_what_was_added() {
        check(&["  call(x)"], &["    call(x)"], &["  call(x)", "  [  ]call(x)"]);
        check(&["\tcall(x)"], &["    call(x)"], &["[\t]call(x)", "[    ]call(x)"]);
    }

    #[test]
    fn long_lines_are_marked_between_what_they_share() {
        let (old, new) = (format!("{}old{}", "a ".repeat(2_000), " z".repeat(10)), "a ".repeat(2_000));
        let new = format!("{new}new{}", " z".repeat(10));
        let (old_marks, new_marks) = marks(&[&old], &[&new]);
        let middle = 4_000..4_003;
        assert_eq!(old_marks, [Some(vec![middle.clone()])]);
        assert_eq!(new_marks, [Some(vec![middle])]);
    }

    /// Code-like lines that share words.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let word = prop::sample::select(vec![
            " ",
            "  ",
            "\t",
            "a",
            "b",
            "foo",
            "bar",
            "(",
            ")",
            ";",
            ".",
            "世界",
            "é",
            "e\u{301}",
            "👩‍💻",
            "_",
        ]);
        prop::collection::vec(prop::collection::vec(word, 0..12).prop_map(|words| words.concat()), 0..6)
    }

    /// What is left of lines that have a counterpart, line by line without indentation.
    fn unmarked(lines: &[&str], marks: &[Marks]) -> Vec<String> {
        let kept = |(line, marks): (&&str, &Marks)| {
            let mut kept = (*line).to_owned();
            marks.as_ref()?.iter().rev().for_each(|range| kept.replace_range(range.clone(), ""));
            Some(kept.trim_start().to_owned())
        };
        lines.iter().zip(marks).filter_map(kept).filter(|line| !line.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn both_sides_are_the_same_without_their_marks(removed in lines(), added in lines()) {
            let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
            let added: Vec<&str> = added.iter().map(String::as_str).collect();
            let (old, new) = marks(&removed, &added);
            prop_assert_eq!(unmarked(&removed, &old), unmarked(&added, &new));
        }

        #[test]
        fn indentation_of_both_is_never_marked_and_marks_stand_apart(old in lines(), new in lines()) {
            let (Some(old), Some(new)) = (old.first(), new.first()) else { return Ok(()) };
            let (old_marks, new_marks) = marks(&[old], &[new]);
            let indent = shared_indent([old.as_str(), new.as_str()].iter());
            for (line, marks) in [(old, &old_marks[0]), (new, &new_marks[0])] {
                let marks = marks.as_ref().unwrap();
                let mut end = None;
                for range in marks {
                    prop_assert!(range.start >= indent || is_blank(line), "{line:?} {marks:?}");
                    prop_assert!(range.start < range.end && end.is_none_or(|end| end < range.start));
                    prop_assert!(line.get(range.clone()).is_some());
                    end = Some(range.end);
                }
            }
        }
    }
}
