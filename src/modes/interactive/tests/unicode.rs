//! Text that programs get wrong, through composer, transcript, pickers and copy.

use unicode_segmentation::UnicodeSegmentation;

use crate::ai::{ContentBlock, ToolResultMessage};
use crate::session::{Phase, QueueView};
use crate::tui::composer::Composer;
use crate::tui::term::normalize_paste;
use crate::tui::text::{Row, copied_text, sanitize, sanitize_line, visible};
use crate::tui::widgets::{Picker, PickerItem};

use super::super::overlays::tests::draw_picker;
use super::*;

/// Families, flags, modifiers, Indic, Thai, Arabic, Hebrew, CJK with punctuation, Hangul in parts,
/// combining marks, variation selectors, joiners alone, tabs, blanks of all widths, characters
/// without a glyph.
const TEXTS: &[&str] = &[
    "👨‍👩‍👧‍👦👩🏽‍💻🏳️‍🌈🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "🇯🇵🇩🇪🇺🇳🇯",
    "👍🏽👍🏿🤚🏻 🏽",
    "क्षत्रिय हिन्दी নমস্কার தமிழ் ಕನ್ನಡ",
    "ภาษาไทยไม่มีช่องว่าง น้ำ กำ",
    "مرحبا بالعالم ﷽ لا إله",
    "שָׁלוֹם עוֹלָם",
    "これは「試験」です。本当に、そう？！…ー々",
    "한국어 각 ᄀ ᅡ",
    "e\u{301}\u{302}\u{323} a\u{308} Z\u{351}\u{36b}\u{343}\u{36a}a\u{321}",
    "❤\u{fe0e} ❤\u{fe0f} ☎\u{fe0f} 1\u{fe0f}\u{20e3} ©\u{fe0f}",
    "\u{200d}a\u{200d} \u{200b}b\u{2060}c\u{feff}d",
    "\u{301}first \u{93e}x",
    "ｶﾞｷﾞ ﾞ ＡＢＣ　全角",
    "a\u{a0}b\u{2003}c\u{3000}d\u{202f}e",
    "ﬃ ǆ ẞ ß İ ı ſ",
    "\u{e000}\u{10ffff}\u{ad}\u{fffd}",
    "long_identifier_without_any_blank_in_it_世界_👨‍👩‍👧‍👦_e\u{301}_until_the_row_ends",
];

const WIDTHS: [u16; 8] = [1, 2, 5, 20, 40, 80, 120, 200];

/// With tabs, controls, escape sequences and what remains of bytes that are no UTF-8.
fn hostile() -> Vec<String> {
    let controls = "\ttab\tand \u{1b}[31mred\u{1b}[0m\u{7} \u{0}nul \u{9b}2J c1 \u{202e}bidi\u{2066}";
    let bytes = [b"caf\xe9 \xff\xfe \xf0\x9f\x98 \xc3(".as_slice(), b"\xed\xa0\x80\xed\xb0\x80 cut \xe4\xb8"];
    let lossy = bytes.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    TEXTS.iter().map(|text| (*text).to_owned()).chain([controls.to_owned()]).chain(lossy).collect()
}

#[test]
fn composer_moves_and_deletes_by_cluster_and_keeps_the_text() {
    for text in hostile() {
        let clean = normalize_paste(&text);
        let mut stage = Stage::new();
        stage.paste(&text);
        assert_eq!(stage.app.input.prompt.composer.text(), clean);
        let n_clusters = clean.graphemes(true).count();
        stage.type_keys(&"<left>".repeat(n_clusters));
        let composer = &stage.app.input.prompt.composer;
        assert_eq!((composer.before_cursor(), composer.text()), ("", clean.clone()), "{text:?}");
        stage.type_keys("<end>");
        for n in (0..n_clusters).rev() {
            let expected: String = clean.graphemes(true).take(n).collect();
            stage.type_keys("<backspace>");
            let rest = stage.app.input.prompt.composer.text();
            // What is left may join what was apart before.
            assert!(rest == expected || expected.graphemes(true).count() < n, "{text:?}: {rest:?} at {n}");
        }
    }
}

#[test]
fn composer_shows_everything_at_every_width_with_the_cursor_on_it() {
    for text in hostile() {
        let mut composer = Composer::new();
        composer.paste(&normalize_paste(&text));
        let whole: String = visible(&composer.text()).split_whitespace().collect();
        for width in WIDTHS {
            let drawn = composer.render(&view(width));
            assert!(drawn.rows.iter().all(|row| row.width() <= usize::from(width)), "{text:?} at {width}");
            assert!(usize::from(drawn.cursor.0) < drawn.rows.len() && drawn.cursor.1 < width.max(1));
            let shown: String = drawn.rows.iter().map(Row::text).collect();
            let shown: String = shown.split_whitespace().collect();
            if width >= 20 {
                assert!(shown.contains(&whole), "{text:?} at {width}: {shown:?}");
            }
        }
    }
}

fn view(width: u16) -> crate::tui::composer::ComposerView<'static> {
    static THEME: std::sync::LazyLock<Theme> =
        std::sync::LazyLock::new(|| Theme::builtin("dark", Appearance::Dark, ColorDepth::True).unwrap());
    crate::tui::composer::ComposerView {
        width,
        max_rows: 100,
        padding: 0,
        theme: &THEME,
        border: ratatui::style::Style::new(),
        label: "",
        placeholder: "",
    }
}

/// The rows of a transcript that shows `text` as a prompt, as an answer, and as a tool's output.
fn transcript_rows(text: &str, width: u16) -> Vec<Row> {
    let mut stage = Stage::new();
    let run = call("bash", json!({ "command": "cat odd.txt" }));
    let result = ToolResultMessage {
        tool_call_id: run.id.clone(),
        tool_name: run.name.clone(),
        content: vec![ContentBlock::text(format!("OUTPUT\n{text}\nEND"))],
        details: None,
        is_error: false,
        duration_ms: None,
        timestamp: Millis(0),
        extra: Default::default(),
    };
    stage.message(user(text)).message(answer(
        StopReason::ToolUse,
        vec![
            says(&format!("```\nCODE\n{text}\nEND\n```\n\nSay {text}, **{text}**.")),
            AssistantBlock::ToolCall(run),
        ],
    ));
    stage.message(Message::ToolResult(Arc::new(result)));
    let transcript = &mut stage.app.transcript;
    transcript.set_view(ViewSettings { expanded: true, ..transcript.view().clone() });
    transcript.layout(width, &stage.app.theme, Duration::ZERO);
    (0..transcript.len()).map(|index| transcript.row(index).into_owned()).collect()
}

#[test]
fn transcript_fits_every_width_and_sends_no_control_character() {
    for text in hostile() {
        for width in WIDTHS {
            for row in transcript_rows(&text, width) {
                assert!(row.width() <= usize::from(width), "{text:?} at {width}: {row:?}");
                assert!(!row.text().chars().any(char::is_control), "{text:?} at {width}: {row:?}");
            }
        }
    }
}

/// What a row shows of a text, without the blanks that wrapping moves.
fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn transcript_keeps_every_text_wherever_it_comes_from() {
    for text in hostile() {
        // Wide clusters do not fit into narrower rows.
        for width in [20, 40, 80, 120, 200] {
            let rows = transcript_rows(&text, width);
            let shown: String = rows.iter().map(|row| letters(&row.text().replace('↪', ""))).collect();
            let prompt = letters(&visible(&text));
            assert!(shown.contains(&prompt), "the prompt {text:?} at {width}: {shown:?}");
            let clean = letters(&sanitize(&text));
            let mut expected = vec![format!("CODE{clean}END"), format!("OUTPUT{clean}END")];
            // In running text, underlines may be marks, and nothing is bold after a blank.
            if !text.contains('_') && !text.starts_with(char::is_whitespace) {
                expected.push(format!("Say{clean},{clean}."));
            }
            for expected in expected {
                assert!(shown.contains(&expected), "{expected:?} at {width} is not in {shown:?}");
            }
        }
    }
}

#[test]
fn copied_code_and_output_are_those_of_the_model_and_the_tool_at_every_width() {
    for text in TEXTS.iter().copied().chain(["\ta\t\u{301}\tb"]) {
        for width in WIDTHS {
            let rows = transcript_rows(text, width);
            let copied = copied_text(rows.iter().map(|row| (row, 0..u16::MAX)));
            let clean: String = text
                .chars()
                .filter(|c| *c == '\t' || !sanitize(c.encode_utf8(&mut [0; 4])).is_empty())
                .collect();
            for expected in [format!("CODE\n{clean}\nEND"), format!("OUTPUT\n{clean}\nEND")] {
                assert!(copied.contains(&expected), "{expected:?} at {width} is not in {copied:?}");
            }
        }
    }
}

#[test]
fn names_and_queued_messages_show_what_cannot_be_seen() {
    let hidden = "gpj\u{202e}evil\u{200b}";
    let mut stage = Stage::new();
    stage.session(|session| {
        (session.name, session.cwd) = (Some(hidden.to_owned()), "/home/me/\u{2066}x".into());
        session.phase = Phase::Running;
        session.queue = QueueView { steering: vec![hidden.to_owned()], follow_up: Vec::new() }.into();
    });
    let screen = stage.screen(120, 20).join("\n");
    assert_eq!(screen.matches("gpj<U+202E>evil<U+200B>").count(), 2, "{screen}");
    assert!(screen.contains("~/<U+2066>x"), "{screen}");
    stage.type_keys("/name<enter>");
    assert!(stage.screen(120, 20).join("\n").contains("called “gpj<U+202E>evil<U+200B>”"));
}

#[test]
fn pickers_show_and_find_every_text() {
    for text in hostile() {
        let items = vec![
            PickerItem::new(0, "first"),
            PickerItem::new(1, &*text).note(&*text).detail(&*text),
            PickerItem::new(2, "last"),
        ];
        let mut picker = Picker::new(&*text, items);
        for width in WIDTHS {
            let rows = draw_picker(&mut picker, width);
            assert!(rows.iter().all(|row| row.width() <= usize::from(width)), "{text:?} at {width}");
            assert!(rows.iter().all(|row| !row.text().chars().any(char::is_control)), "{text:?} at {width}");
            let shown: String = rows.iter().map(|row| letters(&row.text())).collect();
            // Title, label, note and detail.
            let clean = letters(&sanitize_line(&text));
            assert!(width < 200 || shown.matches(&clean).count() >= 2, "{text:?}: {shown:?}");
        }
        let clean = sanitize(&text);
        let word = clean.split_whitespace().max_by_key(|word| word.len()).unwrap();
        picker.set_query(word);
        assert!(picker.shown().any(|value| *value == 1), "{word:?} is not found");
    }
}
