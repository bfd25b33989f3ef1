use crossterm::event::{KeyCode, KeyModifiers, MouseEvent};
use ratatui::style::Modifier;

use super::super::super::keymap::{BINDINGS, Platform};
use super::super::super::markdown::Highlighter;
use super::super::super::theme::{Appearance, ColorDepth};
use super::super::DialogCx;
use super::*;

struct Stage<T> {
    pager: Pager,
    text: T,
    keymap: Keymap,
    theme: Theme,
    frame: PagerFrame,
    size: (u16, u16),
}

impl<T: PagedText> Stage<T> {
    fn new(text: T, width: u16, height: u16) -> Self {
        Self {
            pager: Pager::new("A text"),
            text,
            keymap: Keymap::new(&[BINDINGS], Platform::Unix),
            theme: Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap(),
            frame: PagerFrame::Overlay,
            size: (width, height),
        }
    }

    fn rows(&mut self) -> Vec<Row> {
        let (width, max_rows) = self.size;
        let cx = DialogCx { width, max_rows, theme: &self.theme, keymap: &self.keymap };
        let (rows, cursor) = self.pager.render(&mut self.text, self.frame, &cx);
        assert!(rows.len() <= usize::from(max_rows), "{rows:?}");
        assert!(rows.iter().all(|row| row.width() <= usize::from(width.max(1))), "{rows:?}");
        assert!(cursor.is_none_or(|(row, column)| row < max_rows && column < width.max(1)));
        rows
    }

    fn screen(&mut self) -> Vec<String> {
        self.rows().iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    fn press(&mut self, code: KeyCode) -> PagerOutcome {
        self.press_with(code, KeyModifiers::NONE)
    }

    fn press_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> PagerOutcome {
        let key = InputEvent::Key(KeyEvent::new(code, modifiers));
        self.pager.handle(&key, &self.keymap, &mut self.text)
    }

    fn search(&mut self, query: &str) -> Vec<String> {
        for c in format!("/{query}").chars() {
            self.press(KeyCode::Char(c));
        }
        self.press(KeyCode::Enter);
        self.screen()
    }
}

fn lines(text: &str, width: u16, height: u16) -> Stage<LinesText<WholeText>> {
    Stage::new(LinesText::new(WholeText::new(text), Lines::Plain), width, height)
}

fn numbered(n_lines: usize) -> String {
    (1..=n_lines).map(|n| format!("line {n:05}\n")).collect()
}

#[test]
fn keys_scroll_within_the_text_and_close() {
    let mut stage = lines(&numbered(9), 60, 6);
    let keys = "escape/q: close · /: search · g/shift+g: start/end";
    let shown = |first: usize, last: usize| {
        let mut rows =
            vec!["─".repeat(60), format!("{:<46}{:>14}", "A text", format!("lines {first}–{last} of 9"))];
        rows.extend((first..=last).map(|n| format!(" line {n:05}")));
        rows.push(keys.to_owned());
        rows
    };
    for (code, first) in [
        (KeyCode::Up, 1),
        (KeyCode::Down, 2),
        (KeyCode::Char('j'), 3),
        (KeyCode::Char('k'), 2),
        (KeyCode::PageDown, 4),
        (KeyCode::Char('b'), 2),
        (KeyCode::Char(' '), 4),
        (KeyCode::End, 7),
        (KeyCode::Down, 7),
        (KeyCode::Char('g'), 1),
        (KeyCode::Char('G'), 7),
    ] {
        assert_eq!(stage.press(code), PagerOutcome::Pending);
        assert_eq!(stage.screen(), shown(first, first + 2), "{code:?}");
    }
    let wheel = |kind| MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE };
    let up = InputEvent::Mouse(wheel(MouseEventKind::ScrollUp));
    stage.pager.handle(&up, &stage.keymap, &mut stage.text);
    assert_eq!(stage.screen(), shown(4, 6));
    assert_eq!(stage.press(KeyCode::Enter), PagerOutcome::Ignored);
    for code in [KeyCode::Esc, KeyCode::Char('q')] {
        assert_eq!(stage.press(code), PagerOutcome::Closed);
    }
}

#[test]
fn overlay_needs_no_more_rows_than_its_text_and_does_not_shrink() {
    let mut stage = lines("one\ntwo", 60, 20);
    assert_eq!(stage.screen()[1..4], ["A text", " one", " two"]);
    assert_eq!(stage.screen().len(), 5);
    stage.text = LinesText::new(WholeText::new(numbered(8)), Lines::Plain);
    assert_eq!(stage.screen().len(), 11);
    stage.text = LinesText::new(WholeText::new("one"), Lines::Plain);
    assert_eq!(stage.screen().len(), 11, "what is below stays where it is");
    stage.size.0 = 40;
    assert_eq!(stage.screen().len(), 5, "at another width everything moves anyway");
    stage.frame = PagerFrame::Screen;
    assert_eq!(stage.screen().len(), 20);
}

#[test]
fn text_wraps_and_every_word_can_be_read_at_any_width() {
    let text = "a sentence that is wider than a narrow terminal, 世界 and a-word-without-any-place-to-break";
    for width in 1..40 {
        let mut stage = lines(text, width, 200);
        let rows = stage.screen();
        let end = rows
            .iter()
            .position(|row| row.contains("escape") || row.starts_with("esc"))
            .unwrap_or(rows.len());
        let shown: String = rows[2..end].concat().chars().filter(|c| !c.is_whitespace()).collect();
        let whole: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if width > 1 {
            assert!(shown.starts_with(&whole), "{width}: {rows:#?}");
        }
    }
}

#[test]
fn search_finds_all_matches_in_both_directions_and_goes_around() {
    let mut stage = lines(&numbered(1_000), 60, 12);
    stage.screen();
    let current = |stage: &Stage<LinesText<WholeText>>| {
        let (part, row) = stage.pager.current_match().unwrap();
        stage.text.row(part, row).text().trim().to_owned()
    };
    let screen = stage.search("LINE 00777");
    assert!(screen.iter().any(|row| row == " line 00777"), "{screen:#?}");
    let rows = stage.rows();
    let marked = rows.iter().flat_map(|row| &row.line.spans).filter(|span| {
        span.style.add_modifier.contains(Modifier::REVERSED) && span.content.contains("line 00777")
    });
    assert_eq!(marked.count(), 1);
    stage.search("e 003");
    let mut visited = vec![current(&stage)];
    for key in ['n', 'n', 'N', 'N', 'N'] {
        stage.press(KeyCode::Char(key));
        stage.screen();
        visited.push(current(&stage));
    }
    let line = |n: usize| format!("line {n:05}");
    assert_eq!(visited, [300, 301, 302, 301, 300, 399].map(line));
    let screen = stage.search("Nothing");
    assert!(screen.contains(&"\"Nothing\" was not found".to_owned()), "{screen:#?}");
    stage.press(KeyCode::Down);
    assert!(!stage.screen().join("\n").contains("not found"));
}

#[test]
fn search_finds_words_and_sentences_that_wrap() {
    let mut stage = lines("first\nsee /a/very/long/path/to/a/file.rs\nhere are some more words", 14, 20);
    stage.screen();
    for query in ["long/path/to", "some more", "very/long"] {
        stage.search(query);
        assert!(stage.pager.current_match().is_some(), "{query}");
    }
}

#[test]
fn search_finds_phrases_that_wrap_within_a_column_of_a_table_or_a_quotation() {
    let markdown = "| key | meaning |\n|---|---|\n| alpha beta gamma delta | one two three four five six |\n\n\
        > a quotation that is longer than a row\n";
    let search = |query: &str| {
        let mut stage = Stage::new(MarkdownText::new(markdown, Highlighter::new(), false), 32, 30);
        let screen = stage.screen();
        stage.search(query);
        (stage.pager.current_match().is_some(), screen)
    };
    for query in
        ["beta gamma", "alpha beta gamma delta", "two three four five", "four five six", "longer than a row"]
    {
        let (is_found, screen) = search(query);
        assert!(screen.iter().all(|row| !row.contains(query)), "{query} does not wrap: {screen:#?}");
        assert!(is_found, "{query}: {screen:#?}");
    }
    for query in ["gamma one", "delta four", "six a quotation"] {
        assert!(!search(query).0, "{query} is in two columns or two paragraphs");
    }
}

#[test]
fn query_is_typed_below_the_text_and_escape_leaves_it() {
    let mut stage = lines(&numbered(50), 40, 12);
    stage.press(KeyCode::Char('/'));
    for c in "q/n".chars() {
        assert_eq!(stage.press(KeyCode::Char(c)), PagerOutcome::Pending);
    }
    let cx = DialogCx { width: 40, max_rows: 12, theme: &stage.theme, keymap: &stage.keymap };
    let (rows, cursor) = stage.pager.render(&mut stage.text, PagerFrame::Overlay, &cx);
    let rows: Vec<String> = rows.iter().map(Row::text).collect();
    assert_eq!(rows[10..], ["/q/n", "enter: search · escape: cancel"]);
    assert_eq!(cursor, Some((10, 4)));
    assert_eq!(stage.press(KeyCode::Esc), PagerOutcome::Pending);
    assert!(!stage.pager.is_typing() && stage.screen().join("\n").contains("/: search"));
}

#[test]
fn few_rows_of_a_long_text_are_in_memory() {
    let mut stage = lines(&numbered(20_000), 60, 12);
    for key in ['G', 'g', 'G'] {
        stage.press(KeyCode::Char(key));
        stage.screen();
    }
    for _ in 0..500 {
        stage.press(KeyCode::PageUp);
        stage.screen();
        assert!(stage.text.n_laid_out() <= 16);
    }
    assert_eq!(stage.screen()[1], format!("{:<34}{:>26}", "A text", "lines 15992–16000 of 20000"));
}

#[test]
fn position_has_words_where_the_title_has_room_beside_them() {
    let title = |width: u16| lines(&numbered(268), width, 24).screen()[1].clone();
    assert_eq!(title(40), format!("{:<22}{:>18}", "A text", "lines 1–20 of 268"));
    assert!(title(25).starts_with("A text  lines 1–"), "{}", title(25));
    for width in [24, 20] {
        let title = title(width);
        assert!(title.starts_with("A text  ") && title.ends_with("/268"), "{title}");
        assert!(!title.contains("lines"), "{title}");
    }
}

#[test]
fn headings_of_markdown_are_stops_and_tables_wrap() {
    let section =
        |n: usize| format!("### Part {n}\n\n| key | meaning |\n|---|---|\n| k | {} |\n\n", "word ".repeat(9));
    let markdown: String = (1..=4).map(section).collect();
    let text = MarkdownText::new(&markdown, Highlighter::new(), false);
    let mut stage = Stage::new(text, 30, 9);
    assert!(stage.screen()[2].contains("Part 1"));
    for expected in ["Part 2", "Part 3"] {
        stage.press_with(KeyCode::Down, KeyModifiers::CONTROL);
        let screen = stage.screen();
        assert!(screen[2].contains(expected), "{screen:#?}");
    }
    stage.press_with(KeyCode::Up, KeyModifiers::CONTROL);
    assert!(stage.screen()[2].contains("Part 2"));
    let screen = stage.search("part 4");
    assert!(screen.iter().any(|row| row.contains("Part 4")), "{screen:#?}");
}

#[test]
fn text_keeps_its_place_if_the_width_changes() {
    let text: String = (1..300).map(|n| format!("number {n} {}\n", "word ".repeat(12))).collect();
    let mut stage = lines(&text, 80, 12);
    stage.search("number 150");
    for width in [20, 200, 40, 80] {
        stage.size.0 = width;
        let screen = stage.screen().join("\n");
        assert!(screen.contains("number 150"), "{width}: {screen}");
    }
}

#[test]
fn text_without_a_word_is_told_from_one_that_is_not_shown() {
    assert_eq!(lines("", 60, 20).screen()[2], "  Nothing to show yet");
    assert!(!lines("\n\nword", 60, 20).screen().concat().contains("Nothing"));
}

#[test]
fn any_size_and_empty_texts_are_survived() {
    for text in ["", "x", "a\n\n\nb\u{1b}[2J\t世界"] {
        for width in 0..9 {
            for height in 0..9 {
                let mut stage = lines(text, width, height);
                for code in [KeyCode::Up, KeyCode::Down, KeyCode::End, KeyCode::Char('n'), KeyCode::Char('/')]
                {
                    stage.press(code);
                    stage.screen();
                }
                let mut markdown =
                    Stage::new(MarkdownText::new(text, Highlighter::new(), true), width, height);
                markdown.screen();
            }
        }
    }
}
