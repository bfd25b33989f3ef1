//! Invariants of the transcript.

use proptest::prelude::*;

use crate::session::{BashExecution, BashId, CompactionReason, Entry, Navigated, NoticeLevel};
use crate::tui::text::Row;

use super::*;

/// An answer with a text and a call, which is run.
fn turn(stage: &mut TranscriptStage) {
    let read = call("read", json!({ "path": "a.txt" }));
    let message = answer(StopReason::ToolUse, vec![says("Reading."), AssistantBlock::ToolCall(read.clone())]);
    stage.agent(AgentEvent::MessageEnd(Arc::new(user("go"))));
    stage.agent(AgentEvent::MessageEnd(Arc::new(message)));
    let result = Arc::new(result(&read, "alpha"));
    stage.agent(AgentEvent::ToolEnd { call_id: read.id, result });
}

#[test]
fn a_frame_costs_the_same_however_long_the_transcript_is() {
    let renders = |n_turns: usize| {
        let mut stage = TranscriptStage::new();
        (0..n_turns).for_each(|_| turn(&mut stage));
        stage.answer().begin(0, BlockKind::Text).layout(80);
        let before = stage.transcript.renders();
        for _ in 0..10 {
            stage.delta(0, "a word ").layout(80);
        }
        let per_delta = stage.transcript.renders() - before;
        let before = stage.transcript.renders();
        for _ in 0..10 {
            // A key press changes nothing here.
            stage.wait(16).layout(80);
        }
        (per_delta, stage.transcript.renders() - before)
    };
    assert_eq!(renders(4), (10, 0));
    assert_eq!(renders(1_700), (10, 0));
}

#[test]
fn arguments_are_read_once_per_frame() {
    let mut stage = TranscriptStage::new();
    stage.answer().begin(0, BlockKind::ToolCall { id: "c".into(), name: "write".into() }).layout(80);
    let before = stage.transcript.renders();
    stage.delta(0, r#"{"path":"#).delta(0, r#""a.txt","#).delta(0, r#""content":"x"#);
    assert!(stage.text(80).contains("write a.txt"));
    assert_eq!(stage.transcript.renders() - before, 1);
}

#[test]
fn rows_that_arrive_before_a_layout_at_another_width_follow_those_that_were_there() {
    use crate::tui::term::Relayout as _;

    let mut stage = TranscriptStage::new();
    (0..3).for_each(|_| turn(&mut stage));
    stage.layout(80);
    let len = stage.transcript.len();
    let places = stage.transcript.places(0..len);
    stage.agent(AgentEvent::MessageEnd(Arc::new(user("and more"))));
    stage.layout(40);
    let transcript = &stage.transcript;
    let next = transcript.moved(&places).row(len).unwrap();
    let text = |rows: std::ops::Range<usize>| {
        rows.map(|at| transcript.row(at).text()).collect::<Vec<_>>().join("\n")
    };
    assert!(next < transcript.len() && !text(0..next).contains("and more"));
    assert!(text(next..transcript.len()).contains("and more"));
}

/// What is hidden when output is collapsed has a row that says so, wherever the screen begins.
#[test]
fn rows_that_are_collapsed_are_replaced_by_the_row_that_counts_them() {
    use crate::tui::term::Relayout as _;

    for name in ["x", "an output line", "a very long name of a line of output that a command has printed"] {
        let bash = call("bash", json!({ "command": "make" }));
        let lines: String = (1..=10).map(|n| format!("{name} {n}\n")).collect();
        let mut stage = called(&bash, result(&bash, &lines));
        stage.expanded(true).layout(120);
        let rows: Vec<String> =
            (0..stage.transcript.len()).map(|at| stage.transcript.row(at).text()).collect();
        let places = stage.transcript.places(0..rows.len());
        stage.expanded(false).layout(120);
        let transcript = &stage.transcript;
        for n in 1..=10 {
            let line = format!("{name} {n}");
            let first = rows.iter().position(|row| row.trim() == line).unwrap();
            let from = transcript.moved(&places).replaced(first);
            let shown = transcript.row(from).text();
            let shown = shown.trim();
            let is_right = if n <= 5 { shown.contains("5 earlier lines") } else { shown == line };
            assert!(is_right, "{line}: {shown}");
        }
    }
}

#[test]
fn calls_at_the_end_of_a_branch_do_not_run() {
    let bash = call("bash", json!({ "command": "make" }));
    let message = answer(StopReason::ToolUse, vec![says("Making."), AssistantBlock::ToolCall(bash)]);
    let value = json!({"type": "message", "id": "a", "parentId": null, "timestamp": "", "message": message});
    let entry = Arc::new(Entry::parse(&value.to_string()).unwrap());
    let branch = Opened { tail: vec![entry], n_earlier: Some(0), ..Opened::default() };
    let mut stage = TranscriptStage::new();
    (0..9).for_each(|_| turn(&mut stage));
    stage.layout(60);
    stage.event(SessionEvent::Navigated(Arc::new(Navigated { branch, prompt: None })));
    assert!(stage.text(60).contains("No result was recorded"), "{}", stage.text(60));
}

/// A diagram that becomes its source leaves only the text behind it to find a row by, which may grow.
#[test]
fn end_of_an_answer_with_a_diagram_is_found_once_it_does_not_grow() {
    use crate::tui::term::Relayout as _;

    const DIAGRAM: &str = "```mermaid\ngraph TD\n  A[Start] --> B[Do it]\n  A --> C[Stop]\n```\n\nTail.\n\n";
    for grows in [true, false] {
        let mut stage = TranscriptStage::new();
        stage.answer().begin(0, BlockKind::Text).delta(0, DIAGRAM);
        if !grows {
            let content = vec![says(DIAGRAM)];
            stage.agent(AgentEvent::MessageEnd(Arc::new(answer(StopReason::Stop, content))));
        }
        assert!(stage.text(80).contains('┌'));
        let len = stage.transcript.len();
        assert!(!grows || stage.transcript.stable() + 1 >= len, "all of it may be settled");
        let places = stage.transcript.places(0..len);
        if grows {
            stage.delta(0, "More words.\n\n");
        }
        assert!(stage.text(20).contains("graph TD"));
        let transcript = &stage.transcript;
        let (row, near) = (transcript.moved(&places).row(len), transcript.moved(&places).near(len));
        if grows {
            let more = (0..transcript.len()).find(|at| transcript.row(*at).text().contains("More")).unwrap();
            assert!(row.is_none_or(|row| row <= more) && near <= more, "{row:?} {near} {more}");
        } else {
            assert_eq!((row, near), (Some(transcript.len()), transcript.len()));
        }
    }
}

#[test]
fn a_replay_draws_the_end_and_says_that_there_is_more() {
    let mut stage = TranscriptStage::new();
    stage.transcript.header("pi", "v1", &[]);
    (0..2_000).for_each(|_| turn(&mut stage));
    // A few screens are enough, unless the user asks for more.
    for width in [79, 81] {
        stage.text(width);
        let n_rows = stage.transcript.len();
        assert!((400..420).contains(&n_rows), "{n_rows}");
    }
    stage.transcript.replay_whole();
    let text = stage.text(80);
    let n_rows = stage.transcript.len();
    assert!((5_000..5_020).contains(&n_rows), "{n_rows}");
    let first: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(first, ["|", "| pi v1", "|", "| about 4500 earlier entries hidden (/transcript to show)"]);
    assert_eq!(stage.transcript.stable(), n_rows);
}

#[test]
fn a_call_without_a_result_is_not_continued_by_a_later_call_with_its_id() {
    let bash =
        |command: &str| ToolCall { id: "call_1".to_owned(), ..call("bash", json!({ "command": command })) };
    let with = |call: &ToolCall| answer(StopReason::ToolUse, vec![AssistantBlock::ToolCall(call.clone())]);
    let (lost, second, third) = (bash("sleep 300"), bash("echo second"), bash("echo third"));
    let messages = |call: &ToolCall, text: &str| {
        [
            user(text),
            with(call),
            Message::ToolResult(Arc::new(result(call, text))),
            answer(StopReason::Stop, vec![says("done")]),
        ]
    };
    let stored = [user("first"), with(&lost)];
    let more: Vec<Message> =
        [messages(&second, "second"), messages(&third, "third")].into_iter().flatten().collect();
    let opened = |messages: &[Message]| {
        let lines = messages.iter().enumerate().map(|(n, message)| {
            let line = json!({ "type": "message", "id": format!("{n}"), "parentId": null, "timestamp": "", "message": message });
            Arc::new(Entry::parse(&line.to_string()).unwrap())
        });
        Opened { tail: lines.collect(), n_earlier: Some(0), ..Opened::default() }
    };
    let stage_of = |opened: Opened| {
        let mut stage = TranscriptStage::new();
        stage.event(SessionEvent::Opened(Arc::new(opened)));
        stage
    };

    let whole: Vec<Message> = stored.iter().chain(&more).cloned().collect();
    let resumed = stage_of(opened(&whole)).text(60);
    let rows: Vec<&str> = resumed.lines().filter(|row| row.len() > 1 && !row.contains("Took")).collect();
    let expected = [
        "| first",
        "| $ sleep 300",
        "| ✗ No result was recorded",
        "| second",
        "| $ echo second",
        "| second",
        "| done",
        "| third",
        "| $ echo third",
        "| third",
        "| done",
    ];
    assert_eq!(rows, expected);

    // The same as while it happened.
    let mut live = stage_of(opened(&stored));
    for message in more {
        live.agent(AgentEvent::MessageEnd(Arc::new(message)));
    }
    assert_eq!(live.text(60), resumed);

    // Also if it streams while the call before is open.
    let mut streamed = TranscriptStage::new();
    for message in stored {
        streamed.agent(AgentEvent::MessageEnd(Arc::new(message)));
    }
    let kind = BlockKind::ToolCall { id: "call_1".into(), name: "bash".into() };
    streamed.answer().begin(0, kind).agent(AgentEvent::MessageEnd(Arc::new(with(&second))));
    streamed.run_call(&second).agent(AgentEvent::ToolEnd {
        call_id: second.id.clone(),
        result: Arc::new(result(&second, "second")),
    });
    let text = streamed.text(60);
    assert!(text.contains("No result was recorded") && text.contains("$ echo second"), "{text}");
    assert_eq!(streamed.transcript.stable(), streamed.transcript.len());
}

#[test]
fn earlier_entries_of_a_session_are_mentioned() {
    let check = |n_earlier, expected: &str| {
        let mut stage = TranscriptStage::new();
        stage.event(SessionEvent::Opened(Arc::new(Opened { tail: vec![], n_earlier, ..Opened::default() })));
        assert_eq!(stage.text(80), expected);
    };
    check(Some(0), "");
    check(Some(1), "|\n| 1 earlier entry hidden (/transcript to show)");
    check(Some(200), "|\n| 200 earlier entries hidden (/transcript to show)");
    check(None, "|\n| earlier entries hidden (/transcript to show)");
}

#[test]
fn cancelled_compaction_leaves_a_notice() {
    let ended = |aborted: bool| SessionEvent::CompactionEnded {
        reason: CompactionReason::Manual,
        aborted,
        error: aborted.then(|| "cancelled".to_owned()),
        will_retry: false,
        tokens_after: None,
    };
    let mut stage = TranscriptStage::new();
    stage.event(ended(false));
    assert_eq!(stage.text(80), "");
    stage.event(ended(true));
    assert_eq!(stage.text(80), "|\n| The compaction was cancelled; nothing was changed.");
}

#[test]
fn a_running_call_holds_back_what_is_below() {
    let mut stage = TranscriptStage::new();
    let sleep = call("bash", json!({ "command": "sleep 9" }));
    stage.run_call(&sleep);
    stage.agent(AgentEvent::MessageEnd(Arc::new(user("hurry")))).layout(80);
    assert_eq!(stage.transcript.stable(), 0);
    let result = Arc::new(result(&sleep, "(no output)"));
    stage.agent(AgentEvent::ToolEnd { call_id: sleep.id, result }).layout(80);
    assert_eq!(stage.transcript.stable(), stage.transcript.len());
    assert!(!stage.transcript.wants_tick());
}

#[test]
fn elapsed_time_is_drawn_every_second() {
    let mut stage = TranscriptStage::new();
    stage.run_call(&call("bash", json!({ "command": "sleep 9" }))).layout(80);
    let before = stage.transcript.renders();
    for _ in 0..40 {
        stage.wait(100).layout(80);
    }
    assert_eq!(stage.transcript.renders() - before, 4);
    assert!(stage.text(80).contains("Elapsed 4s"));
}

#[test]
fn an_answer_that_ends_otherwise_keeps_the_rows_that_are_stable() {
    let mut stage = TranscriptStage::new();
    stage.answer().begin(0, BlockKind::Text).delta(0, "one\n\ntwo\n\nthree\n").layout(40);
    assert_eq!(stage.transcript.stable(), 4);
    let block = says("ONE\n\nTWO\n\nTHREE");
    stage.agent(AgentEvent::MessageEnd(Arc::new(answer(StopReason::Stop, vec![block]))));
    assert_eq!(stage.text(40), "|\n| one\n|\n| two\n|\n| THREE");
    assert_eq!(stage.transcript.last_answer().as_deref(), Some("ONE\n\nTWO\n\nTHREE"));
}

#[test]
fn an_error_that_is_retried_is_shown_once() {
    let mut stage = TranscriptStage::new();
    let attempt = |stage: &mut TranscriptStage| {
        let message = failed(StopReason::Error, vec![], "overloaded");
        stage.answer().agent(AgentEvent::MessageEnd(Arc::new(message)));
    };
    attempt(&mut stage);
    let delay = Duration::from_secs(2);
    let error = "overloaded".to_owned();
    stage.event(SessionEvent::RetryScheduled { attempt: 1, max_attempts: 3, delay, error });
    assert_eq!(stage.text(40), "|\n| Error: acme: overloaded");
    attempt(&mut stage);
    let final_error = Some("overloaded".to_owned());
    stage.event(SessionEvent::RetryEnded { success: false, attempt: 1, final_error });
    assert_eq!(stage.text(40), "|\n| Error: acme: overloaded (2 times)\n|\n| Error: gave up after 1 retry");
    // A different failure.
    attempt(&mut stage);
    assert!(stage.text(40).ends_with("gave up after 1 retry\n|\n| Error: acme: overloaded"));
}

#[test]
fn notices_that_follow_each_other_are_shown_once_if_they_are_the_same() {
    let mut stage = TranscriptStage::new();
    let notice = |stage: &mut TranscriptStage, level, text: &str| stage.transcript.notice(level, text);
    let unknown = "unknown command: /x\nSee /help";
    for _ in 0..3 {
        notice(&mut stage, NoticeLevel::Error, unknown);
        stage.layout(40);
    }
    assert_eq!(stage.text(40), "|\n| Error: unknown command: /x (3 times)\n| See /help");
    // Another level, another text, and the first one after that.
    notice(&mut stage, NoticeLevel::Warning, unknown);
    notice(&mut stage, NoticeLevel::Warning, "careful");
    notice(&mut stage, NoticeLevel::Warning, "careful");
    notice(&mut stage, NoticeLevel::Error, unknown);
    let expected = "|\n| Error: unknown command: /x (3 times)\n| See /help\n\
        |\n| Warning: unknown command: /x\n| See /help\n\
        |\n| Warning: careful (2 times)\n\
        |\n| Error: unknown command: /x\n| See /help";
    assert_eq!(stage.text(40), expected);
    // A failed answer is an entry of the session, and counts for itself.
    let mut stage = TranscriptStage::new();
    notice(&mut stage, NoticeLevel::Error, "acme: overloaded");
    let message = failed(StopReason::Error, vec![], "overloaded");
    stage.answer().agent(AgentEvent::MessageEnd(Arc::new(message)));
    assert_eq!(stage.text(40), "|\n| Error: acme: overloaded\n|\n| Error: acme: overloaded");
}

#[test]
fn a_result_is_shared_with_its_cell_and_never_copied() {
    let read = call("read", json!({ "path": "a.txt" }));
    let shared = Arc::new(result(&read, "alpha"));
    let mut stage = TranscriptStage::new();
    stage.run_call(&read);
    stage.agent(AgentEvent::ToolEnd { call_id: read.id.clone(), result: Arc::clone(&shared) });
    assert_eq!(Arc::strong_count(&shared), 2, "the test has one, and the cell");
    stage.agent(AgentEvent::MessageEnd(Arc::new(Message::ToolResult(Arc::clone(&shared)))));
    assert!(stage.expanded(true).text(40).contains("alpha"));
    assert_eq!(Arc::strong_count(&shared), 2, "the message is of the result the cell has");

    let stored = Arc::new(result(&read, "beta"));
    let mut stage = TranscriptStage::with([
        answer(StopReason::ToolUse, vec![AssistantBlock::ToolCall(read.clone())]),
        Message::ToolResult(Arc::clone(&stored)),
    ]);
    assert!(stage.expanded(true).text(40).contains("beta"));
    assert_eq!(Arc::strong_count(&stored), 2, "the test has one, and the cell");
}

#[test]
fn an_aborted_run_ends_its_calls() {
    let mut stage = TranscriptStage::new();
    stage.run_call(&call("bash", json!({ "command": "sleep 9" }))).layout(80);
    stage.event(SessionEvent::Settled { aborted: true });
    assert!(stage.text(80).contains("Operation aborted"));
    assert_eq!(stage.transcript.stable(), stage.transcript.len());
}

#[test]
fn leaving_settles_everything() {
    let mut stage = TranscriptStage::new();
    stage.event(SessionEvent::BashStarted {
        id: BashId::default(),
        command: "top".into(),
        exclude_from_context: false,
    });
    stage.answer().begin(0, BlockKind::Text).delta(0, "half");
    stage.transcript.notice(NoticeLevel::Info, "Copied");
    stage.transcript.settle();
    stage.layout(80);
    assert_eq!(stage.transcript.stable(), stage.transcript.len());
}

#[test]
fn nothing_dangerous_reaches_a_row() {
    let bad = "a\u{001b}[31mb\u{001b}]0;t\u{7}c\u{9b}2Jd\te\rf\u{8}\u{202e}g";
    let arguments = json!({ "command": bad, "path": bad, "pattern": bad, "glob": bad, "content": bad,
        "timeout": 1e300, "offset": -5, "limit": 1e300, bad: bad,
        "edits": [{ "oldText": bad, "newText": "b" }] });
    let mut stage = TranscriptStage::with([user(bad)]);
    stage.transcript.header("pi", "v1", &["hint"]);
    for name in ["bash", "read", "edit", "write", "grep", "find", "ls", bad] {
        let call = call(name, arguments.clone());
        stage.run_call(&call).partial(&call, bad);
        stage.layout(40);
        let details =
            Some(json!({ "truncation": 1, "diff": format!("+1 {bad}\n-{bad}"), "fullOutputPath": bad }));
        for is_error in [false, true] {
            let result = ToolResultMessage { details: details.clone(), is_error, ..result(&call, bad) };
            stage.run_call(&call);
            stage.agent(AgentEvent::ToolEnd { call_id: call.id.clone(), result: Arc::new(result) });
        }
    }
    stage.agent(AgentEvent::MessageEnd(Arc::new(failed(
        StopReason::Error,
        vec![says(bad), thinks(bad)],
        bad,
    ))));
    stage.event(SessionEvent::BashStarted {
        id: BashId::default(),
        command: bad.into(),
        exclude_from_context: true,
    });
    stage.event(SessionEvent::BashOutput { id: BashId::default(), chunk: bad.into() });
    stage.transcript.notice(NoticeLevel::Warning, bad);
    for expanded in [false, true] {
        stage.expanded(expanded);
        for width in [1, 7, 40, 120] {
            let text = stage.text(width);
            let bad = text.chars().find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
            assert_eq!(bad, None, "{text}");
        }
    }
}

#[test]
fn paths_lead_to_their_files_where_the_terminal_can() {
    let links = |path: &str| -> Vec<String> {
        let read = call("read", json!({ "path": path }));
        let mut stage = called(&read, result(&read, "x"));
        stage.change_view(|view| view.links = true);
        stage.layout(40);
        let row = stage.transcript.row(2);
        row.links.iter().map(|(range, link)| format!("{range:?} {}", link.as_str())).collect()
    };
    assert_eq!(links("src/../a.txt"), ["6..11 file:///home/me/proj/a.txt"]);
    assert_eq!(links("@~/a.txt"), ["6..13 file:///home/me/a.txt"]);
    assert_eq!(links("a b.txt"), [] as [String; 0]);
}

#[test]
fn hints_name_the_key_that_expands() {
    let ls = call("ls", json!({}));
    let mut stage = called(&ls, result(&ls, &numbered(20)));
    stage.change_view(|view| view.expand_key = "alt+e".to_owned());
    assert!(stage.text(80).contains("… (5 more lines, alt+e to expand)"));
    assert!(stage.text(30).contains("… (5 more lines, alt+e)"));
    assert!(stage.text(12).contains("… (5 mo"));
}

/// Anything a session may say, in any order.
fn any_event() -> impl Strategy<Value = SessionEvent> {
    let text = prop_oneof![
        "[a-z \n*`#|世\\-]{0,40}",
        "(```rs\n|fn x\\(\\) \\{\n|\n\n|- a\n|1\\. b|[x](/y)|\\[a\\]: b\n| ){0,8}",
        any::<String>(),
    ];
    let json = prop_oneof![
        Just(r#"{"command":"ls -la /tmp","path":"/home/me/proj/a.rs","content":"one\ntwo"#.to_owned()),
        Just(r#"{"path":"x","edits":[{"oldText":"a b c","newText":"a x c"}]}"#.to_owned()),
        "[a-z{}\":,]{0,20}",
    ];
    let name =
        prop_oneof![Just("bash"), Just("read"), Just("edit"), Just("write"), Just("grep"), Just("other")];
    let id = prop_oneof![Just("c1"), Just("c2")];
    let kind = prop_oneof![
        Just(BlockKind::Text),
        Just(BlockKind::Thinking),
        (id.clone(), name.clone())
            .prop_map(|(id, name)| BlockKind::ToolCall { id: id.to_owned(), name: name.to_owned() }),
    ];
    let call = (id.clone(), name, json.clone()).prop_map(|(id, name, json)| {
        let mut call = call(name, crate::ai::parse_lenient(&json));
        call.id = id.to_owned();
        call
    });
    let block = prop_oneof![
        text.clone().prop_map(|text| says(&text)),
        text.clone().prop_map(|text| thinks(&text)),
        call.clone().prop_map(AssistantBlock::ToolCall),
    ];
    let reason = prop_oneof![
        Just(StopReason::Stop),
        Just(StopReason::Error),
        Just(StopReason::Aborted),
        Just(StopReason::Length),
    ];
    let message = (reason, prop::collection::vec(block.clone(), 0..3), text.clone())
        .prop_map(|(reason, blocks, error)| failed(reason, blocks, &error));
    let ended = (call.clone(), text.clone(), any::<bool>()).prop_map(|(call, text, is_error)| {
        let result = Arc::new(ToolResultMessage { is_error, ..result(&call, &text) });
        AgentEvent::ToolEnd { call_id: call.id, result }
    });
    let agent = prop_oneof![
        2 => Just(AgentEvent::AssistantStart(Arc::new(assistant(StopReason::Pending, vec![])))),
        6 => (0..3_usize, kind)
            .prop_map(|(index, kind)| AgentEvent::MessageUpdate(StreamEvent::BlockStart { index, kind })),
        20 => (0..3_usize, prop_oneof![text.clone(), json])
            .prop_map(|(index, text)| AgentEvent::MessageUpdate(StreamEvent::Delta { index, text })),
        4 => (0..3_usize, block)
            .prop_map(|(index, block)| AgentEvent::MessageUpdate(StreamEvent::BlockEnd { index, block })),
        3 => message.prop_map(|message| AgentEvent::MessageEnd(Arc::new(message))),
        2 => text.clone().prop_map(|text| AgentEvent::MessageEnd(Arc::new(user(&text)))),
        4 => call.prop_map(|call| AgentEvent::ToolStart { call: Arc::new(call) }),
        4 => id.clone().prop_map(|id| AgentEvent::ToolRunning { call_id: id.to_owned() }),
        4 => (id, text.clone()).prop_map(|(id, text)| AgentEvent::ToolUpdate {
            call_id: id.to_owned(),
            partial: Arc::new(ToolOutput::text(text)),
        }),
        4 => ended,
        1 => Just(AgentEvent::AgentEnd { messages: vec![] }),
    ];
    prop_oneof![
        20 => agent.prop_map(SessionEvent::Agent),
        1 => text.clone().prop_map(|command| SessionEvent::BashStarted { id: BashId::default(), command, exclude_from_context: true }),
        2 => text.clone().prop_map(|chunk| SessionEvent::BashOutput { id: BashId::default(), chunk }),
        1 => text.clone().prop_map(|output| {
            SessionEvent::BashEnded { id: BashId::default(), execution: Arc::new(BashExecution { output, ..BashExecution::default() }) }
        }),
        1 => text.clone().prop_map(|text| SessionEvent::Notice { level: NoticeLevel::Info, text }),
        1 => text.prop_map(|text| SessionEvent::Notice { level: NoticeLevel::Error, text }),
        1 => Just(SessionEvent::Settled { aborted: true }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_fit_and_stable_rows_stay(
        width in 1_u16..=120,
        view in any::<(bool, bool)>(),
        batches in prop::collection::vec(prop::collection::vec(any_event(), 1..4), 1..25),
    ) {
        let mut stage = TranscriptStage::new();
        stage.change_view(|settings| (settings.expanded, settings.hide_thinking) = view);
        let mut stable: Vec<Row> = Vec::new();
        for batch in batches {
            for event in batch {
                stage.event(event);
            }
            stage.wait(700).layout(width);
            let transcript = &stage.transcript;
            prop_assert!(transcript.stable() <= transcript.len());
            prop_assert!(transcript.stable() >= stable.len(), "stable shrank");
            for index in 0..transcript.len() {
                let row = transcript.row(index);
                prop_assert!(row.width() <= usize::from(width));
                prop_assert!(row.line.spans.iter().all(|span| !span.content.chars().any(char::is_control)));
                if let Some(before) = stable.get(index) {
                    prop_assert_eq!(before, &*row);
                } else if index < transcript.stable() {
                    stable.push(row.into_owned());
                }
            }
        }
        stage.transcript.settle();
        stage.layout(width);
        prop_assert_eq!(stage.transcript.stable(), stage.transcript.len());
    }
}
