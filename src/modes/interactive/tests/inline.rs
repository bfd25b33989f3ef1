//! The main screen at five widths, with the scrollback above it, reviewed as a user sees it.

use ratatui::layout::Position;

use crate::ai::{ContentBlock, Thinking, ToolResultMessage};
use crate::session::{BashExecution, BashId, NoticeLevel};
use crate::tui::term::InlineWindow;
use crate::tui::text::width;

use super::super::completion::FoundFiles;
use super::super::msg::EffectDone;
use super::super::prompt_history::HistoryDone;
use super::super::ui::Ui;
use super::emulators::virtual_terminal::VirtualTerminal;
use super::over_screen::Shared;
use super::screens::{WIDTHS, conversation};
use super::*;

/// Scrollback and screen after one frame.
fn inline(stage: &mut Stage, size: Size) -> Vec<String> {
    let terminal = Shared::new(VirtualTerminal::new(size));
    let mut ui = Ui::new(InlineWindow::new(terminal.clone(), size, Position::new(0, 0)));
    ui.draw(&mut stage.app).unwrap();
    terminal.0.borrow_mut().everything()
}

/// The same at each width.
fn at_all_widths(height: u16, make: impl Fn() -> Stage) -> String {
    let screen = |width: u16| {
        let rows = inline(&mut make(), Size::new(width, height));
        format!("── {width} columns\n{}\n", rows.join("\n").trim_end())
    };
    WIDTHS.map(screen).concat()
}

fn result(call: &ToolCall, text: &str, details: Option<Value>, is_error: bool) -> Message {
    Message::ToolResult(Arc::new(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![ContentBlock::text(text)],
        details,
        is_error,
        duration_ms: Some(1_200),
        timestamp: Millis(0),
        extra: Default::default(),
    }))
}

/// Calls that succeeded, failed and were skipped, with thinking before them.
fn tools() -> Stage {
    let edit = call(
        "edit",
        json!({ "path": "src/deep/folder/of/the/project/parser.rs", "edits": [{ "oldText": "a", "newText": "b" }] }),
    );
    let bash = call("bash", json!({ "command": "cargo test --lib parser -- --nocapture 2>&1 | tail -n 5" }));
    let read = call("read", json!({ "path": "notes.md" }));
    let diff = "  8 fn before() {}\n- 9     let number = lex_number(input, Underscores::Rejected)?;\n\
                + 9     let number = lex_number(input, Underscores::Allowed)?;\n 10 // 世界 and a line that is too long for the narrow screens\n   ...";
    let thinks = Thinking::new("The lexer stops at the first underscore, so both places need the flag.");
    let mut stage = Stage::new();
    stage
        .message(user("+ fix *both* places\n7. and run the tests"))
        .message(answer(
            StopReason::ToolUse,
            vec![
                AssistantBlock::Thinking(thinks),
                AssistantBlock::ToolCall(edit.clone()),
                AssistantBlock::ToolCall(bash.clone()),
                AssistantBlock::ToolCall(read.clone()),
            ],
        ))
        .message(result(&edit, "Successfully replaced 1 block(s).", Some(json!({ "diff": diff })), false))
        .message(result(
            &bash,
            "running 3 tests\ntest parser::numbers ... FAILED\n\nCommand exited with code 101",
            None,
            true,
        ))
        .message(result(&read, crate::agent::SKIPPED_CALL, None, true));
    stage
}

/// Calls of which one runs and the other waits, after a command of the user and notices.
fn at_work() -> Stage {
    let bash = call("bash", json!({ "command": "make -j8 all" }));
    let read = call("read", json!({ "path": "src/parser.rs" }));
    let mut stage = Stage::new();
    let id = BashId::default;
    let command = "git log --oneline | head -n 2".to_owned();
    let execution = BashExecution {
        command: command.clone(),
        output: "4fb50a6 theme: diffs have their tints with 256 colours too\n8b46ef4 session: a file is read in blocks".to_owned(),
        exit_code: Some(0),
        ..BashExecution::default()
    };
    for event in [
        SessionEvent::BashStarted { id: id(), command, exclude_from_context: false },
        SessionEvent::BashEnded { id: id(), execution: Arc::new(execution) },
        SessionEvent::Notice {
            level: NoticeLevel::Warning,
            text: "the file ~/.pi/agent/settings.json has an unknown key; /settings lists those that exist"
                .to_owned(),
        },
    ] {
        stage.app.transcript.apply(&event, Duration::ZERO);
    }
    stage.message(answer(
        StopReason::ToolUse,
        vec![AssistantBlock::ToolCall(bash.clone()), AssistantBlock::ToolCall(read.clone())],
    ));
    for call in [&bash, &read] {
        stage.agent(AgentEvent::ToolStart { call: Arc::new(call.clone()) });
    }
    stage.agent(AgentEvent::ToolRunning { call_id: bash.id });
    stage
}

#[test]
fn conversation_on_the_main_screen() {
    insta::assert_snapshot!(at_all_widths(30, conversation));
}

#[test]
fn tools_on_the_main_screen() {
    insta::assert_snapshot!(at_all_widths(30, tools));
}

#[test]
fn work_in_progress_on_the_main_screen() {
    insta::assert_snapshot!(at_all_widths(30, at_work));
}

#[test]
fn completion_of_files_on_the_main_screen() {
    insta::assert_snapshot!(at_all_widths(24, || {
        let mut stage = tools();
        stage.type_keys("compare @pars");
        let asked = stage.effects.iter().rev().find_map(|effect| match effect {
            Effect::World(WorldEffect::FindFiles(request)) => Some(request.id),
            _ => None,
        });
        let paths = [
            "src/parser.rs",
            "src/deep/folder/of/the/project/with/a/long/path/to/parser_of_numbers.rs",
            "docs/解析器 parser.md",
        ];
        let found =
            FoundFiles { id: asked.unwrap(), paths: paths.map(str::to_owned).to_vec(), is_done: true };
        stage.app.on_effect_done(EffectDone::Files(found), &mut stage.effects);
        stage
    }));
}

#[test]
fn search_of_earlier_prompts_on_the_main_screen() {
    insta::assert_snapshot!(at_all_widths(16, || {
        let mut stage = Stage::new();
        stage.app.now_ms = 10 * 3_600_000;
        stage.type_keys("<ctrl+r>");
        let prompts = json!([
            { "at_ms": 9 * 3_600_000_u64, "cwd": "/home/me/project", "text": "fix the lighthouse\nand its lamp, which has been out for three nights, before the storm of tomorrow" },
            { "at_ms": 0, "cwd": "/home/me/project", "text": "看看灯塔 and write what you see" },
        ]);
        let done = HistoryDone::Searched(serde_json::from_value(prompts).unwrap());
        stage.app.on_effect_done(EffectDone::History(done), &mut stage.effects);
        stage
    }));
}

#[test]
fn one_column_stays_free_right_of_everything() {
    let text = format!(
        "{}\n\n{}\n\n| name | text |\n|---|---|\n| a | {} |\n\n---\n\n> {}\n\n- {}\n\n```\n{}\n```\n",
        "a ".repeat(200),
        "b".repeat(300),
        "long cell ".repeat(30),
        "世界".repeat(100),
        "c".repeat(300),
        "d".repeat(300),
    );
    for columns in [20, 40, 80, 81, 120, 200] {
        let mut stage = Stage::new();
        stage.message(user(&text)).message(answer(StopReason::Stop, vec![says(&text)]));
        inline(&mut stage, Size::new(columns, 24));
        let transcript = &stage.app.transcript;
        for index in 0..transcript.len() {
            let row = transcript.row(index).text();
            assert!(width(row.trim_end()) < usize::from(columns), "{row:?} at {columns}");
        }
    }
}
