//! The editor: against a plain list of clusters, and by rows as drawn.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::sync::LazyLock;

use pi::tui::composer::{Composer, ComposerView, EditorAction, backslash_to_new_line};
use pi::tui::text::Row;
use pi::tui::theme::{Appearance, ColorDepth, Theme};
use proptest::prelude::*;
use ratatui::style::Style;

static THEME: LazyLock<Theme> =
    LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap());

fn view(width: u16, max_rows: u16) -> ComposerView<'static> {
    ComposerView {
        width,
        max_rows,
        padding: 0,
        theme: &THEME,
        border: Style::new(),
        label: "",
        placeholder: "",
    }
}

fn drawn(composer: &mut Composer, width: u16, max_rows: u16) -> Vec<String> {
    composer.render(&view(width, max_rows)).rows.iter().map(Row::text).collect()
}

/// The text with `|` where the cursor is.
fn with_cursor(composer: &Composer) -> String {
    let text = composer.text();
    let after: usize = {
        let lines: Vec<&str> = text.split('\n').collect();
        let mut probe = lines.len();
        // The cursor's line is the one that its two halves make up.
        let line = format!("{}{}", composer.before_cursor(), composer.after_cursor());
        while probe > 0 && lines[probe - 1] != line {
            probe -= 1;
        }
        assert!(probe > 0, "{line:?} in {text:?}");
        let rest: usize = lines[probe..].iter().map(|line| line.len() + 1).sum();
        rest + composer.after_cursor().len()
    };
    let (before, after) = text.split_at(text.len() - after);
    format!("{before}|{after}")
}

fn editor(text: &str) -> Composer {
    let mut composer = Composer::new();
    composer.set_text(text);
    composer
}

fn press(composer: &mut Composer, actions: &[EditorAction]) {
    for action in actions {
        composer.handle(*action);
    }
}

#[track_caller]
fn check(text: &str, actions: &[EditorAction], expected: &str) {
    let mut composer = editor(text);
    press(&mut composer, actions);
    assert_eq!(with_cursor(&composer), expected, "{text:?} {actions:?}");
}

use EditorAction::{
    CursorDown, CursorLeft, CursorLineEnd, CursorLineStart, CursorRight, CursorUp, CursorWordLeft,
    CursorWordRight, DeleteCharBackward, DeleteCharForward, DeleteToLineEnd, DeleteToLineStart,
    DeleteWordBackward, DeleteWordForward, ExpandPaste, HistoryNext, HistoryPrevious, JumpBackward,
    JumpForward, NewLine, PageUp, Redo, Undo, Yank, YankPop,
};

#[test]
fn the_cursor_moves_by_clusters_and_words() {
    check("a👨‍👩‍👧‍👦b", &[CursorLeft, CursorLeft], "a|👨‍👩‍👧‍👦b");
    check("a👨‍👩‍👧‍👦", &[DeleteCharBackward], "a|");
    check("ab\ncd", &[CursorLineStart, CursorLeft], "ab|\ncd");
    check("foo.bar baz", &[CursorWordLeft, CursorWordLeft], "foo.|bar baz");
    check("a, b", &[CursorLineStart, CursorWordRight, CursorWordRight], "a,| b");
    check("one two", &[DeleteWordBackward], "one |");
    check("one two", &[CursorLineStart, DeleteWordForward], "| two");
    check("ab\ncd", &[CursorLineStart, DeleteCharBackward], "ab|cd");
    check("ab\ncd", &[CursorLineStart, CursorLeft, DeleteCharForward], "ab|cd");
}

#[test]
fn a_line_that_fills_its_row_has_an_empty_row_only_for_the_cursor() {
    // Borders are above and below.
    let rows = |composer: &mut Composer| -> Vec<String> {
        let rows = drawn(composer, 6, 12);
        rows[1..rows.len() - 1].iter().map(|row| row.trim_end().to_owned()).collect()
    };
    let mut composer = editor("abcdef\nzz\nuvwxyz");
    assert_eq!(rows(&mut composer), ["abcdef", "zz", "uvwxyz", ""]);
    press(&mut composer, &[CursorUp]);
    assert_eq!(rows(&mut composer), ["abcdef", "zz", "uvwxyz"]);
    assert_eq!(with_cursor(&composer), "abcdef\nzz\n|uvwxyz");
}

#[test]
fn kills_accumulate_and_come_back() {
    check("one two three", &[DeleteWordBackward, DeleteWordBackward, Yank], "one two three|");
    check("ab\ncd", &[CursorLineStart, CursorLeft, DeleteToLineEnd], "ab|cd");
    check("ab cd", &[DeleteToLineStart, Yank, Yank], "ab cdab cd|");
    check("one two", &[DeleteWordBackward, CursorLeft, DeleteToLineStart, Yank, YankPop], "two| ");
}

#[test]
fn undo_takes_back_words_pastes_and_kills() {
    let mut composer = Composer::new();
    for c in "two words".chars() {
        composer.insert(c.encode_utf8(&mut [0; 4]));
    }
    composer.paste("xyz");
    composer.handle(DeleteToLineStart);
    let mut seen = Vec::new();
    while composer.handle(Undo) {
        seen.push(with_cursor(&composer));
    }
    assert_eq!(seen, ["two wordsxyz|", "two words|", "two|", "|"]);
}

#[test]
fn redo_brings_back_steps_until_the_text_is_edited() {
    let mut composer = editor("one");
    composer.insert(" two");
    composer.handle(DeleteWordBackward);
    assert!(!composer.handle(Redo));
    press(&mut composer, &[CursorLineStart, Undo, Undo]);
    assert_eq!(with_cursor(&composer), "one|");
    composer.handle(Redo);
    assert_eq!(with_cursor(&composer), "one two|");
    composer.handle(Redo);
    assert_eq!(with_cursor(&composer), "|one ", "the cursor is where it was before the undo");
    press(&mut composer, &[Undo, NewLine]);
    assert!(!composer.handle(Redo));
    assert_eq!(composer.text(), "one two\n");
}

#[test]
fn marker_at_the_cursor_expands_as_one_step() {
    let big = "line\n".repeat(12);
    let mut composer = editor("see ");
    composer.paste(&big);
    composer.insert(" ok");
    press(&mut composer, &[CursorLineStart]);
    assert!(!composer.handle(ExpandPaste), "the marker is behind the cursor");
    press(&mut composer, &[CursorLineEnd, CursorWordLeft, CursorLeft]);
    assert!(composer.handle(ExpandPaste));
    assert_eq!(with_cursor(&composer), format!("see {big}| ok"));
    assert!(!composer.handle(ExpandPaste));
    composer.handle(Undo);
    assert_eq!(composer.text(), "see [paste #1 +13 lines] ok");
    assert_eq!(composer.expanded_text(), format!("see {big} ok"));
}

#[test]
fn last_marker_before_the_cursor_expands_also_from_lines_below_it() {
    let big = "line\n".repeat(12);
    let mut composer = editor("see ");
    composer.paste(&big);
    composer.insert(" and ");
    composer.paste(&big.replace('l', "p"));
    composer.insert(" ok\nbelow");
    assert!(composer.handle(ExpandPaste));
    assert_eq!(composer.text(), format!("see [paste #1 +13 lines] and {} ok\nbelow", big.replace('l', "p")));
    assert!(composer.handle(ExpandPaste));
    assert_eq!(composer.text(), composer.expanded_text());
    assert!(!composer.handle(ExpandPaste), "no marker is left");
}

#[test]
fn large_pastes_are_atoms_and_expand() {
    let big = "line\n".repeat(12);
    let mut composer = editor("see ");
    composer.paste(&big);
    assert_eq!(composer.text(), "see [paste #1 +13 lines]");
    assert_eq!(composer.expanded_text(), format!("see {big}"));
    composer.handle(CursorLeft);
    assert_eq!(with_cursor(&composer), "see |[paste #1 +13 lines]");
    press(&mut composer, &[CursorRight, DeleteCharBackward]);
    assert_eq!(composer.text(), "see ");
    composer.handle(Undo);
    assert_eq!(composer.take(), format!("see {big}"));
    assert!(composer.is_empty());
    composer.paste(&big);
    assert_eq!(composer.text(), "[paste #1 +13 lines]");
}

#[test]
fn pastes_are_cleaned_and_paths_kept_apart() {
    let mut composer = editor("see");
    composer.paste("/tmp/a\tb\r\nc\u{1b}");
    assert_eq!(composer.text(), "see /tmp/a\tb\nc");
    for (pasted, expected) in [
        ("'/tmp/a b'", "and '/tmp/a b'"),
        ("\"~/a b\"", "and \"~/a b\""),
        ("file:///tmp/a.png", "and file:///tmp/a.png"),
        ("'s", "and's"),
    ] {
        composer.set_text("and");
        composer.paste(pasted);
        assert_eq!(composer.text(), expected);
    }
}

#[test]
fn vertical_moves_follow_rows_and_keep_the_column() {
    let mut composer = editor("ABCDEF\nab\nabcdef");
    drawn(&mut composer, 10, 5);
    press(&mut composer, &[CursorLeft, CursorUp]);
    assert_eq!(with_cursor(&composer), "ABCDEF\nab|\nabcdef");
    composer.handle(CursorUp);
    assert_eq!(with_cursor(&composer), "ABCDE|F\nab\nabcdef");
    drawn(&mut composer, 3, 9);
    composer.handle(CursorDown);
    assert_eq!(with_cursor(&composer), "ABCDEF\nab|\nabcdef");
    composer.handle(PageUp);
    assert_eq!(with_cursor(&composer), "AB|CDEF\nab\nabcdef");
}

#[test]
fn history_keeps_the_draft() {
    let mut composer = Composer::new();
    for entry in ["first", "second\nline", "second\nline", "  "] {
        composer.add_to_history(entry);
    }
    composer.set_text("draft");
    composer.handle(CursorUp);
    assert_eq!(with_cursor(&composer), "|draft", "up goes to the start of the line first");
    composer.handle(CursorUp);
    assert_eq!(with_cursor(&composer), "|second\nline");
    composer.handle(CursorUp);
    assert_eq!(with_cursor(&composer), "|first");
    assert!(!composer.handle(HistoryPrevious));
    composer.handle(CursorDown);
    assert_eq!(with_cursor(&composer), "second\nline|");
    composer.handle(HistoryNext);
    assert_eq!(with_cursor(&composer), "draft|");
    assert!(!composer.handle(HistoryNext));
}

#[test]
fn jumps_go_to_the_next_typed_character() {
    let mut composer = editor("a.b\nc.d");
    press(&mut composer, &[JumpBackward]);
    composer.insert("b");
    assert_eq!(with_cursor(&composer), "a.|b\nc.d");
    press(&mut composer, &[JumpForward]);
    composer.insert(".");
    assert_eq!(with_cursor(&composer), "a.b\nc|.d");
    composer.insert("x");
    assert_eq!(composer.text(), "a.b\ncx.d");
}

#[test]
fn a_backslash_before_enter_is_a_line_end() {
    let mut composer = editor("a\\");
    assert!(backslash_to_new_line(&mut composer));
    assert_eq!(with_cursor(&composer), "a\n|");
    assert!(!backslash_to_new_line(&mut composer));
}

#[test]
fn rows_wrap_at_words_and_the_cursor_stays_on_screen() {
    let mut composer = editor("hello big world");
    assert_eq!(
        drawn(&mut composer, 9, 5),
        ["─────────", "hello big ", "world", "─────────"]
            .map(|row| { row.chars().take(9).collect::<String>() })
    );
    let cursor = |composer: &mut Composer, width| composer.render(&view(width, 5)).cursor;
    assert_eq!(cursor(&mut composer, 9), (2, 5));
    let mut exact = editor("世界");
    assert_eq!(cursor(&mut exact, 4), (2, 0), "one more row at the exact width");
    let mut family = editor("👨‍👩‍👧‍👦x");
    assert_eq!(cursor(&mut family, 10), (1, 3));
}

#[test]
fn what_cannot_be_seen_is_spelt_out_and_stays_one_cluster() {
    let mut composer = editor("rm a\u{202e}b \u{2066}c\td");
    let shown = composer.render(&view(20, 5));
    let rows: Vec<String> = shown.rows.iter().map(Row::text).collect();
    assert_eq!(rows[1..3], ["rm a<U+202E>b ", "<U+2066>c   d"]);
    assert_eq!(shown.cursor, (2, 13));
    press(&mut composer, &[EditorAction::CursorLeft; 4]);
    assert_eq!((composer.render(&view(20, 5)).cursor, composer.after_cursor()), ((2, 0), "\u{2066}c\td"));
    press(&mut composer, &[EditorAction::CursorLineStart]);
    press(&mut composer, &[EditorAction::CursorRight; 5]);
    assert_eq!((composer.render(&view(20, 5)).cursor, composer.before_cursor()), ((1, 12), "rm a\u{202e}"));
    press(&mut composer, &[EditorAction::DeleteCharBackward]);
    assert_eq!(composer.text(), "rm ab \u{2066}c\td");
}

#[test]
fn scrolled_text_is_counted_in_the_borders() {
    let mut composer = editor("1\n2\n3\n4\n5\n6");
    let labelled = |composer: &mut Composer| {
        let view = ComposerView { label: "steer", ..view(26, 3) };
        let rows = composer.render(&view).rows;
        rows.iter().map(Row::text).collect::<Vec<_>>()
    };
    assert_eq!(labelled(&mut composer), ["── steer ─── ↑ 3 more ────", "4", "5", "6", &"─".repeat(26)]);
    press(&mut composer, &[CursorUp; 5]);
    assert_eq!(
        labelled(&mut composer),
        ["── steer ─────────────────", "1", "2", "3", "─── ↓ 3 more ─────────────"]
    );
}

#[test]
fn an_empty_editor_shows_its_placeholder() {
    let mut composer = Composer::new();
    let rendered = composer.render(&ComposerView { placeholder: "Ask anything", padding: 1, ..view(10, 3) });
    assert_eq!(rendered.rows[1].text(), " Ask any…");
    assert_eq!(rendered.cursor, (1, 1));
}

/// A plain editor: clusters and a position among them.
#[derive(Debug, Default)]
struct Plain {
    clusters: Vec<&'static str>,
    at: usize,
}

#[derive(Debug, Clone)]
enum Step {
    Insert(&'static str),
    Action(EditorAction),
    Resize(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cluster = prop::sample::select(vec!["a", "b", " ", "世", "👨‍👩‍👧‍👦", "e\u{301}", ".", "🇯🇵 "]);
    let moves = prop::sample::select(vec![
        CursorLeft,
        CursorRight,
        DeleteCharBackward,
        DeleteCharForward,
        DeleteToLineEnd,
        NewLine,
        CursorLineStart,
        EditorAction::CursorLineEnd,
    ]);
    let step = prop_oneof![
        3 => cluster.prop_map(Step::Insert),
        3 => moves.prop_map(Step::Action),
        1 => (1_u16..20).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 0..80)
}

impl Plain {
    fn insert(&mut self, text: &'static str) {
        use unicode_segmentation::UnicodeSegmentation as _;
        for cluster in text.graphemes(true) {
            self.clusters.insert(self.at, cluster);
            self.at += 1;
        }
    }

    fn line_start(&self) -> usize {
        self.clusters[..self.at].iter().rposition(|&c| c == "\n").map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = self.clusters[self.at..].iter().position(|&c| c == "\n");
        rest.map_or(self.clusters.len(), |at| self.at + at)
    }

    fn act(&mut self, action: EditorAction) {
        match action {
            CursorLeft => self.at = self.at.saturating_sub(1),
            CursorRight => self.at = (self.at + 1).min(self.clusters.len()),
            CursorLineStart => self.at = self.line_start(),
            EditorAction::CursorLineEnd => self.at = self.line_end(),
            NewLine => self.insert("\n"),
            DeleteCharBackward if self.at > 0 => {
                self.at -= 1;
                self.clusters.remove(self.at);
            }
            DeleteCharForward if self.at < self.clusters.len() => {
                self.clusters.remove(self.at);
            }
            DeleteToLineEnd if self.at < self.clusters.len() => {
                let end = self.line_end().max(self.at + 1);
                self.clusters.drain(self.at..end);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn edits_agree_with_a_plain_list(steps in steps()) {
        let mut composer = Composer::new();
        let mut plain = Plain::default();
        let mut width = 10;
        for step in &steps {
            match step {
                Step::Insert(text) => { composer.insert(text); plain.insert(text); }
                Step::Action(action) => { composer.handle(*action); plain.act(*action); }
                Step::Resize(to) => width = *to,
            }
            prop_assert_eq!(composer.text(), plain.clusters.concat());
            let line_start = plain.line_start();
            prop_assert_eq!(composer.before_cursor(), plain.clusters[line_start..plain.at].concat());
            let rendered = composer.render(&view(width, 4));
            for row in &rendered.rows {
                prop_assert!(row.width() <= usize::from(width));
            }
            let (row, column) = rendered.cursor;
            prop_assert!(row >= 1 && usize::from(row) + 1 < rendered.rows.len() && column < width);
        }
        let mut texts = vec![composer.text()];
        while composer.handle(Undo) {
            texts.push(composer.text());
        }
        prop_assert_eq!(composer.text(), "");
        while let Some(text) = texts.pop() {
            prop_assert_eq!(composer.text(), text);
            prop_assert_eq!(composer.handle(Redo), !texts.is_empty());
        }
    }

    #[test]
    fn any_keys_on_any_text_are_survived(
        text in any::<String>(), keys in prop::collection::vec(0_usize..27, 0..40), width in 0_u16..12,
    ) {
        const ACTIONS: [EditorAction; 26] = [
            CursorUp, CursorDown, CursorLeft, CursorRight, CursorWordLeft, CursorWordRight, CursorLineStart,
            EditorAction::CursorLineEnd, JumpForward, JumpBackward, PageUp, EditorAction::PageDown, HistoryPrevious,
            HistoryNext, DeleteCharBackward, DeleteCharForward, DeleteWordBackward, DeleteWordForward,
            DeleteToLineStart, DeleteToLineEnd, Yank, YankPop, Undo, Redo, ExpandPaste, NewLine,
        ];
        let mut composer = editor(&text);
        composer.paste(&"p\n".repeat(20));
        for key in keys {
            match ACTIONS.get(key) {
                Some(action) => { composer.handle(*action); }
                None => composer.insert("世"),
            }
            let rendered = composer.render(&ComposerView { padding: 1, label: "l", ..view(width, 3) });
            prop_assert!(rendered.rows.iter().all(|row| row.width() <= usize::from(width.max(1))));
            prop_assert!(rendered.cursor.1 < width.max(1));
        }
    }
}
