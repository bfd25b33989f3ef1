//! Whole screens at five widths, reviewed as a user sees them.

use crate::ai::{ContentBlock, ToolResultMessage};
use crate::session::{Phase, Question, QuestionId, QuestionKind, QueueView};

use super::*;

pub(super) const WIDTHS: [u16; 5] = [20, 40, 80, 120, 200];

/// The screen at each width.
pub(super) fn at_all_widths(height: u16, make: impl Fn() -> Stage) -> String {
    typed_at_all_widths(height, make, "")
}

/// The same after these keys, which are typed while the first screen is shown.
fn typed_at_all_widths(height: u16, make: impl Fn() -> Stage, keys: &str) -> String {
    let screen = |width: u16| {
        let mut stage = make();
        stage.screen(width, height);
        stage.type_keys(keys);
        let rows = stage.screen(width, height);
        format!("── {width} columns\n{}\n", rows.join("\n"))
    };
    WIDTHS.map(screen).concat()
}

fn result(call: &ToolCall, text: &str, details: Option<Value>) -> Message {
    Message::ToolResult(Arc::new(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(text)],
        details,
        is_error: false,
        duration_ms: Some(1_200),
        timestamp: Millis(0),
        extra: Default::default(),
    }))
}

/// A conversation with tools, a table, code and a list.
pub(super) fn conversation() -> Stage {
    let read = call("read", json!({ "path": "src/parser.rs", "offset": 1, "limit": 20 }));
    let bash = call("bash", json!({ "command": "cargo test --lib parser -- --nocapture 2>&1 | tail -n 5" }));
    let text = "The parser **rejects** numbers such as `1_000`; both places are fixed.\n\n\
                | place | what was wrong | fixed |\n|---|---|--:|\n\
                | `lex_number` | stopped at the first underscore | 12 |\n\
                | `parse_literal` | 世界 counted as two bytes | 3 |\n\n\
                ```rust\nfn lex_number(input: &str) -> Option<(u64, &str)> {\n    None\n}\n```\n\n\
                1. Run the tests\n2. Look at the diff\n   - nested item that is long enough to wrap at narrow widths\n";
    let mut stage = Stage::new();
    stage
        .message(user("Why does the parser reject 1_000? Please fix it, and show me the rows that change."))
        .message(answer(
            StopReason::ToolUse,
            vec![
                says("Let me look."),
                AssistantBlock::ToolCall(read.clone()),
                AssistantBlock::ToolCall(bash.clone()),
            ],
        ))
        .message(result(&read, "fn lex_number() {}\n", None))
        .message(result(
            &bash,
            "running 3 tests\ntest parser::numbers ... ok\n\ntest result: ok. 3 passed\n",
            None,
        ))
        .message(answer(StopReason::Stop, vec![says(text)]));
    stage
}

#[test]
fn conversation_in_fullscreen() {
    insta::assert_snapshot!(at_all_widths(60, conversation));
}

#[test]
fn empty_session_with_a_draft() {
    insta::assert_snapshot!(at_all_widths(14, || {
        let mut stage = Stage::new();
        stage.type_keys(
            "A draft that is long enough to need two rows at eighty columns, and 日本語 at its end",
        );
        stage
    }));
}

#[test]
fn queued_messages_while_the_agent_works() {
    insta::assert_snapshot!(at_all_widths(16, || {
        let mut stage = conversation();
        stage.session(|session| {
            session.phase = Phase::Running;
            session.queue = QueueView {
                steering: vec!["use tabs instead of spaces in every file that you change".to_owned()],
                follow_up: vec!["then run the benchmarks".to_owned()],
            }
            .into();
        });
        stage.type_keys("wait");
        stage
    }));
}

/// On a screen with few rows too; as long as there are six.
#[test]
fn queue_is_shown_on_small_screens() {
    let screen = |width: u16, height: u16| {
        let mut stage = conversation();
        stage.session(|session| {
            let (steering, follow_up) =
                (vec!["tabs".to_owned(), "not here".to_owned()], vec!["then".to_owned()]);
            (session.phase, session.queue) = (Phase::Running, QueueView { steering, follow_up }.into());
        });
        stage.screen(width, height).join("\n")
    };
    insta::assert_snapshot!(screen(20, 6), @"
          widths

     Queued: 2 steering…
    ── enter: deliver… ─

    ────────────────────
    ");
    insta::assert_snapshot!(screen(60, 10), @"
     2. Look at the diff
        - nested item that is long enough to wrap at narrow
          widths

     Queued: 2 steering, 1 follow-up · alt+up to edit
    ── enter: deliver queued messages now ──────────────────────

    ────────────────────────────────────────────────────────────
    ~/project
    0.0%/200k (auto)    sonata-4-large-2026-10-01 • thinking off
    ");
    assert!(!screen(60, 5).contains("Queued"));
}

#[test]
fn search_selection_and_label_in_fullscreen() {
    for (name, keys) in
        [("search", "<alt+/>parser"), ("select", "<alt+s><up> "), ("label", "<pageUp><pageUp>")]
    {
        insta::assert_snapshot!(name, typed_at_all_widths(20, conversation, keys));
    }
}

#[test]
fn lists_and_dialogs() {
    let dialogs: [(&str, &str); 9] = [
        ("models", "<ctrl+l>"),
        ("models_filtered", "<ctrl+l>qwen"),
        ("scope", "/scoped-models<enter>"),
        ("thinking", "/thinking<enter>"),
        ("settings", "/settings<enter>"),
        ("settings_found", "/settings<enter>compact"),
        ("queue", "/queue<enter>"),
        ("trust", "/trust<enter>"),
        ("commands", "/s"),
    ];
    for (name, keys) in dialogs {
        insta::assert_snapshot!(
            format!("dialog_{name}"),
            at_all_widths(18, || {
                let mut stage = conversation();
                if name == "queue" {
                    stage.session(|session| {
                        session.phase = Phase::Running;
                        let steering =
                            vec!["use tabs instead of spaces everywhere".to_owned(), "and 日本語".to_owned()];
                        session.queue =
                            QueueView { steering, follow_up: vec!["then stop".to_owned()] }.into();
                    });
                }
                stage.type_keys(keys);
                stage
            })
        );
    }
}

#[test]
fn question_of_a_tool() {
    insta::assert_snapshot!(at_all_widths(16, || {
        let mut stage = conversation();
        let question = Arc::new(Question {
            id: QuestionId::new(1),
            kind: QuestionKind::Trust,
            text: "Run this command?\ncargo publish --dry-run --allow-dirty --registry internal".to_owned(),
            options: vec!["Allow".to_owned(), "Allow for this session".to_owned(), "Don't allow".to_owned()],
            default: 2,
        });
        stage.app.dialogs.open_question(&question);
        stage
    }));
}
