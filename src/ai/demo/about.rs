//! Questions about pi, which the demo model answers from pi's own pages.

use super::Answer;
use super::rules::Case;
use super::words::opened_by;
use crate::util::manual::{self, Section};

/// Most characters of a section in an answer.
const MAX_CHARS: usize = 1_600;

/// How questions begin that ask for no text of a file.
const QUESTIONS: &[&str] =
    &["how", "what", "where", "which", "when", "why", "can i", "can pi", "does", "is there", "are there"];

/// How questions begin. Other sentences with a question mark are questions, too.
const OPENINGS: &[&str] = &[
    "how",
    "what",
    "where",
    "which",
    "when",
    "why",
    "who",
    "can i",
    "can you",
    "can pi",
    "does",
    "do",
    "is there",
    "is it",
    "are there",
    "help with",
    "help me with",
    "explain",
    "tell me about",
    "show me how",
    "about",
];

/// Questions that a page answers under the same question. They come before rules that look
/// into files: `where are session files?` is no search.
pub(super) fn known(case: &Case<'_>) -> Option<Answer> {
    let is_question = opened_by(case.text, QUESTIONS).is_some();
    // "what is in AGENTS.md?" asks for the text of a file.
    let is_look = opened_by(case.text, &["what is in", "what's in", "which files", "what files"]).is_some();
    if !is_question || is_look || !case.results.is_empty() {
        return None;
    }
    let known = manual::known_question(case.pages, case.text).filter(|known| known.share > 0.5)?;
    Some(Answer::of_text(quote(&known.section)))
}

/// The section of the pages that fits the question, as it stands there.
pub(super) fn pi(case: &Case<'_>) -> Option<Answer> {
    if !case.results.is_empty() {
        return None;
    }
    let is_question = opened_by(case.text, OPENINGS).is_some() || case.text.trim_end().ends_with('?');
    let section = if is_question {
        manual::answer(case.pages, case.text)
    } else {
        // "pin a message" is half of a question.
        let known = manual::known_question(case.pages, case.text);
        known.filter(|known| known.share >= 0.5).map(|known| known.section)
    };
    section.map(|section| Answer::of_text(quote(&section)))
}

fn quote(section: &Section<'_>) -> String {
    let text = manual::without_comments(section.text);
    let (text, is_cut) = manual::beginning(text.trim(), MAX_CHARS);
    let page = section.page.name;
    let rest = if is_cut { "has the rest of this section" } else { "has the whole page" };
    let heading = section.heading;
    let title = section.page.title();
    // A question ends with its own mark.
    let place = if heading == title { title.to_owned() } else { format!("{title}: {heading}") };
    let colon = if place.ends_with('?') { "" } else { ":" };
    let text = manual::with_joined_lines(text.trim_end());
    format!("From pi's own pages, **{place}**{colon}\n\n{text}\n\n`!pi docs {page}` {rest}.")
}
