//! Pages of Markdown as a reference: their sections, and those that fit a question.
//!
//! Pure: the pages come from the caller. Sections begin at headings; the words of a
//! question count more in headings and titles than in texts, and rare words more than
//! frequent ones. A heading that is worded as the question counts most.

use std::collections::{BTreeSet, HashSet};

use pulldown_cmark::{Event, Options, Parser};

/// Least share of a question's words, by weight, that its answer has.
const MIN_SHARE: f64 = 0.5;
/// Most sections with a word that tells what a section is about wherever it stands.
const MAX_WITH_RARE: usize = 4;
/// Weight of a heading that is worded as the question.
const LIKENESS: f64 = 6.0;

/// A page of Markdown that begins with its title, `# TITLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// What users call it, such as `settings`.
    pub name: &'static str,
    /// One line about its contents.
    pub about: &'static str,
    pub text: &'static str,
}

/// Part of a page, from a heading to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'p> {
    pub page: &'p Page,
    /// The title for the part before the first other heading.
    pub heading: &'p str,
    /// What follows the heading, without blank lines around it.
    pub text: &'p str,
}

impl Page {
    pub fn title(&self) -> &str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(self.name)
    }

    /// The sections, in the order of the page. Lines in code blocks are no headings.
    pub fn sections(&self) -> Vec<Section<'_>> {
        let mut starts: Vec<(&str, usize, usize)> = Vec::new();
        let (mut at, mut is_code) = (0, false);
        for line in self.text.split_inclusive('\n') {
            let end = at + line.len();
            is_code ^= line.starts_with("```");
            let marks = line.chars().take_while(|c| *c == '#').count();
            if !is_code && marks > 0 && line[marks..].starts_with(' ') {
                starts.push((line[marks..].trim(), at, end));
            }
            at = end;
        }
        let ends = starts.iter().skip(1).map(|(_, start, _)| *start).chain([self.text.len()]);
        let parts = starts.iter().zip(ends);
        parts
            .map(|((heading, _, start), end)| Section {
                page: self,
                heading,
                text: self.text[*start..end].trim(),
            })
            .filter(|section| !section.text.is_empty())
            .collect()
    }
}

/// The sections with words of `question`, best first, at most `limit`.
pub fn find<'p>(pages: &'p [Page], question: &str, limit: usize) -> Vec<Section<'p>> {
    ranked(pages, question).into_iter().take(limit).map(|ranked| ranked.section).collect()
}

/// The section that fits `question` best, if it has most words of the question, by weight, and
/// one of them stands in its heading, or title or description of its page, or in few texts.
/// Words that no section has are about something else.
pub fn answer<'p>(pages: &'p [Page], question: &str) -> Option<Section<'p>> {
    let best = ranked(pages, question).into_iter().next()?;
    (best.share >= MIN_SHARE && best.is_about).then_some(best.section)
}

/// The same text with each paragraph on one line: pages are written in lines of their own width, which would
/// stay lines.
pub fn with_joined_lines(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut joined = String::with_capacity(markdown.len());
    let (mut written, mut break_at) = (0, None);
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        // Behind a line break is the indentation of the next line.
        if let Some(at) = break_at.take() {
            joined.push_str(&markdown[written..at]);
            joined.push(' ');
            written = range.start;
        }
        if event == Event::SoftBreak {
            break_at = Some(range.start);
        }
    }
    joined.push_str(&markdown[written..]);
    joined
}

/// A section whose heading is a question with the words of another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownQuestion<'p> {
    pub section: Section<'p>,
    /// How much of the heading is asked for, from 0 to 1.
    pub share: f64,
}

/// The first section whose heading is a question with all words of `question`, one after the
/// other.
pub fn known_question<'p>(pages: &'p [Page], question: &str) -> Option<KnownQuestion<'p>> {
    let asked: Vec<String> = subjects(question).collect();
    if asked.is_empty() {
        return None;
    }
    pages.iter().flat_map(Page::sections).filter(|section| section.heading.ends_with('?')).find_map(
        |section| {
            let heading: Vec<String> = subjects(section.heading).collect();
            let is_asked = heading.windows(asked.len()).any(|part| part == asked);
            is_asked.then(|| KnownQuestion { section, share: asked.len() as f64 / heading.len() as f64 })
        },
    )
}

/// A section with words of a question.
struct Ranked<'p> {
    section: Section<'p>,
    score: f64,
    /// How much of the question is in the section, from 0 to 1.
    share: f64,
    /// Whether it is about one of the words, and does not only mention it.
    is_about: bool,
}

/// A word of a question.
struct Asked {
    word: String,
    /// Number of sections that have it.
    n_with: usize,
    weight: f64,
}

/// The sections with words of `question`, best first.
fn ranked<'p>(pages: &'p [Page], question: &str) -> Vec<Ranked<'p>> {
    let sections: Vec<(Section<'p>, Counted)> =
        pages.iter().flat_map(Page::sections).map(|section| (section, Counted::of(&section))).collect();
    let all_words: HashSet<String> = words(question).collect();
    // In a fixed order, so that sums of numbers are the same each time.
    let subjects: BTreeSet<String> = subjects(question).collect();
    let asked = subjects.into_iter().map(|word| {
        let n_with = sections.iter().filter(|(_, counted)| counted.has(&word)).count();
        Asked { weight: (sections.len() as f64 / (1 + n_with) as f64).ln().max(0.1), word, n_with }
    });
    let asked: Vec<Asked> = asked.collect();
    let all: f64 = asked.iter().map(|asked| asked.weight).sum();
    let mut found: Vec<Ranked<'p>> = Vec::new();
    for (section, counted) in &sections {
        let there = || asked.iter().filter(|asked| counted.has(&asked.word));
        let share = there().map(|asked| asked.weight).sum::<f64>() / all;
        let of_words: f64 = there().map(|asked| asked.weight * counted.score(&asked.word)).sum();
        if of_words > 0.0 {
            let score = share * (of_words + LIKENESS * all * counted.likeness(&all_words));
            let is_about =
                there().any(|asked| counted.is_about(&asked.word) || asked.n_with <= MAX_WITH_RARE);
            found.push(Ranked { section: *section, score, share, is_about });
        }
    }
    // Stable: among equals the earlier page wins.
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found
}

/// The words of a question that say what it is about, stemmed.
fn subjects(question: &str) -> impl Iterator<Item = String> + '_ {
    words(question).filter(|word| !is_filler(word))
}

/// `text` without the lines that are comments, which mark parts of pages for tests.
pub fn without_comments(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines().filter(|line| !(line.starts_with("<!-- ") && line.ends_with(" -->"))) {
        if !(line.is_empty() && shown.ends_with("\n\n")) {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

/// The beginning of `text`: whole paragraphs, code blocks and lists of at most `max_chars`,
/// or of a longer first one some lines. Returns whether something is left out.
pub fn beginning(text: &str, max_chars: usize) -> (String, bool) {
    let mut taken = String::new();
    for block in blocks(text) {
        if taken.is_empty() && block.len() > max_chars {
            let mut lines = block.lines();
            while let Some(line) = lines.next().filter(|line| taken.len() + line.len() <= max_chars) {
                taken.push_str(line);
                taken.push('\n');
            }
            if block.starts_with("```") {
                taken.push_str("```\n");
            }
            return (taken, true);
        }
        if taken.len() + block.len() > max_chars {
            return (taken, true);
        }
        taken.push_str(block);
        taken.push_str("\n\n");
    }
    (taken, false)
}

/// The parts of Markdown between blank lines; a code block is one part.
fn blocks(text: &str) -> Vec<&str> {
    let (mut blocks, mut start, mut at, mut is_code) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        is_code ^= line.starts_with("```");
        if line.trim().is_empty() && !is_code {
            blocks.push(text[start..at].trim_end());
            start = at + line.len();
        }
        at += line.len();
    }
    blocks.push(text[start..].trim_end());
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// The words of a section, stemmed.
struct Counted {
    heading: HashSet<String>,
    title: HashSet<String>,
    about: HashSet<String>,
    text: Vec<String>,
}

impl Counted {
    fn of(section: &Section<'_>) -> Self {
        let title = words(section.page.title()).chain(words(section.page.name)).collect();
        let mut text: Vec<String> = words(&prose(section.text)).collect();
        text.sort_unstable();
        let about = words(section.page.about).collect();
        Self { heading: words(section.heading).collect(), title, about, text }
    }

    fn has(&self, word: &String) -> bool {
        self.is_about(word) || self.text.binary_search(word).is_ok()
    }

    fn is_about(&self, word: &String) -> bool {
        [&self.heading, &self.title, &self.about].iter().any(|words| words.contains(word))
    }

    /// How much the heading is worded as the question, from 0 to 1.
    fn likeness(&self, question: &HashSet<String>) -> f64 {
        let n_both = self.heading.intersection(question).count();
        n_both as f64 / self.heading.union(question).count().max(1) as f64
    }

    fn score(&self, word: &String) -> f64 {
        let from = self.text.partition_point(|other| other < word);
        let n_times = self.text[from..].iter().take_while(|other| *other == word).count();
        // Long tables mention everything.
        let length = 1.0 + self.text.len() as f64 / 400.0;
        let weight = |is_there: bool, weight: f64| if is_there { weight } else { 0.0 };
        weight(self.heading.contains(word), 4.0)
            + weight(self.title.contains(word), 2.5)
            + weight(self.about.contains(word), 1.5)
            + n_times.min(4) as f64 / length
    }
}

/// `text` without code blocks and comments, whose words say little about the subject.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && !line.starts_with("<!-- ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Words in lower case without their endings, so that "themes" finds "theme".
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    pieces.map(|word| {
        let word = word.to_lowercase();
        let stem =
            ["ings", "ing", "ies", "es", "ed", "s", "e", "y"].iter().find_map(|end| word.strip_suffix(end));
        stem.filter(|stem| stem.chars().count() >= 3).map_or_else(|| word.clone(), str::to_owned)
    })
}

/// Words of questions, stemmed as [`words`] does, that say nothing about the subject.
fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "a", "about", "all", "an", "and", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
        "from", "get", "go", "giv", "have", "hav", "help", "how", "i", "in", "is", "it", "know", "let",
        "mak", "me", "much", "my", "not", "of", "on", "or", "pi", "put", "s", "set", "should", "show",
        "someth", "so", "tell", "that", "the", "there", "ther", "thi", "this", "to", "us", "use", "want",
        "way", "what", "when", "where", "wher", "which", "why", "will", "with", "work", "you", "your",
    ];
    FILLERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: &[Page] = &[
        Page {
            name: "themes",
            about: "",
            text: "# Themes\n\nColours of the screen.\n\n## Your own\n\n```sh\n# no heading\npi --use-theme mine\n```\n",
        },
        Page {
            name: "keys",
            about: "",
            text: "# Keys\n\nEvery key, also of themes.\n\n## Changing keys\n\nEdit the file.\n",
        },
    ];

    #[test]
    fn paragraphs_are_joined_and_everything_else_stays() {
        let page = "# A\n\nOne line\nand `a\nb` more.\n\n- an item\n  of two lines\n- next\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nx\ny\n```\n\n> said\n> so\n";
        let joined = "# A\n\nOne line and `a\nb` more.\n\n- an item of two lines\n- next\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nx\ny\n```\n\n> said so\n";
        assert_eq!(with_joined_lines(page), joined);
        assert_eq!(with_joined_lines(joined), joined);
        assert_eq!(with_joined_lines(""), "");
    }

    #[test]
    fn sections_begin_at_headings_outside_code() {
        let found: Vec<(&str, &str)> = PAGES[0].sections().iter().map(|s| (s.heading, s.text)).collect();
        let code = "```sh\n# no heading\npi --use-theme mine\n```";
        assert_eq!(found, [("Themes", "Colours of the screen."), ("Your own", code)]);
    }

    #[test]
    fn headings_and_titles_count_more_than_texts() {
        let check = |question: &str, expected: &[&str]| {
            let found: Vec<&str> = find(PAGES, question, 2).iter().map(|section| section.heading).collect();
            assert_eq!(found, expected, "{question}");
        };
        check("How do I use a theme of my own?", &["Your own", "Themes"]);
        check("change a key", &["Changing keys", "Keys"]);
        check("what can I do?", &[]);
        check("zebra", &[]);
    }

    #[test]
    fn an_answer_is_about_what_is_asked() {
        let check = |question: &str, expected: Option<&str>| {
            assert_eq!(answer(PAGES, question).map(|section| section.heading), expected, "{question}");
        };
        check("which themes are there?", Some("Themes"));
        check("colours of the screen", Some("Themes"));
        check("how do I colour zebras, lions and bears?", None);
        check("zebra", None);
    }

    #[test]
    fn a_heading_that_is_the_question_comes_first() {
        const PAGES: &[Page] = &[
            Page {
                name: "skills",
                about: "",
                text: "# Skills\n\nSkills.\n\n## Selecting skills\n\nSkill, skills.\n",
            },
            Page {
                name: "questions",
                about: "",
                text: "# Questions\n\nAll.\n\n## What is a skill, and where do I put it?\n\nA skill is a file.\n\n## How do I undo an edit?\n\nWith git.\n",
            },
        ];
        let best = answer(PAGES, "what is a skill and where do I put it").map(|section| section.heading);
        assert_eq!(best, Some("What is a skill, and where do I put it?"));
        let check = |question: &str, expected: Option<(&str, f64)>| {
            let known = known_question(PAGES, question);
            assert_eq!(known.map(|known| (known.section.heading, known.share)), expected, "{question}");
        };
        check("undo an edit", Some(("How do I undo an edit?", 1.0)));
        check("edit", Some(("How do I undo an edit?", 0.5)));
        check("edit the undo", None);
        check("selecting skills", None);
        check("how do I", None);
    }

    #[test]
    fn the_beginning_is_whole_paragraphs() {
        let text = "One.\n\n```sh\na\n\nb\n```\n\nThree.";
        assert_eq!(beginning(text, 100), ("One.\n\n```sh\na\n\nb\n```\n\nThree.\n\n".to_owned(), false));
        assert_eq!(beginning(text, 10), ("One.\n\n".to_owned(), true));
        assert_eq!(beginning("```\naaaa\nbbbb\n```", 9), ("```\naaaa\n```\n".to_owned(), true));
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(without_comments("a\n\n<!-- generated: x -->\n\nb\n<!-- end -->\n"), "a\n\nb\n");
    }
}
