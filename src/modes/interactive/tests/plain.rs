//! Nothing is told by colour alone: without styles, states still differ in their text.

use crate::agent::{SKIPPED_CALL, ToolOutput};
use crate::ai::{ContentBlock, Thinking, ToolResultMessage};
use crate::session::{NoticeLevel, QueueView};

use super::*;

const DEPTHS: [ColorDepth; 3] = [ColorDepth::True, ColorDepth::Ansi, ColorDepth::None];

fn stage(depth: ColorDepth) -> Stage {
    let mut stage = Stage::new();
    stage.app.theme = Theme::builtin("dark", Appearance::Dark, depth).unwrap();
    stage
}

/// The rows of the transcript in one stage, without styles and blank rows.
fn transcript(stage: &mut Stage) -> String {
    let rows = stage.screen(60, 40);
    let end = rows.iter().position(|row| row.starts_with("──")).unwrap_or(rows.len());
    let shown = rows[..end].iter().map(|row| row.trim_end_matches(['█', '│', ' ']));
    shown.filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_all_differ(shown: &[(&str, String)]) {
    for (n, (name, text)) in shown.iter().enumerate() {
        let same = shown[..n].iter().find(|(_, other)| other == text);
        assert!(same.is_none(), "{name} looks like {}:\n{text}", same.unwrap().0);
    }
}

fn ended(call: &ToolCall, text: &str, is_error: bool) -> Message {
    Message::ToolResult(Arc::new(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(text)],
        details: None,
        is_error,
        duration_ms: Some(0),
        timestamp: Millis(0),
        extra: Default::default(),
    }))
}

#[test]
fn states_of_calls_differ_in_text() {
    let calls = [
        call("read", json!({ "path": "a.txt" })),
        call("bash", json!({ "command": "true" })),
        call("write", json!({ "path": "a.txt", "content": "same" })),
        call("oracle", json!({ "question": "same" })),
    ];
    for depth in DEPTHS {
        for call in &calls {
            let shown = |after: &dyn Fn(&mut Stage)| {
                let mut stage = stage(depth);
                let block = AssistantBlock::ToolCall(call.clone());
                stage.message(answer(StopReason::ToolUse, vec![block]));
                after(&mut stage);
                transcript(&mut stage)
            };
            let ends = |text: &'static str, is_error| {
                move |stage: &mut Stage| {
                    stage.message(ended(call, text, is_error));
                }
            };
            let running = shown(&|stage| {
                let call = Arc::new(call.clone());
                let partial = Arc::new(ToolOutput::text("same"));
                stage.agent(AgentEvent::ToolStart { call: Arc::clone(&call) });
                stage.agent(AgentEvent::ToolRunning { call_id: call.id.clone() });
                stage.agent(AgentEvent::ToolUpdate { call_id: call.id.clone(), partial });
            });
            assert_all_differ(&[
                ("running", running),
                ("done", shown(&ends("same", false))),
                ("failed", shown(&ends("same", true))),
                ("blocked", shown(&ends("You declined this call.", true))),
                ("skipped", shown(&ends(SKIPPED_CALL, true))),
            ]);
        }
    }
}

#[test]
fn failed_calls_have_a_mark_that_skipped_ones_do_not_have() {
    let read = call("read", json!({ "path": "a.txt" }));
    let shown = |text: &str| {
        let mut stage = stage(ColorDepth::True);
        let block = AssistantBlock::ToolCall(read.clone());
        stage.message(answer(StopReason::ToolUse, vec![block])).message(ended(&read, text, true));
        transcript(&mut stage)
    };
    assert!(shown("no such file").ends_with(" ✗ no such file"), "{}", shown("no such file"));
    assert!(shown(SKIPPED_CALL).ends_with(&format!(" – {SKIPPED_CALL}")), "{}", shown(SKIPPED_CALL));
}

#[test]
fn speakers_differ_where_there_are_no_backgrounds() {
    for depth in [ColorDepth::Ansi, ColorDepth::None] {
        let shown = |message: Message| {
            let mut stage = stage(depth);
            stage.message(message);
            transcript(&mut stage)
        };
        let thinking = Thinking { thinking: "the same words".into(), ..Default::default() };
        let mut all = vec![
            ("prompt", shown(user("the same words"))),
            ("answer", shown(answer(StopReason::Stop, vec![says("the same words")]))),
        ];
        let thinking = shown(answer(StopReason::Stop, vec![AssistantBlock::Thinking(thinking)]));
        // Elsewhere it has a colour and italics.
        if depth == ColorDepth::None {
            all.push(("thinking", thinking));
        }
        for level in [NoticeLevel::Warning, NoticeLevel::Error] {
            let mut stage = stage(depth);
            stage.app.transcript.notice(level, "the same words");
            all.push((if level == NoticeLevel::Error { "error" } else { "warning" }, transcript(&mut stage)));
        }
        assert_all_differ(&all);
    }
}

#[test]
fn conversation_without_colours() {
    let mut stage = stage(ColorDepth::None);
    let edit = call(
        "edit",
        json!({ "path": "a.rs", "edits": [{ "oldText": "let a = 1;", "newText": "let a = 2;" }] }),
    );
    let thinking = Thinking { thinking: "Which line is it?\n\nThe **first**.".into(), ..Default::default() };
    stage
        .message(user("Change `a` to 2, please;\nonly that."))
        .message(answer(
            StopReason::ToolUse,
            vec![
                AssistantBlock::Thinking(thinking),
                says("It is `let a = 1;` in [a.rs](https://x.y)."),
                AssistantBlock::ToolCall(edit.clone()),
            ],
        ))
        .message(ended(&edit, "no such text in a.rs", true));
    stage.session(|session| {
        session.phase = crate::session::Phase::Running;
        session.queue =
            QueueView { steering: vec!["stop".to_owned()], follow_up: vec!["go on".to_owned()] }.into();
    });
    insta::assert_snapshot!(stage.screen(44, 36).join("\n"), @"

     pi v0
     escape interrupt · / commands · ctrl+o
     more

    › Change `a` to 2, please;
      only that.

     ┊ Which line is it?
     ┊
     ┊ The first.

     It is `let a = 1;` in a.rs (https://x.y).

    • edit a.rs

      ✗ no such text in a.rs











     Steering: stop
     Follow-up: go on
     ↳ alt+up to edit them · /queue to change
    ── enter: deliver queued messages now ──────

    ────────────────────────────────────────────
    ~/project
    0.0%/200k  sonata-4-large-2026-10-01 • thin…
    ");
}

#[test]
fn thinking_levels_context_use_and_commands_are_named() {
    let shown = |change: &dyn Fn(&mut SessionState), keys: &str| {
        let mut stage = stage(ColorDepth::None);
        stage.session(|session| change(session));
        stage.type_keys(keys);
        stage.screen(80, 14).join("\n")
    };
    use crate::ai::ThinkingLevel;
    assert_all_differ(&[
        ("off", shown(&|session| session.thinking = ThinkingLevel::Off, "")),
        ("low", shown(&|session| session.thinking = ThinkingLevel::Low, "")),
        ("high", shown(&|session| session.thinking = ThinkingLevel::High, "")),
        ("nearly full", shown(&|session| session.context.tokens = Some(190_000), "")),
        ("half full", shown(&|session| session.context.tokens = Some(100_000), "")),
        ("a command", shown(&|_| {}, "!ls")),
        ("a hidden command", shown(&|_| {}, "!!ls")),
        ("a prompt", shown(&|_| {}, "ls")),
    ]);
}

#[test]
fn selected_rows_of_lists_have_an_arrow() {
    let mut stage = stage(ColorDepth::None);
    stage.screen(60, 20);
    stage.type_keys("<ctrl+l>");
    let first = stage.screen(60, 20);
    stage.type_keys("<down>");
    let second = stage.screen(60, 20);
    let arrow = |rows: &[String]| rows.iter().position(|row| row.starts_with("→ "));
    assert!(arrow(&first).is_some() && arrow(&first) < arrow(&second), "{first:#?}\n{second:#?}");
}

#[test]
fn screens_without_colours_send_none() {
    let mut stage = stage(ColorDepth::None);
    stage.message(user("**bold** and `code`\n\n```rust\nfn a() {}\n```"));
    fullscreen::set(&mut stage.app, true);
    let mut window = FullscreenWindow::new(Vec::new(), Size::new(60, 20));
    draw_fullscreen(&mut stage.app, &mut window).unwrap();
    let sent = String::from_utf8_lossy(window.sink()).into_owned();
    let colours =
        sent.split("\u{1b}[").filter_map(|part| part.split_once('m')).map(|(sgr, _)| sgr).filter(|sgr| {
            sgr.split(';')
                .any(|number| matches!(number.parse::<u8>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107)))
        });
    assert_eq!(colours.collect::<Vec<_>>(), Vec::<&str>::new());
}
