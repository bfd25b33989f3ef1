//! Markdown as rows, whole and while it arrives.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::sync::LazyLock;

use pi::tui::markdown::{DiagramTiming, Highlighter, MarkdownOptions, MarkdownStream, render};
use pi::tui::text::{LinePlace, Row, copied_text};
use pi::tui::theme::{Appearance, ColorDepth, Theme};
use proptest::prelude::*;
use ratatui::style::Modifier;

static THEME: LazyLock<Theme> =
    LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap());
static HIGHLIGHTER: LazyLock<Highlighter> = LazyLock::new(Highlighter::new);

fn render_with(text: &str, width: u16, options: &MarkdownOptions) -> Vec<Row> {
    render(text, width, &THEME, &Highlighter::new(), options)
}

#[track_caller]
fn check(text: &str, width: u16, expected: &str) {
    assert_eq!(rendered(text, width), expected, "{text:?} at {width}");
}

fn rendered(text: &str, width: u16) -> String {
    let rows = render_with(text, width, &MarkdownOptions::default());
    rows.iter().map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn paragraphs_wrap_and_keep_apart() {
    check("one two\nthree\n\nfour", 9, "one two\nthree\n\nfour");
    check("a  \nb<br>c", 20, "a\nb\nc");
    check("", 20, "");
}

/// Models break lines of states, files and addresses without the marks that Markdown wants for it.
#[test]
fn lines_of_a_paragraph_stay_lines() {
    check("**Status:** ok\n**Time:** 3s", 20, "Status: ok\nTime: 3s");
    check("> quoted\n> more", 20, "│ quoted\n│ more");
    check("- a.txt: fixed\n  b.txt: added\n- c", 20, "- a.txt: fixed\n  b.txt: added\n- c");
    check("a line of words\nand one more", 12, "a line of\nwords\nand one more");
    check("*leaning over\ntwo lines*", 20, "leaning over\ntwo lines");
}

#[test]
fn break_after_an_image_begins_a_row() {
    for end in ["  ", "\\", ""] {
        let rows = rendered(&format!("![chart](c.png){end}\nnext ![map](m.png){end}\nlast"), 60);
        let rows: Vec<&str> = rows.lines().collect();
        assert!(rows.len() == 3 && rows[1].starts_with("next ") && rows[2] == "last", "{rows:?}");
    }
}

#[test]
fn headings_keep_their_marks_from_the_third_level_on() {
    check("# One\n## Two\n### Three\nSet\n===", 20, "One\n\nTwo\n\n### Three\n\nSet");
}

#[test]
fn lists_hang_under_their_bullets() {
    check(
        "- first item that wraps\n- second\n  - nested\n    deeper text\n- [ ] open\n- [x] done",
        16,
        "- first item\n  that wraps\n- second\n  - nested\n    deeper text\n- [ ] open\n- [x] done",
    );
    check("9. nine\n10. ten wraps", 10, "9. nine\n10. ten\n    wraps");
    // Below the text of a task it would be a part of that text.
    let task = "- [ ] open task here\n  - [x] done\n    1. deep\n\n  more";
    check(task, 16, "- [ ] open task\n      here\n  - [x] done\n    1. deep\n\n  more");
}

#[test]
fn lists_have_blank_rows_where_their_source_has_blank_lines() {
    for list in [
        "1. a\n\n2. b",
        "- a\n\n  b\n- c\n\n- d",
        "- a\n  - b\n\n  - c\n  - d\n\n    e\n- f",
        "│ - a\n│\n│ - b\n│ - c",
    ] {
        check(&list.replace('│', ">"), 20, list);
    }
    check("- a\n\t- b\n\n\t- c", 20, "- a\n  - b\n\n  - c");
    // Lists are next to the text they belong to.
    check("- a\n\n  - b\n\n\n\n- c", 20, "- a\n  - b\n\n- c");
    check("- a\n  ```\n  x\n  ```\n\n  b", 20, "- a\n  ```\n    x\n  ```\n\n  b");
    check("- a\n\n  <!-- c -->\n  b", 20, "- a\n\n  b");
}

#[test]
fn code_keeps_its_lines_between_fences() {
    check("```rust\nfn a() {\n\n}\n```\nafter", 20, "```rust\n  fn a() {\n\n  }\n```\n\nafter");
    check("    indented\n\tcode", 20, "```\n  indented\n  code\n```");
    check("```\nopen", 20, "```\n  open\n```");
    check("- a\n  ```\n  x\n  ```", 20, "- a\n  ```\n    x\n  ```");
    // Code may contain the usual marks.
    check("~~~md\n```\nx\n```\n~~~", 20, "~~~md\n  ```\n  x\n  ```\n~~~");
    check("> ````\n> ```\n> ````", 20, "│ ````\n│   ```\n│ ````");
}

const DIAGRAM: &str = "```mermaid\nflowchart LR\n  A[Start] -->|yes| B{Q?}\n\n  B -.-> C\n```";

#[test]
fn mermaid_diagrams_are_drawn() {
    insta::assert_snapshot!(rendered(&format!("Before\n\n{DIAGRAM}\n\nafter"), 40), @"
    Before

    ┌───────┐         ╱────╲   ┌───┐
    │ Start ├── yes ─►< Q? >┄┄►│ C │
    └───────┘         ╲────╱   └───┘

    after
    ");
    check(
        "> ```Mermaid\n> graph TD\n> A --> B\n> ```",
        9,
        "│ ┌───┐\n│ │ A │\n│ └─┬─┘\n│   ▼\n│ ┌───┐\n│ │ B │\n│ └───┘",
    );
}

#[test]
fn diagrams_that_are_not_understood_or_too_wide_stay_source() {
    check("```mermaid\ngantt\n  title x\n```", 40, "```mermaid\n  gantt\n    title x\n```");
    check("```mermaid\ngraph LR\nA --> B", 40, "```mermaid\n  graph LR\n  A --> B\n```");
    let names = ["Authentication", "Authorisation", "Accounting"];
    let wide =
        format!("```mermaid\nsequenceDiagram\n{}\n```", names.map(|name| format!("actor {name}")).join("\n"));
    insta::assert_snapshot!(rendered(&wide, 40), @"
    ```mermaid
      sequenceDiagram
      actor Authentication
      actor Authorisation
      actor Accounting
    ```
    diagram is 12 columns too wide
    ");
    // With less room for the reason, and without.
    assert!(rendered(&wide, 20).ends_with("Accounting\n```\n32 columns too wide"), "{}", rendered(&wide, 20));
    assert!(rendered(&wide, 9).ends_with("\n```"));
}

#[test]
fn mermaid_setting_decides_when_diagrams_are_drawn() {
    let text = format!("- a\n\n  {}\n\nmiddle\n\n{DIAGRAM}\n\nafter", DIAGRAM.replace('\n', "\n  "));
    for (mermaid, while_streaming, at_the_end) in [
        (DiagramTiming::Never, 0, 0),
        (DiagramTiming::WhenAnswerEnds, 0, 2),
        (DiagramTiming::WhenFenceCloses, 2, 2),
    ] {
        let options = MarkdownOptions { mermaid, ..MarkdownOptions::default() };
        let mut stream = MarkdownStream::new(options.clone());
        stream.push(&text);
        let n_drawn = |rows: &[Row]| rows.iter().filter(|row| row.text().contains("│ Start ├")).count();
        let rows = stream.rows(60, &THEME, &HIGHLIGHTER);
        assert_eq!(n_drawn(rows), while_streaming, "{mermaid:?}");
        // What is drawn at the end may not be settled before.
        let n_settled = stream.stable_rows();
        assert_eq!(n_settled < 5, mermaid == DiagramTiming::WhenAnswerEnds, "{n_settled}");
        stream.finish();
        assert_eq!(n_drawn(stream.rows(60, &THEME, &HIGHLIGHTER)), at_the_end, "{mermaid:?}");
        assert_eq!(stream.rows(60, &THEME, &HIGHLIGHTER), render(&text, 60, &THEME, &HIGHLIGHTER, &options));
    }
}

#[test]
fn a_diagram_settles_when_its_fence_is_closed() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    let mut seen = Vec::new();
    for delta in ["text\n\n```mer", "maid\ngraph LR\n", "A --> B\n", "``", "`\n"] {
        stream.push(delta);
        let n_rows = stream.rows(40, &THEME, &HIGHLIGHTER).len();
        seen.push((stream.stable_rows(), n_rows));
    }
    // Nothing of the source is settled before: it is replaced.
    assert_eq!(seen, [(1, 4), (2, 5), (2, 6), (2, 6), (5, 5)]);
}

#[test]
fn diagrams_are_copied_as_their_source() {
    let list = DIAGRAM.replace('\n', "\n  ").replace("\n  \n", "\n\n");
    let quote = DIAGRAM.replace('\n', "\n> ");
    let text = format!("before\n\n{DIAGRAM}\n\n- item\n\n  {list}\n\n> {quote}\n\nlast");
    for width in [30, 60, 200] {
        let rows = render(&text, width, &THEME, &HIGHLIGHTER, &MarkdownOptions::default());
        assert!(rows.iter().any(|row| row.text().contains("│ Start │") || row.text().contains("│ Start ├")));
        assert_eq!(copied_text(rows.iter().map(|row| (row, 0..u16::MAX))), text, "{width}");
    }
}

/// A list or quote that still arrives is rendered again with every frame.
#[test]
fn diagrams_in_blocks_that_still_arrive_are_laid_out_once() {
    for prefix in ["- ", "> "] {
        let rest = if prefix == "- " { "  " } else { prefix };
        let diagram = |n: usize| format!("```mermaid\ngraph LR\nA{n} --> B\n```\ntext and more text\n");
        let lines = [1, 2, 3].map(diagram).concat();
        let text = format!("{prefix}{}", lines.trim_end().replace('\n', &format!("\n{rest}")));
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        let mut n_frames = 0;
        for c in text.chars() {
            stream.push(&c.to_string());
            n_frames += u64::from(stream.rows(40, &THEME, &HIGHLIGHTER).len() > 3);
        }
        stream.finish();
        let rows = stream.rows(40, &THEME, &HIGHLIGHTER);
        assert_eq!(rows.iter().filter(|row| row.text().contains("├─►│ B │")).count(), 3);
        assert!(n_frames > 100);
        assert_eq!(stream.diagrams_laid_out(), 3);
        // Another width needs other drawings.
        stream.rows(50, &THEME, &HIGHLIGHTER);
        assert_eq!(stream.diagrams_laid_out(), 6);
    }
}

/// Its source will never be replaced, so it may leave the window as it arrives.
#[test]
fn a_diagram_that_is_too_large_settles_before_its_fence_is_closed() {
    for (line, n_lines) in [("A --> B\n".to_owned(), 401), (format!("%% {}\n", "x".repeat(1000)), 17)] {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        stream.push(&format!("text\n\n```mermaid\ngraph LR\n{}", line.repeat(n_lines - 2)));
        stream.rows(40, &THEME, &HIGHLIGHTER);
        assert_eq!(stream.stable_rows(), 2);
        stream.push(&line.repeat(2));
        let n_rows = stream.rows(40, &THEME, &HIGHLIGHTER).len();
        // Only the fence that will end it is not settled.
        assert_eq!(stream.stable_rows(), n_rows - 1);
        stream.push("```\n\n```mermaid\ngraph LR\nA --> B\n```\n");
        assert!(stream.rows(40, &THEME, &HIGHLIGHTER).iter().any(|row| row.text().contains("┌───┐")));
    }
}

/// The text of the rows after a place.
fn text_after(place: &LinePlace, rows: &[Row], width: u16) -> String {
    let split = place.split(rows, width);
    copied_text(split.after.iter().chain(&rows[split.end..]).map(|row| (row, 0..u16::MAX)))
}

#[test]
fn a_place_after_a_diagram_is_found_where_there_is_no_room_for_it() {
    let highlighter = Highlighter::new();
    let names = ["Alexandra", "Bartholomew", "Christopher"].map(|name| format!("actor {name}\n")).concat();
    let diagram = format!("```mermaid\nsequenceDiagram\n{names}```");
    let nested = diagram.lines().map(|line| format!("> {line}\n")).collect::<String>();
    for text in [diagram.as_str(), nested.trim_end()] {
        let text = format!("{text}\n\nOne long paragraph that arrives while the window is narrow");
        let stream = |text: &str, width| {
            let mut stream = MarkdownStream::new(MarkdownOptions::default());
            stream.push(text);
            stream.rows(width, &THEME, &highlighter).to_vec()
        };
        let (narrow, wide) = (stream(&text, 24), stream(&text, 80));
        assert!(narrow.iter().any(|row| row.text().contains("sequenceDiagram")), "no source: {narrow:?}");
        assert!(wide.iter().all(|row| !row.text().contains("sequenceDiagram")), "no drawing: {wide:?}");
        let more = format!("{text} and goes on.");
        let on = |rows: &[Row]| LinePlace::default().after(rows, true);
        assert_eq!(text_after(&on(&narrow), &stream(&more, 80), 80), "and goes on.");
        assert_eq!(text_after(&on(&wide), &stream(&more, 24), 24), "and goes on.");
    }
}

#[test]
fn source_that_a_drawing_may_replace_is_no_line() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    stream.push("- one\n  ```mermaid\n  graph LR\n  A --> B\n");
    let rows = stream.rows(40, &THEME, &Highlighter::new()).to_vec();
    let is_line = |text: &str| rows.iter().find(|row| row.text().contains(text)).map(Row::is_line);
    assert_eq!((is_line("one"), is_line("graph LR")), (Some(true), Some(false)), "{rows:?}");
}

/// Rows leave the window at every place within a piece of Markdown, and again a little later.
#[test]
fn words_that_follow_markup_which_was_cut_are_shown() {
    const REST: &str = "then seven other words follow here until this line ends at last with a full stop.";
    let highlighter = Highlighter::new();
    for markup in [
        "[the link](https://example.com/a/long/path?query=1)",
        "[the link](https://example.com/then/seven/other/words)",
        "[then](seven-other) (https://example.com/a)",
        "<https://example.com/a/b>",
        "<!-- a note that nobody sees -->",
        "$\\frac{1}{2}+\\alpha$",
        "a&nbsp;b &copy; c",
        "**bold text** and _more_",
        "`some code`",
        "![a picture](https://x.y/z.png)",
        "a \\*star",
        "note[^1]",
    ] {
        let text = format!("First {markup} {REST}");
        let rest_start = text.len() - REST.len();
        for (links, width, later) in [(false, 20, 60), (true, 20, 8), (true, 9, 30)] {
            let options = MarkdownOptions { links, ..MarkdownOptions::default() };
            for cut in (6..rest_start + 9).filter(|cut| text.is_char_boundary(*cut)) {
                let mut stream = MarkdownStream::new(options.clone());
                let mut place = LinePlace::default();
                let mut n_shown = 0;
                for end in [cut, (cut + 25).min(text.len()), (cut + 50).min(text.len())] {
                    stream.push(&text[n_shown..end]);
                    n_shown = end;
                    let rows = stream.rows(width, &THEME, &highlighter).to_vec();
                    let split = place.split(&rows, width);
                    let rows: Vec<Row> =
                        split.after.into_iter().chain(rows[split.end..].iter().cloned()).collect();
                    place = place.after(&rows, true);
                }
                stream.push(&text[n_shown..]);
                let rows = stream.rows(later, &THEME, &highlighter).to_vec();
                let shown = text_after(&place, &rows, later);
                let expected = text[n_shown.max(rest_start)..].trim_start();
                assert!(
                    shown.ends_with(expected),
                    "{markup} {links} {width} {later}, cut after {:?}: {shown:?}",
                    &text[..cut]
                );
                let n_twice = shown.len() - expected.len();
                assert!(
                    n_twice <= text.len() - rest_start + markup.len(),
                    "{markup} {links} {width} {later}, cut after {:?}: {shown:?}",
                    &text[..cut]
                );
            }
        }
    }
}

#[test]
fn copied_diagrams_are_whole_blocks_whatever_their_source_contains() {
    for (fence, copied_fence) in [("~~~", "```"), ("````", "```"), ("`````", "`````")] {
        let label = if copied_fence == "```" { "text" } else { "````" };
        let source = format!("mermaid\ngraph LR\nA[\"{label}\"] --> B\n");
        let rows = render_with(&format!("{fence}{source}{fence}"), 60, &MarkdownOptions::default());
        assert!(rows[0].text().starts_with('┌'));
        let copied = copied_text(rows.iter().map(|row| (row, 0..u16::MAX)));
        assert_eq!(copied, format!("{copied_fence}{source}{copied_fence}"));
    }
}

#[test]
fn quotes_rules_and_html() {
    check("> a b\n> > c\n\n---\n", 6, "a b\n\nc\n\n──────");
    check("> a b\n>\n> > c", 12, "│ a b\n│\n│ │ c");
    check("<!-- hidden -->\n\nx <b>y</b> <!-- z -->", 30, "x <b>y</b>");
    check("a\n\n<div>\nx\n</div>", 20, "a\n\n<div>\nx\n</div>");
}

/// A model or a file may nest without end: it costs a row per level at most, and no stack.
#[test]
fn items_of_deep_lists_keep_their_bullets() {
    let list: String = (0..16).map(|level| format!("{}- level {level}\n", "  ".repeat(level))).collect();
    check(list.trim_end(), 60, list.trim_end());
}

#[test]
fn blocks_nested_thousands_of_levels_deep_are_shown_in_limited_rows() {
    for depth in [40, 400, 20_000] {
        let quote = format!("{} x", ">".repeat(depth));
        assert!(render_with(&quote, 80, &MarkdownOptions::default()).len() <= 2, "{depth}");
        let list = format!("{}x", "- ".repeat(depth));
        assert!(render_with(&list, 80, &MarkdownOptions::default()).len() <= depth + 1, "{depth}");
    }
    let levels: String = (1..=200).map(|level| format!("{} x\n\n", ">".repeat(level))).collect();
    assert!(render_with(&levels, 80, &MarkdownOptions::default()).len() <= 800);
    let emphasis = format!("{}x{}", "*_".repeat(20_000), "_*".repeat(20_000));
    assert!(render_with(&emphasis, 80, &MarkdownOptions::default()).len() <= 2_000);
}

#[test]
fn links_show_their_address_unless_they_can_be_clicked() {
    check("[pi](https://pi.dev) <https://a.b>", 60, "pi (https://pi.dev) https://a.b");
    check("[x][ref]\n\n[ref]: https://r.ef\n\n[x][Ref]", 40, "x (https://r.ef)\n\nx (https://r.ef)");
    let options = MarkdownOptions { links: true, ..MarkdownOptions::default() };
    let rows = render_with("[pi](https://pi.dev) and https://a.b/c.", 60, &options);
    assert_eq!(rows[0].text(), "pi and https://a.b/c.");
    let links: Vec<_> = rows[0].links.iter().map(|(range, to)| (range.clone(), to.as_str())).collect();
    assert_eq!(links, [(0..2, "https://pi.dev"), (7..20, "https://a.b/c")]);
    let rows = render_with("[x](javascript:alert)", 60, &options);
    assert_eq!((rows[0].text().as_str(), rows[0].links.len()), ("x (javascript:alert)", 0));
    let rows = render_with("[x](https://a.b/\u{202e}gpj) <https://a.b/\u{200b}c>", 60, &options);
    let shown = "x (https://a.b/<U+202E>gpj) https://a.b/<U+200B>c";
    assert_eq!((rows[0].text().as_str(), rows[0].links.len()), (shown, 0), "what cannot be seen in it");
}

#[test]
fn a_link_that_reads_like_another_address_shows_its_own() {
    let options = MarkdownOptions { links: true, ..MarkdownOptions::default() };
    let shown = |text: &str| render_with(text, 100, &options)[0].text();
    for (text, target) in [
        ("https://github.com/login", "https://github.evil.example/login"),
        ("github.com", "https://evil.example"),
        ("www.bank.example", "https://evil.example/"),
        ("`https://a.example`", "docs/a.md"),
        ("https://a.example", "https://a.example@evil.example"),
    ] {
        let expected = format!("{} ({target})", text.trim_matches('`'));
        assert_eq!(shown(&format!("[{text}]({target})")), expected);
    }
    for (text, target) in [
        ("https://github.com/a/…", "https://github.com/a/b/c"),
        ("github.com", "https://www.github.com/"),
        ("www.github.com/a", "https://GitHub.com/a"),
        ("https://münchen.example", "https://xn--mnchen-3ya.example/"),
        ("main.rs", "https://github.com/a/b/main.rs"),
        ("Node.js: a.b", "https://nodejs.org"),
        ("e.g. this", "https://a.example"),
        ("https://", "https://a.example"),
    ] {
        assert_eq!(shown(&format!("[{text}]({target})")), text);
    }
}

#[test]
fn tables_fit_the_width() {
    let table = "| Name | What it does |\n|---|--:|\n| a | short |\n| bb | something long |";
    check(
        table,
        40,
        "┌──────┬────────────────┐\n\
         │ Name │   What it does │\n\
         ├──────┼────────────────┤\n\
         │ a    │          short │\n\
         │ bb   │ something long │\n\
         └──────┴────────────────┘",
    );
    check(
        "| Name | What it does |\n|---|---|\n| 世界 | something long |",
        22,
        "┌──────┬─────────────┐\n\
         │ Name │ What it     │\n\
         │      │ does        │\n\
         ├──────┼─────────────┤\n\
         │ 世界 │ something   │\n\
         │      │ long        │\n\
         └──────┴─────────────┘",
    );
    check("| a | b |\n|---|---|\n| c | d |", 9, "a: c\nb: d");
    check("| a | b |\n|---|---|", 9, "a | b");
}

/// A table as models write them, with words that many columns cannot hold.
const OPTIONS: &str = "| Option | Default | Description |\n|---|---|---|\n\
    | `timeout` | 30s | How long a request may take before it is cancelled and repeated |\n\
    | `max_retries` | 3 | Number of repetitions; see https://example.com/docs/configuration/retries |";

#[test]
fn columns_of_tables_shrink_to_their_longest_words() {
    insta::assert_snapshot!(rendered(OPTIONS, 80), @"
    ┌─────────────┬─────────┬──────────────────────────────────────────────────────┐
    │ Option      │ Default │ Description                                          │
    ├─────────────┼─────────┼──────────────────────────────────────────────────────┤
    │ timeout     │ 30s     │ How long a request may take before it is cancelled   │
    │             │         │ and repeated                                         │
    │ max_retries │ 3       │ Number of repetitions; see                           │
    │             │         │ https://example.com/docs/configuration/retries       │
    └─────────────┴─────────┴──────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(rendered(OPTIONS, 60), @"
    ┌─────────────┬─────────┬──────────────────────────────────┐
    │ Option      │ Default │ Description                      │
    ├─────────────┼─────────┼──────────────────────────────────┤
    │ timeout     │ 30s     │ How long a request may take      │
    │             │         │ before it is cancelled and       │
    │             │         │ repeated                         │
    │ max_retries │ 3       │ Number of repetitions; see       │
    │             │         │ https://example.com/docs/configu │
    │             │         │ ration/retries                   │
    └─────────────┴─────────┴──────────────────────────────────┘
    ");
}

#[test]
fn tables_whose_words_do_not_fit_are_stacked() {
    insta::assert_snapshot!(rendered(OPTIONS, 40), @"
    Option: timeout
    Default: 30s
    Description: How long a request may take
      before it is cancelled and repeated

    Option: max_retries
    Default: 3
    Description: Number of repetitions; see
      https://example.com/docs/configuration
      /retries
    ");
    insta::assert_snapshot!(rendered(OPTIONS, 20), @"
    Option: timeout
    Default: 30s
    Description: How
      long a request may
      take before it is
      cancelled and
      repeated

    Option: max_retries
    Default: 3
    Description: Number
      of repetitions;
      see
      https://example.co
      m/docs/configurati
      on/retries
    ");
    let odd = "| Frage? | |\n|---|---|\n| ja | mehrere lange Wörter |\n| | x |";
    insta::assert_snapshot!(rendered(odd, 14), @"
    Frage? ja
    mehrere lange
      Wörter

    Frage?
    x
    ");
}

#[test]
fn a_tower_of_short_rows_is_stacked_and_a_single_column_is_not() {
    let prose = "a few words ".repeat(12);
    let rows = rendered(&format!("| no | text |\n|---|---|\n| 1 | {prose} |"), 22);
    assert!(rows.starts_with("no: 1\ntext: a few words a\n  few words a few"), "{rows}");
    assert!(rendered(&format!("| text |\n|---|\n| {prose} |"), 22).starts_with('┌'));
}

#[test]
fn escape_sequences_of_the_model_are_not_passed_on() {
    let rows = render_with(
        "a\x1b[31mb\n\n```\x1b]0;x\x07\n\x1b[2Jc\n```\n\n`\x1b[1mx`",
        30,
        &MarkdownOptions::default(),
    );
    assert!(rows.iter().all(|row| !row.text().chars().any(char::is_control)));
}

#[test]
fn footnotes_are_numbered_references_and_notes_where_they_come() {
    check("[^a-z]: everything else", 40, "[^a-z]: everything else");
    let text = "A claim[^1] and another[^why].\n\n[^1]: The first source, which is so long that it wraps.\n[^why]: https://a.bc\n\nAfter[^2].";
    let rows = render(text, 30, &THEME, &HIGHLIGHTER, &MarkdownOptions::default());
    let shown: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    A claim[1] and another[^why].

    [1] The first source, which is
        so long that it wraps.

    [^why]: https://a.bc

    After[2].
    ");
}

#[test]
fn a_diagram_in_a_footnote_is_drawn_when_the_answer_is_complete() {
    let text = "\n[^1]: note \n```mermaid\ngraph LR\nA --> B\n```\n\n- item\n";
    check_stream(text, &[1], 40, DiagramTiming::WhenAnswerEnds).unwrap();
}

#[test]
fn wrapped_lines_of_code_are_marked_in_their_indent() {
    let text = "```\nlet text = word;\nshort\n```";
    let rows = render(text, 12, &THEME, &HIGHLIGHTER, &MarkdownOptions::default());
    let shown: Vec<String> = rows.iter().map(Row::text).collect();
    assert_eq!(shown, ["```", "  let text =", "↪ word;", "  short", "```"]);
}

#[test]
fn emphasis_begins_and_ends_next_to_cjk_punctuation() {
    let text = "**中文粗体。**后面\n\n他说**“你好”**然后走了。\n\n*斜体，*后\n\n前面**（括号）**后面\n\n\
        - 列表**项。**后\n\n使用**`code`**后 ~~删。~~后\n\n**마크다운(Markdown)**은\n\n[**链接。**后](https://a.b/**。**后)";
    check(
        text,
        60,
        "中文粗体。后面\n\n他说“你好”然后走了。\n\n斜体，后\n\n前面（括号）后面\n\n- 列表项。后\n\n\
         使用code后 删。后\n\n마크다운(Markdown)은\n\n链接。后 (https://a.b/**。**后)",
    );
    let rows = render(text, 60, &THEME, &HIGHLIGHTER, &MarkdownOptions::default());
    let bold = |row: &Row| {
        let spans = row.line.spans.iter().filter(|span| span.style.add_modifier.contains(Modifier::BOLD));
        spans.map(|span| span.content.as_ref()).collect::<String>()
    };
    assert_eq!(
        [0, 2, 6, 8].map(|row_idx| bold(&rows[row_idx])),
        ["中文粗体。", "“你好”", "（括号）", "项。"]
    );
    // What is not emphasis keeps its asterisks.
    check(
        "`**码。**后` \\**后。**前\n\n```\n**码。**后\n```",
        60,
        "**码。**后 **后。**前\n\n```\n  **码。**后\n```",
    );
}

/// Texts that meet every kind of block, in pieces that may combine.
fn documents() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "plain words that wrap at some width ",
        "世界の文章。",
        "**bold** ",
        "**中文粗体。**后面",
        "他说**“你好”**然后",
        "*斜体，*后",
        "（**`代码`**）",
        "。**",
        "后",
        "*it* ",
        "`code` ",
        "~~no~~ ",
        "\n",
        "\n\n",
        "\n- item\n",
        "\n  - nested\n",
        "\n1. one\n",
        "\n> quote\n",
        "\n> > deep\n",
        "\n# Head\n",
        "\nSet\n---\n",
        "\n```rust\nfn a() {}\n",
        "\n```mermaid\ngraph TD\nA --> B\n",
        "\n```mermaid\ngraph LR\nA --> B\n```\n",
        "\n- ```mermaid\n  graph LR\n  A --> B\n  ```\n",
        "\n> ```mermaid\n> graph LR\n> A --> B\n> ```\n",
        "\n```\n",
        "\n~~~\n",
        "\n  ```\n",
        "    indented\n",
        "\n| a | b |\n|---|---|\n| c | d |\n",
        "\n| name | what it means |\n|---|--:|\n| configuration | several words<br>and `code` |\n",
        "|",
        "[a](https://x.y) ",
        "[r] ",
        "[t][r] ",
        "[r][]",
        "\n[r]: https://d.ef\n",
        "[^1]",
        "\n[^1]: note ",
        "\n[^a b]: https://g.hi\n",
        "https://x.y/z ",
        "<!-- c -->",
        "\n<div>\n",
        "<br>",
        "\n---\n",
        "- [x] t\n",
        "\\",
        "\t",
        "\r\n",
        "👨‍👩‍👧‍👦",
        "&amp;",
        "$x$",
        "$x_1$ ",
        "\\(x_1\\) ",
        "\\[",
        "\\]",
        "$",
        "$$",
        "`$a_1",
        "\n    ",
        "*",
        "_",
        "[",
        "]",
        "(",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Lists of all kinds and quotes, in lines that may continue, nest or end each other.
fn containers() -> impl Strategy<Value = String> {
    let around = prop::sample::select(vec!["", "", "", "", "> ", ">", "> > "]);
    let indent = prop::sample::select(vec!["", "", "", " ", "  ", "  ", "   ", "    ", "      ", "\t"]);
    let mark = prop::sample::select(vec![
        "", "", "", "- ", "- ", "- ", "* ", "+ ", "-", "1. ", "2. ", "9. ", "10) ", "1.", "- [ ] ", "- [x] ",
        "- - ", "1. - ", "- > ",
    ]);
    let text = prop::sample::select(vec![
        "",
        "",
        "text",
        "words that wrap at some width",
        "**bold",
        "end** of it",
        "列表**项。**后",
        "[*。后][s]",
        "`code",
        "`",
        "# Head",
        "===",
        "---",
        "***",
        "```rust",
        "```",
        "~~~",
        "let x = 1;",
        "```mermaid",
        "graph LR",
        "A --> B",
        "| a | b |",
        "|---|---|",
        "    indented",
        "[r]",
        "[text][s]",
        "[r]: https://d.ef",
        "[s]: https://g.hi 'title",
        "[^1] and[^r]",
        "[^1]: note",
        "[^r]: [r]",
        "[^2]:",
        "<div>",
        "<!-- c",
        "-->",
        "<br>",
        "\\",
        "世界の文章。",
    ]);
    let line = (around, indent, mark, text)
        .prop_map(|(around, indent, mark, text)| format!("{around}{indent}{mark}{text}"));
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), prop::collection::vec(1_usize..40, 1..30)]
}

/// One width, or several that take turns while a text arrives.
fn widths() -> impl Strategy<Value = Vec<u16>> {
    let width = || prop_oneof![1_u16..60, 1_u16..=200];
    prop_oneof![width().prop_map(|width| vec![width]), prop::collection::vec(width(), 2..5)]
}

/// Rows that are stable stay as they are, and in the end all rows are those of the whole text.
fn check_stream(text: &str, cuts: &[usize], width: u16, mermaid: DiagramTiming) -> Result<(), TestCaseError> {
    let options = MarkdownOptions { mermaid, ..MarkdownOptions::default() };
    check_stream_at(text, cuts, &[width], &options)
}

/// The same while the width changes with every piece: rows are stable as long as it stays.
fn check_stream_at(
    text: &str,
    cuts: &[usize],
    widths: &[u16],
    options: &MarkdownOptions,
) -> Result<(), TestCaseError> {
    let mut stream = MarkdownStream::new(options.clone());
    let mut rest: Vec<char> = text.chars().collect();
    let mut settled: Vec<Row> = Vec::new();
    let mut widths = widths.iter().copied().cycle();
    let mut width = 0;
    for cut in cuts.iter().cycle() {
        let before = std::mem::replace(&mut width, widths.next().unwrap());
        if width != before {
            settled.clear();
        }
        let taken: String = rest.drain(..(*cut).min(rest.len())).collect();
        stream.push(&taken);
        let rows = stream.rows(width, &THEME, &HIGHLIGHTER).to_vec();
        prop_assert!(rows.iter().all(|row| row.width() <= usize::from(width)), "{rows:?}");
        let stable = stream.stable_rows();
        prop_assert!(stable >= settled.len());
        prop_assert_eq!(&rows[..settled.len()], &settled[..], "a settled row changed");
        settled = rows[..stable].to_vec();
        if rest.is_empty() {
            break;
        }
    }
    stream.finish();
    let streamed = stream.rows(width, &THEME, &HIGHLIGHTER).to_vec();
    prop_assert_eq!(stream.stable_rows(), streamed.len());
    prop_assert_eq!(&streamed[..settled.len()], &settled[..]);
    prop_assert_eq!(streamed, render(text, width, &THEME, &HIGHLIGHTER, options));
    Ok(())
}

#[test]
fn definitions_in_a_list_or_quote_stay_there() {
    for text in ["- [r]: https://d.ef\n  text\n* next\n", "> [r]: https://d.ef\ntext\n- next\n"] {
        check_stream(text, &[1], 20, DiagramTiming::WhenFenceCloses).unwrap();
        assert_eq!(rendered(text, 20).matches("text").count(), 1);
    }
}

#[test]
fn definition_that_comes_after_its_link_is_shown() {
    let text = "[early]: https://a.b\n\nSee [early] and [other].\n\n[other]: <https://e.f>\n[unused]: https://g.h\n\nAfter [other].\n\n> [in a quote]\n\n[in a quote]: https://i.j\n";
    let shown = "See early (https://a.b) and [other].\n\n[other]: <https://e.f>\n\nAfter other (https://e.f).\n\n│ [in a quote]\n\n[in a quote]: https://i.j";
    check_definitions(text, shown);
}

/// A text is shown so, also if it arrives.
#[track_caller]
fn check_definitions(text: &str, shown: &str) {
    assert_eq!(rendered(text, 60), shown);
    for n_chars in 1..9 {
        for width in [20, 60] {
            check_stream(text, &[n_chars], width, DiagramTiming::WhenFenceCloses).unwrap();
        }
    }
}

#[test]
fn links_with_a_text_find_definitions_that_come_later() {
    check_definitions(
        "Ref [link][r] and [r] and [later ref][] here.\n\n- [R]\n\n[r]: https://a.b\n[later ref]: https://c.d\n",
        "Ref link (https://a.b) and r (https://a.b) and later ref\n(https://c.d) here.\n\n- R (https://a.b)",
    );
    // What was final before is as it was.
    check_definitions(
        "Before [r].\n\n> [a][r]\n\nAfter [r].\n\n[r]: https://a.b\n",
        "Before [r].\n\n│ a (https://a.b)\n\nAfter r (https://a.b).\n\n[r]: https://a.b",
    );
    check_definitions(
        "Cell [i][j], [k].\n\n[unused]: https://a.b\n\nEnd [k][].",
        "Cell [i][j], [k].\n\nEnd [k][].",
    );
}

#[test]
fn only_a_link_with_a_text_waits_for_its_definition() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    let mut stable = |text: &str| {
        stream.push(text);
        stream.rows(60, &THEME, &HIGHLIGHTER);
        stream.stable_rows()
    };
    assert_eq!(stable("One [r].\n\nTwo.\n\n"), 3);
    // The row below the second paragraph is not final.
    assert_eq!(stable("See [it][r].\n\nThree.\n\n"), 3);
    assert_eq!(stable("[r]: https://a.b\n\nFour.\n\n"), 3);
}

/// `[1][2]` may be no link, and a long answer must reach the scrollback.
#[test]
fn link_does_not_wait_for_its_definition_for_ever() {
    let paragraph = "Some words of a paragraph.\n\n";
    let long = |n_words: usize| paragraph.repeat(n_words);
    let stable = |text: &str| {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        stream.push(text);
        let n_rows = stream.rows(60, &THEME, &HIGHLIGHTER).len();
        n_rows - stream.stable_rows()
    };
    assert!(stable(&format!("See [1][2].\n\n{}", long(100))) > 100);
    assert!(stable(&format!("See [1][2].\n\n{}", long(1_000))) < 10);
    // One that comes in time counts, also after others; one that is late is shown, as a whole and cut at any place.
    let links = ["[a][in time]", "[b][late]"].join(" and ");
    let text = format!(
        "See {links}.\n\n[in time]: https://a.b\n\n{}\n[late]: https://c.d\n\n[c][late]\n",
        long(1_000)
    );
    let options = MarkdownOptions::default();
    let rows = render(&text, 60, &THEME, &HIGHLIGHTER, &options);
    let shown: Vec<String> = rows.iter().map(Row::text).map(|row| row.trim_end().to_owned()).collect();
    assert_eq!(shown[0], "See a (https://a.b) and [b][late].");
    assert_eq!(shown[shown.len() - 3..], ["[late]: https://c.d", "", "c (https://c.d)"]);
    for n_bytes in [700, 5_000, 20_000] {
        let mut stream = MarkdownStream::new(options.clone());
        for piece in text.as_bytes().chunks(n_bytes) {
            stream.push(std::str::from_utf8(piece).unwrap());
            stream.rows(60, &THEME, &HIGHLIGHTER);
        }
        stream.finish();
        assert_eq!(stream.rows(60, &THEME, &HIGHLIGHTER), rows, "{n_bytes}");
    }
}

#[test]
fn a_definition_stays_with_the_paragraph_it_begins() {
    // A tag may not interrupt a paragraph, so the list is one here; a tag that begins
    // a block would swallow it.
    let text = "before\n\n[r]: https://d.ef\n<br>\n- item\n";
    let options = MarkdownOptions::default();
    let mut stream = MarkdownStream::new(options.clone());
    for char in text.chars() {
        stream.push(char.encode_utf8(&mut [0; 4]));
        stream.rows(20, &THEME, &HIGHLIGHTER);
    }
    stream.finish();
    let streamed = stream.rows(20, &THEME, &HIGHLIGHTER).to_vec();
    assert_eq!(streamed, render(text, 20, &THEME, &HIGHLIGHTER, &options));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn streaming_ends_in_what_rendering_at_once_gives(
        text in prop_oneof![documents(), containers()], cuts in cuts(), widths in widths(), links in any::<bool>(),
        mermaid in prop::sample::select(vec![DiagramTiming::Never, DiagramTiming::WhenAnswerEnds, DiagramTiming::WhenFenceCloses]),
    ) {
        let options = MarkdownOptions { mermaid, links, ..MarkdownOptions::default() };
        check_stream_at(&text, &cuts, &widths, &options)?;
    }

    #[test]
    fn lists_and_quotes_look_the_same_while_they_stream(text in containers(), cuts in cuts(), width in 1_u16..=200) {
        check_stream(&text, &cuts, width, DiagramTiming::WhenFenceCloses)?;
    }

    #[test]
    fn words_of_tables_stay_whole_where_a_row_has_room_for_them(
        cells in prop::collection::vec(prop::collection::vec("[a-z]{0,12}( [a-z]{1,12}){0,6}", 3), 1..4),
        width in 15_u16..90,
    ) {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let lines: String = cells.iter().map(line).collect();
        let text = rendered(&format!("| first | second | third |\n|---|---|---|\n{lines}"), width);
        let mut shown: Vec<&str> = text.split_whitespace().collect();
        shown.sort_unstable();
        let wanted = cells.iter().flatten().flat_map(|cell| cell.split_whitespace());
        for word in wanted {
            prop_assert!(shown.binary_search(&word).is_ok(), "{word} at {width}:\n{text}");
        }
    }

    #[test]
    fn any_text_is_survived(text in any::<String>(), width in 0_u16..20) {
        for row in render_with(&text, width, &MarkdownOptions { links: true, ..Default::default() }) {
            prop_assert!(row.width() <= usize::from(width.max(1)));
        }
    }
}

/// Lists of `n` items of each kind, and how many rows an item has.
fn long_lists(n: usize) -> Vec<(usize, String)> {
    let items = |item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<String>();
    vec![
        (1, items(&|n| format!("- item {n} with **bold** and `code`\n"))),
        (1, items(&|n| format!("{}. item\n", n + 1))),
        (1, items(&|n| format!("- [{}] task {n}\n", if n % 2 == 0 { 'x' } else { ' ' }))),
        (2, items(&|n| format!("* item {n}\n\n"))),
        (4, items(&|n| format!("- item {n}\n\n  more\nand lazy\n\n"))),
        (4, items(&|n| format!("- item {n}\n  1. one\n  2. two\n     - three\n"))),
        (5, items(&|n| format!("1. item {n}\n   ```sh\n   a\n   b\n   ```\n"))),
        (6, items(&|n| format!("- item {n}\n  | a | b |\n  |---|---|\n  | c | d |\n"))),
        (4, items(&|n| format!("- # item {n}\n  > quote\n\n  ---\n"))),
    ]
}

/// Work per byte when `text` arrives in pieces of 60 bytes.
fn parsed_per_byte(text: &str) -> u64 {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    for chunk in text.as_bytes().chunks(60) {
        stream.push(std::str::from_utf8(chunk).unwrap());
        stream.rows(80, &THEME, &Highlighter::new());
    }
    stream.finish();
    stream.rows(80, &THEME, &Highlighter::new());
    stream.parsed_bytes() / text.len() as u64
}

#[test]
fn parsing_a_stream_is_linear_work() {
    let paragraph = "Some words of an answer that goes on for a while, with `code` in it.\n\n";
    let code = format!("```rust\n{}```\n\n", "let x = 1;\n".repeat(200));
    let quote = "> a line of one quote that never ends\n".repeat(3_000);
    for (limit, text) in [(10, paragraph.repeat(400)), (10, code.repeat(10)), (200, quote)] {
        let per_byte = parsed_per_byte(&text);
        assert!(per_byte < limit, "{per_byte} bytes parsed per byte of {:?}", &text[..40]);
    }
    for (_, list) in long_lists(2_000) {
        let per_byte = parsed_per_byte(&list);
        assert!(per_byte < 20, "{per_byte} bytes parsed per byte of {:?}", &list[..40]);
    }
}

#[test]
fn only_the_last_items_of_a_list_are_live() {
    for (n_rows, list) in long_lists(500) {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        let mut n_shown = 0;
        for line in list.split_inclusive('\n') {
            stream.push(line);
            n_shown = stream.rows(80, &THEME, &Highlighter::new()).len();
            let n_live = n_shown - stream.stable_rows();
            assert!(n_live <= 2 * n_rows, "{n_live} live rows after {line:?}");
        }
        assert!(
            (500 * n_rows - 1..=500 * (n_rows + 1)).contains(&n_shown),
            "{n_shown} rows of {:?}",
            &list[..40]
        );
    }
}

#[test]
fn finished_blocks_of_the_last_item_and_quote_settle() {
    let stable_of = |texts: &[&str]| {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        let mut stable = |text: &&str| {
            stream.push(text);
            stream.rows(40, &THEME, &HIGHLIGHTER);
            stream.stable_rows()
        };
        texts.iter().map(&mut stable).collect::<Vec<_>>()
    };
    assert_eq!(
        stable_of(&["- a\n", "  - b\n", "  - c\n", "    1. d\n", "    2. e\n", "- f"]),
        [0, 1, 2, 3, 4, 4]
    );
    assert_eq!(stable_of(&["> a\n", ">\n", "> b\n", "c\n", "> - d\n> - e\n"]), [0, 0, 1, 1, 6]);
    assert_eq!(stable_of(&["1. a\n   ```sh\n", "   b\n", "   c", "\n   ```\n", "   d\n"]), [2, 3, 3, 4, 5]);
    // Unless later text may define what brackets refer to.
    assert_eq!(stable_of(&["- a\n  - [b]\n", "  - c\n", "  - d\n", "\n  [b]: e\n- f\n"]), [0, 0, 0, 4]);
}

#[test]
fn parts_of_a_line_of_prose_are_known_without_parsing() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    for word in ["A *long* ", "line [of] ", "- `prose` ", "| 1. with ", "> marks"] {
        stream.push(word);
        stream.rows(80, &THEME, &HIGHLIGHTER);
    }
    assert_eq!(stream.parsed_bytes(), 0);
    let shown: Vec<String> = stream.rows(80, &THEME, &HIGHLIGHTER).iter().map(Row::text).collect();
    assert_eq!(shown, ["A long line [of] - prose | 1. with > marks"]);
}

#[test]
fn asking_again_parses_nothing() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    stream.push("# a\n\nb");
    stream.rows(80, &THEME, &HIGHLIGHTER);
    let parsed = stream.parsed_bytes();
    stream.rows(80, &THEME, &HIGHLIGHTER);
    assert_eq!(stream.parsed_bytes(), parsed);
    stream.rows(40, &THEME, &HIGHLIGHTER);
    assert!(stream.parsed_bytes() > parsed);
}

#[test]
fn a_paragraph_settles_with_the_blank_line_below_it() {
    let n_settled = |text: &str| {
        let mut stream = MarkdownStream::new(MarkdownOptions::default());
        stream.push(text);
        stream.rows(40, &THEME, &HIGHLIGHTER);
        stream.stable_rows()
    };
    // It may go on, or become a heading.
    assert_eq!(n_settled("one\ntwo\n"), 0);
    assert_eq!(n_settled("one\n\n"), 1);
    assert_eq!(n_settled("one\n \t\nnext"), 1);
    // A table of which the head is complete is no paragraph.
    assert_eq!(n_settled("a | b\n--|--\n"), 0);
    // The definition may be followed by more.
    assert_eq!(n_settled("see [x]\n\n[x]: http://y\n\n"), 0);
}

#[test]
fn an_open_fence_settles_line_by_line() {
    let mut stream = MarkdownStream::new(MarkdownOptions::default());
    let mut stable = Vec::new();
    for delta in ["```sh\n", "one\n", "tw", "o\nthree", "\n```", "\nafter"] {
        stream.push(delta);
        stream.rows(40, &THEME, &HIGHLIGHTER);
        stable.push(stream.stable_rows());
    }
    assert_eq!(stable, [1, 2, 2, 3, 4, 5]);
}

#[test]
fn hostile_texts_do_not_hang() {
    let nested_quotes = format!("{} deep", ">".repeat(5_000));
    let nested_lists: String = (0..300).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
    let texts = [
        nested_quotes,
        nested_lists,
        "*a ".repeat(5_000),
        "[".repeat(20_000),
        "[a](".repeat(5_000),
        "`".repeat(20_001),
        "|a".repeat(2_000) + "\n" + &"|-".repeat(2_000) + "\n|x",
        "<!-- ".repeat(5_000),
        "_*".repeat(10_000),
    ];
    for text in texts {
        for row in render_with(&text, 40, &MarkdownOptions::default()) {
            assert!(row.width() <= 40);
        }
    }
}
