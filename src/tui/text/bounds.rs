//! The bounds of words.

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;
use unicode_segmentation::UnicodeSegmentation;

/// The parts of a text between the bounds of words, with their places: UAX #29, and for scripts without blanks between
/// words a dictionary.
pub fn word_parts(text: &str) -> Vec<(usize, &str)> {
    if !text.chars().any(has_no_blanks) {
        return text.split_word_bound_indices().collect();
    }
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let bounds: Vec<usize> = segmenter.segment_str(text).collect();
    let part = |bounds: &[usize]| Some((bounds[0], text.get(bounds[0]..bounds[1])?));
    bounds.windows(2).filter_map(part).collect()
}

/// Whether a letter is of a script that has no blanks between words: Thai and Lao, Burmese, Khmer, kana or Han.
pub fn has_no_blanks(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}
