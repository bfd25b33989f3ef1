//! Rows of diffs: their text, their colours, and what they cost.

use super::super::super::super::text::copied_text;
use super::super::super::super::theme::{Appearance, ColorDepth};
use super::super::{diff_between, parse_diff};
use super::*;

fn theme(depth: ColorDepth) -> Theme {
    Theme::builtin("dark", Appearance::Dark, depth).unwrap()
}

fn draw(lines: &[DiffLine], lang: &str, theme: &Theme) -> Vec<Row> {
    DiffRows::new(lines, lang, 60, &Highlighter::new(), theme).flatten().collect()
}

/// The style of `text` in a row.
#[track_caller]
fn style_of(row: &Row, text: &str) -> Style {
    let span = row.line.spans.iter().find(|span| span.content.contains(text));
    span.unwrap_or_else(|| panic!("{text:?} in {row:?}")).style
}

#[test]
fn lines_have_sign_and_number_and_wrap_under_their_text() {
    let lines = parse_diff("  8 before\n- 9 alpha\n+ 9 some words\n   ...");
    let theme = theme(ColorDepth::None);
    let rows: Vec<Row> = DiffRows::new(&lines, "", 9, &Highlighter::new(), &theme).flatten().collect();
    let texts: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
    assert_eq!(texts, ["  8 befor", "    e", "- 9 alpha", "+ 9 some", "    words", "   …"]);
}

#[test]
fn changed_lines_are_tinted_and_have_the_colours_of_their_language() {
    let theme = theme(ColorDepth::True);
    let rows = draw(&parse_diff(" 1 // a\n-2 let a = 1;\n+2 let a = \"x\";"), "rs", &theme);
    assert_eq!(style_of(&rows[0], "// a"), theme.style(Token::SyntaxComment));
    let tint = |token, strength| theme.tint(token, strength).unwrap();
    let [removed, added] = [Token::ToolDiffRemoved, Token::ToolDiffAdded];
    let on_removed = |token| tint(removed, TintStrength::Line).text(token, &theme);
    assert_eq!(style_of(&rows[1], "-2"), on_removed(removed));
    assert_eq!(style_of(&rows[1], "let"), on_removed(Token::SyntaxKeyword));
    let word = |side, token| tint(side, TintStrength::Word).text(token, &theme).add_modifier(Modifier::BOLD);
    assert_eq!(style_of(&rows[1], "1"), word(removed, Token::SyntaxNumber));
    assert_eq!(style_of(&rows[2], "\"x"), word(added, Token::SyntaxString));
    // The tint fills the row.
    assert_eq!(rows[2].width(), 60);
    assert_eq!(rows[2].line.spans.last().unwrap().style, tint(added, TintStrength::Line).style());
}

#[test]
fn a_tab_that_was_replaced_by_blanks_is_marked() {
    let theme = theme(ColorDepth::None);
    let rows = draw(&diff_between("\tx\n", "    x\n"), "", &theme);
    let reversed = |token| theme.style(token).add_modifier(Modifier::REVERSED);
    assert_eq!(style_of(&rows[0], "   "), reversed(Token::ToolDiffRemoved));
    assert_eq!(style_of(&rows[1], "   "), reversed(Token::ToolDiffAdded));
    let rows = draw(&diff_between("\tx = 1\n", "\tx = 2\n"), "", &theme);
    assert_eq!(style_of(&rows[0], "   "), theme.style(Token::ToolDiffRemoved));
    let lines = diff_between("a\nb", "a\nb\nc\n");
    let texts: Vec<String> =
        draw(&lines, "", &theme).iter().map(|row| row.text().trim_end().to_owned()).collect();
    assert_eq!(texts, [" a", " b", "+c"]);
}

#[test]
fn changed_words_are_reversed_where_there_are_no_tints() {
    for depth in [ColorDepth::Ansi, ColorDepth::None] {
        let theme = theme(depth);
        let rows = draw(&parse_diff("-1 let a = one(b);\n+1 let a = two(b);"), "rs", &theme);
        let reversed = |token| theme.style(token).add_modifier(Modifier::REVERSED);
        assert_eq!(style_of(&rows[0], "one"), reversed(Token::ToolDiffRemoved));
        assert_eq!(style_of(&rows[1], "two"), reversed(Token::ToolDiffAdded));
        assert_eq!(style_of(&rows[1], "let"), theme.style(Token::SyntaxKeyword));
        assert_eq!(style_of(&rows[1], "+1"), theme.style(Token::ToolDiffAdded));
        assert!(rows.iter().flat_map(|row| &row.line.spans).all(|span| span.style.bg.is_none()));
    }
}

#[test]
fn text_of_no_language_has_the_colour_of_its_side() {
    let theme = theme(ColorDepth::Ansi);
    let rows = draw(&parse_diff(" 1 let a\n-2 let b"), "", &theme);
    assert_eq!(style_of(&rows[0], "let a"), theme.style(Token::ToolDiffContext));
    assert_eq!(style_of(&rows[1], "let b"), theme.style(Token::ToolDiffRemoved));
}

#[test]
fn each_side_is_highlighted_as_if_the_other_were_not_there() {
    let theme = theme(ColorDepth::Ansi);
    // The old side opens a comment that only the old side ends.
    let diff = "-1 /* gone\n+1 fn a() {}\n-2 still */ let b;\n+2 let c;\n 3 let d;\n   ...\n 9 let e;";
    let rows = draw(&parse_diff(diff), "rs", &theme);
    let comment = |row: &Row, text| style_of(row, text).fg == theme.color(Token::SyntaxComment);
    let keyword = |row: &Row| style_of(row, "let").fg == theme.color(Token::SyntaxKeyword);
    assert!(!comment(&rows[1], "a") && keyword(&rows[3]) && keyword(&rows[4]) && keyword(&rows[6]));
    // A comment that both sides are in, up to the gap.
    let rows = draw(&parse_diff(" 1 /* a\n-2 let b\n+2 let c\n 3 let d\n   ...\n 9 let e"), "rs", &theme);
    assert!(comment(&rows[3], "let d") && keyword(&rows[5]));
}

#[test]
fn what_is_spelt_out_stands_out() {
    let theme = theme(ColorDepth::Ansi);
    let rows = draw(&diff_between("hi\n", "h\u{1b}[2Ji\u{202e}\nb\n"), "", &theme);
    assert_eq!(rows[1].text(), "+h<U+001B>[2Ji<U+202E>");
    let rows = draw(&parse_diff("+1 a\u{202e}b"), "rs", &theme);
    assert_eq!(style_of(&rows[0], "<U+202E>"), theme.style(Token::Warning));
}

#[test]
fn a_line_is_copied_as_it_is_in_the_file() {
    let theme = theme(ColorDepth::True);
    let line = "\tif a\t== \"x\u{200b}y\" {\u{1b}[0m \u{301}b\t\t// end of the line";
    for width in [12, 20, 80] {
        let highlighter = Highlighter::new();
        let lines = parse_diff(&format!("+1 {line}\n 2 \tb"));
        let rows: Vec<Row> = DiffRows::new(&lines, "go", width, &highlighter, &theme).flatten().collect();
        let copied = copied_text(rows.iter().map(|row| (row, 0..u16::MAX)));
        assert_eq!(copied, format!("{line}\n\tb"), "{width}");
    }
}

#[test]
fn lines_are_highlighted_once_and_only_if_they_are_drawn() {
    let theme = theme(ColorDepth::True);
    let highlighter = Highlighter::new();
    let old: String = (0..200).map(|n| format!("let a{n} = {n};\n")).collect();
    let lines = diff_between(&old, &old.replace("a100 =", "b ="));
    let cost = |lines: &[DiffLine], n_drawn: usize| {
        let mut rows = DiffRows::new(lines, "rs", 60, &highlighter, &theme);
        rows.by_ref().take(n_drawn).for_each(drop);
        rows.n_highlighted()
    };
    assert_eq!(cost(&lines, 10), 10);
    // The context line after the change is highlighted for both sides, to find that they agree.
    assert_eq!(cost(&lines, usize::MAX), 202);
    // Sides that never agree again cost each line twice, up to the limit for code.
    let opened = format!("/*\n{}", "let a = 1;\n".repeat(50));
    assert_eq!(cost(&diff_between("", &opened), usize::MAX), 51);
    let huge = format!("+1 let a;\n{}", " 2 let b;\n".repeat(30_000));
    let n_huge = cost(&parse_diff(&huge), usize::MAX);
    assert!(n_huge <= 10_001, "{n_huge}");
    let long = parse_diff(&format!("+1 {}\n+2 let b;", "x = 1; ".repeat(1_000)));
    assert_eq!(cost(&long, usize::MAX), 0, "long lines stay plain, and what follows up to the next gap");
}

#[test]
fn lines_of_a_large_change_are_compared_once_and_only_if_they_are_drawn() {
    let theme = theme(ColorDepth::True);
    let side = |sign: char, name: &str| -> String {
        (0..10_000).map(|n| format!("{sign}{n} let a{n} = {name}({n}, \"x\");\n")).collect()
    };
    let lines = parse_diff(&(side('-', "one") + &side('+', "two")));
    let highlighter = Highlighter::new();
    let cost = |n_drawn: usize| {
        let mut rows = DiffRows::new(&lines, "", 60, &highlighter, &theme);
        rows.by_ref().take(n_drawn).for_each(drop);
        rows.n_compared()
    };
    assert_eq!([0, 10, 10_000, 20_000].map(cost), [0, 10, 10_000, 10_000]);
}

#[test]
fn readable_colours_are_searched_for_once_for_each_token() {
    let theme = theme(ColorDepth::Indexed);
    let highlighter = Highlighter::new();
    let n_searched = |n_lines: usize| {
        let diff: String = (0..n_lines)
            .map(|n| format!("-{n} let a = f(\"x\", {n});\n+{n} let b = f(\"y\", {n});\n"))
            .collect();
        let lines = parse_diff(&diff);
        let mut rows = DiffRows::new(&lines, "rs", 60, &highlighter, &theme);
        rows.by_ref().for_each(drop);
        [&rows.added, &rows.removed].map(|palette| palette.styles.borrow().len())
    };
    let few = n_searched(2);
    assert!(few.iter().all(|n| (2..20).contains(n)), "{few:?}");
    assert_eq!(n_searched(300), few);
}
